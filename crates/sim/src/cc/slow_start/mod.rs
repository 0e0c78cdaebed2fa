//! Parts that a window-based control can have in the place of its own: `cubic hystart++`, `reno search validation maxfs`.
//!
//! The words after the control's own name a part and its parameters. A part watches the control's hooks, decides how many
//! of the packets that an ACK delivers the control sees, and may set ssthresh and the window. A slow start ends by setting
//! ssthresh; the control's own test for that end is then off ([`CongestionControl::without_slow_start`]), and its growth
//! stays. At most one slow start and one rule of validation.
//!
//! | words | file |
//! |---|---|
//! | `hystart on`, `hystart off` | [`super::hystart`], Linux's; CUBIC reads these words itself |
//! | `hystart++` | [`hystart_plus_plus`], RFC 9406 |
//! | `resume` | [`resume`], Careful Resume (RFC 9959), beside the control's own slow start |
//! | `search` | [`search`], draft-chung-ccwg-search |
//! | `search linux` | [`search_linux`], the authors' module |
//! | `suss` | [`suss`], the authors' patch of CUBIC |
//! | `validation maxfs` | [`maxfs`], draft-ietf-ccwg-ratelimited-increase |
//! | `validation rfc7661` | [`rfc7661`] |
//! | `validation linux` | the sender's own (`tcp/cwnd_usage.rs`), the default |
//!
//! Departures: a control that replaces growth by [`CongestionControl::cong_control`] has none of these.
//!
//! Validation: the tests of each file, `tests/cc_hooks.rs` (any sequence of hooks).

mod hystart_plus_plus;
mod linux;
mod maxfs;
mod resume;
mod rfc7661;
mod search;
mod search_linux;
mod suss;

use super::{CaEvent, Cc, CcError, CongestionControl, Lost};
use crate::cc::sock::{CaState, TcpSock};
use bakeoff_document::cc::{CcWords, PARTS};

/// What a part may do. All calls after [`Part::init`] but [`Part::before`] and [`Part::timeout`] have defaults that do
/// nothing.
trait Part: Send {
    /// A new connection.
    fn init(&mut self, tp: &mut TcpSock);

    /// An RTO was taken as loss.
    fn timeout(&mut self, tp: &mut TcpSock);

    /// An RTT sample in slow start, in microseconds, before growth.
    fn on_sample(&mut self, _tp: &mut TcpSock, _rtt_us: u64) {}

    /// An ACK, in any state: what it delivers is counted, the state machine has not seen it.
    fn on_ack(&mut self, _tp: &mut TcpSock) {}

    /// An ACK that may raise the window delivered `acked` packets: as many as the control shall see, which is not called
    /// for none.
    fn before(&mut self, tp: &mut TcpSock, acked: u32) -> u32;

    /// The same ACK, after growth.
    fn after(&mut self, _tp: &mut TcpSock) {}

    /// New data left.
    fn sent(&mut self, _tp: &mut TcpSock) {}

    /// A reduction begins, before the control's threshold.
    fn reduces(&mut self, _tp: &mut TcpSock) {}

    /// The threshold, for which the control has `own`.
    fn ssthresh(&mut self, _tp: &mut TcpSock, own: u32) -> u32 {
        own
    }

    /// As [`CongestionControl::cwnd_event`].
    fn event(&mut self, _tp: &mut TcpSock, _event: CaEvent) {}

    /// As [`CongestionControl::trace`].
    fn trace(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}

/// What a control can have one of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    SlowStart,
    Validation,
}

/// The words of the control, and those of each part that follows.
pub(super) fn split(text: &str) -> (&str, Vec<CcWords<'_>>) {
    let own: &[&str] = if text.trim_start().starts_with("cubic") { &["hystart"] } else { &[] };
    let begins: Vec<usize> = text
        .split_whitespace()
        .skip(1)
        .filter(|word| PARTS.contains(word) && !own.contains(word))
        .map(|word| word.as_ptr().addr() - text.as_ptr().addr())
        .collect();
    let ends = begins.iter().skip(1).copied().chain([text.len()]);
    let parts = begins.iter().zip(ends).map(|(at, end)| CcWords::after(&text[..end], text[..*at].trim_end()));
    (begins.first().map_or(text, |at| text[..*at].trim_end()), parts.collect())
}

/// `control` with the part of `words`.
///
/// # Errors
/// Unknown parameters; a control that is not window-based, or that has such a part already.
pub(super) fn with(mut control: Cc, words: &mut CcWords) -> Result<Cc, CcError> {
    let name = words.parameter(PARTS)?.unwrap_or_default();
    if control.has_cong_control() {
        return Err(words.error(&format!("'{name}' needs a control that grows by ACKs, such as cubic")));
    }
    let kind = if name == "validation" { Kind::Validation } else { Kind::SlowStart };
    if let Cc::Started(started) = &control
        && started.has(kind)
    {
        return Err(words.error(&format!("'{name}': there is another such part; expected one")));
    }
    let part: Option<Box<dyn Part>> = match name {
        "hystart" => linux::Linux::parse(words)?.map(|part| Box::new(part) as _),
        "resume" => Some(Box::new(resume::Resume::parse(words)?)),
        "search" => Some(search::parse(words)?),
        "suss" => Some(Box::new(suss::Suss::parse(words)?)),
        "validation" => validation(words)?,
        _ => Some(Box::new(hystart_plus_plus::HyStartPlusPlus::parse(words)?)),
    };
    let Some(part) = part else { return Ok(control) };
    if kind == Kind::SlowStart && name != "resume" {
        control.without_slow_start();
    }
    Ok(Cc::Started(Box::new(Started { control, part, kind })))
}

