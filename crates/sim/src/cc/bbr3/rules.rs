//! What the versions do otherwise: one table of constants and rules for each. Part of [`super::Bbr3`].
//!
//! Source: see [`super`].
//!
//! Departures, validation: see [`super`]; the tests in `draft.rs` and `version2.rs`.

use crate::cc::bandwidth::UNIT;

/// A part of a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub num: u32,
    pub den: u32,
}

impl Part {
    /// `num`/256, as the kernel's.
    const fn of_256(num: u32) -> Part {
        Part { num, den: 256 }
    }

    /// In percent, as the draft's.
    const fn percent(num: u32) -> Part {
        Part { num, den: 100 }
    }

    /// Of `whole`, rounded down.
    pub fn of(self, whole: u64) -> u64 {
        whole * u64::from(self.num) / u64::from(self.den)
    }

    /// Whether `count` is more than this part of `whole`.
    pub fn is_exceeded(self, count: u32, whole: u32) -> bool {
        u64::from(count) * u64::from(self.den) > u64::from(whole) * u64::from(self.num)
    }
}

/// Which samples tell that the bandwidth still grows by a quarter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// The maximum when a round starts, in STARTUP alone.
    Maximum,
    /// Each ACK's.
    EveryAck,
    /// The one that starts a round.
    RoundStart,
}

/// What a timeout makes the bound of what is in flight, if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutBound {
    /// Still none; the test for a full pipe goes on, too.
    None,
    /// The window before.
    Prior,
    /// The window before or the present one, whichever is larger.
    Larger,
}

/// A version. Gains are in 1/256.
#[derive(Debug, PartialEq, Eq)]
pub struct Rules {
    /// The pace in STARTUP.
    pub startup_gain: u64,
    /// The pace in DRAIN.
    pub drain_gain: u64,
    /// The pace in PROBE_DOWN.
    pub down_gain: u64,
    /// The window in STARTUP and DRAIN.
    pub early_cwnd_gain: u64,
    /// The window in PROBE_UP.
    pub up_cwnd_gain: u64,

    /// Which samples count in the test for a full pipe.
    pub growth: Growth,
    /// STARTUP ends with so many ACKs with losses in a round of Recovery that lost too much.
    pub startup_losses: u32,
    /// Lost ranges count there, in place of ACKs.
    pub counts_ranges: bool,
    /// `inflight_hi` is then the BDP or what was delivered in the round, whichever is larger; else the BDP.
    pub bound_keeps_latest: bool,
    /// Before the pipe is full, the window grows until the initial window is delivered, however large it is; else up to twice that window.
    pub grows_till_delivered: bool,
    /// DRAIN ends after more than so many rounds, whatever is in flight.
    pub drain_rounds: u64,
    /// DRAIN ends by the bandwidth's maximum; else by the bandwidth in use.
    pub drains_by_maximum: bool,

    /// Loss above this is too much.
    pub loss_threshold: Part,
    /// A sample with too much loss lowers `inflight_hi`, too; else lost packets alone do.
    pub acks_tell_loss: bool,
    /// Without SACK any loss is too much.
    pub any_loss_without_sack: bool,
    /// The point where loss crossed the threshold is exact; else within the packet, after packets rounded up.
    pub exact_loss_point: bool,
    /// BDPs that bound or pace a probe are as they are; else they hold three TSO packets.
    pub bare_bdp: bool,
    /// What a lossy round leaves of the short-term bounds, and a probe that went too far of the BDP.
    pub loss_cut: Part,
    /// Of `inflight_hi`, what stays free while cruising.
    pub headroom: Part,
    /// Cruising begins with the short-term bound at most at `inflight_hi`.
    pub cruise_lowers: bool,
    /// A round's latest signals are replaced before the ACK is judged; else at its end.
    pub latest_at_once: bool,
    /// A probe ends with 1.25 BDP in flight; else when the pipe is full.
    pub probes_to_inflight: bool,
    /// Credit for raising `inflight_hi` lasts while the window is not the limit.
    pub credit_lasts: bool,
    /// Marks count where the route promises them and feedback is AccECN; else wherever they are enabled.
    pub marks_by_route: bool,

    /// An RTT equal to PROBE_RTT's minimum renews it.
    pub equal_renews_probe_rtt: bool,
    /// An RTT equal to the minimum renews it.
    pub equal_renews_min_rtt: bool,
    /// The RTT of a delayed ACK replaces a minimum that is too old.
    pub delayed_replaces: bool,

