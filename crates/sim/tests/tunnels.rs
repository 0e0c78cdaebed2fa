//! Tunnels in whole runs, against arithmetic that can be done by hand.

use crate::common::{Dumbbell, flow, goodput_mbit};
use bakeoff_sim::{Outcome, check, simulate};
use pcap_file::pcapng::{Block, PcapNgReader};
use serde_json::{Value, json};

fn tunnel(kind: &str) -> Value {
    let (kind, cipher) = kind.split_once(' ').map_or((kind, None), |(kind, cipher)| (kind, Some(cipher)));
    let mut t = json!({"name": "vpn", "kind": kind, "ends": ["cli", "srv"], "inner_hash": false});
    if let Some(cipher) = cipher {
        t["cipher"] = json!(cipher);
        t["replay_window"] = json!(32);
    }
    t
}

fn through(mut flow: Value) -> Value {
    flow["tunnel"] = json!("vpn");
    flow
}

/// Datagrams of `size` bytes every `every_s` seconds, from cli to srv.
fn train(name: &str, size: u32, every_s: f64, start_s: f64, dscp: u8) -> Value {
    json!({"name": name, "from": "cli", "to": "srv", "cc": "none", "transport": "udp", "dscp": dscp, "start_s": start_s,
           "stop_s": 1e6, "source": {"kind": "periodic", "size": size, "count": 1, "every_s": every_s}, "tunnel": "vpn"})
}

fn document(d: &Dumbbell, tunnel: &Value) -> Value {
    let mut doc = d.document();
    doc["tunnels"] = json!([tunnel]);
    doc["probes"] = json!([]);
    doc
}

fn run(doc: &Value) -> Outcome {
    simulate(&doc.to_string()).expect("the document is valid")
}

const KINDS: [(&str, f64, f64); 6] = [
    // kind, TCP payload of a full packet (MTU inside - 52), its outer frame (outer IP + 14)
    ("wireguard", 1368.0, 1494.0),
    ("ipsec aes-gcm", 1394.0, 1514.0),
    ("ipsec aes-cbc-hmac-sha256", 1386.0, 1514.0),
    ("fou", 1420.0, 1514.0),
    ("gre", 1424.0, 1514.0),
    ("vxlan", 1398.0, 1514.0),
];

#[test]
fn goodput_is_the_rate_times_payload_over_outer_frame() {
    for (kind, payload, frame) in KINDS {
        // without the 12 bytes of AccECN's option
        let d = Dumbbell {
            flows: vec![through(flow("reno", "reno"))],
            duration_s: 12.0,
            tcp_ecn: 1,
            ..Dumbbell::default()
        };
        let ours = goodput_mbit(&run(&document(&d, &tunnel(kind))), "reno", 6.0, 12.0);
        assert!((ours - 50.0 * payload / frame).abs() < 0.005, "{kind}: {ours}");
    }
}

/// The pairs of full packets that follow each other at cli's interface in no time, and all full packets.
fn at_once(kind: &str) -> (usize, usize) {
    let d = Dumbbell { flows: vec![through(flow("bbr", "bbr"))], duration_s: 6.0, ..Dumbbell::default() };
    let mut doc = document(&d, &tunnel(kind));
    doc["captures"] = json!(["cli>mid"]);
    let outcome = run(&doc);
    let mut reader = PcapNgReader::new(&outcome.captures[0].1[..]).expect("a section");
    let mut times = Vec::new();
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block.expect("a block") else { continue };
        if packet.original_len > 1400 {
            times.push(packet.timestamp.as_nanos());
        }
    }
    (times.windows(2).filter(|pair| pair[0] == pair[1]).count(), times.len())
}

#[test]
fn linux_sends_one_segment_at_a_time_into_ipsec_alone() {
    let (together, all) = at_once("ipsec aes-gcm");
    // the first ten are not paced
    assert!(all > 10_000 && together <= 10, "{together} of {all}");
    let (together, all) = at_once("gre");
    assert!(together > all / 4, "{together} of {all}");
}

#[test]
fn every_mark_outside_is_counted_inside() {
    for (kind, ..) in KINDS {
        let d = Dumbbell {
            flows: vec![through(flow("reno", "reno"))],
            qdisc: "codel ecn",
            duration_s: 12.0,
            ..Dumbbell::default()
        };
        let outcome = run(&document(&d, &tunnel(kind)));
        let sender = outcome.counters()["flows"]["reno"].clone();
        let queue = outcome.counters()["queues"]["mid>srv"].clone();
        let marks = queue["marks"].as_u64().unwrap();
        assert_eq!(sender["ecn"], "accecn");
        assert!(marks > 5);
        // a mark may still be on its way
        assert!(marks - sender["delivered_ce"].as_u64().unwrap() <= 1, "{kind}: {marks} {sender}");
        assert_eq!(queue["drops"]["aqm"], 0);
        let ways = outcome.counters()["tunnels"]["vpn"].clone();
        assert_eq!(ways["cli>srv"]["ecn"], 0);
        // by now some are in netem and in the queue
        assert!(ways["cli>srv"]["sent"].as_u64() > ways["cli>srv"]["received"].as_u64());
        assert!(ways["srv>cli"]["received"].as_u64() > Some(10_000));
    }
}

