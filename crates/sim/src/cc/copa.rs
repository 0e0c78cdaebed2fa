//! `copa`: steers to a standing queue of 1/delta packets per flow, so that the rate is 1/(delta * queueing delay); against flows
//! that keep the queue full it raises 1/delta as `reno` raises its window.
//!
//! Source: Arun and Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the Internet", NSDI 2018, section 2 and
//! section 2.2 (mode switching), with constants from the authors' genericCC. The window has a fraction of 1/65536 packet.
//!
//! | parameter | default | meaning |
//! |---|---|---|
//! | `delta` | 500 | in 1/1000; 50 is what mvfst and xquic have |
//! | `competitive` | 1 | whether it looks for flows that fill the queue |
//!
//! Departures: the window grows only where it is the limit, and by one packet per packet at most; after an RTO slow start begins
//! at two packets (the paper has nothing on it); CE counts as a loss, which matters in competitive mode only. Neither changes the
//! window otherwise.
//!
//! Validation: the tests below, `tests/cc_hooks.rs`.

use super::{CcEnv, CcError, CongestionControl, RateSample};
use crate::base::units::Time;
use crate::cc::sock::{CaState, TcpSock};
use bakeoff_document::cc::CcWords;
use std::collections::VecDeque;

/// Binary digits of a window's fraction.
const FRACTION: u32 = 16;
/// 1.0
const ONE: u64 = 1 << FRACTION;
/// Least window.
const MIN_CWND: u64 = 2 * ONE;
/// Greatest window, and greatest 1/delta.
const MAX_CWND: u64 = ONE << 31;
/// What the least RTT is the least of.
const MIN_RTT_SPAN: Time = Time::from_ms(10_000);
/// RTTs in one direction until the velocity doubles.
const STEADY_RTTS: u32 = 3;

/// The greatest (or the least) value of a span of time.
struct Extreme<const GREATEST: bool>(VecDeque<(Time, u64)>);

impl<const GREATEST: bool> Extreme<GREATEST> {
    /// Sees `value` at `now`; the extreme of those not older than `span`.
    fn update(&mut self, now: Time, span: Time, value: u64) -> u64 {
        let outdone = |old: u64| if GREATEST { old <= value } else { old >= value };
        while self.0.back().is_some_and(|(_, old)| outdone(*old)) {
            self.0.pop_back();
        }
        self.0.push_back((now, value));
        while self.0.front().is_some_and(|(at, _)| now - *at > span) {
            self.0.pop_front();
        }
        self.0.front().map_or(value, |(_, extreme)| *extreme)
    }
}

/// Parameters and state.
pub struct Copa {
    /// 1/delta outside of competitive mode, times [`ONE`].
    packets: u64,
    may_compete: bool,
    /// 1/delta, times [`ONE`].
    inverse_delta: u64,
    /// Times [`ONE`].
    cwnd: u64,
    slow_start: bool,
    min_rtt: Extreme<false>,
    standing: Extreme<false>,
    max_rtt: Extreme<true>,
    /// In microseconds; 0 before the first sample.
    standing_us: u64,
    queue_us: u64,
    /// When the queue was last nearly empty.
    empty_at: Time,
    competitive: bool,
    velocity: u64,
    /// Whether the last RTT raised the window, if it moved.
    up: Option<bool>,
    same_rtts: u32,
    /// An ACK of this ends the RTT, which began with that window.
    round_end: u64,
    round_cwnd: u64,
}

impl Copa {
    /// From the words after the name.
    pub fn parse(words: &mut CcWords, _: CcEnv) -> Result<Self, CcError> {
        let (mut delta, mut may_compete) = (500, true);
        while let Some(parameter) = words.parameter(&["delta", "competitive"])? {
            match parameter {
                "delta" => delta = words.number(1..=1000)?,
                _ => may_compete = words.flag()?,
            }
        }
        let packets = 1000 * ONE / u64::from(delta);
        Ok(Copa {
            packets,
            may_compete,
            inverse_delta: packets,
            cwnd: MIN_CWND,
            slow_start: true,
            min_rtt: Extreme(VecDeque::new()),
            standing: Extreme(VecDeque::new()),
            max_rtt: Extreme(VecDeque::new()),
            standing_us: 0,
            queue_us: 0,
            empty_at: Time::ZERO,
            competitive: false,
            velocity: 1,
            up: None,
            same_rtts: 0,
            round_end: 0,
            round_cwnd: MIN_CWND,
        })
    }

