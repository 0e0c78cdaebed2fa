//! The words of a `netem` line.

use std::sync::Arc;

use crate::base::units::Rate;
use bakeoff_document::tc::{TcError, Words, show};

use super::distribution::Distribution;
use super::loss::LossModel;

/// Everything that the line says; times in nanoseconds, 0 is off.
#[derive(Clone, Debug)]
pub struct Config {
    pub limit: u32,
    pub latency: u64,
    pub jitter: u64,
    pub delay_correlation: u32,
    /// Of the jitter; none is uniform.
    pub distribution: Option<Arc<Distribution>>,
    /// Probabilities and correlations: 100 % is `u32::MAX`.
    pub loss: LossModel,
    pub duplicate: u32,
    pub duplicate_correlation: u32,
    pub corrupt: u32,
    pub corrupt_correlation: u32,
    pub reorder: u32,
    pub reorder_correlation: u32,
    pub gap: u32,
    pub ecn: bool,
    pub rate: Option<LinkRate>,
    pub slot: Option<SlotConfig>,
    pub seed: Option<u64>,
}

/// `rate` with its overheads.
#[derive(Clone, Copy, Debug)]
pub struct LinkRate {
    pub bytes_per_s: u64,
    pub packet_overhead: i32,
    pub cell_size: u32,
    pub cell_overhead: i32,
}

impl LinkRate {
    /// How long a packet of `len` bytes takes, in nanoseconds.
    pub fn ns(self, len: u32) -> u64 {
        let mut bytes = (i64::from(len) + i64::from(self.packet_overhead)).max(0);
        if self.cell_size > 0 {
            let size = i64::from(self.cell_size);
            let cells = (bytes + size - 1) / size;
            bytes = (cells * (size + i64::from(self.cell_overhead))).max(0);
        }
        bytes.cast_unsigned() * 1_000_000_000 / self.bytes_per_s
    }
}

/// `slot`: the pause before a slot, and what a slot lets through.
#[derive(Clone, Debug)]
pub struct SlotConfig {
    pub min: u64,
    pub max: u64,
    /// A distribution with mean and deviation, in the place of `min` and `max`.
    pub distribution: Option<(Arc<Distribution>, i64, i64)>,
    /// 0 is no limit.
    pub packets: u32,
    pub bytes: u64,
}

impl Config {
    /// Whether packets are to wait.
    pub fn delays(&self) -> bool {
        self.latency > 0 || self.jitter > 0 || self.rate.is_some()
    }

    /// Whether a delay that is the same for all is all that happens to packets.
    pub fn only_delays(&self) -> bool {
        let happens = [self.duplicate, self.corrupt, self.gap].iter().any(|chance| *chance > 0);
        self.jitter == 0 && !self.loss.is_on() && !happens && self.rate.is_none() && self.slot.is_none()
    }

    const WORDS: [&str; 12] = [
        "limit",
        "delay",
        "distribution",
        "loss",
        "duplicate",
        "corrupt",
        "reorder",
        "gap",
        "rate",
        "slot",
        "ecn",
        "seed",
    ];

    /// tc's defaults.
    pub fn new() -> Self {
        Config {
            limit: 1000,
            latency: 0,
            jitter: 0,
            delay_correlation: 0,
            distribution: None,
            loss: LossModel::NONE,
            duplicate: 0,
            duplicate_correlation: 0,
            corrupt: 0,
            corrupt_correlation: 0,
            reorder: 0,
            reorder_correlation: 0,
            gap: 0,
            ecn: false,
            rate: None,
            slot: None,
            seed: None,
        }
    }

    /// Where a change begins: tc always sends limit, delay, loss, duplicate and gap, with their defaults if
    /// the line does not have them. Everything else stays; `slot` and `seed` begin anew only if the
    /// line has them, so they are none here.
    pub fn for_change(&self) -> Self {
        Config {
            limit: 1000,
            latency: 0,
            jitter: 0,
            loss: LossModel::NONE,
            duplicate: 0,
            reorder: 0,
            gap: 0,
            slot: None,
            seed: None,
            ..self.clone()
        }
    }

    /// Takes the rest of the line; what it does not say stays as it is.
    pub fn take_all(&mut self, words: &mut Words) -> Result<(), TcError> {
        let (mut asks_ecn, mut names_distribution) = (false, false);
        while let Some(word) = words.next_word() {
            match word {
                "limit" => self.limit = words.size()? as u32,
                "delay" | "latency" => self.take_delay(words)?,
                "loss" | "drop" => {
                    if self.loss.is_on() {
                        return Err(words.refuse(&format!("'{word}' after another loss")));
                    }
                    self.loss = LossModel::take(words)?;
                }
                "distribution" => {
                    self.distribution = Some(distribution(words)?);
                    names_distribution = true;
                }
                "corrupt" => (self.corrupt, self.corrupt_correlation) = chance(words)?,
                "duplicate" => (self.duplicate, self.duplicate_correlation) = chance(words)?,
                "reorder" => (self.reorder, self.reorder_correlation) = chance(words)?,
                "gap" => self.gap = words.u32()?,
                "rate" => self.take_rate(words)?,
                "slot" => self.take_slot(words)?,
                "ecn" => asks_ecn = true,
                "seed" => {
                    let text = words.value()?;
                    let seed = text.parse();
                    self.seed = Some(seed.map_err(|_| words.bad(word, text, "a whole number"))?);
                }
                _ => return Err(words.unknown(word, &Self::WORDS)),
            }
        }
        if names_distribution && (self.latency == 0 || self.jitter == 0) {
            return Err(words.refuse("'distribution' needs 'delay TIME JITTER', both above zero"));
        }
        if self.reorder > 0 && self.latency == 0 {
            return Err(words.refuse("'reorder' needs a delay"));
        }
        if self.gap > 0 && self.reorder == 0 {
            return Err(words.refuse("'gap' needs 'reorder PERCENT'"));
        }
        if self.reorder > 0 {
            self.gap = self.gap.max(1);
        }
        if asks_ecn && !self.loss.is_on() {
            return Err(words.refuse("'ecn' needs 'loss'"));
        }
        self.ecn |= asks_ecn;
        Ok(())
    }

