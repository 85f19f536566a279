//! The formats of data documents: YAML and JSON, and dotenv and INI files, in which every value is a string.

use std::collections::HashMap;

use crate::document::{
    self, Diagnostic, Diagnostics, Entry, Node, Parsed, Scalar, Source, Span, Style, Value,
};

/// The format of a data document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// YAML or JSON, which have the same tree.
    Yaml,
    /// `KEY=value` lines.
    Dotenv,
    /// Sections of `key = value` lines.
    Ini,
}

impl Format {
    /// Returns the format that the name of a file stands for.
    pub(crate) fn of(name: &str) -> Self {
        let ends_with = |ending: &str| {
            name.get(name.len().saturating_sub(ending.len())..)
                .is_some_and(|end| end.eq_ignore_ascii_case(ending))
        };
        if ends_with(".env") {
            Self::Dotenv
        } else if ends_with(".ini") {
            Self::Ini
        } else {
            Self::Yaml
        }
    }

    /// Returns whether documents of this format have no sections `data`, `hierarchy` and `overrides`.
    pub(crate) fn is_all_data(self) -> bool {
        self != Self::Yaml
    }

    /// Returns the characters that begin a comment.
    pub(crate) fn comment_marks(self) -> &'static [char] {
        if self == Self::Ini { &['#', ';'] } else { &['#'] }
    }

    pub(crate) fn read(self, source: &Source) -> Result<Parsed, Diagnostics> {
        let read = match self {
            Self::Yaml => return document::read(source),
            Self::Dotenv => dotenv(&source.text),
            Self::Ini => ini(&source.text),
        };
        let (root, diagnostics) = read;
        Ok(Parsed { root, diagnostics, gaps: Vec::new() })
    }
}

/// A line with its position, without its line break.
struct Line<'t> {
    text: &'t str,
    start: usize,
}

impl Line<'_> {
    fn span(&self) -> Span {
        Span::new(self.start, self.start + self.text.len())
    }

    /// Returns the span of a part of the line.
    fn part(&self, part: &str) -> Span {
        let start = self.start + (part.as_ptr() as usize - self.text.as_ptr() as usize);
        Span::new(start, start + part.len())
    }
}

fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut start = 0;
    text.split('\n').map(move |line| {
        let this = Line { text: line.strip_suffix('\r').unwrap_or(line), start };
        start += line.len() + 1;
        this
    })
}

fn entry(line: &Line, key: &str, value: &str, text: String) -> Entry {
    let scalar = Scalar::new(text, Style::Quoted);
    let value = Node { value: Value::Scalar(scalar), span: line.part(value) };
    Entry { key: key.to_owned(), key_span: line.part(key), value }
}

/// Returns a map without the entries whose keys it has already.
fn map(mut entries: Vec<Entry>, span: Span, diagnostics: &mut Diagnostics) -> Node {
    let mut first: HashMap<String, Span> = HashMap::new();
    entries.retain(|entry| {
        let known = first.get(&entry.key).copied();
        match known {
            Some(known) => {
                let message = format!("duplicate key `{}`", entry.key);
                let problem = Diagnostic::error("duplicate-key", message).at(entry.key_span);
                diagnostics.push(problem.with_also(known, "first defined here"));
            }
            None => drop(first.insert(entry.key.clone(), entry.key_span)),
        }
        known.is_none()
    });
    Node { value: Value::Map(entries), span }
}

/// Reads `KEY=value` lines by the rules of SOPS: no quotes, and `\n` is a line break.
fn dotenv(text: &str) -> (Node, Diagnostics) {
    let (mut entries, mut diagnostics) = (Vec::new(), Diagnostics::default());
    for line in lines(text) {
        if line.text.trim().is_empty() || line.text.starts_with('#') {
            continue;
        }
        let Some((key, value)) = line.text.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            diagnostics.push(Diagnostic::error("dotenv-syntax", "expected KEY=value").at(line.span()));
            continue;
        };
        entries.push(entry(&line, key, value, value.replace("\\n", "\n")));
    }
    (map(entries, Span::new(0, text.len()), &mut diagnostics), diagnostics)
}

/// The section of keys before the first section.
const DEFAULT_SECTION: &str = "DEFAULT";

