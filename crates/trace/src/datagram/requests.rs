//! Requests and their replies, as they pass one point: round-trip times, losses, late and repeated replies.

use std::collections::VecDeque;

use serde::Serialize;

use super::{Bounds, seconds, since};
use crate::histogram::Histogram;

/// Requests of one test that are held: 40 s of a request every 10 ms.
const MOST: usize = 4096;
/// A request without a reply is lost after so long.
const PATIENCE_NS: u64 = 2_000_000_000;

/// How many requests and replies there were.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RequestCounts {
    /// Requests that were seen.
    pub requests: u64,
    /// First replies to them.
    pub replies: u64,
    /// Requests that were seen again before their reply.
    pub repeated_requests: u64,
    /// Further replies to a request that had one.
    pub duplicate_replies: u64,
    /// Replies that came after one to a later request.
    pub late_replies: u64,
    /// Replies whose request was not seen.
    pub unmatched_replies: u64,
    /// Sequence numbers between the lowest and the highest that no request had: lost before this point.
    pub missing_requests: u64,
    /// Requests without a reply although a later one had one, or two seconds passed.
    pub lost: u64,
    /// Requests without a reply at the end of the capture that may yet have got one.
    pub unanswered: u64,
}

/// Every request in order of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Samples {
    /// When it passed.
    pub time_s: Vec<f64>,
    /// Its round-trip time; null if it was lost.
    pub rtt_s: Vec<Option<f64>>,
}

/// A request that was seen.
#[derive(Debug)]
pub(super) struct Request {
    sequence: u64,
    at_ns: i64,
    /// None until the reply.
    rtt_ns: Option<u64>,
    /// Whether the receiver of the request had it, if it told.
    pub arrived: Option<bool>,
}

/// What happened to a reply.
#[derive(Debug, PartialEq)]
pub(super) enum Reply {
    /// It is the first one, to a request that passed then.
    First {
        request_ns: i64,
    },
    Duplicate,
    Unmatched,
}

/// The requests of one test.
#[derive(Debug, Default)]
pub(super) struct Requests {
    counts: RequestCounts,
    /// In order of sequence numbers.
    held: VecDeque<Request>,
    /// Of requests.
    lowest: u64,
    highest: Option<u64>,
    /// Requests with a sequence number of their own.
    distinct: u64,
    highest_reply: Option<u64>,
    rtt: Histogram,
    ipdv: Histogram,
    pub lost_up: u64,
    pub lost_down: u64,
    samples: Vec<(i64, Option<u64>)>,
}

impl Requests {
    /// The whole sequence number whose lowest `bits` are `low`, nearest to the highest one so far.
    pub fn whole(&self, low: u32, bits: u32) -> u64 {
        let first = 1_u64 << 40;
        let highest = self.highest.or(self.highest_reply);
        let Some(near) = highest else { return first + u64::from(low) };
        let ahead = (u64::from(low)).wrapping_sub(near) << (64 - bits);
        near.saturating_add_signed(ahead as i64 >> (64 - bits))
    }

    /// Takes a request.
    pub fn request(&mut self, sequence: u64, at_ns: i64, bounds: &mut Bounds) {
        let at = self.held.partition_point(|request| request.sequence < sequence);
        if let Some(same) = self.held.get_mut(at).filter(|request| request.sequence == sequence) {
            if same.rtt_ns.is_none() {
                self.counts.repeated_requests += 1;
                return;
            }
            // Who counts no further asks anew with the old number.
            self.counts.requests += 1;
            let told = std::mem::replace(same, Request { sequence, at_ns, rtt_ns: None, arrived: None });
            self.forget(&told, bounds);
            return;
        }
        self.counts.requests += 1;
        self.distinct += 1;
        self.lowest = if self.highest.is_none() { sequence } else { self.lowest.min(sequence) };
        self.highest = self.highest.max(Some(sequence));
        if self.held.len() >= MOST || (bounds.waiting == 0 && !self.held.is_empty()) {
            self.drop_first(bounds);
        }
        if bounds.waiting > 0 {
            bounds.waiting -= 1;
            let at = self.held.partition_point(|request| request.sequence < sequence);
            self.held.insert(at, Request { sequence, at_ns, rtt_ns: None, arrived: None });
        }
    }

