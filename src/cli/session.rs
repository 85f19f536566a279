//! `ccm session`

use std::{env, path::PathBuf};

use clap::{Arg, ArgMatches, Command, value_parser};
use jiff::Timestamp;

use super::{
    Exit,
    apply::refresh_store,
    failure::{Failure, warn},
    or_variable,
    output::{Loss, Output},
    report::{self, Format},
    state_argument, state_directory, switch,
};
use crate::session::{Session, Store};

/// The variable that names the store of a script's session.
const VARIABLE: &str = "CCM_SESSION_STORE";

/// A script whose session nobody has written to for this many seconds has ended without a report.
const ABANDONED: i64 = 24 * 60 * 60;

pub(super) fn command() -> Command {
    Command::new("session")
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
                .arg(state_argument())
                .arg(switch("json", "Print events as JSON, one per line, and the summary last"))
                .arg(switch("remove", "Remove the session afterwards")),
        )
}

/// The flag that selects a session.
pub(super) fn argument() -> Arg {
    let argument = Arg::new("session")
        .long("session")
        .value_name("FOLDER")
        .value_parser(value_parser!(PathBuf))
        .help("The session to record in and to look up references in");
    or_variable(argument, VARIABLE)
}

pub(super) fn run(matches: &ArgMatches, output: &mut Output) -> Result<Exit, Failure> {
    match matches.subcommand() {
        Some(("new", matches)) => new(matches, output),
        Some(("report", matches)) => report(matches, output),
        _ => Err(Failure::new("no command was given; see `ccm session --help`")),
    }
}

fn new(matches: &ArgMatches, output: &mut Output) -> Result<Exit, Failure> {
    let store = match matches.get_one::<PathBuf>("directory") {
        Some(folder) => Store::create(folder),
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

fn report(matches: &ArgMatches, output: &mut Output) -> Result<Exit, Failure> {
    let Some(folder) = matches.get_one::<PathBuf>("session") else {
        return Err(Failure::new(format!("no session: set {VARIABLE} or --session")));
    };
    let store = Store::open(folder)?;
    let session = resume(store.clone())?;
    let summary = session.summary();
    report::session(session.events(), &summary, Format::of(matches), output);
    let failed = summary.failed_resources > 0 || summary.requirements_unmet_count > 0;
    let exit = if failed { Exit::Failed } else { Exit::Success };
    // What nobody could read is kept.
    if output.loss() == Some(Loss::Failed) {
        return Ok(exit);
    }
    if !failed {
        settle(&session, matches);
    }
    if matches.get_flag("remove") {
        store.remove()?;
    }
    Ok(exit)
}

/// Nobody has to follow the changes of a script any more that came to a good end. After a failure the shell may have left
/// out whatever came next.
fn settle(session: &Session, matches: &ArgMatches) {
    if let (Some(name), Ok(state)) = (session.name(), state_directory(matches))
        && let Err(error) = refresh_store(&state).edit(|owed| (owed.settle(&name), ()))
    {
        warn(&format!("{error}; what follows changes in this session may be refreshed once more"));
    }
}

/// The session that the flags select, or one that ends with the process.
pub(super) fn selected(matches: &ArgMatches) -> Result<Session, Failure> {
    match matches.get_one::<PathBuf>("session") {
        Some(folder) => resume(Store::open(folder)?),
        None => Ok(Session::begin()),
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
