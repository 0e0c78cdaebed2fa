//! `cubic-sce`: CUBIC that gives way to SCE marks by the square root of its window, and whose curve has its flat part
//! at the last mark.
//!
//! Source: chromi/sce `net/ipv4/tcp_cubic_sce.c` (0139ea04), described in docs/models/sce.md. On the CUBIC and HyStart of Linux 5.4.
//! ECN, echo and sysctls as for `reno-sce`.
//!
//! Parameters: those of `cubic@5.4`, and
//!
//! | name | default | meaning |
//! |---|---|---|
//! | `origin` | continuous | how a mark before K moves the curve: `continuous` keeps its value; `literal` is the module's own arithmetic, an underflow that leaves the origin out of reach, so that growth is at its maximum until the next CE or loss |
//! | `mss`, `pacing` | mss_cache, sysctl | those of [`super::reno_sce`]; with `rcv_mss` a mark takes 2.7 times as much and growth is as ever |
//!
//! Departures: those of [`super::sce`] and of [`super::cubic`]; the square root of the window is its integer part at any time,
//! while the module follows the window step by step.
//!
//! Validation: the tests below, `tests/cc_hooks.rs` (any sequence of hooks).

use super::cubic::{Cubic, HZ_SHIFT};
use super::hystart::Kernel;
use super::sce::{AckedBytes, MIN_CWND, SceOptions};
use super::{CaEvent, CcEnv, CcError, CongestionControl};
use crate::cc::sock::{CaState, TcpSock};
use bakeoff_document::cc::CcWords;

/// State beside CUBIC's own.
pub struct CubicSce {
    cubic: Cubic,
    options: SceOptions,
    acked: AckedBytes,
    /// ACKs for which an SCE mark counts as recent.
    recent_sce: u32,
    literal: bool,
}

impl CubicSce {
    /// From the words after the name.
    pub fn parse(words: &mut CcWords, _: CcEnv) -> Result<Self, CcError> {
        let mut cubic = Cubic::new(Kernel::V5_4);
        let (mut literal, mut options) = (false, SceOptions::default());
        let more = &["origin", "mss", "pacing"];
        cubic.parameters(words, "hystart_ack_delta", more, |parameter, words| {
            if parameter == "origin" {
                literal = words.one_of(&["continuous", "literal"])? == "literal";
                return Ok(());
            }
            options.parse(parameter, words)
        })?;
        Ok(CubicSce { cubic, options, acked: AckedBytes::default(), recent_sce: 0, literal })
    }

    /// Moves the curve so that it is flat now.
    fn flatten(&mut self, tp: &TcpSock, start: u64) {
        let cubic = &mut self.cubic;
        let now = tp.jiffies();
        let t = (now.saturating_sub(start) << HZ_SHIFT) / tp.hz;
        if t < cubic.k {
            let below = cubic.cube(cubic.k - t);
            cubic.origin_point =
                if self.literal { u32::MAX } else { cubic.origin_point.saturating_sub(below) };
            cubic.epoch_start = Some(now);
            cubic.k = 0;
        } else {
            // From the origin on: as long as it lasted, that long again to the next one.
            let since = t - cubic.k;
            let jiffies = (cubic.k * tp.hz) >> HZ_SHIFT;
            cubic.epoch_start = Some((start + jiffies).min(now));
            cubic.k = since;
            cubic.origin_point = cubic.origin_point.saturating_add(cubic.cube(since));
        }
    }

    fn on_sce(&mut self, tp: &mut TcpSock, acked: i64) {
        match self.cubic.epoch_start {
            None => tp.snd_ssthresh = (tp.snd_cwnd / 2).max(MIN_CWND),
            Some(start) => self.flatten(tp, start),
        }
        let mss = i64::from(self.options.mss(tp));
        self.cubic.ack_cnt = self.cubic.ack_cnt.saturating_sub(acked * i64::from(tp.snd_cwnd.isqrt()));
        while self.cubic.ack_cnt <= -mss * i64::from(tp.snd_cwnd) {
            self.cubic.ack_cnt += mss * i64::from(tp.snd_cwnd);
            if tp.snd_cwnd > MIN_CWND {
                tp.snd_cwnd -= 1;
                self.cubic.origin_point = self.cubic.origin_point.saturating_sub(1);
            }
        }
        tp.snd_ssthresh = (tp.snd_cwnd / 2).max(MIN_CWND);
        self.recent_sce = tp.snd_cwnd + 1;
    }
}

#[cfg(test)]
impl CubicSce {
    /// Its integers, for the comparison with the kernel module.
    pub(super) fn kept(&self) -> String {
        let [cnt, delay_min, tcp_cwnd] = self.cubic.kept();
        let Cubic { ack_cnt, last_max_cwnd, origin_point, k, .. } = self.cubic;
        let recent_sce = self.recent_sce;
        format!("{ack_cnt} {recent_sce} {cnt} {last_max_cwnd} {origin_point} {k} {delay_min} {tcp_cwnd}")
    }
}

impl CongestionControl for CubicSce {
    fn init(&mut self, tp: &mut TcpSock) {
        self.cubic.init(tp);
        self.cubic.ack_unit = self.options.mss(tp);
        self.acked.start(tp);
        self.options.start_pacing(tp);
    }

    fn without_slow_start(&mut self) {
        self.cubic.without_slow_start();
    }

    fn ssthresh(&mut self, tp: &mut TcpSock) -> u32 {
        let ssthresh = self.cubic.ssthresh(tp);
        if self.recent_sce == 0 {
            return ssthresh;
        }
        (tp.snd_cwnd - tp.snd_cwnd.div_ceil(8)).max(MIN_CWND)
    }

