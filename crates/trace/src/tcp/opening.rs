//! The opening of a connection: its SYNs and SYN/ACKs, when they came, and what they say.

use super::direction::{Half, NS};
use super::negotiation::Negotiation;
use super::window::Scale;
use crate::decode::{Missing, Segment};
use crate::report::Handshake;

/// Most payload of a SYN, which its SYN/ACK may acknowledge (RFC 7413).
const SYN_PAYLOAD: u32 = 0xffff;

/// What was seen of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Opening {
    /// Initial sequence number of the client.
    pub syn: Option<u32>,
    /// Sequence and acknowledgement number of the SYN/ACK.
    pub syn_ack: Option<(u32, u32)>,
    syn_ns: Option<i64>,
    syn_ack_ns: Option<i64>,
    ack_ns: Option<i64>,
    retransmits: u32,
    pub ecn: Negotiation,
}

impl Opening {
    /// Whether a SYN or SYN/ACK was seen.
    pub fn is_seen(&self) -> bool {
        self.syn.is_some() || self.syn_ack.is_some()
    }

    /// Takes a segment of the client that is neither SYN nor RST; whether it ends the handshake.
    pub fn ends(&mut self, segment: &Segment<'_>, at_ns: i64) -> bool {
        let ends = self.ack_ns.is_none() && self.is_seen();
        if ends && segment.has_ack() {
            self.ack_ns = Some(at_ns);
        }
        ends
    }

    /// Whether a SYN/ACK strays here from another connection: it does not answer the SYN.
    pub fn is_stray(&self, segment: &Segment<'_>) -> bool {
        self.syn.is_some_and(|syn| segment.ack.wrapping_sub(syn.wrapping_add(1)) > SYN_PAYLOAD)
    }

    /// Whether a SYN of the client, or the server's SYN/ACK, belongs to another connection between the same ports.
    /// `over` says whether the connection was closed, `carried` whether it had payload; `this` is the direction of
    /// the segment.
    pub fn is_of_another(
        &self,
        segment: &Segment<'_>,
        from_client: bool,
        (this, other): (&Half, &Half),
        over: bool,
        carried: bool,
    ) -> bool {
        let begin = segment.seq.wrapping_add(1);
        match (segment.has_ack(), self.syn, self.syn_ack) {
            // The packets that stand before it in the file may be those of its connection.
            (answers, None, None) => match this.begin {
                Some(seen) => seen != begin,
                None => !(answers && other.begin == Some(segment.ack)),
            },
            // The other end opens at the same time (RFC 9293, section 3.5).
            (false, Some(_), None) if !from_client && !carried => false,
            (_, Some(syn), _) if from_client => syn != segment.seq,
            (_, None, Some((_, ack))) if from_client => begin != ack,
            (false, _, known) => known.is_none_or(|(seq, _)| seq != segment.seq),
            (true, Some(_), known) => {
                let differs = known.is_none_or(|(seq, _)| seq != segment.seq);
                differs && (over || carried && self.is_stray(segment))
            }
            (true, None, Some((seq, ack))) => {
                let opens = this.packets == this.flags.syn;
                let near = ack.wrapping_sub(segment.ack).min(segment.ack.wrapping_sub(ack)) <= SYN_PAYLOAD;
                ack != segment.ack && !(opens && near) || seq != segment.seq && (over || carried)
            }
        }
    }

    /// Takes a SYN or SYN/ACK of the direction `d`, whose half this is.
    pub fn take(&mut self, half: &mut Half, d: usize, segment: &Segment<'_>, at_ns: i64) {
        let answers = segment.has_ack();
        offers(half, segment);
        // Both ends opened at once: the first SYN is the client's, and the three packets behind it repeat what is known.
        if let Some(initial) = self.syn
            && if answers { initial == segment.seq && d == 0 } else { d == 1 }
        {
            half.sequence.begin(segment.seq);
            return;
        }
        if answers {
            self.ecn.answers(segment.ace());
            self.retransmits += u32::from(self.syn_ack.is_some());
            let again = self.syn_ack.is_some_and(|(seq, _)| seq == segment.seq);
            self.syn_ack = Some((segment.seq, segment.ack));
            self.syn_ack_ns.get_or_insert(at_ns);
            if again {
                return;
            }
        } else {
            self.ecn.asks(segment.ace());
            self.syn_ns.get_or_insert(at_ns);
            if self.syn.replace(segment.seq).is_some() {
                self.retransmits += 1;
                return;
            }
        }
        half.sequence.begin(segment.seq);
    }

    /// The round trip between both ends, as far as it is known: nothing can be sent again sooner.
    pub fn round_trip_ns(&self) -> Option<i64> {
        let span = self.ack_ns?.saturating_sub(self.syn_ns?);
        (span > 0 && self.retransmits == 0).then_some(span)
    }

    /// As it is told; times count from `zero_ns`.
    pub fn finish(&self, zero_ns: i64) -> Handshake {
        let since = |ns: i64| ns.saturating_sub(zero_ns) as f64 * NS;
        let between = |from: Option<i64>, to: Option<i64>| {
            let span = to?.saturating_sub(from?);
            (span >= 0 && self.retransmits == 0).then_some(span as f64 * NS)
        };
        Handshake {
            syn_s: self.syn_ns.map(since),
            syn_ack_s: self.syn_ack_ns.map(since),
            ack_s: self.ack_ns.map(since),
            server_rtt_s: between(self.syn_ns, self.syn_ack_ns),
            client_rtt_s: between(self.syn_ack_ns, self.ack_ns),
            retransmits: self.retransmits,
        }
    }
}

/// What a SYN or SYN/ACK offers. One that is repeated without an option does not take the offer back.
fn offers(half: &mut Half, segment: &Segment<'_>) {
    let options = segment.options();
    let seen = &mut half.options;
    seen.mss = options.mss.or(seen.mss);
    seen.window_scale = options.window_scale.or(seen.window_scale);
    if options.sack_permitted || !options.missing.has(Missing::SACK_PERMITTED) {
        seen.sack_permitted = Some(options.sack_permitted);
    }
    half.windows.scale = match (options.window_scale, half.windows.scale) {
        (Some(scale), _) => Scale::Offered(scale),
        (None, Scale::Unknown) if !options.missing.has(Missing::WINDOW_SCALE) && !options.malformed => {
            Scale::None
        }
        (None, known) => known,
    };
    if !segment.has_ack() {
        seen.add(&options, true);
    }
}
