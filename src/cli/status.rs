//! `ccm status`

use std::{cell::RefCell, path::Path};

use clap::{
    ArgAction, Args,
    builder::{PossibleValue, PossibleValuesParser},
};
use serde_json::Value;

use super::{
    Exit, aliases, complete,
    failure::Failure,
    flags,
    machine::{NatsFlags, StateFolder, machine},
    output::Output,
    report::Format,
    run::to_text,
    switch,
};
use crate::{
    declare::Completeness,
    document::Diagnostics,
    resource::{Context, Managed},
    run::Environment,
    types,
};

/// Arguments of `ccm status`.
#[derive(Args)]
#[command(after_help = "Examples:\n  ccm status file /etc/hosts\n  ccm status user root --json")]
pub(super) struct Arguments {
    /// The resource's type
    #[arg(id = "type", value_name = "TYPE", value_parser = type_names())]
    kind: String,
    /// The resource's name
    #[arg(add = complete::names_of_typed())]
    name: String,
    /// Print JSON instead of YAML
    #[arg(long = "json", action = ArgAction::SetTrue, value_parser = switch(Format::of))]
    format: Format,
    #[command(flatten)]
    state: StateFolder,
}

fn type_names() -> PossibleValuesParser {
    types::names().map(|name| PossibleValue::new(name).aliases(aliases::of_type(name))).into()
}

pub(super) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let Arguments { kind, name, format, state } = arguments;
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
            let status = Value::Object(observed.to_json(kind.name(), name));
            output.text(&to_text(&status, *format)?);
            Ok(Exit::Success)
        }
        Err(error) => {
            Failure::new(format!("{resource}: {error}")).report();
            Ok(Exit::Failed)
        }
    }
}
