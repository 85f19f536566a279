//! `ccm ensure`

use std::path::Path;

use clap::{
    Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueHint, builder::PossibleValuesParser,
};

use super::{
    Exit,
    aliases::with_aliases,
    api, attributes, complete,
    dotenv::DotenvFlags,
    failure::{Failure, heed, show},
    flags::{self, ResourceFlags},
    load_inputs::InputFlags,
    machine::StreamFlag,
    or_variable,
    output::Output,
    push::RollFlags,
    remote::Pushed,
    report::{Format, Unchanged},
    run::RunFlags,
    session::SessionFolder,
};
use crate::{
    declare::Expansion,
    document::{Diagnostics, Review, Source},
    engine::{Exclusion, Selected},
    manifest::RuleFiles,
    resource::{AnyType, FieldKind, Manifest, Resource, fields},
    state::history::RunKind,
    types,
    vocabulary::has_scheme,
};

/// The type that takes its source after its name, as in the Go original.
pub(super) const SCAFFOLD: &str = "scaffold";

const EXAMPLES: &str = "\
Examples:
  # Show what would be done
  ccm ensure file /etc/motd --content 'managed by ccm' --noop

  # One command of a script refers to another: a session remembers
  eval \"$(ccm session new)\"
  ccm ensure file \"$PWD/app.conf\" --content 'port = 8080'
  ccm ensure exec true --refresh-only --subscribe \"file#$PWD/app.conf\"
  ccm session report --remove";

/// Headings of the help of a type.
const PROPERTIES: &str = "Properties";
const OPTIONS: &str = "Options";

/// Arguments of `ccm ensure`. The flags of a type are made from its properties, so they are not read before the type is known.
pub(super) struct Arguments {
    matches: ArgMatches,
    pushed: Option<Pushed>,
}

impl Arguments {
    /// Takes what a controller sent.
    pub(super) fn accept(&mut self, pushed: Pushed) {
        self.pushed = Some(pushed);
    }
}

impl FromArgMatches for Arguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self { matches: matches.clone(), pushed: None })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.matches = matches.clone();
        Ok(())
    }
}

