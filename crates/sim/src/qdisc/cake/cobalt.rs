//! CAKE's COBALT: CoDel's schedule with a count that steps back in time, and BLUE; the SCE tree's ramp.
//!
//! Source: Linux 7.3 `net/sched/sch_cake.c` (`cobalt_*`); chromi/sce `net/sched/sch_cake.c` (the ramp).
//! The SCE family's other qdiscs have another one, in [`crate::qdisc::cobalt`].

use crate::base::rng::Stream;
use crate::base::units::Time;
use crate::packet::{Ecn, Packet};
use crate::qdisc::Cause;
use crate::qdisc::inverse_sqrt::{ROUNDED, newton};

/// BLUE's step up, 1/256, and down, 1/4096.
const P_INC: u32 = 1 << 24;
const P_DEC: u32 = 1 << 20;

/// Times in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Params {
    pub interval: u64,
    pub target: u64,
    /// How long a full frame takes.
    pub mtu_time: u64,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Set CE; only asked of ECN-capable packets.
    pub mark: bool,
    /// Drop it, also if it is to be marked.
    pub drop: Option<Cause>,
}

/// The state of one flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cobalt {
    count: u32,
    /// 0 until the first signal, so that a fresh queue's first signal comes at once.
    isqrt: u32,
    /// When the next signal is due; while there is none, until when the state counts as active.
    drop_next: i64,
    blue_timer: i64,
    p_drop: u32,
    dropping: bool,
}

impl Cobalt {
    pub(super) const NEW: Cobalt =
        Cobalt { count: 0, isqrt: 0, drop_next: 0, blue_timer: 0, p_drop: 0, dropping: false };

    /// interval/sqrt(count) later. The kernel scales the lower 32 bits of the interval.
    /// Source: RFC 8289, section 5.6 (`control_law`); Linux 7.3 `cobalt_control`.
    fn control(&self, t: i64, params: &Params) -> i64 {
        t + ((u64::from(params.interval as u32) * u64::from(self.isqrt)) >> 32) as i64
    }

    /// Source: Linux 7.3 `cobalt_invsqrt`.
    fn set_count(&mut self, count: u32) {
        self.count = count;
        self.isqrt = match ROUNDED.get(count as usize) {
            Some(&value) => value,
            None => newton(count, self.isqrt),
        };
    }

    /// Whether the state has come to rest.
    pub(super) fn is_at_rest(&self, now: Time) -> bool {
        self.p_drop == 0 && self.count == 0 && now.as_ns() as i64 >= self.drop_next
    }

