//! Marks and their echo, for each way to use ECN.

use bakeoff_trace::options::Options;
use bakeoff_trace::report::{EcnMode, Flow};

use crate::frames::{
    ACK, AE, CE, CWR, DATA, ECE, ECT0, ECT1, PURE, SYN, Tcp, capture, timestamps, told_of, told_with,
};

/// A handshake in which the SYN and the SYN/ACK have these bits, and the last ACK those of `ace`.
fn handshake(asks: u16, agrees: u16, ace: u16) -> Vec<(u32, Tcp<'static>)> {
    vec![
        (0, Tcp { flags: SYN | asks, seq: 99, length: 0, ..DATA }),
        (30_000, Tcp { flags: SYN | ACK | agrees, seq: 499, ack: 100, ..PURE }),
        (40_000, Tcp { flags: ACK | ace, seq: 100, ack: 500, length: 0, ..DATA }),
    ]
}

fn ace(number: u16) -> u16 {
    (number & 7) << 6
}

fn data(seq: u32, ecn: u8) -> Tcp<'static> {
    Tcp { seq, ack: 500, ecn, ..DATA }
}

fn ack(ack: u32, flags: u16) -> Tcp<'static> {
    Tcp { seq: 500, ack, flags: ACK | flags, ..PURE }
}

fn mode(flow: &Flow) -> (EcnMode, &'static str) {
    (flow.ecn.mode, flow.ecn.chosen_by)
}

/// RFC 9768, table 2, and RFC 3168: what SYN and SYN/ACK say, as the numbers of AE, CWR and ECE.
#[test]
fn the_handshake_chooses() {
    let cases = [
        (0b000, 0b000, EcnMode::None),
        (0b011, 0b000, EcnMode::None),
        (0b011, 0b001, EcnMode::Rfc3168),
        (0b111, 0b001, EcnMode::Rfc3168),
        (0b111, 0b101, EcnMode::AccEcn),
        // The nonce of RFC 3540; and an answer that RFC 3168 does not know.
        (0b011, 0b101, EcnMode::Rfc3168),
        (0b011, 0b010, EcnMode::None),
        // Bits that no RFC gives a meaning ask for AccECN, and RFC 3168 does not answer them.
        (0b100, 0b010, EcnMode::AccEcn),
        (0b110, 0b100, EcnMode::AccEcn),
        (0b001, 0b001, EcnMode::None),
        (0b111, 0b010, EcnMode::AccEcn),
        (0b111, 0b011, EcnMode::AccEcn),
        (0b111, 0b100, EcnMode::AccEcn),
        (0b111, 0b110, EcnMode::AccEcn),
        // The SYN's bits came back as they were: the server mirrors what it does not know.
        (0b111, 0b111, EcnMode::None),
        (0b111, 0b000, EcnMode::None),
    ];
    for (asks, agrees, wanted) in cases {
        let report = told_of(&handshake(ace(asks), ace(agrees), 0));
        assert_eq!(mode(&report.flows[0]), (wanted, "handshake"), "{asks:03b} {agrees:03b}");
    }
}

/// The bits of SYNs, SYN/ACKs and the last ACK of a handshake, the ECN field of data, and the bits of its ACKs.
type Opened = (&'static [u16], &'static [u16], u16, u8, u16);

/// A connection whose SYNs, SYN/ACKs and last ACK have these bits, with two packets of data of this ECN field and their ACKs.
fn opened((asks, answers, third, ecn, echo): Opened) -> Flow {
    let mut segments = Vec::new();
    for (bits, syn) in [
        (asks, Tcp { flags: SYN, seq: 99, length: 0, ..DATA }),
        (answers, Tcp { flags: SYN | ACK, seq: 499, ack: 100, ..PURE }),
    ] {
        segments.extend(bits.iter().map(|bits| Tcp { flags: syn.flags | ace(*bits), ..syn }));
    }
    segments.push(Tcp { flags: ACK | ace(third), seq: 100, ack: 500, length: 0, ..DATA });
    segments.extend([data(100, ecn), data(1100, ecn), ack(1100, ace(echo)), ack(2100, ace(echo))]);
    let timed: Vec<_> = (0..).step_by(1000).zip(segments).collect();
    told_of(&timed).flows.swap_remove(0)
}

