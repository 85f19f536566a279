//! Reads a path.

use std::ops::Range;

use super::modifiers::Modifier;
use super::query::{Like, Operand, Operator, Query, Test};
use super::wildcard::Wildcard;
use super::{Kind, Path, Segment};
use crate::error::{Error, Result};
use crate::value::Value;

/// The longest path that is read, in bytes.
const LONGEST: usize = 16 << 10;
/// How many brackets may stand within each other.
const DEEPEST: usize = 32;

pub(super) fn parse(text: &str) -> Result<Path> {
    if text.is_empty() {
        return Err(Error::syntax("path is empty", 0..0));
    }
    if text.len() > LONGEST {
        return Err(Error::syntax(format!("a path may not be longer than {LONGEST} bytes"), 0..text.len()));
    }
    Parser { text, depth: 0 }.path(0..text.len())
}

struct Parser<'a> {
    text: &'a str,
    depth: usize,
}

impl Parser<'_> {
    /// Reads the part of the text that is a path.
    fn path(&mut self, range: Range<usize>) -> Result<Path> {
        if self.depth > DEEPEST {
            return Err(Error::syntax("path is nested too deeply", range));
        }
        self.depth += 1;
        let mut stages = vec![Vec::new()];
        let mut at = range.start;
        loop {
            let (kind, end) = self.segment(at..range.end)?;
            if let Some(stage) = stages.last_mut() {
                stage.push(Segment { kind, span: at..end });
            }
            match self.text[end..range.end].bytes().next() {
                None => break,
                Some(b'|') => stages.push(Vec::new()),
                Some(b'.') => {}
                Some(_) => {
                    return Err(Error::syntax("expected `.` or `|` here", end..range.end));
                }
            }
            at = end + 1;
        }
        self.depth -= 1;
        let builds = stages
            .iter()
            .flatten()
            .any(|segment| matches!(segment.kind, Kind::List(_) | Kind::Map(_) | Kind::Modifier(_)));
        Ok(Path { text: self.text[range].to_owned(), stages, builds })
    }

    /// One segment, and where it ends.
    fn segment(&mut self, range: Range<usize>) -> Result<(Kind, usize)> {
        let rest = &self.text[range.clone()];
        match rest.bytes().next() {
            Some(b'@') => {
                if let Some(found) = self.modifier(&range) {
                    return Ok(found);
                }
            }
            Some(b'!') => {
                if let Some((value, length)) = literal(&rest[1..]) {
                    return Ok((Kind::Literal(value), range.start + 1 + length));
                }
            }
            Some(b'[' | b'{') => return self.selection(&range),
            Some(b'#') => match rest.as_bytes().get(1) {
                None | Some(b'.' | b'|') => return Ok((Kind::Elements, range.start + 1)),
                Some(b'(' | b'[') => return self.query(&range),
                _ => {}
            },
            _ => {}
        }
        Ok(self.name(range))
    }

    fn name(&self, range: Range<usize>) -> (Kind, usize) {
        let rest = &self.text[range.clone()];
        let mut name = String::new();
        let mut wild = false;
        let mut end = rest.len();
        let mut letters = rest.char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '.' | '|' => {
                    end = at;
                    break;
                }
                '\\' => name.extend(letters.next().map(|(_, escaped)| escaped)),
                '*' | '?' => {
                    wild = true;
                    name.push(letter);
                }
                other => name.push(other),
            }
        }
        let kind = if wild {
            Kind::Wildcard(Wildcard::new(&rest[..end]))
        } else {
            let digits = !name.is_empty() && name.bytes().all(|digit| digit.is_ascii_digit());
            let place = if digits { name.parse().ok() } else { None };
            Kind::Name { name, place }
        };
        (kind, range.start + end)
    }

    /// `@name` or `@name:argument`; nothing if there is no modifier of that name.
    fn modifier(&self, range: &Range<usize>) -> Option<(Kind, usize)> {
        let rest = &self.text[range.clone()];
        let name_end = rest.find(['.', '|', ':']).unwrap_or(rest.len());
        let name = &rest[1..name_end];
        let argument = if rest[name_end..].starts_with(':') {
            let start = range.start + name_end + 1;
            start..self.argument_end(start, range.end)
        } else {
            range.start + name_end..range.start + name_end
        };
        let end = argument.end;
        Modifier::named(name, &self.text[argument]).map(|modifier| (Kind::Modifier(modifier), end))
    }

    /// JSON ends where it closes, anything else at the next `|`.
    fn argument_end(&self, start: usize, limit: usize) -> usize {
        let text = &self.text[..limit];
        let bytes = text.as_bytes();
        if matches!(bytes.get(start), Some(b'{' | b'[' | b'"')) {
            return balanced(text, start).unwrap_or(limit);
        }
        let mut at = start;
        while at < limit && bytes[at] != b'|' {
            at = match bytes[at] {
                b'{' | b'[' | b'"' | b'(' => balanced(text, at).unwrap_or(limit),
                _ => at + 1,
            };
        }
        at.min(limit)
    }

    fn unclosed(range: &Range<usize>) -> Error {
        Error::syntax("bracket is not closed", range.start..range.end)
    }

    /// `{a,"n":b}` and `[a,b]`.
    fn selection(&mut self, range: &Range<usize>) -> Result<(Kind, usize)> {
        let text = &self.text[..range.end];
        let end = balanced(text, range.start).ok_or_else(|| Self::unclosed(range))?;
        let map = text.as_bytes()[range.start] == b'{';
        let mut entries = Vec::new();
        for item in items(text, range.start + 1..end - 1) {
            let (name, path) = self.entry(item)?;
            entries.push((name, path));
        }
        let kind = if map {
            Kind::Map(entries)
        } else {
            Kind::List(entries.into_iter().map(|(_, path)| path).collect())
        };
        Ok((kind, end))
    }

    /// A path, with `"name":` before it or with the name it ends in.
    fn entry(&mut self, item: Range<usize>) -> Result<(String, Path)> {
        let written = &self.text[item.clone()];
        let start = item.start + (written.len() - written.trim_start().len());
        let end = item.end - (written.len() - written.trim_end().len());
        let item = start..end.max(start);
        if item.is_empty() {
            return Err(Error::syntax("a path is missing here", item));
        }
        let quoted = self.text[item.clone()].starts_with('"');
        let colon = if quoted { balanced(&self.text[..item.end], item.start) } else { None };
        if let Some(colon) = colon.filter(|colon| self.text[*colon..item.end].starts_with(':')) {
            let name = unquoted(&self.text[item.start..colon]);
            if colon + 1 == item.end {
                return Err(Error::syntax("a path is missing here", item));
            }
            return Ok((name, self.path(colon + 1..item.end)?));
        }
        let path = self.path(item)?;
        let name = match path.stages.iter().flatten().last().map(|segment| &segment.kind) {
            Some(Kind::Name { name, .. }) => name.clone(),
            _ => "_".to_owned(),
        };
        Ok((name, path))
    }

    /// `#(path op value)` and `#(...)#`.
    fn query(&mut self, range: &Range<usize>) -> Result<(Kind, usize)> {
        let text = &self.text[..range.end];
        let end = balanced(text, range.start + 1).ok_or_else(|| Self::unclosed(range))?;
        let inner = range.start + 2..end - 1;
        let operator = operator(text, &inner);
        let path_end = operator.as_ref().map_or(inner.end, |(at, _)| at.start);
        let left = &text[inner.start..path_end];
        let path = if left.trim().is_empty() {
            None
        } else {
            let start = inner.start + (left.len() - left.trim_start().len());
            Some(self.path(start..start + left.trim().len())?)
        };
        let condition = match operator {
            Some((at, operator)) => test(operator, text[at.end..inner.end].trim()),
            None => Test::Exists,
        };
        let query = Query { path, test: condition };
        if text[end..].starts_with('#') {
            Ok((Kind::All(query), end + 1))
        } else {
            Ok((Kind::First(query), end))
        }
    }
}

