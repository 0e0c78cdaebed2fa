//! Headers: from a frame to the TCP segment, the datagram or the echo in it, through tunnels where they can be read.
//!
//! Sources: RFC 791, RFC 8200, RFC 9293; IEEE 802.1Q and 802.2; RFC 3032 (MPLS); RFC 4302 (AH); LINKTYPE_LINUX_SLL and _SLL2 of tcpdump.org; RFC 2784 and 2890
//! (GRE), RFC 2003 (IP in IP), RFC 4213 (6in4), RFC 7348 (VXLAN), RFC 8926 (Geneve), Linux's FOU and GUE, RFC 2516 (PPPoE).
//!
//! Lengths are those that the IP header tells, so that packets of which the capture kept only the begin count whole.

mod ip;
mod link;
mod tcp;
mod tunnel;

use std::net::{IpAddr, SocketAddr};

pub use ip::Ip;
pub use link::{can_be_read, name as link_name};
pub use tcp::{AccEcnOption, Missing, Options, Segment};

use ip::Fragment;

/// How deep tunnels are followed.
const DEEPEST: usize = 4;

/// IP's protocol numbers.
pub mod protocol {
    #![expect(missing_docs, reason = "they are IANA's names")]
    pub const ICMP: u8 = 1;
    pub const IPIP: u8 = 4;
    pub const TCP: u8 = 6;
    pub const UDP: u8 = 17;
    pub const IPV6: u8 = 41;
    pub const GRE: u8 = 47;
    pub const ICMPV6: u8 = 58;
}

/// The tunnels around a packet, from the outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tunnels {
    kinds: [u8; DEEPEST],
    depth: u8,
}

impl Tunnels {
    /// Their names.
    pub fn names(self) -> Vec<&'static str> {
        self.kinds[..usize::from(self.depth)].iter().map(|kind| tunnel::NAMES[usize::from(*kind)]).collect()
    }

    fn push(&mut self, kind: u8) -> bool {
        let free = usize::from(self.depth) < DEEPEST;
        if free {
            self.kinds[usize::from(self.depth)] = kind;
            self.depth += 1;
        }
        free
    }
}

/// What a frame carries.
#[derive(Debug)]
pub enum Payload<'a> {
    /// A TCP segment.
    Tcp(Segment<'a>),
    /// A UDP datagram: its ends, its payload's length by the headers, and what was kept of it.
    Udp {
        /// Who sent it.
        source: SocketAddr,
        /// Who is to receive it.
        destination: SocketAddr,
        /// Length of the payload by the headers.
        length: u32,
        /// What was kept of it.
        bytes: &'a [u8],
    },
    /// An ICMP or ICMPv6 echo.
    Echo {
        /// Its identifier.
        identifier: u16,
        /// Its sequence number.
        sequence: u16,
        /// Whether it is a reply.
        reply: bool,
    },
    /// Another ICMP or ICMPv6 message.
    Icmp,
    /// A later fragment of something.
    Fragment,
    /// Another protocol.
    Other,
    /// A header that contradicts itself or was cut off.
    Malformed,
}

/// A frame, read as far as it can be.
#[derive(Debug)]
pub struct Decoded<'a> {
    /// The outermost IP header.
    pub outer: Ip<'a>,
    /// The innermost one that was read.
    pub ip: Ip<'a>,
    /// The tunnels between these.
    pub tunnels: Tunnels,
    /// Number of the interface where the frame names it itself (cooked v2), or 0.
    pub device: u32,
    /// What the innermost carries.
    pub payload: Payload<'a>,
}

/// Why a frame has no [`Decoded`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotIp {
    /// It carries something else.
    Other,
    /// Its headers were cut off, or contradict themselves.
    Malformed,
}

/// Reads a frame of a link type of which [`can_be_read`] says yes. `length` is its length on the wire.
pub fn decode(link_type: u32, frame: &[u8], length: u32) -> Result<Decoded<'_>, NotIp> {
    let link::Link { header, device, bytes } = link::strip(link_type, frame)?;
    let outer = Ip::read(bytes, length.saturating_sub(header)).ok_or(NotIp::Malformed)?;
    let mut tunnels = Tunnels::default();
    let mut ip = outer;
    while let Some((kind, inner)) = tunnel::open(&ip) {
        if !tunnels.push(kind) {
            break;
        }
        ip = inner;
    }
    Ok(Decoded { outer, ip, tunnels, device, payload: payload(&ip) })
}

fn payload<'a>(ip: &Ip<'a>) -> Payload<'a> {
    if ip.fragment == Fragment::Later {
        return Payload::Fragment;
    }
    let bytes = ip.payload;
    match ip.protocol {
        protocol::TCP => Segment::read(bytes, ip.payload_length).map_or(Payload::Malformed, Payload::Tcp),
        protocol::UDP => udp(ip),
        protocol::ICMP | protocol::ICMPV6 => {
            let reply = match (ip.protocol, bytes.first()) {
                (protocol::ICMP, Some(8)) | (protocol::ICMPV6, Some(128)) => false,
                (protocol::ICMP, Some(0)) | (protocol::ICMPV6, Some(129)) => true,
                (_, None) => return Payload::Malformed,
                _ => return Payload::Icmp,
            };
            match bytes.first_chunk::<8>() {
                Some([_, _, _, _, i, j, s, t]) => Payload::Echo {
                    identifier: u16::from_be_bytes([*i, *j]),
                    sequence: u16::from_be_bytes([*s, *t]),
                    reply,
                },
                None => Payload::Malformed,
            }
        }
        _ => Payload::Other,
    }
}

fn udp<'a>(ip: &Ip<'a>) -> Payload<'a> {
    let Some(header) = ip.payload.first_chunk::<8>() else { return Payload::Malformed };
    // A first fragment is shorter than its datagram.
    let length = match ip.fragment {
        Fragment::First => ip.payload_length.checked_sub(8),
        _ => udp_length(*header, ip.payload_length),
    };
    let Some(length) = length else { return Payload::Malformed };
    let bytes = &ip.payload[8..];
    Payload::Udp {
        source: SocketAddr::new(ip.source(), be16(header, 0)),
        destination: SocketAddr::new(ip.destination(), be16(header, 2)),
        length,
        bytes: &bytes[..bytes.len().min(length as usize)],
    }
}

/// Length of what a datagram carries, by its header where that has room for it. A datagram of more than 65,535 bytes (BIG
/// TCP in a tunnel, jumbograms) has a length of 0, or the lowest 16 bits of it. `length` is that of the IP header.
fn udp_length(header: [u8; 8], length: u32) -> Option<u32> {
    let told = u32::from(be16(&header, 4));
    if told == 0 || length > u32::from(u16::MAX) {
        length.checked_sub(8)
    } else {
        Some(told).filter(|told| *told <= length)?.checked_sub(8)
    }
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// An address that holds either version: IPv4 as ::ffff:a.b.c.d.
pub type Address = u128;

const MAPPED: u128 = 0xffff_0000_0000;

/// As `std` has it.
pub fn address(mapped: Address, v6: bool) -> IpAddr {
    if v6 { IpAddr::V6(mapped.into()) } else { IpAddr::V4((mapped as u32).into()) }
}
