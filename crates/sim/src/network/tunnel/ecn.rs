//! The ECN field on the way into a tunnel and out of it (RFC 6040), as Linux 7.3 does it.
//!
//! # Source
//! RFC 6040, sections 4.1 and 4.2; `include/net/inet_ecn.h` (`INET_ECN_encapsulate`,
//! `INET_ECN_decapsulate`), `net/ipv4/ip_tunnel.c`, `drivers/net/vxlan/vxlan_core.c`,
//! `drivers/net/wireguard/receive.c`, `net/xfrm/xfrm_input.c` (`ipip_ecn_decapsulate`).
//!
//! # Departures
//! None from Linux. Linux departs from RFC 6040 at three places: an inner CE leaves as ECT(0), as in the
//! full-functionality mode of RFC 3168 (RFC 6040 copies it); XFRM propagates only CE, and drops
//! nothing; WireGuard ignores the verdict of the table, so it drops nothing either.
//!
//! # Validation
//! Tests below: the table, all 16 cells for each rule. `tests/engines/test_tunnels.py` sees CE come through a
//! real kernel's tunnels.

use crate::packet::Ecn;

/// What a decapsulator does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The table of RFC 6040, section 4.2: IPIP, GRE, VXLAN.
    Rfc6040,
    /// The same, but what the table drops goes on unchanged: WireGuard.
    NeverDrop,
    /// Only CE is copied, onto what is ECN-capable: XFRM.
    OnlyCe,
}

/// The outer field for an inner one.
pub fn encapsulate(inner: Ecn) -> Ecn {
    if inner == Ecn::Ce { Ecn::Ect0 } else { inner }
}

/// The inner field after decapsulation; none: the packet is dropped.
pub fn decapsulate(rule: Rule, outer: Ecn, inner: Ecn) -> Option<Ecn> {
    match (inner, outer) {
        (Ecn::NotEct, Ecn::Ce) if rule == Rule::Rfc6040 => None,
        (Ecn::NotEct, _) => Some(Ecn::NotEct),
        (_, Ecn::Ce) => Some(Ecn::Ce),
        (Ecn::Ect0, Ecn::Ect1) if rule != Rule::OnlyCe => Some(Ecn::Ect1),
        _ => Some(inner),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Ecn::{Ce, Ect0, Ect1, NotEct};

    const OUTER: [Ecn; 4] = [NotEct, Ect0, Ect1, Ce];

    fn row(rule: Rule, inner: Ecn) -> [Option<Ecn>; 4] {
        OUTER.map(|outer| decapsulate(rule, outer, inner))
    }

    #[test]
    fn the_table_of_rfc_6040() {
        // Figure 4, rows by arriving inner header, columns Not-ECT, ECT(0), ECT(1), CE outside
        assert_eq!(row(Rule::Rfc6040, NotEct), [Some(NotEct), Some(NotEct), Some(NotEct), None]);
        assert_eq!(row(Rule::Rfc6040, Ect0), [Some(Ect0), Some(Ect0), Some(Ect1), Some(Ce)]);
        assert_eq!(row(Rule::Rfc6040, Ect1), [Some(Ect1), Some(Ect1), Some(Ect1), Some(Ce)]);
        assert_eq!(row(Rule::Rfc6040, Ce), [Some(Ce); 4]);
    }

    #[test]
    fn wireguard_drops_nothing() {
        assert_eq!(row(Rule::NeverDrop, NotEct), [Some(NotEct); 4]);
        for inner in [Ect0, Ect1, Ce] {
            assert_eq!(row(Rule::NeverDrop, inner), row(Rule::Rfc6040, inner));
        }
    }

    #[test]
    fn xfrm_copies_ce_and_nothing_else() {
        assert_eq!(row(Rule::OnlyCe, NotEct), [Some(NotEct); 4]);
        assert_eq!(row(Rule::OnlyCe, Ect0), [Some(Ect0), Some(Ect0), Some(Ect0), Some(Ce)]);
        assert_eq!(row(Rule::OnlyCe, Ect1), [Some(Ect1), Some(Ect1), Some(Ect1), Some(Ce)]);
        assert_eq!(row(Rule::OnlyCe, Ce), [Some(Ce); 4]);
    }

    #[test]
    fn an_inner_ce_leaves_as_ect0_and_comes_out_as_ce() {
        assert_eq!([NotEct, Ect0, Ect1, Ce].map(encapsulate), [NotEct, Ect0, Ect1, Ect0]);
        for rule in [Rule::Rfc6040, Rule::NeverDrop, Rule::OnlyCe] {
            assert_eq!(decapsulate(rule, encapsulate(Ce), Ce), Some(Ce));
        }
    }
}
