//! One TCP flow while it is read.

use super::direction::{Half, NS};
use super::feedback::Ack;
use super::sequence::{Kind, Part};
use super::series::Intervals;
use super::{Key, Settings};
use crate::decode::{Ip, Segment};
use crate::report::{EcnMode, Endpoint, Flow, FlowEcn, Handshake};

/// The bits of AE, CWR and ECE by which a SYN asks for AccECN, and for RFC 3168.
const ASKS_ACCECN: u8 = 0b111;
const ASKS_RFC3168: u8 = 0b011;

/// A segment and where and when it was seen.
#[derive(Clone, Copy)]
pub struct Seen<'a> {
    /// The segment.
    pub segment: Segment<'a>,
    /// The IP packet that carries it.
    pub ip: Ip<'a>,
    /// Length on the wire.
    pub frame_bytes: u32,
    /// Nanoseconds since 1970.
    pub at_ns: i64,
}

/// A flow. Direction 0 is up: from client to server.
#[derive(Clone, Debug)]
pub struct Track {
    key: Key,
    /// Whether the client is the first end of the key.
    client_first: bool,
    v6: bool,
    start_ns: i64,
    end_ns: i64,
    syn: Option<u32>,
    syn_ack: Option<u32>,
    syn_ns: Option<i64>,
    syn_ack_ns: Option<i64>,
    ack_ns: Option<i64>,
    handshake_retransmits: u32,
    /// The bits of the last SYN and of the SYN/ACK.
    asks: Option<u8>,
    agrees: Option<u8>,
    reset: bool,
    halves: [Half; 2],
    intervals: Option<Intervals>,
}

impl Track {
    /// Begins with a flow's first segment.
    pub fn new(key: Key, first: bool, seen: &Seen<'_>, settings: &Settings) -> Track {
        let segment = &seen.segment;
        let from_client = match (segment.syn(), segment.has_ack()) {
            (true, ack) => !ack,
            // Servers have the lower ports.
            _ => segment.source_port > segment.destination_port,
        };
        Track {
            key,
            client_first: first == from_client,
            v6: seen.ip.v6,
            start_ns: seen.at_ns,
            end_ns: seen.at_ns,
            syn: None,
            syn_ack: None,
            syn_ns: None,
            syn_ack_ns: None,
            ack_ns: None,
            handshake_retransmits: 0,
            asks: None,
            agrees: None,
            reset: false,
            halves: Default::default(),
            intervals: settings.interval_ns.map(Intervals::new),
        }
    }

    /// Whether this SYN begins another connection between the same ports.
    pub fn is_over(&self, first: bool, segment: &Segment<'_>) -> bool {
        if !segment.syn() {
            return false;
        }
        if segment.has_ack() {
            return self.syn_ack.is_some_and(|initial| initial != segment.seq) && self.closed();
        }
        match self.syn {
            // The other end opens at the same time (RFC 9293, section 3.5).
            Some(_) if first != self.client_first && self.syn_ack.is_none() && !self.carried() => false,
            Some(initial) => initial != segment.seq,
            None => self.closed() || self.carried(),
        }
    }

    fn closed(&self) -> bool {
        self.reset || self.halves.iter().all(|half| half.sequence.closed())
    }

    fn carried(&self) -> bool {
        self.halves.iter().any(|half| half.sequence.data.packets > 0)
    }

