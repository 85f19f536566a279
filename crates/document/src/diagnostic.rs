//! Errors and warnings in a source, and their rendering.

use super::{Source, Span};
use crate::visible::{visible, visible_between_colours, visible_line};
use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use serde::Serialize;
use std::{fmt, ops::Range};

/// An error or warning in a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable id of the kind of problem, such as `unknown-property`.
    pub id: &'static str,
    pub severity: Severity,
    pub message: String,
    pub span: Option<Span>,
    /// Text under the marked source; can be empty.
    pub label: String,
    pub help: Option<String>,
    /// Other relevant positions with labels.
    pub also: Vec<(Span, String)>,
    pub excerpt: Excerpt,
}

/// Severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The document cannot be used.
    Error,
    /// The document is probably not what the author intended.
    Warning,
    /// The document is valid; the author might want to know this.
    Note,
}

/// A diagnostic for programs. Line and column are counted from 1.
#[derive(Debug, Serialize)]
pub struct Located<'a> {
    id: &'static str,
    severity: Severity,
    message: &'a str,
    file: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<&'a str>,
}

impl fmt::Display for Located<'_> {
    /// Writes the diagnostic on one line: `FILE:LINE:COLUMN: MESSAGE`.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.file)?;
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.message)
    }
}

/// Whether the source at the position can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excerpt {
    Shown,
    /// The line might contain a secret: only the position is shown.
    Hidden,
}

impl Diagnostic {
    /// Creates an error, which makes the document unusable.
    pub fn error(id: &'static str, message: impl Into<String>) -> Self {
        Self::new(id, Severity::Error, message.into())
    }

    /// Creates a warning about a probable error.
    pub fn warning(id: &'static str, message: impl Into<String>) -> Self {
        Self::new(id, Severity::Warning, message.into())
    }

    fn new(id: &'static str, severity: Severity, message: String) -> Self {
        Diagnostic {
            id,
            severity,
            message,
            span: None,
            label: String::new(),
            help: None,
            also: Vec::new(),
            excerpt: Excerpt::Shown,
        }
    }

    pub fn at(self, span: Span) -> Self {
        Diagnostic { span: Some(span), ..self }
    }

    /// Returns the offset by which diagnostics are sorted.
    pub fn start(&self) -> u32 {
        self.span.map_or(0, |span| span.start)
    }

    /// Returns the diagnostic with line and column.
    pub fn located<'a>(&'a self, source: &'a Source) -> Located<'a> {
        let (line, column) = self.span.map(|span| source.line_column(span.start)).unzip();
        let (id, severity, help) = (self.id, self.severity, self.help.as_deref());
        Located { id, severity, message: &self.message, file: &source.name, line, column, help }
    }

    pub fn with_label(self, label: impl Into<String>) -> Self {
        Diagnostic { label: label.into(), ..self }
    }

    pub fn with_help(self, help: impl Into<String>) -> Self {
        Diagnostic { help: Some(help.into()), ..self }
    }

    pub fn with_also(mut self, span: Span, label: impl Into<String>) -> Self {
        self.also.push((span, label.into()));
        self
    }
}

/// Whether rendered diagnostics have terminal colors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    On,
    Off,
}

/// Renders diagnostics: message, position, the marked line, and help, separated by blank lines.
pub fn render(diagnostics: &[Diagnostic], source: &Source, colour: Colour) -> String {
    let renderer = match colour {
        Colour::On => Renderer::styled(),
        Colour::Off => Renderer::plain(),
    };
    let lines = Lines::of(&source.text);
    let reports = diagnostics.iter().map(|one| renderer.render(&[report(one, source, &lines)]));
    let reports = reports.map(|report| without_nameless_origins(&report)).collect::<Vec<_>>().join("\n");
    // The renderer keeps C1 and bidirectional control characters in quoted lines.
    visible_between_colours(&reports).into_owned()
}

/// Removes the header that the renderer prints for an excerpt without a file name.
fn without_nameless_origins(report: &str) -> String {
    let is_nameless =
        |line: &str| line.contains(":::") && anstream::adapter::strip_str(line).to_string().trim() == ":::";
    report.split('\n').filter(|line| !is_nameless(line)).flat_map(|line| [line, "\n"]).collect()
}

/// Maximum distance between positions in one excerpt.
const EXCERPT_BYTES: usize = 64 * 1024;

