//! How growth depended on the RTT in the Prague of 2020 and 2021. Part of [`super::prague_2020`]; [`super::prague`] has the same forms in finer units.
//!
//! A flow can imitate the rate of one with a longer, virtual RTT: it then grows less per real RTT, and
//! reduces and updates alpha once per virtual one.
//!
//! Source: L4STeam/linux `net/ipv4/tcp_prague.c`, April and August 2020 (`RTT_CONTROL_…`).
//!
//! Parameters: those of [`super::prague_2020`] whose names begin with `rtt`.
//!
//! Departures: none known. With `scalable` only growth is scaled, not the time between reductions.
//!
//! Validation: the tests below and in [`super::prague_2020`].

use super::CcError;
use crate::base::units::Time;
use crate::cc::sock::TcpSock;
use bakeoff_document::cc::CcWords;

/// One packet per RTT, in the units of [`RttScaling::ai`].
const ONE: u64 = 1 << 20;
/// RTTs are counted in units of 128 us.
const RTT_UNIT_SHIFT: u32 = 7;
/// RTTs beyond this are not scaled, in microseconds.
const MAX_SCALED_RTT_US: u64 = 100_000;
/// R0 of `scalable`, 16.4 ms, in units of 128 us.
const R0: u64 = 16_384 >> RTT_UNIT_SHIFT;
/// R1 of `scalable`, 1.5 ms.
const R1: u64 = 1_536 >> RTT_UNIT_SHIFT;

/// `RTT_CONTROL_…`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One packet per RTT.
    None,
    /// The rate of a flow with the target RTT.
    Rate,
    /// (R0/8 + RTT - R1, at most R0 beyond R0/8) * RTT / R0^2 packets per RTT.
    Scalable,
    /// The rate of a flow with the target RTT on top of its own.
    Additive,
}

impl Mode {
    /// The value of `rtt_scaling`.
    pub(super) fn parse(words: &mut CcWords) -> Result<Self, CcError> {
        Ok(match words.one_of(&["none", "rate", "scalable", "additive"])? {
            "rate" => Mode::Rate,
            "scalable" => Mode::Scalable,
            "additive" => Mode::Additive,
            _ => Mode::None,
        })
    }
}

/// Parameters, and the one thing that is counted.
#[derive(Clone, Debug)]
pub struct RttScaling {
    /// `rtt_scaling`
    pub mode: Mode,
    /// `rtt_target`
    pub target: Time,
    /// `rtt_transition`
    pub transition: u32,
    /// Rounds out of slow start.
    round: u32,
}

impl RttScaling {
    /// At the start of a connection.
    pub fn new(mode: Mode, target: Time, transition: u32) -> Self {
        RttScaling { mode, target, transition, round: 0 }
    }

    /// The value of one of the parameters `rtt_scaling`, `rtt_target`, `rtt_transition`.
    pub fn parse(&mut self, parameter: &str, words: &mut CcWords) -> Result<(), CcError> {
        match parameter {
            "rtt_scaling" => self.mode = Mode::parse(words)?,
            "rtt_target" => self.target = words.time(Time::from_us(128), Time::from_ms(1_000))?,
            _ => self.transition = words.number(0..=u32::MAX)?,
        }
        Ok(())
    }

    /// A round is over.
    pub fn on_round(&mut self, tp: &TcpSock) {
        if !tp.in_slow_start() {
            self.round = self.round.saturating_add(1);
        }
    }

    /// Whether a virtual RTT has passed since `stamp`; always true when there is none.
    pub fn passed_since(&self, tp: &TcpSock, stamp: Option<Time>) -> bool {
        let target = match self.mode {
            Mode::Rate => self.target,
            Mode::Additive => self.target + Time::from_us(tp.srtt_us >> 3),
            Mode::None | Mode::Scalable => return true,
        };
        !self.is_active(tp) || stamp.is_none_or(|stamp| tp.now - stamp >= target)
    }

