//! Time per byte, as the kernel reckons it: a multiplication and a shift.
//!
//! Source: Linux 7.3 `net/sched/sch_cake.c` (`cake_set_rate`, `cake_advance_shaper`).

/// The slowest rate, in bytes per second.
const SLOWEST: u64 = 64;

/// A rate as nanoseconds per byte, `ns / 2^shift`; a zero `ns` is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pace {
    ns: u64,
    shift: u32,
}

impl Pace {
    pub(super) const UNLIMITED: Pace = Pace { ns: 0, shift: 0 };

    /// The pace of a rate in bytes per second; 0 is unlimited. Source: Linux 7.3 `cake_set_rate`.
    pub(super) fn new(bytes_per_s: u64) -> Pace {
        if bytes_per_s == 0 {
            return Pace::UNLIMITED;
        }
        let mut shift = 34;
        let mut ns = (1_000_000_000 << shift) / bytes_per_s.max(SLOWEST);
        while ns >> 34 > 0 {
            ns >>= 1;
            shift -= 1;
        }
        Pace { ns, shift }
    }

    pub(super) fn is_unlimited(self) -> bool {
        self.ns == 0
    }

    /// Nanoseconds for `bytes`. Source: Linux 7.3 `cake_advance_shaper`.
    pub(super) fn time_for(self, bytes: u32) -> i64 {
        ((u64::from(bytes) * self.ns) >> self.shift) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_takes_its_bytes_over_the_rate() {
        // 1514 B at 6.25 MB/s: 242.24 us
        assert_eq!(Pace::new(6_250_000).time_for(1514), 242_240);
        for rate in [64_u64, 1000, 125_000, 12_500_000, 1_250_000_000, 125_000_000_000] {
            let exact = 1514e9 / rate as f64;
            let got = Pace::new(rate).time_for(1514) as f64;
            // rounded down to a nanosecond
            assert!(got <= exact && got > exact - 1.0 - exact * 1e-9, "{rate}: {got} {exact}");
        }
        // nothing is slower than 64 B/s
        assert_eq!(Pace::new(1).time_for(64), 1_000_000_000);
        assert_eq!(Pace::new(0).time_for(1514), 0);
    }
}
