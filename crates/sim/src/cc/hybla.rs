//! `hybla`: grows as a `reno` whose RTT is 25 ms would, whatever the RTT is: for satellites.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_hybla.c`; Caini and Firrincieli, "TCP Hybla: a TCP Enhancement for Heterogeneous
//! Networks", 2004. As there the first window is the ratio of the RTTs, not 10; growth is per ACK, not per packet; and the
//! ratio is taken anew only where the smoothed RTT is a new least.
//!
//! Parameters, as the module's:
//!
//! | name | default | meaning |
//! |---|---|---|
//! | `rtt0` | 25 | the RTT to compare with, in milliseconds |
//!
//! Departures: none known.
//!
//! Validation: the tests below, `tests/cc_hooks.rs`.

use super::reno::Reno;
use super::{CcEnv, CcError, CongestionControl};
use crate::cc::sock::{CaState, TcpSock};
use bakeoff_document::cc::CcWords;

/// 2^(n/8) in 1/128.
const FRACTIONS: [u32; 8] = [128, 139, 152, 165, 181, 197, 215, 234];

/// Parameter and state; the kernel's names.
pub struct Hybla {
    /// Milliseconds.
    rtt0: u32,
    enabled: bool,
    /// Growth below one packet, in 1/128.
    snd_cwnd_cents: u32,
    /// The ratio of the RTTs, at least 1.
    rho: u32,
    /// In 1/8.
    rho_3ls: u32,
    /// Its square, in 1/128.
    rho2_7ls: u32,
    /// Least smoothed RTT, times 8.
    minrtt_us: u32,
}

/// Smoothed RTT, times 8, in the kernel's width.
fn srtt_us(tp: &TcpSock) -> u32 {
    tp.srtt_us as u32
}

impl Hybla {
    /// From the words after the name.
    pub fn parse(words: &mut CcWords, _: CcEnv) -> Result<Self, CcError> {
        let mut c = Hybla {
            rtt0: 25,
            enabled: true,
            snd_cwnd_cents: 0,
            rho: 0,
            rho_3ls: 0,
            rho2_7ls: 0,
            minrtt_us: 0,
        };
        while words.parameter(&["rtt0"])?.is_some() {
            c.rtt0 = words.number(1..=1_000_000)?;
        }
        Ok(c)
    }

    /// `hybla_recalc_param`
    fn recalc(&mut self, tp: &TcpSock) {
        self.rho_3ls = (srtt_us(tp) / (self.rtt0 * 1000)).max(8);
        self.rho = self.rho_3ls >> 3;
        self.rho2_7ls = self.rho_3ls.wrapping_mul(self.rho_3ls) << 1;
    }
}

impl CongestionControl for Hybla {
    /// Source: Linux 7.3 `hybla_init`.
    fn init(&mut self, tp: &mut TcpSock) {
        self.snd_cwnd_cents = 0;
        self.enabled = true;
        tp.snd_cwnd_clamp = 65535;
        self.recalc(tp);
        self.minrtt_us = srtt_us(tp);
        tp.snd_cwnd = self.rho;
    }

    fn ssthresh(&mut self, tp: &mut TcpSock) -> u32 {
        Reno::half(tp)
    }

    /// Source: Linux 7.3 `hybla_cong_avoid`.
    fn cong_avoid(&mut self, tp: &mut TcpSock, acked: u32) {
        if srtt_us(tp) < self.minrtt_us {
            self.recalc(tp);
            self.minrtt_us = srtt_us(tp);
        }
        if !tp.cwnd_limited() {
            return;
        }
        if !self.enabled {
            Reno::grow(tp, acked);
            return;
        }
        let slow_start = tp.in_slow_start();
        let increment = if slow_start {
            // 2^rho - 1 by the parts of rho before and behind the point
            let fraction = FRACTIONS[(self.rho_3ls & 7) as usize];
            (1 << self.rho.min(16)) * fraction - 128
        } else {
            let increment = self.rho2_7ls / tp.snd_cwnd;
            if increment < 128 {
                tp.snd_cwnd_cnt += 1;
            }
            increment
        };
        tp.snd_cwnd += increment >> 7;
        self.snd_cwnd_cents += increment % 128;
        if self.snd_cwnd_cents >= 128 {
            tp.snd_cwnd += 1;
            self.snd_cwnd_cents -= 128;
            tp.snd_cwnd_cnt = 0;
        }
        // Less than 1/128 per ACK: then as Reno.
        if increment == 0 && tp.snd_cwnd_cnt >= tp.snd_cwnd {
            tp.snd_cwnd += 1;
            tp.snd_cwnd_cnt = 0;
        }
        if slow_start {
            tp.snd_cwnd = tp.snd_cwnd.min(tp.snd_ssthresh);
        }
        tp.snd_cwnd = tp.snd_cwnd.min(tp.snd_cwnd_clamp);
    }

    fn set_state(&mut self, _tp: &mut TcpSock, state: CaState) {
        self.enabled = state == CaState::Open;
    }

