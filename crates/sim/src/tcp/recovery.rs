//! The congestion state machine: echoes, loss detection by RACK-TLP, PRR, timeouts, undo.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_input.c` (`tcp_fastretrans_alert` and below), `tcp_recovery.c`,
//! `tcp_timer.c`; RFC 8985 (RACK-TLP), RFC 9937 (PRR), RFC 5682 (F-RTO), RFC 2883 (undo by D-SACK).

use super::ack::AckState;
use super::ecn::Mode;
use super::prr::Prr;
use super::rack::sent_after;
use super::scoreboard::SegFlags;
use super::sender::{Sender, Timer, current_ssthresh};
use crate::base::units::Time;
use crate::cc::sock::{CaState, INFINITE_SSTHRESH};
use crate::cc::{CaEvent, CongestionControl};
use crate::packet::Packet;

/// `TCP_TIMEOUT_MIN_US`
pub(super) const TIMEOUT_MIN_US: u64 = 2_000;

/// What to send once congestion control has set the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rexmit {
    /// New data only.
    None,
    /// What is marked lost.
    Lost,
    /// New data first, to find out whether a timeout was spurious (F-RTO).
    New,
}

impl Sender {
    /// `tcp_fastretrans_alert`: state transitions before growth or PRR of the same ACK.
    pub(super) fn react(&mut self, ack: &mut AckState, duplicate: bool) -> Rexmit {
        if ack.ece {
            self.undo.prior_ssthresh = 0;
        }
        if self.tp.ca_state == CaState::Open {
            self.undo.retrans_stamp = None;
        } else if self.tp.snd_una >= self.tp.high_seq {
            match self.tp.ca_state {
                // Held until something above high_seq is acknowledged, so that CWR reached the peer.
                CaState::Cwr if self.tp.snd_una != self.tp.high_seq => {
                    self.end_reduction();
                    self.set_state(CaState::Open);
                }
                CaState::Recovery => {
                    self.reset_reno_sack();
                    if self.try_undo_recovery(ack) {
                        return Rexmit::None;
                    }
                    self.end_reduction_from(CaState::Recovery);
                }
                _ => {}
            }
        }
        match self.tp.ca_state {
            CaState::Recovery => {
                if !ack.una_advanced {
                    self.add_reno_sack(duplicate, ack.ece);
                } else if self.try_undo_partial(ack) {
                    return Rexmit::None;
                }
                if self.try_undo_dsack() {
                    self.try_to_open(ack);
                }
                self.identify_loss(ack);
                if self.tp.ca_state != CaState::Recovery {
                    if self.tp.lost_out == 0 {
                        return Rexmit::None;
                    }
                    self.enter_recovery(ack.ece);
                }
            }
            CaState::Loss => {
                let rexmit = self.process_loss(ack, duplicate);
                self.identify_loss(ack);
                if !(self.tp.ca_state == CaState::Open || ack.lost_retrans) {
                    return rexmit;
                }
                self.count_reno_sack(ack, duplicate);
                if self.no_sack {
                    self.identify_loss(ack);
                }
                if self.tp.lost_out == 0 {
                    self.try_to_open(ack);
                    return rexmit;
                }
                self.enter_recovery(ack.ece);
            }
            _ => {
                self.count_reno_sack(ack, duplicate);
                if self.tp.ca_state <= CaState::Disorder {
                    self.try_undo_dsack();
                }
                self.identify_loss(ack);
                if self.tp.lost_out == 0 {
                    self.try_to_open(ack);
                    return Rexmit::None;
                }
                self.enter_recovery(ack.ece);
            }
        }
        Rexmit::Lost
    }

    pub(super) fn set_state(&mut self, state: CaState) {
        self.cc.set_state(&mut self.tp, state);
        self.tp.ca_state = state;
    }

    /// Outside of a recovery, an ACK that goes on leaves no duplicates behind.
    fn count_reno_sack(&mut self, ack: &AckState, duplicate: bool) {
        if ack.una_advanced {
            self.reset_reno_sack();
        }
        self.add_reno_sack(duplicate, ack.ece);
    }

