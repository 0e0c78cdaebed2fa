//! PROBE_BW: down, cruise, refill, up. Part of [`super::Bbr3`].
//!
//! Source: see [`super`].
//!
//! Departures, validation: see [`super`]; the tests below.

use super::{Bbr3, Mode, NONE, Rules};
use crate::base::units::Time;
use crate::cc::RateSample;
use crate::cc::bandwidth::UNIT;
use crate::cc::sock::{CaState, TcpSock};

/// Wait between probes: 2 s and up to 1 s more.
const WAIT_US: u64 = 2_000_000;
const RANDOM_WAIT_US: u32 = 1_000_000;
/// Or at most this many rounds, less up to one.
const MAX_ROUNDS: u32 = 63;
const RANDOM_ROUNDS: u32 = 2;
/// Version 2: a probe is over when so much of the BDP is in flight.
const PROBE_INFLIGHT_GAIN: u64 = UNIT * 5 / 4;
/// When marks cease without loss, a probe begins with this part of `inflight_hi` per round.
const REPROBE_GAIN: u64 = UNIT / 2;

/// The phases of a cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// 1.25: more than the estimate.
    Up,
    /// 0.91, 0.9 or 0.75: what the probe queued drains.
    #[default]
    Down,
    /// 1: most of the time.
    Cruise,
    /// 1, without the short-term bounds, for a round.
    Refill,
}

/// What the ACKs that arrive tell of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Acks {
    /// Of no probe.
    #[default]
    Init,
    /// Of the time before one.
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// The state of a cycle.
#[derive(Default)]
pub struct Cycle {
    pub phase: Phase,
    pub acks: Acks,
    start: Time,
    wait_us: u64,
    pub rounds_since_probe: u32,
    /// Whether samples come from a probe, and it has not gone too far yet.
    pub probe_samples: bool,
    pub prev_probe_too_high: bool,
    stopped_risky_probe: bool,
    up_rounds: u32,
    pub up_acks: u32,
    /// Packets ACKed per packet by which `inflight_hi` rises.
    up_count: u32,
}

impl Cycle {
    /// The pacing gain of the phase.
    pub fn gain(&self, rules: &Rules) -> u64 {
        match self.phase {
            Phase::Up => UNIT * 5 / 4,
            Phase::Down => rules.down_gain,
            Phase::Cruise | Phase::Refill => UNIT,
        }
    }

    /// Source: draft-ietf-ccwg-bbr, BBRRaiseInflightLongtermSlope.
    fn raise_slope(&mut self, cwnd: u32) {
        let growth = 1 << self.up_rounds;
        self.up_rounds = (self.up_rounds + 1).min(30);
        self.up_count = (cwnd / growth).max(1);
    }
}

impl Bbr3 {
    pub(super) fn is_probing_up(&self) -> bool {
        self.mode == Mode::ProbeBw && self.cycle.phase == Phase::Up
    }

    pub(super) fn is_cruising(&self) -> bool {
        self.mode == Mode::ProbeBw && self.cycle.phase == Phase::Cruise
    }

    /// Whether a probe or its preparation is under way.
    pub(super) fn cycle_probes(&self) -> bool {
        self.mode == Mode::ProbeBw && matches!(self.cycle.phase, Phase::Refill | Phase::Up)
    }

    /// Source: draft-ietf-ccwg-bbr, BBRStartProbeBW_DOWN.
    pub(super) fn start_down(&mut self, tp: &TcpSock) {
        self.bounds.reset_signals();
        self.cycle.up_count = NONE;
        self.cycle.rounds_since_probe = self.rng.below(RANDOM_ROUNDS);
        self.cycle.wait_us = WAIT_US + u64::from(self.rng.below(RANDOM_WAIT_US));
        self.cycle.start = tp.delivered_mstamp;
        self.cycle.acks = Acks::ProbeStopping;
        self.next_round_delivered = tp.delivered;
        self.cycle.phase = Phase::Down;
    }

    /// Source: draft-ietf-ccwg-bbr, BBRStartProbeBW_CRUISE.
    pub(super) fn start_cruise(&mut self) {
        if self.rules.cruise_lowers && self.bounds.inflight_lo != NONE {
            self.bounds.inflight_lo = self.bounds.inflight_lo.min(self.bounds.inflight_hi);
        }
        self.cycle.phase = Phase::Cruise;
    }

