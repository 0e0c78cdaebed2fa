//! What carries a packet from one end of the network to the other: rules, routes, queues and wires.

use super::Sim;
use crate::base::event::Event;
use crate::base::units::Time;
use crate::endpoint::flow::Flow;
use crate::network::graph::Hop;
use crate::network::interface::Onward;
use crate::packet::{Flags, Packet, charge};

impl Sim {
    /// A packet is at the far end of a cable, which is interface `i`. Gives the wire on which it goes
    /// on, if it does, for [`Sim::travel`].
    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
    pub(super) fn arrive(&mut self, i: u16, packet: &mut Packet) -> Option<Onward> {
        if self.interfaces[usize::from(i)].inspects && !self.inspect(i, packet) {
            return None;
        }
        self.forward(i, packet)
    }

    /// What an interface does with a packet that arrives: writes it down, lets it wait (false: it goes on from there),
    /// rewrites it.
    #[inline(never)]
    fn inspect(&mut self, i: u16, packet: &mut Packet) -> bool {
        let interface = &mut self.interfaces[usize::from(i)];
        if let Some(capture) = &mut interface.captures[1] {
            capture.see(packet, self.now);
        }
        if let Some(queue) = &mut interface.ingress {
            queue.enqueue(*packet, self.now);
            self.serve_ingress(i);
            return false;
        }
        interface.rewrite(packet);
        true
    }

    pub(super) fn serve_ingress(&mut self, i: u16) {
        loop {
            let interface = &mut self.interfaces[usize::from(i)];
            let Some(queue) = &mut interface.ingress else { return };
            if queue.is_open(self.now)
                && let Some(mut packet) = queue.dequeue(self.now)
            {
                interface.rewrite(&mut packet);
                let onward = self.forward(i, &mut packet);
                self.travel(onward, &packet);
                continue;
            }
            if let Some(at) = queue.next_event()
                && at < interface.ingress_armed
            {
                let at = at.max(self.now);
                interface.ingress_armed = at;
                self.events.push(at, Event::Ingress(i));
            }
            return;
        }
    }

    /// Past ingress queue and rewriting: this node or onward.
    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
    fn forward(&mut self, i: u16, packet: &mut Packet) -> Option<Onward> {
        match self.graph.hop(i, packet.dst) {
            Hop::Here => {
                let node = self.graph.node_of[usize::from(i)];
                if packet.tunnel == 0 || self.tunnels.decapsulate(node, packet) {
                    self.deliver(node, packet);
                } else {
                    self.lost.add(packet.len);
                }
            }
            Hop::Out(egress) => return self.send(egress, packet),
            Hop::Nowhere => self.lost.add(packet.len),
        }
        None
    }

    /// Out through interface `i`, or into its queue.
    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
    pub(super) fn send(&mut self, i: u16, packet: &Packet) -> Option<Onward> {
        let now = self.now;
        let interface = &mut self.interfaces[usize::from(i)];
        let goes = match &mut interface.egress {
            Some(queue) => interface.wire.busy_until <= now && queue.passes(packet, now),
            None => true,
        };
        if !goes {
            self.wait(i, packet);
            return None;
        }
        if interface.segments(packet) {
            self.send_segments(i, packet);
            return None;
        }
        let onward = interface.transmit(i, packet, now);
        if interface.host && packet.flags.has(Flags::CHARGED) {
            self.left_device(i, packet);
        }
        if onward.is_none() {
            self.lost.add(packet.len);
        }
        onward
    }

    /// A buffer of several segments leaves a device that sends frames.
    #[inline(never)]
    fn send_segments(&mut self, i: u16, packet: &Packet) {
        let segs = packet.segs();
        // What is sent one by one came into being here.
        self.sent.packets += u64::from(segs - 1);
        for index in 0..segs {
            let frame = packet.segment(index);
            let interface = &mut self.interfaces[usize::from(i)];
            let starts = interface.wire.busy_until.max(self.now);
            let onward = interface.transmit(i, &frame, starts);
            if onward.is_none() {
                self.lost.add(frame.len);
            }
            self.travel(onward, &frame);
        }
        if packet.flags.has(Flags::CHARGED) {
            self.left_device(i, packet);
        }
    }

    /// A charged packet left a device, or will have when the wire is free again: its host's, or one further on.
    fn left_device(&mut self, i: u16, packet: &Packet) {
        let interface = &self.interfaces[usize::from(i)];
        if interface.host {
            let at = interface.wire.busy_until.max(self.now);
            self.left_host_at(packet.flow, charge::memory(packet), at);
        }
    }

    /// So much memory of a flow's data left its host.
    pub(crate) fn left_host_at(&mut self, f: u16, memory: u64, at: Time) {
        let flow = self.flows.get_mut(usize::from(f));
        if let Some(sender) = flow.and_then(Flow::sender_mut)
            && sender.left_host(memory, at)
        {
            self.arm_sender(f);
        }
    }

    /// Into the egress queue of interface `i`.
    #[inline(never)]
    fn wait(&mut self, i: u16, packet: &Packet) {
        let interface = &mut self.interfaces[usize::from(i)];
        if let Some(queue) = &mut interface.egress {
            if packet.gso_size != 0 && interface.wire.medium.is_some() {
                // Media take frames.
                self.sent.packets += u64::from(packet.segs() - 1);
                (0..packet.segs()).for_each(|index| queue.enqueue(packet.segment(index), self.now));
                self.charges.split(packet);
            } else {
                queue.enqueue(*packet, self.now);
            }
        }
        // Most that is queued finds the wire busy and the end of that awaited.
        let busy_until = interface.wire.busy_until;
        if busy_until <= self.now || busy_until < interface.egress_armed {
            self.serve_egress(i);
        }
    }

