//! The captures of a whole run hold every packet that the counters count, as valid frames.

use crate::common::{Dumbbell, flow};
use bakeoff_sim::{Outcome, simulate};
use etherparse::{Ipv4Header, NetSlice, SlicedPacket, TcpHeader, TransportSlice};
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::blocks::section_header::SectionHeaderOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use serde_json::{Value, json};

fn document(captures: &[&str]) -> Value {
    let flows = vec![flow("prague", "prague@2020-08"), flow("cubic", "cubic")];
    let mut doc = Dumbbell { qdisc: "codel ecn", flows, duration_s: 4.0, ..Dumbbell::default() }.document();
    doc["captures"] = json!(captures);
    doc
}

fn run(captures: &[&str]) -> Outcome {
    simulate(&document(captures).to_string()).expect("the document is valid")
}

struct Frame {
    time_ns: u128,
    length: u32,
    ip: Ipv4Header,
    tcp: Option<TcpHeader>,
}

/// Reads a capture back; every length and checksum is computed anew from the whole frame.
fn frames(outcome: &Outcome, name: &str) -> Vec<Frame> {
    let (_, file) = outcome.captures.iter().find(|c| c.0 == name).expect("captured");
    let mut reader = PcapNgReader::new(&file[..]).expect("a section");
    let mut frames = Vec::new();
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block.expect("a block") else { continue };
        let mut bytes = packet.data.to_vec();
        bytes.resize(packet.original_len as usize, 0);
        let sliced = SlicedPacket::from_ethernet(&bytes).expect("a frame");
        let Some(NetSlice::Ipv4(ip)) = &sliced.net else { panic!("not IPv4") };
        let ip = ip.header().to_header();
        assert_eq!(ip.header_checksum, ip.calc_header_checksum());
        assert_eq!(u32::from(ip.total_len) + 14, packet.original_len);
        let tcp = match &sliced.transport {
            Some(TransportSlice::Tcp(tcp)) => {
                let header = tcp.to_header();
                assert_eq!(Ok(header.checksum), header.calc_checksum_ipv4(&ip, tcp.payload()));
                Some(header)
            }
            Some(TransportSlice::Icmpv4(_)) => None,
            other => panic!("{other:?}"),
        };
        frames.push(Frame { time_ns: packet.timestamp.as_nanos(), length: packet.original_len, ip, tcp });
    }
    frames
}

#[test]
fn a_capture_agrees_with_the_counters() {
    let outcome = run(&["mid>srv", "srv>mid"]);
    let queue = outcome.counters()["queues"]["mid>srv"].clone();
    let sent = frames(&outcome, "mid>srv");
    assert_eq!(json!(sent.len()), queue["sent"]);
    assert_eq!(json!(sent.iter().map(|f| u64::from(f.length)).sum::<u64>()), queue["sent_bytes"]);
    assert!(sent.is_sorted_by_key(|f| f.time_ns));
    let ce = sent.iter().filter(|f| f.ip.ecn.value() == 3).count();
    assert!(ce > 0, "codel marks");
    assert_eq!(json!(ce), queue["marks"]);

    // What the last ACK acknowledges, behind the number of the SYN/ACK's own acknowledgement, is what arrived.
    let acks = frames(&outcome, "srv>mid");
    for (port, name) in [(5201, "prague"), (5202, "cubic")] {
        let numbers: Vec<u32> = acks
            .iter()
            .filter_map(|f| f.tcp.as_ref().filter(|t| t.source_port == port))
            .map(|t| t.acknowledgment_number)
            .collect();
        let acknowledged = numbers.last().expect("ACKs").wrapping_sub(numbers[0]);
        let received = outcome.counters()["flows"][name]["received_bytes"].as_u64().expect("counted");
        // A delayed ACK may be owed at the end: less than two segments.
        assert!((0..2 * 1448).contains(&(received - u64::from(acknowledged))), "{received} {acknowledged}");
    }
}

/// Arrival is captured before rewriting: what mid receives from cli is what cli sent.
#[test]
fn both_ends_of_a_cable_see_the_same() {
    let mut doc = document(&["cli>mid", "mid<cli"]);
    doc["interfaces"][0]["mangle"] = json!([{"match": {"proto": "tcp"}, "set_ecn": "not-ect"}]);
    let outcome = simulate(&doc.to_string()).expect("the document is valid");
    let file =
        |name: &str| frames(&outcome, name).iter().map(|f| (f.time_ns, f.ip.clone())).collect::<Vec<_>>();
    let sent = file("cli>mid");
    assert!(sent.iter().any(|f| f.1.ecn.value() == 1), "Prague sends ECT(1)");
    assert_eq!(sent, file("mid<cli"));
}

