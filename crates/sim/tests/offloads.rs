//! Packets of several segments (GSO) on whole paths, and what a sender leaves in its host's own queue (TSQ).

use crate::common::{Dumbbell, flow, goodput_mbit, series};
use bakeoff_sim::{Outcome, simulate};
use pcap_file::pcapng::{Block, PcapNgReader};
use proptest::prelude::*;
use serde_json::{Value, json};

/// The dumbbell with offloads on or off at client, bridge and server.
fn document(dumbbell: &Dumbbell, offloads: [bool; 3]) -> Value {
    let mut doc = dumbbell.document();
    for (node, on) in doc["nodes"].as_array_mut().expect("the document has them").iter_mut().zip(offloads) {
        node["offloads"] = json!(on);
    }
    doc
}

fn run(doc: &Value) -> Outcome {
    // An error here is a broken invariant too: sent = delivered + dropped + queued, in packets and bytes.
    simulate(&doc.to_string()).expect("the document is valid")
}

/// Frame lengths in a capture.
fn lengths(outcome: &Outcome, name: &str) -> Vec<u32> {
    let (_, file) = outcome.captures.iter().find(|c| c.0 == name).expect("captured");
    let mut reader = PcapNgReader::new(&file[..]).expect("a section");
    let mut lengths = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.expect("a block") {
            lengths.push(packet.original_len);
        }
    }
    lengths
}

/// Samples of a queue after slow start.
fn samples(outcome: &Outcome, metric: &str) -> Vec<f64> {
    let samples = series(outcome, "queue", "cli>mid", metric);
    samples.iter().filter(|s| s.0 > 3.0).map(|s| s.1).collect()
}

fn most(outcome: &Outcome, metric: &str) -> u64 {
    samples(outcome, metric).into_iter().fold(0.0, f64::max) as u64
}

fn mean(outcome: &Outcome, metric: &str) -> f64 {
    let samples = samples(outcome, metric);
    samples.iter().sum::<f64>() / samples.len() as f64
}

fn number(outcome: &Outcome, path: &str) -> u64 {
    outcome.counters().pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("no {path}"))
}

#[test]
fn buffers_travel_whole_until_a_device_sends_frames() {
    let dumbbell = Dumbbell { duration_s: 3.0, tcp_ecn: 0, ..Dumbbell::default() };
    let mut captured = Vec::new();
    for offloads in [[true; 3], [true, false, true], [false; 3]] {
        let mut doc = document(&dumbbell, offloads);
        doc["captures"] = json!(["cli>mid", "mid>srv"]);
        let outcome = run(&doc);
        let longest = |name: &str| lengths(&outcome, name).into_iter().max().unwrap();
        captured.push([longest("cli>mid"), longest("mid>srv")]);
        // Whatever the packets, the queue's bytes are frames: 1448 of 1514 are payload.
        let goodput = goodput_mbit(&outcome, "reno", 2.0, 3.0);
        assert!((goodput / (50.0 * 1448.0 / 1514.0) - 1.0).abs() < 0.01, "{offloads:?}: {goodput}");
    }
    // One header, and several times 1448 bytes.
    let [whole, cut, frames] = captured[..] else { panic!() };
    for long in [whole[0], whole[1], cut[0]] {
        assert!(long > 66 + 3 * 1448 && (long - 66).is_multiple_of(1448), "{captured:?}");
    }
    assert_eq!((cut[1], frames), (1514, [1514, 1514]));
}

#[test]
fn a_link_with_a_rate_carries_frames() {
    let mut doc = document(&Dumbbell { duration_s: 2.0, ..Dumbbell::default() }, [true; 3]);
    doc["links"][0]["rate_bps"] = json!(100_000_000);
    doc["captures"] = json!(["cli>mid", "mid<cli"]);
    let outcome = run(&doc);
    for name in ["cli>mid", "mid<cli"] {
        assert_eq!(lengths(&outcome, name).into_iter().max(), Some(1514), "{name}");
    }
}

