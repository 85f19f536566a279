//! `ccm status`

use std::{cell::RefCell, path::Path};

use clap::{Arg, ArgMatches, Command, builder::PossibleValuesParser};
use serde_json::Value;

use super::{
    Exit, apply::to_text, failure::Failure, flags, host, memory_to_look_at, output::Output, report::Format,
    state_argument, switch,
};
use crate::{
    document::Diagnostics,
    resource::{Completeness, Context},
    types,
};

pub(super) fn command() -> Command {
    Command::new("status")
        .about("Shows the state of one resource")
        .arg(
            Arg::new("type")
                .value_name("TYPE")
                .required(true)
                .value_parser(PossibleValuesParser::new(types::names()))
                .help("The resource's type"),
        )
        .arg(Arg::new("name").value_name("NAME").required(true).help("The resource's name"))
        .arg(switch("json", "Print JSON instead of YAML"))
        .arg(state_argument())
}

pub(super) fn run(matches: &ArgMatches, output: &mut Output) -> Result<Exit, Failure> {
    let argument = |name| matches.get_one::<String>(name).map_or("", String::as_str);
    let (kind, name) = (argument("type"), argument("name"));
    let Some(kind) = types::find(kind) else { return Err(Failure::new(format!("unknown type \"{kind}\""))) };
    let (source, declaration) = flags::identity(kind, name);
    let mut diagnostics = Diagnostics::default();
    let resource = declaration.resolve(Completeness::Identity, &mut diagnostics);
    let Some(resource) = resource else { return Err(Failure::problems(source, diagnostics)) };
    let (host, memory) = (host(&output.progress)?, memory_to_look_at(matches));
    let mut silent = |_: &str| {};
    let observed = kind.provider(None, &host).and_then(|provider| {
        let nothing = RefCell::default();
        let cx = Context::new(&host, &memory, &nothing, Path::new("/"), None, &mut silent);
        resource.wanted.inspect(&provider, &cx)
    });
    match observed {
        Ok(observed) => {
            let status = Value::Object(observed.to_json(kind.name(), name));
            output.text(&to_text(&status, Format::of(matches))?);
            Ok(Exit::Success)
        }
        Err(error) => {
            Failure::new(format!("{resource}: {error}")).report();
            Ok(Exit::Failed)
        }
    }
}
