//! Properties of every queue discipline under random traffic: no packet and no byte appears or
//! vanishes, nobody spins, and what stands in a queue leaves in the end.
//!
//! Configurations that people use get traffic of usual sizes. Every kind in `NAMES`, also one that is added later, is
//! tried at the edges: queues of one packet, packets of nothing and of 64 kB, rates from 10 kbit/s to 100 Gbit/s.

use bakeoff_document::run;
use bakeoff_document::units::Time;
use bakeoff_sim::packet::{Ecn, Flags, Packet, Proto};
use bakeoff_sim::qdisc::{Env, NAMES, Queue};
use proptest::prelude::*;

/// One line each; more complicated trees in [`trees`].
const LINES: &[&str] = &[
    "pfifo limit 20",
    "bfifo limit 20000",
    "codel limit 20",
    "codel limit 40 target 100us interval 1ms ecn ce_threshold 300us",
    "fq",
    "fq limit 20 flow_limit 5 quantum 256 maxrate 5mbit horizon 1ms",
    "fq_codel",
    "fq_codel flows 4 limit 20 quantum 300 drop_batch 3 target 100us interval 1ms",
    "fq_codel flows 1 memory_limit 20000 target 100us interval 1ms noecn",
    "netem delay 1ms limit 20",
    "netem delay 1ms 900us 30% limit 20 loss 10% duplicate 20% ecn",
    "netem delay 1ms 2ms rate 10mbit reorder 30% gap 2",
    "netem delay 200us slot 100us 3ms packets 3 bytes 3000",
    "netem slot 0 1ms",
    "pie limit 30 target 1ms tupdate 4ms alpha 32 beta 32 ecn",
    "pie limit 30 target 1ms tupdate 4ms dq_rate_estimator bytemode",
    "pie@5.4 limit 30 target 1ms tupdate 4ms ecn",
    "red limit 40000 avpkt 1000 adaptive ecn",
    "red limit 40000 avpkt 1000 probability 0.5",
    "dualpi2 limit 30 target 1ms tupdate 1ms alpha 100 beta 1000",
    "dualpi2 limit 30 overflow drop_enqueue target 1ms any_ect memlimit 20000",
    "dualpi2@2020 limit 30 target 1ms tupdate 1ms alpha 100 beta 1000",
    "dualpi2@2019 limit 30 target 1ms tupdate 4ms step_thresh 3p",
    "netem delay 1ms 900us distribution normal loss gemodel 10% 30% 80% 5% duplicate 20% corrupt 10% limit 20",
    "netem loss state 10% 50% 20% 30% 5% slot distribution pareto 1ms 200us packets 2",
    "pfifo_fast",
    "prio bands 4",
    "sfq limit 20 depth 5",
    "sfq limit 20 depth 3 headdrop perturb 1",
    "sfq limit 20 headdrop redflowlimit 20000 min 2000 max 6000 probability 0.5 ecn",
    "fq_pie flows 4 limit 20 target 1ms tupdate 4ms ecn",
    "tbf rate 20mbit burst 3k limit 20000",
    "tbf rate 20mbit burst 3k latency 5ms peakrate 40mbit mtu 1514",
    "cake rtt 1ms",
    "cake bandwidth 10mbit rtt 1ms memlimit 20000 wash",
    "cake bandwidth 10mbit precedence ingress rtt 100us conservative memlimit 30000 dual-srchost",
    "cake bandwidth 5mbit diffserv8 ack-filter-aggressive hosts autorate-ingress",
    "cake@sce bandwidth 10mbit flowblind besteffort sce rtt 1ms",
    "cnq_cobalt bandwidth 10mbit rtt 1ms sce",
    "cobalt bandwidth 10mbit rtt 1ms docsis",
    "lfq_cobalt bandwidth 10mbit rtt 1ms sce-thresh 8",
    "twin_codel_af bandwidth 10mbit rtt 1ms limit 20",
    "cnq_codel_af bandwidth 10mbit rtt 1ms",
    "cnq_codel_af bandwidth 1mbit sce-thresh 4",
];

