//! `scalable`: Scalable TCP. One packet per 100 acknowledged, and an eighth less after a loss, whatever the window.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_scalable.c`; Kelly, "Scalable TCP: Improving Performance in Highspeed Wide Area
//! Networks", 2003.
//!
//! Parameters: none.
//!
//! Departures: none known.
//!
//! Validation: the tests below, `tests/cc_hooks.rs`.

use super::{CcEnv, CcError, CongestionControl};
use crate::cc::sock::TcpSock;
use bakeoff_document::cc::CcWords;

/// Scalable TCP has no state of its own.
pub struct Scalable;

impl Scalable {
    /// From the words after the name: there are none.
    pub fn parse(words: &mut CcWords, _: CcEnv) -> Result<Self, CcError> {
        words.parameter(&[])?;
        Ok(Scalable)
    }
}

impl CongestionControl for Scalable {
    /// Seven eighths, at least 2. Source: Linux 7.3 `tcp_scalable_ssthresh`.
    fn ssthresh(&mut self, tp: &mut TcpSock) -> u32 {
        (tp.snd_cwnd - tp.snd_cwnd / 8).max(2)
    }

    /// Slow start as Reno; then one packet per 100 acknowledged, or per window if that is less.
    /// Source: Linux 7.3 `tcp_scalable_cong_avoid`.
    fn cong_avoid(&mut self, tp: &mut TcpSock, acked: u32) {
        if !tp.cwnd_limited() {
            return;
        }
        let left = if tp.in_slow_start() { tp.slow_start(acked) } else { acked };
        if left > 0 {
            tp.cong_avoid_ai(tp.snd_cwnd.min(100), left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(cwnd: u32, ssthresh: u32, acked: u32) -> u32 {
        let mut tp = TcpSock::new(1448, 1000);
        (tp.snd_cwnd, tp.snd_ssthresh, tp.is_cwnd_limited) = (cwnd, ssthresh, true);
        Scalable.cong_avoid(&mut tp, acked);
        tp.snd_cwnd
    }

    #[test]
    fn an_eighth_less_truncated() {
        let mut tp = TcpSock::new(1448, 1000);
        for (cwnd, expected) in [(80, 70), (15, 14), (8, 7), (7, 7), (1, 2)] {
            tp.snd_cwnd = cwnd;
            assert_eq!(Scalable.ssthresh(&mut tp), expected);
        }
    }

    #[test]
    fn one_packet_per_hundred_or_per_window() {
        assert_eq!(after(400, 2, 400), 404);
        assert_eq!(after(400, 2, 99), 400);
        assert_eq!(after(50, 2, 50), 51);
    }

    #[test]
    fn what_slow_start_leaves_counts_and_nothing_grows_unless_the_window_is_the_limit() {
        // 100 to the threshold; 200 more are 2 packets
        assert_eq!(after(100, 200, 300), 202);
        let mut tp = TcpSock::new(1448, 1000);
        tp.snd_ssthresh = 2;
        Scalable.cong_avoid(&mut tp, 1000);
        assert_eq!(tp.snd_cwnd, 10);
    }
}
