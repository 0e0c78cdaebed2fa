//! The kernel module `tcp_sce` of this repository beside the simulator's forms: whatever happens to a connection, every integer is the same.
//!
//! The simulator has a flag per ACK, and the module bytes. They mean the same where an ACK's bytes are all marked or none of them is.

use std::fmt::Write as _;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use super::super::cubic_sce::CubicSce;
use super::super::dctcp_sce::DctcpSce;
use super::super::kernel_module::Harness;
use super::super::reno_sce::RenoSce;
use super::super::{CcEnv, CongestionControl};
use super::*;
use crate::base::units::Time;
use crate::cc::sock::{CaState, INFINITE_SSTHRESH};

const SOURCES: &[&str] = &["sce.c", "../tcp_sce/feedback.c", "../tcp_sce/window.c", "../tcp_sce/cubic.c"];

/// An ACK of some packets, or a duplicate of none.
#[derive(Clone, Debug)]
struct Ack {
    packets: u32,
    odd_bytes: u32,
    marked: bool,
    win_update: bool,
    ece: bool,
    limited: bool,
    max_packets_out: u32,
    after_us: u32,
    grows: bool,
    rtt_us: Option<u32>,
}

/// What happens to a connection.
#[derive(Clone, Debug)]
enum Step {
    Ack(Ack),
    State(CaState),
    Reduce,
    End,
    Rto,
    Start { idle_us: u32 },
}

#[derive(Clone, Debug)]
struct Connection {
    cwnd: u32,
    ssthresh: u32,
    /// Steps before the first mark, which ends some slow starts.
    unmarked: usize,
    /// Steps are less than this apart; where they are close HyStart sees trains.
    gap_us: u32,
    /// What the RTT is at least, and by how much it rises with each step.
    rtt_us: (u32, u32),
    steps: Vec<Step>,
}

fn acks() -> impl Strategy<Value = Step> {
    let flags =
        (any::<bool>(), any::<bool>(), prop::bool::weighted(0.05), prop::bool::weighted(0.9), any::<bool>());
    let (after_us, rtt_us) = (0_u32..60_000, 0_u32..20_000);
    let numbers = (0_u32..4, 0_u32..1448, 1_u32..300, after_us, prop::option::of(rtt_us));
    (flags, numbers).prop_map(
        |(
            (marked, win_update, ece, limited, grows),
            (packets, odd_bytes, max_packets_out, after_us, rtt_us),
        )| {
            Step::Ack(Ack {
                packets,
                odd_bytes: if packets == 3 { odd_bytes } else { 0 },
                marked,
                win_update,
                ece,
                limited,
                max_packets_out,
                after_us,
                grows,
                rtt_us,
            })
        },
    )
}

fn steps() -> impl Strategy<Value = Step> {
    let state = prop::sample::select(vec![
        CaState::Open,
        CaState::Open,
        CaState::Disorder,
        CaState::Cwr,
        CaState::Recovery,
        CaState::Loss,
    ]);
    prop_oneof![
        60 => acks(),
        3 => state.prop_map(Step::State),
        1 => Just(Step::Reduce),
        1 => Just(Step::End),
        1 => Just(Step::Rto),
        1 => (0_u32..3_000_000).prop_map(|idle_us| Step::Start { idle_us }),
    ]
}

fn connections() -> impl Strategy<Value = Connection> {
    let ssthresh = prop_oneof![Just(INFINITE_SSTHRESH), 2_u32..400];
    let unmarked = prop_oneof![Just(0), 0_usize..300];
    let gap_us = prop_oneof![500_u32..3000, Just(60_000)];
    let rtt_us = (100_u32..150_000, 0_u32..400);
    (2_u32..400, ssthresh, unmarked, gap_us, rtt_us, prop::collection::vec(steps(), 1..300)).prop_map(
        |(cwnd, ssthresh, unmarked, gap_us, rtt_us, steps)| Connection {
            cwnd,
            ssthresh,
            unmarked,
            gap_us,
            rtt_us,
            steps,
        },
    )
}

