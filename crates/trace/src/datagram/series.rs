//! What a UDP flow carried over time.

use serde::Serialize;

use crate::intervals::{self, Told};

/// A UDP flow over time. All lists are equally long, and the counts are those of each interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct UdpSeries {
    /// Length of the intervals. It is twice, four times … what was asked for if the flow has too many.
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

/// Bytes and CE marks of both directions in an interval, first up and then down.
pub(super) type Slot = [(u64, u64); 2];
pub(super) type Intervals = intervals::Intervals<Slot>;

impl intervals::Slot for Slot {
    fn join(&mut self, other: &Slot) {
        for (sum, more) in self.iter_mut().zip(other) {
            *sum = (sum.0 + more.0, sum.1 + more.1);
        }
    }
}

/// As it is told; the capture began `shift_ns` after zero.
pub(super) fn finish(told: &Told<Slot>, shift_ns: i64) -> UdpSeries {
    let interval_s = told.interval_s();
    let rates = |way: usize| told.slots.iter().map(|both| both[way].0 as f64 * 8.0 / interval_s).collect();
    let marks = |way: usize| told.slots.iter().map(|both| both[way].1).collect();
    UdpSeries {
        interval_s,
        time_s: told.time_s(shift_ns),
        up_throughput_bps: rates(0),
        down_throughput_bps: rates(1),
        up_ce: marks(0),
        down_ce: marks(1),
    }
}
