//! `fq_codel`: flow queues served by DRR++ with priority for sparse flows, CoDel in each of them.
//!
//! Source: RFC 8290; Linux 7.3 `net/sched/sch_fq_codel.c`.
//!
//! Parameters: `limit` in packets (10240), `flows` (1024 queues), `quantum` in bytes (one frame, at
//! least 256), `memory_limit` in bytes (32 MiB), `drop_batch` in packets (64); CoDel's `target` (5 ms),
//! `interval` (100 ms), `ecn` / `noecn` (on), `ce_threshold` (off) with `ce_threshold_selector
//! VALUE/MASK` on the TOS byte.
//!
//! Departures: a flow is [`Packet::hash`] alone (no perturbation, no tc filters). A packet's memory is
//! that of a Linux socket buffer with a linear payload ([`truesize`]), or in pages if it has several segments.
//!
//! Validation: byte fairness, the priority of sparse flows (RFC 8290, section 4), drops from the fattest
//! flow, one shared CoDel backlog (tests below); conservation (`tests/conservation.rs`).

use super::codel::{CodelParams, CodelStats, CodelVars, Head};
use super::{Cause, Env, Properties, Qdisc, Statistics, Tally};
use crate::base::units::Time;
use crate::packet::Packet;
use crate::packet::charge::truesize;
use bakeoff_document::tc::{TcError, Words, parse_u32, show};

/// No index: the end of a list.
const NONE: u32 = u32::MAX;

/// The flow-queueing scheduler.
pub struct FqCodel {
    config: Config,
    flows: Vec<Flow>,
    new_flows: List,
    old_flows: List,
    pool: Pool,
    stats: CodelStats,
    drop_overlimit: u64,
    drop_overmemory: u64,
    new_flow_count: u64,
}

#[derive(Clone)]
struct Config {
    limit: u32,
    flows: u32,
    quantum: u32,
    memory_limit: u64,
    drop_batch: u32,
    params: CodelParams,
}

/// One flow queue.
#[derive(Clone)]
struct Flow {
    chain: Chain,
    vars: CodelVars,
    deficit: i64,
    /// The flow behind this one on its list.
    next: u32,
    listed: bool,
}

/// The packets of one flow: a chain of slots in the pool.
#[derive(Clone)]
struct Chain {
    first: u32,
    last: u32,
    backlog: u64,
}

impl Flow {
    fn idle() -> Self {
        Flow {
            chain: Chain { first: NONE, last: NONE, backlog: 0 },
            vars: CodelVars::default(),
            deficit: 0,
            next: NONE,
            listed: false,
        }
    }
}

/// A list of flows, linked through [`Flow::next`]; only its first flow ever leaves it.
#[derive(Clone, Copy)]
struct List {
    first: u32,
    last: u32,
}

impl List {
    const EMPTY: List = List { first: NONE, last: NONE };

    fn push(&mut self, flows: &mut [Flow], index: u32) {
        flows[index as usize].next = NONE;
        match self.last {
            NONE => self.first = index,
            last => flows[last as usize].next = index,
        }
        self.last = index;
    }

    fn pop(&mut self, flows: &[Flow]) {
        self.first = flows[self.first as usize].next;
        if self.first == NONE {
            self.last = NONE;
        }
    }

    fn iter(self, flows: &[Flow]) -> impl Iterator<Item = u32> {
        let some = |index| (index != NONE).then_some(index);
        std::iter::successors(some(self.first), move |i| some(flows[*i as usize].next))
    }
}

/// All packets of the qdisc, in slots that are used again: no allocation per packet.
struct Pool {
    slots: Vec<Slot>,
    free: u32,
    qlen: u32,
    backlog: u64,
    memory: u64,
}

struct Slot {
    packet: Packet,
    next: u32,
    /// [`truesize`] of the packet.
    memory: u32,
}

