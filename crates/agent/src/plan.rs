//! PLAN.json: the traffic and the sampling of one agent. `tests/data/plan.json` is an example.
//!
//! Times are in seconds from t = 0. Unknown keys are refused with their path. `name` is that of the flow or probe in the
//! output; a source and its sink share it. Sizes of probes are those of the IP packet; sizes of sources are payload.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use bakeoff_document::run::Source;
use bakeoff_workload::Player;

use crate::error::Error;
use crate::limits::{ICMP_MIN_SIZE, MIN_PAYLOAD, UDP_MIN_SIZE};
use crate::program::Program;
use crate::qdisc::at::At;

/// The version of this document's form.
pub const FORMAT: u32 = 1;

/// A checked plan.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Ticks at 0, 1, 2 … times this, up to and including `duration_s`, in seconds.
    pub sample_interval_s: f64,
    /// Length of the run, in seconds: no sample and no request after it.
    pub duration_s: f64,
    /// How long answers to probes are awaited after the run, in seconds; 2 if absent.
    pub drain_s: f64,
    /// t = 0, the same for all agents of a run; none = 0.1 s after every role is ready.
    pub epoch: Option<Epoch>,
    /// The text file to write.
    pub output: PathBuf,
    /// Senders, receivers, probes.
    pub roles: Vec<Role>,
    /// Queues to sample.
    pub queues: Vec<Queue>,
    /// Commands at given times.
    pub changes: Vec<Change>,
    /// Programs of others.
    pub programs: Vec<Program>,
    /// Where to say how far the run has come ([`crate::progress`]).
    pub progress: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    format: u32,
    sample_interval_s: f64,
    duration_s: f64,
    #[serde(default = "default_drain")]
    drain_s: f64,
    #[serde(default)]
    epoch: Option<Epoch>,
    output: PathBuf,
    roles: Vec<Value>,
    #[serde(default)]
    queues: Vec<Value>,
    #[serde(default)]
    changes: Vec<Value>,
    #[serde(default)]
    programs: Vec<Value>,
    #[serde(default)]
    progress: Option<PathBuf>,
}

fn default_drain() -> f64 {
    2.0
}

/// The instant of t = 0.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Epoch {
    /// Which clock.
    pub clock: Clock,
    /// What it shows then, in ns.
    pub ns: i64,
}

/// A clock of the kernel.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// CLOCK_MONOTONIC.
    Monotonic,
    /// CLOCK_REALTIME.
    Realtime,
}

/// What one node does.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "role", rename_all = "kebab-case")]
pub enum Role {
    /// Sends a TCP stream.
    TcpSource(TcpSource),
    /// Receives it.
    TcpSink(TcpSink),
    /// Sends datagrams.
    UdpSource(UdpSource),
    /// Receives them.
    UdpSink(UdpSink),
    /// Asks a UDP reflector.
    UdpProbe(UdpProbe),
    /// Answers it.
    UdpReflector(UdpReflector),
    /// ICMP echo.
    IcmpProbe(IcmpProbe),
}

/// See [`Role::TcpSource`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TcpSource {
    /// Flow.
    pub name: String,
    /// Named network namespace; none = the agent's own.
    #[serde(default)]
    pub netns: Option<String>,
    /// The sink.
    pub to: SocketAddrV4,
    /// TCP_CONGESTION, as the kernel knows it (`prague`, not `prague@2020-08`).
    pub cc: String,
    /// Of data, 0 to 63.
    #[serde(default)]
    pub dscp: u8,
    /// When the SYN is sent, in seconds.
    pub start_s: f64,
    /// When the source stops, in seconds.
    pub stop_s: f64,
    /// What it offers.
    pub source: Source,
    /// SO_MAX_PACING_RATE, in bits per second.
    #[serde(default)]
    pub max_pacing_rate_bps: Option<u64>,
    /// Local port; none = the kernel's choice.
    #[serde(default)]
    pub local_port: Option<u16>,
}

