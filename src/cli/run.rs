//! What the commands that apply something have in common: their flags, the run, and how it ends.

use std::{path::Path, sync::Arc};

use clap::{ArgAction, Args, builder::NonEmptyStringValueParser};
use serde_json::Value;

use super::{
    Exit, command_line,
    failure::{self, Failure, waiting, warn},
    history::LimitFlags,
    output::Output,
    report::{Format, Manner, Printer, Unchanged, Verbosity, VerbosityFlags},
    switch,
};
use crate::{
    engine::{
        Detail, Diffs, Engine, Exclusion, Finished, KeepPolicy, Registrations, RunMode, Selected, Settings,
        Task,
    },
    host::files::{self, Attributes},
    resource::{Manifest, OnFailure, flattened},
    run::{ConfirmSettings, Ending, Environment, HistorySettings, Machine, Notices, Origin, Run},
    session::{Event, Session, metrics},
    state::{Patience, history::RunKind},
};

/// Flags of every command that applies something.
#[derive(Args)]
pub(super) struct RunFlags {
    /// Change nothing and show what would be done
    #[arg(
        id = "noop",
        short = 'n',
        long = "noop",
        visible_alias = "dry-run",
        action = ArgAction::SetTrue,
        value_parser = switch(|is_dry| if is_dry { RunMode::Noop } else { RunMode::Real }),
    )]
    pub(super) mode: RunMode,
    /// Show changes of content (default with --noop)
    #[arg(long, overrides_with = "no_diff")]
    diff: bool,
    /// Do not show changes of content
    #[arg(long, overrides_with = "diff")]
    no_diff: bool,
    #[command(flatten)]
    verbosity: VerbosityFlags,
    /// Print events as JSON, one per line, and the summary last
    #[arg(id = "json", long = "json", action = ArgAction::SetTrue, value_parser = switch(Format::of))]
    pub(super) format: Format,
    /// Give up at once when another run is in progress, instead of waiting for its end
    #[arg(
        long = "no-wait",
        action = ArgAction::SetTrue,
        value_parser = switch(|gives_up| if gives_up { Patience::GiveUp } else { Patience::Wait }),
    )]
    pub(super) patience: Patience,
    /// A file to write the results of health checks to, for Prometheus
    #[arg(long, value_name = "FILE", value_parser = NonEmptyStringValueParser::new())]
    metrics_file: Option<String>,
    /// Do not record the run in the history
    #[arg(long)]
    no_history: bool,
    #[command(flatten)]
    history_limits: LimitFlags,
    /// Keep replaced files of any size in the history
    #[arg(
        long,
        action = ArgAction::SetTrue,
        value_parser = switch(|is_large| if is_large { KeepPolicy::Large } else { KeepPolicy::Usual }),
    )]
    keep_large: KeepPolicy,
    /// Why the run is made, for the history
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Exit with 3 instead of 0 when something changed or would change
    #[arg(long)]
    detailed_exitcode: bool,
    #[arg(skip = Task::Apply)]
    pub(super) task: Task,
    /// Command line of the controller, for a run that was pushed.
    #[arg(skip)]
    pushed: Option<Vec<String>>,
}

/// Flags of a command that never changes anything.
#[derive(Args)]
pub(super) struct DryRunFlags {
    /// Do not show changes of content
    #[arg(long)]
    no_diff: bool,
    #[command(flatten)]
    verbosity: VerbosityFlags,
    /// Print events as JSON, one per line, and the summary last
    #[arg(id = "json", long = "json", action = ArgAction::SetTrue, value_parser = switch(Format::of))]
    format: Format,
    /// Exit with 3 instead of 0 when something would change
    #[arg(long)]
    detailed_exitcode: bool,
}

