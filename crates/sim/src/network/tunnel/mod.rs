//! Tunnels between hosts: a packet of a flow that goes through one is encapsulated where its host sends it,
//! and decapsulated where it arrives. On the way it is the outer packet: its length, ECN field, DSCP, protocol and
//! flow hash are what queues, filters and rewriting rules see.
//!
//! # Source
//! Linux 7.3; see [`ecn`], [`frame`], [`replay`]. The outer DSCP is the inner one for IPsec (XFRM without
//! `XFRM_SA_XFLAG_DONT_ENCAP_DSCP`) and 0 for the others (`tos 0`, the default of their devices); the inner DSCP
//! comes out as it went in.
//!
//! # Parameters
//! [`bakeoff_document::run::Tunnel`]: kind, ends, `replay_window` in packets (IPsec; `WireGuard`'s is 8128), `cipher`
//! (IPsec), `inner_hash`: whether queues on the way tell the inner flows apart, or see one flow per direction.
//!
//! # Departures
//! Handshakes and keepalives (`WireGuard`: about 300 bytes every two minutes), the time that encryption takes, XFRM's
//! byte and packet limits, sequence numbers beyond 2^32.
//!
//! # Validation
//! Tests of the parts; `crates/sim/tests/tunnels.rs` (conservation, CE, goodput by kind, the window that a delay needs), `tests/engines/test_tunnels.py`
//! (against real tunnels).

pub mod ecn;
pub mod frame;
pub mod replay;

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::base::rng::Stream;
use crate::network::graph::Graph;
use crate::packet::{Ecn, Packet, Proto};
use bakeoff_document::bounds::MTU;
use bakeoff_document::run::{self, Match, Qdisc, Run};
use ecn::Rule;
use frame::{Cipher, Kind};
use replay::{Reject, Replay, Rfc6479, Xfrm};

/// Bytes of Ethernet around an IP packet.
const ETHERNET: u32 = 14;
/// `COUNTER_WINDOW_SIZE` of `drivers/net/wireguard/messages.h` on a 64-bit machine.
const WIREGUARD_WINDOW: u32 = 8192 - 64;
/// The widest window in packets, that of `WireGuard`'s memory; XFRM takes 4096.
const MOST_WINDOW: u32 = 8192;

/// What happened in one direction.
#[derive(Clone, Debug)]
struct Way {
    sent: u64,
    received: u64,
    replay_window: u64,
    replay: u64,
    ecn: u64,
    memory: Option<Replay>,
}

/// One tunnel; direction 0 is from its first end to its second.
#[derive(Clone, Debug)]
struct Tunnel {
    name: String,
    kind: Kind,
    word: String,
    ends: [u16; 2],
    mtu: u32,
    hashes: Option<[u32; 2]>,
    ways: [Way; 2],
}

/// All tunnels of a run.
#[derive(Debug, Default)]
pub struct Tunnels {
    all: Vec<Tunnel>,
    /// By traffic: its number in `all` plus one, 0 without a tunnel.
    of: Vec<u8>,
    /// By traffic: the protocol inside.
    protos: Vec<Proto>,
}

impl Tunnels {
    /// The tunnels of `run`, and which flow and probe goes through which.
    ///
    /// # Errors
    /// What does not exist or cannot be, with its place.
    pub fn build(run: &Run, graph: &Graph) -> Result<Tunnels, String> {
        let mut all: Vec<Tunnel> = Vec::new();
        for (i, spec) in run.tunnels.iter().enumerate() {
            let made = Tunnel::new(spec, run, graph, &format!("tunnels[{i}]"))?;
            if all.iter().any(|t| t.name == spec.name) {
                return Err(format!("tunnels[{i}].name: duplicate name '{}'", spec.name));
            }
            all.push(made);
        }
        if all.len() >= usize::from(u8::MAX) {
            return Err(format!("tunnels: {} of them; at most 254", all.len()));
        }
        let mut made = Tunnels { all, of: Vec::new(), protos: Vec::new() };
        for (i, flow) in run.flows.iter().enumerate() {
            let place = format!("flows[{i}].tunnel");
            made.assign(flow.tunnel.as_deref(), [&flow.from, &flow.to], graph, &place)?;
            made.protos.push(if flow.transport == "udp" { Proto::Udp } else { Proto::Tcp });
            if let (run::Source::Rate { size, .. } | run::Source::Periodic { size, .. }, "udp") =
                (&flow.source, flow.transport.as_str())
            {
                made.check_size(i, size + 28, &format!("flows[{i}].source.size"))?;
            }
        }
        for (i, probe) in run.probes.iter().enumerate() {
            let place = format!("probes[{i}].tunnel");
            made.assign(probe.tunnel.as_deref(), [&probe.from, &probe.to], graph, &place)?;
            made.protos.push(if probe.proto == "udp" { Proto::Udp } else { Proto::Icmp });
            made.check_size(run.flows.len() + i, probe.size, &format!("probes[{i}].size"))?;
        }
        refuse_hidden(run)?;
        Ok(made)
    }

