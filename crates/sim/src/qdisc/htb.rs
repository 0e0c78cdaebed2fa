//! `htb`: hierarchical token bucket, a shaper with classes that borrow from each other, each leaf with its own queue.
//!
//! Source: Linux 7.3 `net/sched/sch_htb.c`, `net/sched/sch_generic.c` (`psched_ratecfg`); iproute2
//! `tc/q_htb.c` (derived bursts).
//!
//! Parameters of the qdisc: `default MINOR` (hexadecimal; a leaf class), `r2q` (10; a class's
//! quantum is its rate in bytes per second divided by it), `direct_qlen` in packets (txqueuelen) for
//! what belongs to no class and is not shaped. Of a class: `rate`; `ceil` (rate); `burst` and `cburst`
//! in bytes (1600, `mtu` if given, plus what the rate moves in 1 ns), kept as a time, rounded up
//! to ticks of 64 ns, as tc 7.2 sends them; `quantum` in bytes (rate / r2q, 1000 to 200000); `prio` (0 to
//! 7, low first); `mtu`, `mpu`, `overhead` in bytes; `linklayer ethernet | atm`. A class that others name as
//! `parent` is an inner one: no queue, only rate and ceil, up to eight levels.
//!
//! A class below its rate sends at level 0. One above it, and below its ceil, borrows from the nearest
//! ancestor that is below its own rate; lower levels go first, then lower `prio`, then turns by quantum.
//!
//! Departures: Linux leaves what has no class unshaped even if `default` names a class that
//! is missing or not a leaf; here that is an error. Filters stand at the root. Modes follow the clock
//! itself, not the last event of the kernel's wait queues. Not modelled: `offload`.
//!
//! Validation: departures of a saturated class (0, 0, 228.48, 470.72, 712.96, 955.20 us at
//! 50 Mbit/s), DRR shares, priority, borrowing, ceilings, several levels, change in place (tests below);
//! conservation (`tests/conservation.rs`).

mod class;
mod params;
mod turns;

use std::collections::VecDeque;

use super::{Cause, Delaying, Delays, Env, Hints, Properties, Qdisc, Queue, Statistics, Tally, Tree};
use crate::base::units::Time;
use crate::packet::Packet;
use crate::packet::matching::{CompiledMatch, compile_filters, first_match};
use bakeoff_document::run;
use bakeoff_document::tc::{TcError, Words, parse_minor};
use class::{Class, Turn};
use params::MAX_LEVEL;

pub use class::Buckets;
pub use params::{PRIORITIES, Params};

/// The shaper with its classes.
pub struct Htb {
    /// In ascending order of minor number, which is the order of service.
    classes: Vec<Class>,
    /// Their places, children before parents.
    upwards: Vec<usize>,
    filters: Vec<(CompiledMatch, usize)>,
    default: Option<usize>,
    /// Whether no class borrows from another.
    flat: bool,
    /// Bit p: a class has this priority.
    prios: u8,
    /// Whose turn it is among the classes that may send by themselves, by level and priority.
    turns: Box<[[Turn; PRIORITIES]; MAX_LEVEL + 1]>,
    direct: VecDeque<Packet>,
    direct_backlog: u64,
    direct_packets: u64,
    direct_qlen: u32,
    r2q: u32,
}

