//! The COBALT state machine of the SCE qdiscs: CoDel's schedule twice (for CE and for SCE) with a
//! count that steps back in time, and BLUE.
//!
//! Source: chromi/sce `net/sched/sch_cnq_cobalt.c` and its variants (CAKE's COBALT is another).
//!
//! Parameters: see [`Params`]; all follow from one `rtt` and `sce-thresh`.
//!
//! Departures: "the schedule has been missed" is judged on the next signal's final time, so that
//! going above target always leaves one interval before the first signal. An SCE schedule that rests
//! at count 0 starts with a whole interval, however long it has rested.
//!
//! Validation: the inverse square roots; signal times; BLUE's steps; the SCE schedule.

use crate::base::rng::Stream;
use crate::base::units::Time;
use crate::packet::Ecn;
use crate::qdisc::inverse_sqrt::{STEPPED, newton};

/// Times in nanoseconds, probabilities as fractions of 2^32.
#[derive(Clone, Copy, Debug)]
pub(super) struct Params {
    /// CE: time above target before the first signal (100 ms).
    pub interval: i64,
    /// CE: acceptable delay (5 ms).
    pub target: i64,
    /// SCE: as `interval`; 0 switches SCE off.
    pub sce_interval: i64,
    /// SCE: as `target` (2.5 ms).
    pub sce_target: i64,
    /// Delay from which BLUE's drop probability rises (400 ms).
    pub blue_threshold: i64,
    /// BLUE's steps up and down.
    pub p_inc: u32,
    pub p_dec: u32,
}

impl Params {
    /// The parameters for a round-trip time; `sce_thresh` 0 switches SCE off, n makes its interval
    /// rtt/n.
    pub(super) fn new(rtt: Time, sce_thresh: u32) -> Self {
        let interval = rtt.as_ns() as i64;
        let target = interval / 20;
        Params {
            interval,
            target,
            sce_interval: interval.checked_div(i64::from(sce_thresh)).unwrap_or(0),
            sce_target: target / 2,
            blue_threshold: interval * 4,
            p_inc: 1 << 24,
            p_dec: 1 << 20,
        }
    }

    /// The same with all times divided by `n`.
    pub(super) fn divided(self, n: i64) -> Self {
        Params {
            interval: self.interval / n,
            target: self.target / n,
            sce_interval: self.sce_interval / n,
            sce_target: self.sce_target / n,
            blue_threshold: self.blue_threshold / n,
            ..self
        }
    }
}

/// One of the two schedules.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    count: u32,
    isqrt: u32,
    /// Time of the next signal; signed, for it may be reflected to before the start.
    next: i64,
    dropping: bool,
}

impl Schedule {
    const NEW: Schedule = Schedule { count: 0, isqrt: u32::MAX, next: 0, dropping: false };

    fn due(&self, now: i64) -> bool {
        self.count > 0 && now >= self.next
    }

    /// interval/sqrt(count)
    /// Source: RFC 8289, section 5.6 (`control_law`).
    fn spacing(&self, interval: i64) -> i64 {
        ((i128::from(interval) * i128::from(self.isqrt)) >> 32) as i64
    }

    fn control(&self, t: i64, interval: i64) -> i64 {
        t + self.spacing(interval)
    }

    /// The time left to the next step in one direction becomes time spent in the other. A
    /// schedule at rest (count 0, next in the past) has a whole interval to go.
    fn reflect(&self, now: i64, interval: i64) -> i64 {
        2 * now - self.next.max(now) + self.spacing(interval)
    }

    fn set_count(&mut self, count: u32) {
        self.count = count;
        self.isqrt = match STEPPED.get(count as usize) {
            Some(&value) => value,
            None => newton(count, self.isqrt),
        };
    }

    fn signalled(&mut self, interval: i64) {
        self.set_count(self.count.saturating_add(1));
        self.next = self.control(self.next, interval);
    }

    /// Steps back for every signal that would have been due by `now`.
    fn unwind(&mut self, now: i64, interval: i64) {
        while self.due(now) {
            self.set_count(self.count - 1);
            self.next = self.control(self.next, interval);
        }
    }

    fn fill(&mut self, now: i64) {
        self.dropping = true;
        self.next = now;
        self.at_least_one();
    }