#[test]
fn a_dropped_buffer_is_retransmitted_as_one() {
    let dumbbell = Dumbbell { qdisc: "pfifo limit 20", duration_s: 5.0, ..Dumbbell::default() };
    let outcome = run(&document(&dumbbell, [true; 3]));
    let drops = number(&outcome, "/queues/mid>srv/drops/overlimit");
    let lost = number(&outcome, "/flows/reno/lost");
    let resent = number(&outcome, "/flows/reno/retransmits");
    assert!(drops > 0);
    // A drop takes all segments of a buffer, two or more of them mostly.
    assert!(lost > drops + drops / 2 && resent >= lost - 45, "{drops} drops, {lost} lost, {resent} resent");
}

#[test]
fn queues_that_split_see_frames_and_the_others_buffers() {
    // The longest backlog of a queue that may hold one packet: a frame, or a buffer.
    for (qdisc, splits) in [
        ("pfifo limit 1", false),
        ("dualpi2 limit 1", true),
        ("dualpi2 limit 1 memlimit 100000 no_split_gso", false),
        ("dualpi2@2020 limit 1", false),
        ("tbf rate 1gbit burst 2000 limit 1514", true),
        ("tbf rate 1gbit burst 70000 limit 100000", false),
        ("cake unlimited no-split-gso", false),
        ("cake unlimited", true),
        ("cnq_cobalt", true),
        ("cnq_codel_af", true),
        ("lfq_cobalt", true),
        ("twin_codel_af", true),
    ] {
        let mut doc = document(&Dumbbell { duration_s: 1.0, ..Dumbbell::default() }, [true; 3]);
        doc["captures"] = json!(["mid>srv"]);
        doc["interfaces"][1]["egress"]["classes"][0]["child"]["qdisc"] = json!(qdisc);
        let outcome = run(&doc);
        let longest = lengths(&outcome, "mid>srv").into_iter().max();
        assert_eq!(longest == Some(1514), splits, "{qdisc}: {longest:?}");
    }
}

#[test]
fn marks_of_buffers_are_told_segment_by_segment() {
    let dumbbell =
        Dumbbell { qdisc: "codel ecn", flows: vec![flow("a", "cubic")], tcp_ecn: 3, ..Dumbbell::default() };
    let outcome = run(&document(&dumbbell, [true; 3]));
    let marks = number(&outcome, "/queues/mid>srv/marks");
    let told = number(&outcome, "/flows/a/delivered_ce");
    // Buffers of 2 to 4 segments at this rate.
    assert!(marks > 5 && told >= 2 * marks - 4 && told <= 5 * marks, "{marks} marks, {told} told");
}

/// A cubic flow that meets no queue behind its host, without probes.
fn unhindered(offloads: bool) -> Value {
    let flows = vec![flow("a", "cubic")];
    let dumbbell = Dumbbell { rate: "1gbit", flows, duration_s: 6.0, tcp_ecn: 0, ..Dumbbell::default() };
    let mut doc = document(&dumbbell, [offloads; 3]);
    doc["probes"] = json!([]);
    doc["sample_interval_s"] = json!(0.001);
    doc
}

/// The same from a host whose own device is the bottleneck.
fn from_slow_host(egress: &Value, offloads: bool, sysctls: &[(&str, &str)]) -> Outcome {
    let mut doc = unhindered(offloads);
    for (name, value) in sysctls {
        doc["nodes"][0]["sysctls"][name] = json!(value);
    }
    let interface = json!({"node": "cli", "peer": "mid", "tx_queue_len": 1000, "egress": egress});
    doc["interfaces"].as_array_mut().expect("the document has them").push(interface);
    run(&doc)
}

fn shaped(child: &str) -> Value {
    json!({"qdisc": "htb default 1", "classes": [
        {"id": "1", "class": "rate 20mbit ceil 20mbit", "child": {"qdisc": child}}]})
}

#[test]
fn a_sender_keeps_two_buffers_in_its_hosts_queue() {
    for (child, offloads) in [("pfifo limit 1000", true), ("fq_codel", true), ("pfifo limit 1000", false)] {
        let outcome = from_slow_host(&shaped(child), offloads, &[]);
        // Two are the limit, with offloads and without, as Linux 7.3 shows in this network: 9084 bytes, two buffers of 3
        // segments, as a window of 60 packets per 23 ms, and 20 % more, is 4.5 kB in 1/1024 s. A longer one ahead of them,
        // of a larger window, lets a third in.
        let standing = mean(&outcome, "qlen");
        assert!((standing - 2.0).abs() < 0.2 && most(&outcome, "qlen") <= 3, "{child}: {standing}");
        let each = mean(&outcome, "backlog") / standing / 1514.0;
        assert!((2.0..4.0).contains(&each), "{child}: {each}");
        assert_eq!(most(&outcome, "drops"), 0, "{child}");
        // All the same the queue is never empty.
        assert!(goodput_mbit(&outcome, "a", 2.0, 6.0) > 0.995 * 20.0 * 1448.0 / 1514.0, "{child}");
        // So the round trip is the path's 20 ms and the time of two buffers.
        let srtt = series(&outcome, "flow", "a", "srtt").last().unwrap().1;
        assert!(srtt < 0.0005 + 0.020 + 2.0 * 4.0 * 1514.0 * 8.0 / 20e6, "{child}: {srtt}");
    }
}

