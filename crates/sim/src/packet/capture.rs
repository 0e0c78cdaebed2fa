//! Packets as bytes: what an interface sends and receives, as a pcapng file.
//!
//! Source: RFC 791, RFC 9293, RFC 7323 (timestamps), RFC 2018 (SACK), RFC 768, RFC 792; pcapng by
//! draft-ietf-opsawg-pcapng.
//!
//! As tcpdump on Linux: an outgoing packet is seen when it leaves the queue for the wire, an incoming one before
//! ingress queues and rewriting; several segments in one buffer are one frame, up to 64 kB long. Payload is zeros, and at most [`SNAP_LENGTH`] bytes of a frame are kept; lengths
//! and checksums are those of the whole frame.
//!
//! Departures: node `n` has the address 10.0.x.y with 256 x + y = n + 1 at every interface; a connection starts at
//! fixed sequence numbers; windows are shown in units of [`WINDOW_SCALE`]; of a packet in a tunnel only the outer
//! IP header, UDP, ESP or GRE are shown, every tunnel over UDP has ports from 51820 up.
//!
//! Validation: tests below (each header is read back, each checksum computed anew), `tests/captures.rs`.

use std::sync::Arc;
use std::time::Duration;

use etherparse::{
    EtherType, Ethernet2Header, IcmpEchoHeader, Icmpv4Header, Icmpv4Type, IpDscp, IpEcn, IpNumber,
    Ipv4Header, TcpHeader, TcpOptionElement, UdpHeader,
};
use pcap_file::DataLink;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};

use crate::base::units::Time;
use crate::packet::accecn;
use crate::packet::{Flags, Packet, Proto};

/// Bytes kept of a frame: every header fits.
pub const SNAP_LENGTH: u32 = 128;
/// The window scale of every connection: 128 MiB at most, in steps of 2 KiB.
pub const WINDOW_SCALE: u8 = 11;
const ETHERNET: usize = 14;
const IPV4: usize = 20;
/// What a sender, to which nobody sends data, advertises.
const SENDER_WINDOW: u32 = 64 << 10;
const FIRST_PORT: u16 = 5201;
const FIRST_LOCAL_PORT: u16 = 32_768;
const FIRST_TUNNEL_PORT: u16 = 51_819;
static ZEROS: [u8; 65_536] = [0; 65_536];

/// The ends of a flow or probe: nodes that ask (send data) and answer.
#[derive(Clone, Copy, Debug)]
pub struct Ends(pub [u16; 2]);

/// One interface's file in the making.
pub struct Capture {
    writer: PcapNgWriter<Vec<u8>>,
    traffic: Arc<[Ends]>,
}

impl Capture {
    /// An empty file for the interface called `name`; `traffic` gives the ends of each [`Packet::flow`].
    ///
    /// # Errors
    /// None that writing into memory has.
    pub fn new(name: &str, traffic: Arc<[Ends]>) -> Result<Capture, String> {
        let mut writer = PcapNgWriter::new(Vec::new()).map_err(|e| e.to_string())?;
        let interface = InterfaceDescriptionBlock {
            linktype: DataLink::ETHERNET,
            snaplen: SNAP_LENGTH,
            options: vec![
                InterfaceDescriptionOption::IfName(name.into()),
                // 10^-9 s
                InterfaceDescriptionOption::IfTsResol(9),
            ],
        };
        writer.write_pcapng_block(interface).map_err(|e| e.to_string())?;
        Ok(Capture { writer, traffic })
    }

