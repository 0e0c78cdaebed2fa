//! The retransmission timeout: what it takes for lost, and how a spurious one is found out (F-RTO).
//!
//! Source: Linux 7.3 `net/ipv4/tcp_timer.c` (`tcp_retransmit_timer`), `tcp_input.c` (`tcp_enter_loss`, `tcp_process_loss`);
//! RFC 6298, RFC 5682. The timeout itself is in `rtt.rs`, the timer in `timer.rs`.

use super::ack::AckState;
use super::ecn::Mode;
use super::recovery::Rexmit;
use super::scoreboard::SegFlags;
use super::sender::Sender;
use crate::cc::sock::CaState;
use crate::cc::{CaEvent, CongestionControl};
use crate::packet::Packet;

impl Sender {
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
            self.undo.prior_ssthresh = self.tp.current_ssthresh();
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
    pub(super) fn process_loss(&mut self, ack: &AckState, duplicate: bool) -> Rexmit {
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
                if !self.queue.is_empty() && self.peer.end > self.tp.snd_nxt {
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
}
