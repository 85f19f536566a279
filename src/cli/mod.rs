//! The command line. Only this module prints, and chooses an exit status.

#![allow(clippy::disallowed_methods, reason = "the environment is read here and nowhere else")]
#![allow(clippy::doc_markdown, reason = "comments of flags are help, which is plain text")]
#![allow(clippy::struct_excessive_bools, reason = "a switch is a `bool`")]

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
mod confirm;
mod diff;
mod dotenv;
mod ensure;
mod eval;
mod explain;
mod facts;
mod failure;
mod flags;
mod hiera;
mod history;
mod hosts;
mod load_inputs;
mod machine;
mod manual;
mod other_tools;
mod output;
mod plan;
mod progress;
mod prompt;
mod push;
mod registration;
mod remote;
mod report;
mod run;
mod sarif;
mod schema;
mod secret;
mod session;
mod status;
#[cfg(test)]
mod tests;
mod undo;
mod validate;
mod words;

use std::{
    env,
    ffi::OsString,
    fmt::Write as _,
    process::ExitCode,
    thread::{self, JoinHandle},
};

use anstream::ColorChoice;
use clap::{
    Arg, ArgMatches, Args, Command, CommandFactory, FromArgMatches, Parser, Subcommand,
    builder::{BoolValueParser, TypedValueParser},
};

use self::{
    aliases::with_aliases,
    failure::Failure,
    output::{Loss, Output},
    push::{WithHosts, WithRoll},
};
use crate::{
    checks::CheckState,
    host::{interrupt::Interrupt, memory::has_stack_of, process::disable_core_dumps},
    types,
};

/// Size of the stack, as most systems limit that of the first thread.
const STACK: usize = 8 << 20;

/// Runs the program with the process's own arguments and environment.
#[must_use]
pub fn main() -> ExitCode {
    disable_core_dumps();
    if has_stack_of(STACK) {
        return answer();
    }
    // The stack of the first thread is limited to a size that is too small (ulimit -s).
    let started = thread::Builder::new().name("main".to_owned()).stack_size(STACK).spawn(answer);
    match started.map(JoinHandle::join) {
        Ok(Ok(code)) => code,
        // The panic was reported when it happened.
        Ok(Err(_)) => ExitCode::from(101),
        Err(error) => Failure::new(format!("cannot start a thread: {error}")).report().into(),
    }
}

fn answer() -> ExitCode {
    // `ssh` runs the program of the controller to ask.
    if let Some(answer) = push::answer_askpass() {
        let mut output = Output::stdout();
        let exit = answer.map_or_else(Failure::report, |answer| {
            output.line(&answer);
            Exit::Success
        });
        return if exit == Exit::Success { exit.into() } else { Exit::Failed.into() };
    }
    match complete::answer() {
        Ok(false) => {}
        Ok(true) => return ExitCode::SUCCESS,
        Err(error) => return failure::usage(error),
    }
    let parsed = command().try_get_matches_from(with_help_of_types(env::args_os().collect()));
    let parsed = parsed.and_then(|mut matches| {
        let push = push::Arguments::from_matches(&matches);
        CommandLine::from_arg_matches_mut(&mut matches).map(|command_line| (command_line, push))
    });
    let (CommandLine { color, invocation }, push) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return failure::usage(error),
    };
    use_colors(color.as_deref());
    let mut output = Output::stdout();
    let unprinted = invocation.unprinted();
    let result = match push {
        Ok(Some(push)) => push::run(&push, &mut output),
        Ok(None) => invocation.run(&mut output),
        Err(failure) => Err(failure),
    };
    let loss = output.loss();
    let exit = result.unwrap_or_else(Failure::report);
    match loss {
        Some(Loss::Failed) if exit != Exit::NotAttempted => unprinted.into(),
        _ => exit.into(),
    }
}

/// The command line.
#[derive(Parser)]
#[command(
    name = "ccm",
    version = concat!(env!("CARGO_PKG_VERSION"), " (", env!("CCM_BUILD"), ")"),
    about = env!("CARGO_PKG_DESCRIPTION").trim_end_matches('.'),
    after_help = EXAMPLES,
)]
struct CommandLine {
    /// When to use colors [auto, always, never]
    #[arg(long, value_name = "WHEN", value_parser = ["auto", "always", "never"], hide_possible_values = true, global = true, help_heading = "Global options")]
    color: Option<String>,
    #[command(subcommand)]
    invocation: Invocation,
}

