//! `bakeoff-agent qdisc`: tc's commands for the kinds of qdisc that tc knows nothing of ([`super::kinds`]), in the network namespace of the
//! caller.

use bakeoff_document::tc::{Words, show};
use nix::net::if_::{if_indextoname, if_nametoindex};

use super::at::At;
use super::kind::Kind;
use super::kinds::{self, KINDS};
use super::netlink::{Address, Attributes, Netlink, TCA_KIND, TCA_OPTIONS};
use super::{Found, TC_H_ROOT};
use crate::error::{Error, at};

pub const USAGE: &str = "bakeoff-agent qdisc add|replace|change dev DEV root|parent H:C [handle H:] KIND WORDS…, \
                         bakeoff-agent qdisc show [-s] [dev DEV]";

/// Does what the words behind `qdisc` say.
pub fn run(words: &[&str]) -> Result<(), Error> {
    match words {
        ["show", rest @ ..] => {
            let (statistics, rest) = match rest {
                ["-s", rest @ ..] => (true, rest),
                _ => (false, rest),
            };
            let device = match rest {
                [] => None,
                ["dev", name] => Some(*name),
                _ => return Err(not_understood(words)),
            };
            print!("{}", shown(device, statistics)?);
            Ok(())
        }
        [verb @ ("add" | "replace" | "change"), rest @ ..] => Order::parse(verb, rest)?.send(),
        _ => Err(not_understood(words)),
    }
}

fn not_understood(words: &[&str]) -> Error {
    Error::Refused(format!("qdisc: '{}' is not understood; expected {USAGE}", words.join(" ")))
}

/// A qdisc that shall be made or changed.
#[derive(Debug, PartialEq, Eq)]
struct Order {
    flags: i32,
    device: String,
    parent: u32,
    handle: u32,
    kind: &'static str,
    options: Attributes,
}

impl Order {
    fn parse(verb: &str, words: &[&str]) -> Result<Order, Error> {
        let refused = |why: String| Error::Refused(format!("qdisc {verb}: {why}"));
        let id = |key, text| match At::parse(&format!("{key} {text}")) {
            Ok(At::Parent(id) | At::Handle(id)) => Ok(id),
            Ok(At::Root) | Err(_) => {
                Err(refused(format!("{key}: '{text}'; expected two hexadecimal numbers, as in 1:2")))
            }
        };
        let (mut device, mut parent, mut handle) = (None, None, 0);
        let mut rest = words;
        loop {
            rest = match *rest {
                ["dev", name, ref rest @ ..] => {
                    device = Some(name.to_owned());
                    rest
                }
                ["root", ref rest @ ..] => {
                    parent = Some(TC_H_ROOT);
                    rest
                }
                ["parent", text, ref rest @ ..] => {
                    parent = Some(id("parent", text)?);
                    rest
                }
                ["handle", text, ref rest @ ..] => {
                    handle = id("handle", text)?;
                    rest
                }
                _ => break,
            };
        }
        let (Some(device), Some(parent)) = (device, parent) else {
            return Err(refused(format!("expected dev and root or parent; {USAGE}")));
        };
        let line = rest.join(" ");
        let mut words = Words::new(&line);
        let told = |error: bakeoff_document::tc::TcError| refused(error.to_string());
        let name = words.kind().map_err(told)?;
        let known: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        let kind = kinds::find(name).ok_or_else(|| told(words.unknown_kind(name, &known)))?;
        Ok(Order {
            flags: match verb {
                "add" => libc::NLM_F_CREATE | libc::NLM_F_EXCL,
                "replace" => libc::NLM_F_CREATE | libc::NLM_F_REPLACE,
                _ => 0,
            },
            device,
            parent,
            handle,
            kind: kind.name,
            options: (kind.options)(&mut words).map_err(told)?,
        })
    }

    fn send(&self) -> Result<(), Error> {
        let place = format!("qdisc: dev {}", self.device);
        let ifindex = if_nametoindex(self.device.as_str()).map_err(at(&place))? as i32;
        let address = Address { ifindex, handle: self.handle, parent: self.parent };
        let mut attributes = Attributes::default();
        attributes.put(TCA_KIND, format!("{}\0", self.kind).as_bytes());
        attributes.put(TCA_OPTIONS, self.options.bytes());
        Netlink::open()?
            .ask(libc::RTM_NEWQDISC, libc::NLM_F_ACK | self.flags, address, &attributes, |_| ())
            .map_err(at(format!("{place}: {}", self.kind)))
    }
}

/// The qdiscs of these kinds at a device, or at all of them.
fn shown(device: Option<&str>, statistics: bool) -> Result<String, Error> {
    let wanted = match device {
        Some(name) => Some(if_nametoindex(name).map_err(at(format!("qdisc: dev {name}")))? as i32),
        None => None,
    };
    let mut text = String::new();
    super::dump(&mut Netlink::open()?, |found| {
        let Some(kind) = kinds::find(&found.stats.kind) else { return };
        if wanted.is_none_or(|ifindex| ifindex == found.stats.ifindex) {
            text += &show_one(kind, found, device.is_none(), statistics);
        }
    })?;
    Ok(text)
}

