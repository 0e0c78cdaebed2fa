//! Series: tidy samples of flows, probes and queues (docs/results-folder.md).

use crate::base::units::Time;

/// What is sampled of a flow, in the order of its columns.
pub const FLOW_METRICS: [&str; 12] = [
    "goodput",
    "received",
    "delivery_rate",
    "srtt",
    "cwnd",
    "ssthresh",
    "pacing_rate",
    "in_flight",
    "delivered",
    "delivered_ce",
    "retrans",
    "lost",
];
/// What is sampled of a probe.
pub const PROBE_METRICS: [&str; 2] = ["rtt", "lost"];
/// What is sampled of a queue.
pub const QUEUE_METRICS: [&str; 7] = ["qlen", "backlog", "sojourn", "sojourn_max", "marks", "drops", "sent"];

/// A growing table of samples.
#[derive(Default)]
pub struct Recorder {
    names: Vec<(String, String, String)>,
    rows: Vec<(Time, u32, f64)>,
}

/// The finished table, sorted by time; `series[i]` is an index into `names`.
#[derive(Debug, Default, PartialEq)]
pub struct Series {
    /// (kind, name, metric)
    pub names: Vec<(String, String, String)>,
    /// Seconds.
    pub time: Vec<f64>,
    /// Which series.
    pub series: Vec<u32>,
    /// In the metric's unit.
    pub value: Vec<f64>,
}

impl Recorder {
    /// Registers all metrics of `name`; the result is the first one's number.
    pub fn register(&mut self, kind: &str, name: &str, metrics: &[&str]) -> u32 {
        let first = self.names.len() as u32;
        self.names.extend(metrics.iter().map(|m| (kind.to_owned(), name.to_owned(), (*m).to_owned())));
        first
    }

    /// Adds a sample of series number `series`.
    pub fn push(&mut self, time: Time, series: u32, value: f64) {
        self.rows.push((time, series, value));
    }

    /// The table in order of time, then of recording.
    pub fn finish(mut self) -> Series {
        self.rows.sort_by_key(|row| row.0);
        Series {
            names: self.names,
            time: self.rows.iter().map(|r| r.0.as_secs_f64()).collect(),
            series: self.rows.iter().map(|r| r.1).collect(),
            value: self.rows.iter().map(|r| r.2).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_out_in_order_of_time() {
        let mut r = Recorder::default();
        let rtt = r.register("probe", "ping", &PROBE_METRICS);
        r.push(Time::from_ms(20), rtt, 2.0);
        r.push(Time::from_ms(10), rtt + 1, 1.0);
        let s = r.finish();
        assert_eq!((s.time, s.series, s.value), (vec![0.01, 0.02], vec![1, 0], vec![1.0, 2.0]));
        assert_eq!(s.names[1], ("probe".into(), "ping".into(), "lost".into()));
    }
}
