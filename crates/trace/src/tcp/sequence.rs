//! Sequence numbers of one direction: what is new, sent again, missing or late, and what was acknowledged.
//!
//! Sequence numbers are carried on to 64 bits, so that they do not wrap.

use std::collections::VecDeque;

use crate::report::Data;

/// Segments under way that are told apart. If there are more, neighbours are taken together.
pub const OUTSTANDING: usize = 1024;
/// Holes in the sequence that are remembered; an older one counts as lost.
pub const HOLES: usize = 256;
/// Ranges that SACK told and the ACK has not reached.
pub const SACKED: usize = 64;
/// No window is larger than this, so numbers that are further apart belong to different connections.
const FARTHEST: i64 = 1 << 30;
/// Numbers begin here, so that those before the first can be told.
const ORIGIN: u64 = 1 << 32;
/// What may come out of order without a round-trip time to compare with: Wireshark's 3 ms.
const REORDERING_NS: i64 = 3_000_000;

/// A segment that was seen and not yet acknowledged.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    end: u64,
    at_ns: i64,
    packets: u32,
    /// Its ACK says nothing of the round trip: parts of it were seen more than once, or late.
    unclear: bool,
}

/// Something that was not seen between what was.
#[derive(Clone, Copy, Debug)]
struct Hole {
    start: u64,
    end: u64,
    at_ns: i64,
    /// Packets with payload before it was noticed.
    packets: u64,
    /// Timestamp of the packet behind it.
    timestamp: Option<u32>,
}

/// What a segment turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It goes on where the one before ended, or has neither payload nor FIN.
    InOrder,
    /// It goes on further than that.
    BehindGap,
    /// It was overtaken.
    Reordered,
    /// It was sent again.
    Retransmitted,
    /// It asks whether the other end is still there.
    KeepAlive,
}

/// What an ACK told.
#[derive(Clone, Copy, Debug, Default)]
pub struct Acknowledged {
    /// Payload that it is the first to acknowledge.
    pub bytes: u64,
    /// How many packets that were.
    pub packets: u32,
    /// Whether it goes on further than any before it.
    pub advances: bool,
    /// Whether it stays behind one.
    pub late: bool,
    /// Time since the segment that it ends with was seen, if that is clear.
    pub rtt_ns: Option<i64>,
}

/// A segment as this module sees it.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Sequence number of the first byte.
    pub seq: u32,
    /// Length of the payload.
    pub length: u32,
    /// Whether it has FIN.
    pub fin: bool,
    /// When it was seen.
    pub at_ns: i64,
    /// Its timestamp value.
    pub timestamp: Option<u32>,
}

/// The sequence space of one direction.
#[derive(Clone, Debug, Default)]
pub struct Sequence {
    /// What numbers are near to.
    near: Option<u64>,
    /// End of what was seen.
    next: Option<u64>,
    /// What is acknowledged.
    una: Option<u64>,
    fin: Option<u64>,
    outstanding: VecDeque<Outstanding>,
    holes: Vec<Hole>,
    /// What was acknowledged before it was seen: it may still come, where packets were captured on several queues.
    outrun: Option<(u64, u64)>,
    sacked: Vec<(u64, u64)>,
    last_dsack: Option<(u32, u32)>,
    sacked_bytes: u64,
    spurious: u64,
    /// What was counted.
    pub data: Data,
}

impl Sequence {
    fn unwrap(&mut self, number: u32) -> u64 {
        let near = *self.near.get_or_insert(ORIGIN | u64::from(number));
        near.saturating_add_signed(i64::from(number.wrapping_sub(near as u32) as i32))
    }

    /// Begins with a SYN. One that stands in the file behind its data changes nothing.
    pub fn begin(&mut self, initial: u32) {
        if self.data.packets > 0 {
            return;
        }
        let begin = self.unwrap(initial.wrapping_add(1));
        self.next = Some(begin);
        self.una = Some(begin);
    }

