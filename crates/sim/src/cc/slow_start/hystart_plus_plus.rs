//! `hystart++`: a round whose least RTT rose makes growth slow, and some of them end slow start.
//!
//! Source: RFC 9406, sections 4.2, 4.3 and 5. Per ACK the order is that of section 4.2: growth, sample, tests, end of
//! the round.
//!
//! | parameter | default | meaning |
//! |---|---|---|
//! | `min_rtt_thresh`, `max_rtt_thresh` | 4ms, 16ms | bounds of the rise that is one |
//! | `min_rtt_divisor` | 8 | the rise in parts of the last round's least RTT |
//! | `n_rtt_sample` | 8 | samples before a round is judged |
//! | `css_growth_divisor` | 4 | conservative slow start (CSS) grows by so much less |
//! | `css_rounds` | 5 | rounds of it |
//! | `l` | 8, or unlimited where packets are paced | packets of an ACK that count; 0: unlimited |
//!
//! Departures: windows are in packets; what a quarter leaves over is kept for the next ACK. Only in the first slow start,
//! as section 4.3 recommends.
//!
//! Validation: the tests below.

use super::Part;
use crate::base::units::Time;
use crate::cc::CcError;
use crate::cc::sock::{INFINITE_SSTHRESH, Pacing, TcpSock};
use bakeoff_document::cc::CcWords;

/// Parameters and state; the RFC's names, times in microseconds.
pub(super) struct HyStartPlusPlus {
    min_rtt_thresh: u64,
    max_rtt_thresh: u64,
    min_rtt_divisor: u64,
    n_rtt_sample: u32,
    css_growth_divisor: u32,
    css_rounds: u32,
    /// None: 8 or unlimited; 0: unlimited.
    l: Option<u32>,
    last_round_min_rtt: u64,
    current_round_min_rtt: u64,
    rtt_sample_count: u32,
    /// None from the end of a round to the next ACK: what left in between belongs to the new round.
    window_end: Option<u64>,
    css: Option<Css>,
    /// The sample of the ACK that is being handled.
    rtt_us: Option<u64>,
}

/// Conservative slow start.
#[derive(Clone, Copy)]
struct Css {
    baseline_min_rtt: u64,
    rounds: u32,
    /// Packets that did not make a whole one of growth yet.
    left: u32,
}

impl HyStartPlusPlus {
    fn new() -> Self {
        HyStartPlusPlus {
            min_rtt_thresh: 4_000,
            max_rtt_thresh: 16_000,
            min_rtt_divisor: 8,
            n_rtt_sample: 8,
            css_growth_divisor: 4,
            css_rounds: 5,
            l: None,
            last_round_min_rtt: u64::MAX,
            current_round_min_rtt: u64::MAX,
            rtt_sample_count: 0,
            window_end: None,
            css: None,
            rtt_us: None,
        }
    }

    /// From the words after the name.
    pub fn parse(words: &mut CcWords) -> Result<Self, CcError> {
        let mut h = HyStartPlusPlus::new();
        let known = [
            "min_rtt_thresh",
            "max_rtt_thresh",
            "min_rtt_divisor",
            "n_rtt_sample",
            "css_growth_divisor",
            "css_rounds",
            "l",
        ];
        let times = (Time::ZERO, Time::from_ms(10_000));
        while let Some(parameter) = words.parameter(&known)? {
            match parameter {
                "min_rtt_thresh" => h.min_rtt_thresh = words.time(times.0, times.1)?.as_us(),
                "max_rtt_thresh" => h.max_rtt_thresh = words.time(times.0, times.1)?.as_us(),
                "min_rtt_divisor" => h.min_rtt_divisor = words.number(1..=1_000)?.into(),
                "n_rtt_sample" => h.n_rtt_sample = words.number(1..=1_000)?,
                "css_growth_divisor" => h.css_growth_divisor = words.number(2..=1_000)?,
                "css_rounds" => h.css_rounds = words.number(1..=1_000)?,
                _ => h.l = Some(words.number(0..=u32::MAX)?),
            }
        }
        Ok(h)
    }

    /// Whether this is the first slow start.
    fn is_on(tp: &TcpSock) -> bool {
        tp.snd_ssthresh >= INFINITE_SSTHRESH && tp.in_slow_start()
    }

