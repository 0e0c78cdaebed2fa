//! `search`: slow start ends when delivery falls behind what was sent one round trip before.
//!
//! Source: draft-chung-ccwg-search-09 as Neqo has it (`neqo-transport/src/cc/search.rs`): delivered against sent, both
//! over a window of 3.5 initial RTTs in ten bins.
//!
//! | parameter | default | meaning |
//! |---|---|---|
//! | `threshold` | 26 | per cent that delivered data lacks |
//! | `drain` | 0 | 1: the window shrinks by a packet for three delivered ones, to what was delivered in an initial RTT (the draft); 0: it stays (Neqo) |
//!
//! The RTT is the latest one, so that a queue that grows moves the window of what was sent back in time as far as what is
//! delivered falls behind. Where the window doubles per RTT, 26 per cent lack once the queue holds about 1.7 initial RTTs:
//! a buffer of 1 BDP overflows at 9 per cent, and loss ends slow start.
//!
//! Departures: delivered data are counted in whole packets. An RTO or a restart after idling begins it anew.
//!
//! Validation: the tests below.

use super::Part;
use super::search_linux::SearchLinux;
use crate::base::units::Time;
use crate::cc::sock::TcpSock;
use crate::cc::{CaEvent, CcError};
use bakeoff_document::cc::CcWords;

/// Bins of the window that is judged.
const WINDOW: u64 = 10;
/// Bins that the RTT may be long beyond it.
const EXTRA: u64 = 15;
const ACKED_SLOTS: u64 = WINDOW + 1;
const SENT_SLOTS: u64 = WINDOW + 1 + EXTRA;
/// Least target of the drain, in packets.
const MIN_TARGET: u32 = 10;

/// Parameters and state.
pub(super) struct Search {
    threshold: u64,
    drains: bool,
    bins: Option<Bins>,
    /// The latest RTT in nanoseconds; 0 before the first.
    rtt_ns: u64,
    /// The window to reach, and the packets delivered since the last step towards it.
    drain: Option<(u32, u32)>,
}

/// Cumulative bytes at the ends of bins.
struct Bins {
    /// Nanoseconds.
    length: u64,
    end: u64,
    /// The bin that ended last.
    index: u64,
    acked: [u64; ACKED_SLOTS as usize],
    sent: [u64; SENT_SLOTS as usize],
    /// Per cent that the last judged window lacked.
    lacking: u64,
}

impl Bins {
    /// From the first ACK, whose RTT is `rtt_ns`: 3.5 RTTs in ten bins.
    fn new(now: Time, rtt_ns: u64, acked: u64, sent: u64) -> Self {
        let length = (rtt_ns * 350 / 100 / WINDOW).max(1);
        let mut bins = Bins {
            length,
            end: now.0 + length,
            index: 0,
            acked: [0; ACKED_SLOTS as usize],
            sent: [0; SENT_SLOTS as usize],
            lacking: 0,
        };
        (bins.acked[0], bins.sent[0]) = (acked, sent);
        bins
    }

    fn acked_at(&self, bin: u64) -> u64 {
        self.acked[(bin % ACKED_SLOTS) as usize]
    }

    fn sent_at(&self, bin: u64) -> u64 {
        self.sent[(bin % SENT_SLOTS) as usize]
    }

    /// Whether a bin ended, if not too many did to go on.
    fn pass(&mut self, now: Time, acked: u64, sent: u64) -> Option<bool> {
        if now.0 <= self.end {
            return Some(false);
        }
        let passed = (now.0 - self.end) / self.length + 1;
        if passed > WINDOW {
            return None;
        }
        let before = (self.acked_at(self.index), self.sent_at(self.index));
        for bin in 1..=passed {
            let (acked, sent) = if bin == passed { (acked, sent) } else { before };
            let at = self.index + bin;
            self.acked[(at % ACKED_SLOTS) as usize] = acked;
            self.sent[(at % SENT_SLOTS) as usize] = sent;
        }
        self.index += passed;
        self.end += passed * self.length;
        Some(true)
    }

    /// Per cent by which what was delivered falls short of what had been sent an RTT before; none if that is not known.
    fn lacking(&self, rtt_ns: u64) -> Option<u64> {
        let (whole, part) = (rtt_ns / self.length, rtt_ns % self.length * 100 / self.length);
        let then = self.index.checked_sub(whole)?;
        if then <= WINDOW || whole >= EXTRA {
            return None;
        }
        let delivered = self.acked_at(self.index) - self.acked_at(self.index - WINDOW);
        let sent = |bin| self.sent_at(bin) - self.sent_at(bin - WINDOW);
        let sent = (sent(then - 1) * part + sent(then) * (100 - part)) / 100;
        (sent.saturating_sub(delivered) * 100).checked_div(sent)
    }

