//! `cake`: common applications kept enhanced: shaper, tins by codepoint, flow and host isolation, COBALT.
//!
//! Source: Linux 7.3 `net/sched/sch_cake.c`; Høiland-Jørgensen et al., "Piece of CAKE", 2018; `man tc-cake`. `cake@sce`
//! adds the words `sce`, `sce-thresh N` and `no-sce` of chromi/sce `net/sched/sch_cake.c`.
//!
//! Parameters (tc's words, its defaults first): `unlimited` or `bandwidth` RATE, `autorate-ingress`; `diffserv3`,
//! `diffserv4`, `diffserv8`, `precedence`, `besteffort`; `triple-isolate`, `dual-srchost`, `dual-dsthost`, `hosts`, `flows`,
//! `srchost`, `dsthost`, `flowblind`; `nonat`, `nat`; `nowash`, `wash`; `egress`, `ingress`; `no-ack-filter`, `ack-filter`,
//! `ack-filter-aggressive`; `split-gso`, `no-split-gso`; `rtt` TIME (100 ms; target rtt/20) or its names from `datacentre` to
//! `interplanetary`; overhead words ([`super::framing`]); `memlimit` SIZE; `fwmark` MASK. In `cake@sce`: `sce-thresh` N (off; `sce`
//! is 1).
//!
//! Departures: a flow is [`Packet::hash`], a host is a node. No address is translated, no packet has a mark:
//! `nat`, `fwmark` and their opposites choose between equals, as they do on Linux in such a network. Of segments that are
//! split each one is judged by `memlimit` and `autorate-ingress`, not only the last. A packet's memory is that of fq_codel's. The SCE tree's cake is Linux 7.3's plus the ramp; that of its own
//! kernel, 5.1, differs in how a host's flows are counted. Not modelled: tc filters and `skb->priority`.
//!
//! Validation: each file's tests; here the shaper's closed form, shares by flow, host and tin, memory; the same
//! statistics as Linux's (below); conservation (`tests/conservation.rs`); the real kernel (docs/validation/results.md).

mod ack_filter;
mod autorate;
mod cobalt;
mod hash;
mod overflow;
mod shaper;
mod stats;
mod tin;
mod tins;

use std::sync::Arc;

use super::framing::adjusted_len;
use super::{Cause, Env, Hints, Layout, Properties, Qdisc, Statistics, Tally};
use crate::base::rng::Stream;
use crate::base::units::{Rate, Time};
use crate::packet::Packet;
use crate::packet::charge::truesize;
use autorate::Autorate;
use bakeoff_document::qdisc::cake::{AckFilter, Config, Version};
use bakeoff_document::tc::{TcError, Words};
use hash::Hashes;
use overflow::Overflow;
use shaper::Pace;
use stats::{Lengths, statistics};
use tin::{Queued, Tin};

/// The qdisc; see the module's documentation.
pub struct Cake {
    config: Config,
    psched_mtu: u32,
    tins: Vec<Tin>,
    /// Whose turn it is among the tins when bandwidth is unlimited.
    turn: usize,
    pace: Pace,
    /// When the shaper lets the next packet go, and when it does at the latest.
    time_next: i64,
    failsafe_next: i64,
    overflow: Overflow,
    qlen: usize,
    backlog: u64,
    memory: u64,
    memory_max: u64,
    memory_limit: u64,
    autorate: Autorate,
    lengths: Lengths,
    sce_marks: u64,
    overlimits: u64,
    /// The nodes at both ends of each flow.
    endpoints: Arc<[[u16; 2]]>,
    rng: Stream,
}

impl Cake {
    /// `cake` with tc's words; see the module's documentation.
    pub fn mainline(words: &mut Words, env: &Env) -> Result<Self, TcError> {
        Self::parse(words, env, Version::Mainline)
    }

    /// `cake@sce`: as [`Cake::mainline`], with `sce`, `sce-thresh N` and `no-sce`.
    pub fn sce(words: &mut Words, env: &Env) -> Result<Self, TcError> {
        Self::parse(words, env, Version::Sce)
    }

