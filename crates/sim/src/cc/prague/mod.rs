//! `prague`: TCP Prague of the present day. Scalable congestion control for L4S: reduces by half the smoothed fraction of CE
//! marks, shares as a flow with an RTT of 25 ms would, and goes on as a rate where the window is small.
//!
//! Source: version 0.7 of the out-of-tree module (minuscat/rpi-6.18.y `net/ipv4/tcp_prague.c`, 330b511a), and for `prague@2023` the module of 2023
//! (L4STeam/tcp-prague, 90aea47f); `prague@5.15` is that module as it is built into L4STeam/linux 5.15.72-56eae305c; docs/models/prague.md compares the versions; draft-briscoe-iccrg-prague-congestion-control.
//! [`super::prague_2020`] and [`super::prague_2019`] have the versions of the published experiments. Asks for AccECN whatever
//! `net.ipv4.tcp_ecn` says; without it the connection runs as `reno` ("prague-reno"): no pacing, no ECN.
//!
//! Per ACK, in this order: the window or the rate (`window.rs`), alpha and the size of packets once per virtual RTT (`alpha.rs`), the pace
//! (`pacing.rs`), the mode (`window.rs`). The integers are the module's.
//!
//! * **Window.** `frac_cwnd` counts 2^-20 packets. An unmarked packet adds to it, in every state but after a loss, while the window
//!   limits the flow. `snd_cwnd` goes towards its ceiling by one packet per ACK, and takes ssthresh along on its way down.
//! * **Slow start** overwrites `frac_cwnd`, so that what was reduced is forgotten, until an ACK comes that may not grow the window: one
//!   with marked packets alone, or after a loss.
//! * **Marks.** Alpha begins at 0 and follows the marks from the first on. The ACK with the first mark halves the fractional window; then entry to
//!   CWR takes alpha/2 of it, at most once per virtual RTT. The module of 2023 can reduce more behind a classic AQM ([`super::classic_ecn`]), but
//!   with its constants every AQM becomes one; 0.7 has no such fallback.
//! * **Loss** halves without a threshold; the window walks down, and grows again when the state is Open.
//! * **Rate mode**, once marks were seen and while the window is at most 6000 bytes: a few rounds out of slow start it is the rate that grows and
//!   shrinks, and the window follows from it and a slow average of the RTT. 100 kbit/s is the least. Packets shrink so that two of them are sent
//!   per virtual RTT, down to 150 bytes of payload.
//! * **Pace**: the window in whole packets, rounded down (`snd_cwnd` is rounded up), per RTT; twice that early in slow start. In rate mode the rate, 3 %
//!   more in the first half of a virtual RTT and 3 % less in the second. A burst is 1/4096 s of it, at least one packet.
//!
//! `@5.15` is `@2023` with alpha 1 at the start and bursts of at least two packets.
//!
//! | parameter | default | meaning |
//! |---|---|---|
//! | `alpha_mode` | 0; 1 in `@5.15` | alpha before the first mark: 0, and that mark halves the window; or 1 |
//! | `burst_shift` | 12 | a burst is 2^-`burst_shift` s of the pace, 0 to 31 |
//! | `cwnd_mode` | 2 | 0 window, 1 rate, 2 and 3 begin so and switch |
//! | `cwnd_transit` | 4 | windows up to so many packets of 1500 bytes are kept as rates |
//! | `max_tso_segs` | 0 | most packets of a burst; 0: no such bound |
//! | `min_tso_segs` | 1; 2 in `@5.15` | least packets of a burst, 1 to 255; version 0.6 took `net.ipv4.tcp_min_tso_segs`, 2 |
//! | `rtt_target` | 25ms | the RTT whose growth and reductions the flow imitates, 128 us to 1 s |
//! | `rtt_transition` | 4 | rounds out of slow start before it does |
//! | `rtt_scaling` | rate | `@2023` and `@5.15` alone: `none`, `rate`, `scalable`, `additive`: how growth depends on the RTT |
//! | `ecn_fallback` | 0 | `@2023` and `@5.15` alone: 1: reduce more behind a classic AQM |
//! | `fallback_constants` | broken | `@5.15` alone: the constants of that fallback: `broken`, or `mended` as by 48b3db6b |
//! | `rate_offset` | 4 | `@2023` and `@5.15` alone: by how many 128ths of the rate the pace differs from it, 0 to 128 |
//!
//! Departures: the two defaults of `@5.15` are what measurements of that build tell, its source was not read: a flow of 128 Mbit/s and 128 ms starts
//! as with alpha 1, and delays behind `dualpi2` are those of bursts of two. Headers are 52 bytes, as with timestamps, whatever was negotiated. `@2023` was written from a comparison with 0.7: what the comparison does
//! not name is as in 0.7, and with `rtt_scaling none` or `scalable` there is no virtual RTT, so that `none` never has a rate mode.
//!
//! Validation: `vectors.rs` (sequences of ACKs, every integer), `module.rs` (the same integers as the kernel module of this repository), the tests below,
//! `tests/window_model.rs` (mean windows under random marks), `tests/cc_hooks.rs` (any sequence of hooks), docs/models/prague.md (runs beside a real kernel).

