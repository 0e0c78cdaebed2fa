//! Packet captures in, per-flow congestion statistics out.
//!
//! A capture is read once from front to back and never held: memory grows with the number of flows, up to a bound, and
//! not with the number of packets.

mod clock;
pub mod datagram;
pub mod decode;
pub mod error;
pub mod histogram;
pub mod input;
mod intervals;
pub mod options;
pub mod packets;
pub mod report;
pub mod tcp;

use std::io::Read;

use clock::{Clock, Step};
use datagram::{Datagram, Datagrams, Echo};
use decode::{Decoded, NotIp, Payload};
use error::TraceError;
use input::{Input, Record};
use options::Options;
use report::{Capture, Flow, Report};
use tcp::{Flows, Seen};

/// The form of the report.
const FORMAT: u32 = 1;
/// Most sentences about a file.
const MOST_NOTES: usize = 32;
/// How often the caller is asked whether to stop, in packets.
const ASK: u64 = 1 << 16;

/// Reads a capture, which `name` names in messages.
///
/// `stop` is asked now and then, and whenever a signal interrupts reading, whether to give up.
///
/// # Errors
/// The file is no capture, it cannot be read, an option is out of range, or `stop` said yes.
pub fn trace(
    name: &str,
    source: Box<dyn Read + Send>,
    options: &Options,
    stop: &mut dyn FnMut() -> bool,
) -> Result<Report, TraceError> {
    options.check()?;
    let mut input = Input::open(name, source, stop)?;
    let mut reading = Reading::new(options);
    loop {
        match input.record() {
            Ok(Some(record)) => reading.record(&record),
            Ok(None) => break,
            Err(TraceError::Interrupted) if !stop() => continue,
            Err(e) => return Err(e),
        }
        if reading.capture.packets.is_multiple_of(ASK) && stop() {
            return Err(TraceError::Interrupted);
        }
    }
    Ok(reading.finish(input))
}

/// What came together so far.
struct Reading<'a> {
    options: &'a Options,
    capture: Capture,
    flows: Option<Flows>,
    datagrams: Datagrams,
    /// By interface, and where the first of them was set.
    clocks: Vec<Option<Clock>>,
    first_step: Option<(usize, Step)>,
    /// Time of the packet before in the file.
    raw_ns: i64,
    /// Times as they are told.
    last_ns: i64,
    earliest_ns: i64,
    latest_ns: i64,
}

