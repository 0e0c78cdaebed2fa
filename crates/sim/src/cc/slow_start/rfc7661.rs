//! `validation rfc7661`: a window of which less than half is used stays for five minutes.
//!
//! A loss is then answered for by what was used.
//!
//! Source: RFC 7661, sections 4.2 to 4.5. pipeACK is the most that was acknowledged in a round trip of the last 3 RTTs or
//! second. The window is validated while pipeACK is unknown or at least half of it. There is no restart after a silence.
//!
//! Departures: five minutes are found to be over at the next ACK or first packet. What was retransmitted is what was marked
//! lost. A loss that a timeout finds has the threshold, and the window of any timeout.
//!
//! Validation: the tests below.

use super::Part;
use crate::base::units::Time;
use crate::cc::CaEvent;
use crate::cc::max_filter::MaxFilter;
use crate::cc::sock::{CaState, TcpSock};

/// For how long a window stays that is not validated.
const NON_VALIDATED: Time = Time::from_ms(300_000);
/// The window that five minutes leave at least, in packets.
const INITIAL_WINDOW: u32 = 10;

pub(super) struct Rfc7661 {
    /// Packets per round trip, by microseconds, and when it last learned of one; none: unknown.
    pipe_ack: Option<(MaxFilter, Time)>,
    /// The round trip that is measured: the byte whose ACK ends it, and what was delivered before.
    round: Option<(u64, u64)>,
    /// Delivered by the last ACK.
    delivered: u64,
    /// Since when the window is not validated.
    since: Option<Time>,
    /// The sender's own `is_cwnd_limited` while the control grows.
    held: Option<bool>,
    /// What the window may have been at a loss while it was not validated.
    safe: Option<u32>,
    /// Marked lost before the reduction.
    lost: u64,
}

impl Rfc7661 {
    pub fn new() -> Self {
        Rfc7661 { pipe_ack: None, round: None, delivered: 0, since: None, held: None, safe: None, lost: 0 }
    }

    /// RFC 7661, section 4.2: the period whose largest sample counts.
    fn period(tp: &TcpSock) -> Time {
        Time::from_us(3 * tp.srtt_us / 8).max(Time::from_ms(1_000))
    }

    /// pipeACK in packets; none if it is unknown.
    fn pipe_ack(&self, tp: &TcpSock) -> Option<u32> {
        let (filter, newest) = self.pipe_ack.as_ref()?;
        Some(if tp.now - *newest > Self::period(tp) { 0 } else { filter.get() as u32 })
    }

    fn is_validated(&self, tp: &TcpSock) -> bool {
        self.pipe_ack(tp).is_none_or(|pipe| pipe.saturating_mul(2) >= tp.snd_cwnd)
    }

    /// The ACK being handled may end a round trip, and begins one if none is measured.
    fn measure(&mut self, tp: &TcpSock) {
        let before = std::mem::replace(&mut self.delivered, tp.delivered);
        let (end, base) = *self.round.get_or_insert((tp.snd_nxt, before));
        if tp.snd_una < end {
            return;
        }
        let (filter, newest) = self.pipe_ack.get_or_insert_default();
        filter.update(Self::period(tp).as_us(), tp.now.as_us(), tp.delivered - base);
        *newest = tp.now;
        self.round = (tp.snd_una < tp.snd_nxt).then_some((tp.snd_nxt, tp.delivered));
    }

    /// Section 4.4.2: half of the window goes after five minutes.
    fn age(&mut self, tp: &mut TcpSock) {
        if self.is_validated(tp) {
            self.since = None;
            return;
        }
        let silent = self.pipe_ack.as_ref().map_or(tp.now, |(_, newest)| *newest + Self::period(tp));
        let mut since = self.since.unwrap_or(silent.min(tp.now));
        while tp.now - since >= NON_VALIDATED && tp.snd_cwnd > INITIAL_WINDOW && !self.is_validated(tp) {
            since += NON_VALIDATED;
            tp.snd_ssthresh = tp.snd_ssthresh.max((tp.snd_cwnd >> 1) + (tp.snd_cwnd >> 2));
            tp.snd_cwnd = (tp.snd_cwnd / 2).max(INITIAL_WINDOW);
        }
        self.since = Some(since);
    }