/// The commands.
#[derive(Subcommand)]
enum Invocation {
    /// Apply manifests to this machine
    Apply(Box<Deferred<WithRoll<apply::Arguments>>>),
    /// Show the changes of a manifest, and write a plan
    Plan(Box<Deferred<WithHosts<plan::Arguments>>>),
    /// Run health checks
    Check(Deferred<WithHosts<check::Arguments>>),
    /// Check manifests without changing anything
    Validate(Deferred<validate::Arguments>),
    /// Apply one resource
    Ensure(Deferred<ensure::Arguments>),
    /// Keep this machine in its declared state
    Agent(Deferred<agent::Arguments>),
    /// Build, sign and verify bundles
    Bundle(Deferred<bundle::Arguments>),
    /// Show the state of a resource, or pending refreshes
    Status(Deferred<WithHosts<status::Arguments>>),
    /// Print the value of an expression as JSON
    Eval(Deferred<eval::Arguments>),
    /// Explain the id of an error or warning
    Explain(Deferred<explain::Arguments>),
    /// Resolve hierarchical data
    Hiera(Deferred<hiera::Arguments>),
    /// List the hosts that a pattern selects
    Hosts(Deferred<hosts::Arguments>),
    /// List runs and their changes
    History(Deferred<WithHosts<history::Arguments>>),
    /// Show who changed a path or resource last
    Blame(Deferred<blame::Arguments>),
    /// Undo the changes of a run
    Undo(Deferred<WithRoll<undo::Arguments>>),
    /// Confirm a run, or undo it
    Confirm(Deferred<WithHosts<confirm::Arguments>>),
    /// Compare what two manifests declare
    Diff(Box<Deferred<diff::Arguments>>),
    /// Collect the events of a script
    Session(Deferred<session::Arguments>),
    /// Show and change service registrations
    #[command(aliases = ["reg", "r"])]
    Registration(Deferred<registration::Arguments>),
    /// Show the facts of this machine
    Facts(Deferred<WithHosts<facts::Arguments>>),
    /// Create, edit and check encrypted data
    Secret(Deferred<secret::Arguments>),
    /// Print the JSON Schema of inputs and outputs
    Schema(Deferred<schema::Arguments>),
    /// Print a completion script for a shell
    Completions(Deferred<completions::Arguments>),
    /// Write the manual pages to a directory
    #[command(name = "man")]
    Manual(Deferred<manual::Arguments>),
    /// Serves a push
    #[command(hide = true)]
    Remote(remote::Arguments),
}

/// Arguments that clap builds only if their command is used, because most of the start-up time is spent on them.
struct Deferred<A>(A);