/// `validation RULE`; none for the sender's own.
fn validation(words: &mut CcWords) -> Result<Option<Box<dyn Part>>, CcError> {
    let rule = words.one_of(&["linux", "maxfs", "rfc7661"])?;
    words.parameter(&[])?;
    Ok(match rule {
        "maxfs" => Some(Box::new(maxfs::MaxFs::new())),
        "rfc7661" => Some(Box::new(rfc7661::Rfc7661::new())),
        _ => None,
    })
}

/// A control with another part.
pub struct Started {
    control: Cc,
    part: Box<dyn Part>,
    kind: Kind,
}

impl Started {
    fn has(&self, kind: Kind) -> bool {
        self.kind == kind || matches!(&self.control, Cc::Started(inner) if inner.has(kind))
    }

    /// As [`Cc::sent`], which is to cost other controls no more than a test.
    #[inline(never)]
    pub(super) fn sent(&mut self, tp: &mut TcpSock) {
        self.control.sent(tp);
        self.part.sent(tp);
    }
}

impl CongestionControl for Started {
    fn init(&mut self, tp: &mut TcpSock) {
        self.control.init(tp);
        self.part.init(tp);
    }

    fn ssthresh(&mut self, tp: &mut TcpSock) -> u32 {
        self.part.reduces(tp);
        let own = self.control.ssthresh(tp);
        self.part.ssthresh(tp, own)
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
        self.part.event(tp, event);
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
        self.part.on_ack(tp);
    }

    fn marked_lost(&mut self, tp: &mut TcpSock, lost: &Lost) {
        self.control.marked_lost(tp, lost);
    }
    fn probe_repaired(&mut self, tp: &mut TcpSock, is_app_limited: bool) {
        self.control.probe_repaired(tp, is_app_limited);
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
        let cases: [(&str, &str, &[&str]); 6] = [
            ("cubic", "cubic", &[]),
            ("cubic beta 600 hystart off", "cubic beta 600 hystart off", &[]),
            ("cubic beta 600  search threshold 30", "cubic beta 600", &["search"]),
            ("reno hystart on", "reno", &["hystart"]),
            ("search", "search", &[]),
            ("reno  validation maxfs hystart++ l 4", "reno", &["validation", "hystart++"]),
        ];
        for (text, control, parts) in cases {
            let (own, words) = split(text);
            let first = words.into_iter().map(|mut w| w.parameter(PARTS).ok().flatten().unwrap_or_default());
            assert_eq!((own, first.collect::<Vec<_>>()), (control, parts.to_vec()), "{text}");
        }
    }

    #[test]
    fn every_registered_part_is_built_and_no_other_nor_two_of_a_kind() {
        for part in PARTS {
            let words = match *part {
                "hystart" => "hystart on",
                "resume" => "resume cwnd 200 rtt 50ms",
                "validation" => "validation maxfs",
                alone => alone,
            };
            let built = Cc::build(&format!("reno {words}"), CcEnv::default());
            assert!(matches!(built, Ok(Cc::Started(_))), "{words}");
        }
        for (text, says) in [
            ("reno search suss", "cc 'reno search suss': 'suss': there is another such part; expected one"),
            (
                "reno validation maxfs search validation rfc7661",
                "cc 'reno validation maxfs search validation rfc7661': 'validation': there is another such part; \
                 expected one",
            ),
            (
                "reno validation rfc",
                "cc 'reno validation rfc': validation: 'rfc' is not one of linux, maxfs, rfc7661",
            ),
            ("bbr resume", "cc 'bbr resume': 'resume' needs a control that grows by ACKs, such as cubic"),
            (
                "cubic resume cwnd 200",
                "cc 'cubic resume cwnd 200': 'resume' needs 'cwnd' and 'rtt', such as cwnd 200 rtt 50ms",
            ),
        ] {
            assert_eq!(Cc::build(text, CcEnv::default()).err().map(|e| e.0).as_deref(), Some(says));
        }
        assert!(matches!(Cc::build("reno validation linux", CcEnv::default()), Ok(Cc::Reno(_))));
    }

    #[test]
    fn cubics_own_test_is_off_with_another_slow_start() {
        // 100 ms after a least RTT of 20 ms: Linux's HyStart ends slow start at its ninth sample
        for (text, ends) in [
            ("cubic", true),
            ("cubic hystart off", false),
            ("cubic hystart++", false),
            ("cubic resume cwnd 200 rtt 50ms validation maxfs", true),
        ] {
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
