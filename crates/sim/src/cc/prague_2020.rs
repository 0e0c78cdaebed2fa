//! `prague@2020-04`, `prague@2020-08` and `prague@2021-06`: TCP Prague of the published experiments.
//!
//! Source: L4STeam/linux `net/ipv4/tcp_prague.c` at e741f5ac (8 April 2020, `prague@2020-04`) and
//! b256daed (4 August 2020, `prague@2020-08`), and the module of June 2021 (version 0.6, `prague@2021-06`); draft-briscoe-iccrg-prague-congestion-control.
//! [`super::prague_2019`] has the versions before, [`super::prague`] the present one. Needs AccECN; without it the connection runs as `reno` ("prague-reno"): no pacing, no ECT(1).
//!
//! Every ACK moves the window by at most one packet: growth and reductions are gathered in `cwnd_cnt`
//! (1 packet is 2^20) and worked off one packet per ACK, which also takes ssthresh down. The window grows during
//! a reduction too: only the marked packets themselves do not count. PRR is not used.
//!
//! The versions differ in the answer to loss: in April nothing works `cwnd_cnt` off during slow start, so
//! that loss does not end it; in August growth stops until the state is Open again (`in_loss`). June 2021 is August but for two
//! defaults, and a flow that its window does not limit does not grow, paced or not.
//!
//! | parameter | default | meaning |
//! |---|---|---|
//! | `alpha_mode` | 1 | alpha before the first mark, 0 or 1 |
//! | `rtt_scaling` | none; rate in 2021-06 | `none`, `rate`, `scalable`, `additive`: how growth depends on the RTT ([`super::rtt_scaling`]) |
//! | `rtt_target` | 15ms; 25ms in 2021-06 | the RTT whose growth `rate` and `additive` imitate, 128 us to 1 s |
//! | `rtt_transition` | 100; 500 in 2021-06 | rounds out of slow start before scaling begins |
//! | `ecn_fallback` | 1 in 2020-04, else 0 | reduce more behind a classic AQM ([`super::classic_ecn`]) |
//!
//! Departures: none known.
//!
//! Validation: the tests below, `tests/window_model.rs` (mean windows under random marks),
//! `tests/cc_hooks.rs` (any sequence of hooks), `tests/claims/test_versions.py` (what was published of each version).

use super::classic_ecn::{ClassicEcn, Units};
use super::reno::Reno;
use super::rtt_scaling::{Mode, RttScaling};
use super::{CaEvent, CcEnv, CcError, CongestionControl, RateSample};
use crate::base::units::Time;
use crate::cc::sock::{CaState, Pacing, TcpSock};
use bakeoff_document::cc::CcWords;

/// One packet in `cwnd_cnt`, and 1.0 in a fraction of marks.
const ONE: i64 = 1 << 20;
/// Gain of alpha: 1/16. `alpha` is stored 16 times as large.
const GAIN_SHIFT: u32 = 4;
/// alpha = 1.0
const MAX_ALPHA: u64 = (ONE as u64) << GAIN_SHIFT;
/// Least window in packets.
const MIN_CWND: u32 = 2;
/// Headers of IP and TCP with timestamps: the MTU is this and a segment.
const HEADERS: u32 = 52;
/// A burst is 1/4096 s of the pacing rate.
const BURST_SHIFT: u32 = 12;

/// Which module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// e741f5ac
    Apr2020,
    /// b256daed
    Aug2020,
    /// Version 0.6 of the module.
    Jun2021,
}

/// Parameters and state.
pub struct Prague2020 {
    version: Version,
    scaling: RttScaling,
    ecn_fallback: bool,

