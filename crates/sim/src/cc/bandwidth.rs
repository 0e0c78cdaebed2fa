//! What a path carries, and how much of that is in flight: the units and the arithmetic that BBR's versions
//! share. Part of [`super::bbr`] and [`super::bbr3`].
//!
//! Bandwidths are packets per microsecond times 2^24, gains are in 1/256.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_bbr.c` (`bbr_rate_bytes_per_sec`, `bbr_bdp`, `bbr_packets_in_net_at_edt`,
//! `bbr_update_ack_aggregation`).
//!
//! Departures: bandwidths have 64 bits (Linux: 32, up to 2.9 Tbit/s).
//!
//! Validation: the tests below and in [`super::bbr`].

use super::RateSample;
use crate::base::units::Time;
use crate::cc::sock::TcpSock;

/// 1 packet per microsecond.
pub const BW_UNIT: u64 = 1 << 24;
/// A gain of 1.
pub const UNIT: u64 = 256;
/// Pacing stays this much below the estimate, in percent, so that the queue empties.
const MARGIN_PERCENT: u64 = 1;
/// Below this pacing rate, 1.2 Mbit/s in bytes, packets leave one by one.
const MIN_TSO_RATE: u64 = 1_200_000 >> 3;
/// Bytes of the largest packet for segmentation, without room for headers.
const MAX_TSO_BYTES: u64 = 65_535 - 320;
/// What short round-trip times add to that size: so many bytes, halved for each 2^9 us of the least one.
const RTT_BYTES: u64 = 65_536;
const RTT_LOG: u32 = 9;
/// The draft's largest send quantum in bytes.
const MAX_QUANTUM: u64 = 64 << 10;
/// An epoch that saw more packets starts anew.
const EPOCH_RESET: u32 = 1 << 20;
/// Aggregation beyond this time's worth of packets is not provided for, in microseconds.
const MAX_AGGREGATION_US: u64 = 100_000;

/// The bandwidth of `packets` in `us`.
pub fn of(packets: u64, us: u64) -> u64 {
    (packets * BW_UNIT).checked_div(us).unwrap_or(0)
}

/// Bytes per second to pace at, `gain` times `bw`, capped by the socket's maximum.
pub fn pacing_rate(tp: &TcpSock, bw: u64, gain: u64) -> u64 {
    bytes_per_s(tp.mss, bw, gain).min(tp.max_pacing_rate)
}

/// `gain` times `bw` in bytes per second, less the margin. Source: Linux 7.3 `bbr_rate_bytes_per_sec`.
pub fn bytes_per_s(mss: u32, bw: u64, gain: u64) -> u64 {
    // Large segments over no round-trip time at all go beyond 64 bits.
    let rate = bw.saturating_mul(u64::from(mss) * gain) >> 8;
    rate.saturating_mul(10_000 * (100 - MARGIN_PERCENT)) >> 24
}

/// Packets in flight at `gain` times `bw` and the round-trip time `min_rtt_us`, rounded up.
/// Source: Linux 7.3 `bbr_bdp`.
pub fn bdp(bw: u64, min_rtt_us: u64, gain: u64) -> u32 {
    if min_rtt_us == u64::MAX {
        // No valid sample yet: the initial window.
        return 10;
    }
    let packets = u128::from(bw) * u128::from(min_rtt_us) * u128::from(gain);
    ((packets >> 8).div_ceil(u128::from(BW_UNIT))).min(u128::from(u32::MAX >> 2)) as u32
}

/// Segments of the packets that are handed down at the pacing rate. Source: Linux 7.3 `bbr_tso_segs_goal`.
pub fn tso_segs_goal(tp: &TcpSock) -> u32 {
    segs(tp, tp.pacing_rate >> 10, min_tso_segs(tp))
}

/// The same in versions 2 and 3, which send larger packets over short round-trip times; of `least` segments or more.
/// Source: google/bbr v3 `bbr_tso_segs_generic`.
pub fn tso_segs_goal_by_rtt(tp: &TcpSock, least: u32) -> u32 {
    let halvings = (tp.min_rtt_us >> RTT_LOG).min(63) as u32;
    segs(tp, (tp.pacing_rate >> 10).saturating_add(RTT_BYTES >> halvings), least)
}

