//! Datagrams are put together byte by byte, as the sources of each module say.

use super::*;

const MS: i64 = 1_000_000;
const CLIENT: &str = "[2001:db8::1]:50000";
const SERVER: &str = "[2001:db8::2]:443";

fn datagram(at_ms: i64, up: bool, payload: &[u8]) -> Datagram<'_> {
    sent(at_ms * MS, up, payload, payload.len())
}

fn sent(at_ns: i64, up: bool, payload: &[u8], length: usize) -> Datagram<'_> {
    let (source, destination) = if up { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
    Datagram {
        at_ns,
        interface: 0,
        source: source.parse().unwrap(),
        destination: destination.parse().unwrap(),
        ecn: 0,
        ip_length: length as u32 + 48,
        payload_length: length as u32,
        payload,
    }
}

fn with_series() -> Datagrams {
    Datagrams::new(&Options { interval_s: Some(0.1), ..Options::default() })
}

/// Three datagrams of 148 bytes at 0, 0.5 and 10 ms: the last two carry 2 · 148 · 8 bit in 10 ms; a gap of 9.5 ms is
/// above the millisecond that ends a burst, so that there is one of two and one of one.
#[test]
fn udp_flows_have_rates_marks_gaps_and_bursts() {
    let mut all = Datagrams::default();
    for (at_ns, ecn) in [(0, 1), (MS / 2, 3), (10 * MS, 1)] {
        all.datagram(Datagram { ecn, ..sent(at_ns, true, &[0; 20], 100) });
    }
    all.datagram(datagram(12, false, &[0; 10]));
    let report = all.finish(0, 12 * MS);
    assert_eq!((report.udp_bytes, report.udp.len(), report.quic.len()), (3 * 148 + 58, 1, 0));
    let flow = &report.udp[0];
    assert_eq!((flow.client.address.as_str(), flow.client.port, flow.protocol), ("2001:db8::1", 50000, None));
    assert_eq!((flow.up.packets, flow.up.payload_bytes, flow.up.ip_bytes), (3, 300, 444));
    assert_eq!((flow.up.ecn.ect1, flow.up.ecn.ce, flow.down.ecn.not_ect), (2, 1, 1));
    assert!((flow.up.throughput_bps.unwrap() - 2.0 * 148.0 * 8.0 / 0.01).abs() < 1e-6);
    assert_eq!(flow.down.throughput_bps, None);
    let (gaps, bursts) = (flow.up.gap_s.values.unwrap(), flow.up.bursts.values.unwrap());
    assert!((gaps.mean - 0.005).abs() < 1e-12 && (gaps.max - 0.0095).abs() < 1e-12);
    assert_eq!((flow.up.bursts.n, bursts.min, bursts.max), (2, 1.0, 2.0));
    assert!((flow.end_s - 0.012).abs() < 1e-12);
}

#[test]
fn flows_beyond_the_bound_are_counted_only() {
    let mut all = Datagrams::new(&Options { flows: 1, ..Options::default() });
    all.datagram(datagram(0, true, &[0; 10]));
    all.datagram(Datagram { interface: 1, ..datagram(1, true, &[0; 10]) });
    all.datagram(datagram(2, false, &[0; 10]));
    let report = all.finish(0, 0);
    assert_eq!((report.udp.len(), report.beyond, report.udp_bytes), (1, 1, 3 * 58));
}