impl Pool {
    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
    fn push(&mut self, chain: &mut Chain, packet: &Packet) {
        self.qlen += 1;
        self.backlog += u64::from(packet.len);
        let memory = truesize(packet);
        self.memory += memory;
        let memory = memory as u32;
        chain.backlog += u64::from(packet.len);
        let index = match self.free {
            NONE => {
                self.slots.push(Slot { packet: *packet, next: NONE, memory });
                self.slots.len() as u32 - 1
            }
            free => {
                let slot = &mut self.slots[free as usize];
                self.free = slot.next;
                slot.packet = *packet;
                slot.next = NONE;
                slot.memory = memory;
                free
            }
        };
        match chain.last {
            NONE => chain.first = index,
            last => self.slots[last as usize].next = index,
        }
        chain.last = index;
    }

    /// The packet that [`Pool::pop`] would give.
    #[inline]
    fn first(&self, chain: &Chain) -> Option<&Packet> {
        self.slots.get(chain.first as usize).map(|slot| &slot.packet)
    }

    #[inline]
    fn pop(&mut self, chain: &mut Chain, into: &mut Packet) -> bool {
        if chain.first == NONE {
            return false;
        }
        let index = chain.first;
        let slot = &mut self.slots[index as usize];
        chain.first = slot.next;
        if slot.next == NONE {
            chain.last = NONE;
        }
        slot.next = self.free;
        self.free = index;
        self.qlen -= 1;
        self.backlog -= u64::from(slot.packet.len);
        self.memory -= u64::from(slot.memory);
        chain.backlog -= u64::from(slot.packet.len);
        *into = slot.packet;
        true
    }
}

/// What CoDel sees: the packets of one flow, the backlog of the whole qdisc.
struct FlowHead<'a> {
    pool: &'a mut Pool,
    chain: &'a mut Chain,
}

impl Head for FlowHead<'_> {
    fn pop(&mut self) -> Option<Packet> {
        let mut packet = Packet::default();
        self.pool.pop(self.chain, &mut packet).then_some(packet)
    }

    fn backlog(&self) -> u64 {
        self.pool.backlog
    }
}

impl Config {
    const WORDS: [&str; 6] =
        ["limit", "flows", "quantum", "memory_limit", "drop_batch", "ce_threshold_selector"];

    fn take_all(&mut self, words: &mut Words) -> Result<(), TcError> {
        while let Some(word) = words.next_word() {
            match word {
                "limit" => self.limit = words.positive_u32()?,
                "flows" => {
                    self.flows = words.positive_u32()?;
                    if self.flows > 65536 {
                        return Err(words.bad("flows", &self.flows.to_string(), "at most 65536"));
                    }
                }
                "quantum" => self.quantum = words.positive_u32()?.max(256),
                "memory_limit" => self.memory_limit = words.size()?.min(1 << 31),
                "drop_batch" => self.drop_batch = words.positive_u32()?,
                "ce_threshold_selector" => {
                    let text = words.value()?;
                    let (value, mask) = selector(text)
                        .ok_or_else(|| words.bad(word, text, "VALUE/MASK in bytes such as 0x1/0x3"))?;
                    self.params.select(value, mask);
                }
                _ if self.params.take(word, words)? => {}
                _ => {
                    let known = [&Self::WORDS, CodelParams::WORDS.as_slice()].concat();
                    return Err(words.unknown(word, &known));
                }
            }
        }
        Ok(())
    }
}

fn selector(text: &str) -> Option<(u8, u8)> {
    let (value, mask) = text.split_once('/')?;
    let byte = |text| u8::try_from(parse_u32(text)?).ok();
    Some((byte(value)?, byte(mask)?))
}

impl FqCodel {
    /// `fq_codel [limit PACKETS] [flows N] [quantum BYTES] [target TIME] [interval TIME]
    /// [memory_limit BYTES] [ecn | noecn] [ce_threshold TIME [ce_threshold_selector VALUE/MASK]]
    /// [drop_batch PACKETS]`
    pub fn new(words: &mut Words, env: &Env) -> Result<Self, TcError> {
        let mut config = Config {
            limit: 10240,
            flows: 1024,
            quantum: env.psched_mtu(),
            memory_limit: 32 << 20,
            drop_batch: 64,
            params: CodelParams::new(env, true),
        };
        config.take_all(words)?;
        Ok(FqCodel {
            flows: vec![Flow::idle(); config.flows as usize],
            config,
            new_flows: List::EMPTY,
            old_flows: List::EMPTY,
            pool: Pool { slots: Vec::new(), free: NONE, qlen: 0, backlog: 0, memory: 0 },
            stats: CodelStats::default(),
            drop_overlimit: 0,
            drop_overmemory: 0,
            new_flow_count: 0,
        })
    }

