//! The shell commands of a script: which of them the driver knows, and whether a setting is one that the simulator has.

use bakeoff_document::units::Time;
use bakeoff_sim::base::rng::Stream;
use bakeoff_sim::cc::{Cc, CcEnv};

use crate::sysctl::assignments;

/// Settings that [`crate::sysctl::Settings`] follows.
const FOLLOWED: [&str; 12] = [
    "tcp_ecn",
    "tcp_ecn_fallback",
    "tcp_ecn_option",
    "tcp_ecn_option_beacon",
    "tcp_invalid_ratelimit",
    "tcp_timestamps",
    "tcp_rto_max_ms",
    "tcp_tso_win_divisor",
    "tcp_sack",
    "tcp_slow_start_after_idle",
    "tcp_pacing_ss_ratio",
    "tcp_pacing_ca_ratio",
];

/// Settings that change nothing that is compared: what ends a connection after minutes, other sockets, and memory.
const WITHOUT_EFFECT: [&str; 19] = [
    "tcp_min_tso_segs",
    "tcp_fack",
    "tcp_syn_retries",
    "tcp_synack_retries",
    "tcp_retries1",
    "tcp_retries2",
    "tcp_orphan_retries",
    "tcp_fin_timeout",
    "tcp_tw_reuse",
    "tcp_max_tw_buckets",
    "tcp_max_orphans",
    "tcp_max_syn_backlog",
    "tcp_keepalive_time",
    "tcp_keepalive_intvl",
    "tcp_keepalive_probes",
    "tcp_no_metrics_save",
    "tcp_no_ssthresh_metrics_save",
    "tcp_allowed_congestion_control",
    "ip_local_port_range",
];

/// What the simulator always does.
const ALWAYS: [(&str, &[&str]); 21] = [
    ("tcp_window_scaling", &["1"]),
    ("tcp_dsack", &["1"]),
    ("tcp_reordering", &["3"]),
    ("tcp_early_retrans", &["3", "4"]),
    ("tcp_recovery", &["1"]),
    ("tcp_frto", &["1", "2"]),
    ("tcp_moderate_rcvbuf", &["1"]),
    ("tcp_autocorking", &["1"]),
    ("tcp_notsent_lowat", &["4294967295", "-1"]),
    ("tcp_thin_linear_timeouts", &["0"]),
    ("tcp_mtu_probing", &["0"]),
    ("tcp_min_snd_mss", &["48"]),
    ("tcp_comp_sack_delay_ns", &["1000000"]),
    ("tcp_comp_sack_slack_ns", &["100000"]),
    ("tcp_comp_sack_nr", &["44"]),
    ("tcp_min_rtt_wlen", &["300"]),
    ("tcp_syn_linear_timeouts", &["4"]),
    ("tcp_rto_min_us", &["200000"]),
    ("tcp_pingpong_thresh", &["1"]),
    ("tcp_tso_rtt_log", &["9"]),
    ("tcp_reflect_tos", &["0"]),
];

/// Settings of the whole host that change nothing that is compared.
const OF_HOST: [&str; 2] = ["net.core.default_qdisc", "net.core.somaxconn"];

/// The first command or setting of some shell commands that the driver does not know.
pub fn unknown(text: &str) -> Option<String> {
    let text = text.replace("\\\n", " ").replace("2>&1", "");
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or(""));
    let mut commands =
        lines.flat_map(|line| line.split([';', '&', '|'])).map(str::trim).filter(|c| !c.is_empty());
    commands
        .find_map(unknown_command)
        .or_else(|| assignments(&text).find_map(|(name, value)| unknown_setting(&name, &value)))
}

fn unknown_command(command: &str) -> Option<String> {
    let words: Vec<&str> = command.split_whitespace().take_while(|word| *word != ">").collect();
    let file = words.first().map_or("", |word| word.rsplit('/').next().unwrap_or(word));
    let known = match (file, words.get(1..).unwrap_or_default()) {
        ("sysctl" | "defaults.sh" | "set_sysctls.py" | "true" | ":", _) => true,
        (restore, _) if restore.starts_with("sysctl_restore") => true,
        ("ip", rest) if rest.windows(2).any(|two| two == ["mtu", "lock"]) => return Some("mtu lock".into()),
        ("ip", ["tcp_metrics", "flush", ..])
        | ("ethtool", ["-K", ..])
        | ("tc", ["qdisc", "add" | "replace", "dev", _, "root", "fq" | "pfifo" | "pfifo_fast" | "noqueue"]) => {
            true
        }
        _ => false,
    };
    (!known).then(|| format!("shell command {}", words.iter().take(2).copied().collect::<Vec<_>>().join(" ")))
}

fn unknown_setting(name: &str, value: &str) -> Option<String> {
    if name == "tcp_congestion_control" {
        let env = CcEnv { rng: Stream::new(1, "cc/packetdrill"), now: Time::ZERO };
        return Cc::build(value, env).is_err().then(|| format!("congestion control {value}"));
    }
    if FOLLOWED.contains(&name) || WITHOUT_EFFECT.contains(&name) || OF_HOST.contains(&name) {
        return None;
    }
    let known = ALWAYS.iter().any(|(setting, values)| *setting == name && values.contains(&value));
    (!known).then(|| format!("sysctl {name}={value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_settings_are_known_or_named() {
        for known in [
            "./defaults.sh\nsysctl -q net.ipv4.tcp_ecn=1  # fully enabled",
            "./set_sysctls.py /proc/sys/net/ipv4/tcp_slow_start_after_idle=1 \\\n  /proc/sys/net/ipv4/tcp_min_tso_segs=10",
            "/tmp/sysctl_restore_${PPID}.sh",
            "ethtool -K tun0 tso off gso off; tc qdisc replace dev tun0 root fq",
            "ip tcp_metrics flush all > /dev/null 2>&1",
            "sysctl -q net.ipv4.tcp_early_retrans=4 net.ipv4.tcp_recovery=1",
        ] {
            assert_eq!(unknown(known), None, "{known}");
        }
        for (text, why) in [
            ("ip route add 192.0.2.1 dev tun0 mtu lock 1400", "mtu lock"),
            ("ip route change 192.0.2.1 dev tun0 initcwnd 3", "shell command ip route"),
            ("tc qdisc add dev tun0 root netem delay 1ms", "shell command tc qdisc"),
            ("true && iptables -A INPUT", "shell command iptables -A"),
            ("sleep 1", "shell command sleep 1"),
            ("sysctl -q net.ipv4.tcp_recovery=0", "sysctl tcp_recovery=0"),
            ("sysctl -w net/ipv4/tcp_new_thing=7", "sysctl tcp_new_thing=7"),
            ("sysctl net.ipv4.tcp_congestion_control=nosuch", "congestion control nosuch"),
            ("sysctl -w net.core.wmem_max=7", "sysctl net.core.wmem_max=7"),
        ] {
            assert_eq!(unknown(text).as_deref(), Some(why), "{text}");
        }
    }
}
