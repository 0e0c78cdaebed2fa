//! The kernel module `tcp_prague` of this repository beside the simulator's forms: whatever happens to a connection, every integer is the same.
//!
//! The module's source is compiled by `cc` against the few declarations of `kernel/modules/harness`, which drives it line by line.

use std::fmt::Write as _;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use super::super::kernel_module::Harness;
use super::super::prague_2019::{Prague2019, Version as Of2019};
use super::super::prague_2020::{Prague2020, Version as Of2020};
use super::super::rtt_scaling::Mode as Scaling;
use super::*;

/// What happens to a connection.
#[derive(Clone, Debug)]
enum Step {
    /// `wider`: with a window of the receiver that is larger than ever before, so that Linux computes the size of packets anew; and with data
    /// that wait.
    Ack {
        packets: u32,
        marked: u32,
        after_us: u32,
        round: bool,
        srtt_us: u32,
        in_flight: u32,
        limited: bool,
        wider: bool,
    },
    State(CaState),
    /// What Linux does before CWR and Recovery.
    Cut,
    Rto,
    Undo,
    /// Another route, where Linux sends at most so many segments at once: the new `sk_gso_max_segs`.
    Route(u32),
}

#[derive(Clone, Debug)]
struct Connection {
    srtt_us: u32,
    cwnd: u32,
    ssthresh: u32,
    in_flight: u32,
    /// `prague_rtt_scaling`: none, rate, scalable, additive, or as in the version.
    scaling: u32,
    steps: Vec<Step>,
}

fn steps() -> impl Strategy<Value = Step> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    let ack =
        (1_u32..5, 0_u32..3, 0_u32..30_000, prop_oneof![50_u32..4_000, 50_u32..200_000], 1_u32..300, flags)
            .prop_map(|(packets, marked, after_us, srtt_us, in_flight, (round, limited, wider))| Step::Ack {
                packets,
                marked: marked.min(packets),
                after_us,
                round,
                srtt_us,
                in_flight,
                limited,
                wider,
            });
    let state = prop::sample::select(vec![
        CaState::Open,
        CaState::Disorder,
        CaState::Cwr,
        CaState::Recovery,
        CaState::Loss,
    ]);
    prop_oneof![20 => ack, 3 => state.prop_map(Step::State), 1 => Just(Step::Cut), 1 => Just(Step::Rto), 1 => Just(Step::Undo), 1 => (1_u32..70).prop_map(Step::Route)]
}

fn connections() -> impl Strategy<Value = Connection> {
    let ssthresh = prop_oneof![Just(crate::cc::sock::INFINITE_SSTHRESH), 2_u32..400];
    // Without an RTT sample the pace is so high that a burst does not fit into the 16 bits of sk_gso_max_segs.
    let srtt_us = prop_oneof![1 => Just(0), 9 => 1_u32..200_000];
    (srtt_us, 2_u32..400, ssthresh, 0_u32..300, 0_u32..5, prop::collection::vec(steps(), 1..150)).prop_map(
        |(srtt_us, cwnd, ssthresh, in_flight, scaling, steps)| Connection {
            srtt_us,
            cwnd,
            ssthresh,
            in_flight,
            scaling,
            steps,
        },
    )
}

