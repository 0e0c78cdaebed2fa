//! What is not TCP: UDP, QUIC, IRTT and ICMP echo.

use std::net::{IpAddr, SocketAddr};

use serde::Serialize;

/// A UDP datagram as seen in the capture.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// Nanoseconds since 1970.
    pub at_ns: i64,
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

/// Collects what the capture tells of datagrams.
#[derive(Debug, Default)]
pub struct Datagrams {
    report: Report,
}

impl Datagrams {
    /// Takes a UDP datagram, in the order of the file.
    pub fn datagram(&mut self, datagram: Datagram<'_>) {
        self.report.udp_bytes += u64::from(datagram.ip_length);
    }

    /// Takes an echo request or reply, in the order of the file.
    pub fn echo(&mut self, echo: Echo) {
        self.report.echo_bytes += u64::from(echo.ip_length);
    }

    /// What came together. `start_ns` is zero of the times in the report.
    pub fn finish(self, _start_ns: i64) -> Report {
        self.report
    }
}

/// What is not TCP.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Lengths of all UDP datagrams by their IP headers.
    pub udp_bytes: u64,
    /// Lengths of all echo requests and replies by their IP headers.
    pub echo_bytes: u64,
}
