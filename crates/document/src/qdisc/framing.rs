//! What a link adds to a packet: the overhead words of the shapers `cake` and the SCE qdiscs.
//!
//! Source: Linux 7.3 `net/sched/sch_cake.c`; `man tc-cake`, OVERHEAD COMPENSATION PARAMETERS; each keyword's
//! effect checked against tc 7.0 on that kernel.
//!
//! Parameters: `overhead` in bytes (-64 to 256), `mpu` in bytes (0 to 256), `noatm` / `atm` / `ptm`, `raw`, and
//! the keywords that set several of them ([`KEYWORDS`]). Without any of them a packet counts with the 14
//! bytes of Ethernet header that Linux counts; an overhead, even of 0, replaces these.
//!
//! Departures: none known.
//!
//! Validation: the arithmetic of cells and code words, tc's wording (tests below).

use crate::tc::{TcError, Words};

/// The header that Linux counts and an overhead replaces.
const ETHERNET: u32 = 14;

/// How the link carries bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cells {
    /// As they are.
    #[default]
    None,
    /// Cells of 53 bytes carry 48.
    Atm,
    /// 65 bytes carry 64.
    Ptm,
}

/// A link's framing in effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Framing {
    /// Bytes.
    pub overhead: i32,
    /// The least that a packet costs, in bytes.
    pub mpu: u32,
    /// How the link carries it.
    pub cells: Cells,
    /// Whether `overhead` replaces the Ethernet header.
    pub replaces_header: bool,
}

/// Overhead in bytes, minimal packet unit in bytes, cells; each adds its overhead to what the words before
/// it have set.
const KEYWORDS: [(&str, i32, Option<u32>, Option<Cells>); 13] = [
    ("ipoa-vcmux", 8, None, Some(Cells::Atm)),
    ("ipoa-llcsnap", 16, None, Some(Cells::Atm)),
    ("bridged-vcmux", 24, None, Some(Cells::Atm)),
    ("bridged-llcsnap", 32, None, Some(Cells::Atm)),
    ("pppoa-vcmux", 10, None, Some(Cells::Atm)),
    ("pppoa-llc", 14, None, Some(Cells::Atm)),
    ("pppoe-vcmux", 32, None, Some(Cells::Atm)),
    ("pppoe-llcsnap", 40, None, Some(Cells::Atm)),
    ("bridged-ptm", 22, None, Some(Cells::Ptm)),
    ("pppoe-ptm", 30, None, Some(Cells::Ptm)),
    ("docsis", 18, Some(64), Some(Cells::None)),
    ("ethernet", 38, Some(84), Some(Cells::None)),
    ("ether-vlan", 4, None, None),
];

/// What the words of one line say about framing, before it takes effect.
#[derive(Clone, Copy, Debug, Default)]
pub struct FramingWords {
    /// Bytes.
    pub overhead: Option<i32>,
    /// Bytes.
    pub mpu: Option<u32>,
    /// How the link carries packets.
    pub cells: Option<Cells>,
    /// The overhead is on top of the Ethernet header.
    pub raw: bool,
}

impl FramingWords {
    /// The words that [`FramingWords::take`] knows, for suggestions.
    pub const WORDS: [&str; 21] = [
        "overhead",
        "mpu",
        "atm",
        "noatm",
        "ptm",
        "raw",
        "conservative",
        "ipoa-vcmux",
        "ipoa-llcsnap",
        "bridged-vcmux",
        "bridged-llcsnap",
        "pppoa-vcmux",
        "pppoa-llc",
        "pppoe-vcmux",
        "pppoe-llcsnap",
        "bridged-ptm",
        "pppoe-ptm",
        "via-ethernet",
        "docsis",
        "ethernet",
        "ether-vlan",
    ];

