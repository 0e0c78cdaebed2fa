//! Many values in little memory: buckets whose width is 1/64 of what they hold, and only those that hold something.

use crate::report::{Distribution, Values};

/// log2 of the buckets per octave.
const BITS: u32 = 6;
/// The shares of the values at which percentiles are told: 5, 50, 90, 95, 99 and 99.9 %.
const SHARES: [f64; 6] = [0.05, 0.5, 0.9, 0.95, 0.99, 0.999];

/// Counts values and says how they are spread. A percentile is the middle of its bucket: within 0.8 % of the value,
/// and exact below 128. The rest is exact.
///
/// It takes eight bytes for each bucket that holds a value, of which there are 3776.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    n: u64,
    sum: u128,
    min: u64,
    max: u64,
    /// Mean and sum of the squared distances from it, by Welford's method.
    mean: f64,
    squares: f64,
    /// Bucket and number of values, in order of buckets.
    counts: Vec<(u16, u32)>,
    /// Where in `counts` the last value was.
    last: usize,
}

impl Histogram {
    /// Counts one value, such as a number of nanoseconds.
    pub fn add(&mut self, value: u64) {
        if self.n == 0 {
            self.min = value;
        }
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.n += 1;
        self.sum += u128::from(value);
        let distance = value as f64 - self.mean;
        self.mean += distance / self.n as f64;
        self.squares += distance * (value as f64 - self.mean);

        let bucket = bucket(value);
        if self.counts.get(self.last).is_none_or(|&(found, _)| found != bucket) {
            self.last = self.counts.partition_point(|&(found, _)| found < bucket);
            if self.counts.get(self.last).is_none_or(|&(found, _)| found != bucket) {
                self.counts.insert(self.last, (bucket, 0));
            }
        }
        let count = &mut self.counts[self.last].1;
        *count = count.saturating_add(1);
    }

    /// Counts a duration in nanoseconds. Time that ran backwards gives none.
    pub fn add_ns(&mut self, ns: i64) {
        if let Ok(ns) = u64::try_from(ns) {
            self.add(ns);
        }
    }

    /// How many values there are.
    pub fn len(&self) -> u64 {
        self.n
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// The exact mean of the values, each multiplied by `unit`; None without any.
    pub fn mean(&self, unit: f64) -> Option<f64> {
        (self.n > 0).then(|| self.sum as f64 / self.n as f64 * unit)
    }

    /// How the values are spread, each multiplied by `unit`, such as 1e-9 for nanoseconds as seconds.
    pub fn distribution(&self, unit: f64) -> Distribution {
        let Some(mean) = self.mean(unit) else { return Distribution::default() };
        let variance = (self.n > 1).then(|| self.squares / (self.n - 1) as f64 * unit * unit);
        let percentiles = SHARES.map(|share| self.at_rank(rank(share, self.n)) as f64 * unit);
        told(self.n, mean, variance, self.min as f64 * unit, self.max as f64 * unit, percentiles)
    }

    /// The value of a rank, which counts from 1.
    fn at_rank(&self, rank: u64) -> u64 {
        let mut seen = 0;
        for &(bucket, count) in &self.counts {
            seen += u64::from(count);
            if seen >= rank {
                return middle(bucket).clamp(self.min, self.max);
            }
        }
        self.max
    }

    /// The sum of the squares of the values.
    fn squared(&self) -> f64 {
        self.squares + self.n as f64 * self.mean * self.mean
    }
}

/// The same for values that may be negative and lie close to each other, such as one-way delays between two clocks that
/// do not agree. A percentile is within 0.8 % of its distance from the first value.
#[derive(Clone, Debug, Default)]
pub struct Around {
    first: Option<i64>,
    below: Histogram,
    above: Histogram,
}

impl Around {
    /// Counts one value.
    pub fn add(&mut self, value: i64) {
        let first = *self.first.get_or_insert(value);
        let distance = value.abs_diff(first);
        if value < first { self.below.add(distance) } else { self.above.add(distance) }
    }

