//! RACK: what was sent a reordering window before something that was delivered is lost.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_recovery.c`; RFC 8985, section 6.

use crate::base::units::Time;
use crate::cc::sock::{CaState, TcpSock};

/// `TCP_RACK_RECOVERY_THRESH`: a widened window lasts for so many recoveries.
const RECOVERY_THRESH: u32 = 16;
/// The reordering window is at most so many quarters of the least RTT.
const MOST_STEPS: u64 = 0xff;

/// The segment that was sent last of those known to be delivered, and the reordering window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rack {
    /// When that segment was sent.
    pub(super) mstamp: Time,
    /// Its end, in bytes of the stream.
    pub(super) end_seq: u64,
    /// RTT of the segment known delivered last, in microseconds.
    pub(super) rtt_us: u64,
    /// Whether it moved since losses were looked for.
    pub(super) advanced: bool,
    /// Whether anything was ever reordered.
    pub(super) reord_seen: bool,
    /// The window in quarters of the least RTT.
    reo_wnd_steps: u64,
    /// Recoveries for which it stays so.
    reo_wnd_persist: u32,
    /// A D-SACK came since the window was last looked at.
    pub(super) dsack_seen: bool,
    /// `delivered`, in packets, when the steps were last raised.
    last_delivered: u64,
}

impl Default for Rack {
    fn default() -> Self {
        Rack {
            mstamp: Time::ZERO,
            end_seq: 0,
            rtt_us: 0,
            advanced: false,
            reord_seen: false,
            reo_wnd_steps: 1,
            reo_wnd_persist: 0,
            dsack_seen: false,
            last_delivered: 0,
        }
    }
}

/// Whether segment 1 was sent after segment 2; ties go by sequence.
/// Source: RFC 8985, section 6.2, step 2; Linux 7.3 `tcp_skb_sent_after`.
pub(super) fn sent_after(t1: Time, end1: u64, t2: Time, end2: u64) -> bool {
    t1 > t2 || (t1 == t2 && end1 > end2)
}

impl Rack {
    /// A segment is known to be delivered (`tcp_rack_advance`). Source: RFC 8985, section 6.2, step 2.
    #[inline]
    pub(super) fn advance(&mut self, sent: Time, end: u64, rtt_us: u64) {
        self.advanced = true;
        self.rtt_us = rtt_us;
        if sent_after(sent, end, self.mstamp, self.end_seq) {
            (self.mstamp, self.end_seq) = (sent, end);
        }
    }

    /// `tcp_rack_update_reo_wnd`: `prior` is `delivered` when the segment was sent that made the rate sample. A D-SACK
    /// counts once per round trip. Source: RFC 8985, section 6.2, step 4.
    pub(super) fn update_window(&mut self, prior: u64, delivered: u64) {
        if prior < self.last_delivered {
            self.dsack_seen = false;
        }
        if self.dsack_seen {
            self.reo_wnd_steps = (self.reo_wnd_steps + 1).min(MOST_STEPS);
            self.dsack_seen = false;
            self.last_delivered = delivered;
            self.reo_wnd_persist = RECOVERY_THRESH;
        } else if self.reo_wnd_persist == 0 {
            self.reo_wnd_steps = 1;
        }
    }

    /// `tcp_rack_reo_wnd`, in microseconds.
    /// Without reordering so far no window once three segments are SACKed or a recovery is under way. Source: RFC
    /// 8985, section 6.2, step 4.
    pub(super) fn window_us(&self, tp: &TcpSock) -> u64 {
        if !self.reord_seen && (tp.ca_state >= CaState::Recovery || tp.sacked_out >= tp.reordering) {
            return 0;
        }
        ((tp.min_rtt_us >> 2) * self.reo_wnd_steps).min(tp.srtt_us >> 3)
    }

    /// A recovery ended, and was right.
    pub(super) fn recovered(&mut self) {
        self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
    }

    /// A reduction was undone since D-SACKs reported all retransmissions.
    pub(super) fn was_needless(&mut self) {
        self.reo_wnd_persist = RECOVERY_THRESH.min(self.reo_wnd_persist + 1);
    }
}
