//! `westwood`: Westwood+. Grows as `reno`; after a reduction or an RTO the window is what the estimated bandwidth sends in
//! the least RTT.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_westwood.c`; Mascolo, Casetti, Gerla, Sanadidi and Wang, "TCP Westwood", 2001. Bandwidth in
//! bytes per jiffy, RTTs in jiffies, as there.
//!
//! Parameters: none.
//!
//! Departures: the kernel takes its path for unusual ACKs (`CA_ACK_SLOWPATH`) by the header; here an ACK is one that advances
//! nothing, changes the window, or leaves SACKed data.
//!
//! Validation: the tests below, `tests/cc_hooks.rs`.

use super::reno::Reno;
use super::{CaEvent, CcEnv, CcError, CongestionControl};
use crate::cc::sock::TcpSock;
use bakeoff_document::cc::CcWords;

/// State; the kernel's names.
pub struct Westwood {
    /// Bandwidth filtered once and twice, in bytes per jiffy.
    bw_ns_est: u32,
    bw_est: u32,
    /// Jiffies at which the sample began.
    rtt_win_sx: u64,
    /// Bytes of the sample.
    bk: u32,
    snd_una: u64,
    /// Bytes counted by duplicate ACKs, which a cumulative one will cover again.
    accounted: u32,
    /// In jiffies.
    rtt: u32,
    rtt_min: u32,
    first_ack: bool,
    reset_rtt_min: bool,
}

/// `usecs_to_jiffies`: rounded up.
fn jiffies(us: u64, hz: u64) -> u32 {
    us.saturating_mul(hz).div_ceil(1_000_000).min(u32::MAX.into()) as u32
}

/// 7/8 of the old and 1/8 of the new.
fn filter(old: u32, new: u32) -> u32 {
    old.wrapping_mul(7).wrapping_add(new) >> 3
}

impl Westwood {
    /// From the words after the name: there are none.
    pub fn parse(words: &mut CcWords, _: CcEnv) -> Result<Self, CcError> {
        words.parameter(&[])?;
        Ok(Westwood {
            bw_ns_est: 0,
            bw_est: 0,
            rtt_win_sx: 0,
            bk: 0,
            snd_una: 0,
            accounted: 0,
            rtt: 0,
            rtt_min: 0,
            first_ack: true,
            reset_rtt_min: true,
        })
    }

    /// Ends the sample once it is longer than an RTT and 50 ms. Source: Linux 7.3 `westwood_update_window`.
    fn update_window(&mut self, tp: &TcpSock) {
        let now = tp.jiffies();
        if self.first_ack {
            self.snd_una = tp.snd_una;
            self.first_ack = false;
        }
        let delta = (now - self.rtt_win_sx).min(u32::MAX.into()) as u32;
        if self.rtt > 0 && delta > self.rtt.max((tp.hz / 20) as u32) {
            let sample = self.bk.checked_div(delta).unwrap_or(0);
            if self.bw_ns_est == 0 && self.bw_est == 0 {
                self.bw_ns_est = sample;
                self.bw_est = sample;
            } else {
                self.bw_ns_est = filter(self.bw_ns_est, sample);
                self.bw_est = filter(self.bw_est, self.bw_ns_est);
            }
            self.bk = 0;
            self.rtt_win_sx = now;
        }
    }

    /// Bytes that an unusual ACK tells of. Source: Linux 7.3 `westwood_acked_count`.
    fn acked_count(&mut self, tp: &TcpSock) -> u32 {
        let mut acked = (tp.snd_una - self.snd_una) as u32;
        if acked == 0 {
            self.accounted = self.accounted.wrapping_add(tp.mss);
            acked = tp.mss;
        }
        if acked > tp.mss {
            if self.accounted >= acked {
                self.accounted -= acked;
                acked = tp.mss;
            } else {
                acked -= self.accounted;
                self.accounted = 0;
            }
        }
        acked
    }

    /// Source: Linux 7.3 `tcp_westwood_bw_rttmin`.
    fn window(&self, tp: &TcpSock) -> u32 {
        (self.bw_est.wrapping_mul(self.rtt_min) / tp.mss).max(2)
    }
}

impl CongestionControl for Westwood {
    fn init(&mut self, tp: &mut TcpSock) {
        self.rtt = (20 * tp.hz) as u32;
        self.rtt_min = self.rtt;
        self.rtt_win_sx = tp.jiffies();
        self.snd_una = tp.snd_una;
    }

    fn ssthresh(&mut self, tp: &mut TcpSock) -> u32 {
        Reno::half(tp)
    }

    fn cong_avoid(&mut self, tp: &mut TcpSock, acked: u32) {
        Reno::grow(tp, acked);
    }

    /// Source: Linux 7.3 `tcp_westwood_ack`.
    fn in_ack_event(&mut self, tp: &mut TcpSock, ece: bool) {
        let unusual = ece || tp.win_update || tp.sacked_out > 0 || tp.snd_una == self.snd_una;
        self.update_window(tp);
        let bytes = if unusual { self.acked_count(tp) } else { (tp.snd_una - self.snd_una) as u32 };
        self.snd_una = tp.snd_una;
        self.bk = self.bk.wrapping_add(bytes);
        self.rtt_min = if self.reset_rtt_min { self.rtt } else { self.rtt_min.min(self.rtt) };
        self.reset_rtt_min = false;
    }

