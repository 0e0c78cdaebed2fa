//! `suss`: the window grows fourfold in the first rounds in which ACKs come close together.
//!
//! Packets that ACKs let out are blue, those beyond are red. The blue ACKs alone tell the bottleneck's rate; the red
//! packets are paced through the rest of the round trip. Ends by its own form of Linux's HyStart, and goes on as that when
//! it is off.
//!
//! Source: SUSSdeveloper/SUSS (dc2a493), `sourceCode/linux-6.8/suss/tcp_cubic.c`, `tcp_output.c`, `tcp_input.c`: a patch of
//! CUBIC. Names and integers are the patch's, times in microseconds.
//!
//! | parameter | default | meaning |
//! |---|---|---|
//! | `suss_max` | 3 | last round that the rule of rounds after the second allows, less 2 |
//!
//! Departures: any port (the patch: port 80); the peer's window is not overruled; an initial window of 10 is supposed, as in
//! the patch. Off where packets are paced from the start, as in the patch.
//!
//! Validation: the tests below.

use super::Part;
use crate::base::units::Time;
use crate::cc::CcError;
use crate::cc::hystart::ack_delay;
use crate::cc::sock::{Pacing, TcpSock};
use bakeoff_document::cc::CcWords;

/// Packets of the first window.
const INITIAL: u64 = 10;
/// HyStart: least window in packets, samples of a round, longest gap in a train in microseconds.
const LOW_WINDOW: u32 = 16;
const MIN_SAMPLES: u32 = 8;
const ACK_DELTA: u64 = 2_000;
/// The least RTT below which nothing is gained, in microseconds.
const MIN_RTT: u64 = 10_000;
/// Shifts by more than this are out of any window's reach.
const MAX_ROUND: u32 = 24;

/// What the patch numbers from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Normal,
    Accelerating,
    /// Ended by the train of ACKs.
    Train,
    /// Ended by the delay.
    Delay,
    /// Ended by a reduction.
    Reduced,
    /// Plain HyStart.
    Off,
}

/// Which ACKs come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blue {
    /// Those of red packets.
    No,
    /// Those of blue packets.
    Yes,
    /// That of the last blue packet.
    Last,
}

/// State; the patch's names.
pub(super) struct Suss {
    /// `suss_max`
    max_round: u32,
    state: State,
    blue: Blue,
    /// ACKs let more out than doubling does.
    gf: bool,
    /// A train of ACKs told that the window ends at `cap`.
    flag: bool,
    cap: u32,
    round: u32,
    jumps: u32,
    head: u64,
    tail: u64,
    blue_cnt: u64,
    /// The round's start.
    t0: u64,
    prev_dt: u64,
    limit: u32,
    /// Bytes per second of the red packets, and when the first one leaves.
    rate: u64,
    start: Time,
    min_rtt: u64,
    /// The round in which `min_rtt` last fell.
    min_rtt_round: u32,
    /// HyStart's.
    found: bool,
    end_seq: u64,
    round_start: u64,
    last_ack: u64,
    curr_rtt: u64,
    samples: u32,
}

impl Suss {
    fn new() -> Self {
        Suss {
            max_round: 3,
            state: State::Normal,
            blue: Blue::Yes,
            gf: true,
            flag: false,
            cap: 0,
            round: 1,
            jumps: 0,
            head: 0,
            tail: 0,
            blue_cnt: 0,
            t0: 0,
            prev_dt: 0,
            limit: 0,
            rate: 0,
            start: Time::ZERO,
            min_rtt: u64::MAX,
            min_rtt_round: 1,
            found: false,
            end_seq: 0,
            round_start: 0,
            last_ack: 0,
            curr_rtt: u64::MAX,
            samples: 0,
        }
    }

    /// From the words after the name.
    pub fn parse(words: &mut CcWords) -> Result<Self, CcError> {
        let mut s = Suss::new();
        while words.parameter(&["suss_max"])?.is_some() {
            s.max_round = words.number(1..=10)?;
        }
        Ok(s)
    }

