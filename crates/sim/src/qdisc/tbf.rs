//! `tbf`: a token bucket, and a second one for the peak rate, before one queue.
//!
//! Source: Linux 7.3 `net/sched/sch_tbf.c`; iproute2 `tc/q_tbf.c` (limit from latency).
//!
//! Parameters: `rate` and `burst` (or `buffer`, `maxburst`) in bytes, both needed; `limit` in bytes or `latency`, the
//! longest time in the queue, one of them needed; `peakrate` with `mtu` (or `minburst`) in bytes; `mpu`, `overhead`
//! in bytes, `linklayer ethernet | atm`. The queue is a bfifo of `limit` bytes, or the child. Packets above the burst
//! (or the peak's mtu) are dropped; several segments in one buffer are taken apart, if each is short enough.
//!
//! Departures: a child that is no fifo is asked for its head packet before the tokens are there, as in Linux; its
//! sojourn time ends then.
//!
//! Validation: departures at rate and peak rate, bursts, limits (tests below); conservation
//! (`tests/conservation.rs`).

use super::ratecfg::{Framing, SendTime, atm, burst_size, nonzero, short};
use super::{Cause, Env, Hints, Properties, Qdisc, Queue, Statistics, Tally, Tree};
use crate::base::units::Time;
use crate::packet::Packet;
use bakeoff_document::run;
use bakeoff_document::tc::{TcError, Words, show};

/// The token bucket filter.
pub struct Tbf {
    params: Params,
    /// Buckets, in nanoseconds of sending.
    tokens: i64,
    peak_tokens: i64,
    /// When the buckets were last brought up to date.
    checkpoint: Time,
    /// A packet that the child gave, and that has to wait.
    held: Option<Packet>,
    /// When the packet at the head may leave, if the tokens did not suffice at the last look.
    wake: Time,
    overlimits: u64,
    child: Box<Queue>,
    /// The document gave the child; then `limit` is not the child's.
    own_child: bool,
}

#[derive(Clone)]
struct Params {
    rate: SendTime,
    frame: Framing,
    /// Depths, in nanoseconds.
    buffer: i64,
    peak: Option<Peak>,
    /// In bytes.
    limit: u64,
    max_size: u64,
}

#[derive(Clone, Copy)]
struct Peak {
    rate: SendTime,
    mtu: i64,
}

impl Params {
    const WORDS: [&str; 10] =
        ["rate", "burst", "limit", "latency", "peakrate", "mtu", "minburst", "mpu", "overhead", "linklayer"];

    fn parse(words: &mut Words) -> Result<Self, TcError> {
        let (mut rate, mut burst, mut limit, mut latency) = (None, None, None, None);
        let (mut peakrate, mut mtu) = (None, None);
        let mut frame = Framing::default();
        while let Some(word) = words.next_word() {
            match word {
                "rate" => rate = Some(nonzero(word, words)?),
                "burst" | "buffer" | "maxburst" => burst = Some(burst_size(word, words)?),
                "limit" => limit = Some(words.size()?).filter(|limit| *limit > 0),
                "latency" | "lat" => latency = Some(words.positive_time()?),
                "peakrate" => peakrate = Some(nonzero(word, words)?),
                "mtu" | "minburst" => mtu = Some(burst_size(word, words)?),
                "mpu" => frame.mpu = u32::from(short(words)?),
                "overhead" => frame.overhead = u32::from(short(words)?),
                "linklayer" => frame.atm = atm(words)?,
                _ => return Err(words.unknown(word, &Self::WORDS)),
            }
        }
        let (Some(rate), Some(burst)) = (rate, burst) else {
            return Err(words.refuse("tbf needs 'rate' and 'burst'"));
        };
        if burst == 0 || mtu == Some(0) {
            return Err(words.refuse("a bucket of zero bytes lets nothing through"));
        }
        let (peakrate, mtu) = match (peakrate, mtu) {
            (None, _) => (None, 0),
            (Some(peak), Some(mtu)) if peak.bytes_per_s > rate.bytes_per_s => (Some(peak), mtu),
            (Some(_), Some(_)) => return Err(words.refuse("'peakrate' must be above 'rate'")),
            (Some(_), None) => return Err(words.refuse("'peakrate' needs 'mtu' (or 'minburst')")),
        };
        let limit = match (limit, latency) {
            (Some(limit), None) => limit,
            (None, Some(latency)) => {
                let at = |rate: SendTime, bucket: u64| {
                    (rate.bytes_per_s as f64 * latency.as_secs_f64()) as u64 + bucket
                };
                peakrate.map_or(u64::MAX, |peak| at(peak, mtu)).min(at(rate, burst)).min(u64::from(u32::MAX))
            }
            (Some(_), Some(_)) => return Err(words.refuse("'limit' and 'latency' exclude each other")),
            (None, None) => return Err(words.refuse("tbf needs 'limit' or 'latency'")),
        };
        let depth = |rate: SendTime, bytes: u64| rate.ns(frame.bytes(bytes as u32));
        Ok(Params {
            rate,
            frame,
            buffer: depth(rate, burst),
            peak: peakrate.map(|rate| Peak { rate, mtu: depth(rate, mtu) }),
            limit,
            max_size: if peakrate.is_some() { burst.min(mtu) } else { burst },
        })
    }

