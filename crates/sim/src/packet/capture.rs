//! What an interface sends and receives, as a pcapng file.
//!
//! Source: draft-ietf-opsawg-pcapng.
//!
//! The file names the run that it is of, what its flows and probes are, and its nodes by their addresses. A packet that a
//! queue marked has a comment that names the queue, and one ahead of which the queue here dropped packets says how many.
//!
//! As tcpdump on Linux: an outgoing packet is seen when it leaves the queue for the wire, an incoming one before
//! ingress queues and rewriting; see [`super::frame`] for the bytes.
//!
//! Validation: test below, `tests/captures.rs`.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use pcap_file::DataLink;
use pcap_file::Endianness;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::name_resolution::{Ipv4Record, NameResolutionBlock, Record};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};

use crate::base::units::Time;
use crate::packet::frame::{Ends, Inside, address, frame, snap_length};
use crate::packet::{Ecn, Packet};

/// Bytes of a text that one option of pcapng holds.
const LONGEST_TEXT: usize = u16::MAX as usize;

/// What the captures of a run say of it.
#[derive(Debug)]
pub struct About {
    /// The comment of the whole file.
    pub comment: String,
    /// The nodes' names.
    pub nodes: Vec<String>,
    /// By [`Packet::flow`]: name of the flow or probe.
    pub names: Vec<String>,
    /// By [`Packet::flow`]: its ends.
    pub ends: Vec<Ends>,
    /// By [`Packet::flow`]: the tunnel that it goes through, if it does.
    pub inside: Vec<Option<Inside>>,
}

/// One interface's file in the making.
pub struct Capture {
    writer: PcapNgWriter<Vec<u8>>,
    about: Arc<About>,
    /// Names of queues: that of the queue whose number is n stands at n - 1.
    pub queues: Arc<[String]>,
    /// By the number of a queue: what it had dropped when it was asked last, in all and of each flow.
    drops: Vec<(u64, Vec<u64>)>,
    /// What the next packet's comment begins with.
    before: String,
}

impl Capture {
    /// An empty file for the interface called `name`, which has this rate in bit/s if it has one.
    ///
    /// # Errors
    /// None that writing into memory has.
    pub fn new(
        name: &str,
        description: &str,
        rate_bps: Option<u64>,
        about: &Arc<About>,
    ) -> Result<Capture, String> {
        let section = SectionHeaderBlock {
            endianness: Endianness::native(),
            options: vec![
                SectionHeaderOption::Comment(cut(&about.comment).to_owned().into()),
                SectionHeaderOption::UserApplication(concat!("bakeoff ", env!("CARGO_PKG_VERSION")).into()),
            ],
            ..SectionHeaderBlock::default()
        };
        let mut writer = PcapNgWriter::with_section_header(Vec::new(), section).map_err(|e| e.to_string())?;
        let mut options = vec![
            InterfaceDescriptionOption::IfName(name.into()),
            InterfaceDescriptionOption::IfDescription(cut(description).into()),
        ];
        options.extend(rate_bps.map(InterfaceDescriptionOption::IfSpeed));
        // 10^-9 s
        options.push(InterfaceDescriptionOption::IfTsResol(9));
        let interface = InterfaceDescriptionBlock {
            linktype: DataLink::ETHERNET,
            snaplen: snap_length(&about.inside),
            options,
        };
        writer.write_pcapng_block(interface).map_err(|e| e.to_string())?;
        let records = about.nodes.iter().enumerate().map(|(node, name)| {
            Record::Ipv4(Ipv4Record {
                ip_addr: address(node as u16).to_vec().into(),
                names: vec![name.into()],
            })
        });
        let names = NameResolutionBlock { records: records.collect(), options: Vec::new() };
        writer.write_pcapng_block(names).map_err(|e| e.to_string())?;
        Ok(Capture {
            writer,
            about: about.clone(),
            queues: Arc::new([]),
            drops: Vec::new(),
            before: String::new(),
        })
    }