fn trees() -> Vec<run::Qdisc> {
    let class = |id: &str, words: &str, dscp: Option<u8>, child: &str| run::Class {
        id: id.into(),
        parent: None,
        class: words.into(),
        filters: dscp
            .map(|dscp| run::Match { dscp: Some(dscp), ..run::Match::default() })
            .into_iter()
            .collect(),
        child: (!child.is_empty()).then(|| Box::new(run::Qdisc::leaf(child))),
    };
    let htb = |line: &str, classes| run::Qdisc { qdisc: line.into(), classes, child: None };
    let delays = vec![
        class("1", "rate 1gbps ceil 2gbps", Some(0), "netem delay 1ms limit 10"),
        class("10", "rate 1gbps ceil 2gbps", None, "netem delay 2ms 1ms duplicate 20%"),
    ];
    let shared = vec![
        class("1", "rate 20mbit ceil 30mbit prio 1", Some(0), "codel target 100us interval 1ms"),
        class("2", "rate 5mbit quantum 1000", Some(1), "fq_codel limit 20 drop_batch 3"),
        class("3", "rate 5mbit quantum 2000 burst 5k", Some(2), ""),
    ];
    let mut trees: Vec<run::Qdisc> = LINES.iter().map(|line| run::Qdisc::leaf(line)).collect();
    trees.push(htb("htb default 10", delays));
    let below = |class: run::Class, parent: &str| run::Class { parent: Some(parent.into()), ..class };
    let borrowing = vec![
        class("1", "rate 20mbit", None, ""),
        below(class("2", "rate 10mbit ceil 15mbit", None, ""), "1"),
        below(class("10", "rate 2mbit ceil 20mbit", Some(0), "codel target 100us interval 1ms"), "2"),
        below(class("20", "rate 3mbit ceil 20mbit prio 1", Some(1), "netem delay 300us"), "2"),
        below(class("30", "rate 5mbit ceil 12mbit", None, "pfifo limit 5"), "1"),
    ];
    trees.push(htb("htb default 30", borrowing));
    let bands = vec![class("1", "", Some(0), "netem delay 1ms"), class("2", "", Some(1), "sfq limit 5")];
    trees.push(htb("prio", bands));
    trees.push(run::Qdisc {
        qdisc: "tbf rate 20mbit burst 3k limit 1".into(),
        classes: Vec::new(),
        child: Some(Box::new(run::Qdisc::leaf("fq_codel limit 10 target 100us interval 1ms"))),
    });
    // what no filter takes goes to the direct queue
    trees.push(htb("htb direct_qlen 5", shared.clone()));
    trees.push(run::Qdisc {
        qdisc: "netem delay 500us".into(),
        classes: Vec::new(),
        child: Some(Box::new(htb("htb default 3", shared))),
    });
    trees
}

/// All kinds that there are.
fn kinds() -> impl Iterator<Item = &'static str> {
    NAMES.iter().copied()
}

/// What must be said to a kind that has no defaults, at a slow and at a fast rate.
fn needed(kind: &str, rate: &str) -> String {
    match kind {
        "red" | "red@5.4" => format!("limit 400000 avpkt 1000 bandwidth {rate}"),
        "tbf" => format!("rate {rate} burst 70000 limit 400000"),
        _ => String::new(),
    }
}

/// The rates that are tried.
const RATES: [&str; 2] = ["10kbit", "100gbit"];

/// What is tried behind a kind's own words; a kind that refuses one is tried without it.
const EXTRAS: [&str; 15] = [
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
];

/// Kinds that refuse `limit 1`: they have no limit, or (sfq) none below two.
const WITHOUT_LIMIT: [&str; 12] = [
    "htb",
    "pfifo_fast",
    "prio",
    "red",
    "red@5.4",
    "sfq",
    "cake",
    "cake@sce",
    "cnq_cobalt",
    "cnq_codel_af",
    "cobalt",
    "lfq_cobalt",
];

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
        for extra in EXTRAS {
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
    /// A packet comes, or a packet is asked for.
    packet: Option<Packet>,
}

fn usual_packet() -> impl Strategy<Value = Packet> {
    (40_u32..1515, 0_u32..6, 0_u8..4, 0_u8..4).prop_map(|(len, flow, ecn, dscp)| Packet {
        len,
        // six flows, apart in the high bits (fq_codel) and in the low ones (cnq_codel_af)
        hash: flow * 0x2aaa_aaab,
        ecn: Ecn::from_bits(ecn),
        dscp,
        flow: u16::from(dscp),
        ..Packet::default()
    })
}