fn report<'a>(diagnostic: &'a Diagnostic, source: &'a Source, lines: &Lines) -> Group<'a> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let mut group =
        Group::with_title(level.primary_title(visible(&diagnostic.message).into_owned()).id(diagnostic.id));
    let mut places = Vec::new();
    if let Some(span) = diagnostic.span {
        places.push((span, AnnotationKind::Primary, &diagnostic.label));
    }
    places.extend(diagnostic.also.iter().map(|(span, label)| (*span, AnnotationKind::Context, label)));
    let marks: Vec<_> = places
        .into_iter()
        .map(|(span, kind, label)| (lines.mark(&source.text, span), kind, visible(label).into_owned()))
        .collect();
    let start = marks.iter().map(|(mark, ..)| mark.start).min().unwrap_or(0);
    let end = marks.iter().map(|(mark, ..)| mark.end).max().unwrap_or(0);
    let groups = if end - start <= EXCERPT_BYTES {
        vec![marks]
    } else {
        marks.into_iter().map(|mark| vec![mark]).collect()
    };
    for marks in groups {
        let Some((first, ..)) = marks.first() else { continue };
        let is_long = lines.longest(&marks, source.text.len()) > LONGEST_LINE;
        match diagnostic.excerpt {
            Excerpt::Shown if !is_long => group = group.element(excerpt(source, lines, marks)),
            Excerpt::Shown => {
                for mark in marks {
                    let place = origin(source, mark.0.start);
                    group = group.element(place).element(piece(source, lines, mark));
                }
            }
            Excerpt::Hidden => group = group.element(origin(source, first.start)),
        }
    }
    match &diagnostic.help {
        Some(help) => group.element(Level::HELP.message(visible(help).into_owned())),
        None => group,
    }
}

/// Longest line that is shown completely.
const LONGEST_LINE: usize = 4096;
/// Number of bytes that are shown before and after a mark in a longer line.
const BEFORE: usize = 40;
const BEHIND: usize = 80;

type Mark = (Range<usize>, AnnotationKind, String);

/// Returns the lines with the marks. The renderer gets only these, because it scans its complete input.
fn excerpt<'a>(source: &'a Source, lines: &Lines, marks: Vec<Mark>) -> Snippet<'a, Annotation<'a>> {
    let first = marks.iter().map(|(mark, ..)| lines.number(mark.start)).min().unwrap_or(0);
    let last = marks.iter().map(|(mark, ..)| lines.number(mark.end)).max().unwrap_or(0);
    let text = lines.starts[first]..lines.end(last, source.text.len());
    let offset = text.start;
    Snippet::source(&source.text[text]).path(visible_line(&source.name)).line_start(first + 1).annotations(
        marks.into_iter().map(|(mark, kind, label)| {
            let annotation = kind.span(mark.start - offset..mark.end - offset);
            if label.is_empty() { annotation } else { annotation.label(label) }
        }),
    )
}

fn origin(source: &Source, at: usize) -> Origin<'_> {
    let (line, column) = source.line_column(Span::new(at, at).start);
    Origin::path(visible_line(&source.name)).line(line).char_column(column)
}

/// Returns the part of a long line around a mark.
fn piece<'a>(source: &Source, lines: &Lines, (mark, kind, label): Mark) -> Snippet<'a, Annotation<'a>> {
    let (text, number) = (&source.text, lines.number(mark.start));
    let line = lines.starts[number]..lines.end(number, text.len());
    let start = text.floor_char_boundary(mark.start.saturating_sub(BEFORE)).max(line.start);
    let end = text.floor_char_boundary(mark.start + BEHIND).min(line.end);
    let cut = |is_cut: bool| if is_cut { "…" } else { "" };
    let before = cut(start > line.start);
    let shown = format!("{before}{}{}", text[start..end].trim_end_matches(['\n', '\r']), cut(end < line.end));
    let at = |place: usize| place.min(end) - start + before.len();
    let annotation = kind.span(at(mark.start)..at(mark.end));
    let annotation = if label.is_empty() { annotation } else { annotation.label(label) };
    Snippet::source(shown).line_start(number + 1).annotation(annotation)
}

/// Start offsets of the lines of a text.
struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    fn of(text: &str) -> Self {
        // A byte order mark is not part of the first line.
        let first = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let rest = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n').map(|(at, _)| at + 1);
        Lines { starts: std::iter::once(first).chain(rest).collect() }
    }

    /// Returns the line of an offset, counted from 0.
    fn number(&self, at: usize) -> usize {
        self.starts.partition_point(|&start| start <= at).saturating_sub(1)
    }

    /// Returns the length of the longest marked line.
    fn longest(&self, marks: &[Mark], length: usize) -> usize {
        let lines = marks.iter().map(|(mark, ..)| self.number(mark.start));
        lines.map(|line| self.end(line, length) - self.starts[line]).max().unwrap_or(0)
    }

    fn end(&self, line: usize, length: usize) -> usize {
        self.starts.get(line + 1).copied().unwrap_or(length)
    }

    /// Returns the part of a span to mark: within the text, and only on its first line.
    fn mark(&self, text: &str, span: Span) -> Range<usize> {
        let start = text.floor_char_boundary(span.start as usize).max(self.starts[0]);
        let line = &text[start..self.end(self.number(start), text.len())];
        let line_end = start + line.trim_end_matches(['\n', '\r']).len();
        start..text.floor_char_boundary(span.end as usize).clamp(start, line_end)
    }
}
