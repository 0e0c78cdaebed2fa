//! The TCP header and its options.
//!
//! Sources: RFC 9293, RFC 7323 (timestamps), RFC 2018 and 2883 (SACK), RFC 9768 (AccECN: options 172 and 174, and the
//! experimental option 254 with 0xacce, 0xacc0 or 0xacc1 of its drafts).

use super::{be16, be32};

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const PSH: u8 = 8;
const ACK: u8 = 16;
const URG: u8 = 32;
const ECE: u8 = 64;
const CWR: u8 = 128;

const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
const ACCECN_0: u8 = 172;
const ACCECN_1: u8 = 174;
const EXPERIMENT: u8 = 254;

/// Byte counters of an AccECN option; those that were left out are absent. 24 bits each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccEcnOption {
    /// ECT(0)
    pub e0: Option<u32>,
    /// CE
    pub ce: Option<u32>,
    /// ECT(1)
    pub e1: Option<u32>,
    /// Whether it is one of the drafts', whose counter for ECT(1) begins at 0.
    pub draft: bool,
}

/// A TCP segment without its payload.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// Who sent it.
    pub source_port: u16,
    /// Who is to receive it.
    pub destination_port: u16,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Length of the payload by the headers.
    pub payload_length: u32,
    /// The window as it stands there, without scale.
    pub window: u16,
    flags: u8,
    /// AE, the former NS
    pub ae: bool,
    options: &'a [u8],
    /// Length of the options by the header, of which the capture may have kept less.
    options_length: usize,
    /// Value and echo.
    pub timestamps: Option<(u32, u32)>,
    /// Whether there are other options than timestamps.
    pub more_options: bool,
}

/// What stands in the options beside timestamps.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Maximum segment size.
    pub mss: Option<u16>,
    /// Window scale.
    pub window_scale: Option<u8>,
    /// Whether SACK may be sent.
    pub sack_permitted: bool,
    /// SACK blocks, as many as [`Options::blocks`] says.
    pub sack: [(u32, u32); 4],
    /// How many blocks there are.
    pub blocks: usize,
    /// AccECN counters.
    pub accecn: Option<AccEcnOption>,
    /// Whether there was another.
    pub other: bool,
    /// Whether they contradict themselves.
    pub malformed: bool,
    /// Whether the capture cut them off.
    pub cut: bool,
    /// What may be among the options that were cut off.
    pub missing: Missing,
}

/// The options that are looked at: their kind, least length and name.
const KINDS: [(u8, usize, &str); 6] = [
    (MSS, 4, "mss"),
    (WINDOW_SCALE, 3, "window_scale"),
    (SACK_PERMITTED, 2, "sack_permitted"),
    (TIMESTAMPS, 10, "timestamps"),
    (SACK, 10, "sack"),
    (ACCECN_0, 2, "accecn"),
];
/// Those of [`KINDS`] that only a SYN carries, and those that it does not carry.
const OF_SYN: u8 = 0b00_0111;
const NOT_OF_SYN: u8 = 0b01_0000;

/// Options that may be among those that the capture cut off: bits by their places in [`KINDS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missing(u8);

#[expect(missing_docs, reason = "they are the options' names")]
impl Missing {
    pub const WINDOW_SCALE: Missing = Missing(1 << 1);
    pub const SACK_PERMITTED: Missing = Missing(1 << 2);
    pub const TIMESTAMPS: Missing = Missing(1 << 3);
    pub const SACK: Missing = Missing(1 << 4);
    pub const ACCECN: Missing = Missing(1 << 5);

    /// Whether one of `others` may be missing.
    pub fn has(self, others: Missing) -> bool {
        self.0 & others.0 != 0
    }

    /// What is missing here or there.
    pub fn join(&mut self, other: Missing) {
        self.0 |= other.0;
    }

