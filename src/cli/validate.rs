//! `ccm validate`

use clap::{ArgMatches, Command};

use super::{
    Exit,
    apply::manifest_argument,
    failure::{Failure, heed},
    host,
    load_inputs::{self, InputFlags},
    output::Output,
    report::Format,
    switch,
};
use crate::{
    document::Review,
    manifest::{self, LoadError, Location},
};

pub(super) fn command() -> Command {
    load_inputs::arguments(Command::new("validate"))
        .about("Finds everything that is wrong with manifests without touching the machine")
        .arg(manifest_argument().num_args(1..))
        .arg(switch("json", "Print what is found as JSON, one object per line"))
}

/// What `ccm validate` is asked.
pub(super) struct Arguments {
    manifests: Vec<Location>,
    format: Format,
    inputs: InputFlags,
}

impl Arguments {
    pub(super) fn from_matches(matches: &ArgMatches) -> Result<Self, Failure> {
        Ok(Self {
            manifests: load_inputs::locations(matches)?,
            format: Format::from_matches(matches),
            inputs: InputFlags::from_matches(matches)?,
        })
    }
}

pub(super) fn run(arguments: Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let (host, memory) = (host(&output.progress)?, arguments.inputs.state.memory_to_look_at());
    let load_inputs = arguments.inputs.read(&host)?;
    let mut exit = Exit::Success;
    for location in &arguments.manifests {
        let loaded = manifest::load(location, &load_inputs, &host, &memory);
        match (loaded, arguments.format) {
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
