//! BBR, its successor, pacing and `fq` in whole runs, against arithmetic.

use crate::common::{Dumbbell, flow, goodput_mbit, series};
use bakeoff_sim::{Outcome, simulate};
use serde_json::json;

/// 50 Mbit/s and 40 ms: a BDP of 50e6 * 0.04 / 8 / 1514 = 165 frames; the queue holds 6 of them.
fn alone(cc: &str, duration_s: f64) -> Outcome {
    Dumbbell { rtt_ms: 40.0, flows: vec![flow("a", cc)], duration_s, ..Dumbbell::default() }.run()
}

fn mean(samples: &[(f64, f64)], from: f64, to: f64) -> f64 {
    let inside: Vec<_> = samples.iter().filter(|s| s.0 >= from && s.0 < to).map(|s| s.1).collect();
    assert!(!inside.is_empty());
    inside.iter().sum::<f64>() / inside.len() as f64
}

#[test]
fn a_lone_bbr_keeps_one_bdp_in_flight_below_a_window_of_two() {
    let outcome = alone("bbr", 9.0);
    let bdp = 50e6 * 0.04 / 8.0 / 1514.0;
    let in_flight = mean(&series(&outcome, "flow", "a", "in_flight"), 3.0, 9.0);
    // The phase of 0.75 ends at a BDP and three TSO packets of 4 segments, with an even number and 2 more in the phase of 1.25;
    // the triangle of 1.25 adds 0.25 over two of eight phases: 1/32.
    assert!((bdp..bdp * 33.0 / 32.0 + 3.0 * 4.0 + 3.0).contains(&in_flight), "{in_flight} of {bdp}");
    let cwnd = mean(&series(&outcome, "flow", "a", "cwnd"), 3.0, 9.0);
    // three TSO packets of 4 segments each, rounding, aggregation
    assert!((2.0..2.3).contains(&(cwnd / bdp)), "{cwnd} of {bdp}");
    let goodput = goodput_mbit(&outcome, "a", 3.0, 9.0);
    assert!(goodput > 0.98 * 50.0 * 1448.0 / 1514.0, "{goodput}");
}

#[test]
fn a_pacing_timer_comes_before_the_ack_of_the_same_instant() {
    let d = Dumbbell { rtt_ms: 80.0, flows: vec![flow("a", "bbr")], duration_s: 0.4, ..Dumbbell::default() };
    let rates = series(&d.run(), "flow", "a", "pacing_rate");
    let rate = rates.iter().find(|s| s.0 > 0.34).expect("a sample at 0.35 s").1;
    // Ten segments leave at 80 ms and two at 160 ms, with their first ACKs. The next two are paced: two segments at 2.887 * 0.99 windows
    // a round trip take 5.6 ms, half of which is forgiven. In the next round, two segments leave at 240 ms and the timer of the next is set
    // to 240 + 2.8 ms, when the ACKs of those two from the round before come as well. The timer is first, so the segments leave with 12
    // delivered. Their ACKs come 80 ms later, with 34 delivered: 22 in the 82.8 ms since 240 ms, in place of 21 in 80 ms.
    let gap_s = 2.0 * 0.08 / 10.0 / (739.0 / 256.0 * 0.99);
    let bw = 22.0 / (0.08 + gap_s / 2.0);
    let expected = bw * 1448.0 * 8.0 * 739.0 / 256.0 * 0.99;
    assert!((rate / expected - 1.0).abs() < 1e-3, "{rate} {expected}");
}

#[test]
fn bbr_drains_the_pipe_every_ten_seconds_for_200_ms() {
    let outcome = alone("bbr", 35.0);
    let cwnd = series(&outcome, "flow", "a", "cwnd");
    let low: Vec<f64> = cwnd.iter().filter(|s| s.0 > 1.0 && s.1 <= 4.0).map(|s| s.0).collect();
    let mut starts: Vec<f64> = Vec::new();
    for (i, t) in low.iter().enumerate() {
        if i == 0 || t - low[i - 1] > 1.0 {
            starts.push(*t);
        }
    }
    assert_eq!(starts.len(), 3, "{starts:?}");
    for (i, start) in starts.iter().enumerate() {
        // after the end of the last one (or the handshake), the window's 10 s
        let due = 10.0 * (i + 1) as f64;
        assert!(*start >= due && *start < due + 0.4 * (i + 1) as f64 + 0.1, "{starts:?}");
        // 200 ms, the round that empties the pipe, and sampling every 50 ms
        let lasted = low.iter().filter(|t| **t >= *start && **t < start + 1.0).count();
        assert!((4..=7).contains(&lasted), "{lasted}");
    }
}

#[test]
fn bbr3_and_bbr2_fill_the_path_and_leave_the_queue_short() {
    // PROBE_RTT halves version 3's window of 2 BDP, it does not close it. Version 2 sees its minimum again in every cycle and needs none.
    for (cc, windows) in [("bbr3", 60.0..100.0), ("bbr3@draft", 60.0..100.0), ("bbr2", 300.0..340.0)] {
        let outcome = alone(cc, 20.0);
        let goodput = goodput_mbit(&outcome, "a", 5.0, 20.0);
        assert!(goodput > 0.95 * 50.0 * 1448.0 / 1514.0, "{cc}: {goodput}");
        let srtt = mean(&series(&outcome, "flow", "a", "srtt"), 5.0, 20.0);
        assert!(srtt < 0.05, "{cc}: {srtt}");
        let cwnd = series(&outcome, "flow", "a", "cwnd");
        let least = cwnd.iter().filter(|s| s.0 > 2.0).map(|s| s.1).fold(f64::INFINITY, f64::min);
        assert!(windows.contains(&least), "{cc}: {least}");
    }
}

