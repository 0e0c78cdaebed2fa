//! Lanes: rows of devices that a packet passes in one step of the event loop. See [`super`].

use crate::network::graph::{Graph, Hop};
use crate::network::interface::Interface;

/// The lanes of a run, by interface and destination.
pub(in crate::sim) struct Lanes {
    /// The devices behind the interface's wire that are fed by nothing else.
    behind: Vec<Box<[u16]>>,
    nodes: usize,
}

impl Lanes {
    /// No lane, in a network of so many interfaces and nodes.
    pub(in crate::sim) fn none(interfaces: usize, nodes: usize) -> Lanes {
        Lanes { behind: vec![Box::default(); interfaces * nodes], nodes }
    }

    /// The lanes of a network whose packets go from the first to the second of each of these nodes, and back.
    pub(super) fn new(graph: &Graph, interfaces: &[Interface], traffic: &[[u16; 2]]) -> Lanes {
        let nodes = graph.names.len();
        let there_and_back = traffic.iter().flat_map(|&[a, b]| [[a, b], [b, a]]);
        let paths: Vec<(u16, Vec<u16>)> = there_and_back.map(|[a, b]| (b, path(graph, a, b))).collect();
        // What feeds an interface: another one, or none for its own node.
        let mut feeders: Vec<Vec<Option<u16>>> = vec![Vec::new(); interfaces.len()];
        for (_, path) in &paths {
            let before = std::iter::once(None).chain(path.iter().copied().map(Some));
            for (i, feeder) in path.iter().zip(before) {
                let feeders = &mut feeders[usize::from(*i)];
                if !feeders.contains(&feeder) {
                    feeders.push(feeder);
                }
            }
        }
        let leads = |i: u16, next: u16| leads(interfaces, i, next) && feeders[usize::from(next)] == [Some(i)];
        let mut lanes = Lanes::none(interfaces.len(), nodes);
        for (dst, path) in &paths {
            for (n, i) in path.iter().enumerate() {
                let row = path[n..].windows(2).take_while(|pair| leads(pair[0], pair[1]));
                lanes.behind[usize::from(*i) * nodes + usize::from(*dst)] = row.map(|pair| pair[1]).collect();
            }
        }
        lanes
    }

    /// Whether no lane goes on behind the wire of interface `i`.
    pub(super) fn end_behind(&self, i: u16) -> bool {
        let row = usize::from(i) * self.nodes;
        self.behind[row..row + self.nodes].iter().all(|devices| devices.is_empty())
    }

    /// The devices that a packet for `dst` comes to behind the wire of interface `i`, one after the other.
    #[inline]
    pub(in crate::sim) fn behind(&self, i: u16, dst: u16) -> &[u16] {
        &self.behind[usize::from(i) * self.nodes + usize::from(dst)]
    }
}

/// Whether nothing but time passes between the queue of interface `i` and interface `next` behind its wire, which is a
/// device.
fn leads(interfaces: &[Interface], i: u16, next: u16) -> bool {
    let [from, arrival, to] = [i, i ^ 1, next].map(|i| &interfaces[usize::from(i)]);
    // Buffers of several segments stay whole.
    let frames = !from.offloads || from.wire.rate.is_some();
    from.shortcuts.plain
        && !from.changes
        && frames
        && from.wire.takes_time()
        && arrival.shortcuts.arrives_untouched
        && !arrival.changes
        && to.shortcuts.device.is_some()
}

/// The interfaces by which a packet leaves one node after the other.
fn path(graph: &Graph, from: u16, to: u16) -> Vec<u16> {
    let mut path = Vec::new();
    let mut out = graph.route(from, to);
    while let Some(i) = out {
        path.push(i);
        out = match graph.hop(i ^ 1, to) {
            Hop::Out(next) => Some(next),
            Hop::Here | Hop::Nowhere => None,
        };
    }
    path
}
