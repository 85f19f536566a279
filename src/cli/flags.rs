//! Flags made from a type's properties, and the declaration that they spell.

use std::{fmt::Write, path::Path};

use clap::{Arg, ArgAction, ArgMatches, builder::PossibleValuesParser};

use super::failure::Failure;
use crate::{
    document::{Entry, Node, Scalar, Source, Span, Style, Value, from_node},
    host::{input, interrupt::Interrupt},
    manifest,
    redaction::MASK,
    resource::{AnyType, Declaration, Field, FieldKind, fields},
    vocabulary::holds_secrets,
};

/// A larger file is no content to give as a flag.
const LARGEST: u64 = 64 << 20;

/// One flag per property, and its negation where it is a switch.
pub(super) fn arguments(kind: &dyn AnyType) -> Vec<Arg> {
    // The name and the desired state have places of their own on the command line.
    fields(kind)
        .iter()
        .filter(|field| field.name != "name" && field.name != "ensure")
        .flat_map(flags)
        .collect()
}

fn flags(field: &Field) -> Vec<Arg> {
    let flag = flag(&field.name);
    let default = field.default.as_ref().filter(|_| field.kind != FieldKind::Boolean);
    let default = default.map(|value| format!(" [default: {value}]")).unwrap_or_default();
    let help = field.description.replace('\n', " ") + &default;
    let others = field.aliases.iter().map(|other| self::flag(other));
    let arg = Arg::new(field.name.clone()).long(flag.clone()).aliases(others.clone()).help(help);
    let value = field.name.to_uppercase();
    match &field.kind {
        FieldKind::Boolean => {
            let no = format!("no-{flag}");
            vec![
                arg.action(ArgAction::SetTrue).overrides_with(no.clone()),
                Arg::new(no.clone())
                    .long(no)
                    .aliases(others.map(|other| format!("no-{other}")))
                    .action(ArgAction::SetTrue)
                    .overrides_with(field.name.clone())
                    .help(format!("The opposite of --{flag}")),
            ]
        }
        FieldKind::List(_) => vec![arg.action(ArgAction::Append).value_name(value).allow_hyphen_values(true)],
        FieldKind::Map => vec![arg.action(ArgAction::Append).value_name("KEY=VALUE")],
        FieldKind::Choice(words) => {
            vec![arg.value_name(value).value_parser(PossibleValuesParser::new(words.clone()))]
        }
        FieldKind::Text | FieldKind::Number => {
            let from_file = field.file_flag.as_ref().map(|name| {
                let help = format!("A file to take --{flag} from, or - for standard input");
                Arg::new(name.clone())
                    .long(name.clone())
                    .value_name("FILE")
                    .conflicts_with(field.name.clone())
                    .help(help)
            });
            let arg = arg.value_name(value).allow_hyphen_values(true);
            [Some(arg), from_file].into_iter().flatten().collect()
        }
    }
}

/// The flag of a property.
fn flag(property: &str) -> String {
    property.replace('_', "-")
}

/// A resource that is only named, as by `ccm status`.
pub(super) fn identity(kind: &'static dyn AnyType, name: &str) -> (Source, Declaration) {
    let mut line = Line::begin("status", kind, name);
    let name_span = line.name;
    (line.source(), Declaration { kind, name: name.to_owned(), name_span, properties: Vec::new() })
}

/// The declaration that flags spell, and the command line as a text that messages can point into.
pub(super) fn declaration(
    kind: &'static dyn AnyType,
    matches: &ArgMatches,
    interrupt: &Interrupt,
) -> Result<(Source, Declaration), Failure> {
    let name = matches.get_one::<String>("name").cloned().unwrap_or_default();
    let mut line = Line::begin("ensure", kind, &name);
    let mut properties = Vec::new();
    if let Some(word) = matches.get_one::<String>("ensure") {
        let span = line.push(word);
        properties.push(entry("ensure", text(word, span)));
    }
    let secret = matches.get_flag("sensitive");
    for field in fields(kind).iter().filter(|field| field.name != "name" && field.name != "ensure") {
        let mut spelled = Spelled { line: &mut line, field, matches, interrupt, secret };
        properties.extend(spelled.property()?.map(|value| entry(&field.name, value)));
    }
    let name_span = line.name;
    Ok((line.source(), Declaration { kind, name, name_span, properties }))
}

/// One property as the flags spell it.
struct Spelled<'a> {
    line: &'a mut Line,
    field: &'a Field,
    matches: &'a ArgMatches,
    interrupt: &'a Interrupt,
    secret: bool,
}

