//! `htcp`: H-TCP. The more time since the last congestion, the faster it grows; reduces to the ratio of the least and the
//! greatest RTT, a half to 0.8, while the throughput stays.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_htcp.c`; Leith and Shorten, "H-TCP: TCP for high-speed and long-distance networks", 2004.
//! RTTs in jiffies, rounded up; alpha and beta in 1/128, as there.
//!
//! Parameters, as the module's:
//!
//! | name | default | meaning |
//! |---|---|---|
//! | `use_rtt_scaling` | 1 | growth in proportion to the RTT over 100 ms |
//! | `use_bandwidth_switch` | 1 | halve where the throughput changed by more than a fifth |
//!
//! Departures: none known. The first sample of throughput is 0, as the kernel's is some minutes after boot: it begins at
//! jiffy 0.
//!
//! Validation: the tests below, `tests/cc_hooks.rs`.

use super::{CcEnv, CcError, CongestionControl};
use crate::cc::sock::{CaState, TcpSock};
use bakeoff_document::cc::CcWords;

/// 1.0
const ALPHA_BASE: u32 = 1 << 7;
/// 0.5
const BETA_MIN: u32 = 1 << 6;
/// 0.8
const BETA_MAX: u32 = 102;

/// Parameters and state; the kernel's names. Times in jiffies.
pub struct Htcp {
    use_rtt_scaling: bool,
    use_bandwidth_switch: bool,
    alpha: u32,
    beta: u32,
    /// Whether a congestion was seen: from the second on beta is the ratio of the RTTs.
    modeswitch: bool,
    pkts_acked: u16,
    packetcount: u32,
    min_rtt: u32,
    max_rtt: u32,
    last_cong: u64,
    /// What `last_cong`, `max_rtt` and `old_max_b` were, while they may come back.
    undo: Option<(u64, u32, u32)>,
    /// Packets per second.
    min_b: u32,
    max_b: u32,
    old_max_b: u32,
    bi: u32,
    last_time: Option<u64>,
}

/// `usecs_to_jiffies`: rounded up.
fn jiffies(us: u64, hz: u64) -> u32 {
    us.saturating_mul(hz).div_ceil(1_000_000).min(u32::MAX.into()) as u32
}

/// `between`, in 32 bits that wrap.
fn between(x: u32, low: u32, high: u32) -> bool {
    high.wrapping_sub(low) >= x.wrapping_sub(low)
}

impl Htcp {
    /// From the words after the name.
    pub fn parse(words: &mut CcWords, _: CcEnv) -> Result<Self, CcError> {
        let mut c = Htcp {
            use_rtt_scaling: true,
            use_bandwidth_switch: true,
            alpha: ALPHA_BASE,
            beta: BETA_MIN,
            modeswitch: false,
            pkts_acked: 1,
            packetcount: 0,
            min_rtt: 0,
            max_rtt: 0,
            last_cong: 0,
            undo: None,
            min_b: 0,
            max_b: 0,
            old_max_b: 0,
            bi: 0,
            last_time: None,
        };
        while let Some(parameter) = words.parameter(&["use_rtt_scaling", "use_bandwidth_switch"])? {
            match parameter {
                "use_rtt_scaling" => c.use_rtt_scaling = words.flag()?,
                _ => c.use_bandwidth_switch = words.flag()?,
            }
        }
        Ok(c)
    }

    /// `htcp_cong_time`
    fn cong_time(&self, tp: &TcpSock) -> u32 {
        tp.jiffies().saturating_sub(self.last_cong) as u32
    }

    /// `measure_rtt`
    fn measure_rtt(&mut self, tp: &TcpSock, rtt: u32) {
        if self.min_rtt > rtt || self.min_rtt == 0 {
            self.min_rtt = rtt;
        }
        if tp.ca_state == CaState::Open {
            self.max_rtt = self.max_rtt.max(self.min_rtt);
            // A greater jump is taken for an outlier.
            if self.max_rtt < rtt && rtt <= self.max_rtt.saturating_add(jiffies(20_000, tp.hz)) {
                self.max_rtt = rtt;
            }
        }
    }

    /// `htcp_beta_update`
    fn update_beta(&mut self, hz: u64) {
        if self.use_bandwidth_switch {
            let (max_b, old) = (self.max_b, self.old_max_b);
            self.old_max_b = max_b;
            if !between(max_b.wrapping_mul(5), old.wrapping_mul(4), old.wrapping_mul(6)) {
                self.beta = BETA_MIN;
                self.modeswitch = false;
                return;
            }
        }
        if self.modeswitch && self.min_rtt > jiffies(10_000, hz) && self.max_rtt > 0 {
            self.beta = ((self.min_rtt << 7) / self.max_rtt).clamp(BETA_MIN, BETA_MAX);
        } else {
            self.beta = BETA_MIN;
            self.modeswitch = true;
        }
    }

