//! `bic`: binary increase. Searches between the window of the last loss and the present one by quarters of the distance,
//! at most 16 packets per RTT, and beyond the old window speeds up again.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_bic.c`; Xu, Harfoush and Rhee, "Binary Increase Congestion Control for Fast, Long
//! Distance Networks", 2004.
//!
//! Parameters, as the module's:
//!
//! | name | default | meaning |
//! |---|---|---|
//! | `fast_convergence` | 1 | give way when the window fell short of the last maximum |
//! | `max_increment` | 16 | packets per RTT at most |
//! | `low_window` | 14 | packets; up to here it is `reno` |
//! | `beta` | 819 | factor of a reduction, in 1/1024 |
//! | `initial_ssthresh` | 0 | first slow start threshold in packets, if not 0 |
//! | `smooth_part` | 20 | RTTs from 4 packets below the old window to it |
//!
//! Departures: none known.
//!
//! Validation: the tests below, `tests/cc_hooks.rs`.

use super::{CcEnv, CcError, CongestionControl};
use crate::cc::sock::{CaState, TcpSock};
use bakeoff_document::cc::CcWords;

/// Unit of beta: 1.0.
const BETA_SCALE: u32 = 1024;
/// `BICTCP_B`: each step covers this part of the distance.
const B: u32 = 4;
/// Packets per ACK are counted in 1/16.
const ACK_RATIO_SHIFT: u32 = 4;

/// Parameters and state; the kernel's names.
pub struct Bic {
    fast_convergence: bool,
    max_increment: u32,
    low_window: u32,
    beta: u32,
    initial_ssthresh: u32,
    smooth_part: u32,
    /// ACKed packets per packet of growth.
    cnt: u32,
    last_max_cwnd: u32,
    last_cwnd: u32,
    /// Jiffies of the last computation.
    last_time: u64,
    /// Packets per ACK, in 1/16.
    delayed_ack: u32,
}

impl Bic {
    /// From the words after the name.
    pub fn parse(words: &mut CcWords, _: CcEnv) -> Result<Self, CcError> {
        let mut c = Bic {
            fast_convergence: true,
            max_increment: 16,
            low_window: 14,
            beta: 819,
            initial_ssthresh: 0,
            smooth_part: 20,
            cnt: 0,
            last_max_cwnd: 0,
            last_cwnd: 0,
            last_time: 0,
            delayed_ack: 2 << ACK_RATIO_SHIFT,
        };
        let known =
            ["fast_convergence", "max_increment", "low_window", "beta", "initial_ssthresh", "smooth_part"];
        while let Some(parameter) = words.parameter(&known)? {
            match parameter {
                "fast_convergence" => c.fast_convergence = words.flag()?,
                "max_increment" => c.max_increment = words.number(1..=1_000_000)?,
                "low_window" => c.low_window = words.number(0..=i32::MAX as u32)?,
                "beta" => c.beta = words.number(1..=1023)?,
                "initial_ssthresh" => c.initial_ssthresh = words.number(0..=i32::MAX as u32)?,
                _ => c.smooth_part = words.number(1..=1_000_000)?,
            }
        }
        Ok(c)
    }

    /// `bictcp_reset`
    fn reset(&mut self) {
        self.cnt = 0;
        self.last_max_cwnd = 0;
        self.last_cwnd = 0;
        self.last_time = 0;
        self.delayed_ack = 2 << ACK_RATIO_SHIFT;
    }

    /// ACKed packets per packet of growth at a window beyond [`Bic::low_window`], each packet acknowledged alone.
    fn search(&self, cwnd: u32) -> u32 {
        let max = self.last_max_cwnd;
        let linear = cwnd / self.max_increment;
        let smooth = cwnd.wrapping_mul(self.smooth_part) / B;
        if cwnd < max {
            match (max - cwnd) / B {
                dist if dist > self.max_increment => linear,
                0..=1 => smooth,
                dist => cwnd / dist,
            }
        } else if cwnd < max.wrapping_add(B) {
            smooth
        } else if cwnd < max.wrapping_add(self.max_increment * (B - 1)) {
            cwnd.wrapping_mul(B - 1) / (cwnd - max)
        } else {
            linear
        }
    }

