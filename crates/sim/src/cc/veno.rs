//! `veno`: `reno` that takes a loss for a random one while fewer than three packets are queued, and then reduces by a fifth
//! only; with more it grows at half the speed.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_veno.c`; Fu and Liew, "TCP Veno: TCP Enhancement for Transmission over Wireless Access
//! Networks", 2003. As there the least RTT is forgotten with every ACK that may grow the window, so that single ACKs decide.
//!
//! Parameters: none.
//!
//! Departures: none known.
//!
//! Validation: the tests below, `tests/cc_hooks.rs`.

use super::reno::Reno;
use super::vegas::{NO_RTT, plus_one};
use super::{CaEvent, CcEnv, CcError, CongestionControl};
use crate::cc::sock::{CaState, TcpSock};
use bakeoff_document::cc::CcWords;

/// `V_PARAM_SHIFT`: queued packets are counted in halves.
const SHIFT: u32 = 1;
/// Three packets.
const BETA: u32 = 3 << SHIFT;

/// State; the kernel's names. RTTs in microseconds, plus 1.
pub struct Veno {
    doing_now: bool,
    cnt_rtt: u16,
    min_rtt: u32,
    base_rtt: u32,
    /// Whether the next full window of ACKs grows.
    inc: bool,
    /// Packets queued, in halves.
    diff: u32,
}

impl Veno {
    /// From the words after the name: there are none.
    pub fn parse(words: &mut CcWords, _: CcEnv) -> Result<Self, CcError> {
        words.parameter(&[])?;
        Ok(Veno { doing_now: true, cnt_rtt: 0, min_rtt: NO_RTT, base_rtt: NO_RTT, inc: true, diff: 0 })
    }

    /// `veno_enable`
    fn enable(&mut self) {
        self.doing_now = true;
        self.min_rtt = NO_RTT;
    }

    /// Growth by the state of the queue. Source: Linux 7.3 `tcp_veno_cong_avoid`.
    fn grow(&mut self, tp: &mut TcpSock, acked: u32) {
        let cwnd = u64::from(tp.snd_cwnd) << SHIFT;
        let target = cwnd * u64::from(self.base_rtt) / u64::from(self.min_rtt);
        self.diff = cwnd.wrapping_sub(target) as u32;
        let acked = if tp.in_slow_start() { tp.slow_start(acked) } else { acked };
        if acked == 0 {
            return;
        }
        if self.diff < BETA {
            tp.cong_avoid_ai(tp.snd_cwnd, acked);
        } else if tp.snd_cwnd_cnt >= tp.snd_cwnd {
            if self.inc && tp.snd_cwnd < tp.snd_cwnd_clamp {
                tp.snd_cwnd += 1;
                self.inc = false;
            } else {
                self.inc = true;
            }
            tp.snd_cwnd_cnt = 0;
        } else {
            tp.snd_cwnd_cnt += acked;
        }
    }
}

impl CongestionControl for Veno {
    /// `tcp_veno_init`
    fn init(&mut self, _tp: &mut TcpSock) {
        self.base_rtt = NO_RTT;
        self.inc = true;
        self.enable();
    }

    /// Source: Linux 7.3 `tcp_veno_ssthresh`.
    fn ssthresh(&mut self, tp: &mut TcpSock) -> u32 {
        if self.diff < BETA { (tp.snd_cwnd.wrapping_mul(4) / 5).max(2) } else { Reno::half(tp) }
    }

    fn cong_avoid(&mut self, tp: &mut TcpSock, acked: u32) {
        if !self.doing_now {
            Reno::grow(tp, acked);
            return;
        }
        if !tp.cwnd_limited() {
            return;
        }
        if self.cnt_rtt <= 2 {
            Reno::grow(tp, acked);
        } else {
            self.grow(tp, acked);
            tp.snd_cwnd = tp.snd_cwnd.max(2).min(tp.snd_cwnd_clamp);
        }
        self.min_rtt = NO_RTT;
    }

    fn set_state(&mut self, _tp: &mut TcpSock, state: CaState) {
        if state == CaState::Open {
            self.enable();
        } else {
            self.doing_now = false;
        }
    }

    fn cwnd_event(&mut self, tp: &mut TcpSock, event: CaEvent) {
        if matches!(event, CaEvent::CwndRestart | CaEvent::TxStart) {
            self.init(tp);
        }
    }