#[test]
fn netem_in_the_host_lets_go_of_the_socket() {
    let netem = json!({"qdisc": "netem delay 1ms rate 20mbit limit 1000"});
    let outcome = from_slow_host(&netem, true, &[]);
    let srtt = series(&outcome, "flow", "a", "srtt").iter().map(|s| s.1).fold(0.0, f64::max);
    // Nobody holds the sender back: some 1000 packets wait at 20 Mbit/s, 600 ms of them.
    assert!(srtt > 0.1, "{srtt}");
}

#[test]
fn tcp_limit_output_bytes_leaves_less() {
    let few = [("net.ipv4.tcp_limit_output_bytes", "5000")];
    let outcome = from_slow_host(&shaped("pfifo limit 1000"), true, &few);
    // A buffer of three segments, 4344 + 896 bytes, is above the limit.
    assert_eq!(most(&outcome, "backlog"), 3 * 1514);
}

#[test]
fn a_device_with_a_rate_holds_the_sender_back_too() {
    let mut doc = unhindered(false);
    doc["links"][0]["rate_bps"] = json!(20_000_000);
    let outcome = run(&doc);
    // What waits is two buffers of 3 segments, and another whose transmission began.
    let srtt = series(&outcome, "flow", "a", "srtt").last().unwrap().1;
    assert!(srtt > 0.021 && srtt < 0.020 + 3.0 * 3.0 * 1514.0 * 8.0 / 20e6, "{srtt}");
    assert_eq!(number(&outcome, "/flows/a/retransmits"), 0);
    assert!(goodput_mbit(&outcome, "a", 2.0, 6.0) > 0.995 * 20.0 * 1448.0 / 1514.0);
}

#[test]
fn the_largest_receive_buffer_is_a_window_of_its_payload() {
    // In frames of 2304 bytes 160 of 256 are payload, in buffers of two segments 195.
    for (offloads, share) in [(false, 160.0), (true, 195.0)] {
        let mut doc = unhindered(offloads);
        doc["nodes"][2]["sysctls"]["net.ipv4.tcp_rmem"] = json!("4096 131072 300000");
        let outcome = run(&doc);
        let window = 300_000.0 * share / 256.0;
        let goodput = goodput_mbit(&outcome, "a", 2.0, 6.0);
        let expected = window * 8.0 / 0.020 / 1e6;
        // Whole segments only, an ACK waits for the second of two, and what it tells of is not read yet.
        assert!((0.86 * expected..=expected).contains(&goodput), "{offloads}: {goodput} {expected}");
    }
}

#[test]
fn a_receive_buffer_that_is_not_moderated_stays_as_it_is() {
    let mut doc = unhindered(false);
    doc["nodes"][2]["sysctls"]["net.ipv4.tcp_moderate_rcvbuf"] = json!("0");
    let goodput = goodput_mbit(&run(&doc), "a", 2.0, 6.0);
    let expected = 131_072.0 * 160.0 / 256.0 * 8.0 / 0.020 / 1e6;
    assert!((0.9 * expected..=expected).contains(&goodput), "{goodput} {expected}");
}

#[test]
fn a_small_send_buffer_leaves_the_link_idle() {
    let mut doc = unhindered(true);
    doc["nodes"][0]["sysctls"]["net.ipv4.tcp_wmem"] = json!("4096 16384 100000");
    let small = goodput_mbit(&run(&doc), "a", 1.0, 2.0);
    let large = goodput_mbit(&run(&unhindered(true)), "a", 1.0, 2.0);
    // Each round trip of 20 ms carries what is written when a third of 100 kB is free.
    assert!(small > 100_000.0 / 3.0 * 8.0 / 0.020 / 1e6 && small < large / 2.0, "{small} {large}");
}

