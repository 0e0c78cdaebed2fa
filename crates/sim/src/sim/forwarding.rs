//! What carries a packet from one end of the network to the other: rules, routes, queues and wires.

use super::Sim;
use super::fast_path::early::MOST_NESTED;
use crate::base::event::Event;
use crate::base::units::Time;
use crate::endpoint::flow::Flow;
use crate::network::device::Device;
use crate::network::graph::Hop;
use crate::packet::{Flags, Packet, charge};

impl Sim {
    /// A packet is at the far end of a cable, which is interface `i`.
    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
    pub(super) fn arrive(&mut self, i: u16, packet: &mut Packet) {
        if self.interfaces[usize::from(i)].shortcuts.arrives_untouched || self.inspect(i, packet) {
            self.forward(i, packet);
        }
    }

    /// What an interface does with a packet that arrives: holds it back, writes it down, lets it wait (false: it goes on
    /// from there), rewrites it.
    #[inline(never)]
    fn inspect(&mut self, i: u16, packet: &mut Packet) -> bool {
        !self.hold_back(i, packet) && self.take_in(i, packet)
    }

    /// See [`Sim::inspect`], of a packet that is not held back.
    pub(super) fn take_in(&mut self, i: u16, packet: &mut Packet) -> bool {
        let interface = &mut self.interfaces[usize::from(i)];
        if let Some(capture) = &mut interface.captures[1] {
            capture.see(packet, self.now);
        }
        if interface.shortcuts.delays.is_some() {
            let due = self.delay(i, packet);
            if due <= self.now || due < self.interfaces[usize::from(i)].ingress_armed {
                self.serve_ingress(i);
            }
            return false;
        }
        if let Some(queue) = &mut interface.ingress {
            queue.enqueue_from(packet, self.now);
            // Most that comes finds the queue closed, and the end of that awaited.
            if queue.closed_until(self.now).is_none_or(|at| at < interface.ingress_armed) {
                self.serve_ingress(i);
            }
            return false;
        }
        interface.rewrite(packet);
        true
    }

    /// A packet comes to the ingress queue of interface `i`, which only delays; when that gives one next.
    #[inline]
    pub(super) fn delay(&mut self, i: u16, packet: &Packet) -> Time {
        let interface = &mut self.interfaces[usize::from(i)];
        let Some(delays) = &mut interface.shortcuts.delays else { return Time::NEVER };
        if let Err(full) = delays.take(packet, self.now, self.end)
            && let Some(queue) = &mut interface.ingress
        {
            delays.turn_away(full, packet, queue);
        }
        delays.due()
    }

    pub(super) fn serve_ingress(&mut self, i: u16) {
        if let Some(at) = self.empty_ingress(i) {
            self.events.push(at, Event::Ingress(i));
        }
    }

    /// Takes on what the ingress queue of interface `i` gives; when it is to be asked again, if that is not awaited.
    #[inline]
    pub(super) fn empty_ingress(&mut self, i: u16) -> Option<Time> {
        if self.interfaces[usize::from(i)].shortcuts.delays.is_some() {
            self.end_delays(i)
        } else {
            self.empty_ingress_queue(i)
        }
    }

    #[inline(never)]
    fn empty_ingress_queue(&mut self, i: u16) -> Option<Time> {
        let mut packet = Packet::default();
        loop {
            let interface = &mut self.interfaces[usize::from(i)];
            let queue = interface.ingress.as_mut()?;
            if queue.is_open(self.now) && queue.dequeue_into(&mut packet, self.now) {
                interface.rewrite(&mut packet);
                self.forward(i, &mut packet);
                continue;
            }
            let at = queue.next_event()?;
            let at = Some(interface.fires(at)).filter(|at| *at < interface.ingress_armed)?.max(self.now);
            interface.ingress_armed = at;
            return Some(at);
        }
    }

    /// The same of an ingress queue that only delays.
    #[inline(never)]
    fn end_delays(&mut self, i: u16) -> Option<Time> {
        loop {
            let now = self.now;
            let interface = &mut self.interfaces[usize::from(i)];
            let delays = interface.shortcuts.delays.as_mut()?;
            let Some(line) = delays.turn(now) else {
                let at = Some(delays.due()).filter(|at| *at < interface.ingress_armed)?.max(now);
                interface.ingress_armed = at;
                return Some(at);
            };
            let dst = delays.first(line)?.dst;
            if let Hop::Out(out) = self.graph.hop(i, dst)
                && let Ok([from, to]) = self.interfaces.get_disjoint_mut([usize::from(i), usize::from(out)])
                && let (true, true, Some(queue)) =
                    (from.rules.is_empty(), to.shortcuts.enters_queue, &mut to.egress)
                && let Some(delays) = &mut from.shortcuts.delays
            {
                delays.let_go(line, now, |packet| queue.enqueue_from(packet, now));
                self.serve_if_not_awaited(out);
            } else {
                let interface = &mut self.interfaces[usize::from(i)];
                let mut packet = Packet::default();
                interface.shortcuts.delays.as_mut()?.let_go(line, now, |gone| packet = *gone);
                interface.rewrite(&mut packet);
                self.forward(i, &mut packet);
            }
        }
    }

