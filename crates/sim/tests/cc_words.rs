//! The words of a `cc`: what is taken, and how what is not is refused.

use bakeoff_document::units::Time;
use bakeoff_sim::base::rng::Stream;
use bakeoff_sim::cc::{Cc, CcEnv, NAMES};

fn error(text: &str) -> String {
    let env = CcEnv { rng: Stream::new(1, "flow"), now: Time::ZERO };
    match Cc::build(text, env) {
        Ok(_) => format!("'{text}' was taken"),
        Err(e) => e.to_string(),
    }
}

#[test]
fn every_known_name_is_taken() {
    for name in NAMES {
        assert_eq!(error(name), format!("'{name}' was taken"));
    }
}

#[test]
fn the_parameters_of_the_kernels_modules_are_taken() {
    for text in [
        "cubic fast_convergence 0 beta 819 initial_ssthresh 100 bic_scale 410 tcp_friendliness 0 hystart 0 hystart_detect 1 hystart_low_window 32 hystart_ack_delta_us 1000",
        "cubic@5.4 hystart_ack_delta 3",
        "cubic hystart off",
        "cubic beta 819 hystart++ min_rtt_thresh 4ms max_rtt_thresh 16ms min_rtt_divisor 8 n_rtt_sample 8 css_growth_divisor 4 css_rounds 5 l 8",
        "reno hystart on hystart_detect 2 hystart_low_window 1 hystart_ack_delta_us 1000",
        "reno hystart off",
        "cubic search threshold 35 drain 1",
        "reno suss suss_max 4",
        "cubic-sce bic_scale 82 origin literal mss rcv_mss pacing on",
        "dctcp-sce@2019 mss mss_cache pacing off",
        "reno-sce@2019 mss rcv_mss pacing sysctl",
        "bbr2 ecn_enable 1 ecn_max_rtt_us 0",
        "bbr3 ecn_low 1",
        "dctcp dctcp_shift_g 5 dctcp_alpha_on_init 0",
        "vegas alpha 1 beta 3 gamma 2",
        "illinois win_thresh 20 theta 3",
        "bic fast_convergence 0 max_increment 32 low_window 20 beta 800 initial_ssthresh 100 smooth_part 10",
        "htcp use_rtt_scaling 0 use_bandwidth_switch 0",
        "hybla rtt0 100",
        "copa delta 50 competitive 0",
        "ledbat target 50ms slow_start 1",
        "ledbat++ target 40ms slowdown 0",
        "cdg window 16 backoff_beta 700 backoff_factor 40 hystart_detect 0 use_ineff 0 use_shadow 0 use_tolerance 1",
        "nv nv_pad 20 nv_reset_period 10 nv_min_cwnd 4",
        "prague alpha_mode 0 burst_shift 12 cwnd_mode 2 cwnd_transit 4 max_tso_segs 0 min_tso_segs 2 rtt_target 25ms rtt_transition 4",
        "prague@2023 alpha_mode 1 ecn_fallback 1 rate_offset 0 rtt_scaling additive rtt_target 15ms rtt_transition 100",
        "prague@5.15 ecn_fallback 1 fallback_constants mended min_tso_segs 1 rtt_scaling none",
        "prague@2020-04 alpha_mode 0 rtt_scaling rate rtt_target 25ms rtt_transition 500 ecn_fallback 0",
        "prague@2019-09 alpha_mode 1",
    ] {
        assert_eq!(error(text), format!("'{text}' was taken"));
    }
}

