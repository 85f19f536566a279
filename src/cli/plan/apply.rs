//! `ccm apply PLAN`

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use jiff::Timestamp;

use super::super::{
    Exit,
    apply::{Arguments, Manifests},
    bundle,
    confirm::{self, ConfirmFlags},
    failure::{Failure, warn},
    machine::StateFolder,
    output::Output,
    report::{Format, Unchanged, Verbosity},
    run::RunFlags,
};
use crate::{
    bundle::AllowedSigners,
    engine::{Exclusion, ReadAhead, RunMode, Selected},
    facts::Facts,
    host::input::{self, Limits, UnreadableInput},
    plan::{Applicable, Envelope, FIRST_BYTES, Facts as PlannedFacts, PlanFile, Reason, Refusal, Stale},
    resource::Manifest,
    run::{Machine, Run},
    session::Session,
    state::{
        Recall,
        history::{Measure, RunKind},
    },
};

/// Largest plan file.
const LARGEST: u64 = 1 << 30;

/// Options of `ccm apply` that would change a plan.
const CHANGING: [&str; 13] = [
    "data",
    "fact",
    "facts",
    "hiera",
    "only",
    "skip",
    "strict",
    "verify",
    "render",
    "monitor-only",
    "format",
    "read-env",
    "no-read-env",
];

/// Returns whether a file is a plan, by its first bytes.
pub(crate) fn is_plan(path: &str) -> bool {
    let path = Path::new(path);
    // Reading from a pipe would take the manifest from it.
    if !crate::host::look::is_file(path) {
        return false;
    }
    let Ok(file) = input::open_file(path) else { return false };
    let mut first = Vec::new();
    file.take(FIRST_BYTES.len() as u64).read_to_end(&mut first).is_ok() && first == FIRST_BYTES
}

/// A plan that is applied.
struct Applied {
    confirm: ConfirmFlags,
    state: StateFolder,
    file: PathBuf,
    signers: Option<PathBuf>,
    run: RunFlags,
    no_report: bool,
}

/// Returns an option on the command line that would change a plan.
pub(crate) fn changing_option(is_written: impl Fn(&str) -> bool) -> Option<&'static str> {
    CHANGING.into_iter().find(|option| is_written(&option.replace('-', "_")))
}

/// Returns the plan that the arguments of `ccm apply` name; `None` if they name manifests.
pub(crate) fn recognize(arguments: &Arguments) -> Result<Option<PathBuf>, Failure> {
    if let Some(plan) = &arguments.plan {
        return Ok(Some(plan.clone()));
    }
    let named = &arguments.manifests.named.manifest;
    let Some(plan) = named.iter().find(|path| is_plan(path)) else { return Ok(None) };
    if named.len() > 1 {
        return Err(Failure::new(format!("`{plan}` is a plan: apply it alone")));
    }
    if let Some(option) = changing_option(|id| arguments.written.contains(id)) {
        return Err(Failure::new(format!(
            "`{plan}` is a plan: `--{option}` would change what it does; make a new plan with `ccm plan`"
        )));
    }
    Ok(Some(PathBuf::from(plan)))
}

/// Applies a plan.
pub(crate) fn apply(file: PathBuf, arguments: Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let Arguments {
        run,
        manifests: Manifests { mut inputs, stream, .. },
        no_report,
        allowed_signers,
        confirm,
        ..
    } = arguments;
    let state = inputs.state.clone();
    inputs.nats.select(stream);
    let machine = inputs.machine(Recall::Used, output)?;
    let content = input::read_file(&file, LARGEST)
        .map_err(|error| Failure::new(UnreadableInput { path: file.clone(), error }.to_string()))?;
    let applied = Applied { confirm, state, file, signers: allowed_signers, run, no_report };
    match applied.check(&content, &machine)? {
        Ok((plan, measure)) => applied.apply(&plan, measure, &machine, output),
        Err(refusal) => Ok(refuse(&refusal, applied.run.format, output)),
    }
}

impl Applied {
    /// Checks everything about the file that does not depend on the rest of the machine.
    fn check(&self, file: &[u8], machine: &Machine) -> Result<Result<(PlanFile, Measure), Refusal>, Failure> {
        let failed = |error: &dyn std::fmt::Display| Failure::new(error.to_string());
        let envelope = match Envelope::open(file) {
            Ok(envelope) => envelope,
            Err(error) => return Ok(Err(error.into())),
        };
        let directory = &machine.state.directory;
        let identity = directory.identity().map_err(|error| failed(&error))?;
        if let Err(refusal) = envelope.check(identity.as_ref(), Timestamp::now()) {
            return Ok(Err(refusal));
        }
        if let Some(signers) = &self.signers {
            let signers = AllowedSigners::read(signers).map_err(|error| failed(&error))?;
            if let Err(reason) = bundle::signer(&self.file, file, &signers, Timestamp::now()) {
                return Ok(Err(Refusal::new(Reason::Signature, reason)));
            }
        }
        let measure = directory.measure().map_err(|error| failed(&error))?;
        Ok(envelope.decode().map(|plan| (plan, measure)).map_err(Refusal::from))
    }

