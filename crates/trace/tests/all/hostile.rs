//! Files that were damaged at random: nothing panics, and what is told stays small.
//!
//! `PROPTEST_CASES` says how many; the usual number takes a second.

use std::io::Cursor;

use bakeoff_trace::options::Options;
use proptest::prelude::*;

use crate::frames::{ACK, AE, CWR, DATA, ECE, PURE, SYN, Tcp, pcap, sack, timestamps};

/// Most bytes of a report per byte of the file, and a part of it that even an empty file has.
const TOLD: (usize, usize) = (400, 40_000);

fn segment() -> impl Strategy<Value = Vec<u8>> {
    let options = prop_oneof![
        Just(Vec::new()),
        (any::<u32>(), any::<u32>()).prop_map(|(value, echo)| timestamps(value, echo)),
        prop::collection::vec((0..20_000u32, 0..20_000u32), 1..4).prop_map(|blocks| sack(&blocks)),
        prop::collection::vec(any::<u8>(), 8).prop_map(|bytes| bytes),
        prop::collection::vec(any::<u8>(), 9).prop_map(|bytes| [&[172, 11][..], &bytes, &[1]].concat()),
    ];
    let numbers = prop_oneof![4 => 0..20_000u32, 1 => any::<u32>()];
    (any::<bool>(), any::<u16>(), numbers.clone(), numbers, 0..1500u16, 0..4u8, options, 0..12u8).prop_map(
        |(up, flags, seq, ack, length, ecn, options, kind)| {
            let flags = match kind {
                0 => SYN | AE | CWR | ECE,
                1 => SYN | ACK | CWR,
                2 => flags & 0x1ff,
                _ => ACK,
            };
            let base = if length % 2 == 0 { DATA } else { PURE };
            Tcp { up, flags, seq, ack, length, ecn, options: &options, ..base }.frame()
        },
    )
}

fn file() -> impl Strategy<Value = Vec<u8>> {
    let frames = prop::collection::vec((any::<u32>(), segment()), 1..40);
    (frames, prop_oneof![3 => Just(1u32), 1 => 0..300u32]).prop_map(|(frames, link)| pcap(link, &frames))
}

/// As pcapng, by the writer that the simulator uses.
fn pcapng(file: &[u8]) -> Vec<u8> {
    use pcap_file::pcapng::PcapNgWriter;
    use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
    use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionBlock;
    let mut writer = PcapNgWriter::new(Vec::new()).expect("memory");
    let interface = InterfaceDescriptionBlock {
        linktype: pcap_file::DataLink::ETHERNET,
        snaplen: 0,
        options: Vec::new(),
    };
    writer.write_pcapng_block(interface).expect("memory");
    let mut at = 24;
    while at + 16 <= file.len() {
        let field = |i: usize| u32::from_le_bytes(file[at + i..at + i + 4].try_into().expect("four bytes"));
        let kept = field(8) as usize;
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: std::time::Duration::from_micros(u64::from(field(4))),
            original_len: field(12),
            data: (&file[at + 16..at + 16 + kept]).into(),
            options: Vec::new(),
        };
        writer.write_pcapng_block(block).expect("memory");
        at += 16 + kept;
    }
    writer.into_inner()
}

/// Damage: bytes set anywhere, a piece taken out, a piece twice, the end cut off.
fn damaged(mut file: Vec<u8>, bytes: &[(usize, u8)], piece: (usize, usize), cut: usize, how: u8) -> Vec<u8> {
    for (at, byte) in bytes {
        let at = at % file.len();
        file[at] = *byte;
    }
    let from = piece.0 % file.len();
    let to = (from + piece.1 % 64).min(file.len());
    match how {
        1 => drop(file.drain(from..to)),
        2 => {
            let again = file[from..to].to_vec();
            file.splice(from..from, again);
        }
        3 => file.truncate(cut % (file.len() + 1)),
        _ => {}
    }
    file
}

fn check(file: Vec<u8>) {
    let length = file.len();
    let options = Options { interval_s: Some(0.5), flows: 64, ..Options::default() };
    let outcome = bakeoff_trace::trace("a", Box::new(Cursor::new(file)), &options, &mut || false);
    if let Ok(mut report) = outcome {
        for flow in &mut report.flows {
            // These are bounded by their number, and long wherever a time lies.
            assert!(flow.series.take().is_none_or(|series| series.time_s.len() <= 4096));
        }
        let told = serde_json::to_string(&report).expect("numbers");
        assert!(told.len() <= TOLD.0 * length + TOLD.1, "{} bytes of {length}", told.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_files_are_read_or_refused(
        file in file(),
        newer in any::<bool>(),
        bytes in prop::collection::vec((any::<usize>(), any::<u8>()), 0..8),
        piece in any::<(usize, usize)>(),
        cut in any::<usize>(),
        how in 0..4u8,
    ) {
        let file = if newer { pcapng(&file) } else { file };
        check(damaged(file, &bytes, piece, cut, how));
    }

    #[test]
    fn anything_behind_a_magic_number_is_read_or_refused(
        magic in 0..8usize,
        bytes in prop::collection::vec(any::<u8>(), 0..2000),
    ) {
        let begins: [&[u8]; 8] = [
            &[0xd4, 0xc3, 0xb2, 0xa1],
            &[0xa1, 0xb2, 0x3c, 0x4d],
            &[0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a],
            &[0x1f, 0x8b, 8, 0],
            &[0x28, 0xb5, 0x2f, 0xfd],
            &[0xfd, b'7', b'z', b'X', b'Z', 0],
            b"BZh9",
            &[],
        ];
        check([begins[magic], &bytes].concat());
    }
}
