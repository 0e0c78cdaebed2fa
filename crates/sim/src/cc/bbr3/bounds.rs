//! What loss and ECN say about how much may be in flight. Part of [`super::Bbr3`].
//!
//! Source: see [`super`].
//!
//! Departures, validation: see [`super`]; the tests below.

use super::{Bbr3, Ended, MIN_CWND, Mode, NONE, Part, Rules};
use crate::cc::bandwidth::UNIT;
use crate::cc::sock::{CaState, TcpSock};
use crate::cc::{Lost, RateSample};

/// Gain of alpha.
const ECN_GAIN: u64 = UNIT / 16;
/// Part of alpha by which a marked round lowers `inflight_lo`.
const ECN_FACTOR: u64 = UNIT / 3;
/// Marks above this are too many: 50 %.
const ECN_THRESHOLD: u64 = UNIT / 2;
/// Rounds with too many marks that end STARTUP.
const ECN_STARTUP_ROUNDS: u32 = 2;

/// The bounds and what they are made from.
pub struct Bounds {
    rules: &'static Rules,
    /// Of the last probe and the one at hand.
    bw_hi: [u64; 2],
    /// Short-term bound of the bandwidth.
    pub bw_lo: u64,
    /// Short-term bound of what is in flight.
    pub inflight_lo: u32,
    /// Long-term bound of what is in flight.
    pub inflight_hi: u32,
    saved: (u64, u32, u32),
    pub bw_latest: u64,
    pub inflight_latest: u32,
    round_delivered: u64,
    pub round_start: bool,
    pub loss_in_round: bool,
    ecn_in_round: bool,
    pub loss_in_cycle: bool,
    pub ecn_in_cycle: bool,
    loss_events: u32,
    /// Where the last packet marked lost ended.
    lost_end: u64,
    pub ecn_eligible: bool,
    pub alpha: u64,
    alpha_delivered: u64,
    alpha_delivered_ce: u64,
    startup_ecn_rounds: u32,
}

impl Bounds {
    /// Nothing known.
    pub fn of(rules: &'static Rules) -> Self {
        Bounds {
            rules,
            bw_hi: [0; 2],
            bw_lo: u64::MAX,
            inflight_lo: NONE,
            inflight_hi: NONE,
            saved: (0, 0, 0),
            bw_latest: 0,
            inflight_latest: 0,
            round_delivered: 0,
            round_start: false,
            loss_in_round: false,
            ecn_in_round: false,
            loss_in_cycle: false,
            ecn_in_cycle: false,
            loss_events: 0,
            lost_end: u64::MAX,
            ecn_eligible: false,
            alpha: UNIT,
            alpha_delivered: 0,
            alpha_delivered_ce: 0,
            startup_ecn_rounds: 0,
        }
    }

    /// Nothing known, on this connection.
    pub fn new(rules: &'static Rules, tp: &TcpSock) -> Self {
        Bounds {
            round_delivered: tp.delivered + 1,
            alpha_delivered: tp.delivered,
            alpha_delivered_ce: tp.delivered_ce,
            ..Bounds::of(rules)
        }
    }

    pub fn max_bw(&self) -> u64 {
        self.bw_hi[0].max(self.bw_hi[1])
    }

    /// The last probe but one is forgotten.
    pub fn advance_max_bw(&mut self) {
        if self.bw_hi[1] > 0 {
            self.bw_hi = [self.bw_hi[1], 0];
        }
    }

    pub fn reset_lower(&mut self) {
        self.bw_lo = u64::MAX;
        self.inflight_lo = NONE;
    }

    pub fn reset_signals(&mut self) {
        self.loss_in_round = false;
        self.ecn_in_round = false;
        self.loss_in_cycle = false;
        self.ecn_in_cycle = false;
        self.bw_latest = 0;
        self.inflight_latest = 0;
    }

    pub fn save(&mut self) {
        self.saved = (self.bw_lo, self.inflight_lo, self.inflight_hi);
    }

