//! Prague's guess at whether a classic (RFC 3168) AQM marks it. Part of [`super::prague_2020`].
//!
//! A slow estimator of the RTT and its mean deviation runs beside TCP's. Every round with marks moves a
//! score up when the deviation or the standing queue is larger than an L4S queue's would be, and down
//! otherwise. From 8.0 on, a reduction is at least (score - 8) * 0.625, at most 0.625 of alpha.
//!
//! Source: L4STeam/linux `net/ipv4/tcp_prague.c`, April and August 2020; Briscoe and Ahmed, "TCP Prague
//! Fall-back on Detection of a Classic ECN AQM".
//!
//! Parameters: `ecn_fallback` of [`super::prague_2020`] switches it.
//!
//! Departures: none known. The remainder of each integer logarithm, in microseconds, is added to
//! the next round's value.
//!
//! Validation: the tests below, `tests/claims/test_versions.py` (the verdicts that were published).

/// Score and alpha: 1.0 is 2^20.
const ONE: i64 = 1 << 20;
/// log2(750), for the deviation of 750 us in an ambiguous queue.
const V0_LG: i64 = 10_014_683;
/// log2(2000), for its depth of 2 ms.
const D0_LG: i64 = 11_498_458;
/// Where fallback begins, and where it is complete.
const CLASSIC: i64 = 8 * ONE;
/// See [`CLASSIC`].
const PURE_CLASSIC: i64 = 9 * ONE;
/// Highest score.
const MAX: i64 = 17 * ONE;
/// Slowest gain of the RTT estimator: 2^-18.
const MAX_GAIN: u32 = 18;

/// The detector's state.
#[derive(Clone, Debug)]
pub struct ClassicEcn {
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
    pub fn new(srtt_us: u64) -> Self {
        ClassicEcn {
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
        let v = lg(self.mdev_us(), &mut self.mdev_carry);
        self.score += (v - V0_LG) / 2;
        let depth = (self.srtt >> self.gain).saturating_sub(min_rtt_us);
        if depth > 0 {
            let d = lg(depth, &mut self.depth_carry);
            self.score += ((d - D0_LG) / 2).max(0);
        }
        self.score = self.score.clamp(0, MAX);
    }

    /// The least alpha for a reduction, 1.0 being 2^20.
    pub fn least_alpha(&self) -> u64 {
        let classic = self.score.min(PURE_CLASSIC) - CLASSIC;
        (classic.max(0) * 5 / 8) as u64
    }

    /// The score; above 8.0 the bottleneck is taken as classic.
    pub fn score(&self) -> f64 {
        self.score as f64 / ONE as f64
    }

    fn mdev_us(&self) -> u64 {
        self.mdev >> (self.gain + 1)
    }
}

/// The integer part of log2, 1.0 being 2^20; what is above the power of two is carried over.
fn lg(value: u64, carry: &mut u64) -> i64 {
    let sum = (value + *carry).max(1);
    let l = sum.ilog2();
    *carry = sum - (1 << l);
    i64::from(l) << 20
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gain 2^-7 (windows of 16 to 31), fed until it settles: RTTs alternate around `mean` by `dev`.
    fn settled(mean: u64, dev: u64) -> ClassicEcn {
        let mut c = ClassicEcn::new(mean);
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
            let sum: i64 = (0..1000).map(|_| lg(value, &mut carry) >> 20).sum();
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
}
