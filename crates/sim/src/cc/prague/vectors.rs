//! Sequences of ACKs through `prague`, every integer of which was computed from a description of the module 0.7: packets of
//! 1500 bytes with headers of 52, the window always the limit, defaults, from 1 s on.

use super::*;
use crate::cc::sock::INFINITE_SSTHRESH;

const ANY: u32 = INFINITE_SSTHRESH;

/// At an RTT in microseconds, with a window and a threshold; `in_flight` packets are out.
fn open(srtt_us: u64, cwnd: u32, ssthresh: u32, in_flight: u32) -> (Prague, TcpSock) {
    let mut tp = TcpSock::new(1448, 1000);
    tp.now = Time::from_ms(1000);
    tp.accecn = true;
    tp.is_cwnd_limited = true;
    tp.srtt_us = srtt_us << 3;
    tp.snd_cwnd = cwnd;
    tp.snd_ssthresh = ssthresh;
    tp.packets_out = in_flight;
    // No round ends by itself.
    tp.snd_nxt = 1 << 40;
    let mut prague = Prague::new(Version::Present);
    prague.init(&mut tp);
    (prague, tp)
}

fn ack(prague: &mut Prague, tp: &mut TcpSock, packets: u32, marked: u32) {
    tp.delivered += u64::from(packets);
    tp.delivered_ce += u64::from(marked);
    let sample =
        RateSample { acked_sacked: packets, delivered_ce: marked, ece: marked > 0, ..RateSample::default() };
    prague.cong_control(tp, &sample);
}

fn enter(prague: &mut Prague, tp: &mut TcpSock, state: CaState) {
    prague.set_state(tp, state);
    tp.ca_state = state;
}

#[test]
fn at_the_start() {
    // srtt in us, R, pace, hsrtt, burst
    for (srtt, rate, pace, hsrtt, burst) in [
        (20_000, 750_000, 1_500_000, 20_480_000, 1),
        (160_000, 93_750, 187_500, 163_840_000, 1),
        (0, 120_000_000_000, 240_000_000_000, 1024, 39_062),
    ] {
        let (prague, tp) = open(srtt, 10, ANY, 0);
        assert_eq!((prague.frac_cwnd, prague.rate, tp.pacing_rate), (10_485_760, rate, pace), "{srtt}");
        assert_eq!((prague.hsrtt, prague.burst, prague.ai_per_rtt), (hsrtt, burst, 1_048_576), "{srtt}");
    }
}

#[test]
fn growth_by_rtt() {
    for (srtt, ai) in [
        (1_000, 1_678),
        (5_000, 41_943),
        (10_000, 167_772),
        (10_500, 184_969),
        (15_000, 377_487),
        (20_000, 671_089),
        (24_999, 1_048_492),
        (25_000, 1_048_576),
        (100_001, 1_048_576),
    ] {
        let (mut prague, tp) = open(srtt, 40, 40, 0);
        prague.round = 4;
        prague.set_ai(&tp);
        assert_eq!(prague.ai_per_rtt, ai, "{srtt}");
    }
}

#[test]
fn window_mode() {
    let (mut prague, mut tp) = open(40_000, 40, 40, 38);
    assert_eq!(prague.round, 1);
    // packets, marked; W, ssthresh, F, R, pace
    for (n, (packets, marked, cwnd, ssthresh, frac, rate, pace)) in [
        (2, 0, 41, 40, 41_995_469, 1_501_875, 1_500_000),
        (2, 0, 41, 40, 42_047_832, 1_503_747, 1_500_000),
        (1, 1, 40, 40, 21_023_916, 751_873, 1_425_000),
        (2, 1, 39, 39, 21_076_214, 753_744, 1_425_000),
        (3, 0, 38, 38, 21_232_719, 759_341, 1_425_000),
    ]
    .into_iter()
    .enumerate()
    {
        if n == 2 {
            enter(&mut prague, &mut tp, CaState::Cwr);
        }
        ack(&mut prague, &mut tp, packets, marked);
        assert_eq!((tp.snd_cwnd, tp.snd_ssthresh), (cwnd, ssthresh), "ACK {n}");
        assert_eq!((prague.frac_cwnd, prague.rate, tp.pacing_rate), (frac, rate, pace), "ACK {n}");
    }
}

