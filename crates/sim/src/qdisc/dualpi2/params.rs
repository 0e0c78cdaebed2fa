//! What `dualpi2` can be told, in tc's grammar and in the kernel's units.

use crate::base::units::Time;
use crate::qdisc::Env;
use bakeoff_document::tc::{TcError, Words, parse_time, show};

/// The integer that means probability one.
pub(super) const MAX_PROB: u32 = u32::MAX;
/// The weights of C and L sum up to this.
pub(super) const MAX_WEIGHT: u32 = 100;
const NS_PER_S: u64 = 1_000_000_000;
/// `alpha` and `beta` are given in 1/256 Hz ...
const GAIN_STEPS: f64 = 256.0;
/// ... of which two binary digits fold into the internal gain (1 unit = 1/2^32 per ns, times 64).
const GAIN_SHIFT: u32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V2019,
    V2020,
    Mainline,
}

impl Version {
    pub fn name(self) -> &'static str {
        match self {
            Version::V2019 => "dualpi2@2019",
            Version::V2020 => "dualpi2@2020",
            Version::Mainline => "dualpi2",
        }
    }

    /// By what the controller's sum is divided.
    pub fn divisor(self) -> i128 {
        match self {
            Version::V2019 => 127,
            Version::V2020 | Version::Mainline => 64,
        }
    }
}

/// The L queue's step threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Time(Time),
    Packets(u32),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Params {
    pub version: Version,
    pub limit: u32,
    pub target: Time,
    pub tupdate: Time,
    /// Internal gains: 44 and 879 by default.
    pub alpha: u32,
    pub beta: u32,
    pub coupling_factor: u8,
    pub step: Step,
    /// The step applies to packets that find this many in the L queue.
    pub min_qlen_step: u32,
    pub drop_overload: bool,
    pub drop_early: bool,
    /// Bits of the ECN field that select L.
    pub ecn_mask: u8,
    /// Weight of C, of 100.
    pub classic: u32,
    pub split_gso: bool,
    pub memory_limit: u64,
}

impl Params {
    /// The version's defaults.
    pub(super) fn new(env: &Env, version: Version) -> Self {
        let mut p = Params {
            version,
            limit: 10_000,
            target: Time::from_ms(15),
            tupdate: Time::from_ms(16),
            alpha: gain(41),
            beta: gain(819),
            coupling_factor: 2,
            step: Step::Time(Time::from_ms(1)),
            min_qlen_step: match version {
                Version::Mainline => 0,
                Version::V2019 | Version::V2020 => 2,
            },
            drop_overload: true,
            drop_early: false,
            ecn_mask: 0b01,
            classic: 10,
            split_gso: true,
            memory_limit: 0,
        };
        p.derive_memory_limit(env.psched_mtu());
        p
    }

    /// Source: Linux 7.3 `get_memory_limit`.
    fn derive_memory_limit(&mut self, frame: u32) {
        self.memory_limit = match self.version {
            Version::Mainline => (u64::from(self.limit) * 2 * u64::from(frame)).min(u64::from(u32::MAX)),
            Version::V2019 | Version::V2020 => u64::MAX,
        };
    }

    /// Takes the line; what it does not say stays, but a limit brings its memory limit. `frame` is the device's.
    pub(super) fn take_all(&mut self, words: &mut Words, frame: u32) -> Result<(), TcError> {
        const KNOWN: &[&str] = &[
            "limit",
            "target",
            "tupdate",
            "alpha",
            "beta",
            "max_rtt",
            "typical_rtt",
            "coupling_factor",
            "step_thresh",
            "drop_on_overload",
            "overflow",
            "drop_enqueue",
            "drop_dequeue",
            "l4s_ect",
            "any_ect",
            "classic_protection",
            "min_qlen_step",
            "split_gso",
            "no_split_gso",
            "memlimit",
        ];
        let known = match self.version {
            Version::Mainline => KNOWN,
            Version::V2019 | Version::V2020 => &KNOWN[..16],
        };
        let (mut max_rtt, mut typical_rtt) = (None, None);
        let mut memory_limit = None;
        let p = self;
        while let Some(word) = words.next_word() {
            match word {
                _ if !known.contains(&word) => return Err(words.unknown(word, known)),
                "limit" => {
                    p.limit = words.u32()?;
                    p.derive_memory_limit(frame);
                }
                "target" => p.target = words.time()?,
                "tupdate" => p.tupdate = positive_time(words, word)?,
                "alpha" => p.alpha = gain(hertz(words, word)?),
                "beta" => p.beta = gain(hertz(words, word)?),
                "max_rtt" => max_rtt = Some(positive_time(words, word)?),
                "typical_rtt" => typical_rtt = Some(positive_time(words, word)?),
                "coupling_factor" => p.coupling_factor = coupling_factor(words, word)?,
                "step_thresh" => p.step = step(words, word)?,
                "min_qlen_step" => p.min_qlen_step = packets(words, word)?,
                "drop_on_overload" | "overflow" => p.drop_overload = word == "drop_on_overload",
                "drop_enqueue" | "drop_dequeue" => p.drop_early = word == "drop_enqueue",
                "l4s_ect" | "any_ect" => p.ecn_mask = if word == "l4s_ect" { 0b01 } else { 0b11 },
                "classic_protection" => p.classic = percent(words, word)?,
                "split_gso" | "no_split_gso" => p.split_gso = word == "split_gso",
                _ => memory_limit = Some(words.size()?),
            }
        }
        if max_rtt.is_some() || typical_rtt.is_some() {
            p.derive(max_rtt, typical_rtt);
        }
        if let Some(limit) = memory_limit {
            p.memory_limit = limit.min(u64::from(u32::MAX));
        }
        Ok(())
    }