    /// In flight is what will be in the network when the next packet departs; else what is now.
    pub departure_time: bool,
    /// Packets for segmentation hold 1 ms, at least 2 segments and at most 64 KB; else they are Linux's, longer at short RTTs.
    pub quantum_of_1_ms: bool,
    /// Below 1.2 Mbit/s they hold one segment; else two.
    pub single_segments: bool,
    /// Aggregation is the maximum of ten rounds; else of two windows of five, and not more than 100 ms.
    pub aggregation_by_rounds: bool,

    /// A loss that a tail loss probe repaired counts as of a probe for bandwidth, and what was delivered before it is remembered.
    pub tail_loss: bool,
    /// A timeout's bound.
    pub timeout_bound: TimeoutBound,
    /// Leaving Recovery gives back the window, too; else leaving Loss alone.
    pub recovery_restores: bool,
    /// Undoing a false loss leads back to STARTUP, or to a probe, that it ended; what is given back is of before the first packet marked.
    pub undo_returns: bool,
}

/// v2alpha.
pub const V2: Rules = Rules {
    // 2 / ln 2, rounded up
    startup_gain: UNIT * 2885 / 1000 + 1,
    drain_gain: UNIT * 1000 / 2885,
    down_gain: UNIT * 3 / 4,
    early_cwnd_gain: UNIT * 2885 / 1000 + 1,
    up_cwnd_gain: 2 * UNIT,

    growth: Growth::Maximum,
    startup_losses: 8,
    counts_ranges: false,
    bound_keeps_latest: false,
    grows_till_delivered: false,
    drain_rounds: u64::MAX,
    drains_by_maximum: true,

    loss_threshold: Part::of_256(256 * 2 / 100),
    acks_tell_loss: true,
    any_loss_without_sack: false,
    exact_loss_point: false,
    bare_bdp: false,
    loss_cut: Part::of_256(256 - 256 * 30 / 100),
    headroom: Part::of_256(256 * 15 / 100),
    cruise_lowers: true,
    latest_at_once: true,
    probes_to_inflight: true,
    credit_lasts: false,
    marks_by_route: false,

    equal_renews_probe_rtt: true,
    equal_renews_min_rtt: true,
    delayed_replaces: false,

    departure_time: true,
    quantum_of_1_ms: false,
    single_segments: true,
    aggregation_by_rounds: false,

    tail_loss: false,
    timeout_bound: TimeoutBound::Prior,
    recovery_restores: false,
    undo_returns: false,
};

/// v3, as `bbr3` is.
pub const V3: Rules = Rules {
    // 4 ln 2, rounded up
    startup_gain: UNIT * 277 / 100 + 1,
    down_gain: UNIT * 91 / 100,
    early_cwnd_gain: 2 * UNIT,
    up_cwnd_gain: 2 * UNIT + UNIT / 4,
    growth: Growth::EveryAck,
    startup_losses: 6,
    bound_keeps_latest: true,
    latest_at_once: false,
    probes_to_inflight: false,
    credit_lasts: true,
    marks_by_route: true,
    equal_renews_probe_rtt: false,
    timeout_bound: TimeoutBound::Larger,
    ..V2
};

/// v3, as Google's kernel has it.
pub const GOOGLE: Rules = Rules { single_segments: false, tail_loss: true, ..V3 };

/// draft-ietf-ccwg-bbr at 4ce5e87.
pub const DRAFT: Rules = Rules {
    startup_gain: UNIT * 277 / 100,
    drain_gain: UNIT / 2,
    down_gain: UNIT * 90 / 100,
    growth: Growth::RoundStart,
    counts_ranges: true,
    grows_till_delivered: true,
    drain_rounds: 3,
    drains_by_maximum: false,
    loss_threshold: Part::percent(2),
    acks_tell_loss: false,
    any_loss_without_sack: true,
    exact_loss_point: true,
    bare_bdp: true,
    loss_cut: Part::percent(70),
    headroom: Part::percent(15),
    cruise_lowers: false,
    equal_renews_min_rtt: false,
    delayed_replaces: true,
    departure_time: false,
    quantum_of_1_ms: true,
    aggregation_by_rounds: true,
    timeout_bound: TimeoutBound::None,
    recovery_restores: true,
    undo_returns: true,
    ..V3
};
