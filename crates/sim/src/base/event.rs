//! The event queue: a sorted array of 16-byte entries, ordered by (time, [`Event`]), and a heap of what is due later.
//!
//! The order is total, hence deterministic, and it does not depend on when an event was scheduled: what the loop works
//! out ahead of time comes in the order in which it would have come otherwise. A dumbbell has 4 to 30 pending events
//! (one per line, not one per packet), and what is pushed is mostly due before all but one or two of them: the timers
//! of connections lie far ahead. A few steps in an array beat the ways up and down a heap. Thousands of connections
//! have a timer or two each. So the array holds the next events, [`MOST`] at most, and the heap all others.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::base::units::Time;

/// What happens: a kind and the index of the thing it happens to. Events of one nanosecond happen in the order of the
/// kinds here, and of one kind in that of the index.
///
/// What leaves a queue comes before what enters one: a packet that arrives when another leaves finds its place free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// A scheduled change.
    Change(u16),
    /// Series are sampled.
    Sample,
    /// An interface's egress queue may release a packet.
    Egress(u16),
    /// An interface's ingress queue may release a packet.
    Ingress(u16),
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
    /// A host's network card gives what it held back.
    Receive(u16),
    /// The oldest packet on a wire arrives.
    Arrival(u16),
}

impl Event {
    /// A number with the same order: the kind, then the index.
    #[inline]
    fn number(self) -> u32 {
        let (kind, index) = match self {
            Event::Change(i) => (0, i),
            Event::Sample => (1, 0),
            Event::Egress(i) => (2, i),
            Event::Ingress(i) => (3, i),
            Event::Link(i) => (4, i),
            Event::Sender(i) => (5, i),
            Event::Receiver(i) => (6, i),
            Event::Source(i) => (7, i),
            Event::Probe(i) => (8, i),
            Event::Receive(i) => (9, i),
            Event::Arrival(i) => (10, i),
        };
        kind << 16 | u32::from(index)
    }

    /// The event of a number.
    #[inline]
    fn numbered(number: u32) -> Event {
        let index = number as u16;
        match number >> 16 {
            0 => Event::Change(index),
            1 => Event::Sample,
            2 => Event::Egress(index),
            3 => Event::Ingress(index),
            4 => Event::Link(index),
            5 => Event::Sender(index),
            6 => Event::Receiver(index),
            7 => Event::Source(index),
            8 => Event::Probe(index),
            9 => Event::Receive(index),
            _ => Event::Arrival(index),
        }
    }
}

/// Pending events.
#[derive(Default)]
pub struct EventQueue {
    /// The next ones. The earliest stands last. Time and event are one number: its upper 64 bits, its lower 32.
    pending: Vec<u128>,
    /// Those that come after all of these.
    later: BinaryHeap<Reverse<u128>>,
}

/// How an event is written down.
#[inline]
fn entry(time: Time, event: Event) -> u128 {
    u128::from(time.0) << 64 | u128::from(event.number())
}

/// What is written there.
#[inline]
fn event(entry: u128) -> (Time, Event) {
    (Time((entry >> 64) as u64), Event::numbered(entry as u32))
}

/// How many entries are passed one by one before the place is looked for by bisection.
const NEAR: usize = 8;

/// How many entries the array holds at most.
const MOST: usize = 64;

impl EventQueue {
    /// Schedules `event` at `time`.
    #[inline]
    pub fn push(&mut self, time: Time, event: Event) {
        self.insert(entry(time, event));
    }

    /// Schedules what is `awaited`, if anything is, and takes the earliest event.
    #[inline]
    pub fn pop_with(&mut self, awaited: Option<(Time, Event)>) -> Option<(Time, Event)> {
        if let Some((time, event)) = awaited {
            let new = entry(time, event);
            if self.pending.last().is_none_or(|first| new < *first) {
                return awaited;
            }
            self.insert(new);
        }
        self.pop()
    }

    fn insert(&mut self, new: u128) {
        let mut at = self.pending.len();
        let far = if at > NEAR { self.pending[at - NEAR] < new } else { !self.later.is_empty() };
        if far || at == self.pending.capacity() {
            return self.insert_far(new);
        }
        self.pending.push(new);
        let pending = &mut self.pending[..];
        while at > 0 && pending[at - 1] < new {
            pending[at] = pending[at - 1];
            at -= 1;
        }
        pending[at] = new;
    }