    /// Source: draft-ietf-ccwg-bbr, BBRStartProbeBW_REFILL.
    pub(super) fn start_refill(&mut self, tp: &TcpSock, up_rounds: u32) {
        self.bounds.reset_lower();
        self.cycle.up_rounds = up_rounds;
        self.cycle.up_acks = 0;
        self.cycle.stopped_risky_probe = false;
        self.cycle.acks = Acks::Refilling;
        self.next_round_delivered = tp.delivered;
        self.cycle.phase = Phase::Refill;
    }

    /// Source: draft-ietf-ccwg-bbr, BBRStartProbeBW_UP.
    fn start_up(&mut self, tp: &TcpSock) {
        self.cycle.probe_samples = true;
        self.cycle.acks = Acks::ProbeStarting;
        self.next_round_delivered = tp.delivered;
        self.cycle.start = tp.now;
        if !self.rules.probes_to_inflight {
            self.reset_full_bw(self.sample_bw);
        }
        self.cycle.phase = Phase::Up;
        self.cycle.raise_slope(tp.snd_cwnd);
    }

    /// `inflight_hi` rises ever faster while it is what limits.
    /// Source: draft-ietf-ccwg-bbr, BBRProbeInflightLongtermUpward.
    pub(super) fn raise_inflight_hi(&mut self, tp: &TcpSock, acked: u32) {
        if !tp.is_cwnd_limited || tp.snd_cwnd < self.bounds.inflight_hi {
            if !self.rules.credit_lasts {
                self.cycle.up_acks = 0;
            }
            return;
        }
        let cycle = &mut self.cycle;
        cycle.up_acks = cycle.up_acks.saturating_add(acked);
        let delta = cycle.up_acks / cycle.up_count;
        cycle.up_acks -= delta * cycle.up_count;
        self.bounds.inflight_hi = self.bounds.inflight_hi.saturating_add(delta);
        if self.round_start {
            cycle.raise_slope(tp.snd_cwnd);
        }
    }

    /// The end of a probe's samples; true if that began the next one.
    fn advance_acks(&mut self, tp: &TcpSock, sample: &RateSample) -> bool {
        if !self.round_start {
            return false;
        }
        match self.cycle.acks {
            Acks::ProbeStarting => self.cycle.acks = Acks::ProbeFeedback,
            Acks::ProbeStopping => {
                self.cycle.probe_samples = false;
                self.cycle.acks = Acks::Init;
                if self.mode != Mode::ProbeBw {
                    return false;
                }
                if !sample.is_app_limited {
                    self.bounds.advance_max_bw();
                }
                // It stopped at the bound for caution, and nothing was lost there: go on from it.
                if self.cycle.stopped_risky_probe && !self.cycle.prev_probe_too_high {
                    self.start_refill(tp, 0);
                    return true;
                }
            }
            Acks::Init | Acks::Refilling | Acks::ProbeFeedback => {}
        }
        false
    }

    /// `bbr_update_cycle_phase`
    /// Source: draft-ietf-ccwg-bbr, BBRUpdateProbeBWCyclePhase.
    pub(super) fn update_cycle(&mut self, tp: &TcpSock, sample: &RateSample) {
        if !self.full_bw_reached || self.advance_acks(tp, sample) {
            return;
        }
        self.adapt_upper(tp, sample);
        if self.mode != Mode::ProbeBw {
            return;
        }
        let in_flight = self.in_flight(tp, sample.prior_in_flight);
        match self.cycle.phase {
            Phase::Cruise => {
                self.probe_if_time(tp);
            }
            Phase::Refill => {
                if self.round_start {
                    self.start_up(tp);
                }
            }
            Phase::Up => {
                if self.probe_is_over(tp, in_flight) {
                    self.cycle.prev_probe_too_high = false;
                    self.start_down(tp);
                }
            }
            Phase::Down => {
                if !self.probe_if_time(tp)
                    && in_flight <= self.bounds.with_headroom()
                    && in_flight <= self.inflight(tp, self.bounds.max_bw(), UNIT)
                {
                    self.start_cruise();
                }
            }
        }
    }

    fn probe_is_over(&mut self, tp: &TcpSock, in_flight: u32) -> bool {
        if self.cycle.prev_probe_too_high && in_flight >= self.bounds.inflight_hi {
            self.cycle.stopped_risky_probe = true;
            return true;
        }
        if self.rules.probes_to_inflight {
            let drained = tp.now > self.cycle.start + Time::from_us(self.min_rtt_us);
            return drained && in_flight >= self.inflight(tp, self.bounds.max_bw(), PROBE_INFLIGHT_GAIN);
        }
        if tp.is_cwnd_limited && tp.snd_cwnd >= self.bounds.inflight_hi {
            // The bound limits, not the path.
            self.reset_full_bw(self.sample_bw);
            return false;
        }
        self.full_bw_now
    }

