//! Distributions of times inside the run's window, as counters.json holds them.

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use crate::base::units::Time;

/// Longer times count as this, in nanoseconds.
const LONGEST: u64 = 60_000_000_000;

/// Times from 1 ns to 60 s with three significant digits.
#[derive(Clone, Default)]
pub struct Times(Option<Histogram<u64>>);

impl Times {
    /// Adds a sample.
    pub fn record(&mut self, time: Time) {
        let new = || Histogram::new_with_bounds(1, LONGEST, 3).expect("constant bounds are valid");
        self.0.get_or_insert_with(new).saturating_record(time.as_ns());
    }

    /// See [`summary`].
    pub fn to_json(&self) -> Value {
        summary(self.0.as_ref())
    }
}

/// n, mean, minimum, maximum and percentiles in seconds of a histogram in nanoseconds; only `n` if
/// there are no samples.
pub fn summary(histogram: Option<&Histogram<u64>>) -> Value {
    let Some(h) = histogram.filter(|h| !h.is_empty()) else {
        return json!({"n": 0});
    };
    let at = |quantile: f64| h.value_at_quantile(quantile) as f64 / 1e9;
    json!({
        "n": h.len(),
        "mean_s": h.mean() / 1e9,
        "min_s": h.min() as f64 / 1e9,
        "max_s": h.max() as f64 / 1e9,
        "p5_s": at(0.05),
        "p50_s": at(0.5),
        "p90_s": at(0.9),
        "p95_s": at(0.95),
        "p99_s": at(0.99),
        "p999_s": at(0.999),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
