//! `fq_pie`: flow queues served by DRR++ with priority for sparse flows, PIE in each of them.
//!
//! Source: RFC 8033, RFC 8290; Linux 7.3 `net/sched/sch_fq_pie.c`.
//!
//! Parameters: `limit` in packets (10240), `flows` (1024 queues), `quantum` in bytes (one frame, at least 256),
//! `memory_limit` in bytes (32 MiB), `ecn_prob` in percent up to which it marks (10); PIE's `target`, `tupdate`,
//! `alpha`, `beta`, `ecn`, `bytemode`, `dq_rate_estimator` with their defaults.
//!
//! As in Linux, a queue above its memory limit is only counted.
//!
//! Departures: all flows are updated at once, where Linux takes 2048 of them in a jiffy; a packet's memory is
//! [`truesize`]; the timer's phase counts from the start of the run.
//!
//! Validation: byte fairness, one controller per flow, marks up to `ecn_prob` (tests below); conservation
//! (`tests/conservation.rs`).

use std::collections::VecDeque;

use super::pie::control::{Params, Vars, Version, ticks};
use super::timer::Timer;
use super::{Cause, Env, Properties, Qdisc, Statistics, Tally};
use crate::base::rng::Stream;
use crate::base::units::Time;
use crate::packet::Packet;
use crate::packet::charge::truesize;
use bakeoff_document::tc::{TcError, Words, show};

/// The flow-queueing scheduler.
pub struct FqPie {
    config: Config,
    flows: Vec<Flow>,
    new_flows: VecDeque<u32>,
    old_flows: VecDeque<u32>,
    /// Flows whose controller may still move.
    awake: Vec<u32>,
    qlen: u32,
    backlog: u64,
    memory: u64,
    timer: Timer,
    hz: u64,
    mtu: u64,
    rng: Stream,
    stats: Stats,
}

struct Flow {
    packets: VecDeque<Packet>,
    backlog: u64,
    vars: Vars,
    deficit: i64,
    listed: bool,
    awake: bool,
}

#[derive(Clone)]
struct Config {
    flows: u32,
    quantum: u32,
    memory_limit: u64,
    ecn_prob: u32,
    params: Params,
}

/// What `tc -s` reports.
#[derive(Default)]
struct Stats {
    packets_in: u64,
    overlimit: u64,
    overmemory: u64,
    dropped: u64,
    ecn_mark: u64,
    new_flow_count: u64,
}

impl Config {
    const WORDS: [&str; 4] = ["flows", "quantum", "memory_limit", "ecn_prob"];

    fn take_all(&mut self, words: &mut Words) -> Result<(), TcError> {
        while let Some(word) = words.next_word() {
            match word {
                "flows" => {
                    self.flows = words.positive_u32()?;
                    if self.flows > 65536 {
                        return Err(words.bad("flows", &self.flows.to_string(), "at most 65536"));
                    }
                }
                "quantum" => {
                    let quantum = words.size()?;
                    if !(1..=1 << 20).contains(&quantum) {
                        return Err(words.bad("quantum", &quantum.to_string(), "from 1 byte to 1 MB"));
                    }
                    self.quantum = (quantum as u32).max(256);
                }
                "memory_limit" => self.memory_limit = words.size()?,
                "ecn_prob" => {
                    self.ecn_prob = words.u32()?;
                    if self.ecn_prob > 100 {
                        return Err(words.bad(
                            "ecn_prob",
                            &self.ecn_prob.to_string(),
                            "a percentage up to 100",
                        ));
                    }
                }
                _ if self.params.take(word, words)? => {}
                _ => return Err(words.unknown(word, &[&Self::WORDS, Params::WORDS.as_slice()].concat())),
            }
        }
        Ok(())
    }
}