    fn pkts_acked(&mut self, _tp: &mut TcpSock, _acked: u32, rtt_us: Option<u64>) {
        let Some(rtt_us) = rtt_us else { return };
        let rtt = plus_one(rtt_us);
        self.base_rtt = self.base_rtt.min(rtt);
        self.min_rtt = self.min_rtt.min(rtt);
        self.cnt_rtt = self.cnt_rtt.wrapping_add(1);
    }

    fn trace(&self) -> Vec<(&'static str, f64)> {
        vec![("base_rtt_us", self.base_rtt.into()), ("diff", f64::from(self.diff) / f64::from(1 << SHIFT))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In congestion avoidance with a least RTT of 10 ms and enough samples.
    fn veno(cwnd: u32) -> (Veno, TcpSock) {
        let Ok(mut veno) = Veno::parse(&mut CcWords::new("veno"), CcEnv::default()) else {
            panic!("refused")
        };
        let mut tp = TcpSock::new(1000, 1000);
        (tp.snd_cwnd, tp.snd_ssthresh, tp.is_cwnd_limited) = (cwnd, 2, true);
        veno.init(&mut tp);
        for _ in 0..3 {
            veno.pkts_acked(&mut tp, 1, Some(9_999));
        }
        veno.min_rtt = NO_RTT;
        (veno, tp)
    }

    fn ack(veno: &mut Veno, tp: &mut TcpSock, rtt_us: u64, acked: u32) -> u32 {
        veno.pkts_acked(tp, acked, Some(rtt_us));
        veno.cong_avoid(tp, acked);
        tp.snd_cwnd
    }

    #[test]
    fn the_last_ack_tells_what_a_loss_means() {
        let (mut veno, mut tp) = veno(100);
        // 200 - 200 * 10000 / 10256 = 200 - 195 = 5 halves; with 10.31 ms 200 - 193 = 7
        ack(&mut veno, &mut tp, 10_255, 1);
        assert_eq!((veno.diff, veno.ssthresh(&mut tp)), (5, 80));
        ack(&mut veno, &mut tp, 10_309, 1);
        assert_eq!((veno.diff, veno.ssthresh(&mut tp)), (7, 50));
        // An ACK without a sample: nothing is known of this ACK, and so all of the window is queued.
        veno.cong_avoid(&mut tp, 1);
        // 200 * 10000 / 0x7fffffff = 0
        assert_eq!(veno.diff, 200);
        tp.snd_cwnd = 2;
        veno.diff = 0;
        assert_eq!(veno.ssthresh(&mut tp), 2);
    }

    #[test]
    fn with_a_queue_it_grows_in_every_second_window() {
        let (mut veno, mut tp) = veno(10);
        // Of 10 packets half are queued. A window of ACKs is counted, the next ACK grows, and so on.
        let grown: Vec<u32> = (0..5).map(|_| ack(&mut veno, &mut tp, 19_999, 10)).collect();
        // counted; +1; counted to 10 of 11, to 20; not grown
        assert_eq!(grown, [10, 11, 11, 11, 11]);
        let grown: Vec<u32> = (0..4).map(|_| ack(&mut veno, &mut tp, 19_999, 11)).collect();
        assert_eq!(grown, [11, 12, 12, 12]);
    }

    #[test]
    fn without_one_it_is_reno_in_slow_start_as_well() {
        let (mut veno, mut tp) = veno(10);
        assert_eq!(ack(&mut veno, &mut tp, 9_999, 10), 11);
        tp.snd_ssthresh = 13;
        // 2 to the threshold, 13 of 13 more
        assert_eq!(ack(&mut veno, &mut tp, 9_999, 15), 14);
        tp.is_cwnd_limited = false;
        assert_eq!(ack(&mut veno, &mut tp, 9_999, 100), 14);
    }

    #[test]
    fn outside_of_open_it_is_reno_and_a_start_forgets_the_least_rtt() {
        let (mut veno, mut tp) = veno(10);
        veno.set_state(&mut tp, CaState::Disorder);
        assert_eq!(ack(&mut veno, &mut tp, 99_999, 10), 11);
        assert_eq!(veno.diff, 0);
        veno.set_state(&mut tp, CaState::Open);
        assert_eq!((veno.base_rtt, veno.min_rtt), (10_000, NO_RTT));
        veno.cwnd_event(&mut tp, CaEvent::CwndRestart);
        assert_eq!(veno.base_rtt, NO_RTT);
    }
}
