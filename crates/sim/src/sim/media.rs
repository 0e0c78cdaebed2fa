//! How the loop serves the links that are more than a rate and a delay.

use super::Sim;
use crate::base::count::Count;
use crate::base::event::Event;
use crate::base::units::Time;
use crate::network::medium::{Jitter, Turn};
use crate::packet::{Flags, Packet};

impl Sim {
    /// The event that medium `i` waited for.
    #[inline(never)]
    pub(crate) fn on_link_event(&mut self, i: u16) {
        let now = self.now();
        if let Some(medium) = &mut self.interfaces[usize::from(i)].wire.medium
            && medium.armed == now
        {
            medium.armed = Time::NEVER;
            self.serve_medium(i);
        }
    }

    /// Offers medium `i` its queue. On a shared one, who sent last lets the other go first.
    #[inline(never)]
    pub(crate) fn serve_medium(&mut self, i: u16) {
        let now = self.now();
        let shared = |sim: &Sim| sim.interfaces[usize::from(i)].wire.medium.as_ref().and_then(|m| m.shared);
        if shared(self).is_some_and(|shared| shared.last && shared.free <= now) {
            self.offer(i ^ 1);
        }
        self.offer(i);
    }

    fn offer(&mut self, i: u16) {
        let now = self.now();
        let interface = &mut self.interfaces[usize::from(i)];
        let (Some(queue), Some(medium)) = (&mut interface.egress, &mut interface.wire.medium) else { return };
        let mut lost = Count::default();
        let mut sent = std::mem::take(&mut medium.sent);
        let again = match medium.shared {
            Some(shared) if shared.free > now => (queue.qlen() > 0).then_some(shared.free),
            _ => {
                let rate = interface.wire.rate;
                medium.access.serve(&mut Turn { now, rate, queue, sent: &mut sent, lost: &mut lost })
            }
        };
        if let Some(at) = again
            && at < medium.armed
        {
            let at = at.max(now);
            medium.armed = at;
            self.events.push(at, Event::Link(i));
        }
        self.lost.packets += lost.packets;
        self.lost.bytes += lost.bytes;
        if let Some((until, _)) = sent.last() {
            self.occupy(i, *until);
        }
        for (at, packet) in &sent {
            self.put_on_wire(i, *at, *packet);
        }
        sent.clear();
        if let Some(medium) = &mut self.interfaces[usize::from(i)].wire.medium {
            medium.sent = sent;
        }
    }

    /// A shared medium is taken by `i` until then.
    fn occupy(&mut self, i: u16, until: Time) {
        for end in [i, i ^ 1] {
            let Some(medium) = &mut self.interfaces[usize::from(end)].wire.medium else { return };
            let Some(shared) = &mut medium.shared else { return };
            shared.free = until + shared.turnaround;
            shared.last = end == i;
            if end != i {
                let free = shared.free;
                medium.access.defer(free);
            }
        }
    }

    fn put_on_wire(&mut self, i: u16, sent: Time, mut packet: Packet) {
        let now = self.now();
        let interface = &mut self.interfaces[usize::from(i)];
        if interface.captures[0].is_some() {
            interface.capture_leaving(&packet, now);
        }
        if interface.host && packet.flags.has(Flags::CHARGED) && self.leaves_host(&packet, now, sent) {
            self.arm_sender(packet.flow);
        }
        let interface = &mut self.interfaces[usize::from(i)];
        let wire = &mut interface.wire;
        let policer = wire.medium.as_mut().and_then(|medium| medium.policer.as_mut());
        if policer.is_some_and(|policer| !policer.admit(sent, &mut packet)) || wire.loses() {
            self.lost.add(packet.len);
            return;
        }
        let jitter = wire.medium.as_mut().and_then(|medium| medium.jitter.as_mut());
        let late = jitter.map_or(Time::ZERO, Jitter::draw);
        let at = (sent + wire.delay + late).max(wire.last_arrival);
        wire.last_arrival = at;
        self.travel(i, at, &mut packet);
    }
}