impl<A: Args> Args for Deferred<A> {
    fn augment_args(command: Command) -> Command {
        command.defer(|command| {
            let path = command.get_name().to_owned();
            let about = command.get_about().cloned().unwrap_or_default();
            with_aliases(A::augment_args(command), &path).about(about)
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<A: FromArgMatches> FromArgMatches for Deferred<A> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        A::from_arg_matches(matches).map(Self)
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, clap::Error> {
        A::from_arg_matches_mut(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl Invocation {
    fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        match self {
            Self::Apply(arguments) => apply::run(arguments.0.0, output),
            Self::Plan(arguments) => plan::run(arguments.0.0, output),
            Self::Check(Deferred(WithHosts(arguments))) => check::run(&arguments, output),
            Self::Validate(Deferred(arguments)) => validate::run(arguments, output),
            Self::Ensure(Deferred(arguments)) => ensure::run(arguments, output),
            Self::Agent(Deferred(arguments)) => agent::run(arguments, output),
            Self::Bundle(Deferred(arguments)) => bundle::run(arguments, output),
            Self::Status(Deferred(WithHosts(arguments))) => status::run(&arguments, output),
            Self::Eval(Deferred(arguments)) => eval::run(arguments, output),
            Self::Explain(Deferred(arguments)) => explain::run(&arguments, output),
            Self::Hiera(Deferred(arguments)) => hiera::run(arguments, output),
            Self::Hosts(Deferred(arguments)) => hosts::run(&arguments, output),
            Self::History(Deferred(WithHosts(arguments))) => history::run(&arguments, output),
            Self::Undo(Deferred(WithRoll(arguments))) => undo::run(arguments, output),
            Self::Confirm(Deferred(WithHosts(arguments))) => confirm::run(&arguments, output),
            Self::Diff(arguments) => diff::run(arguments.0, output),
            Self::Blame(Deferred(arguments)) => blame::run(&arguments, output),
            Self::Session(Deferred(arguments)) => session::run(arguments, output),
            Self::Registration(Deferred(arguments)) => registration::run(arguments, output),
            Self::Facts(Deferred(WithHosts(arguments))) => facts::run(arguments, output),
            Self::Secret(Deferred(arguments)) => secret::run(arguments, output),
            Self::Schema(Deferred(arguments)) => schema::run(&arguments, output),
            Self::Completions(Deferred(arguments)) => Ok(completions::run(&arguments, output)),
            Self::Manual(Deferred(arguments)) => manual::run(&arguments),
            Self::Remote(arguments) => remote::run(&arguments, output),
        }
    }

    /// Takes what a controller sent instead of reading it on this machine.
    fn accept(&mut self, pushed: remote::Pushed) {
        match self {
            Self::Apply(arguments) => arguments.0.0.accept(pushed),
            Self::Plan(arguments) => arguments.0.0.accept(pushed),
            Self::Ensure(Deferred(arguments)) => arguments.accept(pushed),
            Self::Undo(Deferred(WithRoll(arguments))) => arguments.accept(pushed),
            Self::Facts(Deferred(WithHosts(arguments))) => arguments.accept(pushed),
            Self::Check(Deferred(WithHosts(arguments))) => arguments.accept(pushed),
            _ => {}
        }
    }

    /// Returns the exit status to use when writing the output failed.
    fn unprinted(&self) -> Exit {
        match self {
            Self::Apply(_) | Self::Ensure(_) | Self::Undo(_) => Exit::Failed,
            _ => Exit::NotAttempted,
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  # Show what a manifest would change, then change it
  ccm apply site.yaml --noop
  ccm apply site.yaml

  # Apply one resource
  ccm ensure service nginx running --enable

  # Check a manifest for errors
  ccm validate site.yaml

Details: `ccm help COMMAND`, `ccm help TYPE`, ccm(1), ccm-manifest(5)";

/// Applies `--color` to everything that is printed from now on.
fn use_colors(choice: Option<&str>) {
    match choice {
        Some("always") => ColorChoice::Always.write_global(),
        Some("never") => ColorChoice::Never.write_global(),
        _ => {}
    }
}

/// Returns the command line, with the words of the Go original.
fn command() -> Command {
    let words = grouped(with_aliases(CommandLine::command(), ""));
    words.mut_args(|argument| if argument.is_hide_set() { argument.global(true) } else { argument })
}

/// Turns `help TYPE` into `ensure TYPE --help`.
fn with_help_of_types(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let is_type =
        |name: &str| types::find(aliases::type_name(name)).is_some_and(|kind| kind.behavior().stands_alone);
    if let [_, help, name] = arguments.as_slice()
        && help == "help"
        && name.to_str().is_some_and(is_type)
    {
        let name = name.clone();
        arguments.splice(1.., ["ensure".into(), name, "--help".into()]);
    }
    arguments
}

/// The commands in the groups of the help.
const GROUPS: &[(&str, &[&str])] = &[
    ("Apply", &["apply", "plan", "ensure", "undo", "confirm"]),
    ("Inspect", &["validate", "check", "status", "facts", "history", "blame", "diff"]),
    ("Fleet", &["agent", "bundle", "hosts", "registration"]),
    ("Scripts", &["session", "eval", "hiera"]),
    ("Tools", &["secret", "explain", "schema", "completions", "man", "help"]),
];

/// Lists the commands of the help in groups.
fn grouped(command: Command) -> Command {
    let header = command.get_styles().get_header().to_owned();
    let mut list = String::new();
    for (group, names) in GROUPS {
        let _ = writeln!(list, "{header}{group}:{header:#}");
        for name in *names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map_or("Print the help of a command or type".to_owned(), ToString::to_string);
            let _ = writeln!(list, "  {name:<13} {about}");
        }
        list.push('\n');
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}{header}Options:{header:#}\n{{options}}{{after-help}}"
    );
    command.help_template(template)
}

/// Exit status of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    /// Everything is in the desired state, changed or not.
    Success,
    /// A resource failed, or was skipped because of a failed requirement.
    Failed,
    /// Nothing was attempted.
    NotAttempted,
    /// Something changed or would change, with `--detailed-exitcode`.
    Changed,
    /// A host could not be reached.
    Unreachable,
    /// State of a check, for a Nagios plugin.
    Plugin(CheckState),
}

impl Exit {
    /// Returns the exit status.
    const fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failed => 1,
            Self::NotAttempted => 2,
            Self::Changed => 3,
            Self::Unreachable => 4,
            Self::Plugin(state) => state.number(),
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Listens for signals from now on.
fn interrupt() -> Result<Interrupt, Failure> {
    Interrupt::install().map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))
}

#[cfg(feature = "fuzzing")]
pub(crate) use {
    api::{Request, Texts},
    machine::host_to_fuzz,
};

/// Lets the value of a flag come from a variable, unless the variable is empty.
fn or_variable(argument: Arg, name: &'static str) -> Arg {
    let is_empty = env::var_os(name).is_some_and(|value| value.is_empty());
    if is_empty { argument } else { argument.env(name).hide_env_values(true) }
}

/// Returns the parser of a switch that stands for a value.
fn switch<T: Clone + Send + Sync + 'static>(
    value: impl Fn(bool) -> T + Clone + Send + Sync + 'static,
) -> impl TypedValueParser<Value = T> {
    BoolValueParser::new().map(value)
}
