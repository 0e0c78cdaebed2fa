//! The handshake: a SYN or SYN/ACK that is sent again until it is answered, the ECN bits that both carry, and the two
//! halves of a connection that come of what both ends agreed on.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_timer.c` (`tcp_retransmit_timer`, `tcp_syn_linear_timeouts`),
//! `inet_connection_sock.c` (`reqsk_timer_handler`), `include/net/tcp_ecn.h`; RFC 9293, section 3.8.1.
//!
//! Departures: SYN cookies and Fast Open are not modelled.
//!
//! Validation: the tests below; the kernel's packetdrill scripts drive this file.

use super::accecn::OptionClock;
use super::ecn::{Mode, Sysctls, syn_bits, syn_keeps_bits, synack_bits};
use super::feedback::Feedback;
use super::receive_window::Buffer;
use super::receiver::Receiver;
use super::sack_compression::CompSack;
use super::sender::{Sender, SenderSetup};
use crate::base::units::Time;
use crate::cc::{Cc, CongestionControl};
use crate::packet::{Ecn, Packet};

/// `TCP_TIMEOUT_INIT`
const FIRST_TIMEOUT: Time = Time::from_ms(1000);
/// `TCP_RTO_MAX`
pub const LONGEST_TIMEOUT: Time = Time::from_ms(120_000);
/// `tcp_syn_linear_timeouts`: so many repeated SYNs come at the first timeout before it doubles.
const LINEAR_SYNS: u32 = 4;
/// A SYN/ACK that is repeated so often goes without its ECN bits.
const SYNACK_KEEPS_BITS: u32 = 2;

/// When a SYN or SYN/ACK is sent again.
#[derive(Clone, Copy, Debug)]
pub struct Repetition {
    /// When it was sent first.
    pub begun: Time,
    /// Timeouts so far.
    pub timeouts: u32,
    due: Time,
    timeout: Time,
    /// So many timeouts come before they double.
    linear: u32,
    longest: Time,
}

impl Repetition {
    /// Of a SYN sent `now`; no timeout is longer than `longest`.
    pub fn of_syn(now: Time, longest: Time) -> Self {
        let timeout = FIRST_TIMEOUT;
        Repetition { begun: now, timeouts: 0, due: now + timeout, timeout, linear: LINEAR_SYNS, longest }
    }

    /// The same of a SYN/ACK, whose timeouts double from the first.
    pub fn of_synack(now: Time, longest: Time) -> Self {
        Repetition { linear: 0, ..Repetition::of_syn(now, longest) }
    }

    /// When it is sent again.
    pub fn due(&self) -> Time {
        self.due
    }

    /// It is sent again `now`.
    pub fn repeat(&mut self, now: Time) {
        if self.timeouts >= self.linear {
            self.timeout = (self.timeout + self.timeout).min(self.longest);
        }
        self.timeouts += 1;
        self.due = now + self.timeout;
    }
}

/// The ECN bits of a SYN that asks for `mode`. A middlebox may drop what it does not know: a repeated SYN loses them.
pub fn syn_ace(mode: Mode, timeouts: u32, fallback: bool) -> u8 {
    if syn_keeps_bits(mode, timeouts, fallback) { syn_bits(mode) } else { 0 }
}

/// The ECN bits of the SYN/ACK to a SYN that arrived with `field`; they go for the same reason.
pub fn synack_ace(mode: Mode, field: Ecn, timeouts: u32) -> u8 {
    if timeouts < SYNACK_KEEPS_BITS { synack_bits(mode, field) } else { 0 }
}

/// The feedback that a module cannot do without.
pub fn needs_of(cc: &impl CongestionControl) -> Mode {
    match (cc.needs_accecn(), cc.needs_ecn()) {
        (true, _) => Mode::AccEcn,
        (false, true) => Mode::Rfc3168,
        (false, false) => Mode::Off,
    }
}

