//! `lp`: TCP-LP, low priority. Grows as `reno`; halves when the one-way delay exceeds its least by 15 % of its range, and
//! falls to one packet if that happens again within three RTTs.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_lp.c`; Kuzmanovic and Knightly, "TCP-LP: A Distributed Algorithm for Low Priority Data
//! Transfer", 2003. One-way delays are differences of time stamps in milliseconds, in 32 bits that wrap; the peer's clock rate is
//! estimated from them, which the granularity disturbs, so that the delay often is not one. As there.
//!
//! Parameters: none.
//!
//! Departures: a connection's clock begins with the run's, not with the host's start; the offset of the peer's time stamps
//! (RFC 7323, section 7.1) is from the control's own random stream.
//!
//! Validation: the tests below, `tests/cc_hooks.rs`.

use super::reno::Reno;
use super::{CcEnv, CcError, CongestionControl};
use crate::base::units::Time;
use crate::cc::sock::TcpSock;
use bakeoff_document::cc::CcWords;

/// `TCP_TS_HZ`, and the resolution of the one-way delay.
const TS_HZ: u32 = 1000;

/// State; the kernel's names. Times in milliseconds.
pub struct Lp {
    /// What the peer adds to its time stamps.
    offset: u32,
    valid_rhz: bool,
    valid_owd: bool,
    within_inf: bool,
    /// Smoothed one-way delay, times 8.
    sowd: u32,
    owd_min: u32,
    owd_max: u32,
    owd_max_rsv: u32,
    remote_hz: u32,
    remote_ref_time: u32,
    local_ref_time: u32,
    last_drop: u32,
    inference: u32,
}

/// A time stamp.
fn stamp(time: Time) -> u32 {
    time.as_ms() as u32
}

impl Lp {
    /// From the words after the name: there are none.
    pub fn parse(words: &mut CcWords, env: CcEnv) -> Result<Self, CcError> {
        words.parameter(&[])?;
        let mut rng = env.rng;
        Ok(Lp {
            offset: rng.u32(),
            valid_rhz: false,
            valid_owd: false,
            within_inf: false,
            sowd: 0,
            owd_min: u32::MAX,
            owd_max: 0,
            owd_max_rsv: 0,
            remote_hz: 0,
            remote_ref_time: 0,
            local_ref_time: 0,
            last_drop: 0,
            inference: 0,
        })
    }

    /// The peer's clock rate, smoothed by 1/64. Source: Linux 7.3 `tcp_lp_remote_hz_estimator`.
    fn next_remote_hz(&mut self, tsval: u32, tsecr: u32) -> u32 {
        let mut rhz = i64::from(self.remote_hz << 6);
        let remote = tsval.wrapping_sub(self.remote_ref_time);
        let local = tsecr.wrapping_sub(self.local_ref_time);
        if self.remote_ref_time != 0 && self.local_ref_time != 0 && remote != 0 && local != 0 {
            let m = i64::from(TS_HZ.wrapping_mul(remote) / local);
            rhz = if rhz > 0 { rhz + m - (rhz >> 6) } else { m << 6 };
        }
        self.valid_rhz = rhz >> 6 > 0;
        self.remote_ref_time = tsval;
        self.local_ref_time = tsecr;
        (rhz >> 6) as u32
    }

    /// The one-way delay. Source: Linux 7.3 `tcp_lp_owd_calculator`.
    fn owd(&mut self, tsval: u32, tsecr: u32) -> u32 {
        self.remote_hz = self.next_remote_hz(tsval, tsecr);
        let owd = if self.valid_rhz {
            tsval.wrapping_mul(TS_HZ.checked_div(self.remote_hz).unwrap_or(0)).wrapping_sub(tsecr)
        } else {
            0
        };
        self.valid_owd = owd > 0;
        owd
    }

    /// Source: Linux 7.3 `tcp_lp_rtt_sample`.
    fn sample(&mut self, tsval: u32, tsecr: u32) {
        let owd = self.owd(tsval, tsecr);
        if !self.valid_rhz || !self.valid_owd {
            return;
        }
        self.owd_min = self.owd_min.min(owd);
        // The greatest is left out: it may be an outlier.
        if owd > self.owd_max {
            self.owd_max = owd;
            if owd > self.owd_max_rsv {
                if self.owd_max_rsv != 0 {
                    self.owd_max = self.owd_max_rsv;
                }
                self.owd_max_rsv = owd;
            }
        }
        self.sowd =
            if self.sowd == 0 { owd << 3 } else { self.sowd.wrapping_add(owd.wrapping_sub(self.sowd >> 3)) };
    }

    /// Whether the smoothed delay is below the threshold.
    fn within_threshold(&self) -> bool {
        let range = self.owd_max.wrapping_sub(self.owd_min);
        self.sowd >> 3 < self.owd_min.wrapping_add(range.wrapping_mul(15) / 100)
    }
}

impl CongestionControl for Lp {
    fn ssthresh(&mut self, tp: &mut TcpSock) -> u32 {
        Reno::half(tp)
    }

    fn cong_avoid(&mut self, tp: &mut TcpSock, acked: u32) {
        if !self.within_inf {
            Reno::grow(tp, acked);
        }
    }

