//! `cubic`: the window is a cubic function of the time since the last reduction, and never slower
//! than an AIMD flow of the same decrease.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_cubic.c` (`cubic`, `cubic@7.3`) and 5.4 (`cubic@5.4`, which differs
//! in HyStart and in the resolution of the least RTT); RFC 9438 is the standard it departs from (no
//! switch of the AIMD slope at the former window, growth capped at one packet per two ACKed).
//! All arithmetic is the kernel's integer arithmetic: time in jiffies, K in 1/1024 s, truncating
//! divisions.
//!
//! Parameters, as the module's:
//!
//! | name | default | meaning |
//! |---|---|---|
//! | `fast_convergence` | 1 | give way when the window fell short of the last maximum |
//! | `beta` | 717 | factor of a reduction, in 1/1024 |
//! | `initial_ssthresh` | 0 | first slow start threshold in packets, if not 0 and `hystart` is 0 |
//! | `bic_scale` | 41 | C, in 10/1024 of a packet per cubic second |
//! | `tcp_friendliness` | 1 | not slower than AIMD |
//! | `hystart` | 1 | [`super::hystart`]: 1 or `on`, 0 or `off`; off with another of [`super::slow_start`] |
//! | `hystart_detect` | 3 | 1 train, 2 delay, 3 both |
//! | `hystart_low_window` | 16 | packets |
//! | `hystart_ack_delta_us` (5.4: `hystart_ack_delta`) | 2000 (5.4: 2) | longest gap in a train of ACKs, microseconds (5.4: milliseconds) |
//!
//! Departures: the cube root is exact (the kernel's table is good to 0.2 %); the kernel's product for
//! the cubic term wraps after some 350 s without a reduction, here it saturates.
//!
//! Validation: the tests below (K and window over time against the closed form), `tests/window_model.rs`
//! (mean windows under random marks), `tests/cc_hooks.rs` (any sequence of hooks).

use super::hystart::{HyStart, Kernel};
use super::{CaEvent, CcEnv, CcError, CongestionControl};
use crate::cc::sock::{CaState, TcpSock};
use bakeoff_document::cc::CcWords;

/// Unit of beta: 1.0.
const BETA_SCALE: u64 = 1024;
/// Unit of time in the cubic: 2^10 per second.
pub(super) const HZ_SHIFT: u32 = 10;
/// The unit of what [`Cubic::cube`] computes: packets times the units of C and of cubic time.
const CUBE_SHIFT: u32 = 10 + 3 * HZ_SHIFT;

/// Parameters and state; the kernel's names.
pub struct Cubic {
    hystart_on: bool,
    fast_convergence: bool,
    tcp_friendliness: bool,
    beta: u64,
    initial_ssthresh: u32,
    /// `cube_rtt_scale`: C in 1/1024 packets per cubic second.
    rtt_scale: u64,
    hystart: HyStart,
    /// ACKed packets per packet of growth.
    cnt: u32,
    pub(super) last_max_cwnd: u32,
    last_cwnd: u32,
    /// Jiffies of the last full computation.
    last_time: u64,
    pub(super) origin_point: u32,
    /// Time from the epoch's start to the origin, in 1/1024 s.
    pub(super) k: u64,
    /// Least RTT since the last reset, in HyStart's unit; 0 before the first sample.
    delay_min: u64,
    /// Jiffies; none between a reduction and the growth after it.
    pub(super) epoch_start: Option<u64>,
    /// ACKed since the AIMD flow last grew, in `ack_unit`s of a packet; negative only in [`super::cubic_sce`].
    pub(super) ack_cnt: i64,
    /// 1, or the segment's bytes.
    pub(super) ack_unit: u32,
    /// The window of the AIMD flow (`W_est` of RFC 9438).
    tcp_cwnd: u32,
}

