//! `pie`: Proportional Integral controller Enhanced; marks or drops at enqueue.
//!
//! Source: RFC 8033; Linux 7.3 `net/sched/sch_pie.c`, `include/net/pie.h`. `pie@5.4` is the code of
//! Linux 5.1 to 5.4: delay always from the departure rate, 64-bit probabilities, decay by 98/100.
//!
//! Parameters: `limit` packets (1000), `target` (15 ms), `tupdate` (15 ms, rounded up to jiffies),
//! `alpha` and `beta` in sixteenths of Hz (2, 20; at most 32), `ecn|noecn` (off),
//! `bytemode|nobytemode` (off), `dq_rate_estimator|no_dq_rate_estimator` (off; not in 5.4).
//!
//! Departures: the timer's phase counts from the start of the run.
//!
//! Validation: the probability sequence and the numbers of updates to 1, 5 and 10 %; the mean
//! spacing of marks 1.85/p; the integer departure rate at 50 and 5 Mbit/s; conservation.

pub(super) mod control;

use std::collections::VecDeque;

use super::timer::Timer;
use super::{Cause, Env, Properties, Qdisc, Statistics, Tally};
use crate::base::rng::Stream;
use crate::base::units::Time;
use crate::packet::Packet;
use bakeoff_document::tc::{TcError, Words, show};
use control::{Params, RATE_SHIFT, TICK_SHIFT, TICKS_PER_S, Vars, Version, ticks};

/// What `tc -s` reports.
#[derive(Clone, Copy, Debug, Default)]
struct Stats {
    packets_in: u64,
    overlimit: u64,
    dropped: u64,
    maxq: usize,
    ecn_mark: u64,
}

/// PIE; see the module's documentation.
pub struct Pie {
    params: Params,
    vars: Vars,
    timer: Timer,
    mtu: u64,
    hz: u64,
    rng: Stream,
    queue: VecDeque<Packet>,
    backlog: u64,
    stats: Stats,
}

impl Pie {
    /// `pie [limit PACKETS] [target TIME] [tupdate TIME] [alpha N] [beta N] [[no]ecn]
    /// [[no]bytemode] [[no_]dq_rate_estimator]`
    pub fn mainline(words: &mut Words, env: &Env) -> Result<Self, TcError> {
        Self::parse(words, env, Version::Mainline)
    }

    /// `pie@5.4`: as [`Pie::mainline`], without `dq_rate_estimator`.
    pub fn v5_4(words: &mut Words, env: &Env) -> Result<Self, TcError> {
        Self::parse(words, env, Version::V5_4)
    }

    fn parse(words: &mut Words, env: &Env, version: Version) -> Result<Self, TcError> {
        let mut params = Params::new(version, 1000);
        take_all(&mut params, words)?;
        Ok(Pie {
            timer: Timer::jiffies(params.tupdate, env.hz, env.replaced),
            params,
            vars: Vars::new(),
            mtu: u64::from(env.psched_mtu()),
            hz: env.hz,
            rng: Stream::new(env.seed, &env.name),
            queue: VecDeque::new(),
            backlog: 0,
            stats: Stats::default(),
        })
    }

    /// Source: RFC 8033, section 4.2; Linux 7.3 `pie_timer`.
    fn run_timer(&mut self, now: Time) {
        while self.timer.due(now).is_some() {
            let before = self.vars;
            self.vars.update(&self.params, self.backlog);
            if self.vars == before {
                self.timer.skip(now);
            }
        }
    }
}

fn take_all(params: &mut Params, words: &mut Words) -> Result<(), TcError> {
    // 5.4 has the estimator always, and no word for it.
    let known = match params.version {
        Version::Mainline => &Params::WORDS[..],
        Version::V5_4 => &Params::WORDS[..9],
    };
    while let Some(word) = words.next_word() {
        if !known.contains(&word) || !params.take(word, words)? {
            return Err(words.unknown(word, known));
        }
    }
    Ok(())
}

impl Qdisc for Pie {
    const PROPERTIES: Properties = Properties { work_conserving: true, ..Properties::DEFAULT };

