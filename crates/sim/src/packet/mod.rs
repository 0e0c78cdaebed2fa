//! What travels: one copyable record for TCP segments, ACKs and probes.

pub mod accecn;
pub mod capture;
pub mod charge;
pub mod frame;
pub mod matching;

use crate::base::units::Time;

/// The ECN field of the IP header (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Ecn {
    /// 00
    #[default]
    NotEct = 0,
    /// 01
    Ect1 = 1,
    /// 10
    Ect0 = 2,
    /// 11
    Ce = 3,
}

impl Ecn {
    /// The codepoint of the two low bits of a TOS byte.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }
    /// Whether an AQM may set CE (or has set it already).
    pub const fn is_capable(self) -> bool {
        !matches!(self, Ecn::NotEct)
    }
}

/// What a packet is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Proto {
    /// A TCP segment; see [`Flags`].
    #[default]
    Tcp,
    /// An ICMP echo request or reply.
    Icmp,
    /// A UDP datagram.
    Udp,
    /// ESP, outside a tunnel.
    Esp,
    /// GRE, outside a tunnel.
    Gre,
}

/// TCP header flags, as bits; the three ECN bits of AccECN live in [`Packet::ace`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u16);

impl Flags {
    /// Synchronise.
    pub const SYN: Flags = Flags(1);
    /// The acknowledgement number counts.
    pub const ACK: Flags = Flags(2);
    /// End of data.
    pub const FIN: Flags = Flags(4);
    /// ECN echo (RFC 3168).
    pub const ECE: Flags = Flags(8);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Flags = Flags(16);
    /// This is the answer to a probe.
    pub const REPLY: Flags = Flags(32);
    /// The first SACK block is a D-SACK (RFC 2883).
    pub const DSACK: Flags = Flags(64);
    /// Echo of SCE (AE's place in the header, which only AccECN uses otherwise).
    pub const ESCE: Flags = Flags(128);
    /// A bit was turned over on the way: the checksum fails where the packet arrives.
    pub const CORRUPT: Flags = Flags(256);
    /// Its memory counts against its socket while it is in its host; see [`crate::packet::charge`].
    pub const CHARGED: Flags = Flags(1024);
    /// Push: the end of a write, of an object, or of an skb with several segments.
    pub const PSH: Flags = Flags(512);
    /// Something may be done to it where it arrives; see [`crate::sim::stimuli`].
    pub const STIMULATED: Flags = Flags(2048);

    /// Whether every bit of `other` is set.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
    /// Whether a bit of `other` is set.
    pub const fn any(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }
    /// Both sets of bits.
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
    /// Without the bits of `other`.
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }
}

/// A SACK block as offsets in bytes from the packet's `ack` (negative only in a D-SACK).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// First byte.
    pub start: i32,
    /// One past the last byte.
    pub end: i32,
}

/// A packet on the wire, or several segments in one buffer (GSO, [`Packet::gso_size`]). Sizes are bytes; `len` includes
/// the 14-byte Ethernet header and, of several segments, all headers, as the kernel's `qdisc_pkt_len` does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packet {
    /// TCP: first payload byte. Probe: sequence number.
    pub seq: u64,
    /// TCP: next byte expected.
    pub ack: u64,
    /// When the sender emitted it (TCP timestamp value, probe send time).
    pub sent: Time,
    /// Timestamp echo.
    pub echo: Time,
    /// When it entered the queue in which it stands now; before the first queue, when TCP lets it depart.
    pub enqueued: Time,
    /// Flow hash (`skb->hash`).
    pub hash: u32,
    /// Frame length with the 14-byte Ethernet header; of several segments the sum of their frames.
    pub len: u32,
    /// Payload bytes.
    pub payload: u32,
    /// Advertised receive window in bytes.
    pub window: u32,
    /// SACK blocks, `n_sack` of them.
    pub sack: [SackBlock; 3],
    /// Flow or probe, an index into the run's table of traffic.
    pub flow: u16,
    /// Which of the flow's connections, of a flow that opens several.
    pub conn: u16,
    /// Destination node.
    pub dst: u16,
    /// How many of `sack` are valid.
    pub n_sack: u8,
    /// TCP flags.
    pub flags: Flags,
    /// AccECN's ACE field (AE, CWR, ECE as one number, 0 to 7).
    pub ace: u8,
    /// AccECN's option: bytes that arrived as ECT(1), CE and ECT(0), 24 bits each.
    pub accecn: [[u8; 3]; 3],
    /// How many of `accecn` are valid.
    pub n_accecn: u8,
    /// Differentiated services codepoint, 6 bits.
    pub dscp: u8,
    /// ECN field.
    pub ecn: Ecn,
    /// Protocol.
    pub proto: Proto,
    /// Tunnel that it goes through plus one, 0 for none; see [`crate::network::tunnel`].
    pub tunnel: u8,
    /// The inner packet's TOS byte, while in a tunnel.
    pub inner_tos: u8,
    /// Sequence number in the tunnel.
    pub tunnel_seq: u32,
    /// Payload bytes of each segment but the last if these are several in one buffer, else 0 (`gso_size`).
    pub gso_size: u16,
    /// Number of the queue that gave it its CE or SCE, 0 for none; see [`crate::network::capturing`].
    pub marked_by: u8,
}