    fn parse(words: &mut Words, env: &Env, version: Version) -> Result<Self, TcError> {
        let mut config = Config::new(version);
        config.take_all(words)?;
        let mut cake = Cake {
            autorate: Autorate::new(config.bytes_per_s()),
            config,
            psched_mtu: env.psched_mtu(),
            tins: Vec::new(),
            turn: 0,
            pace: Pace::UNLIMITED,
            time_next: 0,
            failsafe_next: 0,
            overflow: Overflow::new(),
            qlen: 0,
            backlog: 0,
            memory: 0,
            memory_max: 0,
            memory_limit: 0,
            lengths: Lengths::NONE,
            sce_marks: 0,
            overlimits: 0,
            endpoints: env.endpoints.clone(),
            rng: Stream::new(env.seed, &env.name),
        };
        cake.configure();
        Ok(cake)
    }

    /// Makes tins, rates and limits what the configuration says; there are enough tins afterwards.
    /// Source: Linux 7.3 `cake_reconfigure`.
    fn configure(&mut self) {
        let shares = tins::shares(self.config.diffserv, self.config.bytes_per_s());
        while self.tins.len() < shares.len() {
            self.tins.push(Tin::new());
        }
        for (tin, (rate, quantum)) in self.tins.iter_mut().zip(shares) {
            tin.configure(rate, quantum, self.psched_mtu, &self.config);
        }
        self.pace = self.tins[0].pace;
        self.memory_limit = self.config.buffer_limit(self.psched_mtu);
    }

    fn hashes(&self, packet: &Packet) -> Hashes {
        let ends = self.endpoints.get(usize::from(packet.flow));
        let source = ends.map_or(0, |ends| if ends[0] == packet.dst { ends[1] } else { ends[0] });
        // Odd, hence no two nodes have the same lower bits.
        let spread = |node: u16| (u32::from(node) + 1).wrapping_mul(0x9e37_79b1);
        let (src, dst) = (spread(source), spread(packet.dst));
        let isolation = self.config.isolation;
        let chosen = |on: bool, hash: u32| if on { hash } else { 0 };
        let flow = if isolation.flows {
            packet.hash
        } else {
            chosen(isolation.src, src) ^ chosen(isolation.dst, dst)
        };
        Hashes { flow, src, dst }
    }

    /// Takes a packet that has left its queue out of all accounts.
    fn account_out(&mut self, tin: usize, queue: usize, packet: &Packet) {
        self.qlen -= 1;
        self.backlog -= u64::from(packet.len);
        self.memory -= truesize(packet);
        self.tins[tin].backlog -= u64::from(packet.len);
        self.overflow.shrink(overflow::id(tin, queue), packet.len.max(1));
    }

    fn pop(&mut self, tin: usize, queue: usize) -> Option<Queued> {
        let queued = self.tins[tin].flows[queue].packets.pop_front()?;
        self.account_out(tin, queue, &queued.packet);
        Some(queued)
    }

    /// Drops the head of the longest queue. Source: Linux 7.3 `cake_drop`.
    fn drop_from_longest(&mut self, now: Time, tally: &mut Tally) {
        let (tin, queue) = self.overflow.longest();
        let Some(queued) = self.pop(tin, queue) else { return };
        let t = &mut self.tins[tin];
        if t.flows[queue].cobalt.queue_full(&t.params, now) {
            t.stats.unresponsive_flows += 1;
        }
        t.stats.drops += 1;
        if self.config.ingress {
            self.charge(tin, queued.adjusted_len, now, true);
        }
        tally.drop(&queued.packet, Cause::Overlimit);
    }

