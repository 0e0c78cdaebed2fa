//! The event loop: what happens next, and to whom.

mod changes;
mod fast_path;
mod forwarding;
mod hosts;
mod media;
mod sampling;
mod spending;
pub(crate) mod stimuli;
mod timers;

use self::fast_path::early::Early;
use self::fast_path::instant::InstantHost;
use self::fast_path::lanes::Lanes;
use self::stimuli::{DUE, Observer, Stimuli};
use self::timers::Armed;
use crate::base::budget::Budget;
use crate::base::count::Count;
use crate::base::error::Refused;
use crate::base::event::{Event, EventQueue};
use crate::base::ring::Ring;
use crate::base::units::Time;
use crate::endpoint::flow::Flow;
use crate::endpoint::probe::ProbeState;
use crate::network::graph::Graph;
use crate::network::instant::InstantHops;
use crate::network::interface::Interface;
use crate::network::machine::Machine;
use crate::network::tunnel::Tunnels;
use crate::packet::Packet;
use crate::packet::charge::Charges;
use crate::qdisc::Queue;
use crate::record::series::{Columns, FlowMetric, Metric, ProbeMetric, QueueMetric, Recorder, Series};
use crate::record::trace::Trace;
use bakeoff_document::run::Run;

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
    /// Where packets get in no time.
    pub hops: InstantHops,
    /// Flows.
    pub flows: Vec<Flow>,
    /// Probes; their traffic index follows the flows'.
    pub probes: Vec<ProbeState>,
    /// Tunnels.
    pub tunnels: Tunnels,
    /// What hosts' queues give back.
    pub charges: Charges,
    /// Of each stimulus the number of its flow.
    pub stimulated: Vec<usize>,
}

