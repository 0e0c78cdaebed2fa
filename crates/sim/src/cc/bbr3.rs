//! `bbr3` and `bbr2`: BBR v3 and v2: BBR with inflight bounds that it learns from loss and ECN.
//!
//! Source: github.com/google/bbr, branch v3, `net/ipv4/tcp_bbr.c` (BBR_VERSION 3), and branch v2alpha, `net/ipv4/tcp_bbr2.c` (8d11b540);
//! draft-ietf-ccwg-bbr. It was written from a description of these files, not from their lines.
//!
//! As [`super::bbr`], but: the bandwidth is the maximum of the last two probes for it; a probe ([`cycle`]) comes every 2 to 3 s, or after as many
//! rounds as Reno needs to recover; it ends at 2 % of loss, which sets the long-term bound `inflight_hi`; loss outside of probes lowers short-term bounds by
//! 30 % ([`bounds`]); cruising leaves 15 % of `inflight_hi` free. PROBE_RTT comes every 5 s and halves the window.
//!
//! `bbr2` has the same model and machine. Other are
//!
//! * gains: 2.89 in STARTUP, for the window too and in DRAIN; 0.75 in PROBE_DOWN; the window's is 2 in probes;
//! * the end of STARTUP: three rounds without a quarter more, judged by the maximum and once a round; or 8 ACKs with losses in a round of Recovery (6);
//!   `inflight_hi` is then the BDP;
//! * the end of a probe: 1.25 BDP in flight, later than a minimum RTT after its begin; v3 goes on until the pipe is full;
//! * the credit for raising `inflight_hi`, lost on an ACK while the window is not the limit;
//! * marks: no route promises anything, `ecn_enable` says whether they count; alpha follows them at longer RTTs too; half of the packets is too much already;
//!   no early probe when they cease.
//!
//! `bbr3@google` differs from `bbr3` below 1.2 Mbit/s, where TSO packets have two segments, and in that it counts a loss that a tail loss probe repaired.
//!
//! `bbr3@draft` is the algorithm of draft-ietf-ccwg-bbr (4ce5e87, after -06). [`rules`] lists what it and each version has of its own. It takes marks for nothing
//! and has no parameter.
//!
//! | parameter | default | meaning |
//! |---|---|---|
//! | `ecn_enable` | 0 | `bbr2`: 1: marks count, whatever feedback tells them |
//! | `ecn_max_rtt_us` | 5000 | `bbr2`: up to this minimum RTT; 0: at any |
//! | `ecn_low` | 0 | `bbr3`, `bbr3@google`: 1: the route promises shallow marking (route feature `ecn_low`): marks count if the RTT is at most 5 ms and feedback is AccECN |
//!
//! Departures: `bbr3`'s feedback of marks is AccECN's, where Google's kernel has DCTCP's. TSO packets are sized as in Linux 7.3. Not modelled: PLB, the fast path
//! (it saves work, not packets). `bbr3@draft`: windows are whole packets, gains are rounded down to 1/256, and one
//! state is saved per recovery, where the pseudocode saves again with the next packet after a probe that this loss ended, and then undoes nothing. STARTUP and DRAIN
//! have the bounds of its pseudocode, not of its prose, and so has the wait of as many rounds as Reno needs. A sample with too much loss does not raise
//! `inflight_hi`, as in the kernel. Left out, for they change nothing here: the filter of `max_bw` that forgets in a cycle without a sample, the epoch of aggregation
//! without an end at 2^20 packets, the window of PROBE_RTT as a gain, the window of a timeout (the core's is the same).
//!
//! Validation: the tests here and in its parts, `tests/bbr_runs.rs` (whole runs).

mod bounds;
mod cycle;
#[cfg(test)]
mod draft;
mod rules;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod version2;

use super::bandwidth::{self, AckAggregation, UNIT, bdp, packets_in_net_at_edt, tso_segs_goal_by_rtt};
use super::max_filter::MaxFilter;
use super::{CaEvent, CcEnv, CcError, CongestionControl, Lost, RateSample};
use crate::base::rng::Stream;
use crate::cc::sock::{CaState, INFINITE_SSTHRESH, TcpSock};
use bakeoff_document::cc::CcWords;
use rules::{DRAFT, GOOGLE, Growth, Part, Rules, TimeoutBound, V2, V3};

