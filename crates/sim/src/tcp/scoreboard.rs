//! The retransmit queue: every segment sent and not cumulatively acknowledged, with what is known
//! about it.
//!
//! One entry per MSS-sized segment, where Linux keeps one per (possibly larger) skb; a GSO skb's
//! segments share their send time here, which gives the same samples.

use std::collections::VecDeque;

use crate::base::ring::Ring;
use crate::base::units::Time;
use crate::cc::Lost;

/// What is known about a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegFlags(u8);

impl SegFlags {
    /// SACKed.
    pub const SACKED: SegFlags = SegFlags(1);
    /// Marked lost.
    pub const LOST: SegFlags = SegFlags(2);
    /// Retransmitted, and that retransmission is believed in flight.
    pub const RETRANS: SegFlags = SegFlags(4);
    /// Retransmitted at some time.
    pub const EVER_RETRANS: SegFlags = SegFlags(8);
    /// Sent while the application was the limit.
    pub const APP_LIMITED: SegFlags = SegFlags(16);
    /// The first segment of its buffer (skb).
    pub const HEAD: SegFlags = SegFlags(32);
    /// Its last byte has PSH.
    pub const PUSH: SegFlags = SegFlags(64);
    /// Something happened to it since it was sent for the first time.
    const TOUCHED: SegFlags = SegFlags(15);

    /// Whether any bit of `other` is set.
    pub fn any(self, other: SegFlags) -> bool {
        self.0 & other.0 != 0
    }
    /// Sets the bits of `other`.
    pub fn set(&mut self, other: SegFlags) {
        self.0 |= other.0;
    }
    /// Clears the bits of `other`.
    pub fn clear(&mut self, other: SegFlags) {
        self.0 &= !other.0;
    }
}

/// A segment in the retransmit queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seg {
    /// First byte.
    pub seq: u64,
    /// One past the last byte.
    pub end: u64,
    /// When it was last sent.
    pub sent: Time,
    /// The same in whole microseconds, as stamps are compared.
    pub sent_us: u64,
    /// `first_tx_mstamp` when it was sent (delivery rate sampling), in microseconds.
    pub first_tx_us: u64,
    /// `delivered_mstamp` when it was sent, in microseconds.
    pub delivered_us: u64,
    /// `delivered` when it was sent.
    pub delivered: u64,
    /// The low bits of `delivered_ce` when it was sent.
    pub delivered_ce: u32,
    /// The low bits of `lost` when it was sent.
    pub lost: u32,
    /// Packets in flight when it was sent, itself included.
    pub in_flight: u32,
    /// State.
    pub flags: SegFlags,
}

impl Seg {
    /// What congestion control is told when it is marked lost; `lost` is [`super::sock::TcpSock::lost`].
    pub fn as_lost(&self, lost: u64) -> Lost {
        Lost {
            tx_in_flight: self.in_flight,
            lost: (lost as u32).wrapping_sub(self.lost),
            is_app_limited: self.flags.any(SegFlags::APP_LIMITED),
            seq: self.seq,
            end: self.end,
        }
    }
}

/// Segments in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegRun {
    /// How many.
    pub segs: usize,
    /// How many of them have [`SegFlags::HEAD`].
    pub heads: usize,
}

/// The queue, in sequence order.
#[derive(Default)]
pub struct Scoreboard {
    segs: Ring<Seg>,
    /// Segments with [`SegFlags::HEAD`].
    heads: usize,
    /// Retransmissions in order of their time: (when, first byte). Entries may be stale.
    retransmitted: VecDeque<(Time, u64)>,
    /// No segment that was sent once and is neither SACKed nor lost starts below this.
    rack_hint: u64,
    /// No lost segment that waits for its retransmission starts below this.
    retransmit_hint: u64,
}

impl Scoreboard {
    /// Appends a segment just sent for the first time.
    #[inline]
    pub fn push(&mut self, seg: &Seg) {
        self.heads += usize::from(seg.flags.any(SegFlags::HEAD));
        let slot = self.segs.push_slot();
        *slot = *seg;
    }

