//! SACK compression: of many segments ahead of one hole not each has an ACK of its own.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_input.c` (`__tcp_ack_snd_check`), `tcp_timer.c` (`tcp_compressed_ack_kick`). RFC 5681,
//! section 4.2, wants each acknowledged at once, which the first ones for a hole are.
//!
//! Validation: the tests below and in `receiver.rs`.

use crate::base::units::Time;

/// `TCP_FASTRETRANS_THRESH`: so many ACKs for a hole go out one by one.
const AT_ONCE: u32 = 3;
/// `tcp_comp_sack_nr`
const MOST_HELD: u32 = 44;
/// `tcp_comp_sack_delay_ns`
const LONGEST: Time = Time::from_ms(1);
/// `tcp_comp_sack_rtt_percent`
const RTT_PERCENT: u64 = 33;

/// The ACKs that are held back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SackCompression {
    /// Until when.
    until: Option<Time>,
    /// How many.
    held: u32,
    /// ACKs that were sent at once for the hole (`dup_ack_counter`).
    at_once: u32,
    /// Where the hole begins.
    hole: u64,
}

impl SackCompression {
    /// When what is held back leaves at the latest, if there is anything.
    #[inline]
    pub(super) fn due(&self) -> Option<Time> {
        self.until
    }

    /// A segment came ahead of the hole at `rcv_nxt`, on a path with this RTT: whether its ACK leaves now, as it must if
    /// it is `urgent` and others are held back.
    pub(super) fn sends(&mut self, rcv_nxt: u64, urgent: bool, rtt: Option<Time>, now: Time) -> bool {
        if self.hole != rcv_nxt {
            (self.hole, self.at_once) = (rcv_nxt, 0);
        }
        if self.at_once < AT_ONCE {
            self.at_once += 1;
            return true;
        }
        self.held += 1;
        if self.held > MOST_HELD || urgent {
            return true;
        }
        if self.until.is_none() {
            let part = rtt.map_or(LONGEST, |rtt| Time(rtt.0 * RTT_PERCENT / 100));
            self.until = Some(now + part.min(LONGEST));
        }
        false
    }

    /// An ACK was sent, which tells all that was held back.
    #[inline]
    pub(super) fn sent(&mut self) {
        (self.until, self.held) = (None, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_acks_of_a_hole_leave_at_once_and_then_one_for_a_third_of_the_rtt() {
        let mut held = SackCompression::default();
        let rtt = Some(Time::from_us(300));
        let sent = (0..5).filter(|_| held.sends(1000, false, rtt, Time::from_ms(7))).count();
        // 33 % of 300 us
        assert_eq!((sent, held.due()), (3, Some(Time::from_ms(7) + Time::from_us(99))));
        held.sent();
        assert_eq!(held.due(), None);
        assert!(held.sends(2000, false, rtt, Time::from_ms(8)), "another hole");
    }

    #[test]
    fn no_more_than_44_are_held_back() {
        let mut held = SackCompression::default();
        let sent: Vec<u32> = (1..=48).filter(|_| held.sends(0, false, None, Time::ZERO)).collect();
        assert_eq!((sent, held.due()), (vec![1, 2, 3, 48], Some(Time::from_ms(1))));
        assert!(held.sends(0, true, None, Time::ZERO));
    }
}
