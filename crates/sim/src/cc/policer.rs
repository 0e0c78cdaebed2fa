//! Detection of token-bucket policers by a long-term bandwidth. Part of [`super::bbr`].
//!
//! Two intervals in a row that begin and end with a loss, last 4 to 16 rounds, lose more than 50/256 of
//! what they deliver and have nearly the same bandwidth: the path is taken as policed, and the mean of the
//! two is the bandwidth for 48 rounds.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_bbr.c` (`bbr_lt_bw_sampling`).
//!
//! Departures: none known.
//!
//! Validation: the tests below.

use super::bandwidth;
use crate::cc::sock::TcpSock;

const MIN_ROUNDS: u32 = 4;
/// In 1/256 of the packets delivered.
const LOSS_THRESHOLD: u64 = 50;
/// Bandwidths that differ by at most this part are the same.
const RATIO_DIVISOR: u64 = 8;
/// So are those that differ by at most 4 kbit/s, in bytes.
const DIFFERENCE: u64 = 4000 / 8;
const MAX_ROUNDS_IN_USE: u32 = 48;

/// What [`PolicerDetector::sample`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing new.
    Nothing,
    /// The path is policed: [`PolicerDetector::bw`] holds from now on.
    Policed,
    /// It held long enough: probe again.
    Over,
}

/// The detector's state.
#[derive(Clone, Debug, Default)]
pub struct PolicerDetector {
    bw: u64,
    in_use: bool,
    sampling: bool,
    rounds: u32,
    since_ms: u64,
    since_delivered: u64,
    since_lost: u64,
}

impl PolicerDetector {
    /// Nothing known.
    pub fn new(tp: &TcpSock) -> Self {
        let mut policer = PolicerDetector::default();
        policer.start_interval(tp);
        policer
    }

    /// The policed bandwidth, if there is one.
    pub fn bw(&self) -> Option<u64> {
        self.in_use.then_some(self.bw)
    }

    /// Source: Linux 7.3 `bbr_reset_lt_bw_sampling_interval`.
    fn start_interval(&mut self, tp: &TcpSock) {
        self.since_ms = tp.delivered_mstamp.as_ms();
        self.since_delivered = tp.delivered;
        self.since_lost = tp.lost;
        self.rounds = 0;
    }

    /// An ACK; `probing` is whether the flow is in PROBE_BW. Source: Linux 7.3 `bbr_lt_bw_sampling`.
    pub fn sample(
        &mut self,
        tp: &TcpSock,
        losses: u32,
        app_limited: bool,
        round_start: bool,
        probing: bool,
    ) -> Verdict {
        if self.in_use {
            if probing && round_start {
                self.rounds += 1;
                if self.rounds >= MAX_ROUNDS_IN_USE {
                    *self = PolicerDetector::new(tp);
                    return Verdict::Over;
                }
            }
            return Verdict::Nothing;
        }
        // The first loss tells that the tokens are used up.
        if !self.sampling {
            if losses == 0 {
                return Verdict::Nothing;
            }
            self.start_interval(tp);
            self.sampling = true;
        }
        self.rounds += u32::from(round_start);
        if app_limited || self.rounds > 4 * MIN_ROUNDS {
            *self = PolicerDetector::new(tp);
            return Verdict::Nothing;
        }
        // And so does the last.
        if self.rounds < MIN_ROUNDS || losses == 0 {
            return Verdict::Nothing;
        }
        let (lost, delivered) = (tp.lost - self.since_lost, tp.delivered - self.since_delivered);
        if delivered == 0 || (lost << 8) < LOSS_THRESHOLD * delivered {
            return Verdict::Nothing;
        }
        let ms = tp.delivered_mstamp.as_ms() - self.since_ms;
        if ms == 0 {
            return Verdict::Nothing;
        }
        if ms >= u64::from(u32::MAX) / 1000 {
            *self = PolicerDetector::new(tp);
            return Verdict::Nothing;
        }
        self.end_interval(tp, bandwidth::of(delivered, ms * 1000))
    }

    /// Source: Linux 7.3 `bbr_lt_bw_interval_done`.
    fn end_interval(&mut self, tp: &TcpSock, bw: u64) -> Verdict {
        if self.bw > 0 {
            let difference = bw.abs_diff(self.bw);
            if difference * RATIO_DIVISOR <= self.bw
                || bandwidth::bytes_per_s(tp.mss, difference, bandwidth::UNIT) <= DIFFERENCE
            {
                self.bw = u64::midpoint(bw, self.bw);
                self.in_use = true;
                self.rounds = 0;
                return Verdict::Policed;
            }
        }
        self.bw = bw;
        self.start_interval(tp);
        Verdict::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::Time;

    /// Rounds of 100 ms in which `delivered` packets arrive and `lost` do not; the verdicts.
    fn rounds(
        policer: &mut PolicerDetector,
        tp: &mut TcpSock,
        n: usize,
        delivered: u64,
        lost: u64,
    ) -> Vec<Verdict> {
        (0..n)
            .map(|_| {
                tp.delivered += delivered;
                tp.lost += lost;
                tp.delivered_mstamp += Time::from_ms(100);
                policer.sample(tp, lost as u32, false, true, true)
            })
            .collect()
    }

    fn at_start() -> (PolicerDetector, TcpSock) {
        let tp = TcpSock::new(1448, 250);
        (PolicerDetector::new(&tp), tp)
    }

    #[test]
    fn two_lossy_intervals_of_four_rounds_with_the_same_bandwidth_are_a_policer() {
        let (mut policer, mut tp) = at_start();
        // sampling begins with the loss of the first round; intervals end at its 4th and 8th round
        let verdicts = rounds(&mut policer, &mut tp, 8, 100, 25);
        let found = verdicts.iter().position(|v| *v == Verdict::Policed);
        assert_eq!(found, Some(7), "{verdicts:?}");
        // the first interval holds 300 packets in 300 ms, the second 400 in 400 ms
        assert_eq!(policer.bw(), Some(bandwidth::of(1, 1_000)));
        let verdicts = rounds(&mut policer, &mut tp, 48, 100, 0);
        assert_eq!(verdicts.iter().position(|v| *v == Verdict::Over), Some(47));
        assert_eq!(policer.bw(), None);
    }

    #[test]
    fn less_loss_than_a_fifth_or_unlike_bandwidths_are_not() {
        let (mut policer, mut tp) = at_start();
        // 19 of 100 is 48.6/256
        assert!(rounds(&mut policer, &mut tp, 40, 100, 19).iter().all(|v| *v == Verdict::Nothing));
        let (mut policer, mut tp) = at_start();
        for delivered in [100, 130, 170, 220, 290] {
            let verdicts = rounds(&mut policer, &mut tp, 4, delivered, delivered / 3);
            assert!(verdicts.iter().all(|v| *v == Verdict::Nothing), "{delivered}");
        }
    }

    #[test]
    fn an_application_limit_or_sixteen_rounds_without_an_end_start_over() {
        let (mut policer, mut tp) = at_start();
        rounds(&mut policer, &mut tp, 1, 100, 25);
        assert!(policer.sampling);
        rounds(&mut policer, &mut tp, 15, 100, 0);
        assert!(policer.sampling);
        rounds(&mut policer, &mut tp, 1, 100, 0);
        assert!(!policer.sampling);
        rounds(&mut policer, &mut tp, 1, 100, 25);
        policer.sample(&tp, 0, true, false, true);
        assert!(!policer.sampling);
    }
}
