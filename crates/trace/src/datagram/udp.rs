//! UDP flows: what each direction carried, and how evenly.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::Serialize;

use super::series::{self, Intervals, UdpSeries};
use super::{Bounds, Datagram, seconds, since};
use crate::histogram::Histogram;
use crate::intervals;
use crate::report::{Distribution, EcnCounts, Endpoint};

/// Two ends that sent each other datagrams, as seen at one interface.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UdpReport {
    /// Number of the flow among all that the capture tells, from 1.
    pub number: u64,
    /// Who sent the first datagram that was seen.
    pub client: Endpoint,
    /// The other.
    pub server: Endpoint,
    /// Index of the interface in the capture.
    pub interface: u32,
    /// `quic` or `irtt` where the datagrams show it.
    pub protocol: Option<&'static str>,
    /// When its first datagram was seen.
    pub start_s: f64,
    /// When its last datagram was seen.
    pub end_s: f64,
    /// From client to server.
    pub up: UdpDirection,
    /// From server to client.
    pub down: UdpDirection,
    /// Over time, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<UdpSeries>,
}

/// One direction of a UDP flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct UdpDirection {
    /// Datagrams.
    pub packets: u64,
    /// Their lengths by the IP headers.
    pub ip_bytes: u64,
    /// Their payload by the headers.
    pub payload_bytes: u64,
    /// IP packets between the first and the last one, without the first; absent for fewer than two.
    pub throughput_bps: Option<f64>,
    /// Their ECN fields.
    pub ecn: EcnCounts,
    /// Time between datagrams.
    pub gap_s: Distribution,
    /// Datagrams per burst.
    pub bursts: Distribution,
}

#[derive(Debug, Default)]
struct Direction {
    packets: u64,
    ip_bytes: u64,
    payload_bytes: u64,
    first_ip_length: u32,
    first_ns: i64,
    /// Of the packet before, and of the latest.
    last_ns: i64,
    latest_ns: i64,
    ecn: EcnCounts,
    gaps: Histogram,
    bursts: Histogram,
    burst: u64,
}

/// A flow that is being followed.
#[derive(Debug)]
pub(super) struct Flow {
    client: SocketAddr,
    server: SocketAddr,
    interface: u32,
    pub protocol: Option<&'static str>,
    /// QUIC connections on it, by their index.
    pub connections: Vec<usize>,
    /// Whether this is the first datagram.
    pub new: bool,
    /// Time of the first packet in the file, from which intervals count, and of the earliest and the latest.
    first_ns: i64,
    start_ns: i64,
    end_ns: i64,
    ways: [Direction; 2],
    intervals: Option<Intervals>,
}

/// All flows, in order of their first datagrams.
#[derive(Debug, Default)]
pub(super) struct Flows {
    all: Vec<Flow>,
    by_ends: BTreeMap<(SocketAddr, SocketAddr, u32), usize>,
    /// Ends of the datagram before, and its flow.
    last: Option<(SocketAddr, SocketAddr, u32, usize)>,
}

impl Flows {
    /// Counts a datagram and gives its flow; None beyond the bound.
    pub fn datagram(&mut self, datagram: &Datagram<'_>, bounds: &mut Bounds) -> Option<&mut Flow> {
        let (source, destination, interface) = (datagram.source, datagram.destination, datagram.interface);
        let index = match self.last {
            Some((a, b, at, index))
                if at == interface
                    && ((a, b) == (source, destination) || (b, a) == (source, destination)) =>
            {
                index
            }
            _ => {
                let ends = (source.min(destination), source.max(destination), interface);
                if let Some(&index) = self.by_ends.get(&ends) {
                    index
                } else if self.all.len() < bounds.flows {
                    self.all.push(Flow::new(datagram, bounds));
                    self.by_ends.insert(ends, self.all.len() - 1);
                    self.all.len() - 1
                } else {
                    return None;
                }
            }
        };
        self.last = Some((source, destination, interface, index));
        let flow = &mut self.all[index];
        let up = flow.client == source;
        flow.new = flow.ways.iter().all(|way| way.packets == 0);
        flow.start_ns = flow.start_ns.min(datagram.at_ns);
        flow.end_ns = flow.end_ns.max(datagram.at_ns);
        flow.ways[usize::from(!up)].add(datagram, bounds.burst_gap_ns);
        if let Some(intervals) = &mut flow.intervals {
            let after_ns = datagram.at_ns.saturating_sub(flow.first_ns);
            let (bytes, marks) = &mut intervals.at(after_ns, &mut bounds.points)[usize::from(!up)];
            *bytes += u64::from(datagram.ip_length);
            *marks += u64::from(datagram.ecn & 3 == 3);
        }
        Some(flow)
    }

    pub fn finish(self, start_ns: i64) -> Vec<UdpReport> {
        let most =
            intervals::most(self.all.iter().filter_map(|flow| flow.intervals.as_ref()).map(Intervals::span));
        self.all.into_iter().map(|flow| flow.finish(start_ns, most)).collect()
    }
}

impl Flow {
    fn new(first: &Datagram<'_>, bounds: &Bounds) -> Flow {
        Flow {
            client: first.source,
            server: first.destination,
            interface: first.interface,
            protocol: None,
            connections: Vec::new(),
            new: true,
            first_ns: first.at_ns,
            start_ns: first.at_ns,
            end_ns: first.at_ns,
            ways: Default::default(),
            intervals: bounds.interval_ns.map(|length| Intervals::new(length.min(i64::MAX as u64) as i64)),
        }
    }

    fn finish(self, start_ns: i64, intervals: usize) -> UdpReport {
        let [up, down] = self.ways.map(Direction::finish);
        let shift_ns = self.first_ns.saturating_sub(start_ns);
        UdpReport {
            number: 0,
            client: self.client.into(),
            server: self.server.into(),
            interface: self.interface,
            protocol: self.protocol,
            start_s: seconds(self.start_ns, start_ns),
            end_s: seconds(self.end_ns, start_ns),
            up,
            down,
            series: self.intervals.map(|kept| series::finish(&kept.finish(intervals), shift_ns)),
        }
    }
}

impl Direction {
    fn add(&mut self, datagram: &Datagram<'_>, burst_gap_ns: u64) {
        if self.packets == 0 {
            (self.first_ns, self.first_ip_length) = (datagram.at_ns, datagram.ip_length);
            self.burst = 1;
        } else {
            let gap = since(datagram.at_ns, self.last_ns);
            self.gaps.add(gap);
            if gap > burst_gap_ns {
                self.bursts.add(self.burst);
                self.burst = 0;
            }
            self.burst += 1;
        }
        self.last_ns = datagram.at_ns;
        self.latest_ns = if self.packets == 0 { datagram.at_ns } else { self.latest_ns.max(datagram.at_ns) };
        self.packets += 1;
        self.ip_bytes += u64::from(datagram.ip_length);
        self.payload_bytes += u64::from(datagram.payload_length);
        self.ecn.add(datagram.ecn);
    }

    fn finish(mut self) -> UdpDirection {
        if self.burst > 0 {
            self.bursts.add(self.burst);
        }
        let lasted = since(self.latest_ns, self.first_ns);
        let behind = self.ip_bytes - u64::from(self.first_ip_length);
        UdpDirection {
            packets: self.packets,
            ip_bytes: self.ip_bytes,
            payload_bytes: self.payload_bytes,
            throughput_bps: (lasted > 0).then(|| behind as f64 * 8e9 / lasted as f64),
            ecn: self.ecn,
            gap_s: self.gaps.distribution(1e-9),
            bursts: self.bursts.distribution(1.0),
        }
    }
}