impl FqPie {
    /// `fq_pie [limit PACKETS] [flows N] [target TIME] [tupdate TIME] [alpha N] [beta N] [quantum BYTES]
    /// [memory_limit BYTES] [ecn_prob PERCENT] [[no]ecn] [[no]bytemode] [[no_]dq_rate_estimator]`
    pub fn new(words: &mut Words, env: &Env) -> Result<Self, TcError> {
        let mut config = Config {
            flows: 1024,
            quantum: env.psched_mtu().max(256),
            memory_limit: 32 << 20,
            ecn_prob: 10,
            params: Params::new(Version::Mainline, 10 * 1024),
        };
        config.take_all(words)?;
        let idle = || Flow {
            packets: VecDeque::new(),
            backlog: 0,
            vars: Vars::new(),
            deficit: 0,
            listed: false,
            awake: false,
        };
        Ok(FqPie {
            flows: (0..config.flows).map(|_| idle()).collect(),
            new_flows: VecDeque::new(),
            old_flows: VecDeque::new(),
            awake: Vec::new(),
            qlen: 0,
            backlog: 0,
            memory: 0,
            timer: Timer::jiffies(config.params.tupdate, env.hz, env.replaced),
            hz: env.hz,
            mtu: u64::from(env.psched_mtu()),
            rng: Stream::new(env.seed, &env.name),
            stats: Stats::default(),
            config,
        })
    }

    /// Source: Linux 7.3 `fq_pie_timer`.
    fn run_timer(&mut self, now: Time) {
        while self.timer.due(now).is_some() {
            let (flows, params) = (&mut self.flows, &self.config.params);
            let mut moved = false;
            self.awake.retain(|index| {
                let flow = &mut flows[*index as usize];
                let before = flow.vars;
                flow.vars.update(params, flow.backlog);
                let moves = flow.vars != before;
                moved |= moves;
                // With nothing standing the next update finds the same.
                flow.awake = moves || flow.backlog > 0;
                flow.awake
            });
            if !moved {
                self.timer.skip(now);
            }
        }
    }

    /// Why the packet must not come in, after a mark where that is possible.
    /// Source: RFC 8033, sections 4.1 and 5.1; Linux 7.3 `fq_pie_qdisc_enqueue`.
    fn refuses(&mut self, index: usize, packet: &mut Packet, tally: &mut Tally) -> Option<Cause> {
        let Config { params, memory_limit, ecn_prob, .. } = &self.config;
        if self.qlen >= params.limit {
            self.stats.overlimit += 1;
            return Some(Cause::Overlimit);
        }
        if self.memory > memory_limit + truesize(packet) {
            self.stats.overmemory += 1;
        }
        let flow = &mut self.flows[index];
        let len = u64::from(packet.len);
        if !flow.vars.drop_early(params, len, flow.backlog, self.mtu, &mut self.rng) {
            return None;
        }
        let may_mark = flow.vars.prob <= params.version.max_prob() / 100 * u64::from(*ecn_prob);
        if params.ecn && may_mark && tally.mark(packet) {
            self.stats.ecn_mark += 1;
            return None;
        }
        let overload = params.ecn && !may_mark && packet.ecn.is_capable();
        Some(if overload { Cause::Overload } else { Cause::Aqm })
    }
}

impl Qdisc for FqPie {
    const PROPERTIES: Properties = Properties { work_conserving: true, ..Properties::DEFAULT };

    /// Source: RFC 8290, section 4.1; Linux 7.3 `fq_pie_qdisc_enqueue`.
    fn enqueue(&mut self, mut packet: Packet, now: Time, tally: &mut Tally) {
        self.run_timer(now);
        let index = ((u64::from(packet.hash) * u64::from(self.config.flows)) >> 32) as usize;
        if let Some(cause) = self.refuses(index, &mut packet, tally) {
            self.stats.dropped += 1;
            self.flows[index].vars.accu = 0;
            tally.drop(&packet, cause);
            return;
        }
        let flow = &mut self.flows[index];
        self.stats.packets_in += 1;
        self.qlen += 1;
        self.backlog += u64::from(packet.len);
        self.memory += truesize(&packet);
        flow.backlog += u64::from(packet.len);
        flow.packets.push_back(packet);
        if !flow.listed {
            flow.listed = true;
            flow.deficit = i64::from(self.config.quantum);
            self.stats.new_flow_count += 1;
            self.new_flows.push_back(index as u32);
        }
        if !flow.awake {
            flow.awake = true;
            self.awake.push(index as u32);
        }
    }

