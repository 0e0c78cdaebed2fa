//! counters.json tells each count under its own name.

use crate::common::{Dumbbell, flow};
use bakeoff_sim::simulate;
use serde_json::{Value, json};

fn number(of: &Value, path: &str) -> u64 {
    of.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("no {path} in {of}"))
}

/// A train of datagrams without end.
fn datagrams(rate_bps: u64) -> Value {
    let mut datagrams = flow("datagrams", "reno");
    datagrams["transport"] = json!("udp");
    datagrams["source"] = json!({"kind": "rate", "rate_bps": rate_bps, "size": 1000});
    datagrams
}

#[test]
fn keys_stand_in_the_order_of_the_alphabet() {
    let flows = ["b", "c", "a"].map(|name| flow(name, "cubic")).to_vec();
    let outcome = Dumbbell { flows, duration_s: 1.0, ..Dumbbell::default() }.run();
    let counters = outcome.counters();
    // `Value` sorts its keys. Numbers may be written in another way than they were read.
    let without_numbers = |text: &str| text.replace(|c: char| c.is_ascii_digit() || c == '.', "");
    assert_eq!(without_numbers(&outcome.counters), without_numbers(&counters.to_string()));
    for table in ["flows", "queues"] {
        assert!(counters[table].as_object().unwrap().len() > 1, "{table}");
    }
}

#[test]
fn what_was_sent_arrived_or_was_dropped_or_waits() {
    let counters = Dumbbell { qdisc: "pfifo limit 50", ..Dumbbell::default() }.run().counters();
    for unit in ["", "_bytes"] {
        let of = |what: &str| number(&counters, &format!("/conservation/{what}{unit}"));
        assert!(of("dropped") > 0 && of("queued") > 0, "{counters}");
        assert_eq!(of("sent"), of("delivered") + of("dropped") + of("queued"), "{unit}");
    }
}

/// 60 Mbit/s of datagrams through 50: each queue drops by one cause alone. PIE gives up marking above a probability of a tenth.
#[test]
fn drops_stand_under_their_cause() {
    for (qdisc, ecn, cause) in [
        ("pfifo limit 50", "not-ect", "overlimit"),
        ("codel limit 100000", "not-ect", "aqm"),
        ("pie limit 100000 ecn", "ect0", "overload"),
        ("netem loss 5% limit 100000", "not-ect", "loss"),
    ] {
        let d = Dumbbell { flows: vec![datagrams(60_000_000)], qdisc, ..Dumbbell::default() };
        let mut doc = d.document();
        doc["probes"] = json!([]);
        doc["interfaces"][0]["mangle"] = json!([{"match": {"proto": "udp"}, "set_ecn": ecn}]);
        let counters = simulate(&doc.to_string()).unwrap().counters();
        // A queue that could have a child is told apart from the htb around it.
        let name = if qdisc.starts_with("netem") { "mid>srv/1" } else { "mid>srv" };
        let told = &counters["queues"][name]["drops"];
        for each in ["overlimit", "aqm", "overload", "loss"] {
            assert_eq!(number(told, &format!("/{each}")) > 0, each == cause, "{qdisc}: {told}");
        }
    }
}

/// Full frames have 1514 bytes; the SYN and forty pings are shorter.
#[test]
fn a_queue_counts_segments() {
    let mut doc = Dumbbell { duration_s: 2.0, ..Dumbbell::default() }.document();
    doc["nodes"][0]["offloads"] = json!(true);
    let counters = simulate(&doc.to_string()).unwrap().counters();
    let [sent, bytes] =
        ["sent", "sent_bytes"].map(|key| number(&counters["queues"]["mid>srv"], &format!("/{key}")));
    assert!((sent - 41) * 1514 < bytes && bytes < sent * 1514, "{sent} {bytes}");
    assert!(number(&counters["queues"]["mid>srv"], "/flows/reno/packets") < sent / 2, "{sent}");
}

#[test]
fn a_flow_that_loses_its_link_probes_and_waits() {
    let mut doc = Dumbbell { duration_s: 6.0, ..Dumbbell::default() }.document();
    doc["changes"] = json!([{"at_s": 3.0, "node": "mid", "peer": "srv",
        "action": {"kind": "link", "up": false, "rate_bps": null, "delay_s": null, "loss": null}}]);
    let told = simulate(&doc.to_string()).unwrap().counters()["flows"]["reno"].clone();
    let [tlps, rtos, undos, duplicates] =
        ["tlps", "rtos", "undos", "duplicates"].map(|key| number(&told, &format!("/{key}")));
    // The probe after two round trips, timeouts that double, and nothing that would take them back.
    assert_eq!((tlps, undos, duplicates), (1, 0, 0));
    assert!((3..=5).contains(&rtos), "{told}");
    assert!(number(&told, "/acks") > 1000, "{told}");
}

#[test]
fn objects_are_offered_then_begun_then_ended() {
    let objects = json!([[0.1, 1000], [0.5, 30_000_000], [2.0, 1000]]);
    let mut web = flow("web", "reno");
    web["source"] = json!({"kind": "short", "objects": objects});
    let told = Dumbbell { flows: vec![web], duration_s: 1.0, ..Dumbbell::default() }.run().counters();
    assert_eq!(told["flows"]["web"]["objects"], json!({"offered": 3, "begun": 2, "ended": 1}));
}