    /// RFC 9406, section 4.2: the rise of the round's least RTT that begins CSS.
    fn threshold(&self) -> u64 {
        (self.last_round_min_rtt / self.min_rtt_divisor).min(self.max_rtt_thresh).max(self.min_rtt_thresh)
    }

    fn forget(&mut self) {
        self.last_round_min_rtt = u64::MAX;
        self.current_round_min_rtt = u64::MAX;
        self.rtt_sample_count = 0;
        self.window_end = None;
        self.css = None;
        self.rtt_us = None;
    }

    fn judge(&mut self) {
        if self.rtt_sample_count < self.n_rtt_sample {
            return;
        }
        let least = self.current_round_min_rtt;
        match self.css {
            Some(css) if least < css.baseline_min_rtt => self.css = None,
            Some(_) => {}
            None => {
                let both = least != u64::MAX && self.last_round_min_rtt != u64::MAX;
                if both && least >= self.last_round_min_rtt + self.threshold() {
                    self.css = Some(Css { baseline_min_rtt: least, rounds: 0, left: 0 });
                }
            }
        }
    }

    fn end_round(&mut self, tp: &mut TcpSock) {
        self.last_round_min_rtt = self.current_round_min_rtt;
        self.current_round_min_rtt = u64::MAX;
        self.rtt_sample_count = 0;
        self.window_end = None;
        if let Some(css) = &mut self.css {
            css.rounds += 1;
            if css.rounds >= self.css_rounds {
                tp.snd_ssthresh = tp.snd_cwnd;
                self.css = None;
            }
        }
    }
}

impl Part for HyStartPlusPlus {
    fn init(&mut self, _tp: &mut TcpSock) {
        self.forget();
    }

    fn timeout(&mut self, _tp: &mut TcpSock) {
        self.forget();
    }

    fn on_sample(&mut self, _tp: &mut TcpSock, rtt_us: u64) {
        self.rtt_us = Some(rtt_us);
    }

    fn before(&mut self, tp: &mut TcpSock, acked: u32) -> u32 {
        if !Self::is_on(tp) {
            return acked;
        }
        self.window_end.get_or_insert(tp.snd_nxt);
        let limit = match self.l {
            None if tp.pacing == Pacing::None => 8,
            None | Some(0) => u32::MAX,
            Some(limit) => limit,
        };
        let counted = acked.min(limit);
        match &mut self.css {
            None => counted,
            Some(css) => {
                let all = css.left + counted;
                css.left = all % self.css_growth_divisor;
                all / self.css_growth_divisor
            }
        }
    }

    fn after(&mut self, tp: &mut TcpSock) {
        let sample = self.rtt_us.take();
        if !Self::is_on(tp) {
            return;
        }
        if let Some(rtt_us) = sample {
            self.current_round_min_rtt = self.current_round_min_rtt.min(rtt_us);
            self.rtt_sample_count += 1;
            self.judge();
        }
        if self.window_end.is_some_and(|end| tp.snd_una >= end) {
            self.end_round(tp);
        }
    }

