//! Files: both forms, byte orders, clocks, compression, and what is cut off or lies.

use std::io::{Cursor, Read, Write};

use bakeoff_trace::options::Options;
use bakeoff_trace::report::Report;

use crate::frames::{DATA, Tcp, pcap, told, told_with};

fn word(value: u32, big: bool) -> [u8; 4] {
    if big { value.to_be_bytes() } else { value.to_le_bytes() }
}

fn half(value: u16, big: bool) -> [u8; 2] {
    if big { value.to_be_bytes() } else { value.to_le_bytes() }
}

fn block(kind: u32, big: bool, body: &[u8]) -> Vec<u8> {
    let length = word(12 + body.len().next_multiple_of(4) as u32, big);
    let padding = vec![0; body.len().next_multiple_of(4) - body.len()];
    [&word(kind, big)[..], &length, body, &padding, &length].concat()
}

fn section(big: bool) -> Vec<u8> {
    let version = [half(1, big), half(0, big)].concat();
    block(0x0a0d_0d0a, big, &[&word(0x1a2b_3c4d, big)[..], &version, &[0xff; 8]].concat())
}

/// An interface whose ticks are `resolution`, and whose times are `offset` seconds later than they say.
fn interface(big: bool, link_type: u16, resolution: u8, offset: i64) -> Vec<u8> {
    let offset = if big { offset.to_be_bytes() } else { offset.to_le_bytes() };
    let body = [
        &half(link_type, big)[..],
        &[0, 0],
        &word(0, big),
        &half(2, big),
        &half(4, big),
        b"eth0",
        &half(9, big),
        &half(1, big),
        &[resolution, 0, 0, 0],
        &half(14, big),
        &half(8, big),
        &offset,
        &[0; 4],
    ]
    .concat();
    block(1, big, &body)
}

fn packet(big: bool, interface: u32, ticks: u64, frame: &[u8]) -> Vec<u8> {
    let length = word(frame.len() as u32, big);
    let head =
        [word(interface, big), word((ticks >> 32) as u32, big), word(ticks as u32, big), length, length];
    block(6, big, &[&head.concat()[..], frame].concat())
}

fn data(i: u32) -> Vec<u8> {
    Tcp { seq: 100 + 1000 * i, ..DATA }.frame()
}

fn five() -> Vec<u8> {
    pcap(1, &(0..5).map(|i| (i * 1000, data(i))).collect::<Vec<_>>())
}

fn refused(file: Vec<u8>) -> String {
    bakeoff_trace::trace("a.pcap", Box::new(Cursor::new(file)), &Options::default(), &mut || false)
        .expect_err("it is no capture")
        .to_string()
}

fn span(report: &Report) -> (u64, f64) {
    (report.capture.packets, (report.capture.duration_s * 1e9).round())
}

/// Two packets 1.5 s apart in every byte order and clock; 2^-10 s has 1536 ticks for it, and 10^-12 s 1.5 x 10^12.
#[test]
fn clocks_and_byte_orders() {
    for big in [false, true] {
        for (resolution, ticks) in
            [(6, 1_500_000), (9, 1_500_000_000), (0x8a, 1536), (12, 1_500_000_000_000_u64)]
        {
            let first = 1_000_000 * ticks;
            let file = [
                section(big),
                interface(big, 1, resolution, 100),
                packet(big, 0, first, &data(0)),
                packet(big, 0, first + ticks, &data(1)),
            ]
            .concat();
            let report = told(file);
            assert_eq!(span(&report), (2, 1.5e9), "{resolution} {big}");
            // A million times 1.5 s, and the offset.
            assert_eq!(report.capture.start_ns, Some(1_500_100_000_000_000));
            assert_eq!(report.capture.interfaces[0].name.as_deref(), Some("eth0"));
            assert_eq!(report.flows[0].up.data.payload_bytes, 2000);
        }
    }
}

/// The older form in both byte orders, by microseconds and nanoseconds.
#[test]
fn older_files() {
    for big in [false, true] {
        for (magic, ns) in [(0xa1b2_c3d4, 1000.0), (0xa1b2_3c4d, 1.0)] {
            let mut file: Vec<u8> =
                [magic, 0, 0, 0, 0, 1].into_iter().flat_map(|value| word(value, big)).collect();
            for (fraction, frame) in [(5, data(0)), (12, data(1))] {
                let length = frame.len() as u32;
                file.extend([3, fraction, length, length].into_iter().flat_map(|value| word(value, big)));
                file.extend(frame);
            }
            assert_eq!(span(&told(file)), (2, 7.0 * ns));
        }
    }
}