    /// Charges the shapers of the tin and of the whole for a packet. A dropped packet (ingress mode) does not
    /// move the latest time. Source: Linux 7.3 `cake_advance_shaper`.
    fn charge(&mut self, tin: usize, len: u32, now: Time, dropped: bool) {
        if self.pace.is_unlimited() {
            return;
        }
        let now = now.as_ns() as i64;
        let t = &mut self.tins[tin];
        let by_tin = t.pace.time_for(len);
        if t.time_next < now {
            t.time_next += by_tin;
        } else {
            t.time_next = t.time_next.max(now + by_tin);
        }
        let by_all = self.pace.time_for(len);
        self.time_next += by_all;
        if !dropped {
            self.failsafe_next += by_all + by_all / 2;
        }
    }

    /// The tin to serve: by its clock when shaped (of those that are due the last, else the earliest), by
    /// deficit when not. Source: Linux 7.3 `cake_dequeue`.
    fn choose_tin(&mut self, now: Time) -> Option<usize> {
        if self.pace.is_unlimited() {
            return self.choose_tin_by_deficit();
        }
        let now = now.as_ns() as i64;
        let (mut best, mut best_wait) = (None, i64::MAX);
        for (i, tin) in self.tins.iter().enumerate().filter(|(_, tin)| tin.is_active()) {
            let wait = tin.time_next - now;
            if wait <= 0 || wait <= best_wait {
                (best, best_wait) = (Some(i), wait);
            }
        }
        best
    }

    /// Source: Linux 7.3 `cake_dequeue`.
    fn choose_tin_by_deficit(&mut self) -> Option<usize> {
        if !self.tins.iter().any(Tin::is_active) {
            return None;
        }
        loop {
            let tin = &mut self.tins[self.turn];
            if tin.deficit >= 0 && tin.is_active() {
                return Some(self.turn);
            }
            if tin.deficit <= 0 {
                tin.deficit += tin.quantum;
            }
            self.turn = (self.turn + 1) % self.tins.len();
        }
    }

    /// Serves the tin's queues until a packet leaves or a queue turns out to be empty.
    /// Source: RFC 8290, section 4.2 (DRR++); Linux 7.3 `cake_dequeue`.
    fn serve(&mut self, tin: usize, now: Time, first: &mut bool, tally: &mut Tally) -> Option<Packet> {
        let isolation = self.config.isolation;
        'queues: loop {
            let t = &mut self.tins[tin];
            let queue = t.next_flow(std::mem::take(first))?;
            if t.flows[queue].deficit <= 0 {
                t.rotate(queue, isolation, &mut self.rng);
                continue;
            }
            loop {
                let Some(Queued { mut packet, adjusted_len }) = self.pop(tin, queue) else {
                    self.tins[tin].emptied(queue, isolation, now);
                    return None;
                };
                let t = &mut self.tins[tin];
                let bulk = if self.config.ingress { u64::from(t.bulk_flows) } else { 0 };
                let flow = &mut t.flows[queue];
                let verdict = flow.cobalt.dequeue(&t.params, now, &packet, bulk, &mut self.rng);
                // The last packet of a queue may be marked, not dropped.
                if let Some(cause) = verdict.drop
                    && !flow.packets.is_empty()
                {
                    t.stats.drops += 1;
                    tally.drop(&packet, cause);
                    if self.config.ingress {
                        self.pay(tin, queue, adjusted_len, now, true);
                        continue 'queues;
                    }
                    continue;
                }
                if verdict.mark {
                    t.stats.marks += 1;
                    tally.mark(&mut packet);
                } else if cobalt::sce(self.config.sce_thresh, t.params.target, now, &packet, &mut self.rng) {
                    self.sce_marks += u64::from(tally.mark_sce(&mut packet));
                }
                t.note_delay(now - packet.enqueued);
                self.pay(tin, queue, adjusted_len, now, false);
                self.overflow.sent();
                return Some(packet);
            }
        }
    }

    fn pay(&mut self, tin: usize, queue: usize, len: u32, now: Time, dropped: bool) {
        self.charge(tin, len, now, dropped);
        self.tins[tin].flows[queue].deficit -= i64::from(len);
        self.tins[tin].deficit -= i64::from(len);
    }

    /// A packet that has just joined the queue may make an older acknowledgement superfluous; gives its
    /// length.
    fn filter_acks(&mut self, tin: usize, queue: usize, now: Time, tally: &mut Tally) -> Option<u32> {
        if self.config.ack_filter == AckFilter::Off {
            return None;
        }
        let t = &mut self.tins[tin];
        let packets = &mut t.flows[queue].packets;
        let at = ack_filter::superfluous(self.config.ack_filter, packets)?;
        let ack = packets.remove(at)?;
        t.stats.ack_drops += 1;
        self.memory -= truesize(&ack.packet);
        self.qlen -= 1;
        tally.drop(&ack.packet, Cause::Aqm);
        if self.config.ingress {
            self.charge(tin, ack.adjusted_len, now, true);
        }
        Some(ack.packet.len)
    }
}