    fn trace(&self) -> Vec<(&'static str, f64)> {
        vec![("css_round", self.css.map_or(0.0, |css| f64::from(css.rounds + 1)))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::reno::Reno;

    const MSS: u64 = 1448;

    /// A flow that an ACK for every second packet reaches, and whose window is always full.
    struct Path {
        part: HyStartPlusPlus,
        tp: TcpSock,
    }

    impl Path {
        fn new(part: HyStartPlusPlus) -> Self {
            let mut path = Path { part, tp: TcpSock::new(1448, 1000) };
            path.tp.is_cwnd_limited = true;
            path.part.init(&mut path.tp);
            path.send();
            path
        }

        fn send(&mut self) {
            self.tp.snd_nxt = self.tp.snd_una + u64::from(self.tp.snd_cwnd) * MSS;
        }

        fn ack(&mut self, packets: u32, rtt_us: u64) {
            let tp = &mut self.tp;
            tp.snd_una += u64::from(packets) * MSS;
            if tp.in_slow_start() {
                self.part.on_sample(tp, rtt_us);
            }
            let seen = self.part.before(tp, packets);
            if seen > 0 {
                Reno::grow(tp, seen);
            }
            self.part.after(tp);
            self.send();
        }

        /// What is out is acknowledged; the window then.
        fn round(&mut self, rtt_us: u64) -> u32 {
            let end = self.tp.snd_nxt;
            while self.tp.snd_una < end {
                self.ack(((end - self.tp.snd_una) / MSS).min(2) as u32, rtt_us);
            }
            self.tp.snd_cwnd
        }
    }

    #[test]
    fn the_rise_that_begins_css_is_an_eighth_within_4_and_16_ms() {
        for (last, least) in [(8, 12), (32, 36), (80, 90), (128, 144), (400, 416)] {
            for (rtt_us, enters) in [(least * 1000 - 1, false), (least * 1000, true)] {
                let mut h = HyStartPlusPlus::new();
                h.last_round_min_rtt = last * 1000;
                h.current_round_min_rtt = rtt_us;
                h.rtt_sample_count = 7;
                h.judge();
                assert!(h.css.is_none(), "seven samples do not judge");
                h.rtt_sample_count = 8;
                h.judge();
                assert_eq!(h.css.is_some(), enters, "{last} ms, then {rtt_us} us");
            }
        }
    }

    #[test]
    fn eight_packets_of_an_ack_count_unless_packets_are_paced_and_a_quarter_of_them_in_css() {
        // sheet: 11584 and 14480 B; 2896 and 3620 B, of which whole packets grow and the rest stays
        for (acked, pacing, css, seen, left) in [
            (10, Pacing::None, false, 8, 0),
            (10, Pacing::Needed, false, 10, 0),
            (10, Pacing::None, true, 2, 0),
            (10, Pacing::Fq, true, 2, 2),
            (44, Pacing::None, false, 8, 0),
            (44, Pacing::Needed, false, 44, 0),
            (44, Pacing::None, true, 2, 0),
            (44, Pacing::Needed, true, 11, 0),
        ] {
            let mut h = HyStartPlusPlus::new();
            let mut tp = TcpSock::new(1448, 1000);
            tp.pacing = pacing;
            h.css = css.then_some(Css { baseline_min_rtt: 1, rounds: 0, left: 0 });
            assert_eq!(h.before(&mut tp, acked), seen, "{acked} {pacing:?} {css}");
            assert_eq!(h.css.map_or(0, |css| css.left), left);
        }
    }

    #[test]
    fn a_lasting_rise_ends_slow_start_after_five_rounds_of_css() {
        let mut path = Path::new(HyStartPlusPlus::new());
        let windows: Vec<u32> = [40, 40, 40].map(|ms| path.round(ms * 1000)).to_vec();
        assert_eq!(windows, [20, 40, 80]);
        // eight ACKs at full rate, 16 packets, then (80 - 16) / 4 = 16
        assert_eq!(path.round(46_000), 112);
        // 112 * 5/4 = 140, 175, 218.75
        assert_eq!([46, 46, 46].map(|ms| path.round(ms * 1000)), [140, 175, 218]);
        assert!(path.tp.in_slow_start());
        assert_eq!(path.round(46_000), 273);
        assert_eq!(path.tp.snd_ssthresh, 273);
    }

    #[test]
    fn a_rise_that_goes_away_resumes_slow_start() {
        let mut path = Path::new(HyStartPlusPlus::new());
        for _ in 0..3 {
            path.round(40_000);
        }
        assert_eq!(path.round(46_000), 112);
        // seven ACKs of two packets in CSS and the eighth, which is seen before growth is full again: 16 / 4 = 4,
        // then 112 - 16 = 96
        assert_eq!(path.round(42_000), 212);
        assert_eq!(path.round(42_000), 424);
        assert!(path.part.css.is_none());
    }

    #[test]
    fn less_than_an_eighth_changes_nothing() {
        for (rtt_us, window) in [(44_900, 160), (45_000, 112)] {
            let mut path = Path::new(HyStartPlusPlus::new());
            for _ in 0..3 {
                path.round(40_000);
            }
            assert_eq!(path.round(rtt_us), window, "{rtt_us}");
        }
    }

    #[test]
    fn only_the_first_slow_start_has_it() {
        let mut h = HyStartPlusPlus::new();
        let mut tp = TcpSock::new(1448, 1000);
        tp.snd_ssthresh = 100;
        assert_eq!(h.before(&mut tp, 20), 20);
        h.on_sample(&mut tp, 1000);
        h.after(&mut tp);
        assert_eq!(h.rtt_sample_count, 0);
    }
}