    /// Delivered in the bins of the initial RTT.
    fn delivered_in_rtt(&self) -> u64 {
        // an RTT is 10 / 3.5 bins
        self.acked_at(self.index) - self.acked_at(self.index.saturating_sub(3))
    }
}

/// From the words after `search`: the draft's form, or that of `linux`.
pub(super) fn parse(words: &mut CcWords) -> Result<Box<dyn Part>, CcError> {
    Ok(match words.parameter(&["linux", "threshold", "drain"])? {
        Some("linux") => Box::new(SearchLinux::parse(words)?),
        parameter => Box::new(Search::parse(words, parameter)?),
    })
}

impl Search {
    fn new() -> Self {
        Search { threshold: 26, drains: false, bins: None, rtt_ns: 0, drain: None }
    }

    /// From the words after the name, of which `parameter` is the first.
    fn parse<'a>(words: &mut CcWords<'a>, mut parameter: Option<&'a str>) -> Result<Self, CcError> {
        let mut s = Search::new();
        while let Some(word) = parameter {
            match word {
                "threshold" => s.threshold = words.number(1..=100)?.into(),
                _ => s.drains = words.switch()?,
            }
            parameter = words.parameter(&["threshold", "drain"])?;
        }
        Ok(s)
    }

    fn forget(&mut self) {
        self.bins = None;
        self.drain = None;
        self.rtt_ns = 0;
    }

    fn slow_start(&mut self, tp: &mut TcpSock) {
        if self.rtt_ns == 0 {
            return;
        }
        let (acked, sent) = (tp.delivered * u64::from(tp.mss), tp.snd_nxt);
        let Some(bins) = &mut self.bins else {
            self.bins = Some(Bins::new(tp.now, self.rtt_ns, acked, sent));
            return;
        };
        match bins.pass(tp.now, acked, sent) {
            None => self.bins = None,
            Some(true) if tp.app_limited == 0 => {
                let Some(lacking) = bins.lacking(self.rtt_ns) else { return };
                bins.lacking = lacking;
                if lacking >= self.threshold {
                    tp.snd_ssthresh = tp.snd_cwnd;
                    if self.drains {
                        let target = (bins.delivered_in_rtt() / u64::from(tp.mss)) as u32;
                        let target = target.max(MIN_TARGET).min(tp.snd_cwnd);
                        tp.snd_ssthresh = target;
                        self.drain = Some((target, 0));
                    }
                    self.bins = None;
                }
            }
            Some(_) => {}
        }
    }
}

impl Part for Search {
    fn init(&mut self, _tp: &mut TcpSock) {
        self.forget();
    }

    fn timeout(&mut self, _tp: &mut TcpSock) {
        self.forget();
    }

    fn event(&mut self, _tp: &mut TcpSock, event: CaEvent) {
        if event == CaEvent::CwndRestart {
            self.forget();
        }
    }

    fn reduces(&mut self, _tp: &mut TcpSock) {
        self.forget();
    }

    fn on_sample(&mut self, _tp: &mut TcpSock, rtt_us: u64) {
        self.rtt_ns = rtt_us * 1_000;
    }

    fn before(&mut self, tp: &mut TcpSock, acked: u32) -> u32 {
        if tp.in_slow_start() {
            self.slow_start(tp);
        }
        let Some((target, delivered)) = &mut self.drain else { return acked };
        let target = *target;
        *delivered += acked;
        tp.snd_cwnd = tp.snd_cwnd.saturating_sub(*delivered / 3).max(target);
        *delivered %= 3;
        if tp.snd_cwnd <= target {
            self.drain = None;
        }
        0
    }

    fn trace(&self) -> Vec<(&'static str, f64)> {
        vec![("search_lacking", self.bins.as_ref().map_or(0.0, |bins| bins.lacking as f64))]
    }
}