    /// AccECN was not negotiated.
    as_reno: bool,
    /// Window owed (negative) or earned, in 2^-20 packets. Not `snd_cwnd_cnt`, which the core clears.
    cwnd_cnt: i64,
    /// Smoothed fraction of marks, times 2^24.
    alpha: u64,
    saw_ce: bool,
    in_loss: bool,
    loss_cwnd: u32,
    loss_cwnd_cnt: i64,
    /// Growth per window of ACKs in 2^-20 packets.
    ai_per_rtt: u64,
    next_seq: u64,
    old_delivered: u64,
    old_delivered_ce: u64,
    /// Last update of alpha, last reduction.
    alpha_stamp: Time,
    cwr_stamp: Option<Time>,
    /// Packets per burst.
    max_burst: u32,
    classic_ecn: ClassicEcn,
}

const PARAMETERS: &[&str] = &["alpha_mode", "rtt_scaling", "rtt_target", "rtt_transition", "ecn_fallback"];

impl Prague2020 {
    /// With the version's defaults.
    pub fn new(version: Version) -> Self {
        let scaling = match version {
            Version::Apr2020 | Version::Aug2020 => RttScaling::new(Mode::None, Time::from_ms(15), 100),
            Version::Jun2021 => RttScaling::new(Mode::Rate, Time::from_ms(25), 500),
        };
        Prague2020 {
            version,
            scaling,
            ecn_fallback: version == Version::Apr2020,
            as_reno: false,
            cwnd_cnt: 0,
            alpha: MAX_ALPHA,
            saw_ce: false,
            in_loss: false,
            loss_cwnd: 0,
            loss_cwnd_cnt: 0,
            ai_per_rtt: ONE as u64,
            next_seq: 0,
            old_delivered: 0,
            old_delivered_ce: 0,
            alpha_stamp: Time::ZERO,
            cwr_stamp: None,
            max_burst: 1,
            classic_ecn: ClassicEcn::new(0, Units::OF_2020),
        }
    }

    /// From the version and the words after the name.
    pub fn parse(words: &mut CcWords, _: CcEnv) -> Result<Self, CcError> {
        let version = match words.version() {
            Some("2020-04") => Version::Apr2020,
            Some("2021-06") => Version::Jun2021,
            _ => Version::Aug2020,
        };
        let mut c = Prague2020::new(version);
        while let Some(parameter) = words.parameter(PARAMETERS)? {
            match parameter {
                "alpha_mode" => c.alpha = if words.flag()? { MAX_ALPHA } else { 0 },
                "ecn_fallback" => c.ecn_fallback = words.flag()?,
                _ => c.scaling.parse(parameter, words)?,
            }
        }
        Ok(c)
    }

    /// A: the window.
    fn update_cwnd(&mut self, tp: &mut TcpSock, sample: &RateSample) {
        let mut acked = i64::from(sample.acked_sacked);
        if sample.ece {
            self.saw_ce = true;
            acked -= i64::from(sample.delivered_ce);
        }
        if acked > 0 && !self.in_loss && self.may_grow(tp) {
            let mut acked = acked as u32;
            if tp.in_slow_start() {
                acked = tp.slow_start(acked);
                if acked == 0 {
                    return;
                }
            }
            self.earn(tp, acked);
        }
        self.step(tp);
    }

    /// Whether the window limits the flow. In 2020 the pacing timer may have stopped it just before the
    /// window did, so that waiting data count as well.
    fn may_grow(&self, tp: &TcpSock) -> bool {
        let paced = tp.pacing == Pacing::Needed && tp.write_queue;
        tp.cwnd_limited() || (paced && self.version != Version::Jun2021)
    }

    /// Additive increase for `acked` unmarked packets.
    fn earn(&mut self, tp: &TcpSock, acked: u32) {
        let acked = u64::from(acked);
        let cwnd = u64::from(tp.snd_cwnd.max(1));
        let increase = (acked * self.ai_per_rtt + cwnd / 2) / cwnd;
        self.cwnd_cnt = self.cwnd_cnt.saturating_add(increase.max(acked) as i64);
    }

