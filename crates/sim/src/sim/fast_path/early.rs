//! Early delivery: a host with only bulk TCP flows processes a packet as soon as its arrival time is known. See [`super`].

use crate::base::units::Time;
use crate::endpoint::flow::{Application, Flow};
use crate::network::interface::Interface;
use crate::packet::{Flags, Packet};
use crate::sim::Sim;

/// Nothing is delivered early to a host with more flows: the check of all their timers would cost more than it saves.
const MOST_FLOWS: usize = 16;

/// How many early deliveries may be nested: a packet and a reply to it.
pub(in crate::sim) const MOST_NESTED: u32 = 2;

/// What may be delivered early.
#[derive(Default)]
pub(in crate::sim) struct Early {
    /// By interface: the host at the far end of its wire, if packets may be delivered early there.
    hosts: Vec<Option<u16>>,
    /// By node: the flows that it sends or receives.
    flows: Vec<Vec<u16>>,
    nodes: Vec<Node>,
    /// By flow: when its application wants to be called.
    sources: Vec<Time>,
    /// When something reads hosts next, or the run ends: nothing is delivered early from then on.
    horizon: Time,
    /// When the next sample is taken.
    pub(in crate::sim) sample: Time,
    /// How many early deliveries are under way, nested.
    pub(in crate::sim) nested: u32,
}

/// What decides whether a packet may be delivered early to a node.
#[derive(Clone, Copy, Default)]
struct Node {
    /// None of its timers is due before.
    quiet_until: Time,
    /// It is sending a burst.
    sends: bool,
}

/// What happens on a host by itself. Within a nanosecond in this order, which is that of their events.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Sender,
    Receiver,
    Source,
}

impl Early {
    /// A timer on `node` is due at `at`, or later.
    #[inline]
    pub(in crate::sim) fn note_timer(&mut self, node: u16, at: Time) {
        if let Some(node) = self.nodes.get_mut(usize::from(node)) {
            node.quiet_until = at.min(node.quiet_until);
        }
    }

    /// The host to which a packet that arrives at the far end of wire `i` at `at` may be delivered now, once that host is
    /// ready ([`Sim::is_ready`]).
    #[inline]
    pub(in crate::sim) fn may_deliver(&self, i: u16, at: Time, packet: &Packet) -> Option<u16> {
        let node = (*self.hosts.get(usize::from(i))?)?;
        (at < self.horizon && !packet.flags.has(Flags::SYN) && !self.nodes[usize::from(node)].sends)
            .then_some(node)
    }

    /// `node` begins to send a burst, or ends it.
    #[inline]
    pub(in crate::sim) fn sends(&mut self, node: u16, begins: bool) {
        if let Some(node) = self.nodes.get_mut(usize::from(node)) {
            node.sends = begins;
        }
    }
}

impl Sim {
    /// Finds the hosts to which packets may be delivered early.
    pub(super) fn find_early_hosts(&mut self) {
        let nodes = self.graph.names.len();
        let flows = |node: u16| {
            let here = self.flows.iter().enumerate().filter(|(_, flow)| flow.nodes.contains(&node));
            here.map(|(f, _)| f as u16).collect::<Vec<_>>()
        };
        self.early.flows = (0..nodes).map(|node| flows(node as u16)).collect();
        self.early.nodes = vec![Node::default(); nodes];
        self.early.sources = self.flows.iter().map(|flow| Time::from_secs_f64(flow.spec.start_s)).collect();
        // A trace is in the order of handling, and a module from outside may read anything.
        let only_answers = |flow: &Flow, node: u16| {
            let sends = flow.nodes[0] == node;
            matches!(flow.application, Application::Bulk(_))
                && !(sends && (self.observer.is_some() || flow.is_controlled_from_outside()))
        };
        let is_early_host = |i: &Interface, back: &Interface, node: u16| {
            let flows = &self.early.flows[usize::from(node)];
            i.shortcuts.plain
                && !i.changes
                && back.host
                && back.shortcuts.arrives_untouched
                && !back.changes
                && back.shortcuts.device.is_some()
                && self.tunnels.is_empty()
                && self.graph.node_of.iter().filter(|of| **of == node).count() == 1
                && self.probes.iter().all(|probe| !probe.nodes().contains(&node))
                && flows.len() <= MOST_FLOWS
                && flows.iter().all(|f| only_answers(&self.flows[usize::from(*f)], node))
        };
        let host = |i: usize| {
            let node = self.graph.node_of[i ^ 1];
            is_early_host(&self.interfaces[i], &self.interfaces[i ^ 1], node).then_some(node)
        };
        // A stimulus may do anything to a host whenever a sender handles an ACK.
        let none = !self.run.when.is_empty();
        self.early.hosts = (0..self.interfaces.len()).map(|i| host(i).filter(|_| !none)).collect();
        for (i, interface) in self.interfaces.iter_mut().enumerate() {
            let early = self.early.hosts[i].is_some();
            interface.shortcuts.ends_lane =
                interface.shortcuts.device.is_some() && !early && self.lanes.end_behind(i as u16);
        }
    }