/// A simulation.
pub struct Sim {
    /// The document.
    pub run: Run,
    /// The graph.
    pub graph: Graph,
    /// Interfaces, two per link.
    pub interfaces: Vec<Interface>,
    hops: InstantHops,
    lanes: Lanes,
    early: Early,
    /// By interface: the host at the far end of its wire, if packets may be delivered there in the same instant.
    instant_hosts: Vec<Option<InstantHost>>,
    /// Flows.
    pub flows: Vec<Flow>,
    /// Probes; their traffic index follows the flows'.
    pub probes: Vec<ProbeState>,
    /// Tunnels.
    pub tunnels: Tunnels,
    /// What hosts' queues give back.
    pub(crate) charges: Charges,
    /// What looks at senders, if the run asks for that.
    pub(crate) observer: Option<Box<Observer>>,
    /// Whether what hosts send goes through tunnels, or may have something done to it.
    out_is_special: bool,
    /// What it may cost.
    pub budget: Budget,
    /// Whether the caller wants it to end.
    pub interrupted: Box<dyn Fn() -> bool + Send>,
    now: Time,
    end: Time,
    window: [Time; 2],
    pub(crate) events: EventQueue,
    /// By node: when it does something. Empty if all are ideal.
    machines: Vec<Option<Machine>>,
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
    /// By interface, then by queue: the series of the delay in each of its parts (DualPI2's L and C queue).
    part_series: Vec<Vec<Vec<u32>>>,
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
        let Parts { graph, interfaces, hops, flows, probes, tunnels, charges, stimulated } = parts;
        let window = run.window_s.map(Time::from_secs_f64);
        let end = Time::from_secs_f64(run.duration_s);
        let n = flows.len();
        let mut machines: Vec<_> = run.nodes.iter().map(|node| Machine::new(node, run.seed)).collect();
        if machines.iter().all(Option::is_none) {
            machines.clear();
        }
        let names: Vec<String> = flows.iter().map(|f| f.spec.name.clone()).collect();
        let trace = (!run.trace.is_empty()).then(|| Trace::new(&names));
        let stimuli = Stimuli::new(&run.when, &stimulated);
        let out_is_special = !tunnels.is_empty() || !stimuli.is_empty();
        let observes = trace.is_some() || !stimuli.is_empty();
        Sim {
            observer: observes.then(|| Box::new(Observer::new(trace, stimuli, n))),
            out_is_special,
            run,
            lanes: Lanes::none(interfaces.len(), graph.names.len()),
            early: Early::default(),
            instant_hosts: Vec::new(),
            graph,
            interfaces,
            hops,
            flows,
            probes,
            tunnels,
            charges,
            budget: Budget::default(),
            interrupted: Box::new(|| false),
            now: Time::ZERO,
            end,
            window,
            events: EventQueue::default(),
            machines,
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
            part_series: Vec::new(),
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
    /// A change that turns out impossible, a budget that is spent, and an interrupt.
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
            if self.budget.exact
                && let Some((at, event)) = awaited.take()
            {
                self.events.push(at, event);
            }
            let mut at_once = 0;
            while let Some(&(interface, mut packet)) = self.arrivals.front() {
                self.arrivals.drop_front();
                self.arrive(interface, &mut packet);
                // On a path that takes no time, one packet leads to the next for ever.
                at_once += 1;
                if at_once == spending::EVERY {
                    self.burst += std::mem::take(&mut at_once);
                    self.check_budget()?;
                }
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
                marks.then(|| recorder.register(QueueMetric::KIND, name, ["sce_marks"]))
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
                    let parts = leaf.take_parts();
                    found.push(
                        parts
                            .iter()
                            .map(|&(metric, _)| recorder.register(QueueMetric::KIND, &name, [metric]))
                            .collect(),
                    );
                });
            }
            self.part_series.push(found);
        }
        self.await_sample();
        for (i, change) in self.run.changes.iter().enumerate() {
            self.events.push(Time::from_secs_f64(change.at_s), Event::Change(i as u16));
        }
        for (i, flow) in self.flows.iter().enumerate() {
            let at = self.fires(flow.nodes[0], Time::from_secs_f64(flow.spec.start_s));
            self.events.push(at, Event::Source(i as u16));
        }
        self.find_fast_paths();
        for (i, probe) in self.probes.iter().enumerate() {
            let at = self.fires(probe.source(), Time::from_secs_f64(probe.spec.start_s));
            self.events.push(at, Event::Probe(i as u16));
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
            Event::Receive(i) => self.receive(i),
            Event::Probe(p) => {
                let probe = &mut self.probes[usize::from(p)];
                let next = probe.ask(self.now, &mut self.out);
                let node = probe.source();
                if let Some(next) = next {
                    self.events.push(self.fires(node, next).max(self.now), Event::Probe(p));
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
                self.close_horizon();
                if i == DUE {
                    self.do_stimuli()?;
                } else {
                    self.change(usize::from(i))?;
                }
                self.set_horizon();
            }
        }
        Ok(None)
    }

    fn await_sample(&mut self) {
        let at = self.now + Time::from_secs_f64(self.run.sample_interval_s);
        self.events.push(at, Event::Sample);
        self.early.sample = at;
        self.set_horizon();
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
            let held_back = interface.card.iter().flat_map(|card| card.waiting.iter());
            for packet in interface.wire.in_flight.iter().map(|(_, packet)| packet).chain(held_back) {
                c.queued.add(packet.len);
            }
        }
        if let Some(observer) = &self.observer {
            let held = observer.stimuli.kept();
            c.queued.packets += held.packets;
            c.queued.bytes += held.bytes;
        }
        c
    }

    /// Ends recording and gives the series.
    ///
    /// # Errors
    /// There is no memory.
    pub fn take_series(&mut self) -> Result<Series, Refused> {
        for (p, probe) in self.probes.iter().enumerate() {
            let series = self.probe_series[p].of(ProbeMetric::Lost);
            for at in probe.lost(self.now) {
                self.recorder.push(at, series, 1.0);
            }
        }
        for flow in &mut self.flows {
            for (metric, rows) in flow.happenings(self.now) {
                let series = self.recorder.register("flow", &flow.spec.name, [metric]);
                for (at, value) in rows {
                    self.recorder.push(at, series, value);
                }
            }
        }
        std::mem::take(&mut self.recorder).finish().map_err(|error| self.no_memory(&error))
    }

    /// Internals of congestion controls, if the run asks for them.
    pub(crate) fn trace(&self) -> Option<&Trace> {
        self.observer.as_ref()?.trace.as_ref()
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