    /// Source: Linux 7.3 `tcp_lp_pkts_acked`.
    fn pkts_acked(&mut self, tp: &mut TcpSock, _acked: u32, rtt_us: Option<u64>) {
        let (now, tsecr) = (stamp(tp.now), stamp(tp.rcv_tsecr));
        if rtt_us.is_some_and(|rtt_us| rtt_us > 0) {
            self.sample(stamp(tp.rcv_tsval).wrapping_add(self.offset), tsecr);
        }
        let delta = now.wrapping_sub(tsecr);
        if delta.cast_signed() > 0 {
            self.inference = delta.wrapping_mul(3);
        }
        self.within_inf = self.last_drop != 0 && now.wrapping_sub(self.last_drop) < self.inference;
        if self.within_threshold() {
            return;
        }
        self.owd_min = self.sowd >> 3;
        self.owd_max = self.sowd >> 2;
        self.owd_max_rsv = self.sowd >> 2;
        tp.snd_cwnd = if self.within_inf { 1 } else { (tp.snd_cwnd >> 1).max(1) };
        self.last_drop = now;
    }

    fn trace(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("owd_ms", f64::from(self.sowd >> 3)),
            ("owd_min_ms", self.owd_min.into()),
            ("owd_max_ms", self.owd_max.into()),
            ("remote_hz", self.remote_hz.into()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With the peer's time stamps `offset` ahead.
    fn lp(offset: u32) -> (Lp, TcpSock) {
        let Ok(mut lp) = Lp::parse(&mut CcWords::new("lp"), CcEnv::default()) else { panic!("refused") };
        lp.offset = offset;
        let mut tp = TcpSock::new(1000, 1000);
        (tp.snd_cwnd, tp.is_cwnd_limited) = (100, true);
        (lp, tp)
    }

    /// An ACK stamped at `tsval` that echoes `tsecr` and takes 10 ms back.
    fn ack(lp: &mut Lp, tp: &mut TcpSock, tsval: u64, tsecr: u64) -> u32 {
        tp.now = Time::from_ms(tsval + 10);
        (tp.rcv_tsval, tp.rcv_tsecr) = (Time::from_ms(tsval), Time::from_ms(tsecr));
        lp.pkts_acked(tp, 1, Some(20_000));
        tp.snd_cwnd
    }

    #[test]
    fn the_peers_clock_rate_moves_by_a_sixtyfourth_and_truncates_downwards() {
        let (mut lp, mut tp) = lp(0);
        ack(&mut lp, &mut tp, 1010, 1000);
        assert!(!lp.valid_rhz);
        ack(&mut lp, &mut tp, 1020, 1010);
        assert_eq!((lp.remote_hz, lp.sowd), (1000, 80));
        // 1000 * 9 / 10 = 900: (64000 - 100) / 64 = 998; 2000: (63872 + 1002) / 64 = 1013
        ack(&mut lp, &mut tp, 1029, 1020);
        assert_eq!(lp.remote_hz, 998);
        ack(&mut lp, &mut tp, 1049, 1030);
        assert_eq!(lp.remote_hz, 1013);
        // No rate from the same stamps.
        ack(&mut lp, &mut tp, 1049, 1040);
        assert_eq!(lp.remote_hz, 1013);
    }

    #[test]
    fn a_delay_beyond_15_per_cent_of_the_range_halves_and_then_leaves_one_packet() {
        let (mut lp, mut tp) = lp(100);
        (lp.remote_hz, lp.owd_min, lp.owd_max, lp.owd_max_rsv, lp.sowd) = (1000, 110, 150, 160, 110 << 3);
        // 110 + 15 * 40 / 100 = 116; 880 + 150 - 110 = 920, i.e. 115
        assert_eq!(ack(&mut lp, &mut tp, 1050, 1000), 100);
        // 920 + 150 - 115 = 955: 119
        assert_eq!(ack(&mut lp, &mut tp, 1060, 1010), 50);
        assert_eq!((lp.owd_min, lp.owd_max, lp.last_drop, lp.inference), (119, 238, 1070, 180));
        // 955 + 150 - 119 = 986: 123 of 119 + 15 * 119 / 100 = 136
        assert_eq!(ack(&mut lp, &mut tp, 1070, 1020), 50);
        assert!(lp.within_inf);
        lp.cong_avoid(&mut tp, 50);
        assert_eq!(tp.snd_cwnd, 50, "no growth within the inference");
        lp.sowd = 200 << 3;
        assert_eq!(ack(&mut lp, &mut tp, 1080, 1030), 1);
        // Three RTTs of 60 ms after the drop at 1090 ms it is over.
        (lp.owd_min, lp.owd_max, lp.sowd) = (150, 200, 150 << 3);
        ack(&mut lp, &mut tp, 1259, 1209);
        assert!(lp.within_inf);
        ack(&mut lp, &mut tp, 1260, 1210);
        assert!(!lp.within_inf);
    }

    #[test]
    fn the_greatest_delay_is_left_out() {
        let (mut lp, _) = lp(0);
        (lp.remote_hz, lp.remote_ref_time, lp.local_ref_time) = (1000, 1, 1);
        let mut maxima = Vec::new();
        for (tsval, tsecr) in [(1010, 1000), (2020, 2000), (3030, 3000), (4025, 4000)] {
            lp.sample(tsval, tsecr);
            maxima.push((lp.owd_max, lp.owd_max_rsv));
        }
        // Delays of 10, 20, 30 and 25 ms, too slowly for the clock rate to change.
        assert_eq!(maxima, [(10, 10), (10, 20), (20, 30), (25, 30)]);
    }
}