    /// Takes a segment; `first` says whether it comes from the first end of the key.
    pub fn take(&mut self, first: bool, seen: &Seen<'_>, settings: &Settings, points: &mut usize) {
        let Seen { segment, ip, frame_bytes, at_ns } = *seen;
        let d = usize::from(first != self.client_first);
        self.start_ns = self.start_ns.min(at_ns);
        self.end_ns = self.end_ns.max(at_ns);
        self.reset |= segment.rst();
        let scaled = self.syn.is_some() && self.syn_ack.is_some();
        let begin_seen = self.syn.is_some();
        let round_trip_ns = self.round_trip_ns();
        if segment.syn() {
            self.handshake(d, &segment, at_ns);
        }
        let (this, other) = match &mut self.halves {
            [up, down] if d == 0 => (up, down),
            [up, down] => (down, up),
        };
        // Where a capture has the client's packets only, there is no SYN/ACK before it.
        let begun = self.syn_ns.is_some() || self.syn_ack_ns.is_some();
        let first_ack = d == 0 && self.ack_ns.is_none() && begun && !segment.syn() && !segment.rst();
        if first_ack && segment.has_ack() {
            self.ack_ns = Some(at_ns);
        }
        this.packet(&segment, ip.ecn, ip.length, frame_bytes, at_ns);

        let mut kind = Kind::InOrder;
        if segment.payload_length > 0 {
            this.payload(segment.payload_length, ip.ecn, frame_bytes, at_ns, settings.burst_gap_ns);
        }
        if !segment.rst() && (segment.payload_length > 0 || segment.fin()) {
            let timestamp = segment.timestamps.map(|(value, _)| value);
            let seq = if segment.syn() { segment.seq.wrapping_add(1) } else { segment.seq };
            let part = Part { seq, length: segment.payload_length, fin: segment.fin(), at_ns, timestamp };
            kind = this.sequence.segment(part, round_trip_ns);
            this.sequence.data.keep_alives += u64::from(kind == Kind::KeepAlive);
        } else if !segment.syn() && !segment.rst() {
            this.sequence.data.keep_alives += u64::from(this.sequence.is_probe(segment.seq));
        }

        let same_window = this.window(&segment, at_ns, scaled);
        let mut told = Told::default();
        if segment.has_ack() && !segment.rst() {
            let ends_handshake = first_ack && segment.payload_length == 0;
            told =
                acknowledge(this, other, seen, Context { same_window, begin_seen, ends_handshake }, settings);
        }
        let ece = u64::from(segment.ece() && segment.has_ack() && !segment.syn());
        if let Some((value, echo)) = segment.timestamps {
            this.options.timestamps += 1;
            this.sequence.data.late += u64::from(this.timestamps.sent(value, at_ns));
            if segment.has_ack()
                && let Some(ns) = other.timestamps.echoed(echo, at_ns)
            {
                other.timestamp_rtt.add_ns(ns);
            }
        }
        if let Some(intervals) = &mut self.intervals {
            let slots = intervals.at(at_ns.saturating_sub(settings.start_ns), points);
            let slot = &mut slots[d];
            slot.ip_bytes += u64::from(ip.length);
            slot.ce += u32::from(ip.ecn == 3);
            slot.ect1 += u32::from(ip.ecn == 1);
            slot.retransmits += u32::from(kind == Kind::Retransmitted);
            slot.in_flight = slot.in_flight.max(this.sequence.under_way());
            let back = &mut slots[1 - d];
            back.acked += told.bytes;
            back.ace = back.ace.saturating_add(told.ace as u32);
            back.ece += ece as u32;
            back.in_flight = back.in_flight.max(other.sequence.under_way());
            if let Some(ns) = told.rtt_ns.and_then(|ns| u64::try_from(ns).ok()) {
                back.rtt_ns = back.rtt_ns.saturating_add(ns);
                back.rtts += 1;
            }
        }
    }

    fn handshake(&mut self, d: usize, segment: &Segment<'_>, at_ns: i64) {
        let options = segment.options();
        let half = &mut self.halves[d];
        let told = &mut half.options;
        told.mss = options.mss.or(told.mss);
        told.window_scale = options.window_scale.or(told.window_scale);
        told.sack_permitted = Some(options.sack_permitted);
        if !segment.has_ack() {
            told.other += u64::from(options.other);
            told.accecn += u64::from(options.accecn.is_some());
            told.malformed += u64::from(options.malformed);
        }
        // Both ends opened at once: the first SYN is the client's, and the three packets behind it repeat what is known.
        if let Some(initial) = self.syn
            && if segment.has_ack() { initial == segment.seq && d == 0 } else { d == 1 }
        {
            half.sequence.begin(segment.seq);
            return;
        }
        let (initial, seen_ns, bits) = if segment.has_ack() {
            (&mut self.syn_ack, &mut self.syn_ack_ns, &mut self.agrees)
        } else {
            (&mut self.syn, &mut self.syn_ns, &mut self.asks)
        };
        *bits = Some(segment.ace());
        if *initial == Some(segment.seq) {
            self.handshake_retransmits += 1;
            return;
        }
        *initial = Some(segment.seq);
        seen_ns.get_or_insert(at_ns);
        half.sequence.begin(segment.seq);
    }

