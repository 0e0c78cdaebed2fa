//! `dualpi2`: the dual-queue coupled AQM, PI2 for both queues and a step for the L queue.
//!
//! Source: RFC 9332; Linux 7.3 `net/sched/sch_dualpi2.c` (`dualpi2`), and two older out-of-tree
//! versions: `dualpi2@2020` (stale queue delay, step only on a standing L queue, no memory limit) and
//! `dualpi2@2019` (that step too; half the gain, timer in jiffies).
//!
//! Parameters: `limit` packets (10000), `target` (15 ms), `tupdate` (16 ms), `alpha` (0.16 Hz) and
//! `beta` (3.2 Hz) in steps of 1/256, or both pairs from `max_rtt` and `typical_rtt`;
//! `coupling_factor` (2), `step_thresh` TIME or PACKETSp (1 ms), `min_qlen_step` packets (0),
//! `drop_on_overload|overflow`, `drop_dequeue|drop_enqueue`, `l4s_ect|any_ect`,
//! `classic_protection` percent (10), `split_gso|no_split_gso`, `memlimit` bytes
//! (limit * 2 * frame size). The first of each pair is the default. `min_qlen_step`, `memlimit` and
//! `split_gso` are not in the older versions.
//!
//! Departures: the timer's phase counts from the start of the run.
//! Classification is by the ECN field alone: no filters, no skb priority. A packet that both the
//! coupled AQM and the step mark counts twice, as in Linux.
//!
//! Validation: the probability sequences for both divisors; mark and drop frequencies against
//! `p_L` = k p and `p_C` = p^2; credit shares; overload; the two-frame rule; the step; conservation.

mod params;

use self::params::{MAX_PROB, MAX_WEIGHT, Params, Step, Version};
use super::timer::Timer;
use super::{Cause, Env, Interval, Layout, Properties, Qdisc, Statistics, Tally};
use crate::base::ring::Ring;
use crate::base::rng::Stream;
use crate::base::units::Time;
use crate::packet::charge::truesize;
use crate::packet::{Ecn, Packet};
use bakeoff_document::tc::{TcError, Words, show};

/// A packet in the L queue.
#[derive(Clone, Copy, Default)]
struct Queued {
    packet: Packet,
    apply_step: bool,
}

/// What `tc -s` reports besides the state.
#[derive(Clone, Copy, Debug, Default)]
struct Stats {
    packets_in_c: u64,
    packets_in_l: u64,
    maxq: usize,
    ecn_mark: u64,
    step_marks: u64,
    max_memory: u64,
    overlimits: u64,
}

/// DualPI2; see the module's documentation.
pub struct DualPi2 {
    params: Params,
    l: Ring<Queued>,
    c: Ring<Packet>,
    backlog: u64,
    /// What the socket buffers take.
    memory: u64,
    /// The base probability p', a fraction of 2^32 - 1.
    prob: u32,
    /// Queue delay at the last update, ns.
    last_qdelay: u64,
    /// `@2020`: sojourn of the packet that last left C and L, ns.
    left_c: u64,
    left_l: u64,
    /// What left L and C since the sampler last asked.
    sampled: [Interval; 2],
    /// Positive: it is C's turn.
    credit: i64,
    timer: Timer,
    /// Time of the last enqueue or dequeue.
    now: Time,
    /// Two frames: with less standing nothing is signalled.
    protected: u64,
    psched_mtu: u32,
    hz: u64,
    rng: Stream,
    stats: Stats,
}

impl DualPi2 {
    /// `dualpi2 [limit PACKETS] [target TIME] [tupdate TIME] [alpha HZ] [beta HZ]
    /// [max_rtt TIME] [typical_rtt TIME] [coupling_factor N] [step_thresh TIME|PACKETSp]
    /// [min_qlen_step PACKETS] [drop_on_overload|overflow] [drop_enqueue|drop_dequeue]
    /// [l4s_ect|any_ect] [classic_protection PERCENT] [split_gso|no_split_gso] [memlimit BYTES]`
    pub fn mainline(words: &mut Words, env: &Env) -> Result<Self, TcError> {
        Self::parse(words, env, Version::Mainline)
    }

    /// `dualpi2@2020`
    pub fn v2020(words: &mut Words, env: &Env) -> Result<Self, TcError> {
        Self::parse(words, env, Version::V2020)
    }

    /// `dualpi2@2019`
    pub fn v2019(words: &mut Words, env: &Env) -> Result<Self, TcError> {
        Self::parse(words, env, Version::V2019)
    }

