//! Stimuli (`when`) over whole runs.

use crate::common::{Dumbbell, flow, goodput_mbit};
use bakeoff_sim::{Budget, Outcome, Registry, check, simulate, simulate_within};
use serde_json::{Value, json};

/// One flow through 50 Mbit/s at 20 ms with a long queue, so that nothing is lost by itself.
fn document(cc: &str, when: &Value) -> Value {
    let dumbbell = Dumbbell {
        qdisc: "pfifo limit 10000",
        flows: vec![flow("one", cc)],
        duration_s: 6.0,
        ..Dumbbell::default()
    };
    let mut document = dumbbell.document();
    document["when"] = when.clone();
    document["trace"] = json!(["cc"]);
    document
}

fn run(cc: &str, when: &Value) -> Outcome {
    simulate(&document(cc, when).to_string()).expect("the document is valid")
}

fn at(time: f64) -> Value {
    json!([{"variable": "time", "is": "ge", "value": time}])
}

fn stimulus(state: &Value, for_s: Option<f64>, effect: &Value) -> Value {
    let mut made = json!({"name": "s", "flow": "one", "state": state, "effect": effect});
    if let Some(for_s) = for_s {
        made["for_s"] = json!(for_s);
    }
    made
}

fn fired(outcome: &Outcome) -> (Vec<f64>, u64) {
    let counted = &outcome.counters()["stimuli"]["s"];
    let times = counted["fired_s"].as_array().expect("times");
    (times.iter().filter_map(Value::as_f64).collect(), counted["packets"].as_u64().expect("a count"))
}

/// The largest RTT of the run by srtt's trace, in seconds, between two times.
fn most_srtt(outcome: &Outcome, from: f64, to: f64) -> f64 {
    let trace = outcome.trace.as_ref().expect("a trace");
    let srtt = trace.names.iter().position(|n| n.metric == "cc.srtt").expect("srtt") as u32;
    let rows = (0..trace.time.len()).filter(|&i| trace.series[i] == srtt);
    rows.filter(|&i| (from..to).contains(&trace.time[i])).map(|i| trace.value[i]).fold(0.0, f64::max)
}

#[test]
fn the_next_three_packets_are_lost_when_the_window_reaches_20() {
    let state = json!([{"variable": "cc.cwnd", "is": "ge", "value": 20.0}]);
    let outcome =
        run("reno", &json!([stimulus(&state, None, &json!({"kind": "drop", "every": 1, "most": 3}))]));
    let (times, packets) = fired(&outcome);
    // Slow start from 10: the handshake's and one more RTT of 20 ms, and no second time though it grows again.
    assert_eq!((times.len(), packets), (1, 3), "{times:?}");
    assert!((0.02..0.08).contains(&times[0]), "{times:?}");
    assert_eq!(outcome.counters()["flows"]["one"]["retransmits"], 3);
    assert_eq!(run("reno", &json!([])).counters()["flows"]["one"]["retransmits"], 0);
}

#[test]
fn each_time_means_on_each_entry() {
    // bbr3 probes up every 2 to 3 s; UP is phase 0 of mode 2.
    let up = json!([{"variable": "cc.mode", "is": "eq", "value": 2.0}, {"variable": "cc.phase", "is": "eq", "value": 0.0}]);
    let mut when = stimulus(&up, Some(0.05), &json!({"kind": "drop", "every": 10}));
    when["after_s"] = json!(0.01);
    let once = fired(&run("bbr3", &json!([when.clone()])));
    when["each"] = json!(true);
    let each = fired(&run("bbr3", &json!([when])));
    assert_eq!(once.0.len(), 1);
    assert!(each.0.len() >= 2 && each.1 > once.1, "{each:?}");
    assert!((each.0[0] - once.0[0]).abs() < 1e-9);
    // 50 ms at 50 Mbit/s and a quarter more are 258 packets
    assert!((10..=30).contains(&once.1), "{once:?}");
}

#[test]
fn a_state_that_the_control_does_not_trace_never_comes() {
    let state = json!([{"variable": "cc.mode", "is": "eq", "value": 2.0}]);
    let outcome = run("reno", &json!([stimulus(&state, None, &json!({"kind": "drop", "every": 1}))]));
    assert_eq!(fired(&outcome), (Vec::new(), 0));
}

#[test]
fn the_application_stops_and_goes_on() {
    let outcome =
        run("cubic", &json!([stimulus(&at(2.0), Some(1.0), &json!({"kind": "source", "source": null}))]));
    // What was sent arrives within the queue's time: the queue is deep, so look at the last part of the second.
    assert!(goodput_mbit(&outcome, "one", 2.8, 3.0) < 0.1);
    assert!(goodput_mbit(&outcome, "one", 4.0, 6.0) > 40.0);
    let slow = json!({"kind": "source", "source": {"kind": "rate", "rate_bps": 5_000_000, "size": 1000}});
    let outcome = run("cubic", &json!([stimulus(&at(2.0), None, &slow)]));
    let goodput = goodput_mbit(&outcome, "one", 4.0, 6.0);
    assert!((goodput - 5.0).abs() < 0.1, "{goodput}");
}

