//! Links that are more than a rate and a delay: capacity traces, aggregation, grants, shared and
//! parallel transmitters, policers; `docs/links.md` says how each is asked for.
//!
//! Such a link never takes a packet by itself: it is offered the queue before it, and takes
//! from it what may leave, when it may leave. Plain links know nothing of all this.

mod docsis;
mod jitter;
mod multipath;
mod plain;
mod policer;
mod trace;
mod wifi;

use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;

use crate::base::count::Count;
use crate::base::units::{Rate, Time};
use crate::packet::Packet;
use crate::qdisc::Queue;
use bakeoff_document::bounds::time;
use bakeoff_document::run::{Link, Run};

use docsis::Docsis;
pub(crate) use jitter::Jitter;
use multipath::Multipath;
use plain::Plain;
use policer::Policer;
use trace::CapacityTrace;
use wifi::Wifi;

/// What a link is offered: the queue before it, and places for what it takes.
pub struct Turn<'a> {
    /// Now.
    pub now: Time,
    /// The link's rate.
    pub rate: Option<Rate>,
    /// The queue before it.
    pub queue: &'a mut Queue,
    /// When each packet that leaves is sent whole; never decreasing.
    pub sent: &'a mut Vec<(Time, Packet)>,
    /// What the link itself lost.
    pub lost: &'a mut Count,
}

impl Turn<'_> {
    /// The next packet of the queue, if it has one that may leave.
    pub fn take(&mut self) -> Option<Packet> {
        if self.queue.is_open(self.now) { self.queue.dequeue(self.now) } else { None }
    }

    /// Whether something stands in the queue.
    pub fn waits(&self) -> bool {
        self.queue.qlen() > 0
    }

    /// When the queue, which just gave nothing, may give something.
    pub fn later(&self) -> Option<Time> {
        if self.waits() { self.queue.next_event() } else { None }
    }

    /// How long `bytes` take.
    pub fn airtime(&self, bytes: u32) -> Time {
        self.rate.map_or(Time::ZERO, |rate| rate.time_for(bytes))
    }
}

/// How one direction of a link takes packets from the queue before it.
pub trait Access: Send {
    /// Takes what may leave now; gives when to be asked again, if not before the next packet comes.
    fn serve(&mut self, turn: &mut Turn) -> Option<Time>;

    /// The other direction has the medium until then.
    fn defer(&mut self, _until: Time) {}

    /// What it took, and has not sent whole.
    fn held(&self) -> Count {
        Count::default()
    }
}

/// One transmitter for both directions: the same at both ends.
#[derive(Clone, Copy)]
pub(crate) struct Shared {
    pub(crate) turnaround: Time,
    pub(crate) free: Time,
    /// Whether this end was the last to send.
    pub(crate) last: bool,
}

/// What one direction of a link is made of.
pub struct Medium {
    pub(crate) access: Box<dyn Access>,
    pub(crate) policer: Option<Policer>,
    pub(crate) jitter: Option<Jitter>,
    pub(crate) shared: Option<Shared>,
    /// When an event for it is pending.
    pub(crate) armed: Time,
    /// Room for what it sends, kept.
    pub(crate) sent: Vec<(Time, Packet)>,
}

impl Medium {
    /// What it took, and has not sent whole.
    pub fn held(&self) -> Count {
        self.access.held()
    }
}

/// The features that a link may have.
const KNOWN: [&str; 7] = ["docsis", "half_duplex", "jitter", "multipath", "police", "trace", "wifi"];

