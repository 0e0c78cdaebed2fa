//! How much a connection may have waiting in its own host: TCP small queues (TSQ).
//!
//! Source: Linux 7.3 `net/ipv4/tcp_output.c` (`tcp_small_queue_check`, `tcp_wfree`).
//!
//! Parameters: `net.ipv4.tcp_limit_output_bytes` (4 MiB), the most whatever the pacing rate.
//!
//! Departures: data is charged only where its host's device has a queue or a rate. What leaves a device with a rate is
//! given back when its transmission begins, but a sender that waits for it goes on when it ends. A drop in the host's queue
//! wakes nobody: the next departure or ACK does. Without a queue the host ends at its device ([`Burst`]).
//!
//! Validation: the tests below, `tests/offloads.rs`.

use crate::base::ring::Ring;
use crate::base::units::Time;
use crate::packet::charge::{Charges, HEAD};

/// What a host without queues sent since its event began: the next hop takes it when the event has ended, or at once while
/// the application writes (a softirq runs after each packet). Until then it is charged as in a queue, and what waits for it
/// leaves in the same moment, but from another call of `tcp_write_xmit`.
#[derive(Debug, Default)]
pub(super) struct Burst {
    /// In bytes.
    pub memory: u64,
    /// Whether something waits for it (`TSQ_THROTTLED`).
    pub throttled: bool,
    /// Whether the application writes.
    pub leaves_at_once: bool,
}

impl Burst {
    /// Whether more than `limit` bytes are charged; then something waits.
    #[inline]
    pub fn is_full(&mut self, limit: u64) -> bool {
        let full = !self.leaves_at_once && self.memory + BIAS > limit;
        self.throttled |= full;
        full
    }

    /// Another event begins.
    #[inline]
    pub fn begin(&mut self) {
        (self.memory, self.leaves_at_once) = (0, false);
    }
}

/// What a socket without data is charged (`SK_WMEM_ALLOC_BIAS`): the reason why two buffers may wait, not three.
const BIAS: u64 = 1;

/// The memory that is charged now.
#[derive(Debug)]
pub(super) struct SmallQueue {
    /// In bytes.
    memory: u64,
    /// `tcp_limit_output_bytes`
    limit: u64,
    /// Whether the sender waits for a departure.
    throttled: bool,
    /// The most that may be charged, as it was last asked for.
    asked: u64,
    /// With more than this charged, another try would end as the last one did.
    enough: u64,
    flow: u16,
    returned: Charges,
    /// What its host's device sends, in that order, and what was not yet given back of it.
    leaving: Ring<Departure>,
}

/// The way of a buffer out of its host.
#[derive(Clone, Copy, Debug, Default)]
struct Departure {
    /// When its transmission begins, and its memory is free again.
    begins: Time,
    /// When that ends.
    ends: Time,
    /// In bytes.
    memory: u64,
}

impl SmallQueue {
    /// Of `flow`, whose host's queues note what they give back in `returned`.
    pub fn new(flow: u16, limit: u64, returned: Charges) -> Self {
        SmallQueue {
            memory: BIAS,
            limit,
            throttled: false,
            asked: 0,
            enough: u64::MAX,
            flow,
            returned,
            leaving: Ring::default(),
        }
    }

    /// So many buffers with `bytes` of payload were handed down.
    pub fn charge(&mut self, bytes: u64, buffers: u64) {
        self.memory += bytes + buffers * HEAD;
    }

    /// Whether so many buffers with `bytes` of payload have to wait: more is charged than twice their memory, or `per_ms`
    /// bytes, a millisecond of the pacing rate, times 2^`factor`.
    pub fn is_full(&mut self, bytes: u64, buffers: u64, per_ms: u64, factor: u32) -> bool {
        self.take_back();
        let limit = (2 * (bytes + buffers * HEAD)).max(per_ms).min(self.limit);
        self.asked = limit.saturating_mul(1 << factor);
        self.memory > self.asked
    }

    /// The sender waits for a departure; if `only_memory`, nothing but memory keeps it from sending what it asked for last.
    pub fn throttle(&mut self, only_memory: bool) {
        self.throttled = true;
        self.enough = if only_memory { self.asked } else { u64::MAX };
    }

    /// Something else happened to the sender: it may want to send other things than it asked for.
    #[inline]
    pub fn reconsider(&mut self) {
        self.enough = u64::MAX;
    }

    /// Whether a sender that a departure woke has to wait for the next one, as it did before.
    pub fn waits_on(&mut self) -> bool {
        if self.enough == u64::MAX {
            return false;
        }
        self.take_back();
        if self.memory <= self.enough {
            self.reconsider();
            return false;
        }
        self.throttled = true;
        true
    }

    /// A buffer of so much `memory` leaves the device, from `begins`, now or later, to `ends`; true if the sender waits.
    #[inline]
    pub fn leaves(&mut self, memory: u64, begins: Time, ends: Time) -> bool {
        self.leaving.push(Departure { begins, ends, memory });
        self.throttled
    }

