//! The congestion state machine: what echoes and losses lead to, and how losses are found by time.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_input.c` (`tcp_fastretrans_alert` and what it calls), `tcp_recovery.c`; RFC 3168, section
//! 6.1.2, RFC 8985 (RACK), RFC 9937 (PRR). Timeouts are in `timeout.rs`, the tail loss probe in `tlp.rs`, and what takes a
//! reduction back in `undo.rs`.

use super::ack::AckState;
use super::ecn::Mode;
use super::prr::Prr;
use super::rack::sent_after;
use super::scoreboard::SegFlags;
use super::sender::{Sender, Timer};
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
                if self.tp.no_sack {
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
    pub(super) fn try_keep_open(&mut self) {
        let dubious = self.tp.sacked_out + self.tp.lost_out > 0 || self.any_retrans_done();
        let state = if dubious { CaState::Disorder } else { CaState::Open };
        if self.tp.ca_state != state {
            self.set_state(state);
            self.tp.high_seq = self.tp.snd_nxt;
        }
    }

    /// `tcp_enter_cwr`:
    /// one reduction per window of data, however many echoes tell of it (RFC 3168, section 6.1.2).
    pub(super) fn enter_cwr(&mut self) {
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
                self.undo.prior_ssthresh = self.tp.current_ssthresh();
            }
            self.init_reduction();
        }
        self.set_state(CaState::Recovery);
    }

    /// `tcp_init_cwnd_reduction`
    pub(super) fn init_reduction(&mut self) {
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

    pub(super) fn end_reduction(&mut self) {
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

    /// Source: Linux 7.3 `tcp_identify_packet_loss`.
    fn identify_loss(&mut self, ack: &mut AckState) {
        if self.tp.no_sack {
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

    /// `tcp_xmit_recovery`
    pub(super) fn recover(&mut self, rexmit: Rexmit, out: &mut Vec<Packet>) {
        match rexmit {
            Rexmit::None => {}
            Rexmit::Lost => self.retransmit_lost(out),
            Rexmit::New => {
                self.write_xmit(false, out);
                if self.tp.snd_nxt <= self.tp.high_seq {
                    self.frto = false;
                    self.retransmit_lost(out);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sender::tests::{ack, open, sacking};
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
}
