//! Stimuli: what is done to a flow when its sender comes into a state (`when` of the resolved run), and the traces of
//! senders. Both look at a sender after each of its ACKs and retransmission timeouts.
//!
//! Packets with data of such flows are tagged where they leave ([`Flags::STIMULATED`]) and stopped, marked or held where
//! they arrive, by the time at which they were sent. All else happens as a change of the run does ([`super::changes`]).
//! A run without stimuli has one test per ACK, whether anything is observed, as it has for traces.

use std::collections::BTreeMap;

use super::Sim;
use crate::base::count::Count;
use crate::base::error::Refused;
use crate::base::event::Event;
use crate::base::units::Time;
use crate::cc::CongestionControl;
use crate::packet::{Flags, Packet};
use crate::record::trace::{TRACE_METRICS, Trace, common};
use crate::tcp::sender::Sender;
use bakeoff_document::run::Source;
use bakeoff_document::stimulus::{Comparison, Effect, Placed, Stimulus};

/// The change that stands for all that stimuli do.
pub(crate) const DUE: u16 = u16::MAX;

/// What looks at senders.
pub(crate) struct Observer {
    /// Internals of congestion controls, if the run asks for them.
    pub(crate) trace: Option<Trace>,
    pub(crate) stimuli: Stimuli,
    /// Timeouts of each flow's sender when it was last looked at.
    rtos: Vec<u64>,
}

impl Observer {
    /// For so many flows.
    pub(crate) fn new(trace: Option<Trace>, stimuli: Stimuli, flows: usize) -> Observer {
        Observer { trace, stimuli, rtos: vec![0; flows] }
    }
}

/// What a term compares.
enum Variable {
    Time,
    /// Of every control, by its place in [`TRACE_METRICS`].
    Common(usize),
    /// The control's own, without `cc.`.
    Own(String),
}

impl Variable {
    fn named(name: &str) -> Variable {
        match TRACE_METRICS.iter().position(|metric| *metric == name) {
            _ if name == "time" => Variable::Time,
            Some(i) => Variable::Common(i),
            None => Variable::Own(name.strip_prefix("cc.").unwrap_or(name).into()),
        }
    }
}

/// One stimulus.
struct State {
    flow: usize,
    terms: Vec<(Variable, Comparison, f64)>,
    after: Time,
    lasts: Option<Time>,
    each: bool,
    effect: Effect,
    /// Whether the terms held when they were last looked at.
    held: bool,
    /// When the effect begins, if it is to.
    begins: Option<Time>,
    /// When it ends, while it is there.
    ends: Option<Time>,
    /// Between which times the packets were sent that it concerns.
    window: [Time; 2],
    taken: Taken,
    /// To how many packets it did something, in all windows.
    packets: u64,
    fired: Vec<Time>,
}

/// The stimuli of a run.
#[derive(Default)]
pub(crate) struct Stimuli {
    all: Vec<State>,
    /// Packets that arrive later, by that time and in their order: where, and which.
    held: BTreeMap<(Time, u64), (u16, Packet)>,
    taken: u64,
}

/// What becomes of a packet that arrives.
enum Fate {
    Passes,
    Lost,
    /// It arrives at that time.
    Waits(Time),
}

