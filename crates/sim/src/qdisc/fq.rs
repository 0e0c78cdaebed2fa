//! `fq`: a queue per flow, served fairly, in which packets wait for their departure times: Linux's pacing at the host.
//!
//! Source: Linux 7.3 `net/sched/sch_fq.c`; tc-fq(8).
//!
//! A packet leaves no earlier than TCP asked for ([`Packet::enqueued`] before the first queue), and no earlier than
//! `maxrate` allows. What may leave is served by deficit round robin, new flows first, in three bands with credits of their own. A host's
//! TCP that finds `fq` on its way leaves all delays to it ([`crate::cc::sock::Pacing::Fq`]), whatever its congestion control.
//!
//! Parameters: `limit` in packets per band (10000), `flow_limit` in packets (100), `quantum` (2 frames) and `initial_quantum` (10) in
//! bytes, `maxrate` (none), `buckets`, `pacing` / `nopacing` (whether TCP leaves its delays here, and `maxrate` holds), `refill_delay`
//! (40 ms), `low_rate_threshold` (550 kbit/s), `orphan_mask` (1023: for packets of other hosts), `timer_slack` (10 us), `ce_threshold` (off),
//! `horizon` (10 s) with `horizon_drop` / `horizon_cap`, `bands 3 priomap …`, `weights …`.
//!
//! Departures: a packet's priority is that of its DSCP (`rt_tos2priority`). A flow is never forgotten (Linux: after 3 s). `buckets` only
//! shows: there are no collisions in Linux either. Packets of one segmentation unit are counted one by one. `SO_MAX_PACING_RATE` of a UDP
//! socket is not known here. Not modelled: `offload_horizon`.
//!
//! Validation: departure times, fairness in bytes, bands, limits, `maxrate` (tests below); a paced flow in whole runs (`tests/bbr_runs.rs`);
//! conservation (`tests/conservation.rs`).

mod params;

use std::collections::VecDeque;

use super::{Cause, Env, Hints, Properties, Qdisc, Statistics, Tally};
use crate::base::units::{Rate, Time};
use crate::packet::{Packet, Proto};
use bakeoff_document::tc::{TcError, Words, show};
use params::Config;

const BANDS: usize = 3;
/// Packets that may leave at once and find nobody waiting pass by the flows, up to this many.
const FAST_PATH: usize = 8;
/// Priority of a packet by the two upper bits of its old TOS field: best effort, bulk, interactive, both.
const TOS_PRIORITY: [usize; 4] = [0, 2, 6, 4];

/// Where a flow is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// On no list; since this jiffy.
    Detached(u64),
    Listed,
    Throttled,
}

impl Place {
    /// Linux keeps the jiffy in the place of a pointer and tells it by its lowest bit, so an even one becomes the next.
    fn detached(jiffy: u64) -> Place {
        Place::Detached(jiffy | 1)
    }
}

struct Flow {
    packets: VecDeque<Packet>,
    place: Place,
    credit: i64,
    band: usize,
    time_next_packet: Time,
}

#[derive(Default)]
struct Band {
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    credit: i64,
    packets: u32,
}

/// The qdisc.
pub struct Fq {
    config: Config,
    /// On a host every socket is its own flow; elsewhere hashes are masked.
    host: bool,
    hz: u64,
    /// Sorted by key: (key, index).
    index: Vec<(u32, u32)>,
    flows: Vec<Flow>,
    bands: [Band; BANDS],
    band: usize,
    /// The fast path.
    internal: VecDeque<Packet>,
    /// Throttled flows, the earliest last.
    delayed: Vec<(Time, u32)>,
    /// Flows with packets that are not throttled.
    ready: usize,
    qlen: usize,
    backlog: u64,
    throttles: u64,
    flow_limit_drops: u64,
    horizon_drops: u64,
    horizon_caps: u64,
    ce_marks: u64,
    fast_path: u64,
    /// Moving average of how late delayed flows were looked at.
    latency_ns: u64,
}