/// See [`Role::TcpSink`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TcpSink {
    /// Flow.
    pub name: String,
    /// Named network namespace; none = the agent's own.
    #[serde(default)]
    pub netns: Option<String>,
    /// Where it listens.
    pub port: u16,
    /// DSCP of the ACKs, 0 to 63.
    #[serde(default)]
    pub dscp: u8,
    /// TCP_CONGESTION of the accepting end; none = the kernel's default.
    #[serde(default)]
    pub cc: Option<String>,
    /// How it answers its source.
    #[serde(default)]
    pub answers: Answers,
}

/// What a [`TcpSink`] tells the sending application.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Answers {
    /// Nothing, over one connection.
    #[default]
    Nothing,
    /// The end of each object, which is a connection.
    Objects,
    /// The end of each segment of a video, over one connection.
    Segments,
}

/// See [`Role::UdpSource`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UdpSource {
    /// Flow.
    pub name: String,
    /// Named network namespace; none = the agent's own.
    #[serde(default)]
    pub netns: Option<String>,
    /// The sink.
    pub to: SocketAddrV4,
    /// 0 to 63.
    #[serde(default)]
    pub dscp: u8,
    /// ECN field as sent.
    #[serde(default)]
    pub ecn: Ecn,
    /// First datagram, in seconds.
    pub start_s: f64,
    /// No datagram from here on, in seconds.
    pub stop_s: f64,
    /// `rate` or `periodic`.
    pub source: Source,
    /// Local port; none = the kernel's choice.
    #[serde(default)]
    pub local_port: Option<u16>,
}

/// See [`Role::UdpSink`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UdpSink {
    /// Flow.
    pub name: String,
    /// Named network namespace; none = the agent's own.
    #[serde(default)]
    pub netns: Option<String>,
    /// Where it listens.
    pub port: u16,
    /// When its source begins, in seconds.
    pub start_s: f64,
    /// When its source stops, in seconds.
    pub stop_s: f64,
    /// What its source sends: which datagrams are to come, and when each was due.
    pub source: Source,
}

/// See [`Role::UdpProbe`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UdpProbe {
    /// Probe.
    pub name: String,
    /// Named network namespace; none = the agent's own.
    #[serde(default)]
    pub netns: Option<String>,
    /// The reflector.
    pub to: SocketAddrV4,
    /// Seconds between requests.
    pub every_s: f64,
    /// IP packet size in bytes.
    pub size: u16,
    /// 0 to 63.
    #[serde(default)]
    pub dscp: u8,
    /// ECN field as sent.
    #[serde(default)]
    pub ecn: Ecn,
    /// First request, in seconds.
    pub start_s: f64,
    /// No request from here on, in seconds.
    pub stop_s: f64,
}

/// See [`Role::UdpReflector`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UdpReflector {
    /// Named network namespace; none = the agent's own.
    #[serde(default)]
    pub netns: Option<String>,
    /// Where it listens.
    pub port: u16,
}

/// See [`Role::IcmpProbe`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IcmpProbe {
    /// Probe.
    pub name: String,
    /// Named network namespace; none = the agent's own.
    #[serde(default)]
    pub netns: Option<String>,
    /// The host asked.
    pub to: Ipv4Addr,
    /// Seconds between requests.
    pub every_s: f64,
    /// IP packet size in bytes.
    pub size: u16,
    /// 0 to 63.
    #[serde(default)]
    pub dscp: u8,
    /// ECN field as sent.
    #[serde(default)]
    pub ecn: Ecn,
    /// First request, in seconds.
    pub start_s: f64,
    /// No request from here on, in seconds.
    pub stop_s: f64,
}

/// The ECN field of a packet (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Ecn {
    /// 00
    #[default]
    NotEct = 0,
    /// 01
    Ect1 = 1,
    /// 10
    Ect0 = 2,
    /// 11
    Ce = 3,
}

