//! What a sender does with an ACK, in the kernel's order (docs/models/tcp-sender.md): SACK tagging (`sack.rs`), cleaning the
//! retransmit queue, RTT, RACK, AccECN, the state machine, the rate sample, congestion control, sending.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_input.c` (`tcp_ack`, `tcp_clean_rtx_queue`, `tcp_cong_control`).

use super::ecn::Mode;
use super::rack::{Rack, sent_after};
use super::rate::Rate;
use super::recovery::Rexmit;
use super::scoreboard::{Seg, SegFlags};
use super::sender::Sender;
use crate::base::units::Time;
use crate::cc::sock::{CaState, TcpSock};
use crate::cc::{CongestionControl, RateSample};
use crate::packet::{Ecn, Flags, Packet};

/// What this ACK told so far (the kernel's FLAG_ bits and `tcp_sacktag_state`).
#[derive(Default)]
pub(super) struct AckState {
    pub una_advanced: bool,
    pub win_update: bool,
    pub data_acked: bool,
    pub retrans_data_acked: bool,
    pub data_sacked: bool,
    pub orig_sack_acked: bool,
    pub dsacking: bool,
    /// The D-SACK is about the tail loss probe.
    pub dsack_of_probe: bool,
    /// It is as far as the tail loss probe goes, which may not have been needed.
    pub acks_probe: bool,
    pub ece: bool,
    pub lost_retrans: bool,
    /// The echo of our stamps moved on (FLAG_TS_PROGRESS).
    ts_progress: bool,
    /// Payload bytes newly delivered.
    delivered_bytes: u64,
    pub set_xmit_timer: bool,
    /// Echoed timestamp: when the segment that this ACK answers was sent.
    pub echo: Time,
    pub prior_snd_una: u64,
    pub prior_in_flight: u32,
    prior_delivered: u64,
    prior_delivered_ce: u64,
    prior_lost: u64,
    /// Now, in whole microseconds.
    now_us: u64,
    /// Send times of newly SACKed segments, in microseconds.
    pub first_sacked_us: Option<u64>,
    pub last_sacked_us: Option<u64>,
    /// Send time and end of the most recently sent of the newly delivered segments.
    newest: Option<(Time, u64)>,
    /// That segment as it was sent.
    pub sampled: Option<Seg>,
    delayed: bool,
    /// The lowest segment that arrived after one sent later.
    pub lowest_reordered: Option<u64>,
}

impl Sender {
    /// An ACK arrived. Source: Linux 7.3 `tcp_ack`.
    pub fn on_ack(&mut self, packet: &Packet, now: Time, out: &mut Vec<Packet>) {
        self.turn(now);
        self.reconsider();
        self.last_rtt_us = None;
        let ts_progress = packet.sent.as_ms() > self.last_ack_sent.as_ms();
        self.last_ack_sent = self.last_ack_sent.max(packet.sent);
        if packet.ecn != self.previous_ecn || packet.ecn == Ecn::Ce {
            self.previous_ecn = packet.ecn;
            self.option.demand(2);
        }
        if packet.ack > self.tp.snd_nxt {
            return;
        }
        self.tp.rcv_tsval = packet.sent;
        self.tp.rcv_tsecr = packet.echo;
        let mut ack = AckState {
            prior_snd_una: self.tp.snd_una,
            prior_in_flight: self.tp.packets_in_flight(),
            prior_delivered: self.tp.delivered,
            prior_delivered_ce: self.tp.delivered_ce,
            prior_lost: self.tp.lost,
            echo: packet.echo,
            now_us: now.as_us(),
            ts_progress,
            ..AckState::default()
        };
        let old = packet.ack < self.tp.snd_una;
        let prior_highest_sacked = self.highest_sacked.max(self.tp.snd_una);
        if !old {
            self.update_window(packet, &mut ack);
        }
        self.tag_sacks(packet, &mut ack);
        if old {
            // Delayed on its way: what it SACKs is news, and there may be room for new data.
            if packet.n_sack > 0 {
                let rexmit = self.react(&mut ack, false);
                self.recover(rexmit, out);
            }
            self.send_new(out);
            return;
        }
        if self.setup.mode == Mode::Rfc3168 && packet.flags.has(Flags::ECE) {
            ack.ece = true;
        }
        let had_data = self.tp.packets_out > 0;
        let rtt_us = self.clean(packet.ack, prior_highest_sacked, &mut ack);
        if let Some(prior) = ack.prior_delivered_of_sample() {
            self.rack.update_window(prior, self.tp.delivered);
        }
        self.decode_ecn(packet, &mut ack);
        self.tp.esce = self.setup.mode == Mode::Rfc3168 && packet.flags.has(Flags::ESCE);
        self.tp.win_update = ack.win_update;
        self.cc.in_ack_event(&mut self.tp, ack.ece);
        if self.probe.is_out() {
            self.process_tlp_ack(packet.ack, &mut ack);
        }
        let mut rexmit = Rexmit::None;
        let dubious = !(ack.data_acked || ack.win_update)
            || ack.data_sacked
            || ack.ece
            || ack.dsacking
            || self.tp.ca_state != CaState::Open;
        if had_data && dubious {
            let duplicate = !(ack.una_advanced || ack.win_update || ack.dsacking);
            rexmit = self.react(&mut ack, duplicate);
        } else if ack.dsacking {
            self.react(&mut ack, false);
        }
        if ack.set_xmit_timer {
            self.set_xmit_timer();
        }
        if had_data && self.full_control {
            let sample = self.rate_sample(&ack, rtt_us);
            self.cc.cong_control(&mut self.tp, &sample);
        } else {
            // Less is asked for, and so worked out.
            let sample = self.rate_sample(&ack, rtt_us);
            if had_data {
                self.grow(&ack, sample.acked_sacked, sample.losses);
            } else {
                self.restart_window_probe();
            }
        }
        self.recover(rexmit, out);
        self.send_new(out);
    }

