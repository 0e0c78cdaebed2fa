//! A host that is not ideal: it stalls, its timers are late, its network card coalesces frames.
//!
//! All three are functions of a time and of the run's seed: an event that is scheduled twice for one time is late by as
//! much each time.

use crate::base::ring::Ring;
use crate::base::rng::{Stream, split_mix};
use crate::base::units::Time;
use crate::packet::Packet;
use bakeoff_document::run::Node;

/// When a host does something.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Start of the first stall, length and period, in nanoseconds.
    stall: Option<[u64; 3]>,
    /// The most that a timer is late, in nanoseconds.
    slack: u64,
    coalescing: Time,
    key: u64,
}

impl Machine {
    /// That of a node; none if the node is ideal.
    pub fn new(node: &Node, seed: u64) -> Option<Machine> {
        let [slack, coalescing] = [node.timer_slack_s, node.receive_coalescing_s].map(Time::from_secs_f64);
        let mut rng = Stream::new(seed, &format!("machine/{}", node.name));
        let (key, phase) = (rng.u64(), rng.u64());
        let stall = node.stall.and_then(|stall| {
            let [length, every] = [stall.length_s, stall.every_s].map(|s| Time::from_secs_f64(s).as_ns());
            (length > 0 && every > 0).then(|| [phase % every, length, every])
        });
        let ideal = stall.is_none() && slack == Time::ZERO && coalescing == Time::ZERO;
        (!ideal).then_some(Machine { stall, slack: slack.as_ns(), coalescing, key })
    }

    /// When it does what is due at `at`: then, or at the end of the stall.
    pub fn runs(&self, at: Time) -> Time {
        let Some([first, length, every]) = self.stall else { return at };
        // One before the first may last into the run.
        let into = at.0.saturating_add(every - first) % every;
        if into < length { Time(at.0.saturating_add(length - into)) } else { at }
    }

    /// When a timer fires that is set to `at`.
    pub fn fires(&self, at: Time) -> Time {
        if at == Time::NEVER {
            return at;
        }
        let late = split_mix(&mut (self.key ^ at.0)) % (self.slack + 1);
        self.runs(Time(at.0.saturating_add(late)))
    }

    /// When a frame is received that comes at `at`, before all others of its batch.
    pub fn receives(&self, at: Time) -> Time {
        self.runs(at.plus(self.coalescing))
    }
}

/// The network card of such a host.
pub struct Card {
    /// When its host does something.
    pub machine: Machine,
    /// Frames that came and are not received yet. A card has room for all.
    pub waiting: Ring<Packet>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::Time;

    fn machine(stall: Option<[u64; 3]>, slack: u64, coalescing: u64) -> Machine {
        Machine { stall, slack, coalescing: Time(coalescing), key: 7 }
    }

    #[test]
    fn what_is_due_in_a_stall_is_done_at_its_end() {
        // Stalls from 30 to 35, 130 to 135, and so on.
        let machine = machine(Some([30, 5, 100]), 0, 0);
        let at = [0, 29, 30, 34, 35, 129, 130, 133, 135];
        assert_eq!(at.map(|at| machine.runs(Time(at)).0), [0, 29, 35, 35, 35, 129, 135, 135, 135]);
        assert_eq!(machine.fires(Time(31)), Time(35));
        assert_eq!(machine.fires(Time::NEVER), Time::NEVER);
    }

    #[test]
    fn a_run_may_begin_in_a_stall() {
        // The first begins at 98, so that the one before took from -2 to 3.
        let machine = machine(Some([98, 5, 100]), 0, 0);
        assert_eq!([0, 2, 3, 97, 98, 102].map(|at| machine.runs(Time(at)).0), [3, 3, 3, 97, 103, 103]);
    }

    #[test]
    fn timers_are_late_by_up_to_the_slack() {
        let machine = machine(None, 50, 0);
        let late: Vec<u64> = (0..10_000).map(|at| machine.fires(Time(at)).0 - at).collect();
        // 51 values of mean 25 and variance (51^2 - 1) / 12 = 216.7: the mean of 10,000 has a deviation of 0.147.
        let mean = late.iter().sum::<u64>() as f64 / 10_000.0;
        assert!((mean - 25.0).abs() < 0.6, "{mean}");
        assert_eq!((late.iter().min(), late.iter().max()), (Some(&0), Some(&50)));
        // The same timer, asked about twice.
        assert_eq!(machine.fires(Time(5)), machine.fires(Time(5)));
    }

    #[test]
    fn a_batch_waits_for_the_end_of_a_stall_too() {
        let machine = machine(Some([30, 5, 100]), 0, 10);
        assert_eq!([0, 19, 20, 24, 25].map(|at| machine.receives(Time(at)).0), [10, 29, 35, 35, 35]);
    }
}
