//! Congestion controls behind the kernel's `tcp_congestion_ops`: same hook names, no-op defaults,
//! one file per algorithm.

mod bandwidth;
mod bbr;
mod bbr3;
mod classic_ecn;
mod cubic;
mod cubic_sce;
mod dctcp;
mod dctcp_sce;
mod hystart;
mod max_filter;
mod none;
mod policer;
mod prague;
mod prague_2019;
mod prague_2020;
mod registry;
mod reno;
mod reno_sce;
mod rtt_scaling;
mod sce;
pub mod sock;

use crate::base::rng::Stream;
use crate::base::units::Time;
use crate::cc::sock::{CaState, TcpSock};

pub use crate::document::cc::{CcError, Words};
pub use bbr::Bbr;
pub use bbr3::Bbr3;
pub use cubic::Cubic;
pub use cubic_sce::CubicSce;
pub use dctcp::Dctcp;
pub use dctcp_sce::DctcpSce;
pub use none::Fixed;
pub use prague::Prague;
pub use prague_2019::Prague2019;
pub use prague_2020::Prague2020;
pub use registry::Registry;
pub use reno::Reno;
pub use reno_sce::RenoSce;

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
    /// Packets delivered since the packet that made the sample was sent; 0 if nothing was delivered now.
    pub delivered: u32,
    /// Over how long they were; 0 if that is shorter than the path's minimum: no sample of bandwidth.
    pub interval_us: u64,
    /// Delivered count stored in the packet that made the sample.
    pub prior_delivered: u64,
    /// Of `delivered`, reported with CE.
    pub interval_ce: u32,
    /// Packets marked lost since the packet that made the sample was sent.
    pub interval_lost: u32,
    /// In flight when that packet was sent, itself included.
    pub tx_in_flight: u32,
    /// In flight before this ACK.
    pub prior_in_flight: u32,
    /// Whether the sample was taken while the application was the limit.
    pub is_app_limited: bool,
    /// Whether the receiver probably held this ACK back.
    pub is_ack_delayed: bool,
}

/// A packet that was just marked lost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lost {
    /// In flight when it was sent, itself included.
    pub tx_in_flight: u32,
    /// Packets marked lost since then, itself included.
    pub lost: u32,
    /// Whether it was sent while the application was the limit.
    pub is_app_limited: bool,
}

/// A congestion control. Hooks are called in the order of docs/models/tcp-sender.md; all have defaults that do
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

    /// A packet was marked lost (`skb_marked_lost` of Google's BBR v3).
    fn marked_lost(&mut self, _tp: &mut TcpSock, _lost: &Lost) {}

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

    /// Its receiving end tells CE by changes of state (RFC 8257, section 3.2), not by RFC 3168's latch.
    fn tells_state_changes(&self) -> bool {
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

/// The known modules. An enum for the same reason as [`crate::qdisc::Kind`].
pub enum Cc {
    /// `bbr`
    Bbr(Bbr),
    /// `bbr3`
    Bbr3(Box<Bbr3>),
    /// `cubic`
    Cubic(Cubic),
    /// `cubic-sce`
    CubicSce(CubicSce),
    /// `dctcp`
    Dctcp(Dctcp),
    /// `dctcp-sce`
    DctcpSce(DctcpSce),
    /// `none`
    Fixed(Fixed),
    /// `prague`
    Prague(Prague),
    /// `prague` of 2019
    Prague2019(Prague2019),
    /// `prague` of 2020 and 2021
    Prague2020(Prague2020),
    /// `reno`
    Reno(Reno),
    /// `reno-sce`
    RenoSce(RenoSce),
    /// Somebody's own.
    User(Box<dyn CongestionControl + Send>),
}

/// Calls a hook on whichever module it is.
macro_rules! dispatch {
    ($self:expr, $c:ident => $e:expr) => {
        match $self {
            Cc::Bbr($c) => $e,
            Cc::Bbr3($c) => $e,
            Cc::Cubic($c) => $e,
            Cc::CubicSce($c) => $e,
            Cc::Dctcp($c) => $e,
            Cc::DctcpSce($c) => $e,
            Cc::Fixed($c) => $e,
            Cc::Prague($c) => $e,
            Cc::Prague2019($c) => $e,
            Cc::Prague2020($c) => $e,
            Cc::Reno($c) => $e,
            Cc::RenoSce($c) => $e,
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

    fn build_known(text: &str, env: CcEnv) -> Result<Cc, CcError> {
        let words = &mut Words::new(text);
        match words.name() {
            "bbr" => Ok(Cc::Bbr(Bbr::parse(words, env)?)),
            "bbr3" => Ok(Cc::Bbr3(Box::new(Bbr3::parse(words, env)?))),
            "cubic" => Ok(Cc::Cubic(Cubic::parse(words)?)),
            "cubic-sce" => Ok(Cc::CubicSce(CubicSce::parse(words)?)),
            "dctcp" => Ok(Cc::Dctcp(Dctcp::parse(words)?)),
            "dctcp-sce" => Ok(Cc::DctcpSce(DctcpSce::parse(words)?)),
            "none" => Ok(Cc::Fixed(Fixed::parse(words)?)),
            "prague" => Cc::build_prague(words),
            "reno" => Ok(Cc::Reno(Reno::parse(words)?)),
            "reno-sce" => Ok(Cc::RenoSce(RenoSce::parse(words)?)),
            _ => Err(words.unknown_name(NAMES)),
        }
    }

    fn build_prague(words: &mut Words) -> Result<Cc, CcError> {
        use prague_2019::Version::{Nov2019, Sep2019};
        use prague_2020::Version::{Apr2020, Aug2020, Jun2021};
        match words.version(prague::VERSIONS)? {
            Some("2019-09") => Ok(Cc::Prague2019(Prague2019::parse(words, Sep2019)?)),
            Some("2019-11") => Ok(Cc::Prague2019(Prague2019::parse(words, Nov2019)?)),
            Some("2020-04") => Ok(Cc::Prague2020(Prague2020::parse(words, Apr2020)?)),
            Some("2020-08") => Ok(Cc::Prague2020(Prague2020::parse(words, Aug2020)?)),
            Some("2021-06") => Ok(Cc::Prague2020(Prague2020::parse(words, Jun2021)?)),
            _ => Ok(Cc::Prague(Prague::parse(words)?)),
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
    fn marked_lost(&mut self, tp: &mut TcpSock, lost: &Lost) {
        dispatch!(self, c => c.marked_lost(tp, lost));
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
    fn tells_state_changes(&self) -> bool {
        dispatch!(self, c => c.tells_state_changes())
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
pub const NAMES: &[&str] = &[
    "bbr",
    "bbr3",
    "cubic",
    "cubic@5.4",
    "cubic@7.3",
    "cubic-sce",
    "dctcp",
    "dctcp-sce",
    "none",
    "prague",
    "prague@2019-09",
    "prague@2019-11",
    "prague@2020-04",
    "prague@2020-08",
    "prague@2021-06",
    "prague@2023",
    "reno",
    "reno-sce",
    "reno-sce@2019",
];
