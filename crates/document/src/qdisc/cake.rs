//! CAKE's words and what they set.

use std::fmt::Write;

use crate::qdisc::framing::{Framing, FramingWords};
use crate::tc::{TcError, Words, show};
use crate::units::{Rate, Time};

/// Which words are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// `cake`: Linux's.
    Mainline,
    /// `cake@sce`: the SCE tree's.
    Sce,
}

/// How codepoints map to tins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Diffserv {
    /// One tin.
    BestEffort,
    /// Eight tins, by the upper three bits.
    Precedence,
    /// Bulk, best effort, voice.
    Three,
    /// Bulk, best effort, video, voice.
    Four,
    /// Eight tins.
    Eight,
}

/// What gets a queue of its own, and who shares fairly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isolation {
    /// A queue for each flow.
    pub flows: bool,
    /// A queue, or a share, for each source.
    pub src: bool,
    /// The same for destinations.
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
        Self::NAMES.iter().position(|name| *name == word).map(|bits| Self::of_code(bits as u8))
    }

    fn name(self) -> &'static str {
        Self::NAMES[usize::from(self.code())]
    }

    /// Linux's number: 1 for sources, 2 for destinations, 4 for flows.
    pub fn code(self) -> u8 {
        u8::from(self.src) + 2 * u8::from(self.dst) + 4 * u8::from(self.flows)
    }

    /// What has this number.
    pub fn of_code(bits: u8) -> Self {
        Isolation { flows: bits & 4 != 0, src: bits & 1 != 0, dst: bits & 2 != 0 }
    }

    /// Whether the flows of one source share one host's part.
    pub fn by_src(self) -> bool {
        self.flows && self.src
    }

    /// The same for destinations.
    pub fn by_dst(self) -> bool {
        self.flows && self.dst
    }
}

/// Which acknowledgements a newer one may replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckFilter {
    /// None.
    Off,
    /// Where two older ones stand in the queue.
    On,
    /// Where one does.
    Aggressive,
}

/// The configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// Which words are known.
    pub version: Version,
    /// None is unlimited.
    pub bandwidth: Option<Rate>,
    /// The bandwidth follows what arrives.
    pub autorate_ingress: bool,
    /// Tins.
    pub diffserv: Diffserv,
    /// Queues and shares.
    pub isolation: Isolation,
    /// Whether hosts are looked up behind address translation.
    pub nat: bool,
    /// Whether codepoints are cleared.
    pub wash: bool,
    /// Whether what is dropped is paid for.
    pub ingress: bool,
    /// Which acknowledgements may go.
    pub ack_filter: AckFilter,
    /// Whether several segments are taken apart.
    pub split_gso: bool,
    /// COBALT's interval.
    pub rtt: Time,
    /// rtt/20, at least 1 us.
    pub target: Time,
    /// What the link adds.
    pub framing: Framing,
    /// Bytes; 0 lets the bandwidth decide.
    pub memlimit: u64,
    /// Mask of the firewall's mark; 0 is none.
    pub fwmark: u32,
    /// 0 is off.
    pub sce_thresh: u32,
}

/// What the words of one line say, before it takes effect.
#[derive(Clone, Debug, Default)]
pub struct CakeWords {
    /// None inside is unlimited.
    pub bandwidth: Option<Option<Rate>>,
    /// See [`Config`] for this and all others.
    pub autorate_ingress: Option<bool>,
    /// Tins.
    pub diffserv: Option<Diffserv>,
    /// Queues and shares.
    pub isolation: Option<Isolation>,
    /// Hosts behind address translation.
    pub nat: Option<bool>,
    /// Codepoints are cleared.
    pub wash: Option<bool>,
    /// What is dropped is paid for.
    pub ingress: Option<bool>,
    /// Which acknowledgements may go.
    pub ack_filter: Option<AckFilter>,
    /// Several segments are taken apart.
    pub split_gso: Option<bool>,
    /// COBALT's interval; the target follows.
    pub rtt: Option<Time>,
    /// What the link adds.
    pub framing: FramingWords,
    /// Bytes.
    pub memlimit: Option<u64>,
    /// Mask.
    pub fwmark: Option<u32>,
    /// 0 is off.
    pub sce_thresh: Option<u32>,
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

impl CakeWords {
    /// All words.
    ///
    /// # Errors
    /// A word that is not known, or a value that is not what it should be.
    pub fn take_all(words: &mut Words, version: Version) -> Result<CakeWords, TcError> {
        let mut said = CakeWords::default();
        while let Some(word) = words.next_word() {
            let known = said.framing.take(word, words)?
                || said.take_switch(word)
                || said.take_value(word, words)?
                || (version == Version::Sce && said.take_sce(word, words)?);
            if !known {
                return Err(Self::unknown(word, words, version));
            }
        }
        Ok(said)
    }

