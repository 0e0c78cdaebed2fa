//! The Python of `%{ … }%` blocks as far as scripts use it: `assert CONDITION, MESSAGE` over integers.
//!
//! Names are looked up by the caller: `tcpi_snd_cwnd`, `TCP_CA_Open`. The message is not evaluated.

/// An assertion.
#[derive(Clone, Debug)]
pub struct Assertion {
    /// The condition as written.
    pub text: String,
    tokens: Vec<Token>,
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Number(i64),
    Name(String),
    Sign(&'static str),
    Quoted,
}

/// Longer signs first.
const SIGNS: [&str; 24] = [
    "==", "!=", "<=", ">=", "<<", ">>", "//", "**", "(", ")", "<", ">", "+", "-", "*", "/", "%", "&", "|",
    "^", "~", ",", ";", ".",
];

/// The longest condition, in words and signs.
const LONGEST: usize = 300;

/// Reads the assertions of a block.
///
/// # Errors
/// The statement that is no assertion.
pub fn parse(block: &str) -> Result<Vec<Assertion>, String> {
    let joined = block.replace("\\\n", " ");
    let mut assertions = Vec::new();
    let mut tokens = Vec::new();
    let mut open: i64 = 0;
    for line in joined.lines() {
        let more = tokenize(line)?;
        let count = |sign| more.iter().filter(|t| **t == Token::Sign(sign)).count() as i64;
        open += count("(") - count(")");
        tokens.extend(more);
        // A statement goes on as long as a parenthesis is open.
        if open > 0 {
            continue;
        }
        open = 0;
        let tokens = std::mem::take(&mut tokens);
        for statement in tokens.split(|t| *t == Token::Sign(";")).filter(|s| !s.is_empty()) {
            assertions.push(assertion(statement, line)?);
        }
    }
    if !tokens.is_empty() {
        return assertion(&tokens, block).and(Err("'(' without ')'".into()));
    }
    Ok(assertions)
}

fn assertion(statement: &[Token], line: &str) -> Result<Assertion, String> {
    if statement[0] != Token::Name("assert".into()) {
        return Err(format!("'{}' is no assertion", line.trim()));
    }
    let condition: Vec<Token> = split_message(&statement[1..]).to_vec();
    // Each parenthesis takes some of the stack.
    if condition.len() > LONGEST {
        return Err(format!("a condition of {} words; expected at most {LONGEST}", condition.len()));
    }
    Ok(Assertion { text: show(&condition), tokens: condition })
}

fn split_message(tokens: &[Token]) -> &[Token] {
    let mut depth = 0;
    for (i, token) in tokens.iter().enumerate() {
        match token {
            Token::Sign("(") => depth += 1,
            Token::Sign(")") => depth -= 1,
            Token::Sign(",") if depth == 0 => return &tokens[..i],
            _ => {}
        }
    }
    tokens
}

fn show(tokens: &[Token]) -> String {
    let words: Vec<String> = tokens
        .iter()
        .map(|t| match t {
            Token::Number(n) => n.to_string(),
            Token::Name(n) => n.clone(),
            Token::Sign(s) => (*s).to_string(),
            Token::Quoted => "'…'".to_string(),
        })
        .collect();
    words.join(" ")
}

fn tokenize(line: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = line.trim_start();
    while let Some(c) = rest.chars().next() {
        if c == '#' {
            break;
        }
        let taken;
        if c.is_ascii_digit() {
            taken = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
            let digits = &rest[..taken];
            let value = match digits.strip_prefix("0x") {
                Some(hex) => i64::from_str_radix(hex, 16),
                None => digits.parse(),
            };
            tokens.push(Token::Number(value.map_err(|_| format!("'{digits}' is no number"))?));
        } else if c.is_alphabetic() || c == '_' {
            taken = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            tokens.push(Token::Name(rest[..taken].to_string()));
        } else if c == '\'' || c == '"' {
            taken = rest[1..].find(c).ok_or_else(|| format!("a quote that does not end in '{rest}'"))? + 2;
            tokens.push(Token::Quoted);
        } else {
            let sign =
                SIGNS.iter().find(|s| rest.starts_with(**s)).ok_or_else(|| format!("unknown sign '{c}'"))?;
            taken = sign.len();
            tokens.push(Token::Sign(sign));
        }
        rest = rest[taken..].trim_start();
    }
    Ok(tokens)
}

impl Assertion {
    /// The names that the condition uses.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tokens.iter().filter_map(|t| match t {
            Token::Name(n) if !["and", "or", "not", "True", "False"].contains(&n.as_str()) => {
                Some(n.as_str())
            }
            _ => None,
        })
    }

    /// Why the condition cannot be evaluated, whatever its names stand for.
    pub fn unreadable(&self) -> Option<String> {
        let mut e = Evaluator { tokens: &self.tokens, at: 0, lookup: &|_| Some(1), dry: true };
        match e.or() {
            Err(why) => Some(why),
            Ok(_) if e.at < self.tokens.len() => Some(format!("'{}' cannot be evaluated", self.text)),
            Ok(_) => None,
        }
    }

    /// Whether the condition holds.
    ///
    /// # Errors
    /// What cannot be evaluated.
    pub fn holds(&self, lookup: &dyn Fn(&str) -> Option<i64>) -> Result<bool, String> {
        let mut e = Evaluator { tokens: &self.tokens, at: 0, lookup, dry: false };
        let value = e.or()?;
        if e.at < self.tokens.len() {
            return Err(format!("'{}' cannot be evaluated", self.text));
        }
        Ok(value != 0)
    }
}