#[test]
fn ce_on_what_is_not_ecn_capable_is_dropped_as_the_decapsulator_does() {
    for (kind, dropped) in
        [("wireguard", false), ("ipsec aes-gcm", false), ("fou", true), ("gre", true), ("vxlan", true)]
    {
        let d = Dumbbell {
            flows: vec![train("u", 1000, 0.01, 0.005, 0)],
            duration_s: 2.0,
            ..Dumbbell::default()
        };
        let mut doc = document(&d, &tunnel(kind));
        doc["interfaces"][0]["mangle"] = json!([{"match": {"ecn": "not-ect"}, "set_ecn": "ce"}]);
        let outcome = run(&doc);
        // the last of 200, sent at 1.995 s, needs 10 ms
        let arrived = outcome.counters()["flows"]["u"]["received_bytes"].as_u64().unwrap() / 1000;
        assert_eq!(arrived, if dropped { 0 } else { 199 }, "{kind}");
        assert_eq!(outcome.counters()["tunnels"]["vpn"]["cli>srv"]["ecn"], if dropped { 199 } else { 0 });
    }
}

#[test]
fn nobody_on_the_way_sees_what_is_inside() {
    let bleach = json!([{"match": {"proto": "tcp"}, "set_ecn": "not-ect"}]);
    for (kind, proto) in [("wireguard", "udp"), ("gre", "tcp")] {
        let d = Dumbbell {
            flows: vec![through(flow("reno", "reno"))],
            qdisc: "codel ecn",
            duration_s: 6.0,
            ..Dumbbell::default()
        };
        let mut doc = document(&d, &tunnel(kind));
        doc["interfaces"][0]["mangle"] = bleach.clone();
        assert!(run(&doc).counters()["queues"]["mid>srv"]["marks"].as_u64() > Some(0));
        // the outer packet is what a rule can take
        doc["interfaces"][0]["mangle"][0]["match"] = json!({"proto": proto, "dscp": 0});
        let marks = run(&doc).counters()["queues"]["mid>srv"]["marks"].as_u64().unwrap();
        assert_eq!(marks == 0, proto == "udp", "{kind}");
    }
}

#[test]
fn one_outer_hash_makes_one_queue_of_all_inner_flows() {
    // 45 Mbit/s of datagrams and a reno flow, 50 Mbit/s: two queues share it by halves, one leaves reno the rest
    let load = train("load", 1200, 1200.0 * 8.0 / 45e6, 0.0, 0);
    let share = |inner_hash: bool| {
        let d = Dumbbell {
            flows: vec![through(flow("reno", "reno")), load.clone()],
            qdisc: "fq_codel",
            duration_s: 20.0,
            ..Dumbbell::default()
        };
        let mut t = tunnel("wireguard");
        t["inner_hash"] = json!(inner_hash);
        goodput_mbit(&run(&document(&d, &t)), "reno", 10.0, 20.0)
    };
    let fair = 25.0 * 1368.0 / 1494.0;
    let (apart, together) = (share(true), share(false));
    // codel keeps one reno below its half
    assert!(apart > 0.85 * fair && apart < 1.01 * fair, "{apart} of {fair}");
    assert!(together < fair / 3.0, "{together} of {fair}");
}

#[test]
fn duplicates_stop_at_the_window() {
    let d = Dumbbell { flows: vec![train("u", 500, 0.001, 0.0, 0)], duration_s: 5.0, ..Dumbbell::default() };
    for (kind, caught) in [("wireguard", true), ("ipsec aes-gcm", true), ("gre", false)] {
        let mut doc = document(&d, &tunnel(kind));
        doc["interfaces"][0]["ingress"]["qdisc"] = json!("netem delay 10ms duplicate 20% limit 1000");
        let outcome = run(&doc);
        let way = outcome.counters()["tunnels"]["vpn"]["cli>srv"].clone();
        let (sent, received) = (way["sent"].as_u64().unwrap(), way["received"].as_u64().unwrap());
        let doubled = way["replay"].as_u64().unwrap();
        assert_eq!(doubled > 900, caught, "{kind} {way}");
        assert_eq!(received > sent, !caught, "{kind} {way}");
    }
}

