//! What people type and read. Only this part prints, reads the environment or chooses an exit code.

#![allow(clippy::disallowed_methods, reason = "the environment is read here and nowhere else")]

mod agent;
mod aliases;
mod api;
mod apply;
mod attributes;
mod blame;
mod bundle;
mod check;
mod command_line;
mod complete;
mod completions;
mod ensure;
mod eval;
mod facts;
mod failure;
mod flags;
mod hiera;
mod history;
mod hosts;
mod load_inputs;
mod manual;
mod nats;
mod output;
mod progress;
mod registration;
mod report;
mod run;
mod sarif;
mod schema;
mod session;
mod state;
mod status;
#[cfg(test)]
mod tests;
mod undo;
mod validate;
mod words;

use std::{env, process::ExitCode, sync::Arc};

use anstream::ColorChoice;
use clap::{Arg, ArgAction, ArgMatches, Command};

use self::{
    aliases::with_aliases,
    failure::Failure,
    nats::NatsFlags,
    output::{Loss, Output},
    progress::Progress,
    run::StderrNotices,
};
use crate::{
    checks::CheckState,
    host::interrupt::Interrupt,
    run::{Environment, Machine},
    state::LocalState,
};

/// Runs the program with the process's own arguments and environment.
#[must_use]
pub fn main() -> ExitCode {
    match complete::answer() {
        Ok(false) => {}
        Ok(true) => return ExitCode::SUCCESS,
        Err(error) => return failure::usage(error),
    }
    let matches = match command().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => return failure::usage(error),
    };
    use_colours(&matches);
    let mut output = Output::stdout();
    let (result, unprinted) = match Invocation::from_matches(&matches) {
        Ok(invocation) => {
            let unprinted = invocation.unprinted();
            (invocation.run(&mut output), unprinted)
        }
        Err(failure) => (Err(failure), Exit::NotAttempted),
    };
    let loss = output.loss();
    let exit = result.unwrap_or_else(Failure::report);
    match loss {
        Some(Loss::Failed) if exit != Exit::NotAttempted => unprinted.into(),
        _ => exit.into(),
    }
}

/// What the user asked for. Behind it nobody sees words of the command line any more.
enum Invocation {
    Apply(apply::Arguments),
    Check(check::Arguments),
    Validate(validate::Arguments),
    Ensure(ensure::Arguments),
    Api(api::Arguments),
    Agent(agent::Arguments),
    Bundle(bundle::Arguments),
    Status(status::Arguments),
    Eval(eval::Arguments),
    Hiera(hiera::Arguments),
    Hosts(hosts::Arguments),
    History(history::Arguments),
    Blame(blame::Arguments),
    Undo(undo::Arguments),
    Session(session::Arguments),
    Registration(registration::Arguments),
    Facts(facts::Arguments),
    Schema(schema::Arguments),
    Completions(completions::Arguments),
    Manual(manual::Arguments),
}

impl Invocation {
    fn from_matches(matches: &ArgMatches) -> Result<Self, Failure> {
        let Some((name, matches)) = matches.subcommand() else { return Err(no_command()) };
        Ok(match name {
            "apply" => Self::Apply(apply::Arguments::from_matches(matches)?),
            "check" => Self::Check(check::Arguments::from_matches(matches)?),
            "validate" => Self::Validate(validate::Arguments::from_matches(matches)?),
            "ensure" => match matches.subcommand() {
                Some(("api", matches)) => Self::Api(api::Arguments::from_matches(matches)?),
                Some((kind, matches)) => Self::Ensure(ensure::Arguments::from_matches(kind, matches)?),
                None => return Err(no_command()),
            },
            "agent" => Self::Agent(agent::Arguments::from_matches(matches)?),
            "bundle" => Self::Bundle(bundle::Arguments::from_matches(matches)?),
            "status" => Self::Status(status::Arguments::from_matches(matches)?),
            "eval" => Self::Eval(eval::Arguments::from_matches(matches)?),
            "hiera" => match matches.subcommand() {
                Some(("facts", matches)) => Self::Facts(facts::Arguments::from_matches(matches)?),
                _ => Self::Hiera(hiera::Arguments::from_matches(matches)?),
            },
            "hosts" => Self::Hosts(hosts::Arguments::from_matches(matches)?),
            "history" => Self::History(history::Arguments::from_matches(matches)?),
            "undo" => Self::Undo(undo::Arguments::from_matches(matches)?),
            "blame" => Self::Blame(blame::Arguments::from_matches(matches)?),
            "session" => Self::Session(session::Arguments::from_matches(matches)?),
            "registration" => Self::Registration(registration::Arguments::from_matches(matches)?),
            "facts" => Self::Facts(facts::Arguments::from_matches(matches)?),
            "schema" => Self::Schema(schema::Arguments::from_matches(matches)?),
            "completions" => Self::Completions(completions::Arguments::from_matches(matches)?),
            "man" => Self::Manual(manual::Arguments::from_matches(matches)?),
            _ => return Err(no_command()),
        })
    }

    fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        match self {
            Self::Apply(arguments) => apply::run(arguments, output),
            Self::Check(arguments) => check::run(&arguments, output),
            Self::Validate(arguments) => validate::run(arguments, output),
            Self::Ensure(arguments) => ensure::run(arguments, output),
            Self::Api(arguments) => api::run(arguments, output),
            Self::Agent(arguments) => agent::run(arguments, output),
            Self::Bundle(arguments) => bundle::run(arguments, output),
            Self::Status(arguments) => status::run(&arguments, output),
            Self::Eval(arguments) => eval::run(arguments, output),
            Self::Hiera(arguments) => hiera::run(arguments, output),
            Self::Hosts(arguments) => hosts::run(&arguments, output),
            Self::History(arguments) => history::run(&arguments, output),
            Self::Undo(arguments) => undo::run(arguments, output),
            Self::Blame(arguments) => blame::run(&arguments, output),
            Self::Session(arguments) => session::run(arguments, output),
            Self::Registration(arguments) => registration::run(arguments, output),
            Self::Facts(arguments) => facts::run(arguments, output),
            Self::Schema(arguments) => schema::run(&arguments, output),
            Self::Completions(arguments) => Ok(completions::run(&arguments, output)),
            Self::Manual(arguments) => manual::run(&arguments),
        }
    }

    /// Returns how the command ends whose output could not be printed: of most it is all there is to them.
    fn unprinted(&self) -> Exit {
        match self {
            Self::Apply(_) | Self::Ensure(_) | Self::Api(_) | Self::Undo(_) => Exit::Failed,
            _ => Exit::NotAttempted,
        }
    }
}

fn no_command() -> Failure {
    Failure::new("no command was given; see `ccm --help`")
}

/// Returns the value of an argument that clap insists on.
fn required<T: Clone + Send + Sync + 'static>(
    matches: &ArgMatches,
    name: &'static str,
) -> Result<T, Failure> {
    matches.get_one(name).cloned().ok_or_else(|| Failure::new(format!("no {name} was given")))
}

const EXAMPLES: &str = "\
Examples:
  # Show what a manifest would change, then change it
  ccm apply site.yaml --noop
  ccm apply site.yaml

  # Bring one resource to a state
  ccm ensure service nginx running --enable

  # Find everything that is wrong with a manifest
  ccm validate site.yaml

Documentation: `ccm COMMAND --help`; `ccm ensure TYPE --help` for the properties
of a type; ccm(1) and ccm-manifest(5); the book in the folder docs of the source.";

/// Makes everything that is printed from now on follow `--color`.
fn use_colours(matches: &ArgMatches) {
    let choice = match matches.get_one::<String>("color").map(String::as_str) {
        Some("always") => ColorChoice::Always,
        Some("never") => ColorChoice::Never,
        _ => return,
    };
    choice.write_global();
}

/// The whole command line.
fn command() -> Command {
    let words = with_aliases(commands(), "");
    words.mut_args(|argument| if argument.is_hide_set() { argument.global(true) } else { argument })
}

fn commands() -> Command {
    Command::new("ccm")
        .version(concat!(env!("CARGO_PKG_VERSION"), " (", env!("CCM_BUILD"), ")"))
        .about(env!("CARGO_PKG_DESCRIPTION").trim_end_matches('.'))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .after_help(EXAMPLES)
        .arg(
            Arg::new("color")
                .long("color")
                .value_name("WHEN")
                .value_parser(["auto", "always", "never"])
                .global(true)
                .help("When to use colours; by default on a terminal, unless NO_COLOR is set"),
        )
        .subcommands([
            apply::command(),
            check::command(),
            validate::command(),
            ensure::command(),
            agent::command(),
            bundle::command(),
            status::command(),
            eval::command(),
            hiera::command(),
            hosts::command(),
            history::command(),
            blame::command(),
            undo::command(),
            session::command(),
            registration::command(),
            facts::command(),
            schema::command(),
            completions::command(),
            manual::command(),
        ])
}

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    /// Everything is as asked, changed or not.
    Success,
    /// A resource failed or was skipped for an unmet requirement.
    Failed,
    /// Nothing was attempted.
    NotAttempted,
    /// Something changed or would change, and the user asked to be told.
    Changed,
    /// How well something is, as a plugin of Nagios tells it.
    Plugin(CheckState),
}

impl Exit {
    /// Returns the number that the system is told.
    const fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failed => 1,
            Self::NotAttempted => 2,
            Self::Changed => 3,
            Self::Plugin(state) => state.number(),
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Returns the machine that this process runs on.
fn machine(
    progress: &Arc<Progress>,
    environment: Environment,
    state: LocalState,
    nats: &NatsFlags,
) -> Result<Machine, Failure> {
    let nats = nats.nats(&environment);
    let progress = Arc::clone(progress) as Arc<_>;
    Ok(Machine::new(interrupt()?, environment, state, nats, progress, Arc::new(StderrNotices)))
}

/// Listens for signals from now on.
fn interrupt() -> Result<Interrupt, Failure> {
    Interrupt::install().map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))
}

/// Returns the machine for fuzzers, who start no command.
#[cfg(feature = "fuzzing")]
pub(crate) fn host_to_fuzz() -> Option<crate::host::Host> {
    let (environment, state) =
        (Environment::of_process(), LocalState::at(crate::state::StateDirectory::none()));
    machine(&Arc::new(Progress::new()), environment, state, &NatsFlags::default())
        .ok()
        .map(|machine| machine.host)
}

#[cfg(feature = "fuzzing")]
pub(crate) use api::{Request, Texts};

/// A flag whose value may come from the environment, where an empty one is as good as none.
fn or_variable(argument: Arg, name: &'static str) -> Arg {
    let is_empty = env::var_os(name).is_some_and(|value| value.is_empty());
    if is_empty { argument } else { argument.env(name).hide_env_values(true) }
}

/// A flag without a value.
fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}
