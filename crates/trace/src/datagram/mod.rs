//! What is not TCP: UDP, QUIC, IRTT and ICMP echo.

mod echo;
mod irtt;
mod long_header;
mod quic;
mod requests;
mod series;
mod spin;
mod udp;

use std::net::{IpAddr, SocketAddr};

use serde::Serialize;

use crate::intervals::ALL_POINTS;
use crate::options::Options;
use crate::report::{Distribution, Endpoint};
pub use echo::EchoReport;
pub use irtt::{IrttParameters, IrttReport};
pub use quic::{QuicDirection, QuicHandshake, QuicReport};
pub use requests::{RequestCounts, Samples};
pub use series::UdpSeries;
pub use spin::SpinReport;
pub use udp::{UdpDirection, UdpReport};

/// A UDP datagram as seen in the capture.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// Nanoseconds since 1970.
    pub at_ns: i64,
    /// Index of the interface in [`crate::report::Capture::interfaces`].
    pub interface: u32,
    /// Who sent it.
    pub source: SocketAddr,
    /// Who is to receive it.
    pub destination: SocketAddr,
    /// The two bits of the IP header's ECN field.
    pub ecn: u8,
    /// Length by the IP header, in bytes.
    pub ip_length: u32,
    /// Length of the payload by the headers, in bytes.
    pub payload_length: u32,
    /// What the capture kept of the payload.
    pub payload: &'a [u8],
}

/// An ICMP or ICMPv6 echo request or reply.
#[derive(Clone, Copy, Debug)]
pub struct Echo {
    /// Nanoseconds since 1970.
    pub at_ns: i64,
    /// Index of the interface in [`crate::report::Capture::interfaces`].
    pub interface: u32,
    /// Who sent it.
    pub source: IpAddr,
    /// Who is to receive it.
    pub destination: IpAddr,
    /// The identifier of the echo.
    pub identifier: u16,
    /// Its sequence number.
    pub sequence: u16,
    /// Whether it is a reply.
    pub reply: bool,
    /// Length by the IP header, in bytes.
    pub ip_length: u32,
}

/// Collects what the capture tells of datagrams, in memory that the bounds of [`Options`] and the constants of this
/// module's parts limit, whatever the datagrams hold.
#[derive(Debug)]
pub struct Datagrams {
    bounds: Bounds,
    udp: udp::Flows,
    quic: quic::Connections,
    irtt: irtt::Tests,
    echo: echo::Sessions,
    udp_bytes: u64,
    echo_bytes: u64,
    beyond: u64,
}

/// What may still be kept for all flows together.
#[derive(Debug)]
struct Bounds {
    /// Flows, tests and sessions that are followed.
    flows: usize,
    /// The longest gap between two packets of one burst, in nanoseconds.
    burst_gap_ns: u64,
    /// Length of the intervals of series in nanoseconds; without it none are kept.
    interval_ns: Option<u64>,
    /// Requests that wait for a reply.
    waiting: usize,
    /// Samples over time.
    samples: usize,
    /// Intervals of UDP flows over time.
    points: usize,
}

/// Requests of all tests and sessions together that are held until their reply comes.
const MOST_WAITING: usize = 1 << 20;
/// Round-trip times of all tests and connections together that are told one by one.
const MOST_SAMPLES: usize = 1 << 22;

impl Default for Datagrams {
    fn default() -> Datagrams {
        Datagrams::new(&Options::default())
    }
}

impl Datagrams {
    /// Begins with the bounds and intervals of the options.
    pub fn new(options: &Options) -> Datagrams {
        let bounds = Bounds {
            flows: options.flows,
            burst_gap_ns: nanoseconds(options.burst_gap_s),
            interval_ns: options.interval_s.map(|interval| nanoseconds(interval).max(1)),
            waiting: MOST_WAITING,
            samples: MOST_SAMPLES,
            points: ALL_POINTS,
        };
        Datagrams {
            bounds,
            udp: udp::Flows::default(),
            quic: quic::Connections::default(),
            irtt: irtt::Tests::default(),
            echo: echo::Sessions::default(),
            udp_bytes: 0,
            echo_bytes: 0,
            beyond: 0,
        }
    }

