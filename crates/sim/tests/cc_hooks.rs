//! Every congestion control under any sequence of hooks: nothing panics or overflows (tests are built with
//! overflow checks), and the window stays usable.

use bakeoff_document::units::Time;
use bakeoff_sim::base::rng::Stream;
use bakeoff_sim::cc::sock::{CaState, TcpSock};
use bakeoff_sim::cc::{CaEvent, Cc, CcEnv, CongestionControl, NAMES, RateSample};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Call {
    /// Packets delivered, of these marked, RTT in microseconds, and whether that is known.
    Ack(u16, u16, u32, bool),
    State(CaState),
    Event(CaEvent),
    Ssthresh,
    Undo,
    /// What an RTO leaves.
    WindowOfOne,
    Send(u16),
    Wait(u32),
    Limited(bool),
}

fn call() -> impl Strategy<Value = Call> {
    use Call::{Ack, Event, Limited, Send, Ssthresh, State, Undo, Wait, WindowOfOne};
    prop_oneof![
        8 => (any::<u16>(), any::<u16>(), any::<u32>(), any::<bool>())
            .prop_map(|(acked, marked, rtt, known)| Ack(acked, marked, rtt, known)),
        8 => (0..4_u16, 0..4_u16, 0..200_000_u32).prop_map(|(a, m, rtt)| Ack(a, m, rtt, true)),
        4 => prop_oneof![
            Just(CaState::Open),
            Just(CaState::Disorder),
            Just(CaState::Cwr),
            Just(CaState::Recovery),
            Just(CaState::Loss),
        ]
        .prop_map(State),
        2 => prop_oneof![
            Just(CaEvent::TxStart),
            Just(CaEvent::CwndRestart),
            Just(CaEvent::CompleteCwr),
            Just(CaEvent::Loss),
        ]
        .prop_map(Event),
        2 => Just(Ssthresh),
        1 => Just(Undo),
        1 => Just(WindowOfOne),
        2 => any::<u16>().prop_map(Send),
        4 => any::<u32>().prop_map(Wait),
        1 => any::<bool>().prop_map(Limited),
    ]
}

/// Parameters that reach what the defaults of [`NAMES`] leave out.
const EXTREMES: &[&str] = &[
    "cubic beta 1 fast_convergence 0",
    "cubic beta 1023 tcp_friendliness 0",
    "cubic-sce origin literal tcp_friendliness 0",
    "cubic-sce mss rcv_mss pacing on",
    "dctcp-sce@2019 mss rcv_mss",
    "reno-sce@2019 mss rcv_mss",
    "cubic@5.4 hystart_low_window 0 hystart_detect 3",
    "bbr2 ecn_enable 1 ecn_max_rtt_us 0",
    "bbr3 ecn_low 1",
    "dctcp dctcp_shift_g 0 dctcp_alpha_on_init 0",
    "dctcp dctcp_shift_g 10",
    "none cwnd 1",
    "vegas alpha 0 beta 0 gamma 0",
    "illinois win_thresh 0 theta 0",
    "bic max_increment 1 low_window 0 beta 1 smooth_part 1 fast_convergence 0",
    "bic max_increment 1000000 beta 1023 smooth_part 1000000",
    "htcp use_rtt_scaling 0 use_bandwidth_switch 0",
    "hybla rtt0 1",
    "hybla rtt0 1000000",
    "copa delta 1",
    "copa delta 1000 competitive 0",
    "ledbat target 1ms slow_start 1",
    "ledbat++ target 1ms",
    "ledbat++ target 1s slowdown 0",
    "cdg window 1 backoff_factor 4294967295 use_tolerance 1 use_ineff 0 hystart_detect 0",
    "cdg window 256 backoff_beta 0 use_shadow 0",
    "nv nv_pad 2 nv_reset_period 0 nv_min_cwnd 1",
    "reno hystart on hystart_low_window 0",
    "cubic hystart++ css_rounds 1 n_rtt_sample 1 l 0",
    "reno search threshold 1 drain on",
    "cubic search",
    "cubic suss",
    "cubic search linux threshold 1 rollback on",
    "reno resume cwnd 1000000 rtt 1us validation rfc7661",
    "illinois validation maxfs resume cwnd 1000000 rtt 10s",
    "htcp validation rfc7661 suss",
    "illinois suss suss_max 10",
    "dctcp hystart++ min_rtt_thresh 0ms max_rtt_thresh 0ms css_growth_divisor 2",
    "prague burst_shift 0 cwnd_mode 1 min_tso_segs 255 rtt_target 1s rtt_transition 0",
    "prague alpha_mode 1 cwnd_mode 3 cwnd_transit 4294967295 max_tso_segs 1 rtt_target 128us rtt_transition 0",
    "prague@2023 rate_offset 128 rtt_scaling scalable rtt_transition 0",
    "prague@2023 cwnd_mode 1 rtt_scaling none",
    "prague@2023 ecn_fallback 1 rtt_transition 0",
    "prague@5.15 ecn_fallback 1 fallback_constants mended rtt_transition 0",
    "prague@2023 rtt_scaling additive rtt_target 1s rtt_transition 0",
    "prague@2020-08 rtt_scaling rate rtt_target 1s rtt_transition 0 ecn_fallback 1",
    "prague@2020-08 rtt_scaling scalable rtt_transition 0",
    "prague@2020-08 rtt_scaling additive rtt_target 128us rtt_transition 0",
];

