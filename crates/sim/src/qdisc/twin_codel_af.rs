//! `twin_codel_af`: two classes of cheap nasty queueing with approximate fairness, normal and low latency.
//!
//! Each class is [`super::cnq_codel_af`]'s sparse and bulk queue; packets with DSCP 4 (TOS 0x10) go to the
//! low-latency class, whose times are a fifth of the others'. The classes share the link by their numbers of
//! flows. A flow has one COBALT, whatever its class.
//!
//! Source: chromi/sce `net/sched/sch_twin_codel_af.c`.
//!
//! Parameters: those of [`super::sce`], and `limit` PACKETS (10240); SCE is on by default, `sce-thresh 4`.
//!
//! Departures: those of [`super::sparse_bulk`]. The low-latency class is served while it owes no more than the
//! other; a packet costs its class as many parts as the other class has flows.
//!
//! Validation: the classes' shares, the low-latency class's times, the limit (tests below); conservation.

use super::cnq_codel_af::weighted;
use super::cobalt::{Params, SceCobalt};
use super::lfq_cobalt::LOW_LATENCY;
use super::sce::{Clock, params};
use super::slots::{Slots, slot_of};
use super::sparse_bulk::SparseBulk;
use super::{Cause, Env, Hints, Qdisc, Statistics, Tally};
use crate::base::rng::Stream;
use crate::base::units::Time;
use crate::packet::Packet;
use bakeoff_document::qdisc::sce::SceConfig;
use bakeoff_document::tc::{TcError, Words};

struct Class {
    queues: SparseBulk,
    params: Params,
    /// Parts that it has had more than the other class.
    debt: usize,
}

/// The qdisc; see the module's documentation.
pub struct TwinCodelAf {
    config: SceConfig,
    /// Normal, low latency.
    classes: [Class; 2],
    /// By flow.
    cobalts: Slots<SceCobalt>,
    clock: Clock,
    /// The next flow that is decayed if it is idle.
    sweep: u16,
    sce_marks: u64,
    rng: Stream,
}

impl TwinCodelAf {
    /// `twin_codel_af [limit PACKETS] [bandwidth RATE|unlimited] [rtt TIME] [overhead words]
    /// [sce|sce-thresh N|no-sce]`
    pub fn new(words: &mut Words, env: &Env) -> Result<Self, TcError> {
        let config = SceConfig::parse(words, 4, Some(10_240))?;
        let params = [params(&config), params(&config).divided(5)];
        Ok(TwinCodelAf {
            config,
            classes: params.map(|params| Class { queues: SparseBulk::new(), params, debt: 0 }),
            cobalts: Slots::new(SceCobalt::new()),
            clock: Clock::default(),
            sweep: 0,
            sce_marks: 0,
            rng: Stream::new(env.seed, &env.name),
        })
    }

    fn decay_one_idle_slot(&mut self, now: Time) {
        if self.classes.iter().all(|class| class.queues.count(self.sweep) == 0)
            && let Some(cobalt) = self.cobalts.used(self.sweep)
        {
            cobalt.queue_empty(&self.classes[0].params, now);
        }
        self.sweep = self.sweep.wrapping_add(1);
    }

    /// The class to serve.
    fn choose(&self) -> usize {
        let [normal, low] = &self.classes;
        let low_turn = normal.queues.len() == 0 || low.debt <= normal.debt;
        usize::from(low.queues.len() > 0 && low_turn)
    }

    fn dequeue_class(&mut self, class: usize, now: Time, tally: &mut Tally) -> Option<Packet> {
        let Class { queues, params, .. } = &mut self.classes[class];
        if let Some(packet) = queues.pop_sparse() {
            if let Some(cobalt) = self.cobalts.used(slot_of(&packet)) {
                cobalt.queue_empty(params, now);
            }
            return Some(packet);
        }
        loop {
            let mut packet = queues.pop_bulk()?;
            let slot = slot_of(&packet);
            let over = weighted(queues, slot, now - packet.enqueued, params);
            let cobalt = self.cobalts.get(slot);
            let signal = cobalt.dequeue(params, now, packet.ecn, over, &mut self.rng);
            // A flow's last packet is never dropped.
            if signal.drop && queues.count(slot) > 0 {
                tally.drop(&packet, Cause::Aqm);
                continue;
            }
            self.sce_marks += u64::from(signal.sce && tally.mark_sce(&mut packet));
            if signal.ce {
                tally.mark(&mut packet);
            }
            return Some(packet);
        }
    }
}

impl Qdisc for TwinCodelAf {
    fn enqueue(&mut self, packet: Packet, now: Time, tally: &mut Tally) {
        if self.config.limit.is_some_and(|limit| self.qlen() >= limit as usize) {
            tally.drop(&packet, Cause::Overlimit);
            return;
        }
        if self.qlen() == 0 && self.clock.next <= now {
            self.clock.idle_until(now);
            self.classes.iter_mut().for_each(|class| class.queues.discard_tokens());
        }
        self.classes[usize::from(packet.dscp == LOW_LATENCY)].queues.enqueue(packet);
    }