    pub(super) fn any_retrans_done(&self) -> bool {
        self.tp.retrans_out > 0 || self.board.front().is_some_and(|s| s.flags.any(SegFlags::EVER_RETRANS))
    }

    /// `tcp_try_to_open`
    fn try_to_open(&mut self, ack: &AckState) {
        if !self.any_retrans_done() {
            self.undo.retrans_stamp = None;
        }
        if ack.ece {
            self.enter_cwr();
        }
        if self.tp.ca_state != CaState::Cwr {
            self.try_keep_open();
        }
    }

    /// Source: Linux 7.3 `tcp_try_keep_open`.
    fn try_keep_open(&mut self) {
        let dubious = self.tp.sacked_out + self.tp.lost_out > 0 || self.any_retrans_done();
        let state = if dubious { CaState::Disorder } else { CaState::Open };
        if self.tp.ca_state != state {
            self.set_state(state);
            self.tp.high_seq = self.tp.snd_nxt;
        }
    }

    /// `tcp_enter_cwr`:
    /// one reduction per window of data, however many echoes tell of it (RFC 3168, section 6.1.2).
    fn enter_cwr(&mut self) {
        self.undo.prior_ssthresh = 0;
        if self.tp.ca_state < CaState::Cwr {
            self.undo.marker = None;
            self.init_reduction();
            self.set_state(CaState::Cwr);
        }
    }

    /// `tcp_enter_recovery`
    fn enter_recovery(&mut self, ece: bool) {
        // The clock of undo starts with this episode's first retransmission.
        if !self.any_retrans_done() {
            self.undo.retrans_stamp = None;
        }
        self.undo.prior_ssthresh = 0;
        self.undo.begin(self.tp.snd_una, self.tp.retrans_out);
        if !matches!(self.tp.ca_state, CaState::Cwr | CaState::Recovery) {
            if !ece {
                self.undo.prior_ssthresh = current_ssthresh(&self.tp);
            }
            self.init_reduction();
        }
        self.set_state(CaState::Recovery);
    }

    /// `tcp_init_cwnd_reduction`
    fn init_reduction(&mut self) {
        self.tp.high_seq = self.tp.snd_nxt;
        self.probe.forget();
        self.tp.snd_cwnd_cnt = 0;
        self.tp.prior_cwnd = self.tp.snd_cwnd;
        self.prr = Prr::default();
        self.tp.snd_ssthresh = self.cc.ssthresh(&mut self.tp);
        self.queue_cwr = self.setup.mode == Mode::Rfc3168;
    }

    /// `tcp_cwnd_reduction`: PRR (RFC 9937).
    pub(super) fn cwnd_reduction(&mut self, newly_acked_sacked: u32, newly_lost: u32, una_advanced: bool) {
        // Only SCE's modules enter a reduction without a threshold: the window is theirs until they have one.
        if newly_acked_sacked == 0 || self.tp.prior_cwnd == 0 || self.tp.snd_ssthresh == INFINITE_SSTHRESH {
            return;
        }
        self.tp.snd_cwnd = self.prr.cwnd(&self.tp, newly_acked_sacked, newly_lost, una_advanced);
    }

    fn end_reduction(&mut self) {
        self.end_reduction_from(self.tp.ca_state);
    }

    /// `tcp_end_cwnd_reduction`, told the state that ends (undo may have left it already).
    fn end_reduction_from(&mut self, state: CaState) {
        if self.full_control {
            return;
        }
        if self.tp.snd_ssthresh < INFINITE_SSTHRESH && (state == CaState::Cwr || self.undo.marker.is_some()) {
            self.tp.snd_cwnd = self.tp.snd_ssthresh;
            self.cwnd_usage.window_changed(self.tp.now);
        }
        self.cc.cwnd_event(&mut self.tp, CaEvent::CompleteCwr);
    }

    // ---- loss detection -------------------------------------------------------------------------

