//! `netem`: delay, jitter, loss, duplication, reordering, a rate, and slots in which packets leave.
//!
//! Source: Linux 7.3 `net/sched/sch_netem.c`; iproute2 `tc/q_netem.c`.
//!
//! Parameters: `limit` in packets (1000); `delay TIME [JITTER [CORRELATION]]`, uniform, in
//! nanoseconds, as tc 7.2 sends them (tc 6.1 still cuts them to ticks of 64 ns), with `distribution normal | pareto |
//! paretonormal` of the jitter ([`distribution`]); `loss [random] PERCENT [CORRELATION]`, `loss state P13 [P31 [P32
//! [P23 [P14]]]]`, `loss gemodel P [R [1-H [1-K]]]` ([`loss`]), with `ecn` a mark instead; `duplicate PERCENT
//! [CORRELATION]`; `corrupt PERCENT [CORRELATION]`: a bit is turned over, and the host that gets the packet drops it; `reorder PERCENT [CORRELATION] [gap N]`; `rate RATE
//! [PACKETOVERHEAD [CELLSIZE [CELLOVERHEAD]]]`; `slot MIN [MAX] [packets N] [bytes N]` or `slot distribution
//! NAME MEAN DEVIATION …`; `seed N`. A child
//! takes what has been delayed and releases it in its own way.
//!
//! Departures: the copy of a duplicated packet enters this qdisc again, as in Linux if it is the
//! root. A corrupt packet is one whose checksum fails, wherever the bit lies, and travels on until then; of
//! several segments in one buffer it is the first, and the others enter one by one. `seed` gives
//! reproducible draws, but not the kernel's. Not modelled: `distribution experimental` and tables of a user's own.
//!
//! Validation: constant delay, order and limit, reordering by jitter and by gap, serialisation at the
//! rate, slots, correlation, loss models, distributions and duplication (tests below); conservation (`tests/conservation.rs`).

mod config;
mod distribution;
mod loss;

use std::collections::VecDeque;

use super::{Cause, Delaying, Delays, Env, Hints, Properties, Qdisc, Queue, Statistics, Tally, Tree};
use crate::base::ring::Ring;
use crate::base::rng::Stream;
use crate::base::units::Time;
use crate::packet::{Flags, Packet};
use bakeoff_document::tc::{TcError, Words};
use config::{Config, SlotConfig};
use loss::{LossModel, State};

/// The delay line.
pub struct Netem {
    config: Config,
    /// Whether a delay is all that happens here.
    only_delays: bool,
    /// Put in front by `reorder`: these leave at once.
    front: VecDeque<Packet>,
    /// In order of the time to send.
    delayed: Ring<Delayed>,
    backlog: u64,
    /// Ordinary packets since the last one that was put in front.
    counter: u32,
    slot: Option<OpenSlot>,
    random: Random,
    loss_state: State,
    stats: Stats,
    child: Option<Box<Queue>>,
}

#[derive(Clone, Copy, Default)]
struct Delayed {
    time_to_send: Time,
    packet: Packet,
}

/// What `tc -s` reports.
#[derive(Clone, Copy, Debug, Default)]
struct Stats {
    delayed: u64,
    dropped: u64,
    corrupted: u64,
    duplicated: u64,
    reordered: u64,
    ecn_marked: u64,
}

/// The slot in which packets leave next.
#[derive(Clone, Copy, Debug)]
struct OpenSlot {
    begin: Time,
    packets_left: i64,
    bytes_left: i64,
}

/// One random stream; every use has its own memory for its correlation.
struct Random {
    stream: Stream,
    delay: u32,
    loss: u32,
    duplicate: u32,
    reorder: u32,
    corrupt: u32,
}

impl Random {
    fn new(seed: u64, name: &str) -> Self {
        let mut stream = Stream::new(seed, name);
        let [delay, loss, duplicate, reorder] = std::array::from_fn(|_| stream.u32());
        // The draws of those before it stay what they were when there was no corruption.
        let corrupt = Stream::new(seed, &format!("{name}/corrupt")).u32();
        Random { stream, delay, loss, duplicate, reorder, corrupt }
    }
}

/// A draw that keeps the share `rho` (of 2^32) of the last one. Source: Linux 7.3 `get_crandom`.
fn correlated(stream: &mut Stream, last: &mut u32, rho: u32) -> u32 {
    let value = stream.u32();
    if rho == 0 {
        return value;
    }
    let rho = u64::from(rho) + 1;
    let mixed = u64::from(value) * ((1 << 32) - rho) + u64::from(*last) * rho;
    *last = (mixed >> 32) as u32;
    *last
}

