//! Whose turn it is in `htb`: among the classes that may send by themselves, level by level, and among those that
//! borrow from a class, by quantum.
//!
//! Source: Linux 7.3 `net/sched/sch_htb.c` (rows, feeds, and the pointers into them).

use super::Htb;
use super::class::{Mode, Turn};
use super::params::MAX_LEVEL;
use crate::base::units::Time;
use crate::packet::Packet;

impl Htb {
    /// Brings the modes, and who has packets, up to date; the priorities of which some class may send, by level.
    pub(super) fn refresh(&mut self, now: Time) -> [u8; MAX_LEVEL + 1] {
        let mut rows = [0; MAX_LEVEL + 1];
        for class in &mut self.classes {
            class.active = if class.qlen > 0 { 1 << class.params.prio } else { 0 };
            class.mode = class.mode_at(now);
        }
        for i in 0..self.upwards.len() {
            let class = &self.classes[self.upwards[i]];
            let (active, parent) = (class.active, class.parent);
            match (class.mode, parent) {
                (Mode::CanSend, _) => rows[class.level] |= active,
                (Mode::MayBorrow, Some(parent)) => self.classes[parent].active |= active,
                _ => {}
            }
        }
        rows
    }

    /// The first class from `from` on that may send by itself at this level.
    fn in_row(&self, level: usize, prio: usize, from: usize) -> Turn {
        (from..self.classes.len()).find(|i| {
            let class = &self.classes[*i];
            class.level == level && class.mode == Mode::CanSend && class.active >> prio & 1 == 1
        })
    }

    /// The first class from `from` on that borrows from `parent`.
    fn in_feed(&self, parent: usize, prio: usize, from: usize) -> Turn {
        (from..self.classes.len()).find(|i| {
            let class = &self.classes[*i];
            class.parent == Some(parent) && class.mode == Mode::MayBorrow && class.active >> prio & 1 == 1
        })
    }

    /// The leaf whose turn it is. At the end of a round among the children of a class the turn goes to the next
    /// class beside it, at every level.
    fn turn(&mut self, level: usize, prio: usize) -> Option<usize> {
        let (mut above, mut depth) = ([0; MAX_LEVEL + 1], 0);
        // One round through everything finds a leaf.
        for _ in 0..4 * self.classes.len() + 4 {
            let parent = (depth > 0).then(|| above[depth - 1]);
            let member = |from| match parent {
                None => self.in_row(level, prio, from),
                Some(at) => self.in_feed(at, prio, from),
            };
            let turn = parent.map_or(self.turns[level][prio], |at| self.classes[at].turns[prio]);
            let first = member(0)?;
            let found = turn.and_then(member);
            let place = found.unwrap_or(first);
            match parent {
                None => self.turns[level][prio] = Some(place),
                Some(at) => self.classes[at].turns[prio] = Some(place),
            }
            if let (None, Some(at)) = (found, parent) {
                depth -= 1;
                let beside = (depth > 0).then(|| above[depth - 1]);
                self.advance(level, prio, at, beside);
            } else if self.classes[place].level == 0 {
                return Some(place);
            } else {
                above[depth] = place;
                depth += 1;
            }
        }
        None
    }

    /// The turn goes on from `at`, a child of `parent` or a member of the row.
    fn advance(&mut self, level: usize, prio: usize, at: usize, parent: Option<usize>) {
        match parent {
            None => self.turns[level][prio] = self.in_row(level, prio, at + 1),
            Some(parent) => self.classes[parent].turns[prio] = self.in_feed(parent, prio, at + 1),
        }
    }

    /// A packet of a class of this priority that may send by itself (level 0) or borrows from a class of `level`.
    pub(super) fn serve(&mut self, level: usize, prio: usize, now: Time) -> Option<Packet> {
        for _ in 0..=self.classes.len() {
            let leaf = self.turn(level, prio)?;
            let parent = if level == 0 { None } else { self.classes[leaf].parent };
            // A child that delays, or whose AQM drops what it has left, may give nothing.
            let Some(packet) = self.classes[leaf].dequeue(now) else {
                self.advance(level, prio, leaf, parent);
                self.refresh(now);
                continue;
            };
            let class = &mut self.classes[leaf];
            class.deficit[level] -= i64::from(packet.len);
            if class.deficit[level] < 0 {
                class.deficit[level] += class.params.quantum;
                self.advance(level, prio, leaf, parent);
            }
            let mut charged = Some(leaf);
            while let Some(at) = charged {
                let class = &mut self.classes[at];
                class.charge(packet.len, now, class.level < level);
                charged = class.parent;
            }
            self.refresh(now);
            self.settle(leaf, prio);
            return Some(packet);
        }
        None
    }

