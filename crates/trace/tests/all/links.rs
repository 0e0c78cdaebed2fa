//! Link types, VLANs, IPv6, tunnels.

use bakeoff_trace::report::Report;

use crate::frames::{CE, DATA, Tcp, ethernet, ipv4, ipv6, pcap, told, udp};

fn one(link_type: u32, frame: Vec<u8>) -> Report {
    told(pcap(link_type, &[(0, frame)]))
}

fn packet() -> Vec<u8> {
    Tcp { ecn: CE, ..DATA }.ip()
}

fn tcp() -> Vec<u8> {
    packet()[20..].to_vec()
}

/// An authentication header has 4 x (4 + 2) bytes and leaves the segment readable.
#[test]
fn an_authentication_header_is_passed() {
    let header = [&[6, 4, 0, 0][..], &[0; 20]].concat();
    let report = one(1, outer(51, &[&header[..], &tcp()].concat()));
    assert_eq!((report.flows.len(), report.capture.tcp_packets), (1, 1));
    assert_eq!(report.flows[0].up.data.payload_bytes, 1000);
}

/// What follows the labels begins with neither 4 nor 6, and one stack has no bottom.
#[test]
fn labels_around_something_else_are_not_ip() {
    let other = ethernet(0x8847, &[&[0, 1, 1, 64][..], &[0; 40]].concat());
    let endless = ethernet(0x8847, &[0, 1, 0, 64, 0, 1, 0, 64]);
    let capture = told(pcap(1, &[(0, other), (1, endless)])).capture;
    assert_eq!((capture.packets, capture.not_ip, capture.malformed), (2, 1, 1));
}

fn outer(protocol: u8, payload: &[u8]) -> Vec<u8> {
    ethernet(0x0800, &ipv4([192, 0, 2, 1], [192, 0, 2, 2], protocol, 0, payload))
}

#[test]
fn link_headers_are_taken_away() {
    let ip = packet();
    let cases = [
        ("Ethernet", 1, ethernet(0x0800, &ip)),
        ("VLAN", 1, ethernet(0x8100, &[&[0, 5, 8, 0][..], &ip].concat())),
        ("QinQ", 1, ethernet(0x88a8, &[&[0, 5, 0x81, 0, 0, 6, 8, 0][..], &ip].concat())),
        ("PPPoE", 1, ethernet(0x8864, &[&[0x11, 0, 0, 1, 0, 0, 0, 0x21][..], &ip].concat())),
        ("raw", 101, ip.clone()),
        ("IPv4", 228, ip.clone()),
        ("null", 0, [&[2, 0, 0, 0][..], &ip].concat()),
        ("loop", 108, [&[0, 0, 0, 2][..], &ip].concat()),
        ("PPP", 9, [&[0xff, 3, 0, 0x21][..], &ip].concat()),
        ("PPP whose protocol has one byte", 9, [&[0x21][..], &ip].concat()),
        ("PPP in HDLC's frames", 50, [&[0xff, 3, 0, 0x21][..], &ip].concat()),
        ("PPPoE without Ethernet", 51, [&[0x11, 0, 0, 1, 0, 0, 0, 0x21][..], &ip].concat()),
        ("Cisco HDLC", 104, [&[0x0f, 0, 8, 0][..], &ip].concat()),
        ("MPLS", 1, ethernet(0x8847, &[&[0, 1, 1, 64][..], &ip].concat())),
        ("two labels of MPLS", 1, ethernet(0x8847, &[&[0, 1, 0, 64, 0, 2, 1, 64][..], &ip].concat())),
        // The type is a length of 8 + 1040 bytes.
        ("LLC", 1, ethernet(1048, &[&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0][..], &ip].concat())),
        ("cooked", 113, [&[0; 14][..], &[8, 0], &ip].concat()),
        ("cooked v2", 276, [&[8, 0][..], &[0; 18], &ip].concat()),
        ("IPv6", 229, ipv6(6, CE, &tcp())),
        ("IPv6 with hop-by-hop and destination options", 101, {
            ipv6(0, CE, &[&[60, 0, 1, 4, 0, 0, 0, 0][..], &[6, 0, 1, 4, 0, 0, 0, 0], &tcp()].concat())
        }),
    ];
    for (what, link_type, frame) in cases {
        let report = one(link_type, frame);
        assert_eq!(report.flows.len(), 1, "{what}: {:?}", report.capture);
        assert_eq!((report.flows[0].up.marks.ce, report.flows[0].up.data.payload_bytes), (1, 1000), "{what}");
    }
}

#[test]
fn tunnels_are_opened() {
    let inner = packet();
    let bridged = ethernet(0x0800, &inner);
    let six = ipv6(6, CE, &tcp());
    let cases = [
        ("ipip", outer(4, &inner)),
        ("6in4", outer(41, &six)),
        ("gre", outer(47, &[&[0, 0, 8, 0][..], &inner].concat())),
        // With a key and a sequence number.
        ("gre", outer(47, &[&[0x30, 0, 8, 0][..], &[0; 8], &inner].concat())),
        ("gre", outer(47, &[&[0, 0, 0x65, 0x58][..], &bridged].concat())),
        ("vxlan", outer(17, &udp(4789, &[&[8, 0, 0, 0, 0, 0, 1, 0][..], &bridged].concat()))),
        ("geneve", outer(17, &udp(6081, &[&[0, 0, 0x65, 0x58, 0, 0, 1, 0][..], &bridged].concat()))),
        ("gue", outer(17, &udp(6080, &[&[0, 4, 0, 0][..], &inner].concat()))),
        ("fou", outer(17, &udp(5555, &inner))),
        ("fou", outer(17, &udp(5555, &[&[0, 0, 8, 0][..], &inner].concat()))),
        ("fou", outer(17, &udp(5555, &six))),
    ];
    for (what, frame) in cases {
        let report = one(1, frame);
        assert_eq!(report.flows.len(), 1, "{what}: {:?}", report.capture);
        assert_eq!((&report.flows[0].tunnels[..], report.flows[0].up.marks.ce), (&[what][..], 1));
        // Marks of the capture are those of the outer headers.
        assert_eq!((report.capture.tunnel_packets, report.capture.ecn.not_ect), (1, 1), "{what}");
        assert_eq!(report.capture.udp_packets, 0);
    }
}