    /// Works `cwnd_cnt` off: at most one packet per ACK.
    fn step(&mut self, tp: &mut TcpSock) {
        if self.cwnd_cnt <= -ONE {
            self.cwnd_cnt += ONE;
            tp.snd_cwnd = tp.snd_cwnd.saturating_sub(1);
            if tp.snd_cwnd < MIN_CWND {
                tp.snd_cwnd = MIN_CWND;
                self.cwnd_cnt = 0;
            }
            tp.snd_ssthresh = tp.snd_cwnd;
        } else if self.cwnd_cnt >= ONE {
            self.cwnd_cnt -= ONE;
            tp.snd_cwnd = tp.snd_cwnd.saturating_add(1).min(tp.snd_cwnd_clamp);
        }
    }

    /// B: alpha, once per round.
    fn update_alpha(&mut self, tp: &TcpSock) {
        if tp.snd_una < self.next_seq || !self.scaling.passed_since(tp, Some(self.alpha_stamp)) {
            return;
        }
        if self.saw_ce {
            if self.ecn_fallback {
                self.classic_ecn.on_round(tp.min_rtt_us);
            }
            let delivered = (tp.delivered - self.old_delivered).max(1);
            let marked = tp.delivered_ce - self.old_delivered_ce;
            let fraction = (marked << 20) / delivered;
            self.alpha = (self.alpha - (self.alpha >> GAIN_SHIFT) + fraction).min(MAX_ALPHA);
            self.alpha_stamp = tp.now;
        }
        self.scaling.on_round(tp);
        self.new_round(tp);
    }

    fn new_round(&mut self, tp: &TcpSock) {
        self.next_seq = tp.snd_nxt;
        self.old_delivered = tp.delivered;
        self.old_delivered_ce = tp.delivered_ce;
        self.ai_per_rtt = self.scaling.ai(tp);
    }

    /// C: the rate of one window per RTT, twice that early in slow start.
    fn update_pacing(&mut self, tp: &mut TcpSock) {
        let mtu = u64::from(tp.mss + HEADERS);
        let window = u64::from(tp.snd_cwnd.max(tp.packets_in_flight()));
        let mut rate = mtu * 8_000_000;
        if tp.snd_cwnd < tp.snd_ssthresh / 2 {
            rate <<= 1;
        }
        rate = rate.checked_div(tp.srtt_us).unwrap_or(rate);
        tp.pacing_rate = rate.saturating_mul(window).min(tp.max_pacing_rate);
        let burst = (tp.pacing_rate / mtu) >> BURST_SHIFT;
        self.max_burst = burst.clamp(1, u32::MAX.into()) as u32;
    }

    /// Entry to CWR: half of alpha.
    fn enter_cwr(&mut self, tp: &TcpSock) {
        if !self.scaling.passed_since(tp, self.cwr_stamp) {
            return;
        }
        self.cwr_stamp = Some(tp.now);
        let mut alpha = self.alpha;
        if self.ecn_fallback {
            alpha = alpha.max(self.classic_ecn.least_alpha() << GAIN_SHIFT);
        }
        // alpha / 2 of the window, rounded, from 2^-24 to 2^-20
        let half = 1 << GAIN_SHIFT;
        let reduction = (alpha * u64::from(tp.snd_cwnd) + half) >> (GAIN_SHIFT + 1);
        self.cwnd_cnt = self.cwnd_cnt.saturating_sub(reduction as i64);
    }

    /// Entry to Recovery, or an RTO: half of what is left when `cwnd_cnt` is worked off.
    fn enter_loss(&mut self, tp: &TcpSock) {
        self.loss_cwnd = tp.snd_cwnd;
        self.loss_cwnd_cnt = self.cwnd_cnt;
        let half = (i64::from(tp.snd_cwnd) * ONE / 2).saturating_add(self.cwnd_cnt >> 1);
        self.cwnd_cnt = self.cwnd_cnt.saturating_sub(half);
        self.in_loss = self.version != Version::Apr2020;
    }
}

