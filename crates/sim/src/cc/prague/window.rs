//! Window and rate of [`super::Prague`]: growth, reductions, which of the two is kept, and the steps of `snd_cwnd`.

use super::arithmetic::{closest, mul_shr, up};
use super::{
    ALPHA_BITS, GAIN_SHIFT, HSRTT_SHIFT, MIN_CWND, MIN_RATE, MTU_SYS, Mode, ONE, Prague, SECOND,
    SECOND_SHIFT, Scaling, UNIT, Version, mtu,
};
use crate::cc::sock::TcpSock;

/// R0 and R1 of `scalable`, 16.4 and 1.5 ms in the units of `srtt_us`.
const R0: u64 = 16_384 << 3;
const R1: u64 = 1_536 << 3;

/// Growth per window of ACKs in 2^-20 packets, at RTTs from 1/8 us to 100 ms.
pub(super) fn increase(scaling: Scaling, srtt: u64, target: u64) -> u64 {
    let target = match scaling {
        Scaling::None => return ONE,
        Scaling::Scalable => {
            let slope = R0 / 8 + srtt.saturating_sub(R1).min(R0);
            return slope * srtt * ONE / (R0 * R0);
        }
        Scaling::Rate if srtt >= target => return ONE,
        Scaling::Rate => target,
        Scaling::Additive => target + srtt,
    };
    closest((srtt << UNIT) * srtt, target * target)
}

impl Prague {
    /// Bytes per second of a packet per RTT.
    pub(super) fn packet_rate(tp: &TcpSock) -> u64 {
        let rate = SECOND * mtu(tp);
        rate.checked_div(tp.srtt_us).unwrap_or(rate)
    }

    /// The rate of `frac_cwnd`.
    pub(super) fn window_to_rate(&self, tp: &TcpSock) -> u64 {
        mul_shr(Self::packet_rate(tp), self.frac_cwnd, UNIT).max(MIN_RATE)
    }

    /// The fractional window of a rate. A second has 2^23 units here: 4.6 % less than [`Prague::window_to_rate`] takes.
    pub(super) fn rate_to_window(&self, tp: &TcpSock, rate: u64) -> u64 {
        let slow = self.hsrtt >> HSRTT_SHIFT;
        let rtt = if slow > 0 { slow } else { tp.srtt_us };
        up(mul_shr(rate, rtt, SECOND_SHIFT - UNIT), mtu(tp))
    }

    /// Where `snd_cwnd` goes to.
    pub(super) fn goal(&self, tp: &TcpSock) -> u32 {
        let packets = self.frac_cwnd.wrapping_add(ONE - 1) >> UNIT;
        packets.clamp(MIN_CWND, u32::MAX.into()).min(tp.snd_cwnd_clamp.into()) as u32
    }

    /// An ACK of so many packets, of which so many are reported with CE.
    pub(super) fn update_cwnd(&mut self, tp: &mut TcpSock, acked: u32, marked: u32) {
        if marked > 0 && !self.saw_ce {
            if !self.alpha_mode {
                self.frac_cwnd = self.frac_cwnd.wrapping_add(1) >> 1;
            }
            self.saw_ce = true;
        }
        let unmarked = acked.saturating_sub(marked);
        let limited = match self.version {
            Version::Of2023 => tp.app_limited == 0,
            Version::Present => tp.cwnd_limited(),
        };
        if unmarked > 0 && !self.in_loss && limited {
            let mut left = unmarked;
            if tp.in_slow_start() {
                left = tp.slow_start(unmarked);
                self.frac_cwnd = u64::from(tp.snd_cwnd) << UNIT;
                if left == 0 {
                    self.set_ai(tp);
                    return;
                }
            }
            self.grow(tp, left.into());
        }
        self.step(tp);
    }

