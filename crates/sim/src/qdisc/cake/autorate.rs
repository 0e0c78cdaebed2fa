//! `autorate-ingress`: the bandwidth follows the rate at which packets arrive in trains.
//!
//! Source: Linux 7.3 `net/sched/sch_cake.c` (`cake_enqueue`, incoming bandwidth capacity estimate).

use super::tin::moving_average;
use crate::base::units::Time;

const NS_PER_S: u64 = 1_000_000_000;

/// The estimate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Autorate {
    last_packet: Time,
    window_begin: Time,
    /// Nanoseconds.
    interval: u64,
    window_bytes: u64,
    /// Bytes per second: the capacity estimate.
    pub peak: u64,
    last_change: Time,
}

impl Autorate {
    pub(super) fn new(bytes_per_s: u64) -> Self {
        Autorate { peak: bytes_per_s, ..Autorate::default() }
    }

    /// A packet arrives while nothing is to be estimated.
    pub(super) fn pass(&mut self, now: Time) {
        self.window_bytes = 0;
        self.last_packet = now;
    }

    /// `bytes` arrive; gives a new bandwidth in bytes per second, at most every 250 ms.
    pub(super) fn arrived(&mut self, now: Time, bytes: u64) -> Option<u64> {
        self.window_bytes += bytes;
        let interval = (now - self.last_packet).as_ns().min(NS_PER_S);
        self.interval = moving_average(self.interval, interval, if interval > self.interval { 2 } else { 8 });
        self.last_packet = now;
        // A gap ends a train.
        if interval <= self.interval {
            return None;
        }
        let window = (now - self.window_begin).as_ns().max(1);
        let rate = (u128::from(self.window_bytes) * u128::from(NS_PER_S) / u128::from(window)) as u64;
        self.peak = moving_average(self.peak, rate, if rate > self.peak { 2 } else { 8 });
        self.window_bytes = 0;
        self.window_begin = now;
        if now <= self.last_change + Time::from_ms(250) {
            return None;
        }
        self.last_change = now;
        Some(self.peak * 15 / 16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trains_at_10_mbit_give_15_sixteenths_of_it() {
        // ten packets of 1250 B at 1 ms, then a gap of 2 ms: 12500 B in 11 ms = 1.136 MB/s
        let mut autorate = Autorate::new(0);
        let mut now = Time::from_ms(1000);
        let mut changes = Vec::new();
        for i in 0..5000 {
            now += Time::from_ms(if i % 10 == 0 { 2 } else { 1 });
            changes.extend(autorate.arrived(now, 1250));
        }
        let last = *changes.last().unwrap() as f64;
        assert!((last / (12_500.0 / 0.011 * 15.0 / 16.0) - 1.0).abs() < 0.02, "{last}");
        // The first gap, of a second, is forgotten at 1/256 per packet: after some 1300 packets, 1.4 s. The
        // other 4.1 s have a change every 23 trains, 253 ms.
        assert!((15..=18).contains(&changes.len()), "{}", changes.len());
    }
}