const CWND_GAIN: u64 = 2 * UNIT;
const MIN_CWND: u32 = 4;
const FULL_BW_THRESHOLD: u64 = UNIT * 5 / 4;
const FULL_BW_ROUNDS: u32 = 3;
const MIN_RTT_WINDOW_S: u64 = 10;
const PROBE_RTT_WINDOW_S: u64 = 5;
const PROBE_RTT_MS: u64 = 200;
const PROBE_RTT_GAIN: u64 = UNIT / 2;
/// Of two windows of ACK aggregation, each; the draft has one of twice as many.
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

/// What a loss ends, and its undoing may go back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Startup,
    Probe,
}

/// The model and the state machine.
pub struct Bbr3 {
    rules: &'static Rules,
    rng: Stream,
    /// Marks may count: `ecn_low` or `ecn_enable`.
    ecn: bool,
    /// Up to this RTT; 0: at any.
    ecn_max_rtt_us: u64,
    mode: Mode,
    pacing_gain: u64,
    cwnd_gain: u64,
    init_cwnd: u32,

    /// Of the sample at hand.
    sample_bw: u64,
    next_round_delivered: u64,
    round_start: bool,
    rounds: u64,
    drain_start: u64,
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
    /// Of the draft.
    extra_acked: MaxFilter,
    /// What to restore is saved, as of the first loss of this episode.
    saved: bool,
    /// What the loss of this episode ended.
    ended: Option<Ended>,
}

impl Bbr3 {
    /// From the words after the name.
    pub fn parse(words: &mut CcWords, env: CcEnv) -> Result<Self, CcError> {
        let (rules, known): (_, &[&str]) = match words.first() {
            "bbr2" => (&V2, &["ecn_enable", "ecn_max_rtt_us"]),
            "bbr3@draft" => (&DRAFT, &[]),
            "bbr3@google" => (&GOOGLE, &["ecn_low"]),
            _ => (&V3, &["ecn_low"]),
        };
        let mut c = Bbr3::new(rules, env.rng);
        while let Some(parameter) = words.parameter(known)? {
            match parameter {
                "ecn_max_rtt_us" => c.ecn_max_rtt_us = words.number(0..=u32::MAX)?.into(),
                _ => c.ecn = words.flag()?,
            }
        }
        Ok(c)
    }

    fn new(rules: &'static Rules, rng: Stream) -> Self {
        Bbr3 {
            rules,
            rng,
            ecn: false,
            ecn_max_rtt_us: 5_000,
            mode: Mode::Startup,
            pacing_gain: UNIT,
            cwnd_gain: UNIT,
            init_cwnd: 10,
            sample_bw: 0,
            next_round_delivered: 0,
            round_start: false,
            rounds: 0,
            drain_start: 0,
            bounds: bounds::Bounds::of(rules),
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
            extra_acked: MaxFilter::default(),
            saved: false,
            ended: None,
        }
    }

    /// The bandwidth in use.
    fn bw(&self) -> u64 {
        self.bounds.max_bw().min(self.bounds.bw_lo)
    }

    // ---- targets --------------------------------------------------------------------------------

    /// Segments of the packets that are handed down.
    fn tso_goal(&self, tp: &TcpSock) -> u32 {
        tso_segs_goal_by_rtt(tp, self.min_tso_segs(tp))
    }

    fn quantize(&self, tp: &TcpSock, cwnd: u32) -> u32 {
        let budget = if self.rules.quantum_of_1_ms {
            (3 * bandwidth::send_quantum(tp)).div_ceil(tp.mss.into()) as u32
        } else {
            3 * self.tso_goal(tp)
        };
        cwnd.max(budget).max(MIN_CWND) + if self.is_probing_up() { 2 } else { 0 }
    }

    fn inflight(&self, tp: &TcpSock, bw: u64, gain: u64) -> u32 {
        self.quantize(tp, bdp(bw, self.min_rtt_us, gain))
    }

    /// What is in flight, to be compared with a target; `in_flight` if the departure of the next packet counts.
    fn in_flight(&self, tp: &TcpSock, in_flight: u32) -> u32 {
        if !self.rules.departure_time {
            return tp.packets_in_flight();
        }
        packets_in_net_at_edt(tp, in_flight, self.bw(), self.pacing_gain, self.tso_goal(tp))
    }

    /// The BDP as a bound, or as a pace of probes.
    fn bdp_of(&self, tp: &TcpSock, bw: u64) -> u32 {
        if self.rules.bare_bdp { bdp(bw, self.min_rtt_us, UNIT) } else { self.inflight(tp, bw, UNIT) }
    }