/// Rare packets that take 100 ms longer, through IPsec with this window, beside 20 Mbit/s of packets
/// of 1500 bytes: the fraction of the rare ones that is dropped.
fn late_losses(window: u32) -> f64 {
    // 1410 payload + 28 = 1438 inside, 1500 outside; 1500 * 8 / 20e6 = 0.6 ms
    let flows = vec![train("fast", 1410, 0.0006, 0.0, 0), train("late", 1410, 0.5, 0.000_13, 1)];
    let d = Dumbbell { flows, duration_s: 20.0, rate: "1gbit", ..Dumbbell::default() };
    let mut t = tunnel("ipsec aes-cbc-hmac-sha256");
    t["replay_window"] = json!(window);
    let mut doc = document(&d, &t);
    let class = |id: &str, delay: &str, filters: Value| {
        json!({"id": id, "class": "rate 1gbps ceil 2gbps", "filters": filters,
               "child": {"qdisc": format!("netem delay {delay} limit 10000")}})
    };
    // XFRM copies the DSCP, so the outer packet can be told by it
    doc["interfaces"][0]["ingress"] = json!({"qdisc": "htb default 1", "classes": [
        class("1", "10ms", json!([])), class("2", "110ms", json!([{"dscp": 1}]))]});
    let outcome = run(&doc);
    let way = outcome.counters()["tunnels"]["vpn"]["cli>srv"].clone();
    let flows = outcome.counters()["flows"].clone();
    assert_eq!(flows["late"]["sent_packets"], 40);
    assert_eq!(way["replay"], 0);
    way["replay_window"].as_f64().expect("a count") / 40.0
}

#[test]
fn a_delay_of_100_ms_at_20_mbit_needs_at_least_166_packets() {
    // 20e6 / 8 / 1500 / 10 = 166.7: a late packet is overtaken by 166 or 167, and dropped if that is the window or more
    assert!((late_losses(166) - 1.0).abs() < 1e-9);
    let mixed = late_losses(167);
    assert!(mixed > 0.0 && mixed < 1.0, "{mixed}");
    assert!(late_losses(168) < 1e-9);
    assert!((late_losses(32) - 1.0).abs() < 1e-9);
    assert!(late_losses(0) < 1e-9);
}

#[test]
fn what_cannot_be_is_refused_by_place() {
    let d = Dumbbell { flows: vec![through(flow("reno", "reno"))], ..Dumbbell::default() };
    let good = document(&d, &tunnel("ipsec aes-gcm"));
    let refused = |at: &str, value: Value| {
        let mut doc = good.clone();
        *doc.pointer_mut(at).unwrap_or_else(|| panic!("{at}")) = value;
        check(&doc.to_string()).unwrap_err().to_string()
    };
    assert!(
        check(&good.to_string())
            .unwrap()
            .starts_with("vpn: ipsec aes-gcm cli srv mtu 1446 replay-window 32 hash outer\n")
    );
    for (at, value, message) in [
        ("/tunnels/0/kind", json!("l2tp"), "tunnels[0].cipher: only valid for ipsec"),
        (
            "/tunnels/0/cipher",
            json!("rot13"),
            "tunnels[0].cipher: 'rot13' is not aes-gcm or aes-cbc-hmac-sha256",
        ),
        (
            "/tunnels/0/replay_window",
            json!(null),
            "tunnels[0].replay_window: missing; expected packets, 0 for no check",
        ),
        ("/tunnels/0/ends/1", json!("cli"), "tunnels[0].ends: 'cli' twice; expected two hosts"),
        ("/tunnels/0/ends/1", json!("far"), "tunnels[0].ends[1]: no node 'far'; nodes: cli, mid, srv"),
        ("/tunnels/0/ends/1", json!("mid"), "flows[0].tunnel: 'vpn' joins cli and mid, not cli and srv"),
        ("/flows/0/tunnel", json!("vpm"), "flows[0].tunnel: no tunnel 'vpm'; tunnels: vpn"),
        (
            "/flows/0",
            train("u", 1419, 0.1, 0.0, 0),
            "flows[0].source.size: an IP packet of 1447 bytes does not fit into 'vpn': 1446",
        ),
        (
            "/tunnels/0",
            json!({"name": "vpn", "kind": "gre", "ends": ["cli", "srv"], "inner_hash": true, "replay_window": 32}),
            "tunnels[0].replay_window: 'gre' has no sequence numbers",
        ),
        (
            "/tunnels/0",
            json!({"name": "vpn", "kind": "wireguard", "ends": ["cli", "srv"], "inner_hash": true, "replay_window": 100}),
            "tunnels[0].replay_window: 100: WireGuard counts in blocks of 64; expected 8128, or 1984 as before May 2020",
        ),
        (
            "/tunnels/0",
            json!({"name": "vpn", "kind": "l2tp", "ends": ["cli", "srv"], "inner_hash": true}),
            "tunnels[0].kind: 'l2tp' is not wireguard, ipsec, fou, gre or vxlan",
        ),
        (
            "/interfaces/0",
            json!({"node": "mid", "peer": "cli", "tx_queue_len": 1000,
                                 "mangle": [{"match": {"flow": "reno"}, "set_dscp": 1}]}),
            "interfaces[0].mangle[0].match.flow: 'reno' is inside the tunnel 'vpn'",
        ),
        (
            "/interfaces/0/egress/classes/0/child",
            json!({"qdisc": "htb default 1", "classes": [
            {"id": "1", "class": "rate 1mbit", "filters": [{"flow": "reno"}]}]}),
            "interfaces[0].egress.classes[0].child.classes[0].filters[0].flow: 'reno' is inside the tunnel 'vpn'",
        ),
    ] {
        assert_eq!(refused(at, value), message);
    }
}
