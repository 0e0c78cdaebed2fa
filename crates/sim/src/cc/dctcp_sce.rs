//! `dctcp-sce`: half of the bytes that SCE marks leave the window.
//!
//! Source: chromi/sce `net/ipv4/tcp_dctcp_sce.c` (09cf5620), described in docs/models/sce.md. Growth is Reno's; per round trip with a fraction f of
//! bytes marked the window W changes by (1 - f) - f W / 2. CE, loss, pacing and the sysctls as for `reno-sce`;
//! of what slow start leaves over a fifth counts as earned. CE follows RFC 3168, so ECN is asked for by
//! `net.ipv4.tcp_ecn` alone.
//!
//! `@2019`: an ESCE sets ssthresh to half of the window, as in `reno-sce@2019`. What else was different in November 2019 is not known; this much follows
//! from what was published: all packets marked took the window down to two, which they cannot where slow start goes on.
//!
//! Parameters: those of [`super::reno_sce`].
//!
//! Departures: those of [`super::sce`].
//!
//! Validation: the tests below, `tests/cc_hooks.rs` (any sequence of hooks).

use super::sce::{CePart, SceOptions, SceWindow, Tree};
use super::{CaEvent, CcEnv, CcError, CongestionControl};
use crate::cc::sock::TcpSock;
use bakeoff_document::cc::CcWords;

/// The module.
#[derive(Default)]
pub struct DctcpSce {
    pub(super) window: SceWindow,
}

impl DctcpSce {
    /// From the words after the name.
    pub fn parse(words: &mut CcWords, _: CcEnv) -> Result<Self, CcError> {
        let tree = if words.version() == Some("2019") { Tree::Of2019 } else { Tree::Later };
        Ok(DctcpSce { window: SceWindow::new(tree, CePart::AtTheEnd, SceOptions::parsed(words)?) })
    }
}

impl CongestionControl for DctcpSce {
    fn init(&mut self, tp: &mut TcpSock) {
        self.window.start(tp);
    }

    fn ssthresh(&mut self, tp: &mut TcpSock) -> u32 {
        self.window.ssthresh(tp)
    }

    fn cong_avoid(&mut self, tp: &mut TcpSock, acked: u32) {
        self.window.slow_start(tp, acked, 5);
    }

    fn in_ack_event(&mut self, tp: &mut TcpSock, ece: bool) {
        // in units of the window: half of the bytes are half a window's worth of count each
        self.window.on_ack(tp, ece, |acked, cwnd, _| acked * i64::from(cwnd) / 2);
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

    fn avoiding(cwnd: u32) -> (DctcpSce, TcpSock) {
        let mut tp = TcpSock::new(MSS as u32, 250);
        tp.snd_cwnd = cwnd;
        tp.snd_ssthresh = 2;
        tp.is_cwnd_limited = true;
        let mut dctcp = DctcpSce::default();
        dctcp.init(&mut tp);
        (dctcp, tp)
    }

    fn ack(dctcp: &mut DctcpSce, tp: &mut TcpSock, packets: u64, esce: bool) {
        tp.snd_una += packets * MSS;
        tp.esce = esce;
        dctcp.in_ack_event(tp, false);
    }

    #[test]
    fn two_marked_packets_take_one_from_the_window() {
        let (mut dctcp, mut tp) = avoiding(100);
        let windows = [1; 6].map(|n| {
            ack(&mut dctcp, &mut tp, n, true);
            tp.snd_cwnd
        });
        // in packets per packet of window: 50 + 50 of 100, 49.5 + 49.5 of 99, 49 + 49 of 98
        assert_eq!(windows, [100, 99, 99, 98, 98, 97]);
    }

    #[test]
    fn a_fraction_of_marks_settles_where_it_balances_growth() {
        // one packet in 26 marked: 25/26 = (1/26) W / 2 at W = 50
        let (mut dctcp, mut tp) = avoiding(20);
        for n in 0..100_000_u32 {
            ack(&mut dctcp, &mut tp, 1, n % 26 == 0);
        }
        assert!((49..=51).contains(&tp.snd_cwnd), "{}", tp.snd_cwnd);
    }

    #[test]
    fn a_fifth_of_what_slow_start_leaves_over_is_earned() {
        let (mut dctcp, mut tp) = avoiding(10);
        tp.snd_ssthresh = 12;
        dctcp.cong_avoid(&mut tp, 12);
        // 2 to the threshold, 10 left, of which 2 count
        assert_eq!((tp.snd_cwnd, dctcp.window.trace()[0].1), (12, 2.0 * MSS as f64));
    }

    #[test]
    fn all_packets_marked_from_the_start_end_in_a_window_of_two_in_2019_alone() {
        for (text, ends) in [("dctcp-sce", false), ("dctcp-sce@2019", true)] {
            let mut tp = TcpSock::new(MSS as u32, 250);
            tp.is_cwnd_limited = true;
            let Ok(mut dctcp) = DctcpSce::parse(&mut CcWords::new(text), CcEnv::default()) else {
                panic!("'{text}' was refused")
            };
            dctcp.init(&mut tp);
            // an ACK of two packets takes one from the window, and slow start adds two
            for _ in 0..100 {
                ack(&mut dctcp, &mut tp, 2, true);
                dctcp.cong_avoid(&mut tp, 2);
            }
            assert_eq!(tp.snd_cwnd == 2, ends, "{text}: {}", tp.snd_cwnd);
        }
    }

    #[test]
    fn an_rto_leaves_half() {
        let (mut dctcp, mut tp) = avoiding(40);
        dctcp.cwnd_event(&mut tp, CaEvent::Loss);
        assert_eq!(tp.snd_ssthresh, 20);
    }
}