fn any_packet() -> impl Strategy<Value = Packet> {
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

/// At most so many steps: after a pause of one of these lengths `packet` comes, or a packet is asked for.
fn steps(
    pauses: impl Strategy<Value = u64>,
    packet: impl Strategy<Value = Packet>,
    most: usize,
) -> impl Strategy<Value = Vec<Step>> {
    let step = (pauses, prop::option::weighted(0.6, packet))
        .prop_map(|(after_ns, packet)| Step { after_ns, packet });
    prop::collection::vec(step, 0..most)
}

/// Mostly dense traffic, and pauses that let timers start (pie's and red's after 500 ms).
fn usual_steps() -> impl Strategy<Value = Vec<Step>> {
    let pauses = prop_oneof![30 => 0_u64..800_000, 1 => 0_u64..400_000_000];
    steps(pauses, usual_packet(), 300)
}

fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    let pauses = prop_oneof![20 => 0_u64..2_000, 20 => 0_u64..2_000_000, 1 => 0_u64..700_000_000];
    steps(pauses, any_packet(), 120)
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
        assert_eq!(by_flow, q.tally.dropped());
        let by_flow: u64 = q.tally.flows.iter().map(|f| f.packets).sum();
        assert_eq!(by_flow, q.tally.sent);
        // A packet that is marked twice, or that came with CE, is one more mark of the queue only.
        let by_flow: u64 = q.tally.flows.iter().map(|f| f.marks).sum();
        assert!(by_flow <= q.tally.marks, "{by_flow} {}", q.tally.marks);
    });
    assert_eq!(packets, gone + queue.qlen() as u64);
    assert_eq!(bytes, gone_bytes + queue.backlog());
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

/// Plays the steps, then empties the queue; nothing is lost from the count at any time.
fn play(mut queue: Queue, steps: &[Step]) {
    let mut now = Time::ZERO;
    for step in steps {
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
        assert!(patience > 0, "{}: does not drain", queue.show());
    }
    assert_conserved(&queue);
    assert_eq!(queue.backlog(), 0, "{}", queue.show());
    queue.show_stats(now);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn packets_and_bytes_are_conserved_and_all_leave(steps in usual_steps()) {
        for spec in trees() {
            let mut queue = Queue::build(&spec, &Env::default()).unwrap();
            queue.record_window(Time::ZERO, Time::from_ms(100));
            play(queue, &steps);
        }
    }

    #[test]
    fn the_same_traffic_gives_the_same_departures(steps in usual_steps()) {
        for spec in trees() {
            let departures = || {
                let mut queue = Queue::build(&spec, &Env::default()).unwrap();
                let mut now = Time::ZERO;
                let mut out = Vec::new();
                for step in &steps {
                    now += Time::from_ns(step.after_ns);
                    match step.packet {
                        Some(packet) => queue.enqueue(packet, now),
                        None => out.push(queue.dequeue(now).map(|p| (p.enqueued, p.hash, p.ecn))),
                    }
                }
                out
            };
            prop_assert_eq!(departures(), departures());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn no_order_size_or_limit_loses_count_or_spins(steps in any_steps()) {
        for kind in kinds() {
            for queue in variants(kind) {
                play(queue, &steps);
            }
        }
    }
}

#[test]
fn every_kind_with_a_limit_is_tried_with_one_packet_and_every_extra_is_of_use() {
    let env = Env { tx_queue_len: 3, flows: 4, ..Env::default() };
    let takes = |kind: &str, words: &str| {
        let words = words.replace("RATE", RATES[0]);
        Queue::build(&run::Qdisc::leaf(&format!("{kind} {} {words}", needed(kind, RATES[0]))), &env).is_ok()
    };
    let refusing: Vec<&str> = kinds().filter(|kind| !takes(kind, "limit 1")).collect();
    assert_eq!(refusing, WITHOUT_LIMIT);
    for extra in EXTRAS {
        assert!(kinds().any(|kind| takes(kind, extra)), "no kind takes '{extra}'");
    }
    for kind in kinds() {
        assert!(variants(kind).iter().all(|queue| queue.show().starts_with(kind)), "{kind}");
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
