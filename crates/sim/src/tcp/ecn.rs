//! ECN negotiation: what `net.ipv4.tcp_ecn` and its kin let two hosts agree on.
//!
//! Source: Linux 7.3 `include/net/tcp_ecn.h`, `net/ipv4/tcp_input.c` (`tcp_ecn_create_request`),
//! `Documentation/networking/ip-sysctl.rst`; RFC 3168, section 6.1.1; RFC 9768, section 3.1.
//!
//! Departures: the checks of RFC 9768, section 3.2.2.4, for middleboxes that rewrite the IP field of SYN and
//! SYN/ACK are not made; SYN cookies are not modelled.
//!
//! Validation: the tests below; `tests/engines/test_ecn.py` holds the table of all pairs against a real kernel.

use crate::packet::Ecn;

/// What `net.ipv4.tcp_ecn` allows a host (0 to 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy(pub u8);

/// The sysctls of a host that say how it uses ECN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sysctls {
    /// `net.ipv4.tcp_ecn`
    pub ecn: Policy,
    /// `net.ipv4.tcp_ecn_fallback`: a SYN that is lost is repeated without its ECN bits.
    pub fallback: bool,
    /// `net.ipv4.tcp_ecn_option`: 0 never, 1 when it tells something or the beacon is due, 2 and 3 always.
    pub option: u8,
    /// `net.ipv4.tcp_ecn_option_beacon`: options per round trip at least, if `option` is 1.
    pub beacon: u32,
    /// `net.ipv4.tcp_sce` of the SCE kernels: SCE marks are echoed.
    pub sce: bool,
}

impl Default for Sysctls {
    /// Linux's defaults.
    fn default() -> Self {
        Sysctls { ecn: Policy(2), fallback: true, option: 2, beacon: 3, sce: false }
    }
}

/// The feedback in use on a connection, or asked for, or needed by a module; a later one is more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
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

impl Policy {
    /// What a client asks for in its SYN: what the sysctl says, or more if its module `needs` more.
    pub fn request(self, needs: Mode) -> Mode {
        let allowed = match self.0 {
            3 => Mode::AccEcn,
            1 | 4 => Mode::Rfc3168,
            _ => Mode::Off,
        };
        allowed.max(needs)
    }

