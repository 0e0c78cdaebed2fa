//! Hosts that are not ideal: stalls, late timers, coalesced frames.

use crate::common::{Dumbbell, flow, series};
use bakeoff_sim::{Budget, Outcome, Registry, check, simulate, simulate_within};
use serde_json::{Value, json};

/// Pings from cli to srv every millisecond for a second, over 2 ms there and back. `srv` and `cli` have these keys.
fn pinged(cli: &Value, srv: &Value) -> Outcome {
    let mut doc = Dumbbell { flows: vec![], rtt_ms: 2.0, duration_s: 1.5, ..Dumbbell::default() }.document();
    doc["probes"][0]["every_s"] = json!(0.001);
    doc["probes"][0]["stop_s"] = json!(0.9999);
    for (node, keys) in [(0, cli), (2, srv)] {
        for (key, value) in keys.as_object().expect("a table") {
            doc["nodes"][node][key] = value.clone();
        }
    }
    simulate(&doc.to_string()).expect("a run")
}

/// When pings were sent, and their round-trip times, in microseconds. A ping of 98 bytes takes 16 us at 50 Mbit/s where
/// another leaves before it.
fn times(outcome: &Outcome) -> Vec<(f64, f64)> {
    series(outcome, "probe", "ping", "rtt").iter().map(|(at, rtt)| (at * 1e6, rtt * 1e6)).collect()
}

#[test]
fn a_packet_that_arrives_in_a_stall_leaves_at_its_end() {
    let ideal = times(&pinged(&json!({}), &json!({})));
    assert!(ideal.len() == 1000 && ideal.iter().all(|(_, rtt)| (rtt - 2000.0).abs() < 1.0), "{ideal:?}");
    let found = times(&pinged(&json!({}), &json!({"stall": {"length_s": 0.005, "every_s": 0.1}})));
    assert_eq!(found.len(), 1000);
    // Ten stalls of five pings each; one ping may arrive as its stall begins or ends.
    let late: Vec<(f64, f64)> = found.into_iter().filter(|(_, rtt)| *rtt > 2001.0).collect();
    assert!((48..=52).contains(&late.len()), "{}", late.len());
    for (n, (at, rtt)) in late.iter().enumerate() {
        // They leave srv at the end of a stall, one behind the other in the shaper of mid.
        let left = at + rtt - 1000.0;
        let first = late.iter().map(|(at, rtt)| at + rtt - 1000.0).find(|first| left - first < 50_000.0);
        let behind = left - first.expect("itself");
        assert!((0.0..5.0 * 16.0).contains(&behind) && *rtt < 7000.0 + 80.0, "{n}: {at} {rtt} {behind}");
    }
}

#[test]
fn the_card_gives_a_batch_of_frames() {
    // A frame each millisecond, held for 3.5 ms from the first on: batches of four, of which the first waits longest.
    let found = times(&pinged(&json!({}), &json!({"receive_coalescing_s": 0.0035})));
    assert_eq!(found.len(), 1000);
    for batch in found.chunks(4) {
        let waited: Vec<f64> = batch.iter().map(|(_, rtt)| ((rtt - 2000.0) / 500.0).round()).collect();
        assert_eq!(waited, [7.0, 5.0, 3.0, 1.0], "{batch:?}");
    }
}

#[test]
fn probes_are_late_by_up_to_the_slack() {
    let found = times(&pinged(&json!({"timer_slack_s": 0.0005}), &json!({})));
    let late: Vec<f64> = found.iter().map(|(at, _)| at.rem_euclid(1000.0)).collect();
    assert!(late.iter().all(|late| (0.0..=500.0).contains(late)), "{late:?}");
    // Uniform from 0 to 500 us: the mean of 1000 has a deviation of 500 / sqrt(12 * 1000) = 4.6.
    let mean = late.iter().sum::<f64>() / late.len() as f64;
    assert!(late.len() == 1000 && (mean - 250.0).abs() < 20.0, "{mean}");
}

#[test]
fn a_stalled_sender_sends_nothing() {
    // 30 ms of each 100 ms: a paced source at 8 Mbit/s catches up at the end of each.
    let mut paced = flow("paced", "cubic");
    paced["source"] = json!({"kind": "rate", "rate_bps": 8_000_000, "size": 1000});
    let mut doc = Dumbbell { flows: vec![paced], duration_s: 3.0, ..Dumbbell::default() }.document();
    doc["probes"] = json!([]);
    doc["sample_interval_s"] = json!(0.001);
    doc["nodes"][0]["stall"] = json!({"length_s": 0.03, "every_s": 0.1});
    let outcome = simulate(&doc.to_string()).expect("a run");
    let received = series(&outcome, "flow", "paced", "received");
    let still = received.windows(2).filter(|pair| pair[0].0 > 1.0 && pair[0].1 >= pair[1].1).count();
    // Of 2000 samples 30 % without the way of what was sent before, at least 25 %.
    assert!((500..700).contains(&still), "{still}");
    // 1000 bytes each millisecond until 3 s, and at most a stall's worth of them is missing.
    let total = received.last().expect("samples").1;
    assert!((2_940_000.0..=3_000_000.0).contains(&total), "{total}");
}

#[test]
fn step_by_step_gives_the_same() {
    let keys = [
        json!({"stall": {"length_s": 0.005, "every_s": 0.1}}),
        json!({"timer_slack_s": 0.0003}),
        json!({"receive_coalescing_s": 0.0002}),
        json!({"stall": {"length_s": 0.02, "every_s": 0.3}, "timer_slack_s": 0.0001, "receive_coalescing_s": 0.0001}),
    ];
    for keys in keys {
        for ends in [vec![0], vec![2], vec![0, 2]] {
            let flows = vec![flow("prague", "prague"), flow("cubic", "cubic")];
            let mut doc =
                Dumbbell { flows, duration_s: 2.0, qdisc: "fq_codel", ..Dumbbell::default() }.document();
            for node in &ends {
                for (key, value) in keys.as_object().expect("a table") {
                    doc["nodes"][*node][key] = value.clone();
                }
            }
            doc["links"][0]["rate_bps"] = json!(1_000_000_000);
            let run = |exact: bool| {
                let budget = Budget { exact, ..Budget::default() };
                let outcome = simulate_within(&doc.to_string(), &Registry::default(), budget).expect("a run");
                let mut counters = outcome.counters();
                counters.as_object_mut().expect("a table").remove("events");
                (counters, outcome.series)
            };
            let (fast, exact) = (run(false), run(true));
            assert_eq!(fast.0, exact.0, "{keys} {ends:?}");
            assert_eq!(fast.1, exact.1, "{keys} {ends:?}");
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = |node: usize, keys: Value| {
        let mut doc = Dumbbell::default().document();
        for (key, value) in keys.as_object().expect("a table") {
            doc["nodes"][node][key] = value.clone();
        }
        check(&doc.to_string()).expect_err("refused").to_string()
    };
    let stall = json!({"stall": {"length_s": 0.1, "every_s": 0.1}});
    assert!(refused(0, stall).contains("nodes[0].stall: not shorter than its period"));
    let slack = json!({"timer_slack_s": -1.0});
    assert!(refused(0, slack).contains("nodes[0].timer_slack_s: -1s is not between 0s and 1000s"));
    let card = json!({"receive_coalescing_s": 0.1});
    assert!(refused(1, card).contains("nodes[1].receive_coalescing_s: 'mid' is no host"));
}
