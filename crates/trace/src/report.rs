//! What comes out: the document that `bakeoff trace --json` prints.
//!
//! Times are seconds from the earliest packet of the capture, durations are seconds, rates bit/s; a name ends in its unit
//! where it is not a count. What is not known is left out.

use serde::{Deserialize, Serialize};

use crate::datagram;

/// Everything about one capture.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The form of this document: 1.
    pub format: u32,
    /// The file as a whole.
    pub capture: Capture,
    /// The TCP flows, in order of their first packets.
    pub flows: Vec<Flow>,
    /// What is not TCP.
    pub datagrams: datagram::Report,
}

/// The file as a whole.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Capture {
    /// `pcap` or `pcapng`.
    pub container: String,
    /// `none`, `gzip`, `zstd`, `xz` or `bzip2`.
    pub compression: String,
    /// The interfaces, in the order in which packets name them.
    pub interfaces: Vec<Interface>,
    /// Time of the earliest packet, in nanoseconds since 1970: zero of all other times.
    pub start_ns: Option<i64>,
    /// From the earliest to the latest packet.
    pub duration_s: f64,
    /// Packets in the file.
    pub packets: u64,
    /// Their lengths on the wire, as the file tells them.
    pub frame_bytes: u64,
    /// What the file kept of them.
    pub captured_bytes: u64,
    /// IPv4 and IPv6 packets, tunnels' outer ones only.
    pub ip_packets: u64,
    /// Their lengths by the IP headers.
    pub ip_bytes: u64,
    /// Of these, those of IPv6.
    pub ipv6_packets: u64,
    /// The ECN fields of these.
    pub ecn: EcnCounts,
    /// Packets of TCP, inside tunnels as well.
    pub tcp_packets: u64,
    /// Packets of UDP, inside tunnels as well, without those that carried a tunnel.
    pub udp_packets: u64,
    /// Packets of ICMP and ICMPv6.
    pub icmp_packets: u64,
    /// IP packets that carried another packet which was read.
    pub tunnel_packets: u64,
    /// Fragments other than the first: they have no ports and belong to no flow.
    pub fragments: u64,
    /// IP packets of other protocols.
    pub other_packets: u64,
    /// Frames that carried neither IPv4 nor IPv6.
    pub not_ip: u64,
    /// Frames of interfaces whose link type cannot be read.
    pub unread: u64,
    /// Frames whose headers contradict themselves or were cut off.
    pub malformed: u64,
    /// Packets that stand in the file after one with a later time.
    pub backwards: u64,
    /// The longest such step back in time.
    pub backwards_max_s: f64,
    /// How often the clock of an interface was set: back by more than 100 ms, or ahead by more than three years. The
    /// times behind a step go on from it.
    pub clock_steps: u64,
    /// Packets of TCP flows beyond the number that is followed.
    pub flows_beyond: u64,
    /// What the interfaces told that they had lost, if the file says it.
    pub dropped_by_capture: Option<u64>,
    /// What a reader should know about this file, as whole sentences.
    pub notes: Vec<String>,
}

/// One interface of the capture.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Interface {
    /// As the file names it.
    pub name: Option<String>,
    /// The number of the link type (LINKTYPE_…).
    pub link_type: u32,
    /// Most bytes kept of a packet; 0 if there is no limit.
    pub snap_length: u32,
    /// Packets of this interface.
    pub packets: u64,
    /// Whether packets of this link type can be read.
    pub read: bool,
}

/// How many packets had which ECN field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EcnCounts {
    /// 00
    pub not_ect: u64,
    /// 01
    pub ect1: u64,
    /// 10
    pub ect0: u64,
    /// 11
    pub ce: u64,
}

impl EcnCounts {
    /// Counts one packet by the two bits of its ECN field.
    pub fn add(&mut self, ecn: u8) {
        match ecn & 3 {
            0 => self.not_ect += 1,
            1 => self.ect1 += 1,
            2 => self.ect0 += 1,
            _ => self.ce += 1,
        }
    }
}

/// One end of a flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Endpoint {
    /// IPv4 or IPv6 address.
    pub address: String,
    /// Port.
    pub port: u16,
}