    /// Packets leave by ACKs alone again.
    fn unpace(tp: &mut TcpSock) {
        if tp.own_pacing_rate {
            tp.own_pacing_rate = false;
            tp.pacing = Pacing::None;
        }
    }

    /// An ACK in slow start, ahead of growth.
    fn on_ack(&mut self, tp: &mut TcpSock, acked: u32) {
        let now = tp.now.as_us();
        if self.blue == Blue::Last {
            self.blue = Blue::No;
        }
        if tp.snd_una > self.head {
            self.blue = Blue::Yes;
            self.blue_cnt = 0;
            self.round = (self.round + 1).min(MAX_ROUND);
            self.t0 = now;
            self.head = tp.snd_nxt;
            Self::unpace(tp);
            self.state = State::Normal;
        }
        if tp.snd_una > self.tail {
            self.blue = Blue::Last;
            self.end_blue(tp, acked);
        }
        if self.blue != Blue::No {
            self.blue_cnt += u64::from(acked);
        }
        if self.blue == Blue::No && self.state == State::Accelerating {
            // Slow start's growth adds them again: red ACKs let out no more than themselves.
            tp.snd_cwnd = tp.snd_cwnd.saturating_sub(acked).max(1);
        }
    }

    /// The last blue ACK: whether red packets follow, how many and when.
    fn end_blue(&mut self, tp: &TcpSock, acked: u32) {
        let now = tp.now.as_us();
        let round = self.round.max(2);
        let n = INITIAL << (round - 1);
        let a = n / 2;
        self.tail = (self.head + n * u64::from(tp.mss)).saturating_sub(1);
        // of the ACKs before this one
        let dt = (n * (now - self.t0)).checked_div(2 * self.blue_cnt).unwrap_or(u64::MAX);
        if self.gf {
            self.gf = self.speeds_up(round, dt);
        }
        if !self.gf {
            return;
        }
        self.prev_dt = dt;
        let red = (n << (round - 1)) - n;
        let red_ack = (a << (round - 2)) - a;
        let limit = u64::from(tp.snd_cwnd) + u64::from(acked) + red - red_ack;
        self.limit = limit.min(i32::MAX as u64) as u32;
        let spent = self.min_rtt - (self.min_rtt >> (round - 1));
        self.rate = (u128::from(red * u64::from(tp.mss)) * 1_000_000 / u128::from(spent.max(1))) as u64;
        let rest = self.min_rtt - spent;
        if rest > dt {
            self.state = State::Accelerating;
            self.jumps = (self.jumps + 1).min(MAX_ROUND);
            self.start = tp.now + Time::from_us((rest - dt) / 2);
        } else {
            self.state = State::Normal;
        }
    }

    /// `speedup`: whether the bottleneck takes twice as much as doubling gives it, by the time `dt` of a blue round.
    fn speeds_up(&mut self, round: u32, dt: u64) -> bool {
        if self.min_rtt == u64::MAX {
            return false;
        }
        if round == 2 {
            let fast = self.min_rtt > MIN_RTT && dt < self.min_rtt / 4;
            if !fast {
                self.state = State::Off;
            }
            return fast;
        }
        let d = u128::from(dt) << (round - 2);
        let p = u128::from(self.prev_dt) << (round - 3);
        let Some(mu) = (d << 10).checked_div(2 * p) else { return false };
        let x = mu.saturating_mul(d) >> 9;
        let k = u64::from(round - self.min_rtt_round.min(round));
        x <= u128::from(self.min_rtt)
            && round < self.max_round + 2
            && (k + 1).saturating_mul(self.curr_rtt) <= self.min_rtt * (k + 1) + self.min_rtt * k / 8
    }

    /// Slow start is over.
    fn end(&mut self, tp: &mut TcpSock, state: State) {
        self.found = true;
        if self.state != State::Off {
            self.state = state;
            if self.jumps > 1 {
                tp.snd_cwnd = tp.packets_in_flight().max(2);
            }
        }
        tp.snd_ssthresh = tp.snd_cwnd;
    }

