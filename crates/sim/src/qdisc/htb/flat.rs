//! Whose turn it is in an `htb` whose classes all stand at the root, which is how most are written.
//!
//! Nobody lends there, so that a class sends when its own buckets allow it, and what [`super::turns`] works out for all
//! levels beforehand is asked of one class when its turn comes. Both give the same packets at the same times.
//!
//! Source: Linux 7.3 `net/sched/sch_htb.c` (rows and the pointers into them).

use super::Htb;
use super::class::{Class, Turn};
use crate::base::units::Time;
use crate::packet::Packet;

impl Class {
    /// Whether this leaf without a parent has packets, and may send.
    #[inline]
    fn may_send(&self, now: Time) -> bool {
        self.qlen > 0 && self.wake() <= now
    }
}

impl Htb {
    /// A packet of whichever class may send, to where it shall lie; false if there is none.
    pub(super) fn dequeue_flat(&mut self, into: &mut Packet, now: Time) -> bool {
        let mut waiting = self.prios;
        while waiting != 0 {
            let prio = waiting.trailing_zeros() as usize;
            waiting &= waiting - 1;
            if self.serve_flat(prio, into, now) {
                return true;
            }
        }
        false
    }

    /// A packet of a class of this priority.
    #[inline]
    fn serve_flat(&mut self, prio: usize, into: &mut Packet, now: Time) -> bool {
        for _ in 0..=self.classes.len() {
            let turn = self.turns[0][prio].and_then(|from| self.next_in_turn(prio, from, now));
            let Some(leaf) = turn.or_else(|| self.next_in_turn(prio, 0, now)) else { return false };
            self.turns[0][prio] = Some(leaf);
            let class = &mut self.classes[leaf];
            if !(class.is_to_be_asked(now) && class.send(into, now)) {
                self.turns[0][prio] = self.next_in_turn(prio, leaf + 1, now);
                continue;
            }
            class.deficit[0] -= i64::from(into.len);
            let over = class.deficit[0] < 0;
            if over {
                class.deficit[0] += class.params.quantum;
            }
            // The turn goes on, or it stays, until who has it may send no more.
            self.turns[0][prio] = self.next_in_turn(prio, leaf + usize::from(over), now);
            return true;
        }
        false
    }

    /// The first class from `from` on that may send.
    #[inline]
    fn next_in_turn(&self, prio: usize, from: usize, now: Time) -> Turn {
        let classes = self.classes.iter().enumerate().skip(from);
        classes
            .filter(|(_, class)| class.params.prio == prio)
            .find(|(_, class)| class.may_send(now))
            .map(|(i, _)| i)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::run;
    use crate::document::tc::Words;
    use crate::qdisc::htb::tests::{by_dscp, class, frame, with_child};
    use crate::qdisc::{Env, Qdisc, Tally};
    use proptest::prelude::*;

    const CHILDREN: [&str; 5] = [
        "pfifo limit 3",
        "netem delay 300us",
        "netem",
        "fq_codel target 10us interval 20us",
        "tbf rate 4mbit burst 3k limit 9k",
    ];
    const RATES: [&str; 4] =
        ["rate 9mbit", "rate 5mbit ceil 20mbit", "rate 1gbps ceil 2gbps", "rate 30mbit burst 9k"];

    /// A class of each priority and quantum, with rate and child of these places.
    fn htb(classes: &[(usize, usize, u8, u32)]) -> Htb {
        let classes = classes.iter().zip(1_u8..).map(|(&(rate, child, prio, quantum), i)| {
            let words = format!("{} prio {prio} quantum {quantum}", RATES[rate]);
            by_dscp(i, with_child(CHILDREN[child], class(&i.to_string(), &words)))
        });
        let spec = run::Qdisc { qdisc: "htb".into(), classes: classes.collect(), child: None };
        let words = &mut Words::of(&spec);
        words.kind().unwrap();
        Htb::new(words, &Env::default()).unwrap()
    }

    proptest! {
        #[test]
        fn it_gives_what_the_levels_give(
            classes in prop::collection::vec((0..RATES.len(), 0..CHILDREN.len(), 0..3_u8, 1000..4000_u32), 2..5),
            steps in prop::collection::vec((0..5_u8, 60..1514_u32, 0..400_u64), 1..200),
        ) {
            let (mut flat, mut levels) = (htb(&classes), htb(&classes));
            assert!(flat.flat);
            levels.flat = false;
            let (mut one, mut other) = (Tally::default(), Tally::default());
            let mut now = Time::ZERO;
            for (dscp, len, us) in steps {
                for (q, tally) in [(&mut flat, &mut one), (&mut levels, &mut other)] {
                    q.enqueue(Packet { len, enqueued: now, ..frame(dscp) }, now, tally);
                }
                now += Time::from_us(us);
                loop {
                    prop_assert_eq!(flat.next_event(), levels.next_event());
                    let (a, b) = (flat.dequeue(now, &mut one), levels.dequeue(now, &mut other));
                    prop_assert_eq!(a.map(|p| (p.dscp, p.len)), b.map(|p| (p.dscp, p.len)));
                    prop_assert_eq!(&flat.turns, &levels.turns);
                    if a.is_none() {
                        break;
                    }
                }
            }
            let counts = |htb: &Htb| {
                let mut counts = vec![htb.qlen() as u64, htb.backlog(), htb.overlimits()];
                htb.for_each_child(&mut |_, child| counts.push(child.overlimits()));
                counts
            };
            prop_assert_eq!(counts(&flat), counts(&levels));
        }
    }
}
