//! `ccm ensure api`: the same as `ccm ensure`, for programs that speak JSON.

use std::{
    env,
    io::{self, BufRead, BufReader, Read},
    path::PathBuf,
    sync::Arc,
};

use clap::{ArgMatches, Command};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::Value as Json;

use super::{
    Exit,
    failure::{Failure, heed},
    host,
    load_inputs::{self, InputFlags},
    output::Output,
    progress::Progress,
    recover,
    report::{Aside, Format},
    run::{concerns_others, refresh_store, to_text, waiting},
    session::{self, SessionFolder},
    switch,
};
use crate::{
    document::{self, Diagnostic, Diagnostics, Entry, Node, Scalar, Source, Style, Value, closest},
    engine::{
        Detail, Diffs, Engine, Exclusion, Foresight, Observer, OnFailure, Registrations, Report, RunMode,
        Selected, Settings, Site,
    },
    host::{
        Host,
        input::{self, InputError},
        interrupt::Stdin,
        process::close_inherited,
    },
    resource::{self, AnyType, Completeness, Declaration, Resource},
    session::Event,
    state::{Memory, Patience},
    template::Scope,
    types,
};

const REQUEST: &str = "io.choria.ccm.v1.resource.ensure.request";
const RESPONSE: &str = "io.choria.ccm.v1.resource.ensure.response";

/// The answer to a request: what happened, or why nothing was attempted.
#[derive(Serialize, JsonSchema)]
struct Response {
    /// Always `io.choria.ccm.v1.resource.ensure.response`.
    #[schemars(extend("const" = RESPONSE))]
    protocol: &'static str,
    /// What the request carried, so that a program can tell whose answer this is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "id_schema")]
    id: Option<Json>,
    /// What happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<Event>,
    /// Why nothing was attempted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    error: Option<String>,
}

impl Response {
    fn refusal(error: String) -> Self {
        Self { protocol: RESPONSE, id: None, state: None, error: Some(error) }
    }
}

fn id_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "number"] })
}

/// A longer request is refused.
const LARGEST: usize = 64 << 20;

pub(super) fn command() -> Command {
    let flags = |command: Command| {
        load_inputs::arguments(command)
            .arg(switch("noop", "Change nothing and say what would be done"))
            .arg(session::argument())
    };
    Command::new("api")
        .about("Answers requests of programs on standard input")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            flags(Command::new("pipe"))
                .about("Answers one request, in JSON or YAML")
                .arg(switch("yaml", "Answer in YAML instead of JSON")),
        )
        .subcommand(
            flags(Command::new("serve"))
                .about("Answers a JSON request per line, in one session, until the input ends"),
        )
}

/// What `ccm ensure api` is asked.
pub(super) struct Arguments {
    how: How,
    inputs: InputFlags,
    session: SessionFolder,
    mode: RunMode,
}

/// How many requests are answered.
enum How {
    /// One, in this format; text is YAML.
    Pipe(Format),
    /// One per line, in JSON.
    Serve,
}

impl Arguments {
    pub(super) fn from_matches(matches: &ArgMatches) -> Result<Self, Failure> {
        let (how, matches) = match matches.subcommand() {
            Some(("pipe", matches)) if matches.get_flag("yaml") => (How::Pipe(Format::Text), matches),
            Some(("pipe", matches)) => (How::Pipe(Format::Json), matches),
            Some(("serve", matches)) => (How::Serve, matches),
            _ => return Err(Failure::new("no command was given; see `ccm ensure api --help`")),
        };
        Ok(Self {
            how,
            inputs: InputFlags::from_matches(matches)?,
            session: SessionFolder::from_matches(matches),
            mode: if matches.get_flag("noop") { RunMode::Noop } else { RunMode::Real },
        })
    }
}