impl Spelled<'_> {
    fn property(&mut self) -> Result<Option<Node>, Failure> {
        let (name, flag) = (&self.field.name, flag(&self.field.name));
        let given: Vec<String> = match self.field.kind {
            FieldKind::Boolean => Vec::new(),
            _ => self.matches.get_many::<String>(name).into_iter().flatten().cloned().collect(),
        };
        match &self.field.kind {
            FieldKind::Boolean => {
                let no = format!("no-{flag}");
                let word = match (self.matches.get_flag(name), self.matches.get_flag(&no)) {
                    (true, _) => "true",
                    (_, true) => "false",
                    _ => return Ok(None),
                };
                let span = self.line.push(&format!("--{}", if word == "true" { flag } else { no }));
                Ok(Some(plain(word, span)))
            }
            FieldKind::List(of) => {
                let items: Vec<Node> = given.iter().map(|value| self.item(of, &flag, value)).collect();
                Ok((!items.is_empty()).then(|| collection(Value::Seq(items))))
            }
            FieldKind::Map => {
                let entries: Result<Vec<Entry>, Failure> =
                    given.iter().map(|pair| self.pair(&flag, pair)).collect();
                Ok(Some(entries?)
                    .filter(|entries| !entries.is_empty())
                    .map(|entries| collection(Value::Map(entries))))
            }
            kind => match given.first() {
                Some(value) => Ok(Some(self.item(kind, &flag, value))),
                None => self.in_file(),
            },
        }
    }

    fn item(&mut self, kind: &FieldKind, flag: &str, value: &str) -> Node {
        let span = self.line.flag(flag, self.shown(value));
        if *kind == FieldKind::Number { plain(value, span) } else { text(value, span) }
    }

    /// What messages may quote of a value.
    fn shown<'v>(&self, value: &'v str) -> &'v str {
        if self.secret || self.field.is_secret || holds_secrets(value) { MASK } else { value }
    }

    fn pair(&mut self, flag: &str, pair: &str) -> Result<Entry, Failure> {
        let Some((key, value)) = pair.split_once('=') else {
            let shown = self.shown(pair);
            return Err(Failure::new(format!("--{flag}: \"{shown}\" is not of the form KEY=VALUE")));
        };
        let span = self.line.flag(flag, self.shown(pair));
        Ok(Entry { key: key.to_owned(), key_span: span, value: text(value, span) })
    }

    fn in_file(&mut self) -> Result<Option<Node>, Failure> {
        let Some(flag) = &self.field.file_flag else { return Ok(None) };
        let Some(path) = self.matches.get_one::<String>(flag) else { return Ok(None) };
        let read = match path.as_str() {
            "-" => input::read_stdin(LARGEST, self.interrupt),
            path => input::read_argument(Path::new(path), LARGEST, self.interrupt),
        };
        let content = read.map_err(|error| Failure::new(format!("--{flag}: cannot read {path}: {error}")))?;
        let content = String::from_utf8(content).map_err(|_| {
            Failure::new(format!("--{flag}: {path} is not UTF-8 text; use --source to copy any file"))
        })?;
        let span = self.line.flag(flag, path);
        Ok(Some(text(&content, span)))
    }
}

/// The command line, spelled once more, with the places of its words.
struct Line {
    text: String,
    name: Span,
}

impl Line {
    fn begin(command: &str, kind: &dyn AnyType, name: &str) -> Self {
        let mut line = Self { text: format!("ccm {command} {}", kind.name()), name: Span::default() };
        line.name = line.push(name);
        line
    }

    fn push(&mut self, word: &str) -> Span {
        self.text.push(' ');
        let start = self.text.len();
        self.text.push_str(&shell_words::quote(word));
        Span::new(start, self.text.len())
    }

    fn flag(&mut self, flag: &str, value: &str) -> Span {
        self.push(&format!("--{flag}"));
        self.push(value)
    }

    fn source(&mut self) -> Source {
        Source { name: "command line".to_owned(), text: std::mem::take(&mut self.text) }
    }
}

fn entry(key: &str, value: Node) -> Entry {
    Entry { key: key.to_owned(), key_span: value.span, value }
}

fn text(text: &str, span: Span) -> Node {
    Node { value: Value::Scalar(Scalar { text: text.to_owned(), style: Style::Quoted }), span }
}

fn plain(text: &str, span: Span) -> Node {
    Node { value: Value::Scalar(Scalar { text: text.to_owned(), style: Style::Plain }), span }
}

/// A list or map: its parts know their places.
fn collection(value: Value) -> Node {
    let span = match &value {
        Value::Seq(items) => items.first().map(|item| item.span),
        Value::Map(entries) => entries.first().map(|entry| entry.key_span),
        Value::Scalar(_) => None,
    };
    Node { value, span: span.unwrap_or_default() }
}

/// The type's examples as commands, for the end of its help.
pub(super) fn examples(kind: &'static dyn AnyType) -> String {
    let mut text = "Examples:".to_owned();
    for example in kind.examples() {
        for declaration in manifest::declarations(example.manifest).unwrap_or_default() {
            let title = example.title;
            let _ = write!(text, "\n  # {title}\n  {}\n", spelled(&declaration).join(" "));
        }
    }
    text
}

/// A declaration as the words of a command.
pub(super) fn spelled(declaration: &Declaration) -> Vec<String> {
    let kind = declaration.kind;
    let mut words =
        vec!["ccm".to_owned(), "ensure".to_owned(), kind.name().to_owned(), quoted(&declaration.name)];
    if let Some(state) = declaration.properties.iter().find(|entry| entry.key == "ensure") {
        words.extend(scalar(&state.value).map(quoted));
    }
    for Entry { key, value, .. } in declaration.properties.iter().filter(|entry| entry.key != "ensure") {
        let flag = flag(key);
        match (&value.value, from_node::<bool>(value)) {
            (_, Ok(true)) => words.push(format!("--{flag}")),
            (_, Ok(false)) => words.push(format!("--no-{flag}")),
            (Value::Scalar(scalar), _) => words.extend([format!("--{flag}"), quoted(&scalar.text)]),
            (Value::Seq(items), _) => {
                words.extend(
                    items.iter().filter_map(scalar).flat_map(|item| [format!("--{flag}"), quoted(item)]),
                );
            }
            (Value::Map(entries), _) => {
                let pairs = entries
                    .iter()
                    .filter_map(|entry| Some(format!("{}={}", entry.key, scalar(&entry.value)?)));
                words.extend(pairs.flat_map(|pair| [format!("--{flag}"), quoted(&pair)]));
            }
        }
    }
    words
}

fn scalar(node: &Node) -> Option<&str> {
    if let Value::Scalar(scalar) = &node.value { Some(&scalar.text) } else { None }
}

fn quoted(word: &str) -> String {
    shell_words::quote(word).into_owned()
}
