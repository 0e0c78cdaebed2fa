//! `bbr`: congestion control by a model of the path, its bandwidth and its round-trip time (BBR v1).
//!
//! Source: Linux 7.3 `net/ipv4/tcp_bbr.c`; draft-cardwell-iccrg-bbr-congestion-control-00.
//!
//! The bandwidth is the maximum of the delivery rate over 10 rounds, the round-trip time the minimum over 10 s.
//! STARTUP paces at 2/ln 2 of it until three rounds bring less than a quarter more, DRAIN at the inverse until
//! what is in flight fits the path, PROBE_BW in cycles of eight phases of one round-trip time, with gains of 1.25,
//! then 0.75, then six times 1. When 10 s brought no new minimum, PROBE_RTT takes the window to 4 packets for 200 ms and a
//! round. The window is twice the bandwidth-delay product and what ACK aggregation adds. ECN is ignored, and so is loss, but for
//! one round of packet conservation and the detection of policers ([`super::policer`]).
//!
//! Parameters: none. The phase in which PROBE_BW begins is drawn from the run's stream.
//!
//! Departures: bandwidths have 64 bits. Not modelled: nothing known.
//!
//! Validation: the tests below, `tests/bbr_runs.rs` (closed forms over whole runs), the real kernel (`docs/validation/results.md`).

use super::bandwidth::{self, AckAggregation, UNIT, bdp, packets_in_net_at_edt, tso_segs_goal};
use super::max_filter::MaxFilter;
use super::policer::{PolicerDetector, Verdict};
use super::{CaEvent, CcEnv, CcError, CongestionControl, RateSample};
use crate::base::rng::Stream;
use crate::base::units::Time;
use crate::cc::sock::{CaState, INFINITE_SSTHRESH, TcpSock};
use bakeoff_document::cc::CcWords;