impl From<DryRunFlags> for RunFlags {
    fn from(flags: DryRunFlags) -> Self {
        let DryRunFlags { no_diff, verbosity, format, detailed_exitcode } = flags;
        Self {
            mode: RunMode::Noop,
            diff: false,
            no_diff,
            verbosity,
            format,
            patience: Patience::GiveUp,
            metrics_file: None,
            no_history: false,
            history_limits: LimitFlags::default(),
            keep_large: KeepPolicy::Usual,
            reason: None,
            detailed_exitcode,
            task: Task::Apply,
            pushed: None,
        }
    }
}

impl RunFlags {
    /// Returns the same flags for a dry run.
    pub(super) fn without_changes(self) -> Self {
        Self { mode: RunMode::Noop, ..self }
    }

    fn diffs(&self) -> Diffs {
        let is_wanted = self.diff || self.mode == RunMode::Noop && !self.no_diff;
        if is_wanted { Diffs::Wanted } else { Diffs::Unwanted }
    }

    pub(super) fn verbosity(&self) -> Verbosity {
        self.verbosity.level()
    }

    fn records_history(&self) -> bool {
        !self.no_history && !Environment::of_process().turns_history_off()
    }

    /// Takes the command line of a controller.
    pub(super) fn accept(&mut self, command: Vec<String>) {
        self.pushed = Some(command);
    }

    /// Returns the origin of a run, for the history.
    pub(super) fn origin(&self, name: &str, kind: RunKind) -> Result<Origin, Failure> {
        let (is_on, keep, limits) = (self.records_history(), self.keep_large, self.history_limits.limits()?);
        Ok(Origin {
            command: match &self.pushed {
                Some(command) => command.clone(),
                None => command_line::without_secrets(std::env::args().collect()),
            },
            reason: self.reason.clone(),
            history: HistorySettings { is_on, limits, keep },
            ..Origin::new(name, if self.pushed.is_some() { RunKind::Push } else { kind })
        })
    }

    /// Fails if a manifest needs the history and it is off.
    pub(super) fn require_history(
        &self,
        manifests: &[Manifest],
        confirm: Option<ConfirmSettings>,
    ) -> Result<(), Failure> {
        if confirm.is_some() && !self.records_history() {
            return Err(Failure::new("a confirmation needs the history, which is off"));
        }
        let undoes = |manifest: &Manifest| {
            let mut included =
                flattened(&manifest.resources).into_iter().filter_map(|resource| resource.included.as_ref());
            manifest.on_failure == OnFailure::Undo
                || included.any(|included| included.on_failure == OnFailure::Undo)
        };
        match manifests.iter().find(|manifest| undoes(manifest)) {
            Some(manifest) if !self.records_history() => Err(Failure::new(format!(
                "{}: `on_failure: undo` needs the history, which is off",
                manifest.source.name
            ))),
            _ => Ok(()),
        }
    }

    /// Returns how the program ends after a run.
    pub(super) fn exit(&self, finished: &Finished) -> Exit {
        let summary = &finished.summary;
        if let Some(error) = &finished.unrecorded {
            failure::error(&error.to_string());
            return Exit::Failed;
        }
        if finished.is_kept_out {
            return Exit::NotAttempted;
        }
        if self.task == Task::Monitor && summary.health_checked_count == 0 && summary.failed_resources == 0 {
            failure::error("nothing was checked: no resource that was reached has health checks");
            return Exit::NotAttempted;
        }
        if summary.failed_resources > 0 || summary.requirements_unmet_count > 0 || finished.stopped.is_some()
        {
            Exit::Failed
        } else if summary.changed_resources > 0 && self.detailed_exitcode {
            Exit::Changed
        } else {
            Exit::Success
        }
    }
}

