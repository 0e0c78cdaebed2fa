//! Wi-Fi jitter: a random delay of each packet, mostly about a millisecond, now and then many times 7.5 ms. Packets
//! keep their order, so that a late one holds back all behind it.
//!
//! Source: `picoquic/sim_link.c` of private-octopus/picoquic (d199d45), for the tests of C4; papers/wifi-jitter.md of
//! private-octopus/c4 (e3377b6). A short delay of Poisson(1) milliseconds, and with the probability (J - 1 ms)/84 ms a
//! long one of Poisson(12) times 7.5 ms; from each a uniform part of its last step is taken off. Integers as there, in
//! microseconds: what is drawn is exact.
//!
//! Parameter: `wifi_s`, J in seconds, about the mean of a delay. Up to 1 ms there are short ones only (mean 0.68 ms);
//! from 85 ms on each packet has a long one (87 ms). Order makes the mean larger: 84 ms with J 7 ms at 1.2 ms
//! between packets.
//!
//! Departures: the document has no uniform part of the long delay, and 90 ms in place of 84. There, the generator begins alike
//! in each link; here with the run's seed and the link's direction. Not modelled: suspension of the link.
//!
//! Validation: the tests below.

use serde::Deserialize;

use crate::base::rng::{Stream, split_mix};
use crate::base::units::Time;
use bakeoff_document::bounds::time;

/// floor(exp(-1) 2^30) and floor(exp(-12) 2^30).
const SHORT: u64 = 395_007_542;
const LONG: u64 = 6597;
/// In microseconds.
const SHORT_STEP: u64 = 1000;
const LONG_STEP: u64 = 7500;
const ONE: u64 = 1 << 30;

/// See the module.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    wifi_s: f64,
}

/// One direction.
pub struct Jitter {
    target_us: u64,
    state: u64,
}

impl Jitter {
    /// Checks `spec`.
    pub fn new(spec: &Spec, seed: u64, name: &str) -> Result<Jitter, String> {
        time(".wifi_s", spec.wifi_s, &(0.0..=0.1))?;
        let target = Time::from_secs_f64(spec.wifi_s);
        Ok(Jitter { target_us: target.as_us(), state: Stream::new(seed, name).u64() })
    }

    /// The delay of the next packet, without what those before it add.
    pub fn draw(&mut self) -> Time {
        let mut us = self.poisson(SHORT) * SHORT_STEP;
        if us > 0 {
            us -= self.below(SHORT_STEP);
        }
        if self.target_us > SHORT_STEP && self.fraction() * 84_000 < (self.target_us - SHORT_STEP) * ONE {
            let steps = self.poisson(LONG);
            us += steps * LONG_STEP;
            if steps > 1 {
                us -= self.below(LONG_STEP);
            }
        }
        Time::from_us(us)
    }

    /// Uniform, in 2^-30.
    fn fraction(&mut self) -> u64 {
        let drawn = split_mix(&mut self.state);
        (drawn ^ (drawn >> 30)) & (ONE - 1)
    }

    /// Knuth's: how many fractions have a product above exp(-mean).
    fn poisson(&mut self, least: u64) -> u64 {
        let mut product = ONE;
        let mut count = 0;
        loop {
            product = (product * self.fraction()) >> 30;
            if product <= least {
                return count;
            }
            count += 1;
        }
    }

    fn below(&mut self, n: u64) -> u64 {
        loop {
            let drawn = split_mix(&mut self.state);
            if drawn >= u64::MAX % n {
                return drawn % n;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As each link of picoquic begins.
    fn jitter(target_us: u64) -> Jitter {
        Jitter { target_us, state: 0xdead_beef_baba_c001 }
    }

    fn first(target_us: u64, n: usize) -> Vec<u64> {
        let mut jitter = jitter(target_us);
        (0..n).map(|_| jitter.draw().as_us()).collect()
    }

    #[test]
    fn the_generator_gives_picoquics_numbers() {
        let mut state = jitter(0).state;
        let drawn = [(); 4].map(|()| split_mix(&mut state));
        assert_eq!(
            drawn,
            [0x5e15_223d_01b2_0def, 0x9ede_0d89_5c9b_d2a6, 0xe3a0_ed91_f612_c17f, 0xfae0_eb50_4647_c133]
        );
        let poisson = |least, n| {
            let mut jitter = jitter(0);
            (0..n).map(|_| jitter.poisson(least)).collect::<Vec<_>>()
        };
        assert_eq!(poisson(SHORT, 10), [3, 1, 1, 3, 0, 1, 3, 0, 3, 0]);
        assert_eq!(poisson(LONG, 6), [21, 6, 10, 17, 7, 10]);
    }

    #[test]
    fn the_first_delays_are_picoquics() {
        assert_eq!(first(999, 12), [2400, 825, 2096, 828, 2377, 1647, 0, 0, 470, 657, 810, 0]);
        assert_eq!(first(7000, 12), [2400, 675, 1306, 2891, 68768, 1173, 294, 0, 2081, 3462, 69056, 868]);
        assert_eq!(first(12_000, 12), [2400, 675, 1306, 2891, 68768, 1173, 121_058, 452, 0, 825, 0, 868]);
        assert_eq!(first(91_000, 6), [132_377, 56_339, 125_175, 69_056, 101_674, 119_414]);
    }

    #[test]
    fn the_mean_is_the_targets() {
        // 0.684 ms, and with the probability x of (J - 1 ms)/84 ms 12 times 7.5 ms less half of a step: 86.25 ms
        for (target_us, mean) in [(999, 683), (7000, 6811), (12_000, 11_994), (91_000, 86_967)] {
            let all: u64 = first(target_us, 200_000).iter().sum();
            assert_eq!((all + 100_000) / 200_000, mean, "{target_us}");
        }
    }

    #[test]
    fn directions_and_seeds_draw_numbers_of_their_own() {
        let made = |seed, name| Jitter::new(&Spec { wifi_s: 0.007 }, seed, name).expect("a jitter").state;
        assert_ne!(made(1, "a>b"), made(1, "b>a"));
        assert_ne!(made(1, "a>b"), made(2, "a>b"));
        assert!(Jitter::new(&Spec { wifi_s: 0.2 }, 1, "a>b").is_err());
    }
}