    fn take_delay(&mut self, words: &mut Words) -> Result<(), TcError> {
        self.latency = words.time64()?.as_ns();
        if words.next_is_number() {
            self.jitter = words.time64()?.as_ns();
            if words.next_is_number() {
                self.delay_correlation = words.percent_u32()?;
            }
        }
        Ok(())
    }

    fn take_rate(&mut self, words: &mut Words) -> Result<(), TcError> {
        let bytes_per_s = words.rate()?.bytes_per_s();
        let mut rate = LinkRate { bytes_per_s, packet_overhead: 0, cell_size: 0, cell_overhead: 0 };
        if words.next_is_signed_number() {
            rate.packet_overhead = words.i32()?;
            if words.next_is_number() {
                rate.cell_size = words.u32()?;
                if words.next_is_signed_number() {
                    rate.cell_overhead = words.i32()?;
                }
            }
        }
        self.rate = (bytes_per_s > 0).then_some(rate);
        Ok(())
    }

    fn take_slot(&mut self, words: &mut Words) -> Result<(), TcError> {
        let mut slot = SlotConfig { min: 0, max: 0, distribution: None, packets: 0, bytes: 0 };
        if words.peek() == Some("distribution") {
            _ = words.value()?;
            let table = distribution(words)?;
            let mean = words.time64()?.as_ns().cast_signed();
            let deviation = words.time64_of_next()?.as_ns().cast_signed().min(i64::from(i32::MAX));
            if deviation == 0 {
                return Err(words.refuse("slot distribution: the jitter is zero"));
            }
            slot.distribution = Some((table, mean, deviation));
        } else {
            slot.min = words.time64()?.as_ns();
            slot.max = slot.min;
            if words.next_is_number() {
                slot.max = words.time64()?.as_ns();
                if slot.max < slot.min {
                    return Err(words.refuse("slot: the longest delay is below the shortest"));
                }
            }
        }
        if words.peek() == Some("packets") {
            words.next_word();
            slot.packets = words.u32()?;
        }
        if words.peek() == Some("bytes") {
            words.next_word();
            slot.bytes = words.size()?;
        }
        self.slot = (slot.max > 0 || slot.distribution.is_some()).then_some(slot);
        Ok(())
    }

    /// The line, as tc prints it.
    pub fn show(&self) -> String {
        let mut parts = vec![format!("netem limit {}", self.limit)];
        if self.latency > 0 {
            parts.push(format!("delay {}", show::time64(self.latency)));
            if self.jitter > 0 {
                // tc puts two spaces here
                parts.push(format!(" {}", show::time64(self.jitter)));
                if self.delay_correlation > 0 {
                    parts.push(show::percent(self.delay_correlation));
                }
            }
        }
        parts.extend(self.loss.show());
        for (name, chance, correlation) in [
            ("duplicate", self.duplicate, self.duplicate_correlation),
            ("reorder", self.reorder, self.reorder_correlation),
            ("corrupt", self.corrupt, self.corrupt_correlation),
        ] {
            if chance > 0 {
                parts.push(format!("{name} {}", show::percent(chance)));
                if correlation > 0 {
                    parts.push(show::percent(correlation));
                }
            }
        }
        if let Some(rate) = self.rate {
            parts.push(format!("rate {}", show::rate(Rate(rate.bytes_per_s * 8))));
            if rate.packet_overhead != 0 {
                parts.push(format!("packetoverhead {}", rate.packet_overhead));
            }
            if rate.cell_size != 0 {
                parts.push(format!("cellsize {}", rate.cell_size));
            }
            if rate.cell_overhead != 0 {
                parts.push(format!("celloverhead {}", rate.cell_overhead));
            }
        }
        if let Some(slot) = &self.slot {
            parts.push(match &slot.distribution {
                Some((_, mean, deviation)) => format!(
                    "slot distribution {} {}",
                    show::time64(mean.cast_unsigned()),
                    show::time64(deviation.cast_unsigned())
                ),
                None => format!("slot {} {}", show::time64(slot.min), show::time64(slot.max)),
            });
            if slot.packets > 0 {
                parts.push(format!("packets {}", slot.packets));
            }
            if slot.bytes > 0 {
                parts.push(format!("bytes {}", slot.bytes));
            }
        }
        if let Some(seed) = self.seed {
            parts.push(format!("seed {seed}"));
        }
        if self.ecn {
            parts.push("ecn".into());
        }
        if self.gap > 0 {
            parts.push(format!("gap {}", self.gap));
        }
        parts.join(" ")
    }
}

/// The table that the next word names.
fn distribution(words: &mut Words) -> Result<Arc<Distribution>, TcError> {
    let name = words.value()?;
    match name {
        "uniform" => {
            Err(words.refuse("distribution: tc has no table 'uniform'; leave it out: jitter is uniform"))
        }
        "experimental" => Err(words.not_modelled("distribution experimental")),
        _ => Distribution::named(name)
            .map(Arc::new)
            .ok_or_else(|| words.bad("distribution", name, &Distribution::NAMES.join(", "))),
    }
}

/// `PERCENT [CORRELATION]`
pub fn chance(words: &mut Words) -> Result<(u32, u32), TcError> {
    let probability = words.percent_u32()?;
    let correlation = if words.next_is_number() { words.percent_u32()? } else { 0 };
    Ok((probability, correlation))
}
