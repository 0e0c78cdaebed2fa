//! The TCP segments of a capture one by one, as columns: what a comparison of two captures reads.

use std::io::Read;
use std::net::SocketAddr;

use indexmap::IndexSet;

use crate::decode::{self, Payload};
use crate::error::TraceError;
use crate::input::Input;

/// How often the caller is asked whether to stop, in packets.
const ASK: usize = 1 << 16;

/// Columns of equal length, one row per TCP segment in the order of the file.
#[derive(Debug, Default)]
pub struct Packets {
    /// Source and destination of each direction of each connection, by first appearance.
    pub ends: Vec<(SocketAddr, SocketAddr)>,
    /// Nanoseconds since 1970.
    pub at_ns: Vec<i64>,
    /// Index into `ends`.
    pub direction: Vec<u32>,
    /// Sequence number of the first byte.
    pub seq: Vec<u32>,
    /// Acknowledgement number.
    pub ack: Vec<u32>,
    /// Payload bytes by the headers.
    pub payload: Vec<u32>,
    /// FIN is bit 0, CWR bit 7, AE bit 8 (RFC 9293, section 3.1; RFC 9768).
    pub flags: Vec<u16>,
    /// The two bits of the innermost ECN field.
    pub ecn: Vec<u8>,
}

/// Reads the TCP segments of a capture, which `name` names in messages. A packet without a time has that of the packet
/// before it. `stop` is asked now and then whether to give up.
///
/// # Errors
/// The file is no capture, it cannot be read, or `stop` said yes.
pub fn packets(
    name: &str,
    source: Box<dyn Read + Send>,
    stop: &mut dyn FnMut() -> bool,
) -> Result<Packets, TraceError> {
    let mut input = Input::open(name, source, stop)?;
    let mut found = Packets::default();
    let mut ends = IndexSet::new();
    let mut at_ns = 0;
    for number in 1_usize.. {
        if number.is_multiple_of(ASK) && stop() {
            return Err(TraceError::Interrupted);
        }
        let record = match input.record() {
            Ok(Some(record)) => record,
            Ok(None) => break,
            Err(TraceError::Interrupted) if !stop() => continue,
            Err(e) => return Err(e),
        };
        at_ns = record.at_ns.unwrap_or(at_ns);
        if !decode::can_be_read(record.link_type) {
            continue;
        }
        let Ok(decoded) = decode::decode(record.link_type, record.bytes, record.length) else { continue };
        let Payload::Tcp(segment) = decoded.payload else { continue };
        let source = SocketAddr::new(decoded.ip.source(), segment.source_port);
        let destination = SocketAddr::new(decoded.ip.destination(), segment.destination_port);
        let (direction, _) = ends.insert_full((source, destination));
        found.at_ns.push(at_ns);
        found.direction.push(direction as u32);
        found.seq.push(segment.seq);
        found.ack.push(segment.ack);
        found.payload.push(segment.payload_length);
        found.flags.push(segment.flags());
        found.ecn.push(decoded.ip.ecn);
    }
    found.ends = ends.into_iter().collect();
    Ok(found)
}