    fn forget(&mut self) {
        (self.pipe_ack, self.round, self.since, self.safe) = (None, None, None, None);
    }
}

impl Part for Rfc7661 {
    fn init(&mut self, tp: &mut TcpSock) {
        (tp.keeps_unused, tp.keeps_idle) = (true, true);
        self.delivered = tp.delivered;
    }

    fn timeout(&mut self, _tp: &mut TcpSock) {
        self.forget();
    }

    fn on_ack(&mut self, tp: &mut TcpSock) {
        if tp.ca_state <= CaState::Disorder {
            self.lost = tp.lost;
        }
        self.measure(tp);
        if tp.ca_state == CaState::Open {
            self.age(tp);
        }
    }

    fn before(&mut self, tp: &mut TcpSock, acked: u32) -> u32 {
        if !self.is_validated(tp) {
            return 0;
        }
        self.held = Some(tp.is_cwnd_limited);
        tp.is_cwnd_limited = true;
        acked
    }

    fn after(&mut self, tp: &mut TcpSock) {
        if let Some(limited) = self.held.take() {
            tp.is_cwnd_limited = limited;
        }
    }

    fn reduces(&mut self, tp: &mut TcpSock) {
        self.safe = match self.pipe_ack(tp) {
            Some(pipe) if !self.is_validated(tp) => Some(pipe.max(tp.packets_out)),
            _ => None,
        };
    }

    /// Section 4.4.1.
    fn ssthresh(&mut self, _tp: &mut TcpSock, own: u32) -> u32 {
        self.safe.map_or(own, |safe| (safe / 2).max(2))
    }

    fn event(&mut self, tp: &mut TcpSock, event: CaEvent) {
        match event {
            CaEvent::TxStart => self.age(tp),
            CaEvent::CompleteCwr => {
                if let Some(safe) = self.safe {
                    let retransmitted = (tp.lost - self.lost).min(u32::MAX.into()) as u32;
                    tp.snd_cwnd = tp.snd_cwnd.min((safe.saturating_sub(retransmitted) / 2).max(2));
                }
                self.forget();
            }
            _ => {}
        }
    }