impl Htb {
    /// `htb [default MINOR] [r2q N] [direct_qlen PACKETS]` with its classes.
    pub fn new(words: &mut Words, env: &Env) -> Result<Self, TcError> {
        let classes = words.classes();
        let (mut default, mut r2q, mut direct_qlen) = (0, 10, env.tx_queue_len);
        while let Some(word) = words.next_word() {
            match word {
                "default" => default = words.minor()?,
                "r2q" => r2q = words.positive_u32()?,
                "direct_qlen" => direct_qlen = words.decimal()?,
                "offload" | "debug" => return Err(words.not_modelled(word)),
                _ => return Err(words.unknown(word, &["default", "r2q", "direct_qlen"])),
            }
        }
        let is_parent = |class: &run::Class| {
            let minor = parse_minor(&class.id);
            classes.iter().any(|c| c.parent.as_deref().is_some_and(|id| parse_minor(id) == minor))
        };
        let mut built = Vec::with_capacity(classes.len());
        for class in classes {
            let class = Class::build(class, !is_parent(class), r2q, env, words)
                .map_err(|error| error.within(&format!("class {}", class.id)))?;
            built.push(class);
        }
        built.sort_by_key(|class| class.minor);
        if let Some(twice) = built.windows(2).find(|w| w[0].minor == w[1].minor) {
            return Err(words.refuse(&format!("class {}: duplicate", twice[1].id)));
        }
        let minors: Vec<u32> = built.iter().map(|class| class.minor).collect();
        let find = |minor| minors.iter().position(|known| *known == minor);
        for class in classes {
            let Some(parent) = &class.parent else { continue };
            let above = parse_minor(parent).and_then(find);
            let (Some(at), Some(above)) = (parse_minor(&class.id).and_then(find), above) else {
                return Err(
                    words.refuse(&format!("class {}: parent: there is no class '{parent}'", class.id))
                );
            };
            built[at].parent = Some(above);
        }
        let upwards = set_levels(&mut built).map_err(|message| words.refuse(&message))?;
        let default_at = find(default);
        if default != 0 && default_at.is_none_or(|at| built[at].queue.is_none()) {
            return Err(words.refuse(&format!("default: there is no class {default:x} with a queue")));
        }
        let filters =
            compile_filters(classes, &env.flow_names, &find).map_err(|message| words.refuse(&message))?;
        Ok(Htb {
            default: default_at,
            filters,
            prios: prios(&built),
            flat: built.iter().all(|class| class.parent.is_none()),
            classes: built,
            upwards,
            turns: Box::new([[None; PRIORITIES]; MAX_LEVEL + 1]),
            direct: VecDeque::new(),
            direct_backlog: 0,
            direct_packets: 0,
            direct_qlen,
            r2q,
        })
    }

    #[inline]
    fn classify(&self, packet: &Packet) -> Option<usize> {
        if self.filters.is_empty() { self.default } else { self.filtered(packet).or(self.default) }
    }

    #[inline(never)]
    fn filtered(&self, packet: &Packet) -> Option<usize> {
        first_match(&self.filters, packet)
    }

    #[inline(never)]
    fn dequeue_direct(&mut self) -> Option<Packet> {
        let packet = self.direct.pop_front()?;
        self.direct_backlog -= u64::from(packet.len);
        Some(packet)
    }

    /// A packet of whichever class may send: of those that send by themselves first, then of those that borrow.
    #[inline(never)]
    fn dequeue_by_turns(&mut self, now: Time) -> Option<Packet> {
        for (level, mut waiting) in self.refresh(now).into_iter().enumerate() {
            while waiting != 0 {
                let prio = waiting.trailing_zeros() as usize;
                waiting &= waiting - 1;
                if let Some(packet) = self.serve(level, prio, now) {
                    return Some(packet);
                }
            }
        }
        None
    }
}

#[inline(never)]
fn next_of(classes: &[Class]) -> Option<Time> {
    classes.iter().filter_map(|class| class.next(classes)).min()
}

fn prios(classes: &[Class]) -> u8 {
    classes.iter().fold(0, |prios, class| prios | 1 << class.params.prio)
}

/// Sets the level of each class; their places, children before parents.
fn set_levels(classes: &mut [Class]) -> Result<Vec<usize>, String> {
    let mut depths = Vec::with_capacity(classes.len());
    for (i, class) in classes.iter().enumerate() {
        let (mut depth, mut above) = (0, class.parent);
        while let Some(at) = above {
            depth += 1;
            above = classes[at].parent;
            if depth > MAX_LEVEL {
                return Err(format!(
                    "class {}: more than {MAX_LEVEL} classes above it, or a circle",
                    class.id
                ));
            }
        }
        depths.push((depth, i));
    }
    for (depth, i) in &depths {
        classes[*i].level = if classes[*i].queue.is_some() { 0 } else { MAX_LEVEL - depth };
    }
    depths.sort_unstable_by(|a, b| b.cmp(a));
    Ok(depths.into_iter().map(|(_, i)| i).collect())
}

