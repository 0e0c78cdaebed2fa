//! Statistics of queues over rtnetlink: one `RTM_GETQDISC` dump per namespace and sample instead of a `tc` process. Message and attribute
//! numbers, and the layouts of each qdisc's own statistics: `include/uapi/linux/{rtnetlink,gen_stats,pkt_sched}.h`.

pub mod at;
mod cake;
pub mod command;
mod kind;
mod kinds;
mod netlink;
mod sce;

use std::collections::BTreeMap;

use bakeoff_document::qdisc::kinds::Drops;
use nix::net::if_::if_nametoindex;
use serde::Serialize;

use crate::error::{Error, at};
use crate::net;
use crate::plan;
use at::At;
use netlink::{Address, Attributes, Netlink, TCA_KIND, TCA_OPTIONS, TCMSG, attributes, u32_at, u64_at};

const TC_H_ROOT: u32 = u32::MAX;
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const TCA_STATS_APP: u16 = 4;
const TCA_STATS_PKT64: u16 = 8;

/// What the kernel counts of one qdisc. Cumulative since the qdisc was made, except `qlen` and `backlog`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// `fq_codel`
    pub kind: String,
    ifindex: i32,
    handle: u32,
    parent: u32,
    /// Bytes that left.
    pub sent_bytes: u64,
    /// Packets that left.
    pub sent_packets: u64,
    /// Packets standing.
    pub qlen: u32,
    /// Bytes standing.
    pub backlog: u32,
    /// Packets.
    pub drops: u32,
    /// Packets handed back by the driver.
    pub requeues: u32,
    /// As tc's `overlimits`: its meaning is the qdisc's.
    pub overlimits: u32,
    /// Of the drops: those that it counts as for want of room; none for a qdisc that does not.
    pub overlimit_drops: Option<u64>,
    /// Whether random loss is configured (netem).
    pub loses: bool,
    /// CE marks; none for a qdisc that does not tell.
    pub marks: Option<u64>,
    /// ECT(0) turned into ECT(1); none for a qdisc that never does.
    pub sce_marks: Option<u64>,
    /// Metric and microseconds of each delay that it tells.
    pub delays: Vec<(&'static str, u32)>,
}

/// Drops by reason, as in docs/results-folder.md.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reasons {
    /// For want of room.
    pub overlimit: u64,
    /// By the algorithm, and what a qdisc does not tell apart.
    pub aqm: u64,
    /// No qdisc of Linux counts these.
    pub overload: u64,
    /// Random loss that was asked for.
    pub loss: u64,
}

impl Stats {
    /// Its drops by reason.
    pub fn reasons(&self) -> Reasons {
        let all = u64::from(self.drops);
        match bakeoff_document::qdisc::kinds::find(&self.kind).map_or(Drops::Algorithm, |kind| kind.drops) {
            Drops::LossIfAsked if self.loses => Reasons { loss: all, ..Reasons::default() },
            Drops::Full | Drops::LossIfAsked => Reasons { overlimit: all, ..Reasons::default() },
            Drops::Algorithm => {
                let overlimit = self.overlimit_drops.unwrap_or(0).min(all);
                Reasons { overlimit, aqm: all - overlimit, ..Reasons::default() }
            }
        }
    }

    fn is_at(&self, ifindex: i32, at: At) -> bool {
        self.ifindex == ifindex
            && match at {
                At::Root => self.parent == TC_H_ROOT,
                At::Parent(parent) => self.parent == parent,
                At::Handle(handle) => self.handle == handle,
            }
    }
}

/// A queue whose statistics are wanted.
struct Wanted {
    name: String,
    ifindex: i32,
    at: At,
    /// At each tick, and not only at the end.
    sampled: bool,
}

/// A netlink socket in one namespace and the queues wanted there.
pub struct Namespace {
    socket: Netlink,
    queues: Vec<Wanted>,
}

impl Namespace {
    /// One per namespace that has queues to sample. A device or qdisc that is not there is an error that names those that are.
    pub fn open_all(queues: &[plan::Queue]) -> Result<Vec<Namespace>, Error> {
        let mut by_netns: BTreeMap<Option<&str>, Vec<&plan::Queue>> = BTreeMap::new();
        for queue in queues {
            by_netns.entry(queue.netns.as_deref()).or_default().push(queue);
        }
        by_netns
            .into_iter()
            .map(|(netns, queues)| net::in_netns(netns, || Namespace::open(&queues)))
            .collect()
    }

