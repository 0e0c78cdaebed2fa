//! Latency probes: isochronous ICMP or UDP echoes with an ECN mark.

use crate::base::histogram::Times;
use crate::base::units::Time;
use crate::packet::matching::parse_ecn;
use crate::packet::{Ecn, Flags, Packet, Proto};
use bakeoff_document::run::Probe;

/// Bytes of Ethernet around an IP packet.
const ETHERNET: u32 = 14;
/// A request unanswered, or a datagram on its way, for so long is lost.
pub(super) const PATIENCE: Time = Time::from_ms(2000);

/// A probe in the simulation.
pub struct ProbeState {
    /// As in the resolved run.
    pub spec: Probe,
    id: u16,
    nodes: [u16; 2],
    proto: Proto,
    ecn: Ecn,
    hash: u32,
    /// [`Packet::tunnel`]
    pub tunnel: u8,
    /// When each request was sent, and whether it was answered.
    requests: Vec<(Time, bool)>,
    /// Answers.
    pub received: u64,
    /// Round trips inside the window.
    pub rtts: Times,
}

impl ProbeState {
    /// Prepares a probe.
    ///
    /// # Errors
    /// The field, its value and the expected form.
    pub fn new(spec: &Probe, id: u16, place: &str, nodes: [u16; 2], hash: u32) -> Result<Self, String> {
        let proto = match spec.proto.as_str() {
            "icmp" => Proto::Icmp,
            "udp" => Proto::Udp,
            other => return Err(format!("{place}.proto: unknown protocol '{other}'; known: icmp, udp")),
        };
        let ecn = parse_ecn(&spec.ecn).map_err(|e| format!("{place}.{e}"))?;
        Ok(ProbeState {
            spec: spec.clone(),
            id,
            nodes,
            proto,
            ecn,
            hash,
            tunnel: 0,
            requests: Vec::new(),
            received: 0,
            rtts: Times::default(),
        })
    }

    /// The asking and the answering node.
    pub fn nodes(&self) -> [u16; 2] {
        self.nodes
    }

    /// The asking node.
    pub fn source(&self) -> u16 {
        self.nodes[0]
    }

    /// Sends a request; returns when the next one is due.
    pub fn ask(&mut self, now: Time, out: &mut Vec<Packet>) -> Option<Time> {
        let stop = Time::from_secs_f64(self.spec.stop_s);
        if now >= stop {
            return None;
        }
        out.push(Packet {
            seq: self.requests.len() as u64,
            sent: now,
            hash: self.hash,
            len: self.spec.size + ETHERNET,
            payload: self.spec.size,
            flow: self.id,
            dst: self.nodes[1],
            dscp: self.spec.dscp,
            ecn: self.ecn,
            proto: self.proto,
            tunnel: self.tunnel,
            ..Packet::default()
        });
        self.requests.push((now, false));
        // From the start each time: no error accumulates.
        let n = self.requests.len() as f64;
        Some(Time::from_secs_f64(self.spec.start_s + n * self.spec.every_s))
    }

    /// A request arrived at the answering node, or an answer at the asking one: then (when the
    /// request was sent, how long it took).
    pub fn on_packet(&mut self, packet: &Packet, now: Time, out: &mut Vec<Packet>) -> Option<(Time, Time)> {
        if !packet.flags.has(Flags::REPLY) {
            let mut reply = *packet;
            reply.flags = Flags::REPLY;
            reply.len = self.spec.size + ETHERNET;
            reply.hash = self.hash;
            reply.dst = self.nodes[0];
            reply.dscp = self.spec.dscp;
            reply.ecn = self.ecn;
            reply.marked_by = 0;
            out.push(reply);
            return None;
        }
        let request = self.requests.get_mut(packet.seq as usize)?;
        if request.1 {
            return None;
        }
        request.1 = true;
        self.received += 1;
        Some((request.0, now - request.0))
    }

    /// Bytes of memory that what is known of each request takes.
    pub fn bytes(&self) -> u64 {
        size_of_val(self.requests.as_slice()) as u64
    }

    /// Requests sent.
    pub fn sent(&self) -> u64 {
        self.requests.len() as u64
    }

    /// Requests that were never answered; those of the last two seconds may still be.
    pub fn lost(&self, end: Time) -> impl Iterator<Item = Time> + '_ {
        self.requests.iter().filter(move |(at, answered)| !answered && *at + PATIENCE < end).map(|r| r.0)
    }
}
