//! A fast reader for simple YAML.
//!
//! The complete YAML parser spends a hundred instructions per byte, which is half of the time of an unchanged run. This
//! reader supports block lists and maps, brackets and quotes within one line, literal blocks, and comments. For other
//! syntax and for errors it gives up, and the complete parser reads the text. If it succeeds, its tree is identical to
//! that of the parser, including positions.

use super::keys::drop_duplicates;
use super::limits::MAX_DEPTH;
use super::{Entry, Node, Scalar, Span, Style, Value};
use memchr::{memchr, memchr2, memchr3};

/// Maximum length of a key without `?` in the parser.
const LONGEST_KEY: usize = 1000;

/// Returns the tree of a text, or `None` if the text needs the complete parser.
pub(super) fn read(text: &str) -> Option<Node> {
    let mut reader = Reader { text, bytes: text.as_bytes(), ..Reader::default() };
    reader.next_line()?;
    let column = reader.column?;
    let root = reader.block(column)?;
    reader.column.is_none().then_some(root)
}

#[derive(Default)]
struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// Start of the current line.
    line: usize,
    /// Column of the first character of the line, if nothing of the line was read yet; `None` at the end of the text.
    column: Option<usize>,
    depth: usize,
    /// Items of incomplete lists and entries of incomplete maps, the innermost last, so that each vector gets its exact
    /// size.
    items: Vec<Node>,
    entries: Vec<Entry>,
    /// Buffer for strings that are assembled, so that each string gets its exact size.
    room: String,
}

/// Whether text is in brackets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Block,
    Brackets,
}