    /// Source: RFC 9293, section 3.10.7.4 (the window is news by sequence and acknowledgement); Linux 7.3
    /// `tcp_ack_update_window`.
    fn update_window(&mut self, packet: &Packet, ack: &mut AckState) {
        let window = u64::from(packet.window);
        if self.peer.is_news(self.tp.snd_una, packet.ack, window) && self.peer.offer(packet.ack, window) {
            ack.win_update = true;
            if !self.queue.is_empty() {
                self.restart_after_idle();
            }
        }
    }

    /// `tcp_clean_rtx_queue`: what is acknowledged leaves; returns the RTT of the newest segment.
    fn clean(&mut self, upto: u64, prior_highest_sacked: u64, ack: &mut AckState) -> Option<u64> {
        // When the first and the last were sent of those that were sent once, in microseconds.
        let mut acked_us = None;
        let mut reordered = u64::MAX;
        let (mut acked, mut heads) = (0, 0);
        let mut sampled = None;
        let tp = &mut self.tp;
        // Segments to which nothing happened since they were sent are taken together: the last of them was sent last.
        while let Some((run, first, last)) = self.board.alike(acked, upto) {
            let (flags, n) = (first.flags, run.segs as u32);
            tp.packets_out -= n;
            if flags.any(SegFlags::RETRANS) {
                tp.retrans_out -= n;
            }
            if flags.any(SegFlags::EVER_RETRANS) {
                ack.retrans_data_acked = true;
            } else if !flags.any(SegFlags::SACKED) {
                acked_us = Some((acked_us.map_or(first.sent_us, |(first_us, _)| first_us), last.sent_us));
                reordered = reordered.min(first.seq);
                if first.end <= tp.high_seq {
                    ack.orig_sack_acked = true;
                }
            }
            if flags.any(SegFlags::LOST) {
                tp.lost_out -= n;
            }
            acked += run.segs;
            heads += run.heads;
            if flags.any(SegFlags::SACKED) {
                tp.sacked_out -= n;
            } else {
                // Without SACK, duplicate ACKs may have told of it: counted below.
                let rack = if tp.no_sack { None } else { Some(&mut self.rack) };
                tp.delivered += if rack.is_some() { u64::from(n) } else { 0 };
                if ack.delivered(first.seq, last, tp, rack, &mut self.rate) {
                    sampled = Some(acked - 1);
                }
            }
        }
        if let Some(seg) = sampled.and_then(|index| self.board.get(index)) {
            ack.sampled = Some(*seg);
        }
        self.board.remove(acked, heads);
        let acked = acked as u32;
        let tp = &mut self.tp;
        if upto > tp.snd_una {
            tp.snd_una = upto;
            ack.una_advanced = true;
            self.retransmits = 0;
            self.highest_sacked = self.highest_sacked.max(upto);
        }
        let now = tp.now;
        let now_us = ack.now_us;
        let since = |us: u64| now_us.saturating_sub(us);
        let acked_us = acked_us.filter(|_| !ack.retrans_data_acked);
        let mut oldest = acked_us.map(|(first, _)| since(first));
        let mut newest = acked_us.map(|(_, last)| since(last));
        let sack_rtt = ack.first_sacked_us.map(since);
        if let Some(last) = ack.last_sacked_us {
            // What is newly SACKed was sent after what is acknowledged.
            newest = Some(since(last));
        }
        oldest = oldest.or(sack_rtt);
        if oldest.is_none() && acked > 0 && ack.echo > Time::ZERO {
            // Timestamps have a granularity of a millisecond.
            let us = ((now.as_ms() - ack.echo.as_ms()) * 1000).max(1000);
            oldest = Some(us);
            newest = Some(us);
        }
        // A lone runt of a packet: nothing made the receiver answer at once.
        ack.delayed = acked == 1
            && self.tp.snd_una - ack.prior_snd_una < u64::from(self.tp.mss)
            && ack.sampled.as_ref().is_some_and(|seg| seg.delivered + 1 == self.tp.delivered)
            && !(ack.data_sacked || ack.ece || ack.dsacking);
        if let Some(sample) = oldest {
            if !(ack.delayed && newest.unwrap_or(sample) > self.tp.min_rtt_us) {
                self.rtt.minimum(&mut self.tp, newest.unwrap_or(sample));
            }
            self.rtt.sample(&mut self.tp, sample);
        }
        self.last_rtt_us = newest;
        if acked > 0 {
            ack.data_acked = true;
            ack.set_xmit_timer = true;
            if self.tp.no_sack {
                self.remove_reno_sacks(acked);
                // Nobody knows whether an original made the progress.
                ack.orig_sack_acked &= !ack.retrans_data_acked;
            } else if reordered < prior_highest_sacked {
                self.note_reordering(reordered);
            }
        } else if let (Some(rtt), Some(head)) = (sack_rtt, self.board.front()) {
            // The SACKed data was sent after the head was last (re)transmitted: do not extend its timer.
            if rtt > since(head.sent_us) {
                ack.set_xmit_timer = true;
            }
        }
        let prior = ack.prior_delivered_of_sample().unwrap_or(0);
        self.tp.sample_delivered = (self.tp.delivered - prior) as u32;
        self.cc.pkts_acked(&mut self.tp, acked, newest);
        newest
    }

