//! `prague`: TCP Prague of the present day. Scalable congestion control for L4S: reduces by half the smoothed fraction of CE
//! marks, shares as a flow with an RTT of 25 ms would, and goes on below a window of two packets.
//!
//! Source: L4STeam/tcp-prague (the out-of-tree module of 2023, 90aea47f; `prague@2023` says the same); docs/models/prague.md compares the versions;
//! draft-briscoe-iccrg-prague-congestion-control. [`super::prague_2020`] and [`super::prague_2019`] have the versions of the published
//! experiments. Needs AccECN; without it the connection runs as `reno` ("prague-reno"): no pacing, no ECT(1).
//!
//! Per ACK, in this order: the fractional window, alpha (once per virtual RTT), the mode, the pace.
//!
//! * **Window mode.** The window is a fraction, `frac_cwnd`; an unmarked packet adds `ai_per_rtt / frac_cwnd` to it, in every state but
//!   after a loss, unless the application limits the flow. `snd_cwnd` goes towards its ceiling by one packet per ACK, and takes ssthresh
//!   along on its way down.
//! * **Marks.** Alpha begins at 0 and follows the marks from the first on; that one halves the window. Then on entry to CWR, at most once
//!   per virtual RTT, alpha/2 of it leaves. There is no fallback behind a classic AQM.
//! * **Loss** halves the window and ends slow start; no growth until the state is Open again.
//! * **Rate mode**, whenever the window is at most 6000 bytes out of slow start: now the rate is what grows and shrinks, by the same rules,
//!   and the window follows from it and the RTT, so that a queue's delay does not slow the flow down; packets leave one at a time; 100 kbit/s is
//!   the least. Packets shrink so that two of them are sent per virtual RTT, down to 150 bytes: at 25 ms that is from 960 kbit/s to 96 kbit/s.
//! * **Pace**: the window (or rate) in whole packets, 3 % less in one half of a round trip and 3 % more in the next; twice that early in slow start.
//!
//! | parameter | default | meaning |
//! |---|---|---|
//! | `alpha_mode` | 0 | alpha before the first mark, 0 or 1 |
//! | `rtt_scaling` | rate | `none`, `rate`, `scalable`, `additive`: how growth depends on the RTT ([`super::rtt_scaling`]) |
//! | `rtt_target` | 25ms | the RTT whose growth `rate` and `additive` imitate, 128 us to 1 s |
//! | `rtt_transition` | 4 | rounds out of slow start before scaling begins |
//!
//! Departures: this was written from a description of the module's mechanisms, not from its lines. Decided here: slow start adds to the fractional window too, so that a
//! reduction in it is not forgotten and ends it with the next ACK; a loss puts ssthresh at the halved window; the first mark's halving
//! happens on entry to CWR; a window that the core took down (after idling, or unused) takes the fractional one along; the round that the pace alternates in
//! is one of what is in flight; the unit of growth in rate mode is a packet as it is sent, not a full one; the least size of packets is 150 bytes.
//!
//! Validation: the tests below, `tests/window_model.rs` (mean windows under random marks), `tests/test_versions.py` (whole runs),
//! `tests/cc_hooks.rs` (any sequence of hooks).

use super::reno::Reno;
use super::rtt_scaling::{Mode as Scaling, RttScaling};
use super::{CaEvent, CcEnv, CcError, CongestionControl, RateSample};
use crate::base::units::Time;
use crate::cc::sock::{CaState, TcpSock};
use crate::document::cc::CcWords;

/// One packet in `frac_cwnd`, `CWND_UNIT` of the module.
const UNIT: u32 = 20;
const ONE: u64 = 1 << UNIT;
/// 1.0 in a fraction of marks: 24 bits.
const ALPHA_BITS: u32 = 24;
/// Gain of alpha: 1/16. `alpha` is stored 16 times as large.
const GAIN_SHIFT: u32 = 4;
/// alpha = 1.0
const MAX_ALPHA: u64 = 1 << (ALPHA_BITS + GAIN_SHIFT);
/// Least window in packets, and packets per virtual RTT below which they shrink.
const MIN_CWND: u32 = 2;
/// Headers of IP and TCP with timestamps: the MTU is this and a segment.
const HEADERS: u64 = 52;
/// Least packet in bytes.
const MIN_MTU: u64 = 150;
/// Windows up to this many bytes are kept as rates.
const RATE_MODE_BYTES: u64 = 6_000;
/// 100 kbit/s in bytes per second.
const MIN_RATE: u64 = 12_500;
/// A burst is 1/4096 s of the pacing rate.
const BURST_SHIFT: u32 = 12;
/// A second in the units of `srtt_us`.
const SECOND: u64 = 8_000_000;

