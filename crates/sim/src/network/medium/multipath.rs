//! Several parallel paths between two nodes, and how packets are dealt out among them.
//!
//! Source: Linux's bonding driver (`balance-rr`: packet by packet) and RFC 2992 (hash-threshold: every flow
//! keeps its path). Each path has a rate, a delay, a loss and a drop-tail FIFO of its own; the queue before
//! the link hands everything on at once, as before a bonding device. What arrives is in the order of arrival,
//! not of sending: paths of unlike delay reorder packet by packet, never within a flow by hash.
//!
//! Parameters: `by`: `packet` (smooth weighted round robin) or `flow` (hash into ranges as wide as the
//! weights); `paths`: `weight` at least 1, `rate_bps` or none (instantaneous), `delay_s` (added to the link's),
//! `loss` 0 to 1, `limit` in packets.
//!
//! Not modelled: resequencing, path failure, hashes that change.
//!
//! Validation: the tests below.

use std::collections::{BTreeMap, VecDeque};

use serde::Deserialize;

use super::{Access, Turn};
use crate::base::count::Count;
use crate::base::rng::{Stream, threshold};
use crate::base::units::{Rate, Time};
use crate::packet::Packet;
use bakeoff_document::bounds::{DELAY_S, RATE_BPS, rate, time, within};

/// Parallel paths of one link.
const MOST_PATHS: usize = 256;

