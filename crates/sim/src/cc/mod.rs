//! Congestion controls behind the kernel's `tcp_congestion_ops`: same hook names, no-op defaults,
//! one file per algorithm.

mod bandwidth;
mod classic_ecn;
mod hystart;
#[cfg(test)]
mod kernel_module;
mod max_filter;
mod policer;
mod registry;
mod rtt_scaling;
mod sce;
mod slow_start;
pub mod sock;

use crate::base::rng::Stream;
use crate::base::table::table;
use crate::base::units::Time;
use crate::cc::sock::{CaState, TcpSock};

pub use bakeoff_document::cc::{CcError, CcWords};
pub use registry::Registry;

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
    /// Whether it may acknowledge a tail loss probe or what that repeats (`is_acking_tlp_retrans_seq`).
    pub acks_probe: bool,
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
    /// Its first byte.
    pub seq: u64,
    /// One past its last byte.
    pub end: u64,
}

/// A congestion control. Hooks are called in the order of docs/models/tcp-sender.md; all have defaults that do
/// nothing, or what Reno does.
pub trait CongestionControl {
    /// A new connection; ECN is already negotiated.
    fn init(&mut self, _tp: &mut TcpSock) {}

    /// The threshold after a loss or a congestion echo. Must be at least 2, unless [`Self::has_cong_control`].
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

    /// A tail loss probe repaired the loss of one segment, which was sent while the application was the limit or not
    /// (`CA_EVENT_TLP_RECOVERY` of Google's BBR v3).
    fn probe_repaired(&mut self, _tp: &mut TcpSock, _is_app_limited: bool) {}

    /// Another slow start stands in the place of the module's own: no test of the module's ends it any more.
    fn without_slow_start(&mut self) {}

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

    /// Windows of data that the send buffer holds (`sndbuf_expand`).
    fn sndbuf_windows(&self) -> u32 {
        2
    }

    /// Needs ECN and asks for it whatever `tcp_ecn` says (`TCP_CONG_NEEDS_ECN`).
    fn needs_ecn(&self) -> bool {
        false
    }

    /// Asks for AccECN whatever `tcp_ecn` says, and does without ECN where the peer has no more than RFC 3168's
    /// (`TCP_CONG_NEEDS_ACCECN`, `TCP_CONG_NO_FALLBACK_RFC3168`).
    fn needs_accecn(&self) -> bool {
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

impl Default for CcEnv {
    fn default() -> Self {
        CcEnv { rng: Stream::new(1, "cc"), now: Time::ZERO }
    }
}

/// The entry of a name in [`NAMES`].
#[expect(
    clippy::extra_unused_type_parameters,
    reason = "the table gives the type too, which a name does not need"
)]
const fn name<C: CongestionControl>(name: &'static str) -> &'static str {
    name
}

table! { $
    /// The known modules.
    enum Cc
        and /** From outside this crate. */ User(Box<dyn CongestionControl + Send>)
        and /** One of these with another part. */ Started(Box<slow_start::Started>);
    dispatch dispatch;
    list NAMES: &str = name;
    make make(words: &mut CcWords, env: CcEnv) -> CcError;

    bbr::Bbr { "bbr" => Bbr::parse }
    bbr3::Bbr3 in Box { "bbr2", "bbr3", "bbr3@draft", "bbr3@google" => Bbr3::parse }
    bic::Bic { "bic" => Bic::parse }
    cdg::Cdg { "cdg" => Cdg::parse }
    copa::Copa in Box { "copa" => Copa::parse }
    cubic::Cubic { "cubic", "cubic@5.4", "cubic@7.3" => Cubic::parse }
    cubic_sce::CubicSce { "cubic-sce" => CubicSce::parse }
    dctcp::Dctcp { "dctcp" => Dctcp::parse }
    dctcp_sce::DctcpSce { "dctcp-sce", "dctcp-sce@2019" => DctcpSce::parse }
    highspeed::HighSpeed { "highspeed" => HighSpeed::parse }
    htcp::Htcp { "htcp" => Htcp::parse }
    hybla::Hybla { "hybla" => Hybla::parse }
    illinois::Illinois { "illinois" => Illinois::parse }
    ledbat::Ledbat { "ledbat" => Ledbat::parse }
    ledbat_pp::LedbatPp { "ledbat++" => LedbatPp::parse }
    lp::Lp { "lp" => Lp::parse }
    none::Fixed { "none" => Fixed::parse }
    nv::Nv { "nv" => Nv::parse }
    prague::Prague { "prague", "prague@2023", "prague@5.15" => Prague::parse }
    prague_2019::Prague2019 { "prague@2019-09", "prague@2019-11" => Prague2019::parse }
    prague_2020::Prague2020 { "prague@2020-04", "prague@2020-08", "prague@2021-06" => Prague2020::parse }
    reno::Reno { "reno" => Reno::parse }
    reno_sce::RenoSce { "reno-sce", "reno-sce@2019" => RenoSce::parse }
    scalable::Scalable { "scalable" => Scalable::parse }
    vegas::Vegas { "vegas" => Vegas::parse }
    veno::Veno { "veno" => Veno::parse }
    westwood::Westwood { "westwood" => Westwood::parse }
    yeah::Yeah { "yeah" => Yeah::parse }
}

impl Cc {
    /// Makes the module that `text` names: `NAME[@VERSION] [PARAMETER VALUE]… [PART [PARAMETER VALUE]…]…`.
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
        let (control, parts) = slow_start::split(text);
        let words = &mut CcWords::new(control);
        let made = make(words.first(), words, env).unwrap_or_else(|| Err(words.unknown_name(NAMES)))?;
        parts.into_iter().try_fold(made, |control, mut words| slow_start::with(control, &mut words))
    }

    /// New data left: the skb that was sent last. No hook of a control's, which has none for it: only parts need it.
    #[inline]
    pub fn sent(&mut self, tp: &mut TcpSock) {
        if let Cc::Started(started) = self {
            started.sent(tp);
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
    #[inline]
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
    #[inline]
    fn in_ack_event(&mut self, tp: &mut TcpSock, ece: bool) {
        dispatch!(self, c => c.in_ack_event(tp, ece));
    }
    #[inline]
    fn pkts_acked(&mut self, tp: &mut TcpSock, acked: u32, rtt_us: Option<u64>) {
        dispatch!(self, c => c.pkts_acked(tp, acked, rtt_us));
    }
    fn marked_lost(&mut self, tp: &mut TcpSock, lost: &Lost) {
        dispatch!(self, c => c.marked_lost(tp, lost));
    }
    fn probe_repaired(&mut self, tp: &mut TcpSock, is_app_limited: bool) {
        dispatch!(self, c => c.probe_repaired(tp, is_app_limited));
    }
    fn without_slow_start(&mut self) {
        dispatch!(self, c => c.without_slow_start());
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
    fn sndbuf_windows(&self) -> u32 {
        dispatch!(self, c => c.sndbuf_windows())
    }
    fn needs_ecn(&self) -> bool {
        dispatch!(self, c => c.needs_ecn())
    }
    fn needs_accecn(&self) -> bool {
        dispatch!(self, c => c.needs_accecn())
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