/// Reads sections of `key = value` lines.
fn ini(text: &str) -> (Node, Diagnostics) {
    let (mut sections, mut diagnostics) = (Vec::new(), Diagnostics::default());
    let mut entries: Vec<Entry> = Vec::new();
    let (mut name, mut place) = (DEFAULT_SECTION.to_owned(), Span::default());
    for line in lines(text) {
        let trimmed = line.text.trim();
        if trimmed.is_empty() || trimmed.starts_with([';', '#']) {
            continue;
        }
        if let Some(header) = trimmed.strip_prefix('[') {
            let Some((next, _)) = header.split_once(']') else {
                let problem = Diagnostic::error("ini-syntax", "this bracket is never closed");
                diagnostics.push(problem.at(line.part(trimmed)));
                continue;
            };
            close(&mut sections, (name, place), std::mem::take(&mut entries), &mut diagnostics);
            (name, place) = (next.trim().to_owned(), line.part(next));
            continue;
        }
        let Some((key, value)) = trimmed.split_once(['=', ':']) else {
            let problem = Diagnostic::error("ini-syntax", "expected key = value");
            diagnostics.push(problem.at(line.part(trimmed)));
            continue;
        };
        let value = value.trim();
        entries.push(entry(&line, key.trim(), value, unquoted(value).to_owned()));
    }
    close(&mut sections, (name, place), entries, &mut diagnostics);
    (map(sections, Span::new(0, text.len()), &mut diagnostics), diagnostics)
}

fn close(
    sections: &mut Vec<Entry>,
    (key, key_span): (String, Span),
    entries: Vec<Entry>,
    diagnostics: &mut Diagnostics,
) {
    if entries.is_empty() && key == DEFAULT_SECTION {
        return;
    }
    let end = entries.last().map_or(key_span, |last| last.value.span);
    let value = map(entries, Span { start: key_span.start, end: end.end }, diagnostics);
    sections.push(Entry { key, key_span, value });
}

/// Returns a value without its quotes, or without the comment after it.
fn unquoted(value: &str) -> &str {
    let quote = value.chars().next().filter(|first| matches!(first, '"' | '\'' | '`'));
    let inner = quote.and_then(|quote| value[1..].strip_suffix(quote));
    match inner {
        Some(inner) => inner,
        None => value.split([';', '#']).next().filter(|_| quote.is_none()).unwrap_or(value).trim_end(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::to_value;

    fn value(format: Format, text: &str) -> String {
        let source = Source { name: "test".to_owned(), text: text.to_owned() };
        let parsed = format.read(&source).unwrap();
        assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
        to_value(&parsed.root).to_text()
    }

    #[test]
    fn dotenv_values_are_strings_without_quotes_of_their_own() {
        let text = "# comment\nA=1\n\nB=a\\nb\r\nC=\"x\" # y\nD==\nE=";
        let expected = r#"{"A":"1","B":"a\nb","C":"\"x\" # y","D":"=","E":""}"#;
        assert_eq!(value(Format::Dotenv, text), expected);
    }

    #[test]
    fn ini_sections_are_maps() {
        let text = "a = 1\n; comment\n[one]\nb=\"two words\"\nc = x ; comment\n[ two ]\nd:e=f\n";
        let expected = r#"{"DEFAULT":{"a":"1"},"one":{"b":"two words","c":"x"},"two":{"d":"e=f"}}"#;
        assert_eq!(value(Format::Ini, text), expected);
    }

    #[test]
    fn duplicate_keys_and_other_lines_are_errors() {
        for (format, text) in [
            (Format::Dotenv, "A=1\nA=2"),
            (Format::Dotenv, "no value"),
            (Format::Dotenv, "=x"),
            (Format::Ini, "[a]\nx=1\nx=2"),
            (Format::Ini, "[a]\nx=1\n[a]\ny=1"),
            (Format::Ini, "[a\nx=1"),
            (Format::Ini, "word"),
        ] {
            let source = Source { name: "test".to_owned(), text: text.to_owned() };
            let parsed = format.read(&source).unwrap();
            assert_eq!(parsed.diagnostics.errors().count(), 1, "{text}");
        }
    }

    #[test]
    fn format_follows_the_name() {
        for (name, format) in [
            ("web.env", Format::Dotenv),
            (".env", Format::Dotenv),
            ("https://example.net/a.INI", Format::Ini),
            ("a.json", Format::Yaml),
            ("env", Format::Yaml),
        ] {
            assert_eq!(Format::of(name), format, "{name}");
        }
    }
}
