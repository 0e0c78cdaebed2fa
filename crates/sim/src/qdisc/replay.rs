//! A queue driven alone by a recorded sequence of arrivals: our half of the trace test
//! (`bakeoff qdisc-replay`, docs/qdisc-replay.md).
//!
//! As a port without a rate of its own does in Linux (a veth), it asks the queue for packets after
//! each arrival and whenever the queue's watchdog expires, until it gives none. What limits the rate
//! is a shaper in the tree.
//!
//! A real kernel's watchdog expires late, by its clock's resolution and its timer's shortest interval.
//! `ticks`, the instants at which packets left a real kernel, stand in for that: the watchdog then
//! expires at the first tick not before the instant it was set to, if one follows within [`LATENESS`].
//! What leaves, in which order, marked or not, and what is dropped, remains the queue's own affair.

use serde::{Deserialize, Serialize};

use super::{Env, Queue};
use crate::base::units::Time;
use crate::packet::{Ecn, Packet, Proto};
use bakeoff_document::run;

/// How late a watchdog may be: the clock of User-Mode Linux moves in steps of 256 ns, and a timer that
/// finds itself early by less than that is set anew for 501 ns later, at most twice: 2 (255 + 501) ns.
pub const LATENESS: Time = Time::from_ns(1_512);

/// What is to be replayed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// The tree of qdiscs.
    pub qdisc: run::Qdisc,
    /// For what the queue draws.
    pub seed: u64,
    /// The timer frequency of the kernel that is compared with, Hz.
    pub hz: u64,
    /// How many flows there are; filters may name all of them, whether or not packets of them arrive.
    pub flows: usize,
    /// Whether [`Arrival::hash`] is sfq's bucket itself.
    #[serde(default)]
    pub told_buckets: bool,
    /// In order of time.
    pub arrivals: Vec<Arrival>,
    /// In order of time; none: the watchdog is punctual.
    #[serde(default)]
    pub ticks: Vec<u64>,
}

/// A packet arrives.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arrival {
    /// Nanoseconds; since the boot of the kernel that is compared with, because some state of a
    /// queue begins as the instant zero.
    pub at: u64,
    /// Length of the frame with its Ethernet header.
    pub bytes: u32,
    /// Counts from 0.
    pub flow: u16,
    /// The flow's `skb->hash`.
    pub hash: u32,
    /// The two bits of the IP header.
    pub ecn: u8,
}

/// A packet leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Departure {
    /// Which arrival it was, from 0.
    pub packet: u32,
    /// Nanoseconds, as in [`Arrival::at`].
    pub at: u64,
    /// The two bits of the IP header.
    pub ecn: u8,
}

/// What came out.
#[derive(Debug, Serialize)]
pub struct Replayed {
    /// In order; arrivals that do not appear were dropped, or are left.
    pub departures: Vec<Departure>,
    /// Packets that still stand in the queue although nothing would wake it.
    pub left: usize,
    /// How late a tick made the watchdog, at most, ns.
    pub late: u64,
    /// Configuration and statistics of each queue, as `tc -s -d qdisc show dev` prints them.
    pub show: String,
}

/// Replays.
///
/// # Errors
/// The qdisc as it was refused, arrivals out of order or of a flow that does not exist.
pub fn replay(input: &Replay) -> Result<Replayed, String> {
    if let Some(i) = input.arrivals.windows(2).position(|two| two[1].at < two[0].at) {
        return Err(format!("arrivals[{}]: earlier than the one before", i + 1));
    }
    let flows = input.flows;
    if let Some(i) = input.arrivals.iter().position(|a| usize::from(a.flow) >= flows) {
        return Err(format!("arrivals[{i}].flow: {}; expected less than {flows}", input.arrivals[i].flow));
    }
    let env = Env {
        seed: input.seed,
        name: "replay".into(),
        hz: input.hz,
        flows,
        flow_names: (0..flows).map(|flow| flow.to_string()).collect(),
        endpoints: vec![[0, 1]; flows].into(),
        told_buckets: input.told_buckets,
        ..Env::default()
    };
    let queue = Queue::build(&input.qdisc, &env).map_err(|error| error.to_string())?;
    let port = Port { queue, ticks: &input.ticks, late: 0, departures: Vec::new() };
    Ok(port.run(&input.arrivals))
}

/// What stands behind the queue.
struct Port<'a> {
    queue: Queue,
    ticks: &'a [u64],
    late: u64,
    departures: Vec<Departure>,
}

