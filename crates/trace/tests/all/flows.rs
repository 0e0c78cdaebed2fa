//! Sequence numbers, round trips, goodput.

use bakeoff_trace::options::Options;

use crate::frames::{
    ACK, DATA, FIN, PURE, RST, SYN, Tcp, capture, pcap, sack, timestamps, told, told_of, told_with,
};

const MSS_SACK_SCALE_7: [u8; 12] = [2, 4, 5, 180, 4, 2, 1, 3, 3, 7, 1, 1];

/// SYN at 0, SYN/ACK at 30 ms, ACK at 40 ms: 30 ms to the server and back, 10 to the client.
fn handshake() -> Vec<(u32, Tcp<'static>)> {
    let syn = Tcp { flags: SYN, seq: 99, length: 0, options: &MSS_SACK_SCALE_7, ..DATA };
    let syn_ack = Tcp { flags: SYN | ACK, seq: 499, ack: 100, options: &MSS_SACK_SCALE_7, ..PURE };
    let ack = Tcp { seq: 100, ack: 500, length: 0, ..DATA };
    vec![(0, syn), (30_000, syn_ack), (40_000, ack)]
}

fn data(seq: u32) -> Tcp<'static> {
    Tcp { seq, ack: 500, ..DATA }
}

fn ack(ack: u32) -> Tcp<'static> {
    Tcp { seq: 500, ack, ..PURE }
}

fn near(found: f64, wanted: f64) {
    assert!((found - wanted).abs() < 1e-9, "{found} is not {wanted}");
}

/// Two segments at 50 and 51 ms, their ACK at 81: 30 ms since the second. FINs end it; they are no payload.
#[test]
fn a_short_flow_is_told_whole() {
    let mut segments = handshake();
    segments.extend([
        (50_000, data(100)),
        (51_000, data(1100)),
        (81_000, ack(2100)),
        (82_000, Tcp { flags: ACK | FIN, length: 0, ..data(2100) }),
        (112_000, Tcp { flags: ACK | FIN, ..ack(2101) }),
        (113_000, Tcp { seq: 2101, ack: 501, length: 0, ..DATA }),
    ]);
    let report = told_of(&segments);
    let [flow] = &report.flows[..] else { panic!("one flow: {report:?}") };
    assert_eq!((flow.client.address.as_str(), flow.client.port), ("10.0.0.1", 40_000));
    assert_eq!((flow.begin_seen, flow.end), (true, "fin"));
    near(flow.handshake.server_rtt_s.expect("seen"), 0.030);
    near(flow.handshake.client_rtt_s.expect("seen"), 0.010);
    let up = &flow.up;
    assert_eq!((up.options.mss, up.options.window_scale), (Some(1460), Some(7)));
    // 20 + 20 bytes of headers, and 12 of options in the SYN: 52 + 40 + 2 * 1040 + 2 * 40; Ethernet adds 14 each.
    assert_eq!((up.packets, up.ip_bytes, up.frame_bytes), (6, 2252, 2252 + 6 * 14));
    assert_eq!((up.data.packets, up.data.payload_bytes, up.data.acked_bytes), (2, 2000, 2000));
    assert_eq!((up.data.sequence_bytes, up.data.in_flight_max_bytes), (2000, 2000));
    // The FIN's ACK came 30 ms after it as well.
    assert_eq!(up.rtt_s.n, 2);
    near(up.rtt_s.values.expect("two").mean, 0.030);
    assert_eq!((flow.down.acks.pure, flow.down.acks.duplicates), (1, Some(0)));
    assert_eq!(flow.down.acks.window_max_bytes, Some(100 << 7));
}

