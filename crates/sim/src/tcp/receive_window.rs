//! The advertised window: how much of the receive buffer the sender may fill.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_input.c` (`tcp_measure_rcv_mss`, `tcp_grow_window`, `tcp_rcv_rtt_measure_ts`,
//! `tcp_rcv_space_adjust`, `tcp_rcvbuf_grow`).
//!
//! Parameters: `net.ipv4.tcp_rmem` (its default and its most), `net.ipv4.tcp_moderate_rcvbuf`. A window is the share of the
//! buffer that was payload in the largest segment seen (`scaling_ratio`), half before one was; of the default, and of the
//! most if it is moderated.
//!
//! Departures: no memory accounting; in bytes and not in units of the window scale.
//!
//! Validation: the tests below and in `receiver.rs`; slow start beside a real kernel's (docs/validation/results.md).

use crate::base::units::Time;
use crate::packet::Packet;
use crate::packet::charge;

/// The most that a window is before any data.
const INITIAL: u64 = 64 * 1024;
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

impl Buffer {
    /// The windows that the default and the most make if so many 256ths of a buffer are payload.
    fn windows(self, ratio: u64) -> [u64; 2] {
        let window = |buffer: u64| (buffer.min(1 << 40) * ratio) >> 8;
        let default = window(self.default);
        [default, if self.moderate { window(self.most).max(default) } else { default }]
    }
}

/// A receiver's window.
pub(super) struct ReceiveWindow {
    buffer: Buffer,
    mss: u32,
    /// What is advertised (`rcv_ssthresh`).
    bytes: u64,
    /// What it may open to (`window_clamp`).
    clamp: u64,
    /// What right-sizing may raise that to.
    most: u64,
    rtt: Option<Time>,
    /// The stamp that the last sample of the RTT came from, in ms.
    echo_of: u64,
    /// Most bytes read in one round trip so far.
    space: u64,
    /// When the round trip began that is measured, and what had been read by then.
    since: (Time, u64),
}

impl ReceiveWindow {
    pub fn new(buffer: Buffer, mss: u32) -> Self {
        let [clamp, most] = buffer.windows(128);
        ReceiveWindow {
            buffer,
            mss,
            bytes: clamp.min(INITIAL),
            clamp,
            most,
            rtt: None,
            echo_of: 0,
            space: (10 * u64::from(mss)).min(clamp),
            since: (Time::ZERO, 0),
        }
    }

    /// In bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The round trip as a receiver sees it.
    pub fn rtt(&self) -> Option<Time> {
        self.rtt
    }

    /// A segment larger than those before: what of its memory is payload holds for the buffer.
    pub fn measure_buffer(&mut self, packet: &Packet) {
        let ratio = ((u64::from(packet.payload) << 8) / charge::memory(packet)).max(1);
        let [default, most] = self.buffer.windows(ratio);
        self.most = most;
        self.clamp = self.clamp.max(default);
        self.space = self.space.min(self.clamp);
    }

    /// From the echo of our own ACKs, once per (millisecond) stamp.
    pub fn measure_rtt(&mut self, packet: &Packet, now: Time) {
        if packet.echo.as_ms() != self.echo_of {
            self.echo_of = packet.echo.as_ms();
            let sample = now - packet.echo;
            self.rtt = Some(match self.rtt {
                Some(rtt) if sample >= rtt => Time(rtt.0 - rtt.0 / 8 + sample.0 / 8),
                _ => sample,
            });
        }
    }

    /// Two segments more with each that comes; whether there was room for that.
    pub fn open(&mut self, payload: u32) -> bool {
        let opens = payload >= SMALL && self.bytes < self.clamp;
        if opens {
            self.bytes = (self.bytes + 2 * u64::from(payload.max(self.mss))).min(self.clamp);
        }
        opens
    }