    fn trace(&self) -> Vec<(&'static str, f64)> {
        vec![("pipe_ack", self.pipe_ack.as_ref().map_or(0.0, |(filter, _)| filter.get() as f64))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::reno::Reno;

    /// RTT 100 ms, a window of `cwnd` in avoidance.
    fn new(cwnd: u32) -> (Rfc7661, TcpSock) {
        let (mut part, mut tp) = (Rfc7661::new(), TcpSock::new(1000, 1000));
        (tp.snd_cwnd, tp.snd_ssthresh, tp.srtt_us) = (cwnd, cwnd, 100_000 * 8);
        part.init(&mut tp);
        assert!(tp.keeps_unused && tp.keeps_idle);
        (part, tp)
    }

    /// A round trip of `packets`, each acknowledged by itself.
    fn round(part: &mut Rfc7661, tp: &mut TcpSock, packets: u32) {
        if tp.packets_out == 0 {
            part.event(tp, CaEvent::TxStart);
        }
        tp.snd_nxt += u64::from(packets) * 1000;
        tp.packets_out = packets;
        tp.is_cwnd_limited = false;
        tp.now += Time::from_ms(100);
        for _ in 0..packets {
            tp.snd_una += 1000;
            tp.delivered += 1;
            tp.packets_out -= 1;
            part.on_ack(tp);
            let seen = part.before(tp, 1);
            if seen > 0 {
                Reno::grow(tp, seen);
            }
            part.after(tp);
        }
    }

    #[test]
    fn a_window_of_which_half_was_used_grows_and_less_does_not() {
        // the first round trip is not measured yet: 10 of 20, and 9 of 20 packets, as 20 have to come for one more
        for (packets, window) in [(10, 21), (9, 20)] {
            let (mut part, mut tp) = new(20);
            for _ in 0..3 {
                round(&mut part, &mut tp, packets);
            }
            assert_eq!(part.pipe_ack(&tp), Some(packets));
            assert_eq!(tp.snd_cwnd, window, "{packets}");
        }
        // 21 packets want 11
        let (mut part, mut tp) = new(21);
        round(&mut part, &mut tp, 10);
        assert!(!part.is_validated(&tp));
        round(&mut part, &mut tp, 11);
        assert!(part.is_validated(&tp));
    }

    #[test]
    fn a_full_window_is_measured_from_ack_to_ack() {
        // 20 in flight at each ACK: after the first, 19 until the one of what was sent last
        let (mut part, mut tp) = new(20);
        (tp.snd_nxt, tp.packets_out) = (20_000, 20);
        for _ in 0..60 {
            tp.now += Time::from_ms(5);
            tp.snd_una += 1000;
            tp.delivered += 1;
            part.on_ack(&mut tp);
            tp.snd_nxt += 1000;
        }
        assert_eq!(part.pipe_ack(&tp), Some(20));
    }

    #[test]
    fn samples_count_for_three_rtts_or_a_second() {
        for (rtt_ms, period_ms) in [(100, 1_000), (500, 1_500)] {
            let (mut part, mut tp) = new(20);
            tp.srtt_us = rtt_ms * 1_000 * 8;
            round(&mut part, &mut tp, 12);
            tp.now += Time::from_ms(period_ms);
            assert_eq!(part.pipe_ack(&tp), Some(12));
            tp.now += Time::from_ms(1);
            assert_eq!(part.pipe_ack(&tp), Some(0));
        }
    }

    #[test]
    fn five_minutes_halve_an_unused_window_down_to_ten() {
        let (mut part, mut tp) = new(100);
        tp.snd_ssthresh = 60;
        round(&mut part, &mut tp, 10);
        // not validated since the first sample, of the last ACK at 100 ms
        tp.now = Time::from_ms(300_099);
        part.event(&mut tp, CaEvent::TxStart);
        assert_eq!(tp.snd_cwnd, 100);
        tp.now = Time::from_ms(300_100);
        part.event(&mut tp, CaEvent::TxStart);
        assert_eq!((tp.snd_cwnd, tp.snd_ssthresh), (50, 75));
        // 25, 12, 10
        tp.now = Time::from_ms(3_000_000);
        part.event(&mut tp, CaEvent::TxStart);
        assert_eq!((tp.snd_cwnd, tp.snd_ssthresh), (10, 75));
    }

    #[test]
    fn a_silence_counts_from_the_end_of_the_period() {
        let (mut part, mut tp) = new(10);
        round(&mut part, &mut tp, 10);
        tp.snd_cwnd = 20;
        assert!(part.is_validated(&tp));
        // 0.1 s, a second, five minutes
        for (ms, cwnd) in [(301_099, 20), (301_100, 10)] {
            tp.now = Time::from_ms(ms);
            part.event(&mut tp, CaEvent::TxStart);
            assert_eq!(tp.snd_cwnd, cwnd, "{ms}");
        }
    }

    #[test]
    fn a_loss_is_answered_by_what_was_used_less_what_was_sent_again() {
        for (used, in_flight, lost, threshold, after) in
            [(10, 14, 4, 7, 5), (12, 8, 2, 6, 5), (10, 14, 0, 7, 7)]
        {
            let (mut part, mut tp) = new(40);
            round(&mut part, &mut tp, used);
            tp.packets_out = in_flight;
            part.reduces(&mut tp);
            assert_eq!(part.ssthresh(&mut tp, 20), threshold);
            tp.ca_state = CaState::Recovery;
            tp.lost += lost;
            part.on_ack(&mut tp);
            tp.snd_cwnd = threshold;
            part.event(&mut tp, CaEvent::CompleteCwr);
            assert_eq!((tp.snd_cwnd, part.pipe_ack(&tp)), (after, None));
        }
        // 20 of 40 are enough: the control's own
        let (mut part, mut tp) = new(40);
        round(&mut part, &mut tp, 20);
        part.reduces(&mut tp);
        assert_eq!(part.ssthresh(&mut tp, 28), 28);
    }
}
