//! Recovery without SACK: duplicate ACKs are counted as if each were a SACK of one segment, nobody knows of which.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_input.c` (`tcp_add_reno_sack`, `tcp_remove_reno_sacks`, `tcp_check_reno_reordering`,
//! `tcp_is_non_sack_preventing_reopen`), `tcp_recovery.c` (`tcp_newreno_mark_lost`); RFC 6582 (NewReno), RFC 3042
//! (limited transmit, which follows from the smaller flight).
//!
//! Without SACK there is neither RACK nor a tail loss probe: the head is lost after `tcp_reordering` duplicates, and in
//! Recovery with each partial ACK; all else waits for the timeout.
//!
//! Validation: the tests below; the kernel's `tcp_limited_transmit_limited-transmit-no-sack.pkt`.

use super::ecn::Mode;
use super::scoreboard::SegFlags;
use super::sender::Sender;
use crate::cc::CongestionControl;
use crate::cc::sock::CaState;

/// `tcp_max_reordering`
const MAX_REORDERING: u32 = 300;

impl Sender {
    /// The peer does not do SACK.
    pub fn without_sack(&mut self) {
        self.tp.no_sack = true;
    }

    /// `tcp_limit_reno_sacked`: at least one segment, and all that are lost, did not arrive.
    fn limit_reno_sacked(&mut self) -> bool {
        let tp = &mut self.tp;
        let holes = tp.lost_out.max(1).min(tp.packets_out);
        let most = tp.packets_out - holes;
        let too_many = tp.sacked_out > most;
        tp.sacked_out = tp.sacked_out.min(most);
        too_many
    }

    /// `tcp_check_reno_reordering`: more duplicates than segments that can have arrived were reordering.
    fn check_reno_reordering(&mut self, addend: u32) {
        if self.limit_reno_sacked() {
            self.tp.reordering = (self.tp.packets_out + addend).min(MAX_REORDERING);
            self.rack.reord_seen = true;
        }
    }

    /// `tcp_add_reno_sack`, in states where a duplicate ACK tells that a segment left the network.
    pub(super) fn add_reno_sack(&mut self, duplicate: bool, ece: bool) {
        if !self.tp.no_sack || !duplicate {
            return;
        }
        let prior = self.tp.sacked_out;
        self.tp.sacked_out += 1;
        self.check_reno_reordering(0);
        let delivered = u64::from(self.tp.sacked_out.saturating_sub(prior));
        self.tp.delivered += delivered;
        if ece && self.setup.mode == Mode::Rfc3168 {
            self.tp.delivered_ce += delivered;
        }
    }

    /// `tcp_remove_reno_sacks`: one of the acknowledged segments filled the hole, the others were duplicates before.
    pub(super) fn remove_reno_sacks(&mut self, acked: u32) {
        if acked > 0 {
            let tp = &mut self.tp;
            tp.delivered += u64::from(acked.saturating_sub(tp.sacked_out).max(1));
            tp.sacked_out = tp.sacked_out.saturating_sub(acked - 1);
        }
        self.check_reno_reordering(acked);
    }

    /// `tcp_reset_reno_sack`
    pub(super) fn reset_reno_sack(&mut self) {
        if self.tp.no_sack {
            self.tp.sacked_out = 0;
        }
    }

    /// `tcp_newreno_mark_lost`
    pub(super) fn newreno_mark_lost(&mut self, una_advanced: bool) {
        let (state, tp) = (self.tp.ca_state, &mut self.tp);
        let enough = state < CaState::Recovery && tp.sacked_out >= tp.reordering;
        if !(enough || state == CaState::Recovery && una_advanced) {
            return;
        }
        let Some(head) = self.board.get_mut(0).filter(|head| !head.flags.any(SegFlags::LOST)) else { return };
        head.flags.set(SegFlags::LOST);
        tp.lost_out += 1;
        tp.lost += 1;
        let lost = head.as_lost(tp.lost);
        self.cc.marked_lost(tp, &lost);
        self.board.reset_hints();
    }

    /// `tcp_is_non_sack_preventing_reopen`: at the very end of an episode its duplicates may still come, and must not
    /// begin another (RFC 6582, section 4.1): the state is held until something beyond is acknowledged.
    pub(super) fn holds_state(&mut self) -> bool {
        let holds = self.tp.no_sack && self.tp.snd_una == self.tp.high_seq;
        if holds && !self.any_retrans_done() {
            self.undo.retrans_stamp = None;
        }
        holds
    }
}

