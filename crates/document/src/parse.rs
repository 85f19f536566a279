//! Builds the tree from YAML events of `saphyr-parser`. JSON and simple YAML have readers of their own.
//!
//! Decisions that YAML leaves open: keys are strings (`8080:` is the key `8080`), duplicate keys are errors, tags other
//! than those of the core schema are errors, and a source contains one document. The merge key `<<` of YAML 1.1 takes a
//! map or a list of maps and is replaced by their entries. Written keys win, and earlier maps of the list win over
//! later ones. A quoted `"<<"` is an ordinary key.

use super::keys::{Key, drop_duplicates, resolve_merge};
use super::limits::{Copies, MAX_DEPTH, Weight, check_length, too_deep};
use super::{
    Diagnostic, Diagnostics, Entry, Node, Scalar, Source, Span, Style, Typed, Value, json, plain_yaml, syntax,
};
use saphyr_parser::{Event, Parser, ScalarStyle, Tag};
use std::borrow::Cow;
use std::collections::HashMap;

/// A document with its errors.
pub struct Parsed {
    /// The readable part of the document; of duplicate keys, the first.
    pub root: Node,
    pub diagnostics: Diagnostics,
    /// Spans where the tree is incomplete. Further errors there follow from an error that is already reported.
    pub gaps: Vec<Span>,
}

/// Parses the document of a source without errors. An empty text is a null node.
pub fn parse(source: &Source) -> Result<Node, Diagnostics> {
    let Parsed { root, diagnostics, .. } = read(source)?;
    if diagnostics.is_empty() { Ok(root) } else { Err(diagnostics) }
}

/// Parses the document of a source. Fails only on errors after which the rest has no meaning.
pub fn read(source: &Source) -> Result<Parsed, Diagnostics> {
    let text = source.text.as_str();
    check_length(text)?;
    if !json::may_be_json(text) {
        return yaml(text);
    }
    match json::parse(text) {
        Ok((root, found)) => Ok(Parsed { root, diagnostics: found.into(), gaps: Vec::new() }),
        Err(json::Refusal::Invalid(problem)) => Err(problem.into()),
        // Brackets are also YAML. If the text is neither, report the error of the reader that got further.
        Err(json::Refusal::NotJson(problem)) => yaml(text).map_err(|problems| {
            let furthest = |problem: &Diagnostic| problem.span.map_or(0, |span| span.start);
            let of_yaml = problems.iter().map(furthest).max();
            if of_yaml.is_some_and(|at| at <= furthest(&problem)) { problem.into() } else { problems }
        }),
    }
}

fn yaml(text: &str) -> Result<Parsed, Diagnostics> {
    if let Some(root) = plain_yaml::read(text) {
        return Ok(Parsed { root, diagnostics: Diagnostics::default(), gaps: Vec::new() });
    }
    all_of_yaml(text)
}

/// Returns the position of the first anchor or alias of a YAML text.
pub fn first_anchor(text: &str) -> Option<Span> {
    if !text.contains(['&', '*']) {
        return None;
    }
    let mut marks = Marks::new(text);
    Parser::new_from_str(text).map_while(Result::ok).find_map(|(event, span)| match event {
        Event::Scalar(_, _, anchor, _) | Event::SequenceStart(anchor, _) | Event::MappingStart(anchor, _)
            if anchor > 0 =>
        {
            Some(marks.span(&span))
        }
        Event::Alias(_) => Some(marks.span(&span)),
        _ => None,
    })
}

/// Parses a text with the complete YAML parser.
pub(super) fn all_of_yaml(text: &str) -> Result<Parsed, Diagnostics> {
    if let Some(problem) = syntax::unknown_directive(text) {
        return Err(problem.into());
    }
    let mut builder = Builder::new(text);
    if let Err(problem) = builder.run() {
        builder.problems.push(problem);
        return Err(builder.problems.into());
    }
    let Builder { root, problems, gaps, .. } = builder;
    let root = root.unwrap_or_else(|| Node::null(Span::default()));
    Ok(Parsed { root, diagnostics: problems.into(), gaps })
}

/// A list or map that is not complete.
struct Open {
    items: Items,
    start: u32,
    written: Written,
    anchor: usize,
}

/// Indices of its first items among those of all incomplete lists and maps.
enum Items {
    Seq { first: usize },
    Map { first: usize, key: Key, merge: Option<Span> },
}