/// 1100 is lost before this point and comes again after three duplicate ACKs; its ACK says nothing of the round trip.
#[test]
fn a_loss_before_this_point_is_a_gap_and_a_retransmission() {
    let hole = sack(&[(2100, 5100)]);
    let duplicate = Tcp { options: &hole, ..ack(1100) };
    let mut segments = handshake();
    segments.extend([(50_000, data(100)), (51_000, data(2100)), (52_000, data(3100)), (53_000, data(4100))]);
    segments.extend([(80_000, ack(1100)), (81_000, duplicate), (82_000, duplicate), (83_000, duplicate)]);
    segments.extend([(93_000, data(1100)), (123_000, ack(5100))]);
    let flow = &told_of(&segments).flows[0];
    let data = &flow.up.data;
    assert_eq!((data.gaps, data.gap_bytes, data.lost_bytes), (1, 1000, 1000));
    assert_eq!((data.retransmits, data.retransmit_bytes, data.reordered), (1, 1000, 0));
    // Of 2100 to 5100 SACK told first, and it told it once.
    assert_eq!((data.sacked_bytes, data.acked_bytes, data.sequence_bytes), (Some(3000), 5000, 5000));
    assert_eq!(flow.down.acks.duplicates, Some(3));
    assert_eq!(flow.up.rtt_s.n, 1);
}

/// 2100 overtakes 1100 by 1 ms; nothing can be sent again within the 40 ms of the handshake.
#[test]
fn what_is_overtaken_is_not_a_retransmission() {
    let mut segments = handshake();
    segments.extend([(50_000, data(100)), (51_000, data(2100)), (52_000, data(3100)), (53_000, data(1100))]);
    let data = &told_of(&segments).flows[0].up.data;
    assert_eq!((data.gaps, data.lost_bytes, data.retransmits, data.reordered), (1, 0, 0, 1));
    // 2100 and 3100 overtook it, which was seen 2 ms after it was missed.
    assert_eq!(data.reorder_max_packets, 2);
    near(data.reorder_max_s, 0.002);
}

/// Timestamps decide where they differ: 49 was written before the 51 of the segment that overtook it, however late it is.
#[test]
fn timestamps_tell_late_segments_from_new_ones() {
    let [early, late, again] = [49, 51, 120].map(|value| timestamps(value, 0));
    for (option, reordered, retransmits) in [(&early, 1, 0), (&again, 0, 1)] {
        let segments = [
            (50_000, Tcp { options: &early, ..data(100) }),
            (51_000, Tcp { options: &late, ..data(2100) }),
            (120_000, Tcp { options: option, ..data(1100) }),
        ];
        let data = &told_of(&segments).flows[0].up.data;
        assert_eq!((data.reordered, data.retransmits), (reordered, retransmits));
    }
}

/// A segment is sent again though it had arrived; the receiver reports the duplicate once, below its ACK.
#[test]
fn a_duplicate_report_tells_a_spurious_retransmission() {
    let report = sack(&[(100, 1100)]);
    let mut segments = handshake();
    segments.extend([(50_000, data(100)), (51_000, data(1100)), (300_000, data(100))]);
    segments.extend([(320_000, ack(2100)), (330_000, Tcp { options: &report, ..ack(2100) })]);
    let flow = &told_of(&segments).flows[0];
    assert_eq!((flow.up.data.retransmits, flow.up.data.spurious_retransmits), (1, Some(1)));
    assert_eq!((flow.down.acks.dsacks, flow.up.data.sacked_bytes), (Some(1), Some(0)));
    // Karn's rule.
    assert_eq!(flow.up.rtt_s.n, 0);
}

/// The capture lacks 1100 to 2100, and the ACK says that it arrived.
#[test]
fn what_the_capture_lost_is_not_a_loss() {
    let mut segments = handshake();
    segments.extend([(50_000, data(100)), (51_000, data(2100)), (81_000, ack(3100))]);
    let data = &told_of(&segments).flows[0].up.data;
    assert_eq!((data.unseen_bytes, data.lost_bytes, data.acked_bytes), (1000, 0, 3000));
}

