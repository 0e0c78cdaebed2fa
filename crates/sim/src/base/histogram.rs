//! Distributions of times inside the run's window, as counters.json holds them.
//!
//! The bins are HdrHistogram's: at 3 significant digits 2048 of 1 ns, then 1024 for each doubling. The library holds
//! all of them, 240 KB for one flow; here those that hold something exist, in pages of 128, and all percentiles are
//! read off in one pass.
//!
//! Validation: the same values from the library for random samples (tests below).

use serde_json::{Value, json};

use crate::base::units::Time;

/// Longer times count as this, in nanoseconds.
const LONGEST: u64 = 60_000_000_000;
/// The first value that has no bin: the bins go a little beyond [`LONGEST`].
const BEYOND: u64 = 1 << 36;
/// Bins of a page, as a power of two.
const PAGE_BITS: u32 = 7;
const PAGE: usize = 1 << PAGE_BITS;

/// Counts of times in nanoseconds, in bins that are as wide as a number of significant digits allows.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// Half of the bins that have a width of 1, as a power of two: so many more follow for each doubling of the value.
    half_bits: u32,
    /// A bin counts to four thousand million, more than an hour of full packets at 10 Gbit/s, and no further.
    pages: Vec<Option<Box<[u32; PAGE]>>>,
    zeros: u64,
    count: u64,
    least: u64,
    most: u64,
}

impl Histogram {
    /// For so many significant digits, 2 or 3.
    pub fn new(digits: u32) -> Self {
        // 2 * 10^digits values of width 1, rounded up to a power of two
        let half_bits = (2 * 10_u64.pow(digits)).next_power_of_two().trailing_zeros() - 1;
        Histogram { half_bits, pages: Vec::new(), zeros: 0, count: 0, least: u64::MAX, most: 0 }
    }

    /// Adds a sample of `value` nanoseconds.
    #[inline]
    pub fn record(&mut self, value: u64) {
        if value == 0 {
            return self.record_zeros(1);
        }
        let value = if value < BEYOND { value } else { LONGEST };
        let bin = self.bin(value);
        let (page, at) = (bin >> PAGE_BITS, bin % PAGE);
        let one_more = |count: &mut u32| *count = count.saturating_add(1);
        if let Some(Some(counts)) = self.pages.get_mut(page) {
            one_more(&mut counts[at]);
        } else {
            one_more(&mut self.open(page)[at]);
        }
        self.count += 1;
        self.most = self.most.max(value);
        self.least = self.least.min(value);
    }

    /// Adds `n` samples of zero.
    pub fn record_zeros(&mut self, n: u64) {
        self.zeros += n;
        self.count += n;
    }

    /// How many samples there are.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The least sample in nanoseconds, as far as bins tell: the beginning of its bin.
    pub fn min(&self) -> u64 {
        if self.zeros > 0 || self.count == 0 { 0 } else { self.begin(self.bin(self.least)) }
    }

    /// The greatest sample in nanoseconds, as far as bins tell: the end of its bin; 0 if all are zero.
    pub fn max(&self) -> u64 {
        if self.most == 0 { 0 } else { self.end(self.bin(self.most)) }
    }

    /// The mean of the middles of the samples' bins, in nanoseconds.
    pub fn mean(&self) -> f64 {
        let middle = |bin| self.begin(bin) + (self.width(bin) >> 1);
        self.bins().fold(0.0, |mean, (bin, n)| mean + middle(bin) as f64 * n as f64 / self.count as f64)
    }

    /// The ends of the bins in which so large parts of the samples are reached; `quantiles` ascend, from above 0 to 1.
    pub fn values_at<const N: usize>(&self, quantiles: [f64; N]) -> [u64; N] {
        let mut bins = self.bins();
        let (mut end, mut seen) = (0, 0);
        quantiles.map(|quantile| {
            let enough = ((quantile * self.count as f64).ceil() as u64).max(1);
            while seen < enough
                && let Some((bin, n)) = bins.next()
            {
                (end, seen) = (self.end(bin), seen + n);
            }
            end
        })
    }

    /// The bins that hold something, ascending, with their counts.
    fn bins(&self) -> impl Iterator<Item = (usize, u64)> {
        let pages = self.pages.iter().enumerate().filter_map(|(i, page)| Some((i, page.as_ref()?)));
        let all = pages
            .flat_map(|(i, page)| page.iter().enumerate().map(move |(at, n)| (i * PAGE + at, u64::from(*n))));
        std::iter::once((0, self.zeros)).chain(all).filter(|(_, n)| *n > 0)
    }