#[cfg(test)]
impl Prague2020 {
    /// `cwnd_cnt`, alpha, whether a loss is being repaired, growth and the score, for the comparison with the kernel module.
    pub(super) fn kept(&self) -> String {
        let score = (self.classic_ecn.score() * ONE as f64) as i64;
        let in_loss = u8::from(self.in_loss);
        format!("{} {} {in_loss} {} {score}", self.cwnd_cnt, self.alpha, self.ai_per_rtt)
    }

    /// Scaled as this, or as the version is, from the second round on.
    pub(super) fn soon_scaled(mut self, mode: Option<Mode>) -> Self {
        self.scaling.mode = mode.unwrap_or(self.scaling.mode);
        self.scaling.transition = 2;
        self
    }
}

impl CongestionControl for Prague2020 {
    fn init(&mut self, tp: &mut TcpSock) {
        self.as_reno = !tp.accecn;
        if self.as_reno {
            return;
        }
        tp.request_pacing();
        self.classic_ecn = ClassicEcn::new(tp.srtt_us >> 3, Units::OF_2020);
        self.alpha_stamp = tp.now;
        self.new_round(tp);
    }

    fn ssthresh(&mut self, tp: &mut TcpSock) -> u32 {
        if self.as_reno {
            return Reno::half(tp);
        }
        // The reduction itself waits in cwnd_cnt.
        let ssthresh = match self.version {
            Version::Apr2020 => tp.snd_ssthresh.max(tp.snd_cwnd),
            Version::Aug2020 | Version::Jun2021 => tp.snd_ssthresh,
        };
        if self.ecn_fallback {
            self.classic_ecn.on_reduction(ssthresh);
        }
        ssthresh
    }

    fn cong_avoid(&mut self, tp: &mut TcpSock, acked: u32) {
        Reno::grow(tp, acked);
    }

    fn has_cong_control(&self) -> bool {
        !self.as_reno
    }

    fn cong_control(&mut self, tp: &mut TcpSock, sample: &RateSample) {
        self.update_cwnd(tp, sample);
        self.update_alpha(tp);
        self.update_pacing(tp);
    }

    fn set_state(&mut self, tp: &mut TcpSock, state: CaState) {
        if self.as_reno || state == tp.ca_state {
            return;
        }
        match state {
            CaState::Cwr => self.enter_cwr(tp),
            CaState::Recovery => self.enter_loss(tp),
            CaState::Open => self.in_loss = false,
            CaState::Disorder | CaState::Loss => {}
        }
    }

    fn cwnd_event(&mut self, tp: &mut TcpSock, event: CaEvent) {
        if event == CaEvent::Loss && !self.as_reno {
            self.enter_loss(tp);
        }
    }

    fn pkts_acked(&mut self, _tp: &mut TcpSock, _acked: u32, rtt_us: Option<u64>) {
        if let Some(rtt_us) = rtt_us
            && self.ecn_fallback
        {
            self.classic_ecn.on_rtt(rtt_us);
        }
    }

    fn undo_cwnd(&mut self, tp: &mut TcpSock) -> u32 {
        if self.as_reno {
            return Reno.undo_cwnd(tp);
        }
        let since = self.cwnd_cnt.saturating_sub(self.loss_cwnd_cnt);
        self.cwnd_cnt = self.cwnd_cnt.saturating_add(since);
        tp.snd_cwnd.max(self.loss_cwnd)
    }

    fn tso_segs(&self, _tp: &TcpSock) -> Option<u32> {
        (!self.as_reno).then(|| self.max_burst.max(2))
    }

    fn needs_ecn(&self) -> bool {
        !self.as_reno
    }

    fn ect1(&self) -> bool {
        !self.as_reno
    }

