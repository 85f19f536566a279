//! `ccm status`

use std::{cell::RefCell, path::Path};

use clap::{
    ArgAction, Args,
    builder::{PossibleValue, PossibleValuesParser},
};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{
    Exit, aliases, complete,
    failure::Failure,
    flags,
    machine::{NatsFlags, StateFolder, machine},
    output::Output,
    report::{self, Format},
    run::to_text,
    switch,
};
use crate::{
    declare::Completeness,
    document::Diagnostics,
    resource::{Context, Managed},
    run::Environment,
    state::Pending,
    types,
};

/// Arguments of `ccm status`.
#[derive(Args)]
#[command(
    override_usage = "ccm status [OPTIONS] <TYPE> <NAME>\n       ccm status --pending [OPTIONS]",
    after_help = "Examples:\n  ccm status file /etc/hosts\n  ccm status user root --json\n  ccm status --pending"
)]
pub(super) struct Arguments {
    /// Type of the resource
    #[arg(id = "type", value_name = "TYPE", value_parser = type_names(), required_unless_present = "pending")]
    kind: Option<String>,
    /// Name of the resource
    #[arg(add = complete::names_of_typed(), required_unless_present = "pending")]
    name: Option<String>,
    /// List the refreshes that the next run performs
    #[arg(long, conflicts_with_all = ["type", "name"])]
    pending: bool,
    /// Print JSON instead of YAML
    #[arg(id = "json", long = "json", action = ArgAction::SetTrue, value_parser = switch(Format::of))]
    format: Format,
    #[command(flatten)]
    state: StateFolder,
}

fn type_names() -> PossibleValuesParser {
    types::names().map(|name| PossibleValue::new(name).aliases(aliases::of_type(name))).into()
}

pub(super) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let Arguments { kind, name, pending, format, state } = arguments;
    let (Some(kind), Some(name), false) = (kind, name, *pending) else {
        return list_pending(*format, state, output);
    };
    let kind = flags::known_type(kind)?;
    let (source, declaration) = flags::identity(kind, name);
    let mut diagnostics = Diagnostics::default();
    let resource = declaration.resolve(Completeness::Identity, &mut diagnostics);
    let Some(resource) = resource else { return Err(Failure::problems(source, diagnostics)) };
    let environment = Environment::of_process();
    let state = state.open_read_only(&environment);
    let machine = machine(&output.progress, environment, state, &NatsFlags::default())?;
    let host = &machine.host;
    let mut silent = |_: &str| {};
    let observed = kind.provider(None, host).and_then(|provider| {
        let nothing = RefCell::default();
        let cx = Context::new(host, &machine.state, &nothing, Path::new("/"), None, &mut silent);
        resource.wanted.inspect(&provider, &cx)
    });
    match observed {
        Ok(mut observed) => {
            let mut managed = resource.wanted.manages().into_iter().map(Managed::into_path);
            if managed.any(|path| machine.state.directory.is_secret_path(&path)) {
                observed.redact();
            }
            let status = observed.to_json(kind.name(), name);
            let status = if *format == Format::Text { state_first(status) } else { status };
            output.text(&to_text(&Value::Object(status), *format)?);
            Ok(Exit::Success)
        }
        Err(error) => {
            Failure::new(format!("{resource}: {error}")).report();
            Ok(Exit::Failed)
        }
    }
}

/// Moves the state of a resource to the front, and the protocol to the end.
fn state_first(mut status: Map<String, Value>) -> Map<String, Value> {
    let [ensure, protocol] = ["ensure", "protocol"].map(|key| status.shift_remove_entry(key));
    ensure.into_iter().chain(status).chain(protocol).collect()
}

/// Prints the refreshes that earlier runs left pending.
fn list_pending(format: Format, state: &StateFolder, output: &mut Output) -> Result<Exit, Failure> {
    let state = state.open_read_only(&Environment::of_process());
    let store = state.directory.refresh_store().map_err(|error| Failure::new(error.to_string()))?;
    let pending: Vec<Pending> = store.owed().pending().collect();
    if format == Format::Json {
        let document: Vec<Value> = pending.iter().map(document).collect();
        output.text(&to_text(&Value::from(document), format)?);
    } else if pending.is_empty() {
        output.message("no pending refreshes");
    }
    for refresh in pending.iter().filter(|_| format == Format::Text) {
        let manifest = refresh.origin.manifest.as_ref().map(|manifest| format!("  {manifest}"));
        let reason = report::pending(refresh);
        output.message(&format!("{}  {reason}{}", refresh.to, manifest.unwrap_or_default()));
    }
    Ok(Exit::Success)
}

fn document(Pending { to, because, origin }: &Pending) -> Value {
    let since = origin.at.and_then(|at| Timestamp::from_second(at).ok()).map(|at| at.to_string());
    json!({ "ref": to, "since": since, "because": because, "manifest": origin.manifest })
}