    /// What a server makes of a SYN with these bits that arrived with `field`; `needs` is what the listening
    /// socket's module needs.
    ///
    /// RFC 3168 wants SYNs to be Not-ECT: another one is refused unless the module lives with it (DCTCP)
    /// or the SYN is one of AccECN.
    pub fn accept(self, bits: u8, field: Ecn, needs: Mode) -> Mode {
        if !matches!(bits, 0 | SYN_RFC3168) && (self.0 >= 3 || needs == Mode::AccEcn) {
            return Mode::AccEcn;
        }
        if bits & SYN_RFC3168 != SYN_RFC3168 {
            return Mode::Off;
        }
        let welcome = field == Ecn::NotEct || bits == SYN_ACCECN;
        if (welcome && self.0 > 0) || needs > Mode::Off { Mode::Rfc3168 } else { Mode::Off }
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

/// Whether the ECN bits of a SYN that is sent for the `n`th time (from 0) stay: RFC 3168's go with the first
/// repetition, AccECN's with the second.
pub fn syn_keeps_bits(mode: Mode, n: u32, fallback: bool) -> bool {
    !fallback || n == 0 || (n == 1 && mode == Mode::AccEcn)
}

/// The ECN bits of the SYN/ACK to a SYN that arrived with `field` (RFC 9768, table 2).
pub fn synack_bits(mode: Mode, field: Ecn) -> u8 {
    match (mode, field) {
        (Mode::Off, _) => 0,
        (Mode::Rfc3168, _) => SYNACK_RFC3168,
        (Mode::AccEcn, Ecn::NotEct) => 0b010,
        (Mode::AccEcn, Ecn::Ect1) => 0b011,
        (Mode::AccEcn, Ecn::Ect0) => 0b100,
        (Mode::AccEcn, Ecn::Ce) => 0b110,
    }
}

/// What a client that asked for `requested` makes of the bits of the SYN/ACK. One whose module `needs` AccECN does not
/// fall back to RFC 3168.
pub fn mode_of_synack(requested: Mode, bits: u8, needs: Mode) -> Mode {
    match (requested, bits) {
        (Mode::Off, _) | (_, 0 | 7) => Mode::Off,
        (_, SYNACK_RFC3168) if needs == Mode::AccEcn => Mode::Off,
        (_, SYNACK_RFC3168) | (Mode::Rfc3168, 5) => Mode::Rfc3168,
        _ => Mode::AccEcn,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the client ends up with, `needs` and `field` as in a connection of one module at both ends.
    fn negotiate(client: u8, server: u8, needs: Mode) -> Mode {
        let requested = Policy(client).request(needs);
        let field = if needs > Mode::Off { Ecn::Ect0 } else { Ecn::NotEct };
        let accepted = Policy(server).accept(syn_bits(requested), field, needs);
        let mode = mode_of_synack(requested, synack_bits(accepted, field), needs);
        assert_eq!(mode, accepted, "the ends agree: {client} {server}");
        mode
    }

    /// `tests/engines/test_ecn.py` has this table too; there it is compared with the real kernel.
    #[test]
    fn all_pairs_of_tcp_ecn() {
        let table = |needs| {
            let row = |client| {
                let cell = |server| match negotiate(client, server, needs) {
                    Mode::Off => '-',
                    Mode::Rfc3168 => 'r',
                    Mode::AccEcn => 'A',
                };
                (0..6).map(cell).collect::<String>()
            };
            (0..6).map(row).collect::<Vec<_>>()
        };
        // a row per tcp_ecn of the client, a column per tcp_ecn of the server
        assert_eq!(table(Mode::Off), ["------", "-rrrrr", "------", "-rrAAA", "-rrrrr", "------"]);
        assert_eq!(table(Mode::Rfc3168), ["rrrrrr", "rrrrrr", "rrrrrr", "rrrAAA", "rrrrrr", "rrrrrr"]);
        assert_eq!(table(Mode::AccEcn), ["AAAAAA"; 6]);
    }

    #[test]
    fn a_client_that_needs_accecn_takes_no_less() {
        // Prague against a listener with CUBIC: a row per tcp_ecn of the server
        let modes = [0, 1, 2, 3, 4, 5].map(|server| {
            let requested = Policy(0).request(Mode::AccEcn);
            assert_eq!(requested, Mode::AccEcn);
            let accepted = Policy(server).accept(syn_bits(requested), Ecn::Ect1, Mode::Off);
            mode_of_synack(requested, synack_bits(accepted, Ecn::Ect1), Mode::AccEcn)
        });
        assert_eq!(modes, [Mode::Off, Mode::Off, Mode::Off, Mode::AccEcn, Mode::AccEcn, Mode::AccEcn]);
    }

    #[test]
    fn an_ect_syn_of_rfc_3168_is_refused_by_a_server_whose_module_does_not_need_ecn() {
        // DCTCP against a listener with CUBIC
        for server in 0..6 {
            assert_eq!(Policy(server).accept(SYN_RFC3168, Ecn::Ect0, Mode::Off), Mode::Off);
        }
        assert_eq!(Policy(1).accept(SYN_ACCECN, Ecn::Ect0, Mode::Off), Mode::Rfc3168);
        assert_eq!(Policy(3).accept(SYN_ACCECN, Ecn::Ect0, Mode::Off), Mode::AccEcn);
    }

    #[test]
    fn unassigned_bits_of_a_syn_mean_accecn_to_who_knows_it() {
        for bits in [1, 2, 4, 5, 6, 7] {
            assert_eq!(Policy(3).accept(bits, Ecn::NotEct, Mode::Off), Mode::AccEcn, "{bits}");
        }
        assert_eq!(Policy(1).accept(1, Ecn::NotEct, Mode::Off), Mode::Off);
    }

    #[test]
    fn rfc_9768_table_2_the_synack_tells_how_the_syn_arrived() {
        let bits = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce].map(|f| synack_bits(Mode::AccEcn, f));
        assert_eq!(bits, [0b010, 0b011, 0b100, 0b110]);
        for bits in [2, 3, 4, 5, 6] {
            assert_eq!(mode_of_synack(Mode::AccEcn, bits, Mode::Off), Mode::AccEcn);
        }
        assert_eq!(mode_of_synack(Mode::AccEcn, 1, Mode::Off), Mode::Rfc3168);
        assert_eq!(mode_of_synack(Mode::Rfc3168, 5, Mode::Off), Mode::Rfc3168);
        assert_eq!([0, 7].map(|b| mode_of_synack(Mode::AccEcn, b, Mode::Off)), [Mode::Off; 2]);
    }

    #[test]
    fn a_repeated_syn_drops_its_bits_one_attempt_later_for_accecn() {
        let keeps = |mode, fallback| [0, 1, 2].map(|n| syn_keeps_bits(mode, n, fallback));
        assert_eq!(keeps(Mode::Rfc3168, true), [true, false, false]);
        assert_eq!(keeps(Mode::AccEcn, true), [true, true, false]);
        assert_eq!(keeps(Mode::Rfc3168, false), [true; 3]);
    }
}
