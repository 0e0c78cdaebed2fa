//! Congestion controls behind the kernel's `tcp_congestion_ops`: same hook names, no-op defaults,
//! one file per algorithm.

mod classic_ecn;
mod cubic;
mod hystart;
mod prague;
mod registry;
mod reno;
mod rtt_scaling;
mod words;

use crate::rng::Stream;
use crate::tcp::sock::{CaState, TcpSock};
use crate::units::Time;

pub use cubic::Cubic;
pub use prague::Prague;
pub use registry::Registry;
pub use reno::Reno;
pub use words::Words;

/// `tcp_ca_event`: what a module may be told apart from ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaEvent {
    /// First transmission when nothing is in flight.
    TxStart,
    /// The window restarted after idling.
    CwndRestart,
    /// A CWR or Recovery episode ended.
    CompleteCwr,
    /// An RTO was taken as loss.
    Loss,
}

/// What the ACK being handled told (`rate_sample` plus the flags of `in_ack_event`).
#[derive(Clone, Copy, Debug, Default)]
pub struct RateSample {
    /// Packets newly delivered (cumulatively or by SACK) by this ACK.
    pub acked_sacked: u32,
    /// Of these, reported with CE.
    pub delivered_ce: u32,
    /// Whether the ACK brought a congestion echo (flag ECE: RFC 3168 echo or a rise of ACE).
    pub ece: bool,
    /// Packets newly marked lost while handling it.
    pub losses: u32,
    /// RTT of the newest packet acknowledged, in microseconds; none if it was retransmitted.
    pub rtt_us: Option<u64>,
    /// Bandwidth sample: packets delivered over `interval_us`; zero interval means no sample.
    pub delivered: u32,
    /// See `delivered`.
    pub interval_us: u64,
    /// Delivered count stored in the packet that made the sample.
    pub prior_delivered: u64,
    /// In flight before this ACK.
    pub prior_in_flight: u32,
    /// Whether the sample was taken while the application was the limit.
    pub is_app_limited: bool,
}

/// A congestion control. Hooks are called in the order of models.md 1.3; all have defaults that do
/// nothing, or what Reno does.
pub trait CongestionControl {
    /// A new connection; ECN is already negotiated.
    fn init(&mut self, _tp: &mut TcpSock) {}

    /// The threshold after a loss or a congestion echo. Must be at least 2.
    fn ssthresh(&mut self, tp: &mut TcpSock) -> u32;

    /// Growth: `acked` packets were delivered. Called only if [`Self::has_cong_control`] is false,
    /// the ACK may raise the window and no reduction is under way.
    fn cong_avoid(&mut self, _tp: &mut TcpSock, _acked: u32) {}

    /// Whether the module replaces growth, PRR and pacing by [`Self::cong_control`].
    fn has_cong_control(&self) -> bool {
        false
    }

    /// Full control after every ACK.
    fn cong_control(&mut self, _tp: &mut TcpSock, _sample: &RateSample) {}

    /// The state machine is about to go to `state`; `tp.ca_state` still holds the old one.
    fn set_state(&mut self, _tp: &mut TcpSock, _state: CaState) {}

    /// Something happened.
    fn cwnd_event(&mut self, _tp: &mut TcpSock, _event: CaEvent) {}

    /// An ACK, after the retransmit queue was cleaned and before the state machine; `ece` as in
    /// [`RateSample::ece`].
    fn in_ack_event(&mut self, _tp: &mut TcpSock, _ece: bool) {}

    /// Packets left the retransmit queue; `rtt_us` is the newest one's RTT, if it can be known.
    fn pkts_acked(&mut self, _tp: &mut TcpSock, _acked: u32, _rtt_us: Option<u64>) {}

    /// The window after a reduction proved spurious.
    fn undo_cwnd(&mut self, tp: &mut TcpSock) -> u32 {
        tp.snd_cwnd.max(tp.prior_cwnd)
    }

    /// Least segments of a TSO packet.
    fn min_tso_segs(&self, _tp: &TcpSock) -> u32 {
        2
    }

    /// The module's own TSO goal in segments; `None` takes Linux's autosizing.
    fn tso_segs(&self, _tp: &TcpSock) -> Option<u32> {
        None
    }

    /// Needs ECN and asks for it whatever `tcp_ecn` says (`TCP_CONG_NEEDS_ECN`).
    fn needs_ecn(&self) -> bool {
        false
    }

    /// Sends ECT(1) in place of ECT(0).
    fn ect1(&self) -> bool {
        false
    }

