//! `bbr3`: BBR with bounds on what is in flight, learned from loss and ECN (BBR v3).
//!
//! Source: github.com/google/bbr, branch v3, `net/ipv4/tcp_bbr.c` (BBR_VERSION 3), and draft-ietf-ccwg-bbr. It was written from a
//! description of that file, not from its lines.
//!
//! As [`super::bbr`], but: the bandwidth is the maximum of the last two probes for it; a probe ([`cycle`]) comes every 2 to 3 s, or after as many
//! rounds as Reno needs to recover; it ends at 2 % of loss, which sets the long-term bound `inflight_hi`; loss outside of probes lowers short-term bounds by
//! 30 % ([`bounds`]); cruising leaves 15 % of `inflight_hi` free. PROBE_RTT comes every 5 s and halves the window.
//!
//! | parameter | default | meaning |
//! |---|---|---|
//! | `ecn_low` | 0 | 1: the route promises shallow marking (route feature `ecn_low`): marks count if the RTT is at most 5 ms and feedback is AccECN |
//!
//! Departures: feedback of marks is AccECN's, where Google's kernel has DCTCP's. TSO packets are sized as in Linux 7.3. Not modelled: PLB, the fast path
//! (it saves work, not packets), the memory of a tail loss that a probe repaired.
//!
//! Validation: the tests here and in its parts, `tests/bbr_runs.rs` (whole runs).

mod bounds;
mod cycle;

use super::bandwidth::{self, AckAggregation, UNIT, bdp, packets_in_net_at_edt, tso_segs_goal};
use super::{CaEvent, CcEnv, CcError, CongestionControl, Lost, RateSample};
use crate::base::rng::Stream;
use crate::cc::sock::{CaState, INFINITE_SSTHRESH, TcpSock};
use bakeoff_document::cc::CcWords;

/// 4 ln 2, rounded up: the least gain that doubles the delivery rate each round.
const STARTUP_GAIN: u64 = UNIT * 277 / 100 + 1;
const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
const CWND_GAIN: u64 = 2 * UNIT;
/// What PROBE_UP adds to the window's gain.
const UP_CWND_GAIN: u64 = UNIT / 4;
const MIN_CWND: u32 = 4;
const FULL_BW_THRESHOLD: u64 = UNIT * 5 / 4;
const FULL_BW_ROUNDS: u32 = 3;
const MIN_RTT_WINDOW_S: u64 = 10;
const PROBE_RTT_WINDOW_S: u64 = 5;
const PROBE_RTT_MS: u64 = 200;
const PROBE_RTT_GAIN: u64 = UNIT / 2;
const AGGREGATION_ROUNDS: u32 = 5;
/// No bound.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// The model and the state machine.
pub struct Bbr3 {
    rng: Stream,
    ecn_low: bool,
    mode: Mode,
    pacing_gain: u64,
    cwnd_gain: u64,
    init_cwnd: u32,

    /// Of the sample at hand.
    sample_bw: u64,
    next_round_delivered: u64,
    round_start: bool,
    bounds: bounds::Bounds,
    cycle: cycle::Cycle,

    min_rtt_us: u64,
    /// In jiffies.
    min_rtt_stamp: u64,
    probe_rtt_min_us: u64,
    /// In jiffies.
    probe_rtt_min_stamp: u64,
    /// In jiffies.
    probe_rtt_done: Option<u64>,
    probe_rtt_round_done: bool,
    idle_restart: bool,

    full_bw: u64,
    full_bw_rounds: u32,
    full_bw_now: bool,
    full_bw_reached: bool,

    prev_state: CaState,
    prior_cwnd: u32,
    aggregation: AckAggregation,
}

impl Bbr3 {
    /// From the words after the name.
    pub fn parse(words: &mut CcWords, env: CcEnv) -> Result<Self, CcError> {
        let mut c = Bbr3::new(env.rng);
        while words.parameter(&["ecn_low"])?.is_some() {
            c.ecn_low = words.flag()?;
        }
        Ok(c)
    }

    fn new(rng: Stream) -> Self {
        Bbr3 {
            rng,
            ecn_low: false,
            mode: Mode::Startup,
            pacing_gain: UNIT,
            cwnd_gain: UNIT,
            init_cwnd: 10,
            sample_bw: 0,
            next_round_delivered: 0,
            round_start: false,
            bounds: bounds::Bounds::default(),
            cycle: cycle::Cycle::default(),
            min_rtt_us: u64::MAX,
            min_rtt_stamp: 0,
            probe_rtt_min_us: u64::MAX,
            probe_rtt_min_stamp: 0,
            probe_rtt_done: None,
            probe_rtt_round_done: false,
            idle_restart: false,
            full_bw: 0,
            full_bw_rounds: 0,
            full_bw_now: false,
            full_bw_reached: false,
            prev_state: CaState::Open,
            prior_cwnd: 0,
            aggregation: AckAggregation::default(),
        }
    }