    /// Right-sizing, when `read` bytes reached the application so far: room for twice what was read in the last round
    /// trip, and more while that grows.
    pub fn adjust(&mut self, read: u64, now: Time) {
        let (since, before) = self.since;
        let Some(rtt) = self.rtt else { return };
        if now - since < rtt {
            return;
        }
        let copied = read - before;
        self.since = (now, read);
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
        self.clamp = self.clamp.max((twice + more).min(self.most));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1448;

    #[test]
    fn a_window_is_what_of_the_buffer_is_payload() {
        let mut w = ReceiveWindow::new(Buffer::default(), MSS);
        assert_eq!((w.bytes, w.most), (65_536, 3 << 20), "half, before a segment was seen");
        w.measure_buffer(&Packet { payload: MSS, ..Packet::default() });
        // 1448 of 1448 + 896 bytes are 158/256
        assert_eq!((w.clamp, w.most), (131_072 * 158 / 256, (6 << 20) * 158 / 256));
        let mut w = ReceiveWindow::new(Buffer { default: 1 << 20, most: 6 << 20, moderate: false }, MSS);
        w.measure_buffer(&Packet { payload: 4 * MSS, gso_size: MSS as u16, ..Packet::default() });
        // 5792 of 6688 bytes: 221/256, of the default only; and more than 64 KiB only bit by bit
        assert_eq!((w.bytes, w.clamp, w.most), (65_536, (1 << 20) * 221 / 256, (1 << 20) * 221 / 256));
        let small = ReceiveWindow::new(Buffer { default: 8192, ..Buffer::default() }, MSS);
        assert_eq!(small.bytes, 4096);
    }

    #[test]
    fn a_window_below_ten_segments_grows_too() {
        let mut w = ReceiveWindow::new(Buffer { default: 8192, most: 16_384, moderate: true }, MSS);
        w.measure_buffer(&Packet { payload: MSS, ..Packet::default() });
        // 8192 * 158 / 256; two segments more than half of it, read in a round trip of 20 ms
        assert_eq!((w.space, w.clamp), (4096, 5056));
        w.measure_rtt(&Packet { echo: Time::from_ms(1), ..Packet::default() }, Time::from_ms(21));
        w.adjust(4344, Time::from_ms(21));
        // twice 4344, and twice that times 248 of 4096
        assert_eq!(w.clamp, 8688 + 2 * 8688 * 248 / 4096);
        w.adjust(4344 + 8688, Time::from_ms(41));
        assert_eq!(w.clamp, 16_384 * 158 / 256, "no more than its most");
    }

    #[test]
    fn each_segment_opens_it_by_two_until_the_clamp() {
        let mut w = ReceiveWindow::new(Buffer::default(), MSS);
        assert!(!w.open(MSS), "no room");
        w.clamp = 65_536 + 5000;
        assert!(!w.open(SMALL - 1));
        assert_eq!((w.open(SMALL), w.bytes), (true, 65_536 + 2 * 1448));
        assert_eq!((w.open(4 * MSS), w.bytes), (true, 65_536 + 5000));
        assert!(!w.open(MSS));
    }

    #[test]
    fn it_has_room_for_twice_what_a_round_trip_brought_and_more_while_that_grows() {
        let mut w = ReceiveWindow::new(Buffer::default(), MSS);
        (w.rtt, w.space) = (Some(Time::from_ms(100)), 100_000);
        w.adjust(150_000, Time::from_ms(99));
        assert_eq!(w.clamp, 65_536);
        // 2 * 150000 and twice that times the growth by half
        w.adjust(150_000, Time::from_ms(100));
        assert_eq!(w.clamp, 300_000 + 2 * 300_000 / 2);
        // As much again does not move it, nor does less.
        w.adjust(300_000, Time::from_ms(200));
        assert_eq!(w.clamp, 600_000);
        // Below 1 ms in proportion: 2 * 200000 and half of it.
        w.rtt = Some(Time::from_us(500));
        w.adjust(500_000, Time::from_ms(300));
        assert_eq!(w.clamp, 600_000);
        assert_eq!(w.space, 200_000);
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