    /// Source: Linux 7.3 `tcp_identify_packet_loss`.
    fn identify_loss(&mut self, ack: &mut AckState) {
        if self.no_sack {
            return self.newreno_mark_lost(ack.una_advanced);
        }
        let before = self.tp.retrans_out;
        if self.rack.advanced && !self.board.is_empty() {
            self.rack.advanced = false;
            if let Some(wait) = self.rack_detect() {
                self.start_reorder_timer(wait);
                ack.set_xmit_timer = false;
            }
        }
        if before > self.tp.retrans_out {
            ack.lost_retrans = true;
        }
    }

    /// Source: RFC 8985, section 6.2, step 5; Linux 7.3 `tcp_rack_detect_loss`.
    fn rack_detect(&mut self) -> Option<Time> {
        let wait_us = self.rack.rtt_us + self.rack.window_us(&self.tp);
        let (mstamp, end_seq) = (self.rack.mstamp, self.rack.end_seq);
        let (tp, cc) = (&mut self.tp, &mut self.cc);
        self.board.rack_walk(
            |sent, end| sent_after(mstamp, end_seq, sent, end),
            |seg| {
                let age_us = tp.now.us_since(seg.sent);
                if wait_us > age_us {
                    return Some(Time::from_us(wait_us - age_us));
                }
                if seg.flags.any(SegFlags::RETRANS) {
                    seg.flags.clear(SegFlags::RETRANS);
                    tp.retrans_out -= 1;
                }
                if !seg.flags.any(SegFlags::LOST) {
                    seg.flags.set(SegFlags::LOST);
                    tp.lost_out += 1;
                }
                tp.lost += 1;
                cc.marked_lost(tp, &seg.as_lost(tp.lost));
                None
            },
        )
    }

    /// Source: RFC 8985, section 6.2, step 5; Linux 7.3 `tcp_rack_mark_lost`.
    fn start_reorder_timer(&mut self, wait: Time) {
        self.set_timer(Timer::Reorder, wait.as_us() + TIMEOUT_MIN_US);
    }

    /// `tcp_rack_reo_timeout`
    pub(super) fn on_reorder_timeout(&mut self, out: &mut Vec<Packet>) {
        let before = self.tp.packets_in_flight();
        if let Some(wait) = self.rack_detect() {
            self.start_reorder_timer(wait);
        }
        if before != self.tp.packets_in_flight() {
            if self.tp.ca_state != CaState::Recovery {
                self.enter_recovery(false);
                if !self.full_control {
                    self.cwnd_reduction(1, 0, false);
                }
            }
            self.retransmit_lost(out);
        }
        if self.timer.is_none() {
            self.rearm_rto();
        }
        self.send_new(out);
    }

    // ---- timeouts -------------------------------------------------------------------------------

    /// `tcp_send_loss_probe`:
    /// new data if there is any, else the last segment again (RFC 8985, section 7.3).
    pub(super) fn send_loss_probe(&mut self, out: &mut Vec<Packet>) {
        if !self.probe.is_out() && self.tp.packets_out > 0 {
            let new = self.send_probe_segment(out);
            if !new {
                let last = self.board.len() - 1;
                self.retransmit_one(last, out);
            }
            self.counters.tlps += 1;
            self.probe.sent(self.tp.snd_nxt, !new);
        }
        self.timer = None;
        self.rearm_rto();
    }

    /// `tcp_process_tlp_ack` (RFC 8985, section 7.4)
    pub(super) fn process_tlp_ack(&mut self, upto: u64, ack: &AckState) {
        let bare = !(ack.una_advanced || ack.win_update || ack.data_sacked);
        if self.probe.on_ack(upto, ack.dsack_of_probe, bare) {
            self.init_reduction();
            self.set_state(CaState::Cwr);
            self.end_reduction();
            self.try_keep_open();
        }
    }

    /// `tcp_retransmit_timer`:
    /// the oldest segment is sent again, and the timeout doubles (RFC 6298, section 5, rules 5.4 and 5.5).
    pub(super) fn on_rto(&mut self, out: &mut Vec<Packet>) {
        if self.tp.packets_out == 0 {
            return;
        }
        self.counters.rtos += 1;
        self.enter_loss();
        self.retransmits += 1;
        self.retransmit_one(0, out);
        self.rtt.back_off();
        self.timer = None;
        self.rearm_rto();
    }