    fn dequeue(&mut self, now: Time, tally: &mut Tally) -> Option<Packet> {
        if self.qlen() == 0 || now < self.clock.next {
            return None;
        }
        self.decay_one_idle_slot(now);
        let class = self.choose();
        // The flows before the packet leaves: it may be a class's last.
        let cost = self.classes[1 - class].queues.active;
        let packet = self.dequeue_class(class, now, tally)?;
        self.classes[class].debt += cost;
        let least = self.classes[0].debt.min(self.classes[1].debt);
        self.classes.iter_mut().for_each(|class| class.debt -= least);
        self.clock.charge(&self.config, &packet);
        Some(packet)
    }

    fn next_event(&self) -> Option<Time> {
        (self.qlen() > 0).then_some(self.clock.next)
    }

    /// Flows keep their packets and their state; what the line does not say stays.
    fn change(&mut self, words: &mut Words, _now: Time, _tally: &mut Tally) -> Result<(), TcError> {
        let config = self.config.changed(words)?;
        let params = params(&config);
        for (class, params) in self.classes.iter_mut().zip([params, params.divided(5)]) {
            class.params = params;
        }
        self.config = config;
        Ok(())
    }

    fn qlen(&self) -> usize {
        self.classes.iter().map(|class| class.queues.len()).sum()
    }

    fn backlog(&self) -> u64 {
        self.classes.iter().map(|class| class.queues.backlog).sum()
    }

    fn segments(&self, _packet: &Packet) -> bool {
        true
    }

    fn hints(&self) -> Hints {
        Hints { marks_sce: self.config.sce_thresh > 0, ..Hints::default() }
    }
}

impl Statistics for TwinCodelAf {
    fn show(&self) -> String {
        self.config.show("twin_codel_af")
    }

    fn show_stats(&self, _now: Time) -> String {
        let [normal, low] = &self.classes;
        let flows = [normal.queues.active, low.queues.active];
        format!("  flows {} low_latency_flows {} sce_marks {}", flows[0], flows[1], self.sce_marks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Ecn;
    use crate::qdisc::Queue;
    use bakeoff_document::run;

    fn queue(line: &str) -> Queue {
        Queue::build(&run::Qdisc::leaf(line), &Env::default()).unwrap()
    }

    fn frame(flow: u16, dscp: u8) -> Packet {
        Packet { len: 1514, flow, hash: u32::from(flow), dscp, ecn: Ecn::Ect0, ..Packet::default() }
    }

    #[test]
    fn classes_share_by_their_numbers_of_flows() {
        // three normal flows, one with low latency: 3/4 and 1/4 of the packets
        let mut q = queue("twin_codel_af bandwidth 100mbit");
        let flows = [frame(0, 0), frame(1, 0), frame(2, 0), frame(3, LOW_LATENCY)];
        (0..10).for_each(|_| flows.iter().for_each(|f| q.enqueue(*f, Time::ZERO)));
        let mut sent = [0_u32; 4];
        for _ in 0..20_000 {
            let now = q.next_event().unwrap();
            let packet = q.dequeue(now).unwrap();
            sent[usize::from(packet.flow)] += 1;
            q.enqueue(flows[usize::from(packet.flow)], now);
        }
        assert!((f64::from(sent[3]) / 5000.0 - 1.0).abs() < 0.02, "{sent:?}");
    }

    #[test]
    fn the_low_latency_class_has_a_fifth_of_the_times() {
        // One flow of 300 packets at 10 Mbit/s; the second packet to leave is the first of the bulk queue, after
        // 1.2 ms. Normal: SCE from 2.5 ms on, 25 ms later; CE from 5 ms on, 100 ms later. Low latency: SCE 5 ms
        // after 1.2 ms, CE 20 ms after it.
        let first = |dscp| {
            let mut q = queue("twin_codel_af bandwidth 10mbit");
            (0..300).for_each(|_| q.enqueue(frame(1, dscp), Time::ZERO));
            let (mut ect1, mut ce) = (None, None);
            while let Some(at) = q.next_event() {
                match q.dequeue(at).unwrap().ecn {
                    Ecn::Ect1 => _ = ect1.get_or_insert(at.as_ms()),
                    Ecn::Ce => _ = ce.get_or_insert(at.as_ms()),
                    _ => {}
                }
            }
            (ect1.unwrap(), ce.unwrap())
        };
        let near = |(sce, ce): (u64, u64), want_sce: u64, want_ce: u64| {
            assert!(sce.abs_diff(want_sce) <= 2 && ce.abs_diff(want_ce) <= 2, "{sce} {ce}");
        };
        near(first(0), 28, 107);
        near(first(LOW_LATENCY), 7, 22);
    }

    #[test]
    fn above_the_limit_the_newest_is_dropped() {
        let mut q = queue("twin_codel_af limit 5");
        (0..8).for_each(|i| q.enqueue(frame(1, 4 * (i % 2)), Time::ZERO));
        assert_eq!((q.qlen(), q.tally.drops[Cause::Overlimit as usize]), (5, 3));
        assert_eq!(q.show(), "twin_codel_af limit 5p unlimited rtt 100ms sce-thresh 4");
    }
}
