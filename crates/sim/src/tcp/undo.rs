//! What it takes to undo a reduction that proves spurious: nothing was lost, only late or twice.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_input.c` (`tcp_init_undo`, `tcp_may_undo`, `tcp_check_dsack`); RFC 3522 (Eifel),
//! RFC 3708 (D-SACK).

use crate::base::units::Time;

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
