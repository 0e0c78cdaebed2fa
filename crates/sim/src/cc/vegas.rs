//! `vegas`: keeps 2 to 4 packets in the queue; once per RTT the window moves by at most one packet.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_vegas.c`; Brakmo and Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global
//! Internet", 1995. The answer to losses is `reno`'s.
//!
//! Parameters, as the module's, in packets:
//!
//! | name | default | meaning |
//! |---|---|---|
//! | `alpha` | 2 | with fewer in the queue the window grows |
//! | `beta` | 4 | with more it shrinks |
//! | `gamma` | 1 | with more slow start ends |
//!
//! Departures: none known.
//!
//! Validation: the tests below, `tests/cc_hooks.rs`.

use super::reno::Reno;
use super::{CaEvent, CcEnv, CcError, CongestionControl};
use crate::cc::sock::{CaState, TcpSock};
use bakeoff_document::cc::CcWords;

/// An RTT in microseconds before the first sample.
pub(super) const NO_RTT: u32 = 0x7fff_ffff;

/// What `vegas` and `yeah` measure; the kernel's names. RTTs in microseconds, plus 1.
#[derive(Clone, Debug)]
pub(super) struct Rtts {
    /// `doing_vegas_now`
    pub doing_now: bool,
    /// The round ends with the ACK of a later byte.
    pub beg_snd_nxt: u64,
    /// Samples in this round.
    pub cnt: u16,
    /// The least of this round.
    pub min: u32,
    /// The least of all.
    pub base: u32,
}

impl Rtts {
    pub fn new() -> Self {
        Rtts { doing_now: false, beg_snd_nxt: 0, cnt: 0, min: NO_RTT, base: NO_RTT }
    }

    /// `tcp_vegas_init`
    pub fn init(&mut self, tp: &TcpSock) {
        self.base = NO_RTT;
        self.enable(tp);
    }

    fn enable(&mut self, tp: &TcpSock) {
        self.doing_now = true;
        self.beg_snd_nxt = tp.snd_nxt;
        self.new_round();
    }

    /// No sample yet.
    pub fn new_round(&mut self) {
        self.cnt = 0;
        self.min = NO_RTT;
    }

    /// `tcp_vegas_pkts_acked`
    pub fn sample(&mut self, rtt_us: Option<u64>) {
        let Some(rtt_us) = rtt_us else { return };
        let rtt = plus_one(rtt_us);
        self.base = self.base.min(rtt);
        self.min = self.min.min(rtt);
        self.cnt = self.cnt.wrapping_add(1);
    }

    /// `tcp_vegas_state`
    pub fn set_state(&mut self, tp: &TcpSock, state: CaState) {
        if state == CaState::Open {
            self.enable(tp);
        } else {
            self.doing_now = false;
        }
    }

    /// `tcp_vegas_cwnd_event`, `tcp_vegas_cwnd_event_tx_start`
    pub fn event(&mut self, tp: &TcpSock, event: CaEvent) {
        if matches!(event, CaEvent::CwndRestart | CaEvent::TxStart) {
            self.init(tp);
        }
    }

    /// For traces, in microseconds.
    pub fn trace(&self) -> [(&'static str, f64); 2] {
        [("base_rtt_us", self.base.into()), ("min_rtt_us", self.min.into())]
    }
}

/// A sample as it is kept: never 0.
pub(super) fn plus_one(rtt_us: u64) -> u32 {
    rtt_us.saturating_add(1).min(NO_RTT.into()) as u32
}

/// Parameters and state.
pub struct Vegas {
    alpha: u32,
    beta: u32,
    gamma: u32,
    rtts: Rtts,
}

impl Vegas {
    /// From the words after the name.
    pub fn parse(words: &mut CcWords, _: CcEnv) -> Result<Self, CcError> {
        let mut c = Vegas { alpha: 2, beta: 4, gamma: 1, rtts: Rtts::new() };
        while let Some(parameter) = words.parameter(&["alpha", "beta", "gamma"])? {
            let value = words.number(0..=i32::MAX as u32)?;
            match parameter {
                "alpha" => c.alpha = value,
                "beta" => c.beta = value,
                _ => c.gamma = value,
            }
        }
        Ok(c)
    }