    /// `bbr_check_time_to_probe_bw`
    /// Source: draft-ietf-ccwg-bbr, BBRIsTimeToProbeBW.
    fn probe_if_time(&mut self, tp: &TcpSock) -> bool {
        let b = &self.bounds;
        let reprobes = self.rules.marks_by_route && b.ecn_eligible;
        if reprobes && b.ecn_in_cycle && !b.loss_in_cycle && tp.ca_state == CaState::Open {
            let growth = (u64::from(b.inflight_hi) * REPROBE_GAIN) >> 8;
            self.start_refill(tp, growth.max(1).ilog2());
            return true;
        }
        let waited = (tp.now - (self.cycle.start + Time::from_us(self.cycle.wait_us))) > Time::ZERO;
        // A Reno flow regains what a loss cost it in as many rounds as its window has packets.
        let rounds = self.target_inflight(tp).min(MAX_ROUNDS);
        if waited || self.cycle.rounds_since_probe >= rounds {
            self.start_refill(tp, 0);
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Path;
    use super::*;

    #[test]
    fn a_cycle_is_down_cruise_refill_up_and_probes_after_63_rounds_or_3_seconds() {
        let mut path = Path::cruising();
        let mut phases = vec![(0, path.bbr.cycle.phase)];
        for _ in 0..400 {
            path.ack(10_000, 25, 10, true);
            if phases.last().is_none_or(|p| p.1 != path.bbr.cycle.phase) {
                phases.push((path.tp.now.as_ms(), path.bbr.cycle.phase));
            }
        }
        let order: Vec<_> = phases.iter().map(|p| p.1).collect();
        let expected = [Phase::Cruise, Phase::Refill, Phase::Up, Phase::Down];
        for (i, phase) in order.iter().enumerate() {
            assert_eq!(*phase, expected[i % 4], "{phases:?}");
        }
        // rounds of 10 ms: 63 of them, less the random one
        let refills: Vec<_> = phases.iter().filter(|p| p.1 == Phase::Refill).map(|p| p.0).collect();
        assert!(refills.len() >= 3, "{phases:?}");
        for pair in refills.windows(2) {
            assert!((600..=720).contains(&(pair[1] - pair[0])), "{refills:?}");
        }
    }

    #[test]
    fn with_long_rounds_the_clock_decides() {
        let mut path = Path::cruising();
        let start = path.bbr.cycle.start.as_ms();
        while path.bbr.cycle.phase == Phase::Cruise {
            path.ack(90_000, 200, 10, true);
        }
        let waited = path.tp.now.as_ms() - start;
        assert!((2_000..=3_090).contains(&waited), "{waited}");
    }

    #[test]
    fn the_pipe_is_full_after_three_rounds_without_a_quarter_more() {
        let mut path = Path::probing_up();
        path.tp.packets_out = 250;
        for _ in 0..2 {
            path.ack(20_000, 50, 10, true);
            assert!(path.bbr.is_probing_up());
        }
        path.ack(20_000, 50, 10, true);
        assert_eq!(path.bbr.cycle.phase, Phase::Down);
        assert_eq!(path.bbr.pacing_gain, 232);
    }

    #[test]
    fn the_bound_rises_by_1_2_4_packets_a_round_while_it_limits() {
        let mut path = Path::probing_up();
        path.tp.packets_out = 100;
        path.tp.snd_cwnd = 200;
        path.tp.is_cwnd_limited = true;
        path.bbr.bounds.inflight_hi = 200;
        path.bbr.cycle.up_rounds = 0;
        path.bbr.cycle.raise_slope(200);
        path.bbr.round_start = false;
        let mut risen = Vec::new();
        for _ in 0..3 {
            let before = path.bbr.bounds.inflight_hi;
            path.tp.snd_cwnd = before;
            for _ in 0..100 {
                path.tp.snd_cwnd = path.bbr.bounds.inflight_hi;
                path.bbr.raise_inflight_hi(&path.tp, 2);
            }
            risen.push(path.bbr.bounds.inflight_hi - before);
            path.bbr.cycle.up_acks = 0;
            path.bbr.cycle.raise_slope(200);
        }
        assert_eq!(risen, [1, 2, 4]);
    }
}