struct Evaluator<'a> {
    tokens: &'a [Token],
    at: usize,
    lookup: &'a dyn Fn(&str) -> Option<i64>,
    /// Only the form counts: what has no value (a division by 0) is 1.
    dry: bool,
}

impl Evaluator<'_> {
    fn eat(&mut self, signs: &[&'static str]) -> Option<&'static str> {
        match self.tokens.get(self.at) {
            Some(Token::Sign(s)) if signs.contains(s) => {
                self.at += 1;
                Some(s)
            }
            _ => None,
        }
    }

    fn eat_name(&mut self, word: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token::Name(n)) if n == word);
        self.at += usize::from(found);
        found
    }

    fn or(&mut self) -> Result<i64, String> {
        let mut value = self.and()?;
        while self.eat_name("or") {
            let right = self.and()?;
            value = i64::from(value != 0 || right != 0);
        }
        Ok(value)
    }

    fn and(&mut self) -> Result<i64, String> {
        let mut value = self.not()?;
        while self.eat_name("and") {
            let right = self.not()?;
            value = i64::from(value != 0 && right != 0);
        }
        Ok(value)
    }

    fn not(&mut self) -> Result<i64, String> {
        if self.eat_name("not") { Ok(i64::from(self.not()? == 0)) } else { self.comparison() }
    }

    /// Comparisons chain: `a <= x <= b`.
    fn comparison(&mut self) -> Result<i64, String> {
        let mut left = self.binary(0)?;
        let mut chained = None;
        while let Some(sign) = self.eat(&["==", "!=", "<=", ">=", "<", ">"]) {
            let right = self.binary(0)?;
            let holds = match sign {
                "==" => left == right,
                "!=" => left != right,
                "<=" => left <= right,
                ">=" => left >= right,
                "<" => left < right,
                _ => left > right,
            };
            chained = Some(chained.unwrap_or(true) && holds);
            left = right;
        }
        Ok(chained.map_or(left, i64::from))
    }

    /// Python's order of precedence, loosest first.
    fn binary(&mut self, level: usize) -> Result<i64, String> {
        const LEVELS: [&[&str]; 6] =
            [&["|"], &["^"], &["&"], &["<<", ">>"], &["+", "-"], &["*", "//", "/", "%"]];
        let Some(signs) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        while let Some(sign) = self.eat(signs) {
            let right = self.binary(level + 1)?;
            let value = match sign {
                "|" => Some(left | right),
                "^" => Some(left ^ right),
                "&" => Some(left & right),
                "<<" => u32::try_from(right).ok().and_then(|n| left.checked_shl(n)),
                ">>" => u32::try_from(right).ok().and_then(|n| left.checked_shr(n)),
                "+" => left.checked_add(right),
                "-" => left.checked_sub(right),
                "*" => left.checked_mul(right),
                "%" => left.checked_rem_euclid(right),
                _ => left.checked_div_euclid(right),
            };
            left = value
                .or(self.dry.then_some(1))
                .ok_or_else(|| format!("{left} {sign} {right} has no value"))?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<i64, String> {
        match self.eat(&["-", "+", "~", "("]) {
            Some("-") => {
                let value = self.unary()?;
                let negated = value.checked_neg().or(self.dry.then_some(1));
                return negated.ok_or_else(|| format!("-{value} has no value"));
            }
            Some("+") => return self.unary(),
            Some("~") => return Ok(!self.unary()?),
            Some(_) => {
                let value = self.or()?;
                return self.eat(&[")"]).map(|_| value).ok_or_else(|| "'(' without ')'".to_string());
            }
            None => {}
        }
        let token = self.tokens.get(self.at).ok_or("the condition ends too early")?;
        self.at += 1;
        match token {
            Token::Number(n) => Ok(*n),
            Token::Name(n) if n == "True" || n == "False" => Ok(i64::from(n == "True")),
            Token::Name(n) => (self.lookup)(n).ok_or_else(|| format!("unknown name '{n}'")),
            other => Err(format!("'{}' stands where a value should", show(std::slice::from_ref(other)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(text: &str) -> bool {
        let lookup = |name: &str| match name {
            "tcpi_snd_cwnd" => Some(10),
            "TCP_CA_Open" => Some(0),
            _ => None,
        };
        parse(text).unwrap().iter().all(|a| a.holds(&lookup).unwrap())
    }

    #[test]
    fn conditions_follow_python() {
        assert!(holds("assert tcpi_snd_cwnd == 10, tcpi_snd_cwnd"));
        assert!(holds("assert 9 <= tcpi_snd_cwnd <= 11, 'cwnd=%d' % tcpi_snd_cwnd"));
        assert!(!holds("assert 9 <= tcpi_snd_cwnd < 10"));
        assert!(holds("assert (tcpi_snd_cwnd & 2) != 0 and not TCP_CA_Open"));
        assert!(holds("assert (tcpi_snd_cwnd == 10 and\n  True), (\n'why')\nassert 1"));
        assert!(holds("\nassert 2 + 3 * 4 == 14  # why\nassert 1 << 4 == 16; assert 7 // 2 == 3;\n"));
    }

    #[test]
    fn what_is_no_assertion_is_named() {
        assert_eq!(parse("print(1)").unwrap_err(), "'print(1)' is no assertion");
        let assertion = &parse("assert nosuch == 1").unwrap()[0];
        assert_eq!(assertion.holds(&|_| None).unwrap_err(), "unknown name 'nosuch'");
        assert_eq!(assertion.names().collect::<Vec<_>>(), ["nosuch"]);
    }
}
