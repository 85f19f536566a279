//! `ccm history`

mod show;

use clap::{Arg, ArgMatches, Command, ValueHint};
use jiff::{SignedDuration, Timestamp};

use self::show::Listed;
pub(super) use self::show::{describe, who, who_json};
use super::{
    Exit,
    failure::{Failure, warn},
    or_variable,
    output::Output,
    state::{self, StateFolder},
    switch,
};
use crate::{
    run::Environment,
    state::{
        Patience, RunLock, StateDirectory,
        history::{HistoryStore, Limits, Log, RunRecord},
    },
    vocabulary::Duration,
};

const EXAMPLES: &str = "\
Examples:
  # List runs, newest first
  ccm history --since 2d

  # Show the last run that changed something
  ccm history show last --diff";

pub(super) fn command() -> Command {
    Command::new("history")
        .about("List runs and their changes")
        .after_help(EXAMPLES)
        .args_conflicts_with_subcommands(true)
        .subcommand_negates_reqs(true)
        .disable_help_subcommand(true)
        .arg(
            Arg::new("since")
                .long("since")
                .value_name("TIME")
                .help("Only runs since a time (RFC 3339, a date) or within a duration such as `2d`"),
        )
        .arg(
            Arg::new("path")
                .long("path")
                .value_name("PATH")
                .value_hint(ValueHint::AnyPath)
                .help("List the changes of a path"),
        )
        .arg(Arg::new("resource").long("resource").value_name("REF").help("List the changes of a resource"))
        .arg(json())
        .arg(state::argument())
        .subcommand(
            Command::new("show")
                .about("Show one run, resource by resource")
                .after_help("Example:\n  ccm history show last --diff")
                .arg(run_argument())
                .arg(switch("diff", "Show changes of content"))
                .arg(json())
                .arg(state::argument()),
        )
        .subcommand(
            Command::new("verify")
                .about("Check the records and all kept copies")
                .after_help("Example:\n  ccm history verify")
                .arg(json())
                .arg(state::argument()),
        )
        .subcommand(
            Command::new("prune")
                .about("Apply the limits now")
                .after_help("Example:\n  ccm history prune --history-keep 30d,500")
                .arg(state::argument())
                .args(limit_arguments()),
        )
}

/// Returns the argument that names a run.
pub(super) fn run_argument() -> Arg {
    Arg::new("run")
        .value_name("RUN")
        .required(true)
        .help("Id of a run, an unambiguous beginning of one, or `last`")
}

fn json() -> Arg {
    switch("json", "Print JSON, one document per line")
}

/// Returns the flags that limit the history.
pub(super) fn limit_arguments() -> [Arg; 2] {
    let size = Arg::new("history-size")
        .long("history-size")
        .value_name("SIZE")
        .help("Maximum size of all kept copies [default: 1GiB]");
    let keep = Arg::new("history-keep")
        .long("history-keep")
        .value_name("AGE,RUNS")
        .help("How long and how many runs are kept [default: 90d,1000]");
    [or_variable(size, "CCM_HISTORY_SIZE"), or_variable(keep, "CCM_HISTORY_KEEP")]
}

/// Returns the limits that the flags or the environment set.
pub(super) fn limits(matches: &ArgMatches) -> Result<Limits, Failure> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    Limits::parse(text("history-size"), text("history-keep")).map_err(Failure::new)
}

/// Arguments of `ccm history`.
pub(super) struct Arguments {
    state: StateFolder,
    json: bool,
    action: Action,
}

enum Action {
    List { since: Option<Timestamp>, path: Option<String>, resource: Option<String> },
    Show { run: String, diff: bool },
    Verify,
    Prune(Limits),
}

impl Arguments {
    pub(super) fn from_matches(matches: &ArgMatches) -> Result<Self, Failure> {
        let (matches, action) = match matches.subcommand() {
            Some(("show", matches)) => {
                let run = super::required(matches, "run")?;
                (matches, Action::Show { run, diff: matches.get_flag("diff") })
            }
            Some(("verify", matches)) => (matches, Action::Verify),
            Some(("prune", matches)) => (matches, Action::Prune(limits(matches)?)),
            _ => {
                let text = |name: &str| matches.get_one::<String>(name).cloned();
                let since = text("since").map(|text| since(&text, Timestamp::now())).transpose()?;
                let path = text("path").map(|path| absolute(&path)).transpose()?;
                (matches, Action::List { since, path, resource: text("resource") })
            }
        };
        let json = matches.try_get_one::<bool>("json").ok().flatten().copied().unwrap_or_default();
        Ok(Self { state: StateFolder::from_matches(matches), json, action })
    }
}