    /// Takes `word` and its value if it is one of these; false if not.
    pub fn take(&mut self, word: &str, words: &mut Words) -> Result<bool, TcError> {
        match word {
            "overhead" => {
                let bytes = words.i32()?;
                if !(-64..=256).contains(&bytes) {
                    return Err(words.bad(word, &bytes.to_string(), "from -64 to 256"));
                }
                self.overhead = Some(bytes);
            }
            "mpu" => {
                let bytes = words.u32()?;
                if bytes > 256 {
                    return Err(words.bad(word, &bytes.to_string(), "from 0 to 256"));
                }
                self.mpu = Some(bytes);
            }
            "atm" => self.cells = Some(Cells::Atm),
            "ptm" => self.cells = Some(Cells::Ptm),
            "noatm" => self.cells = Some(Cells::None),
            "raw" => {
                self.raw = true;
                self.overhead = Some(0);
                self.cells = Some(Cells::None);
            }
            "conservative" => {
                self.overhead = Some(48);
                self.cells = Some(Cells::Atm);
            }
            // tc takes it and does nothing.
            "via-ethernet" => {}
            _ => {
                let Some((_, overhead, mpu, cells)) = KEYWORDS.iter().find(|k| k.0 == word) else {
                    return Ok(false);
                };
                self.overhead = Some(self.overhead.unwrap_or(0) + overhead);
                self.mpu = mpu.or(self.mpu);
                self.cells = cells.or(self.cells);
            }
        }
        Ok(true)
    }

    /// The framing that was `before`, changed by these words. tc hands on no `mpu 0`: what was stays.
    pub fn change(self, before: Framing) -> Framing {
        Framing {
            overhead: self.overhead.unwrap_or(before.overhead),
            mpu: self.mpu.filter(|mpu| *mpu > 0).unwrap_or(before.mpu),
            cells: self.cells.unwrap_or(before.cells),
            replaces_header: !self.raw && (self.overhead.is_some() || before.replaces_header),
        }
    }
}

impl Framing {
    /// Of the `len` bytes of a frame, Ethernet header included, those on which the overhead is put.
    pub const fn network_len(self, len: u32) -> u32 {
        if self.replaces_header { len.saturating_sub(ETHERNET) } else { len }
    }

    /// The bytes that a frame of `len` bytes, Ethernet header included, costs on the link.
    pub fn adjusted_len(self, len: u32) -> u32 {
        let len = i64::from(self.network_len(len)) + i64::from(self.overhead);
        let len = len.max(i64::from(self.mpu)) as u32;
        match self.cells {
            Cells::None => len,
            Cells::Atm => len.div_ceil(48) * 53,
            Cells::Ptm => len + len.div_ceil(64),
        }
    }