/// What of the module's parameters a simulator's words mean.
fn parameters(words: &str) -> String {
    let form = u8::from(words.contains("@2019"));
    let origin = u8::from(words.contains("literal"));
    let rcv_mss = u8::from(words.contains("rcv_mss"));
    format!("{form} {origin} WHOLE {rcv_mss}")
}

/// The harness's lines of a connection, and what the simulator has after each.
fn simulated<C: CongestionControl>(
    connection: &Connection,
    words: &str,
    parse: impl Fn(&mut CcWords, CcEnv) -> Result<C, CcError>,
    state_of: impl Fn(&C) -> String,
) -> (String, Vec<String>) {
    let Ok(mut cc) = parse(&mut CcWords::new(words), CcEnv::default()) else {
        panic!("'{words}' was refused")
    };
    let mut tp = TcpSock::new(1448, 1000);
    tp.now = Time::from_ms(1000);
    tp.snd_cwnd = connection.cwnd;
    tp.snd_ssthresh = connection.ssthresh;
    cc.init(&mut tp);
    let name = words.split(['@', ' ']).next().unwrap_or_default();
    let mut lines =
        format!("open {name} {} {} {}\n", connection.cwnd, connection.ssthresh, parameters(words));
    let told = |cc: &C, tp: &TcpSock| format!("{} {} {}", tp.snd_cwnd, tp.snd_ssthresh, state_of(cc));
    let mut all = vec![told(&cc, &tp)];
    for (number, step) in connection.steps.iter().enumerate() {
        match step {
            Step::Ack(ack) => {
                // What an ACK that reports CE makes of the round trip: the module knows it by the state.
                let ece = ack.ece || tp.ca_state == CaState::Cwr;
                let bytes = ack.packets * tp.mss - ack.odd_bytes;
                let duplicate = bytes == 0 && !ack.win_update;
                let mss = if words.contains("rcv_mss") { 536 } else { tp.mss };
                let marked = ack.marked && number >= connection.unmarked;
                let ect1 = if marked { if duplicate { mss } else { bytes } } else { 0 };
                let after_us = ack.after_us % connection.gap_us;
                let (least, rise) = connection.rtt_us;
                let rtt_us = ack.rtt_us.map(|more| least + more + rise * number as u32);
                tp.now = Time::from_us(tp.now.as_us() + u64::from(after_us));
                tp.snd_una += u64::from(bytes);
                tp.snd_nxt = tp.snd_una + u64::from(tp.snd_cwnd * tp.mss);
                tp.esce = marked;
                tp.win_update = ack.win_update;
                tp.is_cwnd_limited = ack.limited;
                tp.max_packets_out = ack.max_packets_out;
                let grown = if ack.grows { ack.packets } else { 0 };
                let _ = writeln!(
                    lines,
                    "ack {} {ect1} {} {} {} {} {} {grown} {} {}",
                    tp.snd_una,
                    u8::from(ack.win_update),
                    u8::from(ack.ece),
                    u8::from(ack.limited),
                    ack.max_packets_out,
                    after_us,
                    rtt_us.map_or(-1, i64::from),
                    tp.snd_nxt,
                );
                cc.pkts_acked(&mut tp, ack.packets, rtt_us.map(u64::from));
                cc.in_ack_event(&mut tp, ece);
                if grown > 0 {
                    cc.cong_avoid(&mut tp, grown);
                }
            }
            Step::State(state) => {
                let _ = writeln!(lines, "state {}", *state as u8);
                cc.set_state(&mut tp, *state);
                tp.ca_state = *state;
            }
            Step::Reduce => {
                lines.push_str("reduce\n");
                tp.prior_cwnd = tp.snd_cwnd;
                tp.snd_ssthresh = cc.ssthresh(&mut tp);
                tp.snd_cwnd = tp.snd_cwnd.min(tp.snd_ssthresh);
            }
            Step::End => {
                lines.push_str("end\n");
                cc.cwnd_event(&mut tp, CaEvent::CompleteCwr);
            }
            Step::Rto => {
                lines.push_str("rto\n");
                cc.cwnd_event(&mut tp, CaEvent::Loss);
            }
            Step::Start { idle_us } => {
                let _ = writeln!(lines, "start {idle_us}");
                tp.last_sent = tp.now;
                tp.now = Time::from_us(tp.now.as_us() + u64::from(*idle_us));
                cc.cwnd_event(&mut tp, CaEvent::TxStart);
            }
        }
        all.push(told(&cc, &tp));
    }
    (lines, all)
}

