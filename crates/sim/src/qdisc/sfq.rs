//! `sfq`: stochastic fairness: flows by hash, served in turn by bytes; the longest queue pays when it is full.
//!
//! Source: McKenney 1990; Linux 7.3 `net/sched/sch_sfq.c`; iproute2 `tc/q_sfq.c` (what tc derives for RED).
//!
//! Parameters: `limit` in packets (127; at most depth times flows), `depth` in packets of one flow (127, the most),
//! `flows` (128; at most `divisor` if that is given, and at most `limit`), `divisor` of the hash (1024; a power of
//! two), `quantum` in bytes (one frame, at least 256), `perturb` in seconds (0: the hash stays), `headdrop`. RED by
//! flow, on with `redflowlimit` in bytes or `min`: `min`, `max`, `avpkt` (1000), `burst`, `probability` (0.02) as in
//! [`super::red`], `ecn`, `harddrop`.
//!
//! Departures: the hash is [`Packet::hash`] mixed with a random key, no siphash over the header.
//!
//! Validation: shares of bytes, limits and who pays, heads dropped, rehashing, RED's range (tests below);
//! conservation (`tests/conservation.rs`).

use std::collections::VecDeque;

use super::red::{Action, Average, Curve, ONE, fraction, u32_size};
use super::timer::Timer;
use super::{Cause, Env, Layout, Properties, Qdisc, Statistics, Tally};
use crate::base::rng::Stream;
use crate::base::units::Time;
use crate::packet::Packet;
use bakeoff_document::tc::{TcError, Words, show};

/// The most packets of one flow.
const MAX_DEPTH: u32 = 127;
const MAX_FLOWS: u32 = 0x10000 - MAX_DEPTH - 1;
/// No slot: nobody of this hash has packets.
const EMPTY: u32 = u32::MAX;

/// Stochastic fairness queueing.
pub struct Sfq {
    config: Config,
    /// Bucket of the hash -> slot.
    table: Vec<u32>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Slots with packets, in the order of service.
    round: VecDeque<u32>,
    /// Counts changes of length: of equally long queues the one that became so last pays.
    changes: u64,
    qlen: u32,
    backlog: u64,
    key: u64,
    /// See [`Env::told_buckets`].
    told_buckets: bool,
    timer: Option<Timer>,
    hz: u64,
    rng: Stream,
    stats: Stats,
}

struct Slot {
    packets: VecDeque<Packet>,
    backlog: u64,
    bucket: u32,
    allot: i64,
    changed: u64,
    average: Average,
}

#[derive(Clone)]
struct Config {
    limit: u32,
    depth: u32,
    flows: u32,
    divisor: u32,
    quantum: u32,
    perturb_s: u32,
    headdrop: bool,
    red: Option<Curve>,
    ecn: bool,
    harddrop: bool,
}

/// What `tc -s` reports of RED.
#[derive(Default)]
struct Stats {
    prob_mark: u64,
    prob_mark_head: u64,
    prob_drop: u64,
    forced_mark: u64,
    forced_mark_head: u64,
    forced_drop: u64,
}

impl Config {
    const WORDS: [&str; 15] = [
        "limit",
        "perturb",
        "quantum",
        "depth",
        "headdrop",
        "divisor",
        "flows",
        "redflowlimit",
        "min",
        "max",
        "avpkt",
        "burst",
        "probability",
        "ecn",
        "harddrop",
    ];

    /// The words of its RED.
    const RED: [&str; 8] = ["redflowlimit", "min", "max", "avpkt", "burst", "probability", "ecn", "harddrop"];

