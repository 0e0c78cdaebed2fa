//! What arrived ahead of a hole, and what an ACK reports of it: SACK blocks, and one duplicate (D-SACK).
//!
//! Linux keeps the blocks apart from the data. Four are remembered; when a fifth begins, the oldest is forgotten, and what
//! arrives next to forgotten data begins a block that does not include it.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_input.c` (`tcp_data_queue_ofo`, `tcp_ofo_queue`, `tcp_sack_new_ofo_skb`,
//! `tcp_dsack_extend`); RFC 2018, RFC 2883.
//!
//! Validation: the tests below and in `receiver.rs`.

/// Bytes of the stream: the first, and the one behind the last.
pub(super) type Range = (u64, u64);

/// SACK blocks that are remembered (`TCP_NUM_SACKS`).
const BLOCKS: usize = 4;
/// Blocks that an ACK is sure to have room for (`TCP_SACK_BLOCKS_EXPECTED`).
const EXPECTED: usize = 2;

/// Ranges that wait for what is missing before them.
#[derive(Clone, Debug)]
pub(super) struct OutOfOrder {
    /// Whether the peer does SACK: without, nothing is reported.
    sack: bool,
    /// Ascending and disjoint.
    ranges: Vec<Range>,
    /// Those to report, the most recently changed first (`selective_acks`).
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

    /// Bytes that wait.
    pub(super) fn bytes(&self) -> u64 {
        self.ranges.iter().map(|(start, end)| end - start).sum()
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

    /// Takes a range; false if it was there already.
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
        true
    }

    /// The block that a range adds to.
    fn block_of(&self, (start, end): Range) -> Option<usize> {
        self.blocks.iter().position(|&(s, e)| start <= e && end >= s)
    }

    /// Whether an ACK with this range first has no room for all blocks that it had room for without.
    pub(super) fn crowds(&self, start: u64, end: u64) -> bool {
        self.block_of((start, end)).unwrap_or(self.blocks.len()) >= EXPECTED
    }

    /// Reports a range that was taken, or came again. The block that changed last is told first (RFC 2018, section 4).
    pub(super) fn add_block(&mut self, start: u64, end: u64) {
        let mut first = (start, end);
        if let Some(at) = self.block_of(first) {
            let (s, e) = self.blocks.remove(at);
            first = (s.min(start), e.max(end));
            // It may now meet others.
            let mut next = 0;
            while let Some(&(s, e)) = self.blocks.get(next) {
                if first.0 <= e && first.1 >= s {
                    first = (first.0.min(s), first.1.max(e));
                    self.blocks.remove(next);
                } else {
                    next += 1;
                }
            }
        }
        self.blocks.truncate(BLOCKS - 1);
        self.blocks.insert(0, first);
    }

    /// This range came again: the next ACK reports it.
    pub(super) fn note_duplicate(&mut self, start: u64, end: u64) {
        self.duplicate = Some((start, end));
    }

    /// A segment with data came: what came twice before it, and waits for an ACK still, is not reported any more.
    #[inline]
    pub(super) fn forget_duplicate(&mut self) {
        self.duplicate = None;
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

    /// Takes ranges and reports them.
    fn take(early: &mut OutOfOrder, ranges: &[Range]) {
        for &(start, end) in ranges {
            assert!(early.insert(start, end));
            early.add_block(start, end);
        }
    }

    #[test]
    fn ranges_that_touch_become_one_block_and_the_newest_is_first() {
        let mut early = OutOfOrder::new(true);
        take(&mut early, &[(10, 20), (40, 50), (20, 30)]);
        assert_eq!(early.report(), (None, &[(10, 30), (40, 50)][..]));
        assert!(!early.insert(12, 18));
        take(&mut early, &[(30, 40)]);
        assert_eq!(early.report(), (None, &[(10, 50)][..]));
    }

    #[test]
    fn a_third_block_crowds_and_a_fifth_pushes_out_the_oldest() {
        let mut early = OutOfOrder::new(true);
        take(&mut early, &[(10, 20)]);
        assert!(!early.crowds(30, 40));
        take(&mut early, &[(30, 40)]);
        assert!(early.crowds(50, 60) && !early.crowds(40, 45) && !early.crowds(20, 25));
        take(&mut early, &[(50, 60)]);
        // The third of 50, 30, 10 moves to the front.
        assert!(early.crowds(20, 25));
        take(&mut early, &[(70, 80), (90, 100)]);
        assert_eq!(early.report(), (None, &[(90, 100), (70, 80), (50, 60), (30, 40)][..]));
        // 10 to 20 is forgotten: what follows it is a block by itself.
        take(&mut early, &[(20, 25)]);
        assert_eq!(early.report().1[0], (20, 25));
        assert_eq!(early.fill(10), 25);
    }

    #[test]
    fn what_fills_a_hole_joins_up_with_what_waits_behind_it() {
        let mut early = OutOfOrder::new(true);
        take(&mut early, &[(10, 20), (40, 50)]);
        assert_eq!(early.fill(12), 20);
        // Bytes 10 and 11 came twice.
        assert_eq!(early.report(), (Some((10, 12)), &[(40, 50)][..]));
        assert!(early.reported(10));
        assert_eq!(early.fill(40), 50);
        assert!(early.is_empty());
    }

    #[test]
    fn a_duplicate_that_no_ack_reported_is_forgotten_with_the_next_segment() {
        let mut early = OutOfOrder::new(true);
        early.note_duplicate(0, 5);
        early.forget_duplicate();
        assert_eq!(early.report().0, None);
    }

    #[test]
    fn without_sack_nothing_is_reported() {
        let mut early = OutOfOrder::new(false);
        take(&mut early, &[(10, 20)]);
        early.note_duplicate(0, 5);
        assert_eq!(early.report(), (None, &[][..]));
        assert!(!early.reported(0));
    }
}
