//! From a resolved run to a simulation, refusing by name what is not modelled.

mod counters;
pub mod outcome;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::base::error::Refused;
use crate::base::ring::Ring;
use crate::base::rng::Stream;
use crate::base::units::Time;
use crate::cc::Registry;
use crate::endpoint::connection::{Exit, Host, Place};
use crate::endpoint::flow::{Application, Flow};
use crate::endpoint::probe::ProbeState;
use crate::network::capturing;
use crate::network::graph::Graph;
use crate::network::instant::InstantHops;
use crate::network::interface::{Interface, Rule};
use crate::network::machine::{Card, Machine};
use crate::network::medium;
use crate::network::queue::{env, queue};
use crate::network::tunnel::Tunnels;
use crate::packet::charge::Charges;
use crate::packet::matching::{CompiledMatch, parse_ecn};
use crate::qdisc::Queue;
use crate::record::trace::TRACES;
use crate::sim::{Parts, Sim};
use crate::tcp::ecn::{Policy, Sysctls};
use crate::tcp::receive_window::Buffer;
use crate::tcp::sack_compression::CompSack;
use crate::tcp::sender::Sysctl;
use bakeoff_document::bounds::{self, within};
use bakeoff_document::run::{self, Action, FORMAT, Mangle, Node, Run};
use bakeoff_document::stimulus::Effect;

/// Reads a resolved run.
///
/// # Errors
/// What the JSON lacks or has too much.
pub fn parse(json: &str) -> Result<Run, Refused> {
    let run: Run = serde_json::from_str(json).map_err(|e| Refused(format!("resolved run: {e}")))?;
    if run.format != FORMAT {
        return Err(Refused(format!("format: {} is not {FORMAT}, the one this version reads", run.format)));
    }
    Ok(run)
}

/// Builds the simulation of `run`; `modules` are congestion controls from outside.
///
/// # Errors
/// The first thing that does not exist, is malformed or not modelled, with its place.
pub fn build(run: Run, modules: &Registry) -> Result<Sim, Refused> {
    bounds::check(&run)?;
    let graph = Graph::build(&run)?;
    let traffic: Arc<[String]> =
        run.flows.iter().map(|f| f.name.clone()).chain(run.probes.iter().map(|p| p.name.clone())).collect();
    let mut names = BTreeSet::new();
    if let Some(name) = traffic.iter().find(|name| !names.insert(*name)) {
        return Err(Refused(format!("flows and probes: duplicate name '{name}'")));
    }
    refuse_features(&run)?;
    if let Some(program) = run.programs.first() {
        return Err(Refused(format!("programs[0]: '{}': not supported by the simulator", program.name)));
    }
    let hosts = run.nodes.iter().enumerate().map(|(i, n)| host(n, i)).collect::<Result<Vec<_>, _>>()?;
    let tunnels = Tunnels::build(&run, &graph)?;
    let charges = Charges::new(run.flows.len());
    let mut interfaces = interfaces(&run, &graph, &traffic, &charges)?;
    let mut flows = Vec::new();
    for (i, spec) in run.flows.iter().enumerate() {
        let from = graph.node(&spec.from, &format!("flows[{i}].from"))?;
        let to = graph.node(&spec.to, &format!("flows[{i}].to"))?;
        let nodes = [from, to];
        if graph.route(from, to).is_none() || graph.route(to, from).is_none() {
            return Err(Refused(format!("flows[{i}]: no path between '{}' and '{}'", spec.from, spec.to)));
        }
        let mtu = run.links.iter().map(|l| l.mtu).min().unwrap_or(1500);
        let place = Place {
            id: i as u16,
            nodes,
            hosts: nodes.map(|n| hosts[usize::from(n)].clone()),
            mtu: tunnels.mtu(i, mtu),
            exit: exit(&run, &graph, &interfaces, nodes, (&tunnels, i), &charges),
            seed: run.seed,
        };
        flows.push(Flow::new(spec, &place, modules)?);
    }
    let mut probes = Vec::new();
    for (i, spec) in run.probes.iter().enumerate() {
        let place = format!("probes[{i}]");
        let from = graph.node(&spec.from, &format!("{place}.from"))?;
        let to = graph.node(&spec.to, &format!("{place}.to"))?;
        if graph.route(from, to).is_none() || graph.route(to, from).is_none() {
            return Err(Refused(format!("{place}: no path between '{}' and '{}'", spec.from, spec.to)));
        }
        let hash = Stream::new(run.seed, &format!("probe/{}", spec.name)).u32();
        let traffic = run.flows.len() + i;
        let mut probe = ProbeState::new(spec, traffic as u16, &place, [from, to], hash)?;
        probe.tunnel = tunnels.number(traffic);
        probes.push(probe);
    }
    for (i, change) in run.changes.iter().enumerate() {
        let ends = [&change.node, &change.peer];
        let changed = check_change(&run, &graph, ends, &change.action, &format!("changes[{i}]"))?;
        interfaces[changed].changes = true;
        interfaces[changed].ingress_changes |= change.action.side() == Some("ingress");
    }
    let stimulated = stimulated(&run, &graph, &flows, &mut interfaces)?;
    let traffic: Vec<[u16; 2]> =
        flows.iter().map(|f| f.nodes).chain(probes.iter().map(ProbeState::nodes)).collect();
    capturing::open(&run, &graph, &mut interfaces, &traffic)?;
    let hops = InstantHops::new(&graph, &interfaces);
    Ok(Sim::new(run, Parts { graph, interfaces, hops, flows, probes, tunnels, charges, stimulated }))
}

