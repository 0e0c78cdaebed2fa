//! `red`: Random Early Detection on the average queue in bytes; marks or drops at enqueue.
//!
//! Source: Floyd and Jacobson 1993, Floyd et al. 2001 (adaptive); Linux 7.3 `net/sched/sch_red.c`,
//! `include/net/red.h`; iproute2 `tc/q_red.c`, `tc/tc_red.c` for what tc derives.
//!
//! Parameters: `limit` and `avpkt` bytes (both needed); `max` (limit/4, or 3*min), `min` (max/3)
//! bytes; `burst` packets ((2*min + max)/(3*avpkt)); `probability` at `max` (0.02); `bandwidth`
//! (10 Mbit/s; only for the idle table); `adaptive`, `ecn`, `harddrop`, `nodrop`.
//!
//! As in Linux the idle table that tc computes is in scheduler ticks of 64 ns and is read with
//! microseconds, so the average decays about 16 times more slowly than meant; and an idle period
//! begins when a dequeue finds the queue empty, which some parents never ask. And as in Linux `adaptive` adapts nothing:
//! since 5.7 tc tells it in `TCA_RED_FLAGS` alone, while the kernel starts the timer by the flags of `TCA_RED_PARMS`,
//! which are 0. `red@5.4` is the qdisc with the tools of its time, where the timer runs.
//!
//! Departures: the adaptive timer's phase counts from the start of the run. Not modelled: `qevent`.
//!
//! Validation: tc's derived table; mean spacing of marks at 25, 50, 75 and 100 % of the range; the
//! idle table; the adaptive bounds; conservation.

use std::collections::VecDeque;

use super::timer::Timer;
use super::{Cause, Env, Properties, Qdisc, Statistics, Tally};
use crate::base::rng::Stream;
use crate::base::units::{Rate, Time};
use crate::packet::Packet;
use bakeoff_document::tc::{TcError, Words, show};

/// Probability one, 32 binary digits.
pub const ONE: f64 = 4_294_967_296.0;
const ONE_PERCENT: u32 = 42_949_673;
/// A scheduler tick, the unit in which tc computes the idle table.
const TICK_NS: f64 = 64.0;

/// What tc passes to the kernel.
#[derive(Clone, Debug)]
struct Params {
    limit: u64,
    curve: Curve,
    scell_log: u32,
    /// Shift of the average by idle time in cells of 2^`scell_log` microseconds.
    stab: [u8; 256],
    adaptive: bool,
    ecn: bool,
    harddrop: bool,
    nodrop: bool,
}

/// What is to be done with an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Below the lower threshold, or not chosen.
    Pass,
    /// Between the thresholds: congestion is signalled.
    Early,
    /// Above the upper threshold.
    Hard,
}

/// The thresholds of the average in bytes, and its weight: what `red` and `sfq` share.
#[derive(Clone, Copy, Debug)]
pub struct Curve {
    pub min: u64,
    pub max: u64,
    /// Weight of the average: 2^-wlog.
    pub wlog: u32,
    /// Probability at `max`, as a fraction of 2^32; moves when adaptive.
    pub max_p: u32,
    /// `max_p` by byte between the thresholds.
    pub max_p_delta: u32,
}

impl Curve {
    pub fn new(min: u64, max: u64, wlog: u32, max_p: u32) -> Self {
        let mut curve = Curve { min, max, wlog, max_p, max_p_delta: 1 };
        curve.max_p_delta = (max_p / curve.range()).max(1);
        curve
    }

    /// From what a line says: 0 is not given. The error is what stands against it.
    pub fn derive(
        limit: u64,
        min: u64,
        max: u64,
        burst: u64,
        avpkt: u64,
        max_p: u32,
    ) -> Result<Self, String> {
        let max = match (max, min) {
            (0, 0) => limit / 4,
            (0, min) => min * 3,
            (max, _) => max,
        };
        let min = if min == 0 { max / 3 } else { min };
        let burst = if burst == 0 { (2 * min + max) / (3 * avpkt) } else { burst };
        if min > max {
            return Err(format!("min {min} is above max {max}; expected min <= max, in bytes"));
        }
        let Some(wlog) = ewma_log(min, burst, avpkt) else {
            return Err(format!(
                "burst {burst} gives no weight for the average; expected more packets than min/avpkt"
            ));
        };
        // The kernel keeps a scaled threshold in 32 bits.
        if max >> (31 - wlog) != 0 {
            return Err(format!(
                "max {max} is too large for a burst of {burst} packets; expected max*2^Wlog below 2^31"
            ));
        }
        Ok(Curve::new(min, max, wlog, max_p))
    }

