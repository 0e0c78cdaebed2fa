//! `netem`: delay, jitter, loss, duplication, reordering, a rate, and slots in which packets leave.
//!
//! Source: Linux 7.3 `net/sched/sch_netem.c`; iproute2 `tc/q_netem.c`.
//!
//! Parameters: `limit` in packets (1000); `delay TIME [JITTER [CORRELATION]]`, uniform, kept in ticks
//! of 64 ns of whole microseconds, as tc sends them; `loss [random] PERCENT [CORRELATION]`, with `ecn` a
//! mark instead; `duplicate PERCENT [CORRELATION]`; `reorder PERCENT [CORRELATION] [gap N]`; `rate RATE
//! [PACKETOVERHEAD [CELLSIZE [CELLOVERHEAD]]]`; `slot MIN [MAX] [packets N] [bytes N]`; `seed N`. A child
//! takes what has been delayed and releases it in its own way.
//!
//! Departures: the copy of a duplicated packet enters this qdisc again, as in Linux if it is the
//! root. Not modelled: `distribution` tables (also of slots), `loss state`, `loss gemodel`, `corrupt`.
//!
//! Validation: constant delay, order and limit, reordering by jitter and by gap, serialisation at the
//! rate, slots, correlation, loss and duplication (tests below); conservation (`tests/conservation.rs`).

use std::collections::VecDeque;

use super::{Cause, Env, Qdisc, Queue, Tally};
use crate::packet::Packet;
use crate::rng::Stream;
use crate::run;
use crate::tc::{TcError, Words, psched_ns, show};
use crate::units::{Rate, Time};

/// The delay line.
pub struct Netem {
    config: Config,
    /// Put in front by `reorder`: these leave at once.
    front: VecDeque<Packet>,
    /// In order of the time to send. With a constant delay this is a plain ring.
    delayed: VecDeque<Delayed>,
    backlog: u64,
    /// Ordinary packets since the last one that was put in front.
    counter: u32,
    slot: Option<OpenSlot>,
    random: Random,
    child: Option<Box<Queue>>,
}

struct Delayed {
    time_to_send: Time,
    packet: Packet,
}

#[derive(Clone, Debug, Default)]
struct Config {
    limit: u32,
    latency: u64,
    jitter: u64,
    delay_correlation: u32,
    /// Probabilities and correlations: 100 % is `u32::MAX`.
    loss: u32,
    loss_correlation: u32,
    duplicate: u32,
    duplicate_correlation: u32,
    reorder: u32,
    reorder_correlation: u32,
    gap: u32,
    ecn: bool,
    rate: Option<LinkRate>,
    slot: Option<SlotConfig>,
    seed: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct LinkRate {
    bytes_per_s: u64,
    packet_overhead: i32,
    cell_size: u32,
    cell_overhead: i32,
}

impl LinkRate {
    /// How long a packet of `len` bytes takes, in nanoseconds.
    fn ns(self, len: u32) -> u64 {
        let mut bytes = (i64::from(len) + i64::from(self.packet_overhead)).max(0);
        if self.cell_size > 0 {
            let size = i64::from(self.cell_size);
            let cells = (bytes + size - 1) / size;
            bytes = (cells * (size + i64::from(self.cell_overhead))).max(0);
        }
        bytes.cast_unsigned() * 1_000_000_000 / self.bytes_per_s
    }
}

#[derive(Clone, Copy, Debug)]
struct SlotConfig {
    min: u64,
    max: u64,
    /// 0 is no limit.
    packets: u32,
    bytes: u64,
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
}

impl Random {
    fn new(seed: u64, name: &str) -> Self {
        let mut stream = Stream::new(seed, name);
        let [delay, loss, duplicate, reorder] = std::array::from_fn(|_| stream.u32());
        Random {
            stream,
            delay,
            loss,
            duplicate,
            reorder,
        }
    }
}

/// A draw that keeps the share `rho` (of 2^32) of the last one.
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

impl Config {
    const WORDS: [&str; 10] = [
        "limit",
        "delay",
        "loss",
        "duplicate",
        "reorder",
        "gap",
        "rate",
        "slot",
        "ecn",
        "seed",
    ];