/// Interfaces of which one cannot be read, a block that nobody knows, a second section in the other byte order, and a
/// packet without time.
#[test]
fn sections_interfaces_and_other_blocks() {
    let file = [
        section(false),
        interface(false, 105, 6, 0),
        interface(false, 1, 6, 0),
        packet(false, 0, 10, &[1; 60]),
        block(0x0bad_cafe, false, &[7; 100]),
        packet(false, 1, 20, &data(0)),
        packet(false, 9, 20, &data(1)),
        section(true),
        interface(true, 1, 6, 0),
        packet(true, 0, 30, &data(1)),
        block(3, true, &[&word(1054, true)[..], &data(2)].concat()),
    ]
    .concat();
    let report = told(file);
    let capture = &report.capture;
    assert_eq!((capture.packets, capture.unread, capture.interfaces.len()), (4, 1, 3));
    // One flow as interface 1 saw it, one as interface 2 did.
    assert_eq!(report.flows.iter().map(|flow| flow.up.packets).collect::<Vec<_>>(), [1, 2]);
    let notes = capture.notes.join(" ");
    for part in ["names interface 9", "Simple Packet Blocks", "link type is 105 (IEEE802_11)"] {
        assert!(notes.contains(part), "{part}: {notes}");
    }
}

/// By the first bytes, whatever the name.
#[test]
fn compressed_files() {
    let plain = told(five()).capture;
    for (name, bytes) in compressed(&five()) {
        let found = told(bytes).capture;
        assert_eq!((found.compression.as_str(), found.packets), (name, plain.packets));
        assert!(found.notes.is_empty(), "{:?}", found.notes);
    }
}

/// Cut off at 60 %: what could be decompressed was read, and the end is told.
#[test]
fn compressed_files_that_are_cut_off() {
    let frames: Vec<_> = (0..4000).map(|i| (i, noise(i))).collect();
    for (name, mut bytes) in compressed(&pcap(1, &frames)) {
        bytes.truncate(bytes.len() * 6 / 10);
        let found = told(bytes).capture;
        assert!((1..4000).contains(&found.packets), "{name}: {}", found.packets);
        assert!(found.notes[0].contains(name) || found.notes[0].contains("ends inside"), "{:?}", found.notes);
    }
}

/// A frame that does not compress.
fn noise(i: u32) -> Vec<u8> {
    let mut frame = data(i);
    let mut state = u64::from(i) + 1;
    for byte in &mut frame[54..] {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *byte = (state >> 56) as u8;
    }
    frame
}

fn compressed(file: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let mut gzip = Vec::new();
    flate2::read::GzEncoder::new(file, flate2::Compression::fast()).read_to_end(&mut gzip).expect("memory");
    let mut bzip2 = Vec::new();
    bzip2::read::BzEncoder::new(file, bzip2::Compression::fast()).read_to_end(&mut bzip2).expect("memory");
    // Two frames, as `cat` joins them.
    let (front, back) = file.split_at(file.len() / 2);
    let zstd = [front, back]
        .map(|part| ruzstd::encoding::compress_to_vec(part, ruzstd::encoding::CompressionLevel::Fastest))
        .concat();
    let mut xz =
        lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).expect("a preset");
    xz.write_all(file).expect("memory");
    let xz = xz.finish().expect("memory");
    vec![("gzip", gzip), ("bzip2", bzip2), ("zstd", zstd), ("xz", xz)]
}

/// Damaged right behind its own header, a file is not empty; one of nothing is.
#[test]
fn compressed_damage_is_told_as_such() {
    for (kind, file) in compressed(&five()) {
        let from = if kind == "bzip2" { 4 } else { 6 };
        let damaged = [&file[..from], &vec![0xa5; file.len()][..]].concat();
        for broken in [damaged, file[..12].to_vec()] {
            let text = refused(broken);
            assert!(text.contains(&format!("the {kind} data is truncated or damaged")), "{kind}: {text}");
        }
    }
    for (kind, file) in compressed(b"") {
        let text = refused(file);
        assert!(text.contains(&format!("the {kind} is empty")), "{kind}: {text}");
    }
}

/// The capture ends behind 26 bytes of what was compressed, of which 24 are its header.
#[test]
fn damage_behind_the_header_leaves_the_header() {
    let mut gzip = Vec::new();
    let head = &five()[..26];
    flate2::bufread::GzEncoder::new(head, flate2::Compression::none())
        .read_to_end(&mut gzip)
        .expect("memory");
    gzip.truncate(gzip.len() - 8);
    gzip.extend([0xff; 8]);
    let found = told(gzip).capture;
    assert_eq!((found.packets, found.notes.len()), (0, 1));
    assert!(found.notes[0].contains("gzip data is truncated or damaged"), "{:?}", found.notes);
}

