//! The resolved run: one experiment with every value filled in, in SI units (seconds, bits per
//! second, bytes). Written by `bakeoff.scenario`, read by every engine; see `docs/resolved-run.md`.

use std::collections::BTreeMap;

pub use bakeoff_workload::Source;
use serde::{Deserialize, Serialize};

/// The version of this document's form.
pub const FORMAT: u32 = 1;

/// One run.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// [`FORMAT`].
    pub format: u32,
    /// Suite, scenario and run names: where the results lie.
    pub suite: String,
    /// See `suite`.
    pub scenario: String,
    /// See `suite`.
    pub run: String,
    /// For people.
    #[serde(default)]
    pub title: String,
    /// Feeds every random stream.
    pub seed: u64,
    /// From 0 to here, in seconds; flows carry their own start and stop.
    pub duration_s: f64,
    /// How often series are sampled, in seconds.
    pub sample_interval_s: f64,
    /// The steady state: percentiles and histograms are taken inside [from, to] seconds.
    pub window_s: [f64; 2],
    /// Hosts, bridges, routers.
    pub nodes: Vec<Node>,
    /// Cables between them.
    pub links: Vec<Link>,
    /// What is configured on the ends of cables; an end not listed has nothing.
    #[serde(default)]
    pub interfaces: Vec<Interface>,
    /// Tunnels between hosts.
    #[serde(default)]
    pub tunnels: Vec<Tunnel>,
    /// TCP (and other) traffic.
    pub flows: Vec<Flow>,
    /// Latency probes.
    #[serde(default)]
    pub probes: Vec<Probe>,
    /// Changes at given times.
    #[serde(default)]
    pub changes: Vec<Change>,
    /// Captures of interfaces, as `node>peer`.
    #[serde(default)]
    pub captures: Vec<String>,
    /// Traffic tools that real engines use instead of their own agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Tools>,
    /// Internals to record: `cc`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trace: Vec<String>,
    /// The point of the matrix this run is, for tables: axis name to label.
    #[serde(default)]
    pub point: BTreeMap<String, String>,
    /// Anything that presentation needs and engines ignore (axis ranges, names of published rows).
    #[serde(default)]
    pub present: serde_json::Value,
}

/// Traffic tools by what they make.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Tools {
    /// `iperf3`, `netperf` or `flent`.
    #[serde(default)]
    pub flows: Option<String>,
    /// `irtt`.
    #[serde(default)]
    pub probes: Option<String>,
}

/// What a node does with packets that are not for it.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum NodeKind {
    /// An end host: drops them.
    Host,
    /// Forwards on layer 2.
    Bridge,
    /// Forwards on layer 3.
    Router,
}

/// A node.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Unique name.
    pub name: String,
    /// Its kind.
    pub kind: NodeKind,
    /// Sysctls by full name; values as strings, as in `/proc/sys`.
    #[serde(default)]
    pub sysctls: BTreeMap<String, String>,
    /// The kernel's timer frequency.
    pub hz: u64,
    /// Whether segmentation and receive offloads are on.
    pub offloads: bool,
}

/// A cable; both directions alike, except for what says which end sends.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// The two nodes.
    pub ends: [String; 2],
    /// Serialisation rate; none means instantaneous (veth).
    pub rate_bps: Option<u64>,
    /// Propagation delay, one way.
    pub delay_s: f64,
    /// MTU in bytes.
    pub mtu: u32,
    /// Random loss of either direction.
    #[serde(default)]
    pub loss: Loss,
    /// Further properties that an engine must know or refuse; see [`crate::network::medium`].
    #[serde(default)]
    pub features: BTreeMap<String, serde_json::Value>,
}

/// A link's random loss: a probability per packet, 0 to 1, or one for what each end sends.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Loss {
    /// The same for both directions.
    Both(f64),
    /// By the name of the end that sends; an end that is not named loses nothing.
    Sent(BTreeMap<String, f64>),
}

impl Default for Loss {
    fn default() -> Self {
        Loss::Both(0.0)
    }
}

impl Loss {
    /// The probability for what `end` sends.
    pub fn of(&self, end: &str) -> f64 {
        match self {
            Loss::Both(probability) => *probability,
            Loss::Sent(by) => by.get(end).copied().unwrap_or(0.0),
        }
    }
}

/// One end of a cable: `node`, towards `peer`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Interface {
    /// The node it belongs to.
    pub node: String,
    /// The node at the other end.
    pub peer: String,
    /// Root qdisc for what leaves here.
    #[serde(default)]
    pub egress: Option<Qdisc>,
    /// Qdisc of an ifb that receives what arrives here, before `mangle` and forwarding.
    #[serde(default)]
    pub ingress: Option<Qdisc>,
    /// Rewriting of what arrives here, in order, after `ingress`.
    #[serde(default)]
    pub mangle: Vec<Mangle>,
    /// `txqueuelen` in packets.
    pub tx_queue_len: u32,
}

/// A qdisc and what hangs below it, each in tc's own words.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Qdisc {
    /// `htb default 1`, `fq_codel flows 1`, `netem delay 10ms`
    pub qdisc: String,
    /// Classes of a classful qdisc (htb, prio).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<Class>,
    /// The child of a qdisc with one inner qdisc (netem, tbf).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<Box<Qdisc>>,
}

impl Qdisc {
    /// A qdisc without classes or child.
    pub fn leaf(line: &str) -> Self {
        Qdisc { qdisc: line.into(), classes: Vec::new(), child: None }
    }
}

