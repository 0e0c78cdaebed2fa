//! The maximum of what was seen in a window of rounds, in constant space. Part of [`super::bbr`].
//!
//! The best, second and third best of ever later parts of the window are kept: when the best one is too
//! old, the next is known.
//!
//! Source: Linux 7.3 `lib/win_minmax.c` (Kathleen Nichols' algorithm).
//!
//! Departures: none known.
//!
//! Validation: the tests below.

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    at: u64,
    value: u64,
}

/// A windowed maximum. "Time" is anything that counts up, rounds for instance.
#[derive(Clone, Debug, Default)]
pub struct MaxFilter([Seen; 3]);

impl MaxFilter {
    /// The maximum.
    pub fn get(&self) -> u64 {
        self.0[0].value
    }

    /// Sees `value` now; the window is the last `window` units of time. Source: Linux 7.3 `minmax_running_max`.
    pub fn update(&mut self, window: u64, now: u64, value: u64) {
        let new = Seen { at: now, value };
        let [best, second, third] = &mut self.0;
        if value >= best.value || now - third.at > window {
            *self = MaxFilter([new; 3]);
            return;
        }
        if value >= second.value {
            *second = new;
            *third = new;
        } else if value >= third.value {
            *third = new;
        }
        let age = now - best.at;
        if age > window {
            self.shift(new);
            if now - self.0[0].at > window {
                self.shift(new);
            }
        } else if second.at == best.at && age > window / 4 {
            // A quarter has passed without a second best.
            *second = new;
            *third = new;
        } else if third.at == second.at && age > window / 2 {
            *third = new;
        }
    }

    /// Source: Linux 7.3 `minmax_subwin_update`.
    fn shift(&mut self, new: Seen) {
        self.0 = [self.0[1], self.0[2], new];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maximum_lives_for_the_window_and_then_the_next_one_is_known() {
        let mut filter = MaxFilter::default();
        filter.update(10, 1, 100);
        for at in 2..=11 {
            filter.update(10, at, 50 + at);
            assert_eq!(filter.get(), 100, "{at}");
        }
        // at 12 the 100 of 1 is 11 old; the best of the values since is the newest
        filter.update(10, 12, 40);
        assert!((60..=61).contains(&filter.get()), "{}", filter.get());
    }

    #[test]
    fn after_a_silence_longer_than_the_window_only_the_new_value_counts() {
        let mut filter = MaxFilter::default();
        filter.update(10, 0, 100);
        filter.update(10, 50, 3);
        assert_eq!(filter.get(), 3);
    }

    #[test]
    fn it_is_never_above_the_true_maximum_and_never_below_that_of_the_last_half() {
        let mut filter = MaxFilter::default();
        let mut seen = vec![0];
        let mut x = 1_u64;
        for at in 1..2000_u64 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let value = x >> 54;
            seen.push(value);
            filter.update(10, at, value);
            let most = |n: u64| seen[at.saturating_sub(n) as usize..].iter().copied().max();
            assert!(Some(filter.get()) <= most(10), "{at}");
            assert!(Some(filter.get()) >= most(5), "{at}");
        }
    }
}
