//! `yeah`: YeAH. Grows as Scalable TCP until 80 packets or an eighth of the least RTT are queued, then as `reno`; a queue of
//! more than 80 packets is taken off the window once per RTT.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_yeah.c`; Baiocchi, Castellani and Vacirca, "YeAH-TCP: Yet Another Highspeed TCP", 2007.
//! RTTs are measured as `vegas` does.
//!
//! Parameters: none.
//!
//! Departures: none known.
//!
//! Validation: the tests below, `tests/cc_hooks.rs`.

use super::vegas::Rtts;
use super::{CaEvent, CcEnv, CcError, CongestionControl};
use crate::cc::sock::{CaState, TcpSock};
use bakeoff_document::cc::CcWords;

/// Packets that may be queued.
const ALPHA: u32 = 80;
/// A loss takes at least this power of two's part of the window.
const DELTA: u32 = 3;
/// A queue takes at most this power of two's part of it.
const EPSILON: u32 = 1;
/// Queueing delay is at most this part of the least RTT.
const PHY: u32 = 8;
/// RTTs as Reno after which a loss is of competition.
const RHO: u32 = 16;
/// RTTs of fast growth after which no competition is assumed.
const ZETA: u32 = 50;
/// Fast growth: a packet per so many ACKed at least.
const SCALABLE_AI_CNT: u32 = 100;

/// State; the kernel's names.
pub struct Yeah {
    vegas: Rtts,
    last_q: u32,
    /// RTTs as Reno.
    doing_reno_now: u32,
    /// The window of a Reno flow that competes.
    reno_count: u32,
    fast_count: u32,
}

impl Yeah {
    /// From the words after the name: there are none.
    pub fn parse(words: &mut CcWords, _: CcEnv) -> Result<Self, CcError> {
        words.parameter(&[])?;
        Ok(Yeah { vegas: Rtts::new(), last_q: 0, doing_reno_now: 0, reno_count: 2, fast_count: 0 })
    }

    /// The end of a round with enough samples. Source: Linux 7.3 `tcp_yeah_cong_avoid`.
    fn end_round(&mut self, tp: &mut TcpSock) {
        let (rtt, base) = (self.vegas.min, self.vegas.base);
        let delay = rtt.wrapping_sub(base);
        let queue = (u64::from(tp.snd_cwnd) * u64::from(delay) / u64::from(rtt)) as u32;
        if queue > ALPHA || delay > base / PHY {
            if queue > ALPHA && tp.snd_cwnd > self.reno_count {
                tp.snd_cwnd -= queue.min(tp.snd_cwnd >> EPSILON);
                tp.snd_cwnd = tp.snd_cwnd.max(self.reno_count);
                tp.snd_ssthresh = tp.snd_cwnd;
            }
            self.reno_count = if self.reno_count <= 2 {
                (tp.snd_cwnd >> 1).max(2)
            } else {
                self.reno_count.wrapping_add(1)
            };
            self.doing_reno_now = (self.doing_reno_now + 1).min(0xff_ffff);
        } else {
            self.fast_count += 1;
            if self.fast_count > ZETA {
                self.reno_count = 2;
                self.fast_count = 0;
            }
            self.doing_reno_now = 0;
        }
        self.last_q = queue;
    }
}

impl CongestionControl for Yeah {
    fn init(&mut self, tp: &mut TcpSock) {
        self.vegas.init(tp);
        self.doing_reno_now = 0;
        self.last_q = 0;
        self.reno_count = 2;
        tp.snd_cwnd_clamp = tp.snd_cwnd_clamp.min(u32::MAX / 128);
    }

    /// Source: Linux 7.3 `tcp_yeah_ssthresh`.
    fn ssthresh(&mut self, tp: &mut TcpSock) -> u32 {
        let half = (tp.snd_cwnd >> 1).max(2);
        let cut =
            if self.doing_reno_now < RHO { self.last_q.min(half).max(tp.snd_cwnd >> DELTA) } else { half };
        self.fast_count = 0;
        self.reno_count = (self.reno_count >> 1).max(2);
        tp.snd_cwnd.saturating_sub(cut).max(2)
    }

    fn cong_avoid(&mut self, tp: &mut TcpSock, acked: u32) {
        if !tp.cwnd_limited() {
            return;
        }
        let acked = if tp.in_slow_start() { tp.slow_start(acked) } else { acked };
        if acked > 0 {
            let w = if self.doing_reno_now == 0 { tp.snd_cwnd.min(SCALABLE_AI_CNT) } else { tp.snd_cwnd };
            tp.cong_avoid_ai(w, acked);
        }
        if tp.snd_una > self.vegas.beg_snd_nxt {
            if self.vegas.cnt > 2 {
                self.end_round(tp);
            }
            self.vegas.beg_snd_nxt = tp.snd_nxt;
            self.vegas.new_round();
        }
    }

    fn pkts_acked(&mut self, _tp: &mut TcpSock, _acked: u32, rtt_us: Option<u64>) {
        self.vegas.sample(rtt_us);
    }