    /// Takes back the memory of what began to leave until `now`; when the sender, if it waited for that, goes on.
    #[inline]
    pub fn settle(&mut self, now: Time) -> Option<Time> {
        let mut goes_on = None;
        while let Some(departure) = self.leaving.front()
            && departure.begins <= now
        {
            self.memory = self.memory.saturating_sub(departure.memory).max(BIAS);
            if std::mem::take(&mut self.throttled) {
                goes_on = Some(departure.ends);
            }
            self.leaving.drop_front();
        }
        goes_on
    }

    /// When the sender, if it waits, will go on, as far as is known.
    #[inline]
    pub fn goes_on(&self) -> Option<Time> {
        if self.throttled { self.leaving.front().map(|departure| departure.ends) } else { None }
    }

    /// Takes off what the host's queues gave back.
    fn take_back(&mut self) {
        self.memory = self.memory.saturating_add_signed(-self.returned.take(self.flow));
    }

    /// What stood in the host's queue is gone.
    pub fn forget(&mut self) {
        self.memory = BIAS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::charge::memory;
    use crate::packet::{Flags, Packet};

    #[test]
    fn two_buffers_or_a_millisecond_may_wait() {
        let mut queue = SmallQueue::new(0, 4 << 20, Charges::default());
        for n in 1..=2 {
            assert!(!queue.is_full(2896, 1, 0, 0), "{n}");
            queue.charge(2896, 1);
        }
        // two wait, and a byte for the socket
        assert!(queue.is_full(2896, 1, 0, 0));
        assert!(!queue.is_full(2896, 1, 0, 1), "retransmissions have twice the limit");
        assert!(!queue.is_full(2896, 1, 2 * (2896 + HEAD) + 1, 0));
        let [first, second] = [Time(10), Time(20)];
        assert!(!queue.leaves(2896 + HEAD, first, second), "nobody waits");
        queue.throttle(false);
        assert!(queue.leaves(2896 + HEAD, second, Time(30)));
        assert_eq!(queue.goes_on(), Some(second), "when the next has left");
        assert_eq!(queue.settle(Time(9)), None);
        assert!(queue.is_full(2896, 1, 0, 0), "it stands there until its transmission begins");
        assert_eq!(queue.settle(first), Some(second));
        assert!(!queue.is_full(2896, 1, 0, 0));
        assert_eq!((queue.goes_on(), queue.settle(second)), (None, None), "once");
    }

    #[test]
    fn who_lacks_nothing_but_room_need_not_try_before_there_is_some() {
        let mut queue = SmallQueue::new(0, 4 << 20, Charges::default());
        queue.charge(5 * 1448, 5);
        // five buffers wait, and a byte for the socket: as much as four may, so that the second departure makes room
        assert!(queue.is_full(2 * 1448, 2, 0, 0));
        queue.throttle(true);
        let leave = |queue: &mut SmallQueue, memory: u64| {
            queue.leaves(memory, Time::ZERO, Time::ZERO);
            queue.settle(Time::ZERO).is_some()
        };
        assert!(leave(&mut queue, 1448 + HEAD) && queue.waits_on());
        assert!(leave(&mut queue, 1448 + HEAD) && !queue.waits_on());
        queue.charge(2 * 1448, 2);
        assert!(queue.is_full(2 * 1448, 2, 0, 0));
        queue.throttle(true);
        queue.reconsider();
        assert!(leave(&mut queue, 1) && !queue.waits_on(), "an ACK may have changed what it asks for");
    }

    #[test]
    fn the_sysctl_bounds_what_a_fast_flow_may_have_waiting() {
        let mut queue = SmallQueue::new(0, 10_000, Charges::default());
        queue.charge(10_000 - HEAD - BIAS, 1);
        assert!(!queue.is_full(2896, 1, u64::MAX, 0), "as much as the limit, not more");
        queue.charge(1, 0);
        assert!(queue.is_full(2896, 1, u64::MAX, 0));
    }

    #[test]
    fn drops_give_back_and_segments_cost_a_head_each() {
        let charges = Charges::new(2);
        let mut queue = SmallQueue::new(1, 4 << 20, charges.clone());
        let flags = Flags::ACK.with(Flags::CHARGED);
        let packet = Packet { flow: 1, flags, payload: 2896, len: 3028, gso_size: 1448, ..Packet::default() };
        queue.charge(2896, 1);
        charges.split(&packet);
        queue.is_full(0, 0, 0, 0);
        assert_eq!(queue.memory, BIAS + 2896 + 2 * HEAD);
        charges.give_back(&packet.segment(1));
        charges.give_back(&Packet { flags: Flags::ACK, ..packet });
        queue.is_full(0, 0, 0, 0);
        assert_eq!(queue.memory, BIAS + 1448 + HEAD);
        queue.leaves(memory(&packet.segment(0)), Time::ZERO, Time::ZERO);
        queue.settle(Time::ZERO);
        assert_eq!(queue.memory, BIAS);
    }
}