    fn trace(&self) -> Vec<(&'static str, f64)> {
        vec![("rho", f64::from(self.rho_3ls) / 8.0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hybla(text: &str, rtt_ms: u64) -> (Hybla, TcpSock) {
        let Ok(mut c) = Hybla::parse(&mut CcWords::new(text), CcEnv::default()) else {
            panic!("'{text}' was refused")
        };
        let mut tp = TcpSock::new(1448, 1000);
        tp.srtt_us = rtt_ms * 8000;
        tp.is_cwnd_limited = true;
        c.init(&mut tp);
        (c, tp)
    }

    #[test]
    fn the_first_window_is_the_ratio_of_the_rtts() {
        for (text, rtt_ms, eighths, cwnd) in [
            ("hybla", 10, 8, 1),  // not below 1
            ("hybla", 40, 12, 1), // 1.6, truncated to 1.5
            ("hybla", 250, 80, 10),
            ("hybla", 560, 179, 22),
            ("hybla rtt0 100", 250, 20, 2),
        ] {
            let (c, tp) = hybla(text, rtt_ms);
            assert_eq!(
                (c.rho_3ls, tp.snd_cwnd, tp.snd_cwnd_clamp),
                (eighths, cwnd, 65535),
                "{text} {rtt_ms}"
            );
        }
    }

    #[test]
    fn slow_start_adds_two_to_the_ratio_less_one_per_ack() {
        // rho 1.5: 2 * 181 - 128 = 234/128 per ACK, however much it acknowledges: 1 and 106, 2 and 84, 2 and 62
        let (mut c, mut tp) = hybla("hybla", 40);
        tp.snd_cwnd = 10;
        let windows: Vec<(u32, u32)> = (0..3)
            .map(|_| {
                c.cong_avoid(&mut tp, 2);
                (tp.snd_cwnd, c.snd_cwnd_cents)
            })
            .collect();
        assert_eq!(windows, [(11, 106), (13, 84), (15, 62)]);
        tp.snd_ssthresh = 16;
        c.cong_avoid(&mut tp, 2);
        assert_eq!(tp.snd_cwnd, 16);
        // rho 22.375 counts as 2^16 and its part behind the point, up to the clamp
        let (mut c, mut tp) = hybla("hybla", 560);
        c.cong_avoid(&mut tp, 1);
        assert_eq!(tp.snd_cwnd, 65535);
    }

    #[test]
    fn avoidance_adds_the_square_of_the_ratio_per_window_of_acks() {
        // rho 4: 16 * 128 / 100 = 20/128 per ACK; the seventh has 140
        let (mut c, mut tp) = hybla("hybla", 100);
        (tp.snd_cwnd, tp.snd_ssthresh) = (100, 2);
        for _ in 0..6 {
            c.cong_avoid(&mut tp, 1);
        }
        assert_eq!((tp.snd_cwnd, c.snd_cwnd_cents, tp.snd_cwnd_cnt), (100, 120, 6));
        c.cong_avoid(&mut tp, 1);
        assert_eq!((tp.snd_cwnd, c.snd_cwnd_cents, tp.snd_cwnd_cnt), (101, 12, 0));
        // rho 1 at 200 packets: 128 / 200 = 0, a packet per window of ACKs
        let (mut c, mut tp) = hybla("hybla", 20);
        (tp.snd_cwnd, tp.snd_ssthresh, tp.snd_cwnd_cnt) = (200, 2, 198);
        c.cong_avoid(&mut tp, 1);
        assert_eq!(tp.snd_cwnd, 200);
        c.cong_avoid(&mut tp, 1);
        assert_eq!((tp.snd_cwnd, tp.snd_cwnd_cnt), (201, 0));
    }

    #[test]
    fn only_a_new_least_rtt_changes_the_ratio_also_when_nothing_may_grow() {
        let (mut c, mut tp) = hybla("hybla", 100);
        tp.is_cwnd_limited = false;
        for (rtt_ms, eighths) in [(200, 32), (50, 16), (75, 16)] {
            tp.srtt_us = rtt_ms * 8000;
            c.cong_avoid(&mut tp, 1);
            assert_eq!((c.rho_3ls, tp.snd_cwnd), (eighths, 4));
        }
    }

    #[test]
    fn outside_of_open_it_is_reno() {
        let (mut c, mut tp) = hybla("hybla", 100);
        (tp.snd_cwnd, tp.snd_ssthresh) = (10, 2);
        c.set_state(&mut tp, CaState::Disorder);
        c.cong_avoid(&mut tp, 10);
        assert_eq!(tp.snd_cwnd, 11);
        assert_eq!(c.ssthresh(&mut tp), 5);
        c.set_state(&mut tp, CaState::Open);
        // 16 * 128 / 11 = 186/128
        c.cong_avoid(&mut tp, 10);
        assert_eq!((tp.snd_cwnd, c.snd_cwnd_cents), (12, 58));
    }
}