/// An ACK stands in the file before the second of the segments that it acknowledges.
#[test]
fn an_ack_may_outrun_its_data() {
    let mut segments = handshake();
    segments.extend([(50_000, data(100)), (50_010, ack(2100)), (50_011, data(1100)), (50_012, data(2100))]);
    let data = &told_of(&segments).flows[0].up.data;
    assert_eq!((data.unseen_bytes, data.retransmits, data.sequence_bytes), (0, 0, 3000));
}

/// 7 goes up at 0 and comes back at 30 ms; 8 goes up twice, and its echo counts from the first.
#[test]
fn timestamps_tell_the_round_trip() {
    let [a, b, c, d] = [timestamps(7, 0), timestamps(8, 0), timestamps(90, 7), timestamps(91, 8)];
    let segments = [
        (0, Tcp { options: &a, ..data(100) }),
        (1_000, Tcp { options: &b, ..data(1100) }),
        (2_000, Tcp { options: &b, ..data(2100) }),
        (30_000, Tcp { options: &c, ..ack(1100) }),
        (41_000, Tcp { options: &d, ..ack(3100) }),
    ];
    let up = &told_of(&segments).flows[0].up;
    let values = up.timestamp_rtt_s.values.expect("two");
    assert_eq!(up.timestamp_rtt_s.n, 2);
    near(values.min, 0.030);
    near(values.max, 0.040);
}

/// One ACK of 1000 bytes each 100 ms from 0 to 3 s: 8000 bits per 0.1 s; windows of 1 s hold 10 each. A series of 0.5 s
/// has 5 of them per interval.
#[test]
fn goodput_is_what_was_acknowledged_over_time() {
    let mut segments = Vec::new();
    for i in 0..=30 {
        segments.push((i * 100_000, data(100 + i * 1000)));
        segments.push((i * 100_000 + 10, ack(100 + (i + 1) * 1000)));
    }
    let options = Options { interval_s: Some(0.5), ..Options::default() };
    let report = told_with(capture(&segments), &options);
    let flow = &report.flows[0];
    let goodput = flow.up.data.goodput.expect("there are ACKs");
    // The first ACK is where counting begins, since what is below it may have been sent at any time.
    near(goodput.mean_bps.expect("several ACKs"), 80_000.0);
    near(goodput.min_bps.expect("windows"), 80_000.0);
    near(goodput.max_bps.expect("windows"), 80_000.0);
    let series = flow.series.as_ref().expect("asked for");
    assert_eq!((series.interval_s, series.time_s.len(), series.down.is_some()), (0.5, 7, false));
    let up = series.up.as_ref().expect("it carries payload");
    near(up.goodput_bps[1], 5.0 * 8000.0 / 0.5);
    near(up.rtt_s[1].expect("a sample"), 10e-6);
}

/// 100,000 intervals of 1 ms are more than a flow may have; 32 ms are 3125.
#[test]
fn a_long_series_has_longer_intervals() {
    let segments: Vec<_> = (0..100).map(|i| (i * 1_000_000, data(100 + i * 1000))).collect();
    let options = Options { interval_s: Some(0.001), ..Options::default() };
    let report = told_with(capture(&segments), &options);
    let series = report.flows[0].series.as_ref().expect("asked for");
    assert_eq!((series.interval_s, series.time_s.len()), (0.032, 99_000 / 32 + 1));
    let up = series.up.as_ref().expect("it carries payload");
    // 1040 bytes per packet.
    let bits: f64 = up.throughput_bps.iter().map(|bps| bps * 0.032).sum();
    assert!((bits - 100.0 * 1040.0 * 8.0).abs() < 1e-3);
}

/// The sequence goes over 2^32; nothing is missing.
#[test]
fn sequence_numbers_wrap() {
    let begin = u32::MAX - 1499;
    let segments: Vec<_> = (0..4u32)
        .flat_map(|i| {
            let seq = begin.wrapping_add(i * 1000);
            [(i * 10_000, data(seq)), (i * 10_000 + 1, ack(seq.wrapping_add(1000)))]
        })
        .collect();
    let up = &told_of(&segments).flows[0].up;
    assert_eq!((up.data.gaps, up.data.retransmits, up.data.sequence_bytes), (0, 0, 4000));
    // The first ACK that is seen begins the count.
    assert_eq!(up.data.acked_bytes, 3000);
}