    /// Takes the line; what the kernel is not told stays as it is.
    fn take_all(&mut self, words: &mut Words) -> Result<(), TcError> {
        let (mut limit, mut flows, mut divisor, mut depth, mut quantum) = (0, 0, 0, 0, 0);
        let (mut red_limit, mut min, mut max, mut avpkt, mut burst) = (0, 0, 0, 1000, 0);
        let (mut probability, mut asks_red) = (0.02, false);
        (self.perturb_s, self.headdrop, self.ecn, self.harddrop) = (0, false, false, false);
        while let Some(word) = words.next_word() {
            match word {
                "limit" => {
                    limit = words.u32()?;
                    if limit < 2 {
                        return Err(words.bad("limit", &limit.to_string(), "at least 2 packets"));
                    }
                }
                "perturb" => self.perturb_s = words.u32()?.min(i32::MAX as u32 / 1000),
                "quantum" => quantum = words.size()?.min(1 << 20) as u32,
                "depth" => depth = words.u32()?,
                "headdrop" => self.headdrop = true,
                "divisor" => {
                    divisor = words.u32()?;
                    if !divisor.is_power_of_two() || divisor > 65536 {
                        return Err(words.bad("divisor", &divisor.to_string(), "a power of two up to 65536"));
                    }
                }
                "flows" => flows = words.u32()?,
                "redflowlimit" => red_limit = u64::from(words.u32()?),
                "min" => min = u64::from(words.u32()?),
                "max" => max = u64::from(words.u32()?),
                "avpkt" => avpkt = u32_size(words, word)?.max(1),
                "burst" => burst = u64::from(words.u32()?),
                "probability" => probability = fraction(words, word)?,
                "ecn" => self.ecn = true,
                "harddrop" => self.harddrop = true,
                _ => return Err(words.unknown(word, &Self::WORDS)),
            }
            asks_red |= Self::RED.contains(&word);
        }
        if asks_red && red_limit == 0 {
            return Err(words.refuse(&format!("'redflowlimit' is missing; {} need it", Self::RED.join(", "))));
        }
        if quantum > 0 {
            self.quantum = quantum.max(256);
        }
        if flows > 0 {
            self.flows = flows.min(MAX_FLOWS);
        }
        if divisor > 0 {
            self.divisor = divisor;
            self.flows = self.flows.min(divisor);
        }
        if depth > 0 {
            self.depth = depth.min(MAX_DEPTH);
        }
        if limit > 0 {
            self.limit = limit.min(self.depth * self.flows);
            self.flows = self.flows.min(self.limit);
        }
        if self.limit < 2 {
            return Err(words.refuse("depth and flows leave no room for two packets"));
        }
        if asks_red {
            let curve = Curve::derive(red_limit, min, max, burst, avpkt, (probability * ONE) as u32)
                .map_err(|message| words.refuse(&message))?;
            self.red = Some(curve);
        }
        Ok(())
    }
}

impl Sfq {
    /// `sfq [limit PACKETS] [perturb SECS] [quantum BYTES] [depth PACKETS] [headdrop] [divisor N] [flows N]
    /// [redflowlimit BYTES] [min BYTES] [max BYTES] [avpkt BYTES] [burst PACKETS] [probability P] [ecn] [harddrop]`
    pub fn new(words: &mut Words, env: &Env) -> Result<Self, TcError> {
        let mut config = Config {
            limit: MAX_DEPTH,
            depth: MAX_DEPTH,
            flows: 128,
            divisor: 1024,
            quantum: env.psched_mtu().max(256),
            perturb_s: 0,
            headdrop: false,
            red: None,
            ecn: false,
            harddrop: false,
        };
        config.take_all(words)?;
        let mut rng = Stream::new(env.seed, &env.name);
        Ok(Sfq {
            table: vec![EMPTY; config.divisor as usize],
            slots: (0..config.flows).map(|_| Slot::empty()).collect(),
            free: (0..config.flows).collect(),
            round: VecDeque::new(),
            changes: 0,
            qlen: 0,
            backlog: 0,
            key: rng.u64(),
            told_buckets: env.told_buckets,
            timer: perturbation(&config, env.replaced.unwrap_or(Time::ZERO), env.hz),
            hz: env.hz,
            rng,
            stats: Stats::default(),
            config,
        })
    }