/// Whether a list or map is in brackets, so that its end is visible.
#[derive(Clone, Copy, PartialEq)]
enum Written {
    Flow,
    Block,
}

struct Anchored {
    node: Node,
    weight: Weight,
}

struct Builder<'a> {
    text: &'a str,
    marks: Marks<'a>,
    open: Vec<Open>,
    /// Items of incomplete lists and entries of incomplete maps, the innermost last. Complete ones move to a vector of
    /// exact size, because there are many small ones.
    items: Vec<Node>,
    entries: Vec<Entry>,
    root: Option<Node>,
    anchors: HashMap<usize, Anchored>,
    copies: Copies,
    problems: Vec<Diagnostic>,
    gaps: Vec<Span>,
    /// End of the last value, which is also the end of the blocks that it closes.
    last_end: u32,
}

impl<'a> Builder<'a> {
    fn new(text: &'a str) -> Self {
        Builder {
            text,
            marks: Marks::new(text),
            open: Vec::new(),
            items: Vec::new(),
            entries: Vec::new(),
            root: None,
            anchors: HashMap::new(),
            copies: Copies::default(),
            problems: Vec::new(),
            gaps: Vec::new(),
            last_end: 0,
        }
    }

    fn run(&mut self) -> Result<(), Diagnostic> {
        let mut documents = 0;
        for event in Parser::new_from_str(self.text) {
            let (event, span) = event.map_err(|error| {
                let at = self.marks.byte(error.marker().index());
                self.in_brackets(syntax::problem(self.text, error.info(), at))
            })?;
            match event {
                Event::DocumentStart(_) => {
                    documents += 1;
                    if documents > 1 {
                        let span = self.marks.span(&span);
                        return Err(Diagnostic::error("second-document", "a second document begins here")
                            .at(span)
                            .with_help("a source holds one document: remove the `---` and what follows it"));
                    }
                }
                Event::Scalar(text, style, anchor, tag) => {
                    let span = self.marks.span(&span);
                    self.scalar(&text, style, anchor, tag, span)?;
                }
                Event::SequenceStart(anchor, tag) => {
                    let span = self.marks.span(&span);
                    self.begin(Items::Seq { first: self.items.len() }, anchor, tag, span)?;
                }
                Event::MappingStart(anchor, tag) => {
                    let span = self.marks.span(&span);
                    let items = Items::Map { first: self.entries.len(), key: Key::Awaited, merge: None };
                    self.begin(items, anchor, tag, span)?;
                }
                Event::SequenceEnd | Event::MappingEnd => self.end(&span)?,
                Event::Alias(anchor) => {
                    let span = self.marks.span(&span);
                    self.alias(anchor, span)?;
                }
                Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
            }
        }
        Ok(())
    }

    /// Adds the unclosed bracket to an error, if the bracket is on an earlier line and might be the cause. At the end
    /// of the text, it is the cause.
    fn in_brackets(&self, problem: Diagnostic) -> Diagnostic {
        let innermost = self.open.last().filter(|open| open.written == Written::Flow);
        let (Some(Open { start, .. }), Some(span)) = (innermost, problem.span) else { return problem };
        let bracket = Span { start: *start, end: start + 1 };
        if span.start as usize >= self.text.trim_end().len() {
            return Diagnostic::error("yaml-syntax", "this bracket is never closed").at(bracket);
        }
        match self.text.get(*start as usize..span.start as usize) {
            Some(between) if between.contains('\n') => {
                problem.with_also(bracket, "this bracket is not closed yet")
            }
            _ => problem,
        }
    }

