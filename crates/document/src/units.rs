//! Time, sizes and rates as types, so that a rate cannot be mistaken for a size.

use std::ops::{Add, AddAssign, Sub};

/// A simulated instant, or a span between two, in integer nanoseconds.
///
/// Subtraction saturates at zero: a span is never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);
    /// Later than anything that happens.
    pub const NEVER: Time = Time(u64::MAX);

    /// `ns` nanoseconds.
    pub const fn from_ns(ns: u64) -> Self {
        Time(ns)
    }
    /// `us` microseconds.
    pub const fn from_us(us: u64) -> Self {
        Time(us * 1_000)
    }
    /// `ms` milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Time(ms * 1_000_000)
    }
    /// `s` seconds, rounded to the nearest nanosecond; negative and non-finite values become zero.
    pub fn from_secs_f64(s: f64) -> Self {
        if s.is_finite() && s > 0.0 { Time((s * 1e9).round() as u64) } else { Time(0) }
    }
    /// Nanoseconds.
    pub const fn as_ns(self) -> u64 {
        self.0
    }
    /// Whole microseconds, truncated.
    pub const fn as_us(self) -> u64 {
        self.0 / 1_000
    }
    /// Whole microseconds since `earlier` on a clock that counts in them: the kernel truncates both stamps, then
    /// subtracts (`tcp_stamp_us_delta`).
    pub const fn us_since(self, earlier: Time) -> u64 {
        self.as_us().saturating_sub(earlier.as_us())
    }
    /// Whole milliseconds, truncated.
    pub const fn as_ms(self) -> u64 {
        self.0 / 1_000_000
    }
    /// Seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// This time and a span after it, where both are known to be far from [`Time::NEVER`]: a sum that does not ask whether it
    /// fits, as `+` does.
    #[inline]
    #[must_use]
    pub const fn plus(self, span: Time) -> Time {
        Time(self.0 + span.0)
    }
    /// The kernel's jiffies at `hz` ticks a second, truncated.
    #[inline]
    pub const fn jiffies(self, hz: u64) -> u64 {
        // Hosts have 250 unless a run says otherwise, and to divide by a constant is to multiply.
        if hz == 250 { self.0 / 4_000_000 } else { self.other_jiffies(hz) }
    }
    /// Kept out of line, or the compiler makes one division of both.
    #[inline(never)]
    const fn other_jiffies(self, hz: u64) -> u64 {
        self.0 / jiffy(hz)
    }
    /// This time, or the tick that follows, of a kernel with `hz` ticks a second.
    #[inline]
    #[must_use]
    pub const fn tick(self, hz: u64) -> Time {
        let jiffy = jiffy(hz);
        Time(Time(self.0 + jiffy - 1).jiffies(hz) * jiffy)
    }
}

/// A tick of the kernel's timer in nanoseconds, truncated.
const fn jiffy(hz: u64) -> u64 {
    if hz == 250 { 4_000_000 } else { 1_000_000_000 / hz }
}

impl Add for Time {
    type Output = Time;
    fn add(self, other: Time) -> Time {
        Time(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Time {
    fn add_assign(&mut self, other: Time) {
        *self = *self + other;
    }
}

impl Sub for Time {
    type Output = Time;
    fn sub(self, other: Time) -> Time {
        Time(self.0.saturating_sub(other.0))
    }
}

/// A rate in bits per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(pub u64);

impl Rate {
    /// Bits per second.
    pub const fn bits_per_s(self) -> u64 {
        self.0
    }
    /// Bytes per second, truncated.
    pub const fn bytes_per_s(self) -> u64 {
        self.0 / 8
    }
    /// How long `bytes` take at this rate, truncated to nanoseconds. A rate of zero never ends.
    pub const fn time_for(self, bytes: u32) -> Time {
        if self.0 == 0 {
            return Time::NEVER;
        }
        Time((bytes as u64 * 8_000_000_000) / self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_frame_at_50_mbit_takes_242_240_ns() {
        // 1514 B * 8 bit / 50e6 bit/s = 242.24 us
        assert_eq!(Rate(50_000_000).time_for(1514), Time::from_ns(242_240));
    }

    #[test]
    fn spans_do_not_go_negative() {
        assert_eq!(Time::from_ms(1) - Time::from_ms(2), Time::ZERO);
    }

    #[test]
    fn a_jiffy_at_hz_250_is_four_milliseconds() {
        assert_eq!(Time::from_ms(7).jiffies(250), 1);
        assert_eq!(Time::from_ms(8).jiffies(250), 2);
        // A tick of 3,333,333 ns, 1 ms and 10 ms
        assert_eq!([300, 1000, 100].map(|hz| Time::from_ms(30).jiffies(hz)), [9, 30, 3]);
        assert_eq!([7, 8].map(|ms| Time::from_ms(ms).tick(250)), [Time::from_ms(8); 2]);
        assert_eq!(Time(3_333_334).tick(300), Time(6_666_666));
    }
}
