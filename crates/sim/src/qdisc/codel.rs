//! `codel`: controlled delay, one queue; and the CoDel state machine that `fq_codel` shares.
//!
//! Source: RFC 8289; Linux 7.3 `include/net/codel_impl.h`, `net/sched/sch_codel.c`.
//!
//! Parameters: `limit` in packets (1000); `target` (5 ms) and `interval` (100 ms), kept in ticks of
//! 1024 ns; `ecn` / `noecn` (off): mark instead of drop; `ce_threshold` (off): mark every packet that
//! stood longer.
//!
//! Departures: ticks have 64 bits (Linux compares 32-bit ones, which wrap after 73 minutes). A packet
//! marked by the control law and by `ce_threshold` counts as one mark in the tally.
//!
//! Validation: the mark times of the integer control law, entering and leaving the dropping state,
//! re-entry with the remembered count (tests below); conservation (`tests/conservation.rs`).

use std::collections::VecDeque;

use super::{Cause, Env, Properties, Qdisc, Statistics, Tally};
use crate::base::units::Time;
use crate::packet::Packet;
use bakeoff_document::tc::{TcError, Words, show};

/// Linux 7.3 ends one dequeue after this many drops.
const MAX_DROPS: u32 = 256;

/// CoDel's clock: ticks of 1024 ns.
const fn ticks(time: Time) -> u64 {
    time.as_ns() >> 10
}

/// Microseconds in `ticks`, as tc prints them: 1 ms is stored as 976 ticks and shown as 999 us.
const fn ticks_to_us(ticks: u64) -> u64 {
    (ticks << 10) / 1000
}

/// The parameters of the state machine; times in ticks of 1024 ns.
#[derive(Clone, Debug)]
pub struct CodelParams {
    target: u64,
    interval: u64,
    ce_threshold: Option<u64>,
    /// Which values of the TOS byte `ce_threshold` is for: (value, mask); the mask 0 takes all.
    ce_threshold_selector: (u8, u8),
    ecn: bool,
    /// No signal while no more than this stands in the queue, in bytes.
    mtu: u64,
}

impl CodelParams {
    /// Linux's defaults on the device of `env`.
    pub fn new(env: &Env, ecn: bool) -> Self {
        CodelParams {
            target: ticks(Time::from_ms(5)),
            interval: ticks(Time::from_ms(100)),
            ce_threshold: None,
            ce_threshold_selector: (0, 0),
            ecn,
            mtu: u64::from(env.psched_mtu()),
        }
    }

    /// The words that these parameters have in every qdisc.
    pub const WORDS: [&str; 5] = ["target", "interval", "ce_threshold", "ecn", "noecn"];