/// What is kept from one ACK to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Window,
    Rate,
}

/// Parameters and state.
pub struct Prague {
    scaling: RttScaling,

    /// AccECN was not negotiated.
    as_reno: bool,
    mode: Mode,
    /// The window in 2^-20 packets.
    frac_cwnd: u64,
    /// The window as a rate: bytes per second of whole packets.
    rate: u64,
    /// `snd_cwnd` as this module left it.
    cwnd: u32,
    /// Payload of a full packet.
    full_mss: u32,
    /// Smoothed fraction of marks, times 2^28.
    alpha: u64,
    saw_ce: bool,
    in_loss: bool,
    /// `snd_cwnd`, `frac_cwnd` and `rate` before the last loss.
    before_loss: (u32, u64, u64),
    /// Growth per window of ACKs in 2^-20 packets.
    ai_per_rtt: u64,
    next_seq: u64,
    old_delivered: u64,
    old_delivered_ce: u64,
    /// Last update of alpha, last reduction.
    alpha_stamp: Time,
    cwr_stamp: Option<Time>,
    /// Where the pace changes next, and whether it is the slower one now.
    half_seq: u64,
    slower: bool,
    /// Packets per burst.
    max_burst: u32,
}

const PARAMETERS: &[&str] = &["alpha_mode", "rtt_scaling", "rtt_target", "rtt_transition"];

fn mtu(tp: &TcpSock) -> u64 {
    u64::from(tp.mss) + HEADERS
}

impl Prague {
    /// With the module's defaults.
    pub fn new() -> Self {
        let scaling = RttScaling::new(Scaling::Rate, Time::from_ms(25), 4);
        Prague {
            scaling,
            as_reno: false,
            mode: Mode::Window,
            frac_cwnd: 0,
            rate: 0,
            cwnd: 0,
            full_mss: 0,
            alpha: 0,
            saw_ce: false,
            in_loss: false,
            before_loss: (0, 0, 0),
            ai_per_rtt: ONE,
            next_seq: 0,
            old_delivered: 0,
            old_delivered_ce: 0,
            alpha_stamp: Time::ZERO,
            cwr_stamp: None,
            half_seq: 0,
            slower: false,
            max_burst: 1,
        }
    }

    /// From the words after the name and its version.
    pub fn parse(words: &mut CcWords, _: CcEnv) -> Result<Self, CcError> {
        let mut c = Prague::new();
        while let Some(parameter) = words.parameter(PARAMETERS)? {
            match parameter {
                "alpha_mode" => c.alpha = if words.flag()? { MAX_ALPHA } else { 0 },
                _ => c.scaling.parse(parameter, words)?,
            }
        }
        Ok(c)
    }

    /// A: the window, or the rate.
    fn update_cwnd(&mut self, tp: &mut TcpSock, sample: &RateSample) {
        if tp.snd_cwnd < self.cwnd && tp.ca_state <= CaState::Cwr {
            self.frac_cwnd = self.frac_cwnd.min(u64::from(tp.snd_cwnd) << UNIT);
        }
        let mut acked = u64::from(sample.acked_sacked);
        if sample.ece {
            self.saw_ce = true;
            acked = acked.saturating_sub(sample.delivered_ce.into());
        }
        if acked > 0 && !self.in_loss && tp.app_limited == 0 {
            self.grow(tp, acked as u32);
        }
    }

    fn grow(&mut self, tp: &mut TcpSock, mut acked: u32) {
        if tp.in_slow_start() {
            let left = tp.slow_start(acked);
            self.frac_cwnd += u64::from(acked - left) << UNIT;
            acked = left;
        }
        let acked = u64::from(acked);
        match self.mode {
            Mode::Window => {
                let frac = self.frac_cwnd.max(1);
                let increase = (((acked * self.ai_per_rtt) << UNIT) + frac / 2) / frac;
                self.frac_cwnd = self.frac_cwnd.saturating_add(increase.max(acked));
            }
            Mode::Rate if tp.srtt_us > 0 => {
                // ai packets per window and RTT, the window being rate * RTT
                let per_rtt = u128::from(mtu(tp) * SECOND / tp.srtt_us);
                let ai = u128::from(self.scaling.ai(tp));
                let increase = u128::from(acked) * ai * per_rtt * per_rtt / u128::from(self.rate.max(1));
                self.rate = self.rate.saturating_add((increase >> UNIT) as u64);
            }
            Mode::Rate => {}
        }
    }