    pub fn restore(&mut self) {
        self.loss_in_round = false;
        self.bw_lo = self.bw_lo.max(self.saved.0);
        self.inflight_lo = self.inflight_lo.max(self.saved.1);
        self.inflight_hi = self.inflight_hi.max(self.saved.2);
    }

    /// `inflight_hi` less the headroom.
    /// Source: google/bbr v3 `bbr_inflight_with_headroom`; draft-ietf-ccwg-bbr, BBRInflightWithHeadroom.
    pub fn with_headroom(&self) -> u32 {
        if self.inflight_hi == NONE {
            return NONE;
        }
        let headroom = self.rules.headroom.of(self.inflight_hi.into()).max(1) as u32;
        self.inflight_hi.saturating_sub(headroom).max(MIN_CWND)
    }

    /// Source: draft-ietf-ccwg-bbr, BBRNoteLoss.
    fn note_loss(&mut self, tp: &TcpSock) {
        if !self.loss_in_round {
            // A whole round from here, to see what the path carries.
            self.round_delivered = tp.delivered;
        }
        self.loss_in_round = true;
        self.loss_in_cycle = true;
    }

    pub fn note_ece(&mut self, ece: bool) {
        self.ecn_in_round |= self.ecn_eligible && ece;
    }

    /// What the path delivered in the last round of loss detection.
    /// Source: draft-ietf-ccwg-bbr, BBRUpdateLatestDeliverySignals.
    pub fn note_delivery(&mut self, tp: &TcpSock, sample: &RateSample, bw: u64) {
        self.round_start = false;
        if sample.interval_us == 0 || sample.acked_sacked == 0 {
            return;
        }
        self.bw_latest = self.bw_latest.max(bw);
        self.inflight_latest = self.inflight_latest.max(sample.delivered);
        if sample.prior_delivered >= self.round_delivered {
            self.round_delivered = tp.delivered;
            self.round_start = true;
        }
    }

    pub fn end_of_ack(&mut self, sample: &RateSample, bw: u64) {
        if self.round_start && !self.rules.latest_at_once && !(self.rules.tail_loss && sample.acks_probe) {
            self.bw_latest = bw;
            self.inflight_latest = sample.delivered;
        }
        self.loss_in_cycle |= sample.interval_lost > 0;
        self.ecn_in_cycle |= sample.interval_ce > 0;
    }

    /// Source: google/bbr v3 `bbr_is_inflight_too_high`; draft-ietf-ccwg-bbr, IsInflightTooHigh.
    pub fn is_too_high(&self, tx_in_flight: u32, lost: u32, delivered: u32, marked: u32) -> bool {
        let marks = ((u64::from(delivered) * ECN_THRESHOLD) >> 8) + u64::from(self.rules.marks_by_route);
        (lost > 0 && tx_in_flight > 0 && self.rules.loss_threshold.is_exceeded(lost, tx_in_flight))
            || (self.ecn_eligible && marked > 0 && delivered > 0 && u64::from(marked) >= marks)
    }

    fn is_sample_too_high(&self, tp: &TcpSock, sample: &RateSample) -> bool {
        (sample.interval_lost > 0 && self.any_loss_is_too_much(tp))
            || self.is_too_high(
                sample.tx_in_flight,
                sample.interval_lost,
                sample.delivered,
                sample.interval_ce,
            )
    }

    fn any_loss_is_too_much(&self, tp: &TcpSock) -> bool {
        self.rules.any_loss_without_sack && tp.no_sack
    }

    /// The short-term bounds after a round.
    /// Source: google/bbr v3 `bbr_adapt_lower_bounds`; draft-ietf-ccwg-bbr, BBRAdaptLowerBounds.
    pub fn lower(&mut self, cwnd: u32) {
        let mut by_ecn = NONE;
        if self.ecn_in_round {
            if self.inflight_lo == NONE {
                self.inflight_lo = cwnd;
            }
            let cut = UNIT - ((self.alpha * ECN_FACTOR) >> 8);
            by_ecn = ((u64::from(self.inflight_lo) * cut) >> 8) as u32;
        }
        if self.loss_in_round {
            if self.bw_lo == u64::MAX {
                self.bw_lo = self.max_bw();
            }
            if self.inflight_lo == NONE {
                self.inflight_lo = cwnd;
            }
            let cut = self.rules.loss_cut;
            self.bw_lo = self.bw_latest.max(cut.of(self.bw_lo));
            self.inflight_lo = self.inflight_latest.max(cut.of(self.inflight_lo.into()) as u32);
        }
        self.inflight_lo = self.inflight_lo.min(by_ecn);
        self.bw_lo = self.bw_lo.max(1);
    }
}

