//! What a flow carried over time, in intervals that become longer if there are too many of them.
//!
//! Only intervals in which something happened are kept while the capture is read. They are told without gaps, so each
//! flow has as many as all flows together leave room for.

/// Most intervals of one flow.
pub const POINTS: usize = 4096;
/// Intervals of all flows of one kind together.
pub const ALL_POINTS: usize = 1 << 19;
/// Intervals that every flow may keep, however many flows there are.
const ALWAYS: usize = 8;

/// What is counted in one interval.
pub trait Slot: Copy + Default {
    /// Adds what was counted in the next one.
    fn join(&mut self, other: &Self);
}

/// The intervals of a flow.
#[derive(Clone, Debug)]
pub struct Intervals<S> {
    length_ns: i64,
    /// Number of the interval, counted from the begin of the capture, and what it holds; in order.
    kept: Vec<(i64, S)>,
    /// Where the current one begins and ends and its place in `kept`, so that nothing is divided per packet.
    current: (i64, i64, usize),
}

impl<S: Slot> Intervals<S> {
    pub fn new(length_ns: i64) -> Intervals<S> {
        Intervals { length_ns, kept: Vec::new(), current: (0, 0, 0) }
    }

    /// The interval of a time since the begin of the capture. `points` is what all flows may still keep.
    pub fn at(&mut self, since_ns: i64, points: &mut usize) -> &mut S {
        let (from, to, place) = self.current;
        if since_ns >= from && since_ns < to {
            return &mut self.kept[place].1;
        }
        loop {
            let number = since_ns.div_euclid(self.length_ns);
            let place = self.kept.partition_point(|(kept, _)| *kept < number);
            let known = self.kept.get(place).is_some_and(|(kept, _)| *kept == number);
            let full = self.kept.len() >= POINTS || self.kept.len() >= ALWAYS && *points == 0;
            if !known && full {
                *points += self.double();
                continue;
            }
            if !known {
                *points = points.saturating_sub(1);
                self.kept.insert(place, (number, S::default()));
            }
            let from = number.saturating_mul(self.length_ns);
            self.current = (from, from.saturating_add(self.length_ns), place);
            return &mut self.kept[place].1;
        }
    }

    /// Changes every interval.
    pub fn each(&mut self, mut change: impl FnMut(&mut S)) {
        self.kept.iter_mut().for_each(|(_, slot)| change(slot));
    }

    /// How many intervals there are from the first to the last.
    pub fn span(&self) -> usize {
        match &self.kept[..] {
            [] => 0,
            [(first, _), .., (last, _)] => {
                usize::try_from(last.abs_diff(*first)).unwrap_or(usize::MAX).saturating_add(1)
            }
            [_] => 1,
        }
    }

    /// Makes the intervals twice as long; how many fewer are kept.
    fn double(&mut self) -> usize {
        let before = self.kept.len();
        self.kept.iter_mut().for_each(|(number, _)| *number = number.div_euclid(2));
        self.kept.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1.join(&next.1);
            }
            same
        });
        self.length_ns = self.length_ns.saturating_mul(2);
        self.current = (0, 0, 0);
        before - self.kept.len()
    }

    /// All intervals from the first to the last, no more than `most`.
    pub fn finish(mut self, most: usize) -> Told<S> {
        while self.span() > most.max(1) {
            self.double();
        }
        let first = self.kept.first().map_or(0, |(number, _)| *number);
        let mut slots = vec![S::default(); self.span()];
        for (number, slot) in self.kept {
            slots[number.abs_diff(first) as usize] = slot;
        }
        Told { length_ns: self.length_ns, first, slots }
    }
}

/// Intervals without gaps.
pub struct Told<S> {
    pub length_ns: i64,
    first: i64,
    pub slots: Vec<S>,
}

impl<S> Told<S> {
    /// Length of the intervals.
    pub fn interval_s(&self) -> f64 {
        self.length_ns as f64 * 1e-9
    }

    /// The end of each interval; `shift_ns` is the begin of the capture in the times that are told.
    pub fn time_s(&self, shift_ns: i64) -> Vec<f64> {
        let shift_s = shift_ns as f64 * 1e-9;
        (1..=self.slots.len() as i64).map(|i| (self.first + i) as f64 * self.interval_s() + shift_s).collect()
    }
}

/// The most intervals that each flow may have, so that all together have no more than [`ALL_POINTS`].
pub fn most(spans: impl Iterator<Item = usize>) -> usize {
    let mut spans: Vec<usize> = spans.map(|span| span.min(POINTS)).collect();
    spans.sort_unstable();
    let mut left = ALL_POINTS;
    for (i, span) in spans.iter().enumerate() {
        let share = left / (spans.len() - i);
        if *span > share {
            return share.max(1);
        }
        left -= span;
    }
    POINTS
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Slot for u64 {
        fn join(&mut self, other: &u64) {
            *self += other;
        }
    }

    /// 8192 packets, one per 10 ms: intervals of 10 ms become 20 ms, each with two.
    #[test]
    fn a_long_flow_has_longer_intervals_and_the_same_sum() {
        let mut intervals = Intervals::<u64>::new(10_000_000);
        for i in 0..8192 {
            *intervals.at(i * 10_000_000, &mut POINTS.clone()) += 1;
        }
        let told = intervals.finish(POINTS);
        assert_eq!((told.length_ns, told.slots.len()), (20_000_000, 4096));
        assert!(told.slots.iter().all(|packets| *packets == 2));
        assert!((told.time_s(1_000_000_000)[0] - 1.02).abs() < 1e-12);
    }

    /// Two packets 31 years apart keep two intervals, of which doubling makes 10^9 / 2^20 = 953 s.
    #[test]
    fn a_sparse_flow_keeps_what_it_has() {
        let mut intervals = Intervals::<u64>::new(1_000_000);
        let mut points = 100;
        for at in [1_000_000_000_000_000_000, -5, 0] {
            *intervals.at(at, &mut points) += 1;
        }
        assert_eq!((intervals.kept.len(), points), (3, 97));
        let told = intervals.finish(1000);
        assert_eq!((told.slots.iter().sum::<u64>(), told.slots.len() <= 1000), (3, true));
        assert!(told.slots.len() > 500);
    }

    /// Without room a flow of 100 packets keeps 8 intervals: 100 of 1 become 7 of 16.
    #[test]
    fn many_flows_have_few_intervals_each() {
        let mut intervals = Intervals::<u64>::new(1);
        for at in 0..100 {
            *intervals.at(at, &mut 0) += 1;
        }
        assert_eq!((intervals.kept.len(), intervals.length_ns), (7, 16));
        // 2^19 / 2^16 = 8; short flows leave their share to the others.
        assert_eq!(most(std::iter::repeat_n(4096, 1 << 16)), 8);
        assert_eq!(most(std::iter::repeat_n(1, 1000).chain([4096; 300])), (ALL_POINTS - 1000) / 300);
        assert_eq!(most([5000, 3].into_iter()), POINTS);
    }
}