    fn at_least_one(&mut self) {
        if self.count == 0 {
            self.set_count(1);
        }
    }
}

/// Which thresholds the packet's delay is above.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Over {
    pub ce: bool,
    pub sce: bool,
    pub blue: bool,
}

/// What is asked for the packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Signal {
    /// Set ECT(1); only asked of ECT(0).
    pub sce: bool,
    /// Set CE; only asked of ECN-capable packets.
    pub ce: bool,
    pub drop: bool,
}

/// The state of one flow or queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct SceCobalt {
    ce: Schedule,
    sce: Schedule,
    blue_timer: i64,
    p_drop: u32,
}

impl SceCobalt {
    /// At rest: of this one, an empty queue changes nothing.
    pub(super) const fn new() -> Self {
        SceCobalt { ce: Schedule::NEW, sce: Schedule::NEW, blue_timer: 0, p_drop: 0 }
    }

    /// A packet with this ECN field leaves at `now`. Source: chromi/sce `cobalt_should_drop`.
    pub(super) fn dequeue(
        &mut self,
        params: &Params,
        now: Time,
        ecn: Ecn,
        over: Over,
        rng: &mut Stream,
    ) -> Signal {
        let now = now.as_ns() as i64;
        let mut signal = Signal {
            sce: params.sce_interval > 0 && self.sce_due(params, now, ecn, over.sce),
            ..Signal::default()
        };
        if self.ce_due(params, now, over.ce) {
            signal.ce = ecn.is_capable();
            signal.drop = !signal.ce;
        }
        if over.blue {
            self.queue_full(params, now);
        }
        if self.p_drop > 0 && rng.u32() < self.p_drop {
            signal.drop = true;
        }
        if self.ce.count == 0 {
            self.ce.next = now + params.interval;
        } else if now > self.ce.next && !signal.drop {
            self.ce.next = now;
        }
        signal
    }

    fn sce_due(&mut self, params: &Params, now: i64, ecn: Ecn, over: bool) -> bool {
        let interval = params.sce_interval;
        let sce = &mut self.sce;
        let mut due = sce.due(now);
        if over != sce.dropping {
            sce.dropping = over;
            sce.next = if due { sce.control(now, interval) } else { sce.reflect(now, interval) };
            if over {
                due = false;
            }
        }
        if over {
            sce.at_least_one();
        }
        if due && over {
            let mark = ecn == Ecn::Ect0;
            if mark {
                sce.signalled(interval);
            }
            return mark;
        }
        if due {
            sce.set_count(sce.count - 1);
            sce.next = sce.control(sce.next, interval);
            sce.unwind(now, interval);
        }
        false
    }

    fn ce_due(&mut self, params: &Params, now: i64, over: bool) -> bool {
        let interval = params.interval;
        let ce = &mut self.ce;
        let mut due = ce.due(now);
        if over != ce.dropping {
            ce.dropping = over;
            ce.next = ce.control(now, interval);
            if over {
                due = false;
            }
        }
        if over {
            ce.at_least_one();
        }
        if due && over {
            ce.signalled(interval);
            return true;
        }
        if due {
            ce.set_count(ce.count - 1);
            ce.next = ce.control(ce.next, interval);
            ce.unwind(now, interval);
        }
        false
    }

    /// Far too much delay: BLUE's probability rises, at most once per target. Source: chromi/sce `cobalt_queue_full`.
    fn queue_full(&mut self, params: &Params, now: i64) {
        if now - self.blue_timer > params.target {
            self.p_drop = self.p_drop.saturating_add(params.p_inc);
            self.blue_timer = now;
        }
        self.ce.fill(now);
        self.sce.fill(now);
    }