/// The window is 0 from 60 to 75 ms, and a byte beyond it asks for it.
#[test]
fn zero_windows_are_timed() {
    let mut segments = handshake();
    segments.push((50_000, data(100)));
    segments.push((60_000, Tcp { window: 0, ..ack(1100) }));
    segments.push((70_000, Tcp { length: 0, ..data(1099) }));
    segments.push((75_000, Tcp { window: 50, ..ack(1100) }));
    let down = &told_of(&segments).flows[0].down;
    assert_eq!(down.acks.zero_windows, 1);
    near(down.acks.zero_window_s, 0.015);
    assert_eq!(down.acks.window_min_bytes, Some(0));
}

/// Another SYN between the same ports is another flow, and the one that is sent again is not.
#[test]
fn ports_are_used_again() {
    let mut segments = handshake();
    segments.push((41_000, segments[0].1));
    segments.push((50_000, Tcp { flags: RST, ..data(100) }));
    segments.push((60_000, Tcp { flags: SYN, seq: 7_000_000, length: 0, ..DATA }));
    let report = told_of(&segments);
    assert_eq!(report.flows.len(), 2);
    assert_eq!((report.flows[0].end, report.flows[0].handshake.retransmits), ("reset", 1));
    assert_eq!((report.flows[1].end, report.flows[1].begin_seen), ("open", true));
}

/// Without a SYN, port 443 is the server, whoever is seen first.
#[test]
fn a_flow_whose_begin_is_missing_says_so() {
    let report = told_of(&[(0, Tcp { length: 1000, ..ack(100) }), (1, data(100))]);
    let flow = &report.flows[0];
    assert_eq!((flow.begin_seen, flow.server.port, flow.up.packets), (false, 443, 1));
    assert_eq!(flow.down.acks.window_max_bytes, None);
}

/// Three packets 0.05 ms apart, 10 ms, two more: bursts of 3 and 2.
#[test]
fn packets_that_follow_close_are_a_burst() {
    let times = [0, 50, 100, 10_100, 10_150];
    let segments: Vec<_> = (0..5).map(|i| (times[i as usize], data(100 + i * 1000))).collect();
    let up = &told_of(&segments).flows[0].up;
    let bursts = up.bursts.values.expect("two");
    assert_eq!((up.bursts.n, bursts.min, bursts.max), (2, 2.0, 3.0));
    near(up.gap_s.values.expect("four").max, 0.010);
}

/// Of three flows two are followed.
#[test]
fn flows_beyond_the_bound_are_counted() {
    let frames: Vec<_> = (0..3u8)
        .map(|i| {
            let mut frame = data(100).frame();
            frame[14 + 12 + 3] = i;
            (u32::from(i), frame)
        })
        .collect();
    let options = Options { flows: 2, ..Options::default() };
    let report = told_with(crate::frames::pcap(1, &frames), &options);
    assert_eq!((report.flows.len(), report.capture.flows_beyond), (2, 1));
    assert!(report.capture.notes[0].contains("more than 2 TCP flows"), "{:?}", report.capture.notes);
    assert_eq!(told(crate::frames::pcap(1, &frames)).flows.len(), 3);
}

/// 3000 segments under way are more than are told apart; every ACK still finds the time of what it ends with.
#[test]
fn many_segments_under_way_are_taken_together() {
    let mut segments: Vec<_> = (0..3000).map(|i| (i * 10, data(100 + i * 1000))).collect();
    segments.push((100_000, ack(100)));
    segments.push((100_000, ack(100 + 3000 * 1000)));
    let up = &told_of(&segments).flows[0].up;
    assert_eq!((up.data.acked_bytes, up.data.in_flight_max_bytes, up.rtt_s.n), (3_000_000, 0, 1));
    // The last left at 29.99 ms.
    near(up.rtt_s.values.expect("one").mean, 0.100 - 0.029_99);
}