/// `ping` begins at sequence number 65535, which 0 follows. The replies to the third and the fourth request change
/// places; the fifth is lost, because the sixth is answered; the last one may still be answered at the end.
#[test]
fn echoes_have_round_trip_times_and_losses() {
    let mut all = with_series();
    let (client, server) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
    let mut echo = |at_ms: i64, sequence: u16, reply: bool| {
        let (source, destination) = if reply { (server, client) } else { (client, server) };
        let at_ns = at_ms * MS;
        all.echo(Echo {
            at_ns,
            interface: 0,
            source,
            destination,
            identifier: 7,
            sequence,
            reply,
            ip_length: 84,
        });
    };
    for (at_ms, sequence, reply) in [
        (0, 65535, false),
        (10, 65535, true),
        (1000, 0, false),
        (1010, 0, true),
        (1020, 0, true),
        (2000, 1, false),
        (2001, 2, false),
        (2011, 2, true),
        (2030, 1, true),
        (3000, 3, false),
        (4000, 4, false),
        (4020, 4, true),
        (5000, 5, false),
        (5001, 900, true),
    ] {
        echo(at_ms, sequence, reply);
    }
    let report = all.finish(0, 5500 * MS);
    let [found] = &report.echo[..] else { panic!("one session") };
    assert_eq!((found.client.as_str(), found.identifier, report.echo_bytes), ("192.0.2.1", 7, 14 * 84));
    let wanted = RequestCounts {
        requests: 7,
        replies: 5,
        duplicate_replies: 1,
        late_replies: 1,
        unmatched_replies: 1,
        lost: 1,
        unanswered: 1,
        ..RequestCounts::default()
    };
    assert_eq!(found.counts, wanted);
    let rtt = found.rtt_s.values.unwrap();
    // 10, 10, 10, 30 and 20 ms
    assert!(
        (rtt.mean - 0.016).abs() < 1e-9 && (rtt.min - 0.01).abs() < 1e-12 && (rtt.max - 0.03).abs() < 1e-12
    );
    // |10 - 10|, |30 - 10|: the reply to 2 came when that to 1 had not
    assert_eq!(found.ipdv_s.n, 2);
    let samples = found.samples.as_ref().unwrap();
    assert_eq!(
        samples.rtt_s.iter().map(Option::is_some).collect::<Vec<_>>(),
        [true, true, true, true, false, true]
    );
}

/// A packet of irtt; a reply has all fields, and the server's stamps are 1 ms apart.
fn irtt(flags: u8, sequence: u32, window: u64, received_ns: i64) -> Vec<u8> {
    let mut bytes = vec![0x14, 0xa7, 0x5b, flags];
    if flags & 8 != 0 {
        bytes.extend([0xaa; 16]);
    }
    bytes.extend(0x1122_3344_5566_7788_u64.to_le_bytes());
    bytes.extend(sequence.to_le_bytes());
    if flags & 2 == 0 {
        bytes.extend([0; 44]);
        return bytes;
    }
    bytes.extend(9_u32.to_le_bytes());
    bytes.extend(window.to_le_bytes());
    for time in [received_ns, 77, received_ns + MS, 77 + MS] {
        bytes.extend(time.to_le_bytes());
    }
    bytes
}

/// Requests every 10 ms, replies 5 ms later, of which the server takes 1 ms. It received them 2 ms after they passed
/// here by a clock that is 3 h behind. Number 2 never reached it; its reply to 3 was lost; 5 was lost before this point.
#[test]
fn irtt_has_round_trips_ways_and_losses() {
    const BEHIND: i64 = 3 * 3600 * 1000;
    for flags in [0, 8] {
        let mut all = Datagrams::default();
        let at = |ms: i64| 1_700_000_000_000 + ms;
        // Parameters 1 to 7: version 1, 60 s, 10 ms, 60 bytes, both, both, both, as zigzag varints.
        let mut open = irtt(flags | 3, 0, 0, 0)[..if flags == 0 { 12 } else { 28 }].to_vec();
        open.extend([
            1, 2, 2, 0x80, 0xe0, 0xba, 0x84, 0xbf, 0x03, 3, 0x80, 0xda, 0xc4, 0x09, 4, 120, 5, 6, 6, 6, 7, 6,
        ]);
        all.datagram(datagram(at(-2), false, &open));
        for (sequence, window) in [(0, 1), (1, 3), (2, 0), (3, 0), (4, 0b11011), (6, 0b110_1101)] {
            let ms = i64::from(sequence) * 10;
            all.datagram(datagram(at(ms), true, &irtt(flags, sequence, 0, 0)));
            if window > 0 {
                let received = (at(ms) + 2 - BEHIND) * MS;
                all.datagram(datagram(at(ms) + 5, false, &irtt(flags | 2, sequence, window, received)));
            }
        }
        all.datagram(datagram(at(70), true, &irtt(flags | 4, 0, 0, 0)[..if flags == 0 { 12 } else { 28 }]));
        let report = all.finish(at(0) * MS, at(70) * MS);
        assert_eq!(report.udp[0].protocol, Some("irtt"));
        let [found] = &report.irtt[..] else { panic!("one test") };
        assert_eq!(
            (found.client.port, found.token.as_str(), found.hmac),
            (50000, "1122334455667788", flags == 8)
        );
        let wanted = RequestCounts {
            requests: 6,
            replies: 4,
            missing_requests: 1,
            lost: 2,
            ..RequestCounts::default()
        };
        assert_eq!((&found.counts, found.lost_up, found.lost_down), (&wanted, 1, 1));
        let parameters = found.parameters.as_ref().unwrap();
        assert_eq!(
            (parameters.chosen_by, parameters.stamp_at, parameters.length),
            ("handshake", "both", Some(60))
        );
        assert_eq!((parameters.duration_s, parameters.interval_s), (Some(60.0), Some(0.01)));
        for (found, wanted) in [
            (found.rtt_s, 0.004),
            (found.server_s, 0.001),
            (found.to_server_s, 0.002 - BEHIND as f64 / 1e3),
            (found.from_server_s, 0.002 + BEHIND as f64 / 1e3),
        ] {
            let values = found.values.unwrap();
            assert_eq!(found.n, 4);
            assert!((values.mean - wanted).abs() < 1e-6 && (values.p99 - wanted).abs() < 1e-6);
        }
    }
}

