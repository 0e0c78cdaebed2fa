//! What `bbr3@draft` does otherwise than `bbr3`: each test compares both.

use super::bounds::inflight_at_threshold;
use super::cycle::Phase;
use super::tests::Path;
use super::*;
use crate::base::units::Time;

/// A packet of 1000 bytes, number `n`, marked lost: `lost` of `tx_in_flight`.
fn lost(n: u64, tx_in_flight: u32, lost: u32) -> Lost {
    Lost { tx_in_flight, lost, is_app_limited: false, seq: 1000 * n, end: 1000 * (n + 1) }
}

#[test]
fn gains() {
    // 2.77 * 256 = 709.1, 0.5 * 256 = 128, 0.9 * 256 = 230.4
    for (rules, startup, drain, down) in [(&V3, 710, 88, 232), (&DRAFT, 709, 128, 230)] {
        let mut path = Path::of(rules);
        path.ack(20_000, 10, 10, true);
        assert_eq!((path.bbr.pacing_gain, path.bbr.cwnd_gain), (startup, 512));
        path.bbr.mode = Mode::Drain;
        path.bbr.update_gains();
        assert_eq!((path.bbr.pacing_gain, path.bbr.cwnd_gain), (drain, 512));
        path.bbr.mode = Mode::ProbeBw;
        for (phase, pace, window) in
            [(Phase::Down, down, 512), (Phase::Up, 320, 576), (Phase::Cruise, 256, 512)]
        {
            path.bbr.cycle.phase = phase;
            path.bbr.update_gains();
            assert_eq!((path.bbr.pacing_gain, path.bbr.cwnd_gain), (pace, window), "{phase:?}");
        }
    }
}

#[test]
fn drain_ends_in_the_fourth_round_at_the_latest() {
    for (rules, ends) in [(&V3, None), (&DRAFT, Some(4))] {
        let mut path = Path::of(rules);
        // Above the BDP of 200.
        path.tp.packets_out = 1_000;
        while path.bbr.mode == Mode::Startup {
            path.ack(20_000, 50, 10, true);
        }
        let left = (1..20).find(|_| {
            path.ack(20_000, 50, 10, true);
            path.bbr.mode != Mode::Drain
        });
        assert_eq!(left, ends);
    }
}

#[test]
fn drain_ends_by_the_bandwidth_in_use() {
    // A short-term bound of half the maximum: 100 packets.
    for (rules, at_150, at_100) in [(&V3, Mode::ProbeBw, Mode::ProbeBw), (&DRAFT, Mode::Drain, Mode::ProbeBw)]
    {
        for (in_flight, mode) in [(150, at_150), (100, at_100)] {
            let mut path = Path::of(rules);
            path.tp.packets_out = 1_000;
            while path.bbr.mode == Mode::Startup {
                path.ack(20_000, 50, 10, true);
            }
            path.bbr.bounds.bw_lo = path.bbr.bounds.max_bw() / 2;
            path.tp.packets_out = in_flight;
            path.ack(100, 1, 10, false);
            assert_eq!(path.bbr.mode, mode, "{in_flight}");
        }
    }
}

#[test]
fn growth_within_a_round_does_not_count() {
    for (rules, per_ms) in [(&V3, 15), (&DRAFT, 10)] {
        let mut path = Path::of(rules);
        path.ack(20_000, 10, 10, true);
        path.ack(100, 1, 15, false);
        assert_eq!(path.bbr.full_bw, bandwidth::of(per_ms * 20, 20_000));
    }
}

#[test]
fn six_lost_ranges_end_startup_however_many_acks_tell_of_them() {
    // (ranges, packets of each, ACKs, whether each version ends)
    for (ranges, packets, acks, by_acks, by_ranges) in
        [(6, 1, 1, false, true), (5, 2, 6, true, false), (1, 10, 6, true, false), (6, 2, 6, true, true)]
    {
        for (rules, ends) in [(&V3, by_acks), (&DRAFT, by_ranges)] {
            let mut path = Path::of(rules);
            path.ack(20_000, 10, 10, true);
            for range in 0..ranges {
                for packet in 0..packets {
                    path.bbr.on_lost(&path.tp, &lost(20 * range + packet, 200, 1));
                }
            }
            path.tp.ca_state = CaState::Recovery;
            for _ in 0..acks {
                let mut sample = path.sample(1, 20, false);
                (sample.losses, sample.interval_lost) = (2, 20);
                path.take(100, &sample);
            }
            let mut sample = path.sample(1, 20, true);
            sample.interval_lost = 20;
            path.take(100, &sample);
            assert_eq!(path.bbr.full_bw_reached, ends, "{ranges} {packets} {acks}");
        }
    }
}