impl Qdisc for Cake {
    const PROPERTIES: Properties = Properties { layout: Layout::EmptyLineLast, ..Properties::DEFAULT };

    /// Source: Linux 7.3 `cake_enqueue`.
    fn enqueue(&mut self, mut packet: Packet, now: Time, tally: &mut Tally) {
        let tin = tins::tin_of(self.config.diffserv, packet.dscp);
        if self.config.wash {
            packet.dscp = 0;
        }
        let hashes = self.hashes(&packet);
        let isolation = self.config.isolation;
        let t = &mut self.tins[tin];
        let queue = t.classify(hashes, isolation);
        let ns = now.as_ns() as i64;
        if t.backlog == 0 {
            t.time_next = t.time_next.max(ns);
            if self.qlen == 0 && self.time_next < ns {
                self.time_next = ns;
                self.failsafe_next = ns;
            }
        }
        let framing = self.config.framing;
        let adjusted_len = adjusted_len(framing, &packet);
        if packet.gso_size == 0 {
            self.lengths.note(framing.network_len(packet.len), adjusted_len);
        } else {
            for frame in [packet.segment(0), packet.segment(packet.segs() - 1)] {
                self.lengths.note(framing.network_len(frame.len), framing.adjusted_len(frame.len));
            }
        }
        t.stats.max_len = t.stats.max_len.max(packet.len);
        t.flows[queue].packets.push_back(Queued { packet, adjusted_len });
        self.qlen += 1;
        self.memory += truesize(&packet);
        let ack = self.filter_acks(tin, queue, now, tally);
        // Of empty packets, too, a queue of many is longer than one of none.
        self.overflow.grow(overflow::id(tin, queue), packet.len.max(1), ack.map_or(0, |len| len.max(1)));
        let len = u64::from(packet.len);
        let filtered = u64::from(ack.unwrap_or(0));
        self.backlog = self.backlog + len - filtered;
        let t = &mut self.tins[tin];
        t.stats.packets += 1;
        t.stats.bytes += len;
        t.backlog = t.backlog + len - filtered;
        if !self.config.autorate_ingress {
            self.autorate.pass(now);
        } else if let Some(rate) = self.autorate.arrived(now, len.saturating_sub(filtered)) {
            self.config.bandwidth = Some(Rate(rate * 8)).filter(|rate| rate.bits_per_s() > 0);
            self.configure();
        }
        self.tins[tin].arrived(queue, isolation, &mut self.rng);
        self.memory_max = self.memory_max.max(self.memory);
        while self.memory > self.memory_limit {
            self.drop_from_longest(now, tally);
        }
    }

    /// Source: Linux 7.3 `cake_dequeue`.
    fn dequeue(&mut self, now: Time, tally: &mut Tally) -> Option<Packet> {
        let ns = now.as_ns() as i64;
        let mut first = true;
        while self.qlen > 0 && (self.time_next <= ns || self.failsafe_next <= ns) {
            let tin = self.choose_tin(now)?;
            if let Some(packet) = self.serve(tin, now, &mut first, tally) {
                return Some(packet);
            }
        }
        self.overlimits += u64::from(self.qlen > 0);
        None
    }

    fn next_event(&self) -> Option<Time> {
        (self.qlen > 0).then(|| Time(self.time_next.min(self.failsafe_next).max(0) as u64))
    }

