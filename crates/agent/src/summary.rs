//! The last line of the output: what was counted over the whole run. What the kernel does not tell has no key.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use serde_json::{Map, Value, json};

use crate::clock;
use crate::net;
use crate::roles::Roles;
use crate::sample::{Sampler, received};
use crate::short;
use crate::tcp::{self, NEVER};
use crate::tcp_info::TcpInfo;
use crate::udp;

/// `sources`, `sinks`, `probes` and `queues`.
pub fn counters(roles: &Roles, sampler: &Sampler, epoch: i64) -> Map<String, Value> {
    let mut sources = Map::new();
    for (source, ecn) in roles.tcp_sources.iter().zip(&sampler.ecn) {
        sources.insert(source.plan.name.clone(), tcp_source(source, *ecn, epoch));
    }
    for source in &roles.short_sources {
        sources.insert(source.plan.name.clone(), short_source(source));
    }
    for source in &roles.udp_sources {
        sources.insert(source.plan.name.clone(), udp_source(source));
    }
    let mut sinks = Map::new();
    for sink in &roles.tcp_sinks {
        sinks.insert(sink.plan.name.clone(), tcp_sink(sink, epoch));
    }
    for sink in &roles.short_sinks {
        sinks.insert(sink.plan.name.clone(), json!({"received_bytes": sink.received().unwrap_or(0)}));
    }
    for sink in &roles.udp_sinks {
        sinks.insert(sink.plan.name.clone(), udp_sink(sink));
    }
    let mut probes = Map::new();
    for probe in &roles.probes {
        let [sent, received, ce_out, ce_back] =
            [&probe.sent, &probe.received, &probe.ce_out, &probe.ce_back].map(|count| count.load(Relaxed));
        let ce_out = probe.knows_ce_out().then_some(ce_out);
        probes.insert(
            probe.name.clone(),
            json!({"sent": sent, "received": received, "ce_out": ce_out, "ce_back": ce_back}),
        );
    }
    let mut queues = Map::new();
    for (name, stats) in &sampler.queues {
        let mut queue = json!({
            "kind": stats.kind, "sent_packets": stats.sent_packets, "sent_bytes": stats.sent_bytes, "queued": stats.qlen,
            "drops": stats.reasons(), "overlimits": stats.overlimits, "requeues": stats.requeues,
        });
        if let Some(marks) = stats.marks {
            queue["marks"] = json!(marks);
        }
        if let Some(marks) = stats.sce_marks {
            queue["sce_marks"] = json!(marks);
        }
        queues.insert(name.clone(), queue);
    }
    let all = [("sources", sources), ("sinks", sinks), ("probes", probes), ("queues", queues)];
    all.into_iter().map(|(key, map)| (key.to_owned(), Value::Object(map))).collect()
}

fn tcp_source(source: &tcp::Source, ecn: Option<&str>, epoch: i64) -> Value {
    let mut told = Told(Map::new());
    told.put("cc", Some(source.plan.cc.as_str()));
    told.put("ecn", ecn);
    told.put("connected_s", Some(instant(&source.connected, epoch)));
    told.put("finished_s", Some(instant(&source.finished, epoch)));
    told.put("local_port", tcp::local_port(&source.socket));
    if source.connected.load(Relaxed) != NEVER
        && let Ok(info) = net::tcp_info(&source.socket)
    {
        told.put("mss", info.snd_mss());
        told.put("sent_packets", info.data_segs_out());
        told.put("sent_bytes", info.bytes_sent());
        told.put("retransmitted_bytes", info.bytes_retrans());
        told.put("delivered", info.delivered());
        told.put("delivered_ce", info.delivered_ce());
        told.put("retransmits", info.total_retrans());
        told.put("rtos", info.total_rto());
        told.put("dsack_dups", info.dsack_dups());
        told.put("reordering_seen", info.reord_seen());
        for (key, microseconds) in [
            ("busy_s", info.busy_time()),
            ("rwnd_limited_s", info.rwnd_limited()),
            ("sndbuf_limited_s", info.sndbuf_limited()),
        ] {
            told.put(key, microseconds.map(|us| us as f64 / 1e6));
        }
    }
    Value::Object(told.0)
}

fn short_source(source: &short::Source) -> Value {
    let totals = source.totals();
    let objects = source.objects();
    let ended = objects.iter().filter(|object| object.took.is_some()).count();
    json!({
        "cc": source.plan.cc, "ecn": totals.ecn, "mss": totals.mss,
        "connected_s": objects.first().map(|object| clock::seconds(object.due)),
        "objects": {"offered": source.offered(), "begun": objects.len(), "ended": ended},
        "sent_packets": totals.sent_packets, "sent_bytes": totals.sent_bytes, "delivered": totals.delivered,
        "delivered_ce": totals.delivered_ce, "retransmits": totals.retransmits, "rtos": totals.rtos,
    })
}

fn tcp_sink(sink: &tcp::Sink, epoch: i64) -> Value {
    let mut told = Told(Map::new());
    told.put("received_bytes", received(sink).ok().flatten());
    told.put("accepted_s", Some(instant(&sink.accepted, epoch)));
    told.put("finished_s", Some(instant(&sink.finished, epoch)));
    let info = sink.connection.get().and_then(|connection| net::tcp_info(connection).ok());
    told.put("received_ce", info.as_ref().and_then(TcpInfo::received_ce));
    told.put("received_ect1_bytes", info.as_ref().and_then(TcpInfo::received_e1_bytes));
    Value::Object(told.0)
}

fn udp_source(source: &udp::Source) -> Value {
    let sent = source.sent.load(Relaxed);
    json!({"sent_packets": sent, "sent_bytes": sent * source.size(), "failed": source.failed.load(Relaxed)})
}

fn udp_sink(sink: &udp::Sink) -> Value {
    let [packets, bytes, reordered, ce] =
        [&sink.packets, &sink.bytes, &sink.reordered, &sink.ce].map(|count| count.load(Relaxed));
    json!({"received_packets": packets, "received_bytes": bytes, "missing": sink.missing(), "reordered": reordered, "ce": ce})
}

/// Seconds from the epoch; null if it never happened.
fn instant(at: &AtomicI64, epoch: i64) -> Value {
    match at.load(Relaxed) {
        NEVER => Value::Null,
        at => json!(clock::seconds(at - epoch)),
    }
}

struct Told(Map<String, Value>);

impl Told {
    fn put(&mut self, key: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.0.insert(key.into(), value.into());
        }
    }
}
