//! What the kernel tells of a TCP socket: `struct tcp_info` of `include/uapi/linux/tcp.h`, which only ever grew at its end. It is read by
//! the length that the kernel returns: what an older kernel does not know is absent, never zero.

/// `tcpi_state` (enum in `include/net/tcp_states.h`).
pub mod state {
    /// Data flows.
    pub const ESTABLISHED: u8 = 1;
    /// Our FIN is on its way, perhaps behind data.
    pub const FIN_WAIT1: u8 = 4;
    /// The peer's FIN has arrived.
    pub const CLOSE_WAIT: u8 = 8;
    /// Both FINs, ours not yet acknowledged.
    pub const LAST_ACK: u8 = 9;
    /// Both FINs at once.
    pub const CLOSING: u8 = 11;
}

/// `tcpi_options`: ECN was negotiated.
const OPT_ECN: u8 = 8;

/// `tcpi_snd_ssthresh` from here on means "none yet" (TCP_INFINITE_SSTHRESH).
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// The bytes as the kernel returned them.
#[derive(Clone, Debug)]
pub struct TcpInfo {
    bytes: Vec<u8>,
}

/// Accessors for the fields at given offsets; none if the kernel's struct ends before.
macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident: $ty:ty = $offset:literal;)*) => {
        $($(#[$doc])* pub fn $name(&self) -> Option<$ty> {
            let field = self.bytes.get($offset..$offset + size_of::<$ty>())?;
            field.try_into().ok().map(<$ty>::from_ne_bytes)
        })*
    };
}

impl TcpInfo {
    /// `bytes` as long as the kernel made them.
    pub fn new(bytes: &[u8]) -> TcpInfo {
        TcpInfo { bytes: bytes.to_vec() }
    }

    fields! {
        /// `state`.
        state: u8 = 0;
        /// 0 Open, 1 Disorder, 2 CWR, 3 Recovery, 4 Loss.
        ca_state: u8 = 1;
        options: u8 = 5;
        /// Bytes.
        snd_mss: u32 = 16;
        unacked: u32 = 24;
        sacked: u32 = 28;
        /// Packets marked lost and not yet repaired.
        lost: u32 = 32;
        retrans: u32 = 36;
        rtt_us: u32 = 68;
        snd_ssthresh: u32 = 76;
        /// Packets.
        snd_cwnd: u32 = 80;
        /// Packets, cumulative.
        total_retrans: u32 = 100;
        pacing_rate_bytes: u64 = 104;
        /// Bytes, cumulative.
        bytes_acked: u64 = 120;
        /// Sequence space received in order: payload, and 1 for the FIN.
        bytes_received: u64 = 128;
        min_rtt_us: u32 = 148;
        /// Data segments, cumulative, with retransmissions.
        data_segs_out: u32 = 156;
        delivery_rate_bytes: u64 = 160;
        /// Microseconds.
        busy_time: u64 = 168;
        /// Microseconds.
        rwnd_limited: u64 = 176;
        /// Microseconds.
        sndbuf_limited: u64 = 184;
        /// Packets, cumulative.
        delivered: u32 = 192;
        /// Packets, cumulative.
        delivered_ce: u32 = 196;
        /// Payload bytes, cumulative, with retransmissions.
        bytes_sent: u64 = 200;
        /// Payload bytes, cumulative.
        bytes_retrans: u64 = 208;
        dsack_dups: u32 = 216;
        reord_seen: u32 = 220;
        total_rto: u16 = 240;
        /// CE-marked segments received, cumulative.
        received_ce: u32 = 248;
        /// Payload bytes received as ECT(1) with AccECN, modulo 2^32.
        received_e1_bytes: u32 = 264;
        ecn_mode_byte: u8 = 276;
    }

    /// Whether this end can still have data in flight.
    pub fn is_open(&self) -> bool {
        matches!(
            self.state(),
            Some(
                state::ESTABLISHED | state::FIN_WAIT1 | state::CLOSE_WAIT | state::LAST_ACK | state::CLOSING
            )
        )
    }

    /// Smoothed RTT in seconds; none before the first measurement.
    pub fn srtt_s(&self) -> Option<f64> {
        self.rtt_us().filter(|&us| us > 0).map(|us| f64::from(us) / 1e6)
    }

    /// Minimum RTT in seconds; none before the first measurement (the kernel shows all ones).
    pub fn min_rtt_s(&self) -> Option<f64> {
        self.min_rtt_us().filter(|&us| us > 0 && us < u32::MAX).map(|us| f64::from(us) / 1e6)
    }

    /// Slow-start threshold in packets; none while infinite.
    pub fn ssthresh(&self) -> Option<u32> {
        self.snd_ssthresh().filter(|&packets| packets < INFINITE_SSTHRESH)
    }

    /// Pacing rate in bit/s; none while unlimited (all ones) or unset.
    pub fn pacing_rate_bps(&self) -> Option<f64> {
        self.pacing_rate_bytes().filter(|&rate| rate > 0 && rate < u64::MAX).map(|rate| rate as f64 * 8.0)
    }

    /// Delivery rate in bit/s; none before the first sample.
    pub fn delivery_rate_bps(&self) -> Option<f64> {
        self.delivery_rate_bytes().filter(|&rate| rate > 0).map(|rate| rate as f64 * 8.0)
    }

    /// Packets in flight: packets_out - sacked - lost + retrans (tcp_packets_in_flight).
    pub fn in_flight(&self) -> Option<i64> {
        let [unacked, sacked, lost, retrans] =
            [self.unacked()?, self.sacked()?, self.lost()?, self.retrans()?].map(i64::from);
        Some(unacked - sacked - lost + retrans)
    }