    fn unknown(word: &str, words: &Words, version: Version) -> TcError {
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
        if version == Version::Sce {
            known.extend(SCE_WORDS);
        }
        words.unknown(word, &known)
    }

    fn take_switch(&mut self, word: &str) -> bool {
        match word {
            "unlimited" => {
                self.bandwidth = Some(None);
                self.autorate_ingress = Some(false);
            }
            "autorate-ingress" => self.autorate_ingress = Some(true),
            "besteffort" => self.diffserv = Some(Diffserv::BestEffort),
            "precedence" => self.diffserv = Some(Diffserv::Precedence),
            "diffserv3" => self.diffserv = Some(Diffserv::Three),
            "diffserv4" | "diffserv" => self.diffserv = Some(Diffserv::Four),
            "diffserv8" => self.diffserv = Some(Diffserv::Eight),
            "nat" => self.nat = Some(true),
            "nonat" => self.nat = Some(false),
            "wash" => self.wash = Some(true),
            "nowash" => self.wash = Some(false),
            "ingress" => self.ingress = Some(true),
            "egress" => self.ingress = Some(false),
            "ack-filter" => self.ack_filter = Some(AckFilter::On),
            "ack-filter-aggressive" => self.ack_filter = Some(AckFilter::Aggressive),
            "no-ack-filter" => self.ack_filter = Some(AckFilter::Off),
            "split-gso" => self.split_gso = Some(true),
            "no-split-gso" => self.split_gso = Some(false),
            _ => {
                if let Some(isolation) = Isolation::parse(word) {
                    self.isolation = Some(isolation);
                } else if let Some((_, us)) = RTTS.iter().find(|rtt| rtt.0 == word) {
                    self.rtt = Some(Time::from_us(*us));
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
                self.bandwidth = Some(Some(words.rate()?).filter(|rate| rate.bits_per_s() > 0));
                self.autorate_ingress = Some(false);
            }
            "rtt" => self.rtt = Some(words.positive_time()?),
            "memlimit" => self.memlimit = Some(words.size()?),
            "fwmark" => self.fwmark = Some(words.u32()?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn take_sce(&mut self, word: &str, words: &mut Words) -> Result<bool, TcError> {
        match word {
            "sce" => self.sce_thresh = Some(1),
            "sce-thresh" => self.sce_thresh = Some(words.positive_u32()?),
            "no-sce" => self.sce_thresh = Some(0),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// The target of an rtt: a twentieth of it, at least 1 us.
pub fn target(rtt: Time) -> Time {
    Time::from_us((rtt.as_us() / 20).max(1))
}

impl Config {
    /// tc's defaults.
    pub fn new(version: Version) -> Self {
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
    pub fn take_all(&mut self, words: &mut Words) -> Result<(), TcError> {
        let said = CakeWords::take_all(words, self.version)?;
        self.bandwidth = said.bandwidth.unwrap_or(self.bandwidth);
        self.autorate_ingress = said.autorate_ingress.unwrap_or(self.autorate_ingress);
        self.diffserv = said.diffserv.unwrap_or(self.diffserv);
        self.isolation = said.isolation.unwrap_or(self.isolation);
        self.nat = said.nat.unwrap_or(self.nat);
        self.wash = said.wash.unwrap_or(self.wash);
        self.ingress = said.ingress.unwrap_or(self.ingress);
        self.ack_filter = said.ack_filter.unwrap_or(self.ack_filter);
        self.split_gso = said.split_gso.unwrap_or(self.split_gso);
        if let Some(rtt) = said.rtt {
            self.rtt = rtt;
            self.target = target(rtt);
        }
        self.framing = said.framing.change(self.framing);
        self.memlimit = said.memlimit.unwrap_or(self.memlimit);
        self.fwmark = said.fwmark.unwrap_or(self.fwmark);
        self.sce_thresh = said.sce_thresh.unwrap_or(self.sce_thresh);
        Ok(())
    }

    /// Bytes per second; 0 is unlimited.
    pub fn bytes_per_s(&self) -> u64 {
        self.bandwidth.map_or(0, Rate::bytes_per_s)
    }

    /// Bytes of memory that may be in use: four times what passes in an rtt, at least 4 MiB, at most 10240
    /// packets of `psched_mtu` bytes.
    pub fn buffer_limit(&self, psched_mtu: u32) -> u64 {
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

    /// What the simulator calls it.
    pub fn name(&self) -> &'static str {
        match self.version {
            Version::Mainline => "cake",
            Version::Sce => "cake@sce",
        }
    }

    /// As tc words it, after the qdisc's name.
    pub fn show(&self, name: &str) -> String {
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
            assert_eq!(parse(Version::Mainline, line).unwrap().show("cake"), shown);
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
        assert!(sce.show(sce.name()).starts_with("cake@sce bandwidth 50Mbit besteffort flows"));
        assert!(sce.show(sce.name()).ends_with("overhead 0 sce-thresh 1"));
    }
}
