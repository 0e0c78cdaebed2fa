//! What the SCE tree's qdiscs have in common: their words, and a shaper that is one virtual clock.
//!
//! Source: chromi/sce `net/sched/sch_cnq_codel_af.c` and its variants; heistp/iproute2-sce `tc/q_cnq_codel_af.c`.
//!
//! Parameters: `bandwidth` RATE or `unlimited` (default), `rtt` TIME (100 ms; target rtt/20, BLUE above 4*rtt), overhead words
//! ([`super::framing`]), `sce` (as `sce-thresh 1`), `sce-thresh` 1..1024 (SCE interval rtt/n), `no-sce`.

use super::cobalt::{Over, Params};
use super::framing::{Framing, FramingWords};
use crate::base::units::{Rate, Time};
use crate::document::tc::{TcError, Words, show};
use crate::packet::Packet;

/// What the words of one line say, before it takes effect.
#[derive(Clone, Debug, Default)]
pub struct SceWords {
    /// `Some(None)` is `unlimited`.
    pub bandwidth: Option<Option<Rate>>,
    /// Not zero.
    pub rtt: Option<Time>,
    /// 0 is off.
    pub sce_thresh: Option<u32>,
    /// Packets.
    pub limit: Option<u32>,
    /// The overhead words.
    pub framing: FramingWords,
}

impl SceWords {
    /// All words; `limit` is one of them where the qdisc has it.
    pub fn take_all(words: &mut Words, has_limit: bool) -> Result<Self, TcError> {
        let mut said = SceWords::default();
        while let Some(word) = words.next_word() {
            match word {
                "bandwidth" => {
                    said.bandwidth = Some(Some(words.rate()?).filter(|rate| rate.bits_per_s() > 0));
                }
                "unlimited" => said.bandwidth = Some(None),
                "rtt" => said.rtt = Some(words.positive_time()?),
                "sce" => said.sce_thresh = Some(1),
                "sce-thresh" => {
                    let n = words.u32()?;
                    if !(1..=1024).contains(&n) {
                        return Err(words.bad(word, &n.to_string(), "a number from 1 to 1024"));
                    }
                    said.sce_thresh = Some(n);
                }
                "no-sce" => said.sce_thresh = Some(0),
                "limit" if has_limit => said.limit = Some(words.positive_u32()?),
                _ if said.framing.take(word, words)? => {}
                _ => {
                    let mut known = vec!["bandwidth", "unlimited", "rtt", "sce", "sce-thresh", "no-sce"];
                    known.extend(has_limit.then_some("limit"));
                    known.extend(FramingWords::WORDS);
                    return Err(words.unknown(word, &known));
                }
            }
        }
        Ok(said)
    }
}

/// The configuration.
#[derive(Clone, Debug)]
pub struct SceConfig {
    /// None is unlimited.
    pub bandwidth: Option<Rate>,
    /// Targets and intervals follow from it.
    pub rtt: Time,
    /// What the link adds to a packet.
    pub framing: Framing,
    /// 0 is off.
    pub sce_thresh: u32,
    /// Packets; none where the qdisc has no such word.
    pub limit: Option<u32>,
}

impl SceConfig {
    /// All words; `sce_thresh` and `limit` are the defaults.
    pub(super) fn parse(words: &mut Words, sce_thresh: u32, limit: Option<u32>) -> Result<Self, TcError> {
        let rtt = Time::from_ms(100);
        SceConfig { bandwidth: None, rtt, framing: Framing::default(), sce_thresh, limit }.changed(words)
    }

    /// This one after `tc qdisc change`: what the line does not say stays.
    pub(super) fn changed(&self, words: &mut Words) -> Result<Self, TcError> {
        let said = SceWords::take_all(words, self.limit.is_some())?;
        Ok(SceConfig {
            bandwidth: said.bandwidth.unwrap_or(self.bandwidth),
            rtt: said.rtt.unwrap_or(self.rtt),
            framing: said.framing.change(self.framing),
            sce_thresh: said.sce_thresh.unwrap_or(self.sce_thresh),
            limit: said.limit.or(self.limit),
        })
    }

    /// COBALT's parameters.
    pub(super) fn params(&self) -> Params {
        Params::new(self.rtt, self.sce_thresh)
    }

    /// How long a full frame of `psched_mtu` bytes takes.
    pub(super) fn mtu_time(&self, psched_mtu: u32) -> Time {
        self.bandwidth.map_or(Time::ZERO, |rate| rate.time_for(psched_mtu))
    }

    /// As tc words it, after the qdisc's name.
    pub fn show(&self, name: &str) -> String {
        let limit = self.limit.map_or(String::new(), |limit| format!(" limit {limit}p"));
        let bandwidth = match self.bandwidth {
            Some(rate) => format!("bandwidth {}", show::rate(rate)),
            None => "unlimited".into(),
        };
        let framing = match self.framing {
            framing if framing == Framing::default() => String::new(),
            framing => format!(" {}", framing.show()),
        };
        let sce = match self.sce_thresh {
            0 => "no-sce".into(),
            n => format!("sce-thresh {n}"),
        };
        format!("{name}{limit} {bandwidth} rtt {}{framing} {sce}", show::time(self.rtt.as_us()))
    }
}

