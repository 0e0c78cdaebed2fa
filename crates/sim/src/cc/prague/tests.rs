//! Parameters and versions of `prague`.

use super::*;
use crate::cc::sock::Pacing;

/// A module in congestion avoidance at 50 ms, where nothing is scaled.
fn avoiding(text: &str, cwnd: u32) -> (Prague, TcpSock) {
    let mut tp = TcpSock::new(1448, 250);
    tp.accecn = true;
    tp.snd_cwnd = cwnd;
    tp.snd_ssthresh = cwnd;
    tp.is_cwnd_limited = true;
    tp.srtt_us = 50_000 << 3;
    tp.snd_nxt = 1_000_000;
    let Ok(mut prague) = Prague::parse(&mut CcWords::new(text), CcEnv::default()) else {
        panic!("'{text}' was refused")
    };
    prague.init(&mut tp);
    (prague, tp)
}

fn ack(prague: &mut Prague, tp: &mut TcpSock, acked: u32, marked: u32) {
    tp.delivered += u64::from(acked);
    tp.delivered_ce += u64::from(marked);
    let sample = RateSample { acked_sacked: acked, delivered_ce: marked, ..RateSample::default() };
    prague.cong_control(tp, &sample);
}

#[test]
fn alpha_mode_1_begins_at_1_and_no_mark_halves() {
    let (mut prague, mut tp) = avoiding("prague alpha_mode 1", 100);
    assert_eq!(prague.alpha, MAX_ALPHA);
    ack(&mut prague, &mut tp, 1, 1);
    assert_eq!(prague.frac_cwnd, 100 * ONE);
    prague.set_state(&mut tp, CaState::Cwr);
    assert_eq!(prague.frac_cwnd, 50 * ONE);
}

#[test]
fn only_a_window_that_limits_grows_in_2023_one_that_the_application_does_not_limit() {
    for (text, limited, app_limited, grows) in [
        ("prague", false, 0, false),
        ("prague", true, 1, true),
        ("prague@2023", false, 0, true),
        ("prague@2023", true, 1, false),
    ] {
        let (mut prague, mut tp) = avoiding(text, 50);
        (tp.is_cwnd_limited, tp.app_limited) = (limited, app_limited);
        ack(&mut prague, &mut tp, 25, 0);
        // 25 of 50 packets: half a packet more
        let expected = if grows { 50 * ONE + ONE / 2 } else { 50 * ONE };
        assert_eq!(prague.frac_cwnd, expected, "{text} {limited} {app_limited}");
    }
}

#[test]
fn the_pace_is_the_window_rounded_down_in_2023_the_window() {
    for (text, packets) in [("prague", 50), ("prague@2023", 51)] {
        let (mut prague, mut tp) = avoiding(text, 50);
        ack(&mut prague, &mut tp, 25, 0);
        assert_eq!(tp.snd_cwnd, 51);
        // 1500 B * 50 / 50 ms = 1.5 MB/s, which is less than 2^12 packets per second
        assert_eq!(tp.pacing_rate, 30_000 * packets, "{text}");
        assert_eq!((tp.pacing, prague.tso_segs(&tp)), (Pacing::Needed, Some(1)));
    }
    // 1500 B * 1000 / 50 ms = 30 MB/s: 4.9 packets in 1/4096 s
    for (text, segs) in [("prague", 4), ("prague max_tso_segs 3", 3), ("prague burst_shift 11", 9)] {
        let (prague, tp) = avoiding(text, 1000);
        assert_eq!(prague.tso_segs(&tp), Some(segs), "{text}");
    }
    // 50 packets: 0.24, so that the least decides, and the most before it
    for (words, [of_50, of_1000]) in [
        ("", [1, 4]),
        ("min_tso_segs 2", [2, 4]),
        ("min_tso_segs 6", [6, 6]),
        ("min_tso_segs 2 max_tso_segs 1", [1, 1]),
    ] {
        for (cwnd, segs) in [(50, of_50), (1000, of_1000)] {
            for name in ["prague", "prague@2023"] {
                let (prague, tp) = avoiding(&format!("{name} {words}"), cwnd);
                assert_eq!(prague.tso_segs(&tp), Some(segs), "{name} {words}");
            }
        }
    }
}

#[test]
fn the_window_becomes_a_rate_at_6000_bytes_once_marks_were_seen() {
    for (text, cwnd, marked, mode) in [
        ("prague", 4, 1, Mode::Rate),
        ("prague", 4, 0, Mode::Window),
        ("prague", 12, 1, Mode::Window),
        ("prague@2023", 3, 0, Mode::Rate),
        ("prague cwnd_mode 0", 4, 1, Mode::Window),
        ("prague cwnd_mode 1", 12, 1, Mode::Rate),
        ("prague cwnd_transit 12", 12, 1, Mode::Rate),
    ] {
        let (mut prague, mut tp) = avoiding(text, cwnd);
        ack(&mut prague, &mut tp, 1, marked);
        assert_eq!(prague.mode, mode, "{text} {cwnd} {marked}");
    }
}

