//! Wi-Fi-like aggregation: the medium is waited for, then many packets leave at once and arrive together.
//!
//! Source: IEEE 802.11-2020, 10.23 (contention for a transmit opportunity) and 10.12 (A-MPDU), reduced to
//! what a queue and a transport see of it: while something waits, the access time passes, then up to
//! `packets` packets and `bytes` bytes are taken, which all arrive when the last is sent (the receiver hands
//! an aggregate on as a whole). Saturated, n packets need the access time and n times one packet's.
//!
//! Parameters: `access_s` [least, most] in seconds, drawn uniformly; `packets` and `bytes` (frames, with
//! their Ethernet headers) at most per aggregate, always at least one packet. With `half_duplex` both ends
//! contend for one medium: who sent last lets the other go first, and who lost draws a new access time.
//!
//! Not modelled: collisions and retries, frozen backoff, rate control, hidden stations, block-ACK losses.
//!
//! Validation: the tests below, half duplex in `tests/engines/test_links.py`.

use serde::Deserialize;

use super::{Access, Turn};
use crate::base::count::Count;
use crate::base::rng::Stream;
use crate::base::units::Time;
use crate::packet::Packet;
use bakeoff_document::bounds::within;

/// Packets of an aggregate, far above any standard's.
const MOST_PACKETS: u32 = 1_000_000;
/// Bytes of an aggregate, far above any standard's.
const MOST_BYTES: u32 = 1_000_000_000;

/// See the module.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    access_s: [f64; 2],
    packets: u32,
    bytes: u32,
}

/// One direction.
pub struct Wifi {
    access: [Time; 2],
    packets: u32,
    bytes: u32,
    rng: Stream,
    /// When the contention that is going on is won.
    won: Option<Time>,
    free: Time,
    /// Did not fit into the last aggregate.
    next: Option<Packet>,
}

impl Wifi {
    /// Checks `spec`.
    pub fn new(spec: &Spec, seed: u64, name: &str) -> Result<Wifi, String> {
        let [least, most] = spec.access_s;
        if !(least >= 0.0 && least <= most && most < 10.0) {
            return Err(format!(".access_s: [{least}, {most}] is not [least, most] below 10 s"));
        }
        within(".packets", spec.packets, &(1..=MOST_PACKETS))?;
        within(".bytes", spec.bytes, &(0..=MOST_BYTES))?;
        let rng = Stream::new(seed, name);
        let access = spec.access_s.map(Time::from_secs_f64);
        let (packets, bytes) = (spec.packets, spec.bytes);
        Ok(Wifi { access, packets, bytes, rng, won: None, free: Time::ZERO, next: None })
    }

    fn contend(&mut self) -> Time {
        let span = (self.access[1] - self.access[0]).as_ns();
        let drawn = if span == 0 { 0 } else { self.rng.u64() % (span + 1) };
        self.access[0] + Time::from_ns(drawn)
    }

    /// An aggregate: its packets have not left before the last has.
    fn send(&mut self, turn: &mut Turn) {
        let first = turn.sent.len();
        let mut total = 0;
        for count in 0..self.packets {
            let Some(packet) = self.next.take().or_else(|| turn.take()) else { break };
            if count > 0 && total + packet.len > self.bytes {
                self.next = Some(packet);
                break;
            }
            total += packet.len;
            turn.sent.push((Time::ZERO, packet));
        }
        self.free = turn.now + turn.airtime(total);
        for (at, _) in &mut turn.sent[first..] {
            *at = self.free;
        }
    }
}

impl Access for Wifi {
    fn serve(&mut self, turn: &mut Turn) -> Option<Time> {
        if self.free > turn.now {
            return (self.next.is_some() || turn.waits()).then_some(self.free);
        }
        let won = match self.won {
            Some(won) => won,
            None if self.next.is_some() || turn.waits() => turn.now + self.contend(),
            None => return None,
        };
        self.won = Some(won);
        if won > turn.now {
            return self.won;
        }
        self.won = None;
        let before = turn.sent.len();
        self.send(turn);
        if turn.sent.len() == before {
            return turn.later();
        }
        (self.next.is_some() || turn.waits()).then_some(self.free)
    }

    fn defer(&mut self, until: Time) {
        self.free = self.free.max(until);
        self.won = None;
    }

    fn held(&self) -> Count {
        self.next.iter().map(|packet| packet.len).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::medium::testing::pass;

    fn wifi(access_ms: [f64; 2], packets: u32, bytes: u32) -> Wifi {
        let access_s = access_ms.map(|ms| ms / 1e3);
        Wifi::new(&Spec { access_s, packets, bytes }, 1, "w").expect("a medium")
    }

    #[test]
    fn saturated_n_packets_need_the_access_time_and_n_packet_times() {
        // 1250 B at 10 Mbit/s: 1 ms. Cycles of 2 ms + 8 * 1 ms: 100 aggregates of 8 in 1 s
        let (sent, _) =
            pass(&mut wifi([2.0, 2.0], 8, 1 << 20), Some(10_000_000), &[(Time::ZERO, 1250, 0); 800]);
        assert_eq!(sent.len(), 800);
        for (n, s) in sent.iter().enumerate() {
            assert_eq!(s.0, Time::from_ms(10 * (n as u64 / 8 + 1)));
        }
    }

    #[test]
    fn bytes_limit_an_aggregate_but_one_packet_always_goes() {
        // 3000 B hold two of 1250 B: 2 + 2, 2 + 2, 2 + 1
        let (sent, _) = pass(&mut wifi([2.0, 2.0], 8, 3000), Some(10_000_000), &[(Time::ZERO, 1250, 0); 5]);
        assert_eq!(sent.iter().map(|s| s.0.as_ms()).collect::<Vec<_>>(), [4, 4, 8, 8, 11]);
        let (sent, _) = pass(&mut wifi([2.0, 2.0], 8, 100), Some(10_000_000), &[(Time::ZERO, 1250, 0); 2]);
        assert_eq!(sent.iter().map(|s| s.0.as_ms()).collect::<Vec<_>>(), [3, 6]);
    }

    #[test]
    fn access_times_are_uniform_between_their_bounds() {
        // lone packets, 10 ms apart: sent at 1 to 3 ms + 1 ms; mean of 1000 draws 3 ms, its deviation 0.577/sqrt(1000)
        let offered: Vec<_> = (0..1000).map(|n| (Time::from_ms(10 * n), 1250, 0)).collect();
        let (sent, _) = pass(&mut wifi([1.0, 3.0], 8, 3000), Some(10_000_000), &offered);
        let waits: Vec<f64> =
            sent.iter().zip(&offered).map(|(s, o)| (s.0 - o.0).as_secs_f64() * 1e3).collect();
        assert!(waits.iter().all(|w| (2.0..=4.0).contains(w)));
        let mean = waits.iter().sum::<f64>() / 1000.0;
        assert!((mean - 3.0).abs() < 4.0 * 0.577 / 1000_f64.sqrt(), "{mean}");
    }
}
