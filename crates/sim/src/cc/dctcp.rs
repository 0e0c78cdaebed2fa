//! `dctcp`: reduces by half the smoothed fraction of CE marks, once per window; grows as `reno`.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_dctcp.c`, `tcp_dctcp.h`; RFC 8257. Integer arithmetic as there: alpha in 1/1024.
//! Needs ECN at both ends (its SYN is ECT, which a listener of another module refuses); without it the
//! connection runs as `reno`. Its receiver tells CE by state changes
//! ([`crate::tcp::feedback`]), with AccECN as well.
//!
//! | parameter | default | meaning |
//! |---|---|---|
//! | `dctcp_shift_g` | 4 | gain of alpha: 1/2^g, 0 to 10 |
//! | `dctcp_alpha_on_init` | 1024 | first alpha in 1/1024, at most 1024 |
//!
//! Departures: no PLB (off by default in Linux).
//!
//! Validation: the tests below, `tests/window_model.rs` (mean windows under random marks), `tests/cc_hooks.rs`.

use super::reno::Reno;
use super::{CaEvent, CcEnv, CcError, CongestionControl};
use crate::cc::sock::{CaState, TcpSock};
use bakeoff_document::cc::CcWords;

/// 1.0
const MAX_ALPHA: u32 = 1024;

/// Parameters and state; the kernel's names.
pub struct Dctcp {
    shift_g: u32,
    alpha_on_init: u32,
    /// ECN was not negotiated.
    as_reno: bool,
    /// Smoothed fraction of marks in 1/1024.
    alpha: u32,
    old_delivered: u64,
    old_delivered_ce: u64,
    next_seq: u64,
    loss_cwnd: u32,
}

impl Dctcp {
    /// From the words after the name.
    pub fn parse(words: &mut CcWords, _: CcEnv) -> Result<Self, CcError> {
        let mut c = Dctcp {
            shift_g: 4,
            alpha_on_init: MAX_ALPHA,
            as_reno: false,
            alpha: MAX_ALPHA,
            old_delivered: 0,
            old_delivered_ce: 0,
            next_seq: 0,
            loss_cwnd: 0,
        };
        while let Some(parameter) = words.parameter(&["dctcp_shift_g", "dctcp_alpha_on_init"])? {
            match parameter {
                "dctcp_shift_g" => c.shift_g = words.number(0..=10)?,
                _ => c.alpha_on_init = words.number(0..=u32::MAX)?.min(MAX_ALPHA),
            }
        }
        Ok(c)
    }

    /// Source: RFC 8257, section 3.3; Linux 7.3 `dctcp_reset`.
    fn new_window(&mut self, tp: &TcpSock) {
        self.next_seq = tp.snd_nxt;
        self.old_delivered = tp.delivered;
        self.old_delivered_ce = tp.delivered_ce;
    }

    /// alpha = (1 - g) alpha + g F (RFC 8257, section 3.3). What is below 1/g leaves at once, so that alpha
    /// can become 0. Source: Linux 7.3 `dctcp_update_alpha`.
    fn next_alpha(&self, delivered: u64, marked: u64) -> u32 {
        let decay = match self.alpha >> self.shift_g {
            0 => self.alpha,
            part => part,
        };
        let fraction = (marked << (10 - self.shift_g)) / delivered.max(1);
        (u64::from(self.alpha - decay) + fraction).min(MAX_ALPHA.into()) as u32
    }

    /// Source: RFC 8257, section 3.5; Linux 7.3 `dctcp_react_to_loss`.
    fn react_to_loss(&mut self, tp: &mut TcpSock) {
        self.loss_cwnd = tp.snd_cwnd;
        tp.snd_ssthresh = Reno::half(tp);
    }
}

impl CongestionControl for Dctcp {
    fn init(&mut self, tp: &mut TcpSock) {
        self.as_reno = !tp.ecn_ok;
        self.alpha = self.alpha_on_init;
        self.new_window(tp);
    }

    /// cwnd (1 - alpha / 2). Source: RFC 8257, section 3.3; Linux 7.3 `dctcp_ssthresh`.
    fn ssthresh(&mut self, tp: &mut TcpSock) -> u32 {
        if self.as_reno {
            return Reno::half(tp);
        }
        self.loss_cwnd = tp.snd_cwnd;
        let cut = (u64::from(tp.snd_cwnd) * u64::from(self.alpha)) >> 11;
        (tp.snd_cwnd - cut as u32).max(2)
    }

    fn cong_avoid(&mut self, tp: &mut TcpSock, acked: u32) {
        Reno::grow(tp, acked);
    }

    /// Source: RFC 8257, section 3.3; Linux 7.3 `dctcp_update_alpha`.
    fn in_ack_event(&mut self, tp: &mut TcpSock, _ece: bool) {
        if self.as_reno || tp.snd_una < self.next_seq {
            return;
        }
        let delivered = tp.delivered - self.old_delivered;
        self.alpha = self.next_alpha(delivered, tp.delivered_ce - self.old_delivered_ce);
        self.new_window(tp);
    }

    fn set_state(&mut self, tp: &mut TcpSock, state: CaState) {
        if !self.as_reno && state == CaState::Recovery && state != tp.ca_state {
            self.react_to_loss(tp);
        }
    }

    fn cwnd_event(&mut self, tp: &mut TcpSock, event: CaEvent) {
        if !self.as_reno && event == CaEvent::Loss {
            self.react_to_loss(tp);
        }
    }