impl Reader<'_> {
    fn byte(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn room(&mut self) -> String {
        let mut room = std::mem::take(&mut self.room);
        room.clear();
        room
    }

    fn skip_spaces(&mut self) {
        while self.byte(0) == Some(b' ') {
            self.at += 1;
        }
    }

    /// Returns whether the rest of the line is empty or a comment.
    fn is_at_end_of_line(&self) -> bool {
        match self.byte(0) {
            None | Some(b'\n') => true,
            Some(b'#') => self.at == self.line || self.bytes[self.at - 1] == b' ',
            Some(_) => false,
        }
    }

    /// Advances from the end of a value to the first character of the next line with content.
    fn next_line(&mut self) -> Option<()> {
        loop {
            self.skip_spaces();
            match self.byte(0) {
                None => {
                    self.column = None;
                    return Some(());
                }
                Some(b'#') if self.is_at_end_of_line() => {
                    let rest = &self.bytes[self.at..];
                    let length = memchr(b'\n', rest).unwrap_or(rest.len());
                    is_ordinary(&rest[..length])?;
                    self.at += length;
                }
                Some(b'\n') => {
                    self.at += 1;
                    self.line = self.at;
                    self.column = None;
                }
                Some(_) if self.bytes[self.line..self.at].iter().all(|&byte| byte == b' ') => {
                    self.column = Some(self.at - self.line);
                    let is_marker = [b"---".as_slice(), b"...", b"%"]
                        .iter()
                        .any(|marker| self.bytes[self.line..].starts_with(marker));
                    return (!is_marker).then_some(());
                }
                Some(_) => return None,
            }
        }
    }

    /// Reads the list, map or scalar at this column.
    fn block(&mut self, column: usize) -> Option<Node> {
        if self.depth == MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let node = if self.is_item() { self.list(column) } else { self.map(column) };
        self.depth -= 1;
        node
    }

    fn is_item(&self) -> bool {
        self.byte(0) == Some(b'-') && matches!(self.byte(1), None | Some(b' ' | b'\n'))
    }

    fn list(&mut self, column: usize) -> Option<Node> {
        let (first, start) = (self.items.len(), self.at);
        let mut end = start;
        while self.column.is_none_or(|next| next == column) && self.is_item() {
            self.at += 1;
            let indicator = self.at;
            self.column = None;
            self.skip_spaces();
            let item = if self.is_at_end_of_line() {
                self.below(column, indicator)?
            } else if self.is_item() || self.is_key() {
                let column = self.at - self.line;
                self.block(column)?
            } else {
                self.value(column)?
            };
            end = item.span.end as usize;
            self.items.push(item);
            match self.column {
                Some(next) if next == column => {}
                Some(next) if next > column => return None,
                _ => break,
            }
        }
        let items = self.items.drain(first..).collect();
        Some(Node { value: Value::Seq(items), span: Span::new(start, end) })
    }

    fn map(&mut self, column: usize) -> Option<Node> {
        let (first, start) = (self.entries.len(), self.at);
        let end = loop {
            let Node { value: Value::Scalar(key), span: key_span } = self.scalar(Within::Block)? else {
                return None;
            };
            self.skip_spaces();
            let is_key = self.byte(0) == Some(b':') && matches!(self.byte(1), None | Some(b' ' | b'\n'));
            if !is_key || !is_plain_key(&key) {
                return None;
            }
            self.at += 1;
            let indicator = self.at;
            self.column = None;
            self.skip_spaces();
            let value =
                if self.is_at_end_of_line() { self.below(column, indicator)? } else { self.value(column)? };
            let end = value.span.end as usize;
            self.entries.push(Entry { key: key.text, key_span, value });
            match self.column {
                Some(next) if next == column => {}
                Some(next) if next > column => return None,
                _ => break end,
            }
        };
        self.close(first, Span::new(start, end))
    }

    fn close(&mut self, first: usize, span: Span) -> Option<Node> {
        let mut entries: Vec<Entry> = self.entries.drain(first..).collect();
        drop_duplicates(&mut entries).is_empty().then_some(Node { value: Value::Map(entries), span })
    }

    /// Reads the value on the lines after its indicator, if there is one.
    fn below(&mut self, column: usize, indicator: usize) -> Option<Node> {
        let is_of_map = self.bytes[indicator - 1] == b':';
        self.next_line()?;
        match self.column {
            Some(next) if next > column && (self.is_item() || self.is_key()) => self.block(next),
            Some(next) if next > column => None,
            Some(next) if next == column && is_of_map && self.is_item() => self.block(column),
            _ => Some(Node::null(Span::new(indicator, indicator))),
        }
    }

    /// Reads a value on the line of its indicator, and advances to the next line.
    fn value(&mut self, column: usize) -> Option<Node> {
        let node = match self.byte(0)? {
            b'{' | b'[' => self.brackets()?,
            b'|' => return self.literal(column),
            _ => self.scalar(Within::Block)?,
        };
        self.next_line()?;
        Some(node)
    }

    /// Returns whether a key begins here: a `:` follows on the line, after the closing quote if there are quotes.
    fn is_key(&self) -> bool {
        let rest = &self.bytes[self.at..];
        let line = &rest[..memchr(b'\n', rest).unwrap_or(rest.len())];
        let is_colon = |at: usize| line[at] == b':' && matches!(line.get(at + 1), None | Some(b' '));
        match line.first() {
            // Quotes within the quotes are left to the complete parser.
            Some(quote @ (b'"' | b'\'')) => {
                let Some(end) = line.iter().skip(1).position(|byte| byte == quote) else { return false };
                (end + 2..line.len()).find(|&at| line[at] != b' ').is_some_and(is_colon)
            }
            _ => (0..line.len()).any(is_colon),
        }
    }

    /// Reads a literal block, and advances to the line after it.
    fn literal(&mut self, column: usize) -> Option<Node> {
        let start = self.at;
        self.at += 1;
        let keeps_break = self.byte(0) != Some(b'-');
        if !keeps_break {
            self.at += 1;
        }
        self.skip_spaces();
        if self.byte(0) != Some(b'\n') {
            return None;
        }
        self.at += 1;
        let indent = self.bytes[self.at..].iter().position(|&byte| byte != b' ')?;
        if indent <= column || matches!(self.byte(indent), Some(b'\n' | b'\t')) {
            return None;
        }
        let mut lines = self.room();
        let end = self.indented(indent, &mut lines)?;
        let text = lines.trim_end_matches('\n');
        let text = lines[..text.len() + usize::from(keeps_break)].to_owned();
        self.room = lines;
        self.next_line()?;
        Some(node(text, Style::Quoted, start, end))
    }

    /// Reads indented or empty lines, and returns the end of the last visible character.
    fn indented(&mut self, indent: usize, lines: &mut String) -> Option<usize> {
        let mut end = self.at;
        self.column = None;
        while self.at < self.bytes.len() {
            self.line = self.at;
            let rest = &self.bytes[self.at..];
            let line = &rest[..memchr(b'\n', rest)?];
            let spaces = line.iter().take(indent).take_while(|&&byte| byte == b' ').count();
            if spaces == indent {
                is_ordinary(line)?;
                lines.push_str(&self.text[self.at + indent..self.at + line.len()]);
                if let Some(last) = line.iter().rposition(|byte| !matches!(byte, b' ' | b'\t')) {
                    end = self.at + last + 1;
                }
            } else if spaces < line.len() {
                return Some(end);
            }
            lines.push('\n');
            self.at += line.len() + 1;
        }
        self.line = self.at;
        Some(end)
    }

    /// Reads a list or map in brackets.
    fn brackets(&mut self) -> Option<Node> {
        if self.depth == MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let start = self.at;
        let (first_item, first_entry) = (self.items.len(), self.entries.len());
        let is_list = self.byte(0) == Some(b'[');
        let close = if is_list { b']' } else { b'}' };
        self.at += 1;
        self.skip_spaces();
        let mut is_closed = self.byte(0) == Some(close);
        while !is_closed {
            if is_list {
                let item = self.in_brackets()?;
                self.items.push(item);
            } else {
                self.pair()?;
            }
            self.skip_spaces();
            is_closed = self.byte(0) == Some(close);
            if !is_closed {
                if self.byte(0) != Some(b',') {
                    return None;
                }
                self.at += 1;
                self.skip_spaces();
            }
        }
        self.at += 1;
        self.depth -= 1;
        let span = Span::new(start, self.at);
        if is_list {
            let items = self.items.drain(first_item..).collect();
            return Some(Node { value: Value::Seq(items), span });
        }
        self.close(first_entry, span)
    }

    /// Reads a key and its value in brackets.
    fn pair(&mut self) -> Option<()> {
        let Node { value: Value::Scalar(key), span: key_span } = self.scalar(Within::Brackets)? else {
            return None;
        };
        if self.byte(0) != Some(b':') || self.byte(1) != Some(b' ') || !is_plain_key(&key) {
            return None;
        }
        self.at += 2;
        self.skip_spaces();
        let value = self.in_brackets()?;
        self.entries.push(Entry { key: key.text, key_span, value });
        Some(())
    }

    fn in_brackets(&mut self) -> Option<Node> {
        match self.byte(0)? {
            b'{' | b'[' => self.brackets(),
            _ => self.scalar(Within::Brackets),
        }
    }

    /// Reads a scalar that ends on its line.
    fn scalar(&mut self, within: Within) -> Option<Node> {
        match self.byte(0)? {
            b'"' => self.double_quoted(),
            b'\'' => self.single_quoted(),
            _ => self.plain(within),
        }
    }

    fn plain(&mut self, within: Within) -> Option<Node> {
        let start = self.at;
        let rest = &self.bytes[start..];
        let can_begin = match rest[0] {
            b'-' => rest.get(1).is_some_and(u8::is_ascii_alphanumeric),
            byte => !b"?:,[]{}#&*!|>'\"%@`<= \t\n".contains(&byte),
        };
        if !can_begin {
            return None;
        }
        let mut length = 0;
        while let Some(&byte) = rest.get(length) {
            match byte {
                b'\n' => break,
                b':' if matches!(rest.get(length + 1), None | Some(b' ' | b'\n')) => break,
                b'#' if rest[length - 1] == b' ' => break,
                b',' | b'[' | b']' | b'{' | b'}' if within == Within::Brackets => break,
                b':' | b'-'
                    if within == Within::Brackets
                        && rest.get(length + 1).is_some_and(|byte| b",[]{}".contains(byte)) =>
                {
                    return None;
                }
                _ => length += 1,
            }
        }
        is_ordinary(&rest[..length])?;
        let text = self.text[start..start + length].trim_end_matches(' ');
        self.at += text.len();
        if text.contains('\t') {
            return None;
        }
        Some(node(text.to_owned(), Style::Plain, start, self.at))
    }

    fn double_quoted(&mut self) -> Option<Node> {
        let start = self.at;
        let mut room = self.room();
        self.at += 1;
        loop {
            let rest = &self.bytes[self.at..];
            let length = memchr3(b'"', b'\\', b'\n', rest)?;
            is_ordinary(&rest[..length])?;
            room.push_str(&self.text[self.at..self.at + length]);
            self.at += length + 1;
            match rest[length] {
                b'"' => break,
                b'\\' => room.push(match self.byte(0)? {
                    b'n' => '\n',
                    b't' => '\t',
                    b'"' => '"',
                    b'\\' => '\\',
                    _ => return None,
                }),
                _ => return None,
            }
            self.at += 1;
        }
        let text = room.clone();
        self.room = room;
        Some(node(text, Style::Quoted, start, self.at))
    }

    fn single_quoted(&mut self) -> Option<Node> {
        let start = self.at;
        let rest = &self.bytes[start + 1..];
        let length = memchr2(b'\'', b'\n', rest)?;
        is_ordinary(&rest[..length])?;
        let ends = rest[length] == b'\'' && rest.get(length + 1) != Some(&b'\'');
        self.at += length + 2;
        let text = self.text.get(start + 1..start + 1 + length)?.to_owned();
        ends.then(|| node(text, Style::Quoted, start, self.at))
    }
}

fn node(text: String, style: Style, start: usize, end: usize) -> Node {
    Node { value: Value::Scalar(Scalar::new(text, style)), span: Span::new(start, end) }
}

/// Returns whether a key is a string, not a special value.
fn is_plain_key(key: &Scalar) -> bool {
    key.text.len() <= LONGEST_KEY && !key.is_null() && !(key.style == Style::Plain && key.text == "<<")
}

/// Returns `None` for control characters and byte order marks, which the complete parser handles.
fn is_ordinary(bytes: &[u8]) -> Option<()> {
    let is_odd = |byte: u8| (byte < b' ' && byte != b'\t') || matches!(byte, 0x7f | 0xef);
    // Tests every byte without branches, so that the compiler can vectorize the loop.
    let odd = bytes.iter().map(|&byte| u8::from(is_odd(byte))).fold(0, |found, odd| found | odd);
    (odd == 0).then_some(())
}
