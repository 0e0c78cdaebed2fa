//! `cdg`: backs off with a probability that grows with the gradient of the RTT, and tells random losses by a shadow window.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_cdg.c`; Hayes and Armitage, "Revisiting TCP Congestion Control Using Delay Gradients",
//! 2011. RTTs in microseconds, exp by the kernel's table, HyStart of its own.
//!
//! Parameters, as the module's:
//!
//! | name | default | meaning |
//! |---|---|---|
//! | `window` | 8 | RTTs that the gradient is summed over; a power of two up to 256 |
//! | `backoff_beta` | 724 | factor of a backoff, in 1/1024 |
//! | `backoff_factor` | 42 | the probability is 1 - exp(-factor x gradient in seconds) |
//! | `hystart_detect` | 3 | 1 train, 2 delay, 3 both |
//! | `use_ineff` | 5 | backoffs without effect before they are ignored; 0: never |
//! | `use_shadow` | 1 | shadow window on loss |
//! | `use_tolerance` | 0 | no reduction for a loss without a queue |
//!
//! Departures: none known. Its random numbers are the control's own stream.
//!
//! Validation: the tests below, `tests/cc_hooks.rs`.

use super::reno::Reno;
use super::{CaEvent, CcEnv, CcError, CongestionControl};
use crate::base::rng::Stream;
use crate::cc::sock::TcpSock;
use bakeoff_document::cc::CcWords;

const TRAIN: u32 = 1;
const DELAY: u32 = 2;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct MinMax {
    min: i32,
    max: i32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Unknown,
    NonFull,
    Full,
    Backoff,
}

/// What an idle restart clears.
#[derive(Clone, Debug, Default)]
struct Memory {
    rtt: MinMax,
    rtt_prev: MinMax,
    gsum: MinMax,
    gfilled: bool,
    tail: usize,
    state: State,
    delack: u8,
    rtt_seq: u64,
    shadow_wnd: u32,
    backoff_cnt: u16,
    sample_cnt: u16,
    delay_min: i32,
    last_ack: u32,
    round_start: u32,
}

/// Parameters and state; the kernel's names. RTTs and gradients in microseconds.
pub struct Cdg {
    window: u32,
    backoff_beta: u32,
    backoff_factor: u32,
    hystart_detect: u32,
    use_ineff: u32,
    use_shadow: bool,
    use_tolerance: bool,
    rng: Stream,
    /// None if the window is 1.
    gradients: Vec<MinMax>,
    ca: Memory,
}

/// exp(-x / 1e6) in 1/2^32. Source: Linux 7.3 `nexp_u32`.
fn nexp(x: u32) -> u32 {
    /// exp(-x) in 1/65536, less one of them, for x = 0 and then 0.000256 doubled.
    const V: [u16; 17] = [
        65535, 65518, 65501, 65468, 65401, 65267, 65001, 64470, 63422, 61378, 57484, 50423, 38795, 22965,
        8047, 987, 14,
    ];
    let mut msb = x >> 8;
    if msb > u16::MAX.into() {
        return 0;
    }
    // The lowest eight bits are linear; the others are factors.
    let mut result = u32::MAX - (x & 0xff) * (u32::MAX / 1_000_000);
    for factor in &V[1..] {
        if msb & 1 == 1 {
            result = ((u64::from(result) * (u64::from(*factor) + 1)) >> 16) as u32;
        }
        msb >>= 1;
    }
    result
}

/// The lesser of two, of which 0 is none.
fn min_not_zero(a: i32, b: i32) -> i32 {
    if a == 0 || b == 0 { a.max(b) } else { a.min(b) }
}

/// A 64th, rounded to the nearest.
fn part(gradient: i32) -> i32 {
    gradient.wrapping_add(32 * gradient.signum()) / 64
}

