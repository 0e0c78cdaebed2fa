//! How long packets stand in a queue: sums for the sampler, a histogram for the measures.

use crate::base::histogram::Histogram;
use crate::base::units::Time;

/// The sojourn times of the packets that left since the sampler last asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Packets.
    pub count: u64,
    /// Sum of their sojourn times, in nanoseconds.
    pub sum_ns: u64,
    /// The longest, in nanoseconds.
    pub max_ns: u64,
}

impl Interval {
    /// Counts a packet that leaves after `ns`.
    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
    pub fn count(&mut self, ns: u64) {
        self.count += 1;
        self.sum_ns += ns;
        self.max_ns = self.max_ns.max(ns);
    }

    /// The mean in seconds; none if no packet left.
    pub fn mean_s(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64 / 1e9)
    }
}

/// The sojourn times of one queue.
#[derive(Clone, Debug, Default)]
pub struct Sojourn {
    interval: Interval,
    window: Option<Window>,
}

#[derive(Clone, Debug)]
struct Window {
    from: Time,
    to: Time,
    histogram: Histogram,
    /// Packets that did not wait, not yet in the histogram: most, in the many queues that never fill.
    prompt: u64,
}

impl Sojourn {
    /// Feeds a new histogram with what leaves from `from` to `to`, both included.
    pub fn record_window(&mut self, from: Time, to: Time) {
        self.window = Some(Window { from, to, histogram: Histogram::new(2), prompt: 0 });
    }

    /// Counts a packet that leaves at `now` after `sojourn`.
    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
    pub fn record(&mut self, sojourn: Time, now: Time) {
        let ns = sojourn.as_ns();
        self.interval.count(ns);
        if let Some(window) = &mut self.window
            && (window.from..=window.to).contains(&now)
        {
            if ns == 0 {
                window.prompt += 1;
            } else {
                window.histogram.record(ns);
            }
        }
    }

    /// What was counted since the last call; begins a new interval.
    pub fn take_interval(&mut self) -> Interval {
        std::mem::take(&mut self.interval)
    }

    /// Nanoseconds, two significant digits; none before [`Sojourn::record_window`].
    pub fn histogram(&self) -> Option<Histogram> {
        self.window.as_ref().map(|window| {
            let mut histogram = window.histogram.clone();
            histogram.record_zeros(window.prompt);
            histogram
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::histogram::summary;

    #[test]
    fn an_interval_ends_when_it_is_taken() {
        let mut sojourn = Sojourn::default();
        sojourn.record(Time::from_ms(2), Time::ZERO);
        sojourn.record(Time::from_ms(4), Time::ZERO);
        let interval = sojourn.take_interval();
        assert_eq!((interval.count, interval.max_ns), (2, 4_000_000));
        assert_eq!(interval.mean_s(), Some(0.003));
        assert_eq!(sojourn.take_interval().mean_s(), None);
    }

    #[test]
    fn the_histogram_takes_the_window_with_both_ends() {
        let mut sojourn = Sojourn::default();
        assert!(sojourn.histogram().is_none());
        sojourn.record_window(Time::from_ms(10), Time::from_ms(20));
        for ms in [9, 10, 15, 20, 21] {
            sojourn.record(Time::from_ms(ms), Time::from_ms(ms));
        }
        let told = summary(sojourn.histogram().as_ref());
        assert_eq!(told.n, 3);
        // two significant digits: within 1 % of 20 ms
        assert!((told.max_s.unwrap() - 0.02).abs() < 0.0002);
        sojourn.record(Time::from_secs_f64(100.0), Time::from_ms(15));
        let told = summary(sojourn.histogram().as_ref());
        assert!((told.max_s.unwrap() - 60.0).abs() < 0.6);
    }
}
