//! One packet after the other at the link's rate, as a plain wire does it: for directions that have a
//! policer or jitter, or that share their transmitter with the other one (half duplex).
//!
//! Validation: the tests of half duplex in `tests/engines/test_links.py`.

use super::{Access, Turn};
use crate::base::units::Time;

/// When the transmitter is free again.
#[derive(Default)]
pub struct Plain {
    free: Time,
}

impl Access for Plain {
    fn serve(&mut self, turn: &mut Turn) -> Option<Time> {
        while self.free <= turn.now {
            let Some(packet) = turn.take() else { return turn.later() };
            self.free = turn.now + turn.airtime(packet.len);
            turn.sent.push((self.free, packet));
        }
        turn.waits().then_some(self.free)
    }

    fn defer(&mut self, until: Time) {
        self.free = self.free.max(until);
    }
}