/// A SYN or SYN/ACK that is repeated without bits clears its own only. Where SYN/ACKs differ, the client took one.
#[test]
fn a_repeated_syn_or_syn_ack_takes_nothing_back() {
    const CLASSIC: EcnMode = EcnMode::Rfc3168;
    let cases: [(Opened, EcnMode); 9] = [
        ((&[0b011, 0], &[0b001], 0, ECT0, 0), CLASSIC),
        ((&[0b111, 0b111, 0], &[0b010], 0b010, ECT0, 5), EcnMode::AccEcn),
        ((&[0b111, 0b011], &[0b001], 0, ECT0, 0), CLASSIC),
        ((&[0b111, 0], &[0], 0, 0, 0), EcnMode::None),
        ((&[0b111], &[0b010, 0b010, 0], 0b010, ECT0, 5), EcnMode::AccEcn),
        ((&[0b011], &[0b001, 0], 0, ECT0, 0b001), CLASSIC),
        // The SYN/ACKs with bits were lost on their way: nobody uses ECN.
        ((&[0b111], &[0b010, 0], 0, 0, 0), EcnMode::None),
        ((&[0b011], &[0b001, 0], 0, 0, 0), EcnMode::None),
        // The capture lacks the first SYN.
        ((&[0], &[0b001], 0, ECT0, 0b001), CLASSIC),
    ];
    for (bits, wanted) in cases {
        assert_eq!(mode(&opened(bits)), (wanted, "handshake"), "{bits:?}");
    }
}

/// Without a SYN/ACK that agreed, the packets say it.
#[test]
fn what_the_handshake_does_not_say_the_packets_do() {
    let cases: [(Opened, EcnMode, &str); 9] = [
        ((&[], &[0b001], 0, ECT0, 0), EcnMode::Rfc3168, "handshake"),
        ((&[], &[0b100], 0b010, ECT0, 5), EcnMode::AccEcn, "handshake"),
        ((&[], &[0b101], 0b010, ECT0, 5), EcnMode::AccEcn, "handshake"),
        ((&[], &[0], 0, 0, 0), EcnMode::None, "handshake"),
        ((&[0b011], &[], 0, ECT0, 0), EcnMode::Rfc3168, "packets"),
        ((&[0b111], &[], 0b010, ECT0, 0), EcnMode::AccEcn, "packets"),
        ((&[0b011], &[], 0, 0, 0), EcnMode::None, "packets"),
        // The SYN/ACK with bits is missing.
        ((&[0b011], &[0], 0, ECT0, 0b001), EcnMode::Rfc3168, "packets"),
        ((&[], &[0], 0b010, ECT0, 5), EcnMode::AccEcn, "packets"),
    ];
    for (bits, wanted, by) in cases {
        assert_eq!(mode(&opened(bits)), (wanted, by), "{bits:?}");
    }
}

/// ACKs alone, by the numbers of their bits: ECE is RFC 3168; a counter goes on; ESCE goes back and forth, and
/// may come with ECE.
#[test]
fn acks_alone_tell_the_mode() {
    let cases: [(&[u16], EcnMode, Option<u64>); 5] = [
        (&[0, 0, 0], EcnMode::None, None),
        (&[0, 1, 1, 1, 0], EcnMode::Rfc3168, Some(3)),
        (&[5, 5, 6, 7, 0], EcnMode::AccEcn, None),
        (&[5, 5, 5], EcnMode::AccEcn, None),
        (&[0, 4, 5, 1, 0, 4, 0], EcnMode::Sce, Some(2)),
    ];
    for (bits, wanted, ece) in cases {
        let acks: Vec<_> =
            (1..).zip(bits).map(|(i, bits)| (i * 10_000, ack(100 + 1000 * i, ace(*bits)))).collect();
        let flow = &told_of(&acks).flows[0];
        assert_eq!(mode(flow), (wanted, "packets"), "{bits:?}");
        assert_eq!(flow.up.marks.ece_acks, ece, "{bits:?}");
    }
    // The counter begins at 5 where the SYN/ACK was seen: the first ACK says that two packets had CE.
    let syn_ack = Tcp { flags: SYN | ACK | ace(0b010), seq: 499, ack: 100, ..PURE };
    let flow = &told_of(&[(0, syn_ack), (50_000, ack(1100, ace(7)))]).flows[0];
    assert_eq!((mode(flow).0, flow.up.marks.echoed_ce_packets), (EcnMode::AccEcn, Some(2)));
}