    /// Source: Linux 7.3 `sfq_hash`.
    fn bucket(&self, packet: &Packet) -> usize {
        if self.told_buckets {
            return packet.hash as usize & (self.config.divisor as usize - 1);
        }
        let mut x = u64::from(packet.hash) ^ self.key;
        x = (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        (x ^ (x >> 33)) as usize & (self.config.divisor as usize - 1)
    }

    /// The slot of the bucket, taken anew if it has none; whether it was, and none if all are taken.
    fn slot_of(&mut self, bucket: usize) -> Option<(usize, bool)> {
        if self.table[bucket] != EMPTY {
            return Some((self.table[bucket] as usize, false));
        }
        let index = self.free.pop()?;
        self.table[bucket] = index;
        let slot = &mut self.slots[index as usize];
        slot.bucket = bucket as u32;
        slot.average = Average::EMPTY;
        Some((index as usize, true))
    }

    fn push(&mut self, index: usize, packet: Packet) {
        let slot = &mut self.slots[index];
        slot.backlog += u64::from(packet.len);
        slot.packets.push_back(packet);
        self.qlen += 1;
        self.backlog += u64::from(packet.len);
        if slot.packets.len() == 1 {
            slot.allot = i64::from(self.config.quantum);
            self.round.push_back(index as u32);
        }
        self.note_change(index);
    }

    fn take(&mut self, index: usize, from_tail: bool) -> Option<Packet> {
        let slot = &mut self.slots[index];
        let packet = if from_tail { slot.packets.pop_back() } else { slot.packets.pop_front() }?;
        slot.backlog -= u64::from(packet.len);
        self.qlen -= 1;
        self.backlog -= u64::from(packet.len);
        self.note_change(index);
        if self.slots[index].packets.is_empty() {
            self.table[self.slots[index].bucket as usize] = EMPTY;
            self.free.push(index as u32);
        }
        Some(packet)
    }

    fn note_change(&mut self, index: usize) {
        self.changes += 1;
        self.slots[index].changed = self.changes;
    }

    /// Drops from the longest queue; of all with one packet, from the one that is served next.
    /// Source: Linux 7.3 `sfq_drop`.
    fn drop_from_longest(&mut self, tally: &mut Tally) {
        let by_length = |i: &u32| {
            let slot = &self.slots[*i as usize];
            (slot.packets.len(), slot.changed)
        };
        let Some(mut index) = self.round.iter().copied().max_by_key(by_length) else { return };
        if self.slots[index as usize].packets.len() == 1 {
            index = self.round.pop_front().unwrap_or(index);
        }
        if let Some(packet) = self.take(index as usize, !self.config.headdrop) {
            tally.drop(&packet, Cause::Overlimit);
        }
    }

    /// Whether RED lets the packet in, perhaps marked.
    /// Source: Linux 7.3 `sfq_enqueue`, `sfq_prob_mark`, `sfq_hard_mark`.
    fn admit(&mut self, index: usize, packet: &mut Packet, tally: &mut Tally) -> bool {
        let Some(curve) = &self.config.red else { return true };
        let slot = &mut self.slots[index];
        slot.average.update(curve, slot.backlog);
        let action = slot.average.action(curve, &mut self.rng);
        let stats = &mut self.stats;
        let (may_mark, mark, mark_head, drop) = match action {
            Action::Pass => return true,
            Action::Early => {
                (self.config.ecn, &mut stats.prob_mark, &mut stats.prob_mark_head, &mut stats.prob_drop)
            }
            Action::Hard => (
                self.config.ecn && !self.config.harddrop,
                &mut stats.forced_mark,
                &mut stats.forced_mark_head,
                &mut stats.forced_drop,
            ),
        };
        if may_mark {
            if self.config.headdrop && slot.packets.front_mut().is_some_and(|head| tally.mark(head)) {
                *mark_head += 1;
                return true;
            }
            if tally.mark(packet) {
                *mark += 1;
                return true;
            }
        }
        *drop += 1;
        false
    }

    /// A new key, when it is time; all packets find their flows anew.
    /// Source: Linux 7.3 `sfq_perturbation`, `sfq_rehash`.
    fn run_timer(&mut self, now: Time, tally: &mut Tally) {
        let Some(timer) = &mut self.timer else { return };
        let mut due = false;
        while timer.due(now).is_some() {
            due = true;
            timer.skip(now);
        }
        if !due {
            return;
        }
        self.key = self.rng.u64();
        let mut packets = Vec::with_capacity(self.qlen as usize);
        // By slot, as the kernel walks them.
        for index in 0..self.slots.len() {
            while let Some(packet) = self.take(index, false) {
                packets.push(packet);
            }
        }
        self.round.clear();
        for packet in packets {
            let bucket = self.bucket(&packet);
            match self.slot_of(bucket) {
                Some((index, _)) if self.slots[index].packets.len() < self.config.depth as usize => {
                    let slot = &mut self.slots[index];
                    if let Some(curve) = &self.config.red {
                        slot.average.update(curve, slot.backlog);
                    }
                    self.push(index, packet);
                }
                _ => tally.drop(&packet, Cause::Overlimit),
            }
        }
    }
}

impl Slot {
    fn empty() -> Self {
        Slot {
            packets: VecDeque::new(),
            backlog: 0,
            bucket: 0,
            allot: 0,
            changed: 0,
            average: Average::EMPTY,
        }
    }
}

fn perturbation(config: &Config, now: Time, hz: u64) -> Option<Timer> {
    let period = Time(u64::from(config.perturb_s) * 1_000_000_000);
    (config.perturb_s > 0).then(|| Timer::after(now, period, hz))
}

impl Qdisc for Sfq {
    const PROPERTIES: Properties =
        Properties { layout: Layout::LinesFirst, work_conserving: true, ..Properties::DEFAULT };