    /// Takes `alpha` / 2 of the window and the rate, rounded; `alpha` as it is stored.
    fn reduce(&mut self, alpha: u64) {
        for state in [&mut self.frac_cwnd, &mut self.rate] {
            let cut =
                (u128::from(*state) * u128::from(alpha) + u128::from(MAX_ALPHA)) / u128::from(2 * MAX_ALPHA);
            *state -= (cut as u64).min(*state);
        }
    }

    /// One step of the window towards the fractional one.
    fn step(&mut self, tp: &mut TcpSock) {
        let goal = self.goal();
        if tp.snd_cwnd > goal {
            tp.snd_cwnd -= 1;
            tp.snd_ssthresh = tp.snd_cwnd;
        } else if tp.snd_cwnd < goal {
            tp.snd_cwnd = (tp.snd_cwnd + 1).min(tp.snd_cwnd_clamp);
        }
        self.cwnd = tp.snd_cwnd;
    }

    fn goal(&self) -> u32 {
        let goal = self.frac_cwnd.div_ceil(ONE);
        goal.clamp(MIN_CWND.into(), u32::MAX.into()) as u32
    }

    /// B: alpha, once per round.
    fn update_alpha(&mut self, tp: &TcpSock) {
        if tp.snd_una < self.next_seq || !self.scaling.passed_since(tp, Some(self.alpha_stamp)) {
            return;
        }
        if self.saw_ce {
            let delivered = (tp.delivered - self.old_delivered).max(1);
            let marked = tp.delivered_ce - self.old_delivered_ce;
            let fraction = (marked << ALPHA_BITS) / delivered;
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

    /// C: the window as a rate or the rate as a window, which of them is kept, and the size of packets.
    fn update_mode(&mut self, tp: &mut TcpSock) {
        if tp.srtt_us == 0 {
            return;
        }
        if self.mode == Mode::Window {
            self.rate = ((self.frac_cwnd >> 10).saturating_mul(mtu(tp) * SECOND) / tp.srtt_us) >> (UNIT - 10);
        }
        let derive = self.mode == Mode::Rate || self.rate < MIN_RATE;
        self.rate = self.rate.max(MIN_RATE);
        let window = self.rate.saturating_mul(tp.srtt_us) / SECOND;
        let mut size = u64::from(self.full_mss) + HEADERS;
        self.mode = Mode::Window;
        if window <= RATE_MODE_BYTES && !tp.in_slow_start() {
            self.mode = Mode::Rate;
            let virtual_window = self.rate.saturating_mul(self.scaling.virtual_rtt_us(tp)) / 1_000_000;
            size = (virtual_window / u64::from(MIN_CWND)).min(size).max(MIN_MTU.min(size));
        }
        if derive || self.mode == Mode::Rate || size != mtu(tp) {
            tp.mss = (size - HEADERS) as u32;
            self.frac_cwnd = (window << UNIT) / size;
        }
    }

    /// D: the rate of one window per RTT, a little less and more in turns.
    fn update_pacing(&mut self, tp: &mut TcpSock) {
        if tp.snd_una >= self.half_seq {
            self.half_seq = tp.snd_una + (tp.snd_nxt - tp.snd_una) / 2;
            self.slower = !self.slower;
        }
        let mtu = mtu(tp);
        let rate = match self.mode {
            // The pacing clock counts payload.
            Mode::Rate => self.rate * u64::from(tp.mss) / mtu,
            Mode::Window => {
                let window = u64::from(tp.snd_cwnd.max(tp.packets_in_flight()));
                let mut rate = mtu * SECOND;
                if tp.snd_cwnd < tp.snd_ssthresh / 2 {
                    rate <<= 1;
                }
                rate.checked_div(tp.srtt_us).unwrap_or(rate).saturating_mul(window)
            }
        };
        let rate = rate.saturating_mul(if self.slower { 97 } else { 103 }) / 100;
        tp.pacing_rate = rate.min(tp.max_pacing_rate);
        let burst = (tp.pacing_rate / mtu) >> BURST_SHIFT;
        self.max_burst = burst.clamp(1, u32::MAX.into()) as u32;
    }

    /// Entry to CWR: half of alpha; of the first mark, half of the window.
    fn enter_cwr(&mut self, tp: &TcpSock) {
        if !self.scaling.passed_since(tp, self.cwr_stamp) {
            return;
        }
        self.cwr_stamp = Some(tp.now);
        self.reduce(if self.saw_ce { self.alpha } else { MAX_ALPHA });
    }

    /// Entry to Recovery, or an RTO.
    fn enter_loss(&mut self, tp: &mut TcpSock) {
        self.before_loss = (tp.snd_cwnd, self.frac_cwnd, self.rate);
        self.reduce(MAX_ALPHA);
        tp.snd_ssthresh = self.goal();
        self.in_loss = true;
    }
}

impl Default for Prague {
    fn default() -> Self {
        Prague::new()
    }
}

impl CongestionControl for Prague {
    fn init(&mut self, tp: &mut TcpSock) {
        self.as_reno = !tp.accecn;
        if self.as_reno {
            return;
        }
        tp.request_pacing();
        self.frac_cwnd = u64::from(tp.snd_cwnd) << UNIT;
        self.cwnd = tp.snd_cwnd;
        self.full_mss = tp.mss;
        self.alpha_stamp = tp.now;
        self.new_round(tp);
    }

    fn ssthresh(&mut self, tp: &mut TcpSock) -> u32 {
        // The reduction itself waits in frac_cwnd.
        if self.as_reno { Reno::half(tp) } else { tp.snd_ssthresh }
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
        self.update_mode(tp);
        self.step(tp);
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

    fn undo_cwnd(&mut self, tp: &mut TcpSock) -> u32 {
        if self.as_reno {
            return Reno.undo_cwnd(tp);
        }
        let (cwnd, frac_cwnd, rate) = self.before_loss;
        self.rate = self.rate.max(rate);
        if self.mode == Mode::Window {
            self.frac_cwnd = self.frac_cwnd.max(frac_cwnd);
        }
        tp.snd_cwnd.max(cwnd)
    }

    fn tso_segs(&self, _tp: &TcpSock) -> Option<u32> {
        let least = if self.mode == Mode::Rate { 1 } else { 2 };
        (!self.as_reno).then(|| self.max_burst.max(least))
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
            ("frac_cwnd", self.frac_cwnd as f64 / one),
            ("ai_per_rtt", self.ai_per_rtt as f64 / one),
            ("in_loss", f64::from(u8::from(self.in_loss))),
            ("rate_mode", f64::from(u8::from(self.mode == Mode::Rate))),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::sock::Pacing;

    /// A connection with AccECN in slow start, RTT 50 ms, where `rate` scales nothing.
    fn open(text: &str, cwnd: u32) -> (Prague, TcpSock) {
        let mut tp = TcpSock::new(1448, 250);
        tp.accecn = true;
        tp.snd_cwnd = cwnd;
        tp.srtt_us = 50_000 << 3;
        tp.min_rtt_us = 50_000;
        tp.snd_nxt = 1_000_000;
        let mut words = CcWords::new(text);
        let Ok(mut prague) = Prague::parse(&mut words, CcEnv::default()) else {
            panic!("'{text}' was refused")
        };
        prague.init(&mut tp);
        (prague, tp)
    }

    /// The same in congestion avoidance.
    fn avoiding(text: &str, cwnd: u32) -> (Prague, TcpSock) {
        let (prague, mut tp) = open(text, cwnd);
        tp.snd_ssthresh = cwnd;
        (prague, tp)
    }

    /// An ACK of `acked` packets, `marked` of them with CE.
    fn ack(prague: &mut Prague, tp: &mut TcpSock, acked: u32, marked: u32) {
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

    /// A round of `packets`, all acknowledged at once.
    fn round(prague: &mut Prague, tp: &mut TcpSock, packets: u32, marked: u32) {
        tp.now += Time::from_us(tp.srtt_us >> 3);
        tp.snd_una = tp.snd_nxt;
        tp.snd_nxt += u64::from(packets) * 1448;
        ack(prague, tp, packets, marked);
    }

    /// The state machine's part.
    fn go(prague: &mut Prague, tp: &mut TcpSock, state: CaState) {
        prague.set_state(tp, state);
        tp.ca_state = state;
    }

    fn packets(prague: &Prague) -> f64 {
        prague.frac_cwnd as f64 / ONE as f64
    }

    fn alpha(prague: &Prague) -> f64 {
        prague.alpha as f64 / MAX_ALPHA as f64
    }

    #[test]
    fn the_first_mark_halves_the_window_and_ends_slow_start_though_alpha_is_0() {
        let (mut prague, mut tp) = open("prague", 100);
        go(&mut prague, &mut tp, CaState::Cwr);
        assert_eq!(prague.frac_cwnd, 50 * ONE);
        // the other packet of that ACK still counts as in slow start; then a step down
        ack(&mut prague, &mut tp, 2, 1);
        assert_eq!((prague.frac_cwnd, tp.snd_cwnd, tp.snd_ssthresh), (51 * ONE, 100, 100));
        for expected in (51..100).rev() {
            ack(&mut prague, &mut tp, 1, 1);
            assert_eq!((tp.snd_cwnd, tp.snd_ssthresh), (expected, expected));
        }
        // the second reduction is alpha's: 50 marks of 51 packets so far, of which 1/16, of which half
        round(&mut prague, &mut tp, 0, 0);
        let expected = 50.0 / 51.0 / 16.0;
        assert!((alpha(&prague) - expected).abs() < 1e-6, "{}", alpha(&prague));
        go(&mut prague, &mut tp, CaState::Open);
        let before = packets(&prague);
        go(&mut prague, &mut tp, CaState::Cwr);
        assert!((packets(&prague) - before * (1.0 - expected / 2.0)).abs() < 1e-5);
    }

    #[test]
    fn alpha_mode_1_begins_at_1_and_decays_from_there() {
        let (mut prague, mut tp) = avoiding("prague alpha_mode 1", 100);
        round(&mut prague, &mut tp, 100, 0);
        assert!((alpha(&prague) - 1.0).abs() < f64::EPSILON, "held until the first mark");
        round(&mut prague, &mut tp, 100, 50);
        assert!((alpha(&prague) - (1.0 - 0.5 / 16.0)).abs() < 1e-6);
    }

    #[test]
    fn alpha_converges_in_24_bits() {
        // one packet in 2^21 marked: nothing in the 20 bits of 2020, 8 in 24
        let (mut prague, mut tp) = avoiding("prague", 1 << 21);
        let mut expected = 0.0;
        let fraction = 1.0 / f64::from(1 << 21);
        for n in 1..=100 {
            round(&mut prague, &mut tp, 1 << 21, 1);
            expected += (fraction - expected) / 16.0;
            // each round truncates less than 2^-28, of which at most 16 rounds' worth remain
            assert!((alpha(&prague) - expected).abs() <= 16.0 / f64::from(1 << 28), "{n}");
        }
        assert!(alpha(&prague) > 0.9 * fraction);
    }

    #[test]
    fn an_unmarked_window_adds_a_packet_in_every_state_but_after_loss() {
        for (state, expected) in [(CaState::Open, 50.990), (CaState::Cwr, 50.990), (CaState::Recovery, 25.0)]
        {
            let (mut prague, mut tp) = avoiding("prague", 50);
            prague.saw_ce = true;
            go(&mut prague, &mut tp, state);
            for _ in 0..50 {
                ack(&mut prague, &mut tp, 2, 1);
            }
            // 50 packets, each 1/W: W^2 rises by 2 per packet, from 2500 to 2600
            assert!((packets(&prague) - expected).abs() < 0.001, "{state:?} {}", packets(&prague));
        }
    }

    #[test]
    fn what_limits_growth_is_the_application_not_the_window() {
        let (mut prague, mut tp) = avoiding("prague", 50);
        assert!(!tp.cwnd_limited());
        tp.app_limited = 1;
        ack(&mut prague, &mut tp, 25, 0);
        assert_eq!(prague.frac_cwnd, 50 * ONE);
        tp.app_limited = 0;
        ack(&mut prague, &mut tp, 25, 0);
        assert_eq!(prague.frac_cwnd, 50 * ONE + ONE / 2);
    }

    #[test]
    fn the_window_is_the_ceiling_of_the_fractional_one() {
        let (mut prague, mut tp) = avoiding("prague", 50);
        ack(&mut prague, &mut tp, 1, 0);
        // 50.02
        assert_eq!(tp.snd_cwnd, 51);
    }

    #[test]
    fn scaling_takes_4_rounds_and_then_growth_is_that_of_25_ms() {
        let (mut prague, mut tp) = avoiding("prague", 100);
        tp.srtt_us = 10_000 << 3;
        for n in 0..4 {
            assert_eq!(prague.ai_per_rtt, ONE, "{n}");
            round(&mut prague, &mut tp, 1, 0);
        }
        // 78 over 195 units of 128 us, squared: 0.16
        assert_eq!(prague.ai_per_rtt, (78 * 78 * ONE + 195 * 195 / 2) / (195 * 195));
        prague.saw_ce = true;
        prague.alpha = MAX_ALPHA / 10;
        // reductions and alpha: each 25 ms at most
        let mut reductions = 0;
        for _ in 0..25 {
            let before = prague.frac_cwnd;
            tp.now += Time::from_ms(10);
            go(&mut prague, &mut tp, CaState::Cwr);
            go(&mut prague, &mut tp, CaState::Open);
            reductions += u32::from(prague.frac_cwnd < before);
        }
        // at 0, 30, 60 ... 240 ms
        assert_eq!(reductions, 9);
    }

    #[test]
    fn loss_halves_ends_slow_start_and_can_be_undone() {
        let (mut prague, mut tp) = open("prague", 40);
        go(&mut prague, &mut tp, CaState::Recovery);
        assert_eq!((prague.frac_cwnd, tp.snd_ssthresh), (20 * ONE, 20));
        for expected in (20..40).rev() {
            ack(&mut prague, &mut tp, 2, 0);
            assert_eq!(tp.snd_cwnd, expected);
        }
        ack(&mut prague, &mut tp, 2, 0);
        assert_eq!(tp.snd_cwnd, 20);
        assert_eq!(prague.undo_cwnd(&mut tp), 40);
        assert_eq!(prague.frac_cwnd, 40 * ONE);
    }

    #[test]
    fn an_rto_leads_back_to_half_of_the_window() {
        let (mut prague, mut tp) = open("prague", 40);
        prague.cwnd_event(&mut tp, CaEvent::Loss);
        tp.snd_cwnd = 1;
        go(&mut prague, &mut tp, CaState::Loss);
        for expected in 2..=20 {
            ack(&mut prague, &mut tp, 1, 0);
            assert_eq!((tp.snd_cwnd, tp.snd_ssthresh), (expected, 20));
        }
        ack(&mut prague, &mut tp, 1, 0);
        assert_eq!(tp.snd_cwnd, 20);
    }

    #[test]
    fn a_window_that_idled_takes_the_fraction_along() {
        let (mut prague, mut tp) = avoiding("prague", 40);
        ack(&mut prague, &mut tp, 0, 0);
        tp.snd_cwnd = 10;
        ack(&mut prague, &mut tp, 0, 0);
        assert_eq!((tp.snd_cwnd, prague.frac_cwnd), (10, 10 * ONE));
    }

    #[test]
    fn the_pace_is_a_window_per_rtt_and_3_percent_less_or_more_in_turns() {
        let (mut prague, mut tp) = avoiding("prague", 100);
        assert_eq!(tp.pacing, Pacing::Needed);
        let mut paces = Vec::new();
        // an ACK per quarter of what is in flight: two for each half of it
        tp.snd_nxt = 400;
        for una in [0_u64, 100, 200, 300, 400] {
            tp.snd_una = una;
            tp.snd_nxt = una + 400;
            ack(&mut prague, &mut tp, 0, 0);
            paces.push(tp.pacing_rate);
        }
        // 1500 B * 100 / 50 ms = 3 MB/s
        assert_eq!(paces, [2_910_000, 2_910_000, 3_090_000, 3_090_000, 2_910_000]);
        assert_eq!(prague.tso_segs(&tp), Some(2));
        tp.snd_ssthresh = 202;
        ack(&mut prague, &mut tp, 0, 0);
        assert_eq!(tp.pacing_rate, 2 * 2_910_000);
    }

    /// In rate mode at `rate` bytes per second and 10 ms, scaling on.
    fn at_rate(rate: u64) -> (Prague, TcpSock) {
        let (mut prague, mut tp) = avoiding("prague rtt_transition 0", 2);
        tp.srtt_us = 10_000 << 3;
        ack(&mut prague, &mut tp, 0, 0);
        assert_eq!(prague.mode, Mode::Rate);
        prague.rate = rate;
        ack(&mut prague, &mut tp, 0, 0);
        (prague, tp)
    }

    #[test]
    fn windows_of_at_most_6000_bytes_are_kept_as_rates() {
        for (cwnd, mode) in [(4, Mode::Rate), (5, Mode::Window)] {
            let (mut prague, mut tp) = avoiding("prague", cwnd);
            ack(&mut prague, &mut tp, 0, 0);
            assert_eq!(prague.mode, mode, "{cwnd}");
        }
        // in slow start never
        let (mut prague, mut tp) = open("prague", 2);
        ack(&mut prague, &mut tp, 0, 0);
        assert_eq!(prague.mode, Mode::Window);
    }

    #[test]
    fn a_rate_stays_when_the_rtt_rises_and_the_window_follows() {
        // 240 kB/s: at 10 ms 1.6 packets, at 20 ms 3.2
        let (mut prague, mut tp) = at_rate(240_000);
        assert!((packets(&prague) - 1.6).abs() < 1e-5);
        tp.srtt_us = 20_000 << 3;
        ack(&mut prague, &mut tp, 0, 0);
        assert!((packets(&prague) - 3.2).abs() < 1e-5);
        assert_eq!((prague.rate, tp.snd_cwnd), (240_000, 3));
        assert_eq!(prague.tso_segs(&tp), Some(1));
        // beyond 6000 bytes the window rules, and the rate falls with the RTT
        tp.srtt_us = 26_000 << 3;
        ack(&mut prague, &mut tp, 0, 0);
        tp.srtt_us = 52_000 << 3;
        ack(&mut prague, &mut tp, 0, 0);
        // 4.16 packets per 52 ms, which the rate takes in 1024ths of a packet
        assert!(prague.rate.abs_diff(120_000) < 1500 * 1000 / 52 / 1024, "{}", prague.rate);
    }

    #[test]
    fn a_rate_grows_by_a_packet_per_virtual_rtt_in_each() {
        let (mut prague, mut tp) = at_rate(240_000);
        // 25 ms: 4 packets of 1500 B are acknowledged; then 1500 B / 25 ms = 60 kB/s more, less for the rising rate
        for _ in 0..4 {
            ack(&mut prague, &mut tp, 1, 0);
        }
        assert!((290_000..300_000).contains(&prague.rate), "{}", prague.rate);
        // a mark takes alpha/2
        prague.saw_ce = true;
        prague.alpha = MAX_ALPHA / 2;
        prague.rate = 240_000;
        go(&mut prague, &mut tp, CaState::Cwr);
        assert_eq!(prague.rate, 180_000);
    }

    #[test]
    fn packets_shrink_to_two_per_virtual_rtt_and_the_rate_ends_at_100_kbit() {
        // bytes per second, MTU: half of 25 ms of it
        for (rate, size) in [(240_000, 1500), (100_000, 1250), (40_000, 500), (1_000, 156)] {
            let (prague, tp) = at_rate(rate);
            assert_eq!((mtu(&tp), prague.rate), (size, rate.max(12_500)), "{rate}");
            // 10 ms of two packets per 25 ms, or what the rate needs of full ones
            let window = prague.rate as f64 * 0.01 / size as f64;
            assert!((packets(&prague) - window).abs() < 1e-5, "{rate}");
            assert_eq!(tp.snd_cwnd, 2);
        }
        // back in window mode packets are full again
        let (mut prague, mut tp) = at_rate(40_000);
        prague.rate = 1_500_000;
        ack(&mut prague, &mut tp, 0, 0);
        assert_eq!((prague.mode, tp.mss, prague.frac_cwnd), (Mode::Window, 1448, 10 * ONE));
    }

    #[test]
    fn without_accecn_it_is_reno() {
        let mut tp = TcpSock::new(1448, 250);
        tp.ecn_ok = true;
        let mut prague = Prague::new();
        assert!(prague.ect1() && prague.needs_ecn());
        prague.init(&mut tp);
        assert!(!prague.ect1() && !prague.needs_ecn() && !prague.has_cong_control());
        assert_eq!((tp.pacing, prague.tso_segs(&tp)), (Pacing::None, None));
        tp.snd_cwnd = 21;
        assert_eq!(prague.ssthresh(&mut tp), 10);
        prague.set_state(&mut tp, CaState::Recovery);
        assert_eq!(tp.snd_ssthresh, 0x7fff_ffff);
    }
}