impl Stimuli {
    /// Those of a run; of each the number of its flow.
    pub(crate) fn new(stimuli: &[Stimulus], flows: &[usize]) -> Stimuli {
        let state = |(stimulus, flow): (&Stimulus, &usize)| State {
            flow: *flow,
            terms: stimulus
                .state
                .iter()
                .map(|term| (Variable::named(&term.variable), term.is, term.value))
                .collect(),
            after: Time::from_secs_f64(stimulus.after_s),
            lasts: stimulus.for_s.map(Time::from_secs_f64),
            each: stimulus.each,
            effect: stimulus.effect.clone(),
            held: false,
            begins: None,
            ends: None,
            window: [Time::ZERO; 2],
            taken: Taken::default(),
            packets: 0,
            fired: Vec::new(),
        };
        Stimuli { all: stimuli.iter().zip(flows).map(state).collect(), ..Stimuli::default() }
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Of each, in the order of the document: when it was in effect, and to how many packets it did something.
    pub(crate) fn record(&self) -> impl Iterator<Item = (&[Time], u64)> {
        self.all.iter().map(|state| (&state.fired[..], state.packets))
    }

    /// What is held.
    pub(crate) fn kept(&self) -> Count {
        let mut count = Count::default();
        self.held.values().for_each(|(_, packet)| count.add(packet.len));
        count
    }

    /// Tags packets to which something may be done.
    pub(super) fn tag(&self, packets: &mut [Packet]) {
        for packet in packets.iter_mut().filter(|packet| packet.payload > 0) {
            if self.all.iter().any(|s| s.concerns_packets() && s.flow == usize::from(packet.flow)) {
                packet.flags = packet.flags.with(Flags::STIMULATED);
            }
        }
    }

    /// Looks at the sender of flow `f`; when effects begin that it calls for.
    fn look(&mut self, f: usize, sender: &Sender, now: Time) -> Vec<Time> {
        if self.all.iter().all(|state| state.flow != f) {
            return Vec::new();
        }
        let (common, own) = (common(sender), sender.cc().trace());
        let value = |variable: &Variable| match variable {
            Variable::Time => Some(now.as_secs_f64()),
            Variable::Common(i) => common[*i],
            Variable::Own(name) => own.iter().find(|(known, _)| known == name).map(|(_, value)| *value),
        };
        let mut begin = Vec::new();
        for state in self.all.iter_mut().filter(|state| state.flow == f) {
            let holds = state
                .terms
                .iter()
                .all(|(variable, is, other)| value(variable).is_some_and(|value| is.holds(value, *other)));
            let held = std::mem::replace(&mut state.held, holds);
            if holds && !held && state.is_ready() {
                let at = now.plus(state.after);
                state.begins = Some(at);
                begin.push(at);
            }
        }
        begin
    }

    fn arrives(&mut self, packet: &mut Packet, now: Time) -> Fate {
        let mut due = now;
        for state in &mut self.all {
            let [from, until] = state.window;
            let concerned = state.flow == usize::from(packet.flow) && (from..until).contains(&packet.sent);
            if !concerned || !state.concerns_packets() {
                continue;
            }
            match state.effect {
                Effect::Drop { every, most } if state.taken.one(every, most) => {
                    state.packets += 1;
                    return Fate::Lost;
                }
                Effect::Mark { every, most } if state.taken.one(every, most) && packet.set_ce() => {}
                Effect::Delay { delay_s } => due = due.max(now.plus(Time::from_secs_f64(delay_s))),
                Effect::Hold {} if until > now => due = due.max(until),
                _ => continue,
            }
            state.packets += 1;
        }
        if due > now { Fate::Waits(due) } else { Fate::Passes }
    }

    /// What the application of flow `f` has in place of its own source, if anything.
    fn source(&self, f: usize) -> Option<Source> {
        let sources = self.all.iter().filter_map(|state| match &state.effect {
            Effect::Source { source } if state.flow == f && state.ends.is_some() => {
                Some((state.window[0], source))
            }
            _ => None,
        });
        let (_, source) = sources.max_by_key(|(began, _)| *began)?;
        Some(source.clone().unwrap_or(Source::Bytes { bytes: 0 }))
    }
}

impl State {
    fn concerns_packets(&self) -> bool {
        !matches!(self.effect, Effect::Source { .. } | Effect::Change { .. })
    }

    /// Whether it may happen now.
    fn is_ready(&self) -> bool {
        self.begins.is_none() && self.ends.is_none() && (self.each || self.fired.is_empty())
    }
}

/// Packets of a window that arrived, and those that were taken.
#[derive(Default)]
struct Taken {
    seen: u32,
    taken: u32,
}

impl Taken {
    /// Another one: whether it is one of each `every`-th, and no more than `most` are taken.
    fn one(&mut self, every: u32, most: Option<u32>) -> bool {
        self.seen += 1;
        let takes = self.seen.is_multiple_of(every) && most.is_none_or(|most| self.taken < most);
        self.taken += u32::from(takes);
        takes
    }
}

impl Sim {
    /// Flow number `f` has handled an ACK, or one of its sender's timers ran.
    #[cold]
    #[inline(never)]
    pub(super) fn observe(&mut self, f: usize, acked: bool) {
        let (Some(observer), Some(flow)) = (&mut self.observer, self.flows.get(f)) else { return };
        let Some(sender) = flow.sender() else { return };
        let rtos = std::mem::replace(&mut observer.rtos[f], sender.counters.rtos);
        if !acked && rtos == sender.counters.rtos {
            return;
        }
        if let Some(trace) = &mut observer.trace {
            trace.acked(f, &flow.spec.name, sender, self.now);
        }
        for at in observer.stimuli.look(f, sender, self.now) {
            self.events.push(at, Event::Change(DUE));
        }
    }

    /// A tagged packet is at its destination.
    pub(super) fn stimulate(&mut self, node: u16, packet: &Packet) {
        let Some(observer) = &mut self.observer else { return };
        let mut packet = Packet { flags: packet.flags.without(Flags::STIMULATED), ..*packet };
        match observer.stimuli.arrives(&mut packet, self.now) {
            Fate::Passes => self.deliver(node, &packet),
            Fate::Lost => self.lost.add(packet.len),
            Fate::Waits(due) => {
                let stimuli = &mut observer.stimuli;
                stimuli.taken += 1;
                stimuli.held.insert((due, stimuli.taken), (node, packet));
                self.events.push(due, Event::Change(DUE));
            }
        }
    }