#[test]
fn bbr3_and_bbr2_learn_the_depth_of_a_short_queue_where_bbr_keeps_losing() {
    let lost = |cc: &str| {
        let d = Dumbbell {
            rtt_ms: 40.0,
            qdisc: "pfifo limit 16",
            flows: vec![flow("a", cc)],
            duration_s: 30.0,
            ..Dumbbell::default()
        };
        let outcome = d.run();
        let goodput = goodput_mbit(&outcome, "a", 10.0, 30.0);
        assert!(goodput > 35.0, "{cc}: {goodput}");
        series(&outcome, "flow", "a", "retrans").last().map_or(0.0, |s| s.1)
    };
    let v1 = lost("bbr");
    for cc in ["bbr2", "bbr3", "bbr3@draft"] {
        let learned = lost(cc);
        assert!(learned < v1, "{cc}: {learned} {v1}");
    }
}

#[test]
fn a_fixed_window_is_sent_once_per_round_trip() {
    let mut f = flow("a", "none cwnd 40");
    f["stop_s"] = json!(10.0);
    let outcome = Dumbbell { flows: vec![f], duration_s: 10.0, ..Dumbbell::default() }.run();
    let goodput = goodput_mbit(&outcome, "a", 2.0, 10.0);
    // 40 * 1448 B a round trip without a queue. The round trip is the path's 20 ms, the frame's own 0.242 ms on the
    // 50 Mbit/s link, and for the first of each pair the second's 0.242 ms, for which its ACK waits.
    let bits = 40.0 * 1448.0 * 8.0;
    let (least, most) = (bits / (20e-3 + 2.0 * 0.242e-3) / 1e6, bits / (20e-3 + 0.242e-3) / 1e6);
    assert!((least..=most).contains(&goodput), "{goodput} is not between {least} and {most}");
    assert_eq!(outcome.counters()["flows"]["a"]["retransmits"], 0);
}

/// A cubic flow with `SO_MAX_PACING_RATE`, and what its host has as a queue.
fn paced(host_qdisc: Option<&str>) -> Outcome {
    let mut f = flow("a", "cubic");
    f["max_pacing_rate_bps"] = json!(20_000_000);
    let mut doc = Dumbbell { flows: vec![f], duration_s: 10.0, ..Dumbbell::default() }.document();
    if let Some(qdisc) = host_qdisc {
        let interfaces = doc["interfaces"].as_array_mut().expect("the document has interfaces");
        interfaces
            .push(json!({"node": "cli", "peer": "mid", "tx_queue_len": 1000, "egress": {"qdisc": qdisc}}));
    }
    simulate(&doc.to_string()).expect("the document is valid")
}

#[test]
fn a_maximum_pacing_rate_holds_for_payload_with_and_without_fq() {
    for qdisc in [None, Some("fq")] {
        let outcome = paced(qdisc);
        // payload is what the pacing clock counts
        let goodput = goodput_mbit(&outcome, "a", 2.0, 10.0);
        assert!((goodput - 20.0).abs() < 0.2, "{qdisc:?}: {goodput}");
        assert_eq!(outcome.counters()["flows"]["a"]["retransmits"], 0);
        // packets of two or three segments at 20 Mbit/s pass a link of 50: nothing queues but their own
        let sojourn = outcome.counters()["queues"]["mid>srv"]["sojourn"]["max_s"].clone();
        assert!(sojourn.as_f64().unwrap() < 0.0015, "{qdisc:?}: {sojourn}");
    }
}

#[test]
fn fq_at_the_host_paces_what_asked_for_nothing_and_holds_few_packets() {
    let mut doc =
        Dumbbell { flows: vec![flow("a", "reno")], duration_s: 10.0, ..Dumbbell::default() }.document();
    let interfaces = doc["interfaces"].as_array_mut().unwrap();
    interfaces.push(json!({"node": "cli", "peer": "mid", "tx_queue_len": 1000, "egress": {"qdisc": "fq"}}));
    let outcome = simulate(&doc.to_string()).unwrap();
    let fq = outcome.counters()["queues"]["cli>mid"].clone();
    assert_eq!(fq["drops"]["overlimit"], 0);
    let held = series(&outcome, "queue", "cli>mid", "qlen").iter().map(|s| s.1).fold(0.0, f64::max);
    // two skbs or 1 ms of data
    assert!(held > 0.0 && held <= 45.0, "{held}");
    assert!(goodput_mbit(&outcome, "a", 2.0, 10.0) > 45.0);
}

#[test]
fn bbr_does_the_same_with_its_own_timer_and_with_fq() {
    let own = alone("bbr", 9.0);
    let mut doc =
        Dumbbell { rtt_ms: 40.0, flows: vec![flow("a", "bbr")], duration_s: 9.0, ..Dumbbell::default() }
            .document();
    let interfaces = doc["interfaces"].as_array_mut().unwrap();
    interfaces.push(json!({"node": "cli", "peer": "mid", "tx_queue_len": 1000, "egress": {"qdisc": "fq"}}));
    let fq = simulate(&doc.to_string()).unwrap();
    let goodput = |o: &Outcome| goodput_mbit(o, "a", 3.0, 9.0);
    assert!((goodput(&own) / goodput(&fq) - 1.0).abs() < 0.02, "{} {}", goodput(&own), goodput(&fq));
    let srtt = |o: &Outcome| mean(&series(o, "flow", "a", "srtt"), 3.0, 9.0);
    assert!((srtt(&own) / srtt(&fq) - 1.0).abs() < 0.05, "{} {}", srtt(&own), srtt(&fq));
}
