//! Packets as bytes: the frame that an interface sends or receives.
//!
//! Source: RFC 791, RFC 9293, RFC 7323 (timestamps), RFC 2018 (SACK), RFC 9768 (AccECN), RFC 768, RFC 792; tunnels as
//! in [`crate::network::tunnel`].
//!
//! Payload is zeros, and at most [`SNAP_LENGTH`] bytes of a frame are kept; lengths and checksums are those of the whole
//! frame. Several segments in one buffer are one frame, up to 64 kB long.
//!
//! Departures: node `n` has the address 10.0.x.y with 256 x + y = n + 1 at every interface, inside a tunnel and outside;
//! a connection starts at fixed sequence numbers; windows are shown in units of [`WINDOW_SCALE`]; what IPsec and
//! WireGuard encrypt is zeros.
//!
//! Validation: tests below (each header is read back, each checksum computed anew), `tests/captures.rs`.

use std::net::Ipv4Addr;

use etherparse::{
    EtherType, Ethernet2Header, IcmpEchoHeader, Icmpv4Header, Icmpv4Type, IpDscp, IpEcn, IpNumber,
    Ipv4Header, TcpHeader, TcpOptionElement, UdpHeader,
};

use crate::base::units::Time;
use crate::packet::accecn;
use crate::packet::{Flags, Packet, Proto};

/// Bytes kept of a frame: every header fits.
pub const SNAP_LENGTH: u32 = 128;
/// The same where up to 50 bytes of a tunnel can stand around another packet.
const TUNNEL_SNAP_LENGTH: u32 = 192;
/// The window scale of every connection: 128 MiB at most, in steps of 2 KiB.
pub const WINDOW_SCALE: u8 = 11;
const ETHERNET: usize = 14;
const IPV4: usize = 20;
/// What a sender, to which nobody sends data, advertises.
const SENDER_WINDOW: u32 = 64 << 10;
const FIRST_PORT: u16 = 5201;
const FIRST_LOCAL_PORT: u16 = 32_768;
const WIREGUARD_PORT: u16 = 51_820;
const FOU_PORT: u16 = 5556;
const VXLAN_PORT: u16 = 4789;
/// Source ports from here up hold the hash of the flow, as Linux's do.
const FIRST_EPHEMERAL_PORT: u16 = 0xc000;
static ZEROS: [u8; 65_536] = [0; 65_536];

/// The ends of a flow or probe: nodes that ask (send data) and answer.
#[derive(Clone, Copy, Debug)]
pub struct Ends(pub [u16; 2]);

/// A kind of tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each name says what it is")]
pub enum Tunnel {
    WireGuard,
    Ipsec,
    Fou,
    Gre,
    Vxlan,
}

/// What goes through a tunnel.
#[derive(Clone, Copy, Debug)]
pub struct Inside {
    /// The tunnel.
    pub tunnel: Tunnel,
    /// The protocol in it.
    pub proto: Proto,
}

/// Bytes that are kept of a frame in a run whose flows and probes go through these tunnels.
pub fn snap_length(inside: &[Option<Inside>]) -> u32 {
    if inside.iter().any(Option::is_some) { TUNNEL_SNAP_LENGTH } else { SNAP_LENGTH }
}

/// The first `kept` bytes of the frame; `inside` says what it carries if it is a tunnel's.
pub fn frame(packet: &Packet, Ends(ends): Ends, inside: Option<Inside>, kept: u32) -> Vec<u8> {
    let asks = packet.dst == ends[1];
    let nodes = if asks { ends } else { [ends[1], ends[0]] };
    let len = packet.buffer_len() as usize;
    // IPv4 has 16 bits for its length.
    let length = len.saturating_sub(ETHERNET).clamp(IPV4, usize::from(u16::MAX));
    let mut bytes = Vec::with_capacity(kept as usize);
    bytes.extend_from_slice(&ethernet(nodes));
    match inside {
        None => {
            let ip = ip(nodes, number(packet.proto), packet.dscp << 2 | packet.ecn as u8, length);
            datagram(&mut bytes, packet, asks, packet.proto, &ip);
        }
        Some(inside) => {
            encapsulate(&mut bytes, packet, nodes, inside.tunnel, length);
            if !matches!(inside.tunnel, Tunnel::Ipsec | Tunnel::WireGuard) {
                let length = (length + ETHERNET).saturating_sub(bytes.len()).max(IPV4);
                let ip = ip(nodes, number(inside.proto), packet.inner_tos, length);
                datagram(&mut bytes, packet, asks, inside.proto, &ip);
            }
        }
    }
    bytes.resize(len.min(kept as usize), 0);
    bytes
}

fn ethernet([source, destination]: [u16; 2]) -> [u8; ETHERNET] {
    let (source, destination) = (mac(source), mac(destination));
    Ethernet2Header { source, destination, ether_type: EtherType::IPV4 }.to_bytes()
}