    /// Whether something is under way.
    pub fn under_way(&self) -> u64 {
        match (self.next, self.una) {
            (Some(next), Some(una)) => next.saturating_sub(una),
            _ => 0,
        }
    }

    /// Whether SACK told something that the ACK has not reached.
    pub fn has_sacked(&self) -> bool {
        !self.sacked.is_empty()
    }

    /// Whether a segment without payload asks for an ACK: all is acknowledged, and it begins one byte too early.
    pub fn is_probe(&self, seq: u32) -> bool {
        self.next.is_some_and(|next| self.una == Some(next) && seq.wrapping_add(1) == next as u32)
    }

    /// Whether this direction was closed and that was acknowledged.
    pub fn closed(&self) -> bool {
        matches!((self.fin, self.una), (Some(fin), Some(una)) if una > fin)
    }

    /// Whether a number lies outside what a connection that begins with `begin` has until its FIN, which was seen. As
    /// long as the FIN is not acknowledged, what lies before the begin may come again.
    pub fn is_outside(&self, begin: Option<u32>, seq: u32) -> bool {
        let (Some(begin), Some(fin)) = (begin, self.fin) else { return false };
        let end = (fin as u32).wrapping_add(1);
        let behind = seq.wrapping_sub(end) as i32;
        behind > 0
            || i64::from(behind) < -FARTHEST
            || self.closed() && seq.wrapping_sub(begin) > end.wrapping_sub(begin)
    }

    /// Takes a segment with payload or FIN. `round_trip_ns` is the shortest that a retransmission can take.
    pub fn segment(&mut self, part: Part, round_trip_ns: Option<i64>) -> Kind {
        let start = self.unwrap(part.seq);
        let payload_end = start + u64::from(part.length);
        let end = payload_end + u64::from(part.fin);
        if part.fin {
            self.fin = Some(payload_end);
        }
        let next = match self.next {
            Some(next) if (start as i64 - next as i64).abs() <= FARTHEST => next,
            // The first of the flow, or of another connection between the same ports whose begin was not seen.
            _ => {
                self.data.lost_bytes += self.holes.drain(..).map(|hole| hole.end - hole.start).sum::<u64>();
                self.outstanding.clear();
                self.sacked.clear();
                self.outrun = None;
                self.una = None;
                start
            }
        };
        if start >= next {
            let kind = if start > next { Kind::BehindGap } else { Kind::InOrder };
            if start > next {
                self.hole(next, start, &part);
            }
            self.goes_on(end, payload_end - start, part.at_ns, false);
            return kind;
        }
        if part.length <= 1 && !part.fin && start + 1 == next && self.una == self.next {
            return Kind::KeepAlive;
        }
        if let Some((from, to)) = self.outrun
            && start >= from
            && start < to
        {
            let here = end.min(to);
            self.outrun = Some((here, to)).filter(|_| here < to);
            self.data.unseen_bytes -= here - start;
            self.data.sequence_bytes += payload_end.min(to) - start;
            if end > next {
                self.goes_on(end, payload_end.saturating_sub(next), part.at_ns, true);
            }
            return Kind::InOrder;
        }
        if end > next {
            // Parts of it are new, of which one is perhaps the FIN.
            self.goes_on(end, payload_end.saturating_sub(next), part.at_ns, true);
        }
        if let Some(kind) = self.fill(start, end.min(next), &part, round_trip_ns) {
            return kind;
        }
        self.repeated(start, end.min(next));
        self.data.retransmits += 1;
        self.data.retransmit_bytes += u64::from(part.length);
        Kind::Retransmitted
    }

    fn goes_on(&mut self, end: u64, new: u64, at_ns: i64, unclear: bool) {
        self.next = Some(end);
        self.near = Some(end);
        self.data.sequence_bytes += new;
        if self.outstanding.len() == OUTSTANDING {
            self.thin_out();
        }
        self.outstanding.push_back(Outstanding { end, at_ns, packets: 1, unclear });
        if new > 0 {
            self.data.in_flight_max_bytes = self.data.in_flight_max_bytes.max(self.under_way());
        }
    }

