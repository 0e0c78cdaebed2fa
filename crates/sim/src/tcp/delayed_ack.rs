//! How long an acknowledgement of data in order may wait: quick ACKs, and the delayed ACK's timeout.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_input.c` (`tcp_event_data_recv`, `tcp_enter_quickack_mode`), `tcp_output.c`
//! (`tcp_send_delayed_ack`, `tcp_event_ack_sent`), `tcp_timer.c` (`tcp_delack_timer_handler`); RFC 5681, section 4.2.
//!
//! Departures: the RTT and the RTO that bound the timeout are those of the handshake, as of a host that sends no data.
//!
//! Validation: the tests below and in `receiver.rs`.

use super::rtt::{RTO_INIT_US, RTO_MIN_US};
use crate::base::units::Time;

/// `TCP_ATO_MIN`
const ATO_MIN: Time = Time::from_ms(40);
/// `TCP_DELACK_MAX`
const DELACK_MAX: Time = Time::from_ms(200);
/// `TCP_DELACK_MIN`
const DELACK_MIN: Time = Time::from_ms(40);
/// An RTO before any RTT is known (`TCP_TIMEOUT_INIT`).
const RTO_INIT: Time = Time::from_us(RTO_INIT_US);

/// The state of one receiving end.
#[derive(Clone, Copy, Debug)]
pub(super) struct DelayedAck {
    /// Ticks of the host's timer in a second.
    hz: u64,
    /// ACKs that go out at once (`icsk_ack.quick`).
    quick: u32,
    /// The application is about to send: ACKs wait for its data (`inet_csk_in_pingpong_mode`).
    pingpong: bool,
    /// The timeout (`icsk_ack.ato`).
    ato: Time,
    /// What bounds the timeout: the RTT, or 500 ms while none is known.
    longest: Time,
    /// The RTO of the host that acknowledges: after a pause of that length the peer is taken to begin anew.
    rto: Time,
    /// When data came last.
    last_data: Option<Time>,
    /// When an ACK is due that waits.
    due: Option<Time>,
    /// What it is about ended a write: it had PSH, or was shorter than the segments before (`ICSK_ACK_PUSHED`).
    pushed: bool,
    /// Something else did before, and this was shorter (`ICSK_ACK_PUSHED2`).
    pushed_twice: bool,
}

impl DelayedAck {
    /// On a host with `hz` ticks per second.
    pub(super) fn new(hz: u64) -> Self {
        DelayedAck {
            hz,
            quick: 0,
            pingpong: false,
            ato: Time::ZERO,
            longest: Time::from_ms(500),
            rto: RTO_INIT,
            last_data: None,
            due: None,
            pushed: false,
            pushed_twice: false,
        }
    }

    /// The handshake took `rtt`.
    pub(super) fn handshake_took(&mut self, rtt: Time) {
        self.longest = rtt.max(DELACK_MIN);
        // The variance of one sample is twice that (`tcp_rtt_estimator`).
        self.rto = rtt + Time(2 * rtt.0).max(Time::from_us(RTO_MIN_US));
    }

    /// When an ACK is due that waits, if one does.
    #[inline]
    pub(super) fn due(&self) -> Option<Time> {
        self.due
    }

    /// The peer is done with sending, and we are not: ACKs wait for our data (`tcp_fin`).
    pub(super) fn wait_for_data(&mut self) {
        self.pingpong = true;
    }

    /// A full segment; whether with PSH (`tcp_measure_rcv_mss`).
    #[inline]
    pub(super) fn full(&mut self, push: bool) {
        self.pushed |= push;
    }

    /// A segment shorter than those before, which ends a write (`tcp_measure_rcv_mss`).
    pub(super) fn short(&mut self) {
        self.pushed_twice |= self.pushed;
        self.pushed = true;
    }

    /// Data came. True if it is the first, or the first after a pause: quick ACKs are due.
    #[inline]
    pub(super) fn data_came(&mut self, now: Time) -> bool {
        let Some(last) = self.last_data.replace(now) else {
            self.ato = ATO_MIN;
            return true;
        };
        let gap = now - last;
        if gap <= Time(ATO_MIN.0 / 2) {
            self.ato = Time(self.ato.0 / 2 + ATO_MIN.0 / 2);
        } else if gap < self.ato {
            self.ato = Time(self.ato.0 / 2 + gap.0).min(self.rto).min(DELACK_MAX);
        } else if gap > self.rto {
            return true;
        }
        false
    }

    /// At least so many ACKs go out at once (`tcp_incr_quickack`).
    pub(super) fn quicken(&mut self, acks: u32) {
        self.quick = self.quick.max(acks);
    }

    /// The next one does.
    pub(super) fn quicken_one(&mut self) {
        self.quick |= 1;
    }

    /// So do the next ones, whoever was about to send (`tcp_enter_quickack_mode`).
    pub(super) fn enter_quick(&mut self, acks: u32) {
        self.quicken(acks);
        self.pingpong = false;
        self.ato = ATO_MIN;
    }

