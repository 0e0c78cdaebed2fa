//! DOCSIS-like upstream: a modem asks for room in bytes and sends when a grant comes.
//!
//! Source: CableLabs MULPI 3.1 (CM-SP-MULPIv3.1), 7.2.1 (upstream bandwidth allocation: MAPs, requests,
//! grants, continuous concatenation and fragmentation), reduced to its clock: every `interval` the modem
//! asks for what stands in its queue and was not asked for, and the grant for it starts `pending` intervals
//! later. All grants of an interval hold what the link's rate sends in it; what is granted above that comes
//! with the next ones. Packets are sent one after the other from the start of the grant; one that does not
//! fit is continued in the next.
//!
//! A packet that finds nothing before it is sent whole after `pending` to `pending + 1` intervals and its
//! own time at the link's rate.
//!
//! Parameters: `modem`, the end that asks (the other direction is a plain wire); `interval_s`, seconds;
//! `pending`, at least 1.
//!
//! Not modelled: contention of requests, other modems, unsolicited grants, proactive grants (PGS), framing.
//!
//! Validation: the tests below.

use std::collections::VecDeque;

use serde::Deserialize;

use super::{Access, Turn};
use crate::base::count::Count;
use crate::base::units::Time;
use crate::packet::Packet;
use bakeoff_document::bounds::time;

/// See the module.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The end that sends upstream.
    pub modem: String,
    interval_s: f64,
    pending: u32,
}

/// The upstream.
pub struct Docsis {
    interval: Time,
    pending: u64,
    /// The interval that starts next.
    next: u64,
    /// Requests on their way to a grant: (interval, bytes).
    requests: VecDeque<(u64, u64)>,
    /// Bytes that may be granted now, but for the rate.
    due: u64,
    /// Bytes asked for and not granted.
    asked: u64,
    /// A packet of which some bytes have left, and how many have not.
    begun: Option<(Packet, u64)>,
}

impl Docsis {
    /// Checks `spec`.
    pub fn new(spec: &Spec) -> Result<Docsis, String> {
        time(".interval_s", spec.interval_s, &(1e-5..=10.0))?;
        if spec.pending == 0 {
            return Err(".pending: must be at least 1".into());
        }
        Ok(Docsis {
            interval: Time::from_secs_f64(spec.interval_s),
            pending: spec.pending.into(),
            next: 0,
            requests: VecDeque::new(),
            due: 0,
            asked: 0,
            begun: None,
        })
    }

    fn send(&mut self, turn: &mut Turn, granted: u64) {
        let mut used = 0;
        while used < granted {
            let begun = self.begun.take();
            let begun = begun.or_else(|| turn.take().map(|p| (p, u64::from(p.len))));
            let Some((packet, bytes)) = begun else { return };
            if bytes > granted - used {
                self.begun = Some((packet, bytes - (granted - used)));
                return;
            }
            used += bytes;
            turn.sent.push((turn.now + turn.airtime(used as u32), packet));
        }
    }
}

impl Access for Docsis {
    fn serve(&mut self, turn: &mut Turn) -> Option<Time> {
        let starts = |interval: Time, n: u64| Time::from_ns(interval.as_ns() * n);
        if starts(self.interval, self.next) < turn.now {
            // Nothing was asked for or waited in the intervals between.
            self.next = turn.now.as_ns().div_ceil(self.interval.as_ns());
        }
        if starts(self.interval, self.next) == turn.now {
            while let Some((interval, bytes)) = self.requests.front().copied()
                && interval <= self.next
            {
                self.due += bytes;
                self.requests.pop_front();
            }
            let bits = u128::from(turn.rate.map_or(0, |r| r.0)) * u128::from(self.interval.as_ns());
            let granted = self.due.min((bits / 8_000_000_000) as u64);
            self.due -= granted;
            self.asked -= granted;
            self.send(turn, granted);
            let waiting = turn.queue.backlog() + self.begun.as_ref().map_or(0, |b| b.1);
            if waiting > self.asked {
                self.requests.push_back((self.next + self.pending, waiting - self.asked));
                self.asked = waiting;
            }
            self.next += 1;
        }
        (self.asked > 0 || turn.waits()).then_some(starts(self.interval, self.next))
    }

    fn held(&self) -> Count {
        self.begun.iter().map(|(packet, _)| packet.len).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::medium::testing::pass;

    fn docsis(pending: u32) -> Docsis {
        Docsis::new(&Spec { modem: "m".into(), interval_s: 0.002, pending }).expect("a modem")
    }

    #[test]
    fn a_lone_packet_waits_for_the_request_and_the_grant() {
        // 1250 B at 10 Mbit/s: 1 ms. Asked for at the next multiple of 2 ms, granted 2 intervals later.
        let offered: Vec<_> = (0..500).map(|n| (Time::from_us(20_000 * n + 7 * n), 1250, 0)).collect();
        let (sent, _) = pass(&mut docsis(2), Some(10_000_000), &offered);
        assert_eq!(sent.len(), 500);
        let mut delays = Vec::new();
        for (s, o) in sent.iter().zip(&offered) {
            let request = o.0.as_ns().div_ceil(2_000_000) * 2_000_000;
            assert_eq!(s.0.as_ns(), request + 4_000_000 + 1_000_000);
            delays.push((s.0 - o.0).as_ns());
        }
        // 2 to 3 intervals and its own time, and both bounds are nearly reached
        assert_eq!(delays.iter().min(), Some(&5_000_000));
        let most = *delays.iter().max().expect("some");
        assert!((6_990_000..7_000_000).contains(&most), "{most}");
    }

    #[test]
    fn saturated_it_sends_at_the_rate() {
        // first grant at 4 ms, then 2500 B per 2 ms: packet n is whole at 4 ms + (n + 1) ms
        let (sent, _) = pass(&mut docsis(2), Some(10_000_000), &[(Time::ZERO, 1250, 0); 400]);
        assert!(sent.iter().enumerate().all(|(n, s)| s.0 == Time::from_ms(5 + n as u64)));
        assert_eq!(sent.len(), 400);
    }

    #[test]
    fn what_does_not_fit_is_continued_in_the_next_grant() {
        // 2000 B in grants of 2500 B: the second has 500 B in the first grant, is whole 1500 B into the next
        let (sent, _) = pass(&mut docsis(1), Some(10_000_000), &[(Time::ZERO, 2000, 0); 2]);
        assert_eq!(sent.iter().map(|s| s.0.as_us()).collect::<Vec<_>>(), [2000 + 1600, 4000 + 1200]);
    }
}