/// 2 of 3 packets with CE; ACKs with ECE until the packet with CWR.
#[test]
fn rfc_3168_counts_ece_and_cwr() {
    let mut segments = handshake(ECE | CWR, ECE, 0);
    segments.extend([(50_000, data(100, ECT0)), (50_100, data(1100, CE)), (50_200, data(2100, CE))]);
    segments.extend([(80_000, ack(2100, ECE)), (80_100, ack(3100, ECE))]);
    segments.push((81_000, Tcp { flags: ACK | CWR, ..data(3100, ECT0) }));
    segments.push((111_000, ack(4100, 0)));
    let flow = &told_of(&segments).flows[0];
    let marks = &flow.up.marks;
    assert_eq!(mode(flow), (EcnMode::Rfc3168, "handshake"));
    assert_eq!((marks.ce, marks.ece_acks, marks.cwr), (2, Some(2), Some(1)));
    assert_eq!((marks.echoed_ce_packets, marks.sce), (None, None));
    let runs = marks.ce_runs.values.expect("one run");
    assert_eq!((marks.ce_runs.n, runs.max), (1, 2.0));
}

/// AccECN: ACE begins at 5; 5, 6, 0 (two more, over the wrap), 0, 1. The third packet of the handshake says 010 (Not-ECT
/// SYN/ACK) and counts nothing.
#[test]
fn ace_counts_over_its_wrap() {
    let mut segments = handshake(AE | CWR | ECE, ace(0b010), ace(0b010));
    for (i, number) in [5, 6, 0, 0, 1].into_iter().enumerate() {
        let at = 50_000 + 10_000 * i as u32;
        let seq = 100 + 1000 * i as u32;
        let ecn = if i == 0 { ECT0 } else { ECT1 };
        segments.push((at, Tcp { flags: ACK | ace(5), ..data(seq, ecn) }));
        segments.push((at + 5000, ack(seq + 1000, ace(number))));
    }
    let flow = &told_of(&segments).flows[0];
    assert_eq!(mode(flow), (EcnMode::AccEcn, "handshake"));
    assert_eq!(flow.up.marks.echoed_ce_packets, Some(4));
    assert_eq!((flow.up.marks.ace_ambiguous, flow.up.marks.ece_acks), (Some(0), None));
    assert_eq!(flow.down.marks.echoed_ce_packets, Some(0));
    assert_eq!(flow.up.ecn.ect1, 4);
    // L4S: ECT(1) is no mark where ECT(0) does not come back.
    assert_eq!(flow.up.marks.sce, None);
}

/// An ACK that acknowledges nothing and has no newer timestamp may have been overtaken: its ACE is left to the next.
#[test]
fn an_overtaken_ace_is_passed_over() {
    let [old, new] = [timestamps(10, 0), timestamps(11, 0)];
    let mut segments = handshake(AE | CWR | ECE, ace(0b010), ace(0b010));
    segments.extend([(50_000, data(100, ECT0)), (51_000, data(1100, ECT0))]);
    segments.push((80_000, Tcp { options: &new, ..ack(2100, ace(6)) }));
    segments.push((80_001, Tcp { options: &old, ..ack(2100, ace(5)) }));
    segments.push((80_002, Tcp { options: &new, ..ack(2100, ace(6)) }));
    assert_eq!(told_of(&segments).flows[0].up.marks.echoed_ce_packets, Some(1));
}

fn option(kind: u8, counters: [u32; 3]) -> Vec<u8> {
    let bytes = counters.into_iter().flat_map(|c| c.to_be_bytes()[1..].to_vec());
    [kind, 11].into_iter().chain(bytes).chain([1]).collect()
}