/// Without the opening the default is assumed where the times fit, and not where they are of another year.
#[test]
fn irtt_without_its_opening_is_told_by_its_times() {
    let now = 1_700_000_000_000;
    for (received, known) in [(now * MS, true), (1000 * MS, false)] {
        let mut all = Datagrams::default();
        all.datagram(datagram(now, true, &irtt(0, 0, 0, 0)));
        all.datagram(datagram(now + 5, false, &irtt(2, 0, 1, received)));
        let report = all.finish(now * MS, now * MS);
        assert_eq!(
            report.irtt[0].parameters.as_ref().map(|parameters| parameters.chosen_by),
            known.then_some("assumed")
        );
        assert!((report.irtt[0].rtt_s.values.unwrap().mean - if known { 0.004 } else { 0.005 }).abs() < 1e-9);
        assert_eq!(report.irtt[0].to_server_s.n, u64::from(known));
    }
}

/// A long header: first byte, version, both IDs behind their lengths, a token behind its own if `initial`, and 100
/// bytes behind theirs.
fn long(first: u8, version: u32, destination: &[u8], source: &[u8], initial: bool) -> Vec<u8> {
    let mut bytes = vec![first];
    bytes.extend(version.to_be_bytes());
    for id in [destination, source] {
        bytes.push(id.len() as u8);
        bytes.extend(id);
    }
    if initial {
        bytes.push(0);
    }
    bytes.extend([0x40, 100]);
    bytes.extend([0x55; 100]);
    bytes
}

fn short(spin: bool, destination: &[u8]) -> Vec<u8> {
    let mut bytes = vec![if spin { 0x60 } else { 0x40 }];
    bytes.extend(destination);
    bytes.extend([0x55; 30]);
    bytes
}

const MADE_UP: &[u8] = &[9; 8];
const OF_CLIENT: &[u8] = &[1; 4];
const OF_SERVER: &[u8] = &[2; 8];

/// Initial, answered after 8 ms by Initial and Handshake in one datagram, to which the client replies after 2 ms.
fn handshake(all: &mut Datagrams, version: u32, types: [u8; 2]) {
    let [initial, handshake] = types;
    all.datagram(datagram(0, true, &long(initial, version, MADE_UP, OF_CLIENT, true)));
    let mut both = long(initial, version, OF_CLIENT, OF_SERVER, true);
    both.extend(long(handshake, version, OF_CLIENT, OF_SERVER, false));
    all.datagram(datagram(8, false, &both));
    let mut last = long(handshake, version, OF_SERVER, OF_CLIENT, false);
    last.extend(short(false, OF_SERVER));
    all.datagram(datagram(10, true, &last));
}

/// A packet each way every millisecond from 20 ms on; the client inverts the bit every 40 ms, and the server follows
/// 10 ms later. One packet of the client is overtaken at an edge: two edges more, which come too soon.
fn spinning(all: &mut Datagrams) {
    for ms in 20..420 {
        let of_client = (ms - 20) / 40 % 2 == 1;
        let overtaken = ms == 101;
        let of_server = (ms - 30).max(0) / 40 % 2 == 1;
        all.datagram(datagram(ms, true, &short(of_client ^ overtaken, OF_SERVER)));
        all.datagram(datagram(ms, false, &short(of_server, OF_CLIENT)));
    }
}

