//! `cnq_cobalt`: cheap nasty queueing with one COBALT for the bulk queue, a shaper of its own.
//!
//! Source: chromi/sce `net/sched/sch_cnq_cobalt.c`; draft-morton-tsvwg-cheap-nasty-queueing.
//!
//! Parameters: those of [`super::sce`]; SCE is off unless asked for.
//!
//! Departures: those of [`super::sparse_bulk`]; tokens that are left in an otherwise empty queue leave when the
//! shaper would allow a packet.
//!
//! Validation: sparse packets are never marked, the signals are COBALT's (tests below); conservation.

use super::cobalt::{Params, SceCobalt};
use super::sce::{Clock, over, params};
use super::sparse_bulk::SparseBulk;
use super::{Cause, Env, Hints, Qdisc, Statistics, Tally};
use crate::base::rng::Stream;
use crate::base::units::Time;
use crate::packet::Packet;
use bakeoff_document::qdisc::sce::SceConfig;
use bakeoff_document::tc::{TcError, Words};

/// The qdisc; see the module's documentation.
pub struct CnqCobalt {
    config: SceConfig,
    params: Params,
    /// `psched_mtu`, and how long it takes.
    mtu: u32,
    mtu_time: Time,
    queues: SparseBulk,
    cobalt: SceCobalt,
    clock: Clock,
    sce_marks: u64,
    rng: Stream,
}

impl CnqCobalt {
    /// `cnq_cobalt [bandwidth RATE|unlimited] [rtt TIME] [overhead words] [sce|sce-thresh N|no-sce]`
    pub fn new(words: &mut Words, env: &Env) -> Result<Self, TcError> {
        let config = SceConfig::parse(words, 0, None)?;
        Ok(CnqCobalt {
            params: params(&config),
            mtu: env.psched_mtu(),
            mtu_time: config.mtu_time(env.psched_mtu()),
            config,
            queues: SparseBulk::new(),
            cobalt: SceCobalt::new(),
            clock: Clock::default(),
            sce_marks: 0,
            rng: Stream::new(env.seed, &env.name),
        })
    }

    fn dequeue_bulk(&mut self, now: Time, tally: &mut Tally) -> Option<Packet> {
        loop {
            let mut packet = self.queues.pop_bulk()?;
            if self.queues.backlog == 0 {
                self.cobalt.queue_empty(&self.params, now);
                return Some(packet);
            }
            let over = over(&self.params, self.mtu_time, now - packet.enqueued);
            let signal = self.cobalt.dequeue(&self.params, now, packet.ecn, over, &mut self.rng);
            if signal.drop {
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

impl Qdisc for CnqCobalt {
    fn enqueue(&mut self, packet: Packet, now: Time, _tally: &mut Tally) {
        if self.qlen() == 0 && self.clock.next <= now {
            self.clock.idle_until(now);
            self.queues.discard_tokens();
        }
        self.queues.enqueue(packet);
    }

    fn dequeue(&mut self, now: Time, tally: &mut Tally) -> Option<Packet> {
        if self.qlen() == 0 || now < self.clock.next {
            return None;
        }
        let packet = match self.queues.pop_sparse() {
            Some(packet) => packet,
            None => self.dequeue_bulk(now, tally)?,
        };
        self.clock.charge(&self.config, &packet);
        Some(packet)
    }

    fn next_event(&self) -> Option<Time> {
        (self.qlen() > 0).then_some(self.clock.next)
    }

    /// Flows keep their packets and their state; what the line does not say stays.
    fn change(&mut self, words: &mut Words, _now: Time, _tally: &mut Tally) -> Result<(), TcError> {
        let config = self.config.changed(words)?;
        self.params = params(&config);
        self.mtu_time = config.mtu_time(self.mtu);
        self.config = config;
        Ok(())
    }

    fn qlen(&self) -> usize {
        self.queues.len()
    }

    fn backlog(&self) -> u64 {
        self.queues.backlog
    }

    fn segments(&self, _packet: &Packet) -> bool {
        true
    }

    fn hints(&self) -> Hints {
        Hints { marks_sce: self.config.sce_thresh > 0, ..Hints::default() }
    }
}

impl Statistics for CnqCobalt {
    fn show(&self) -> String {
        self.config.show("cnq_cobalt")
    }

    fn show_stats(&self, _now: Time) -> String {
        let queues = &self.queues;
        format!("  flows {} sparse {} sce_marks {}", queues.active, queues.tokens, self.sce_marks)
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

    fn frame(hash: u32) -> Packet {
        Packet { len: 1514, hash, ecn: Ecn::Ect0, ..Packet::default() }
    }

    #[test]
    fn the_bulk_queue_has_cobalt_s_signals_and_the_sparse_one_none() {
        // 200 packets at 10 Mbit/s (1.2112 ms each) stand for up to 242 ms: above the target of 5 ms from the
        // fifth on, at 6.056 ms; CE 100 ms later, then after 70.7 ms, then after 57.7 ms.
        let mut q = queue("cnq_cobalt bandwidth 10mbit");
        (0..200).for_each(|_| q.enqueue(frame(1), Time::ZERO));
        let mut marks = Vec::new();
        while let Some(at) = q.next_event() {
            if at > Time::from_ms(120) && q.tally.flows.len() == 1 {
                // a sparse flow's packet: at once, unmarked
                q.enqueue(Packet { flow: 1, ..frame(2) }, at);
                assert_eq!(q.dequeue(at).map(|p| (p.flow, p.ecn)), Some((1, Ecn::Ect0)));
                continue;
            }
            if q.dequeue(at).unwrap().ecn == Ecn::Ce {
                marks.push(at.as_ns() as f64 / 1e6);
            }
        }
        let due = [106.056, 176.77, 234.5];
        assert_eq!(marks.len(), 3, "{marks:?}");
        for (mark, due) in marks.iter().zip(due) {
            assert!((due - 0.05..due + 1.22).contains(mark), "{mark} {due}");
        }
    }

    #[test]
    fn shows_what_it_was_told() {
        let q = queue("cnq_cobalt bandwidth 50mbit sce-thresh 4 ethernet");
        let shown = "cnq_cobalt bandwidth 50Mbit rtt 100ms noatm overhead 38 mpu 84 sce-thresh 4";
        assert_eq!(q.show(), shown);
    }
}