    fn pkts_acked(&mut self, tp: &mut TcpSock, _acked: u32, rtt_us: Option<u64>) {
        if let Some(rtt_us) = rtt_us.filter(|rtt_us| *rtt_us > 0) {
            self.rtt = jiffies(rtt_us, tp.hz);
        }
    }

    /// Source: Linux 7.3 `tcp_westwood_event`.
    fn cwnd_event(&mut self, tp: &mut TcpSock, event: CaEvent) {
        match event {
            CaEvent::CompleteCwr => {
                tp.snd_ssthresh = self.window(tp);
                tp.snd_cwnd = tp.snd_ssthresh;
            }
            CaEvent::Loss => {
                tp.snd_ssthresh = self.window(tp);
                self.reset_rtt_min = true;
            }
            CaEvent::TxStart | CaEvent::CwndRestart => {}
        }
    }

    fn trace(&self) -> Vec<(&'static str, f64)> {
        vec![("bw_est", self.bw_est.into()), ("rtt_min", self.rtt_min.into())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::Time;

    fn westwood() -> (Westwood, TcpSock) {
        let Ok(mut westwood) = Westwood::parse(&mut CcWords::new("westwood"), CcEnv::default()) else {
            panic!("refused")
        };
        let mut tp = TcpSock::new(1000, 1000);
        westwood.init(&mut tp);
        westwood.in_ack_event(&mut tp, false);
        (westwood, tp)
    }

    /// An ACK at `ms` of `bytes` more with an RTT of `rtt_us`.
    fn ack(westwood: &mut Westwood, tp: &mut TcpSock, ms: u64, bytes: u64, rtt_us: u64) {
        tp.now = Time::from_ms(ms);
        tp.snd_una += bytes;
        westwood.pkts_acked(tp, 1, Some(rtt_us));
        westwood.in_ack_event(tp, false);
    }

    #[test]
    fn samples_of_more_than_50_ms_are_filtered_twice() {
        let (mut westwood, mut tp) = westwood();
        // The ACK before anything is acknowledged counts as a duplicate: 1000 bytes.
        assert_eq!((westwood.bk, westwood.accounted), (1000, 1000));
        ack(&mut westwood, &mut tp, 50, 60_000, 19_001);
        assert_eq!((westwood.bw_est, westwood.rtt), (0, 20), "50 ms are not more; 19.001 ms is 20 jiffies");
        ack(&mut westwood, &mut tp, 61, 9_000, 20_000);
        // 61000 bytes in 61 ms, and the 9000 are of the next sample
        assert_eq!((westwood.bw_ns_est, westwood.bw_est, westwood.bk), (1000, 1000, 9_000));
        ack(&mut westwood, &mut tp, 161, 0, 20_000);
        // 9000 / 100 = 90; (7000 + 90) / 8 = 886; (7000 + 886) / 8 = 985
        assert_eq!((westwood.bw_ns_est, westwood.bw_est), (886, 985));
    }

    #[test]
    fn a_sample_lasts_an_rtt() {
        let (mut westwood, mut tp) = westwood();
        ack(&mut westwood, &mut tp, 60, 1_000, 100_000);
        ack(&mut westwood, &mut tp, 100, 1_000, 100_000);
        assert_eq!(westwood.bw_est, 0);
        ack(&mut westwood, &mut tp, 101, 1_000, 100_000);
        // 3000 bytes in 101 ms
        assert_eq!(westwood.bw_est, 29);
    }

    #[test]
    fn what_duplicates_counted_is_not_counted_again() {
        let (mut westwood, mut tp) = westwood();
        (westwood.bk, westwood.accounted) = (0, 0);
        tp.sacked_out = 3;
        for _ in 0..3 {
            westwood.in_ack_event(&mut tp, false);
        }
        assert_eq!((westwood.bk, westwood.accounted), (3000, 3000));
        tp.snd_una += 2000;
        westwood.in_ack_event(&mut tp, false);
        assert_eq!((westwood.bk, westwood.accounted), (4000, 1000), "a partial ACK counts as one segment");
        tp.snd_una += 4000;
        westwood.in_ack_event(&mut tp, false);
        assert_eq!((westwood.bk, westwood.accounted), (7000, 0));
        // An ACK of one segment leaves the account alone; so does a usual one.
        westwood.accounted = 500;
        tp.snd_una += 1000;
        westwood.in_ack_event(&mut tp, false);
        tp.sacked_out = 0;
        tp.snd_una += 2000;
        westwood.in_ack_event(&mut tp, false);
        assert_eq!((westwood.bk, westwood.accounted), (10_000, 500));
    }

    #[test]
    fn a_reduction_ends_at_the_bandwidth_times_the_least_rtt() {
        let (mut westwood, mut tp) = westwood();
        (westwood.bw_est, westwood.rtt_min) = (1500, 20);
        tp.snd_cwnd = 100;
        assert_eq!(westwood.ssthresh(&mut tp), 50);
        westwood.cwnd_event(&mut tp, CaEvent::CompleteCwr);
        assert_eq!((tp.snd_cwnd, tp.snd_ssthresh), (30, 30));
        // After an RTO the window is the sender's, and the next RTT the least.
        tp.snd_cwnd = 1;
        westwood.bw_est = 50;
        westwood.cwnd_event(&mut tp, CaEvent::Loss);
        assert_eq!((tp.snd_cwnd, tp.snd_ssthresh), (1, 2));
        westwood.rtt = 90;
        westwood.in_ack_event(&mut tp, false);
        assert_eq!(westwood.rtt_min, 90);
    }
}
