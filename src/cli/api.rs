//! `ccm ensure api`: the same as `ccm ensure`, for programs that speak JSON.

mod request;
mod response;

use std::{
    env,
    io::{self, BufRead, BufReader, Read},
    sync::Arc,
};

use clap::{ArgAction, Args, Command, Subcommand};

pub(crate) use self::request::{Request, Texts};
use self::response::{RESPONSE, Response, state_of};
pub(super) use self::{request::request_schema, response::response_schema};
use super::{
    Exit,
    aliases::with_aliases,
    failure::{Failure, heed, waiting, warn},
    load_inputs::InputFlags,
    output::Output,
    progress::Progress,
    report::{Aside, Format},
    run::to_text,
    session::SessionFolder,
    switch,
};
use crate::{
    document::Source,
    engine::{
        Detail, Diffs, Engine, Exclusion, Observer, ReadAhead, Registrations, Report, RunMode, Selected,
        Settings, Task,
    },
    host::{
        input::{self, InputError},
        interrupt::Stdin,
    },
    resource::{Manifest, Resource},
    run::{HistorySettings, Machine, Origin, Run},
    session::Event,
    state::{Patience, Recall, history::RunKind},
};

/// A longer request is refused.
const LARGEST: usize = 64 << 20;

pub(super) fn command() -> Command {
    let command = Command::new("api").subcommand_required(true).arg_required_else_help(true);
    let command = How::augment_subcommands(command).about("Answers requests of programs on standard input");
    with_aliases(command, "ensure api")
}

/// How many requests are answered.
#[derive(Subcommand)]
pub(super) enum How {
    /// Answers one request, in JSON or YAML
    #[command(after_help = "Example:\n  ccm ensure api pipe --noop <request.json")]
    Pipe {
        #[command(flatten)]
        arguments: Arguments,
        /// Answer in YAML instead of JSON
        #[arg(long)]
        yaml: bool,
    },
    /// Answers a JSON request per line, in one session, until the input ends
    #[command(after_help = "Example:\n  ccm ensure api serve --noop <requests.jsonl")]
    Serve(Arguments),
}

/// Arguments of `ccm ensure api`.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    inputs: InputFlags,
    /// Change nothing and say what would be done
    #[arg(
        id = "noop",
        long = "noop",
        action = ArgAction::SetTrue,
        value_parser = switch(|is_dry| if is_dry { RunMode::Noop } else { RunMode::Real }),
    )]
    mode: RunMode,
    /// Expand templates in requests, which are text otherwise
    #[arg(
        long = "templates",
        action = ArgAction::SetTrue,
        value_parser = switch(|expands| if expands { Texts::Templates } else { Texts::Literal }),
    )]
    texts: Texts,
    #[command(flatten)]
    session: SessionFolder,
}

pub(super) fn run(how: How, output: &mut Output) -> Result<Exit, Failure> {
    let (format, arguments) = match how {
        How::Pipe { arguments, yaml: true } => (Some(Format::Text), arguments),
        How::Pipe { arguments, yaml: false } => (Some(Format::Json), arguments),
        How::Serve(arguments) => (None, arguments),
    };
    let machine = arguments.inputs.machine(Recall::Used, output)?;
    let interrupt = &machine.host.interrupt;
    let mut server = ApiServer::new(arguments, &machine, output)?;
    let unreadable = |error: InputError| Failure::new(format!("cannot read the request: {error}"));
    if let Some(format) = format {
        let bytes = input::read_stdin(LARGEST as u64, interrupt).map_err(unreadable)?;
        let answer =
            serde_json::to_value(server.answer(bytes)).map_err(|error| Failure::new(error.to_string()))?;
        output.text(&to_text(&answer, format)?);
        return Ok(Exit::Success);
    }
    let mut requests = BufReader::new(Stdin(interrupt));
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
            server.answer(line)
        };
        let answer = serde_json::to_string(&answer).map_err(|error| Failure::new(error.to_string()))?;
        output.line(&answer);
        output.flush();
        if interrupt.requested().is_some() {
            break;
        }
    }
    Ok(Exit::Success)
}

/// Returns the next line without its line ending, if there is one. Returns the beginning of a line that is too long, and
/// skips the rest.
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
struct ApiServer<'m> {
    machine: &'m Machine,
    progress: Arc<Progress>,
    engine: Engine<'m>,
    /// The resource of a request, with what all requests have in common.
    manifest: Manifest,
    texts: Texts,
    history: HistorySettings,
}

impl<'m> ApiServer<'m> {
    fn new(
        Arguments { inputs, session, mode, texts }: Arguments,
        machine: &'m Machine,
        output: &Output,
    ) -> Result<Self, Failure> {
        let Machine { host, state, .. } = machine;
        let folder = env::current_dir()
            .map_err(|error| Failure::new(format!("cannot tell the current folder: {error}")))?;
        let settings = Settings {
            mode,
            diffs: if mode == RunMode::Noop { Diffs::Wanted } else { Diffs::Unwanted },
            detail: Detail::Whole,
            exclusion: Exclusion::WhileChanging(Patience::Wait),
            read_ahead: ReadAhead::None,
            registrations: Registrations::Unwanted,
            task: Task::Apply,
            ignores_failures: false,
        };
        let scope = heed(inputs.read(machine)?.without_manifest(&folder, host, state)?);
        let source = Source { name: "request".to_owned(), text: String::new() };
        Ok(Self {
            manifest: Manifest::of(Vec::new(), source, folder, scope),
            machine,
            progress: Arc::clone(&output.progress),
            engine: Engine::new(host, state, settings, session.resume()?),
            texts,
            history: machine.environment.history().map_err(Failure::new)?,
        })
    }

    fn answer(&mut self, request: Vec<u8>) -> Response {
        let Request { id, asked, warnings } = Request::read(request, self.texts, &self.manifest.scope);
        for text in &warnings {
            warn(text);
        }
        let event = asked.and_then(|(source, resource)| self.ensure(source, resource));
        let (state, error) = match event.and_then(|event| state_of(&event)) {
            Ok(state) => (Some(state), None),
            Err(error) => (None, Some(error)),
        };
        Response { protocol: RESPONSE, id, state, error, warnings }
    }

    fn ensure(&mut self, source: Source, mut resource: Resource) -> Result<Event, String> {
        let (session, mode) = (self.engine.session(), self.engine.settings().mode);
        resource.replace_patterns(|pattern| session.matching(pattern, mode));
        self.manifest.resources = vec![resource];
        self.manifest.source = source;
        let mut witness = Witness { event: None, aside: Aside(&self.progress) };
        let origin = Origin { history: self.history, ..Origin::new("ccm ensure api", RunKind::Api) };
        let mut run =
            Run::begin(self.machine, &mut self.engine, &origin).map_err(|refused| refused.to_string())?;
        let finished = run.apply(&[(&self.manifest, &Selected::default())], &mut witness);
        run.finish();
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