    /// The round trip between both ends, as far as it is known: nothing can be sent again sooner.
    fn round_trip_ns(&self) -> Option<i64> {
        let span = self.ack_ns?.saturating_sub(self.syn_ns?);
        (span > 0 && self.handshake_retransmits == 0).then_some(span)
    }

    fn ecn(&self, told: Option<EcnMode>) -> FlowEcn {
        let requested = self.asks.map(|bits| match bits {
            ASKS_ACCECN => EcnMode::AccEcn,
            ASKS_RFC3168 => EcnMode::Rfc3168,
            _ => EcnMode::None,
        });
        let accepted = requested.zip(self.agrees).map(|(requested, bits)| match (requested, bits) {
            // RFC 9768, table 2.
            (EcnMode::AccEcn, 0b010 | 0b011 | 0b100 | 0b110) => EcnMode::AccEcn,
            (EcnMode::AccEcn | EcnMode::Rfc3168, 0b001 | 0b101) => EcnMode::Rfc3168,
            _ => EcnMode::None,
        });
        let [up, down] = &self.halves;
        let sum = |of: fn(&Half) -> u64| of(up) + of(down);
        let sce = sum(|half| half.pure_ae) > 0 || up.marks_ect1 || down.marks_ect1;
        let (mode, chosen_by) = match (told, accepted) {
            (Some(mode), _) => (mode, "option"),
            (None, Some(EcnMode::Rfc3168)) if sce => (EcnMode::Sce, "handshake"),
            (None, Some(mode)) => (mode, "handshake"),
            (None, None) => {
                let accecn = up.feedback.options
                    || down.feedback.options
                    || sum(|half| half.pure_cwr) > 0
                    || sum(|half| half.pure_ae_ece) > 0;
                let ect = sum(|half| half.ecn.ect0 + half.ecn.ect1 + half.ecn.ce) > 0;
                let mode = match (accecn, sce, ect) {
                    (true, ..) => EcnMode::AccEcn,
                    (_, true, _) => EcnMode::Sce,
                    (_, _, true) => EcnMode::Rfc3168,
                    _ => EcnMode::None,
                };
                (mode, "packets")
            }
        };
        FlowEcn { mode, chosen_by, requested, accepted }
    }

    /// As it is told.
    pub fn finish(self, settings: &Settings) -> Flow {
        let ecn = self.ecn(settings.ecn);
        let since = |ns: i64| ns.saturating_sub(settings.start_ns) as f64 * NS;
        let between = |from: Option<i64>, to: Option<i64>| {
            Some(to?.saturating_sub(from?) as f64 * NS).filter(|_| self.handshake_retransmits == 0)
        };
        let end = if self.reset {
            "reset"
        } else if self.closed() {
            "fin"
        } else {
            "open"
        };
        let handshake = Handshake {
            syn_s: self.syn_ns.map(since),
            syn_ack_s: self.syn_ack_ns.map(since),
            ack_s: self.ack_ns.map(since),
            server_rtt_s: between(self.syn_ns, self.syn_ack_ns),
            client_rtt_s: between(self.syn_ack_ns, self.ack_ns),
            retransmits: self.handshake_retransmits,
        };
        let carries = [0, 1].map(|d| self.halves[d].sequence.data.packets > 0);
        let series = self.intervals.map(|i| i.finish(carries, ecn.mode == EcnMode::AccEcn));
        let [up, down] = self.halves;
        let sum = |of: fn(&Half) -> Option<f64>| match (of(&up), of(&down)) {
            (None, None) => None,
            (up, down) => Some(up.unwrap_or(0.0) + down.unwrap_or(0.0)),
        };
        let (client, server) = self.key.ends(self.client_first, self.v6);
        Flow {
            client,
            server,
            interface: self.key.interface(),
            tunnels: self.key.tunnels.names(),
            start_s: since(self.start_ns),
            end_s: since(self.end_ns),
            begin_seen: self.syn.is_some(),
            end,
            handshake,
            mean_rtt_s: sum(|half| half.rtt.mean(NS)),
            mean_timestamp_rtt_s: sum(|half| half.timestamp_rtt.mean(NS)),
            up: up.finish(ecn.mode, settings.start_ns, settings.window_ns, self.end_ns),
            down: down.finish(ecn.mode, settings.start_ns, settings.window_ns, self.end_ns),
            ecn,
            series,
        }
    }
}

