//! `cobalt`: one fifo with the SCE family's COBALT and a shaper of its own.
//!
//! Source: chromi/sce `net/sched/sch_cobalt.c`, inferred from its sibling `sch_cnq_cobalt.c`: the same COBALT
//! ([`super::cobalt`]) on one queue.
//!
//! Parameters: those of [`super::sce`]; SCE is off unless asked for.
//!
//! Departures: no limit on the queue's length.
//!
//! Validation: spacing of signals, the last packet stays (tests below); conservation.

use std::collections::VecDeque;

use super::cobalt::{Params, SceCobalt};
use super::sce::{Clock, over, params};
use super::{Cause, Env, Hints, Qdisc, Statistics, Tally};
use crate::base::rng::Stream;
use crate::base::units::Time;
use crate::packet::Packet;
use bakeoff_document::qdisc::sce::SceConfig;
use bakeoff_document::tc::{TcError, Words};

/// The qdisc; see the module's documentation.
pub struct CobaltFifo {
    config: SceConfig,
    params: Params,
    /// `psched_mtu`, and how long it takes.
    mtu: u32,
    mtu_time: Time,
    packets: VecDeque<Packet>,
    backlog: u64,
    cobalt: SceCobalt,
    clock: Clock,
    sce_marks: u64,
    rng: Stream,
}

impl CobaltFifo {
    /// `cobalt [bandwidth RATE|unlimited] [rtt TIME] [overhead words] [sce|sce-thresh N|no-sce]`
    pub fn new(words: &mut Words, env: &Env) -> Result<Self, TcError> {
        let config = SceConfig::parse(words, 0, None)?;
        Ok(CobaltFifo {
            params: params(&config),
            mtu: env.psched_mtu(),
            mtu_time: config.mtu_time(env.psched_mtu()),
            config,
            packets: VecDeque::new(),
            backlog: 0,
            cobalt: SceCobalt::new(),
            clock: Clock::default(),
            sce_marks: 0,
            rng: Stream::new(env.seed, &env.name),
        })
    }
}

impl Qdisc for CobaltFifo {
    fn enqueue(&mut self, packet: Packet, now: Time, _tally: &mut Tally) {
        if self.packets.is_empty() {
            self.clock.idle_until(now);
        }
        self.backlog += u64::from(packet.len);
        self.packets.push_back(packet);
    }

    fn dequeue(&mut self, now: Time, tally: &mut Tally) -> Option<Packet> {
        if now < self.clock.next {
            return None;
        }
        loop {
            let mut packet = self.packets.pop_front()?;
            self.backlog -= u64::from(packet.len);
            if self.packets.is_empty() {
                self.cobalt.queue_empty(&self.params, now);
            } else {
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
            }
            self.clock.charge(&self.config, &packet);
            return Some(packet);
        }
    }

    fn next_event(&self) -> Option<Time> {
        (!self.packets.is_empty()).then_some(self.clock.next)
    }

    /// Packets and state stay, and what the line does not say.
    fn change(&mut self, words: &mut Words, _now: Time, _tally: &mut Tally) -> Result<(), TcError> {
        let config = self.config.changed(words)?;
        self.params = params(&config);
        self.mtu_time = config.mtu_time(self.mtu);
        self.config = config;
        Ok(())
    }

    fn qlen(&self) -> usize {
        self.packets.len()
    }

    fn backlog(&self) -> u64 {
        self.backlog
    }

    fn hints(&self) -> Hints {
        Hints { marks_sce: self.config.sce_thresh > 0, ..Hints::default() }
    }
}

impl Statistics for CobaltFifo {
    fn show(&self) -> String {
        self.config.show("cobalt")
    }

    fn show_stats(&self, _now: Time) -> String {
        format!("  sce_marks {}", self.sce_marks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Ecn;
    use crate::qdisc::Queue;
    use bakeoff_document::run;

    /// What leaves of 200 packets at 10 Mbit/s (1.2112 ms each): (ms, ECN field).
    fn drain(line: &str, ecn: Ecn) -> (Vec<(f64, Ecn)>, Queue) {
        let mut q = Queue::build(&run::Qdisc::leaf(line), &Env::default()).unwrap();
        let packet = Packet { len: 1514, ecn, ..Packet::default() };
        (0..200).for_each(|_| q.enqueue(packet, Time::ZERO));
        let mut out = Vec::new();
        while let Some(at) = q.next_event() {
            out.extend(q.dequeue(at).map(|p| (at.as_ns() as f64 / 1e6, p.ecn)));
        }
        (out, q)
    }

    #[test]
    fn signals_come_an_interval_after_going_over_target() {
        // over at the fifth packet (6.056 ms): signals at 106.056, + 70.7, + 57.7
        let (out, q) = drain("cobalt bandwidth 10mbit", Ecn::Ect0);
        let marks: Vec<f64> = out.iter().filter(|p| p.1 == Ecn::Ce).map(|p| p.0).collect();
        assert_eq!((marks.len(), q.tally.marks, q.tally.dropped()), (3, 3, 0));
        for (mark, due) in marks.iter().zip([106.056, 176.77, 234.5]) {
            assert!((due - 0.05..due + 1.22).contains(mark), "{mark} {due}");
        }
        let (out, q) = drain("cobalt bandwidth 10mbit", Ecn::NotEct);
        assert_eq!((out.len() as u64 + q.tally.dropped(), q.tally.marks), (200, 0));
        // three drops advance the queue by 3.6 ms: the last packet leaves before 242 ms - 3.6 ms
        assert_eq!(q.tally.dropped(), 3);
    }

    #[test]
    fn sce_marks_from_half_the_target_on_where_asked() {
        let (out, _) = drain("cobalt bandwidth 50mbit sce-thresh 4", Ecn::Ect0);
        assert!(out.iter().any(|p| p.1 == Ecn::Ect1));
        let (out, _) = drain("cobalt bandwidth 50mbit", Ecn::Ect0);
        assert!(out.iter().all(|p| p.1 != Ecn::Ect1));
    }
}
