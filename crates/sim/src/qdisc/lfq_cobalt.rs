//! `lfq_cobalt`: lightweight fair queueing: two fifos, a deficit per flow, a COBALT per flow, a shaper.
//!
//! A packet of a flow without backlog or debt goes to a sparse fifo with strict priority. The others stand
//! in one bulk fifo, which is scanned from head to tail: a flow that has sent more than a packet's worth in
//! this scan is skipped until the next one.
//!
//! Source: chromi/sce `net/sched/sch_lfq_cobalt.c`; draft-morton-tsvwg-lightweight-fair-queueing.
//!
//! Parameters: those of [`super::sce`]; SCE is off unless asked for. Packets with DSCP 4 have COBALT's times
//! divided by five.
//!
//! Departures: flows are told apart by the packet's hash modulo 65536; sparse packets do not change the deficit;
//! COBALT spares a flow's last packet. Not modelled: a limit.
//!
//! Validation: byte fairness for 1, 2, 8 and 64 flows, sparse priority (tests below); conservation.

use std::collections::VecDeque;

use super::cobalt::{Params, SceCobalt};
use super::sce::{Clock, over, params};
use super::slots::{Slots, slot_of};
use super::{Cause, Env, Hints, Qdisc, Statistics, Tally};
use crate::base::rng::Stream;
use crate::base::units::Time;
use crate::packet::Packet;
use bakeoff_document::qdisc::sce::SceConfig;
use bakeoff_document::tc::{TcError, Words};

/// What a flow gets per scan, in bytes.
const QUANTUM: i32 = 1514;
/// The codepoint of the low-latency parameters.
pub(super) const LOW_LATENCY: u8 = 4;

#[derive(Clone, Copy)]
struct Flow {
    deficit: i32,
    /// Packets in both fifos.
    packets: u32,
    /// Not served again in this scan.
    skip: bool,
    /// On the list of flows to look at when the scan ends.
    touched: bool,
    cobalt: SceCobalt,
}

/// The qdisc; see the module's documentation.
pub struct LfqCobalt {
    config: SceConfig,
    /// For other packets and for those with [`LOW_LATENCY`].
    params: [Params; 2],
    /// `psched_mtu`, and how long it takes.
    mtu: u32,
    mtu_time: Time,
    flows: Slots<Flow>,
    touched: Vec<u16>,
    sparse: VecDeque<Packet>,
    /// The bulk fifo: what this scan has passed, and what is before it.
    passed: VecDeque<Packet>,
    ahead: VecDeque<Packet>,
    backlog: u64,
    clock: Clock,
    sce_marks: u64,
    rng: Stream,
}

impl LfqCobalt {
    /// `lfq_cobalt [bandwidth RATE|unlimited] [rtt TIME] [overhead words] [sce|sce-thresh N|no-sce]`
    pub fn new(words: &mut Words, env: &Env) -> Result<Self, TcError> {
        let config = SceConfig::parse(words, 0, None)?;
        let idle = Flow { deficit: 0, packets: 0, skip: false, touched: false, cobalt: SceCobalt::new() };
        Ok(LfqCobalt {
            params: [params(&config), params(&config).divided(5)],
            mtu: env.psched_mtu(),
            mtu_time: config.mtu_time(env.psched_mtu()),
            config,
            flows: Slots::new(idle),
            touched: Vec::new(),
            sparse: VecDeque::new(),
            passed: VecDeque::new(),
            ahead: VecDeque::new(),
            backlog: 0,
            clock: Clock::default(),
            sce_marks: 0,
            rng: Stream::new(env.seed, &env.name),
        })
    }

    /// The next packet of the scan.
    fn scan(&mut self) -> Option<Packet> {
        loop {
            let Some(packet) = self.ahead.pop_front() else {
                if self.passed.is_empty() {
                    return None;
                }
                self.end_scan();
                continue;
            };
            let slot = slot_of(&packet);
            let flow = self.flows.get(slot);
            if !std::mem::replace(&mut flow.touched, true) {
                self.touched.push(slot);
            }
            if flow.skip {
                self.passed.push_back(packet);
                continue;
            }
            flow.deficit -= packet.len as i32;
            if flow.deficit < 0 {
                flow.skip = true;
                flow.deficit += QUANTUM;
            }
            return Some(packet);
        }
    }

    /// Back to the head: a flow that was not skipped and is empty loses its deficit.
    fn end_scan(&mut self) {
        for slot in self.touched.drain(..) {
            let flow = self.flows.get(slot);
            if !flow.skip && flow.packets == 0 {
                flow.deficit = 0;
            }
            flow.skip = false;
            flow.touched = false;
        }
        std::mem::swap(&mut self.passed, &mut self.ahead);
    }

    fn dequeue_bulk(&mut self, now: Time, tally: &mut Tally) -> Option<Packet> {
        loop {
            let mut packet = self.scan()?;
            self.backlog -= u64::from(packet.len);
            let params = &self.params[usize::from(packet.dscp == LOW_LATENCY)];
            let flow = self.flows.get(slot_of(&packet));
            flow.packets -= 1;
            let over = over(params, self.mtu_time, now - packet.enqueued);
            let signal = flow.cobalt.dequeue(params, now, packet.ecn, over, &mut self.rng);
            if signal.drop && flow.packets > 0 {
                tally.drop(&packet, Cause::Aqm);
                continue;
            }
            self.sce_marks += u64::from(signal.sce && tally.mark_sce(&mut packet));
            if signal.ce {
                tally.mark(&mut packet);
            }
            return Some(packet);
        }
    }
}