/// Ten segments of 1000 bytes, all with CE, in one ACK: ACE moved by 10 mod 8 = 2, and 10,000 bytes say that it wrapped.
/// Option 172 has ECT(0), CE, ECT(1); option 174 the reverse. The counters begin at 1, 0, 1.
#[test]
fn the_option_counts_bytes_and_settles_wraps() {
    let options = [option(172, [1 + 2000, 10_000, 1 + 500]), option(174, [1 + 500, 10_000, 1 + 2000])];
    for option in &options {
        let mut segments = handshake(AE | CWR | ECE, ace(0b010), ace(0b010));
        segments.extend((0..10).map(|i| (50_000 + i, data(100 + i * 1000, CE))));
        segments.push((80_000, Tcp { options: option, ..ack(10_100, ace(5 + 10)) }));
        let marks = &told_of(&segments).flows[0].up.marks;
        assert_eq!((marks.ce, marks.echoed_ce_packets, marks.ace_ambiguous), (10, Some(10), Some(0)));
        assert_eq!(marks.echoed_ce_bytes, Some(10_000));
        assert_eq!((marks.echoed_ect0_bytes, marks.echoed_ect1_bytes), (Some(2000), Some(500)));
    }
    // Without the option it stays open.
    let mut segments = handshake(AE | CWR | ECE, ace(0b010), ace(0b010));
    segments.extend((0..10).map(|i| (50_000 + i, data(100 + i * 1000, CE))));
    segments.push((80_000, ack(10_100, ace(5 + 10))));
    let marks = &told_of(&segments).flows[0].up.marks;
    assert_eq!((marks.echoed_ce_packets, marks.ace_ambiguous), (Some(2), Some(1)));
}

/// The 24 bits of a counter wrap: 3000 before the end, then 2000 behind it.
#[test]
fn counters_of_the_option_wrap() {
    let options = [option(172, [1, 0x00ff_ffff - 2999, 1]), option(172, [1, 2000, 1])];
    let mut segments = vec![(0, data(100, ECT0)), (1, data(1100, ECT0))];
    segments.push((10, Tcp { options: &options[0], ..ack(100, ace(5)) }));
    segments.push((20, Tcp { options: &options[0], ..ack(1100, ace(5)) }));
    segments.push((30, Tcp { options: &options[1], ..ack(2100, ace(5)) }));
    let flow = &told_of(&segments).flows[0];
    assert_eq!(mode(flow), (EcnMode::AccEcn, "packets"));
    assert_eq!(flow.up.marks.echoed_ce_bytes, Some(5000));
}

/// SCE: RFC 3168 was agreed, a queue turned ECT(0) into ECT(1), and the receiver echoes it by the former NS bit.
#[test]
fn sce_is_told_by_its_marks() {
    let mut segments = handshake(ECE | CWR, ECE, 0);
    segments.extend([(50_000, data(100, ECT0)), (50_100, data(1100, ECT1)), (50_300, data(2100, ECT1))]);
    segments.extend([(80_000, ack(1100, 0)), (80_100, ack(3100, AE)), (80_200, data(3100, ECT0))]);
    let flow = &told_of(&segments).flows[0];
    let marks = &flow.up.marks;
    assert_eq!(mode(flow), (EcnMode::Sce, "handshake"));
    assert_eq!((marks.sce, marks.esce_acks, marks.esce_acked_bytes), (Some(2), Some(1), Some(2000)));
    assert_eq!((marks.sce_runs.n, marks.sce_gap_s.n), (1, 1));
    assert!((marks.sce_gap_s.values.expect("one").mean - 0.0002).abs() < 1e-9);
}

/// The user knows better.
#[test]
fn the_option_decides() {
    let segments = [(0, data(100, ECT0)), (1, data(1100, ECT1)), (2, ack(2100, AE))];
    let flow = &told_of(&segments).flows[0];
    assert_eq!(mode(flow), (EcnMode::Sce, "packets"));
    let options = Options { ecn: Some(EcnMode::Rfc3168), ..Options::default() };
    let flow = &told_with(capture(&segments), &options).flows[0];
    assert_eq!(mode(flow), (EcnMode::Rfc3168, "option"));
    assert_eq!((flow.up.marks.ece_acks, flow.up.marks.sce), (Some(0), None));
}