    /// Source: Linux 7.3 `bictcp_update`.
    fn update(&mut self, tp: &TcpSock) {
        let (cwnd, now) = (tp.snd_cwnd, tp.jiffies());
        if self.last_cwnd == cwnd && now - self.last_time <= tp.hz / 32 {
            return;
        }
        self.last_cwnd = cwnd;
        self.last_time = now;
        if cwnd <= self.low_window {
            self.cnt = cwnd;
            return;
        }
        self.cnt = self.search(cwnd);
        // Before the first loss nothing is known: at least 5 % per RTT.
        if self.last_max_cwnd == 0 {
            self.cnt = self.cnt.min(20);
        }
        self.cnt = ((self.cnt << ACK_RATIO_SHIFT) / self.delayed_ack).max(1);
    }
}

impl CongestionControl for Bic {
    fn init(&mut self, tp: &mut TcpSock) {
        self.reset();
        if self.initial_ssthresh > 0 {
            tp.snd_ssthresh = self.initial_ssthresh;
        }
    }

    /// Source: Linux 7.3 `bictcp_recalc_ssthresh`.
    fn ssthresh(&mut self, tp: &mut TcpSock) -> u32 {
        let cwnd = tp.snd_cwnd;
        self.last_max_cwnd = if cwnd < self.last_max_cwnd && self.fast_convergence {
            cwnd.wrapping_mul(BETA_SCALE + self.beta) / (2 * BETA_SCALE)
        } else {
            cwnd
        };
        let reduced =
            if cwnd <= self.low_window { cwnd >> 1 } else { cwnd.wrapping_mul(self.beta) / BETA_SCALE };
        reduced.max(2)
    }

    /// Source: Linux 7.3 `bictcp_cong_avoid`.
    fn cong_avoid(&mut self, tp: &mut TcpSock, acked: u32) {
        if !tp.cwnd_limited() {
            return;
        }
        let left = if tp.in_slow_start() { tp.slow_start(acked) } else { acked };
        if left > 0 {
            self.update(tp);
            tp.cong_avoid_ai(self.cnt, left);
        }
    }

    fn set_state(&mut self, _tp: &mut TcpSock, state: CaState) {
        if state == CaState::Loss {
            self.reset();
        }
    }

    /// Smooths by 15/16. Source: Linux 7.3 `bictcp_acked`.
    fn pkts_acked(&mut self, tp: &mut TcpSock, acked: u32, _rtt_us: Option<u64>) {
        if tp.ca_state == CaState::Open {
            self.delayed_ack = self.delayed_ack + acked - (self.delayed_ack >> ACK_RATIO_SHIFT);
        }
    }

