//! counters.json: what flows, queues, probes and tunnels counted, and that no packet was lost count of.
//!
//! The keys of each object stand in the order of the alphabet, and flows in that of their names. All is written as it is
//! counted: with thousands of flows, a tree of values would take more memory than the flows.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::base::histogram::{Summary, summary};
use crate::endpoint::connection::Totals;
use crate::endpoint::flow::{Application, Flow};
use crate::endpoint::probe::ProbeState;
use crate::packet::Ecn;
use crate::qdisc::{Cause, FlowTally, Queue, Sojourn};
use crate::sim::Sim;
use crate::tcp::receiver::ReceiverCounters;

#[derive(Serialize)]
struct Counters<'a> {
    conservation: Conserved,
    events: u64,
    flows: Flows<'a>,
    probes: BTreeMap<&'a str, ProbeCounters>,
    queues: BTreeMap<String, QueueCounters<'a>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    stimuli: BTreeMap<&'a str, StimulusCounters>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tunnels: Option<Map<String, Value>>,
}

#[derive(Serialize)]
struct StimulusCounters {
    fired_s: Vec<f64>,
    packets: u64,
}

#[derive(Serialize)]
struct Conserved {
    delivered: u64,
    delivered_bytes: u64,
    dropped: u64,
    dropped_bytes: u64,
    queued: u64,
    queued_bytes: u64,
    sent: u64,
    sent_bytes: u64,
}

/// The flows, and their numbers in the order of their names.
struct Flows<'a>(&'a [Flow], &'a [usize]);

#[derive(Serialize)]
struct FlowCounters<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    acks: Option<u64>,
    cc: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    delivered: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delivered_ce: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duplicates: Option<u64>,
    ecn: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<u64>,
    mss: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    objects: Option<Objects>,
    received_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    received_ce: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    received_ect1: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retransmits: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rtos: Option<u64>,
    rtt: Summary,
    sent_bytes: u64,
    sent_packets: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    tlps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    undos: Option<u64>,
}

#[derive(Serialize)]
struct Objects {
    begun: usize,
    ended: usize,
    offered: usize,
}

#[derive(Serialize)]
struct ProbeCounters {
    received: u64,
    rtt: Summary,
    sent: u64,
}

#[derive(Serialize)]
struct QueueCounters<'a> {
    drops: Drops,
    enqueued: u64,
    flows: Tallies<'a>,
    marks: u64,
    qdisc: String,
    queued: usize,
    sce_marks: u64,
    sent: u64,
    sent_bytes: u64,
    sojourn: Summary,
}

#[derive(Serialize)]
struct Drops {
    aqm: u64,
    loss: u64,
    overlimit: u64,
    overload: u64,
}

/// What flows and probes met in a queue, by their numbers; their names, and their numbers in the order of these.
#[derive(Clone, Copy)]
struct Tallies<'a>(&'a [FlowTally], &'a [&'a str], &'a [usize]);

impl Serialize for Flows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Flows(flows, order) = *self;
        serializer.collect_map(order.iter().filter_map(|i| flows.get(*i)).map(|f| (&f.spec.name, of_flow(f))))
    }
}

impl Serialize for Tallies<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Tallies(tallies, names, order) = *self;
        serializer.collect_map(order.iter().filter_map(|i| Some((names.get(*i)?, tallies.get(*i)?))))
    }
}

/// The text of counters.json.
///
/// # Errors
/// What the library for JSON refuses.
pub(super) fn counters(sim: &Sim) -> Result<String, serde_json::Error> {
    let flows = sim.flows.iter().map(|f| f.spec.name.as_str());
    let names: Vec<&str> = flows.chain(sim.probes.iter().map(|p| p.spec.name.as_str())).collect();
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_unstable_by_key(|i| names[*i]);
    let probe =
        |p: &ProbeState| ProbeCounters { received: p.received, rtt: p.rtts.summary(), sent: p.sent() };
    let c = sim.conservation();
    serde_json::to_string(&Counters {
        conservation: Conserved {
            delivered: c.delivered.packets,
            delivered_bytes: c.delivered.bytes,
            dropped: c.dropped.packets,
            dropped_bytes: c.dropped.bytes,
            queued: c.queued.packets,
            queued_bytes: c.queued.bytes,
            sent: c.sent.packets,
            sent_bytes: c.sent.bytes,
        },
        events: sim.handled(),
        flows: Flows(&sim.flows, &order),
        probes: sim.probes.iter().map(|p| (p.spec.name.as_str(), probe(p))).collect(),
        queues: queues(sim)
            .into_iter()
            .map(|(name, queue)| (name, of_queue(queue, &names, &order)))
            .collect(),
        stimuli: stimuli(sim),
        tunnels: (!sim.tunnels.is_empty()).then(|| sim.tunnels.counters(&sim.graph).0),
    })
}

