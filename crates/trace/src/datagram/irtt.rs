//! Tests of irtt, known by its magic bytes: round-trip times, one-way delays and losses.
//!
//! The format is that of packet.go and params.go of irtt 0.9, protocol 1; all numbers are little-endian:
//!
//! ```text
//! 14 a7 5b | flags | HMAC-MD5, 16 bytes, if flag 8 is set | token, 8 | sequence number, 4 | fields | payload
//! ```
//!
//! Flags are 1 open, 2 reply, 4 close, 8 HMAC. The fields, all of which may be missing: count of received requests (4),
//! window of received requests (8), then times of the server's two clocks, 8 bytes each: received (wall, monotonic), or
//! midway (wall, monotonic), and sent (wall, monotonic). Which of them there are is agreed when the test is opened; a
//! request has the same fields, zeroed. An HMAC is not verified, since nobody knows the key here, and hides nothing.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::Serialize;

use super::requests::{Reply, RequestCounts, Requests, Samples};
use super::{Bounds, Datagram, is_empty, seconds};
use crate::histogram::{Around, Histogram};
use crate::report::{Distribution, Endpoint};

const MAGIC: [u8; 3] = [0x14, 0xa7, 0x5b];
const OPEN: u8 = 1;
const REPLY: u8 = 2;
const CLOSE: u8 = 4;
const HMAC: u8 = 8;
/// Two clocks that are further apart than a day are not clocks of the same time.
const DAY_NS: u64 = 86_400_000_000_000;
/// Bytes of an echo without HMAC whose fields are all there: irtt's default.
const ALL_FIELDS: u32 = 60;

/// One test of irtt: one client that asks one server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IrttReport {
    /// Number of the flow among all that the capture tells, from 1.
    pub number: u64,
    /// Who asks.
    pub client: Endpoint,
    /// Who replies.
    pub server: Endpoint,
    /// Index of the interface in the capture.
    pub interface: u32,
    /// The token of the test, in hexadecimal.
    pub token: String,
    /// Whether its packets carry an HMAC.
    pub hmac: bool,
    /// What was agreed; absent if the opening is missing and the packets do not show it.
    pub parameters: Option<IrttParameters>,
    /// When the first packet was seen.
    pub start_s: f64,
    /// When the last packet was seen.
    pub end_s: f64,
    /// Requests and replies.
    #[serde(flatten)]
    pub counts: RequestCounts,
    /// Of the lost ones, those which the server said it never had.
    pub lost_up: u64,
    /// Of the lost ones, those which the server said it had.
    pub lost_down: u64,
    /// From request to reply at this point, less the time in the server where its stamps tell it, as irtt does.
    pub rtt_s: Distribution,
    /// |RTT - RTT before| (RFC 3393).
    pub ipdv_s: Distribution,
    /// Between the server's two stamps.
    #[serde(skip_serializing_if = "is_empty")]
    pub server_s: Distribution,
    /// From this point to the server, by its wall clock and that of the capture: right only if both agree.
    #[serde(skip_serializing_if = "is_empty")]
    pub to_server_s: Distribution,
    /// From the server to this point, likewise.
    #[serde(skip_serializing_if = "is_empty")]
    pub from_server_s: Distribution,
    /// Every request, if series were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<Samples>,
}

/// What client and server agreed on.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct IrttParameters {
    /// `handshake` if the server's reply to the opening was seen, `assumed` if the packets look like irtt's default.
    pub chosen_by: &'static str,
    /// Between requests.
    pub interval_s: Option<f64>,
    /// Of the whole test.
    pub duration_s: Option<f64>,
    /// Bytes of payload of a request.
    pub length: Option<u64>,
    /// `none`, `count`, `window` or `both`.
    pub received_stats: &'static str,
    /// `none`, `send`, `receive`, `both` or `midpoint`: when the server takes the time.
    pub stamp_at: &'static str,
    /// `wall`, `monotonic` or `both`.
    pub clock: &'static str,
}

/// Which fields there are, by irtt's own numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Fields {
    received_stats: u8,
    stamp_at: u8,
    clock: u8,
}

/// What the fields of a reply say.
#[derive(Debug, Default, PartialEq)]
struct Told {
    window: Option<u64>,
    received_wall: Option<i64>,
    received_monotonic: Option<i64>,
    sent_wall: Option<i64>,
    sent_monotonic: Option<i64>,
}

#[derive(Debug)]
struct Test {
    client: SocketAddr,
    server: SocketAddr,
    interface: u32,
    token: u64,
    hmac: bool,
    fields: Option<Fields>,
    parameters: IrttParameters,
    start_ns: i64,
    end_ns: i64,
    requests: Requests,
    server_ns: Histogram,
    to_server: Around,
    from_server: Around,
}

/// All tests, in order of their first packets.
#[derive(Debug, Default)]
pub(super) struct Tests {
    tests: Vec<Test>,
    by_token: BTreeMap<(SocketAddr, SocketAddr, u32, u64), usize>,
}

