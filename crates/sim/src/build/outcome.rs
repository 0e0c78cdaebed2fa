//! What a run leaves behind: series, counters, and qdisc statistics in tc's words.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::base::budget::Budget;
use crate::base::error::{Refused, SimError};
use crate::base::histogram::summary;
use crate::build::{NOT_MODELLED, build, parse};
use crate::cc::Registry;
use crate::endpoint::flow::{Application, Flow};
use crate::packet::Ecn;
use crate::qdisc::{Cause, Queue, Sojourn};
use crate::record::series::Series;
use crate::record::trace::Trace;
use crate::sim::Sim;

/// The results of one run; docs/results-folder.md says what each holds.
#[derive(Debug)]
pub struct Outcome {
    /// Tidy samples.
    pub series: Series,
    /// counters.json
    pub counters: Value,
    /// setup.log: the configuration in effect.
    pub setup: String,
    /// teardown.log: statistics as `tc -s -d` words them.
    pub teardown: String,
    /// Captures as pcapng, by the name that the run gives them.
    pub captures: Vec<(String, Vec<u8>)>,
    /// Internals of congestion controls, if the run asks for them.
    pub trace: Option<Series>,
}

/// Runs a resolved run given as JSON.
///
/// # Errors
/// [`SimError`]
pub fn simulate(json: &str) -> Result<Outcome, SimError> {
    simulate_with(json, &Registry::default())
}

/// The same, with congestion controls from outside: their names may stand in a flow's `cc`.
///
/// # Errors
/// [`SimError`]
pub fn simulate_with(json: &str, modules: &Registry) -> Result<Outcome, SimError> {
    simulate_within(json, modules, Budget::from_env()?)
}

/// The same, with a budget of its own.
///
/// # Errors
/// [`SimError`]
pub fn simulate_within(json: &str, modules: &Registry, budget: Budget) -> Result<Outcome, SimError> {
    let mut sim = build(parse(json)?, modules)?;
    sim.budget = budget;
    let setup = setup(&sim);
    sim.execute()?;
    if let Some(failure) = sim.failure() {
        return Err(SimError::Failed(failure));
    }
    let c = sim.conservation();
    let out = [c.delivered, c.dropped, c.queued];
    let packets: u64 = out.iter().map(|c| c.packets).sum();
    let bytes: u64 = out.iter().map(|c| c.bytes).sum();
    if c.sent.packets != packets || c.sent.bytes != bytes {
        return Err(SimError::Broken(format!("packets are not conserved: {c:?}")));
    }
    let counters = counters(&sim);
    let teardown = teardown(&sim);
    let captures = captures(&mut sim);
    let trace = sim.trace.take().map(Trace::finish);
    Ok(Outcome { series: sim.take_series(), counters, setup, teardown, captures, trace })
}

/// Builds everything that a resolved run names, without running; the configuration in effect.
///
/// # Errors
/// What is refused.
pub fn check(json: &str) -> Result<String, Refused> {
    check_with(json, &Registry::default())
}

/// The same, with congestion controls from outside.
///
/// # Errors
/// What is refused.
pub fn check_with(json: &str, modules: &Registry) -> Result<String, Refused> {
    Ok(setup(&build(parse(json)?, modules)?))
}

/// Every queue of the network with its name.
fn queues(sim: &Sim) -> Vec<(String, &Queue)> {
    let mut all = Vec::new();
    for (i, interface) in sim.interfaces.iter().enumerate() {
        let trees =
            [(&interface.egress, sim.graph.egress_name(i)), (&interface.ingress, sim.graph.ingress_name(i))];
        for (tree, name) in trees {
            let Some(tree) = tree else { continue };
            let mut names = tree.names(&name).into_iter();
            tree.for_each(&mut |_, q| all.extend(names.next().map(|name| (name, q))));
        }
    }
    all
}

fn counters(sim: &Sim) -> Value {
    let names: Vec<&str> = sim
        .flows
        .iter()
        .map(|f| f.spec.name.as_str())
        .chain(sim.probes.iter().map(|p| p.spec.name.as_str()))
        .collect();
    let flows: Map<String, Value> =
        sim.flows.iter().map(|f| (f.spec.name.clone(), flow_counters(f))).collect();
    let queues: Map<String, Value> =
        queues(sim).into_iter().map(|(n, q)| (n, queue_counters(q, &names))).collect();
    let probes: Map<String, Value> = sim
        .probes
        .iter()
        .map(|p| {
            (p.spec.name.clone(), json!({"sent": p.sent(), "received": p.received, "rtt": p.rtts.to_json()}))
        })
        .collect();
    let c = sim.conservation();
    let mut all = json!({
        "conservation": {
            "sent": c.sent.packets, "delivered": c.delivered.packets,
            "dropped": c.dropped.packets, "queued": c.queued.packets,
            "sent_bytes": c.sent.bytes, "delivered_bytes": c.delivered.bytes,
            "dropped_bytes": c.dropped.bytes, "queued_bytes": c.queued.bytes,
        },
        "events": sim.handled(),
    });
    // `json!` would copy these, which are large if there are thousands of flows.
    for (name, part) in [("flows", flows), ("queues", queues), ("probes", probes)] {
        all[name] = Value::Object(part);
    }
    if !sim.tunnels.is_empty() {
        all["tunnels"] = Value::Object(sim.tunnels.counters(&sim.graph).0);
    }
    all
}

