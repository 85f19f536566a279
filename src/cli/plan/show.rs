//! `ccm plan show`

use serde_json::{Map, Value, json};

use super::super::{
    Exit,
    failure::{Failure, warn},
    output::Output,
};
use super::Shown;
use crate::{
    host::input::{self, UnreadableInput},
    plan::{ActionKind, Envelope, PlanFile, Step},
    run::Environment,
};

/// Largest plan file.
const LARGEST: u64 = 1 << 30;

pub(super) fn run(shown: &Shown, output: &mut Output) -> Result<Exit, Failure> {
    let Shown { file, resource, json, state } = shown;
    let failed = |error: &dyn std::fmt::Display| Failure::new(format!("{}: {error}", file.display()));
    let bytes = input::read_file(file, LARGEST)
        .map_err(|error| Failure::new(UnreadableInput { path: file.clone(), error }.to_string()))?;
    let envelope = Envelope::open(&bytes).map_err(|error| failed(&error))?;
    let identity = state.open_read_only(&Environment::of_process()).directory.identity().ok().flatten();
    let is_own = identity.is_some_and(|identity| envelope.is_authentic(&identity));
    let plan = envelope.decode().map_err(|error| failed(&error))?;
    let steps: Vec<&Step> = plan.steps().into_iter().collect();
    let shown: Vec<&Step> = steps
        .into_iter()
        .filter(|step| resource.as_ref().is_none_or(|only| step.resource == *only))
        .collect();
    if let (Some(only), true) = (resource, shown.is_empty()) {
        return Err(Failure::new(format!("the plan has no resource `{only}`")));
    }
    if !is_own {
        warn("the plan was not made here: only its digest and a signature can be verified");
    }
    if *json {
        output.line(&document(&plan, &shown).to_string());
    } else {
        print(&plan, &shown, output);
    }
    Ok(Exit::Success)
}

/// Returns the plan as the JSON interface has it.
fn document(plan: &PlanFile, steps: &[&Step]) -> Value {
    let resource = |step: &&Step| {
        let mut resource = Map::new();
        resource.insert("resource".to_owned(), step.resource.clone().into());
        resource.insert("class".to_owned(), json!(step.class));
        resource.insert("action".to_owned(), json!(step.action));
        resource.extend(step.diff.clone().map(|diff| ("diff".to_owned(), diff.into())));
        resource.insert("refreshes".to_owned(), json!(step.refreshes));
        Value::Object(resource)
    };
    let header = &plan.header;
    json!({
        "protocol": header.protocol,
        "host": header.host,
        "created": header.created,
        "expires": header.expires,
        "version": header.version,
        "resources": steps.iter().map(resource).collect::<Vec<_>>(),
    })
}

fn print(plan: &PlanFile, steps: &[&Step], output: &mut Output) {
    let header = &plan.header;
    let user = header.who.sudo_user.clone().unwrap_or_else(|| format!("UID {}", header.who.uid));
    output.message(&format!("plan for {}, made by {user} with ccm {}", header.host, header.version));
    output.message(&format!("created {}, expires {}", header.created, header.expires));
    let opaque: Vec<&&Step> = steps.iter().filter(|step| step.is_opaque()).collect();
    if !opaque.is_empty() {
        output.message("\nEffects unknown:");
        for step in opaque {
            describe(step, output);
        }
    }
    let is_change = |step: &&&Step| step.action != ActionKind::None && !step.is_opaque();
    let changes: Vec<&&Step> = steps.iter().filter(is_change).collect();
    if !changes.is_empty() {
        output.message("\nChanges:");
        for step in changes {
            describe(step, output);
        }
    }
    let refreshed: Vec<&&Step> = steps.iter().filter(|step| !step.causes.is_empty()).collect();
    if !refreshed.is_empty() {
        output.message("\nRestarts and refreshes:");
        for step in refreshed {
            output.message(&format!("  {} because of {}", step.resource, step.causes.join(", ")));
        }
    }
    let conditional = |step: &&&Step| step.is_conditional() && step.skipped.is_none();
    let conditions: Vec<&&Step> = steps.iter().filter(conditional).collect();
    let assumptions = steps
        .iter()
        .flat_map(|step| step.assumptions.iter().map(|text| format!("  {}: {text}", step.resource)));
    let decided = conditions
        .iter()
        .map(|step| format!("  {}: its guards and conditions stay as they are", step.resource));
    let assumptions: Vec<String> = assumptions.chain(decided).collect();
    if !assumptions.is_empty() {
        output.message("\nAssumptions:");
        for line in assumptions {
            output.message(&line);
        }
    }
    let unchanged = steps.iter().filter(|step| step.action == ActionKind::None).count();
    output.message(&format!("\n{} to change, {unchanged} unchanged", steps.len() - unchanged));
}

fn describe(step: &Step, output: &mut Output) {
    output.message(&format!("  {}: {}", step.resource, step.described()));
    if !step.position.is_empty() {
        output.message(&format!("      {}", step.position));
    }
    for line in step.diff.as_deref().unwrap_or_default().lines() {
        output.message(&format!("    {line}"));
    }
}
