//! The grammar of `tc`: words, numbers, units. A qdisc is written exactly as on tc's command line.
//!
//! Source: iproute2 `tc/tc_util.c`, `lib/utils.c` (units and their meaning), checked against the
//! netlink messages of tc 6.1.
//!
//! Departures: words are written out (tc takes `lim` for `limit` in some qdiscs); no signs,
//! exponents or `inf` in numbers with a unit; no rates in percent of the device's speed.

pub mod show;

use crate::run::{Class, Qdisc};
use crate::units::{Rate, Time};

/// A word or a value that tc would refuse, or that is not modelled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} in '{line}'{hint}")]
pub struct TcError {
    /// What is wrong, with the word.
    pub message: String,
    /// The whole line.
    pub line: String,
    /// `; did you mean 'flows'?` or `; expected …`, or nothing.
    pub hint: String,
}

impl TcError {
    /// The same error, with the place in front: `class 1: …`.
    pub fn within(self, place: &str) -> TcError {
        TcError { message: format!("{place}: {}", self.message), ..self }
    }
}

/// The words of one qdisc line, taken from left to right.
pub struct Words<'a> {
    line: &'a str,
    rest: std::str::SplitWhitespace<'a>,
    last: &'a str,
    classes: &'a [Class],
    child: Option<&'a Qdisc>,
}

impl<'a> Words<'a> {
    /// Splits `line` at white space.
    pub fn new(line: &'a str) -> Self {
        Words { line, rest: line.split_whitespace(), last: "", classes: &[], child: None }
    }

    /// The words of `spec`, and what stands below it.
    pub fn of(spec: &'a Qdisc) -> Self {
        Words { classes: &spec.classes, child: spec.child.as_deref(), ..Words::new(&spec.qdisc) }
    }

