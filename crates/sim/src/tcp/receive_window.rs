//! The advertised window: how much of the receive buffer the sender may fill.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_input.c` (`tcp_measure_rcv_mss`, `tcp_grow_window`, `tcp_rcv_rtt_measure_ts`,
//! `tcp_rcv_space_adjust`, `tcp_rcvbuf_grow`).
//!
//! Parameters: `net.ipv4.tcp_rmem` (its default and its most), `net.ipv4.tcp_moderate_rcvbuf`. A window is the share of the
//! buffer that was payload in the largest segment seen (`scaling_ratio`), half before one was; of the default, and of the
//! most if it is moderated.
//!
//! Departures: what waits for a hole takes memory only from what would open the window further.
//!
//! Validation: the tests below and in `receiver.rs`; slow start beside a real kernel's (docs/validation/results.md).

use crate::base::units::Time;
use crate::packet::Packet;
use crate::packet::charge;

/// The most that a window is before any data.
const INITIAL: u64 = 65_535;
/// `scaling_ratio` before a segment was seen
const FIRST_RATIO: u64 = 128;
/// `net.core.rmem_max`
const RMEM_MAX: u64 = 212_992;
/// `tcp_rcvbuf_low_rtt`
const LOW_RTT: Time = Time::from_ms(1);
/// Smaller segments do not open the window.
const SMALL: u32 = 128;

/// The receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Second value of `tcp_rmem`, in bytes.
    pub default: u64,
    /// Third value of `tcp_rmem`, in bytes.
    pub most: u64,
    /// `tcp_moderate_rcvbuf`: whether it grows beyond the default.
    pub moderate: bool,
}

impl Default for Buffer {
    fn default() -> Self {
        Buffer { default: 128 << 10, most: 6 << 20, moderate: true }
    }
}

/// A receiver's window.
pub(super) struct ReceiveWindow {
    buffer: Buffer,
    mss: u32,
    /// So many 256ths of a buffer are payload (`scaling_ratio`).
    ratio: u64,
    /// Bytes of memory (`sk_rcvbuf`).
    memory: u64,
    /// When data in order arrived last. The application reads it when the host is done with all that arrived then.
    arrived_at: Time,
    /// Bytes of memory that arrived then (`sk_rmem_alloc`).
    unread: u64,
    /// With so much unread, or more, the memory holds no wider window.
    shut: u64,
    /// Bytes that wait for a hole, when one more comes.
    held: u64,
    /// What will have been read when the first buffer of that time is.
    first_read: u64,
    /// The same of the last.
    last_read: u64,
    /// What it has opened to (`rcv_ssthresh`).
    bytes: u64,
    /// What it may open to (`window_clamp`).
    clamp: u64,
    /// What the last ACK advertised (`rcv_wnd`).
    advertised: u64,
    /// The unit that windows are told in, less one: of the window scale.
    unit: u64,
    rtt: Option<Time>,
    /// The stamp that the last sample of the RTT came from, in ms.
    echo_of: u64,
    /// Most bytes read in one round trip so far.
    space: u64,
    /// When the round trip began that is measured, and what had been read by then.
    since: (Time, u64),
    /// When it ends.
    round_ends: Time,
}

impl ReceiveWindow {
    pub fn new(buffer: Buffer, mss: u32) -> Self {
        let mss_bytes = u64::from(mss);
        let memory = buffer.default.min(1 << 40);
        let full = (memory * FIRST_RATIO) >> 8;
        // Whole segments (`tcp_select_initial_window`).
        let first = full.min(INITIAL);
        let first = if first > mss_bytes { first - first % mss_bytes } else { first };
        // One segment is reserved (`tcp_init_buffer_space`).
        let clamp = if full > 2 * mss_bytes { (full - mss_bytes).max(2 * mss_bytes) } else { full };
        let largest = buffer.most.max(buffer.default).max(RMEM_MAX);
        ReceiveWindow {
            buffer,
            mss,
            ratio: FIRST_RATIO,
            memory,
            arrived_at: Time::ZERO,
            unread: 0,
            shut: u64::MAX,
            held: 0,
            first_read: 0,
            last_read: 0,
            bytes: first.min(clamp),
            clamp,
            advertised: first,
            unit: (1 << largest.ilog2().saturating_sub(15).min(14)) - 1,
            rtt: None,
            echo_of: 0,
            space: (10 * mss_bytes).min(first).min(clamp),
            since: (Time::ZERO, 0),
            round_ends: Time(u64::MAX),
        }
    }

