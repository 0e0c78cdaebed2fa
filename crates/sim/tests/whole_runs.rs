//! Whole runs against arithmetic that can be done by hand.

use crate::common::{Dumbbell, flow, goodput_mbit, series};
use bakeoff_sim::{SimError, check, simulate};
use serde_json::json;

#[test]
fn a_saturated_htb_passes_exactly_its_rate() {
    // goodput = rate * payload / 1514 frame: 47.82 Mbit/s with 1448 bytes; AccECN's option takes 12 of them
    for (tcp_ecn, payload) in [(1, 1448.0), (3, 1436.0)] {
        let outcome = Dumbbell { duration_s: 20.0, tcp_ecn, ..Dumbbell::default() }.run();
        let ours = goodput_mbit(&outcome, "reno", 10.0, 20.0);
        let ceiling = 50.0 * payload / 1514.0;
        // the ACKs go the other way; the probe takes 98 B / 50 ms = 0.016 Mbit/s of the link
        let probe = 98.0 * 8.0 * 20.0 / 1e6 * payload / 1514.0;
        assert!((ours - (ceiling - probe)).abs() < 0.005, "{ours} against {}", ceiling - probe);
    }
}

#[test]
fn an_idle_path_has_exactly_the_configured_round_trip_time() {
    // htb's bucket of 1600 B is full, so a lone 98-byte frame is not delayed: RTT = 2 * netem's delay
    let mut d = Dumbbell { flows: vec![], duration_s: 2.0, ..Dumbbell::default() };
    for rtt_ms in [0.0, 1.0, 20.0, 300.0] {
        d.rtt_ms = rtt_ms;
        let rtts = series(&d.run(), "probe", "ping", "rtt");
        assert!(rtts.len() > 30);
        assert!(rtts.iter().all(|&(_, rtt)| (rtt - rtt_ms / 1000.0).abs() < 1e-9), "{rtt_ms}: {rtts:?}");
    }
}

#[test]
fn slow_start_doubles_the_window_each_round_trip() {
    // IW 10; data leaves at 1 RTT, so at the middle of the n-th RTT after that cwnd is 10 * 2^n
    let outcome = Dumbbell { rate: "1gbit", rtt_ms: 100.0, duration_s: 0.6, ..Dumbbell::default() }.run();
    let cwnd = series(&outcome, "flow", "reno", "cwnd");
    let at = |t: f64| cwnd.iter().rev().find(|s| s.0 <= t + 1e-9).unwrap().1 as u32;
    assert_eq!([at(0.15), at(0.25), at(0.35), at(0.45)], [10, 20, 40, 80]);
}

#[test]
fn a_byte_limited_flow_delivers_every_byte_and_stops() {
    let mut f = flow("short", "reno");
    f["source"] = json!({"kind": "bytes", "bytes": 1_000_001});
    let outcome = Dumbbell { flows: vec![f], duration_s: 5.0, ..Dumbbell::default() }.run();
    assert_eq!(outcome.counters()["flows"]["short"]["received_bytes"], 1_000_001);
}

/// Packet or ACK is lost with 1 - (1 - p)^2: 36 % at p = 0.2. From one half on, waits that double have no finite mean.
#[test]
fn every_byte_arrives_once_through_heavy_random_loss() {
    for loss in [0.01, 0.1, 0.2] {
        let mut f = flow("short", "reno");
        f["source"] = json!({"kind": "bytes", "bytes": 300_000});
        let mut doc = Dumbbell { flows: vec![f], duration_s: 200.0, ..Dumbbell::default() }.document();
        doc["links"][1]["loss"] = json!(loss);
        let outcome = simulate(&doc.to_string()).unwrap();
        assert_eq!(outcome.counters()["flows"]["short"]["received_bytes"], 300_000, "loss {loss}");
    }
}