    /// Says what the queue of this number has dropped by now, in all and of each flow, ahead of the next packet.
    pub fn dropped(&mut self, number: u8, total: u64, by_flow: impl Iterator<Item = u64>) {
        let Some(queue) = self.queues.get(usize::from(number).wrapping_sub(1)) else { return };
        if self.drops.len() < usize::from(number) {
            self.drops.resize(usize::from(number), (0, Vec::new()));
        }
        let (last, flows) = &mut self.drops[usize::from(number) - 1];
        if *last == total {
            return;
        }
        if *last > total {
            // Another queue of this name, which began at 0.
            (*last, *flows) = (0, Vec::new());
        }
        let _ = write!(self.before, "{queue} dropped {} since the packet before:", total - *last);
        *last = total;
        for (flow, now) in by_flow.enumerate() {
            if flows.len() <= flow {
                flows.push(0);
            }
            let of = now - std::mem::replace(&mut flows[flow], now);
            if of > 0 {
                let name = self.about.names.get(flow).map_or("others", String::as_str);
                let _ = write!(self.before, " {of} of {name},");
            }
        }
        self.before.pop();
        self.before.push_str("; ");
    }

    /// Adds a packet.
    pub fn see(&mut self, packet: &Packet, now: Time) {
        let (about, traffic) = (&self.about, usize::from(packet.flow));
        let data = frame(packet, about.ends[traffic], about.inside[traffic], snap_length(&about.inside));
        let mut comment = std::mem::take(&mut self.before);
        if let Some(queue) = self.queues.get(usize::from(packet.marked_by).wrapping_sub(1)) {
            match packet.ecn {
                Ecn::Ce => _ = write!(comment, "CE set by {queue}"),
                Ecn::Ect1 => _ = write!(comment, "SCE (ECT(1)) set by {queue}"),
                Ecn::NotEct | Ecn::Ect0 => {}
            }
        }
        let comment = cut(comment.trim_end_matches("; "));
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::from_nanos(now.as_ns()),
            original_len: packet.buffer_len(),
            data: data.into(),
            options: if comment.is_empty() {
                Vec::new()
            } else {
                vec![EnhancedPacketOption::Comment(comment.into())]
            },
        };
        let written = self.writer.write_pcapng_block(block);
        debug_assert!(written.is_ok(), "memory takes everything: {written:?}");
    }

    /// Bytes of the file so far.
    pub fn bytes(&self) -> u64 {
        self.writer.get_ref().len() as u64
    }

    /// The file.
    pub fn finish(self) -> Vec<u8> {
        self.writer.into_inner()
    }
}

/// What fits into one option, cut between characters.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(LONGEST_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use pcap_file::pcapng::{Block, PcapNgReader};

    #[test]
    fn the_file_keeps_times_lengths_and_the_name() {
        let about = Arc::new(About {
            comment: "a/b/c, seed 1".into(),
            nodes: vec!["cli".into(), "mid".into(), "srv".into()],
            names: vec!["prague".into()],
            ends: vec![Ends([0, 2])],
            inside: vec![None],
        });
        let mut capture = Capture::new("mid>srv", "what leaves", None, &about).expect("memory");
        let packet = Packet { len: 1514, payload: 1448, dst: 2, ..Packet::default() };
        capture.see(&packet, Time(1_234_567_891));
        let bytes = capture.finish();
        let mut reader = PcapNgReader::new(&bytes[..]).expect("a section");
        let Some(Ok(Block::InterfaceDescription(interface))) = reader.next_block() else {
            panic!("interface")
        };
        assert_eq!(interface.options[0], InterfaceDescriptionOption::IfName("mid>srv".into()));
        let Some(Ok(Block::NameResolution(names))) = reader.next_block() else { panic!("names") };
        let srv = Ipv4Record { ip_addr: vec![10, 0, 0, 3].into(), names: vec!["srv".into()] };
        assert_eq!(names.records[2], Record::Ipv4(srv));
        let Some(Ok(Block::EnhancedPacket(packet))) = reader.next_block() else { panic!("packet") };
        assert_eq!(packet.timestamp, Duration::from_nanos(1_234_567_891));
        assert_eq!((packet.original_len, packet.data.len()), (1514, 128));
    }
}
