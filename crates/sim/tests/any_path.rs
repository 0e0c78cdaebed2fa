//! No congestion control, on no path whose parameters are drawn, panics, breaks conservation, or stalls for ever while the path is up.
//!
//! Drawn are: every registered congestion control with its versions, 0.5 to 1000 Mbit/s, RTTs of 0 to 500 ms, loss of 0 to 30 % each way,
//! reordering, duplication, corruption and jitter, queues of 2 to 10 000 packets, a queue on the way back, `tcp_ecn` 0 to 5, `tcp_sack` and `HZ` of each
//! host, offloads of each machine. `PROPTEST_CASES=2000 cargo test -p bakeoff-sim --test all any_path` draws more paths: each property has the share of them that it names.

use crate::common::{Dumbbell, flow, series};
use bakeoff_sim::cc::NAMES;
use bakeoff_sim::{Outcome, simulate};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Queues in the middle; `{limit}` is in packets, `{bytes}` in bytes.
const QDISCS: [&str; 16] = [
    "pfifo limit {limit}",
    "bfifo limit {bytes}",
    "codel limit {limit} ecn",
    "codel limit {limit} noecn",
    "fq_codel limit {limit}",
    "fq_codel limit {limit} flows 1 target 1ms interval 20ms",
    "pie limit {limit} ecn",
    "pie@5.4 limit {limit}",
    "fq_pie limit {limit}",
    "red limit 150000 avpkt 1000 adaptive bandwidth 10mbit ecn",
    "dualpi2 limit {limit}",
    "dualpi2@2020 limit {limit}",
    "sfq limit {limit}",
    "fq limit {limit}",
    "cake unlimited",
    "netem delay 1ms 1ms reorder 5% 50% limit {limit}",
];
const HZ: [u64; 3] = [100, 250, 1000];

#[derive(Clone, Debug)]
struct Path {
    rate_kbit: u64,
    rtt_ms: f64,
    /// There and back.
    loss: [f64; 2],
    /// netem's further words there and back.
    impairment: [&'static str; 2],
    qdisc: &'static str,
    limit: u64,
    back_limit: u64,
    tcp_ecn: [u8; 2],
    tcp_sack: [u8; 2],
    hz: [u64; 2],
    offloads: [bool; 3],
    seed: u64,
}

/// Every order of magnitude is as likely.
fn between(least: f64, most: f64) -> impl Strategy<Value = f64> {
    (0.0..1.0).prop_map(move |u| least * (most / least).powf(u))
}

fn loss(most: f64) -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), between(1e-4, most), 0.0..most]
}

fn paths(
    rates_kbit: (f64, f64),
    qdiscs: Vec<&'static str>,
    most_limit: f64,
    most_loss: f64,
) -> impl Strategy<Value = Path> {
    let impairments =
        ["", "", " 1ms reorder 5% 50%", " duplicate 2%", " 3ms distribution normal", " corrupt 0.5%"];
    let impairment = prop::sample::select(impairments.to_vec());
    let ends = (
        prop::array::uniform2(0..=5_u8),
        prop::array::uniform2(prop::sample::select(vec![0, 1, 1])),
        prop::array::uniform2(prop::sample::select(&HZ[..])),
        prop_oneof![Just([false; 3]), prop::array::uniform3(any::<bool>())],
    );
    let queues = (prop::sample::select(qdiscs), between(2.0, most_limit), between(2.0, most_limit));
    let rtt = prop_oneof![Just(0.0), between(0.05, 500.0)];
    (
        between(rates_kbit.0, rates_kbit.1),
        rtt,
        prop::array::uniform2(loss(most_loss)),
        prop::array::uniform2(impairment),
        queues,
        ends,
        0..1000_u64,
    )
        .prop_map(
            |(
                rate,
                rtt_ms,
                loss,
                impairment,
                (qdisc, limit, back),
                (tcp_ecn, tcp_sack, hz, offloads),
                seed,
            )| Path {
                rate_kbit: rate as u64,
                rtt_ms,
                loss,
                impairment,
                qdisc,
                limit: limit as u64,
                back_limit: back as u64,
                tcp_ecn,
                tcp_sack,
                hz,
                offloads,
                seed,
            },
        )
}