    /// Without what another SYN of the same end has: MSS, window scale, SACK permitted.
    pub fn known(self, mss: bool, window_scale: bool, sack_permitted: bool) -> Missing {
        let known =
            [mss, window_scale, sack_permitted].iter().rev().fold(0, |bits, &bit| bits << 1 | u8::from(bit));
        Missing(self.0 & !known)
    }

    /// The options' names.
    pub fn names(self) -> Vec<&'static str> {
        (0..).zip(KINDS).filter(|(i, _)| self.0 >> i & 1 != 0).map(|(_, (.., name))| name).collect()
    }

    /// What fits into `room` bytes behind the options `seen`; `partial` was begun there.
    fn within(room: usize, partial: Option<u8>, seen: u8, syn: bool) -> Missing {
        let fits = |kind: u8, least: usize| least <= room || partial.map(plain) == Some(kind);
        let bits = (0..).zip(KINDS).filter(|(_, (kind, least, _))| fits(*kind, *least));
        let bits = bits.fold(0, |bits, (i, _)| bits | 1 << i);
        Missing(bits & !seen & if syn { !NOT_OF_SYN } else { !OF_SYN })
    }
}

/// The kind by which [`KINDS`] names an option that has several.
fn plain(kind: u8) -> u8 {
    if matches!(kind, ACCECN_1 | EXPERIMENT) { ACCECN_0 } else { kind }
}

#[expect(missing_docs, reason = "they are the flags' names")]
impl Segment<'_> {
    /// All of them: FIN is bit 0, CWR bit 7, AE bit 8.
    pub fn flags(&self) -> u16 {
        u16::from(self.ae) << 8 | u16::from(self.flags)
    }
    pub fn syn(&self) -> bool {
        self.flags & SYN != 0
    }
    pub fn fin(&self) -> bool {
        self.flags & FIN != 0
    }
    pub fn rst(&self) -> bool {
        self.flags & RST != 0
    }
    pub fn psh(&self) -> bool {
        self.flags & PSH != 0
    }
    pub fn has_ack(&self) -> bool {
        self.flags & ACK != 0
    }
    pub fn urg(&self) -> bool {
        self.flags & URG != 0
    }
    pub fn ece(&self) -> bool {
        self.flags & ECE != 0
    }
    pub fn cwr(&self) -> bool {
        self.flags & CWR != 0
    }
    /// The three bits of AE, CWR and ECE as a number.
    pub fn ace(&self) -> u8 {
        u8::from(self.ae) << 2 | self.flags >> 6
    }
}