    /// Takes the classes below, as a classful qdisc does when it is made.
    pub fn classes(&mut self) -> &'a [Class] {
        std::mem::take(&mut self.classes)
    }

    /// Takes the one qdisc below, if there is any.
    pub fn child(&mut self) -> Option<&'a Qdisc> {
        self.child.take()
    }

    /// Refuses what stands below the qdisc `name` if it did not take it.
    pub fn nothing_below(&self, name: &str) -> Result<(), TcError> {
        if !self.classes.is_empty() {
            return Err(self.refuse(&format!("'{name}' has no classes")));
        }
        if self.child.is_some() {
            return Err(self.refuse(&format!("'{name}' has no child")));
        }
        Ok(())
    }

    /// The first word: the kind of qdisc.
    pub fn kind(&mut self) -> Result<&'a str, TcError> {
        self.next_word()
            .ok_or_else(|| self.error("no qdisc name", "; expected for example 'pfifo limit 1000'"))
    }

    /// The next word, if any.
    pub fn next_word(&mut self) -> Option<&'a str> {
        let word = self.rest.next()?;
        self.last = word;
        Some(word)
    }

    /// The value that must follow the word just taken.
    pub fn value(&mut self) -> Result<&'a str, TcError> {
        let key = self.last;
        self.rest.next().ok_or_else(|| self.error(&format!("'{key}' needs a value"), ""))
    }

    /// The next word without taking it.
    pub fn peek(&self) -> Option<&'a str> {
        self.rest.clone().next()
    }

    /// Whether the next word begins with a digit: an optional value, not the next keyword.
    pub fn next_is_number(&self) -> bool {
        self.peek().is_some_and(|w| w.starts_with(|c: char| c.is_ascii_digit()))
    }

    /// Like [`Words::next_is_number`], with a minus allowed.
    pub fn next_is_signed_number(&self) -> bool {
        self.peek().is_some_and(|w| {
            let digits = w.strip_prefix('-').unwrap_or(w);
            digits.starts_with(|c: char| c.is_ascii_digit())
        })
    }

    /// An unsigned integer: decimal, `0x` hexadecimal, or octal with a leading `0`, as in tc.
    pub fn u32(&mut self) -> Result<u32, TcError> {
        let (key, text) = self.pair()?;
        parse_u32(text).ok_or_else(|| self.no_number(key, text))
    }

    /// An unsigned integer that tc reads in decimal alone.
    pub fn decimal(&mut self) -> Result<u32, TcError> {
        let (key, text) = self.pair()?;
        let digits = text.bytes().all(|c| c.is_ascii_digit());
        digits.then(|| text.parse().ok()).flatten().ok_or_else(|| self.no_number(key, text))
    }

    /// The error for a value that is no whole number; tc shows units that it does not take.
    fn no_number(&self, key: &str, text: &str) -> TcError {
        let bare = text.trim_end_matches(['p', 'b']);
        let shown = bare.len() + 1 == text.len() && parse_u32(bare).is_some();
        let unit = &text[bare.len()..];
        let expected = format!("a whole number without '{unit}'");
        self.bad(key, text, if shown { &expected } else { "a whole number" })
    }

    /// Like [`Words::u32`], but not 0, which tc does not hand on: the default would stay.
    pub fn positive_u32(&mut self) -> Result<u32, TcError> {
        let key = self.last;
        match self.u32()? {
            0 => Err(self.bad(key, "0", "above zero")),
            value => Ok(value),
        }
    }

    /// Like [`Words::time`], but at least a microsecond, for the same reason.
    pub fn positive_time(&mut self) -> Result<Time, TcError> {
        let key = self.last;
        match self.time()? {
            Time::ZERO => Err(self.bad(key, "0", "above zero")),
            value => Ok(value),
        }
    }

    /// A signed integer in decimal.
    pub fn i32(&mut self) -> Result<i32, TcError> {
        let (key, text) = self.pair()?;
        text.parse().map_err(|_| self.bad(key, text, "a whole number"))
    }

    /// A class's minor number: hexadecimal with or without `0x`.
    pub fn minor(&mut self) -> Result<u32, TcError> {
        let (key, text) = self.pair()?;
        parse_minor(text).ok_or_else(|| self.bad(key, text, "a hexadecimal number up to ffff"))
    }

    /// A time: `5ms`, `999us`, `1.5s`; a bare number is microseconds, fractions of a microsecond
    /// are cut off, as in tc.
    pub fn time(&mut self) -> Result<Time, TcError> {
        let (key, text) = self.pair()?;
        parse_time(text).ok_or_else(|| self.bad(key, text, "a time such as 5ms or 100us"))
    }

    /// A time where tc counts in nanoseconds: like [`Words::time`], but a bare number is
    /// nanoseconds and `ns` is known.
    pub fn time64(&mut self) -> Result<Time, TcError> {
        let (key, text) = self.pair()?;
        parse_time64(text).ok_or_else(|| self.bad(key, text, "a time such as 5ms, 100us or 50ns"))
    }

    /// A rate: `50mbit`, `1gbps` (bytes!), `10Mibit`; a bare number is bits per second, as in tc.
    pub fn rate(&mut self) -> Result<Rate, TcError> {
        let (key, text) = self.pair()?;
        parse_rate(text).ok_or_else(|| self.bad(key, text, "a rate such as 50mbit"))
    }

    /// A size in bytes: `1514`, `15k` (1024), `10kbit` (1024 bits), `2Mb`.
    pub fn size(&mut self) -> Result<u64, TcError> {
        let (key, text) = self.pair()?;
        parse_size(text).ok_or_else(|| self.bad(key, text, "a size such as 1514 or 15kb"))
    }

    /// A percentage, `10%` or `10`, as a fraction of 1.
    pub fn percent(&mut self) -> Result<f64, TcError> {
        let (key, text) = self.pair()?;
        parse_percent(text).ok_or_else(|| self.bad(key, text, "a percentage such as 10%"))
    }

    /// A percentage as the kernel's 32-bit fraction: 100 % is `u32::MAX`.
    pub fn percent_u32(&mut self) -> Result<u32, TcError> {
        let fraction = self.percent()?;
        Ok((fraction * f64::from(u32::MAX)).round_ties_even() as u32)
    }

    /// Like [`Words::time64`], of the next word itself, for a second value behind one key.
    pub fn time64_of_next(&mut self) -> Result<Time, TcError> {
        let text = self.value()?;
        parse_time64(text).ok_or_else(|| self.bad(self.last, text, "a time such as 5ms, 100us or 50ns"))
    }

    /// A percentage that is the next word itself.
    pub fn percent_of_next(&mut self) -> Result<u32, TcError> {
        let key = self.last;
        let text = self.next_word().unwrap_or_default();
        self.last = key;
        let fraction = parse_percent(text).ok_or_else(|| self.bad(key, text, "a percentage such as 10%"))?;
        Ok((fraction * f64::from(u32::MAX)).round_ties_even() as u32)
    }

    /// `on` or `off`.
    pub fn on_off(&mut self) -> Result<bool, TcError> {
        let (key, text) = self.pair()?;
        match text {
            "on" => Ok(true),
            "off" => Ok(false),
            _ => Err(self.bad(key, text, "'on' or 'off'")),
        }
    }

    /// The word just taken and the value that must follow it.
    fn pair(&mut self) -> Result<(&'a str, &'a str), TcError> {
        let key = self.last;
        self.value().map(|text| (key, text))
    }

    /// The error for a word that the qdisc does not have; `known` gives the suggestion.
    pub fn unknown(&self, word: &str, known: &[&str]) -> TcError {
        self.error(&format!("unknown word '{word}'"), &suggestion(word, known))
    }

    /// The error for a qdisc that does not exist here.
    pub fn unknown_kind(&self, word: &str, known: &[&str]) -> TcError {
        if word == "tc" {
            let hint = "; expected the qdisc without the command, such as 'fq_codel limit 1000'";
            return self.error("'tc' is not a qdisc", hint);
        }
        self.error(&format!("unknown qdisc '{word}'"), &suggestion(word, known))
    }

    /// The error for a malformed value.
    pub fn bad(&self, key: &str, text: &str, expected: &str) -> TcError {
        self.error(&format!("{key}: '{text}' is not {expected}"), "")
    }

    /// The error for a word that tc knows and the simulator does not model.
    pub fn not_modelled(&self, word: &str) -> TcError {
        self.error(&format!("'{word}' is not modelled by the simulator"), "")
    }

    /// The error for words that are each valid and not together.
    pub fn refuse(&self, message: &str) -> TcError {
        self.error(message, "")
    }

    fn error(&self, message: &str, hint: &str) -> TcError {
        TcError { message: message.into(), line: self.line.into(), hint: hint.into() }
    }
}

