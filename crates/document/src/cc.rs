//! The grammar of a flow's `cc`: `NAME[@VERSION] [PARAMETER VALUE]… [PART [PARAMETER VALUE]…]…`.
//!
//! Names and parameters are Linux's (module and module parameters); times are written as in tc.

use std::ops::RangeInclusive;

use crate::tc::{nearest, parse_time};
use crate::units::Time;

/// The names of slow starts and rules for a window in part unused, any of which can stand in the place of a control's own.
pub const PARTS: &[&str] = &["hystart", "hystart++", "resume", "search", "suss", "validation"];

/// A name or parameter that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CcError(pub String);

/// The words of one `cc`, taken from left to right.
pub struct CcWords<'a> {
    text: &'a str,
    first: &'a str,
    rest: std::str::SplitWhitespace<'a>,
    parameter: &'a str,
}

impl<'a> CcWords<'a> {
    /// Splits `text` at white space.
    pub fn new(text: &'a str) -> Self {
        let mut rest = text.split_whitespace();
        CcWords { text, first: rest.next().unwrap_or_default(), rest, parameter: "" }
    }

    /// The words after `name`, with which `text` begins.
    pub fn after(text: &'a str, name: &str) -> Self {
        let (first, rest) = text.split_at(name.len());
        CcWords { text, first, rest: rest.split_whitespace(), parameter: "" }
    }

    /// `NAME[@VERSION]`
    pub fn first(&self) -> &'a str {
        self.first
    }

    /// `VERSION`, if one is given.
    pub fn version(&self) -> Option<&'a str> {
        self.first.split_once('@').map(|(_, version)| version)
    }

    /// The error for a name, or for a version of one, that is none of `known`.
    pub fn unknown_name(&self, known: &[&'static str]) -> CcError {
        if let Some((name, version)) = self.first.split_once('@')
            && known.contains(&name)
        {
            let of = |other: &&'static str| other.strip_prefix(name)?.strip_prefix('@');
            let mut versions: Vec<&str> = known.iter().filter_map(of).collect();
            versions.sort_unstable();
            return self.unknown(&format!("version '{version}' of {name}"), version, &versions, "versions");
        }
        let what = format!("congestion control '{}'", self.first);
        self.unknown(&what, self.first, known, "names")
    }

    /// The next parameter, which must be one of `known`.
    pub fn parameter(&mut self, known: &[&str]) -> Result<Option<&'a str>, CcError> {
        let Some(word) = self.rest.next() else {
            return Ok(None);
        };
        if !known.contains(&word) {
            let what = format!("parameter '{word}' of {}", self.first);
            let near: Vec<&str> = known.iter().chain(PARTS).copied().collect();
            return Err(self.unknown_near(&what, nearest(word, &near), known, "parameters"));
        }
        self.parameter = word;
        Ok(Some(word))
    }

    /// `0` or `1`.
    pub fn flag(&mut self) -> Result<bool, CcError> {
        Ok(self.one_of(&["0", "1"])? == "1")
    }

    /// `0`, `1`, `off` or `on`.
    pub fn switch(&mut self) -> Result<bool, CcError> {
        Ok(matches!(self.one_of(&["0", "1", "off", "on"])?, "1" | "on"))
    }

    /// A whole number in `range`.
    pub fn number(&mut self, range: RangeInclusive<u32>) -> Result<u32, CcError> {
        let text = self.value()?;
        match text.parse() {
            Ok(n) if range.contains(&n) => Ok(n),
            _ => Err(self.bad(text, &format!("a whole number from {} to {}", range.start(), range.end()))),
        }
    }

    /// A time from `least` to `most`, written as in tc.
    pub fn time(&mut self, least: Time, most: Time) -> Result<Time, CcError> {
        let text = self.value()?;
        match parse_time(text) {
            Some(t) if t >= least && t <= most => Ok(t),
            _ => Err(self
                .bad(text, &format!("a time from {}us to {}us, such as 15ms", least.as_us(), most.as_us()))),
        }
    }

    /// One of `known`.
    pub fn one_of(&mut self, known: &[&str]) -> Result<&'a str, CcError> {
        let text = self.value()?;
        if known.contains(&text) {
            return Ok(text);
        }
        Err(self.bad(text, &format!("one of {}", known.join(", "))))
    }

    fn value(&mut self) -> Result<&'a str, CcError> {
        self.rest.next().ok_or_else(|| self.error(&format!("'{}' needs a value", self.parameter)))
    }

    fn bad(&self, value: &str, expected: &str) -> CcError {
        self.error(&format!("{}: '{value}' is not {expected}", self.parameter))
    }

    fn unknown(&self, what: &str, word: &str, known: &[&str], kind: &str) -> CcError {
        self.unknown_near(what, nearest(word, known), known, kind)
    }

    fn unknown_near(&self, what: &str, near: Option<&str>, known: &[&str], kind: &str) -> CcError {
        let hint = near.map(|near| format!("; did you mean '{near}'?")).unwrap_or_default();
        let known = if known.is_empty() {
            format!("it has no {kind}")
        } else {
            format!("known {kind}: {}", known.join(", "))
        };
        self.error(&format!("unknown {what}{hint}; {known}"))
    }

    /// The error, with the words that contain it.
    pub fn error(&self, message: &str) -> CcError {
        CcError(format!("cc '{}': {message}", self.text))
    }
}
