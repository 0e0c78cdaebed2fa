//! The send buffer: how far the application may write ahead of what is acknowledged (`sk_sndbuf`).
//!
//! Source: Linux 7.3 `net/ipv4/tcp.c` (`tcp_sendmsg_locked`), `net/ipv4/tcp_input.c` (`tcp_sndbuf_expand`),
//! `net/core/stream.c` (`sk_stream_write_space`).
//!
//! An application that waits for room is told when a third is free. Then it writes until the memory is used up, but not less
//! than what may be sent at once: as long as a part of the last buffer leaves, the rest of it takes more without a look at
//! the memory.
//!
//! Parameters: `net.ipv4.tcp_wmem`, least, default and most bytes of memory (4096, 16384, 4 MiB; the least is not used).
//!
//! Departures: an application that has more to write does so when all that it wrote has been sent and it may, not a little
//! earlier. BBR's own `sndbuf_expand` of 3 windows is 2 here.
//!
//! Validation: the tests below, `tests/offloads.rs`; the real kernel (docs/validation/results.md).

use crate::packet::charge::HEAD;

/// Memory of the largest segment in a buffer of its own, `kmalloc` and `sk_buff` included: 4096 + 256 bytes.
const PER_MSS: u64 = 4352;
/// Segments that the application writes into one buffer, and their payload.
const BUFFER_SEGS: u32 = 45;
const BUFFER: u64 = BUFFER_SEGS as u64 * 1448;

/// How much fits.
#[derive(Debug)]
pub(super) struct SendBuffer {
    /// Bytes of memory.
    size: u64,
    most: u64,
    /// One past the last byte that the application could write; `u64::MAX` while it writes as much as is sent.
    pub end: u64,
    /// Whether the application waits for room (`SOCK_NOSPACE`).
    pub full: bool,
}

impl SendBuffer {
    /// With the values of `tcp_wmem`.
    pub fn new(wmem: [u64; 3]) -> Self {
        let mut buffer = SendBuffer { size: wmem[1], most: wmem[2], end: 0, full: false };
        buffer.expand(10);
        buffer
    }

    /// For a window of so many segments.
    fn expand(&mut self, segs: u64) {
        self.size = self.size.max((2 * segs * PER_MSS).min(self.most));
    }

    /// Whether the application may write more, when all that it wrote has been sent up to `sent`; `in_flight` bytes of it in so
    /// many buffers are not acknowledged, the window is `segs` segments, and `at_once` leave in one buffer.
    pub fn may_write(&mut self, sent: u64, in_flight: u64, buffers: u64, segs: u64, at_once: u32) -> bool {
        self.expand(segs.max(10));
        let queued = in_flight + buffers * HEAD;
        self.full = queued > 0 && self.size.saturating_sub(queued) < queued / 2;
        if !self.full {
            self.end = u64::MAX;
            if at_once >= BUFFER_SEGS {
                self.settle(sent, in_flight, buffers);
            }
        }
        !self.full
    }

    /// No more could be sent: the application fills the last buffer, and others until the memory is used up.
    pub fn settle(&mut self, sent: u64, in_flight: u64, buffers: u64) {
        let free = self.size.saturating_sub(in_flight + buffers * HEAD);
        self.end = sent + free.div_ceil(BUFFER + HEAD).max(1) * BUFFER;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buffer_is_written_full_when_a_third_is_free() {
        let mut buffer = SendBuffer::new([4096, 16_384, 300_000]);
        // 10 segments of the initial window: twice 10 * 4352 bytes, in two buffers of GSO's size
        assert_eq!(buffer.size, 87_040);
        assert!(buffer.may_write(0, 0, 0, 10, 45));
        assert_eq!(buffer.end, 2 * BUFFER);
        // a window of 100 would be 870400 bytes
        assert!(!buffer.may_write(1_000_000, 200_001 - 10 * HEAD, 10, 100, 45) && buffer.full);
        assert_eq!(buffer.size, 300_000);
        // 200000 are two thirds; 100000 free bytes begin two buffers
        assert!(buffer.may_write(1_000_000, 200_000 - 10 * HEAD, 10, 100, 45) && !buffer.full);
        assert_eq!(buffer.end, 1_000_000 + 2 * BUFFER);
    }

    #[test]
    fn what_is_sent_in_parts_is_written_until_no_more_can_be_sent() {
        let mut buffer = SendBuffer::new([4096, 16_384, 300_000]);
        assert!(buffer.may_write(1_000_000, 200_000, 0, 100, 20));
        assert_eq!(buffer.end, u64::MAX);
        // 500000 bytes in flight are more than the memory: the last buffer takes what it takes
        buffer.settle(1_300_000, 500_000, 20);
        assert_eq!(buffer.end, 1_300_000 + BUFFER);
    }
}
