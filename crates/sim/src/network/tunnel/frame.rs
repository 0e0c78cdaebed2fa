//! What a tunnel adds to a packet, and what remains of the MTU inside.
//!
//! # Source
//! Linux 7.3: `net/ipv4/esp4.c` and `xfrm_state_mtu`, `drivers/net/wireguard/send.c` (padding) and
//! `messages.h`, `net/ipv4/fou_core.c`, RFC 2784 (GRE without options), RFC 7348 (VXLAN); outer header IPv4.
//!
//! | kind | bytes around the inner IP packet |
//! |---|---|
//! | `ipsec` | IP 20, SPI and sequence 8, IV, padding to the block with its 2 bytes of trailer, ICV |
//! | `wireguard` | IP 20, UDP 8, header 16, padding to 16 within the tunnel's MTU, tag 16 |
//! | `fou` | IP 20, UDP 8 (the inner packet is IPIP) |
//! | `gre` | IP 20, GRE 4 |
//! | `vxlan` | IP 20, UDP 8, VXLAN 8, Ethernet 14 |
//!
//! # Departures
//! A packet that does not fit is not fragmented: runs that would need it are refused.
//!
//! # Validation
//! Tests below against sums by hand; `tests/engines/test_tunnels.py`: goodput through real tunnels is rate x payload / frame.

/// Bytes of an IPv4 header.
const IP: u32 = 20;
/// Bytes of a UDP header.
const UDP: u32 = 8;

/// How ESP encrypts and authenticates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cipher {
    /// `rfc4106(gcm(aes))`: IV 8, block 4, ICV 16.
    AesGcm,
    /// `cbc(aes)` with `hmac(sha256)` cut to 128 bits: IV 16, block 16, ICV 16.
    AesCbcHmacSha256,
}

impl Cipher {
    /// By the name in a resolved run.
    pub fn parse(name: &str) -> Option<Cipher> {
        match name {
            "aes-gcm" => Some(Cipher::AesGcm),
            "aes-cbc-hmac-sha256" => Some(Cipher::AesCbcHmacSha256),
            _ => None,
        }
    }

    /// (IV, block, ICV) in bytes.
    fn sizes(self) -> (u32, u32, u32) {
        match self {
            Cipher::AesGcm => (8, 4, 16),
            Cipher::AesCbcHmacSha256 => (16, 16, 16),
        }
    }
}

/// A kind of tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `WireGuard`.
    WireGuard,
    /// ESP in tunnel mode.
    Ipsec(Cipher),
    /// IPIP in UDP (foo over UDP).
    Fou,
    /// GRE without key, checksum and sequence numbers.
    Gre,
    /// VXLAN.
    Vxlan,
}

impl Kind {
    /// The largest inner IP packet on links of `mtu` bytes: what the tunnel device, or XFRM's route, says.
    pub fn inner_mtu(self, mtu: u32) -> u32 {
        match self {
            // Linux's default leaves room for an outer IPv6 header.
            Kind::WireGuard => mtu.saturating_sub(80),
            Kind::Ipsec(cipher) => {
                let (iv, block, icv) = cipher.sizes();
                (mtu.saturating_sub(IP + 8 + iv + icv) / block * block).saturating_sub(2)
            }
            Kind::Fou => mtu.saturating_sub(IP + UDP),
            Kind::Gre => mtu.saturating_sub(IP + 4),
            Kind::Vxlan => mtu.saturating_sub(IP + UDP + 8 + 14),
        }
    }

    /// The outer IP packet's length for an inner one; `mtu` is the tunnel's own.
    pub fn outer(self, inner: u32, mtu: u32) -> u32 {
        match self {
            Kind::WireGuard => IP + UDP + 16 + inner.next_multiple_of(16).min(mtu) + 16,
            Kind::Ipsec(cipher) => {
                let (iv, block, icv) = cipher.sizes();
                IP + 8 + iv + (inner + 2).next_multiple_of(block) + icv
            }
            Kind::Fou => IP + UDP + inner,
            Kind::Gre => IP + 4 + inner,
            Kind::Vxlan => IP + UDP + 8 + 14 + inner,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Kind; 6] = [
        Kind::WireGuard,
        Kind::Ipsec(Cipher::AesGcm),
        Kind::Ipsec(Cipher::AesCbcHmacSha256),
        Kind::Fou,
        Kind::Gre,
        Kind::Vxlan,
    ];

    #[test]
    fn mtus_inside_ethernet() {
        // ipsec: 1500 - 20 - 8 - 8 - 16 = 1448, less 2; 1500 - 20 - 8 - 16 - 16 = 1440, less 2
        assert_eq!(ALL.map(|kind| kind.inner_mtu(1500)), [1420, 1446, 1438, 1472, 1476, 1450]);
    }

    #[test]
    fn full_packets_fill_the_link_but_for_wireguards_reserve() {
        // wireguard: 1420 is no multiple of 16, but 1424 would be beyond the tunnel's MTU: 1420 + 60
        let full = ALL.map(|kind| kind.outer(kind.inner_mtu(1500), kind.inner_mtu(1500)));
        assert_eq!(full, [1480, 1500, 1500, 1500, 1500, 1500]);
        for kind in ALL {
            for mtu in 600..1600 {
                assert!(kind.outer(kind.inner_mtu(mtu), kind.inner_mtu(mtu)) <= mtu, "{kind:?} {mtu}");
            }
        }
    }

    #[test]
    fn padding() {
        // gcm: 1400 + 2 to a multiple of 4 is 1404; 20 + 8 + 8 + 1404 + 16
        assert_eq!(Kind::Ipsec(Cipher::AesGcm).outer(1400, 1446), 1456);
        // cbc: 52 + 2 to a multiple of 16 is 64; 20 + 8 + 16 + 64 + 16
        assert_eq!(Kind::Ipsec(Cipher::AesCbcHmacSha256).outer(52, 1438), 124);
        // wireguard: 52 to 64; a multiple of 16 stays
        assert_eq!(Kind::WireGuard.outer(52, 1420), 60 + 64);
        assert_eq!(Kind::WireGuard.outer(1408, 1420), 60 + 1408);
        assert_eq!(Kind::WireGuard.outer(84, 1420), 60 + 96);
        assert_eq!([Kind::Fou, Kind::Gre, Kind::Vxlan].map(|k| k.outer(100, 1400)), [128, 124, 150]);
    }
}
