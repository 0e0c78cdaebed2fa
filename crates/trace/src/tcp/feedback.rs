//! What ACKs tell of congestion marks: ECE, ESCE, the ACE field and the AccECN option.
//!
//! Sources: RFC 3168, RFC 9768 (section 3.2), draft-morton-tsvwg-sce.
//!
//! Everything is counted as each of them would have it, since how a flow uses ECN may be known at its end only.

use crate::decode::AccEcnOption;

/// ACE begins at this.
const ACE_BEGIN: u8 = 5;
/// Counters of the option have 24 bits.
const COUNTER: u32 = 0x00ff_ffff;
/// The ACE field counts up to this without doubt.
const ACE_CERTAIN: u32 = 7;

/// What one ACK says, as far as it is news.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// The ACE field.
    pub ace: u8,
    /// The option.
    pub option: Option<AccEcnOption>,
    /// Payload that the ACK is the first to acknowledge.
    pub bytes: u64,
    /// How many packets that were.
    pub packets: u32,
}

/// One counter of the option, over its wraps.
#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    last: Option<u32>,
    total: u64,
}

impl Counter {
    fn follow(&mut self, value: Option<u32>, begin: Option<u32>) -> u64 {
        let Some(value) = value else { return 0 };
        let last = self.last.unwrap_or_else(|| begin.filter(|begin| *begin <= value).unwrap_or(value));
        let ahead = value.wrapping_sub(last) & COUNTER;
        // Half of the range ahead is behind: an ACK that was overtaken.
        if ahead > COUNTER / 2 {
            return 0;
        }
        self.last = Some(value);
        self.total += u64::from(ahead);
        u64::from(ahead)
    }
}

/// The echo of one direction's marks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Feedback {
    ace: Option<u8>,
    e0: Counter,
    ce: Counter,
    e1: Counter,
    /// Whether an option was seen.
    pub options: bool,
    /// CE marks by the ACE field.
    pub ce_packets: u64,
    /// How often it can have wrapped unseen.
    pub ambiguous: u64,
    /// ACKs with ECE.
    pub ece_acks: u64,
    /// ACKs with AE: ESCE.
    pub esce_acks: u64,
    /// Payload that they acknowledge.
    pub esce_bytes: u64,
    /// How often the ACE field changed, and how often by half of its range or more.
    changes: u64,
    leaps: u64,
}

impl Feedback {
    /// Takes an ACK that tells something new. `begin_seen` says whether the counters were seen from their begin; the
    /// marks by the ACE field come out.
    pub fn follow(&mut self, ack: Ack, begin_seen: bool) -> u64 {
        let mut ce_bytes = None;
        if let Some(option) = ack.option {
            self.options = true;
            let begin = |value| begin_seen.then_some(value);
            self.e0.follow(option.e0, begin(1));
            self.e1.follow(option.e1, begin(u32::from(!option.draft)));
            ce_bytes = option.ce.map(|_| self.ce.follow(option.ce, begin(0)));
        }
        let last = self.ace.replace(ack.ace);
        let Some(last) = last.or(begin_seen.then_some(ACE_BEGIN)) else { return 0 };
        let mut ahead = u64::from(ack.ace.wrapping_sub(last) & 7);
        self.changes += u64::from(ahead > 0);
        self.leaps += u64::from(ahead >= 4);
        if ack.packets > ACE_CERTAIN {
            // It may have wrapped: the bytes with CE say how often, as far as packets are of one size.
            match ce_bytes {
                Some(ce_bytes) if ack.bytes > 0 => {
                    let likely = ce_bytes as f64 * f64::from(ack.packets) / ack.bytes as f64;
                    ahead += 8 * ((likely - ahead as f64) / 8.0).round().max(0.0) as u64;
                    ahead = ahead.min(u64::from(ack.packets));
                }
                _ => self.ambiguous += 1,
            }
        }
        self.ce_packets += ahead;
        ahead
    }

    /// Whether the ACE field goes back as often as it goes on. Then it is no counter but flags.
    pub fn goes_back(&self) -> bool {
        self.changes > 1 && 2 * self.leaps >= self.changes
    }

    /// Payload with ECT(0), CE and ECT(1) by the option.
    pub fn bytes(&self) -> Option<[u64; 3]> {
        self.options.then_some([self.e0.total, self.ce.total, self.e1.total])
    }
}