    /// The end of a round with enough samples. Source: Linux 7.3 `tcp_vegas_cong_avoid`.
    fn end_round(&self, tp: &mut TcpSock, acked: u32) {
        let (rtt, base) = (self.rtts.min, self.rtts.base);
        // What the path holds without a queue at this rate, and what is too much.
        let target = (u64::from(tp.snd_cwnd) * u64::from(base) / u64::from(rtt)) as u32;
        let diff = tp.snd_cwnd.wrapping_mul(rtt.wrapping_sub(base)) / base;
        if tp.in_slow_start() {
            if diff > self.gamma {
                tp.snd_cwnd = tp.snd_cwnd.min(target + 1);
                tp.snd_ssthresh = tp.snd_ssthresh.min(tp.snd_cwnd);
            } else {
                tp.slow_start(acked);
            }
        } else if diff > self.beta {
            tp.snd_cwnd -= 1;
            tp.snd_ssthresh = tp.snd_ssthresh.min(tp.snd_cwnd);
        } else if diff < self.alpha {
            tp.snd_cwnd += 1;
        }
        tp.snd_cwnd = tp.snd_cwnd.max(2).min(tp.snd_cwnd_clamp);
        tp.snd_ssthresh = tp.current_ssthresh();
    }
}

impl CongestionControl for Vegas {
    fn init(&mut self, tp: &mut TcpSock) {
        self.rtts.init(tp);
    }

    fn ssthresh(&mut self, tp: &mut TcpSock) -> u32 {
        Reno::half(tp)
    }

    /// Between the ends of rounds only slow start grows; whether the window was the limit is not asked.
    /// Source: Linux 7.3 `tcp_vegas_cong_avoid`.
    fn cong_avoid(&mut self, tp: &mut TcpSock, acked: u32) {
        if !self.rtts.doing_now {
            Reno::grow(tp, acked);
        } else if tp.snd_una > self.rtts.beg_snd_nxt {
            self.rtts.beg_snd_nxt = tp.snd_nxt;
            // With up to two samples all ACKs may have been delayed.
            if self.rtts.cnt <= 2 {
                Reno::grow(tp, acked);
            } else {
                self.end_round(tp, acked);
            }
            self.rtts.new_round();
        } else if tp.in_slow_start() {
            tp.slow_start(acked);
        }
    }

    fn pkts_acked(&mut self, _tp: &mut TcpSock, _acked: u32, rtt_us: Option<u64>) {
        self.rtts.sample(rtt_us);
    }

    fn set_state(&mut self, tp: &mut TcpSock, state: CaState) {
        self.rtts.set_state(tp, state);
    }

    fn cwnd_event(&mut self, tp: &mut TcpSock, event: CaEvent) {
        self.rtts.event(tp, event);
    }

