//! A TCP segment as a packetdrill script writes it: `[ect0] P.5 1:1001(1000) ack 1 win 257 <…>`.
//!
//! Source: the packetdrill language of Google's packetdrill (Cardwell et al., USENIX ATC 2013), with the
//! AccECN extensions that Linux 7.3's scripts use: flags `A`, `0` to `7` for the ACE field, and `ECN`.
//!
//! Sequence numbers are the script's: 32 bits, relative to an initial sequence number of 0 on each side.

use std::fmt;

use bakeoff_sim::packet::Ecn;

/// A segment, expected or injected by a script, or sent by the endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// ECN field of the IP header; none: the script does not say.
    pub ecn: Option<Ecn>,
    /// SYN, FIN, RST, PSH, ACK, URG.
    pub flags: Flags,
    /// AE, CWR, ECE as one number.
    pub ace: u8,
    /// First sequence number.
    pub seq: u32,
    /// Payload bytes.
    pub payload: u32,
    /// Acknowledgement number, if the ACK flag is set.
    pub ack: u32,
    /// Window field as on the wire; none: the script does not say.
    pub window: Option<u32>,
    /// Urgent pointer.
    pub urgent: Option<u32>,
    /// Options, without padding; none: the script writes `<...>` and does not care.
    pub options: Option<Vec<Opt>>,
}

/// The flags outside the ECN bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// Synchronise.
    pub syn: bool,
    /// Finish.
    pub fin: bool,
    /// Reset.
    pub rst: bool,
    /// Push.
    pub psh: bool,
    /// Acknowledgement.
    pub ack: bool,
    /// Urgent.
    pub urg: bool,
}

/// A TCP option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opt {
    /// Maximum segment size in bytes.
    Mss(u32),
    /// Window scale as a shift.
    WindowScale(u32),
    /// SACK permitted.
    SackOk,
    /// Ranges of sequence numbers.
    Sack(Vec<(u32, u32)>),
    /// Timestamp value and echo.
    Timestamp(u32, u32),
    /// AccECN byte counters, in the order written: (`e0b` | `e1b` | `ceb`, bytes).
    AccEcn(Vec<(Counter, u32)>),
    /// Anything else, by its words.
    Other(String),
}

/// An AccECN byte counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// ECT(0).
    E0,
    /// ECT(1).
    E1,
    /// CE.
    Ce,
}

impl Segment {
    /// Reads a segment from `text`, whose `//` comments are gone.
    ///
    /// # Errors
    /// What is wrong, without the line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut segment = Segment { options: Some(Vec::new()), ..Segment::default() };
        let mut rest = text.trim();
        if let Some(inner) = rest.strip_prefix('[') {
            let (marks, after) = inner.split_once(']').ok_or("'[' without ']'")?;
            for mark in marks.split(',').map(str::trim) {
                segment.ecn = Some(match mark {
                    "noecn" => Ecn::NotEct,
                    "ect0" => Ecn::Ect0,
                    "ect1" | "ect01" => Ecn::Ect1,
                    "ce" => Ecn::Ce,
                    other => return Err(format!("unknown IP mark '{other}'; known: noecn, ect0, ect1, ce")),
                });
            }
            rest = after.trim();
        }
        if let Some(at) = rest.find('<') {
            let inner = rest[at + 1..].strip_suffix('>').ok_or("options: '<' without '>' at the end")?;
            segment.options = parse_options(inner)?;
            rest = &rest[..at];
        }
        let mut words = rest.split_whitespace();
        segment.parse_flags(words.next().ok_or("a packet without flags")?)?;
        segment.parse_range(words.next().ok_or("a packet without a sequence range")?)?;
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| format!("'{word}' without a number"))?;
            let value = number(value)?;
            match word {
                "ack" => segment.ack = value,
                "win" => segment.window = Some(value),
                "urg" => segment.urgent = Some(value),
                other => return Err(format!("unknown word '{other}'; known: ack, win, urg")),
            }
        }
        Ok(segment)
    }

    fn parse_flags(&mut self, text: &str) -> Result<(), String> {
        for c in text.chars() {
            match c {
                'S' => self.flags.syn = true,
                'F' => self.flags.fin = true,
                'R' => self.flags.rst = true,
                'P' => self.flags.psh = true,
                '.' => self.flags.ack = true,
                'U' => self.flags.urg = true,
                'E' => self.ace |= 1,
                'W' => self.ace |= 2,
                'A' => self.ace |= 4,
                '0'..='7' => self.ace = c as u8 - b'0',
                '-' => {}
                _ => return Err(format!("unknown TCP flag '{c}' in '{text}'")),
            }
        }
        Ok(())
    }

    fn parse_range(&mut self, text: &str) -> Result<(), String> {
        let form = || format!("'{text}' is no sequence range such as 1:1001(1000)");
        let (start, rest) = text.split_once(':').ok_or_else(form)?;
        let (end, length) = rest.split_once('(').ok_or_else(form)?;
        let length = number(length.strip_suffix(')').ok_or_else(form)?)?;
        let (start, end) = (number(start)?, number(end)?);
        if start.wrapping_add(length) != end {
            return Err(format!("'{text}': {start} + {length} is not {end}"));
        }
        self.seq = start;
        self.payload = length;
        Ok(())
    }

    /// One past the last payload byte.
    pub fn end(&self) -> u32 {
        self.seq.wrapping_add(self.payload)
    }
}

fn number(text: &str) -> Result<u32, String> {
    text.trim().parse().map_err(|_| format!("'{text}' is not a number from 0 to 4294967295"))
}

