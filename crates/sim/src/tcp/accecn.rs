//! AccECN (RFC 9768) on top of the ACE counter: when its TCP option is sent, how it fits, and how the
//! sender reads counter and option.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_input.c` (`tcp_accecn_process_option`, `__tcp_accecn_process`),
//! `tcp_output.c` (`tcp_options_fit_accecn`), `include/net/tcp_ecn.h`; RFC 9768, sections 3.2.2 and 3.2.3.
//!
//! The option (kind 174; Linux only reads the order of 172) has up to three counters of 24 bits: payload bytes
//! that arrived as ECT(1), CE and ECT(0), in this order. They begin at 1, 0 and 1, so that a
//! middlebox that zeroes them would be seen; [`Packet::accecn`] holds them without that offset, since no such
//! middlebox is modelled.
//!
//! Departures: of the failure modes only two: the option stops where ACKs that carry it do not seem to arrive
//! ([`OptionClock::fail`]), and is not read where it is told to be wrong ([`AceDecoder::distrust_option`]), which
//! paths here never make it. The SYN/ACK's option has its size only.
//!
//! Validation: the tests below; one CUBIC flow against the real kernel with `tcp_ecn_option` 0, 1 and 2.

use crate::base::units::Time;
use crate::packet::accecn::read;
use crate::packet::{Ecn, Packet};

/// Initial value of the ACE counter (RFC 9768, section 3.2.1).
pub const ACE_INIT: u64 = 5;
/// Bytes that the option takes in a segment without SACK blocks: 11 and a NOP.
pub const OPTION_LEN: u32 = 12;
/// Counters are of 24 bits.
const WRAP: u32 = 1 << 24;
/// An ACK of at least this many packets is judged by its bytes.
const MANY_PACKETS: u32 = 16;
/// Linux's unit of the mean number of packets per ACK.
const EWMA_SHIFT: u32 = 6;
/// Beyond this mean, ACKs cover many packets anyway.
const ACK_COMP_THRESH: u32 = 4;

/// The field of the option that counts bytes of `ecn`.
pub fn field(ecn: Ecn) -> Option<usize> {
    match ecn {
        Ecn::NotEct => None,
        Ecn::Ect1 => Some(0),
        Ecn::Ce => Some(1),
        Ecn::Ect0 => Some(2),
    }
}

/// How many SACK blocks and option fields fit, beside `timestamps` if there are any, when `blocks` (up to 3) are
/// wanted and the first `required` fields have news; and the bytes of the option.
/// Source: Linux 7.3 `tcp_options_fit_accecn`.
pub fn fit(blocks: usize, required: usize, timestamps: bool) -> (usize, u8, u32) {
    match (blocks, required) {
        _ if !timestamps => (blocks, 3, OPTION_LEN),
        (0 | 1, _) => (blocks, 3, OPTION_LEN),
        // 8 bytes are left; a block is given up only for news that then fit.
        (2, 0..=2) | (3, 1 | 2) => (2, 2, 8),
        _ => (blocks, 0, 0),
    }
}

/// When an end sends the option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OptionClock {
    /// `tcp_ecn_option`; 0 also if the peer does not send it.
    level: u8,
    beacon: u32,
    /// Segments that must carry it.
    demand: u8,
    sent: Time,
    /// ACKs with it seem to get lost (`TCP_ACCECN_OPT_FAIL_SEND`).
    failed: bool,
}

impl OptionClock {
    /// From the sysctls.
    pub fn new(level: u8, beacon: u32) -> Self {
        // The SYN/ACK's option is answered by two.
        OptionClock { level, beacon, demand: 2, sent: Time::ZERO, failed: false }
    }

    /// Another `tcp_ecn_option`, or the peer's first option.
    pub fn set_level(&mut self, level: u8) {
        self.level = level;
    }

    /// The path seems to drop what carries the option: it is sent no more, unless `tcp_ecn_option` is 3.
    pub fn fail(&mut self) {
        self.failed = true;
    }

