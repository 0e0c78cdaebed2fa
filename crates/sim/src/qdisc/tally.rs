//! What a queue counts.

use serde::Serialize;

use crate::packet::charge::Charges;
use crate::packet::{Ecn, Flags, Packet};

/// Why a queue threw a packet away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// No room: the queue was at its limit.
    Overlimit,
    /// The AQM's decision.
    Aqm,
    /// The AQM gave up marking because of overload.
    Overload,
    /// Random loss that was asked for (netem).
    Loss,
}

/// What one flow met in a queue; in counters.json under these names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FlowTally {
    /// Packets dropped here.
    pub drops: u64,
    /// Packets that got CE here: each once, and none that came with it.
    pub marks: u64,
    /// Packets that left.
    pub packets: u64,
    /// Packets that got SCE, ECT(1) instead of ECT(0), here.
    pub sce_marks: u64,
}

/// Counts of one queue, without its children; the algorithm reports marks and drops through it.
///
/// At any time, over a queue and everything below it: `enqueued` (of the topmost) + all `duplicated`
/// = `sent` (of the topmost) + all drops + [`super::Queue::qlen`], and the same in bytes.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Packets offered.
    pub enqueued: u64,
    /// Bytes offered.
    pub enqueued_bytes: u64,
    /// Packets that left.
    pub sent: u64,
    /// Bytes that left.
    pub sent_bytes: u64,
    /// CE marks as `tc -s` tells them: a packet that carried CE already, or is marked twice, counts again.
    pub marks: u64,
    /// Packets that got SCE, ECT(1) instead of ECT(0), here.
    pub sce_marks: u64,
    /// Packets dropped, by [`Cause`] in its order of declaration.
    pub drops: [u64; 4],
    /// Bytes dropped.
    pub dropped_bytes: u64,
    /// Packets that came into being here: netem's `duplicate`, and segments after the first of those that were one packet.
    pub duplicated: u64,
    /// Bytes of netem's.
    pub duplicated_bytes: u64,
    /// Segments that left beyond one per packet (GSO).
    pub more_segs: u64,
    /// What packets that get a mark here keep of it ([`Packet::marked_by`]).
    pub number: u8,
    /// Where memory that a socket gets back is noted; empty but in a host.
    pub charges: Charges,
    /// By flow, indexed by [`Packet::flow`].
    pub flows: Vec<FlowTally>,
}

impl Tally {
    /// Counts a dropped packet. Every packet that an algorithm does not keep or return goes here.
    pub fn drop(&mut self, packet: &Packet, cause: Cause) {
        self.drops[cause as usize] += 1;
        self.dropped_bytes += u64::from(packet.len);
        self.flow_of(packet).drops += 1;
        self.charges.give_back(packet);
    }

    /// The packet no longer counts against its socket (`skb_orphan_partial`).
    pub fn orphan(&mut self, packet: &mut Packet) {
        self.charges.give_back(packet);
        packet.flags = packet.flags.without(Flags::CHARGED);
    }

    /// Counts a packet that became one frame per segment.
    pub fn split(&mut self, packet: &Packet) {
        self.duplicated += u64::from(packet.segs() - 1);
        self.charges.split(packet);
    }

    /// Sets CE and counts it; false (and nothing counted) if the packet is not ECN-capable.
    /// A packet that already carried CE counts as marked, as in Linux, but not once more for its flow.
    pub fn mark(&mut self, packet: &mut Packet) -> bool {
        let anew = packet.ecn != Ecn::Ce;
        let marked = packet.set_ce();
        if marked {
            self.marks += 1;
            self.flow_of(packet).marks += u64::from(anew);
            if anew {
                packet.marked_by = self.number;
            }
        }
        marked
    }

    /// Sets SCE and counts it; false (and nothing counted) if the packet was not ECT(0).
    pub fn mark_sce(&mut self, packet: &mut Packet) -> bool {
        let marked = packet.set_ect1();
        if marked {
            self.sce_marks += 1;
            packet.marked_by = self.number;
            self.flow_of(packet).sce_marks += 1;
        }
        marked
    }

    /// Counts a copy that was made of `packet`.
    pub fn duplicate(&mut self, packet: &Packet) {
        self.duplicated += 1;
        self.duplicated_bytes += u64::from(packet.len);
    }

    /// All drops.
    pub fn dropped(&self) -> u64 {
        self.drops.iter().sum()
    }

    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
    pub(super) fn flow_of(&mut self, packet: &Packet) -> &mut FlowTally {
        self.flow(usize::from(packet.flow))
    }

    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
    pub(super) fn flow(&mut self, i: usize) -> &mut FlowTally {
        if i >= self.flows.len() {
            self.grow(i + 1);
        }
        &mut self.flows[i]
    }

    /// Only where the number of flows was not known beforehand.
    #[cold]
    fn grow(&mut self, flows: usize) {
        self.flows.resize(flows, FlowTally::default());
    }
}