impl SlotConfig {
    /// A slot that begins after a random pause. Source: Linux 7.3 `get_slot_next`.
    fn open(&self, now: Time, stream: &mut Stream) -> OpenSlot {
        if let Some((table, mean, deviation)) = &self.distribution {
            let pause = table.at(stream.u32(), *mean, *deviation);
            return self.begin(Time(now.as_ns().saturating_add_signed(pause)));
        }
        let range = u128::from(self.max - self.min);
        let pause = self.min + ((u128::from(stream.u32()) * range) >> 32) as u64;
        self.begin(now + Time(pause))
    }

    fn begin(&self, begin: Time) -> OpenSlot {
        let limit = |n: u64| if n == 0 { i64::MAX } else { n.cast_signed() };
        OpenSlot { begin, packets_left: limit(u64::from(self.packets)), bytes_left: limit(self.bytes) }
    }
}

impl Netem {
    /// The line of the file's parameters, and the queue behind the delay.
    pub fn new(words: &mut Words, env: &Env) -> Result<Self, TcError> {
        let child = words.child();
        let mut config = Config::new();
        config.take_all(words)?;
        let build = |spec| Queue::build(spec, &env.child("child")).map(Box::new);
        let random = match config.seed {
            Some(seed) => Random::new(seed, "netem"),
            None => Random::new(env.seed, &env.name),
        };
        Ok(Netem {
            slot: config.slot.as_ref().map(|slot| slot.begin(Time::ZERO)),
            only_delays: config.only_delays() && child.is_none(),
            config,
            front: VecDeque::new(),
            delayed: Ring::default(),
            backlog: 0,
            counter: 0,
            random,
            loss_state: State::default(),
            stats: Stats::default(),
            child: child.map(build).transpose()?,
        })
    }

    /// Whether an event of this chance happens.
    fn hits(stream: &mut Stream, chance: u32, last: &mut u32, rho: u32) -> bool {
        chance > 0 && chance >= correlated(stream, last, rho)
    }

    /// Source: Linux 7.3 `loss_event`.
    fn is_lost(&mut self) -> bool {
        let Random { stream, loss, .. } = &mut self.random;
        match self.config.loss {
            LossModel::Random { chance, correlation } => Self::hits(stream, chance, loss, correlation),
            LossModel::FourStates { p13, p31, p32, p23, p14 } => {
                self.loss_state.four_states([p13, p31, p32, p23, p14], stream)
            }
            LossModel::GilbertElliott { p, r, h, k1 } => {
                self.loss_state.gilbert_elliott([p, r, h, k1], stream)
            }
        }
    }

    /// Source: Linux 7.3 `netem_enqueue`.
    fn admit(&mut self, mut packet: Packet, duplicate: u32, now: Time, tally: &mut Tally) {
        let random = &mut self.random;
        let rho = self.config.duplicate_correlation;
        let mut copied = Self::hits(&mut random.stream, duplicate, &mut random.duplicate, rho);
        self.stats.duplicated += u64::from(copied);
        if self.is_lost() {
            if self.config.ecn && tally.mark(&mut packet) {
                self.stats.ecn_marked += 1;
            } else {
                self.stats.dropped += 1;
                // A loss takes one of the two if the packet was duplicated.
                if !copied {
                    tally.drop(&packet, Cause::Loss);
                    return;
                }
                copied = false;
            }
        }
        // What is to wait here leaves its socket.
        if self.config.delays() {
            tally.orphan(&mut packet);
        }
        let copy = copied.then_some(Packet { flags: packet.flags.without(Flags::CHARGED), ..packet });
        let (random, config) = (&mut self.random, &self.config);
        let rho = config.corrupt_correlation;
        let mut whole = None;
        if Self::hits(&mut random.stream, config.corrupt, &mut random.corrupt, rho) {
            if packet.gso_size != 0 {
                tally.split(&packet);
                whole = Some(packet);
                packet = packet.segment(0);
            }
            packet.flags = packet.flags.with(Flags::CORRUPT);
            self.stats.corrupted += 1;
        }
        if self.qlen() >= self.config.limit as usize {
            // A copy that there was no room for never came into being.
            tally.drop(&packet, Cause::Overlimit);
            if let Some(whole) = whole {
                (1..whole.segs()).for_each(|i| tally.drop(&whole.segment(i), Cause::Overlimit));
            }
            return;
        }
        if let Some(copy) = copy {
            tally.duplicate(&copy);
            self.admit(copy, 0, now, tally);
        }
        self.backlog += u64::from(packet.len);
        if self.goes_in_front() {
            self.counter = 0;
            self.stats.reordered += 1;
            self.front.push_back(packet);
        } else {
            self.counter += 1;
            let time_to_send = self.time_to_send(packet.len, now);
            self.stats.delayed += u64::from(time_to_send > now);
            self.insert(Delayed { time_to_send, packet });
        }
        if let Some(whole) = whole {
            for i in 1..whole.segs() {
                self.admit(whole.segment(i), self.config.duplicate, now, tally);
            }
        }
    }

