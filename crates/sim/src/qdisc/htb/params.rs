//! The words of an `htb` class, and the integers that the kernel derives from them.

use crate::qdisc::ratecfg::{Framing, SendTime, atm, burst_size, nonzero, short};
use bakeoff_document::tc::{TcError, Words};

/// Priorities from 0, which goes first.
pub const PRIORITIES: usize = 8;
/// Level of an inner class below the root; leaves are at 0.
pub const MAX_LEVEL: usize = 7;

/// What a class's line says, and what follows from it.
#[derive(Clone, Debug)]
pub struct Params {
    pub rate: SendTime,
    pub ceil: SendTime,
    /// Depth of the buckets in nanoseconds.
    pub buffer: i64,
    pub cbuffer: i64,
    pub quantum: i64,
    pub prio: usize,
    pub frame: Framing,
    /// Whether rate and ceiling are the same, and so are their buckets.
    pub ceil_is_rate: bool,
}

impl Params {
    const WORDS: [&str; 10] =
        ["rate", "ceil", "burst", "cburst", "quantum", "prio", "mtu", "mpu", "overhead", "linklayer"];

    /// Reads the words behind the class's kind; `r2q` is the qdisc's.
    pub fn parse(words: &mut Words, r2q: u32) -> Result<Self, TcError> {
        let (mut rate, mut ceil) = (None, None);
        let (mut burst, mut cburst, mut mtu) = (0, 0, 1600);
        let (mut quantum, mut prio) = (0, 0);
        let mut frame = Framing::default();
        while let Some(word) = words.next_word() {
            match word {
                "rate" => rate = Some(nonzero(word, words)?),
                "ceil" => ceil = Some(nonzero(word, words)?),
                "burst" | "buffer" | "maxburst" => burst = burst_size(word, words)?,
                "cburst" | "cbuffer" | "cmaxburst" => cburst = burst_size(word, words)?,
                "quantum" => quantum = words.u32()?,
                "prio" => prio = words.u32()?,
                "mtu" => mtu = u64::from(words.positive_u32()?),
                "mpu" => frame.mpu = u32::from(short(words)?),
                "overhead" => frame.overhead = u32::from(short(words)?),
                "linklayer" => frame.atm = atm(words)?,
                "parent" | "classid" => return Err(words.not_modelled(word)),
                _ => return Err(words.unknown(word, &Self::WORDS)),
            }
        }
        let rate = rate.ok_or_else(|| words.refuse("'rate' is required"))?;
        let ceil = ceil.unwrap_or(rate);
        let default_burst = |rate: SendTime| rate.bytes_per_s / 1_000_000_000 + mtu;
        let or_default = |burst, rate| {
            if burst == 0 { default_burst(rate) } else { burst }
        };
        let buffer = rate.buffer(or_default(burst, rate));
        let cbuffer = ceil.buffer(or_default(cburst, ceil));
        Ok(Params {
            rate,
            ceil,
            buffer,
            cbuffer,
            quantum: match quantum {
                0 => (rate.bytes_per_s / u64::from(r2q)).clamp(1000, 200_000) as i64,
                given => i64::from(given),
            },
            prio: (prio as usize).min(PRIORITIES - 1),
            frame,
            ceil_is_rate: rate.bytes_per_s == ceil.bytes_per_s && buffer == cbuffer,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_derived_values_are_those_that_tc_sends() {
        let params = |line: &str| Params::parse(&mut Words::new(line), 10).unwrap();
        let ticks = |line: &str| (params(line).buffer / 64, params(line).cbuffer / 64);
        assert_eq!(ticks("rate 50mbit"), (4000, 4000));
        assert_eq!(ticks("rate 50mbit burst 10k cburst 15k/8"), (25600, 38400));
        assert_eq!(ticks("rate 33mbit ceil 1gbit mtu 9000"), (34091, 1125));
        assert_eq!(ticks("rate 3kbit"), (66_666_667, 66_666_667));
        // gigabytes per second: 1601 B take 1601 ns, 1602 B 801 ns
        assert_eq!(ticks("rate 1gbps ceil 2gbps"), (26, 13));
        assert_eq!(params("rate 50mbit").quantum, 200_000);
        assert_eq!(params("rate 1mbit").quantum, 12_500);
        assert_eq!(params("rate 9kbit").quantum, 1000);
        assert_eq!(params("rate 50mbit quantum 1514 prio 9").prio, 7);
    }

    #[test]
    fn framing_is_charged() {
        let frame = |line: &str| Params::parse(&mut Words::new(line), 10).unwrap().frame;
        assert_eq!(frame("rate 1mbit overhead 20").bytes(100), 120);
        assert_eq!(frame("rate 1mbit overhead 20 mpu 200").bytes(100), 200);
        // 3 cells of 48 bytes carry 120, each takes 53 on the wire
        assert_eq!(frame("rate 1mbit overhead 20 linklayer atm").bytes(100), 159);
    }
}