    /// The patch's `hystart_update`.
    fn hystart(&mut self, tp: &mut TcpSock, rtt_us: u64) {
        let now = tp.now.as_us();
        if self.found {
            return;
        }
        if tp.snd_una > self.end_seq {
            self.new_round(tp);
        }
        if tp.snd_cwnd >= LOW_WINDOW {
            if self.flag && self.state < State::Train && tp.snd_cwnd > self.cap {
                return self.end(tp, State::Train);
            }
            let follows = now - self.last_ack <= ACK_DELTA;
            let off = self.state == State::Off;
            if follows && (off || (!self.flag && self.state < State::Train && self.blue != Blue::No)) {
                self.last_ack = now;
                let mut threshold = self.min_rtt + ack_delay(tp.pacing_rate);
                if tp.pacing == Pacing::None || !off {
                    threshold >>= 1;
                }
                let elapsed = now - self.round_start;
                if off && elapsed > threshold {
                    return self.end(tp, State::Off);
                }
                if !off && elapsed << self.jumps > threshold {
                    self.flag = true;
                    let more = self.blue_cnt * ((1 << self.jumps) - 1);
                    self.cap = (u64::from(tp.snd_cwnd) + more).min(i32::MAX as u64) as u32;
                }
            }
        }
        self.curr_rtt = self.curr_rtt.min(rtt_us);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
        } else if tp.snd_cwnd >= LOW_WINDOW
            && self.curr_rtt > self.min_rtt + (self.min_rtt >> 3).clamp(4_000, 16_000)
        {
            self.end(tp, State::Delay);
        }
    }

    fn new_round(&mut self, tp: &TcpSock) {
        self.round_start = tp.now.as_us();
        self.last_ack = self.round_start;
        self.end_seq = tp.snd_nxt;
        self.curr_rtt = u64::MAX;
        self.samples = 0;
    }
}

impl Part for Suss {
    fn init(&mut self, tp: &mut TcpSock) {
        *self = Suss { max_round: self.max_round, ..Suss::new() };
        self.head = tp.snd_nxt;
        self.tail = tp.snd_nxt + INITIAL * u64::from(tp.mss) - 1;
        if tp.pacing != Pacing::None {
            self.state = State::Off;
        }
        self.new_round(tp);
    }

    fn timeout(&mut self, tp: &mut TcpSock) {
        Self::unpace(tp);
        self.state = State::Off;
        self.found = false;
        self.min_rtt = u64::MAX;
        self.new_round(tp);
    }

    fn on_sample(&mut self, tp: &mut TcpSock, rtt_us: u64) {
        let rtt_us = rtt_us.max(1);
        if rtt_us < self.min_rtt {
            self.min_rtt = rtt_us;
            self.min_rtt_round = self.round;
        }
        self.hystart(tp, rtt_us);
    }

    fn before(&mut self, tp: &mut TcpSock, acked: u32) -> u32 {
        if self.state >= State::Train || !tp.in_slow_start() {
            Self::unpace(tp);
        } else if !self.flag {
            self.on_ack(tp, acked);
        }
        acked
    }

    fn sent(&mut self, tp: &mut TcpSock) {
        if self.state != State::Accelerating
            || tp.snd_cwnd >= self.limit
            || tp.snd_cwnd > tp.packets_in_flight()
        {
            return;
        }
        tp.snd_cwnd = (tp.snd_cwnd + 2).min(tp.snd_cwnd_clamp);
        if tp.pacing == Pacing::None {
            tp.pacing = Pacing::Needed;
            tp.own_pacing_rate = true;
            tp.pacing_rate = self.rate.min(tp.max_pacing_rate);
            tp.wstamp = self.start;
        }
    }

