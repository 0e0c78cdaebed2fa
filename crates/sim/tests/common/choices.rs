//! Random documents from a row of numbers: each number decides one thing, and 0 is always the simplest, so that a row that
//! proptest shrinks is a document that shrinks.

/// Numbers that decide; when they are used up everything is simple.
pub struct Choices<'a> {
    rest: std::slice::Iter<'a, u32>,
}

impl<'a> Choices<'a> {
    pub fn new(row: &'a [u32]) -> Self {
        Choices { rest: row.iter() }
    }

    /// 0 to `n - 1`.
    pub fn below(&mut self, n: usize) -> usize {
        self.rest.next().map_or(0, |choice| *choice as usize % n)
    }

    /// One of `all`.
    pub fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    /// True in one of `n` cases.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == n - 1
    }

    /// `make` up to `most` times.
    pub fn some<T>(&mut self, most: usize, mut make: impl FnMut(&mut Self, usize) -> T) -> Vec<T> {
        let n = self.below(most + 1);
        (0..n).map(|i| make(self, i)).collect()
    }
}