    fn decode_ecn(&mut self, packet: &Packet, ack: &mut AckState) {
        let delivered = (self.tp.delivered - ack.prior_delivered) as u32;
        match self.setup.mode {
            Mode::Off => {}
            Mode::Rfc3168 => {
                if ack.ece {
                    self.tp.delivered_ce += u64::from(delivered);
                }
            }
            Mode::AccEcn => {
                // A reordered ACK tells nothing.
                if !(ack.una_advanced || ack.data_acked || ack.data_sacked || ack.ts_progress) {
                    return;
                }
                let (tp, bytes) = (&self.tp, ack.delivered_bytes);
                let delta = self.ace.decode(packet, tp.delivered_ce, delivered, bytes, tp.mss);
                if delta > 0 {
                    self.tp.delivered_ce += u64::from(delta);
                    ack.ece = true;
                }
            }
        }
    }

    /// `tcp_rate_gen`
    #[expect(clippy::inline_always, reason = "who wants a part of it has the rest left out")]
    #[inline(always)]
    fn rate_sample(&mut self, ack: &AckState, rtt_us: Option<u64>) -> RateSample {
        let tp = &mut self.tp;
        let acked_sacked = (tp.delivered - ack.prior_delivered) as u32;
        if tp.app_limited > 0 && tp.delivered > tp.app_limited {
            tp.app_limited = 0;
        }
        let mut sample = RateSample {
            acked_sacked,
            delivered_ce: (tp.delivered_ce - ack.prior_delivered_ce) as u32,
            ece: ack.ece,
            losses: (tp.lost - ack.prior_lost) as u32,
            rtt_us,
            prior_in_flight: ack.prior_in_flight,
            is_ack_delayed: ack.delayed,
            acks_probe: ack.acks_probe,
            ..RateSample::default()
        };
        if let Some(seg) = &ack.sampled {
            self.rate.take(&mut sample, seg, tp, ack.now_us);
        }
        sample
    }