    fn set_state(&mut self, tp: &mut TcpSock, state: CaState) {
        self.vegas.set_state(tp, state);
    }

    fn cwnd_event(&mut self, tp: &mut TcpSock, event: CaEvent) {
        self.vegas.event(tp, event);
    }

    fn trace(&self) -> Vec<(&'static str, f64)> {
        let mut values = self.vegas.trace().to_vec();
        values.extend([("queue", self.last_q.into()), ("reno_count", self.reno_count.into())]);
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In congestion avoidance with a least RTT of 10 ms.
    fn yeah(cwnd: u32) -> (Yeah, TcpSock) {
        let Ok(mut yeah) = Yeah::parse(&mut CcWords::new("yeah"), CcEnv::default()) else {
            panic!("refused")
        };
        let mut tp = TcpSock::new(1000, 1000);
        (tp.snd_cwnd, tp.snd_ssthresh, tp.is_cwnd_limited) = (cwnd, 2, true);
        yeah.init(&mut tp);
        yeah.pkts_acked(&mut tp, 1, Some(9_999));
        yeah.vegas.new_round();
        (yeah, tp)
    }

    /// A round of RTTs of `rtt_us`, ended by an ACK of one packet.
    fn round(yeah: &mut Yeah, tp: &mut TcpSock, rtt_us: u64) -> u32 {
        for _ in 0..3 {
            yeah.pkts_acked(tp, 1, Some(rtt_us));
        }
        tp.snd_una = tp.snd_nxt + 1000;
        tp.snd_nxt = tp.snd_una;
        yeah.cong_avoid(tp, 1);
        tp.snd_cwnd
    }

    #[test]
    fn without_a_queue_it_grows_by_a_hundredth() {
        let (mut yeah, mut tp) = yeah(400);
        tp.snd_una = 0;
        yeah.vegas.beg_snd_nxt = 1;
        yeah.cong_avoid(&mut tp, 400);
        assert_eq!(tp.snd_cwnd, 404);
        yeah.doing_reno_now = 1;
        yeah.cong_avoid(&mut tp, 404);
        assert_eq!(tp.snd_cwnd, 405);
    }

    #[test]
    fn a_delay_of_an_eighth_makes_it_reno_and_80_packets_are_taken_off() {
        let (mut yeah, mut tp) = yeah(300);
        round(&mut yeah, &mut tp, 11_249); // 10000 + 10000 / 8
        assert_eq!((yeah.doing_reno_now, yeah.fast_count), (0, 1));
        round(&mut yeah, &mut tp, 11_250);
        assert_eq!((yeah.doing_reno_now, yeah.reno_count), (1, 150));
        // 300 * 10 / 20 = 150 are queued, and half is 150
        assert_eq!(round(&mut yeah, &mut tp, 19_999), 150);
        assert_eq!((tp.snd_ssthresh, yeah.reno_count, yeah.last_q), (150, 151, 150));
        assert_eq!(round(&mut yeah, &mut tp, 9_999), 150);
        assert_eq!(yeah.doing_reno_now, 0);
    }

    #[test]
    fn the_queue_is_taken_off_down_to_renos_window() {
        let (mut yeah, mut tp) = yeah(300);
        yeah.reno_count = 240;
        // 300 * 4 / 14 = 85
        assert_eq!(round(&mut yeah, &mut tp, 13_999), 240);
        assert_eq!(yeah.reno_count, 241);
        // 240 * 6 / 16 = 90 are queued, but Reno would have more.
        assert_eq!(round(&mut yeah, &mut tp, 15_999), 240);
        assert_eq!(yeah.reno_count, 242);
    }

    #[test]
    fn a_loss_takes_the_queue_between_an_eighth_and_a_half() {
        let (mut yeah, mut tp) = yeah(80);
        for (queue, expected) in [(0, 70), (20, 60), (60, 40)] {
            yeah.last_q = queue;
            assert_eq!(yeah.ssthresh(&mut tp), expected);
        }
        (yeah.last_q, yeah.doing_reno_now, yeah.reno_count, yeah.fast_count) = (0, 15, 60, 9);
        assert_eq!(yeah.ssthresh(&mut tp), 70);
        yeah.doing_reno_now = 16;
        assert_eq!((yeah.ssthresh(&mut tp), yeah.reno_count, yeah.fast_count), (40, 15, 0));
        tp.snd_cwnd = 1;
        assert_eq!(yeah.ssthresh(&mut tp), 2);
    }

    #[test]
    fn fifty_fast_rounds_forget_renos_window() {
        let (mut yeah, mut tp) = yeah(50);
        yeah.reno_count = 20;
        for _ in 0..50 {
            round(&mut yeah, &mut tp, 9_999);
        }
        assert_eq!((yeah.reno_count, yeah.fast_count), (20, 50));
        round(&mut yeah, &mut tp, 9_999);
        assert_eq!((yeah.reno_count, yeah.fast_count), (2, 0));
    }
}
