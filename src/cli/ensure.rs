//! `ccm ensure`

use std::path::Path;

use clap::{Arg, ArgMatches, Command};

use super::{
    Exit,
    aliases::with_aliases,
    api, attributes, complete,
    failure::{Failure, heed, show},
    flags::{self, ResourceFlags},
    load_inputs::{self, Dotenv, InputFlags},
    nats, or_variable,
    output::Output,
    report::{Format, Unchanged},
    run::{self, RunFlags},
    session::{self, SessionFolder},
};
use crate::{
    declare::Expansion,
    document::{Diagnostics, Review, Source},
    engine::{Exclusion, Selected},
    manifest::RuleFiles,
    resource::{AnyType, FieldKind, Manifest, Resource, fields},
    run::Run,
    state::{Recall, history::RunKind},
    types,
    vocabulary::has_scheme,
};

const EXAMPLES: &str = "\
Examples:
  # Show what would be done
  ccm ensure file /etc/motd --content 'managed by ccm' --noop

  # One command of a script refers to another: a session remembers
  eval \"$(ccm session new)\"
  ccm ensure file \"$PWD/app.conf\" --content 'port = 8080'
  ccm ensure exec true --refresh-only --subscribe \"file#$PWD/app.conf\"
  ccm session report --remove";

pub(super) fn command() -> Command {
    // Flags are made from the types' properties only when this command is used.
    Command::new("ensure")
        .about("Brings one resource to a state")
        .after_help(EXAMPLES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .defer(|command| {
            let command = command
                .subcommands(
                    types::TYPES.iter().filter(|kind| kind.behavior().stands_alone).map(|kind| listed(*kind)),
                )
                .subcommand(api::command());
            with_aliases(command.args(before_the_type()), "ensure")
        })
}

/// The flags that may also stand before the type. Help shows them behind it.
fn before_the_type() -> Vec<Arg> {
    let flags = load_inputs::arguments(run::arguments(Command::new("ensure"))).arg(session::argument());
    flags.get_arguments().map(|flag| flag.clone().global(true).hide(true)).collect()
}

/// A type as the list of them has it, with the flags that may also stand before it: those have to be there when clap hands
/// them down. The rest is made only of the type that is used.
fn listed(kind: &'static dyn AnyType) -> Command {
    let description = kind.properties_schema().get("description").and_then(|text| text.as_str());
    let about = description.unwrap_or_default().split("\n\n").next().unwrap_or_default().replace('\n', " ");
    load_inputs::arguments(run::arguments(Command::new(kind.name())))
        .arg(session::argument())
        .about(about.trim_end_matches('.').to_owned())
        .defer(|command| match types::find(command.get_name()) {
            Some(kind) => with_properties(command, kind),
            None => command,
        })
}

fn with_properties(command: Command, kind: &'static dyn AnyType) -> Command {
    let fields = fields(kind);
    let takes_address = fields.iter().any(|field| field.name == "url");
    let states = fields.into_iter().find(|field| field.name == "ensure").map(|field| field.kind);
    let ensure = Arg::new("ensure").value_name("ENSURE").help("The desired state");
    let ensure = match states {
        Some(FieldKind::Choice(words)) if takes_address => {
            ensure.value_parser(move |text: &str| state_or_address(text, &words))
        }
        Some(FieldKind::Choice(words)) => {
            ensure.value_parser(clap::builder::PossibleValuesParser::new(words))
        }
        _ => ensure,
    };
    let command = command
        .arg(complete::names(
            Arg::new("name").value_name("NAME").required(true).help("The resource's name"),
            kind,
        ))
        .arg(ensure)
        .arg(nats::stream_argument())
        .args(Dotenv::arguments())
        .args(flags::arguments(kind).into_iter().map(or_credential))
        .args(flags::check_arguments())
        .after_help(flags::examples(kind));
    with_aliases(command, &format!("ensure {}", kind.name()))
}

/// Lets the credentials of a download come from the environment, where no list of processes shows them.
fn or_credential(flag: Arg) -> Arg {
    match flag.get_id().as_str() {
        "username" => or_variable(flag, "HTTP_USERNAME"),
        "password" => or_variable(flag, "HTTP_PASSWORD"),
        _ => flag,
    }
}

/// Takes a state, or, as the Go original does, the address of an archive.
fn state_or_address(text: &str, states: &[String]) -> Result<String, String> {
    if has_scheme(text) || states.iter().any(|state| state == text) {
        return Ok(text.to_owned());
    }
    Err(format!("it is neither an address nor one of {}", states.join(", ")))
}

/// What `ccm ensure TYPE` is asked.
pub(super) struct Arguments {
    resource: ResourceFlags,
    inputs: InputFlags,
    dotenv: Dotenv,
    session: SessionFolder,
    run: RunFlags,
}

impl Arguments {
    pub(super) fn from_matches(kind: &str, matches: &ArgMatches) -> Result<Self, Failure> {
        Ok(Self {
            resource: ResourceFlags::from_matches(flags::known_type(kind)?, matches)?,
            inputs: InputFlags::from_matches(matches)?,
            dotenv: Dotenv::from_matches(matches),
            session: SessionFolder::from_matches(matches),
            run: RunFlags::from_matches(matches)?,
        })
    }
}

/// Fails where a file of rules that is there by now cannot be used, before anything is done.
fn refuse_bad_rules(resource: &Resource, source: &Source, folder: &Path) -> Result<(), Failure> {
    let mut files = RuleFiles::default();
    let problems = files.check(resource, None, folder);
    if let Some(Review { source, diagnostics }) = files.reviews.pop() {
        return Err(Failure::problems(source, diagnostics));
    }
    if problems.is_empty() { Ok(()) } else { Err(Failure::problems(source.clone(), problems)) }
}

pub(super) fn run(arguments: Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let flags = arguments.run;
    let folder = std::env::current_dir()
        .map_err(|error| Failure::new(format!("cannot tell the current folder: {error}")))?;
    let machine = arguments.inputs.machine(Recall::Used, output)?;
    let inputs = arguments.inputs.read_in(&folder, arguments.dotenv, &machine)?;
    let scope = heed(inputs.without_manifest(&folder, &machine.host, &machine.state)?);
    let (source, mut declaration) = arguments.resource.declaration(&machine.host.interrupt)?;
    let mut diagnostics = Diagnostics::default();
    let completeness = Expansion::new(&scope, &source).expand(&mut declaration, &mut diagnostics);
    attributes::complete(&mut declaration);
    let resource = declaration.resolve(completeness, &mut diagnostics);
    let Some(resource) = resource.filter(|_| !diagnostics.has_errors()) else {
        return Err(Failure::problems(source, diagnostics));
    };
    refuse_bad_rules(&resource, &source, &folder)?;
    show(diagnostics.review(&source).as_slice());
    let session = arguments.session.resume()?;
    // The report of a session counts them.
    let unchanged = if session.is_kept() { Unchanged::Counted } else { Unchanged::Shown };
    let manifest = Manifest::of(vec![resource], source, folder, scope);
    let mut engine = flags.engine(&machine, Exclusion::WhileChanging(flags.patience), session);
    let run = Run::begin(&machine, &mut engine, &flags.origin("ccm ensure", RunKind::Ensure))?;
    let (finished, mut printer) = flags.perform(run, &[(&manifest, &Selected::default())], unchanged, output);
    // People see all there is to one resource in its line.
    if flags.format == Format::Json {
        printer.summary(&finished);
    }
    Ok(flags.exit(&finished))
}