    fn show(&self) -> String {
        // The kernel hands the depths back in ticks of 64 ns.
        let ticks = |ns: i64| ns / 64 * 64;
        let bucket = |rate: SendTime, ns: i64| {
            format!("{}/1 mpu {}", rate.show_burst(ticks(ns)), show::size(u64::from(self.frame.mpu)))
        };
        let wait_us = |rate: SendTime, ns: i64| {
            self.limit as f64 * 1e6 / rate.bytes_per_s as f64 - (ticks(ns) / 1000) as f64
        };
        let mut parts =
            vec![format!("tbf rate {} burst {}", self.rate.show(), bucket(self.rate, self.buffer))];
        let mut latency_us = wait_us(self.rate, self.buffer);
        if let Some(peak) = self.peak {
            parts.push(format!("peakrate {} mtu {}", peak.rate.show(), bucket(peak.rate, peak.mtu)));
            latency_us = latency_us.max(wait_us(peak.rate, peak.mtu));
        }
        parts.push(if latency_us < 0.0 {
            format!("limit {}", show::size(self.limit))
        } else {
            format!("lat {}", show::time(latency_us as u64))
        });
        if self.frame.overhead > 0 {
            parts.push(format!("overhead {}", self.frame.overhead));
        }
        parts.push(format!("linklayer {}", self.frame.linklayer()));
        parts.join(" ")
    }
}

impl Tbf {
    /// The line of the file's parameters, and the queue behind the bucket.
    pub fn new(words: &mut Words, env: &Env) -> Result<Self, TcError> {
        let child = words.child();
        let params = Params::parse(words)?;
        let bfifo = run::Qdisc::leaf(&format!("bfifo limit {}", params.limit));
        let queue = Queue::build(child.unwrap_or(&bfifo), &env.child("child"))?;
        Ok(Tbf {
            tokens: params.buffer,
            peak_tokens: params.peak.map_or(0, |peak| peak.mtu),
            checkpoint: Time::ZERO,
            held: None,
            wake: Time::ZERO,
            overlimits: 0,
            child: Box::new(queue),
            own_child: child.is_none(),
            params,
        })
    }

    /// The length of the packet that leaves next.
    fn head_len(&mut self, now: Time) -> Option<u32> {
        if self.held.is_none() {
            if self.child.is_fifo() {
                return self.child.peek().map(|packet| packet.len);
            }
            self.held = self.child.dequeue(now);
        }
        self.held.as_ref().map(|packet| packet.len)
    }
}

impl Qdisc for Tbf {
    const PROPERTIES: Properties = Properties { measured: false, ..Properties::DEFAULT };

    /// Source: Linux 7.3 `tbf_enqueue`.
    fn enqueue(&mut self, packet: Packet, now: Time, tally: &mut Tally) {
        if u64::from(packet.len) > self.params.max_size {
            tally.drop(&packet, Cause::Overlimit);
            return;
        }
        self.child.enqueue(packet, now);
    }

