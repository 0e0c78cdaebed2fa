//! Timers of endpoints, and the times at which applications write: which events are pending for them, and what is done
//! when one comes.

use super::Sim;
use crate::base::event::Event;
use crate::base::units::Time;

/// When events of a sender are pending. Each is set before those that were pending already.
#[derive(Clone)]
pub(super) struct Armed {
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

impl Sim {
    /// When a timer on `node` fires that is set to `at`.
    #[inline]
    pub(super) fn fires(&self, node: u16, at: Time) -> Time {
        match self.machines.get(usize::from(node)) {
            Some(Some(machine)) => machine.fires(at),
            _ => at,
        }
    }

    pub(super) fn on_source_event(&mut self, f: u16) {
        let flow = &mut self.flows[usize::from(f)];
        let next = flow.on_source(self.now, &mut self.out);
        let node = flow.nodes[0];
        let burst = self.out.len() as u64;
        self.burst += burst;
        self.look_at = self.look_at.saturating_sub(burst);
        self.note_source(f, next);
        if let Some(next) = next {
            // A late one may have missed the next.
            self.events.push(self.fires(node, next).max(self.now), Event::Source(f));
        }
        self.emit_all(node);
        self.arm_sender(f);
    }

    pub(super) fn on_sender_event(&mut self, f: u16) {
        let i = usize::from(f);
        self.sender_armed[i].come();
        // Armed for a deadline that has moved since: the event only checks.
        if self.flows[i].sender_deadline().is_some_and(|due| due <= self.now) {
            self.run_sender_timer(f);
        } else {
            self.arm_sender(f);
        }
    }

    /// Runs the timers of the sender of flow `f`, if its host comes to them by now.
    #[inline(never)]
    pub(super) fn run_due_sender_timer(&mut self, f: u16) {
        let flow = &self.flows[usize::from(f)];
        if flow.sender_deadline().is_some_and(|due| self.fires(flow.nodes[0], due) <= self.now) {
            self.run_sender_timer(f);
        }
    }

    /// Runs the timers that are due of the sender of flow `f`.
    pub(super) fn run_sender_timer(&mut self, f: u16) {
        let i = usize::from(f);
        let flow = &mut self.flows[i];
        flow.on_sender_timer(self.now, &mut self.out);
        let node = flow.nodes[0];
        if self.observer.is_some() {
            self.observe(i, false);
        }
        self.emit_all(node);
        self.arm_sender(f);
    }

    pub(super) fn on_receiver_event(&mut self, f: u16) {
        let armed = &mut self.receiver_armed[usize::from(f)];
        if *armed == self.now {
            *armed = Time::NEVER;
            self.run_receiver_timer(f);
        }
    }

    /// Runs the timers that are due of the receiver of flow `f`.
    pub(super) fn run_receiver_timer(&mut self, f: u16) {
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
        self.early.note_timer(flow.nodes[0], waits_until);
        if waits_until < self.sender_armed[i].earliest {
            self.arm_sender_earlier(f);
        }
    }

    /// An event of the sender of flow `f` may have to be pending before those that are.
    #[inline(never)]
    fn arm_sender_earlier(&mut self, f: u16) {
        let i = usize::from(f);
        let node = self.flows[i].nodes[0];
        if let Some(at) = self.flows[i].sender_deadline().map(|at| self.fires(node, at))
            && at < self.sender_armed[i].earliest
        {
            let at = at.max(self.now);
            self.sender_armed[i].add(at);
            self.events.push(at, Event::Sender(f));
        }
    }

    #[expect(clippy::inline_always, reason = "the end of each packet's way")]
    #[inline(always)]
    pub(super) fn arm_receiver(&mut self, f: u16, node: u16, deadline: Option<Time>) {
        let Some(at) = deadline else { return };
        self.early.note_timer(node, at);
        let (i, at) = (usize::from(f), self.fires(node, at));
        if at < self.receiver_armed[i] {
            let at = at.max(self.now);
            self.receiver_armed[i] = at;
            self.events.push(at, Event::Receiver(f));
        }
    }
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