impl Cubic {
    /// With Linux's defaults.
    pub fn new(kernel: Kernel) -> Self {
        Cubic {
            hystart_on: true,
            fast_convergence: true,
            tcp_friendliness: true,
            beta: 717,
            initial_ssthresh: 0,
            rtt_scale: 410,
            hystart: HyStart::new(kernel),
            cnt: 0,
            last_max_cwnd: 0,
            last_cwnd: 0,
            last_time: 0,
            origin_point: 0,
            k: 0,
            delay_min: 0,
            epoch_start: None,
            ack_cnt: 0,
            ack_unit: 1,
            tcp_cwnd: 0,
        }
    }

    /// From the words after the name.
    pub fn parse(words: &mut CcWords, _: CcEnv) -> Result<Self, CcError> {
        let (kernel, ack_delta) = match words.version() {
            Some("5.4") => (Kernel::V5_4, "hystart_ack_delta"),
            _ => (Kernel::V7_3, "hystart_ack_delta_us"),
        };
        let mut c = Cubic::new(kernel);
        c.parameters(words, ack_delta, &[], |_, _| Ok(()))?;
        Ok(c)
    }

    /// Sets the parameters that follow; of `more` names the values are `other`'s to take ([`super::cubic_sce`]).
    pub(super) fn parameters(
        &mut self,
        words: &mut CcWords,
        ack_delta: &str,
        more: &[&'static str],
        mut other: impl FnMut(&str, &mut CcWords) -> Result<(), CcError>,
    ) -> Result<(), CcError> {
        let mut known = vec![
            "fast_convergence",
            "beta",
            "initial_ssthresh",
            "bic_scale",
            "tcp_friendliness",
            "hystart",
            "hystart_detect",
            "hystart_low_window",
            ack_delta,
        ];
        known.extend(more);
        while let Some(parameter) = words.parameter(&known)? {
            match parameter {
                "hystart" => self.hystart_on = words.switch()?,
                "fast_convergence" => self.fast_convergence = words.flag()?,
                "tcp_friendliness" => self.tcp_friendliness = words.flag()?,
                "beta" => self.beta = words.number(1..=1023)?.into(),
                "initial_ssthresh" => self.initial_ssthresh = words.number(0..=i32::MAX as u32)?,
                "bic_scale" => self.rtt_scale = u64::from(words.number(1..=1_000_000)?) * 10,
                "hystart_low_window" => self.hystart.low_window = words.number(0..=u32::MAX)?,
                "hystart_detect" => self.hystart.detect = words.number(0..=3)?,
                _ if parameter == ack_delta => self.hystart.ack_delta = words.number(0..=1_000_000)?.into(),
                _ => other(parameter, words)?,
            }
        }
        Ok(())
    }

    /// `bictcp_reset`
    fn reset(&mut self) {
        self.cnt = 0;
        self.last_max_cwnd = 0;
        self.last_cwnd = 0;
        self.last_time = 0;
        self.origin_point = 0;
        self.k = 0;
        self.delay_min = 0;
        self.epoch_start = None;
        self.ack_cnt = 0;
        self.tcp_cwnd = 0;
    }

    /// Jiffies of the least RTT, rounded up.
    fn delay_jiffies(&self, hz: u64) -> u64 {
        match self.hystart.kernel {
            Kernel::V7_3 => (self.delay_min * hz).div_ceil(1_000_000),
            Kernel::V5_4 => ((self.delay_min >> 3) * hz).div_ceil(1_000),
        }
    }

    /// `bictcp_update`: [`Cubic::cnt`] for a window of `cwnd` when `acked` more are delivered.
    /// Source: RFC 9438, section 4.2 (W_cubic and K).
    fn update(&mut self, tp: &TcpSock, acked: u32) {
        let (cwnd, now) = (tp.snd_cwnd, tp.jiffies());
        let acked = i64::from(acked) * i64::from(self.ack_unit);
        self.ack_cnt = self.ack_cnt.saturating_add(acked);
        if self.last_cwnd == cwnd && now - self.last_time <= tp.hz / 32 {
            return;
        }
        // The curve moves once per jiffy; the AIMD flow with every ACK.
        if self.epoch_start.is_none() || now != self.last_time {
            self.last_cwnd = cwnd;
            self.last_time = now;
            let epoch_start = *self.epoch_start.get_or_insert_with(|| {
                self.ack_cnt = acked;
                self.tcp_cwnd = cwnd;
                let below = self.last_max_cwnd.saturating_sub(cwnd);
                // 1/C times the drop
                let factor = (1 << CUBE_SHIFT) / self.rtt_scale;
                self.k = cube_root(u64::from(below).saturating_mul(factor));
                self.origin_point = self.last_max_cwnd.max(cwnd);
                now
            });
            let jiffies = now - epoch_start + self.delay_jiffies(tp.hz);
            let target = self.target((jiffies << HZ_SHIFT) / tp.hz);
            self.cnt = if target > cwnd { cwnd / (target - cwnd) } else { cwnd.saturating_mul(100) };
            // Before the first loss the origin is unknown: at least 5 % per RTT.
            if self.last_max_cwnd == 0 {
                self.cnt = self.cnt.min(20);
            }
        }
        if self.tcp_friendliness {
            self.follow_aimd(cwnd);
        }
        self.cnt = self.cnt.max(2);
    }

    /// The cubic at `t` (1/1024 s since the epoch's start), in packets. Source: RFC 9438, section 4.2 (W_cubic).
    fn target(&self, t: u64) -> u32 {
        let delta = self.cube(t.abs_diff(self.k));
        if t < self.k {
            self.origin_point.saturating_sub(delta)
        } else {
            self.origin_point.saturating_add(delta)
        }
    }

    /// C t^3 in whole packets, `t` in 1/1024 s.
    pub(super) fn cube(&self, t: u64) -> u32 {
        (self.rtt_scale.saturating_mul(t).saturating_mul(t).saturating_mul(t) >> CUBE_SHIFT) as u32
    }

    /// Lets the AIMD flow grow by one packet per `ack_cnt` of 15/8 windows (beta 0.7), and follows it.
    /// Source: RFC 9438, section 4.3 (W_est); Linux 7.3 `bictcp_update`.
    fn follow_aimd(&mut self, cwnd: u32) {
        let scale = 8 * (BETA_SCALE + self.beta) / 3 / (BETA_SCALE - self.beta);
        let per_packet = (u64::from(cwnd) * scale * u64::from(self.ack_unit)) >> 3;
        let per_packet = per_packet.max(1).cast_signed();
        if self.ack_cnt > per_packet {
            let packets = (self.ack_cnt - 1) / per_packet;
            self.ack_cnt -= packets * per_packet;
            self.tcp_cwnd = self.tcp_cwnd.saturating_add(packets.min(u32::MAX.into()) as u32);
        }
        if self.tcp_cwnd > cwnd {
            self.cnt = self.cnt.min(cwnd / (self.tcp_cwnd - cwnd));
        }
    }
}

#[cfg(test)]
impl Cubic {
    /// `cnt`, `delay_min` and `tcp_cwnd`.
    pub(super) fn kept(&self) -> [u64; 3] {
        [self.cnt.into(), self.delay_min, self.tcp_cwnd.into()]
    }
}

impl CongestionControl for Cubic {
    fn init(&mut self, tp: &mut TcpSock) {
        self.reset();
        if self.hystart_on {
            self.hystart.restart(tp);
        } else if self.initial_ssthresh > 0 {
            tp.snd_ssthresh = self.initial_ssthresh;
        }
    }

