//! `prague@2019-09` and `prague@2019-11`: TCP Prague before its window had fractions.
//!
//! Source: `net/ipv4/tcp_prague.c` of the first bake-off (2019-09, whose alpha begins at 0: the bug that the SCE test suite
//! found) and of the tag testing/5-11-2019 (2019-11). Needs AccECN; without it the connection runs as `reno`.
//!
//! Both grow as Reno on every ACK without an echo. 2019-09 takes alpha/2 of the window at the end of each round with marks, so that the
//! first one takes 1/32 of the marked fraction only; 2019-11 begins with an alpha of 1, holds it until the first mark and reduces on entry to CWR.
//!
//! | parameter | default | meaning |
//! |---|---|---|
//! | `alpha_mode` | 0 in 2019-09, else 1 | alpha before the first mark, 0 or 1 (2019-09 does not hold it until then) |
//!
//! Departures: marks are counted in packets, which are of one size here (2019-09: bytes). A loss sets
//! ssthresh to half of the window; here the window follows when the state is Open again, which no source says.
//!
//! Validation: the tests below, `tests/claims/test_versions.py` (what was published of each version).

use super::reno::Reno;
use super::{CcEnv, CcError, CongestionControl, RateSample};
use crate::cc::sock::{CaState, TcpSock};
use bakeoff_document::cc::CcWords;

/// 1.0 in alpha.
const ONE: u64 = 1 << 31;
const GAIN_SHIFT: u32 = 4;
const MIN_CWND: u32 = 2;

/// Which module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// The first bake-off.
    Sep2019,
    /// testing/5-11-2019
    Nov2019,
}

/// Parameters and state.
pub struct Prague2019 {
    version: Version,
    /// AccECN was not negotiated.
    as_reno: bool,
    /// Smoothed fraction of marks, times 2^31.
    alpha: u64,
    saw_ce: bool,
    next_seq: u64,
    old_delivered: u64,
    old_delivered_ce: u64,
    /// A loss set ssthresh.
    lost: bool,
    /// Packets per burst.
    max_burst: u32,
}

impl Prague2019 {
    /// From the version and the words after the name.
    pub fn parse(words: &mut CcWords, _: CcEnv) -> Result<Self, CcError> {
        let version = if words.version() == Some("2019-09") { Version::Sep2019 } else { Version::Nov2019 };
        let mut c = Prague2019::new(version);
        while words.parameter(&["alpha_mode"])?.is_some() {
            c.alpha = if words.flag()? { ONE } else { 0 };
        }
        Ok(c)
    }

    /// With the version's defaults.
    pub fn new(version: Version) -> Self {
        Prague2019 {
            version,
            as_reno: false,
            alpha: if version == Version::Sep2019 { 0 } else { ONE },
            saw_ce: false,
            next_seq: 0,
            old_delivered: 0,
            old_delivered_ce: 0,
            lost: false,
            max_burst: 2,
        }
    }

    fn new_round(&mut self, tp: &TcpSock) {
        self.next_seq = tp.snd_nxt;
        self.old_delivered = tp.delivered;
        self.old_delivered_ce = tp.delivered_ce;
    }

    fn end_round(&mut self, tp: &mut TcpSock) {
        let delivered = (tp.delivered - self.old_delivered).max(1);
        let marked = tp.delivered_ce - self.old_delivered_ce;
        self.saw_ce |= marked > 0;
        if self.saw_ce || self.version == Version::Sep2019 {
            let fraction = ((marked << 31) / delivered).min(ONE);
            self.alpha = self.alpha - (self.alpha >> GAIN_SHIFT) + (fraction >> GAIN_SHIFT);
        }
        if self.version == Version::Sep2019 && marked > 0 {
            self.reduce(tp, 0);
        }
        self.new_round(tp);
    }

    /// Takes alpha/2 of the window; `round` is added before the division by 2^32.
    fn reduce(&self, tp: &mut TcpSock, round: u64) {
        let cut = (self.alpha * u64::from(tp.snd_cwnd) + round) >> 32;
        tp.snd_cwnd = tp.snd_cwnd.saturating_sub(cut as u32).max(MIN_CWND);
        tp.snd_ssthresh = tp.snd_cwnd;
    }