    /// How the values are spread, each multiplied by `unit`.
    pub fn distribution(&self, unit: f64) -> Distribution {
        let Some(first) = self.first else { return Distribution::default() };
        let (below, above) = (&self.below, &self.above);
        let n = below.n + above.n;
        let at = |distance: f64| (first as f64 + distance) * unit;
        let mean = (above.sum as f64 - below.sum as f64) / n as f64;
        let squares = (above.squared() + below.squared() - n as f64 * mean * mean).max(0.0);
        let variance = (n > 1).then(|| squares / (n - 1) as f64 * unit * unit);
        let percentiles = SHARES.map(|share| match rank(share, n) {
            rank if rank <= below.n => at(-(below.at_rank(below.n + 1 - rank) as f64)),
            rank => at(above.at_rank(rank - below.n) as f64),
        });
        let min = if below.is_empty() { at(above.min as f64) } else { at(-(below.max as f64)) };
        // The first value itself is among those above.
        told(n, at(mean), variance, min, at(above.max as f64), percentiles)
    }
}

fn rank(share: f64, n: u64) -> u64 {
    ((share * n as f64).ceil() as u64).clamp(1, n)
}

fn told(n: u64, mean: f64, variance: Option<f64>, min: f64, max: f64, percentiles: [f64; 6]) -> Distribution {
    let [p5, p50, p90, p95, p99, p999] = percentiles;
    let burstiness = variance.filter(|_| mean > 0.0).map(|variance| variance / mean);
    let stddev = variance.map(f64::sqrt);
    Distribution {
        n,
        values: Some(Values { mean, min, p5, p50, p90, p95, p99, p999, max, stddev, burstiness }),
    }
}

/// The bucket that holds `value`: one per value below 128, then 64 per octave.
fn bucket(value: u64) -> u16 {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(BITS + 1);
    (shift << BITS) as u16 + (value >> shift) as u16
}

/// The value in the middle of a bucket.
fn middle(bucket: u16) -> u64 {
    let shift = (u32::from(bucket) >> BITS).saturating_sub(1);
    (u64::from(bucket) - u64::from(shift << BITS)) << shift | (1 << shift) >> 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_without_gap_and_their_middles_are_near() {
        for value in (0..5000).chain([1 << 20, (1 << 40) + 12345, u64::MAX - 1, u64::MAX]) {
            let found = middle(bucket(value));
            assert!(found.abs_diff(value) as f64 <= value as f64 / 128.0 || value < 128 && found == value);
        }
        assert!((0..4999_u64).all(|value| [0, 1].contains(&(bucket(value + 1) - bucket(value)))));
        assert_eq!(bucket(u64::MAX), 3775);
    }

    /// 1 to 1000 ms: mean 500.5, the ranks 50, 500, 990; variance of 1..n is n(n+1)/12 with n - 1 below.
    #[test]
    fn a_distribution_says_where_values_lie() {
        let (mut histogram, mut around) = (Histogram::default(), Around::default());
        for ms in (1..=1000_u64).map(|at| at * 10 % 1001) {
            histogram.add(ms * 1_000_000);
            // Seven hours of difference between two clocks do not blur what lies between 1 and 1000 ms.
            around.add(ms as i64 * 1_000_000 - 25_200_000_000_000);
        }
        let variance = 1000.0 * 1001.0 / 12.0 * 1e-6;
        for (found, zero) in [(histogram.distribution(1e-9), 0.0), (around.distribution(1e-9), -25_200.0)] {
            let values = found.values.expect("there are values");
            assert_eq!(found.n, 1000);
            assert!((values.mean - zero - 0.5005).abs() < 1e-9);
            assert!((values.min - zero - 0.001).abs() < 1e-9 && (values.max - zero - 1.0).abs() < 1e-9);
            for (found, wanted) in
                [(values.p5, 0.05), (values.p50, 0.5), (values.p99, 0.99), (values.p999, 0.999)]
            {
                assert!((found - zero - wanted).abs() < 0.01 * wanted, "{found} is not {wanted} + {zero}");
            }
            assert!((values.stddev.expect("several").powi(2) / variance - 1.0).abs() < 1e-6);
            assert_eq!(values.burstiness.is_some(), zero == 0.0);
        }
    }

    #[test]
    fn few_values_are_exact_and_none_have_no_mean() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.distribution(1.0), Distribution::default());
        histogram.add(u64::MAX);
        histogram.add(3);
        let values = histogram.distribution(1.0).values.expect("there are two");
        assert_eq!((values.min, values.p50, values.max), (3.0, 3.0, u64::MAX as f64));
        assert_eq!((histogram.len(), histogram.counts.len()), (2, 2));
    }
}
