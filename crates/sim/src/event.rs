//! The event queue: a 4-ary heap of 16-byte entries, ordered by (time, order of insertion).
//!
//! The order is total, hence deterministic. A dumbbell has 4 to 30 pending events (one per line,
//! not one per packet), where a flat 4-ary heap beats calendars and binary heaps.

use crate::units::Time;

/// What happens: a kind and the index of the thing it happens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An interface's ingress queue may release a packet.
    Ingress(u16),
    /// An interface's egress queue may release a packet.
    Egress(u16),
    /// The oldest packet on a link arrives.
    Arrival(u16),
    /// A sender's earliest timer.
    Sender(u16),
    /// A receiver's earliest timer.
    Receiver(u16),
    /// A flow's application writes or stops.
    Source(u16),
    /// A probe's next request.
    Probe(u16),
    /// Series are sampled.
    Sample,
    /// A scheduled change.
    Change(u16),
}

impl Event {
    fn code(self) -> u64 {
        let (kind, index) = match self {
            Event::Ingress(i) => (0, i),
            Event::Egress(i) => (1, i),
            Event::Arrival(i) => (2, i),
            Event::Sender(i) => (3, i),
            Event::Receiver(i) => (4, i),
            Event::Source(i) => (5, i),
            Event::Probe(i) => (6, i),
            Event::Sample => (7, 0),
            Event::Change(i) => (8, i),
        };
        (kind << 16) | u64::from(index)
    }

    fn from_code(code: u64) -> Event {
        let index = code as u16;
        match (code >> 16) & 0xff {
            0 => Event::Ingress(index),
            1 => Event::Egress(index),
            2 => Event::Arrival(index),
            3 => Event::Sender(index),
            4 => Event::Receiver(index),
            5 => Event::Source(index),
            6 => Event::Probe(index),
            7 => Event::Sample,
            _ => Event::Change(index),
        }
    }
}

/// Pending events.
pub struct EventQueue {
    /// time << 64 | insertion number << 24 | event code; behind the last entry `PADDING` times `LATEST`,
    /// so that every parent has four children.
    heap: Vec<u128>,
    /// The entry at the top was handed out: the next one that is pushed takes its place, which costs one
    /// way down the heap where a removal and an insertion cost two ways.
    vacant: bool,
    inserted: u64,
}

const PADDING: usize = 3;
const LATEST: u128 = u128::MAX;

impl Default for EventQueue {
    fn default() -> Self {
        EventQueue { heap: vec![LATEST; PADDING], vacant: false, inserted: 0 }
    }
}

impl EventQueue {
    /// Schedules `event` at `time`.
    pub fn push(&mut self, time: Time, event: Event) {
        let entry = (u128::from(time.as_ns()) << 64) | u128::from((self.inserted << 24) | event.code());
        self.inserted += 1;
        if self.vacant {
            self.vacant = false;
            self.settle_at_top(entry);
            return;
        }
        let mut at = self.heap.len() - PADDING;
        self.heap.push(LATEST);
        while at > 0 {
            let parent = (at - 1) / 4;
            if self.heap[parent] <= entry {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = entry;
    }

    /// The earliest event; of equal times the one inserted first.
    pub fn pop(&mut self) -> Option<(Time, Event)> {
        if self.vacant {
            self.vacant = false;
            let end = self.heap.len() - PADDING - 1;
            let last = self.heap.swap_remove(end);
            if end > 0 {
                self.settle_at_top(last);
            }
        }
        if self.heap.len() == PADDING {
            return None;
        }
        let top = self.heap[0];
        self.vacant = true;
        Some((Time((top >> 64) as u64), Event::from_code(top as u64 & 0x00ff_ffff)))
    }

    /// Moves children up into the vacant top until `entry` fits.
    fn settle_at_top(&mut self, entry: u128) {
        let heap = &mut self.heap[..];
        let mut at = 0;
        while let Some(&[a, b, c, d]) = heap.get(4 * at + 1..4 * at + 5) {
            // Two independent comparisons, then one: no loop, no branches.
            let (i, left) = if b < a { (2, b) } else { (1, a) };
            let (j, right) = if d < c { (4, d) } else { (3, c) };
            let (child, least) = if right < left { (4 * at + j, right) } else { (4 * at + i, left) };
            if entry <= least {
                break;
            }
            heap[at] = least;
            at = child;
        }
        heap[at] = entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_times_keep_the_order_of_insertion() {
        let mut q = EventQueue::default();
        for i in 0..9 {
            q.push(Time(5), Event::Sender(i));
        }
        q.push(Time(4), Event::Sample);
        assert_eq!(q.pop(), Some((Time(4), Event::Sample)));
        for i in 0..9 {
            assert_eq!(q.pop(), Some((Time(5), Event::Sender(i))));
        }
        assert_eq!(q.pop(), None);
    }

    proptest! {
        #[test]
        fn pops_in_stable_order_of_time(times in prop::collection::vec(0_u64..50, 0..200)) {
            let mut q = EventQueue::default();
            for (i, t) in times.iter().enumerate() {
                q.push(Time(*t), Event::Change(i as u16));
            }
            let mut expected: Vec<(u64, usize)> = times.iter().copied().zip(0..).collect();
            expected.sort_unstable();
            for (t, i) in expected {
                prop_assert_eq!(q.pop(), Some((Time(t), Event::Change(i as u16))));
            }
        }
    }
}
