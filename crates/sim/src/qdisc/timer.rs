//! Periodic controllers without events: the ticks that are due run before the next enqueue or
//! dequeue, each at its own time.

use crate::base::units::Time;

const NS_PER_S: u64 = 1_000_000_000;

/// How long the queues of a run have stood when it begins. The lab waits 3 s for the carriers of its devices
/// (python/bakeoff/engines/lab/nodes.py), and the agent 100 ms (crates/agent/src/run.rs).
const STOOD: Time = Time::from_ms(3100);

/// A periodic timer of a queue that stands when the run begins, or that took another one's place at the time
/// `replaced` ([`super::Env::replaced`]).
#[derive(Clone, Copy, Debug)]
pub(super) struct Timer {
    /// On a clock that is `ahead` of the run's.
    next: Time,
    ahead: Time,
    period: Time,
    /// What was asked for, in whole jiffies if it is counted in them.
    asked: Time,
}

impl Timer {
    /// The kernel's high-resolution timer: first one period after the run begins, or its queue is made.
    pub(super) fn hrtimer(period: Time, replaced: Option<Time>) -> Self {
        Timer { next: replaced.unwrap_or(Time::ZERO) + period, ahead: Time::ZERO, period, asked: period }
    }

    /// A timer of the jiffies wheel at `hz`, first a period after `now`.
    pub(super) fn after(now: Time, period: Time, hz: u64) -> Self {
        let (asked, period) = in_jiffies(period, hz);
        Timer { next: now + period, ahead: Time::ZERO, period, asked }
    }

    /// A timer of the jiffies wheel at `hz`: period rounded up to whole jiffies (zero: only one
    /// tick) and to the wheel's next slot, first tick HZ/2 jiffies after its queue is made, likewise. What ticked
    /// before the run is due at its first instant.
    pub(super) fn jiffies(period: Time, hz: u64, replaced: Option<Time>) -> Self {
        let (asked, period) = in_jiffies(period, hz);
        let first = Time(in_wheel(hz / 2) * NS_PER_S / hz);
        let (made, ahead) = replaced.map_or((Time::ZERO, STOOD), |at| (at, Time::ZERO));
        Timer { next: made + first, ahead, period, asked }
    }

    /// Another period, from the next tick on.
    pub(super) fn set_exact_period(&mut self, period: Time) {
        (self.asked, self.period) = (period, period);
    }

    /// Another period in jiffies, from the next tick on.
    pub(super) fn set_period(&mut self, period: Time, hz: u64) {
        (self.asked, self.period) = in_jiffies(period, hz);
    }

    /// The next tick at or before `now`, which is then taken.
    pub(super) fn due(&mut self, now: Time) -> Option<Time> {
        (self.next <= now + self.ahead).then(|| {
            let at = self.next - self.ahead;
            self.next += self.period;
            at
        })
    }

    /// Leaves out the ticks up to `now`: for a controller that its last tick left unchanged, and
    /// whose next ticks would do the same.
    pub(super) fn skip(&mut self, now: Time) {
        let now = now + self.ahead;
        if self.next <= now {
            let periods = (now - self.next).as_ns() / self.period.as_ns() + 1;
            self.next += Time(periods.saturating_mul(self.period.as_ns()));
        }
    }

    /// The period as it was asked for, in whole jiffies if it is counted in them: what tc shows.
    pub(super) fn asked(&self) -> Time {
        self.asked
    }
}

/// A period in whole jiffies, and what it comes to; zero never ends.
fn in_jiffies(period: Time, hz: u64) -> (Time, Time) {
    let time = |jiffies: u64| Time(jiffies * NS_PER_S / hz);
    match period.as_ns().saturating_mul(hz).div_ceil(NS_PER_S) {
        0 => (Time::NEVER, Time::NEVER),
        jiffies => (time(jiffies), time(in_wheel(jiffies))),
    }
}

/// From one expiry to the next of a timer that is set anew for so many jiffies later whenever it
/// expires: Linux's wheel (`kernel/time/timer.c`, `calc_index`) rounds up to the slot behind, one jiffy
/// wide up to 63 jiffies, 8 up to 504, 64 up to 4032 and so on, so that no timer is early.
fn in_wheel(jiffies: u64) -> u64 {
    let mut shift = 0;
    while jiffies > 63 << shift {
        shift += 3;
    }
    ((jiffies >> shift) + 1) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wheel_takes_the_slot_behind() {
        // Slots of 1, 8 and 64 jiffies.
        assert_eq!([1, 15, 63, 64, 500, 504, 505].map(in_wheel), [2, 16, 64, 72, 504, 512, 512]);
    }

    #[test]
    fn a_timer_set_at_any_time_takes_the_wheels_slots_too() {
        // 1000 jiffies lie in slots of 64: 1024. At HZ 100 a second is 100 jiffies, in slots of 8: 104.
        let mut timer = Timer::after(Time::from_ms(5), Time::from_ms(1000), 1000);
        let ticks: Vec<Time> = std::iter::from_fn(|| timer.due(Time::from_ms(2500))).collect();
        assert_eq!(ticks, [1029, 2053].map(Time::from_ms));
        assert_eq!(Timer::after(Time::ZERO, Time::from_ms(1000), 100).next, Time::from_ms(1040));
    }

    #[test]
    fn fifteen_milliseconds_are_five_jiffies_at_hz_250_and_start_after_128() {
        // 15 ms are asked for as 4 jiffies and expire in the slot behind; half a second, 125 jiffies,
        // in one of 8 jiffies: 128 of 4 ms.
        let ticks = |mut timer: Timer, until| -> Vec<Time> {
            std::iter::from_fn(|| timer.due(Time::from_ms(until))).collect()
        };
        let period = Time::from_ms(15);
        let replaced = Timer::jiffies(period, 250, Some(Time::from_ms(1000)));
        assert_eq!(ticks(replaced, 1555), [1512, 1532, 1552].map(Time::from_ms));
        // A queue that has stood for 3100 ms when the run begins ticked (3100 - 512) / 20 = 129 times after the
        // first, and ticks again 512 + 130 * 20 - 3100 ms later.
        let stood = ticks(Timer::jiffies(period, 250, None), 55);
        assert!(stood[..130].iter().all(|&at| at == Time::ZERO));
        assert_eq!(stood[130..], [12, 32, 52].map(Time::from_ms));
    }

    #[test]
    fn skipping_keeps_the_phase() {
        let mut skipped = Timer::hrtimer(Time::from_ms(16), None);
        let mut walked = skipped;
        for now in [15, 16, 17, 1000, 1008].map(Time::from_ms) {
            skipped.skip(now);
            while walked.due(now).is_some() {}
            assert_eq!(skipped.next, walked.next);
        }
    }
}