    /// A packet leaves when both buckets have its length. Source: Linux 7.3 `tbf_dequeue`.
    fn dequeue(&mut self, now: Time, _tally: &mut Tally) -> Option<Packet> {
        let len = self.head_len(now)?;
        let Params { rate, frame, buffer, peak, .. } = &self.params;
        let bytes = frame.bytes(len);
        let idle = (now - self.checkpoint).as_ns().cast_signed().min(*buffer);
        let peak_tokens =
            peak.map_or(0, |peak| (idle + self.peak_tokens).min(peak.mtu) - peak.rate.ns(bytes));
        let tokens = (idle + self.tokens).min(*buffer) - rate.ns(bytes);
        if tokens < 0 || peak_tokens < 0 {
            self.overlimits += 1;
            self.wake = now + Time((-tokens).max(-peak_tokens).cast_unsigned());
            return None;
        }
        let packet = self.held.take().or_else(|| self.child.dequeue(now))?;
        (self.tokens, self.peak_tokens, self.checkpoint) = (tokens, peak_tokens, now);
        self.wake = Time::ZERO;
        Some(packet)
    }

    fn next_event(&self) -> Option<Time> {
        if self.held.is_some() {
            return Some(self.wake);
        }
        let ready = (self.child.qlen() > 0).then(|| self.child.next_event().unwrap_or(Time::ZERO));
        ready.map(|at| at.max(self.wake))
    }

    fn qlen(&self) -> usize {
        self.child.qlen() + usize::from(self.held.is_some())
    }

    fn backlog(&self) -> u64 {
        self.child.backlog() + self.held.as_ref().map_or(0, |packet| u64::from(packet.len))
    }

    /// All parameters are read anew; both buckets are full afterwards, as in Linux. The child stays and takes the
    /// new limit if it is a bfifo of tbf's own.
    fn change(&mut self, words: &mut Words, now: Time, _tally: &mut Tally) -> Result<(), TcError> {
        let params = Params::parse(words)?;
        if self.own_child {
            self.child.change(&format!("bfifo limit {}", params.limit), now)?;
        }
        self.tokens = params.buffer;
        self.peak_tokens = params.peak.map_or(0, |peak| peak.mtu);
        self.wake = Time::ZERO;
        self.params = params;
        Ok(())
    }

    fn segments(&self, packet: &Packet) -> bool {
        let frame = packet.headers() + u32::from(packet.gso_size);
        u64::from(packet.len) > self.params.max_size && u64::from(frame) <= self.params.max_size
    }

    fn hints(&self) -> Hints {
        Hints { eager: self.child.is_eager(), ..Hints::default() }
    }

    fn tree(&self) -> Option<&dyn Tree> {
        Some(self)
    }

    fn tree_mut(&mut self) -> Option<&mut dyn Tree> {
        Some(self)
    }
}

impl Statistics for Tbf {
    fn overlimits(&self) -> u64 {
        self.overlimits
    }

    fn show(&self) -> String {
        self.params.show()
    }
}

impl Tree for Tbf {
    fn for_each_child<'a>(&'a self, visit: &mut dyn FnMut(&str, &'a Queue)) {
        visit("child", &self.child);
    }

