//! The words of an `htb` class, and the integers that the kernel derives from them.

use crate::tc::{TcError, Words, parse_size, parse_u32, psched_ns, show};
use crate::units::Rate;

/// Priorities from 0, which goes first.
pub const PRIORITIES: usize = 8;

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
}

/// How many bytes a packet takes on the modelled wire.
#[derive(Clone, Copy, Debug, Default)]
pub struct Framing {
    overhead: u32,
    mpu: u32,
    atm: bool,
}

impl Framing {
    /// What a packet of `len` bytes is charged.
    pub fn bytes(self, len: u32) -> u64 {
        let len = u64::from((len + self.overhead).max(self.mpu));
        if self.atm { len.div_ceil(48) * 53 } else { len }
    }
}

/// The kernel's division-free transmission time: bytes * mult >> shift nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct SendTime {
    bytes_per_s: u64,
    mult: u64,
    shift: u32,
}

impl SendTime {
    /// The factors for `rate`, which is not zero.
    pub fn new(rate: Rate) -> Self {
        let bytes_per_s = rate.bytes_per_s();
        let mut factor = 1_000_000_000_u64;
        let mut shift = 0;
        loop {
            let mult = factor / bytes_per_s;
            if mult >= 1 << 31 || factor >= 1 << 63 {
                return SendTime { bytes_per_s, mult, shift };
            }
            factor <<= 1;
            shift += 1;
        }
    }

    /// Nanoseconds that `bytes` take.
    pub fn ns(self, bytes: u64) -> i64 {
        ((bytes * self.mult) >> self.shift).cast_signed()
    }

    /// The depth in nanoseconds of a bucket of `burst` bytes: tc cuts it to whole microseconds, then
    /// to ticks of 64 ns.
    fn buffer(self, burst: u64) -> i64 {
        let us = (1e6 * (burst as f64 / self.bytes_per_s as f64)) as u64;
        psched_ns(us).cast_signed()
    }

    /// The rate, as tc prints it.
    pub fn show(self) -> String {
        show::rate(Rate(self.bytes_per_s * 8))
    }

    /// The bytes of a bucket of `buffer` nanoseconds.
    pub fn show_burst(self, buffer: i64) -> String {
        let bytes = self.bytes_per_s as f64 * (buffer as f64 / 1e9);
        show::size(bytes as u64)
    }
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
        Ok(Params {
            rate,
            ceil,
            buffer: rate.buffer(or_default(burst, rate)),
            cbuffer: ceil.buffer(or_default(cburst, ceil)),
            quantum: match quantum {
                0 => (rate.bytes_per_s / u64::from(r2q)).clamp(1000, 200_000) as i64,
                given => i64::from(given),
            },
            prio: (prio as usize).min(PRIORITIES - 1),
            frame,
        })
    }
}

fn nonzero(word: &str, words: &mut Words) -> Result<SendTime, TcError> {
    match words.rate()? {
        Rate(0) => Err(words.bad(word, "0", "at least 8bit")),
        rate => Ok(SendTime::new(rate)),
    }
}

/// `BYTES` or `BYTES/CELL`; the cell is that of rate tables, which the kernel no longer uses.
fn burst_size(word: &str, words: &mut Words) -> Result<u64, TcError> {
    let text = words.value()?;
    let bytes = match text.split_once('/') {
        None => parse_size(text),
        Some((bytes, cell)) => {
            parse_u32(cell).filter(|cell| cell.is_power_of_two()).and_then(|_| parse_size(bytes))
        }
    };
    bytes.ok_or_else(|| words.bad(word, text, "a size such as 1600 or 15k, or SIZE/CELL"))
}

fn short(words: &mut Words) -> Result<u16, TcError> {
    let value = words.u32()?;
    u16::try_from(value).map_err(|_| words.refuse(&format!("{value} is above 65535 bytes")))
}

fn atm(words: &mut Words) -> Result<bool, TcError> {
    match words.value()? {
        "ethernet" => Ok(false),
        "atm" | "adsl" => Ok(true),
        other => Err(words.bad("linklayer", other, "ethernet, atm or adsl")),
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
        assert_eq!(ticks("rate 50mbit burst 10k cburst 15k/8"), (25593, 38390));
        assert_eq!(ticks("rate 33mbit ceil 1gbit mtu 9000"), (34078, 1125));
        assert_eq!(ticks("rate 3kbit"), (66_666_656, 66_666_656));
        // gigabytes per second: 1601 B take 1 us, 1602 B less than one
        assert_eq!(ticks("rate 1gbps ceil 2gbps"), (15, 0));
        assert_eq!(params("rate 50mbit").quantum, 200_000);
        assert_eq!(params("rate 1mbit").quantum, 12_500);
        assert_eq!(params("rate 9kbit").quantum, 1000);
        assert_eq!(params("rate 50mbit quantum 1514 prio 9").prio, 7);
    }

    #[test]
    fn transmission_times_are_the_kernel_s_integers() {
        // 1514 B at 33 Mbit/s = 4125000 B/s: 367030.303 ns
        assert_eq!(SendTime::new(Rate(33_000_000)).ns(1514), 367_030);
        assert_eq!(SendTime::new(Rate(8)).ns(2), 2_000_000_000);
        assert_eq!(SendTime::new(Rate(100_000_000_000)).ns(1514), 121);
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
