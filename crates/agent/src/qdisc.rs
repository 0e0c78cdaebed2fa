//! Statistics of queues over rtnetlink: one `RTM_GETQDISC` dump per namespace and sample instead of a `tc` process. Message and attribute
//! numbers, and the layouts of each qdisc's own statistics: `include/uapi/linux/{rtnetlink,gen_stats,pkt_sched}.h`.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};

use crate::error::{Error, at};
use crate::net;
use crate::plan;

const TC_H_ROOT: u32 = u32::MAX;
const NLMSG_HEADER: usize = 16;
/// struct tcmsg: family, padding, ifindex, handle, parent, info.
const TCMSG: usize = 20;
const TCA_KIND: u16 = 1;
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const TCA_STATS_APP: u16 = 4;
const TCA_STATS_PKT64: u16 = 8;

/// Which qdisc of an interface, in tc's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// `root`
    Root,
    /// `parent 1:1`
    Parent(u32),
    /// `handle 10:`
    Handle(u32),
}

impl At {
    /// Parses tc's words; hexadecimal numbers as there.
    pub fn parse(words: &str) -> Result<At, String> {
        let id = |text: &str| {
            let (major, minor) = text.split_once(':')?;
            let hex = |digits: &str| {
                if digits.is_empty() { Some(0) } else { u16::from_str_radix(digits, 16).ok() }
            };
            Some(u32::from(hex(major)?) << 16 | u32::from(hex(minor)?))
        };
        let parsed = match words.split_whitespace().collect::<Vec<_>>()[..] {
            ["root"] => Some(At::Root),
            ["parent", text] => id(text).map(At::Parent),
            ["handle", text] => id(text).map(At::Handle),
            _ => None,
        };
        parsed.ok_or_else(|| format!("{words:?}; 'root', 'parent 1:1' or 'handle 10:' is expected"))
    }
}

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
    /// CE marks; none for a qdisc that does not tell.
    pub marks: Option<u64>,
    /// Metric and microseconds of each delay that it tells.
    pub delays: Vec<(&'static str, u32)>,
}

impl Stats {
    fn is_at(&self, ifindex: i32, at: At) -> bool {
        self.ifindex == ifindex
            && match at {
                At::Root => self.parent == TC_H_ROOT,
                At::Parent(parent) => self.parent == parent,
                At::Handle(handle) => self.handle == handle,
            }
    }
}

/// A netlink socket in one namespace and the queues wanted there.
pub struct Namespace {
    fd: OwnedFd,
    buffer: Vec<u8>,
    queues: Vec<(String, i32, At)>,
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
        let fd =
            socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute)
                .map_err(at("netlink socket"))?;
        let mut namespace = Namespace { fd, buffer: vec![0; 1 << 16], queues: Vec::new() };
        let present = namespace.dump()?;
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
            namespace.queues.push((queue.name.clone(), ifindex, which));
        }
        Ok(namespace)
    }

    /// The statistics now. A queue that is gone for the moment is left out.
    pub fn sample(&mut self) -> Result<Vec<(&str, Stats)>, Error> {
        let present = self.dump()?;
        let find = |ifindex, which| present.iter().find(|stats| stats.is_at(ifindex, which)).cloned();
        Ok(self
            .queues
            .iter()
            .filter_map(|(name, ifindex, which)| Some((name.as_str(), find(*ifindex, *which)?)))
            .collect())
    }

    fn dump(&mut self) -> Result<Vec<Stats>, Error> {
        const LEN: usize = NLMSG_HEADER + TCMSG;
        let mut request = [0u8; LEN];
        request[0..4].copy_from_slice(&(LEN as u32).to_ne_bytes());
        request[4..6].copy_from_slice(&libc::RTM_GETQDISC.to_ne_bytes());
        request[6..8].copy_from_slice(&((libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16).to_ne_bytes());
        send(self.fd.as_raw_fd(), &request, MsgFlags::empty()).map_err(at("netlink: RTM_GETQDISC"))?;
        let mut found = Vec::new();
        loop {
            let len = match recv(self.fd.as_raw_fd(), &mut self.buffer, MsgFlags::empty()) {
                Ok(len) => len,
                Err(Errno::EINTR) => continue,
                Err(error) => return Err(Error::Failed(format!("netlink: receive: {error}"))),
            };
            if read_messages(&self.buffer[..len], &mut found)? {
                return Ok(found);
            }
        }
    }
}

fn describe(stats: &Stats) -> String {
    let id = |id: u32| format!("{:x}:{:x}", id >> 16, id & 0xffff);
    let parent =
        if stats.parent == TC_H_ROOT { "root".into() } else { format!("parent {}", id(stats.parent)) };
    format!("{} handle {} {parent}", stats.kind, id(stats.handle))
}