    /// `htcp_alpha_update`
    fn update_alpha(&mut self, tp: &TcpSock) {
        let hz = tp.hz as u32;
        let mut factor: u32 = 1;
        let since = self.cong_time(tp);
        if since > hz {
            let since = since - hz;
            let square = (since / 2).wrapping_mul(since / 2) / hz;
            factor = 1 + since.wrapping_mul(10).wrapping_add(square) / hz;
        }
        if self.use_rtt_scaling && self.min_rtt > 0 {
            // 0.5 to 10
            let scale = ((hz << 3) / self.min_rtt.wrapping_mul(10).max(1)).clamp(1 << 2, 10 << 3);
            factor = ((factor << 3) / scale).max(1);
        }
        self.alpha = factor.wrapping_mul(2).wrapping_mul((1 << 7) - self.beta);
        if self.alpha == 0 {
            self.alpha = ALPHA_BASE;
        }
    }

    /// `measure_achieved_throughput`, but for the RTT.
    fn measure_throughput(&mut self, tp: &TcpSock, acked: u32) {
        let now = tp.jiffies();
        if tp.ca_state > CaState::Disorder {
            self.packetcount = 0;
            self.last_time = Some(now);
            return;
        }
        self.packetcount = self.packetcount.wrapping_add(acked);
        let window = tp.snd_cwnd.wrapping_sub((self.alpha >> 7).max(1));
        let span = self.last_time.map_or(u32::MAX, |last| now.saturating_sub(last) as u32);
        if self.packetcount < window || span < self.min_rtt || self.min_rtt == 0 {
            return;
        }
        let sample = self.packetcount.wrapping_mul(tp.hz as u32) / span;
        if self.cong_time(tp) / self.min_rtt <= 3 {
            // just after a reduction
            self.min_b = sample;
            self.max_b = sample;
            self.bi = sample;
        } else {
            self.bi = self.bi.wrapping_mul(3).wrapping_add(sample) / 4;
            self.max_b = self.max_b.max(self.bi);
            self.min_b = self.min_b.min(self.max_b);
        }
        self.packetcount = 0;
        self.last_time = Some(now);
    }
}

impl CongestionControl for Htcp {
    fn init(&mut self, tp: &mut TcpSock) {
        self.last_cong = tp.jiffies();
    }

    /// Source: Linux 7.3 `htcp_param_update`, `htcp_recalc_ssthresh`.
    fn ssthresh(&mut self, tp: &mut TcpSock) -> u32 {
        self.update_beta(tp.hz);
        self.update_alpha(tp);
        if self.min_rtt > 0 && self.max_rtt > self.min_rtt {
            // Forgotten slowly, for routes may change.
            self.max_rtt = self.min_rtt + (self.max_rtt - self.min_rtt).wrapping_mul(95) / 100;
        }
        (tp.snd_cwnd.wrapping_mul(self.beta) >> 7).max(2)
    }

    /// Source: Linux 7.3 `htcp_cong_avoid`.
    fn cong_avoid(&mut self, tp: &mut TcpSock, acked: u32) {
        if !tp.cwnd_limited() {
            return;
        }
        if tp.in_slow_start() {
            tp.slow_start(acked);
            return;
        }
        if tp.snd_cwnd_cnt.wrapping_mul(self.alpha) >> 7 >= tp.snd_cwnd {
            if tp.snd_cwnd < tp.snd_cwnd_clamp {
                tp.snd_cwnd += 1;
            }
            tp.snd_cwnd_cnt = 0;
            self.update_alpha(tp);
        } else {
            tp.snd_cwnd_cnt += u32::from(self.pkts_acked);
        }
        self.pkts_acked = 1;
    }

    /// Source: Linux 7.3 `htcp_state`.
    fn set_state(&mut self, tp: &mut TcpSock, state: CaState) {
        match state {
            CaState::Open => {
                if self.undo.take().is_some() {
                    self.last_cong = tp.jiffies();
                }
            }
            CaState::Disorder => {}
            CaState::Cwr | CaState::Recovery | CaState::Loss => {
                self.undo = Some((self.last_cong, self.max_rtt, self.old_max_b));
                self.last_cong = tp.jiffies();
            }
        }
    }

