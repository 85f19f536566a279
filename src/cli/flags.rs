//! Flags made from a type's properties, and the declaration that they spell.

use std::{fmt::Write, path::Path};

use clap::{Arg, ArgAction, ArgMatches, ValueHint, builder::PossibleValuesParser};

use super::{aliases, complete, failure::Failure, words::Words};
use crate::{
    declare::Declaration,
    document::{Entry, Node, Scalar, Source, Span, Style, Value, from_node, parse, to_value},
    host::{input, interrupt::Interrupt},
    manifest,
    redaction::MASK,
    resource::{AnyType, Field, FieldKind, fields},
    types,
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
        .flat_map(|field| flags(kind, field))
        .collect()
}

fn flags(kind: &dyn AnyType, field: &Field) -> Vec<Arg> {
    let flag = flag(&field.name);
    let default = field.default.as_ref().filter(|_| field.kind != FieldKind::Boolean);
    let default = default.map(|value| format!(" [default: {value}]")).unwrap_or_default();
    let help = field.description.replace('\n', " ") + &default;
    let others = field.aliases.iter().map(|other| self::flag(other));
    let arg = Arg::new(field.name.clone()).long(flag.clone()).aliases(others.clone()).help(help);
    let arg = complete::values(arg, kind, &field.name);
    let value = field.name.to_uppercase();
    match &field.kind {
        FieldKind::Boolean => {
            let no = format!("no-{flag}");
            let others = others.map(|other| format!("no-{other}"));
            vec![arg.action(ArgAction::SetTrue).overrides_with(no), opposite(field).aliases(others)]
        }
        FieldKind::BooleanOr(word) => {
            let values = PossibleValuesParser::new(["true".to_owned(), "false".to_owned(), word.clone()]);
            let arg = arg.num_args(0..=1).require_equals(true).default_missing_value("true");
            let arg = arg.hide_possible_values(true).value_name(word.to_uppercase()).value_parser(values);
            vec![arg.overrides_with(format!("no-{flag}")), opposite(field)]
        }
        FieldKind::List(of) if **of == FieldKind::Map => {
            let form = if field.name == POST { "PATTERN=COMMAND" } else { "YAML" };
            vec![arg.action(ArgAction::Append).value_name(form).allow_hyphen_values(true)]
        }
        FieldKind::List(_) => vec![arg.action(ArgAction::Append).value_name(value).allow_hyphen_values(true)],
        FieldKind::Map => vec![arg.action(ArgAction::Append).value_name("KEY=VALUE")],
        // What templates see as data is what `--data` of every command says.
        FieldKind::Data => Vec::new(),
        FieldKind::Choice(words) => {
            vec![arg.value_name(value).value_parser(PossibleValuesParser::new(words.clone()))]
        }
        FieldKind::Text | FieldKind::Number | FieldKind::Any => {
            let from_file = field.file_flag.as_ref().map(|name| {
                let help = format!("A file to take --{flag} from, or - for standard input");
                Arg::new(name.clone())
                    .long(name.clone())
                    .value_name("FILE")
                    .value_hint(ValueHint::FilePath)
                    .conflicts_with(field.name.clone())
                    .help(help)
            });
            let arg = arg.value_name(value).allow_hyphen_values(true);
            [Some(arg), from_file].into_iter().flatten().collect()
        }
    }
}

/// Returns the flag that switches a boolean property off.
fn opposite(field: &Field) -> Arg {
    let flag = flag(&field.name);
    let no = format!("no-{flag}");
    Arg::new(no.clone())
        .long(no)
        .action(ArgAction::SetTrue)
        .overrides_with(field.name.clone())
        .help(format!("The opposite of --{flag}"))
}

/// The flags that make health checks, each with the key that its value is for.
const CHECKS: [(&str, &str, &str, &str); 4] = [
    ("check", "command", "COMMAND", "A plugin of Nagios that has to be OK afterwards; may be repeated"),
    ("check-goss", "goss_file", "FILE", "Rules of goss that have to hold afterwards; may be repeated"),
    ("check-http", "http", "URL", "An address that a server has to answer at afterwards; may be repeated"),
    ("check-tcp", "tcp", "[HOST:]PORT", "A port that somebody has to answer at afterwards; may be repeated"),
];

/// Returns the flags that make health checks.
pub(super) fn check_arguments() -> Vec<Arg> {
    let check = |(flag, _, value, help)| {
        Arg::new(flag)
            .long(flag)
            .value_name(value)
            .action(ArgAction::Append)
            .allow_hyphen_values(true)
            .help(help)
    };
    let tries = Arg::new("check-tries")
        .long("check-tries")
        .value_name("N")
        .default_value("5")
        .value_parser(clap::value_parser!(u32))
        .help("How often each of these checks may fail");
    let sleep = Arg::new("check-sleep")
        .long("check-sleep")
        .value_name("DURATION")
        .default_value("1s")
        .help("Pause between two attempts at a check");
    CHECKS.into_iter().map(check).chain([tries, sleep]).collect()
}

