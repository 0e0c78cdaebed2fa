//! What a UDP flow carried over time.

use serde::Serialize;

/// Intervals that are kept for one flow; beyond it two and two become one.
const MOST: usize = 4096;

/// A UDP flow over time. All lists are equally long, and the counts are those of each interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct UdpSeries {
    /// Length of the intervals. It is twice, four times … what was asked for if the flow lasts for more than 4096.
    pub interval_s: f64,
    /// End of each interval.
    pub time_s: Vec<f64>,
    /// IP packets from client to server.
    pub up_throughput_bps: Vec<f64>,
    /// IP packets from server to client.
    pub down_throughput_bps: Vec<f64>,
    /// Packets with CE from client to server.
    pub up_ce: Vec<u64>,
    /// Packets with CE from server to client.
    pub down_ce: Vec<u64>,
}

/// Bytes and CE marks of both directions, first up and then down, in each interval.
#[derive(Clone, Debug, Default)]
pub(super) struct Intervals {
    length_ns: u64,
    counted: Vec<[(u64, u64); 2]>,
}

impl Intervals {
    /// Counts a packet that passed `after_ns` after the flow's first one.
    pub fn add(&mut self, after_ns: u64, interval_ns: u64, up: bool, bytes: u32, ce: bool) {
        if self.length_ns == 0 {
            self.length_ns = interval_ns;
        }
        while after_ns / self.length_ns >= MOST as u64 {
            self.length_ns = self.length_ns.saturating_mul(2);
            self.counted = self
                .counted
                .chunks(2)
                .map(|two| {
                    let mut one = two[0];
                    for (sum, more) in one.iter_mut().zip(two.get(1).copied().unwrap_or_default()) {
                        *sum = (sum.0 + more.0, sum.1 + more.1);
                    }
                    one
                })
                .collect();
        }
        let at = (after_ns / self.length_ns) as usize;
        if at >= self.counted.len() {
            self.counted.resize(at + 1, Default::default());
        }
        let counted = &mut self.counted[at][usize::from(!up)];
        *counted = (counted.0 + u64::from(bytes), counted.1 + u64::from(ce));
    }

    /// What was counted; `first_s` is the time of the flow's first packet.
    pub fn finish(self, first_s: f64) -> UdpSeries {
        let interval_s = self.length_ns as f64 * 1e-9;
        let rates =
            |way: usize| self.counted.iter().map(|both| both[way].0 as f64 * 8.0 / interval_s).collect();
        let marks = |way: usize| self.counted.iter().map(|both| both[way].1).collect();
        UdpSeries {
            interval_s,
            time_s: (1..=self.counted.len()).map(|at| first_s + at as f64 * interval_s).collect(),
            up_throughput_bps: rates(0),
            down_throughput_bps: rates(1),
            up_ce: marks(0),
            down_ce: marks(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{nanoseconds, since};
    use super::*;

    /// 8192 packets of 125 bytes, one per 10 ms: intervals of 10 ms become 20 ms, two packets and 100 kbit/s each.
    #[test]
    fn a_long_flow_has_longer_intervals_and_the_same_sums() {
        let mut intervals = Intervals::default();
        for at in 0..8192_u64 {
            intervals.add(at * 10_000_000, nanoseconds(0.01), at % 2 == 0, 125, at % 4 == 0);
        }
        let series = intervals.finish(1.0);
        assert!((series.interval_s - 0.02).abs() < 1e-12);
        assert_eq!(series.time_s.len(), 4096);
        assert!((series.time_s[0] - 1.02).abs() < 1e-12);
        assert!(series.up_throughput_bps.iter().all(|rate| (rate - 50_000.0).abs() < 1e-6));
        assert_eq!((series.up_ce.iter().sum::<u64>(), series.down_ce.iter().sum::<u64>()), (2048, 0));
        assert_eq!(since(i64::MIN, i64::MAX), 0);
    }
}