/// A queue to sample.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    /// Name in the output.
    pub name: String,
    /// Named network namespace; none = the agent's own.
    #[serde(default)]
    pub netns: Option<String>,
    /// Interface.
    pub dev: String,
    /// `root`, `parent 1:1` or `handle 10:`.
    pub at: String,
    /// Whether it is read at each tick; false: only at the end.
    #[serde(default = "sampled")]
    pub sampled: bool,
}

fn sampled() -> bool {
    true
}

/// A command at a given time.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Seconds.
    pub at_s: f64,
    /// For messages.
    #[serde(default)]
    pub node: Option<String>,
    /// Named network namespace; none = the agent's own.
    #[serde(default)]
    pub netns: Option<String>,
    /// Program and arguments.
    pub argv: Vec<String>,
}

impl Plan {
    /// Reads and checks a plan.
    pub fn read(path: &Path) -> Result<Plan, Error> {
        let place = path.display();
        let text = std::fs::read_to_string(path).map_err(|e| Error::Refused(format!("{place}: {e}")))?;
        let value = serde_json::from_str(&text).map_err(|e| Error::Refused(format!("{place}: {e}")))?;
        Plan::from_value(value).map_err(|e| Error::Refused(format!("{place}: {e}")))
    }

    /// Checks a plan that stands inside another document. The message of an error begins with the place in the plan.
    pub fn from_value(value: Value) -> Result<Plan, String> {
        let document: Document = serde_json::from_value(value).map_err(|e| e.to_string())?;
        if document.format != FORMAT {
            return Err(format!(
                "format: {} is not {FORMAT}, the only one this agent knows",
                document.format
            ));
        }
        let plan = Plan {
            sample_interval_s: document.sample_interval_s,
            duration_s: document.duration_s,
            drain_s: document.drain_s,
            epoch: document.epoch,
            output: document.output,
            roles: list("roles", document.roles)?,
            queues: list("queues", document.queues)?,
            changes: list("changes", document.changes)?,
            programs: list("programs", document.programs)?,
            progress: document.progress,
        };
        plan.check()?;
        Ok(plan)
    }

    fn check(&self) -> Result<(), String> {
        positive("sample_interval_s", self.sample_interval_s)?;
        positive("duration_s", self.duration_s)?;
        not_negative("drain_s", self.drain_s)?;
        let mut names = BTreeSet::new();
        for (i, role) in self.roles.iter().enumerate() {
            role.check().map_err(|e| format!("roles[{i}].{e}"))?;
            if let Some(key) = role.unique_key()
                && !names.insert(key.clone())
            {
                return Err(format!("roles[{i}].name: there are two {key}"));
            }
        }
        for (i, queue) in self.queues.iter().enumerate() {
            name(&queue.name).map_err(|e| format!("queues[{i}].{e}"))?;
            if !names.insert(format!("queues '{}'", queue.name)) {
                return Err(format!("queues[{i}].name: there are two queues '{}'", queue.name));
            }
            At::parse(&queue.at).map_err(|e| format!("queues[{i}].at: {e}"))?;
        }
        for (i, change) in self.changes.iter().enumerate() {
            not_negative("at_s", change.at_s).map_err(|e| format!("changes[{i}].{e}"))?;
            if change.at_s > self.duration_s {
                return Err(format!(
                    "changes[{i}].at_s: {} is after the end of the run, duration_s {}",
                    change.at_s, self.duration_s
                ));
            }
            if change.argv.is_empty() {
                return Err(format!("changes[{i}].argv: is empty; a program and its arguments are expected"));
            }
        }
        for (i, program) in self.programs.iter().enumerate() {
            name(&program.name).map_err(|e| format!("programs[{i}].{e}"))?;
            not_negative("start_s", program.start_s.unwrap_or(0.0))
                .map_err(|e| format!("programs[{i}].{e}"))?;
            if program.stop_s.is_some_and(|stop_s| stop_s <= program.start_s.unwrap_or(0.0)) {
                return Err(format!("programs[{i}].stop_s: is not after its start"));
            }
            if program.argv.is_empty() {
                return Err(format!(
                    "programs[{i}].argv: is empty; a program and its arguments are expected"
                ));
            }
        }
        Ok(())
    }
}

