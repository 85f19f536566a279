//! Values in INI inventories: literals of Python, as `ast.literal_eval` reads them.
//!
//! `80` is a number, `[1, 2]` and `80, 443` are lists, `True` is a boolean. Whatever is not a literal is a string as it is.

use std::{iter::Peekable, str::Chars};

use ccm_expr::{Map, Value};

/// Python refuses deeper nesting.
const MOST_NESTED: usize = 100;

/// Returns the value of a variable in an INI file.
pub(super) fn value(text: &str) -> Value {
    Parser::new(text).parse().unwrap_or_else(|| text.into())
}

struct Parser<'a> {
    characters: Peekable<Chars<'a>>,
    depth: usize,
}

/// A value; `None` if the text is not a literal.
type Parsed = Option<Value>;

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        Self { characters: text.trim_start_matches([' ', '\t']).chars().peekable(), depth: 0 }
    }

    fn parse(mut self) -> Parsed {
        let first = self.expression()?;
        self.skip_space();
        let value = if self.characters.peek() == Some(&',') {
            let mut items = vec![first];
            while self.accept(',') {
                if matches!(self.characters.peek(), None | Some('#')) {
                    break;
                }
                items.push(self.expression()?);
                self.skip_space();
            }
            items.into_iter().collect()
        } else {
            first
        };
        matches!(self.characters.peek(), None | Some('#')).then_some(value)
    }

    fn expression(&mut self) -> Parsed {
        self.skip_space();
        match *self.characters.peek()? {
            '[' => self.list(']'),
            '(' => self.parentheses(),
            '{' => self.braces(),
            '\'' | '"' => self.strings(),
            '+' | '-' => self.signed(),
            '.' | '0'..='9' => self.number(),
            first if first.is_ascii_alphabetic() => self.word(),
            _ => None,
        }
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.depth += 1;
        if self.depth > MOST_NESTED {
            return None;
        }
        let result = read(self);
        self.depth -= 1;
        result
    }

    fn list(&mut self, end: char) -> Parsed {
        self.characters.next();
        Some(self.nested(|parser| parser.items(end))?.0.into_iter().collect())
    }

    /// Reads items to the end, and returns whether a comma followed the last one.
    fn items(&mut self, end: char) -> Option<(Vec<Value>, bool)> {
        let (mut items, mut comma) = (Vec::new(), false);
        loop {
            self.skip_space();
            if self.accept(end) {
                return Some((items, comma));
            }
            if !items.is_empty() && !comma {
                return None;
            }
            items.push(self.expression()?);
            self.skip_space();
            comma = self.accept(',');
        }
    }

    /// Reads a tuple, which becomes a list, or an expression in parentheses.
    fn parentheses(&mut self) -> Parsed {
        self.characters.next();
        let (mut items, comma) = self.nested(|parser| parser.items(')'))?;
        if items.len() == 1 && !comma { items.pop() } else { Some(items.into_iter().collect()) }
    }

    /// Reads a map or a set, which becomes a list.
    fn braces(&mut self) -> Parsed {
        self.characters.next();
        self.nested(|parser| {
            parser.skip_space();
            if parser.accept('}') {
                return Some(Map::default().into());
            }
            let first = parser.expression()?;
            parser.skip_space();
            if parser.accept(':') { parser.entries(first) } else { parser.set(first) }
        })
    }

    fn entries(&mut self, first: Value) -> Parsed {
        let mut entries = Map::default();
        let mut key = first;
        loop {
            let value = self.expression()?;
            if key.as_list().is_some() || key.as_map().is_some() {
                return None;
            }
            entries.insert(super::key_text(&key).into(), value);
            self.skip_space();
            let comma = self.accept(',');
            self.skip_space();
            if self.accept('}') {
                return Some(entries.into());
            }
            if !comma {
                return None;
            }
            key = self.expression()?;
            self.skip_space();
            if !self.accept(':') {
                return None;
            }
        }
    }

    fn set(&mut self, first: Value) -> Parsed {
        let mut items = vec![first];
        let comma = self.accept(',');
        self.skip_space();
        if !comma {
            return self.accept('}').then(|| items.into_iter().collect());
        }
        items.extend(self.items('}')?.0);
        Some(items.into_iter().collect())
    }

    fn signed(&mut self) -> Parsed {
        let is_negative = self.characters.next() == Some('-');
        self.skip_space();
        match (self.number()?, is_negative) {
            (Value::Int(number), true) => Some(number.checked_neg()?.into()),
            (Value::Float(number), true) => Some((-number).into()),
            (Value::Str(_), true) => None,
            (number, _) => Some(number),
        }
    }

    fn number(&mut self) -> Parsed {
        let mut text = String::new();
        while let Some(&next) = self.characters.peek() {
            let is_exponent = matches!(text.as_bytes(), [.., b'e' | b'E']) && !text.starts_with("0x");
            if next.is_ascii_alphanumeric() || matches!(next, '_' | '.') || is_exponent && "+-".contains(next)
            {
                text.push(next);
                self.characters.next();
            } else {
                break;
            }
        }
        number(&text)
    }

    fn word(&mut self) -> Parsed {
        let mut word = String::new();
        while let Some(&next) = self.characters.peek()
            && next.is_ascii_alphanumeric()
        {
            word.push(next);
            self.characters.next();
        }
        if matches!(self.characters.peek(), Some('\'' | '"')) {
            let prefix = word.to_ascii_lowercase();
            return match prefix.as_str() {
                "u" | "b" => self.prefixed(false),
                "r" | "rb" | "br" => self.prefixed(true),
                _ => None,
            };
        }
        match word.as_str() {
            "True" => Some(true.into()),
            "False" => Some(false.into()),
            "None" => Some(Value::Null),
            "set" => {
                self.skip_space();
                let is_call = self.accept('(') && {
                    self.skip_space();
                    self.accept(')')
                };
                is_call.then(|| Vec::<Value>::new().into_iter().collect())
            }
            _ => None,
        }
    }

    /// Reads strings that follow each other and are one.
    fn strings(&mut self) -> Parsed {
        self.prefixed(false)
    }

    fn prefixed(&mut self, is_raw: bool) -> Parsed {
        let mut text = self.string(is_raw)?;
        self.skip_space();
        while matches!(self.characters.peek(), Some('\'' | '"')) {
            text += &self.string(false)?;
            self.skip_space();
        }
        Some(text.into())
    }

    fn string(&mut self, is_raw: bool) -> Option<String> {
        let quote = self.characters.next()?;
        let mut ahead = self.characters.clone();
        let is_triple = ahead.next() == Some(quote) && ahead.next() == Some(quote);
        if is_triple {
            self.characters = ahead;
        }
        let mut text = String::new();
        loop {
            match self.characters.next()? {
                '\\' if is_raw => text.extend(['\\', self.characters.next()?]),
                '\\' => self.escape(&mut text)?,
                next if next == quote && !is_triple => return Some(text),
                next if next == quote => {
                    let mut ahead = self.characters.clone();
                    if ahead.next() == Some(quote) && ahead.next() == Some(quote) {
                        self.characters = ahead;
                        return Some(text);
                    }
                    text.push(next);
                }
                next => text.push(next),
            }
        }
    }

    fn escape(&mut self, text: &mut String) -> Option<()> {
        let next = self.characters.next()?;
        let character = match next {
            '\\' | '\'' | '"' => next,
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'a' => '\x07',
            'b' => '\x08',
            'f' => '\x0c',
            'v' => '\x0b',
            'x' => self.code(2)?,
            'u' => self.code(4)?,
            'U' => self.code(8)?,
            'N' => return None,
            '0'..='7' => {
                let mut code = next.to_digit(8)?;
                for _ in 0..2 {
                    let Some(digit) = self.characters.peek().and_then(|digit| digit.to_digit(8)) else {
                        break;
                    };
                    self.characters.next();
                    code = code * 8 + digit;
                }
                char::from_u32(code)?
            }
            other => {
                text.push('\\');
                other
            }
        };
        text.push(character);
        Some(())
    }

    fn code(&mut self, digits: usize) -> Option<char> {
        let mut code = 0;
        for _ in 0..digits {
            code = code * 16 + self.characters.next()?.to_digit(16)?;
        }
        char::from_u32(code)
    }

    fn accept(&mut self, wanted: char) -> bool {
        self.characters.next_if_eq(&wanted).is_some()
    }

    fn skip_space(&mut self) {
        while self.characters.next_if(|next| matches!(next, ' ' | '\t' | '\x0c')).is_some() {}
    }
}