    fn take_all(&mut self, words: &mut Words) -> Result<(), TcError> {
        let mut asks_ecn = false;
        while let Some(word) = words.next_word() {
            match word {
                "limit" => self.limit = words.size()? as u32,
                "delay" | "latency" => self.take_delay(words)?,
                "loss" | "drop" => {
                    match words.peek() {
                        Some("random") => _ = words.value()?,
                        Some(model @ ("state" | "gemodel")) => {
                            return Err(words.not_modelled(&format!("loss {model}")));
                        }
                        _ => {}
                    }
                    (self.loss, self.loss_correlation) = chance(words)?;
                }
                "duplicate" => (self.duplicate, self.duplicate_correlation) = chance(words)?,
                "reorder" => (self.reorder, self.reorder_correlation) = chance(words)?,
                "gap" => self.gap = words.u32()?,
                "rate" => self.take_rate(words)?,
                "slot" => self.take_slot(words)?,
                "ecn" => asks_ecn = true,
                "seed" => {
                    let text = words.value()?;
                    let seed = text.parse();
                    self.seed = Some(seed.map_err(|_| words.bad(word, text, "a whole number"))?);
                }
                "distribution" | "corrupt" => return Err(words.not_modelled(word)),
                _ => return Err(words.unknown(word, &Self::WORDS)),
            }
        }
        if self.reorder > 0 && self.latency == 0 {
            return Err(words.refuse("'reorder' needs a delay"));
        }
        if self.gap > 0 && self.reorder == 0 {
            return Err(words.refuse("'gap' needs 'reorder PERCENT'"));
        }
        if self.reorder > 0 {
            self.gap = self.gap.max(1);
        }
        if asks_ecn && self.loss == 0 {
            return Err(words.refuse("'ecn' needs 'loss PERCENT'"));
        }
        self.ecn |= asks_ecn;
        Ok(())
    }

    fn take_delay(&mut self, words: &mut Words) -> Result<(), TcError> {
        self.latency = psched_ns(words.time()?.as_us());
        if words.next_is_number() {
            self.jitter = psched_ns(words.time()?.as_us());
        }
        if self.jitter > 0 && words.next_is_number() {
            self.delay_correlation = words.percent_u32()?;
        }
        Ok(())
    }

    fn take_rate(&mut self, words: &mut Words) -> Result<(), TcError> {
        let bytes_per_s = words.rate()?.bytes_per_s();
        let mut rate = LinkRate {
            bytes_per_s,
            packet_overhead: 0,
            cell_size: 0,
            cell_overhead: 0,
        };
        if words.next_is_signed_number() {
            rate.packet_overhead = words.i32()?;
            if words.next_is_number() {
                rate.cell_size = words.u32()?;
                if words.next_is_signed_number() {
                    rate.cell_overhead = words.i32()?;
                }
            }
        }
        self.rate = (bytes_per_s > 0).then_some(rate);
        Ok(())
    }

    fn take_slot(&mut self, words: &mut Words) -> Result<(), TcError> {
        if words.peek() == Some("distribution") {
            return Err(words.not_modelled("slot distribution"));
        }
        let min = words.time64()?.as_ns();
        let mut slot = SlotConfig {
            min,
            max: min,
            packets: 0,
            bytes: 0,
        };
        if words.next_is_number() {
            slot.max = words.time64()?.as_ns();
            if slot.max < min {
                return Err(words.refuse("slot: the longest delay is below the shortest"));
            }
        }
        if words.peek() == Some("packets") {
            words.next_word();
            slot.packets = words.u32()?;
        }
        if words.peek() == Some("bytes") {
            words.next_word();
            slot.bytes = words.size()?;
        }
        self.slot = (slot.max > 0).then_some(slot);
        Ok(())
    }
}

/// `PERCENT [CORRELATION]`
fn chance(words: &mut Words) -> Result<(u32, u32), TcError> {
    let probability = words.percent_u32()?;
    let correlation = if words.next_is_number() {
        words.percent_u32()?
    } else {
        0
    };
    Ok((probability, correlation))
}

impl SlotConfig {
    /// A slot that begins after a random pause.
    fn open(self, now: Time, stream: &mut Stream) -> OpenSlot {
        let range = u128::from(self.max - self.min);
        let pause = self.min + ((u128::from(stream.u32()) * range) >> 32) as u64;
        self.begin(now + Time(pause))
    }

