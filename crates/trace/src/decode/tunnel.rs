//! Packets inside packets.

use super::ip::{Fragment, Ip};
use super::{be16, link, protocol};

const VXLAN_PORTS: [u16; 2] = [4789, 8472];
const GENEVE_PORT: u16 = 6081;
const GUE_PORT: u16 = 6080;
const BRIDGED: u16 = 0x6558;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

const IPIP: u8 = 0;
const SIX_IN_FOUR: u8 = 1;
const IP6: u8 = 2;
const GRE: u8 = 3;
const VXLAN: u8 = 4;
const GENEVE: u8 = 5;
const FOU: u8 = 6;
const GUE: u8 = 7;

/// Names, by the numbers above.
pub const NAMES: [&str; 8] = ["ipip", "6in4", "ip6", "gre", "vxlan", "geneve", "fou", "gue"];

/// The packet inside, and the kind of tunnel; none if there is none that can be read.
pub fn open<'a>(ip: &Ip<'a>) -> Option<(u8, Ip<'a>)> {
    if ip.fragment != Fragment::No {
        return None;
    }
    match ip.protocol {
        protocol::UDP => udp(ip.payload, ip.payload_length),
        protocol::IPIP => Some((if ip.v6 { IP6 } else { IPIP }, Ip::read(ip.payload, ip.payload_length)?)),
        protocol::IPV6 => {
            Some((if ip.v6 { IP6 } else { SIX_IN_FOUR }, Ip::read(ip.payload, ip.payload_length)?))
        }
        protocol::GRE => Some((GRE, gre(ip.payload, ip.payload_length)?)),
        _ => None,
    }
}

fn gre(bytes: &[u8], length: u32) -> Option<Ip<'_>> {
    let header = bytes.first_chunk::<4>()?;
    // Version 0; the checksum, the key and the sequence number have four bytes each.
    if header[1] & 7 != 0 {
        return None;
    }
    let size = 4 + 4 * (header[0] & 0b1011_0000).count_ones() as usize;
    inside(be16(header, 2), bytes.get(size..)?, length.checked_sub(size as u32)?)
}

/// What an EtherType says.
fn inside(ethertype: u16, bytes: &[u8], length: u32) -> Option<Ip<'_>> {
    match ethertype {
        IPV4 | IPV6 => Ip::read(bytes, length),
        BRIDGED => {
            let header = link::ethernet(bytes).ok()?;
            Ip::read(&bytes[header..], length.checked_sub(header as u32)?)
        }
        _ => None,
    }
}

fn udp(bytes: &[u8], length: u32) -> Option<(u8, Ip<'_>)> {
    let header = bytes.first_chunk::<8>()?;
    let port = be16(header, 2);
    let length = super::udp_length(*header, length)?;
    let bytes = &bytes[8..];
    let first = bytes.first_chunk::<4>()?;
    if VXLAN_PORTS.contains(&port) && first[0] & 8 != 0 {
        return Some((VXLAN, inside(BRIDGED, bytes.get(8..)?, length.checked_sub(8)?)?));
    }
    if port == GENEVE_PORT && first[0] >> 6 == 0 {
        let size = 8 + 4 * usize::from(first[0] & 63);
        let ethertype = be16(first, 2);
        return Some((GENEVE, inside(ethertype, bytes.get(size..)?, length.checked_sub(size as u32)?)?));
    }
    if port == GUE_PORT && first[0] >> 5 == 0 {
        let size = 4 + 4 * usize::from(first[0] & 31);
        let inner = || Ip::read(bytes.get(size..)?, length.checked_sub(size as u32)?);
        if matches!(first[1], protocol::IPIP | protocol::IPV6)
            && let Some(inner) = inner()
        {
            return Some((GUE, inner));
        }
    }
    // FOU has no header and no port of its own: the packet must look like one in every respect.
    if Ip::is_v4(bytes, length) || Ip::is_v6(bytes, length) {
        return Some((FOU, Ip::read(bytes, length)?));
    }
    if *first == [0, 0, 8, 0] && Ip::is_v4(&bytes[4..], length.checked_sub(4)?) {
        return Some((FOU, Ip::read(&bytes[4..], length - 4)?));
    }
    None
}