    fn range(&self) -> u32 {
        ((self.max - self.min) as u32).max(1)
    }
}

/// The average of one queue, and where it stands between two signals.
#[derive(Clone, Copy, Debug)]
pub struct Average {
    /// Average queue in bytes, times 2^wlog.
    qavg: u64,
    /// Packets since the last mark between the thresholds; -1 before the first.
    qcount: i64,
    /// What `qcount` times the excess must reach.
    threshold: u64,
}

impl Average {
    pub const EMPTY: Average = Average { qavg: 0, qcount: -1, threshold: 0 };

    /// Takes in what stands now.
    /// Source: Floyd and Jacobson 1993, section 4 (a moving average of the queue); Linux 7.3
    /// `red_calc_qavg_no_idle_time`.
    pub fn update(&mut self, curve: &Curve, backlog: u64) {
        self.qavg = self.qavg + backlog - (self.qavg >> curve.wlog);
    }

    /// What is to be done with the packet that arrives.
    /// Between the thresholds signals come evenly, as the count since the last one multiplies the chance. Source:
    /// Floyd and Jacobson 1993, section 4; Linux 7.3 `red_action`.
    pub fn action(&mut self, curve: &Curve, rng: &mut Stream) -> Action {
        let Curve { min, max, wlog, .. } = *curve;
        if self.qavg < min << wlog {
            self.qcount = -1;
            return Action::Pass;
        }
        if self.qavg >= max << wlog {
            self.qcount = -1;
            return Action::Hard;
        }
        self.qcount += 1;
        if self.qcount > 0 {
            let excess = (self.qavg - (min << wlog)) >> wlog;
            if excess * (self.qcount as u64) < self.threshold {
                return Action::Pass;
            }
            self.qcount = 0;
            self.draw(curve, rng);
            return Action::Early;
        }
        self.draw(curve, rng);
        Action::Pass
    }

    /// Source: Linux 7.3 `red_random`, `red_mark_probability`.
    fn draw(&mut self, curve: &Curve, rng: &mut Stream) {
        self.threshold = u64::from(rng.u32() / curve.max_p_delta);
    }
}

/// RED; see the module's documentation.
pub struct Red {
    params: Params,
    average: Average,
    idle_since: Option<Time>,
    /// Runs in `red@5.4` only.
    timer: Option<Timer>,
    rng: Stream,
    queue: VecDeque<Packet>,
    backlog: u64,
    marked: u64,
    early: u64,
    pdrop: u64,
}

impl Red {
    /// `red limit BYTES avpkt BYTES [min BYTES] [max BYTES] [burst PACKETS] [probability P]
    /// [bandwidth RATE] [adaptive] [ecn] [harddrop] [nodrop]`
    pub fn new(words: &mut Words, env: &Env) -> Result<Self, TcError> {
        Ok(Red {
            params: Params::parse(words)?,
            average: Average::EMPTY,
            idle_since: Some(Time::ZERO),
            timer: None,
            rng: Stream::new(env.seed, &env.name),
            queue: VecDeque::new(),
            backlog: 0,
            marked: 0,
            early: 0,
            pdrop: 0,
        })
    }

    /// `red@5.4`: as [`Red::new`], and `adaptive` adapts.
    pub fn v5_4(words: &mut Words, env: &Env) -> Result<Self, TcError> {
        let timer = Timer::jiffies(Time::from_ms(500), env.hz, env.replaced);
        Ok(Red { timer: Some(timer), ..Red::new(words, env)? })
    }