pub(super) fn run(arguments: Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let (host, memory) = (host(&output.progress, &arguments.inputs.nats)?, arguments.inputs.state.memory()?);
    let how = arguments.how;
    let mut desk =
        ApiServer::new(arguments.inputs, &arguments.session, arguments.mode, &host, &memory, output)?;
    let unreadable = |error: InputError| Failure::new(format!("cannot read the request: {error}"));
    if let How::Pipe(format) = how {
        let bytes = input::read_stdin(LARGEST as u64, &host.interrupt).map_err(unreadable)?;
        let answer =
            serde_json::to_value(desk.answer(bytes)).map_err(|error| Failure::new(error.to_string()))?;
        output.text(&to_text(&answer, format)?);
        return Ok(Exit::Success);
    }
    let interrupt = host.interrupt.clone();
    let mut requests = BufReader::new(Stdin(&interrupt));
    while let Some(line) = match next_line(&mut requests) {
        Err(_) if interrupt.requested().is_some() => None,
        line => line.map_err(|error| unreadable(InputError::Io(error)))?,
    } {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let answer = if line.len() > LARGEST {
            Response::refusal(format!("a request may not be longer than {LARGEST} bytes"))
        } else {
            desk.answer(line)
        };
        let answer = serde_json::to_string(&answer).map_err(|error| Failure::new(error.to_string()))?;
        output.line(&answer);
        output.flush();
        if host.interrupt.requested().is_some() {
            break;
        }
    }
    Ok(Exit::Success)
}

/// Returns the next line without its end, nothing when there is none. Of one that is too long, the beginning is returned
/// and the rest is passed over.
fn next_line(requests: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    requests.by_ref().take(LARGEST as u64 + 1).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() > LARGEST {
        requests.skip_until(b'\n')?;
    }
    Ok(Some(line))
}

/// Where requests are answered, one after the other, in one session.
struct ApiServer<'h> {
    host: &'h Host,
    memory: &'h Memory,
    progress: Arc<Progress>,
    engine: Engine<'h>,
    scope: Scope,
    folder: PathBuf,
    mode: RunMode,
}

impl<'h> ApiServer<'h> {
    fn new(
        inputs: InputFlags,
        session: &SessionFolder,
        mode: RunMode,
        host: &'h Host,
        memory: &'h Memory,
        output: &Output,
    ) -> Result<Self, Failure> {
        let folder = env::current_dir()
            .map_err(|error| Failure::new(format!("cannot tell the current folder: {error}")))?;
        close_inherited();
        let settings = Settings {
            mode,
            diffs: if mode == RunMode::Noop { Diffs::Wanted } else { Diffs::Unwanted },
            detail: Detail::Whole,
            exclusion: Exclusion::WhileChanging(Patience::Wait),
            foresight: Foresight::None,
            registrations: Registrations::Unwanted,
        };
        Ok(Self {
            scope: heed(inputs.read(host)?.without_manifest(&folder, host, memory)?),
            host,
            memory,
            progress: Arc::clone(&output.progress),
            engine: Engine::new(host, memory, settings, session.resume()?),
            folder,
            mode,
        })
    }

    fn answer(&mut self, request: Vec<u8>) -> Response {
        let Request { id, asked } = Request::read(request);
        let (state, error) = match asked.and_then(|(source, resource)| self.ensure(&source, resource)) {
            Ok(event) => (Some(event), None),
            Err(error) => (None, Some(error)),
        };
        Response { protocol: RESPONSE, id, state, error }
    }

    fn ensure(&mut self, source: &Source, resource: Resource) -> Result<Event, String> {
        if self.mode == RunMode::Real {
            recover(self.host, self.memory);
        }
        let refresh_store =
            concerns_others(&resource, self.engine.session()).then(|| refresh_store(&self.memory.directory));
        let site = Site {
            resources: &[resource],
            source,
            working_directory: &self.folder,
            scope: &self.scope,
            on_failure: OnFailure::Continue,
            selected: &Selected::default(),
        };
        let mut witness = Witness { event: None, aside: Aside(&self.progress) };
        let finished = self.engine.apply(site, refresh_store, &mut witness);
        if let (Some(event), Some(error)) = (&mut witness.event, finished.unrecorded) {
            event.error.push(error.to_string());
        }
        witness.event.ok_or_else(|| "interrupted before the request was attempted".to_owned())
    }
}

