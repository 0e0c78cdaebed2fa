//! What [`super::Prague`] does once per round and virtual RTT: alpha, the slow average of the RTT, the size of packets.

use super::arithmetic::{mul_shr, up};
use super::{
    ALPHA_BITS, GAIN_SHIFT, HEADERS, HSRTT_SHIFT, MAX_ALPHA, MIN_CWND, MIN_MSS, Prague, SECOND_SHIFT, UNIT,
    Version, mtu,
};
use crate::cc::sock::TcpSock;

impl Prague {
    /// The round may be over.
    pub(super) fn update_alpha(&mut self, tp: &mut TcpSock) {
        if tp.snd_una < self.next_seq || !self.passed_since(tp, Some(self.alpha_stamp)) {
            return;
        }
        if self.saw_ce {
            if self.ecn_fallback {
                self.classic_ecn.on_round(tp.min_rtt_us);
            }
            let delivered = (tp.delivered - self.old_delivered).max(1);
            let marked = ((tp.delivered_ce - self.old_delivered_ce) << ALPHA_BITS) / delivered;
            self.alpha = (self.alpha - (self.alpha >> GAIN_SHIFT) + marked).min(MAX_ALPHA);
            self.alpha_stamp = tp.now;
            if self.active(tp) && !self.in_loss {
                self.update_mtu(tp);
            }
        }
        self.hsrtt = self.hsrtt.wrapping_add(tp.srtt_us) - (self.hsrtt >> HSRTT_SHIFT);
        self.new_round(tp);
    }

    /// Two packets per virtual RTT at least.
    pub(super) fn update_mtu(&mut self, tp: &mut TcpSock) {
        let virtual_rtt = self.virtual_rtt(tp);
        let before = mtu(tp);
        let bytes = if self.by_rate(tp) {
            mul_shr(self.rate, virtual_rtt, SECOND_SHIFT)
        } else {
            let mut window = self.frac_cwnd;
            if tp.srtt_us > 0 && tp.srtt_us < virtual_rtt {
                window = window.wrapping_mul(virtual_rtt) / tp.srtt_us;
            }
            mul_shr(window, before, UNIT)
        };
        let size = self.mtu.min(up(bytes, MIN_CWND)).max(MIN_MSS + HEADERS);
        if size == before {
            return;
        }
        self.frac_cwnd = self.frac_cwnd.wrapping_mul(before) / size;
        tp.mss = (size - HEADERS) as u32;
        let goal = self.goal(tp);
        if tp.snd_cwnd != goal {
            tp.snd_cwnd = goal;
            if self.version == Version::Present {
                let ssthresh = u64::from(tp.snd_ssthresh) * before / size;
                tp.snd_ssthresh = ssthresh.min(u32::MAX.into()) as u32;
            }
            self.set_ai(tp);
        }
    }

    /// A round begins.
    pub(super) fn new_round(&mut self, tp: &TcpSock) {
        self.next_seq = tp.snd_nxt;
        self.old_delivered = tp.delivered;
        self.old_delivered_ce = tp.delivered_ce;
        if !tp.in_slow_start() {
            self.round = self.round.checked_add(1).unwrap_or(self.rtt_transition);
        }
        self.set_ai(tp);
    }
}