#[test]
fn the_first_mark_in_slow_start() {
    // ACKs: packets, marked; W, ssthresh, F, pace
    let together: &[(u32, u32, u32, u32, u64, u64)] = &[
        (2, 1, 101, ANY, 105_906_176, 15_150_000),
        (2, 0, 103, ANY, 108_003_328, 15_450_000),
        (2, 0, 105, ANY, 110_100_480, 15_750_000),
        (2, 0, 107, ANY, 112_197_632, 16_050_000),
    ];
    let alone: &[(u32, u32, u32, u32, u64, u64)] = &[
        (1, 1, 99, 99, 52_428_800, 7_425_000),
        (2, 0, 98, 98, 52_470_743, 7_425_000),
        (2, 0, 97, 97, 52_512_653, 7_425_000),
        (2, 0, 96, 96, 52_554_529, 7_425_000),
    ];
    for (in_flight, acks) in [(98, together), (99, alone)] {
        let (mut prague, mut tp) = open(20_000, 100, ANY, in_flight);
        for (n, &(packets, marked, cwnd, ssthresh, frac, pace)) in acks.iter().enumerate() {
            ack(&mut prague, &mut tp, packets, marked);
            assert_eq!((tp.snd_cwnd, tp.snd_ssthresh), (cwnd, ssthresh), "{in_flight}, ACK {n}");
            assert_eq!((prague.frac_cwnd, tp.pacing_rate), (frac, pace), "{in_flight}, ACK {n}");
        }
    }
}

#[test]
fn updates_of_alpha() {
    let (mut prague, mut tp) = open(30_000, 40, 40, 0);
    prague.saw_ce = true;
    // delivered and marked in the round; alpha as stored
    for (delivered, marked, alpha) in [
        (16, 4, 4_194_304),
        (16, 0, 3_932_160),
        (20, 20, 20_463_616),
        (10, 1, 20_862_361),
        (0, 0, 19_558_464),
    ] {
        tp.now += Time::from_ms(30);
        tp.snd_una = tp.snd_nxt;
        tp.delivered += delivered;
        tp.delivered_ce += marked;
        prague.update_alpha(&mut tp);
        assert_eq!((prague.alpha, prague.hsrtt), (alpha, 30_720_000), "{delivered} {marked}");
    }
}

#[test]
fn entry_to_cwr() {
    // F, alpha of 2^24; F and R after it
    for (frac, alpha, after, rate) in [
        (41_943_040, 16_777_216, 20_971_520, 750_000),
        (41_943_040, 1_048_576, 40_632_320, 1_453_125),
        (7_352_377, 3_355_443, 6_617_139, 236_647),
        (2_097_152, 1, 2_097_152, 75_000),
    ] {
        let (mut prague, mut tp) = open(40_000, 40, 40, 38);
        (prague.frac_cwnd, prague.alpha) = (frac, alpha << 4);
        enter(&mut prague, &mut tp, CaState::Cwr);
        assert_eq!((prague.frac_cwnd, prague.rate), (after, rate), "{frac} {alpha}");
    }
}

/// In rate mode in the fourth round, by that rate.
fn at_rate(srtt_us: u64, rate: u64) -> (Prague, TcpSock) {
    let (mut prague, mut tp) = open(srtt_us, 4, 4, 2);
    (prague.round, prague.mode, prague.saw_ce, prague.rate) = (4, Mode::Rate, true, rate);
    prague.frac_cwnd = prague.rate_to_window(&tp, rate);
    tp.delivered_ce = 1;
    prague.new_round(&tp);
    (prague, tp)
}