    /// The newest segment ends with PSH.
    #[cold]
    pub fn push_last(&mut self) {
        if let Some(seg) = self.segs.len().checked_sub(1).and_then(|last| self.segs.get_mut(last)) {
            seg.flags.set(SegFlags::PUSH);
        }
    }

    /// The oldest segment.
    pub fn front(&self) -> Option<&Seg> {
        self.segs.front()
    }

    /// Removes the `n` oldest segments, of which `heads` have [`SegFlags::HEAD`].
    pub fn remove(&mut self, n: usize, heads: usize) {
        self.segs.drop_oldest(n);
        self.heads -= heads;
    }

    /// Whether nothing is out.
    pub fn is_empty(&self) -> bool {
        self.segs.is_empty()
    }

    /// Number of segments.
    pub fn len(&self) -> usize {
        self.segs.len()
    }

    /// The segment at `index`.
    pub fn get(&self, index: usize) -> Option<&Seg> {
        self.segs.get(index)
    }

    /// The segments from `index` on that end by `upto` and that an ACK can take together, with the first and the last of them:
    /// all up to one to which something happened since it was sent, or such a one alone. As the others were sent once, and in
    /// sequence order, none of them was sent after the last.
    #[inline]
    pub fn alike(&self, index: usize, upto: u64) -> Option<(SegRun, &Seg, &Seg)> {
        let first = self.segs.get(index).filter(|seg| seg.end <= upto)?;
        let mut run = SegRun { segs: 1, heads: usize::from(first.flags.any(SegFlags::HEAD)) };
        let mut last = first;
        if !first.flags.any(SegFlags::TOUCHED) {
            while let Some(next) = self.segs.get(index + run.segs)
                && next.end <= upto
                && !next.flags.any(SegFlags::TOUCHED)
            {
                run.segs += 1;
                run.heads += usize::from(next.flags.any(SegFlags::HEAD));
                last = next;
            }
        }
        Some((run, first, last))
    }

    /// The segment at `index`, to change.
    pub fn get_mut(&mut self, index: usize) -> Option<&mut Seg> {
        self.segs.get_mut(index)
    }