    /// Past ingress queue and rewriting: this node or onward.
    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
    pub(super) fn forward(&mut self, i: u16, packet: &mut Packet) {
        match self.graph.hop(i, packet.dst) {
            Hop::Here => {
                let node = self.graph.node_of[usize::from(i)];
                if packet.tunnel == 0 || self.tunnels.decapsulate(node, packet) {
                    self.deliver(node, packet);
                } else {
                    self.lost.add(packet.len);
                }
            }
            Hop::Out(egress) => self.send(egress, packet),
            Hop::Nowhere => self.lost.add(packet.len),
        }
    }

    /// Out through interface `i`, or into its queue.
    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
    pub(super) fn send(&mut self, i: u16, packet: &mut Packet) {
        let interface = &mut self.interfaces[usize::from(i)];
        if let Some(device) = &mut interface.shortcuts.device {
            if packet.gso_size != 0 {
                return self.pass_whole(i, packet);
            }
            match device.pass(packet, self.now, self.end) {
                Ok(passage) => {
                    let ends_lane = interface.shortcuts.ends_lane;
                    if interface.host && packet.flags.has(Flags::CHARGED) {
                        // Who sends sets the sender's timer afterwards.
                        self.leaves_host(packet, passage.begins, passage.ends);
                    }
                    if ends_lane {
                        self.put_in_flight(i, passage.arrives, packet);
                    } else {
                        self.travel(i, passage.arrives, packet);
                    }
                }
                Err(why) => interface.stop(packet, self.now, why),
            }
        } else if interface.egress.is_some() {
            self.wait(i, packet);
        } else {
            self.transmit(i, packet);
        }
    }

    /// A buffer of several segments comes to the device `i`.
    #[inline(never)]
    fn pass_whole(&mut self, i: u16, packet: &mut Packet) {
        let interface = &mut self.interfaces[usize::from(i)];
        let (now, segments) = (self.now, interface.segments(packet));
        let Some(device) = &mut interface.shortcuts.device else { return };
        match device.admit(now, self.end) {
            Err(why) => interface.stop(packet, now, why),
            Ok(begins) if segments => {
                if let Some(queue) = &mut interface.egress {
                    queue.let_through_whole(packet);
                }
                self.send_segments(i, begins, packet);
            }
            // Without a rate, and so without a queue.
            Ok(begins) => {
                let arrives = device.send(packet, begins);
                self.travel(i, arrives, packet);
            }
        }
    }

    /// From the queue of interface `i`, or past it if there is none, onto the wire, which is free.
    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
    fn transmit(&mut self, i: u16, packet: &mut Packet) {
        let interface = &mut self.interfaces[usize::from(i)];
        if interface.segments(packet) {
            self.send_segments(i, self.now, packet);
            return;
        }
        let arrives = interface.transmit(packet, self.now);
        if interface.host && packet.flags.has(Flags::CHARGED) {
            self.left_device(i, self.now, packet);
        }
        match arrives {
            Some(at) => self.travel(i, at, packet),
            None => self.lost.add(packet.len),
        }
    }

    /// A buffer of several segments leaves a device that sends frames, from `begins` on.
    #[inline(never)]
    fn send_segments(&mut self, i: u16, begins: Time, packet: &Packet) {
        let segs = packet.segs();
        // What is sent one by one came into being here.
        self.sent.packets += u64::from(segs - 1);
        for index in 0..segs {
            let mut frame = packet.segment(index);
            let interface = &mut self.interfaces[usize::from(i)];
            let arrives = match &mut interface.shortcuts.device {
                Some(device) => Some(device.send(&frame, begins)),
                None => interface.transmit(&frame, interface.wire.busy_until.max(begins)),
            };
            match arrives {
                Some(at) => self.travel(i, at, &mut frame),
                None => self.lost.add(frame.len),
            }
        }
        if packet.flags.has(Flags::CHARGED) && self.interfaces[usize::from(i)].host {
            self.left_device(i, begins, packet);
        }
    }

