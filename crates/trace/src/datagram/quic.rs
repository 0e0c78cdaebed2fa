//! QUIC: connections, versions, packets by type, and round-trip times by handshake and spin bit.
//!
//! Sources: RFC 8999 (what holds in every version), RFC 9000 (version 1), RFC 9369 (version 2). Everything but the
//! headers is encrypted, so that nothing is known of retransmissions, losses or ACKs.
//!
//! A UDP flow is QUIC's from its first datagram that begins with a whole long header of a known version. Datagrams with
//! a short header say too little to be told from others: a flow whose handshake was not captured is plain UDP, unless
//! it goes on with the connection ID of a connection that is known (a client whose address changed).

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::Serialize;

use super::long_header::{Id, Kind, LONGEST_ID, Long, is_reserved, long, version_name};
use super::spin::{Spin, SpinReport};
use super::udp::Flow;
use super::{Bounds, Datagram, is_empty, seconds, since};
use crate::histogram::Histogram;
use crate::report::{Distribution, Endpoint};

/// Connections that are followed.
const MOST_CONNECTIONS: usize = 16_384;
/// Connection IDs and versions that are kept of one connection, and connections of one flow.
const MOST_IDS: usize = 8;
/// RFC 9000 section 14.1: a client pads datagrams with an Initial packet to so many bytes.
const SMALLEST_INITIAL: u32 = 1200;
/// Shortest connection ID by which a flow is taken for the same connection as another one.
const TELLING_ID: usize = 4;

/// One connection of QUIC.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QuicReport {
    /// Number of the flow among all that the capture tells, from 1.
    pub number: u64,
    /// Who sent the first Initial packet; without one who seems to have.
    pub client: Endpoint,
    /// The other.
    pub server: Endpoint,
    /// Index of the interface in the capture.
    pub interface: u32,
    /// Further addresses that the client had, in order.
    pub moved_to: Vec<Endpoint>,
    /// Whether the client's first packet was seen.
    pub begin_seen: bool,
    /// `1`, `2`, `draft-29`, or hexadecimal, in the order in which they were seen.
    pub versions: Vec<String>,
    /// Connection IDs that the client chose for itself during the handshake, in hexadecimal; empty if it has none.
    pub client_ids: Vec<String>,
    /// Those of the server, and the one that the client made up for it first.
    pub server_ids: Vec<String>,
    /// When the first packet was seen.
    pub start_s: f64,
    /// When the last packet was seen.
    pub end_s: f64,
    /// Times of the handshake.
    pub handshake: QuicHandshake,
    /// From an edge of the spin bit that passes to the server, to its echo: the round trip between this point and the
    /// server.
    #[serde(skip_serializing_if = "is_empty")]
    pub server_rtt_s: Distribution,
    /// From an edge of the spin bit that passes to the client, to the next one of the client.
    #[serde(skip_serializing_if = "is_empty")]
    pub client_rtt_s: Distribution,
    /// From client to server.
    pub up: QuicDirection,
    /// From server to client.
    pub down: QuicDirection,
}

/// When the first packets of both ends were seen, and what that tells.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct QuicHandshake {
    /// First Initial packet of the client, after a Retry if there was one.
    pub initial_s: Option<f64>,
    /// First Initial or Handshake packet of the server after it.
    pub server_s: Option<f64>,
    /// First packet of the client after that.
    pub client_s: Option<f64>,
    /// The round trip between this point and the server.
    pub server_rtt_s: Option<f64>,
    /// The round trip between this point and the client.
    pub client_rtt_s: Option<f64>,
}

/// One direction of a connection.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct QuicDirection {
    /// UDP datagrams, each of which may hold several packets.
    pub datagrams: u64,
    /// Their payload.
    pub payload_bytes: u64,
    /// Initial packets.
    pub initial: u64,
    /// 0-RTT packets.
    pub zero_rtt: u64,
    /// Handshake packets.
    pub handshake: u64,
    /// Retry packets.
    pub retry: u64,
    /// Version Negotiation packets.
    pub version_negotiation: u64,
    /// Packets with a short header: 1-RTT.
    pub short: u64,
    /// Packets with a long header of a version whose types nobody knows here.
    pub unknown: u64,
    /// Datagrams whose further packets the capture did not keep.
    pub cut: u64,
    /// The spin bit; absent without packets with a short header.
    pub spin: Option<SpinReport>,
}

