//! The tail loss probe that is out: what its acknowledgement tells.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_output.c` (`tcp_send_loss_probe`), `tcp_input.c` (`tcp_process_tlp_ack`); RFC 8985,
//! section 7.4.

use super::ack::AckState;
use super::scoreboard::SegFlags;
use super::sender::Sender;
use crate::cc::CongestionControl;
use crate::cc::sock::CaState;
use crate::packet::Packet;

/// The probe, if one is out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossProbe {
    /// `snd_nxt` in bytes when it was sent (`tlp_high_seq`).
    high_seq: Option<u64>,
    /// Whether it was a retransmission, not new data.
    retransmission: bool,
    /// Whether what it repeats was sent while the application was the limit (`tlp_orig_data_app_limited` of Google's kernel).
    is_app_limited: bool,
}

impl LossProbe {
    /// One was sent.
    pub(super) fn sent(&mut self, snd_nxt: u64, retransmission: bool, is_app_limited: bool) {
        *self = LossProbe { high_seq: Some(snd_nxt), retransmission, is_app_limited };
    }

    /// Whether one is out.
    pub(super) fn is_out(&self) -> bool {
        self.high_seq.is_some()
    }

    /// Whether it ends at `end`.
    pub(super) fn ends_at(&self, end: u64) -> bool {
        self.high_seq == Some(end)
    }

    /// It counts no more.
    pub(super) fn forget(&mut self) {
        self.high_seq = None;
    }

    /// An ACK up to `upto`; `dsack` if it reports the probe as a duplicate, `bare` if it tells nothing new. True if
    /// the probe repaired a loss, which is one reduction, as for an echo.
    /// Source: RFC 8985, sections 7.4.1 and 7.4.2; Linux 7.3 `tcp_process_tlp_ack`.
    pub(super) fn on_ack(&mut self, upto: u64, dsack: bool, bare: bool) -> bool {
        let Some(high) = self.high_seq.filter(|high| upto >= *high) else { return false };
        let needless = !self.retransmission || dsack;
        let repaired = !needless && upto > high;
        if needless || repaired || bare {
            self.high_seq = None;
        }
        repaired
    }
}

impl Sender {
    /// `tcp_send_loss_probe`:
    /// new data if there is any, else the last segment again (RFC 8985, section 7.3).
    pub(super) fn send_loss_probe(&mut self, out: &mut Vec<Packet>) {
        if !self.probe.is_out() && self.tp.packets_out > 0 {
            let new = self.send_probe_segment(out);
            let last = self.board.len() - 1;
            let is_app_limited =
                self.board.get_mut(last).is_some_and(|seg| seg.flags.any(SegFlags::APP_LIMITED));
            if !new {
                self.retransmit_one(last, out);
            }
            self.counters.tlps += 1;
            self.probe.sent(self.tp.snd_nxt, !new, is_app_limited);
        }
        self.timer = None;
        self.rearm_rto();
    }

    /// `tcp_process_tlp_ack` (RFC 8985, section 7.4)
    pub(super) fn process_tlp_ack(&mut self, upto: u64, ack: &mut AckState) {
        let bare = !(ack.una_advanced || ack.win_update || ack.data_sacked);
        let repaired = self.probe.on_ack(upto, ack.dsack_of_probe, bare);
        ack.acks_probe = self.probe.ends_at(upto);
        if repaired {
            self.cc.probe_repaired(&mut self.tp, self.probe.is_app_limited);
            self.init_reduction();
            self.set_state(CaState::Cwr);
            self.end_reduction();
            self.try_keep_open();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sender::Timer;
    use super::super::sender::tests::{ack, dsacking, open, sacking};
    use super::*;
    use crate::base::units::Time;
    use crate::cc::sock::{INFINITE_SSTHRESH, TcpSock};
    use crate::cc::{Cc, RateSample};

    #[test]
    fn a_retransmitted_probe_repaired_a_loss_if_more_than_it_is_acknowledged() {
        let out = |retransmission| {
            let mut probe = LossProbe::default();
            probe.sent(5000, retransmission, false);
            probe
        };
        assert!(out(true).on_ack(6000, false, false));
        // new data, a D-SACK, and an ACK of what was there before
        assert!(!out(false).on_ack(6000, false, false));
        assert!(!out(true).on_ack(6000, true, false));
        assert!(!out(true).on_ack(4000, false, false));
    }

    #[test]
    fn a_probe_is_over_when_a_bare_ack_repeats_its_end() {
        let mut probe = LossProbe::default();
        probe.sent(5000, true, false);
        assert!(!probe.on_ack(5000, false, false) && probe.is_out());
        assert!(!probe.on_ack(5000, false, true) && !probe.is_out());
    }

    #[test]
    fn a_dsack_of_the_loss_probe_neither_reduces_nor_widens_the_reordering_window() {
        let (mut s, mut out) = open(2);
        s.rack.reord_seen = true;
        let at = s.timer_at().unwrap();
        assert_eq!(s.timer.unwrap().0, Timer::LossProbe);
        s.on_timer(at, &mut out);
        assert_eq!(s.counters.tlps, 1);
        s.on_ack(&ack(2), at + Time::from_ms(10), &mut out);
        s.on_ack(&dsacking(&sacking(2, &[(1, 2)])), at + Time::from_ms(20), &mut out);
        assert_eq!((s.sock().snd_ssthresh, s.rack.dsack_seen), (INFINITE_SSTHRESH, false));
        assert!(!s.probe.is_out());
    }

    /// Counts what it is told of probes.
    #[derive(Default)]
    struct Told(u32, u32);

    impl CongestionControl for Told {
        fn ssthresh(&mut self, _tp: &mut TcpSock) -> u32 {
            10
        }
        fn has_cong_control(&self) -> bool {
            true
        }
        fn cong_control(&mut self, _tp: &mut TcpSock, sample: &RateSample) {
            self.1 += u32::from(sample.acks_probe);
        }
        fn probe_repaired(&mut self, _tp: &mut TcpSock, _is_app_limited: bool) {
            self.0 += 1;
        }
        fn trace(&self) -> Vec<(&'static str, f64)> {
            vec![("repaired", self.0.into()), ("acks", self.1.into())]
        }
    }

    #[test]
    fn a_module_is_told_of_a_loss_that_a_probe_repaired_and_of_the_ack_that_leaves_it_open() {
        let (mut s, mut out) = open(2);
        (s.cc, s.full_control) = (Cc::User(Box::new(Told::default())), true);
        let at = s.timer_at().unwrap();
        s.on_timer(at, &mut out);
        // As far as the probe: of it or of what it repeats, nobody can tell.
        s.on_ack(&ack(2), at + Time::from_ms(10), &mut out);
        assert_eq!(s.cc.trace(), [("repaired", 0.0), ("acks", 1.0)]);
        // Beyond it, and no D-SACK: the original was lost.
        s.write(3000, at + Time::from_ms(20), &mut out);
        s.on_ack(&ack(3), at + Time::from_ms(120), &mut out);
        assert_eq!(s.cc.trace(), [("repaired", 1.0), ("acks", 1.0)]);
    }
}
