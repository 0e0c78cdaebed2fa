//! `reno-sce`: Reno that gives way to SCE marks by the square root of its window.
//!
//! Source: chromi/sce `net/ipv4/tcp_reno_sce.c`, its later form; `@2019`: the older one (07bbe597); docs/models/sce.md describes both. Needs RFC 3168's ECN and
//! `net.ipv4.tcp_sce` at the receiver for marks to be echoed; `net.ipv4.tcp_sce_pacing` at the sender paces it, at
//! `tcp_pacing_ss_ratio` and `tcp_pacing_ca_ratio` (100 and 40 in the published SCE runs).
//!
//! Per round trip with a fraction f of bytes marked the window W changes by (1 - f) - f sqrt(W). CE and loss: PRR to ssthresh, then a
//! quarter less, or an eighth if SCE was recent. As in the module an ESCE does not end slow start, and ssthresh does not
//! fall before the first CE or loss. The root that a mark is weighed by is 1 at first, and goes one towards that of the window with each step which earned
//! or taken bytes bring about. So the first marks after slow start weigh little.
//!
//! `@2019`: an ESCE sets ssthresh to half of the window, so that the first one ends slow start. A mark takes half as much, and CE a quarter or
//! an eighth in all, in the course of the round trip. Of the two forms it is the one with which the runs of November 2019 agree.
//!
//! | parameter | default | meaning |
//! |---|---|---|
//! | `mss` | mss_cache | the segment in which the window's bytes are counted. `rcv_mss` is what the source says: 536 bytes on a socket that receives no data, so that growth and marks count 2.7 times (docs/models/sce.md) |
//! | `pacing` | sysctl | `on` or `off` whatever `net.ipv4.tcp_sce_pacing` says |
//!
//! Departures: those of [`super::sce`]. `@2019`: CE's part is taken by PRR, not by the module's count; a loss is
//! PRR to ssthresh.
//!
//! Validation: the tests below, `tests/cc_hooks.rs` (any sequence of hooks), `tests/claims/test_versions.py` (published runs).

use super::sce::{CePart, SceOptions, SceWindow, Tree};
use super::{CaEvent, CcEnv, CcError, CongestionControl};
use crate::cc::sock::TcpSock;
use bakeoff_document::cc::CcWords;

/// The module.
#[derive(Default)]
pub struct RenoSce {
    pub(super) window: SceWindow,
    halved: bool,
}

impl RenoSce {
    /// From the words after the name.
    pub fn parse(words: &mut CcWords, _: CcEnv) -> Result<Self, CcError> {
        let halved = words.version() == Some("2019");
        let (tree, ce_part) =
            if halved { (Tree::Of2019, CePart::ProRata) } else { (Tree::Later, CePart::AtTheEnd) };
        Ok(RenoSce { window: SceWindow::new(tree, ce_part, SceOptions::parsed(words)?), halved })
    }
}

impl CongestionControl for RenoSce {
    fn init(&mut self, tp: &mut TcpSock) {
        self.window.start(tp);
    }

    fn ssthresh(&mut self, tp: &mut TcpSock) -> u32 {
        self.window.ssthresh(tp)
    }

    fn cong_avoid(&mut self, tp: &mut TcpSock, acked: u32) {
        self.window.slow_start(tp, acked, 1);
    }

    fn in_ack_event(&mut self, tp: &mut TcpSock, ece: bool) {
        let share = if self.halved { 2 } else { 1 };
        self.window.on_ack(tp, ece, |acked, _, root| acked * i64::from(root) / share);
    }

    fn cwnd_event(&mut self, tp: &mut TcpSock, event: CaEvent) {
        self.window.on_event(tp, event);
    }

