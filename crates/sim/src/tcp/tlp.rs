//! The tail loss probe that is out: what its acknowledgement tells.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_output.c` (`tcp_send_loss_probe`), `tcp_input.c` (`tcp_process_tlp_ack`); RFC 8985,
//! section 7.4.

/// The probe, if one is out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossProbe {
    /// `snd_nxt` in bytes when it was sent (`tlp_high_seq`).
    high_seq: Option<u64>,
    /// Whether it was a retransmission, not new data.
    retransmission: bool,
}

impl LossProbe {
    /// One was sent.
    pub(super) fn sent(&mut self, snd_nxt: u64, retransmission: bool) {
        *self = LossProbe { high_seq: Some(snd_nxt), retransmission };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retransmitted_probe_repaired_a_loss_if_more_than_it_is_acknowledged() {
        let out = |retransmission| {
            let mut probe = LossProbe::default();
            probe.sent(5000, retransmission);
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
        probe.sent(5000, true);
        assert!(!probe.on_ack(5000, false, false) && probe.is_out());
        assert!(!probe.on_ack(5000, false, true) && !probe.is_out());
    }
}
