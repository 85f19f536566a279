//! `ccm confirm`, and the flags that make a run need a confirmation.

use std::ffi::OsString;

use clap::Args;
use serde_json::json;

use super::{
    Exit, command_line,
    failure::{Failure, warn},
    machine::{NatsFlags, StateFolder, machine},
    output::Output,
};
use crate::{
    engine::Finished,
    manifest::Manifest,
    run::{self, Answer, Awaited, ConfirmSettings, Environment, Machine, Origin, UndoneRun},
    state::{LocalState, Phase, StateDirectory, history::RunKind},
    undo::{NotUndone, Reason},
    vocabulary::{Duration, TimeLimit},
};

const EXAMPLES: &str = "\
Examples:
  # Undo the run after 5 minutes, unless `ccm confirm` keeps it
  ccm apply site.yaml --confirm 5m

  # Show the run that awaits confirmation
  ccm confirm --status";

/// Arguments of `ccm confirm`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// Id of the run, or an unambiguous beginning of it
    run: Option<String>,
    /// Undo the run now
    #[arg(long, group = "mode")]
    undo: bool,
    /// Wait until the run is confirmed (exit code 0) or undone (1)
    #[arg(long, group = "mode")]
    wait: bool,
    /// Show the run that awaits confirmation
    #[arg(long, group = "mode")]
    status: bool,
    /// Undo the run after its deadline
    #[arg(long, group = "mode", hide = true)]
    guard: bool,
    /// Print the status as JSON
    #[arg(long, requires = "status")]
    json: bool,
    #[command(flatten)]
    state: StateFolder,
}

pub(super) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let environment = Environment::of_process();
    let directory = arguments.state.directory(&environment)?;
    if arguments.status {
        return show_status(&directory, arguments.json, output);
    }
    let origin = Origin {
        command: command_line::without_secrets(std::env::args().collect()),
        history: environment.history().map_err(Failure::new)?,
        ..Origin::new("ccm confirm", RunKind::Undo)
    };
    let state = LocalState::at(directory);
    let machine = machine(&output.progress, environment, state, &NatsFlags::default())?;
    let run = arguments.run.as_deref();
    if arguments.guard {
        run::guard(&machine, &origin)?;
        return Ok(Exit::Success);
    }
    if arguments.undo {
        return reply(run::undo_now(&machine, &origin, run)?, output);
    }
    if arguments.wait {
        return match run::wait(&machine, run)? {
            Awaited::Confirmed => Ok(Exit::Success),
            Awaited::Undone | Awaited::Interrupted => Ok(Exit::Failed),
            Awaited::Refused(reason) => Err(Failure::new(reason)),
        };
    }
    match run::confirm(&machine.state.directory, run)? {
        // Nothing else can have begun the undo yet.
        Answer::TooLate { run } => {
            warn(&format!("run {run} is undone: the time is over"));
            run::undo_now(&machine, &origin, Some(&run))?;
            Ok(Exit::Failed)
        }
        answer => reply(answer, output),
    }
}

fn reply(answer: Answer, output: &mut Output) -> Result<Exit, Failure> {
    match answer {
        Answer::Confirmed { run } => {
            output.message(&format!("run {run} is confirmed"));
            Ok(Exit::Success)
        }
        Answer::Undone { run, undone } => {
            report(&run, &undone, output);
            Ok(if undone.is_everything_back() { Exit::Success } else { Exit::Failed })
        }
        Answer::TooLate { .. } => Ok(Exit::Failed),
        Answer::Refused(reason) => Err(Failure::new(reason)),
    }
}

fn report(run: &str, undone: &UndoneRun, output: &mut Output) {
    output.message(&match undone.run.as_str() {
        "" => format!("run {run} had not changed anything"),
        by => format!("run {run} was undone by run {by}"),
    });
    for NotUndone { resource, reason, detail } in &undone.not_undone {
        let what = if *reason == Reason::Command { "stays" } else { "not undone" };
        output.message(&format!("{what}: {resource}: {detail}"));
    }
}

fn show_status(state: &StateDirectory, json: bool, output: &mut Output) -> Result<Exit, Failure> {
    let status = run::status(state)?;
    if json {
        output.line(&match status {
            None => json!({ "pending": false }).to_string(),
            Some(status) => json!({
                "pending": true,
                "run": status.run,
                "deadline": status.deadline,
                "left": seconds(status.left),
            })
            .to_string(),
        });
        return Ok(Exit::Success);
    }
    output.message(&match status {
        None => "no run awaits confirmation".to_owned(),
        Some(status) => match status.phase {
            Phase::Applying => format!("run {} is in progress, until {}", status.run, status.deadline),
            Phase::Waiting => {
                let left = Duration::from_secs(seconds(status.left));
                format!("run {} awaits confirmation until {} ({left} left)", status.run, status.deadline)
            }
            Phase::Undoing => format!("run {} is being undone", status.run),
            Phase::Stuck => {
                format!("run {} is not undone completely: {}", status.run, status.failed.join(", "))
            }
        },
    });
    Ok(Exit::Success)
}

/// Returns whole seconds: none only if the time is over.
fn seconds(left: std::time::Duration) -> u64 {
    left.as_secs() + u64::from(left.subsec_nanos() > 0)
}

/// Flags of a run that has to be confirmed.
#[derive(Args, Clone, Copy)]
pub(super) struct ConfirmFlags {
    /// Undo the run unless `ccm confirm` confirms it within this time
    #[arg(long, value_name = "TIME")]
    confirm: Option<TimeLimit>,
    /// Require a reboot before the confirmation
    #[arg(long)]
    confirm_reboot: bool,
}

impl ConfirmFlags {
    /// Returns how a run of these manifests is confirmed. The flag takes precedence over the manifests.
    pub(super) fn settings(self, manifests: &[Manifest]) -> Result<Option<ConfirmSettings>, Failure> {
        let own = manifests.iter().filter_map(|manifest| manifest.settings.confirm).map(TimeLimit::as_std);
        let settings = self
            .confirm
            .map(TimeLimit::as_std)
            .or_else(|| own.max())
            .map(|timeout| ConfirmSettings { timeout, after_boot: self.confirm_reboot });
        if settings.is_none() && self.confirm_reboot {
            return Err(Failure::new(
                "--confirm-reboot needs --confirm or `ccm: {confirm: TIME}` in the manifest",
            ));
        }
        Ok(settings)
    }
}

/// Shows how to confirm a run that has ended, or that it need not be confirmed.
pub(super) fn announce(finished: &Finished, state: &StateFolder, machine: &Machine, output: &mut Output) {
    let summary = &finished.summary;
    let run = summary.run.as_deref().unwrap_or_default();
    let text = match (&summary.confirm_deadline, &summary.undo_run) {
        (Some(deadline), _) => {
            let state = state.given().map(|path| {
                let path: OsString = path.into();
                format!(" --state-dir {}", shell_words::quote(&path.to_string_lossy()))
            });
            let state = state.unwrap_or_default();
            format!(
                "run {run} is undone unless it is confirmed until {deadline}:\n  ccm confirm {run}{state}"
            )
        }
        (None, Some(by)) => format!("run {run} was undone by run {by}"),
        (None, None) => "nothing was changed, so there is nothing to confirm".to_owned(),
    };
    output.message(&text);
    let reason = run::unguarded_boot(&machine.state.directory).filter(|_| summary.confirm_deadline.is_some());
    if let Some(reason) = reason {
        warn(&reason);
    }
}
