//! Slow starts that a window-based control can have in the place of its own: `cubic hystart++`, `reno search`.
//!
//! The words after the control's own name a slow start and its parameters. It watches the control's hooks, decides how
//! many of the packets that an ACK delivers the control sees, and ends slow start by setting ssthresh. The control's own
//! test for that end is off then ([`CongestionControl::without_slow_start`]); its growth is its own.
//!
//! | words | file |
//! |---|---|
//! | `hystart on`, `hystart off` | [`super::hystart`], Linux's; CUBIC reads these words itself |
//! | `hystart++` | [`hystart_plus_plus`], RFC 9406 |
//! | `search` | [`search`], draft-chung-ccwg-search |
//! | `suss` | [`suss`], the authors' patch of CUBIC |
//!
//! Departures: a control that replaces growth by [`CongestionControl::cong_control`] has none of these.
//!
//! Validation: the tests of each file, `tests/cc_hooks.rs` (any sequence of hooks).

mod hystart_plus_plus;
mod linux;
mod search;
mod suss;

use super::{CaEvent, Cc, CcError, CongestionControl, Lost};
use crate::cc::sock::{CaState, TcpSock};
use bakeoff_document::cc::{CcWords, SLOW_STARTS};

/// What a slow start may do. All calls after [`Part::init`] but [`Part::before`] and [`Part::timeout`] have defaults
/// that do nothing.
trait Part: Send {
    /// A new connection.
    fn init(&mut self, tp: &mut TcpSock);

    /// An RTO was taken as loss.
    fn timeout(&mut self, tp: &mut TcpSock);

    /// An RTT sample in slow start, in microseconds, before growth.
    fn on_sample(&mut self, _tp: &mut TcpSock, _rtt_us: u64) {}

    /// An ACK that may raise the window delivered `acked` packets: as many as the control shall see, which is not called
    /// for none.
    fn before(&mut self, tp: &mut TcpSock, acked: u32) -> u32;

    /// The same ACK, after growth.
    fn after(&mut self, _tp: &mut TcpSock) {}

    /// New data left.
    fn sent(&mut self, _tp: &mut TcpSock) {}

    /// A reduction begins, before the control's threshold.
    fn reduces(&mut self, _tp: &mut TcpSock) {}

    /// The window restarted after idling.
    fn idled(&mut self, _tp: &mut TcpSock) {}

    /// As [`CongestionControl::trace`].
    fn trace(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}

/// The words of the control, and those of the slow start that follow.
pub(super) fn split(text: &str) -> (&str, Option<CcWords<'_>>) {
    let own: &[&str] = if text.trim_start().starts_with("cubic") { &["hystart"] } else { &[] };
    let start = text
        .split_whitespace()
        .skip(1)
        .find(|word| SLOW_STARTS.contains(word) && !own.contains(word))
        .map(|word| word.as_ptr().addr() - text.as_ptr().addr());
    match start {
        Some(at) => {
            let control = text[..at].trim_end();
            (control, Some(CcWords::after(text, control)))
        }
        None => (text, None),
    }
}

/// `control` with the slow start of `words`.
///
/// # Errors
/// Unknown parameters; a control that is not window-based.
pub(super) fn replace(mut control: Cc, words: &mut CcWords) -> Result<Cc, CcError> {
    let name = words.parameter(SLOW_STARTS)?.unwrap_or_default();
    if control.has_cong_control() {
        return Err(words.error(&format!("'{name}' needs a control that grows by ACKs, such as cubic")));
    }
    let part: Box<dyn Part> = match name {
        "hystart" => match linux::Linux::parse(words)? {
            Some(linux) => Box::new(linux),
            None => return Ok(control),
        },
        "search" => Box::new(search::Search::parse(words)?),
        "suss" => Box::new(suss::Suss::parse(words)?),
        _ => Box::new(hystart_plus_plus::HyStartPlusPlus::parse(words)?),
    };
    control.without_slow_start();
    Ok(Cc::Started(Box::new(Started { control, part })))
}

/// A control with another slow start.
pub struct Started {
    control: Cc,
    part: Box<dyn Part>,
}

impl CongestionControl for Started {
    fn init(&mut self, tp: &mut TcpSock) {
        self.control.init(tp);
        self.part.init(tp);
    }

