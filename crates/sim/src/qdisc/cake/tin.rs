//! A tin: its queues, and whose turn it is among them (DRR++ with shares by host).
//!
//! Source: Linux 7.3 `net/sched/sch_cake.c` (`cake_enqueue`, `cake_dequeue`, `cake_set_rate`).

use std::collections::VecDeque;

use super::cobalt::{Cobalt, Params};
use super::shaper::Pace;
use crate::base::rng::Stream;
use crate::base::units::Time;
use crate::packet::Packet;
use bakeoff_document::qdisc::cake::{Config, Isolation};

/// Queues of a tin.
pub(super) const QUEUES: usize = 1024;

/// A packet, and the bytes it costs on the link.
#[derive(Clone, Copy)]
pub(super) struct Queued {
    pub packet: Packet,
    pub adjusted_len: u32,
}

/// What a queue counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Set {
    /// Idle, and on no list.
    None,
    Sparse,
    /// Emptied while it counted as sparse, but served with the bulk flows until its deficit is paid.
    SparseWait,
    Bulk,
    /// Empty, with a state of COBALT that has not come to rest.
    Decaying,
}

/// A queue.
pub(super) struct Flow {
    pub packets: VecDeque<Queued>,
    /// Whose it is.
    pub tag: u32,
    pub deficit: i64,
    pub cobalt: Cobalt,
    /// Places in the host tables.
    pub src: u16,
    pub dst: u16,
    pub set: Set,
}

impl Flow {
    const IDLE: Flow = Flow {
        packets: VecDeque::new(),
        tag: 0,
        deficit: 0,
        cobalt: Cobalt::NEW,
        src: 0,
        dst: 0,
        set: Set::None,
    };
}

/// The lists on which a queue may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    New,
    Old,
    Decaying,
}

/// Doubly linked rings through all queues; a list's own place is behind the last queue.
struct Rings {
    next: Vec<u16>,
    previous: Vec<u16>,
}

impl Rings {
    fn new() -> Self {
        let alone: Vec<u16> = (0..QUEUES as u16 + 3).collect();
        Rings { next: alone.clone(), previous: alone }
    }

    fn first(&self, list: List) -> Option<usize> {
        let first = usize::from(self.next[QUEUES + list as usize]);
        (first < QUEUES).then_some(first)
    }

    fn remove(&mut self, queue: usize) {
        let (before, after) = (self.previous[queue], self.next[queue]);
        self.next[usize::from(before)] = after;
        self.previous[usize::from(after)] = before;
        self.next[queue] = queue as u16;
        self.previous[queue] = queue as u16;
    }

    /// To the end of `list`, from wherever it is.
    fn move_to(&mut self, queue: usize, list: List) {
        self.remove(queue);
        let head = QUEUES + list as usize;
        let last = self.previous[head];
        self.next[usize::from(last)] = queue as u16;
        self.previous[queue] = last;
        self.next[queue] = head as u16;
        self.previous[head] = queue as u16;
    }
}

/// What statistics say of a tin.
#[derive(Clone, Debug, Default)]
pub(super) struct TinStats {
    pub packets: u64,
    pub bytes: u64,
    pub drops: u64,
    pub marks: u64,
    pub ack_drops: u64,
    pub way_hits: u32,
    pub way_misses: u32,
    pub way_collisions: u32,
    pub unresponsive_flows: u32,
    pub max_len: u32,
    /// Moving averages of the sojourn in nanoseconds.
    pub average_delay: u64,
    pub peak_delay: u64,
    pub base_delay: u64,
}

/// A host of the isolation table: who it is, and how many bulk flows it has.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Host {
    pub(super) tag: u32,
    pub(super) bulk_flows: u16,
}

/// A tin.
pub(super) struct Tin {
    pub flows: Box<[Flow]>,
    pub sources: Box<[Host]>,
    pub destinations: Box<[Host]>,
    rings: Rings,
    /// Bytes per second; 0 is unlimited.
    pub rate: u64,
    pub pace: Pace,
    pub params: Params,
    /// What a flow gets per round, in bytes.
    pub flow_quantum: u64,
    /// What the tin gets per round when bandwidth is unlimited, in bytes.
    pub quantum: i64,
    pub deficit: i64,
    pub time_next: i64,
    pub backlog: u64,
    pub sparse_flows: u32,
    pub bulk_flows: u32,
    pub decaying_flows: u32,
    pub stats: TinStats,
}