    /// Source: McKenney 1990; Linux 7.3 `sfq_enqueue`.
    fn enqueue(&mut self, mut packet: Packet, now: Time, tally: &mut Tally) {
        self.run_timer(now, tally);
        let bucket = self.bucket(&packet);
        let Some((index, is_new)) = self.slot_of(bucket) else {
            tally.drop(&packet, Cause::Overlimit);
            return;
        };
        if !is_new {
            let admitted = self.admit(index, &mut packet, tally);
            let full = self.slots[index].packets.len() >= self.config.depth as usize;
            if !admitted || full {
                let cause = if admitted { Cause::Overlimit } else { Cause::Aqm };
                if !self.config.headdrop {
                    tally.drop(&packet, cause);
                    return;
                }
                // The newcomer takes the place of the head; the flow keeps its turn.
                let slot = &mut self.slots[index];
                if let Some(head) = slot.packets.pop_front() {
                    slot.backlog = slot.backlog - u64::from(head.len) + u64::from(packet.len);
                    self.backlog = self.backlog - u64::from(head.len) + u64::from(packet.len);
                    tally.drop(&head, cause);
                    slot.packets.push_back(packet);
                }
                return;
            }
        }
        self.push(index, packet);
        if self.qlen > self.config.limit {
            self.drop_from_longest(tally);
        }
    }

    /// Source: McKenney 1990; Linux 7.3 `sfq_dequeue`.
    fn dequeue(&mut self, now: Time, tally: &mut Tally) -> Option<Packet> {
        self.run_timer(now, tally);
        loop {
            let index = *self.round.front()? as usize;
            if self.slots[index].allot <= 0 {
                self.slots[index].allot += i64::from(self.config.quantum);
                self.round.rotate_left(1);
                continue;
            }
            let packet = self.take(index, false)?;
            let slot = &mut self.slots[index];
            if slot.packets.is_empty() {
                self.round.pop_front();
            } else {
                slot.allot -= i64::from(packet.len);
            }
            return Some(packet);
        }
    }

    fn qlen(&self) -> usize {
        self.qlen as usize
    }

