//! Resolved runs for tests: the dumbbell of the published suites, as JSON.

pub mod choices;
pub mod documents;
pub mod qdisc_words;

use bakeoff_sim::{Outcome, simulate};
use serde_json::{Value, json};

/// A dumbbell: netem delay at mid's ingress (half of the RTT each way), htb with a child qdisc on
/// both egresses.
#[derive(Clone)]
pub struct Dumbbell {
    pub rate: &'static str,
    pub rtt_ms: f64,
    pub qdisc: &'static str,
    pub flows: Vec<Value>,
    pub duration_s: f64,
    pub tcp_ecn: u8,
    pub seed: u64,
}

impl Default for Dumbbell {
    fn default() -> Self {
        Dumbbell {
            rate: "50mbit",
            rtt_ms: 20.0,
            qdisc: "pfifo limit 1000",
            flows: vec![flow("reno", "reno")],
            duration_s: 10.0,
            tcp_ecn: 3,
            seed: 1,
        }
    }
}

/// A bulk flow from cli to srv that starts at 0 and lasts for the whole run.
pub fn flow(name: &str, cc: &str) -> Value {
    json!({"name": name, "from": "cli", "to": "srv", "cc": cc, "transport": "tcp", "dscp": 0,
           "start_s": 0.0, "stop_s": 1e6, "source": {"kind": "bulk"}})
}

impl Dumbbell {
    pub fn document(&self) -> Value {
        let node = |name: &str, kind: &str| {
            let ecn = self.tcp_ecn.to_string();
            let sysctls = if kind == "host" { json!({"net.ipv4.tcp_ecn": ecn}) } else { json!({}) };
            json!({"name": name, "kind": kind, "hz": 250, "offloads": false, "sysctls": sysctls})
        };
        let side = |peer: &str| {
            let class = format!("rate {0} ceil {0}", self.rate);
            json!({"node": "mid", "peer": peer, "tx_queue_len": 1000,
                   "ingress": {"qdisc": format!("netem delay {}us limit 1000000", self.rtt_ms * 500.0)},
                   "egress": {"qdisc": "htb default 1", "classes": [
                       {"id": "1", "class": class, "child": {"qdisc": self.qdisc}}]}})
        };
        let link = |a: &str, b: &str| json!({"ends": [a, b], "rate_bps": null, "delay_s": 0.0, "mtu": 1500});
        json!({
            "format": 1, "suite": "test", "scenario": "test", "run": "test", "seed": self.seed,
            "duration_s": self.duration_s, "sample_interval_s": 0.05,
            "window_s": [self.duration_s / 2.0, self.duration_s],
            "nodes": [node("cli", "host"), node("mid", "bridge"), node("srv", "host")],
            "links": [link("cli", "mid"), link("mid", "srv")],
            "interfaces": [side("cli"), side("srv")],
            "flows": self.flows,
            "probes": [{"name": "ping", "proto": "icmp", "from": "cli", "to": "srv", "every_s": 0.05, "size": 84,
                        "dscp": 0, "ecn": "not-ect", "start_s": 0.0, "stop_s": 1e6}],
        })
    }

    pub fn run(&self) -> Outcome {
        simulate(&self.document().to_string()).expect("the document is valid")
    }
}

/// The samples of one series: (time, value).
pub fn series(outcome: &Outcome, kind: &str, name: &str, metric: &str) -> Vec<(f64, f64)> {
    let s = &outcome.series;
    let found = s.names.iter().position(|n| n.kind == kind && *n.name == *name && n.metric == metric);
    let at = found.expect("series exists") as u32;
    (0..s.time.len()).filter(|&i| s.series[i] == at).map(|i| (s.time[i], s.value[i])).collect()
}

/// Mean received rate of a flow in Mbit/s between two times.
pub fn goodput_mbit(outcome: &Outcome, flow: &str, from: f64, to: f64) -> f64 {
    let received = series(outcome, "flow", flow, "received");
    let at = |t: f64| received.iter().rev().find(|s| s.0 <= t).map_or(0.0, |s| s.1);
    (at(to) - at(from)) * 8.0 / (to - from) / 1e6
}
