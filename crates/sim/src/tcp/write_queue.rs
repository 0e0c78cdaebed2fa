//! The write queue: what the application wrote and TCP has not sent, in the buffers (skbs) that it was written into, and how
//! far the application may write ahead of what is acknowledged (`sk_sndbuf`).
//!
//! Source: Linux 7.3 `net/ipv4/tcp.c` (`tcp_sendmsg_locked`, `tcp_push`, `forced_push`), `net/ipv4/tcp_input.c`
//! (`tcp_check_space`, `tcp_sndbuf_expand`), `net/core/stream.c` (`sk_stream_write_space`), `net/ipv4/tcp_output.c`
//! (`tcp_grow_skb`, `tso_fragment`).
//!
//! An application blocks in `write` when the memory is used up, and goes on when a third of it is free. Linux sets PSH on a
//! buffer that ends a write, that is the last when the application blocks, and after each half of the peer's widest window.
//!
//! Parameters: `net.ipv4.tcp_wmem`, least, default and most bytes of memory (4096, 16384, 4 MiB; the least is not used).
//!
//! Departures: no autocorking.
//!
//! Validation: the tests below, `tests/offloads.rs`; packet lists of the real kernel (`tests/captures/test_kernel_packets.py`).

use crate::base::ring::Ring;
use crate::packet::charge::HEAD;

/// Memory of the largest segment in a buffer of its own: `kmalloc` of 1460 bytes, `MAX_TCP_HEADER` of 256 and 320 of shared
/// info, and an `sk_buff` of 256.
const PER_MSS: u64 = 2048 + 256;
/// What bakeoff's agent passes to the kernel in one call while it has as much, and otherwise.
const LARGE_WRITE: u64 = 4 << 20;
const WRITE: u64 = 64 << 10;

/// A buffer that was written.
#[derive(Clone, Copy, Debug, Default)]
struct Skb {
    bytes: u64,
    /// PSH on its last segment.
    push: bool,
}

/// What waits, and the memory that it may take.
#[derive(Debug)]
pub(super) struct WriteQueue {
    /// The oldest; without bytes if there is none.
    head: Skb,
    behind: Ring<Skb>,
    /// Bytes of memory (`sk_sndbuf`).
    size: u64,
    /// With no more in use the application goes on, if it waits: two thirds of `size`.
    enough: u64,
    /// Segments of the window that the memory was last made to suffice for.
    segs: u32,
    most: u64,
    /// Windows that it holds (`sndbuf_expand` of the congestion control).
    windows: u64,
    /// One past the last byte written (`write_seq`).
    pub end: u64,
    /// Where PSH was set last (`pushed_seq`).
    pushed: u64,
    /// Where the write under way ends.
    write_end: u64,
    /// Whether a part of it was written.
    begun: bool,
    /// Whether the application waits for memory (`SOCK_NOSPACE`).
    pub full: bool,
}

impl WriteQueue {
    /// With the values of `tcp_wmem` and memory of so many windows.
    pub fn new(wmem: [u64; 3], windows: u32) -> Self {
        let mut queue = WriteQueue {
            head: Skb::default(),
            behind: Ring::default(),
            size: 0,
            enough: 0,
            segs: 0,
            most: wmem[2],
            windows: windows.into(),
            end: 0,
            pushed: 0,
            write_end: 0,
            begun: false,
            full: false,
        };
        queue.resize(wmem[1]);
        queue.expand(10);
        queue
    }

    /// Makes the memory suffice for a window of so many segments (`tcp_sndbuf_expand`).
    #[inline]
    pub fn expand(&mut self, segs: u32) {
        if segs > self.segs {
            self.segs = segs;
            self.resize(self.size.max((self.windows * u64::from(segs.max(10)) * PER_MSS).min(self.most)));
        }
    }

    fn resize(&mut self, size: u64) {
        self.size = size;
        // The most of which the half, rounded down, is free as well.
        self.enough = (size / 3 * 2 + u64::from(!size.is_multiple_of(3))).min(size.saturating_sub(1));
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head.bytes == 0
    }

    /// Whether the buffer at the head is also the last.
    #[inline]
    pub fn is_single(&self) -> bool {
        self.head.bytes > 0 && self.behind.is_empty()
    }

    /// Bytes in the buffer at the head; 0 if there is none.
    #[inline]
    pub fn head(&self) -> u64 {
        self.head.bytes
    }

