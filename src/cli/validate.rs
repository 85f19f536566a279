//! `ccm validate`

use clap::{ArgMatches, Command};

use super::{
    Exit, apply::manifest_argument, failure::Failure, host, load_inputs, memory_to_look_at, output::Output,
};
use crate::manifest;

pub(super) fn command() -> Command {
    load_inputs::arguments(Command::new("validate"))
        .about("Finds everything that is wrong with manifests without touching the machine")
        .arg(manifest_argument().num_args(1..))
}

pub(super) fn run(matches: &ArgMatches, output: &mut Output) -> Result<Exit, Failure> {
    let load_inputs = load_inputs::load_inputs(matches)?;
    let (host, memory) = (host(&output.progress)?, memory_to_look_at(matches));
    let mut exit = Exit::Success;
    for argument in matches.get_many::<String>("manifest").into_iter().flatten() {
        match manifest::load(&load_inputs::location(argument)?, &load_inputs, &host, &memory) {
            Ok(manifest) => {
                let count = manifest.resources.len();
                let noun = if count == 1 { "resource" } else { "resources" };
                output.line(&format!("{}: valid, {count} {noun}", manifest.source.name));
            }
            Err(error) => exit = Failure::from(error).report(),
        }
    }
    Ok(exit)
}