/// See the module.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    by: By,
    paths: Vec<PathSpec>,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum By {
    Packet,
    Flow,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PathSpec {
    weight: u32,
    rate_bps: Option<u64>,
    delay_s: f64,
    loss: f64,
    limit: usize,
}

struct Path {
    weight: u32,
    rate: Option<Rate>,
    delay: Time,
    loss: u64,
    limit: usize,
    credit: i64,
    busy_until: Time,
    /// When each packet that stands in it will have left.
    leaves: VecDeque<Time>,
}

/// One direction.
pub struct Multipath {
    by: By,
    paths: Vec<Path>,
    weights: u32,
    rng: Stream,
    /// What is on its way, by arrival and order of sending.
    under_way: BTreeMap<(Time, u64), Packet>,
    count: u64,
}

impl Multipath {
    /// Checks `spec`.
    pub fn new(spec: &Spec, seed: u64, name: &str) -> Result<Multipath, String> {
        if !(1..=MOST_PATHS).contains(&spec.paths.len()) {
            return Err(format!(".paths: {} of them; expected 1 to {MOST_PATHS}", spec.paths.len()));
        }
        for (i, path) in spec.paths.iter().enumerate() {
            let place = format!(".paths[{i}]");
            if !(1..=1000).contains(&path.weight) {
                return Err(format!("{place}.weight: {} is not between 1 and 1000", path.weight));
            }
            if path.limit == 0 {
                return Err(format!("{place}.limit: must be above 0"));
            }
            rate(&format!("{place}.rate_bps"), path.rate_bps.unwrap_or(1), &RATE_BPS)?;
            time(&format!("{place}.delay_s"), path.delay_s, &DELAY_S)?;
            within(&format!("{place}.loss"), path.loss, &(0.0..=1.0))?;
        }
        let paths = spec.paths.iter().map(|path| Path {
            weight: path.weight,
            rate: path.rate_bps.map(Rate),
            delay: Time::from_secs_f64(path.delay_s),
            loss: threshold(path.loss),
            limit: path.limit,
            credit: 0,
            busy_until: Time::ZERO,
            leaves: VecDeque::new(),
        });
        Ok(Multipath {
            by: spec.by,
            paths: paths.collect(),
            weights: spec.paths.iter().map(|path| path.weight).sum(),
            rng: Stream::new(seed, name),
            under_way: BTreeMap::new(),
            count: 0,
        })
    }

    /// The path of a packet: the one with the most credit (the first of equals), or the one that the hash
    /// falls into.
    fn choose(&mut self, packet: &Packet) -> usize {
        if self.by == By::Flow {
            let mut at = (u64::from(packet.hash) * u64::from(self.weights)) >> 32;
            for (i, path) in self.paths.iter().enumerate() {
                match at.checked_sub(u64::from(path.weight)) {
                    Some(rest) => at = rest,
                    None => return i,
                }
            }
            return self.paths.len() - 1;
        }
        let mut best = 0;
        for i in 0..self.paths.len() {
            self.paths[i].credit += i64::from(self.paths[i].weight);
            if self.paths[i].credit > self.paths[best].credit {
                best = i;
            }
        }
        self.paths[best].credit -= i64::from(self.weights);
        best
    }

    fn send(&mut self, packet: Packet, now: Time, lost: &mut Count) {
        let at = self.choose(&packet);
        let path = &mut self.paths[at];
        while path.leaves.front().is_some_and(|at| *at <= now) {
            path.leaves.pop_front();
        }
        if path.leaves.len() >= path.limit {
            lost.add(packet.len);
            return;
        }
        let takes = path.rate.map_or(Time::ZERO, |rate| rate.time_for(packet.len));
        path.busy_until = path.busy_until.max(now) + takes;
        path.leaves.push_back(path.busy_until);
        if path.loss > 0 && u64::from(self.rng.u32()) < path.loss {
            lost.add(packet.len);
            return;
        }
        self.under_way.insert((path.busy_until + path.delay, self.count), packet);
        self.count += 1;
    }
}

impl Access for Multipath {
    fn serve(&mut self, turn: &mut Turn) -> Option<Time> {
        while let Some(packet) = turn.take() {
            self.send(packet, turn.now, turn.lost);
        }
        while let Some(first) = self.under_way.first_entry()
            && first.key().0 <= turn.now
        {
            turn.sent.push((turn.now, first.remove()));
        }
        let arrival = self.under_way.first_key_value().map(|(key, _)| key.0);
        [arrival, turn.later()].into_iter().flatten().min()
    }

    fn held(&self) -> Count {
        self.under_way.values().map(|packet| packet.len).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::medium::testing::pass;

    fn paths(by: By, paths: &[(u32, u64, f64, usize)]) -> Multipath {
        let paths = paths.iter().map(|&(weight, rate_bps, delay_ms, limit)| PathSpec {
            weight,
            rate_bps: (rate_bps > 0).then_some(rate_bps),
            delay_s: delay_ms / 1e3,
            loss: 0.0,
            limit,
        });
        Multipath::new(&Spec { by, paths: paths.collect() }, 1, "m").expect("paths")
    }

    fn every_ms(count: u64, flows: u16) -> Vec<(Time, u32, u16)> {
        (0..count).map(|n| (Time::from_ms(n), 1000, (n % u64::from(flows)) as u16)).collect()
    }

    #[test]
    fn packet_by_packet_unlike_delays_reorder_by_their_difference() {
        // even numbers take 1 ms, odd ones 10 ms: n (odd) comes at n + 10, after the even ones above it that
        // came before that instant: n + 1, n + 3, n + 5, n + 7
        let (sent, _) =
            pass(&mut paths(By::Packet, &[(1, 0, 1.0, 1000), (1, 0, 10.0, 1000)]), None, &every_ms(100, 1));
        let order: Vec<u64> = sent.iter().map(|s| s.1).collect();
        for odd in (1..80).step_by(2) {
            let at = order.iter().position(|n| *n == odd).expect("arrives");
            assert_eq!(order[..at].iter().filter(|n| **n > odd).count(), 4, "packet {odd}");
            assert_eq!(sent[at].0, Time::from_ms(odd + 10));
        }
    }

    #[test]
    fn weights_are_shares() {
        // 3 : 1 by delay: a quarter arrives late
        let (sent, _) =
            pass(&mut paths(By::Packet, &[(3, 0, 0.0, 1000), (1, 0, 500.0, 1000)]), None, &every_ms(400, 1));
        let late = sent.iter().filter(|s| s.0 >= Time::from_ms(s.1 + 500)).count();
        assert_eq!(late, 100);
    }

    #[test]
    fn by_flow_nothing_is_reordered_and_weights_are_shares_of_flows() {
        let (sent, _) =
            pass(&mut paths(By::Flow, &[(1, 0, 1.0, 1000), (1, 0, 50.0, 1000)]), None, &every_ms(1000, 8));
        let mut late = 0;
        for flow in 0..8 {
            let of_flow: Vec<_> = sent.iter().filter(|s| s.2 == flow).collect();
            assert!(of_flow.windows(2).all(|pair| pair[0].1 < pair[1].1));
            let delays: Vec<_> = of_flow.iter().map(|s| s.0 - Time::from_ms(s.1)).collect();
            assert!(delays.iter().all(|d| *d == delays[0]), "one path per flow");
            late += usize::from(delays[0] == Time::from_ms(50));
        }
        // of the test's hashes those of 1, 3 and 6 lie above 2^31
        assert_eq!(late, 3);
    }

    #[test]
    fn a_path_sends_at_its_rate_and_drops_what_is_above_its_limit() {
        // 1000 B at 8 Mbit/s: 1 ms each; 20 at once on one path of 5: the first five pass
        let (sent, lost) =
            pass(&mut paths(By::Packet, &[(1, 8_000_000, 0.0, 5)]), None, &[(Time::ZERO, 1000, 0); 20]);
        assert_eq!(sent.iter().map(|s| s.0.as_ms()).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        assert_eq!(lost, Count { packets: 15, bytes: 15_000 });
    }
}
