//! The words that the SCE tree's qdiscs have in common.
//!
//! Source: heistp/iproute2-sce `tc/q_cnq_codel_af.c`.
//!
//! Parameters: `bandwidth` RATE or `unlimited` (default), `rtt` TIME (100 ms; target rtt/20, BLUE above 4*rtt), overhead words
//! ([`super::framing`]), `sce` (as `sce-thresh 1`), `sce-thresh` 1..1024 (SCE interval rtt/n), `no-sce`.

use super::framing::{Framing, FramingWords};
use crate::tc::{TcError, Words, show};
use crate::units::{Rate, Time};

/// What the words of one line say, before it takes effect.
#[derive(Clone, Debug, Default)]
pub struct SceWords {
    /// `Some(None)` is `unlimited`.
    pub bandwidth: Option<Option<Rate>>,
    /// Not zero.
    pub rtt: Option<Time>,
    /// 0 is off.
    pub sce_thresh: Option<u32>,
    /// Packets.
    pub limit: Option<u32>,
    /// The overhead words.
    pub framing: FramingWords,
}

impl SceWords {
    /// All words; `limit` is one of them where the qdisc has it.
    pub fn take_all(words: &mut Words, has_limit: bool) -> Result<Self, TcError> {
        let mut said = SceWords::default();
        while let Some(word) = words.next_word() {
            match word {
                "bandwidth" => {
                    said.bandwidth = Some(Some(words.rate()?).filter(|rate| rate.bits_per_s() > 0));
                }
                "unlimited" => said.bandwidth = Some(None),
                "rtt" => said.rtt = Some(words.positive_time()?),
                "sce" => said.sce_thresh = Some(1),
                "sce-thresh" => {
                    let n = words.u32()?;
                    if !(1..=1024).contains(&n) {
                        return Err(words.bad(word, &n.to_string(), "a number from 1 to 1024"));
                    }
                    said.sce_thresh = Some(n);
                }
                "no-sce" => said.sce_thresh = Some(0),
                "limit" if has_limit => said.limit = Some(words.positive_u32()?),
                _ if said.framing.take(word, words)? => {}
                _ => {
                    let mut known = vec!["bandwidth", "unlimited", "rtt", "sce", "sce-thresh", "no-sce"];
                    known.extend(has_limit.then_some("limit"));
                    known.extend(FramingWords::WORDS);
                    return Err(words.unknown(word, &known));
                }
            }
        }
        Ok(said)
    }
}

/// The configuration.
#[derive(Clone, Debug)]
pub struct SceConfig {
    /// None is unlimited.
    pub bandwidth: Option<Rate>,
    /// Targets and intervals follow from it.
    pub rtt: Time,
    /// What the link adds to a packet.
    pub framing: Framing,
    /// 0 is off.
    pub sce_thresh: u32,
    /// Packets; none where the qdisc has no such word.
    pub limit: Option<u32>,
}

impl SceConfig {
    /// All words; `sce_thresh` and `limit` are the defaults.
    pub fn parse(words: &mut Words, sce_thresh: u32, limit: Option<u32>) -> Result<Self, TcError> {
        let rtt = Time::from_ms(100);
        SceConfig { bandwidth: None, rtt, framing: Framing::default(), sce_thresh, limit }.changed(words)
    }

    /// This one after `tc qdisc change`: what the line does not say stays.
    pub fn changed(&self, words: &mut Words) -> Result<Self, TcError> {
        let said = SceWords::take_all(words, self.limit.is_some())?;
        Ok(SceConfig {
            bandwidth: said.bandwidth.unwrap_or(self.bandwidth),
            rtt: said.rtt.unwrap_or(self.rtt),
            framing: said.framing.change(self.framing),
            sce_thresh: said.sce_thresh.unwrap_or(self.sce_thresh),
            limit: said.limit.or(self.limit),
        })
    }

    /// How long a full frame of `psched_mtu` bytes takes.
    pub fn mtu_time(&self, psched_mtu: u32) -> Time {
        self.bandwidth.map_or(Time::ZERO, |rate| rate.time_for(psched_mtu))
    }

    /// As tc words it, after the qdisc's name.
    pub fn show(&self, name: &str) -> String {
        let limit = self.limit.map_or(String::new(), |limit| format!(" limit {limit}p"));
        let bandwidth = match self.bandwidth {
            Some(rate) => format!("bandwidth {}", show::rate(rate)),
            None => "unlimited".into(),
        };
        let framing = match self.framing {
            framing if framing == Framing::default() => String::new(),
            framing => format!(" {}", framing.show()),
        };
        let sce = match self.sce_thresh {
            0 => "no-sce".into(),
            n => format!("sce-thresh {n}"),
        };
        format!("{name}{limit} {bandwidth} rtt {}{framing} {sce}", show::time(self.rtt.as_us()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_a_qdisc_does_not_have_are_refused() {
        for (line, message) in [
            ("sce-thresh 0", "sce-thresh: '0' is not a number from 1 to 1024"),
            ("bandwith 1mbit", "did you mean 'bandwidth'?"),
            ("limit 10", "unknown word 'limit'"),
        ] {
            let error = SceConfig::parse(&mut Words::new(line), 0, None).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