    /// `tcp_cong_control` of a module that does not replace it.
    fn grow(&mut self, ack: &AckState, acked_sacked: u32, losses: u32) {
        if matches!(self.tp.ca_state, CaState::Cwr | CaState::Recovery) {
            self.cwnd_reduction(acked_sacked, losses, ack.una_advanced);
        } else {
            let forward =
                if self.tp.reordering > 3 { ack.data_acked || ack.data_sacked } else { ack.data_acked };
            if forward && acked_sacked > 0 {
                self.cc.cong_avoid(&mut self.tp, acked_sacked);
                if self.tp.wants_cwr {
                    self.tp.wants_cwr = false;
                    self.enter_cwr();
                }
                self.cwnd_usage.window_changed(self.tp.now);
            }
        }
        self.tp.update_pacing_rate(self.setup.ss_ratio, self.setup.ca_ratio);
    }
}

impl AckState {
    /// What begins at `seq` and ends with `seg`, of which `seg` was sent last, is newly known to be delivered: RACK and the rate
    /// sample take note. Whether `seg` is the most recently sent segment so far: then the caller keeps it in `sampled`.
    #[inline]
    pub(super) fn delivered(
        &mut self,
        seq: u64,
        seg: &Seg,
        tp: &mut TcpSock,
        rack: Option<&mut Rack>,
        rate: &mut Rate,
    ) -> bool {
        self.delivered_bytes += seg.end - seq;
        let retransmitted = seg.flags.any(SegFlags::EVER_RETRANS);
        let age = self.now_us.saturating_sub(seg.sent_us);
        // The ACK of an original must not pass for that of its retransmission.
        if let Some(rack) = rack
            && !(retransmitted && age < tp.min_rtt_us)
        {
            rack.advance(seg.sent, seg.end, age);
        }
        tp.delivered_mstamp = tp.now;
        let newer = self.newest.is_none_or(|(sent, end)| sent_after(seg.sent, seg.end, sent, end));
        if newer {
            self.newest = Some((seg.sent, seg.end));
            rate.delivered(seg);
        }
        newer
    }

    /// `delivered` stored in the segment that made the rate sample, if any was delivered.
    pub(super) fn prior_delivered_of_sample(&self) -> Option<u64> {
        self.sampled.as_ref().map(|seg| seg.delivered)
    }
}

#[cfg(test)]
mod tests {
    use super::super::sender::tests::{ack, open, sacking};
    use super::*;
    use crate::cc::sock::INFINITE_SSTHRESH;

    #[test]
    fn an_ack_below_snd_una_still_makes_room_with_its_sacks() {
        let (mut s, mut out) = open(20);
        s.on_ack(&ack(4), Time::from_ms(200), &mut out);
        let before = s.sock().snd_nxt;
        s.on_ack(&sacking(3, &[(6, 8)]), Time::from_ms(201), &mut out);
        // Two segments left the network, two new ones may enter it.
        assert_eq!((s.sock().sacked_out, s.sock().snd_nxt - before), (2, 2000));
    }

    #[test]
    fn a_block_below_another_of_the_same_ack_is_not_reordered() {
        let (mut s, mut out) = open(20);
        s.on_ack(&sacking(0, &[(8, 9), (4, 5)]), Time::from_ms(200), &mut out);
        assert_eq!((s.sock().sacked_out, s.rack.reord_seen), (2, false));
        // what an earlier ACK reported above is
        s.on_ack(&sacking(0, &[(2, 3), (8, 9), (4, 5)]), Time::from_ms(201), &mut out);
        assert_eq!((s.sock().sacked_out, s.rack.reord_seen), (3, true));
    }

    #[test]
    fn the_newest_rtt_is_that_of_what_is_sacked() {
        let (mut s, mut out) = open(40);
        s.on_ack(&ack(4), Time::from_ms(200), &mut out);
        let sent = s.sock().snd_nxt / 1000;
        assert!(sent > 10, "more left at 200 ms");
        s.on_ack(&sacking(5, &[(sent - 1, sent)]), Time::from_ms(250), &mut out);
        assert_eq!(s.last_rtt_us, Some(50_000));
    }

