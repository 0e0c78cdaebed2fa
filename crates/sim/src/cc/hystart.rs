//! HyStart: leaves slow start before it overflows the queue. Part of [`super::cubic`]; of [`super::slow_start`] for others.
//!
//! Two detectors, once per connection (and again after an RTO), while the window is at least
//! `hystart_low_window`: ACKs that come back to back for longer than the path is long (train), and a
//! round whose least RTT exceeds the path's least RTT (delay). Either one sets ssthresh to the window.
//!
//! Source: Linux 7.3 and 5.4 `net/ipv4/tcp_cubic.c`; Ha and Rhee, "Hybrid Slow Start for
//! High-Bandwidth and Long-Distance Networks", 2008.
//!
//! Parameters: those of [`super::cubic`] whose names begin with `hystart`.
//!
//! Departures: none known. Not RFC 9406 (HyStart++), as Linux is not.
//!
//! Validation: the tests below.

use crate::base::units::Time;
use crate::cc::sock::{Pacing, TcpSock};

/// Whose HyStart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Microseconds; allows for the delay of ACKs; the least RTT of the whole round.
    V7_3,
    /// Milliseconds (RTTs in eighths of one); the least RTT of the first samples of the round.
    V5_4,
}

/// Bit of `hystart_detect`, and of what was found.
const TRAIN: u32 = 1;
/// See [`TRAIN`].
const DELAY: u32 = 2;

/// RTT samples per round before the delay detector judges.
const MIN_SAMPLES: u32 = 8;

/// `sk_gso_max_size` in bytes.
const GSO_MAX: u64 = 65_536;

/// Parameters and state.
#[derive(Clone, Debug)]
pub struct HyStart {
    /// Which arithmetic.
    pub kernel: Kernel,
    /// Least window in packets.
    pub low_window: u32,
    /// Longest gap between ACKs of one train, in units of [`HyStart::clock`].
    pub ack_delta: u64,
    /// Detectors in use.
    pub detect: u32,
    found: u32,
    round_start: u64,
    last_ack: u64,
    end_seq: u64,
    curr_rtt: u64,
    samples: u32,
}

impl HyStart {
    /// Linux's defaults.
    pub fn new(kernel: Kernel) -> Self {
        HyStart {
            kernel,
            low_window: 16,
            ack_delta: match kernel {
                Kernel::V7_3 => 2_000,
                Kernel::V5_4 => 2,
            },
            detect: TRAIN | DELAY,
            found: 0,
            round_start: 0,
            last_ack: 0,
            end_seq: 0,
            curr_rtt: u64::MAX,
            samples: 0,
        }
    }

    /// An RTT sample in this kernel's unit (microseconds, or eighths of a millisecond), at least 1.
    pub fn delay(&self, rtt_us: u64) -> u64 {
        match self.kernel {
            Kernel::V7_3 => rtt_us.max(1),
            Kernel::V5_4 => (rtt_us * 8 / 1_000).max(1),
        }
    }

    /// A new connection, or an RTO. Source: Linux 7.3 `cubictcp_init`, `cubictcp_state`.
    pub fn restart(&mut self, tp: &TcpSock) {
        self.found = 0;
        self.new_round(tp);
    }

    /// An ACK that grows the window in slow start, before it does (5.4 begins its rounds here).
    pub fn on_slow_start(&mut self, tp: &TcpSock) {
        if self.kernel == Kernel::V5_4 && tp.snd_una > self.end_seq {
            self.new_round(tp);
        }
    }

    /// An RTT sample in slow start; `delay` and `delay_min` as [`HyStart::delay`] gives them.
    pub fn on_sample(&mut self, tp: &mut TcpSock, delay: u64, delay_min: u64) {
        let found = match self.kernel {
            Kernel::V7_3 => self.detect_7_3(tp, delay, delay_min),
            Kernel::V5_4 => self.detect_5_4(tp, delay, delay_min),
        };
        if found != 0 {
            self.found |= found;
            tp.snd_ssthresh = tp.snd_cwnd;
        }
    }