impl Port<'_> {
    fn run(mut self, arrivals: &[Arrival]) -> Replayed {
        let mut now = 0;
        for (number, arrival) in (0_u32..).zip(arrivals) {
            // Of an arrival and a watchdog at one instant the arrival comes first, as in Linux: its
            // enqueue runs before the timer's interrupt, which is late.
            while let Some(at) = self.watchdog(now).filter(|at| *at < arrival.at) {
                now = at;
                self.serve(now);
            }
            now = arrival.at;
            self.queue.enqueue(packet(number, arrival), Time(now));
            self.serve(now);
        }
        while let Some(at) = self.watchdog(now) {
            now = at;
            self.serve(now);
        }
        Replayed {
            departures: self.departures,
            left: self.queue.qlen(),
            late: self.late,
            show: self.queue.show_tree(None, 1, Time(now)),
        }
    }

    /// When the watchdog expires. A queue that names no later instant than one at which it gave nothing
    /// is not asked again before the next arrival.
    fn watchdog(&mut self, now: u64) -> Option<u64> {
        let Time(due) = self.queue.next_event().filter(|due| *due > Time(now))?;
        let passed = self.ticks.partition_point(|tick| *tick < due);
        match self.ticks.get(passed) {
            Some(tick) if tick - due <= LATENESS.as_ns() => {
                self.late = self.late.max(tick - due);
                Some(*tick)
            }
            _ => (due < Time::NEVER.as_ns()).then_some(due),
        }
    }

    fn serve(&mut self, now: u64) {
        while let Some(packet) = self.queue.dequeue(Time(now)) {
            let ecn = packet.ecn as u8;
            self.departures.push(Departure { packet: packet.seq as u32, at: now, ecn });
        }
    }
}

fn packet(number: u32, arrival: &Arrival) -> Packet {
    Packet {
        seq: u64::from(number),
        sent: Time(arrival.at),
        hash: arrival.hash,
        len: arrival.bytes,
        // Ethernet, IPv4 and UDP headers
        payload: arrival.bytes.saturating_sub(42),
        flow: arrival.flow,
        dst: 1,
        ecn: Ecn::from_bits(arrival.ecn),
        proto: Proto::Udp,
        ..Packet::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone(qdisc: run::Qdisc, arrivals: Vec<Arrival>, ticks: &[u64]) -> Replay {
        Replay { qdisc, seed: 1, hz: 1000, flows: 1, told_buckets: false, arrivals, ticks: ticks.to_vec() }
    }

    fn replayed(qdisc: &str, arrivals: &[u64], ticks: &[u64]) -> Replayed {
        let arrival = |at: &u64| Arrival { at: *at, bytes: 1250, flow: 0, hash: 0, ecn: 2 };
        let class = run::Class {
            id: "1".into(),
            parent: None,
            class: "rate 10mbit burst 1250b cburst 1250b".into(),
            filters: Vec::new(),
            child: Some(Box::new(run::Qdisc::leaf(qdisc))),
        };
        let tree = run::Qdisc { qdisc: "htb default 1".into(), classes: vec![class], child: None };
        let arrivals = arrivals.iter().map(arrival).collect();
        replay(&alone(tree, arrivals, ticks)).unwrap()
    }

    fn times(replayed: &Replayed) -> Vec<(u32, u64)> {
        replayed.departures.iter().map(|departure| (departure.packet, departure.at)).collect()
    }

    #[test]
    fn a_shaped_queue_gives_a_packet_a_millisecond_and_drops_what_does_not_fit() {
        // 1250 B at 10 Mbit/s are 1 ms, and the bucket holds one packet: it may go into debt by another.
        // At 0 the first two leave, two stay, the fifth finds no room.
        let done = replayed("pfifo limit 2", &[0; 5], &[]);
        assert_eq!(times(&done), [(0, 0), (1, 0), (2, 1_000_000), (3, 2_000_000)]);
        assert_eq!((done.left, done.late), (0, 0));
    }

    #[test]
    fn a_tick_makes_the_watchdog_late_but_not_the_shaper_slow() {
        // 300 ns late once: the next packet is due when it would have been. The tick 2000 ns late is none.
        let done = replayed("pfifo", &[0; 5], &[0, 1_000_300, 2_002_000]);
        assert_eq!(times(&done)[2..], [(2, 1_000_300), (3, 2_000_000), (4, 3_000_000)]);
        assert_eq!(done.late, 300);
    }

    #[test]
    fn an_arrival_before_the_tick_finds_the_shaper_open() {
        let done = replayed("pfifo", &[0, 0, 0, 1_000_100], &[1_000_100, 2_000_200]);
        assert_eq!(times(&done)[2..], [(2, 1_000_100), (3, 2_000_200)]);
    }

    #[test]
    fn an_arrival_at_the_instant_of_the_watchdog_finds_the_queue_as_it_was() {
        // Packets 2 and 3 fill the queue; at 1 ms one of them leaves, and packet 4 has no room.
        let done = replayed("pfifo limit 2", &[0, 0, 0, 0, 1_000_000], &[]);
        assert_eq!(times(&done), [(0, 0), (1, 0), (2, 1_000_000), (3, 2_000_000)]);
    }

    #[test]
    fn arrivals_out_of_order_or_of_no_flow_are_refused() {
        let refused = |arrivals| replay(&alone(run::Qdisc::leaf("pfifo"), arrivals, &[])).unwrap_err();
        let arrival = |at, flow| Arrival { at, bytes: 60, flow, hash: 0, ecn: 0 };
        assert_eq!(refused(vec![arrival(1, 0), arrival(0, 0)]), "arrivals[1]: earlier than the one before");
        assert_eq!(refused(vec![arrival(0, 0), arrival(1, 1)]), "arrivals[1].flow: 1; expected less than 1");
    }
}