    /// How often a value has to be halved to lie among those of width 1.
    fn halvings(&self, value: u64) -> u32 {
        let bits = u64::BITS - value.leading_zeros();
        bits.saturating_sub(self.half_bits + 1)
    }

    fn bin(&self, value: u64) -> usize {
        let halvings = self.halvings(value);
        (u64::from(halvings) << self.half_bits) as usize + (value >> halvings) as usize
    }

    /// The width of a bin, in nanoseconds.
    fn width(&self, bin: usize) -> u64 {
        1 << (bin >> self.half_bits).saturating_sub(1)
    }

    fn begin(&self, bin: usize) -> u64 {
        let halvings = (bin >> self.half_bits).saturating_sub(1);
        ((bin - (halvings << self.half_bits)) as u64) << halvings
    }

    fn end(&self, bin: usize) -> u64 {
        self.begin(bin) + self.width(bin) - 1
    }

    #[cold]
    fn open(&mut self, page: usize) -> &mut [u32; PAGE] {
        if self.pages.len() <= page {
            self.pages.resize(page + 1, None);
        }
        self.pages[page].get_or_insert_with(|| Box::new([0; PAGE]))
    }
}

/// Times from 1 ns to 60 s with three significant digits.
#[derive(Clone, Default)]
pub struct Times(Option<Histogram>);

impl Times {
    /// Adds a sample.
    pub fn record(&mut self, time: Time) {
        self.0.get_or_insert_with(|| Histogram::new(3)).record(time.as_ns());
    }

    /// See [`summary`].
    pub fn to_json(&self) -> Value {
        summary(self.0.as_ref())
    }
}

/// n, mean, minimum, maximum and percentiles in seconds of a histogram in nanoseconds; only `n` if
/// there are no samples.
pub fn summary(histogram: Option<&Histogram>) -> Value {
    let Some(h) = histogram.filter(|h| !h.is_empty()) else {
        return json!({"n": 0});
    };
    let [p5, p50, p90, p95, p99, p999] =
        h.values_at([0.05, 0.5, 0.9, 0.95, 0.99, 0.999]).map(|ns| ns as f64 / 1e9);
    json!({
        "n": h.len(),
        "mean_s": h.mean() / 1e9,
        "min_s": h.min() as f64 / 1e9,
        "max_s": h.max() as f64 / 1e9,
        "p5_s": p5,
        "p50_s": p50,
        "p90_s": p90,
        "p95_s": p95,
        "p99_s": p99,
        "p999_s": p999,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn percentiles_of_one_to_hundred_milliseconds() {
        let mut t = Times::default();
        for ms in 1..=100 {
            t.record(Time::from_ms(ms));
        }
        let j = t.to_json();
        assert_eq!(j["n"], 100);
        // three significant digits
        assert!((j["mean_s"].as_f64().unwrap() - 0.0505).abs() < 0.0505e-3);
        assert!((j["p99_s"].as_f64().unwrap() - 0.099).abs() < 0.099e-3);
        assert_eq!(Times::default().to_json(), json!({"n": 0}));
    }

    #[test]
    fn a_flow_with_round_trips_of_20_to_40_ms_takes_less_than_10_kilobytes() {
        let mut h = Histogram::new(3);
        (20_000..40_000).for_each(|us| h.record(us * 1000));
        // from 2^24 to 2^25 ns 1024 bins, of which 20 ms lie above a fifth, and above 2^25 ns those up to 40 ms
        let pages = h.pages.iter().flatten().count();
        assert!(pages * PAGE * 4 < 10_000 && h.pages.len() < 256, "{pages} of {}", h.pages.len());
    }

    proptest! {
        #[test]
        fn it_tells_what_the_library_tells(
            digits in 2_u8..=3,
            zeros in 0_u64..3,
            samples in prop::collection::vec((0_u32..40, any::<u64>()), 1..200),
        ) {
            let mut ours = Histogram::new(digits.into());
            let mut theirs = hdrhistogram::Histogram::<u64>::new_with_bounds(1, LONGEST, digits).unwrap();
            for (bits, value) in samples {
                let value = value >> (63 - bits);
                ours.record(value);
                theirs.saturating_record(value);
            }
            ours.record_zeros(zeros);
            theirs.saturating_record_n(0, zeros);
            prop_assert_eq!((ours.len(), ours.min(), ours.max()), (theirs.len(), theirs.min(), theirs.max()));
            prop_assert_eq!(ours.mean().to_bits(), theirs.mean().to_bits());
            let quantiles = [0.05, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0];
            prop_assert_eq!(ours.values_at(quantiles), quantiles.map(|q| theirs.value_at_quantile(q)));
        }
    }
}
