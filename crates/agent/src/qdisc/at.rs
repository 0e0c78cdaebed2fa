//! Where a qdisc is, in tc's words.

/// Which qdisc of an interface, in tc's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// `root`
    Root,
    /// `parent 1:1`
    Parent(u32),
    /// `handle 10:`
    Handle(u32),
}

impl At {
    /// Parses tc's words; hexadecimal numbers as there.
    pub fn parse(words: &str) -> Result<At, String> {
        let id = |text: &str| {
            let (major, minor) = text.split_once(':')?;
            let hex = |digits: &str| {
                if digits.is_empty() { Some(0) } else { u16::from_str_radix(digits, 16).ok() }
            };
            Some(u32::from(hex(major)?) << 16 | u32::from(hex(minor)?))
        };
        let parsed = match words.split_whitespace().collect::<Vec<_>>()[..] {
            ["root"] => Some(At::Root),
            ["parent", text] => id(text).map(At::Parent),
            ["handle", text] => id(text).map(At::Handle),
            _ => None,
        };
        parsed.ok_or_else(|| format!("{words:?}; 'root', 'parent 1:1' or 'handle 10:' is expected"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tc_words() {
        assert_eq!(At::parse("root"), Ok(At::Root));
        assert_eq!(At::parse("parent 1:1a"), Ok(At::Parent(0x0001_001a)));
        assert_eq!(At::parse("handle 10:"), Ok(At::Handle(0x0010_0000)));
        assert!(At::parse("handle 10").is_err());
        assert!(At::parse("class 1:1").is_err());
    }
}
