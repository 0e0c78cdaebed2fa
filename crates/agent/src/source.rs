//! When an application writes: the absolute schedule of `rate` and `periodic` sources.

use crate::clock::{self, SECOND};
use crate::plan::Source;

/// Writes of `size` bytes at computed instants, until `stop`.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// First write, ns of CLOCK_MONOTONIC.
    start: i64,
    /// No write at or after this, ns of CLOCK_MONOTONIC.
    stop: i64,
    /// Bytes per write.
    pub size: usize,
    step: Step,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Rate { bits: u128, rate_bps: u128 },
    Periodic { count: u64, every: u64 },
}

impl Schedule {
    /// The schedule of a source; none for those that always have data.
    pub fn new(source: &Source, start: i64, stop: i64) -> Option<Schedule> {
        let (size, step) = match *source {
            Source::Bulk | Source::Bytes { .. } | Source::Short { .. } | Source::Video { .. } => return None,
            Source::Rate { rate_bps, size } => {
                (size, Step::Rate { bits: u128::from(size) * 8, rate_bps: u128::from(rate_bps) })
            }
            Source::Periodic { size, count, every_s } => {
                (size, Step::Periodic { count: u64::from(count), every: clock::ns(every_s).max(1) as u64 })
            }
        };
        Some(Schedule { start, stop, size: size as usize, step })
    }

    /// When write `n` (from 0) is due, ns of CLOCK_MONOTONIC; none if the source has stopped by then.
    pub fn due(&self, n: u64) -> Option<i64> {
        let after = match self.step {
            Step::Rate { bits, rate_bps } => (u128::from(n) * bits * SECOND as u128 / rate_bps) as i64,
            Step::Periodic { count, every } => (n / count * every) as i64,
        };
        let due = self.start + after;
        (due < self.stop).then_some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1000 bytes at 3 Mbit/s: one write each 8000 / 3e6 s = 2 666 666.67 ns, and no drift: the 3000th is due after exactly 8 s.
    #[test]
    fn a_rate_does_not_drift() {
        let schedule =
            Schedule::new(&Source::Rate { rate_bps: 3_000_000, size: 1000 }, 100, 100 + 9 * SECOND)
                .expect("scheduled");
        assert_eq!(schedule.due(0), Some(100));
        assert_eq!(schedule.due(1), Some(100 + 2_666_666));
        assert_eq!(schedule.due(3000), Some(100 + 8 * SECOND));
        assert_eq!(schedule.due(3375), None, "3375 * 8000 bits are 9 s: the stop");
        assert!(schedule.due(3374).is_some());
    }

    /// Three writes each 20 ms until 50 ms: at 0, 20, 40 ms, nine in all.
    #[test]
    fn periodic_writes_come_in_groups() {
        let source = Source::Periodic { size: 10, count: 3, every_s: 0.02 };
        let schedule = Schedule::new(&source, 0, 50_000_000).expect("scheduled");
        let due: Vec<i64> = (0..).map_while(|n| schedule.due(n)).collect();
        assert_eq!(due, [0, 0, 0, 20_000_000, 20_000_000, 20_000_000, 40_000_000, 40_000_000, 40_000_000]);
    }

    #[test]
    fn bulk_has_no_schedule() {
        assert!(Schedule::new(&Source::Bulk, 0, 1).is_none());
    }
}
