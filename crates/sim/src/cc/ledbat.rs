//! `ledbat`: low extra delay background transport. Steers the one-way queueing delay to a target of 100 ms, and so gives way
//! to whoever fills the queue.
//!
//! Source: RFC 6817, sections 2.4.2 and 3.3. One-way delays are differences of TCP's time stamps (milliseconds) of ACKs that
//! advance. The window has a fraction of 1/65536 packet.
//!
//! | parameter | default | meaning |
//! |---|---|---|
//! | `target` | 100ms | queueing delay, 1ms to 1s (RFC 6817: at most 100ms) |
//! | `slow_start` | 0 | whether it begins with slow start, which RFC 6817 leaves open |
//!
//! Fixed: GAIN 1, INIT_CWND and MIN_CWND 2, ALLOWED_INCREASE 1, base delay of 10 minutes, current delay the least of 4 samples.
//!
//! Departures: losses and echoes are answered by Linux's state machine with proportional rate reduction, and the window does not
//! move meanwhile; where the window was the limit all of it counts as in flight, for Linux keeps back what does not fill a TSO
//! packet; no clock has an offset or skew.
//!
//! Validation: the tests below, `tests/cc_hooks.rs`.

use super::reno::Reno;
use super::{CcEnv, CcError, CongestionControl};
use crate::base::units::Time;
use crate::cc::sock::TcpSock;
use bakeoff_document::cc::CcWords;

/// Binary digits of a window's fraction.
pub(super) const FRACTION: u32 = 16;
/// Least window, in packets.
pub(super) const MIN_CWND: u32 = 2;

/// Delays against the least of ten minutes. Source: RFC 6817, section 3.3 (`update_base_delay`, `update_current_delay`).
pub(super) struct Delays {
    /// Least of each of the last ten minutes in which there was a sample; `u64::MAX`: none yet.
    minutes: [u64; 10],
    minute: u64,
    /// The last four samples.
    last: [u64; 4],
}

impl Delays {
    /// Before the first sample.
    pub(super) fn new() -> Self {
        Delays { minutes: [u64::MAX; 10], minute: 0, last: [u64::MAX; 4] }
    }

    /// A sample at `now`, in any unit.
    pub(super) fn sample(&mut self, now: Time, delay: u64) {
        let minute = now.as_ms() / 60_000;
        if minute != self.minute {
            self.minute = minute;
            self.minutes.rotate_right(1);
            self.minutes[0] = u64::MAX;
        }
        self.minutes[0] = self.minutes[0].min(delay);
        self.last.rotate_right(1);
        self.last[0] = delay;
    }

    /// The least delay, if there is a sample.
    pub(super) fn base(&self) -> Option<u64> {
        self.minutes.into_iter().min().filter(|base| *base < u64::MAX)
    }

    /// How far the last four are above it.
    pub(super) fn queue(&self) -> Option<u64> {
        let current = self.last.into_iter().min()?;
        Some(current.saturating_sub(self.base()?))
    }
}

/// Parameters and state.
pub struct Ledbat {
    target_ms: u64,
    slow_start: bool,
    /// One-way delays in milliseconds.
    delays: Delays,
    /// Of a packet, in 1/65536.
    fraction: u32,
}

impl Ledbat {
    /// From the words after the name.
    pub fn parse(words: &mut CcWords, _: CcEnv) -> Result<Self, CcError> {
        let mut c = Ledbat { target_ms: 100, slow_start: false, delays: Delays::new(), fraction: 0 };
        while let Some(parameter) = words.parameter(&["target", "slow_start"])? {
            match parameter {
                "target" => c.target_ms = words.time(Time::from_ms(1), Time::from_ms(1000))?.as_ms(),
                _ => c.slow_start = words.flag()?,
            }
        }
        Ok(c)
    }
}

impl CongestionControl for Ledbat {
    fn init(&mut self, tp: &mut TcpSock) {
        tp.snd_cwnd = MIN_CWND;
    }

    /// A half; the core does so at most once per RTT. Source: RFC 6817, section 2.4.2.
    fn ssthresh(&mut self, tp: &mut TcpSock) -> u32 {
        self.fraction = 0;
        Reno::half(tp)
    }

    /// Source: RFC 6817, section 2.4.2.
    fn cong_avoid(&mut self, tp: &mut TcpSock, acked: u32) {
        if self.slow_start && tp.in_slow_start() {
            if tp.cwnd_limited() {
                tp.slow_start(acked);
            }
            return;
        }
        let Some(queue) = self.delays.queue() else { return };
        let cwnd = (i128::from(tp.snd_cwnd) << FRACTION) + i128::from(self.fraction);
        let off_target = i128::from(self.target_ms) - i128::from(queue);
        let change =
            ((off_target * i128::from(acked)) << (2 * FRACTION)) / (i128::from(self.target_ms) * cwnd.max(1));
        // A TSO packet that waits leaves less in flight than the window allows.
        let full = if tp.is_cwnd_limited { tp.snd_cwnd } else { 0 };
        let flight = tp.packets_in_flight().saturating_add(acked).max(full);
        let most = i128::from(flight.saturating_add(1).min(tp.snd_cwnd_clamp)) << FRACTION;
        let cwnd = (cwnd + change).min(most).max(i128::from(MIN_CWND) << FRACTION);
        tp.snd_cwnd = (cwnd >> FRACTION) as u32;
        self.fraction = (cwnd & ((1 << FRACTION) - 1)) as u32;
    }