    /// The connection is open: the first round trip begins.
    pub fn begin(&mut self, now: Time) {
        if self.since.1 == 0 {
            self.since.0 = now;
            self.plan_round();
        }
    }

    /// After the round trip's begin or its length changed.
    fn plan_round(&mut self) {
        self.round_ends = self.rtt.map_or(Time(u64::MAX), |rtt| self.since.0 + rtt);
    }

    /// What was advertised last, in bytes.
    pub fn advertised(&self) -> u64 {
        self.advertised
    }

    /// The window that an ACK advertises which acknowledges so many bytes more than the last (`tcp_select_window`).
    #[inline]
    pub fn select(&mut self, acked: u64) -> u64 {
        let kept = self.advertised.saturating_sub(acked);
        self.advertised = (self.bytes.min(self.free()).max(kept) + self.unit) & !self.unit;
        self.advertised
    }

    /// What the memory that is free would hold (`tcp_space`).
    #[inline]
    fn free(&self) -> u64 {
        ((self.memory - self.unread) * self.ratio) >> 8
    }

    /// It is `now`: what arrived before was read.
    #[inline]
    pub fn turn(&mut self, now: Time) {
        if self.arrived_at != now && self.unread > 0 {
            self.unread = 0;
            if self.arrived_at >= self.round_ends {
                self.adjust(self.arrived_at);
            }
        }
    }

    /// A segment in order arrived, with which the application will have read so many bytes, and `read` with those that it
    /// freed from behind a hole.
    #[inline]
    pub fn arrived(&mut self, packet: &Packet, segment_read: u64, read: u64, now: Time) {
        if self.unread == 0 {
            (self.arrived_at, self.first_read) = (now, segment_read);
        }
        self.unread += charge::truesize(packet);
        self.last_read = read;
        // Where a round trip takes no time it is read in between.
        if self.unread > self.memory / 2 {
            self.unread = 0;
            self.adjust(now);
        }
    }

    /// So many bytes wait for a hole.
    pub fn holds(&mut self, bytes: u64) {
        self.held = bytes;
    }

    /// The round trip as a receiver sees it.
    pub fn rtt(&self) -> Option<Time> {
        self.rtt
    }

    /// A segment of another length than those before: what of its memory is payload holds for the buffer.
    pub fn measure_buffer(&mut self, packet: &Packet) {
        let ratio = ((u64::from(packet.payload) << 8) / charge::truesize(packet)).clamp(1, 255);
        if ratio != self.ratio {
            self.ratio = ratio;
            self.clamp = (self.memory * ratio) >> 8;
            self.shut = u64::MAX;
            self.space = self.space.min(self.clamp);
        }
    }

    /// From the echo of our own ACKs, once per stamp; stamps are whole milliseconds.
    pub fn measure_rtt(&mut self, packet: &Packet, now: Time) {
        if packet.echo.as_ms() != self.echo_of {
            self.echo_of = packet.echo.as_ms();
            let sample = Time::from_ms(now.as_ms() - self.echo_of);
            if sample == Time::ZERO {
                return;
            }
            self.rtt = Some(match self.rtt {
                Some(rtt) if sample >= rtt => Time(rtt.0 - rtt.0 / 8 + sample.0 / 8),
                _ => sample,
            });
            self.plan_round();
        }
    }