#[test]
fn rate_mode() {
    let (mut prague, mut tp) = at_rate(10_000, 240_000);
    assert_eq!(prague.frac_cwnd, 1_600_000);
    // packets, marked, ms since the last; W, F, R, pace
    for (n, (packets, marked, ms, cwnd, frac, rate, pace)) in [
        (1, 0, 1, 3, 1_704_860, 255_729, 263_720),
        (2, 0, 4, 2, 1_872_634, 280_895, 289_672),
        (1, 1, 5, 2, 1_638_560, 245_784, 253_464),
        (2, 0, 4, 2, 1_848_274, 277_241, 268_578),
    ]
    .into_iter()
    .enumerate()
    {
        tp.now += Time::from_ms(ms);
        if n == 2 {
            prague.alpha = MAX_ALPHA / 4;
            enter(&mut prague, &mut tp, CaState::Cwr);
        }
        ack(&mut prague, &mut tp, packets, marked);
        assert_eq!((tp.snd_cwnd, prague.frac_cwnd), (cwnd, frac), "ACK {n}");
        assert_eq!((prague.rate, tp.pacing_rate), (rate, pace), "ACK {n}");
    }
}

#[test]
fn sizes_of_packets() {
    // R, srtt in us; MTU, F and W after it
    for (rate, srtt, size, frac, cwnd) in [
        (240_000, 10_000, 1500, 1_600_000, 2),
        (120_000, 5_000, 1431, 419_287, 2),
        (119_000, 5_000, 1419, 419_309, 2),
        (100_000, 10_000, 1192, 838_926, 2),
        (40_000, 10_000, 477, 838_575, 2),
        (12_500, 10_000, 202, 618_816, 2),
        (12_500, 100_000, 596, 2_097_317, 3),
    ] {
        let (mut prague, mut tp) = at_rate(srtt, rate);
        prague.update_mtu(&mut tp);
        let goal = prague.goal(&tp);
        assert_eq!((mtu(&tp), prague.frac_cwnd, goal), (size, frac, cwnd), "{rate} {srtt}");
    }
}

#[test]
fn loss_and_undo() {
    let (mut prague, mut tp) = open(40_000, 40, 40, 38);
    prague.frac_cwnd = 39 * ONE + 500_000;
    prague.rate = prague.window_to_rate(&tp);
    enter(&mut prague, &mut tp, CaState::Recovery);
    assert_eq!((tp.snd_cwnd, prague.frac_cwnd, prague.rate), (40, 20_697_232, 740_190));
    for (acks, cwnd) in [(1, 39), (25, 20)] {
        for _ in 0..acks {
            ack(&mut prague, &mut tp, 2, 0);
        }
        assert_eq!((tp.snd_cwnd, tp.snd_ssthresh, prague.frac_cwnd), (cwnd, cwnd, 20_697_232));
        assert_eq!(prague.rate, 740_190);
    }
    assert_eq!(prague.undo_cwnd(&mut tp), 40);
    assert_eq!((prague.frac_cwnd, prague.rate), (39_476_827, 1_480_381));
}

#[test]
fn the_pace() {
    // F, in flight, W, ssthresh, srtt in us; pace and burst
    for (frac, in_flight, cwnd, ssthresh, srtt, pace, burst) in [
        (7 * ONE + 900_000, 5, 8, 8, 40_000, 262_500, 1),
        (7 * ONE + 900_000, 9, 8, 8, 40_000, 337_500, 1),
        (2 * ONE, 1, 8, 8, 40_000, 75_000, 1),
        (8 * ONE, 8, 8, 40, 40_000, 600_000, 1),
        (2000 * ONE, 0, 2000, 2000, 20_000, 150_000_000, 24),
    ] {
        let (mut prague, mut tp) = open(srtt, cwnd, ssthresh, in_flight);
        prague.frac_cwnd = frac;
        prague.update_pacing(&mut tp);
        assert_eq!((tp.pacing_rate, prague.burst), (pace, burst), "{frac} {in_flight}");
    }
}
