//! Random lines of qdiscs in tc's words.

use super::choices::Choices;

/// The words of each kind of qdisc, without version: `#` is a number, `T` a time, `R` a rate, `S` a size, `%` a percentage.
const WORDS: [(&str, &[&str]); 20] = [
    ("pfifo", &["limit #"]),
    ("bfifo", &["limit S"]),
    ("codel", &["limit #", "target T", "interval T", "ce_threshold T", "ecn", "noecn"]),
    (
        "fq",
        &[
            "limit #",
            "flow_limit #",
            "quantum S",
            "initial_quantum S",
            "buckets #",
            "maxrate R",
            "pacing",
            "nopacing",
            "refill_delay T",
            "low_rate_threshold R",
            "orphan_mask #",
            "timer_slack T",
            "ce_threshold T",
            "horizon T",
            "horizon_drop",
            "horizon_cap",
            "weights # # #",
        ],
    ),
    (
        "fq_codel",
        &[
            "limit #",
            "flows #",
            "quantum #",
            "memory_limit S",
            "drop_batch #",
            "ce_threshold_selector #/3",
            "target T",
            "interval T",
            "ce_threshold T",
            "ecn",
            "noecn",
        ],
    ),
    (
        "fq_pie",
        &[
            "limit #",
            "flows #",
            "quantum #",
            "memory_limit S",
            "ecn_prob #",
            "target T",
            "tupdate T",
            "alpha #",
            "beta #",
            "ecn",
            "bytemode",
            "dq_rate_estimator",
        ],
    ),
    ("htb", &["r2q #", "direct_qlen #"]),
    (
        "netem",
        &[
            "limit #",
            "delay T",
            "delay T T",
            "delay T T %",
            "delay T T distribution normal",
            "delay T T distribution pareto",
            "loss %",
            "loss random % %",
            "loss state % % % % %",
            "loss gemodel % % % %",
            "duplicate %",
            "corrupt %",
            "reorder % %",
            "gap #",
            "rate R",
            "rate R # # #",
            "slot T T packets # bytes #",
            "ecn",
            "seed #",
        ],
    ),
    ("pfifo_fast", &[]),
    (
        "pie",
        &[
            "limit #",
            "target T",
            "tupdate T",
            "alpha #",
            "beta #",
            "ecn",
            "noecn",
            "bytemode",
            "nobytemode",
            "dq_rate_estimator",
        ],
    ),
    ("prio", &["bands #"]),
    (
        "red",
        &[
            "limit S",
            "avpkt S",
            "min S",
            "max S",
            "burst #",
            "probability 0.5",
            "bandwidth R",
            "adaptive",
            "ecn",
            "harddrop",
            "nodrop",
        ],
    ),
    (
        "sfq",
        &[
            "limit #",
            "perturb #",
            "quantum S",
            "depth #",
            "headdrop",
            "divisor #",
            "flows #",
            "redflowlimit S",
            "min S",
            "max S",
            "avpkt S",
            "burst #",
            "probability 0.1",
            "ecn",
            "harddrop",
        ],
    ),
    (
        "tbf",
        &[
            "rate R",
            "burst S",
            "limit S",
            "latency T",
            "peakrate R",
            "mtu S",
            "mpu #",
            "overhead #",
            "linklayer atm",
        ],
    ),
    (
        "dualpi2",
        &[
            "limit #",
            "target T",
            "tupdate T",
            "alpha 0.5",
            "beta 3",
            "max_rtt T",
            "typical_rtt T",
            "coupling_factor #",
            "step_thresh T",
            "min_qlen_step #",
            "drop_on_overload",
            "overflow",
            "drop_enqueue",
            "drop_dequeue",
            "l4s_ect",
            "any_ect",
            "classic_protection %",
            "split_gso",
            "no_split_gso",
        ],
    ),
    (
        "cake",
        &[
            "bandwidth R",
            "unlimited",
            "autorate-ingress",
            "besteffort",
            "precedence",
            "diffserv3",
            "diffserv4",
            "diffserv8",
            "nat",
            "wash",
            "ingress",
            "ack-filter",
            "ack-filter-aggressive",
            "no-split-gso",
            "rtt T",
            "memlimit S",
            "fwmark #",
            "overhead #",
            "mpu #",
            "atm",
            "ptm",
            "flowblind",
            "srchost",
            "hosts",
            "flows",
            "dual-dsthost",
            "triple-isolate",
            "sce",
            "sce-thresh #",
        ],
    ),
    ("cnq_cobalt", &["limit #", "target T", "interval T", "ecn"]),
    ("cnq_codel_af", &["bandwidth R", "unlimited", "rtt T", "sce", "sce-thresh #", "no-sce"]),
    ("cobalt", &["bandwidth R", "unlimited", "rtt T", "sce", "no-sce"]),
    ("lfq_cobalt", &["bandwidth R", "unlimited", "rtt T"]),
];
const NUMBERS: [&str; 14] = [
    "10",
    "1",
    "2",
    "100",
    "1000",
    "3",
    "16",
    "1024",
    "65535",
    "65536",
    "0",
    "2147483647",
    "2147483648",
    "4294967295",
];
const TIMES: [&str; 10] = ["5ms", "100us", "1ms", "20ms", "100ms", "1us", "2s", "0", "1000s", "4294s"];
pub const RATES: [&str; 8] = ["10mbit", "1mbit", "100mbit", "1gbit", "64kbit", "8bit", "0", "900tbit"];
const SIZES: [&str; 9] = ["15k", "1514", "100k", "1m", "3000", "1", "0", "4g", "4294967295"];
const PERCENTAGES: [&str; 6] = ["1%", "10%", "50%", "0%", "100%", "0.0001%"];

/// A line of a qdisc of this kind, with some of its words.
pub fn line(c: &mut Choices, kind: &str) -> String {
    let known = WORDS.iter().find(|known| known.0 == kind.split('@').next().unwrap_or_default());
    let mut text = kind.to_owned();
    if kind == "red" || kind == "red@5.4" {
        text += " limit 150000 avpkt 1000 bandwidth 10mbit";
    }
    if kind == "tbf" {
        text += " rate 10mbit burst 15k limit 100k";
    }
    let Some((_, words)) = known.filter(|known| !known.1.is_empty()) else { return text };
    for form in c.some(3, |c, _| c.of(words)) {
        for word in form.split(' ') {
            let value = match word {
                "#" => c.of(&NUMBERS),
                "T" => c.of(&TIMES),
                "R" => c.of(&RATES),
                "S" => c.of(&SIZES),
                "%" => c.of(&PERCENTAGES),
                literal => literal,
            };
            text += " ";
            text += value;
        }
    }
    text
}
