//! The event loop: packets between hosts, queues and wires.

use std::collections::VecDeque;

use crate::build::Refused;
use crate::capture::Capture;
use crate::charge::Charges;
use crate::event::{Event, EventQueue};
use crate::flow::FlowState;
use crate::matching::CompiledMatch;
use crate::net::{Graph, Hop, Wire};
use crate::packet::{Ecn, Flags, Packet, Proto};
use crate::probe::ProbeState;
use crate::qdisc::Queue;
use crate::record::{FLOW_METRICS, PROBE_METRICS, QUEUE_METRICS, Recorder, Series};
use crate::run::Run;
use crate::tcp::sender::Sender;
use crate::trace::Trace;
use crate::tunnel::Tunnels;
use crate::units::Time;

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
    egress_armed: Time,
    ingress_armed: Time,
    /// First series of each egress leaf.
    leaves: Vec<u32>,
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
            leaves: Vec::new(),
        }
    }

    /// Rewrites what arrives.
    fn rewrite(&self, packet: &mut Packet) {
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
    fn segments(&self, packet: &Packet) -> bool {
        packet.gso_size != 0 && !(self.offloads && self.wire.rate.is_none())
    }

    /// Puts a packet on the wire of this interface, which is number `i`; none if it is lost there.
    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
    fn transmit(&mut self, i: u16, packet: &Packet, now: Time) -> Option<Onward> {
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

/// Packets and frame bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes, Ethernet header included.
    pub bytes: u64,
}

impl Count {
    /// Counts one more.
    pub fn add(&mut self, packet: &Packet) {
        self.packets += 1;
        self.bytes += u64::from(packet.len);
    }
}

/// What became of every packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conservation {
    /// Emitted by hosts, or duplicated by netem.
    pub sent: Count,
    /// Reached their destination.
    pub delivered: Count,
    /// Dropped by queues, wires, or for want of a route.
    pub dropped: Count,
    /// In queues and on wires at the end.
    pub queued: Count,
}

/// A packet is on the way to the far end of a wire, to be there at a time.
#[derive(Clone, Copy)]
pub(crate) struct Onward {
    pub(crate) wire: u16,
    pub(crate) at: Time,
    /// Whether others are under way on that wire.
    pub(crate) follows: bool,
}

/// A simulation.
pub struct Sim {
    /// The document.
    pub run: Run,
    /// The graph.
    pub graph: Graph,
    /// Interfaces, two per link.
    pub interfaces: Vec<Interface>,
    /// Flows.
    pub flows: Vec<FlowState>,
    /// Probes; their traffic index follows the flows'.
    pub probes: Vec<ProbeState>,
    /// Tunnels.
    pub tunnels: Tunnels,
    /// What hosts' queues give back.
    pub(crate) charges: Charges,
    /// Internals of congestion controls, if the run asks for them.
    pub trace: Option<Trace>,
    now: Time,
    end: Time,
    window: [Time; 2],
    pub(crate) events: EventQueue,
    sender_armed: Vec<Time>,
    receiver_armed: Vec<Time>,
    /// Arrivals without delay, to be handled at the same instant: (interface, packet).
    arrivals: VecDeque<(u16, Packet)>,
    out: Vec<Packet>,
    recorder: Recorder,
    flow_series: u32,
    probe_series: u32,
    handled: u64,
    sent: Count,
    delivered: Count,
    pub(crate) lost: Count,
}

