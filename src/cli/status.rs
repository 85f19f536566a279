//! `ccm status`

use std::{cell::RefCell, path::Path};

use clap::{
    Arg, ArgMatches, Command,
    builder::{PossibleValue, PossibleValuesParser},
};
use serde_json::Value;

use super::{
    Exit, aliases, complete,
    failure::Failure,
    flags, machine,
    nats::NatsFlags,
    output::Output,
    report::Format,
    required,
    run::to_text,
    state::{self, StateFolder},
    switch,
};
use crate::{
    declare::Completeness,
    document::Diagnostics,
    resource::{AnyType, Context},
    run::Environment,
    types,
};

pub(super) fn command() -> Command {
    Command::new("status")
        .about("Shows the state of one resource")
        .after_help("Examples:\n  ccm status file /etc/hosts\n  ccm status user root --json")
        .arg(
            Arg::new("type")
                .value_name("TYPE")
                .required(true)
                .value_parser(PossibleValuesParser::new(
                    types::names().map(|name| PossibleValue::new(name).aliases(aliases::of_type(name))),
                ))
                .help("The resource's type"),
        )
        .arg(complete::names_of_typed(
            Arg::new("name").value_name("NAME").required(true).help("The resource's name"),
        ))
        .arg(switch("json", "Print JSON instead of YAML"))
        .arg(state::argument())
}

/// What `ccm status` is asked.
pub(super) struct Arguments {
    kind: &'static dyn AnyType,
    name: String,
    format: Format,
    state: StateFolder,
}

impl Arguments {
    pub(super) fn from_matches(matches: &ArgMatches) -> Result<Self, Failure> {
        Ok(Self {
            kind: flags::known_type(&required::<String>(matches, "type")?)?,
            name: required(matches, "name")?,
            format: Format::from_matches(matches),
            state: StateFolder::from_matches(matches),
        })
    }
}

pub(super) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let Arguments { kind, name, format, state } = arguments;
    let kind = *kind;
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
        Ok(observed) => {
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
