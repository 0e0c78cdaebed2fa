//! Random resolved runs: valid ones over all that a document can say, and ways to spoil them.

use bakeoff_sim::{cc, qdisc};
use serde_json::{Map, Value, json};

use super::choices::Choices;
use super::qdisc_words::{RATES, line};

const ECN: [&str; 4] = ["not-ect", "ect0", "ect1", "ce"];
const TUNNELS: [&str; 5] = ["wireguard", "ipsec", "fou", "gre", "vxlan"];

/// A qdisc and what may stand below it.
fn tree(c: &mut Choices, depth: usize) -> Value {
    let kind = qdisc::NAMES[c.below(qdisc::NAMES.len())];
    let mut text = line(c, kind);
    let child = |c: &mut Choices| if depth < 2 && !c.once_in(3) { tree(c, depth + 1) } else { Value::Null };
    match kind {
        "htb" => {
            text += " default 1";
            let classes: Vec<Value> = (1..=1 + c.below(3))
                .map(|id| {
                    let rate = c.of(&RATES[..5]);
                    let more = c.of(&["", " ceil 1gbit", " burst 15k", " quantum 1514", " prio 3", " cburst 1", " mpu 64"]);
                    let filters = if id > 1 { json!([matching(c)]) } else { json!([]) };
                    json!({"id": id.to_string(), "class": format!("rate {rate}{more}"), "filters": filters, "child": child(c)})
                })
                .collect();
            json!({"qdisc": text, "classes": classes})
        }
        "prio" => {
            json!({"qdisc": text, "classes": [{"id": "1", "child": child(c)}, {"id": "2", "filters": [matching(c)]}]})
        }
        "netem" | "tbf" => json!({"qdisc": text, "child": child(c)}),
        _ => json!({"qdisc": text}),
    }
}

fn matching(c: &mut Choices) -> Value {
    c.of(&[
        r#"{"proto": "tcp"}"#,
        r#"{"dscp": 10}"#,
        r#"{"ecn": "ect1"}"#,
        r#"{"syn": true}"#,
        r#"{"flow": "f0"}"#,
        "{}",
    ])
    .parse()
    .expect("JSON")
}

fn mangling(c: &mut Choices) -> Value {
    let (dscp, clear) = (c.of(&[0, 10, 63]), c.once_in(2));
    json!({"match": matching(c), "set_dscp": dscp, "set_ecn": c.of(&ECN), "clear_syn_ecn": clear})
}

fn source(c: &mut Choices) -> Value {
    match c.below(6) {
        0 => json!({"kind": "bulk"}),
        1 => json!({"kind": "bytes", "bytes": c.of(&[1_u64, 1448, 100_000, 1_000_000_000_000_000])}),
        2 => {
            json!({"kind": "rate", "rate_bps": c.of(&[1_000_000_u64, 1, 10_000_000_000_000]), "size": c.of(&[1200, 1, 65_507])})
        }
        3 => json!({"kind": "periodic", "size": c.of(&[160, 1, 65_507]), "count": c.of(&[1, 7, 10_000]),
                    "every_s": c.of(&[0.01, 1e-6, 1e9])}),
        4 => {
            json!({"kind": "short", "objects": [[0.0, c.of(&[1_u64, 20_000, 1 << 40])], [0.01, 5000], [c.of(&[0.05, 1e9]), 1]]})
        }
        _ => json!({"kind": "video", "rates_bps": [1_000_000, c.of(&[5_000_000_u64, 10_000_000_000_000])],
                    "segment_s": c.of(&[1.0, 0.001]), "buffer_s": c.of(&[3.0, 1e6])}),
    }
}

fn flow(c: &mut Choices, i: usize, cc: &str, tunnelled: bool) -> Value {
    let source = source(c);
    let udp = c.once_in(3) && ["rate", "periodic"].contains(&source["kind"].as_str().unwrap_or_default());
    let ends = if c.once_in(4) { ["b", "a"] } else { ["a", "b"] };
    let pacing = c.of(&[Value::Null, json!(10_000_000), json!(1), json!(10_000_000_000_000_u64)]);
    json!({"name": format!("f{i}"), "from": ends[0], "to": ends[1], "cc": cc, "transport": if udp { "udp" } else { "tcp" },
           "dscp": c.of(&[0, 10, 46, 63]), "start_s": c.of(&[0.0, 0.001, 0.1]), "stop_s": c.of(&[1.0, 0.05, 1e9]), "source": source,
           "max_pacing_rate_bps": pacing, "tunnel": if tunnelled && c.once_in(2) { json!("t") } else { Value::Null }})
}

