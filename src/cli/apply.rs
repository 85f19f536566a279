//! `ccm apply`

use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint};
use serde_json::{Map, Value, json};

use super::{
    Exit,
    aliases::with_aliases,
    complete,
    failure::{Failure, heed, warn},
    load_inputs::{self, Dotenv, InputFlags, Strictness},
    nats,
    output::Output,
    report::{Format, Unchanged, Verbosity},
    run::{self, RunFlags, to_text},
    switch,
};
use crate::{
    checks::CheckState,
    declare::{Elements, HIDDEN},
    engine::{Exclusion, Selected, Selection, Selector, Task},
    manifest::{self, LoadError, Loaded, Location, Manifest},
    resource::{Resource, flattened},
    run::Run,
    session::Session,
    state::{Recall, history::RunKind},
    template::escape,
    vocabulary::RunMode,
};

const EXAMPLES: &str = "\
Examples:
  # Show what would change, with the text of files
  ccm apply site.yaml --noop

  # Apply what is tagged, with other data than the manifest's
  ccm apply site.yaml --only tag:web --data port=8081

  # Tell programs: an event per line, and exit code 3 if something changed
  ccm apply site.yaml --json --detailed-exitcode";

pub(super) fn command() -> Command {
    let command = load_inputs::arguments(run::arguments(Command::new("apply")))
        .about("Brings the machine to the state that a manifest declares")
        .after_help(EXAMPLES)
        .arg(manifest_argument().num_args(1..))
        .arg(complete::resources(
            Arg::new("only")
                .long("only")
                .value_name("REF")
                .action(ArgAction::Append)
                .help("Apply only this and what it requires: type#name, a pattern of it with *, or tag:WORD; may be repeated"),
        ))
        .arg(complete::resources(
            Arg::new("skip")
                .long("skip")
                .value_name("REF")
                .action(ArgAction::Append)
                .help("Do not apply this, named as for --only; may be repeated"),
        ))
        .arg(nats::stream_argument())
        .arg(Strictness::argument())
        .arg(switch("verify", "Read every file, also those that cannot have changed since they were last read"))
        .arg(switch("render", "Print the resolved manifest and apply nothing"))
        .arg(switch("no-report", "Leave out the summary at the end").overrides_with("report"))
        .arg(
            switch("monitor-only", "Only make the health checks: inspect and change nothing")
                .conflicts_with_all(["noop", "render"]),
        )
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("FORMAT")
                .value_parser(["nagios"])
                .requires("monitor-only")
                .conflicts_with("json")
                .help("Tell the result of --monitor-only as a plugin of Nagios does: one line, and exit code 0 to 3"),
        )
        .args(Dotenv::arguments());
    with_aliases(command, "apply").mut_arg("report", |report| report.overrides_with("no-report"))
}

/// The argument that says where a manifest is.
pub(super) fn manifest_argument() -> Arg {
    Arg::new("manifest")
        .value_name("MANIFEST")
        .value_hint(ValueHint::AnyPath)
        .required(true)
        .help("A YAML or JSON file, a folder or bundle (.tar.gz, .zip, ...) that holds manifest.yaml, the address of one, or - for standard input")
}

/// What `ccm apply` is asked.
pub(super) struct Arguments {
    manifests: Vec<Location>,
    selection: Selection,
    inputs: InputFlags,
    dotenv: Dotenv,
    run: RunFlags,
    strictness: Strictness,
    recall: Recall,
    render: bool,
    no_report: bool,
    as_plugin: bool,
}

impl Arguments {
    pub(super) fn from_matches(matches: &ArgMatches) -> Result<Self, Failure> {
        let mut run = RunFlags::from_matches(matches)?;
        if matches.get_flag("monitor-only") {
            run.task = Task::Monitor;
        }
        Ok(Self {
            manifests: load_inputs::locations(matches)?,
            selection: Selection { only: selectors(matches, "only")?, skip: selectors(matches, "skip")? },
            inputs: InputFlags::from_matches(matches)?,
            dotenv: Dotenv::from_matches(matches),
            run,
            strictness: Strictness::from_matches(matches),
            recall: if matches.get_flag("verify") { Recall::Ignored } else { Recall::Used },
            render: matches.get_flag("render"),
            no_report: matches.get_flag("no-report"),
            as_plugin: matches.get_one::<String>("format").is_some(),
        })
    }
}