    /// Whether [`OptionClock::fail`] was called.
    pub fn failed(&self) -> bool {
        self.failed
    }

    /// Whether the option is in use at all.
    pub fn in_use(&self) -> bool {
        self.level > 0
    }

    /// The next `n` segments carry it.
    pub fn demand(&mut self, n: u8) {
        self.demand = self.demand.max(n);
    }

    /// Whether a segment sent now carries it.
    /// Source: RFC 9768, section 3.2.3.3; Linux 7.3 `tcp_established_options`, `tcp_accecn_option_beacon_check`.
    pub fn due(&self, now: Time, srtt_us: u64) -> bool {
        if self.failed && self.level < 3 {
            return false;
        }
        let beacon = || self.beacon > 0 && (now - self.sent).as_us() * u64::from(self.beacon) >= srtt_us;
        self.level >= 2 || (self.level == 1 && (self.demand > 0 || beacon()))
    }

    /// It was sent.
    pub fn on_sent(&mut self, now: Time) {
        self.demand = self.demand.saturating_sub(1);
        self.sent = now;
    }
}

/// The sender's view of the counters.
#[derive(Clone, Debug, Default)]
pub struct AceDecoder {
    /// Mean packets per ACK, times 64.
    acked_ewma: u32,
    /// Bytes delivered as ECT(1), CE, ECT(0), as far as options and estimates tell; the low 24 bits are the option's.
    bytes: [u32; 3],
    /// The field that an ACK without the option is taken to raise: the only one that the last option raised.
    estimate: Option<usize>,
    /// `TCP_ACCECN_OPT_FAIL_RECV`
    distrusted: bool,
}

impl AceDecoder {
    /// Payload bytes that arrived as ECT(1), CE and ECT(0) (`delivered_ecn_bytes`).
    pub fn bytes(&self) -> [u32; 3] {
        self.bytes
    }

    /// The option that arrives is wrong: it is read no more.
    pub fn distrust_option(&mut self) {
        self.distrusted = true;
    }

    /// How many more packets arrived with CE, by an ACK that newly delivers `packets` of `bytes` when
    /// `delivered_ce` are known so far.
    ///
    /// Up to seven packets per ACK the 3-bit field is exact. Beyond it may have wrapped: the CE bytes of the option
    /// decide; without them the safer (larger) reading is taken unless ACKs usually cover more than four
    /// packets. Source: RFC 9768, section 3.2.2.5 and appendix A.2; Linux 7.3 `__tcp_accecn_process`.
    pub fn decode(&mut self, ack: &Packet, delivered_ce: u64, packets: u32, bytes: u64, mss: u32) -> u32 {
        let before = self.bytes[1];
        let valid = self.read_option(ack, bytes);
        if packets > 0 {
            let sample = packets << EWMA_SHIFT;
            let mean = if self.acked_ewma == 0 { sample } else { (self.acked_ewma * 63 + sample) >> 6 };
            self.acked_ewma = mean.min(0xffff);
        }
        let delta = (u64::from(ack.ace).wrapping_sub(ACE_INIT).wrapping_sub(delivered_ce) & 7) as u32;
        if packets <= 7 {
            return delta;
        }
        let safe = safe_delta(delta, packets);
        if !valid {
            return if self.acked_ewma > ACK_COMP_THRESH << EWMA_SHIFT { delta } else { safe };
        }
        let marked = u64::from(self.bytes[1].wrapping_sub(before));
        if marked == 0 {
            return delta;
        }
        if packets >= MANY_PACKETS {
            if bytes <= marked {
                return safe;
            }
            let estimate = (marked * u64::from(packets)).div_ceil(bytes) as u32;
            return safe.min(delta + (estimate & !7));
        }
        if marked > u64::from(delta * mss) || marked >= u64::from(safe * mss / 2) { safe } else { delta }
    }