    /// Source: RFC 8290, section 4.2; Linux 7.3 `fq_pie_qdisc_dequeue`.
    fn dequeue(&mut self, now: Time, _tally: &mut Tally) -> Option<Packet> {
        self.run_timer(now);
        loop {
            let is_new = !self.new_flows.is_empty();
            let list = if is_new { &mut self.new_flows } else { &mut self.old_flows };
            let index = *list.front()?;
            let flow = &mut self.flows[index as usize];
            if flow.deficit <= 0 {
                flow.deficit += i64::from(self.config.quantum);
                list.pop_front();
                self.old_flows.push_back(index);
                continue;
            }
            let Some(packet) = flow.packets.pop_front() else {
                // Not twice in a row among the new ones: the old ones would starve.
                list.pop_front();
                if is_new && !self.old_flows.is_empty() {
                    self.old_flows.push_back(index);
                } else {
                    flow.listed = false;
                }
                continue;
            };
            let len = u64::from(packet.len);
            self.qlen -= 1;
            self.backlog -= len;
            self.memory -= truesize(&packet);
            flow.backlog -= len;
            flow.deficit -= i64::from(packet.len);
            let sojourn = ticks(now) - ticks(packet.enqueued);
            flow.vars.departed(&self.config.params, len, sojourn, flow.backlog, ticks(now));
            return Some(packet);
        }
    }

    fn qlen(&self) -> usize {
        self.qlen as usize
    }

    fn backlog(&self) -> u64 {
        self.backlog
    }

    /// The number of flows stays, as in Linux. Packets above a lowered limit are taken as by a dequeue and dropped.
    fn change(&mut self, words: &mut Words, now: Time, tally: &mut Tally) -> Result<(), TcError> {
        let mut config = self.config.clone();
        config.take_all(words)?;
        if config.flows != self.config.flows {
            return Err(words.refuse("the number of flows cannot change in place"));
        }
        self.timer.set_period(config.params.tupdate, self.hz);
        self.config = config;
        while self.qlen > self.config.params.limit {
            let Some(packet) = self.dequeue(now, tally) else { break };
            tally.drop(&packet, Cause::Overlimit);
        }
        Ok(())
    }
}

impl Statistics for FqPie {
    fn show(&self) -> String {
        let c = &self.config;
        format!(
            "fq_pie limit {}p flows {} {} quantum {} memory_limit {} ecn_prob {}{}",
            c.params.limit,
            c.flows,
            c.params.show(&self.timer),
            show::size(u64::from(c.quantum)),
            show::size(c.memory_limit),
            c.ecn_prob,
            c.params.show_modes(),
        )
    }

