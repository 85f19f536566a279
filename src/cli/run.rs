//! What the commands that apply something have in common: their flags, the run, and how it ends.

use std::{
    env,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::{Arg, ArgMatches, Command, builder::NonEmptyStringValueParser};
use serde_json::Value;

use super::{
    Exit,
    failure::{Failure, warn},
    output::Output,
    recover,
    report::{Format, Manner, Printer, Unchanged, Verbosity},
    switch,
};
use crate::{
    engine::{
        Detail, Diffs, Engine, Exclusion, Finished, ReadAhead, Registrations, RunMode, Settings, Site, Task,
    },
    host::{
        Host,
        files::{self, Attributes},
        process::close_inherited,
    },
    resource::{Resource, flattened},
    session::{Event, Session, metrics},
    state::{LocalState, Patience, RefreshStore, StateDirectory},
};

/// Adds the flags of every command that applies something.
pub(super) fn arguments(command: Command) -> Command {
    command
        .arg(switch("noop", "Change nothing and show what would be done").short('n').visible_alias("dry-run"))
        .arg(switch("diff", "Show changes of content (default with --noop)").overrides_with("no-diff"))
        .arg(switch("no-diff", "Do not show changes of content").overrides_with("diff"))
        .args(Verbosity::arguments())
        .arg(switch("json", "Print events as JSON, one per line, and the summary last"))
        .arg(switch(
            "no-wait",
            "Give up at once when another run is in progress, instead of waiting for its end",
        ))
        .arg(
            Arg::new("metrics-file")
                .long("metrics-file")
                .value_name("FILE")
                .value_parser(NonEmptyStringValueParser::new())
                .help("A file to write the results of health checks to, for Prometheus"),
        )
        .arg(switch("detailed-exitcode", "Exit with 3 instead of 0 when something changed or would change"))
}

/// What the flags say.
pub(super) struct RunFlags {
    pub(super) mode: RunMode,
    pub(super) diffs: Diffs,
    pub(super) format: Format,
    pub(super) verbosity: Verbosity,
    pub(super) patience: Patience,
    pub(super) task: Task,
    /// A file that tells a monitoring system what came of health checks.
    metrics_file: Option<PathBuf>,
    /// Whether the exit code tells that something changed.
    detailed_exitcode: bool,
}

impl RunFlags {
    pub(super) fn from_matches(matches: &ArgMatches) -> Self {
        let noop = matches.get_flag("noop");
        let diffs = matches.get_flag("diff") || noop && !matches.get_flag("no-diff");
        Self {
            mode: if noop { RunMode::Noop } else { RunMode::Real },
            diffs: if diffs { Diffs::Wanted } else { Diffs::Unwanted },
            format: Format::from_matches(matches),
            verbosity: Verbosity::from_matches(matches),
            patience: if matches.get_flag("no-wait") { Patience::GiveUp } else { Patience::Wait },
            task: Task::Apply,
            metrics_file: matches.get_one::<String>("metrics-file").map(PathBuf::from),
            detailed_exitcode: matches.get_flag("detailed-exitcode"),
        }
    }

    /// Returns how the program ends after a run.
    pub(super) fn exit(&self, finished: &Finished) -> Exit {
        let summary = &finished.summary;
        if let Some(error) = &finished.unrecorded {
            warn(&error.to_string());
            return Exit::Failed;
        }
        if finished.is_kept_out {
            return Exit::NotAttempted;
        }
        if self.task == Task::Monitor && summary.health_checked_count == 0 && summary.failed_resources == 0 {
            warn("nothing was checked: no resource that was reached has health checks");
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

/// Resources, and how other runs are kept out.
pub(super) struct Run<'a> {
    /// What is applied, one after the other.
    pub(super) sites: &'a [Site<'a>],
    pub(super) exclusion: Exclusion,
    pub(super) unchanged: Unchanged,
}

impl Run<'_> {
    /// Applies the resources as the flags say. Each site is given the refreshes that are owed by then.
    pub(super) fn start<'o>(
        self,
        flags: &RunFlags,
        host: &Host,
        state: &LocalState,
        refresh_store: impl Fn() -> Option<RefreshStore>,
        session: Session,
        output: &'o mut Output,
    ) -> (Finished, Printer<'o>)
    where
        Self: 'o,
    {
        let is_read =
            flags.format == Format::Json || flags.verbosity == Verbosity::Everything || session.is_kept();
        let settings = Settings {
            mode: flags.mode,
            diffs: flags.diffs,
            detail: if is_read { Detail::Whole } else { Detail::Outline },
            exclusion: self.exclusion,
            // Who only looks does not look at the resources themselves.
            read_ahead: if flags.task == Task::Monitor { ReadAhead::None } else { read_ahead() },
            registrations: Registrations::Unwanted,
            task: flags.task,
        };
        let progress = Arc::clone(&output.progress);
        let manner = Manner {
            format: flags.format,
            verbosity: flags.verbosity,
            unchanged: self.unchanged,
            mode: flags.mode,
        };
        let mut printer =
            Printer::new(output, manner, self.sites.iter().map(|site| flattened(site.resources).len()).sum());
        // A manifest may have come through an inherited descriptor, so only now nobody needs them any more.
        close_inherited();
        if flags.mode == RunMode::Real && flags.task == Task::Apply {
            recover(host, state);
        }
        let mut engine = Engine::new(host, state, settings, session);
        let before = engine.session().events().len();
        let finished = engine.apply_all(self.sites, refresh_store, &mut printer);
        progress.end();
        if flags.mode == RunMode::Real && flags.task == Task::Apply {
            state.digests.save();
        }
        if let Some(file) = &flags.metrics_file {
            write_metrics(file, &engine.session().events()[before..]);
        }
        (finished, printer)
    }
}

/// Whether resources may be looked at before their turns: not with `CCM_SEQUENTIAL=1`, which is for comparison.
pub(super) fn read_ahead() -> ReadAhead {
    if env::var_os("CCM_SEQUENTIAL").is_some_and(|value| value == "1") {
        ReadAhead::None
    } else {
        ReadAhead::USUAL
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

/// Says for whom the run waits.
pub(super) fn waiting(holder: &str) {
    warn(&format!("waiting for {holder} to finish"));
}

/// The refreshes that are owed. Damaged memory is said and set aside: it may cost a restart, never the run.
pub(super) fn refresh_store(state: &StateDirectory) -> RefreshStore {
    state.refresh_store().unwrap_or_else(|error| {
        warn(&format!("{error}; refreshes that earlier runs owe are not known"));
        state.empty_refresh_store()
    })
}

/// Whether something may be owed to a resource, or to others because of it. Alone, it leaves no trace of itself.
pub(super) fn concerns_others(resource: &Resource, session: &Session) -> bool {
    !resource.common.subscribe.is_empty() || session.name().is_some()
}

/// A document as YAML, or as JSON where that was asked for.
pub(super) fn to_text(document: &Value, format: Format) -> Result<String, Failure> {
    match format {
        Format::Json => serde_json::to_string_pretty(document).map_err(|error| error.to_string()),
        Format::Text => serde_saphyr::to_string(document).map_err(|error| error.to_string()),
    }
    .map(|text| text.trim_end().to_owned() + "\n")
    .map_err(Failure::new)
}
