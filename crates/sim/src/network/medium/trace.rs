//! A capacity trace in mahimahi's format: every line is a millisecond at which 1500 bytes may leave.
//!
//! Source: Netravali et al., "Mahimahi: Accurate Record-and-Replay for HTTP", USENIX ATC 2015, section 3,
//! and the tool's manual (mm-link). The trace repeats when its last millisecond is over. An opportunity
//! that finds the queue empty is lost, and so is what is left of one when the queue runs empty; within it
//! several small packets leave, and a packet may be spread over several opportunities.
//!
//! Parameters: `ms`, milliseconds since the start, not decreasing, the last above 0. IP bytes are counted,
//! as at mahimahi's tun device.
//!
//! Not modelled: the four bytes of the tun header, for which later versions of the tool add 4 to the 1500.
//!
//! Validation: the tests below.

use serde::Deserialize;

use super::{Access, Turn};
use crate::base::count::Count;
use crate::base::units::Time;
use crate::packet::Packet;

/// Bytes per opportunity.
const OPPORTUNITY: u32 = 1500;
/// The last millisecond of a trace: eleven days.
const LAST_MS: u64 = 1_000_000_000;
/// The Ethernet header, which is not counted.
const ETHERNET: u32 = 14;

/// The trace of one direction.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Where it came from, for messages.
    file: String,
    /// The opportunities.
    ms: Vec<u64>,
}

/// One direction.
pub struct CapacityTrace {
    ms: Vec<u64>,
    /// The next opportunity, counted from the start of the run.
    next: u64,
    /// A packet of which some bytes have left, and how many have not.
    begun: Option<(Packet, u32)>,
}

impl CapacityTrace {
    /// Reads and checks `spec`.
    pub fn new(spec: &Spec) -> Result<CapacityTrace, String> {
        if spec.ms.windows(2).any(|pair| pair[0] > pair[1]) {
            return Err(format!("{}: the milliseconds decrease", spec.file));
        }
        if spec.ms.last().is_none_or(|last| *last == 0) {
            return Err(format!("{}: the last millisecond must be above 0", spec.file));
        }
        if let Some(last) = spec.ms.last().filter(|last| **last > LAST_MS) {
            return Err(format!("{}: {last} ms is above {LAST_MS} ms", spec.file));
        }
        Ok(CapacityTrace { ms: spec.ms.clone(), next: 0, begun: None })
    }

    fn due(&self) -> Time {
        let n = self.ms.len() as u64;
        let period = self.ms[self.ms.len() - 1];
        Time::from_ms((self.next / n) * period + self.ms[(self.next % n) as usize])
    }
}

impl Access for CapacityTrace {
    fn serve(&mut self, turn: &mut Turn) -> Option<Time> {
        loop {
            let due = self.due();
            if due > turn.now {
                return (self.begun.is_some() || turn.waits()).then_some(due);
            }
            self.next += 1;
            if due < turn.now {
                // Nothing waited then, nor in the whole repetitions between.
                let n = self.ms.len() as u64;
                let whole = turn.now.as_ms() / self.ms[self.ms.len() - 1];
                self.next = self.next.max(whole.saturating_sub(1) * n);
                continue;
            }
            let mut room = OPPORTUNITY;
            while room > 0 {
                let begun = self.begun.take();
                let begun = begun.or_else(|| turn.take().map(|p| (p, p.len.saturating_sub(ETHERNET).max(1))));
                let Some((packet, bytes)) = begun else { break };
                if bytes > room {
                    self.begun = Some((packet, bytes - room));
                    break;
                }
                room -= bytes;
                turn.sent.push((turn.now, packet));
            }
        }
    }

    fn held(&self) -> Count {
        self.begun.iter().map(|(packet, _)| packet.len).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::medium::testing::pass;

    fn trace(ms: &[u64]) -> CapacityTrace {
        CapacityTrace::new(&Spec { file: "t".into(), ms: ms.to_vec() }).expect("a trace")
    }

    #[test]
    fn one_line_of_one_millisecond_is_twelve_megabit() {
        // 1500 B a millisecond = 12 Mbit/s: the n-th of the full packets leaves at n ms
        let offered = [(Time::ZERO, 1514, 0); 1000];
        let (sent, _) = pass(&mut trace(&[1]), None, &offered);
        assert!(sent.iter().enumerate().all(|(n, s)| s.0 == Time::from_ms(n as u64 + 1)));
        assert_eq!(sent.len(), 1000);
    }

    #[test]
    fn the_trace_repeats_after_its_last_millisecond() {
        // 2, 5, then 5+2, 5+5, 10+2
        let (sent, _) = pass(&mut trace(&[2, 5]), None, &[(Time::ZERO, 1514, 0); 5]);
        assert_eq!(sent.iter().map(|s| s.0.as_ms()).collect::<Vec<_>>(), [2, 5, 7, 10, 12]);
    }

    #[test]
    fn an_opportunity_holds_several_small_packets_or_a_part_of_one() {
        // 500 B of IP each: three per opportunity
        let (sent, _) = pass(&mut trace(&[1]), None, &[(Time::ZERO, 514, 0); 7]);
        assert_eq!(sent.iter().map(|s| s.0.as_ms()).collect::<Vec<_>>(), [1, 1, 1, 2, 2, 2, 3]);
        // 1000 B each: the second needs the rest of the first opportunity and half of the next
        let (sent, _) = pass(&mut trace(&[1]), None, &[(Time::ZERO, 1014, 0); 3]);
        assert_eq!(sent.iter().map(|s| s.0.as_ms()).collect::<Vec<_>>(), [1, 2, 2]);
    }

    #[test]
    fn opportunities_that_nobody_takes_are_lost() {
        let late = Time::from_us(10_500);
        let (sent, _) = pass(&mut trace(&[1]), None, &[(late, 1514, 0), (late, 1514, 0)]);
        assert_eq!(sent.iter().map(|s| s.0.as_ms()).collect::<Vec<_>>(), [11, 12]);
    }

    #[test]
    fn traces_that_are_none_are_refused() {
        for ms in [vec![], vec![0], vec![2, 1]] {
            assert!(CapacityTrace::new(&Spec { file: "t".into(), ms }).is_err());
        }
    }
}
