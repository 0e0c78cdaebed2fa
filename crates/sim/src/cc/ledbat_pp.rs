//! `ledbat++`: background transport that steers the queueing delay, by the RTT, to a target of 60 ms, and lowers its window
//! to two packets now and then so that it measures the path without its own queue.
//!
//! Source: draft-irtf-iccrg-ledbat-plus-plus-01 as its implementations have it (a Linux module by Qian Li, ns-3); the draft's
//! text was not at hand. Base and current delay, first and least window as in [`super::ledbat`]. The window has a fraction of
//! 1/65536 packet.
//!
//! | parameter | default | meaning |
//! |---|---|---|
//! | `target` | 60ms | queueing delay, 1ms to 1s |
//! | `slowdown` | 1 | whether it slows down now and then |
//!
//! Departures: the window moves once per RTT and not with every ACK; losses and echoes are answered by Linux's state machine
//! with proportional rate reduction; a loss in a slowdown halves the window that it goes back to.
//!
//! Validation: the tests below, `tests/cc_hooks.rs`.

use super::ledbat::{Delays, FRACTION, MIN_CWND};
use super::reno::Reno;
use super::{CcEnv, CcError, CongestionControl};
use crate::base::units::Time;
use crate::cc::sock::TcpSock;
use bakeoff_document::cc::CcWords;

/// 1.0 packet.
const ONE: u64 = 1 << FRACTION;

/// What it does besides following the delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The first slow start, which the delay may end.
    Initial,
    /// Nothing until the next slowdown.
    Steady { slowdown_at: Time },
    /// Two packets for two RTTs; then back to `goal`.
    Hold { since: Time, until: Time, goal: u32 },
    /// Slow start after it.
    Regain { since: Time },
}

/// Parameters and state.
pub struct LedbatPp {
    target_us: u64,
    slowdown: bool,
    /// RTTs in microseconds.
    delays: Delays,
    /// Of a packet, in 1/65536.
    fraction: u64,
    /// An ACK of this ends the RTT.
    round_end: u64,
    phase: Phase,
}

/// Two RTTs.
fn two_rtts(tp: &TcpSock) -> Time {
    Time::from_us(tp.srtt_us / 4)
}

impl LedbatPp {
    /// From the words after the name.
    pub fn parse(words: &mut CcWords, _: CcEnv) -> Result<Self, CcError> {
        let mut c = LedbatPp {
            target_us: 60_000,
            slowdown: true,
            delays: Delays::new(),
            fraction: 0,
            round_end: 0,
            phase: Phase::Initial,
        };
        while let Some(parameter) = words.parameter(&["target", "slowdown"])? {
            match parameter {
                "target" => c.target_us = words.time(Time::from_ms(1), Time::from_ms(1000))?.as_us(),
                _ => c.slowdown = words.flag()?,
            }
        }
        Ok(c)
    }

    /// 1/GAIN: 1 to 16, more on short paths.
    fn inverse_gain(&self) -> u64 {
        let Some(base) = self.delays.base() else { return 16 };
        (2 * self.target_us).div_ceil(base.max(1)).clamp(1, 16)
    }

    fn new_round(&mut self, tp: &TcpSock) {
        self.round_end = tp.snd_nxt;
    }

    /// The first slow start is over: the first slowdown is two RTTs away.
    fn end_initial(&mut self, tp: &TcpSock) {
        self.phase = Phase::Steady { slowdown_at: tp.now + two_rtts(tp) };
        self.new_round(tp);
    }

    /// GAIN packets per packet, up to ssthresh.
    fn slow_start(&mut self, tp: &mut TcpSock, acked: u32) {
        self.fraction += u64::from(acked) * ONE / self.inverse_gain();
        let left = tp.slow_start((self.fraction >> FRACTION) as u32);
        self.fraction = if left > 0 { 0 } else { self.fraction % ONE };
    }

    /// Once per RTT.
    fn avoid(&mut self, tp: &mut TcpSock) {
        let Some(queue) = self.delays.queue() else { return };
        let cwnd = (u64::from(tp.snd_cwnd) << FRACTION) + self.fraction;
        let gain = ONE / self.inverse_gain();
        let above = queue.saturating_sub(self.target_us);
        let cut = cwnd.saturating_mul(above) / self.target_us;
        let cwnd =
            (cwnd + gain).saturating_sub(cut).max(cwnd - cwnd / 2).max(u64::from(MIN_CWND) << FRACTION);
        tp.snd_cwnd = ((cwnd >> FRACTION) as u32).min(tp.snd_cwnd_clamp);
        self.fraction = cwnd % ONE;
    }

