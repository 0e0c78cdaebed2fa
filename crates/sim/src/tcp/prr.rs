//! Proportional Rate Reduction: how the window comes down to the threshold while data is still acknowledged.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_input.c` (`tcp_cwnd_reduction`); RFC 9937, which replaces RFC 6937.

use crate::cc::sock::TcpSock;

/// What one reduction counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prr {
    /// Packets delivered since it began (`prr_delivered`).
    delivered: u32,
    /// Packets sent since it began (`prr_out`).
    out: u32,
}

impl Prr {
    /// So many packets were sent.
    pub(super) fn sent(&mut self, packets: u32) {
        self.out += packets;
    }

    /// The window, in packets, after an ACK that newly delivers `delivered` and makes `lost` known. Above the threshold
    /// it goes down in proportion to what is delivered; below, what is delivered is replaced, and one packet more for an
    /// ACK that goes on without a loss (slow start). At least one packet goes out at once: the fast retransmission.
    /// Source: the per-ACK steps of RFC 9937; Linux 7.3 `tcp_cwnd_reduction`.
    pub(super) fn cwnd(&mut self, tp: &TcpSock, delivered: u32, lost: u32, una_advanced: bool) -> u32 {
        self.delivered += delivered;
        let in_flight = i64::from(tp.packets_in_flight());
        let ssthresh = i64::from(tp.snd_ssthresh);
        let prior = i64::from(tp.prior_cwnd);
        let (all, out) = (i64::from(self.delivered), i64::from(self.out));
        let delta = ssthresh - in_flight;
        let send = if delta < 0 {
            (ssthresh * all + prior - 1) / prior - out
        } else {
            let mut bound = (all - out).max(i64::from(delivered));
            if una_advanced && lost == 0 {
                bound += 1;
            }
            bound.min(delta)
        };
        (in_flight + send.max(i64::from(self.out == 0))) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 20 packets before, 10 as threshold, so many in flight.
    fn reducing(in_flight: u32) -> TcpSock {
        let mut tp = TcpSock::new(1000, 1000);
        (tp.prior_cwnd, tp.snd_ssthresh, tp.packets_out) = (20, 10, in_flight);
        tp
    }

    #[test]
    fn above_the_threshold_every_second_delivered_packet_is_replaced() {
        let mut prr = Prr::default();
        // ceil(10/20 * 1) = 1 to send; then ceil(10/20 * 2) - 1 = 0; then ceil(10/20 * 3) - 1 = 1
        assert_eq!(prr.cwnd(&reducing(18), 1, 1, false), 19);
        prr.sent(1);
        assert_eq!(prr.cwnd(&reducing(18), 1, 0, false), 18);
        assert_eq!(prr.cwnd(&reducing(17), 1, 0, false), 18);
    }

    #[test]
    fn below_the_threshold_it_is_rebuilt_as_in_slow_start() {
        let mut prr = Prr::default();
        prr.sent(5);
        // 2 delivered, 1 more for an ACK that goes on, 4 below the threshold: 6 + 3
        assert_eq!(prr.cwnd(&reducing(6), 2, 0, true), 9);
        // a loss: only what was delivered
        assert_eq!(prr.cwnd(&reducing(6), 2, 1, true), 8);
    }
}