impl Role {
    /// What may stand only once in a plan.
    fn unique_key(&self) -> Option<String> {
        match self {
            Role::TcpSource(TcpSource { name, .. }) | Role::UdpSource(UdpSource { name, .. }) => {
                Some(format!("sources '{name}'"))
            }
            Role::TcpSink(TcpSink { name, .. }) | Role::UdpSink(UdpSink { name, .. }) => {
                Some(format!("sinks '{name}'"))
            }
            Role::UdpProbe(UdpProbe { name, .. }) | Role::IcmpProbe(IcmpProbe { name, .. }) => {
                Some(format!("probes '{name}'"))
            }
            Role::UdpReflector(_) => None,
        }
    }

    fn check(&self) -> Result<(), String> {
        match self {
            Role::TcpSource(r) => {
                name(&r.name)?;
                dscp(r.dscp)?;
                span(r.start_s, r.stop_s)?;
                source(&r.source)?;
                if r.cc.is_empty() {
                    return Err("cc: is empty; a name of the kernel's is expected, such as 'cubic'".into());
                }
                if r.max_pacing_rate_bps.is_some_and(|rate| rate < 8) {
                    return Err("max_pacing_rate_bps: at least 8 is expected".into());
                }
                port("local_port", r.local_port)
            }
            Role::TcpSink(r) => {
                name(&r.name)?;
                dscp(r.dscp)?;
                port("port", Some(r.port))
            }
            Role::UdpSource(r) => {
                name(&r.name)?;
                dscp(r.dscp)?;
                span(r.start_s, r.stop_s)?;
                datagrams(&r.source)?;
                port("local_port", r.local_port)
            }
            Role::UdpSink(r) => {
                name(&r.name)?;
                span(r.start_s, r.stop_s)?;
                datagrams(&r.source)?;
                port("port", Some(r.port))
            }
            Role::UdpReflector(r) => port("port", Some(r.port)),
            Role::UdpProbe(r) => {
                name(&r.name)?;
                dscp(r.dscp)?;
                span(r.start_s, r.stop_s)?;
                positive("every_s", r.every_s)?;
                size(r.size, UDP_MIN_SIZE)
            }
            Role::IcmpProbe(r) => {
                name(&r.name)?;
                dscp(r.dscp)?;
                span(r.start_s, r.stop_s)?;
                positive("every_s", r.every_s)?;
                size(r.size, ICMP_MIN_SIZE)
            }
        }
    }
}

fn source(source: &Source) -> Result<(), String> {
    match *source {
        Source::Short { ref objects } => {
            let ordered = objects.is_sorted_by_key(|object| object.0);
            if ordered && objects.iter().all(|&(after_s, bytes)| after_s >= 0.0 && bytes > 0) {
                return Ok(());
            }
            Err("source.objects: pairs of seconds, ascending, and bytes above 0 are expected".into())
        }
        Source::Video { ref rates_bps, segment_s, buffer_s } => {
            let [segment, buffer] = [segment_s, buffer_s].map(|s| crate::clock::ns(s).max(0) as u64);
            Player::new(rates_bps, segment, buffer, 0).map(drop).map_err(|e| format!("source.{e}"))
        }
        Source::Bytes { bytes: 0 } => Err("source.bytes: 0; at least 1 is expected".into()),
        Source::Rate { rate_bps, size } if rate_bps == 0 || size == 0 => {
            Err("source: rate_bps and size of at least 1 are expected".into())
        }
        Source::Periodic { size, count, .. } if size == 0 || count == 0 => {
            Err("source: size and count of at least 1 are expected".into())
        }
        Source::Periodic { every_s, .. } => positive("source.every_s", every_s),
        Source::Bulk | Source::Bytes { .. } | Source::Rate { .. } => Ok(()),
    }
}