    /// Takes the option's counters over; true if they can be relied on.
    /// Source: RFC 9768, section 3.2.3; Linux 7.3 `tcp_accecn_process_option`.
    fn read_option(&mut self, ack: &Packet, delivered: u64) -> bool {
        if self.distrusted {
            return false;
        }
        if ack.n_accecn == 0 {
            return match self.estimate {
                Some(field) => {
                    self.bytes[field] = self.bytes[field].wrapping_add(delivered as u32);
                    true
                }
                None => false,
            };
        }
        let expected = self.estimate;
        let mut valid = expected.is_some();
        let (mut ambiguous, mut changed) = (false, false);
        for (i, counter) in ack.accecn.iter().take(usize::from(ack.n_accecn)).enumerate() {
            let delta = read(*counter).wrapping_sub(self.bytes[i]) % WRAP;
            let back = delta >= WRAP / 2;
            self.bytes[i] = self.bytes[i].wrapping_add(if back { delta.wrapping_sub(WRAP) } else { delta });
            if back {
                valid = false;
                ambiguous = true;
            }
            if delta != 0 && expected != Some(i) {
                if changed {
                    valid = false;
                    ambiguous = true;
                } else {
                    self.estimate = Some(i);
                    changed = true;
                }
            }
        }
        if ambiguous {
            self.estimate = None;
        }
        valid
    }
}

