//! `search linux`: slow start ends when delivery falls behind twice that of one round trip before.
//!
//! Source: maryam-ataei/TCP_SS_SEARCH_ALG (89683e2), `tcp_cubic_search3.1.c`. Bins hold what was acknowledged so far, in 16
//! bits behind a common shift.
//!
//! | parameter | default | meaning |
//! |---|---|---|
//! | `threshold` | 35 | per cent that delivered data lacks of twice that of one round trip before |
//! | `rollback` | 0 | 1: the window loses what was delivered in the last two initial RTTs |
//!
//! Departures: RTTs right after a recovery count too; only CUBIC has an epoch to leave them out.
//!
//! Validation: the tests below.

use super::Part;
use crate::cc::sock::TcpSock;
use crate::cc::{CaEvent, CcError};
use bakeoff_document::cc::CcWords;

/// Bins of the window that is judged.
const WINDOW: u64 = 10;
/// Bins that are remembered; an RTT of all but this window less one is too long to judge.
const BINS: u64 = 25;
const EXTRA: u64 = BINS - WINDOW;
/// Least window after a rollback, in packets.
const MIN_CWND: u64 = 10;

/// Parameters and state; times in microseconds.
pub(super) struct SearchLinux {
    threshold: u64,
    rolls_back: bool,
    bins: Option<Bins>,
}

/// What was acknowledged by the ends of bins, in bytes `>> scale`.
struct Bins {
    length: u64,
    end: u64,
    index: u64,
    scale: u32,
    held: [u16; BINS as usize],
    /// Per cent that the last judged window lacked.
    lacking: u64,
}

impl Bins {
    /// From now on, of `length` microseconds.
    fn new(now: u64, length: u64, bytes: u64) -> Self {
        let mut bins =
            Bins { length, end: now + length, index: 0, scale: 0, held: [0; BINS as usize], lacking: 0 };
        bins.hold(0, bytes);
        bins
    }

    /// `search_update_bins`, `search_bit_shifting`
    fn hold(&mut self, bin: u64, bytes: u64) {
        while bytes >> self.scale > u64::from(u16::MAX) {
            self.scale += 1;
            for value in &mut self.held {
                *value >>= 1;
            }
        }
        self.held[(bin % BINS) as usize] = (bytes >> self.scale) as u16;
    }

    /// Before the first bin nothing was held yet.
    fn at(&self, bin: Option<u64>) -> u64 {
        bin.map_or(0, |bin| u64::from(self.held[(bin % BINS) as usize]))
    }

    /// Whether a bin ended, if not too many did to go on.
    fn pass(&mut self, now: u64, bytes: u64) -> Option<bool> {
        if now < self.end {
            return Some(false);
        }
        let passed = (now - self.end) / self.length + 1;
        if passed > WINDOW {
            return None;
        }
        let before = self.held[(self.index % BINS) as usize];
        for bin in self.index + 1..self.index + passed {
            self.held[(bin % BINS) as usize] = before;
        }
        self.index += passed;
        self.end += passed * self.length;
        self.hold(self.index, bytes);
        Some(true)
    }

    /// Acknowledged in the ten bins before `right`, of which the newest one counts by all but `part` per cent
    /// (`search_compute_delivered_window`).
    fn delivered(&self, right: u64, part: u64) -> u64 {
        let left = right.checked_sub(WINDOW);
        let (newest, oldest) = (right.checked_sub(1), left.and_then(|left| left.checked_sub(1)));
        self.at(newest) - self.at(left)
            + (self.at(left) - self.at(oldest)) * part / 100
            + (self.at(Some(right)) - self.at(newest)) * (100 - part) / 100
    }

    /// Per cent by which what was delivered falls short of twice what was delivered one RTT before; none if that is not
    /// known.
    fn lacking(&self, rtt_us: u64) -> Option<u64> {
        let (whole, part) = (rtt_us / self.length, rtt_us % self.length * 100 / self.length);
        let then = self.index.checked_sub(whole)?;
        if then < WINDOW || whole >= EXTRA - 1 {
            return None;
        }
        let twice = 2 * self.delivered(then, part);
        (twice.saturating_sub(self.delivered(self.index, 0)) * 100).checked_div(twice)
    }