/// What is known around an ACK.
#[derive(Clone, Copy)]
struct Context {
    /// The window is that of the packet before.
    same_window: bool,
    /// The flow was seen from its begin.
    begin_seen: bool,
    /// It is the handshake's third packet, whose ACE field has another meaning.
    ends_handshake: bool,
}

/// What an ACK told of the other direction.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    bytes: u64,
    ace: u64,
    rtt_ns: Option<i64>,
}

/// Takes the ACK in a segment of `this`, which is about the data of `other`.
fn acknowledge(
    this: &mut Half,
    other: &mut Half,
    seen: &Seen<'_>,
    context: Context,
    settings: &Settings,
) -> Told {
    let Seen { segment, at_ns, .. } = *seen;
    let options = segment.more_options.then(|| segment.options());
    let blocks = options.as_ref().map_or(&[][..], |options| &options.sack[..options.blocks]);
    let under_way = other.sequence.under_way() > 0;
    let ack = other.sequence.acknowledge(segment.ack, at_ns);
    // A SYN is timed by the handshake.
    let rtt_ns = ack.rtt_ns.filter(|_| !segment.syn());
    let (duplicate, mut news) = if blocks.is_empty() { (false, false) } else { other.sequence.sack(blocks) };
    this.acks.dsacks += u64::from(duplicate);
    this.acks.advancing += u64::from(ack.advances);
    this.acks.late += u64::from(ack.late);
    if segment.payload_length == 0 && !segment.syn() && !segment.fin() {
        this.acks.pure += 1;
        this.pure_cwr += u64::from(segment.cwr());
        this.pure_ae += u64::from(segment.ae);
        this.pure_ae_ece += u64::from(segment.ae && segment.ece());
        let repeats = !ack.advances && !ack.late;
        // Where a capture has the ACKs only, SACK alone says that data is under way.
        let under_way = under_way || !blocks.is_empty() && other.sequence.has_sacked();
        if repeats && under_way && (context.same_window || !blocks.is_empty()) {
            this.acks.duplicates += 1;
        }
    }
    if ack.bytes > 0 {
        other.goodput.add(ack.bytes, at_ns, settings.window_ns);
    }
    if let Some(ns) = rtt_ns {
        other.rtt.add_ns(ns);
    }
    let mut ace = 0;
    if !segment.syn() {
        let feedback = &mut other.feedback;
        feedback.ece_acks += u64::from(segment.ece());
        feedback.esce_acks += u64::from(segment.ae);
        feedback.esce_bytes += if segment.ae { ack.bytes } else { 0 };
        news |= ack.advances || this.timestamps.is_newer(segment.timestamps);
        if news && !context.ends_handshake {
            let option = options.and_then(|options| options.accecn);
            let ack = Ack { ace: segment.ace(), option, bytes: ack.bytes, packets: ack.packets };
            ace = feedback.follow(ack, context.begin_seen);
        }
    }
    if let Some(options) = options {
        let counts = &mut this.options;
        counts.sack += u64::from(options.blocks > 0);
        counts.accecn += u64::from(options.accecn.is_some());
        counts.other += u64::from(options.other);
        counts.malformed += u64::from(options.malformed);
    }
    Told { bytes: ack.bytes, ace, rtt_ns }
}

/// An end as it is told.
pub fn endpoint(address: std::net::IpAddr, port: u16) -> Endpoint {
    Endpoint { address: address.to_string(), port }
}
