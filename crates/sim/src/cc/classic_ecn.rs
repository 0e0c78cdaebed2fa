//! Prague's guess at whether a classic (RFC 3168) AQM marks it. Part of [`super::prague_2020`] and [`super::prague`].
//!
//! A slow estimator of the RTT and its mean deviation runs beside TCP's. Every round with marks moves a
//! score up when the deviation or the standing queue is larger than an L4S queue's would be, and down
//! otherwise. From 8.0 on, a reduction is at least (score - 8) * 0.625, at most 0.625 of alpha.
//!
//! Source: L4STeam/linux `net/ipv4/tcp_prague.c`, April and August 2020; L4STeam/tcp-prague 90aea47f; Briscoe and Ahmed, "TCP Prague
//! Fall-back on Detection of a Classic ECN AQM".
//!
//! **Units.** When alpha went from 20 bits to 24, the score did too, and the two logarithms of the ambiguous queue stayed behind
//! (L4STeam/linux issue 38): the queue is one of 1.5 us (deviation) and 1.6 us (depth), so that a few rounds with marks in any queue
//! make a classic one of it. [`Units::BROKEN`] has these constants, [`Units::MENDED`] 16 times as large ones (L4STeam/linux 48b3db6b).
//!
//! Parameters: `ecn_fallback` of [`super::prague_2020`] and [`super::prague`] switches it.
//!
//! Departures: none known. The remainder of each integer logarithm, in microseconds, is added to
//! the next round's value.
//!
//! Validation: the tests below, `tests/claims/test_versions.py` (the verdicts that were published).

/// Score at which fallback begins, and at which it is complete.
const CLASSIC: i64 = 8;
/// See [`CLASSIC`].
const PURE_CLASSIC: i64 = 9;
/// Highest score.
const MAX: i64 = 17;
/// Slowest gain of the RTT estimator: 2^-18.
const MAX_GAIN: u32 = 18;

/// What the score is counted in, and the ambiguous queue's logarithms in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Units {
    /// 1.0 of score and alpha is 2^`bits`.
    bits: u32,
    /// log2(750), for its deviation of 750 us.
    v0_lg: i64,
    /// log2(2000), for its depth of 2 ms.
    d0_lg: i64,
}

impl Units {
    /// Alpha of 20 bits.
    pub const OF_2020: Units = Units { bits: 20, v0_lg: 10_014_683, d0_lg: 11_498_458 };
    /// Alpha of 24 bits, logarithms of 20. The module adds halves of them, without the last bit.
    pub const BROKEN: Units = Units { bits: 24, v0_lg: 10_014_682, d0_lg: 11_498_458 };
    /// Both of 24 bits.
    pub const MENDED: Units = Units { bits: 24, v0_lg: 160_234_940, d0_lg: 183_975_330 };
}

/// The detector's state.
#[derive(Clone, Debug)]
pub struct ClassicEcn {
    units: Units,
    score: i64,
    /// Gain of the RTT as a power of two; the deviation's is one more.
    gain: u32,
    /// Microseconds times 2^gain.
    srtt: u64,
    /// Microseconds times 2^(gain + 1).
    mdev: u64,
    mdev_carry: u64,
    depth_carry: u64,
}

impl ClassicEcn {
    /// `srtt_us` as TCP has it; 0 takes the first sample.
    pub fn new(srtt_us: u64, units: Units) -> Self {
        ClassicEcn {
            units,
            score: 0,
            gain: MAX_GAIN,
            srtt: srtt_us << MAX_GAIN,
            mdev: 1 << (MAX_GAIN + 1),
            mdev_carry: 0,
            depth_carry: 0,
        }
    }

    /// The newest segment's RTT.
    pub fn on_rtt(&mut self, rtt_us: u64) {
        if self.srtt == 0 {
            self.srtt = rtt_us << self.gain;
        }
        let srtt_us = self.srtt >> self.gain;
        self.srtt = self.srtt + rtt_us - srtt_us;
        self.mdev = self.mdev + rtt_us.abs_diff(srtt_us) - self.mdev_us();
    }

    /// A reduction: the gain follows the window's timescale.
    pub fn on_reduction(&mut self, ssthresh: u32) {
        let l = ssthresh.max(1).ilog2();
        let gain = (l + l / 2 + 1).min(MAX_GAIN);
        for state in [&mut self.srtt, &mut self.mdev] {
            *state =
                if gain > self.gain { *state << (gain - self.gain) } else { *state >> (self.gain - gain) };
        }
        self.gain = gain;
    }

    /// A round with marks.
    pub fn on_round(&mut self, min_rtt_us: u64) {
        let Units { bits, v0_lg, d0_lg } = self.units;
        let v = lg(self.mdev_us(), &mut self.mdev_carry) << bits;
        self.score += (v - v0_lg) / 2;
        let depth = (self.srtt >> self.gain).saturating_sub(min_rtt_us);
        if depth > 0 {
            let d = lg(depth, &mut self.depth_carry) << bits;
            self.score += ((d - d0_lg) / 2).max(0);
        }
        self.score = self.score.clamp(0, MAX << bits);
    }

    /// The least alpha for a reduction, in the units' 1.0.
    pub fn least_alpha(&self) -> u64 {
        let classic = self.score.min(PURE_CLASSIC << self.units.bits) - (CLASSIC << self.units.bits);
        (classic.max(0) * 5 / 8) as u64
    }

    /// The score; above 8.0 the bottleneck is taken as classic.
    pub fn score(&self) -> f64 {
        self.score as f64 / f64::from(1 << self.units.bits)
    }

    fn mdev_us(&self) -> u64 {
        self.mdev >> (self.gain + 1)
    }
}