/// A class.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// Minor number in hexadecimal digits, as in tc's `1:MINOR`.
    pub id: String,
    /// The class that it borrows from (htb), by its id; none means below the root. A class that is named here has
    /// neither filters nor child.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// tc's words after the kind: `rate 50mbit ceil 50mbit`; none for a band of prio.
    #[serde(default)]
    pub class: String,
    /// Packets that belong here; none means only by `default`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<Match>,
    /// The class's own qdisc; none means pfifo with txqueuelen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<Box<Qdisc>>,
}

/// Which packets; absent fields match all.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Match {
    /// `tcp`, `udp` or `icmp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proto: Option<String>,
    /// Codepoint, 0 to 63.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dscp: Option<u8>,
    /// `not-ect`, `ect0`, `ect1` or `ce`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn: Option<String>,
    /// TCP packets with (true) or without (false) the SYN flag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syn: Option<bool>,
    /// A flow or probe by name, both directions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
}

/// A rewriting rule; absent actions change nothing.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Mangle {
    /// Which packets.
    #[serde(default, rename = "match")]
    pub matches: Match,
    /// New codepoint, 0 to 63.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_dscp: Option<u8>,
    /// New ECN field: `not-ect`, `ect0`, `ect1` or `ce`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_ecn: Option<String>,
    /// Clear the ECN flags of a SYN, so that ECN is not negotiated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clear_syn_ecn: bool,
}

/// A tunnel.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Tunnel {
    /// Name, used by flows.
    pub name: String,
    /// `wireguard`, `ipsec`, `fou`, `gre` or `vxlan`.
    pub kind: String,
    /// Its two hosts.
    pub ends: [String; 2],
    /// Anti-replay window in packets: of IPsec (0 for no check); `WireGuard`'s is 8128.
    #[serde(default)]
    pub replay_window: Option<u32>,
    /// How IPsec encrypts: `aes-gcm` or `aes-cbc-hmac-sha256`.
    #[serde(default)]
    pub cipher: Option<String>,
    /// Whether middleboxes see the inner flow's hash (true) or one outer flow (false).
    pub inner_hash: bool,
}

/// Traffic from one host to another.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Unique name.
    pub name: String,
    /// Sending host.
    pub from: String,
    /// Receiving host.
    pub to: String,
    /// Congestion control with its version and parameters: `prague@2020-08`, `prague rtt_target 25ms`.
    pub cc: String,
    /// SHA-256 of the file that `cc` names, in hexadecimal, if it is written in Python.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cc_sha256: Option<String>,
    /// `tcp` or `udp`.
    pub transport: String,
    /// DSCP of data and ACKs, 0 to 63.
    pub dscp: u8,
    /// When the connection is opened, in seconds.
    pub start_s: f64,
    /// When the source stops, in seconds.
    pub stop_s: f64,
    /// What the application offers.
    pub source: Source,
    /// `SO_MAX_PACING_RATE`.
    #[serde(default)]
    pub max_pacing_rate_bps: Option<u64>,
    /// Name of the tunnel it goes through.
    #[serde(default)]
    pub tunnel: Option<String>,
}

/// A latency probe.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// Unique name, also among flows.
    pub name: String,
    /// `icmp` or `udp`.
    pub proto: String,
    /// Asking host.
    pub from: String,
    /// Answering host.
    pub to: String,
    /// Seconds between requests.
    pub every_s: f64,
    /// IP packet size in bytes.
    pub size: u32,
    /// DSCP of request and reply.
    pub dscp: u8,
    /// ECN field of request and reply: `not-ect`, `ect0`, `ect1` or `ce`.
    pub ecn: String,
    /// First request, in seconds.
    pub start_s: f64,
    /// No request after this, in seconds.
    pub stop_s: f64,
    /// Name of the tunnel it goes through.
    #[serde(default)]
    pub tunnel: Option<String>,
}

/// Something that changes during the run.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// When, in seconds.
    pub at_s: f64,
    /// The interface: its node.
    pub node: String,
    /// The interface: its peer.
    pub peer: String,
    /// What.
    pub action: Action,
}

/// What a change does.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Action {
    /// `tc class change`: state kept.
    ClassChange {
        /// `egress` or `ingress`.
        side: String,
        /// Class id.
        id: String,
        /// tc's words.
        class: String,
    },
    /// `tc qdisc change`: state kept. `handle` walks from the root: `""`, `"1"` (class 1's child), `"1/child"`.
    QdiscChange {
        /// `egress` or `ingress`.
        side: String,
        /// Which qdisc of the tree.
        handle: String,
        /// tc's words.
        qdisc: String,
    },
    /// `tc qdisc replace`: state lost.
    QdiscReplace {
        /// `egress` or `ingress`.
        side: String,
        /// Which qdisc of the tree.
        handle: String,
        /// The new tree.
        qdisc: Qdisc,
    },
    /// Link properties.
    Link {
        /// New rate.
        rate_bps: Option<u64>,
        /// New delay.
        delay_s: Option<f64>,
        /// New loss.
        loss: Option<f64>,
        /// Up or down.
        up: Option<bool>,
    },
}

impl Action {
    /// Whose queue is changed, as the document writes it: `egress` or `ingress`; none of a link.
    pub fn side(&self) -> Option<&str> {
        match self {
            Action::ClassChange { side, .. }
            | Action::QdiscChange { side, .. }
            | Action::QdiscReplace { side, .. } => Some(side),
            Action::Link { .. } => None,
        }
    }
}
