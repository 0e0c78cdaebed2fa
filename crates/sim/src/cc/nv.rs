//! `nv`: New Vegas, for data centres. The window that the greatest rate of a round needs at the least RTT, plus 10 packets, is
//! the limit; decisions wait for enough samples.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_nv.c`; Brakmo, "TCP-NV: An Update to TCP-Vegas", Netdev 1.1, 2016.
//!
//! Parameters, as the module's:
//!
//! | name | default | meaning |
//! |---|---|---|
//! | `nv_pad` | 10 | packets that may be queued |
//! | `nv_reset_period` | 5 | seconds after which the least RTT is a new one (3/4 to 5/4 of it, random) |
//! | `nv_min_cwnd` | 2 | packets; no decision of its own goes below |
//!
//! Departures: no `BPF_SOCK_OPS_BASE_RTT`. Its random numbers are the control's own stream.
//!
//! Validation: the tests below, `tests/cc_hooks.rs`.

use super::{CcEnv, CcError, CongestionControl};
use crate::base::rng::Stream;
use crate::cc::sock::{CaState, INFINITE_SSTHRESH, TcpSock};
use bakeoff_document::cc::CcWords;

/// Packets below the limit from which the window grows no more.
const PAD_BUFFER: u32 = 2;
/// 30 % in 1/128.
const CONG_DEC_MULT: u32 = 30 * 128 / 100;
/// New and old RTT count alike, in 1/256.
const RTT_FACTOR: u64 = 128;
/// 80 % in 1/1024.
const LOSS_DEC_FACTOR: u32 = 819;
/// Rounds without congestion after which growth that losses slowed doubles.
const GROWTH_RATE_NEG: u32 = 8;
/// Samples before the window falls, before it rises, and before slow start ends.
const DEC_EVAL_MIN_CALLS: u8 = 60;
const INC_EVAL_MIN_CALLS: u8 = 20;
const SSTHRESH_EVAL_MIN_CALLS: u8 = 30;
/// Rounds without a decision after which growth stops, and before the window falls.
const STOP_RTT_CNT: u8 = 10;
const RTT_MIN_CNT: u8 = 2;
const INIT_RTT: u32 = u32::MAX;
const MIN_CWND: u8 = 4;
const MIN_CWND_GROW: u8 = 2;
const TSO_CWND_BOUND: u8 = 80;

/// Parameters and state; the kernel's names without `nv_`. RTTs in microseconds, rates in 100 bit/s.
pub struct Nv {
    pad: u32,
    reset_period: u32,
    least_cwnd: u32,
    rng: Stream,
    min_rtt_reset_jiffies: u64,
    /// Growth per RTT is this power of two packets.
    growth_factor: i8,
    allow_growth: bool,
    reset: bool,
    eval_call_cnt: u8,
    /// Packets that a single ACK may cover.
    min_cwnd: u8,
    rtt_cnt: u8,
    last_rtt: u32,
    min_rtt: u32,
    min_rtt_new: u32,
    rtt_max_rate: u32,
    rtt_start_seq: u64,
    last_snd_una: u64,
    no_cong_cnt: u32,
}

impl Nv {
    /// From the words after the name.
    pub fn parse(words: &mut CcWords, env: CcEnv) -> Result<Self, CcError> {
        let mut c = Nv {
            pad: 10,
            reset_period: 5,
            least_cwnd: 2,
            rng: env.rng,
            min_rtt_reset_jiffies: 0,
            growth_factor: 0,
            allow_growth: true,
            reset: false,
            eval_call_cnt: 0,
            min_cwnd: MIN_CWND,
            rtt_cnt: 0,
            last_rtt: 0,
            min_rtt: INIT_RTT,
            min_rtt_new: INIT_RTT,
            rtt_max_rate: 0,
            rtt_start_seq: 0,
            last_snd_una: 0,
            no_cong_cnt: 0,
        };
        while let Some(parameter) = words.parameter(&["nv_pad", "nv_reset_period", "nv_min_cwnd"])? {
            match parameter {
                "nv_pad" => c.pad = words.number(2..=1_000_000)?,
                "nv_reset_period" => c.reset_period = words.number(0..=3_000)?,
                _ => c.least_cwnd = words.number(1..=1_000_000)?,
            }
        }
        Ok(c)
    }