    fn parse(words: &mut Words, env: &Env, version: Version) -> Result<Self, TcError> {
        let mut params = Params::new(env, version);
        params.take_all(words, env.psched_mtu())?;
        let tupdate = params.tupdate;
        let mut q = DualPi2 {
            params,
            l: Ring::default(),
            c: Ring::default(),
            backlog: 0,
            memory: 0,
            prob: 0,
            last_qdelay: 0,
            left_c: 0,
            left_l: 0,
            sampled: Default::default(),
            credit: 0,
            timer: match version {
                Version::V2019 => Timer::jiffies(tupdate, env.hz, env.replaced),
                Version::V2020 | Version::Mainline => Timer::hrtimer(tupdate, env.replaced),
            },
            now: Time::ZERO,
            protected: 2 * u64::from(env.psched_mtu()),
            psched_mtu: env.psched_mtu(),
            hz: env.hz,
            rng: Stream::new(env.seed, &env.name),
            stats: Stats::default(),
        };
        q.reset_credit();
        Ok(q)
    }

    /// Source: RFC 9332, appendix A.1; Linux 7.3 `dualpi2_timer`.
    #[inline]
    fn run_timer(&mut self, now: Time) {
        self.now = now;
        while let Some(at) = self.timer.due(now) {
            self.tick(at, now);
        }
    }

    #[inline(never)]
    fn tick(&mut self, at: Time, now: Time) {
        let before = (self.prob, self.last_qdelay);
        let qdelay = self.qdelay(at);
        self.update(qdelay);
        if self.qlen() == 0 && before == (self.prob, self.last_qdelay) {
            self.timer.skip(now);
        }
    }

    /// The larger queue delay as the controller sees it at `now`, ns.
    /// Source: RFC 9332, appendix A.1; Linux 7.3 `get_queue_delays`.
    fn qdelay(&self, now: Time) -> u64 {
        if self.params.version == Version::V2020 {
            return self.left_c.max(self.left_l);
        }
        let (c, l) = self.head_delays(now);
        c.max(l).as_ns()
    }

    /// How long the heads of C and L have waited.
    fn head_delays(&self, now: Time) -> (Time, Time) {
        let c = self.c.front().map_or(Time::ZERO, |p| now - p.enqueued);
        let l = self.l.front().map_or(Time::ZERO, |q| now - q.packet.enqueued);
        (c, l)
    }

    /// One tick of the controller.
    /// The base probability p' moves with the delay's error and its change (PI). Source: RFC 9332, appendix A.1;
    /// Linux 7.3 `calculate_probability`.
    fn update(&mut self, qdelay: u64) {
        let p = &self.params;
        let error = i128::from(qdelay) - i128::from(p.target.as_ns());
        let change = i128::from(qdelay) - i128::from(self.last_qdelay);
        let delta = error * i128::from(p.alpha) + change * i128::from(p.beta);
        let cap = if p.drop_overload { MAX_PROB } else { MAX_PROB / u32::from(p.coupling_factor) };
        let prob = i128::from(self.prob) + delta / p.version.divisor();
        self.prob = prob.clamp(0, i128::from(cap)) as u32;
        self.last_qdelay = qdelay;
    }

    /// Source: Linux 7.3 `dualpi2_reset_c_protection`.
    fn reset_credit(&mut self) {
        let weights = 2 * i64::from(self.params.classic) - i64::from(MAX_WEIGHT);
        self.credit = i64::from(self.psched_mtu) * weights;
    }

    /// Source: Linux 7.3 `dualpi2_roll`.
    fn roll(&mut self, prob: u32) -> bool {
        self.rng.u32() <= prob
    }

    /// p_C = p'^2 (RFC 9332, section 2.4). Source: Linux 7.3 `dualpi2_classic_marking`.
    fn squared_roll(&mut self) -> bool {
        self.roll(self.prob) && self.roll(self.prob)
    }

    fn mark(&mut self, packet: &mut Packet, tally: &mut Tally) -> bool {
        let marked = tally.mark(packet);
        self.stats.ecn_mark += u64::from(marked);
        marked
    }