    /// A charged packet leaves its host's device from `begins` until the wire is free again.
    fn left_device(&mut self, i: u16, begins: Time, packet: &Packet) {
        let interface = &self.interfaces[usize::from(i)];
        let ends =
            interface.shortcuts.device.as_ref().map_or(interface.wire.busy_until, Device::free).max(begins);
        if self.leaves_host(packet, begins, ends) {
            self.arm_sender(packet.flow);
        }
    }

    /// Tells the sender of a charged packet that this leaves its host; whether the sender waits for that.
    #[expect(clippy::inline_always, reason = "part of each packet's way")]
    #[inline(always)]
    pub(super) fn leaves_host(&mut self, packet: &Packet, begins: Time, ends: Time) -> bool {
        let flow = self.flows.get_mut(usize::from(packet.flow));
        let sender = flow.and_then(Flow::sender_mut);
        sender.is_some_and(|sender| sender.leaves_host(charge::memory(packet), begins, ends))
    }

    /// Into the egress queue of interface `i`.
    #[inline(never)]
    fn wait(&mut self, i: u16, packet: &mut Packet) {
        let interface = &mut self.interfaces[usize::from(i)];
        if let Some(queue) = &mut interface.egress {
            if packet.gso_size != 0 && interface.wire.medium.is_some() {
                // Media take frames.
                self.sent.packets += u64::from(packet.segs() - 1);
                (0..packet.segs()).for_each(|index| queue.enqueue(packet.segment(index), self.now));
                self.charges.split(packet);
            } else {
                queue.enqueue_from(packet, self.now);
            }
        }
        self.serve_if_not_awaited(i);
    }

    /// Most that is queued finds the wire busy, or the queue closed, and the end of that awaited.
    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
    fn serve_if_not_awaited(&mut self, i: u16) {
        let interface = &self.interfaces[usize::from(i)];
        let wire = &interface.wire;
        let due = match &interface.egress {
            _ if wire.busy_until > self.now => Some(wire.busy_until),
            Some(queue) if wire.medium.is_none() => queue.closed_until(self.now),
            _ => None,
        };
        if due.is_none_or(|at| at < interface.egress_armed) {
            self.serve_egress(i);
        }
    }

    /// Gives the wire of interface `i` what its egress queue has, as long as it is free.
    pub(super) fn serve_egress(&mut self, i: u16) {
        if let Some(at) = self.empty_egress(i) {
            self.events.push(at, Event::Egress(i));
        }
    }

    /// The same at the time of an event, and goes on until something else comes first; when it is to go on then.
    pub(super) fn on_egress_event(&mut self, i: u16) -> Option<Time> {
        loop {
            let at = self.empty_egress(i)?;
            if !self.is_next(at) {
                return Some(at);
            }
            self.interfaces[usize::from(i)].egress_armed = Time::NEVER;
            self.now = at;
            self.handled += 1;
        }
    }

    /// See [`Sim::serve_egress`]; when the interface is to be served next, if that is not awaited.
    #[inline(never)]
    fn empty_egress(&mut self, i: u16) -> Option<Time> {
        if self.interfaces[usize::from(i)].wire.medium.is_some() {
            self.serve_medium(i);
            return None;
        }
        loop {
            let now = self.now;
            let interface = &mut self.interfaces[usize::from(i)];
            let queue = interface.egress.as_mut()?;
            let free = interface.wire.busy_until;
            if free > now {
                let busy_until = interface.card.as_ref().map_or(free, |card| card.machine.runs(free));
                // A plain fifo need not be asked when it is empty; others note that nobody waits.
                let due = busy_until < interface.egress_armed && !queue.is_empty_fifo();
                return due.then(|| {
                    interface.egress_armed = busy_until;
                    busy_until
                });
            }
            if queue.is_open(now) {
                let mut packet = Packet::default();
                if queue.dequeue_into(&mut packet, now) {
                    self.transmit(i, &mut packet);
                    continue;
                }
            }
            let at = queue.next_event()?;
            let at = Some(interface.fires(at)).filter(|at| *at < interface.egress_armed)?.max(now);
            interface.egress_armed = at;
            return Some(at);
        }
    }