fn within(text: &str, least: u32, most: u32) -> Result<u32, String> {
    Some(number(text)?)
        .filter(|n| (least..=most).contains(n))
        .ok_or_else(|| format!("'{text}' is not a number from {least} to {most}"))
}

fn parse_options(text: &str) -> Result<Option<Vec<Opt>>, String> {
    let mut options = Vec::new();
    for item in text.split(',').map(str::trim).filter(|i| !i.is_empty()) {
        let words: Vec<&str> = item.split_whitespace().collect();
        options.push(match words[..] {
            ["..."] => return Ok(None),
            ["nop" | "eol"] => continue,
            ["sackOK"] => Opt::SackOk,
            ["mss", n] => Opt::Mss(within(n, 0, 65_535)?),
            ["wscale", n] => Opt::WindowScale(within(n, 0, 255)?),
            ["TS", "val", val, "ecr", ecr] => Opt::Timestamp(number(val)?, number(ecr)?),
            ["sack", ref blocks @ ..] => Opt::Sack(
                blocks
                    .iter()
                    .map(|b| {
                        let (s, e) = b.split_once(':').ok_or_else(|| format!("'{b}' is no SACK block"))?;
                        Ok((number(s)?, number(e)?))
                    })
                    .collect::<Result<_, String>>()?,
            ),
            ["ECN", ref counters @ ..] => Opt::AccEcn(
                counters
                    .chunks(2)
                    .map(|pair| {
                        let [name, value] = pair else {
                            return Err(format!("'{item}': a counter without a number"));
                        };
                        let counter = match *name {
                            "e0b" => Counter::E0,
                            "e1b" => Counter::E1,
                            "ceb" => Counter::Ce,
                            other => {
                                return Err(format!(
                                    "unknown AccECN counter '{other}'; known: e0b, e1b, ceb"
                                ));
                            }
                        };
                        Ok((counter, number(value)?))
                    })
                    .collect::<Result<_, String>>()?,
            ),
            _ => Opt::Other(item.to_string()),
        });
    }
    Ok(Some(options))
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ecn {
            None => {}
            Some(Ecn::NotEct) => write!(f, "[noecn] ")?,
            Some(Ecn::Ect0) => write!(f, "[ect0] ")?,
            Some(Ecn::Ect1) => write!(f, "[ect1] ")?,
            Some(Ecn::Ce) => write!(f, "[ce] ")?,
        }
        let flags = self.flags;
        let letters = [
            (flags.syn, 'S'),
            (flags.fin, 'F'),
            (flags.rst, 'R'),
            (flags.psh, 'P'),
            (self.ace & 1 != 0, 'E'),
            (self.ace & 2 != 0, 'W'),
            (self.ace & 4 != 0, 'A'),
            (flags.ack, '.'),
            (flags.urg, 'U'),
        ];
        let text: String = letters.iter().filter(|(set, _)| *set).map(|(_, c)| c).collect();
        write!(
            f,
            "{} {}:{}({})",
            if text.is_empty() { "-" } else { &text },
            self.seq,
            self.end(),
            self.payload
        )?;
        if flags.ack {
            write!(f, " ack {}", self.ack)?;
        }
        if let Some(window) = self.window {
            write!(f, " win {window}")?;
        }
        if let Some(urgent) = self.urgent {
            write!(f, " urg {urgent}")?;
        }
        match &self.options {
            None => write!(f, " <...>"),
            Some(options) if options.is_empty() => Ok(()),
            Some(options) => {
                let words: Vec<String> = options.iter().map(Opt::to_string).collect();
                write!(f, " <{}>", words.join(","))
            }
        }
    }
}

impl fmt::Display for Opt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Opt::Mss(n) => write!(f, "mss {n}"),
            Opt::WindowScale(n) => write!(f, "wscale {n}"),
            Opt::SackOk => write!(f, "sackOK"),
            Opt::Timestamp(val, ecr) => write!(f, "TS val {val} ecr {ecr}"),
            Opt::Sack(blocks) => {
                write!(f, "sack")?;
                blocks.iter().try_for_each(|(s, e)| write!(f, " {s}:{e}"))
            }
            Opt::AccEcn(counters) => {
                write!(f, "ECN")?;
                counters.iter().try_for_each(|(counter, bytes)| {
                    let name = match counter {
                        Counter::E0 => "e0b",
                        Counter::E1 => "e1b",
                        Counter::Ce => "ceb",
                    };
                    write!(f, " {name} {bytes}")
                })
            }
            Opt::Other(words) => write!(f, "{words}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_shown_as_it_was_written() {
        for text in [
            "P. 1:1001(1000) ack 1 win 257",
            "S 0:0(0) win 32792 <mss 1000,sackOK,wscale 7>",
            "S. 0:0(0) ack 1 <...>",
            "[ect0] EA. 1:1(0) ack 1 <ECN e1b 1 ceb 0 e0b 1,sack 1001:2001 3001:4001>",
            "F. 1:1(0) ack 1 <TS val 1200 ecr 200>",
        ] {
            assert_eq!(Segment::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_digit_is_the_ace_field() {
        assert_eq!(Segment::parse(".5 1:1(0) ack 1").unwrap(), Segment::parse("EA. 1:1(0) ack 1").unwrap());
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        assert_eq!(Segment::parse("P. 1:1001(999)").unwrap_err(), "'1:1001(999)': 1 + 999 is not 1001");
        assert_eq!(Segment::parse("Q 1:1(0)").unwrap_err(), "unknown TCP flag 'Q' in 'Q'");
    }
}