    fn qlen(&self) -> usize {
        self.qlen
    }

    fn backlog(&self) -> u64 {
        self.backlog
    }

    /// What is not named stays. Packets in tins that are no longer used are dropped, as in Linux.
    fn change(&mut self, words: &mut Words, _now: Time, tally: &mut Tally) -> Result<(), TcError> {
        let mut config = self.config.clone();
        config.take_all(words)?;
        if config.framing != self.config.framing {
            self.lengths.forget();
        }
        self.config = config;
        self.configure();
        let used = tins::shares(self.config.diffserv, 0).len();
        for tin in used..self.tins.len() {
            for queue in 0..tin::QUEUES {
                while let Some(queued) = self.pop(tin, queue) {
                    tally.drop(&queued.packet, Cause::Overlimit);
                }
            }
        }
        self.tins.truncate(used);
        self.turn = 0;
        Ok(())
    }

    fn segments(&self, _packet: &Packet) -> bool {
        self.config.split_gso
    }

    fn hints(&self) -> Hints {
        Hints { marks_sce: self.config.sce_thresh > 0, ..Hints::default() }
    }
}

impl Statistics for Cake {
    fn overlimits(&self) -> u64 {
        self.overlimits
    }

    fn show(&self) -> String {
        self.config.show(self.config.name())
    }

    fn show_stats(&self, _now: Time) -> String {
        statistics(self).show()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Ecn, Flags};
    use crate::qdisc::Queue;
    use bakeoff_document::run;

    /// Nodes: source `flow` / 100, destination 50 + `flow` % 10.
    fn env() -> Env {
        let ends = (0..1000).map(|flow| [flow / 100, 50 + flow % 10]).collect();
        Env { endpoints: ends, ..Env::default() }
    }

    fn queue(line: &str) -> Queue {
        Queue::build(&run::Qdisc::leaf(line), &env()).unwrap()
    }

    fn frame(flow: u16, len: u32) -> Packet {
        let dst = 50 + flow % 10;
        // hashes of eight flows per set, no two at home in the same queue
        Packet { flow, dst, hash: u32::from(flow) + 1, len, ecn: Ecn::Ect0, ..Packet::default() }
    }

    /// Each packet that leaves is followed by another of its flow: `backlog` of each kind stand all the time.
    /// The bytes that left in `seconds`, by kind.
    fn saturate(q: &mut Queue, kinds: &[Packet], backlog: usize, seconds: f64) -> Vec<u64> {
        let mut now = Time::from_ms(1000);
        let end = now + Time::from_secs_f64(seconds);
        for _ in 0..backlog {
            for kind in kinds {
                q.enqueue(*kind, now);
            }
        }
        let mut bytes = vec![0; kinds.len()];
        while now < end {
            let packet = q.dequeue(now).unwrap();
            let kind = kinds.iter().position(|k| (k.flow, k.dscp) == (packet.flow, packet.dscp)).unwrap();
            bytes[kind] += u64::from(packet.len);
            q.enqueue(kinds[kind], now);
            now = now.max(q.next_event().unwrap());
        }
        bytes
    }

    #[test]
    fn the_shaper_is_its_closed_form() {
        // bytes on the link per 1514-byte frame: raw; 1500 + 38; 33 ATM cells; 1530 + 24 PTM bytes
        for (words, adjusted) in
            [("", 1514), ("ethernet", 1538), ("pppoe-llcsnap", 33 * 53), ("pppoe-ptm", 1554)]
        {
            let mut q = queue(&format!("cake bandwidth 50mbit besteffort {words}"));
            let start = Time::from_ms(1000);
            for _ in 0..1000 {
                q.enqueue(frame(1, 1514), start);
            }
            for i in 0..1000_u64 {
                // 160 ns per byte
                let due = start + Time(i * adjusted * 160);
                assert_eq!(q.next_event(), Some(due));
                assert!(i == 0 || q.dequeue(Time(due.as_ns() - 1)).is_none());
                assert!(q.dequeue(due).is_some());
            }
            // an idle time gives no credit
            let later = Time::from_ms(5000);
            q.enqueue(frame(1, 1514), later);
            assert_eq!(q.next_event(), Some(later));
        }
    }