    fn grow(&mut self, tp: &TcpSock, acked: u64) {
        let mtu = mtu(tp);
        if self.by_rate(tp) {
            let rtt = self.virtual_rtt(tp);
            let increase = ((acked * MTU_SYS) << SECOND_SHIFT) / rtt;
            let packets = up(self.rate.wrapping_mul(rtt), mtu << SECOND_SHIFT);
            if packets > 0 {
                self.rate = self.rate.wrapping_add(closest(increase, packets));
            }
            self.frac_cwnd = self.frac_cwnd.wrapping_add(acked).max(self.rate_to_window(tp, self.rate));
            return;
        }
        let mut increase = acked * self.ai_per_rtt;
        match self.version {
            Version::Of2023 => increase = closest(increase, tp.snd_cwnd.max(1).into()),
            Version::Present => {
                if self.frac_cwnd > 0 {
                    increase = closest(increase << UNIT, self.frac_cwnd);
                }
                increase = increase.wrapping_mul(MTU_SYS) / mtu;
            }
        }
        self.frac_cwnd = self.frac_cwnd.wrapping_add(increase.max(acked));
        if self.version == Version::Present {
            self.rate = self.rate.wrapping_add(acked).max(self.window_to_rate(tp));
        }
    }

    /// One packet towards the goal.
    fn step(&mut self, tp: &mut TcpSock) {
        let goal = self.goal(tp);
        if tp.snd_cwnd > goal {
            tp.snd_cwnd -= 1;
            tp.snd_ssthresh = tp.snd_cwnd;
            self.set_ai(tp);
        } else if tp.snd_cwnd < goal {
            tp.snd_cwnd += 1;
            self.set_ai(tp);
        }
    }

    /// Window or rate from now on.
    pub(super) fn update_mode(&mut self, tp: &TcpSock) {
        if !self.switching {
            return;
        }
        let small = u64::from(tp.snd_cwnd) * mtu(tp) <= self.cwnd_transit * MTU_SYS;
        match self.version {
            Version::Of2023 => self.mode = if small { Mode::Rate } else { Mode::Window },
            Version::Present if small && self.saw_ce => {
                self.mode = Mode::Rate;
                self.frac_cwnd = self.rate_to_window(tp, self.rate);
            }
            Version::Present => {
                self.mode = Mode::Window;
                self.rate = self.window_to_rate(tp);
            }
        }
    }

    /// Entry to CWR takes half of alpha, and at least the fallback's.
    pub(super) fn enter_cwr(&mut self, tp: &TcpSock) {
        if !self.passed_since(tp, self.cwr_stamp) {
            return;
        }
        self.cwr_stamp = Some(tp.now);
        let mut alpha = self.alpha >> GAIN_SHIFT;
        if self.ecn_fallback {
            alpha = alpha.max(self.classic_ecn.least_alpha());
        }
        if self.by_rate(tp) {
            self.rate = (self.rate - mul_shr(self.rate, alpha, ALPHA_BITS + 1)).max(MIN_RATE);
            self.frac_cwnd = self.rate_to_window(tp, self.rate);
        } else {
            let half = u128::from(alpha) * u128::from(self.frac_cwnd) + (1 << ALPHA_BITS);
            self.frac_cwnd = self.frac_cwnd.saturating_sub((half >> (ALPHA_BITS + 1)) as u64);
            self.rate_follows(tp);
        }
    }

    /// Entry to Recovery, or an RTO.
    pub(super) fn enter_loss(&mut self, tp: &TcpSock) {
        self.before_loss = (tp.snd_cwnd, self.rate);
        if self.by_rate(tp) {
            self.rate -= self.rate >> 1;
            self.frac_cwnd = self.rate_to_window(tp, self.rate);
        } else {
            self.frac_cwnd -= self.frac_cwnd >> 1;
            self.rate_follows(tp);
        }
        self.in_loss = true;
    }

    fn rate_follows(&mut self, tp: &TcpSock) {
        if self.version == Version::Present {
            self.rate = self.window_to_rate(tp);
        }
    }
}