    /// Target and gains from round-trip times as in RFC 9332, appendix A.1; these win over values
    /// given by themselves, as in tc.
    fn derive(&mut self, max_rtt: Option<Time>, typical_rtt: Option<Time>) {
        let typical = typical_rtt.or(max_rtt.map(|max| Time(max.as_ns() / 6))).unwrap_or_default();
        let max = max_rtt.unwrap_or(Time(typical.as_ns().saturating_mul(6)));
        let tupdate = Time(typical.as_ns().min(max.as_ns() / 3).max(1000));
        let max_s = max.as_secs_f64();
        let steps = |hz: f64| gain((hz * GAIN_STEPS).round() as u32);
        self.target = typical;
        self.alpha = steps(0.1 * tupdate.as_secs_f64() / (max_s * max_s));
        self.beta = steps(0.3 / max_s);
        self.tupdate = tupdate;
    }

    /// The configuration in effect; the timer's period is its own.
    pub(super) fn show(&self, tupdate: Time) -> String {
        let choose = |first: bool, a, b| if first { a } else { b };
        let mainline = self.version == Version::Mainline;
        let step = match self.step {
            Step::Time(t) => show::time(t.as_us()),
            Step::Packets(n) => format!("{n}p"),
        };
        let only_mainline = |text: String| if mainline { text } else { String::new() };
        format!(
            "{} limit {}p{} target {} tupdate {} alpha {:.6} beta {:.6} step_thresh {step}{} coupling_factor {} {} {} \
             classic_protection {}% {}{}",
            self.version.name(),
            self.limit,
            only_mainline(format!(" memlimit {}B", self.memory_limit)),
            show::time(self.target.as_us()),
            show::time(tupdate.as_us()),
            gain_hz(self.alpha),
            gain_hz(self.beta),
            only_mainline(format!(" min_qlen_step {}p", self.min_qlen_step)),
            self.coupling_factor,
            choose(self.drop_overload, "drop_on_overload", "overflow"),
            choose(self.drop_early, "drop_enqueue", "drop_dequeue"),
            self.classic,
            choose(self.ecn_mask == 0b01, "l4s_ect", "any_ect"),
            only_mainline(choose(self.split_gso, " split_gso", " no_split_gso").into()),
        )
    }
}

/// The kernel's internal gain for a value in 1/256 Hz. Source: Linux 7.3 `dualpi2_scale_alpha_beta`.
fn gain(steps: u32) -> u32 {
    (((u64::from(steps) * u64::from(MAX_PROB)) >> GAIN_SHIFT) / NS_PER_S) as u32
}

/// The value in Hz that the kernel reports for an internal gain. Source: Linux 7.3 `dualpi2_unscale_alpha_beta`.
fn gain_hz(gain: u32) -> f64 {
    let steps = ((u64::from(gain) * NS_PER_S) << GAIN_SHIFT) / u64::from(MAX_PROB);
    steps as f64 / GAIN_STEPS
}

fn positive_time(words: &mut Words, key: &str) -> Result<Time, TcError> {
    let t = words.time()?;
    if t.as_us() == 0 {
        return Err(words.bad(key, "0", "a time of at least 1us"));
    }
    Ok(t)
}

/// A frequency in steps of 1/256 Hz.
fn hertz(words: &mut Words, key: &str) -> Result<u32, TcError> {
    let text = words.value()?;
    match text.parse::<f64>() {
        Ok(hz) if (0.0..=8_388_607.0).contains(&hz) => Ok((hz * GAIN_STEPS) as u32),
        _ => Err(words.bad(key, text, "a number of Hz such as 0.16")),
    }
}