    fn trace(&self) -> Vec<(&'static str, f64)> {
        self.rtts.trace().to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::sock::INFINITE_SSTHRESH;

    fn vegas(text: &str, cwnd: u32, ssthresh: u32) -> (Vegas, TcpSock) {
        let Ok(mut vegas) = Vegas::parse(&mut CcWords::new(text), CcEnv::default()) else {
            panic!("'{text}' was refused")
        };
        let mut tp = TcpSock::new(1000, 1000);
        (tp.snd_cwnd, tp.snd_ssthresh) = (cwnd, ssthresh);
        vegas.init(&mut tp);
        (vegas, tp)
    }

    /// Samples of `rtts` microseconds, then the ACK that ends the round, of one packet.
    fn round(vegas: &mut Vegas, tp: &mut TcpSock, rtts: &[u64]) -> u32 {
        for rtt in rtts {
            vegas.pkts_acked(tp, 1, Some(*rtt));
        }
        tp.snd_una = tp.snd_nxt + 1000;
        tp.snd_nxt = tp.snd_una;
        vegas.cong_avoid(tp, 1);
        tp.snd_cwnd
    }

    #[test]
    fn the_window_moves_by_one_packet_out_of_the_range() {
        // 100 packets of which (rtt - 10 ms) / 10 ms are queued: 1, 2, 4 and 5 of them (1 us is added to both).
        for (rtt, expected) in [(10_150, 101), (10_250, 100), (10_450, 100), (10_550, 99)] {
            let (mut vegas, mut tp) = vegas("vegas", 100, 50);
            vegas.pkts_acked(&mut tp, 1, Some(9_999));
            vegas.rtts.new_round();
            assert_eq!(round(&mut vegas, &mut tp, &[rtt, rtt + 900, rtt + 300]), expected, "{rtt}");
        }
        let (mut wide, mut tp) = vegas("vegas alpha 1 beta 8", 100, 50);
        wide.pkts_acked(&mut tp, 1, Some(9_999));
        wide.rtts.new_round();
        assert_eq!(round(&mut wide, &mut tp, &[10_550; 3]), 100);
    }

    #[test]
    fn slow_start_ends_at_the_rate_times_the_least_rtt() {
        let (mut vegas, mut tp) = vegas("vegas", 40, INFINITE_SSTHRESH);
        assert_eq!(round(&mut vegas, &mut tp, &[9_999; 3]), 41, "no queue: slow start");
        // 41 * 2000 / 10000 = 8 packets are queued: 41 * 10000 / 12000 + 1 = 35; then 3/4 of it is less than that.
        assert_eq!(round(&mut vegas, &mut tp, &[11_999; 3]), 35);
        assert_eq!(tp.snd_ssthresh, 35);
    }

    #[test]
    fn a_smaller_window_takes_ssthresh_along_and_three_quarters_are_kept() {
        let (mut vegas, mut tp) = vegas("vegas", 100, 100);
        vegas.pkts_acked(&mut tp, 1, Some(9_999));
        assert_eq!(round(&mut vegas, &mut tp, &[20_000; 3]), 101, "the sample of 10 ms counts in its round");
        tp.snd_ssthresh = 20;
        assert_eq!(round(&mut vegas, &mut tp, &[20_000; 3]), 100);
        // 100 / 2 + 100 / 4
        assert_eq!(tp.snd_ssthresh, 75);
    }

    #[test]
    fn within_a_round_only_slow_start_grows() {
        let (mut vegas, mut tp) = vegas("vegas", 10, 12);
        vegas.rtts.beg_snd_nxt = 5_000;
        tp.snd_nxt = 5_000;
        vegas.cong_avoid(&mut tp, 2);
        assert_eq!(tp.snd_cwnd, 12);
        tp.is_cwnd_limited = true;
        vegas.cong_avoid(&mut tp, 100);
        assert_eq!(tp.snd_cwnd, 12);
        // Two samples are too few: Reno's growth, which asks whether the window was the limit.
        assert_eq!(round(&mut vegas, &mut tp, &[10_000; 2]), 12);
        tp.snd_cwnd_cnt = 11;
        assert_eq!(round(&mut vegas, &mut tp, &[10_000; 2]), 13);
    }

    #[test]
    fn outside_of_open_it_is_reno_and_a_start_forgets_the_least_rtt() {
        let (mut vegas, mut tp) = vegas("vegas", 10, 10);
        tp.is_cwnd_limited = true;
        vegas.pkts_acked(&mut tp, 1, Some(10_000));
        vegas.set_state(&mut tp, CaState::Disorder);
        vegas.cong_avoid(&mut tp, 10);
        assert_eq!((tp.snd_cwnd, vegas.rtts.base), (11, 10_001));
        vegas.set_state(&mut tp, CaState::Open);
        assert_eq!((vegas.rtts.cnt, vegas.rtts.base), (0, 10_001));
        vegas.cwnd_event(&mut tp, CaEvent::TxStart);
        assert_eq!(vegas.rtts.base, NO_RTT);
        assert_eq!(vegas.ssthresh(&mut tp), 5);
    }
}