    /// The module's internals, by name, for traces.
    fn trace(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    /// What went wrong inside the module, if anything did: the run ends with it.
    fn failure(&self) -> Option<String> {
        None
    }
}

/// What a module may need to know when it is made.
pub struct CcEnv {
    /// Its own random stream.
    pub rng: Stream,
    /// The time of the connection.
    pub now: Time,
}

/// A name or parameter that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CcError(pub String);

/// The known modules. An enum for the same reason as [`crate::qdisc::Kind`].
pub enum Cc {
    /// `cubic`
    Cubic(Cubic),
    /// `prague`
    Prague(Prague),
    /// `reno`
    Reno(Reno),
    /// Somebody's own.
    User(Box<dyn CongestionControl + Send>),
}

/// Calls a hook on whichever module it is.
macro_rules! dispatch {
    ($self:expr, $c:ident => $e:expr) => {
        match $self {
            Cc::Cubic($c) => $e,
            Cc::Prague($c) => $e,
            Cc::Reno($c) => $e,
            Cc::User($c) => $e,
        }
    };
}

impl Cc {
    /// Makes the module that `text` names: `NAME[@VERSION] [PARAMETER VALUE]…`.
    ///
    /// # Errors
    /// Unknown names, versions and parameters, with what is known and what was probably meant.
    pub fn build(text: &str, env: CcEnv) -> Result<Cc, CcError> {
        Cc::build_with(text, env, &Registry::default())
    }

    /// The same, with names from `outside` before the known ones.
    ///
    /// # Errors
    /// As [`Cc::build`], and what `outside` refuses.
    pub fn build_with(text: &str, env: CcEnv, outside: &Registry) -> Result<Cc, CcError> {
        match outside.make(text, env) {
            Ok(made) => made.map(Cc::User),
            Err(env) => Cc::build_known(text, env),
        }
    }

    fn build_known(text: &str, _env: CcEnv) -> Result<Cc, CcError> {
        let words = &mut Words::new(text);
        match words.name() {
            "cubic" => Ok(Cc::Cubic(Cubic::parse(words)?)),
            "prague" => Ok(Cc::Prague(Prague::parse(words)?)),
            "reno" => Ok(Cc::Reno(Reno::parse(words)?)),
            _ => Err(words.unknown_name(NAMES)),
        }
    }
}

impl CongestionControl for Cc {
    fn init(&mut self, tp: &mut TcpSock) {
        dispatch!(self, c => c.init(tp));
    }
    fn ssthresh(&mut self, tp: &mut TcpSock) -> u32 {
        dispatch!(self, c => c.ssthresh(tp))
    }
    fn cong_avoid(&mut self, tp: &mut TcpSock, acked: u32) {
        dispatch!(self, c => c.cong_avoid(tp, acked));
    }
    fn has_cong_control(&self) -> bool {
        dispatch!(self, c => c.has_cong_control())
    }
    fn cong_control(&mut self, tp: &mut TcpSock, sample: &RateSample) {
        dispatch!(self, c => c.cong_control(tp, sample));
    }
    fn set_state(&mut self, tp: &mut TcpSock, state: CaState) {
        dispatch!(self, c => c.set_state(tp, state));
    }
    fn cwnd_event(&mut self, tp: &mut TcpSock, event: CaEvent) {
        dispatch!(self, c => c.cwnd_event(tp, event));
    }
    fn in_ack_event(&mut self, tp: &mut TcpSock, ece: bool) {
        dispatch!(self, c => c.in_ack_event(tp, ece));
    }
    fn pkts_acked(&mut self, tp: &mut TcpSock, acked: u32, rtt_us: Option<u64>) {
        dispatch!(self, c => c.pkts_acked(tp, acked, rtt_us));
    }
    fn undo_cwnd(&mut self, tp: &mut TcpSock) -> u32 {
        dispatch!(self, c => c.undo_cwnd(tp))
    }
    fn min_tso_segs(&self, tp: &TcpSock) -> u32 {
        dispatch!(self, c => c.min_tso_segs(tp))
    }
    fn tso_segs(&self, tp: &TcpSock) -> Option<u32> {
        dispatch!(self, c => c.tso_segs(tp))
    }
    fn needs_ecn(&self) -> bool {
        dispatch!(self, c => c.needs_ecn())
    }
    fn ect1(&self) -> bool {
        dispatch!(self, c => c.ect1())
    }
    fn trace(&self) -> Vec<(&'static str, f64)> {
        dispatch!(self, c => c.trace())
    }
    fn failure(&self) -> Option<String> {
        dispatch!(self, c => c.failure())
    }
}

/// The names that [`Cc::build`] knows, with their versions; without one it is the newest.
pub const NAMES: &[&str] = &["cubic", "cubic@5.4", "cubic@7.3", "prague@2020-04", "prague@2020-08", "reno"];