    fn reduces(&mut self, tp: &mut TcpSock) {
        let in_flight = tp.packets_in_flight();
        // After an RTO nothing is in flight any more: it has a rule of its own.
        if self.state < State::Train && in_flight > 0 {
            tp.snd_cwnd = in_flight.min(tp.snd_cwnd);
        }
        if self.state != State::Off {
            self.state = State::Reduced;
        }
        Self::unpace(tp);
    }

    fn trace(&self) -> Vec<(&'static str, f64)> {
        vec![("suss_jumps", self.jumps.into())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1448;

    /// At the last blue ACK of a round, `elapsed_us` after its first; least RTT 100 ms.
    fn last_blue(round: u32, blue_cnt: u64, elapsed_us: u64, cwnd: u32, prev_dt: u64) -> (Suss, TcpSock) {
        let mut s = Suss::new();
        let mut tp = TcpSock::new(1448, 1000);
        s.init(&mut tp);
        tp.now = Time::from_ms(500);
        tp.snd_cwnd = cwnd;
        tp.snd_nxt = 1000 * MSS;
        tp.snd_una = 500 * MSS;
        s.round = round;
        s.jumps = round - 2;
        s.head = tp.snd_nxt;
        s.tail = tp.snd_una - 1;
        s.blue_cnt = blue_cnt;
        s.t0 = tp.now.as_us() - elapsed_us;
        s.prev_dt = prev_dt;
        s.min_rtt = 100_000;
        s.curr_rtt = 100_000;
        s.on_ack(&mut tp, 1);
        (s, tp)
    }

    #[test]
    fn the_second_round_sends_twenty_more_in_half_a_round_trip() {
        // dt = 20 * 1.8 / (2 * 9) = 2 ms; red 40 - 20, spent 50 ms, rest 50 ms, start in (50 - 2) / 2 ms
        let (s, tp) = last_blue(2, 9, 1_800, 19, 0);
        assert_eq!((s.state, s.prev_dt, s.limit, s.rate), (State::Accelerating, 2_000, 40, 579_200));
        assert_eq!(s.start, tp.now + Time::from_ms(24));
        assert_eq!((s.jumps, s.blue, s.blue_cnt), (1, Blue::Last, 10));
        assert_eq!(s.tail, (1000 + 20) * MSS - 1);
        // 24 ms of 25 are still a start
        let (s, tp) = last_blue(2, 9, 21_600, 19, 0);
        assert_eq!((s.state, s.start), (State::Accelerating, tp.now + Time::from_ms(13)));
    }

    #[test]
    fn blue_acks_that_take_a_quarter_of_the_round_trip_turn_it_off() {
        let (s, _) = last_blue(2, 9, 27_000, 19, 0);
        assert_eq!((s.state, s.gf), (State::Off, false));
    }

    #[test]
    fn the_third_round_paces_120_packets_through_three_quarters() {
        // dt = 40 * 3.8 / 38 = 4 ms; red 160 - 40, red ACKs 40 - 20; spent 75 ms, start in (25 - 4) / 2 ms
        let (s, tp) = last_blue(3, 19, 3_800, 59, 2_000);
        assert_eq!((s.state, s.limit, s.rate), (State::Accelerating, 160, 2_316_800));
        assert_eq!((s.start, s.jumps), (tp.now + Time::from_us(10_500), 2));
    }

    #[test]
    fn later_rounds_speed_up_while_the_next_blue_train_fits_and_the_rtt_stands() {
        // d = 2 dt, p = prev_dt: x = (d^2 / 2p) * 2: 4 and 2 ms give 32 ms, 20 and 5 ms give 320 ms;
        // least RTT from round 1, k = 2: 3 * 109 = 327 > 300 + 25
        for (dt, prev_dt, curr_rtt, fell_in, expected) in [
            (4_000, 2_000, 100_000, 1, true),
            (20_000, 5_000, 100_000, 1, false),
            (4_000, 2_000, 108_000, 1, true),
            (4_000, 2_000, 109_000, 1, false),
        ] {
            let mut s = Suss::new();
            (s.min_rtt, s.min_rtt_round, s.curr_rtt, s.prev_dt) = (100_000, fell_in, curr_rtt, prev_dt);
            assert_eq!(s.speeds_up(3, dt), expected, "{dt} {prev_dt} {curr_rtt}");
        }
        let mut s = Suss::new();
        (s.min_rtt, s.curr_rtt, s.prev_dt) = (100_000, 100_000, 200);
        s.min_rtt_round = 5;
        assert!(!s.speeds_up(5, 200), "suss_max 3: round 4 is the last");
        s.max_round = 4;
        assert!(s.speeds_up(5, 200));
    }

    #[test]
    fn a_full_window_grows_by_two_per_buffer_sent_up_to_its_limit_and_is_paced() {
        let (mut s, mut tp) = last_blue(2, 9, 1_800, 19, 0);
        tp.snd_cwnd = 20;
        tp.packets_out = 19;
        s.sent(&mut tp);
        assert_eq!((tp.snd_cwnd, tp.pacing), (20, Pacing::None), "the window is not full");
        tp.packets_out = 20;
        s.sent(&mut tp);
        assert_eq!((tp.snd_cwnd, tp.pacing, tp.pacing_rate), (22, Pacing::Needed, 579_200));
        assert_eq!(tp.wstamp, s.start);
        tp.update_pacing_rate(200, 120);
        assert_eq!(tp.pacing_rate, 579_200);
        tp.snd_cwnd = 40;
        tp.packets_out = 40;
        s.sent(&mut tp);
        assert_eq!(tp.snd_cwnd, 40);
        // red ACKs: what slow start adds is taken off before
        assert_eq!(s.before(&mut tp, 2), 2);
        assert_eq!((tp.snd_cwnd, s.blue), (38, Blue::No));
        // the next round
        tp.snd_una = tp.snd_nxt + 1;
        s.before(&mut tp, 1);
        assert_eq!((s.round, tp.pacing, tp.own_pacing_rate), (3, Pacing::None, false));
    }

    #[test]
    fn a_reduction_starts_from_what_is_in_flight() {
        let (mut s, mut tp) = last_blue(2, 9, 1_800, 19, 0);
        tp.snd_cwnd = 40;
        tp.packets_out = 31;
        s.reduces(&mut tp);
        assert_eq!((tp.snd_cwnd, s.state), (31, State::Reduced));
        s.timeout(&mut tp);
        assert_eq!(s.state, State::Off);
    }

    #[test]
    fn a_long_blue_train_caps_the_window_at_what_it_will_be_in_the_end() {
        // jumps 1: more than half of 100 ms when doubled, 25 ms; cap 40 + 12 * (2 - 1)
        let (mut s, mut tp) = last_blue(2, 9, 1_800, 40, 0);
        tp.pacing_rate = 10_000_000_000;
        (s.blue, s.blue_cnt, s.end_seq) = (Blue::Yes, 12, 2000 * MSS);
        s.round_start = tp.now.as_us() - 25_000;
        s.last_ack = tp.now.as_us() - 2_000;
        s.hystart(&mut tp, 100_000);
        assert!(!s.flag);
        tp.now += Time::from_us(100);
        s.hystart(&mut tp, 100_000);
        assert_eq!((s.flag, s.cap), (true, 52));
        tp.snd_cwnd = 52;
        s.hystart(&mut tp, 100_000);
        assert!(tp.in_slow_start());
        tp.snd_cwnd = 53;
        s.hystart(&mut tp, 100_000);
        assert_eq!((tp.snd_ssthresh, s.state), (53, State::Train));
    }

    #[test]
    fn a_paced_socket_has_plain_hystart() {
        let mut s = Suss::new();
        let mut tp = TcpSock::new(1448, 1000);
        tp.pacing = Pacing::Fq;
        s.init(&mut tp);
        assert_eq!(s.state, State::Off);
    }
}