    /// Source: Linux 7.3 `red_adaptative_timer`.
    fn run_timer(&mut self, now: Time) {
        while self.params.adaptive
            && let Some(at) = self.timer.as_mut().and_then(|timer| timer.due(now))
        {
            self.adapt(at);
        }
    }

    /// Moves `max_p` so that the average stays within 40 and 60 % of the range.
    /// Source: Floyd, Gummadi and Shenker 2001, section 3; Linux 7.3 `red_adaptative_algo`.
    fn adapt(&mut self, now: Time) {
        let qavg = match self.idle_since {
            Some(since) => self.params.after_idle(self.average.qavg, now - since),
            None => self.average.qavg,
        };
        let curve = &mut self.params.curve;
        let qavg = qavg >> curve.wlog;
        let range = curve.range();
        let fifth = u64::from(range / 5);
        if qavg > curve.min + 3 * fifth && curve.max_p <= 50 * ONE_PERCENT {
            curve.max_p += ONE_PERCENT.min(curve.max_p / 4);
        } else if qavg < curve.min + 2 * fifth && curve.max_p >= ONE_PERCENT {
            curve.max_p = curve.max_p / 10 * 9;
        }
        curve.max_p_delta = ((curve.max_p + range / 2) / range).max(1);
    }
}

impl Params {
    fn parse(words: &mut Words) -> Result<Self, TcError> {
        const KNOWN: &[&str] = &[
            "limit",
            "avpkt",
            "min",
            "max",
            "burst",
            "probability",
            "bandwidth",
            "adaptive",
            "ecn",
            "harddrop",
            "nodrop",
        ];
        let (mut limit, mut min, mut max, mut burst, mut avpkt) = (0, 0, 0, 0, 0);
        let mut probability = 0.02;
        let mut bandwidth = Rate(10_000_000);
        let (mut adaptive, mut ecn, mut harddrop, mut nodrop) = (false, false, false, false);
        while let Some(word) = words.next_word() {
            match word {
                "limit" => limit = u32_size(words, word)?,
                "min" => min = u32_size(words, word)?,
                "max" => max = u32_size(words, word)?,
                "avpkt" => avpkt = u32_size(words, word)?,
                "burst" => burst = u64::from(words.u32()?),
                "probability" => probability = fraction(words, word)?,
                "bandwidth" => bandwidth = words.rate()?,
                "adaptive" | "adaptative" => adaptive = true,
                "ecn" => ecn = true,
                "harddrop" => harddrop = true,
                "nodrop" => nodrop = true,
                "qevent" => return Err(words.not_modelled(word)),
                _ => return Err(words.unknown(word, KNOWN)),
            }
        }
        if limit == 0 || avpkt == 0 {
            return Err(words.refuse("red needs 'limit' and 'avpkt'; expected both in bytes"));
        }
        if bandwidth.bytes_per_s() == 0 {
            return Err(words.refuse("bandwidth of zero; expected a rate such as 50mbit"));
        }
        if nodrop && !ecn {
            return Err(words.refuse("'nodrop' without 'ecn'; expected 'ecn nodrop'"));
        }
        let curve = Curve::derive(limit, min, max, burst, avpkt, (probability * ONE) as u32)
            .map_err(|message| words.refuse(&message))?;
        let Some((scell_log, stab)) = idle_table(curve.wlog, avpkt, bandwidth) else {
            return Err(words.refuse(
                "no idle table for this bandwidth and burst; expected a higher bandwidth or a smaller burst",
            ));
        };
        Ok(Params { limit, curve, scell_log, stab, adaptive, ecn, harddrop, nodrop })
    }

    /// The average after `idle` without packets. Source: Linux 7.3 `red_calc_qavg_from_idle_time`.
    fn after_idle(&self, qavg: u64, idle: Time) -> u64 {
        let idle_us = idle.as_us().min(255 << self.scell_log);
        match self.stab[(idle_us >> self.scell_log) as usize & 255] {
            // Too short for the table: a line, at most to the half.
            0 => match (qavg * idle_us) >> self.scell_log {
                loss if loss < qavg / 2 => qavg - loss,
                _ => qavg / 2,
            },
            shift => qavg >> shift,
        }
    }
}