#[derive(Debug, Default)]
struct Way {
    counted: QuicDirection,
    spin: Spin,
}

#[derive(Debug)]
struct Connection {
    client: SocketAddr,
    server: SocketAddr,
    interface: u32,
    moved_to: Vec<SocketAddr>,
    begin_seen: bool,
    versions: Vec<u32>,
    client_ids: Vec<Id>,
    server_ids: Vec<Id>,
    start_ns: i64,
    end_ns: i64,
    initial_ns: Option<i64>,
    server_ns: Option<i64>,
    client_ns: Option<i64>,
    ways: [Way; 2],
    server_rtt: Histogram,
    client_rtt: Histogram,
}

/// All connections, in order of their first packets.
#[derive(Debug, Default)]
pub(super) struct Connections {
    all: Vec<Connection>,
    /// By the IDs that both ends chose, so that a connection is known on another flow.
    by_id: BTreeMap<Id, usize>,
    /// Bit n is set if an ID of n bytes is in `by_id`.
    lengths: u32,
}

impl Connections {
    /// Whether the datagram is QUIC's; if so it is taken.
    pub fn datagram(&mut self, datagram: &Datagram<'_>, flow: &mut Flow, bounds: &mut Bounds) -> bool {
        let Some(&first) = datagram.payload.first() else { return !flow.connections.is_empty() };
        let index = if first & 0x80 == 0 {
            self.of_short(datagram, flow)
        } else {
            // A server clears the bit from its first packet on, which may be the first one of a capture.
            let greased = !flow.connections.is_empty() || datagram.payload_length >= SMALLEST_INITIAL;
            long(datagram.payload, datagram.payload_length as usize, greased)
                .and_then(|header| self.of_long(&header, datagram, flow))
        };
        if let Some(index) = index {
            self.take(index, datagram, bounds);
        }
        index.is_some()
    }

    /// The connection of a datagram that begins with a short header.
    fn of_short(&mut self, datagram: &Datagram<'_>, flow: &mut Flow) -> Option<usize> {
        match flow.connections[..] {
            [one] => return Some(one),
            [.., last] => {
                let told = flow.connections.iter().copied().find(|&index| {
                    let connection = &self.all[index];
                    let ids = if connection.server == datagram.destination {
                        &connection.server_ids
                    } else {
                        &connection.client_ids
                    };
                    ids.iter().any(|id| id.length > 0 && datagram.payload[1..].starts_with(id.bytes()))
                });
                return told.or(Some(last));
            }
            [] => {}
        }
        // A client whose address changed goes on with an ID that its server knows, or the server with the client's.
        if !flow.new || datagram.payload[0] & 0x40 == 0 {
            return None;
        }
        for length in (TELLING_ID..=LONGEST_ID).filter(|&length| self.lengths >> length & 1 == 1) {
            let found = datagram.payload.get(1..=length).and_then(|id| self.by_id.get(&Id::new(id)?));
            if let Some(&index) = found {
                let connection = &mut self.all[index];
                let moved = if connection.server == datagram.destination {
                    datagram.source
                } else if connection.server == datagram.source {
                    datagram.destination
                } else {
                    continue;
                };
                if connection.moved_to.len() < MOST_IDS {
                    connection.moved_to.push(moved);
                }
                flow.connections.push(index);
                return Some(index);
            }
        }
        None
    }

