//! `highspeed`: HighSpeed TCP. The larger the window, the more it grows per RTT (1 packet to 72) and the less it is
//! reduced (a half to a tenth).
//!
//! Source: Linux 7.3 `net/ipv4/tcp_highspeed.c`; RFC 3649. Growth counts ACKs, not packets, as there: where every second
//! packet is acknowledged the window grows half as fast as RFC 3649 says.
//!
//! Parameters: none.
//!
//! Departures: none known.
//!
//! Validation: the tests below (the table against RFC 3649's formula), `tests/cc_hooks.rs`.

use super::{CcEnv, CcError, CongestionControl};
use crate::cc::sock::TcpSock;
use bakeoff_document::cc::CcWords;

/// Greatest windows at which so many packets plus one are added per RTT, and the reduction there in 1/256.
/// Source: RFC 3649, appendix B, in the precision of Linux 7.3 `hstcp_aimd_vals`.
const TABLE: [(u32, u32); 72] = [
    (38, 128),
    (118, 112),
    (221, 104),
    (347, 98),
    (495, 93),
    (663, 89),
    (851, 86),
    (1058, 83),
    (1284, 81),
    (1529, 78),
    (1793, 76),
    (2076, 74),
    (2378, 72),
    (2699, 71),
    (3039, 69),
    (3399, 68),
    (3778, 66),
    (4177, 65),
    (4596, 64),
    (5036, 62),
    (5497, 61),
    (5979, 60),
    (6483, 59),
    (7009, 58),
    (7558, 57),
    (8130, 56),
    (8726, 55),
    (9346, 54),
    (9991, 53),
    (10661, 52),
    (11358, 52),
    (12082, 51),
    (12834, 50),
    (13614, 49),
    (14424, 48),
    (15265, 48),
    (16137, 47),
    (17042, 46),
    (17981, 45),
    (18955, 45),
    (19965, 44),
    (21013, 43),
    (22101, 43),
    (23230, 42),
    (24402, 41),
    (25618, 41),
    (26881, 40),
    (28193, 39),
    (29557, 39),
    (30975, 38),
    (32450, 38),
    (33986, 37),
    (35586, 36),
    (37253, 36),
    (38992, 35),
    (40808, 35),
    (42707, 34),
    (44694, 33),
    (46776, 33),
    (48961, 32),
    (51258, 32),
    (53677, 31),
    (56230, 30),
    (58932, 30),
    (61799, 29),
    (64851, 28),
    (68113, 28),
    (71617, 27),
    (75401, 26),
    (79517, 26),
    (84035, 25),
    (89053, 24),
];

/// State.
pub struct HighSpeed {
    /// The entry of [`TABLE`] in force.
    ai: usize,
}

impl HighSpeed {
    /// From the words after the name: there are none.
    pub fn parse(words: &mut CcWords, _: CcEnv) -> Result<Self, CcError> {
        words.parameter(&[])?;
        Ok(HighSpeed { ai: 0 })
    }

    /// Moves to the first entry that is not below the window, or to the last one.
    fn find(&mut self, cwnd: u32) {
        while cwnd > TABLE[self.ai].0 && self.ai < TABLE.len() - 1 {
            self.ai += 1;
        }
        while self.ai > 0 && cwnd <= TABLE[self.ai - 1].0 {
            self.ai -= 1;
        }
    }
}

impl CongestionControl for HighSpeed {
    fn init(&mut self, tp: &mut TcpSock) {
        self.ai = 0;
        tp.snd_cwnd_clamp = tp.snd_cwnd_clamp.min(u32::MAX / 128);
    }

    /// By the entry of the last growth. Source: Linux 7.3 `hstcp_ssthresh`.
    fn ssthresh(&mut self, tp: &mut TcpSock) -> u32 {
        (tp.snd_cwnd - (tp.snd_cwnd.wrapping_mul(TABLE[self.ai].1) >> 8)).max(2)
    }

