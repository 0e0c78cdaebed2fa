//! What is around IP on each kind of link.

use super::{NotIp, be16, be32};

const NULL: u32 = 0;
const ETHERNET: u32 = 1;
const PPP: u32 = 9;
const RAW_OLD: [u32; 2] = [12, 14];
const PPP_HDLC: u32 = 50;
const PPP_ETHER: u32 = 51;
const RAW: u32 = 101;
const C_HDLC: u32 = 104;
const LOOP: u32 = 108;
const SLL: u32 = 113;
const IPV4: u32 = 228;
const IPV6: u32 = 229;
const SLL2: u32 = 276;

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const ETHERTYPE_VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
const ETHERTYPE_PPPOE: u16 = 0x8864;
const ETHERTYPE_MPLS: [u16; 2] = [0x8847, 0x8848];
const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;
/// An Ethernet type field up to this is a length (IEEE 802.3), and LLC comes behind it.
const LONGEST_LLC: u16 = 1500;
/// LLC and SNAP with an EtherType, which comes next.
const SNAP: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0];
/// The last label of an MPLS stack has this bit in its third byte.
const BOTTOM_OF_STACK: u8 = 1;

/// Names of link types that are likely to be met.
const NAMES: [(u32, &str); 21] = [
    (NULL, "NULL"),
    (ETHERNET, "ETHERNET"),
    (6, "IEEE802_5"),
    (PPP, "PPP"),
    (PPP_HDLC, "PPP_HDLC"),
    (PPP_ETHER, "PPP_ETHER"),
    (RAW, "RAW"),
    (C_HDLC, "C_HDLC"),
    (105, "IEEE802_11"),
    (LOOP, "LOOP"),
    (SLL, "LINUX_SLL"),
    (119, "IEEE802_11_PRISM"),
    (127, "IEEE802_11_RADIOTAP"),
    (147, "USER0"),
    (187, "BLUETOOTH_HCI_H4"),
    (189, "USB_LINUX"),
    (220, "USB_LINUX_MMAPPED"),
    (IPV4, "IPV4"),
    (IPV6, "IPV6"),
    (239, "NFLOG"),
    (SLL2, "LINUX_SLL2"),
];

/// The name that tcpdump.org gives a link type, if it is a usual one.
pub fn name(link_type: u32) -> Option<&'static str> {
    NAMES.iter().find(|(number, _)| *number == link_type).map(|(_, name)| *name)
}

/// Whether frames of this link type can be read.
pub fn can_be_read(link_type: u32) -> bool {
    RAW_OLD.contains(&link_type)
        || [NULL, ETHERNET, PPP, PPP_HDLC, PPP_ETHER, RAW, C_HDLC, LOOP, SLL, IPV4, IPV6, SLL2]
            .contains(&link_type)
}

/// A frame without its link header.
pub struct Link<'a> {
    /// How long that was.
    pub header: u32,
    /// Number of the interface in a cooked header.
    pub device: u32,
    /// The IP packet, and perhaps padding.
    pub bytes: &'a [u8],
}

/// Takes the link header away.
pub fn strip(link_type: u32, frame: &[u8]) -> Result<Link<'_>, NotIp> {
    let (header, device) = match link_type {
        ETHERNET => (ethernet(frame)?, 0),
        SLL if frame.len() >= 16 => (after(frame, be16(frame, 14), 16)?, 0),
        SLL2 if frame.len() >= 20 => (after(frame, be16(frame, 0), 20)?, be32(frame, 4)),
        NULL | LOOP if frame.len() >= 4 => {
            // A protocol family: in the byte order of whoever captured, and 24, 28 or 30 for IPv6 as systems differ.
            match (be32(frame, 0), be32(frame, 0).swap_bytes()) {
                (2 | 10 | 24 | 28 | 30, _) | (_, 2 | 10 | 24 | 28 | 30) => (4, 0),
                _ => return Err(NotIp::Other),
            }
        }
        PPP | PPP_HDLC => (ppp(frame, 0)?, 0),
        PPP_ETHER => (after(frame, ETHERTYPE_PPPOE, 0)?, 0),
        C_HDLC if frame.len() >= 4 => (after(frame, be16(frame, 2), 4)?, 0),
        RAW | IPV4 | IPV6 | 12 | 14 => (0, 0),
        _ => return Err(NotIp::Malformed),
    };
    Ok(Link { header: header as u32, device, bytes: &frame[header..] })
}

/// Length of everything before the IP header of an Ethernet frame.
pub fn ethernet(frame: &[u8]) -> Result<usize, NotIp> {
    if frame.len() < 14 {
        return Err(NotIp::Malformed);
    }
    after(frame, be16(frame, 12), 14)
}

/// Goes on from an EtherType, behind which `at` is.
fn after(frame: &[u8], mut ethertype: u16, mut at: usize) -> Result<usize, NotIp> {
    while ETHERTYPE_VLAN.contains(&ethertype) {
        if frame.len() < at + 4 {
            return Err(NotIp::Malformed);
        }
        ethertype = be16(frame, at + 2);
        at += 4;
    }
    if ethertype <= LONGEST_LLC && frame.get(at..).is_some_and(|rest| rest.starts_with(&SNAP)) {
        if frame.len() < at + 8 {
            return Err(NotIp::Malformed);
        }
        ethertype = be16(frame, at + 6);
        at += 8;
    }
    match ethertype {
        ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => Ok(at),
        ETHERTYPE_PPPOE => ppp(frame, at + 6),
        _ if ETHERTYPE_MPLS.contains(&ethertype) => mpls(frame, at),
        _ => Err(NotIp::Other),
    }
}

/// Where a PPP frame's IP header begins. Its address and control fields may be absent, and its protocol one byte long
/// (RFC 1661, section 6.5).
fn ppp(frame: &[u8], mut at: usize) -> Result<usize, NotIp> {
    if frame.get(at..).is_some_and(|rest| rest.starts_with(&[0xff, 3])) {
        at += 2;
    }
    let first = *frame.get(at).ok_or(NotIp::Malformed)?;
    let (protocol, at) = if first & 1 != 0 {
        (u16::from(first), at + 1)
    } else if frame.len() >= at + 2 {
        (be16(frame, at), at + 2)
    } else {
        return Err(NotIp::Malformed);
    };
    match protocol {
        PPP_IPV4 | PPP_IPV6 => Ok(at),
        _ => Err(NotIp::Other),
    }
}

/// Goes past an MPLS label stack (RFC 3032). Nothing says what follows it: it is IP if it begins with IP's version.
fn mpls(frame: &[u8], mut at: usize) -> Result<usize, NotIp> {
    loop {
        let label = frame.get(at..at + 4).ok_or(NotIp::Malformed)?;
        at += 4;
        if label[2] & BOTTOM_OF_STACK != 0 {
            break;
        }
    }
    match frame.get(at).ok_or(NotIp::Malformed)? >> 4 {
        4 | 6 => Ok(at),
        _ => Err(NotIp::Other),
    }
}