#[test]
fn what_is_unknown_is_named_with_what_is_known_and_what_is_near() {
    for (text, expected) in [
        (
            "cubik",
            format!(
                "cc 'cubik': unknown congestion control 'cubik'; did you mean 'cubic'?; known names: {}",
                NAMES.join(", ")
            ),
        ),
        (
            "",
            format!(
                "cc '': unknown congestion control ''; known names: {}",
                NAMES.join(", ")
            ),
        ),
        (
            "cubic@5.5",
            "cc 'cubic@5.5': unknown version '5.5' of cubic; did you mean '5.4'?; known versions: 5.4, 7.3".into(),
        ),
        (
            "reno@5.4",
            "cc 'reno@5.4': unknown version '5.4' of reno; it has no versions".into(),
        ),
        (
            "reno beta 512",
            "cc 'reno beta 512': unknown parameter 'beta' of reno; it has no parameters".into(),
        ),
        (
            "prague@2020",
            "cc 'prague@2020': unknown version '2020' of prague; did you mean '2020-04'?; known versions: 2019-09, 2019-11, 2020-04, 2020-08, 2021-06, 2023, 5.15".into(),
        ),
        (
            "prague ecn_fallback 1",
            "cc 'prague ecn_fallback 1': unknown parameter 'ecn_fallback' of prague; known parameters: alpha_mode, burst_shift, cwnd_mode, cwnd_transit, max_tso_segs, min_tso_segs, rtt_target, rtt_transition".into(),
        ),
        (
            "prague@2019-11 rtt_target 25ms",
            "cc 'prague@2019-11 rtt_target 25ms': unknown parameter 'rtt_target' of prague@2019-11; known parameters: alpha_mode".into(),
        ),
        (
            "prague@2020-08 rtt_scaling rates",
            "cc 'prague@2020-08 rtt_scaling rates': rtt_scaling: 'rates' is not one of none, rate, scalable, additive".into(),
        ),
        (
            "prague@2020-08 rtt_tarket 25ms",
            "cc 'prague@2020-08 rtt_tarket 25ms': unknown parameter 'rtt_tarket' of prague@2020-08; did you mean 'rtt_target'?; known parameters: alpha_mode, rtt_scaling, rtt_target, rtt_transition, ecn_fallback".into(),
        ),
        (
            "prague@2020-08 rtt_target 0",
            "cc 'prague@2020-08 rtt_target 0': rtt_target: '0' is not a time from 128us to 1000000us, such as 15ms".into(),
        ),
        (
            "bbr beta 1",
            "cc 'bbr beta 1': unknown parameter 'beta' of bbr; it has no parameters".into(),
        ),
        (
            "cubic bic_scal 41",
            "cc 'cubic bic_scal 41': unknown parameter 'bic_scal' of cubic; did you mean 'bic_scale'?; known parameters: fast_convergence, beta, initial_ssthresh, bic_scale, tcp_friendliness, hystart, hystart_detect, hystart_low_window, hystart_ack_delta_us".into(),
        ),
        (
            "dctcp dctcp_shift_h 4",
            "cc 'dctcp dctcp_shift_h 4': unknown parameter 'dctcp_shift_h' of dctcp; did you mean 'dctcp_shift_g'?; known parameters: dctcp_shift_g, dctcp_alpha_on_init".into(),
        ),
        (
            "cubic beta 1024",
            "cc 'cubic beta 1024': beta: '1024' is not a whole number from 1 to 1023".into(),
        ),
        (
            "cubic hystart",
            "cc 'cubic hystart': 'hystart' needs a value".into(),
        ),
        (
            "cubic hystart yes",
            "cc 'cubic hystart yes': hystart: 'yes' is not one of 0, 1, off, on".into(),
        ),
        (
            "cubic hystart+",
            "cc 'cubic hystart+': unknown parameter 'hystart+' of cubic; did you mean 'hystart++'?; known parameters: fast_convergence, beta, initial_ssthresh, bic_scale, tcp_friendliness, hystart, hystart_detect, hystart_low_window, hystart_ack_delta_us".into(),
        ),
        (
            "bbr hystart++",
            "cc 'bbr hystart++': 'hystart++' needs a control that grows by ACKs, such as cubic".into(),
        ),
        (
            "reno hystart++ css_round 3",
            "cc 'reno hystart++ css_round 3': unknown parameter 'css_round' of reno; did you mean 'css_rounds'?; known parameters: min_rtt_thresh, max_rtt_thresh, min_rtt_divisor, n_rtt_sample, css_growth_divisor, css_rounds, l".into(),
        ),
    ] {
        assert_eq!(error(text), expected);
    }
}