fn segs(tp: &TcpSock, bytes: u64, least: u32) -> u32 {
    ((bytes.min(MAX_TSO_BYTES) / u64::from(tp.mss)) as u32).max(least).min(0x7f)
}

/// Bytes handed down at once at the pacing rate. Source: draft-ietf-ccwg-bbr, BBRSetSendQuantum.
pub fn send_quantum(tp: &TcpSock) -> u64 {
    (tp.pacing_rate / 1000).min(MAX_QUANTUM).max(2 * u64::from(tp.mss))
}

/// See [`super::CongestionControl::min_tso_segs`].
pub fn min_tso_segs(tp: &TcpSock) -> u32 {
    if tp.pacing_rate < MIN_TSO_RATE { 1 } else { 2 }
}

/// Of `in_flight` packets, those in the network when the next ones depart, of `goal` segments.
/// Source: Linux 7.3 `bbr_packets_in_net_at_edt`.
pub fn packets_in_net_at_edt(tp: &TcpSock, in_flight: u32, bw: u64, gain: u64, goal: u32) -> u32 {
    let wait_us = (tp.wstamp - tp.now).as_us();
    let delivered = ((u128::from(bw) * u128::from(wait_us)) >> 24).min(u128::from(u32::MAX)) as u32;
    // Rising: does the next packet push it above the target? Falling: was it below before?
    let next = if gain > UNIT { goal } else { 0 };
    (in_flight + next).saturating_sub(delivered)
}

/// How much more than `bw` says is acknowledged at once: what to keep in flight through the silences
/// between aggregated ACKs. The maximum over one to two windows of rounds.
#[derive(Clone, Debug, Default)]
pub struct AckAggregation {
    epoch: Time,
    acked: u32,
    extra: [u32; 2],
    current: usize,
    rounds: u32,
}

impl AckAggregation {
    /// Nothing seen yet.
    pub fn new(now: Time) -> Self {
        AckAggregation { epoch: now, ..AckAggregation::default() }
    }

    /// A new epoch: the flow was idle.
    pub fn restart(&mut self, now: Time) {
        self.epoch = now;
        self.acked = 0;
    }

    /// An ACK; `window` in rounds. Source: Linux 7.3 `bbr_update_ack_aggregation`.
    pub fn update(&mut self, tp: &TcpSock, sample: &RateSample, bw: u64, round_start: bool, window: u32) {
        let Some(extra) = self.extra(tp, sample, bw) else { return };
        if round_start {
            self.rounds = (self.rounds + 1).min(31);
            if self.rounds >= window {
                self.rounds = 0;
                self.current = 1 - self.current;
                self.extra[self.current] = 0;
            }
        }
        self.extra[self.current] = self.extra[self.current].max(extra);
    }

    /// What this ACK, if its sample is valid, tells to be acknowledged beyond `bw`.
    pub fn extra(&mut self, tp: &TcpSock, sample: &RateSample, bw: u64) -> Option<u32> {
        if sample.acked_sacked == 0 || sample.interval_us == 0 {
            return None;
        }
        let us = tp.delivered_mstamp.us_since(self.epoch);
        let mut expected = ((u128::from(bw) * u128::from(us)) >> 24).min(u128::from(u32::MAX)) as u32;
        if self.acked <= expected || self.acked.saturating_add(sample.acked_sacked) >= EPOCH_RESET {
            self.restart(tp.delivered_mstamp);
            expected = 0;
        }
        self.acked = self.acked.saturating_add(sample.acked_sacked).min(EPOCH_RESET - 1);
        Some(self.acked.saturating_sub(expected).min(tp.snd_cwnd).min(u16::MAX.into()))
    }

