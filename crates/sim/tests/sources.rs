//! What applications offer: short flows, a video player, paced and application-limited sources.

use crate::common::{Dumbbell, flow, goodput_mbit, series};
use bakeoff_sim::{Outcome, check, simulate};
use serde_json::{Value, json};

/// A flow `web` whose objects are (seconds after 0.1 s, bytes).
fn web(cc: &str, objects: &[(f64, u64)]) -> Value {
    let mut web = flow("web", cc);
    web["start_s"] = json!(0.1);
    web["source"] = json!({"kind": "short", "objects": objects});
    web
}

fn video(rates_mbit: &[f64], segment_s: f64, buffer_s: f64) -> Value {
    let rates: Vec<u64> = rates_mbit.iter().map(|r| (r * 1e6) as u64).collect();
    let mut video = flow("video", "cubic");
    video["source"] =
        json!({"kind": "video", "rates_bps": rates, "segment_s": segment_s, "buffer_s": buffer_s});
    video
}

/// The completion times of `web`, by when they began.
fn fct(outcome: &Outcome) -> Vec<(f64, f64)> {
    series(outcome, "flow", "web", "fct")
}

/// A path of 20 ms without a probe whose link to srv has a rate.
fn over_a_link(flow: Value, tcp_ecn: u8, rate_bps: u64) -> Outcome {
    let mut doc = Dumbbell { flows: vec![flow], rate: "10gbit", tcp_ecn, ..Dumbbell::default() }.document();
    doc["links"][1]["rate_bps"] = json!(rate_bps);
    doc["probes"] = json!([]);
    simulate(&doc.to_string()).expect("a run")
}

#[test]
fn one_segment_takes_two_round_trips_and_its_serialisation() {
    let outcome = over_a_link(web("reno", &[(0.0, 1000)]), 0, 10_000_000);
    // SYN and SYN/ACK of 74 bytes, an ACK of 66, 66 + 1000 of data, an ACK of 66: 1346 bytes at 10 Mbit/s are 1.0768 ms.
    let [(at, took)] = fct(&outcome)[..] else { panic!("one object") };
    assert!((at - 0.1).abs() < 1e-9 && (took - 0.041_076_8).abs() < 1e-8, "{at} {took}");
    assert_eq!(series(&outcome, "flow", "web", "size"), [(0.1, 1000.0)]);
}

#[test]
fn each_object_has_a_slow_start_of_its_own() {
    // 30 segments are 10 and 20: two round trips after the handshake's, whatever went before.
    let thirty = 30 * 1448;
    let outcome =
        over_a_link(web("reno", &[(0.0, thirty), (1.0, thirty), (1.0, 10 * 1448)]), 0, 10_000_000_000);
    let times: Vec<f64> = fct(&outcome).iter().map(|o| (o.1 * 1000.0).round()).collect();
    assert_eq!(times, [60.0, 60.0, 40.0]);
    assert_eq!(outcome.counters()["flows"]["web"]["objects"], json!({"offered": 3, "begun": 3, "ended": 3}));
}

#[test]
fn what_short_flows_counted_is_the_sum_of_their_connections() {
    let objects: Vec<(f64, u64)> =
        (0..200_u32).map(|n| (f64::from(n) * 0.01, 1 + u64::from(n) * 517)).collect();
    let flows = vec![web("cubic", &objects), flow("bulk", "reno")];
    let d = Dumbbell { flows, qdisc: "fq_codel limit 60", duration_s: 30.0, ..Dumbbell::default() };
    let outcome = d.run();
    let counted = outcome.counters()["flows"]["web"].clone();
    assert_eq!(counted["received_bytes"], objects.iter().map(|o| o.1).sum::<u64>());
    assert!(counted["retransmits"].as_u64().unwrap() > 0, "{counted}");
    assert_eq!(counted["ecn"], "accecn");
    let queue = outcome.counters()["queues"]["mid>srv"]["flows"]["web"].clone();
    // A SYN and an ACK of each connection, and all its data packets, left the queue or were dropped there.
    let passed = queue["packets"].as_u64().unwrap() + queue["drops"].as_u64().unwrap();
    let others = passed - counted["sent_packets"].as_u64().unwrap();
    assert!((400..=415).contains(&others), "{others}: 400, and those that were dropped");
    assert_eq!(fct(&outcome).len(), 200);
    let again = d.run();
    assert_eq!((again.series, again.counters), (outcome.series, outcome.counters));
}

#[test]
fn nothing_begins_from_the_stop_on_and_what_has_begun_goes_on() {
    let mut web = web("reno", &[(0.0, 1000), (0.899, 3_000_000), (0.9, 1000)]);
    web["stop_s"] = json!(1.0);
    let outcome = Dumbbell { flows: vec![web], ..Dumbbell::default() }.run();
    assert_eq!(outcome.counters()["flows"]["web"]["objects"], json!({"offered": 3, "begun": 2, "ended": 2}));
    assert!(fct(&outcome)[1].1 > 0.4);
}