    /// Source: RFC 9438, sections 4.6 and 4.7; Linux 7.3 `cubictcp_recalc_ssthresh`.
    fn ssthresh(&mut self, tp: &mut TcpSock) -> u32 {
        self.epoch_start = None;
        let cwnd = u64::from(tp.snd_cwnd);
        self.last_max_cwnd = if tp.snd_cwnd < self.last_max_cwnd && self.fast_convergence {
            (cwnd * (BETA_SCALE + self.beta) / (2 * BETA_SCALE)) as u32
        } else {
            tp.snd_cwnd
        };
        ((cwnd * self.beta / BETA_SCALE) as u32).max(2)
    }

    /// Source: Linux 7.3 `cubictcp_cong_avoid`.
    fn cong_avoid(&mut self, tp: &mut TcpSock, acked: u32) {
        if !tp.cwnd_limited() {
            return;
        }
        let mut acked = acked;
        if tp.in_slow_start() {
            if self.hystart_on {
                self.hystart.on_slow_start(tp);
            }
            acked = tp.slow_start(acked);
            if acked == 0 {
                return;
            }
        }
        self.update(tp, acked);
        tp.cong_avoid_ai(self.cnt, acked);
    }

    fn without_slow_start(&mut self) {
        self.hystart_on = false;
    }

