//! One end of a cable: its queues, its rules, and what it does to a packet that leaves or arrives.

use crate::base::units::Time;
use crate::network::device::{Device, Stop};
use crate::network::machine::Card;
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

/// What the event loop leaves out at an interface; the default is nothing. `sim/fast_path` decides.
#[derive(Default)]
pub(crate) struct Shortcuts {
    /// Nothing happens to what arrives.
    pub(crate) arrives_untouched: bool,
    /// Rate and delay are all that happens to what leaves the queue.
    pub(crate) plain: bool,
    /// All that leaves enters the queue first.
    pub(crate) enters_queue: bool,
    /// What leaves this device goes onto the wire and no further ahead of time.
    pub(crate) ends_lane: bool,
    /// What computes when packets leave the ingress queue.
    pub(crate) delays: Option<Box<Delays>>,
    /// What computes when packets leave the egress queue.
    pub(crate) device: Option<Device>,
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
    /// The network card of a host that is not ideal.
    pub card: Option<Box<Card>>,
    /// Where packets that leave and packets that arrive are written down.
    pub captures: [Option<Box<Capture>>; 2],
    pub(crate) egress_armed: Time,
    pub(crate) ingress_armed: Time,
    /// What the event loop leaves out here.
    pub(crate) shortcuts: Shortcuts,
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
            card: None,
            captures: [None, None],
            egress_armed: Time::NEVER,
            ingress_armed: Time::NEVER,
            shortcuts: Shortcuts::default(),
        }
    }

    /// When a timer of its queues fires that is set to `at`.
    pub(crate) fn fires(&self, at: Time) -> Time {
        self.card.as_ref().map_or(at, |card| card.machine.fires(at))
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
        if let (Some(delays), Some(queue)) = (self.shortcuts.delays.take(), &mut self.ingress) {
            delays.settle(queue);
        }
        let (Some(device), Some(queue)) = (&mut self.shortcuts.device, &mut self.egress) else { return };
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
        if self.shortcuts.plain {
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