#[test]
fn connections_of_one_flow_are_told_apart_by_fq_codel() {
    // Beside 3 MB of the same flow, 1 MB/s apart from queueing, small objects wait for no one but themselves.
    let objects = [(0.0, 30_000_000), (2.0, 1000), (3.0, 1000)];
    let times = |qdisc| {
        let d =
            Dumbbell { flows: vec![web("reno", &objects)], qdisc, duration_s: 10.0, ..Dumbbell::default() };
        fct(&d.run()).iter().filter(|o| o.0 > 1.0).map(|o| o.1).fold(0.0, f64::max)
    };
    // Two round trips of 20 ms; a packet of 1514 bytes before each of ours takes 0.24 ms.
    assert!(times("fq_codel") < 0.042);
    assert!(times("pfifo limit 1000") > 0.1);
}

#[test]
fn what_cannot_be_offered_is_refused_by_name() {
    let refused = |flow: Value| {
        let doc = Dumbbell { flows: vec![flow], ..Dumbbell::default() }.document();
        check(&doc.to_string()).expect_err("refused").to_string()
    };
    assert_eq!(
        refused(web("reno", &[(1.0, 5), (0.5, 5)])),
        "flows[0].source.objects[1]: 0.5 s is not after the one before"
    );
    assert_eq!(
        refused(web("reno", &[(1.0, 0)])),
        "flows[0].source.objects[0][1]: 0 is not between 1 and 1000000000000000"
    );
    assert!(refused(video(&[], 2.0, 10.0)).starts_with("flows[0].source.rates_bps: expected"));
    assert!(refused(video(&[1.0], 2.0, 1.0)).starts_with("flows[0].source.buffer_s: expected"));
    let mut udp = video(&[1.0], 2.0, 10.0);
    udp["transport"] = json!("udp");
    assert_eq!(refused(udp), "flows[0].source: a udp flow needs 'rate' or 'periodic'");
}

#[test]
fn a_video_on_a_constant_capacity_has_the_highest_rate_below_it() {
    // 10 Mbit/s pass 9.56 Mbit/s of payload; of 0.9 times that, less the round trips, 4 is the highest below.
    let outcome = Dumbbell {
        flows: vec![video(&[1.0, 2.0, 4.0, 16.0], 2.0, 20.0)],
        rate: "10mbit",
        duration_s: 120.0,
        ..Dumbbell::default()
    }
    .run();
    let rates = series(&outcome, "flow", "video", "segment_rate");
    assert!(rates.len() > 50 && rates[0].1 as u64 == 1_000_000, "{rates:?}");
    assert!(rates[5..].iter().all(|r| r.1 as u64 == 4_000_000), "{rates:?}");
    assert!(series(&outcome, "flow", "video", "stall").is_empty());
    // The buffer stays full: a segment is fetched when the one before has been played.
    let late: Vec<f64> = rates.iter().map(|r| r.0).filter(|t| *t > 60.0).collect();
    assert!(late.windows(2).all(|w| (w[1] - w[0] - 2.0).abs() < 1e-3), "{late:?}");
}

#[test]
fn a_video_begins_two_round_trips_and_its_first_segment_after_the_syn() {
    // 0.25 Mbit/s x 0.4 s = 12 500 bytes: 9 segments, in the first window.
    let outcome = over_a_link(video(&[0.25], 0.4, 4.0), 0, 10_000_000);
    let [(at, startup)] = series(&outcome, "flow", "video", "startup")[..] else { panic!("one start") };
    // Handshake 2 x 74 + 66, 9 x 66 + 12 500 of data, the last ACK 66 bytes: 13 374 x 8 / 10^7.
    assert!(at.abs() < 1e-9, "{at}");
    assert!((startup - (0.04 + 0.010_699_2)).abs() < 1e-6, "{startup}");
}

#[test]
fn a_video_that_the_path_cannot_carry_stalls() {
    let outcome = Dumbbell {
        flows: vec![video(&[2.0, 4.0], 2.0, 20.0)],
        rate: "1mbit",
        duration_s: 60.0,
        ..Dumbbell::default()
    }
    .run();
    let stalled: f64 = series(&outcome, "flow", "video", "stall").iter().map(|s| s.1).sum();
    let [(_, startup)] = series(&outcome, "flow", "video", "startup")[..] else { panic!("one start") };
    let played = 2.0 * series(&outcome, "flow", "video", "buffer").len() as f64;
    // It is starting, playing or standing still all the time, and plays all that it fetches.
    assert!((startup + played + stalled - 60.0).abs() < 2.0, "{startup} {played} {stalled}");
    // 0.956 Mbit/s carry 47.8 % of 2 Mbit/s.
    assert!((played / 60.0 - 0.478).abs() < 0.04, "{played}");
}