    fn trace(&self) -> Vec<(&'static str, f64)> {
        self.window.trace()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1448;

    fn avoiding(cwnd: u32) -> (RenoSce, TcpSock) {
        version("reno-sce", cwnd)
    }

    fn version(text: &str, cwnd: u32) -> (RenoSce, TcpSock) {
        let mut tp = TcpSock::new(MSS as u32, 250);
        tp.snd_cwnd = cwnd;
        tp.snd_ssthresh = 2;
        tp.is_cwnd_limited = true;
        let Ok(mut reno) = RenoSce::parse(&mut CcWords::new(text), CcEnv::default()) else {
            panic!("'{text}' was refused")
        };
        reno.init(&mut tp);
        reno.window.root = cwnd.isqrt();
        (reno, tp)
    }

    fn ack(reno: &mut RenoSce, tp: &mut TcpSock, packets: u64, esce: bool) {
        tp.snd_una += packets * MSS;
        tp.esce = esce;
        reno.in_ack_event(tp, false);
    }

    #[test]
    fn an_unmarked_window_adds_a_packet() {
        let (mut reno, mut tp) = avoiding(100);
        for _ in 0..50 {
            ack(&mut reno, &mut tp, 2, false);
        }
        assert_eq!(tp.snd_cwnd, 101);
    }

    #[test]
    fn a_marked_packet_takes_the_root_of_the_window_over_the_window() {
        // 10 marked packets of a window of 100: 10 * sqrt(100) = 100 packets' worth, which is one
        let (mut reno, mut tp) = avoiding(100);
        for n in 1..=10 {
            ack(&mut reno, &mut tp, 1, true);
            assert_eq!(tp.snd_cwnd, if n < 10 { 100 } else { 99 });
        }
    }

    #[test]
    fn the_root_is_one_after_slow_start_and_follows_the_windows_steps() {
        let (mut reno, mut tp) = avoiding(66);
        reno.init(&mut tp);
        // 66 * 1 packets, then 33 * 2 = 65 + 1, then 21 * 3 = 64 - 1
        for (packets, left) in [(66, 65), (33, 64), (21, 63)] {
            for n in 1..=packets {
                assert_eq!(tp.snd_cwnd, left + 1, "{n}");
                ack(&mut reno, &mut tp, 1, true);
            }
            assert_eq!(tp.snd_cwnd, left);
        }
        assert_eq!(reno.window.root, 4);
    }

    #[test]
    fn a_fraction_of_marks_settles_where_it_balances_growth() {
        // one packet in 9 marked: 8/9 = sqrt(W) / 9 at W = 64; the integer root is 8 from 64 to 80
        let (mut reno, mut tp) = avoiding(40);
        for n in 0..100_000_u32 {
            ack(&mut reno, &mut tp, 1, n % 9 == 0);
        }
        assert!((63..=65).contains(&tp.snd_cwnd), "{}", tp.snd_cwnd);
    }

    #[test]
    fn a_ce_cut_is_a_quarter_or_an_eighth_if_sce_was_recent() {
        let (mut reno, mut tp) = avoiding(100);
        reno.cwnd_event(&mut tp, CaEvent::CompleteCwr);
        assert_eq!((tp.snd_cwnd, tp.snd_ssthresh), (75, 50));
        let (mut reno, mut tp) = avoiding(100);
        ack(&mut reno, &mut tp, 1, true);
        reno.cwnd_event(&mut tp, CaEvent::CompleteCwr);
        assert_eq!((tp.snd_cwnd, tp.snd_ssthresh), (88, 50));
        // recent means: within a window of ACKs
        let (mut reno, mut tp) = avoiding(100);
        ack(&mut reno, &mut tp, 1, true);
        for _ in 0..100 {
            ack(&mut reno, &mut tp, 1, false);
        }
        let cwnd = tp.snd_cwnd;
        reno.cwnd_event(&mut tp, CaEvent::CompleteCwr);
        assert_eq!(tp.snd_cwnd, cwnd - cwnd / 4);
    }

    #[test]
    fn in_2019_a_mark_took_half_as_much() {
        // 20 marked packets of a window of 100: 20 * sqrt(100) / 2 = 100 packets' worth, which is one
        let (mut reno, mut tp) = version("reno-sce@2019", 100);
        for n in 1..=20 {
            ack(&mut reno, &mut tp, 1, true);
            assert_eq!(tp.snd_cwnd, if n < 20 { 100 } else { 99 });
        }
    }

    #[test]
    fn in_2019_ce_took_its_part_in_the_round_trip_and_no_more_at_its_end() {
        for (sce, left) in [(false, 75), (true, 88)] {
            let (mut reno, mut tp) = version("reno-sce@2019", 100);
            if sce {
                ack(&mut reno, &mut tp, 1, true);
            }
            tp.snd_una += MSS;
            tp.esce = false;
            reno.in_ack_event(&mut tp, true);
            tp.prior_cwnd = tp.snd_cwnd;
            assert_eq!(reno.ssthresh(&mut tp), left);
            tp.snd_cwnd = left;
            reno.cwnd_event(&mut tp, CaEvent::CompleteCwr);
            assert_eq!((tp.snd_cwnd, tp.snd_ssthresh), (left, 50));
            // without ECE it is a loss
            ack(&mut reno, &mut tp, 1, false);
            assert_eq!(reno.ssthresh(&mut tp), 50);
        }
    }

    #[test]
    fn sce_does_not_end_slow_start_but_the_first_ce_does() {
        let mut tp = TcpSock::new(MSS as u32, 250);
        tp.is_cwnd_limited = true;
        let mut reno = RenoSce::default();
        reno.init(&mut tp);
        ack(&mut reno, &mut tp, 1, true);
        assert!(tp.in_slow_start());
        reno.cong_avoid(&mut tp, 10);
        assert_eq!(tp.snd_cwnd, 20);
        tp.snd_ssthresh = reno.ssthresh(&mut tp);
        assert!(tp.in_slow_start(), "ssthresh is still infinite");
        reno.cwnd_event(&mut tp, CaEvent::CompleteCwr);
        assert_eq!((tp.snd_cwnd, tp.snd_ssthresh), (18, 10));
    }

    #[test]
    fn the_window_stays_at_two_however_many_marks_come() {
        let (mut reno, mut tp) = avoiding(3);
        for _ in 0..100 {
            ack(&mut reno, &mut tp, 2, true);
        }
        assert_eq!(tp.snd_cwnd, 2);
    }

    #[test]
    fn in_2019_the_first_mark_ended_slow_start_and_marks_alone_led_down_to_two() {
        let (mut reno, mut tp) = version("reno-sce@2019", 66);
        tp.snd_ssthresh = crate::cc::sock::INFINITE_SSTHRESH;
        ack(&mut reno, &mut tp, 1, true);
        assert_eq!((tp.snd_cwnd, tp.snd_ssthresh), (66, 33));
        reno.cong_avoid(&mut tp, 10);
        assert_eq!(tp.snd_cwnd, 66);
        for _ in 0..1000 {
            ack(&mut reno, &mut tp, 1, true);
        }
        assert_eq!((tp.snd_cwnd, tp.snd_ssthresh), (2, 2));
    }

    #[test]
    fn by_rcv_mss_growth_and_marks_count_2_7_times() {
        // 100 unmarked packets of 1448 bytes in units of 536: 270 packets' worth, which two windows of 100 and 101 are
        let (mut reno, mut tp) = version("reno-sce mss rcv_mss", 100);
        for _ in 0..100 {
            ack(&mut reno, &mut tp, 1, false);
        }
        assert_eq!(tp.snd_cwnd, 102);
        // 4 marked ones take 4 * 10 * 2.70 = 108 packets' worth, of which 100 are one
        let (mut reno, mut tp) = version("reno-sce mss rcv_mss", 100);
        for n in 1..=4 {
            ack(&mut reno, &mut tp, 1, true);
            assert_eq!(tp.snd_cwnd, if n < 4 { 100 } else { 99 });
        }
    }

    #[test]
    fn pacing_is_asked_for_by_the_sysctl_or_the_word() {
        use crate::cc::sock::Pacing;
        for (text, sysctl, paced) in [
            ("reno-sce", false, Pacing::None),
            ("reno-sce", true, Pacing::Needed),
            ("reno-sce pacing off", true, Pacing::None),
            ("reno-sce pacing on", false, Pacing::Needed),
        ] {
            let (mut reno, mut tp) = version(text, 10);
            (tp.pacing, tp.sce_pacing) = (Pacing::None, sysctl);
            reno.init(&mut tp);
            assert_eq!(tp.pacing, paced, "{text} {sysctl}");
        }
    }
}
