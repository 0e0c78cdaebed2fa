//! `cnq_codel_af`: cheap nasty queueing with approximate fairness, a shaper of its own.
//!
//! A flow's first packet goes to a sparse queue with strict priority and leaves a token in the bulk
//! queue; packets that find a token or a packet of their flow there join the bulk queue. Each flow
//! has a COBALT of its own, which judges the flow's share of the queue's delay times the number of
//! flows, so that all ECN-responsive flows are steered to the same share.
//!
//! Source: chromi/sce `net/sched/sch_cnq_codel_af.c`; heistp/iproute2-sce `tc/q_cnq_codel_af.c`;
//! draft-morton-tsvwg-cheap-nasty-queueing.
//!
//! Parameters: those of [`super::sce`]; SCE is off unless asked for.
//!
//! Departures: those of [`super::sparse_bulk`]; tokens that are left in an otherwise empty queue leave when the
//! shaper would allow a packet.
//!
//! Validation: sparse priority and tokens; the shaper's spacing; weighted sojourn; two unequal flows
//! become equal; conservation.

use super::cobalt::{Over, Params, SceCobalt};
use super::sce::{Clock, params};
use super::slots::{Slots, slot_of};
use super::sparse_bulk::SparseBulk;
use super::{Cause, Env, Hints, Properties, Qdisc, Statistics, Tally};
use crate::base::rng::Stream;
use crate::base::units::Time;
use crate::packet::Packet;
use bakeoff_document::qdisc::sce::SceConfig;
use bakeoff_document::tc::{TcError, Words};

/// The qdisc; see the module's documentation.
pub struct CnqCodelAf {
    config: SceConfig,
    params: Params,
    queues: SparseBulk,
    /// By flow.
    cobalts: Slots<SceCobalt>,
    clock: Clock,
    /// The next flow that is decayed if it is idle.
    sweep: u16,
    sce_marks: u64,
    rng: Stream,
}

impl CnqCodelAf {
    /// `cnq_codel_af [bandwidth RATE|unlimited] [rtt TIME] [overhead words] [sce|sce-thresh N|no-sce]`
    pub fn new(words: &mut Words, env: &Env) -> Result<Self, TcError> {
        let config = SceConfig::parse(words, 0, None)?;
        Ok(CnqCodelAf {
            params: params(&config),
            config,
            queues: SparseBulk::new(),
            cobalts: Slots::new(SceCobalt::new()),
            clock: Clock::default(),
            sweep: 0,
            sce_marks: 0,
            rng: Stream::new(env.seed, &env.name),
        })
    }

    fn decay_one_idle_slot(&mut self, now: Time) {
        if self.queues.count(self.sweep) == 0
            && let Some(cobalt) = self.cobalts.used(self.sweep)
        {
            cobalt.queue_empty(&self.params, now);
        }
        self.sweep = self.sweep.wrapping_add(1);
    }

    /// The bulk packet that leaves at `now`, after its flow's AQM.
    fn dequeue_bulk(&mut self, now: Time, tally: &mut Tally) -> Option<Packet> {
        loop {
            let mut packet = self.queues.pop_bulk()?;
            let slot = slot_of(&packet);
            let over = weighted(&self.queues, slot, now - packet.enqueued, &self.params);
            let cobalt = self.cobalts.get(slot);
            let signal = cobalt.dequeue(&self.params, now, packet.ecn, over, &mut self.rng);
            // A flow's last packet is never dropped.
            if signal.drop && self.queues.count(slot) > 0 {
                tally.drop(&packet, Cause::Aqm);
                continue;
            }
            if signal.sce && tally.mark_sce(&mut packet) {
                self.sce_marks += 1;
            }
            if signal.ce {
                tally.mark(&mut packet);
            }
            return Some(packet);
        }
    }
}

/// The thresholds that the flow's weighted sojourn is above: its share of the queue times the number of
/// flows, applied to the sojourn of a packet that has just left.
pub(super) fn weighted(queues: &SparseBulk, slot: u16, sojourn: Time, params: &Params) -> Over {
    let share = u128::from(queues.count(slot)) + 1;
    let flows = queues.active.saturating_sub(queues.tokens) as u128;
    let weighted = u128::from(sojourn.as_ns()) * share * flows;
    let queue = queues.len() as u128 + 1;
    let above = |limit: i64| weighted > limit as u128 * queue;
    Over { ce: above(params.target), sce: above(params.sce_target), blue: above(params.blue_threshold) }
}

