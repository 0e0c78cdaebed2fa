//! Hosts that are told ahead of time: what arrives there is handled as soon as it is known when it arrives.
//!
//! Such a host has bulk TCP flows, and one cable: it answers what comes over that, runs its timers, and what it gives leaves
//! by a device that has packets from nowhere else. Nobody looks at it but samples, timed changes and the end of the run.
//! So the time of the loop need not come to an arrival: the host is told of it ahead of time, after its timers that are due
//! before, up to the next time at which somebody looks, or at which an application writes. docs/performance.md shows that
//! this changes nothing.

use super::Sim;
use crate::base::units::Time;
use crate::endpoint::flow::{Application, Flow};
use crate::endpoint::probe::ProbeState;
use crate::network::interface::Interface;
use crate::packet::{Flags, Packet};

/// A host with more flows is not told of anything ahead of time, or asking for all their timers would cost more.
const MOST_FLOWS: usize = 16;

/// Of the answers to a packet that a host is told of, hosts are told at once too, but no deeper: without a queue between
/// them, two hosts could go on up to the next sample.
pub(super) const DEEPEST: u32 = 2;

/// What hosts may be told ahead of time.
#[derive(Default)]
pub(super) struct Ahead {
    /// By interface: the host at the far end of its wire, if that may be told.
    hosts: Vec<Option<u16>>,
    /// By interface: the host at the far end of its wire, if that may be told at once of what arrives in no time; see
    /// [`Sim::find_hosts_to_tell`].
    near: Vec<Option<Near>>,
    /// By node: the flows that it sends or receives.
    flows: Vec<Vec<u16>>,
    nodes: Vec<Node>,
    /// By flow: when its application wants to be called.
    sources: Vec<Time>,
    /// When somebody looks at hosts next, or the run ends.
    until: Time,
    /// When the next sample is taken.
    pub(super) sample: Time,
    /// How many hosts are being told, one because of the other.
    pub(super) told: u32,
}

/// A host that may be told at once of what arrives in no time.
#[derive(Clone, Copy)]
pub(super) struct Near {
    pub(super) node: u16,
    /// The interface in whose ingress queue, which only delays, all waits that the host answers.
    pub(super) delayed_at: u16,
}

/// What decides whether a node may be told now.
#[derive(Clone, Copy, Default)]
struct Node {
    /// None of its timers is due before.
    quiet: Time,
    /// It is sending what it gave, and must not be told of an answer before the rest has left.
    sends: bool,
}

/// What happens on a host by itself. Of one nanosecond in this order, which is that of their events.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Sender,
    Receiver,
    Source,
}

impl Ahead {
    /// A timer on `node` is due at `at`, or later.
    #[inline]
    pub(super) fn note_timer(&mut self, node: u16, at: Time) {
        if let Some(node) = self.nodes.get_mut(usize::from(node)) {
            node.quiet = at.min(node.quiet);
        }
    }

    /// The host that may be told now of a packet that arrives at the far end of wire `i` at `at`, once it is ready
    /// ([`Sim::is_ready`]).
    #[inline]
    pub(super) fn may_tell(&self, i: u16, at: Time, packet: &Packet) -> Option<u16> {
        let node = (*self.hosts.get(usize::from(i))?)?;
        (at < self.until && !packet.flags.has(Flags::SYN) && !self.nodes[usize::from(node)].sends)
            .then_some(node)
    }

    /// The host that is told at once of a packet for `dst` that is at the far end of wire `i` in no time.
    #[inline]
    pub(super) fn near(&self, i: u16, dst: u16) -> Option<Near> {
        self.near.get(usize::from(i)).copied().flatten().filter(|near| near.node == dst)
    }

    /// `node` begins to send what it gave, or is done with that.
    #[inline]
    pub(super) fn sends(&mut self, node: u16, begins: bool) {
        if let Some(node) = self.nodes.get_mut(usize::from(node)) {
            node.sends = begins;
        }
    }
}