    /// `tcpnv_reset`
    fn restart(&mut self, tp: &TcpSock) {
        self.reset = false;
        self.no_cong_cnt = 0;
        self.rtt_cnt = 0;
        self.last_rtt = 0;
        self.rtt_max_rate = 0;
        self.rtt_start_seq = tp.snd_una;
        self.eval_call_cnt = 0;
        self.last_snd_una = tp.snd_una;
    }

    /// A sample: mean RTT, greatest rate, least RTT. Source: Linux 7.3 `tcpnv_acked`.
    fn sample(&mut self, tp: &TcpSock, rtt_us: u32, in_flight: u32) {
        let rtt = if self.last_rtt > 0 {
            let last = u64::from(self.last_rtt) * (256 - RTT_FACTOR);
            ((u64::from(rtt_us) * RTT_FACTOR + last) >> 8) as u32
        } else {
            self.min_rtt = rtt_us << 1;
            rtt_us
        };
        self.last_rtt = rtt;
        let rate = (u64::from(in_flight) * 80_000 / u64::from(rtt.max(1))) as u32;
        self.rtt_max_rate = self.rtt_max_rate.max(rate);
        self.eval_call_cnt = self.eval_call_cnt.saturating_add(1);
        self.min_rtt = self.min_rtt.min(rtt);
        self.min_rtt_new = self.min_rtt_new.min(rtt);
        let now = tp.jiffies();
        if now >= self.min_rtt_reset_jiffies {
            self.min_rtt = self.min_rtt_new;
            self.min_rtt_new = INIT_RTT;
            let random = u64::from(self.rng.u32() & 0xff);
            self.min_rtt_reset_jiffies = now + ((u64::from(self.reset_period) * (384 + random) * tp.hz) >> 9);
            self.min_cwnd = (self.min_cwnd / 2).max(MIN_CWND);
        }
    }

    /// Once per round. Source: Linux 7.3 `tcpnv_acked`.
    fn end_round(&mut self, tp: &mut TcpSock, bytes_acked: u32) {
        self.rtt_start_seq = tp.snd_nxt;
        self.rtt_cnt = self.rtt_cnt.saturating_add(1);
        let single = self.eval_call_cnt == 1
            && bytes_acked >= u32::from(self.min_cwnd - 1) * tp.mss
            && self.min_cwnd < TSO_CWND_BOUND + 1;
        if single {
            // One ACK per round: the window is too small to tell.
            self.min_cwnd = (self.min_cwnd + MIN_CWND_GROW).min(TSO_CWND_BOUND + 1);
            self.rtt_start_seq = tp.snd_nxt + u64::from(self.min_cwnd) * u64::from(tp.mss);
            self.eval_call_cnt = 0;
            self.allow_growth = true;
            return;
        }
        let by_slope = u64::from(self.rtt_max_rate) * u64::from(self.min_rtt) / (80_000 * u64::from(tp.mss));
        let max_win = (by_slope as u32).wrapping_add(self.pad);
        if tp.snd_cwnd > max_win {
            if !self.may_fall(tp) {
                return;
            }
            self.fall(tp, max_win);
        } else if tp.snd_cwnd <= max_win.wrapping_sub(PAD_BUFFER) {
            if self.eval_call_cnt < INC_EVAL_MIN_CALLS {
                return;
            }
            self.allow_growth = true;
            self.no_cong_cnt = self.no_cong_cnt.wrapping_add(1);
            if self.growth_factor < 0 && self.no_cong_cnt > GROWTH_RATE_NEG {
                self.growth_factor += 1;
                self.no_cong_cnt = 0;
            }
        } else {
            return;
        }
        self.eval_call_cnt = 0;
        self.rtt_cnt = 0;
        self.rtt_max_rate = 0;
        tp.snd_cwnd = tp.snd_cwnd.max(self.least_cwnd);
    }

    /// Whether there were enough samples and rounds to call it congestion.
    fn may_fall(&mut self, tp: &TcpSock) -> bool {
        if self.rtt_cnt < RTT_MIN_CNT {
            return false;
        }
        if tp.snd_ssthresh == INFINITE_SSTHRESH {
            return self.eval_call_cnt >= SSTHRESH_EVAL_MIN_CALLS;
        }
        if self.eval_call_cnt < DEC_EVAL_MIN_CALLS {
            if self.rtt_cnt > STOP_RTT_CNT {
                self.allow_growth = false;
            }
            return false;
        }
        true
    }