    /// The connection of a datagram that begins with a long header: a new one if need be.
    fn of_long(&mut self, header: &Long, datagram: &Datagram<'_>, flow: &mut Flow) -> Option<usize> {
        let known = flow.connections.iter().rev().copied().find(|&index| {
            let connection = &self.all[index];
            let to_server = connection.server == datagram.destination;
            let (from, to) = if to_server {
                (&connection.client_ids, &connection.server_ids)
            } else {
                (&connection.server_ids, &connection.client_ids)
            };
            // A server may choose its ID once, and once more with a Retry. A client keeps its own.
            to.contains(&header.destination)
                && (!to_server || from.is_empty() || from.contains(&header.source))
                || to_server && header.source.length > 0 && from.contains(&header.source)
        });
        if let Some(index) = known {
            return Some(index);
        }
        let plausible = match header.kind {
            Kind::Initial => true,
            Kind::ZeroRtt | Kind::Handshake => !is_reserved(header.version),
            Kind::Retry | Kind::VersionNegotiation => false,
            Kind::Unknown => is_reserved(header.version) && datagram.payload_length >= SMALLEST_INITIAL,
        };
        if !plausible || flow.connections.len() >= MOST_IDS || self.all.len() >= MOST_CONNECTIONS {
            // What is no beginning belongs to the connection that is there.
            return flow.connections.last().copied();
        }
        let index = self.all.len();
        self.all.push(Connection::new(header, datagram));
        flow.connections.push(index);
        Some(index)
    }

    /// Takes a datagram of a connection apart.
    fn take(&mut self, index: usize, datagram: &Datagram<'_>, bounds: &mut Bounds) {
        let connection = &mut self.all[index];
        let to_server = connection.server == datagram.destination;
        connection.start_ns = connection.start_ns.min(datagram.at_ns);
        connection.end_ns = connection.end_ns.max(datagram.at_ns);
        let counted = &mut connection.ways[usize::from(!to_server)].counted;
        counted.datagrams += 1;
        counted.payload_bytes += u64::from(datagram.payload_length);

        let (mut rest, mut left) = (datagram.payload, datagram.payload_length as usize);
        while left > 0 {
            let Some(&first) = rest.first() else {
                connection.ways[usize::from(!to_server)].counted.cut += 1;
                break;
            };
            if first & 0x80 == 0 {
                connection.short(first & 0x20 != 0, to_server, datagram.at_ns, bounds);
                break;
            }
            let Some(header) = long(rest, left, true) else { break };
            connection.long(&header, to_server, datagram);
            if usize::from(header.source.length) >= TELLING_ID {
                self.lengths |= 1 << header.source.length;
                self.by_id.entry(header.source).or_insert(index);
            }
            let Some(length) = header.length else { break };
            left -= length;
            rest = rest.get(length..).unwrap_or_default();
        }
    }

    pub fn finish(self, start_ns: i64, bounds: &Bounds) -> Vec<QuicReport> {
        self.all.into_iter().map(|connection| connection.finish(start_ns, bounds)).collect()
    }
}

impl Connection {
    fn new(header: &Long, datagram: &Datagram<'_>) -> Connection {
        // A server's packet may be the first one of a capture: as a rule it comes from the lower port.
        let (source, destination) = (datagram.source, datagram.destination);
        let from_client = match header.kind {
            Kind::Handshake => source.port() > destination.port(),
            Kind::Initial => source.port() >= 1024 || destination.port() < 1024,
            _ => true,
        };
        let (client, server) = if from_client { (source, destination) } else { (destination, source) };
        Connection {
            client,
            server,
            interface: datagram.interface,
            moved_to: Vec::new(),
            begin_seen: from_client && matches!(header.kind, Kind::Initial | Kind::Unknown),
            versions: Vec::new(),
            client_ids: Vec::new(),
            server_ids: Vec::new(),
            start_ns: datagram.at_ns,
            end_ns: datagram.at_ns,
            initial_ns: None,
            server_ns: None,
            client_ns: None,
            ways: Default::default(),
            server_rtt: Histogram::default(),
            client_rtt: Histogram::default(),
        }
    }