impl<'a> Segment<'a> {
    /// Reads a header; `length` is that of the segment by the IP header. None if it was cut off or contradicts itself.
    pub fn read(bytes: &'a [u8], length: u32) -> Option<Segment<'a>> {
        let header = bytes.first_chunk::<20>()?;
        let size = u32::from(header[12] >> 4) * 4;
        if size < 20 {
            return None;
        }
        let payload_length = length.checked_sub(size)?;
        let options = &bytes[20..bytes.len().min(size as usize)];
        let mut segment = Segment {
            source_port: be16(header, 0),
            destination_port: be16(header, 2),
            seq: be32(header, 4),
            ack: be32(header, 8),
            payload_length,
            window: be16(header, 14),
            flags: header[13],
            ae: header[12] & 1 != 0,
            options,
            options_length: size as usize - 20,
            timestamps: None,
            more_options: false,
        };
        // Nearly every segment has these and nothing else, in this form.
        match options {
            [] => segment.more_options = segment.options_length > 0,
            [1, 1, TIMESTAMPS, 10, rest @ ..] if rest.len() >= 8 => {
                segment.timestamps = Some((be32(rest, 0), be32(rest, 4)));
                segment.more_options = segment.options_length > 12;
            }
            _ => {
                segment.more_options = true;
                segment.timestamps = each(options, |kind, value| {
                    (kind == TIMESTAMPS && value.len() == 8).then(|| (be32(value, 0), be32(value, 4)))
                })
                .0;
            }
        }
        Some(segment)
    }

    /// The options beside timestamps.
    pub fn options(&self) -> Options {
        let mut found = Options::default();
        let mut seen = 0;
        let (_, end) = each::<()>(self.options, |kind, value| {
            seen |= KINDS.iter().position(|(known, ..)| *known == plain(kind)).map_or(0, |i| 1 << i);
            match (kind, value.len()) {
                (MSS, 2) => found.mss = Some(be16(value, 0)),
                (WINDOW_SCALE, 1) => found.window_scale = Some(value[0].min(14)),
                (SACK_PERMITTED, 0) => found.sack_permitted = true,
                (SACK, 8 | 16 | 24 | 32) => {
                    found.blocks = value.len() / 8;
                    for (into, block) in found.sack.iter_mut().zip(value.chunks_exact(8)) {
                        *into = (be32(block, 0), be32(block, 4));
                    }
                }
                (TIMESTAMPS, 8) => {}
                (ACCECN_0, 0 | 3 | 6 | 9) => found.accecn = Some(AccEcnOption::read(value, false, false)),
                (ACCECN_1, 0 | 3 | 6 | 9) => found.accecn = Some(AccEcnOption::read(value, true, false)),
                (EXPERIMENT, 2 | 5 | 8 | 11) => match be16(value, 0) {
                    0xacce | 0xacc0 => found.accecn = Some(AccEcnOption::read(&value[2..], false, true)),
                    0xacc1 => found.accecn = Some(AccEcnOption::read(&value[2..], true, true)),
                    _ => found.other = true,
                },
                (MSS | WINDOW_SCALE | SACK_PERMITTED | SACK | TIMESTAMPS | ACCECN_0 | ACCECN_1, _) => {
                    found.malformed = true;
                }
                _ => found.other = true,
            }
            None
        });
        let Some(end) = end else { return found };
        let left = self.options_length - end;
        // How long the option is that was begun; room is what is left for others behind it.
        let begun = match self.options[end..] {
            [] => 0,
            [kind] => {
                KINDS.iter().find(|(known, ..)| *known == plain(kind)).map_or(2, |(_, least, _)| *least)
            }
            [_, length, ..] => usize::from(length).max(2),
        };
        if self.options.len() == self.options_length
            || begun > left
            || matches!(self.options[end..], [_, 0 | 1, ..])
        {
            found.malformed |= left > 0;
            return found;
        }
        found.cut = true;
        // A SYN has no AccECN option, a SYN/ACK may.
        let seen = if self.syn() && !self.has_ack() { seen | Missing::ACCECN.0 } else { seen };
        found.missing = Missing::within(left - begun, self.options.get(end).copied(), seen, self.syn());
        found
    }
}

/// Calls `look` with each option until it answers; its answer, and where the options end or cannot be read on. None if
/// their list says itself that it ends.
fn each<T>(options: &[u8], mut look: impl FnMut(u8, &[u8]) -> Option<T>) -> (Option<T>, Option<usize>) {
    let mut rest = options;
    loop {
        match rest {
            [0, ..] => return (None, None),
            [1, behind @ ..] => rest = behind,
            [kind, length, ..] if *length >= 2 && usize::from(*length) <= rest.len() => {
                let (option, behind) = rest.split_at(usize::from(*length));
                if let Some(answer) = look(*kind, &option[2..]) {
                    return (Some(answer), None);
                }
                rest = behind;
            }
            _ => return (None, Some(options.len() - rest.len())),
        }
    }
}

impl AccEcnOption {
    fn read(value: &[u8], ect1_first: bool, draft: bool) -> AccEcnOption {
        let at = |i: usize| {
            value
                .get(3 * i..3 * i + 3)
                .map(|v| u32::from(v[0]) << 16 | u32::from(v[1]) << 8 | u32::from(v[2]))
        };
        let (first, last) = (at(0), at(2));
        let (e0, e1) = if ect1_first { (last, first) } else { (first, last) };
        AccEcnOption { e0, ce: at(1), e1, draft }
    }
}
