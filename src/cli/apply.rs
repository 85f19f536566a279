//! `ccm apply`

use clap::{Arg, ArgMatches, Command};
use serde_json::{Map, Value, json};

use super::{
    Exit,
    failure::{Failure, heed, warn},
    host,
    load_inputs::{self, InputFlags},
    output::Output,
    report::Format,
    required,
    run::{self, Run, RunFlags, refresh_store, to_text, waiting},
    switch,
};
use crate::{
    engine::{Exclusion, OnFailure, RunMode},
    host::Host,
    manifest::{self, Location, Manifest},
    resource::{Elements, HIDDEN, Resource},
    session::Session,
    state::{Held, Memory, RunLock, StateError},
    template::escape,
};

pub(super) fn command() -> Command {
    load_inputs::arguments(run::arguments(Command::new("apply")))
        .about("Brings the machine to the state that a manifest declares")
        .arg(manifest_argument())
        .arg(switch("render", "Print the resolved manifest and apply nothing"))
        .arg(switch("no-report", "Leave out the summary at the end"))
}

/// The argument that says where a manifest is.
pub(super) fn manifest_argument() -> Arg {
    Arg::new("manifest")
        .value_name("MANIFEST")
        .required(true)
        .help("A YAML or JSON file, a folder or bundle (.tar.gz, .zip, ...) that holds manifest.yaml, the address of one, or - for standard input")
}

/// What `ccm apply` is asked.
pub(super) struct Arguments {
    manifest: Location,
    inputs: InputFlags,
    run: RunFlags,
    render: bool,
    no_report: bool,
}

impl Arguments {
    pub(super) fn from_matches(matches: &ArgMatches) -> Result<Self, Failure> {
        Ok(Self {
            manifest: load_inputs::location(&required::<String>(matches, "manifest")?)?,
            inputs: InputFlags::from_matches(matches)?,
            run: RunFlags::from_matches(matches),
            render: matches.get_flag("render"),
            no_report: matches.get_flag("no-report"),
        })
    }
}

pub(super) fn run(arguments: Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let (host, memory) = (host(&output.progress)?, arguments.inputs.state.memory()?);
    let flags = arguments.run;
    let load_inputs = arguments.inputs.read(&host)?;
    let manifest = heed(manifest::load(&arguments.manifest, &load_inputs, &host, &memory)?);
    if arguments.render {
        render(&manifest, flags.format, output)?;
        return Ok(Exit::Success);
    }
    let _lock = lock(&flags, &host, &memory)?;
    let settings = &manifest.settings;
    let human = flags.format == Format::Text;
    if let Some(message) = settings.pre_message.as_deref().filter(|_| human) {
        output.message(message.trim_end());
        output.flush();
    }
    let on_failure = if settings.fail_on_error { OnFailure::Stop } else { OnFailure::Continue };
    let run = Run {
        resources: &manifest.resources,
        source: &manifest.source,
        folder: &manifest.working_directory,
        scope: &manifest.scope,
        on_failure,
        exclusion: Exclusion::WholeRun,
    };
    let refresh_store = refresh_store(&memory.directory);
    let (finished, mut printer) =
        run.start(&flags, &host, &memory, Some(refresh_store), Session::begin(), output);
    if !arguments.no_report {
        printer.summary(&finished);
    }
    let exit = flags.exit(&finished);
    if let Some(message) = settings.post_message.as_deref().filter(|_| human && exit != Exit::Failed) {
        output.message(message.trim_end());
    }
    Ok(exit)
}

/// Makes sure that no other run is in progress, unless this one changes nothing anyway.
fn lock(flags: &RunFlags, host: &Host, memory: &Memory) -> Result<Option<RunLock>, Failure> {
    if flags.mode == RunMode::Noop {
        return Ok(None);
    }
    match memory.directory.lock("ccm apply", flags.patience, &host.interrupt, waiting) {
        Ok(Ok(lock)) => Ok(Some(lock)),
        Ok(Err(Held { who, waits_for_us: true })) => Err(Failure::new(format!(
            "this run was started by one that is in progress: {who}; inside of it, use `ccm ensure`"
        ))),
        Ok(Err(Held { who, .. })) => Err(Failure::new(format!("another run is in progress: {who}"))),
        Err(error @ StateError::Interrupted) => Err(Failure::new(error.to_string())),
        Err(error) => Err(Failure::new(format!("{error}; another place can be named with --state-dir"))),
    }
}

/// Prints the manifest as it would be applied.
fn render(manifest: &Manifest, format: Format, output: &mut Output) -> Result<(), Failure> {
    let rendered =
        |resource: &Resource, elements| resource.rendered(&manifest.scope, &manifest.source, elements);
    let is_hiding =
        |resource: &Resource| rendered(resource, Elements::Shown).values().any(|value| value == HIDDEN);
    let hides = manifest.resources.iter().any(is_hiding);
    let elements = if hides { Elements::Hidden } else { Elements::Shown };
    let mut resources = Vec::new();
    for resource in &manifest.resources {
        let properties = rendered(resource, elements);
        let named = Map::from_iter([(ccm_expr::escape(&resource.name), Value::Object(properties))]);
        resources.push(json!({ resource.kind.name(): [named] }));
    }
    let (mut settings, mut data) = (json!(manifest.settings), json!(manifest.scope.data()));
    [&mut settings, &mut data].into_iter().for_each(escape);
    settings["resources"] = resources.into();
    let mut document = Map::new();
    if hides {
        warn("the data is left out: what is hidden may come from it");
    } else if data != json!({}) {
        document.insert("data".to_owned(), data);
    }
    document.insert("ccm".to_owned(), settings);
    output.text(&to_text(&document.into(), format)?);
    Ok(())
}