    /// Acknowledged in the last two initial RTTs, in bytes.
    fn overshoot(&self) -> u64 {
        // 20 / 3.5 bins
        let since = self.index.saturating_sub(5);
        (self.at(Some(self.index)) - self.at(Some(since))) << self.scale
    }
}

impl SearchLinux {
    /// From the words after `linux`.
    pub fn parse(words: &mut CcWords) -> Result<Self, CcError> {
        let mut s = SearchLinux { threshold: 35, rolls_back: false, bins: None };
        while let Some(parameter) = words.parameter(&["threshold", "rollback"])? {
            match parameter {
                "threshold" => s.threshold = words.number(1..=100)?.into(),
                _ => s.rolls_back = words.switch()?,
            }
        }
        Ok(s)
    }
}

impl Part for SearchLinux {
    fn init(&mut self, _tp: &mut TcpSock) {
        self.bins = None;
    }

    fn timeout(&mut self, _tp: &mut TcpSock) {
        self.bins = None;
    }

    fn event(&mut self, _tp: &mut TcpSock, event: CaEvent) {
        if event == CaEvent::CwndRestart {
            self.bins = None;
        }
    }

    /// `search_update`
    fn on_sample(&mut self, tp: &mut TcpSock, rtt_us: u64) {
        let now = tp.now.as_us();
        let Some(bins) = &mut self.bins else {
            // 3.5 RTTs in ten bins
            let length = (rtt_us * 350 / 100 / WINDOW).max(1);
            self.bins = Some(Bins::new(now, length, tp.snd_una));
            return;
        };
        match bins.pass(now, tp.snd_una) {
            None => self.bins = None,
            Some(false) => {}
            Some(true) if tp.app_limited != 0 => *bins = Bins::new(now, bins.length, tp.snd_una),
            Some(true) => {
                let Some(lacking) = bins.lacking(rtt_us) else { return };
                bins.lacking = lacking;
                if lacking >= self.threshold {
                    if self.rolls_back {
                        let over = bins.overshoot() / u64::from(tp.mss);
                        tp.snd_cwnd = u64::from(tp.snd_cwnd).saturating_sub(over).max(MIN_CWND) as u32;
                    }
                    tp.snd_ssthresh = tp.snd_cwnd;
                    self.bins = None;
                }
            }
        }
    }

    fn before(&mut self, _tp: &mut TcpSock, acked: u32) -> u32 {
        acked
    }

    fn trace(&self) -> Vec<(&'static str, f64)> {
        vec![("search_lacking", self.bins.as_ref().map_or(0.0, |bins| bins.lacking as f64))]
    }
}

#[cfg(test)]
mod tests {
    use super::super::search::tests::{doubling, queueing};
    use super::*;
    use crate::base::units::Time;

    /// Bins of 35 ms from time 0.
    fn bins() -> Bins {
        Bins::new(0, 35_000, 0)
    }

    /// Ends the next bin.
    fn end(bins: &mut Bins, bytes: u64) {
        assert_eq!(bins.pass(bins.end, bytes), Some(true));
    }

    #[test]
    fn a_bin_ends_at_its_time_and_eleven_are_too_many() {
        for (us, kept) in
            [(34_999, Some(false)), (35_000, Some(true)), (384_999, Some(true)), (385_000, None)]
        {
            assert_eq!(bins().pass(us, 5), kept, "{us}");
        }
        let mut b = bins();
        end(&mut b, 3);
        b.pass(b.end + 2 * b.length, 9);
        assert_eq!([1, 2, 3, 4].map(|i| b.at(Some(i))), [3, 3, 3, 9]);
    }

    #[test]
    fn bins_of_16_bits_are_shifted_together() {
        let mut b = bins();
        end(&mut b, 65_535);
        assert_eq!((b.scale, b.at(Some(1))), (0, 65_535));
        // 65536 / 2, 65535 / 2
        end(&mut b, 65_536);
        assert_eq!((b.scale, b.at(Some(1)), b.at(Some(2))), (1, 32_767, 32_768));
        end(&mut b, 524_288);
        assert_eq!((b.scale, b.at(Some(2)), b.at(Some(3))), (4, 4_096, 32_768));
    }