impl Tests {
    /// Whether the datagram is irtt's; if so it is taken.
    pub fn datagram(&mut self, datagram: &Datagram<'_>, bounds: &mut Bounds) -> bool {
        let Some((flags, rest)) = flags(datagram.payload) else { return false };
        let Some((rest, token)) = number::<8>(rest) else { return false };
        let reply = flags & REPLY != 0;
        let (client, server) = if reply {
            (datagram.destination, datagram.source)
        } else {
            (datagram.source, datagram.destination)
        };
        // The request that opens a test has no token yet.
        if flags & OPEN != 0 && !reply {
            return true;
        }
        let ends = (client, server, datagram.interface, token);
        let index = match self.by_token.get(&ends) {
            Some(&index) => index,
            None if self.tests.len() >= bounds.flows => return true,
            None => {
                self.tests.push(Test::new(client, server, datagram, token));
                self.by_token.insert(ends, self.tests.len() - 1);
                self.tests.len() - 1
            }
        };
        let test = &mut self.tests[index];
        test.start_ns = test.start_ns.min(datagram.at_ns);
        test.end_ns = test.end_ns.max(datagram.at_ns);
        test.hmac = flags & HMAC != 0;
        if flags & OPEN != 0 {
            test.open(rest);
        } else if let (Some((rest, sequence)), true) = (number::<4>(rest), flags & CLOSE == 0 || reply) {
            // A server that ends a test early says so in its last reply; a client that does has no sequence number.
            test.echo(datagram, reply, sequence as u32, rest, bounds);
        }
        true
    }

    pub fn finish(self, start_ns: i64, end_ns: i64, bounds: &mut Bounds) -> Vec<IrttReport> {
        self.tests.into_iter().map(|test| test.finish(start_ns, end_ns, bounds)).collect()
    }
}

impl Test {
    fn new(client: SocketAddr, server: SocketAddr, datagram: &Datagram<'_>, token: u64) -> Test {
        Test {
            client,
            server,
            interface: datagram.interface,
            token,
            hmac: false,
            fields: None,
            parameters: IrttParameters::default(),
            start_ns: datagram.at_ns,
            end_ns: datagram.at_ns,
            requests: Requests::default(),
            server_ns: Histogram::default(),
            to_server: Around::default(),
            from_server: Around::default(),
        }
    }

    /// Reads the parameters that the server agreed to.
    fn open(&mut self, mut rest: &[u8]) {
        let mut fields = Fields { received_stats: 0, stamp_at: 0, clock: 0 };
        let mut parameters = IrttParameters { chosen_by: "handshake", ..IrttParameters::default() };
        while let Some((after, kind)) = varint(rest) {
            let Some((after, value)) = varint(after) else { break };
            // Zigzag, as Go's signed varints; number 9 is a text, and what the server fills replies with.
            let value_ns = (value >> 1) as i64 ^ -((value & 1) as i64);
            rest = match kind {
                9 => after.get(usize::try_from(value).unwrap_or(usize::MAX)..).unwrap_or_default(),
                _ => after,
            };
            match kind {
                2 => parameters.duration_s = Some(value_ns as f64 / 1e9),
                3 => parameters.interval_s = Some(value_ns as f64 / 1e9),
                4 => parameters.length = u64::try_from(value_ns).ok(),
                5 => fields.received_stats = value_ns as u8,
                6 => fields.stamp_at = value_ns as u8,
                7 => fields.clock = value_ns as u8,
                _ => {}
            }
        }
        self.agree(fields, &parameters);
    }

