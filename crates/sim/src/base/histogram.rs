//! Distributions of times inside the run's window, as counters.json holds them.
//!
//! The bins are HdrHistogram's: at 3 significant digits 2048 of 1 ns, then 1024 for each doubling. The library holds
//! all of them, 240 KB for one flow; here those that hold something exist, in pages of 128, and all percentiles are
//! read off in one pass. The last samples are a list of their bins. So a sample mostly touches the end of that list, and
//! not a page that with thousands of flows is in no cache.
//!
//! Validation: the same values from the library for random samples (tests below).

use serde::Serialize;

use crate::base::units::Time;

/// Longer times count as this, in nanoseconds.
const LONGEST: u64 = 60_000_000_000;
/// The first value that has no bin: the bins go a little beyond [`LONGEST`].
const BEYOND: u64 = 1 << 36;
/// Bins of a page, as a power of two.
const PAGE_BITS: u32 = 7;
const PAGE: usize = 1 << PAGE_BITS;
/// How many samples wait to be counted at most.
const RECENT: usize = 256;

/// Counts of times in nanoseconds, in bins that are as wide as a number of significant digits allows.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// Half of the bins that have a width of 1, as a power of two: so many more follow for each doubling of the value.
    half_bits: u32,
    /// A bin counts to four thousand million, more than an hour of full packets at 10 Gbit/s, and no further.
    pages: Vec<Option<Box<[u32; PAGE]>>>,
    /// The bins of the last samples, which are not counted in the pages yet.
    recent: Vec<u16>,
    zeros: u64,
}

/// The samples of one bin.
#[derive(Clone, Copy, Debug)]
struct Bin {
    /// The least value of the bin, in nanoseconds.
    begin: u64,
    /// The greatest.
    end: u64,
    samples: u64,
}

impl Histogram {
    /// For so many significant digits, 2 or 3.
    pub fn new(digits: u32) -> Self {
        // 2 * 10^digits values of width 1, rounded up to a power of two
        let half_bits = (2 * 10_u64.pow(digits)).next_power_of_two().trailing_zeros() - 1;
        Histogram { half_bits, pages: Vec::new(), recent: Vec::new(), zeros: 0 }
    }

    /// Adds a sample of `value` nanoseconds.
    #[inline]
    pub fn record(&mut self, value: u64) {
        if value == 0 {
            return self.record_zeros(1);
        }
        if self.recent.len() == self.recent.capacity() {
            self.make_room();
        }
        let value = if value < BEYOND { value } else { LONGEST };
        // At 3 digits, the last bin before `BEYOND` has the number 27,647.
        self.recent.push(self.number(value) as u16);
    }

    /// Adds `n` samples of zero.
    pub fn record_zeros(&mut self, n: u64) {
        self.zeros += n;
    }

    /// Makes room for another sample: counts the last ones in their pages, if there are so many that this pays.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self) {
        if self.recent.len() < RECENT {
            return self.recent.reserve_exact(self.recent.len().max(16));
        }
        for number in &self.recent {
            let (page, at) = (usize::from(*number) >> PAGE_BITS, usize::from(*number) % PAGE);
            if self.pages.len() <= page {
                self.pages.resize(page + 1, None);
            }
            let count = &mut self.pages[page].get_or_insert_with(|| Box::new([0; PAGE]))[at];
            *count = count.saturating_add(1);
        }
        self.recent.clear();
    }

    /// The bins that hold something, ascending.
    fn bins(&self) -> Vec<Bin> {
        let pages = self.pages.iter().enumerate().filter_map(|(i, page)| Some((i, page.as_ref()?)));
        let counted = pages
            .flat_map(|(i, page)| page.iter().enumerate().map(move |(at, n)| (i * PAGE + at, u64::from(*n))));
        let recent = self.recent.iter().map(|number| (usize::from(*number), 1));
        let all = std::iter::once((0, self.zeros)).chain(counted).chain(recent);
        let mut found: Vec<(usize, u64)> = all.filter(|(_, n)| *n > 0).collect();
        found.sort_unstable();
        let same = found.chunk_by(|(number, _), (next, _)| number == next);
        same.map(|same| self.filled(same[0].0, same.iter().map(|(_, n)| n).sum())).collect()
    }

    /// The bin of this number with so many samples in it.
    fn filled(&self, number: usize, samples: u64) -> Bin {
        let halvings = (number >> self.half_bits).saturating_sub(1);
        let begin = ((number - (halvings << self.half_bits)) as u64) << halvings;
        Bin { begin, end: begin + (1 << halvings) - 1, samples }
    }

    /// The number of the bin that `value` belongs to.
    fn number(&self, value: u64) -> usize {
        let bits = u64::BITS - value.leading_zeros();
        // How often the value has to be halved to lie among those of width 1.
        let halvings = bits.saturating_sub(self.half_bits + 1);
        (u64::from(halvings) << self.half_bits) as usize + (value >> halvings) as usize
    }
}