#[test]
fn the_rate_changes_and_changes_back() {
    let action = |rate: &str| json!([{"node": "mid", "peer": "srv", "action": {"kind": "class-change", "side": "egress", "id": "1", "class": format!("rate {rate} ceil {rate}")}}]);
    let change = json!({"kind": "change", "begin": action("10mbit"), "end": action("50mbit")});
    let outcome = run("cubic", &json!([stimulus(&at(2.0), Some(2.0), &change)]));
    // 10 Mbit/s of frames with 66 bytes around 1448
    let goodput =
        [(1.0, 2.0), (2.5, 4.0), (4.5, 6.0)].map(|(from, to)| goodput_mbit(&outcome, "one", from, to));
    let payload = 1448.0 / 1514.0;
    for (goodput, rate) in goodput.into_iter().zip([50.0, 10.0, 50.0]) {
        assert!((goodput / (rate * payload) - 1.0).abs() < 0.03, "{goodput} of {rate}");
    }
}

#[test]
fn what_is_held_waits_and_what_is_delayed_is_overtaken() {
    let hold = run("bbr", &json!([stimulus(&at(2.0), Some(0.15), &json!({"kind": "hold"}))]));
    let before = most_srtt(&hold, 1.0, 2.0);
    assert!(fired(&hold).1 > 50);
    // The first waits for 150 ms, and they arrive together.
    assert!(most_srtt(&hold, 2.1, 2.3) > before + 0.05, "{before}");
    let delay =
        run("bbr", &json!([stimulus(&at(2.0), Some(0.004), &json!({"kind": "delay", "delay_s": 0.05}))]));
    let counters = delay.counters();
    let flow = &counters["flows"]["one"];
    // All came: a retransmission of what was only late arrives twice.
    assert!(flow["retransmits"].as_u64() > Some(0) && flow["duplicates"] == flow["retransmits"], "{flow}");
}

#[test]
fn marks_are_seen() {
    let outcome =
        run("reno", &json!([stimulus(&at(2.0), None, &json!({"kind": "mark", "every": 2, "most": 5}))]));
    assert_eq!(fired(&outcome).1, 5);
    assert_eq!(outcome.counters()["flows"]["one"]["received_ce"], 5);
}

#[test]
fn shortcuts_change_nothing() {
    let up = json!([{"variable": "cc.mode", "is": "eq", "value": 2.0}]);
    let several = [
        json!({"kind": "drop", "every": 7}),
        json!({"kind": "delay", "delay_s": 0.03}),
        json!({"kind": "hold"}),
        json!({"kind": "source", "source": {"kind": "periodic", "size": 1448, "count": 3, "every_s": 0.01}}),
    ];
    let when: Vec<Value> = several
        .into_iter()
        .enumerate()
        .map(|(n, effect)| {
            json!({"name": format!("s{n}"), "flow": "one", "state": up, "after_s": 0.3 * n as f64, "for_s": 0.1,
                   "each": true, "effect": effect})
        })
        .collect();
    let mut document = document("bbr3", &json!(when));
    document["links"][0]["rate_bps"] = json!(1_000_000_000);
    let text = document.to_string();
    let run = |exact| {
        let budget = Budget { exact, ..Budget::default() };
        simulate_within(&text, &Registry::default(), budget).expect("the document is valid")
    };
    let [fast, exact] = [false, true].map(run);
    let told = |outcome: &Outcome| {
        let mut counters = outcome.counters();
        counters["events"] = json!(0);
        counters.to_string()
    };
    assert_eq!(told(&fast), told(&exact));
    assert_eq!(fast.series.value, exact.series.value);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let good = stimulus(&at(1.0), None, &json!({"kind": "drop", "every": 1}));
    let with = |key: &str, value: Value| {
        let mut bad = good.clone();
        bad[key] = value;
        json!([bad])
    };
    for (when, message) in [
        (with("flow", json!("two")), "when[0].flow: unknown flow 'two'"),
        (with("state", json!([])), "when[0].state: empty; expected a comparison"),
        (with("effect", json!({"kind": "hold"})), "when[0]: 'hold' without an end; expected for_s"),
        (
            with("effect", json!({"kind": "drop", "every": 0})),
            "when[0].effect.every: 0 is not between 1 and 10000",
        ),
        (json!([good, good]), "when[1].name: duplicate name 's'"),
    ] {
        let error = check(&document("reno", &when).to_string()).expect_err(message);
        assert_eq!(error.to_string(), message);
    }
    let mut udp = document("reno", &json!([good]));
    udp["flows"][0]["transport"] = json!("udp");
    udp["flows"][0]["source"] = json!({"kind": "rate", "rate_bps": 1_000_000, "size": 1000});
    let error = check(&udp.to_string()).expect_err("a udp flow");
    assert!(
        error.to_string().starts_with("when[0].flow: 'one'; expected a flow with one TCP connection"),
        "{error}"
    );
}
