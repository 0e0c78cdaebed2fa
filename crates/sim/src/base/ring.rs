//! A queue of copies in a ring: what stands on wires and in plain fifos, and what a sender has in flight.
//!
//! The same as a `VecDeque`, but what leaves is looked at where it lies and then dropped (a packet is 112 bytes, and
//! taking it out of an `Option` moves it twice), and positions wrap by a mask.

use std::fmt;

/// First in, first out.
#[derive(Clone)]
pub struct Ring<T> {
    /// As many as a power of two, or none.
    slots: Vec<T>,
    head: usize,
    len: usize,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Ring { slots: Vec::new(), head: 0, len: 0 }
    }
}

impl<T> fmt::Debug for Ring<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring").field("len", &self.len).finish_non_exhaustive()
    }
}

impl<T: Copy + Default> Ring<T> {
    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends a copy.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "so that what is appended is written where it will lie")]
    pub fn push(&mut self, item: T) {
        *self.push_slot() = item;
    }

    /// Appends something, to be filled in where it lies.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "part of each packet's way")]
    pub fn push_slot(&mut self) -> &mut T {
        if self.len == self.slots.len() {
            self.grow();
        }
        let at = self.place(self.len);
        self.len += 1;
        &mut self.slots[at]
    }

    /// Puts something in at `index`, counted from the oldest; what stood there and behind goes one place back.
    pub fn insert(&mut self, index: usize, item: T) {
        self.push(item);
        for behind in (index + 1..self.len).rev() {
            let (from, to) = (self.place(behind - 1), self.place(behind));
            self.slots.swap(from, to);
        }
    }

    /// The oldest.
    #[inline]
    pub fn front(&self) -> Option<&T> {
        if self.len == 0 { None } else { self.slots.get(self.head) }
    }

    /// The oldest, to change.
    #[inline]
    pub fn front_mut(&mut self) -> Option<&mut T> {
        if self.len == 0 { None } else { self.slots.get_mut(self.head) }
    }

    /// The newest.
    #[inline]
    pub fn back(&self) -> Option<&T> {
        self.get(self.len.wrapping_sub(1))
    }

    /// The one at `index`, counted from the oldest.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        if index >= self.len {
            return None;
        }
        self.slots.get(self.place(index))
    }

    /// The one at `index`, to change.
    #[inline]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        if index >= self.len {
            return None;
        }
        let at = self.place(index);
        self.slots.get_mut(at)
    }

    /// Drops the oldest; there has to be one.
    #[inline]
    pub fn drop_front(&mut self) {
        self.drop_oldest(1);
    }

    /// Drops the `n` oldest; there have to be so many.
    #[inline]
    pub fn drop_oldest(&mut self, n: usize) {
        debug_assert!(n <= self.len, "{n} of {}", self.len);
        self.head = self.place(n);
        self.len -= n;
    }

    /// How many from the oldest on satisfy `ahead`, which none behind the first that does not satisfies.
    pub fn partition_point(&self, ahead: impl Fn(&T) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.get(middle).is_some_and(&ahead) { low = middle + 1 } else { high = middle }
        }
        low
    }

    #[inline]
    fn place(&self, index: usize) -> usize {
        (self.head + index) & self.slots.len().wrapping_sub(1)
    }

    /// From the oldest to the newest.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let (behind, ahead) = self.slots.split_at(self.head);
        ahead.iter().chain(behind).take(self.len)
    }

    /// The same, to change them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let (behind, ahead) = self.slots.split_at_mut(self.head);
        ahead.iter_mut().chain(behind).take(self.len)
    }

    /// Twice as many slots, at least four.
    #[cold]
    fn grow(&mut self) {
        self.slots.rotate_left(self.head);
        self.head = 0;
        self.slots.resize((2 * self.slots.len()).max(4), T::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn something_is_put_in_at_any_place(before in 0..9_usize, items in prop::collection::vec(any::<u8>(), 1..40), at in any::<prop::sample::Index>()) {
            let (mut ring, mut deque) = (Ring::default(), VecDeque::new());
            // So that the ring does not begin at its first slot.
            (0..before).for_each(|_| ring.push(0));
            ring.drop_oldest(before);
            for item in items {
                let at = at.index(deque.len() + 1);
                ring.insert(at, item);
                deque.insert(at, item);
            }
            prop_assert!(ring.iter().eq(&deque));
        }

        #[test]
        fn it_does_what_a_deque_does(steps in prop::collection::vec(any::<Option<u8>>(), 0..200)) {
            let (mut ring, mut deque) = (Ring::default(), VecDeque::new());
            for step in steps {
                match step {
                    Some(item) => {
                        ring.push(item);
                        deque.push_back(item);
                    }
                    None if deque.pop_front().is_some() => ring.drop_front(),
                    None => {}
                }
                prop_assert_eq!(ring.front(), deque.front());
                prop_assert_eq!((ring.len(), ring.is_empty()), (deque.len(), deque.is_empty()));
                prop_assert_eq!(ring.back(), deque.back());
                prop_assert!(ring.iter().eq(&deque));
                prop_assert!(ring.iter_mut().eq(&mut deque.iter_mut()));
                prop_assert!((0..=deque.len()).all(|i| ring.get(i) == deque.get(i)));
            }
        }
    }
}