    /// The coupled AQM: marks the packet, or says why it must be dropped.
    /// Source: RFC 9332, appendix A.1 for C and L, A.2 for overload; Linux 7.3 `must_drop`,
    /// `dualpi2_scalable_marking`.
    fn must_drop(&mut self, packet: &mut Packet, in_l: bool, tally: &mut Tally) -> Option<Cause> {
        if self.backlog < self.protected {
            return None;
        }
        // p_CL = k p' (RFC 9332, section 2.4); where that passes one, L is dropped by p_C as well (section 4.2.3).
        let prob_l = u64::from(self.prob) * u64::from(self.params.coupling_factor);
        let overload = prob_l > u64::from(MAX_PROB);
        let capable = packet.ecn.is_capable();
        let drop_cause = if overload && capable { Cause::Overload } else { Cause::Aqm };
        let (signal, may_mark) = match (in_l, overload) {
            (false, _) => (self.squared_roll(), capable && !overload),
            (true, true) => {
                let drop = self.params.drop_overload && self.squared_roll();
                (true, !drop)
            }
            (true, false) => (self.roll(prob_l as u32), capable),
        };
        if !signal {
            return None;
        }
        if may_mark {
            self.mark(packet, tally);
            None
        } else {
            Some(drop_cause)
        }
    }

    /// The L queue's own AQM, for a packet that it is applied to; true if this must be dropped.
    /// Source: RFC 9332, appendix A.1 (the native L4S AQM); Linux 7.3 `do_step_aqm`.
    fn step(&mut self, packet: &mut Packet, now: Time, tally: &mut Tally) -> bool {
        let above = match self.params.step {
            Step::Time(threshold) => now - packet.enqueued > threshold,
            Step::Packets(threshold) => self.l.len() > threshold as usize,
        };
        if !above {
            return false;
        }
        if self.params.version == Version::Mainline && packet.ecn == Ecn::NotEct {
            return true;
        }
        if self.mark(packet, tally) {
            self.stats.step_marks += 1;
        }
        false
    }

    /// Takes the next packet to where it shall lie: whether it was in L and whether the step is applied to it; none if
    /// both queues are empty. Weighted round robin by bytes. Source: RFC 9332, appendix A.1; Linux 7.3 `dequeue_packet`.
    fn next(&mut self, into: &mut Packet, now: Time) -> Option<(bool, bool)> {
        let turn_of_l = self.c.is_empty() || self.credit <= 0;
        let taken = if let Some(queued) = self.l.front().filter(|_| turn_of_l) {
            *into = queued.packet;
            let apply_step = queued.apply_step;
            self.l.drop_front();
            self.left_l = (now - into.enqueued).as_ns();
            (true, apply_step)
        } else {
            *into = *self.c.front()?;
            self.c.drop_front();
            self.left_c = (now - into.enqueued).as_ns();
            (false, false)
        };
        self.backlog -= u64::from(into.len);
        self.memory -= truesize(into);
        Some(taken)
    }
}

impl Qdisc for DualPi2 {
    const PROPERTIES: Properties =
        Properties { layout: Layout::EmptyLineLast, work_conserving: true, ..Properties::DEFAULT };

    fn enqueue(&mut self, mut packet: Packet, now: Time, tally: &mut Tally) {
        self.enqueue_from(&mut packet, now, tally);
    }

    /// Source: RFC 9332, section 2.3 (who goes to L) and appendix A.1; Linux 7.3 `dualpi2_enqueue_skb`.
    fn enqueue_from(&mut self, packet: &mut Packet, now: Time, tally: &mut Tally) {
        self.run_timer(now);
        let memory = truesize(packet);
        if self.qlen() >= self.params.limit as usize || self.memory + memory > self.params.memory_limit {
            self.stats.overlimits += 1;
            tally.drop(packet, Cause::Overlimit);
            return;
        }
        let in_l = packet.ecn as u8 & self.params.ecn_mask != 0;
        if self.params.drop_early
            && let Some(cause) = self.must_drop(packet, in_l, tally)
        {
            tally.drop(packet, cause);
            return;
        }
        self.stats.maxq = self.stats.maxq.max(self.qlen());
        self.backlog += u64::from(packet.len);
        self.memory += memory;
        self.stats.max_memory = self.stats.max_memory.max(self.memory);
        if in_l {
            self.stats.packets_in_l += 1;
            let apply_step = self.l.len() >= self.params.min_qlen_step as usize;
            let queued = self.l.push_slot();
            (queued.packet, queued.apply_step) = (*packet, apply_step);
        } else {
            self.stats.packets_in_c += 1;
            self.c.push(*packet);
        }
    }

    fn dequeue(&mut self, now: Time, tally: &mut Tally) -> Option<Packet> {
        let mut packet = Packet::default();
        self.dequeue_into(&mut packet, now, tally).then_some(packet)
    }