/// Both ends send a SYN before either has one: it is one connection, of 500 bytes up and 300 down.
#[test]
fn both_ends_may_open_at_once() {
    let segments = [
        (0, Tcp { up: true, flags: SYN, seq: 100, ..PURE }),
        (10, Tcp { up: false, flags: SYN, seq: 900, ..PURE }),
        (10_000, Tcp { up: true, flags: SYN | ACK, seq: 100, ack: 901, ..PURE }),
        (10_010, Tcp { up: false, flags: SYN | ACK, seq: 900, ack: 101, ..PURE }),
        (20_000, Tcp { seq: 101, ack: 901, length: 500, ..DATA }),
        (30_000, Tcp { up: false, seq: 901, ack: 601, length: 300, ..DATA }),
        (40_000, Tcp { up: true, seq: 601, ack: 1201, ..PURE }),
    ];
    let report = told_of(&segments);
    assert_eq!(report.flows.len(), 1);
    let flow = &report.flows[0];
    assert_eq!((flow.up.data.acked_bytes, flow.down.data.acked_bytes), (500, 300));
    assert_eq!((flow.up.data.retransmits, flow.down.data.gaps, flow.up.data.unseen_bytes), (0, 0, 0));
}

/// 1000 bytes are acknowledged up to 1100. Three probes begin at 1099, two of them without payload, as Linux sends them;
/// the segment at 1100 is an ordinary ACK.
#[test]
fn probes_without_payload_are_keep_alives() {
    let mut segments = handshake();
    segments.push((100_000, data(100)));
    segments.push((110_000, ack(1100)));
    for (at, seq, length) in
        [(1_000_000, 1099, 0), (2_000_000, 1099, 1), (3_000_000, 1099, 0), (4_000_000, 1100, 0)]
    {
        segments.push((at, Tcp { up: true, seq, ack: 500, length, ..PURE }));
        segments.push((at + 10_000, ack(1100)));
    }
    let flow = &told_of(&segments).flows[0];
    assert_eq!(
        (flow.up.data.keep_alives, flow.up.data.retransmits, flow.down.acks.duplicates),
        (3, 0, Some(0))
    );
}

/// The client's packets alone: 20 ms lie between its SYN and its ACK, so that what lay in a gap for 10 ms was overtaken,
/// and what lay there for 30 ms was sent again.
#[test]
fn one_direction_tells_the_round_trip_of_the_handshake() {
    let mut segments = vec![
        (0, Tcp { up: true, flags: SYN, seq: 100, ..PURE }),
        (20_000, Tcp { up: true, seq: 101, ack: 901, ..PURE }),
    ];
    for (at, seq) in [(21_000, 1101), (31_000, 101), (32_000, 3101), (62_000, 2101)] {
        segments.push((at, data(seq)));
    }
    let told = &told_of(&segments).flows[0].up.data;
    assert_eq!((told.reordered, told.retransmits, told.gaps), (1, 1, 2));
}

/// ACKs alone: two that repeat 101 have SACK for what came behind it, and one has nothing.
#[test]
fn duplicate_acks_are_told_without_the_data() {
    let (one, two) = (sack(&[(1101, 2101)]), sack(&[(1101, 3101)]));
    let segments = [
        (0, ack(101)),
        (1, Tcp { options: &one, ..ack(101) }),
        (2, Tcp { options: &two, ..ack(101) }),
        (3, ack(3101)),
    ];
    assert_eq!(told_of(&segments).flows[0].down.acks.duplicates, Some(2));
}

