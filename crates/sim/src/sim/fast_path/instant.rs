//! Instant entry and instant delivery: a packet that is somewhere in no time is handled there before the rest of the
//! instant. See [`super`].

use crate::base::event::Event;
use crate::packet::Packet;
use crate::sim::Sim;

/// A host to which packets that arrive in no time may be delivered instantly.
#[derive(Clone, Copy)]
pub(in crate::sim) struct InstantHost {
    node: u16,
    /// The interface whose ingress queue is the delay line that all output of the host enters.
    delayed_at: u16,
}

impl Sim {
    /// Finds the hosts to which packets may be delivered instantly, by the interface whose wire leads there.
    pub(super) fn find_instant_hosts(&mut self) {
        let traffic: Vec<[u16; 2]> = self.traffic().into_iter().flat_map(|[a, b]| [[a, b], [b, a]]).collect();
        let host = |i: usize| {
            let (back, node) = (&self.interfaces[i ^ 1], self.graph.node_of[i ^ 1]);
            let untouched = back.shortcuts.arrives_untouched && back.shortcuts.plain && back.egress.is_none();
            let alone = self.graph.node_of.iter().filter(|of| **of == node).count() == 1;
            let replies = traffic.iter().filter(|[from, _]| *from == node);
            let mut ends = replies.map(|[_, to]| self.hops.last(i as u16 ^ 1, *to) ^ 1);
            let delayed_at = ends.next().filter(|first| ends.all(|end| end == *first))?;
            let at = &self.interfaces[usize::from(delayed_at)];
            let delays = at.shortcuts.delays.is_some() && !at.changes;
            let may = back.host && untouched && !back.changes && alone && delays && self.tunnels.is_empty();
            may.then_some(InstantHost { node, delayed_at })
        };
        self.instant_hosts = (0..self.interfaces.len()).map(host).collect();
    }

    /// A packet is at interface `i` in no time; whether it enters a delay line there that releases nothing now.
    #[inline]
    pub(in crate::sim) fn enters_delay_line(&mut self, i: u16, packet: &Packet) -> bool {
        if !self.delays_beyond_now(i) {
            return false;
        }
        let due = self.delay(i, packet);
        let interface = &mut self.interfaces[usize::from(i)];
        if due < interface.ingress_armed {
            interface.ingress_armed = due;
            self.events.push(due, Event::Ingress(i));
        }
        true
    }

    /// A packet is at the far end of wire `i` in no time, and no other is so: whether it is delivered to the host there.
    #[inline]
    pub(in crate::sim) fn delivers_instantly(&mut self, i: u16, packet: &Packet) -> bool {
        let host = self.instant_hosts.get(usize::from(i)).copied().flatten();
        let Some(host) = host.filter(|host| host.node == packet.dst) else { return false };
        let may = self.delays_beyond_now(host.delayed_at);
        if may {
            self.deliver(host.node, packet);
        }
        may
    }

    /// Whether the ingress queue of interface `i` is a delay line that releases nothing now.
    #[inline]
    fn delays_beyond_now(&self, i: u16) -> bool {
        let delays = &self.interfaces[usize::from(i)].shortcuts.delays;
        delays.as_ref().is_some_and(|delays| delays.due() > self.now)
    }
}