    fn open(wanted: &[&plan::Queue]) -> Result<Namespace, Error> {
        let mut namespace = Namespace { socket: Netlink::open()?, queues: Vec::new() };
        let present = namespace.present()?;
        for queue in wanted {
            let place = format!("queue '{}': dev {}", queue.name, queue.dev);
            let ifindex = if_nametoindex(queue.dev.as_str()).map_err(at(&place))? as i32;
            let which = At::parse(&queue.at).map_err(at(&place))?;
            if !present.iter().any(|stats| stats.is_at(ifindex, which)) {
                let there: Vec<String> =
                    present.iter().filter(|stats| stats.ifindex == ifindex).map(describe).collect();
                let there = if there.is_empty() { "none".into() } else { there.join(", ") };
                return Err(Error::Failed(format!("{place}: no qdisc at {}; there are: {there}", queue.at)));
            }
            let (name, sampled) = (queue.name.clone(), queue.sampled);
            namespace.queues.push(Wanted { name, ifindex, at: which, sampled });
        }
        Ok(namespace)
    }

    /// The statistics now of the queues that are sampled. A queue that is gone for the moment is left out.
    pub fn sample(&mut self) -> Result<Vec<(&str, Stats)>, Error> {
        if self.queues.iter().any(|queue| queue.sampled) {
            self.read(|queue| queue.sampled)
        } else {
            Ok(Vec::new())
        }
    }

    /// The same of all queues.
    pub fn sample_all(&mut self) -> Result<Vec<(&str, Stats)>, Error> {
        self.read(|_| true)
    }

    fn read(&mut self, wanted: impl Fn(&Wanted) -> bool) -> Result<Vec<(&str, Stats)>, Error> {
        let present = self.present()?;
        let find =
            |queue: &Wanted| present.iter().find(|stats| stats.is_at(queue.ifindex, queue.at)).cloned();
        let queues = self.queues.iter().filter(|queue| wanted(queue));
        Ok(queues.filter_map(|queue| Some((queue.name.as_str(), find(queue)?))).collect())
    }

    fn present(&mut self) -> Result<Vec<Stats>, Error> {
        let mut present = Vec::new();
        dump(&mut self.socket, |found| present.push(found.stats.clone()))?;
        Ok(present)
    }
}

/// A qdisc as a dump tells of it.
struct Found<'a> {
    stats: Stats,
    /// What tc calls `refcnt`.
    references: u32,
    /// `TCA_OPTIONS`
    options: &'a [u8],
    /// `TCA_STATS_APP`
    own: &'a [u8],
}

/// Gives `take` each qdisc of the socket's namespace.
fn dump(socket: &mut Netlink, mut take: impl FnMut(&Found)) -> Result<(), Error> {
    let nothing = Attributes::default();
    socket
        .ask(libc::RTM_GETQDISC, libc::NLM_F_DUMP, Address::default(), &nothing, |body| {
            if let Some(found) = read_qdisc(body) {
                take(&found);
            }
        })
        .map_err(at("RTM_GETQDISC"))
}

fn describe(stats: &Stats) -> String {
    let id = |id: u32| format!("{:x}:{:x}", id >> 16, id & 0xffff);
    let parent =
        if stats.parent == TC_H_ROOT { "root".into() } else { format!("parent {}", id(stats.parent)) };
    format!("{} handle {} {parent}", stats.kind, id(stats.handle))
}

fn read_qdisc(body: &[u8]) -> Option<Found<'_>> {
    let mut stats = Stats {
        ifindex: u32_at(body, 4)? as i32,
        handle: u32_at(body, 8)?,
        parent: u32_at(body, 12)?,
        ..Stats::default()
    };
    let mut found = Found { stats: Stats::default(), references: u32_at(body, 16)?, options: &[], own: &[] };
    let mut nested: &[u8] = &[];
    for (kind, value) in attributes(body.get(TCMSG..)?) {
        match kind {
            TCA_KIND => stats.kind = String::from_utf8_lossy(value).trim_end_matches('\0').into(),
            TCA_OPTIONS => found.options = value,
            TCA_STATS2 => nested = value,
            _ => {}
        }
    }
    for (kind, value) in attributes(nested) {
        match kind {
            TCA_STATS_BASIC => {
                stats.sent_bytes = u64_at(value, 0)?;
                stats.sent_packets = u64::from(u32_at(value, 8)?);
            }
            // Only sent when the 32 bits of TCA_STATS_BASIC are not enough.
            TCA_STATS_PKT64 => stats.sent_packets = u64_at(value, 0)?,
            TCA_STATS_QUEUE => {
                stats.qlen = u32_at(value, 0)?;
                stats.backlog = u32_at(value, 4)?;
                stats.drops = u32_at(value, 8)?;
                stats.requeues = u32_at(value, 12)?;
                stats.overlimits = u32_at(value, 16)?;
            }
            TCA_STATS_APP => {
                found.own = value;
                stats.overlimit_drops = overlimit_drops(&stats.kind, value);
                stats.marks = marks(&stats.kind, value);
                stats.sce_marks = kinds::find(&stats.kind).and_then(|kind| (kind.sce_marks)(value));
                stats.delays = delays(&stats.kind, value);
            }
            _ => {}
        }
    }
    stats.loses = stats.kind == "netem" && loses(found.options);
    found.stats = stats;
    Some(found)
}

