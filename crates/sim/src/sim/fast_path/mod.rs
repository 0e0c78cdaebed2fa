//! Shortcuts of the event loop. Each saves events or copies and changes no result.
//!
//! With [`Budget::exact`](crate::Budget) none is taken: every packet has an event for each arrival and each departure.
//! `tests/fast_path.rs` compares random networks both ways, and `make exact` all runs of the laboratories.
//!
//! | shortcut | predicate | saves |
//! |---|---|---|
//! | device | [`device`] | the queue and the departure event of a fifo before a plain wire |
//! | lane | [`lanes`] | the arrival events between devices in a row |
//! | early delivery | [`early`] | the arrival event at a host |
//! | delay line | [`delay_line`] | the counters and clocks of an ingress queue that only delays |
//! | instant entry, instant delivery | [`instant`] | the second copy of a packet whose cable takes no time |
//! | untouched arrival, direct enqueue, plain wire | [`arrives_untouched`], [`enters_queue`], [`plain`] | checks per packet, and a copy |
//! | next event | `Sim::is_next` | pushing and popping an event that is the next one anyway |
//!
//! [`Sim::find_fast_paths`] evaluates the predicates once, before the run; a timed change evaluates those of its
//! interface again. Interfaces that a timed change names are excluded wherever the change could be noticed. A host that is
//! not ideal (`network/machine.rs`) takes no shortcut: its interfaces are no devices, and what arrives is not untouched.
//!
//! All proofs compare the run with the shortcut to the same run step by step. They share one fact: events of one
//! nanosecond are handled in the order of their kind and then of their index, not in the order of scheduling
//! ([`crate::base::event`]).
//!
//! # Devices and lanes
//!
//! A **device** is an interface with a fifo before a wire that has a rate and a delay and nothing else. Its queue is not
//! measured, its packets are not captured, and no timed change names it. Each packet begins to leave when it arrives or
//! when the previous one has left, whichever is later, so its departure is computed on arrival.
//!
//! A **lane** is a row of devices each of which is fed by one interface only. `Sim::travel` takes a packet through a lane
//! in one step and schedules one arrival, at the end of the lane. A lane ends at a host, at a queue that is more than a
//! fifo, where several interfaces feed one, at media, lossy wires, wires that take no time, wires that carry several
//! segments in one buffer, and at captures, rules and timed changes. At the last device of a lane before a host without
//! early delivery, packets go straight onto the wire (`ends_lane`).
//!
//! 1. *Times.* All packets of a device arrive by one wire, which keeps their order. Both ways compute the same departures
//!    in the same order.
//! 2. *Drops.* A device drops when as many packets wait as its limit allows. A packet waits until its transmission
//!    begins. The times at which transmissions begin are kept, so the number that waits at any arrival is known.
//! 3. *Order.* A packet takes at least a nanosecond through each device. The event at the end of a lane is therefore
//!    pending before its nanosecond begins, both ways. The events in between touch only the lane.
//! 4. *Counts.* A device's counters are read only at the end of the run. A packet whose next step lies beyond the end stays
//!    where it is at the end: in a queue, or on a wire.
//! 5. *Senders.* A packet in a host's queue is charged to its socket until its transmission begins. The sender learns that
//!    time in advance and uncharges the packet at its first activity from then on (`tcp/small_queue.rs`); step by step it
//!    is uncharged at that time.
//!
//! # Early delivery
//!
//! A host with only bulk TCP flows is deterministic in its inputs: it answers packets from its one cable and runs timers.
//! The arrival time of a packet is known when it enters the last lane. The host processes the packet immediately, ahead of
//! simulated time: its timers that are due by then run first, each with the clock at its own time; the clock is set to the
//! arrival, the packet is delivered, the answer is sent, and the clock is set back.
//!
//! The host must have one interface, which is a device, and at most 16 flows, all of them bulk TCP. Its cable must have no
//! tunnel, capture, rule or timed change. A sending host must have no trace and no congestion control from outside the
//! crate, and the run no stimulus. SYNs are not delivered early. Nothing is delivered early at or after the next sample, timed change or end of
//! the run (the horizon), or at or after the time at which an application on the host writes or stops. Nothing is
//! delivered early while the host sends a burst: a reply to its first packet must not be processed before its last has
//! left. Replies may be delivered early too, but only one level deep, or two directly connected hosts would recurse for
//! ever. A packet that may not be delivered early waits on the wire, and so do all behind it until the wire is empty or the
//! first of them arrives.
//!
//! 1. *Inputs.* A host changes when a packet arrives, a timer fires or an application writes. Packets arrive by one wire
//!    and are delivered in their order. A timer that is due before a packet, or in the same nanosecond, runs first both
//!    ways. Timers run in the order of their times, and within a nanosecond in the order of their events. The event of a
//!    timer that ran early finds nothing to do.
//! 2. *Later timers.* A delivery at a time sets timers for later times only. So the event loop, which is behind, finds none
//!    of the host's timers due earlier than the host's own time.
//! 3. *Outputs.* All output of a host enters the device behind it. That device is fed by this host only, in the same order
//!    and at the same times. Whatever is behind the device is an event at a later time.
//! 4. *Observers.* Only samples, timed changes and the end of the run read a host, and nothing is delivered beyond the
//!    next of them.
//!
//! # Delay lines
//!
//! An ingress queue may be a netem with one constant delay, or an htb whose classes all stand at the root, each with such a
//! netem. It releases a packet when its delay is over and its class may send. Both times are known on arrival, so the
//! packet waits in one ring with its departure time, and its class pays in advance (`qdisc/delays.rs`). Queues of hosts
//! are excluded, because they give memory back to sockets, and so are interfaces with a capture of what arrives and
//! ingress queues that a timed change names.
//!
//! 1. *Times.* Classes at the root do not lend to each other. A class sends its packets in order, each when its delay is
//!    over and its predecessors are paid for. Later events do not change that.
//! 2. *Turns.* Packets of several classes that leave in the same nanosecond take turns by priority and quantum. The turns
//!    are computed on departure, from the same state as in the queue: which classes have packets, and which may send.
//! 3. *Limit.* A packet is in the ring until it leaves. The next one finds as many packets as it would find in the netem.
//! 4. *Counts.* The counters of such a queue are read only at the end of the run. They are settled then, including the
//!    packets that still wait. Packets that would leave after the end are not paid for.
//!
//! # Instant entry and instant delivery
//!
//! A packet on a cable that takes no time is handled after everything else that happens at this instant (`arrivals`).
//!
//! *Instant entry*: if it enters a delay line, it enters immediately. The delay line releases nothing at this instant,
//! neither before nor after, so no other event of the instant can observe the difference. The shortcut is taken only if no
//! other packet waits in `arrivals`, which keeps the order of entry.
//!
//! *Instant delivery*: if the packet's destination is a host all of whose output enters one delay line, the host processes
//! it immediately. Its output waits for a later instant, and nothing else at this instant reads or writes the host. The
//! shortcut is taken only if no other packet waits in `arrivals` and the delay line releases nothing at this instant.
//!
//! # Next event
//!
//! An interface that knows when it has to be served again, and a wire that knows when its next packet arrives, go on
//! without an event if that time is before every pending event ([`Sim::is_next`]). The event would have been popped next.
//! For the same reason the event that a handler waits for is pushed only if another one precedes it
//! (`EventQueue::pop_with`).