/// A size that fits into 32 bits.
pub fn u32_size(words: &mut Words, key: &str) -> Result<u64, TcError> {
    let bytes = words.size()?;
    if bytes > u64::from(u32::MAX) {
        return Err(words.bad(key, &bytes.to_string(), "a size below 4 GB"));
    }
    Ok(bytes)
}

/// A probability between 0 and 1.
pub fn fraction(words: &mut Words, key: &str) -> Result<f64, TcError> {
    let text = words.value()?;
    match text.parse() {
        Ok(p) if p > 0.0 && p < 1.0 => Ok(p),
        _ => Err(words.bad(key, text, "a fraction above 0 and below 1, such as 0.02")),
    }
}

/// The smallest weight 2^-w that lets a burst of `burst` packets pass `min`; `None` if none does.
/// Source: iproute2 `tc_red_eval_ewma`.
fn ewma_log(min: u64, burst: u64, avpkt: u64) -> Option<u32> {
    let need = burst as f64 + 1.0 - min as f64 / avpkt as f64;
    if need < 1.0 {
        return None;
    }
    (1..32).find(|&wlog| {
        let weight = 0.5_f64.powi(wlog as i32);
        need <= (1.0 - (1.0 - weight).powi(burst as i32)) / weight
    })
}

/// tc's table of how far the average is shifted down after an idle time, and the log of its cell.
/// In ticks: the kernel looks it up with microseconds. Source: iproute2 `tc_red_eval_idle_damping`.
fn idle_table(wlog: u32, avpkt: u64, bandwidth: Rate) -> Option<(u32, [u8; 256])> {
    let transmission = (avpkt as f64 / bandwidth.bytes_per_s() as f64 * 1e9 / TICK_NS).ceil();
    let log_weight = -(1.0 - 0.5_f64.powi(wlog as i32)).ln() / transmission;
    let longest = 31.0 / log_weight;
    let cell_log = (0..32).find(|&log| longest / ((1_u64 << log) as f64) < 512.0)?;
    let mut table = [0; 256];
    for (i, shift) in table.iter_mut().enumerate().skip(1) {
        *shift = (((i as u64) << cell_log) as f64 * log_weight).min(31.0) as u8;
    }
    table[255] = 31;
    Some((cell_log, table))
}

impl Qdisc for Red {
    const PROPERTIES: Properties = Properties { work_conserving: true, ..Properties::DEFAULT };

    /// Source: Linux 7.3 `red_enqueue`.
    fn enqueue(&mut self, mut packet: Packet, now: Time, tally: &mut Tally) {
        self.run_timer(now);
        match self.idle_since.take() {
            Some(since) => self.average.qavg = self.params.after_idle(self.average.qavg, now - since),
            None => self.average.update(&self.params.curve, self.backlog),
        }
        let action = self.average.action(&self.params.curve, &mut self.rng);
        if action != Action::Pass {
            let may_mark = self.params.ecn && !(action == Action::Hard && self.params.harddrop);
            if may_mark && tally.mark(&mut packet) {
                self.marked += 1;
            } else if !(may_mark && self.params.nodrop) {
                self.early += 1;
                tally.drop(&packet, Cause::Aqm);
                return;
            }
        }
        if self.backlog + u64::from(packet.len) > self.params.limit {
            self.pdrop += 1;
            tally.drop(&packet, Cause::Overlimit);
            return;
        }
        self.backlog += u64::from(packet.len);
        self.queue.push_back(packet);
    }

    /// Source: Linux 7.3 `red_dequeue`, `red_start_of_idle_period`.
    fn dequeue(&mut self, now: Time, _tally: &mut Tally) -> Option<Packet> {
        self.run_timer(now);
        let packet = self.queue.pop_front();
        match &packet {
            Some(packet) => self.backlog -= u64::from(packet.len),
            None => self.idle_since = self.idle_since.or(Some(now)),
        }
        packet
    }

    fn qlen(&self) -> usize {
        self.queue.len()
    }

    fn backlog(&self) -> u64 {
        self.backlog
    }

