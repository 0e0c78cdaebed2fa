//! CAKE's words and what they set.

use std::fmt::Write;

use crate::base::units::{Rate, Time};
use crate::document::tc::{TcError, Words, show};
use crate::qdisc::framing::{Framing, FramingWords};

/// Which words are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// `cake`: Linux's.
    Mainline,
    /// `cake@sce`: the SCE tree's.
    Sce,
}

/// How codepoints map to tins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Diffserv {
    BestEffort,
    Precedence,
    Three,
    Four,
    Eight,
}

/// What gets a queue of its own, and who shares fairly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Isolation {
    pub flows: bool,
    pub src: bool,
    pub dst: bool,
}

impl Isolation {
    const NAMES: [&str; 8] = [
        "flowblind",
        "srchost",
        "dsthost",
        "hosts",
        "flows",
        "dual-srchost",
        "dual-dsthost",
        "triple-isolate",
    ];

    fn parse(word: &str) -> Option<Self> {
        let bits = Self::NAMES.iter().position(|name| *name == word)?;
        Some(Isolation { flows: bits & 4 != 0, src: bits & 1 != 0, dst: bits & 2 != 0 })
    }

    fn name(self) -> &'static str {
        Self::NAMES[usize::from(self.src) + 2 * usize::from(self.dst) + 4 * usize::from(self.flows)]
    }

    /// Whether the flows of one source share one host's part.
    pub(super) fn by_src(self) -> bool {
        self.flows && self.src
    }

    /// The same for destinations.
    pub(super) fn by_dst(self) -> bool {
        self.flows && self.dst
    }
}

/// Which acknowledgements a newer one may replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckFilter {
    Off,
    On,
    Aggressive,
}

/// The configuration.
#[derive(Clone, Debug)]
pub(super) struct Config {
    pub version: Version,
    /// None is unlimited.
    pub bandwidth: Option<Rate>,
    pub autorate_ingress: bool,
    pub diffserv: Diffserv,
    pub isolation: Isolation,
    pub nat: bool,
    pub wash: bool,
    pub ingress: bool,
    pub ack_filter: AckFilter,
    pub split_gso: bool,
    pub rtt: Time,
    /// rtt/20, at least 1 us.
    pub target: Time,
    pub framing: Framing,
    /// Bytes; 0 lets the bandwidth decide.
    pub memlimit: u64,
    pub fwmark: u32,
    /// 0 is off.
    pub sce_thresh: u32,
}

const RTTS: [(&str, u64); 8] = [
    ("datacentre", 100),
    ("lan", 1_000),
    ("metro", 10_000),
    ("regional", 30_000),
    ("internet", 100_000),
    ("oceanic", 300_000),
    ("satellite", 1_000_000),
    ("interplanetary", 1_000_000_000),
];

const SCE_WORDS: [&str; 3] = ["sce", "sce-thresh", "no-sce"];

impl Config {
    pub(super) fn new(version: Version) -> Self {
        Config {
            version,
            bandwidth: None,
            autorate_ingress: false,
            diffserv: Diffserv::Three,
            isolation: Isolation { flows: true, src: true, dst: true },
            nat: false,
            wash: false,
            ingress: false,
            ack_filter: AckFilter::Off,
            split_gso: true,
            rtt: Time::from_ms(100),
            target: Time::from_ms(5),
            framing: Framing::default(),
            memlimit: 0,
            fwmark: 0,
            sce_thresh: 0,
        }
    }

    /// Takes all words; those that are not there leave what was.
    pub(super) fn take_all(&mut self, words: &mut Words) -> Result<(), TcError> {
        let mut framing = FramingWords::default();
        while let Some(word) = words.next_word() {
            let known = framing.take(word, words)?
                || self.take_switch(word)
                || self.take_value(word, words)?
                || (self.version == Version::Sce && self.take_sce(word, words)?);
            if !known {
                return Err(self.unknown(word, words));
            }
        }
        self.framing = framing.change(self.framing);
        Ok(())
    }

    fn unknown(&self, word: &str, words: &Words) -> TcError {
        if SCE_WORDS.contains(&word) {
            return words
                .refuse(&format!("Linux's cake has no '{word}'; write 'cake@sce' for the SCE tree's"));
        }
        let mut known = vec!["bandwidth", "unlimited", "autorate-ingress", "rtt", "memlimit", "fwmark"];
        known.extend(["besteffort", "precedence", "diffserv3", "diffserv4", "diffserv8", "nat", "nonat"]);
        known.extend(["wash", "nowash", "ingress", "egress", "split-gso", "no-split-gso"]);
        known.extend(["ack-filter", "ack-filter-aggressive", "no-ack-filter"]);
        known.extend(Isolation::NAMES);
        known.extend(RTTS.iter().map(|rtt| rtt.0));
        known.extend(FramingWords::WORDS);
        if self.version == Version::Sce {
            known.extend(SCE_WORDS);
        }
        words.unknown(word, &known)
    }