/// As `tc -d qdisc show` or `tc -s -d qdisc show` prints it.
fn show_one(kind: &Kind, found: &Found, names_device: bool, statistics: bool) -> String {
    let stats = &found.stats;
    let id = |id: u32| match (id >> 16, id & 0xffff) {
        (major, 0) => format!("{major:x}:"),
        (major, minor) => format!("{major:x}:{minor:x}"),
    };
    let device = if names_device {
        let name = if_indextoname(stats.ifindex as u32);
        let name =
            name.map_or_else(|_| stats.ifindex.to_string(), |name| name.to_string_lossy().into_owned());
        format!("dev {name} ")
    } else {
        String::new()
    };
    let parent = match stats.parent {
        TC_H_ROOT => "root".into(),
        parent => format!("parent {}", id(parent)),
    };
    let references = match found.references {
        1 => String::new(),
        n => format!(" refcnt {n}"),
    };
    let whole = (kind.show)(kind.name, found.options);
    let words = whole.strip_prefix(kind.name).unwrap_or(&whole);
    let handle = id(stats.handle);
    let head = format!("qdisc {} {handle} {device}{parent}{references}{words}\n", kind.name);
    if !statistics {
        return head;
    }
    format!(
        "{head} Sent {} bytes {} pkt (dropped {}, overlimits {} requeues {})\n backlog {} {}p requeues {}\n{}\n",
        stats.sent_bytes,
        stats.sent_packets,
        stats.drops,
        stats.overlimits,
        stats.requeues,
        show::size(u64::from(stats.backlog)),
        stats.qlen,
        stats.requeues,
        (kind.show_stats)(found.own),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qdisc::Stats;

    fn parsed(line: &str) -> Result<Order, String> {
        let words: Vec<&str> = line.split(' ').collect();
        Order::parse(words[0], &words[1..]).map_err(|error| error.to_string())
    }

    #[test]
    fn a_command_of_tc_is_read() {
        let order =
            parsed("replace dev mid.srv parent 1:a handle 20: cnq_codel_af unlimited").expect("a command");
        let mut options = Attributes::default();
        options.put_u64(2, 0);
        let expected = Order {
            flags: libc::NLM_F_CREATE | libc::NLM_F_REPLACE,
            device: "mid.srv".into(),
            parent: 0x0001_000a,
            handle: 0x0020_0000,
            kind: "cnq_codel_af",
            options,
        };
        assert_eq!(order, expected);
        let root = parsed("change root dev a cnq_codel_af").expect("in another order, without handle");
        assert_eq!((root.flags, root.parent, root.handle), (0, TC_H_ROOT, 0));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, message) in [
            ("add dev a root handle x: cnq_codel_af", "qdisc add: handle: 'x:'; expected two hexadecimal"),
            ("add root cnq_codel_af", "qdisc add: expected dev and root or parent"),
            ("add dev a root fq_codel", "qdisc add: unknown qdisc 'fq_codel' in 'fq_codel'"),
            ("add dev a root", "qdisc add: no qdisc name"),
            ("change dev a root cnq_codel_af rtt 0", "qdisc change: rtt: '0' is not above zero"),
        ] {
            let error = parsed(line).expect_err(line);
            assert!(error.starts_with(message), "{error}");
        }
    }

    #[test]
    fn a_qdisc_is_shown_as_tc_does() {
        let stats = Stats {
            kind: "cnq_codel_af".into(),
            handle: 0x0010_0000,
            parent: 0x0001_0002,
            sent_bytes: 3028,
            sent_packets: 2,
            qlen: 1,
            backlog: 1514,
            drops: 3,
            overlimits: 4,
            ..Stats::default()
        };
        let mut options = Attributes::default();
        options.put_u32(7, 100_000);
        options.put_u32(12, 0);
        let mut found = Found { stats, references: 1, options: options.bytes(), own: &[0; 48] };
        let kind = kinds::find("cnq_codel_af").expect("a kind");
        let expected = "qdisc cnq_codel_af 10: parent 1:2 unlimited rtt 100ms no-sce\n \
                        Sent 3028 bytes 2 pkt (dropped 3, overlimits 4 requeues 0)\n \
                        backlog 1514b 1p requeues 0\n  \
                        flows 0 sparse 0 ecn_mark 0 sce_marks 0 drop_overlimit 0\n";
        assert_eq!(show_one(kind, &found, false, true), expected);
        (found.references, found.stats.parent) = (2, TC_H_ROOT);
        let expected = "qdisc cnq_codel_af 10: root refcnt 2 unlimited rtt 100ms no-sce\n";
        assert_eq!(show_one(kind, &found, false, false), expected);
    }
}
