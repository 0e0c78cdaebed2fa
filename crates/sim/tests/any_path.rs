//! On any path, with any queue, no packet is lost count of and a flow whose path is up makes progress.

mod common;

use bakeoff_sim::simulate;
use common::{Dumbbell, flow};
use proptest::prelude::*;
use serde_json::json;

const QDISCS: [&str; 12] = [
    "pfifo limit 2",
    "pfifo limit 1000",
    "bfifo limit 20000",
    "codel ecn",
    "fq_codel",
    "fq_codel flows 1 target 1ms interval 20ms",
    "pie ecn",
    "pie@5.4",
    "red limit 150000 avpkt 1000 adaptive bandwidth 10mbit ecn",
    "dualpi2",
    "dualpi2@2020",
    "netem delay 1ms 1ms reorder 5% 50% limit 100",
];
const RATES: [&str; 5] = ["500kbit", "5mbit", "50mbit", "200mbit", "1gbit"];
const CCS: [&str; 5] = ["reno", "cubic", "prague", "prague@2020-08", "prague@2020-04"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, max_shrink_iters: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_packet_is_accounted_for(
        qdisc in prop::sample::select(&QDISCS[..]),
        rate in prop::sample::select(&RATES[..]),
        ccs in prop::collection::vec(prop::sample::select(&CCS[..]), 1..4),
        rtt_ms in prop::sample::select(vec![0.0, 0.3, 10.0, 80.0, 500.0]),
        loss in prop::sample::select(vec![0.0, 0.0, 0.001, 0.05, 0.3]),
        tcp_ecn in 0..=5_u8,
        seed in 0..1000_u64,
    ) {
        let flows = ccs.iter().enumerate().map(|(i, cc)| flow(&format!("f{i}"), cc)).collect();
        let mut doc = Dumbbell { qdisc, rate, rtt_ms, flows, tcp_ecn, seed, duration_s: 2.0 }.document();
        doc["links"][1]["loss"] = json!(loss);
        // An error here is a broken invariant: sent = delivered + dropped + queued, in packets and bytes.
        let outcome = simulate(&doc.to_string()).unwrap();
        for f in outcome.counters["flows"].as_object().unwrap().values() {
            let received = f["received_bytes"].as_u64().unwrap();
            let sent = f["sent_bytes"].as_u64().unwrap_or(0);
            prop_assert!(received <= sent, "more arrived than was sent: {f}");
        }
    }

    #[test]
    fn a_finite_flow_ends_on_any_lossy_path(
        qdisc in prop::sample::select(&QDISCS[..]),
        cc in prop::sample::select(&CCS[..]),
        loss in prop::sample::select(vec![0.0, 0.02, 0.2]),
        bytes in 1..40_000_u64,
        seed in 0..1000_u64,
    ) {
        let mut f = flow("f", cc);
        f["source"] = json!({"kind": "bytes", "bytes": bytes});
        let mut doc = Dumbbell { qdisc, flows: vec![f], seed, duration_s: 600.0, ..Dumbbell::default() }.document();
        doc["links"][1]["loss"] = json!(loss);
        doc["probes"] = json!([]);
        doc["sample_interval_s"] = json!(10.0);
        let outcome = simulate(&doc.to_string()).unwrap();
        prop_assert_eq!(outcome.counters["flows"]["f"]["received_bytes"].as_u64(), Some(bytes));
    }
}