impl Sim {
    /// Puts the parts together; see [`crate::build`].
    pub fn new(
        run: Run,
        graph: Graph,
        interfaces: Vec<Interface>,
        flows: Vec<FlowState>,
        probes: Vec<ProbeState>,
    ) -> Sim {
        let window = run.window_s.map(Time::from_secs_f64);
        let end = Time::from_secs_f64(run.duration_s);
        let n = flows.len();
        let names: Vec<String> = flows.iter().map(|f| f.spec.name.clone()).collect();
        Sim {
            trace: (!run.trace.is_empty()).then(|| Trace::new(&names)),
            run,
            graph,
            interfaces,
            flows,
            probes,
            tunnels: Tunnels::default(),
            charges: Charges::default(),
            now: Time::ZERO,
            end,
            window,
            events: EventQueue::default(),
            sender_armed: vec![Time::NEVER; n],
            receiver_armed: vec![Time::NEVER; n],
            arrivals: VecDeque::new(),
            out: Vec::new(),
            recorder: Recorder::default(),
            flow_series: 0,
            probe_series: 0,
            handled: 0,
            sent: Count::default(),
            delivered: Count::default(),
            lost: Count::default(),
        }
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// A change that turns out impossible.
    pub fn execute(&mut self) -> Result<(), Refused> {
        self.schedule();
        while let Some((time, event)) = self.events.pop() {
            if time > self.end {
                break;
            }
            self.now = time;
            self.handled += 1;
            self.handle(event)?;
            while let Some((interface, mut packet)) = self.arrivals.pop_front() {
                let onward = self.arrive(interface, &mut packet);
                self.travel(onward, &packet);
            }
        }
        self.now = self.end;
        Ok(())
    }

    fn schedule(&mut self) {
        let names = self.flows.iter().map(|f| f.spec.name.clone()).collect::<Vec<_>>();
        for name in names {
            let first = self.recorder.register("flow", &name, &FLOW_METRICS);
            self.flow_series = self.flow_series.max(first + FLOW_METRICS.len() as u32);
        }
        self.probe_series = self.flow_series;
        for i in 0..self.probes.len() {
            let name = self.probes[i].spec.name.clone();
            self.recorder.register("probe", &name, &PROBE_METRICS);
        }
        for i in 0..self.interfaces.len() {
            let name = self.graph.egress_name(i);
            let Some(queue) = &self.interfaces[i].egress else { continue };
            let names = measured_queues(queue, &name);
            let leaves = names.iter().map(|n| self.recorder.register("queue", n, &QUEUE_METRICS)).collect();
            self.interfaces[i].leaves = leaves;
        }
        self.events.push(Time::from_secs_f64(self.run.sample_interval_s), Event::Sample);
        for (i, change) in self.run.changes.iter().enumerate() {
            self.events.push(Time::from_secs_f64(change.at_s), Event::Change(i as u16));
        }
        for (i, flow) in self.flows.iter().enumerate() {
            self.events.push(Time::from_secs_f64(flow.spec.start_s), Event::Source(i as u16));
        }
        for (i, probe) in self.probes.iter().enumerate() {
            self.events.push(Time::from_secs_f64(probe.spec.start_s), Event::Probe(i as u16));
        }
    }

    fn handle(&mut self, event: Event) -> Result<(), Refused> {
        match event {
            Event::Ingress(i) => {
                let interface = &mut self.interfaces[usize::from(i)];
                if interface.ingress_armed == self.now {
                    interface.ingress_armed = Time::NEVER;
                    self.serve_ingress(i);
                }
            }
            Event::Egress(i) => {
                let interface = &mut self.interfaces[usize::from(i)];
                if interface.egress_armed == self.now {
                    interface.egress_armed = Time::NEVER;
                    self.serve_egress(i);
                }
            }
            Event::Arrival(i) => self.serve_wire(i),
            Event::Link(i) => self.on_link_event(i),
            Event::Sender(f) => self.on_sender_event(f),
            Event::Receiver(f) => self.on_receiver_event(f),
            Event::Source(f) => self.on_source_event(f),
            Event::Probe(p) => {
                let probe = &mut self.probes[usize::from(p)];
                let next = probe.ask(self.now, &mut self.out);
                let node = probe.source();
                if let Some(next) = next {
                    self.events.push(next, Event::Probe(p));
                }
                self.emit_all(node);
            }
            Event::Sample => {
                self.sample();
                if self.failure().is_some() {
                    self.end = self.now;
                }
                self.events.push(self.now + Time::from_secs_f64(self.run.sample_interval_s), Event::Sample);
            }
            Event::Change(i) => self.change(usize::from(i))?,
        }
        Ok(())
    }

    // ---- endpoints ------------------------------------------------------------------------------

    fn on_source_event(&mut self, f: u16) {
        let flow = &mut self.flows[usize::from(f)];
        let opens = flow.mode.is_none() && flow.sender_deadline().is_none() && flow.datagrams[0].0 == 0;
        let next =
            if opens { flow.start(self.now, &mut self.out) } else { flow.on_source(self.now, &mut self.out) };
        let node = flow.nodes[0];
        if let Some(next) = next {
            self.events.push(next, Event::Source(f));
        }
        self.emit_all(node);
        self.arm_sender(f);
    }

    fn on_sender_event(&mut self, f: u16) {
        let i = usize::from(f);
        if self.sender_armed[i] != self.now {
            return;
        }
        self.sender_armed[i] = Time::NEVER;
        let flow = &mut self.flows[i];
        // Armed for an earlier deadline that has moved since: the pending event only checks.
        if flow.sender_deadline().is_some_and(|d| d <= self.now) {
            flow.on_sender_timer(self.now, &mut self.out);
            if let (Some(trace), Some(sender)) = (&mut self.trace, &flow.sender) {
                trace.timer_ran(i, &flow.spec.name, sender, self.now);
            }
            let node = flow.nodes[0];
            self.emit_all(node);
        }
        self.arm_sender(f);
    }

    fn on_receiver_event(&mut self, f: u16) {
        let i = usize::from(f);
        if self.receiver_armed[i] != self.now {
            return;
        }
        self.receiver_armed[i] = Time::NEVER;
        let flow = &mut self.flows[i];
        let node = flow.nodes[1];
        flow.on_receiver_timer(self.now, &mut self.out);
        self.emit_all(node);
        self.arm_receiver(f);
    }

    fn arm_sender(&mut self, f: u16) {
        let i = usize::from(f);
        if let Some(at) = self.flows[i].sender_deadline()
            && at < self.sender_armed[i]
        {
            let at = at.max(self.now);
            self.sender_armed[i] = at;
            self.events.push(at, Event::Sender(f));
        }
    }

    fn arm_receiver(&mut self, f: u16) {
        let i = usize::from(f);
        if let Some(at) = self.flows[i].receiver_deadline()
            && at < self.receiver_armed[i]
        {
            let at = at.max(self.now);
            self.receiver_armed[i] = at;
            self.events.push(at, Event::Receiver(f));
        }
    }

    // What endpoints do is long; kept out of line, the way from wire to wire stays short.
    #[inline(never)]
    fn deliver(&mut self, node: u16, packet: &Packet) {
        if packet.flags.has(Flags::CORRUPT) {
            self.lost.add(packet);
            return;
        }
        self.delivered.add(packet);
        let f = usize::from(packet.flow);
        if f >= self.flows.len() {
            let p = f - self.flows.len();
            if let Some((asked, rtt)) = self.probes[p].on_packet(packet, self.now, &mut self.out) {
                self.recorder.push(
                    asked,
                    self.probe_series + (p * PROBE_METRICS.len()) as u32,
                    rtt.as_secs_f64(),
                );
                if self.in_window() {
                    self.probes[p].rtts.record(rtt);
                }
            }
            self.emit_all(node);
            return;
        }
        let flow = &mut self.flows[f];
        let opened = flow.on_packet(packet, self.now, &mut self.out);
        let to_sender = node == flow.nodes[0];
        if to_sender
            && packet.proto == Proto::Tcp
            && let Some(rtt_us) = flow.last_rtt_us()
            && self.now >= self.window[0]
            && self.now <= self.window[1]
        {
            flow.rtts.record(Time::from_us(rtt_us));
        }
        if let (Some(trace), true, Some(sender)) = (&mut self.trace, to_sender, &flow.sender) {
            trace.acked(f, &flow.spec.name, sender, self.now);
        }
        self.emit_all(node);
        if opened {
            self.on_source_event(packet.flow);
        } else if to_sender {
            self.arm_sender(packet.flow);
        } else {
            self.arm_receiver(packet.flow);
        }
    }

    fn in_window(&self) -> bool {
        self.now >= self.window[0] && self.now <= self.window[1]
    }

    /// Sends what an endpoint on `node` put into `out`.
    fn emit_all(&mut self, node: u16) {
        if self.out.is_empty() {
            return;
        }
        let mut out = std::mem::take(&mut self.out);
        if !self.tunnels.is_empty() {
            self.tunnels.encapsulate(node, &mut out);
        }
        for packet in &out {
            self.sent.add(packet);
            match self.graph.route(node, packet.dst) {
                Some(i) => {
                    let onward = self.send(i, packet);
                    self.travel(onward, packet);
                }
                None => self.lost.add(packet),
            }
        }
        out.clear();
        self.out = out;
    }

    // ---- the network ----------------------------------------------------------------------------

    /// A packet is at the far end of a cable, which is interface `i`. Gives the wire on which it goes
    /// on, if it does, for [`Sim::travel`].
    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
    fn arrive(&mut self, i: u16, packet: &mut Packet) -> Option<Onward> {
        let interface = &mut self.interfaces[usize::from(i)];
        if let Some(capture) = &mut interface.captures[1] {
            capture.see(packet, self.now);
        }
        if let Some(queue) = &mut interface.ingress {
            queue.enqueue(*packet, self.now);
            self.serve_ingress(i);
            return None;
        }
        interface.rewrite(packet);
        self.forward(i, packet)
    }

    fn serve_ingress(&mut self, i: u16) {
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
                    self.lost.add(packet);
                }
            }
            Hop::Out(egress) => return self.send(egress, packet),
            Hop::Nowhere => self.lost.add(packet),
        }
        None
    }

    /// Out through interface `i`, or into its queue.
    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
    fn send(&mut self, i: u16, packet: &Packet) -> Option<Onward> {
        let interface = &mut self.interfaces[usize::from(i)];
        let goes = match &mut interface.egress {
            Some(queue) => interface.wire.busy_until <= self.now && queue.passes(packet, self.now),
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
        let onward = interface.transmit(i, packet, self.now);
        if onward.is_none() {
            self.lost.add(packet);
        }
        if self.interfaces[usize::from(i)].host && packet.flags.has(Flags::CHARGED) {
            self.left_host(i, packet);
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
                self.lost.add(&frame);
            }
            self.travel(onward, &frame);
        }
        if self.interfaces[usize::from(i)].host && packet.flags.has(Flags::CHARGED) {
            self.left_host(i, packet);
        }
    }

    /// A charged packet left the device of its host, or will have when the wire is free again.
    fn left_host(&mut self, i: u16, packet: &Packet) {
        let at = self.interfaces[usize::from(i)].wire.busy_until.max(self.now);
        self.left_host_at(packet, at);
    }

    pub(crate) fn left_host_at(&mut self, packet: &Packet, at: Time) {
        let flow = self.flows.get_mut(usize::from(packet.flow));
        if let Some(sender) = flow.and_then(|flow| flow.sender.as_mut())
            && sender.left_host(packet, at)
        {
            self.arm_sender(packet.flow);
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

    fn serve_egress(&mut self, i: u16) {
        loop {
            let interface = &mut self.interfaces[usize::from(i)];
            if interface.wire.busy_until > self.now {
                if interface.wire.medium.is_some() {
                    return self.serve_medium(i);
                }
                let at = interface.wire.busy_until;
                // A plain fifo need not be asked when it is empty; others note that nobody waits.
                let waits = || interface.egress.as_ref().is_some_and(|q| !q.is_empty_fifo());
                if at < interface.egress_armed && waits() {
                    interface.egress_armed = at;
                    self.events.push(at, Event::Egress(i));
                }
                return;
            }
            let Some(queue) = &mut interface.egress else { return };
            if queue.is_open(self.now)
                && let Some(packet) = &queue.take(self.now)
            {
                queue.left(packet, self.now);
                if interface.segments(packet) {
                    self.send_segments(i, packet);
                    continue;
                }
                let host = interface.host;
                let onward = interface.transmit(i, packet, self.now);
                if onward.is_none() {
                    self.lost.add(packet);
                }
                if host && packet.flags.has(Flags::CHARGED) {
                    self.left_host(i, packet);
                }
                self.travel(onward, packet);
                continue;
            }
            if let Some(at) = queue.next_event()
                && at < interface.egress_armed
            {
                let at = at.max(self.now);
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
        wire.in_flight.push_back((at, *packet));
    }

    fn serve_wire(&mut self, mut i: u16) {
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
            // Copied where it lies, then removed: what pop_front gives would be copied twice.
            let mut packet = *packet;
            wire.in_flight.pop_front();
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

    // ---- recording ------------------------------------------------------------------------------

    #[inline(never)]
    fn sample(&mut self) {
        let interval = self.run.sample_interval_s;
        for (f, flow) in self.flows.iter_mut().enumerate() {
            let first = (f * FLOW_METRICS.len()) as u32;
            let received = flow.received();
            let mut push = |metric: u32, value: f64| self.recorder.push(self.now, first + metric, value);
            if flow.receiver.is_some() || flow.datagrams[0].0 > 0 || flow.short.is_some() {
                push(0, (received - flow.sampled_received) as f64 * 8.0 / interval);
                push(1, received as f64);
                flow.sampled_received = received;
            }
            let Some(sender) = &flow.sender else { continue };
            let info = sender.info();
            let sock = sender.sock();
            if let Some(rate) = info.delivery_rate_bps {
                push(2, rate);
            }
            push(3, info.srtt_s);
            push(4, f64::from(info.cwnd));
            if let Some(ssthresh) = info.ssthresh {
                push(5, f64::from(ssthresh));
            }
            if let Some(rate) = info.pacing_rate_bps {
                push(6, rate);
            }
            push(7, f64::from(info.in_flight));
            push(8, sock.delivered as f64);
            push(9, sock.delivered_ce as f64);
            push(10, sender.counters.retransmits as f64);
            push(11, sock.lost as f64);
        }
        for interface in &mut self.interfaces {
            let Some(queue) = &mut interface.egress else { continue };
            let mut series = interface.leaves.iter();
            let (recorder, now) = (&mut self.recorder, self.now);
            queue.for_each_mut(&mut |_, leaf| {
                let Some(sojourn) = &mut leaf.sojourn else { return };
                let interval = sojourn.take_interval();
                let Some(&first) = series.next() else { return };
                let mut push = |metric: u32, value: f64| recorder.push(now, first + metric, value);
                push(0, leaf.qlen() as f64);
                push(1, leaf.backlog() as f64);
                if let Some(mean) = interval.mean_s() {
                    push(2, mean);
                    push(3, interval.max_ns as f64 / 1e9);
                }
                push(4, leaf.tally.marks as f64);
                push(5, leaf.tally.dropped() as f64);
                push(6, leaf.tally.sent_bytes as f64);
            });
        }
    }

    /// What became of every packet so far.
    pub fn conservation(&self) -> Conservation {
        let mut c = Conservation {
            sent: self.sent,
            delivered: self.delivered,
            dropped: self.lost,
            queued: Count::default(),
        };
        for interface in &self.interfaces {
            for queue in [&interface.egress, &interface.ingress].into_iter().flatten() {
                c.queued.packets += queue.qlen() as u64;
                c.queued.bytes += queue.backlog();
                queue.for_each(&mut |_, q| {
                    c.dropped.packets += q.tally.dropped();
                    c.dropped.bytes += q.tally.dropped_bytes;
                    c.sent.packets += q.tally.duplicated;
                    c.sent.bytes += q.tally.duplicated_bytes;
                });
            }
            if let Some(medium) = &interface.wire.medium {
                let held = medium.held();
                c.queued.packets += held.packets;
                c.queued.bytes += held.bytes;
            }
            for (_, packet) in &interface.wire.in_flight {
                c.queued.add(packet);
            }
        }
        c
    }

    /// Ends recording and gives the series.
    pub fn take_series(&mut self) -> Series {
        for (p, probe) in self.probes.iter().enumerate() {
            let series = self.probe_series + (p * PROBE_METRICS.len()) as u32 + 1;
            for at in probe.lost(self.now) {
                self.recorder.push(at, series, 1.0);
            }
        }
        for flow in &mut self.flows {
            for (metric, rows) in flow.happenings(self.now) {
                let series = self.recorder.register("flow", &flow.spec.name, &[metric]);
                for (at, value) in rows {
                    self.recorder.push(at, series, value);
                }
            }
        }
        std::mem::take(&mut self.recorder).finish()
    }

    /// The time reached.
    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// What went wrong inside a congestion control, if anything did.
    pub fn failure(&self) -> Option<String> {
        self.flows.iter().find_map(FlowState::failure)
    }

    /// Events handled.
    pub fn handled(&self) -> u64 {
        self.handled
    }

    /// A replaced queue takes its packets and its counts with it.
    pub(crate) fn count_replaced(&mut self, i: usize, old: &Queue) {
        let node = self.graph.node_of[i];
        for flow in self.flows.iter_mut().filter(|flow| flow.nodes[0] == node) {
            flow.sender.iter_mut().for_each(Sender::host_queue_replaced);
        }
        self.lost.packets += old.qlen() as u64;
        self.lost.bytes += old.backlog();
        old.for_each(&mut |_, q| {
            self.lost.packets += q.tally.dropped();
            self.lost.bytes += q.tally.dropped_bytes;
            self.sent.packets += q.tally.duplicated;
            self.sent.bytes += q.tally.duplicated_bytes;
        });
    }

    /// Serves an interface after its queues changed.
    pub(crate) fn serve(&mut self, i: u16) {
        self.serve_egress(i);
        self.serve_ingress(i);
    }
}

/// The queues of a tree in which packets wait, by name: the interface's own if there is one, else
/// with the handle behind it.
pub fn measured_queues(queue: &Queue, interface: &str) -> Vec<String> {
    let mut handles = Vec::new();
    queue.for_each(&mut |handle, q| {
        if q.sojourn.is_some() {
            handles.push(handle.to_owned());
        }
    });
    if handles.len() == 1 {
        return vec![interface.to_owned()];
    }
    handles.into_iter().map(|h| format!("{interface}/{h}")).collect()
}