    /// The bandwidth in use.
    fn bw(&self) -> u64 {
        self.bounds.max_bw().min(self.bounds.bw_lo)
    }

    // ---- targets --------------------------------------------------------------------------------

    fn quantize(&self, tp: &TcpSock, cwnd: u32) -> u32 {
        let cwnd = cwnd.max(3 * tso_segs_goal(tp)).max(MIN_CWND);
        cwnd + if self.is_probing_up() { 2 } else { 0 }
    }

    fn inflight(&self, tp: &TcpSock, bw: u64, gain: u64) -> u32 {
        self.quantize(tp, bdp(bw, self.min_rtt_us, gain))
    }

    fn in_net_at_edt(&self, tp: &TcpSock, in_flight: u32) -> u32 {
        packets_in_net_at_edt(tp, in_flight, self.bw(), self.pacing_gain)
    }

    /// BDP or window, whichever is less: what is safe to keep in flight.
    /// Source: draft-ietf-ccwg-bbr, BBRTargetInflight.
    fn target_inflight(&self, tp: &TcpSock) -> u32 {
        self.inflight(tp, self.bw(), UNIT).min(tp.snd_cwnd)
    }

    /// Source: draft-ietf-ccwg-bbr, BBRProbeRTTCwnd.
    fn probe_rtt_cwnd(&self) -> u32 {
        bdp(self.bw(), self.min_rtt_us, PROBE_RTT_GAIN).max(MIN_CWND)
    }

    // ---- the model ------------------------------------------------------------------------------

    /// Source: draft-ietf-ccwg-bbr, BBRUpdateRound.
    fn update_round(&mut self, tp: &TcpSock, sample: &RateSample) {
        self.round_start = false;
        if sample.interval_us > 0 && sample.prior_delivered >= self.next_round_delivered {
            self.next_round_delivered = tp.delivered;
            self.round_start = true;
        }
    }

    fn reset_full_bw(&mut self, full_bw: u64) {
        self.full_bw = full_bw;
        self.full_bw_rounds = 0;
        self.full_bw_now = false;
    }

    /// Three rounds without a quarter more: the pipe is full, in STARTUP and in each probe.
    /// Source: draft-ietf-ccwg-bbr, BBRCheckFullBWReached.
    fn check_full(&mut self, sample: &RateSample) {
        if self.full_bw_now || sample.is_app_limited {
            return;
        }
        if self.sample_bw >= (self.full_bw * FULL_BW_THRESHOLD) >> 8 {
            self.reset_full_bw(self.sample_bw);
            return;
        }
        if !self.round_start {
            return;
        }
        self.full_bw_rounds += 1;
        self.full_bw_now = self.full_bw_rounds >= FULL_BW_ROUNDS;
        self.full_bw_reached |= self.full_bw_now;
    }

    /// Source: draft-ietf-ccwg-bbr, BBRCheckDrainDone.
    fn check_drain(&mut self, tp: &mut TcpSock) {
        if self.mode == Mode::Startup && self.full_bw_reached {
            self.mode = Mode::Drain;
            tp.snd_ssthresh = self.inflight(tp, self.bounds.max_bw(), UNIT);
            self.bounds.reset_signals();
        }
        if self.mode == Mode::Drain
            && self.in_net_at_edt(tp, tp.packets_in_flight()) <= self.inflight(tp, self.bounds.max_bw(), UNIT)
        {
            self.mode = Mode::ProbeBw;
            self.start_down(tp);
        }
    }

