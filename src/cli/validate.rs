//! `ccm validate`

use clap::{ArgMatches, Command};

use super::{
    Exit,
    apply::manifest_argument,
    failure::{Failure, heed},
    host, load_inputs, memory_to_look_at,
    output::Output,
    report::Format,
    switch,
};
use crate::{
    document::Review,
    manifest::{self, LoadError},
};

pub(super) fn command() -> Command {
    load_inputs::arguments(Command::new("validate"))
        .about("Finds everything that is wrong with manifests without touching the machine")
        .arg(manifest_argument().num_args(1..))
        .arg(switch("json", "Print what is found as JSON, one object per line"))
}

pub(super) fn run(matches: &ArgMatches, output: &mut Output) -> Result<Exit, Failure> {
    let (host, memory) = (host(&output.progress)?, memory_to_look_at(matches));
    let load_inputs = load_inputs::load_inputs(matches, &host)?;
    let mut exit = Exit::Success;
    for argument in matches.get_many::<String>("manifest").into_iter().flatten() {
        let loaded = manifest::load(&load_inputs::location(argument)?, &load_inputs, &host, &memory);
        match (loaded, Format::of(matches)) {
            (Ok(loaded), Format::Json) => print(&loaded.warnings, output)?,
            (Ok(loaded), Format::Text) => {
                let manifest = heed(loaded);
                let count = manifest.resources.len();
                let noun = if count == 1 { "resource" } else { "resources" };
                output.message(&format!("{}: valid, {count} {noun}", manifest.source.name));
            }
            (Err(LoadError::Invalid(reviews)), Format::Json) => {
                print(&reviews, output)?;
                exit = Exit::NotAttempted;
            }
            (Err(error), _) => exit = Failure::from(error).report(),
        }
    }
    Ok(exit)
}

/// Prints each diagnostic as a JSON object on a line of its own.
fn print(reviews: &[Review], output: &mut Output) -> Result<(), Failure> {
    for Review { source, diagnostics } in reviews {
        for diagnostic in diagnostics.iter() {
            let line = serde_json::to_string(&diagnostic.located(source));
            output.line(&line.map_err(|error| Failure::new(error.to_string()))?);
        }
    }
    Ok(())
}
