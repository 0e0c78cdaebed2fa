//! The ACK filter: a newer pure acknowledgement takes the place of an older one of the same flow.
//!
//! Source: Linux 7.3 `net/sched/sch_cake.c` (`cake_ack_filter`).
//!
//! An older one goes only if the newer says at least as much: acknowledgement number, timestamps, SACK
//! ranges; and nothing is lost of ECN: a run of equal ECE and CWR bits keeps one. Without `aggressive` two of
//! them must stand in the queue. Packets with AccECN's AE bit stay.
//!
//! Departures: TCP options that the simulator does not send (the AccECN option, which Linux keeps an
//! acknowledgement for) cannot keep a packet here.

use std::collections::VecDeque;

use super::tin::Queued;
use crate::packet::{Flags, Packet, Proto};
use bakeoff_document::qdisc::cake::AckFilter;

/// The wire's AE, CWR and ECE bits as one number, from AccECN's field or from RFC 3168's flags.
fn ecn_bits(packet: &Packet) -> u8 {
    let flag = |flag, bit| if packet.flags.has(flag) { bit } else { 0 };
    packet.ace | flag(Flags::CWR, 2) | flag(Flags::ECE, 1)
}

/// The position of the acknowledgement that the packet at the tail makes superfluous.
pub(super) fn superfluous(filter: AckFilter, queue: &VecDeque<Queued>) -> Option<usize> {
    let newest = &queue.back()?.packet;
    let triggers =
        newest.proto == Proto::Tcp && newest.flags.has(Flags::ACK) && !newest.flags.has(Flags::SYN);
    if filter == AckFilter::Off || !triggers {
        return None;
    }
    let mut found: Option<(usize, u8)> = None;
    let mut count = 0;
    for (at, Queued { packet: older, .. }) in queue.iter().enumerate().take(queue.len() - 1) {
        let connection = |p: &Packet| (p.flow, p.conn, p.dst);
        if older.proto != Proto::Tcp || connection(older) != connection(newest) {
            continue;
        }
        let bits = ecn_bits(older) & 3;
        if found.is_some_and(|(_, run)| run != bits) {
            found = None;
            count -= 1;
        }
        if !may_go(older, newest) {
            continue;
        }
        let (first, _) = *found.get_or_insert((at, bits));
        count += 1;
        if count > 1 {
            return Some(first);
        }
    }
    // One alone: only when the newest stands right behind it and says the same of ECN.
    let (at, bits) = found?;
    let adjacent = at + 2 == queue.len() && bits == ecn_bits(newest) & 3;
    (filter == AckFilter::Aggressive && adjacent).then_some(at)
}

/// Whether `older` is a pure acknowledgement that says nothing that `newest` does not say.
/// Source: Linux 7.3 `cake_tcph_may_drop`.
fn may_go(older: &Packet, newest: &Packet) -> bool {
    let others = Flags::SYN.with(Flags::FIN);
    let is_plain = older.flags.has(Flags::ACK)
        && older.flags.without(others) == older.flags
        && ecn_bits(older) & 4 == 0
        && older.payload == 0;
    if !is_plain || older.sent > newest.sent || older.echo > newest.echo || older.ack > newest.ack {
        return false;
    }
    match sack_says(older, newest) {
        Sack::OlderMore => false,
        Sack::Same => older.ack < newest.ack,
        Sack::NewestMore => true,
    }
}

enum Sack {
    OlderMore,
    Same,
    NewestMore,
}

/// SACK blocks as absolute sequence numbers.
fn blocks(packet: &Packet) -> impl Iterator<Item = (i64, i64)> + use<> {
    let ack = packet.ack as i64;
    let sack = packet.sack;
    (0..usize::from(packet.n_sack))
        .map(move |i| (ack + i64::from(sack[i].start), ack + i64::from(sack[i].end)))
}

