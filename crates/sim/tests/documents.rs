//! What a document may not say, and what a run may not cost: each is refused with its place, its value and what to change.

use std::fs;

use crate::common::{Dumbbell, flow};
use bakeoff_sim::{Budget, Registry, check, simulate, simulate_within};
use serde_json::{Value, json};

fn spoiled(spoil: impl Fn(&mut Value)) -> String {
    let mut doc = Dumbbell { duration_s: 0.2, ..Dumbbell::default() }.document();
    spoil(&mut doc);
    check(&doc.to_string()).expect_err("the document is refused").to_string()
}

#[test]
fn every_number_has_bounds() {
    let is = |spoil: &dyn Fn(&mut Value), message: &str| {
        let found = spoiled(spoil);
        assert!(found.starts_with(message), "{found}\n{message}");
    };
    is(&|d| d["duration_s"] = json!(1e308), "duration_s: 1e308s is not between 0s and 1000000000s");
    is(
        &|d| d["sample_interval_s"] = json!(1e-9),
        "sample_interval_s: 1ns is not between 100us and 1000000000s",
    );
    is(&|d| d["window_s"] = json!([-1.0, 2.0]), "window_s[0]: -1s is not between 0s and 1000000000s");
    is(&|d| d["nodes"][0]["hz"] = json!(0), "nodes[0].hz: 0 is not between 100 and 1000");
    let rmem = "net.ipv4.tcp_rmem";
    is(
        &|d| d["nodes"][0]["sysctls"][rmem] = json!("1 2 2147483648"),
        "nodes[0].sysctls.net.ipv4.tcp_rmem: 2147483648 is not between 0 and 2147483647",
    );
    is(&|d| d["links"][0]["mtu"] = json!(64), "links[0].mtu: 64 is not between 128 and 65535");
    is(&|d| d["links"][1]["delay_s"] = json!(-1e-9), "links[1].delay_s: -1ns is not between 0s and 1000s");
    is(
        &|d| d["links"][1]["rate_bps"] = json!(0),
        "links[1].rate_bps: 0bit is not between 1bit and 10000gbit",
    );
    is(&|d| d["links"][1]["loss"] = json!(1.5), "links[1].loss: 1.5 is not a probability from 0 to 1");
    is(&|d| d["links"][1]["ends"] = json!(["mid", "mid"]), "links[1].ends: 'mid' twice; expected two nodes");
    is(&|d| d["flows"][0]["dscp"] = json!(64), "flows[0].dscp: 64 is not between 0 and 63");
    is(
        &|d| d["flows"][0]["max_pacing_rate_bps"] = json!(u64::MAX),
        "flows[0].max_pacing_rate_bps: 18446744073709551615bit is",
    );
    let burst = json!({"kind": "periodic", "size": 100, "count": 10_001, "every_s": 1.0});
    is(
        &|d| d["flows"][0]["source"] = burst.clone(),
        "flows[0].source.count: 10001 is not between 1 and 10000",
    );
    is(
        &|d| d["probes"][0]["every_s"] = json!(1e-9),
        "probes[0].every_s: 1ns is not between 1us and 1000000000s",
    );
    is(&|d| d["probes"][0]["size"] = json!(27), "probes[0].size: 27 is not between 28 and 65535");
    let tunnel = |window: u64| json!([{"name": "t", "kind": "ipsec", "ends": ["cli", "srv"], "cipher": "aes-gcm", "replay_window": window, "inner_hash": false}]);
    is(&|d| d["tunnels"] = tunnel(1 << 31), "tunnels[0].replay_window: 2147483648 is not between 0 and 8192");
    is(
        &|d| {
            d["tunnels"] = tunnel(64);
            d["links"][0]["mtu"] = json!(150);
        },
        // 150 - 20 - 8 - 8 - 16 = 98 bytes, in blocks of 4 with 2 bytes of trailer: 96 - 2
        "tunnels[0]: 'ipsec' leaves an MTU of 94 bytes on links of 150; expected at least 128",
    );
    let many: Vec<Value> = (0..65_536).map(|i| flow(&i.to_string(), "reno")).collect();
    is(&|d| d["flows"] = json!(many), "flows and probes: 65537 of them; at most 65535");
}

