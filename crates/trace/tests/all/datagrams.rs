//! Datagrams that anybody may have sent: whatever they hold, nothing panics, and every one of them is counted.

use std::net::{IpAddr, SocketAddr};

use bakeoff_trace::datagram::{Datagram, Datagrams, Echo};
use bakeoff_trace::options::Options;
use proptest::prelude::*;

/// What begins a payload that some reader looks into, before random bytes: irtt's magic with any flags and a token that
/// comes again, and QUIC's headers with IDs of any length.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    let irtt = (0_u8..20, 0_u64..3, any::<u32>()).prop_map(|(flags, token, sequence)| {
        let mut bytes = vec![0x14, 0xa7, 0x5b, flags];
        if flags & 8 != 0 {
            bytes.extend([0; 16]);
        }
        bytes.extend(token.to_le_bytes());
        bytes.extend((sequence % 7).wrapping_mul(sequence >> 8).to_le_bytes());
        bytes
    });
    let versions = prop::sample::select(vec![0_u32, 1, 0x6b33_43cf, 0xff00_001d, 0x1a2a_3a4a, 77]);
    let quic = (any::<u8>(), versions, 0_u8..24, 0_u8..24, any::<u8>()).prop_map(
        |(first, version, to, from, length)| {
            let mut bytes = vec![first | 0x80];
            bytes.extend(version.to_be_bytes());
            for (id, length) in [(1, to), (2, from)] {
                bytes.push(length);
                bytes.extend(std::iter::repeat_n(id, length.into()));
            }
            bytes.extend([0, 0x40, length]);
            bytes
        },
    );
    let short = (any::<u8>(), 0_u8..21).prop_map(|(first, length)| {
        let mut bytes = vec![first & 0x7f];
        bytes.extend(std::iter::repeat_n(2, length.into()));
        bytes
    });
    let begin = prop_oneof![irtt, quic, short, Just(Vec::new())];
    (begin, prop::collection::vec(any::<u8>(), 0..200)).prop_map(|(mut bytes, rest)| {
        bytes.extend(rest);
        bytes
    })
}

fn time() -> impl Strategy<Value = i64> {
    prop_oneof![8 => 0..5_000_000_000_i64, 1 => any::<i64>()]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_datagrams_are_counted(
        sent in prop::collection::vec((time(), any::<[bool; 3]>(), payload(), 0_u32..3000, any::<usize>()), 1..120),
        echoes in prop::collection::vec((time(), any::<bool>(), any::<u16>(), 0_u16..3), 0..60),
        interval_s in prop::option::of(1e-9..10.0_f64),
    ) {
        let ends: [SocketAddr; 3] = ["192.0.2.1:1000", "192.0.2.2:443", "[2001:db8::1]:7"].map(|end| end.parse().expect("an address"));
        let mut all = Datagrams::new(&Options { interval_s, flows: 4, ..Options::default() });
        for (at_ns, [up, third, interface], payload, more, cut) in &sent {
            let (mut source, mut destination) = (ends[0], ends[if *third { 2 } else { 1 }]);
            if !up {
                (source, destination) = (destination, source);
            }
            let kept = cut % (payload.len() + 1);
            let payload_length = payload.len() as u32 + more;
            all.datagram(Datagram {
                at_ns: *at_ns,
                interface: u32::from(*interface),
                source,
                destination,
                ecn: *more as u8,
                ip_length: payload_length + 28,
                payload_length,
                payload: &payload[..kept],
            });
        }
        let (source, destination): (IpAddr, IpAddr) = (ends[0].ip(), ends[1].ip());
        for &(at_ns, reply, sequence, identifier) in &echoes {
            let (source, destination) = if reply { (destination, source) } else { (source, destination) };
            let ip_length = 84;
            all.echo(Echo { at_ns, interface: 0, source, destination, identifier, sequence, reply, ip_length });
        }
        let report = all.finish(0, i64::MAX);
        let flows: u64 = report.udp.iter().map(|flow| flow.up.packets + flow.down.packets).sum();
        let echoed: u64 = report.echo.iter().map(|one| {
            let counts = &one.counts;
            counts.requests + counts.repeated_requests + counts.replies + counts.duplicate_replies
                + counts.unmatched_replies
        }).sum();
        prop_assert_eq!(flows + echoed + report.beyond, (sent.len() + echoes.len()) as u64);
        for test in &report.irtt {
            let counts = &test.counts;
            prop_assert_eq!(counts.requests, counts.replies + counts.lost + counts.unanswered);
            prop_assert!(test.lost_up + test.lost_down <= counts.lost);
        }
        // Whatever came together is a document.
        prop_assert!(serde_json::to_string(&report).is_ok());
    }
}