fn probe(c: &mut Choices, i: usize, tunnelled: bool) -> Value {
    json!({"name": format!("p{i}"), "proto": c.of(&["icmp", "udp"]), "from": "a", "to": "b", "every_s": c.of(&[0.01, 0.001, 1e-6]),
           "size": c.of(&[84, 28, 1400, 65_535]), "dscp": 0, "ecn": c.of(&ECN), "start_s": 0.0, "stop_s": 1.0,
           "tunnel": if tunnelled && c.once_in(2) { json!("t") } else { Value::Null }})
}

fn features(c: &mut Choices, ends: [&str; 2]) -> Value {
    let mut all = Map::new();
    match c.below(12) {
        7 => all.insert("wifi".into(), json!({"access_s": [0.0, c.of(&[0.001, 0.0])], "packets": c.of(&[8, 1]), "bytes": c.of(&[65_535, 0])})),
        8 => all.insert("docsis".into(), json!({"modem": ends[0], "interval_s": c.of(&[0.002, 1e-5]), "pending": c.of(&[2_u32, u32::MAX])})),
        9 => all.insert("trace".into(), json!({ends[0]: {"file": "x", "ms": [0, 1, 1, c.of(&[5_u64, 1_000_000_000])]}})),
        10 => {
            let path = json!({"weight": 1, "rate_bps": c.of(&[Some(5_000_000_u64), None]), "delay_s": c.of(&[0.001, 1000.0]),
                              "loss": c.of(&[0.0, 1.0]), "limit": c.of(&[100, 1])});
            all.insert("multipath".into(), json!({"by": c.of(&["packet", "flow"]), "paths": [path.clone(), path]}))
        }
        _ => None,
    };
    if c.once_in(8) {
        let exceed = c.of(&[r#""drop""#, r#"{"dscp": 63}"#]).parse::<Value>().expect("JSON");
        all.insert("police".into(), json!({ends[1]: {"rate_bps": c.of(&[5_000_000_u64, 1, 10_000_000_000_000]), "burst": c.of(&[20_000, 1, 1_000_000_000]), "exceed": exceed}}));
    }
    if c.once_in(8) {
        all.insert("jitter".into(), json!({"wifi_s": c.of(&[0.007, 0.0, 0.1])}));
    }
    if c.once_in(8) && all.keys().all(|name| name == "wifi") {
        all.insert("half_duplex".into(), json!({"turnaround_s": c.of(&[0.0, 1e-5, 10.0])}));
    }
    Value::Object(all)
}

fn change(c: &mut Choices, ends: [&str; 2]) -> Value {
    let side = c.of(&["egress", "ingress"]);
    let handle = c.of(&["", "1", "1/child", "child"]);
    let action = match c.below(4) {
        0 => {
            json!({"kind": "link", "rate_bps": c.of(&[Some(1_000_000_u64), None, Some(1)]), "delay_s": c.of(&[Some(0.01), None, Some(1000.0)]),
                    "loss": c.of(&[None, Some(0.5)]), "up": c.of(&[None, Some(false), Some(true)])})
        }
        1 => {
            json!({"kind": "class-change", "side": side, "id": "1", "class": format!("rate {}", c.of(&RATES))})
        }
        2 => {
            let kind = qdisc::NAMES[c.below(qdisc::NAMES.len())];
            json!({"kind": "qdisc-change", "side": side, "handle": handle, "qdisc": line(c, kind)})
        }
        _ => json!({"kind": "qdisc-replace", "side": side, "handle": handle, "qdisc": tree(c, 1)}),
    };
    json!({"at_s": c.of(&[0.02, 0.0, 0.1]), "node": ends[0], "peer": ends[1], "action": action})
}

fn stimulus(c: &mut Choices, i: usize, ends: [&str; 2]) -> Value {
    let effect = match c.below(6) {
        0 => json!({"kind": "drop", "every": c.of(&[1, 3, 10_000]), "most": c.of(&[None, Some(1)])}),
        1 => json!({"kind": "mark", "every": c.of(&[1, 3]), "most": c.of(&[None, Some(1)])}),
        2 => json!({"kind": "delay", "delay_s": c.of(&[0.0, 0.01, 1000.0])}),
        3 => json!({"kind": "hold"}),
        4 => json!({"kind": "source", "source": if c.once_in(3) { Value::Null } else { source(c) }}),
        _ => {
            let mut change = change(c, ends);
            change.as_object_mut().map(|map| map.remove("at_s"));
            json!({"kind": "change", "begin": [change], "end": if c.once_in(2) { json!([change]) } else { json!([]) }})
        }
    };
    let variable = c.of(&["time", "cc.cwnd", "cc.in_flight", "cc.mode", "cc.state"]);
    let term = json!({"variable": variable, "is": c.of(&["eq", "ne", "lt", "le", "gt", "ge"]), "value": c.of(&[0.0, 0.03, 2.0, 12.0])});
    json!({"name": format!("s{i}"), "flow": "f0", "state": [term], "after_s": c.of(&[0.0, 0.01, 1e9]), "for_s": c.of(&[0.0, 0.02, 1e9]),
           "each": c.once_in(2), "effect": effect})
}

fn node(c: &mut Choices, name: &str) -> Value {
    let kind = if name.starts_with('m') { c.of(&["bridge", "router"]) } else { "host" };
    let mut sysctls = Map::new();
    if kind == "host" {
        sysctls.insert("net.ipv4.tcp_ecn".into(), json!(c.of(&["3", "0", "1", "2", "4", "5"])));
        for name in [
            "tcp_sack",
            "tcp_ecn_fallback",
            "tcp_sce",
            "tcp_sce_pacing",
            "tcp_slow_start_after_idle",
            "tcp_moderate_rcvbuf",
        ] {
            if c.once_in(6) {
                sysctls.insert(format!("net.ipv4.{name}"), json!(c.of(&["0", "1"])));
            }
        }
        for name in ["tcp_rmem", "tcp_wmem"] {
            if c.once_in(5) {
                let words = ["4096 131072 6291456", "1 1 1", "0 0 0", "4096 2147483647 2147483647"];
                sysctls.insert(format!("net.ipv4.{name}"), json!(c.of(&words)));
            }
        }
        let ratios = ["tcp_pacing_ss_ratio", "tcp_pacing_ca_ratio", "tcp_comp_sack_rtt_percent"];
        let others = ["tcp_limit_output_bytes", "tcp_comp_sack_delay_ns", "tcp_comp_sack_slack_ns"];
        for name in ratios.into_iter().chain(others) {
            if c.once_in(6) {
                sysctls.insert(format!("net.ipv4.{name}"), json!(c.of(&["1", "120", "1000"])));
            }
        }
        if c.once_in(6) {
            sysctls.insert("net.ipv4.tcp_ecn_option".into(), json!(c.of(&["0", "1", "2", "3"])));
        }
    }
    let mut node = json!({"name": name, "kind": kind, "hz": c.of(&[250, 100, 1000, 300]), "offloads": c.once_in(3), "sysctls": sysctls});
    if kind == "host" && c.once_in(4) {
        node["stall"] =
            json!({"length_s": c.of(&[0.005, 0.0, 1e-9, 0.5]), "every_s": c.of(&[1.0, 0.6, 1e9])});
        node["timer_slack_s"] = json!(c.of(&[0.0, 50e-6, 1000.0]));
        node["receive_coalescing_s"] = json!(c.of(&[0.0, 50e-6, 1000.0]));
    }
    node
}

fn link(c: &mut Choices, ends: [&str; 2], mtu: u32) -> Value {
    let features = features(c, ends);
    let given = features.get("trace").or(features.get("multipath")).is_some();
    let needed = ["wifi", "docsis", "half_duplex"].iter().any(|name| features.get(name).is_some());
    let rate =
        match c.of(&[None, Some(10_000_000_u64), Some(1_000_000_000), Some(1), Some(10_000_000_000_000)]) {
            _ if given => None,
            None if needed => Some(50_000_000),
            rate => rate,
        };
    let loss = c.of(&["0.0", "0.0", "0.05", "1.0", &format!(r#"{{"{}": 0.1}}"#, ends[0])]).parse::<Value>();
    json!({"ends": ends, "rate_bps": rate, "delay_s": c.of(&[0.0, 0.001, 0.02, 1000.0]), "mtu": mtu,
                   "loss": loss.expect("JSON"), "features": features})
}

/// A document that is valid but for what its parts make of each other.
pub fn document(c: &mut Choices) -> Value {
    let middles: Vec<String> = (0..=c.below(3)).map(|i| format!("m{i}")).collect();
    let names: Vec<&str> =
        [&["a"][..], &middles.iter().map(String::as_str).collect::<Vec<_>>(), &["b"]].concat();
    let nodes: Vec<Value> = names.iter().map(|name| node(c, name)).collect();
    let pairs: Vec<[&str; 2]> = names.windows(2).map(|pair| [pair[0], pair[1]]).collect();
    let mtu = c.of(&[1500, 1500, 1500, 128, 576, 9000, 65_535]);
    let links: Vec<Value> = pairs.iter().map(|ends| link(c, *ends, mtu)).collect();
    let ends: Vec<[&str; 2]> = pairs.iter().flat_map(|[a, b]| [[*a, *b], [*b, *a]]).collect();
    let interfaces: Vec<Value> = ends
        .iter()
        .filter_map(|[node, peer]| {
            let (egress, ingress) = (c.once_in(2), c.once_in(5));
            let egress = egress.then(|| tree(c, 0));
            let ingress = ingress.then(|| tree(c, 0));
            let mangle = c.some(1, |c, _| mangling(c));
            (egress.is_some() || ingress.is_some() || !mangle.is_empty()).then(|| {
                let len = c.of(&[1000_u32, 1, 0, u32::MAX]);
                json!({"node": node, "peer": peer, "tx_queue_len": len, "egress": egress, "ingress": ingress, "mangle": mangle})
            })
        })
        .collect();
    let tunnels: Vec<Value> = c.some(1, |c, _| {
        let kind = c.of(&TUNNELS);
        let window = if kind == "ipsec" { json!(c.of(&[64, 0, 1, 8192])) } else { Value::Null };
        let cipher = if kind == "ipsec" { json!(c.of(&["aes-gcm", "aes-cbc-hmac-sha256"])) } else { Value::Null };
        json!({"name": "t", "kind": kind, "ends": ["a", "b"], "replay_window": window, "cipher": cipher, "inner_hash": c.once_in(2)})
    });
    let tunnelled = !tunnels.is_empty();
    let flows: Vec<Value> = (0..=c.below(3))
        .map(|i| {
            let name = cc::NAMES[c.below(cc::NAMES.len())];
            let cc = if name == "none" {
                format!("none cwnd {}", c.of(&[10, 1, 1_000_000]))
            } else {
                name.to_owned()
            };
            flow(c, i, &cc, tunnelled)
        })
        .collect();
    let probes = c.some(2, |c, i| probe(c, i, tunnelled));
    let changes = c.some(3, |c, _| {
        let ends = c.of(&ends);
        change(c, ends)
    });
    let when = c.some(2, |c, i| {
        let ends = c.of(&ends);
        stimulus(c, i, ends)
    });
    let captures: Vec<String> = c.some(1, |c, _| {
        let [node, peer] = c.of(&ends);
        format!("{node}{}{peer}", c.of(&[">", "<"]))
    });
    json!({"format": 1, "suite": "s", "scenario": "s", "run": "r", "seed": c.of(&[1, 2, u64::MAX]), "duration_s": c.of(&[0.05, 0.1, 0.3]),
           "sample_interval_s": c.of(&[0.05, 0.001, 1e-4]), "window_s": [0.01, 0.3], "nodes": nodes, "links": links,
           "interfaces": interfaces, "tunnels": tunnels, "flows": flows, "probes": probes, "changes": changes, "when": when,
           "captures": captures, "trace": if c.once_in(3) { json!(["cc"]) } else { json!([]) }})
}

/// Every value below and at `value`, in order.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(count).sum(),
        Value::Object(map) => map.values().map(count).sum(),
        _ => 0_usize,
    }
}

/// The `n`th of them.
fn at(value: &mut Value, n: usize) -> &mut Value {
    if n == 0 {
        return value;
    }
    let mut left = n - 1;
    let children: Vec<&mut Value> = match value {
        Value::Array(list) => list.iter_mut().collect(),
        Value::Object(map) => map.values_mut().collect(),
        _ => unreachable!("n is below the count"),
    };
    for child in children {
        let inside = count(child);
        if left < inside {
            return at(child, left);
        }
        left -= inside;
    }
    unreachable!("n is below the count")
}

/// Spoils one value: numbers that are absurd, other words, keys too few or too many, another type.
pub fn spoil(c: &mut Choices, doc: &mut Value) {
    let n = c.below(count(doc));
    let value = at(doc, n);
    let absurd = [
        json!(0),
        json!(-1),
        json!(1),
        json!(64),
        json!(65_536),
        json!(1_u64 << 31),
        json!(u32::MAX),
        json!(1_u64 << 32),
        json!(u64::MAX),
        json!(1e308),
        json!(-1e308),
        json!(1e-9),
        json!(0.5),
        json!(1e18),
    ];
    match (c.below(4), value) {
        (0, Value::String(text)) => {
            let word = c.below(text.split(' ').count());
            let mut words: Vec<&str> = text.split(' ').collect();
            words[word] = c.of(&[
                "",
                "0",
                "-1",
                "4294967295",
                "1e9",
                "99999999999gbit",
                "4294s",
                "é",
                "\u{0}",
                "a",
                "f0",
                "none",
                "default",
            ]);
            *text = words.join(" ");
        }
        (1, Value::Object(map)) if !map.is_empty() => {
            let key = map.keys().nth(c.below(map.len())).cloned().unwrap_or_default();
            map.remove(&key);
        }
        (2, Value::Object(map)) => {
            map.insert("extra".into(), json!(1));
        }
        (1 | 2, Value::Array(list)) if !list.is_empty() => {
            let again = list[c.below(list.len())].clone();
            list.push(again);
        }
        (0..=2, value @ Value::Number(_)) => *value = absurd[c.below(absurd.len())].clone(),
        (_, value) => {
            *value = c.of(&["null", "[]", "{}", "true", "\"\"", "1", "[1, 2]"]).parse().expect("JSON");
        }
    }
}