/// Whether netem's `TCA_OPTIONS` (`struct tc_netem_qopt`, then attributes) have a probability or a model of loss.
fn loses(options: &[u8]) -> bool {
    const QOPT: usize = 24;
    const TCA_NETEM_LOSS: u16 = 5;
    let more = options.get(QOPT..).unwrap_or_default();
    u32_at(options, 8).is_some_and(|probability| probability > 0)
        || attributes(more).any(|(kind, _)| kind == TCA_NETEM_LOSS)
}

/// Drops for want of room in a qdisc's own statistics, where it has them.
fn overlimit_drops(kind: &str, own: &[u8]) -> Option<u64> {
    let at = |offset| u32_at(own, offset).map(u64::from);
    match kind {
        "codel" => at(20),
        // behind a word that tells qdisc (0) from class
        "fq_codel" if u32_at(own, 0)? == 0 => at(8),
        "fq_pie" => at(8),
        "hhf" => at(0),
        "pie" => at(28),
        _ => kinds::find(kind).and_then(|kind| (kind.overlimit_drops)(own)),
    }
}

/// CE marks in a qdisc's own statistics, where it has them.
fn marks(kind: &str, own: &[u8]) -> Option<u64> {
    let at = |offset| u32_at(own, offset).map(u64::from);
    match kind {
        // ecn_mark, and ce_mark for those above ce_threshold
        "codel" => Some(at(24)? + at(32).unwrap_or(0)),
        // the same behind a word that tells qdisc (0) from class
        "fq_codel" if u32_at(own, 0)? == 0 => Some(at(12)? + at(28).unwrap_or(0)),
        "fq" => u64_at(own, 80),
        "pie" => at(36),
        "fq_pie" => at(16),
        "red" | "choke" => at(12),
        // ecn_mark counts the step's marks too
        "dualpi2" => at(24),
        "cake" => {
            const TIN_STATS: u16 = 10;
            const ECN_MARKED_PACKETS: u16 = 8;
            let (_, tins) = attributes(own).find(|&(kind, _)| kind == TIN_STATS)?;
            let of_tin = |tin| {
                attributes(tin)
                    .find(|&(kind, _)| kind == ECN_MARKED_PACKETS)
                    .and_then(|(_, value)| u32_at(value, 0))
            };
            Some(attributes(tins).filter_map(|(_, tin)| of_tin(tin)).map(u64::from).sum())
        }
        _ => kinds::find(kind).and_then(|kind| (kind.marks)(own)),
    }
}

