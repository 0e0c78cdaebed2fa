//! The receiver's ECN feedback: RFC 3168's latch, DCTCP's state changes, AccECN's counters, SCE's echo.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_input.c` (`tcp_data_ecn_check`), `tcp_dctcp.h`, `include/net/tcp_ecn.h`
//! (`tcp_ecn_received_counters`, `tcp_accecn_set_ace`), `tcp_output.c` (`tcp_established_options`); chromi/sce
//! 016933be (`net.ipv4.tcp_sce`); RFC 3168, RFC 8257 (section 3.2), RFC 9768.
//!
//! Departures: the sender of data does not answer CE on ACKs (its own AccECN counters stay 0, and there are none of
//! its change-triggered ACKs); see also `accecn.rs`.
//!
//! Validation: the tests below and in `receiver.rs`.

use super::accecn::{ACE_INIT, OptionClock, field, fit};
use super::ecn::{Mode, Sysctls};
use crate::base::units::Time;
use crate::packet::accecn::write;
use crate::packet::{Ecn, Flags, Packet};

/// Unreported CE packets at which an ACK is due before ACE wraps (`TCP_ACCECN_ACE_MAX_DELTA`).
const MAX_PENDING: u32 = 6;
/// A counter that passes a multiple of this demands the option.
const COUNTER_STEP: u32 = 1 << 22;

/// What a data segment's ECN field asks of the ACK machinery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reaction {
    /// Acknowledge the segment at once.
    pub ack_now: bool,
    /// This many quick ACKs; 0: no change.
    pub quick: u32,
}

/// State of one connection's receiving end.
pub struct Feedback {
    mode: Mode,
    /// The module wants CE told by state changes, not by the latch.
    dctcp: bool,
    sce: bool,
    /// ECE goes out: until CWR arrives, or as DCTCP's state says.
    demand_cwr: bool,
    /// Some segment was ECN-capable.
    saw_ect: bool,
    ce_state: bool,
    /// `rcv_nxt` after the segment before this one.
    prior_rcv_nxt: u64,
    /// The next ACK carries ESCE.
    esce: bool,
    prior_sce: bool,
    received_ce: u64,
    pending: u32,
    previous: Ecn,
    option: OptionClock,
    bytes: [u32; 3],
    /// Fields up to here have changed since the last option.
    changed: usize,
    timestamps: bool,
    /// The last segment carried option and D-SACK.
    option_with_dsack: bool,
}

impl Feedback {
    /// How the connection uses ECN.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// For a connection in `mode`; `dctcp` if the module at this end has DCTCP's receiver; `option` if both
    /// ends send AccECN's option.
    pub fn new(mode: Mode, sysctls: &Sysctls, dctcp: bool, option: bool) -> Self {
        Feedback {
            mode,
            dctcp,
            sce: sysctls.sce && mode == Mode::Rfc3168,
            demand_cwr: false,
            saw_ect: false,
            ce_state: false,
            prior_rcv_nxt: 0,
            esce: false,
            prior_sce: false,
            received_ce: 0,
            pending: 0,
            previous: Ecn::NotEct,
            option: OptionClock::new(if option { sysctls.option } else { 0 }, sysctls.beacon),
            bytes: [0; 3],
            changed: 0,
            timestamps: true,
            option_with_dsack: false,
        }
    }

    /// The same for a connection without timestamps, which leaves more room for options.
    #[must_use]
    pub fn without_timestamps(self) -> Self {
        Feedback { timestamps: false, ..self }
    }

    /// The handshake as this end saw it: the ECN field of the SYN (none at a client, which does not remember the
    /// SYN/ACK's), and whether the SYN/ACK came with CE, which counts as a packet.
    pub fn after_handshake(&mut self, syn: Ecn, marked_synack: bool) {
        self.previous = syn;
        self.received_ce += u64::from(marked_synack);
        self.pending += u32::from(marked_synack);
    }

    /// When the option is sent.
    pub fn option_mut(&mut self) -> &mut OptionClock {
        &mut self.option
    }