    /// Anywhere. Apart from the other, which then needs no registers that it would have to save.
    #[cold]
    #[inline(never)]
    fn insert_far(&mut self, new: u128) {
        if self.pending.len() >= MOST {
            self.later.extend(self.pending.drain(..MOST / 2).map(Reverse));
        }
        if self.later.peek().is_some_and(|first| first.0 < new) {
            self.later.push(Reverse(new));
        } else {
            let at = self.pending.partition_point(|other| *other > new);
            self.pending.insert(at, new);
        }
    }

    /// The earliest event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, Event)> {
        if self.pending.len() == 1 {
            return self.pop_last();
        }
        self.pending.pop().map(event)
    }

    /// The only one in the array, which is filled again.
    #[cold]
    #[inline(never)]
    fn pop_last(&mut self) -> Option<(Time, Event)> {
        let last = self.pending.pop().map(event);
        let next = std::iter::from_fn(|| self.later.pop()).map(|Reverse(next)| next);
        self.pending.extend(next.take(MOST / 2));
        self.pending.reverse();
        last
    }

    /// When the earliest event is due.
    #[inline]
    pub fn earliest(&self) -> Time {
        self.pending.last().map_or(Time::NEVER, |first| Time((first >> 64) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_times_come_by_kind_and_index_whatever_was_pushed_first() {
        let mut q = EventQueue::default();
        let mut events =
            [Event::Arrival(2), Event::Arrival(1), Event::Sender(9), Event::Egress(9), Event::Sample];
        for event in events {
            q.push(Time(5), event);
        }
        q.push(Time(4), Event::Arrival(9));
        assert_eq!(q.pop(), Some((Time(4), Event::Arrival(9))));
        events.reverse();
        for event in events {
            assert_eq!(q.pop(), Some((Time(5), event)));
        }
        assert_eq!(q.pop(), None);
    }

    proptest! {
        #[test]
        fn pops_in_order_of_time_then_event(pushed in prop::collection::vec((0_u64..50, 0_u16..50), 0..200)) {
            let mut q = EventQueue::default();
            for (time, i) in &pushed {
                q.push(Time(*time), Event::Change(*i));
            }
            let mut expected = pushed;
            expected.sort_unstable();
            for (time, i) in expected {
                prop_assert_eq!(q.pop(), Some((Time(time), Event::Change(i))));
            }
        }

        /// More of the first 400 steps push than pop, and then fewer, so that there are more than the array holds for a
        /// while, and in the end few.
        #[test]
        fn pops_the_earliest_of_many(steps in prop::collection::vec((0_u8..4, 0_u64..1000, 0_u16..50), 0..1200)) {
            let (mut q, mut model) = (EventQueue::default(), BinaryHeap::new());
            for (n, (step, time, i)) in steps.into_iter().enumerate() {
                if step > if n < 400 { 0 } else { 2 } {
                    q.push(Time(time), Event::Change(i));
                    model.push(Reverse((time, i)));
                } else {
                    let first = model.pop().map(|Reverse((time, i))| (Time(time), Event::Change(i)));
                    prop_assert_eq!(q.pop(), first);
                }
                let earliest = model.peek().map_or(Time::NEVER, |Reverse((time, _))| Time(*time));
                prop_assert_eq!(q.earliest(), earliest);
            }
        }

        #[test]
        fn what_is_awaited_comes_in_its_turn(pushed in prop::collection::vec((0_u64..50, 0_u16..50), 0..60), awaited in (0_u64..50, 0_u16..50)) {
            let (mut q, mut other) = (EventQueue::default(), EventQueue::default());
            for (time, i) in &pushed {
                q.push(Time(*time), Event::Change(*i));
                other.push(Time(*time), Event::Change(*i));
            }
            let awaited = (Time(awaited.0), Event::Change(awaited.1));
            other.push(awaited.0, awaited.1);
            prop_assert_eq!(q.pop_with(Some(awaited)), other.pop());
            while let Some(event) = other.pop() {
                prop_assert_eq!(q.pop_with(None), Some(event));
            }
            prop_assert_eq!(q.pop(), None);
        }
    }
}