    /// Drops from the head of the flow with the largest backlog: a batch, or half of that backlog.
    /// Source: RFC 8290, section 4.1; Linux 7.3 `fq_codel_drop`.
    #[cold]
    #[inline(never)]
    fn drop_from_fattest(&mut self, tally: &mut Tally) -> u64 {
        // Only listed flows have packets. Of equals Linux takes the one with the lowest number.
        let listed = self.new_flows.iter(&self.flows).chain(self.old_flows.iter(&self.flows));
        let fattest = listed.max_by_key(|i| (self.flows[*i as usize].chain.backlog, std::cmp::Reverse(*i)));
        let Some(index) = fattest else {
            return 0;
        };
        let flow = &mut self.flows[index as usize];
        let enough = flow.chain.backlog / 2;
        let (mut packets, mut bytes) = (0, 0);
        let mut packet = Packet::default();
        while self.pool.pop(&mut flow.chain, &mut packet) {
            tally.drop(&packet, Cause::Overlimit);
            packets += 1;
            bytes += u64::from(packet.len);
            if packets == self.config.drop_batch || bytes >= enough {
                break;
            }
        }
        flow.vars.count = flow.vars.count.wrapping_add(packets);
        u64::from(packets)
    }
}

impl Qdisc for FqCodel {
    const PROPERTIES: Properties = Properties { work_conserving: true, ..Properties::DEFAULT };

    fn enqueue(&mut self, mut packet: Packet, now: Time, tally: &mut Tally) {
        self.enqueue_from(&mut packet, now, tally);
    }

    fn dequeue(&mut self, now: Time, tally: &mut Tally) -> Option<Packet> {
        let mut packet = Packet::default();
        self.dequeue_into(&mut packet, now, tally).then_some(packet)
    }

    /// A flow that is on neither list becomes a new one, with a quantum to spend. Source: RFC 8290, section 4.1;
    /// Linux 7.3 `fq_codel_enqueue`.
    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
    fn enqueue_from(&mut self, packet: &mut Packet, _now: Time, tally: &mut Tally) {
        // Linux 7.3 `fq_codel_hash`: `reciprocal_scale`.
        let index = (u64::from(packet.hash) * u64::from(self.config.flows)) >> 32;
        let flow = &mut self.flows[index as usize];
        self.pool.push(&mut flow.chain, packet);
        if !flow.listed {
            flow.listed = true;
            flow.deficit = i64::from(self.config.quantum);
            self.new_flow_count += 1;
            self.new_flows.push(&mut self.flows, index as u32);
        }
        let over_memory = self.pool.memory > self.config.memory_limit;
        if self.pool.qlen > self.config.limit || over_memory {
            let dropped = self.drop_from_fattest(tally);
            self.drop_overlimit += dropped;
            if over_memory {
                self.drop_overmemory += dropped;
            }
        }
    }

    /// The new flows are served before the old ones, each until its quantum is spent. Source: RFC 8290, section 4.2;
    /// Linux 7.3 `fq_codel_dequeue`.
    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
    fn dequeue_into(&mut self, into: &mut Packet, now: Time, tally: &mut Tally) -> bool {
        loop {
            let is_new = self.new_flows.first != NONE;
            let list = if is_new { &mut self.new_flows } else { &mut self.old_flows };
            let index = list.first;
            if index == NONE {
                return false;
            }
            let flow = &mut self.flows[index as usize];
            if flow.deficit <= 0 {
                flow.deficit += i64::from(self.config.quantum);
                // The only flow goes from the head to the end of its list, which are the same place.
                if !is_new && index == list.last {
                    continue;
                }
                list.pop(&self.flows);
                self.old_flows.push(&mut self.flows, index);
                continue;
            }
            let (params, stats) = (&self.config.params, &mut self.stats);
            if let Some(packet) = self.pool.first(&flow.chain) {
                let behind = self.pool.backlog - u64::from(packet.len);
                if flow.vars.lets_pass(packet, behind, params, stats, now) {
                    flow.deficit -= i64::from(packet.len);
                    return self.pool.pop(&mut flow.chain, into);
                }
            }
            let head = &mut FlowHead { pool: &mut self.pool, chain: &mut flow.chain };
            if let Some(packet) = flow.vars.dequeue(params, stats, head, now, tally) {
                flow.deficit -= i64::from(packet.len);
                *into = packet;
                return true;
            }
            // A new flow that is empty passes once through the old ones, or it could come back as
            // new for ever and starve them (RFC 8290, section 4.2).
            list.pop(&self.flows);
            if is_new && self.old_flows.first != NONE {
                self.old_flows.push(&mut self.flows, index);
            } else {
                self.flows[index as usize].listed = false;
            }
        }
    }