impl Fq {
    /// `fq [limit PACKETS] [flow_limit PACKETS] [quantum BYTES] [initial_quantum BYTES] [maxrate RATE] [buckets N]
    /// [[no]pacing] [refill_delay TIME] [bands 3 priomap P0 … P15] [weights W1 W2 W3] [low_rate_threshold RATE]
    /// [orphan_mask MASK] [timer_slack TIME] [ce_threshold TIME] [horizon TIME] [horizon_cap | horizon_drop]`
    pub fn new(words: &mut Words, env: &Env) -> Result<Self, TcError> {
        let mtu = env.psched_mtu();
        let mut config = Config {
            limit: 10_000,
            flow_limit: 100,
            quantum: (2 * mtu).clamp(256, 1 << 20),
            initial_quantum: (10 * mtu).min(1 << 20),
            buckets: 1024,
            maxrate: None,
            pacing: true,
            refill_delay: Time::from_ms(40),
            low_rate_threshold: Rate(550_000),
            orphan_mask: 1023,
            timer_slack: Time::from_us(10),
            ce_threshold: None,
            horizon: Time::from_ms(10_000),
            horizon_drop: true,
            priomap: [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1],
            weights: [9 << 16, 3 << 16, 1 << 16],
        };
        config.take_all(words)?;
        Ok(Fq {
            config,
            host: env.host,
            hz: env.hz,
            index: Vec::new(),
            flows: Vec::new(),
            bands: Default::default(),
            band: 0,
            internal: VecDeque::new(),
            delayed: Vec::new(),
            ready: 0,
            qlen: 0,
            backlog: 0,
            throttles: 0,
            flow_limit_drops: 0,
            horizon_drops: 0,
            horizon_caps: 0,
            ce_marks: 0,
            fast_path: 0,
            latency_ns: 0,
        })
    }

    /// Source: Linux 7.3 `fq_prio2band`.
    fn band_of(&self, packet: &Packet) -> usize {
        self.config.priomap[TOS_PRIORITY[usize::from(packet.dscp >> 1 & 3)]].into()
    }

    /// `fq_classify`, without the fast path.
    fn flow_of(&mut self, packet: &Packet, now: Time) -> u32 {
        let key = if self.host { packet.hash } else { packet.hash & self.config.orphan_mask };
        match self.index.binary_search_by_key(&key, |entry| entry.0) {
            Ok(at) => self.index[at].1,
            Err(at) => {
                let new = self.flows.len() as u32;
                self.index.insert(at, (key, new));
                self.flows.push(Flow {
                    packets: VecDeque::new(),
                    place: Place::detached(now.jiffies(self.hz)),
                    credit: self.config.initial_quantum.into(),
                    band: 0,
                    time_next_packet: Time::ZERO,
                });
                new
            }
        }
    }

    /// Nobody waits who could leave, and this one may: past the flows. Source: Linux 7.3 `fq_fastpath_check`.
    fn takes_fast_path(&self, packet: &Packet, now: Time) -> bool {
        packet.enqueued <= now
            && self.config.maxrate.is_none()
            && (self.qlen == 0
                || (self.ready == 0
                    && self.internal.len() < FAST_PATH
                    && self.delayed.last().is_none_or(|d| d.0 > now)))
    }

    /// Source: Linux 7.3 `fq_flow_set_throttled`.
    fn throttle(&mut self, index: u32, until: Time) {
        let flow = &mut self.flows[index as usize];
        flow.time_next_packet = until;
        flow.place = Place::Throttled;
        let at = self.delayed.partition_point(|d| d.0 > until);
        self.delayed.insert(at, (until, index));
        self.throttles += 1;
        self.ready -= 1;
    }

    /// Source: Linux 7.3 `fq_check_throttled`.
    fn unthrottle_until(&mut self, now: Time) {
        if let Some(&(first, _)) = self.delayed.last()
            && first < now
        {
            self.latency_ns = self.latency_ns - (self.latency_ns >> 3) + ((now - first).as_ns() >> 3);
        }
        while let Some(&(at, index)) = self.delayed.last()
            && at <= now
        {
            self.delayed.pop();
            let flow = &mut self.flows[index as usize];
            flow.place = Place::Listed;
            self.ready += 1;
            self.bands[flow.band].old.push_back(index);
        }
    }