pub(super) mod early;
pub(super) mod instant;
pub(super) mod lanes;

use super::Sim;
use crate::base::units::Time;
use crate::endpoint::probe::ProbeState;
use crate::network::device::Device;
use crate::network::interface::Interface;
use crate::qdisc::{Delays, Queue};

use self::lanes::Lanes;

impl Sim {
    /// Decides which shortcuts this run may take: to be called once all is in place.
    pub(super) fn find_fast_paths(&mut self) {
        if self.budget.exact {
            return;
        }
        self.interfaces.iter_mut().for_each(compile);
        self.lanes = Lanes::new(&self.graph, &self.interfaces, &self.traffic());
        self.find_early_hosts();
        self.find_instant_hosts();
    }

    /// The same for interface `i` alone, after a timed change of it.
    pub(super) fn find_fast_paths_at(&mut self, i: usize) {
        if !self.budget.exact {
            compile(&mut self.interfaces[i]);
        }
    }

    /// From and to which nodes flows and probes go.
    pub(super) fn traffic(&self) -> Vec<[u16; 2]> {
        self.flows.iter().map(|flow| flow.nodes).chain(self.probes.iter().map(ProbeState::nodes)).collect()
    }

    /// Whether what happens at `at` is what happens next, so that it needs no event.
    #[inline]
    pub(super) fn is_next(&self, at: Time) -> bool {
        at < self.events.earliest() && at <= self.end && self.arrivals.is_empty() && !self.budget.exact
    }
}

fn compile(interface: &mut Interface) {
    interface.shortcuts.arrives_untouched = arrives_untouched(interface);
    if interface.shortcuts.delays.is_none() {
        interface.shortcuts.delays = delay_line(interface).map(Box::new);
    }
    interface.shortcuts.plain = plain(interface);
    interface.shortcuts.device = device(interface);
    interface.shortcuts.enters_queue = enters_queue(interface);
}

/// Whether nothing happens to what arrives at an interface.
fn arrives_untouched(interface: &Interface) -> bool {
    interface.card.is_none()
        && interface.captures[1].is_none()
        && interface.ingress.is_none()
        && interface.rules.is_empty()
}

/// Whether rate and delay are all that happens to what leaves the queue of an interface.
fn plain(interface: &Interface) -> bool {
    interface.captures[0].is_none() && interface.wire.is_plain()
}

/// The device that an interface is.
fn device(interface: &Interface) -> Option<Device> {
    if !plain(interface) || interface.changes || interface.card.is_some() || !interface.wire.takes_time() {
        return None;
    }
    let limit = interface.egress.as_ref().map_or(Some(u64::MAX), Queue::tail_drop)?;
    let wire = &interface.wire;
    (limit > 0).then(|| Device::new(usize::try_from(limit).unwrap_or(usize::MAX), wire.rate, wire.delay))
}

/// Whether all that leaves an interface enters its queue first, frame or buffer.
fn enters_queue(interface: &Interface) -> bool {
    interface.shortcuts.device.is_none() && interface.egress.is_some() && interface.wire.medium.is_none()
}

/// The delay line that the ingress queue of an interface is.
fn delay_line(interface: &Interface) -> Option<Delays> {
    if interface.host || interface.ingress_changes || interface.captures[1].is_some() {
        return None;
    }
    interface.ingress.as_ref().and_then(Queue::delays)
}
