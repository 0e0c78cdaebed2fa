//! A handshake under way: what the peer's SYN told, and the SYN or SYN/ACK that is not answered yet.

use bakeoff_document::units::Time;
use bakeoff_sim::packet::Ecn;
use bakeoff_sim::tcp::handshake::Repetition;

use crate::sysctl::RMEM_MAX;

/// What the peer's SYN told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Peer {
    pub(super) mss: u32,
    pub(super) scale: Option<u32>,
    pub(super) timestamps: bool,
    pub(super) sack: bool,
}

/// Why a SYN or SYN/ACK is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// It is the first.
    First,
    /// Its timer expired.
    Timer,
    /// The peer sent its SYN again.
    Asked,
}

/// A SYN or SYN/ACK that is not answered yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handshake {
    pub(super) repetition: Repetition,
    /// When it was sent last.
    pub(super) sent: Time,
    /// SYN/ACKs sent again, for our timeouts and the peer's.
    pub(super) resent: u32,
    /// ECN field with which the peer's SYN arrived.
    pub(super) field: Ecn,
}

impl Handshake {
    pub(super) fn new(repetition: Repetition, field: Ecn) -> Self {
        Handshake { repetition, sent: repetition.begun, resent: 0, field }
    }
}

/// The shift that makes the largest receive buffer fit the window field.
pub(super) fn local_scale() -> u32 {
    RMEM_MAX.ilog2() - 15
}
