//! The event queue: a sorted array of 16-byte entries, ordered by (time, order of insertion).
//!
//! The order is total, hence deterministic. A dumbbell has 4 to 30 pending events (one per line,
//! not one per packet), and what is pushed is mostly due before all but one or two of them: the
//! timers of connections lie far ahead. A few steps in an array beat the ways up and down a heap.

use crate::base::units::Time;

/// What happens: a kind and the index of the thing it happens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An interface's ingress queue may release a packet.
    Ingress(u16),
    /// An interface's egress queue may release a packet.
    Egress(u16),
    /// The oldest packet on a link arrives.
    Arrival(u16),
    /// A link's medium may take more; see [`crate::network::medium`].
    Link(u16),
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

/// Pending events.
#[derive(Default)]
pub struct EventQueue {
    /// The earliest stands last; of equal times the one inserted first.
    pending: Vec<(Time, Event)>,
}

/// How many entries are passed one by one before the place is looked for by bisection.
const NEAR: usize = 8;

impl EventQueue {
    /// Schedules `event` at `time`.
    pub fn push(&mut self, time: Time, event: Event) {
        let mut at = self.pending.len();
        if at > NEAR && self.pending[at - NEAR].0 <= time {
            let far = self.pending[..at - NEAR].partition_point(|other| other.0 > time);
            self.pending.insert(far, (time, event));
            return;
        }
        self.pending.push((time, event));
        let pending = &mut self.pending[..];
        while at > 0 && pending[at - 1].0 <= time {
            pending[at] = pending[at - 1];
            at -= 1;
        }
        pending[at] = (time, event);
    }

    /// The earliest event; of equal times the one inserted first.
    pub fn pop(&mut self) -> Option<(Time, Event)> {
        self.pending.pop()
    }

    /// When the earliest event is due.
    pub fn earliest(&self) -> Time {
        self.pending.last().map_or(Time::NEVER, |first| first.0)
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
