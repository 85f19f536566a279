//! `ccm plan MANIFEST... [-o FILE]`

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::{Args, ValueHint};
use jiff::Timestamp;

use super::super::{
    Exit, apply, bundle,
    failure::{Failure, warn},
    output::Output,
    report::Unchanged,
    run::RunFlags,
};
use super::Made;
use crate::{
    engine::{Exclusion, Finished, Planning, Selected},
    facts::Facts,
    host::files::{self, Attributes},
    plan::{Draft, Drafted, Header},
    push::plan_lines,
    resource::Manifest,
    run::{Machine, Run, who},
    session::Session,
    state::{
        Recall,
        history::{Measure, RunKind},
    },
    vocabulary::Duration,
};

/// Lifetime of a plan if `--valid` is not given.
const VALID: Duration = Duration::from_secs(24 * 60 * 60);

/// Flags of commands that write plans.
#[derive(Args)]
pub(crate) struct DestinationFlags {
    /// Write the plan to this file
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// How long the plan can be applied [default: 24h]
    #[arg(long, value_name = "DURATION", requires = "output")]
    valid: Option<String>,
    /// Write plans with steps of unknown effect, too
    #[arg(long, requires = "output")]
    allow_opaque: bool,
    /// Sign the plan with this SSH key, as FILE.sig
    #[arg(long, value_name = "KEY", value_hint = ValueHint::FilePath, requires = "output")]
    sign: Option<PathBuf>,
    /// Whether a controller writes the plan.
    #[arg(skip)]
    is_pushed: bool,
}

/// Where a plan is written, and how.
pub(crate) struct Destination {
    /// `None` if a controller writes the plan.
    file: Option<PathBuf>,
    valid: Duration,
    allows_opaque: bool,
    key: Option<PathBuf>,
}

impl DestinationFlags {
    /// Leaves the plan to the controller.
    pub(crate) fn accept(&mut self) {
        self.is_pushed = true;
    }

    /// Returns the destination; `None` if no plan is written.
    pub(crate) fn read(self) -> Result<Option<Destination>, Failure> {
        let Self { output, valid, allow_opaque, sign, is_pushed } = self;
        let Some(file) = output else { return Ok(None) };
        let file = (!is_pushed).then_some(file);
        let valid = valid.map(|text| text.parse::<Duration>()).transpose();
        let valid = valid.map_err(|error| Failure::new(format!("--valid: {error}")))?.unwrap_or(VALID);
        Ok(Some(Destination { file, valid, allows_opaque: allow_opaque, key: sign }))
    }
}

pub(super) fn run(made: Made, output: &mut Output) -> Result<Exit, Failure> {
    let Made { run, manifests, destination } = made;
    let (flags, destination) = (RunFlags::from(run), destination.read()?);
    let (machine, inputs) = manifests.open(Recall::Used, output)?;
    let facts = Arc::clone(&inputs.inputs.facts);
    if destination.is_some() {
        facts.note_reads();
    }
    let (manifests, selected) = inputs.load(&machine)?;
    let to_apply: Vec<_> = manifests.iter().zip(&selected).collect();
    let mut engine = flags.engine(&machine, Exclusion::WholeRun(flags.patience), Session::begin());
    let measure = match &destination {
        Some(_) => Some(measure(&machine)?),
        None => None,
    };
    engine.plan_with(measure.clone().map(Planning::new));
    let run = Run::begin(&machine, &mut engine, &flags.origin("ccm plan", RunKind::Plan)?)?;
    let (Some(destination), Some(measure)) = (destination, measure) else {
        let (finished, mut printer) = flags.perform(run, &to_apply, Unchanged::Counted, output);
        printer.summary(&finished);
        return Ok(flags.exit(&finished));
    };
    let header = header(&machine, &measure, &manifests);
    let made = (header, Arc::clone(&measure));
    let (finished, drafted) = draft(&flags, run, &machine, &to_apply, made, &facts, output);
    write(&flags, &destination, &finished, drafted?, &measure, output)
}

/// Opens the key of the state directory for digests.
pub(crate) fn measure(machine: &Machine) -> Result<Arc<Measure>, Failure> {
    let measure = machine.state.directory.measure();
    measure.map(Arc::new).map_err(|error| Failure::new(error.to_string()))
}

/// Performs a dry run, prints it, and returns its plan.
pub(crate) fn draft(
    flags: &RunFlags,
    mut run: Run,
    machine: &Machine,
    manifests: &[(&Manifest, &Selected)],
    (mut header, measure): (Header, Arc<Measure>),
    facts: &Facts,
    output: &mut Output,
) -> (Finished, Result<Drafted, Failure>) {
    let progress = Arc::clone(&output.progress);
    let mut printer = flags.printer(manifests, Unchanged::Counted, output);
    let mut draft = Draft::new(&mut printer, &machine.state.directory, measure);
    if header.undo_of.is_some() {
        draft = draft.of_undo();
    }
    let finished = run.apply(manifests, &mut draft);
    progress.end();
    run.finish();
    let read = facts.read_so_far().into_iter();
    header.facts = read.map(|(path, value)| (path, serde_json::json!(value))).collect();
    let names: Vec<&Manifest> = manifests.iter().map(|(manifest, _)| *manifest).collect();
    header.templates = apply::template_digests(&names);
    let drafted = draft.finish(&names, header).map_err(|error| Failure::new(error.to_string()));
    printer.summary(&finished);
    (finished, drafted)
}

/// Writes the plan of a dry run that went well, and returns the exit status.
pub(crate) fn write(
    flags: &RunFlags,
    destination: &Destination,
    finished: &Finished,
    mut drafted: Drafted,
    measure: &Measure,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let exit = flags.exit(finished);
    if !matches!(exit, Exit::Success | Exit::Changed) {
        warn("no plan was written, because the dry run failed");
        return Ok(exit);
    }
    let opaque: Vec<String> =
        drafted.opaque().map(|step| format!("{}: {}", step.resource, step.described())).collect();
    if !opaque.is_empty() && !destination.allows_opaque {
        for line in opaque {
            warn(&format!("effects unknown: {line}"));
        }
        warn("no plan was written, because the effects of some steps are unknown; help: use --allow-opaque");
        return Ok(Exit::NotAttempted);
    }
    let now = Timestamp::now();
    drafted.header.created = now.to_string();
    let expires = now.checked_add(destination.valid.as_std());
    drafted.header.expires =
        expires.map_err(|_| Failure::new("--valid: the duration is too long"))?.to_string();
    let file = drafted.encode(measure.identity()).map_err(|error| Failure::new(error.to_string()))?;
    let Some(to) = &destination.file else {
        plan_lines(&file).for_each(|line| output.line(&line));
        return Ok(exit);
    };
    let to = absolute(to);
    files::replace(&to, Attributes::own(0o600), |out| out.write_all(&file))
        .map_err(|error| Failure::new(error.to_string()))?;
    if let Some(key) = &destination.key {
        bundle::sign(&to, key)?;
    }
    Ok(exit)
}

fn absolute(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.components().collect()
}

/// Returns the header of a plan without its times.
pub(crate) fn header(machine: &Machine, measure: &Measure, manifests: &[Manifest]) -> Header {
    let data: Vec<_> = manifests.iter().map(|manifest| serde_json::json!(manifest.scope.data())).collect();
    Header {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        machine: Header::machine_here(measure.identity()),
        who: who(&machine.environment),
        manifests: apply::digests(manifests),
        data: measure.keyed(&serde_json::json!(data).to_string()),
        ..Header::default()
    }
}