/// What a `udp-source` sends.
fn datagrams(of: &Source) -> Result<(), String> {
    source(of)?;
    match *of {
        Source::Rate { size, .. } | Source::Periodic { size, .. } => {
            if (MIN_PAYLOAD..=65507).contains(&size) {
                return Ok(());
            }
            Err(format!("source.size: {size} is not within {MIN_PAYLOAD} to 65507 bytes"))
        }
        _ => Err("source.kind: datagrams are sent by 'rate' or 'periodic'".into()),
    }
}

fn list<T: DeserializeOwned>(key: &str, values: Vec<Value>) -> Result<Vec<T>, String> {
    values
        .into_iter()
        .enumerate()
        .map(|(i, value)| serde_json::from_value(value).map_err(|e| format!("{key}[{i}]: {e}")))
        .collect()
}

fn name(name: &str) -> Result<(), String> {
    if name.is_empty() || name.chars().any(char::is_control) {
        return Err(format!("name: {name:?}; printable characters are expected"));
    }
    Ok(())
}

fn dscp(dscp: u8) -> Result<(), String> {
    if dscp > 63 { Err(format!("dscp: {dscp} is not within 0 to 63")) } else { Ok(()) }
}

fn size(size: u16, least: u16) -> Result<(), String> {
    if size < least {
        Err(format!("size: {size}; an IP packet of at least {least} bytes is expected"))
    } else {
        Ok(())
    }
}

fn port(key: &str, port: Option<u16>) -> Result<(), String> {
    if port == Some(0) { Err(format!("{key}: 0; 1 to 65535 is expected")) } else { Ok(()) }
}

fn span(start_s: f64, stop_s: f64) -> Result<(), String> {
    not_negative("start_s", start_s)?;
    if stop_s > start_s { Ok(()) } else { Err(format!("stop_s: {stop_s} is not after start_s {start_s}")) }
}

fn positive(key: &str, value: f64) -> Result<(), String> {
    if value > 0.0 && value.is_finite() {
        Ok(())
    } else {
        Err(format!("{key}: {value}; more than 0 seconds are expected"))
    }
}