    fn backlog(&self) -> u64 {
        self.backlog
    }

    /// As in Linux, where tc sends what it was told: the tables keep their sizes, packets above a lowered limit are
    /// dropped from the longest queues.
    fn change(&mut self, words: &mut Words, now: Time, tally: &mut Tally) -> Result<(), TcError> {
        let mut config = self.config.clone();
        config.take_all(words)?;
        if config.divisor as usize != self.table.len() || config.flows as usize > self.slots.len() {
            return Err(
                words.refuse("the tables keep their sizes: the divisor, and no more flows than before")
            );
        }
        self.timer = perturbation(&config, now, self.hz);
        self.config = config;
        while self.qlen > self.config.limit {
            self.drop_from_longest(tally);
        }
        Ok(())
    }
}

impl Statistics for Sfq {
    fn show(&self) -> String {
        let c = &self.config;
        let mut parts = vec![format!(
            "sfq limit {}p quantum {} depth {}",
            c.limit,
            show::size(u64::from(c.quantum)),
            c.depth
        )];
        if c.headdrop {
            parts.push("headdrop".into());
        }
        parts.push(format!("flows {} divisor {}", c.flows, c.divisor));
        if c.perturb_s > 0 {
            parts.push(format!("perturb {}sec", c.perturb_s));
        }
        if let Some(red) = &c.red {
            parts.push(format!(
                "ewma {} min {} max {} probability {}",
                red.wlog,
                show::size(red.min),
                show::size(red.max),
                show::general(f64::from(red.max_p) / ONE, 6)
            ));
            let modes = [(c.ecn, "ecn"), (c.harddrop, "harddrop")];
            parts.extend(modes.into_iter().filter(|(on, _)| *on).map(|(_, word)| word.to_owned()));
        }
        parts.join(" ")
    }

    /// What RED decided.
    fn overlimits(&self) -> u64 {
        let s = &self.stats;
        s.prob_mark + s.prob_mark_head + s.prob_drop + s.forced_mark + s.forced_mark_head + s.forced_drop
    }

