//! Round-trip times by QUIC's spin bit (RFC 9000 section 17.4; RFC 9312 section 3.8.2).
//!
//! A client that takes part inverts the bit once per round trip, and a server sends back what it saw last, so that a
//! whole round trip lies between two edges in one direction. Packet numbers are encrypted: an edge that a reordered
//! packet makes is known only by coming too soon. An end that does not take part sends a fixed bit, or a random one.

use serde::Serialize;

use super::requests::Samples;
use super::{Bounds, seconds, since};
use crate::histogram::Histogram;
use crate::report::Distribution;

/// An edge that comes sooner than this share of the smoothed round-trip time is taken for a reordered packet's.
const TOO_SOON: f64 = 0.1;
/// Weight of a new sample in the smoothed round-trip time.
const WEIGHT: f64 = 0.125;
/// Runs of equal bits that are needed to call them random.
const RUNS: u64 = 24;

/// The spin bit of one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SpinReport {
    /// `spinning`; `constant` if the bit never changes; `random` if it changes as a coin does, or as often as packets.
    pub state: &'static str,
    /// Changes of the bit from packet to packet.
    pub edges: u64,
    /// Of these, those which came sooner than a tenth of the round-trip time: reordered packets.
    pub rejected_edges: u64,
    /// From edge to edge: whole round-trip times, with the time that an end had nothing to send. Only if it is spinning.
    pub rtt_s: Distribution,
    /// Every round-trip time, if series were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<Samples>,
}

/// Follows the spin bit of one direction.
#[derive(Debug, Default)]
pub(super) struct Spin {
    bit: Option<bool>,
    /// The last edge that was taken, and the bit after it.
    edge: Option<(i64, bool)>,
    edges: u64,
    rejected: u64,
    smoothed_ns: Option<f64>,
    rtt: Histogram,
    /// Packets since the bit last changed, and how such numbers are spread.
    run: u64,
    runs: Histogram,
    samples: Vec<(i64, u64)>,
}

impl Spin {
    /// Takes the bit of a packet with a short header. Whether it is an edge that counts.
    pub fn packet(&mut self, bit: bool, at_ns: i64, bounds: &mut Bounds) -> bool {
        let before = self.bit.replace(bit);
        if before.is_none_or(|before| before == bit) {
            self.run += 1;
            return false;
        }
        self.edges += 1;
        // The first run began before this capture did, or with the handshake.
        if self.edges > 1 {
            self.runs.add(self.run);
        }
        self.run = 1;
        let Some((last_ns, _)) = self.edge else {
            self.edge = Some((at_ns, bit));
            return true;
        };
        let sample = since(at_ns, last_ns);
        if self.smoothed_ns.is_some_and(|smoothed| (sample as f64) < smoothed * TOO_SOON) {
            self.rejected += 1;
            return false;
        }
        self.edge = Some((at_ns, bit));
        self.smoothed_ns = Some(match self.smoothed_ns {
            Some(smoothed) => smoothed + WEIGHT * (sample as f64 - smoothed),
            None => sample as f64,
        });
        self.rtt.add(sample);
        if bounds.interval_ns.is_some() && bounds.samples > 0 {
            bounds.samples -= 1;
            self.samples.push((at_ns, sample));
        }
        true
    }

    /// Time and new bit of the last edge that counted.
    pub fn edge(&self) -> Option<(i64, bool)> {
        self.edge
    }

    /// What a fixed, a spinning and a random bit differ in is how many packets have the same bit in a row. Of a random
    /// one it is 1 with a probability of 1/2, 2 with 1/4 and so on: the mean is 2, and so is the variance, which a bit
    /// that spins once in two packets has not.
    pub fn state(&self) -> &'static str {
        let runs = self.runs.distribution(1.0);
        let random = runs.values.is_some_and(|runs| {
            (1.5..2.7).contains(&runs.mean) && runs.stddev.is_some_and(|stddev| stddev * stddev > 1.0)
        });
        match self.edges {
            0 => "constant",
            _ if random && runs.n >= RUNS => "random",
            _ => "spinning",
        }
    }

    pub fn finish(self, start_ns: i64, bounds: &Bounds) -> Option<SpinReport> {
        self.bit?;
        let state = self.state();
        let spins = state == "spinning";
        Some(SpinReport {
            state,
            edges: self.edges,
            rejected_edges: self.rejected,
            rtt_s: if spins { self.rtt.distribution(1e-9) } else { Distribution::default() },
            samples: bounds.interval_ns.filter(|_| spins).map(|_| Samples {
                time_s: self.samples.iter().map(|&(at_ns, _)| seconds(at_ns, start_ns)).collect(),
                rtt_s: self.samples.iter().map(|&(_, rtt_ns)| Some(rtt_ns as f64 * 1e-9)).collect(),
            }),
        })
    }
}