/// How much was in flight where loss crossed the threshold: up to the lost packet, of `tx_in_flight` with it
/// and of which `lost` were lost, it included.
/// Source: google/bbr v3 `bbr_is_inflight_too_high`; draft-ietf-ccwg-bbr, BBRInflightAtLoss.
pub fn inflight_at_threshold(rules: &Rules, tx_in_flight: u32, lost: u32) -> u32 {
    let (Some(before), Some(lost_before)) = (tx_in_flight.checked_sub(1), lost.checked_sub(1)) else {
        return NONE;
    };
    let Part { num, den } = rules.loss_threshold;
    let (num, den) = (u64::from(num), u64::from(den));
    if rules.exact_loss_point {
        // before + (num / den * before - lost_before) / (1 - num / den), of which the second part may be negative
        return (u64::from(before.saturating_sub(lost_before)) * den / (den - num)) as u32;
    }
    let budget = (u64::from(before) * num).div_ceil(den);
    let prefix = budget.saturating_sub(lost_before.into()) * den / (den - num);
    before + prefix as u32
}

impl Bbr3 {
    /// Source: google/bbr v3 `bbr_update_ecn_alpha`, as DCTCP's (RFC 8257, section 3.3).
    pub(super) fn update_ecn_alpha(&mut self, tp: &TcpSock) {
        let b = &mut self.bounds;
        let most = self.ecn_max_rtt_us;
        let told = tp.accecn || !b.rules.marks_by_route;
        b.ecn_eligible |= self.ecn && told && (self.min_rtt_us <= most || most == 0);
        let delivered = tp.delivered - b.alpha_delivered;
        if delivered == 0 || (!b.ecn_eligible && b.rules.marks_by_route) {
            return;
        }
        let ratio = ((tp.delivered_ce - b.alpha_delivered_ce) << 8) / delivered;
        b.alpha = ((((UNIT - ECN_GAIN) * b.alpha) >> 8) + ((ECN_GAIN * ratio) >> 8)).min(UNIT);
        b.alpha_delivered = tp.delivered;
        b.alpha_delivered_ce = tp.delivered_ce;
        if self.full_bw_reached || !b.ecn_eligible {
            return;
        }
        b.startup_ecn_rounds = if ratio >= ECN_THRESHOLD { b.startup_ecn_rounds + 1 } else { 0 };
        if b.startup_ecn_rounds >= ECN_STARTUP_ROUNDS {
            self.end_startup(tp);
        }
    }

    /// `bbr_update_congestion_signals`
    pub(super) fn update_signals(&mut self, tp: &TcpSock, sample: &RateSample) {
        if sample.interval_us == 0 || sample.acked_sacked == 0 {
            return;
        }
        let probing = self.is_probing_bandwidth();
        let b = &mut self.bounds;
        if !sample.is_app_limited || self.sample_bw >= b.max_bw() {
            b.bw_hi[1] = b.bw_hi[1].max(self.sample_bw);
        }
        b.loss_in_round |= sample.losses > 0;
        if !b.round_start {
            return;
        }
        if !probing {
            b.lower(tp.snd_cwnd);
        }
        b.loss_in_round = false;
        b.ecn_in_round = false;
        if b.rules.latest_at_once {
            b.bw_latest = self.sample_bw;
            b.inflight_latest = sample.delivered;
        }
    }

