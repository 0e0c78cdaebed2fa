//! ECN negotiation and the sender's reading of AccECN's counter.
//!
//! Source: Linux 7.3 `include/net/tcp_ecn.h`; RFC 3168, RFC 9768 (AccECN).

/// What `net.ipv4.tcp_ecn` allows a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy(pub u8);

/// The feedback in use on a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// No ECN.
    #[default]
    Off,
    /// ECE and CWR.
    Rfc3168,
    /// The ACE counter.
    AccEcn,
}

/// AE, CWR, ECE of a SYN as one number.
pub const SYN_ACCECN: u8 = 0b111;
/// See [`SYN_ACCECN`].
pub const SYN_RFC3168: u8 = 0b011;
/// SYN/ACK of a host that accepts RFC 3168: ECE alone.
pub const SYNACK_RFC3168: u8 = 0b001;
/// SYN/ACK of a host that accepts AccECN and saw the SYN as Not-ECT.
pub const SYNACK_ACCECN: u8 = 0b010;

/// Initial value of the ACE counter (RFC 9768, section 3.2.1).
pub const ACE_INIT: u64 = 5;

impl Policy {
    /// What a client asks for in its SYN; a module that needs ECN asks whatever the sysctl says.
    pub fn request(self, needs_ecn: bool) -> Mode {
        match self.0 {
            3 => Mode::AccEcn,
            1 | 4 => Mode::Rfc3168,
            5 if needs_ecn => Mode::AccEcn,
            _ if needs_ecn => Mode::Rfc3168,
            _ => Mode::Off,
        }
    }

    /// What a server makes of the request it received.
    pub fn accept(self, request: Mode) -> Mode {
        match (self.0, request) {
            (0, _) | (_, Mode::Off) => Mode::Off,
            (3..=5, Mode::AccEcn) => Mode::AccEcn,
            // An AccECN SYN carries the bits of an RFC 3168 one.
            _ => Mode::Rfc3168,
        }
    }
}

/// The ECN bits of a SYN.
pub fn syn_bits(mode: Mode) -> u8 {
    match mode {
        Mode::Off => 0,
        Mode::Rfc3168 => SYN_RFC3168,
        Mode::AccEcn => SYN_ACCECN,
    }
}

/// What the bits of a SYN ask for.
pub fn mode_of_syn(bits: u8) -> Mode {
    match bits {
        SYN_ACCECN => Mode::AccEcn,
        SYN_RFC3168 => Mode::Rfc3168,
        _ => Mode::Off,
    }
}

/// The ECN bits of a SYN/ACK.
pub fn synack_bits(mode: Mode) -> u8 {
    match mode {
        Mode::Off => 0,
        Mode::Rfc3168 => SYNACK_RFC3168,
        Mode::AccEcn => SYNACK_ACCECN,
    }
}

/// What the bits of a SYN/ACK answer.
pub fn mode_of_synack(bits: u8) -> Mode {
    match bits {
        0 | 7 => Mode::Off,
        SYNACK_RFC3168 | 5 => Mode::Rfc3168,
        _ => Mode::AccEcn,
    }
}

/// The sender's view of the ACE counter.
#[derive(Clone, Debug, Default)]
pub struct AceDecoder {
    /// Mean packets per ACK, times 64.
    acked_ewma: u32,
}

impl AceDecoder {
    /// How many more packets arrived with CE: `ace` of this ACK, `delivered_ce` known so far,
    /// `packets` newly delivered by it.
    ///
    /// Beyond seven packets per ACK the 3-bit field may have wrapped: then the safer (larger) reading
    /// is taken, unless ACKs usually cover more than four packets (K73 without the AccECN option).
    pub fn decode(&mut self, ace: u8, delivered_ce: u64, packets: u32) -> u32 {
        if packets > 0 {
            let sample = packets << 6;
            self.acked_ewma =
                if self.acked_ewma == 0 { sample } else { (self.acked_ewma * 63 + sample) >> 6 };
        }
        let delta = (u64::from(ace).wrapping_sub(ACE_INIT).wrapping_sub(delivered_ce) & 7) as u32;
        if packets <= 7 || self.acked_ewma > 4 << 6 { delta } else { safe_delta(delta, packets) }
    }
}

/// The largest count of CE packets among `packets` that leaves ACE where it is.
pub fn safe_delta(delta: u32, packets: u32) -> u32 {
    packets - (packets.wrapping_sub(delta) & 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_7_7_accecn_decode_vectors() {
        for (ace, ce, packets, expected) in
            [(5, 0, 2, 0), (6, 0, 2, 1), (7, 0, 2, 2), (5, 8, 2, 0), (0, 2, 4, 1)]
        {
            assert_eq!(AceDecoder::default().decode(ace, ce, packets), expected, "{ace} {ce} {packets}");
        }
        assert_eq!(safe_delta(1, 20), 17);
    }

    #[test]
    fn a_stretch_ack_among_small_ones_is_read_safely() {
        let mut d = AceDecoder::default();
        for _ in 0..100 {
            d.decode(5, 0, 2);
        }
        assert_eq!(d.decode(6, 0, 20), 17);
    }

    #[test]
    fn negotiation_follows_tcp_ecn() {
        let both = |client, server| {
            let request = Policy(client).request(false);
            mode_of_synack(synack_bits(Policy(server).accept(mode_of_syn(syn_bits(request)))))
        };
        assert_eq!(both(3, 3), Mode::AccEcn);
        assert_eq!(both(3, 2), Mode::Rfc3168);
        assert_eq!(both(1, 3), Mode::Rfc3168);
        assert_eq!(both(2, 3), Mode::Off);
        assert_eq!(both(4, 4), Mode::Rfc3168);
        assert_eq!(both(1, 0), Mode::Off);
        assert_eq!(Policy(5).request(true), Mode::AccEcn);
    }
}