    fn ssthresh(&mut self, tp: &mut TcpSock) -> u32 {
        self.part.reduces(tp);
        self.control.ssthresh(tp)
    }

    fn cong_avoid(&mut self, tp: &mut TcpSock, acked: u32) {
        let acked = self.part.before(tp, acked);
        if acked > 0 {
            self.control.cong_avoid(tp, acked);
        }
        self.part.after(tp);
    }

    fn set_state(&mut self, tp: &mut TcpSock, state: CaState) {
        self.control.set_state(tp, state);
        if state == CaState::Loss {
            self.part.timeout(tp);
        }
    }

    fn cwnd_event(&mut self, tp: &mut TcpSock, event: CaEvent) {
        self.control.cwnd_event(tp, event);
        if event == CaEvent::CwndRestart {
            self.part.idled(tp);
        }
    }

    fn in_ack_event(&mut self, tp: &mut TcpSock, ece: bool) {
        self.control.in_ack_event(tp, ece);
    }

    fn pkts_acked(&mut self, tp: &mut TcpSock, acked: u32, rtt_us: Option<u64>) {
        self.control.pkts_acked(tp, acked, rtt_us);
        if let Some(rtt_us) = rtt_us
            && tp.in_slow_start()
        {
            self.part.on_sample(tp, rtt_us);
        }
    }

    fn marked_lost(&mut self, tp: &mut TcpSock, lost: &Lost) {
        self.control.marked_lost(tp, lost);
    }

    fn sent(&mut self, tp: &mut TcpSock) {
        self.control.sent(tp);
        self.part.sent(tp);
    }

    fn undo_cwnd(&mut self, tp: &mut TcpSock) -> u32 {
        self.control.undo_cwnd(tp)
    }

    fn min_tso_segs(&self, tp: &TcpSock) -> u32 {
        self.control.min_tso_segs(tp)
    }

    fn tso_segs(&self, tp: &TcpSock) -> Option<u32> {
        self.control.tso_segs(tp)
    }

    fn sndbuf_windows(&self) -> u32 {
        self.control.sndbuf_windows()
    }

    fn needs_ecn(&self) -> bool {
        self.control.needs_ecn()
    }

    fn needs_accecn(&self) -> bool {
        self.control.needs_accecn()
    }

    fn tells_state_changes(&self) -> bool {
        self.control.tells_state_changes()
    }

    fn ect1(&self) -> bool {
        self.control.ect1()
    }

    fn trace(&self) -> Vec<(&'static str, f64)> {
        let mut trace = self.control.trace();
        trace.extend(self.part.trace());
        trace
    }

    fn failure(&self) -> Option<String> {
        self.control.failure()
    }
}

#[cfg(test)]
mod tests {
    use super::super::CcEnv;
    use super::*;

    #[test]
    fn the_control_keeps_its_own_words_and_the_rest_is_the_slow_starts() {
        for (text, control, rest) in [
            ("cubic", "cubic", None),
            ("cubic beta 600 hystart off", "cubic beta 600 hystart off", None),
            ("cubic beta 600  search threshold 30", "cubic beta 600", Some("search")),
            ("reno hystart on", "reno", Some("hystart")),
            ("search", "search", None),
        ] {
            let (own, words) = split(text);
            let first = words.map(|mut w| w.parameter(SLOW_STARTS).ok().flatten().unwrap_or_default());
            assert_eq!((own, first), (control, rest), "{text}");
        }
    }

    #[test]
    fn cubics_own_test_is_off_with_another_slow_start() {
        // 100 ms after a least RTT of 20 ms: Linux's HyStart ends slow start at its ninth sample
        for (text, ends) in [("cubic", true), ("cubic hystart off", false), ("cubic hystart++", false)] {
            let Ok(mut cc) = Cc::build(text, CcEnv::default()) else { panic!("'{text}' was refused") };
            let mut tp = TcpSock::new(1448, 1000);
            cc.init(&mut tp);
            tp.snd_nxt = 100 * 1448;
            for rtt_us in [20_000].into_iter().chain([100_000; 9]) {
                tp.snd_una += 1448;
                cc.pkts_acked(&mut tp, 1, Some(rtt_us));
                // below 16 packets nothing is judged
                tp.snd_cwnd = 40;
            }
            assert_eq!(!tp.in_slow_start(), ends, "{text}");
        }
    }
}