    /// Payload bytes received in order: without the FIN that the kernel counts once it has arrived.
    pub fn received_payload(&self) -> Option<u64> {
        let fin = matches!(self.state(), Some(state::CLOSE_WAIT | state::LAST_ACK | state::CLOSING));
        self.bytes_received().map(|bytes| bytes.saturating_sub(u64::from(fin)))
    }

    /// What was negotiated. Linux 7 says it in two bits (`tcpi_ecn_mode`); 6.18 and 6.19 have another meaning for the same byte, so the
    /// kernel's major version is asked too. `on` = ECN, of a kernel that does not tell its feedback.
    pub fn ecn(&self, kernel_major: u32) -> Option<&'static str> {
        let negotiated = self.options()? & OPT_ECN != 0;
        if let Some(byte) = self.ecn_mode_byte()
            && kernel_major >= 7
        {
            return Some(["off", "rfc3168", "accecn", "pending"][usize::from(byte & 3)]);
        }
        Some(match (negotiated, self.received_ce()) {
            (false, _) => "off",
            (true, None) => "rfc3168",
            (true, Some(_)) => "on",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A struct of `len` bytes with (offset, bytes) put in.
    fn info(len: usize, fields: &[(usize, &[u8])]) -> TcpInfo {
        let mut bytes = vec![0; len];
        for (offset, field) in fields {
            bytes[*offset..offset + field.len()].copy_from_slice(field);
        }
        TcpInfo::new(&bytes)
    }

    /// Structs that end after tcpi_total_retrans (104 bytes), tcpi_sndbuf_limited (192), tcpi_reord_seen (224).
    #[test]
    fn what_an_older_kernel_does_not_know_is_absent() {
        let full = info(280, &[]);
        assert_eq!((full.total_retrans(), full.delivered(), full.received_ce()), (Some(0), Some(0), Some(0)));
        let old = info(104, &[]);
        assert_eq!(
            (old.total_retrans(), old.pacing_rate_bytes(), old.bytes_acked(), old.delivered()),
            (Some(0), None, None, None)
        );
        let middle = info(192, &[]);
        assert_eq!(
            (middle.sndbuf_limited(), middle.delivered(), middle.min_rtt_us()),
            (Some(0), None, Some(0))
        );
        let newer = info(224, &[]);
        assert_eq!((newer.reord_seen(), newer.total_rto()), (Some(0), None));
        assert_eq!(info(199, &[]).delivered_ce(), None, "cut inside the field");
        assert_eq!((info(264, &[]).received_e1_bytes(), full.received_e1_bytes()), (None, Some(0)));
        assert_eq!(info(0, &[]).state(), None);
    }

    #[test]
    fn units_and_values_that_mean_nothing_yet() {
        let fresh = info(
            280,
            &[
                (76, &0x7fff_ffffu32.to_ne_bytes()),
                (104, &u64::MAX.to_ne_bytes()),
                (148, &u32::MAX.to_ne_bytes()),
            ],
        );
        assert_eq!(
            (fresh.ssthresh(), fresh.pacing_rate_bps(), fresh.min_rtt_s(), fresh.srtt_s()),
            (None, None, None, None)
        );
        let busy = info(
            280,
            &[
                (68, &20_500u32.to_ne_bytes()),
                (76, &70u32.to_ne_bytes()),
                (104, &6_250_000u64.to_ne_bytes()),
                (160, &6_000_000u64.to_ne_bytes()),
                (148, &20_000u32.to_ne_bytes()),
            ],
        );
        assert_eq!(busy.srtt_s(), Some(0.0205));
        assert_eq!(busy.min_rtt_s(), Some(0.02));
        assert_eq!(busy.ssthresh(), Some(70));
        assert_eq!(busy.pacing_rate_bps(), Some(50e6));
        assert_eq!(busy.delivery_rate_bps(), Some(48e6));
    }

    /// 100 sent and not acknowledged, 30 of them SACKed, 10 lost, 4 of those sent again: 100 - 30 - 10 + 4.
    #[test]
    fn in_flight() {
        let field = |value: u32| value.to_ne_bytes();
        let info = info(280, &[(24, &field(100)), (28, &field(30)), (32, &field(10)), (36, &field(4))]);
        assert_eq!(info.in_flight(), Some(64));
    }

    #[test]
    fn the_fin_is_no_payload() {
        let at = |state: u8| info(280, &[(0, &[state]), (128, &1001u64.to_ne_bytes())]).received_payload();
        assert_eq!(at(state::ESTABLISHED), Some(1001));
        assert_eq!(at(state::CLOSE_WAIT), Some(1000));
    }

    #[test]
    fn ecn() {
        let new = |options: u8, mode: u8| info(280, &[(5, &[options]), (276, &[mode])]);
        assert_eq!(new(8, 1).ecn(7), Some("rfc3168"));
        assert_eq!(new(8, 0b0110).ecn(7), Some("accecn"), "accecn_opt_seen stands in the next two bits");
        assert_eq!(new(0, 0).ecn(7), Some("off"));
        assert_eq!(new(8, 2).ecn(6), Some("on"), "6.18 keeps something else in that byte");
        assert_eq!(
            info(232, &[(5, &[8])]).ecn(6),
            Some("rfc3168"),
            "no AccECN in a kernel without received_ce"
        );
        assert_eq!(info(232, &[]).ecn(6), Some("off"));
    }
}
