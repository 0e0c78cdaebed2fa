//! Where captures stand, and what they are told of the queues: which of them marked a packet, and how many packets the
//! queue ahead of a capture dropped.
//!
//! A queue that is captured behind has a number. A packet that it marks keeps that number, so that every capture on the
//! rest of the packet's way can name the queue. Numbers are given out in runs with captures only, and nothing that is
//! simulated looks at them.
//!
//! Validation: `tests/captures.rs` (comments against the counters of the queues).

use std::fmt::Write as _;
use std::sync::Arc;

use crate::base::error::Refused;
use crate::base::units::Time;
use crate::network::graph::Graph;
use crate::network::interface::Interface;
use crate::packet::capture::{About, Capture};
use crate::packet::frame::{Ends, Inside, Tunnel, echo_identifier, known_port, node_address};
use crate::packet::{Packet, Proto};
use crate::qdisc::Queue;
use bakeoff_document::run::Run;

/// Queues beyond this many stay without a number, and what they mark without a comment.
const MOST_NUMBERS: usize = u8::MAX as usize;

/// Opens the captures: `node>peer` of what leaves there, `node<peer` of what arrives. `traffic` holds the ends of each
/// flow and probe.
///
/// # Errors
/// A place that does not exist.
pub fn open(
    run: &Run,
    graph: &Graph,
    interfaces: &mut [Interface],
    traffic: &[[u16; 2]],
) -> Result<(), Refused> {
    if run.captures.is_empty() {
        return Ok(());
    }
    let flows = run.flows.iter().map(|flow| &flow.name);
    let about = Arc::new(About {
        comment: comment(run, traffic),
        nodes: graph.names.clone(),
        names: flows.chain(run.probes.iter().map(|probe| &probe.name)).cloned().collect(),
        ends: traffic.iter().copied().map(Ends).collect(),
        inside: inside(run),
    });
    for (n, name) in run.captures.iter().enumerate() {
        let place = format!("captures[{n}]");
        let (way, parts) = match (name.split_once('>'), name.split_once('<')) {
            (Some(parts), _) => (0, parts),
            (None, Some(parts)) => (1, parts),
            (None, None) => {
                return Err(Refused(format!("{place}: '{name}'; expected NODE>PEER or NODE<PEER")));
            }
        };
        let i = graph.interface(parts.0, parts.1, &place)?;
        let description = describe(&interfaces[i], parts, way == 0);
        let capture = Capture::new(name, &description, interfaces[i].wire.rate.map(|rate| rate.0), &about)
            .map_err(|e| Refused(format!("{place}: {e}")))?;
        interfaces[i].captures[way] = Some(Box::new(capture));
    }
    number_queues(graph, interfaces);
    Ok(())
}

/// What the file says of the run: which it is, and which packets are of which flow or probe.
fn comment(run: &Run, traffic: &[[u16; 2]]) -> String {
    let mut text = format!(
        "bakeoff run {}/{}/{}, seed {}, simulated by bakeoff {}",
        run.suite,
        run.scenario,
        run.run,
        run.seed,
        env!("CARGO_PKG_VERSION")
    );
    if !run.title.is_empty() {
        let _ = write!(text, "\n{}", run.title);
    }
    for (i, flow) in run.flows.iter().enumerate() {
        let [from, to] = traffic[i].map(node_address);
        let (what, port) =
            (if flow.transport == "udp" { "datagrams" } else { &flow.cc }, known_port(i as u16));
        let _ = write!(text, "\nflow {}: {what}, from {from} to {to} port {port}", flow.name);
        if let Some(tunnel) = &flow.tunnel {
            let _ = write!(text, ", in the tunnel {tunnel}");
        }
    }
    for (i, probe) in run.probes.iter().enumerate() {
        let number = run.flows.len() + i;
        let ([from, to], number) = (traffic[number].map(node_address), number as u16);
        let told = if probe.proto == "udp" {
            format!("UDP, from {from} to {to} port {}", known_port(number))
        } else {
            format!("ICMP echo, identifier {}, from {from} to {to}", echo_identifier(number))
        };
        let _ = write!(text, "\nprobe {}: {told}", probe.name);
    }
    text
}

/// By flow and probe: the tunnel that it goes through.
fn inside(run: &Run) -> Vec<Option<Inside>> {
    let through = |name: &Option<String>, proto| {
        let spec = run.tunnels.iter().find(|tunnel| Some(&tunnel.name) == name.as_ref())?;
        let tunnel = match spec.kind.as_str() {
            "wireguard" => Tunnel::WireGuard,
            "ipsec" => Tunnel::Ipsec,
            "fou" => Tunnel::Fou,
            "gre" => Tunnel::Gre,
            _ => Tunnel::Vxlan,
        };
        Some(Inside { tunnel, proto })
    };
    let flows = run
        .flows
        .iter()
        .map(|flow| through(&flow.tunnel, if flow.transport == "udp" { Proto::Udp } else { Proto::Tcp }));
    let probes = run
        .probes
        .iter()
        .map(|probe| through(&probe.tunnel, if probe.proto == "udp" { Proto::Udp } else { Proto::Icmp }));
    flows.chain(probes).collect()
}

/// What is seen at an interface, and the queues that it passed there.
fn describe(interface: &Interface, (node, peer): (&str, &str), leaving: bool) -> String {
    if !leaving {
        return format!("packets that reach {node} from {peer}, ahead of the queues and rules there");
    }
    let mut text = format!("packets that leave {node} for {peer}");
    if let Some(tree) = &interface.egress {
        let mut names = tree.names(&format!("{node}>{peer}")).into_iter();
        tree.for_each(&mut |_, queue| {
            let name = names.next().unwrap_or_default();
            let _ = write!(text, "; {name}: {}", queue.show());
        });
    }
    text
}

/// Gives every queue that has none its number, and the captures their names.
pub fn number_queues(graph: &Graph, interfaces: &mut [Interface]) {
    let mut captures = interfaces.iter().flat_map(|interface| interface.captures.iter().flatten());
    let Some(first) = captures.next() else { return };
    let mut names = first.queues.to_vec();
    let mut number = |tree: &mut Queue, interface: &str| {
        let mut own = tree.names(interface).into_iter();
        tree.for_each_mut(&mut |_, queue| {
            let Some(name) = own.next() else { return };
            let known = names.iter().position(|other| *other == name).unwrap_or(names.len());
            if known == names.len() {
                names.push(name);
            }
            queue.tally.number = if known < MOST_NUMBERS { (known + 1) as u8 } else { 0 };
        });
    };
    for (i, interface) in interfaces.iter_mut().enumerate() {
        if let Some(tree) = &mut interface.egress {
            number(tree, &graph.egress_name(i));
        }
        if let Some(tree) = &mut interface.ingress {
            number(tree, &graph.ingress_name(i));
        }
    }
    let names: Arc<[String]> = names.into();
    for capture in interfaces.iter_mut().flat_map(|interface| interface.captures.iter_mut().flatten()) {
        capture.queues = names.clone();
    }
}

impl Interface {
    /// Writes down a packet that leaves, and what the queue here has dropped since the one before.
    #[cold]
    pub(crate) fn capture_leaving(&mut self, packet: &Packet, now: Time) {
        let Some(capture) = &mut self.captures[0] else { return };
        if let Some(tree) = &self.egress {
            tree.for_each(&mut |_, queue| {
                let tally = &queue.tally;
                capture.dropped(tally.number, tally.dropped(), tally.flows.iter().map(|flow| flow.drops));
            });
        }
        capture.see(packet, now);
    }
}