    /// Does what stimuli do by now: effects end and begin, and what was held arrives.
    ///
    /// # Errors
    /// What tc would refuse.
    pub(super) fn do_stimuli(&mut self) -> Result<(), Refused> {
        let stimuli = self.observer.as_ref().map_or(0, |observer| observer.stimuli.all.len());
        for (n, begins) in (0..stimuli).map(|n| (n, false)).chain((0..stimuli).map(|n| (n, true))) {
            self.do_stimulus(n, begins)?;
        }
        loop {
            let now = self.now;
            let Some(observer) = &mut self.observer else { return Ok(()) };
            let Some(first) = observer.stimuli.held.first_entry().filter(|first| first.key().0 <= now) else {
                return Ok(());
            };
            let (node, packet) = first.remove();
            self.deliver(node, &packet);
        }
    }

    /// Ends the effect of stimulus `n`, or begins it, if that is due.
    fn do_stimulus(&mut self, n: usize, begins: bool) -> Result<(), Refused> {
        let now = self.now;
        let Some(state) = self.observer.as_mut().and_then(|observer| observer.stimuli.all.get_mut(n)) else {
            return Ok(());
        };
        let edge = if begins { &mut state.begins } else { &mut state.ends };
        if edge.is_none_or(|at| at > now) {
            return Ok(());
        }
        *edge = None;
        let f = state.flow;
        if begins {
            let until = state.lasts.map_or(Time::NEVER, |lasts| now.plus(lasts));
            state.fired.push(now);
            (state.ends, state.window, state.taken) = (Some(until), [now, until], Taken::default());
            if until < Time::NEVER {
                self.events.push(until, Event::Change(DUE));
            }
        }
        match &state.effect {
            Effect::Source { .. } => self.change_source(f),
            Effect::Change { begin, end } => {
                let (key, changes) = if begins { ("begin", begin.clone()) } else { ("end", end.clone()) };
                for (i, Placed { node, peer, action }) in changes.into_iter().enumerate() {
                    self.apply(&node, &peer, &action, &format!("when[{n}].effect.{key}[{i}]"))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The application of flow `f` goes on with the source that stimuli give it, or its own.
    fn change_source(&mut self, f: usize) {
        let given = self.observer.as_ref().and_then(|observer| observer.stimuli.source(f));
        let source = given.unwrap_or_else(|| self.run.flows[f].source.clone());
        self.flows[f].change_source(source);
        self.on_source_event(f as u16);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drops(every: u32, most: Option<u32>) -> Stimuli {
        let stimulus = Stimulus {
            name: "s".into(),
            flow: "a".into(),
            state: Vec::new(),
            after_s: 0.0,
            for_s: None,
            each: false,
            effect: Effect::Drop { every, most },
        };
        let mut stimuli = Stimuli::new(&[stimulus], &[0]);
        stimuli.all[0].window = [Time(10), Time(20)];
        stimuli
    }

    /// Which of the packets sent at 8, 9, 10, ... 21 are lost.
    fn lost(stimuli: &mut Stimuli) -> Vec<u64> {
        let mut lost = Vec::new();
        for at in 8..22 {
            let mut packet = Packet { sent: Time(at), ..Packet::default() };
            if matches!(stimuli.arrives(&mut packet, Time(at + 5)), Fate::Lost) {
                lost.push(at);
            }
        }
        lost
    }

    #[test]
    fn each_third_packet_of_the_window_is_lost() {
        assert_eq!(lost(&mut drops(3, None)), [12, 15, 18]);
        assert_eq!(lost(&mut drops(3, Some(2))), [12, 15]);
        assert_eq!(lost(&mut drops(1, Some(4))), [10, 11, 12, 13]);
    }

    #[test]
    fn packets_of_other_flows_pass() {
        let mut stimuli = drops(1, None);
        let mut packet = Packet { sent: Time(12), flow: 1, ..Packet::default() };
        assert!(matches!(stimuli.arrives(&mut packet, Time(13)), Fate::Passes));
    }

    #[test]
    fn what_is_held_arrives_when_the_window_ends_and_what_is_delayed_by_so_much_later() {
        let mut stimuli = drops(1, None);
        for (effect, now, due) in [
            (Effect::Hold {}, 15, Some(20)),
            (Effect::Hold {}, 21, None),
            (Effect::Delay { delay_s: 3e-9 }, 21, Some(24)),
        ] {
            stimuli.all[0].effect = effect;
            let mut packet = Packet { sent: Time(12), ..Packet::default() };
            let fate = stimuli.arrives(&mut packet, Time(now));
            assert_eq!(if let Fate::Waits(due) = fate { Some(due.0) } else { None }, due, "{now}");
        }
    }
}