    fn cong_avoid(&mut self, tp: &mut TcpSock, acked: u32) {
        self.cubic.cong_avoid(tp, acked);
    }

    fn set_state(&mut self, tp: &mut TcpSock, state: CaState) {
        self.cubic.set_state(tp, state);
    }

    fn cwnd_event(&mut self, tp: &mut TcpSock, event: CaEvent) {
        self.cubic.cwnd_event(tp, event);
    }

    fn in_ack_event(&mut self, tp: &mut TcpSock, _ece: bool) {
        let acked = self.acked.take(tp, self.options.mss(tp));
        if tp.esce && acked > 0 {
            self.on_sce(tp, acked);
        }
        self.recent_sce = self.recent_sce.saturating_sub(1);
    }

    fn pkts_acked(&mut self, tp: &mut TcpSock, acked: u32, rtt_us: Option<u64>) {
        self.cubic.pkts_acked(tp, acked, rtt_us);
    }

    fn trace(&self) -> Vec<(&'static str, f64)> {
        let mut trace = self.cubic.trace();
        trace.push(("recent_sce", self.recent_sce.into()));
        trace
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::Time;

    const MSS: u64 = 1448;

    fn avoiding(text: &str, cwnd: u32) -> (CubicSce, TcpSock) {
        let mut tp = TcpSock::new(MSS as u32, 1000);
        tp.snd_cwnd = cwnd;
        tp.snd_ssthresh = 2;
        tp.is_cwnd_limited = true;
        tp.now = Time::from_ms(1_000_000);
        let mut words = CcWords::new(text);
        let Ok(mut cubic) = CubicSce::parse(&mut words, CcEnv::default()) else {
            panic!("'{text}' was refused")
        };
        cubic.init(&mut tp);
        (cubic, tp)
    }

    fn ack(cubic: &mut CubicSce, tp: &mut TcpSock, packets: u64, esce: bool) {
        tp.snd_una += packets * MSS;
        tp.esce = esce;
        cubic.in_ack_event(tp, false);
        cubic.cong_avoid(tp, packets as u32);
    }

    /// After a reduction from 1000 packets, `ms` later.
    fn reduced(text: &str, ms: u64) -> (CubicSce, TcpSock) {
        let (mut cubic, mut tp) = avoiding(text, 1000);
        tp.snd_cwnd = cubic.ssthresh(&mut tp);
        ack(&mut cubic, &mut tp, 1, false);
        tp.now += Time::from_ms(ms);
        (cubic, tp)
    }

    #[test]
    fn the_first_mark_ends_slow_start() {
        let (mut cubic, mut tp) = avoiding("cubic-sce", 40);
        tp.snd_ssthresh = crate::cc::sock::INFINITE_SSTHRESH;
        ack(&mut cubic, &mut tp, 1, true);
        assert_eq!(tp.snd_ssthresh, 20);
    }

    #[test]
    fn marked_bytes_take_the_root_of_the_window_over_the_window() {
        // ten packets at a window of 100, root 10: 10 * 10 of 100
        let (mut cubic, mut tp) = avoiding("cubic-sce tcp_friendliness 0", 100);
        for _ in 0..10 {
            tp.snd_una += MSS;
            tp.esce = true;
            cubic.in_ack_event(&mut tp, false);
        }
        assert_eq!((tp.snd_cwnd, tp.snd_ssthresh), (99, 49));
    }

    #[test]
    fn a_mark_before_k_makes_the_curve_flat_where_it_is() {
        // K = 9.083 s; at 5 s the curve stands at 972.8 (docs/models/closed-forms.md)
        let (mut cubic, mut tp) = reduced("cubic-sce", 5000);
        ack(&mut cubic, &mut tp, 1, true);
        let origin = cubic.cubic.origin_point;
        assert!((972..=973).contains(&origin), "{origin}");
        assert_eq!((cubic.cubic.k, cubic.cubic.epoch_start), (0, Some(tp.jiffies())));
    }

    #[test]
    fn a_mark_after_k_makes_the_curve_flat_where_it_is() {
        // at 12 s it stands at 1009.9, 2.917 s after the origin
        let (mut cubic, mut tp) = reduced("cubic-sce", 12_000);
        ack(&mut cubic, &mut tp, 1, true);
        let origin = cubic.cubic.origin_point;
        assert!((1009..=1010).contains(&origin), "{origin}");
        let k = cubic.cubic.k as f64 / 1024.0;
        assert!((k - 2.917).abs() < 0.005, "{k}");
    }

    #[test]
    fn the_literal_origin_is_out_of_reach() {
        let (mut cubic, mut tp) = reduced("cubic-sce origin literal", 5000);
        ack(&mut cubic, &mut tp, 1, true);
        let cwnd = tp.snd_cwnd;
        tp.now += Time::from_ms(100);
        ack(&mut cubic, &mut tp, 100, false);
        assert_eq!(tp.snd_cwnd, cwnd + 50, "one packet per two ACKed");
    }

    #[test]
    fn a_ce_leaves_seven_eighths_if_sce_was_recent() {
        let (mut cubic, mut tp) = avoiding("cubic-sce", 80);
        assert_eq!(cubic.ssthresh(&mut tp), 80 * 717 / 1024);
        ack(&mut cubic, &mut tp, 1, true);
        assert_eq!(cubic.ssthresh(&mut tp), 70);
    }
}