/// How the ECN bits of a TCP flow are to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EcnMode {
    /// Without ECN.
    #[default]
    None,
    /// RFC 3168: ECE is latched until CWR.
    Rfc3168,
    /// RFC 9768: the ACE field counts packets, the AccECN option bytes.
    AccEcn,
    /// Some Congestion Experienced: ECT(1) is a mark, ESCE (the former NS bit) its echo, beside RFC 3168.
    Sce,
}

/// A TCP flow as seen at one interface.
#[derive(Clone, Debug, Serialize)]
pub struct Flow {
    /// Number of the flow among all that the capture tells, from 1.
    pub number: u64,
    /// Who sent the SYN; without a handshake the end with the higher port.
    pub client: Endpoint,
    /// The other.
    pub server: Endpoint,
    /// Index of the interface in [`Capture::interfaces`].
    pub interface: u32,
    /// The tunnels around it, from the outside: `gre`, `ipip`, `6in4`, `vxlan`, `fou`, `gue`, …
    pub tunnels: Vec<&'static str>,
    /// When its first packet was seen.
    pub start_s: f64,
    /// When its last packet was seen.
    pub end_s: f64,
    /// Whether the SYN was seen. Without it the times of the handshake are not known.
    pub begin_seen: bool,
    /// `open`, `fin` (both ends) or `reset`.
    pub end: &'static str,
    /// How ECN is used.
    pub ecn: FlowEcn,
    /// Times of the handshake.
    pub handshake: Handshake,
    /// Round-trip time by sequence numbers: the means of both directions, added.
    pub mean_rtt_s: Option<f64>,
    /// Round-trip time by timestamps: the means of both directions, added.
    pub mean_timestamp_rtt_s: Option<f64>,
    /// From client to server.
    pub up: Direction,
    /// From server to client.
    pub down: Direction,
    /// Over time, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<Series>,
}

/// How ECN is used on a flow.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FlowEcn {
    /// How its bits were read.
    pub mode: EcnMode,
    /// What decided that: `handshake`, `packets` (the SYN/ACK that agreed is missing), or `option` (the user said it).
    pub chosen_by: &'static str,
    /// What the SYNs asked for: those that were repeated without ECN bits do not take that back.
    pub requested: Option<EcnMode>,
    /// What the SYN/ACKs agreed to, likewise.
    pub accepted: Option<EcnMode>,
}

/// When the three packets of the handshake were seen, and what that tells.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Handshake {
    /// First SYN.
    pub syn_s: Option<f64>,
    /// First SYN/ACK.
    pub syn_ack_s: Option<f64>,
    /// The ACK that ended it.
    pub ack_s: Option<f64>,
    /// SYN to SYN/ACK: the round trip between this point and the server.
    pub server_rtt_s: Option<f64>,
    /// SYN/ACK to ACK: the round trip between this point and the client.
    pub client_rtt_s: Option<f64>,
    /// SYNs and SYN/ACKs that were sent again.
    pub retransmits: u32,
}

/// One direction of a flow.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Direction {
    /// All packets.
    pub packets: u64,
    /// Their lengths on the wire.
    pub frame_bytes: u64,
    /// Their lengths by the IP headers.
    pub ip_bytes: u64,
    /// The ECN fields of all packets.
    pub ecn: EcnCounts,
    /// How many packets had which flag.
    pub flags: Flags,
    /// What the SYN or SYN/ACK offered, and which options were seen.
    pub options: TcpOptions,
    /// Payload that this direction carries, and what the other end said about it.
    pub data: Data,
    /// ACKs that this direction carries.
    pub acks: Acks,
    /// Congestion marks on packets of this direction, and their echo by the other end.
    pub marks: Marks,
    /// Time from data to the ACK that covers it: the round trip between this point and the receiver.
    pub rtt_s: Distribution,
    /// Time from a timestamp value to its echo: the same round trip.
    pub timestamp_rtt_s: Distribution,
    /// Time between packets.
    pub gap_s: Distribution,
    /// Packets per burst.
    pub bursts: Distribution,
}

