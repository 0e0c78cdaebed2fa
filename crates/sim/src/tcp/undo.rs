//! What it takes to undo a reduction that proves spurious: nothing was lost, only late or twice.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_input.c` (`tcp_init_undo`, `tcp_may_undo`, `tcp_check_dsack`); RFC 3522 (Eifel),
//! RFC 3708 (D-SACK).

use super::ack::AckState;
use super::scoreboard::SegFlags;
use super::sender::Sender;
use crate::base::units::Time;
use crate::cc::CongestionControl;
use crate::cc::sock::CaState;

/// The episode that may be undone.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// `snd_una` at its beginning, in bytes of the stream; none: undo is disabled.
    pub(super) marker: Option<u64>,
    /// Packets retransmitted that no D-SACK reported yet; -1 before the first.
    pub(super) retrans: i64,
    /// `ssthresh` in packets to go back to; 0: none (after ECE).
    pub(super) prior_ssthresh: u32,
    /// Packets reported by D-SACK since the connection began.
    dsacked: u64,
    /// When the first retransmission was sent.
    pub(super) retrans_stamp: Option<Time>,
}

impl Undo {
    /// An episode begins. Retransmissions of an earlier one may still be reported. Source: Linux 7.3 `tcp_init_undo`.
    pub(super) fn begin(&mut self, snd_una: u64, retrans_out: u32) {
        self.marker = Some(snd_una);
        self.retrans = if retrans_out > 0 { i64::from(retrans_out) } else { -1 };
    }

    /// So many packets are retransmitted now.
    pub(super) fn retransmitted(&mut self, packets: u32, now: Time) {
        self.retrans_stamp.get_or_insert(now);
        self.retrans = self.retrans.max(0) + i64::from(packets);
    }

    /// A D-SACK came for so many packets; false if there were more of them than retransmissions: the network made them.
    pub(super) fn duplicated(&mut self, packets: u64, retransmissions: u64) -> bool {
        self.dsacked += packets;
        self.dsacked <= retransmissions
    }

    /// It reports duplicates that end at `end`, sent when `snd_una` was `prior`.
    /// Source: RFC 3708; Linux 7.3 `tcp_check_dsack`.
    pub(super) fn reported(&mut self, packets: u64, end: u64, prior: u64) {
        let within = end <= prior && end > self.marker.unwrap_or(u64::MAX);
        if self.retrans > 0 && within {
            self.retrans = (self.retrans - packets as i64).max(0);
        }
    }

    /// Whether there is something to undo, and D-SACKs reported every retransmission.
    pub(super) fn all_were_needless(&self) -> bool {
        self.marker.is_some() && self.retrans == 0
    }

    /// Whether an ACK that echoes this stamp answers what was sent before the first retransmission (Eifel), or
    /// nothing was retransmitted yet. Stamps are in milliseconds.
    /// Source: RFC 3522, section 3.2; Linux 7.3 `tcp_packet_delayed`.
    pub(super) fn answers_original(&self, echo: Time) -> bool {
        self.retrans_stamp.is_none_or(|first| echo > Time::ZERO && echo.as_ms() < first.as_ms())
    }
}

impl Sender {
    /// Whether the ACK answers a segment sent before the first retransmission (Eifel by timestamps), or
    /// nothing was retransmitted yet. Source: RFC 3522, section 3.2; Linux 7.3 `tcp_packet_delayed`.
    fn packet_delayed(&self, ack: &AckState) -> bool {
        // Where the state is held the stamp was taken back although something was retransmitted.
        if self.tp.no_sack && self.undo.retrans_stamp.is_none() && self.tp.snd_una >= self.tp.high_seq {
            return false;
        }
        self.undo.answers_original(ack.echo)
    }

    /// Source: Linux 7.3 `tcp_may_undo`.
    fn may_undo(&self, ack: &AckState) -> bool {
        self.undo.marker.is_some() && (self.undo.retrans == 0 || self.packet_delayed(ack))
    }