#[cfg(test)]
mod tests {
    use super::super::sender::tests::{ack, open};
    use crate::base::units::Time;
    use crate::cc::sock::CaState;
    use crate::packet::Packet;
    use crate::tcp::sender::Sender;

    const MS: fn(u64) -> Time = Time::from_ms;

    /// A sender of ten segments in flight, and ten to come, whose peer has no SACK.
    fn open_without_sack() -> (Sender, Vec<Packet>) {
        let (mut s, mut out) = open(20);
        s.without_sack();
        out.clear();
        (s, out)
    }

    fn sent(out: &mut Vec<Packet>) -> Vec<u64> {
        out.drain(..).map(|p| p.seq / 1000).collect()
    }

    #[test]
    fn three_duplicates_retransmit_the_head_and_partial_acks_the_next_hole() {
        let (mut s, mut out) = open_without_sack();
        // Segments 0 and 4 of 10 are lost. Limited transmit: a new segment for each of the first two duplicates.
        for at in [200, 201] {
            s.on_ack(&ack(0), MS(at), &mut out);
        }
        assert_eq!((sent(&mut out), s.sock().ca_state), (vec![10, 11], CaState::Disorder));
        s.on_ack(&ack(0), MS(202), &mut out);
        assert_eq!((sent(&mut out), s.sock().ca_state), (vec![0], CaState::Recovery));
        assert_eq!((s.sock().snd_ssthresh, s.sock().sacked_out, s.sock().lost_out), (5, 3, 1));
        // 8 of the 10 arrived: 5 more duplicates. PRR sends ceil(delivered / 2) in all, the retransmission included:
        // 1, 2, 2, 3, 3 with delivered 2 to 6.
        for at in 203..208 {
            s.on_ack(&ack(0), MS(at), &mut out);
        }
        assert_eq!(sent(&mut out), [12, 13]);
        // The retransmission arrives: up to 4, which is the next hole (RFC 6582, section 3.2, step 3).
        s.on_ack(&ack(4), MS(300), &mut out);
        assert_eq!(sent(&mut out), [4]);
        // Everything that was out when recovery began: the state is held, for duplicates of these may still come ...
        s.on_ack(&ack(12), MS(400), &mut out);
        assert_eq!(s.sock().ca_state, CaState::Recovery);
        // ... until what lies beyond is acknowledged.
        s.on_ack(&ack(13), MS(410), &mut out);
        assert_eq!((s.sock().ca_state, s.sock().lost_out, s.sock().retrans_out), (CaState::Open, 0, 0));
    }

    #[test]
    fn delivered_counts_each_segment_once() {
        let (mut s, mut out) = open_without_sack();
        s.on_ack(&ack(0), MS(200), &mut out);
        s.on_ack(&ack(0), MS(201), &mut out);
        // The SYN, and two that duplicates told of.
        assert_eq!(s.sock().delivered, 3);
        // Three acknowledged: the head and the two.
        s.on_ack(&ack(3), MS(202), &mut out);
        assert_eq!((s.sock().delivered, s.sock().sacked_out, s.sock().ca_state), (4, 0, CaState::Open));
    }

    #[test]
    fn more_duplicates_than_segments_are_reordering() {
        let (mut s, mut out) = open(2);
        s.without_sack();
        for at in 200..203 {
            s.on_ack(&ack(0), MS(at), &mut out);
        }
        // Of two segments out, one at most has arrived while the other is missing.
        assert_eq!((s.sock().sacked_out, s.sock().reordering), (1, 2));
    }

    #[test]
    fn the_tail_waits_for_the_timeout() {
        let (mut s, mut out) = open(1);
        s.without_sack();
        s.on_ack(&ack(1), MS(200), &mut out);
        s.write(2000, MS(200), &mut out);
        // RTT 100 ms with the variance at its floor of 200 ms; a loss probe would come before.
        assert_eq!(s.deadline(), Some(MS(500)));
        s.on_timer(MS(500), &mut out);
        assert_eq!((s.counters.rtos, s.counters.tlps), (1, 0));
    }
}
