//! One end of a cable: its queues, its rules, and what it does to a packet that leaves or arrives.

use crate::base::units::Time;
use crate::network::wire::Wire;
use crate::packet::capture::Capture;
use crate::packet::matching::CompiledMatch;
use crate::packet::{Ecn, Flags, Packet};
use crate::qdisc::Queue;

/// A rewriting rule, ready for use.
pub struct Rule {
    /// Which packets.
    pub matches: CompiledMatch,
    /// New codepoint.
    pub dscp: Option<u8>,
    /// New ECN field.
    pub ecn: Option<Ecn>,
    /// Clear the ECN bits of a SYN.
    pub clear_syn_ecn: bool,
}

/// One end of a cable.
pub struct Interface {
    /// What leaves.
    pub egress: Option<Queue>,
    /// What arrives.
    pub ingress: Option<Queue>,
    /// Rewriting of what arrives.
    pub rules: Vec<Rule>,
    /// `txqueuelen`
    pub tx_queue_len: u32,
    /// The cable from here to the peer.
    pub wire: Wire,
    /// Whether its node is a host.
    pub host: bool,
    /// Whether several segments leave in one buffer, as long as the wire has no rate.
    pub offloads: bool,
    /// Where packets that leave and packets that arrive are written down.
    pub captures: [Option<Box<Capture>>; 2],
    pub(crate) egress_armed: Time,
    pub(crate) ingress_armed: Time,
}

impl Interface {
    /// An interface without queues.
    pub fn new(wire: Wire) -> Interface {
        Interface {
            egress: None,
            ingress: None,
            rules: Vec::new(),
            tx_queue_len: 1000,
            wire,
            host: false,
            offloads: false,
            captures: [None, None],
            egress_armed: Time::NEVER,
            ingress_armed: Time::NEVER,
        }
    }

    /// Rewrites what arrives.
    pub(crate) fn rewrite(&self, packet: &mut Packet) {
        for rule in &self.rules {
            if rule.matches.matches(packet) {
                packet.dscp = rule.dscp.unwrap_or(packet.dscp);
                packet.ecn = rule.ecn.unwrap_or(packet.ecn);
                if rule.clear_syn_ecn && packet.flags.has(Flags::SYN) {
                    packet.ace = 0;
                }
            }
        }
    }

    /// Whether the segments of `packet` have to leave one by one (`validate_xmit_skb`).
    #[inline]
    pub(crate) fn segments(&self, packet: &Packet) -> bool {
        packet.gso_size != 0 && !(self.offloads && self.wire.rate.is_none())
    }

    /// Puts a packet on the wire of this interface, which is number `i`; none if it is lost there.
    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
    pub(crate) fn transmit(&mut self, i: u16, packet: &Packet, now: Time) -> Option<Onward> {
        if let Some(capture) = &mut self.captures[0] {
            capture.see(packet, now);
        }
        let wire = &mut self.wire;
        let mut at = now;
        if let Some(rate) = wire.rate {
            at += wire.serialisation.of(packet.len, rate);
            wire.busy_until = at;
        }
        if wire.loses() {
            return None;
        }
        // A delay that was shortened meanwhile does not reorder.
        at = (at + wire.delay).max(wire.last_arrival);
        wire.last_arrival = at;
        Some(Onward { wire: i, at, follows: wire.watched })
    }
}

/// A packet is on the way to the far end of a wire, to be there at a time.
#[derive(Clone, Copy)]
pub(crate) struct Onward {
    pub(crate) wire: u16,
    pub(crate) at: Time,
    /// Whether others are under way on that wire.
    pub(crate) follows: bool,
}