    /// Growth per window of ACKs, in 2^-20 packets.
    pub fn ai(&self, tp: &TcpSock) -> u64 {
        if !self.is_active(tp) {
            return ONE;
        }
        let rtt = tp.srtt_us >> (3 + RTT_UNIT_SHIFT);
        let mut target = self.target.as_us() >> RTT_UNIT_SHIFT;
        match self.mode {
            Mode::None => return ONE,
            Mode::Scalable => {
                let slope = R0 / 8 + rtt.saturating_sub(R1).min(R0);
                return slope * rtt * ONE / (R0 * R0);
            }
            Mode::Rate => {}
            Mode::Additive => target += rtt,
        }
        if rtt >= target {
            return ONE;
        }
        let square = target * target;
        (rtt * rtt * ONE + square / 2) / square
    }

    fn is_active(&self, tp: &TcpSock) -> bool {
        self.mode != Mode::None
            && !tp.in_slow_start()
            && self.round >= self.transition
            && tp.srtt_us >> 3 <= MAX_SCALED_RTT_US
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Active, in congestion avoidance.
    fn active(mode: Mode, target_ms: u64) -> (RttScaling, TcpSock) {
        let scaling = RttScaling { mode, target: Time::from_ms(target_ms), transition: 100, round: 100 };
        let mut tp = TcpSock::new(1448, 250);
        tp.snd_ssthresh = tp.snd_cwnd;
        (scaling, tp)
    }

    #[test]
    fn rate_grows_with_the_square_of_the_rtt() {
        let (scaling, mut tp) = active(Mode::Rate, 25);
        for (rtt_ms, factor) in [(5, 0.04), (10, 0.16), (15, 0.36), (20, 0.64), (25, 1.0)] {
            tp.srtt_us = (rtt_ms * 1000) << 3;
            let ai = scaling.ai(&tp) as f64 / ONE as f64;
            // in whole units of 128 us: multiples of 39 over 195, so that the ratio is exact
            assert!((ai - factor).abs() < 1e-6, "{rtt_ms} ms: {ai}");
        }
    }

    #[test]
    fn neither_early_nor_in_slow_start_nor_beyond_100_ms() {
        let (mut scaling, mut tp) = active(Mode::Rate, 200);
        tp.srtt_us = 100_000 << 3;
        // 781 over 1562 units of 128 us
        assert_eq!(scaling.ai(&tp), ONE / 4);
        tp.srtt_us = 100_001 << 3;
        assert_eq!(scaling.ai(&tp), ONE);
        tp.srtt_us = 100_000 << 3;
        tp.snd_ssthresh = tp.snd_cwnd + 1;
        assert_eq!(scaling.ai(&tp), ONE);
        scaling.round = 99;
        scaling.on_round(&tp);
        tp.snd_ssthresh = tp.snd_cwnd;
        assert_eq!(scaling.ai(&tp), ONE);
        scaling.on_round(&tp);
        assert_eq!(scaling.ai(&tp), ONE / 4);
    }

    #[test]
    fn additive_and_scalable() {
        // additive, 15 ms over 15 + 15 ms (117 units each): 1/4
        let (scaling, mut tp) = active(Mode::Additive, 15);
        tp.srtt_us = 15_000 << 3;
        assert_eq!(scaling.ai(&tp), ONE / 4);
        // scalable: (16 + 117 - 12) * 117 / 128^2
        let (scaling, _) = active(Mode::Scalable, 15);
        assert_eq!(scaling.ai(&tp), 121 * 117 * ONE / 16_384);
        // beyond R0 + R1 the slope is 9/8 R0
        tp.srtt_us = 50_000 << 3;
        assert_eq!(scaling.ai(&tp), 144 * 390 * ONE / 16_384);
    }

    #[test]
    fn a_virtual_rtt_is_the_target_or_the_target_and_the_own_one() {
        for (mode, virtual_ms) in
            [(Mode::None, 0), (Mode::Scalable, 0), (Mode::Rate, 25), (Mode::Additive, 30)]
        {
            let (scaling, mut tp) = active(mode, 25);
            tp.srtt_us = 5_000 << 3;
            let stamp = Time::from_ms(1000);
            for ms in [0, 24, 25, 29, 30] {
                tp.now = stamp + Time::from_ms(ms);
                let passed = scaling.passed_since(&tp, Some(stamp));
                assert_eq!(passed, ms >= virtual_ms, "{mode:?} {ms}");
            }
            assert!(scaling.passed_since(&tp, None));
        }
    }
}
