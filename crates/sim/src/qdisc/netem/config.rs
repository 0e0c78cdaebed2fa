//! The words of a `netem` line.

use crate::tc::{TcError, Words, show};
use crate::units::Rate;

/// Everything that the line says; times in nanoseconds, 0 is off.
#[derive(Clone, Debug, Default)]
pub struct Config {
    pub limit: u32,
    pub latency: u64,
    pub jitter: u64,
    pub delay_correlation: u32,
    /// Probabilities and correlations: 100 % is `u32::MAX`.
    pub loss: u32,
    pub loss_correlation: u32,
    pub duplicate: u32,
    pub duplicate_correlation: u32,
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
#[derive(Clone, Copy, Debug)]
pub struct SlotConfig {
    pub min: u64,
    pub max: u64,
    /// 0 is no limit.
    pub packets: u32,
    pub bytes: u64,
}

impl Config {
    const WORDS: [&str; 10] =
        ["limit", "delay", "loss", "duplicate", "reorder", "gap", "rate", "slot", "ecn", "seed"];

    /// tc's defaults.
    pub fn new() -> Self {
        Config { limit: 1000, ..Config::default() }
    }

    /// Where a change begins: tc always sends limit, delay, loss, duplicate and gap, with their defaults if
    /// the line does not have them. Everything else stays; `slot` and `seed` begin anew only if the
    /// line has them, so they are none here.
    pub fn for_change(&self) -> Self {
        Config {
            limit: 1000,
            latency: 0,
            jitter: 0,
            loss: 0,
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
        let mut asks_ecn = false;
        while let Some(word) = words.next_word() {
            match word {
                "limit" => self.limit = words.size()? as u32,
                "delay" | "latency" => self.take_delay(words)?,
                "loss" | "drop" => {
                    match words.peek() {
                        Some("random") => _ = words.value()?,
                        Some(model @ ("state" | "gemodel")) => {
                            return Err(words.not_modelled(&format!("loss {model}")));
                        }
                        _ => {}
                    }
                    (self.loss, self.loss_correlation) = chance(words)?;
                }
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
                "distribution" | "corrupt" => return Err(words.not_modelled(word)),
                _ => return Err(words.unknown(word, &Self::WORDS)),
            }
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
        if asks_ecn && self.loss == 0 {
            return Err(words.refuse("'ecn' needs 'loss PERCENT'"));
        }
        self.ecn |= asks_ecn;
        Ok(())
    }

    fn take_delay(&mut self, words: &mut Words) -> Result<(), TcError> {
        self.latency = words.time64()?.as_ns();
        if words.next_is_number() {
            self.jitter = words.time64()?.as_ns();
        }
        if self.jitter > 0 && words.next_is_number() {
            self.delay_correlation = words.percent_u32()?;
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
        if words.peek() == Some("distribution") {
            return Err(words.not_modelled("slot distribution"));
        }
        let min = words.time64()?.as_ns();
        let mut slot = SlotConfig { min, max: min, packets: 0, bytes: 0 };
        if words.next_is_number() {
            slot.max = words.time64()?.as_ns();
            if slot.max < min {
                return Err(words.refuse("slot: the longest delay is below the shortest"));
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
        self.slot = (slot.max > 0).then_some(slot);
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
        for (name, chance, correlation) in [
            ("loss", self.loss, self.loss_correlation),
            ("duplicate", self.duplicate, self.duplicate_correlation),
            ("reorder", self.reorder, self.reorder_correlation),
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
        if let Some(slot) = self.slot {
            let (min, max) = (show::time64(slot.min), show::time64(slot.max));
            parts.push(format!("slot {min} {max}"));
            if slot.packets > 0 {
                parts.push(format!("packets {}", slot.packets));
            }
            if slot.bytes > 0 {
                parts.push(format!("bytes {}", slot.bytes));
            }
        }
        if self.ecn {
            parts.push("ecn".into());
        }
        if self.gap > 0 {
            parts.push(format!("gap {}", self.gap));
        }
        if let Some(seed) = self.seed {
            parts.push(format!("seed {seed}"));
        }
        parts.join(" ")
    }
}

/// `PERCENT [CORRELATION]`
fn chance(words: &mut Words) -> Result<(u32, u32), TcError> {
    let probability = words.percent_u32()?;
    let correlation = if words.next_is_number() { words.percent_u32()? } else { 0 };
    Ok((probability, correlation))
}