    /// A packet will be at the far end of wire `i` at `at`, after all that are on it. It is taken through the devices of
    /// the lane behind, as far as it gets in this run, and is in flight until it arrives at the far end of the last wire.
    #[inline(never)]
    pub(crate) fn travel(&mut self, mut i: u16, mut at: Time, packet: &mut Packet) {
        for &next in self.lanes.behind(i, packet.dst) {
            if at > self.end {
                break;
            }
            let interface = &mut self.interfaces[usize::from(next)];
            let Some(device) = &mut interface.shortcuts.device else { break };
            match device.pass(packet, at, self.end) {
                Ok(passage) => (i, at) = (next, passage.arrives),
                Err(why) => return interface.stop(packet, at, why),
            }
        }
        if self.interfaces[usize::from(i)].wire.in_flight.is_empty() {
            if at == self.now {
                let i = self.pass_at_once(i, packet);
                // Behind others of this instant it takes no shortcut.
                let alone = self.arrivals.is_empty();
                if !alone || !self.enters_delay_line(i ^ 1, packet) && !self.delivers_instantly(i, packet) {
                    self.arrive_now(i ^ 1, packet);
                }
                return;
            }
            if self.early.nested < MOST_NESTED
                && let Some(node) = self.early.may_deliver(i, at, packet)
                && self.is_ready(node, at)
            {
                return self.deliver_early(node, at, packet);
            }
        }
        self.put_in_flight(i, at, packet);
    }

    /// A packet is at the far end of wire `i` in no time, and of the wires behind that it passes at once; the last of these.
    #[inline]
    fn pass_at_once(&mut self, i: u16, packet: &Packet) -> u16 {
        let last = self.hops.last(i, packet.dst);
        if last != i && !self.run.captures.is_empty() {
            self.capture_at_once(i, last, packet);
        }
        last
    }

    /// Writes a packet down where it passes from wire `i` to wire `last` at once.
    #[cold]
    fn capture_at_once(&mut self, mut i: u16, last: u16, packet: &Packet) {
        while i != last
            && let Hop::Out(next) = self.graph.hop(i ^ 1, packet.dst)
        {
            if let Some(capture) = &mut self.interfaces[usize::from(i ^ 1)].captures[1] {
                capture.see(packet, self.now);
            }
            self.interfaces[usize::from(next)].capture_leaving(packet, self.now);
            i = next;
        }
    }

    /// A packet is on its way until it is at the far end of wire `i` at `at`, after all that are on it.
    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
    fn put_in_flight(&mut self, i: u16, at: Time, packet: &Packet) {
        let wire = &mut self.interfaces[usize::from(i)].wire;
        if !wire.watched {
            wire.watched = true;
            self.events.push(at, Event::Arrival(i));
        }
        wire.in_flight.push((at, *packet));
    }

    /// A packet is at interface `i` in no time, when what happens now has happened.
    #[inline(never)]
    fn arrive_now(&mut self, i: u16, packet: &Packet) {
        self.arrivals.push((i, *packet));
    }

    /// The interface in whose queue, and nowhere before, a packet for `dst` waits that arrives on wire `i`.
    #[inline]
    fn queue_behind(&self, i: u16, dst: u16) -> Option<u16> {
        match self.graph.hop(i ^ 1, dst) {
            Hop::Out(out) if out != i && self.interfaces[usize::from(i ^ 1)].shortcuts.arrives_untouched => {
                self.interfaces[usize::from(out)].shortcuts.enters_queue.then_some(out)
            }
            _ => None,
        }
    }

    /// The packet that has arrived on wire `i` is copied into the queue of interface `out`.
    #[inline]
    fn move_on(&mut self, i: u16, out: u16) {
        let ends = [usize::from(i), usize::from(out)];
        let Ok([from, to]) = self.interfaces.get_disjoint_mut(ends) else { return };
        if let (Some((_, packet)), Some(queue)) = (from.wire.in_flight.front_mut(), &mut to.egress) {
            queue.enqueue_from(packet, self.now);
        }
        from.wire.in_flight.drop_front();
        self.serve_if_not_awaited(out);
    }

    /// What has arrived on wire `i`, and goes on until something else comes first.
    pub(super) fn serve_wire(&mut self, i: u16) {
        // Behind the loop's clock while packets are delivered early.
        let mut now = self.now;
        while let Some((_, packet)) = self.interfaces[usize::from(i)].wire.in_flight.front() {
            if let Some(out) = self.queue_behind(i, packet.dst) {
                self.move_on(i, out);
            } else {
                let mut packet = *packet;
                self.interfaces[usize::from(i)].wire.in_flight.drop_front();
                self.arrive(i ^ 1, &mut packet);
            }
            let Some((at, next)) = self.interfaces[usize::from(i)].wire.in_flight.front() else {
                self.interfaces[usize::from(i)].wire.watched = false;
                break;
            };
            let at = *at;
            if at > self.now {
                if self.is_next(at) {
                    now = at;
                } else if !self.early.may_deliver(i, at, next).is_some_and(|node| self.is_ready(node, at)) {
                    self.events.push(at, Event::Arrival(i));
                    break;
                }
                self.now = at;
                self.handled += 1;
            }
        }
        self.now = now;
    }
}