    fn scalar(
        &mut self,
        text: &str,
        written: ScalarStyle,
        anchor: usize,
        tag: Option<Cow<'a, Tag>>,
        span: Span,
    ) -> Result<(), Diagnostic> {
        let is_empty = written == ScalarStyle::Plain && text.is_empty();
        let has_properties = anchor > 0 || tag.is_some();
        let properties = has_properties.then(|| syntax::properties(self.text, span.start));
        let start = match &properties {
            Some(properties) if !is_empty => properties.end,
            None if matches!(written, ScalarStyle::Literal | ScalarStyle::Folded) => {
                syntax::indicator(self.text, self.last_end, b"|>").unwrap_or(span.start)
            }
            _ => span.start,
        };
        let span = match written {
            ScalarStyle::Plain if is_empty && !has_properties => self.nothing(span),
            ScalarStyle::Plain => Span { start, ..span },
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => syntax::quoted(self.text, start),
            ScalarStyle::Literal | ScalarStyle::Folded => {
                syntax::without_blank_tail(self.text, start, span.end)
            }
        };
        let style = if written == ScalarStyle::Plain { Style::Plain } else { Style::Quoted };
        // The parser's buffers have 128 spare bytes, which adds up in a large document. A copy of exact size leaves the
        // buffer to the next scalar; shrinking would fragment the heap.
        let text = text.to_owned();
        let mut scalar = Scalar::new(text, style);
        if let Some(tag) = tag {
            let tag_span = properties.and_then(|properties| properties.tag).unwrap_or(span);
            if let Err(problem) =
                retype(&mut scalar, &tag, &self.text[tag_span.start as usize..tag_span.end as usize])
            {
                self.miss(problem.at(tag_span), span);
            }
        }
        self.last_end = span.end;
        self.finish(Node { value: Value::Scalar(scalar), span }, anchor)
    }

    /// Returns the position of a missing value: after the `:` or `-` that expects it.
    fn nothing(&self, span: Span) -> Span {
        if self.open.is_empty() {
            return Span::empty(span.start);
        }
        Span::empty(syntax::indicator_end(self.text, self.last_end).unwrap_or(self.last_end))
    }

    fn begin(
        &mut self,
        items: Items,
        anchor: usize,
        tag: Option<Cow<'a, Tag>>,
        span: Span,
    ) -> Result<(), Diagnostic> {
        if self.open.len() >= MAX_DEPTH {
            return Err(too_deep(Span::empty(span.start)));
        }
        let mut start = span.start;
        if anchor > 0 || tag.is_some() {
            let properties = syntax::properties(self.text, start);
            start = properties.end;
            if let (Some(tag), Some(place)) = (tag, properties.tag) {
                let fitting = if matches!(items, Items::Seq { .. }) { "seq" } else { "map" };
                if core_tag(&tag) != Some(fitting) {
                    let written = &self.text[place.start as usize..place.end as usize];
                    self.miss(unknown_tag(written).at(place), Span::empty(start));
                }
            }
        }
        // The event of a block ends at the first item; that of a bracketed collection ends after the bracket.
        let is_bracket = matches!(self.text.as_bytes().get(start as usize), Some(b'[' | b'{'));
        let written = if is_bracket && start < span.end { Written::Flow } else { Written::Block };
        // A list that is not indented under its key is reported after its first `-`.
        let is_under_key = matches!(self.open.last(), Some(Open { items: Items::Map { .. }, .. }));
        if written == Written::Block && is_under_key && matches!(items, Items::Seq { .. }) {
            start = syntax::indicator(self.text, self.last_end, b"-").unwrap_or(start);
        }
        self.last_end = start;
        self.open.push(Open { items, start, written, anchor });
        Ok(())
    }