#[test]
fn quic_tells_versions_ids_packets_and_round_trips() {
    for (version, types, name) in [(1, [0xc0, 0xe0], "1"), (0x6b33_43cf, [0xd0, 0xf0], "2")] {
        let mut all = with_series();
        handshake(&mut all, version, types);
        spinning(&mut all);
        let report = all.finish(0, 420 * MS);
        assert_eq!(report.udp[0].protocol, Some("quic"));
        let [found] = &report.quic[..] else { panic!("one connection") };
        assert_eq!((found.versions.as_slice(), found.begin_seen), (&[name.to_owned()][..], true));
        assert_eq!(found.client_ids, ["01010101"]);
        assert_eq!(found.server_ids, ["0909090909090909", "0202020202020202"]);
        assert!((found.handshake.server_rtt_s.unwrap() - 0.008).abs() < 1e-9);
        assert!((found.handshake.client_rtt_s.unwrap() - 0.002).abs() < 1e-9);
        let (up, down) = (&found.up, &found.down);
        assert_eq!((up.initial, up.handshake, up.short, up.datagrams), (1, 1, 401, 402));
        assert_eq!((down.initial, down.handshake, down.short, down.datagrams), (1, 1, 400, 401));
        // 400 ms have nine edges, and nine others lie between them and one more.
        let spin = up.spin.as_ref().unwrap();
        assert_eq!((spin.state, spin.edges, spin.rejected_edges, spin.rtt_s.n), ("spinning", 11, 2, 8));
        assert!(spin.samples.as_ref().unwrap().rtt_s.iter().all(|rtt| (rtt.unwrap() - 0.04).abs() < 1e-9));
        let spin = down.spin.as_ref().unwrap();
        assert_eq!((spin.state, spin.rejected_edges), ("spinning", 0));
        assert!((spin.rtt_s.values.unwrap().p50 - 0.04).abs() < 4e-4);
        assert!((found.server_rtt_s.values.unwrap().mean - 0.01).abs() < 1e-9);
        assert!((found.client_rtt_s.values.unwrap().mean - 0.03).abs() < 1e-9);
    }
}

/// A bit of a coin (a linear congruential generator), a fixed one, and one of every second packet.
#[test]
fn a_spin_bit_that_means_nothing_gives_no_round_trip_times() {
    let mut seed = 1_u32;
    let mut coin = move |_: i64| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        seed >> 31 == 1
    };
    let bits: [(&str, &mut dyn FnMut(i64) -> bool); 3] =
        [("random", &mut coin), ("constant", &mut |_| true), ("spinning", &mut |ms| ms / 2 % 2 == 0)];
    for (state, bit) in bits {
        let mut all = Datagrams::default();
        handshake(&mut all, 1, [0xc0, 0xe0]);
        for ms in 20..220 {
            all.datagram(datagram(ms, false, &short(bit(ms), OF_CLIENT)));
        }
        let report = all.finish(0, 220 * MS);
        let spin = report.quic[0].down.spin.as_ref().unwrap();
        assert_eq!((spin.state, spin.rtt_s.n > 0), (state, state == "spinning"));
    }
}

#[test]
fn a_client_that_moves_keeps_its_connection() {
    let mut all = Datagrams::default();
    handshake(&mut all, 1, [0xc0, 0xe0]);
    let packet = short(false, OF_SERVER);
    all.datagram(Datagram { source: "[2001:db8::3]:40000".parse().unwrap(), ..datagram(50, true, &packet) });
    // Another flow, whose ID nobody knows
    let packet = short(false, &[7; 8]);
    all.datagram(Datagram { source: "[2001:db8::4]:40000".parse().unwrap(), ..datagram(51, true, &packet) });
    let report = all.finish(0, 51 * MS);
    assert_eq!(
        report.udp.iter().map(|flow| flow.protocol).collect::<Vec<_>>(),
        [Some("quic"), Some("quic"), None]
    );
    assert_eq!(report.quic.len(), 1);
    assert_eq!(report.quic[0].moved_to[0].address, "2001:db8::3");
    assert_eq!(report.quic[0].up.short, 2);
}

