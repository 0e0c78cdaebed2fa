//! TCP flows: who they are, and what happens on each.
//!
//! What is remembered of a flow is bounded: [`sequence::OUTSTANDING`] segments under way, [`sequence::HOLES`] holes and
//! [`sequence::SACKED`] ranges of SACK, [`rtt::WAITING`] timestamps, all per direction; histograms over the span of their
//! values; and [`intervals::POINTS`] intervals. That is 8 kB for a flow of a few packets, some 60 kB for one that fills
//! large windows, and half a megabyte with series.

mod direction;
mod feedback;
mod flow;
mod negotiation;
mod opening;
mod rtt;
mod sequence;
mod series;
mod window;

use indexmap::IndexMap;

pub use flow::Seen;
use flow::Track;

use crate::decode::{Address, Ip, Segment, Tunnels};
use crate::intervals;
use crate::options::Options;
use crate::report::{EcnMode, Endpoint, Flow};

/// Where packets belong: both ends, the lower first, and where they were seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    low: (Address, u16),
    high: (Address, u16),
    /// The interface of the capture, and the device within it (cooked v2).
    place: (u32, u32),
    tunnels: Tunnels,
}

impl Key {
    /// The key of a segment, and whether it comes from the first of the two ends.
    fn of(segment: &Segment<'_>, ip: &Ip<'_>, place: (u32, u32), tunnels: Tunnels) -> (Key, bool) {
        let from = (ip.from, segment.source_port);
        let to = (ip.to, segment.destination_port);
        let first = from <= to;
        let (low, high) = if first { (from, to) } else { (to, from) };
        (Key { low, high, place, tunnels }, first)
    }

    fn interface(&self) -> u32 {
        self.place.0
    }

    /// Client and server.
    fn ends(&self, client_first: bool, v6: bool) -> (Endpoint, Endpoint) {
        let low = flow::endpoint(crate::decode::address(self.low.0, v6), self.low.1);
        let high = flow::endpoint(crate::decode::address(self.high.0, v6), self.high.1);
        if client_first { (low, high) } else { (high, low) }
    }
}

/// What holds for all flows.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    start_ns: i64,
    window_ns: i64,
    burst_gap_ns: i64,
    interval_ns: Option<i64>,
    ecn: Option<EcnMode>,
    flows: usize,
}

impl Settings {
    fn new(options: &Options, start_ns: i64) -> Settings {
        let ns = |seconds: f64| ((seconds * 1e9).round() as i64).max(1);
        Settings {
            start_ns,
            window_ns: ns(options.window_s),
            burst_gap_ns: ns(options.burst_gap_s),
            interval_ns: options.interval_s.map(ns),
            ecn: options.ecn,
            flows: options.flows,
        }
    }
}

/// All flows of a capture.
#[derive(Debug)]
pub struct Flows {
    settings: Settings,
    /// The last flow of each key.
    index: IndexMap<Key, usize>,
    tracks: Vec<Track>,
    last: Option<(Key, usize)>,
    /// Intervals that series may still have.
    points: usize,
    /// Packets of flows beyond those that are followed.
    pub beyond: u64,
}

impl Flows {
    /// Begins with the time of the capture's first packet.
    pub fn new(options: &Options, start_ns: i64) -> Flows {
        Flows {
            settings: Settings::new(options, start_ns),
            index: IndexMap::new(),
            tracks: Vec::new(),
            last: None,
            points: intervals::ALL_POINTS,
            beyond: 0,
        }
    }

    /// Takes a segment, which was seen at an interface and a device within it.
    pub fn segment(&mut self, seen: &Seen<'_>, place: (u32, u32), tunnels: Tunnels) {
        let (key, first) = Key::of(&seen.segment, &seen.ip, place, tunnels);
        let known = match self.last {
            Some((last, at)) if last == key => Some(at),
            _ => self.index.get(&key).copied(),
        };
        let at = match known {
            Some(at) if !self.tracks[at].is_over(first, &seen.segment) => at,
            _ => {
                if self.tracks.len() == self.settings.flows {
                    self.beyond += 1;
                    return;
                }
                self.tracks.push(Track::new(key, first, seen, &self.settings));
                self.index.insert(key, self.tracks.len() - 1);
                self.tracks.len() - 1
            }
        };
        self.last = Some((key, at));
        self.tracks[at].take(first, seen, &self.settings, &mut self.points);
    }

    /// As they are told, in order of their first packets; times count from `zero_ns`.
    pub fn finish(self, zero_ns: i64) -> Vec<Flow> {
        let settings = self.settings;
        let most = intervals::most(self.tracks.iter().map(Track::span));
        self.tracks.into_iter().map(|track| track.finish(&settings, zero_ns, most)).collect()
    }
}
