//! The loss models of `netem`.
//!
//! Source: Salsano, Ludovici, Ordine 2012 (general and intuitive loss model); Gilbert 1960, Elliott 1963; Linux 7.3
//! `net/sched/sch_netem.c`. Probabilities: 100 % is `u32::MAX`.

use crate::base::rng::Stream;
use bakeoff_document::tc::{TcError, Words, show};

/// How losses come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossModel {
    /// Each packet by itself, with a correlation that the qdisc keeps.
    Random { chance: u32, correlation: u32 },
    /// Gaps and bursts, each with losses and deliveries.
    FourStates { p13: u32, p31: u32, p32: u32, p23: u32, p14: u32 },
    /// A good and a bad state; in the bad one `1-h` of the packets are lost, in the good one `1-k`.
    GilbertElliott { p: u32, r: u32, h: u32, k1: u32 },
}

/// Where the chain of a model stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Delivered in a gap; the good state.
    #[default]
    Gap,
    /// Delivered in a burst.
    Burst,
    /// Lost in a burst; the bad state.
    LostInBurst,
    /// Lost in a gap.
    LostInGap,
}

impl LossModel {
    pub const NONE: LossModel = LossModel::Random { chance: 0, correlation: 0 };

    /// Takes what stands behind `loss`.
    pub fn take(words: &mut Words) -> Result<Self, TcError> {
        match words.peek() {
            Some("state") => {
                _ = words.value()?;
                let p13 = words.percent_u32()?;
                let mut given = [u32::MAX - p13, 0, u32::MAX, 0];
                take_optional(words, &mut given)?;
                let [p31, p32, p23, p14] = given;
                Ok(LossModel::FourStates { p13, p31, p32, p23, p14 })
            }
            Some("gemodel") => {
                _ = words.value()?;
                let p = words.percent_u32()?;
                let mut given = [u32::MAX - p, u32::MAX, 0];
                take_optional(words, &mut given)?;
                let [r, h1, k1] = given;
                Ok(LossModel::GilbertElliott { p, r, h: u32::MAX - h1, k1 })
            }
            word => {
                if word == Some("random") {
                    _ = words.value()?;
                }
                let (chance, correlation) = super::config::chance(words)?;
                Ok(LossModel::Random { chance, correlation })
            }
        }
    }

    /// Whether it loses anything at all.
    pub fn is_on(&self) -> bool {
        !matches!(self, LossModel::Random { chance: 0, .. })
    }

    /// `loss 1%`, or none.
    pub fn show(&self) -> Option<String> {
        let percent = show::percent;
        match *self {
            LossModel::Random { .. } if !self.is_on() => None,
            LossModel::Random { chance, correlation: 0 } => Some(format!("loss {}", percent(chance))),
            LossModel::Random { chance, correlation } => {
                Some(format!("loss {} {}", percent(chance), percent(correlation)))
            }
            LossModel::FourStates { p13, p31, p32, p23, p14 } => Some(format!(
                "loss state p13 {} p31 {} p32 {} p23 {} p14 {}",
                percent(p13),
                percent(p31),
                percent(p32),
                percent(p23),
                percent(p14)
            )),
            LossModel::GilbertElliott { p, r, h, k1 } => Some(format!(
                "loss gemodel p {} r {} 1-h {} 1-k {}",
                percent(p),
                percent(r),
                percent(u32::MAX - h),
                percent(k1)
            )),
        }
    }
}

/// Percentages as long as there are some.
fn take_optional(words: &mut Words, given: &mut [u32]) -> Result<(), TcError> {
    for value in given {
        if !words.next_is_number() {
            break;
        }
        *value = words.percent_of_next()?;
    }
    Ok(())
}

impl State {
    /// One packet of the four states: whether it is lost. Source: Linux 7.3 `loss_4state`.
    pub fn four_states(&mut self, model: [u32; 5], stream: &mut Stream) -> bool {
        let [p13, p31, p32, p23, p14] = model;
        let draw = stream.u32();
        *self = match *self {
            State::Gap if draw < p14 => State::LostInGap,
            State::Gap if draw < p13.wrapping_add(p14) => State::LostInBurst,
            State::Burst if draw < p23 => State::LostInBurst,
            State::LostInBurst if draw < p32 => State::Burst,
            State::LostInBurst if draw < p31.wrapping_add(p32) => State::Gap,
            State::LostInGap => State::Gap,
            same => return same == State::LostInBurst,
        };
        matches!(self, State::LostInGap | State::LostInBurst)
    }

    /// One packet of the two states. Source: Linux 7.3 `loss_gilb_ell`.
    pub fn gilbert_elliott(&mut self, model: [u32; 4], stream: &mut Stream) -> bool {
        let [p, r, h, k1] = model;
        if *self == State::LostInBurst {
            if stream.u32() < r {
                *self = State::Gap;
            }
            stream.u32() > h
        } else {
            if stream.u32() < p {
                *self = State::LostInBurst;
            }
            stream.u32() < k1
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::base::units::Time;
    use crate::packet::Packet;
    use crate::qdisc::{Cause, Env, Queue};
    use bakeoff_document::run;

    /// Which of `n` packets a loss model takes.
    fn lost(line: &str, n: usize) -> Vec<bool> {
        let mut q = Queue::build(&run::Qdisc::leaf(line), &Env::default()).unwrap();
        let mut before = 0;
        (0..n)
            .map(|seq| {
                q.enqueue(Packet { seq: seq as u64, len: 1514, ..Packet::default() }, Time::ZERO);
                let now = q.tally.drops[Cause::Loss as usize];
                std::mem::replace(&mut before, now) != now
            })
            .collect()
    }

    fn share(lost: &[bool]) -> f64 {
        lost.iter().filter(|l| **l).count() as f64 / lost.len() as f64
    }

    fn mean_run(lost: &[bool]) -> f64 {
        let runs = lost.windows(2).filter(|w| !w[0] && w[1]).count().max(1);
        lost.iter().filter(|l| **l).count() as f64 / runs as f64
    }

    #[test]
    fn gilbert_s_model_loses_in_bursts() {
        // p = 1 %, r = 20 %: bad for p/(p + r) = 4.76 % of the packets, 1/r = 5 in a row
        let lost = lost("netem loss gemodel 1% 20% limit 1000000", 200_000);
        assert!((share(&lost) - 0.047_6).abs() < 0.004, "{}", share(&lost));
        assert!((mean_run(&lost) - 5.0).abs() < 0.4, "{}", mean_run(&lost));
    }

    #[test]
    fn elliott_s_model_delivers_some_in_the_bad_state_and_loses_some_in_the_good() {
        // bad for 1/11 of the packets with 50 % lost, good for 10/11 with 2 %
        let lost = lost("netem loss gemodel 2% 20% 50% 2% limit 1000000", 200_000);
        assert!((share(&lost) - (0.5 / 11.0 + 0.2 / 11.0)).abs() < 0.005, "{}", share(&lost));
    }

    #[test]
    fn four_states_with_two_of_them_are_gilbert_s_model() {
        let two = lost("netem loss state 1% 20% limit 1000000", 200_000);
        assert!((share(&two) - 0.047_6).abs() < 0.004, "{}", share(&two));
        // only isolated losses: p14 = 5 %, each followed by a delivery: 0.05/1.05
        let isolated = lost("netem loss state 0% 100% 0% 100% 5% limit 1000000", 100_000);
        assert!((share(&isolated) - 0.05 / 1.05).abs() < 0.003, "{}", share(&isolated));
        assert!(!isolated.windows(2).any(|w| w[0] && w[1]));
    }
}