    /// `tcp_enter_loss`:
    /// what was sent a round trip before is lost (RFC 8985, section 6.3); the threshold is set once per episode.
    fn enter_loss(&mut self) {
        let new_recovery = self.tp.ca_state < CaState::Recovery;
        self.reset_reno_sack();
        let (rtt_us, now) = (self.rack.rtt_us, self.tp.now);
        let (tp, cc) = (&mut self.tp, &mut self.cc);
        for (i, seg) in self.board.iter_mut().enumerate() {
            if seg.flags.any(SegFlags::SACKED) {
                continue;
            }
            // What was sent within the last RTT may still arrive.
            if i > 0 && rtt_us > now.us_since(seg.sent) {
                continue;
            }
            if seg.flags.any(SegFlags::RETRANS) {
                seg.flags.clear(SegFlags::RETRANS);
                tp.retrans_out -= 1;
                tp.lost += 1;
                cc.marked_lost(tp, &seg.as_lost(tp.lost));
            }
            if !seg.flags.any(SegFlags::LOST) {
                seg.flags.set(SegFlags::LOST);
                tp.lost_out += 1;
                tp.lost += 1;
                cc.marked_lost(tp, &seg.as_lost(tp.lost));
            }
        }
        self.board.reset_hints();
        let state = self.tp.ca_state;
        if state <= CaState::Disorder
            || self.tp.high_seq <= self.tp.snd_una
            || (state == CaState::Loss && self.retransmits == 0)
        {
            self.undo.prior_ssthresh = current_ssthresh(&self.tp);
            self.tp.prior_cwnd = self.tp.snd_cwnd;
            self.tp.snd_ssthresh = self.cc.ssthresh(&mut self.tp);
            self.cc.cwnd_event(&mut self.tp, CaEvent::Loss);
            self.undo.begin(self.tp.snd_una, self.tp.retrans_out);
        }
        self.tp.snd_cwnd = self.tp.packets_in_flight() + 1;
        self.tp.snd_cwnd_cnt = 0;
        self.cwnd_usage.window_changed(now);
        if state <= CaState::Disorder && self.tp.sacked_out >= self.tp.reordering {
            self.tp.reordering = self.tp.reordering.min(3);
        }
        self.set_state(CaState::Loss);
        self.tp.high_seq = self.tp.snd_nxt;
        self.probe.forget();
        self.queue_cwr = self.setup.mode == Mode::Rfc3168;
        self.frto = new_recovery || self.retransmits > 0;
    }

    /// `tcp_process_loss`: F-RTO (RFC 5682, section 3.1).
    fn process_loss(&mut self, ack: &AckState, duplicate: bool) -> Rexmit {
        let recovered = self.tp.snd_una >= self.tp.high_seq;
        if ack.una_advanced && self.try_undo_loss(ack, false) {
            return Rexmit::None;
        }
        if self.frto {
            // Step 3.b: what was never retransmitted arrived, so not all was lost.
            if ack.orig_sack_acked && self.try_undo_loss(ack, true) {
                return Rexmit::None;
            }
            if self.tp.snd_nxt > self.tp.high_seq {
                if ack.data_sacked || duplicate {
                    self.frto = false;
                }
            } else if ack.una_advanced && !recovered {
                self.tp.high_seq = self.tp.snd_nxt;
                // Step 2.b: try new data.
                if self.write_seq > self.tp.snd_nxt && self.peer.end > self.tp.snd_nxt {
                    return Rexmit::New;
                }
                self.frto = false;
            }
        }
        if recovered {
            self.try_undo_recovery(ack);
            return Rexmit::None;
        }
        // A duplicate tells that the new data of F-RTO's step 2.b arrived.
        if self.tp.snd_nxt > self.tp.high_seq && duplicate {
            self.add_reno_sack(duplicate, ack.ece);
        } else if ack.una_advanced {
            self.reset_reno_sack();
        }
        Rexmit::Lost
    }