/// Returns the value of a number of Python. A number without any counterpart is a string of its digits.
fn number(text: &str) -> Parsed {
    let lower = text.to_ascii_lowercase();
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        if let Some(digits) = lower.strip_prefix(prefix) {
            let digits = digits.strip_prefix('_').unwrap_or(digits);
            return whole(&grouped(digits, radix)?, radix);
        }
    }
    if lower.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_') {
        let digits = grouped(&lower, 10)?;
        let has_leading_zero = digits.len() > 1 && digits.starts_with('0');
        let is_zero = digits.bytes().all(|byte| byte == b'0');
        return if has_leading_zero && !is_zero { None } else { whole(&digits, 10) };
    }
    let (mantissa, exponent) = match lower.split_once('e') {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (lower.as_str(), None),
    };
    let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_empty_or_digits = |part: &str| part.is_empty() || grouped(part, 10).is_some();
    let unsigned = exponent.map(|exponent| exponent.strip_prefix(['+', '-']).unwrap_or(exponent));
    let is_float = is_empty_or_digits(before)
        && is_empty_or_digits(after)
        && !(before.is_empty() && after.is_empty())
        && unsigned.is_none_or(|digits| grouped(digits, 10).is_some());
    let number = is_float.then(|| lower.replace('_', "").parse::<f64>().ok()).flatten()?;
    number.is_finite().then(|| number.into())
}

fn whole(digits: &str, radix: u32) -> Parsed {
    match i64::from_str_radix(digits, radix) {
        Ok(number) => Some(number.into()),
        Err(_) => (radix == 10).then(|| digits.into()),
    }
}

/// Returns digits without the single underscores between them.
fn grouped(text: &str, radix: u32) -> Option<String> {
    let is_group = |group: &str| !group.is_empty() && group.chars().all(|digit| digit.is_digit(radix));
    text.split('_').all(is_group).then(|| text.replace('_', ""))
}