    /// Source: Linux 7.3 `hstcp_cong_avoid`.
    fn cong_avoid(&mut self, tp: &mut TcpSock, acked: u32) {
        if !tp.cwnd_limited() {
            return;
        }
        if tp.in_slow_start() {
            tp.slow_start(acked);
            return;
        }
        self.find(tp.snd_cwnd);
        if tp.snd_cwnd < tp.snd_cwnd_clamp {
            tp.snd_cwnd_cnt += self.ai as u32 + 1;
            if tp.snd_cwnd_cnt >= tp.snd_cwnd {
                tp.snd_cwnd_cnt -= tp.snd_cwnd;
                tp.snd_cwnd += 1;
            }
        }
    }

    fn trace(&self) -> Vec<(&'static str, f64)> {
        vec![("ai", (self.ai + 1) as f64)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn highspeed(cwnd: u32) -> (HighSpeed, TcpSock) {
        let mut c = HighSpeed { ai: 0 };
        let mut tp = TcpSock::new(1448, 1000);
        c.init(&mut tp);
        (tp.snd_cwnd, tp.snd_ssthresh, tp.is_cwnd_limited) = (cwnd, 2, true);
        (c, tp)
    }

    #[test]
    fn reductions_are_those_of_the_formula() {
        // RFC 3649, section 5: b(w) = (0.1 - 0.5) (log w - log 38) / (log 83000 - log 38) + 0.5
        for (w, md) in TABLE {
            let b = 0.5 - 0.4 * (f64::from(w) / 38.0).ln() / (83_000.0_f64 / 38.0).ln();
            assert_eq!(md, (256.0 * b) as u32, "{w}");
        }
    }

    #[test]
    fn windows_are_those_up_to_which_the_formulas_increase_rounds_to_the_entry() {
        // RFC 3649, section 5: a(w) = w^2 p(w) 2 b(w) / (2 - b(w)), p(w) = 0.078 / w^1.2
        for (n, (w, _)) in TABLE.into_iter().enumerate().skip(1) {
            let w = f64::from(w);
            let b = 0.5 - 0.4 * (w / 38.0).ln() / (83_000.0_f64 / 38.0).ln();
            let a = w.powf(0.8) * 0.078 * 2.0 * b / (2.0 - b);
            assert!((a - (n as f64 + 1.0)).abs() < 0.1, "{n}: {w} {a}");
        }
    }

    #[test]
    fn growth_per_ack_by_the_window_and_only_beyond_slow_start() {
        for (cwnd, steps) in [(38, 1), (39, 2), (118, 2), (119, 3), (89_053, 72), (200_000, 72)] {
            let (mut c, mut tp) = highspeed(cwnd);
            c.cong_avoid(&mut tp, 7);
            assert_eq!(tp.snd_cwnd_cnt, steps, "{cwnd}");
        }
        // 40 packets, 2 per ACK: the 20th grows
        let (mut c, mut tp) = highspeed(40);
        for _ in 0..19 {
            c.cong_avoid(&mut tp, 2);
        }
        assert_eq!((tp.snd_cwnd, tp.snd_cwnd_cnt), (40, 38));
        c.cong_avoid(&mut tp, 2);
        assert_eq!((tp.snd_cwnd, tp.snd_cwnd_cnt), (41, 0));
        tp.snd_ssthresh = 45;
        c.cong_avoid(&mut tp, 10);
        assert_eq!((tp.snd_cwnd, tp.snd_cwnd_cnt), (45, 0));
    }

    #[test]
    fn the_entry_follows_the_window_down_too() {
        let (mut c, mut tp) = highspeed(1000);
        c.cong_avoid(&mut tp, 1);
        // 1000 is in the entry of 1058: 1000 - 1000 * 83 / 256 = 1000 - 324
        assert_eq!((c.ai, c.ssthresh(&mut tp)), (7, 676));
        tp.snd_cwnd = 118;
        c.cong_avoid(&mut tp, 1);
        // 118 - 118 * 112 / 256 = 118 - 51
        assert_eq!((c.ai, c.ssthresh(&mut tp)), (1, 67));
        tp.snd_cwnd = 2;
        assert_eq!(c.ssthresh(&mut tp), 2);
    }
}