    #[test]
    fn steady_delivery_lacks_half_of_twice_as_much() {
        let mut b = bins();
        for bin in 1..=20 {
            end(&mut b, 1000 * bin);
            assert_eq!(b.lacking(100_000).is_some(), bin >= 12, "ten bins, and two of the RTT: {bin}");
        }
        assert_eq!(b.lacking(100_000), Some(50));
        for (rtt_us, judged) in [(350_000, true), (385_000, false)] {
            assert_eq!(b.lacking(rtt_us).is_some(), judged, "idx 20, 10 or 11 bins before: {rtt_us}");
        }
        for bin in 21..=28 {
            end(&mut b, 1000 * bin);
        }
        for (rtt_us, judged) in [(489_999, true), (490_000, false)] {
            assert_eq!(b.lacking(rtt_us).is_some(), judged, "13 bins, or 14: {rtt_us}");
        }
    }

    #[test]
    fn the_older_window_lies_between_bins_by_the_part_of_the_rtt() {
        // k^2 until bin k: ten bins end with 20 k - 100. At bin 28 and 120 ms (3 bins and 42 %):
        // p = 25: 24^2 - 15^2 + 29 * 0.42 + 49 * 0.58 = 351 + 12 + 28 = 391; now 20 * 28 - 100 = 460
        let mut b = bins();
        for bin in 1..=28 {
            end(&mut b, bin * bin);
        }
        // (782 - 460) * 100 / 782
        assert_eq!(b.lacking(120_000), Some(41));
    }

    #[test]
    fn a_doubling_flow_is_judged_nine_bins_after_the_path_is_full() {
        for (c, lacks, exit) in [(16.0, vec![1, 6, 14, 23, 28, 32, 36], 25), (20.0, vec![], 29)] {
            let mut b = bins();
            let mut found = Vec::new();
            for (bin, (delivered, _)) in (1..).zip(doubling(c)) {
                end(&mut b, delivered);
                let lacking = b.lacking(100_000).unwrap_or_default();
                if bin >= 19 {
                    found.push(lacking);
                }
                if lacking >= 35 {
                    assert_eq!(bin, exit);
                    break;
                }
            }
            assert!(found.starts_with(&lacks), "{found:?}");
        }
    }

    /// Twenty bins of which each delivers 100 packets of 1000 bytes.
    fn steady(words: &str, app_limited: u64) -> (SearchLinux, TcpSock) {
        let Ok(mut search) = SearchLinux::parse(&mut CcWords::new(words)) else { panic!("refused") };
        let mut tp = TcpSock::new(1000, 1000);
        search.init(&mut tp);
        tp.snd_cwnd = 1200;
        tp.app_limited = app_limited;
        for bin in 0..=20 {
            tp.now = Time::from_ms(bin * 35);
            tp.snd_una = 100_000 * bin;
            if tp.in_slow_start() {
                search.on_sample(&mut tp, 100_000);
            }
        }
        (search, tp)
    }

    #[test]
    fn slow_start_ends_with_the_window_as_it_is_or_without_two_round_trips_of_delivery() {
        let (_, tp) = steady("linux", 0);
        assert_eq!((tp.snd_ssthresh, tp.snd_cwnd), (1200, 1200));
        assert!(steady("linux threshold 51", 0).1.in_slow_start());
        // judged in bin 12, 1.2 MB at a shift of 5: five bins of 100 packets, less the bits that were shifted out
        let (_, tp) = steady("linux rollback 1", 0);
        assert_eq!((tp.snd_ssthresh, tp.snd_cwnd), (700, 700));
    }

    #[test]
    fn an_application_that_limits_begins_bins_of_the_same_length_anew() {
        let (search, tp) = steady("linux", 1);
        assert!(tp.in_slow_start());
        let Some(bins) = search.bins else { panic!("no bins") };
        assert_eq!((bins.index, bins.length, bins.end), (0, 35_000, 735_000));
    }

    #[test]
    fn a_growing_queue_is_found_later_than_by_what_was_sent() {
        let judged = |buffer| {
            let mut b = bins();
            let mut last = (0, 0);
            for (delivered, _, rtt) in queueing(buffer) {
                end(&mut b, delivered);
                last = (b.lacking(rtt * 1000).unwrap_or_default(), rtt);
                if last.0 >= 35 {
                    break;
                }
            }
            last
        };
        // a queue of 2 RTTs overflows at 33 per cent
        assert_eq!([1.0, 2.0].map(judged), [(9, 194), (33, 299)]);
        assert_eq!([3.0, 4.0].map(judged), [(36, 317); 2]);
    }
}