    /// Takes a reply to the request `sequence`, which spent `within_ns` of the round trip at its receiver.
    pub fn reply(&mut self, sequence: u64, at_ns: i64, within_ns: u64) -> Reply {
        let Some(at) = self.position(sequence) else {
            self.counts.unmatched_replies += 1;
            return Reply::Unmatched;
        };
        if self.held[at].rtt_ns.is_some() {
            self.counts.duplicate_replies += 1;
            return Reply::Duplicate;
        }
        let request_ns = self.held[at].at_ns;
        let rtt = since(at_ns, request_ns).saturating_sub(within_ns);
        let before = at.checked_sub(1).map(|before| &self.held[before]);
        if let Some(last) = before.filter(|last| last.sequence + 1 == sequence).and_then(|last| last.rtt_ns) {
            self.ipdv.add(rtt.abs_diff(last));
        }
        self.held[at].rtt_ns = Some(rtt);
        self.held[at].arrived = Some(true);
        self.rtt.add(rtt);
        self.counts.replies += 1;
        self.counts.late_replies += u64::from(self.highest_reply > Some(sequence));
        self.highest_reply = self.highest_reply.max(Some(sequence));
        Reply::First { request_ns }
    }

    /// The receiver of requests says whether it had the request `sequence`; that it had one is never taken back.
    pub fn arrived(&mut self, sequence: u64, arrived: bool) {
        if let Some(at) = self.position(sequence) {
            let known = &mut self.held[at].arrived;
            *known = Some(arrived || *known == Some(true));
        }
    }

    fn position(&self, sequence: u64) -> Option<usize> {
        self.held.binary_search_by_key(&sequence, |request| request.sequence).ok()
    }

    fn drop_first(&mut self, bounds: &mut Bounds) {
        if let Some(first) = self.held.pop_front() {
            bounds.waiting += 1;
            self.lose(&first);
            self.forget(&first, bounds);
        }
    }

    fn lose(&mut self, request: &Request) {
        if request.rtt_ns.is_none() {
            self.counts.lost += 1;
            match request.arrived {
                Some(true) => self.lost_down += 1,
                Some(false) => self.lost_up += 1,
                None => {}
            }
        }
    }

    /// Keeps the sample of a request of which nothing more is expected.
    fn forget(&mut self, request: &Request, bounds: &mut Bounds) {
        if bounds.interval_ns.is_some() && bounds.samples > 0 {
            bounds.samples -= 1;
            self.samples.push((request.at_ns, request.rtt_ns));
        }
    }

    /// The counts and samples; the capture ends at `end_ns`.
    pub fn finish(
        &mut self,
        start_ns: i64,
        end_ns: i64,
        bounds: &mut Bounds,
    ) -> (RequestCounts, Option<Samples>) {
        while let Some(last) = self.held.pop_front() {
            let expected = last.rtt_ns.is_none()
                && self.highest_reply < Some(last.sequence)
                && since(end_ns, last.at_ns) <= PATIENCE_NS;
            if expected {
                self.counts.unanswered += 1;
            } else {
                self.lose(&last);
                self.forget(&last, bounds);
            }
        }
        if let Some(highest) = self.highest {
            let span = (highest - self.lowest).saturating_add(1);
            self.counts.missing_requests = span.saturating_sub(self.distinct);
        }
        self.samples.sort_by_key(|&(at_ns, _)| at_ns);
        let samples = bounds.interval_ns.map(|_| Samples {
            time_s: self.samples.iter().map(|&(at_ns, _)| seconds(at_ns, start_ns)).collect(),
            rtt_s: self.samples.iter().map(|&(_, rtt_ns)| rtt_ns.map(|ns| ns as f64 * 1e-9)).collect(),
        });
        (self.counts.clone(), samples)
    }

    /// Round-trip times in nanoseconds.
    pub fn rtt(&self) -> &Histogram {
        &self.rtt
    }

    /// |RTT - RTT before| in nanoseconds (RFC 3393).
    pub fn ipdv(&self) -> &Histogram {
        &self.ipdv
    }
}