    fn take_switch(&mut self, word: &str) -> bool {
        match word {
            "unlimited" => {
                self.bandwidth = None;
                self.autorate_ingress = false;
            }
            "autorate-ingress" => self.autorate_ingress = true,
            "besteffort" => self.diffserv = Diffserv::BestEffort,
            "precedence" => self.diffserv = Diffserv::Precedence,
            "diffserv3" => self.diffserv = Diffserv::Three,
            "diffserv4" | "diffserv" => self.diffserv = Diffserv::Four,
            "diffserv8" => self.diffserv = Diffserv::Eight,
            "nat" => self.nat = true,
            "nonat" => self.nat = false,
            "wash" => self.wash = true,
            "nowash" => self.wash = false,
            "ingress" => self.ingress = true,
            "egress" => self.ingress = false,
            "ack-filter" => self.ack_filter = AckFilter::On,
            "ack-filter-aggressive" => self.ack_filter = AckFilter::Aggressive,
            "no-ack-filter" => self.ack_filter = AckFilter::Off,
            "split-gso" => self.split_gso = true,
            "no-split-gso" => self.split_gso = false,
            _ => {
                if let Some(isolation) = Isolation::parse(word) {
                    self.isolation = isolation;
                } else if let Some((_, us)) = RTTS.iter().find(|rtt| rtt.0 == word) {
                    self.set_rtt(Time::from_us(*us));
                } else {
                    return false;
                }
            }
        }
        true
    }

