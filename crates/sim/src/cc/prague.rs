//! `prague`: scalable congestion control for L4S; reduces by half the smoothed fraction of CE marks.
//!
//! Source: L4STeam/linux `net/ipv4/tcp_prague.c` at e741f5ac (8 April 2020, `prague@2020-04`) and
//! b256daed (4 August 2020, `prague@2020-08`); draft-briscoe-iccrg-prague-congestion-control.
//! Needs AccECN; without it the connection runs as `reno` ("prague-reno"): no pacing, no ECT(1).
//!
//! Every ACK moves the window by at most one packet: growth and reductions are gathered in `cwnd_cnt`
//! (1 packet is 2^20) and worked off one packet per ACK, which also takes ssthresh down. The window grows during
//! a reduction too: only the marked packets themselves do not count. PRR is not used.
//!
//! The versions differ in the answer to loss: in April nothing works `cwnd_cnt` off during slow start, so
//! that loss does not end it; in August growth stops until the state is Open again (`in_loss`).
//!
//! | parameter | default | meaning |
//! |---|---|---|
//! | `rtt_scaling` | none | `none`, `rate`, `scalable`, `additive`: how growth depends on the RTT |
//! | `rtt_target` | 15ms | the RTT whose growth `rate` and `additive` imitate, 128 us to 1 s |
//! | `rtt_transition` | 100 | rounds out of slow start before scaling begins |
//! | `ecn_fallback` | 1 in 2020-04, 0 in 2020-08 | reduce more behind a classic AQM ([`super::classic_ecn`]) |
//!
//! Departures: none known. With `scalable` only growth is scaled, not the interval between reductions.
//!
//! Validation: the tests below, `tests/window_model.rs` (mean windows under random marks),
//! `tests/cc_hooks.rs` (any sequence of hooks).

use super::classic_ecn::ClassicEcn;
use super::reno::Reno;
use super::words::Words;
use super::{CaEvent, CcError, CongestionControl, RateSample};
use crate::tcp::sock::{CaState, Pacing, TcpSock};
use crate::units::Time;

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
/// RTTs are scaled in units of 128 us.
const RTT_UNIT_SHIFT: u32 = 7;
/// RTTs from here on are not scaled, in microseconds.
const MAX_SCALED_RTT_US: u64 = 100_000;
/// R0 of `scalable`, 16.4 ms, and R1, 1.5 ms, in units of 128 us.
const R0: u64 = 16_384 >> RTT_UNIT_SHIFT;
/// See [`R0`].
const R1: u64 = 1_536 >> RTT_UNIT_SHIFT;

/// Which module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// e741f5ac
    Apr2020,
    /// b256daed
    Aug2020,
}

/// `RTT_CONTROL_…`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RttScaling {
    /// One packet per RTT.
    None,
    /// The rate of a flow with the target RTT.
    Rate,
    /// Linear in the RTT from R1 on.
    Scalable,
    /// The rate of a flow with the target RTT on top of its own.
    Additive,
}

/// Parameters and state.
pub struct Prague {
    version: Version,
    rtt_scaling: RttScaling,
    rtt_target: Time,
    rtt_transition: u32,
    ecn_fallback: bool,

    /// AccECN was not negotiated.
    reno: bool,
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
    /// Rounds out of slow start.
    round: u32,
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

const VERSIONS: &[&str] = &["2020-04", "2020-08"];
const SCALINGS: &[&str] = &["none", "rate", "scalable", "additive"];
const PARAMETERS: &[&str] = &[
    "rtt_scaling",
    "rtt_target",
    "rtt_transition",
    "ecn_fallback",
];

impl Prague {
    /// With the version's defaults.
    pub fn new(version: Version) -> Self {
        Prague {
            version,
            rtt_scaling: RttScaling::None,
            rtt_target: Time::from_ms(15),
            rtt_transition: 100,
            ecn_fallback: version == Version::Apr2020,
            reno: false,
            cwnd_cnt: 0,
            alpha: MAX_ALPHA,
            saw_ce: false,
            in_loss: false,
            loss_cwnd: 0,
            loss_cwnd_cnt: 0,
            ai_per_rtt: ONE as u64,
            round: 0,
            next_seq: 0,
            old_delivered: 0,
            old_delivered_ce: 0,
            alpha_stamp: Time::ZERO,
            cwr_stamp: None,
            max_burst: 1,
            classic_ecn: ClassicEcn::new(0),
        }
    }