    /// The next band with a flow and credit; `None` if there is no flow on any list.
    /// Source: Linux 7.3 `fq_pband_head_select`, `fq_dequeue`.
    fn select(&mut self) -> Option<(usize, bool)> {
        let mut empty = 0;
        loop {
            let band = &mut self.bands[self.band];
            if band.credit > 0 {
                if !band.new.is_empty() || !band.old.is_empty() {
                    return Some((self.band, !band.new.is_empty()));
                }
                empty += 1;
                if empty > BANDS {
                    return None;
                }
            }
            self.band = (self.band + 1) % BANDS;
            let weight = i64::from(self.config.weights[self.band]);
            let band = &mut self.bands[self.band];
            band.credit = (band.credit + weight).min(weight);
        }
    }

    /// `maxrate`: when the flow's next packet may leave. Source: Linux 7.3 `fq_dequeue`.
    fn charge(&mut self, index: u32, packet: &Packet, now: Time) {
        let Some(rate) = self.config.maxrate.filter(|_| self.config.pacing) else { return };
        let flow = &mut self.flows[index as usize];
        let mut len = packet.len;
        // TCP always stamps its packets.
        if packet.proto != Proto::Tcp {
            if rate <= self.config.low_rate_threshold {
                flow.credit = 0;
            } else {
                len = len.max(self.config.quantum);
                if flow.credit > 0 {
                    return;
                }
            }
        }
        let mut wait = rate.time_for(len).min(Time::from_ms(1000));
        if flow.time_next_packet > Time::ZERO {
            // A late timer is repaid at no more than twice the rate.
            wait = wait - Time(wait.0 / 2).min(now - flow.time_next_packet);
        }
        flow.time_next_packet = now + wait;
    }

    fn left(&mut self, packet: &Packet) {
        self.qlen -= 1;
        self.backlog -= u64::from(packet.len);
    }
}

impl Qdisc for Fq {
    const PROPERTIES: Properties = Properties { keeps_departure: true, ..Properties::DEFAULT };

    /// `packet.enqueued` is when it may leave, `now` at the earliest.
    /// Source: Linux 7.3 `fq_enqueue`, `fq_packet_beyond_horizon`.
    fn enqueue(&mut self, mut packet: Packet, now: Time, tally: &mut Tally) {
        let band = self.band_of(&packet);
        if self.bands[band].packets >= self.config.limit {
            tally.drop(&packet, Cause::Overlimit);
            return;
        }
        if packet.enqueued > now + self.config.horizon {
            if self.config.horizon_drop {
                self.horizon_drops += 1;
                tally.drop(&packet, Cause::Overlimit);
                return;
            }
            self.horizon_caps += 1;
            packet.enqueued = now + self.config.horizon;
        }
        if self.takes_fast_path(&packet, now) {
            self.fast_path += 1;
            self.qlen += 1;
            self.backlog += u64::from(packet.len);
            self.internal.push_back(packet);
            return;
        }
        let index = self.flow_of(&packet, now);
        let flow = &mut self.flows[index as usize];
        if flow.packets.len() >= self.config.flow_limit as usize {
            self.flow_limit_drops += 1;
            tally.drop(&packet, Cause::Overlimit);
            return;
        }
        if let Place::Detached(since) = flow.place {
            flow.place = Place::Listed;
            // On the list of the band that it had before: a flow's first packet goes by the first band.
            self.bands[flow.band].new.push_back(index);
            let refill = (self.config.refill_delay.as_us() * self.hz).div_ceil(1_000_000);
            // Linux compares without signs: a debt is kept.
            if now.jiffies(self.hz) > since + refill && flow.credit >= 0 {
                flow.credit = flow.credit.max(self.config.quantum.into());
            }
        }
        flow.band = band;
        if flow.packets.is_empty() && flow.place == Place::Listed {
            self.ready += 1;
        }
        self.bands[band].packets += 1;
        self.qlen += 1;
        self.backlog += u64::from(packet.len);
        let at = flow.packets.iter().rev().take_while(|p| p.enqueued > packet.enqueued).count();
        let at = flow.packets.len() - at;
        flow.packets.insert(at, packet);
    }

