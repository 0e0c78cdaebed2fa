//! The resolved run: one experiment with every value filled in, in SI units (seconds, bits per
//! second, bytes). Written by `bakeoff.scenario`, read by every engine; see `docs/resolved-run.md`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

#[cfg(feature = "schema")]
use crate::schema;
use crate::stimulus::Stimulus;

/// The version of this document's form.
pub const FORMAT: u32 = 1;

fn mtu() -> u32 {
    1500
}

fn tx_queue_len() -> u32 {
    1000
}

fn transport() -> String {
    "tcp".into()
}

fn ecn() -> String {
    "not-ect".into()
}

/// One run.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// [`FORMAT`].
    #[cfg_attr(feature = "schema", schemars(with = "schema::Format"))]
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
    #[cfg_attr(feature = "schema", schemars(with = "schema::Duration"))]
    pub duration_s: f64,
    /// How often series are sampled, in seconds.
    #[cfg_attr(feature = "schema", schemars(with = "schema::SampleInterval"))]
    pub sample_interval_s: f64,
    /// The steady state: percentiles and histograms are taken inside [from, to] seconds.
    #[cfg_attr(feature = "schema", schemars(with = "[schema::Seconds; 2]"))]
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
    /// What is done when senders come into a state. The simulator only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<Stimulus>,
    /// Captures of interfaces, as `node>peer`.
    #[serde(default)]
    pub captures: Vec<String>,
    /// Traffic tools that real engines use instead of their own agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Tools>,
    /// Programs of the machine that run in a node's network. The simulator refuses them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<Program>,
    /// Internals to record: `cc`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<schema::Traced>"))]
    pub trace: Vec<String>,
    /// The point of the matrix this run is, for tables: axis name to label.
    #[serde(default)]
    pub point: BTreeMap<String, String>,
    /// Anything that presentation needs and engines ignore (axis ranges, names of published rows).
    #[serde(default)]
    pub present: serde_json::Map<String, serde_json::Value>,
}

/// Traffic tools by what they make.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Tools {
    /// `iperf3`, `netperf` or `flent`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<schema::FlowTool>"))]
    pub flows: Option<String>,
    /// `irtt`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<schema::ProbeTool>"))]
    pub probes: Option<String>,
}

/// A program of the machine that runs in a node's network.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Unique name.
    pub name: String,
    /// Where it runs.
    pub node: String,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// When it starts, in seconds; none: before the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<schema::Seconds>"))]
    pub start_s: Option<f64>,
    /// When it is interrupted, in seconds; none: at the end of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<schema::Seconds>"))]
    pub stop_s: Option<f64>,
    /// How it has to end, if it ends by itself.
    #[serde(default)]
    pub exit: Exit,
    /// Files and folders that it may read, with their whole path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<String>,
    /// Whether its output measures the `flow` or the `probe` of the same name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<schema::Measured>"))]
    pub measures: Option<String>,
}

/// The exit code that a program has to end with.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Exit {
    /// This one.
    Code(i64),
    /// See [`Any`].
    Any(Any),
}

impl Default for Exit {
    fn default() -> Self {
        Exit::Code(0)
    }
}

/// The word `any`.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Any {
    /// Every exit code will do.
    Any,
}

/// What a node does with packets that are not for it.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    #[cfg_attr(feature = "schema", schemars(with = "schema::Hz"))]
    pub hz: u64,
    /// Whether segmentation and receive offloads are on.
    pub offloads: bool,
    /// When the machine does not run; none: it always does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall: Option<Stall>,
    /// Its timers are late by a time drawn uniformly from 0 to this, in seconds.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "schema::Delay"))]
    pub timer_slack_s: f64,
    /// How long its network card holds frames back after the first of a batch, in seconds.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "schema::Delay"))]
    pub receive_coalescing_s: f64,
}

/// Periods in which a machine does not run, the first at a random time.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Stall {
    /// How long each takes, in seconds: less than `every_s`.
    #[cfg_attr(feature = "schema", schemars(with = "schema::Delay"))]
    pub length_s: f64,
    /// From the start of one to that of the next, in seconds.
    #[cfg_attr(feature = "schema", schemars(with = "schema::Every"))]
    pub every_s: f64,
}

