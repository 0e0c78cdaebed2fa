//! The grammar of `tc`: words, numbers, units. A qdisc is written exactly as on tc's command line.
//!
//! Source: iproute2 `tc/tc_util.c`, `lib/utils.c` (units and their meaning).

pub mod print;

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

/// The words of one qdisc line, taken from left to right.
pub struct Words<'a> {
    line: &'a str,
    rest: std::str::SplitWhitespace<'a>,
    last: &'a str,
}

impl<'a> Words<'a> {
    /// Splits `line` at white space.
    pub fn new(line: &'a str) -> Self {
        Words {
            line,
            rest: line.split_whitespace(),
            last: "",
        }
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
        self.rest
            .next()
            .ok_or_else(|| self.error(&format!("'{key}' needs a value"), ""))
    }

    /// An unsigned integer.
    pub fn u32(&mut self) -> Result<u32, TcError> {
        let key = self.last;
        let text = self.value()?;
        text.parse()
            .map_err(|_| self.bad(key, text, "a whole number"))
    }

    /// A time: `5ms`, `999us`, `1.5s`; a bare number is microseconds, as in tc.
    pub fn time(&mut self) -> Result<Time, TcError> {
        let key = self.last;
        let text = self.value()?;
        parse_time(text).ok_or_else(|| self.bad(key, text, "a time such as 5ms or 100us"))
    }

    /// A rate: `50mbit`, `1gbps` (bytes!), `10Mibit`; a bare number is bits per second, as in tc.
    pub fn rate(&mut self) -> Result<Rate, TcError> {
        let key = self.last;
        let text = self.value()?;
        parse_rate(text).ok_or_else(|| self.bad(key, text, "a rate such as 50mbit"))
    }

    /// A size in bytes: `1514`, `15k` (1024), `10kbit` (1024 bits), `2Mb`.
    pub fn size(&mut self) -> Result<u64, TcError> {
        let key = self.last;
        let text = self.value()?;
        parse_size(text).ok_or_else(|| self.bad(key, text, "a size such as 1514 or 15kb"))
    }

    /// The error for a word that the qdisc does not have; `known` gives the suggestion.
    pub fn unknown(&self, word: &str, known: &[&str]) -> TcError {
        self.error(&format!("unknown word '{word}'"), &suggestion(word, known))
    }

    /// The error for a qdisc that does not exist here.
    pub fn unknown_kind(&self, word: &str, known: &[&str]) -> TcError {
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

    /// An error in this line that no single value explains; `hint` starts with `; ` or is empty.
    pub fn error(&self, message: &str, hint: &str) -> TcError {
        TcError {
            message: message.into(),
            line: self.line.into(),
            hint: hint.into(),
        }
    }
}

/// tc's time: seconds, milliseconds, microseconds, nanoseconds by suffix; none means microseconds.
pub fn parse_time(text: &str) -> Option<Time> {
    let (number, unit) = split_unit(text);
    let ns = match unit.to_ascii_lowercase().as_str() {
        "s" | "sec" | "secs" => 1e9,
        "ms" | "msec" | "msecs" => 1e6,
        "" | "us" | "usec" | "usecs" => 1e3,
        "ns" | "nsec" | "nsecs" => 1.0,
        _ => return None,
    };
    let value: f64 = number.parse().ok()?;
    (value.is_finite() && value >= 0.0).then(|| Time((value * ns).round() as u64))
}

/// tc's rate: `bit` suffixes are bits, `bps` suffixes are bytes; k, m, g, t are powers of 1000 and
/// ki, mi, gi, ti of 1024; a bare number is bits per second.
pub fn parse_rate(text: &str) -> Option<Rate> {
    let (number, unit) = split_unit(text);
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
    let value: f64 = number.parse().ok()?;
    (value.is_finite() && value >= 0.0).then(|| Rate((value * scale * bits).round() as u64))
}

/// tc's size in bytes: k, m, g are powers of 1024; `kbit`, `mbit`, `gbit` are 1024-based bits.
pub fn parse_size(text: &str) -> Option<u64> {
    let (number, unit) = split_unit(text);
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
    let value: f64 = number.parse().ok()?;
    (value.is_finite() && value >= 0.0).then(|| (value * bytes) as u64)
}

fn split_unit(text: &str) -> (&str, &str) {
    let at = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    text.split_at(at)
}

/// `; did you mean 'x'?` for the nearest known word, if one is near; else the known words.
fn suggestion(word: &str, known: &[&str]) -> String {
    let near = known.iter().map(|k| (distance(word, k), *k)).min();
    match near {
        Some((d, k)) if d <= 2.max(word.len() / 3) => format!("; did you mean '{k}'?"),
        _ if known.is_empty() => String::new(),
        _ => format!("; known: {}", known.join(", ")),
    }
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
        assert_eq!(parse_time("5ms"), Some(Time::from_ms(5)));
        assert_eq!(parse_time("100"), Some(Time::from_us(100)));
        assert_eq!(parse_time("-5ms"), None);
        assert_eq!(parse_rate("50mbit"), Some(Rate(50_000_000)));
        assert_eq!(parse_rate("1gbps"), Some(Rate(8_000_000_000)));
        assert_eq!(parse_rate("50Mbit"), Some(Rate(50_000_000)));
        assert_eq!(parse_rate("50m"), None);
        assert_eq!(parse_size("32Mb"), Some(32 << 20));
        assert_eq!(parse_size("15k"), Some(15 * 1024));
    }

    #[test]
    fn an_unknown_word_is_named_with_the_nearest_known_one() {
        let mut w = Words::new("fq_codel flow 1");
        w.kind().unwrap();
        let word = w.next_word().unwrap();
        let error = w.unknown(word, &["limit", "flows", "quantum"]).to_string();
        assert_eq!(
            error,
            "unknown word 'flow' in 'fq_codel flow 1'; did you mean 'flows'?"
        );
    }
}