impl Sim {
    /// Finds the hosts that may be told ahead of time.
    pub(super) fn find_hosts_to_tell(&mut self) {
        let nodes = self.graph.names.len();
        let flows = |node: u16| {
            let here = self.flows.iter().enumerate().filter(|(_, flow)| flow.nodes.contains(&node));
            here.map(|(f, _)| f as u16).collect::<Vec<_>>()
        };
        self.ahead.flows = (0..nodes).map(|node| flows(node as u16)).collect();
        self.ahead.nodes = vec![Node::default(); nodes];
        self.ahead.sources = self.flows.iter().map(|flow| Time::from_secs_f64(flow.spec.start_s)).collect();
        // A trace is in the order in which things are handled, and who knows what a module from outside does.
        let only_answers = |flow: &Flow, node: u16| {
            let sends = flow.nodes[0] == node;
            matches!(flow.application, Application::Bulk(_))
                && !(sends && (self.trace.is_some() || flow.is_controlled_from_outside()))
        };
        let may_be_told = |i: &Interface, back: &Interface, node: u16| {
            let flows = &self.ahead.flows[usize::from(node)];
            i.plain
                && !i.changes
                && back.host
                && !back.inspects
                && !back.changes
                && back.device.is_some()
                && self.tunnels.is_empty()
                && self.graph.node_of.iter().filter(|of| **of == node).count() == 1
                && self.probes.iter().all(|probe| !probe.nodes().contains(&node))
                && flows.len() <= MOST_FLOWS
                && flows.iter().all(|f| only_answers(&self.flows[usize::from(*f)], node))
        };
        let host = |i: usize| {
            let node = self.graph.node_of[i ^ 1];
            may_be_told(&self.interfaces[i], &self.interfaces[i ^ 1], node).then_some(node)
        };
        self.ahead.hosts = (0..self.interfaces.len()).map(host).collect();
        // All that such a host answers waits behind its cable, which takes no time either, so that nothing else that
        // happens at the instant depends on whether it has answered yet.
        let traffic =
            self.flows.iter().map(|flow| flow.nodes).chain(self.probes.iter().map(ProbeState::nodes));
        let traffic: Vec<[u16; 2]> = traffic.flat_map(|[a, b]| [[a, b], [b, a]]).collect();
        let near = |i: usize| {
            let (back, node) = (&self.interfaces[i ^ 1], self.graph.node_of[i ^ 1]);
            let plain = back.host && !back.inspects && !back.changes && back.plain && back.egress.is_none();
            let alone = self.graph.node_of.iter().filter(|of| **of == node).count() == 1;
            let answers = traffic.iter().filter(|[from, _]| *from == node);
            let mut ends = answers.map(|[_, to]| self.lanes.at_once(i as u16 ^ 1, *to) ^ 1);
            let delayed_at = ends.next().filter(|first| ends.all(|end| end == *first))?;
            let at = &self.interfaces[usize::from(delayed_at)];
            let holds = at.delays.is_some() && !at.changes;
            (holds && plain && alone && self.tunnels.is_empty()).then_some(Near { node, delayed_at })
        };
        self.ahead.near = (0..self.interfaces.len()).map(near).collect();
        for (i, interface) in self.interfaces.iter_mut().enumerate() {
            let told = self.ahead.hosts[i].is_some();
            interface.ends_lane = interface.device.is_some() && !told && self.lanes.end_behind(i as u16);
        }
    }

    /// Timed changes may touch anything: until this one is over, nobody is told of anything ahead of time.
    pub(super) fn look_no_further(&mut self) {
        self.ahead.until = self.now;
    }

    /// Works out until when hosts may be told.
    pub(super) fn look_ahead(&mut self) {
        let changes = self.run.changes.iter().map(|change| Time::from_secs_f64(change.at_s));
        let change = changes.filter(|at| *at > self.now).min().unwrap_or(Time::NEVER);
        self.ahead.until = change.min(self.ahead.sample).min(self.end);
    }

    /// The application of flow `f` wants to be called at `next`, if at all.
    pub(super) fn note_source(&mut self, f: u16, next: Option<Time>) {
        let at = next.unwrap_or(Time::NEVER);
        self.ahead.sources[usize::from(f)] = at;
        self.ahead.note_timer(self.flows[usize::from(f)].nodes[0], at);
    }

    /// Whether all that happens on `node` until `at` has happened: its timers that are due by then run now.
    #[inline]
    pub(super) fn is_ready(&mut self, node: u16, at: Time) -> bool {
        at < self.ahead.nodes[usize::from(node)].quiet || self.run_timers(node, at)
    }

    /// Runs the timers on `node` that are due until `at`, each at its own time; false if an application comes before that.
    #[inline(never)]
    fn run_timers(&mut self, node: u16, at: Time) -> bool {
        loop {
            let (due, timer, f) = self.first_timer(node).unwrap_or((Time::NEVER, Timer::Source, 0));
            // Many were stopped, or set to a later time, since they were noted.
            self.ahead.nodes[usize::from(node)].quiet = due;
            if due > at || timer == Timer::Source {
                return due > at;
            }
            let now = std::mem::replace(&mut self.now, due);
            self.handled += 1;
            self.ahead.told += 1;
            match timer {
                Timer::Sender => self.run_sender_timer(f),
                _ => self.run_receiver_timer(f),
            }
            self.ahead.told -= 1;
            self.now = now;
        }
    }

    /// What happens next on `node` by itself: when, and to which flow.
    fn first_timer(&self, node: u16) -> Option<(Time, Timer, u16)> {
        let of = |f: u16| {
            let (flow, source) = (&self.flows[usize::from(f)], self.ahead.sources[usize::from(f)]);
            let at = |end: usize, due: Option<Time>| if flow.nodes[end] == node { due } else { None };
            let timers = [
                (at(0, flow.sender_deadline()), Timer::Sender),
                (at(1, flow.receiver_deadline()), Timer::Receiver),
                (at(0, Some(source)), Timer::Source),
            ];
            timers.into_iter().filter_map(|(due, timer)| Some((due?, timer, f))).min()
        };
        self.ahead.flows[usize::from(node)].iter().filter_map(|f| of(*f)).min()
    }

    /// Tells `node` of a packet that arrives at `at`.
    #[inline]
    pub(super) fn deliver_ahead(&mut self, node: u16, at: Time, packet: &Packet) {
        let now = std::mem::replace(&mut self.now, at);
        self.handled += 1;
        self.ahead.told += 1;
        self.hand_over(node, packet);
        self.ahead.told -= 1;
        self.now = now;
    }
}