/// How many packets had which flag.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Flags {
    /// SYN
    pub syn: u64,
    /// FIN
    pub fin: u64,
    /// RST
    pub rst: u64,
    /// PSH
    pub psh: u64,
    /// URG
    pub urg: u64,
    /// ECE
    pub ece: u64,
    /// CWR
    pub cwr: u64,
    /// AE; the former NS, and ESCE
    pub ae: u64,
}

/// TCP options. What the capture may have cut off is absent.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TcpOptions {
    /// Maximum segment size that this end receives, in bytes.
    pub mss: Option<u16>,
    /// Window scale that this end offers. It is in use if the other end offers one too.
    pub window_scale: Option<u8>,
    /// Whether it can receive SACK.
    pub sack_permitted: Option<bool>,
    /// Packets with timestamps.
    pub timestamps: Option<u64>,
    /// Packets with SACK blocks.
    pub sack: Option<u64>,
    /// Packets with an AccECN option.
    pub accecn: Option<u64>,
    /// Packets with other options (fast open, multipath, MD5, …).
    pub other: Option<u64>,
    /// Packets whose options contradict themselves.
    pub malformed: u64,
    /// Packets whose options the capture cut off.
    pub cut: u64,
    /// The options that may be among what was cut off: `mss`, `window_scale`, `sack_permitted`, `timestamps`, `sack`,
    /// `accecn`.
    pub unknown: Vec<&'static str>,
}

/// Payload of one direction.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Data {
    /// Packets with payload.
    pub packets: u64,
    /// Their lengths on the wire.
    pub frame_bytes: u64,
    /// Their payload, retransmissions included.
    pub payload_bytes: u64,
    /// The ECN fields of these packets.
    pub ecn: EcnCounts,
    /// Payload by the span of sequence numbers that were seen, without retransmissions.
    pub sequence_bytes: u64,
    /// What the other end acknowledged.
    pub acked_bytes: u64,
    /// What the other end acknowledged out of order first; absent if its SACK blocks were cut off.
    pub sacked_bytes: Option<u64>,
    /// Packets that carry data which was seen here before, or which fill a gap too late to be reordered.
    pub retransmits: u64,
    /// Their payload.
    pub retransmit_bytes: u64,
    /// Retransmissions that the other end reported to be duplicates; absent if its SACK blocks were cut off.
    pub spurious_retransmits: Option<u64>,
    /// Jumps in the sequence numbers: something was lost before this point or comes later.
    pub gaps: u64,
    /// What is missing in them.
    pub gap_bytes: u64,
    /// Of these bytes, those which came again or never: lost before this point.
    pub lost_bytes: u64,
    /// Payload that was acknowledged and never seen here: the capture lost it, or it took another way.
    pub unseen_bytes: u64,
    /// Packets that fill a gap soon enough to have been overtaken and not sent again.
    pub reordered: u64,
    /// By how many packets one was overtaken at most.
    pub reorder_max_packets: u64,
    /// By how long at most.
    pub reorder_max_s: f64,
    /// Packets whose timestamp value is behind the highest seen; absent if timestamps were cut off.
    pub late: Option<u64>,
    /// Packets that ask whether the other end is still there.
    pub keep_alives: u64,
    /// Most payload under way: sent and not yet acknowledged, as seen here.
    pub in_flight_max_bytes: u64,
    /// Goodput.
    pub goodput: Option<Goodput>,
}

/// Acknowledged payload over time.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Goodput {
    /// From the first to the last ACK that advances; absent if all have one time, or there is one.
    pub mean_bps: Option<f64>,
    /// Of the windows between these, the one with the least.
    pub min_bps: Option<f64>,
    /// And with the most.
    pub max_bps: Option<f64>,
    /// Length of the windows.
    pub window_s: f64,
    /// First ACK that advances.
    pub first_ack_s: f64,
    /// Last ACK that advances.
    pub last_ack_s: f64,
}