impl Qdisc for Htb {
    const PROPERTIES: Properties =
        Properties { rests_when_empty: true, measured: false, ..Properties::DEFAULT };

    fn enqueue(&mut self, mut packet: Packet, now: Time, tally: &mut Tally) {
        self.enqueue_from(&mut packet, now, tally);
    }

    fn enqueue_from(&mut self, packet: &mut Packet, now: Time, tally: &mut Tally) {
        if let Some(at) = self.classify(packet) {
            let class = &mut self.classes[at];
            if let Some(queue) = &mut class.queue {
                queue.enqueue_from(packet, now);
            }
            class.note();
        } else if self.direct.len() < self.direct_qlen as usize {
            self.direct_packets += 1;
            self.direct_backlog += u64::from(packet.len);
            self.direct.push_back(*packet);
        } else {
            tally.drop(packet, Cause::Overlimit);
        }
    }

    fn dequeue(&mut self, now: Time, tally: &mut Tally) -> Option<Packet> {
        let mut packet = Packet::default();
        self.dequeue_into(&mut packet, now, tally).then_some(packet)
    }

    fn dequeue_into(&mut self, into: &mut Packet, now: Time, _tally: &mut Tally) -> bool {
        // A lone class has nobody to take turns with, nor to borrow from.
        if let [class] = &mut self.classes[..]
            && self.direct.is_empty()
        {
            return class.qlen > 0 && class.wake() <= now && class.send(into, now);
        }
        let packet = if self.direct.is_empty() { self.dequeue_by_turns(now) } else { self.dequeue_direct() };
        packet.is_some_and(|packet| {
            *into = packet;
            true
        })
    }

    /// When the first class with packets may send, and its child is ready to give one.
    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
    fn next_event(&self) -> Option<Time> {
        if !self.direct.is_empty() {
            return Some(Time::ZERO);
        }
        if !self.flat {
            return next_of(&self.classes);
        }
        let due = match &self.classes[..] {
            // Most have one: that loop is made for many.
            [class] => class.due,
            classes => classes.iter().fold(Time::NEVER, |first, class| first.min(class.due)),
        };
        (due < Time::NEVER).then_some(due)
    }

    fn qlen(&self) -> usize {
        let below: usize = self.classes.iter().map(|class| class.qlen).sum();
        self.direct.len() + below
    }

    fn backlog(&self) -> u64 {
        let below: u64 = self.classes.iter().filter_map(|class| Some(class.queue.as_ref()?.backlog())).sum();
        self.direct_backlog + below
    }