    fn take_value(&mut self, word: &str, words: &mut Words) -> Result<bool, TcError> {
        match word {
            "bandwidth" => {
                self.bandwidth = Some(words.rate()?).filter(|rate| rate.bits_per_s() > 0);
                self.autorate_ingress = false;
            }
            "rtt" => self.set_rtt(words.positive_time()?),
            "memlimit" => self.memlimit = words.size()?,
            "fwmark" => self.fwmark = words.u32()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn take_sce(&mut self, word: &str, words: &mut Words) -> Result<bool, TcError> {
        match word {
            "sce" => self.sce_thresh = 1,
            "sce-thresh" => self.sce_thresh = words.positive_u32()?,
            "no-sce" => self.sce_thresh = 0,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn set_rtt(&mut self, rtt: Time) {
        self.rtt = rtt;
        self.target = Time::from_us((rtt.as_us() / 20).max(1));
    }

    /// Bytes per second; 0 is unlimited.
    pub(super) fn bytes_per_s(&self) -> u64 {
        self.bandwidth.map_or(0, Rate::bytes_per_s)
    }

    /// Bytes of memory that may be in use: four times what passes in an rtt, at least 4 MiB, at most 10240
    /// packets of `psched_mtu` bytes.
    pub(super) fn buffer_limit(&self, psched_mtu: u32) -> u64 {
        let limit = match (self.memlimit, self.bandwidth) {
            (0, None) => u64::from(u32::MAX),
            (0, Some(rate)) => {
                let bytes = u128::from(rate.bytes_per_s()) * u128::from(self.rtt.as_us()) / 250_000;
                // The kernel keeps the lower 32 bits.
                u64::from(bytes as u32).max(4 << 20)
            }
            (bytes, _) => bytes,
        };
        limit.min((10_240 * u64::from(psched_mtu)).max(self.memlimit))
    }

    /// As tc words it.
    pub(super) fn show(&self) -> String {
        let name = match self.version {
            Version::Mainline => "cake",
            Version::Sce => "cake@sce",
        };
        let bandwidth = self.bandwidth.map_or("unlimited".into(), show::rate);
        let when = |on: bool, word| if on { word } else { "" };
        let either = |on: bool, yes, no| if on { yes } else { no };
        let diffserv = match self.diffserv {
            Diffserv::BestEffort => "besteffort",
            Diffserv::Precedence => "precedence",
            Diffserv::Three => "diffserv3",
            Diffserv::Four => "diffserv4",
            Diffserv::Eight => "diffserv8",
        };
        let ack_filter = match self.ack_filter {
            AckFilter::Off => "no-ack-filter",
            AckFilter::On => "ack-filter",
            AckFilter::Aggressive => "ack-filter-aggressive",
        };
        let mut text = format!(
            "{name} bandwidth {bandwidth} {}{diffserv} {} {} {} {}{ack_filter} {} rtt {} {}",
            when(self.autorate_ingress, "autorate-ingress "),
            self.isolation.name(),
            either(self.nat, "nat", "nonat"),
            either(self.wash, "wash", "nowash"),
            when(self.ingress, "ingress "),
            either(self.split_gso, "split-gso", "no-split-gso"),
            show::time(self.rtt.as_us()),
            self.framing.show(),
        );
        if self.memlimit > 0 {
            let _ = write!(text, " memlimit {}", show::size(self.memlimit));
        }
        if self.fwmark > 0 {
            let _ = write!(text, " fwmark {:#x}", self.fwmark);
        }
        if self.sce_thresh > 0 {
            let _ = write!(text, " sce-thresh {}", self.sce_thresh);
        } else if self.version == Version::Sce {
            text += " no-sce";
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(version: Version, line: &str) -> Result<Config, TcError> {
        let mut config = Config::new(version);
        config.take_all(&mut Words::new(line))?;
        Ok(config)
    }

    #[test]
    fn shows_what_tc_shows() {
        // each line: what tc 7.0 shows on Linux 7.3
        for (line, shown) in [
            (
                "",
                "cake bandwidth unlimited diffserv3 triple-isolate nonat nowash no-ack-filter split-gso \
                 rtt 100ms raw overhead 0",
            ),
            (
                "bandwidth 1gbit diffserv4 dual-srchost nat wash ack-filter no-split-gso lan",
                "cake bandwidth 1Gbit diffserv4 dual-srchost nat wash ack-filter no-split-gso rtt 1ms \
                 raw overhead 0",
            ),
            (
                "bandwidth 20mbit diffserv8 dual-dsthost ingress ack-filter-aggressive rtt 33ms memlimit 8mb",
                "cake bandwidth 20Mbit diffserv8 dual-dsthost nonat nowash ingress ack-filter-aggressive \
                 split-gso rtt 33ms raw overhead 0 memlimit 8Mb",
            ),
            (
                "unlimited hosts conservative",
                "cake bandwidth unlimited diffserv3 hosts nonat nowash no-ack-filter split-gso rtt 100ms \
                 atm overhead 48",
            ),
            (
                "bandwidth 5mbit interplanetary fwmark 0xf0",
                "cake bandwidth 5Mbit diffserv3 triple-isolate nonat nowash no-ack-filter split-gso \
                 rtt 1e+03s raw overhead 0 fwmark 0xf0",
            ),
            (
                "unlimited bandwidth 5mbit autorate-ingress",
                "cake bandwidth 5Mbit autorate-ingress diffserv3 triple-isolate nonat nowash \
                 no-ack-filter split-gso rtt 100ms raw overhead 0",
            ),
            (
                "autorate-ingress bandwidth 0 memlimit 0 diffserv",
                "cake bandwidth unlimited diffserv4 triple-isolate nonat nowash no-ack-filter split-gso \
                 rtt 100ms raw overhead 0",
            ),
        ] {
            assert_eq!(parse(Version::Mainline, line).unwrap().show(), shown);
        }
    }

    #[test]
    fn the_memory_limit_follows_the_bandwidth() {
        let limit = |line| parse(Version::Mainline, line).unwrap().buffer_limit(1514);
        // 4 * 6.25 MB/s * 100 ms = 2.5 MB is below 4 MiB; 1 Gbit/s would need 50 MB
        assert_eq!(limit("bandwidth 50mbit"), 4 << 20);
        assert_eq!(limit("bandwidth 100mbit"), 5_000_000);
        assert_eq!(limit("bandwidth 1gbit"), 10_240 * 1514);
        assert_eq!(limit(""), 10_240 * 1514);
        assert_eq!(limit("memlimit 64mb"), 64 << 20);
        assert_eq!(limit("memlimit 1"), 1);
    }

    #[test]
    fn the_sce_tree_has_words_of_its_own() {
        let error = |line| parse(Version::Mainline, line).unwrap_err().to_string();
        assert_eq!(
            error("bandwidth 5mbit sce"),
            "Linux's cake has no 'sce'; write 'cake@sce' for the SCE tree's in 'bandwidth 5mbit sce'"
        );
        assert!(error("target 5ms").starts_with("unknown word 'target'"));
        assert!(error("datacenter").ends_with("did you mean 'datacentre'?"));
        assert!(error("rtt 0").starts_with("rtt: '0' is not above zero"));
        let sce = parse(Version::Sce, "sce flows besteffort bandwidth 50mbit").unwrap();
        assert!(sce.show().starts_with("cake@sce bandwidth 50Mbit besteffort flows"));
        assert!(sce.show().ends_with("overhead 0 sce-thresh 1"));
    }
}