    fn agree(&mut self, fields: Fields, parameters: &IrttParameters) {
        let name = |names: &[&'static str], at: u8| names.get(usize::from(at)).copied().unwrap_or("unknown");
        self.fields = Some(fields);
        self.parameters = IrttParameters {
            received_stats: name(&["none", "count", "window", "both"], fields.received_stats),
            stamp_at: name(&["none", "send", "receive", "both", "midpoint"], fields.stamp_at),
            clock: name(&["none", "wall", "monotonic", "both"], fields.clock),
            ..parameters.clone()
        };
    }

    fn echo(
        &mut self,
        datagram: &Datagram<'_>,
        reply: bool,
        sequence: u32,
        rest: &[u8],
        bounds: &mut Bounds,
    ) {
        let sequence = self.requests.whole(sequence, 32);
        if !reply {
            self.requests.request(sequence, datagram.at_ns, bounds);
            return;
        }
        if self.fields.is_none() {
            self.assume(datagram, rest);
        }
        let told = self.fields.map(|fields| told(fields, rest)).unwrap_or_default();
        let within = match (told.received_monotonic, told.sent_monotonic, told.received_wall, told.sent_wall)
        {
            (Some(received), Some(sent), ..) | (.., Some(received), Some(sent)) => sent.checked_sub(received),
            _ => None,
        };
        let within = within.and_then(|within| u64::try_from(within).ok());
        let Reply::First { request_ns } = self.requests.reply(sequence, datagram.at_ns, within.unwrap_or(0))
        else {
            return;
        };
        if let Some(within) = within {
            self.server_ns.add(within);
        }
        // Midway through the server is when it received and when it sent.
        if let Some(received) = told.received_wall.or(told.sent_wall) {
            self.to_server.add(received.saturating_sub(request_ns));
        }
        if let Some(sent) = told.sent_wall.or(told.received_wall) {
            self.from_server.add(datagram.at_ns.saturating_sub(sent));
        }
        if let Some(window) = told.window.filter(|window| window & 1 == 1) {
            for back in 1..64 {
                self.requests.arrived(sequence - back, window >> back & 1 == 1);
            }
        }
    }

    /// Takes irtt's default if the reply is long enough for it, and if the times in it are times of this day, in order.
    fn assume(&mut self, datagram: &Datagram<'_>, rest: &[u8]) {
        let header = if self.hmac { 16 } else { 0 };
        let fields = Fields { received_stats: 3, stamp_at: 3, clock: 3 };
        let told = told(fields, rest);
        let near = |wall: Option<i64>| wall.is_some_and(|wall| wall.abs_diff(datagram.at_ns) < DAY_NS);
        let ordered = told.received_wall <= told.sent_wall && told.received_monotonic <= told.sent_monotonic;
        if datagram.payload_length >= ALL_FIELDS + header
            && near(told.received_wall)
            && near(told.sent_wall)
            && ordered
        {
            self.agree(fields, &IrttParameters { chosen_by: "assumed", ..IrttParameters::default() });
        }
    }

    fn finish(mut self, start_ns: i64, end_ns: i64, bounds: &mut Bounds) -> IrttReport {
        let (counts, samples) = self.requests.finish(start_ns, end_ns, bounds);
        IrttReport {
            number: 0,
            client: self.client.into(),
            server: self.server.into(),
            interface: self.interface,
            token: format!("{:016x}", self.token),
            hmac: self.hmac,
            parameters: self.fields.map(|_| self.parameters),
            start_s: seconds(self.start_ns, start_ns),
            end_s: seconds(self.end_ns, start_ns),
            counts,
            lost_up: self.requests.lost_up,
            lost_down: self.requests.lost_down,
            rtt_s: self.requests.rtt().distribution(1e-9),
            ipdv_s: self.requests.ipdv().distribution(1e-9),
            server_s: self.server_ns.distribution(1e-9),
            to_server_s: self.to_server.distribution(1e-9),
            from_server_s: self.from_server.distribution(1e-9),
            samples,
        }
    }
}

/// The flags of a packet of irtt, and what follows them and the HMAC.
fn flags(payload: &[u8]) -> Option<(u8, &[u8])> {
    let (&flags, rest) = payload.strip_prefix(&MAGIC)?.split_first()?;
    if flags > OPEN | REPLY | CLOSE | HMAC {
        return None;
    }
    Some((flags, if flags & HMAC == 0 { rest } else { rest.get(16..)? }))
}

/// A little-endian number of N bytes, and what follows it.
fn number<const N: usize>(bytes: &[u8]) -> Option<(&[u8], u64)> {
    let (number, rest) = bytes.split_at_checked(N)?;
    let mut whole = [0; 8];
    whole[..N].copy_from_slice(number);
    Some((rest, u64::from_le_bytes(whole)))
}

/// A number of seven bits per byte, and what follows it; None if it is cut off or has more than 64 bits.
fn varint(bytes: &[u8]) -> Option<(&[u8], u64)> {
    let mut value = 0;
    for (at, &byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * at).min(63);
        if byte < 0x80 {
            return Some((&bytes[at + 1..], value));
        }
    }
    None
}

/// What the fields of a reply say, as far as they were captured; a time of 0 is none.
fn told(fields: Fields, rest: &[u8]) -> Told {
    let (wall, monotonic) = (fields.clock & 1 != 0, fields.clock & 2 != 0);
    let midway = fields.stamp_at == 4;
    let received = !midway && fields.stamp_at & 2 != 0;
    let sent = midway || fields.stamp_at & 1 != 0;
    let count = if fields.received_stats & 1 == 0 { 0 } else { 4 };
    let mut left = rest.get(count..).unwrap_or_default();
    let mut next = |there: bool| {
        let (after, value) = number::<8>(left).filter(|_| there)?;
        left = after;
        Some(value)
    };
    let window = next(fields.received_stats & 2 != 0);
    let mut time = |there: bool| next(there).map(|time| time as i64).filter(|&time| time > 0);
    Told {
        window,
        received_wall: time(received && wall),
        received_monotonic: time(received && monotonic),
        sent_wall: time(sent && wall),
        sent_monotonic: time(sent && monotonic),
    }
}
