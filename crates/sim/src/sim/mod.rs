//! The event loop: what happens next, and to whom.

mod ahead;
mod changes;
mod forwarding;
mod media;
mod sampling;
mod spending;

use self::ahead::Ahead;
use crate::base::budget::Budget;
use crate::base::count::Count;
use crate::base::error::Refused;
use crate::base::event::{Event, EventQueue};
use crate::base::ring::Ring;
use crate::base::units::Time;
use crate::document::run::Run;
use crate::endpoint::flow::Flow;
use crate::endpoint::probe::ProbeState;
use crate::network::graph::Graph;
use crate::network::interface::Interface;
use crate::network::lanes::Lanes;
use crate::network::tunnel::Tunnels;
use crate::packet::charge::Charges;
use crate::packet::{Flags, Packet};
use crate::qdisc::Queue;
use crate::record::series::{Columns, FlowMetric, Metric, ProbeMetric, QueueMetric, Recorder, Series};
use crate::record::trace::Trace;

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

/// What a simulation is made of, besides its document.
pub struct Parts {
    /// Nodes, cables and routes.
    pub graph: Graph,
    /// Interfaces, two per link.
    pub interfaces: Vec<Interface>,
    /// Where packets are taken through several of them at once.
    pub lanes: Lanes,
    /// Flows.
    pub flows: Vec<Flow>,
    /// Probes; their traffic index follows the flows'.
    pub probes: Vec<ProbeState>,
    /// Tunnels.
    pub tunnels: Tunnels,
    /// What hosts' queues give back.
    pub charges: Charges,
}

/// When events of a sender are pending. Each is set before those that were pending already.
#[derive(Clone)]
struct Armed {
    /// The first of them; never if there is none.
    earliest: Time,
    /// The others, the first of these last.
    others: Vec<Time>,
}

impl Default for Armed {
    fn default() -> Armed {
        Armed { earliest: Time::NEVER, others: Vec::new() }
    }
}

impl Armed {
    /// An event is pending at `at`, before all others.
    fn add(&mut self, at: Time) {
        let next = std::mem::replace(&mut self.earliest, at);
        if next != Time::NEVER {
            self.others.push(next);
        }
    }

    /// The first of the events has come.
    fn come(&mut self) {
        self.earliest = self.others.pop().unwrap_or(Time::NEVER);
    }
}

/// A simulation.
pub struct Sim {
    /// The document.
    pub run: Run,
    /// The graph.
    pub graph: Graph,
    /// Interfaces, two per link.
    pub interfaces: Vec<Interface>,
    lanes: Lanes,
    ahead: Ahead,
    /// Flows.
    pub flows: Vec<Flow>,
    /// Probes; their traffic index follows the flows'.
    pub probes: Vec<ProbeState>,
    /// Tunnels.
    pub tunnels: Tunnels,
    /// What hosts' queues give back.
    pub(crate) charges: Charges,
    /// Internals of congestion controls, if the run asks for them.
    pub trace: Option<Trace>,
    /// What it may cost.
    pub budget: Budget,
    now: Time,
    end: Time,
    window: [Time; 2],
    pub(crate) events: EventQueue,
    /// Of each flow: when events of its sender are pending.
    sender_armed: Vec<Armed>,
    receiver_armed: Vec<Time>,
    /// Arrivals without delay, to be handled at the same instant: (interface, packet).
    arrivals: Ring<(u16, Packet)>,
    /// What an endpoint gives to be sent.
    out: Vec<Packet>,
    /// Empty, to take its place while that is sent.
    spare: Vec<Packet>,
    recorder: Recorder,
    flow_series: Vec<Columns<FlowMetric>>,
    probe_series: Vec<Columns<ProbeMetric>>,
    /// Of each interface: its egress queues that are measured.
    queue_series: Vec<Vec<Columns<QueueMetric>>>,
    /// Of each of these that marks SCE, the series of its marks; others have none, so that their runs have what they always had.
    sce_series: Vec<Vec<Option<u32>>>,
    /// By interface, then by queue: the series of the delay in DualPI2's L and C queue, where there are such.
    l_and_c_series: Vec<Vec<Option<[u32; 2]>>>,
    handled: u64,
    /// Packets that sources gave at once, each of which is as much work as an event.
    burst: u64,
    /// How many events are handled when the budget is looked at next.
    look_at: u64,
    sent: Count,
    delivered: Count,
    pub(crate) lost: Count,
}