/// The largest count of CE packets among `packets` that leaves ACE where it is. Source: RFC 9768, appendix A.2.
pub fn safe_delta(delta: u32, packets: u32) -> u32 {
    packets - (packets.wrapping_sub(delta) & 7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::accecn::write;

    const MSS: u32 = 1436;

    fn ack(ace: u8) -> Packet {
        Packet { ace, ..Packet::default() }
    }

    /// With counters of ECT(1), CE, ECT(0) bytes.
    fn with_option(ace: u8, counters: [u32; 3]) -> Packet {
        Packet { n_accecn: 3, accecn: counters.map(write), ..ack(ace) }
    }

    fn decode(d: &mut AceDecoder, ack: &Packet, ce: u64, packets: u32) -> u32 {
        d.decode(ack, ce, packets, u64::from(packets * MSS), MSS)
    }

    #[test]
    fn ace_is_read_as_a_difference_modulo_8() {
        for (ace, ce, packets, expected) in
            [(5, 0, 2, 0), (6, 0, 2, 1), (7, 0, 2, 2), (5, 8, 2, 0), (0, 2, 4, 1)]
        {
            let delta = decode(&mut AceDecoder::default(), &ack(ace), ce, packets);
            assert_eq!(delta, expected, "{ace} {ce} {packets}");
        }
        assert_eq!(safe_delta(1, 20), 17);
    }

    /// As Linux has it: an ACK that others overtook and that SACKs something new is read, too. Its counter is one behind, which
    /// reads as seven ahead, and the next one brings the eighth.
    #[test]
    fn an_overtaken_ack_adds_eight() {
        let mut d = AceDecoder::default();
        let mut known = 0;
        for (ace, expected) in [(6, 1), (5, 8), (6, 9)] {
            known += u64::from(decode(&mut d, &ack(ace), known, 1));
            assert_eq!(known, expected, "{ace}");
        }
    }

    #[test]
    fn a_stretch_ack_among_small_ones_is_read_safely() {
        let mut d = AceDecoder::default();
        for _ in 0..100 {
            decode(&mut d, &ack(5), 0, 2);
        }
        assert_eq!(decode(&mut d, &ack(6), 0, 20), 17);
    }

    /// The mean of packets per ACK is then 20, above 4.
    #[test]
    fn among_stretch_acks_the_plain_reading_is_taken() {
        assert_eq!(decode(&mut AceDecoder::default(), &ack(6), 0, 20), 1);
    }

    /// A decoder that has seen ECT(0) bytes only, so that the estimate holds.
    fn settled() -> AceDecoder {
        let mut d = AceDecoder::default();
        decode(&mut d, &with_option(5, [0, 0, 2 * MSS]), 0, 2);
        assert_eq!(d.estimate, Some(2));
        d
    }

    #[test]
    fn the_options_ce_bytes_decide_whether_ace_wrapped() {
        // 20 packets of which 1, 9 or 17 may be marked: all give ACE 6
        for (marked, expected) in [(0, 1), (1, 1), (9, 9), (17, 17), (20, 17)] {
            let mut d = settled();
            let counters = [0, marked * MSS, (22 - marked) * MSS];
            assert_eq!(decode(&mut d, &with_option(6, counters), 0, 20), expected, "{marked}");
        }
        // 10 packets: 1 or 9; 9 full segments exceed one, 1 is below half of nine
        for (marked, expected) in [(1, 1), (4, 9), (9, 9)] {
            let mut d = settled();
            let counters = [0, marked * MSS, (12 - marked) * MSS];
            assert_eq!(decode(&mut d, &with_option(6, counters), 0, 10), expected, "{marked}");
        }
    }

    #[test]
    fn two_fields_beside_the_estimate_make_the_option_useless_once() {
        let mut d = settled();
        let mut ambiguous = with_option(6, [MSS, MSS, 20 * MSS]);
        assert_eq!(decode(&mut d, &ambiguous, 0, 20), 17, "2.3 packets per ACK so far: the safe reading");
        assert_eq!(d.estimate, None);
        ambiguous.n_accecn = 0;
        assert!(!d.read_option(&ambiguous, 1000));
    }

    #[test]
    fn without_the_option_the_field_that_grew_last_goes_on_growing() {
        let mut d = settled();
        assert!(d.read_option(&ack(5), 3000));
        assert_eq!(d.bytes, [0, 0, 2 * MSS + 3000]);
    }

    #[test]
    fn counters_wrap_at_24_bits() {
        let mut d = settled();
        d.bytes[2] = WRAP - 1000;
        assert!(d.read_option(&with_option(5, [0, 0, 500]), 1500));
        assert_eq!(d.bytes[2], WRAP + 500);
        // an older ACK: back by 1000
        assert!(!d.read_option(&with_option(5, [0, 0, WRAP - 500]), 0));
        assert_eq!(d.bytes[2], WRAP - 500);
    }

    #[test]
    fn the_option_gives_way_to_sack_blocks() {
        // 40 bytes of options: 12 of timestamps, 4 + 8 n of SACK
        for blocks in 0..=3 {
            for required in 0..=3 {
                let (left, fields, bytes) = fit(blocks, required, true);
                let sack = if left > 0 { 4 + 8 * left as u32 } else { 0 };
                assert!(12 + sack + bytes <= 40, "{blocks} {required}");
                assert!(fields == 0 || usize::from(fields) >= required);
            }
        }
        assert_eq!(fit(3, 2, true), (2, 2, 8));
        assert_eq!(fit(3, 3, true), (3, 0, 0));
        // 28 of SACK and 12
        assert_eq!(fit(3, 3, false), (3, 3, 12));
    }

    #[test]
    fn a_distrusted_option_is_not_read() {
        let mut d = settled();
        d.distrust_option();
        assert!(!d.read_option(&with_option(5, [0, 0, 3 * MSS]), 1000));
        assert_eq!(d.bytes(), [0, 0, 2 * MSS]);
    }

    #[test]
    fn sparse_options_follow_demand_and_beacon() {
        let mut clock = OptionClock::new(1, 3);
        let rtt = 30_000;
        for _ in 0..2 {
            assert!(clock.due(Time::from_ms(1), rtt));
            clock.on_sent(Time::from_ms(1));
        }
        assert!(!clock.due(Time::from_ms(10), rtt));
        assert!(clock.due(Time::from_ms(11), rtt), "a third of 30 ms after 1 ms");
        assert!(OptionClock::new(2, 0).due(Time::ZERO, rtt));
        assert!(!OptionClock::new(0, 3).due(Time::from_ms(1000), rtt));
        // Level 3 goes on although the path seems to drop it.
        for (level, goes_on) in [(2, false), (3, true)] {
            let mut clock = OptionClock::new(level, 3);
            clock.fail();
            assert_eq!(clock.due(Time::ZERO, rtt), goes_on);
        }
    }
}