    fn show_stats(&self, _now: Time) -> String {
        if self.config.red.is_none() {
            return String::new();
        }
        let s = &self.stats;
        format!(
            "  prob_mark {} prob_mark_head {} prob_drop {}\n  forced_mark {} forced_mark_head {} forced_drop {}",
            s.prob_mark, s.prob_mark_head, s.prob_drop, s.forced_mark, s.forced_mark_head, s.forced_drop
        )
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

    fn frame(flow: u16, len: u32) -> Packet {
        Packet {
            flow,
            hash: u32::from(flow).wrapping_mul(0x9e37_79b1),
            len,
            ecn: Ecn::Ect0,
            ..Packet::default()
        }
    }

    fn take(q: &mut Queue, n: usize) -> Vec<u16> {
        (0..n).map_while(|_| q.dequeue(Time::ZERO).map(|p| p.flow)).collect()
    }

    #[test]
    fn flows_share_bytes() {
        let mut q = queue("sfq limit 3000");
        for _ in 0..100 {
            q.enqueue(frame(1, 1514), Time::ZERO);
            q.enqueue(frame(2, 500), Time::ZERO);
        }
        let out = take(&mut q, 120);
        let bytes = |flow, len| len * out.iter().filter(|f| **f == flow).count() as i64;
        // rounds of one quantum each, at most one packet apart
        assert!((bytes(1, 1514) - bytes(2, 500)).abs() <= 1514 + 500);
    }

    #[test]
    fn the_longest_queue_pays_with_its_tail() {
        let mut q = queue("sfq limit 4");
        for (flow, seq) in [(1, 0), (1, 1), (1, 2), (2, 0), (3, 0)] {
            q.enqueue(Packet { seq, ..frame(flow, 100) }, Time::ZERO);
        }
        assert_eq!(q.tally.dropped(), 1);
        let out: Vec<_> = std::iter::from_fn(|| q.dequeue(Time::ZERO)).map(|p| (p.flow, p.seq)).collect();
        // 100 bytes of a quantum of 1514: flow 1 sends both of its packets in one turn
        assert_eq!(out, [(1, 0), (1, 1), (2, 0), (3, 0)]);
    }

    #[test]
    fn with_headdrop_a_full_flow_loses_its_oldest() {
        let mut q = queue("sfq depth 2 headdrop");
        for seq in 0..4 {
            q.enqueue(Packet { seq, ..frame(1, 100) }, Time::ZERO);
        }
        let out: Vec<_> = std::iter::from_fn(|| q.dequeue(Time::ZERO)).map(|p| p.seq).collect();
        assert_eq!((out, q.tally.dropped()), (vec![2, 3], 2));
    }

    #[test]
    fn a_new_key_keeps_every_packet_of_a_flow_in_order() {
        let mut q = queue("sfq limit 1000 perturb 1");
        for seq in 0..50 {
            for flow in 1..4 {
                q.enqueue(Packet { seq, ..frame(flow, 100) }, Time::from_ms(seq * 30));
            }
        }
        let mut last = [0; 4];
        while let Some(packet) = q.dequeue(Time::from_ms(5_000)) {
            assert!(packet.seq >= last[usize::from(packet.flow)]);
            last[usize::from(packet.flow)] = packet.seq;
        }
        assert_eq!((q.tally.sent, q.tally.dropped()), (150, 0));
    }

    #[test]
    fn red_marks_a_flow_above_its_range_and_leaves_a_short_one_alone() {
        // avg = backlog/8 a packet (ewma 3): 120 packets of 1000 B are far above max 25000
        let mut q = queue("sfq limit 1000 redflowlimit 100000 ecn");
        for _ in 0..120 {
            q.enqueue(frame(1, 1000), Time::ZERO);
        }
        for _ in 0..5 {
            q.enqueue(frame(2, 1000), Time::ZERO);
        }
        assert!(q.tally.flows[1].marks > 50, "{:?}", q.tally.flows[1]);
        assert_eq!(q.tally.flows.iter().skip(2).map(|f| f.marks + f.drops).sum::<u64>(), 0);
        assert!(q.show_stats(Time::ZERO).starts_with("  prob_mark "));
    }

    #[test]
    fn words_of_red_need_its_limit() {
        for words in ["min 8000", "max 60000", "avpkt 1000", "burst 5", "probability 0.1", "ecn", "harddrop"]
        {
            let line = format!("sfq {words}");
            let error =
                Queue::build(&run::Qdisc::leaf(&line), &Env::default()).map(|q| q.show()).unwrap_err();
            assert!(error.to_string().starts_with("'redflowlimit' is missing"), "{error}");
        }
        let line = "sfq redflowlimit 100kb";
        let error = Queue::build(&run::Qdisc::leaf(line), &Env::default()).map(|q| q.show()).unwrap_err();
        assert!(error.to_string().starts_with("redflowlimit: '100kb' is not a whole number"), "{error}");
    }

    #[test]
    fn the_configuration_is_shown_as_tc_does() {
        assert_eq!(queue("sfq").show(), "sfq limit 127p quantum 1514b depth 127 flows 128 divisor 1024");
        assert_eq!(
            queue(
                "sfq limit 3000 depth 24 headdrop min 8000 max 60000 probability 0.20 ecn redflowlimit 100000"
            )
            .show(),
            "sfq limit 3000p quantum 1514b depth 24 headdrop flows 128 divisor 1024 ewma 6 min 8000b max 60000b \
             probability 0.2 ecn"
        );
        let error = |line: &str| {
            Queue::build(&run::Qdisc::leaf(line), &Env::default()).map(|q| q.show()).unwrap_err().to_string()
        };
        assert!(error("sfq limit 1").starts_with("limit: '1' is not at least 2 packets"));
        assert!(error("sfq divisor 1000").starts_with("divisor: '1000' is not a power of two"));
    }
}
