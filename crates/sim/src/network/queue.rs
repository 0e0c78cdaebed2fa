//! The queues of an interface, made from what the run says of them.

use std::sync::Arc;

use crate::base::error::Refused;
use crate::base::units::Time;
use crate::packet::charge::Charges;
use crate::qdisc::{Env, Queue};
use bakeoff_document::run::{self, Node, Run};

/// What a queue of this name on `node` knows of the rest; `txqueuelen` and MTU are its device's.
pub fn env(
    run: &Run,
    name: String,
    node: &Node,
    (tx_queue_len, mtu): (u32, u32),
    traffic: &Arc<[String]>,
    charges: &Charges,
) -> Env {
    let index = |name: &str| run.nodes.iter().position(|n| n.name == name).unwrap_or(0) as u16;
    let flows = run.flows.iter().map(|f| [index(&f.from), index(&f.to)]);
    let probes = run.probes.iter().map(|p| [index(&p.from), index(&p.to)]);
    Env {
        seed: run.seed,
        name,
        mtu,
        tx_queue_len,
        hz: node.hz,
        replaced: None,
        bridge: node.kind == run::NodeKind::Bridge,
        host: node.kind == run::NodeKind::Host,
        flows: traffic.len(),
        flow_names: traffic.clone(),
        endpoints: flows.chain(probes).collect(),
        told_buckets: false,
        charges: if node.kind == run::NodeKind::Host { charges.clone() } else { Charges::default() },
    }
}

/// The queue that `spec` describes; it records the sojourn inside the run's window.
///
/// # Errors
/// What tc would refuse, with its place.
pub fn queue(run: &Run, spec: &run::Qdisc, env: &Env, place: &str) -> Result<Queue, Refused> {
    let mut queue = Queue::build(spec, env).map_err(|e| Refused(format!("{place}: {e}")))?;
    let [from, to] = run.window_s.map(Time::from_secs_f64);
    queue.record_window(from, to);
    Ok(queue)
}