/// A datagram whose first bytes look like IPv4, and whose checksum says that they are none.
#[test]
fn a_datagram_is_not_taken_for_a_tunnel() {
    let mut inner = packet();
    inner[10] ^= 1;
    let report = one(1, outer(17, &udp(5555, &inner)));
    assert_eq!((report.flows.len(), report.capture.udp_packets), (0, 1));
}

/// Of 1500 bytes 128 are kept, which counts as 1500; a later fragment and a broken header count as what they are.
#[test]
fn what_is_cut_counts_by_its_headers() {
    let mut cut = DATA.frame();
    cut.truncate(74);
    let mut fragment = DATA.frame();
    fragment[14 + 6..14 + 8].copy_from_slice(&[0, 100]);
    let mut broken = DATA.frame();
    broken[14 + 20 + 12] = 0x10;
    let arp = ethernet(0x0806, &[0; 28]);
    let report = told(pcap(1, &[(0, cut), (1, fragment), (2, broken), (3, arp), (4, vec![1, 2, 3])]));
    let capture = &report.capture;
    assert_eq!((capture.packets, capture.tcp_packets, capture.fragments), (5, 1, 1));
    assert_eq!((capture.malformed, capture.not_ip), (2, 1));
    assert_eq!(report.flows[0].up.data.payload_bytes, 1000);
}

/// A sender's card cuts packets: IPv4 has no room for the length and says 0.
#[test]
fn a_length_of_zero_is_the_frames() {
    let mut frame = DATA.frame();
    frame[14 + 2..14 + 4].copy_from_slice(&[0, 0]);
    assert_eq!(one(1, frame).flows[0].up.data.payload_bytes, 1000);
}

/// Buffers of 100,000 bytes in tunnels: the lengths of IP and UDP have no room for that and are 0, and those of the
/// jumbogram stand among its hop-by-hop options, behind padding.
#[test]
fn buffers_of_more_than_64_kib_are_opened() {
    let mut segment = DATA;
    segment.length = 0;
    let mut inner = segment.ip();
    inner.resize(40 + 100_000, 0);
    inner[2..4].fill(0);
    // The checksum of the header without its length.
    inner[10..12].fill(0);
    let sum: u32 = inner[..20].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    inner[10..12].copy_from_slice(&sum.to_be_bytes());
    let tcp = inner[20..].to_vec();
    let options = [&[6, 0, 1, 0][..], &[0xc2, 4]].concat();
    let mut six = ipv6(0, CE, &[]);
    let length = (8 + 4 + tcp.len()) as u32;
    // Next header, length in units of 8 bytes less one, PadN of no bytes twice, the jumbo option, and padding.
    six.extend([&[6, 1, 1, 0, 1, 0][..], &options[4..], &(length + 4).to_be_bytes(), &[1, 2, 0, 0]].concat());
    six.extend(&tcp);
    let bridged = |ethertype, packet: &[u8]| ethernet(ethertype, packet);
    let zero = |mut datagram: Vec<u8>| {
        datagram[4..6].fill(0);
        datagram
    };
    let big = |datagram: Vec<u8>| {
        let mut frame = outer(17, &[]);
        frame[14 + 2..14 + 4].fill(0);
        frame.extend(datagram);
        frame
    };
    let vxlan = [&[8, 0, 0, 0, 0, 0, 1, 0][..], &bridged(0x0800, &inner)].concat();
    let vxlan_six = [&[8, 0, 0, 0, 0, 0, 1, 0][..], &bridged(0x86dd, &six)].concat();
    let geneve = [&[0, 0, 0x65, 0x58, 0, 0, 1, 0][..], &bridged(0x0800, &inner)].concat();
    let cases = [
        ("vxlan", big(zero(udp(4789, &vxlan)))),
        ("vxlan", big(zero(udp(8472, &vxlan_six)))),
        // Older kernels leave the lowest 16 bits of UDP's length.
        ("vxlan", big(udp(4789, &vxlan))),
        ("geneve", big(zero(udp(6081, &geneve)))),
        ("gue", big(zero(udp(6080, &[&[0, 4, 0, 0][..], &inner].concat())))),
        ("fou", big(zero(udp(5555, &inner)))),
        ("fou", big(zero(udp(5555, &six)))),
    ];
    for (what, frame) in cases {
        let report = one(1, frame);
        assert_eq!(report.flows.len(), 1, "{what}: {:?}", report.capture);
        assert_eq!(
            (&report.flows[0].tunnels[..], report.flows[0].up.data.payload_bytes),
            (&[what][..], 100_000)
        );
    }
}
