//! Every kind in `KINDS`, at the edges: queues of one packet, packets of nothing and of 64 kB, rates from 10 kbit/s to
//! 100 Gbit/s, any order of calls. No packet is lost from the count, no backlog goes negative, nobody spins.
//!
//! A kind added later is covered without a word here, unless it cannot be built from its name alone.

use bakeoff_sim::base::units::Time;
use bakeoff_sim::document::run;
use bakeoff_sim::packet::{Ecn, Flags, Packet, Proto};
use bakeoff_sim::qdisc::{Env, KINDS, Queue};
use proptest::prelude::*;

/// What must be said to a kind that has no defaults, at a slow and at a fast rate.
fn needed(kind: &str, rate: &str) -> String {
    match kind {
        "red" | "red@5.4" => format!("limit 400000 avpkt 1000 bandwidth {rate}"),
        "tbf" => format!("rate {rate} burst 70000 limit 400000"),
        _ => String::new(),
    }
}

/// The words that set a rate, or a limit of one packet, in the kinds that have them; a kind that refuses them is left
/// at its defaults.
const RATES: [&str; 2] = ["10kbit", "100gbit"];

/// Everything that is tried of one kind.
fn variants(kind: &str) -> Vec<Queue> {
    let env = Env { tx_queue_len: 3, flows: 4, ..Env::default() };
    let mut built = Vec::new();
    let mut add = |spec: run::Qdisc, must: bool| match Queue::build(&spec, &env) {
        Ok(queue) => built.push(queue),
        Err(error) => assert!(!must, "{kind}: {error}; say in `needed` what it needs"),
    };
    for rate in RATES {
        let plain = run::Qdisc::leaf(&format!("{kind} {}", needed(kind, rate)));
        add(plain.clone(), true);
        for extra in [
            "limit 1",
            "limit 2",
            "limit 1514",
            "limit 0",
            "flows 1 limit 1",
            "rate RATE",
            "bandwidth RATE",
            "delay 1ms 2ms rate RATE limit 2",
            "flow_limit 1",
            "memlimit 1",
            "memory_limit 1",
            "quantum 1",
            "direct_qlen 1",
            "ecn limit 5",
            "maxrate RATE",
        ] {
            add(run::Qdisc::leaf(&format!("{} {}", plain.qdisc, extra.replace("RATE", rate))), false);
        }
        // the same below a class, and above a child
        for child in ["pfifo limit 1", "fq_codel limit 2", "netem delay 1ms"] {
            let child = Some(Box::new(run::Qdisc::leaf(child)));
            add(run::Qdisc { child: child.clone(), ..plain.clone() }, false);
            let class = |words: &str| run::Class {
                id: "1".into(),
                parent: None,
                class: words.into(),
                filters: vec![run::Match::default()],
                child: child.clone(),
            };
            for words in ["", &format!("rate {rate}")] {
                add(run::Qdisc { classes: vec![class(words)], ..plain.clone() }, false);
            }
        }
    }
    built
}

#[derive(Clone, Debug)]
struct Step {
    after_ns: u64,
    packet: Option<Packet>,
}

fn packet() -> impl Strategy<Value = Packet> {
    let len = prop_oneof![Just(0_u32), Just(1), Just(65_535), Just(1514), 40_u32..1514];
    (len, 0_u16..4, 0_u8..4, 0_u8..64, any::<bool>()).prop_map(|(len, flow, ecn, dscp, tcp)| Packet {
        len,
        flow,
        payload: len.saturating_sub(66),
        hash: u32::from(flow) * 0x2aaa_aaab,
        ecn: Ecn::from_bits(ecn),
        dscp,
        flags: Flags::ACK,
        proto: if tcp { Proto::Tcp } else { Proto::Udp },
        ..Packet::default()
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let after_ns = prop_oneof![20 => 0_u64..2_000, 20 => 0_u64..2_000_000, 1 => 0_u64..700_000_000];
    let step = (after_ns, prop::option::weighted(0.6, packet()))
        .prop_map(|(after_ns, packet)| Step { after_ns, packet });
    prop::collection::vec(step, 0..120)
}

/// In packets and in bytes: what came in, and was made here, went out, was dropped, or stands.
fn assert_conserved(queue: &Queue) {
    let (mut packets, mut bytes) = (queue.tally.enqueued, queue.tally.enqueued_bytes);
    let (mut gone, mut gone_bytes) = (queue.tally.sent, queue.tally.sent_bytes);
    queue.for_each(&mut |_, q| {
        packets += q.tally.duplicated;
        bytes += q.tally.duplicated_bytes;
        gone += q.tally.dropped();
        gone_bytes += q.tally.dropped_bytes;
        let by_flow: u64 = q.tally.flows.iter().map(|f| f.drops).sum();
        assert_eq!(by_flow, q.tally.dropped(), "{}", q.show());
    });
    assert_eq!(packets, gone + queue.qlen() as u64, "{}", queue.show());
    // A negative backlog would be a huge one.
    assert_eq!(bytes, gone_bytes + queue.backlog(), "{}", queue.show());
}

/// Asks for a packet; if none may leave, the next event is later, and there is one if any stands.
fn ask(queue: &mut Queue, now: Time) -> bool {
    if queue.dequeue(now).is_some() {
        return true;
    }
    match queue.next_event() {
        Some(next) => assert!(next > now, "{}: spins at {now:?}", queue.show()),
        None => assert_eq!(queue.qlen(), 0, "{}: stalls", queue.show()),
    }
    false
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn no_order_size_or_limit_loses_count_or_spins(steps in steps()) {
        for kind in KINDS.iter().map(|known| known.name) {
            for mut queue in variants(kind) {
                let mut now = Time::ZERO;
                for step in &steps {
                    now += Time::from_ns(step.after_ns);
                    match step.packet {
                        Some(packet) => queue.enqueue(packet, now),
                        None => _ = ask(&mut queue, now),
                    }
                    assert_conserved(&queue);
                }
                // Every packet costs at most itself, a slot, and a debt to wait for.
                let mut patience = 4 * steps.len() + 16;
                while queue.qlen() > 0 {
                    if !ask(&mut queue, now) {
                        now = queue.next_event().unwrap_or(now);
                    }
                    patience -= 1;
                    prop_assert!(patience > 0, "{}: does not drain", queue.show());
                }
                assert_conserved(&queue);
                prop_assert_eq!(queue.backlog(), 0);
                prop_assert!(!queue.show().is_empty());
                queue.show_stats(now);
            }
        }
    }
}

#[test]
fn every_kind_is_tried_with_a_limit_of_one_packet_where_it_has_one() {
    for kind in KINDS.iter().map(|known| known.name) {
        let built = variants(kind);
        assert!(built.len() >= 2, "{kind}");
        let shows_its_name = built.iter().all(|queue| queue.show().starts_with(kind));
        assert!(shows_its_name, "{kind}");
    }
}

#[test]
fn deltic_is_refused_with_the_reason() {
    for kind in ["deltic", "deltic_polya", "deltic_boroshne bandwidth 50mbit"] {
        let Err(error) = Queue::build(&run::Qdisc::leaf(kind), &Env::default()) else {
            panic!("{kind}: built")
        };
        assert!(
            error.to_string().contains("its algorithm is described nowhere but in the SCE tree"),
            "{error}"
        );
    }
}