/// Between mid and srv stand two routers more, which packets pass at once; both cables of the first are captured.
#[test]
fn routers_that_hand_on_see_what_passes() {
    let names = ["mid>one", "one<mid", "one>two", "two<one", "srv>two", "two>one", "one>mid", "mid<one"];
    let mut doc = document(&names);
    for name in ["one", "two"] {
        let node = json!({"name": name, "kind": "router", "hz": 250, "offloads": false, "sysctls": {}});
        doc["nodes"].as_array_mut().expect("a list").push(node);
    }
    let links = doc["links"].as_array_mut().expect("a list");
    assert_eq!(links[1]["ends"], json!(["mid", "srv"]));
    let cable = |ends: [&str; 2]| json!({"ends": ends, "rate_bps": null, "delay_s": 0.0, "mtu": 1500});
    links.splice(1.., [cable(["mid", "one"]), cable(["one", "two"]), cable(["two", "srv"])]);
    doc["interfaces"][1]["peer"] = json!("one");
    let outcome = simulate(&doc.to_string()).expect("the document is valid");
    let file =
        |name: &str| frames(&outcome, name).iter().map(|f| (f.time_ns, f.ip.clone())).collect::<Vec<_>>();
    let [there, back] = [&names[..4], &names[4..]];
    assert!(file(there[0]).len() > 1000 && file(back[0]).len() > 1000);
    for way in [there, back] {
        for name in way {
            assert_eq!(file(name), file(way[0]), "{name}");
        }
    }
}

#[test]
fn looking_changes_nothing() {
    let (seen, unseen) = (run(&["mid>srv"]), run(&[]));
    assert_eq!(seen.series, unseen.series);
    assert_eq!(seen.counters, unseen.counters);
    assert!(unseen.captures.is_empty());
}

#[test]
fn a_capture_elsewhere_is_refused_by_place() {
    let error = |name| simulate(&document(&[name]).to_string()).expect_err("refused").to_string();
    assert_eq!(error("mid>nix"), "captures[0].peer: no node 'nix'; nodes: cli, mid, srv");
    assert_eq!(error("cli>srv"), "captures[0]: no link between 'cli' and 'srv'");
    assert_eq!(error("mid"), "captures[0]: 'mid'; expected NODE>PEER or NODE<PEER");
}

/// The comments of the packets in the order of the file.
fn comments(outcome: &Outcome, name: &str) -> Vec<String> {
    let (_, file) = outcome.captures.iter().find(|c| c.0 == name).expect("captured");
    let mut reader = PcapNgReader::new(&file[..]).expect("a section");
    let mut comments = Vec::new();
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block.expect("a block") else { continue };
        comments.extend(packet.options.iter().filter_map(|option| match option {
            EnhancedPacketOption::Comment(text) => Some(text.to_string()),
            _ => None,
        }));
    }
    comments
}

/// CoDel marks and drops what it takes out of the queue: every mark is on a packet that leaves, also where it is seen
/// further on, and every drop but those after the last packet stands in a comment.
#[test]
fn comments_tell_who_marked_and_what_was_dropped() {
    let mut doc = document(&["mid>srv", "srv<mid"]);
    doc["flows"][1]["cc"] = json!("bbr");
    doc["interfaces"][1]["egress"]["classes"][0]["child"] = json!({"qdisc": "codel limit 40 ecn"});
    let outcome = simulate(&doc.to_string()).expect("the document is valid");
    let queue = outcome.counters()["queues"]["mid>srv"].clone();
    for place in ["mid>srv", "srv<mid"] {
        let told = comments(&outcome, place);
        let marked = told.iter().filter(|text| text.ends_with("CE set by mid>srv")).count();
        // What left and has not arrived when the run ends.
        let under_way = frames(&outcome, "mid>srv").len() - frames(&outcome, place).len();
        let marks = queue["marks"].as_u64().expect("counted") as usize;
        assert!(marked > 0 && (marks - under_way..=marks).contains(&marked), "{place}: {marked} of {marks}");
    }
    let dropped: u64 = comments(&outcome, "mid>srv")
        .iter()
        .filter_map(|text| text.strip_prefix("mid>srv dropped "))
        .map(|text| text.split(' ').next().and_then(|number| number.parse::<u64>().ok()).expect("a number"))
        .sum();
    let all: u64 = queue["drops"].as_object().expect("by cause").values().filter_map(Value::as_u64).sum();
    assert!(dropped > 0 && (all - 1..=all).contains(&dropped), "{dropped} of {all}");
}

#[test]
fn a_file_names_its_run_nodes_and_flows() {
    let outcome = run(&["mid>srv"]);
    let mut reader = PcapNgReader::new(&outcome.captures[0].1[..]).expect("a section");
    let Some(SectionHeaderOption::Comment(text)) = reader.section().options.first() else {
        panic!("no comment")
    };
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("bakeoff run ") && lines[0].contains(", seed 1, "), "{text}");
    assert!(lines.contains(&"flow cubic: cubic, from 10.0.0.1 to 10.0.0.3 port 5202"), "{text}");
    assert!(matches!(reader.next_block(), Some(Ok(Block::InterfaceDescription(_)))));
    let Some(Ok(Block::NameResolution(names))) = reader.next_block() else { panic!("no names") };
    assert_eq!(names.records.len(), 3);
}
