//! The shortcuts of the event loop (`sim/fast_path`) change no result.
//!
//! [`Budget::exact`] runs every packet step by step, and a run with shortcuts must leave behind what that run leaves
//! behind. Captures exclude most shortcuts too, so a run whose interfaces are all captured must agree as well. Rates,
//! delays and starts are round numbers, so that many things happen in the same nanosecond.

use crate::common::series;
use bakeoff_sim::{Budget, Outcome, Registry, simulate_within};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A row of routers with hosts `a`, `b` before the first, `c`, `d` behind the last, and `e`, `f` at both ends of what is between.
#[derive(Clone, Debug)]
struct Network {
    /// Of the cables between routers, one more than there are routers between: Mbit/s (0 for none), milliseconds.
    trunks: Vec<(u64, u64)>,
    /// What leaves the first router to the right: nothing but the device's own fifo, or a qdisc.
    qdisc: Option<&'static str>,
    /// What a packet from a host waits in at its router: nothing, a netem of so many milliseconds and this limit, or the
    /// netem in an htb.
    delay: Option<(u64, u32, bool)>,
    access_mbit: u64,
    access_ms: u64,
    /// Of each host so many routers, or fewer, stand between its cable and its router, on cables that take no time.
    handing_on: usize,
    tx_queue_len: u32,
    offloads: bool,
    /// Control, from, to, start in milliseconds; `udp` is a control too.
    flows: Vec<(&'static str, usize, usize, u64)>,
    /// A timed change of the last trunk's rate.
    changes: bool,
    /// A ping from `a` to `f`, which is never delivered early, and which keeps the trunks out of lanes.
    pinged: bool,
    /// Hosts stall, and their timers and frames are late.
    unpunctual: bool,
    sample_ms: u64,
}

const HOSTS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

impl Network {
    fn document(&self, captured: bool) -> Value {
        let router = |n: usize| format!("r{n}");
        let last = self.trunks.len();
        let node = |name: String, kind: &str| {
            let sysctls = if kind == "host" {
                json!({"net.ipv4.tcp_ecn": "1", "net.ipv4.tcp_limit_output_bytes": "40000"})
            } else {
                json!({})
            };
            let mut node =
                json!({"name": name, "kind": kind, "hz": 250, "offloads": self.offloads, "sysctls": sysctls});
            if kind == "host" && self.unpunctual {
                node["stall"] = json!({"length_s": 0.01, "every_s": 0.2});
                node["timer_slack_s"] = json!(0.0001);
                node["receive_coalescing_s"] = json!(0.0001);
            }
            node
        };
        let rate = |mbit: u64| (mbit > 0).then_some(mbit * 1_000_000);
        let link = |a: String, b: String, mbit: u64, ms: u64| json!({"ends": [a, b], "rate_bps": rate(mbit), "delay_s": ms as f64 / 1e3, "mtu": 1500});
        let at = [0, 0, last, last, 0, last];
        let mut links = Vec::new();
        let mut between = Vec::new();
        for (h, (host, n)) in HOSTS.iter().zip(at).enumerate() {
            let row = (0..h % (self.handing_on + 1)).map(|x| format!("{host}{x}")).collect::<Vec<_>>();
            let way = [vec![(*host).to_owned()], row.clone(), vec![router(n)]].concat();
            let cable = |x: usize| if x == 0 { (self.access_mbit, self.access_ms) } else { (0, 0) };
            links.extend(way.windows(2).enumerate().map(|(x, ends)| {
                let (mbit, ms) = cable(x);
                link(ends[0].clone(), ends[1].clone(), mbit, ms)
            }));
            between.extend(row);
        }
        links.extend(
            self.trunks.iter().enumerate().map(|(n, (mbit, ms))| link(router(n), router(n + 1), *mbit, *ms)),
        );
        let mut names = Vec::new();
        let mut interfaces = Vec::new();
        for link in &links {
            let [a, b] = [0, 1].map(|e| link["ends"][e].as_str().expect("a name").to_owned());
            for (node, peer) in [(&a, &b), (&b, &a)] {
                names.extend([format!("{node}>{peer}"), format!("{node}<{peer}")]);
                let mut interface = json!({"node": node, "peer": peer, "tx_queue_len": self.tx_queue_len});
                if let (Some(qdisc), "r0", "r1") = (self.qdisc, node.as_str(), peer.as_str()) {
                    interface["egress"] = json!({"qdisc": qdisc});
                }
                if let (Some((ms, limit, shaped)), true) =
                    (self.delay, !peer.starts_with('r') && node.starts_with('r'))
                {
                    let netem = json!({"qdisc": format!("netem delay {ms}ms limit {limit}")});
                    let class = json!({"id": "1", "class": "rate 80mbit", "child": netem.clone()});
                    let other = json!({"id": "2", "class": "rate 9mbit", "child": netem.clone(), "filters": [{"flow": "flow0"}]});
                    let htb = json!({"qdisc": "htb default 1", "classes": [class, other]});
                    interface["ingress"] = if shaped { htb } else { netem };
                }
                interfaces.push(interface);
            }
        }
        let flows: Vec<Value> = self
            .flows
            .iter()
            .enumerate()
            .map(|(n, (cc, from, to, start))| {
                let udp = *cc == "udp";
                let source = if udp {
                    json!({"kind": "periodic", "size": 1000, "count": 30, "every_s": 0.02})
                } else {
                    json!({"kind": "bulk"})
                };
                json!({"name": format!("flow{n}"), "from": HOSTS[*from], "to": HOSTS[*to],
                       "cc": if udp { "none" } else { cc }, "transport": if udp { "udp" } else { "tcp" }, "dscp": 0,
                       "start_s": *start as f64 / 1e3, "stop_s": 1.0, "source": source})
            })
            .collect();
        let change = json!({"at_s": 0.5, "node": router(last - 1), "peer": router(last),
                            "action": {"kind": "link", "rate_bps": 7_000_000, "delay_s": 0.001}});
        let ping = json!({"name": "ping", "proto": "icmp", "from": "a", "to": "f", "every_s": 0.01, "size": 84,
                          "dscp": 0, "ecn": "not-ect", "start_s": 0.0, "stop_s": 1.0});
        let nodes = HOSTS
            .iter()
            .map(|host| node((*host).into(), "host"))
            .chain((0..=last).map(router).chain(between).map(|name| node(name, "router")));
        json!({
            "format": 1, "suite": "test", "scenario": "lanes", "run": "random", "seed": 1,
            "duration_s": 1.0, "sample_interval_s": self.sample_ms as f64 / 1e3, "window_s": [0.2, 1.0],
            "nodes": nodes.collect::<Vec<_>>(), "links": links, "interfaces": interfaces, "flows": flows,
            "probes": if self.pinged { vec![ping] } else { vec![] },
            "changes": if self.changes { vec![change] } else { vec![] },
            "captures": if captured { names } else { vec![] },
        })
    }

