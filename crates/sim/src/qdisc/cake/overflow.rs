//! Which queue is the longest: a heap over the backlogs of all queues of all tins, kept only while memory
//! is short.
//!
//! Source: Linux 7.3 `net/sched/sch_cake.c` (`cake_heapify*`, `cake_drop`): the same order of comparisons, so
//! that of equally long queues the same one is taken.

use super::tin::QUEUES;

const TINS: usize = 8;
const SIZE: usize = TINS * QUEUES;
/// For so many packets sent after a drop the heap is kept in order.
const PATIENCE: u16 = u16::MAX;

/// The backlogs of all queues in bytes, and the heap.
pub(super) struct Overflow {
    /// By tin * [`QUEUES`] + queue.
    backlogs: Vec<u32>,
    heap: Vec<u16>,
    /// Where each queue is in the heap.
    positions: Vec<u16>,
    /// 0: the heap is not in order.
    patience: u16,
}

/// The number of a queue in all tins.
pub(super) fn id(tin: usize, queue: usize) -> usize {
    tin * QUEUES + queue
}

impl Overflow {
    pub(super) fn new() -> Self {
        // The kernel begins with the first queue of each tin, then the second, and so on.
        let heap: Vec<u16> = (0..SIZE).map(|at| id(at % TINS, at / TINS) as u16).collect();
        let mut positions = vec![0; SIZE];
        for (at, id) in heap.iter().enumerate() {
            positions[usize::from(*id)] = at as u16;
        }
        Overflow { backlogs: vec![0; SIZE], heap, positions, patience: 0 }
    }

    /// `bytes` more stand in the queue, after `less` bytes fewer.
    pub(super) fn grow(&mut self, id: usize, bytes: u32, less: u32) {
        self.backlogs[id] = self.backlogs[id] + bytes - less;
        if self.patience > 0 {
            self.sift_up(usize::from(self.positions[id]));
        }
    }

    /// `bytes` fewer stand in the queue.
    pub(super) fn shrink(&mut self, id: usize, bytes: u32) {
        self.backlogs[id] -= bytes;
        if self.patience > 0 {
            self.sift_down(usize::from(self.positions[id]));
        }
    }

    /// A packet was sent.
    pub(super) fn sent(&mut self) {
        self.patience = self.patience.saturating_sub(1);
    }

    /// The longest queue, as (tin, queue); the heap is put in order if it is not.
    pub(super) fn longest(&mut self) -> (usize, usize) {
        if self.patience == 0 {
            for at in (0..SIZE / 2).rev() {
                self.sift_down(at);
            }
        }
        self.patience = PATIENCE;
        let id = usize::from(self.heap[0]);
        (id / QUEUES, id % QUEUES)
    }

    fn backlog_at(&self, at: usize) -> u32 {
        self.backlogs[usize::from(self.heap[at])]
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.positions[usize::from(self.heap[a])] = a as u16;
        self.positions[usize::from(self.heap[b])] = b as u16;
    }

    /// Source: Linux 7.3 `cake_heapify`.
    fn sift_down(&mut self, mut at: usize) {
        loop {
            let mut most = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < SIZE && self.backlog_at(child) > self.backlog_at(most) {
                    most = child;
                }
            }
            if most == at {
                return;
            }
            self.swap(at, most);
            at = most;
        }
    }

    /// Source: Linux 7.3 `cake_heapify_up`.
    fn sift_up(&mut self, mut at: usize) {
        while at > 0 && self.backlog_at(at) > self.backlog_at((at - 1) / 2) {
            self.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Stream;

    #[test]
    fn the_longest_queue_is_found_whatever_grew_and_shrank() {
        let mut overflow = Overflow::new();
        let mut rng = Stream::new(1, "test");
        for step in 0..20_000 {
            let id = rng.below(SIZE as u32) as usize;
            let bytes = 1 + rng.below(1514);
            overflow.grow(id, bytes, 0);
            let other = rng.below(SIZE as u32) as usize;
            overflow.shrink(other, overflow.backlogs[other].min(bytes));
            if step % 100 == 0 {
                let (tin, queue) = overflow.longest();
                let most = overflow.backlogs.iter().max().copied();
                assert_eq!(Some(overflow.backlogs[tin * QUEUES + queue]), most);
            }
            if step % 7000 == 0 {
                overflow.patience = 0;
            }
        }
    }
}