    /// Takes every two neighbours together: the time of the second is that of its end.
    fn thin_out(&mut self) {
        let mut kept = 0;
        while 2 * kept + 1 < self.outstanding.len() {
            let (first, second) = (self.outstanding[2 * kept], self.outstanding[2 * kept + 1]);
            self.outstanding[kept] = Outstanding {
                packets: first.packets + second.packets,
                unclear: first.unclear || second.unclear,
                ..second
            };
            kept += 1;
        }
        self.outstanding.truncate(kept);
    }

    fn hole(&mut self, start: u64, end: u64, part: &Part) {
        self.data.gaps += 1;
        self.data.gap_bytes += end - start;
        if self.holes.len() == HOLES {
            let oldest = self.holes.remove(0);
            self.data.lost_bytes += oldest.end - oldest.start;
        }
        let packets = self.data.packets;
        self.holes.push(Hole { start, end, at_ns: part.at_ns, packets, timestamp: part.timestamp });
    }

    /// A segment behind the end of what was seen: if it lies in a hole, what it is.
    fn fill(&mut self, start: u64, end: u64, part: &Part, round_trip_ns: Option<i64>) -> Option<Kind> {
        let at = self.holes.iter().position(|hole| hole.start < end && start < hole.end)?;
        let hole = self.holes[at];
        let elapsed = part.at_ns.saturating_sub(hole.at_ns);
        let older = match (part.timestamp, hole.timestamp) {
            (Some(this), Some(behind)) if this != behind => (this.wrapping_sub(behind) as i32) < 0,
            _ => elapsed < round_trip_ns.unwrap_or(REORDERING_NS),
        };
        let filled = end.min(hole.end) - start.max(hole.start);
        self.data.sequence_bytes += filled;
        self.holes.remove(at);
        // What is left of the hole stays one, or becomes two.
        for (start, end) in [(end, hole.end), (hole.start, start)] {
            if start < end {
                self.holes.insert(at, Hole { start, end, ..hole });
            }
        }
        self.holes.truncate(HOLES);
        self.repeated(start, end);
        Some(if older {
            self.data.reordered += 1;
            self.data.reorder_max_packets =
                self.data.reorder_max_packets.max(self.data.packets - hole.packets);
            self.data.reorder_max_s = self.data.reorder_max_s.max(elapsed as f64 * 1e-9);
            Kind::Reordered
        } else {
            self.data.lost_bytes += filled;
            self.data.retransmits += 1;
            self.data.retransmit_bytes += u64::from(part.length);
            Kind::Retransmitted
        })
    }

    /// The ACK of what lies here says nothing of the round trip any more (Karn's rule).
    fn repeated(&mut self, start: u64, end: u64) {
        let first = self.outstanding.partition_point(|segment| segment.end <= start);
        for segment in self.outstanding.iter_mut().skip(first) {
            segment.unclear = true;
            if segment.end >= end {
                break;
            }
        }
    }

    /// Takes an ACK of this direction.
    pub fn acknowledge(&mut self, ack: u32, at_ns: i64) -> Acknowledged {
        let ack = self.unwrap(ack);
        let Some(una) = self.una else {
            // The first that was seen; what it acknowledges came before.
            if self.next.is_none_or(|next| (ack as i64 - next as i64).abs() <= FARTHEST) {
                self.una = Some(ack);
                self.near = Some(self.next.map_or(ack, |next| next.max(ack)));
                self.pop(ack, at_ns);
            }
            return Acknowledged::default();
        };
        if ack <= una {
            return Acknowledged { late: ack < una, ..Acknowledged::default() };
        }
        if (ack - una) as i64 > FARTHEST {
            return Acknowledged::default();
        }
        self.una = Some(ack);
        let fin = u64::from(self.fin.is_some_and(|fin| una <= fin && ack > fin));
        let bytes = ack - una - fin;
        self.data.acked_bytes += bytes;
        self.unseen(ack);
        self.sacked.retain_mut(|(start, end)| {
            *start = (*start).max(ack);
            start < end
        });
        let (packets, rtt_ns) = self.pop(ack, at_ns);
        Acknowledged { bytes, packets, advances: true, late: false, rtt_ns }
    }