    /// As in Linux: all parameters are read anew, the average begins anew, and so does the queue: what stands in it
    /// is dropped.
    fn change(&mut self, words: &mut Words, now: Time, tally: &mut Tally) -> Result<(), TcError> {
        self.params = Params::parse(words)?;
        self.average = Average::EMPTY;
        self.idle_since = Some(now);
        while let Some(packet) = self.queue.pop_front() {
            self.backlog -= u64::from(packet.len);
            tally.drop(&packet, Cause::Overlimit);
        }
        Ok(())
    }
}

impl Statistics for Red {
    fn show(&self) -> String {
        let p = &self.params;
        let mut line = format!(
            "{} limit {} min {} max {} ",
            if self.timer.is_some() { "red@5.4" } else { "red" },
            show::size(p.limit),
            show::size(p.curve.min),
            show::size(p.curve.max)
        );
        for (on, word) in
            [(p.ecn, "ecn "), (p.harddrop, "harddrop "), (p.adaptive, "adaptive "), (p.nodrop, "nodrop ")]
        {
            if on {
                line += word;
            }
        }
        line + &format!(
            "ewma {} probability {} Scell_log {}",
            p.curve.wlog,
            show::general(f64::from(p.curve.max_p) / ONE, 6),
            p.scell_log
        )
    }

    /// Marks and early drops.
    fn overlimits(&self) -> u64 {
        self.marked + self.early
    }

