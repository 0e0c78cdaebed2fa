//! Round-trip time estimation and the retransmission timeout.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_input.c` (`tcp_rtt_estimator`), RFC 6298 with Linux's 200 ms floor
//! under the variance term and its smaller gain when the RTT falls; `tcp_update_rtt_min`.
//!
//! Departures: the 300 s window of the least RTT restarts as a whole when it is over.

use crate::base::units::Time;
use crate::cc::sock::TcpSock;

/// `TCP_RTO_MIN` in microseconds.
pub const RTO_MIN_US: u64 = 200_000;
/// `TCP_RTO_MAX` in microseconds.
pub const RTO_MAX_US: u64 = 120_000_000;
/// The timeout before the first sample, in microseconds.
pub const RTO_INIT_US: u64 = 1_000_000;

/// `tcp_min_rtt_wlen`
const MIN_WINDOW: Time = Time::from_ms(300_000);

/// The estimator; `srtt` itself is `TcpSock::srtt_us`, and the least RTT `TcpSock::min_rtt_us`.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    /// Mean deviation, times 4.
    mdev_us: u64,
    mdev_max_us: u64,
    rttvar_us: u64,
    /// `snd_nxt` when the current round of `mdev_max` began.
    rtt_seq: u64,
    /// Exponential backoff as a shift.
    backoff: u32,
    rto_us: u64,
    /// When the least RTT was measured.
    min_at: Time,
}

impl Default for RttEstimator {
    fn default() -> Self {
        RttEstimator {
            mdev_us: 0,
            mdev_max_us: 0,
            rttvar_us: 0,
            rtt_seq: 0,
            backoff: 0,
            rto_us: RTO_INIT_US,
            min_at: Time::ZERO,
        }
    }
}

impl RttEstimator {
    /// Takes a sample of `rtt_us` microseconds and ends any backoff.
    pub fn sample(&mut self, tp: &mut TcpSock, rtt_us: u64) {
        let mut m = rtt_us as i64;
        let srtt = tp.srtt_us as i64;
        if srtt == 0 {
            tp.srtt_us = (rtt_us.max(1)) << 3;
            self.mdev_us = rtt_us << 1;
            self.rttvar_us = self.mdev_us.max(RTO_MIN_US);
            self.mdev_max_us = self.rttvar_us;
            self.rtt_seq = tp.snd_nxt;
        } else {
            m -= srtt >> 3;
            tp.srtt_us = (srtt + m).max(1) as u64;
            if m < 0 {
                m = -m;
                m -= (self.mdev_us >> 2) as i64;
                // A fall of the RTT must not inflate the deviation as fast as a rise.
                if m > 0 {
                    m >>= 3;
                }
            } else {
                m -= (self.mdev_us >> 2) as i64;
            }
            self.mdev_us = (self.mdev_us as i64 + m).max(0) as u64;
            if self.mdev_us > self.mdev_max_us {
                self.mdev_max_us = self.mdev_us;
                self.rttvar_us = self.rttvar_us.max(self.mdev_max_us);
            }
            if tp.snd_una > self.rtt_seq {
                if self.mdev_max_us < self.rttvar_us {
                    self.rttvar_us -= (self.rttvar_us - self.mdev_max_us) >> 2;
                }
                self.rtt_seq = tp.snd_nxt;
                self.mdev_max_us = RTO_MIN_US;
            }
        }
        self.backoff = 0;
        self.rto_us = ((tp.srtt_us >> 3) + self.rttvar_us).min(RTO_MAX_US);
    }

    /// Takes a sample of `rtt_us` microseconds for the least RTT (`tcp_update_rtt_min`).
    pub fn minimum(&mut self, tp: &mut TcpSock, rtt_us: u64) {
        if rtt_us <= tp.min_rtt_us || tp.now - self.min_at > MIN_WINDOW {
            tp.min_rtt_us = rtt_us;
            self.min_at = tp.now;
        }
    }

    /// The timeout in microseconds, with backoff.
    pub fn rto_us(&self) -> u64 {
        self.rto_us
    }

    /// Doubles the timeout after it expired. Source: RFC 6298, section 5, rule 5.5.
    pub fn back_off(&mut self) {
        self.backoff += 1;
        self.rto_us = (self.rto_us * 2).min(RTO_MAX_US);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sample_sets_srtt_and_a_variance_of_at_least_200_ms() {
        let mut tp = TcpSock::new(1448, 250);
        let mut r = RttEstimator::default();
        r.sample(&mut tp, 20_000);
        assert_eq!(tp.srtt_us >> 3, 20_000);
        // mdev is stored times 4 as 2 m = 40 ms, below the floor of 200 ms
        assert_eq!(r.rto_us(), 220_000);
    }

    #[test]
    fn srtt_moves_by_an_eighth() {
        let mut tp = TcpSock::new(1448, 250);
        let mut r = RttEstimator::default();
        r.sample(&mut tp, 20_000);
        r.sample(&mut tp, 28_000);
        assert_eq!(tp.srtt_us >> 3, 21_000);
    }

    #[test]
    fn the_timeout_doubles_up_to_two_minutes() {
        let mut r = RttEstimator::default();
        r.back_off();
        assert_eq!(r.rto_us(), 2_000_000);
        for _ in 0..10 {
            r.back_off();
        }
        assert_eq!(r.rto_us(), RTO_MAX_US);
    }
}
