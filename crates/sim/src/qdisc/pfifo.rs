//! `pfifo` and `bfifo`: first in, first out, tail drop at a limit.
//!
//! Source: Linux 7.3 `net/sched/sch_fifo.c`.
//!
//! Parameters: `limit` in packets (pfifo; default the device's txqueuelen) or bytes (bfifo; default
//! txqueuelen times the frame size).
//!
//! Departures: none known.

use super::{Cause, Env, Hints, Properties, Qdisc, Statistics, Tally};
use crate::base::ring::Ring;
use crate::base::units::Time;
use crate::packet::Packet;
use bakeoff_document::tc::{TcError, Words, show};

/// A plain queue with a limit in packets or in bytes.
pub struct Fifo {
    queue: Ring<Packet>,
    backlog: u64,
    limit: u64,
    /// What the device gives.
    default: u64,
    in_bytes: bool,
}

impl Fifo {
    /// `pfifo [limit PACKETS]`
    pub fn pfifo(words: &mut Words, env: &Env) -> Result<Self, TcError> {
        Self::parse(words, u64::from(env.tx_queue_len), false)
    }

    /// `bfifo [limit BYTES]`
    pub fn bfifo(words: &mut Words, env: &Env) -> Result<Self, TcError> {
        Self::parse(words, u64::from(env.tx_queue_len) * u64::from(env.psched_mtu()), true)
    }

    fn parse(words: &mut Words, default: u64, in_bytes: bool) -> Result<Self, TcError> {
        let limit = take_limit(words, default)?;
        Ok(Fifo { queue: Ring::default(), backlog: 0, limit, default, in_bytes })
    }

    /// Whether there is room for `packet`.
    fn fits(&self, packet: &Packet) -> bool {
        if self.in_bytes {
            self.backlog + u64::from(packet.len) <= self.limit
        } else {
            (self.queue.len() as u64) < self.limit
        }
    }
}

/// tc reads packets as it reads bytes: `1k` is 1024.
fn take_limit(words: &mut Words, default: u64) -> Result<u64, TcError> {
    let mut limit = default;
    while let Some(word) = words.next_word() {
        match word {
            "limit" => limit = words.size()?,
            _ => return Err(words.unknown(word, &["limit"])),
        }
    }
    Ok(limit)
}

impl Qdisc for Fifo {
    const PROPERTIES: Properties = Properties { fifo: true, work_conserving: true, ..Properties::DEFAULT };

    fn enqueue(&mut self, mut packet: Packet, now: Time, tally: &mut Tally) {
        self.enqueue_from(&mut packet, now, tally);
    }

    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
    fn enqueue_from(&mut self, packet: &mut Packet, _now: Time, tally: &mut Tally) {
        if self.fits(packet) {
            self.backlog += u64::from(packet.len);
            let slot = self.queue.push_slot();
            *slot = *packet;
        } else {
            tally.drop(packet, Cause::Overlimit);
        }
    }

    fn dequeue(&mut self, now: Time, tally: &mut Tally) -> Option<Packet> {
        let mut packet = Packet::default();
        self.dequeue_into(&mut packet, now, tally).then_some(packet)
    }

    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
    fn dequeue_into(&mut self, into: &mut Packet, _now: Time, _tally: &mut Tally) -> bool {
        let Some(packet) = self.queue.front() else { return false };
        self.backlog -= u64::from(packet.len);
        *into = *packet;
        self.queue.drop_front();
        true
    }

    fn qlen(&self) -> usize {
        self.queue.len()
    }

    fn backlog(&self) -> u64 {
        self.backlog
    }

    /// What stands in it stays, even above a lower limit.
    fn change(&mut self, words: &mut Words, _now: Time, _tally: &mut Tally) -> Result<(), TcError> {
        self.limit = take_limit(words, self.default)?;
        Ok(())
    }

    fn peek(&self) -> Option<&Packet> {
        self.queue.front()
    }

    fn hints(&self) -> Hints {
        Hints { tail_drop: (!self.in_bytes).then_some(self.limit), ..Hints::default() }
    }
}

impl Statistics for Fifo {
    fn show(&self) -> String {
        if self.in_bytes {
            format!("bfifo limit {}", show::size(self.limit))
        } else {
            format!("pfifo limit {}p", self.limit)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qdisc::Queue;
    use bakeoff_document::run;

    fn queue(line: &str) -> Queue {
        Queue::build(&run::Qdisc::leaf(line), &Env::default()).unwrap()
    }

    fn frame(seq: u64) -> Packet {
        Packet { seq, len: 1514, ..Packet::default() }
    }

    #[test]
    fn pfifo_keeps_limit_packets_in_order_and_drops_the_tail() {
        let mut q = queue("pfifo limit 3");
        for seq in 0..5 {
            q.enqueue(frame(seq), Time::ZERO);
        }
        assert_eq!((q.qlen(), q.backlog(), q.tally.dropped()), (3, 3 * 1514, 2));
        let out: Vec<u64> = std::iter::from_fn(|| q.dequeue(Time::ZERO)).map(|p| p.seq).collect();
        assert_eq!(out, [0, 1, 2]);
    }

    #[test]
    fn bfifo_counts_bytes() {
        // 2 * 1514 = 3028 fits exactly, the third packet does not
        let mut q = queue("bfifo limit 3028");
        for seq in 0..3 {
            q.enqueue(frame(seq), Time::ZERO);
        }
        assert_eq!((q.qlen(), q.tally.dropped()), (2, 1));
    }

    #[test]
    fn defaults_come_from_the_device() {
        assert_eq!(queue("pfifo").show(), "pfifo limit 1000p");
        assert_eq!(queue("bfifo").show(), "bfifo limit 1514000b");
    }
}
