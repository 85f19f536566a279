//! `ccm session`

use std::{env, path::PathBuf};

use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};
use jiff::Timestamp;

use super::{
    Exit,
    aliases::with_aliases,
    failure::{Failure, warn},
    or_variable,
    output::{Loss, Output},
    report::{self, Format, Verbosity},
    run::StderrNotices,
    state::{self, StateFolder},
    switch,
};
use crate::{
    run::{Environment, refresh_store},
    session::{Session, Store},
};

/// The variable that names the store of a script's session.
const VARIABLE: &str = "CCM_SESSION_STORE";

/// A script whose session nobody has written to for this many seconds has ended without a report.
const ABANDONED: i64 = 24 * 60 * 60;

const EXAMPLE: &str = "\
Example:
  eval \"$(ccm session new)\"
  ccm ensure file \"$PWD/motd\" --content hello
  ccm session report --remove";

pub(super) fn command() -> Command {
    let command = Command::new("session")
        .about("Keeps the events of a script together")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand(
            Command::new("new")
                .about("Makes a session and prints the shell command that selects it")
                .arg(
                    Arg::new("directory")
                        .long("directory")
                        .value_name("FOLDER")
                        .value_hint(ValueHint::DirPath)
                        .value_parser(value_parser!(PathBuf))
                        .help(
                            "A folder to make it in, new or empty [default: a new one for temporary files]",
                        ),
                )
                .after_help("Example:\n  eval \"$(ccm session new)\""),
        )
        .subcommand(
            Command::new("report")
                .about("Shows what happened in a session")
                .arg(argument())
                .arg(state::argument())
                .args(Verbosity::arguments())
                .arg(switch("json", "Print events as JSON, one per line, and the summary last"))
                .arg(switch("remove", "Remove the session afterwards"))
                .after_help(EXAMPLE),
        );
    with_aliases(command, "session")
}

/// The flag that selects a session.
pub(super) fn argument() -> Arg {
    let argument = Arg::new("session")
        .long("session")
        .value_name("FOLDER")
        .value_hint(ValueHint::DirPath)
        .value_parser(value_parser!(PathBuf))
        .help("The session to record in and to look up references in");
    or_variable(argument, VARIABLE)
}

/// The folder of a session, if one was selected.
pub(super) struct SessionFolder(Option<PathBuf>);

impl SessionFolder {
    pub(super) fn from_matches(matches: &ArgMatches) -> Self {
        Self(matches.get_one("session").cloned())
    }

    /// Resumes the session that was selected, or begins one that ends with the process.
    pub(super) fn resume(&self) -> Result<Session, Failure> {
        match &self.0 {
            Some(folder) => resume(Store::open(folder)?),
            None => Ok(Session::begin()),
        }
    }
}

/// What `ccm session` is asked.
pub(super) enum Arguments {
    New { directory: Option<PathBuf> },
    Report(ReportArguments),
}

/// What `ccm session report` is asked.
pub(super) struct ReportArguments {
    folder: PathBuf,
    state: StateFolder,
    format: Format,
    verbosity: Verbosity,
    remove: bool,
}

impl Arguments {
    pub(super) fn from_matches(matches: &ArgMatches) -> Result<Self, Failure> {
        match matches.subcommand() {
            Some(("new", matches)) => Ok(Self::New { directory: matches.get_one("directory").cloned() }),
            Some(("report", matches)) => {
                let SessionFolder(Some(folder)) = SessionFolder::from_matches(matches) else {
                    return Err(Failure::new(format!("no session: set {VARIABLE} or --session")));
                };
                Ok(Self::Report(ReportArguments {
                    folder,
                    state: StateFolder::from_matches(matches),
                    format: Format::from_matches(matches),
                    verbosity: Verbosity::from_matches(matches),
                    remove: matches.get_flag("remove"),
                }))
            }
            _ => Err(Failure::new("no command was given; see `ccm session --help`")),
        }
    }
}

pub(super) fn run(arguments: Arguments, output: &mut Output) -> Result<Exit, Failure> {
    match arguments {
        Arguments::New { directory } => new(directory, output),
        Arguments::Report(arguments) => report(&arguments, output),
    }
}

fn new(directory: Option<PathBuf>, output: &mut Output) -> Result<Exit, Failure> {
    let store = match directory {
        Some(folder) => Store::create(&folder),
        None => {
            let temporary = env::temp_dir();
            Store::sweep_below(&temporary, Timestamp::now().as_second() - ABANDONED);
            Store::create_below(&temporary)
        }
    }?;
    let Some(folder) = store.folder().to_str() else {
        return Err(Failure::new("the folder's name is not UTF-8"));
    };
    output.line(&format!("export {VARIABLE}={}", shell_words::quote(folder)));
    if output.loss().is_some() {
        // Nobody knows of it.
        store.remove()?;
    }
    Ok(Exit::Success)
}

fn report(arguments: &ReportArguments, output: &mut Output) -> Result<Exit, Failure> {
    let store = Store::open(&arguments.folder)?;
    let session = resume(store.clone())?;
    let summary = session.summary();
    report::session(session.events(), &summary, arguments.format, arguments.verbosity, output);
    let failed = summary.failed_resources > 0 || summary.requirements_unmet_count > 0;
    let exit = if failed { Exit::Failed } else { Exit::Success };
    // What nobody could read is kept.
    if output.loss() == Some(Loss::Failed) {
        return Ok(exit);
    }
    if !failed {
        settle(&session, &arguments.state);
    }
    if arguments.remove {
        store.remove()?;
    }
    Ok(exit)
}

/// Nobody has to follow the changes of a script any more that came to a good end. After a failure the shell may have left
/// out whatever came next.
fn settle(session: &Session, state: &StateFolder) {
    if let (Some(name), Ok(state)) = (session.name(), state.directory(&Environment::of_process()))
        && let Err(error) = refresh_store(&state, &StderrNotices).edit(|owed| (owed.settle(&name), ()))
    {
        warn(&format!("{error}; what follows changes in this session may be refreshed once more"));
    }
}

fn resume(store: Store) -> Result<Session, Failure> {
    let folder = store.folder().to_owned();
    let (session, torn) = Session::resume(store)?;
    if torn > 0 {
        let noun = if torn == 1 { "line" } else { "lines" };
        warn(&format!(
            "session {}: {torn} {noun} that a killed command left unfinished ignored",
            folder.display()
        ));
    }
    Ok(session)
}