    fn update_pacing(&mut self, tp: &mut TcpSock) {
        let window = u64::from(tp.snd_cwnd.max(tp.packets_out));
        let slow_start = tp.snd_cwnd < tp.snd_ssthresh / 2;
        let per_packet = u64::from(tp.mss) * 8_000_000 / tp.srtt_us.max(1);
        let (rate, burst_shift) = match (slow_start, self.version) {
            (true, Version::Sep2019) => (per_packet.saturating_mul(window * 2), 11),
            (true, Version::Nov2019) => (per_packet.saturating_mul(window * 2), 12),
            (false, Version::Sep2019) => (per_packet.saturating_mul(window + 2), 11),
            (false, Version::Nov2019) => {
                let rate = per_packet.saturating_mul(window);
                let out = u64::from(tp.packets_out);
                let most = u64::from(tp.snd_cwnd.max(tp.packets_in_flight())).max(1);
                let more = rate.saturating_mul(1 + out) / most;
                (if out < u64::from(tp.snd_cwnd) { rate.saturating_add(more) } else { rate }, 12)
            }
        };
        tp.pacing_rate = rate.min(tp.max_pacing_rate);
        // 0.5 ms and 250 us
        let burst = (tp.pacing_rate >> burst_shift) / u64::from(tp.mss);
        self.max_burst = burst.clamp(2, 0xffff) as u32;
    }

    fn enter_loss(&mut self, tp: &mut TcpSock) {
        self.lost = true;
        tp.snd_ssthresh = Reno::half(tp);
    }
}

#[cfg(test)]
impl Prague2019 {
    /// alpha and `snd_cwnd_cnt`, for the comparison with the kernel module.
    pub(super) fn kept(&self, tp: &TcpSock) -> String {
        format!("{} {}", self.alpha, tp.snd_cwnd_cnt)
    }
}

impl CongestionControl for Prague2019 {
    fn init(&mut self, tp: &mut TcpSock) {
        self.as_reno = !tp.accecn;
        if !self.as_reno {
            tp.request_pacing();
            self.new_round(tp);
        }
    }

    fn ssthresh(&mut self, tp: &mut TcpSock) -> u32 {
        // Marks and losses reduce by themselves.
        if self.as_reno { Reno::half(tp) } else { tp.snd_ssthresh.max(MIN_CWND) }
    }

    fn cong_avoid(&mut self, tp: &mut TcpSock, acked: u32) {
        Reno::grow(tp, acked);
    }

    fn has_cong_control(&self) -> bool {
        !self.as_reno
    }

    fn cong_control(&mut self, tp: &mut TcpSock, sample: &RateSample) {
        if !sample.ece && sample.acked_sacked > 0 {
            Reno::grow(tp, sample.acked_sacked);
        }
        if tp.snd_una >= self.next_seq {
            self.end_round(tp);
        }
        self.update_pacing(tp);
    }

    fn set_state(&mut self, tp: &mut TcpSock, state: CaState) {
        if self.as_reno || state == tp.ca_state {
            return;
        }
        match state {
            CaState::Cwr if self.version == Version::Nov2019 => self.reduce(tp, ONE),
            CaState::Recovery => self.enter_loss(tp),
            CaState::Loss if tp.ca_state < CaState::Recovery => {
                // The core has taken the window down already.
                tp.snd_ssthresh = (tp.prior_cwnd / 2).max(MIN_CWND);
            }
            CaState::Open if self.lost => {
                self.lost = false;
                tp.snd_cwnd = tp.snd_cwnd.min(tp.snd_ssthresh).max(MIN_CWND);
            }
            _ => {}
        }
    }

    fn tso_segs(&self, _tp: &TcpSock) -> Option<u32> {
        (!self.as_reno).then_some(self.max_burst)
    }

    fn needs_ecn(&self) -> bool {
        !self.as_reno
    }

    fn ect1(&self) -> bool {
        !self.as_reno
    }