    /// STARTUP ends, too, when a round of Recovery lost too much.
    /// Source: draft-ietf-ccwg-bbr, BBRCheckStartupHighLoss.
    pub(super) fn check_startup_loss(&mut self, tp: &TcpSock, sample: &RateSample) {
        if self.full_bw_reached {
            return;
        }
        let b = &mut self.bounds;
        if sample.losses > 0 && !b.rules.counts_ranges {
            b.loss_events = (b.loss_events + 1).min(0xf);
        }
        if !b.round_start {
            return;
        }
        let events = std::mem::take(&mut b.loss_events);
        let most = if b.any_loss_is_too_much(tp) { 1 } else { b.rules.startup_losses };
        if tp.ca_state == CaState::Recovery && events >= most && b.is_sample_too_high(tp, sample) {
            self.end_startup(tp);
            self.ended = Some(Ended::Startup);
        }
    }

    pub(super) fn end_startup(&mut self, tp: &TcpSock) {
        self.full_bw_reached = true;
        let bdp = self.bdp_of(tp, self.bounds.max_bw());
        let latest = if self.rules.bound_keeps_latest { self.bounds.inflight_latest } else { 0 };
        self.bounds.inflight_hi = bdp.max(latest);
    }

    /// A packet was marked lost: from a probe it tells where the probe went too far.
    /// Source: draft-ietf-ccwg-bbr, BBRHandleLostPacket.
    pub(super) fn on_lost(&mut self, tp: &TcpSock, lost: &Lost) {
        let b = &mut self.bounds;
        if self.rules.undo_returns && !self.saved {
            self.saved = true;
            self.ended = None;
            b.save();
        }
        if self.rules.counts_ranges {
            b.loss_events += u32::from(lost.seq != b.lost_end);
            b.lost_end = lost.end;
        }
        b.note_loss(tp);
        let too_high = b.any_loss_is_too_much(tp) || b.is_too_high(lost.tx_in_flight, lost.lost, 0, 0);
        if self.cycle.probe_samples && too_high {
            let in_flight = inflight_at_threshold(self.rules, lost.tx_in_flight, lost.lost);
            self.inflight_is_too_high(tp, in_flight, lost.is_app_limited);
        }
    }

    /// One packet was lost at the end of a flight: of a probe it tells whether that went too far.
    /// Source: google/bbr v3 `bbr_run_loss_probe_recovery`.
    pub(super) fn on_tail_loss(&mut self, tp: &TcpSock, is_app_limited: bool) {
        let b = &mut self.bounds;
        b.note_loss(tp);
        let tx_in_flight = b.inflight_latest + 1;
        if self.cycle.probe_samples && b.is_too_high(tx_in_flight, 1, 0, 0) {
            self.inflight_is_too_high(tp, tx_in_flight, is_app_limited);
        }
    }

    /// Source: google/bbr v3 `bbr_handle_inflight_too_high`; draft-ietf-ccwg-bbr, BBRHandleInflightTooHigh.
    fn inflight_is_too_high(&mut self, tp: &TcpSock, tx_in_flight: u32, app_limited: bool) {
        self.cycle.prev_probe_too_high = true;
        // Once per probe.
        self.cycle.probe_samples = false;
        if !app_limited {
            let target = self.rules.loss_cut.of(self.target_inflight(tp).into());
            self.bounds.inflight_hi = tx_in_flight.max(target as u32);
        }
        if self.is_probing_up() {
            self.start_down(tp);
            self.ended = Some(Ended::Probe);
        }
    }

    /// The long-term bound after an ACK: lower if a probe lost too much, higher where more proved safe.
    /// Source: google/bbr v3 `bbr_adapt_upper_bounds`.
    pub(super) fn adapt_upper(&mut self, tp: &TcpSock, sample: &RateSample) {
        if self.bounds.is_sample_too_high(tp, sample) {
            if self.cycle.probe_samples && self.rules.acks_tell_loss {
                self.inflight_is_too_high(tp, sample.tx_in_flight, sample.is_app_limited);
            }
            return;
        }
        if self.bounds.inflight_hi == NONE {
            return;
        }
        self.bounds.inflight_hi = self.bounds.inflight_hi.max(sample.tx_in_flight);
        if self.is_probing_up() {
            self.raise_inflight_hi(tp, sample.acked_sacked);
        }
    }