#[test]
fn max_pacing_rate_is_the_goodput_of_a_path_that_could_carry_more() {
    // Linux paces the payload: 5 Mbit/s of it, whether TCP's own timer paces or the host's fq.
    for fq in [false, true] {
        for cc in ["reno", "cubic", "bbr"] {
            let mut paced = flow("paced", cc);
            paced["max_pacing_rate_bps"] = json!(5_000_000);
            let mut doc = Dumbbell { flows: vec![paced], ..Dumbbell::default() }.document();
            if fq {
                let cli =
                    json!({"node": "cli", "peer": "mid", "tx_queue_len": 1000, "egress": {"qdisc": "fq"}});
                doc["interfaces"].as_array_mut().unwrap().push(cli);
            }
            let outcome = simulate(&doc.to_string()).unwrap();
            let ours = goodput_mbit(&outcome, "paced", 2.0, 10.0);
            // A packet more or less of 1448 bytes in 8 s is 0.03 %; BBR's PROBE_RTT takes 200 ms of 10 s.
            let least = if cc == "bbr" { 4.8 } else { 4.995 };
            assert!((least..=5.005).contains(&ours), "{cc} {fq} {ours}");
            assert_eq!(outcome.counters()["queues"]["mid>srv"]["drops"]["overlimit"], 0);
        }
    }
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    // 4 segments each 30 ms over 20 ms: fewer than half of 10 (tcp_is_cwnd_limited), so the first window stays.
    let mut source = flow("app", "reno");
    source["source"] = json!({"kind": "periodic", "size": 4 * 1436, "count": 1, "every_s": 0.03});
    let outcome = Dumbbell { flows: vec![source], ..Dumbbell::default() }.run();
    assert!(series(&outcome, "flow", "app", "cwnd").iter().all(|c| c.1 as u32 == 10));
}

#[test]
fn after_idling_the_window_restarts_unless_the_sysctl_says_otherwise() {
    // 60 segments each 2 s over 100 ms: what has grown to 60 or more is 10 again, or not.
    for (value, least, most) in [("1", 1.0, 10.0), ("0", 60.0, 60.0)] {
        let mut source = flow("app", "reno");
        source["source"] = json!({"kind": "periodic", "size": 60 * 1436, "count": 1, "every_s": 2.0});
        let mut doc = Dumbbell { flows: vec![source], rtt_ms: 100.0, ..Dumbbell::default() }.document();
        doc["nodes"][0]["sysctls"]["net.ipv4.tcp_slow_start_after_idle"] = json!(value);
        doc["sample_interval_s"] = json!(0.01);
        let outcome = simulate(&doc.to_string()).unwrap();
        let in_flight = series(&outcome, "flow", "app", "in_flight");
        // The fourth write is at 6.1 s, when the handshake took 0.1 s; its first flight is out until 6.2 s.
        let first: Vec<f64> = in_flight.iter().filter(|s| s.0 > 6.155 && s.0 < 6.195).map(|s| s.1).collect();
        assert!(!first.is_empty() && first.iter().all(|n| (least..=most).contains(n)), "{value}: {first:?}");
    }
}

/// A call of 100 bytes every 20 ms over an idle link of 1 Mbit/s: 142 bytes of frame are 1.136 ms, behind 10 ms of netem.
#[test]
fn a_datagram_tells_its_one_way_delay() {
    let mut call = flow("call", "none");
    call["transport"] = json!("udp");
    call["start_s"] = json!(0.1);
    call["stop_s"] = json!(1.1);
    call["source"] = json!({"kind": "periodic", "size": 100, "count": 1, "every_s": 0.02});
    let outcome = over_a_link(call, 0, 1_000_000);
    let delays = series(&outcome, "flow", "call", "delay");
    assert_eq!(delays.len(), 50);
    for (n, (at, took)) in delays.iter().enumerate() {
        assert!((at - 0.1 - 0.02 * n as f64).abs() < 1e-9, "{at}");
        assert!((took - 0.011_136).abs() < 1e-8, "{took}");
    }
    assert!(series(&outcome, "flow", "call", "missing").is_empty());
}

/// 2 Mbit/s of frames into 1 Mbit/s: every second datagram is dropped once the queue is full, and each is told once.
#[test]
fn a_datagram_that_never_comes_is_missing() {
    let mut flood = flow("flood", "none");
    flood["transport"] = json!("udp");
    flood["source"] = json!({"kind": "rate", "rate_bps": 2_000_000, "size": 1458});
    let d = Dumbbell { flows: vec![flood], rate: "1mbit", qdisc: "pfifo limit 10", ..Dumbbell::default() };
    let outcome = d.run();
    let [came, missing] = ["delay", "missing"].map(|m| series(&outcome, "flow", "flood", m).len() as u64);
    let dropped = outcome.counters()["queues"]["mid>srv"]["flows"]["flood"]["drops"].as_u64().unwrap();
    let sent = outcome.counters()["flows"]["flood"]["sent_packets"].as_u64().unwrap();
    assert!(dropped > sent / 3, "{dropped} of {sent}");
    // Those that were dropped behind the last one that arrived may still be on their way: ten stand in the queue, and
    // while they leave, as many come again.
    assert!(dropped - missing <= 10, "{dropped} dropped, {missing} missing");
    assert!(
        sent - came - missing <= 21,
        "{sent} sent, {came} came: what stands in the queue and on the path"
    );
}