/// The integer part of log2; what is above the power of two is carried over.
fn lg(value: u64, carry: &mut u64) -> i64 {
    let sum = (value + *carry).max(1);
    let l = sum.ilog2();
    *carry = sum - (1 << l);
    i64::from(l)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gain 2^-7 (windows of 16 to 31), fed until it settles: RTTs alternate around `mean` by `dev`.
    fn settled(mean: u64, dev: u64) -> ClassicEcn {
        let mut c = ClassicEcn::new(mean, Units::OF_2020);
        c.on_reduction(16);
        assert_eq!(c.gain, 4 + 2 + 1);
        for i in 0..20_000 {
            c.on_rtt(if i % 2 == 0 { mean + dev } else { mean - dev });
        }
        c
    }

    #[test]
    fn the_estimators_settle_at_mean_and_mean_deviation() {
        let c = settled(30_000, 3_000);
        let srtt = c.srtt >> c.gain;
        assert!(srtt.abs_diff(30_000) <= 3_000 >> 6, "{srtt}");
        assert!(c.mdev_us().abs_diff(3_000) <= 3_000 >> 6, "{}", c.mdev_us());
    }

    #[test]
    fn a_change_of_gain_keeps_the_estimates() {
        let mut c = settled(30_000, 3_000);
        let (srtt, mdev) = (c.srtt >> c.gain, c.mdev_us());
        for ssthresh in [1000, 2, u32::MAX, 16] {
            c.on_reduction(ssthresh);
            assert!(c.gain <= MAX_GAIN);
            assert_eq!((c.srtt >> c.gain, c.mdev_us()), (srtt, mdev));
        }
    }

    #[test]
    fn the_carried_remainder_brings_the_mean_near_the_real_logarithm() {
        for value in [3_u64, 750, 1_000, 2_000] {
            let mut carry = 0;
            let sum: i64 = (0..1000).map(|_| lg(value, &mut carry)).sum();
            // linear instead of logarithmic between powers of two: at most 0.09 below, and
            // the dithering of sums above the value itself adds at most another 0.1
            let error = sum as f64 / 1000.0 - (value as f64).log2();
            assert!(error.abs() < 0.2, "{value}: {error}");
        }
    }

    #[test]
    fn a_shallow_steady_queue_is_l4s_and_a_deep_swinging_one_is_classic() {
        let mut c = settled(10_500, 100);
        for _ in 0..100 {
            c.on_round(10_000);
        }
        assert_eq!(c.least_alpha(), 0);
        assert!(c.score() == 0.0);

        // v = log2(3000) - log2(750) = 2, d = log2(16000) - log2(2000) = 3: 2.5 per round, of
        // which integer logs lose up to 0.5; 8.0 after 4 rounds, complete after 5, 17 at most
        let mut c = settled(26_000, 3_000);
        for _ in 0..5 {
            c.on_round(10_000);
        }
        assert!(c.score() > 9.0 && c.score() < 12.6, "{}", c.score());
        assert_eq!(c.least_alpha(), (0.625 * f64::from(1 << 20)) as u64);
        for _ in 0..100 {
            c.on_round(10_000);
        }
        assert!((c.score() - 17.0).abs() < f64::EPSILON);
    }

    /// A queue `depth` us deep on 10 ms, with that deviation.
    fn steady(mdev: u64, depth: u64, units: Units) -> ClassicEcn {
        let mut c = ClassicEcn::new(10_000 + depth, units);
        c.mdev = mdev << (MAX_GAIN + 1);
        c
    }

    #[test]
    fn logarithms_of_20_bits_in_a_score_of_24_make_every_queue_classic() {
        // 100 and 300 us, an L4S queue's: integer logarithms 6 and 8, then of 100 + 36 and 300 + 44 carried over: 7 and 8.
        // 6 * 2^23 - 5007341 + 8 * 2^23 - 5749229, then 7 and 8
        let mut c = steady(100, 300, Units::BROKEN);
        for score in [106_683_942, 106_683_942 + 115_072_550, 17 << 24] {
            c.on_round(10_000);
            assert_eq!(c.score, score);
        }
        // 0.625
        assert_eq!(c.least_alpha(), 5 << 21);

        // 6 * 2^23 - 80117470 is negative, and 8 * 2^23 is less than 91987665
        let mut c = steady(100, 300, Units::MENDED);
        for _ in 0..100 {
            c.on_round(10_000);
            assert_eq!((c.score, c.least_alpha()), (0, 0));
        }
    }

    #[test]
    fn a_round_moves_the_score_by_half_the_logarithms_of_deviation_and_depth() {
        // deviation and depth in us; change of the score in a round: log2(mdev / 750) / 2 + max(0, log2(depth / 2000) / 2),
        // and with the logarithms of 20 bits log2(mdev / 1.51) / 2 + log2(depth / 1.61) / 2
        for (mdev, depth, mended, broken) in [
            (100, 300, -1.45, 6.80),
            (200, 1_000, -0.95, 8.16),
            (750, 2_000, 0.0, 9.62),
            (3_000, 15_000, 2.45, 12.07),
        ] {
            for (units, expected) in [(Units::MENDED, mended), (Units::BROKEN, broken)] {
                let mut c = steady(mdev, depth, units);
                let mut moved = 0.0;
                for _ in 0..1000 {
                    c.score = 8 << 24;
                    let before = c.score();
                    c.on_round(10_000);
                    moved += (c.score() - before).min(9.0);
                }
                let moved = moved / 1000.0;
                // At most 17 is left to go from 8; each integer logarithm is up to 0.1 off.
                let expected = f64::min(expected, 9.0);
                assert!((moved - expected).abs() < 0.15, "{mdev} {depth} {units:?}: {moved}");
            }
        }
    }
}