    /// Memory in use (`sk_wmem_queued`), with `unacked` bytes in so many buffers sent and not acknowledged from `una` on.
    #[inline]
    pub fn memory(&self, una: u64, sent_buffers: usize) -> u64 {
        let unsent = self.behind.len() + usize::from(self.head.bytes > 0);
        self.end - una + (sent_buffers + unsent) as u64 * HEAD
    }

    /// Whether so much memory leaves none for another buffer.
    pub fn is_used_up(&self, memory: u64) -> bool {
        memory >= self.size
    }

    /// With so much in use the application goes on if it waits (`sk_stream_is_writeable`).
    #[inline]
    pub fn wake(&mut self, memory: u64) {
        self.full = memory > self.enough;
    }

    /// The next write of an application that has data up to `limit`, if the one before is done; true if it begins now.
    pub fn begin_write(&mut self, limit: u64) -> bool {
        let begins = self.end >= self.write_end;
        if begins {
            let left = limit - self.end;
            self.write_end = self.end + if left >= LARGE_WRITE { LARGE_WRITE } else { left.min(WRITE) };
            self.begun = false;
        }
        begins
    }

    /// Whether the write under way is done.
    pub fn is_written(&self) -> bool {
        self.end >= self.write_end
    }

    fn last(&mut self) -> Option<&mut Skb> {
        match self.behind.len().checked_sub(1) {
            Some(index) => self.behind.get_mut(index),
            None => (self.head.bytes > 0).then_some(&mut self.head),
        }
    }

    /// Whether the last buffer takes more before it has `goal` bytes.
    pub fn has_room(&mut self, goal: u64) -> bool {
        self.last().is_some_and(|skb| skb.bytes < goal)
    }

    /// Fills the last buffer, or a `new` one, up to `goal` bytes or to the end of the write; whether it is full.
    pub fn fill(&mut self, new: bool, goal: u64) -> bool {
        let (left, begun) = (self.write_end - self.end, self.begun);
        if new && self.head.bytes > 0 {
            self.behind.push(Skb::default());
        }
        let skb = match self.behind.len().checked_sub(1).and_then(|index| self.behind.get_mut(index)) {
            Some(last) => last,
            None => &mut self.head,
        };
        let copied = left.min(goal.saturating_sub(skb.bytes));
        skb.bytes += copied;
        skb.push &= begun;
        self.begun = true;
        self.end += copied;
        skb.bytes >= goal
    }

    /// Sets PSH on the last buffer (`tcp_mark_push`).
    pub fn push_last(&mut self) {
        let end = self.end;
        if let Some(skb) = self.last() {
            skb.push = true;
            self.pushed = end;
        }
    }

    /// The application waits for memory; what it wrote of the write under way is pushed.
    pub fn block(&mut self) {
        self.full = true;
        if self.begun {
            self.push_last();
        }
    }

    /// The write is done and the next follows at once, and takes PSH back.
    pub fn push_passed(&mut self) {
        self.pushed = self.end;
    }

    /// Whether half of the peer's `widest` window was written since PSH was set last (`forced_push`).
    pub fn is_push_forced(&self, widest: u64) -> bool {
        self.end > self.pushed + widest / 2
    }

    /// The head takes from those behind it until it has `bytes` (`tcp_grow_skb`, which looks at one buffer).
    #[inline]
    pub fn grow(&mut self, bytes: u64) {
        if self.head.bytes < bytes && !self.behind.is_empty() {
            self.shift(bytes - self.head.bytes);
        }
    }

    fn shift(&mut self, missing: u64) {
        let Some(next) = self.behind.front_mut() else { return };
        let moved = missing.min(next.bytes);
        next.bytes -= moved;
        self.head.bytes += moved;
        if next.bytes == 0 {
            self.head.push |= next.push;
            self.behind.drop_front();
        }
    }

    /// Takes so many bytes off the head; whether they end with PSH.
    #[inline]
    pub fn take(&mut self, bytes: u64) -> bool {
        if bytes < self.head.bytes {
            self.head.bytes -= bytes;
            return false;
        }
        self.next_head()
    }

    /// The head is sent: whether it ended with PSH.
    fn next_head(&mut self) -> bool {
        let push = self.head.push;
        self.head = self.behind.front().copied().unwrap_or_default();
        if !self.behind.is_empty() {
            self.behind.drop_front();
        }
        push
    }

