//! `ccm undo`

use std::sync::Arc;

use clap::Args;
use serde_json::json;

use super::{
    Exit,
    failure::Failure,
    history::{RunArgument, read},
    machine::{NatsFlags, StateFolder, machine},
    output::Output,
    plan::{self, Destination, DestinationFlags},
    remote::Pushed,
    report::{Format, Unchanged},
    run::RunFlags,
};
use crate::{
    engine::{Exclusion, Finished, Planning, Selected, UndoWitness},
    run::{Environment, Machine, Run, note_undone},
    session::Session,
    state::{LocalState, history::RunKind},
    template::Scope,
    undo::{NotUndone, Reason, Request, Reversal},
    vocabulary::RunMode,
};

const EXAMPLES: &str = "\
Examples:
  # Show the changes without making them
  ccm undo last --noop

  # Undo one resource of a run, and refresh its subscribers
  ccm undo 2vPqXbY8 file#/etc/nginx/nginx.conf";

/// Arguments of `ccm undo`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(flatten)]
    run: RunFlags,
    #[command(flatten)]
    undone: RunArgument,
    /// Only these resources and their subscribers, such as `file#/etc/motd`
    #[arg(value_name = "REF", num_args = 0..)]
    resource: Vec<String>,
    /// Undo resources that were changed since, too
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    destination: DestinationFlags,
    #[command(flatten)]
    state: StateFolder,
}

impl Arguments {
    /// Takes what a controller sent.
    pub(super) fn accept(&mut self, pushed: Pushed) {
        self.run.accept(pushed.recorded);
        self.destination.accept();
    }
}

pub(super) fn run(arguments: Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let Arguments {
        undone: RunArgument { run: undone },
        resource: only,
        force,
        state,
        run: flags,
        destination,
    } = arguments;
    let destination = destination.read()?;
    let environment = Environment::of_process();
    let state = LocalState::at(state.directory(&environment)?);
    let machine = machine(&output.progress, environment, state, &NatsFlags::default())?;
    let directory = &machine.state.directory;
    let unknown = || Failure::new(format!("the history has no run `{undone}`"));
    let store = directory.history()?.ok_or_else(unknown)?;
    let (log, _) = read(&store)?;
    let record = log.find(&undone).map_err(Failure::new)?;
    let id = record.start.run.clone();
    if let Some(other) =
        only.iter().find(|only| !record.changes.iter().any(|(change, _)| change.resource == **only))
    {
        return Err(Failure::new(format!("run `{id}` did not change `{other}`")));
    }
    let name = format!("undo of {id}");
    let begun = Request::begun(&log.runs, &id);
    let request = Request { begun: &begun, ..Request::of(record, &only, force) };
    let reversal = request.reversal(directory, &name);
    match destination {
        Some(destination) => {
            make_plan(&machine, &flags.without_changes(), &destination, reversal, &id, output)
        }
        None => apply(&machine, &flags, reversal, &id, only.is_empty(), output),
    }
}

/// Writes a plan of the undo instead of performing it.
fn make_plan(
    machine: &Machine,
    flags: &RunFlags,
    destination: &Destination,
    mut reversal: Reversal,
    undo_of: &str,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let not_undone = std::mem::take(&mut reversal.not_undone);
    let (manifests, selected) = ([reversal.into_manifest(no_scope())], Selected::default());
    let to_apply = [(&manifests[0], &selected)];
    let measure = plan::measure(machine)?;
    let mut engine = flags.engine(machine, Exclusion::WholeRun(flags.patience), Session::begin());
    engine.plan_with(Some(Planning::new(Arc::clone(&measure))));
    let run = Run::begin(machine, &mut engine, &flags.origin("ccm undo", RunKind::Undo)?)?;
    let facts = machine.environment.facts(Vec::new(), 0, &machine.host.interrupt);
    let mut header = plan::header(machine, &measure, &manifests);
    header.manifests.clear();
    header.undo_of = Some(undo_of.to_owned());
    let made = (header, Arc::clone(&measure));
    let (finished, drafted) = plan::draft(flags, run, machine, &to_apply, made, &facts, output);
    let exit = plan::write(flags, destination, &finished, drafted?, &measure, output)?;
    report(flags, &not_undone, output);
    let is_left = not_undone.iter().any(|left| left.reason != Reason::Command);
    Ok(if is_left && exit == Exit::Success { Exit::Failed } else { exit })
}

/// Lists the resources that are not undone.
fn report(flags: &RunFlags, not_undone: &[NotUndone], output: &mut Output) {
    for NotUndone { resource, reason, detail } in not_undone.iter().filter(|_| flags.format == Format::Text) {
        let text = match reason {
            Reason::Command => format!("stays: {resource}: {detail}"),
            _ => format!("not undone: {resource}: {detail}"),
        };
        output.message(&text);
    }
}

fn no_scope() -> Scope {
    Scope::new(ccm_expr::Map::new().into(), ccm_expr::Map::new().into(), "/".into())
}

/// Applies the resources that undo a run, and reports the resources that are not undone.
fn apply(
    machine: &Machine,
    flags: &RunFlags,
    mut reversal: Reversal,
    undo_of: &str,
    is_whole: bool,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let not_undone = std::mem::take(&mut reversal.not_undone);
    let mut engine = flags.engine(machine, Exclusion::WholeRun(flags.patience), Session::begin());
    let mut origin = flags.origin("ccm undo", RunKind::Undo)?;
    origin.undo_of = Some(undo_of.to_owned());
    let mut run = Run::begin(machine, &mut engine, &origin)?;
    let selected = Selected::default();
    let manifest = reversal.into_manifest(no_scope());
    let manifests = [(&manifest, &selected)];
    let progress = Arc::clone(&output.progress);
    let mut printer = flags.printer(&manifests, Unchanged::Counted, output);
    let mut witness = UndoWitness::new(&mut printer, not_undone);
    let mut finished = run.apply(&manifests, &mut witness);
    progress.end();
    run.finish();
    let not_undone = witness.not_undone();
    finished.summary.undo_of = Some(undo_of.to_owned());
    finished.summary.not_undone = not_undone
        .iter()
        .map(|left| json!({ "resource": left.resource, "reason": left.reason.word() }))
        .collect();
    printer.summary(&finished);
    drop(printer);
    report(flags, &not_undone, output);
    let exit = exit(flags, &finished, &not_undone);
    if is_whole && flags.mode == RunMode::Real && matches!(exit, Exit::Success | Exit::Changed) {
        let by = finished.summary.run.as_deref().unwrap_or_default();
        note_undone(&machine.state.directory, undo_of, by)?;
    }
    Ok(exit)
}

fn exit(flags: &RunFlags, finished: &Finished, not_undone: &[NotUndone]) -> Exit {
    let is_left = not_undone.iter().any(|left| left.reason != Reason::Command);
    match flags.exit(finished) {
        Exit::NotAttempted => Exit::NotAttempted,
        _ if is_left => Exit::Failed,
        exit => exit,
    }
}