/// 5000 datagrams, one in ten lost: a standard deviation of sqrt(5000 * 0.1 * 0.9) = 21; four of them are 85.
#[test]
fn a_link_loses_in_the_direction_that_is_named() {
    let received = |loss: serde_json::Value| {
        let mut f = flow("datagrams", "reno");
        f["transport"] = json!("udp");
        f["source"] = json!({"kind": "rate", "rate_bps": 8_000_000, "size": 1000});
        let mut doc = Dumbbell { flows: vec![f], duration_s: 5.0, ..Dumbbell::default() }.document();
        doc["links"][1]["loss"] = loss;
        simulate(&doc.to_string())
            .map(|o| o.counters()["flows"]["datagrams"]["received_bytes"].as_u64().unwrap() / 1000)
    };
    let all = received(json!(0.0)).unwrap();
    assert_eq!(received(json!({"srv": 0.1})).unwrap(), all);
    let kept = received(json!({"mid": 0.1})).unwrap();
    assert!(kept.abs_diff(all - all / 10) < 85, "{kept} of {all}");
    assert_eq!(received(json!({"mid": 0.1, "srv": 0.1})).unwrap(), received(json!(0.1)).unwrap());
    let refused = received(json!({"cli": 0.1})).unwrap_err().to_string();
    assert!(refused.contains("links[1].loss: 'cli' is not an end of the link"), "{refused}");
}

#[test]
fn a_flow_survives_an_outage_by_backing_off() {
    let mut doc = Dumbbell { duration_s: 20.0, ..Dumbbell::default() }.document();
    let link = |up: bool, at: f64| {
        json!({"at_s": at, "node": "mid", "peer": "srv",
               "action": {"kind": "link", "up": up, "rate_bps": null, "delay_s": null, "loss": null}})
    };
    doc["changes"] = json!([link(false, 3.0), link(true, 6.0)]);
    let outcome = simulate(&doc.to_string()).unwrap();
    assert!(goodput_mbit(&outcome, "reno", 3.1, 6.0) < 0.01);
    // RTO about 0.4 s, doubling: retries at about 0.4, 1.2, 2.8, 6.0 s after the outage began
    let rtos = outcome.counters()["flows"]["reno"]["rtos"].as_u64().unwrap();
    assert!((3..=5).contains(&rtos), "{rtos}");
    assert!(goodput_mbit(&outcome, "reno", 15.0, 20.0) > 40.0);
}

#[test]
fn rfc3168_halves_once_per_round_trip_and_drops_nothing() {
    let outcome = Dumbbell { tcp_ecn: 1, qdisc: "codel ecn", duration_s: 30.0, ..Dumbbell::default() }.run();
    let flow = outcome.counters()["flows"]["reno"].clone();
    assert_eq!(flow["ecn"], "rfc3168");
    assert_eq!(flow["retransmits"], 0);
    let queue = outcome.counters()["queues"]["mid>srv"].clone();
    assert!(queue["marks"].as_u64().unwrap() > 10);
    // the only drops are of the Not-ECT pings
    assert_eq!(queue["flows"]["reno"]["drops"], 0);
}

#[test]
fn accecn_tells_the_sender_every_mark() {
    let outcome = Dumbbell { qdisc: "codel ecn", duration_s: 30.0, ..Dumbbell::default() }.run();
    let flow = outcome.counters()["flows"]["reno"].clone();
    assert_eq!(flow["ecn"], "accecn");
    let marks = outcome.counters()["queues"]["mid>srv"]["flows"]["reno"]["marks"].as_u64().unwrap();
    let reported = flow["delivered_ce"].as_u64().unwrap();
    // those of the last round trip are still under way
    assert!(marks >= reported && marks - reported <= 2, "{marks} {reported}");
    assert!(reported > 10);
}

