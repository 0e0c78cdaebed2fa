//! What the endpoints on a host are given, and what they give to be sent.

use super::Sim;
use crate::base::event::Event;
use crate::base::units::Time;
use crate::packet::{Flags, Packet};
use crate::record::series::ProbeMetric;

impl Sim {
    /// A packet comes to the network card of a host; whether it is not received yet.
    pub(super) fn hold_back(&mut self, i: u16, packet: &Packet) -> bool {
        let Some(card) = &mut self.interfaces[usize::from(i)].card else { return false };
        if card.waiting.is_empty() {
            let at = card.machine.receives(self.now);
            if at <= self.now {
                return false;
            }
            self.events.push(at, Event::Receive(i));
        }
        card.waiting.push(*packet);
        true
    }

    /// The host receives what its network card held back.
    #[inline(never)]
    pub(super) fn receive(&mut self, i: u16) {
        while let Some(card) = &mut self.interfaces[usize::from(i)].card
            && let Some(&(mut packet)) = card.waiting.front()
        {
            card.waiting.drop_front();
            self.burst += 1;
            if self.take_in(i, &mut packet) {
                self.forward(i, &mut packet);
            }
        }
    }

    /// A packet is at its destination. What endpoints do is long; kept out of line, the way from wire to wire stays short.
    #[inline(never)]
    pub(super) fn deliver(&mut self, node: u16, packet: &Packet) {
        self.hand_over(node, packet);
    }

    #[expect(clippy::inline_always, reason = "early delivery is the end of most packets' way")]
    #[inline(always)]
    pub(super) fn hand_over(&mut self, node: u16, packet: &Packet) {
        if packet.flags.any(Flags::CORRUPT.with(Flags::STIMULATED)) {
            return self.deliver_unusual(node, packet);
        }
        self.delivered.add(packet.len);
        let now = self.now;
        let f = usize::from(packet.flow);
        let Some(flow) = self.flows.get(f) else { return self.deliver_to_probe(node, packet) };
        let to_receiver = node != flow.nodes[0];
        // A packet over a wire without delay arrives within the event that sent it; the timers of this instant run first.
        if !to_receiver && flow.sender_waits_until() <= now {
            self.run_due_sender_timer(packet.flow);
        }
        let flow = &mut self.flows[f];
        let (mut opened, mut deadline) = (false, None);
        if to_receiver {
            // What a receiver sends does not move its timers.
            deadline = flow.on_packet_to_receiver(packet, now, &mut self.out);
        } else {
            opened = flow.on_packet_to_sender(packet, now, &mut self.out);
            if let Some(rtt_us) = flow.last_rtt_us()
                && (self.window[0]..=self.window[1]).contains(&now)
            {
                flow.rtts.record(Time::from_us(rtt_us));
            }
            if self.observer.is_some() {
                self.observe(f, true);
            }
        }
        if !self.out.is_empty() {
            self.send_all(node);
        }
        if to_receiver {
            self.arm_receiver(packet.flow, node, deadline);
        } else if opened {
            self.on_source_event(packet.flow);
        } else {
            self.arm_sender(packet.flow);
        }
    }

    /// A packet that arrives broken, or to which something may be done.
    #[cold]
    #[inline(never)]
    fn deliver_unusual(&mut self, node: u16, packet: &Packet) {
        if packet.flags.has(Flags::CORRUPT) {
            self.lost.add(packet.len);
        } else {
            self.stimulate(node, packet);
        }
    }

    /// What `node` sends goes through tunnels, or may have something done to it.
    #[cold]
    #[inline(never)]
    fn prepare(&mut self, node: u16, out: &mut [Packet]) {
        self.tunnels.encapsulate(node, out);
        if let Some(observer) = &self.observer {
            observer.stimuli.tag(out);
        }
    }

    #[inline(never)]
    fn deliver_to_probe(&mut self, node: u16, packet: &Packet) {
        let p = usize::from(packet.flow) - self.flows.len();
        if let Some((asked, rtt)) = self.probes[p].on_packet(packet, self.now, &mut self.out) {
            self.recorder.push(asked, self.probe_series[p].of(ProbeMetric::Rtt), rtt.as_secs_f64());
            if self.in_window() {
                self.probes[p].rtts.record(rtt);
            }
        }
        self.emit_all(node);
    }

    fn in_window(&self) -> bool {
        self.now >= self.window[0] && self.now <= self.window[1]
    }

    /// Sends what an endpoint on `node` put into `out`.
    #[inline]
    pub(super) fn emit_all(&mut self, node: u16) {
        if !self.out.is_empty() {
            self.emit(node);
        }
    }

    #[inline(never)]
    fn emit(&mut self, node: u16) {
        self.send_all(node);
    }

    #[expect(clippy::inline_always, reason = "the end of most ways; elsewhere it is kept out of line")]
    #[inline(always)]
    fn send_all(&mut self, node: u16) {
        // A reply that is delivered early could be answered before all is sent.
        self.early.sends(node, true);
        let mut out = std::mem::replace(&mut self.out, std::mem::take(&mut self.spare));
        if self.out_is_special {
            self.prepare(node, &mut out);
        }
        self.sent.packets += out.len() as u64;
        // Most that leaves together goes to one destination.
        let (mut dst, mut route) = (node, None);
        for packet in &mut out {
            self.sent.bytes += u64::from(packet.len);
            if packet.dst != dst {
                (dst, route) = (packet.dst, self.graph.route(node, packet.dst));
            }
            match route {
                Some(i) => self.send(i, packet),
                None => self.lost.add(packet.len),
            }
        }
        self.early.sends(node, false);
        out.clear();
        self.spare = std::mem::replace(&mut self.out, out);
    }
}
