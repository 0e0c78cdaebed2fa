//! `illinois`: additive increase of 10 packets down to 0.3, and decrease by an eighth up to a half, by the mean queueing delay
//! of the last RTT against the greatest one.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_illinois.c`; Liu, Basar and Srikant, "TCP-Illinois: A Loss and Delay-Based Congestion
//! Control Algorithm for High-Speed Networks", 2006. Alpha in 1/128, beta in 1/64, as there.
//!
//! Parameters, as the module's:
//!
//! | name | default | meaning |
//! |---|---|---|
//! | `win_thresh` | 15 | packets; below, alpha is 1 and beta 1/2 |
//! | `theta` | 5 | RTTs of little delay before alpha is 10 again |
//!
//! Departures: none known.
//!
//! Validation: the tests below, `tests/cc_hooks.rs`.

use super::{CcEnv, CcError, CongestionControl};
use crate::cc::sock::{CaState, TcpSock};
use bakeoff_document::cc::CcWords;

const ALPHA_SHIFT: u32 = 7;
const ALPHA_MIN: u32 = 3 * ALPHA_BASE / 10;
const ALPHA_MAX: u32 = 10 * ALPHA_BASE;
const ALPHA_BASE: u32 = 1 << ALPHA_SHIFT;
const BETA_SHIFT: u32 = 6;
const BETA_MIN: u32 = (1 << BETA_SHIFT) / 8;
const BETA_MAX: u32 = (1 << BETA_SHIFT) / 2;
/// Microseconds above which a sample is cut: 3.4 s.
const RTT_MAX: u32 = u32::MAX / ALPHA_MAX;

/// Parameters and state; the kernel's names. RTTs in microseconds.
pub struct Illinois {
    win_thresh: u32,
    theta: u32,
    sum_rtt: u64,
    cnt_rtt: u16,
    base_rtt: u32,
    max_rtt: u32,
    end_seq: u64,
    alpha: u32,
    beta: u32,
    /// Packets that the ACK being handled covers.
    acked: u16,
    rtt_above: bool,
    rtt_low: u8,
}

impl Illinois {
    /// From the words after the name.
    pub fn parse(words: &mut CcWords, _: CcEnv) -> Result<Self, CcError> {
        let mut c = Illinois {
            win_thresh: 15,
            theta: 5,
            sum_rtt: 0,
            cnt_rtt: 0,
            base_rtt: 0x7fff_ffff,
            max_rtt: 0,
            end_seq: 0,
            alpha: ALPHA_MAX,
            beta: BETA_MAX,
            acked: 0,
            rtt_above: false,
            rtt_low: 0,
        };
        while let Some(parameter) = words.parameter(&["win_thresh", "theta"])? {
            let value = words.number(0..=i32::MAX as u32)?;
            match parameter {
                "win_thresh" => c.win_thresh = value,
                _ => c.theta = value,
            }
        }
        Ok(c)
    }

    /// `rtt_reset`
    fn new_round(&mut self, tp: &TcpSock) {
        self.end_seq = tp.snd_nxt;
        self.cnt_rtt = 0;
        self.sum_rtt = 0;
    }

    /// Additive increase at a mean queueing delay of `da` and a greatest of `dm`. Source: Linux 7.3 `alpha`.
    fn next_alpha(&mut self, da: u32, dm: u32) -> u32 {
        let d1 = dm / 100;
        if da <= d1 {
            if !self.rtt_above {
                return ALPHA_MAX;
            }
            // One RTT of little delay is not enough for a sudden growth.
            self.rtt_low = self.rtt_low.wrapping_add(1);
            if u32::from(self.rtt_low) < self.theta {
                return self.alpha;
            }
            self.rtt_low = 0;
            self.rtt_above = false;
            return ALPHA_MAX;
        }
        self.rtt_above = true;
        let (dm, da) = (dm - d1, da - d1);
        let divisor = dm.wrapping_add(da.wrapping_mul(ALPHA_MAX - ALPHA_MIN) / ALPHA_MIN);
        dm.wrapping_mul(ALPHA_MAX).checked_div(divisor).unwrap_or(ALPHA_MIN)
    }

