//! `ccm session`

use std::{env, path::PathBuf};

use clap::{ArgAction, Args, Subcommand, ValueHint};
use jiff::Timestamp;

use super::{
    Exit,
    failure::{Failure, warn},
    machine::StateFolder,
    or_variable,
    output::{Loss, Output},
    report::{self, Format, VerbosityFlags},
    run::StderrNotices,
    switch,
};
use crate::{
    run::{Environment, refresh_store},
    session::{Session, Store},
};

/// The variable that names the store of a script's session.
const VARIABLE: &str = "CCM_SESSION_STORE";

/// Age in seconds after which an untouched session counts as abandoned.
const ABANDONED: i64 = 24 * 60 * 60;

const EXAMPLE: &str = "\
Example:
  eval \"$(ccm session new)\"
  ccm ensure file \"$PWD/motd\" --content hello
  ccm session report --remove";

/// Arguments of `ccm session`.
#[derive(Args)]
#[command(disable_help_subcommand = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Create a session and print the shell command that selects it
    #[command(after_help = "Example:\n  eval \"$(ccm session new)\"")]
    New {
        /// New or empty directory for the session [default: a new temporary directory]
        #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
        directory: Option<PathBuf>,
    },
    /// Show the results of a session
    #[command(after_help = EXAMPLE)]
    Report(ReportArguments),
}

/// Arguments of `ccm session report`.
#[derive(Args)]
struct ReportArguments {
    #[command(flatten)]
    session: SessionFolder,
    #[command(flatten)]
    state: StateFolder,
    #[command(flatten)]
    verbosity: VerbosityFlags,
    /// Print events as JSON, one per line, and the summary last
    #[arg(id = "json", long = "json", action = ArgAction::SetTrue, value_parser = switch(Format::of))]
    format: Format,
    /// Remove the session afterwards
    #[arg(long)]
    remove: bool,
}

/// The directory of a session, if one is selected.
#[derive(Args)]
#[command(mut_arg("session", |flag| or_variable(flag, VARIABLE)))]
pub(super) struct SessionFolder {
    /// The session to record in and to look up references in
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    session: Option<PathBuf>,
}

impl SessionFolder {
    /// Resumes the session that was selected, or begins one that ends with the process.
    pub(super) fn resume(&self) -> Result<Session, Failure> {
        match &self.session {
            Some(folder) => resume(Store::open_or_create(folder)?),
            None => Ok(Session::begin()),
        }
    }
}

pub(super) fn run(arguments: Arguments, output: &mut Output) -> Result<Exit, Failure> {
    match arguments.action {
        Action::New { directory } => new(directory, output),
        Action::Report(arguments) => report(&arguments, output),
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
        // No process knows the session.
        store.remove()?;
    }
    Ok(Exit::Success)
}

fn report(arguments: &ReportArguments, output: &mut Output) -> Result<Exit, Failure> {
    let Some(folder) = &arguments.session.session else {
        return Err(Failure::new(format!("no session: set {VARIABLE} or --session")));
    };
    let store = Store::open(folder)?;
    let session = resume(store.clone())?;
    let summary = session.summary();
    report::session(session.events(), &summary, arguments.format, arguments.verbosity.level(), output);
    let failed = summary.failed_resources > 0 || summary.requirements_unmet_count > 0;
    let exit = if failed { Exit::Failed } else { Exit::Success };
    // A report that could not be printed is kept.
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

/// Clears the changes of a script that succeeded, so that later scripts do not refresh their subscribers again. After a
/// failure, the shell might have skipped commands.
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
