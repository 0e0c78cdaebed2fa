//! What `bbr2` does otherwise than `bbr3`.

use super::cycle::Phase;
use super::tests::{Path, RTT_US};
use super::*;

fn version2() -> Bbr3 {
    Bbr3::new(&V2, Stream::new(1, "cc"))
}

#[test]
fn the_parameters_are_the_versions_own() {
    for (text, version, ecn, most) in [
        ("bbr2", &V2, false, 5_000),
        ("bbr2 ecn_enable 1 ecn_max_rtt_us 0", &V2, true, 0),
        ("bbr3 ecn_low 1", &V3, true, 5_000),
        ("bbr3@draft", &DRAFT, false, 5_000),
        ("bbr3@google ecn_low 1", &GOOGLE, true, 5_000),
    ] {
        let made = Bbr3::parse(&mut CcWords::new(text), CcEnv::default());
        let Ok(bbr) = made else { panic!("'{text}' was refused") };
        assert_eq!((bbr.rules, bbr.ecn, bbr.ecn_max_rtt_us), (version, ecn, most), "{text}");
    }
    for text in ["bbr2 ecn_low 1", "bbr3@draft ecn_low 1"] {
        assert!(Bbr3::parse(&mut CcWords::new(text), CcEnv::default()).is_err(), "{text}");
    }
}

#[test]
fn gains() {
    // 2.885 * 256 = 738.6 and 256 / 2.885 = 88.7
    let mut path = Path::of(&V2);
    path.ack(20_000, 10, 10, true);
    assert_eq!((path.bbr.pacing_gain, path.bbr.cwnd_gain), (739, 739));
    path.bbr.mode = Mode::Drain;
    path.bbr.update_gains();
    assert_eq!((path.bbr.pacing_gain, path.bbr.cwnd_gain), (88, 739));
    path.bbr.mode = Mode::ProbeBw;
    for (phase, gain) in [(Phase::Up, 320), (Phase::Down, 192), (Phase::Cruise, 256), (Phase::Refill, 256)] {
        path.bbr.cycle.phase = phase;
        path.bbr.update_gains();
        assert_eq!((path.bbr.pacing_gain, path.bbr.cwnd_gain), (gain, 512), "{phase:?}");
    }
}

#[test]
fn the_first_pace_is_2_89_windows_per_rtt() {
    let mut tp = TcpSock::new(1448, 1000);
    tp.srtt_us = 40_000 << 3;
    version2().init(&mut tp);
    // 10 packets in 40 ms are 4194 of 2^-24 per us; 4194 * 1448 * 739 / 256 = 17530700, in bytes per second 1044900, and 99 % of that
    let per_us = 4194 * 1448 * 739 / 256;
    assert_eq!(tp.pacing_rate, (per_us * 990_000) >> 24);
    // 1448 B * 10 / 40 ms * 739 / 256
    assert!((tp.pacing_rate as f64 / (1_045_094.0 * 0.99) - 1.0).abs() < 2e-4);
}

#[test]
fn loss_and_marks_that_are_too_many() {
    let mut path = Path::of(&V2);
    path.bbr.bounds.ecn_eligible = true;
    let b = &path.bbr.bounds;
    // 5/256 of 100 are 1, of 51 none
    for (tx, lost, too_high) in [(100, 1, false), (100, 2, true), (51, 0, false), (51, 1, true)] {
        assert_eq!(b.is_too_high(tx, lost, 0, 0), too_high, "{tx} {lost}");
    }
    // half of the packets; version 3: more than half
    let version3 = {
        let mut path = Path::new();
        path.bbr.bounds.ecn_eligible = true;
        path.bbr.bounds
    };
    for (marked, of_2, of_3) in [(49, false, false), (50, true, false), (51, true, true)] {
        assert_eq!(b.is_too_high(100, 0, 100, marked), of_2, "{marked}");
        assert_eq!(version3.is_too_high(100, 0, 100, marked), of_3, "{marked}");
    }
}

#[test]
fn eight_or_six_lossy_acks_in_a_round_of_recovery_end_startup() {
    // 13, 14, … packets per ms over 20 ms: 20 and 18 at last; version 3 takes the 500 of the round
    for (rules, events, bound) in [(&V2, 7, None), (&V2, 8, Some(400)), (&V3, 5, None), (&V3, 6, Some(500))] {
        let mut path = Path::of(rules);
        path.ack(20_000, 10, 10, true);
        path.tp.ca_state = CaState::Recovery;
        for i in 0..events {
            let mut sample = path.sample(1, 13 + i, false);
            sample.losses = 2;
            sample.interval_lost = 20;
            path.take(100, &sample);
        }
        let mut sample = path.sample(1, 10, true);
        sample.delivered = 500;
        sample.interval_us = 50_000;
        sample.interval_lost = 20;
        path.take(100, &sample);
        assert_eq!(path.bbr.full_bw_reached, bound.is_some(), "{events}");
        assert_eq!(path.bbr.bounds.inflight_hi, bound.unwrap_or(NONE), "{events}");
    }
}