    fn pkts_acked(&mut self, tp: &mut TcpSock, acked: u32, _rtt_us: Option<u64>) {
        // An ACK that does not advance echoes an old time stamp.
        if acked > 0 && tp.rcv_tsecr > Time::ZERO {
            let delay = tp.rcv_tsval.as_ms().saturating_sub(tp.rcv_tsecr.as_ms());
            self.delays.sample(tp.now, delay);
        }
    }

    fn trace(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("base_delay_ms", self.delays.base().unwrap_or(0) as f64),
            ("queue_delay_ms", self.delays.queue().unwrap_or(0) as f64),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A window of ten packets, all in flight before the ACK to come, and a base delay of 20 ms.
    fn ledbat(text: &str) -> (Ledbat, TcpSock) {
        let Ok(mut c) = Ledbat::parse(&mut CcWords::new(text), CcEnv::default()) else {
            panic!("'{text}' was refused")
        };
        let mut tp = TcpSock::new(1448, 1000);
        c.init(&mut tp);
        assert_eq!(tp.snd_cwnd, 2);
        delay(&mut c, &mut tp, 20, 1);
        tp.snd_cwnd = 10;
        tp.packets_out = 8;
        (c, tp)
    }

    /// ACKs after this one-way delay.
    fn delay(c: &mut Ledbat, tp: &mut TcpSock, ms: u64, acks: u32) {
        tp.now += Time::from_ms(10);
        tp.rcv_tsecr = tp.now;
        tp.rcv_tsval = tp.now + Time::from_ms(ms);
        for _ in 0..acks {
            c.pkts_acked(tp, 1, None);
        }
    }

    /// The window in bytes, as RFC 6817 counts it, after an ACK of two packets at this queueing delay.
    fn bytes(queue_ms: u64, text: &str) -> u64 {
        let (mut c, mut tp) = ledbat(text);
        delay(&mut c, &mut tp, 20 + queue_ms, 4);
        c.cong_avoid(&mut tp, 2);
        (((u64::from(tp.snd_cwnd) << 16) + u64::from(c.fraction)) * 1448) >> 16
    }

    #[test]
    fn the_window_moves_by_how_far_the_delay_is_off_the_target() {
        // 14480 + (100 - q) / 100 * 2 * 1448 * 1448 / 14480, i.e. 289.6 at no queue
        for (queue_ms, expected) in [(0, 14_769), (50, 14_624), (100, 14_480), (200, 14_190)] {
            assert_eq!(bytes(queue_ms, "ledbat"), expected, "{queue_ms}");
        }
        // (50 - 75) / 50 * 289.6 = -144.8
        assert_eq!(bytes(75, "ledbat target 50ms"), 14_335);
    }

    #[test]
    fn growth_is_capped_one_packet_above_what_was_in_flight() {
        let (mut c, mut tp) = ledbat("ledbat");
        tp.packets_out = 4;
        c.cong_avoid(&mut tp, 2);
        assert_eq!((tp.snd_cwnd, c.fraction), (7, 0));
        (tp.snd_cwnd, tp.is_cwnd_limited) = (10, true);
        c.cong_avoid(&mut tp, 10);
        assert_eq!((tp.snd_cwnd, c.fraction), (11, 0), "the window was the limit");
        (tp.snd_cwnd, tp.packets_out) = (2, 0);
        delay(&mut c, &mut tp, 1000, 4);
        c.cong_avoid(&mut tp, 2);
        assert_eq!(tp.snd_cwnd, 2, "never below two");
    }

    #[test]
    fn a_loss_halves_down_to_two() {
        let (mut c, mut tp) = ledbat("ledbat");
        for (cwnd, expected) in [(10, 5), (3, 2)] {
            tp.snd_cwnd = cwnd;
            assert_eq!(c.ssthresh(&mut tp), expected);
        }
    }

    #[test]
    fn slow_start_is_a_choice() {
        for (text, expected) in [("ledbat", 10), ("ledbat slow_start 1", 12)] {
            let (mut c, mut tp) = ledbat(text);
            tp.is_cwnd_limited = true;
            c.cong_avoid(&mut tp, 2);
            assert_eq!(tp.snd_cwnd, expected, "{text}");
        }
    }

    #[test]
    fn the_delay_is_the_least_of_four_above_the_least_of_ten_minutes() {
        let mut delays = Delays::new();
        assert_eq!(delays.queue(), None);
        delays.sample(Time::ZERO, 20);
        for delay in [50, 40, 45] {
            delays.sample(Time::from_ms(1000), delay);
        }
        assert_eq!(delays.queue(), Some(0));
        delays.sample(Time::from_ms(1000), 60);
        assert_eq!(delays.queue(), Some(20));
        // 20 was the least of minute 0; it counts in minutes 1 to 9
        for minute in 1..10 {
            delays.sample(Time::from_ms(60_000 * minute), 30 + minute);
            assert_eq!(delays.base(), Some(20));
        }
        delays.sample(Time::from_ms(600_000), 70);
        assert_eq!(delays.base(), Some(31));
    }

    #[test]
    fn acks_that_do_not_advance_tell_nothing() {
        let (mut c, mut tp) = ledbat("ledbat");
        tp.rcv_tsval = tp.rcv_tsecr;
        c.pkts_acked(&mut tp, 0, None);
        assert_eq!(c.delays.base(), Some(20));
    }
}