impl Args for Arguments {
    fn augment_args(command: Command) -> Command {
        let types = types::TYPES.iter().filter(|kind| kind.behavior().stands_alone);
        command
            .after_help(EXAMPLES)
            .subcommand_required(true)
            .arg_required_else_help(true)
            .disable_help_subcommand(true)
            .subcommands(types.map(|kind| listed(*kind)))
            .subcommand(api::command())
            .args(before_the_type())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// Adds the flags that all types have.
fn with_run_flags(command: Command) -> Command {
    let command = RunFlags::augment_args(command.next_help_heading(OPTIONS));
    let command = SessionFolder::augment_args(InputFlags::augment_args(command));
    let command = DotenvFlags::augment_args(StreamFlag::augment_args(command));
    RollFlags::augment_args(command)
}

/// Returns the flags that can also precede the type. Help lists them after the type.
fn before_the_type() -> Vec<Arg> {
    let flags = with_run_flags(Command::new("ensure"));
    flags.get_arguments().map(|flag| flag.clone().global(true).hide(true)).collect()
}

/// A type as the list of them has it, with the flags that may also stand before it: those have to be there when clap hands
/// them down. The rest is made only of the type that is used.
fn listed(kind: &'static dyn AnyType) -> Command {
    let description = kind.properties_schema().get("description").and_then(|text| text.as_str());
    let about = description.unwrap_or_default().split("\n\n").next().unwrap_or_default().replace('\n', " ");
    let help = Arg::new("help").short('h').long("help").action(ArgAction::Help);
    // The headings of the help have the order of their first arguments.
    let command = Command::new(kind.name())
        .next_help_heading(PROPERTIES)
        .arg(complete::names(
            Arg::new("name").value_name("NAME").required(true).help("Name of the resource"),
            kind,
        ))
        .disable_help_flag(true)
        .arg(help.help("Print help").help_heading(OPTIONS));
    with_run_flags(command).about(about.trim_end_matches('.').to_owned()).defer(|command| {
        match types::find(command.get_name()) {
            Some(kind) => with_properties(command, kind),
            None => command,
        }
    })
}

fn with_properties(command: Command, kind: &'static dyn AnyType) -> Command {
    // Flags that are flattened bring a description of their own.
    let about = command.get_about().cloned().unwrap_or_default();
    let command = command
        .next_help_heading(PROPERTIES)
        .about(about)
        .args(states(kind))
        .args(flags::arguments(kind).into_iter().map(or_credential))
        .args(flags::check_arguments())
        .after_help(flags::examples(kind));
    with_aliases(command, &format!("ensure {}", kind.name()))
}

/// Returns the arguments after the name.
fn states(kind: &'static dyn AnyType) -> Vec<Arg> {
    let fields = fields(kind);
    let takes_address = fields.iter().any(|field| field.name == "url");
    let states = fields.into_iter().find(|field| field.name == "ensure").map(|field| field.kind);
    let ensure = Arg::new("ensure").value_name("ENSURE").help("Desired state");
    match states {
        Some(FieldKind::Choice(words)) if takes_address => {
            vec![ensure.value_parser(move |text: &str| state_or_address(text, &words))]
        }
        Some(FieldKind::Choice(words)) if kind.name() == SCAFFOLD => {
            let source = Arg::new("ensure").value_name("SOURCE").value_hint(ValueHint::DirPath);
            let ensure =
                Arg::new("state").value_name("ENSURE").value_parser(PossibleValuesParser::new(words));
            vec![
                source.help("Directory of the tree; with --source, the desired state"),
                ensure.help("Desired state"),
            ]
        }
        Some(FieldKind::Choice(words)) => vec![ensure.value_parser(PossibleValuesParser::new(words))],
        _ => vec![ensure],
    }
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

pub(super) fn run(Arguments { matches, pushed }: Arguments, output: &mut Output) -> Result<Exit, Failure> {
    match matches.subcommand() {
        Some(("api", matches)) => api::run(parsed(matches)?, output),
        Some((kind, matches)) => ensure(flags::known_type(kind)?, matches, pushed, output),
        None => Err(Failure::new("no type was given; see `ccm ensure --help`")),
    }
}

fn parsed<A: FromArgMatches>(matches: &ArgMatches) -> Result<A, Failure> {
    A::from_arg_matches(matches).map_err(|error| Failure::new(error.to_string()))
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

fn ensure(
    kind: &'static dyn AnyType,
    matches: &ArgMatches,
    pushed: Option<Pushed>,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let (mut flags, dotenv): (RunFlags, DotenvFlags) = (parsed(matches)?, parsed(matches)?);
    let (mut inputs, session): (InputFlags, SessionFolder) = (parsed(matches)?, parsed(matches)?);
    inputs.nats.select(parsed(matches)?);
    if let Some(pushed) = pushed {
        inputs.accept(pushed.hiera, pushed.facts, pushed.opened);
        inputs.identities.accept(pushed.identity);
        flags.accept(pushed.recorded);
    }
    let resource = ResourceFlags::from_matches(kind, matches)?;
    let folder = std::env::current_dir()
        .map_err(|error| Failure::new(format!("cannot tell the current folder: {error}")))?;
    let (machine, inputs) = inputs.open_in(&folder, &dotenv, output)?;
    let scope = heed(inputs.without_manifest(&folder, &machine.host, &machine.state)?);
    let (source, mut declaration) = resource.declaration(&machine.host.interrupt)?;
    let mut diagnostics = Diagnostics::default();
    let completeness = Expansion::new(&scope, &source).expand(&mut declaration, &mut diagnostics);
    attributes::complete(&mut declaration);
    let resource = declaration.resolve(completeness, &mut diagnostics);
    let Some(mut resource) = resource.filter(|_| !diagnostics.has_errors()) else {
        return Err(Failure::problems(source, diagnostics));
    };
    refuse_bad_rules(&resource, &source, &folder)?;
    show(diagnostics.review(&source).as_slice());
    let session = session.resume()?;
    resource.replace_patterns(|pattern| session.matching(pattern, flags.mode));
    // The report of a session counts them.
    let unchanged = if session.is_kept() { Unchanged::Counted } else { Unchanged::Shown };
    let manifest = Manifest::of(vec![resource], source, folder, scope);
    let origin = flags.origin("ccm ensure", RunKind::Ensure)?;
    let how = (Exclusion::WhileChanging(flags.patience), session);
    let manifests = [(&manifest, &Selected::default())];
    let (finished, mut printer) = flags.apply(&machine, how, &origin, &manifests, unchanged, output)?;
    // People see all there is to one resource in its line.
    if flags.format == Format::Json {
        printer.summary(&finished);
    }
    Ok(flags.exit(&finished))
}