    fn end(&mut self, span: &saphyr_parser::Span) -> Result<(), Diagnostic> {
        let Some(Open { items, start, written, anchor }) = self.open.pop() else { return Ok(()) };
        if written == Written::Flow {
            self.last_end = self.marks.span(span).start + 1;
        }
        let value = match items {
            Items::Seq { first } => Value::Seq(self.items.drain(first..).collect()),
            Items::Map { first, merge, .. } => {
                let mut entries: Vec<Entry> = self.entries.drain(first..).collect();
                self.problems.extend(drop_duplicates(&mut entries));
                if let Some(merge) = merge
                    && let Err(problem) = resolve_merge(&mut entries, merge)
                {
                    self.miss(problem, merge);
                }
                Value::Map(entries)
            }
        };
        self.finish(Node { value, span: Span { start, end: self.last_end } }, anchor)
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Result<(), Diagnostic> {
        self.last_end = span.end;
        let Some(anchored) = self.anchors.get(&anchor) else {
            return Err(Diagnostic::error(
                "recursive-alias",
                "the alias stands within the value that it repeats",
            )
            .at(span));
        };
        self.copies.charge(anchored.weight, span)?;
        if self.open.len() + anchored.weight.depth > MAX_DEPTH {
            return Err(too_deep(span));
        }
        let value = anchored.node.value.clone();
        self.finish(Node { value, span }, 0)
    }

    /// Adds a complete value to its list or map.
    fn finish(&mut self, node: Node, anchor: usize) -> Result<(), Diagnostic> {
        if anchor > 0 {
            let weight = Weight::of(&node);
            self.copies.charge(weight, node.span)?;
            self.anchors.insert(anchor, Anchored { node: node.clone(), weight });
        }
        match self.open.last_mut().map(|open| &mut open.items) {
            None => self.root = Some(node),
            Some(Items::Seq { .. }) => self.items.push(node),
            Some(Items::Map { key, merge, .. }) => match std::mem::replace(key, Key::Awaited) {
                Key::Text(key, key_span) => self.entries.push(Entry { key, key_span, value: node }),
                Key::Refused => {}
                Key::Awaited => {
                    if matches!(&node.value, Value::Scalar(Scalar { text, style: Style::Plain, .. }) if text == "<<")
                    {
                        merge.get_or_insert(node.span);
                    }
                    let place = node.span;
                    match Key::of(node) {
                        Ok(text) => *key = text,
                        Err(problem) => {
                            *key = Key::Refused;
                            self.miss(problem, place);
                        }
                    }
                }
            },
        }
        Ok(())
    }

    /// Records an error that leaves the tree incomplete at a span.
    fn miss(&mut self, problem: Diagnostic, gap: Span) {
        // For `{{ x }}` without quotes, which is a map within a map as a key, the outer error is enough.
        while self.problems.pop_if(|inner| inner.span.is_some_and(|place| gap.contains(place))).is_some() {}
        self.gaps.push(gap);
        self.problems.push(problem);
    }
}

/// Applies a tag to a scalar.
fn retype(scalar: &mut Scalar, tag: &Tag, written: &str) -> Result<(), Diagnostic> {
    let is_not_specific = tag.handle.is_empty() && tag.suffix == "!";
    let wanted = core_tag(tag).unwrap_or_default();
    if is_not_specific || wanted == "str" {
        scalar.style = Style::Quoted;
        return Ok(());
    }
    scalar.style = Style::Plain;
    let fits = match (wanted, scalar.typed()) {
        ("null", Typed::Null)
        | ("bool", Typed::Bool(_))
        | ("int", Typed::Int(_) | Typed::UInt(_))
        | ("float", Typed::Float(_)) => return Ok(()),
        ("float", Typed::Int(value)) => Ok(format!("{value}.0")),
        ("float", Typed::UInt(value)) => Ok(format!("{value}.0")),
        ("null" | "bool" | "int" | "float" | "map" | "seq", _) => {
            Err(Diagnostic::error("invalid-tag", format!("this value is not what its tag `{written}` says")))
        }
        _ => Err(unknown_tag(written)),
    };
    scalar.text = fits?;
    Ok(())
}

/// Returns `int` for `!!int` and for its long form `!<tag:yaml.org,2002:int>`.
fn core_tag(tag: &Tag) -> Option<&str> {
    if tag.is_yaml_core_schema() {
        return Some(&tag.suffix);
    }
    tag.suffix.strip_prefix("tag:yaml.org,2002:").filter(|_| tag.handle.is_empty())
}

fn unknown_tag(written: &str) -> Diagnostic {
    Diagnostic::error("unknown-tag", format!("the tag `{written}` is not known here"))
        .with_help("quote the value if it is text that begins with `!`, else remove the tag")
}

/// Converts the parser's character offsets to byte offsets. For offsets in almost ascending order, it scans the text
/// once.
struct Marks<'a> {
    text: &'a str,
    is_ascii: bool,
    characters: usize,
    bytes: usize,
}

impl<'a> Marks<'a> {
    fn new(text: &'a str) -> Self {
        Marks { text, is_ascii: text.is_ascii(), characters: 0, bytes: 0 }
    }

    fn byte(&mut self, character: usize) -> usize {
        if self.is_ascii {
            return character.min(self.text.len());
        }
        if let Some(ahead) = character.checked_sub(self.characters) {
            let rest = &self.text[self.bytes..];
            self.bytes += rest.char_indices().nth(ahead).map_or(rest.len(), |(at, _)| at);
        } else {
            let back = self.characters - character - 1;
            self.bytes = self.text[..self.bytes].char_indices().rev().nth(back).map_or(0, |(at, _)| at);
        }
        self.characters = character;
        self.bytes
    }

    fn span(&mut self, span: &saphyr_parser::Span) -> Span {
        let start = self.byte(span.start.index());
        let end = self.byte(span.end.index().max(span.start.index()));
        Span::new(start, end)
    }
}
