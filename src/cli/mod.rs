//! What people type and read. Only this part prints, reads the environment or chooses an exit code.

mod api;
mod apply;
mod completions;
mod ensure;
mod eval;
mod facts;
mod failure;
mod flags;
mod hiera;
mod load_inputs;
mod output;
mod progress;
mod report;
mod schema;
mod session;
mod status;
#[cfg(test)]
mod tests;
mod validate;

use std::{env, path::PathBuf, process::ExitCode, rc::Rc};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use rustix::process::geteuid;

use self::{
    failure::Failure,
    output::{Loss, Output},
    progress::Progress,
};
use crate::{
    host::{
        Host,
        http::{Client, Proxies},
        interrupt::Interrupt,
        process::{Recovered, Runner},
        users::Users,
    },
    state::{Memory, StateDirectory},
};

/// Runs the program with the process's own arguments and environment.
#[must_use]
pub fn main() -> ExitCode {
    let matches = match command().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => return failure::usage(&error),
    };
    let mut output = Output::stdout();
    let result = run(&matches, &mut output);
    let loss = output.loss();
    let exit = result.unwrap_or_else(Failure::report);
    match loss {
        Some(Loss::Failed) if exit != Exit::NotAttempted => unprinted(&matches).into(),
        _ => exit.into(),
    }
}

/// How a command ends whose output could not be printed: of most it is all there is to them.
fn unprinted(matches: &ArgMatches) -> Exit {
    match matches.subcommand_name() {
        Some("apply" | "ensure") => Exit::Failed,
        _ => Exit::NotAttempted,
    }
}

fn run(matches: &ArgMatches, output: &mut Output) -> Result<Exit, Failure> {
    match matches.subcommand() {
        Some(("apply", matches)) => apply::run(matches, output),
        Some(("validate", matches)) => validate::run(matches, output),
        Some(("ensure", matches)) => ensure::run(matches, output),
        Some(("status", matches)) => status::run(matches, output),
        Some(("eval", matches)) => eval::run(matches, output),
        Some(("hiera", matches)) => hiera::run(matches, output),
        Some(("session", matches)) => session::run(matches, output),
        Some(("facts", matches)) => facts::run(matches, output),
        Some(("schema", matches)) => schema::run(matches, output),
        Some(("completions", matches)) => completions::shell(matches, output),
        Some(("man", matches)) => completions::manual(matches),
        _ => Err(Failure::new("no command was given; see `ccm --help`")),
    }
}

/// The whole command line.
fn command() -> Command {
    Command::new("ccm")
        .version(env!("CARGO_PKG_VERSION"))
        .about(env!("CARGO_PKG_DESCRIPTION").trim_end_matches('.'))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands([
            apply::command(),
            validate::command(),
            ensure::command(),
            status::command(),
            eval::command(),
            hiera::command(),
            session::command(),
            facts::command(),
            schema::command(),
            completions::command(),
            completions::manual_command(),
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
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Success => 0,
            Exit::Failed => 1,
            Exit::NotAttempted => 2,
            Exit::Changed => 3,
        })
    }
}

/// The machine that this process runs on.
fn host(progress: &Rc<Progress>) -> Result<Host, Failure> {
    let interrupt = interrupt()?;
    let proxies = Proxies::from_environment(|name| env::var(name).ok());
    let http = Client::new(proxies, interrupt.clone(), Rc::clone(progress) as Rc<_>);
    Ok(Host { interrupt, runner: Runner::default(), users: Users::default(), http })
}

/// Cleans up after runs that were killed, and from now on writes down which commands this one has in hand.
fn recover(host: &Host, memory: &Memory) {
    memory.write_journal.recover(&host.interrupt);
    let journal = memory.directory.command_journal();
    journal
        .recover(&host.interrupt)
        .iter()
        .filter_map(Recovered::warning)
        .for_each(|text| failure::warn(&text));
    host.runner.record_in(journal);
}

/// Listens for signals from now on.
fn interrupt() -> Result<Interrupt, Failure> {
    Interrupt::install().map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))
}

/// Returns what the program remembers, in the directory that the flags name.
fn memory(matches: &ArgMatches) -> Result<Memory, Failure> {
    state_directory(matches).map(Memory::at)
}

/// Returns what the program remembers, for a command that only looks and can do without.
fn memory_to_look_at(matches: &ArgMatches) -> Memory {
    Memory::at(state_directory(matches).unwrap_or_else(|_| StateDirectory::nowhere()))
}

/// Returns the machine for fuzzers, who start no command.
#[cfg(feature = "fuzzing")]
pub(crate) fn host_to_fuzz() -> Option<Host> {
    host(&Rc::new(Progress::new())).ok()
}

#[cfg(feature = "fuzzing")]
pub(crate) use api::requested;

/// The flag that says where the program keeps its memory.
fn state_argument() -> Arg {
    let argument = Arg::new("state-dir")
        .long("state-dir")
        .value_name("FOLDER")
        .value_parser(value_parser!(PathBuf))
        .help("Where ccm keeps its memory [default: /var/lib/ccm for root, else $XDG_STATE_HOME/ccm]");
    or_variable(argument, "CCM_STATE_DIR")
}

/// A flag whose value may come from the environment, where an empty one is as good as none.
fn or_variable(argument: Arg, name: &'static str) -> Arg {
    let is_empty = env::var_os(name).is_some_and(|value| value.is_empty());
    if is_empty { argument } else { argument.env(name).hide_env_values(true) }
}

/// Where the program keeps its memory.
fn state_directory(matches: &ArgMatches) -> Result<StateDirectory, Failure> {
    let given = matches.get_one::<PathBuf>("state-dir").cloned();
    let of_user = || {
        let folder = |name| env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
        folder("XDG_STATE_HOME")
            .or_else(|| Some(folder("HOME")?.join(".local/state")))
            .map(|folder| folder.join("ccm"))
    };
    let path = match given {
        Some(path) => path,
        None if geteuid().is_root() => PathBuf::from("/var/lib/ccm"),
        None => of_user()
            .ok_or_else(|| Failure::new("no state directory: set HOME, XDG_STATE_HOME or --state-dir"))?,
    };
    let absolute = std::path::absolute(&path).unwrap_or(path);
    Ok(StateDirectory::at(absolute.components().collect()))
}

/// A flag without a value.
fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}