    /// Whether the option is sent no more because ACKs with it seem to get lost.
    pub fn option_failed(&self) -> bool {
        self.option.failed()
    }

    /// Packets that arrived with CE, and bytes of payload as ECT(1), CE and ECT(0).
    pub fn received(&self) -> (u64, [u32; 3]) {
        (self.received_ce, self.bytes)
    }

    /// A segment arrived for the third time, its last D-SACK unheard: if that ACK had the option,
    /// the option is to blame (`tcp_rcv_spurious_retrans`).
    pub fn dsack_unheard(&mut self) {
        if self.option_with_dsack {
            self.option.fail();
        }
    }

    /// A packet arrived, in order or not. True if an ACK is due at once.
    pub fn on_packet(&mut self, packet: &Packet) -> bool {
        match self.mode {
            Mode::Off => false,
            Mode::Rfc3168 => self.accept_cwr(packet),
            Mode::AccEcn => self.count(packet),
        }
    }

    /// The echo ends when CWR arrives (RFC 3168, section 6.1.3). Source: Linux 7.3 `tcp_ecn_accept_cwr`.
    fn accept_cwr(&mut self, packet: &Packet) -> bool {
        let cwr = packet.flags.has(Flags::CWR);
        if cwr {
            self.demand_cwr = false;
        }
        cwr
    }

    /// AccECN's counters, which count every segment of a buffer, and its change-triggered ACK (RFC 9768, section 3.2.2.5.1).
    fn count(&mut self, packet: &Packet) -> bool {
        let ecn = packet.ecn;
        if let Some(i) = field(ecn) {
            self.saw_ect = true;
            let ce = if ecn == Ecn::Ce { packet.segs() } else { 0 };
            self.received_ce += u64::from(ce);
            self.pending = (self.pending + ce).min(15);
            if packet.payload > 0 {
                let before = self.bytes[i];
                self.bytes[i] = before.wrapping_add(packet.payload);
                self.changed = self.changed.max(i + 1);
                if before / COUNTER_STEP != self.bytes[i] / COUNTER_STEP {
                    self.option.demand(1);
                }
            }
        }
        let edge = ecn != self.previous;
        self.previous = ecn;
        if edge || ecn == Ecn::Ce {
            self.option.demand(2);
        }
        edge || self.pending >= MAX_PENDING
    }

    /// If a segment with this field changes what is told, the sequence number up to which a waiting
    /// delayed ACK has to leave first: it tells of the state before (RFC 8257, section 3.2).
    pub fn changes(&self, ecn: Ecn) -> Option<u64> {
        let dctcp =
            self.mode != Mode::Off && self.dctcp && ecn.is_capable() && (ecn == Ecn::Ce) != self.ce_state;
        let sce = self.sce && (ecn == Ecn::Ect1) != self.prior_sce;
        (dctcp || sce).then_some(self.prior_rcv_nxt)
    }

    /// `tcp_data_ecn_check`: a segment with new data; `rcv_nxt` as it is with it.
    pub fn on_data(&mut self, ecn: Ecn, rcv_nxt: u64) -> Reaction {
        let mut reaction = Reaction::default();
        if self.mode == Mode::Off {
            return reaction;
        }
        let ce = ecn == Ecn::Ce;
        if ecn.is_capable() {
            if self.dctcp {
                reaction.ack_now = ce != self.ce_state;
                self.ce_state = ce;
            } else if ce && !self.demand_cwr && self.mode == Mode::Rfc3168 {
                self.demand_cwr = true;
                reaction.quick = 2;
            }
            self.saw_ect = true;
        } else if self.saw_ect {
            // A retransmission among ECN-capable data.
            reaction.quick = 2;
        }
        let sce = ecn == Ecn::Ect1;
        if self.sce && sce != self.prior_sce {
            self.prior_sce = sce;
            reaction.quick = reaction.quick.max(1);
        }
        // Told once per marked segment, and no longer when a later one is not.
        self.esce = self.sce && sce;
        self.prior_rcv_nxt = rcv_nxt;
        reaction
    }

