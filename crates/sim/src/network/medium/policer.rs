//! A token-bucket policer: what is above the rate and beyond the burst is dropped or marked down, and
//! nothing waits.
//!
//! Source: Linux 7.3 `net/sched/act_police.c` (`rate`, `burst`, `conform-exceed`), RFC 2697's single bucket
//! without the excess burst. Tokens are nanoseconds, as in the kernel; the bucket starts full. Frames count
//! with their Ethernet header.
//!
//! Parameters: `rate_bps`; `burst` in bytes; `exceed`, the word `drop`, or a DSCP that such packets get.
//!
//! Not modelled: `peakrate`, `mtu`, `avrate`, packets per second.
//!
//! Validation: the tests below.

use std::ops::RangeInclusive;

use serde::Deserialize;

use crate::base::units::{Rate, Time};
use crate::packet::Packet;
use bakeoff_document::bounds::{RATE_BPS, rate, within};

/// Bytes: a gigabyte, whose time at one bit per second still fits into 64 bits of nanoseconds.
const BURST: RangeInclusive<u32> = 1..=1_000_000_000;

/// See the module.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    rate_bps: u64,
    burst: u32,
    exceed: Exceed,
}

/// What happens to a packet above the rate.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Exceed {
    Drop,
    Dscp(u8),
}

/// One direction.
pub struct Policer {
    rate: Rate,
    burst: Time,
    tokens: Time,
    last: Time,
    exceed: Exceed,
}

impl Policer {
    /// Checks `spec`.
    pub fn new(spec: &Spec) -> Result<Policer, String> {
        rate(".rate_bps", spec.rate_bps, &RATE_BPS)?;
        within(".burst", spec.burst, &BURST)?;
        if let Exceed::Dscp(dscp) = spec.exceed
            && dscp > 63
        {
            return Err(format!(".exceed.dscp: {dscp} is not between 0 and 63"));
        }
        let rate = Rate(spec.rate_bps);
        let burst = rate.time_for(spec.burst);
        Ok(Policer { rate, burst, tokens: burst, last: Time::ZERO, exceed: spec.exceed })
    }

    /// Whether the packet that comes at `at` (never decreasing) goes on, maybe with another DSCP.
    pub fn admit(&mut self, at: Time, packet: &mut Packet) -> bool {
        let tokens = (self.tokens + (at - self.last)).min(self.burst);
        let cost = self.rate.time_for(packet.len);
        self.last = at;
        if cost <= tokens {
            self.tokens = tokens - cost;
            return true;
        }
        self.tokens = tokens;
        match self.exceed {
            Exceed::Drop => false,
            Exceed::Dscp(dscp) => {
                packet.dscp = dscp;
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policer(burst: u32, exceed: Exceed) -> Policer {
        Policer::new(&Spec { rate_bps: 8_000_000, burst, exceed }).expect("a policer")
    }

    fn packet() -> Packet {
        Packet { len: 1000, ..Packet::default() }
    }

    #[test]
    fn the_burst_passes_at_once_and_no_packet_more() {
        let mut p = policer(10_500, Exceed::Drop);
        let passed = (0..20).filter(|_| p.admit(Time::ZERO, &mut packet())).count();
        assert_eq!(passed, 10);
        // 500 B are left; 1000 B need 500 more: 0.5 ms at 8 Mbit/s
        assert!(!p.admit(Time::from_us(499), &mut packet()));
        assert!(p.admit(Time::from_us(500), &mut packet()));
    }

    #[test]
    fn in_the_long_run_the_rate_passes() {
        // offered 16 Mbit/s for 10 s: burst + 8 Mbit/s = 10 + 10 000 packets of 1000 B
        let mut p = policer(10_000, Exceed::Drop);
        let passed = (0..20_000).filter(|n| p.admit(Time::from_us(500 * n), &mut packet())).count();
        // the last token is in at 9.9995 s: half a packet short
        assert_eq!(passed, 10 + 9_999);
    }

    #[test]
    fn idle_time_fills_no_more_than_the_bucket() {
        let mut p = policer(3_000, Exceed::Drop);
        let late = Time::from_ms(60_000);
        assert_eq!((0..9).filter(|_| p.admit(late, &mut packet())).count(), 3);
    }

    #[test]
    fn marked_down_packets_go_on() {
        let mut p = policer(1_000, Exceed::Dscp(8));
        let (mut first, mut second) = (packet(), packet());
        assert!(p.admit(Time::ZERO, &mut first) && p.admit(Time::ZERO, &mut second));
        assert_eq!((first.dscp, second.dscp), (0, 8));
    }
}
