//! Random streams: one per component, derived from (seed, name), so that adding a component does
//! not change another one's draws.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;

/// A component's own stream of random numbers. Value-stable across platforms and versions.
#[derive(Clone, Debug)]
pub struct Stream(Pcg64Mcg);

impl Stream {
    /// The stream of `name` in the run with `seed`.
    pub fn new(seed: u64, name: &str) -> Self {
        // FNV-1a over the name, then SplitMix64 twice: any two names give unrelated states.
        let mut h = 0xcbf2_9ce4_8422_2325_u64;
        for b in name.bytes() {
            h = (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3);
        }
        let mut x = h ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hi = split_mix(&mut x);
        let lo = split_mix(&mut x);
        Stream(Pcg64Mcg::new((u128::from(hi) << 64) | u128::from(lo)))
    }

    /// Uniform over all 32-bit values (the kernel's `get_random_u32`).
    pub fn u32(&mut self) -> u32 {
        self.0.next_u32()
    }

    /// Uniform over all 64-bit values.
    pub fn u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in `0..n`; 0 when `n` is 0 (the kernel's `get_random_u32_below`).
    pub fn below(&mut self, n: u32) -> u32 {
        ((u64::from(self.u32()) * u64::from(n)) >> 32) as u32
    }
}

/// The next number of SplitMix64.
pub fn split_mix(x: &mut u64) -> u64 {
    *x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *x;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A probability as a threshold for 32-bit draws.
pub fn threshold(probability: f64) -> u64 {
    (probability.clamp(0.0, 1.0) * 4_294_967_296.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probability_of_one_is_above_every_draw() {
        assert_eq!(threshold(1.0), 1 << 32);
        assert_eq!(threshold(0.5), 1 << 31);
    }

    #[test]
    fn a_stream_depends_on_seed_and_name_only() {
        let draw = |seed, name: &str| {
            let mut s = Stream::new(seed, name);
            [s.u32(), s.u32(), s.u32()]
        };
        assert_eq!(draw(1, "mid/egress"), draw(1, "mid/egress"));
        assert_ne!(draw(1, "mid/egress"), draw(2, "mid/egress"));
        assert_ne!(draw(1, "mid/egress"), draw(1, "mid/ingress"));
    }

    #[test]
    fn below_stays_below() {
        let mut s = Stream::new(1, "x");
        assert!((0..1000).all(|_| s.below(7) < 7));
        assert_eq!(s.below(0), 0);
    }
}