    /// What was not sent, from `snd_nxt` on, never will be.
    pub fn clear(&mut self, snd_nxt: u64) {
        self.head = Skb::default();
        self.behind.drop_oldest(self.behind.len());
        (self.end, self.write_end, self.full) = (snd_nxt, snd_nxt, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOAL: u64 = 45 * 1448;

    /// A queue in which an application wrote without end until memory was used up; none is sent.
    fn written(wmem: u64) -> WriteQueue {
        let mut queue = WriteQueue::new([4096, 16_384, wmem], 2);
        queue.resize(wmem);
        queue.begin_write(1 << 60);
        while !queue.is_used_up(queue.memory(0, 0)) {
            assert!(queue.fill(true, GOAL));
        }
        queue.block();
        queue
    }

    #[test]
    fn an_application_writes_buffers_until_memory_is_used_up_and_pushes_the_last() {
        // 2 (65160 + 896) = 132112 bytes are more than 100000
        let mut queue = written(100_000);
        assert_eq!((queue.behind.len(), queue.end, queue.full), (1, 2 * GOAL, true));
        assert!(!queue.take(GOAL), "the first has no PSH");
        assert!(!queue.take(1448) && queue.take(GOAL - 1448), "the last has, on its last part");
    }

    #[test]
    fn it_goes_on_when_a_third_is_free() {
        let mut queue = written(300_000);
        // 200001 used: half of that is more than what is free
        queue.wake(200_002);
        assert!(queue.full);
        queue.wake(200_000);
        assert!(!queue.full);
        assert_eq!(queue.memory(5 * GOAL, 10), 10 * HEAD + 5 * HEAD, "five were written, and ten are sent");
    }

    #[test]
    fn memory_is_twice_the_window_or_what_the_control_says() {
        let mut queue = WriteQueue::new([4096, 16_384, 300_000], 2);
        // 10 segments of the initial window: twice 10 * 2304 bytes
        assert_eq!(queue.size, 46_080);
        queue.expand(20);
        assert_eq!(queue.size, 92_160);
        queue.expand(100);
        assert_eq!(queue.size, 300_000);
        // three times
        assert_eq!(WriteQueue::new([4096, 16_384, 300_000], 3).size, 69_120);
    }

    #[test]
    fn a_head_that_is_too_short_takes_from_the_next_and_its_push_if_it_takes_all() {
        let mut queue = WriteQueue::new([4096, 16_384, 4 << 20], 2);
        queue.begin_write(1 << 60);
        for bytes in [1448, 3 * 1448] {
            queue.fill(true, bytes);
            queue.push_last();
        }
        queue.grow(3 * 1448);
        // one and two of three, with the head's own PSH; then the last of three
        assert_eq!((queue.head(), queue.behind.len()), (3 * 1448, 1));
        assert!(queue.take(3 * 1448));
        queue.fill(true, 1448);
        queue.grow(2 * 1448);
        assert!(queue.is_single());
        assert!(queue.take(2 * 1448), "PSH of the first part holds for both");
    }

    #[test]
    fn half_of_the_widest_window_forces_a_push() {
        let mut queue = written(60_000);
        assert_eq!(queue.pushed, GOAL);
        queue.fill(true, 32_580);
        assert!(!queue.is_push_forced(65_160));
        queue.fill(false, 32_581);
        assert!(queue.is_push_forced(65_160));
    }

    #[test]
    fn a_write_takes_back_the_push_of_the_one_before() {
        let mut queue = WriteQueue::new([4096, 16_384, 4 << 20], 2);
        assert!(queue.begin_write(1000));
        assert!(!queue.fill(true, GOAL) && queue.is_written());
        queue.push_last();
        assert!(queue.begin_write(3000) && queue.has_room(GOAL));
        queue.fill(false, GOAL);
        assert_eq!((queue.head(), queue.end), (3000, 3000));
        assert!(!queue.take(3000));
    }

    #[test]
    fn what_is_short_of_four_mib_is_written_in_parts() {
        let mut queue = WriteQueue::new([4096, 16_384, 4 << 20], 2);
        queue.begin_write((4 << 20) + 70_000);
        assert_eq!(queue.write_end, 4 << 20);
        queue.end = 4 << 20;
        queue.begin_write((4 << 20) + 70_000);
        assert_eq!(queue.write_end, (4 << 20) + 65_536);
    }
}