#[test]
fn a_replaced_host_queue_does_not_stop_its_senders() {
    let mut doc = unhindered(true);
    let interface = json!({"node": "cli", "peer": "mid", "tx_queue_len": 1000, "egress": shaped("pfifo")});
    doc["interfaces"].as_array_mut().unwrap().push(interface);
    doc["changes"] = json!([{"at_s": 2.0, "node": "cli", "peer": "mid",
        "action": {"kind": "qdisc-replace", "side": "egress", "handle": "1", "qdisc": {"qdisc": "fq_codel"}}}]);
    let outcome = run(&doc);
    assert!(goodput_mbit(&outcome, "a", 4.0, 6.0) > 0.99 * 20.0 * 1448.0 / 1514.0);
}

const QDISCS: [&str; 12] = [
    "pfifo limit 3",
    "bfifo limit 100000",
    "codel ecn",
    "fq_codel memory_limit 100000",
    "pie ecn",
    "red limit 150000 avpkt 1000 adaptive bandwidth 10mbit ecn",
    "sfq limit 20",
    "dualpi2 limit 50",
    "cake bandwidth 20mbit memlimit 100000",
    "tbf rate 20mbit burst 10000 limit 60000",
    "cnq_cobalt bandwidth 20mbit",
    "netem delay 1ms 1ms reorder 5% 50% corrupt 2% duplicate 2% limit 30",
];
/// At the client's own device.
const HOSTS: [Option<&str>; 8] = [
    None,
    Some("fq"),
    Some("fq_codel limit 5"),
    Some("tbf rate 20mbit burst 10000 limit 20000"),
    Some("cake bandwidth 30mbit"),
    Some("netem delay 2ms rate 50mbit corrupt 2% limit 20"),
    Some("netem duplicate 5% loss 2%"),
    Some("dualpi2 limit 4"),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_count_of_and_the_same_document_gives_the_same_run(
        qdisc in prop::sample::select(&QDISCS[..]),
        host in prop::sample::select(&HOSTS[..]),
        cc in prop::sample::select(&["reno", "cubic", "bbr", "prague@2020-08", "dctcp"][..]),
        offloads in prop::array::uniform3(prop::bool::weighted(0.8)),
        rate_bps in prop::sample::select(&[None, None, Some(30_000_000)][..]),
        rtt_ms in prop::sample::select(&[0.3, 10.0, 80.0][..]),
        loss in prop::sample::select(&[0.0, 0.001, 0.05][..]),
        mtu in prop::sample::select(&[1500, 1500, 576, 9000][..]),
        tcp_ecn in 0..=5_u8,
        seed in 0..1000_u64,
    ) {
        let flows = vec![flow("a", cc), flow("b", "cubic")];
        let dumbbell = Dumbbell { qdisc, rate: "50mbit", rtt_ms, flows, tcp_ecn, seed, duration_s: 1.5 };
        let mut doc = document(&dumbbell, offloads);
        doc["links"][1]["loss"] = json!(loss);
        for link in doc["links"].as_array_mut().unwrap() {
            link["mtu"] = json!(mtu);
        }
        doc["links"][0]["rate_bps"] = json!(rate_bps);
        if let Some(qdisc) = host {
            let egress = json!({"node": "cli", "peer": "mid", "tx_queue_len": 1000, "egress": {"qdisc": qdisc}});
            doc["interfaces"].as_array_mut().unwrap().push(egress);
        }
        let first = run(&doc);
        let mut arrived = 0;
        for f in first.counters()["flows"].as_object().unwrap().values() {
            let received = f["received_bytes"].as_u64().unwrap();
            arrived += received;
            prop_assert!(received <= f["sent_bytes"].as_u64().unwrap(), "more arrived than was sent: {f}");
        }
        // Where nothing is lost by chance, not both SYNs are.
        if loss == 0.0 && !host.is_some_and(|q| q.contains("loss") || q.contains("corrupt")) {
            prop_assert!(arrived > 0);
        }
        let second = run(&doc);
        prop_assert_eq!(first.counters, second.counters);
        prop_assert_eq!(first.series.value, second.series.value);
    }
}