fn not_negative(key: &str, value: f64) -> Result<(), String> {
    if value >= 0.0 { Ok(()) } else { Err(format!("{key}: {value}; 0 seconds or more are expected")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn plan(roles: &Value) -> Result<Plan, String> {
        Plan::from_value(
            json!({"format": 1, "sample_interval_s": 0.05, "duration_s": 1.0, "output": "o.tsv", "roles": roles}),
        )
    }

    fn source() -> Value {
        json!({"role": "tcp-source", "name": "a", "to": "10.0.0.1:5201", "cc": "cubic", "start_s": 0.0, "stop_s": 1.0, "source": {"kind": "bulk"}})
    }

    fn with(mut role: Value, key: &str, value: Value) -> Value {
        role[key] = value;
        json!([role])
    }

    #[test]
    fn the_documented_plan_is_accepted() {
        let document = serde_json::from_str(include_str!("../tests/data/plan.json")).expect("JSON");
        let plan = Plan::from_value(document).expect("accepted");
        assert_eq!((plan.roles.len(), plan.queues.len(), plan.changes.len()), (7, 1, 1));
        let Role::TcpSource(source) = &plan.roles[1] else { panic!("the second role is the tcp-source") };
        assert_eq!((source.dscp, source.netns.as_deref(), &source.source), (19, Some("cli"), &Source::Bulk));
        let Role::UdpProbe(probe) = &plan.roles[6] else { panic!("the seventh role is the udp-probe") };
        assert_eq!(probe.ecn as u8, 0b01);
    }

    /// `tests/engines/test_agent_plan.py` holds that Python writes this document, with every role, source and key that it knows.
    #[test]
    fn what_python_writes_is_accepted() {
        let document: Value =
            serde_json::from_str(include_str!("../../../tests/data/agent-plan.json")).expect("JSON");
        let plan = Plan::from_value(document).expect("accepted");
        let written = |wanted: fn(&Role) -> bool| plan.roles.iter().filter(|role| wanted(role)).count();
        assert_eq!(written(|role| matches!(role, Role::TcpSink(_))), 6);
        assert_eq!(written(|role| matches!(role, Role::TcpSource(_))), 6);
        assert_eq!(written(|role| matches!(role, Role::UdpSink(_))), 2);
        assert_eq!(written(|role| matches!(role, Role::UdpSource(_))), 2);
        assert_eq!(written(|role| matches!(role, Role::UdpReflector(_))), 4);
        assert_eq!(written(|role| matches!(role, Role::UdpProbe(_))), 4);
        assert_eq!(written(|role| matches!(role, Role::IcmpProbe(_))), 4);
        assert_eq!((plan.queues.len(), plan.changes.len(), plan.programs.len()), (1, 1, 4));
    }

    #[test]
    fn defaults() {
        let plan = plan(&json!([source()])).expect("accepted");
        assert!(plan.epoch.is_none());
        assert_eq!(plan.drain_s.to_bits(), 2.0f64.to_bits());
    }

    #[test]
    fn refusals_name_the_place() {
        for (roles, message) in [
            (with(source(), "bytes", json!(3)), "roles[0]: unknown field `bytes`"),
            (with(source(), "dscp", json!(64)), "roles[0].dscp: 64 is not within 0 to 63"),
            (with(source(), "to", json!("[::1]:80")), "roles[0]: invalid IPv4 socket address syntax"),
            (with(source(), "stop_s", json!(0.0)), "roles[0].stop_s: 0 is not after start_s 0"),
            (with(source(), "name", json!("a\tb")), "roles[0].name: \"a\\tb\"; printable"),
            (with(source(), "source", json!({"kind": "vidio"})), "roles[0]: unknown variant `vidio`"),
            (
                with(source(), "source", json!({"kind": "short", "objects": [[2.0, 1], [1.0, 1]]})),
                "roles[0].source.objects: pairs of seconds, ascending",
            ),
            (
                with(
                    source(),
                    "source",
                    json!({"kind": "video", "rates_bps": [], "segment_s": 1.0, "buffer_s": 1.0}),
                ),
                "roles[0].source.rates_bps: ",
            ),
            (
                with(source(), "source", json!({"kind": "periodic", "size": 1, "count": 1, "every_s": 0.0})),
                "roles[0].source.every_s: 0;",
            ),
            (json!([source(), source()]), "roles[1].name: there are two sources 'a'"),
            (
                json!([{"role": "udp-probe", "name": "p", "to": "10.0.0.1:1", "every_s": 1.0, "size": 51, "start_s": 0.0, "stop_s": 1.0}]),
                "roles[0].size: 51;",
            ),
        ] {
            let error = plan(&roles).expect_err(message);
            assert!(error.starts_with(message), "{error:?} does not begin with {message:?}");
        }
    }

    #[test]
    fn a_change_after_the_end_is_refused() {
        let error = Plan::from_value(
            json!({"format": 1, "sample_interval_s": 0.05, "duration_s": 1.0, "output": "o", "roles": [],
            "changes": [{"at_s": 1.5, "argv": ["true"]}]}),
        );
        assert_eq!(
            error.expect_err("refused"),
            "changes[0].at_s: 1.5 is after the end of the run, duration_s 1"
        );
    }

    #[test]
    fn another_format_is_refused() {
        let error = Plan::from_value(
            json!({"format": 2, "sample_interval_s": 0.05, "duration_s": 1.0, "output": "o", "roles": []}),
        );
        assert!(error.expect_err("refused").starts_with("format: 2 is not 1"));
    }
}