/// The media of both directions of link `l`; none is a plain wire.
///
/// # Errors
/// The first feature that is unknown, malformed or does not go with the others, with its place.
pub fn build(run: &Run, l: usize) -> Result<[Option<Box<Medium>>; 2], String> {
    let link = &run.links[l];
    let place = format!("links[{l}].features");
    if let Some(name) = link.features.keys().find(|name| !KNOWN.contains(&name.as_str())) {
        return Err(format!(
            "{place}.{name}: '{name}' is not modelled by the simulator; it has {}",
            KNOWN.join(", ")
        ));
    }
    let has = |name: &str| link.features.contains_key(name);
    let kinds: Vec<_> = ["docsis", "multipath", "trace", "wifi"].into_iter().filter(|k| has(k)).collect();
    if kinds.len() > 1 {
        return Err(format!("{place}: {} are mutually exclusive", kinds.join(" and ")));
    }
    if has("half_duplex") && kinds.first().is_some_and(|kind| *kind != "wifi") {
        return Err(format!("{place}: half_duplex and {} are mutually exclusive", kinds[0]));
    }
    for kind in ["multipath", "trace"] {
        if has(kind) && link.rate_bps.is_some() {
            return Err(format!("links[{l}].rate_bps: '{kind}' sets the rate; expected none"));
        }
    }
    for kind in ["docsis", "half_duplex", "wifi"] {
        if has(kind) && link.rate_bps.is_none() {
            return Err(format!("links[{l}].rate_bps: '{kind}' needs a rate; there is none"));
        }
    }
    let traces: BTreeMap<String, trace::Spec> = by_sender(link, "trace", &place)?;
    let policers: BTreeMap<String, policer::Spec> = by_sender(link, "police", &place)?;
    let docsis: Option<docsis::Spec> = read(link, "docsis", &place)?;
    let wifi: Option<wifi::Spec> = read(link, "wifi", &place)?;
    let multipath: Option<multipath::Spec> = read(link, "multipath", &place)?;
    let half: Option<HalfDuplex> = read(link, "half_duplex", &place)?;
    let jitter: Option<jitter::Spec> = read(link, "jitter", &place)?;
    if let Some(spec) = &docsis
        && !link.ends.contains(&spec.modem)
    {
        return Err(format!("{place}.docsis.modem: '{}' is not an end of the link", spec.modem));
    }
    if let Some(half) = &half {
        time(&format!("{place}.half_duplex.turnaround_s"), half.turnaround_s, &(0.0..=10.0))?;
    }
    let mut media = [None, None];
    for (e, medium) in media.iter_mut().enumerate() {
        let sender = &link.ends[e];
        let name = format!("medium/{sender}>{}", link.ends[1 - e]);
        let mut access: Option<Box<dyn Access>> = None;
        if let Some(spec) = traces.get(sender) {
            access =
                Some(Box::new(CapacityTrace::new(spec).map_err(|e| format!("{place}.trace.{sender}: {e}"))?));
        }
        if let Some(spec) = &wifi {
            access =
                Some(Box::new(Wifi::new(spec, run.seed, &name).map_err(|e| format!("{place}.wifi{e}"))?));
        }
        if let Some(spec) = docsis.as_ref().filter(|spec| spec.modem == *sender) {
            access = Some(Box::new(Docsis::new(spec).map_err(|e| format!("{place}.docsis{e}"))?));
        }
        if let Some(spec) = &multipath {
            let paths = Multipath::new(spec, run.seed, &name).map_err(|e| format!("{place}.multipath{e}"))?;
            access = Some(Box::new(paths));
        }
        let policer = policers.get(sender).map(Policer::new).transpose();
        let policer = policer.map_err(|e| format!("{place}.police.{sender}{e}"))?;
        let shared = half.as_ref().map(|half| Shared {
            turnaround: Time::from_secs_f64(half.turnaround_s),
            free: Time::ZERO,
            last: false,
        });
        let name = format!("jitter/{sender}>{}", link.ends[1 - e]);
        let jitter = jitter.as_ref().map(|spec| Jitter::new(spec, run.seed, &name)).transpose();
        let jitter = jitter.map_err(|e| format!("{place}.jitter{e}"))?;
        if access.is_some() || policer.is_some() || shared.is_some() || jitter.is_some() {
            let access = access.unwrap_or_else(|| Box::new(Plain::default()));
            *medium = Some(Box::new(Medium {
                access,
                policer,
                jitter,
                shared,
                armed: Time::NEVER,
                sent: Vec::new(),
            }));
        }
    }
    Ok(media)
}

/// Both directions share one transmitter.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct HalfDuplex {
    /// How long the medium rests after each transmission.
    turnaround_s: f64,
}

fn read<T: DeserializeOwned>(link: &Link, name: &str, place: &str) -> Result<Option<T>, String> {
    let parse = |value: &Value| T::deserialize(value).map_err(|e| format!("{place}.{name}: {e}"));
    link.features.get(name).map(parse).transpose()
}

fn by_sender<T: DeserializeOwned>(
    link: &Link,
    name: &str,
    place: &str,
) -> Result<BTreeMap<String, T>, String> {
    let found: BTreeMap<String, T> = read(link, name, place)?.unwrap_or_default();
    match found.keys().find(|sender| !link.ends.contains(sender)) {
        Some(sender) => Err(format!("{place}.{name}: '{sender}' is not an end of the link")),
        None => Ok(found),
    }
}

/// Queues and packets for the tests of the media.
#[cfg(test)]
mod testing {
    use super::{Access, Turn};
    use crate::base::count::Count;
    use crate::base::units::{Rate, Time};
    use crate::packet::Packet;
    use crate::qdisc::{Env, Queue};
    use bakeoff_document::run::Qdisc;

    /// A pfifo that holds everything.
    pub fn fifo() -> Queue {
        let env = Env { name: "test".into(), flows: 8, ..Env::default() };
        Queue::build(&Qdisc::leaf("pfifo limit 100000"), &env).expect("a pfifo")
    }

    /// Packets (arrival, frame bytes, flow) through `access`: (when sent whole, sequence number, flow).
    pub fn pass(
        access: &mut dyn Access,
        rate: Option<u64>,
        offered: &[(Time, u32, u16)],
    ) -> (Vec<(Time, u64, u16)>, Count) {
        let mut queue = fifo();
        let mut lost = Count::default();
        let mut done = Vec::new();
        let mut wake = None;
        let mut next = 0;
        loop {
            let arrival = offered.get(next).map(|o| o.0);
            let Some(now) = [arrival, wake].into_iter().flatten().min() else { return (done, lost) };
            while let Some((at, len, flow)) = offered.get(next).copied()
                && at <= now
            {
                let hash = u32::from(flow).wrapping_mul(0x9e37_79b9);
                queue.enqueue(Packet { seq: next as u64, len, flow, hash, ..Packet::default() }, now);
                next += 1;
            }
            let mut sent = Vec::new();
            let rate = rate.map(Rate);
            wake = access.serve(&mut Turn { now, rate, queue: &mut queue, sent: &mut sent, lost: &mut lost });
            assert!(wake.is_none_or(|at| at > now), "asks to be asked at once");
            done.extend(sent.into_iter().map(|(at, p)| (at, p.seq, p.flow)));
        }
    }
}
