//! IPv4 and IPv6.

use std::net::IpAddr;

use super::{Address, MAPPED, address, be16, be32, protocol};

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;
const JUMBO_PAYLOAD: u8 = 0xc2;
/// More extension headers than any packet has.
const EXTENSIONS: usize = 16;

/// Whether a packet is a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fragment {
    /// It is whole.
    No,
    /// It is the first part.
    First,
    /// It is a later part.
    Later,
}

/// An IP packet.
#[derive(Clone, Copy, Debug)]
pub struct Ip<'a> {
    /// Who sent it.
    pub from: Address,
    /// Who is to receive it.
    pub to: Address,
    /// Whether it is IPv6.
    pub v6: bool,
    /// The two bits of the ECN field.
    pub ecn: u8,
    /// What it carries (IANA's protocol numbers).
    pub protocol: u8,
    /// Whether it is a part of one.
    pub fragment: Fragment,
    /// Its length by its header.
    pub length: u32,
    /// Length of what it carries, by its header.
    pub payload_length: u32,
    /// What was kept of that.
    pub payload: &'a [u8],
}

impl<'a> Ip<'a> {
    /// Reads a header. `room` is what the frame has for the packet; it stands in for a length that is given as 0, as senders'
    /// captures have it for packets that the network card is to cut.
    pub fn read(bytes: &'a [u8], room: u32) -> Option<Ip<'a>> {
        match bytes.first()? >> 4 {
            4 => Ip::v4(bytes, room),
            6 => Ip::v6(bytes, room),
            _ => None,
        }
    }

    /// Who sent it.
    pub fn source(&self) -> IpAddr {
        address(self.from, self.v6)
    }

    /// Who is to receive it.
    pub fn destination(&self) -> IpAddr {
        address(self.to, self.v6)
    }

    fn v4(bytes: &'a [u8], room: u32) -> Option<Ip<'a>> {
        let header = usize::from(bytes[0] & 15) * 4;
        if header < 20 || bytes.len() < header {
            return None;
        }
        let told = u32::from(be16(bytes, 2));
        let length = if told == 0 { room } else { told };
        let part = be16(bytes, 6);
        let fragment = match (part & 0x1fff, part & 0x2000) {
            (0, 0) => Fragment::No,
            (0, _) => Fragment::First,
            _ => Fragment::Later,
        };
        // AH authenticates and hides nothing (RFC 4302).
        let (mut protocol, mut at) = (bytes[9], header);
        if protocol == AUTHENTICATION && fragment == Fragment::No {
            let size = (usize::from(*bytes.get(at + 1)?) + 2) * 4;
            protocol = bytes[at];
            at += size;
        }
        let payload_length = length.checked_sub(at as u32)?;
        let payload = bytes.get(at..)?;
        Some(Ip {
            from: MAPPED | u128::from(be32(bytes, 12)),
            to: MAPPED | u128::from(be32(bytes, 16)),
            v6: false,
            ecn: bytes[1] & 3,
            protocol,
            fragment,
            length,
            payload_length,
            payload: &payload[..payload.len().min(payload_length as usize)],
        })
    }

    fn v6(bytes: &'a [u8], room: u32) -> Option<Ip<'a>> {
        let header = bytes.first_chunk::<40>()?;
        let told = u32::from(be16(header, 4));
        let mut length = if told == 0 { room } else { 40 + told };
        let mut next = header[6];
        let mut at = 40;
        let mut fragment = Fragment::No;
        for _ in 0..EXTENSIONS {
            let size = match next {
                HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS => (usize::from(*bytes.get(at + 1)?) + 1) * 8,
                AUTHENTICATION => (usize::from(*bytes.get(at + 1)?) + 2) * 4,
                FRAGMENT if fragment != Fragment::Later => 8,
                _ => break,
            };
            let extension = bytes.get(at..at + size)?;
            match next {
                FRAGMENT => {
                    let part = be16(extension, 2);
                    fragment = match (part >> 3, part & 1) {
                        (0, 0) => fragment,
                        (0, _) => Fragment::First,
                        _ => Fragment::Later,
                    };
                }
                HOP_BY_HOP if told == 0 => {
                    length = jumbo(&extension[2..]).map_or(length, |length| length.saturating_add(40));
                }
                _ => {}
            }
            next = extension[0];
            at += size;
            if fragment == Fragment::Later {
                break;
            }
        }
        let payload_length = length.checked_sub(at as u32)?;
        let payload = &bytes[at..];
        Some(Ip {
            from: u128::from_be_bytes(*header[8..].first_chunk()?),
            to: u128::from_be_bytes(*header[24..].first_chunk()?),
            v6: true,
            ecn: (header[1] >> 4) & 3,
            protocol: next,
            fragment,
            length,
            payload_length,
            payload: &payload[..payload.len().min(payload_length as usize)],
        })
    }

    /// Whether the header begins an IPv4 packet with a right checksum and, where it is in a tunnel, of this length.
    pub fn is_v4(bytes: &[u8], length: u32) -> bool {
        let Some(header) = bytes.first_chunk::<20>() else { return false };
        let sum: u32 = (0..20).step_by(2).map(|at| u32::from(be16(header, at))).sum();
        header[0] == 0x45 && (sum & 0xffff) + (sum >> 16) == 0xffff && is_length(be16(header, 2), length)
    }

    /// Whether the header begins an IPv6 packet of this length that carries something usual.
    pub fn is_v6(bytes: &[u8], length: u32) -> bool {
        let Some(header) = bytes.first_chunk::<40>() else { return false };
        let jumbo = header[6] == HOP_BY_HOP && be16(header, 4) == 0;
        header[0] >> 4 == 6
            && length.checked_sub(40).is_some_and(|length| is_length(be16(header, 4), length))
            && (jumbo || matches!(header[6], protocol::TCP | protocol::UDP | protocol::ICMPV6))
    }
}

/// Whether a length field of 16 bits tells this length: 0 where it has no room for it.
fn is_length(told: u16, length: u32) -> bool {
    u16::try_from(length).unwrap_or(0) == told
}

/// The length of a jumbogram by its hop-by-hop options (RFC 2675).
fn jumbo(mut options: &[u8]) -> Option<u32> {
    loop {
        options = match options {
            [0, rest @ ..] => rest,
            [JUMBO_PAYLOAD, 4, _, _, _, _, ..] => return Some(be32(options, 2)),
            [_, length, rest @ ..] => rest.get(usize::from(*length)..)?,
            _ => return None,
        };
    }
}