/// The harness's lines of a connection, and what the simulator has after each; none once there is no state to tell.
fn simulated<C: CongestionControl>(
    connection: &Connection,
    form: u32,
    mut cc: C,
    state_of: impl Fn(&C, &TcpSock) -> Option<String>,
) -> (String, Vec<String>) {
    let mut tp = TcpSock::new(1448, 1000);
    tp.now = Time::from_ms(1000);
    tp.accecn = true;
    tp.is_cwnd_limited = true;
    tp.srtt_us = u64::from(connection.srtt_us) << 3;
    tp.min_rtt_us = connection.srtt_us.into();
    tp.snd_cwnd = connection.cwnd;
    tp.snd_ssthresh = connection.ssthresh;
    tp.packets_out = connection.in_flight;
    cc.init(&mut tp);
    let Connection { srtt_us, cwnd, ssthresh, in_flight, scaling, .. } = connection;
    let mut lines = format!("open {srtt_us} {cwnd} {ssthresh} {in_flight} {form} {scaling}\n");
    let burst = |cc: &C, tp: &TcpSock| cc.tso_segs(tp).unwrap_or(0).min(u32::from(u16::MAX));
    let told = |cc: &C, tp: &TcpSock, most: u32| {
        let burst = burst(cc, tp);
        let state = state_of(cc, tp)?;
        Some(format!(
            "{} {} {} {} {burst} {most} {state}",
            tp.snd_cwnd, tp.snd_ssthresh, tp.pacing_rate, tp.mss
        ))
    };
    // The route's bound holds, and where the RTT is so short that Linux would add a segment to a burst the burst does too.
    let bounded = |cc: &C, tp: &TcpSock, route: u32| {
        let added = 65_536_u64.checked_shr((tp.min_rtt_us >> 9) as u32).unwrap_or(0);
        if added >= u64::from(tp.mss) { burst(cc, tp).min(route) } else { route }
    };
    let mut route = u32::from(u16::MAX);
    let mut most = bounded(&cc, &tp, route);
    // The pace of the older forms is not computed before the first ACK: the core's own stands until then.
    if form != 0 {
        tp.pacing_rate = 0;
    }
    let mut all: Vec<String> = told(&cc, &tp, most).into_iter().collect();
    for step in &connection.steps {
        match *step {
            Step::Ack { packets, marked, after_us, round, srtt_us, in_flight, limited, wider } => {
                tp.now = Time::from_us(tp.now.as_us() + u64::from(after_us));
                if round {
                    tp.snd_una = tp.snd_nxt;
                    tp.snd_nxt += 100_000;
                }
                tp.srtt_us = u64::from(srtt_us) << 3;
                tp.min_rtt_us = u64::from(srtt_us / 2);
                tp.write_queue = wider;
                tp.packets_out = in_flight;
                tp.is_cwnd_limited = limited;
                tp.delivered += u64::from(packets);
                tp.delivered_ce += u64::from(marked);
                let _ = writeln!(
                    lines,
                    "ack {packets} {marked} {after_us} {} {} {srtt_us} {in_flight} {} {}",
                    tp.snd_una,
                    tp.snd_nxt,
                    u8::from(limited),
                    u8::from(wider)
                );
                let sample = RateSample {
                    acked_sacked: packets,
                    delivered_ce: marked,
                    ece: marked > 0,
                    ..RateSample::default()
                };
                cc.pkts_acked(&mut tp, packets, Some(srtt_us.into()));
                cc.cong_control(&mut tp, &sample);
                most = bounded(&cc, &tp, route);
            }
            Step::State(state) => {
                let _ = writeln!(lines, "state {}", state as u8);
                cc.set_state(&mut tp, state);
                tp.ca_state = state;
            }
            Step::Cut => {
                lines.push_str("cut\n");
                tp.prior_cwnd = tp.snd_cwnd;
                tp.snd_ssthresh = cc.ssthresh(&mut tp);
            }
            Step::Rto => {
                lines.push_str("rto\n");
                cc.cwnd_event(&mut tp, CaEvent::Loss);
            }
            Step::Undo => {
                lines.push_str("undo\n");
                tp.snd_cwnd = cc.undo_cwnd(&mut tp);
            }
            Step::Route(segments) => {
                let _ = writeln!(lines, "route {segments}");
                // The module cannot tell the value that it set itself from the same one of a route.
                if segments != most {
                    (route, most) = (segments, segments);
                }
            }
        }
        let Some(told) = told(&cc, &tp, most) else { break };
        all.push(told);
    }
    (lines, all)
}

/// Of windows below 2^20 packets: the module's product of alpha and a larger one overflows 64 bits, the simulator's has 128.
fn present(cc: &Prague, _: &TcpSock) -> Option<String> {
    (cc.frac_cwnd < ONE << 20).then(|| {
        format!(
            "{} {} {} {} {} {} {} {}",
            cc.frac_cwnd,
            cc.rate,
            cc.alpha,
            cc.hsrtt,
            cc.ai_per_rtt,
            cc.round,
            u8::from(cc.mode == Mode::Rate),
            u8::from(cc.in_loss)
        )
    })
}

/// All forms, 200 connections each, the same ones every time.
#[test]
fn the_kernel_module_computes_the_same() {
    let harness = Harness::compile("prague", &["prague.c", "prague_2020.c", "prague_2019.c"]);
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let outcome = runner.run(&connections(), |connection| {
        let mode = [Scaling::None, Scaling::Rate, Scaling::Scalable, Scaling::Additive]
            .get(connection.scaling as usize)
            .copied();
        let of_2020 = |form, version| {
            let cc = Prague2020::new(version).soon_scaled(mode);
            simulated(&connection, form, cc, |cc, _| Some(cc.kept()))
        };
        let of_2019 = |form, version| {
            simulated(&connection, form, Prague2019::new(version), |cc, tp| Some(cc.kept(tp)))
        };
        for (lines, ours) in [
            simulated(&connection, 0, Prague::new(Version::Present), present),
            of_2020(1, Of2020::Aug2020),
            of_2020(2, Of2020::Apr2020),
            of_2020(3, Of2020::Jun2021),
            of_2019(4, Of2019::Nov2019),
            of_2019(5, Of2019::Sep2019),
        ] {
            for ((line, ours), theirs) in lines.lines().zip(&ours).zip(&harness.drive(&lines)) {
                prop_assert_eq!(ours, theirs, "after '{}' of\n{}", line, lines);
            }
        }
        Ok(())
    });
    outcome.unwrap();
}
