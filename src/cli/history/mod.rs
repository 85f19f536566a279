//! `ccm history`

mod show;

use clap::{Args, Subcommand, ValueHint};
use jiff::{SignedDuration, Timestamp};

use self::show::Listed;
pub(super) use self::show::{describe, who, who_json};
use super::{
    Exit, command_line,
    failure::{Failure, waiting, warn},
    machine::{NatsFlags, StateFolder, machine},
    or_variable,
    output::Output,
    push::WithHosts,
};
use crate::{
    run::{self, Environment, Origin},
    state::{
        LocalState, Patience, RunLock, StateDirectory,
        history::{HistoryStore, Limits, Log, RunKind, RunRecord},
    },
    vocabulary::Duration,
};

const EXAMPLES: &str = "\
Examples:
  # List runs, newest first
  ccm history --since 2d

  # Show the last run that changed something
  ccm history show last --diff";

/// Arguments of `ccm history`.
#[derive(Args)]
#[command(
    after_help = EXAMPLES,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
)]
pub(super) struct Arguments {
    /// Only runs since a time (RFC 3339, a date) or within a duration such as `2d`
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// List the changes of a path
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    path: Option<String>,
    /// List the changes of a resource
    #[arg(long, value_name = "REF")]
    resource: Option<String>,
    #[command(flatten)]
    store: StoreFlags,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    /// Show one run, resource by resource
    #[command(after_help = "Example:\n  ccm history show last --diff")]
    Show(WithHosts<Shown>),
    /// Check the records and all kept copies
    #[command(after_help = "Example:\n  ccm history verify")]
    Verify {
        #[command(flatten)]
        store: StoreFlags,
    },
    /// Apply the limits now
    #[command(after_help = "Example:\n  ccm history prune --history-keep 30d,500")]
    Prune {
        #[command(flatten)]
        state: StateFolder,
        #[command(flatten)]
        limits: LimitFlags,
    },
}

/// A run that is shown.
#[derive(Args)]
struct Shown {
    #[command(flatten)]
    run: RunArgument,
    /// Show changes of content
    #[arg(long)]
    diff: bool,
    #[command(flatten)]
    store: StoreFlags,
}

/// Where the history is, and how to print it.
#[derive(Args)]
struct StoreFlags {
    /// Print JSON, one document per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    state: StateFolder,
}

/// The run that a command is about.
#[derive(Args)]
pub(super) struct RunArgument {
    /// Id of a run, an unambiguous beginning of one, or `last`
    pub(super) run: String,
}

/// Limits of the history.
#[derive(Args, Default)]
#[command(
    mut_arg("history_size", |flag| or_variable(flag, "CCM_HISTORY_SIZE")),
    mut_arg("history_keep", |flag| or_variable(flag, "CCM_HISTORY_KEEP")),
)]
pub(super) struct LimitFlags {
    /// Maximum size of all kept copies [default: 1GiB]
    #[arg(long, value_name = "SIZE")]
    history_size: Option<String>,
    /// How long and how many runs are kept [default: 90d,1000]
    #[arg(long, value_name = "AGE,RUNS")]
    history_keep: Option<String>,
}

impl LimitFlags {
    /// Returns the limits that the flags or the environment set.
    pub(super) fn limits(&self) -> Result<Limits, Failure> {
        Limits::parse(self.history_size.as_deref(), self.history_keep.as_deref()).map_err(Failure::new)
    }
}

/// Returns a path as the history has it.
pub(super) fn absolute(path: &str) -> Result<String, Failure> {
    let absolute = std::path::absolute(path).map_err(|error| Failure::new(format!("`{path}`: {error}")))?;
    let absolute: std::path::PathBuf = absolute.components().collect();
    Ok(crate::state::history::to_text(absolute.as_os_str()))
}

/// Returns the moment that a time, date or duration names.
fn moment(text: &str, now: Timestamp) -> Result<Timestamp, Failure> {
    if let Ok(ago) = text.parse::<Duration>() {
        let ago = SignedDuration::try_from(ago.as_std()).unwrap_or(SignedDuration::MAX);
        return Ok(now.checked_sub(ago).unwrap_or(Timestamp::MIN));
    }
    let wrong =
        || Failure::new(format!("--since: `{text}` is not a time, a date or a duration such as `2d`"));
    text.parse().or_else(|_| format!("{text}T00:00:00Z").parse()).map_err(|_| wrong())
}

pub(super) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    match &arguments.action {
        None => list(arguments, output),
        Some(Action::Show(WithHosts(Shown { run: RunArgument { run }, diff, store }))) => {
            let (log, objects) = read(&open(&store.state)?.ok_or_else(|| unknown(run))?)?;
            let run = log.find(run).map_err(Failure::new)?;
            show::run(run, &objects, *diff, store.json, output);
            Ok(Exit::Success)
        }
        Some(Action::Verify { store }) => verify(store, output),
        Some(Action::Prune { state, limits }) => prune(state, limits, output),
    }
}