/// The end of the bracket or string that begins at `start`; `None` if it does not close.
fn balanced(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut quoted = false;
    let mut at = start;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'"' => quoted = !quoted,
            b'(' | b'[' | b'{' if !quoted => depth += 1,
            b')' | b']' | b'}' if !quoted => depth = depth.checked_sub(1)?,
            _ => {}
        }
        at += 1;
        if depth == 0 && !quoted {
            return (at <= bytes.len()).then_some(at);
        }
    }
    None
}

/// The ranges between the commas that stand in no bracket and no string.
fn items(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    if text[range.clone()].trim().is_empty() {
        return Vec::new();
    }
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut start = range.start;
    let mut at = range.start;
    while at < range.end {
        at = match bytes[at] {
            b',' => {
                found.push(start..at);
                start = at + 1;
                at + 1
            }
            b'\\' => at + 2,
            b'"' | b'(' | b'[' | b'{' => balanced(&text[..range.end], at).unwrap_or(range.end),
            _ => at + 1,
        };
    }
    found.push(start..range.end);
    found
}

/// Where the operator of a query stands, and which it is.
fn operator(text: &str, range: &Range<usize>) -> Option<(Range<usize>, &'static str)> {
    const OPERATORS: &[&str] = &["==", "!=", "!%", "<=", ">=", "=", "<", ">", "%"];
    let bytes = text.as_bytes();
    let mut at = range.start;
    while at < range.end {
        if matches!(bytes[at], b'=' | b'!' | b'<' | b'>' | b'%') {
            let found = OPERATORS.iter().find(|operator| text[at..range.end].starts_with(**operator));
            if let Some(operator) = found {
                return Some((at..at + operator.len(), operator));
            }
        }
        at = match bytes[at] {
            b'\\' => at + 2,
            b'"' | b'(' | b'[' | b'{' => balanced(&text[..range.end], at).unwrap_or(range.end),
            _ => at + 1,
        };
    }
    None
}