    /// A timeout forgets the curve. Source: RFC 9438, section 4.8; Linux 7.3 `cubictcp_state`.
    fn set_state(&mut self, tp: &mut TcpSock, state: CaState) {
        if state == CaState::Loss {
            self.reset();
            self.hystart.restart(tp);
        }
    }

    fn cwnd_event(&mut self, tp: &mut TcpSock, event: CaEvent) {
        // Idle time is no time for growth: the epoch moves along with it.
        if event == CaEvent::TxStart
            && let Some(start) = self.epoch_start
        {
            let now = tp.jiffies();
            let idle = now.saturating_sub(tp.last_sent.jiffies(tp.hz));
            self.epoch_start = Some((start + idle).min(now));
        }
    }

    /// Source: Linux 7.3 `cubictcp_acked`.
    fn pkts_acked(&mut self, tp: &mut TcpSock, _acked: u32, rtt_us: Option<u64>) {
        let Some(rtt_us) = rtt_us else { return };
        // RTTs right after a recovery still show the queue that it drains.
        if self.epoch_start.is_some_and(|start| tp.jiffies() - start < tp.hz) {
            return;
        }
        let delay = self.hystart.delay(rtt_us);
        if self.delay_min == 0 || self.delay_min > delay {
            self.delay_min = delay;
        }
        if self.hystart_on && tp.in_slow_start() {
            self.hystart.on_sample(tp, delay, self.delay_min);
        }
    }

    fn trace(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("last_max_cwnd", self.last_max_cwnd.into()),
            ("origin_point", self.origin_point.into()),
            ("k_s", self.k as f64 / f64::from(1 << HZ_SHIFT)),
            ("cnt", self.cnt.into()),
            ("tcp_cwnd", self.tcp_cwnd.into()),
        ]
    }
}