/// The server's packets: SYN/ACK, ACKs of so many segments, and FIN.
fn served(at: u32, seq: u32, ack: u32, syn: bool, fin: bool) -> Vec<(u32, Tcp<'static>)> {
    let mut segments = Vec::new();
    if syn {
        segments.push((at, Tcp { flags: SYN | ACK, seq: seq.wrapping_sub(1), ack, ..PURE }));
    }
    segments
        .extend((1..=10).map(|i| (at + i * 10_000, Tcp { seq, ack: ack.wrapping_add(1000 * i), ..PURE })));
    if fin {
        segments.push((at + 110_000, Tcp { flags: ACK | FIN, seq, ack: ack.wrapping_add(10_000), ..PURE }));
    }
    segments
}

/// One side alone: the second connection begins with another SYN/ACK, or goes on behind the FIN of the first, ahead
/// or behind of it. Each acknowledges 10 segments.
#[test]
fn a_port_that_is_used_again_is_two_flows_on_one_side() {
    for (seq, ack, syn, fin) in [
        (7_000_000, 900_000_001, true, true),
        (7_000_000, 900_000_001, true, false),
        (7_000_000, 900_000_001, false, true),
        (4_000_000_000, 3_000_000_001, true, false),
        // Initial numbers that lie close together.
        (9000, 30_001, true, false),
        (9000, 30_001, false, true),
    ] {
        let mut segments = served(0, 501, 1001, true, fin);
        segments.extend(served(10_000_000, seq, ack, syn, fin));
        let flows = told_of(&segments).flows;
        let told: Vec<_> = flows.iter().map(|flow| (flow.client.port, flow.up.data.acked_bytes)).collect();
        // Without the SYN/ACK the first ACK is where counting begins.
        let second = if syn { 10_000 } else { 9000 };
        assert_eq!(told, [(40_000, 10_000), (40_000, second)], "{seq} {ack} {syn} {fin}");
    }
}

/// A SYN/ACK comes again, from a server that forgot the first, and a SYN stands behind the packets that follow it.
#[test]
fn a_handshake_is_one_flow() {
    let [syn, answer, third] = [0, 1, 2].map(|i| handshake()[i].1);
    let again = Tcp { seq: 7_000_000, ..answer };
    let third_again = Tcp { ack: 7_000_001, ..third };
    let data_again = Tcp { ack: 7_000_001, ..data(100) };
    let ack_again = Tcp { seq: 7_000_001, ..ack(1100) };
    let report =
        told_of(&[(0, syn), (1, answer), (2, again), (3, third_again), (4, data_again), (5, ack_again)]);
    assert_eq!((report.flows.len(), report.flows[0].up.data.acked_bytes), (1, 1000));
    assert_eq!((report.flows[0].handshake.retransmits, report.flows[0].down.data.gaps), (1, 0));

    let report = told_of(&[(0, answer), (1, third), (2, syn), (3, data(100)), (4, ack(1100))]);
    assert_eq!((report.flows.len(), report.flows[0].begin_seen), (1, true));
    // From the lower port: what comes first is taken for the server's, until the SYN says that it is not.
    let swap = |mut segment: Tcp<'static>| {
        segment.up = !segment.up;
        segment
    };
    let report = told_of(&[(0, swap(third)), (1, swap(syn)), (2, swap(answer)), (3, swap(data(100)))]);
    assert_eq!((report.flows.len(), report.flows[0].client.port), (1, 443));
    assert_eq!(report.flows[0].up.data.payload_bytes, 1000);
}

/// A SYN/ACK of an earlier connection, whose SYN was another, takes nothing from this one.
#[test]
fn a_syn_ack_that_strays_is_passed_over() {
    let mut segments = handshake();
    segments.insert(1, (10_000, Tcp { flags: SYN | ACK, seq: 9000, ack: 77_000_000, window: 5, ..PURE }));
    segments.extend([(50_000, data(100)), (80_000, ack(1100))]);
    let report = told_of(&segments);
    assert_eq!((report.flows.len(), report.flows[0].up.data.acked_bytes), (1, 1000));
    near(report.flows[0].handshake.server_rtt_s.expect("seen"), 0.030);
}