    fn fall(&mut self, tp: &mut TcpSock, max_win: u32) {
        self.allow_growth = false;
        tp.snd_ssthresh = max_win;
        let excess = tp.snd_cwnd - max_win;
        if excess > 2 {
            tp.snd_cwnd -= (excess.wrapping_mul(CONG_DEC_MULT) >> 7).max(2);
        } else {
            tp.snd_cwnd = max_win;
        }
        self.growth_factor = self.growth_factor.min(0);
        self.no_cong_cnt = 0;
    }
}

impl CongestionControl for Nv {
    fn init(&mut self, tp: &mut TcpSock) {
        self.restart(tp);
        self.min_rtt_reset_jiffies = tp.jiffies() + 2 * tp.hz;
    }

    fn ssthresh(&mut self, tp: &mut TcpSock) -> u32 {
        (tp.snd_cwnd.wrapping_mul(LOSS_DEC_FACTOR) >> 10).max(2)
    }

    /// Source: Linux 7.3 `tcpnv_cong_avoid`.
    fn cong_avoid(&mut self, tp: &mut TcpSock, acked: u32) {
        if !tp.cwnd_limited() || !self.allow_growth {
            return;
        }
        let acked = if tp.in_slow_start() { tp.slow_start(acked) } else { acked };
        if acked == 0 {
            return;
        }
        let per_packet = if self.growth_factor < 0 {
            tp.snd_cwnd << self.growth_factor.unsigned_abs()
        } else {
            (tp.snd_cwnd >> self.growth_factor).max(4)
        };
        tp.cong_avoid_ai(per_packet.max(1), acked);
    }

    /// Source: Linux 7.3 `tcpnv_state`.
    fn set_state(&mut self, tp: &mut TcpSock, state: CaState) {
        match state {
            CaState::Open if self.reset => self.restart(tp),
            CaState::Cwr | CaState::Recovery | CaState::Loss => {
                self.reset = true;
                self.allow_growth = false;
                if state == CaState::Loss {
                    self.growth_factor = self.growth_factor.min(0);
                    if self.growth_factor > -8 {
                        self.growth_factor -= 1;
                    }
                }
            }
            CaState::Open | CaState::Disorder => {}
        }
    }

    /// Source: Linux 7.3 `tcpnv_acked`.
    fn pkts_acked(&mut self, tp: &mut TcpSock, _acked: u32, rtt_us: Option<u64>) {
        let Some(rtt_us) = rtt_us else { return };
        if tp.ca_state > CaState::Disorder {
            return;
        }
        let bytes_acked = (tp.snd_una - self.last_snd_una).min(u32::MAX.into()) as u32;
        self.last_snd_una = tp.snd_una;
        let in_flight = tp.mss.wrapping_mul(tp.sample_delivered);
        if in_flight == 0 {
            return;
        }
        self.sample(tp, rtt_us.min(i32::MAX as u64) as u32, in_flight);
        if self.rtt_start_seq < tp.snd_una {
            self.end_round(tp, bytes_acked);
        }
    }