    /// Source: Linux 7.3 `hystart_update`.
    fn detect_7_3(&mut self, tp: &TcpSock, delay: u64, delay_min: u64) -> u32 {
        if self.found != 0 {
            return 0;
        }
        if tp.snd_una > self.end_seq {
            self.new_round(tp);
        }
        if tp.snd_cwnd < self.low_window {
            return 0;
        }
        let mut found = 0;
        if self.detect & TRAIN != 0 {
            let mut length = delay_min + ack_delay(tp.pacing_rate);
            if tp.pacing == Pacing::None {
                length >>= 1;
            }
            found |= self.train(tp.now, length);
        }
        if self.detect & DELAY != 0 {
            self.curr_rtt = self.curr_rtt.min(delay);
            if self.samples < MIN_SAMPLES {
                self.samples += 1;
            } else if self.curr_rtt > delay_min + (delay_min >> 3).clamp(4_000, 16_000) {
                found |= DELAY;
            }
        }
        found
    }

    /// Source: Linux 5.4 `hystart_update`.
    fn detect_5_4(&mut self, tp: &TcpSock, delay: u64, delay_min: u64) -> u32 {
        if self.found & self.detect != 0 || tp.snd_cwnd < self.low_window {
            return 0;
        }
        let mut found = 0;
        if self.detect & TRAIN != 0 {
            // from eighths of a millisecond to milliseconds, and half of it
            found |= self.train(tp.now, delay_min >> 4);
        }
        if self.detect & DELAY != 0 {
            if self.samples < MIN_SAMPLES {
                self.curr_rtt = self.curr_rtt.min(delay);
                self.samples += 1;
            } else if self.curr_rtt > delay_min + (delay_min >> 3).clamp(4 << 3, 16 << 3) {
                found |= DELAY;
            }
        }
        found
    }

    /// [`TRAIN`] if this ACK belongs to the round's train and that now lasts longer than `length`.
    fn train(&mut self, now: Time, length: u64) -> u32 {
        let now = self.clock(now);
        if now - self.last_ack > self.ack_delta {
            return 0;
        }
        self.last_ack = now;
        if now - self.round_start > length { TRAIN } else { 0 }
    }

    /// Source: Linux 7.3 `bictcp_hystart_reset`.
    fn new_round(&mut self, tp: &TcpSock) {
        self.round_start = self.clock(tp.now);
        self.last_ack = self.round_start;
        self.end_seq = tp.snd_nxt;
        self.curr_rtt = u64::MAX;
        self.samples = 0;
    }

    fn clock(&self, now: Time) -> u64 {
        match self.kernel {
            Kernel::V7_3 => now.as_us(),
            Kernel::V5_4 => now.as_ms(),
        }
    }
}