    fn trace(&self) -> Vec<(&'static str, f64)> {
        let one = ONE as f64;
        vec![
            ("alpha", self.alpha as f64 / MAX_ALPHA as f64),
            ("cwnd_cnt", self.cwnd_cnt as f64 / one),
            ("ai_per_rtt", self.ai_per_rtt as f64 / one),
            ("in_loss", f64::from(u8::from(self.in_loss))),
            ("classic_ecn", self.classic_ecn.score()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection with AccECN, limited by its window, in slow start, RTT 20 ms.
    fn open(version: Version, cwnd: u32) -> (Prague2020, TcpSock) {
        let mut tp = TcpSock::new(1448, 250);
        tp.accecn = true;
        tp.snd_cwnd = cwnd;
        tp.is_cwnd_limited = true;
        tp.srtt_us = 20_000 << 3;
        tp.min_rtt_us = 20_000;
        let mut prague = Prague2020::new(version);
        prague.init(&mut tp);
        (prague, tp)
    }

    /// The same in congestion avoidance.
    fn avoiding(version: Version, cwnd: u32) -> (Prague2020, TcpSock) {
        let (prague, mut tp) = open(version, cwnd);
        tp.snd_ssthresh = cwnd;
        (prague, tp)
    }

    /// An ACK of `acked` packets, `marked` of them with CE.
    fn ack(prague: &mut Prague2020, tp: &mut TcpSock, acked: u32, marked: u32) {
        tp.delivered += u64::from(acked);
        tp.delivered_ce += u64::from(marked);
        let sample = RateSample {
            acked_sacked: acked,
            delivered_ce: marked,
            ece: marked > 0,
            ..RateSample::default()
        };
        prague.cong_control(tp, &sample);
    }

    /// The state machine's part.
    fn go(prague: &mut Prague2020, tp: &mut TcpSock, state: CaState) {
        prague.set_state(tp, state);
        tp.ca_state = state;
    }

    fn packets(cwnd_cnt: i64) -> f64 {
        cwnd_cnt as f64 / ONE as f64
    }

    #[test]
    fn alpha_converges_to_the_fraction_of_marks_by_a_sixteenth_per_round() {
        let (mut prague, mut tp) = avoiding(Version::Aug2020, 16);
        let mut expected = 1.0;
        for round in 1..=200 {
            tp.snd_una = tp.snd_nxt;
            tp.snd_nxt += 16 * 1448;
            prague.cwnd_cnt = 0;
            ack(&mut prague, &mut tp, 16, 4);
            expected += (0.25 - expected) / 16.0;
            let alpha = prague.alpha as f64 / MAX_ALPHA as f64;
            // each round truncates less than 2^-24, of which at most 16 rounds' worth remain
            let truncated = 16.0 / f64::from(1 << 24);
            assert!((alpha - expected).abs() <= truncated, "{round}: {alpha}");
        }
        assert!((expected - 0.25).abs() < 1e-5);
    }

    #[test]
    fn alpha_mode_0_begins_at_0_and_the_first_mark_takes_nothing() {
        let mut words = CcWords::new("prague@2020-08 alpha_mode 0");
        let Ok(mut prague) = Prague2020::parse(&mut words, CcEnv::default()) else {
            panic!("it was refused")
        };
        let (_, mut tp) = avoiding(Version::Aug2020, 100);
        prague.init(&mut tp);
        go(&mut prague, &mut tp, CaState::Cwr);
        assert_eq!((prague.alpha, prague.cwnd_cnt), (0, 0));
    }

    #[test]
    fn alpha_stays_one_until_the_first_mark_and_then_decays_without_marks() {
        let (mut prague, mut tp) = avoiding(Version::Aug2020, 16);
        for _ in 0..10 {
            tp.snd_una = tp.snd_nxt;
            tp.snd_nxt += 16 * 1448;
            ack(&mut prague, &mut tp, 16, 0);
        }
        assert_eq!(prague.alpha, MAX_ALPHA);
        prague.saw_ce = true;
        tp.snd_una = tp.snd_nxt;
        ack(&mut prague, &mut tp, 16, 0);
        assert_eq!(prague.alpha, MAX_ALPHA * 15 / 16);
    }

    #[test]
    fn the_first_mark_halves_a_window_in_slow_start_once_an_ack_is_all_marked() {
        let (mut prague, mut tp) = open(Version::Aug2020, 100);
        assert_eq!(prague.ssthresh(&mut tp), tp.snd_ssthresh);
        go(&mut prague, &mut tp, CaState::Cwr);
        assert_eq!(prague.cwnd_cnt, -50 * ONE);
        // half marked: the other packet still goes through slow start
        ack(&mut prague, &mut tp, 2, 1);
        assert_eq!((tp.snd_cwnd, prague.cwnd_cnt), (101, -50 * ONE));
        assert!(tp.in_slow_start());
        // all marked
        ack(&mut prague, &mut tp, 2, 2);
        assert_eq!((tp.snd_cwnd, tp.snd_ssthresh), (100, 100));
        // from now on one packet per ACK, also on unmarked ones, to 101 - 50
        for expected in (51..100).rev() {
            ack(&mut prague, &mut tp, 1, 1);
            assert_eq!((tp.snd_cwnd, tp.snd_ssthresh), (expected, expected));
        }
        assert_eq!(prague.cwnd_cnt, 0);
        ack(&mut prague, &mut tp, 1, 1);
        assert_eq!(tp.snd_cwnd, 51);
    }

    #[test]
    fn growth_is_one_packet_per_window_of_unmarked_packets_in_every_state() {
        for state in [CaState::Open, CaState::Cwr] {
            let (mut prague, mut tp) = avoiding(Version::Aug2020, 50);
            prague.alpha = 0;
            go(&mut prague, &mut tp, state);
            for _ in 0..50 {
                assert_eq!(tp.snd_cwnd, 50);
                ack(&mut prague, &mut tp, 2, 1);
            }
            // 50 * round(2^20 / 50) = 2^20 + 24
            assert_eq!((tp.snd_cwnd, prague.cwnd_cnt), (51, 24), "{state:?}");
        }
    }

    #[test]
    fn a_reduction_is_half_of_alpha_rounded() {
        let (mut prague, mut tp) = avoiding(Version::Aug2020, 33);
        prague.alpha = MAX_ALPHA / 10;
        go(&mut prague, &mut tp, CaState::Cwr);
        assert!((packets(prague.cwnd_cnt) + 1.65).abs() < 1e-5);
        // CWR while in CWR is no second one
        go(&mut prague, &mut tp, CaState::Cwr);
        assert!((packets(prague.cwnd_cnt) + 1.65).abs() < 1e-5);
    }

    #[test]
    fn loss_takes_half_in_steps_and_august_does_not_grow_before_open() {
        let (mut prague, mut tp) = avoiding(Version::Aug2020, 40);
        go(&mut prague, &mut tp, CaState::Recovery);
        for expected in (20..40).rev() {
            ack(&mut prague, &mut tp, 2, 0);
            assert_eq!(tp.snd_cwnd, expected);
        }
        for _ in 0..100 {
            ack(&mut prague, &mut tp, 2, 0);
        }
        assert_eq!((tp.snd_cwnd, prague.cwnd_cnt), (20, 0));
        go(&mut prague, &mut tp, CaState::Open);
        for _ in 0..10 {
            ack(&mut prague, &mut tp, 2, 0);
        }
        assert_eq!(tp.snd_cwnd, 21);
    }

    #[test]
    fn loss_halves_what_a_pending_reduction_leaves() {
        let (mut prague, mut tp) = avoiding(Version::Aug2020, 40);
        prague.alpha = MAX_ALPHA / 2;
        go(&mut prague, &mut tp, CaState::Cwr);
        assert_eq!(prague.cwnd_cnt, -10 * ONE);
        go(&mut prague, &mut tp, CaState::Recovery);
        // (40 - 10) / 2 = 15
        assert_eq!(prague.cwnd_cnt, -25 * ONE);
    }

    #[test]
    fn loss_ends_slow_start_in_august_and_not_in_april() {
        for (version, expected) in [(Version::Apr2020, 40 + 60), (Version::Aug2020, 20)] {
            let (mut prague, mut tp) = open(version, 40);
            tp.snd_ssthresh = prague.ssthresh(&mut tp);
            go(&mut prague, &mut tp, CaState::Recovery);
            for _ in 0..30 {
                ack(&mut prague, &mut tp, 2, 0);
            }
            assert_eq!(tp.snd_cwnd, expected, "{version:?}");
        }
    }

    #[test]
    fn an_rto_costs_half_too_and_the_window_ends_at_two_at_least() {
        let (mut prague, mut tp) = avoiding(Version::Aug2020, 40);
        prague.cwnd_event(&mut tp, CaEvent::Loss);
        go(&mut prague, &mut tp, CaState::Loss);
        tp.snd_cwnd = 1;
        ack(&mut prague, &mut tp, 1, 0);
        assert_eq!((tp.snd_cwnd, tp.snd_ssthresh, prague.cwnd_cnt), (2, 2, 0));
    }

    #[test]
    fn undo_gives_the_window_back() {
        let (mut prague, mut tp) = avoiding(Version::Aug2020, 40);
        go(&mut prague, &mut tp, CaState::Recovery);
        for _ in 0..20 {
            ack(&mut prague, &mut tp, 1, 0);
        }
        assert_eq!(prague.undo_cwnd(&mut tp), 40);
        assert_eq!(prague.cwnd_cnt, 0);
    }

    #[test]
    fn a_paced_flow_that_waits_for_its_timer_grows() {
        let (mut prague, mut tp) = avoiding(Version::Aug2020, 10);
        tp.is_cwnd_limited = false;
        ack(&mut prague, &mut tp, 5, 0);
        assert_eq!(prague.cwnd_cnt, 0);
        tp.write_queue = true;
        ack(&mut prague, &mut tp, 5, 0);
        assert_eq!(prague.cwnd_cnt, ONE / 2);
    }

    #[test]
    fn june_2021_grows_only_if_its_window_limits_and_imitates_25_ms_after_500_rounds() {
        let (mut prague, mut tp) = avoiding(Version::Jun2021, 10);
        tp.is_cwnd_limited = false;
        tp.write_queue = true;
        ack(&mut prague, &mut tp, 5, 0);
        assert_eq!(prague.cwnd_cnt, 0);
        tp.is_cwnd_limited = true;
        tp.srtt_us = 10_000 << 3;
        // that ACK ended the first round
        for _ in 0..499 {
            assert_eq!(prague.ai_per_rtt, ONE as u64);
            tp.now += Time::from_ms(25);
            tp.snd_una = tp.snd_nxt;
            tp.snd_nxt += 1448;
            prague.update_alpha(&tp);
        }
        // 78 over 195 units of 128 us, squared
        assert_eq!(prague.ai_per_rtt, (78 * 78 * ONE as u64 + 195 * 195 / 2) / (195 * 195));
    }

    #[test]
    fn the_pace_is_a_window_of_whole_packets_per_rtt() {
        let (mut prague, mut tp) = avoiding(Version::Aug2020, 100);
        assert_eq!(tp.pacing, Pacing::Needed);
        ack(&mut prague, &mut tp, 0, 0);
        // 1500 B * 100 / 20 ms; 1.2 packets in 1/4096 s, but two at least
        assert_eq!(tp.pacing_rate, 7_500_000);
        assert_eq!(prague.tso_segs(&tp), Some(2));
        // what is in flight counts if it is more
        tp.packets_out = 1000;
        ack(&mut prague, &mut tp, 0, 0);
        assert_eq!(tp.pacing_rate, 75_000_000);
        assert_eq!(prague.tso_segs(&tp), Some(12));
        // twice below half of ssthresh
        tp.snd_ssthresh = 202;
        ack(&mut prague, &mut tp, 0, 0);
        assert_eq!(tp.pacing_rate, 150_000_000);
    }

    #[test]
    fn rate_scaling_reduces_and_updates_alpha_once_per_target() {
        let (mut prague, mut tp) = avoiding(Version::Aug2020, 32);
        prague.scaling.mode = Mode::Rate;
        prague.scaling.target = Time::from_ms(25);
        prague.scaling.transition = 0;
        prague.saw_ce = true;
        tp.srtt_us = 5_000 << 3;
        let mut reductions = Vec::new();
        let mut updates = Vec::new();
        for ms in (5..=80).step_by(5) {
            tp.now = Time::from_ms(ms);
            let (cwnd_cnt, alpha) = (prague.cwnd_cnt, prague.alpha);
            go(&mut prague, &mut tp, CaState::Cwr);
            if prague.cwnd_cnt < cwnd_cnt {
                reductions.push(ms);
            }
            tp.snd_una = tp.snd_nxt;
            tp.snd_nxt += 1448;
            ack(&mut prague, &mut tp, 1, 0);
            if prague.alpha < alpha {
                updates.push(ms);
            }
            go(&mut prague, &mut tp, CaState::Open);
        }
        assert_eq!(reductions, [5, 30, 55, 80]);
        assert_eq!(updates, [25, 50, 75]);
    }

    #[test]
    fn the_fallback_raises_a_small_reduction_to_31_percent_of_the_window() {
        for (fallback, expected) in [(false, 1.0), (true, 31.25)] {
            let (mut prague, mut tp) = avoiding(Version::Apr2020, 100);
            prague.ecn_fallback = fallback;
            // RTTs that swing by 5 ms around 30 ms, 10 ms above the least one
            prague.saw_ce = true;
            for round in 0..200 {
                prague.ssthresh(&mut tp);
                for i in 0..100 {
                    let rtt = if i % 2 == 0 { 25_000 } else { 35_000 };
                    prague.pkts_acked(&mut tp, 1, Some(rtt));
                }
                if round > 100 {
                    tp.snd_una = tp.snd_nxt;
                    tp.snd_nxt += 1448;
                    prague.update_alpha(&tp);
                }
            }
            prague.alpha = MAX_ALPHA / 50;
            go(&mut prague, &mut tp, CaState::Cwr);
            let reduction = -packets(prague.cwnd_cnt);
            assert!((reduction - expected).abs() < 1e-4, "{reduction}");
        }
    }

    #[test]
    fn without_accecn_it_is_reno() {
        let mut tp = TcpSock::new(1448, 250);
        tp.ecn_ok = true;
        let mut prague = Prague2020::new(Version::Aug2020);
        assert!(prague.ect1() && prague.needs_ecn());
        prague.init(&mut tp);
        assert!(!prague.ect1() && !prague.needs_ecn() && !prague.has_cong_control());
        assert_eq!((tp.pacing, prague.tso_segs(&tp)), (Pacing::None, None));
        tp.snd_cwnd = 21;
        assert_eq!(prague.ssthresh(&mut tp), 10);
        go(&mut prague, &mut tp, CaState::Cwr);
        go(&mut prague, &mut tp, CaState::Recovery);
        assert_eq!(prague.cwnd_cnt, 0);
        tp.prior_cwnd = 21;
        tp.snd_cwnd = 10;
        assert_eq!(prague.undo_cwnd(&mut tp), 21);
        tp.snd_ssthresh = 10;
        tp.is_cwnd_limited = true;
        prague.cong_avoid(&mut tp, 10);
        assert_eq!(tp.snd_cwnd, 11);
    }
}
