//! A TCP flow over time.

use crate::intervals::{self, Told};
use crate::report::{DirectionSeries, Series};

/// One direction in one interval.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slot {
    /// Payload that was acknowledged.
    pub acked: u64,
    /// Lengths of the IP packets.
    pub ip_bytes: u64,
    /// Sum of the round trips, in nanoseconds.
    pub rtt_ns: u64,
    /// How many these are.
    pub rtts: u32,
    /// Packets with CE.
    pub ce: u32,
    /// Packets with ECT(1).
    pub ect1: u32,
    /// Marks by the ACE field.
    pub ace: u32,
    /// ACKs with ECE.
    pub ece: u32,
    /// Packets sent again.
    pub retransmits: u32,
    /// Most payload under way.
    pub in_flight: u64,
}

/// The intervals of a flow; up and down.
pub type Intervals = intervals::Intervals<[Slot; 2]>;

impl intervals::Slot for [Slot; 2] {
    fn join(&mut self, other: &[Slot; 2]) {
        let [up, down] = self;
        up.join(&other[0]);
        down.join(&other[1]);
    }
}

impl Slot {
    fn join(&mut self, other: &Slot) {
        self.acked += other.acked;
        self.ip_bytes += other.ip_bytes;
        self.rtt_ns = self.rtt_ns.saturating_add(other.rtt_ns);
        for (this, other) in [
            (&mut self.rtts, other.rtts),
            (&mut self.ce, other.ce),
            (&mut self.ect1, other.ect1),
            (&mut self.ace, other.ace),
            (&mut self.ece, other.ece),
            (&mut self.retransmits, other.retransmits),
        ] {
            *this = this.saturating_add(other);
        }
        self.in_flight = self.in_flight.max(other.in_flight);
    }
}

/// As it is told. `carries` says which directions had payload, `ace` whether marks are echoed by the ACE field; the capture
/// began `shift_ns` after zero.
pub fn finish(told: &Told<[Slot; 2]>, carries: [bool; 2], ace: bool, shift_ns: i64) -> Series {
    let interval_s = told.interval_s();
    let direction = |d: usize| {
        let slots = || told.slots.iter().map(|slot| &slot[d]);
        carries[d].then(|| DirectionSeries {
            goodput_bps: slots().map(|slot| slot.acked as f64 * 8.0 / interval_s).collect(),
            throughput_bps: slots().map(|slot| slot.ip_bytes as f64 * 8.0 / interval_s).collect(),
            rtt_s: slots()
                .map(|slot| (slot.rtts > 0).then(|| slot.rtt_ns as f64 * 1e-9 / f64::from(slot.rtts)))
                .collect(),
            ce: slots().map(|slot| slot.ce.into()).collect(),
            ect1: slots().map(|slot| slot.ect1.into()).collect(),
            echoed: slots().map(|slot| if ace { slot.ace } else { slot.ece }.into()).collect(),
            retransmits: slots().map(|slot| slot.retransmits.into()).collect(),
            in_flight_bytes: slots().map(|slot| slot.in_flight).collect(),
        })
    };
    Series { interval_s, time_s: told.time_s(shift_ns), up: direction(0), down: direction(1) }
}
