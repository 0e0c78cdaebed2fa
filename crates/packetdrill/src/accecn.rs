//! AccECN around the handshake: the option that was seen, what SYN, SYN/ACK and the third ACK tell, and the failures
//! that Linux concludes from them.
//!
//! Source: Linux 7.3 `include/net/tcp_ecn.h` (`tcp_accecn_third_ack`, `tcp_accecn_validate_syn_feedback`,
//! `tcp_accecn_option_init`), `net/ipv4/tcp_minisocks.c`; RFC 9768, sections 3.1, 3.2.2 and 3.2.3.2.

use bakeoff_sim::packet::accecn;
use bakeoff_sim::packet::{Ecn, Packet};
use bakeoff_sim::tcp::ecn::{self, Mode};

use crate::segment::{Counter, Opt, Segment};

/// `TCP_ACCECN_ACE_FAIL_SEND`: the peer does not seem to get our ACE field.
pub const ACE_FAIL_SEND: u8 = 1;
/// `TCP_ACCECN_ACE_FAIL_RECV`: the ACE field that arrives was changed on its way.
pub const ACE_FAIL_RECV: u8 = 2;
/// `TCP_ACCECN_OPT_FAIL_SEND`: the peer does not seem to get our option.
pub const OPT_FAIL_SEND: u8 = 4;
/// `TCP_ACCECN_OPT_FAIL_RECV`: the option that arrives was changed on its way.
pub const OPT_FAIL_RECV: u8 = 8;

/// Whether the peer's option was seen (`saw_accecn_opt`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Seen {
    /// No.
    #[default]
    Nothing,
    /// Without counters.
    Empty,
    /// With counters.
    Counters,
    /// With counters of 0 where they begin at 1.
    Zeroed,
}

/// What is known of a connection's AccECN beside its counters.
#[derive(Clone, Copy, Debug, Default)]
pub struct State {
    /// The peer's option.
    pub seen: Seen,
    /// The `..._FAIL_...` bits (`accecn_fail_mode`).
    pub failures: u8,
}

impl State {
    /// Takes note of the option of a segment, if it has one.
    pub fn note_option(&mut self, segment: &Segment) {
        let Some(counters) = option_of(segment).filter(|_| self.seen < Seen::Counters) else { return };
        let zero = |i: usize| counters.get(i).is_some_and(|(_, bytes)| *bytes == 0);
        self.seen = match counters.len() {
            0 => Seen::Empty,
            _ if zero(0) || zero(2) => Seen::Zeroed,
            _ => Seen::Counters,
        };
        if self.seen == Seen::Zeroed {
            self.failures |= OPT_FAIL_RECV;
        }
    }

    /// The ACK that ends a server's handshake, or the first segment after it if that was lost. True if our
    /// SYN/ACK arrived with CE. `validate` is `tcp_ecn_fallback`.
    pub fn third_ack(&mut self, segment: &Segment, validate: bool) -> bool {
        let sacks = segment.options.iter().flatten().any(|o| matches!(o, Opt::Sack(_)));
        match segment.ace {
            0 if !sacks => {
                self.failures |= ACE_FAIL_RECV | OPT_FAIL_RECV;
                false
            }
            0 | 1 | 5 | 7 => false,
            ace => {
                segment.payload == 0 && !sacks && self.echo_is_valid(ace, validate) && ace == ace_of(Ecn::Ce)
            }
        }
    }

    /// Whether the SYN/ACK that a client got counts as a packet with CE.
    pub fn synack_counts(&mut self, segment: &Segment, validate: bool) -> bool {
        segment.ecn == Some(Ecn::Ce) && (segment.ace == 5 || self.echo_is_valid(segment.ace, validate))
    }

    /// Our SYN or SYN/ACK left as Not-ECT: an echo of anything else tells of a changed field.
    fn echo_is_valid(&mut self, ace: u8, validate: bool) -> bool {
        let valid = !validate || ace == ace_of(Ecn::NotEct);
        if !valid {
            self.failures |= ACE_FAIL_RECV;
        }
        valid
    }

    /// Whether packets are ECN-capable.
    pub fn capable(&self) -> bool {
        self.failures & (ACE_FAIL_SEND | ACE_FAIL_RECV) == 0
    }
}