    fn undo_cwnd(&mut self, tp: &mut TcpSock) -> u32 {
        if self.as_reno {
            return Reno.undo_cwnd(tp);
        }
        tp.snd_cwnd.max(self.loss_cwnd)
    }

    fn needs_ecn(&self) -> bool {
        !self.as_reno
    }

    fn tells_state_changes(&self) -> bool {
        !self.as_reno
    }

    fn trace(&self) -> Vec<(&'static str, f64)> {
        vec![("alpha", f64::from(self.alpha) / f64::from(MAX_ALPHA))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(text: &str, cwnd: u32) -> (Dctcp, TcpSock) {
        let mut tp = TcpSock::new(1448, 250);
        tp.ecn_ok = true;
        tp.snd_cwnd = cwnd;
        tp.is_cwnd_limited = true;
        let mut words = CcWords::new(text);
        let Ok(mut dctcp) = Dctcp::parse(&mut words, CcEnv::default()) else {
            panic!("'{text}' was refused")
        };
        dctcp.init(&mut tp);
        (dctcp, tp)
    }

    /// A window of `delivered` packets of which `marked` had CE.
    fn window(dctcp: &mut Dctcp, tp: &mut TcpSock, delivered: u64, marked: u64) -> u32 {
        tp.snd_una = tp.snd_nxt;
        tp.snd_nxt += delivered * 1448;
        tp.delivered += delivered;
        tp.delivered_ce += marked;
        dctcp.in_ack_event(tp, marked > 0);
        dctcp.alpha
    }

    #[test]
    fn rfc_8257_alpha_in_1024ths() {
        let (mut dctcp, mut tp) = open("dctcp", 16);
        // 1024 - 64 + (4 * 64) / 16 = 976; 976 - 61 + 16 = 931; without marks 931 - 58 = 873
        let alphas = [(16, 4), (16, 4), (16, 0)].map(|(d, m)| window(&mut dctcp, &mut tp, d, m));
        assert_eq!(alphas, [976, 931, 873]);
        // all marked: 873 - 54 + 64 = 883, and never above 1024
        assert_eq!(window(&mut dctcp, &mut tp, 10, 10), 883);
        for _ in 0..200 {
            window(&mut dctcp, &mut tp, 10, 10);
        }
        assert_eq!(dctcp.alpha, 1024);
    }

    #[test]
    fn a_quarter_of_marks_settles_where_truncation_balances() {
        // alpha / 16 truncated equals 16 from 256 to 271; coming from above it stops at 271
        let (mut dctcp, mut tp) = open("dctcp", 16);
        for _ in 0..200 {
            window(&mut dctcp, &mut tp, 16, 4);
        }
        assert_eq!(dctcp.alpha, 271);
    }

    #[test]
    fn alpha_below_a_sixteenth_of_a_sixtyfourth_vanishes() {
        let (mut dctcp, mut tp) = open("dctcp dctcp_alpha_on_init 16", 16);
        assert_eq!([0; 2].map(|m| window(&mut dctcp, &mut tp, 100, m)), [15, 0]);
        // fewer than one packet in 64 truncates to no mark at all
        assert_eq!(window(&mut dctcp, &mut tp, 100, 1), 0);
        assert_eq!(window(&mut dctcp, &mut tp, 64, 1), 1);
    }

    #[test]
    fn alpha_is_updated_once_per_window() {
        let (mut dctcp, mut tp) = open("dctcp", 16);
        window(&mut dctcp, &mut tp, 16, 0);
        tp.delivered += 1;
        tp.snd_una += 1448;
        dctcp.in_ack_event(&mut tp, false);
        assert_eq!(dctcp.alpha, 960);
    }

    #[test]
    fn ssthresh_takes_half_of_alpha_off_and_keeps_two() {
        for (cwnd, alpha, expected) in
            [(100, 1024, 50), (100, 256, 88), (100, 10, 100), (3, 1024, 2), (2, 1024, 2)]
        {
            let (mut dctcp, mut tp) = open("dctcp", cwnd);
            dctcp.alpha = alpha;
            assert_eq!(dctcp.ssthresh(&mut tp), expected, "{cwnd} {alpha}");
        }
    }

    #[test]
    fn loss_halves_whatever_alpha_is() {
        let (mut dctcp, mut tp) = open("dctcp dctcp_alpha_on_init 0", 100);
        tp.snd_ssthresh = dctcp.ssthresh(&mut tp);
        assert_eq!(tp.snd_ssthresh, 100);
        dctcp.set_state(&mut tp, CaState::Recovery);
        assert_eq!(tp.snd_ssthresh, 50);
        tp.snd_cwnd = 60;
        dctcp.cwnd_event(&mut tp, CaEvent::Loss);
        assert_eq!(tp.snd_ssthresh, 30);
        assert_eq!(dctcp.undo_cwnd(&mut tp), 60);
    }

    #[test]
    fn the_gain_is_a_parameter() {
        let (mut dctcp, mut tp) = open("dctcp dctcp_shift_g 1", 16);
        // 1024 - 512 + (4 * 512) / 16
        assert_eq!(window(&mut dctcp, &mut tp, 16, 4), 640);
    }

    #[test]
    fn without_ecn_it_is_reno() {
        let (mut dctcp, mut tp) = open("dctcp", 100);
        tp.ecn_ok = false;
        dctcp.init(&mut tp);
        dctcp.alpha = 0;
        assert_eq!(dctcp.ssthresh(&mut tp), 50);
        assert!(!dctcp.needs_ecn() && !dctcp.tells_state_changes());
    }
}