fn test(operator: &str, written: &str) -> Test {
    let like = match written {
        "~true" => Some(Like::True),
        "~false" => Some(Like::False),
        "~null" => Some(Like::Null),
        "~*" => Some(Like::Anything),
        _ => None,
    };
    let text = unquoted(written);
    if let Some(like) = like
        && matches!(operator, "=" | "==" | "!=")
    {
        return Test::Like { like, wanted: operator != "!=" };
    }
    let operator = match operator {
        "%" | "!%" => {
            // Escapes are for the pattern here, not for the string.
            let pattern =
                written.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(written);
            return Test::Matches { wildcard: Wildcard::new(pattern), wanted: operator == "%" };
        }
        "!=" => Operator::NotEqual,
        "<" => Operator::Less,
        "<=" => Operator::LessOrEqual,
        ">" => Operator::Greater,
        ">=" => Operator::GreaterOrEqual,
        _ => Operator::Equal,
    };
    let number = match written.parse::<i64>() {
        Ok(whole) => Some(Value::Int(whole)),
        Err(_) => written.parse::<f64>().ok().map(Value::Float),
    };
    Test::Compare { operator, value: Operand { text, number } }
}

/// The text of a JSON string, or the text itself if it is none.
fn unquoted(text: &str) -> String {
    serde_json::from_str(text).unwrap_or_else(|_| text.trim_matches('"').to_owned())
}

/// The JSON value at the start of a text, and how long it is.
fn literal(text: &str) -> Option<(Value, usize)> {
    let length = match text.bytes().next()? {
        b'{' | b'[' | b'"' => balanced(text, 0)?,
        b'+' | b'-' | b'0'..=b'9' => text
            .find(|letter: char| !matches!(letter, '0'..='9' | '+' | '-' | '.' | 'e' | 'E'))
            .unwrap_or(text.len()),
        _ => text.find(['.', '|']).unwrap_or(text.len()),
    };
    let value = serde_json::from_str(&text[..length]).ok()?;
    Some((value, length))
}
