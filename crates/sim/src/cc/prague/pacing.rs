//! Pace and bursts of [`super::Prague`].

use super::arithmetic::mul_shr;
use super::{MIN_RATE, Prague, UNIT, Version, mtu};
use crate::cc::sock::TcpSock;

/// `rate_offset` is in 2^-7.
const OFFSET_SHIFT: u32 = 7;

impl Prague {
    /// After every ACK. The pacing clock charges payload, so that the flow goes a little faster than this says.
    pub(super) fn update_pacing(&mut self, tp: &mut TcpSock) {
        let by_rate = self.by_rate(tp);
        let mut rate = if by_rate {
            let offset = mul_shr(self.rate_offset, self.rate, OFFSET_SHIFT);
            // Half of a virtual RTT in microseconds.
            let half = self.virtual_rtt(tp) >> 4;
            if half <= tp.now.as_us() - self.alpha_stamp.as_us() {
                self.rate - offset
            } else {
                self.rate.wrapping_add(offset)
            }
        } else {
            let window = match self.version {
                Version::Of2023 => tp.snd_cwnd.into(),
                Version::Present => self.frac_cwnd >> UNIT,
            };
            let packets = window.max(tp.packets_in_flight().into());
            Self::packet_rate(tp).wrapping_mul(packets).max(MIN_RATE)
        };
        if !by_rate {
            self.rate = rate;
        }
        if tp.snd_cwnd < tp.snd_ssthresh / 2 {
            rate = rate.wrapping_mul(2);
            if self.version == Version::Of2023 && !by_rate {
                self.rate = rate;
            }
        }
        tp.pacing_rate = rate.min(tp.max_pacing_rate);
        self.burst = ((tp.pacing_rate / mtu(tp)) >> self.burst_shift).max(1);
    }
}