    /// Source: draft-ietf-ccwg-bbr, BBRUpdateMinRTT, BBRCheckProbeRTT.
    fn update_min_rtt(&mut self, tp: &mut TcpSock, sample: &RateSample) {
        let now = tp.jiffies();
        let probe_expired = now > self.probe_rtt_min_stamp + PROBE_RTT_WINDOW_S * tp.hz;
        if let Some(rtt_us) = sample.rtt_us
            && (rtt_us < self.probe_rtt_min_us || (probe_expired && !sample.is_ack_delayed))
        {
            self.probe_rtt_min_us = rtt_us;
            self.probe_rtt_min_stamp = now;
        }
        let expired = now > self.min_rtt_stamp + MIN_RTT_WINDOW_S * tp.hz;
        if self.probe_rtt_min_us <= self.min_rtt_us || expired {
            self.min_rtt_us = self.probe_rtt_min_us;
            self.min_rtt_stamp = self.probe_rtt_min_stamp;
        }
        if probe_expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_cwnd(tp);
            self.probe_rtt_done = None;
            self.cycle.acks = cycle::Acks::ProbeStopping;
            self.next_round_delivered = tp.delivered;
        }
        if self.mode == Mode::ProbeRtt {
            tp.mark_app_limited();
            if self.probe_rtt_done.is_some() {
                self.probe_rtt_round_done |= self.round_start;
                if self.probe_rtt_round_done {
                    self.check_probe_rtt_done(tp);
                }
            } else if tp.packets_in_flight() <= self.probe_rtt_cwnd() {
                self.probe_rtt_done = Some(now + (PROBE_RTT_MS * tp.hz).div_ceil(1000));
                self.probe_rtt_round_done = false;
                self.next_round_delivered = tp.delivered;
            }
        }
        if sample.delivered > 0 {
            self.idle_restart = false;
        }
    }

    /// Source: draft-ietf-ccwg-bbr, BBRCheckProbeRTTDone.
    fn check_probe_rtt_done(&mut self, tp: &mut TcpSock) {
        if self.probe_rtt_done.is_none_or(|at| tp.jiffies() <= at) {
            return;
        }
        self.probe_rtt_min_stamp = tp.jiffies();
        tp.snd_cwnd = tp.snd_cwnd.max(self.prior_cwnd);
        self.bounds.reset_lower();
        if self.full_bw_reached {
            self.mode = Mode::ProbeBw;
            // The next probe is a whole wait away; in flight is low already.
            self.start_down(tp);
            self.start_cruise();
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (STARTUP_GAIN, CWND_GAIN),
            Mode::Drain => (DRAIN_GAIN, CWND_GAIN),
            Mode::ProbeBw if self.is_probing_up() => (self.cycle.gain(), CWND_GAIN + UP_CWND_GAIN),
            Mode::ProbeBw => (self.cycle.gain(), CWND_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
    }

    // ---- what is controlled ---------------------------------------------------------------------

    /// Source: draft-ietf-ccwg-bbr, BBRSetPacingRateWithGain.
    fn set_pacing_rate(&self, tp: &mut TcpSock, gain: u64) {
        let rate = bandwidth::pacing_rate(tp, self.bw(), gain);
        if self.full_bw_reached || rate > tp.pacing_rate {
            tp.pacing_rate = rate;
        }
    }

    /// Source: draft-ietf-ccwg-bbr, BBRSetCwnd.
    fn set_cwnd(&mut self, tp: &mut TcpSock, acked: u32) {
        if acked > 0 {
            let bw = self.bw();
            let target = bdp(bw, self.min_rtt_us, self.cwnd_gain) + self.aggregation.cwnd(bw);
            let target = self.quantize(tp, target);
            let mut cwnd = tp.snd_cwnd;
            if self.full_bw_reached {
                cwnd = cwnd.saturating_add(acked).min(target);
            } else if cwnd < target || cwnd < 2 * self.init_cwnd {
                cwnd = cwnd.saturating_add(acked);
            }
            tp.snd_cwnd = cwnd.max(MIN_CWND).min(tp.snd_cwnd_clamp);
        }
        if self.mode == Mode::ProbeRtt {
            tp.snd_cwnd = tp.snd_cwnd.min(self.probe_rtt_cwnd());
        }
        tp.snd_cwnd = tp.snd_cwnd.min(self.cap());
    }

    /// The bounds on what is in flight, by mode. Source: draft-ietf-ccwg-bbr, BBRBoundCwndForModel.
    fn cap(&self) -> u32 {
        let cap = match self.mode {
            Mode::ProbeBw if self.is_cruising() => self.bounds.with_headroom(),
            Mode::ProbeBw => self.bounds.inflight_hi,
            Mode::ProbeRtt => self.bounds.with_headroom(),
            Mode::Startup | Mode::Drain => NONE,
        };
        cap.min(self.bounds.inflight_lo).max(MIN_CWND)
    }

    fn save_cwnd(&mut self, tp: &TcpSock) {
        self.prior_cwnd = if self.prev_state < CaState::Recovery && self.mode != Mode::ProbeRtt {
            tp.snd_cwnd
        } else {
            self.prior_cwnd.max(tp.snd_cwnd)
        };
    }
}

impl CongestionControl for Bbr3 {
    fn init(&mut self, tp: &mut TcpSock) {
        tp.snd_ssthresh = INFINITE_SSTHRESH;
        self.init_cwnd = tp.snd_cwnd.min(0x7f);
        self.prior_cwnd = tp.snd_cwnd;
        self.next_round_delivered = tp.delivered;
        self.bounds = bounds::Bounds::new(tp);
        self.min_rtt_us = tp.min_rtt_us;
        self.probe_rtt_min_us = tp.min_rtt_us;
        self.min_rtt_stamp = tp.jiffies();
        self.probe_rtt_min_stamp = tp.jiffies();
        self.aggregation = AckAggregation::new(tp.now);
        let rtt_us = if tp.srtt_us > 0 { (tp.srtt_us >> 3).max(1) } else { 1_000 };
        let bw = bandwidth::of(u64::from(tp.snd_cwnd), rtt_us);
        tp.pacing_rate = bandwidth::pacing_rate(tp, bw, STARTUP_GAIN);
        tp.request_pacing();
    }

    fn ssthresh(&mut self, tp: &mut TcpSock) -> u32 {
        self.save_cwnd(tp);
        self.bounds.save();
        tp.snd_ssthresh
    }

    fn has_cong_control(&self) -> bool {
        true
    }

    fn cong_control(&mut self, tp: &mut TcpSock, sample: &RateSample) {
        self.update_round(tp, sample);
        if self.round_start {
            self.cycle.rounds_since_probe = (self.cycle.rounds_since_probe + 1).min(0xff);
            self.update_ecn_alpha(tp);
        }
        self.sample_bw = bandwidth::of(u64::from(sample.delivered), sample.interval_us);
        self.bounds.note_ece(sample.ece);
        self.bounds.note_delivery(tp, sample, self.sample_bw);
        self.update_signals(tp, sample);
        let window = if self.full_bw_reached { AGGREGATION_ROUNDS } else { 1 };
        self.aggregation.update(tp, sample, self.bw(), self.round_start, window);
        self.check_startup_loss(tp, sample);
        self.check_full(sample);
        self.check_drain(tp);
        self.update_cycle(tp, sample);
        self.update_min_rtt(tp, sample);
        self.update_gains();
        self.set_pacing_rate(tp, self.pacing_gain);
        self.set_cwnd(tp, sample.acked_sacked);
        self.bounds.end_of_ack(sample, self.sample_bw);
        self.prev_state = tp.ca_state;
    }

    fn set_state(&mut self, tp: &mut TcpSock, state: CaState) {
        if state == CaState::Loss {
            self.prev_state = CaState::Loss;
            self.reset_full_bw(0);
            if !self.is_probing_bandwidth() && self.bounds.inflight_lo == NONE {
                self.bounds.inflight_lo = tp.snd_cwnd.max(self.prior_cwnd);
            }
        } else if self.prev_state == CaState::Loss {
            tp.snd_cwnd = tp.snd_cwnd.max(self.prior_cwnd);
        }
    }

    fn cwnd_event(&mut self, tp: &mut TcpSock, event: CaEvent) {
        if event != CaEvent::TxStart || tp.app_limited == 0 {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(tp.now);
        match self.mode {
            Mode::ProbeBw => self.set_pacing_rate(tp, UNIT),
            Mode::ProbeRtt => self.check_probe_rtt_done(tp),
            Mode::Startup | Mode::Drain => {}
        }
    }

    fn marked_lost(&mut self, tp: &mut TcpSock, lost: &Lost) {
        self.on_lost(tp, lost);
    }

    fn undo_cwnd(&mut self, tp: &mut TcpSock) -> u32 {
        self.reset_full_bw(0);
        self.bounds.restore();
        tp.snd_cwnd.max(self.prior_cwnd)
    }

    fn min_tso_segs(&self, tp: &TcpSock) -> u32 {
        bandwidth::min_tso_segs(tp)
    }

    fn trace(&self) -> Vec<(&'static str, f64)> {
        let mut values = vec![
            ("mode", f64::from(self.mode as u8)),
            ("phase", f64::from(self.cycle.phase as u8)),
            ("bw", self.bw() as f64 / bandwidth::BW_UNIT as f64 * 1e6),
            ("min_rtt_us", self.min_rtt_us as f64),
            ("pacing_gain", self.pacing_gain as f64 / UNIT as f64),
        ];
        let bounds = [("inflight_hi", self.bounds.inflight_hi), ("inflight_lo", self.bounds.inflight_lo)];
        values
            .extend(bounds.into_iter().filter(|b| b.1 != NONE).map(|(name, bound)| (name, f64::from(bound))));
        values
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::cycle::Phase;
    use super::*;
    use crate::base::units::Time;

    pub const RTT_US: u64 = 20_000;

    /// A flow on a path of 10 packets per ms and an RTT of 20 ms: a BDP of 200 packets.
    pub struct Path {
        pub bbr: Bbr3,
        pub tp: TcpSock,
    }

    impl Path {
        pub fn new() -> Path {
            let mut tp = TcpSock::new(1448, 1000);
            tp.srtt_us = RTT_US << 3;
            tp.min_rtt_us = RTT_US;
            tp.delivered = 1;
            tp.packets_out = 200;
            let mut bbr = Bbr3::new(Stream::new(1, "cc"));
            bbr.init(&mut tp);
            Path { bbr, tp }
        }

        /// What an ACK of `acked` packets tells if `per_ms` packets per ms arrive; `round` starts a round.
        pub fn sample(&self, acked: u32, per_ms: u64, round: bool) -> RateSample {
            RateSample {
                acked_sacked: acked,
                delivered: (per_ms * RTT_US / 1000) as u32,
                interval_us: RTT_US,
                prior_delivered: if round { self.tp.delivered } else { 0 },
                prior_in_flight: self.tp.packets_out,
                tx_in_flight: self.tp.packets_out,
                rtt_us: Some(RTT_US + 1),
                ..RateSample::default()
            }
        }

        /// That ACK, `us` later.
        pub fn take(&mut self, us: u64, sample: &RateSample) {
            self.tp.now += Time::from_us(us);
            self.tp.delivered_mstamp = self.tp.now;
            self.tp.delivered += u64::from(sample.acked_sacked);
            self.bbr.cong_control(&mut self.tp, sample);
        }

        pub fn ack(&mut self, us: u64, acked: u32, per_ms: u64, round: bool) {
            let sample = self.sample(acked, per_ms, round);
            self.take(us, &sample);
        }

        /// In PROBE_BW, cruising.
        pub fn cruising() -> Path {
            let mut path = Path::new();
            for _ in 0..10 {
                path.ack(20_000, 50, 10, true);
            }
            assert!(path.bbr.is_cruising(), "{:?} {:?}", path.bbr.mode, path.bbr.cycle.phase);
            path
        }

        /// At the beginning of PROBE_UP.
        pub fn probing_up() -> Path {
            let mut path = Path::cruising();
            for _ in 0..1000 {
                path.ack(20_000, 50, 10, true);
                if path.bbr.cycle.phase == Phase::Up {
                    return path;
                }
            }
            panic!("no probe in 20 s");
        }
    }

    #[test]
    fn gains_are_those_of_version_3() {
        assert_eq!((STARTUP_GAIN, DRAIN_GAIN), (710, 88));
        let mut path = Path::new();
        path.ack(20_000, 10, 10, true);
        assert_eq!((path.bbr.pacing_gain, path.bbr.cwnd_gain), (710, 512));
        let path = Path::probing_up();
        assert_eq!((path.bbr.pacing_gain, path.bbr.cwnd_gain), (320, 576));
    }

    #[test]
    fn every_five_seconds_half_a_bdp_for_200_ms_and_a_round() {
        let mut path = Path::cruising();
        while path.bbr.mode != Mode::ProbeRtt {
            path.ack(20_000, 50, 10, true);
        }
        let began = path.tp.now.as_ms();
        assert!((5_000..5_050).contains(&began), "{began}");
        // half of 200
        assert_eq!(path.tp.snd_cwnd, 100);
        path.tp.packets_out = 100;
        path.ack(1_000, 4, 10, false);
        let low = path.tp.now.as_ms();
        while path.bbr.mode == Mode::ProbeRtt {
            path.ack(1_000, 1, 10, true);
        }
        assert_eq!(path.tp.now.as_ms() - low, 201);
        assert!(path.bbr.is_cruising());
    }

    #[test]
    fn the_window_of_an_rto_comes_back() {
        let mut path = Path::cruising();
        let before = path.tp.snd_cwnd;
        path.bbr.ssthresh(&mut path.tp);
        path.tp.snd_cwnd = 1;
        path.bbr.set_state(&mut path.tp, CaState::Loss);
        path.tp.ca_state = CaState::Loss;
        assert_eq!(path.bbr.bounds.inflight_lo, before);
        path.bbr.set_state(&mut path.tp, CaState::Open);
        assert_eq!(path.tp.snd_cwnd, before);
    }
}