    fn hints(&self) -> Hints {
        Hints {
            eager: self.classes.iter().any(|class| class.queue.as_ref().is_some_and(Queue::is_eager)),
            ..Hints::default()
        }
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

impl Statistics for Htb {
    fn show(&self) -> String {
        let default = self.default.map_or(0, |at| self.classes[at].minor);
        let default = if default == 0 { "0".into() } else { format!("{default:#x}") };
        format!(
            "htb r2q {} default {default} direct_packets_stat {} ver 3.17 direct_qlen {}",
            self.r2q, self.direct_packets, self.direct_qlen
        )
    }

    fn overlimits(&self) -> u64 {
        self.classes.iter().map(|class| class.overlimits).sum()
    }
}

impl Tree for Htb {
    fn for_each_child<'a>(&'a self, visit: &mut dyn FnMut(&str, &'a Queue)) {
        for class in &self.classes {
            if let Some(queue) = &class.queue {
                visit(&class.id, queue);
            }
        }
    }

    fn for_each_child_mut(&mut self, visit: &mut dyn FnMut(&str, &mut Queue)) {
        for class in &mut self.classes {
            if let Some(queue) = &mut class.queue {
                visit(&class.id, queue);
            }
            class.note();
        }
    }

    fn change_class(&mut self, id: &str, words: &mut Words) -> Result<(), TcError> {
        let at = parse_minor(id)
            .and_then(|minor| self.classes.iter().position(|class| class.minor == minor))
            .ok_or_else(|| words.refuse(&format!("there is no class '{id}'")))?;
        self.classes[at].params = Params::parse(words, self.r2q)?;
        self.prios = prios(&self.classes);
        Ok(())
    }

    fn show_classes(&self) -> Vec<String> {
        self.classes.iter().map(|class| class.show(&self.classes)).collect()
    }
}

impl Delaying for Htb {
    fn delays(&self) -> Option<Delays> {
        let line = |class: &Class| {
            let line = class.queue.as_ref()?.delays()?.into_line()?;
            Some(line.in_class(&class.id, &class.params, &class.buckets))
        };
        let (default, lines) = (self.default?, self.classes.iter().map(line).collect::<Option<_>>()?);
        self.flat.then(|| Delays::new(lines, self.filters.clone(), default))
    }

    fn reached_ceiling(&mut self, id: &str, times: u64) {
        self.classes.iter_mut().filter(|class| class.id == id).for_each(|class| class.overlimits += times);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::base::histogram::summary;
    use crate::packet::Ecn;
    use std::sync::Arc;

    pub(in crate::qdisc) fn class(id: &str, words: &str) -> run::Class {
        run::Class { id: id.into(), parent: None, class: words.into(), filters: Vec::new(), child: None }
    }

    /// A class for packets with this codepoint.
    pub(in crate::qdisc) fn by_dscp(dscp: u8, class: run::Class) -> run::Class {
        let only = run::Match { dscp: Some(dscp), ..run::Match::default() };
        run::Class { filters: vec![only], ..class }
    }

    pub(in crate::qdisc) fn with_child(line: &str, class: run::Class) -> run::Class {
        run::Class { child: Some(Box::new(run::Qdisc::leaf(line))), ..class }
    }

    pub(super) fn build(line: &str, classes: Vec<run::Class>) -> Result<Queue, TcError> {
        let spec = run::Qdisc { qdisc: line.into(), classes, child: None };
        let env = Env { flow_names: Arc::new(["prague".into(), "cubic".into()]), ..Env::default() };
        Queue::build(&spec, &env)
    }

    pub(in crate::qdisc) fn frame(dscp: u8) -> Packet {
        Packet { len: 1514, dscp, ..Packet::default() }
    }

    /// Serves the queue until `end`, each packet as early as it may leave: (nanoseconds, codepoint).
    fn departures(q: &mut Queue, end: Time) -> Vec<(u64, u8)> {
        let (mut now, mut out) = (Time::ZERO, Vec::new());
        while now < end {
            while let Some(packet) = q.dequeue(now) {
                out.push((now.as_ns(), packet.dscp));
            }
            match q.next_event() {
                Some(next) => {
                    assert!(next > now, "spins at {now:?}");
                    now = next;
                }
                None => break,
            }
        }
        out
    }

    fn times(departures: &[(u64, u8)]) -> Vec<u64> {
        departures.iter().map(|(ns, _)| *ns).collect()
    }

    #[test]
    fn a_saturated_class_sends_two_at_once_and_then_one_per_transmission_time() {
        // a bucket of 1600 B holds 256 us, a packet takes 242.24 us: after two the debt is 228.48 us
        let mut q = build("htb default 1", vec![class("1", "rate 50mbit ceil 50mbit")]).unwrap();
        for _ in 0..6 {
            q.enqueue(frame(0), Time::ZERO);
        }
        assert_eq!(times(&departures(&mut q, Time::from_ms(10))), [0, 0, 228_480, 470_720, 712_960, 955_200]);
    }

    #[test]
    fn idle_time_fills_the_bucket_and_no_more() {
        let mut q = build("htb default 1", vec![class("1", "rate 50mbit burst 5000")]).unwrap();
        for _ in 0..3 {
            q.enqueue(frame(0), Time::ZERO);
        }
        departures(&mut q, Time::from_ms(10));
        // 5000 B are 800 us of rate; cburst stays 256 us and the ceiling is the same rate
        for _ in 0..4 {
            q.enqueue(frame(0), Time::from_ms(10));
        }
        let mut n = 0;
        while q.dequeue(Time::from_ms(10)).is_some() {
            n += 1;
        }
        assert_eq!(n, 2);
        assert_eq!(q.next_event(), Some(Time::from_ns(10_228_480)));
    }

    #[test]
    fn a_ceiling_above_the_rate_gives_nothing_without_a_parent() {
        let mut q = build("htb default 1", vec![class("1", "rate 50mbit ceil 100mbit")]).unwrap();
        for _ in 0..4 {
            q.enqueue(frame(0), Time::ZERO);
        }
        assert_eq!(times(&departures(&mut q, Time::from_ms(10))), [0, 0, 228_480, 470_720]);
    }

    #[test]
    fn a_lone_class_is_served_as_beside_one_without_packets() {
        for words in [
            "rate 50mbit",
            "rate 20mbit ceil 50mbit burst 5k",
            "rate 9kbit mtu 9000",
            "rate 1gbit quantum 1514",
        ] {
            for child in ["pfifo limit 7", "fq_codel limit 7 flows 4 quantum 300", "netem delay 1ms"] {
                let one = || with_child(child, class("1", words));
                let mut lone = build("htb default 1", vec![one()]).unwrap();
                let mut beside = build("htb default 1", vec![one(), class("2", "rate 8bit")]).unwrap();
                let mut now = Time::ZERO;
                // Bursts of three, which come closer together and then no more.
                for gap_us in [5000, 900, 700, 500, 0, 0, 100, 2000, 0, 40_000] {
                    for len in [1514, 66, 700] {
                        for q in [&mut lone, &mut beside] {
                            q.enqueue(Packet { len, hash: len, ..Packet::default() }, now);
                        }
                    }
                    let end = now + Time::from_us(gap_us);
                    while now < end {
                        assert_eq!(lone.next_event(), beside.next_event(), "{words}, {child}, {now:?}");
                        loop {
                            let (a, b) = (lone.dequeue(now), beside.dequeue(now));
                            assert_eq!(a.map(|p| p.len), b.map(|p| p.len), "{words}, {child}, {now:?}");
                            if a.is_none() {
                                break;
                            }
                        }
                        now = lone.next_event().map_or(end, |at| at.min(end));
                    }
                }
                assert_eq!((lone.qlen(), lone.overlimits()), (beside.qlen(), beside.overlimits()));
                assert_eq!(lone.show_classes()[0], beside.show_classes()[0]);
            }
        }
    }

    #[test]
    fn classes_of_one_priority_share_by_quantum() {
        // Each could use all of its 100 Mbit/s; what they share is the turns at every moment.
        let classes = vec![
            by_dscp(1, class("1", "rate 100mbit burst 1mb cburst 1mb quantum 3028")),
            by_dscp(2, class("2", "rate 100mbit burst 1mb cburst 1mb quantum 1514")),
        ];
        let mut q = build("htb", classes).unwrap();
        for _ in 0..12 {
            q.enqueue(frame(1), Time::ZERO);
            q.enqueue(frame(2), Time::ZERO);
        }
        let turns: Vec<u8> = departures(&mut q, Time::from_us(1)).iter().map(|(_, dscp)| *dscp).collect();
        // a class keeps its turn until its deficit is below zero
        assert_eq!(turns[..10], [1, 2, 1, 1, 2, 1, 1, 2, 1, 1]);
    }

    #[test]
    fn a_lower_priority_number_goes_first() {
        let classes = vec![
            by_dscp(1, class("1", "rate 100mbit burst 1mb cburst 1mb prio 1")),
            by_dscp(2, class("2", "rate 100mbit burst 1mb cburst 1mb prio 0")),
        ];
        let mut q = build("htb", classes).unwrap();
        for dscp in [1, 1, 2, 2] {
            q.enqueue(frame(dscp), Time::ZERO);
        }
        let order: Vec<u8> = departures(&mut q, Time::from_us(1)).iter().map(|(_, dscp)| *dscp).collect();
        assert_eq!(order, [2, 2, 1, 1]);
    }

    #[test]
    fn backlogged_classes_keep_their_own_rates() {
        let classes = vec![by_dscp(1, class("1", "rate 30mbit")), by_dscp(2, class("2", "rate 10mbit"))];
        let mut q = build("htb", classes).unwrap();
        for _ in 0..1000 {
            q.enqueue(frame(1), Time::ZERO);
            q.enqueue(frame(2), Time::ZERO);
        }
        let out = departures(&mut q, Time::from_ms(300));
        let sent = |dscp| out.iter().filter(|(_, d)| *d == dscp).count() as u64;
        // 300 ms at the rate, and the packets that the bucket gives at the start: within 2 packets
        for (dscp, rate) in [(1, 30_000_000_u64), (2, 10_000_000)] {
            let packets = rate * 3 / 10 / 8 / 1514;
            assert!(sent(dscp).abs_diff(packets) <= 2, "{dscp}: {}", sent(dscp));
        }
    }

    #[test]
    fn per_flow_delays_by_codepoint() {
        let leg = |id, delay| {
            with_child(&format!("netem delay {delay} limit 10000"), class(id, "rate 1gbps ceil 2gbps"))
        };
        let classes = vec![by_dscp(19, leg("1", "5ms")), by_dscp(35, leg("2", "10ms")), leg("10", "0ms")];
        let mut q = build("htb default 10", classes).unwrap();
        q.enqueue(frame(35), Time::ZERO);
        q.enqueue(frame(19), Time::from_ms(1));
        q.enqueue(frame(0), Time::from_ms(2));
        assert_eq!(q.dequeue(Time::from_ms(2)).map(|p| p.dscp), Some(0));
        assert_eq!(q.dequeue(Time::from_ms(2)).map(|p| p.dscp), None);
        assert_eq!(q.next_event(), Some(Time::from_ms(6)));
        assert_eq!(q.dequeue(Time::from_ms(6)).map(|p| p.dscp), Some(19));
        assert_eq!(q.dequeue(Time::from_ms(6)).map(|p| p.dscp), None);
        assert_eq!(q.next_event(), Some(Time::from_ms(10)));
        assert_eq!(q.dequeue(Time::from_ms(10)).map(|p| p.dscp), Some(35));
        assert_eq!(q.next_event(), None);
    }

    #[test]
    fn the_first_filter_that_matches_decides_and_names_are_resolved() {
        let flow = run::Match { flow: Some("cubic".into()), ..run::Match::default() };
        let marked = run::Match { ecn: Some("ce".into()), ..run::Match::default() };
        let classes = vec![
            run::Class { filters: vec![flow], ..class("a", "rate 1mbit") },
            run::Class { filters: vec![marked], ..class("9", "rate 1mbit") },
        ];
        let mut q = build("htb", classes).unwrap();
        let packet = Packet { flow: 1, ecn: Ecn::Ce, ..frame(0) };
        q.enqueue(packet, Time::ZERO);
        q.enqueue(Packet { flow: 0, ..packet }, Time::ZERO);
        q.enqueue(frame(0), Time::ZERO);
        let held: Vec<(String, usize)> =
            q.leaves().iter().map(|(handle, leaf)| (handle.clone(), leaf.qlen())).collect();
        assert_eq!(held, [("9".into(), 1), ("a".into(), 1)]);
        // what no class takes is not shaped and goes first
        assert_eq!(q.qlen(), 3);
        assert_eq!(q.dequeue(Time::ZERO).map(|p| p.ecn), Some(Ecn::NotEct));
    }

    #[test]
    fn a_change_keeps_queue_and_debt() {
        let mut q = build("htb default 1", vec![class("1", "rate 50mbit")]).unwrap();
        for _ in 0..5 {
            q.enqueue(frame(0), Time::ZERO);
        }
        while q.dequeue(Time::ZERO).is_some() {}
        q.change_class("1", "rate 5mbit ceil 5mbit").unwrap();
        // the debt of 228.48 us was made at the old rate; the next packet takes 2422.4 us
        assert_eq!(q.next_event(), Some(Time::from_ns(228_480)));
        assert!(q.dequeue(Time::from_ns(228_480)).is_some());
        assert_eq!(q.next_event(), Some(Time::from_ns(228_480 + 2_422_400)));
        assert_eq!(q.qlen(), 2);
        assert!(q.change_class("2", "rate 5mbit").is_err());
        assert!(q.change_class("1", "ceil 5mbit").is_err());
        assert_eq!(
            q.show_classes(),
            [
                "class htb 1:1 root prio 0 quantum 62500 rate 5Mbit ceil 5Mbit linklayer ethernet burst 1600b/1mpu 0b \
              cburst 1600b/1mpu 0b level 0"
            ]
        );
    }

    #[test]
    fn the_sojourn_is_measured_in_the_leaf() {
        let mut q = build("htb default 1", vec![class("1", "rate 50mbit")]).unwrap();
        q.record_window(Time::ZERO, Time::from_ms(1));
        for _ in 0..3 {
            q.enqueue(frame(0), Time::ZERO);
        }
        departures(&mut q, Time::from_ms(1));
        assert!(q.sojourn.is_none());
        let found = q.at("1", &mut |leaf| {
            let leaf = leaf.sojourn.as_mut().unwrap();
            let interval = leaf.take_interval();
            assert_eq!((interval.count, interval.max_ns), (3, 228_480));
            assert_eq!(summary(leaf.histogram().as_ref()).n, 3);
        });
        assert!(found);
    }

    #[test]
    fn the_tree_is_walked_with_handles() {
        let mut inner = class("1", "rate 1mbit");
        inner.child = Some(Box::new(run::Qdisc {
            qdisc: "netem delay 1ms".into(),
            classes: Vec::new(),
            child: Some(Box::new(run::Qdisc::leaf("codel"))),
        }));
        let mut q = build("htb default 1", vec![inner, class("2", "rate 1mbit")]).unwrap();
        let mut seen = Vec::new();
        q.for_each(&mut |handle, queue| {
            let kind = queue.show().split(' ').next().map(str::to_owned);
            seen.push(format!("{handle}={}", kind.unwrap_or_default()));
        });
        assert_eq!(seen, ["=htb", "1=netem", "1/child=codel", "2=pfifo"]);
        let leaves: Vec<String> = q.leaves().into_iter().map(|(handle, _)| handle).collect();
        assert_eq!(leaves, ["1/child", "2"]);
        let mut kind_at = |handle| {
            let mut kind = String::new();
            q.at(handle, &mut |queue| kind = queue.show())
                .then(|| kind.split(' ').next().map(str::to_owned))?
        };
        assert_eq!(kind_at("1/child").as_deref(), Some("codel"));
        assert_eq!(kind_at("").as_deref(), Some("htb"));
        assert_eq!(kind_at("1/3"), None);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_class() {
        let error = |line, classes| build(line, classes).map(|q| q.show()).unwrap_err().to_string();
        assert_eq!(
            error("htb default 1", vec![class("1", "rate 5mbit cel 5mbit")]),
            "class 1: unknown word 'cel' in 'rate 5mbit cel 5mbit'; did you mean 'ceil'?"
        );
        assert_eq!(
            error("htb default 1", vec![class("1", "ceil 5mbit")]),
            "class 1: 'rate' is required in 'ceil 5mbit'"
        );
        assert_eq!(
            error("htb default 10", vec![class("1", "rate 5mbit")]),
            "default: there is no class 10 with a queue in 'htb default 10'"
        );
        assert_eq!(
            error("htb", vec![class("1", "rate 5mbit"), class("01", "rate 5mbit")]),
            "class 01: duplicate in 'htb'"
        );
        assert_eq!(
            error("htb", vec![with_child("codel taget 5ms", class("1", "rate 5mbit"))]),
            "class 1: unknown word 'taget' in 'codel taget 5ms'; did you mean 'target'?"
        );
        assert_eq!(
            error("htb", vec![by_dscp(64, class("1", "rate 5mbit"))]),
            "class 1: filters[0]: dscp: 64 is not a codepoint from 0 to 63 in 'htb'"
        );
        assert!(error("htb", vec![class("1", "rate 0")]).contains("rate: '0' is not at least 8bit"));
        assert!(error("htb", vec![class("x", "rate 1mbit")]).contains("class x: the id is not"));
        assert!(error("htb offload", vec![]).contains("'offload' is not modelled"));
        assert_eq!(error("pfifo", vec![class("1", "rate 5mbit")]), "'pfifo' has no classes in 'pfifo'");
    }

    #[test]
    fn the_line_is_shown_as_tc_does() {
        let q = build("htb default 10", vec![class("10", "rate 1mbit")]).unwrap();
        assert_eq!(q.show(), "htb r2q 10 default 0x10 direct_packets_stat 0 ver 3.17 direct_qlen 1000");
    }
}