    /// Whether an ACK goes out now by what it is about: in quick mode, or if `all_read` and the application thinks that
    /// no more is coming soon (`tcp_cleanup_rbuf`).
    #[inline]
    pub(super) fn is_quick(&self, all_read: bool) -> bool {
        (self.pushed_twice && all_read) || (!self.pingpong && (self.quick > 0 || (self.pushed && all_read)))
    }

    /// An ACK waits from now on; false if it must not (`tcp_send_delayed_ack`).
    #[expect(clippy::inline_always, reason = "once per two segments")]
    #[inline(always)]
    pub(super) fn wait(&mut self, now: Time) -> bool {
        let ato = self.ato.min(self.longest).min(DELACK_MAX);
        if self.due.is_some_and(|at| at <= now + Time(ato.0 / 4)) {
            return false;
        }
        // Timers of this kind fire on the tick that follows.
        let at = (now + ato).tick(self.hz);
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
        true
    }

    /// Whether the ACK that waits is due now. The next one may then wait longer, as nobody answered; or, if that was because the
    /// application was about to send, it does not wait for that any more.
    pub(super) fn expires(&mut self, now: Time) -> bool {
        let expired = self.due.is_some_and(|due| due <= now);
        if expired && std::mem::take(&mut self.pingpong) {
            self.ato = ATO_MIN;
        } else if expired {
            self.ato = (self.ato + self.ato).min(self.rto).min(DELACK_MAX);
        }
        expired
    }

    /// An ACK of everything was sent (`tcp_event_ack_sent`).
    #[inline]
    pub(super) fn sent(&mut self) {
        if self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.ato = ATO_MIN;
            }
        }
        self.due = None;
        (self.pushed, self.pushed_twice) = (false, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_follows_the_gaps_between_segments() {
        let mut delayed = DelayedAck::new(1000);
        assert!(delayed.data_came(Time::ZERO), "the first");
        assert_eq!(delayed.ato, Time::from_ms(40));
        // 40/2 + 30 ms; then a gap above the timeout changes nothing.
        assert!(!delayed.data_came(Time::from_ms(30)));
        assert_eq!(delayed.ato, Time::from_ms(50));
        assert!(!delayed.data_came(Time::from_ms(130)));
        assert_eq!(delayed.ato, Time::from_ms(50));
        // Short gaps bring it to 40 ms: 50/2 + 20.
        assert!(!delayed.data_came(Time::from_ms(131)));
        assert_eq!(delayed.ato, Time::from_ms(45));
        assert!(!delayed.data_came(Time::from_ms(1131)), "an RTO of 1 s");
        delayed.handshake_took(Time::from_ms(20));
        // 20 + 200 ms
        assert!(!delayed.data_came(Time::from_ms(1351)));
        assert!(delayed.data_came(Time::from_ms(1572)), "after a pause");
    }

    #[test]
    fn an_ack_that_is_nearly_due_does_not_wait_any_more() {
        let mut delayed = DelayedAck::new(250);
        delayed.data_came(Time::ZERO);
        assert!(delayed.wait(Time::from_ms(1)));
        // 41 ms, and the tick that follows.
        assert_eq!(delayed.due(), Some(Time::from_ms(44)));
        assert!(delayed.wait(Time::from_ms(33)) && delayed.due() == Some(Time::from_ms(44)));
        assert!(!delayed.wait(Time::from_ms(34)));
    }

    #[test]
    fn the_timeout_is_no_longer_than_the_rtt_and_doubles_when_nobody_answered() {
        let mut delayed = DelayedAck::new(1000);
        delayed.data_came(Time::ZERO);
        let waits = |delayed: &mut DelayedAck, now: u64| {
            assert!(delayed.wait(Time::from_ms(now)));
            let due = delayed.due().unwrap();
            assert!(delayed.expires(due));
            delayed.sent();
            due.as_ms() - now
        };
        assert_eq!([0, 1000, 2000, 3000].map(|now| waits(&mut delayed, now)), [40, 80, 160, 200]);
        delayed.handshake_took(Time::from_ms(60));
        assert_eq!(waits(&mut delayed, 4000), 60);
        delayed.handshake_took(Time::from_ms(10));
        assert_eq!(waits(&mut delayed, 5000), 40);
        // Whoever was about to send and did not begins again at 40 ms.
        delayed.handshake_took(Time::from_ms(500));
        delayed.wait_for_data();
        assert_eq!([6000, 7000].map(|now| waits(&mut delayed, now)), [200, 40]);
    }

    #[test]
    fn who_is_about_to_send_has_no_quick_acks_until_something_is_wrong() {
        let mut delayed = DelayedAck::new(1000);
        delayed.quicken(2);
        delayed.wait_for_data();
        assert!(!delayed.is_quick(true));
        delayed.enter_quick(1);
        assert!(delayed.is_quick(false));
        delayed.sent();
        delayed.sent();
        assert!(!delayed.is_quick(true));
    }
}