impl Tin {
    pub(super) fn new() -> Self {
        Tin {
            flows: std::iter::repeat_with(|| Flow::IDLE).take(QUEUES).collect(),
            sources: vec![Host::default(); QUEUES].into(),
            destinations: vec![Host::default(); QUEUES].into(),
            rings: Rings::new(),
            rate: 0,
            pace: Pace::UNLIMITED,
            params: Params { interval: 0, target: 0, mtu_time: 0 },
            flow_quantum: 1514,
            quantum: 0,
            deficit: 0,
            time_next: 0,
            backlog: 0,
            sparse_flows: 0,
            bulk_flows: 0,
            decaying_flows: 0,
            stats: TinStats::default(),
        }
    }

    /// Sets the threshold rate (bytes per second), and what follows from it: a slow tin has a larger target,
    /// one and a half full frames at least. Source: Linux 7.3 `cake_set_rate`.
    pub(super) fn configure(&mut self, rate: u64, quantum: i64, psched_mtu: u32, config: &Config) {
        let (target, interval) = (config.target.as_ns(), config.rtt.as_ns());
        self.rate = rate;
        self.quantum = quantum;
        self.pace = Pace::new(rate);
        self.flow_quantum = if rate == 0 { 1514 } else { (rate >> 12).clamp(300, 1514) };
        let mtu_time = self.pace.time_for(psched_mtu) as u64;
        self.params.mtu_time = mtu_time;
        self.params.target = target.max(mtu_time * 3 / 2);
        self.params.interval = (interval + self.params.target - target).max(2 * self.params.target);
    }

    /// Whether any queue may have packets.
    pub(super) fn is_active(&self) -> bool {
        self.sparse_flows + self.bulk_flows > 0
    }

    /// Whose turn it is: new before old; a decaying queue before both at most once per packet.
    /// Source: RFC 8290, section 4.2; Linux 7.3 `cake_dequeue`.
    pub(super) fn next_flow(&self, decaying_first: bool) -> Option<usize> {
        let decaying = || self.rings.first(List::Decaying);
        let first = if decaying_first { decaying() } else { None };
        first
            .or_else(|| self.rings.first(List::New))
            .or_else(|| self.rings.first(List::Old))
            .or_else(decaying)
    }

    /// What a flow gets per round: its part of its host's, of the host with more bulk flows. Dithered, so that
    /// rounding does not add up. Source: Linux 7.3 `cake_get_flow_quantum`.
    fn quantum_of(&self, queue: usize, isolation: Isolation, rng: &mut Stream) -> i64 {
        let flow = &self.flows[queue];
        let mut load = 1;
        if isolation.by_src() {
            load = load.max(self.sources[usize::from(flow.src)].bulk_flows);
        }
        if isolation.by_dst() {
            load = load.max(self.destinations[usize::from(flow.dst)].bulk_flows);
        }
        let dither = u64::from(rng.u32() & 0xffff);
        ((self.flow_quantum * (65_535 / u64::from(load)) + dither) >> 16) as i64
    }

    /// Source: Linux 7.3 `cake_inc_srchost_bulk_flow_count`, `cake_inc_dsthost_bulk_flow_count`.
    pub(super) fn host_gains(&mut self, queue: usize, isolation: Isolation) {
        let (src, dst) = (usize::from(self.flows[queue].src), usize::from(self.flows[queue].dst));
        if isolation.by_src() {
            let count = &mut self.sources[src].bulk_flows;
            *count = (*count + 1).min(QUEUES as u16);
        }
        if isolation.by_dst() {
            let count = &mut self.destinations[dst].bulk_flows;
            *count = (*count + 1).min(QUEUES as u16);
        }
    }

