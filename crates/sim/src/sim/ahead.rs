//! Hosts that only receive: what arrives there is handled as soon as it is known when it arrives.
//!
//! Such a host does nothing but answer what comes over its one cable, and its answers leave by a device that has packets
//! from nowhere else. Nobody looks at it but samples, timed changes and the end of the run. So the time of the loop need
//! not come to an arrival: the host is told of it ahead of time, up to the next time at which somebody looks, or at which
//! a timer of one of its receivers is due. docs/performance.md shows that this changes nothing.

use super::Sim;
use crate::base::units::Time;
use crate::endpoint::flow::{Application, Flow};
use crate::network::interface::Interface;
use crate::packet::{Flags, Packet};

/// A host with more receivers is not told of anything ahead of time, or asking for all their timers would cost more.
const MOST_RECEIVERS: usize = 16;

/// What hosts may be told ahead of time.
#[derive(Default)]
pub(super) struct Ahead {
    /// By interface: the host at the far end of its wire, if that only receives.
    hosts: Vec<Option<u16>>,
    /// By node: the flows that it receives.
    receivers: Vec<Vec<u16>>,
    /// By node: none of its receivers' timers is due before.
    quiet: Vec<Time>,
    /// When somebody looks at receivers next, or the run ends.
    until: Time,
    /// When the next sample is taken.
    pub(super) sample: Time,
}

impl Ahead {
    /// A timer of a receiver on `node` is due at `at`.
    #[inline]
    pub(super) fn note_timer(&mut self, node: u16, at: Time) {
        if let Some(quiet) = self.quiet.get_mut(usize::from(node)) {
            *quiet = at.min(*quiet);
        }
    }

    /// The host that may be told now of a packet that arrives at the far end of wire `i` at `at`, if no timer is due
    /// there before ([`Sim::is_quiet`]).
    #[inline]
    pub(super) fn may_tell(&self, i: u16, at: Time, packet: &Packet) -> Option<u16> {
        let node = (*self.hosts.get(usize::from(i))?)?;
        let is_data = packet.payload > 0 && !packet.flags.has(Flags::SYN);
        (is_data && at < self.until).then_some(node)
    }
}

impl Sim {
    /// Finds the hosts that only receive.
    pub(super) fn find_receiving_hosts(&mut self) {
        let nodes = self.graph.names.len();
        let receivers = |node: u16| {
            let here = self.flows.iter().enumerate().filter(|(_, flow)| flow.nodes.contains(&node));
            here.map(|(f, _)| f as u16).collect::<Vec<_>>()
        };
        self.ahead.receivers = (0..nodes).map(|node| receivers(node as u16)).collect();
        self.ahead.quiet = vec![Time::NEVER; nodes];
        let only_receives = |i: &Interface, back: &Interface, node: u16| {
            let receivers = &self.ahead.receivers[usize::from(node)];
            let bulk =
                |flow: &Flow| matches!(flow.application, Application::Bulk(_)) && flow.nodes[1] == node;
            i.plain
                && !i.changes
                && back.host
                && !back.inspects
                && !back.changes
                && back.device.is_some()
                && self.tunnels.is_empty()
                && self.graph.node_of.iter().filter(|of| **of == node).count() == 1
                && self.probes.iter().all(|probe| !probe.nodes().contains(&node))
                && receivers.len() <= MOST_RECEIVERS
                && receivers.iter().all(|f| bulk(&self.flows[usize::from(*f)]))
        };
        let host = |i: usize| {
            let node = self.graph.node_of[i ^ 1];
            only_receives(&self.interfaces[i], &self.interfaces[i ^ 1], node).then_some(node)
        };
        self.ahead.hosts = (0..self.interfaces.len()).map(host).collect();
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

    /// Whether no timer of a receiver on `node` is due at `at` or before.
    #[inline]
    pub(super) fn is_quiet(&mut self, node: u16, at: Time) -> bool {
        at < self.ahead.quiet[usize::from(node)] || self.ask_timers(node) > at
    }

    /// When the first timer of a receiver on `node` is due: many were stopped since they were noted.
    #[inline(never)]
    fn ask_timers(&mut self, node: u16) -> Time {
        let receivers = self.ahead.receivers[usize::from(node)].iter();
        let due = receivers.filter_map(|f| self.flows[usize::from(*f)].receiver_deadline()).min();
        let due = due.unwrap_or(Time::NEVER);
        self.ahead.quiet[usize::from(node)] = due;
        due
    }

    /// Tells `node` of a packet that arrives at `at`.
    #[inline]
    pub(super) fn deliver_ahead(&mut self, node: u16, at: Time, packet: &Packet) {
        let now = std::mem::replace(&mut self.now, at);
        self.handled += 1;
        self.deliver(node, packet);
        self.now = now;
    }
}