    fn long(&mut self, header: &Long, to_server: bool, datagram: &Datagram<'_>) {
        let counted = &mut self.ways[usize::from(!to_server)].counted;
        *match header.kind {
            Kind::Initial => &mut counted.initial,
            Kind::ZeroRtt => &mut counted.zero_rtt,
            Kind::Handshake => &mut counted.handshake,
            Kind::Retry => &mut counted.retry,
            Kind::VersionNegotiation => &mut counted.version_negotiation,
            Kind::Unknown => &mut counted.unknown,
        } += 1;
        if header.kind != Kind::VersionNegotiation {
            note(&mut self.versions, header.version);
        }
        let (own, peer) = if to_server {
            (&mut self.client_ids, &mut self.server_ids)
        } else {
            (&mut self.server_ids, &mut self.client_ids)
        };
        if header.kind != Kind::VersionNegotiation {
            note(own, header.source);
        }
        // Until the server has chosen an ID the client makes one up for it.
        if to_server {
            note(peer, header.destination);
        }
        match (to_server, header.kind) {
            (true, Kind::Initial) if self.initial_ns.is_none() => self.initial_ns = Some(datagram.at_ns),
            (false, Kind::Retry | Kind::VersionNegotiation) if self.server_ns.is_none() => {
                self.initial_ns = None;
            }
            (false, Kind::Initial | Kind::Handshake) if self.server_ns.is_none() => {
                self.server_ns = Some(datagram.at_ns);
            }
            _ => self.answered(to_server, datagram.at_ns),
        }
    }

    fn short(&mut self, bit: bool, to_server: bool, at_ns: i64, bounds: &mut Bounds) {
        self.answered(to_server, at_ns);
        let way = &mut self.ways[usize::from(!to_server)];
        way.counted.short += 1;
        if !way.spin.packet(bit, at_ns, bounds) {
            return;
        }
        // A server repeats the client's bit, and a client inverts the server's.
        let other = self.ways[usize::from(to_server)].spin.edge();
        match other {
            Some((edge_ns, before)) if !to_server && before == bit => {
                self.server_rtt.add(since(at_ns, edge_ns));
            }
            Some((edge_ns, before)) if to_server && before != bit => {
                self.client_rtt.add(since(at_ns, edge_ns));
            }
            _ => {}
        }
    }

    /// The client's first packet after the server's first one ends what can be timed of the handshake.
    fn answered(&mut self, to_server: bool, at_ns: i64) {
        if to_server && self.server_ns.is_some() && self.client_ns.is_none() {
            self.client_ns = Some(at_ns);
        }
    }

    fn finish(self, start_ns: i64, bounds: &Bounds) -> QuicReport {
        let time = |at: Option<i64>| at.map(|at_ns| seconds(at_ns, start_ns));
        let between = |from: Option<i64>, to: Option<i64>| Some(since(to?, from?) as f64 * 1e-9);
        let spins = self.ways.iter().all(|way| way.spin.state() == "spinning");
        let component =
            |rtt: &Histogram| if spins { rtt.distribution(1e-9) } else { Distribution::default() };
        let (server_rtt_s, client_rtt_s) = (component(&self.server_rtt), component(&self.client_rtt));
        let [up, down] =
            self.ways.map(|way| QuicDirection { spin: way.spin.finish(start_ns, bounds), ..way.counted });
        QuicReport {
            number: 0,
            client: self.client.into(),
            server: self.server.into(),
            interface: self.interface,
            moved_to: self.moved_to.into_iter().map(Endpoint::from).collect(),
            begin_seen: self.begin_seen,
            versions: self.versions.into_iter().map(version_name).collect(),
            client_ids: self.client_ids.iter().map(Id::hexadecimal).collect(),
            server_ids: self.server_ids.iter().map(Id::hexadecimal).collect(),
            start_s: seconds(self.start_ns, start_ns),
            end_s: seconds(self.end_ns, start_ns),
            handshake: QuicHandshake {
                initial_s: time(self.initial_ns),
                server_s: time(self.server_ns),
                client_s: time(self.client_ns),
                server_rtt_s: between(self.initial_ns, self.server_ns),
                client_rtt_s: between(self.server_ns, self.client_ns),
            },
            server_rtt_s,
            client_rtt_s,
            up,
            down,
        }
    }
}

fn note<T: PartialEq>(several: &mut Vec<T>, one: T) {
    if several.len() < MOST_IDS && !several.contains(&one) {
        several.push(one);
    }
}