fn flow_counters(flow: &Flow) -> Value {
    let mut v = json!({
        "cc": if flow.spec.transport == "udp" { "none" } else { flow.spec.cc.as_str() },
        "ecn": flow.ecn_name(),
        "mss": flow.mss(),
        "received_bytes": flow.received(),
        "rtt": flow.rtts.to_json(),
    });
    if let Some(t) = flow.totals() {
        let c = t.sender;
        v["sent_packets"] = json!(c.sent_packets);
        v["sent_bytes"] = json!(c.sent_bytes);
        v["retransmits"] = json!(c.retransmits);
        v["rtos"] = json!(c.rtos);
        v["tlps"] = json!(c.tlps);
        v["undos"] = json!(c.undos);
        v["delivered"] = json!(t.delivered);
        v["delivered_ce"] = json!(t.delivered_ce);
        v["lost"] = json!(t.lost);
    } else {
        let [packets, bytes] = match &flow.application {
            Application::Datagrams(datagrams) => [datagrams.sent().packets, datagrams.sent_frame_bytes()],
            _ => [0, 0],
        };
        v["sent_packets"] = json!(packets);
        v["sent_bytes"] = json!(bytes);
    }
    if let Some(arrived) = flow.arrived_by_ecn() {
        v["received_ce"] = json!(arrived[Ecn::Ce as usize]);
        v["received_ect1"] = json!(arrived[Ecn::Ect1 as usize]);
    }
    if let Some(c) = flow.receiver_counters() {
        v["acks"] = json!(c.acks);
        v["duplicates"] = json!(c.duplicates);
    }
    if let Application::Short(short) = &flow.application {
        let [offered, begun, ended] = short.count();
        v["objects"] = json!({"offered": offered, "begun": begun, "ended": ended});
    }
    v
}

fn queue_counters(queue: &Queue, names: &[&str]) -> Value {
    let t = &queue.tally;
    let flows: Map<String, Value> = names
        .iter()
        .zip(&t.flows)
        .map(|(n, f)| {
            (
                (*n).to_owned(),
                json!({"packets": f.packets, "marks": f.marks, "sce_marks": f.sce_marks, "drops": f.drops}),
            )
        })
        .collect();
    let mut counters = json!({
        "qdisc": queue.show(),
        "enqueued": t.enqueued,
        // As tc counts: segments.
        "sent": t.sent + t.more_segs,
        "sent_bytes": t.sent_bytes,
        "queued": queue.qlen(),
        "marks": t.marks,
        "sce_marks": t.sce_marks,
        "drops": {
            "overlimit": t.drops[Cause::Overlimit as usize],
            "aqm": t.drops[Cause::Aqm as usize],
            "overload": t.drops[Cause::Overload as usize],
            "loss": t.drops[Cause::Loss as usize],
        },
        "sojourn": summary(queue.sojourn.as_ref().and_then(Sojourn::histogram).as_ref()),
    });
    counters["flows"] = Value::Object(flows);
    counters
}

fn captures(sim: &mut Sim) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for i in 0..sim.interfaces.len() {
        let [sent, arrived] = std::mem::take(&mut sim.interfaces[i].captures);
        files.extend(sent.map(|c| (sim.graph.egress_name(i), c.finish())));
        files.extend(arrived.map(|c| (sim.graph.ingress_name(i), c.finish())));
    }
    files
}

fn setup(sim: &Sim) -> String {
    let mut text = sim.tunnels.show(&sim.graph);
    for node in &sim.run.nodes {
        for name in NOT_MODELLED.iter().filter(|&&name| node.sysctls.contains_key(name)) {
            let _ = writeln!(text, "{}: {name} is not modelled: memory of TCP has no bound here", node.name);
        }
    }
    for (name, queue) in queues(sim) {
        let _ = writeln!(text, "{name}: qdisc {}", queue.show());
        for class in queue.show_classes() {
            let _ = writeln!(text, "{name}: {class}");
        }
    }
    text
}

fn teardown(sim: &Sim) -> String {
    let mut text = sim.tunnels.counters(&sim.graph).1;
    for (i, interface) in sim.interfaces.iter().enumerate() {
        // The handles that the lab gives to egress and ingress.
        let trees = [
            (&interface.egress, sim.graph.egress_name(i), 1),
            (&interface.ingress, sim.graph.ingress_name(i), 0x100),
        ];
        for (tree, name, root) in trees {
            if let Some(tree) = tree {
                text += &tree.show_tree(Some(&name), root, sim.now());
            }
        }
    }
    text
}