fn coupling_factor(words: &mut Words, key: &str) -> Result<u8, TcError> {
    let text = words.value()?;
    match text.parse() {
        Ok(k) if k > 0 => Ok(k),
        _ => Err(words.bad(key, text, "a whole number from 1 to 255")),
    }
}

fn step(words: &mut Words, key: &str) -> Result<Step, TcError> {
    let text = words.value()?;
    if let Some(n) = parse_packets(text) {
        return Ok(Step::Packets(n));
    }
    parse_time(text)
        .map(Step::Time)
        .ok_or_else(|| words.bad(key, text, "a time such as 1ms or packets such as 5p"))
}

fn packets(words: &mut Words, key: &str) -> Result<u32, TcError> {
    let text = words.value()?;
    parse_packets(text)
        .or(text.parse().ok())
        .ok_or_else(|| words.bad(key, text, "a number of packets such as 2 or 2p"))
}

fn parse_packets(text: &str) -> Option<u32> {
    let number = ["packets", "packet", "pkts", "pkt", "p"].iter().find_map(|unit| text.strip_suffix(unit))?;
    number.parse().ok()
}

fn percent(words: &mut Words, key: &str) -> Result<u32, TcError> {
    let text = words.value()?;
    match text.strip_suffix('%').unwrap_or(text).parse() {
        Ok(n) if n <= MAX_WEIGHT => Ok(n),
        _ => Err(words.bad(key, text, "a whole percentage such as 10%")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str, version: Version) -> Result<(Params, Time), TcError> {
        let mut words = Words::new(line);
        words.kind().unwrap();
        let mut params = Params::new(&Env::default(), version);
        params.take_all(&mut words, Env::default().psched_mtu())?;
        Ok((params, params.tupdate))
    }

    fn mainline(line: &str) -> (Params, Time) {
        parse(line, Version::Mainline).unwrap()
    }

    #[test]
    fn gains_are_44_and_879() {
        // floor(41 * 2^32 / 4 / 1e9), floor(819 * 2^32 / 4 / 1e9)
        let (p, _) = mainline("dualpi2");
        assert_eq!((p.alpha, p.beta), (44, 879));
    }

    #[test]
    fn rfc_9332_a_1_round_trip_times_give_target_and_gains() {
        // RFC 9332, A.1: tupdate = min(15, 100/3) ms, alpha = 0.1*0.015/0.1^2, beta = 0.3/0.1
        let (p, tupdate) = mainline("dualpi2 max_rtt 100ms typical_rtt 15ms");
        assert_eq!((p.target, tupdate), (Time::from_ms(15), Time::from_ms(15)));
        // 0.15 * 256 = 38.4; 3 * 256
        assert_eq!((p.alpha, p.beta), (gain(38), gain(768)));
        // the missing one is a sixth, or six times; 0.3/0.12 * 256 = 640
        let (p, _) = mainline("dualpi2 max_rtt 120ms");
        assert_eq!((p.target, p.beta), (Time::from_ms(20), gain(640)));
        assert_eq!(mainline("dualpi2 typical_rtt 20ms").0.beta, gain(640));
    }

    #[test]
    fn the_memory_limit_follows_the_limit_and_is_new() {
        let limit = |line, version| parse(line, version).unwrap().0.memory_limit;
        assert_eq!(limit("dualpi2 limit 3", Version::Mainline), 3 * 2 * 1514);
        assert_eq!(limit("dualpi2 limit 3 memlimit 1Mb", Version::Mainline), 1 << 20);
        assert_eq!(limit("dualpi2@2020", Version::V2020), u64::MAX);
    }

    #[test]
    fn refuses_by_name() {
        use Version::{Mainline, V2019, V2020};
        for (version, line, message) in [
            (V2020, "dualpi2@2020 split_gso", "unknown word 'split_gso'"),
            (V2019, "dualpi2@2019 min_qlen_step 1", "unknown word 'min_qlen_step'"),
            (Mainline, "dualpi2 classic_protection 110%", "classic_protection: '110%' is not"),
            (Mainline, "dualpi2 coupling_factor 0", "coupling_factor: '0' is not"),
            (Mainline, "dualpi2 step_thresh soon", "step_thresh: 'soon' is not a time"),
            (Mainline, "dualpi2 tupdate 0", "tupdate: '0' is not a time of at least 1us"),
        ] {
            let error = parse(line, version).err().unwrap().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
