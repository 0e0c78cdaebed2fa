//! A packetdrill script: options, then events in time.
//!
//! What is read: `--name=value` lines, comments, times (`0.1`, `+.1`, `*`, `+.1~+.2`, `+0...0.2`), packets
//! (`<` injected, `>` expected), system calls, shell commands in backticks, Python in `%{ … }%`.

use crate::segment::Segment;

/// The longest time in a script: a day.
const LONGEST_S: f64 = 86_400.0;

/// A script.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// `--name=value` lines.
    pub options: Vec<(String, String)>,
    /// What happens, in order.
    pub events: Vec<Event>,
}

/// Something that happens.
#[derive(Clone, Debug)]
pub struct Event {
    /// Line of the script where it starts, from 1.
    pub line: usize,
    /// When it happens.
    pub when: When,
    /// A call that blocks: when it returns, in microseconds like `when`.
    pub until_us: Option<i64>,
    /// What happens.
    pub kind: Kind,
}

/// A time, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Since the start of the script.
    Absolute(i64),
    /// Since the event before.
    Relative(i64),
    /// Between two times since the event before.
    Between(i64, i64),
    /// Between two times since the start of the script.
    Within(i64, i64),
    /// At any time (`*`).
    Any,
}

/// What can happen.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A packet arrives.
    Inject(Segment),
    /// A packet is sent.
    Expect(Segment),
    /// A packet of a kind that is not TCP, by its words.
    OtherPacket(String),
    /// A system call.
    Call(Call),
    /// Shell commands.
    Shell(String),
    /// Python assertions.
    Python(String),
}

/// A system call.
#[derive(Clone, Debug)]
pub struct Call {
    /// Its name.
    pub name: String,
    /// Its arguments as written.
    pub args: Vec<String>,
    /// What follows `=`, as written: `-1 EINPROGRESS (…)`.
    pub result: String,
}

/// A script that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct ParseError {
    /// From 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// The line and what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let text = strip_comments(text);
        let mut reader = Reader { text: &text, at: 0 };
        let mut script = Script::default();
        while reader.skip_space() {
            if reader.rest().starts_with("--") {
                for option in reader.take_line().split_whitespace().filter_map(|word| word.strip_prefix("--"))
                {
                    let (name, value) = option.split_once('=').unwrap_or((option, ""));
                    script.options.push((name.to_string(), value.to_string()));
                }
            } else {
                let line = reader.line();
                let event = reader.event().map_err(|what| ParseError { line, what })?;
                script.events.push(event);
            }
        }
        Ok(script)
    }
}

/// Comments become spaces; lines keep their numbers. Quoted text, commands and Python stay.
fn strip_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut quote: Option<&str> = None;
    while let Some(c) = rest.chars().next() {
        if let Some(end) = quote {
            if rest.starts_with(end) {
                quote = None;
                out.push_str(end);
                rest = &rest[end.len()..];
                continue;
            }
        } else if rest.starts_with("//") {
            rest = rest.find('\n').map_or("", |at| &rest[at..]);
            continue;
        } else if rest.starts_with("/*") {
            let end = rest.find("*/").map_or(rest.len(), |at| at + 2);
            out.extend(rest[..end].chars().filter(|&c| c == '\n'));
            rest = &rest[end..];
            continue;
        } else if rest.starts_with("%{") {
            quote = Some("}%");
        } else if c == '`' || c == '"' {
            quote = Some(if c == '`' { "`" } else { "\"" });
        }
        out.push(c);
        rest = &rest[c.len_utf8()..];
    }
    out
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn line(&self) -> usize {
        self.text[..self.at].matches('\n').count() + 1
    }

    /// False at the end of the script.
    fn skip_space(&mut self) -> bool {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        !self.rest().is_empty()
    }

    fn take_line(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest.find('\n').unwrap_or(rest.len());
        self.at += end;
        rest[..end].trim()
    }

    fn take_until(&mut self, end: &str) -> Result<&'a str, String> {
        let rest = self.rest();
        let at = rest.find(end).ok_or_else(|| format!("no '{end}' follows"))?;
        self.at += at + end.len();
        Ok(&rest[..at])
    }

    fn eat(&mut self, word: &str) -> bool {
        let found = self.rest().starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn event(&mut self) -> Result<Event, String> {
        let line = self.line();
        let (when, until_us) = self.when()?;
        self.skip_space();
        let kind = if self.eat("`") {
            Kind::Shell(self.take_until("`")?.to_string())
        } else if self.eat("%{") {
            Kind::Python(self.take_until("}%")?.to_string())
        } else if self.eat("<") {
            let text = self.packet();
            if is_tcp(&text) { Kind::Inject(Segment::parse(&text)?) } else { Kind::OtherPacket(text) }
        } else if self.eat(">") {
            let text = self.packet();
            if is_tcp(&text) { Kind::Expect(Segment::parse(&text)?) } else { Kind::OtherPacket(text) }
        } else {
            Kind::Call(self.call()?)
        };
        Ok(Event { line, when, until_us, kind })
    }

    /// A packet ends with its line; options may go on over the next ones.
    fn packet(&mut self) -> String {
        let mut text = self.take_line().to_string();
        while text.matches('<').count() > text.matches('>').count() && self.skip_space() {
            text.push(' ');
            text.push_str(self.take_line());
        }
        text
    }

    fn when(&mut self) -> Result<(When, Option<i64>), String> {
        if self.eat("*") {
            return Ok((When::Any, None));
        }
        let Some((start, relative)) = self.time()? else { return Ok((When::Relative(0), None)) };
        self.skip_blank();
        if self.eat("~") {
            self.skip_blank();
            let (end, _) = self.time()?.ok_or("'~' without a time after it")?;
            let when = if relative { When::Between(start, end) } else { When::Within(start, end) };
            return Ok((when, None));
        }
        let until = if self.eat("...") {
            self.skip_blank();
            Some(self.time()?.ok_or("'...' without a time after it")?.0)
        } else {
            None
        };
        Ok((if relative { When::Relative(start) } else { When::Absolute(start) }, until))
    }

    fn skip_blank(&mut self) {
        while self.rest().starts_with([' ', '\t']) {
            self.at += 1;
        }
    }

    /// Microseconds, and whether `+` stood before them.
    fn time(&mut self) -> Result<Option<(i64, bool)>, String> {
        let relative = self.eat("+");
        let rest = self.rest();
        // A range `0...0.2` has no blank before its dots.
        let stop = rest.find("...").unwrap_or(rest.len());
        let end = rest[..stop].find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(stop);
        let digits = &rest[..end];
        if digits.is_empty() {
            return if relative { Err("'+' without a time after it".into()) } else { Ok(None) };
        }
        let seconds: f64 = digits.parse().map_err(|_| format!("'{digits}' is no time in seconds"))?;
        if seconds > LONGEST_S {
            return Err(format!("'{digits}' is a time of more than {LONGEST_S} seconds"));
        }
        self.at += end;
        Ok(Some(((seconds * 1e6).round() as i64, relative)))
    }

    fn call(&mut self) -> Result<Call, String> {
        let rest = self.rest();
        let open = rest.find('(').filter(|&at| rest[..at].chars().all(|c| c.is_alphanumeric() || c == '_'));
        let Some(open) = open else {
            let word = rest.split_whitespace().next().unwrap_or("");
            return Err(format!("'{word}' starts no packet, system call, `command` or %{{ assertion }}%"));
        };
        let name = rest[..open].to_string();
        let (mut depth, mut quoted) = (0, false);
        let mut args = vec![String::new()];
        let mut end = None;
        for (at, c) in rest[open..].char_indices() {
            if c == '"' {
                quoted = !quoted;
            }
            let mut keep = true;
            match c {
                _ if quoted => {}
                '(' | '[' | '{' => {
                    depth += 1;
                    keep = depth > 1;
                }
                ')' | ']' | '}' => {
                    depth -= 1;
                    if depth == 0 {
                        end = Some(open + at + 1);
                        break;
                    }
                }
                ',' if depth == 1 => {
                    args.push(String::new());
                    keep = false;
                }
                _ => {}
            }
            if keep && let Some(last) = args.last_mut() {
                last.push(c);
            }
        }
        self.at += end.ok_or_else(|| format!("{name}: '(' without ')'"))?;
        let result = self.take_line();
        let result = result.strip_prefix('=').ok_or_else(|| format!("{name}: no '= result' after it"))?;
        let args = args.into_iter().map(|a| a.trim().to_string()).collect();
        Ok(Call { name, args, result: result.trim().to_string() })
    }
}

