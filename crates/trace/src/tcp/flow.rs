//! One TCP flow while it is read.

use super::direction::{Half, NS, Whole};
use super::feedback::Ack;
use super::opening::Opening;
use super::sequence::{Kind, Part};
use super::series::{self, Intervals};
use super::{Key, Settings};
use crate::decode::{Ip, Segment};
use crate::report::{EcnMode, Endpoint, Flow};

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
    opening: Opening,
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
            opening: Opening::default(),
            reset: false,
            halves: Default::default(),
            intervals: settings.interval_ns.map(Intervals::new),
        }
    }

    /// Whether this segment begins another connection between the same ports.
    pub fn is_over(&self, first: bool, segment: &Segment<'_>) -> bool {
        let from_client = first == self.client_first;
        let [this, other] = if from_client { [0, 1] } else { [1, 0] }.map(|d| &self.halves[d]);
        if segment.rst() {
            false
        } else if segment.syn() {
            let halves = (this, other);
            self.opening.is_of_another(segment, from_client, halves, self.closed(), self.carried())
        } else {
            this.sequence.is_outside(this.begin, segment.seq)
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
        if segment.syn() && !self.opening.is_seen() && (first == self.client_first) == segment.has_ack() {
            self.turn();
        }
        let d = usize::from(first != self.client_first);
        self.start_ns = self.start_ns.min(at_ns);
        self.end_ns = self.end_ns.max(at_ns);
        self.reset |= segment.rst();
        let begin_seen = self.opening.is_seen();
        let round_trip_ns = self.opening.round_trip_ns();
        let stray = segment.syn() && segment.has_ack() && d == 1 && self.opening.is_stray(&segment);
        if segment.syn() && !stray {
            self.opening.take(&mut self.halves[d], d, &segment, at_ns);
        }
        // Where a capture has the client's packets only, there is no SYN/ACK before it.
        let first_ack = d == 0 && !segment.syn() && !segment.rst() && self.opening.ends(&segment, at_ns);
        let (this, other) = match &mut self.halves {
            [up, down] if d == 0 => (up, down),
            [up, down] => (down, up),
        };
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

        let same_window =
            !segment.syn() && !segment.rst() && this.windows.offer(segment.window, at_ns, &mut this.acks);
        let mut told = Told::default();
        if segment.has_ack() && !segment.rst() && !stray {
            let ends_handshake = first_ack && segment.payload_length == 0;
            told =
                acknowledge(this, other, seen, Context { same_window, begin_seen, ends_handshake }, settings);
        }
        let ece = u64::from(segment.ece() && segment.has_ack() && !segment.syn());
        if let Some((value, echo)) = segment.timestamps {
            this.options.timestamps += 1;
            this.options.late += u64::from(this.timestamps.sent(value, at_ns));
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

    /// Client and server change places: packets that stood before the SYN in the file told them wrongly.
    fn turn(&mut self) {
        self.client_first = !self.client_first;
        self.halves.swap(0, 1);
        if let Some(intervals) = &mut self.intervals {
            intervals.each(|slots| slots.swap(0, 1));
        }
    }

    /// How many intervals its series would have.
    pub fn span(&self) -> usize {
        self.intervals.as_ref().map_or(0, Intervals::span)
    }

    /// As it is told; times count from `zero_ns`, and the series has no more than so many intervals.
    pub fn finish(self, settings: &Settings, zero_ns: i64, intervals: usize) -> Flow {
        let ecn = self.opening.ecn.mode(settings.ecn, &self.halves);
        let since = |ns: i64| ns.saturating_sub(zero_ns) as f64 * NS;
        let end = if self.reset {
            "reset"
        } else if self.closed() {
            "fin"
        } else {
            "open"
        };
        let carries = [0, 1].map(|d| self.halves[d].sequence.data.packets > 0);
        let scales = [0, 1].map(|d| self.halves[d].windows.scale);
        let missing = [0, 1].map(|d| self.halves[d].options.missing());
        let whole = [0, 1].map(|d| Whole {
            mode: ecn.mode,
            // A SYN/ACK answers.
            scale: scales[d].in_use(scales[1 - d], d == 1),
            other_carries: carries[1 - d],
            other_lacks: missing[1 - d],
            start_ns: zero_ns,
            end_ns: self.end_ns,
            window_ns: settings.window_ns,
        });
        let shift_ns = settings.start_ns.saturating_sub(zero_ns);
        let ace = ecn.mode == EcnMode::AccEcn;
        let series = self.intervals.map(|i| series::finish(&i.finish(intervals), carries, ace, shift_ns));
        let [up, down] = self.halves;
        let sum = |of: fn(&Half) -> Option<f64>| match (of(&up), of(&down)) {
            (None, None) => None,
            (up, down) => Some(up.unwrap_or(0.0) + down.unwrap_or(0.0)),
        };
        let (client, server) = self.key.ends(self.client_first, self.v6);
        Flow {
            number: 0,
            client,
            server,
            interface: self.key.interface(),
            tunnels: self.key.tunnels.names(),
            start_s: since(self.start_ns),
            end_s: since(self.end_ns),
            begin_seen: self.opening.syn.is_some(),
            end,
            handshake: self.opening.finish(zero_ns),
            mean_rtt_s: sum(|half| half.rtt.mean(NS)),
            mean_timestamp_rtt_s: sum(|half| half.timestamp_rtt.mean(NS)),
            up: up.finish(&whole[0]),
            down: down.finish(&whole[1]),
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
    this.dsacks += u64::from(duplicate);
    this.acks.advancing += u64::from(ack.advances);
    this.acks.late += u64::from(ack.late);
    if segment.payload_length == 0 && !segment.syn() && !segment.fin() {
        this.acks.pure += 1;
        let repeats = !ack.advances && !ack.late;
        // Where a capture has the ACKs only, SACK alone says that data is under way.
        let under_way = under_way || !blocks.is_empty() && other.sequence.has_sacked();
        if repeats && under_way && (context.same_window || !blocks.is_empty()) {
            this.duplicates += 1;
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
        this.options.add(&options, segment.syn());
    }
    Told { bytes: ack.bytes, ace, rtt_ns }
}

/// An end as it is told.
pub fn endpoint(address: std::net::IpAddr, port: u16) -> Endpoint {
    Endpoint { address: address.to_string(), port }
}
