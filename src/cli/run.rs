//! What the commands that apply something have in common: their flags, the run, and how it ends.

use std::{path::Path, rc::Rc};

use clap::{ArgMatches, Command};
use serde_json::Value;

use super::{
    Exit,
    failure::{Failure, warn},
    output::Output,
    recover,
    report::{Format, Printer},
    switch,
};
use crate::{
    document::Source,
    engine::{Detail, Diffs, Engine, Exclusion, Finished, OnFailure, RunMode, Settings, Site},
    host::{Host, process::close_inherited},
    resource::Resource,
    session::Session,
    state::{Memory, Patience, RefreshStore, StateDirectory},
    template::Scope,
};

/// Adds the flags of every command that applies something.
pub(super) fn arguments(command: Command) -> Command {
    command
        .arg(switch("noop", "Change nothing and show what would be done").visible_alias("dry-run"))
        .arg(switch("diff", "Show changes of content (default with --noop)").overrides_with("no-diff"))
        .arg(switch("no-diff", "Do not show changes of content").overrides_with("diff"))
        .arg(switch("json", "Print events as JSON, one per line, and the summary last"))
        .arg(switch(
            "no-wait",
            "Give up at once when another run is in progress, instead of waiting for its end",
        ))
        .arg(switch("detailed-exitcode", "Exit with 3 instead of 0 when something changed or would change"))
}

/// What the flags say.
pub(super) struct RunFlags {
    pub(super) mode: RunMode,
    pub(super) diffs: Diffs,
    pub(super) format: Format,
    pub(super) patience: Patience,
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
            patience: if matches.get_flag("no-wait") { Patience::GiveUp } else { Patience::Wait },
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

/// Resources and where they come from.
pub(super) struct Run<'a> {
    pub(super) resources: &'a [Resource],
    pub(super) source: &'a Source,
    pub(super) folder: &'a Path,
    pub(super) scope: &'a Scope,
    pub(super) on_failure: OnFailure,
    pub(super) exclusion: Exclusion,
}

impl Run<'_> {
    /// Applies the resources as the flags say.
    pub(super) fn start<'o>(
        self,
        flags: &RunFlags,
        host: &Host,
        memory: &Memory,
        refresh_store: Option<RefreshStore>,
        session: Session,
        output: &'o mut Output,
    ) -> (Finished, Printer<'o>)
    where
        Self: 'o,
    {
        let is_read = flags.format == Format::Json || session.is_kept();
        let settings = Settings {
            mode: flags.mode,
            diffs: flags.diffs,
            detail: if is_read { Detail::Whole } else { Detail::Outline },
            exclusion: self.exclusion,
        };
        let site = Site {
            resources: self.resources,
            source: self.source,
            working_directory: self.folder,
            scope: self.scope,
            on_failure: self.on_failure,
        };
        let progress = Rc::clone(&output.progress);
        let mut printer = Printer::new(output, flags.format, self.resources, self.source, settings.mode);
        // A manifest may have come through an inherited descriptor, so only now nobody needs them any more.
        close_inherited();
        if flags.mode == RunMode::Real {
            recover(host, memory);
        }
        let finished = Engine::new(host, memory, settings, session).apply(site, refresh_store, &mut printer);
        progress.end();
        (finished, printer)
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

/// What is owed to one resource, or may be owed to others because of it. Alone, it leaves no trace of itself.
pub(super) fn refresh_store_for(
    resource: &Resource,
    session: &Session,
    state: &StateDirectory,
) -> Option<RefreshStore> {
    let concerns_others = !resource.common.subscribe.is_empty() || session.name().is_some();
    concerns_others.then(|| refresh_store(state))
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