    fn trace(&self) -> Vec<(&'static str, f64)> {
        vec![("last_max_cwnd", self.last_max_cwnd.into()), ("cnt", self.cnt.into())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::Time;

    /// In congestion avoidance, each packet acknowledged alone.
    fn bic(text: &str, max: u32, cwnd: u32) -> (Bic, TcpSock) {
        let Ok(mut c) = Bic::parse(&mut CcWords::new(text), CcEnv::default()) else {
            panic!("'{text}' was refused")
        };
        let mut tp = TcpSock::new(1448, 1000);
        c.init(&mut tp);
        (tp.snd_cwnd, tp.snd_ssthresh, tp.is_cwnd_limited) = (cwnd, 2, true);
        (c.last_max_cwnd, c.delayed_ack) = (max, 16);
        (c, tp)
    }

    #[test]
    fn the_step_by_the_distance_from_the_old_window() {
        for (max, cwnd, cnt) in [
            (1000, 14, 14),     // low_window: Reno
            (1000, 800, 50),    // a quarter of the distance is 50, more than 16: 800 / 16
            (1000, 932, 58),    // 17: still 932 / 16
            (1000, 936, 58),    // 16: 936 / 16 by the search
            (1000, 960, 96),    // 10: 960 / 10
            (1000, 992, 496),   // 2
            (1000, 993, 4965),  // 1: 993 * 20 / 4
            (1000, 1003, 5015), // not yet 4 beyond
            (1000, 1004, 753),  // 1004 * 3 / 4
            (1000, 1047, 66),   // 1047 * 3 / 47
            (1000, 1048, 65),   // 48 beyond: 1048 / 16
        ] {
            let (mut c, tp) = bic("bic", max, cwnd);
            c.update(&tp);
            assert_eq!(c.cnt, cnt, "{max} {cwnd}");
        }
        // before any loss: 100 / 16 = 6; 1000 / 16 = 62, cut to 20
        for (cwnd, cnt) in [(100, 6), (1000, 20)] {
            let (mut c, tp) = bic("bic", 0, cwnd);
            c.update(&tp);
            assert_eq!(c.cnt, cnt, "{cwnd}");
        }
    }

    #[test]
    fn parameters_move_the_steps() {
        for (text, cwnd, cnt) in [
            ("bic max_increment 32", 800, 25),
            ("bic low_window 800", 800, 800),
            ("bic smooth_part 40", 993, 9930),
        ] {
            let (mut c, tp) = bic(text, 1000, cwnd);
            c.update(&tp);
            assert_eq!(c.cnt, cnt, "{text}");
        }
        let (_, mut tp) = bic("bic", 0, 10);
        let (mut c, _) = bic("bic initial_ssthresh 100", 0, 10);
        c.init(&mut tp);
        assert_eq!(tp.snd_ssthresh, 100);
    }

    #[test]
    fn packets_per_ack_divide_the_step() {
        let (mut c, mut tp) = bic("bic", 1000, 800);
        // two packets per ACK as at the start: 50 * 16 / 32
        c.reset();
        c.last_max_cwnd = 1000;
        c.update(&tp);
        assert_eq!(c.cnt, 25);
        // 32 + 18 - 2 = 48: 50 * 16 / 48 = 16; only in Open
        tp.now = Time::from_ms(32);
        c.pkts_acked(&mut tp, 18, None);
        tp.ca_state = CaState::Disorder;
        c.pkts_acked(&mut tp, 18, None);
        c.update(&tp);
        assert_eq!((c.delayed_ack, c.cnt), (48, 16));
        // ACKs of nothing: down to 15/16, never to 0
        tp.ca_state = CaState::Open;
        for _ in 0..1000 {
            c.pkts_acked(&mut tp, 0, None);
        }
        assert_eq!(c.delayed_ack, 15);
    }

    #[test]
    fn the_step_is_kept_while_the_window_and_31_ms_stand() {
        let (mut c, mut tp) = bic("bic", 1000, 800);
        c.update(&tp);
        c.delayed_ack = 32;
        tp.now = Time::from_ms(31);
        c.update(&tp);
        assert_eq!(c.cnt, 50);
        tp.now = Time::from_ms(32);
        c.update(&tp);
        assert_eq!(c.cnt, 25);
    }

    #[test]
    fn reductions_and_what_is_remembered() {
        // 1000 * 819 / 1024 = 799.8
        let (mut c, mut tp) = bic("bic", 0, 1000);
        assert_eq!((c.ssthresh(&mut tp), c.last_max_cwnd), (799, 1000));
        // fell short: 800 * 1843 / 2048 = 719.9
        tp.snd_cwnd = 800;
        assert_eq!((c.ssthresh(&mut tp), c.last_max_cwnd), (639, 719));
        tp.snd_cwnd = 14;
        assert_eq!(c.ssthresh(&mut tp), 7);
        tp.snd_cwnd = 3;
        assert_eq!(c.ssthresh(&mut tp), 2);
        let (mut c, mut tp) = bic("bic fast_convergence 0 beta 512", 1000, 800);
        assert_eq!((c.ssthresh(&mut tp), c.last_max_cwnd), (400, 800));
        c.set_state(&mut tp, CaState::Loss);
        assert_eq!(c.last_max_cwnd, 0);
    }

    #[test]
    fn grows_by_the_step_with_what_slow_start_leaves() {
        let (mut c, mut tp) = bic("bic", 1000, 790);
        tp.snd_ssthresh = 800;
        // 10 to the threshold; 100 of 50 each
        c.cong_avoid(&mut tp, 110);
        assert_eq!(tp.snd_cwnd, 802);
        tp.is_cwnd_limited = false;
        c.cong_avoid(&mut tp, 110);
        assert_eq!(tp.snd_cwnd, 802);
    }
}