    /// A timed change may touch anything: until it is over, nothing is delivered early.
    pub(in crate::sim) fn close_horizon(&mut self) {
        self.early.horizon = self.now;
    }

    /// Works out until when packets may be delivered early.
    pub(in crate::sim) fn set_horizon(&mut self) {
        let changes = self.run.changes.iter().map(|change| Time::from_secs_f64(change.at_s));
        let change = changes.filter(|at| *at > self.now).min().unwrap_or(Time::NEVER);
        self.early.horizon = change.min(self.early.sample).min(self.end);
    }

    /// The application of flow `f` wants to be called at `next`, if at all.
    pub(in crate::sim) fn note_source(&mut self, f: u16, next: Option<Time>) {
        let at = next.unwrap_or(Time::NEVER);
        if let Some(source) = self.early.sources.get_mut(usize::from(f)) {
            *source = at;
        }
        self.early.note_timer(self.flows[usize::from(f)].nodes[0], at);
    }

    /// Whether all that happens on `node` until `at` has happened: its timers that are due by then run now.
    #[inline]
    pub(in crate::sim) fn is_ready(&mut self, node: u16, at: Time) -> bool {
        at < self.early.nodes[usize::from(node)].quiet_until || self.run_timers(node, at)
    }

    /// Runs the timers on `node` that are due until `at`, each at its own time; false if an application comes before that.
    #[inline(never)]
    fn run_timers(&mut self, node: u16, at: Time) -> bool {
        loop {
            let (due, timer, f) = self.first_timer(node).unwrap_or((Time::NEVER, Timer::Source, 0));
            // Many timers were stopped, or set to a later time, since they were noted.
            self.early.nodes[usize::from(node)].quiet_until = due;
            if due > at || timer == Timer::Source {
                return due > at;
            }
            let now = std::mem::replace(&mut self.now, due);
            self.handled += 1;
            self.early.nested += 1;
            match timer {
                Timer::Sender => self.run_sender_timer(f),
                _ => self.run_receiver_timer(f),
            }
            self.early.nested -= 1;
            self.now = now;
        }
    }

    /// What happens next on `node` by itself: when, and to which flow.
    fn first_timer(&self, node: u16) -> Option<(Time, Timer, u16)> {
        let of = |f: u16| {
            let (flow, source) = (&self.flows[usize::from(f)], self.early.sources[usize::from(f)]);
            let at = |end: usize, due: Option<Time>| if flow.nodes[end] == node { due } else { None };
            let timers = [
                (at(0, flow.sender_deadline()), Timer::Sender),
                (at(1, flow.receiver_deadline()), Timer::Receiver),
                (at(0, Some(source)), Timer::Source),
            ];
            timers.into_iter().filter_map(|(due, timer)| Some((due?, timer, f))).min()
        };
        self.early.flows[usize::from(node)].iter().filter_map(|f| of(*f)).min()
    }

    /// Delivers a packet to `node` that arrives at `at`.
    #[inline]
    pub(in crate::sim) fn deliver_early(&mut self, node: u16, at: Time, packet: &Packet) {
        let now = std::mem::replace(&mut self.now, at);
        self.handled += 1;
        self.early.nested += 1;
        self.hand_over(node, packet);
        self.early.nested -= 1;
        self.now = now;
    }
}