    /// Packets to add to the window. Source: Linux 7.3 `bbr_ack_aggregation_cwnd`.
    pub fn cwnd(&self, bw: u64) -> u32 {
        let most = (bw.saturating_mul(MAX_AGGREGATION_US) >> 24).min(u32::MAX.into()) as u32;
        self.extra[0].max(self.extra[1]).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fifty_megabits_are_4_31_packets_per_millisecond() {
        // 43160 packets of 1448 bytes in 10 s are 49.996 Mbit/s; paced at 99 % of that
        let bw = of(43_160, 10_000_000);
        let rate = bytes_per_s(1448, bw, UNIT) as f64;
        assert!((rate / (6_249_568.0 * 0.99) - 1.0).abs() < 1e-5, "{rate}");
        // 86.3 packets in 20 ms, rounded up; with a gain of 2 172.6
        assert_eq!((bdp(bw, 20_000, UNIT), bdp(bw, 20_000, 2 * UNIT)), (87, 173));
        assert_eq!(bdp(bw, u64::MAX, UNIT), 10);
    }

    #[test]
    fn a_departure_in_a_millisecond_counts_what_arrives_until_then() {
        let mut tp = TcpSock::new(1448, 250);
        tp.pacing_rate = 6_250_000;
        tp.now = Time::from_ms(5);
        tp.wstamp = Time::from_ms(6);
        // 4.3 packets delivered until then
        let bw = of(43, 10_000);
        assert_eq!(packets_in_net_at_edt(&tp, 50, bw, UNIT, 4), 46);
        // 4 segments depart then: 54 - 4
        assert_eq!(packets_in_net_at_edt(&tp, 50, bw, UNIT * 5 / 4, 4), 50);
        assert_eq!(packets_in_net_at_edt(&tp, 2, bw, UNIT, 4), 0);
    }

    #[test]
    fn below_1_2_megabits_packets_leave_one_by_one() {
        let mut tp = TcpSock::new(1448, 250);
        for (rate, segs) in [(149_999, 1), (150_000, 2), (6_250_000, 4), (u64::MAX, 45)] {
            tp.pacing_rate = rate;
            assert_eq!(tso_segs_goal(&tp), segs, "{rate}");
        }
    }

    #[test]
    fn short_round_trip_times_make_larger_packets() {
        let mut tp = TcpSock::new(1448, 250);
        // 1/1024 s: 1220 bytes, least 2; 12207 are 8; 6103, and 65536 >> (2000 >> 9 = 3) = 8192 are 9; 12207 and 65536 are above the most
        for (rate, min_rtt_us, of_1, by_rtt) in [
            (1_250_000, 40_000, 2, 2),
            (12_500_000, 40_000, 8, 8),
            (6_250_000, 2_000, 4, 9),
            (12_500_000, 500, 8, 45),
        ] {
            (tp.pacing_rate, tp.min_rtt_us) = (rate, min_rtt_us);
            assert_eq!(
                (tso_segs_goal(&tp), tso_segs_goal_by_rtt(&tp, 2)),
                (of_1, by_rtt),
                "{rate} {min_rtt_us}"
            );
        }
    }

    #[test]
    fn a_send_quantum_is_a_millisecond_of_2_segments_to_64_kilobytes() {
        let mut tp = TcpSock::new(1448, 250);
        for (rate, bytes) in [(1_250_000, 2_896), (12_500_000, 12_500), (125_000_000, 65_536)] {
            tp.pacing_rate = rate;
            assert_eq!(send_quantum(&tp), bytes, "{rate}");
        }
    }

    #[test]
    fn aggregation_is_what_comes_beyond_the_bandwidth_and_lives_for_two_windows() {
        // 1 packet per ms; 20 ACKed at once every 20 ms
        let bw = of(1, 1_000);
        let mut tp = TcpSock::new(1448, 250);
        tp.snd_cwnd = 100;
        let mut agg = AckAggregation::new(Time::ZERO);
        let mut ack = |ms: u64, acked: u32, agg: &mut AckAggregation| {
            tp.delivered_mstamp = Time::from_ms(ms);
            let sample = RateSample { acked_sacked: acked, interval_us: 20_000, ..RateSample::default() };
            agg.update(&tp, &sample, bw, true, 5);
        };
        ack(20, 20, &mut agg);
        assert_eq!(agg.cwnd(bw), 20);
        // from then on steady ACKs, each a round: the tenth begins the third window and forgets the 20
        for ms in 41..=49 {
            assert_eq!(agg.cwnd(bw), 20, "{ms}");
            ack(ms, 1, &mut agg);
        }
        // the bandwidth is truncated: of the millisecond's packet 0.9999 are expected, none in whole packets
        assert!(agg.cwnd(bw) <= 2, "{}", agg.cwnd(bw));
        // no more than 100 ms of packets, 99.999 of the truncated bandwidth
        ack(51, 1_000, &mut agg);
        assert_eq!(agg.cwnd(bw), 99);
    }
}