    /// Takes a UDP datagram, in the order of the file.
    pub fn datagram(&mut self, datagram: Datagram<'_>) {
        self.udp_bytes += u64::from(datagram.ip_length);
        let Some(flow) = self.udp.datagram(&datagram, &mut self.bounds) else {
            self.beyond += 1;
            return;
        };
        if self.irtt.datagram(&datagram, &mut self.bounds) {
            flow.protocol = Some("irtt");
        } else if flow.protocol != Some("irtt") && self.quic.datagram(&datagram, flow, &mut self.bounds) {
            flow.protocol = Some("quic");
        }
    }

    /// Takes an echo request or reply, in the order of the file.
    pub fn echo(&mut self, echo: Echo) {
        self.echo_bytes += u64::from(echo.ip_length);
        if !self.echo.echo(&echo, &mut self.bounds) {
            self.beyond += 1;
        }
    }

    /// What came together. `start_ns` is zero of the times in the report, and `end_ns` the time of the last packet of
    /// the capture: whoever asked shortly before it may yet have got a reply.
    pub fn finish(mut self, start_ns: i64, end_ns: i64) -> Report {
        Report {
            udp_bytes: self.udp_bytes,
            echo_bytes: self.echo_bytes,
            beyond: self.beyond,
            udp: self.udp.finish(start_ns),
            quic: self.quic.finish(start_ns, &self.bounds),
            irtt: self.irtt.finish(start_ns, end_ns, &mut self.bounds),
            echo: self.echo.finish(start_ns, end_ns, &mut self.bounds),
        }
    }
}

/// What is not TCP. Flows, connections, tests and sessions stand in order of their first packets.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// Lengths of all UDP datagrams by their IP headers.
    pub udp_bytes: u64,
    /// Lengths of all echo requests and replies by their IP headers.
    pub echo_bytes: u64,
    /// Datagrams and echoes of flows and sessions beyond the number that is followed: they are in the totals only.
    pub beyond: u64,
    /// UDP flows, those of QUIC and IRTT among them.
    pub udp: Vec<UdpReport>,
    /// QUIC connections.
    pub quic: Vec<QuicReport>,
    /// Tests of irtt.
    pub irtt: Vec<IrttReport>,
    /// Echo requests of one sender to one address with one identifier, of ICMP and ICMPv6.
    pub echo: Vec<EchoReport>,
}

impl Report {
    /// The numbers of all flows, in the order of the lists.
    pub fn numbers(&mut self) -> impl Iterator<Item = &mut u64> {
        let udp = self.udp.iter_mut().map(|flow| &mut flow.number);
        let quic = self.quic.iter_mut().map(|connection| &mut connection.number);
        let irtt = self.irtt.iter_mut().map(|test| &mut test.number);
        udp.chain(quic).chain(irtt).chain(self.echo.iter_mut().map(|session| &mut session.number))
    }
}

fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

fn seconds(at_ns: i64, start_ns: i64) -> f64 {
    at_ns.saturating_sub(start_ns) as f64 / 1e9
}

/// How long after `earlier` it is, 0 if it is before that.
fn since(at_ns: i64, earlier: i64) -> u64 {
    at_ns.saturating_sub(earlier).max(0) as u64
}

impl From<SocketAddr> for Endpoint {
    fn from(address: SocketAddr) -> Endpoint {
        Endpoint { address: address.ip().to_string(), port: address.port() }
    }
}

/// Whether there is nothing to tell, so that a key may be left out.
fn is_empty(distribution: &Distribution) -> bool {
    distribution.n == 0
}

#[cfg(test)]
mod tests;
