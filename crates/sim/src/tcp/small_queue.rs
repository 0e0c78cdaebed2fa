//! What a connection has handed down and what still waits in its host: TCP small queues (TSQ).
//!
//! Source: Linux 7.3 `net/ipv4/tcp_output.c` (`tcp_small_queue_check`).
//!
//! Departures: only for hosts whose queue is `fq`, and a packet counts as gone at its departure time: what it waits behind other
//! flows or a busy device does not count. A packet's memory is its payload and a head of 1280 bytes.
//!
//! Validation: the tests below.

use std::collections::VecDeque;

use crate::units::Time;

/// Memory of a packet without payload, in bytes.
const HEAD: u64 = 1280;

/// The packets that have not departed yet.
#[derive(Default)]
pub(super) struct SmallQueue {
    /// (departure, memory), in order.
    packets: VecDeque<(Time, u64)>,
    memory: u64,
}

impl SmallQueue {
    /// A packet with `bytes` of payload was handed down.
    pub fn push(&mut self, departs: Time, bytes: u64) {
        self.packets.push_back((departs, bytes + HEAD));
        self.memory += bytes + HEAD;
    }

    /// Whether a packet with `bytes` of payload has to wait, and until when. The limit is two such packets or
    /// `per_ms` bytes, a millisecond of the pacing rate, times 2^`factor`.
    pub fn full_until(&mut self, now: Time, bytes: u64, per_ms: u64, factor: u32) -> Option<Time> {
        while let Some(&(departs, memory)) = self.packets.front()
            && departs <= now
        {
            self.packets.pop_front();
            self.memory -= memory;
        }
        let limit = (2 * (bytes + HEAD)).max(per_ms).saturating_mul(1 << factor);
        // A lone packet is never waited for: its ACK may come first.
        if self.packets.len() < 2 || self.memory <= limit {
            return None;
        }
        self.packets.front().map(|p| p.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_packets_or_a_millisecond_may_wait() {
        let mut queue = SmallQueue::default();
        let ms = Time::from_ms;
        for at in [1, 2, 3] {
            assert_eq!(queue.full_until(ms(0), 2896, 0, 0), None, "{at}");
            queue.push(ms(at), 2896);
        }
        // three wait, two are the limit; until the first has left
        assert_eq!(queue.full_until(ms(0), 2896, 0, 0), Some(ms(1)));
        assert_eq!(queue.full_until(ms(0), 2896, 0, 1), None);
        assert_eq!(queue.full_until(ms(0), 2896, 3 * (2896 + 1280), 0), None);
        assert_eq!(queue.full_until(ms(1), 2896, 0, 0), None);
    }
}