    /// Source: Linux 7.3 `fq_dequeue`.
    fn dequeue(&mut self, now: Time, tally: &mut Tally) -> Option<Packet> {
        if let Some(packet) = self.internal.pop_front() {
            self.left(&packet);
            return Some(packet);
        }
        if self.qlen == 0 {
            return None;
        }
        self.unthrottle_until(now);
        loop {
            let (band, is_new) = self.select()?;
            let lists = &mut self.bands[band];
            let list = if is_new { &mut lists.new } else { &mut lists.old };
            let index = *list.front()?;
            let flow = &mut self.flows[index as usize];
            if flow.credit <= 0 {
                flow.credit += i64::from(self.config.quantum);
                list.pop_front();
                self.bands[flow.band].old.push_back(index);
                continue;
            }
            let Some(head) = flow.packets.front() else {
                list.pop_front();
                if is_new {
                    // Once through the old flows, or it could come back as new for ever.
                    self.bands[flow.band].old.push_back(index);
                } else {
                    flow.place = Place::detached(now.jiffies(self.hz));
                }
                continue;
            };
            let due = head.enqueued.max(flow.time_next_packet);
            if due > now {
                list.pop_front();
                self.throttle(index, due);
                continue;
            }
            let mut packet = flow.packets.pop_front()?;
            if flow.packets.is_empty() {
                self.ready -= 1;
            }
            flow.credit -= i64::from(packet.len);
            lists.credit -= i64::from(packet.len);
            // A flow whose DSCP changes has packets of several bands.
            let of = self.band_of(&packet);
            self.bands[of].packets -= 1;
            self.left(&packet);
            if self.config.ce_threshold.is_some_and(|threshold| now - due > threshold) {
                // Linux counts a packet that cannot be marked, too.
                tally.mark(&mut packet);
                self.ce_marks += 1;
            }
            self.charge(index, &packet, now);
            return Some(packet);
        }
    }

    fn next_event(&self) -> Option<Time> {
        if !self.internal.is_empty() || self.ready > 0 {
            return None;
        }
        self.delayed.last().map(|d| d.0 + self.config.timer_slack)
    }

    fn qlen(&self) -> usize {
        self.qlen
    }

    fn backlog(&self) -> u64 {
        self.backlog
    }

    fn change(&mut self, words: &mut Words, now: Time, tally: &mut Tally) -> Result<(), TcError> {
        let mut config = self.config.clone();
        config.take_all(words)?;
        self.config = config;
        let mut counts = [0; BANDS];
        for packet in self.flows.iter().flat_map(|flow| &flow.packets) {
            counts[self.band_of(packet)] += 1;
        }
        for (band, count) in self.bands.iter_mut().zip(counts) {
            band.packets = count;
        }
        while self.qlen > self.config.limit as usize {
            let Some(packet) = self.dequeue(now, tally) else { break };
            tally.drop(&packet, Cause::Overlimit);
        }
        Ok(())
    }

    fn hints(&self) -> Hints {
        Hints { eager: true, paces: self.config.pacing, ..Hints::default() }
    }
}

impl Statistics for Fq {
    fn show(&self) -> String {
        let c = &self.config;
        let join = |words: Vec<String>| words.join(" ");
        let optional =
            |word: &str, value: Option<String>| value.map_or(String::new(), |v| format!(" {word} {v}"));
        format!(
            "fq limit {}p flow_limit {}p buckets {} orphan_mask {}{} bands 3 priomap {} weights {} quantum {}b \
             initial_quantum {}b{} low_rate_threshold {} refill_delay {}{} timer_slack {} horizon {} {} offload_horizon 0us",
            c.limit,
            c.flow_limit,
            c.buckets,
            c.orphan_mask,
            if c.pacing { "" } else { " nopacing" },
            join(c.priomap.iter().map(u8::to_string).collect()),
            join(c.weights.iter().map(i32::to_string).collect()),
            c.quantum,
            c.initial_quantum,
            optional("maxrate", c.maxrate.map(show::rate)),
            show::rate(c.low_rate_threshold),
            show::time(c.refill_delay.as_us()),
            optional("ce_threshold", c.ce_threshold.map(|t| show::time(t.as_us()))),
            show::time64(c.timer_slack.0),
            show::time(c.horizon.as_us()),
            if c.horizon_drop { "horizon_drop" } else { "horizon_cap" },
        )
    }