/// How the packets of a flow between `nodes`, which is the given entry in the table of traffic, leave the first of them.
fn exit(
    run: &Run,
    graph: &Graph,
    interfaces: &[Interface],
    [from, to]: [u16; 2],
    (tunnels, traffic): (&Tunnels, usize),
    charges: &Charges,
) -> Exit {
    let Some(out) = graph.route(from, to) else { return Exit::default() };
    let egress = interfaces[usize::from(out)].egress.as_ref();
    // TCP builds large buffers whatever the device can do; a queue that was asked for holds them whole, and only a
    // device without one takes them apart at once.
    let [name, peer] = [from, graph.node_of[usize::from(out ^ 1)]].map(|n| &graph.names[usize::from(n)]);
    let queued = run.interfaces.iter().any(|i| i.egress.is_some() && &i.node == name && &i.peer == peer);
    let tunnel = tunnels.number(traffic);
    Exit {
        fq: egress.is_some_and(Queue::paces),
        charges: egress.is_some().then(|| charges.clone()),
        gso: (queued || run.nodes[usize::from(from)].offloads) && tunnel == 0,
        single_segments: tunnels.single_segments(traffic),
        tunnel,
    }
}

fn refuse_features(run: &Run) -> Result<(), Refused> {
    for (i, what) in run.trace.iter().enumerate() {
        if !TRACES.contains(&what.as_str()) {
            return Err(Refused(format!("trace[{i}]: unknown trace '{what}'; known: {}", TRACES.join(", "))));
        }
    }
    let refused =
        |place: String, what: &str| Err(Refused(format!("{place}: {what} not modelled by the simulator")));
    for (key, tool) in run.tools.iter().flat_map(|tools| [("flows", &tools.flows), ("probes", &tools.probes)])
    {
        if let Some(name) = tool {
            return refused(format!("tools.{key}"), &format!("'{name}' is"));
        }
    }
    Ok(())
}

/// Sysctls that are taken, because real kernels need them, and that change nothing here: runs say so.
pub(crate) const NOT_MODELLED: [&str; 1] = ["net.ipv4.tcp_mem"];

/// Linux keeps the numbers of its sysctls in signed 32 bits.
const SYSCTL: RangeInclusive<u64> = 0..=i32::MAX as u64;