/// An unsigned integer in C's notation: `0x` is hexadecimal, a leading `0` octal.
pub fn parse_u32(text: &str) -> Option<u32> {
    let (digits, radix) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&text[2..], 16),
        [b'0', _, ..] => (&text[1..], 8),
        _ => (text, 10),
    };
    let digit_first = digits.starts_with(|c: char| c.is_digit(radix));
    digit_first.then(|| u32::from_str_radix(digits, radix).ok())?
}

/// The minor number of a class handle: hexadecimal, 0 to ffff.
pub fn parse_minor(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let digit_first = digits.starts_with(|c: char| c.is_ascii_hexdigit());
    digit_first.then(|| u16::from_str_radix(digits, 16).ok().map(u32::from))?
}

/// tc's time: seconds, milliseconds, microseconds by suffix; none means microseconds. It is kept in
/// whole microseconds (32 bits of them): fractions are cut off.
pub fn parse_time(text: &str) -> Option<Time> {
    let (number, unit) = split_unit(text)?;
    let us = number * (time_unit(unit, "us").filter(|ns| *ns >= 1e3)? / 1e3);
    (us <= f64::from(u32::MAX)).then(|| Time::from_us(us as u64))
}

/// tc's time in nanoseconds; no suffix means nanoseconds.
pub fn parse_time64(text: &str) -> Option<Time> {
    let (number, unit) = split_unit(text)?;
    let ns = number * time_unit(unit, "ns")?;
    (ns <= i64::MAX as f64).then_some(Time(ns as u64))
}

/// Nanoseconds in `unit`, or in `default` when it is empty.
fn time_unit(unit: &str, default: &str) -> Option<f64> {
    let unit = unit.to_ascii_lowercase();
    match if unit.is_empty() { default } else { &unit } {
        "s" | "sec" | "secs" => Some(1e9),
        "ms" | "msec" | "msecs" => Some(1e6),
        "us" | "usec" | "usecs" => Some(1e3),
        "ns" | "nsec" | "nsecs" => Some(1.0),
        _ => None,
    }
}

/// tc's percentage as a fraction: `10%` and `10` are 0.1; 0 to 100.
pub fn parse_percent(text: &str) -> Option<f64> {
    let (number, unit) = split_unit(text)?;
    let valid = matches!(unit, "" | "%") && number <= 100.0;
    valid.then_some(number / 100.0)
}