impl Packet {
    /// Appends a copy of this template to `out`, to be filled in where it lies.
    #[inline]
    pub fn append_to<'a>(&self, out: &'a mut Vec<Packet>) -> &'a mut Packet {
        // `push` would copy it to the stack first, in case that `out` has to move.
        out.extend_from_slice(std::slice::from_ref(self));
        let last = out.len() - 1;
        &mut out[last]
    }

    /// Segments in this buffer (`gso_segs`).
    #[inline]
    pub fn segs(&self) -> u32 {
        if self.gso_size == 0 { 1 } else { self.payload.div_ceil(u32::from(self.gso_size)) }
    }

    /// Bytes before the payload of each segment.
    pub fn headers(&self) -> u32 {
        (self.len - self.payload) / self.segs()
    }

    /// Bytes of the buffer: one header, and the payload of all segments.
    pub fn buffer_len(&self) -> u32 {
        if self.gso_size == 0 { self.len } else { self.headers() + self.payload }
    }

    /// Segment `index` as a frame of its own (`skb_gso_segment`). CWR of RFC 3168 goes with the first; all else is in each.
    #[must_use]
    pub fn segment(&self, index: u32) -> Packet {
        let size = u32::from(self.gso_size);
        let start = index * size;
        let payload = (self.payload - start).min(size);
        Packet {
            seq: self.seq + u64::from(start),
            payload,
            len: self.headers() + payload,
            flags: self
                .flags
                .without(if index == 0 { Flags::default() } else { Flags::CWR })
                .without(if index + 1 == self.segs() { Flags::default() } else { Flags::PSH }),
            gso_size: 0,
            ..*self
        }
    }

    /// Sets CE as an AQM does; false if the packet is not ECN-capable.
    pub fn set_ce(&mut self) -> bool {
        if self.ecn.is_capable() {
            self.ecn = Ecn::Ce;
            true
        } else {
            false
        }
    }

    /// Sets ECT(1) as an SCE AQM does: only on ECT(0).
    pub fn set_ect1(&mut self) -> bool {
        if self.ecn == Ecn::Ect0 {
            self.ecn = Ecn::Ect1;
            true
        } else {
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_the_frames_that_the_length_counts() {
        // 2 x 1448 + 104 bytes of payload behind 66 bytes of headers each
        let flags = Flags::ACK.with(Flags::CWR);
        let whole = Packet {
            seq: 1000,
            payload: 3000,
            len: 3000 + 3 * 66,
            gso_size: 1448,
            flags,
            ..Packet::default()
        };
        assert_eq!((whole.segs(), whole.headers(), whole.buffer_len()), (3, 66, 3066));
        let frames: Vec<Packet> = (0..3).map(|i| whole.segment(i)).collect();
        let told: Vec<_> =
            frames.iter().map(|f| (f.seq, f.payload, f.len, f.flags.has(Flags::CWR))).collect();
        assert_eq!(told, [(1000, 1448, 1514, true), (2448, 1448, 1514, false), (3896, 104, 170, false)]);
        assert_eq!(frames.iter().map(|f| f.len).sum::<u32>(), whole.len);
        assert!(frames.iter().all(|f| (f.gso_size, f.segs()) == (0, 1)));
    }

    #[test]
    fn a_packet_stays_as_small_as_it_was() {
        assert_eq!(size_of::<Packet>(), 112);
    }
}
