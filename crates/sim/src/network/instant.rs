//! Cables that take no time, and routers between them that only forward.
//!
//! This defines the order of one instant: a packet is wherever it gets in no time before the next packet is handled,
//! however many such routers it passes. The far end is looked up by interface and destination.

use crate::network::graph::{Graph, Hop};
use crate::network::interface::Interface;

/// How far a packet gets in no time.
#[derive(Default)]
pub struct InstantHops {
    /// By interface and destination: the last of the wires, from its own on, that a packet passes in no time. Empty where
    /// none passes more than its own.
    last: Vec<u16>,
    nodes: usize,
}

impl InstantHops {
    /// Those of a network.
    pub fn new(graph: &Graph, interfaces: &[Interface]) -> InstantHops {
        let nodes = graph.names.len();
        let pairs = (0..interfaces.len()).flat_map(|i| (0..nodes).map(move |dst| (i as u16, dst as u16)));
        let mut last: Vec<u16> = pairs.clone().map(|(i, dst)| farthest(graph, interfaces, i, dst)).collect();
        if pairs.zip(&last).all(|((i, _), last)| i == *last) {
            last.clear();
        }
        InstantHops { last, nodes }
    }

    /// The wire at whose far end a packet for `dst` is that is at the far end of wire `i` in no time: that of the last of
    /// the routers in a row that only forward it, or `i`.
    #[inline]
    pub(crate) fn last(&self, i: u16, dst: u16) -> u16 {
        if self.last.is_empty() { i } else { self.last[usize::from(i) * self.nodes + usize::from(dst)] }
    }
}

/// See [`InstantHops::last`]. Captures end no row, or a run with captures would have another order.
fn farthest(graph: &Graph, interfaces: &[Interface], mut i: u16, dst: u16) -> u16 {
    let at = |i: u16| &interfaces[usize::from(i)];
    let passes = |i: u16| at(i).wire.is_plain() && !at(i).changes && !at(i).wire.takes_time();
    while passes(i)
        && let arrival = at(i ^ 1)
        && arrival.ingress.is_none()
        && arrival.rules.is_empty()
        && !arrival.changes
        && let Hop::Out(next) = graph.hop(i ^ 1, dst)
        && passes(next)
        && at(next).egress.is_none()
        // Whole buffers of several segments stay whole.
        && (at(next).offloads || !at(i).offloads)
    {
        i = next;
    }
    i
}