    /// Source: Linux 7.3 `tcp_undo_cwnd_reduction`.
    fn undo_reduction(&mut self, unmark_loss: bool) {
        if unmark_loss {
            for seg in self.board.iter_mut() {
                seg.flags.clear(SegFlags::LOST);
            }
            self.tp.lost_out = 0;
            self.board.reset_hints();
        }
        if self.undo.prior_ssthresh > 0 {
            self.tp.snd_cwnd = self.cc.undo_cwnd(&mut self.tp);
            if self.undo.prior_ssthresh > self.tp.snd_ssthresh {
                self.tp.snd_ssthresh = self.undo.prior_ssthresh;
                self.queue_cwr = false;
            }
        }
        self.counters.undos += 1;
        self.cwnd_usage.window_changed(self.tp.now);
        self.undo.marker = None;
        // RACK looks at every segment again.
        self.rack.advanced = true;
    }

    /// `tcp_try_undo_recovery`: true if the state is held.
    pub(super) fn try_undo_recovery(&mut self, ack: &AckState) -> bool {
        if self.may_undo(ack) {
            self.undo_reduction(false);
        } else {
            self.rack.recovered();
        }
        let holds = self.holds_state();
        if !holds {
            self.set_state(CaState::Open);
        }
        holds
    }

    /// Source: Linux 7.3 `tcp_try_undo_dsack`.
    pub(super) fn try_undo_dsack(&mut self) -> bool {
        if self.undo.all_were_needless() {
            self.rack.was_needless();
            self.undo_reduction(false);
            return true;
        }
        false
    }

    /// `tcp_try_undo_partial`: a delayed original, not a retransmission, filled the hole.
    pub(super) fn try_undo_partial(&mut self, ack: &AckState) -> bool {
        if self.undo.marker.is_none() || !self.packet_delayed(ack) {
            return false;
        }
        self.note_reordering(ack.prior_snd_una);
        if self.tp.retrans_out > 0 {
            return true;
        }
        if !self.any_retrans_done() {
            self.undo.retrans_stamp = None;
        }
        self.undo_reduction(true);
        self.try_keep_open();
        true
    }

    /// Source: Linux 7.3 `tcp_try_undo_loss`.
    pub(super) fn try_undo_loss(&mut self, ack: &AckState, frto: bool) -> bool {
        if !(frto || self.may_undo(ack)) {
            return false;
        }
        self.undo_reduction(true);
        self.retransmits = 0;
        if !self.holds_state() && (frto || !self.tp.no_sack) {
            self.set_state(CaState::Open);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::sender::tests::{ack, dsacking, open, sacking};
    use super::*;

    const MS: fn(u64) -> Time = Time::from_ms;

    #[test]
    fn dsacks_of_all_retransmissions_take_the_reduction_back() {
        let (mut s, mut out) = open(10);
        for n in 2..5 {
            s.on_ack(&sacking(0, &[(1, n)]), MS(200), &mut out);
        }
        let reduced = s.sock().snd_ssthresh;
        s.on_ack(&ack(8), MS(210), &mut out);
        assert_eq!((reduced, s.counters.undos), (5, 0));
        s.on_ack(&dsacking(&sacking(8, &[(0, 1)])), MS(220), &mut out);
        // Reno halved 10 to 5; the one retransmission was not needed.
        assert_eq!(s.counters.undos, 1);
        assert!(s.sock().snd_cwnd >= 10, "{}", s.sock().snd_cwnd);
    }

    #[test]
    fn duplicates_that_nobody_retransmitted_are_not_believed() {
        let (mut s, mut out) = open(10);
        s.on_ack(&dsacking(&sacking(5, &[(0, 1)])), MS(200), &mut out);
        let delivered = s.sock().delivered;
        // The SYN and 5 segments; the duplicate is the network's.
        assert_eq!(delivered, 6);
        assert!(!s.rack.dsack_seen);
    }

    #[test]
    fn a_reduction_before_any_retransmission_is_taken_back_by_progress() {
        let (mut s, mut out) = open(10);
        s.undo.retrans_stamp = None;
        s.undo.marker = Some(0);
        s.undo.retrans = 1;
        s.on_ack(&ack(1), MS(200), &mut out);
        let mut answer = AckState::default();
        assert!(s.may_undo(&answer));
        s.undo.retrans_stamp = Some(MS(150));
        for (echo, undone) in [(150, false), (149, true)] {
            answer.echo = MS(echo);
            assert_eq!(s.may_undo(&answer), undone);
        }
    }
}