/// A cable; both directions alike, except for what says which end sends.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// The two nodes.
    pub ends: [String; 2],
    /// Serialisation rate; none means instantaneous (veth).
    #[cfg_attr(feature = "schema", schemars(with = "Option<schema::Rate>"))]
    pub rate_bps: Option<u64>,
    /// Propagation delay, one way.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "schema::Delay"))]
    pub delay_s: f64,
    /// MTU in bytes.
    #[serde(default = "mtu")]
    #[cfg_attr(feature = "schema", schemars(with = "schema::Mtu"))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Loss {
    /// The same for both directions.
    Both(#[cfg_attr(feature = "schema", schemars(with = "schema::Probability"))] f64),
    /// By the name of the end that sends; an end that is not named loses nothing.
    Sent(
        #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, schema::Probability>"))]
        BTreeMap<String, f64>,
    ),
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    #[serde(default = "tx_queue_len")]
    pub tx_queue_len: u32,
}

/// A qdisc and what hangs below it, each in tc's own words.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Match {
    /// `tcp`, `udp` or `icmp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<schema::Matched>"))]
    pub proto: Option<String>,
    /// Codepoint, 0 to 63.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<schema::Dscp>"))]
    pub dscp: Option<u8>,
    /// `not-ect`, `ect0`, `ect1` or `ce`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<schema::Ecn>"))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Mangle {
    /// Which packets.
    #[serde(default, rename = "match")]
    pub matches: Match,
    /// New codepoint, 0 to 63.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<schema::Dscp>"))]
    pub set_dscp: Option<u8>,
    /// New ECN field: `not-ect`, `ect0`, `ect1` or `ce`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<schema::Ecn>"))]
    pub set_ecn: Option<String>,
    /// Clear the ECN flags of a SYN, so that ECN is not negotiated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clear_syn_ecn: Option<bool>,
}

/// A tunnel.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Tunnel {
    /// Name, used by flows.
    pub name: String,
    /// `wireguard`, `ipsec`, `fou`, `gre` or `vxlan`.
    #[cfg_attr(feature = "schema", schemars(with = "schema::Tunnelled"))]
    pub kind: String,
    /// Its two hosts.
    pub ends: [String; 2],
    /// Anti-replay window in packets: of IPsec (0 for no check); `WireGuard`'s is 8128.
    #[serde(default)]
    pub replay_window: Option<u32>,
    /// How IPsec encrypts: `aes-gcm` or `aes-cbc-hmac-sha256`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<schema::Cipher>"))]
    pub cipher: Option<String>,
    /// Whether middleboxes see the inner flow's hash (true) or one outer flow (false).
    pub inner_hash: bool,
}

/// Traffic from one host to another.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    #[serde(default = "transport")]
    #[cfg_attr(feature = "schema", schemars(with = "schema::Transport"))]
    pub transport: String,
    /// DSCP of data and ACKs, 0 to 63.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "schema::Dscp"))]
    pub dscp: u8,
    /// When the connection is opened, in seconds.
    #[cfg_attr(feature = "schema", schemars(with = "schema::Seconds"))]
    pub start_s: f64,
    /// When the source stops, in seconds.
    #[cfg_attr(feature = "schema", schemars(with = "schema::Seconds"))]
    pub stop_s: f64,
    /// What the application offers.
    #[serde(default)]
    pub source: Source,
    /// `SO_MAX_PACING_RATE`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<schema::Rate>"))]
    pub max_pacing_rate_bps: Option<u64>,
    /// Name of the tunnel it goes through.
    #[serde(default)]
    pub tunnel: Option<String>,
}