impl Qdisc for CnqCodelAf {
    const PROPERTIES: Properties = Properties { rests_when_empty: true, ..Properties::DEFAULT };

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
        self.decay_one_idle_slot(now);
        let packet = if let Some(packet) = self.queues.pop_sparse() {
            if let Some(cobalt) = self.cobalts.used(slot_of(&packet)) {
                cobalt.queue_empty(&self.params, now);
            }
            packet
        } else {
            self.dequeue_bulk(now, tally)?
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

impl Statistics for CnqCodelAf {
    fn show(&self) -> String {
        self.config.show("cnq_codel_af")
    }

    fn show_stats(&self, _now: Time) -> String {
        let queues = &self.queues;
        format!("  flows {} sparse {} sce_marks {}", queues.active, queues.tokens, self.sce_marks)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, VecDeque};

    use super::*;
    use crate::base::units::Rate;
    use crate::packet::Ecn;
    use crate::qdisc::Queue;
    use crate::qdisc::sparse_bulk::Bulk;
    use bakeoff_document::run;

    fn parse(line: &str) -> Result<CnqCodelAf, TcError> {
        let mut words = Words::new(line);
        words.kind().unwrap();
        CnqCodelAf::new(&mut words, &Env::default())
    }

    fn cnq(line: &str) -> CnqCodelAf {
        parse(line).unwrap()
    }

    fn frame(hash: u32, seq: u64, now: Time) -> Packet {
        Packet { len: 1514, hash, seq, ecn: Ecn::Ect0, enqueued: now, ..Packet::default() }
    }

    /// Recounts what the counters say.
    fn check(q: &CnqCodelAf) {
        let mut counts = BTreeMap::new();
        let mut tokens = 0;
        for entry in &q.queues.bulk {
            let slot = match entry {
                Bulk::Token(slot) => {
                    tokens += 1;
                    *slot
                }
                Bulk::Packet(packet) => slot_of(packet),
            };
            *counts.entry(slot).or_insert(0) += 1;
        }
        assert_eq!(q.queues.tokens, tokens);
        assert_eq!(q.queues.active, counts.len());
        for (i, count) in q.queues.counts.iter().enumerate() {
            assert_eq!(*count, counts.get(&(i as u16)).copied().unwrap_or(0));
        }
    }

    #[test]
    fn a_token_is_counted_in_and_out() {
        let mut q = cnq("cnq_codel_af");
        let mut tally = Tally::default();
        // flow 1 three packets, flow 2 one: 1 sparse, then bulk; 2 sparse
        for (hash, seq) in [(1, 0), (1, 1), (1, 2), (2, 3)] {
            q.enqueue(frame(hash, seq, Time::ZERO), Time::ZERO, &mut tally);
            check(&q);
        }
        assert_eq!(
            (q.queues.sparse.len(), q.queues.bulk.len(), q.queues.tokens, q.queues.active),
            (2, 4, 2, 2)
        );
        assert_eq!((q.qlen(), q.backlog()), (4, 4 * 1514));
        let mut out = Vec::new();
        while let Some(packet) = q.dequeue(Time::ZERO, &mut tally) {
            out.push(packet.seq);
            check(&q);
        }
        // sparse first, in order; then flow 1's bulk
        assert_eq!(out, [0, 3, 1, 2]);
        // flow 2's token is still there: its next packet would be bulk, but for an idle queue
        assert_eq!((q.queues.tokens, q.qlen(), q.backlog()), (1, 0, 0));
        q.enqueue(frame(2, 4, Time::ZERO), Time::ZERO, &mut tally);
        check(&q);
        assert_eq!(q.queues.sparse.len(), 1);
    }

    #[test]
    fn a_sparse_packet_overtakes_and_is_never_marked() {
        let mut q = cnq("cnq_codel_af bandwidth 10mbit");
        let mut tally = Tally::default();
        for seq in 0..500 {
            q.enqueue(frame(1, seq, Time::ZERO), Time::ZERO, &mut tally);
        }
        let mut now = Time::ZERO;
        for _ in 0..200 {
            q.dequeue(now, &mut tally).unwrap();
            now = q.next_event().unwrap();
        }
        q.enqueue(frame(7, 1000, now), now, &mut tally);
        assert_eq!(q.dequeue(now, &mut tally).unwrap().seq, 1000);
        check(&q);
    }

    #[test]
    fn the_shaper_spaces_departures_and_says_when() {
        // 1514 B at 50 Mbit/s: 242.24 us
        let mut q = cnq("cnq_codel_af bandwidth 50mbit");
        let mut tally = Tally::default();
        let start = Time::from_ms(1000);
        for seq in 0..4 {
            q.enqueue(frame(1, seq, start), start, &mut tally);
        }
        for i in 0..4 {
            let due = start + Time(i * 242_240);
            assert_eq!(q.next_event(), Some(due));
            if i > 0 {
                assert!(q.dequeue(Time(due.as_ns() - 1), &mut tally).is_none());
            }
            assert_eq!(q.dequeue(due, &mut tally).unwrap().seq, i);
        }
        assert_eq!(q.next_event(), None);
        // a packet that comes before the last one's time has passed waits for the rest of it
        let soon = start + Time(3 * 242_240 + 1000);
        q.enqueue(frame(1, 4, soon), soon, &mut tally);
        assert_eq!(q.next_event(), Some(start + Time(4 * 242_240)));
        // an idle time gives no credit
        let later = Time::from_ms(2000);
        q.dequeue(later, &mut tally);
        q.enqueue(frame(1, 5, later), later, &mut tally);
        assert!(q.next_event() >= Some(later));
    }

    #[test]
    fn sojourn_is_weighted_by_share_and_flows() {
        let mut q = cnq("cnq_codel_af");
        let mut tally = Tally::default();
        // 60 % of 100 packets belong to flow 1, 40 % to flow 2; drain the sparse ones and tokens
        for seq in 0..102 {
            let hash = if seq < 61 { 1 } else { 2 };
            q.enqueue(frame(hash, seq, Time::ZERO), Time::ZERO, &mut tally);
        }
        q.dequeue(Time::ZERO, &mut tally);
        q.dequeue(Time::ZERO, &mut tally);
        let queues = &mut q.queues;
        while let Some(at) = queues.bulk.iter().position(|e| matches!(e, Bulk::Token(_))) {
            let Some(Bulk::Token(slot)) = queues.bulk.remove(at) else { unreachable!("a token stood there") };
            queues.tokens -= 1;
            queues.left(slot);
        }
        check(&q);
        assert_eq!((q.qlen(), q.queues.active, q.queues.tokens), (100, 2, 0));
        // as when a packet of each has just left: (59 + 1)*2 / (99 + 1) = 1.2 times the sojourn
        let over_at = |q: &mut CnqCodelAf, slot: u16, ns| {
            let queues = &mut q.queues;
            queues.left(slot);
            let of_slot = |e: &Bulk| matches!(e, Bulk::Packet(p) if slot_of(p) == slot);
            let at = queues.bulk.iter().position(of_slot).unwrap();
            let entry = queues.bulk.remove(at).unwrap();
            let over = weighted(queues, slot, Time(ns), &q.params).ce;
            q.queues.bulk.insert(at, entry);
            q.queues.joined(slot);
            over
        };
        // 5 ms / 1.2 = 4.1667 ms; 5 ms / 0.8 = 6.25 ms
        assert!(!over_at(&mut q, 1, 4_166_666) && over_at(&mut q, 1, 4_166_667));
        assert!(!over_at(&mut q, 2, 6_250_000) && over_at(&mut q, 2, 6_250_001));
    }

    #[test]
    fn a_flows_last_packet_is_not_dropped() {
        // With a target of 50 ns BLUE takes a step of 1/256 at each packet: from packet 257 on it
        // drops everything, all at one dequeue, but for the last one.
        for ecn in [Ecn::NotEct, Ecn::Ect0] {
            let mut q = cnq("cnq_codel_af rtt 1us");
            let mut tally = Tally::default();
            for seq in 0..600 {
                let packet = Packet { ecn, ..frame(1, seq, Time::ZERO) };
                q.enqueue(packet, Time::ZERO, &mut tally);
            }
            let mut now = Time::from_ms(100);
            let mut last = 0;
            while let Some(packet) = q.dequeue(now, &mut tally) {
                last = packet.seq;
                now += Time::from_ms(10);
            }
            check(&q);
            assert!(tally.dropped() > 300, "{}", tally.dropped());
            assert_eq!(last, 599);
        }
    }

    /// Two senders with windows, round-trip time 20 ms, 20 Mbit/s, 60 s: each window grows by its
    /// step per round and falls to 0.7 on CE, once per round. Goodput of the last 40 s in packets.
    fn two_senders(qdisc: &str, steps: [f64; 2]) -> [u64; 2] {
        let rtt = Time::from_ms(20);
        let rate = Rate(20_000_000);
        let mut q = Queue::build(&run::Qdisc::leaf(qdisc), &Env::default()).unwrap();
        let mut window = [10.0, 10.0];
        let mut flying = [0, 0];
        let mut reduced_at = [Time::ZERO; 2];
        let mut delivered = [0, 0];
        // ACKs on the way back: (arrival, flow, CE)
        let mut acks = VecDeque::new();
        let mut now = Time::ZERO;
        while now < Time::from_ms(60_000) {
            while let Some(&(at, flow, ce)) = acks.front() {
                if at > now {
                    break;
                }
                acks.pop_front();
                let flow: usize = flow;
                flying[flow] -= 1;
                if ce && at - reduced_at[flow] > rtt {
                    window[flow] = f64::max(window[flow] * 0.7, 2.0);
                    reduced_at[flow] = at;
                } else {
                    window[flow] += steps[flow] / window[flow];
                }
            }
            for flow in 0..2 {
                while f64::from(flying[flow]) < window[flow] {
                    flying[flow] += 1;
                    q.enqueue(frame(flow as u32 + 1, 0, now), now);
                }
            }
            let out = q.dequeue(now);
            if let Some(packet) = out {
                let flow = packet.hash as usize - 1;
                acks.push_back((now + rtt, flow, packet.ecn == Ecn::Ce));
                delivered[flow] += u64::from(now > Time::from_ms(20_000));
            }
            now = match (out, q.next_event()) {
                (Some(_), None) => now + rate.time_for(1514),
                (_, Some(at)) => at.max(now + Time(1)),
                (None, None) => now + Time::from_us(100),
            };
        }
        assert_eq!(q.tally.dropped(), 0);
        delivered
    }

    #[test]
    fn two_unequal_flows_become_equal() {
        // A step four times as large gives about twice the rate in a shared queue (the square
        // root of four), where both see the same marks; here each gets its own.
        let steps = [4.0, 1.0];
        let ratio = |[a, b]: [u64; 2]| a as f64 / b as f64;
        let shared = ratio(two_senders("pie ecn", steps));
        let fair = ratio(two_senders("cnq_codel_af bandwidth 20mbit", steps));
        assert!((1.8..2.2).contains(&shared), "{shared}");
        assert!((0.8..1.25).contains(&fair), "{fair}");
    }

    #[test]
    fn sce_turns_ect0_into_ect1_before_ce() {
        let mut q = cnq("cnq_codel_af bandwidth 10mbit sce-thresh 4");
        let mut tally = Tally::default();
        for seq in 0..60 {
            q.enqueue(frame(1, seq, Time::ZERO), Time::ZERO, &mut tally);
        }
        // 60 packets take 73 ms: SCE from 25 ms on, CE not before 100 ms
        let mut ect1 = 0;
        while let Some(at) = q.next_event() {
            ect1 += u64::from(q.dequeue(at, &mut tally).unwrap().ecn == Ecn::Ect1);
        }
        assert!(ect1 >= 2 && q.sce_marks == ect1 && tally.marks == 0, "{ect1}");
    }

    #[test]
    fn shows_and_refuses() {
        assert_eq!(
            cnq("cnq_codel_af bandwidth 50mbit").show(),
            "cnq_codel_af bandwidth 50Mbit rtt 100ms no-sce"
        );
        assert_eq!(
            cnq("cnq_codel_af sce-thresh 4 rtt 20ms").show(),
            "cnq_codel_af unlimited rtt 20ms sce-thresh 4"
        );
        for (line, message) in [
            ("cnq_codel_af overhead 300", "overhead: '300' is not from -64 to 256"),
            ("cnq_codel_af sce-thresh 0", "sce-thresh: '0' is not a number from 1 to 1024"),
            ("cnq_codel_af bandwith 1mbit", "did you mean 'bandwidth'?"),
        ] {
            let error = parse(line).err().unwrap().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