impl Cdg {
    /// From the words after the name.
    pub fn parse(words: &mut CcWords, env: CcEnv) -> Result<Self, CcError> {
        let mut c = Cdg {
            window: 8,
            backoff_beta: 724,
            backoff_factor: 42,
            hystart_detect: TRAIN | DELAY,
            use_ineff: 5,
            use_shadow: true,
            use_tolerance: false,
            rng: env.rng,
            gradients: Vec::new(),
            ca: Memory::default(),
        };
        let known = [
            "window",
            "backoff_beta",
            "backoff_factor",
            "hystart_detect",
            "use_ineff",
            "use_shadow",
            "use_tolerance",
        ];
        while let Some(parameter) = words.parameter(&known)? {
            match parameter {
                "window" => {
                    let powers = ["1", "2", "4", "8", "16", "32", "64", "128", "256"];
                    let value = words.one_of(&powers)?;
                    c.window = powers.iter().position(|power| *power == value).map_or(8, |bits| 1 << bits);
                }
                "backoff_beta" => c.backoff_beta = words.number(0..=1024)?,
                "backoff_factor" => c.backoff_factor = words.number(0..=u32::MAX)?,
                "hystart_detect" => c.hystart_detect = words.number(0..=3)?,
                "use_ineff" => c.use_ineff = words.number(0..=u32::MAX)?,
                "use_shadow" => c.use_shadow = words.flag()?,
                _ => c.use_tolerance = words.flag()?,
            }
        }
        if c.window > 1 {
            c.gradients = vec![MinMax::default(); c.window as usize];
        }
        Ok(c)
    }

    /// Source: Linux 7.3 `tcp_cdg_hystart_update`.
    fn hystart(&mut self, tp: &mut TcpSock) {
        let ca = &mut self.ca;
        ca.delay_min = min_not_zero(ca.delay_min, ca.rtt.min);
        if ca.delay_min == 0 {
            return;
        }
        let delay_min = ca.delay_min.cast_unsigned();
        if self.hystart_detect & TRAIN != 0 {
            let now = tp.now.as_us() as u32;
            if ca.last_ack == 0 || !tp.cwnd_limited() {
                ca.last_ack = now;
                ca.round_start = now;
            } else if now.wrapping_sub(ca.last_ack.wrapping_add(3000)).cast_signed() < 0 {
                let base_owd = (delay_min / 2).max(125);
                ca.last_ack = now;
                if now.wrapping_sub(ca.round_start.wrapping_add(base_owd)).cast_signed() > 0 {
                    tp.snd_ssthresh = tp.snd_cwnd;
                    return;
                }
            }
        }
        if self.hystart_detect & DELAY != 0 {
            if ca.sample_cnt < 8 {
                ca.sample_cnt += 1;
            } else if ca.rtt.min > (delay_min + delay_min / 8).max(125).cast_signed() {
                tp.snd_ssthresh = tp.snd_cwnd;
            }
        }
    }

    /// The gradient of the RTT's minimum or else of its maximum, over the window. Source: Linux 7.3 `tcp_cdg_grad`.
    fn gradient(&mut self) -> i32 {
        let ca = &mut self.ca;
        let mut gmin = ca.rtt.min.wrapping_sub(ca.rtt_prev.min);
        let mut gmax = ca.rtt.max.wrapping_sub(ca.rtt_prev.max);
        if let Some(oldest) = self.gradients.get_mut(ca.tail) {
            ca.gsum.min = ca.gsum.min.wrapping_add(gmin).wrapping_sub(oldest.min);
            ca.gsum.max = ca.gsum.max.wrapping_add(gmax).wrapping_sub(oldest.max);
            *oldest = MinMax { min: gmin, max: gmax };
            ca.tail = (ca.tail + 1) & (self.window as usize - 1);
            (gmin, gmax) = (ca.gsum.min, ca.gsum.max);
        }
        let mut gradient = if gmin > 0 { gmin } else { gmax };
        if !ca.gfilled {
            if ca.tail == 0 {
                ca.gfilled = true;
            } else {
                gradient = gradient.wrapping_mul(self.window.cast_signed()) / ca.tail as i32;
            }
        }
        if gmin <= -32 || gmax <= -32 {
            ca.backoff_cnt = 0;
        }
        if self.use_tolerance {
            (gmin, gmax) = (part(gmin), part(gmax));
            if gmin > 0 && gmax <= 0 {
                ca.state = State::Full;
            } else if (gmin > 0 && gmax > 0) || gmax < 0 {
                ca.state = State::NonFull;
            }
        }
        gradient
    }