    /// An RTT, and what it says of the queue.
    fn measure(&mut self, tp: &TcpSock, rtt_us: u64) {
        let srtt = tp.srtt_us >> 3;
        let span = |eighths: u64| Time::from_us(srtt.saturating_mul(eighths) >> 3);
        let min = self.min_rtt.update(tp.now, MIN_RTT_SPAN, rtt_us);
        let max = self.max_rtt.update(tp.now, span(4 * 8), rtt_us);
        self.standing_us = self.standing.update(tp.now, span(4), rtt_us).max(1);
        self.queue_us = self.standing_us.saturating_sub(min);
        if self.queue_us * 10 <= max.saturating_sub(min) {
            self.empty_at = tp.now;
        }
        let competitive = self.may_compete && tp.now - self.empty_at > span(5 * 8);
        if self.competitive && !competitive {
            self.inverse_delta = self.packets;
        }
        self.competitive = competitive;
    }

    /// Whether the rate is at most 1/(delta * queueing delay).
    fn is_below_target(&self) -> bool {
        u128::from(self.cwnd) * u128::from(self.queue_us)
            <= u128::from(self.standing_us) * u128::from(self.inverse_delta)
    }

    /// v/(delta * W), at most 1, times [`ONE`].
    fn step(&self) -> u64 {
        let step = u128::from(self.velocity) * u128::from(self.inverse_delta) * u128::from(ONE)
            / u128::from(self.cwnd);
        step.min(u128::from(ONE)) as u64
    }

    /// `acked` packets were delivered.
    fn adjust(&mut self, tp: &TcpSock, acked: u32) {
        let below = self.is_below_target();
        if self.slow_start && !below {
            self.slow_start = false;
            self.begin_direction();
            self.begin_round(tp);
        }
        let step = if self.slow_start { ONE } else { self.step() };
        let change = step * u64::from(acked);
        if !below {
            self.cwnd = self.cwnd.saturating_sub(change);
        } else if tp.cwnd_limited() {
            self.cwnd += change;
        }
        self.cwnd = self.cwnd.clamp(MIN_CWND, MAX_CWND.min(u64::from(tp.snd_cwnd_clamp) << FRACTION));
    }

    fn begin_direction(&mut self) {
        self.velocity = 1;
        self.up = None;
        self.same_rtts = 0;
    }

    fn begin_round(&mut self, tp: &TcpSock) {
        self.round_end = tp.snd_nxt;
        self.round_cwnd = self.cwnd;
    }

    /// An RTT is over.
    fn end_round(&mut self, tp: &TcpSock) {
        let up = (self.cwnd != self.round_cwnd).then_some(self.cwnd > self.round_cwnd);
        if self.slow_start || up.is_none() || up != self.up {
            self.begin_direction();
            self.up = up;
            self.same_rtts = 1;
        } else {
            self.same_rtts += 1;
            if self.same_rtts >= STEADY_RTTS {
                self.velocity = (self.velocity * 2).min(1 << 16);
            }
        }
        if self.competitive {
            self.inverse_delta = (self.inverse_delta + ONE).min(MAX_CWND);
        }
        self.begin_round(tp);
    }

    /// Paces at two windows per standing RTT, and sets the window.
    fn apply(&self, tp: &mut TcpSock) {
        tp.snd_cwnd = (self.cwnd >> FRACTION) as u32;
        if self.standing_us > 0 {
            let bytes = (u128::from(self.cwnd) * u128::from(tp.mss) * 2_000_000) >> FRACTION;
            let rate = bytes / u128::from(self.standing_us);
            tp.pacing_rate = (rate.min(u64::MAX.into()) as u64).clamp(1, tp.max_pacing_rate.max(1));
        }
    }
}

impl CongestionControl for Copa {
    fn init(&mut self, tp: &mut TcpSock) {
        self.cwnd = u64::from(tp.snd_cwnd) << FRACTION;
        self.empty_at = tp.now;
        self.standing_us = tp.srtt_us >> 3;
        self.begin_round(tp);
        tp.request_pacing();
        self.apply(tp);
    }

