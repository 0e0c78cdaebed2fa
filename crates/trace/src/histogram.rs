//! Many values in little memory: buckets whose width is 1/64 of what they hold, and only as many as there are values
//! to span.

use crate::report::{Distribution, Values};

/// log2 of the buckets per octave.
const BITS: u32 = 6;

/// Counts values and says how they are spread. A percentile is the middle of its bucket: within 0.8 % of the value,
/// and exact below 128. The rest is exact.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    n: u64,
    sum: u128,
    min: u64,
    max: u64,
    /// Mean and sum of the squared distances from it, by Welford's method.
    mean: f64,
    squares: f64,
    /// Bucket of `counts[0]`.
    first: usize,
    counts: Vec<u32>,
}

impl Histogram {
    /// Counts one value, such as a number of nanoseconds.
    pub fn add(&mut self, value: u64) {
        let bucket = bucket(value);
        if self.n == 0 {
            (self.min, self.max, self.first) = (value, value, bucket);
        }
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.n += 1;
        self.sum += u128::from(value);
        let distance = value as f64 - self.mean;
        self.mean += distance / self.n as f64;
        self.squares += distance * (value as f64 - self.mean);
        if bucket < self.first {
            let before = self.first - bucket;
            self.counts.splice(0..0, std::iter::repeat_n(0, before));
            self.first = bucket;
        }
        let at = bucket - self.first;
        if at >= self.counts.len() {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] = self.counts[at].saturating_add(1);
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
        let [p5, p50, p90, p95, p99, p999] =
            [0.05, 0.5, 0.9, 0.95, 0.99, 0.999].map(|share| self.percentile(share) as f64 * unit);
        Distribution {
            n: self.n,
            values: Some(Values {
                mean,
                min: self.min as f64 * unit,
                p5,
                p50,
                p90,
                p95,
                p99,
                p999,
                max: self.max as f64 * unit,
                stddev: variance.map(f64::sqrt),
                burstiness: variance.filter(|_| mean > 0.0).map(|variance| variance / mean),
            }),
        }
    }

    /// The least value that is not below `share` of them all.
    fn percentile(&self, share: f64) -> u64 {
        let rank = ((share * self.n as f64).ceil() as u64).clamp(1, self.n);
        let mut seen = 0;
        for (at, &count) in self.counts.iter().enumerate() {
            seen += u64::from(count);
            if seen >= rank {
                return middle(self.first + at).clamp(self.min, self.max);
            }
        }
        self.max
    }
}

/// The bucket that holds `value`: one per value below 128, then 64 per octave.
fn bucket(value: u64) -> usize {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(BITS + 1);
    (shift << BITS) as usize + (value >> shift) as usize
}

/// The value in the middle of a bucket.
fn middle(bucket: usize) -> u64 {
    let shift = (bucket >> BITS).saturating_sub(1);
    ((bucket - (shift << BITS)) as u64) << shift | (1 << shift) >> 1
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
    }

    /// 1 to 1000 ms: mean 500.5, the ranks 50, 500, 990; variance of 1..n is n(n+1)/12 with n - 1 below.
    #[test]
    fn a_distribution_says_where_values_lie() {
        let mut histogram = Histogram::default();
        for ms in (1..=1000_u64).rev() {
            histogram.add(ms * 1_000_000);
        }
        let found = histogram.distribution(1e-9);
        let values = found.values.expect("there are values");
        assert_eq!(found.n, 1000);
        assert!((values.mean - 0.5005).abs() < 1e-12);
        assert!((values.min - 0.001).abs() < 1e-12 && (values.max - 1.0).abs() < 1e-12);
        for (found, wanted) in
            [(values.p5, 0.05), (values.p50, 0.5), (values.p99, 0.99), (values.p999, 0.999)]
        {
            assert!((found / wanted - 1.0).abs() < 0.01, "{found} is not {wanted}");
        }
        let variance = 1000.0 * 1001.0 / 12.0 * 1e-6;
        assert!((values.stddev.expect("several").powi(2) / variance - 1.0).abs() < 1e-9);
        assert!((values.burstiness.expect("several") / (variance / 0.5005) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn few_values_are_exact_and_none_have_no_mean() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.distribution(1.0), Distribution::default());
        histogram.add(u64::MAX);
        histogram.add(3);
        let values = histogram.distribution(1.0).values.expect("there are two");
        assert_eq!((values.min, values.p50, values.max), (3.0, 3.0, u64::MAX as f64));
        assert_eq!(histogram.len(), 2);
    }
}