/// An IPv4 header for a packet of `length` bytes in all.
fn ip([source, destination]: [u16; 2], protocol: IpNumber, tos: u8, length: usize) -> Ipv4Header {
    let mut ip = Ipv4Header {
        total_len: length as u16,
        dont_fragment: true,
        time_to_live: 64,
        protocol,
        dscp: IpDscp::try_new(tos >> 2).unwrap_or_default(),
        ecn: IpEcn::try_new(tos & 3).unwrap_or_default(),
        source: address(source),
        destination: address(destination),
        ..Ipv4Header::default()
    };
    ip.header_checksum = ip.calc_header_checksum();
    ip
}

fn number(proto: Proto) -> IpNumber {
    match proto {
        Proto::Tcp => IpNumber::TCP,
        Proto::Udp => IpNumber::UDP,
        Proto::Icmp => IpNumber::ICMP,
        Proto::Esp => IpNumber::ENCAPSULATING_SECURITY_PAYLOAD,
        Proto::Gre => IpNumber::GRE,
    }
}

/// Adds this IP header, and that of what the flow or probe itself sends.
fn datagram(bytes: &mut Vec<u8>, packet: &Packet, asks: bool, proto: Proto, ip: &Ipv4Header) {
    bytes.extend_from_slice(&ip.to_bytes());
    let length = usize::from(ip.total_len) - IPV4;
    match proto {
        Proto::Tcp => bytes.extend_from_slice(&tcp(packet, asks, ip, length).to_bytes()),
        Proto::Udp => {
            let ports = ports(packet, asks);
            let payload = &ZEROS[..length.saturating_sub(UdpHeader::LEN)];
            if let Ok(header) = UdpHeader::with_ipv4_checksum(ports[0], ports[1], ip, payload) {
                bytes.extend_from_slice(&header.to_bytes());
            }
        }
        Proto::Icmp => {
            let echo = IcmpEchoHeader { id: echo_identifier(packet.flow), seq: (packet.seq + 1) as u16 };
            let reply = packet.flags.has(Flags::REPLY);
            let kind = if reply { Icmpv4Type::EchoReply(echo) } else { Icmpv4Type::EchoRequest(echo) };
            let payload = &ZEROS[..length.saturating_sub(8)];
            bytes.extend_from_slice(&Icmpv4Header::with_checksum(kind, payload).to_bytes());
        }
        // Tunnels alone have these.
        Proto::Esp | Proto::Gre => {}
    }
}