    /// Once per RTT. Source: Linux 7.3 `update_params`.
    fn update(&mut self, tp: &TcpSock) {
        if tp.snd_cwnd < self.win_thresh {
            self.alpha = ALPHA_BASE;
            self.beta = BETA_MAX;
        } else if self.cnt_rtt > 0 {
            let dm = self.max_rtt.wrapping_sub(self.base_rtt);
            let mean = (self.sum_rtt / u64::from(self.cnt_rtt)) as u32;
            let da = mean.wrapping_sub(self.base_rtt);
            self.alpha = self.next_alpha(da, dm);
            self.beta = beta(da, dm);
        }
        self.new_round(tp);
    }
}

/// Decrease: an eighth at up to a tenth of the greatest delay, a half from eight tenths on. Source: Linux 7.3 `beta`.
fn beta(da: u32, dm: u32) -> u32 {
    let (d2, d3) = (dm / 10, dm.wrapping_mul(8) / 10);
    if da <= d2 {
        BETA_MIN
    } else if da >= d3 || d3 <= d2 {
        BETA_MAX
    } else {
        let slope = (BETA_MAX - BETA_MIN).wrapping_mul(da);
        (BETA_MIN.wrapping_mul(d3)).wrapping_sub(BETA_MAX.wrapping_mul(d2)).wrapping_add(slope) / (d3 - d2)
    }
}

impl CongestionControl for Illinois {
    fn init(&mut self, tp: &mut TcpSock) {
        self.new_round(tp);
    }

    fn ssthresh(&mut self, tp: &mut TcpSock) -> u32 {
        let cut = tp.snd_cwnd.wrapping_mul(self.beta) >> BETA_SHIFT;
        (tp.snd_cwnd - cut).max(2)
    }

    /// Source: Linux 7.3 `tcp_illinois_cong_avoid`.
    fn cong_avoid(&mut self, tp: &mut TcpSock, acked: u32) {
        if tp.snd_una > self.end_seq {
            self.update(tp);
        }
        if !tp.cwnd_limited() {
            return;
        }
        if tp.in_slow_start() {
            tp.slow_start(acked);
            return;
        }
        tp.snd_cwnd_cnt += u32::from(self.acked);
        self.acked = 1;
        let delta = tp.snd_cwnd_cnt.wrapping_mul(self.alpha) >> ALPHA_SHIFT;
        if delta >= tp.snd_cwnd {
            tp.snd_cwnd = (tp.snd_cwnd + delta / tp.snd_cwnd).min(tp.snd_cwnd_clamp);
            tp.snd_cwnd_cnt = 0;
        }
    }

    /// Source: Linux 7.3 `tcp_illinois_state`.
    fn set_state(&mut self, tp: &mut TcpSock, state: CaState) {
        if state == CaState::Loss {
            self.alpha = ALPHA_BASE;
            self.beta = BETA_MAX;
            self.rtt_low = 0;
            self.rtt_above = false;
            self.new_round(tp);
        }
    }

    /// Source: Linux 7.3 `tcp_illinois_acked`.
    fn pkts_acked(&mut self, _tp: &mut TcpSock, acked: u32, rtt_us: Option<u64>) {
        self.acked = acked as u16;
        let Some(rtt_us) = rtt_us else { return };
        let rtt = rtt_us.min(RTT_MAX.into()) as u32;
        self.base_rtt = self.base_rtt.min(rtt);
        self.max_rtt = self.max_rtt.max(rtt);
        self.cnt_rtt = self.cnt_rtt.wrapping_add(1);
        self.sum_rtt += u64::from(rtt);
    }