    /// BDP or window, whichever is less: what is safe to keep in flight.
    /// Source: draft-ietf-ccwg-bbr, BBRTargetInflight.
    fn target_inflight(&self, tp: &TcpSock) -> u32 {
        self.bdp_of(tp, self.bw()).min(tp.snd_cwnd)
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
            self.rounds += 1;
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
        let bw = match self.rules.growth {
            Growth::Maximum if self.full_bw_reached || !self.round_start => return,
            Growth::RoundStart if !self.round_start => return,
            Growth::Maximum => self.bounds.max_bw(),
            Growth::EveryAck | Growth::RoundStart => self.sample_bw,
        };
        if bw >= (self.full_bw * FULL_BW_THRESHOLD) >> 8 {
            self.reset_full_bw(bw);
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
            self.drain_start = self.rounds;
            tp.snd_ssthresh = self.inflight(tp, self.bounds.max_bw(), UNIT);
            self.bounds.reset_signals();
        }
        if self.mode != Mode::Drain {
            return;
        }
        let bw = if self.rules.drains_by_maximum { self.bounds.max_bw() } else { self.bw() };
        let drained = self.in_flight(tp, tp.packets_in_flight()) <= self.inflight(tp, bw, UNIT);
        if drained || self.rounds - self.drain_start > self.rules.drain_rounds {
            self.mode = Mode::ProbeBw;
            self.start_down(tp);
        }
    }