    /// Nothing queued: BLUE's probability falls, at most once per target, and the schedules step
    /// back. Source: chromi/sce `cobalt_queue_empty`.
    pub(super) fn queue_empty(&mut self, params: &Params, now: Time) {
        let now = now.as_ns() as i64;
        if self.p_drop > 0 && now - self.blue_timer > params.target {
            self.p_drop = self.p_drop.saturating_sub(params.p_dec);
            self.blue_timer = now;
        }
        self.ce.unwind(now, params.interval);
        if self.ce.dropping {
            self.ce.next = self.ce.control(now, params.interval);
            self.ce.dropping = false;
        }
        if params.sce_interval > 0 {
            self.sce.unwind(now, params.sce_interval);
            if self.sce.dropping {
                self.sce.next = self.sce.reflect(now, params.sce_interval);
                self.sce.dropping = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OVER: Over = Over { ce: true, sce: true, blue: false };

    fn ms(t: f64) -> Time {
        Time::from_secs_f64(t / 1e3)
    }

    /// Times in ms of the packets that `what` finds in, with a packet each 0.1 ms.
    fn times(
        cobalt: &mut SceCobalt,
        params: &Params,
        ecn: Ecn,
        from_ms: u32,
        to_ms: u32,
        what: fn(Signal) -> bool,
    ) -> Vec<f64> {
        let mut rng = Stream::new(1, "test");
        (from_ms * 10..to_ms * 10)
            .map(|i| f64::from(i) / 10.0)
            .filter(|&t| what(cobalt.dequeue(params, ms(t), ecn, OVER, &mut rng)))
            .collect()
    }

    #[test]
    fn the_inverse_square_roots_are_those_of_four_newton_steps() {
        // 1/sqrt(count), but for count 2, where four Newton steps from 1 get to 0.5, 0.625, 0.6934,
        // 0.7067 and not yet to 0.7071.
        let expected = [1.0, 1.0, 0.7067, 0.5774, 0.5, 0.4472, 0.4082, 0.3780, 0.3536, 0.3333];
        for (got, want) in STEPPED.iter().zip(expected) {
            let got = f64::from(*got) / f64::from(u32::MAX);
            assert!((got - want).abs() < 5e-5, "{got} {want}");
        }
        // Beyond the cache one Newton step per count turns an error e into 1.5 e^2: from 15 to 16
        // e is 3.3 %, and 0.16 % is left.
        let mut schedule = Schedule::NEW;
        for count in 1..=1000 {
            schedule.set_count(count);
            let exact = f64::from(u32::MAX) / f64::from(count).sqrt();
            assert!((f64::from(schedule.isqrt) / exact - 1.0).abs() < 1.7e-3, "{count}");
        }
    }

    #[test]
    fn ce_signals_are_spaced_by_interval_over_sqrt_count() {
        let params = Params::new(Time::from_ms(100), 0);
        let mut cobalt = SceCobalt::new();
        let got = times(&mut cobalt, &params, Ecn::Ect0, 0, 400, |s| s.ce);
        // 100, then + 100/sqrt(2), 100/sqrt(3), ...: each at the first packet at or after it
        let mut t = 100.0;
        for (n, got) in got.iter().enumerate() {
            // one packet late, or early by the 0.04 ms that the count of 2 lacks
            assert!(*got > t - 0.05 && *got < t + 0.1, "{got} {t}");
            t += 100.0 / f64::from(n as u32 + 2).sqrt();
        }
        assert_eq!(got.len(), 6); // 100.0, 170.7, 228.4, 278.4, 323.2, 364.0
    }

    #[test]
    fn going_over_again_waits_a_shrunken_interval() {
        let params = Params::new(Time::from_ms(100), 0);
        let mut cobalt = SceCobalt::new();
        let first = times(&mut cobalt, &params, Ecn::Ect0, 0, 230, |s| s.ce);
        assert_eq!((first.len(), cobalt.ce.count), (3, 4));
        // One packet below target arms at 230 + 100/sqrt(4); the next above it, again.
        let mut rng = Stream::new(1, "test");
        cobalt.dequeue(&params, ms(230.0), Ecn::Ect0, Over::default(), &mut rng);
        let again = times(&mut cobalt, &params, Ecn::Ect0, 231, 330, |s| s.ce);
        assert!((again[0] - 281.0).abs() < 0.11, "{again:?}");
    }

    #[test]
    fn below_target_the_count_steps_back_in_time() {
        let params = Params::new(Time::from_ms(100), 0);
        let mut cobalt = SceCobalt::new();
        times(&mut cobalt, &params, Ecn::Ect0, 0, 230, |s| s.ce);
        let mut rng = Stream::new(1, "test");
        // armed at 230 + 50; from there the counts 3, 2, 1 take 57.7, 70.7 and 100 ms
        cobalt.dequeue(&params, ms(230.0), Ecn::Ect0, Over::default(), &mut rng);
        for (at, count) in [(279.9, 4), (280.1, 3), (337.9, 2), (408.6, 1), (508.7, 0)] {
            cobalt.dequeue(&params, ms(at), Ecn::Ect0, Over::default(), &mut rng);
            assert_eq!(cobalt.ce.count, count, "{at}");
        }
    }

    #[test]
    fn not_ect_is_asked_to_be_dropped() {
        let params = Params::new(Time::from_ms(100), 0);
        let got = times(&mut SceCobalt::new(), &params, Ecn::NotEct, 0, 150, |s| s.drop && !s.ce);
        assert_eq!(got, [100.0]);
    }

    #[test]
    fn sce_runs_n_times_faster_and_only_on_ect0() {
        let params = Params::new(Time::from_ms(100), 4);
        assert_eq!((params.sce_interval, params.sce_target), (25_000_000, 2_500_000));
        // Reflected at 0: 0 + 25/sqrt(0 as 1) = 25, then + 25/sqrt(2) = 42.7, + 25/sqrt(3) = 57.1
        let got = times(&mut SceCobalt::new(), &params, Ecn::Ect0, 0, 60, |s| s.sce);
        for (got, want) in got.iter().zip([25.0, 42.7, 57.2]) {
            assert!((got - want).abs() < 0.11, "{got} {want}");
        }
        assert_eq!(got.len(), 3);
        assert!(times(&mut SceCobalt::new(), &params, Ecn::Ect1, 0, 90, |s| s.sce).is_empty());
        let off = Params::new(Time::from_ms(100), 0);
        assert!(times(&mut SceCobalt::new(), &off, Ecn::Ect0, 0, 90, |s| s.sce).is_empty());
    }

    #[test]
    fn sce_reflects_the_time_left_when_it_turns() {
        let params = Params::new(Time::from_ms(100), 4);
        let mut cobalt = SceCobalt::new();
        let mut rng = Stream::new(1, "test");
        // after a rest, too, a whole interval comes first
        let start = 10_000;
        let got = times(&mut cobalt, &params, Ecn::Ect0, start, start + 60, |s| s.sce);
        assert!((got[0] - 10_025.0).abs() < 0.11 && got.len() == 3, "{got:?}");
        // At 60 ms 9.6 of the 12.5 ms between marks 3 and 4 are left: so the step back to a count
        // of 3 comes after 12.5 - 9.6 = 2.9 ms.
        for (at, count) in [(60.0, 4), (62.7, 4), (63.0, 3)] {
            let at = ms(f64::from(start) + at);
            cobalt.dequeue(&params, at, Ecn::Ect0, Over::default(), &mut rng);
            assert_eq!(cobalt.sce.count, count, "{at:?}");
        }
    }

    #[test]
    fn blue_rises_by_1_in_256_and_falls_by_1_in_4096_once_per_target() {
        let params = Params::new(Time::from_ms(100), 0);
        let mut cobalt = SceCobalt::new();
        for t in [6.0, 7.0, 11.0, 11.1] {
            cobalt.queue_full(&params, ms(t).as_ns() as i64);
        }
        // at 6 and 11.1: strictly more than 5 ms apart
        assert_eq!(cobalt.p_drop, 2 << 24);
        assert!(cobalt.ce.dropping && cobalt.ce.count == 1);
        for t in [12.0, 17.0, 20.0, 23.0] {
            cobalt.queue_empty(&params, ms(t));
        }
        assert_eq!(cobalt.p_drop, (2 << 24) - (2 << 20));
        // and drops that fraction: 2/256 - 2/4096 of 20 000 is 146, four standard deviations 48
        let mut rng = Stream::new(1, "test");
        let drops = (0..20_000)
            .filter(|_| cobalt.dequeue(&params, ms(30.0), Ecn::Ect0, Over::default(), &mut rng).drop)
            .count();
        assert!((98..=194).contains(&drops), "{drops}");
    }
}
