//! The kernel's `psched_ratecfg`: how long a packet takes at a rate, and how long it is on the wire; and the words
//! that `htb` and `tbf` share for it.
//!
//! Source: Linux 7.3 `net/sched/sch_generic.c`, `include/net/sch_generic.h`; iproute2 `tc/tc_core.c`.

use crate::base::units::Rate;
use bakeoff_document::tc::{TcError, Words, parse_size, parse_u32, show};

/// How many bytes a packet takes on the modelled wire.
#[derive(Clone, Copy, Debug, Default)]
pub struct Framing {
    pub overhead: u32,
    pub mpu: u32,
    pub atm: bool,
}

impl Framing {
    /// `ethernet` or `atm`.
    pub fn linklayer(self) -> &'static str {
        if self.atm { "atm" } else { "ethernet" }
    }

    /// What a packet of `len` bytes is charged.
    pub fn bytes(self, len: u32) -> u64 {
        let len = (u64::from(len) + u64::from(self.overhead)).max(self.mpu.into());
        if self.atm { len.div_ceil(48) * 53 } else { len }
    }
}

/// The kernel's division-free transmission time: bytes * mult >> shift nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct SendTime {
    pub bytes_per_s: u64,
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
        (bytes.saturating_mul(self.mult) >> self.shift).cast_signed()
    }

    /// The depth in nanoseconds of a bucket of `burst` bytes: tc 7.2 rounds it up to ticks of 64 ns (tc 6.1 cut it
    /// down to whole microseconds).
    pub fn buffer(self, burst: u64) -> i64 {
        let ns = u128::from(burst) * 1_000_000_000;
        let ticks = ns.div_ceil(u128::from(self.bytes_per_s) * 64);
        (ticks as i64).saturating_mul(64)
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

/// A rate that is not zero.
pub fn nonzero(word: &str, words: &mut Words) -> Result<SendTime, TcError> {
    match words.rate()? {
        Rate(0) => Err(words.bad(word, "0", "at least 8bit")),
        rate => Ok(SendTime::new(rate)),
    }
}

/// `BYTES` or `BYTES/CELL`; the cell is that of rate tables, which the kernel no longer uses.
pub fn burst_size(word: &str, words: &mut Words) -> Result<u64, TcError> {
    let text = words.value()?;
    let bytes = match text.split_once('/') {
        None => parse_size(text),
        Some((bytes, cell)) => {
            parse_u32(cell).filter(|cell| cell.is_power_of_two()).and_then(|_| parse_size(bytes))
        }
    };
    bytes.ok_or_else(|| words.bad(word, text, "a size such as 1600 or 15k, or SIZE/CELL"))
}

/// A size that tc keeps in 16 bits.
pub fn short(words: &mut Words) -> Result<u16, TcError> {
    let value = words.u32()?;
    u16::try_from(value).map_err(|_| words.refuse(&format!("{value} is above 65535 bytes")))
}

/// The value of `linklayer`: whether it is ATM.
pub fn atm(words: &mut Words) -> Result<bool, TcError> {
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
    fn transmission_times_are_the_kernel_s_integers() {
        // 1514 B at 33 Mbit/s = 4125000 B/s: 367030.303 ns
        assert_eq!(SendTime::new(Rate(33_000_000)).ns(1514), 367_030);
        assert_eq!(SendTime::new(Rate(8)).ns(2), 2_000_000_000);
        assert_eq!(SendTime::new(Rate(100_000_000_000)).ns(1514), 121);
    }
}