    /// As tc words it: `raw overhead 0`, `noatm overhead 38 mpu 84`.
    pub fn show(self) -> String {
        let raw = if self.replaces_header { "" } else { "raw " };
        let cells = match self.cells {
            Cells::None if self.replaces_header => "noatm ",
            Cells::None => "",
            Cells::Atm => "atm ",
            Cells::Ptm => "ptm ",
        };
        let mpu = if self.mpu > 0 { format!(" mpu {}", self.mpu) } else { String::new() };
        format!("{raw}{cells}overhead {}{mpu}", self.overhead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(before: Framing, line: &str) -> Result<Framing, TcError> {
        let mut words = Words::new(line);
        let mut taken = FramingWords::default();
        while let Some(word) = words.next_word() {
            if !taken.take(word, &mut words)? {
                return Err(words.unknown(word, &FramingWords::WORDS));
            }
        }
        Ok(taken.change(before))
    }

    fn framing(line: &str) -> Framing {
        change(Framing::default(), line).unwrap()
    }

    fn adjusted(line: &str, len: u32) -> u32 {
        framing(line).adjusted_len(len)
    }

    #[test]
    fn an_overhead_replaces_the_ethernet_header_unless_raw() {
        assert_eq!(adjusted("", 1514), 1514);
        assert_eq!(adjusted("overhead 0", 1514), 1500);
        assert_eq!(adjusted("overhead 38", 1514), 1538);
        assert_eq!(adjusted("raw overhead 10", 1514), 1524);
        assert_eq!(adjusted("overhead -20", 54), 20);
        // shorter than the mpu, and never below 0
        assert_eq!(adjusted("ethernet", 54), 84);
        assert_eq!(adjusted("overhead -64", 54), 0);
    }

    #[test]
    fn atm_cells_carry_48_of_53_bytes_and_ptm_64_of_65() {
        // 1500 + 40 = 1540 bytes are 32.08 cells: 33 * 53
        assert_eq!(adjusted("pppoe-llcsnap", 1514), 33 * 53);
        // 40 + 8 = 48: one cell; one byte more: two
        assert_eq!(adjusted("ipoa-vcmux", 54), 53);
        assert_eq!(adjusted("ipoa-vcmux", 55), 106);
        // 1500 + 30 = 1530 = 23.9 * 64: 24 bytes more
        assert_eq!(adjusted("pppoe-ptm", 1514), 1554);
        assert_eq!(adjusted("ptm overhead 0", 14 + 64), 65);
        assert_eq!(adjusted("ptm overhead 0", 14 + 65), 67);
    }

    #[test]
    fn words_work_together_as_in_tc() {
        // each line: what tc 7.0 shows after it on Linux 7.3
        for (line, shown) in [
            ("", "raw overhead 0"),
            ("conservative", "atm overhead 48"),
            ("docsis", "noatm overhead 18 mpu 64"),
            ("ethernet ether-vlan", "noatm overhead 42 mpu 84"),
            ("overhead 5 docsis", "noatm overhead 23 mpu 64"),
            ("docsis overhead 5", "noatm overhead 5 mpu 64"),
            ("overhead 5 conservative", "atm overhead 48"),
            ("overhead 5 bridged-ptm", "ptm overhead 27"),
            ("raw overhead 10", "raw overhead 10"),
            ("overhead 10 raw", "raw overhead 0"),
            ("raw docsis", "raw overhead 18 mpu 64"),
            ("docsis raw", "raw overhead 0 mpu 64"),
            ("mpu 100", "raw overhead 0 mpu 100"),
            ("ethernet mpu 0", "noatm overhead 38"),
            ("atm", "raw atm overhead 0"),
            ("noatm", "raw overhead 0"),
            ("ipoa-vcmux noatm", "noatm overhead 8"),
            ("overhead 5 ether-vlan ether-vlan", "noatm overhead 13"),
            ("pppoe-llcsnap via-ethernet", "atm overhead 40"),
            ("via-ethernet", "raw overhead 0"),
        ] {
            assert_eq!(framing(line).show(), shown, "{line}");
        }
    }

    #[test]
    fn a_change_leaves_what_it_does_not_name() {
        // as tc showed after each of these changes in turn
        let mut now = Framing::default();
        for (line, shown) in [
            ("atm", "raw atm overhead 0"),
            ("mpu 30", "raw atm overhead 0 mpu 30"),
            ("raw mpu 0", "raw overhead 0 mpu 30"),
            ("noatm", "raw overhead 0 mpu 30"),
            ("docsis", "noatm overhead 18 mpu 64"),
            ("overhead 3", "noatm overhead 3 mpu 64"),
            ("conservative", "atm overhead 48 mpu 64"),
            ("raw", "raw overhead 0 mpu 64"),
        ] {
            now = change(now, line).unwrap();
            assert_eq!(now.show(), shown, "{line}");
        }
    }

    #[test]
    fn refuses_what_tc_refuses() {
        for (line, message) in [
            ("overhead 300", "overhead: '300' is not from -64 to 256"),
            ("overhead -65", "overhead: '-65' is not from -64 to 256"),
            ("overhead 0x10", "overhead: '0x10' is not a whole number"),
            ("mpu 257", "mpu: '257' is not from 0 to 256"),
        ] {
            let error = change(Framing::default(), line).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