    /// Whether the flow looks for more, so that loss says nothing about what it had.
    pub(super) fn is_probing_bandwidth(&self) -> bool {
        self.mode == Mode::Startup || self.cycle_probes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Path;
    use super::*;

    #[test]
    fn a_lossy_round_while_cruising_lowers_the_short_term_bounds_to_70_percent() {
        let mut path = Path::cruising();
        let (cwnd, bw) = (path.tp.snd_cwnd, path.bbr.bounds.max_bw());
        let mut sample = path.sample(2, 1, false);
        sample.losses = 1;
        path.take(1_000, &sample);
        assert_eq!(path.bbr.bounds.inflight_lo, NONE, "the round is not over");
        // two rounds with a tenth of the bandwidth: the latest signals no longer hold the bounds up
        path.bbr.bounds.loss_in_round = false;
        path.bbr.bounds.bw_latest = 0;
        path.bbr.bounds.inflight_latest = 0;
        let mut sample = path.sample(2, 1, true);
        sample.losses = 1;
        path.take(1_000, &sample);
        // 180/256
        assert_eq!(path.bbr.bounds.bw_lo, (bw * 180) >> 8);
        assert_eq!(path.bbr.bounds.inflight_lo, cwnd * 180 / 256);
        assert!(path.tp.snd_cwnd <= path.bbr.bounds.inflight_lo);
    }

    #[test]
    fn cruising_leaves_15_percent_of_inflight_hi() {
        let mut path = Path::cruising();
        path.bbr.bounds.inflight_hi = 300;
        // 300 - (300 * 38 >> 8 = 44)
        assert_eq!(path.bbr.bounds.with_headroom(), 256);
        path.ack(1_000, 2, 10, false);
        assert!(path.tp.snd_cwnd <= 256);
    }

    #[test]
    fn two_percent_of_loss_in_a_probe_end_it_and_set_the_bound() {
        let mut path = Path::probing_up();
        // 5/256 of 256 packets are 5
        for (lost, too_high) in [(5, false), (6, true)] {
            assert_eq!(path.bbr.bounds.is_too_high(256, lost, 0, 0), too_high);
        }
        assert!(path.bbr.cycle.probe_samples);
        path.bbr.on_lost(&path.tp, &Lost { tx_in_flight: 256, lost: 5, ..Lost::default() });
        assert!(path.bbr.is_probing_up());
        path.bbr.on_lost(&path.tp, &Lost { tx_in_flight: 257, lost: 6, ..Lost::default() });
        assert!(!path.bbr.is_probing_up());
        // the 256 before it allow for 5, which were lost already: no part of this packet
        assert_eq!(path.bbr.bounds.inflight_hi, 256);
        // and only once
        path.bbr.on_lost(&path.tp, &Lost { tx_in_flight: 100, lost: 50, ..Lost::default() });
        assert_eq!(path.bbr.bounds.inflight_hi, 256);
    }

    #[test]
    fn a_probe_never_lowers_the_bound_below_70_percent_of_the_target() {
        let mut path = Path::probing_up();
        let target = path.bbr.target_inflight(&path.tp);
        path.bbr.on_lost(&path.tp, &Lost { tx_in_flight: 20, lost: 10, ..Lost::default() });
        assert_eq!(path.bbr.bounds.inflight_hi, target * 180 / 256);
    }

    #[test]
    fn marks_count_only_where_the_route_promises_them_and_up_to_5_ms() {
        for (ecn_low, rtt_us, eligible) in [(false, 1_000, false), (true, 5_001, false), (true, 5_000, true)]
        {
            let mut path = Path::cruising();
            path.bbr.ecn = ecn_low;
            path.bbr.min_rtt_us = rtt_us;
            path.tp.accecn = true;
            path.tp.delivered += 100;
            path.bbr.update_ecn_alpha(&path.tp);
            assert_eq!(path.bbr.bounds.ecn_eligible, eligible, "{ecn_low} {rtt_us}");
            // no marks among the 100: 15/16 of 1
            assert_eq!(path.bbr.bounds.alpha, if eligible { 240 } else { 256 });
        }
    }
}