pub(super) fn run(arguments: Arguments, output: &mut Output) -> Result<Exit, Failure> {
    if !arguments.as_plugin {
        return apply(arguments, output);
    }
    // A plugin has to say something, and has a code of its own for what could not be told.
    apply(arguments, output).or_else(|failure| {
        failure.report();
        output.line("UNKNOWN - nothing was checked");
        Ok(Exit::Plugin(CheckState::Unknown))
    })
}

fn apply(arguments: Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let flags = arguments.run;
    let machine = arguments.inputs.machine(arguments.recall, output)?;
    let load_inputs = arguments.dotenv.read(arguments.inputs.read(&machine)?)?;
    let load = |location: &Location| {
        arguments.strictness.judge(manifest::load(location, &load_inputs, &machine.host, &machine.state))
    };
    let manifests = load_all(&arguments.manifests, load)?;
    if flags.mode == RunMode::Real {
        flags.require_history(&manifests)?;
    }
    let selected = select(&arguments.selection, &manifests)?;
    if arguments.render {
        manifests.iter().try_for_each(|manifest| render(manifest, flags.format, output))?;
        return Ok(Exit::Success);
    }
    let mut engine = flags.engine(&machine, Exclusion::WholeRun(flags.patience), Session::begin());
    let run = Run::begin(&machine, &mut engine, &flags.origin("ccm apply", RunKind::Apply))?;
    let human = flags.format == Format::Text && flags.verbosity > Verbosity::Quiet && !arguments.as_plugin;
    for message in manifests.iter().filter_map(|manifest| manifest.settings.pre_message.as_deref()) {
        if human {
            output.message(message.trim_end());
            output.flush();
        }
    }
    let manifests_to_apply: Vec<_> = manifests.iter().zip(&selected).collect();
    let unchanged = if arguments.as_plugin { Unchanged::Unsaid } else { Unchanged::Counted };
    let (finished, mut printer) = flags.perform(run, &manifests_to_apply, unchanged, output);
    if arguments.as_plugin {
        return Ok(Exit::Plugin(printer.plugin_line()));
    }
    if !arguments.no_report {
        printer.summary(&finished);
    }
    let exit = flags.exit(&finished);
    for message in manifests.iter().filter_map(|manifest| manifest.settings.post_message.as_deref()) {
        if human && exit != Exit::Failed {
            output.message(message.trim_end());
        }
    }
    Ok(exit)
}

/// Loads all manifests, or says what is wrong with every one of them.
fn load_all(
    locations: &[Location],
    load: impl Fn(&Location) -> Result<Loaded<Manifest>, LoadError>,
) -> Result<Vec<Manifest>, Failure> {
    let (mut manifests, mut invalid) = (Vec::new(), Vec::new());
    for location in locations {
        match load(location) {
            Ok(loaded) if invalid.is_empty() => manifests.push(heed(loaded)),
            Ok(loaded) => invalid.extend(loaded.warnings),
            Err(LoadError::Invalid(reviews)) => invalid.extend(reviews),
            Err(error) => return Err(error.into()),
        }
    }
    if invalid.is_empty() { Ok(manifests) } else { Err(LoadError::Invalid(invalid).into()) }
}

/// Returns which resources of each manifest to apply. A selector that names no resource is an error, unless an included
/// manifest is not loaded that might declare one.
fn select(selection: &Selection, manifests: &[Manifest]) -> Result<Vec<Selected>, Failure> {
    let resources: Vec<&Resource> =
        manifests.iter().flat_map(|manifest| flattened(&manifest.resources)).collect();
    let is_complete = resources.iter().all(|resource| resource.switched_off.is_none());
    for selector in selection.unknown(&resources) {
        let problem = format!("no resource is named by `{selector}`");
        if is_complete {
            return Err(Failure::new(problem));
        }
        warn(&format!("{problem}; an included manifest that `control` switches off might declare it"));
    }
    Ok(manifests.iter().map(|manifest| selection.select(&manifest.resources)).collect())
}

fn selectors(matches: &ArgMatches, name: &str) -> Result<Vec<Selector>, Failure> {
    let given = matches.get_many::<String>(name).into_iter().flatten();
    given.map(|text| text.parse().map_err(|problem| Failure::new(format!("--{name}: {problem}")))).collect()
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