    fn show_stats(&self, _now: Time) -> String {
        let inactive = self.flows.iter().filter(|f| f.packets.is_empty()).count();
        let [band0, band1, band2] = [0, 1, 2].map(|band| self.bands[band].packets);
        // What never happened is not named.
        let some = |word: &str, n: u64| if n > 0 { format!(" {word} {n}") } else { String::new() };
        let latency = match self.latency_ns {
            0 => String::new(),
            ns => format!(" latency {}", show::time64(ns)),
        };
        let horizon = match (self.horizon_drops, self.horizon_caps) {
            (0, 0) => String::new(),
            (drops, caps) => format!(" horizon_drops {drops} horizon_caps {caps}"),
        };
        format!(
            "  flows {} (inactive {inactive} throttled {}) band0_pkts {band0} band1_pkts {band1} band2_pkts {band2}\n  \
             gc 0 highprio 0{} throttled {}{latency}{}{}{horizon}",
            self.flows.len(),
            self.delayed.len(),
            some("fastpath", self.fast_path),
            self.throttles,
            some("ce_mark", self.ce_marks),
            some("flows_plimit", self.flow_limit_drops),
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
        Queue::build(&run::Qdisc::leaf(line), &Env { host: true, ..Env::default() }).unwrap()
    }

    fn ms(ms: u64) -> Time {
        Time::from_ms(ms)
    }

    /// A frame of `flow` that may leave at `at`.
    fn frame(flow: u16, at: Time, seq: u64) -> Packet {
        Packet { hash: flow.into(), flow, len: 1514, enqueued: at, seq, ..Packet::default() }
    }

    fn take(q: &mut Queue, now: Time, n: usize) -> Vec<u16> {
        (0..n).map_while(|_| q.dequeue(now).map(|p| p.flow)).collect()
    }

    #[test]
    fn a_packet_leaves_at_its_departure_time_and_the_timer_is_set_for_it() {
        let mut q = queue("fq");
        for (seq, at) in [(0, 0), (1, 10), (2, 5)] {
            q.enqueue(frame(1, ms(at), seq), Time::ZERO);
        }
        assert_eq!(q.dequeue(Time::ZERO).map(|p| p.seq), Some(0));
        assert!(q.dequeue(ms(4)).is_none());
        // 10 us of slack
        assert_eq!(q.next_event(), Some(Time::from_us(5_010)));
        assert_eq!(q.dequeue(ms(5)).map(|p| p.seq), Some(2));
        assert!(q.dequeue(ms(9)).is_none());
        assert_eq!(q.dequeue(ms(10)).map(|p| p.seq), Some(1));
        assert_eq!((q.qlen(), q.backlog(), q.next_event()), (0, 0, None));
    }

    #[test]
    fn what_may_leave_is_shared_two_frames_a_turn() {
        let mut q = queue("fq");
        q.enqueue(frame(9, ms(1), 0), Time::ZERO);
        // due at 2 ms, so that none of them takes the fast path; each flow's first quantum is 10 frames
        for i in 0..40 {
            for flow in [1, 2] {
                q.enqueue(frame(flow, ms(2), i), Time::ZERO);
            }
        }
        let order = take(&mut q, ms(2), 81);
        assert_eq!(order.len(), 81);
        assert_eq!(order.iter().filter(|f| **f == 1).count(), 40);
        let first_20 = &order[order.len() - 20..];
        // two frames exhaust a quantum of 3028 bytes
        assert!(first_20.chunks(2).all(|c| c[0] == c[1]), "{order:?}");
    }

    #[test]
    fn bands_share_in_proportion_to_their_weights() {
        // TOS 0x10 is interactive, 0 best effort, 0x08 bulk: bands 0, 1, 2 with 9 : 3 : 1
        let mut q = queue("fq flow_limit 10000");
        for i in 0..3000 {
            for (flow, dscp) in [(1, 4), (2, 0), (3, 2)] {
                q.enqueue(Packet { dscp, ..frame(flow, ms(1), i) }, Time::ZERO);
            }
        }
        let order = take(&mut q, ms(1), 2600);
        let share = |flow| order.iter().filter(|f| **f == flow).count() as f64 / 200.0;
        // a turn is 589824 bytes, 390 frames: the last one may be under way
        assert!((share(1) - 9.0).abs() < 1.0, "{}", share(1));
        assert!((share(2) - 3.0).abs() < 0.7, "{}", share(2));
        assert!((share(3) - 1.0).abs() < 0.3, "{}", share(3));
    }

    #[test]
    fn a_flow_holds_100_packets_and_a_band_its_limit() {
        let mut q = queue("fq limit 150");
        for i in 0..120 {
            q.enqueue(frame(1, ms(1), i), Time::ZERO);
        }
        assert_eq!((q.qlen(), q.tally.dropped()), (100, 20));
        for i in 0..60 {
            q.enqueue(frame(2, ms(1), i), Time::ZERO);
        }
        assert_eq!((q.qlen(), q.tally.dropped()), (150, 30));
    }

    #[test]
    fn a_flow_that_changes_its_dscp_and_a_new_map_keep_the_counts_of_the_bands() {
        let mut q = queue("fq");
        for (seq, dscp) in [(0, 0), (1, 2), (2, 4)] {
            q.enqueue(Packet { dscp, ..frame(1, ms(1), seq) }, Time::ZERO);
        }
        q.change("fq bands 3 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0", Time::ZERO).unwrap();
        assert_eq!(take(&mut q, ms(1), 9), [1, 1, 1]);
        assert_eq!(q.qlen(), 0);
    }

    #[test]
    fn beyond_the_horizon_packets_are_dropped_or_come_earlier() {
        let mut q = queue("fq");
        q.enqueue(frame(1, ms(10_001), 0), Time::ZERO);
        assert_eq!(q.tally.dropped(), 1);
        let mut q = queue("fq horizon 2s horizon_cap");
        q.enqueue(frame(1, ms(10_001), 0), Time::ZERO);
        assert!(q.dequeue(ms(1_999)).is_none());
        assert!(q.dequeue(ms(2_000)).is_some());
    }

    #[test]
    fn maxrate_spaces_the_frames_of_each_flow() {
        // 1514 B at 12.112 Mbit/s are 1 ms
        let mut q = queue("fq maxrate 12112kbit timer_slack 0");
        for i in 0..5 {
            q.enqueue(frame(1, Time::ZERO, i), Time::ZERO);
        }
        let mut times = Vec::new();
        let mut now = Time::ZERO;
        while q.qlen() > 0 {
            if q.dequeue(now).is_some() {
                times.push(now.as_us());
            } else {
                now = q.next_event().unwrap();
            }
        }
        assert_eq!(times, [0, 1_000, 2_000, 3_000, 4_000]);
    }

    #[test]
    fn what_waits_longer_than_the_threshold_is_marked() {
        let mut q = queue("fq ce_threshold 1ms");
        for (seq, at) in [(0, 1), (1, 2)] {
            q.enqueue(Packet { ecn: Ecn::Ect0, ..frame(1, ms(at), seq) }, Time::ZERO);
        }
        assert_eq!(q.dequeue(Time::from_us(2_001)).map(|p| p.ecn), Some(Ecn::Ce));
        assert_eq!(q.dequeue(Time::from_us(2_002)).map(|p| p.ecn), Some(Ecn::Ect0));
    }

    #[test]
    fn a_quantum_is_a_number_without_a_unit() {
        assert!(
            queue("fq quantum 4000 initial_quantum 0x4000")
                .show()
                .contains("quantum 4000b initial_quantum 16384b")
        );
        for line in ["fq quantum 2kb", "fq initial_quantum 15140b"] {
            let error = Queue::build(&run::Qdisc::leaf(line), &Env::default()).map(|q| q.show()).unwrap_err();
            assert!(error.to_string().contains("is not a whole number"), "{error}");
        }
    }

    #[test]
    fn it_shows_what_tc_shows() {
        assert_eq!(
            queue("fq").show(),
            "fq limit 10000p flow_limit 100p buckets 1024 orphan_mask 1023 bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1 \
             weights 589824 196608 65536 quantum 3028b initial_quantum 15140b low_rate_threshold 550Kbit refill_delay 40ms \
             timer_slack 10us horizon 10s horizon_drop offload_horizon 0us"
        );
    }
}