/// Reads the sysctls that are modelled.
fn host(node: &Node, index: usize) -> Result<Host, Refused> {
    if node.kind != run::NodeKind::Host {
        let place = format!("nodes[{index}]");
        let asked = [
            ("stall", node.stall.is_some()),
            ("timer_slack_s", node.timer_slack_s > 0.0),
            ("receive_coalescing_s", node.receive_coalescing_s > 0.0),
        ];
        if let Some((key, _)) = asked.into_iter().find(|(_, asked)| *asked) {
            return Err(Refused(format!("{place}.{key}: '{}' is no host; expected a host", node.name)));
        }
    }
    let mut host = Host {
        ecn: Sysctls::default(),
        hz: node.hz,
        ss_ratio: 200,
        ca_ratio: 120,
        sce_pacing: false,
        receive: Buffer::default(),
        compression: CompSack::default(),
        sender: Sysctl::default(),
    };
    for (name, value) in &node.sysctls {
        let place = format!("nodes[{index}].sysctls.{name}");
        let number = |text: &str| {
            let number = text.trim().parse::<u64>();
            let number = number.map_err(|_| Refused(format!("{place}: '{value}' is not a whole number")))?;
            within(&place, number, &SYSCTL).map(|()| number)
        };
        let percent = |text: &str| {
            let number = number(text)?;
            within(&place, number, &(1..=1000)).map(|()| number)
        };
        let up_to = |text: &str, most: u8| match number(text)? {
            n if n <= u64::from(most) => Ok(n as u8),
            n => Err(Refused(format!("{place}: {n} is not between 0 and {most}"))),
        };
        let three = |text: &str| {
            let numbers = text.split_whitespace().map(number).collect::<Result<Vec<_>, _>>()?;
            <[u64; 3]>::try_from(numbers).map_err(|_| {
                Refused(format!("{place}: '{value}' is not three numbers: least, default, most"))
            })
        };
        match name.as_str() {
            "net.ipv4.tcp_ecn" => host.ecn.ecn = Policy(up_to(value, 5)?),
            "net.ipv4.tcp_ecn_fallback" => host.ecn.fallback = up_to(value, 1)? == 1,
            "net.ipv4.tcp_ecn_option" => host.ecn.option = up_to(value, 3)?,
            "net.ipv4.tcp_ecn_option_beacon" => host.ecn.beacon = up_to(value, 3)?.into(),
            "net.ipv4.tcp_sce" => host.ecn.sce = up_to(value, 1)? == 1,
            "net.ipv4.tcp_sce_pacing" => host.sce_pacing = up_to(value, 1)? == 1,
            "net.ipv4.tcp_pacing_ss_ratio" => host.ss_ratio = percent(value)?,
            "net.ipv4.tcp_pacing_ca_ratio" => host.ca_ratio = percent(value)?,
            "net.ipv4.tcp_sack" => host.sender.sack = up_to(value, 1)? == 1,
            "net.ipv4.tcp_slow_start_after_idle" => {
                host.sender.slow_start_after_idle = up_to(value, 1)? == 1;
            }
            "net.ipv4.tcp_limit_output_bytes" => host.sender.limit_output_bytes = number(value)?,
            "net.ipv4.tcp_moderate_rcvbuf" => host.receive.moderate = up_to(value, 1)? == 1,
            "net.ipv4.tcp_rmem" => [_, host.receive.default, host.receive.most] = three(value)?,
            "net.ipv4.tcp_wmem" => host.sender.wmem = three(value)?,
            "net.ipv4.tcp_comp_sack_delay_ns" => host.compression.delay = Time(number(value)?),
            "net.ipv4.tcp_comp_sack_slack_ns" => host.compression.slack = Time(number(value)?),
            "net.ipv4.tcp_comp_sack_rtt_percent" => host.compression.rtt_percent = percent(value)?,
            "net.ipv4.tcp_comp_sack_nr" => host.compression.nr = up_to(value, 255)?.into(),
            // No flow sets its buffers by itself; runs begin without metrics, whether they would be kept or not.
            "net.core.rmem_max" | "net.core.wmem_max" | "net.ipv4.tcp_no_metrics_save" => _ = number(value)?,
            // All sockets together have as much memory as they want: see `NOT_MODELLED`.
            "net.ipv4.tcp_mem" => _ = three(value)?,
            "net.ipv4.ip_forward" => {}
            _ => return Err(Refused(format!("{place}: this sysctl is not modelled by the simulator"))),
        }
    }
    Ok(host)
}

fn interfaces(
    run: &Run,
    graph: &Graph,
    traffic: &Arc<[String]>,
    charges: &Charges,
) -> Result<Vec<Interface>, Refused> {
    let mut built: Vec<Interface> = graph.wires(run).into_iter().map(Interface::new).collect();
    for (interface, node) in built.iter_mut().zip(&graph.node_of) {
        let node = &run.nodes[usize::from(*node)];
        let machine = Machine::new(node, run.seed);
        interface.card = machine.map(|machine| Box::new(Card { machine, waiting: Ring::default() }));
        interface.host = node.kind == run::NodeKind::Host;
        interface.offloads = node.offloads;
    }
    for l in 0..run.links.len() {
        for (e, medium) in medium::build(run, l)?.into_iter().enumerate() {
            built[2 * l + e].wire.medium = medium;
        }
    }
    let mut seen = vec![false; built.len()];
    for (n, spec) in run.interfaces.iter().enumerate() {
        let place = format!("interfaces[{n}]");
        let i = graph.interface(&spec.node, &spec.peer, &place)?;
        if std::mem::replace(&mut seen[i], true) {
            return Err(Refused(format!("{place}: duplicate interface {}", graph.egress_name(i))));
        }
        let node = &run.nodes[usize::from(graph.node_of[i])];
        let mtu = run.links[i / 2].mtu;
        let interface = &mut built[i];
        interface.tx_queue_len = spec.tx_queue_len;
        if let Some(tree) = &spec.egress {
            let env = env(run, graph.egress_name(i), node, (spec.tx_queue_len, mtu), traffic, charges);
            interface.egress = Some(queue(run, tree, &env, &format!("{place}.egress"))?);
        }
        if let Some(tree) = &spec.ingress {
            let env = env(run, graph.ingress_name(i), node, (spec.tx_queue_len, mtu), traffic, charges);
            interface.ingress = Some(queue(run, tree, &env, &format!("{place}.ingress"))?);
        }
        for (r, rule) in spec.mangle.iter().enumerate() {
            interface.rules.push(compile(rule, traffic, &format!("{place}.mangle[{r}]"))?);
        }
    }
    // A device that takes time to send has a queue; Linux gives it txqueuelen packets.
    for (i, interface) in built.iter_mut().enumerate() {
        if interface.egress.is_none() && (interface.wire.rate.is_some() || interface.wire.medium.is_some()) {
            let node = &run.nodes[usize::from(graph.node_of[i])];
            let env = env(
                run,
                graph.egress_name(i),
                node,
                (interface.tx_queue_len, run.links[i / 2].mtu),
                traffic,
                charges,
            );
            let mut device = queue(run, &run::Qdisc::leaf("pfifo"), &env, "links")?;
            // Nobody asked for it: counted, not measured.
            device.sojourn = None;
            interface.egress = Some(device);
        }
    }
    Ok(built)
}