fn list(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let Arguments { since, path, resource, store: StoreFlags { json, state }, .. } = arguments;
    let since = since.as_deref().map(|text| moment(text, Timestamp::now())).transpose()?;
    let path = path.as_deref().map(absolute).transpose()?;
    let Some(store) = open(state)? else { return Ok(Exit::Success) };
    let is_recent = |run: &RunRecord| {
        let started: Option<Timestamp> = run.start.start.parse().ok();
        since.is_none_or(|since| started.is_some_and(|started| started >= since))
    };
    if path.is_none() && resource.is_none() {
        let log = heed(store.list()?);
        for run in log.runs.iter().rev().filter(|run| is_recent(run)) {
            show::run_line(run, *json, output);
        }
        return Ok(Exit::Success);
    }
    let (log, objects) = read(&store)?;
    for run in log.runs.iter().rev().filter(|run| is_recent(run)) {
        for listed in Listed::of(run, &objects).rev() {
            if listed.concerns(path.as_deref(), resource.as_deref()) {
                listed.line(*json, output);
            }
        }
    }
    Ok(Exit::Success)
}

fn verify(StoreFlags { json, state }: &StoreFlags, output: &mut Output) -> Result<Exit, Failure> {
    let Some(store) = open(state)? else { return Ok(Exit::Success) };
    let (_, damage) = store.verify()?;
    for damage in &damage {
        if *json {
            output.line(&serde_json::json!({ "at": damage.at, "reason": damage.reason }).to_string());
        } else {
            output.message(&format!("{}: {}", damage.at, damage.reason));
        }
    }
    Ok(if damage.is_empty() { Exit::Success } else { Exit::Failed })
}

fn prune(state: &StateFolder, limits: &LimitFlags, output: &mut Output) -> Result<Exit, Failure> {
    let limits = limits.limits()?;
    let Some(store) = open(state)? else { return Ok(Exit::Success) };
    let environment = Environment::of_process();
    let origin = Origin {
        command: command_line::without_secrets(std::env::args().collect()),
        history: environment.history().map_err(Failure::new)?,
        ..Origin::new("ccm history prune", RunKind::Undo)
    };
    let local = LocalState::at(state.directory(&environment)?);
    let machine = machine(&output.progress, environment, local, &NatsFlags::default())?;
    run::complete_overdue(&machine, &origin)?;
    let _lock = lock(&machine.state.directory)?;
    let pruned = store.prune(limits, &[])?;
    output.message(&format!(
        "removed {} runs and {} copies ({} bytes)",
        pruned.runs, pruned.copies, pruned.bytes
    ));
    Ok(Exit::Success)
}

/// Takes the run lock, so that no run writes records meanwhile.
fn lock(state: &StateDirectory) -> Result<RunLock, Failure> {
    let interrupt = super::interrupt()?;
    match state.lock("ccm history prune", Patience::Wait, &interrupt, waiting) {
        Ok(Ok(lock)) => Ok(lock),
        Ok(Err(held)) => Err(Failure::new(format!("another run is in progress: {}", held.who))),
        Err(error) => Err(Failure::new(error.to_string())),
    }
}

/// Opens the history; `None` if there is none yet.
pub(super) fn open(state: &StateFolder) -> Result<Option<HistoryStore>, Failure> {
    Ok(state.directory(&Environment::of_process())?.history()?)
}

/// Reads the history, with a warning for each line that could not be read.
pub(super) fn read(store: &HistoryStore) -> Result<(Log, crate::state::history::Objects), Failure> {
    let objects = store.objects(crate::state::history::Secrecy::Public)?;
    Ok((heed(store.read()?), objects))
}

fn heed(log: Log) -> Log {
    for damage in &log.damage {
        warn(&format!("history: {} ignored: {}", damage.at, damage.reason));
    }
    log
}

fn unknown(run: &str) -> Failure {
    Failure::new(if run == "last" {
        "no run changed anything yet".to_owned()
    } else {
        format!("the history has no run `{run}`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_accepts_times_dates_and_durations() {
        let now: Timestamp = "2026-03-02T12:00:00Z".parse().unwrap();
        for (text, expected) in [
            ("1d", "2026-03-01T12:00:00Z"),
            ("2026-02-01", "2026-02-01T00:00:00Z"),
            ("2026-02-01T01:02:03Z", "2026-02-01T01:02:03Z"),
        ] {
            assert_eq!(moment(text, now).ok().unwrap().to_string(), expected, "{text}");
        }
        assert!(moment("yesterday", now).is_err());
    }
}