    fn run(&self, captured: bool) -> Outcome {
        self.within(captured, false)
    }

    fn exact(&self) -> Outcome {
        self.within(false, true)
    }

    fn within(&self, captured: bool, exact: bool) -> Outcome {
        let document = self.document(captured).to_string();
        let budget = Budget { exact, ..Budget::default() };
        let outcome = simulate_within(&document, &Registry::default(), budget);
        let mut outcome = outcome.unwrap_or_else(|e| panic!("{e}: {document}"));
        let mut counters = outcome.counters();
        counters.as_object_mut().expect("a table").remove("events");
        outcome.counters = counters.to_string();
        outcome
    }
}

fn networks() -> impl Strategy<Value = Network> {
    let trunk =
        prop_oneof![3 => (prop::sample::select(vec![0_u64, 8, 10, 40, 100]), 0_u64..6), 1 => Just((0, 0))];
    let qdisc = prop::sample::select(vec![
        None,
        Some("pfifo limit 20"),
        Some("fq_codel"),
        Some("tbf rate 8mbit burst 3k limit 20000"),
        Some("netem delay 2ms"),
    ]);
    let delay =
        (prop::sample::select(vec![0_u64, 1, 3]), prop::sample::select(vec![4_u32, 1000]), any::<bool>());
    let cc = prop::sample::select(vec!["cubic", "reno", "bbr", "prague", "udp"]);
    // From one side to the other, so that the first trunk bounds them all.
    let ends = (prop::sample::select(vec![0_usize, 1, 4]), prop::sample::select(vec![2_usize, 3, 5]));
    let flow = (cc, ends, any::<bool>(), prop::sample::select(vec![0_u64, 100]))
        .prop_map(|(cc, (a, b), there, start)| if there { (cc, a, b, start) } else { (cc, b, a, start) });
    let slow = (prop::sample::select(vec![0_u64, 10, 40, 80, 1000]), 0_u64..3);
    // As in the catalog: no time at all.
    let access = prop_oneof![2 => slow, 1 => Just((0, 0))];
    let first = (prop::sample::select(vec![8_u64, 10, 40]), 0_u64..6);
    let trunks = (first, prop::collection::vec(trunk, 0..3))
        .prop_map(|(first, others)| [vec![first], others].concat());
    (
        trunks,
        (qdisc, prop::option::of(delay)),
        (access, 0_usize..3),
        prop::sample::select(vec![2_u32, 10, 1000]),
        any::<bool>(),
        prop::collection::vec(flow, 1..5),
        any::<[bool; 3]>(),
        prop::sample::select(vec![10_u64, 100]),
    )
        .prop_map(
            |(
                trunks,
                (qdisc, delay),
                (access, handing_on),
                tx_queue_len,
                offloads,
                flows,
                [changes, pinged, unpunctual],
                sample_ms,
            )| {
                let (access_mbit, access_ms) = access;
                Network {
                    trunks,
                    qdisc,
                    delay,
                    access_mbit,
                    access_ms,
                    handing_on,
                    tx_queue_len,
                    offloads,
                    flows,
                    changes,
                    pinged,
                    unpunctual,
                    sample_ms,
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn step_by_step_gives_the_same(network in networks()) {
        let (fast, exact, captured) = (network.run(false), network.exact(), network.run(true));
        prop_assert!(!captured.captures.is_empty());
        for steps in [exact, captured] {
            prop_assert_eq!(&fast.counters, &steps.counters);
            prop_assert_eq!(&fast.teardown, &steps.teardown);
            prop_assert_eq!(&fast.series, &steps.series);
        }
    }
}

/// One flow over nothing but devices.
fn alone() -> Network {
    Network {
        trunks: vec![(10, 2), (100, 2), (100, 2)],
        qdisc: None,
        delay: None,
        access_mbit: 1000,
        access_ms: 0,
        handing_on: 0,
        tx_queue_len: 1000,
        offloads: false,
        flows: vec![("cubic", 0, 2, 0)],
        changes: false,
        pinged: true,
        unpunctual: false,
        sample_ms: 10,
    }
}

#[test]
fn a_reply_is_not_delivered_early_while_a_burst_leaves() {
    // All the way is one lane there and one back, 12 ms long, and no sample for 100 ms. A receiver acknowledges each of the
    // first segments at once. If the ACK for the first of a burst were delivered before the sender sends the second, what
    // it sends upon that, 12 ms later, would go into its device before the second.
    let network = Network { pinged: false, sample_ms: 100, ..alone() };
    let (fast, exact) = (network.run(false), network.exact());
    assert_eq!(fast.counters, exact.counters);
    assert_eq!(fast.series, exact.series);
}

#[test]
fn queues_end_what_is_passed_at_once() {
    // Between each host and the routers is one more, which only hands on to them.
    let row = Network {
        trunks: vec![(0, 0)],
        access_mbit: 0,
        handing_on: 1,
        flows: vec![("cubic", 1, 3, 0)],
        pinged: false,
        ..alone()
    };
    // A shaper to 8 Mbit/s of frames of 1514 bytes, for a second; hosts have cables of 3 ms.
    let shaped = Network { qdisc: Some("tbf rate 8mbit burst 3k limit 20000"), access_ms: 3, ..row.clone() }
        .run(false);
    let received = shaped.counters()["flows"]["flow0"]["received_bytes"].as_u64().expect("a number");
    let most = (1_000_000 + 3072) * 1448 / 1514;
    assert!((most * 8 / 10..=most).contains(&received), "{received} of {most}");
    // A netem of 3 ms for each direction; no cable takes time.
    let delayed = Network { delay: Some((3, 1000, false)), ..row }.run(false);
    let srtts = series(&delayed, "flow", "flow0", "srtt");
    assert!(srtts.len() > 50 && srtts.iter().all(|(_, srtt)| *srtt >= 0.006), "{srtts:?}");
}

#[test]
fn lanes_take_fewer_events() {
    // Otherwise the property above compares two equal ways.
    let document = alone().document(false).to_string();
    let events = |exact: bool| {
        let budget = Budget { exact, ..Budget::default() };
        let outcome =
            simulate_within(&document, &Registry::default(), budget).expect("the document is valid");
        outcome.counters()["events"].as_u64().expect("a number")
    };
    // A data packet leaves five devices, one after the other, and its half of an ACK five more: 7.5 arrivals against 1.5.
    let [lanes, steps] = [false, true].map(events);
    assert!(3 * lanes < steps, "{lanes} events against {steps}");
}