    /// Two segments more with each that comes; whether there was room for that.
    #[inline]
    pub fn open(&mut self, payload: u32) -> bool {
        let held = std::mem::take(&mut self.held);
        // Mostly it is open.
        if self.unread >= self.shut {
            return false;
        }
        let room = self.clamp.min(self.free());
        if self.bytes >= room {
            self.shut = self.unread;
        }
        let most = room.saturating_sub(held);
        let opens = payload >= SMALL && self.bytes < most;
        if opens {
            self.bytes = (self.bytes + 2 * u64::from(payload.max(self.mss))).min(most);
        }
        opens
    }

    /// Right-sizing, when the application reads what arrived at `now`: room for twice what was read in the last round trip,
    /// and more while that grows (`tcp_rcv_space_adjust`). What is not read yet counts against it.
    #[cold]
    fn adjust(&mut self, now: Time) {
        let (since, before) = self.since;
        let Some(rtt) = self.rtt else { return };
        if now - since < rtt {
            return;
        }
        let unread = self.last_read - self.first_read;
        let copied = (self.first_read - before).saturating_sub(unread);
        self.since = (now, self.first_read);
        self.plan_round();
        if copied <= self.space {
            return;
        }
        let twice = 2 * copied;
        let more = if rtt < LOW_RTT {
            twice * rtt.0 / LOW_RTT.0
        } else {
            2 * twice * (copied - self.space) / self.space
        };
        self.space = copied;
        if !self.buffer.moderate {
            return;
        }
        let memory = (((twice + more) << 8) / self.ratio).min(self.buffer.most);
        if memory > self.memory {
            self.memory = memory;
            self.clamp = (memory * self.ratio) >> 8;
            self.shut = u64::MAX;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1448;

    /// Frames of a full segment as they arrive, one by one.
    fn segment() -> Packet {
        Packet { payload: MSS, len: MSS + 66, ..Packet::default() }
    }

    /// The application reads up to `read` at `ms`, in one buffer.
    fn read(w: &mut ReceiveWindow, read: u64, ms: u64) {
        (w.first_read, w.last_read) = (read, read);
        w.adjust(Time::from_ms(ms));
    }

    #[test]
    fn a_window_is_what_of_the_buffer_is_payload() {
        let mut w = ReceiveWindow::new(Buffer::default(), MSS);
        // The SYN/ACK has 45 whole segments of 65535 bytes; of half of 131072 a segment is reserved.
        assert_eq!((w.advertised, w.bytes, w.clamp), (65_160, 65_536 - 1448, 65_536 - 1448));
        w.measure_buffer(&segment());
        // 1448 of 2048 + 256 bytes are 160/256.
        assert_eq!((w.ratio, w.clamp), (160, 131_072 * 160 / 256));
        let mut w = ReceiveWindow::new(Buffer { default: 1 << 20, most: 6 << 20, moderate: false }, MSS);
        w.measure_buffer(&Packet { payload: 4 * MSS, gso_size: MSS as u16, ..Packet::default() });
        // 5792 of 5792 + 896 bytes: 221/256; and more than 64 KiB only bit by bit
        assert_eq!((w.bytes, w.clamp), (65_160, (1 << 20) * 221 / 256));
        let small = ReceiveWindow::new(Buffer { default: 8192, ..Buffer::default() }, MSS);
        // Half of it is less than three segments: two stay.
        assert_eq!((small.advertised, small.bytes), (2896, 2896));
    }

    #[test]
    fn an_ack_advertises_what_the_memory_without_the_unread_holds_in_units_of_the_scale() {
        let mut w = ReceiveWindow::new(Buffer::default(), MSS);
        w.measure_buffer(&segment());
        (w.bytes, w.advertised) = (81_920, 0);
        w.arrived(&segment(), 1448, 1448, Time::from_ms(1));
        // (131072 - 2304) * 160/256 = 80480; 6 MiB make a scale of 7: 629 * 128. The same as real Linux.
        assert_eq!((w.unit, w.select(1448)), (127, 629 * 128));
        w.arrived(&segment(), 2896, 2896, Time::from_ms(1));
        // Two are 79040, 618 * 128; the right edge does not move back: 80512 - 1448 = 79064.
        assert_eq!(w.select(1448), 618 * 128);
        w.turn(Time::from_ms(2));
        assert_eq!(w.select(1448), 640 * 128, "all is read");
    }

    #[test]
    fn a_window_below_ten_segments_grows_too() {
        let mut w = ReceiveWindow::new(Buffer { default: 8192, most: 16_384, moderate: true }, MSS);
        w.measure_buffer(&segment());
        // 8192 * 160 / 256; two segments, and another read in a round trip of 20 ms
        assert_eq!((w.space, w.clamp), (2896, 5120));
        w.measure_rtt(&Packet { echo: Time::from_ms(1), ..Packet::default() }, Time::from_ms(21));
        read(&mut w, 4344, 21);
        // twice 4344, and twice that times 1448 of 2896: 17376, more than 16384 * 160 / 256
        assert_eq!(w.clamp, 16_384 * 160 / 256, "no more than its most");
    }

    #[test]
    fn each_segment_opens_it_by_two_until_the_clamp() {
        let mut w = ReceiveWindow::new(Buffer::default(), MSS);
        assert!(!w.open(MSS), "no room");
        let first = w.bytes;
        w.clamp = first + 5000;
        assert!(!w.open(SMALL - 1));
        (w.ratio, w.shut) = (140, u64::MAX);
        assert_eq!((w.open(SMALL), w.bytes), (true, first + 2 * 1448));
        assert_eq!((w.open(4 * MSS), w.bytes), (true, first + 5000));
        assert!(!w.open(MSS));
    }

    #[test]
    fn it_has_room_for_twice_what_a_round_trip_brought_and_more_while_that_grows() {
        let mut w = ReceiveWindow::new(Buffer::default(), MSS);
        (w.rtt, w.space) = (Some(Time::from_ms(100)), 100_000);
        let before = w.clamp;
        read(&mut w, 150_000, 99);
        assert_eq!(w.clamp, before);
        // 2 * 150000 and twice that times the growth by half
        read(&mut w, 150_000, 100);
        assert_eq!(w.clamp, 300_000 + 2 * 300_000 / 2);
        // As much again does not move it, nor does less.
        read(&mut w, 300_000, 200);
        assert_eq!(w.clamp, 600_000);
        // Below 1 ms in proportion: 2 * 200000 and half of it.
        w.rtt = Some(Time::from_us(500));
        read(&mut w, 500_000, 300);
        assert_eq!((w.clamp, w.space), (600_000, 200_000));
    }

    #[test]
    fn what_arrived_with_a_segment_and_is_not_read_yet_counts_against_it() {
        let mut w = ReceiveWindow::new(Buffer::default(), MSS);
        (w.rtt, w.space, w.round_ends) = (Some(Time::from_ms(20)), 14_480, Time::from_ms(20));
        for segments in [11, 12] {
            w.arrived(&segment(), segments * 1448, segments * 1448, Time::from_ms(20));
        }
        w.turn(Time::from_ms(21));
        // Eleven are read, one waits: ten are no more than ten.
        assert_eq!((w.space, w.since), (14_480, (Time::from_ms(20), 11 * 1448)));
    }

    #[test]
    fn the_rtt_falls_at_once_and_rises_by_eighths() {
        let mut w = ReceiveWindow::new(Buffer::default(), MSS);
        let mut sample = |sent_ms: u64, rtt_ms: u64| {
            let packet = Packet { echo: Time::from_ms(sent_ms), ..Packet::default() };
            w.measure_rtt(&packet, Time::from_ms(sent_ms + rtt_ms));
            w.rtt
        };
        assert_eq!(sample(1, 80), Some(Time::from_ms(80)));
        assert_eq!(sample(1, 10), Some(Time::from_ms(80)), "a stamp counts once");
        assert_eq!(sample(2, 160), Some(Time::from_ms(90)));
        assert_eq!(sample(3, 40), Some(Time::from_ms(40)));
    }
}