fn compile(rule: &Mangle, traffic: &Arc<[String]>, place: &str) -> Result<Rule, Refused> {
    let index = |name: &str| traffic.iter().position(|n| n == name).map(|i| i as u16);
    let matches = CompiledMatch::compile(&rule.matches, &index).map_err(|e| format!("{place}.match.{e}"))?;
    if rule.set_dscp.is_some_and(|d| d > 63) {
        return Err(Refused(format!("{place}.set_dscp: must be 0 to 63")));
    }
    let ecn = rule.set_ecn.as_deref().map(parse_ecn).transpose().map_err(|e| format!("{place}.set_{e}"))?;
    Ok(Rule { matches, dscp: rule.set_dscp, ecn, clear_syn_ecn: rule.clear_syn_ecn.unwrap_or_default() })
}

/// Checks the stimuli, whose changes it notes at their interfaces; of each the number of its flow.
fn stimulated(
    run: &Run,
    graph: &Graph,
    flows: &[Flow],
    interfaces: &mut [Interface],
) -> Result<Vec<usize>, Refused> {
    let mut names = BTreeSet::new();
    let mut found = Vec::new();
    for (n, stimulus) in run.when.iter().enumerate() {
        let place = format!("when[{n}]");
        if !names.insert(&stimulus.name) {
            return Err(Refused(format!("{place}.name: duplicate name '{}'", stimulus.name)));
        }
        let Some(f) = flows.iter().position(|flow| flow.spec.name == stimulus.flow) else {
            return Err(Refused(format!("{place}.flow: unknown flow '{}'", stimulus.flow)));
        };
        let takes = match flows[f].application {
            Application::Bulk(_) => true,
            Application::Video(_) => !matches!(stimulus.effect, Effect::Source { .. }),
            Application::Short(_) | Application::Datagrams(_) => false,
        };
        if !takes {
            let expected = "expected a flow with one TCP connection, and for 'source' no video";
            return Err(Refused(format!("{place}.flow: '{}'; {expected}", stimulus.flow)));
        }
        for (place, change) in stimulus.changes(&place) {
            let i = check_change(run, graph, [&change.node, &change.peer], &change.action, &place)?;
            interfaces[i].changes = true;
            interfaces[i].ingress_changes |= change.action.side() == Some("ingress");
        }
        found.push(f);
    }
    Ok(found)
}

/// The interface that a change at `place` is made to.
fn check_change(
    run: &Run,
    graph: &Graph,
    [node, peer]: [&String; 2],
    action: &Action,
    place: &str,
) -> Result<usize, Refused> {
    let i = graph.interface(node, peer, place)?;
    if let Some(side) = action.side()
        && !["egress", "ingress"].contains(&side)
    {
        return Err(Refused(format!("{place}.action.side: '{side}' is not egress or ingress")));
    }
    if let Action::Link { rate_bps: Some(_), .. } = action {
        let features = &run.links[i / 2].features;
        if let Some(name) = ["multipath", "trace"].into_iter().find(|name| features.contains_key(*name)) {
            return Err(Refused(format!("{place}.action.rate_bps: the link's '{name}' gives its rate")));
        }
    }
    Ok(i)
}