impl<'a> Reading<'a> {
    fn new(options: &'a Options) -> Reading<'a> {
        Reading {
            options,
            capture: Capture::default(),
            flows: None,
            datagrams: Datagrams::new(options),
            clocks: Vec::new(),
            first_step: None,
            raw_ns: 0,
            last_ns: 0,
            earliest_ns: 0,
            latest_ns: 0,
        }
    }

    /// The time of a packet, and what it says of the order of the file.
    fn time(&mut self, at_ns: Option<i64>, interface: usize) -> i64 {
        let raw_ns = at_ns.unwrap_or(self.raw_ns);
        let capture = &mut self.capture;
        if capture.packets == 0 {
            (self.raw_ns, self.last_ns, self.earliest_ns, self.latest_ns) = (raw_ns, raw_ns, raw_ns, raw_ns);
        }
        if raw_ns < self.raw_ns {
            capture.backwards += 1;
            let step_s = self.raw_ns.saturating_sub(raw_ns) as f64 * 1e-9;
            capture.backwards_max_s = capture.backwards_max_s.max(step_s);
        }
        self.raw_ns = raw_ns;
        if at_ns.is_some() {
            self.last_ns = self.told(raw_ns, interface);
        }
        self.earliest_ns = self.earliest_ns.min(self.last_ns);
        self.latest_ns = self.latest_ns.max(self.last_ns);
        self.last_ns
    }

    /// A time of the file by the clock of its interface.
    fn told(&mut self, raw_ns: i64, interface: usize) -> i64 {
        if self.clocks.len() <= interface {
            self.clocks.resize(interface + 1, None);
        }
        let clock = self.clocks[interface].get_or_insert_with(|| Clock::new(raw_ns, self.last_ns));
        let (at_ns, step) = clock.read(raw_ns);
        if let Some(step) = step {
            self.capture.clock_steps += 1;
            self.first_step.get_or_insert((interface, step));
        }
        at_ns
    }

    fn record(&mut self, record: &Record<'_>) {
        let at_ns = self.time(record.at_ns, record.interface);
        let capture = &mut self.capture;
        capture.packets += 1;
        capture.frame_bytes += u64::from(record.length);
        capture.captured_bytes += record.bytes.len() as u64;
        if !decode::can_be_read(record.link_type) {
            capture.unread += 1;
            return;
        }
        let decoded = match decode::decode(record.link_type, record.bytes, record.length) {
            Ok(decoded) => decoded,
            Err(NotIp::Other) => {
                capture.not_ip += 1;
                return;
            }
            Err(NotIp::Malformed) => {
                capture.malformed += 1;
                return;
            }
        };
        let Decoded { outer, ip, tunnels, device, payload } = decoded;
        capture.ip_packets += 1;
        capture.ip_bytes += u64::from(outer.length);
        capture.ipv6_packets += u64::from(outer.v6);
        capture.ecn.add(outer.ecn);
        capture.tunnel_packets += u64::from(tunnels != decode::Tunnels::default());
        match payload {
            Payload::Tcp(segment) => {
                capture.tcp_packets += 1;
                let flows = self.flows.get_or_insert_with(|| Flows::new(self.options, at_ns));
                let seen = Seen { segment, ip, frame_bytes: record.length, at_ns };
                flows.segment(&seen, (record.interface as u32, device), tunnels);
            }
            Payload::Udp { source, destination, length, bytes } => {
                capture.udp_packets += 1;
                self.datagrams.datagram(Datagram {
                    at_ns,
                    interface: record.interface as u32,
                    source,
                    destination,
                    ecn: ip.ecn,
                    ip_length: ip.length,
                    payload_length: length,
                    payload: bytes,
                });
            }
            Payload::Echo { identifier, sequence, reply } => {
                capture.icmp_packets += 1;
                let (source, destination, ip_length) = (ip.source(), ip.destination(), ip.length);
                self.datagrams.echo(Echo {
                    at_ns,
                    interface: record.interface as u32,
                    source,
                    destination,
                    identifier,
                    sequence,
                    reply,
                    ip_length,
                });
            }
            Payload::Icmp => capture.icmp_packets += 1,
            Payload::Fragment => capture.fragments += 1,
            Payload::Other => capture.other_packets += 1,
            Payload::Malformed => capture.malformed += 1,
        }
    }

    fn finish(self, input: Input) -> Report {
        let mut capture = self.capture;
        let zero_ns = self.earliest_ns;
        capture.start_ns = (capture.packets > 0).then_some(zero_ns);
        capture.container = input.container().into();
        capture.compression = input.compression.into();
        capture.duration_s = self.latest_ns.saturating_sub(zero_ns) as f64 * 1e-9;
        capture.dropped_by_capture = input.dropped();
        capture.interfaces = input.interfaces;
        capture.notes = input.notes;
        for (i, interface) in capture.interfaces.iter().enumerate().filter(|(_, known)| !known.read) {
            let number = interface.link_type;
            let link = decode::link_name(number).map_or(String::new(), |name| format!(" ({name})"));
            capture.notes.push(format!(
                "The {} packets of interface {i} were not read: its link type is {number}{link}; expected Ethernet, raw \
                 IP, Linux cooked, PPP, Cisco HDLC or null/loopback.",
                interface.packets
            ));
            if capture.notes.len() >= MOST_NOTES {
                break;
            }
        }
        capture.flows_beyond = self.flows.as_ref().map_or(0, |flows| flows.beyond);
        if capture.flows_beyond > 0 {
            capture.notes.push(format!(
                "The capture has more than {} TCP flows; {} packets of further flows were not analysed.",
                self.options.flows, capture.flows_beyond
            ));
        }
        capture.notes.extend(self.first_step.map(|(interface, step)| {
            let others = match capture.clock_steps - 1 {
                0 => String::new(),
                more => format!(" ({more} more steps followed)"),
            };
            format!(
                "At {:.3} s the clock of interface {interface} was set by {:+.3} s{others}. Times continue as if no time \
                 had passed.",
                step.at_ns.saturating_sub(zero_ns) as f64 * 1e-9,
                step.by_ns as f64 * 1e-9,
            )
        }));
        let mut flows = self.flows.map(|flows| flows.finish(zero_ns)).unwrap_or_default();
        capture.notes.extend(cut_options(&flows));
        let mut datagrams = self.datagrams.finish(zero_ns, self.latest_ns);
        let numbers = flows.iter_mut().map(|flow| &mut flow.number).chain(datagrams.numbers());
        (1..).zip(numbers).for_each(|(number, of)| *of = number);
        Report { format: FORMAT, capture, flows, datagrams }
    }
}

/// What the snap length took of the options of TCP.
fn cut_options(flows: &[Flow]) -> Option<String> {
    let options = || flows.iter().flat_map(|flow| [&flow.up.options, &flow.down.options]);
    let cut: u64 = options().map(|options| options.cut).sum();
    let mut unknown: Vec<&str> = options().flat_map(|options| options.unknown.iter().copied()).collect();
    unknown.sort_unstable();
    unknown.dedup();
    let of = if unknown.is_empty() { String::new() } else { format!(" ({})", unknown.join(", ")) };
    (cut > 0).then(|| {
        format!("{cut} packets were truncated inside their TCP options{of}. Measures that depend on them are missing.")
    })
}