    /// A loss: in competitive mode delta doubles. There is no threshold.
    fn ssthresh(&mut self, tp: &mut TcpSock) -> u32 {
        self.inverse_delta = (self.inverse_delta / 2).max(self.packets);
        tp.snd_ssthresh
    }

    fn has_cong_control(&self) -> bool {
        true
    }

    fn cong_control(&mut self, tp: &mut TcpSock, sample: &RateSample) {
        if let Some(rtt_us) = sample.rtt_us.filter(|rtt_us| *rtt_us > 0) {
            self.measure(tp, rtt_us);
        }
        self.adjust(tp, sample.acked_sacked);
        if tp.snd_una >= self.round_end {
            self.end_round(tp);
        }
        self.apply(tp);
    }

    fn set_state(&mut self, _tp: &mut TcpSock, state: CaState) {
        if state == CaState::Loss {
            self.cwnd = MIN_CWND;
            self.slow_start = true;
            self.begin_direction();
        }
    }

    fn undo_cwnd(&mut self, tp: &mut TcpSock) -> u32 {
        tp.snd_cwnd
    }

    fn trace(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("inverse_delta", self.inverse_delta as f64 / ONE as f64),
            ("velocity", self.velocity as f64),
            ("standing_rtt_us", self.standing_us as f64),
            ("queue_delay_us", self.queue_us as f64),
            ("competitive", f64::from(u8::from(self.competitive))),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copa(text: &str) -> (Copa, TcpSock) {
        let Ok(mut c) = Copa::parse(&mut CcWords::new(text), CcEnv::default()) else {
            panic!("'{text}' was refused")
        };
        let mut tp = TcpSock::new(1000, 1000);
        tp.is_cwnd_limited = true;
        tp.srtt_us = 40_000 << 3;
        c.init(&mut tp);
        (c, tp)
    }

    fn rtt(c: &mut Copa, tp: &mut TcpSock, at_ms: u64, rtt_ms: u64) {
        tp.now = Time::from_ms(at_ms);
        c.measure(tp, rtt_ms * 1000);
    }

    #[test]
    fn the_target_is_the_standing_rtt_over_delta_and_the_delay() {
        for (text, queue_ms, standing_ms, window) in [
            ("copa", 10, 50, 10), // 200 packets/s for 50 ms
            ("copa", 4, 44, 22),  // 500 packets/s for 44 ms
            ("copa delta 50", 10, 50, 100),
        ] {
            let (mut c, _) = copa(text);
            (c.queue_us, c.standing_us) = (queue_ms * 1000, standing_ms * 1000);
            c.cwnd = window * ONE;
            assert!(c.is_below_target(), "{text} {queue_ms}");
            c.cwnd += 1;
            assert!(!c.is_below_target(), "{text} {queue_ms}");
            c.queue_us = 0;
            assert!(c.is_below_target(), "no queue: no target");
        }
    }

    #[test]
    fn a_step_is_the_velocity_over_delta_and_the_window() {
        let (mut c, mut tp) = copa("copa");
        c.slow_start = false;
        c.cwnd = 50 * ONE;
        // 0.04 and 0.16 packets, truncated to 1/65536
        assert_eq!(c.step(), 2621);
        c.velocity = 4;
        assert_eq!(c.step(), 10_485);
        c.velocity = 1 << 16;
        assert_eq!(c.step(), ONE, "a packet per packet at most");
        c.velocity = 4;
        c.adjust(&tp, 2);
        assert_eq!(c.cwnd, 50 * ONE + 20_970);
        (c.queue_us, c.standing_us) = (10_000, 50_000);
        let before = c.cwnd;
        c.adjust(&tp, 1);
        // 4 * 2 * 65536 / 50.31998
        assert_eq!(before - c.cwnd, 10_419);
        tp.is_cwnd_limited = false;
        c.queue_us = 0;
        let before = c.cwnd;
        c.adjust(&tp, 1);
        assert_eq!(c.cwnd, before, "the window was not the limit");
    }

    #[test]
    fn slow_start_doubles_until_the_target_is_passed() {
        let (mut c, mut tp) = copa("copa");
        let sample = |acked, rtt_ms: u64| RateSample {
            acked_sacked: acked,
            rtt_us: Some(rtt_ms * 1000),
            ..RateSample::default()
        };
        c.cong_control(&mut tp, &sample(10, 40));
        assert_eq!((tp.snd_cwnd, c.slow_start), (20, true));
        // two windows of 20 packets per 40 ms
        assert_eq!(tp.pacing_rate, 1_000_000);
        // half an RTT later all RTTs are 50 ms: 10 packets at most
        tp.now = Time::from_ms(100);
        c.cong_control(&mut tp, &sample(20, 50));
        assert!(!c.slow_start);
        // 20 - 20 * 2 / 20
        assert_eq!(tp.snd_cwnd, 18);
    }

    #[test]
    fn the_velocity_doubles_after_three_rtts_in_a_direction() {
        let (mut c, tp) = copa("copa");
        c.slow_start = false;
        let mut round = |change: i64| {
            c.cwnd = c.cwnd.wrapping_add_signed(change);
            c.end_round(&tp);
            c.velocity
        };
        let velocities: Vec<u64> = [1, 1, 1, 1, -1, -1, -1, 0, -1].into_iter().map(&mut round).collect();
        assert_eq!(velocities, [1, 1, 2, 4, 1, 1, 2, 1, 1]);
    }

    #[test]
    fn a_queue_never_nearly_empty_in_five_rtts_means_competition() {
        let (mut c, mut tp) = copa("copa");
        c.slow_start = false;
        rtt(&mut c, &mut tp, 0, 40);
        for at in [100, 120, 140, 160, 180] {
            rtt(&mut c, &mut tp, at, 100);
        }
        rtt(&mut c, &mut tp, 200, 100);
        assert!(!c.competitive, "200 ms are five RTTs, not more");
        rtt(&mut c, &mut tp, 201, 100);
        assert!(c.competitive);
        let mut inverse = Vec::new();
        for _ in 0..3 {
            c.end_round(&tp);
            inverse.push(c.inverse_delta / ONE);
        }
        // delta 0.333, 0.25, 0.2
        assert_eq!(inverse, [3, 4, 5]);
        tp.snd_ssthresh = 77;
        assert_eq!(c.ssthresh(&mut tp), 77);
        // delta 0.4, then not above 0.5
        assert_eq!(c.inverse_delta, 5 * ONE / 2);
        c.ssthresh(&mut tp);
        assert_eq!(c.inverse_delta, 2 * ONE);
        // a delay of 6 ms of at most 60 is nearly none
        c.inverse_delta = 7 * ONE;
        rtt(&mut c, &mut tp, 210, 46);
        assert_eq!((c.competitive, c.inverse_delta), (false, 2 * ONE));
        let (mut c, mut tp) = copa("copa competitive 0");
        rtt(&mut c, &mut tp, 0, 40);
        rtt(&mut c, &mut tp, 5000, 100);
        rtt(&mut c, &mut tp, 6000, 100);
        assert!(!c.competitive);
    }

    #[test]
    fn the_standing_rtt_is_the_least_of_half_an_rtt() {
        let (mut c, mut tp) = copa("copa");
        rtt(&mut c, &mut tp, 0, 40);
        rtt(&mut c, &mut tp, 20, 60);
        assert_eq!((c.standing_us, c.queue_us), (40_000, 0));
        rtt(&mut c, &mut tp, 21, 70);
        assert_eq!((c.standing_us, c.queue_us), (60_000, 20_000));
        // the least RTT is forgotten after ten seconds
        rtt(&mut c, &mut tp, 10_001, 70);
        assert_eq!((c.standing_us, c.queue_us), (70_000, 10_000));
        rtt(&mut c, &mut tp, 10_022, 70);
        assert_eq!(c.queue_us, 0);
    }

    #[test]
    fn an_rto_begins_anew_with_two_packets() {
        let (mut c, mut tp) = copa("copa");
        c.slow_start = false;
        c.set_state(&mut tp, CaState::Recovery);
        assert_eq!(c.cwnd, 10 * ONE);
        c.set_state(&mut tp, CaState::Loss);
        assert_eq!((c.cwnd, c.slow_start), (MIN_CWND, true));
    }
}