/// Adds the headers of a tunnel's packet up to the inner one.
fn encapsulate(bytes: &mut Vec<u8>, packet: &Packet, nodes: [u16; 2], tunnel: Tunnel, length: usize) {
    let protocol = match tunnel {
        Tunnel::Ipsec => IpNumber::ENCAPSULATING_SECURITY_PAYLOAD,
        Tunnel::Gre => IpNumber::GRE,
        Tunnel::WireGuard | Tunnel::Fou | Tunnel::Vxlan => IpNumber::UDP,
    };
    let ip = ip(nodes, protocol, packet.dscp << 2 | packet.ecn as u8, length);
    bytes.extend_from_slice(&ip.to_bytes());
    let index = u16::from(packet.tunnel.wrapping_sub(1));
    // Each end has a number of its own, as security associations have.
    let receiver = u32::from(packet.tunnel) << 16 | u32::from(nodes[1] + 1);
    let length = length - IPV4;
    match tunnel {
        // SPI and sequence number; the first packet has the number 1.
        Tunnel::Ipsec => {
            bytes.extend_from_slice(&receiver.to_be_bytes());
            bytes.extend_from_slice(&packet.tunnel_seq.wrapping_add(1).to_be_bytes());
        }
        // No options, and IPv4 inside.
        Tunnel::Gre => bytes.extend_from_slice(&[0, 0, 8, 0]),
        // A message of transport data: the receiver's index, the counter, and what is encrypted.
        Tunnel::WireGuard => {
            let mut message = vec![0; length.saturating_sub(UdpHeader::LEN).max(16)];
            message[0] = 4;
            message[4..8].copy_from_slice(&receiver.to_le_bytes());
            message[8..12].copy_from_slice(&packet.tunnel_seq.to_le_bytes());
            let port = WIREGUARD_PORT + index;
            if let Ok(header) = UdpHeader::with_ipv4_checksum(port, port, &ip, &message) {
                bytes.extend_from_slice(&header.to_bytes());
            }
            bytes.extend_from_slice(&message[..16]);
        }
        Tunnel::Fou | Tunnel::Vxlan => {
            let udp = UdpHeader {
                source_port: FIRST_EPHEMERAL_PORT | packet.hash as u16,
                destination_port: if tunnel == Tunnel::Fou { FOU_PORT + index } else { VXLAN_PORT },
                length: length as u16,
                // As Linux sends them over IPv4: without.
                checksum: 0,
            };
            bytes.extend_from_slice(&udp.to_bytes());
            if tunnel == Tunnel::Vxlan {
                // The flag of a valid network identifier, and the identifier.
                bytes.extend_from_slice(&[8, 0, 0, 0, 0, 0, packet.tunnel, 0]);
                bytes.extend_from_slice(&ethernet(nodes));
            }
        }
    }
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

/// The address of a node.
pub fn node_address(node: u16) -> Ipv4Addr {
    address(node).into()
}

/// The port of a flow, or of a probe over UDP, at the end that answers.
pub fn known_port(traffic: u16) -> u16 {
    FIRST_PORT.wrapping_add(traffic)
}

/// The identifier of a probe's echo requests.
pub fn echo_identifier(traffic: u16) -> u16 {
    traffic + 1
}

/// 10.0.0.1 for node 0.
pub fn address(node: u16) -> [u8; 4] {
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
    let (local, known) = (FIRST_LOCAL_PORT.wrapping_add(flow).wrapping_add(packet.conn), known_port(flow));
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
        let mut bytes = frame(packet, ENDS, None, SNAP_LENGTH);
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
        let mut bytes = frame(&packet, ENDS, None, SNAP_LENGTH);
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

    /// What stands behind the outer IP header of 20 bytes, and the inner packet: 1448 bytes of payload behind 20 of IP and
    /// 32 of TCP, CE in an outer header of ECT(0).
    #[test]
    fn an_unencrypted_tunnel_shows_the_packet_inside() {
        for (tunnel, port, around) in
            [(Tunnel::Gre, None, 4), (Tunnel::Fou, Some(5557), 8), (Tunnel::Vxlan, Some(4789), 8 + 8 + 14)]
        {
            let packet = Packet {
                tunnel: 2,
                inner_tos: 19 << 2 | 3,
                ecn: Ecn::Ect0,
                dscp: 0,
                len: 14 + 20 + around + 1500,
                ..data()
            };
            let mut bytes =
                frame(&packet, ENDS, Some(Inside { tunnel, proto: Proto::Tcp }), TUNNEL_SNAP_LENGTH);
            bytes.resize(packet.len as usize, 0);
            let outer = Ipv4Header::from_slice(&bytes[14..]).expect("an IP header").0;
            assert_eq!((outer.ecn.value(), u32::from(outer.total_len)), (2, 20 + around + 1500));
            if let Some(port) = port {
                let udp = UdpHeader::from_slice(&bytes[34..]).expect("a UDP header").0;
                assert_eq!((udp.destination_port, u32::from(udp.length)), (port, around + 1500));
            }
            let sliced = SlicedPacket::from_ip(&bytes[34 + around as usize..]).expect("a packet");
            let Some(etherparse::NetSlice::Ipv4(ip)) = &sliced.net else { panic!("IPv4") };
            let ip = ip.header().to_header();
            assert_eq!((ip.ecn.value(), ip.dscp.value(), ip.total_len), (3, 19, 1500));
            let Some(TransportSlice::Tcp(tcp)) = &sliced.transport else { panic!("TCP") };
            let sum = tcp.to_header().calc_checksum_ipv4(&ip, tcp.payload());
            assert_eq!((tcp.payload().len(), Ok(tcp.checksum())), (1448, sum));
        }
    }

    #[test]
    fn an_encrypted_tunnel_shows_its_number() {
        let inside = |tunnel| Some(Inside { tunnel, proto: Proto::Tcp });
        let packet = Packet { tunnel: 1, tunnel_seq: 6, len: 1294, ..data() };
        let esp = frame(&packet, ENDS, inside(Tunnel::Ipsec), TUNNEL_SNAP_LENGTH);
        // To node 2 through tunnel 1; the first packet has the number 1.
        assert_eq!((esp[23], &esp[34..42]), (50, &[0, 1, 0, 3, 0, 0, 0, 7][..]));
        let mut wireguard = frame(&packet, ENDS, inside(Tunnel::WireGuard), TUNNEL_SNAP_LENGTH);
        // Transport data to the same receiver; the counter begins at 0.
        assert_eq!(wireguard[42..58], [4, 0, 0, 0, 3, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0]);
        wireguard.resize(1294, 0);
        let sliced = SlicedPacket::from_ethernet(&wireguard).expect("a frame");
        let Some(TransportSlice::Udp(udp)) = &sliced.transport else { panic!("UDP") };
        let ip = Ipv4Header::from_slice(&wireguard[14..]).expect("an IP header").0;
        let sum = udp.to_header().calc_checksum_ipv4(&ip, udp.payload());
        assert_eq!((udp.destination_port(), Ok(udp.checksum())), (51_820, sum));
    }
}