    fn assign(
        &mut self,
        name: Option<&str>,
        ends: [&String; 2],
        graph: &Graph,
        place: &str,
    ) -> Result<(), String> {
        let Some(name) = name else {
            self.of.push(0);
            return Ok(());
        };
        let i = self.all.iter().position(|t| t.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.all.iter().map(|t| t.name.as_str()).collect();
            format!("{place}: no tunnel '{name}'; tunnels: {}", known.join(", "))
        })?;
        let [a, b] = self.all[i].ends.map(|n| graph.names[usize::from(n)].as_str());
        if ![[a, b], [b, a]].contains(&[ends[0].as_str(), ends[1].as_str()]) {
            return Err(format!("{place}: '{name}' joins {a} and {b}, not {} and {}", ends[0], ends[1]));
        }
        self.of.push(i as u8 + 1);
        Ok(())
    }

    fn check_size(&self, traffic: usize, size: u32, place: &str) -> Result<(), String> {
        match self.through(traffic) {
            Some(t) if size > t.mtu => Err(format!(
                "{place}: an IP packet of {size} bytes does not fit into '{}': {}",
                t.name, t.mtu
            )),
            _ => Ok(()),
        }
    }

    fn through(&self, traffic: usize) -> Option<&Tunnel> {
        self.all.get(usize::from(self.of[traffic]).wrapping_sub(1))
    }

    /// What [`Packet::tunnel`] is for a flow or probe: 0 without a tunnel.
    pub fn number(&self, traffic: usize) -> u8 {
        self.of[traffic]
    }

    /// Whether TCP sends one segment at a time into the tunnel of a flow: a route with an IPsec policy has headers of its own,
    /// which generic segmentation would not repeat (`sk_setup_caps` of Linux 5.4 and 7.3).
    pub fn single_segments(&self, traffic: usize) -> bool {
        self.through(traffic).is_some_and(|t| matches!(t.kind, Kind::Ipsec(_)))
    }

    /// The MTU that a flow or probe sees where that of the links is `mtu`.
    pub fn mtu(&self, traffic: usize, mtu: u32) -> u32 {
        self.through(traffic).map_or(mtu, |t| t.mtu)
    }

    /// Whether there is any.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Puts the packets that `node` sends into their tunnels.
    pub fn encapsulate(&mut self, node: u16, packets: &mut [Packet]) {
        for packet in packets {
            let Some(tunnel) = self.all.get_mut(usize::from(packet.tunnel).wrapping_sub(1)) else { continue };
            tunnel.encapsulate(node, packet);
        }
    }

    /// Takes a packet out of its tunnel at `node`; false if it is dropped there.
    pub fn decapsulate(&mut self, node: u16, packet: &mut Packet) -> bool {
        packet.proto = self.protos[usize::from(packet.flow)];
        self.all[usize::from(packet.tunnel) - 1].decapsulate(node, packet)
    }

    /// The configuration in effect, one line each.
    pub fn show(&self, graph: &Graph) -> String {
        let mut text = String::new();
        for t in &self.all {
            let [a, b] = t.ends.map(|n| &graph.names[usize::from(n)]);
            let window = t.ways[0].memory.as_ref().map(|m| format!(" replay-window {}", m.window()));
            let hash = if t.hashes.is_none() { "inner" } else { "outer" };
            let _ = writeln!(
                text,
                "{}: {} {a} {b} mtu {}{} hash {hash}",
                t.name,
                t.word,
                t.mtu,
                window.unwrap_or_default()
            );
        }
        text
    }

    /// `tunnels` of counters.json, and the same for teardown.log.
    pub fn counters(&self, graph: &Graph) -> (Map<String, Value>, String) {
        let (mut all, mut text) = (Map::new(), String::new());
        for t in &self.all {
            let [a, b] = t.ends.map(|n| &graph.names[usize::from(n)]);
            let mut ways = Map::new();
            for (name, w) in [(format!("{a}>{b}"), &t.ways[0]), (format!("{b}>{a}"), &t.ways[1])] {
                let _ = writeln!(
                    text,
                    "{}: {name} {} {} packets received of {}",
                    t.name, t.word, w.received, w.sent
                );
                let _ =
                    writeln!(text, "  replay-window {} replay {} ecn {}", w.replay_window, w.replay, w.ecn);
                let counts = json!({"sent": w.sent, "received": w.received, "replay_window": w.replay_window,
                    "replay": w.replay, "ecn": w.ecn});
                ways.insert(name, counts);
            }
            all.insert(t.name.clone(), Value::Object(ways));
        }
        (all, text)
    }
}