/// Reads the netlink messages of one datagram; true when the dump is over.
fn read_messages(mut bytes: &[u8], found: &mut Vec<Stats>) -> Result<bool, Error> {
    while let (Some(len), Some(kind)) = (u32_at(bytes, 0), u16_at(bytes, 4)) {
        let len = len as usize;
        let Some(body) = bytes.get(NLMSG_HEADER..len) else {
            break;
        };
        match i32::from(kind) {
            libc::NLMSG_DONE => return Ok(true),
            libc::NLMSG_ERROR => {
                let errno = Errno::from_raw(-(u32_at(body, 0).unwrap_or(0) as i32));
                return Err(Error::Failed(format!("netlink: RTM_GETQDISC: {errno}")));
            }
            _ if kind == libc::RTM_NEWQDISC => found.extend(read_qdisc(body)),
            _ => {}
        }
        bytes = bytes.get(align(len)..).unwrap_or_default();
    }
    Ok(false)
}

fn read_qdisc(body: &[u8]) -> Option<Stats> {
    let mut stats = Stats {
        ifindex: u32_at(body, 4)? as i32,
        handle: u32_at(body, 8)?,
        parent: u32_at(body, 12)?,
        ..Stats::default()
    };
    let mut nested: &[u8] = &[];
    for (kind, value) in attributes(body.get(TCMSG..)?) {
        match kind {
            TCA_KIND => stats.kind = String::from_utf8_lossy(value).trim_end_matches('\0').into(),
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
                stats.marks = marks(&stats.kind, value);
                stats.delays = delays(&stats.kind, value);
            }
            _ => {}
        }
    }
    Some(stats)
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
        _ => None,
    }
}

/// The delays in a qdisc's own statistics, where it has them: of the packet that left last (`codel`), as its controller estimated it last
/// (`pie`), of the packets that are next in L and C (`dualpi2`).
fn delays(kind: &str, own: &[u8]) -> Vec<(&'static str, u32)> {
    let places: &[(&str, usize)] = match kind {
        "codel" => &[("sojourn", 12)],
        "pie" => &[("sojourn", 8)],
        "dualpi2" => &[("sojourn_l", 8), ("sojourn_c", 4)],
        _ => &[],
    };
    places.iter().filter_map(|&(metric, offset)| Some((metric, u32_at(own, offset)?))).collect()
}

/// Netlink attributes: length and type (u16 each), then the value, padded to 4 bytes.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    const NLA_TYPE_MASK: u16 = 0x3fff;
    std::iter::from_fn(move || {
        let len = usize::from(u16_at(bytes, 0)?);
        let kind = u16_at(bytes, 2)? & NLA_TYPE_MASK;
        let value = bytes.get(4..len)?;
        bytes = bytes.get(align(len)..).unwrap_or_default();
        Some((kind, value))
    })
}

fn align(len: usize) -> usize {
    len.max(1).next_multiple_of(4)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_ne_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(((value.len() + 4) as u16).to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn words(values: &[u32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_ne_bytes()).collect()
    }

    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = words(&[(NLMSG_HEADER + body.len()) as u32]);
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend(body);
        bytes
    }

    #[test]
    fn tc_words() {
        assert_eq!(At::parse("root"), Ok(At::Root));
        assert_eq!(At::parse("parent 1:1a"), Ok(At::Parent(0x0001_001a)));
        assert_eq!(At::parse("handle 10:"), Ok(At::Handle(0x0010_0000)));
        assert!(At::parse("handle 10").is_err());
        assert!(At::parse("class 1:1").is_err());
    }

    /// A pie under 1:1 of interface 7, as the kernel writes it: 5 packets and 6000 bytes out, 2 standing, 1 dropped, 3 marked.
    #[test]
    fn a_dump_is_read() {
        let basic = [6000u64.to_ne_bytes().to_vec(), words(&[5])].concat();
        let own = words(&[0, 0, 8, 0, 0, 8, 1, 0, 9, 3]);
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
        assert!(read_messages(&datagram, &mut found).expect("no error"));
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
            marks: Some(3),
            delays: vec![("sojourn", 8)],
        };
        assert_eq!(found, [expected]);
        assert!(found[0].is_at(7, At::Parent(0x0001_0001)) && found[0].is_at(7, At::Handle(0x000a_0000)));
        assert!(!found[0].is_at(8, At::Parent(0x0001_0001)) && !found[0].is_at(7, At::Root));
    }

    #[test]
    fn an_error_of_the_kernel_is_told() {
        let refused = message(libc::NLMSG_ERROR as u16, &words(&[-1i32 as u32]));
        let error = read_messages(&refused, &mut Vec::new()).expect_err("EPERM");
        assert_eq!(error.to_string(), "netlink: RTM_GETQDISC: EPERM: Operation not permitted");
    }

    #[test]
    fn a_cut_message_ends_the_reading() {
        let whole = message(libc::RTM_NEWQDISC, &words(&[0, 7, 0, 0, 0]));
        let mut found = Vec::new();
        assert!(!read_messages(&whole[..30], &mut found).expect("no error"));
        assert!(found.is_empty());
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