#[test]
fn without_sack_any_loss_is_too_much() {
    for (rules, no_sack, up) in [(&V3, true, true), (&DRAFT, false, true), (&DRAFT, true, false)] {
        let mut path = Path::probing_up_of(rules);
        path.tp.no_sack = no_sack;
        // 1 of 1000
        path.bbr.on_lost(&path.tp, &lost(0, 1_000, 1));
        assert_eq!(path.bbr.is_probing_up(), up);
    }
    for (rules, ends) in [(&V3, false), (&DRAFT, true)] {
        let mut path = Path::of(rules);
        path.tp.no_sack = true;
        path.ack(20_000, 10, 10, true);
        path.bbr.on_lost(&path.tp, &lost(0, 1_000, 1));
        path.tp.ca_state = CaState::Recovery;
        let mut sample = path.sample(1, 20, true);
        (sample.tx_in_flight, sample.losses, sample.interval_lost) = (1_000, 1, 1);
        path.take(100, &sample);
        assert_eq!(path.bbr.full_bw_reached, ends);
    }
}

#[test]
fn two_percent_are_exact() {
    // 2 % of 100 are 2, of 51 are 1.02; the kernel's 5/256 are 1.95 and 0.996
    for (rules, results) in [(&V3, [false, true, true, true]), (&DRAFT, [false, false, true, false])] {
        let bounds = bounds::Bounds::of(rules);
        let cases = [(100, 1), (100, 2), (100, 3), (51, 1)];
        assert_eq!(cases.map(|(tx, lost)| bounds.is_too_high(tx, lost, 0, 0)), results);
    }
}

#[test]
fn where_loss_crossed_the_threshold() {
    // Before the packet: (99 - 2) / 0.98 = 98.98, (99 - 3) / 0.98 = 97.96, (59 - 5) / 0.98 = 55.1.
    for (tx, lost, kernel, draft) in [(100, 3, 99, 98), (100, 4, 99, 97), (60, 6, 59, 55)] {
        assert_eq!(inflight_at_threshold(&V3, tx, lost), kernel, "{tx} {lost}");
        assert_eq!(inflight_at_threshold(&DRAFT, tx, lost), draft, "{tx} {lost}");
    }
}

#[test]
fn bdps_that_bound_a_probe_are_bare() {
    // 5 packets per ms over 20 ms are 100; three packets of 45 segments 135
    for (rules, bound) in [(&V3, 135), (&DRAFT, 100)] {
        let mut path = Path::cruising_of(rules);
        path.bbr.bounds.reset_signals();
        path.bbr.bounds.bw_lo = bandwidth::of(5, 1_000);
        (path.tp.pacing_rate, path.tp.snd_cwnd) = (1 << 30, 1_000);
        assert_eq!(path.bbr.target_inflight(&path.tp), bound);
        let mut path = Path::of(rules);
        path.tp.pacing_rate = 1 << 30;
        path.ack(20_000, 1, 5, true);
        path.bbr.bounds.inflight_latest = 10;
        path.bbr.end_startup(&path.tp);
        assert_eq!(path.bbr.bounds.inflight_hi, bound);
    }
}

#[test]
fn only_packets_marked_lost_end_a_probe() {
    for (rules, up) in [(&V3, false), (&DRAFT, true)] {
        let mut path = Path::probing_up_of(rules);
        path.bbr.bounds.inflight_hi = 400;
        let mut sample = path.sample(2, 10, false);
        sample.interval_lost = 50;
        path.take(100, &sample);
        assert_eq!(path.bbr.is_probing_up(), up);
        assert_eq!(path.bbr.bounds.inflight_hi == 400, up);
        path.bbr.on_lost(&path.tp, &lost(0, 200, 50));
        assert!(!path.bbr.is_probing_up());
    }
}

#[test]
fn a_cut_leaves_70_percent_and_headroom_is_15() {
    // 1000 * 180 / 256 and 100 - 14; 1000 * 0.7 and 100 - 15
    for (rules, left, below) in [(&V3, 703, 86), (&DRAFT, 700, 85)] {
        let mut bounds = bounds::Bounds::of(rules);
        bounds.loss_in_round = true;
        (bounds.inflight_lo, bounds.bw_lo) = (1_000, 1_000);
        bounds.lower(1_000);
        assert_eq!((u64::from(bounds.inflight_lo), bounds.bw_lo), (left, left));
        bounds.inflight_hi = 100;
        assert_eq!(bounds.with_headroom(), below);
        // A probe that went too far: of a target of 100 packets.
        let mut path = Path::probing_up_of(rules);
        path.tp.snd_cwnd = 100;
        path.bbr.on_lost(&path.tp, &lost(0, 20, 10));
        assert_eq!(path.bbr.bounds.inflight_hi, 70);
    }
}