    fn qlen(&self) -> usize {
        self.pool.qlen as usize
    }

    fn backlog(&self) -> u64 {
        self.pool.backlog
    }

    /// The number of flows stays, as in Linux. Packets above lowered limits are taken as by a
    /// dequeue and dropped.
    fn change(&mut self, words: &mut Words, now: Time, tally: &mut Tally) -> Result<(), TcError> {
        let mut config = self.config.clone();
        config.take_all(words)?;
        if config.flows != self.config.flows {
            return Err(words.refuse("the number of flows cannot change in place"));
        }
        self.config = config;
        while self.pool.qlen > self.config.limit || self.pool.memory > self.config.memory_limit {
            let Some(packet) = self.dequeue(now, tally) else {
                break;
            };
            tally.drop(&packet, Cause::Overlimit);
        }
        Ok(())
    }
}

impl Statistics for FqCodel {
    fn show(&self) -> String {
        let config = &self.config;
        format!(
            "fq_codel limit {}p flows {} quantum {} {} memory_limit {}{} drop_batch {}",
            config.limit,
            config.flows,
            config.quantum,
            config.params.show(),
            show::size(config.memory_limit),
            config.params.show_ecn(),
            config.drop_batch
        )
    }

    fn show_stats(&self, _now: Time) -> String {
        let overmemory = match self.drop_overmemory {
            0 => String::new(),
            n => format!(" drop_overmemory {n}"),
        };
        let memory = match self.pool.memory {
            0 => String::new(),
            n => format!(" memory_used {}", show::size(n)),
        };
        format!(
            "  maxpacket {} drop_overlimit {} new_flow_count {} ecn_mark {}{}{memory}{overmemory}\n  \
             new_flows_len {} old_flows_len {}",
            self.stats.maxpacket,
            self.drop_overlimit,
            self.new_flow_count,
            self.stats.ecn_mark,
            self.stats.show_ce_mark(),
            self.new_flows.iter(&self.flows).count(),
            self.old_flows.iter(&self.flows).count(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Ecn;
    use crate::qdisc::Queue;
    use bakeoff_document::run;

    const NOW: Time = Time::ZERO;

    fn queue(line: &str) -> Queue {
        Queue::build(&run::Qdisc::leaf(line), &Env::default()).unwrap()
    }

    /// A frame whose hash puts it into queue `index` of 1024.
    fn frame(index: u32, len: u32) -> Packet {
        Packet { hash: index << 22, flow: index as u16, len, ..Packet::default() }
    }

    fn take(q: &mut Queue, n: usize) -> Vec<u16> {
        (0..n).map_while(|_| q.dequeue(NOW).map(|p| p.flow)).collect()
    }

    #[test]
    fn the_defaults_are_tc_s() {
        assert_eq!(
            queue("fq_codel flows 1").show(),
            "fq_codel limit 10240p flows 1 quantum 1514 target 5ms interval 100ms \
             memory_limit 32Mb ecn drop_batch 64"
        );
        assert_eq!(
            queue("fq_codel noecn quantum 100 ce_threshold 1ms ce_threshold_selector 0x1/0x3").show(),
            "fq_codel limit 10240p flows 1024 quantum 256 target 5ms ce_threshold 999us \
             ce_threshold_selector 0x1/0x3 interval 100ms memory_limit 32Mb drop_batch 64"
        );
    }

    #[test]
    fn backlogged_flows_share_bytes_not_packets() {
        let mut q = queue("fq_codel");
        for _ in 0..400 {
            q.enqueue(frame(1, 1514), NOW);
            for _ in 0..3 {
                q.enqueue(frame(2, 500), NOW);
            }
        }
        let out = take(&mut q, 600);
        let bytes = |flow, len| len * out.iter().filter(|f| **f == flow).count() as i64;
        // never further apart than a quantum and a packet each
        assert!((bytes(1, 1514) - bytes(2, 500)).abs() <= 2 * 1514 + 500);
    }

    #[test]
    fn two_bulk_flows_alternate_full_packets() {
        let mut q = queue("fq_codel");
        for index in [1, 1, 1, 2, 2, 2] {
            q.enqueue(frame(index, 1514), NOW);
        }
        assert_eq!(take(&mut q, 6), [1, 2, 1, 2, 1, 2]);
    }

    #[test]
    fn rfc_8290_a_sparse_flow_passes_the_bulk_flows_with_one_quantum() {
        let mut q = queue("fq_codel");
        for _ in 0..10 {
            q.enqueue(frame(1, 1514), NOW);
            q.enqueue(frame(2, 1514), NOW);
        }
        take(&mut q, 4);
        for _ in 0..4 {
            q.enqueue(frame(3, 800), NOW);
        }
        // Two packets of 800 use up the 1514 bytes. Then it takes its turn among the old flows: flow 1
        // is next, the new round gives flow 3 its 1514 - 86 bytes, again two packets, and then flow 2.
        assert_eq!(take(&mut q, 8), [3, 3, 1, 3, 3, 2, 1, 2]);
    }

    #[test]
    fn rfc_8290_an_emptied_new_flow_passes_once_through_the_old_ones() {
        let mut q = queue("fq_codel quantum 3028");
        for _ in 0..10 {
            q.enqueue(frame(1, 1514), NOW);
            q.enqueue(frame(2, 1514), NOW);
        }
        assert_eq!(take(&mut q, 5), [1, 1, 2, 2, 1]);
        q.enqueue(frame(3, 60), NOW);
        assert_eq!(take(&mut q, 2), [3, 1]);
        // Flow 3 returns at once. It still stands on the old list, behind flow 2 and its whole quantum;
        // had it left the lists when it was empty, it would be new again and go first for ever.
        q.enqueue(frame(3, 60), NOW);
        assert_eq!(take(&mut q, 3), [2, 2, 3]);
    }

    #[test]
    fn the_fattest_flow_pays_for_the_overflow() {
        let mut q = queue("fq_codel limit 100 drop_batch 16");
        for _ in 0..70 {
            q.enqueue(frame(1, 200), NOW);
        }
        for _ in 0..30 {
            q.enqueue(frame(2, 1000), NOW);
        }
        // 30000 bytes against 14000: flow 2 loses until half of its 30000 bytes are gone, which is 15
        // packets, within the batch of 16
        q.enqueue(frame(3, 60), NOW);
        assert_eq!(q.qlen(), 101 - 15);
        assert_eq!(q.tally.drops[Cause::Overlimit as usize], 15);
        assert_eq!(q.tally.flows[2].drops, 15);
        // of equals the lowest number, and the batch ends it: 16 of 50 packets
        let mut q = queue("fq_codel limit 100 drop_batch 16");
        for index in [9, 5] {
            for _ in 0..50 {
                q.enqueue(frame(index, 1000), NOW);
            }
        }
        q.enqueue(frame(3, 60), NOW);
        assert_eq!((q.tally.flows[5].drops, q.tally.dropped()), (16, 16));
    }

    #[test]
    fn drops_come_from_the_head() {
        let mut q = queue("fq_codel limit 4 drop_batch 2");
        for seq in 0..5 {
            q.enqueue(Packet { seq, ..frame(1, 1514) }, NOW);
        }
        assert_eq!(q.dequeue(NOW).map(|p| p.seq), Some(2));
    }

    #[test]
    fn memory_is_counted_in_socket_buffers() {
        assert_eq!(([1514, 66].map(|len| truesize(&Packet { len, ..Packet::default() }))), [2304, 896]);
        // 4 * 2304 = 9216 fit, the fifth does not
        let mut q = queue("fq_codel memory_limit 9216 drop_batch 1");
        for _ in 0..4 {
            q.enqueue(frame(1, 1514), NOW);
        }
        assert_eq!(q.tally.dropped(), 0);
        q.enqueue(frame(1, 1514), NOW);
        assert_eq!((q.tally.dropped(), q.qlen()), (1, 4));
    }

    #[test]
    fn socket_buffers_are_as_large_as_those_that_cake_counted_on_linux() {
        // `memory used` of cake with 19 frames of a size, by 19 (Linux 7.3 as User-Mode Linux)
        let sizes =
            [60, 123, 256, 320, 600, 700, 1514].map(|len| truesize(&Packet { len, ..Packet::default() }));
        assert_eq!(sizes, [896, 896, 896, 1280, 1280, 2304, 2304]);
    }

    #[test]
    fn codel_looks_at_the_backlog_of_all_flows() {
        // One packet of flow 1 at a time, 20 ms old: alone in its queue, but flow 2 stands behind it.
        let marks = |others: usize| {
            let mut q = queue("fq_codel");
            for ms in 1000..1200 {
                let now = Time::from_ms(ms);
                let old = Packet { ecn: Ecn::Ect0, ..frame(1, 1514) };
                q.enqueue(old, now - Time::from_ms(20));
                while q.qlen() < others + 1 {
                    q.enqueue(frame(2, 1514), now);
                }
                while q.dequeue(now).is_some_and(|p| p.flow != 1) {}
            }
            q.tally.flows[1].marks
        };
        assert_eq!(marks(0), 0);
        assert!(marks(4) > 0);
    }

    #[test]
    fn ce_threshold_selector_marks_only_the_selected_codepoint() {
        let mut q = queue("fq_codel ce_threshold 1ms ce_threshold_selector 0x1/0x3");
        for (index, ecn) in [(1, Ecn::Ect1), (2, Ecn::Ect0), (3, Ecn::NotEct)] {
            q.enqueue(Packet { ecn, ..frame(index, 1514) }, NOW);
        }
        while q.dequeue(Time::from_ms(2)).is_some() {}
        let marks: Vec<u64> = q.tally.flows.iter().map(|f| f.marks).collect();
        assert_eq!(marks, [0, 1, 0, 0]);
    }

    #[test]
    fn slots_are_used_again() {
        let mut q = queue("fq_codel");
        for _ in 0..1000 {
            q.enqueue(frame(1, 1514), NOW);
            q.enqueue(frame(2, 1514), NOW);
            take(&mut q, 2);
        }
        let crate::qdisc::Kind::FqCodel(fq) = &q.kind else {
            unreachable!("built as fq_codel");
        };
        assert_eq!(fq.pool.slots.len(), 2);
    }

    #[test]
    fn a_change_keeps_the_queue_and_refuses_another_number_of_flows() {
        let mut q = queue("fq_codel");
        for _ in 0..10 {
            q.enqueue(frame(1, 1514), NOW);
        }
        q.change("fq_codel limit 8 target 20ms noecn", NOW).unwrap();
        assert_eq!((q.qlen(), q.tally.dropped()), (8, 2));
        assert!(q.change("fq_codel flows 4", NOW).is_err());
        assert!(q.show().starts_with("fq_codel limit 8p flows 1024 quantum 1514 target 20ms"));
    }

    #[test]
    fn wrong_values_are_refused() {
        let error = |line: &str| {
            Queue::build(&run::Qdisc::leaf(line), &Env::default()).map(|q| q.show()).unwrap_err().to_string()
        };
        assert_eq!(
            error("fq_codel flow 1"),
            "unknown word 'flow' in 'fq_codel flow 1'; did you mean 'flows'?"
        );
        assert!(error("fq_codel flows 65537").contains("flows: '65537' is not at most 65536"));
        assert!(error("fq_codel ce_threshold_selector 1").contains("'1' is not VALUE/MASK"));
        assert!(error("fq_codel quantum 2k").contains("'2k' is not a whole number"));
    }
}