#[test]
fn the_same_document_gives_the_same_bytes() {
    let d = Dumbbell {
        flows: vec![flow("a", "cubic"), flow("b", "reno")],
        qdisc: "pie ecn",
        duration_s: 10.0,
        ..Dumbbell::default()
    };
    let (one, two) = (d.run(), d.run());
    assert_eq!(one.series, two.series);
    assert_eq!(one.counters, two.counters);
    let other = Dumbbell { seed: 2, ..d }.run();
    assert_ne!(one.series, other.series, "the seed reaches PIE's draws");
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let refused = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut doc = Dumbbell::default().document();
        change(&mut doc);
        match (check(&doc.to_string()), simulate(&doc.to_string())) {
            (Err(a), Err(SimError::Refused(b))) => {
                assert_eq!(a, b);
                a.to_string()
            }
            other => panic!("not refused: {:?}", other.0),
        }
    };
    let is = |change: &dyn Fn(&mut serde_json::Value), expected: &str| assert_eq!(refused(change), expected);
    is(
        &|d| d["interfaces"][1]["egress"]["classes"][0]["child"]["qdisc"] = json!("fq_codel flow 1"),
        "interfaces[1].egress: class 1: unknown word 'flow' in 'fq_codel flow 1'; did you mean 'flows'?",
    );
    is(&|d| d["flows"][0]["to"] = json!("server"), "flows[0].to: no node 'server'; nodes: cli, mid, srv");
    is(&|d| d["duration_s"] = json!(-1.0), "duration_s: -1 is not a time above 0");
    is(&|d| d["format"] = json!(2), "format: 2 is not 1, the one this version reads");
    assert!(refused(&|d| d["flows"][0]["cc"] = json!("rubic")).starts_with("flows[0].cc: "));
    assert!(refused(&|d| d["surprise"] = json!(1)).contains("unknown field `surprise`"));
}

#[test]
fn a_small_receive_buffer_limits_from_the_first_flight_on() {
    // The window is half of tcp_rmem until a segment was seen, then 158/256 of it: 4096 bytes hold two segments of 1448,
    // 5056 three.
    let mut doc = Dumbbell { duration_s: 3.0, ..Dumbbell::default() }.document();
    doc["nodes"][2]["sysctls"]["net.ipv4.tcp_rmem"] = json!("4096 8192 8192");
    let outcome = simulate(&doc.to_string()).unwrap();
    let in_flight = series(&outcome, "flow", "reno", "in_flight");
    assert!(in_flight.len() > 50);
    assert!(in_flight.iter().all(|s| s.1 <= 3.0), "{in_flight:?}");
    // Two or three segments a round trip of 20 ms: 1.16 or 1.74 Mbit/s.
    let goodput = goodput_mbit(&outcome, "reno", 1.0, 3.0);
    assert!((1.16..1.74).contains(&goodput), "{goodput}");
}

/// One CUBIC that echoes SCE through COBALT, which turns ECT(0) into ECT(1) from half its target on, without and with being asked to.
#[test]
fn sce_marks_are_a_series_of_queues_that_make_them() {
    let outcome = |qdisc| {
        let flows = vec![flow("sce", "reno-sce")];
        Dumbbell { flows, qdisc, rate: "10mbit", duration_s: 10.0, tcp_ecn: 1, ..Dumbbell::default() }.run()
    };
    let marking = outcome("cobalt sce-thresh 4");
    let marks = series(&marking, "queue", "mid>srv", "sce_marks");
    let counted = marking.counters()["queues"]["mid>srv"]["sce_marks"].as_u64().unwrap();
    assert!(counted > 100 && marks.is_sorted_by(|a, b| a.1 <= b.1), "{counted}");
    assert_eq!(marks.last().map(|sample| sample.1), Some(counted as f64));
    for quiet in ["cobalt no-sce", "fq_codel"] {
        let names = outcome(quiet).series.names;
        assert!(names.iter().all(|name| name.metric != "sce_marks"), "{quiet}");
    }
}

/// A flow that has ended has nothing under way, so that what the queue marked has arrived.
#[test]
fn marks_are_seen_where_they_arrive() {
    for tcp_ecn in [1, 3] {
        let mut f = flow("cubic", "cubic");
        f["source"] = json!({"kind": "bytes", "bytes": 40_000_000});
        let qdisc = "codel ecn ce_threshold 1ms";
        let outcome =
            Dumbbell { flows: vec![f], qdisc, tcp_ecn, duration_s: 30.0, ..Dumbbell::default() }.run();
        let flow = outcome.counters()["flows"]["cubic"].clone();
        assert_eq!(flow["received_bytes"], 40_000_000);
        assert!(flow["received_ce"].as_u64() > Some(50), "{flow}");
        assert_eq!(flow["received_ce"], outcome.counters()["queues"]["mid>srv"]["flows"]["cubic"]["marks"]);
        assert_eq!(flow["received_ect1"], 0);
    }
}