/// The flag of a property.
fn flag(property: &str) -> String {
    property.replace('_', "-")
}

/// A resource that is only named, as by `ccm status`.
pub(super) fn identity(kind: &'static dyn AnyType, name: &str) -> (Source, Declaration) {
    let mut line = Line::begin("status", kind, name);
    let name_span = line.name;
    (line.source(), Declaration::new(kind, name.to_owned(), name_span, Vec::new()))
}

/// Returns the type of this name.
pub(super) fn known_type(name: &str) -> Result<&'static dyn AnyType, Failure> {
    types::find(aliases::type_name(name)).ok_or_else(|| Failure::new(format!("unknown type \"{name}\"")))
}

/// A resource as arguments spell it.
pub(super) struct ResourceFlags {
    kind: &'static dyn AnyType,
    name: String,
    ensure: Option<String>,
    properties: Vec<Property>,
    checks: CheckFlags,
    /// Whether no value may be quoted.
    sensitive: bool,
}

/// Health checks as arguments spell them.
struct CheckFlags {
    /// Each with its flag and the key that its value is for.
    given: Vec<(&'static str, &'static str, String)>,
    tries: String,
    sleep: String,
}

impl CheckFlags {
    fn from_matches(matches: &ArgMatches) -> Self {
        let mut given = Vec::new();
        for (flag, key, ..) in CHECKS {
            let values = matches.get_many::<String>(flag).into_iter().flatten();
            given.extend(values.map(|value| (flag, key, value.clone())));
        }
        let tries = matches.get_one::<u32>("check-tries").map(ToString::to_string).unwrap_or_default();
        let sleep = matches.get_one::<String>("check-sleep").cloned().unwrap_or_default();
        Self { given, tries, sleep }
    }

    /// Adds the checks to those that a property holds, if it does.
    fn add_to(&self, properties: &mut Vec<Entry>, line: &mut Line, sensitive: bool) {
        if self.given.is_empty() {
            return;
        }
        let mut checks = Vec::new();
        for (flag, key, value) in &self.given {
            let span = line.flag(flag, if sensitive || holds_secrets(value) { MASK } else { value });
            let entries = vec![
                entry(key, text(value, span)),
                entry("tries", plain(&self.tries, span)),
                entry("try_sleep", text(&self.sleep, span)),
            ];
            checks.push(Node { value: Value::Map(entries), span });
        }
        let known = properties.iter_mut().find(|entry| entry.key == "health_checks");
        match known.map(|entry| &mut entry.value.value) {
            Some(Value::Seq(items)) => items.extend(checks),
            _ => properties.push(entry("health_checks", collection(Value::Seq(checks)))),
        }
    }
}

/// A property, and what was given for it.
struct Property {
    field: Field,
    given: Given,
}

pub(super) enum Given {
    Switch(bool),
    /// One value, or several for a list or a map.
    Values(Vec<String>),
    /// The value is what this file holds.
    File(String),
}

impl ResourceFlags {
    pub(super) fn from_matches(kind: &'static dyn AnyType, matches: &ArgMatches) -> Result<Self, Failure> {
        let words = Words::from_matches(kind, matches)?;
        let mut properties = Vec::new();
        for field in fields(kind).into_iter().filter(|field| field.name != "name" && field.name != "ensure") {
            let given = given(&field, matches);
            let given = words.given(&field.name, given)?;
            properties.extend(given.map(|given| Property { field, given }));
        }
        Ok(Self {
            kind,
            name: matches.get_one("name").cloned().ok_or_else(|| Failure::new("no name was given"))?,
            ensure: words.ensure,
            properties,
            checks: CheckFlags::from_matches(matches),
            sensitive: matches.get_flag("sensitive"),
        })
    }

    /// Returns the declaration that the flags spell, and the command line as a text that messages can point into.
    pub(super) fn declaration(self, interrupt: &Interrupt) -> Result<(Source, Declaration), Failure> {
        let Self { kind, name, ensure, properties: given, checks, sensitive } = self;
        let mut line = Line::begin("ensure", kind, &name);
        let mut properties = Vec::new();
        if let Some(word) = ensure {
            let span = line.push(&word);
            properties.push(entry("ensure", text(&word, span)));
        }
        for Property { field, given } in &given {
            let mut spelled = Spelled { line: &mut line, field, interrupt, sensitive };
            properties.push(entry(&field.name, spelled.property(given)?));
        }
        checks.add_to(&mut properties, &mut line, sensitive);
        let name_span = line.name;
        Ok((line.source(), Declaration::new(kind, name, name_span, properties)))
    }
}