    #[test]
    fn the_rate_holds_at_any_bandwidth() {
        for (bandwidth, bits) in [("100kbit", 1e5), ("3mbit", 3e6), ("1gbit", 1e9), ("10gbit", 1e10)] {
            let mut q = queue(&format!("cake bandwidth {bandwidth}"));
            let seconds = 2e8 / bits; // 25 MB
            let sent = saturate(&mut q, &[frame(1, 1514), frame(2, 300)], 3, seconds);
            let rate = sent.iter().sum::<u64>() as f64 * 8.0 / seconds;
            // As in the kernel a packet's time is cut off to whole nanoseconds: 1 of 240 at 10 Gbit/s.
            assert!((rate / bits - 1.0).abs() < 5e-3, "{bandwidth}: {rate}");
        }
    }

    #[test]
    fn flows_share_bytes_whatever_their_packets() {
        for n in [1, 2, 8, 64] {
            let kinds: Vec<Packet> = (0..n).map(|f| frame(f, 1514 - 20 * u32::from(f))).collect();
            let mut q = queue("cake bandwidth 100mbit flows besteffort");
            let sent = saturate(&mut q, &kinds, 5, 2.0);
            let mean = sent.iter().sum::<u64>() as f64 / f64::from(n);
            for bytes in sent {
                // a quantum and a packet more or less than the others
                assert!((bytes as f64 - mean).abs() < 2.0 * 1514.0 + 1e-3 * mean, "{n}: {bytes} {mean}");
            }
        }
    }

    #[test]
    fn a_host_s_flows_share_one_part() {
        // source 0 has one flow, source 1 has n; 64 flows come to each of ten destinations in turn
        for n in [1_u16, 2, 8, 64] {
            let flows: Vec<u16> = std::iter::once(9).chain(100..100 + n).collect();
            let kinds: Vec<Packet> = flows.iter().map(|flow| frame(*flow, 1514)).collect();
            let (source, destination) = (|flow: u16| flow / 100, |flow: u16| flow % 10);
            for (words, by_src, by_dst) in [
                ("flows", false, false),
                ("dual-srchost", true, false),
                ("dual-dsthost", false, true),
                ("triple-isolate", true, true),
            ] {
                // a flow's part is one over the number of flows of its busier host
                let parts: Vec<f64> = (flows.iter())
                    .map(|flow| {
                        let src = flows.iter().filter(|f| source(**f) == source(*flow)).count();
                        let dst = flows.iter().filter(|f| destination(**f) == destination(*flow)).count();
                        1.0 / (if by_src { src } else { 1 }).max(if by_dst { dst } else { 1 }) as f64
                    })
                    .collect();
                let want = parts[0] / parts.iter().sum::<f64>();
                let mut q = queue(&format!("cake bandwidth 100mbit besteffort {words}"));
                let sent = saturate(&mut q, &kinds, 5, 4.0);
                let got = sent[0] as f64 / sent.iter().sum::<u64>() as f64;
                assert!((got / want - 1.0).abs() < 0.01, "{words} {n}: {got} {want}");
                // one flow against n has half
                assert!(words != "dual-srchost" || (got - 0.5).abs() < 0.005, "{n}: {got}");
            }
        }
    }