    fn show_stats(&self, _now: Time) -> String {
        format!("  marked {} early {} pdrop {} other 0", self.marked, self.early, self.pdrop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Ecn;

    const LARGE: &str = "red limit 400000 avpkt 1000 adaptive bandwidth 50mbit ecn";

    fn parse(line: &str) -> Result<Red, TcError> {
        let mut words = Words::new(line);
        match words.kind().unwrap() {
            "red@5.4" => Red::v5_4(&mut words, &Env { replaced: Some(Time::ZERO), ..Env::default() }),
            _ => Red::new(&mut words, &Env::default()),
        }
    }

    fn act(q: &mut Red) -> Action {
        q.average.action(&q.params.curve, &mut q.rng)
    }

    fn red(line: &str) -> Red {
        parse(line).unwrap()
    }

    fn packet(len: u32, ecn: Ecn) -> Packet {
        Packet { len, ecn, ..Packet::default() }
    }

    #[test]
    fn what_tc_derives_from_limit_and_avpkt() {
        // limit, max = limit/4, min = max/3, burst = (2*min + max)/(3*avpkt), Wlog
        for (limit, max, min, burst, wlog) in
            [(400_000, 100_000, 33_333, 55, 5), (150_000, 37_500, 12_500, 20, 4)]
        {
            let p = red(&format!("red limit {limit} avpkt 1000 bandwidth 50mbit")).params;
            assert_eq!((p.limit, p.curve.max, p.curve.min, p.curve.wlog), (limit, max, min, wlog));
            assert_eq!((2 * min + max) / 3000, burst);
            assert_eq!(ewma_log(min, burst, 1000), Some(wlog));
        }
        // max follows a given min, min a given max
        let p = red("red limit 400000 avpkt 1000 min 10000").params;
        assert_eq!((p.curve.min, p.curve.max), (10_000, 30_000));
        let p = red("red limit 400000 avpkt 1000 max 60000 burst 40 probability 0.1");
        assert_eq!((p.params.curve.min, p.params.curve.max), (20_000, 60_000));
        assert_eq!(p.params.curve.max_p, 429_496_729);
        // 40 + 1 - 20 = 21 <= (1 - (1 - 1/32)^40) * 32 = 23.0, and not at 16: 14.8
        assert_eq!(p.params.curve.wlog, 5);
    }

    #[test]
    fn idle_table_is_in_ticks_and_read_in_microseconds() {
        // 1000 B at 50 Mbit/s = 160 us = 2500 ticks; lW = -ln(31/32)/2500 = 1.26995e-5;
        // 31/lW = 2.441e6; the first cell with fewer than 512 entries is 2^13 (298)
        let p = red(LARGE).params;
        assert_eq!(p.scell_log, 13);
        let log_weight = -(31.0_f64 / 32.0).ln() / 2500.0;
        assert_eq!(p.stab[100], (819_200.0 * log_weight) as u8);
        assert_eq!(p.stab[254], (254.0 * 8192.0 * log_weight) as u8); // 26
        assert_eq!(p.stab[255], 31);
        // After 1 s idle (6250 packets' time) the average is only shifted by
        // floor(122 * 8192 * lW) = 12, where the meant decay is (31/32)^6250 = 2^-286.
        assert_eq!(p.after_idle(1 << 20, Time::from_ms(1000)), (1 << 20) >> 12);
        // 1 ms: entry 0, the line: 1000/8192 of the average
        assert_eq!(p.after_idle(1 << 20, Time::from_ms(1)), (1 << 20) - (((1 << 20) * 1000) >> 13));
    }

    /// Mean spacing of marks with `packets` packets of 1000 bytes standing, over `marks` marks;
    /// and p_b, the probability that this average stands for.
    fn spacing(standing: u64, marks: u64) -> (f64, f64) {
        let mut q = red("red limit 400000 avpkt 1000 bandwidth 50mbit ecn");
        let mut tally = Tally::default();
        for _ in 0..standing {
            q.enqueue(packet(1000, Ecn::Ect0), Time::ZERO, &mut tally);
        }
        let mut arrivals = 0;
        let mut counted_from = None;
        loop {
            q.enqueue(packet(1000, Ecn::Ect0), Time::ZERO, &mut tally);
            q.dequeue(Time::ZERO, &mut tally);
            arrivals += 1;
            // the average needs a few times 32 packets to settle
            if arrivals == 1000 {
                counted_from = Some(tally.marks);
            }
            if counted_from.is_some_and(|from| tally.marks == from + marks) {
                break;
            }
        }
        let p_b = 0.02 * (standing as f64 * 1000.0 - 33_333.0) / 66_667.0;
        ((arrivals - 1000) as f64 / marks as f64, p_b)
    }

    #[test]
    fn marks_are_spaced_uniformly() {
        // Uniform on 1..1/p_b, mean (1/p_b + 1)/2, standard deviation 0.58 of it: over 10 000
        // marks the mean strays by 0.6 %; 2 % are allowed.
        for (standing, percent) in [(50, 25.0), (67, 50.5), (83, 74.5), (99, 98.5)] {
            let (mean, p_b) = spacing(standing, 10_000);
            assert!((p_b / 0.02 * 100.0 - percent).abs() < 0.5);
            let expected = f64::midpoint(1.0 / p_b, 1.0);
            assert!((mean / expected - 1.0).abs() < 0.02, "{percent}: {mean} {expected}");
        }
        // and the rounded values of the vector, for 25 and about 50, 75 and 100 %
        for (standing, vector) in [(50, 100.0), (67, 50.0), (83, 34.0), (99, 25.5)] {
            let (mean, _) = spacing(standing, 10_000);
            assert!((mean / vector - 1.0).abs() < 0.035, "{vector}: {mean}");
        }
    }

    #[test]
    fn between_below_and_above_the_thresholds() {
        let mut q = red("red limit 400000 avpkt 1000 bandwidth 50mbit ecn");
        q.average.qavg = (33_333 << 5) - 1;
        assert_eq!((act(&mut q), q.average.qcount), (Action::Pass, -1));
        q.average.qavg = 33_333 << 5;
        assert_eq!((act(&mut q), q.average.qcount), (Action::Pass, 0));
        q.average.qavg = 100_000 << 5;
        assert_eq!((act(&mut q), q.average.qcount), (Action::Hard, -1));
    }

    #[test]
    fn hard_marks_ect_and_drops_the_rest() {
        // above max: [ecn] marks ECT and drops Not-ECT; harddrop drops all; nodrop keeps all
        for (words, ect, not_ect) in [
            ("ecn", (1, 0), (0, 1)),
            ("ecn harddrop", (0, 1), (0, 1)),
            ("ecn nodrop", (1, 0), (0, 0)),
            ("", (0, 1), (0, 1)),
        ] {
            for (ecn, expected) in [(Ecn::Ect1, ect), (Ecn::NotEct, not_ect)] {
                let mut q = red(&format!("red limit 400000 avpkt 1000 {words}"));
                let mut tally = Tally::default();
                q.idle_since = None;
                q.average.qavg = 200_000 << q.params.curve.wlog;
                q.enqueue(packet(1000, ecn), Time::ZERO, &mut tally);
                assert_eq!((tally.marks, tally.dropped()), expected, "{words} {ecn:?}");
            }
        }
    }

    #[test]
    fn adaptive_adapts_nothing_with_the_tools_of_today() {
        let mut q = red(LARGE);
        q.idle_since = None;
        q.average.qavg = 73_333 << 5;
        q.run_timer(Time::from_ms(100_000));
        assert!(q.show().ends_with("adaptive ewma 5 probability 0.02 Scell_log 13"), "{}", q.show());
    }

    #[test]
    fn adaptive_moves_max_p_every_512_ms_within_its_bounds() {
        let mut q = red(&LARGE.replace("red", "red@5.4"));
        let mut tally = Tally::default();
        q.idle_since = None;
        // target between 33333 + 2*13333 = 59999 and 33333 + 3*13333 = 73332
        q.average.qavg = 73_333 << 5;
        // ticks at 512, 1024 and 1536 ms
        q.run_timer(Time(1_535_999_999));
        // two of them, each + min(1 %, max_p/4): 2 % + 0.5 % + 0.625 %
        assert!((f64::from(q.params.curve.max_p) / ONE - 0.031_25).abs() < 1e-8);
        q.run_timer(Time::from_ms(1536));
        assert!((f64::from(q.params.curve.max_p) / ONE - 0.039_062_5).abs() < 1e-8);
        q.run_timer(Time::from_ms(100_000));
        // stops once it has passed 50 %
        let top = f64::from(q.params.curve.max_p) / ONE;
        assert!(top > 0.5 && top <= 0.51, "{top}");
        // an average of zero: times 0.9 until it has passed 1 %
        q.average.qavg = 0;
        q.dequeue(Time::from_ms(200_000), &mut tally);
        let bottom = f64::from(q.params.curve.max_p) / ONE;
        assert!((0.009..0.01).contains(&bottom), "{bottom}");
        // in between nothing moves
        let before = q.params.curve.max_p;
        q.average.qavg = 65_000 << 5;
        q.idle_since = None;
        q.run_timer(Time::from_ms(300_000));
        assert_eq!(q.params.curve.max_p, before);
    }

    #[test]
    fn the_limit_is_in_bytes() {
        let mut q = red("red limit 3000 avpkt 1000 min 2000 max 3000 burst 3");
        let mut tally = Tally::default();
        for _ in 0..4 {
            q.enqueue(packet(1000, Ecn::NotEct), Time::ZERO, &mut tally);
        }
        assert_eq!((q.qlen(), tally.drops[Cause::Overlimit as usize]), (3, 1));
        assert_eq!(q.show_stats(Time::ZERO), "  marked 0 early 0 pdrop 1 other 0");
    }

    #[test]
    fn shows_what_is_in_effect() {
        assert_eq!(
            red(LARGE).show(),
            "red limit 400000b min 33333b max 100000b ecn adaptive ewma 5 probability 0.02 Scell_log 13"
        );
    }

    #[test]
    fn refuses_what_tc_or_the_kernel_would() {
        for (line, message) in [
            ("red limit 400000", "red needs 'limit' and 'avpkt'"),
            ("red limit 400000 avpkt 1000 nodrop", "'nodrop' without 'ecn'"),
            ("red limit 400000 avpkt 1000 probability 2", "probability: '2' is not"),
            ("red limit 400000 avpkt 1000 min 50000 max 20000", "min 50000 is above max 20000"),
            ("red limit 400000 avpkt 1000 burst 10", "burst 10 gives no weight"),
            ("red limit 400000 avpkt 1000 qevent mark block 10", "'qevent' is not modelled"),
            ("red limit 400000 avpkt 1000 adaptiv", "did you mean 'adaptive'?"),
        ] {
            let error = parse(line).err().unwrap().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