    /// From the words after the name.
    pub fn parse(words: &mut Words) -> Result<Self, CcError> {
        let mut c = Prague::new(match words.version(VERSIONS)? {
            Some("2020-04") => Version::Apr2020,
            Some(_) => Version::Aug2020,
            None => return Err(words.needs_version(VERSIONS)),
        });
        while let Some(parameter) = words.parameter(PARAMETERS)? {
            match parameter {
                "rtt_scaling" => {
                    c.rtt_scaling = match words.one_of(SCALINGS)? {
                        "rate" => RttScaling::Rate,
                        "scalable" => RttScaling::Scalable,
                        "additive" => RttScaling::Additive,
                        _ => RttScaling::None,
                    }
                }
                "rtt_target" => {
                    c.rtt_target = words.time(Time::from_us(128), Time::from_ms(1_000))?;
                }
                "rtt_transition" => c.rtt_transition = words.number(0..=u32::MAX)?,
                _ => c.ecn_fallback = words.flag()?,
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
        if acked > 0 && !self.in_loss && may_grow(tp) {
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
        if tp.snd_una < self.next_seq || !self.target_passed_since(tp, Some(self.alpha_stamp)) {
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
        if !tp.in_slow_start() {
            self.round = self.round.saturating_add(1);
        }
        self.new_round(tp);
    }

    fn new_round(&mut self, tp: &TcpSock) {
        self.next_seq = tp.snd_nxt;
        self.old_delivered = tp.delivered;
        self.old_delivered_ce = tp.delivered_ce;
        self.ai_per_rtt = self.scaled_ai(tp);
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
        if !self.target_passed_since(tp, self.cwr_stamp) {
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
        self.in_loss = self.version == Version::Aug2020;
    }

    /// Whether growth depends on the RTT now.
    fn is_scaled(&self, tp: &TcpSock) -> bool {
        self.rtt_scaling != RttScaling::None
            && !tp.in_slow_start()
            && self.round >= self.rtt_transition
            && tp.srtt_us >> 3 <= MAX_SCALED_RTT_US
    }

    /// Whether the flow that this one imitates would be a round further.
    fn target_passed_since(&self, tp: &TcpSock, stamp: Option<Time>) -> bool {
        let target = match self.rtt_scaling {
            RttScaling::Rate => self.rtt_target,
            RttScaling::Additive => self.rtt_target + Time::from_us(tp.srtt_us >> 3),
            RttScaling::None | RttScaling::Scalable => return true,
        };
        !self.is_scaled(tp) || stamp.is_none_or(|stamp| tp.now - stamp >= target)
    }

    /// Growth per window of ACKs in 2^-20 packets.
    fn scaled_ai(&self, tp: &TcpSock) -> u64 {
        let one = ONE as u64;
        if !self.is_scaled(tp) {
            return one;
        }
        let rtt = tp.srtt_us >> (3 + RTT_UNIT_SHIFT);
        let mut target = self.rtt_target.as_us() >> RTT_UNIT_SHIFT;
        match self.rtt_scaling {
            RttScaling::None => return one,
            RttScaling::Scalable => {
                let slope = R0 / 8 + rtt.saturating_sub(R1).min(R0);
                return slope * rtt * one / (R0 * R0);
            }
            RttScaling::Rate => {}
            RttScaling::Additive => target += rtt,
        }
        if rtt >= target {
            return one;
        }
        let square = target * target;
        (rtt * rtt * one + square / 2) / square
    }
}

/// Whether the window limits the flow. The pacing timer may have stopped it just before the window
/// did, so that waiting data count as well.
fn may_grow(tp: &TcpSock) -> bool {
    tp.cwnd_limited() || (tp.pacing == Pacing::Needed && tp.write_queue)
}

impl CongestionControl for Prague {
    fn init(&mut self, tp: &mut TcpSock) {
        self.reno = !tp.accecn;
        if self.reno {
            return;
        }
        tp.pacing = Pacing::Needed;
        self.classic_ecn = ClassicEcn::new(tp.srtt_us >> 3);
        self.alpha_stamp = tp.now;
        self.new_round(tp);
    }

    fn ssthresh(&mut self, tp: &mut TcpSock) -> u32 {
        if self.reno {
            return Reno::half(tp);
        }
        // The reduction itself waits in cwnd_cnt.
        let ssthresh = match self.version {
            Version::Apr2020 => tp.snd_ssthresh.max(tp.snd_cwnd),
            Version::Aug2020 => tp.snd_ssthresh,
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
        !self.reno
    }

    fn cong_control(&mut self, tp: &mut TcpSock, sample: &RateSample) {
        self.update_cwnd(tp, sample);
        self.update_alpha(tp);
        self.update_pacing(tp);
    }

    fn set_state(&mut self, tp: &mut TcpSock, state: CaState) {
        if self.reno || state == tp.ca_state {
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
        if event == CaEvent::Loss && !self.reno {
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
        if self.reno {
            return Reno.undo_cwnd(tp);
        }
        let since = self.cwnd_cnt.saturating_sub(self.loss_cwnd_cnt);
        self.cwnd_cnt = self.cwnd_cnt.saturating_add(since);
        tp.snd_cwnd.max(self.loss_cwnd)
    }

    fn tso_segs(&self, _tp: &TcpSock) -> Option<u32> {
        (!self.reno).then(|| self.max_burst.max(2))
    }

    fn needs_ecn(&self) -> bool {
        !self.reno
    }

    fn ect1(&self) -> bool {
        !self.reno
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