    #[test]
    fn tins_share_by_threshold_when_shaped_and_by_quantum_when_not() {
        let kind = |flow, dscp| Packet { dscp, ..frame(flow, 1514) };
        // best effort, bulk (CS1), voice (EF): thresholds 1, 1/16, 1/4. Voice and bulk want more than
        // theirs: 1/4 and 1/16 of the bandwidth are theirs, best effort has the rest.
        let kinds = [kind(0, 0), kind(1, 8), kind(2, 46)];
        let parts = |line: &str| {
            let sent = saturate(&mut queue(line), &kinds, 20, 4.0);
            let all = sent.iter().sum::<u64>() as f64;
            sent.into_iter().map(|bytes| bytes as f64 / all).collect::<Vec<f64>>()
        };
        let got = parts("cake bandwidth 50mbit diffserv3");
        for (got, want) in got.iter().zip([11.0 / 16.0, 1.0 / 16.0, 1.0 / 4.0]) {
            assert!((got / want - 1.0).abs() < 0.02, "{got} {want}");
        }
        // one tin: a third each
        assert!(parts("cake bandwidth 50mbit besteffort").iter().all(|p| (p * 3.0 - 1.0).abs() < 0.01));
        // unlimited: 1024, 64, 256 of 1344
        let mut q = queue("cake");
        let mut sent = [0_u32; 3];
        for i in 0..30_000 {
            if i % 10 == 0 {
                for kind in kinds {
                    (0..10).for_each(|_| q.enqueue(kind, Time::ZERO));
                }
            }
            sent[usize::from(q.dequeue(Time::ZERO).unwrap().flow)] += 1;
        }
        for (got, want) in sent.iter().zip([1024.0, 64.0, 256.0]) {
            assert!((f64::from(*got) / (30_000.0 * want / 1344.0) - 1.0).abs() < 0.02, "{sent:?}");
        }
    }

    #[test]
    fn a_sparse_flow_s_packet_overtakes() {
        let mut q = queue("cake bandwidth 10mbit");
        let start = Time::from_ms(1000);
        (0..100).for_each(|_| q.enqueue(frame(1, 1514), start));
        let mut now = start;
        for _ in 0..50 {
            q.dequeue(now).unwrap();
            now = q.next_event().unwrap();
        }
        q.enqueue(frame(2, 100), now);
        assert_eq!(q.dequeue(now).unwrap().flow, 2);
    }

    #[test]
    fn memory_is_taken_from_the_longest_queue() {
        // truesize of 1514 B: 2304; 20 of them are 46080
        let mut q = queue("cake bandwidth 10mbit memlimit 46080");
        (0..15).for_each(|_| q.enqueue(frame(1, 1514), Time::ZERO));
        (0..8).for_each(|_| q.enqueue(frame(2, 1514), Time::ZERO));
        assert_eq!((q.qlen(), q.tally.flows[1].drops), (20, 3));
        assert!(
            q.show_stats(Time::ZERO).starts_with(" memory used: 48384b of 45Kb\n"),
            "{}",
            q.show_stats(Time::ZERO)
        );
    }

    #[test]
    fn blue_stays_up_while_the_queue_does_not_empty() {
        // Overload in an ECN-capable flow: each overflow raises BLUE, which nothing lowers before the queue
        // is found empty.
        let mut q = queue("cake bandwidth 10mbit besteffort memlimit 100kb");
        let mut now = Time::from_ms(1000);
        for _ in 0..2000 {
            (0..2).for_each(|_| q.enqueue(frame(1, 1514), now));
            now = now.max(q.next_event().unwrap());
            q.dequeue(now);
        }
        let before = q.tally.drops[Cause::Overload as usize];
        // Load just below the rate from here on, four packets standing: no overflow, no sojourn above
        // the target of four full frames; yet BLUE goes on.
        while q.qlen() > 4 {
            now = now.max(q.next_event().unwrap());
            q.dequeue(now);
        }
        let overflows = q.tally.drops[Cause::Overlimit as usize];
        let mut lost = 0;
        for _ in 0..2000 {
            while q.qlen() < 4 {
                q.enqueue(frame(1, 1514), now);
            }
            now = now.max(q.next_event().unwrap());
            q.dequeue(now).unwrap();
            lost = q.tally.drops[Cause::Overload as usize] - before;
        }
        assert_eq!(q.tally.drops[Cause::Overlimit as usize], overflows);
        assert!(lost > 500, "{lost}");
    }

