//! A path for the tests of [`super::Bbr3`], and those of its parts that have no file.

use super::cycle::Phase;
use super::*;
use crate::base::units::Time;

pub const RTT_US: u64 = 20_000;

/// A flow on a path of 10 packets per ms and an RTT of 20 ms: a BDP of 200 packets.
pub struct Path {
    pub bbr: Bbr3,
    pub tp: TcpSock,
}

impl Path {
    pub fn new() -> Path {
        Path::of(&V3)
    }

    pub fn of(rules: &'static Rules) -> Path {
        let mut tp = TcpSock::new(1448, 1000);
        tp.srtt_us = RTT_US << 3;
        tp.min_rtt_us = RTT_US;
        tp.delivered = 1;
        tp.packets_out = 200;
        let mut bbr = Bbr3::new(rules, Stream::new(1, "cc"));
        bbr.init(&mut tp);
        Path { bbr, tp }
    }

    /// What an ACK of `acked` packets tells if `per_ms` packets per ms arrive; `round` starts a round.
    pub fn sample(&self, acked: u32, per_ms: u64, round: bool) -> RateSample {
        RateSample {
            acked_sacked: acked,
            delivered: (per_ms * RTT_US / 1000) as u32,
            interval_us: RTT_US,
            prior_delivered: if round { self.tp.delivered } else { 0 },
            prior_in_flight: self.tp.packets_out,
            tx_in_flight: self.tp.packets_out,
            rtt_us: Some(RTT_US + 1),
            ..RateSample::default()
        }
    }

    /// That ACK, `us` later.
    pub fn take(&mut self, us: u64, sample: &RateSample) {
        self.tp.now += Time::from_us(us);
        self.tp.delivered_mstamp = self.tp.now;
        self.tp.delivered += u64::from(sample.acked_sacked);
        self.bbr.cong_control(&mut self.tp, sample);
    }

    pub fn ack(&mut self, us: u64, acked: u32, per_ms: u64, round: bool) {
        let sample = self.sample(acked, per_ms, round);
        self.take(us, &sample);
    }

    /// In PROBE_BW, cruising.
    pub fn cruising() -> Path {
        Path::cruising_of(&V3)
    }

    pub fn cruising_of(rules: &'static Rules) -> Path {
        let mut path = Path::of(rules);
        for _ in 0..10 {
            path.ack(20_000, 50, 10, true);
        }
        assert!(path.bbr.is_cruising(), "{:?} {:?}", path.bbr.mode, path.bbr.cycle.phase);
        path
    }

    /// At the beginning of PROBE_UP.
    pub fn probing_up() -> Path {
        Path::probing_up_of(&V3)
    }

    pub fn probing_up_of(rules: &'static Rules) -> Path {
        let mut path = Path::cruising_of(rules);
        for _ in 0..1000 {
            path.ack(20_000, 50, 10, true);
            if path.bbr.cycle.phase == Phase::Up {
                return path;
            }
        }
        panic!("no probe in 20 s");
    }
}

#[test]
fn in_googles_kernel_packets_for_segmentation_hold_two_segments_at_any_rate() {
    // 800 kbit/s; a window holds three of them, and 4 packets
    for (rules, least, window) in [(&V3, 1, 4), (&GOOGLE, 2, 6)] {
        let mut path = Path::of(rules);
        path.tp.pacing_rate = 100_000;
        assert_eq!((path.bbr.min_tso_segs(&path.tp), path.bbr.quantize(&path.tp, 1)), (least, window));
    }
}

#[test]
fn in_googles_kernel_a_tail_loss_in_a_probe_counts_as_one_of_the_last_flight() {
    // 1 of 51 is above 2 %, of 52 not; the bound is 51, or 70 % of a target of 60: 42.
    for (rules, latest, is_app_limited, up, bound) in [
        (&V3, 50, false, true, 400),
        (&GOOGLE, 51, false, true, 400),
        (&GOOGLE, 50, false, false, 51),
        (&GOOGLE, 50, true, false, 400),
    ] {
        let mut path = Path::probing_up_of(rules);
        path.tp.snd_cwnd = 60;
        (path.bbr.bounds.inflight_latest, path.bbr.bounds.inflight_hi) = (latest, 400);
        path.bbr.probe_repaired(&mut path.tp, is_app_limited);
        assert_eq!((path.bbr.is_probing_up(), path.bbr.bounds.inflight_hi), (up, bound), "{latest}");
    }
    // What the flight before delivered is kept over the ACK that may be the probe's.
    for (rules, latest) in [(&V3, 10), (&GOOGLE, 100)] {
        let mut path = Path::cruising_of(rules);
        path.bbr.bounds.inflight_latest = 100;
        let mut sample = path.sample(1, 10, true);
        (sample.delivered, sample.acks_probe) = (10, true);
        path.take(20_000, &sample);
        assert_eq!(path.bbr.bounds.inflight_latest, latest);
    }
}

#[test]
fn gains_are_those_of_version_3() {
    assert_eq!((V3.startup_gain, V3.drain_gain), (710, 88));
    let mut path = Path::new();
    path.ack(20_000, 10, 10, true);
    assert_eq!((path.bbr.pacing_gain, path.bbr.cwnd_gain), (710, 512));
    let path = Path::probing_up();
    assert_eq!((path.bbr.pacing_gain, path.bbr.cwnd_gain), (320, 576));
}

#[test]
fn every_five_seconds_half_a_bdp_for_200_ms_and_a_round() {
    let mut path = Path::cruising();
    while path.bbr.mode != Mode::ProbeRtt {
        path.ack(20_000, 50, 10, true);
    }
    let began = path.tp.now.as_ms();
    assert!((5_000..5_050).contains(&began), "{began}");
    // half of 200
    assert_eq!(path.tp.snd_cwnd, 100);
    path.tp.packets_out = 100;
    path.ack(1_000, 4, 10, false);
    let low = path.tp.now.as_ms();
    while path.bbr.mode == Mode::ProbeRtt {
        path.ack(1_000, 1, 10, true);
    }
    assert_eq!(path.tp.now.as_ms() - low, 201);
    assert!(path.bbr.is_cruising());
}

#[test]
fn the_window_of_an_rto_comes_back() {
    let mut path = Path::cruising();
    let before = path.tp.snd_cwnd;
    path.bbr.ssthresh(&mut path.tp);
    path.tp.snd_cwnd = 1;
    path.bbr.set_state(&mut path.tp, CaState::Loss);
    path.tp.ca_state = CaState::Loss;
    assert_eq!(path.bbr.bounds.inflight_lo, before);
    path.bbr.set_state(&mut path.tp, CaState::Open);
    assert_eq!(path.tp.snd_cwnd, before);
}

#[test]
fn undoing_a_reduction_gives_back_the_window_before_it_whatever_came_since() {
    for version in [&V2, &V3] {
        let mut path = Path::cruising_of(version);
        path.tp.snd_cwnd = 150;
        path.bbr.ssthresh(&mut path.tp);
        for grown in [100, 170] {
            path.tp.snd_cwnd = grown;
            assert_eq!(path.bbr.undo_cwnd(&mut path.tp), 150, "{version:?} {grown}");
        }
    }
}