    /// All segments, to change.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Seg> {
        self.segs.iter_mut()
    }

    /// Index of the first segment that ends beyond `seq`.
    pub fn index_of(&self, seq: u64) -> usize {
        if self.segs.front().is_none_or(|s| s.end > seq) {
            return 0;
        }
        self.segs.partition_point(|s| s.end <= seq)
    }

    /// How many segments from `index` on may be retransmitted as one buffer, at most `most`: they were one, and all of them are
    /// lost. What is left of that buffer becomes another one (`tcp_fragment`).
    pub fn take_buffer(&mut self, index: usize, most: usize) -> usize {
        let waits = |seg: &Seg| {
            seg.flags.any(SegFlags::LOST)
                && !seg.flags.any(SegFlags(SegFlags::HEAD.0 | SegFlags::SACKED.0 | SegFlags::RETRANS.0))
        };
        let mut n = 1;
        while n < most && self.segs.get(index + n).is_some_and(waits) {
            n += 1;
        }
        for at in [index, index + n] {
            if let Some(seg) = self.segs.get_mut(at) {
                self.heads += usize::from(!seg.flags.any(SegFlags::HEAD));
                seg.flags.set(SegFlags::HEAD);
            }
        }
        n
    }

    /// Buffers in the queue, and among them the one of which the first segments were acknowledged (`tcp_trim_head`).
    #[inline]
    pub fn buffers(&self) -> usize {
        self.heads + usize::from(self.front().is_some_and(|seg| !seg.flags.any(SegFlags::HEAD)))
    }

    /// Notes a retransmission of the segment at `index` at `now`.
    pub fn note_retransmitted(&mut self, index: usize, now: Time) {
        if let Some(seg) = self.segs.get(index) {
            self.retransmitted.push_back((now, seg.seq));
        }
    }

    /// After loss marks were taken back: every segment has to be looked at again.
    pub fn reset_hints(&mut self) {
        let seq = self.segs.front().map_or(0, |s| s.seq);
        self.rack_hint = seq;
        self.retransmit_hint = seq;
    }

    /// Index of the next lost segment, from where the last search ended, that is not already on its
    /// way again.
    pub fn next_lost(&mut self) -> Option<usize> {
        let mut index = self.index_of(self.retransmit_hint);
        while let Some(seg) = self.segs.get(index) {
            if seg.flags.any(SegFlags::LOST)
                && !seg.flags.any(SegFlags(SegFlags::SACKED.0 | SegFlags::RETRANS.0))
            {
                self.retransmit_hint = seg.seq;
                return Some(index);
            }
            index += 1;
        }
        self.retransmit_hint = self.segs.back().map_or(0, |s| s.end);
        None
    }

    /// RACK's walk (RFC 8985, section 6.2, step 5): calls `late` on each segment still out that was
    /// sent before the newest delivered one, in order of its send time; `late` says how long to wait
    /// yet, or `None` if it declared the segment lost. Returns the longest wait.
    ///
    /// `is_before(sent, end)` tells whether a segment was sent before that newest delivered one.
    pub fn rack_walk(
        &mut self,
        is_before: impl Fn(Time, u64) -> bool,
        mut late: impl FnMut(&mut Seg) -> Option<Time>,
    ) -> Option<Time> {
        let done = SegFlags(SegFlags::SACKED.0 | SegFlags::LOST.0 | SegFlags::RETRANS.0);
        let mut longest = None;
        let mut index = self.index_of(self.rack_hint);
        let mut hint = None;
        let mut lost_from = u64::MAX;
        while let Some(seg) = self.segs.get_mut(index) {
            index += 1;
            if seg.flags.any(done) {
                continue;
            }
            if !is_before(seg.sent, seg.end) {
                hint = hint.or(Some(seg.seq));
                break;
            }
            match late(seg) {
                None => lost_from = lost_from.min(seg.seq),
                Some(wait) => {
                    hint = hint.or(Some(seg.seq));
                    longest = longest.max(Some(wait));
                }
            }
        }
        self.rack_hint = hint.unwrap_or_else(|| self.segs.back().map_or(0, |s| s.end));

        let mut keep = 0;
        while let Some(&(sent, seq)) = self.retransmitted.get(keep) {
            let index = self.index_of(seq);
            let current = self.segs.get_mut(index).filter(|s| {
                s.seq == seq
                    && s.sent == sent
                    && s.flags.any(SegFlags::RETRANS)
                    && !s.flags.any(SegFlags::SACKED)
            });
            let Some(seg) = current else {
                self.retransmitted.remove(keep);
                continue;
            };
            if !is_before(seg.sent, seg.end) {
                break;
            }
            if let Some(wait) = late(seg) {
                longest = longest.max(Some(wait));
                keep += 1;
            } else {
                lost_from = lost_from.min(seq);
                self.retransmitted.remove(keep);
            }
        }
        self.retransmit_hint = self.retransmit_hint.min(lost_from);
        longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board(n: u64) -> Scoreboard {
        let mut b = Scoreboard::default();
        for i in 0..n {
            b.push(&Seg { seq: i * 10, end: (i + 1) * 10, sent: Time(i), ..Seg::default() });
        }
        b
    }

    #[test]
    fn index_of_finds_the_segment_that_holds_a_byte() {
        let b = board(5);
        assert_eq!(
            [b.index_of(0), b.index_of(9), b.index_of(10), b.index_of(49), b.index_of(50)],
            [0, 0, 1, 4, 5]
        );
    }

    #[test]
    fn a_buffer_counts_until_its_last_segment_is_acknowledged() {
        let mut b = Scoreboard::default();
        for i in 0..4 {
            let mut seg = Seg { seq: i * 10, end: (i + 1) * 10, ..Seg::default() };
            if i % 2 == 0 {
                seg.flags.set(SegFlags::HEAD);
            }
            b.push(&seg);
        }
        let mut left = |heads| {
            b.remove(1, heads);
            b.buffers()
        };
        // two of two segments each
        assert_eq!([left(1), left(0), left(1), left(0)], [2, 1, 1, 0]);
    }

    #[test]
    fn what_was_sent_once_is_taken_together_and_a_touched_segment_alone() {
        let mut b = board(6);
        b.get_mut(1).unwrap().flags.set(SegFlags::HEAD);
        for (i, flag) in [(2, SegFlags::EVER_RETRANS), (3, SegFlags::EVER_RETRANS), (5, SegFlags::SACKED)] {
            b.get_mut(i).unwrap().flags.set(flag);
        }
        let told = |index, upto| {
            b.alike(index, upto).map(|(run, first, last)| (run.segs, run.heads, first.seq, last.end))
        };
        // 0 and 1 were sent once, 2 and 3 twice, 4 once; 5 is SACKed
        assert_eq!(told(0, 60), Some((2, 1, 0, 20)));
        assert_eq!([told(2, 60), told(3, 60)], [Some((1, 0, 20, 30)), Some((1, 0, 30, 40))]);
        assert_eq!([told(4, 60), told(5, 60)], [Some((1, 0, 40, 50)), Some((1, 0, 50, 60))]);
        // only whole segments are acknowledged
        assert_eq!([told(0, 19), told(0, 9), told(6, 90)], [Some((1, 0, 0, 10)), None, None]);
    }

    #[test]
    fn a_lost_buffer_is_retransmitted_as_far_as_it_may() {
        let mut b = board(6);
        for i in 0..6 {
            b.get_mut(i).unwrap().flags.set(SegFlags::LOST);
        }
        // cut into 0..2 and 2..6, of which 5 arrived
        assert_eq!(b.take_buffer(0, 2), 2);
        b.get_mut(5).unwrap().flags.set(SegFlags::SACKED);
        assert_eq!(b.take_buffer(0, 45), 2);
        assert_eq!(b.take_buffer(2, 2), 2);
        assert_eq!(b.take_buffer(2, 45), 2, "what was left is another buffer");
        assert_eq!(b.take_buffer(4, 45), 1);
        // heads at 0, 2, 4, 5, then without the first
        assert_eq!(b.buffers(), 4);
        b.remove(2, 1);
        assert_eq!((b.len(), b.buffers()), (4, 3));
    }

    #[test]
    fn rack_walk_visits_what_was_sent_before_and_remembers_where_it_stopped() {
        let mut b = board(6);
        let mut seen = Vec::new();
        // segments 0..3 were sent before time 3
        b.rack_walk(
            |sent, _| sent < Time(3),
            |seg| {
                seen.push(seg.seq);
                seg.flags.set(SegFlags::LOST);
                None
            },
        );
        assert_eq!(seen, [0, 10, 20]);
        assert_eq!(b.next_lost(), Some(0));
        let mut again = 0;
        b.rack_walk(
            |sent, _| sent < Time(3),
            |_| {
                again += 1;
                None
            },
        );
        assert_eq!(again, 0);
    }

    #[test]
    fn a_lost_retransmission_is_found_again() {
        let mut b = board(2);
        b.get_mut(0).unwrap().flags.set(SegFlags::LOST);
        assert_eq!(b.next_lost(), Some(0));
        let seg = b.get_mut(0).unwrap();
        seg.flags.set(SegFlags::RETRANS);
        seg.sent = Time(50);
        b.note_retransmitted(0, Time(50));
        assert_eq!(b.next_lost(), None);
        b.rack_walk(
            |sent, _| sent < Time(60) && sent > Time(40),
            |seg| {
                seg.flags.clear(SegFlags::RETRANS);
                None
            },
        );
        assert_eq!(b.next_lost(), Some(0));
    }
}