mod alpha;
mod arithmetic;
#[cfg(test)]
mod module;
mod pacing;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod vectors;
mod window;

use super::classic_ecn::{ClassicEcn, Units};
use super::reno::Reno;
use super::rtt_scaling::Mode as Scaling;
use super::{CaEvent, CcEnv, CcError, CongestionControl, RateSample};
use crate::base::units::Time;
use crate::cc::sock::{CaState, TcpSock};
use bakeoff_document::cc::CcWords;

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
const MIN_CWND: u64 = 2;
/// Headers of IP and TCP with timestamps: the MTU is this and a segment.
const HEADERS: u64 = 52;
/// Least payload of a packet in bytes.
const MIN_MSS: u64 = 150;
/// A full packet in bytes, in which growth is counted.
const MTU_SYS: u64 = 1500;
/// 100 kbit/s in bytes per second.
const MIN_RATE: u64 = 12_500;
/// A second in the units of `srtt_us`.
const SECOND: u64 = 8_000_000;
/// The same as a power of two, which the way from rates to windows takes for it.
const SECOND_SHIFT: u32 = 23;
/// Gain of the slow average of the RTT: 1/128.
const HSRTT_SHIFT: u32 = 7;
/// Growth is not scaled beyond this RTT: 100 ms in the units of `srtt_us`.
const MAX_SCALED_RTT: u64 = 800_000;

/// Which module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Of2023,
    /// 0.7
    Present,
}

/// What is kept from one ACK to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Window,
    Rate,
}

/// Parameters and state.
pub struct Prague {
    version: Version,
    /// alpha begins at 1 and the first mark halves nothing.
    alpha_mode: bool,
    burst_shift: u32,
    max_tso_segs: u32,
    min_tso_segs: u32,
    cwnd_transit: u64,
    /// Whether the mode follows the window.
    switching: bool,
    scaling: Scaling,
    /// In the units of `srtt_us`.
    rtt_target: u64,
    rtt_transition: u32,
    rate_offset: u64,
    ecn_fallback: bool,
    fallback_units: Units,

    /// AccECN was not negotiated.
    as_reno: bool,
    mode: Mode,
    /// The window in 2^-20 packets.
    frac_cwnd: u64,
    /// The window as a rate: bytes per second of whole packets.
    rate: u64,
    /// Smoothed fraction of marks, times 2^28.
    alpha: u64,
    saw_ce: bool,
    in_loss: bool,
    /// `snd_cwnd` and `rate` before the last loss.
    before_loss: (u32, u64),
    /// Growth per window of ACKs in 2^-20 packets.
    ai_per_rtt: u64,
    /// Bytes of a full packet of this connection.
    mtu: u64,
    /// Slow average of `srtt_us`, times 128.
    hsrtt: u64,
    /// Rounds since slow start.
    round: u32,
    next_seq: u64,
    old_delivered: u64,
    old_delivered_ce: u64,
    /// Last update of alpha, last reduction.
    alpha_stamp: Time,
    cwr_stamp: Option<Time>,
    /// Packets per burst.
    burst: u64,
    classic_ecn: ClassicEcn,
}

/// The first is of 5.15 alone, the next three of 2023 too.
const PARAMETERS: &[&str] = &[
    "fallback_constants",
    "ecn_fallback",
    "rate_offset",
    "rtt_scaling",
    "alpha_mode",
    "burst_shift",
    "cwnd_mode",
    "cwnd_transit",
    "max_tso_segs",
    "min_tso_segs",
    "rtt_target",
    "rtt_transition",
];