    /// Source: Linux 7.3 `cake_dec_srchost_bulk_flow_count`, `cake_dec_dsthost_bulk_flow_count`.
    pub(super) fn host_loses(&mut self, queue: usize, isolation: Isolation) {
        let (src, dst) = (usize::from(self.flows[queue].src), usize::from(self.flows[queue].dst));
        if isolation.by_src() {
            let count = &mut self.sources[src].bulk_flows;
            *count = count.saturating_sub(1);
        }
        if isolation.by_dst() {
            let count = &mut self.destinations[dst].bulk_flows;
            *count = count.saturating_sub(1);
        }
    }

    /// A packet came to the queue. Source: RFC 8290, section 4.1; Linux 7.3 `cake_enqueue`.
    pub(super) fn arrived(&mut self, queue: usize, isolation: Isolation, rng: &mut Stream) {
        match self.flows[queue].set {
            set @ (Set::None | Set::Decaying) => {
                self.decaying_flows -= u32::from(set == Set::Decaying);
                self.rings.move_to(queue, List::New);
                self.flows[queue].set = Set::Sparse;
                self.sparse_flows += 1;
                self.flows[queue].deficit = self.quantum_of(queue, isolation, rng);
            }
            Set::SparseWait => self.becomes_bulk(queue, isolation),
            Set::Sparse | Set::Bulk => {}
        }
    }

    /// The queue has used up its turn: to the end of the old ones, with a new quantum.
    /// Source: Linux 7.3 `cake_dequeue`.
    pub(super) fn rotate(&mut self, queue: usize, isolation: Isolation, rng: &mut Stream) {
        if self.flows[queue].set == Set::Sparse {
            if self.flows[queue].packets.is_empty() {
                self.flows[queue].set = Set::SparseWait;
            } else {
                self.becomes_bulk(queue, isolation);
            }
        }
        let quantum = self.quantum_of(queue, isolation, rng);
        self.flows[queue].deficit += quantum;
        self.rings.move_to(queue, List::Old);
    }

    fn becomes_bulk(&mut self, queue: usize, isolation: Isolation) {
        self.flows[queue].set = Set::Bulk;
        self.sparse_flows -= 1;
        self.bulk_flows += 1;
        self.host_gains(queue, isolation);
    }

    /// The queue was served and is empty: it stays on a list until COBALT is at rest.
    /// Source: Linux 7.3 `cake_dequeue`.
    pub(super) fn emptied(&mut self, queue: usize, isolation: Isolation, now: Time) {
        let flow = &mut self.flows[queue];
        if flow.cobalt.queue_empty(&self.params, now) {
            self.stats.unresponsive_flows = self.stats.unresponsive_flows.saturating_sub(1);
        }
        let rests = flow.cobalt.is_at_rest(now);
        match std::mem::replace(&mut flow.set, if rests { Set::None } else { Set::Decaying }) {
            Set::Bulk => {
                self.bulk_flows -= 1;
                self.host_loses(queue, isolation);
            }
            Set::Sparse | Set::SparseWait => self.sparse_flows -= 1,
            Set::Decaying => self.decaying_flows -= 1,
            Set::None => {}
        }
        if rests {
            self.rings.remove(queue);
        } else {
            self.decaying_flows += 1;
            self.rings.move_to(queue, List::Decaying);
        }
    }

    /// A packet leaves after `delay`.
    pub(super) fn note_delay(&mut self, delay: Time) {
        let (ns, stats) = (delay.as_ns(), &mut self.stats);
        stats.average_delay = moving_average(stats.average_delay, ns, 8);
        stats.peak_delay = moving_average(stats.peak_delay, ns, if ns > stats.peak_delay { 2 } else { 8 });
        stats.base_delay = moving_average(stats.base_delay, ns, if ns < stats.base_delay { 2 } else { 8 });
    }
}