#[test]
fn a_timeout_leaves_the_threshold_and_the_window_climbs_to_half() {
    let (mut prague, mut tp) = avoiding("prague", 40);
    prague.cwnd_event(&mut tp, CaEvent::Loss);
    tp.snd_cwnd = 1;
    prague.set_state(&mut tp, CaState::Loss);
    tp.ca_state = CaState::Loss;
    for expected in 2..=20 {
        ack(&mut prague, &mut tp, 1, 0);
        assert_eq!((tp.snd_cwnd, tp.snd_ssthresh), (expected, 40));
    }
    ack(&mut prague, &mut tp, 1, 0);
    assert_eq!(tp.snd_cwnd, 20);
    // then slow start up to the old threshold
    prague.set_state(&mut tp, CaState::Open);
    ack(&mut prague, &mut tp, 2, 0);
    assert_eq!((tp.snd_cwnd, prague.frac_cwnd), (22, 22 * ONE));
}

#[test]
fn growth_of_2023_by_the_whole_window_and_its_forms_of_scaling() {
    // 40 ms beside a target of 25 ms: additive (40/65)^2; scalable, in us, (2048 + 16384) * 40000 / 16384^2
    let scalable = 18_432 * 40_000 * ONE / (16_384 * 16_384);
    for (scaling, expected) in
        [("none", ONE), ("rate", ONE), ("additive", (1600 * ONE + 2112) / 4225), ("scalable", scalable)]
    {
        let (mut prague, mut tp) =
            avoiding(&format!("prague@2023 rtt_scaling {scaling} rtt_transition 0"), 50);
        tp.srtt_us = 40_000 << 3;
        prague.set_ai(&tp);
        assert_eq!(prague.ai_per_rtt, expected, "{scaling}");
    }
    let (mut prague, mut tp) = avoiding("prague@2023", 50);
    prague.frac_cwnd = 49 * ONE + ONE / 2;
    ack(&mut prague, &mut tp, 25, 0);
    assert_eq!(prague.frac_cwnd, 50 * ONE);
}

#[test]
fn without_accecn_it_is_reno() {
    let mut tp = TcpSock::new(1448, 250);
    tp.ecn_ok = true;
    let mut prague = Prague::new(Version::Present);
    assert!(prague.ect1() && prague.needs_ecn() && prague.needs_accecn());
    prague.init(&mut tp);
    assert!(!prague.ect1() && !prague.needs_ecn() && !prague.has_cong_control());
    assert_eq!((tp.pacing, prague.tso_segs(&tp)), (Pacing::None, None));
    tp.snd_cwnd = 21;
    assert_eq!(prague.ssthresh(&mut tp), 10);
    prague.set_state(&mut tp, CaState::Recovery);
    assert_eq!(tp.snd_ssthresh, 0x7fff_ffff);
}

#[test]
fn the_fallback_takes_a_third_in_an_l4s_queue_too_unless_its_constants_are_mended() {
    let third = 50 * ONE - 50 * 5 * ONE / 16;
    for (text, left) in [
        ("prague@2023", 50 * ONE),
        ("prague@2023 ecn_fallback 1", third),
        ("prague@5.15 alpha_mode 0 ecn_fallback 1", third),
        ("prague@5.15 alpha_mode 0 ecn_fallback 1 fallback_constants mended", 50 * ONE),
    ] {
        let (mut prague, mut tp) = avoiding(text, 50);
        // An L4S queue's: depth 300 us, deviation 100 us, in averages that follow the window.
        tp.min_rtt_us = 50_000;
        prague.ssthresh(&mut tp);
        for n in 0..10_000 {
            prague.pkts_acked(&mut tp, 1, Some(if n % 2 == 0 { 50_200 } else { 50_400 }));
        }
        for _ in 0..3 {
            tp.snd_una = tp.snd_nxt;
            prague.saw_ce = true;
            prague.update_alpha(&mut tp);
        }
        // alpha is 0, the least one 0.625: half of that of 50 packets
        prague.set_state(&mut tp, CaState::Cwr);
        assert_eq!(prague.frac_cwnd, left, "{text}");
    }
}

#[test]
fn the_fallback_leaves_a_larger_alpha() {
    let (mut prague, mut tp) = avoiding("prague@5.15 ecn_fallback 1 fallback_constants mended", 50);
    // score 0; alpha is 1 at the start
    prague.set_state(&mut tp, CaState::Cwr);
    assert_eq!(prague.frac_cwnd, 25 * ONE);
}

#[test]
fn in_5_15_alpha_begins_at_1_and_bursts_have_two_packets() {
    let (mut prague, mut tp) = avoiding("prague@5.15", 50);
    assert_eq!((prague.alpha, prague.tso_segs(&tp)), (MAX_ALPHA, Some(2)));
    // otherwise as in 2023: 25 of 50 packets add half a packet, and the pace is that of the window, 51
    ack(&mut prague, &mut tp, 25, 0);
    assert_eq!((prague.frac_cwnd, tp.pacing_rate), (50 * ONE + ONE / 2, 30_000 * 51));
}