    /// `reorder` with `gap`: after gap - 1 ordinary packets each one may be put in front.
    /// Source: Linux 7.3 `netem_enqueue`.
    fn goes_in_front(&mut self) -> bool {
        let Config { gap, reorder, reorder_correlation, .. } = self.config;
        let random = &mut self.random;
        gap > 0
            && self.counter >= gap - 1
            && reorder >= correlated(&mut random.stream, &mut random.reorder, reorder_correlation)
    }

    /// Source: Linux 7.3 `netem_enqueue`, `tabledist`, `packet_time_ns`.
    fn time_to_send(&mut self, len: u32, now: Time) -> Time {
        let config = &self.config;
        let mut delay = config.latency.cast_signed();
        if config.jitter > 0 {
            let random = &mut self.random;
            let draw = correlated(&mut random.stream, &mut random.delay, config.delay_correlation);
            let jitter = config.jitter.cast_signed().min(i64::from(i32::MAX));
            delay = match &config.distribution {
                Some(table) => table.at(draw, delay, jitter),
                None => i64::from(draw) % (2 * jitter) + delay - jitter,
            };
        }
        let mut from = now.as_ns().cast_signed();
        if let Some(rate) = config.rate {
            // Serialisation begins when the last packet has left, whose wait counts as delay.
            if let Some(last) = self.delayed.back() {
                let last = last.time_to_send.as_ns().cast_signed();
                delay = (delay - (last - from)).max(0);
                from = last;
            }
            delay += rate.ns(len).cast_signed();
        }
        Time((from + delay).max(0).cast_unsigned())
    }

    /// Keeps the order of the time to send, and of arrival among equals. Source: Linux 7.3 `tfifo_enqueue`.
    fn insert(&mut self, new: Delayed) {
        let in_order = |last: &Delayed| last.time_to_send <= new.time_to_send;
        if self.delayed.back().is_none_or(in_order) {
            self.delayed.push(new);
        } else {
            let at = self.delayed.partition_point(in_order);
            self.delayed.insert(at, new);
        }
    }

    /// What [`Netem::admit`] does where a delay is all that happens: the packet is copied once, to where it waits.
    #[inline]
    fn delay(&mut self, packet: &mut Packet, now: Time, tally: &mut Tally) {
        if self.config.latency > 0 {
            tally.orphan(packet);
        }
        if self.delayed.len() + self.front.len() >= self.config.limit as usize {
            tally.drop(packet, Cause::Overlimit);
            return;
        }
        let time_to_send = now + Time(self.config.latency);
        // A delay that became shorter.
        if self.delayed.back().is_some_and(|last| last.time_to_send > time_to_send) {
            self.insert(Delayed { time_to_send, packet: *packet });
        } else {
            let slot = self.delayed.push_slot();
            (slot.time_to_send, slot.packet) = (time_to_send, *packet);
        }
        self.backlog += u64::from(packet.len);
        self.counter += 1;
        self.stats.delayed += u64::from(self.config.latency > 0);
    }

    /// The first packet whose time has come, and whose slot. Source: Linux 7.3 `netem_dequeue`, `netem_peek`.
    fn release(&mut self, now: Time) -> Option<Packet> {
        let due = self.delayed.front()?.time_to_send;
        if let (Some(config), Some(slot)) = (&self.config.slot, &mut self.slot) {
            if slot.begin < due {
                *slot = config.open(now, &mut self.random.stream);
            }
            if slot.begin > now {
                return None;
            }
        }
        if due > now {
            return None;
        }
        let packet = self.delayed.front()?.packet;
        self.delayed.drop_front();
        self.backlog -= u64::from(packet.len);
        if let (Some(config), Some(slot)) = (&self.config.slot, &mut self.slot) {
            slot.packets_left -= 1;
            slot.bytes_left -= i64::from(packet.len);
            if slot.packets_left <= 0 || slot.bytes_left <= 0 {
                *slot = config.open(now, &mut self.random.stream);
            }
        }
        Some(packet)
    }
}