impl RunFlags {
    /// Returns an engine that works as the flags say.
    pub(super) fn engine<'m>(
        &self,
        machine: &'m Machine,
        exclusion: Exclusion,
        session: Session,
    ) -> Engine<'m> {
        let is_read =
            self.format == Format::Json || self.verbosity() == Verbosity::Everything || session.is_kept();
        let settings = Settings {
            mode: self.mode,
            diffs: self.diffs(),
            detail: if is_read { Detail::Whole } else { Detail::Outline },
            exclusion,
            read_ahead: machine.environment.read_ahead(),
            registrations: Registrations::Unwanted,
            task: self.task,
            ignores_failures: false,
        };
        Engine::new(&machine.host, &machine.state, settings, session)
    }

    /// Returns what prints a run of these manifests.
    pub(super) fn printer<'o>(
        &self,
        manifests: &[(&Manifest, &Selected)],
        unchanged: Unchanged,
        output: &'o mut Output,
    ) -> Printer<'o> {
        let manner = Manner {
            format: self.format,
            verbosity: self.verbosity(),
            unchanged,
            mode: self.mode,
            is_pushed: self.pushed.is_some(),
        };
        let total = manifests.iter().map(|(manifest, _)| flattened(&manifest.resources).len()).sum();
        Printer::new(output, manner, total)
    }

    /// Begins and performs a run, and prints the messages of the manifests before it.
    pub(super) fn apply<'o>(
        &self,
        machine: &Machine,
        (exclusion, session): (Exclusion, Session),
        origin: &Origin,
        manifests: &[(&Manifest, &Selected)],
        unchanged: Unchanged,
        output: &'o mut Output,
    ) -> Result<(Finished, Printer<'o>), Failure> {
        let mut engine = self.engine(machine, exclusion, session);
        let run = Run::begin(machine, &mut engine, origin)?;
        if unchanged != Unchanged::Unsaid {
            self.say(
                manifests.iter().filter_map(|(manifest, _)| manifest.settings.pre_message.as_ref()),
                output,
            );
        }
        Ok(self.perform(run, manifests, unchanged, output))
    }

    /// Prints messages of manifests for people.
    pub(super) fn say<'t>(&self, messages: impl Iterator<Item = &'t String>, output: &mut Output) {
        if self.format == Format::Text && self.verbosity() > Verbosity::Quiet {
            for message in messages {
                output.message(message.trim_end());
                output.flush();
            }
        }
    }

    /// Performs a run that has begun: prints it as it happens, and writes the metrics file.
    pub(super) fn perform<'o>(
        &self,
        mut run: Run,
        manifests: &[(&Manifest, &Selected)],
        unchanged: Unchanged,
        output: &'o mut Output,
    ) -> (Finished, Printer<'o>) {
        let progress = Arc::clone(&output.progress);
        let mut printer = self.printer(manifests, unchanged, output);
        let before = run.session().events().len();
        let mut finished = run.apply(manifests, &mut printer);
        progress.end();
        if let Some(file) = &self.metrics_file {
            write_metrics(Path::new(file), &run.session().events()[before..]);
        }
        let Ending { deadline, undone } = run.finish();
        finished.summary.confirm_deadline = deadline;
        if let Some(undone) = undone {
            finished.summary.undo_run = Some(undone.run);
        }
        (finished, printer)
    }
}

/// Shows messages of a run on standard error.
pub(super) struct StderrNotices;

impl Notices for StderrNotices {
    fn waiting(&self, holder: &str) {
        waiting(holder);
    }

    fn warning(&self, text: &str) {
        warn(text);
    }
}

/// Replaces a file by the metrics of these events. A run is none the worse for it where that cannot be done.
fn write_metrics(file: &Path, events: &[Event]) {
    let text = metrics(events);
    let path = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let written = files::replace(&path, Attributes::own(0o644), |out| out.write_all(text.as_bytes()));
    if let Err(error) = written {
        warn(&format!("the metrics are not written: {error}"));
    }
}

/// Returns a document as YAML, or as JSON with `--json`.
pub(super) fn to_text(document: &Value, format: Format) -> Result<String, Failure> {
    match format {
        Format::Json => serde_json::to_string_pretty(document).map_err(|error| error.to_string()),
        Format::Text => serde_saphyr::to_string(document).map_err(|error| error.to_string()),
    }
    .map(|text| text.trim_end().to_owned() + "\n")
    .map_err(Failure::new)
}