/// What an application offers to a flow.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Source {
    /// Always more data.
    #[default]
    Bulk,
    /// That many bytes, then the end.
    Bytes {
        /// Payload bytes.
        #[cfg_attr(feature = "schema", schemars(with = "schema::Bytes"))]
        bytes: u64,
    },
    /// A constant rate.
    Rate {
        /// Payload bits per second.
        #[cfg_attr(feature = "schema", schemars(with = "schema::Rate"))]
        rate_bps: u64,
        /// Bytes per write or datagram.
        #[cfg_attr(feature = "schema", schemars(with = "schema::Write"))]
        size: u32,
    },
    /// Writes of `size` bytes every `every_s` seconds (isochronous UDP, VBR as a sum of several).
    Periodic {
        /// Bytes per burst.
        #[cfg_attr(feature = "schema", schemars(with = "schema::Write"))]
        size: u32,
        /// Datagrams or writes per burst.
        #[cfg_attr(feature = "schema", schemars(with = "schema::Burst"))]
        count: u32,
        /// Seconds between bursts.
        #[cfg_attr(feature = "schema", schemars(with = "schema::Every"))]
        every_s: f64,
    },
    /// A new connection per object.
    Short {
        /// When each begins, in seconds after the flow's start, ascending, and its payload bytes.
        #[cfg_attr(feature = "schema", schemars(with = "Vec<(schema::Seconds, schema::Bytes)>"))]
        objects: Vec<(f64, u64)>,
    },
    /// A segmented video, fetched by an adaptive player (`bakeoff_workload::video`).
    Video {
        /// Encoding rate in bits per second of each quality level, ascending.
        #[cfg_attr(feature = "schema", schemars(with = "Vec<schema::Rate>"))]
        rates_bps: Vec<u64>,
        /// Seconds of video per segment.
        #[cfg_attr(feature = "schema", schemars(with = "schema::Video"))]
        segment_s: f64,
        /// Seconds of buffer before it pauses.
        #[cfg_attr(feature = "schema", schemars(with = "schema::Video"))]
        buffer_s: f64,
    },
}

/// A latency probe.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// Unique name, also among flows.
    pub name: String,
    /// `icmp` or `udp`.
    #[cfg_attr(feature = "schema", schemars(with = "schema::Probed"))]
    pub proto: String,
    /// Asking host.
    pub from: String,
    /// Answering host.
    pub to: String,
    /// Seconds between requests.
    #[cfg_attr(feature = "schema", schemars(with = "schema::Every"))]
    pub every_s: f64,
    /// IP packet size in bytes.
    #[cfg_attr(feature = "schema", schemars(with = "schema::ProbeSize"))]
    pub size: u32,
    /// DSCP of request and reply.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "schema::Dscp"))]
    pub dscp: u8,
    /// ECN field of request and reply: `not-ect`, `ect0`, `ect1` or `ce`.
    #[serde(default = "ecn")]
    #[cfg_attr(feature = "schema", schemars(with = "schema::Ecn"))]
    pub ecn: String,
    /// First request, in seconds.
    #[cfg_attr(feature = "schema", schemars(with = "schema::Seconds"))]
    pub start_s: f64,
    /// No request after this, in seconds.
    #[cfg_attr(feature = "schema", schemars(with = "schema::Seconds"))]
    pub stop_s: f64,
    /// Name of the tunnel it goes through.
    #[serde(default)]
    pub tunnel: Option<String>,
}

/// Something that changes during the run.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// When, in seconds.
    #[cfg_attr(feature = "schema", schemars(with = "schema::Seconds"))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Action {
    /// `tc class change`: state kept.
    ClassChange {
        /// `egress` or `ingress`.
        #[cfg_attr(feature = "schema", schemars(with = "schema::Side"))]
        side: String,
        /// Class id.
        id: String,
        /// tc's words.
        class: String,
    },
    /// `tc qdisc change`: state kept. `handle` walks from the root: `""`, `"1"` (class 1's child), `"1/child"`.
    QdiscChange {
        /// `egress` or `ingress`.
        #[cfg_attr(feature = "schema", schemars(with = "schema::Side"))]
        side: String,
        /// Which qdisc of the tree.
        handle: String,
        /// tc's words.
        qdisc: String,
    },
    /// `tc qdisc replace`: state lost.
    QdiscReplace {
        /// `egress` or `ingress`.
        #[cfg_attr(feature = "schema", schemars(with = "schema::Side"))]
        side: String,
        /// Which qdisc of the tree.
        handle: String,
        /// The new tree.
        qdisc: Qdisc,
    },
    /// Link properties.
    Link {
        /// New rate.
        #[cfg_attr(feature = "schema", schemars(with = "Option<schema::Rate>"))]
        rate_bps: Option<u64>,
        /// New delay.
        #[cfg_attr(feature = "schema", schemars(with = "Option<schema::Delay>"))]
        delay_s: Option<f64>,
        /// New loss.
        #[cfg_attr(feature = "schema", schemars(with = "Option<schema::Probability>"))]
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