/// The integer cube root, truncated: one binary digit at a time. Source: Linux 7.3 `cubic_root`, which looks it up.
fn cube_root(mut x: u64) -> u64 {
    let mut root = 0;
    for shift in (0..=63).rev().step_by(3) {
        root *= 2;
        // (r + 1)^3 - r^3
        let step = 3 * root * (root + 1) + 1;
        if x >> shift >= step {
            x -= step << shift;
            root += 1;
        }
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::Time;

    /// A socket in congestion avoidance, limited by its window.
    fn avoiding(cwnd: u32) -> TcpSock {
        let mut tp = TcpSock::new(1448, 250);
        tp.snd_cwnd = cwnd;
        tp.snd_ssthresh = 2;
        tp.is_cwnd_limited = true;
        tp.now = Time::from_ms(1_000_000);
        tp
    }

    /// After a reduction from `max`, as the sender leaves it: window at ssthresh.
    fn reduced(max: u32) -> (Cubic, TcpSock) {
        let mut cubic = Cubic::new(Kernel::V7_3);
        let mut tp = avoiding(max);
        tp.snd_ssthresh = cubic.ssthresh(&mut tp);
        tp.snd_cwnd = tp.snd_ssthresh;
        (cubic, tp)
    }

    #[test]
    fn cube_roots_are_exact() {
        for root in [0_u64, 1, 2, 1023, 9300, 2_642_244] {
            let cube = root.pow(3);
            assert_eq!(cube_root(cube), root);
            assert_eq!(cube_root(cube + 3 * root * (root + 1)), root);
        }
        assert_eq!(cube_root(u64::MAX), 2_642_245);
    }

    #[test]
    fn k_is_the_cube_root_of_the_drop_over_c() {
        // K = cbrt((Wmax - W) / 0.4) with C = 410/1024
        for (max, expected_cwnd, k_s) in [
            (20, 14, 2.465),
            (50, 35, 3.346),
            (100, 70, 4.216),
            (500, 350, 7.209),
            (1000, 700, 9.083),
            (1500, 1050, 10.397),
        ] {
            let (mut cubic, mut tp) = reduced(max);
            assert_eq!(tp.snd_cwnd, expected_cwnd);
            cubic.cong_avoid(&mut tp, 1);
            let k = cubic.k as f64 / 1024.0;
            // truncated to 1/1024 s, the table rounded to 1 ms
            assert!(k <= k_s + 0.0005 && k > k_s - 0.0015, "{max}: {k}");
        }
    }

    #[test]
    fn the_window_over_time_is_the_cubic_with_the_distance_truncated() {
        let (mut cubic, mut tp) = reduced(1000);
        cubic.cong_avoid(&mut tp, 1);
        for (t, window) in [
            (0.0, 700.0),
            (0.5, 746.9),
            (1.0, 788.6),
            (2.0, 857.7),
            (3.0, 909.9),
            (5.0, 972.8),
            (8.0, 999.5),
            (10.0, 1000.3),
            (12.0, 1009.9),
        ] {
            let target = f64::from(cubic.target((t * 1024.0) as u64));
            // the distance from the origin is truncated: up to one packet nearer to it;
            // 0.15 for the table's rounding and for K's truncation (300 * 3 / 9300)
            let nearer = if t < 9.08 { target - window } else { window - target };
            assert!((-0.15..1.15).contains(&nearer), "t {t}: {target}, {window}");
        }
    }

    #[test]
    fn bic_scale_is_c() {
        // ten times C: K is shorter by the cube root of 10, 9.083 s / 2.1544
        let mut cubic = Cubic::new(Kernel::V7_3);
        let mut words = CcWords::new("cubic bic_scale 410");
        assert!(cubic.parameters(&mut words, "", &[], |_, _| Ok(())).is_ok());
        let mut tp = avoiding(1000);
        tp.snd_cwnd = cubic.ssthresh(&mut tp);
        cubic.cong_avoid(&mut tp, 1);
        let k = cubic.k as f64 / 1024.0;
        assert!((k - 4.216).abs() < 0.002, "{k}");
        // C t^3 = 4100/1024 * 8
        assert_eq!(cubic.cube(2 * 1024), 32);
    }

    #[test]
    fn the_first_threshold_is_a_parameter_where_hystart_is_off() {
        for (text, expected) in [
            ("cubic hystart 0 initial_ssthresh 100", 100),
            ("cubic hystart 0", 0x7fff_ffff),
            ("cubic initial_ssthresh 100", 0x7fff_ffff),
        ] {
            let Ok(mut cubic) = Cubic::parse(&mut CcWords::new(text), CcEnv::default()) else {
                panic!("'{text}' was refused")
            };
            let mut tp = TcpSock::new(1448, 250);
            cubic.init(&mut tp);
            assert_eq!(tp.snd_ssthresh, expected, "{text}");
        }
    }

    #[test]
    fn the_target_looks_one_least_rtt_ahead() {
        // 10.1 ms is three jiffies of 4 ms, rounded up; half a second is then 512 ms
        let (mut cubic, mut tp) = reduced(1000);
        cubic.pkts_acked(&mut tp, 1, Some(10_100));
        assert_eq!(cubic.delay_jiffies(250), 3);
        cubic.cong_avoid(&mut tp, 1);
        tp.now += Time::from_ms(500);
        cubic.cong_avoid(&mut tp, 1);
        let ahead = cubic.target(512 * 1024 / 1000);
        assert_eq!(cubic.cnt, 700 / (ahead - 700));
    }

    #[test]
    fn reductions_truncate_and_keep_two() {
        for (cwnd, expected) in [(1000, 700), (7, 4), (5, 3), (3, 2), (2, 2)] {
            let mut tp = avoiding(cwnd);
            assert_eq!(Cubic::new(Kernel::V7_3).ssthresh(&mut tp), expected);
        }
    }

    #[test]
    fn fast_convergence_remembers_085_of_a_window_that_fell_short() {
        let mut cubic = Cubic::new(Kernel::V7_3);
        let mut tp = avoiding(1000);
        cubic.ssthresh(&mut tp);
        assert_eq!(cubic.last_max_cwnd, 1000);
        tp.snd_cwnd = 800;
        cubic.ssthresh(&mut tp);
        // 800 * 1741 / 2048 = 680.08
        assert_eq!(cubic.last_max_cwnd, 680);
        cubic.fast_convergence = false;
        tp.snd_cwnd = 600;
        cubic.ssthresh(&mut tp);
        assert_eq!(cubic.last_max_cwnd, 600);
    }

    #[test]
    fn the_friendly_window_grows_one_packet_per_15_eighths_of_a_window_of_acks() {
        let (mut cubic, mut tp) = reduced(40); // to 28: one packet per 28 * 15 / 8 = 52 ACKs
        cubic.cong_avoid(&mut tp, 1);
        for acks in 2..=200 {
            cubic.ack_cnt += 1;
            cubic.cnt = 2800;
            cubic.follow_aimd(28);
            // a packet is added once more than 52 have gathered
            let packets = (acks - 1) / 52;
            assert_eq!(cubic.tcp_cwnd, 28 + packets);
            assert_eq!(cubic.cnt, 28_u32.checked_div(packets).unwrap_or(2800));
        }
    }

    #[test]
    fn the_step_is_kept_while_the_window_and_31_ms_stand() {
        let (mut cubic, mut tp) = reduced(1000);
        cubic.cong_avoid(&mut tp, 1);
        let cnt = cubic.cnt;
        tp.now += Time::from_ms(28); // 7 jiffies: 250 / 32
        cubic.update(&tp, 1);
        assert_eq!(cubic.cnt, cnt);
        tp.now += Time::from_ms(4);
        cubic.update(&tp, 1);
        assert!(cubic.cnt < cnt);
    }

    #[test]
    fn without_a_loss_before_growth_is_at_least_one_in_twenty() {
        let mut cubic = Cubic::new(Kernel::V7_3);
        let mut tp = avoiding(1000);
        cubic.cong_avoid(&mut tp, 1);
        assert_eq!(cubic.cnt, 20);
    }

    #[test]
    fn idling_moves_the_epoch_and_an_rto_forgets_it() {
        let (mut cubic, mut tp) = reduced(1000);
        cubic.cong_avoid(&mut tp, 1);
        let start = cubic.epoch_start.unwrap();
        tp.last_sent = tp.now;
        tp.now += Time::from_ms(400);
        cubic.cwnd_event(&mut tp, CaEvent::TxStart);
        assert_eq!(cubic.epoch_start, Some(start + 100));
        // never into the future
        tp.last_sent = Time::ZERO;
        cubic.cwnd_event(&mut tp, CaEvent::TxStart);
        assert_eq!(cubic.epoch_start, Some(tp.jiffies()));
        cubic.set_state(&mut tp, CaState::Loss);
        assert_eq!((cubic.epoch_start, cubic.last_max_cwnd), (None, 0));
    }

    #[test]
    fn samples_within_a_second_of_the_epochs_start_are_discarded() {
        let (mut cubic, mut tp) = reduced(1000);
        cubic.cong_avoid(&mut tp, 1);
        tp.now += Time::from_ms(996);
        cubic.pkts_acked(&mut tp, 1, Some(20_000));
        assert_eq!(cubic.delay_min, 0);
        tp.now += Time::from_ms(4);
        cubic.pkts_acked(&mut tp, 1, Some(20_000));
        assert_eq!(cubic.delay_min, 20_000);
    }
}