/// ACKs that one direction carries.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Acks {
    /// Packets without payload, SYN, FIN and RST.
    pub pure: u64,
    /// Packets that advance the ACK.
    pub advancing: u64,
    /// Pure ACKs that repeat an ACK while data is under way, with the same window. Absent if only SACK blocks would say
    /// that data is under way, and were cut off.
    pub duplicates: Option<u64>,
    /// Packets with SACK blocks that report a duplicate; absent if these were cut off.
    pub dsacks: Option<u64>,
    /// ACKs behind the highest seen.
    pub late: u64,
    /// Times that the window became zero.
    pub zero_windows: u64,
    /// How long it was.
    pub zero_window_s: f64,
    /// Largest window behind the handshake, in bytes. It is absent where the scale is not known: the SYNs that offer
    /// it were not seen, or were cut off.
    pub window_max_bytes: Option<u64>,
    /// Smallest window behind the handshake, in bytes.
    pub window_min_bytes: Option<u64>,
}

/// Marks on the packets of one direction, and what the other end said of them.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Marks {
    /// Packets with CE that were seen here, with payload or without.
    pub ce: u64,
    /// Packets with ECT(1) that were seen here, where that is a mark: with SCE, and with AccECN in a direction that
    /// has ECT(0) after ECT(1).
    pub sce: Option<u64>,
    /// ACKs with ECE, which echo CE (RFC 3168).
    pub ece_acks: Option<u64>,
    /// Packets of this direction with CWR, which answer ECE (RFC 3168).
    pub cwr: Option<u64>,
    /// ACKs with ESCE, which echo SCE.
    pub esce_acks: Option<u64>,
    /// Payload that these acknowledge.
    pub esce_acked_bytes: Option<u64>,
    /// CE marks by the ACE field (AccECN): the sum of its steps, with its wraps at 8.
    pub echoed_ce_packets: Option<u64>,
    /// ACKs that acknowledge so many packets that the ACE field can have wrapped unseen.
    pub ace_ambiguous: Option<u64>,
    /// Payload with CE by the AccECN option.
    pub echoed_ce_bytes: Option<u64>,
    /// Payload with ECT(0) by the AccECN option.
    pub echoed_ect0_bytes: Option<u64>,
    /// Payload with ECT(1) by the AccECN option.
    pub echoed_ect1_bytes: Option<u64>,
    /// How many packets of data with CE follow each other without one that has none.
    pub ce_runs: Distribution,
    /// The same for SCE.
    pub sce_runs: Distribution,
    /// Time between packets with SCE.
    pub sce_gap_s: Distribution,
}

/// Many values. Percentiles are exact within 1 %; the rest is exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Distribution {
    /// How many.
    pub n: u64,
    /// The rest, in the unit that the name of the distribution says.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub values: Option<Values>,
}

/// What describes at least one value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[expect(missing_docs, reason = "each name says what it is")]
pub struct Values {
    pub mean: f64,
    pub min: f64,
    pub p5: f64,
    pub p50: f64,
    pub p90: f64,
    pub p95: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
    /// With n - 1; absent for a single value.
    pub stddev: Option<f64>,
    /// Variance over mean.
    pub burstiness: Option<f64>,
}

/// A flow over time. All lists are equally long.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Series {
    /// Length of the intervals. It is twice, four times … what was asked for if the flow lasts longer than
    /// some thousands of intervals.
    pub interval_s: f64,
    /// End of each interval.
    pub time_s: Vec<f64>,
    /// From client to server; absent if it carried no payload.
    pub up: Option<DirectionSeries>,
    /// From server to client; absent if it carried no payload.
    pub down: Option<DirectionSeries>,
}

/// One direction over time; the counts are those of each interval.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DirectionSeries {
    /// Payload that was acknowledged.
    pub goodput_bps: Vec<f64>,
    /// IP packets that passed.
    pub throughput_bps: Vec<f64>,
    /// Mean round-trip time by sequence; null where there was no sample.
    pub rtt_s: Vec<Option<f64>>,
    /// Packets with CE.
    pub ce: Vec<u64>,
    /// Packets with ECT(1).
    pub ect1: Vec<u64>,
    /// CE marks that were echoed: packets by the ACE field, or ACKs with ECE.
    pub echoed: Vec<u64>,
    /// Packets sent again.
    pub retransmits: Vec<u64>,
    /// Most payload under way.
    pub in_flight_bytes: Vec<u64>,
}
