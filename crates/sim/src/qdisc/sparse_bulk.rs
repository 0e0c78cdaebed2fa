//! Cheap nasty queueing: a flow's first packet goes to a sparse queue with strict priority and leaves a
//! token in the bulk queue; packets that find a token or a packet of their flow there join the bulk queue.
//!
//! Source: chromi/sce `net/sched/sch_cnq_cobalt.c`; draft-morton-tsvwg-cheap-nasty-queueing.
//!
//! Departures: flows are told apart by the packet's hash modulo 65536.

use std::collections::VecDeque;

use super::slots::{SLOTS, slot_of};
use crate::packet::Packet;

/// What stands in the bulk queue.
pub(super) enum Bulk {
    Packet(Packet),
    /// Stands for a packet that went to the sparse queue.
    Token(u16),
}

/// The two queues.
pub(super) struct SparseBulk {
    /// By flow: packets and tokens in the bulk queue.
    pub counts: Box<[u32]>,
    pub sparse: VecDeque<Packet>,
    pub bulk: VecDeque<Bulk>,
    /// Tokens in `bulk`.
    pub tokens: usize,
    /// Flows with a count above zero.
    pub active: usize,
    /// Bytes in both queues.
    pub backlog: u64,
}

impl SparseBulk {
    pub(super) fn new() -> Self {
        SparseBulk {
            counts: vec![0; SLOTS].into(),
            sparse: VecDeque::new(),
            bulk: VecDeque::new(),
            tokens: 0,
            active: 0,
            backlog: 0,
        }
    }

    /// Packets in both queues.
    pub(super) fn len(&self) -> usize {
        self.sparse.len() + self.bulk.len() - self.tokens
    }

    /// Packets and tokens of the flow in the bulk queue.
    pub(super) fn count(&self, slot: u16) -> u32 {
        self.counts[usize::from(slot)]
    }

    /// Discards the tokens of a queue without packets.
    pub(super) fn discard_tokens(&mut self) {
        while self.pop_bulk().is_some() {}
    }

    /// Takes a packet.
    pub(super) fn enqueue(&mut self, packet: Packet) {
        let slot = slot_of(&packet);
        self.backlog += u64::from(packet.len);
        if self.count(slot) == 0 {
            self.sparse.push_back(packet);
            self.bulk.push_back(Bulk::Token(slot));
            self.tokens += 1;
        } else {
            self.bulk.push_back(Bulk::Packet(packet));
        }
        self.joined(slot);
    }

    /// The next sparse packet.
    pub(super) fn pop_sparse(&mut self) -> Option<Packet> {
        let packet = self.sparse.pop_front()?;
        self.backlog -= u64::from(packet.len);
        Some(packet)
    }

    /// The next bulk packet; tokens before it are discarded.
    pub(super) fn pop_bulk(&mut self) -> Option<Packet> {
        loop {
            match self.bulk.pop_front()? {
                Bulk::Token(slot) => {
                    self.tokens -= 1;
                    self.left(slot);
                }
                Bulk::Packet(packet) => {
                    self.left(slot_of(&packet));
                    self.backlog -= u64::from(packet.len);
                    return Some(packet);
                }
            }
        }
    }

    /// One more packet or token of the flow in the bulk queue.
    pub(super) fn joined(&mut self, slot: u16) {
        let count = &mut self.counts[usize::from(slot)];
        *count += 1;
        self.active += usize::from(*count == 1);
    }

    /// One less.
    pub(super) fn left(&mut self, slot: u16) {
        let count = &mut self.counts[usize::from(slot)];
        *count -= 1;
        self.active -= usize::from(*count == 0);
    }
}