#[test]
fn what_is_no_capture_is_refused() {
    assert!(refused(Vec::new()).contains("a.pcap: the file is empty"));
    let text = refused(b"not a capture at all, but long enough".to_vec());
    assert!(text.contains("byte 0: 6e 6f 74 20") && text.contains("expected pcap"), "{text}");
    assert!(refused(five()[..10].to_vec()).contains("ends at byte 10"));
    let options = Options { window_s: 0.0, ..Options::default() };
    let error = bakeoff_trace::trace("a", Box::new(Cursor::new(five())), &options, &mut || false);
    assert!(error.expect_err("out of range").to_string().starts_with("window_s: 0 is out of range"));
}

/// A file that ends inside its third packet, and one whose third packet claims 2 GB.
#[test]
fn damage_is_told_with_its_place() {
    let record = 16 + 1054;
    let mut file = five();
    file.truncate(24 + 2 * record + 100);
    let found = told(file).capture;
    assert_eq!(found.packets, 2);
    let place = format!("At byte {} the file ends inside a packet: 100 of {record} bytes", 24 + 2 * record);
    assert!(found.notes[0].starts_with(&place), "{:?}", found.notes);

    let mut file = five();
    file[24 + 2 * record + 8 + 3] = 0x7f;
    let found = told(file).capture;
    assert_eq!(found.packets, 2);
    assert!(found.notes[0].contains("expected at most"), "{:?}", found.notes);
}

/// A block of 20 MB is passed over, whatever is in it.
#[test]
fn huge_blocks_are_passed_over() {
    let file = [
        section(false),
        interface(false, 1, 6, 0),
        block(0x0bad_cafe, false, &vec![7; 20 << 20]),
        packet(false, 0, 20, &data(0)),
    ]
    .concat();
    let found = told(file).capture;
    assert_eq!(found.packets, 1);
    assert!(found.notes[0].contains("it was skipped"), "{:?}", found.notes);
}

/// 3, 1, 2 s: the clock is set back by two seconds, and then one passes.
#[test]
fn a_clock_may_be_set_back() {
    let frames = [3, 1, 2].map(|s| (s * 1_000_000, data(s)));
    let found = told(pcap(1, &frames)).capture;
    assert_eq!((found.backwards, found.backwards_max_s, found.clock_steps), (1, 2.0, 1));
    assert_eq!((found.start_ns, found.duration_s), (Some(3_000_000_000), 1.0));
    assert!(
        found.notes[0].contains("At 0.000 s the clock of interface 0 was set by -2.000 s."),
        "{:?}",
        found.notes
    );
}

/// Two queues write their packets 10 us out of order: zero is the earliest, and none is before it.
#[test]
fn the_earliest_packet_is_zero() {
    let frames = [(1_000_010, 1), (1_000_000, 2), (1_100_000, 3)].map(|(us, seq)| (us, data(seq)));
    let options = Options { interval_s: Some(0.1), ..Options::default() };
    let report = told_with(pcap(1, &frames), &options);
    assert_eq!((report.capture.start_ns, report.capture.clock_steps), (Some(1_000_000_000), 0));
    assert!(report.flows[0].start_s.abs() < 1e-12);
    let series = report.flows[0].series.as_ref().expect("asked for");
    // Counted from the first packet of the file, so that the first interval begins before it.
    assert!((series.time_s[0] - 10e-6).abs() < 1e-9, "{:?}", series.time_s);
}

/// A signal while nothing has come yet, as Ctrl-C on a pipe.
#[test]
fn waiting_for_the_begin_can_be_stopped() {
    struct Signalled;
    impl Read for Signalled {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::Interrupted.into())
        }
    }
    let mut asked = 0;
    let outcome = bakeoff_trace::trace("a", Box::new(Signalled), &Options::default(), &mut || {
        asked += 1;
        asked == 3
    });
    assert_eq!(outcome.expect_err("stopped").to_string(), "reading was interrupted");
    assert_eq!(asked, 3);
}

/// Asked after 65,536 packets.
#[test]
fn reading_can_be_stopped() {
    let file = pcap(1, &vec![(0, vec![0; 14]); 70_000]);
    let mut asked = 0;
    let outcome = bakeoff_trace::trace("a", Box::new(Cursor::new(file)), &Options::default(), &mut || {
        asked += 1;
        true
    });
    assert!(outcome.is_err() && asked == 1);
}