fn run(text: &str, accecn: bool, hz: u64, calls: &[Call]) {
    let env = CcEnv { rng: Stream::new(1, "flow"), now: Time::ZERO };
    let Ok(mut cc) = Cc::build(text, env) else {
        panic!("'{text}' was refused");
    };
    let tp = &mut TcpSock::new(1448, hz);
    tp.accecn = accecn;
    tp.ecn_ok = true;
    tp.sce_pacing = accecn;
    tp.write_queue = true;
    cc.init(tp);
    let least = if text.starts_with("prague") { 2 } else { 1 };
    for call in calls {
        let before = tp.snd_cwnd;
        match *call {
            Call::Ack(acked, marked, rtt, known) => {
                let acked = u32::from(acked);
                let sample = RateSample {
                    acked_sacked: acked,
                    delivered_ce: marked.into(),
                    ece: marked > 0,
                    rtt_us: known.then_some(rtt.into()),
                    ..RateSample::default()
                };
                tp.delivered += u64::from(acked);
                tp.delivered_ce += u64::from(marked);
                tp.snd_una = tp.snd_nxt.min(tp.snd_una + 1448 * u64::from(acked));
                tp.packets_out = tp.packets_out.saturating_sub(acked);
                if known {
                    tp.srtt_us = u64::from(rtt) << 3;
                    tp.min_rtt_us = tp.min_rtt_us.min(rtt.into());
                }
                tp.esce = marked % 2 == 1;
                cc.pkts_acked(tp, acked, sample.rtt_us);
                cc.in_ack_event(tp, sample.ece);
                if cc.has_cong_control() {
                    cc.cong_control(tp, &sample);
                } else {
                    cc.cong_avoid(tp, acked);
                    tp.update_pacing_rate(200, 120);
                }
            }
            Call::State(state) => {
                cc.set_state(tp, state);
                tp.ca_state = state;
            }
            Call::Event(event) => cc.cwnd_event(tp, event),
            Call::Ssthresh => {
                tp.snd_ssthresh = cc.ssthresh(tp);
                // PRR needs a threshold of two packets; who has full control may have less.
                let least = if cc.has_cong_control() { 0 } else { 2 };
                assert!(tp.snd_ssthresh >= least, "{text}: ssthresh {}", tp.snd_ssthresh);
                tp.prior_cwnd = tp.snd_cwnd;
                if !cc.has_cong_control() {
                    tp.snd_cwnd = tp.snd_ssthresh.min(tp.snd_cwnd);
                    tp.snd_cwnd_cnt = 0;
                }
            }
            Call::Undo => tp.snd_cwnd = cc.undo_cwnd(tp),
            Call::WindowOfOne => tp.snd_cwnd = 1,
            Call::Send(packets) => {
                tp.snd_nxt += 1448 * u64::from(packets);
                tp.packets_out += u32::from(packets);
                tp.max_packets_out = tp.packets_out;
                tp.last_sent = tp.now;
                cc.sent(tp);
            }
            Call::Wait(us) => tp.now += Time::from_us(us.into()),
            Call::Limited(limited) => tp.is_cwnd_limited = limited,
        }
        // the 1 of an RTO is the sender's own
        let least = match call {
            Call::WindowOfOne => 1,
            _ => least.min(before),
        };
        assert!(tp.snd_cwnd >= least, "{text}: cwnd {before} to {} by {call:?}", tp.snd_cwnd);
        assert!(cc.tso_segs(tp).is_none_or(|segs| segs >= 1));
        assert!(cc.trace().iter().all(|(_, value)| value.is_finite()));
    }
}

proptest! {
    #[test]
    fn no_sequence_of_hooks_panics_or_loses_the_window(
        calls in prop::collection::vec(call(), 0..300),
        accecn in any::<bool>(),
        hz in prop::sample::select(vec![100_u64, 250, 1000]),
    ) {
        for text in NAMES.iter().chain(EXTREMES) {
            run(text, accecn, hz, &calls);
        }
    }
}