impl Qdisc for Netem {
    const PROPERTIES: Properties = Properties { measured: false, ..Properties::DEFAULT };

    fn enqueue(&mut self, packet: Packet, now: Time, tally: &mut Tally) {
        self.admit(packet, self.config.duplicate, now, tally);
    }

    #[inline]
    fn enqueue_from(&mut self, packet: &mut Packet, now: Time, tally: &mut Tally) {
        if self.only_delays {
            self.delay(packet, now, tally);
        } else {
            self.enqueue(*packet, now, tally);
        }
    }

    #[inline]
    fn dequeue_into(&mut self, into: &mut Packet, now: Time, tally: &mut Tally) -> bool {
        if !self.only_delays || !self.front.is_empty() {
            let packet = self.dequeue(now, tally);
            return packet.is_some_and(|packet| {
                *into = packet;
                true
            });
        }
        match self.delayed.front() {
            Some(first) if first.time_to_send <= now => {
                self.backlog -= u64::from(first.packet.len);
                *into = first.packet;
                self.delayed.drop_front();
                true
            }
            _ => false,
        }
    }

    fn dequeue(&mut self, now: Time, _tally: &mut Tally) -> Option<Packet> {
        if let Some(packet) = self.front.pop_front() {
            self.backlog -= u64::from(packet.len);
            return Some(packet);
        }
        while let Some(packet) = self.release(now) {
            match &mut self.child {
                Some(child) => child.enqueue(packet, now),
                None => return Some(packet),
            }
        }
        self.child.as_mut()?.dequeue(now)
    }

    #[inline]
    fn next_event(&self) -> Option<Time> {
        if !self.front.is_empty() {
            return Some(Time::ZERO);
        }
        if self.only_delays {
            return self.delayed.front().map(|first| first.time_to_send);
        }
        let begin = self.slot.map_or(Time::ZERO, |slot| slot.begin);
        let head = self.delayed.front();
        let head = head.map(|first| first.time_to_send.max(begin));
        // A child that has packets, and no event, gives one when it is asked.
        let of_child = |child: &Queue| child.next_event().or((child.qlen() > 0).then_some(Time::ZERO));
        let child = self.child.as_deref().and_then(of_child);
        head.into_iter().chain(child).min()
    }

    fn qlen(&self) -> usize {
        let below = self.child.as_ref().map_or(0, |child| child.qlen());
        self.front.len() + self.delayed.len() + below
    }

    fn backlog(&self) -> u64 {
        self.backlog + self.child.as_ref().map_or(0, |child| child.backlog())
    }

    /// As in Linux and tc: limit, delay, loss, duplicate and gap go back to their defaults if the line
    /// does not have them; everything else stays as it is.
    fn change(&mut self, words: &mut Words, now: Time, _tally: &mut Tally) -> Result<(), TcError> {
        let mut config = self.config.for_change();
        config.take_all(words)?;
        if let Some(slot) = &config.slot {
            self.slot = Some(slot.begin(now));
        }
        config.slot = config.slot.or_else(|| self.config.slot.clone());
        if config.loss != self.config.loss {
            self.loss_state = State::default();
        }
        self.counter = 0;
        if let Some(seed) = config.seed {
            self.random = Random::new(seed, "netem");
        }
        self.only_delays = config.only_delays() && self.child.is_none();
        self.config = config;
        Ok(())
    }

    fn hints(&self) -> Hints {
        Hints { eager: self.slot.is_some(), ..Hints::default() }
    }

    fn tree(&self) -> Option<&dyn Tree> {
        Some(self)
    }

    fn tree_mut(&mut self) -> Option<&mut dyn Tree> {
        Some(self)
    }

    fn delaying(&self) -> Option<&dyn Delaying> {
        Some(self)
    }

    fn delaying_mut(&mut self) -> Option<&mut dyn Delaying> {
        Some(self)
    }
}

impl Statistics for Netem {
    fn show(&self) -> String {
        self.config.show()
    }

    fn requeues(&self) -> u64 {
        self.stats.reordered
    }

    fn show_stats(&self, _now: Time) -> String {
        let s = &self.stats;
        format!(
            "  delayed {} dropped {} corrupted {} duplicated {} reordered {} ecn_marked {}",
            s.delayed, s.dropped, s.corrupted, s.duplicated, s.reordered, s.ecn_marked
        )
    }
}

impl Tree for Netem {
    fn for_each_child<'a>(&'a self, visit: &mut dyn FnMut(&str, &'a Queue)) {
        if let Some(child) = &self.child {
            visit("child", child);
        }
    }