/// The thresholds that a plain sojourn is above. A queue of few full frames is none: four for CE, two for SCE.
pub(super) fn over(params: &Params, mtu_time: Time, sojourn: Time) -> Over {
    let (sojourn, mtu_time) = (sojourn.as_ns() as i64, mtu_time.as_ns() as i64);
    Over {
        ce: sojourn > params.target.max(4 * mtu_time),
        sce: sojourn > params.sce_target.max(2 * mtu_time),
        blue: sojourn > params.blue_threshold,
    }
}

/// When the next packet may leave.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    pub next: Time,
}

impl Clock {
    /// A packet comes to an empty queue: idle time gives no credit.
    pub(super) fn idle_until(&mut self, now: Time) {
        self.next = self.next.max(now);
    }

    /// `packet` leaves.
    pub(super) fn charge(&mut self, config: &SceConfig, packet: &Packet) {
        if let Some(rate) = config.bandwidth {
            self.next += rate.time_for(config.framing.adjusted_len(packet));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::run;
    use crate::packet::Ecn;
    use crate::qdisc::{Env, Queue};

    #[test]
    fn four_full_frames_are_no_queue_for_ce_and_two_none_for_sce() {
        let params = Params::new(Time::from_ms(100), 4);
        let at = |mtu_ms, sojourn_us| {
            let over = over(&params, Time::from_ms(mtu_ms), Time::from_us(sojourn_us));
            (over.ce, over.sce, over.blue)
        };
        assert_eq!(at(0, 2500), (false, false, false));
        assert_eq!(at(0, 2501), (false, true, false));
        assert_eq!(at(0, 5001), (true, true, false));
        assert_eq!(at(3, 6001), (false, true, false));
        assert_eq!(at(3, 12_001), (true, true, false));
        assert_eq!(at(0, 400_001), (true, true, true));
    }

    #[test]
    fn the_clock_charges_what_the_link_carries() {
        // 1500 + 40 bytes are 33 cells of 53: 1749 B at 50 Mbit/s are 279.84 us
        let mut words = Words::new("bandwidth 50mbit pppoe-llcsnap limit 5");
        let config = SceConfig::parse(&mut words, 0, Some(10)).unwrap();
        let mut clock = Clock::default();
        clock.idle_until(Time::from_ms(1));
        clock.charge(&config, &Packet { len: 1514, ..Packet::default() });
        assert_eq!(clock.next, Time::from_ns(1_279_840));
        assert_eq!(config.show("x"), "x limit 5p bandwidth 50Mbit rtt 100ms atm overhead 40 no-sce");
    }

    #[test]
    fn words_that_a_qdisc_does_not_have_are_refused() {
        for (line, message) in [
            ("sce-thresh 0", "sce-thresh: '0' is not a number from 1 to 1024"),
            ("bandwith 1mbit", "did you mean 'bandwidth'?"),
            ("limit 10", "unknown word 'limit'"),
        ] {
            let error = SceConfig::parse(&mut Words::new(line), 0, None).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn a_change_of_the_rate_holds_from_the_next_packet_on_and_the_rest_of_the_line_stays() {
        // 1250 B are 1 ms at 10 Mbit/s and 2 ms at 5 Mbit/s.
        for kind in ["cnq_codel_af", "twin_codel_af", "lfq_cobalt", "cnq_cobalt", "cobalt"] {
            let line = format!("{kind} bandwidth 10mbit rtt 80ms sce-thresh 4");
            let mut q = Queue::build(&run::Qdisc::leaf(&line), &Env::default()).unwrap();
            for _ in 0..3 {
                q.enqueue(Packet { len: 1250, ..Packet::default() }, Time::ZERO);
            }
            assert!(q.dequeue(Time::ZERO).is_some());
            q.change(&format!("{kind} bandwidth 5mbit"), Time::ZERO).unwrap();
            let asked = format!("{line} ").replace("10mbit", "5Mbit");
            for word in asked.split(' ').skip(1) {
                assert!(q.show().contains(word), "{}: {word}", q.show());
            }
            let mut left = Vec::new();
            while let Some(at) = q.next_event() {
                left.extend(q.dequeue(at).map(|_| at));
            }
            assert_eq!(left, [1, 3].map(Time::from_ms), "{kind}");
            assert!(q.change(&format!("{kind} rate 5mbit"), Time::ZERO).is_err());
        }
    }

    #[test]
    fn a_change_of_the_rtt_changes_the_target() {
        // Every packet waits 3 ms: below the target of 100 ms' rtt, 5 ms, and above that of 20 ms' rtt, 1 ms.
        for kind in ["cnq_codel_af", "twin_codel_af", "lfq_cobalt", "cnq_cobalt", "cobalt"] {
            let mut q = Queue::build(&run::Qdisc::leaf(kind), &Env::default()).unwrap();
            let mut marks = Vec::new();
            for ms in 0..600 {
                if ms == 300 {
                    marks.push(q.tally.marks);
                    q.change(&format!("{kind} rtt 20ms"), Time::from_ms(ms)).unwrap();
                }
                let packet =
                    Packet { len: 1250, ecn: Ecn::Ect0, enqueued: Time::from_ms(ms), ..Packet::default() };
                q.enqueue(packet, Time::from_ms(ms));
                if ms >= 3 {
                    q.dequeue(Time::from_ms(ms));
                }
            }
            marks.push(q.tally.marks);
            assert_eq!(marks[0], 0, "{kind}");
            assert!(marks[1] > 3, "{kind}: {}", marks[1]);
        }
    }
}