    fn begin_slowdown(&mut self, tp: &mut TcpSock) {
        let goal = tp.snd_cwnd.max(MIN_CWND);
        self.phase = Phase::Hold { since: tp.now, until: tp.now + two_rtts(tp), goal };
        tp.snd_ssthresh = goal;
        tp.snd_cwnd = MIN_CWND;
        self.fraction = 0;
    }
}

impl CongestionControl for LedbatPp {
    fn init(&mut self, tp: &mut TcpSock) {
        tp.snd_cwnd = MIN_CWND;
        self.new_round(tp);
    }

    /// A half.
    fn ssthresh(&mut self, tp: &mut TcpSock) -> u32 {
        self.fraction = 0;
        match &mut self.phase {
            Phase::Initial => self.end_initial(tp),
            Phase::Hold { goal, .. } => *goal = (*goal / 2).max(MIN_CWND),
            Phase::Steady { .. } | Phase::Regain { .. } => {}
        }
        Reno::half(tp)
    }

    fn cong_avoid(&mut self, tp: &mut TcpSock, acked: u32) {
        if !tp.cwnd_limited() {
            return;
        }
        if let Phase::Hold { since, until, goal } = self.phase {
            if tp.now < until {
                return;
            }
            tp.snd_ssthresh = goal;
            self.phase = Phase::Regain { since };
        }
        if tp.in_slow_start() {
            let early = self.delays.queue().is_some_and(|queue| queue > self.target_us * 3 / 4);
            if self.phase == Phase::Initial && early {
                tp.snd_ssthresh = tp.snd_cwnd;
            } else {
                self.slow_start(tp, acked);
            }
            if tp.in_slow_start() {
                return;
            }
        }
        match self.phase {
            Phase::Initial => self.end_initial(tp),
            Phase::Regain { since } => {
                // A tenth of the time at most is spent slowly.
                let took = (tp.now - since).as_ns();
                self.phase = Phase::Steady { slowdown_at: tp.now + Time::from_ns(took.saturating_mul(9)) };
                self.new_round(tp);
            }
            Phase::Steady { slowdown_at } if self.slowdown && tp.now >= slowdown_at => {
                self.begin_slowdown(tp);
            }
            Phase::Steady { .. } | Phase::Hold { .. } => {
                if tp.snd_una >= self.round_end {
                    self.new_round(tp);
                    self.avoid(tp);
                }
            }
        }
    }

    fn pkts_acked(&mut self, tp: &mut TcpSock, _acked: u32, rtt_us: Option<u64>) {
        if let Some(rtt_us) = rtt_us {
            self.delays.sample(tp.now, rtt_us);
        }
    }

