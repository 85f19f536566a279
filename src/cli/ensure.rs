//! `ccm ensure`

use clap::{Arg, ArgMatches, Command};

use super::{
    Exit, api,
    failure::{Failure, heed, show},
    flags::{self, ResourceFlags},
    host,
    load_inputs::{self, InputFlags},
    nats,
    output::Output,
    report::{Format, Unchanged},
    run::{self, Run, RunFlags, concerns_others, refresh_store},
    session::{self, SessionFolder},
};
use crate::{
    document::Diagnostics,
    engine::{Exclusion, OnFailure, Selected, Site},
    resource::{AnyType, Expansion, FieldKind, fields},
    types,
};

pub(super) fn command() -> Command {
    // Flags are made from the types' properties only when this command is used.
    Command::new("ensure")
        .about("Brings one resource to a state")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .defer(|command| {
            command
                .subcommands(
                    types::TYPES.iter().filter(|kind| kind.stands_alone()).map(|kind| of_type(*kind)),
                )
                .subcommand(api::command())
        })
}

fn of_type(kind: &'static dyn AnyType) -> Command {
    let description = kind
        .properties_schema()
        .get("description")
        .and_then(|text| text.as_str())
        .unwrap_or_default()
        .to_owned();
    let states = fields(kind).into_iter().find(|field| field.name == "ensure").map(|field| field.kind);
    let ensure = Arg::new("ensure").value_name("ENSURE").help("The desired state");
    let ensure = match states {
        Some(FieldKind::Choice(words)) => {
            ensure.value_parser(clap::builder::PossibleValuesParser::new(words))
        }
        _ => ensure,
    };
    let about = description.split("\n\n").next().unwrap_or_default().replace('\n', " ");
    load_inputs::arguments(run::arguments(Command::new(kind.name())))
        .about(about.trim_end_matches('.').to_owned())
        .arg(Arg::new("name").value_name("NAME").required(true).help("The resource's name"))
        .arg(ensure)
        .arg(session::argument())
        .arg(nats::stream_argument())
        .args(flags::arguments(kind))
        .after_help(flags::examples(kind))
}

/// What `ccm ensure TYPE` is asked.
pub(super) struct Arguments {
    resource: ResourceFlags,
    inputs: InputFlags,
    session: SessionFolder,
    run: RunFlags,
}

impl Arguments {
    pub(super) fn from_matches(kind: &str, matches: &ArgMatches) -> Result<Self, Failure> {
        Ok(Self {
            resource: ResourceFlags::from_matches(flags::known_type(kind)?, matches)?,
            inputs: InputFlags::from_matches(matches)?,
            session: SessionFolder::from_matches(matches),
            run: RunFlags::from_matches(matches),
        })
    }
}

pub(super) fn run(arguments: Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let flags = arguments.run;
    let folder = std::env::current_dir()
        .map_err(|error| Failure::new(format!("cannot tell the current folder: {error}")))?;
    let (host, memory) = (host(&output.progress, &arguments.inputs.nats)?, arguments.inputs.state.memory()?);
    let scope = heed(arguments.inputs.read_in(&folder, &host)?.without_manifest(&folder, &host, &memory)?);
    let (source, mut declaration) = arguments.resource.declaration(&host.interrupt)?;
    let mut diagnostics = Diagnostics::default();
    let completeness = Expansion::new(&scope, &source).expand(&mut declaration, &mut diagnostics);
    let resource = declaration.resolve(completeness, &mut diagnostics);
    let Some(resource) = resource.filter(|_| !diagnostics.has_errors()) else {
        return Err(Failure::problems(source, diagnostics));
    };
    show(diagnostics.review(&source).as_slice());
    let on_failure = OnFailure::Continue;
    let session = arguments.session.resume()?;
    // The report of a session counts them.
    let unchanged = if session.is_kept() { Unchanged::Counted } else { Unchanged::Shown };
    let concerns_others = concerns_others(&resource, &session);
    let refresh_store = || concerns_others.then(|| refresh_store(&memory.directory));
    let exclusion = Exclusion::WhileChanging(flags.patience);
    let site = Site {
        resources: &[resource],
        source: &source,
        working_directory: &folder,
        scope: &scope,
        on_failure,
        selected: &Selected::default(),
    };
    let run = Run { sites: &[site], exclusion, unchanged };
    let (finished, mut printer) = run.start(&flags, &host, &memory, refresh_store, session, output);
    // People see all there is to one resource in its line.
    if flags.format == Format::Json {
        printer.summary(&finished);
    }
    Ok(flags.exit(&finished))
}
