//! How much of its window a connection uses: only a window that limits may grow, and one that was not used shrinks.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_output.c` (`tcp_cwnd_validate`, `tcp_cwnd_application_limited`, `tcp_cwnd_restart`);
//! RFC 2861.
//!
//! Validation: the tests below and in `output.rs`.

use crate::base::units::Time;
use crate::cc::sock::{CaState, TcpSock};

/// Packets that a window keeps, or comes back to, after a silence (`TCP_INIT_CWND`).
const RESTART_WINDOW: u32 = 10;

/// What was used of the window.
#[derive(Clone, Copy, Debug)]
pub(super) struct CwndUsage {
    /// End in bytes of the window in which the most packets out are looked for (`cwnd_usage_seq`).
    seq: u64,
    /// Most packets out since the window was last full (`snd_cwnd_used`).
    used: u32,
    /// When the window was last full, or changed (`snd_cwnd_stamp`).
    stamp: Time,
}

impl CwndUsage {
    /// Of a connection established at `now`.
    pub(super) fn new(now: Time) -> Self {
        CwndUsage { seq: 0, used: 0, stamp: now }
    }

    /// The window is another one from now on.
    #[inline]
    pub(super) fn window_changed(&mut self, now: Time) {
        self.stamp = now;
    }

    /// Something was sent, or the window forbade it (`limited`). True if the window has not been full for `rto_us`
    /// microseconds, the timeout.
    pub(super) fn is_unused(&mut self, tp: &mut TcpSock, limited: bool, rto_us: u64) -> bool {
        // A window that was full once counts as full for a round trip.
        if tp.snd_una >= self.seq || limited || (!tp.is_cwnd_limited && tp.packets_out > tp.max_packets_out) {
            tp.is_cwnd_limited = limited;
            tp.max_packets_out = tp.packets_out;
            self.seq = tp.snd_nxt;
        }
        if tp.cwnd_limited() {
            self.used = 0;
            self.stamp = tp.now;
            return false;
        }
        self.used = self.used.max(tp.packets_out);
        (tp.now - self.stamp).as_us() >= rto_us
    }

    /// The window goes half of the way to what was used of it, unless the application `waits_for_room` to write: then
    /// it is not what limits.
    pub(super) fn shrink(&mut self, tp: &mut TcpSock, waits_for_room: bool) {
        if tp.ca_state == CaState::Open && !waits_for_room {
            let used = self.used.max(RESTART_WINDOW);
            if used < tp.snd_cwnd {
                tp.snd_ssthresh = tp.current_ssthresh();
                tp.snd_cwnd = (tp.snd_cwnd + used) >> 1;
            }
            self.used = 0;
        }
        self.stamp = tp.now;
    }

    /// After a silence of `idle_us` microseconds: the window halves for each timeout in it.
    pub(super) fn restart(&mut self, tp: &mut TcpSock, idle_us: u64, rto_us: u64) {
        tp.snd_ssthresh = tp.current_ssthresh();
        let restart = tp.snd_cwnd.min(RESTART_WINDOW);
        let mut left = idle_us;
        while left > rto_us && tp.snd_cwnd > restart {
            left -= rto_us;
            tp.snd_cwnd /= 2;
        }
        tp.snd_cwnd = tp.snd_cwnd.max(restart);
        self.stamp = tp.now;
        self.used = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Reno;

    /// In congestion avoidance with a window of 40 packets.
    fn sock(packets_out: u32) -> TcpSock {
        let mut tp = TcpSock::new(1000, 1000);
        tp.snd_cwnd = 40;
        tp.snd_ssthresh = 20;
        tp.packets_out = packets_out;
        tp.snd_nxt = u64::from(packets_out) * 1000;
        tp
    }

    #[test]
    fn a_window_that_was_full_counts_as_full_until_all_of_it_is_acknowledged() {
        let mut usage = CwndUsage::new(Time::ZERO);
        let mut tp = sock(40);
        assert!(!usage.is_unused(&mut tp, true, 200_000));
        (tp.snd_una, tp.packets_out) = (39_000, 1);
        assert!(!usage.is_unused(&mut tp, false, 0) && tp.is_cwnd_limited);
        tp.snd_una = 40_000;
        assert!(usage.is_unused(&mut tp, false, 0) && !tp.is_cwnd_limited);
    }

    #[test]
    fn a_window_of_which_12_of_40_were_used_goes_half_of_the_way_there() {
        let mut usage = CwndUsage::new(Time::ZERO);
        let mut tp = sock(12);
        tp.now = Time::from_ms(199);
        assert!(!usage.is_unused(&mut tp, false, 200_000));
        tp.now = Time::from_ms(200);
        assert!(usage.is_unused(&mut tp, false, 200_000));
        let mut full = tp.clone();
        usage.clone().shrink(&mut full, true);
        assert_eq!(full.snd_cwnd, 40);
        usage.shrink(&mut tp, false);
        // The threshold keeps three quarters of what was.
        assert_eq!((tp.snd_cwnd, tp.snd_ssthresh), (26, 30));
    }

    #[test]
    fn a_silence_halves_the_window_per_timeout_down_to_ten() {
        for (idle_ms, cwnd) in [(250, 20), (450, 10), (5000, 10)] {
            let mut tp = sock(0);
            CwndUsage::new(Time::ZERO).restart(&mut tp, idle_ms * 1000, 200_000);
            assert_eq!(tp.snd_cwnd, cwnd);
        }
    }

    /// Of the vector that `crate::cc` has for `validation maxfs`: draft-ietf-ccwg-ratelimited-increase, appendix.
    #[test]
    fn slow_start_grows_to_twice_the_most_that_was_out_in_the_round() {
        let mut usage = CwndUsage::new(Time::ZERO);
        let mut tp = TcpSock::new(1000, 1000);
        let mut windows = Vec::new();
        for wanted in [4, 8, 4, 20_u32] {
            let packets = wanted.min(tp.snd_cwnd);
            for _ in 0..packets {
                tp.packets_out += 1;
                tp.snd_nxt += 1000;
                let full = tp.packets_out >= tp.snd_cwnd;
                usage.is_unused(&mut tp, full, 200_000);
            }
            for _ in 0..packets {
                tp.packets_out -= 1;
                tp.snd_una += 1000;
                Reno::grow(&mut tp, 1);
            }
            windows.push((packets, tp.snd_cwnd));
        }
        // 2 * 4 < 10; 2 * 8; 2 * 4; a full window of 16
        assert_eq!(windows, [(4, 10), (8, 16), (4, 16), (16, 32)]);
        // in avoidance a window that is not full never grows
        let mut tp = sock(12);
        (tp.snd_cwnd, tp.snd_ssthresh) = (12, 6);
        usage = CwndUsage::new(Time::ZERO);
        usage.is_unused(&mut tp, false, 200_000);
        Reno::grow(&mut tp, 12);
        assert_eq!(tp.snd_cwnd, 12);
    }
}