/// Returns a path as the history has it.
pub(super) fn absolute(path: &str) -> Result<String, Failure> {
    let absolute = std::path::absolute(path).map_err(|error| Failure::new(format!("`{path}`: {error}")))?;
    let absolute: std::path::PathBuf = absolute.components().collect();
    Ok(crate::state::history::to_text(absolute.as_os_str()))
}

/// Returns the moment that a time, date or duration names.
fn since(text: &str, now: Timestamp) -> Result<Timestamp, Failure> {
    if let Ok(ago) = text.parse::<Duration>() {
        let ago = SignedDuration::try_from(ago.as_std()).unwrap_or(SignedDuration::MAX);
        return Ok(now.checked_sub(ago).unwrap_or(Timestamp::MIN));
    }
    let wrong =
        || Failure::new(format!("--since: `{text}` is not a time, a date or a duration such as `2d`"));
    text.parse().or_else(|_| format!("{text}T00:00:00Z").parse()).map_err(|_| wrong())
}

pub(super) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let Some(store) = open(&arguments.state)? else {
        return match &arguments.action {
            Action::Show { run, .. } => Err(unknown(run)),
            _ => Ok(Exit::Success),
        };
    };
    let failed = |error: crate::state::StateError| Failure::new(error.to_string());
    match &arguments.action {
        Action::List { since, path, resource } => {
            let is_recent = |run: &RunRecord| {
                let started: Option<Timestamp> = run.start.start.parse().ok();
                since.is_none_or(|since| started.is_some_and(|started| started >= since))
            };
            if path.is_none() && resource.is_none() {
                let log = heed(store.list().map_err(failed)?);
                for run in log.runs.iter().rev().filter(|run| is_recent(run)) {
                    show::run_line(run, arguments.json, output);
                }
                return Ok(Exit::Success);
            }
            let (log, objects) = read(&store)?;
            for run in log.runs.iter().rev().filter(|run| is_recent(run)) {
                for listed in Listed::of(run, &objects).rev() {
                    if listed.concerns(path.as_deref(), resource.as_deref()) {
                        listed.line(arguments.json, output);
                    }
                }
            }
            Ok(Exit::Success)
        }
        Action::Show { run, diff } => {
            let (log, objects) = read(&store)?;
            let run = log.find(run).map_err(Failure::new)?;
            show::run(run, &objects, *diff, arguments.json, output);
            Ok(Exit::Success)
        }
        Action::Verify => {
            let (_, damage) = store.verify().map_err(failed)?;
            for damage in &damage {
                if arguments.json {
                    output.line(&serde_json::json!({ "at": damage.at, "reason": damage.reason }).to_string());
                } else {
                    output.message(&format!("{}: {}", damage.at, damage.reason));
                }
            }
            Ok(if damage.is_empty() { Exit::Success } else { Exit::Failed })
        }
        Action::Prune(limits) => {
            let state = arguments.state.directory(&Environment::of_process())?;
            let _lock = lock(&state)?;
            let pruned = store.prune(*limits, &[]).map_err(failed)?;
            output.message(&format!(
                "removed {} runs and {} copies ({} bytes)",
                pruned.runs, pruned.copies, pruned.bytes
            ));
            Ok(Exit::Success)
        }
    }
}

/// Takes the run lock, so that no run writes records meanwhile.
fn lock(state: &StateDirectory) -> Result<RunLock, Failure> {
    let interrupt = super::interrupt()?;
    let waiting = |holder: &str| warn(&format!("waiting for {holder} to finish"));
    match state.lock("ccm history prune", Patience::Wait, &interrupt, waiting) {
        Ok(Ok(lock)) => Ok(lock),
        Ok(Err(held)) => Err(Failure::new(format!("another run is in progress: {}", held.who))),
        Err(error) => Err(Failure::new(error.to_string())),
    }
}

/// Opens the history; `None` if there is none yet.
pub(super) fn open(state: &StateFolder) -> Result<Option<HistoryStore>, Failure> {
    state.directory(&Environment::of_process())?.history().map_err(|error| Failure::new(error.to_string()))
}

/// Reads the history, with a warning for each line that could not be read.
pub(super) fn read(store: &HistoryStore) -> Result<(Log, crate::state::history::Objects), Failure> {
    let failed = |error: crate::state::StateError| Failure::new(error.to_string());
    let objects = store.objects(crate::state::history::Secrecy::Public).map_err(failed)?;
    Ok((heed(store.read().map_err(failed)?), objects))
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
            assert_eq!(since(text, now).ok().unwrap().to_string(), expected, "{text}");
        }
        assert!(since("yesterday", now).is_err());
    }
}