/// 2/ln 2, rounded up: the least gain that doubles the rate each round.
const HIGH_GAIN: u64 = UNIT * 2885 / 1000 + 1;
/// Its inverse, rounded down.
const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
const CWND_GAIN: u64 = 2 * UNIT;
/// The phases of PROBE_BW.
const CYCLE: [u64; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// Window of the bandwidth's maximum in rounds.
const BW_ROUNDS: u64 = 10;
/// Window of the minimum of the RTT in seconds.
const MIN_RTT_WINDOW_S: u64 = 10;
const PROBE_RTT_MS: u64 = 200;
/// Least window in packets.
const MIN_CWND: u32 = 4;
/// Growth that keeps STARTUP going, and how many rounds without it end it.
const FULL_BW_THRESHOLD: u64 = UNIT * 5 / 4;
const FULL_BW_ROUNDS: u32 = 3;
/// Window of ACK aggregation in rounds.
const AGGREGATION_ROUNDS: u32 = 5;

/// What the flow is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// The model and the state machine.
pub struct Bbr {
    rng: Stream,
    mode: Mode,
    pacing_gain: u64,
    cwnd_gain: u64,

    max_bw: MaxFilter,
    rounds: u64,
    next_round_delivered: u64,
    round_start: bool,
    policer: PolicerDetector,

    min_rtt_us: u64,
    /// When it was seen, in jiffies.
    min_rtt_stamp: u64,
    /// When PROBE_RTT may end, in jiffies, once in flight is low enough.
    probe_rtt_done: Option<u64>,
    probe_rtt_round_done: bool,

    phase: usize,
    phase_start: Time,
    full_bw: u64,
    full_bw_rounds: u32,
    full_bw_reached: bool,
    idle_restart: bool,

    packet_conservation: bool,
    prev_state: CaState,
    prior_cwnd: u32,
    aggregation: AckAggregation,
}

impl Bbr {
    /// From the words after the name: there are none.
    pub fn parse(words: &mut CcWords, env: CcEnv) -> Result<Self, CcError> {
        words.parameter(&[])?;
        Ok(Bbr::new(env.rng))
    }

    fn new(rng: Stream) -> Self {
        Bbr {
            rng,
            mode: Mode::Startup,
            pacing_gain: UNIT,
            cwnd_gain: UNIT,
            max_bw: MaxFilter::default(),
            rounds: 0,
            next_round_delivered: 0,
            round_start: false,
            policer: PolicerDetector::default(),
            min_rtt_us: u64::MAX,
            min_rtt_stamp: 0,
            probe_rtt_done: None,
            probe_rtt_round_done: false,
            phase: 0,
            phase_start: Time::ZERO,
            full_bw: 0,
            full_bw_rounds: 0,
            full_bw_reached: false,
            idle_restart: false,
            packet_conservation: false,
            prev_state: CaState::Open,
            prior_cwnd: 0,
            aggregation: AckAggregation::default(),
        }
    }

    /// The bandwidth in use.
    fn bw(&self) -> u64 {
        self.policer.bw().unwrap_or_else(|| self.max_bw.get())
    }

    // ---- targets --------------------------------------------------------------------------------

    /// `bbr_quantization_budget`: room for packets of several segments, and for delayed ACKs.
    fn quantize(&self, tp: &TcpSock, cwnd: u32) -> u32 {
        let cwnd = (cwnd + 3 * tso_segs_goal(tp)).next_multiple_of(2);
        // In flight must rise above a small BDP.
        cwnd + if self.mode == Mode::ProbeBw && self.phase == 0 { 2 } else { 0 }
    }

    /// Source: Linux 7.3 `bbr_inflight`.
    fn inflight(&self, tp: &TcpSock, bw: u64, gain: u64) -> u32 {
        self.quantize(tp, bdp(bw, self.min_rtt_us, gain))
    }

    fn in_net_at_edt(&self, tp: &TcpSock, in_flight: u32) -> u32 {
        packets_in_net_at_edt(tp, in_flight, self.bw(), self.pacing_gain, tso_segs_goal(tp))
    }

    // ---- the model ------------------------------------------------------------------------------

    /// Source: Linux 7.3 `bbr_update_bw`.
    fn update_bw(&mut self, tp: &TcpSock, sample: &RateSample) {
        self.round_start = false;
        if sample.interval_us == 0 {
            return;
        }
        if sample.prior_delivered >= self.next_round_delivered {
            self.next_round_delivered = tp.delivered;
            self.rounds += 1;
            self.round_start = true;
            self.packet_conservation = false;
        }
        self.watch_policer(tp, sample.losses, sample.is_app_limited);
        let bw = bandwidth::of(u64::from(sample.delivered), sample.interval_us);
        // An application's pauses tell nothing of the path, unless it carried even more.
        if !sample.is_app_limited || bw >= self.max_bw.get() {
            self.max_bw.update(BW_ROUNDS, self.rounds, bw);
        }
    }

    fn watch_policer(&mut self, tp: &TcpSock, losses: u32, app_limited: bool) {
        let probing = self.mode == Mode::ProbeBw;
        match self.policer.sample(tp, losses, app_limited, self.round_start, probing) {
            Verdict::Nothing => {}
            Verdict::Policed => self.pacing_gain = UNIT,
            Verdict::Over => self.enter_probe_bw(tp),
        }
    }

    /// PROBE_BW begins in any phase but the one that drains. Source: Linux 7.3 `bbr_reset_probe_bw_mode`.
    fn enter_probe_bw(&mut self, tp: &TcpSock) {
        self.mode = Mode::ProbeBw;
        self.phase = CYCLE.len() - 1 - self.rng.below(7) as usize;
        self.next_phase(tp);
    }

    /// Source: Linux 7.3 `bbr_advance_cycle_phase`.
    fn next_phase(&mut self, tp: &TcpSock) {
        self.phase = (self.phase + 1) % CYCLE.len();
        self.phase_start = tp.delivered_mstamp;
    }

    /// `bbr_is_next_cycle_phase`
    fn phase_is_over(&self, tp: &TcpSock, sample: &RateSample) -> bool {
        let is_full_length = tp.delivered_mstamp.us_since(self.phase_start) > self.min_rtt_us;
        if self.pacing_gain == UNIT {
            return is_full_length;
        }
        let in_flight = self.in_net_at_edt(tp, sample.prior_in_flight);
        let bw = self.max_bw.get();
        if self.pacing_gain > UNIT {
            // It takes more than an RTT to fill a short path; a small buffer may not hold it.
            return is_full_length
                && (sample.losses > 0 || in_flight >= self.inflight(tp, bw, self.pacing_gain));
        }
        is_full_length || in_flight <= self.inflight(tp, bw, UNIT)
    }

    /// `bbr_check_full_bw_reached`
    fn check_full(&mut self, sample: &RateSample) {
        if self.full_bw_reached || !self.round_start || sample.is_app_limited {
            return;
        }
        if self.max_bw.get() >= (self.full_bw * FULL_BW_THRESHOLD) >> 8 {
            self.full_bw = self.max_bw.get();
            self.full_bw_rounds = 0;
            return;
        }
        self.full_bw_rounds += 1;
        self.full_bw_reached = self.full_bw_rounds >= FULL_BW_ROUNDS;
    }

    /// Source: Linux 7.3 `bbr_check_drain`.
    fn check_drain(&mut self, tp: &mut TcpSock) {
        if self.mode == Mode::Startup && self.full_bw_reached {
            self.mode = Mode::Drain;
            tp.snd_ssthresh = self.inflight(tp, self.max_bw.get(), UNIT);
        }
        if self.mode == Mode::Drain
            && self.in_net_at_edt(tp, tp.packets_in_flight()) <= self.inflight(tp, self.max_bw.get(), UNIT)
        {
            self.enter_probe_bw(tp);
        }
    }

    /// `bbr_update_min_rtt`, with PROBE_RTT.
    fn update_min_rtt(&mut self, tp: &mut TcpSock, sample: &RateSample) {
        let expired = tp.jiffies() > self.min_rtt_stamp + MIN_RTT_WINDOW_S * tp.hz;
        if let Some(rtt_us) = sample.rtt_us
            && (rtt_us < self.min_rtt_us || (expired && !sample.is_ack_delayed))
        {
            self.min_rtt_us = rtt_us;
            self.min_rtt_stamp = tp.jiffies();
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            // The mode is set already: it keeps the larger one.
            self.save_cwnd(tp);
            self.probe_rtt_done = None;
        }
        if self.mode == Mode::ProbeRtt {
            // The low rate is our own doing.
            tp.mark_app_limited();
            if self.probe_rtt_done.is_some() {
                self.probe_rtt_round_done |= self.round_start;
                if self.probe_rtt_round_done {
                    self.check_probe_rtt_done(tp);
                }
            } else if tp.packets_in_flight() <= MIN_CWND {
                self.probe_rtt_done = Some(tp.jiffies() + (PROBE_RTT_MS * tp.hz).div_ceil(1000));
                self.probe_rtt_round_done = false;
                self.next_round_delivered = tp.delivered;
            }
        }
        if sample.delivered > 0 {
            self.idle_restart = false;
        }
    }

    /// Source: Linux 7.3 `bbr_check_probe_rtt_done`.
    fn check_probe_rtt_done(&mut self, tp: &mut TcpSock) {
        if self.probe_rtt_done.is_none_or(|at| tp.jiffies() <= at) {
            return;
        }
        self.min_rtt_stamp = tp.jiffies();
        tp.snd_cwnd = tp.snd_cwnd.max(self.prior_cwnd);
        if self.full_bw_reached {
            self.enter_probe_bw(tp);
        } else {
            self.mode = Mode::Startup;
        }
    }

    /// Source: Linux 7.3 `bbr_update_gains`.
    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw if self.policer.bw().is_some() => (UNIT, CWND_GAIN),
            Mode::ProbeBw => (CYCLE[self.phase], CWND_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
    }

    // ---- what is controlled ---------------------------------------------------------------------

    /// Source: Linux 7.3 `bbr_set_pacing_rate`.
    fn set_pacing_rate(&self, tp: &mut TcpSock, gain: u64) {
        let rate = bandwidth::pacing_rate(tp, self.bw(), gain);
        if self.full_bw_reached || rate > tp.pacing_rate {
            tp.pacing_rate = rate;
        }
    }

    /// `bbr_set_cwnd`
    fn set_cwnd(&mut self, tp: &mut TcpSock, sample: &RateSample) {
        if sample.acked_sacked > 0 {
            let cwnd = self.recover_or_restore(tp, sample);
            let cwnd = if self.packet_conservation {
                cwnd.max(tp.packets_in_flight() + sample.acked_sacked)
            } else {
                self.approach_target(tp, sample.acked_sacked, cwnd)
            };
            tp.snd_cwnd = cwnd.min(tp.snd_cwnd_clamp);
        }
        if self.mode == Mode::ProbeRtt {
            tp.snd_cwnd = tp.snd_cwnd.min(MIN_CWND);
        }
    }

    /// Losses leave the window; Recovery begins with what is in flight, and gives back what was.
    /// Source: Linux 7.3 `bbr_set_cwnd_to_recover_or_restore`.
    fn recover_or_restore(&mut self, tp: &TcpSock, sample: &RateSample) -> u32 {
        let mut cwnd = tp.snd_cwnd;
        if sample.losses > 0 {
            cwnd = cwnd.saturating_sub(sample.losses).max(1);
        }
        if tp.ca_state == CaState::Recovery && self.prev_state != CaState::Recovery {
            self.packet_conservation = true;
            self.next_round_delivered = tp.delivered;
            cwnd = tp.packets_in_flight() + sample.acked_sacked;
        } else if self.prev_state >= CaState::Recovery && tp.ca_state < CaState::Recovery {
            cwnd = cwnd.max(self.prior_cwnd);
            self.packet_conservation = false;
        }
        self.prev_state = tp.ca_state;
        cwnd
    }

    fn approach_target(&self, tp: &TcpSock, acked: u32, cwnd: u32) -> u32 {
        let bw = self.bw();
        let mut target = bdp(bw, self.min_rtt_us, self.cwnd_gain);
        if self.full_bw_reached {
            target += self.aggregation.cwnd(bw);
        }
        let target = self.quantize(tp, target);
        let cwnd = if self.full_bw_reached {
            cwnd.saturating_add(acked).min(target)
        } else if cwnd < target || tp.delivered < 10 {
            cwnd.saturating_add(acked)
        } else {
            cwnd
        };
        cwnd.max(MIN_CWND)
    }

    /// Source: Linux 7.3 `bbr_save_cwnd`.
    fn save_cwnd(&mut self, tp: &TcpSock) {
        self.prior_cwnd = if self.prev_state < CaState::Recovery && self.mode != Mode::ProbeRtt {
            tp.snd_cwnd
        } else {
            self.prior_cwnd.max(tp.snd_cwnd)
        };
    }
}

impl CongestionControl for Bbr {
    fn init(&mut self, tp: &mut TcpSock) {
        tp.snd_ssthresh = INFINITE_SSTHRESH;
        self.next_round_delivered = tp.delivered;
        self.min_rtt_us = tp.min_rtt_us;
        self.min_rtt_stamp = tp.jiffies();
        self.policer = PolicerDetector::new(tp);
        self.aggregation = AckAggregation::new(tp.now);
        // 1 ms where no RTT is known
        let rtt_us = if tp.srtt_us > 0 { (tp.srtt_us >> 3).max(1) } else { 1_000 };
        let bw = bandwidth::of(u64::from(tp.snd_cwnd), rtt_us);
        tp.pacing_rate = bandwidth::pacing_rate(tp, bw, HIGH_GAIN);
        tp.request_pacing();
    }

    fn ssthresh(&mut self, tp: &mut TcpSock) -> u32 {
        self.save_cwnd(tp);
        tp.snd_ssthresh
    }

    fn has_cong_control(&self) -> bool {
        true
    }

    /// Source: Linux 7.3 `bbr_main`.
    fn cong_control(&mut self, tp: &mut TcpSock, sample: &RateSample) {
        self.update_bw(tp, sample);
        self.aggregation.update(tp, sample, self.bw(), self.round_start, AGGREGATION_ROUNDS);
        if self.mode == Mode::ProbeBw && self.phase_is_over(tp, sample) {
            self.next_phase(tp);
        }
        self.check_full(sample);
        self.check_drain(tp);
        self.update_min_rtt(tp, sample);
        self.update_gains();
        self.set_pacing_rate(tp, self.pacing_gain);
        self.set_cwnd(tp, sample);
    }

    fn set_state(&mut self, tp: &mut TcpSock, state: CaState) {
        if state == CaState::Loss {
            self.prev_state = CaState::Loss;
            self.full_bw = 0;
            // A timeout ends a round.
            self.round_start = true;
            self.watch_policer(tp, 1, false);
        }
    }

    fn cwnd_event(&mut self, tp: &mut TcpSock, event: CaEvent) {
        if event != CaEvent::TxStart || tp.app_limited == 0 {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(tp.now);
        match self.mode {
            // The path's rate will do: no burst is needed to find it.
            Mode::ProbeBw => self.set_pacing_rate(tp, UNIT),
            Mode::ProbeRtt => self.check_probe_rtt_done(tp),
            Mode::Startup | Mode::Drain => {}
        }
    }

    fn undo_cwnd(&mut self, tp: &mut TcpSock) -> u32 {
        self.full_bw = 0;
        self.full_bw_rounds = 0;
        self.policer = PolicerDetector::new(tp);
        tp.snd_cwnd
    }

    fn min_tso_segs(&self, tp: &TcpSock) -> u32 {
        bandwidth::min_tso_segs(tp)
    }

    fn sndbuf_windows(&self) -> u32 {
        // The window may double in recovery.
        3
    }

    fn trace(&self) -> Vec<(&'static str, f64)> {
        // As those of bbr3: up, down, cruise.
        let phase = match CYCLE[self.phase] {
            gain if gain > UNIT => 0_u8,
            gain if gain < UNIT => 1,
            _ => 2,
        };
        vec![
            ("mode", f64::from(self.mode as u8)),
            ("phase", f64::from(phase)),
            ("bw", self.bw() as f64 / bandwidth::BW_UNIT as f64 * 1e6),
            ("min_rtt_us", self.min_rtt_us as f64),
            ("pacing_gain", self.pacing_gain as f64 / UNIT as f64),
            ("policed", f64::from(u8::from(self.policer.bw().is_some()))),
            ("cwnd_gain", self.cwnd_gain as f64 / UNIT as f64),
            ("max_bw", self.max_bw.get() as f64 / bandwidth::BW_UNIT as f64 * 1e6),
            ("rounds", self.rounds as f64),
            ("full_bw_rounds", f64::from(self.full_bw_rounds)),
            ("full_bw_reached", f64::from(u8::from(self.full_bw_reached))),
            ("extra_acked", f64::from(self.aggregation.cwnd(u64::MAX))),
            ("idle_restart", f64::from(u8::from(self.idle_restart))),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A flow on a path of 10 packets per ms and an RTT of 20 ms: a BDP of 200 packets, RTT known.
    struct Path {
        bbr: Bbr,
        tp: TcpSock,
    }

    const RTT_US: u64 = 20_000;

    impl Path {
        fn new() -> Path {
            let mut tp = TcpSock::new(1448, 1000);
            tp.srtt_us = RTT_US << 3;
            tp.min_rtt_us = RTT_US;
            tp.delivered = 1;
            let mut bbr = Bbr::new(Stream::new(1, "cc"));
            bbr.init(&mut tp);
            Path { bbr, tp }
        }

        /// After `us`, an ACK of `acked` packets whose sample says `per_ms` packets per ms; `round` starts one.
        fn ack(&mut self, us: u64, acked: u32, per_ms: u64, round: bool) {
            let tp = &mut self.tp;
            tp.now += Time::from_us(us);
            tp.delivered_mstamp = tp.now;
            tp.delivered += u64::from(acked);
            let prior = if round { self.bbr.next_round_delivered } else { 0 };
            let sample = RateSample {
                acked_sacked: acked,
                delivered: (per_ms * RTT_US / 1000) as u32,
                interval_us: RTT_US,
                prior_delivered: prior,
                prior_in_flight: tp.packets_out,
                rtt_us: Some(RTT_US + 1),
                ..RateSample::default()
            };
            self.bbr.cong_control(tp, &sample);
        }

        /// STARTUP over and drained.
        fn probing() -> Path {
            let mut path = Path::new();
            for _ in 0..4 {
                path.ack(20_000, 50, 10, true);
            }
            assert_eq!(path.bbr.mode, Mode::ProbeBw);
            path
        }
    }

    #[test]
    fn the_first_pace_is_the_initial_window_at_2_over_ln_2() {
        let path = Path::new();
        // 739/256 = 2.887 against 2/ln 2 = 2.885; 10 * 1448 B / 20 ms = 724 kB/s, less 1 %
        let expected = 724_000.0 * 0.99 * 739.0 / 256.0;
        assert!((path.tp.pacing_rate as f64 / expected - 1.0).abs() < 1e-4, "{}", path.tp.pacing_rate);
        assert_eq!((HIGH_GAIN, DRAIN_GAIN), (739, 88));
    }

    #[test]
    fn startup_ends_after_three_rounds_without_a_quarter_more() {
        let mut path = Path::new();
        path.tp.packets_out = 10_000;
        for (per_ms, mode) in [
            (4, Mode::Startup),
            // a quarter more is enough
            (5, Mode::Startup),
            (6, Mode::Startup),
            (6, Mode::Startup),
            (6, Mode::Drain),
        ] {
            path.ack(20_000, 10, per_ms, true);
            assert_eq!(path.bbr.mode, mode, "{per_ms}");
        }
        assert_eq!((path.bbr.pacing_gain, path.bbr.cwnd_gain), (88, 739));
        // 6 packets per ms * 20 ms and 3 TSO packets, even
        let goal = tso_segs_goal(&path.tp);
        assert!(path.tp.snd_ssthresh >= 120 + 3 * 2 && path.tp.snd_ssthresh <= 120 + 3 * goal.max(45) + 1);
        // drained when no more is in flight than that
        path.tp.packets_out = 120;
        path.ack(1_000, 10, 6, false);
        assert_eq!(path.bbr.mode, Mode::ProbeBw);
    }

    #[test]
    fn application_limited_rounds_do_not_end_startup() {
        let mut path = Path::new();
        for _ in 0..20 {
            let tp = &mut path.tp;
            tp.delivered += 10;
            let sample = RateSample {
                acked_sacked: 10,
                delivered: 10,
                interval_us: RTT_US,
                prior_delivered: path.bbr.next_round_delivered,
                is_app_limited: true,
                ..RateSample::default()
            };
            path.bbr.cong_control(tp, &sample);
        }
        assert_eq!(path.bbr.mode, Mode::Startup);
    }

    #[test]
    fn the_cycle_is_1_25_then_0_75_then_six_rounds_of_1_each_a_little_longer_than_an_rtt() {
        let mut path = Path::probing();
        let mut changes: Vec<(u64, u64)> = Vec::new();
        for _ in 0..4000 {
            // in flight follows the gain: 1.25 BDP and the budget, or somewhat above 1 BDP
            path.tp.packets_out = 300;
            path.ack(100, 1, 10, false);
            let gain = path.bbr.pacing_gain;
            if changes.last().is_none_or(|c| c.1 != gain) || path.bbr.phase_start == path.tp.now {
                changes.push((path.tp.now.as_us(), gain));
            }
        }
        let first = changes.iter().position(|c| c.1 == 320).unwrap();
        let cycle: Vec<_> = changes[first..].iter().map(|c| c.1).collect();
        for (i, gain) in cycle.iter().enumerate() {
            assert_eq!(*gain, CYCLE[i % 8], "{i}");
        }
        assert!(cycle.len() > 16);
        for pair in changes[first..].windows(2) {
            // "longer than min_rtt", seen every 100 us
            assert_eq!(pair[1].0 - pair[0].0, RTT_US + 100);
        }
    }

    #[test]
    fn probing_up_lasts_until_in_flight_is_1_25_bdp_or_something_is_lost() {
        let mut path = Path::probing();
        while path.bbr.phase != 0 {
            path.ack(20_100, 10, 10, true);
        }
        path.tp.packets_out = 230;
        for _ in 0..10 {
            path.ack(20_100, 10, 10, true);
            assert_eq!(path.bbr.phase, 0);
        }
        // 1.25 * 200, three TSO packets and 2
        path.tp.packets_out = path.bbr.inflight(&path.tp, path.bbr.bw(), 320);
        path.ack(1_000, 10, 10, true);
        assert_eq!(path.bbr.phase, 1);
        // and down only until it fits
        path.tp.packets_out = 200;
        path.ack(1_000, 10, 10, true);
        assert_eq!(path.bbr.phase, 2);
    }

    #[test]
    fn the_phase_that_drains_is_never_the_first_and_all_others_are() {
        let mut path = Path::probing();
        let mut seen = [0; 8];
        for _ in 0..1000 {
            path.bbr.enter_probe_bw(&path.tp);
            seen[path.bbr.phase] += 1;
        }
        assert_eq!(seen[1], 0);
        assert!(seen.iter().enumerate().all(|(i, n)| i == 1 || *n > 100), "{seen:?}");
    }

    #[test]
    fn the_window_is_two_bdp_and_the_budget() {
        let mut path = Path::probing();
        path.tp.packets_out = 200;
        for _ in 0..100 {
            path.ack(20_100, 50, 10, true);
        }
        // 2 * 200 rounded up by at most 1, aggregation of at most the 50 of an ACK, 3 TSO packets, evenness and 2
        let budget = 3 * tso_segs_goal(&path.tp);
        let cwnd = path.tp.snd_cwnd;
        assert!((400 + budget..=401 + 50 + budget + 3).contains(&cwnd), "{cwnd} {budget}");
        // paced at 0.99 * 10 packets per ms times the gain
        let rate = 10_000.0 * 1448.0 * 0.99 * path.bbr.pacing_gain as f64 / 256.0;
        assert!((path.tp.pacing_rate as f64 / rate - 1.0).abs() < 1e-4);
        path.tp.max_pacing_rate = 1_000_000;
        path.ack(1_000, 1, 10, false);
        assert_eq!(path.tp.pacing_rate, 1_000_000, "capped");
    }

    #[test]
    fn a_bandwidth_is_remembered_for_ten_rounds() {
        let mut path = Path::probing();
        path.tp.packets_out = 200;
        path.ack(20_100, 50, 20, true);
        for round in 1..=10 {
            path.ack(20_100, 50, 10, true);
            assert_eq!(path.bbr.bw(), bandwidth::of(20, 1_000), "{round}");
        }
        path.ack(20_100, 50, 10, true);
        assert_eq!(path.bbr.bw(), bandwidth::of(10, 1_000));
    }

    #[test]
    fn after_ten_seconds_without_a_new_minimum_four_packets_for_200_ms_and_a_round() {
        let mut path = Path::probing();
        path.tp.packets_out = 200;
        let mut began = 0;
        while path.bbr.mode != Mode::ProbeRtt {
            path.ack(20_100, 50, 10, true);
            began = path.tp.now.as_ms();
        }
        assert!((10_000..10_050).contains(&began), "{began}");
        let prior = path.bbr.prior_cwnd;
        assert_eq!(path.tp.snd_cwnd, 4);
        assert!(path.tp.app_limited > 0);
        // still too many in flight: the clock does not run
        path.ack(500_000, 50, 10, true);
        assert_eq!(path.bbr.probe_rtt_done, None);
        path.tp.packets_out = 4;
        path.ack(1_000, 4, 10, false);
        let low = path.tp.now.as_ms();
        while path.bbr.mode == Mode::ProbeRtt {
            assert_eq!(path.tp.snd_cwnd, 4);
            path.ack(1_000, 1, 10, true);
        }
        assert_eq!(path.tp.now.as_ms() - low, 201);
        assert!(path.tp.snd_cwnd >= prior.min(400), "{} {prior}", path.tp.snd_cwnd);
        assert_eq!(path.bbr.mode, Mode::ProbeBw);
    }

    #[test]
    fn recovery_conserves_packets_for_a_round_and_gives_the_window_back() {
        let mut path = Path::probing();
        path.tp.packets_out = 200;
        path.ack(20_100, 50, 10, true);
        let before = path.tp.snd_cwnd;
        path.bbr.ssthresh(&mut path.tp);
        path.bbr.set_state(&mut path.tp, CaState::Recovery);
        path.tp.ca_state = CaState::Recovery;
        path.tp.lost_out = 10;
        path.ack(1_000, 2, 10, false);
        // 200 - 10 in flight, and what was acknowledged
        assert_eq!(path.tp.snd_cwnd, 192);
        path.ack(1_000, 2, 10, false);
        assert_eq!(path.tp.snd_cwnd, 192);
        // the next round grows again, towards the target
        path.ack(20_000, 2, 10, true);
        assert_eq!(path.tp.snd_cwnd, 194);
        path.tp.ca_state = CaState::Open;
        path.ack(1_000, 2, 10, false);
        assert!(path.tp.snd_cwnd >= before.min(400), "{} {before}", path.tp.snd_cwnd);
    }

    #[test]
    fn from_idle_it_paces_at_the_estimate_without_a_gain() {
        let mut path = Path::probing();
        path.bbr.phase = 0;
        path.tp.mark_app_limited();
        path.bbr.cwnd_event(&mut path.tp, CaEvent::TxStart);
        assert_eq!(path.tp.pacing_rate, bandwidth::pacing_rate(&path.tp, path.bbr.bw(), UNIT));
        assert!(path.bbr.idle_restart);
        path.ack(1_000, 1, 10, false);
        assert!(!path.bbr.idle_restart);
    }
}