    fn show_stats(&self, _now: Time) -> String {
        let s = &self.stats;
        format!(
            "  pkts_in {} overlimit {} overmemory {} dropped {} ecn_mark {}\n  new_flow_count {} new_flows_len {} \
             old_flows_len {} memory_used {}",
            s.packets_in,
            s.overlimit,
            s.overmemory,
            s.dropped,
            s.ecn_mark,
            s.new_flow_count,
            self.new_flows.len(),
            self.old_flows.len(),
            self.memory,
        )
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

    /// A frame whose hash puts it into queue `flow` of 1024.
    fn frame(flow: u16, len: u32, ecn: Ecn) -> Packet {
        Packet { flow, hash: u32::from(flow) << 22, len, ecn, ..Packet::default() }
    }

    #[test]
    fn backlogged_flows_share_bytes_and_a_sparse_one_goes_first() {
        let mut q = queue("fq_pie");
        for _ in 0..100 {
            q.enqueue(frame(1, 1514, Ecn::NotEct), Time::ZERO);
            q.enqueue(frame(2, 500, Ecn::NotEct), Time::ZERO);
        }
        let out: Vec<u16> = (0..120).map_while(|_| q.dequeue(Time::ZERO).map(|p| p.flow)).collect();
        let bytes = |flow, len| len * out.iter().filter(|f| **f == flow).count() as i64;
        assert!((bytes(1, 1514) - bytes(2, 500)).abs() <= 2 * 1514);
        q.enqueue(frame(3, 100, Ecn::NotEct), Time::ZERO);
        assert_eq!(q.dequeue(Time::ZERO).map(|p| p.flow), Some(3));
    }

    /// Two flows for 10 s at 10 Mbit/s: one offers too much, one a tenth of it. Marks and drops of each.
    fn two_flows(line: &str, ecn: Ecn) -> [(u64, u64); 2] {
        let mut q = queue(line);
        for ms in 0..10_000 {
            let now = Time::from_ms(ms);
            q.enqueue(frame(1, 1250, ecn), now);
            q.enqueue(frame(1, 1250, ecn), now);
            if ms % 10 == 0 {
                q.enqueue(frame(2, 1250, ecn), now);
            }
            q.dequeue(now);
        }
        [1, 2].map(|flow| (q.tally.flows[flow].marks, q.tally.flows[flow].drops))
    }

    #[test]
    fn each_flow_has_its_own_controller() {
        let [(_, greedy), (_, sparse)] = two_flows("fq_pie", Ecn::NotEct);
        // about half of what the greedy one offers must go; the sparse one never waits
        assert!((8_000..12_000).contains(&greedy), "{greedy}");
        assert_eq!(sparse, 0);
    }

    #[test]
    fn it_marks_up_to_ecn_prob_and_drops_above() {
        for (line, prob, marks) in
            [("fq_pie ecn", 9, 1), ("fq_pie ecn", 11, 0), ("fq_pie ecn ecn_prob 20", 11, 1), ("fq_pie", 9, 0)]
        {
            let mut words = Words::new(line);
            words.kind().unwrap();
            let mut q = FqPie::new(&mut words, &Env::default()).unwrap();
            let mut tally = Tally::default();
            let one = Version::Mainline.max_prob();
            let flow = &mut q.flows[1];
            flow.backlog = 100_000;
            // past the burst allowance, and so much summed up that the decision is certain
            (flow.vars.burst, flow.vars.qdelay, flow.vars.prob) = (0, u64::MAX, one / 100 * prob);
            flow.vars.accu = u128::from(one) * 9;
            let cause = q.refuses(1, &mut frame(1, 1000, Ecn::Ect0), &mut tally);
            assert_eq!((cause.is_none(), tally.marks), (marks == 1, marks), "{line} at {prob} %");
        }
    }

    #[test]
    fn the_configuration_is_shown_as_tc_does() {
        let mut q = queue("fq_pie ecn tupdate 32ms memory_limit 4Mb");
        assert_eq!(
            q.show(),
            "fq_pie limit 10240p flows 1024 target 15ms tupdate 32ms alpha 2 beta 20 quantum 1514b \
             memory_limit 4Mb ecn_prob 10 ecn"
        );
        assert!(q.change("fq_pie flows 3", Time::ZERO).is_err());
        q.enqueue(frame(1, 100, Ecn::NotEct), Time::ZERO);
        q.enqueue(frame(1, 100, Ecn::NotEct), Time::ZERO);
        q.change("fq_pie limit 1 noecn", Time::ZERO).unwrap();
        assert_eq!((q.qlen(), q.tally.dropped()), (1, 1));
        assert!(q.show().starts_with("fq_pie limit 1p flows 1024") && q.show().ends_with("ecn_prob 10"));
    }
}
