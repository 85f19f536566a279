//! `ccm apply`

use std::{path::Path, rc::Rc};

use clap::{Arg, ArgMatches, Command};
use serde_json::{Map, Value, json};

use super::{
    Exit,
    failure::{Failure, heed, warn},
    host, load_inputs, memory,
    output::Output,
    recover,
    report::{Format, Printer},
    switch,
};
use crate::{
    document::Source,
    engine::{Detail, Diffs, Engine, Exclusion, Finished, OnFailure, RunMode, Settings, Site},
    host::{Host, process::close_inherited},
    manifest::{self, Manifest},
    resource::{HIDDEN, Resource},
    session::Session,
    state::{Held, Memory, Patience, RefreshStore, RunLock, StateDirectory, StateError},
    template::{Scope, escape},
};

pub(super) fn command() -> Command {
    load_inputs::arguments(run_arguments(Command::new("apply")))
        .about("Brings the machine to the state that a manifest declares")
        .arg(manifest_argument())
        .arg(switch("render", "Print the resolved manifest and apply nothing"))
        .arg(switch("no-report", "Leave out the summary at the end"))
}

/// The argument that says where a manifest is.
pub(super) fn manifest_argument() -> Arg {
    Arg::new("manifest")
        .value_name("MANIFEST")
        .required(true)
        .help("A YAML or JSON file, a folder or bundle (.tar.gz, .zip, ...) that holds manifest.yaml, the address of one, or - for standard input")
}

/// Flags of every command that applies something.
pub(super) fn run_arguments(command: Command) -> Command {
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

pub(super) fn run(matches: &ArgMatches, output: &mut Output) -> Result<Exit, Failure> {
    let (host, memory) = (host(&output.progress)?, memory(matches)?);
    let location = load_inputs::location(matches.get_one::<String>("manifest").map_or("-", String::as_str))?;
    let manifest =
        heed(manifest::load(&location, &load_inputs::load_inputs(matches, &host)?, &host, &memory)?);
    if matches.get_flag("render") {
        render(&manifest, matches, output)?;
        return Ok(Exit::Success);
    }
    let _lock = lock(matches, &host, &memory)?;
    let settings = &manifest.settings;
    let human = Format::of(matches) == Format::Text;
    if let Some(message) = settings.pre_message.as_deref().filter(|_| human) {
        output.message(message.trim_end());
        output.flush();
    }
    let on_failure = if settings.fail_on_error { OnFailure::Stop } else { OnFailure::Continue };
    let run = Run {
        resources: &manifest.resources,
        source: &manifest.source,
        folder: &manifest.working_directory,
        scope: &manifest.scope,
        on_failure,
        exclusion: Exclusion::WholeRun,
    };
    let refresh_store = refresh_store(&memory.directory);
    let (finished, mut printer) =
        run.start(matches, &host, &memory, Some(refresh_store), Session::begin(), output);
    if !matches.get_flag("no-report") {
        printer.summary(&finished);
    }
    let exit = exit(&finished, matches);
    if let Some(message) = settings.post_message.as_deref().filter(|_| human && exit != Exit::Failed) {
        output.message(message.trim_end());
    }
    Ok(exit)
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
        matches: &ArgMatches,
        host: &Host,
        memory: &Memory,
        refresh_store: Option<RefreshStore>,
        session: Session,
        output: &'o mut Output,
    ) -> (Finished, Printer<'o>)
    where
        Self: 'o,
    {
        let noop = matches.get_flag("noop");
        let diffs = matches.get_flag("diff") || noop && !matches.get_flag("no-diff");
        let is_read = Format::of(matches) == Format::Json || session.is_kept();
        let settings = Settings {
            mode: if noop { RunMode::Noop } else { RunMode::Real },
            diffs: if diffs { Diffs::Wanted } else { Diffs::Unwanted },
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
        let mut printer =
            Printer::new(output, Format::of(matches), self.resources, self.source, settings.mode);
        // A manifest may have come through an inherited descriptor, so only now nobody needs them any more.
        close_inherited();
        if !noop {
            recover(host, memory);
        }
        let finished = Engine::new(host, memory, settings, session).apply(site, refresh_store, &mut printer);
        progress.end();
        (finished, printer)
    }
}

/// Makes sure that no other run is in progress, unless this one changes nothing anyway.
fn lock(matches: &ArgMatches, host: &Host, memory: &Memory) -> Result<Option<RunLock>, Failure> {
    if matches.get_flag("noop") {
        return Ok(None);
    }
    match memory.directory.lock("ccm apply", patience(matches), &host.interrupt, waiting) {
        Ok(Ok(lock)) => Ok(Some(lock)),
        Ok(Err(Held { who, waits_for_us: true })) => Err(Failure::new(format!(
            "this run was started by one that is in progress: {who}; inside of it, use `ccm ensure`"
        ))),
        Ok(Err(Held { who, .. })) => Err(Failure::new(format!("another run is in progress: {who}"))),
        Err(error @ StateError::Interrupted) => Err(Failure::new(error.to_string())),
        Err(error) => Err(Failure::new(format!("{error}; another place can be named with --state-dir"))),
    }
}

/// What to do when another run is in progress.
pub(super) fn patience(matches: &ArgMatches) -> Patience {
    if matches.get_flag("no-wait") { Patience::GiveUp } else { Patience::Wait }
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

/// The exit code of a run.
pub(super) fn exit(finished: &Finished, matches: &ArgMatches) -> Exit {
    let summary = &finished.summary;
    if let Some(error) = &finished.unrecorded {
        warn(&error.to_string());
        return Exit::Failed;
    }
    if summary.failed_resources > 0 || summary.requirements_unmet_count > 0 || finished.stopped.is_some() {
        Exit::Failed
    } else if summary.changed_resources > 0 && matches.get_flag("detailed-exitcode") {
        Exit::Changed
    } else {
        Exit::Success
    }
}

/// Prints the manifest as it would be applied.
fn render(manifest: &Manifest, matches: &ArgMatches, output: &mut Output) -> Result<(), Failure> {
    let (mut resources, mut hides) = (Vec::new(), false);
    for resource in &manifest.resources {
        let properties = resource.rendered(&manifest.scope, &manifest.source);
        hides |= properties.values().any(|value| value == HIDDEN);
        let named = Map::from_iter([(ccm_expr::escape(&resource.name), Value::Object(properties))]);
        resources.push(json!({ resource.kind.name(): [named] }));
    }
    let (mut settings, mut data) = (json!(manifest.settings), json!(manifest.scope.data()));
    [&mut settings, &mut data].into_iter().for_each(escape);
    settings["resources"] = resources.into();
    let mut document = Map::new();
    if hides {
        warn("the data is left out: what is hidden may come from it");
    } else if data != json!({}) {
        document.insert("data".to_owned(), data);
    }
    document.insert("ccm".to_owned(), settings);
    output.text(&to_text(&document.into(), Format::of(matches))?);
    Ok(())
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