/// 60 Mbit/s into 50 until 4 s. Of `marks` datagrams the link behind the queue loses 5 %, give or take four times
/// sqrt(marks * 0.05 * 0.95).
#[test]
fn marks_that_are_lost_behind_the_queue_are_not_seen() {
    let mut f = flow("datagrams", "reno");
    f["transport"] = json!("udp");
    f["source"] = json!({"kind": "rate", "rate_bps": 60_000_000, "size": 1000});
    f["stop_s"] = json!(4.0);
    let mut doc = Dumbbell {
        flows: vec![f],
        qdisc: "codel ecn ce_threshold 1ms",
        duration_s: 6.0,
        ..Dumbbell::default()
    }
    .document();
    doc["interfaces"][0]["mangle"] = json!([{"match": {"proto": "udp"}, "set_ecn": "ect0"}]);
    doc["links"][1]["loss"] = json!({"mid": 0.05});
    let counters = simulate(&doc.to_string()).unwrap().counters();
    let marks = counters["queues"]["mid>srv"]["flows"]["datagrams"]["marks"].as_u64().unwrap();
    let seen = counters["flows"]["datagrams"]["received_ce"].as_u64().unwrap();
    assert!(marks > 10_000, "{marks}");
    let (lost, expected) = ((marks - seen) as f64, marks as f64 * 0.05);
    assert!((lost - expected).abs() <= 4.0 * (expected * 0.95).sqrt(), "{lost} of {marks}");
}

/// A packet that got SCE may get CE as well, and then arrives with CE.
#[test]
fn sce_marks_are_seen_as_ect1() {
    let mut f = flow("reno-sce", "reno-sce");
    f["source"] = json!({"kind": "bytes", "bytes": 40_000_000});
    let mut doc = Dumbbell { flows: vec![f], tcp_ecn: 1, duration_s: 30.0, ..Dumbbell::default() }.document();
    for node in [0, 2] {
        doc["nodes"][node]["sysctls"]["net.ipv4.tcp_sce"] = json!("1");
    }
    doc["interfaces"][1]["egress"] = json!({"qdisc": "cnq_cobalt bandwidth 50mbit sce"});
    let counters = simulate(&doc.to_string()).unwrap().counters();
    let told = |at: &str| counters.pointer(at).unwrap().as_u64().unwrap();
    assert_eq!(told("/flows/reno-sce/received_bytes"), 40_000_000);
    let [sce, ce] =
        ["sce_marks", "marks"].map(|kind| told(&format!("/queues/mid>srv/flows/reno-sce/{kind}")));
    let [seen_sce, seen_ce] =
        ["received_ect1", "received_ce"].map(|kind| told(&format!("/flows/reno-sce/{kind}")));
    assert!(seen_sce > 20, "{seen_sce}");
    assert_eq!(seen_ce, ce);
    assert!(seen_sce <= sce && sce <= seen_sce + ce, "{sce} and {ce} sent, {seen_sce} and {seen_ce} seen");
}

#[test]
fn datagrams_tell_with_which_ecn_field_they_arrived() {
    for (field, key) in [("ce", "received_ce"), ("ect1", "received_ect1")] {
        let mut f = flow("datagrams", "reno");
        f["transport"] = json!("udp");
        f["source"] = json!({"kind": "rate", "rate_bps": 8_000_000, "size": 1000});
        let mut doc = Dumbbell { flows: vec![f], duration_s: 5.0, ..Dumbbell::default() }.document();
        doc["interfaces"][0]["mangle"] = json!([{"match": {"proto": "udp"}, "set_ecn": field}]);
        doc["links"][1]["loss"] = json!({"mid": 0.1});
        let flow = simulate(&doc.to_string()).unwrap().counters()["flows"]["datagrams"].clone();
        assert_eq!(flow[key].as_u64().unwrap(), flow["received_bytes"].as_u64().unwrap() / 1000, "{flow}");
        let other = if field == "ce" { "received_ect1" } else { "received_ce" };
        assert_eq!(flow[other], 0);
    }
}
