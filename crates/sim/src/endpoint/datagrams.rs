//! A train of datagrams, at a rate or in bursts, and what became of each.

use crate::base::count::Count;
use crate::base::units::Time;
use crate::endpoint::connection::{Place, hashes};
use crate::endpoint::probe::PATIENCE;
use crate::packet::{Packet, Proto};
use bakeoff_document::run::{Flow, Source};

/// Bytes that a frame has around a UDP payload: Ethernet 14, IPv4 20, UDP 8.
const HEADERS: u32 = 42;

/// The sender and the receiver of a train.
pub struct Datagrams {
    template: Packet,
    /// When the next is sent, once it has begun.
    next: Option<Time>,
    /// In payload bytes.
    sent: Count,
    received: Count,
    /// Those that arrived, by ECN field (`Ecn as usize`).
    ecn: [u64; 4],
    /// Of each datagram, by its number: when it was sent, and how long its first copy took to the receiver, if it came.
    transits: Vec<(Time, Option<Time>)>,
}

impl Datagrams {
    /// The train of `flow`.
    pub fn new(flow: &Flow, place: &Place) -> Self {
        let [hash, _] = hashes(place.seed, &flow.name);
        Datagrams {
            template: Packet { proto: Proto::Udp, ..place.template(flow, 0, hash) },
            next: None,
            sent: Count::default(),
            received: Count::default(),
            ecn: [0; 4],
            transits: Vec::new(),
        }
    }

    /// What was sent, in payload bytes.
    pub fn sent(&self) -> Count {
        self.sent
    }

    /// What arrived, in payload bytes.
    pub fn received(&self) -> Count {
        self.received
    }

    /// How many arrived with each ECN field (`Ecn as usize`).
    pub fn ecn(&self) -> [u64; 4] {
        self.ecn
    }

    /// Frame bytes of what was sent.
    pub fn sent_frame_bytes(&self) -> u64 {
        self.sent.bytes + self.sent.packets * u64::from(HEADERS)
    }

    /// Bytes of memory that what is known of each datagram takes.
    pub fn bytes(&self) -> u64 {
        size_of_val(self.transits.as_slice()) as u64
    }

    /// One arrived.
    pub fn on_packet(&mut self, packet: &Packet, now: Time) {
        self.received.add(packet.payload);
        self.ecn[packet.ecn as usize] += 1;
        if let Some((sent, took)) = self.transits.get_mut(packet.seq as usize) {
            took.get_or_insert(now - *sent);
        }
    }

    /// Sends what is due before `stop`; returns when to be called again.
    pub fn send_due(
        &mut self,
        source: &Source,
        now: Time,
        stop: Time,
        out: &mut Vec<Packet>,
    ) -> Option<Time> {
        if now >= stop {
            return None;
        }
        let (Source::Rate { size, .. } | Source::Periodic { size, .. }) = source else { return None };
        let (bytes, next) = paced(source, self.next.unwrap_or(now))?;
        self.next = Some(next);
        for _ in 0..bytes / u64::from(*size) {
            let mut packet = self.template;
            packet.seq = self.sent.packets;
            packet.payload = *size;
            packet.len = size + HEADERS;
            packet.sent = now;
            self.sent.add(*size);
            self.transits.push((now, None));
            out.push(packet);
        }
        Some(next.min(stop))
    }

    /// One-way delays of the datagrams that arrived, and those that never will: a later one came, or two seconds went by.
    pub fn happenings(&self, end: Time) -> Vec<(&'static str, Vec<(Time, f64)>)> {
        if self.transits.is_empty() {
            return Vec::new();
        }
        let last = self.transits.iter().rposition(|(_, took)| took.is_some());
        let arrived = |&(sent, took): &(Time, Option<Time>)| Some((sent, took?.as_secs_f64()));
        let missing = |(n, &(sent, took)): (usize, &(Time, Option<Time>))| {
            (took.is_none() && (last > Some(n) || sent + PATIENCE < end)).then_some((sent, 1.0))
        };
        vec![
            ("delay", self.transits.iter().filter_map(arrived).collect()),
            ("missing", self.transits.iter().enumerate().filter_map(missing).collect()),
        ]
    }
}

/// How many bytes a source of a rate or a period offers at `due`, and when it offers again; none of others.
pub(super) fn paced(source: &Source, due: Time) -> Option<(u64, Time)> {
    match source {
        Source::Rate { rate_bps, size } => {
            let gap = Time((u64::from(*size) * 8_000_000_000 / rate_bps).max(1));
            Some((u64::from(*size), due + gap))
        }
        Source::Periodic { size, count, every_s } => {
            Some((u64::from(*size) * u64::from(*count), due + Time::from_secs_f64(*every_s)))
        }
        _ => None,
    }
}