    /// Marks instead of dropping up to a probability of 10 %. Source: RFC 8033, sections 4.1 and 5.1; Linux 7.3
    /// `pie_qdisc_enqueue`.
    fn enqueue(&mut self, mut packet: Packet, now: Time, tally: &mut Tally) {
        self.run_timer(now);
        let refused = if self.queue.len() >= self.params.limit as usize {
            self.stats.overlimit += 1;
            Some(Cause::Overlimit)
        } else if !self.vars.drop_early(
            &self.params,
            u64::from(packet.len),
            self.backlog,
            self.mtu,
            &mut self.rng,
        ) {
            None
        } else if !self.params.ecn {
            Some(Cause::Aqm)
        } else if self.vars.prob > self.params.version.max_prob() / 10 {
            Some(if packet.ecn.is_capable() { Cause::Overload } else { Cause::Aqm })
        } else if tally.mark(&mut packet) {
            self.stats.ecn_mark += 1;
            None
        } else {
            Some(Cause::Aqm)
        };
        if let Some(cause) = refused {
            self.stats.dropped += 1;
            self.vars.accu = 0;
            tally.drop(&packet, cause);
            return;
        }
        self.stats.packets_in += 1;
        self.stats.maxq = self.stats.maxq.max(self.queue.len());
        self.backlog += u64::from(packet.len);
        self.queue.push_back(packet);
    }

    /// Source: RFC 8033, section 4.3; Linux 7.3 `pie_qdisc_dequeue`.
    fn dequeue(&mut self, now: Time, _tally: &mut Tally) -> Option<Packet> {
        self.run_timer(now);
        let packet = self.queue.pop_front()?;
        let len = u64::from(packet.len);
        self.backlog -= len;
        // Both stamps are truncated to ticks before they are subtracted.
        let sojourn = ticks(now) - ticks(packet.enqueued);
        self.vars.departed(&self.params, len, sojourn, self.backlog, ticks(now));
        Some(packet)
    }

    fn qlen(&self) -> usize {
        self.queue.len()
    }

    fn backlog(&self) -> u64 {
        self.backlog
    }

    /// Packets above a lowered limit are dropped from the head; a new `tupdate` counts from the next tick on.
    fn change(&mut self, words: &mut Words, _now: Time, tally: &mut Tally) -> Result<(), TcError> {
        let mut params = self.params;
        take_all(&mut params, words)?;
        self.params = params;
        self.timer.set_period(params.tupdate, self.hz);
        while self.queue.len() > self.params.limit as usize {
            if let Some(packet) = self.queue.pop_front() {
                self.backlog -= u64::from(packet.len);
                tally.drop(&packet, Cause::Overlimit);
            }
        }
        Ok(())
    }
}

impl Statistics for Pie {
    fn show(&self) -> String {
        let name = match self.params.version {
            Version::Mainline => "pie",
            Version::V5_4 => "pie@5.4",
        };
        let Params { limit, .. } = self.params;
        format!("{name} limit {limit}p {}{}", self.params.show(&self.timer), self.params.show_modes())
    }