/// Keeps the event of the one resource.
struct Witness<'a> {
    event: Option<Event>,
    aside: Aside<'a>,
}

impl Observer for Witness<'_> {
    fn begun(&mut self, _: &Resource) {}

    fn waiting(&mut self, holder: &str) {
        waiting(holder);
    }

    fn output(&mut self, resource: &Resource, line: &str) {
        self.aside.output(resource, line);
    }

    fn finished(&mut self, report: &Report) {
        self.aside.warnings(report);
        self.event = Some(report.event.clone());
    }
}

const KEYS: [&str; 4] = ["protocol", "id", "type", "properties"];

/// A request, as far as it could be understood.
pub(crate) struct Request {
    /// A text or number of the program that asks.
    id: Option<Json>,
    /// The resource that it is about, and the request as a text that messages can point into; or what is wrong with it.
    pub(crate) asked: Result<(Source, Resource), String>,
}

impl Request {
    pub(crate) fn read(request: Vec<u8>) -> Self {
        let source = match Source::read("request", request) {
            Ok(source) => source,
            Err(problem) => return Self { id: None, asked: Err(problem.message) },
        };
        let root = match document::parse(&source) {
            Ok(root) => root,
            Err(problem) => return Self { id: None, asked: Err(told(&problem, &source)) },
        };
        let id = root.lookup("id").and_then(id);
        let asked = match resource_of(&root) {
            Ok(resource) => Ok((source, resource)),
            Err(problems) => Err(told(&problems, &source)),
        };
        Self { id, asked }
    }
}

/// Returns what can be the id of a request: a text or a number.
fn id(node: &Node) -> Option<Json> {
    document::from_node::<Json>(node).ok().filter(|id| id.is_string() || id.is_number())
}

fn resource_of(root: &Node) -> Result<Resource, Diagnostics> {
    let Some(entries) = root.as_map() else {
        let message = format!("a request is a map, not {}", root.kind());
        return Err(Diagnostic::error("request-not-a-map", message).at(root.span).into());
    };
    let mut diagnostics = Diagnostics::default();
    for entry in entries.iter().filter(|entry| !KEYS.contains(&entry.key.as_str())) {
        let problem =
            Diagnostic::error("unknown-key", format!("unknown key `{}`", entry.key)).at(entry.key_span);
        diagnostics.push(match closest(&entry.key, KEYS) {
            Some(near) => problem.with_help(format!("did you mean `{near}`?")),
            None => problem,
        });
    }
    if let Some(node) = root.lookup("id").filter(|node| id(node).is_none()) {
        let message = format!("`id` must be a string or a number, not {}", node.kind());
        diagnostics.push(Diagnostic::error("invalid-id", message).at(node.span));
    }
    if root.lookup("protocol").and_then(Node::as_str) != Some(REQUEST) {
        let span = root.lookup("protocol").map_or(root.span, |protocol| protocol.span);
        diagnostics
            .push(Diagnostic::error("wrong-protocol", format!("`protocol` must be \"{REQUEST}\"")).at(span));
    }
    let declaration = declaration(root).map_err(|problem| diagnostics.push(problem)).ok();
    let resource = declaration
        .and_then(|declaration| declaration.resolve(Completeness::Whole, &mut diagnostics))
        .filter(|_| !diagnostics.has_errors());
    resource.ok_or(diagnostics)
}