    /// `tcp_xmit_recovery`
    pub(super) fn recover(&mut self, rexmit: Rexmit, out: &mut Vec<Packet>) {
        match rexmit {
            Rexmit::None => {}
            Rexmit::Lost => self.retransmit_lost(out),
            Rexmit::New => {
                self.send_new(out);
                if self.tp.snd_nxt <= self.tp.high_seq {
                    self.frto = false;
                    self.retransmit_lost(out);
                }
            }
        }
    }

    // ---- undo -----------------------------------------------------------------------------------

    /// Whether the ACK answers a segment sent before the first retransmission (Eifel by timestamps), or
    /// nothing was retransmitted yet. Source: RFC 3522, section 3.2; Linux 7.3 `tcp_packet_delayed`.
    fn packet_delayed(&self, ack: &AckState) -> bool {
        // Where the state is held the stamp was taken back although something was retransmitted.
        if self.no_sack && self.undo.retrans_stamp.is_none() && self.tp.snd_una >= self.tp.high_seq {
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
    fn try_undo_recovery(&mut self, ack: &AckState) -> bool {
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
    fn try_undo_dsack(&mut self) -> bool {
        if self.undo.all_were_needless() {
            self.rack.was_needless();
            self.undo_reduction(false);
            return true;
        }
        false
    }

    /// `tcp_try_undo_partial`: a delayed original, not a retransmission, filled the hole.
    fn try_undo_partial(&mut self, ack: &AckState) -> bool {
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
    fn try_undo_loss(&mut self, ack: &AckState, frto: bool) -> bool {
        if !(frto || self.may_undo(ack)) {
            return false;
        }
        self.undo_reduction(true);
        self.retransmits = 0;
        if !self.holds_state() && (frto || !self.no_sack) {
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
    fn recovery_without_undo_ends_in_open() {
        let (mut s, mut out) = open(10);
        for n in 2..5 {
            s.on_ack(&sacking(0, &[(1, n)]), MS(200), &mut out);
        }
        assert_eq!(s.sock().ca_state, CaState::Recovery);
        s.on_ack(&ack(10), MS(300), &mut out);
        // Nothing is out and nothing was retransmitted of what is out.
        assert_eq!(s.sock().ca_state, CaState::Open);
    }

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
    fn a_dsack_of_the_loss_probe_neither_reduces_nor_widens_the_reordering_window() {
        let (mut s, mut out) = open(2);
        s.rack.reord_seen = true;
        let at = s.timer_at().unwrap();
        assert_eq!(s.timer.unwrap().0, Timer::LossProbe);
        s.on_timer(at, &mut out);
        assert_eq!(s.counters.tlps, 1);
        s.on_ack(&ack(2), at + MS(10), &mut out);
        s.on_ack(&dsacking(&sacking(2, &[(1, 2)])), at + MS(20), &mut out);
        assert_eq!((s.sock().snd_ssthresh, s.rack.dsack_seen), (INFINITE_SSTHRESH, false));
        assert!(!s.probe.is_out());
    }

    #[test]
    fn racks_timer_waits_for_whole_jiffies_and_the_tick_that_follows() {
        let (mut s, mut out) = open(10);
        s.rack.reord_seen = true;
        let at = MS(200) + Time::from_us(300);
        s.on_ack(&sacking(0, &[(1, 2)]), at, &mut out);
        // min_rtt / 4 = 25 ms and 2 ms: 27 jiffies from 200.3 ms end in 227.3 ms
        assert_eq!((s.timer.unwrap().0, s.timer_at()), (Timer::Reorder, Some(MS(228))));
        // 27.3 ms are 28 jiffies
        s.tp.now = at;
        s.set_timer(Timer::Reorder, 27_300);
        assert_eq!(s.timer_at(), Some(MS(229)));
    }

    #[test]
    fn an_ack_that_goes_on_leaves_racks_timer_alone() {
        let (mut s, mut out) = open(10);
        s.rack.reord_seen = true;
        // segments 0 and 1 arrived, 2 did not, 3 did: neither a loss probe nor the RTO takes the place of RACK's wait
        s.on_ack(&sacking(2, &[(3, 4)]), MS(200), &mut out);
        assert_eq!((s.timer.unwrap().0, s.timer_at()), (Timer::Reorder, Some(MS(227))));
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