    /// Who left a row gives up its turn to the next one.
    fn settle(&mut self, leaf: usize, prio: usize) {
        let mut at = Some(leaf);
        while let Some(i) = at {
            let level = self.classes[i].level;
            if let Some(from) = self.turns[level][prio] {
                self.turns[level][prio] = self.in_row(level, prio, from);
            }
            at = self.classes[i].parent;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qdisc::htb::tests::{build, by_dscp, class, frame, with_child};
    use bakeoff_document::run;

    fn below(parent: &str, class: run::Class) -> run::Class {
        run::Class { parent: Some(parent.into()), ..class }
    }

    /// Mbit/s of each codepoint's class when all of `active` offer more than there is, for two seconds.
    fn rates(classes: Vec<run::Class>, active: &[u8]) -> Vec<f64> {
        let mut q = build("htb", classes).unwrap();
        let end = Time::from_ms(2_000);
        for dscp in active {
            for _ in 0..900 {
                q.enqueue(frame(*dscp), Time::ZERO);
            }
        }
        let (mut now, mut sent) = (Time::ZERO, [0_u64; 64]);
        while now < end {
            while let Some(packet) = q.dequeue(now) {
                sent[usize::from(packet.dscp)] += 8 * 1514;
                q.enqueue(packet, now);
            }
            now = q.next_event().unwrap();
        }
        active.iter().map(|dscp| sent[usize::from(*dscp)] as f64 / 2e6).collect()
    }

    fn assert_rates(classes: &[run::Class], active: &[u8], expected: &[f64]) {
        let found = rates(classes.to_vec(), active);
        for (found, expected) in found.iter().zip(expected) {
            // a burst, and a turn of 200 kB (0.8 Mbit/s in two seconds)
            assert!((found - expected).abs() < 0.02 * expected + 0.9, "{found} instead of {expected}");
        }
    }

    #[test]
    fn a_class_borrows_what_its_siblings_leave_up_to_its_ceiling() {
        let tree = |ceil: &str, prio_1: &str, prio_2: &str| {
            vec![
                class("1", "rate 100mbit"),
                by_dscp(1, below("1", class("10", &format!("rate 30mbit ceil {ceil} {prio_1}")))),
                by_dscp(2, below("1", class("20", &format!("rate 60mbit ceil 100mbit {prio_2}")))),
            ]
        };
        assert_rates(&tree("100mbit", "", ""), &[1], &[100.0]);
        assert_rates(&tree("50mbit", "", ""), &[1], &[50.0]);
        // both have their own rates; the 10 that are left are shared by equal quanta, or go to the lower prio
        assert_rates(&tree("100mbit", "", ""), &[1, 2], &[35.0, 65.0]);
        assert_rates(&tree("100mbit", "", "prio 1"), &[1, 2], &[40.0, 60.0]);
        assert_rates(&tree("100mbit", "prio 1", ""), &[1, 2], &[30.0, 70.0]);
        assert_rates(&tree("100mbit", "", "quantum 20000"), &[1, 2], &[30.0 + 10.0 / 1.1, 60.0 + 1.0 / 1.1]);
    }

    #[test]
    fn lending_goes_up_level_by_level() {
        let tree = [
            class("1", "rate 100mbit"),
            below("1", class("2", "rate 60mbit ceil 90mbit")),
            by_dscp(1, below("2", class("10", "rate 10mbit ceil 100mbit"))),
            by_dscp(2, below("2", class("20", "rate 50mbit ceil 100mbit"))),
            by_dscp(3, below("1", class("30", "rate 40mbit ceil 100mbit"))),
        ];
        // alone: the ceiling of the class above it
        assert_rates(&tree, &[1], &[90.0]);
        // its neighbour's rate stays in the family
        assert_rates(&tree, &[1, 3], &[60.0, 40.0]);
        assert_rates(&tree, &[1, 2, 3], &[10.0, 50.0, 40.0]);
        let q = build("htb", tree.to_vec()).unwrap();
        let shown = q.show_classes();
        assert!(shown[0].starts_with("class htb 1:1 root rate 100Mbit") && shown[0].ends_with("level 7"));
        assert!(
            shown[1].starts_with("class htb 1:2 parent 1:1 rate 60Mbit") && shown[1].ends_with("level 6")
        );
        assert!(shown[2].starts_with("class htb 1:10 parent 1:2 prio 0 quantum 125000 rate 10Mbit"));
    }

    #[test]
    fn an_inner_class_has_no_queue_and_a_circle_is_refused() {
        let error = |classes| build("htb", classes).map(|q| q.show()).unwrap_err().to_string();
        let inner = with_child("pie", class("1", "rate 1mbit"));
        assert!(
            error(vec![inner, below("1", class("2", "rate 1mbit"))]).contains("neither filters nor child")
        );
        assert!(error(vec![below("7", class("2", "rate 1mbit"))]).contains("there is no class '7'"));
        let circle = vec![below("2", class("1", "rate 1mbit")), below("1", class("2", "rate 1mbit"))];
        assert!(error(circle).contains("or a circle"));
    }
}
