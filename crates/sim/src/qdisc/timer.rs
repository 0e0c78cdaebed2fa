//! Periodic controllers without events: the ticks that are due run before the next enqueue or
//! dequeue, each at its own time.

use crate::units::Time;

const NS_PER_S: u64 = 1_000_000_000;

/// A periodic timer. Its phase counts from the start of the run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timer {
    next: Time,
    period: Time,
}

impl Timer {
    /// The kernel's high-resolution timer: first after one period.
    pub(super) fn hrtimer(period: Time) -> Self {
        Timer { next: period, period }
    }

    /// First a period after `now`.
    pub(super) fn after(now: Time, period: Time) -> Self {
        Timer { next: now + period, period }
    }

    /// A timer of the jiffies wheel at `hz`: period rounded up to whole jiffies (zero: only one
    /// tick), first tick after HZ/2 jiffies.
    pub(super) fn jiffies(period: Time, hz: u64) -> Self {
        Timer { next: Time((hz / 2) * NS_PER_S / hz), period: in_jiffies(period, hz) }
    }

    /// Another period, from the next tick on.
    pub(super) fn set_exact_period(&mut self, period: Time) {
        self.period = period;
    }

    /// Another period in jiffies, from the next tick on.
    pub(super) fn set_period(&mut self, period: Time, hz: u64) {
        self.period = in_jiffies(period, hz);
    }

    /// The next tick at or before `now`, which is then taken.
    pub(super) fn due(&mut self, now: Time) -> Option<Time> {
        (self.next <= now).then(|| {
            let at = self.next;
            self.next += self.period;
            at
        })
    }

    /// Leaves out the ticks up to `now`: for a controller that its last tick left unchanged, and
    /// whose next ticks would do the same.
    pub(super) fn skip(&mut self, now: Time) {
        if self.next <= now {
            let periods = (now - self.next).as_ns() / self.period.as_ns() + 1;
            self.next += Time(periods.saturating_mul(self.period.as_ns()));
        }
    }

    /// Time between ticks.
    pub(super) fn period(&self) -> Time {
        self.period
    }
}

/// Rounded up to whole jiffies; zero never ends.
fn in_jiffies(period: Time, hz: u64) -> Time {
    match period.as_ns().saturating_mul(hz).div_ceil(NS_PER_S) {
        0 => Time::NEVER,
        jiffies => Time(jiffies * NS_PER_S / hz),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fifteen_milliseconds_are_four_jiffies_at_hz_250_and_start_after_half_a_second() {
        let mut timer = Timer::jiffies(Time::from_ms(15), 250);
        let ticks: Vec<Time> = std::iter::from_fn(|| timer.due(Time::from_ms(535))).collect();
        assert_eq!(ticks, [500, 516, 532].map(Time::from_ms));
    }

    #[test]
    fn skipping_keeps_the_phase() {
        let mut skipped = Timer::hrtimer(Time::from_ms(16));
        let mut walked = skipped;
        for now in [15, 16, 17, 1000, 1008].map(Time::from_ms) {
            skipped.skip(now);
            while walked.due(now).is_some() {}
            assert_eq!(skipped.next, walked.next);
        }
    }
}