    fn trace(&self) -> Vec<(&'static str, f64)> {
        vec![("alpha", self.alpha as f64 / ONE as f64)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::sock::Pacing;

    /// In slow start, limited by the window, RTT 20 ms.
    fn open(version: Version, cwnd: u32) -> (Prague2019, TcpSock) {
        let mut tp = TcpSock::new(1448, 250);
        tp.accecn = true;
        tp.snd_cwnd = cwnd;
        tp.is_cwnd_limited = true;
        tp.srtt_us = 20_000 << 3;
        let mut prague = Prague2019::new(version);
        prague.init(&mut tp);
        (prague, tp)
    }

    /// A round of one ACK for the whole window, `marked` of it with CE.
    fn round(prague: &mut Prague2019, tp: &mut TcpSock, marked: u32) {
        let acked = tp.snd_cwnd;
        tp.snd_una = tp.snd_nxt;
        tp.snd_nxt += u64::from(acked) * 1448;
        tp.delivered += u64::from(acked);
        tp.delivered_ce += u64::from(marked);
        let sample = RateSample { acked_sacked: acked, ece: marked > 0, ..RateSample::default() };
        prague.cong_control(tp, &sample);
    }

    #[test]
    fn with_alpha_0_the_first_marked_round_takes_a_32nd_of_the_marked_fraction() {
        let (mut prague, mut tp) = open(Version::Sep2019, 320);
        round(&mut prague, &mut tp, 320);
        // all marked: 320 / 32 = 10
        assert_eq!((tp.snd_cwnd, tp.snd_ssthresh), (310, 310));
        let (mut prague, mut tp) = open(Version::Sep2019, 320);
        round(&mut prague, &mut tp, 160);
        assert_eq!(tp.snd_cwnd, 315);
    }

    #[test]
    fn alpha_mode_is_what_tells_the_first_reductions_apart() {
        let mut words = CcWords::new("prague@2019-09 alpha_mode 1");
        let Ok(mut prague) = Prague2019::parse(&mut words, CcEnv::default()) else {
            panic!("it was refused")
        };
        let (_, mut tp) = open(Version::Sep2019, 320);
        prague.init(&mut tp);
        round(&mut prague, &mut tp, 320);
        assert_eq!((tp.snd_cwnd, tp.snd_ssthresh), (160, 160));
    }

    #[test]
    fn with_alpha_1_the_first_mark_halves_the_window_on_entry_to_cwr() {
        let (mut prague, mut tp) = open(Version::Nov2019, 321);
        prague.set_state(&mut tp, CaState::Cwr);
        // 321 - round(160.5)
        assert_eq!((tp.snd_cwnd, tp.snd_ssthresh), (160, 160));
    }

    #[test]
    fn only_november_holds_alpha_until_the_first_mark() {
        let (mut prague, mut tp) = open(Version::Nov2019, 10);
        tp.snd_ssthresh = 10;
        for _ in 0..20 {
            round(&mut prague, &mut tp, 0);
        }
        assert_eq!(prague.alpha, ONE);
        round(&mut prague, &mut tp, 1);
        round(&mut prague, &mut tp, 0);
        assert!(prague.alpha < ONE * 15 / 16);
    }

    #[test]
    fn growth_is_renos_and_stops_on_an_echo_only() {
        for version in [Version::Sep2019, Version::Nov2019] {
            let (mut prague, mut tp) = open(version, 50);
            tp.snd_ssthresh = 50;
            tp.ca_state = CaState::Cwr;
            round(&mut prague, &mut tp, 0);
            assert_eq!(tp.snd_cwnd, 51, "{version:?}");
            prague.alpha = 0;
            round(&mut prague, &mut tp, 1);
            assert!(tp.snd_cwnd <= 51, "{version:?}");
        }
    }

    #[test]
    fn alpha_becomes_the_fraction_of_marks() {
        for version in [Version::Sep2019, Version::Nov2019] {
            let (mut prague, mut tp) = open(version, 40);
            for _ in 0..200 {
                tp.snd_cwnd = 40;
                round(&mut prague, &mut tp, 10);
            }
            assert!((prague.alpha as f64 / ONE as f64 - 0.25).abs() < 1e-4, "{version:?}");
        }
    }

    #[test]
    fn a_loss_halves_once_the_state_is_open_again() {
        for version in [Version::Sep2019, Version::Nov2019] {
            let (mut prague, mut tp) = open(version, 100);
            prague.set_state(&mut tp, CaState::Recovery);
            tp.ca_state = CaState::Recovery;
            assert_eq!((tp.snd_cwnd, tp.snd_ssthresh), (100, 50));
            prague.set_state(&mut tp, CaState::Open);
            assert_eq!(tp.snd_cwnd, 50, "{version:?}");
        }
    }

    #[test]
    fn the_pace_of_each_version() {
        // 1448 B / 20 ms are 72400 B/s per packet
        for (version, expected, burst) in [
            // 100 + 2 packets; 0.5 ms of that are 2.4 packets
            (Version::Sep2019, 72_400 * 102, 2),
            // 49 out of 100: 1 + 50/100
            (Version::Nov2019, 72_400 * 150, 2),
        ] {
            let (mut prague, mut tp) = open(version, 100);
            assert_eq!(tp.pacing, Pacing::Needed);
            tp.snd_ssthresh = 100;
            tp.packets_out = 49;
            prague.update_pacing(&mut tp);
            assert_eq!((tp.pacing_rate, prague.tso_segs(&tp)), (expected, Some(burst)), "{version:?}");
            tp.snd_ssthresh = 202;
            prague.update_pacing(&mut tp);
            assert_eq!(tp.pacing_rate, 72_400 * 200, "{version:?}");
        }
    }

    #[test]
    fn without_accecn_it_is_reno() {
        let mut tp = TcpSock::new(1448, 250);
        let mut prague = Prague2019::new(Version::Nov2019);
        prague.init(&mut tp);
        assert!(!prague.ect1() && !prague.needs_ecn() && !prague.has_cong_control());
        tp.snd_cwnd = 21;
        assert_eq!(prague.ssthresh(&mut tp), 10);
    }
}
