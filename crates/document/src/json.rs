//! A JSON parser with positions. YAML's flow syntax is not quite a superset of JSON: surrogate pairs and tabs differ.

use super::keys::drop_duplicates;
use super::limits::{MAX_DEPTH, too_deep};
use super::{Diagnostic, Entry, Node, Scalar, Span, Style, Value};

/// Reason why a text is not accepted as JSON.
pub(super) enum Refusal {
    /// The text is not JSON, but might be YAML.
    NotJson(Diagnostic),
    /// The text is JSON with an error after which parsing cannot continue.
    Invalid(Diagnostic),
}

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Returns whether the text begins like a JSON list or map.
pub(super) fn may_be_json(text: &str) -> bool {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    text.trim_start_matches(BLANKS).starts_with(['{', '['])
}

const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

/// Returns the document with its recoverable errors.
pub(super) fn parse(text: &str) -> Result<(Node, Vec<Diagnostic>), Refusal> {
    let at = if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let mut reader = Reader { text, at, depth: 0, problems: Vec::new() };
    let node = reader.value()?;
    reader.skip_blanks();
    if reader.at < text.len() {
        return Err(reader.not_json("expected the end of the document"));
    }
    Ok((node, reader.problems))
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    problems: Vec<Diagnostic>,
}

impl Reader<'_> {
    fn value(&mut self) -> Result<Node, Refusal> {
        self.skip_blanks();
        let start = self.at;
        let value = match self.peek() {
            Some(b'{') => self.nested(Self::map)?,
            Some(b'[') => self.nested(Self::seq)?,
            Some(b'"') => Value::Scalar(Scalar::new(self.string()?, Style::Quoted)),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => self.word()?,
        };
        Ok(Node { value, span: Span::new(start, self.at) })
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Result<Value, Refusal>) -> Result<Value, Refusal> {
        if self.depth >= MAX_DEPTH {
            return Err(Refusal::Invalid(too_deep(Span::new(self.at, self.at + 1))));
        }
        self.depth += 1;
        self.at += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn map(&mut self) -> Result<Value, Refusal> {
        let mut entries = Vec::new();
        self.items(b'}', "expected `,` or `}`", |reader| {
            let start = reader.at;
            if reader.peek() != Some(b'"') {
                return Err(reader.not_json("expected a key in double quotes"));
            }
            let key = reader.string()?;
            let key_span = Span::new(start, reader.at);
            reader.skip_blanks();
            if !reader.take(b':') {
                return Err(reader.not_json("expected `:` after the key"));
            }
            entries.push(Entry { key, key_span, value: reader.value()? });
            Ok(())
        })?;
        entries.shrink_to_fit();
        self.problems.extend(drop_duplicates(&mut entries));
        Ok(Value::Map(entries))
    }

    fn seq(&mut self) -> Result<Value, Refusal> {
        let mut items = Vec::new();
        self.items(b']', "expected `,` or `]`", |reader| {
            items.push(reader.value()?);
            Ok(())
        })?;
        items.shrink_to_fit();
        Ok(Value::Seq(items))
    }

    /// Parses the items after an opening bracket.
    fn items(
        &mut self,
        close: u8,
        expected: &'static str,
        mut item: impl FnMut(&mut Self) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        self.skip_blanks();
        if self.take(close) {
            return Ok(());
        }
        loop {
            self.skip_blanks();
            item(self)?;
            self.skip_blanks();
            if self.take(close) {
                return Ok(());
            }
            if !self.take(b',') {
                return Err(self.not_json(expected));
            }
        }
    }

    fn word(&mut self) -> Result<Value, Refusal> {
        for word in ["true", "false", "null"] {
            if self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(Value::Scalar(Scalar::new(word.to_owned(), Style::Plain)));
            }
        }
        Err(self.not_json("expected a value"))
    }

    fn number(&mut self) -> Result<Value, Refusal> {
        let start = self.at;
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _signed = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        let text = self.text[start..self.at].to_owned();
        if text.parse().is_ok_and(f64::is_infinite) {
            let problem = Diagnostic::error("number-too-large", "this number is too large")
                .at(Span::new(start, self.at));
            return Err(Refusal::Invalid(problem));
        }
        Ok(Value::Scalar(Scalar::new(text, Style::Computed)))
    }

    fn digits(&mut self) -> Result<(), Refusal> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err(self.not_json("expected a digit")) } else { Ok(()) }
    }

    /// Parses a string at its opening quote.
    fn string(&mut self) -> Result<String, Refusal> {
        let open = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            let start = self.at;
            let rest = &self.text.as_bytes()[start..];
            self.at +=
                rest.iter().position(|&byte| matches!(byte, b'"' | b'\\' | 0..0x20)).unwrap_or(rest.len());
            text.push_str(&self.text[start..self.at]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    text.shrink_to_fit();
                    return Ok(text);
                }
                Some(b'\\') => text.push(self.escape()?),
                Some(_) => return Err(self.not_json("a line break or control character must be escaped")),
                None => {
                    self.at = open;
                    return Err(self.not_json("this quote is never closed"));
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, Refusal> {
        let start = self.at;
        self.at += 1;
        let letter = self.peek();
        self.at += 1;
        let simple = match letter {
            Some(character @ (b'"' | b'\\' | b'/')) => character as char,
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(start),
            _ => {
                self.at = start;
                return Err(self.not_json("unknown escape"));
            }
        };
        Ok(simple)
    }

    /// Parses the rest of `\uXXXX`, with the second half of a surrogate pair.
    fn unicode(&mut self, start: usize) -> Result<char, Refusal> {
        let first = self.hexadecimal();
        let unit = match first {
            Some(high @ 0xd800..=0xdbff) if self.text[self.at..].starts_with("\\u") => {
                self.at += 2;
                self.hexadecimal()
                    .filter(|low| (0xdc00..=0xdfff).contains(low))
                    .map(|low| 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00))
            }
            other => other,
        };
        unit.and_then(char::from_u32).ok_or_else(|| {
            self.at = start;
            self.not_json("this escape is not a character")
        })
    }

    fn hexadecimal(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        let value =
            digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16))?;
        self.at += 4;
        value.ok()
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn not_json(&self, message: &str) -> Refusal {
        let at = self.text.floor_char_boundary(self.at);
        let length = self.text[at..].chars().next().map_or(0, char::len_utf8);
        Refusal::NotJson(Diagnostic::error("json-syntax", message).at(Span::new(at, at + length)))
    }
}