    /// Takes `word` and its value if it is one of [`Self::WORDS`]; false if it is not.
    pub fn take(&mut self, word: &str, words: &mut Words) -> Result<bool, TcError> {
        match word {
            "target" => self.target = ticks(words.positive_time()?),
            "interval" => self.interval = ticks(words.positive_time()?),
            "ce_threshold" => self.ce_threshold = Some(ticks(words.time()?)),
            "ecn" => self.ecn = true,
            "noecn" => self.ecn = false,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Restricts `ce_threshold` to packets whose TOS byte has `value` under `mask`.
    pub fn select(&mut self, value: u8, mask: u8) {
        self.ce_threshold_selector = (value, mask);
    }

    /// `target 5ms interval 100ms`, with `ce_threshold` if set.
    pub fn show(&self) -> String {
        let time = |ticks| show::time(ticks_to_us(ticks));
        let mut parts = vec![format!("target {}", time(self.target))];
        if let Some(threshold) = self.ce_threshold {
            parts.push(format!("ce_threshold {}", time(threshold)));
        }
        if let (value, mask @ 1..) = self.ce_threshold_selector {
            parts.push(format!("ce_threshold_selector {value:#x}/{mask:#x}"));
        }
        parts.push(format!("interval {}", time(self.interval)));
        parts.join(" ")
    }

    /// ` ecn` or nothing.
    pub fn show_ecn(&self) -> &'static str {
        if self.ecn { " ecn" } else { "" }
    }

    /// Whether `ce_threshold` applies to `packet`.
    fn selects(&self, packet: &Packet) -> bool {
        let (value, mask) = self.ce_threshold_selector;
        mask == 0 || (packet.dscp << 2 | packet.ecn as u8) & mask == value
    }
}

/// Counts that tc prints.
#[derive(Clone, Debug, Default)]
pub struct CodelStats {
    /// The largest packet seen, in bytes.
    pub maxpacket: u32,
    /// Marks by the control law.
    pub ecn_mark: u64,
    /// Marks by `ce_threshold`.
    pub ce_mark: u64,
}

/// Where the state machine takes its packets from.
pub trait Head {
    /// Removes the first packet.
    fn pop(&mut self) -> Option<Packet>;
    /// Bytes standing behind the packet that [`Head::pop`] gave: in the whole qdisc, not only here.
    fn backlog(&self) -> u64;
}

/// The state of one CoDel queue; times in ticks of 1024 ns.
#[derive(Clone, Debug, Default)]
pub struct CodelVars {
    /// Signals since the dropping state was entered.
    pub count: u32,
    lastcount: u32,
    dropping: bool,
    /// 1/sqrt(count) as a 16-bit fraction.
    rec_inv_sqrt: u16,
    /// When the delay will have been above the target for an interval; 0 while it is not above.
    first_above_time: u64,
    drop_next: u64,
    /// Sojourn time of the last packet taken.
    ldelay: u64,
}

impl CodelVars {
    /// Takes the next packet to deliver, after the marks and drops that are due.
    /// Source: RFC 8289, section 5.5; Linux 7.3 `codel_dequeue`.
    pub fn dequeue(
        &mut self,
        params: &CodelParams,
        stats: &mut CodelStats,
        head: &mut impl Head,
        now: Time,
        tally: &mut Tally,
    ) -> Option<Packet> {
        let now = ticks(now);
        let mut packet = head.pop();
        if packet.is_none() {
            self.dropping = false;
        }
        let above = self.above_target(packet.as_ref(), params, stats, head.backlog(), now);
        let mut marked = false;
        if self.dropping {
            self.dropping = above;
            let mut drops = 0;
            while self.dropping && now >= self.drop_next && drops < MAX_DROPS {
                self.count = self.count.wrapping_add(1);
                self.newton_step();
                if signal(&mut packet, params, tally) {
                    stats.ecn_mark += 1;
                    marked = true;
                    self.drop_next = self.control_law(self.drop_next, params);
                    break;
                }
                drops += 1;
                packet = head.pop();
                self.dropping = self.above_target(packet.as_ref(), params, stats, head.backlog(), now);
                if self.dropping {
                    self.drop_next = self.control_law(self.drop_next, params);
                }
            }
            if drops == MAX_DROPS && self.dropping && now >= self.drop_next {
                // Too far behind: the schedule starts anew.
                self.drop_next = self.control_law(now, params);
            }
        } else if above {
            if signal(&mut packet, params, tally) {
                stats.ecn_mark += 1;
                marked = true;
            } else {
                packet = head.pop();
                self.above_target(packet.as_ref(), params, stats, head.backlog(), now);
            }
            self.enter_dropping(params, now);
        }
        if let (Some(packet), Some(threshold)) = (&mut packet, params.ce_threshold)
            && self.ldelay > threshold
            && params.selects(packet)
            && (marked || tally.mark(packet))
        {
            stats.ce_mark += 1;
        }
        packet
    }

    /// Takes note of the packet that is next, with so many bytes `behind` it, if it leaves without a mark or a drop, and
    /// nothing else happens then: the way of most. If not (false), [`CodelVars::dequeue`] finds all as it was.
    #[inline]
    pub fn lets_pass(
        &mut self,
        packet: &Packet,
        behind: u64,
        params: &CodelParams,
        stats: &mut CodelStats,
        now: Time,
    ) -> bool {
        !self.dropping
            && params.ce_threshold.is_none()
            && !self.above_target(Some(packet), params, stats, behind, ticks(now))
    }