#[test]
fn cruising_keeps_a_short_term_bound_above_the_long_term_one() {
    for (rules, bound) in [(&V3, 200), (&DRAFT, 300)] {
        let mut path = Path::cruising_of(rules);
        (path.bbr.bounds.inflight_lo, path.bbr.bounds.inflight_hi) = (300, 200);
        path.bbr.start_cruise();
        assert_eq!(path.bbr.bounds.inflight_lo, bound);
    }
}

#[test]
fn an_rtt_equal_to_the_minimum_does_not_renew_it() {
    for (rules, renews) in [(&V3, true), (&DRAFT, false)] {
        let mut path = Path::cruising_of(rules);
        let rtt_us = path.bbr.min_rtt_us;
        let stamp = path.bbr.min_rtt_stamp;
        // Another minimum of PROBE_RTT, lower than its own before.
        path.bbr.probe_rtt_min_us = rtt_us + 1;
        let mut sample = path.sample(2, 10, false);
        sample.rtt_us = Some(rtt_us);
        path.take(100_000, &sample);
        assert_eq!(path.bbr.min_rtt_us, rtt_us);
        assert_eq!(path.bbr.min_rtt_stamp > stamp, renews);
    }
}

#[test]
fn the_rtt_of_a_delayed_ack_replaces_a_minimum_that_is_too_old() {
    for (rules, probe_rtt_min_us) in [(&V3, 20_000), (&DRAFT, 30_000)] {
        let mut path = Path::cruising_of(rules);
        let mut sample = path.sample(2, 10, false);
        (sample.rtt_us, sample.is_ack_delayed) = (Some(30_000), true);
        path.take(5_100_000, &sample);
        assert_eq!(path.bbr.probe_rtt_min_us, probe_rtt_min_us);
    }
}

#[test]
fn in_flight_is_what_is_now() {
    // 10 packets per ms: 20 fewer when the next one departs, in 2.05 ms; 300 were in flight before the ACK.
    for (rules, in_flight) in [(&V3, 280), (&DRAFT, 250)] {
        let mut path = Path::cruising_of(rules);
        path.tp.packets_out = 250;
        path.tp.wstamp = path.tp.now + Time::from_us(2_050);
        path.bbr.pacing_gain = UNIT;
        assert_eq!(path.bbr.in_flight(&path.tp, 300), in_flight);
    }
}

#[test]
fn packets_for_segmentation_hold_a_millisecond() {
    // (bytes per s, minimum RTT) -> (segments, least window): 1.25 MB/s are 1.25 KB, 12.5 MB/s 12.5 KB: 37.5 KB are 25.9 segments
    for (rate, min_rtt_us, window_v3, segs, window) in [
        (1_250_000, 40_000, 6, 2, 6),
        (12_500_000, 40_000, 24, 8, 26),
        (12_500_000, 500, 135, 8, 26),
        (125_000_000, 20_000, 135, 45, 136),
    ] {
        let mut path = Path::of(&V3);
        (path.tp.pacing_rate, path.tp.min_rtt_us) = (rate, min_rtt_us);
        assert_eq!((path.bbr.tso_segs(&path.tp), path.bbr.quantize(&path.tp, 1)), (None, window_v3));
        let mut path = Path::of(&DRAFT);
        (path.tp.pacing_rate, path.tp.min_rtt_us) = (rate, min_rtt_us);
        assert_eq!((path.bbr.tso_segs(&path.tp), path.bbr.quantize(&path.tp, 1)), (Some(segs), window));
    }
}

#[test]
fn aggregation_is_remembered_for_ten_rounds_and_without_a_cap_of_100_ms() {
    // 100 ms at 10 packets per ms are 1000, and 200 ms expect all of the burst. The first of two windows of five rounds begins anew in the tenth, the sixth after the burst.
    for (rules, at_once, later) in [(&V3, 1_000, 1), (&DRAFT, 1_520, 1_520)] {
        let mut path = Path::cruising_of(rules);
        path.tp.snd_cwnd = 2_000;
        path.bbr.aggregation = AckAggregation::new(path.tp.now);
        let extra = |path: &mut Path, acked| {
            path.tp.now += Time::from_ms(200);
            path.tp.delivered_mstamp = path.tp.now;
            path.bbr.round_start = true;
            path.bbr.rounds += 1;
            let sample = path.sample(acked, 10, true);
            path.bbr.update_aggregation(&path.tp, &sample);
            path.bbr.extra_cwnd(bandwidth::of(10, 1_000) + 1)
        };
        for _ in 0..3 {
            extra(&mut path, 1);
        }
        assert_eq!(extra(&mut path, 1_520), at_once);
        let after: Vec<_> = (0..10).map(|_| extra(&mut path, 1)).collect();
        assert_eq!((after[4], after[5], after[9]), (at_once, later, later));
        assert_eq!(extra(&mut path, 1), 1);
    }
}