/// Headers, timestamps, three SACK blocks and AccECN's option leave room for payload in the least MTU, and the largest probe is captured whole.
#[test]
fn the_edges_of_the_bounds_run() {
    let mut doc = Dumbbell { duration_s: 0.3, ..Dumbbell::default() }.document();
    for link in [0, 1] {
        doc["links"][link]["mtu"] = json!(128);
    }
    doc["flows"][0]["cc"] = json!("prague");
    let outcome = simulate(&doc.to_string()).expect("the least MTU is enough");
    assert_eq!(outcome.counters()["flows"]["reno"]["ecn"], "accecn");
    assert_eq!(outcome.counters()["flows"]["reno"]["mss"], 128 - 52);
    for link in [0, 1] {
        doc["links"][link]["mtu"] = json!(65_535);
    }
    doc["probes"][0]["size"] = json!(65_535);
    doc["captures"] = json!(["cli>mid"]);
    for proto in ["icmp", "udp"] {
        doc["probes"][0]["proto"] = json!(proto);
        let outcome = simulate(&doc.to_string()).expect("the largest packet is seen");
        assert_eq!(outcome.counters()["probes"]["ping"]["sent"], 7);
    }
}

#[test]
fn a_budget_that_is_spent_ends_the_run_and_says_on_what() {
    let doc = |every_s: f64| {
        let mut doc = Dumbbell { duration_s: 1.0, ..Dumbbell::default() }.document();
        doc["flows"] = json!([]);
        doc["probes"][0]["every_s"] = json!(every_s);
        doc.to_string()
    };
    let run = |every_s: f64, events: u64, bytes: u64| {
        simulate_within(&doc(every_s), &Registry::default(), Budget { events, bytes, exact: false })
            .map_err(|e| e.to_string())
    };
    // A request every millisecond from 0 to the end.
    let usual = run(1e-3, 1_000_000, 10_000_000).expect("within the budget");
    assert_eq!(usual.counters()["probes"]["ping"]["sent"], 1001);
    let handled = usual.counters()["events"].as_u64().expect("a count");
    assert!(run(1e-3, handled + 1, 10_000_000).is_ok());
    let message = run(1e-3, handled / 2, 10_000_000).expect_err("too many events");
    let wanted = format!(
        "{} events are handled, and its budget is {}; most is for probes[0].every_s ('ping'), which sent",
        handled / 2 + 1,
        handled / 2
    );
    assert!(
        message.contains(&wanted)
            && message.ends_with("set the environment variable BAKEOFF_SIM_EVENTS higher"),
        "{message}"
    );
    // A request every microsecond: what is known of a million of them alone takes 16 MB.
    let message = run(1e-6, 100_000_000, 1_000_000).expect_err("too many bytes");
    assert!(
        message.contains("and its budget is 1000000;") && message.ends_with("BAKEOFF_SIM_BYTES higher"),
        "{message}"
    );
}

/// A burst is one event, and as much work as its packets.
#[test]
fn bursts_are_charged_to_the_budget() {
    let mut doc = Dumbbell { duration_s: 1.0, ..Dumbbell::default() }.document();
    doc["flows"][0]["transport"] = json!("udp");
    doc["flows"][0]["source"] = json!({"kind": "periodic", "size": 160, "count": 10_000, "every_s": 1e-6});
    let budget = Budget { events: 200_000, bytes: 1_000_000_000, ..Budget::default() };
    let message = simulate_within(&doc.to_string(), &Registry::default(), budget)
        .expect_err("10^10 datagrams")
        .to_string();
    assert!(message.contains("most is for flows[0] ('reno')"), "{message}");
}

/// Neither link has a rate or a delay, so that each ACK comes back, and lets the next packet go, at the instant of the first.
#[test]
fn a_round_trip_that_takes_no_time_ends_with_the_budget() {
    let mut doc = Dumbbell { duration_s: 1.0, ..Dumbbell::default() }.document();
    doc["interfaces"] = json!([]);
    let budget = Budget { events: 200_000, bytes: 1_000_000_000, ..Budget::default() };
    let message = simulate_within(&doc.to_string(), &Registry::default(), budget)
        .expect_err("packets without end")
        .to_string();
    assert!(message.starts_with("the run is ended at 0.000 s of 1 s: "), "{message}");
    assert!(message.contains("most is for flows[0] ('reno'), which sent"), "{message}");
    assert!(message.contains("packets, on a path that takes no time; change that"), "{message}");
}

/// Documents that once did harm.
#[test]
fn kept_documents_do_none() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/documents");
    let mut kept = 0;
    for entry in fs::read_dir(folder).expect("the folder of kept documents") {
        let path = entry.expect("an entry").path();
        let text = fs::read_to_string(&path).expect("a text");
        let budget = Budget { events: 200_000, bytes: 50_000_000, ..Budget::default() };
        let answer = simulate_within(&text, &Registry::default(), budget);
        assert!(!matches!(answer, Err(bakeoff_sim::SimError::Broken(_))), "{}: {answer:?}", path.display());
        kept += 1;
    }
    assert!(kept > 0);
}