    #[test]
    fn in_ingress_mode_dropped_packets_are_paid_for() {
        let sent = |line: &str| {
            let mut q = queue(line);
            let not_ect = Packet { ecn: Ecn::NotEct, ..frame(1, 1514) };
            let sent = saturate(&mut q, &[not_ect], 200, 10.0)[0] as f64 * 8.0 / 10.0;
            (sent, q.tally.dropped_bytes as f64 * 8.0 / 10.0)
        };
        let (egress, dropped) = sent("cake bandwidth 10mbit besteffort");
        assert!((egress / 1e7 - 1.0).abs() < 0.005 && dropped > 1e5, "{egress} {dropped}");
        let (ingress, dropped) = sent("cake bandwidth 10mbit besteffort ingress");
        assert!(((ingress + dropped) / 1e7 - 1.0).abs() < 0.005 && dropped > 1e5, "{ingress} {dropped}");
    }

    #[test]
    fn a_filtered_acknowledgement_is_counted_as_dropped() {
        let mut q = queue("cake bandwidth 1mbit ack-filter");
        for number in 0..10 {
            let ack = Packet {
                ack: number,
                flags: Flags::ACK,
                ecn: Ecn::NotEct,
                sent: Time(number),
                ..frame(1, 66)
            };
            q.enqueue(ack, Time::ZERO);
        }
        // the first two stay as long as fewer than two older ones stand before the newest
        assert_eq!((q.qlen(), q.backlog(), q.tally.dropped()), (2, 132, 8));
        assert_eq!(q.dequeue(Time::ZERO).unwrap().ack, 8);
    }

    #[test]
    fn a_change_keeps_queues_and_what_it_does_not_name() {
        let mut q = queue("cake bandwidth 50mbit diffserv4 wash");
        for dscp in [0, 46] {
            (0..3).for_each(|_| q.enqueue(Packet { dscp, ..frame(1, 1514) }, Time::ZERO));
        }
        q.change("cake bandwidth 20mbit", Time::ZERO).unwrap();
        assert_eq!(
            q.show(),
            "cake bandwidth 20Mbit diffserv4 triple-isolate nonat wash no-ack-filter split-gso rtt 100ms \
             raw overhead 0"
        );
        assert_eq!((q.qlen(), q.tally.dropped()), (6, 0));
        q.dequeue(Time::ZERO).unwrap();
        // 1514 B at 20 Mbit/s
        assert_eq!(q.next_event(), Some(Time::from_ns(605_600)));
        // tins that are gone lose their packets
        q.change("cake besteffort", Time::ZERO).unwrap();
        assert_eq!((q.qlen() as u64, q.tally.dropped()), (3, 2));
        assert!(q.change("cake bandwidht 1mbit", Time::ZERO).is_err());
        assert!(q.show().starts_with("cake bandwidth 20Mbit besteffort"));
    }

    #[test]
    fn wash_clears_the_codepoint_and_not_the_ecn_field() {
        let mut q = queue("cake wash");
        q.enqueue(Packet { dscp: 46, ..frame(1, 100) }, Time::ZERO);
        let packet = q.dequeue(Time::ZERO).unwrap();
        assert_eq!((packet.dscp, packet.ecn), (0, Ecn::Ect0));
    }

    #[test]
    fn sce_marks_before_ce() {
        let mut q = queue("cake@sce bandwidth 10mbit besteffort sce");
        let start = Time::from_ms(1000);
        (0..20).for_each(|_| q.enqueue(frame(1, 1514), start));
        let mut ect1 = 0;
        while let Some(at) = q.next_event() {
            ect1 += u64::from(q.dequeue(at).unwrap().ecn == Ecn::Ect1);
        }
        // A packet takes 1.21 ms: those from number 2 (2.42 ms) on stand above 2.5 ms, from number 5 on
        // above the target of 5 ms, where the ramp is 1; the sixth arms COBALT, the seventh has CE.
        assert!((13..=17).contains(&ect1) && q.tally.marks >= 1, "{ect1} {}", q.tally.marks);
        assert!(q.show_stats(Time::ZERO).ends_with(&format!("sce_marks {ect1}")));
    }
}