    /// Whether the delay has stayed above the target for longer than an interval (RFC 8289, 5.6
    /// `dodequeue`). Asking again for the same packet changes nothing.
    /// The queue may keep one packet of the largest size whatever its delay. Source: Linux 7.3 `codel_should_drop`.
    fn above_target(
        &mut self,
        packet: Option<&Packet>,
        params: &CodelParams,
        stats: &mut CodelStats,
        behind: u64,
        now: u64,
    ) -> bool {
        let Some(packet) = packet else {
            self.first_above_time = 0;
            return false;
        };
        stats.maxpacket = stats.maxpacket.max(packet.len);
        self.ldelay = now.saturating_sub(ticks(packet.enqueued));
        if self.ldelay < params.target || behind <= params.mtu {
            self.first_above_time = 0;
            false
        } else if self.first_above_time == 0 {
            self.first_above_time = now + params.interval;
            false
        } else {
            now > self.first_above_time
        }
    }

    /// Until the next drop, negative if it is overdue; 0 if none is due.
    fn show_drop_next(&self, now: u64) -> String {
        let due = if self.dropping { self.drop_next } else { now };
        let sign = if due < now { "-" } else { "" };
        format!("{sign}{}", show::time(ticks_to_us(due.abs_diff(now))))
    }

    /// Sets the first `drop_next`. A state left less than 16 intervals ago resumes with the count
    /// that it had gained.
    /// Source: RFC 8289, section 5.5; Linux 7.3 `codel_dequeue`.
    fn enter_dropping(&mut self, params: &CodelParams, now: u64) {
        self.dropping = true;
        let gained = self.count.wrapping_sub(self.lastcount);
        let recent = now.cast_signed() - self.drop_next.cast_signed() < (16 * params.interval).cast_signed();
        if gained > 1 && recent {
            self.count = gained;
            self.newton_step();
        } else {
            self.count = 1;
            self.rec_inv_sqrt = u16::MAX;
        }
        self.lastcount = self.count;
        self.drop_next = self.control_law(now, params);
    }

    /// One step towards 1/sqrt(count): inv * (3 - count * inv^2) / 2, in Linux's integers. After a
    /// jump of the count (`fq_codel`'s batches of drops) these wrap around; so does this.
    /// Source: Linux 7.3 `codel_Newton_step`.
    fn newton_step(&mut self) {
        let inv = u64::from(self.rec_inv_sqrt) << 16;
        let inv2 = (inv * inv) >> 32;
        let mut value = (3_u64 << 32).wrapping_sub(u64::from(self.count).wrapping_mul(inv2));
        value = (value >> 2).wrapping_mul(inv) >> 31;
        self.rec_inv_sqrt = (value >> 16) as u16;
    }

    /// `from` + interval / sqrt(count), at least one tick later.
    /// Source: RFC 8289, sections 3.3 and 5.6 (`control_law`); Linux 7.3 `codel_control_law`.
    fn control_law(&self, from: u64, params: &CodelParams) -> u64 {
        let step = (params.interval * (u64::from(self.rec_inv_sqrt) << 16)) >> 32;
        from + step.max(1)
    }
}

/// Marks the packet (true) or, if it or the queue is not for ECN, drops it (false).
/// Source: Linux 7.3 `codel_dequeue`.
fn signal(packet: &mut Option<Packet>, params: &CodelParams, tally: &mut Tally) -> bool {
    let Some(packet) = packet else {
        return false;
    };
    if params.ecn && tally.mark(packet) {
        return true;
    }
    tally.drop(packet, Cause::Aqm);
    false
}

/// One first-in, first-out queue under CoDel.
pub struct Codel {
    config: Config,
    fifo: Fifo,
    vars: CodelVars,
    stats: CodelStats,
    drop_overlimit: u64,
}

#[derive(Clone)]
struct Config {
    limit: u32,
    params: CodelParams,
}

struct Fifo {
    packets: VecDeque<Packet>,
    backlog: u64,
}

impl Head for Fifo {
    fn pop(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.backlog -= u64::from(packet.len);
        Some(packet)
    }