    /// Puts ECE and ESCE, or the ACE counter, into a segment's header.
    pub fn tell(&mut self, packet: &mut Packet) {
        match self.mode {
            Mode::Off => {}
            Mode::Rfc3168 => {
                if if self.dctcp { self.ce_state } else { self.demand_cwr } {
                    packet.flags = packet.flags.with(Flags::ECE);
                }
                if std::mem::take(&mut self.esce) {
                    packet.flags = packet.flags.with(Flags::ESCE);
                }
            }
            Mode::AccEcn => {
                packet.ace = ((self.received_ce + ACE_INIT) & 7) as u8;
                self.pending = 0;
            }
        }
    }

    /// Adds AccECN's option, if it is due, to an ACK that would like to carry `blocks` SACK blocks; returns how many
    /// it may, and the bytes of the option. `dsack`: one of them is a D-SACK; `srtt_us` is for the beacon.
    pub fn add_option(
        &mut self,
        ack: &mut Packet,
        blocks: usize,
        dsack: bool,
        now: Time,
        srtt_us: u64,
    ) -> (usize, u32) {
        self.option_with_dsack = false;
        if self.mode != Mode::AccEcn || !self.option.due(now, srtt_us) {
            return (blocks, 0);
        }
        let (blocks, fields, bytes) = fit(blocks, self.changed, self.timestamps);
        ack.n_accecn = fields;
        self.fill_option(ack, now);
        self.option_with_dsack = dsack && fields > 0;
        (blocks, bytes)
    }

