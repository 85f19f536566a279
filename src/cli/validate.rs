//! `ccm validate`

use clap::{ArgMatches, Command};

use super::{
    Exit, apply::manifest_argument, failure::Failure, host_to_look_at, output::Output, surroundings,
};
use crate::manifest;

pub(super) fn command() -> Command {
    surroundings::arguments(Command::new("validate"))
        .about("Finds everything that is wrong with manifests without touching the machine")
        .arg(manifest_argument().num_args(1..))
}

pub(super) fn run(matches: &ArgMatches, output: &mut Output) -> Result<Exit, Failure> {
    let surroundings = surroundings::surroundings(matches)?;
    let host = host_to_look_at(matches, &output.progress)?;
    let mut exit = Exit::AsAsked;
    for argument in matches.get_many::<String>("manifest").into_iter().flatten() {
        match manifest::load(&surroundings::location(argument)?, &surroundings, &host) {
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