    /// Source: Linux 7.3 `tcp_cdg_backoff`.
    fn backs_off(&mut self, tp: &mut TcpSock, gradient: u32) -> bool {
        if self.rng.u32() <= nexp(gradient.wrapping_mul(self.backoff_factor)) {
            return false;
        }
        let ca = &mut self.ca;
        if self.use_ineff > 0 {
            ca.backoff_cnt = ca.backoff_cnt.wrapping_add(1);
            if u32::from(ca.backoff_cnt) > self.use_ineff {
                return false;
            }
        }
        ca.shadow_wnd = ca.shadow_wnd.max(tp.snd_cwnd);
        ca.state = State::Backoff;
        tp.wants_cwr = true;
        true
    }
}

impl CongestionControl for Cdg {
    fn without_slow_start(&mut self) {
        self.hystart_detect = 0;
    }

    fn init(&mut self, tp: &mut TcpSock) {
        self.ca.rtt_seq = tp.snd_nxt;
        self.ca.shadow_wnd = tp.snd_cwnd;
    }

    /// Source: Linux 7.3 `tcp_cdg_ssthresh`.
    fn ssthresh(&mut self, tp: &mut TcpSock) -> u32 {
        let ca = &mut self.ca;
        if ca.state == State::Backoff {
            return (tp.snd_cwnd.wrapping_mul(self.backoff_beta) >> 10).max(2);
        }
        if ca.state == State::NonFull && self.use_tolerance {
            return tp.snd_cwnd.max(2);
        }
        ca.shadow_wnd = (ca.shadow_wnd >> 1).min(tp.snd_cwnd);
        if self.use_shadow { ca.shadow_wnd.max(Reno::half(tp)) } else { Reno::half(tp) }
    }

    /// Source: Linux 7.3 `tcp_cdg_cong_avoid`.
    fn cong_avoid(&mut self, tp: &mut TcpSock, acked: u32) {
        if tp.in_slow_start() && self.hystart_detect != 0 {
            self.hystart(tp);
        }
        if tp.snd_una > self.ca.rtt_seq && self.ca.rtt != MinMax::default() {
            let gradient = if self.ca.rtt_prev == MinMax::default() { 0 } else { self.gradient() };
            self.ca.rtt_seq = tp.snd_nxt;
            self.ca.rtt_prev = self.ca.rtt;
            self.ca.rtt = MinMax::default();
            self.ca.last_ack = 0;
            self.ca.sample_cnt = 0;
            if gradient > 0 && self.backs_off(tp, gradient.cast_unsigned()) {
                return;
            }
        }
        if !tp.cwnd_limited() {
            self.ca.shadow_wnd = self.ca.shadow_wnd.min(tp.snd_cwnd);
            return;
        }
        let prior = tp.snd_cwnd;
        Reno::grow(tp, acked);
        let grown = tp.snd_cwnd.wrapping_sub(prior);
        self.ca.shadow_wnd = self.ca.shadow_wnd.max(self.ca.shadow_wnd.wrapping_add(grown));
    }

    /// Source: Linux 7.3 `tcp_cdg_cwnd_event`.
    fn cwnd_event(&mut self, tp: &mut TcpSock, event: CaEvent) {
        match event {
            CaEvent::CwndRestart => {
                self.gradients.fill(MinMax::default());
                self.ca = Memory { rtt_seq: tp.snd_nxt, shadow_wnd: tp.snd_cwnd, ..Memory::default() };
            }
            CaEvent::CompleteCwr => {
                self.ca.state = State::Unknown;
                self.ca.rtt_seq = tp.snd_nxt;
                self.ca.rtt_prev = self.ca.rtt;
                self.ca.rtt = MinMax::default();
            }
            CaEvent::TxStart | CaEvent::Loss => {}
        }
    }