    /// Source: Linux 7.3 `measure_achieved_throughput`.
    fn pkts_acked(&mut self, tp: &mut TcpSock, acked: u32, rtt_us: Option<u64>) {
        if tp.ca_state == CaState::Open {
            self.pkts_acked = acked as u16;
        }
        if let Some(rtt_us) = rtt_us.filter(|rtt_us| *rtt_us > 0) {
            self.measure_rtt(tp, jiffies(rtt_us, tp.hz));
        }
        if self.use_bandwidth_switch {
            self.measure_throughput(tp, acked);
        }
    }

    /// Source: Linux 7.3 `htcp_cwnd_undo`.
    fn undo_cwnd(&mut self, tp: &mut TcpSock) -> u32 {
        if let Some((last_cong, max_rtt, old_max_b)) = self.undo.take() {
            self.last_cong = last_cong;
            self.max_rtt = max_rtt;
            self.old_max_b = old_max_b;
        }
        tp.snd_cwnd.max(tp.prior_cwnd)
    }

    fn trace(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("alpha", f64::from(self.alpha) / f64::from(ALPHA_BASE)),
            ("beta", f64::from(self.beta) / 128.0),
            ("max_b", self.max_b.into()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::Time;

    fn htcp(text: &str) -> (Htcp, TcpSock) {
        let Ok(mut c) = Htcp::parse(&mut CcWords::new(text), CcEnv::default()) else {
            panic!("'{text}' was refused")
        };
        let mut tp = TcpSock::new(1448, 1000);
        (tp.snd_cwnd, tp.snd_ssthresh, tp.is_cwnd_limited) = (100, 2, true);
        c.init(&mut tp);
        (c, tp)
    }

    #[test]
    fn alpha_by_the_time_since_congestion_and_the_rtt() {
        // beta 1/2: alpha is the factor, times 128
        for (ms, min_rtt, alpha) in [
            (1000, 100, 1),
            (1001, 100, 1),     // (10 + 0) / 1000 = 0
            (2000, 100, 11),    // (10000 + 500 * 500 / 1000) / 1000 = 10.25
            (3000, 100, 22),    // (20000 + 1000) / 1000 = 21
            (11_000, 100, 126), // (100000 + 25000) / 1000
            (3000, 0, 22),      // no RTT yet
            (3000, 200, 44),    // scale 8000 / 2000 = 4: 176 / 4
            (3000, 400, 44),    // not below 0.5
            (3000, 50, 11),     // scale 16: 176 / 16
            (3000, 10, 2),      // scale 80: 176 / 80 = 2.2
            (3000, 1, 2),       // not above 10
            (1000, 10, 1),      // 8 / 80 = 0
        ] {
            let (mut c, mut tp) = htcp("htcp");
            tp.now = Time::from_ms(ms);
            c.min_rtt = min_rtt;
            c.update_alpha(&tp);
            assert_eq!(c.alpha, 128 * alpha, "{ms} {min_rtt}");
        }
        let (mut c, mut tp) = htcp("htcp use_rtt_scaling 0");
        tp.now = Time::from_ms(3000);
        c.min_rtt = 10;
        c.beta = 102;
        c.update_alpha(&tp);
        // 2 * 22 * 26
        assert_eq!(c.alpha, 1144);
    }

    #[test]
    fn beta_is_the_ratio_of_the_rtts_from_the_second_congestion_on() {
        let (mut c, mut tp) = htcp("htcp use_bandwidth_switch 0");
        (c.min_rtt, c.max_rtt) = (50, 70);
        assert_eq!(c.ssthresh(&mut tp), 50);
        // the greatest fades: 50 + 20 * 95 / 100 = 69; 50 * 128 / 69 = 92; 100 * 92 / 128 = 71
        assert_eq!(c.max_rtt, 69);
        assert_eq!((c.ssthresh(&mut tp), c.beta), (71, 92));
        for (min_rtt, max_rtt, beta) in [(50, 51, 102), (50, 200, 64), (10, 11, 64), (11, 14, 100)] {
            (c.min_rtt, c.max_rtt, c.modeswitch) = (min_rtt, max_rtt, true);
            c.update_beta(1000);
            assert_eq!(c.beta, beta, "{min_rtt} {max_rtt}");
        }
        tp.snd_cwnd = 3;
        c.beta = 64;
        c.min_rtt = 1;
        assert_eq!(c.ssthresh(&mut tp), 2);
    }

    #[test]
    fn a_throughput_that_changed_by_more_than_a_fifth_halves() {
        for (old, new, beta) in [(1000, 800, 91), (1000, 799, 64), (1000, 1200, 91), (1000, 1201, 64)] {
            let (mut c, _) = htcp("htcp");
            (c.min_rtt, c.max_rtt, c.modeswitch) = (50, 70, true);
            (c.old_max_b, c.max_b) = (old, new);
            c.update_beta(1000);
            // 50 * 128 / 70 = 91
            assert_eq!((c.beta, c.old_max_b, c.modeswitch), (beta, new, beta == 91), "{old} {new}");
        }
    }

    #[test]
    fn throughput_is_measured_per_window_and_smoothed_after_three_rtts() {
        let (mut c, mut tp) = htcp("htcp");
        let ack = |c: &mut Htcp, tp: &mut TcpSock, ms: u64, acked| {
            tp.now = Time::from_ms(ms);
            c.pkts_acked(tp, acked, Some(49_001));
            (c.bi, c.max_b)
        };
        // the first window ends with 99 of 100 packets, and counts from jiffy 0 of the host
        assert_eq!(ack(&mut c, &mut tp, 50, 99), (0, 0));
        assert_eq!(c.last_time, Some(50));
        // 100 in 100 ms; 200 / 50 = 4 RTTs after the start it is smoothed: 1000, then (3000 + 2000) / 4
        assert_eq!(ack(&mut c, &mut tp, 150, 100), (1000, 1000));
        assert_eq!(ack(&mut c, &mut tp, 199, 100), (1000, 1000), "an RTT of 50 jiffies is not over");
        assert_eq!(ack(&mut c, &mut tp, 200, 0), (1250, 1250));
        assert_eq!(ack(&mut c, &mut tp, 300, 98), (1250, 1250), "98 are not a window");
        tp.ca_state = CaState::Recovery;
        ack(&mut c, &mut tp, 310, 50);
        assert_eq!((c.packetcount, c.last_time), (0, Some(310)));
    }

    #[test]
    fn the_greatest_rtt_rises_by_20_ms_at_most_and_in_open_only() {
        let (mut c, mut tp) = htcp("htcp");
        let mut max = |state, ms: u64| {
            tp.ca_state = state;
            c.pkts_acked(&mut tp, 1, Some(ms * 1000));
            (c.min_rtt, c.max_rtt)
        };
        assert_eq!(max(CaState::Disorder, 50), (50, 0));
        assert_eq!(max(CaState::Open, 70), (50, 70));
        assert_eq!(max(CaState::Open, 91), (50, 70));
        assert_eq!(max(CaState::Open, 90), (50, 90));
        assert_eq!(max(CaState::Open, 20), (20, 90));
    }

    #[test]
    fn growth_counts_what_the_ack_covers_and_then_acts_with_the_next() {
        let (mut c, mut tp) = htcp("htcp");
        c.alpha = 256;
        c.pkts_acked(&mut tp, 50, None);
        c.cong_avoid(&mut tp, 50);
        assert_eq!((tp.snd_cwnd, tp.snd_cwnd_cnt, c.pkts_acked), (100, 50, 1));
        // twice 50 are a window; then alpha is taken anew
        c.cong_avoid(&mut tp, 50);
        assert_eq!((tp.snd_cwnd, tp.snd_cwnd_cnt, c.alpha), (101, 0, 128));
    }

    #[test]
    fn a_congestion_restarts_the_clock_and_undo_brings_it_back() {
        let (mut c, mut tp) = htcp("htcp");
        (c.max_rtt, c.old_max_b) = (70, 500);
        tp.now = Time::from_ms(5000);
        c.set_state(&mut tp, CaState::Recovery);
        assert_eq!(c.cong_time(&tp), 0);
        (c.max_rtt, c.old_max_b) = (60, 400);
        (tp.snd_cwnd, tp.prior_cwnd) = (50, 100);
        assert_eq!(c.undo_cwnd(&mut tp), 100);
        assert_eq!((c.cong_time(&tp), c.max_rtt, c.old_max_b), (5000, 70, 500));
        // the time counts from the end of the congestion
        c.set_state(&mut tp, CaState::Recovery);
        tp.now = Time::from_ms(5100);
        c.set_state(&mut tp, CaState::Open);
        assert_eq!((c.last_cong, c.undo), (5100, None));
        tp.now = Time::from_ms(5200);
        c.set_state(&mut tp, CaState::Open);
        assert_eq!(c.last_cong, 5100);
    }
}
