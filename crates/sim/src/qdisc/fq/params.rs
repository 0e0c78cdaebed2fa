//! What `fq` is told: tc's words with their defaults.

use super::BANDS;
use crate::base::units::{Rate, Time};
use bakeoff_document::tc::{TcError, Words};

/// See [`super`] for units and defaults.
#[derive(Clone)]
pub(super) struct Config {
    pub limit: u32,
    pub flow_limit: u32,
    pub quantum: u32,
    pub initial_quantum: u32,
    pub buckets: u32,
    pub maxrate: Option<Rate>,
    pub pacing: bool,
    pub refill_delay: Time,
    pub low_rate_threshold: Rate,
    pub orphan_mask: u32,
    pub timer_slack: Time,
    pub ce_threshold: Option<Time>,
    pub horizon: Time,
    pub horizon_drop: bool,
    pub priomap: [u8; 16],
    pub weights: [i32; BANDS],
}

impl Config {
    const WORDS: [&str; 19] = [
        "limit",
        "flow_limit",
        "quantum",
        "initial_quantum",
        "buckets",
        "maxrate",
        "pacing",
        "nopacing",
        "refill_delay",
        "low_rate_threshold",
        "orphan_mask",
        "timer_slack",
        "ce_threshold",
        "horizon",
        "horizon_drop",
        "horizon_cap",
        "bands",
        "priomap",
        "weights",
    ];

    /// Takes the line; what it does not say stays.
    pub fn take_all(&mut self, words: &mut Words) -> Result<(), TcError> {
        while let Some(word) = words.next_word() {
            match word {
                "limit" => self.limit = words.u32()?,
                "flow_limit" => self.flow_limit = words.u32()?,
                "quantum" => self.quantum = words.u32()?.clamp(256, 1 << 20),
                "initial_quantum" => {
                    self.initial_quantum = words.u32()?;
                    if self.initial_quantum > 1 << 20 {
                        return Err(words.bad(word, &self.initial_quantum.to_string(), "at most 1048576"));
                    }
                }
                "buckets" => self.buckets = words.positive_u32()?,
                "maxrate" => self.maxrate = Some(words.rate()?),
                "pacing" => self.pacing = true,
                "nopacing" => self.pacing = false,
                "refill_delay" => self.refill_delay = words.time()?,
                "low_rate_threshold" => self.low_rate_threshold = words.rate()?,
                "orphan_mask" => self.orphan_mask = words.u32()?,
                "timer_slack" => self.timer_slack = words.time64()?,
                "ce_threshold" => self.ce_threshold = Some(words.time()?),
                "horizon" => self.horizon = words.time()?,
                "horizon_drop" => self.horizon_drop = true,
                "horizon_cap" => self.horizon_drop = false,
                "bands" => match words.u32()? {
                    3 => {}
                    n => return Err(words.bad(word, &n.to_string(), "3, the only number of bands")),
                },
                "priomap" => {
                    for i in 0..self.priomap.len() {
                        self.priomap[i] = match listed(words, word)? {
                            band @ 0..=2 => band as u8,
                            n => return Err(words.bad(word, &n.to_string(), "a band from 0 to 2")),
                        };
                    }
                }
                "weights" => {
                    for i in 0..BANDS {
                        self.weights[i] = match listed(words, word)? {
                            weight @ 16_384..=0x7fff_ffff => weight as i32,
                            n => return Err(words.bad(word, &n.to_string(), "at least 16384")),
                        };
                    }
                }
                "offload_horizon" => return Err(words.not_modelled(word)),
                _ => return Err(words.unknown(word, &Self::WORDS)),
            }
        }
        Ok(())
    }
}

/// One number of a list.
fn listed(words: &mut Words, key: &str) -> Result<u32, TcError> {
    let text = words.next_word().unwrap_or_default();
    text.parse().map_err(|_| words.bad(key, text, "a whole number"))
}