/// Returns what was given for a property, if anything was.
fn given(field: &Field, matches: &ArgMatches) -> Option<Given> {
    if field.kind == FieldKind::Data {
        return None;
    }
    if field.kind == FieldKind::Boolean {
        let no = format!("no-{}", flag(&field.name));
        return match (matches.get_flag(&field.name), matches.get_flag(&no)) {
            (true, _) => Some(Given::Switch(true)),
            (_, true) => Some(Given::Switch(false)),
            _ => None,
        };
    }
    if let FieldKind::BooleanOr(_) = field.kind {
        let no = matches.get_flag(&format!("no-{}", flag(&field.name)));
        return match matches.get_one::<String>(&field.name).map(String::as_str) {
            Some("true") => Some(Given::Switch(true)),
            Some("false") => Some(Given::Switch(false)),
            Some(word) => Some(Given::Values(vec![word.to_owned()])),
            None => no.then_some(Given::Switch(false)),
        };
    }
    if let Some(values) = matches.get_many::<String>(&field.name) {
        return Some(Given::Values(values.cloned().collect()));
    }
    Some(Given::File(matches.get_one::<String>(field.file_flag.as_ref()?)?.clone()))
}

/// The property whose items can be written as `PATTERN=COMMAND`.
const POST: &str = "post";

/// Returns whether a text is `PATTERN=COMMAND`, and not a map in YAML or JSON.
fn is_pair(text: &str) -> bool {
    let pattern = text.split_once('=').map(|(pattern, _)| pattern);
    pattern.is_some_and(|pattern| !pattern.trim_start().starts_with('{') && !pattern.contains(": "))
}

/// One property as the flags spell it.
struct Spelled<'a> {
    line: &'a mut Line,
    field: &'a Field,
    interrupt: &'a Interrupt,
    sensitive: bool,
}

impl Spelled<'_> {
    fn property(&mut self, given: &Given) -> Result<Node, Failure> {
        let flag = flag(&self.field.name);
        match (given, &self.field.kind) {
            (Given::Switch(true), _) => Ok(plain("true", self.line.push(&format!("--{flag}")))),
            (Given::Switch(false), _) => Ok(plain("false", self.line.push(&format!("--no-{flag}")))),
            (Given::File(path), _) => self.in_file(path),
            (Given::Values(values), FieldKind::List(of)) if **of == FieldKind::Map => {
                let item = |value: &String| match self.field.name.as_str() {
                    POST if is_pair(value) => Ok(collection(Value::Map(vec![self.pair(&flag, value)?]))),
                    _ => self.map(&flag, value),
                };
                let items: Result<_, Failure> = values.iter().map(item).collect();
                Ok(collection(Value::Seq(items?)))
            }
            (Given::Values(values), FieldKind::List(of)) => {
                Ok(collection(Value::Seq(values.iter().map(|value| self.item(of, &flag, value)).collect())))
            }
            (Given::Values(values), FieldKind::Map) => {
                let entries: Result<_, Failure> = values.iter().map(|pair| self.pair(&flag, pair)).collect();
                Ok(collection(Value::Map(entries?)))
            }
            (Given::Values(values), kind) => {
                Ok(self.item(kind, &flag, values.first().map_or("", String::as_str)))
            }
        }
    }

    fn item(&mut self, kind: &FieldKind, flag: &str, value: &str) -> Node {
        let span = self.line.flag(flag, self.shown(value));
        if *kind == FieldKind::Number { plain(value, span) } else { text(value, span) }
    }

    /// A value that is a map, written as YAML or JSON.
    fn map(&mut self, flag: &str, value: &str) -> Result<Node, Failure> {
        let span = self.line.flag(flag, self.shown(value));
        let source = Source { name: format!("--{flag}"), text: value.to_owned() };
        let mut node = match parse(&source) {
            Ok(node) if node.as_map().is_some() => node,
            _ => {
                let shown = self.shown(value);
                return Err(Failure::new(format!("--{flag}: \"{shown}\" is not a map in YAML or JSON")));
            }
        };
        place(&mut node, span);
        Ok(node)
    }

    /// What messages may quote of a value.
    fn shown<'v>(&self, value: &'v str) -> &'v str {
        if self.sensitive || self.field.is_secret || holds_secrets(value) { MASK } else { value }
    }

    fn pair(&mut self, flag: &str, pair: &str) -> Result<Entry, Failure> {
        let Some((key, value)) = pair.split_once('=').or_else(|| pair.split_once(':')) else {
            let shown = self.shown(pair);
            return Err(Failure::new(format!("--{flag}: \"{shown}\" is not of the form KEY=VALUE")));
        };
        let span = self.line.flag(flag, self.shown(pair));
        Ok(Entry { key: key.to_owned(), key_span: span, value: text(value, span) })
    }

    fn in_file(&mut self, path: &str) -> Result<Node, Failure> {
        let flag = self.field.file_flag.as_deref().unwrap_or(&self.field.name);
        let read = match path {
            "-" => input::read_stdin(LARGEST, self.interrupt),
            path => input::read_argument(Path::new(path), LARGEST, self.interrupt),
        };
        let content = read.map_err(|error| Failure::new(format!("--{flag}: cannot read {path}: {error}")))?;
        let content = String::from_utf8(content).map_err(|_| {
            Failure::new(format!("--{flag}: {path} is not UTF-8 text; use --source to copy any file"))
        })?;
        let span = self.line.flag(flag, path);
        Ok(text(&content, span))
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
    Node { value: Value::Scalar(Scalar::new(text.to_owned(), Style::Quoted)), span }
}

