//! Splits the text of an expression into tokens.
//!
//! Words such as `in` and `not` are names here: only the parser knows where they are operators.

mod literals;

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};

/// The longest expression that is read, in bytes.
const LONGEST: usize = 1 << 20;

/// Operators and brackets; the longer ones first, since the first that fits is taken.
const SYMBOLS: &[&str] = &[
    "**", "..", "?.", "??", "==", "!=", "<=", ">=", "&&", "||", "::", "+", "-", "*", "/", "%", "^", "<", ">",
    "!", "?", ":", ".", ",", ";", "|", "#", "=", "(", ")", "[", "]", "{", "}",
];

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind<'a> {
    Int(i64),
    Float(f64),
    Str(Arc<str>),
    Name(&'a str),
    Symbol(&'static str),
    End,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind<'a>,
    pub(crate) span: Range<usize>,
}

/// All tokens of the text, with [`Kind::End`] last.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token<'_>>> {
    if text.len() > LONGEST {
        return Err(Error::syntax(
            format!("an expression may not be longer than {LONGEST} bytes"),
            0..text.len(),
        ));
    }
    let mut lexer = Lexer { text, at: 0 };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_blanks()?;
        let start = lexer.at;
        let kind = lexer.token()?;
        let last = kind == Kind::End;
        tokens.push(Token { kind, span: start..lexer.at });
        if last {
            return Ok(tokens);
        }
    }
}

pub(crate) fn starts_name(letter: char) -> bool {
    letter == '_' || letter == '$' || letter.is_alphabetic()
}

pub(crate) fn continues_name(letter: char) -> bool {
    starts_name(letter) || letter.is_alphanumeric()
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn skip_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|letter| !wanted(letter)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// White space and comments.
    fn skip_blanks(&mut self) -> Result<()> {
        loop {
            self.skip_while(char::is_whitespace);
            if self.rest().starts_with("//") {
                self.skip_while(|letter| letter != '\n');
            } else if self.rest().starts_with("/*") {
                let Some(end) = self.rest()[2..].find("*/") else {
                    return Err(Error::syntax("comment is not closed", self.at..self.text.len())
                        .with_help("close it with `*/`"));
                };
                self.at += 2 + end + 2;
            } else {
                return Ok(());
            }
        }
    }

    fn token(&mut self) -> Result<Kind<'a>> {
        let Some(first) = self.peek() else { return Ok(Kind::End) };
        let second = self.rest().chars().nth(1);
        if first.is_ascii_digit() || (first == '.' && second.is_some_and(|digit| digit.is_ascii_digit())) {
            return self.number();
        }
        if matches!(first, '"' | '\'' | '`') {
            return self.string(first).map(|text| Kind::Str(text.into()));
        }
        if starts_name(first) {
            return Ok(Kind::Name(self.skip_while(continues_name)));
        }
        for symbol in SYMBOLS {
            if self.rest().starts_with(symbol) && !self.splits_fraction(symbol) {
                self.at += symbol.len();
                return Ok(Kind::Symbol(symbol));
            }
        }
        let span = self.at..self.at + first.len_utf8();
        let error = Error::syntax(format!("unexpected character `{first}`"), span);
        Err(match first {
            '&' => error.with_help("write `and` or `&&`"),
            '\u{201c}' | '\u{201d}' | '\u{2018}' | '\u{2019}' => error.with_help("use straight quotes"),
            _ => error,
        })
    }

    /// In `a ?.5 : 1` the question mark stands alone.
    fn splits_fraction(&self, symbol: &str) -> bool {
        symbol == "?." && self.rest()[2..].starts_with(|digit: char| digit.is_ascii_digit())
    }
}