    /// A packet of the flow was dropped for want of room; true if BLUE thereby begins.
    /// Source: Linux 7.3 `cobalt_queue_full`.
    pub(super) fn queue_full(&mut self, params: &Params, now: Time) -> bool {
        let now = now.as_ns() as i64;
        let mut begins = false;
        if now - self.blue_timer > params.target as i64 {
            begins = self.p_drop == 0;
            self.p_drop = self.p_drop.saturating_add(P_INC);
            self.blue_timer = now;
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
        begins
    }

    /// The flow was served and had nothing; true if BLUE thereby ends. Source: Linux 7.3 `cobalt_queue_empty`.
    pub(super) fn queue_empty(&mut self, params: &Params, now: Time) -> bool {
        let now = now.as_ns() as i64;
        let mut ends = false;
        if self.p_drop > 0 && now - self.blue_timer > params.target as i64 {
            self.p_drop = self.p_drop.saturating_sub(P_DEC);
            self.blue_timer = now;
            ends = self.p_drop == 0;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.set_count(self.count - 1);
            self.drop_next = self.control(self.drop_next, params);
        }
        ends
    }

    /// A packet leaves; `bulk_flows` is 0 except in ingress mode.
    /// CoDel signals after an interval above the target (RFC 8289, section 5.5), but its count steps back once it is
    /// below. Source: Linux 7.3 `cobalt_should_drop`.
    pub(super) fn dequeue(
        &mut self,
        params: &Params,
        now: Time,
        packet: &Packet,
        bulk_flows: u64,
        rng: &mut Stream,
    ) -> Verdict {
        let sojourn = (now - packet.enqueued).as_ns();
        let now = now.as_ns() as i64;
        let over = sojourn > params.target
            && sojourn > params.mtu_time * bulk_flows * 2
            && sojourn > params.mtu_time * 4;
        let mut late = now - self.drop_next;
        let mut due = self.count > 0 && late >= 0;
        if over {
            if !self.dropping {
                self.dropping = true;
                self.drop_next = self.control(now, params);
            }
            // Not through set_count: the interval to the first signal keeps the square root.
            self.count = self.count.max(1);
        } else {
            self.dropping = false;
        }
        let mut verdict = Verdict::default();
        if due && over {
            verdict.mark = packet.ecn.is_capable();
            verdict.drop = (!verdict.mark).then_some(Cause::Aqm);
            self.set_count(self.count.saturating_add(1));
            self.drop_next = self.control(self.drop_next, params);
            late = now - self.drop_next;
        } else {
            while due {
                self.set_count(self.count - 1);
                self.drop_next = self.control(self.drop_next, params);
                late = now - self.drop_next;
                due = self.count > 0 && late >= 0;
            }
        }
        if self.p_drop > 0 && verdict.drop.is_none() && rng.u32() < self.p_drop {
            verdict.drop = Some(Cause::Overload);
        }
        if self.count == 0 {
            self.drop_next = now + params.interval as i64;
        } else if late > 0 && verdict.drop.is_none() {
            self.drop_next = now;
        }
        verdict
    }
}

/// The SCE tree's ramp: whether a packet that COBALT did not mark becomes ECT(1). With `thresh` n up to 1024
/// the probability rises from 0 at half the target to 1/n at the target and to 1 at twice the target;
/// above that from 0 at the target to 1 at twice the target. With n = 1 it is 1 from the target on.
pub(super) fn sce(thresh: u32, target: u64, now: Time, packet: &Packet, rng: &mut Stream) -> bool {
    let sojourn = (now - packet.enqueued).as_ns();
    if thresh == 0 || sojourn <= target / 2 || packet.ecn != Ecn::Ect0 {
        return false;
    }
    let one = 1_u128 << 32;
    let knee = if thresh > 1024 { 0 } else { one / u128::from(thresh) };
    let probability = if sojourn > target {
        knee + (one - knee) * u128::from(sojourn - target) / u128::from(target.max(1))
    } else {
        knee * u128::from(sojourn - target / 2) / u128::from((target - target / 2).max(1))
    };
    u128::from(rng.u32()) < probability
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMS: Params = Params { interval: 100_000_000, target: 5_000_000, mtu_time: 242_240 };

    fn ms(t: f64) -> Time {
        Time::from_secs_f64(t / 1e3)
    }

    /// A packet that has waited for `sojourn` ms at `t` ms.
    fn packet(t: f64, sojourn: f64, ecn: Ecn) -> Packet {
        Packet { enqueued: ms(t - sojourn), ecn, ..Packet::default() }
    }

    /// Times in tenths of ms at which CE is asked for; a packet each 0.1 ms with the same sojourn.
    fn marks(cobalt: &mut Cobalt, from: u32, to: u32, sojourn: f64) -> Vec<u32> {
        let mut rng = Stream::new(1, "test");
        (from..to)
            .filter(|i| {
                let t = f64::from(*i) / 10.0;
                cobalt.dequeue(&PARAMS, ms(t), &packet(t, sojourn, Ecn::Ect0), 0, &mut rng).mark
            })
            .collect()
    }

    #[test]
    fn the_inverse_square_roots_of_small_counts_are_exact() {
        for (count, got) in ROUNDED.iter().enumerate().skip(1) {
            let exact = 4_294_967_296.0 / (count as f64).sqrt();
            assert!((f64::from(*got) - exact).abs() <= 1.0, "{count}");
        }
        assert_eq!(ROUNDED[0], u32::MAX);
        // Above, one Newton step per count: from 15 to 16 an error of 3.3 % becomes 0.16 %.
        let mut cobalt = Cobalt::NEW;
        for count in 1..=1000 {
            cobalt.set_count(count);
            let exact = 4_294_967_296.0 / f64::from(count).sqrt();
            assert!((f64::from(cobalt.isqrt) / exact - 1.0).abs() < 1.7e-3, "{count}");
        }
    }

    #[test]
    fn a_fresh_queue_signals_at_once_and_a_rested_one_after_an_interval() {
        // Fresh: the first packet over target arms, the second one is marked; then 100/sqrt(2) after
        // the mark, 100/sqrt(3) and so on: 70.7, 57.7, 50.0
        let mut cobalt = Cobalt::NEW;
        assert_eq!(marks(&mut cobalt, 10_000, 11_800, 6.0), [10_001, 10_708, 11_285, 11_785]);
        // Rested: back to a count of 0 below target, where each packet moves the schedule ahead.
        assert!(marks(&mut cobalt, 11_800, 30_000, 1.0).is_empty());
        assert_eq!(cobalt.count, 0);
        assert_eq!(marks(&mut cobalt, 30_000, 31_800, 6.0), [31_000, 31_708]);
    }

    #[test]
    fn four_full_frames_count_as_no_queue() {
        // At 1 Mbit/s a full frame takes 12.1 ms: 40 ms are less than four of them, 50 ms are more.
        let slow = Params { mtu_time: 12_112_000, ..PARAMS };
        let mut rng = Stream::new(1, "test");
        let mut cobalt = Cobalt::NEW;
        let mut signals = |sojourn| {
            (0..10_u32)
                .filter(|i| {
                    let t = 1000.0 + f64::from(*i);
                    cobalt.dequeue(&slow, ms(t), &packet(t, sojourn, Ecn::NotEct), 0, &mut rng).drop
                        == Some(Cause::Aqm)
                })
                .count()
        };
        assert_eq!((signals(40.0), signals(50.0)), (0, 1));
    }

    #[test]
    fn bulk_flows_raise_the_target_in_ingress_mode() {
        // 2 * 20 flows * 0.24224 ms = 9.69 ms
        let mut rng = Stream::new(1, "test");
        for (sojourn, over) in [(9.6, false), (9.8, true)] {
            let mut cobalt = Cobalt::NEW;
            cobalt.dequeue(&PARAMS, ms(100.0), &packet(100.0, sojourn, Ecn::Ect0), 20, &mut rng);
            assert_eq!(cobalt.dropping, over);
        }
    }

    #[test]
    fn blue_rises_by_1_in_256_and_falls_by_1_in_4096_once_per_target() {
        let mut cobalt = Cobalt::NEW;
        let begins = [6.0, 7.0, 11.0, 11.1].map(|t| cobalt.queue_full(&PARAMS, ms(t)));
        // at 6 and 11.1: strictly more than 5 ms apart
        assert_eq!((cobalt.p_drop, begins), (2 << 24, [true, false, false, false]));
        assert!(cobalt.dropping && cobalt.count == 1 && !cobalt.is_at_rest(ms(11.1)));
        let ends = [12.0, 17.0, 20.0, 23.0].map(|t| cobalt.queue_empty(&PARAMS, ms(t)));
        assert_eq!((cobalt.p_drop, ends), ((2 << 24) - (2 << 20), [false; 4]));
        // It drops that fraction, marked or not: 2/256 - 2/4096 of 20 000 is 146, four standard
        // deviations are 48.
        let mut rng = Stream::new(1, "test");
        let drops = (0..20_000)
            .filter(|_| {
                let verdict = cobalt.dequeue(&PARAMS, ms(30.0), &packet(30.0, 0.0, Ecn::Ect0), 0, &mut rng);
                verdict.drop == Some(Cause::Overload)
            })
            .count();
        assert!((98..=194).contains(&drops), "{drops}");
    }

    #[test]
    fn the_ramp_has_its_knee_at_the_target() {
        let share = |thresh, sojourn, ecn| {
            let mut rng = Stream::new(1, "test");
            let packet = packet(100.0, sojourn, ecn);
            (0..10_000).filter(|_| sce(thresh, 5_000_000, ms(100.0), &packet, &mut rng)).count()
        };
        // four standard deviations of 10 000 draws at one half are 200
        let near = |got: usize, want: usize| assert!(got.abs_diff(want) <= 200, "{got} {want}");
        assert_eq!((share(1, 2.5, Ecn::Ect0), share(0, 9.0, Ecn::Ect0)), (0, 0));
        near(share(1, 3.75, Ecn::Ect0), 5000);
        near(share(1, 5.0, Ecn::Ect0), 10_000);
        assert_eq!((share(1, 6.0, Ecn::Ect1), share(1, 6.0, Ecn::NotEct)), (0, 0));
        // n = 4: 1/4 at 5 ms, 1/4 + 3/4 * 1/2 at 7.5 ms
        near(share(4, 3.75, Ecn::Ect0), 1250);
        near(share(4, 7.5, Ecn::Ect0), 6250);
        near(share(2000, 4.9, Ecn::Ect0), 0);
        near(share(2000, 7.5, Ecn::Ect0), 5000);
    }
}