    fn apply(
        &self,
        plan: &PlanFile,
        measure: Measure,
        machine: &Machine,
        output: &mut Output,
    ) -> Result<Exit, Failure> {
        let flags = &self.run;
        let mut origin = flags.origin("ccm apply", RunKind::Plan)?;
        origin.plan = Some(plan.digest.clone());
        origin.undo_of.clone_from(&plan.header.undo_of);
        let mut engine = flags.engine(machine, Exclusion::WholeRun(flags.patience), Session::begin());
        // Each state is compared with the plan right before its step.
        engine.set_read_ahead(ReadAhead::None);
        let applicable = Applicable::new(plan, &machine.state, measure);
        let (manifests, _staged) = applicable.manifests(&machine.host).map_err(Failure::new)?;
        if flags.mode == RunMode::Real {
            origin.confirm = self.confirm.settings(&manifests)?;
            flags.require_history(&manifests, origin.confirm)?;
        }
        let mut run = Run::begin(machine, &mut engine, &origin)?;
        let stale = stale(&applicable, &mut run, &manifests, machine);
        if let Some(refusal) = Refusal::stale(stale) {
            return Ok(refuse(&refusal, flags.format, output));
        }
        if flags.mode == RunMode::Noop {
            if flags.format == Format::Text && flags.verbosity() > Verbosity::Quiet {
                output.message("the plan can be applied");
            }
            return Ok(Exit::Success);
        }
        let selected = Selected::default();
        let to_apply: Vec<_> = manifests.iter().map(|manifest| (manifest, &selected)).collect();
        flags.say(manifests.iter().filter_map(|manifest| manifest.settings.pre_message.as_ref()), output);
        let (finished, mut printer) = flags.perform(run, &to_apply, Unchanged::Counted, output);
        if !self.no_report {
            printer.summary(&finished);
        }
        drop(printer);
        let exit = flags.exit(&finished);
        if origin.confirm.is_some() && flags.format == Format::Text && exit != Exit::NotAttempted {
            confirm::announce(&finished, &self.state, machine, output);
        }
        if exit != Exit::Failed {
            flags
                .say(manifests.iter().filter_map(|manifest| manifest.settings.post_message.as_ref()), output);
        }
        Ok(exit)
    }
}

/// Returns the differences from the plan before its first step.
fn stale(applicable: &Applicable, run: &mut Run, manifests: &[Manifest], machine: &Machine) -> Vec<Stale> {
    let limit = Limits::default().document;
    let facts = machine.environment.facts(Vec::new(), limit, &machine.host.interrupt);
    let planned = &applicable.plan.header.facts;
    let mut differences = Stale::facts(planned, &values(&facts, planned), &applicable.measure);
    let selected = Selected::default();
    for manifest in manifests {
        for (resource, error) in run.check_preconditions(manifest, &selected) {
            differences.extend(Stale::of(resource, error));
        }
    }
    differences
}

/// Returns the present values of facts.
fn values(facts: &Facts, paths: &PlannedFacts) -> PlannedFacts {
    let value = |path: &String| {
        let value = facts.value_at(path)?;
        Some((path.clone(), serde_json::json!(value)))
    };
    paths.keys().filter_map(value).collect()
}

/// Prints why a plan is not applied.
fn refuse(refusal: &Refusal, format: Format, output: &mut Output) -> Exit {
    if format == Format::Json {
        output.line(&refusal.to_json().to_string());
    } else {
        let rows = refusal.differences.iter().map(|stale| {
            let difference = &stale.difference;
            let planned = format!("{} {}", difference.field, difference.planned);
            [stale.resource.clone(), planned, difference.found.clone()]
        });
        let heading = ["RESOURCE", "PLANNED", "FOUND"].map(str::to_owned);
        let rows: Vec<[String; 3]> = std::iter::once(heading).chain(rows).collect();
        if rows.len() > 1 {
            let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
            let (first, second) = (width(0), width(1));
            for [resource, planned, found] in &rows {
                output.message(&format!("{resource:first$}  {planned:second$}  {found}"));
            }
        }
    }
    output.flush();
    warn(&refusal.message);
    Exit::NotAttempted
}