impl Qdisc for LfqCobalt {
    fn enqueue(&mut self, packet: Packet, now: Time, _tally: &mut Tally) {
        if self.qlen() == 0 {
            self.clock.idle_until(now);
            self.end_scan();
        }
        let flow = self.flows.get(slot_of(&packet));
        let is_sparse = flow.packets == 0 && flow.deficit >= 0 && !flow.skip;
        flow.packets += 1;
        self.backlog += u64::from(packet.len);
        if is_sparse { &mut self.sparse } else { &mut self.ahead }.push_back(packet);
    }

    fn dequeue(&mut self, now: Time, tally: &mut Tally) -> Option<Packet> {
        if now < self.clock.next {
            return None;
        }
        let packet = if let Some(packet) = self.sparse.pop_front() {
            self.backlog -= u64::from(packet.len);
            let flow = self.flows.get(slot_of(&packet));
            flow.packets -= 1;
            flow.cobalt.queue_empty(&self.params[usize::from(packet.dscp == LOW_LATENCY)], now);
            packet
        } else {
            self.dequeue_bulk(now, tally)?
        };
        self.clock.charge(&self.config, &packet);
        Some(packet)
    }

    fn next_event(&self) -> Option<Time> {
        (self.qlen() > 0).then_some(self.clock.next)
    }

    /// Flows keep their packets and their state; what the line does not say stays.
    fn change(&mut self, words: &mut Words, _now: Time, _tally: &mut Tally) -> Result<(), TcError> {
        let config = self.config.changed(words)?;
        let params = params(&config);
        self.params = [params, params.divided(5)];
        self.mtu_time = config.mtu_time(self.mtu);
        self.config = config;
        Ok(())
    }

    fn qlen(&self) -> usize {
        self.sparse.len() + self.passed.len() + self.ahead.len()
    }

    fn backlog(&self) -> u64 {
        self.backlog
    }

    fn segments(&self, _packet: &Packet) -> bool {
        true
    }

    fn hints(&self) -> Hints {
        Hints { marks_sce: self.config.sce_thresh > 0, ..Hints::default() }
    }
}

impl Statistics for LfqCobalt {
    fn show(&self) -> String {
        self.config.show("lfq_cobalt")
    }

    fn show_stats(&self, _now: Time) -> String {
        format!("  sce_marks {}", self.sce_marks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Ecn;
    use crate::qdisc::Queue;
    use bakeoff_document::run;

    fn queue(line: &str) -> Queue {
        Queue::build(&run::Qdisc::leaf(line), &Env::default()).unwrap()
    }

    fn frame(flow: u16, len: u32) -> Packet {
        Packet { len, flow, hash: u32::from(flow), ecn: Ecn::Ect0, ..Packet::default() }
    }

    #[test]
    fn backlogged_flows_share_bytes() {
        for n in [1_u16, 2, 8, 64] {
            let mut q = queue("lfq_cobalt bandwidth 100mbit");
            let len = |flow: u16| 1514 - 20 * u32::from(flow);
            (0..5).for_each(|_| (0..n).for_each(|flow| q.enqueue(frame(flow, len(flow)), Time::ZERO)));
            let mut sent = vec![0_u64; usize::from(n)];
            // five seconds at 12.5 MB/s
            while let Some(now) = q.next_event().filter(|now| *now < Time::from_ms(5000)) {
                let packet = q.dequeue(now).unwrap();
                sent[usize::from(packet.flow)] += u64::from(packet.len);
                q.enqueue(frame(packet.flow, packet.len), now);
            }
            let all = sent.iter().sum::<u64>() as f64;
            assert!((all / 62.5e6 - 1.0).abs() < 1e-3, "{all}");
            for bytes in sent {
                assert!((bytes as f64 / all * f64::from(n) - 1.0).abs() < 0.02, "{n}: {bytes} of {all}");
            }
        }
    }

    #[test]
    fn a_flow_without_backlog_overtakes() {
        let mut q = queue("lfq_cobalt bandwidth 10mbit");
        (0..50).for_each(|_| q.enqueue(frame(1, 1514), Time::ZERO));
        let mut now = Time::ZERO;
        for _ in 0..20 {
            q.dequeue(now).unwrap();
            now = q.next_event().unwrap();
        }
        q.enqueue(frame(2, 100), now);
        assert_eq!(q.dequeue(now).unwrap().flow, 2);
    }

    #[test]
    fn low_latency_packets_are_marked_five_times_sooner() {
        // 200 packets at 10 Mbit/s: first CE 100 ms after going above 5 ms, or 20 ms after going above 4
        // frames (4.84 ms; 1 ms is less)
        let first = |dscp| {
            let mut q = queue("lfq_cobalt bandwidth 10mbit");
            (0..200).for_each(|_| q.enqueue(Packet { dscp, ..frame(1, 1514) }, Time::ZERO));
            while q.tally.marks == 0 {
                let at = q.next_event().unwrap();
                q.dequeue(at);
            }
            q.next_event().unwrap().as_ms()
        };
        assert!((106..=109).contains(&first(0)), "{}", first(0));
        assert!((26..=29).contains(&first(LOW_LATENCY)), "{}", first(LOW_LATENCY));
    }
}