fn declaration(root: &Node) -> Result<Declaration, Diagnostic> {
    let kind = kind(root)?;
    let Some(properties) = root.lookup("properties") else {
        return Err(Diagnostic::error("missing-properties", "`properties` is missing").at(root.span));
    };
    let mut properties = properties.clone();
    // Programs say what they mean: nothing in a request is a template.
    literal(&mut properties);
    let Value::Map(mut entries) = properties.value else {
        let message = format!("`properties` must be a map, not {}", properties.value.kind());
        return Err(Diagnostic::error("properties-not-a-map", message).at(properties.span));
    };
    let name = entries.iter().position(|entry| entry.key == "name").map(|at| entries.remove(at));
    match name.map(|Entry { value, .. }| (value.span, value.value)) {
        Some((name_span, Value::Scalar(Scalar { text, style: Style::Literal }))) => {
            Ok(Declaration::new(kind, text, name_span, entries))
        }
        Some((place, _)) => {
            Err(Diagnostic::error("missing-name", "`properties.name` must be a string").at(place))
        }
        None => Err(Diagnostic::error("missing-name", "`properties.name` is missing").at(properties.span)),
    }
}

fn kind(root: &Node) -> Result<&'static dyn AnyType, Diagnostic> {
    let Some(node) = root.lookup("type") else {
        return Err(Diagnostic::error("missing-type", "`type` is missing").at(root.span));
    };
    let Some(name) = node.as_str() else {
        return Err(Diagnostic::error(
            "unknown-type",
            format!("`type` must be a string, not {}", node.kind()),
        )
        .at(node.span));
    };
    types::find(name).ok_or_else(|| {
        let known = types::names().collect::<Vec<_>>().join(", ");
        Diagnostic::error("unknown-type", format!("unknown type \"{name}\""))
            .at(node.span)
            .with_help(format!("known types: {known}"))
    })
}

fn literal(node: &mut Node) {
    match &mut node.value {
        Value::Scalar(scalar) if scalar.style == Style::Quoted => scalar.style = Style::Literal,
        Value::Scalar(scalar) => {
            // A plain string of YAML is text as well; numbers, booleans and null keep their type.
            if matches!(scalar.typed(), document::Typed::Str(_)) {
                scalar.style = Style::Literal;
            }
        }
        Value::Seq(items) => items.iter_mut().for_each(literal),
        Value::Map(entries) => entries.iter_mut().for_each(|entry| literal(&mut entry.value)),
    }
}

/// Problems in one text, each with its place.
fn told(problems: &Diagnostics, source: &Source) -> String {
    let told = |problem: &Diagnostic| {
        let place = problem.span.map(|span| source.line_column(span.start));
        let place =
            place.map(|(line, column)| format!("{}:{line}:{column}: ", source.name)).unwrap_or_default();
        let help = problem.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
        format!("{place}{}{help}", problem.message)
    };
    problems.errors().map(told).collect::<Vec<_>>().join("\n")
}

/// The schema of a request.
pub(super) fn request_schema() -> Json {
    let of_type = |kind: &&'static dyn AnyType| {
        let mut properties = resource::declaration_schema(*kind);
        properties["properties"]["name"] = serde_json::json!({ "type": "string" });
        properties["required"] = serde_json::json!(["name"]);
        serde_json::json!({ "properties": { "type": { "const": kind.name() }, "properties": properties } })
    };
    let schema = serde_json::json!({
        "type": "object",
        "required": ["protocol", "type", "properties"],
        "properties": { "protocol": { "const": REQUEST }, "id": { "type": ["string", "number"] }, "type": {}, "properties": {} },
        "additionalProperties": false,
        "oneOf": types::TYPES.iter().map(of_type).collect::<Vec<_>>(),
    });
    resource::document("ccm request", &schema)
}

/// The schema of an answer.
pub(super) fn response_schema() -> Json {
    let mut event = types::event_schema();
    if let Some(event) = event.as_object_mut() {
        event.shift_remove("$schema");
    }
    let mut schema = resource::written::<Response>().to_value();
    schema["properties"]["state"] = event;
    schema["oneOf"] = serde_json::json!([{ "required": ["state"] }, { "required": ["error"] }]);
    resource::document("ccm response", &schema)
}