impl Path {
    /// A run of these flows without probes, sampled every `sample_s`.
    fn run(&self, flows: Vec<Value>, duration_s: f64, sample_s: f64) -> Outcome {
        let dumbbell = Dumbbell { flows, seed: self.seed, duration_s, ..Dumbbell::default() };
        let mut doc = dumbbell.document();
        for (i, node) in [(0, 0), (1, 2)] {
            doc["nodes"][node]["hz"] = json!(self.hz[i]);
            doc["nodes"][node]["sysctls"] = json!({
                "net.ipv4.tcp_ecn": self.tcp_ecn[i].to_string(), "net.ipv4.tcp_sack": self.tcp_sack[i].to_string(),
            });
        }
        for (node, offloads) in self.offloads.iter().enumerate() {
            doc["nodes"][node]["offloads"] = json!(offloads);
        }
        let qdisc = self.qdisc.replace("{limit}", &self.limit.to_string());
        let there = qdisc.replace("{bytes}", &(self.limit * 1514).to_string());
        // Interface 0 looks to cli: what arrives there goes to srv, through the queue of interface 1.
        for (at, queue) in [(1, there), (0, format!("pfifo limit {}", self.back_limit))] {
            let class = format!("rate {0}kbit ceil {0}kbit", self.rate_kbit);
            doc["interfaces"][at]["egress"]["classes"][0] =
                json!({"id": "1", "class": class, "child": {"qdisc": queue}});
            let (half_us, percent, words) =
                (self.rtt_ms * 500.0, self.loss[1 - at] * 100.0, self.impairment[1 - at]);
            // netem reorders and jitters only what it delays; the RTT comes on top of 3 ms then.
            let delay_us =
                if words.starts_with(' ') && words.contains("ms") { half_us + 3000.0 } else { half_us };
            let netem = format!("netem delay {delay_us}us{words} loss {percent}% limit 1000000");
            doc["interfaces"][1 - at]["ingress"]["qdisc"] = json!(netem);
        }
        doc["probes"] = json!([]);
        doc["sample_interval_s"] = json!(sample_s);
        // An error here is a broken invariant: sent = delivered + dropped + queued, in packets and bytes.
        simulate(&doc.to_string()).unwrap_or_else(|e| panic!("{e}\n{doc}"))
    }
}

fn ccs() -> impl Strategy<Value = &'static str> {
    prop::sample::select(NAMES)
}

/// An htb never asks an empty leaf for a packet, so that RED below it never idles: its average falls by 1/16 with each arrival and not with time, and
/// drops whatever is not ECT, retransmissions above all, until it is below the threshold. That takes longer than 63 timeouts, on Linux as here.
fn all_but_red() -> Vec<&'static str> {
    QDISCS.into_iter().filter(|qdisc| !qdisc.starts_with("red ")).collect()
}

fn share(of: u32) -> ProptestConfig {
    let all = ProptestConfig::default();
    ProptestConfig { cases: (all.cases / of).max(1), max_shrink_iters: 64, ..all }
}

proptest! {
    #![proptest_config(share(2))]

    #[test]
    fn every_packet_is_accounted_for(
        path in paths((500.0, 1e6), QDISCS.to_vec(), 10_000.0, 0.3),
        ccs in prop::collection::vec(ccs(), 1..4),
        paced_mbit in prop::option::of(between(0.1, 2000.0)),
    ) {
        let mut flows: Vec<Value> = ccs.iter().enumerate().map(|(i, cc)| flow(&format!("f{i}"), cc)).collect();
        flows[0]["max_pacing_rate_bps"] = json!(paced_mbit.map(|mbit| (mbit * 1e6) as u64));
        // 20 000 full packets at most, a few round trips at least.
        let duration_s = (242e3 / path.rate_kbit as f64).clamp(path.rtt_ms * 0.004 + 0.3, 20.0);
        let outcome = path.run(flows, duration_s, 0.1);
        for (name, f) in outcome.counters()["flows"].as_object().unwrap() {
            // A queue marks a large buffer once, and its receiver counts the segments.
            if path.offloads == [false; 3] && f["received_ce"].is_u64() {
                let marks = outcome.counters()["queues"]["mid>srv"]["flows"][name]["marks"].as_u64().unwrap_or(0);
                prop_assert!(f["received_ce"].as_u64() <= Some(marks), "more marks were seen than set: {f}, {marks}");
            }
            let received = f["received_bytes"].as_u64().unwrap();
            let sent = f["sent_bytes"].as_u64().unwrap_or(0);
            prop_assert!(received <= sent, "more arrived than was sent: {f}");
        }
    }

    /// With 30 % of loss each way half of all attempts fail, and waits double up to 120 s: in two hours 60 of them in a row have failed
    /// with a probability of 10^-18.
    #[test]
    fn a_finite_flow_ends(
        path in paths((500.0, 1e6), QDISCS.to_vec(), 10_000.0, 0.3),
        cc in ccs(),
        bytes in 1..200_000_u64,
    ) {
        let mut f = flow("f", cc);
        f["source"] = json!({"kind": "bytes", "bytes": bytes});
        let outcome = path.run(vec![f], 7200.0, 600.0);
        prop_assert_eq!(outcome.counters()["flows"]["f"]["received_bytes"].as_u64(), Some(bytes));
    }
}

proptest! {
    #![proptest_config(share(8))]

    /// A timeout is at most 0.2 s of variance floor and twice the longest round trip, which is that of full queues. 63 of them last until a sixth attempt,
    /// when waits double. 5 % of segments or their ACKs are lost (2 % each way, 0.5 % corrupted): six in a row with a probability of 10^-8.
    #[test]
    fn a_bulk_flow_delivers_something_in_every_63_timeouts(
        path in paths((500.0, 5e3), all_but_red(), 100.0, 0.02),
        cc in ccs(),
    ) {
        let full = (path.limit + path.back_limit) as f64 * 1514.0 * 8.0 / (path.rate_kbit as f64 * 1000.0);
        let timeout_s = 0.2 + 2.0 * (full + path.rtt_ms / 1000.0 + 0.01);
        let window_s = 63.0 * timeout_s;
        let outcome = path.run(vec![flow("f", cc)], 2.2 * window_s, window_s);
        let received = series(&outcome, "flow", "f", "received");
        prop_assert_eq!(received.len(), 2);
        prop_assert!(received[0].1 > 0.0 && received[1].1 > received[0].1, "{:?}", received);
    }
}