    fn begin(self, begin: Time) -> OpenSlot {
        let limit = |n: u64| if n == 0 { i64::MAX } else { n.cast_signed() };
        OpenSlot {
            begin,
            packets_left: limit(u64::from(self.packets)),
            bytes_left: limit(self.bytes),
        }
    }
}

impl Netem {
    /// The line of the file's parameters, and the queue behind the delay.
    pub fn new(words: &mut Words, child: Option<&run::Qdisc>, env: &Env) -> Result<Self, TcError> {
        let mut config = Config {
            limit: 1000,
            ..Config::default()
        };
        config.take_all(words)?;
        let build = |spec| Queue::build(spec, &env.child("child")).map(Box::new);
        let random = match config.seed {
            Some(seed) => Random::new(seed, "netem"),
            None => Random::new(env.seed, &env.name),
        };
        Ok(Netem {
            slot: config.slot.map(|slot| slot.begin(Time::ZERO)),
            config,
            front: VecDeque::new(),
            delayed: VecDeque::new(),
            backlog: 0,
            counter: 0,
            random,
            child: child.map(build).transpose()?,
        })
    }

    fn admit(&mut self, mut packet: Packet, duplicate: u32, now: Time, tally: &mut Tally) {
        let Netem { config, random, .. } = self;
        let stream = &mut random.stream;
        let mut hits = |chance: u32, last: &mut u32, rho| {
            chance > 0 && chance >= correlated(stream, last, rho)
        };
        let mut copied = hits(
            duplicate,
            &mut random.duplicate,
            config.duplicate_correlation,
        );
        let lost = hits(config.loss, &mut random.loss, config.loss_correlation);
        if lost && !(config.ecn && tally.mark(&mut packet)) {
            // A loss takes one of the two if the packet was duplicated.
            if !copied {
                tally.drop(&packet, Cause::Loss);
                return;
            }
            copied = false;
        }
        if copied {
            tally.duplicate(&packet);
            self.admit(packet, 0, now, tally);
        }
        if self.delayed.len() >= self.config.limit as usize {
            tally.drop(&packet, Cause::Overlimit);
            return;
        }
        self.backlog += u64::from(packet.len);
        if self.goes_in_front() {
            self.counter = 0;
            self.front.push_back(packet);
        } else {
            self.counter += 1;
            let time_to_send = self.time_to_send(packet.len, now);
            self.insert(Delayed {
                time_to_send,
                packet,
            });
        }
    }

    /// `reorder` with `gap`: after gap - 1 ordinary packets each one may be put in front.
    fn goes_in_front(&mut self) -> bool {
        let Config {
            gap,
            reorder,
            reorder_correlation,
            ..
        } = self.config;
        let random = &mut self.random;
        gap > 0
            && self.counter >= gap - 1
            && reorder >= correlated(&mut random.stream, &mut random.reorder, reorder_correlation)
    }