    fn for_each_child_mut(&mut self, visit: &mut dyn FnMut(&str, &mut Queue)) {
        visit("child", &mut self.child);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(line: &str, child: Option<&str>) -> Queue {
        let child = child.map(|line| Box::new(run::Qdisc::leaf(line)));
        Queue::build(&run::Qdisc { qdisc: line.into(), classes: Vec::new(), child }, &Env::default()).unwrap()
    }

    fn frame(len: u32) -> Packet {
        Packet { len, ..Packet::default() }
    }

    /// Serves until the queue is empty, each packet as early as it may leave, in nanoseconds.
    fn departures(q: &mut Queue) -> Vec<u64> {
        let (mut now, mut out) = (Time::ZERO, Vec::new());
        while q.qlen() > 0 {
            if q.dequeue(now).is_some() {
                out.push(now.as_ns());
            } else {
                let next = q.next_event().unwrap();
                assert!(next > now, "spins at {now:?}");
                now = next;
            }
        }
        out
    }

    #[test]
    fn a_full_bucket_is_a_burst_and_then_the_rate_counts() {
        // 1000 B at 8 Mbit/s take 1 ms; the bucket of 2500 B lets two go, lacks 0.5 ms for the third
        let mut q = queue("tbf rate 8mbit burst 2500 limit 10000", None);
        for _ in 0..5 {
            q.enqueue(frame(1000), Time::ZERO);
        }
        assert_eq!(departures(&mut q), [0, 0, 500_000, 1_500_000, 2_500_000]);
    }

    #[test]
    fn the_peak_rate_spaces_the_burst() {
        // the peak's bucket holds one packet and refills in 0.5 ms
        let mut q = queue("tbf rate 8mbit burst 2500 limit 10000 peakrate 16mbit mtu 1000", None);
        for _ in 0..4 {
            q.enqueue(frame(1000), Time::ZERO);
        }
        assert_eq!(departures(&mut q), [0, 500_000, 1_000_000, 1_500_000]);
    }

    #[test]
    fn the_limit_is_in_bytes_and_a_packet_above_the_burst_is_dropped() {
        let mut q = queue("tbf rate 8mbit burst 1500 limit 2000", None);
        for len in [1600, 1000, 1000, 1000] {
            q.enqueue(frame(len), Time::ZERO);
        }
        assert_eq!((q.tally.dropped(), q.qlen(), q.backlog()), (1, 2, 2000));
    }

    #[test]
    fn a_child_of_its_own_is_asked_ahead_and_loses_no_packet() {
        let mut q = queue("tbf rate 8mbit burst 1500 limit 1", Some("fq_codel flows 1"));
        for _ in 0..3 {
            q.enqueue(frame(1000), Time::ZERO);
        }
        assert_eq!(q.dequeue(Time::ZERO).map(|p| p.len), Some(1000));
        assert!(q.dequeue(Time::ZERO).is_none());
        assert_eq!((q.qlen(), q.backlog(), q.next_event()), (2, 2000, Some(Time::from_us(500))));
        assert_eq!(departures(&mut q), [500_000, 1_500_000]);
    }

    #[test]
    fn a_change_fills_the_buckets_and_keeps_the_packets() {
        let mut q = queue("tbf rate 8mbit burst 1000 limit 10000", None);
        for _ in 0..3 {
            q.enqueue(frame(1000), Time::ZERO);
        }
        assert!(q.dequeue(Time::ZERO).is_some());
        assert!(q.dequeue(Time::ZERO).is_none());
        q.change("tbf rate 80mbit burst 1000 limit 10000", Time::ZERO).unwrap();
        assert_eq!(departures(&mut q), [0, 100_000]);
    }

    #[test]
    fn the_configuration_is_shown_as_tc_does() {
        let show = |line| queue(line, None).show();
        assert_eq!(
            show("tbf rate 50mbit burst 5kb latency 50ms"),
            "tbf rate 50Mbit burst 5Kb/1 mpu 0b lat 50ms linklayer ethernet"
        );
        assert_eq!(
            show("tbf rate 1mbit burst 5kb latency 70ms peakrate 2mbit minburst 1540"),
            "tbf rate 1Mbit burst 5Kb/1 mpu 0b peakrate 2Mbit mtu 1540b/1 mpu 0b lat 70ms linklayer ethernet"
        );
        assert_eq!(
            show("tbf rate 10mbit burst 10kb limit 100k overhead 20 linklayer atm"),
            "tbf rate 10Mbit burst 11342b/1 mpu 0b lat 72.8ms overhead 20 linklayer atm"
        );
        let error = |line: &str| {
            Queue::build(&run::Qdisc::leaf(line), &Env::default()).map(|q| q.show()).unwrap_err().to_string()
        };
        assert!(error("tbf rate 1mbit burst 5k").starts_with("tbf needs 'limit' or 'latency'"));
        assert!(error("tbf rate 1mbit limit 5k").starts_with("tbf needs 'rate' and 'burst'"));
        assert!(error("tbf rate 1mbit burst 5k limit 0").starts_with("tbf needs 'limit' or 'latency'"));
        assert_eq!(
            show("tbf rate 50mbit burst 5kb lat 50ms"),
            show("tbf rate 50mbit burst 5kb latency 50ms")
        );
    }
}