/// Bytes of a packet as it is sent now.
fn mtu(tp: &TcpSock) -> u64 {
    u64::from(tp.mss) + HEADERS
}

impl Prague {
    fn new(version: Version) -> Self {
        Prague {
            version,
            alpha_mode: false,
            burst_shift: 12,
            max_tso_segs: 0,
            min_tso_segs: 1,
            cwnd_transit: 4,
            switching: true,
            scaling: Scaling::Rate,
            rtt_target: 25_000 << 3,
            rtt_transition: 4,
            rate_offset: 4,
            ecn_fallback: false,
            fallback_units: Units::BROKEN,
            as_reno: false,
            mode: Mode::Window,
            frac_cwnd: 0,
            rate: 0,
            alpha: 0,
            saw_ce: false,
            in_loss: false,
            before_loss: (0, 0),
            ai_per_rtt: ONE,
            mtu: MTU_SYS,
            hsrtt: 0,
            round: 0,
            next_seq: 0,
            old_delivered: 0,
            old_delivered_ce: 0,
            alpha_stamp: Time::ZERO,
            cwr_stamp: None,
            burst: 1,
            classic_ecn: ClassicEcn::new(0, Units::BROKEN),
        }
    }

    /// From the words after the name and its version.
    pub fn parse(words: &mut CcWords, _: CcEnv) -> Result<Self, CcError> {
        let (version, known) = match words.version() {
            Some("5.15") => (Version::Of2023, PARAMETERS),
            Some(_) => (Version::Of2023, &PARAMETERS[1..]),
            None => (Version::Present, &PARAMETERS[4..]),
        };
        let mut c = Prague::new(version);
        if words.version() == Some("5.15") {
            c.alpha_mode = true;
            c.min_tso_segs = 2;
        }
        while let Some(parameter) = words.parameter(known)? {
            match parameter {
                "alpha_mode" => c.alpha_mode = words.flag()?,
                "burst_shift" => c.burst_shift = words.number(0..=31)?,
                "cwnd_mode" => {
                    let bits = words.number(0..=3)?;
                    c.mode = if bits & 1 == 1 { Mode::Rate } else { Mode::Window };
                    c.switching = bits & 2 == 2;
                }
                "cwnd_transit" => c.cwnd_transit = words.number(0..=u32::MAX)?.into(),
                "ecn_fallback" => c.ecn_fallback = words.flag()?,
                "fallback_constants" => {
                    let mended = words.one_of(&["broken", "mended"])? == "mended";
                    c.fallback_units = if mended { Units::MENDED } else { Units::BROKEN };
                }
                "max_tso_segs" => c.max_tso_segs = words.number(0..=u32::MAX)?,
                "min_tso_segs" => c.min_tso_segs = words.number(1..=255)?,
                "rate_offset" => c.rate_offset = words.number(0..=128)?.into(),
                "rtt_scaling" => c.scaling = Scaling::parse(words)?,
                "rtt_target" => {
                    c.rtt_target = words.time(Time::from_us(128), Time::from_ms(1_000))?.as_us() << 3;
                }
                _ => c.rtt_transition = words.number(0..=u32::MAX)?,
            }
        }
        Ok(c)
    }

    /// Whether the flow imitates another RTT by now.
    fn active(&self, tp: &TcpSock) -> bool {
        self.scaling != Scaling::None && !tp.in_slow_start() && self.round >= self.rtt_transition
    }

    /// Whether the rate is what grows and shrinks.
    fn by_rate(&self, tp: &TcpSock) -> bool {
        self.mode == Mode::Rate && self.active(tp) && (self.version == Version::Present || self.saw_ce)
    }

    /// The RTT that the flow imitates, in the units of `srtt_us`.
    fn virtual_rtt(&self, tp: &TcpSock) -> u64 {
        match self.scaling {
            Scaling::Rate => self.rtt_target.max(tp.srtt_us),
            Scaling::Additive => self.rtt_target + tp.srtt_us,
            Scaling::None | Scaling::Scalable => tp.srtt_us.max(8),
        }
    }