    /// Source: RFC 9332, appendix A.1; Linux 7.3 `dualpi2_qdisc_dequeue`.
    fn dequeue_into(&mut self, into: &mut Packet, now: Time, tally: &mut Tally) -> bool {
        self.run_timer(now);
        let wc = i64::from(self.params.classic);
        let wl = i64::from(MAX_WEIGHT) - wc;
        while let Some((in_l, apply_step)) = self.next(into, now) {
            // Nothing is paid where nobody waits in the other queue.
            let weight = match (in_l, self.l.is_empty(), self.c.is_empty()) {
                (true, _, false) => wc,
                (false, false, _) => -wl,
                _ => 0,
            };
            if !self.params.drop_early
                && let Some(cause) = self.must_drop(into, in_l, tally)
            {
                tally.drop(into, cause);
                continue;
            }
            if apply_step && self.step(into, now, tally) {
                tally.drop(into, Cause::Aqm);
                continue;
            }
            self.credit += weight * i64::from(into.len);
            self.sampled[usize::from(!in_l)].count((now - into.enqueued).as_ns());
            return true;
        }
        self.reset_credit();
        false
    }

    fn qlen(&self) -> usize {
        self.l.len() + self.c.len()
    }

    fn backlog(&self) -> u64 {
        self.backlog
    }

    /// As in Linux: packets above a lowered limit are dropped, those of C first.
    fn change(&mut self, words: &mut Words, _now: Time, tally: &mut Tally) -> Result<(), TcError> {
        let mut params = self.params;
        params.take_all(words, self.psched_mtu)?;
        match params.version {
            Version::V2019 => self.timer.set_period(params.tupdate, self.hz),
            Version::V2020 | Version::Mainline => self.timer.set_exact_period(params.tupdate),
        }
        self.params = params;
        while self.qlen() > self.params.limit as usize || self.memory > self.params.memory_limit {
            let packet = if let Some(packet) = self.c.front().copied() {
                self.c.drop_front();
                packet
            } else if let Some(queued) = self.l.front().copied() {
                self.l.drop_front();
                queued.packet
            } else {
                break;
            };
            self.backlog -= u64::from(packet.len);
            self.memory -= truesize(&packet);
            tally.drop(&packet, Cause::Overlimit);
        }
        Ok(())
    }

    fn segments(&self, _packet: &Packet) -> bool {
        self.params.version == Version::Mainline && self.params.split_gso
    }
}

impl Statistics for DualPi2 {
    fn show(&self) -> String {
        self.params.show(self.timer.asked())
    }

    fn overlimits(&self) -> u64 {
        self.stats.overlimits
    }

    fn take_parts(&mut self) -> Vec<(&'static str, Interval)> {
        let [l, c] = std::mem::take(&mut self.sampled);
        vec![("sojourn_l", l), ("sojourn_c", c)]
    }