fn kept(window: &SceWindow) -> String {
    let SceWindow { cnt, root, loss_cwnd, recent_sce, .. } = window;
    format!("{cnt} {root} {loss_cwnd} {recent_sce}")
}

/// Every form, 60 connections each, with both readings of the counter.
#[test]
fn the_kernel_module_computes_the_same() {
    let harness = Harness::compile("sce", SOURCES);
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let outcome = runner.run(&connections(), |connection| {
        let reno = |words: &str| simulated(&connection, words, RenoSce::parse, |cc| kept(&cc.window));
        let dctcp = |words: &str| simulated(&connection, words, DctcpSce::parse, |cc| kept(&cc.window));
        let cubic = |words: &str| simulated(&connection, words, CubicSce::parse, CubicSce::kept);
        for (lines, ours) in [
            reno("reno-sce"),
            reno("reno-sce@2019"),
            reno("reno-sce mss rcv_mss"),
            dctcp("dctcp-sce"),
            dctcp("dctcp-sce@2019"),
            dctcp("dctcp-sce@2019 mss rcv_mss"),
            cubic("cubic-sce"),
            cubic("cubic-sce origin literal"),
            cubic("cubic-sce mss rcv_mss"),
        ] {
            for whole in ["0", "1"] {
                let lines = lines.replace("WHOLE", whole);
                let theirs = harness.drive(&lines);
                prop_assert_eq!(ours.len(), theirs.len());
                for ((line, ours), theirs) in lines.lines().zip(&ours).zip(&theirs) {
                    prop_assert_eq!(ours, theirs, "after '{}' of\n{}", line, lines);
                }
            }
        }
        Ok(())
    });
    outcome.unwrap();
}

/// `cnt` after each line.
fn counted(harness: &Harness, whole: u8, lines: &str) -> Vec<i64> {
    let lines = format!("open reno-sce 100 2 0 0 {whole} 0\n{lines}");
    let all = harness.drive(&lines);
    all.iter()
        .map(|line| line.split(' ').nth(2).and_then(|cnt| cnt.parse().ok()).expect("a number"))
        .collect()
}

/// What the module alone has to decide: bytes that do not fit their ACK. The root is 1 at first.
#[test]
fn bytes_of_the_counter_are_kept_signed_and_used_once() {
    let harness = Harness::compile("sce-bytes", SOURCES);
    let ack = |una: u32, ect1: i64| format!("ack {una} {} 0 0 1 0 0 0 -1 999999\n", ect1 as u32);
    // Half of an ACK is marked: by bytes they cancel, and as a whole ACK 2896 bytes are taken.
    let half = ack(2896, 1448);
    assert_eq!(counted(&harness, 0, &half), [0, 0]);
    assert_eq!(counted(&harness, 1, &half), [0, -2896]);
    // 4344 marked bytes come with an ACK of 1448: the rest is taken from the next two, and the third is earned.
    let early = [ack(1448, 4344), ack(2896, 0), ack(4344, 0), ack(5792, 0)].concat();
    assert_eq!(counted(&harness, 0, &early), [0, -1448, -2896, -4344, -2896]);
    assert_eq!(counted(&harness, 1, &early), [0, -1448, 0, 1448, 2896]);
    // The core took back 1448 bytes that it had believed: as many of the next are no news.
    let corrected = [ack(1448, -1448), ack(2896, 1448), ack(4344, 1448)].concat();
    assert_eq!(counted(&harness, 0, &corrected), [0, 1448, 2896, 1448]);
    // Counters that nobody reported, or that were found broken, say nothing, and nothing of it later.
    for broken in ["counters 1 0\n", "counters 3 8\n", "counters 2 8\n"] {
        let unseen = [broken, &ack(1448, 1448), "counters 2 0\n", &ack(2896, 0)].concat();
        assert_eq!(counted(&harness, 0, &unseen), [0, 0, 1448, 1448, 2896]);
    }
}
