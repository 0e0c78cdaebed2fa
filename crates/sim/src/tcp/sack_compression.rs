//! SACK compression: of many segments ahead of one hole not each has an ACK of its own.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_input.c` (`__tcp_ack_snd_check`, `tcp_sack_compress_send_ack`), `tcp_timer.c`
//! (`tcp_compressed_ack_kick`). RFC 5681, section 4.2, wants each acknowledged at once, which the first ones for a hole
//! are. What is held back leaves at once, too, before a block would be pushed out of what an ACK has room for
//! (`out_of_order.rs`).
//!
//! Parameters: `net.ipv4.tcp_comp_sack_delay_ns` (1 ms), `tcp_comp_sack_rtt_percent` (33), `tcp_comp_sack_slack_ns`
//! (10 us), `tcp_comp_sack_nr` (44).
//!
//! Departures: a timer takes all of its slack, as no other timer of the host expires in the meantime.
//!
//! Validation: the tests below and in `receiver.rs`; random loss beside a real kernel (docs/validation/results.md).

use crate::base::units::Time;

/// `TCP_FASTRETRANS_THRESH`: so many ACKs for a hole go out one by one.
const AT_ONCE: u32 = 3;

/// Sysctls of the host (`net.ipv4.tcp_comp_sack_…`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompSack {
    /// `tcp_comp_sack_delay_ns`: the longest wait.
    pub delay: Time,
    /// `tcp_comp_sack_rtt_percent`: the longest wait, in percent of the RTT.
    pub rtt_percent: u64,
    /// `tcp_comp_sack_slack_ns`: what the timer may be late.
    pub slack: Time,
    /// `tcp_comp_sack_nr`: the most that are held back.
    pub nr: u64,
}

impl Default for CompSack {
    fn default() -> Self {
        CompSack { delay: Time::from_ms(1), rtt_percent: 33, slack: Time::from_us(10), nr: 44 }
    }
}

/// The ACKs that are held back.
#[derive(Clone, Copy, Debug)]
pub(super) struct SackCompression {
    sysctl: CompSack,
    /// Until when.
    until: Option<Time>,
    /// How many (`compressed_ack`).
    held: u64,
    /// ACKs that were sent at once for the hole (`dup_ack_counter`).
    at_once: u32,
    /// Where the hole begins (`compressed_ack_rcv_nxt`).
    hole: u64,
}

impl SackCompression {
    /// With nothing held back.
    pub(super) fn new(sysctl: CompSack) -> Self {
        SackCompression { sysctl, until: None, held: 0, at_once: 0, hole: 0 }
    }

    /// When what is held back leaves at the latest, if there is anything.
    #[inline]
    pub(super) fn due(&self) -> Option<Time> {
        self.until
    }

    /// Whether anything is held back.
    pub(super) fn holds(&self) -> bool {
        self.held > 0
    }

    /// A segment came while there is a hole at `rcv_nxt`, on a path with this RTT: whether its ACK leaves now.
    pub(super) fn sends(&mut self, rcv_nxt: u64, rtt: Time, now: Time) -> bool {
        if self.held >= self.sysctl.nr {
            return true;
        }
        if self.hole != rcv_nxt {
            (self.hole, self.at_once) = (rcv_nxt, 0);
        }
        if self.at_once < AT_ONCE {
            self.at_once += 1;
            return true;
        }
        self.held += 1;
        if self.until.is_none() {
            let part = Time(rtt.0.saturating_mul(self.sysctl.rtt_percent) / 100);
            self.until = Some(now + part.min(self.sysctl.delay) + self.sysctl.slack);
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
        let mut held = SackCompression::new(CompSack::default());
        let rtt = Time::from_us(300);
        let sent = (0..5).filter(|_| held.sends(1000, rtt, Time::from_ms(7))).count();
        // 33 % of 300 us, and the slack
        assert_eq!((sent, held.due()), (3, Some(Time::from_ms(7) + Time::from_us(99 + 10))));
        held.sent();
        assert_eq!((held.due(), held.holds()), (None, false));
        assert!(!held.sends(1000, rtt, Time::from_ms(8)), "the same hole");
        assert!(held.sends(2000, rtt, Time::from_ms(8)), "another hole");
    }

    #[test]
    fn no_more_than_44_are_held_back_for_no_more_than_a_millisecond() {
        let mut held = SackCompression::new(CompSack::default());
        let sent: Vec<u32> = (1..=48).filter(|_| held.sends(0, Time::from_ms(100), Time::ZERO)).collect();
        // 3 at once, 44 held back
        assert_eq!((sent, held.due()), (vec![1, 2, 3, 48], Some(Time::from_us(1010))));
    }

    #[test]
    fn the_sysctls_say_how_many_are_held_back_and_for_how_long() {
        let sysctl = CompSack { delay: Time::from_ms(5), rtt_percent: 10, slack: Time::ZERO, nr: 2 };
        let mut held = SackCompression::new(sysctl);
        let sent: Vec<u32> = (1..=6).filter(|_| held.sends(0, Time::from_ms(40), Time::ZERO)).collect();
        assert_eq!((sent, held.due()), (vec![1, 2, 3, 6], Some(Time::from_ms(4))));
        let mut off = SackCompression::new(CompSack { nr: 0, ..sysctl });
        assert!((0..9).all(|_| off.sends(0, Time::from_ms(40), Time::ZERO)));
    }
}