    fn show_stats(&self, _now: Time) -> String {
        let Stats { packets_in, overlimit, dropped, maxq, ecn_mark } = self.stats;
        // Linux tells the 64 bits below one: of a probability above it the fraction.
        let told = self.vars.prob.wrapping_mul(u64::MAX / self.params.version.max_prob());
        let prob = told as f64 / u64::MAX as f64;
        let rate = if self.params.rate_estimator {
            format!(" avg_dq_rate {}", (self.vars.avg_dq_rate * TICKS_PER_S) >> RATE_SHIFT)
        } else {
            String::new()
        };
        format!(
            "  prob {} delay {}{rate}\n  pkts_in {packets_in} overlimit {overlimit} dropped {dropped} maxq {maxq} ecn_mark {ecn_mark}",
            show::general(prob, 6),
            show::time(Time(self.vars.qdelay << TICK_SHIFT).as_us()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::control::BURST_ALLOWANCE;
    use super::*;

    use crate::base::units::Rate;
    use crate::packet::Ecn;

    fn pie(line: &str) -> Pie {
        let mut words = Words::new(line);
        let env = Env { replaced: Some(Time::ZERO), ..Env::default() };
        match words.kind().unwrap() {
            "pie" => Pie::mainline(&mut words, &env).unwrap(),
            _ => Pie::v5_4(&mut words, &env).unwrap(),
        }
    }

    fn frame(ecn: Ecn, now: Time) -> Packet {
        Packet { len: 1514, ecn, enqueued: now, ..Packet::default() }
    }

    /// Probabilities after each update with a constant delay.
    fn probabilities(line: &str, delay: Time, updates: usize) -> Vec<f64> {
        let q = pie(line);
        let mut vars = Vars { qdelay: ticks(delay), ..Vars::new() };
        (0..updates)
            .map(|_| {
                vars.update(&q.params, 100_000);
                vars.prob as f64 / q.params.version.max_prob() as f64
            })
            .collect()
    }

    fn drop_early(q: &mut Pie, len: u64) -> bool {
        q.vars.drop_early(&q.params, len, q.backlog, q.mtu, &mut q.rng)
    }

    #[test]
    fn rfc_8033_autotuning_table() {
        // RFC 8033, 4.2: by how much the gains are divided where the probability is below
        for (below, divisor) in
            [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0), (1.0, 1.0)]
        {
            for share in [0.9, 0.2] {
                let mut vars = Vars::new();
                let q = pie("pie");
                let one = q.params.version.max_prob() as f64;
                // The same delay twice: beta has nothing to add.
                vars.qdelay = ticks(Time::from_ms(25));
                vars.update(&q.params, 100_000);
                vars.prob = (below * share * one) as u64;
                let before = vars.prob;
                vars.update(&q.params, 100_000);
                // alpha = 1/8 per second, 10 ms too late
                let gained = (vars.prob - before) as f64 / one * divisor;
                assert!((gained / (0.125 * 0.010) - 1.0).abs() < 0.01, "{below} {share}: {gained}");
            }
        }
    }

    #[test]
    fn the_probability_after_each_update() {
        // 25 ms against 15 ms: the first update adds the beta kick, (0.125*10ms + 1.25*25ms)/2048
        let expected = [
            1.59e-05, 2.56e-05, 3.54e-05, 4.52e-05, 5.49e-05, 6.47e-05, 7.45e-05, 8.42e-05, 9.4e-05,
            1.04e-04, 1.43e-04, 1.82e-04,
        ];
        let got = probabilities("pie", Time::from_ms(25), 12);
        for (got, want) in got.iter().zip(expected) {
            // the vector has three digits
            assert!((got / want - 1.0).abs() < 0.005, "{got} {want}");
        }
    }

    #[test]
    fn so_many_updates_reach_1_5_and_10_percent() {
        let reach = |line, delay| {
            let p = probabilities(line, delay, 600);
            [0.01, 0.05, 0.1].map(|level| p.iter().position(|&p| p >= level).unwrap() + 1)
        };
        assert_eq!(reach("pie", Time::from_ms(25)), [91, 155, 235]);
        let tight = "pie limit 100 target 5ms tupdate 32ms alpha 2 beta 20 ecn";
        assert_eq!(reach(tight, Time::from_ms(10)), [185, 313, 473]);
    }

    #[test]
    fn ticks_come_every_20_ms_from_512_ms_on() {
        // one update before 532 ms, two from then on
        let after = |now| {
            let mut q = pie("pie");
            q.vars.qdelay = ticks(Time::from_ms(25));
            q.run_timer(now);
            q.vars.prob as f64 / q.params.version.max_prob() as f64
        };
        let vector = probabilities("pie", Time::from_ms(25), 2);
        assert!(after(Time(511_999_999)) == 0.0);
        assert!((after(Time(512_000_000)) - vector[0]).abs() < 1e-12);
        assert!((after(Time(531_999_999)) - vector[0]).abs() < 1e-12);
        assert!((after(Time(532_000_000)) - vector[1]).abs() < 1e-12);
    }

    /// A queue with a standing delay of 20 ms and the given probability.
    fn congested(line: &str, p: f64) -> (Pie, Tally) {
        let mut q = pie(line);
        let mut tally = Tally::default();
        for _ in 0..10 {
            q.enqueue(frame(Ecn::Ect0, Time::ZERO), Time::ZERO, &mut tally);
        }
        q.vars.burst = 0;
        q.vars.qdelay = ticks(Time::from_ms(20));
        q.vars.prob = (p * q.params.version.max_prob() as f64) as u64;
        (q, tally)
    }

    #[test]
    fn drops_are_spaced_by_085_over_p_and_a_geometric_wait() {
        // 0.85/p without a draw, then 1/p on average: 1.85/p. The standard deviation of a spacing
        // is about 1/p, so over N = 400_000*p/1.85 drops the mean strays by 1/(p*sqrt(N)):
        // 1.2 % of 1.85/p at p = 0.01 (N = 2160); four of them are allowed.
        let arrivals = 400_000;
        for line in ["pie", "pie@5.4"] {
            for p in [0.01, 0.05] {
                let (mut q, mut tally) = congested(line, p);
                for _ in 0..arrivals {
                    q.enqueue(frame(Ecn::Ect0, Time::ZERO), Time::ZERO, &mut tally);
                    if q.qlen() > 10 {
                        q.backlog -= u64::from(q.queue.pop_front().unwrap().len);
                    }
                }
                let spacing = f64::from(arrivals) / tally.dropped() as f64;
                let relative = spacing * p / 1.85;
                assert!((relative - 1.0).abs() < 0.048, "{line} {p}: {relative}");
            }
        }
    }

    #[test]
    fn a_sum_of_8_5_marks_every_packet_and_only_a_drop_clears_it() {
        // Marking leaves the sum alone, as in Linux. In 5.4 the ninth overflow ends it.
        for (line, marks) in [("pie ecn", 100), ("pie@5.4 ecn", 49)] {
            let (mut q, mut tally) = congested(line, 0.01);
            let one = u128::from(q.params.version.max_prob());
            q.vars.accu = one * 17 / 2;
            for _ in 0..100 {
                q.enqueue(frame(Ecn::Ect0, Time::ZERO), Time::ZERO, &mut tally);
            }
            // beyond the 49 of 5.4 there are draws: 51 at 1 %
            assert!((marks..=marks + 5).contains(&tally.marks), "{line} {}", tally.marks);
            assert!(q.vars.accu > one * 9 || line == "pie@5.4 ecn");
            q.enqueue(frame(Ecn::NotEct, Time::ZERO), Time::ZERO, &mut tally);
            assert!(q.vars.accu == 0 || tally.dropped() == 0);
        }
    }

    #[test]
    fn above_10_percent_an_ecn_packet_is_dropped() {
        let mut q = pie("pie ecn");
        let mut tally = Tally::default();
        for _ in 0..3 {
            q.enqueue(frame(Ecn::Ect0, Time::ZERO), Time::ZERO, &mut tally);
        }
        q.vars.burst = 0;
        q.vars.qdelay = ticks(Time::from_ms(20));
        q.vars.prob = q.params.version.max_prob() / 10 + 1;
        for _ in 0..100 {
            q.enqueue(frame(Ecn::Ect0, Time::ZERO), Time::ZERO, &mut tally);
        }
        assert_eq!(tally.marks, 0);
        assert!(tally.drops[Cause::Overload as usize] > 0);
    }

    #[test]
    fn the_burst_allowance_and_two_frames_of_backlog_protect() {
        let mut q = pie("pie");
        q.vars.prob = q.params.version.max_prob();
        q.backlog = 100_000;
        assert!(!drop_early(&mut q, 1514)); // 150 ms of burst to come
        q.vars.burst = 0;
        q.backlog = 2 * 1514 - 1;
        assert!(!drop_early(&mut q, 1514));
        q.backlog = 2 * 1514;
        assert!(drop_early(&mut q, 1514));
        // below half the target and below 20 %
        q.vars.prob = q.params.version.max_prob() / 5 - 1;
        q.vars.accu = u128::from(q.params.version.max_prob()) * 9;
        assert!(!drop_early(&mut q, 1514));
        q.vars.qdelay = q.params.target / 2;
        assert!(drop_early(&mut q, 1514));
    }

    #[test]
    fn bytemode_scales_by_size() {
        // p = 1, a packet of a tenth of the MTU: it takes nine of them to pass 0.85
        let mut q = pie("pie bytemode");
        q.vars.burst = 0;
        q.backlog = 100_000;
        q.vars.prob = q.params.version.max_prob();
        let mut passed = 0;
        while q.vars.accu < u128::from(q.params.version.max_prob() / 100 * 85) {
            assert!(!drop_early(&mut q, 151) || passed >= 8);
            passed += 1;
            if q.vars.accu == 0 {
                break;
            }
        }
        assert_eq!(passed, 9);
    }

    #[test]
    fn timestamp_mode_measures_the_sojourn_and_an_empty_queue_has_none() {
        let mut q = pie("pie");
        let mut tally = Tally::default();
        q.enqueue(frame(Ecn::NotEct, Time::ZERO), Time::ZERO, &mut tally);
        q.enqueue(frame(Ecn::NotEct, Time::ZERO), Time::ZERO, &mut tally);
        q.dequeue(Time::from_ms(20), &mut tally);
        assert_eq!(q.vars.qdelay, 312_500); // 20 ms / 64 ns
        assert_eq!(q.vars.burst, BURST_ALLOWANCE); // no earlier dequeue to count from
        q.dequeue(Time::from_ms(30), &mut tally);
        assert_eq!(q.vars.qdelay, 0);
        assert_eq!(q.vars.burst, BURST_ALLOWANCE - ticks(Time::from_ms(10)));
    }

    #[test]
    fn the_departure_rate_is_quantised() {
        // 6.25 MB/s * 64 ns * 256 = 102.4 units; 5 Mbit/s: 10.24
        for (rate, units) in [(50_000_000, 102), (5_000_000, 10)] {
            let mut q = pie("pie@5.4");
            let mut tally = Tally::default();
            for _ in 0..40 {
                q.enqueue(frame(Ecn::NotEct, Time::ZERO), Time::ZERO, &mut tally);
            }
            let mut now = Time::ZERO;
            // A cycle begins with a departure whose bytes count and whose time does not, so the
            // first is 11 frames in ten frame times; the next ones are 11 in 11.
            for _ in 0..11 {
                q.dequeue(now, &mut tally);
                now += Rate(rate).time_for(1514);
            }
            assert_eq!(q.vars.avg_dq_rate, ((11 * 1514) << 8) / ticks(Rate(rate).time_for(15140)));
            q.vars.avg_dq_rate = 0;
            for _ in 0..11 {
                q.dequeue(now, &mut tally);
                now += Rate(rate).time_for(1514);
            }
            assert_eq!(q.vars.avg_dq_rate, units);
        }
    }

    #[test]
    fn a_long_idle_time_resets_and_is_cheap() {
        let mut q = pie("pie");
        let mut tally = Tally::default();
        q.vars.prob = q.params.version.max_prob() / 2;
        q.vars.burst = 0;
        // 30 years of ticks would not end
        let later = Time(1_000_000_000_000_000_000);
        q.enqueue(frame(Ecn::NotEct, later), later, &mut tally);
        assert_eq!((q.vars.prob, q.vars.burst), (0, BURST_ALLOWANCE));
    }

    #[test]
    fn long_overload_raises_the_probability_above_one_which_takes_as_long_to_undo() {
        // Two steps of 2 % per update while 300 ms stand. From one on, 50 updates: 3. In 64 bits one is 2^-8, in 5.4
        // it is all there is. Then the delay falls to 15 ms at once, which takes 1.25 * 0.285 off.
        for (line, above, after) in [("pie", 3.0, 3.0 - 0.356_25), ("pie@5.4", 1.0, 1.0 - 0.356_25)] {
            let q = pie(line);
            let one = q.params.version.max_prob();
            let rate = 100;
            let ms_300 = ticks(Time::from_ms(300));
            let long =
                Vars { prob: one, qdelay: ms_300, qdelay_old: ms_300, avg_dq_rate: rate, ..Vars::new() };
            let backlog = |delay: u64| (delay * rate) >> RATE_SHIFT;
            let mut vars = long;
            for _ in 0..50 {
                vars.update(&q.params, backlog(ms_300));
            }
            let share = |vars: &Vars| vars.prob as f64 / one as f64;
            assert!((share(&vars) - above).abs() < 1e-6, "{line} {}", share(&vars));
            vars.qdelay = if q.params.rate_estimator { vars.qdelay } else { q.params.target };
            vars.update(&q.params, backlog(q.params.target));
            assert!((share(&vars) - after).abs() < 0.001, "{line} {}", share(&vars));
        }
    }

    #[test]
    fn decay_differs_by_version() {
        // target 0: the integral adds nothing, only the decay is left: 63/64 against 98/100
        for (line, kept) in [("pie target 0", 63.0 / 64.0), ("pie@5.4 target 0", 0.98)] {
            let q = pie(line);
            let half = q.params.version.max_prob() / 2;
            let mut vars = Vars { prob: half, avg_dq_rate: 100, ..Vars::new() };
            vars.update(&q.params, 0);
            assert!((vars.prob as f64 / half as f64 - kept).abs() < 1e-9, "{line}");
        }
    }

    #[test]
    fn shows_what_is_in_effect() {
        // 15 ms are four jiffies of 4 ms
        assert_eq!(pie("pie ecn").show(), "pie limit 1000p target 15ms tupdate 16ms alpha 2 beta 20 ecn");
        assert_eq!(
            pie("pie limit 100 target 5ms tupdate 32ms alpha 2 beta 20 dq_rate_estimator").show(),
            "pie limit 100p target 5ms tupdate 32ms alpha 2 beta 20 dq_rate_estimator"
        );
        assert_eq!(
            pie("pie").show_stats(Time::ZERO),
            "  prob 0 delay 0us\n  pkts_in 0 overlimit 0 dropped 0 maxq 0 ecn_mark 0"
        );
        let error = |line| {
            let mut words = Words::new(line);
            words.kind().unwrap();
            Pie::v5_4(&mut words, &Env::default()).err().unwrap().to_string()
        };
        assert!(error("pie@5.4 dq_rate_estimator").contains("unknown word 'dq_rate_estimator'"));
        assert!(error("pie@5.4 alpha 33").contains("alpha: '33' is not a number from 0 to 32"));
    }
}