    pub(super) fn serve_egress(&mut self, i: u16) {
        if self.interfaces[usize::from(i)].device {
            self.serve_device(i);
        } else {
            self.serve_queue(i);
        }
    }

    /// A device that is a fifo before a plain wire: each packet is copied once, from the one to the other.
    fn serve_device(&mut self, i: u16) {
        loop {
            let now = self.now;
            let interface = &mut self.interfaces[usize::from(i)];
            let (wire, Some(queue)) = (&mut interface.wire, &mut interface.egress) else { return };
            let Some(head) = queue.head() else { return };
            if wire.busy_until > now {
                if wire.busy_until < interface.egress_armed {
                    interface.egress_armed = wire.busy_until;
                    self.events.push(wire.busy_until, Event::Egress(i));
                }
                return;
            }
            if head.gso_size != 0 {
                return self.serve_queue(i);
            }
            let at = wire.take_on(head.len, now);
            let (flow, memory) = (head.flow, charge::memory(head));
            let (charged, sent) =
                (interface.host && head.flags.has(Flags::CHARGED), wire.busy_until.max(now));
            queue.head_left(now);
            if charged {
                self.left_host_at(flow, memory, sent);
            }
            let interface = &mut self.interfaces[usize::from(i)];
            let (wire, Some(queue)) = (&mut interface.wire, &mut interface.egress) else { return };
            let Some(head) = queue.head() else { return };
            if at == now && wire.in_flight.is_empty() {
                self.arrivals.push_back((i ^ 1, *head));
            } else {
                if !wire.watched {
                    wire.watched = true;
                    self.events.push(at, Event::Arrival(i));
                }
                wire.in_flight.push((at, *head));
            }
            queue.drop_head();
        }
    }

    /// Any other queue, or any other wire.
    fn serve_queue(&mut self, i: u16) {
        loop {
            let now = self.now;
            let interface = &mut self.interfaces[usize::from(i)];
            let busy_until = interface.wire.busy_until;
            if busy_until > now {
                if interface.wire.medium.is_some() {
                    return self.serve_medium(i);
                }
                // A plain fifo need not be asked when it is empty; others note that nobody waits.
                let waits = || interface.egress.as_ref().is_some_and(|q| !q.is_empty_fifo());
                if busy_until < interface.egress_armed && waits() {
                    interface.egress_armed = busy_until;
                    self.events.push(busy_until, Event::Egress(i));
                }
                return;
            }
            let Some(queue) = &mut interface.egress else { return };
            if queue.is_open(now)
                && let Some(packet) = &queue.take(now)
            {
                queue.left(packet, now);
                if interface.segments(packet) {
                    self.send_segments(i, packet);
                    continue;
                }
                let onward = interface.transmit(i, packet, now);
                if interface.host && packet.flags.has(Flags::CHARGED) {
                    self.left_device(i, packet);
                }
                if onward.is_none() {
                    self.lost.add(packet.len);
                }
                self.travel(onward, packet);
                continue;
            }
            if let Some(at) = queue.next_event()
                && at < interface.egress_armed
            {
                let at = at.max(now);
                interface.egress_armed = at;
                self.events.push(at, Event::Egress(i));
            }
            return;
        }
    }

    /// Keeps a packet until it arrives.
    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
    pub(crate) fn travel(&mut self, onward: Option<Onward>, packet: &Packet) {
        let Some(Onward { wire: i, at, .. }) = onward else { return };
        let wire = &mut self.interfaces[usize::from(i)].wire;
        if at == self.now && wire.in_flight.is_empty() {
            self.arrivals.push_back((i ^ 1, *packet));
            return;
        }
        if !wire.watched {
            wire.watched = true;
            self.events.push(at, Event::Arrival(i));
        }
        wire.in_flight.push((at, *packet));
    }

    pub(super) fn serve_wire(&mut self, mut i: u16) {
        loop {
            let wire = &mut self.interfaces[usize::from(i)].wire;
            let Some((at, packet)) = wire.in_flight.front() else {
                wire.watched = false;
                return;
            };
            if *at > self.now {
                self.events.push(*at, Event::Arrival(i));
                return;
            }
            let mut packet = *packet;
            wire.in_flight.drop_front();
            let mut behind = wire.in_flight.front().map(|first| first.0);
            let mut onward = self.arrive(i ^ 1, &mut packet);
            while let Some(next) = onward
                && self.is_next(behind, next)
            {
                self.leave(i, behind);
                i = next.wire;
                self.interfaces[usize::from(i)].wire.watched = true;
                behind = None;
                self.handled += u64::from(next.at > self.now);
                self.now = next.at;
                onward = self.arrive(i ^ 1, &mut packet);
            }
            self.travel(onward, &packet);
        }
    }

    /// Whether nothing else happens before this arrival, not even on the wire that is being served,
    /// where the next is due at `behind`: then the packet need not be put aside, nor an event for it
    /// into the queue.
    fn is_next(&self, behind: Option<Time>, Onward { at, follows, .. }: Onward) -> bool {
        !follows
            && self.arrivals.is_empty()
            && behind.is_none_or(|behind| behind > self.now && behind >= at)
            && (at == self.now || (at < self.events.earliest() && at <= self.end))
    }

    /// Waits for the next packet on wire `i`, due at `behind`.
    fn leave(&mut self, i: u16, behind: Option<Time>) {
        match behind {
            Some(at) => self.events.push(at, Event::Arrival(i)),
            None => self.interfaces[usize::from(i)].wire.watched = false,
        }
    }
}