    fn trace(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("rtt_us", self.last_rtt.into()),
            ("min_rtt_us", self.min_rtt.into()),
            ("max_rate", f64::from(self.rtt_max_rate) * 100.0),
            ("allow_growth", f64::from(u8::from(self.allow_growth))),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::Time;

    fn nv(cwnd: u32, ssthresh: u32) -> (Nv, TcpSock) {
        let Ok(mut nv) = Nv::parse(&mut CcWords::new("nv"), CcEnv::default()) else { panic!("refused") };
        let mut tp = TcpSock::new(1000, 1000);
        (tp.snd_cwnd, tp.snd_ssthresh, tp.is_cwnd_limited) = (cwnd, ssthresh, true);
        nv.init(&mut tp);
        (nv, tp)
    }

    /// `n` samples of one round with `packets` in flight, then the first of the next round.
    fn round(nv: &mut Nv, tp: &mut TcpSock, n: u32, rtt_us: u64, packets: u32) -> u32 {
        tp.sample_delivered = packets;
        tp.snd_una = nv.rtt_start_seq;
        for _ in 0..n {
            nv.pkts_acked(tp, 1, Some(rtt_us));
        }
        tp.snd_una += 1000;
        tp.snd_nxt = tp.snd_una + 50_000;
        nv.pkts_acked(tp, 1, Some(rtt_us));
        tp.snd_cwnd
    }

    #[test]
    fn rtts_are_halved_with_the_last_and_the_first_is_doubled_as_least() {
        let (mut nv, mut tp) = nv(40, 2);
        tp.sample_delivered = 40;
        nv.pkts_acked(&mut tp, 1, Some(10_000));
        // 40000 bytes x 8 in 10 ms are 32 Mbit/s, in 100 bit/s
        assert_eq!((nv.last_rtt, nv.min_rtt, nv.rtt_max_rate), (10_000, 10_000, 320_000));
        nv.pkts_acked(&mut tp, 1, Some(12_000));
        assert_eq!((nv.last_rtt, nv.min_rtt, nv.rtt_max_rate), (11_000, 10_000, 320_000));
    }

    #[test]
    fn a_window_beyond_the_limit_falls_by_three_tenths_of_the_excess() {
        // 40 packets per 20 ms at a least RTT of 10 ms are 20 packets, plus 10.
        let (mut nv, mut tp) = nv(100, 50);
        nv.sample(&tp, 10_000, 1);
        for _ in 0..30 {
            nv.sample(&tp, 20_000, 1);
        }
        nv.eval_call_cnt = 0;
        assert_eq!(round(&mut nv, &mut tp, 58, 20_000, 40), 100, "one round, 59 samples");
        // 100 - 70 x 38 / 128 = 100 - 20
        assert_eq!(round(&mut nv, &mut tp, 2, 20_000, 40), 80);
        assert_eq!((tp.snd_ssthresh, nv.allow_growth, nv.eval_call_cnt), (30, false, 0));
        tp.snd_cwnd = 32;
        nv.rtt_cnt = 2;
        assert_eq!(round(&mut nv, &mut tp, 60, 20_000, 40), 30, "by two packets at once");
    }

    #[test]
    fn slow_start_ends_after_thirty_samples() {
        let (mut nv, mut tp) = nv(100, INFINITE_SSTHRESH);
        nv.sample(&tp, 10_000, 1);
        for _ in 0..30 {
            nv.sample(&tp, 20_000, 1);
        }
        (nv.eval_call_cnt, nv.rtt_cnt) = (0, 1);
        assert_eq!(round(&mut nv, &mut tp, 29, 20_000, 40), 80);
        assert_eq!(tp.snd_ssthresh, 30);
    }

    #[test]
    fn growth_needs_room_and_twenty_samples() {
        let (mut nv, mut tp) = nv(40, 2);
        nv.allow_growth = false;
        assert_eq!(round(&mut nv, &mut tp, 18, 10_000, 40), 40);
        nv.cong_avoid(&mut tp, 40);
        assert_eq!((tp.snd_cwnd, nv.allow_growth), (40, false));
        round(&mut nv, &mut tp, 1, 10_000, 40);
        nv.cong_avoid(&mut tp, 40);
        assert_eq!((tp.snd_cwnd, nv.allow_growth), (41, true));
        // After an RTO half as fast: 82 ACKs per packet.
        nv.set_state(&mut tp, CaState::Loss);
        assert!(nv.reset && !nv.allow_growth);
        nv.set_state(&mut tp, CaState::Open);
        nv.allow_growth = true;
        nv.cong_avoid(&mut tp, 81);
        assert_eq!(tp.snd_cwnd, 41);
        nv.cong_avoid(&mut tp, 1);
        assert_eq!(tp.snd_cwnd, 42);
        // 42 x 819 / 1024
        assert_eq!(nv.ssthresh(&mut tp), 33);
    }

    #[test]
    fn the_least_rtt_is_renewed_after_two_seconds_and_then_about_every_five() {
        let (mut nv, mut tp) = nv(40, 2);
        nv.sample(&tp, 10_000, 1);
        nv.min_rtt_new = 15_000;
        tp.now = Time::from_ms(1_999);
        nv.sample(&tp, 40_000, 1);
        assert_eq!(nv.min_rtt, 10_000);
        tp.now = Time::from_ms(2_000);
        nv.sample(&tp, 40_000, 1);
        assert_eq!((nv.min_rtt, nv.min_rtt_new), (15_000, INIT_RTT));
        let next = nv.min_rtt_reset_jiffies - 2_000;
        assert!((3_750..6_250).contains(&next), "{next}");
    }

    #[test]
    fn one_ack_per_round_tells_nothing() {
        let (mut nv, mut tp) = nv(4, 2);
        tp.sample_delivered = 4;
        tp.snd_una = 4_000;
        tp.snd_nxt = 8_000;
        nv.pkts_acked(&mut tp, 4, Some(10_000));
        // 8000 + 6 x 1000
        assert_eq!((nv.min_cwnd, nv.rtt_start_seq, nv.eval_call_cnt), (6, 14_000, 0));
    }
}