    fn time_to_send(&mut self, len: u32, now: Time) -> Time {
        let config = &self.config;
        let mut delay = config.latency.cast_signed();
        if config.jitter > 0 {
            let random = &mut self.random;
            let draw = correlated(
                &mut random.stream,
                &mut random.delay,
                config.delay_correlation,
            );
            delay += (u64::from(draw) % (2 * config.jitter)).cast_signed();
            delay -= config.jitter.cast_signed();
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

    /// Keeps the order of the time to send, and of arrival among equals.
    fn insert(&mut self, new: Delayed) {
        let in_order = |last: &Delayed| last.time_to_send <= new.time_to_send;
        if self.delayed.back().is_none_or(in_order) {
            self.delayed.push_back(new);
        } else {
            let at = self.delayed.partition_point(in_order);
            self.delayed.insert(at, new);
        }
    }

    /// The first packet whose time has come, and whose slot.
    fn release(&mut self, now: Time) -> Option<Packet> {
        let due = self.delayed.front()?.time_to_send;
        if let (Some(config), Some(slot)) = (self.config.slot, &mut self.slot) {
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
        let packet = self.delayed.pop_front()?.packet;
        self.backlog -= u64::from(packet.len);
        if let (Some(config), Some(slot)) = (self.config.slot, &mut self.slot) {
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
    fn enqueue(&mut self, packet: Packet, now: Time, tally: &mut Tally) {
        self.admit(packet, self.config.duplicate, now, tally);
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

    fn next_event(&self) -> Option<Time> {
        if !self.front.is_empty() {
            return Some(Time::ZERO);
        }
        let begin = self.slot.map_or(Time::ZERO, |slot| slot.begin);
        let head = self.delayed.front();
        let head = head.map(|first| first.time_to_send.max(begin));
        let child = self.child.as_ref().and_then(|child| child.next_event());
        head.into_iter().chain(child).min()
    }

    fn qlen(&self) -> usize {
        let below = self.child.as_ref().map_or(0, |child| child.qlen());
        self.front.len() + self.delayed.len() + below
    }

    fn backlog(&self) -> u64 {
        self.backlog + self.child.as_ref().map_or(0, |child| child.backlog())
    }

    fn show(&self) -> String {
        self.config.show()
    }

    /// As in Linux and tc: limit, delay, loss, duplicate and gap go back to their defaults if the line
    /// does not have them; everything else stays as it is.
    fn change(&mut self, words: &mut Words, now: Time, _tally: &mut Tally) -> Result<(), TcError> {
        let mut config = Config {
            limit: 1000,
            latency: 0,
            jitter: 0,
            loss: 0,
            duplicate: 0,
            reorder: 0,
            gap: 0,
            slot: None,
            seed: None,
            ..self.config.clone()
        };
        config.take_all(words)?;
        if let Some(slot) = config.slot {
            self.slot = Some(slot.begin(now));
        }
        config.slot = config.slot.or(self.config.slot);
        if let Some(seed) = config.seed {
            self.random = Random::new(seed, "netem");
        }
        self.config = config;
        Ok(())
    }

    fn is_leaf_queue(&self) -> bool {
        false
    }

    fn for_each_child<'a>(&'a self, visit: &mut dyn FnMut(&str, &'a Queue)) {
        if let Some(child) = &self.child {
            visit("child", child);
        }
    }

    fn for_each_child_mut<'a>(&'a mut self, visit: &mut dyn FnMut(&str, &'a mut Queue)) {
        if let Some(child) = &mut self.child {
            visit("child", child);
        }
    }
}

impl Config {
    fn show(&self) -> String {
        let optional = |name: &str, chance: u32, correlation: u32| match (chance, correlation) {
            (0, _) => String::new(),
            (_, 0) => format!(" {name} {}", show::percent(chance)),
            _ => format!(
                " {name} {} {}",
                show::percent(chance),
                show::percent(correlation)
            ),
        };
        let mut text = format!("netem limit {}", self.limit);
        if self.latency > 0 {
            text += &format!(" delay {}", show::time64(self.latency));
            if self.jitter > 0 {
                text += &format!("  {}", show::time64(self.jitter));
                if self.delay_correlation > 0 {
                    text += &format!(" {}", show::percent(self.delay_correlation));
                }
            }
        }
        text += &optional("loss", self.loss, self.loss_correlation);
        text += &optional("duplicate", self.duplicate, self.duplicate_correlation);
        text += &optional("reorder", self.reorder, self.reorder_correlation);
        if let Some(rate) = self.rate {
            text += &format!(" rate {}", show::rate(Rate(rate.bytes_per_s * 8)));
            if rate.packet_overhead != 0 {
                text += &format!(" packetoverhead {}", rate.packet_overhead);
            }
            if rate.cell_size != 0 {
                text += &format!(" cellsize {}", rate.cell_size);
            }
            if rate.cell_overhead != 0 {
                text += &format!(" celloverhead {}", rate.cell_overhead);
            }
        }
        if let Some(slot) = self.slot {
            let (min, max) = (show::time64(slot.min), show::time64(slot.max));
            text += &format!(" slot {min} {max}");
            if slot.packets > 0 {
                text += &format!(" packets {}", slot.packets);
            }
            if slot.bytes > 0 {
                text += &format!(" bytes {}", slot.bytes);
            }
        }
        if self.ecn {
            text += " ecn";
        }
        if self.gap > 0 {
            text += &format!(" gap {}", self.gap);
        }
        if let Some(seed) = self.seed {
            text += &format!(" seed {seed}");
        }
        text
    }
}
