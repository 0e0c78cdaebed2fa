//! What arrived ahead of a hole, and what an ACK reports of it: SACK blocks, and one duplicate (D-SACK).
//!
//! Source: Linux 7.3 `net/ipv4/tcp_input.c` (`tcp_data_queue_ofo`, `tcp_ofo_queue`, `tcp_sack_new_ofo_skb`,
//! `tcp_dsack_extend`); RFC 2018, RFC 2883.
//!
//! Validation: the tests below and in `receiver.rs`.

/// Bytes of the stream: the first, and the one behind the last.
pub(super) type Range = (u64, u64);

/// SACK blocks that are remembered.
const BLOCKS: usize = 4;

/// Ranges that wait for what is missing before them.
#[derive(Clone, Debug)]
pub(super) struct OutOfOrder {
    /// Whether the peer does SACK: without, nothing is reported.
    sack: bool,
    /// Ascending and disjoint.
    ranges: Vec<Range>,
    /// Those to report, the most recently changed first.
    blocks: Vec<Range>,
    /// What came twice since the last ACK.
    duplicate: Option<Range>,
    /// Where the duplicate began that was reported last.
    reported_from: Option<u64>,
}

impl OutOfOrder {
    /// Nothing waits.
    pub(super) fn new(sack: bool) -> Self {
        OutOfOrder { sack, ranges: Vec::new(), blocks: Vec::new(), duplicate: None, reported_from: None }
    }

    /// Whether the peer does SACK.
    pub(super) fn sack(&self) -> bool {
        self.sack
    }

    /// Whether nothing waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Data in order came, up to `end`: the byte that is expected next, behind what it joins up with (`tcp_ofo_queue`).
    pub(super) fn fill(&mut self, end: u64) -> u64 {
        let mut next = end;
        while let Some(&(start, stop)) = self.ranges.first() {
            if start > next {
                break;
            }
            if start < end {
                self.note_overlap(start, stop.min(end));
            }
            next = next.max(stop);
            self.ranges.remove(0);
        }
        self.blocks.retain(|&(start, _)| start > next);
        next
    }

    /// Takes a range; false if it was there already. The block that changed last is told first (RFC 2018, section 4).
    pub(super) fn insert(&mut self, start: u64, end: u64) -> bool {
        let at = self.ranges.partition_point(|&(_, e)| e < start);
        let mut merged = (start, end);
        let mut until = at;
        while let Some(&(s, e)) = self.ranges.get(until) {
            if s > end {
                break;
            }
            if s <= start && e >= end {
                return false;
            }
            if s.max(start) < e.min(end) {
                self.note_overlap(s.max(start), e.min(end));
            }
            merged = (merged.0.min(s), merged.1.max(e));
            until += 1;
        }
        self.ranges.splice(at..until, [merged]);
        self.blocks.retain(|&(s, e)| e < merged.0 || s > merged.1);
        self.blocks.insert(0, merged);
        self.blocks.truncate(BLOCKS);
        true
    }

    /// This range came again: the next ACK reports it.
    pub(super) fn note_duplicate(&mut self, start: u64, end: u64) {
        self.duplicate = Some((start, end));
    }

    /// `tcp_dsack_extend`: one range fits into an ACK; another is added only where it touches that one.
    fn note_overlap(&mut self, start: u64, end: u64) {
        match &mut self.duplicate {
            None => self.duplicate = Some((start, end)),
            Some((s, e)) if start <= *e && end >= *s => (*s, *e) = ((*s).min(start), (*e).max(end)),
            Some(_) => {}
        }
    }

    /// Whether the duplicate that was reported last began at `start`.
    pub(super) fn reported(&self, start: u64) -> bool {
        self.reported_from == Some(start)
    }

    /// What an ACK reports: a duplicate, once, and the blocks.
    pub(super) fn report(&mut self) -> (Option<Range>, &[Range]) {
        let duplicate = self.duplicate.take().filter(|_| self.sack);
        if let Some((start, _)) = duplicate {
            self.reported_from = Some(start);
        }
        (duplicate, if self.sack { &self.blocks } else { &[] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_become_one_block_and_the_newest_is_first() {
        let mut early = OutOfOrder::new(true);
        assert!(early.insert(10, 20) && early.insert(40, 50) && early.insert(20, 30));
        assert_eq!(early.report(), (None, &[(10, 30), (40, 50)][..]));
        assert!(!early.insert(12, 18));
    }

    #[test]
    fn what_fills_a_hole_joins_up_with_what_waits_behind_it() {
        let mut early = OutOfOrder::new(true);
        early.insert(10, 20);
        early.insert(40, 50);
        assert_eq!(early.fill(12), 20);
        // Bytes 10 and 11 came twice.
        assert_eq!(early.report(), (Some((10, 12)), &[(40, 50)][..]));
        assert!(early.reported(10));
        assert_eq!(early.fill(40), 50);
        assert!(early.is_empty());
    }

    #[test]
    fn without_sack_nothing_is_reported() {
        let mut early = OutOfOrder::new(false);
        early.insert(10, 20);
        early.note_duplicate(0, 5);
        assert_eq!(early.report(), (None, &[][..]));
        assert!(!early.reported(0));
    }
}
