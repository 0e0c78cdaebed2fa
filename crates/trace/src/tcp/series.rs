//! A flow over time, in intervals that become longer if there are too many of them.

use crate::report::{DirectionSeries, Series};

/// Most intervals of one flow.
pub const POINTS: usize = 4096;
/// Intervals that every flow may have, however many flows there are.
const ALWAYS: usize = 256;
/// Intervals of all flows together.
pub const ALL_POINTS: usize = 1 << 21;

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

/// The intervals of a flow; up and down.
#[derive(Clone, Debug)]
pub struct Intervals {
    length_ns: i64,
    /// Number of the first, counted from the begin of the capture.
    first: i64,
    slots: Vec<[Slot; 2]>,
    /// Where the current one ends and begins, so that nothing is divided per packet.
    current: (i64, i64, usize),
}

impl Intervals {
    pub fn new(length_ns: i64) -> Intervals {
        Intervals { length_ns, first: 0, slots: Vec::new(), current: (0, 0, 0) }
    }

    /// The interval of a time since the begin of the capture. `points` is what all flows may still use.
    pub fn at(&mut self, since_ns: i64, points: &mut usize) -> &mut [Slot; 2] {
        let (from, to, index) = self.current;
        if since_ns >= from && since_ns < to {
            return &mut self.slots[index];
        }
        if self.slots.is_empty() {
            self.first = since_ns.div_euclid(self.length_ns);
        }
        // Before the flow's first packet: time ran backwards.
        let mut index = self.index(since_ns);
        while index >= POINTS
            || index >= self.slots.len() && index >= ALWAYS && index - self.slots.len() >= *points
        {
            *points += self.halve();
            index = self.index(since_ns);
        }
        if index >= self.slots.len() {
            *points = points.saturating_sub(index + 1 - self.slots.len());
            self.slots.resize(index + 1, [Slot::default(); 2]);
        }
        let from = (self.first + index as i64).saturating_mul(self.length_ns);
        self.current = (from, from.saturating_add(self.length_ns), index);
        &mut self.slots[index]
    }

    fn index(&self, since_ns: i64) -> usize {
        usize::try_from(since_ns.div_euclid(self.length_ns).saturating_sub(self.first)).unwrap_or(0)
    }

    /// Makes the intervals twice as long; how many fewer they are.
    fn halve(&mut self) -> usize {
        let before = self.slots.len();
        if self.first.rem_euclid(2) == 1 {
            self.slots.insert(0, [Slot::default(); 2]);
        }
        self.slots = self
            .slots
            .chunks(2)
            .map(|pair| {
                let mut joined = pair[0];
                if let [_, [up, down]] = pair {
                    joined[0].join(up);
                    joined[1].join(down);
                }
                joined
            })
            .collect();
        self.first = self.first.div_euclid(2);
        self.length_ns = self.length_ns.saturating_mul(2);
        self.current = (0, 0, 0);
        before.saturating_sub(self.slots.len())
    }

    /// As it is told. `carries` says which directions had payload, `ace` whether marks are echoed by the ACE field.
    pub fn finish(self, carries: [bool; 2], ace: bool) -> Series {
        let interval_s = self.length_ns as f64 * 1e-9;
        let direction = |d: usize| {
            let slots = || self.slots.iter().map(|slot| &slot[d]);
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
        Series {
            interval_s,
            time_s: (1..=self.slots.len()).map(|i| (self.first + i as i64) as f64 * interval_s).collect(),
            up: direction(0),
            down: direction(1),
        }
    }
}