    /// Writes the counters into a segment that has room for the option.
    pub fn fill_option(&mut self, segment: &mut Packet, now: Time) {
        self.option_with_dsack = false;
        if segment.n_accecn > 0 {
            segment.accecn = self.bytes.map(write);
            self.changed = 0;
            self.option.on_sent(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Ecn::{Ce, Ect0, Ect1, NotEct};

    fn feedback(mode: Mode, dctcp: bool, sce: bool) -> Feedback {
        Feedback::new(mode, &Sysctls { sce, ..Sysctls::default() }, dctcp, false)
    }

    fn flags(f: &mut Feedback) -> (bool, bool) {
        let mut ack = Packet::default();
        f.tell(&mut ack);
        (ack.flags.has(Flags::ECE), ack.flags.has(Flags::ESCE))
    }

    #[test]
    fn rfc_3168_latches_until_cwr() {
        let mut f = feedback(Mode::Rfc3168, false, false);
        assert_eq!(f.on_data(Ect0, 1), Reaction::default());
        assert_eq!(f.on_data(Ce, 2).quick, 2);
        assert_eq!(f.on_data(Ce, 3), Reaction::default(), "latched already");
        assert_eq!(f.on_data(Ect0, 4), Reaction::default());
        assert!(flags(&mut f).0);
        let cwr = Packet { flags: Flags::CWR, ..Packet::default() };
        assert!(f.on_packet(&cwr), "acknowledged at once");
        assert!(!flags(&mut f).0);
        assert_eq!(f.on_data(NotEct, 5).quick, 2, "a retransmission");
    }

    #[test]
    fn dctcp_tells_the_state_of_the_last_segment_and_flushes_what_waits_when_it_changes() {
        let mut f = feedback(Mode::Rfc3168, true, false);
        // the state before, and whether an ACK is due at once
        for (i, (ecn, change, ece)) in [
            (Ect0, false, false),
            (Ce, true, true),
            (Ce, false, true),
            (Ect0, true, false),
            (Ect0, false, false),
        ]
        .into_iter()
        .enumerate()
        {
            let rcv_nxt = i as u64 + 1;
            assert_eq!(f.changes(ecn), change.then_some(rcv_nxt - 1), "{i}");
            assert_eq!(f.on_data(ecn, rcv_nxt), Reaction { ack_now: change, quick: 0 }, "{i}");
            assert_eq!(flags(&mut f).0, ece, "{i}");
        }
        // CWR does not hide a state that goes on
        f.on_data(Ce, 6);
        f.on_packet(&Packet { flags: Flags::CWR, ..Packet::default() });
        assert!(flags(&mut f).0);
    }

    #[test]
    fn sce_is_echoed_once_per_marked_segment() {
        let mut f = feedback(Mode::Rfc3168, false, true);
        assert_eq!(f.changes(Ect0), None);
        f.on_data(Ect0, 1);
        assert_eq!(f.changes(Ect1), Some(1));
        assert_eq!(f.on_data(Ect1, 2).quick, 1);
        assert_eq!(flags(&mut f), (false, true));
        assert_eq!(flags(&mut f), (false, false), "one ACK carries it");
        assert_eq!(f.changes(Ect1), None);
        assert_eq!(f.on_data(Ect1, 3).quick, 0);
        assert_eq!(f.changes(Ect0), Some(3), "and what waits leaves with ESCE");
        assert_eq!(flags(&mut f), (false, true));
        assert_eq!(f.on_data(Ect0, 4).quick, 1);
        assert_eq!(flags(&mut f), (false, false));
    }

    #[test]
    fn sce_needs_the_sysctl() {
        let mut f = feedback(Mode::Rfc3168, false, false);
        f.on_data(Ect1, 1);
        assert_eq!((f.changes(Ect0), flags(&mut f)), (None, (false, false)));
    }

    #[test]
    fn accecn_counts_bytes_by_field_and_an_edge_is_acknowledged() {
        let mut f = Feedback::new(Mode::AccEcn, &Sysctls::default(), false, true);
        let segment = |ecn| Packet { ecn, payload: 1000, ..Packet::default() };
        let acks: Vec<bool> =
            [Ect0, Ect0, Ce, Ce, Ect0, Ect1].iter().map(|&ecn| f.on_packet(&segment(ecn))).collect();
        assert_eq!(acks, [true, false, true, false, true, true]);
        f.on_packet(&Packet { ecn: Ce, ..Packet::default() });
        let mut ack = Packet::default();
        f.tell(&mut ack);
        assert_eq!(f.add_option(&mut ack, 1, false, Time::ZERO, 0), (1, 12));
        assert_eq!(ack.ace, 0, "5 + 3 packets with CE, pure ACKs included, modulo 8");
        assert_eq!(ack.accecn, [1000, 2000, 3000].map(write), "bytes of payload only");
        // nothing has changed since: a third SACK block goes first
        assert_eq!(f.add_option(&mut ack, 3, false, Time::ZERO, 0), (3, 0));
        f.on_packet(&segment(Ce));
        assert_eq!(f.add_option(&mut ack, 3, false, Time::ZERO, 0), (2, 8), "news of the second field");
    }

    #[test]
    fn a_marked_buffer_counts_all_its_segments() {
        let mut f = feedback(Mode::AccEcn, false, false);
        let marked = Packet { ecn: Ce, payload: 6000, len: 6396, gso_size: 1000, ..Packet::default() };
        assert!(f.on_packet(&marked), "an edge, and six unreported marks");
        assert!(f.on_packet(&marked), "no edge, but marks");
        assert_eq!(f.received(), (12, [0, 12_000, 0]));
    }

    #[test]
    fn the_handshakes_fields_count_as_the_kernel_counts_them() {
        let mut f = feedback(Mode::AccEcn, false, false);
        f.after_handshake(Ect0, true);
        assert!(!f.on_packet(&Packet { ecn: Ect0, payload: 1000, ..Packet::default() }), "no edge");
        let mut ack = Packet::default();
        f.tell(&mut ack);
        assert_eq!((ack.ace, f.received()), (6, (1, [0, 0, 1000])));
    }

    #[test]
    fn six_unreported_marks_are_acknowledged_before_the_field_wraps() {
        let mut f = feedback(Mode::AccEcn, false, false);
        let ce = Packet { ecn: Ce, payload: 1000, ..Packet::default() };
        let due: Vec<bool> = (0..7).map(|_| f.on_packet(&ce)).collect();
        assert_eq!(due, [true, false, false, false, false, true, true]);
    }
}
