//! Nodes, cables and routes: where a packet goes next.

use std::collections::{BTreeMap, VecDeque};

use crate::network::wire::Wire;
use bakeoff_document::run::{Node, NodeKind, Run};

/// Where a packet goes that arrived at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hop {
    /// It is at its destination.
    Here,
    /// Out through this interface.
    Out(u16),
    /// There is no way, or the node is a host, which does not forward.
    Nowhere,
}

/// The graph: interface `2 l` is the first end of link `l`, `2 l + 1` the second.
pub struct Graph {
    /// Node names, in order.
    pub names: Vec<String>,
    /// By interface: its node.
    pub node_of: Vec<u16>,
    /// By node, by destination: the interface to leave by.
    next: Vec<Option<u16>>,
    /// By interface of arrival, by destination.
    hops: Vec<Hop>,
}

impl Graph {
    /// Builds nodes, cables and shortest routes (fewest links; only bridges and routers forward).
    ///
    /// # Errors
    /// A name that does not exist or stands twice.
    pub fn build(run: &Run) -> Result<Graph, String> {
        let mut index = BTreeMap::new();
        for (i, node) in run.nodes.iter().enumerate() {
            if index.insert(node.name.as_str(), i).is_some() {
                return Err(format!("nodes[{i}].name: duplicate name '{}'", node.name));
            }
        }
        let mut node_of = Vec::new();
        for (l, link) in run.links.iter().enumerate() {
            for (e, end) in link.ends.iter().enumerate() {
                let node = index.get(end.as_str()).ok_or_else(|| {
                    format!("links[{l}].ends[{e}]: no node '{end}'; nodes: {}", node_names(&run.nodes))
                })?;
                node_of.push(*node as u16);
            }
        }
        let kinds: Vec<NodeKind> = run.nodes.iter().map(|n| n.kind).collect();
        let nodes = run.nodes.len();
        let owned = interfaces_of(nodes, &node_of);
        let next: Vec<_> = (0..nodes).flat_map(|from| routes(from, &kinds, &node_of, &owned)).collect();
        let hop = |node: usize, dst: usize| match next[node * nodes + dst] {
            _ if node == dst => Hop::Here,
            Some(i) if kinds[node] != NodeKind::Host => Hop::Out(i),
            _ => Hop::Nowhere,
        };
        let pairs = node_of.iter().flat_map(|node| (0..nodes).map(move |dst| (usize::from(*node), dst)));
        let hops = pairs.map(|(node, dst)| hop(node, dst)).collect();
        Ok(Graph { names: run.nodes.iter().map(|n| n.name.clone()).collect(), node_of, next, hops })
    }

    /// The node called `name`.
    ///
    /// # Errors
    /// Says which place named it and what nodes there are.
    pub fn node(&self, name: &str, place: &str) -> Result<u16, String> {
        let at = self.names.iter().position(|n| n == name);
        at.map(|i| i as u16)
            .ok_or_else(|| format!("{place}: no node '{name}'; nodes: {}", self.names.join(", ")))
    }

    /// The interface of `node` whose cable leads to `peer`.
    ///
    /// # Errors
    /// Says which place named it.
    pub fn interface(&self, node: &str, peer: &str, place: &str) -> Result<usize, String> {
        let n = self.node(node, &format!("{place}.node"))?;
        let p = self.node(peer, &format!("{place}.peer"))?;
        (0..self.node_of.len())
            .find(|&i| self.node_of[i] == n && self.node_of[i ^ 1] == p)
            .ok_or_else(|| format!("{place}: no link between '{node}' and '{peer}'"))
    }

    /// The interface by which `node` reaches `dst`.
    pub fn route(&self, node: u16, dst: u16) -> Option<u16> {
        self.next[usize::from(node) * self.names.len() + usize::from(dst)]
    }

    /// What becomes of a packet for `dst` that arrived at `interface`.
    pub fn hop(&self, interface: u16, dst: u16) -> Hop {
        self.hops[usize::from(interface) * self.names.len() + usize::from(dst)]
    }

    /// `node>peer`
    pub fn egress_name(&self, interface: usize) -> String {
        format!("{}>{}", self.name_of(interface), self.name_of(interface ^ 1))
    }

    /// `node<peer`
    pub fn ingress_name(&self, interface: usize) -> String {
        format!("{}<{}", self.name_of(interface), self.name_of(interface ^ 1))
    }

    fn name_of(&self, interface: usize) -> &str {
        &self.names[usize::from(self.node_of[interface])]
    }

    /// The wires, one per interface for what leaves there.
    pub fn wires(&self, run: &Run) -> Vec<Wire> {
        (0..self.node_of.len())
            .map(|i| Wire::new(&run.links[i / 2], i % 2, run.seed, &self.egress_name(i)))
            .collect()
    }
}

fn node_names(nodes: &[Node]) -> String {
    nodes.iter().map(|n| n.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// By node: its interfaces.
fn interfaces_of(nodes: usize, node_of: &[u16]) -> Vec<Vec<u16>> {
    let mut owned = vec![Vec::new(); nodes];
    for (i, node) in node_of.iter().enumerate() {
        owned[usize::from(*node)].push(i as u16);
    }
    owned
}

/// Breadth-first from `from`: by destination, the first interface of the shortest path.
fn routes(from: usize, kinds: &[NodeKind], node_of: &[u16], owned: &[Vec<u16>]) -> Vec<Option<u16>> {
    let mut first = vec![None; kinds.len()];
    let mut seen = vec![false; kinds.len()];
    seen[from] = true;
    let mut queue = VecDeque::from([(from, None)]);
    while let Some((node, via)) = queue.pop_front() {
        first[node] = via;
        if node != from && kinds[node] == NodeKind::Host {
            continue;
        }
        for &i in &owned[node] {
            let peer = usize::from(node_of[usize::from(i) ^ 1]);
            if !seen[peer] {
                seen[peer] = true;
                queue.push_back((peer, via.or(Some(i))));
            }
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_do_not_forward() {
        let routes = |from, kinds: &[NodeKind], node_of: &[u16]| {
            routes(from, kinds, node_of, &interfaces_of(kinds.len(), node_of))
        };
        // a - b - c with b a host: a does not reach c
        let kinds = [NodeKind::Host, NodeKind::Host, NodeKind::Host];
        assert_eq!(routes(0, &kinds, &[0, 1, 1, 2]), [None, Some(0), None]);
        let kinds = [NodeKind::Host, NodeKind::Router, NodeKind::Host];
        assert_eq!(routes(0, &kinds, &[0, 1, 1, 2]), [None, Some(0), Some(0)]);
        assert_eq!(routes(2, &kinds, &[0, 1, 1, 2]), [Some(3), Some(3), None]);
    }
}
