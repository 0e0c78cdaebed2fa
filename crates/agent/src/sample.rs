//! One tick of the sampling clock: asks every socket and queue, and writes the rows. Metrics and units: docs/results-folder.md.

use std::io::Write;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

use crate::clock::{SECOND, ns, seconds};
use crate::error::{Error, at};
use crate::net;
use crate::output::{Kind, Output};
use crate::qdisc::Stats;
use crate::roles::Roles;
use crate::tcp::{self, NEVER};
use crate::tcp_info::TcpInfo;

/// What must be remembered from tick to tick.
pub struct Sampler {
    kernel_major: u32,
    /// Time of the tick before, ns from the epoch.
    before: Option<i64>,
    tcp_sinks: Vec<Received>,
    short_sinks: Vec<Received>,
    udp_sinks: Vec<Received>,
    /// What each TCP source negotiated, as last seen while it was open.
    pub ecn: Vec<Option<&'static str>>,
    /// The statistics of each queue at the end, by name.
    pub queues: Vec<(String, Stats)>,
}

/// One sink's progress.
#[derive(Clone, Copy, Default)]
struct Received {
    bytes: u64,
    /// Its last row has been written.
    over: bool,
}

impl Sampler {
    /// For these roles on a Linux of this major version.
    pub fn new(roles: &Roles, kernel_major: u32) -> Sampler {
        Sampler {
            kernel_major,
            before: None,
            tcp_sinks: vec![Received::default(); roles.tcp_sinks.len()],
            short_sinks: vec![Received::default(); roles.short_sinks.len()],
            udp_sinks: vec![Received::default(); roles.udp_sinks.len()],
            ecn: vec![None; roles.tcp_sources.len()],
            queues: Vec::new(),
        }
    }

    /// Samples everything at `time`, ns from the epoch.
    pub fn tick<W: Write>(
        &mut self,
        roles: &mut Roles,
        time: i64,
        output: &mut Output<W>,
    ) -> Result<(), Error> {
        let mean_over =
            self.before.replace(time).map(|before| time - before).filter(|&interval| interval > 0);
        for (source, ecn) in roles.tcp_sources.iter().zip(&mut self.ecn) {
            if source.connected.load(Relaxed) == NEVER {
                continue;
            }
            let name = &source.plan.name;
            let info = net::tcp_info(&source.socket).map_err(at(format!("tcp-source '{name}': TCP_INFO")))?;
            if info.is_open() {
                *ecn = info.ecn(self.kernel_major).or(*ecn);
                for (metric, value) in sender_metrics(&info) {
                    if let Some(value) = value {
                        output.row(time, Kind::Flow, name, metric, value)?;
                    }
                }
            }
        }
        for (sink, seen) in roles.tcp_sinks.iter().zip(&mut self.tcp_sinks) {
            // In this order: what was drained is complete once `finished` is set.
            let over = sink.finished.load(Relaxed) != NEVER;
            if let Some(bytes) = received(sink)?
                && !seen.over
            {
                receiver_rows(&sink.plan.name, time, mean_over, bytes, seen, output)?;
                seen.over = over;
            }
        }
        for (sink, seen) in roles.short_sinks.iter().zip(&mut self.short_sinks) {
            if let Some(bytes) = sink.received() {
                receiver_rows(&sink.plan.name, time, mean_over, bytes, seen, output)?;
            }
        }
        for (sink, seen) in roles.udp_sinks.iter().zip(&mut self.udp_sinks) {
            let bytes = sink.bytes.load(Relaxed);
            if bytes > 0 {
                receiver_rows(&sink.plan.name, time, mean_over, bytes, seen, output)?;
            }
            for arrival in sink.take_arrivals() {
                let metric = if arrival.one_clock { "delay" } else { "transit" };
                output.row(arrival.sent, Kind::Flow, &sink.plan.name, metric, seconds(arrival.took))?;
            }
        }
        for namespace in &mut roles.queues {
            for (name, stats) in namespace.sample()? {
                queue_rows(name, time, &stats, output)?;
            }
        }
        Ok(())
    }

    /// Reads the statistics of every queue: the counters of the whole run.
    pub fn read_queues(&mut self, roles: &mut Roles) -> Result<(), Error> {
        self.queues.clear();
        for namespace in &mut roles.queues {
            let found = namespace.sample_all()?;
            self.queues.extend(found.into_iter().map(|(name, stats)| (name.to_owned(), stats)));
        }
        Ok(())
    }
}