/// The ECN field that a module marks its packets with.
pub fn ect_of(cc: &impl CongestionControl) -> Ecn {
    if cc.ect1() { Ecn::Ect1 } else { Ecn::Ect0 }
}

/// The ECN field of a receiving end's pure ACKs.
pub fn ack_field(mode: Mode, cc: &impl CongestionControl) -> Ecn {
    match mode {
        Mode::AccEcn => ect_of(cc),
        // Modules of ECT(1) run as Reno without AccECN.
        Mode::Rfc3168 if cc.needs_ecn() && !cc.ect1() => Ecn::Ect0,
        _ => Ecn::NotEct,
    }
}

/// What both ends agreed on.
#[derive(Clone, Copy, Debug)]
pub struct Agreement {
    /// Feedback.
    pub mode: Mode,
    /// Whether both ends send AccECN's option.
    pub accecn_option: bool,
    /// Whether SACK is permitted.
    pub sack: bool,
    /// Whether segments have timestamps.
    pub timestamps: bool,
}

/// What a receiver is made of, besides an [`Agreement`].
#[derive(Clone, Copy)]
pub struct ReceiverSetup<'a> {
    /// What its ACKs have in common (addresses, DSCP, ECN field, hash).
    pub template: Packet,
    /// How the host uses ECN.
    pub sysctls: &'a Sysctls,
    /// See [`CongestionControl::tells_state_changes`].
    pub state_changes: bool,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// The host's timer frequency.
    pub hz: u64,
    /// What it may keep.
    pub buffer: Buffer,
    /// How it compresses SACK.
    pub compression: CompSack,
}

impl Agreement {
    /// When a sending end with these sysctls sends AccECN's option.
    pub fn option_clock(self, sysctls: &Sysctls) -> OptionClock {
        let sends = self.mode == Mode::AccEcn && self.accecn_option;
        OptionClock::new(if sends { sysctls.option } else { 0 }, sysctls.beacon)
    }

    /// The sending half; the peer's window is `window` bytes.
    pub fn sender(self, setup: SenderSetup, cc: Cc, window: u64, now: Time) -> Sender {
        let mut sender = Sender::new(setup, cc, now);
        if !self.sack {
            sender.without_sack();
        }
        sender.set_window(window);
        sender
    }

    /// The receiving half.
    pub fn receiver(self, setup: ReceiverSetup) -> Receiver {
        let ReceiverSetup { template, sysctls, state_changes, mss, hz, buffer, compression } = setup;
        let mut feedback = Feedback::new(self.mode, sysctls, state_changes, self.accecn_option);
        if !self.timestamps {
            feedback = feedback.without_timestamps();
        }
        let receiver = Receiver::new(template, feedback, mss, hz, buffer).with_compression(compression);
        if self.sack { receiver } else { receiver.without_sack() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When the packet is sent again, in seconds.
    fn seconds(mut of: Repetition, n: usize) -> Vec<u64> {
        let times = std::iter::repeat_with(|| {
            let at = of.due();
            of.repeat(at);
            at.as_ms() / 1000
        });
        times.take(n).collect()
    }

    #[test]
    fn four_syns_come_every_second_before_the_timeout_doubles_up_to_the_longest() {
        let syn = Repetition::of_syn(Time::ZERO, Time::from_ms(3000));
        // 1 + 1 + 1 + 1 + 1, then 2, then 3, which 4 is cut down to
        assert_eq!(seconds(syn, 8), [1, 2, 3, 4, 5, 7, 10, 13]);
    }

    #[test]
    fn a_synack_comes_after_1_3_and_7_seconds() {
        assert_eq!(seconds(Repetition::of_synack(Time::ZERO, LONGEST_TIMEOUT), 3), [1, 3, 7]);
    }

    #[test]
    fn a_synack_loses_its_bits_with_its_second_repetition() {
        let bits: Vec<u8> = (0..3).map(|n| synack_ace(Mode::AccEcn, Ecn::NotEct, n)).collect();
        assert_eq!(bits, [0b010, 0b010, 0]);
    }
}