    /// Whether a virtual RTT has passed since `stamp`; always true when there is none, or not yet.
    fn passed_since(&self, tp: &TcpSock, stamp: Option<Time>) -> bool {
        let target = match self.scaling {
            Scaling::Rate => self.rtt_target >> 3,
            Scaling::Additive => (self.rtt_target + tp.srtt_us) >> 3,
            Scaling::None | Scaling::Scalable => return true,
        };
        !self.active(tp) || stamp.is_none_or(|stamp| target <= tp.now.as_us() - stamp.as_us())
    }

    /// `snd_cwnd` changed, or a round began.
    fn set_ai(&mut self, tp: &TcpSock) {
        let srtt = tp.srtt_us;
        let scaled = self.round >= self.rtt_transition && srtt > 0 && srtt <= MAX_SCALED_RTT;
        self.ai_per_rtt = if scaled { window::increase(self.scaling, srtt, self.rtt_target) } else { ONE };
    }
}

impl CongestionControl for Prague {
    fn init(&mut self, tp: &mut TcpSock) {
        self.as_reno = !tp.accecn;
        if self.as_reno {
            return;
        }
        tp.request_pacing();
        let mode = std::mem::replace(&mut self.mode, Mode::Window);
        self.alpha_stamp = tp.now;
        self.alpha = if self.alpha_mode { MAX_ALPHA } else { 0 };
        self.frac_cwnd = u64::from(tp.snd_cwnd) << UNIT;
        self.update_pacing(tp);
        self.saw_ce = tp.delivered_ce != 0;
        self.mtu = mtu(tp);
        self.hsrtt = if tp.srtt_us > 0 { tp.srtt_us << HSRTT_SHIFT } else { 8 << HSRTT_SHIFT };
        self.mode = mode;
        self.classic_ecn = ClassicEcn::new(tp.srtt_us >> 3, self.fallback_units);
        self.new_round(tp);
    }

    /// The reduction itself waits in `frac_cwnd`.
    fn ssthresh(&mut self, tp: &mut TcpSock) -> u32 {
        if self.as_reno {
            return Reno::half(tp);
        }
        if self.ecn_fallback {
            self.classic_ecn.on_reduction(tp.snd_ssthresh);
        }
        tp.snd_ssthresh
    }

    fn cong_avoid(&mut self, tp: &mut TcpSock, acked: u32) {
        Reno::grow(tp, acked);
    }

    fn has_cong_control(&self) -> bool {
        !self.as_reno
    }

    fn cong_control(&mut self, tp: &mut TcpSock, sample: &RateSample) {
        self.update_cwnd(tp, sample.acked_sacked, sample.delivered_ce);
        self.update_alpha(tp);
        self.update_pacing(tp);
        self.update_mode(tp);
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
        let (cwnd, rate) = self.before_loss;
        self.in_loss = false;
        self.rate = self.rate.max(rate);
        self.frac_cwnd = self.rate_to_window(tp, self.rate);
        tp.snd_cwnd.max(cwnd)
    }

    fn tso_segs(&self, _tp: &TcpSock) -> Option<u32> {
        let burst = u32::try_from(self.burst).unwrap_or(u32::MAX);
        let most = if self.max_tso_segs > 0 { self.max_tso_segs } else { u32::MAX };
        (!self.as_reno).then_some(burst.max(self.min_tso_segs).min(most))
    }

    fn needs_ecn(&self) -> bool {
        !self.as_reno
    }

    fn needs_accecn(&self) -> bool {
        !self.as_reno
    }

    fn ect1(&self) -> bool {
        !self.as_reno
    }

    fn trace(&self) -> Vec<(&'static str, f64)> {
        let one = ONE as f64;
        let mut values = vec![
            ("alpha", self.alpha as f64 / MAX_ALPHA as f64),
            ("frac_cwnd", self.frac_cwnd as f64 / one),
            ("rate", self.rate as f64),
            ("ai_per_rtt", self.ai_per_rtt as f64 / one),
            ("in_loss", f64::from(u8::from(self.in_loss))),
            ("rate_mode", f64::from(u8::from(self.mode == Mode::Rate))),
        ];
        if self.ecn_fallback {
            values.push(("classic_ecn", self.classic_ecn.score()));
        }
        values
    }
}
