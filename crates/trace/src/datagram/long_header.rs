//! QUIC's long headers: what begins a datagram of a handshake, and how long its first packet is.
//!
//! Sources: RFC 8999, RFC 9000 section 17.2, RFC 9369 section 3.

/// RFC 9000 section 17.2: the longest connection ID of versions 1 and 2.
pub(super) const LONGEST_ID: usize = 20;
const HEXADECIMAL: &[u8; 16] = b"0123456789abcdef";

/// A connection ID.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id {
    pub length: u8,
    bytes: [u8; LONGEST_ID],
}

/// The type of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Initial,
    ZeroRtt,
    Handshake,
    Retry,
    VersionNegotiation,
    Unknown,
}

/// A long header.
#[derive(Debug)]
pub(super) struct Long {
    pub version: u32,
    pub kind: Kind,
    pub destination: Id,
    pub source: Id,
    /// Bytes of the whole packet; None if it takes the rest of the datagram.
    pub length: Option<usize>,
}

impl Id {
    /// None if it is too long.
    pub fn new(bytes: &[u8]) -> Option<Id> {
        let mut id = Id { length: bytes.len() as u8, ..Id::default() };
        id.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(id)
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    pub fn hexadecimal(&self) -> String {
        self.bytes().iter().fold(String::new(), |mut text, byte| {
            text.push(char::from(HEXADECIMAL[usize::from(byte >> 4)]));
            text.push(char::from(HEXADECIMAL[usize::from(byte & 15)]));
            text
        })
    }
}

/// Versions that are kept free so that nobody takes the number of versions for fixed (RFC 9000 section 15).
pub(super) fn is_reserved(version: u32) -> bool {
    version & 0x0f0f_0f0f == 0x0a0a_0a0a
}

/// Whether packets of the version look as those of version 1: itself, version 2, the last drafts, and mvfst's own.
fn is_like_version_1(version: u32) -> bool {
    matches!(version, 1 | 0x6b33_43cf | 0xff00_001b..=0xff00_0022 | 0xface_b000..=0xface_b00f)
}

pub(super) fn version_name(version: u32) -> String {
    match version {
        1 => "1".into(),
        0x6b33_43cf => "2".into(),
        0xff00_0000..=0xff00_00ff => format!("draft-{}", version & 0xff),
        _ => format!("{version:08x}"),
    }
}

/// The long header at the beginning of `packet`, which was captured from a datagram that has `left` bytes from there
/// on; None if it cannot be one. Ends that agreed to it clear the bit that tells QUIC from other protocols (RFC 9287),
/// which is taken from known versions if `greased`.
pub(super) fn long(packet: &[u8], left: usize, greased: bool) -> Option<Long> {
    let (&first, rest) = packet.split_first()?;
    let (version, rest) = rest.split_first_chunk::<4>()?;
    let version = u32::from_be_bytes(*version);
    let (destination, rest) = id(rest)?;
    let (source, rest) = id(rest)?;
    let begin = packet.len() - rest.len();
    let whole = |kind, length| Some(Long { version, kind, destination, source, length });
    if version == 0 {
        // The rest is the versions that the server knows.
        return if left > begin && (left - begin).is_multiple_of(4) {
            whole(Kind::VersionNegotiation, None)
        } else {
            None
        };
    }
    if first & 0x80 == 0 || first & 0x40 == 0 && !(greased && is_like_version_1(version)) {
        return None;
    }
    if is_reserved(version) {
        return whole(Kind::Unknown, None);
    }
    if !is_like_version_1(version) {
        return None;
    }
    // RFC 9369 section 3.2: version 2 numbers the types from one further on.
    let types = [Kind::Initial, Kind::ZeroRtt, Kind::Handshake, Kind::Retry];
    let number = usize::from(first >> 4 & 3);
    let kind = types[if version == 0x6b33_43cf { (number + 3) % 4 } else { number }];
    if kind == Kind::Retry {
        return whole(kind, None);
    }
    let cut = packet.len() < left;
    let mut at = rest;
    if kind == Kind::Initial {
        let (after, token) = varint(at)?;
        let token = usize::try_from(token).ok()?;
        if token > left {
            return None;
        }
        // Behind a token that was cut off nothing can be told.
        let Some(after) = after.get(token..) else { return if cut { whole(kind, None) } else { None } };
        at = after;
    }
    let Some((after, length)) = varint(at) else { return if cut { whole(kind, None) } else { None } };
    let length = usize::try_from(length).ok()?.checked_add(packet.len() - after.len())?;
    // A packet number of one byte, three more and the 16 bytes of a tag that hides it (RFC 9001 section 5.4.2).
    if length > left || length < packet.len() - after.len() + 20 { None } else { whole(kind, Some(length)) }
}

/// A connection ID behind its length, and what follows it.
fn id(bytes: &[u8]) -> Option<(Id, &[u8])> {
    let (&length, rest) = bytes.split_first()?;
    let (id, rest) = rest.split_at_checked(usize::from(length))?;
    Some((Id::new(id)?, rest))
}

/// A number of 1, 2, 4 or 8 bytes (RFC 9000 section 16), and what follows it.
fn varint(bytes: &[u8]) -> Option<(&[u8], u64)> {
    let length = 1 << (bytes.first()? >> 6);
    let (number, rest) = bytes.split_at_checked(length)?;
    let value = number.iter().fold(0, |value, &byte| value << 8 | u64::from(byte));
    Some((rest, value & (u64::MAX >> (64 - 8 * length as u32 + 2))))
}