/// The ACE field of the ACK of a SYN/ACK that arrived with `field`: as in the SYN/ACK (RFC 9768, tables 2 and 3).
pub fn ace_of(field: Ecn) -> u8 {
    ecn::synack_bits(Mode::AccEcn, field)
}

/// The option of a SYN/ACK: counters where they begin.
pub fn initial_option() -> Opt {
    option(&Packet { n_accecn: 3, ..Packet::default() })
}

/// The option that a packet of the simulator carries.
pub fn option(packet: &Packet) -> Opt {
    let wire = accecn::wire(packet);
    let value = |b: &[u8]| b.iter().fold(0, |value, byte| value << 8 | u32::from(*byte));
    Opt::AccEcn(
        [Counter::E1, Counter::Ce, Counter::E0].into_iter().zip(wire[2..].chunks(3).map(value)).collect(),
    )
}

/// Puts a segment's counters into a packet of the simulator; those that it leaves out stay at `known`.
pub fn read_option(segment: &Segment, known: [u32; 3], packet: &mut Packet) {
    let Some(counters) = option_of(segment).filter(|c| !c.is_empty()) else { return };
    let mut bytes = known;
    for (counter, value) in counters {
        let (i, start) = match counter {
            Counter::E1 => (0, 1),
            Counter::Ce => (1, 0),
            Counter::E0 => (2, 1),
        };
        bytes[i] = value.wrapping_sub(start);
    }
    packet.accecn = bytes.map(accecn::write);
    packet.n_accecn = 3;
}

fn option_of(segment: &Segment) -> Option<&[(Counter, u32)]> {
    segment.options.iter().flatten().find_map(|o| match o {
        Opt::AccEcn(counters) => Some(counters.as_slice()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(text: &str) -> Segment {
        Segment::parse(text).unwrap()
    }

    #[test]
    fn counters_begin_at_1_0_1() {
        assert_eq!(initial_option().to_string(), "ECN e1b 1 ceb 0 e0b 1");
        let mut packet = Packet::default();
        read_option(&segment(". 1:1(0) ack 1 <ECN e0b 1001 ceb 7>"), [5, 6, 7], &mut packet);
        assert_eq!(packet.accecn, [5, 7, 1000].map(accecn::write));
        assert_eq!(option(&packet).to_string(), "ECN e1b 6 ceb 7 e0b 1001");
    }

    #[test]
    fn a_zeroed_option_is_told_by_its_first_values() {
        for (counters, seen) in [
            ("e0b 1 ceb 0 e1b 1", Seen::Counters),
            ("e0b 0 ceb 0 e1b 1", Seen::Zeroed),
            ("e0b 1 ceb 0 e1b 0", Seen::Zeroed),
            ("", Seen::Empty),
        ] {
            let mut state = State::default();
            state.note_option(&segment(&format!(". 1:1(0) ack 1 <ECN {counters}>")));
            assert_eq!(state.seen, seen, "{counters}");
            assert_eq!(state.failures, if seen == Seen::Zeroed { OPT_FAIL_RECV } else { 0 });
        }
        let mut later = State { seen: Seen::Counters, failures: 0 };
        later.note_option(&segment(". 1:1(0) ack 1 <ECN e0b 0 ceb 0 e1b 0>"));
        assert_eq!(later.failures, 0, "only the first");
    }

    #[test]
    fn rfc_9768_table_4_the_third_ack() {
        let judge = |ace: u8, validate| {
            let mut state = State::default();
            let marked = state.third_ack(&Segment { ace, ..segment(". 1:1(0) ack 1") }, validate);
            (marked, state.failures)
        };
        assert_eq!(judge(0, true), (false, ACE_FAIL_RECV | OPT_FAIL_RECV));
        assert_eq!(judge(2, true), (false, 0));
        // A Not-ECT packet cannot become ECT(1), ECT(0) or CE.
        for ace in [3, 4, 6] {
            assert_eq!(judge(ace, true), (false, ACE_FAIL_RECV), "{ace}");
        }
        assert_eq!(judge(6, false), (true, 0));
        for ace in [1, 5, 7] {
            assert_eq!(judge(ace, true), (false, 0), "{ace}");
        }
    }
}