    /// Source: Linux 7.3 `tcp_cdg_acked`.
    fn pkts_acked(&mut self, tp: &mut TcpSock, acked: u32, rtt_us: Option<u64>) {
        let rtt = rtt_us.map_or(0, |rtt_us| rtt_us.min(i32::MAX as u64) as i32);
        if rtt == 0 {
            return;
        }
        let ca = &mut self.ca;
        if tp.sacked_out == 0 {
            if acked == 1 && ca.delack > 0 {
                // Delayed, unless it is less than the least so far.
                ca.rtt.min = ca.rtt.min.min(rtt);
                ca.delack -= 1;
                return;
            }
            if acked > 1 && ca.delack < 5 {
                ca.delack += 1;
            }
        }
        ca.rtt.min = min_not_zero(ca.rtt.min, rtt);
        ca.rtt.max = ca.rtt.max.max(rtt);
    }

    fn trace(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("gradient_min_us", self.ca.gsum.min.into()),
            ("gradient_max_us", self.ca.gsum.max.into()),
            ("shadow_wnd", self.ca.shadow_wnd.into()),
            ("backoff_cnt", self.ca.backoff_cnt.into()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::Time;
    use crate::cc::sock::INFINITE_SSTHRESH;

    fn cdg(text: &str, cwnd: u32, ssthresh: u32) -> (Cdg, TcpSock) {
        let Ok(mut cdg) = Cdg::parse(&mut CcWords::new(text), CcEnv::default()) else {
            panic!("'{text}' was refused")
        };
        let mut tp = TcpSock::new(1000, 1000);
        (tp.snd_cwnd, tp.snd_ssthresh, tp.is_cwnd_limited) = (cwnd, ssthresh, true);
        cdg.init(&mut tp);
        (cdg, tp)
    }

    /// RTTs of a round.
    fn gradient(cdg: &mut Cdg, min: i32, max: i32) -> i32 {
        cdg.ca.rtt = MinMax { min, max };
        let gradient = cdg.gradient();
        cdg.ca.rtt_prev = cdg.ca.rtt;
        gradient
    }

    #[test]
    fn the_exponential_is_good_to_a_ten_thousandth() {
        for x in [0_u32, 1, 255, 256, 1_000, 42 * 1_000, 1_000_000, 3_000_000, 16_777_215] {
            let exact = (-f64::from(x) / 1e6).exp();
            let got = f64::from(nexp(x)) / 4_294_967_296.0;
            assert!((got - exact).abs() < 1e-4, "{x}: {got} for {exact}");
        }
        assert_eq!((nexp(0), nexp(1 << 24)), (u32::MAX, 0));
    }

    #[test]
    fn gradients_are_summed_over_the_window_and_extrapolated_until_it_is_full() {
        let (mut c, _) = cdg("cdg window 4", 100, 2);
        c.ca.rtt_prev = MinMax { min: 1000, max: 2000 };
        // 100 x 4 / 1; 300 x 4 / 2; the minimum's sum is 0: the maximum's, 40 x 4 / 3
        assert_eq!(gradient(&mut c, 1100, 2000), 400);
        assert_eq!(gradient(&mut c, 1300, 2000), 600);
        assert_eq!(gradient(&mut c, 1000, 2040), 53);
        // full: 200 - 0; then the first gradient of 100 leaves the sum of 350
        assert_eq!(gradient(&mut c, 1200, 2040), 200);
        assert_eq!(gradient(&mut c, 1350, 2040), 250);
        let (mut c, _) = cdg("cdg window 1", 100, 2);
        c.ca.rtt_prev = MinMax { min: 1000, max: 2000 };
        assert_eq!(gradient(&mut c, 1100, 2000), 100);
    }

    #[test]
    fn a_great_gradient_backs_off_five_times_without_effect() {
        let (mut c, mut tp) = cdg("cdg", 100, 2);
        let mut backoffs = 0;
        for _ in 0..8 {
            backoffs += u32::from(c.backs_off(&mut tp, 1_000_000));
        }
        assert_eq!((backoffs, tp.wants_cwr), (5, true));
        // 100 x 724 / 1024
        assert_eq!(c.ssthresh(&mut tp), 70);
        c.ca.rtt_prev = MinMax { min: 1000, max: 1000 };
        gradient(&mut c, 968, 1000);
        assert_eq!(c.ca.backoff_cnt, 0);
        assert!(!c.backs_off(&mut tp, 0), "exp(0) is above all but one number");
    }

    #[test]
    fn the_shadow_window_limits_what_a_loss_takes() {
        let (mut c, mut tp) = cdg("cdg", 60, 2);
        c.ca.shadow_wnd = 100;
        assert_eq!((c.ssthresh(&mut tp), c.ca.shadow_wnd), (50, 50));
        assert_eq!((c.ssthresh(&mut tp), c.ca.shadow_wnd), (30, 25));
        let (mut c, mut tp) = cdg("cdg use_shadow 0 use_tolerance 1", 60, 2);
        assert_eq!(c.ssthresh(&mut tp), 30);
        c.ca.rtt_prev = MinMax { min: 1000, max: 1000 };
        // less than half of 64 us is nothing
        gradient(&mut c, 1031, 1100);
        assert_eq!(c.ca.state, State::Unknown);
        gradient(&mut c, 1032, 1100);
        assert_eq!((c.ca.state, c.ssthresh(&mut tp)), (State::NonFull, 60));
        gradient(&mut c, 1032, 1000);
        assert_eq!((c.ca.state, c.ssthresh(&mut tp)), (State::Full, 30));
    }

    #[test]
    fn growth_is_renos_and_the_shadow_follows() {
        let (mut c, mut tp) = cdg("cdg", 10, 2);
        c.ca.shadow_wnd = 15;
        c.cong_avoid(&mut tp, 10);
        assert_eq!((tp.snd_cwnd, c.ca.shadow_wnd), (11, 16));
        tp.is_cwnd_limited = false;
        c.cong_avoid(&mut tp, 11);
        assert_eq!((tp.snd_cwnd, c.ca.shadow_wnd), (11, 11));
    }

    #[test]
    fn slow_start_ends_with_a_long_train_or_a_ninth_delayed_sample() {
        let (mut c, mut tp) = cdg("cdg hystart_detect 1", 10, INFINITE_SSTHRESH);
        for us in [1_000, 3_000, 5_000, 6_000] {
            tp.now = Time::from_us(us);
            c.ca.rtt = MinMax { min: 10_000, max: 10_000 };
            c.hystart(&mut tp);
            assert_eq!(tp.snd_ssthresh, INFINITE_SSTHRESH, "{us}: not longer than 5 ms");
        }
        tp.now = Time::from_us(6_001);
        c.hystart(&mut tp);
        assert_eq!(tp.snd_ssthresh, 10);
        let (mut c, mut tp) = cdg("cdg hystart_detect 2", 10, INFINITE_SSTHRESH);
        c.ca.delay_min = 8_000;
        c.ca.rtt = MinMax { min: 9_001, max: 9_001 };
        for _ in 0..8 {
            c.hystart(&mut tp);
        }
        assert_eq!(tp.snd_ssthresh, INFINITE_SSTHRESH);
        c.hystart(&mut tp);
        assert_eq!(tp.snd_ssthresh, 10);
    }

    #[test]
    fn samples_of_delayed_acks_may_only_lower_the_minimum() {
        let (mut c, mut tp) = cdg("cdg", 10, 2);
        c.pkts_acked(&mut tp, 2, Some(1_000));
        assert_eq!((c.ca.delack, c.ca.rtt), (1, MinMax { min: 1_000, max: 1_000 }));
        c.pkts_acked(&mut tp, 1, Some(900));
        assert_eq!((c.ca.delack, c.ca.rtt), (0, MinMax { min: 900, max: 1_000 }));
        c.pkts_acked(&mut tp, 1, Some(1_500));
        assert_eq!(c.ca.rtt, MinMax { min: 900, max: 1_500 });
    }
}