    /// Adds a packet.
    pub fn see(&mut self, packet: &Packet, now: Time) {
        let data = frame(packet, self.traffic[usize::from(packet.flow)]);
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::from_nanos(now.as_ns()),
            original_len: packet.buffer_len(),
            data: data.into(),
            options: Vec::new(),
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

/// The first [`SNAP_LENGTH`] bytes of the frame.
fn frame(packet: &Packet, Ends(ends): Ends) -> Vec<u8> {
    let asks = packet.dst == ends[1];
    let source = if asks { ends[0] } else { ends[1] };
    let len = packet.buffer_len() as usize;
    // IPv4 has 16 bits for its length.
    let rest = len.saturating_sub(ETHERNET + IPV4).min(usize::from(u16::MAX) - IPV4);
    let mut ip = Ipv4Header {
        total_len: (IPV4 + rest) as u16,
        dont_fragment: true,
        time_to_live: 64,
        protocol: match packet.proto {
            Proto::Tcp => IpNumber::TCP,
            Proto::Udp => IpNumber::UDP,
            Proto::Icmp => IpNumber::ICMP,
            Proto::Esp => IpNumber::ENCAPSULATING_SECURITY_PAYLOAD,
            Proto::Gre => IpNumber::GRE,
        },
        dscp: IpDscp::try_new(packet.dscp & 63).unwrap_or_default(),
        ecn: IpEcn::try_new(packet.ecn as u8).unwrap_or_default(),
        source: address(source),
        destination: address(packet.dst),
        ..Ipv4Header::default()
    };
    ip.header_checksum = ip.calc_header_checksum();
    let ethernet =
        Ethernet2Header { source: mac(source), destination: mac(packet.dst), ether_type: EtherType::IPV4 };
    let mut bytes = Vec::with_capacity(SNAP_LENGTH as usize);
    bytes.extend_from_slice(&ethernet.to_bytes());
    bytes.extend_from_slice(&ip.to_bytes());
    match packet.proto {
        Proto::Tcp => bytes.extend_from_slice(&tcp(packet, asks, &ip, rest).to_bytes()),
        Proto::Udp => {
            let ports = if packet.tunnel == 0 { ports(packet, asks) } else { outside(packet.tunnel) };
            let payload = &ZEROS[..rest.saturating_sub(UdpHeader::LEN)];
            if let Ok(header) = UdpHeader::with_ipv4_checksum(ports[0], ports[1], &ip, payload) {
                bytes.extend_from_slice(&header.to_bytes());
            }
        }
        Proto::Icmp => {
            let echo = IcmpEchoHeader { id: packet.flow + 1, seq: (packet.seq + 1) as u16 };
            let reply = packet.flags.has(Flags::REPLY);
            let kind = if reply { Icmpv4Type::EchoReply(echo) } else { Icmpv4Type::EchoRequest(echo) };
            let payload = &ZEROS[..rest.saturating_sub(8)];
            bytes.extend_from_slice(&Icmpv4Header::with_checksum(kind, payload).to_bytes());
        }
        // SPI and sequence number; the first packet has the number 1.
        Proto::Esp => {
            bytes.extend_from_slice(&u32::from(outside(packet.tunnel)[0]).to_be_bytes());
            bytes.extend_from_slice(&packet.tunnel_seq.wrapping_add(1).to_be_bytes());
        }
        // No options, and IPv4 inside.
        Proto::Gre => bytes.extend_from_slice(&[0, 0, 8, 0]),
    }
    bytes.resize(len.min(SNAP_LENGTH as usize), 0);
    bytes
}

/// The ports of a tunnel over UDP; the first is also the SPI of IPsec.
fn outside(tunnel: u8) -> [u16; 2] {
    [FIRST_TUNNEL_PORT + u16::from(tunnel); 2]
}

/// The TCP header; `length` counts header and payload.
fn tcp(packet: &Packet, from_sender: bool, ip: &Ipv4Header, length: usize) -> TcpHeader {
    let syn = packet.flags.has(Flags::SYN);
    // Bytes are counted from 0; the SYN takes the number before.
    let first = [initial(packet.flow, 0), initial(packet.flow, 1)].map(|n| n.wrapping_add(1));
    let (own, other) = if from_sender { (first[0], first[1]) } else { (first[1], first[0]) };
    let ack = packet.flags.has(Flags::ACK);
    let window = if from_sender { SENDER_WINDOW } else { packet.window };
    let ports = ports(packet, from_sender);
    let mut header = TcpHeader {
        source_port: ports[0],
        destination_port: ports[1],
        sequence_number: own.wrapping_add(packet.seq as u32).wrapping_sub(u32::from(syn)),
        acknowledgment_number: if ack { other.wrapping_add(packet.ack as u32) } else { 0 },
        syn,
        ack,
        psh: packet.flags.has(Flags::PSH),
        ns: packet.ace & 4 != 0 || packet.flags.has(Flags::ESCE),
        cwr: packet.ace & 2 != 0 || packet.flags.has(Flags::CWR),
        ece: packet.ace & 1 != 0 || packet.flags.has(Flags::ECE),
        window_size: if syn { window.min(0xffff) } else { (window >> WINDOW_SCALE).min(0xffff) } as u16,
        ..TcpHeader::default()
    };
    let stamps = TcpOptionElement::Timestamp(
        milliseconds(packet.sent),
        if ack { milliseconds(packet.echo) } else { 0 },
    );
    let mut options = Vec::new();
    if syn {
        // The largest segment of a device with an MTU of 1500.
        options.extend([
            TcpOptionElement::MaximumSegmentSize(1460),
            TcpOptionElement::SelectiveAcknowledgementPermitted,
        ]);
        options.extend([stamps, TcpOptionElement::Noop, TcpOptionElement::WindowScale(WINDOW_SCALE)]);
    } else {
        options.extend([TcpOptionElement::Noop, TcpOptionElement::Noop, stamps]);
        let block = |i: usize| {
            let at = |offset: i32| header.acknowledgment_number.wrapping_add_signed(offset);
            (at(packet.sack[i].start), at(packet.sack[i].end))
        };
        if packet.n_sack > 0 {
            let more = [1, 2].map(|i| (i < usize::from(packet.n_sack)).then(|| block(i)));
            let blocks = TcpOptionElement::SelectiveAcknowledgement(block(0), [more[0], more[1], None]);
            options.extend([TcpOptionElement::Noop, TcpOptionElement::Noop, blocks]);
        }
    }
    let set = header.set_options(&options);
    debug_assert!(set.is_ok(), "12 bytes and three SACK blocks fit: {set:?}");
    if packet.n_accecn > 0 {
        let mut raw = header.options.as_slice().to_vec();
        raw.extend(accecn::wire(packet));
        raw.resize(raw.len().next_multiple_of(4), NOP);
        let set = header.set_options_raw(&raw);
        debug_assert!(set.is_ok(), "what the sender chose fits: {set:?}");
    }
    let payload = &ZEROS[..length.saturating_sub(header.header_len())];
    header.checksum = header.calc_checksum_ipv4(ip, payload).unwrap_or_default();
    header
}

/// TCP's option of no operation.
const NOP: u8 = 1;

/// 10.0.0.1 for node 0.
fn address(node: u16) -> [u8; 4] {
    let [high, low] = (node + 1).to_be_bytes();
    [10, 0, high, low]
}

/// A locally administered address.
fn mac(node: u16) -> [u8; 6] {
    let [high, low] = (node + 1).to_be_bytes();
    [2, 0, 0, 0, high, low]
}

/// Source and destination port. The known one is the flow's, so those of its connections may be another flow's too.
fn ports(packet: &Packet, asks: bool) -> [u16; 2] {
    let flow = packet.flow;
    let (local, known) =
        (FIRST_LOCAL_PORT.wrapping_add(flow).wrapping_add(packet.conn), FIRST_PORT.wrapping_add(flow));
    if asks { [local, known] } else { [known, local] }
}

/// The initial sequence number of a side.
fn initial(flow: u16, side: u32) -> u32 {
    (u32::from(flow) + 1).wrapping_mul(0x0100_0000).wrapping_add(side << 16)
}

/// Linux's timestamp clock ticks in milliseconds; it never shows 0.
fn milliseconds(time: Time) -> u32 {
    (time.as_ns() / 1_000_000) as u32 + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Ecn, SackBlock};
    use etherparse::{SlicedPacket, TransportSlice};
    use pcap_file::pcapng::{Block, PcapNgReader};

    const ENDS: Ends = Ends([0, 2]);

    fn data() -> Packet {
        Packet {
            seq: 1448,
            sent: Time::from_ms(20),
            echo: Time::from_ms(10),
            len: 1514,
            payload: 1448,
            dst: 2,
            dscp: 19,
            ecn: Ecn::Ect1,
            flags: Flags::ACK,
            ..Packet::default()
        }
    }

    /// A whole frame, as it would be without the snap length.
    fn whole(packet: &Packet) -> Vec<u8> {
        let mut bytes = frame(packet, ENDS);
        bytes.resize(packet.len as usize, 0);
        bytes
    }

    #[test]
    fn a_data_segment_has_valid_headers_and_checksums() {
        let bytes = whole(&data());
        let sliced = SlicedPacket::from_ethernet(&bytes).expect("a frame");
        let Some(etherparse::NetSlice::Ipv4(ip)) = &sliced.net else { panic!("IPv4") };
        let ip = ip.header().to_header();
        assert_eq!(ip.header_checksum, ip.calc_header_checksum());
        assert_eq!((ip.total_len, ip.dscp.value(), ip.ecn.value()), (1500, 19, 1));
        assert_eq!((ip.source, ip.destination), ([10, 0, 0, 1], [10, 0, 0, 3]));
        let Some(TransportSlice::Tcp(tcp)) = &sliced.transport else { panic!("TCP") };
        assert_eq!(tcp.payload().len(), 1448);
        let header = tcp.to_header();
        assert_eq!(header.checksum, header.calc_checksum_ipv4(&ip, tcp.payload()).expect("short enough"));
        // Initial number 0x01000000, one for the SYN, then 1448 bytes.
        assert_eq!(header.sequence_number, 0x0100_0000 + 1 + 1448);
        let options: Vec<_> = header.options_iterator().map(|o| o.expect("an option")).collect();
        assert_eq!(options[2], TcpOptionElement::Timestamp(21, 11));
    }

    #[test]
    fn several_segments_in_one_buffer_are_one_long_frame() {
        // 20 segments: one header of 66 bytes, 28960 bytes of payload
        let packet = Packet { len: 20 * 1514, payload: 20 * 1448, gso_size: 1448, ..data() };
        let mut bytes = frame(&packet, ENDS);
        bytes.resize(packet.buffer_len() as usize, 0);
        assert_eq!(bytes.len(), 66 + 28_960);
        let sliced = SlicedPacket::from_ethernet(&bytes).expect("a frame");
        let Some(etherparse::NetSlice::Ipv4(ip)) = &sliced.net else { panic!("IPv4") };
        let ip = ip.header().to_header();
        assert_eq!((ip.total_len, ip.header_checksum), (52 + 28_960, ip.calc_header_checksum()));
        let Some(TransportSlice::Tcp(tcp)) = &sliced.transport else { panic!("TCP") };
        let header = tcp.to_header();
        assert_eq!(header.checksum, header.calc_checksum_ipv4(&ip, tcp.payload()).expect("short enough"));
    }

    #[test]
    fn an_ack_shows_its_blocks_echo_and_window() {
        let mut ack =
            Packet { dst: 0, ack: 10_000, window: 1 << 20, ace: 0b101, n_sack: 2, len: 66 + 20, ..data() };
        ack.seq = 0;
        ack.sack[0] = SackBlock { start: 1448, end: 2896 };
        ack.sack[1] = SackBlock { start: -1448, end: 0 };
        let bytes = whole(&ack);
        let sliced = SlicedPacket::from_ethernet(&bytes).expect("a frame");
        let Some(TransportSlice::Tcp(tcp)) = &sliced.transport else { panic!("TCP") };
        assert!(tcp.payload().is_empty(), "the frame is as long as its headers");
        assert_eq!((tcp.ns(), tcp.cwr(), tcp.ece()), (true, false, true));
        assert_eq!(u32::from(tcp.window_size()) << WINDOW_SCALE, 1 << 20);
        let next = 0x0100_0001 + 10_000;
        assert_eq!(tcp.acknowledgment_number(), next);
        let last = tcp.options_iterator().last().expect("options").expect("valid");
        let blocks = TcpOptionElement::SelectiveAcknowledgement(
            (next + 1448, next + 2896),
            [Some((next - 1448, next)), None, None],
        );
        assert_eq!(last, blocks);
    }

    /// The handshake's frames are 14 + 20 + 40 bytes, and a SYN acknowledges nothing.
    #[test]
    fn the_accecn_option_follows_with_its_initial_offsets() {
        let n_accecn = 3;
        let accecn = [[0; 3], [0, 1, 2], [0xff; 3]];
        let bytes = whole(&Packet { n_accecn, accecn, len: 66 + 12 + 1436, payload: 1436, ..data() });
        let sliced = SlicedPacket::from_ethernet(&bytes).expect("a frame");
        let Some(TransportSlice::Tcp(tcp)) = &sliced.transport else { panic!("TCP") };
        assert_eq!(tcp.payload().len(), 1436);
        // ECT(1) and ECT(0) count from 1
        assert_eq!(tcp.options()[12..], [174, 11, 0, 0, 1, 0, 1, 2, 0, 0, 0, 1]);
    }

    #[test]
    fn a_syn_carries_the_connections_options() {
        let syn = Packet { seq: 0, len: 74, payload: 0, flags: Flags::SYN, ace: 0b111, ..data() };
        let bytes = whole(&syn);
        let sliced = SlicedPacket::from_ethernet(&bytes).expect("a frame");
        let Some(TransportSlice::Tcp(tcp)) = &sliced.transport else { panic!("TCP") };
        assert_eq!((tcp.sequence_number(), tcp.acknowledgment_number()), (0x0100_0000, 0));
        assert!(tcp.ns() && tcp.cwr() && tcp.ece() && tcp.payload().is_empty());
        assert_eq!(tcp.options_iterator().count(), 5);
    }

    #[test]
    fn probes_have_valid_checksums() {
        for proto in [Proto::Icmp, Proto::Udp] {
            let bytes = whole(&Packet { proto, len: 98, ..data() });
            let sliced = SlicedPacket::from_ethernet(&bytes).expect("a frame");
            match &sliced.transport {
                Some(TransportSlice::Icmpv4(icmp)) => {
                    let header = icmp.header();
                    let again = Icmpv4Header::with_checksum(header.icmp_type, icmp.payload());
                    assert_eq!((header.checksum, icmp.payload().len()), (again.checksum, 98 - 14 - 20 - 8));
                }
                Some(TransportSlice::Udp(udp)) => {
                    let Some(etherparse::NetSlice::Ipv4(ip)) = &sliced.net else { panic!("IPv4") };
                    let header = udp.to_header();
                    let sum = header.calc_checksum_ipv4(&ip.header().to_header(), udp.payload());
                    assert_eq!((header.checksum, header.length), (sum.expect("short enough"), 98 - 14 - 20));
                }
                other => panic!("{proto:?} became {other:?}"),
            }
        }
    }

    #[test]
    fn the_file_keeps_times_lengths_and_the_name() {
        let mut capture = Capture::new("mid>srv", Arc::new([ENDS])).expect("memory");
        capture.see(&data(), Time(1_234_567_891));
        let bytes = capture.finish();
        let mut reader = PcapNgReader::new(&bytes[..]).expect("a section");
        let Some(Ok(Block::InterfaceDescription(interface))) = reader.next_block() else {
            panic!("interface")
        };
        assert_eq!(interface.options[0], InterfaceDescriptionOption::IfName("mid>srv".into()));
        let Some(Ok(Block::EnhancedPacket(packet))) = reader.next_block() else { panic!("packet") };
        assert_eq!(packet.timestamp, Duration::from_nanos(1_234_567_891));
        assert_eq!((packet.original_len, packet.data.len()), (1514, 128));
    }
}