/// A window of 100: the scale of 7 counts if both SYNs offer one, and if none is missing.
#[test]
fn a_window_scale_counts_if_both_ends_offer_it() {
    const NONE: &[u8] = &[2, 4, 5, 180];
    const SCALE: &[u8] = &MSS_SACK_SCALE_7;
    let cases = [
        (Some(SCALE), Some(SCALE), Some(12_800), Some(12_800)),
        (Some(SCALE), Some(NONE), Some(100), Some(100)),
        (Some(NONE), Some(SCALE), Some(100), Some(100)),
        (Some(NONE), None, Some(100), Some(100)),
        (Some(SCALE), None, None, None),
        // A SYN/ACK offers one only if the SYN did.
        (None, Some(SCALE), None, Some(12_800)),
        (None, Some(NONE), Some(100), Some(100)),
        (None, None, None, None),
    ];
    for (syn, answer, up, down) in cases {
        let all = handshake();
        let offered = |i: usize, options| (all[i].0, Tcp { options, ..all[i].1 });
        let mut segments: Vec<_> = syn.map(|options| offered(0, options)).into_iter().collect();
        segments.extend(answer.map(|options| offered(1, options)));
        segments.extend([all[2], (50_000, data(100)), (80_000, ack(1100))]);
        let flow = &told_of(&segments).flows[0];
        let windows =
            [&flow.up, &flow.down].map(|way| (way.acks.window_min_bytes, way.acks.window_max_bytes));
        assert_eq!(windows, [(up, up), (down, down)], "{syn:?} {answer:?}");
    }
}