fn stimuli(sim: &Sim) -> BTreeMap<&str, StimulusCounters> {
    let Some(observer) = &sim.observer else { return BTreeMap::new() };
    let counted = observer.stimuli.record().map(|(fired, packets)| StimulusCounters {
        fired_s: fired.iter().map(|at| at.as_secs_f64()).collect(),
        packets,
    });
    sim.run.when.iter().map(|stimulus| stimulus.name.as_str()).zip(counted).collect()
}

/// Every queue of the network with its name.
pub(super) fn queues(sim: &Sim) -> Vec<(String, &Queue)> {
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

fn of_flow(flow: &Flow) -> FlowCounters<'_> {
    let totals = flow.totals();
    let sender = |count: fn(&Totals) -> u64| totals.as_ref().map(count);
    let receiver = flow.receiver_counters();
    let receiver = |count: fn(&ReceiverCounters) -> u64| receiver.as_ref().map(count);
    let arrived = flow.arrived_by_ecn();
    let [packets, bytes] = match &flow.application {
        Application::Datagrams(datagrams) => [datagrams.sent().packets, datagrams.sent_frame_bytes()],
        _ => totals.map_or([0, 0], |t| [t.sender.sent_packets, t.sender.sent_bytes]),
    };
    FlowCounters {
        acks: receiver(|c| c.acks),
        cc: if flow.spec.transport == "udp" { "none" } else { &flow.spec.cc },
        delivered: sender(|t| t.delivered),
        delivered_ce: sender(|t| t.delivered_ce),
        duplicates: receiver(|c| c.duplicates),
        ecn: flow.ecn_name(),
        lost: sender(|t| t.lost),
        mss: flow.mss(),
        objects: match &flow.application {
            Application::Short(short) => {
                let [offered, begun, ended] = short.count();
                Some(Objects { begun, ended, offered })
            }
            _ => None,
        },
        received_bytes: flow.received(),
        received_ce: arrived.map(|by_ecn| by_ecn[Ecn::Ce as usize]),
        received_ect1: arrived.map(|by_ecn| by_ecn[Ecn::Ect1 as usize]),
        retransmits: sender(|t| t.sender.retransmits),
        rtos: sender(|t| t.sender.rtos),
        rtt: flow.rtts.summary(),
        sent_bytes: bytes,
        sent_packets: packets,
        tlps: sender(|t| t.sender.tlps),
        undos: sender(|t| t.sender.undos),
    }
}

fn of_queue<'a>(queue: &'a Queue, names: &'a [&'a str], order: &'a [usize]) -> QueueCounters<'a> {
    let t = &queue.tally;
    let dropped = |cause: Cause| t.drops[cause as usize];
    QueueCounters {
        drops: Drops {
            aqm: dropped(Cause::Aqm),
            loss: dropped(Cause::Loss),
            overlimit: dropped(Cause::Overlimit),
            overload: dropped(Cause::Overload),
        },
        enqueued: t.enqueued,
        flows: Tallies(&t.flows, names, order),
        marks: t.marks,
        qdisc: queue.show(),
        queued: queue.qlen(),
        sce_marks: t.sce_marks,
        // As tc counts: segments.
        sent: t.sent + t.more_segs,
        sent_bytes: t.sent_bytes,
        sojourn: summary(queue.sojourn.as_ref().and_then(Sojourn::histogram).as_ref()),
    }
}