    fn trace(&self) -> Vec<(&'static str, f64)> {
        let slow = matches!(self.phase, Phase::Hold { .. } | Phase::Regain { .. });
        vec![
            ("base_rtt_us", self.delays.base().unwrap_or(0) as f64),
            ("queue_delay_us", self.delays.queue().unwrap_or(0) as f64),
            ("inverse_gain", self.inverse_gain() as f64),
            ("slowdown", f64::from(u8::from(slow))),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledbat(text: &str, base_ms: u64) -> (LedbatPp, TcpSock) {
        let Ok(mut c) = LedbatPp::parse(&mut CcWords::new(text), CcEnv::default()) else {
            panic!("'{text}' was refused")
        };
        let mut tp = TcpSock::new(1448, 1000);
        tp.is_cwnd_limited = true;
        tp.srtt_us = base_ms * 8000;
        c.init(&mut tp);
        assert_eq!(tp.snd_cwnd, 2);
        c.pkts_acked(&mut tp, 1, Some(base_ms * 1000));
        (c, tp)
    }

    /// The last four RTTs have this queueing delay.
    fn queue(c: &mut LedbatPp, tp: &mut TcpSock, ms: u64) {
        for _ in 0..4 {
            let base = c.delays.base().unwrap();
            c.pkts_acked(tp, 1, Some(base + ms * 1000));
        }
    }

    #[test]
    fn the_gain_by_the_base_delay() {
        for (base_ms, n) in [(5, 16), (8, 15), (10, 12), (20, 6), (40, 3), (60, 2), (120, 1), (200, 1)] {
            assert_eq!(ledbat("ledbat++", base_ms).0.inverse_gain(), n, "{base_ms}");
        }
        // 2 * 20 / 10
        assert_eq!(ledbat("ledbat++ target 20ms", 10).0.inverse_gain(), 4);
    }

    #[test]
    fn the_window_moves_once_per_rtt_by_the_delay() {
        for (base_ms, queue_ms, expected) in [
            (20, 30, 50.0 + 1.0 / 6.0),
            (20, 60, 50.0 + 1.0 / 6.0),
            (20, 66, 50.0 + 1.0 / 6.0 - 5.0),
            (20, 120, 25.0),
            (20, 500, 25.0),
            (120, 90, 26.0),
        ] {
            let (mut c, mut tp) = ledbat("ledbat++", base_ms);
            (tp.snd_cwnd, tp.snd_ssthresh) = (50, 2);
            c.phase = Phase::Steady { slowdown_at: Time::from_ms(1_000_000) };
            queue(&mut c, &mut tp, queue_ms);
            tp.snd_nxt = 72_400;
            c.cong_avoid(&mut tp, 1);
            let window = f64::from(tp.snd_cwnd) + c.fraction as f64 / 65536.0;
            assert!((window - expected).abs() < 0.001, "{base_ms} {queue_ms}: {window}");
            c.cong_avoid(&mut tp, 1);
            assert_eq!(u64::from(tp.snd_cwnd), window as u64, "the RTT is not over");
        }
        let (mut c, mut tp) = ledbat("ledbat++", 20);
        (tp.snd_cwnd, tp.snd_ssthresh) = (3, 2);
        c.phase = Phase::Steady { slowdown_at: Time::from_ms(1_000_000) };
        queue(&mut c, &mut tp, 500);
        c.cong_avoid(&mut tp, 1);
        assert_eq!(tp.snd_cwnd, 2, "never below two");
    }

    #[test]
    fn slow_start_grows_by_the_gain_and_the_first_ends_by_the_delay() {
        let (mut c, mut tp) = ledbat("ledbat++", 20);
        // a sixth of 13, 2 and 1/6; then 11/6 more: 2 + 4
        c.cong_avoid(&mut tp, 13);
        assert_eq!((tp.snd_cwnd, c.fraction), (4, 10_922));
        c.cong_avoid(&mut tp, 12);
        assert_eq!(tp.snd_cwnd, 6);
        queue(&mut c, &mut tp, 45);
        c.cong_avoid(&mut tp, 6);
        assert_eq!(tp.snd_cwnd, 7, "45 ms are not more than three quarters");
        queue(&mut c, &mut tp, 46);
        tp.now = Time::from_ms(1000);
        c.cong_avoid(&mut tp, 6);
        assert_eq!((tp.snd_cwnd, tp.snd_ssthresh), (7, 7));
        assert_eq!(c.phase, Phase::Steady { slowdown_at: Time::from_ms(1040) });
    }

    #[test]
    fn a_slowdown_is_two_rtts_of_two_packets_and_the_next_comes_after_nine_times_its_length() {
        let (mut c, mut tp) = ledbat("ledbat++", 120);
        (tp.snd_cwnd, tp.snd_ssthresh) = (50, 2);
        c.phase = Phase::Steady { slowdown_at: Time::from_ms(10_000) };
        tp.now = Time::from_ms(10_000);
        c.cong_avoid(&mut tp, 1);
        assert_eq!((tp.snd_cwnd, tp.snd_ssthresh), (2, 50));
        tp.now = Time::from_ms(10_239);
        c.cong_avoid(&mut tp, 2);
        assert_eq!(tp.snd_cwnd, 2);
        tp.now = Time::from_ms(10_240);
        c.cong_avoid(&mut tp, 2);
        assert_eq!(tp.snd_cwnd, 4);
        tp.now = Time::from_ms(11_200);
        c.cong_avoid(&mut tp, 46);
        assert_eq!((tp.snd_cwnd, c.fraction), (50, 0));
        // 11.2 s + 9 * 1.2 s
        assert_eq!(c.phase, Phase::Steady { slowdown_at: Time::from_ms(22_000) });
    }

    #[test]
    fn a_slowdown_is_a_choice() {
        let (mut c, mut tp) = ledbat("ledbat++ slowdown 0", 120);
        (tp.snd_cwnd, tp.snd_ssthresh) = (50, 2);
        c.phase = Phase::Steady { slowdown_at: Time::ZERO };
        c.cong_avoid(&mut tp, 1);
        assert_eq!(tp.snd_cwnd, 51);
    }

    #[test]
    fn a_loss_halves_also_the_window_that_a_slowdown_goes_back_to() {
        let (mut c, mut tp) = ledbat("ledbat++", 100);
        tp.snd_cwnd = 51;
        assert_eq!(c.ssthresh(&mut tp), 25);
        assert_eq!(c.phase, Phase::Steady { slowdown_at: Time::from_ms(200) });
        c.begin_slowdown(&mut tp);
        tp.snd_ssthresh = c.ssthresh(&mut tp);
        assert_eq!(tp.snd_ssthresh, 2);
        tp.now = Time::from_ms(200);
        c.cong_avoid(&mut tp, 2);
        // 1/GAIN is 2 of 60 ms * 2 / 100 ms
        assert_eq!((tp.snd_cwnd, tp.snd_ssthresh), (3, 25));
    }
}