/// A Retry, then the Initial that answers it: the handshake is timed from there. Version Negotiation belongs to it too.
#[test]
fn retry_and_version_negotiation_belong_to_the_connection() {
    let mut all = Datagrams::default();
    all.datagram(datagram(0, true, &long(0xc0, 0x1a2a_3a4a, MADE_UP, OF_CLIENT, true).repeat(12)));
    let mut versions = long(0x80, 0, OF_CLIENT, MADE_UP, false);
    versions.truncate(7 + 12);
    versions.extend([0, 0, 0, 1]);
    all.datagram(datagram(5, false, &versions));
    all.datagram(datagram(6, true, &long(0xc0, 1, MADE_UP, OF_CLIENT, true)));
    all.datagram(datagram(11, false, &long(0xf0, 1, OF_CLIENT, OF_SERVER, false)));
    all.datagram(datagram(12, true, &long(0xc0, 1, OF_SERVER, OF_CLIENT, true)));
    all.datagram(datagram(20, false, &long(0xc0, 1, OF_CLIENT, &[3; 8], true)));
    let report = all.finish(0, 20 * MS);
    let [found] = &report.quic[..] else { panic!("one connection") };
    assert_eq!(found.versions, ["1a2a3a4a", "1"]);
    assert_eq!((found.up.unknown, found.up.initial), (1, 2));
    assert_eq!((found.down.version_negotiation, found.down.retry, found.down.initial), (1, 1, 1));
    assert!((found.handshake.server_rtt_s.unwrap() - 0.008).abs() < 1e-9);
}

/// A server that clears the QUIC bit of all its packets is known, with the client's packets and without them. A packet
/// that is too small to be a server's first one is not.
#[test]
fn a_cleared_quic_bit_is_quic() {
    let mut answer = long(0x80, 1, OF_CLIENT, OF_SERVER, true);
    answer.extend(long(0xa0, 1, OF_CLIENT, OF_SERVER, false));
    for (first, length, known) in [(Some(0xc0), 300, true), (None, 1200, true), (None, 300, false)] {
        let mut all = Datagrams::default();
        if let Some(first) = first {
            all.datagram(datagram(0, true, &long(first, 1, MADE_UP, OF_CLIENT, true)));
        }
        all.datagram(sent(8, false, &answer, length));
        let report = all.finish(0, 8 * MS);
        assert_eq!(report.quic.len(), usize::from(known));
        for connection in &report.quic {
            assert_eq!((connection.down.initial, connection.down.handshake), (1, 1));
            assert_eq!(connection.handshake.server_rtt_s.is_some(), first.is_some());
        }
    }
}

/// RTP, DNS, WireGuard, DTLS, STUN, a long header of no version, one whose length lies, and an ID that is too long.
#[test]
fn what_is_not_quic_is_not_taken_for_it() {
    let mut lying = long(0xc0, 1, MADE_UP, OF_CLIENT, true);
    lying.truncate(60);
    let packets: [&[u8]; 8] = [
        &[0x80, 0x60, 0, 1, 0, 0, 0, 1, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0],
        &[0x12, 0x34, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0, 3, b'w', b'w', b'w'],
        &[4, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8],
        &[22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1, 2, 3, 4],
        &[0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
        &long(0xc0, 0x1234_5678, MADE_UP, OF_CLIENT, true),
        &lying,
        &long(0xc0, 1, &[5; 21], OF_CLIENT, true),
    ];
    for packet in packets {
        let mut all = Datagrams::default();
        all.datagram(datagram(0, true, packet));
        let report = all.finish(0, 0);
        assert_eq!((report.udp[0].protocol, report.quic.len()), (None, 0), "{packet:x?}");
    }
}

/// A capture that keeps 40 bytes of the payload: the first packet is known, and that there may be others.
#[test]
fn what_the_capture_cut_off_is_told() {
    let mut all = Datagrams::default();
    let packet = long(0xc0, 1, MADE_UP, OF_CLIENT, true);
    all.datagram(sent(0, true, &packet[..40], 1200));
    let report = all.finish(0, 0);
    assert_eq!((report.quic[0].up.initial, report.quic[0].up.cut), (1, 1));
}