    #[test]
    fn a_reduction_leaves_the_window_to_a_module_that_has_no_threshold() {
        for (ssthresh, cwnd) in [(INFINITE_SSTHRESH, 15), (11, 11)] {
            let (mut s, _) = open(20);
            (s.tp.snd_cwnd, s.tp.prior_cwnd, s.tp.snd_ssthresh) = (15, 20, ssthresh);
            // 10 are in flight
            s.cwnd_reduction(2, 0, true);
            assert_eq!(s.tp.snd_cwnd, cwnd);
        }
    }

    #[test]
    fn growth_that_asks_for_a_reduction_gets_one() {
        let (mut s, mut out) = open(20);
        s.tp.wants_cwr = true;
        s.on_ack(&ack(1), Time::from_ms(200), &mut out);
        // Slow start to 11 first, and then half of it.
        assert_eq!((s.sock().ca_state, s.sock().snd_ssthresh, s.sock().wants_cwr), (CaState::Cwr, 5, false));
    }

    #[test]
    fn a_module_reads_the_stamps_and_what_was_delivered_since_the_sample_was_sent() {
        let (mut s, mut out) = open(40);
        let stamps = Packet { sent: Time::from_ms(150), echo: Time::from_ms(100), ..ack(4) };
        s.on_ack(&stamps, Time::from_ms(200), &mut out);
        assert_eq!((s.sock().rcv_tsval, s.sock().rcv_tsecr), (Time::from_ms(150), Time::from_ms(100)));
        assert_eq!(s.sock().sample_delivered, 4);
        // The six others of the first window; then the first that was sent at 200 ms, when 4 were delivered.
        s.on_ack(&ack(10), Time::from_ms(210), &mut out);
        assert_eq!(s.sock().sample_delivered, 10);
        s.on_ack(&ack(11), Time::from_ms(300), &mut out);
        assert_eq!(s.sock().sample_delivered, 7);
    }

    #[test]
    fn a_window_that_closes_takes_its_right_edge_back() {
        let (mut s, mut out) = open(20);
        s.on_ack(&Packet { window: 0, ..ack(10) }, Time::from_ms(200), &mut out);
        assert_eq!((s.sock().snd_nxt, s.peer.end), (10_000, 10_000));
    }

    #[test]
    fn two_holes_in_one_ack_are_losses_and_no_reordering() {
        let (mut s, mut out) = open(20);
        s.on_ack(&ack(10), Time::from_ms(200), &mut out);
        // segments 12 and 16 are missing; the newest block comes first, as a receiver that compresses its ACKs sends it
        s.on_ack(&sacking(12, &[(17, 18), (13, 16)]), Time::from_ms(300), &mut out);
        assert!(!s.rack.reord_seen);
        assert_eq!((s.sock().lost_out, s.sock().ca_state), (2, CaState::Recovery));
    }

    #[test]
    fn racks_rtt_is_that_of_the_highest_segment_whatever_block_comes_first() {
        let (mut s, mut out) = open(20);
        s.on_ack(&ack(2), Time::from_ms(200), &mut out);
        // 8 and 9 were sent at 100 ms, 10 to 13 at 200 ms
        s.on_ack(&sacking(2, &[(11, 12), (8, 9)]), Time::from_ms(310), &mut out);
        assert_eq!(s.rack.rtt_us, 110_000);
    }

    #[test]
    fn a_rate_is_measured_between_stamps_of_whole_microseconds() {
        // 1.1 us and 3.0 us are stamped 1 and 3
        assert_eq!(Time(3_000).us_since(Time(1_100)), 2);
        let (mut s, mut out) = open(20);
        let at = Time::from_ms(200) + Time(900);
        s.on_ack(&ack(1), at, &mut out);
        // the next ACK's sample begins with this one: 1 packet, from 100 ms of sending to its stamp of 200 ms
        assert_eq!(s.rate.bits_per_s(1000), Some(8000.0 / 0.1));
        s.on_ack(&ack(2), at + Time(200), &mut out);
        // both ACKs are of segments sent at 100 ms; 200000.9 us and 200001.1 us
        assert_eq!(s.rate.bits_per_s(1000), Some(2.0 * 8000.0 * 1e6 / 100_001.0));
    }
}