fn plain(text: &str, span: Span) -> Node {
    Node { value: Value::Scalar(Scalar::new(text.to_owned(), Style::Plain)), span }
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

/// Gives a value and all in it the place of the flag that spells it.
fn place(node: &mut Node, span: Span) {
    node.span = span;
    match &mut node.value {
        Value::Scalar(_) => {}
        Value::Seq(items) => items.iter_mut().for_each(|item| place(item, span)),
        Value::Map(entries) => {
            for entry in entries {
                entry.key_span = span;
                place(&mut entry.value, span);
            }
        }
    }
}

/// Stands for a space at which help must not be broken into lines. See [`with_spaces`].
const FIXED_SPACE: char = '\u{a0}';

/// Commands are broken before they are wider than this.
const WIDEST_COMMAND: usize = 78;

/// Returns the type's examples as commands that can be pasted into a shell, for the end of its help.
pub(super) fn examples(kind: &'static dyn AnyType) -> String {
    let mut text = "Examples:".to_owned();
    for example in kind.examples() {
        let declarations = manifest::declarations_in(example.manifest).unwrap_or_default();
        let refers = |entry: &Entry| entry.key == "subscribe" || entry.key == "require";
        let needs_session = declarations.iter().any(|declaration| declaration.properties.iter().any(refers));
        let mut commands: Vec<String> =
            declarations.iter().map(|declaration| broken(&spelled(declaration))).collect();
        if needs_session {
            commands.insert(0, "eval \"$(ccm session new)\"".to_owned());
            commands.push("ccm session report --remove".to_owned());
        }
        // A second line of a title would be a command for a shell.
        for line in wrapped(example.title, WIDEST_COMMAND - "  # ".len()) {
            let _ = write!(text, "\n  # {}", line.replace(' ', &FIXED_SPACE.to_string()));
        }
        for command in commands {
            let _ = write!(text, "\n  {}", command.replace(' ', &FIXED_SPACE.to_string()));
        }
        text.push('\n');
    }
    text
}

/// Returns a text in lines that are no wider than this, unless a word is.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Returns help with the spaces in it at which it was not to be broken.
pub(super) fn with_spaces(help: &str) -> String {
    help.replace(FIXED_SPACE, " ")
}

/// Returns words as a command, in as many lines as its width needs.
fn broken(words: &[String]) -> String {
    let (mut text, mut column) = (String::new(), 2);
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        // A flag stays with its value.
        let mut part = word.clone();
        if word.starts_with("--") {
            while let Some(value) = words.next_if(|next| !next.starts_with("--")) {
                part = format!("{part} {value}");
            }
        }
        let width = part.chars().count();
        // The rest of a line is for the space before the backslash, and the backslash.
        if column > 2 && column + 1 + width + 2 > WIDEST_COMMAND {
            text.push_str(" \\\n    ");
            column = 4;
        } else if !text.is_empty() {
            text.push(' ');
            column += 1;
        }
        // A text of several lines goes on at the beginning of one.
        column = part.rfind('\n').map_or(column + width, |at| part[at + 1..].chars().count());
        text.push_str(&part);
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
                let items = items.iter().map(|item| {
                    scalar(item).map_or_else(
                        || serde_json::to_string(&to_value(item)).unwrap_or_default(),
                        str::to_owned,
                    )
                });
                words.extend(items.flat_map(|item| [format!("--{flag}"), quoted(&item)]));
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