/// Which of two acknowledgements reports more; a D-SACK always does. Source: Linux 7.3 `cake_tcph_sack_compare`.
fn sack_says(older: &Packet, newest: &Packet) -> Sack {
    match (older.n_sack, newest.n_sack) {
        (0, 0) => return Sack::Same,
        (_, 0) => return Sack::OlderMore,
        (0, _) => return Sack::NewestMore,
        _ => {}
    }
    let covered = |(start, end)| blocks(newest).any(|(s, e)| s <= start && e >= end);
    if blocks(older).any(|block| block.0 < older.ack as i64 || !covered(block)) {
        return Sack::OlderMore;
    }
    let bytes = |packet| blocks(packet).map(|(start, end)| end - start).sum::<i64>();
    if bytes(newest) > bytes(older) { Sack::NewestMore } else { Sack::Same }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::Time;
    use crate::packet::SackBlock;

    fn ack(number: u64) -> Packet {
        Packet { ack: number, sent: Time(number), flags: Flags::ACK, len: 66, ..Packet::default() }
    }

    fn sacked(number: u64, from: i32, to: i32) -> Packet {
        let mut packet = ack(number);
        packet.sack[0] = SackBlock { start: from, end: to };
        packet.n_sack = 1;
        packet
    }

    fn with_ece(packet: Packet) -> Packet {
        Packet { flags: Flags::ACK.with(Flags::ECE), ..packet }
    }

    fn superfluous(filter: AckFilter, packets: &[Packet]) -> Option<usize> {
        let queue = packets.iter().map(|p| Queued { packet: *p, adjusted_len: p.len }).collect();
        super::superfluous(filter, &queue)
    }

    fn on(packets: &[Packet]) -> Option<usize> {
        superfluous(AckFilter::On, packets)
    }

    fn aggressive(packets: &[Packet]) -> Option<usize> {
        superfluous(AckFilter::Aggressive, packets)
    }

    #[test]
    fn two_older_ones_lose_the_first_and_one_only_aggressively() {
        assert_eq!(on(&[ack(1), ack(2), ack(3)]), Some(0));
        assert_eq!(on(&[ack(1), ack(2)]), None);
        assert_eq!(aggressive(&[ack(1), ack(2)]), Some(0));
        assert_eq!(superfluous(AckFilter::Off, &[ack(1), ack(2), ack(3)]), None);
        assert_eq!(on(&[ack(1)]), None);
    }

    #[test]
    fn duplicates_data_and_strangers_stay() {
        // Equal numbers and no SACK are duplicate acknowledgements: they count for the sender.
        assert_eq!(aggressive(&[ack(2), ack(2)]), None);
        let data = Packet { payload: 100, ..ack(1) };
        assert_eq!(aggressive(&[data, ack(2)]), None);
        // ... but a data packet may be what replaces
        assert_eq!(aggressive(&[ack(1), Packet { payload: 100, ..ack(2) }]), Some(0));
        let other = Packet { flow: 1, ..ack(1) };
        assert_eq!(aggressive(&[other, ack(2)]), None);
        let fin = Packet { flags: Flags::ACK.with(Flags::FIN), ..ack(1) };
        assert_eq!(aggressive(&[fin, ack(2)]), None);
        let later = Packet { echo: Time(9), ..ack(1) };
        assert_eq!(aggressive(&[later, ack(2)]), None);
    }

    #[test]
    fn a_run_of_equal_ecn_bits_keeps_one() {
        let plain = [ack(1), ack(2)];
        let changed = [plain[0], with_ece(plain[1]), with_ece(ack(3)), with_ece(ack(4))];
        assert_eq!(on(&changed[..3]), None);
        assert_eq!(on(&changed), Some(1));
        assert_eq!(aggressive(&[ack(1), with_ece(ack(2))]), None);
        // AccECN: ACE 5 has the AE bit and stays, 1 and 2 do not
        let ace = |number, ace| Packet { ace, ..ack(number) };
        assert_eq!(on(&[ace(1, 5), ace(2, 5), ace(3, 5)]), None);
        assert_eq!(on(&[ace(1, 2), ace(2, 2), ace(3, 2)]), Some(0));
    }

    #[test]
    fn the_newest_must_report_all_that_the_older_did() {
        assert_eq!(aggressive(&[sacked(10, 5, 8), sacked(10, 5, 9)]), Some(0));
        assert_eq!(aggressive(&[sacked(10, 5, 9), sacked(10, 5, 9)]), None);
        assert_eq!(aggressive(&[sacked(10, 5, 9), sacked(11, 5, 8)]), None);
        assert_eq!(aggressive(&[sacked(10, 5, 9), ack(20)]), None);
        assert_eq!(aggressive(&[ack(10), sacked(10, 5, 9)]), Some(0));
        // a D-SACK, below the acknowledgement
        assert_eq!(aggressive(&[sacked(10, -5, -1), sacked(11, -6, 9)]), None);
    }
}