#[test]
fn the_pipe_is_full_after_three_rounds_and_only_rounds_count() {
    let mut path = Path::of(&V2);
    path.ack(20_000, 10, 10, true);
    for _ in 0..2 {
        path.ack(20_000, 10, 12, true);
        path.ack(100, 1, 12, false);
    }
    assert!(!path.bbr.full_bw_reached);
    // a quarter more, at a round's start: it begins anew
    path.ack(20_000, 10, 13, true);
    for _ in 0..2 {
        path.ack(20_000, 10, 13, true);
        assert!(!path.bbr.full_bw_reached);
    }
    path.ack(20_000, 10, 13, true);
    assert!(path.bbr.full_bw_reached);
}

#[test]
fn a_probe_ends_with_1_25_bdp_in_flight_after_an_rtt() {
    let mut path = Path::probing_up_of(&V2);
    // the BDP of 200 packets, for as long as it may take: version 3 ends after three rounds
    for _ in 0..20 {
        path.ack(20_000, 50, 10, true);
        assert_eq!(path.bbr.cycle.phase, Phase::Up);
    }
    // 250, and 2 that a probe adds to its aims
    let mut path = Path::probing_up_of(&V2);
    for (us, in_flight, phase) in
        [(1_000, 300, Phase::Up), (19_000, 300, Phase::Up), (1, 200, Phase::Up), (1, 300, Phase::Down)]
    {
        path.tp.packets_out = in_flight;
        path.ack(us, 2, 10, false);
        assert_eq!(path.bbr.cycle.phase, phase, "{us} {in_flight}");
    }
    assert_eq!(path.bbr.pacing_gain, 192);
}

#[test]
fn credit_is_lost_while_the_window_does_not_limit() {
    for (version, left) in [(&V2, 0), (&V3, 50)] {
        let mut path = Path::probing_up_of(version);
        path.bbr.bounds.inflight_hi = 200;
        path.tp.snd_cwnd = 200;
        path.tp.is_cwnd_limited = true;
        path.bbr.raise_inflight_hi(&path.tp, 50);
        path.tp.is_cwnd_limited = false;
        path.bbr.raise_inflight_hi(&path.tp, 50);
        assert_eq!(path.bbr.cycle.up_acks, left, "{version:?}");
    }
}

#[test]
fn marks_lower_the_short_term_bound_by_a_third_of_alpha() {
    // alpha in 1/256: 256 - (256 * 85 >> 8 = 85) = 171 of 256, 256 - 42 = 214, 256 - 8 = 248
    for (alpha, left) in [(256, 66), (128, 83), (26, 96)] {
        let mut path = Path::cruising_of(&V2);
        path.bbr.bounds.ecn_eligible = true;
        path.bbr.bounds.alpha = alpha;
        path.bbr.bounds.inflight_lo = 100;
        let mut sample = path.sample(2, 10, false);
        sample.ece = true;
        path.take(100, &sample);
        assert_eq!(path.bbr.bounds.inflight_lo, 100, "the round is not over");
        path.bbr.bounds.alpha = alpha;
        let sample = path.sample(2, 10, true);
        path.bbr.bounds.note_delivery(&path.tp, &sample, 0);
        path.bbr.update_signals(&path.tp, &sample);
        assert_eq!(path.bbr.bounds.inflight_lo, left, "{alpha}");
    }
}

#[test]
fn marks_count_up_to_5_ms_and_alpha_follows_them_at_any_rtt() {
    for (ecn, most, rtt_us, eligible) in [
        (false, 5_000, 1_000, false),
        (true, 5_000, 5_001, false),
        (true, 5_000, 5_000, true),
        (true, 0, 100_000, true),
    ] {
        let mut path = Path::cruising_of(&V2);
        (path.bbr.ecn, path.bbr.ecn_max_rtt_us) = (ecn, most);
        path.bbr.min_rtt_us = rtt_us;
        path.bbr.update_ecn_alpha(&path.tp);
        assert_eq!(path.bbr.bounds.ecn_eligible, eligible, "{ecn} {rtt_us}");
    }
    // a round with all its packets marked: 240 * 26 >> 8 = 24, and 16
    let mut path = Path::of(&V2);
    path.bbr.bounds.alpha = 26;
    path.tp.delivered += 100;
    path.tp.delivered_ce += 100;
    path.bbr.update_ecn_alpha(&path.tp);
    assert_eq!(path.bbr.bounds.alpha, 40);
}

#[test]
fn an_rtt_equal_to_the_minimum_puts_probe_rtt_off() {
    for (version, probes) in [(&V2, false), (&V3, true)] {
        let mut path = Path::cruising_of(version);
        let mut probed = false;
        for _ in 0..600 {
            let mut sample = path.sample(50, 10, true);
            sample.rtt_us = Some(RTT_US);
            path.take(20_000, &sample);
            probed |= path.bbr.mode == Mode::ProbeRtt;
        }
        assert_eq!(probed, probes, "{version:?}");
    }
}

#[test]
fn an_rto_bounds_what_is_in_flight_by_the_window_before_it() {
    // The window that the core left is larger only after another reduction: version 3 takes the larger one.
    for (version, bound) in [(&V2, 150), (&V3, 170)] {
        let mut path = Path::cruising_of(version);
        path.bbr.prior_cwnd = 150;
        path.tp.snd_cwnd = 170;
        path.bbr.set_state(&mut path.tp, CaState::Loss);
        assert_eq!(path.bbr.bounds.inflight_lo, bound, "{version:?}");
    }
}