/// tc's rate: `bit` suffixes are bits, `bps` suffixes are bytes; k, m, g, t are powers of 1000 and
/// ki, mi, gi, ti of 1024; a bare number is bits per second. It is kept in whole bytes per second:
/// the rest is cut off.
pub fn parse_rate(text: &str) -> Option<Rate> {
    let (number, unit) = split_unit(text)?;
    let unit = unit.to_ascii_lowercase();
    let (prefix, bits) = if let Some(p) = unit.strip_suffix("bit") {
        (p, 1.0)
    } else if let Some(p) = unit.strip_suffix("bps") {
        (p, 8.0)
    } else if unit.is_empty() {
        ("", 1.0)
    } else {
        return None;
    };
    let scale = match prefix {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        "t" => 1e12,
        "ki" => 1024.0,
        "mi" => 1024.0 * 1024.0,
        "gi" => 1024.0 * 1024.0 * 1024.0,
        "ti" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let bytes_per_s = number * (scale * bits) / 8.0;
    (bytes_per_s <= MAX_BYTES_PER_S).then(|| Rate(bytes_per_s as u64 * 8))
}

/// tc's size in bytes: k, m, g are powers of 1024; `kbit`, `mbit`, `gbit` are 1024-based bits.
pub fn parse_size(text: &str) -> Option<u64> {
    if text.starts_with("0x") {
        return parse_u32(text).map(u64::from);
    }
    let (number, unit) = split_unit(text)?;
    let bytes = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1024.0,
        "m" | "mb" => 1024.0 * 1024.0,
        "g" | "gb" => 1024.0 * 1024.0 * 1024.0,
        "kbit" => 1024.0 / 8.0,
        "mbit" => 1024.0 * 1024.0 / 8.0,
        "gbit" => 1024.0 * 1024.0 * 1024.0 / 8.0,
        _ => return None,
    };
    let size = number * bytes;
    (size <= f64::from(u32::MAX)).then_some(size as u64)
}

/// A petabyte per second: far above any link, far below an overflow of the arithmetic on rates.
const MAX_BYTES_PER_S: f64 = 1e15;

/// The number in front and the unit behind it; no sign, no exponent.
fn split_unit(text: &str) -> Option<(f64, &str)> {
    let at = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    Some((number.parse().ok()?, unit))
}

/// `; did you mean 'x'?` for a known word that is near or that `word` abbreviates, or what else is wrong with its
/// form; else the known words.
fn suggestion(word: &str, known: &[&str]) -> String {
    let lower = word.to_ascii_lowercase();
    let bare = lower.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    let bare = bare.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '@'))).next();
    if let Some(bare) = bare.filter(|bare| *bare != word && known.contains(bare)) {
        let form = if bare == lower { "" } else { "; expected only spaces between words" };
        return format!("; did you mean '{bare}'?{form}");
    }
    if let (true, Some(first)) = (word.starts_with(|c: char| c.is_ascii_digit()), known.first()) {
        return format!("; expected a parameter before the value, such as '{first} {word}'");
    }
    match nearest(&lower, known) {
        Some(k) => format!("; did you mean '{k}'?"),
        None if known.is_empty() => String::new(),
        None => format!("; known: {}", known.join(", ")),
    }
}

/// The known word that `word` abbreviates or probably was meant to be.
pub(crate) fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let abbreviated = known.iter().find(|k| k.starts_with(word)).map(|k| (0, *k));
    let near = known.iter().map(|k| (distance(word, k), *k)).min();
    let farthest = (word.len() / 2).min(2.max(word.len() / 3));
    abbreviated.or(near).filter(|(d, _)| !word.is_empty() && *d <= farthest).map(|(_, k)| k)
}