    fn trace(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("alpha", f64::from(self.alpha) / f64::from(ALPHA_BASE)),
            ("beta", f64::from(self.beta) / f64::from(1 << BETA_SHIFT)),
            ("base_rtt_us", self.base_rtt.into()),
            ("max_rtt_us", self.max_rtt.into()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn illinois(text: &str, cwnd: u32) -> (Illinois, TcpSock) {
        let Ok(mut illinois) = Illinois::parse(&mut CcWords::new(text), CcEnv::default()) else {
            panic!("'{text}' was refused")
        };
        let mut tp = TcpSock::new(1000, 1000);
        (tp.snd_cwnd, tp.snd_ssthresh, tp.is_cwnd_limited) = (cwnd, 2, true);
        illinois.init(&mut tp);
        illinois.pkts_acked(&mut tp, 1, Some(10_000));
        illinois.pkts_acked(&mut tp, 1, Some(20_000));
        illinois.new_round(&tp);
        (illinois, tp)
    }

    /// A round of one RTT; alpha and beta after it.
    fn round(illinois: &mut Illinois, tp: &TcpSock, rtt_us: u64) -> (u32, u32) {
        illinois.pkts_acked(&mut tp.clone(), 1, Some(rtt_us));
        illinois.update(tp);
        (illinois.alpha, illinois.beta)
    }

    #[test]
    fn alpha_and_beta_by_the_delay() {
        // The greatest delay is 10 ms: d1 = 100 us, d2 = 1 ms, d3 = 8 ms.
        let (mut c, tp) = illinois("illinois", 100);
        assert_eq!(round(&mut c, &tp, 10_100), (1280, 8));
        // da - d1 = 900: 9900 * 1280 / (9900 + 900 * 1242 / 38) = 12672000 / (9900 + 29415) = 322
        assert_eq!(round(&mut c, &tp, 11_000), (322, 8));
        // 4900: 12672000 / (9900 + 160152) = 74; (8 * 8000 - 32 * 1000 + 24 * 5000) / 7000 = 21
        assert_eq!(round(&mut c, &tp, 15_000), (74, 21));
        // 9900: 12672000 / (9900 + 323573) = 38, i.e. 0.3
        assert_eq!(round(&mut c, &tp, 20_000), (38, 32));
    }

    #[test]
    fn five_good_rounds_before_alpha_is_ten_again() {
        let (mut c, tp) = illinois("illinois", 100);
        round(&mut c, &tp, 20_000);
        let alphas: Vec<u32> = (0..5).map(|_| round(&mut c, &tp, 10_000).0).collect();
        assert_eq!(alphas, [38, 38, 38, 38, 1280]);
        let (mut c, tp) = illinois("illinois theta 2", 100);
        round(&mut c, &tp, 20_000);
        let alphas: Vec<u32> = (0..2).map(|_| round(&mut c, &tp, 10_000).0).collect();
        assert_eq!(alphas, [38, 1280]);
    }

    #[test]
    fn a_small_window_is_renos() {
        let (mut c, tp) = illinois("illinois", 14);
        assert_eq!(round(&mut c, &tp, 10_000), (128, 32));
        let (mut c, tp) = illinois("illinois win_thresh 14", 14);
        assert_eq!(round(&mut c, &tp, 10_000), (1280, 8));
    }

    #[test]
    fn growth_counts_what_the_ack_covers() {
        let (mut c, mut tp) = illinois("illinois", 100);
        tp.snd_una = 0;
        c.alpha = 256;
        // twice 49 are 98, twice 51 are 102: one packet
        for (acked, expected) in [(49, 100), (2, 101)] {
            c.pkts_acked(&mut tp, acked, None);
            c.cong_avoid(&mut tp, 1);
            assert_eq!(tp.snd_cwnd, expected);
        }
        assert_eq!((tp.snd_cwnd_cnt, c.acked), (0, 1));
        c.beta = 16;
        // 101 - 25
        assert_eq!(c.ssthresh(&mut tp), 76);
        c.set_state(&mut tp, CaState::Loss);
        assert_eq!((c.alpha, c.ssthresh(&mut tp)), (128, 51));
    }
}