/// The SYN's options are MSS, SACK permitted, two bytes of the window scale and its third, two of padding.
#[test]
fn options_that_were_cut_off_are_unknown() {
    let snapped = |kept: usize, segments: &[(u32, Tcp<'_>)]| {
        let mut file = pcap(1, &[]);
        for (at, segment) in segments {
            let frame = segment.frame();
            let kept = frame.len().min(14 + 20 + 20 + kept);
            for word in [at / 1_000_000, at % 1_000_000, kept as u32, frame.len() as u32] {
                file.extend(word.to_le_bytes());
            }
            file.extend(&frame[..kept]);
        }
        told(file)
    };
    let blocks = sack(&[(2100, 3100)]);
    let mut segments = handshake();
    segments.extend([
        (50_000, data(100)),
        (51_000, data(2100)),
        (80_000, Tcp { options: &blocks, ..ack(1100) }),
    ]);

    let report = snapped(8, &segments);
    let flow = &report.flows[0];
    assert_eq!((flow.up.options.mss, flow.up.options.sack_permitted), (Some(1460), Some(true)));
    assert_eq!((flow.up.options.window_scale, flow.up.acks.window_max_bytes), (None, None));
    assert_eq!((flow.up.options.cut, &flow.up.options.unknown[..]), (1, &["window_scale"][..]));
    // Four of ten bytes of a SACK block say nothing.
    assert_eq!(
        (flow.down.options.sack, flow.down.acks.dsacks, flow.up.data.sacked_bytes),
        (None, None, None)
    );
    assert_eq!(flow.down.options.unknown, ["window_scale", "sack", "accecn"], "the SYN/ACK may have had one");
    assert_eq!((flow.down.acks.pure, flow.up.data.packets, flow.up.data.payload_bytes), (1, 2, 2000));
    assert!(report.capture.notes[0].starts_with("3 packets were truncated inside their TCP options"));

    // All of the SYN, and all of the SACK block.
    let report = snapped(12, &segments);
    let flow = &report.flows[0];
    assert_eq!((flow.up.options.cut, flow.down.options.cut), (0, 0));
    assert_eq!((flow.up.data.sacked_bytes, flow.down.acks.window_max_bytes), (Some(1000), Some(12_800)));
    assert_eq!(report.capture.notes, [""; 0]);

    let report = snapped(0, &segments);
    assert_eq!(report.flows[0].up.options.unknown, ["mss", "window_scale", "sack_permitted", "timestamps"]);
    assert_eq!(report.flows[0].up.options.sack_permitted, None);
}

/// One ACK that advances has no rate.
#[test]
fn one_ack_is_no_goodput() {
    let mut segments = handshake();
    segments.extend([(50_000, data(100)), (80_000, ack(1100))]);
    let goodput = told_of(&segments).flows[0].up.data.goodput.expect("an ACK");
    assert_eq!((goodput.mean_bps, goodput.first_ack_s), (None, 0.08));
}

/// A segment of 1000 bytes every 10 ms and its ACK 5 ms later, while the clock is set back by an hour, or ahead from 1970:
/// 8000 bits per 10 ms, but for the 5 ms at the step, which are not known. Counting begins with the second ACK, since the
/// first may acknowledge anything: 8 ACKs from 15 ms to 95 ms, less 5 ms.
#[test]
fn a_clock_that_is_set_gives_no_silly_rates() {
    for set_us in [-3_600_000_000_i64, 1_790_000_000_000_000] {
        let mut file = pcap(1, &[]);
        for i in 0..20_i64 {
            let segment =
                if i % 2 == 0 { data(100 + 500 * i as u32) } else { ack(100 + 500 * (i as u32 + 1)) };
            let at_us = 7_200_000_000 + i * 5000 + if i >= 10 { set_us } else { 0 };
            let frame = segment.frame();
            for word in [at_us / 1_000_000, at_us % 1_000_000, frame.len() as i64, frame.len() as i64] {
                file.extend((word as u32).to_le_bytes());
            }
            file.extend(frame);
        }
        let report = told_with(file, &Options { window_s: 0.02, ..Options::default() });
        let goodput = report.flows[0].up.data.goodput.expect("ACKs");
        near(goodput.mean_bps.expect("several"), 64_000.0 / 0.075);
        assert!(
            goodput.max_bps.expect("windows") <= 1_200_000.0
                && goodput.min_bps.expect("windows") >= 800_000.0
        );
        assert_eq!((report.capture.clock_steps, report.flows[0].start_s), (1, 0.0));
        near(report.capture.duration_s, 0.09);
    }
}

/// 1000 flows of two packets that are a year apart: 2^19 intervals in all, and no more than 4096 of one flow.
#[test]
fn flows_share_the_intervals() {
    for (flows, each) in [(10_u16, 4096), (1000, (1 << 19) / 1000)] {
        let mut file = pcap(1, &[]);
        for at in [0, 31_536_000_u32] {
            for port in 1001..=1000 + flows {
                let mut frame = data(100 + at / 31_536_000 * 1000).frame();
                frame[14 + 20..][..2].copy_from_slice(&port.to_be_bytes());
                for word in [at, port.into(), frame.len() as u32, frame.len() as u32] {
                    file.extend(word.to_le_bytes());
                }
                file.extend(frame);
            }
        }
        let report = told_with(file, &Options { interval_s: Some(0.1), ..Options::default() });
        let lengths: Vec<_> =
            report.flows.iter().map(|flow| flow.series.as_ref().expect("asked for").time_s.len()).collect();
        assert_eq!(lengths.len(), usize::from(flows));
        assert!(lengths.iter().all(|length| (each / 2..=each).contains(length)), "{lengths:?}");
        let up = report.flows[0]
            .series
            .as_ref()
            .and_then(|series| series.up.as_ref())
            .expect("it carries payload");
        let bits: f64 =
            up.throughput_bps.iter().sum::<f64>() * report.flows[0].series.as_ref().expect("it").interval_s;
        assert!((bits - 2.0 * 1040.0 * 8.0).abs() < 1e-3);
    }
}
