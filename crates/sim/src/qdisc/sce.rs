//! What the SCE tree's qdiscs have in common: a shaper that is one virtual clock. Their words: [`bakeoff_document::qdisc::sce`].
//!
//! Source: chromi/sce `net/sched/sch_cnq_codel_af.c` and its variants.

use bakeoff_document::qdisc::sce::SceConfig;

use super::cobalt::{Over, Params};
use super::framing::adjusted_len;
use crate::base::units::Time;
use crate::packet::Packet;

/// COBALT's parameters.
pub(super) fn params(config: &SceConfig) -> Params {
    Params::new(config.rtt, config.sce_thresh)
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
            self.next += rate.time_for(adjusted_len(config.framing, packet));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Ecn;
    use crate::qdisc::{Env, Queue};
    use bakeoff_document::run;

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
        let mut words = bakeoff_document::tc::Words::new("bandwidth 50mbit pppoe-llcsnap limit 5");
        let config = SceConfig::parse(&mut words, 0, Some(10)).unwrap();
        let mut clock = Clock::default();
        clock.idle_until(Time::from_ms(1));
        clock.charge(&config, &Packet { len: 1514, ..Packet::default() });
        assert_eq!(clock.next, Time::from_ns(1_279_840));
        assert_eq!(config.show("x"), "x limit 5p bandwidth 50Mbit rtt 100ms atm overhead 40 no-sce");
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