impl Sim {
    /// Puts the parts together; see [`crate::build`].
    pub fn new(run: Run, parts: Parts) -> Sim {
        let Parts { graph, interfaces, lanes, flows, probes, tunnels, charges } = parts;
        let window = run.window_s.map(Time::from_secs_f64);
        let end = Time::from_secs_f64(run.duration_s);
        let n = flows.len();
        let names: Vec<String> = flows.iter().map(|f| f.spec.name.clone()).collect();
        Sim {
            trace: (!run.trace.is_empty()).then(|| Trace::new(&names)),
            run,
            graph,
            interfaces,
            lanes,
            ahead: Ahead::default(),
            flows,
            probes,
            tunnels,
            charges,
            budget: Budget::default(),
            now: Time::ZERO,
            end,
            window,
            events: EventQueue::default(),
            sender_armed: vec![Armed::default(); n],
            receiver_armed: vec![Time::NEVER; n],
            arrivals: Ring::default(),
            out: Vec::new(),
            spare: Vec::new(),
            recorder: Recorder::default(),
            flow_series: Vec::new(),
            probe_series: Vec::new(),
            queue_series: Vec::new(),
            sce_series: Vec::new(),
            l_and_c_series: Vec::new(),
            handled: 0,
            burst: 0,
            look_at: 0,
            sent: Count::default(),
            delivered: Count::default(),
            lost: Count::default(),
        }
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// A change that turns out impossible, and a budget that is spent.
    pub fn execute(&mut self) -> Result<(), Refused> {
        self.schedule();
        // What the last event waits for: put among the pending events only if it does not come next.
        let mut awaited = None;
        while let Some((time, event)) = self.events.pop_with(awaited) {
            if time > self.end {
                break;
            }
            self.now = time;
            self.handled += 1;
            if self.handled >= self.look_at {
                self.check_budget()?;
            }
            awaited = self.handle(event)?;
            while let Some(&(interface, mut packet)) = self.arrivals.front() {
                self.arrivals.drop_front();
                self.arrive(interface, &mut packet);
            }
        }
        self.now = self.end;
        self.interfaces.iter_mut().for_each(Interface::settle);
        Ok(())
    }

    fn schedule(&mut self) {
        let recorder = &mut self.recorder;
        self.flow_series = self.flows.iter().map(|flow| recorder.columns(&flow.spec.name)).collect();
        self.probe_series = self.probes.iter().map(|probe| recorder.columns(&probe.spec.name)).collect();
        let queues = |(i, interface): (usize, &Interface)| {
            let Some(queue) = &interface.egress else { return Vec::new() };
            let names = measured_queues(queue, &self.graph.egress_name(i));
            names.iter().map(|name| recorder.columns(name)).collect()
        };
        self.queue_series = self.interfaces.iter().enumerate().map(queues).collect();
        let marking = |(i, interface): (usize, &Interface)| {
            let Some(queue) = &interface.egress else { return Vec::new() };
            let mut found = Vec::new();
            queue.for_each(&mut |_, leaf| {
                if leaf.sojourn.is_some() {
                    found.push(leaf.marks_sce());
                }
            });
            let names = measured_queues(queue, &self.graph.egress_name(i));
            let series = |(name, marks): (&String, bool)| {
                marks.then(|| recorder.register(QueueMetric::KIND, name, &["sce_marks"]))
            };
            names.iter().zip(found).map(series).collect()
        };
        self.sce_series = self.interfaces.iter().enumerate().map(marking).collect();
        for (i, interface) in self.interfaces.iter_mut().enumerate() {
            let mut found = Vec::new();
            if let Some(queue) = &mut interface.egress {
                let mut names = measured_queues(queue, &self.graph.egress_name(i)).into_iter();
                queue.for_each_mut(&mut |_, leaf| {
                    if leaf.sojourn.is_none() {
                        return;
                    }
                    let name = names.next().unwrap_or_default();
                    found.push(leaf.take_l_and_c().map(|_| {
                        ["sojourn_l", "sojourn_c"].map(|m| recorder.register(QueueMetric::KIND, &name, &[m]))
                    }));
                });
            }
            self.l_and_c_series.push(found);
        }
        self.await_sample();
        for (i, change) in self.run.changes.iter().enumerate() {
            self.events.push(Time::from_secs_f64(change.at_s), Event::Change(i as u16));
        }
        for (i, flow) in self.flows.iter().enumerate() {
            self.events.push(Time::from_secs_f64(flow.spec.start_s), Event::Source(i as u16));
        }
        self.find_hosts_to_tell();
        for (i, probe) in self.probes.iter().enumerate() {
            self.events.push(Time::from_secs_f64(probe.spec.start_s), Event::Probe(i as u16));
        }
    }

    /// Does what is due; the event that this waits for, if there is one and it is not pending.
    #[expect(clippy::inline_always, reason = "the loop's one call of it")]
    #[inline(always)]
    fn handle(&mut self, event: Event) -> Result<Option<(Time, Event)>, Refused> {
        match event {
            Event::Ingress(i) => {
                let interface = &mut self.interfaces[usize::from(i)];
                if interface.ingress_armed == self.now {
                    interface.ingress_armed = Time::NEVER;
                    return Ok(self.empty_ingress(i).map(|at| (at, event)));
                }
            }
            Event::Egress(i) => {
                let interface = &mut self.interfaces[usize::from(i)];
                if interface.egress_armed == self.now {
                    interface.egress_armed = Time::NEVER;
                    return Ok(self.on_egress_event(i).map(|at| (at, event)));
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
                // Many flows are many samples.
                self.look_at = 0;
                if self.failure().is_some() {
                    self.end = self.now;
                }
                self.await_sample();
            }
            Event::Change(i) => {
                self.look_no_further();
                self.change(usize::from(i))?;
                self.look_ahead();
            }
        }
        Ok(None)
    }

    fn await_sample(&mut self) {
        let at = self.now + Time::from_secs_f64(self.run.sample_interval_s);
        self.events.push(at, Event::Sample);
        self.ahead.sample = at;
        self.look_ahead();
    }

    // ---- endpoints ------------------------------------------------------------------------------

    fn on_source_event(&mut self, f: u16) {
        let flow = &mut self.flows[usize::from(f)];
        let next = flow.on_source(self.now, &mut self.out);
        let node = flow.nodes[0];
        let burst = self.out.len() as u64;
        self.burst += burst;
        self.look_at = self.look_at.saturating_sub(burst);
        self.note_source(f, next);
        if let Some(next) = next {
            self.events.push(next, Event::Source(f));
        }
        self.emit_all(node);
        self.arm_sender(f);
    }

    fn on_sender_event(&mut self, f: u16) {
        let i = usize::from(f);
        self.sender_armed[i].come();
        // Armed for a deadline that has moved since: the event only checks.
        if self.flows[i].sender_deadline().is_some_and(|due| due <= self.now) {
            self.run_sender_timer(f);
        } else {
            self.arm_sender(f);
        }
    }

    /// Runs the timers that are due of the sender of flow `f`.
    fn run_sender_timer(&mut self, f: u16) {
        let i = usize::from(f);
        let flow = &mut self.flows[i];
        flow.on_sender_timer(self.now, &mut self.out);
        if let (Some(trace), Some(sender)) = (&mut self.trace, flow.sender()) {
            trace.timer_ran(i, &flow.spec.name, sender, self.now);
        }
        let node = flow.nodes[0];
        self.emit_all(node);
        self.arm_sender(f);
    }

    fn on_receiver_event(&mut self, f: u16) {
        let armed = &mut self.receiver_armed[usize::from(f)];
        if *armed == self.now {
            *armed = Time::NEVER;
            self.run_receiver_timer(f);
        }
    }

    /// Runs the timers that are due of the receiver of flow `f`.
    fn run_receiver_timer(&mut self, f: u16) {
        let flow = &mut self.flows[usize::from(f)];
        let node = flow.nodes[1];
        flow.on_receiver_timer(self.now, &mut self.out);
        let deadline = flow.receiver_deadline();
        self.emit_all(node);
        self.arm_receiver(f, node, deadline);
    }

    /// Sees to it that an event is pending when the earliest timer of the sender of flow `f` expires, or before.
    #[expect(clippy::inline_always, reason = "the end of each ACK's way")]
    #[inline(always)]
    pub(super) fn arm_sender(&mut self, f: u16) {
        let i = usize::from(f);
        let flow = &self.flows[i];
        let waits_until = flow.sender_waits_until();
        self.ahead.note_timer(flow.nodes[0], waits_until);
        if waits_until < self.sender_armed[i].earliest {
            self.arm_sender_earlier(f);
        }
    }

    /// An event of the sender of flow `f` may have to be pending before those that are.
    #[inline(never)]
    fn arm_sender_earlier(&mut self, f: u16) {
        let i = usize::from(f);
        if let Some(at) = self.flows[i].sender_deadline()
            && at < self.sender_armed[i].earliest
        {
            let at = at.max(self.now);
            self.sender_armed[i].add(at);
            self.events.push(at, Event::Sender(f));
        }
    }

    #[expect(clippy::inline_always, reason = "the end of each packet's way")]
    #[inline(always)]
    fn arm_receiver(&mut self, f: u16, node: u16, deadline: Option<Time>) {
        let Some(at) = deadline else { return };
        self.ahead.note_timer(node, at);
        let i = usize::from(f);
        if at < self.receiver_armed[i] {
            let at = at.max(self.now);
            self.receiver_armed[i] = at;
            self.events.push(at, Event::Receiver(f));
        }
    }

    /// A packet is at its destination. What endpoints do is long; kept out of line, the way from wire to wire stays short.
    #[inline(never)]
    fn deliver(&mut self, node: u16, packet: &Packet) {
        self.hand_over(node, packet);
    }

    #[expect(clippy::inline_always, reason = "telling a host ahead of time is the end of most ways")]
    #[inline(always)]
    fn hand_over(&mut self, node: u16, packet: &Packet) {
        if packet.flags.has(Flags::CORRUPT) {
            self.lost.add(packet.len);
            return;
        }
        self.delivered.add(packet.len);
        let now = self.now;
        let f = usize::from(packet.flow);
        let Some(flow) = self.flows.get_mut(f) else { return self.deliver_to_probe(node, packet) };
        let to_receiver = node != flow.nodes[0];
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
            if let (Some(trace), Some(sender)) = (&mut self.trace, flow.sender()) {
                trace.acked(f, &flow.spec.name, sender, now);
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
    fn emit_all(&mut self, node: u16) {
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
        // Who is told of a packet ahead of time may answer it before all is sent.
        self.ahead.sends(node, true);
        let mut out = std::mem::replace(&mut self.out, std::mem::take(&mut self.spare));
        if !self.tunnels.is_empty() {
            self.tunnels.encapsulate(node, &mut out);
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
        self.ahead.sends(node, false);
        out.clear();
        self.spare = std::mem::replace(&mut self.out, out);
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
            for (_, packet) in interface.wire.in_flight.iter() {
                c.queued.add(packet.len);
            }
        }
        c
    }

    /// Ends recording and gives the series.
    pub fn take_series(&mut self) -> Series {
        for (p, probe) in self.probes.iter().enumerate() {
            let series = self.probe_series[p].of(ProbeMetric::Lost);
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
        self.flows.iter().find_map(Flow::failure)
    }

    /// Events handled.
    pub fn handled(&self) -> u64 {
        self.handled
    }

    /// A replaced queue takes its packets and its counts with it.
    pub(crate) fn count_replaced(&mut self, i: usize, old: &Queue) {
        let node = self.graph.node_of[i];
        for flow in self.flows.iter_mut().filter(|flow| flow.nodes[0] == node) {
            flow.sender_mut().into_iter().for_each(|sender| sender.host_queue_replaced(self.now));
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A pending event that is forgotten would be scheduled again, which costs time and changes no result.
    #[test]
    fn events_of_a_sender_come_one_by_one() {
        let mut armed = Armed::default();
        for at in [9, 5, 2] {
            armed.add(Time(at));
        }
        let mut came = Vec::new();
        while armed.earliest != Time::NEVER {
            came.push(armed.earliest.0);
            armed.come();
        }
        assert_eq!(came, [2, 5, 9]);
    }
}