#[test]
fn a_timeout_sets_no_bound_and_the_test_for_a_full_pipe_goes_on() {
    for (rules, is_set) in [(&V3, true), (&DRAFT, false)] {
        let mut path = Path::cruising_of(rules);
        path.bbr.full_bw = 1;
        path.bbr.set_state(&mut path.tp, CaState::Loss);
        assert_eq!((path.bbr.bounds.inflight_lo != NONE, path.bbr.full_bw == 0), (is_set, is_set));
    }
}

#[test]
fn leaving_recovery_gives_back_the_window() {
    for (rules, window) in [(&V3, 50), (&DRAFT, 150)] {
        let mut path = Path::cruising_of(rules);
        path.tp.snd_cwnd = 150;
        path.bbr.ssthresh(&mut path.tp);
        path.bbr.set_state(&mut path.tp, CaState::Recovery);
        path.tp.ca_state = CaState::Recovery;
        path.bbr.prev_state = CaState::Recovery;
        path.tp.snd_cwnd = 50;
        path.bbr.set_state(&mut path.tp, CaState::Open);
        assert_eq!(path.tp.snd_cwnd, window);
    }
}

#[test]
fn undoing_a_false_loss_leads_back_to_the_probe_and_to_its_bound() {
    for (rules, phase, bound) in [(&V3, Phase::Down, 200), (&DRAFT, Phase::Refill, 400)] {
        let mut path = Path::probing_up_of(rules);
        path.bbr.bounds.inflight_hi = 400;
        path.tp.snd_cwnd = 150;
        // Two packets of one ACK: the second one finds the bound lowered already.
        for n in 0..2 {
            path.bbr.on_lost(&path.tp, &lost(n, 201, 50));
        }
        path.bbr.bounds.inflight_hi = 200;
        path.bbr.ssthresh(&mut path.tp);
        path.tp.snd_cwnd = 100;
        assert_eq!(path.bbr.undo_cwnd(&mut path.tp), 150);
        assert_eq!((path.bbr.mode, path.bbr.cycle.phase), (Mode::ProbeBw, phase));
        assert_eq!(path.bbr.bounds.inflight_hi, bound);
    }
}

#[test]
fn undoing_a_false_loss_leads_back_to_startup() {
    for (rules, mode, full) in [(&V3, Mode::Drain, true), (&DRAFT, Mode::Startup, false)] {
        let mut path = Path::of(rules);
        path.ack(20_000, 10, 10, true);
        path.tp.packets_out = 500;
        for n in 0..6 {
            path.bbr.on_lost(&path.tp, &lost(2 * n, 100, 50));
        }
        path.tp.ca_state = CaState::Recovery;
        for i in 0..6 {
            let mut sample = path.sample(1, 20, i == 5);
            (sample.losses, sample.interval_lost) = (1, 50);
            path.take(100, &sample);
        }
        assert_eq!(path.bbr.mode, Mode::Drain);
        path.bbr.undo_cwnd(&mut path.tp);
        assert_eq!((path.bbr.mode, path.bbr.full_bw_reached), (mode, full));
    }
}

#[test]
fn a_second_loss_in_another_episode_saves_again() {
    let mut path = Path::cruising_of(&DRAFT);
    for (bound, state) in [(400, CaState::Recovery), (300, CaState::Loss)] {
        path.bbr.bounds.inflight_hi = bound;
        path.bbr.on_lost(&path.tp, &lost(0, 100, 1));
        for next in [state, CaState::Open] {
            path.bbr.set_state(&mut path.tp, next);
            path.tp.ca_state = next;
        }
        path.bbr.bounds.inflight_hi = 100;
        path.bbr.bounds.restore();
        assert_eq!(path.bbr.bounds.inflight_hi, bound);
    }
}

#[test]
fn before_the_pipe_is_full_the_window_grows_with_the_first_ten_packets() {
    // Beyond the target of 3 packets, 9 delivered or 10: a window of 15 is below twice the initial one.
    for (rules, delivered, window) in [(&V3, 8, 16), (&V3, 9, 16), (&DRAFT, 8, 16), (&DRAFT, 9, 15)] {
        let mut path = Path::of(rules);
        (path.tp.snd_cwnd, path.tp.delivered) = (15, delivered);
        path.bbr.min_rtt_us = 100;
        path.bbr.probe_rtt_min_us = 100;
        path.tp.pacing_rate = 1_000;
        let mut sample = path.sample(1, 1, false);
        sample.rtt_us = None;
        path.take(100, &sample);
        assert_eq!(path.tp.snd_cwnd, window, "{delivered}");
    }
}
