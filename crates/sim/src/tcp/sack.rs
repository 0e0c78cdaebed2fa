//! What SACK blocks say: which segments arrived, that some were overtaken, and that some came twice (D-SACK).
//!
//! Source: Linux 7.3 `net/ipv4/tcp_input.c` (`tcp_sacktag_write_queue`, `tcp_check_dsack`, `tcp_check_sack_reordering`);
//! RFC 2018, RFC 2883.

use super::ack::AckState;
use super::scoreboard::SegFlags;
use super::sender::Sender;
use crate::packet::{Flags, Packet};

/// Reordering degrees beyond this are not believed (`tcp_max_reordering`).
const MAX_REORDERING: u32 = 300;

impl Sender {
    /// `tcp_sacktag_write_queue`
    #[inline]
    pub(super) fn tag_sacks(&mut self, packet: &Packet, ack: &mut AckState) {
        if packet.n_sack == 0 {
            self.sack_cache = [(0, 0); 3];
        } else {
            self.tag_blocks(packet, ack);
        }
    }

    #[inline(never)]
    fn tag_blocks(&mut self, packet: &Packet, ack: &mut AckState) {
        let absolute = |offset: i32| packet.ack.wrapping_add_signed(i64::from(offset));
        let mut cache = [(0, 0); 3];
        for (i, block) in packet.sack.iter().take(usize::from(packet.n_sack)).enumerate() {
            let (start, end) = (absolute(block.start), absolute(block.end));
            if i == 0 && packet.flags.has(Flags::DSACK) {
                self.note_dsack(start, end, ack);
            } else {
                cache[i] = (start, end);
            }
        }
        // In order: what is below a block of the same ACK was not overtaken for that, and RACK's RTT is that of the highest segment.
        cache.sort_unstable();
        for (start, end) in cache {
            if start == end || self.tp.packets_out == 0 {
                continue;
            }
            match self.sack_cache.iter().find(|(s, e)| *s < *e && *s >= start && *e <= end) {
                Some(&(s, e)) => {
                    self.tag_range(start, s, ack);
                    self.tag_range(e, end, ack);
                }
                None => self.tag_range(start, end, ack),
            }
        }
        self.sack_cache = cache;
        if let Some(low) = ack.lowest_reordered {
            self.note_reordering(low);
        }
    }

    /// `tcp_check_dsack`, `tcp_dsack_seen`
    fn note_dsack(&mut self, start: u64, end: u64, ack: &mut AckState) {
        let segments = (end - start).div_ceil(u64::from(self.tp.mss));
        if !self.undo.duplicated(segments, self.counters.retransmits) {
            return;
        }
        ack.dsacking = true;
        ack.dsack_of_probe = segments == 1 && self.probe.ends_at(end);
        // The reordering window was not to blame if nothing was ever reordered, or a timer sent the probe.
        if self.rack.reord_seen && !ack.dsack_of_probe {
            self.rack.dsack_seen = true;
        }
        self.tp.delivered += segments;
        self.undo.reported(segments, end, ack.prior_snd_una);
    }

    /// Source: Linux 7.3 `tcp_sacktag_walk`, `tcp_sacktag_one`; RFC 2018, section 5.
    fn tag_range(&mut self, start: u64, end: u64, ack: &mut AckState) {
        let mut index = self.board.index_of(start);
        while let Some(seg) = self.board.get_mut(index) {
            if seg.end > end {
                break;
            }
            index += 1;
            if seg.seq < start || seg.flags.any(SegFlags::SACKED) {
                continue;
            }
            let retransmitted = seg.flags.any(SegFlags::EVER_RETRANS);
            if seg.flags.any(SegFlags::RETRANS) {
                // Either copy may be the one that arrived; both leave the pipe.
                seg.flags.clear(SegFlags::RETRANS);
                self.tp.retrans_out -= 1;
            } else if !retransmitted {
                if seg.seq < self.highest_sacked {
                    ack.lowest_reordered = Some(ack.lowest_reordered.map_or(seg.seq, |low| low.min(seg.seq)));
                }
                if seg.end <= self.tp.high_seq {
                    ack.orig_sack_acked = true;
                }
                ack.first_sacked_us.get_or_insert(seg.sent_us);
                ack.last_sacked_us = Some(seg.sent_us);
            }
            if seg.flags.any(SegFlags::LOST) {
                seg.flags.clear(SegFlags::LOST);
                self.tp.lost_out -= 1;
            }
            seg.flags.set(SegFlags::SACKED);
            self.tp.sacked_out += 1;
            self.tp.delivered += 1;
            ack.data_sacked = true;
            self.highest_sacked = self.highest_sacked.max(seg.end);
            if ack.delivered(seg.seq, seg, &mut self.tp, Some(&mut self.rack), &mut self.rate) {
                ack.sampled = Some(*seg);
            }
        }
    }

    /// `tcp_check_sack_reordering`
    pub(super) fn note_reordering(&mut self, low: u64) {
        let unknown = self.tp.no_sack && self.tp.sacked_out > 0;
        let highest = if unknown { self.tp.snd_nxt } else { self.highest_sacked };
        if low >= highest {
            return;
        }
        let mss = u64::from(self.tp.mss);
        let metric = highest - low;
        if metric > u64::from(self.tp.reordering) * mss {
            self.tp.reordering = (metric.div_ceil(mss) as u32).min(MAX_REORDERING);
        }
        self.rack.reord_seen = true;
    }
}