#[cfg(test)]
pub(in crate::cc::slow_start) mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Bins of 35 ms from time 0, nothing sent or delivered yet.
    fn bins() -> Bins {
        Bins::new(Time::ZERO, 100 * MS, 0, 0)
    }

    /// Ends the next bin a nanosecond after its time.
    fn end(bins: &mut Bins, acked: u64, sent: u64) {
        let now = Time(bins.end + 1);
        assert_eq!(bins.pass(now, acked, sent), Some(true));
    }

    #[test]
    fn a_bin_is_035_of_the_first_rtt_and_ends_after_its_time() {
        let mut b = bins();
        assert_eq!((b.length, b.end), (35 * MS, 35 * MS));
        assert_eq!(b.pass(Time(35 * MS), 1, 1), Some(false));
        assert_eq!(b.pass(Time(35 * MS + 1), 1, 1), Some(true));
        assert_eq!((b.index, b.end), (1, 70 * MS));
    }

    #[test]
    fn ten_bins_may_pass_between_acks_but_not_eleven() {
        // (t - 35 ms) / 35 ms + 1 is 10 at 350 ms and more, 11 at 385 ms
        for (ms, kept) in [(384, Some(true)), (385, None)] {
            assert_eq!(bins().pass(Time(ms * MS), 5, 6), kept, "{ms}");
        }
        let mut b = bins();
        end(&mut b, 3, 4);
        b.pass(Time(b.end + 2 * b.length), 9, 10);
        // two bins without an ACK hold what was known before
        assert_eq!([1, 2, 3, 4].map(|i| (b.acked_at(i), b.sent_at(i))), [(3, 4), (3, 4), (3, 4), (9, 10)]);
    }

    #[test]
    fn judging_begins_when_the_window_an_rtt_ago_is_complete() {
        // rtt 100, 120, 175, 300 ms: 2, 3, 5, 8 whole bins; then more than ten bins before
        for (rtt, first) in [(100, 13), (120, 14), (175, 16), (300, 19)] {
            let mut b = bins();
            for bin in 1..=first {
                end(&mut b, 1000 * bin, 1000 * bin);
                assert_eq!(b.lacking(rtt * MS).is_some(), bin == first, "{rtt} ms, bin {bin}");
            }
        }
    }

    #[test]
    fn the_sent_window_lies_between_bins_by_the_part_of_the_rtt() {
        // sent k^2: windows of ten bins end with 20 k - 100. At bin 28 and 120 ms (3 bins and 42 %):
        // (20 * 24 - 100) * 0.42 + (20 * 25 - 100) * 0.58 = 391.6; delivered 10 k - 10 (k - 10) = 100
        let mut b = bins();
        for bin in 1..=28 {
            end(&mut b, 10 * bin, bin * bin);
        }
        // (391 - 100) * 100 / 391
        assert_eq!(b.lacking(120 * MS), Some(74));
    }

    #[test]
    fn what_lacks_is_in_whole_per_cent() {
        for (delivered, lacking) in [(1000, 0), (741, 25), (740, 26), (1200, 0)] {
            let mut b = bins();
            for bin in 1..=20 {
                end(&mut b, delivered * bin, 1000 * bin);
            }
            assert_eq!(b.lacking(100 * MS), Some(lacking), "{delivered}");
        }
    }

    #[test]
    fn an_rtt_of_15_bins_is_too_long_to_judge() {
        let mut b = bins();
        for bin in 1..=28 {
            end(&mut b, 1000 * bin, 1000 * bin);
        }
        for (rtt, judged) in [(490, true), (525, false), (600, false)] {
            assert_eq!(b.lacking(rtt * MS).is_some(), judged, "{rtt}");
        }
    }

    /// A flow whose window doubles per RTT and whose delivery stops growing `c` bins after the start: delivered and sent
    /// by the end of each bin.
    pub(in crate::cc::slow_start) fn doubling(c: f64) -> Vec<(u64, u64)> {
        let grown = |bins: f64| (1000.0 * 2_f64.powf(0.35 * bins)) as u64;
        let (mut acked, mut sent) = (0, 0);
        (1..=40)
            .map(|k| {
                let k = f64::from(k);
                sent += grown(k);
                acked += grown((k - 100.0 / 35.0).min(c));
                (acked, sent)
            })
            .collect()
    }

    #[test]
    fn a_doubling_flow_is_judged_seven_bins_after_the_path_is_full() {
        for (c, lacks, exit) in [(16.0, vec![1, 6, 15, 24, 34], 23), (20.0, vec![], 27)] {
            let mut b = bins();
            let mut found = Vec::new();
            for (bin, (acked, sent)) in (1..).zip(doubling(c)) {
                end(&mut b, acked, sent);
                let lacking = b.lacking(100 * MS).unwrap_or_default();
                if bin >= 19 {
                    found.push(lacking);
                }
                if lacking >= 26 {
                    assert_eq!(bin, exit);
                    break;
                }
            }
            assert!(found.starts_with(&lacks), "{found:?}");
        }
    }

    /// The same where the queue grows, and the RTT in ms per bin. Times are in initial RTTs of 100 ms since the path is
    /// full, amounts in what was delivered until then. Delivered: 2^t, then 1 + t ln 2. Each ACK lets two packets out, so
    /// sent is twice that. What is delivered at t was sent when sent was as much: its RTT, until the buffer overflows.
    pub(in crate::cc::slow_start) fn queueing(buffer: f64) -> Vec<(u64, u64, u64)> {
        let ln2 = std::f64::consts::LN_2;
        let delivered = |t: f64| if t < 0.0 { 2_f64.powf(t) } else { 1.0 + t * ln2 };
        let sent_at = |data: f64| if data < 2.0 { data.log2() - 1.0 } else { (data / 2.0 - 1.0) / ln2 };
        let bytes = |data: f64| (data * 1e9) as u64;
        let mut found = Vec::new();
        for bin in -40..=40 {
            let t = f64::from(bin) * 0.35;
            let rtt = t - sent_at(delivered(t));
            if rtt > 1.0 + buffer {
                break;
            }
            found.push((bytes(delivered(t)), bytes(2.0 * delivered(t)), (rtt * 100.0) as u64));
        }
        found
    }

    #[test]
    fn a_growing_queue_is_judged_by_the_latest_rtt_and_found_when_it_holds_about_two_rtts() {
        let judged = |buffer| {
            let mut b = bins();
            let mut last = (0, 0);
            for (delivered, sent, rtt) in queueing(buffer) {
                end(&mut b, delivered, sent);
                last = (b.lacking(rtt * MS).unwrap_or_default(), rtt);
                if last.0 >= 26 {
                    break;
                }
            }
            last
        };
        // 1 BDP: full at 0.9 RTTs of queue with 9 per cent; from 1.7 on it is found
        assert_eq!([1.0, 1.5].map(judged), [(9, 194), (20, 247)]);
        assert_eq!([2.0, 4.0].map(judged), [(29, 282); 2]);
    }

    /// Twenty bins of which 740 of 1000 packets are delivered, in which the application is the limit or not.
    fn lagging(words: &str, app_limited: u64) -> (Search, TcpSock, u32) {
        let words = &mut CcWords::new(words);
        let Ok(first) = words.parameter(&["threshold", "drain"]) else { panic!("refused") };
        let Ok(mut search) = Search::parse(words, first) else { panic!("refused") };
        let mut tp = TcpSock::new(1000, 1000);
        search.init(&mut tp);
        tp.snd_cwnd = 5000;
        tp.app_limited = app_limited;
        let mut seen = 0;
        for bin in 0..=20 {
            tp.now = Time(bin * 35 * MS + bin.min(1));
            tp.delivered = 740 * bin;
            tp.snd_nxt = 1_000_000 * bin;
            if tp.in_slow_start() {
                search.on_sample(&mut tp, 100_000);
            }
            seen = search.before(&mut tp, 30);
        }
        (search, tp, seen)
    }

    #[test]
    fn slow_start_ends_with_the_window_as_it_is_unless_the_application_is_the_limit() {
        let (_, tp, seen) = lagging("search", 0);
        assert_eq!((tp.snd_ssthresh, tp.snd_cwnd, seen), (5000, 5000, 30));
        assert!(lagging("search", 1).1.in_slow_start());
        assert!(lagging("search threshold 27", 0).1.in_slow_start());
    }

    #[test]
    fn a_drain_takes_a_packet_for_three_down_to_what_the_path_delivered_in_an_rtt() {
        let (mut search, mut tp, seen) = lagging("search drain 1", 0);
        // three bins of 740 packets; judged in bin 13, and 30 / 3 in each of the eight bins since
        assert_eq!((tp.snd_ssthresh, tp.snd_cwnd, seen), (2220, 4920, 0));
        assert_eq!(search.before(&mut tp, 4), 0);
        assert_eq!(tp.snd_cwnd, 4919);
        assert_eq!(search.before(&mut tp, 2), 0);
        assert_eq!(tp.snd_cwnd, 4918, "the fourth packet is remembered");
        search.before(&mut tp, 60_000);
        assert_eq!(tp.snd_cwnd, 2220);
        assert_eq!(search.before(&mut tp, 7), 7);
        search.drain = Some((10, 0));
        search.reduces(&mut tp);
        assert_eq!(search.before(&mut tp, 7), 7, "a reduction ends it");
    }
}