/// Levenshtein distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substitute = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_mean_what_tc_means() {
        assert_eq!(parse_rate("50mbit"), Some(Rate(50_000_000)));
        assert_eq!(parse_rate("1gbps"), Some(Rate(8_000_000_000)));
        assert_eq!(parse_rate("50Mbit"), Some(Rate(50_000_000)));
        assert_eq!(parse_rate("1Kibit"), Some(Rate(1024)));
        // 1001 bit/s are 125.125 B/s
        assert_eq!(parse_rate("1001"), Some(Rate(1000)));
        assert_eq!(parse_size("32Mb"), Some(32 << 20));
        assert_eq!(parse_size("15k"), Some(15 * 1024));
        assert_eq!(parse_size("8kbit"), Some(1024));
        for text in ["50m", "-1mbit", "mbit", "10%", "1e400", ""] {
            assert_eq!(parse_rate(text), None, "{text}");
        }
        for text in ["-5", "5x", "5gbb", "8gb"] {
            assert_eq!(parse_size(text), None, "{text}");
        }
    }

    #[test]
    fn a_time_is_whole_microseconds() {
        assert_eq!(parse_time("5ms"), Some(Time::from_ms(5)));
        assert_eq!(parse_time("1.5s"), Some(Time::from_ms(1500)));
        assert_eq!(parse_time("100"), Some(Time::from_us(100)));
        assert_eq!(parse_time("1.5us"), Some(Time::from_us(1)));
        for text in ["-5ms", "500ns", "5m", "ms", "5000s", "1.2.3ms"] {
            assert_eq!(parse_time(text), None, "{text}");
        }
        assert_eq!(parse_time64("800"), Some(Time::from_ns(800)));
        assert_eq!(parse_time64("0.8us"), Some(Time::from_ns(800)));
        assert_eq!(parse_time64("800ns"), Some(Time::from_ns(800)));
    }

    #[test]
    fn integers_are_written_as_in_c() {
        assert_eq!(parse_u32("0x1F"), Some(31));
        assert_eq!(parse_u32("010"), Some(8));
        assert_eq!(parse_u32("0"), Some(0));
        assert_eq!(parse_u32("1000"), Some(1000));
        for text in ["-1", "+1", "1.5", "0x", "08", "4294967296", "0x+1"] {
            assert_eq!(parse_u32(text), None, "{text}");
        }
        assert_eq!(parse_minor("10"), Some(16));
        assert_eq!(parse_minor("0xff"), Some(255));
        assert_eq!(parse_minor("10000"), None);
    }

    #[test]
    fn percentages_are_fractions_of_the_largest_32_bit_number() {
        let percent = |text| Words::new(text).percent_u32().ok();
        // the numbers that tc sends
        assert_eq!(percent("25%"), Some(0x4000_0000));
        assert_eq!(percent("10"), Some(0x1999_999a));
        assert_eq!(percent("0.1"), Some(0x0041_8937));
        assert_eq!(percent("100%"), Some(u32::MAX));
        assert_eq!(percent("101%"), None);
        assert_eq!(percent("5%x"), None);
    }

    #[test]
    fn a_malformed_value_is_named_with_its_word_and_the_expected_form() {
        let mut words = Words::new("fq_codel target fast");
        words.kind().unwrap();
        words.next_word();
        assert_eq!(
            words.time().unwrap_err().to_string(),
            "target: 'fast' is not a time such as 5ms or 100us in 'fq_codel target fast'"
        );
        let mut words = Words::new("pfifo limit");
        words.kind().unwrap();
        words.next_word();
        assert_eq!(words.u32().unwrap_err().to_string(), "'limit' needs a value in 'pfifo limit'");
        let mut words = Words::new("cake split-gso maybe");
        words.kind().unwrap();
        words.next_word();
        assert_eq!(
            words.on_off().unwrap_err().to_string(),
            "split-gso: 'maybe' is not 'on' or 'off' in 'cake split-gso maybe'"
        );
    }

    #[test]
    fn an_unknown_word_is_named_with_the_nearest_known_one() {
        let mut w = Words::new("fq_codel flow 1");
        w.kind().unwrap();
        let word = w.next_word().unwrap();
        let error = w.unknown(word, &["limit", "flows", "quantum"]).to_string();
        assert_eq!(error, "unknown word 'flow' in 'fq_codel flow 1'; did you mean 'flows'?");
    }
    #[test]
    fn punctuation_and_values_without_words_are_told() {
        let known = &["limit", "flows", "fq_codel"];
        let apart = "; expected only spaces between words";
        for (word, meant) in
            [("(flows", "flows"), ("flows=1", "flows"), ("--limit", "limit"), ("fq_codel(1q)", "fq_codel")]
        {
            assert_eq!(suggestion(word, known), format!("; did you mean '{meant}'?{apart}"), "{word}");
        }
        assert_eq!(suggestion("FQ_CODEL", known), "; did you mean 'fq_codel'?");
        assert_eq!(suggestion("100", known), "; expected a parameter before the value, such as 'limit 100'");
        let shown = Words::new("x 1000p").kind().map(|_| ());
        assert!(shown.is_ok());
        let mut words = Words::new("limit 1000p");
        words.next_word();
        let message = words.u32().unwrap_err().to_string();
        assert!(message.contains("a whole number without 'p'"), "{message}");
    }

    #[test]
    fn an_abbreviation_is_completed_and_a_strange_word_gets_the_list() {
        assert_eq!(suggestion("lim", &["target", "limit"]), "; did you mean 'limit'?");
        assert_eq!(suggestion("x", &["ecn", "limit"]), "; known: ecn, limit");
    }
}