    fn backlog(&self) -> u64 {
        self.backlog
    }
}

impl Config {
    fn take_all(&mut self, words: &mut Words) -> Result<(), TcError> {
        while let Some(word) = words.next_word() {
            match word {
                "limit" => self.limit = words.positive_u32()?,
                _ if self.params.take(word, words)? => {}
                _ => {
                    let known = [&["limit"], CodelParams::WORDS.as_slice()].concat();
                    return Err(words.unknown(word, &known));
                }
            }
        }
        Ok(())
    }
}

impl Codel {
    /// `codel [limit PACKETS] [target TIME] [interval TIME] [ecn | noecn] [ce_threshold TIME]`
    pub fn new(words: &mut Words, env: &Env) -> Result<Self, TcError> {
        let mut config = Config { limit: 1000, params: CodelParams::new(env, false) };
        config.take_all(words)?;
        Ok(Codel {
            config,
            fifo: Fifo { packets: VecDeque::new(), backlog: 0 },
            vars: CodelVars::default(),
            stats: CodelStats::default(),
            drop_overlimit: 0,
        })
    }
}

impl Qdisc for Codel {
    const PROPERTIES: Properties = Properties { work_conserving: true, ..Properties::DEFAULT };

    /// Source: RFC 8289, section 5.4; Linux 7.3 `codel_qdisc_enqueue`.
    fn enqueue(&mut self, packet: Packet, _now: Time, tally: &mut Tally) {
        if self.fifo.packets.len() < self.config.limit as usize {
            self.fifo.backlog += u64::from(packet.len);
            self.fifo.packets.push_back(packet);
        } else {
            self.drop_overlimit += 1;
            tally.drop(&packet, Cause::Overlimit);
        }
    }

    fn dequeue(&mut self, now: Time, tally: &mut Tally) -> Option<Packet> {
        let Codel { config, fifo, vars, stats, .. } = self;
        vars.dequeue(&config.params, stats, fifo, now, tally)
    }

    fn qlen(&self) -> usize {
        self.fifo.packets.len()
    }

    fn backlog(&self) -> u64 {
        self.fifo.backlog
    }

    /// Packets above a lowered limit are dropped from the head, as Linux does.
    fn change(&mut self, words: &mut Words, _now: Time, tally: &mut Tally) -> Result<(), TcError> {
        let mut config = self.config.clone();
        config.take_all(words)?;
        self.config = config;
        while self.fifo.packets.len() > self.config.limit as usize {
            if let Some(packet) = self.fifo.pop() {
                tally.drop(&packet, Cause::Overlimit);
            }
        }
        Ok(())
    }
}

impl Statistics for Codel {
    fn show(&self) -> String {
        let params = &self.config.params;
        format!("codel limit {}p {}{}", self.config.limit, params.show(), params.show_ecn())
    }

