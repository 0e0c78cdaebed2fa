//! One end of a cable: its queues, its rules, and what it does to a packet that leaves or arrives.

use crate::base::units::Time;
use crate::network::lanes::{Device, Stop};
use crate::network::wire::Wire;
use crate::packet::capture::Capture;
use crate::packet::matching::CompiledMatch;
use crate::packet::{Ecn, Flags, Packet};
use crate::qdisc::{Delays, Queue};

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
    /// Whether a timed change of the run names it.
    pub changes: bool,
    /// Whether one names its ingress queue.
    pub ingress_changes: bool,
    /// Where packets that leave and packets that arrive are written down.
    pub captures: [Option<Box<Capture>>; 2],
    pub(crate) egress_armed: Time,
    pub(crate) ingress_armed: Time,
    /// Whether something looks at what arrives; see [`Interface::compile`].
    pub(crate) inspects: bool,
    /// What the ingress queue is, if all that it does is to delay, and nothing else looks at what arrives; see
    /// [`Interface::compile`].
    pub(crate) delays: Option<Box<Delays>>,
    /// Whether rate and delay are all that happens to what leaves; see [`Interface::compile`].
    pub(crate) plain: bool,
    /// Whether all that leaves enters its queue first, frame or buffer, and nothing else happens to it; see
    /// [`Interface::compile`].
    pub(crate) queues: bool,
    /// Whether what leaves is put on the wire and nothing else: it is a device, no lane goes on behind it, and no host there
    /// is told ahead of time.
    pub(crate) ends_lane: bool,
    /// What it is, if it is no more than that.
    pub(crate) device: Option<Device>,
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
            changes: false,
            ingress_changes: false,
            captures: [None, None],
            egress_armed: Time::NEVER,
            ingress_armed: Time::NEVER,
            inspects: true,
            delays: None,
            plain: false,
            queues: false,
            ends_lane: false,
            device: None,
        }
    }

    /// Decides beforehand what would otherwise be asked for each packet: to be called when all is in place, and after
    /// each change. An interface that was not compiled works too.
    pub fn compile(&mut self) {
        self.inspects = self.captures[1].is_some() || self.ingress.is_some() || !self.rules.is_empty();
        // The queue of a host gives its memory back to sockets.
        if !self.host && !self.ingress_changes && self.captures[1].is_none() && self.delays.is_none() {
            self.delays = self.ingress.as_ref().and_then(Queue::delays).map(Box::new);
        }
        self.plain = self.captures[0].is_none() && self.wire.is_plain();
        self.device = Device::of(self);
        self.queues = self.device.is_none() && self.egress.is_some() && self.wire.medium.is_none();
    }

    /// Rewrites what arrives.
    pub(crate) fn rewrite(&self, packet: &mut Packet) {
        for rule in &self.rules {
            if rule.matches.matches(packet) {
                packet.dscp = rule.dscp.unwrap_or(packet.dscp);
                if let Some(ecn) = rule.ecn.filter(|ecn| *ecn != packet.ecn) {
                    packet.ecn = ecn;
                    packet.marked_by = 0;
                }
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

    /// The run is over: what passed the device, or what only delays, is counted as what goes through the queue.
    pub(crate) fn settle(&mut self) {
        if let (Some(delays), Some(queue)) = (self.delays.take(), &mut self.ingress) {
            delays.settle(queue);
        }
        let (Some(device), Some(queue)) = (&mut self.device, &mut self.egress) else { return };
        device.take_sent().into_iter().enumerate().for_each(|(flow, count)| queue.let_through(flow, count));
    }

    /// A packet that came to this device at `at` does not pass it.
    #[cold]
    pub(crate) fn stop(&mut self, packet: &Packet, at: Time, why: Stop) {
        let Some(queue) = &mut self.egress else { return };
        match why {
            Stop::Full => queue.turn_away(packet),
            // Where it stands when the run is over.
            Stop::Late => queue.enqueue(*packet, at),
        }
    }

    /// Sends a packet that the queue gave, or a segment of it, when the wire is free; when it is at the far end. None if
    /// it gets lost.
    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
    pub(crate) fn transmit(&mut self, packet: &Packet, now: Time) -> Option<Time> {
        if self.plain {
            return Some(self.wire.take_on(packet.len, now));
        }
        if self.captures[0].is_some() {
            self.capture_leaving(packet, now);
        }
        let wire = &mut self.wire;
        let sent = wire.serialise(packet.len, now);
        if wire.loses() { None } else { Some(wire.propagate(sent)) }
    }
}