/// The mean of the middles of the samples' bins, in nanoseconds.
fn mean(bins: &[Bin]) -> f64 {
    let all: u64 = bins.iter().map(|bin| bin.samples).sum();
    let middle = |bin: &Bin| bin.begin + ((bin.end - bin.begin + 1) >> 1);
    bins.iter().fold(0.0, |mean, bin| mean + middle(bin) as f64 * bin.samples as f64 / all as f64)
}

/// The ends of the bins in which so large parts of the samples are reached; `quantiles` ascend, from above 0 to 1.
fn values_at<const N: usize>(bins: &[Bin], quantiles: [f64; N]) -> [u64; N] {
    let all: u64 = bins.iter().map(|bin| bin.samples).sum();
    let mut bins = bins.iter();
    let (mut end, mut seen) = (0, 0);
    quantiles.map(|quantile| {
        let enough = ((quantile * all as f64).ceil() as u64).max(1);
        while seen < enough
            && let Some(bin) = bins.next()
        {
            (end, seen) = (bin.end, seen + bin.samples);
        }
        end
    })
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
    pub fn summary(&self) -> Summary {
        summary(self.0.as_ref())
    }
}

/// What counters.json tells of a distribution, in seconds; nothing but `n` if there are no samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Summary {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_s: Option<f64>,
    pub n: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p5_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p90_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p95_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p999_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_s: Option<f64>,
}

/// Number, mean, minimum, maximum and percentiles of a histogram in nanoseconds.
pub fn summary(histogram: Option<&Histogram>) -> Summary {
    let bins = histogram.map(Histogram::bins).unwrap_or_default();
    let [Some(first), Some(last)] = [bins.first(), bins.last()] else {
        return Summary::default();
    };
    let [p5, p50, p90, p95, p99, p999] =
        values_at(&bins, [0.05, 0.5, 0.9, 0.95, 0.99, 0.999]).map(|ns| Some(ns as f64 / 1e9));
    Summary {
        max_s: Some(last.end as f64 / 1e9),
        mean_s: Some(mean(&bins) / 1e9),
        min_s: Some(first.begin as f64 / 1e9),
        n: bins.iter().map(|bin| bin.samples).sum(),
        p50_s: p50,
        p5_s: p5,
        p90_s: p90,
        p95_s: p95,
        p999_s: p999,
        p99_s: p99,
    }
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
        let told = t.summary();
        assert_eq!(told.n, 100);
        // three significant digits
        assert!((told.mean_s.unwrap() - 0.0505).abs() < 0.0505e-3);
        assert!((told.p99_s.unwrap() - 0.099).abs() < 0.099e-3);
        assert_eq!(serde_json::to_string(&Times::default().summary()).unwrap(), r#"{"n":0}"#);
    }

    #[test]
    fn a_flow_with_round_trips_of_20_to_40_ms_takes_less_than_10_kilobytes() {
        let mut h = Histogram::new(3);
        (20_000..40_000).for_each(|us| h.record(us * 1000));
        // from 2^24 to 2^25 ns 1024 bins, of which 20 ms lie above a fifth, and above 2^25 ns those up to 40 ms
        let pages = h.pages.iter().flatten().count();
        assert!(pages * PAGE * 4 < 10_000 && h.pages.len() < 256, "{pages} of {}", h.pages.len());
    }

    #[test]
    fn a_flow_of_few_samples_opens_no_page() {
        let mut h = Histogram::new(3);
        (0..RECENT as u64).for_each(|i| h.record(20_000_000 + i * 500_000));
        assert!(h.pages.is_empty() && h.recent.capacity() * 2 <= 512, "{}", h.recent.capacity());
        h.record(20_000_000);
        assert_eq!((h.recent.len(), h.bins().len()), (1, RECENT));
    }

    proptest! {
        #[test]
        fn it_tells_what_the_library_tells(
            digits in 2_u8..=3,
            zeros in 0_u64..3,
            samples in prop::collection::vec((0_u32..40, any::<u64>()), 1..800),
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
            let bins = ours.bins();
            let (first, last) = (bins[0], bins[bins.len() - 1]);
            prop_assert_eq!(bins.iter().map(|bin| bin.samples).sum::<u64>(), theirs.len());
            prop_assert_eq!((first.begin, last.end), (theirs.min(), theirs.max()));
            prop_assert_eq!(mean(&bins).to_bits(), theirs.mean().to_bits());
            let quantiles = [0.05, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0];
            prop_assert_eq!(values_at(&bins, quantiles), quantiles.map(|q| theirs.value_at_quantile(q)));
        }
    }
}