    fn show_stats(&self, now: Time) -> String {
        let vars = &self.vars;
        format!(
            "  count {} lastcount {} ldelay {}{} drop_next {}\n  maxpacket {} ecn_mark {} drop_overlimit {}{}",
            vars.count,
            vars.lastcount,
            show::time(ticks_to_us(vars.ldelay)),
            if vars.dropping { " dropping" } else { "" },
            vars.show_drop_next(ticks(now)),
            self.stats.maxpacket,
            self.stats.ecn_mark,
            self.drop_overlimit,
            self.stats.show_ce_mark(),
        )
    }
}

impl CodelStats {
    /// ` ce_mark N`, or nothing if there was none.
    pub fn show_ce_mark(&self) -> String {
        match self.ce_mark {
            0 => String::new(),
            n => format!(" ce_mark {n}"),
        }
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

    fn frame(ecn: Ecn) -> Packet {
        Packet { len: 1514, ecn, ..Packet::default() }
    }

    /// Keeps a queue of packets that are 20 ms old from 1 s on and takes one every 16 ticks; gives
    /// the times of the signals in seconds since the first one.
    fn signal_times(line: &str, ecn: Ecn, until: f64) -> Vec<f64> {
        let mut q = queue(line);
        let step = Time::from_ns(16 * 1024);
        let old = Time::from_ms(20);
        let (mut now, mut seen, mut times) = (Time::from_ms(1000), 0, Vec::new());
        while now < Time::from_ms(1200) + Time::from_secs_f64(until) {
            while q.qlen() < 4 {
                q.enqueue(frame(ecn), now - old);
            }
            q.dequeue(now);
            let signals = q.tally.marks + q.tally.dropped();
            if signals > seen {
                seen = signals;
                times.push(now.as_secs_f64());
            }
            now += step;
        }
        let first = times[0];
        times.iter().map(|t| t - first).collect()
    }

    /// The first signal, and from there on the steps of the integer control law.
    const LAW_MS: [(usize, f64); 14] = [
        (1, 0.0),
        (2, 100.0),
        (3, 150.0),
        (4, 206.0),
        (5, 255.0),
        (6, 299.0),
        (7, 340.0),
        (8, 377.0),
        (9, 412.0),
        (10, 445.0),
        (20, 712.0),
        (50, 1235.0),
        (100, 1823.0),
        (200, 2653.0),
    ];

    #[test]
    fn marks_come_at_the_times_of_the_integer_control_law() {
        let times = signal_times("codel ecn", Ecn::Ect0, 2.7);
        for (n, ms) in LAW_MS {
            // the vector is rounded to milliseconds
            assert!((times[n - 1] * 1e3 - ms).abs() <= 0.52, "{n}: {}", times[n - 1]);
        }
    }

    #[test]
    fn rfc_8289_signals_are_spaced_by_the_interval_over_the_square_root_of_their_count() {
        let times = signal_times("codel ecn", Ecn::Ect0, 2.7);
        let gap = |n: usize| (times[n] - times[n - 1]) * 1e3;
        for n in 5..times.len() {
            let law = 100.0 / (n as f64).sqrt();
            // Linux makes one step of Newton's method per signal, in 16 bits; and a dequeue comes every 0.1 ms.
            assert!((gap(n) - law).abs() < 0.025 * law + 0.1, "{n}: {} {law}", gap(n));
        }
        // The first steps fall short of the root: 1/2 for 0.707, then 0.56 for 0.577.
        assert_eq!([1, 2, 3].map(|n| gap(n).round() as u32), [100, 50, 56]);
    }

    #[test]
    fn drops_come_at_the_same_times() {
        let marks = signal_times("codel ecn", Ecn::Ect0, 1.0);
        let drops = signal_times("codel ecn", Ecn::NotEct, 1.0);
        assert_eq!(marks, drops);
        assert_eq!(drops, signal_times("codel", Ecn::Ect0, 1.0));
    }

    #[test]
    fn the_first_signal_needs_an_interval_above_the_target() {
        let mut q = queue("codel");
        for ms in 0..10 {
            q.enqueue(frame(Ecn::NotEct), Time::from_ms(ms));
        }
        // At 5 ms = 4882 ticks the sojourn is the target: the interval of 97656 ticks ends with tick
        // 102538, so the first signal comes in tick 102539, from 104999936 ns on.
        q.dequeue(Time::from_ms(5));
        q.dequeue(Time::from_ns(104_999_935));
        assert_eq!(q.tally.dropped(), 0);
        q.dequeue(Time::from_ns(104_999_936));
        assert_eq!(q.tally.drops[Cause::Aqm as usize], 1);
    }

    #[test]
    fn a_short_delay_or_a_last_packet_starts_the_interval_anew() {
        let mut q = queue("codel");
        let old = |q: &mut Queue, ms: u64| {
            while q.qlen() < 3 {
                q.enqueue(frame(Ecn::NotEct), Time::from_ms(ms - 20));
            }
            q.dequeue(Time::from_ms(ms));
        };
        old(&mut q, 1000);
        old(&mut q, 1090);
        // 1514 bytes remain behind the second packet: no more than the MTU
        q.dequeue(Time::from_ms(1091));
        assert_eq!(q.qlen(), 1);
        q.dequeue(Time::from_ms(1092));
        old(&mut q, 1110);
        old(&mut q, 1200);
        assert_eq!(q.tally.dropped(), 0);
        old(&mut q, 1211);
        assert_eq!(q.tally.dropped(), 1);
    }

    #[test]
    fn dropping_ends_below_the_target_and_resumes_with_the_count_it_gained() {
        let mut q = queue("codel ecn");
        let mut now = Time::from_ms(1000);
        let mut run = |q: &mut Queue, old: Time, span: Time| {
            let end = now + span;
            while now < end {
                while q.qlen() < 4 {
                    q.enqueue(frame(Ecn::Ect0), now - old);
                }
                q.dequeue(now);
                now += Time::from_us(100);
            }
        };
        let vars = |q: &Queue| match &q.kind {
            super::super::Kind::Codel(codel) => codel.vars.clone(),
            _ => unreachable!("built as codel"),
        };
        // an interval, then signals at 0, 100, 150, 206, 255, 299, 340, 377, 412 and 445 ms
        run(&mut q, Time::from_ms(20), Time::from_ms(550));
        assert_eq!((vars(&q).dropping, vars(&q).count), (true, 10));
        run(&mut q, Time::from_ms(1), Time::from_ms(50));
        assert!(!vars(&q).dropping);
        // the queue is back within 16 intervals: the count resumes at 10 - 1
        run(&mut q, Time::from_ms(20), Time::from_ms(101));
        assert_eq!((vars(&q).dropping, vars(&q).count), (true, 9));
        run(&mut q, Time::from_ms(1), Time::from_ms(1700));
        run(&mut q, Time::from_ms(20), Time::from_ms(101));
        assert_eq!((vars(&q).dropping, vars(&q).count), (true, 1));
    }

    #[test]
    fn a_dequeue_drops_256_packets_at_most_and_then_starts_the_schedule_anew() {
        let mut q = queue("codel");
        for _ in 0..600 {
            q.enqueue(frame(Ecn::NotEct), Time::from_ms(500));
        }
        let super::super::Kind::Codel(codel) = &mut q.kind else { unreachable!("built as codel") };
        // One tick from drop to drop, and a million of them behind.
        let behind =
            CodelVars { dropping: true, first_above_time: 1, count: 1, rec_inv_sqrt: 0, ..codel.vars };
        codel.vars = behind;
        let now = Time::from_ms(1000);
        assert!(q.dequeue(now).is_some());
        assert_eq!(q.tally.dropped(), 256);
        // The next is due a tick from now, not at once.
        assert!(q.dequeue(now).is_some());
        assert_eq!(q.tally.dropped(), 256);
    }

    #[test]
    fn ce_threshold_marks_every_packet_that_stood_longer() {
        let mut q = queue("codel ce_threshold 1ms");
        for _ in 0..4 {
            q.enqueue(frame(Ecn::Ect1), Time::ZERO);
        }
        q.dequeue(Time::from_us(999));
        assert_eq!(q.tally.marks, 0);
        q.dequeue(Time::from_us(1003));
        assert_eq!(q.tally.marks, 1);
        q.enqueue(frame(Ecn::NotEct), Time::ZERO);
        while q.dequeue(Time::from_ms(4)).is_some() {}
        assert_eq!((q.tally.marks, q.tally.dropped()), (3, 0));
    }

    #[test]
    fn the_tail_is_dropped_at_the_limit_and_the_head_when_the_limit_shrinks() {
        let mut q = queue("codel limit 3");
        for seq in 0..4 {
            q.enqueue(Packet { seq, ..frame(Ecn::NotEct) }, Time::ZERO);
        }
        assert_eq!(q.tally.drops[Cause::Overlimit as usize], 1);
        q.change("codel limit 2 target 10ms", Time::ZERO).unwrap();
        assert_eq!(q.tally.drops[Cause::Overlimit as usize], 2);
        assert_eq!(q.dequeue(Time::ZERO).map(|p| p.seq), Some(1));
        assert_eq!(q.show(), "codel limit 2p target 10ms interval 100ms");
    }

    #[test]
    fn the_configuration_is_shown_in_whole_ticks() {
        assert_eq!(
            queue("codel target 1ms interval 20ms ecn ce_threshold 800us").show(),
            "codel limit 1000p target 999us ce_threshold 799us interval 20ms ecn"
        );
        assert_eq!(queue("codel").show(), "codel limit 1000p target 5ms interval 100ms");
    }

    #[test]
    fn a_wrong_word_or_value_is_refused_and_changes_nothing() {
        let error = |line: &str| {
            Queue::build(&run::Qdisc::leaf(line), &Env::default()).map(|q| q.show()).unwrap_err().to_string()
        };
        assert_eq!(
            error("codel taget 5ms"),
            "unknown word 'taget' in 'codel taget 5ms'; did you mean 'target'?"
        );
        assert_eq!(error("codel target 0"), "target: '0' is not above zero in 'codel target 0'");
        let mut q = queue("codel");
        assert!(q.change("codel limit 5 flows 3", Time::ZERO).is_err());
        assert!(q.change("pie limit 5", Time::ZERO).is_err());
        assert_eq!(q.show(), queue("codel").show());
    }
}