impl Tunnel {
    fn new(spec: &run::Tunnel, run: &Run, graph: &Graph, place: &str) -> Result<Tunnel, String> {
        let ends = [
            graph.node(&spec.ends[0], &format!("{place}.ends[0]"))?,
            graph.node(&spec.ends[1], &format!("{place}.ends[1]"))?,
        ];
        if ends[0] == ends[1] {
            return Err(format!("{place}.ends: '{}' twice; expected two hosts", spec.ends[0]));
        }
        let link = run.links.iter().map(|l| l.mtu).min().unwrap_or(1500);
        let ipsec = spec.kind == "ipsec";
        if !ipsec && spec.cipher.is_some() {
            return Err(format!("{place}.cipher: only valid for ipsec"));
        }
        let kind = match spec.kind.as_str() {
            "wireguard" => Kind::WireGuard,
            "ipsec" => {
                let name = spec.cipher.as_deref().unwrap_or("none");
                Kind::Ipsec(Cipher::parse(name).ok_or_else(|| {
                    format!("{place}.cipher: '{name}' is not aes-gcm or aes-cbc-hmac-sha256")
                })?)
            }
            "fou" => Kind::Fou,
            "gre" => Kind::Gre,
            "vxlan" => Kind::Vxlan,
            other => {
                return Err(format!("{place}.kind: '{other}' is not wireguard, ipsec, fou, gre or vxlan"));
            }
        };
        let mtu = kind.inner_mtu(link);
        if !MTU.contains(&mtu) {
            return Err(format!(
                "{place}: '{}' leaves an MTU of {mtu} bytes on links of {link}; expected at least {}",
                spec.kind,
                MTU.start()
            ));
        }
        if let Some(window) = spec.replay_window.filter(|window| *window > MOST_WINDOW) {
            return Err(format!("{place}.replay_window: {window} is not between 0 and {MOST_WINDOW}"));
        }
        let memory = match (kind, spec.replay_window) {
            (Kind::Ipsec(_), Some(window)) => Some(Replay::Xfrm(Xfrm::new(window))),
            (Kind::Ipsec(_), None) => {
                return Err(format!("{place}.replay_window: missing; expected packets, 0 for no check"));
            }
            (Kind::WireGuard, window) => {
                let window = window.unwrap_or(WIREGUARD_WINDOW);
                if window == 0 || window % 64 != 0 {
                    return Err(format!(
                        "{place}.replay_window: {window}: WireGuard counts in blocks of 64; expected 8128, or 1984 as before May 2020"
                    ));
                }
                Some(Replay::Rfc6479(Rfc6479::new(window)))
            }
            (_, Some(_)) => {
                return Err(format!("{place}.replay_window: '{}' has no sequence numbers", spec.kind));
            }
            (_, None) => None,
        };
        let mut rng = Stream::new(run.seed, &format!("tunnel/{}", spec.name));
        let way = Way { sent: 0, received: 0, replay_window: 0, replay: 0, ecn: 0, memory };
        Ok(Tunnel {
            name: spec.name.clone(),
            kind,
            word: spec.cipher.as_ref().map_or(spec.kind.clone(), |c| format!("{} {c}", spec.kind)),
            ends,
            mtu,
            hashes: (!spec.inner_hash).then(|| [rng.u32(), rng.u32()]),
            ways: [way.clone(), way],
        })
    }