    /// Source: draft-ietf-ccwg-bbr, BBRUpdateMinRTT, BBRCheckProbeRTT.
    fn update_min_rtt(&mut self, tp: &mut TcpSock, sample: &RateSample) {
        let now = tp.jiffies();
        let probe_expired = now > self.probe_rtt_min_stamp + PROBE_RTT_WINDOW_S * tp.hz;
        if let Some(rtt_us) = sample.rtt_us
            && (rtt_us < self.probe_rtt_min_us
                || (self.rules.equal_renews_probe_rtt && rtt_us == self.probe_rtt_min_us)
                || (probe_expired && (self.rules.delayed_replaces || !sample.is_ack_delayed)))
        {
            self.probe_rtt_min_us = rtt_us;
            self.probe_rtt_min_stamp = now;
        }
        let expired = now > self.min_rtt_stamp + MIN_RTT_WINDOW_S * tp.hz;
        let equal = self.rules.equal_renews_min_rtt && self.probe_rtt_min_us == self.min_rtt_us;
        if self.probe_rtt_min_us < self.min_rtt_us || equal || expired {
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
        let rules = self.rules;
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (rules.startup_gain, rules.early_cwnd_gain),
            Mode::Drain => (rules.drain_gain, rules.early_cwnd_gain),
            Mode::ProbeBw if self.is_probing_up() => (self.cycle.gain(rules), rules.up_cwnd_gain),
            Mode::ProbeBw => (self.cycle.gain(rules), CWND_GAIN),
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

    /// Source: draft-ietf-ccwg-bbr, BBRUpdateACKAggregation.
    fn update_aggregation(&mut self, tp: &TcpSock, sample: &RateSample) {
        let window = if self.full_bw_reached { AGGREGATION_ROUNDS } else { 1 };
        if !self.rules.aggregation_by_rounds {
            self.aggregation.update(tp, sample, self.bw(), self.round_start, window);
        } else if let Some(extra) = self.aggregation.extra(tp, sample, self.bw()) {
            let window = if self.full_bw_reached { 2 * window } else { window };
            self.extra_acked.update(window.into(), self.rounds, extra.into());
        }
    }

    fn extra_cwnd(&self, bw: u64) -> u32 {
        if self.rules.aggregation_by_rounds {
            self.extra_acked.get() as u32
        } else {
            self.aggregation.cwnd(bw)
        }
    }

    /// Source: draft-ietf-ccwg-bbr, BBRSetCwnd.
    fn set_cwnd(&mut self, tp: &mut TcpSock, acked: u32) {
        if acked > 0 {
            let bw = self.bw();
            let target = bdp(bw, self.min_rtt_us, self.cwnd_gain) + self.extra_cwnd(bw);
            let target = self.quantize(tp, target);
            let mut cwnd = tp.snd_cwnd;
            let is_early = if self.rules.grows_till_delivered {
                tp.delivered < self.init_cwnd.into()
            } else {
                cwnd < 2 * self.init_cwnd
            };
            if self.full_bw_reached {
                cwnd = cwnd.saturating_add(acked).min(target);
            } else if cwnd < target || is_early {
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
        self.bounds = bounds::Bounds::new(self.rules, tp);
        self.min_rtt_us = tp.min_rtt_us;
        self.probe_rtt_min_us = tp.min_rtt_us;
        self.min_rtt_stamp = tp.jiffies();
        self.probe_rtt_min_stamp = tp.jiffies();
        self.aggregation = AckAggregation::new(tp.now);
        let rtt_us = if tp.srtt_us > 0 { (tp.srtt_us >> 3).max(1) } else { 1_000 };
        let bw = bandwidth::of(u64::from(tp.snd_cwnd), rtt_us);
        tp.pacing_rate = bandwidth::pacing_rate(tp, bw, self.rules.startup_gain);
        tp.request_pacing();
    }

    fn ssthresh(&mut self, tp: &mut TcpSock) -> u32 {
        self.save_cwnd(tp);
        if !self.rules.undo_returns {
            self.bounds.save();
        }
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
        self.update_aggregation(tp, sample);
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
            let bound = match self.rules.timeout_bound {
                TimeoutBound::None => return,
                TimeoutBound::Prior => self.prior_cwnd,
                TimeoutBound::Larger => tp.snd_cwnd.max(self.prior_cwnd),
            };
            self.reset_full_bw(0);
            if !self.is_probing_bandwidth() && self.bounds.inflight_lo == NONE {
                self.bounds.inflight_lo = bound;
            }
            return;
        }
        let recovers = state < CaState::Recovery && tp.ca_state >= CaState::Recovery;
        if self.prev_state == CaState::Loss || (recovers && self.rules.recovery_restores) {
            tp.snd_cwnd = tp.snd_cwnd.max(self.prior_cwnd);
        }
        self.saved &= !recovers;
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

    fn probe_repaired(&mut self, tp: &mut TcpSock, is_app_limited: bool) {
        if self.rules.tail_loss {
            self.on_tail_loss(tp, is_app_limited);
        }
    }

    /// Source: google/bbr v3 `bbr_undo_cwnd`; draft-ietf-ccwg-bbr, BBRHandleSpuriousLossDetection.
    fn undo_cwnd(&mut self, tp: &mut TcpSock) -> u32 {
        self.reset_full_bw(0);
        self.bounds.restore();
        if !self.rules.undo_returns {
            return self.prior_cwnd;
        }
        self.saved = false;
        match self.ended.take() {
            Some(Ended::Startup) => {
                self.mode = Mode::Startup;
                self.full_bw_reached = false;
            }
            Some(Ended::Probe) => {
                self.mode = Mode::ProbeBw;
                self.start_refill(tp, 0);
            }
            None => {}
        }
        tp.snd_cwnd.max(self.prior_cwnd)
    }

    fn min_tso_segs(&self, tp: &TcpSock) -> u32 {
        if self.rules.single_segments { bandwidth::min_tso_segs(tp) } else { 2 }
    }

    fn tso_segs(&self, tp: &TcpSock) -> Option<u32> {
        self.rules.quantum_of_1_ms.then(|| (bandwidth::send_quantum(tp) / u64::from(tp.mss)) as u32)
    }

    fn sndbuf_windows(&self) -> u32 {
        // The window may double in recovery.
        3
    }

    fn trace(&self) -> Vec<(&'static str, f64)> {
        let mut values = vec![
            ("mode", f64::from(self.mode as u8)),
            ("phase", f64::from(self.cycle.phase as u8)),
            ("bw", self.bw() as f64 / bandwidth::BW_UNIT as f64 * 1e6),
            ("min_rtt_us", self.min_rtt_us as f64),
            ("pacing_gain", self.pacing_gain as f64 / UNIT as f64),
            ("cwnd_gain", self.cwnd_gain as f64 / UNIT as f64),
            ("max_bw", self.bounds.max_bw() as f64 / bandwidth::BW_UNIT as f64 * 1e6),
            ("rounds", self.rounds as f64),
            ("full_bw_rounds", f64::from(self.full_bw_rounds)),
            ("full_bw_now", f64::from(u8::from(self.full_bw_now))),
            ("full_bw_reached", f64::from(u8::from(self.full_bw_reached))),
            ("extra_acked", f64::from(self.extra_cwnd(u64::MAX))),
            ("idle_restart", f64::from(u8::from(self.idle_restart))),
            ("probe_too_high", f64::from(u8::from(self.cycle.prev_probe_too_high))),
        ];
        if self.bounds.bw_lo != u64::MAX {
            values.push(("bw_lo", self.bounds.bw_lo as f64 / bandwidth::BW_UNIT as f64 * 1e6));
        }
        let bounds = [("inflight_hi", self.bounds.inflight_hi), ("inflight_lo", self.bounds.inflight_lo)];
        values
            .extend(bounds.into_iter().filter(|b| b.1 != NONE).map(|(name, bound)| (name, f64::from(bound))));
        values
    }
}
