//! `reno`: additive increase, multiplicative decrease.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_cong.c`; RFC 5681.
//!
//! Parameters: none.
//!
//! Departures: none known. ECN and loss are answered alike (no RFC 8511).

use super::{CcEnv, CcError, CongestionControl};
use crate::cc::sock::TcpSock;
use bakeoff_document::cc::CcWords;

/// Reno has no state of its own.
pub struct Reno;

impl Reno {
    /// From the words after the name: there are none.
    pub fn parse(words: &mut CcWords, _: CcEnv) -> Result<Self, CcError> {
        words.parameter(&[])?;
        Ok(Reno)
    }

    /// `tcp_reno_cong_avoid`.
    /// Source: RFC 5681, section 3.1; RFC 3465 (counts what is acknowledged).
    pub fn grow(tp: &mut TcpSock, acked: u32) {
        if !tp.cwnd_limited() {
            return;
        }
        let mut acked = acked;
        if tp.in_slow_start() {
            acked = tp.slow_start(acked);
            if acked == 0 {
                return;
            }
        }
        tp.cong_avoid_ai(tp.snd_cwnd, acked);
    }

    /// `tcp_reno_ssthresh`: half, truncated, at least 2.
    pub fn half(tp: &TcpSock) -> u32 {
        (tp.snd_cwnd / 2).max(2)
    }
}

impl CongestionControl for Reno {
    /// RFC 5681, section 3.1, equation 4, with the window for what is in flight.
    fn ssthresh(&mut self, tp: &mut TcpSock) -> u32 {
        Reno::half(tp)
    }

    fn cong_avoid(&mut self, tp: &mut TcpSock, acked: u32) {
        Reno::grow(tp, acked);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_and_truncates() {
        let mut tp = TcpSock::new(1448, 250);
        for (cwnd, expected) in [(100, 50), (7, 3), (3, 2), (2, 2)] {
            tp.snd_cwnd = cwnd;
            assert_eq!(Reno.ssthresh(&mut tp), expected);
        }
    }

    #[test]
    fn grows_one_packet_per_window_of_acks_when_limited_by_it() {
        let mut tp = TcpSock::new(1448, 250);
        tp.snd_ssthresh = 10;
        Reno.cong_avoid(&mut tp, 10);
        assert_eq!(tp.snd_cwnd, 10, "not limited by the window: no growth");
        tp.is_cwnd_limited = true;
        Reno.cong_avoid(&mut tp, 10);
        assert_eq!(tp.snd_cwnd, 11);
    }
}