    fn show_stats(&self, _now: Time) -> String {
        let (delay_c, delay_l) = match self.params.version {
            Version::V2020 => (Time(self.left_c), Time(self.left_l)),
            Version::V2019 | Version::Mainline => self.head_delays(self.now),
        };
        let s = &self.stats;
        let memory = match self.params.version {
            Version::Mainline => format!(
                "\nmemory_used {} (max {}) of memory limit {}",
                self.memory, s.max_memory, self.params.memory_limit
            ),
            Version::V2020 | Version::V2019 => String::new(),
        };
        format!(
            "prob {:.6} delay_c {} delay_l {}\npkts_in_c {} pkts_in_l {} maxq {}\n\
             ecn_mark {} step_mark {}\ncredit {} ({}-queue){memory}",
            f64::from(self.prob) / f64::from(MAX_PROB),
            show::time(delay_c.as_us()),
            show::time(delay_l.as_us()),
            s.packets_in_c,
            s.packets_in_l,
            s.maxq,
            s.ecn_mark,
            s.step_marks,
            self.credit,
            if self.credit > 0 { 'C' } else { 'L' },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERSIONS: [&str; 3] = ["dualpi2", "dualpi2@2020", "dualpi2@2019"];

    fn parse(line: &str) -> Result<DualPi2, TcError> {
        let mut words = Words::new(line);
        let env = Env { replaced: Some(Time::ZERO), ..Env::default() };
        match words.kind().unwrap() {
            "dualpi2" => DualPi2::mainline(&mut words, &env),
            "dualpi2@2020" => DualPi2::v2020(&mut words, &env),
            _ => DualPi2::v2019(&mut words, &env),
        }
    }

    fn dualpi2(line: &str) -> DualPi2 {
        parse(line).unwrap()
    }

    fn frame(ecn: Ecn, now: Time) -> Packet {
        Packet { len: 1514, ecn, enqueued: now, ..Packet::default() }
    }

    /// A queue at time zero with a given base probability and some packets of each kind.
    fn filled(line: &str, p: f64, packets: &[(Ecn, usize)]) -> (DualPi2, Tally) {
        let mut q = dualpi2(line);
        let mut tally = Tally::default();
        for &(ecn, n) in packets {
            for _ in 0..n {
                q.enqueue(frame(ecn, Time::ZERO), Time::ZERO, &mut tally);
            }
        }
        q.prob = (p * f64::from(MAX_PROB)) as u32;
        (q, tally)
    }

    fn prob(q: &DualPi2) -> f64 {
        f64::from(q.prob) / f64::from(MAX_PROB)
    }

    /// The probability in thousandths of a percent after updates with these delays in ms.
    fn sequence(line: &str, delays_ms: &[u64]) -> Vec<u32> {
        let mut q = dualpi2(line);
        delays_ms
            .iter()
            .map(|ms| {
                q.update(ms * 1_000_000);
                (prob(&q) * 100_000.0).round() as u32
            })
            .collect()
    }

    #[test]
    fn the_base_probability_follows_the_pi_controller() {
        assert_eq!(sequence("dualpi2", &[25; 6]), [8155, 8315, 8475, 8635, 8795, 8955]);
        let delays = [5, 10, 15, 20, 20, 20, 15, 15];
        let full = [1439, 2958, 4557, 6235, 6316, 6396, 4797, 4797];
        assert_eq!(sequence("dualpi2", &delays), full);
        assert_eq!(sequence("dualpi2@2020", &delays), full);
        assert_eq!(sequence("dualpi2@2019", &delays), [725, 1490, 2296, 3142, 3183, 3223, 2417, 2417]);
    }

    #[test]
    fn the_controller_sees_the_heads_at_its_tick() {
        // a C packet that came at 1 ms waits 15 ms at the tick at 16 ms: only beta counts
        let mut q = dualpi2("dualpi2");
        let mut tally = Tally::default();
        let at = Time::from_ms(1);
        q.enqueue(frame(Ecn::Ect0, at), at, &mut tally);
        q.run_timer(Time::from_ms(15));
        assert_eq!(q.prob, 0);
        // handled late, at 20 ms, but as of 16 ms
        q.run_timer(Time::from_ms(20));
        assert_eq!(i64::from(q.prob), 15_000_000 * 879 / 64);
        // L's head is the older one now: 31 ms at 32 ms
        let mut q = dualpi2("dualpi2 tupdate 32ms");
        q.enqueue(frame(Ecn::Ect1, at), at, &mut tally);
        q.enqueue(frame(Ecn::Ect0, at), Time::from_ms(2), &mut tally);
        q.run_timer(Time::from_ms(32));
        assert_eq!(i64::from(q.prob), (16_000_000 * 44 + 31_000_000 * 879) / 64);
    }

    #[test]
    fn what_left_l_and_c_is_told_apart_also_when_both_leave_with_ce() {
        let (mut q, mut tally) = filled("dualpi2", 0.0, &[(Ecn::Ect1, 2), (Ecn::Ect0, 1)]);
        // L goes first and is marked by the step; C's packet is made CE by hand, as a box on the way could.
        for ms in [2, 4] {
            assert_eq!(q.dequeue(Time::from_ms(ms), &mut tally).unwrap().ecn, Ecn::Ce);
        }
        q.c.front_mut().expect("one waits").ecn = Ecn::Ce;
        q.dequeue(Time::from_ms(9), &mut tally).unwrap();
        let means: Vec<_> = q.take_parts().into_iter().map(|(name, left)| (name, left.mean_s())).collect();
        assert_eq!(means, [("sojourn_l", Some(0.003)), ("sojourn_c", Some(0.009))]);
        assert!(q.take_parts().iter().all(|(_, left)| left.count == 0));
    }

    #[test]
    fn version_2020_uses_the_delay_of_the_packet_that_left() {
        let mut q = dualpi2("dualpi2@2020");
        let mut tally = Tally::default();
        q.enqueue(frame(Ecn::Ect0, Time::ZERO), Time::ZERO, &mut tally);
        q.enqueue(frame(Ecn::Ect0, Time::ZERO), Time::ZERO, &mut tally);
        q.dequeue(Time::from_ms(10), &mut tally);
        // the head has waited 16 ms at the tick; recorded are 10 ms: (-5*44 + 10*879) / 64
        q.run_timer(Time::from_ms(16));
        assert_eq!(i64::from(q.prob), 1_000_000 * (10 * 879 - 5 * 44) / 64);
    }

    #[test]
    fn version_2019_ticks_in_jiffies_from_512_ms_on() {
        let mut q = dualpi2("dualpi2@2019");
        let mut tally = Tally::default();
        let at = Time::from_ms(497);
        q.enqueue(frame(Ecn::Ect0, at), at, &mut tally);
        q.run_timer(Time(511_999_999));
        assert_eq!(q.prob, 0);
        q.run_timer(Time::from_ms(512));
        assert_eq!(i64::from(q.prob), 15_000_000 * 879 / 127);
    }

    /// Marks and drops in `n` departures of packets of one kind at base probability `p`.
    fn frequencies(line: &str, p: f64, ecn: Ecn, n: usize) -> (f64, f64) {
        let (mut q, mut tally) = filled(&format!("{line} limit 1000000"), p, &[(ecn, n + 2)]);
        while q.qlen() > 2 {
            q.dequeue(Time::ZERO, &mut tally);
        }
        assert_eq!(tally.drops[Cause::Overlimit as usize], 0);
        let n = n as f64;
        (tally.marks as f64 / n, tally.dropped() as f64 / n)
    }

    #[test]
    fn l_is_marked_with_2p_and_c_with_p_squared() {
        // 100 000 packets: four standard deviations of the binomial, sqrt(q(1-q)/n)
        let n = 100_000;
        let near = |got: f64, want: f64| (got - want).abs() <= 4.0 * (want * (1.0 - want) / n as f64).sqrt();
        for line in VERSIONS {
            for p in [0.05, 0.1, 0.3] {
                let (marks, drops) = frequencies(line, p, Ecn::Ect1, n);
                assert!(near(marks, 2.0 * p) && drops == 0.0, "{line} {p}: {marks}");
                let (marks, drops) = frequencies(line, p, Ecn::Ect0, n);
                assert!(near(marks, p * p) && drops == 0.0, "{line} {p}: {marks}");
                let (marks, drops) = frequencies(line, p, Ecn::NotEct, n);
                assert!(near(drops, p * p) && marks == 0.0, "{line} {p}: {drops}");
            }
        }
        let (marks, _) = frequencies("dualpi2 coupling_factor 5", 0.1, Ecn::Ect1, n);
        assert!(near(marks, 0.5), "{marks}");
    }

    #[test]
    fn on_overload_both_queues_drop_with_p_squared() {
        let n = 100_000;
        let near = |got: f64| (got - 0.36).abs() <= 4.0 * (0.36 * 0.64 / n as f64).sqrt();
        // p = 0.6: 2p > 1. C drops ECT too; L drops p^2 and marks the rest.
        let (marks, drops) = frequencies("dualpi2", 0.6, Ecn::Ect0, n);
        assert!(near(drops) && marks == 0.0);
        let (marks, drops) = frequencies("dualpi2", 0.6, Ecn::Ect1, n);
        assert!(near(drops) && (marks + drops - 1.0).abs() < 1e-9);
        // without dropping on overload L is always marked
        let (marks, drops) = frequencies("dualpi2 overflow", 0.6, Ecn::Ect1, n);
        assert!(marks > 1.0 - 1e-9 && drops == 0.0);
    }

    /// RFC 9332, 4.2.3 and A.1: below p_Cmax = 1/k^2 L is only marked; above, an unresponsive L is dropped as C is, so
    /// that it cannot take C's part.
    #[test]
    fn rfc_9332_unresponsive_l_is_dropped_from_p_cmax_on_and_does_not_starve_c() {
        let n = 20_000;
        // p_C = p^2 just below and above 1/4
        for (p, drops_in_l) in [(0.499, false), (0.501, true)] {
            assert_eq!(frequencies("dualpi2", p, Ecn::Ect1, n).1 > 0.0, drops_in_l, "{p}");
        }
        // 10 Mbit/s, for 20 s: L sends 20 Mbit/s whatever it is told, C 4 Mbit/s.
        let (mut q, mut tally) = (dualpi2("dualpi2"), Tally::default());
        let mut sent = [0_u32; 2];
        let frame_ns = 1514 * 8 * 100;
        for slot in 0..20_000_000_000 / frame_ns {
            let now = Time(slot * frame_ns);
            for _ in 0..2 {
                q.enqueue(frame(Ecn::Ect1, now), now, &mut tally);
            }
            if slot % 5 < 2 {
                q.enqueue(Packet { flow: 1, ..frame(Ecn::Ect0, now) }, now, &mut tally);
            }
            let Some(packet) = q.dequeue(now, &mut tally) else { continue };
            // once the controller has found its place
            if now >= Time::from_ms(10_000) {
                sent[usize::from(packet.flow)] += 1;
            }
        }
        let [l, c] = sent.map(f64::from);
        // p > 1/2 from now on: both are dropped with p_C, and what passes is in the proportion of what came, 5 to 1.
        assert!(q.prob > MAX_PROB / 2, "{}", q.prob);
        assert!((c / (l + c) - 1.0 / 6.0).abs() < 0.02, "{l} {c}");
    }

    #[test]
    fn overflow_caps_p_at_one_over_k() {
        let mut q = dualpi2("dualpi2 overflow");
        q.update(10_000_000_000);
        assert_eq!(q.prob, MAX_PROB / 2);
        let mut q = dualpi2("dualpi2");
        q.update(10_000_000_000);
        assert_eq!(q.prob, MAX_PROB);
    }

    #[test]
    fn credit_serves_l_and_c_by_bytes_90_to_10() {
        let (mut q, mut tally) = filled("dualpi2", 0.0, &[(Ecn::Ect1, 2000), (Ecn::Ect0, 2000)]);
        let mut from_c = 0;
        for _ in 0..1000 {
            let packet = q.dequeue(Time::ZERO, &mut tally).unwrap();
            from_c += usize::from(packet.ecn == Ecn::Ect0);
        }
        // The credit starts at -80 frames: nine from L bring it to +10, one from C takes 90.
        assert_eq!(from_c, 100);
        // by bytes: L packets of half the size, so that two of them weigh one of C
        let (mut q, mut tally) = filled("dualpi2 classic_protection 25%", 0.0, &[(Ecn::Ect0, 3000)]);
        for _ in 0..3000 {
            let packet = Packet { len: 757, ..frame(Ecn::Ect1, Time::ZERO) };
            q.enqueue(packet, Time::ZERO, &mut tally);
        }
        let (mut c, mut l) = (0_i64, 0_i64);
        for _ in 0..1400 {
            match q.dequeue(Time::ZERO, &mut tally).unwrap().ecn {
                Ecn::Ect0 => c += 1514,
                _ => l += 757,
            }
        }
        // 25:75 within one packet of each
        assert!((c * 3 - l).abs() <= 3 * 1514 + 757, "{c} {l}");
        // alone a queue changes nothing
        let (mut q, mut tally) = filled("dualpi2", 0.0, &[(Ecn::Ect1, 3)]);
        q.dequeue(Time::ZERO, &mut tally);
        assert_eq!(q.credit, -80 * 1514);
    }

    #[test]
    fn less_than_two_frames_behind_are_left_alone() {
        // p = 1: every packet is signalled, but not when under 2 * 1514 B remain behind it
        let (mut q, mut tally) = filled("dualpi2 overflow", 1.0, &[(Ecn::Ect1, 4)]);
        let ecn: Vec<Ecn> = std::iter::from_fn(|| q.dequeue(Time::ZERO, &mut tally)).map(|p| p.ecn).collect();
        assert_eq!(ecn, [Ecn::Ce, Ecn::Ce, Ecn::Ect1, Ecn::Ect1]);
    }

    #[test]
    fn the_step_marks_strictly_above_1_ms() {
        for (sojourn, ecn) in [(1_000_000, Ecn::Ect1), (1_000_001, Ecn::Ce)] {
            let (mut q, mut tally) = filled("dualpi2", 0.0, &[(Ecn::Ect1, 1)]);
            assert_eq!(q.dequeue(Time(sojourn), &mut tally).unwrap().ecn, ecn);
            assert_eq!(q.stats.step_marks, u64::from(ecn == Ecn::Ce));
        }
        // in packets: those that stand behind it
        let (mut q, mut tally) = filled("dualpi2 step_thresh 1p", 0.0, &[(Ecn::Ect1, 3)]);
        let ecn: Vec<Ecn> = std::iter::from_fn(|| q.dequeue(Time::ZERO, &mut tally)).map(|p| p.ecn).collect();
        assert_eq!(ecn, [Ecn::Ce, Ecn::Ect1, Ecn::Ect1]);
    }

    #[test]
    fn a_packet_that_both_aqms_of_l_mark_is_two_marks_of_the_queue_and_one_of_its_flow() {
        // p = 1 marks each of four after 2 ms, but not while under 2 * 1514 B remain behind; the step marks all four
        let (mut q, mut tally) = filled("dualpi2 overflow", 1.0, &[(Ecn::Ect1, 4)]);
        while q.dequeue(Time::from_ms(2), &mut tally).is_some() {}
        assert_eq!((q.stats.ecn_mark, q.stats.step_marks), (6, 4));
        assert_eq!(tally.marks, 6);
        assert_eq!(tally.flows.iter().map(|flow| flow.marks).sum::<u64>(), 4);
    }

    #[test]
    fn older_versions_step_only_on_packets_that_found_two_in_l() {
        for line in ["dualpi2@2020", "dualpi2@2019", "dualpi2 min_qlen_step 2"] {
            let (mut q, mut tally) = filled(line, 0.0, &[(Ecn::Ect1, 4)]);
            let ecn: Vec<Ecn> =
                std::iter::from_fn(|| q.dequeue(Time::from_ms(2), &mut tally)).map(|p| p.ecn).collect();
            assert_eq!(ecn, [Ecn::Ect1, Ecn::Ect1, Ecn::Ce, Ecn::Ce], "{line}");
        }
    }

    #[test]
    fn not_ect_in_l_is_dropped_at_the_step_today_and_passed_before() {
        // no classifier puts it there: place it by hand
        for (line, kept) in [("dualpi2", false), ("dualpi2@2020", true)] {
            let mut q = dualpi2(line);
            let mut tally = Tally::default();
            let packet = frame(Ecn::NotEct, Time::ZERO);
            (q.backlog, q.memory) = (1514, truesize(&packet));
            q.l.push(Queued { packet, apply_step: true });
            let out = q.dequeue(Time::from_ms(2), &mut tally);
            assert_eq!((out.is_some(), tally.marks), (kept, 0), "{line}");
            assert_eq!(tally.dropped(), u64::from(!kept));
        }
    }

    #[test]
    fn classification_by_ecn() {
        let in_l = |line, ecn| filled(line, 0.0, &[(ecn, 1)]).0.l.len() == 1;
        let all = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];
        assert_eq!(all.map(|e| in_l("dualpi2", e)), [false, true, false, true]);
        assert_eq!(all.map(|e| in_l("dualpi2 any_ect", e)), [false, true, true, true]);
    }

    #[test]
    fn drop_enqueue_decides_on_arrival() {
        let (mut q, mut tally) = filled("dualpi2 drop_enqueue", 0.6, &[(Ecn::NotEct, 2)]);
        for _ in 0..1000 {
            q.enqueue(frame(Ecn::NotEct, Time::ZERO), Time::ZERO, &mut tally);
        }
        // p^2 = 0.36, four standard deviations of 15.2
        assert!((tally.dropped() as f64 - 360.0).abs() < 61.0);
        let before = tally.dropped();
        while q.dequeue(Time::ZERO, &mut tally).is_some() {}
        assert_eq!(tally.dropped(), before);
    }

    #[test]
    fn limits_in_packets_and_in_memory() {
        let (q, tally) = filled("dualpi2 limit 3", 0.0, &[(Ecn::Ect1, 2), (Ecn::Ect0, 3)]);
        assert_eq!((q.qlen(), tally.dropped()), (3, 2));
        assert_eq!(q.params.memory_limit, 3 * 2 * 1514);
        // a socket buffer of a full frame takes 2304 bytes
        let (q, tally) = filled("dualpi2 memlimit 6912", 0.0, &[(Ecn::Ect1, 4)]);
        assert_eq!((q.qlen(), tally.dropped()), (3, 1));
        assert_eq!(dualpi2("dualpi2@2020").params.memory_limit, u64::MAX);
    }

    #[test]
    fn a_long_idle_time_is_cheap_and_ends_at_zero() {
        for line in VERSIONS {
            let mut q = dualpi2(&format!("{line} tupdate 1us"));
            let mut tally = Tally::default();
            q.prob = 1000;
            q.run_timer(Time(1_000_000_000_000_000_000));
            assert_eq!(q.prob, 0);
            q.dequeue(Time(1_000_000_000_000_000_001), &mut tally);
        }
    }

    #[test]
    fn shows_what_is_in_effect() {
        assert_eq!(
            dualpi2("dualpi2").show(),
            "dualpi2 limit 10000p memlimit 30280000B target 15ms tupdate 16ms alpha 0.156250 beta 3.195312 step_thresh 1ms min_qlen_step 0p coupling_factor 2 drop_on_overload drop_dequeue classic_protection 10% l4s_ect split_gso"
        );
        assert_eq!(
            dualpi2("dualpi2@2020 step_thresh 5p overflow any_ect drop_enqueue").show(),
            "dualpi2@2020 limit 10000p target 15ms tupdate 16ms alpha 0.156250 beta 3.195312 step_thresh 5p coupling_factor 2 overflow drop_enqueue classic_protection 10% any_ect"
        );
        assert_eq!(
            dualpi2("dualpi2").show_stats(Time::ZERO),
            "prob 0.000000 delay_c 0us delay_l 0us\npkts_in_c 0 pkts_in_l 0 maxq 0\necn_mark 0 step_mark 0\ncredit -121120 (L-queue)\nmemory_used 0 (max 0) of memory limit 30280000"
        );
    }
}