/// What happened to the applications of short flows and videos, and which datagrams never came; at the end of a run of `duration`,
/// `now` ns from the epoch.
pub fn happenings<W: Write>(
    roles: &Roles,
    now: i64,
    duration: i64,
    output: &mut Output<W>,
) -> Result<(), Error> {
    for sink in &roles.udp_sinks {
        for due in sink.never_came(now.min(duration)) {
            output.row(due, Kind::Flow, &sink.plan.name, "missing", 1.0)?;
        }
    }
    for source in &roles.short_sources {
        for object in source.objects() {
            let mut row =
                |metric, value| output.row(object.due, Kind::Flow, &source.plan.name, metric, value);
            row("size", object.bytes as f64)?;
            if let Some(took) = object.took {
                row("fct", seconds(took))?;
            }
        }
    }
    for source in &roles.tcp_sources {
        let Some(player) = &source.player else { continue };
        let mut player = player.lock().unwrap_or_else(PoisonError::into_inner);
        let mut row =
            |time: u64, metric, value| output.row(time as i64, Kind::Flow, &source.plan.name, metric, value);
        if let Some(startup) = player.startup() {
            row(ns(source.plan.start_s).max(0) as u64, "startup", seconds(startup as i64))?;
        }
        for segment in player.segments() {
            row(segment.asked, "segment_rate", segment.rate_bps as f64)?;
            row(segment.arrived, "buffer", seconds(segment.level as i64))?;
        }
        for (at, lasted) in player.stalls(now.max(0) as u64) {
            row(at, "stall", seconds(lasted as i64))?;
        }
    }
    Ok(())
}

/// Payload bytes that a TCP sink has received in order; none before there is a connection.
pub fn received(sink: &tcp::Sink) -> Result<Option<u64>, Error> {
    let Some(connection) = sink.connection.get() else {
        return Ok(None);
    };
    if sink.finished.load(Relaxed) != NEVER {
        return Ok(Some(sink.drained.load(Relaxed)));
    }
    let info = net::tcp_info(connection).map_err(at(format!("tcp-sink '{}': TCP_INFO", sink.plan.name)))?;
    Ok(info.received_payload())
}

fn sender_metrics(info: &TcpInfo) -> [(&'static str, Option<f64>); 13] {
    [
        ("delivery_rate", info.delivery_rate_bps()),
        ("srtt", info.srtt_s()),
        ("min_rtt", info.min_rtt_s()),
        ("cwnd", info.snd_cwnd().map(f64::from)),
        ("ssthresh", info.ssthresh().map(f64::from)),
        ("pacing_rate", info.pacing_rate_bps()),
        ("in_flight", info.in_flight().map(|packets| packets as f64)),
        ("delivered", info.delivered().map(f64::from)),
        ("delivered_ce", info.delivered_ce().map(f64::from)),
        ("retrans", info.total_retrans().map(f64::from)),
        ("lost_out", info.lost().map(f64::from)),
        ("bytes_acked", info.bytes_acked().map(|bytes| bytes as f64)),
        ("ca_state", info.ca_state().map(f64::from)),
    ]
}

fn receiver_rows<W: Write>(
    name: &str,
    time: i64,
    mean_over: Option<i64>,
    bytes: u64,
    seen: &mut Received,
    output: &mut Output<W>,
) -> Result<(), Error> {
    output.row(time, Kind::Flow, name, "received", bytes as f64)?;
    if let Some(interval) = mean_over {
        let bits = bytes.saturating_sub(seen.bytes) as f64 * 8.0;
        output.row(time, Kind::Flow, name, "goodput", bits * SECOND as f64 / interval as f64)?;
    }
    seen.bytes = bytes;
    Ok(())
}

fn queue_rows<W: Write>(name: &str, time: i64, stats: &Stats, output: &mut Output<W>) -> Result<(), Error> {
    let rows = [
        ("qlen", Some(f64::from(stats.qlen))),
        ("backlog", Some(f64::from(stats.backlog))),
        ("marks", stats.marks.map(|marks| marks as f64)),
        ("sce_marks", stats.sce_marks.map(|marks| marks as f64)),
        ("drops", Some(f64::from(stats.drops))),
        ("sent", Some(stats.sent_bytes as f64)),
    ];
    for (metric, value) in rows {
        if let Some(value) = value {
            output.row(time, Kind::Queue, name, metric, value)?;
        }
    }
    for &(metric, us) in &stats.delays {
        output.row(time, Kind::Queue, name, metric, f64::from(us) / 1e6)?;
    }
    Ok(())
}
