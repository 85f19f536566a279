//! Named source texts, and positions in them.

use super::Diagnostic;

/// A text with its name in messages (`site.yaml`, `<stdin>`).
#[derive(Clone, Debug)]
pub struct Source {
    pub name: String,
    pub text: String,
}

/// Byte offsets in a source; the end is exclusive.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

const BYTE_ORDER_MARK: char = '\u{feff}';

/// Returns whether a text is UTF-16: it has a byte order mark, or a zero byte in its first character.
fn is_utf16(bytes: &[u8]) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => true,
        [0, letter, 0, other, ..] | [letter, 0, other, 0, ..] => is_letter(*letter) && is_letter(*other),
        _ => false,
    }
}

impl Source {
    /// Creates a source from bytes. Removes a byte order mark. Text that is not UTF-8 is an error whose message has the
    /// position.
    pub fn read(name: impl Into<String>, bytes: Vec<u8>) -> Result<Self, Diagnostic> {
        let name = name.into();
        if is_utf16(&bytes) {
            let message = format!("{name}: this is UTF-16 text: save the file in the UTF-8 encoding");
            return Err(Diagnostic::error("not-utf8", message));
        }
        match String::from_utf8(bytes) {
            Ok(mut text) => {
                if text.starts_with(BYTE_ORDER_MARK) {
                    text.drain(..BYTE_ORDER_MARK.len_utf8());
                }
                Ok(Source { name, text })
            }
            Err(error) => {
                let good = error.utf8_error().valid_up_to();
                let bytes = error.as_bytes();
                let text = str::from_utf8(&bytes[..good]).unwrap_or_default().to_owned();
                let (line, column) =
                    Source { name: String::new(), text }.line_column(Span::new(good, good).start);
                let message = format!("{name}:{line}:{column}: not UTF-8 text (byte 0x{:02x})", bytes[good]);
                Err(Diagnostic::error("not-utf8", message).with_help("save the file in the UTF-8 encoding"))
            }
        }
    }

    /// Returns the line and the column in characters of a byte offset, both counted from 1.
    pub fn line_column(&self, at: u32) -> (usize, usize) {
        let before = &self.text[..self.text.floor_char_boundary(at as usize)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = 1 + memchr::memchr_iter(b'\n', before.as_bytes()).count();
        // A byte order mark occupies no column in editors.
        let column = before[line_start..].trim_start_matches(BYTE_ORDER_MARK).chars().count();
        (line, column + 1)
    }
}

impl Source {
    /// Returns the span of a part of a scalar. The source differs from the text of the scalar by quotes, indentation
    /// and escapes. If the two cannot be aligned, returns the span of the whole scalar.
    pub fn within(&self, span: Span, text: &str, part: std::ops::Range<usize>) -> Span {
        let whole = self.text.get(span.start as usize..span.end as usize).unwrap_or_default();
        let is_block = whole.starts_with(['|', '>']);
        let header = if is_block { whole.find('\n').map_or(0, |newline| newline + 1) } else { 0 };
        let offset = |at| aligned(&whole[header..], text, at).map(|at| span.start as usize + header + at);
        match (offset(part.start), offset(part.end.max(part.start + 1) - 1)) {
            (Some(start), Some(last)) => {
                let last = &self.text[last..];
                let width = last.chars().next().map_or(0, char::len_utf8);
                Span::new(start, self.text.len() - last.len() + if part.is_empty() { 0 } else { width })
            }
            _ => span,
        }
    }
}

/// Returns the offset in `written` of the byte `at` of `text`, where `written` has additional white space, quotes and
/// escapes.
fn aligned(written: &str, text: &str, at: usize) -> Option<usize> {
    let mut rest = written.char_indices();
    if written.starts_with(['"', '\'']) {
        rest.next();
    }
    for (offset, character) in text.char_indices() {
        let place = loop {
            let (place, other) = rest.next()?;
            if other == '\\' && written.starts_with('"') {
                match escaped(&mut rest.by_ref().map(|(_, character)| character))? {
                    '\n' if character != '\n' => continue,
                    meant if meant == character => break place,
                    _ => return None,
                }
            }
            if other == character || (character.is_whitespace() && other.is_whitespace()) {
                break place;
            }
            if !other.is_whitespace() && !matches!(other, '"' | '\'' | '\\') {
                return None;
            }
        };
        if offset + character.len_utf8() > at {
            return Some(place);
        }
    }
    None
}

/// Returns the character that an escape in double quotes denotes; for a line continuation, its line break.
fn escaped(rest: &mut impl Iterator<Item = char>) -> Option<char> {
    let digits = match rest.next()? {
        'n' => return Some('\n'),
        't' => return Some('\t'),
        'r' => return Some('\r'),
        '0' => return Some('\0'),
        'a' => return Some('\u{7}'),
        'b' => return Some('\u{8}'),
        'e' => return Some('\u{1b}'),
        'f' => return Some('\u{c}'),
        'v' => return Some('\u{b}'),
        '_' => return Some('\u{a0}'),
        'N' => return Some('\u{85}'),
        'L' => return Some('\u{2028}'),
        'P' => return Some('\u{2029}'),
        'x' => 2,
        'u' => 4,
        'U' => 8,
        itself => return Some(itself),
    };
    let digits: String = rest.take(digits).collect();
    u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32)
}

impl Span {
    /// Sources are limited to `u32::MAX` bytes, so the conversion loses nothing.
    #[expect(clippy::cast_possible_truncation, reason = "parse refuses longer sources")]
    pub fn new(start: usize, end: usize) -> Self {
        Span { start: start as u32, end: end as u32 }
    }

    /// Returns whether the other span is within this one.
    pub fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    pub fn empty(at: u32) -> Self {
        Span { start: at, end: at }
    }
}
