//! Numbers and strings.

use super::{Kind, Lexer, continues_name};
use crate::error::{Error, Result};

impl<'a> Lexer<'a> {
    pub(super) fn number(&mut self) -> Result<Kind<'a>> {
        let start = self.at;
        let bytes = self.rest().as_bytes();
        let radix = match bytes {
            [b'0', b'x' | b'X', ..] => 16,
            [b'0', b'o' | b'O', ..] => 8,
            [b'0', b'b' | b'B', ..] => 2,
            _ => 10,
        };
        let mut fraction = false;
        if radix == 10 {
            self.digits();
            // `1..3` is a range, not a fraction.
            if self.rest().starts_with('.') && !self.rest().starts_with("..") {
                fraction = true;
                self.at += 1;
                self.digits();
            }
            if self.exponent() {
                fraction = true;
            }
        } else {
            self.at += 2;
            self.skip_while(|digit| digit.is_digit(radix) || digit == '_');
        }
        let end = self.at;
        self.skip_while(continues_name);
        let text = self.text[start..end].replace('_', "");
        let whole = self.text[start..self.at].to_owned();
        let bad = || Error::syntax(format!("bad number `{whole}`"), start..start + whole.len());
        if self.at != end {
            return Err(bad());
        }
        if fraction {
            return text.parse().map(Kind::Float).map_err(|_| bad());
        }
        let digits = if radix == 10 { text.as_str() } else { &text[2..] };
        i64::from_str_radix(digits, radix).map(Kind::Int).map_err(|error| match error.kind() {
            std::num::IntErrorKind::PosOverflow => {
                Error::syntax(format!("number `{whole}` is too large"), start..start + whole.len())
                    .with_help("write it as a fraction, such as `1e20`")
            }
            _ => bad(),
        })
    }

    fn digits(&mut self) {
        self.skip_while(|digit| digit.is_ascii_digit() || digit == '_');
    }

    /// Passes over `e9`, `E-9` and the like; says whether there was one.
    fn exponent(&mut self) -> bool {
        let rest = self.rest().as_bytes();
        let sign = usize::from(matches!(rest.get(1), Some(b'+' | b'-')));
        if !matches!(rest.first(), Some(b'e' | b'E')) || !rest.get(1 + sign).is_some_and(u8::is_ascii_digit) {
            return false;
        }
        self.at += 1 + sign;
        self.digits();
        true
    }

    pub(super) fn string(&mut self, quote: char) -> Result<String> {
        let start = self.at;
        self.at += 1;
        if quote == '`' {
            return self.raw_string(start);
        }
        let mut out = String::new();
        loop {
            out.push_str(self.skip_while(|letter| letter != quote && letter != '\\' && letter != '\n'));
            match self.peek() {
                Some('\\') => out.push(self.escape()?),
                Some(letter) if letter == quote => {
                    self.at += 1;
                    return Ok(out);
                }
                _ => return Err(self.unclosed(start, quote)),
            }
        }
    }

    /// Text between backticks stands for itself; a doubled backtick is one backtick.
    fn raw_string(&mut self, start: usize) -> Result<String> {
        let mut out = String::new();
        loop {
            out.push_str(self.skip_while(|letter| letter != '`'));
            if self.rest().starts_with("``") {
                out.push('`');
                self.at += 2;
            } else if self.peek().is_some() {
                self.at += 1;
                return Ok(out);
            } else {
                return Err(self.unclosed(start, '`'));
            }
        }
    }

    fn unclosed(&self, start: usize, quote: char) -> Error {
        Error::syntax("string is not closed", start..self.at).with_help(format!("close it with {quote}"))
    }

    fn escape(&mut self) -> Result<char> {
        let start = self.at;
        self.at += 1;
        let letter = self.peek();
        self.at += letter.map_or(0, char::len_utf8);
        let plain = match letter {
            Some('a') => Some('\x07'),
            Some('b') => Some('\x08'),
            Some('f') => Some('\x0c'),
            Some('n') => Some('\n'),
            Some('r') => Some('\r'),
            Some('t') => Some('\t'),
            Some('v') => Some('\x0b'),
            Some(same @ ('\\' | '\'' | '"' | '`' | '?')) => Some(same),
            Some('x') => self.code(2, 16),
            Some('u') if self.rest().starts_with('{') => self.braced_code(),
            Some('u') => self.utf16_code(),
            Some('U') => self.code(8, 16),
            Some('0'..='3') => {
                self.at -= 1;
                self.code(3, 8)
            }
            _ => None,
        };
        plain.ok_or_else(|| {
            Error::syntax(format!("bad escape `{}`", &self.text[start..self.at]), start..self.at)
                .with_help("write `\\\\` for a backslash, or use backticks around text that has many")
        })
    }

    fn hex(&mut self, length: usize, radix: u32) -> Option<u32> {
        let digits = self.rest().get(..length)?;
        if !digits.chars().all(|digit| digit.is_digit(radix)) {
            return None;
        }
        self.at += length;
        u32::from_str_radix(digits, radix).ok()
    }

    fn code(&mut self, length: usize, radix: u32) -> Option<char> {
        self.hex(length, radix).and_then(char::from_u32)
    }

    fn braced_code(&mut self) -> Option<char> {
        self.at += 1;
        let digits = self.skip_while(|digit| digit.is_ascii_hexdigit());
        self.rest().starts_with('}').then(|| self.at += 1)?;
        u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)
    }

    /// Four digits, or two times four for a character that JSON writes as a surrogate pair.
    fn utf16_code(&mut self) -> Option<char> {
        let high = self.hex(4, 16)?;
        if !(0xd800..0xdc00).contains(&high) {
            return char::from_u32(high);
        }
        self.rest().starts_with("\\u").then(|| self.at += 2)?;
        let low = self.hex(4, 16)?.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
        char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + low)
    }
}
