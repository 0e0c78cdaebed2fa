//! The settings that a script's shell commands make: `sysctl -q net.ipv4.tcp_x=…`, `./set_sysctls.py`, `defaults.sh`.

use bakeoff_sim::tcp::sender::Sysctl;

/// The settings of the host under test, as `defaults.sh` of the kernel's scripts leaves them.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `tcp_congestion_control`
    pub congestion_control: String,
    /// `tcp_ecn`
    pub ecn: u8,
    /// `tcp_ecn_fallback`
    pub ecn_fallback: bool,
    /// `tcp_ecn_option`
    pub ecn_option: u8,
    /// `tcp_ecn_option_beacon`
    pub ecn_option_beacon: u32,
    /// `tcp_invalid_ratelimit` in milliseconds
    pub invalid_ratelimit_ms: u64,
    /// `tcp_timestamps`
    pub timestamps: bool,
    /// `tcp_rto_max_ms`
    pub rto_max_ms: u64,
    /// What the simulated sender knows.
    pub sender: Sysctl,
    /// `tcp_pacing_ss_ratio` and `tcp_pacing_ca_ratio` in percent.
    pub pacing_ratios: (u64, u64),
    /// Whether `fq` paces.
    pub fq: bool,
}

/// Third value of `tcp_rmem` in `defaults.sh`: 15 MiB.
pub const RMEM_MAX: u64 = 15 << 20;

impl Default for Settings {
    fn default() -> Self {
        Settings {
            congestion_control: "cubic".into(),
            ecn: 0,
            ecn_fallback: true,
            ecn_option: 2,
            ecn_option_beacon: 3,
            invalid_ratelimit_ms: 500,
            timestamps: true,
            rto_max_ms: 120_000,
            sender: Sysctl { slow_start_after_idle: false, ..Sysctl::default() },
            pacing_ratios: (200, 120),
            fq: false,
        }
    }
}

/// Each `name=value`: a setting of `net.ipv4` without that, any other with its whole name.
pub fn assignments(commands: &str) -> impl Iterator<Item = (String, String)> {
    commands.split_whitespace().filter_map(|word| {
        let (name, value) = word.split_once('=')?;
        let name = name.strip_prefix("/proc/sys/").unwrap_or(name).replace('/', ".");
        let name = name.strip_prefix("net.ipv4.").or(name.starts_with("net.").then_some(&name))?;
        Some((name.to_string(), value.trim_matches('"').to_string()))
    })
}

impl Settings {
    /// Runs shell commands.
    ///
    /// # Errors
    /// A value that is no number.
    pub fn run(&mut self, commands: &str) -> Result<(), String> {
        if commands.contains("tc qdisc") {
            self.fq = commands.contains("root fq");
        }
        for (name, value) in assignments(commands) {
            let number = || value.parse::<u64>().map_err(|_| format!("{name}: '{value}' is not a number"));
            match name.as_str() {
                "tcp_congestion_control" => self.congestion_control.clone_from(&value),
                "tcp_ecn" => self.ecn = number()? as u8,
                "tcp_ecn_fallback" => self.ecn_fallback = number()? != 0,
                "tcp_ecn_option" => self.ecn_option = number()? as u8,
                "tcp_ecn_option_beacon" => self.ecn_option_beacon = number()? as u32,
                "tcp_invalid_ratelimit" => self.invalid_ratelimit_ms = number()?,
                "tcp_timestamps" => self.timestamps = number()? != 0,
                "tcp_rto_max_ms" => self.rto_max_ms = number()?,
                "tcp_tso_win_divisor" => self.sender.tso_win_divisor = number()?,
                "tcp_sack" => self.sender.sack = number()? != 0,
                "tcp_slow_start_after_idle" => self.sender.slow_start_after_idle = number()? != 0,
                "tcp_pacing_ss_ratio" => self.pacing_ratios.0 = number()?,
                "tcp_pacing_ca_ratio" => self.pacing_ratios.1 = number()?,
                // What is left is what the simulator always does, or what scope.rs refuses.
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_sysctl_is_understood() {
        let mut s = Settings::default();
        s.run("./defaults.sh\nsysctl -q net.ipv4.tcp_tso_win_divisor=100").unwrap();
        s.run("./set_sysctls.py /proc/sys/net/ipv4/tcp_slow_start_after_idle=1 /proc/sys/net/ipv4/tcp_ecn=3")
            .unwrap();
        s.run("tc qdisc replace dev tun0 root fq\nsysctl -q net/ipv4/tcp_pacing_ss_ratio=150").unwrap();
        assert_eq!((s.sender.tso_win_divisor, s.ecn), (100, 3));
        assert!(s.sender.slow_start_after_idle && s.fq);
        assert_eq!(s.pacing_ratios, (150, 120));
        assert_eq!(s.run("sysctl net.ipv4.tcp_ecn=x").unwrap_err(), "tcp_ecn: 'x' is not a number");
    }
}