/// The average with 1/2^shift of the sample in it.
pub(super) fn moving_average(average: u64, sample: u64, shift: u32) -> u64 {
    average - (average >> shift) + (sample >> shift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bakeoff_document::qdisc::cake::Version;
    use bakeoff_document::tc::Words;

    fn tin(line: &str) -> (Tin, Config) {
        let mut config = Config::new(Version::Mainline);
        config.take_all(&mut Words::new(line)).unwrap();
        let mut tin = Tin::new();
        tin.configure(config.bytes_per_s(), 1, 1514, &config);
        (tin, config)
    }

    #[test]
    fn a_slow_tin_has_a_larger_target_and_interval() {
        let us = |line| {
            let (tin, _) = tin(line);
            (tin.params.target / 1000, tin.params.interval / 1000, tin.flow_quantum)
        };
        assert_eq!(us("bandwidth 50mbit"), (5000, 100_000, 1514));
        // 1.5 * 1514 B at 3.125 Mbit/s are 5.81 ms: tc shows 5.81ms, 101ms and a quantum of 300
        assert_eq!(us("bandwidth 3125kbit"), (5813, 100_813, 300));
        // tc shows 291ms and 581ms
        assert_eq!(us("bandwidth 62496bit"), (290_706, 581_413, 300));
        assert_eq!(us("bandwidth 12500kbit"), (5000, 100_000, 381));
        assert_eq!(us("unlimited"), (5000, 100_000, 1514));
    }

    #[test]
    fn a_flow_s_quantum_is_its_part_of_the_busier_host_s() {
        let (mut tin, config) = tin("bandwidth 50mbit");
        let mut rng = Stream::new(1, "test");
        let mean = |tin: &Tin, rng: &mut Stream, queue| {
            (0..1000).map(|_| tin.quantum_of(queue, config.isolation, rng)).sum::<i64>() as f64 / 1000.0
        };
        tin.flows[0].src = 1;
        tin.flows[0].dst = 2;
        tin.sources[1].bulk_flows = 4;
        tin.destinations[2].bulk_flows = 3;
        // 1514 / 4 = 378.5 (65535/4 is cut off to 16383: 378.48), by dither also between whole bytes
        assert!((mean(&tin, &mut rng, 0) - 378.48).abs() < 0.07);
        assert!((mean(&tin, &mut rng, 1) - 1514.0).abs() < 0.1);
    }

    #[test]
    fn lists_keep_their_order_when_a_queue_leaves_the_middle() {
        let mut rings = Rings::new();
        for queue in [5, 6, 7] {
            rings.move_to(queue, List::Decaying);
        }
        rings.move_to(6, List::New);
        assert_eq!((rings.first(List::New), rings.first(List::Decaying)), (Some(6), Some(5)));
        rings.remove(5);
        assert_eq!(rings.first(List::Decaying), Some(7));
        rings.move_to(7, List::Old);
        assert_eq!((rings.first(List::Decaying), rings.first(List::Old)), (None, Some(7)));
    }

    #[test]
    fn a_queue_s_life_is_counted() {
        let (mut tin, config) = tin("bandwidth 50mbit");
        let (isolation, mut rng) = (config.isolation, Stream::new(1, "test"));
        let counts = |tin: &Tin| (tin.sparse_flows, tin.bulk_flows, tin.decaying_flows);
        tin.arrived(3, isolation, &mut rng);
        assert_eq!((counts(&tin), tin.next_flow(true)), ((1, 0, 0), Some(3)));
        // empty at the end of its turn: counted as sparse; with a packet again: bulk
        tin.rotate(3, isolation, &mut rng);
        assert_eq!((tin.flows[3].set, counts(&tin)), (Set::SparseWait, (1, 0, 0)));
        tin.arrived(3, isolation, &mut rng);
        assert_eq!((counts(&tin), tin.sources[0].bulk_flows), ((0, 1, 0), 1));
        // an active COBALT keeps it, one at rest lets it go
        tin.flows[3].cobalt.queue_full(&tin.params.clone(), Time::from_ms(10));
        tin.emptied(3, isolation, Time::from_ms(10));
        assert_eq!((counts(&tin), tin.sources[0].bulk_flows), ((0, 0, 1), 0));
        tin.arrived(3, isolation, &mut rng);
        assert_eq!(counts(&tin), (1, 0, 0));
        tin.flows[3].cobalt = Cobalt::NEW;
        tin.emptied(3, isolation, Time::from_ms(10));
        assert_eq!((tin.flows[3].set, counts(&tin), tin.next_flow(true)), (Set::None, (0, 0, 0), None));
    }
}