/// The delays in a qdisc's own statistics, where it has them: of the packet that left last (`codel`), as its controller estimated it last
/// (`pie`), of the packets that are next in L and C (`dualpi2`).
fn delays(kind: &str, own: &[u8]) -> Vec<(&'static str, u32)> {
    let places: &[(&str, usize)] = match kind {
        "codel" => &[("sojourn", 12)],
        "pie" => &[("sojourn", 8)],
        "dualpi2" => &[("sojourn_l", 8), ("sojourn_c", 4)],
        _ => return kinds::find(kind).map_or_else(Vec::new, |kind| (kind.delays)(own)),
    };
    places.iter().filter_map(|&(metric, offset)| Some((metric, u32_at(own, offset)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::netlink::{HEADER, read_messages};
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut one = Attributes::default();
        one.put(kind, value);
        one.bytes().into()
    }

    pub fn words(values: &[u32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_ne_bytes()).collect()
    }

    pub fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = words(&[(HEADER + body.len()) as u32]);
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend(body);
        bytes
    }

    /// A pie under 1:1 of interface 7, as the kernel writes it: 5 packets and 6000 bytes out, 2 standing, 1 dropped, 3 marked.
    #[test]
    fn a_dump_is_read() {
        let basic = [6000u64.to_ne_bytes().to_vec(), words(&[5])].concat();
        let own = words(&[0, 0, 8, 0, 0, 8, 1, 1, 9, 3]);
        let stats2 = [
            attribute(TCA_STATS_BASIC, &basic),
            attribute(TCA_STATS_QUEUE, &words(&[2, 3000, 1, 0, 4])),
            attribute(TCA_STATS_APP, &own),
        ]
        .concat();
        let body = [
            words(&[0, 7, 0x000a_0000, 0x0001_0001, 1]),
            attribute(TCA_KIND, b"pie\0"),
            attribute(TCA_STATS2, &stats2),
        ]
        .concat();
        let datagram =
            [message(libc::RTM_NEWQDISC, &body), message(libc::NLMSG_DONE as u16, &words(&[0]))].concat();
        let mut found = Vec::new();
        let mut take = |body: &[u8]| found.extend(read_qdisc(body).map(|found| found.stats));
        assert!(read_messages(&datagram, &mut take).expect("no error"));
        let expected = Stats {
            kind: "pie".into(),
            ifindex: 7,
            handle: 0x000a_0000,
            parent: 0x0001_0001,
            sent_bytes: 6000,
            sent_packets: 5,
            qlen: 2,
            backlog: 3000,
            drops: 1,
            requeues: 0,
            overlimits: 4,
            overlimit_drops: Some(1),
            loses: false,
            marks: Some(3),
            sce_marks: None,
            delays: vec![("sojourn", 8)],
        };
        assert_eq!(found, [expected]);
        assert!(found[0].is_at(7, At::Parent(0x0001_0001)) && found[0].is_at(7, At::Handle(0x000a_0000)));
        assert!(!found[0].is_at(8, At::Parent(0x0001_0001)) && !found[0].is_at(7, At::Root));
    }

    #[test]
    fn drops_by_reason() {
        let counted: Vec<u8> = words(&(0..24).collect::<Vec<u32>>());
        // Word i holds i.
        assert_eq!(overlimit_drops("codel", &counted), Some(5));
        assert_eq!(overlimit_drops("fq_codel", &counted), Some(2));
        assert_eq!(overlimit_drops("pie", &counted), Some(7));
        assert_eq!(overlimit_drops("fq_pie", &counted), Some(2));
        assert_eq!(overlimit_drops("red", &counted), None);
        let of = |kind: &str, overlimit_drops, loses| {
            let reasons =
                Stats { kind: kind.into(), drops: 7, overlimit_drops, loses, ..Stats::default() }.reasons();
            (reasons.overlimit, reasons.aqm, reasons.loss)
        };
        assert_eq!(of("fq_codel", Some(3), false), (3, 4, 0));
        assert_eq!(of("fq_codel", Some(9), false), (7, 0, 0), "never more than all");
        assert_eq!(of("red", None, false), (0, 7, 0));
        assert_eq!(of("htb", None, false), (7, 0, 0));
        assert_eq!((of("netem", None, false), of("netem", None, true)), ((7, 0, 0), (0, 0, 7)));
    }

    #[test]
    fn loss_is_read_from_netems_options() {
        // latency, limit, loss, gap, duplicate, jitter
        assert!(!loses(&words(&[1, 1000, 0, 0, 0, 0])));
        assert!(loses(&words(&[1, 1000, 42, 0, 0, 0])));
        let model = [words(&[1, 1000, 0, 0, 0, 0]), attribute(5, &attribute(1, &words(&[1])))].concat();
        assert!(loses(&model));
    }

    #[test]
    fn delays_by_kind() {
        let counted: Vec<u8> = words(&(0..24).collect::<Vec<u32>>());
        assert_eq!(delays("codel", &counted), [("sojourn", 3)]);
        assert_eq!(delays("pie", &counted), [("sojourn", 2)]);
        assert_eq!(delays("dualpi2", &counted), [("sojourn_l", 2), ("sojourn_c", 1)]);
        assert_eq!(delays("dualpi2", &counted[..8]), [("sojourn_c", 1)], "cut short");
        assert_eq!(delays("fq_codel", &counted), []);
    }

    #[test]
    fn marks_by_kind() {
        let counted: Vec<u8> = words(&(0..24).collect::<Vec<u32>>());
        // Word i holds i, so a sum names the words it came from.
        assert_eq!(marks("codel", &counted), Some(6 + 8));
        assert_eq!(marks("fq_codel", &counted), Some(3 + 7));
        assert_eq!(marks("fq_codel", &words(&[1; 10])), None, "of a class");
        assert_eq!(marks("pie", &counted), Some(9));
        assert_eq!(marks("fq_pie", &counted), Some(4));
        assert_eq!(marks("red", &counted), Some(3));
        assert_eq!(marks("dualpi2", &counted), Some(6));
        assert_eq!(marks("htb", &counted), None);
        let tin = |marked: u32| [attribute(2, &words(&[100])), attribute(8, &words(&[marked]))].concat();
        let cake = [
            attribute(3, &words(&[1])),
            attribute(10, &[attribute(1, &tin(4)), attribute(2, &tin(5))].concat()),
        ]
        .concat();
        assert_eq!(marks("cake", &cake), Some(9), "over all tins");
    }
}