    fn for_each_child_mut(&mut self, visit: &mut dyn FnMut(&str, &mut Queue)) {
        if let Some(child) = &mut self.child {
            visit("child", child);
        }
    }
}

impl Delaying for Netem {
    fn delays(&self) -> Option<Delays> {
        let (latency, limit) = (Time(self.config.latency), self.config.limit as usize);
        let delays = self.only_delays && latency > Time::ZERO && self.qlen() == 0;
        delays.then(|| Delays::netem(latency, limit))
    }

    fn delayed(&mut self, packets: u64) {
        self.stats.delayed += packets;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bakeoff_document::run;

    fn queue(line: &str) -> Queue {
        Queue::build(&run::Qdisc::leaf(line), &Env::default()).unwrap()
    }

    fn frame(seq: u64) -> Packet {
        Packet { seq, len: 1514, ..Packet::default() }
    }

    /// Takes packets as early as they may leave: (microseconds, sequence number).
    fn departures(q: &mut Queue, mut now: Time) -> Vec<(u64, u64)> {
        let mut out = Vec::new();
        loop {
            while let Some(packet) = q.dequeue(now) {
                out.push((now.as_us(), packet.seq));
            }
            match q.next_event() {
                Some(next) => {
                    assert!(next > now, "spins at {now:?}");
                    now = next;
                }
                None => return out,
            }
        }
    }

    #[test]
    fn a_constant_delay_keeps_order_and_spacing() {
        let mut q = queue("netem delay 10ms");
        for seq in 0..3 {
            q.enqueue(frame(seq), Time::from_us(100 * seq));
        }
        assert_eq!(q.next_event(), Some(Time::from_ms(10)));
        assert_eq!(departures(&mut q, Time::from_us(200)), [(10_000, 0), (10_100, 1), (10_200, 2)]);
    }

    #[test]
    fn corruption_takes_several_segments_apart_and_spoils_the_first() {
        let mut q = queue("netem delay 1ms corrupt 100%");
        let whole = Packet { payload: 3 * 1448, len: 3 * 1514, gso_size: 1448, ..frame(0) };
        q.enqueue(whole, Time::ZERO);
        let mut left = Vec::new();
        while let Some(packet) = q.dequeue(Time::from_ms(1)) {
            left.push((packet.seq, packet.len, packet.flags.has(Flags::CORRUPT)));
        }
        // each of the others meets the same chance
        assert_eq!(left, [(0, 1514, true), (1448, 1514, true), (2896, 1514, true)]);
        assert_eq!((q.tally.enqueued, q.tally.duplicated, q.tally.sent), (1, 2, 3));
    }

    #[test]
    fn a_delay_is_exact_to_the_nanosecond() {
        // tc 7.2 sends TCA_NETEM_LATENCY64 = 1500000
        let mut q = queue("netem delay 1.5ms");
        q.enqueue(frame(0), Time::ZERO);
        assert_eq!(q.next_event(), Some(Time::from_us(1_500)));
    }

    #[test]
    fn the_limit_counts_packets_under_way() {
        let mut q = queue("netem delay 10ms limit 2");
        for seq in 0..3 {
            q.enqueue(frame(seq), Time::ZERO);
        }
        assert_eq!((q.qlen(), q.backlog()), (2, 2 * 1514));
        assert_eq!(q.tally.drops[Cause::Overlimit as usize], 1);
    }

    #[test]
    fn jitter_is_uniform_around_the_delay_and_reorders() {
        let mut q = queue("netem delay 10ms 5ms limit 100000");
        for seq in 0..20_000 {
            q.enqueue(frame(seq), Time::from_us(10 * seq));
        }
        let out = departures(&mut q, Time::ZERO);
        let delays: Vec<f64> = out.iter().map(|(us, seq)| *us as f64 - 10.0 * *seq as f64).collect();
        assert!(delays.iter().all(|d| (4_999.0..=15_000.0).contains(d)));
        // mean 10 ms; the standard error of 20000 draws from a span of 10 ms is 20 us
        let mean = delays.iter().sum::<f64>() / delays.len() as f64;
        assert!((mean - 10_000.0).abs() < 100.0, "{mean}");
        // a quarter lies within a quarter of the span: 5000 of 20000, standard error 61
        let low = delays.iter().filter(|d| **d < 7_500.0).count();
        assert!(low.abs_diff(5_000) < 300, "{low}");
        assert!(out.windows(2).any(|w| w[0].1 > w[1].1));
        assert!(out.is_sorted_by_key(|(us, _)| *us));
    }

    #[test]
    fn a_rate_keeps_jittered_packets_in_order() {
        let mut q = queue("netem delay 10ms 5ms rate 1gbit limit 100000");
        for seq in 0..1000 {
            q.enqueue(frame(seq), Time::from_us(10 * seq));
        }
        let out = departures(&mut q, Time::ZERO);
        assert!(out.is_sorted_by_key(|(_, seq)| *seq));
    }

    #[test]
    fn a_rate_sends_packets_back_to_back() {
        // 1500 B at 12 Mbit/s take 1 ms; the overhead takes the 14 bytes of the frame off
        let mut q = queue("netem rate 12mbit -14");
        for seq in 0..3 {
            q.enqueue(frame(seq), Time::ZERO);
        }
        q.enqueue(frame(3), Time::from_us(2_500));
        assert_eq!(
            departures(&mut q, Time::from_us(2_500)).iter().map(|(_, seq)| *seq).collect::<Vec<u64>>(),
            [0, 1, 2, 3]
        );
        let mut q = queue("netem rate 12mbit -14 delay 5ms");
        for seq in 0..3 {
            q.enqueue(frame(seq), Time::ZERO);
        }
        assert_eq!(departures(&mut q, Time::ZERO), [(6_000, 0), (7_000, 1), (8_000, 2)]);
    }

    #[test]
    fn cells_are_charged_whole() {
        let rate =
            config::LinkRate { bytes_per_s: 1_000_000, packet_overhead: 0, cell_size: 48, cell_overhead: 5 };
        // 100 bytes are 3 cells of 53
        assert_eq!(rate.ns(100), 159_000);
        assert_eq!(rate.ns(96), 106_000);
    }

    #[test]
    fn slots_release_at_most_their_packets_after_a_pause_in_the_range() {
        let mut q = queue("netem delay 200us slot 800us 5ms packets 16 limit 10000");
        for seq in 0..160 {
            q.enqueue(frame(seq), Time::ZERO);
        }
        let out = departures(&mut q, Time::ZERO);
        assert_eq!(out.len(), 160);
        let mut clumps: Vec<(u64, u32)> = Vec::new();
        for (us, _) in out {
            match clumps.last_mut() {
                Some((at, n)) if *at == us => *n += 1,
                _ => clumps.push((us, 1)),
            }
        }
        assert_eq!(clumps.len(), 10);
        assert!(clumps.iter().all(|(_, n)| *n == 16));
        for pair in clumps.windows(2) {
            assert!((799..=5_001).contains(&(pair[1].0 - pair[0].0)), "{pair:?}");
        }
    }

    #[test]
    fn a_slot_s_bytes_are_a_budget_too() {
        let mut q = queue("netem slot 1ms bytes 3000");
        for seq in 0..4 {
            q.enqueue(frame(seq), Time::ZERO);
        }
        // the packet that exhausts the budget still leaves: two of 1514 bytes. The first slot is
        // that of the configuration, open at once.
        assert_eq!(departures(&mut q, Time::ZERO), [(0, 0), (0, 1), (1_000, 2), (1_000, 3)]);
    }

    #[test]
    fn reorder_with_a_gap_puts_every_nth_packet_in_front() {
        let mut q = queue("netem delay 10ms reorder 100% gap 3");
        for seq in 0..6 {
            q.enqueue(frame(seq), Time::ZERO);
        }
        let order: Vec<u64> = departures(&mut q, Time::ZERO).iter().map(|(_, s)| *s).collect();
        assert_eq!(order, [2, 5, 0, 1, 3, 4]);
    }

    #[test]
    fn loss_comes_in_the_share_asked_for_and_is_counted_as_loss() {
        let mut q = queue("netem loss 10% limit 100000");
        for seq in 0..20_000 {
            q.enqueue(frame(seq), Time::ZERO);
        }
        // 2000 of 20000, standard error 42
        let lost = q.tally.drops[Cause::Loss as usize];
        assert!(lost.abs_diff(2_000) < 200, "{lost}");
        assert_eq!(q.qlen() as u64 + lost, 20_000);
    }

    #[test]
    fn with_ecn_a_loss_is_a_mark() {
        let mut q = queue("netem loss 100% ecn");
        q.enqueue(Packet { ecn: crate::packet::Ecn::Ect0, ..frame(0) }, Time::ZERO);
        q.enqueue(frame(1), Time::ZERO);
        assert_eq!((q.tally.marks, q.tally.dropped(), q.qlen()), (1, 1, 1));
    }

    #[test]
    fn a_duplicate_is_a_second_packet_and_not_duplicated_again() {
        let mut q = queue("netem delay 1ms duplicate 100%");
        q.enqueue(frame(7), Time::ZERO);
        assert_eq!(departures(&mut q, Time::ZERO), [(1_000, 7), (1_000, 7)]);
        assert_eq!((q.tally.duplicated, q.tally.enqueued, q.tally.sent), (1, 1, 2));
    }

    #[test]
    fn correlation_keeps_its_share_of_the_last_draw() {
        let lag_one = |rho: u32| {
            let mut stream = Stream::new(1, "test");
            let mut last = stream.u32();
            let draws: Vec<f64> =
                (0..20_000).map(|_| f64::from(correlated(&mut stream, &mut last, rho))).collect();
            let n = draws.len() as f64;
            let mean = draws.iter().sum::<f64>() / n;
            let var = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
            let cov = draws.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum::<f64>() / n;
            cov / var
        };
        // x' = (1 - rho) u + rho x has lag-one correlation rho; standard error 0.007
        assert!(lag_one(0).abs() < 0.03);
        assert!((lag_one(u32::MAX / 4 * 3) - 0.75).abs() < 0.03);
    }

    #[test]
    fn a_normal_jitter_has_its_mean_and_deviation() {
        let mut q = queue("netem delay 100ms 10ms distribution normal limit 100000");
        for seq in 0..20_000 {
            q.enqueue(frame(seq), Time::ZERO);
        }
        let delays: Vec<f64> =
            departures(&mut q, Time::ZERO).iter().map(|(us, _)| *us as f64 / 1e3).collect();
        let n = delays.len() as f64;
        let mean = delays.iter().sum::<f64>() / n;
        let deviation = (delays.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / n).sqrt();
        // standard errors: 10/sqrt(20000) = 0.07 of the mean, 0.05 of the deviation
        assert!((mean - 100.0).abs() < 0.3 && (deviation - 10.0).abs() < 0.25, "{mean} {deviation}");
        // not uniform: 5 % lie beyond two deviations
        let beyond = delays.iter().filter(|d| (**d - mean).abs() > 2.0 * deviation).count();
        assert!((700..1_150).contains(&beyond), "{beyond}");
    }

    #[test]
    fn corrupt_packets_travel_on_and_are_known() {
        let mut q = queue("netem corrupt 10% limit 100000");
        for seq in 0..10_000 {
            q.enqueue(frame(seq), Time::ZERO);
        }
        let corrupt =
            std::iter::from_fn(|| q.dequeue(Time::ZERO)).filter(|p| p.flags.has(Flags::CORRUPT)).count();
        // 1000 of 10000, standard error 30
        assert!(corrupt.abs_diff(1_000) < 130, "{corrupt}");
        assert_eq!((q.tally.sent, q.tally.dropped()), (10_000, 0));
        assert!(q.show_stats(Time::ZERO).contains(&format!("corrupted {corrupt} ")));
    }

    #[test]
    fn a_slot_may_be_drawn_from_a_distribution() {
        let mut q = queue("netem slot distribution pareto 5ms 1ms packets 1");
        for seq in 0..1_000 {
            q.enqueue(frame(seq), Time::ZERO);
        }
        let times: Vec<f64> = departures(&mut q, Time::ZERO).iter().map(|(us, _)| *us as f64 / 1e3).collect();
        let gaps: Vec<f64> = times.windows(2).map(|w| w[1] - w[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        // the table's mean is -0.03 deviations; the shortest pause is 2/3 of one below the mean
        assert!((mean - 4.97).abs() < 0.15, "{mean}");
        assert!(gaps.iter().all(|g| *g > 4.33 && *g < 9.01));
    }

    #[test]
    fn a_child_queues_behind_the_delay() {
        let spec = run::Qdisc {
            qdisc: "netem delay 10ms".into(),
            classes: Vec::new(),
            child: Some(Box::new(run::Qdisc::leaf("pfifo limit 1"))),
        };
        let mut q = Queue::build(&spec, &Env::default()).unwrap();
        q.enqueue(frame(0), Time::ZERO);
        q.enqueue(frame(1), Time::ZERO);
        assert_eq!(q.dequeue(Time::from_ms(9)).map(|p| p.seq), None);
        // both are due at 10 ms; the child has room for one
        assert_eq!(q.dequeue(Time::from_ms(10)).map(|p| p.seq), Some(0));
        assert_eq!((q.qlen(), q.next_event()), (0, None));
        let mut child = (0, 0);
        assert!(q.at("child", &mut |queue| child = (queue.tally.dropped(), queue.tally.sent)));
        assert_eq!(child, (1, 1));
    }

    #[test]
    fn what_a_child_holds_does_not_wait_for_the_next_delay_to_end() {
        let spec = run::Qdisc {
            qdisc: "netem delay 10ms".into(),
            classes: Vec::new(),
            child: Some(Box::new(run::Qdisc::leaf("pfifo"))),
        };
        let mut q = Queue::build(&spec, &Env::default()).unwrap();
        for (seq, ms) in [(0, 0), (1, 0), (2, 5)] {
            q.enqueue(frame(seq), Time::from_ms(ms));
        }
        // Both of the first are due at 10 ms; the third is delayed until 15 ms.
        let due = Time::from_ms(10);
        assert_eq!(q.dequeue(due).map(|p| p.seq), Some(0));
        assert!(q.is_open(due));
        assert_eq!(q.dequeue(due).map(|p| p.seq), Some(1));
        assert_eq!((q.is_open(due), q.next_event()), (false, Some(Time::from_ms(15))));
    }

    #[test]
    fn a_change_resets_what_tc_always_sends_and_keeps_the_rest() {
        let mut q = queue("netem delay 10ms 1ms loss 1% rate 1mbit limit 5 slot 1ms");
        q.enqueue(frame(0), Time::ZERO);
        q.change("netem delay 20ms", Time::from_ms(3)).unwrap();
        assert_eq!(q.show(), "netem limit 1000 delay 20ms rate 1Mbit slot 1ms 1ms");
        assert_eq!(q.qlen(), 1);
        assert!(q.change("netem gap 3", Time::from_ms(3)).is_err());
        assert_eq!(q.show(), "netem limit 1000 delay 20ms rate 1Mbit slot 1ms 1ms");
    }

    #[test]
    fn the_configuration_is_shown_as_tc_does() {
        assert_eq!(
            queue(
                "netem delay 10ms 2ms 10% loss 1% 25% duplicate 2% reorder 25% 50% rate 1mbit -10 53 5 \
                   slot 800us 5ms packets 16 bytes 10k ecn"
            )
            .show(),
            "netem limit 1000 delay 10ms  2ms 10% loss 1% 25% duplicate 2% reorder 25% 50% rate 1Mbit \
             packetoverhead -10 cellsize 53 celloverhead 5 slot 800us 5ms packets 16 bytes 10240 ecn gap 1"
        );
        assert_eq!(queue("netem limit 1000000").show(), "netem limit 1000000");
    }

    #[test]
    fn words_stand_in_any_order() {
        let usual = "netem limit 1000 delay 10ms  2ms loss 1% gap 1";
        let show = |line| queue(line).show();
        assert_eq!(
            show("netem distribution normal delay 10ms 2ms loss 0% loss 1% gap 1 reorder 1%"),
            show("netem delay 10ms 2ms distribution normal loss 1% reorder 1%")
        );
        assert_eq!(show("netem gap 1 reorder 1% delay 10ms 2ms loss 1%").replace("reorder 1% ", ""), usual);
        // A correlation may follow a jitter of zero.
        assert_eq!(show("netem delay 10ms 0ms 25%"), "netem limit 1000 delay 10ms");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let error = |line: &str| {
            Queue::build(&run::Qdisc::leaf(line), &Env::default()).map(|q| q.show()).unwrap_err().to_string()
        };
        assert!(error("netem dealy 10ms").ends_with("did you mean 'delay'?"));
        assert!(error("netem delay -10ms").starts_with("delay: '-10ms' is not a time"));
        assert!(error("netem loss 101%").starts_with("loss: '101%' is not a percentage"));
        assert!(error("netem delay 1ms 1ms distribution experimental").contains("is not modelled"));
        assert!(error("netem delay 1ms 1ms distribution uniform").contains("leave it out"));
        assert!(error("netem delay 1ms distribution normal").starts_with("'distribution' needs"));
        for line in [
            "reorder 25%",
            "delay 1ms gap 5",
            "delay 1ms ecn",
            "slot 5ms 800us",
            "slot 1ms bytes 10 packets 3",
            "delay 1ms 2ms 3% 4%",
            // tc wants both above zero
            "delay 0ms 200us distribution normal",
            "distribution normal delay 10ms 0ms",
            "distribution normal",
            "loss 1% loss 2%",
            "loss state 1% loss 1%",
            "loss 1% drop gemodel 1%",
            "slot distribution normal 1ms 0ms",
        ] {
            error(&format!("netem {line}"));
        }
    }
}
