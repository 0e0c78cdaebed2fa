//! Samples of the delivery rate: how many packets were delivered between the sending of one and its acknowledgement.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_output.c` (`tcp_rate_skb_sent`), `tcp_input.c` (`tcp_rate_skb_delivered`,
//! `tcp_rate_gen`); draft-cheng-iccrg-delivery-rate-estimation.
//!
//! Validation: the tests below, `tests/bbr_runs.rs` (whole runs of a control that lives by these samples).

use super::scoreboard::{Seg, SegFlags};
use crate::base::units::Time;
use crate::cc::RateSample;
use crate::cc::sock::TcpSock;

/// The state of sampling, and the newest sample that counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rate {
    /// When the packet was sent that was last known to be delivered, in microseconds: there a sample begins
    /// (`first_tx_mstamp`).
    first_tx_us: u64,
    /// Packets of the newest sample (`rate_delivered`).
    delivered: u32,
    /// Over how many microseconds they were (`rate_interval_us`).
    interval_us: u64,
}

impl Rate {
    /// Of a connection established at `now`.
    pub(super) fn new(now: Time) -> Self {
        Rate { first_tx_us: now.as_us(), ..Rate::default() }
    }

    /// The first packet after a silence leaves at `at`: the time before it is nobody's (`tcp_rate_skb_sent`).
    pub(super) fn restart(&mut self, tp: &mut TcpSock, at: Time) {
        self.first_tx_us = at.as_us();
        tp.delivered_mstamp = at;
    }

    /// Notes with a segment that leaves at `at` what was delivered by then (`tcp_rate_skb_sent`).
    #[inline]
    pub(super) fn stamp(&self, seg: &mut Seg, tp: &TcpSock, at: Time) {
        seg.sent = at;
        seg.sent_us = at.as_us();
        seg.first_tx_us = self.first_tx_us;
        seg.delivered_us = tp.delivered_mstamp.as_us();
        seg.delivered = tp.delivered;
        seg.delivered_ce = tp.delivered_ce as u32;
        seg.lost = tp.lost as u32;
        seg.in_flight = tp.packets_in_flight();
        seg.flags.clear(SegFlags::APP_LIMITED);
        if tp.app_limited > 0 {
            seg.flags.set(SegFlags::APP_LIMITED);
        }
    }

    /// The segment sent last of those that an ACK delivers so far (`tcp_rate_skb_delivered`).
    #[inline]
    pub(super) fn delivered(&mut self, seg: &Seg) {
        self.first_tx_us = seg.sent_us;
    }

    /// Fills in what an ACK that arrives at `now_us` says by the segment `seg` (`tcp_rate_gen`).
    #[inline]
    pub(super) fn take(&mut self, sample: &mut RateSample, seg: &Seg, tp: &TcpSock, now_us: u64) {
        let delivered = (tp.delivered - seg.delivered) as u32;
        // Sending and acknowledging are a pipeline: the slower of the two counts.
        let sending = seg.sent_us.saturating_sub(seg.first_tx_us);
        let interval = sending.max(now_us.saturating_sub(seg.delivered_us));
        sample.prior_delivered = seg.delivered;
        sample.delivered = delivered;
        sample.interval_ce = (tp.delivered_ce as u32).wrapping_sub(seg.delivered_ce);
        sample.interval_lost = (tp.lost as u32).wrapping_sub(seg.lost);
        sample.tx_in_flight = seg.in_flight;
        sample.is_app_limited = seg.flags.any(SegFlags::APP_LIMITED);
        // Shorter than the path's minimum: the bandwidth would be exaggerated.
        if interval < tp.min_rtt_us || interval == 0 {
            return;
        }
        sample.interval_us = interval;
        let higher = u64::from(delivered) * self.interval_us >= u64::from(self.delivered) * interval;
        if !sample.is_app_limited || higher {
            self.delivered = delivered;
            self.interval_us = interval;
        }
    }

    /// What `TCP_INFO` tells: payload bits per second, none before the first sample.
    pub(super) fn bits_per_s(&self, mss: u32) -> Option<f64> {
        let bits = f64::from(mss) * 8.0;
        (self.interval_us > 0).then(|| f64::from(self.delivered) * bits * 1e6 / self.interval_us as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection with a least RTT of 10 ms that has 10 packets delivered.
    fn sock() -> TcpSock {
        let mut tp = TcpSock::new(1000, 1000);
        tp.min_rtt_us = 10_000;
        tp.delivered = 10;
        tp
    }

    #[test]
    fn the_slower_of_sending_and_acknowledging_is_the_interval() {
        // Sent 4 ms after the sample's first packet, acknowledged 20 ms after the last delivery before it: 5 packets
        // of 8000 bits in 20 ms are 2 Mbit/s.
        let mut rate = Rate::default();
        let seg = Seg { sent_us: 4_000, delivered: 5, delivered_us: 5_000, ..Seg::default() };
        let mut sample = RateSample::default();
        rate.take(&mut sample, &seg, &sock(), 25_000);
        assert_eq!((sample.delivered, sample.interval_us), (5, 20_000));
        assert_eq!(rate.bits_per_s(1000), Some(2e6));
        // Sent over 30 ms: that is slower.
        let seg = Seg { sent_us: 30_000, ..seg };
        rate.take(&mut sample, &seg, &sock(), 25_000);
        assert_eq!(sample.interval_us, 30_000);
    }

    #[test]
    fn an_interval_below_the_least_rtt_is_no_sample() {
        let mut rate = Rate::default();
        let seg = Seg { delivered: 5, delivered_us: 5_000, ..Seg::default() };
        let mut sample = RateSample::default();
        rate.take(&mut sample, &seg, &sock(), 14_999);
        assert_eq!((sample.interval_us, rate.bits_per_s(1000)), (0, None));
    }

    #[test]
    fn a_sample_that_the_application_limits_counts_only_if_it_is_higher() {
        let mut rate = Rate::default();
        let mut sample = RateSample::default();
        let mut tp = sock();
        let mut seg = Seg { delivered: 5, ..Seg::default() };
        rate.take(&mut sample, &seg, &tp, 20_000);
        tp.mark_app_limited();
        rate.stamp(&mut seg, &tp, Time::ZERO);
        assert!(seg.flags.any(SegFlags::APP_LIMITED));
        // 4 packets in 20 ms are less than 5.
        (seg.delivered, seg.delivered_us) = (6, 0);
        rate.take(&mut sample, &seg, &tp, 20_000);
        assert_eq!(rate.bits_per_s(1000), Some(2e6));
        // 4 packets in 10 ms are more: 3.2 Mbit/s.
        rate.take(&mut sample, &seg, &tp, 10_000);
        assert_eq!(rate.bits_per_s(1000), Some(3.2e6));
    }
}