    fn encapsulate(&mut self, node: u16, packet: &mut Packet) {
        let direction = usize::from(node == self.ends[1]);
        let way = &mut self.ways[direction];
        packet.tunnel_seq = way.sent as u32;
        way.sent += 1;
        packet.inner_tos = packet.dscp << 2 | packet.ecn as u8;
        packet.ecn = ecn::encapsulate(packet.ecn);
        packet.len = ETHERNET + self.kind.outer(packet.len - ETHERNET, self.mtu);
        if let Some(hashes) = self.hashes {
            packet.hash = hashes[direction];
        }
        packet.proto = match self.kind {
            Kind::Ipsec(_) => Proto::Esp,
            Kind::Gre => Proto::Gre,
            Kind::WireGuard | Kind::Fou | Kind::Vxlan => Proto::Udp,
        };
        if !matches!(self.kind, Kind::Ipsec(_)) {
            packet.dscp = 0;
        }
    }

    fn decapsulate(&mut self, node: u16, packet: &mut Packet) -> bool {
        let way = &mut self.ways[usize::from(node == self.ends[0])];
        if let Some(memory) = &mut way.memory
            && let Err(why) = memory.accept(u64::from(packet.tunnel_seq))
        {
            match why {
                Reject::Window => way.replay_window += 1,
                Reject::Duplicate => way.replay += 1,
            }
            return false;
        }
        let rule = match self.kind {
            Kind::WireGuard => Rule::NeverDrop,
            Kind::Ipsec(_) => Rule::OnlyCe,
            Kind::Fou | Kind::Gre | Kind::Vxlan => Rule::Rfc6040,
        };
        let Some(ecn) = ecn::decapsulate(rule, packet.ecn, Ecn::from_bits(packet.inner_tos)) else {
            way.ecn += 1;
            return false;
        };
        packet.ecn = ecn;
        packet.dscp = packet.inner_tos >> 2;
        way.received += 1;
        true
    }
}

/// Refuses filters and rules for a flow or probe that nobody on the way can see.
fn refuse_hidden(run: &Run) -> Result<(), String> {
    let flows = run.flows.iter().map(|f| (&f.name, &f.tunnel));
    let hidden: Vec<(&String, &String)> = flows
        .chain(run.probes.iter().map(|p| (&p.name, &p.tunnel)))
        .filter_map(|(name, tunnel)| Some((name, tunnel.as_ref()?)))
        .collect();
    let check = |found: &Match, place: &str| match hidden.iter().find(|h| Some(h.0) == found.flow.as_ref()) {
        Some((name, tunnel)) => Err(format!("{place}.flow: '{name}' is inside the tunnel '{tunnel}'")),
        None => Ok(()),
    };
    for (i, interface) in run.interfaces.iter().enumerate() {
        for (r, rule) in interface.mangle.iter().enumerate() {
            check(&rule.matches, &format!("interfaces[{i}].mangle[{r}].match"))?;
        }
        for (tree, side) in [(&interface.egress, "egress"), (&interface.ingress, "ingress")] {
            for (found, place) in tree.iter().flat_map(filters) {
                check(found, &format!("interfaces[{i}].{side}{place}"))?;
            }
        }
    }
    Ok(())
}

/// The matches of a tree with their places below it.
fn filters(tree: &Qdisc) -> Vec<(&Match, String)> {
    let mut found = Vec::new();
    for (c, class) in tree.classes.iter().enumerate() {
        found.extend(
            class.filters.iter().enumerate().map(|(f, m)| (m, format!(".classes[{c}].filters[{f}]"))),
        );
        let below = class.child.iter().flat_map(|child| filters(child));
        found.extend(below.map(|(m, place)| (m, format!(".classes[{c}].child{place}"))));
    }
    let below = tree.child.iter().flat_map(|child| filters(child));
    found.extend(below.map(|(m, place)| (m, format!(".child{place}"))));
    found
}