    /// What was acknowledged and never seen here reached its end nevertheless.
    fn unseen(&mut self, ack: u64) {
        let mut unseen = 0;
        if !self.holes.is_empty() {
            self.holes.retain_mut(|hole| {
                if hole.start < ack {
                    unseen += hole.end.min(ack) - hole.start;
                    hole.start = ack;
                }
                hole.start < hole.end
            });
        }
        match self.next {
            Some(next) if ack > next => {
                unseen += ack - next;
                let from = self.outrun.filter(|outrun| outrun.1 == next).map_or(next, |outrun| outrun.0);
                self.outrun = Some((from, ack));
                self.next = Some(ack);
                self.near = Some(ack);
            }
            None => self.near = Some(ack),
            _ => {}
        }
        self.data.unseen_bytes += unseen;
    }

    fn pop(&mut self, ack: u64, at_ns: i64) -> (u32, Option<i64>) {
        let (mut packets, mut unclear, mut newest) = (0, false, None);
        while let Some(segment) = self.outstanding.front()
            && segment.end <= ack
        {
            packets += segment.packets;
            unclear |= segment.unclear;
            newest = Some(segment.at_ns);
            self.outstanding.pop_front();
        }
        (packets, newest.filter(|_| !unclear).map(|seen| at_ns.saturating_sub(seen)))
    }

    /// Takes SACK blocks, after the ACK that they came with. Whether the first reports a duplicate, and whether there
    /// was news.
    pub fn sack(&mut self, blocks: &[(u32, u32)]) -> (bool, bool) {
        let Some(una) = self.una else { return (false, false) };
        let mut duplicate = false;
        let mut news = false;
        for (i, block) in blocks.iter().enumerate() {
            let (start, end) = (self.unwrap(block.0), self.unwrap(block.1));
            if start >= end {
                continue;
            }
            let inside = |other: &(u32, u32)| {
                block.0.wrapping_sub(other.0) as i32 >= 0 && other.1.wrapping_sub(block.1) as i32 >= 0
            };
            // RFC 2883: below the ACK, or inside the second block.
            if i == 0 && (end <= una || blocks.get(1).is_some_and(inside)) {
                duplicate = self.last_dsack != Some(*block);
                self.last_dsack = Some(*block);
                continue;
            }
            news |= self.sacked(start.max(una), end);
        }
        if duplicate && self.spurious < self.data.retransmits {
            self.spurious += 1;
        }
        (duplicate, news)
    }

    /// Adds a range to those that were told; whether a part of it is new.
    fn sacked(&mut self, start: u64, end: u64) -> bool {
        if start >= end || self.next.is_some_and(|next| end > next.saturating_add(FARTHEST as u64)) {
            return false;
        }
        let from = self.sacked.partition_point(|range| range.1 < start);
        let to = self.sacked.partition_point(|range| range.0 <= end);
        let (mut low, mut high, mut known) = (start, end, 0);
        for range in &self.sacked[from..to] {
            known += range.1.min(end).saturating_sub(range.0.max(start));
            low = low.min(range.0);
            high = high.max(range.1);
        }
        if from == to && self.sacked.len() == SACKED {
            return false;
        }
        self.sacked.splice(from..to, [(low, high)]);
        self.sacked_bytes += end - start - known;
        end - start > known
    }

    /// What was counted, at the end. `sack` says whether every SACK block was seen.
    pub fn finish(mut self, sack: bool) -> Data {
        self.data.sacked_bytes = sack.then_some(self.sacked_bytes);
        self.data.spurious_retransmits = sack.then_some(self.spurious);
        self.data.lost_bytes += self.holes.iter().map(|hole| hole.end - hole.start).sum::<u64>();
        self.data
    }
}
