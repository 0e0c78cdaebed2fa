//! What a run leaves behind: series, counters, and qdisc statistics in tc's words.

use std::fmt::Write as _;

use serde_json::Value;

use crate::base::budget::Budget;
use crate::base::error::{Refused, SimError};
use crate::build::counters::{counters, queues};
use crate::build::{NOT_MODELLED, build, parse};
use crate::cc::Registry;
use crate::record::series::Series;
use crate::record::trace::Trace;
use crate::sim::Sim;

/// The results of one run; docs/results-folder.md says what each holds.
#[derive(Debug)]
pub struct Outcome {
    /// Tidy samples.
    pub series: Series,
    /// counters.json, as text.
    pub counters: String,
    /// setup.log: the configuration in effect.
    pub setup: String,
    /// teardown.log: statistics as `tc -s -d` words them.
    pub teardown: String,
    /// Captures as pcapng, by the name that the run gives them.
    pub captures: Vec<(String, Vec<u8>)>,
    /// Internals of congestion controls, if the run asks for them.
    pub trace: Option<Series>,
}

impl Outcome {
    /// What counters.json holds, to look things up in; null if somebody made it something else than JSON.
    pub fn counters(&self) -> Value {
        serde_json::from_str(&self.counters).unwrap_or_default()
    }
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
// Never part of its caller: `bench/instructions.py` counts what happens inside.
#[inline(never)]
pub fn simulate_within(json: &str, modules: &Registry, budget: Budget) -> Result<Outcome, SimError> {
    simulate_until(json, modules, budget, || false)
}

/// The same; it ends early if `interrupted`, which is asked every 65,536 events, says so.
///
/// # Errors
/// [`SimError`]
pub fn simulate_until(
    json: &str,
    modules: &Registry,
    budget: Budget,
    interrupted: impl Fn() -> bool + Send + 'static,
) -> Result<Outcome, SimError> {
    let mut sim = build(parse(json)?, modules)?;
    sim.budget = budget;
    sim.interrupted = Box::new(interrupted);
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
    let counters = counters(&sim).map_err(|e| SimError::Broken(format!("counters: {e}")))?;
    let teardown = teardown(&sim);
    let captures = captures(&mut sim);
    let trace = sim
        .observer
        .as_mut()
        .and_then(|o| o.trace.take())
        .map(Trace::finish)
        .transpose()
        .map_err(|error| sim.no_memory(&error))?;
    Ok(Outcome { series: sim.take_series()?, counters, setup, teardown, captures, trace })
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