/// How long aggregation may hold ACKs back, in microseconds: four of the largest bursts at
/// `pacing_rate` bytes per second, at most 1 ms. Source: Linux 7.3 `hystart_ack_delay`.
pub(super) fn ack_delay(pacing_rate: u64) -> u64 {
    match pacing_rate {
        0 => 0,
        rate => (GSO_MAX * 4 * 1_000_000 / rate).min(1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1448;

    /// A round of `window` ACKs, one every `gap_us`, all with `rtt_us`, beginning at `start`; returns
    /// the number of the ACK that ended slow start.
    fn round(
        hystart: &mut HyStart,
        tp: &mut TcpSock,
        start: Time,
        gap_us: u64,
        window: u32,
        rtt_us: u64,
        min_us: u64,
    ) -> Option<u32> {
        tp.snd_cwnd = window;
        tp.snd_nxt += u64::from(window) * MSS;
        for i in 0..window {
            tp.now = start + Time::from_us(u64::from(i) * gap_us);
            tp.snd_una += MSS;
            hystart.on_slow_start(tp);
            let delay_min = hystart.delay(min_us);
            hystart.on_sample(tp, hystart.delay(rtt_us), delay_min);
            if !tp.in_slow_start() {
                return Some(i);
            }
        }
        None
    }

    fn start(kernel: Kernel, detect: u32) -> (HyStart, TcpSock) {
        let mut hystart = HyStart::new(kernel);
        hystart.detect = detect;
        let mut tp = TcpSock::new(1448, 250);
        tp.pacing_rate = 10_000_000_000;
        hystart.restart(&tp);
        // the first ACK beyond end_seq = 0 begins the first counted round
        (hystart, tp)
    }

    #[test]
    fn a_train_longer_than_half_the_least_rtt_ends_slow_start_of_an_unpaced_flow() {
        // min RTT 10 ms, ACK every 250 us: 5 ms of train are exceeded by ACK 21 (5250 us) after the
        // first; 7.3 adds half of 4 * 65536 B / 10 GB/s = 26 us: still ACK 21.
        let (mut h, mut tp) = start(Kernel::V7_3, TRAIN);
        let at = Time::from_ms(100);
        assert_eq!(round(&mut h, &mut tp, at, 250, 40, 10_000, 10_000), Some(21));
        assert_eq!(tp.snd_ssthresh, 40);
        // at 262 MB/s the cushion is 1 ms, its half 500 us: 5.5 ms are exceeded by ACK 23.
        let (mut h, mut tp) = start(Kernel::V7_3, TRAIN);
        tp.pacing_rate = 262_144_000;
        assert_eq!(round(&mut h, &mut tp, at, 250, 40, 10_000, 10_000), Some(23));
        // paced: the whole 11 ms, ACK 45
        let (mut h, mut tp) = start(Kernel::V7_3, TRAIN);
        tp.pacing_rate = 262_144_000;
        tp.pacing = Pacing::Needed;
        assert_eq!(round(&mut h, &mut tp, at, 250, 60, 10_000, 10_000), Some(45));
        // 5.4 counts whole milliseconds: more than 5 of them have passed at 6 ms, ACK 24
        let (mut h, mut tp) = start(Kernel::V5_4, TRAIN);
        assert_eq!(round(&mut h, &mut tp, at, 250, 40, 10_000, 10_000), Some(24));
    }

    #[test]
    fn a_gap_ends_the_train() {
        for kernel in [Kernel::V7_3, Kernel::V5_4] {
            let (mut h, mut tp) = start(kernel, TRAIN);
            let at = Time::from_ms(100);
            assert_eq!(round(&mut h, &mut tp, at, 3_000, 40, 10_000, 10_000), None);
        }
    }

    #[test]
    fn a_round_that_is_an_eighth_slower_ends_slow_start_at_its_ninth_sample() {
        for kernel in [Kernel::V7_3, Kernel::V5_4] {
            let at = Time::from_ms(100);
            // min RTT 80 ms: threshold 10 ms
            let (mut h, mut tp) = start(kernel, DELAY);
            assert_eq!(round(&mut h, &mut tp, at, 1, 40, 90_000, 80_000), None);
            let (mut h, mut tp) = start(kernel, DELAY);
            assert_eq!(round(&mut h, &mut tp, at, 1, 40, 90_200, 80_000), Some(8));
            // min RTT 8 ms: not 1 ms but 4 ms
            let (mut h, mut tp) = start(kernel, DELAY);
            assert_eq!(round(&mut h, &mut tp, at, 1, 40, 12_000, 8_000), None);
            let (mut h, mut tp) = start(kernel, DELAY);
            assert_eq!(round(&mut h, &mut tp, at, 1, 40, 12_200, 8_000), Some(8));
            // min RTT 400 ms: not 50 ms but 16 ms
            let (mut h, mut tp) = start(kernel, DELAY);
            assert_eq!(round(&mut h, &mut tp, at, 1, 40, 416_200, 400_000), Some(8));
        }
    }

    #[test]
    fn windows_below_16_are_left_alone() {
        for kernel in [Kernel::V7_3, Kernel::V5_4] {
            let (mut h, mut tp) = start(kernel, TRAIN | DELAY);
            let at = Time::from_ms(100);
            assert_eq!(round(&mut h, &mut tp, at, 1_000, 15, 90_000, 10_000), None);
        }
    }

    #[test]
    fn only_5_4_forgets_samples_after_the_eighth() {
        // seven slow samples, then a fast one, as the 12th: 7.3 takes it into the minimum
        for (kernel, expected) in [(Kernel::V7_3, 40), (Kernel::V5_4, 40)] {
            let (mut h, mut tp) = start(kernel, DELAY);
            tp.snd_cwnd = 40;
            tp.snd_nxt = 40 * MSS;
            tp.now = Time::from_ms(1);
            for i in 0..9 {
                tp.snd_una += MSS;
                h.on_slow_start(&tp);
                let rtt = if i == 8 { 80_000 } else { 100_000 };
                let (delay, min) = (h.delay(rtt), h.delay(80_000));
                h.on_sample(&mut tp, delay, min);
            }
            let ended = !tp.in_slow_start();
            assert_eq!(ended, kernel == Kernel::V5_4);
            assert!(!ended || tp.snd_ssthresh == expected);
        }
    }
}