/// Whether a packet's words are those of a TCP segment over IPv4 without tunnels, of whose IP header only the ECN field
/// is told, and of whose ports nothing.
fn is_tcp(text: &str) -> bool {
    let other = ["icmp", "udp", "ipv4", "ipv6", "gre", "mpls", "sctp", "(", "arp"]
        .iter()
        .any(|w| text.starts_with(w));
    let fields =
        text.strip_prefix('[').and_then(|inner| inner.split_once(']')).map_or("", |(inner, _)| inner);
    let others = ["tos", "ttl", "flowlabel", "mtu", "hoplimit"];
    let ports = text.split_whitespace().nth(1) == Some(">");
    !other && !ports && !fields.split([',', ' ']).any(|word| others.contains(&word.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_all_their_forms() {
        let script = Script::parse(
            "--tolerance_usecs=7000\n0 a() = 0\n+.1 a() = 0 // c\n +.3 ~ +.310 > . 1:1(0) ack 1\n* > . 1:1(0) ack 1\n\
             +.01...0.011 connect(3, ..., ...) = 0\n+.002 ... 0.102 connect(3) = 0\n`x`\n",
        )
        .unwrap();
        let times: Vec<_> = script.events.iter().map(|e| (e.line, e.when, e.until_us)).collect();
        assert_eq!(script.options, [("tolerance_usecs".to_string(), "7000".to_string())]);
        assert_eq!(
            times,
            [
                (2, When::Absolute(0), None),
                (3, When::Relative(100_000), None),
                (4, When::Between(300_000, 310_000), None),
                (5, When::Any, None),
                (6, When::Relative(10_000), Some(11_000)),
                (7, When::Relative(2_000), Some(102_000)),
                (8, When::Relative(0), None),
            ]
        );
    }

    #[test]
    fn a_call_keeps_its_arguments_as_written() {
        let script =
            Script::parse("0 sendmsg(4, {msg_iov(2)=[{..., 1}, {..., 2}],\n flags=0}, 0) = -1 EAGAIN (x)")
                .unwrap();
        let Kind::Call(call) = &script.events[0].kind else { panic!("{script:?}") };
        assert_eq!(call.args, ["4", "{msg_iov(2)=[{..., 1}, {..., 2}],\n flags=0}", "0"]);
        assert_eq!(call.result, "-1 EAGAIN (x)");
    }

    #[test]
    fn what_cannot_be_read_is_named_with_its_line() {
        let error = Script::parse("0 a() = 0\n\n+0 >> . 1:1(0)\n").unwrap_err();
        assert_eq!(error.to_string(), "line 3: unknown TCP flag '>' in '>'");
        let error = Script::parse("0 socket(..., SOCK_STREAM = 3").unwrap_err();
        assert_eq!(error.to_string(), "line 1: socket: '(' without ')'");
    }
}
