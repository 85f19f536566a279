//! `ccm validate`

use clap::{ArgMatches, Command};

use super::{
    Exit,
    apply::manifest_argument,
    failure::{Failure, heed},
    load_inputs::{self, Dotenv, InputFlags, Strictness},
    output::Output,
    sarif::{self, Completeness},
    switch,
};
use crate::{
    document::Review,
    manifest::{self, LoadError, Loaded, Location, Manifest},
    resource::flattened,
};

const EXAMPLES: &str = "\
Examples:
  # Show everything that is wrong, each at its place
  ccm validate site.yaml

  # For a code host, with warnings as errors
  ccm validate --strict --sarif site.yaml >ccm.sarif";

pub(super) fn command() -> Command {
    load_inputs::arguments(Command::new("validate"))
        .about("Finds everything that is wrong with manifests without touching the machine")
        .after_help(EXAMPLES)
        .arg(manifest_argument().num_args(1..))
        .arg(Strictness::argument())
        .args(Dotenv::arguments())
        .arg(switch("json", "Print what is found as JSON, one object per line"))
        .arg(switch("sarif", "Print what is found as SARIF 2.1, for code hosts").conflicts_with("json"))
}

/// What `ccm validate` is asked.
pub(super) struct Arguments {
    manifests: Vec<Location>,
    format: Format,
    strictness: Strictness,
    inputs: InputFlags,
    dotenv: Dotenv,
}

#[derive(Clone, Copy)]
enum Format {
    Text,
    Json,
    Sarif,
}

impl Arguments {
    pub(super) fn from_matches(matches: &ArgMatches) -> Result<Self, Failure> {
        Ok(Self {
            manifests: load_inputs::locations(matches)?,
            format: match (matches.get_flag("json"), matches.get_flag("sarif")) {
                (true, _) => Format::Json,
                (_, true) => Format::Sarif,
                _ => Format::Text,
            },
            strictness: Strictness::from_matches(matches),
            inputs: InputFlags::from_matches(matches)?,
            dotenv: Dotenv::from_matches(matches),
        })
    }
}

pub(super) fn run(arguments: Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let machine = arguments.inputs.machine_read_only(output)?;
    let load_inputs = arguments.dotenv.read(arguments.inputs.read(&machine)?)?;
    let (mut exit, mut reviews, mut completeness) = (Exit::Success, Vec::new(), Completeness::Whole);
    for location in &arguments.manifests {
        let loaded = manifest::load(location, &load_inputs, &machine.host, &machine.state);
        match (arguments.strictness.judge(loaded), arguments.format) {
            (Ok(loaded), Format::Text) => valid(loaded, output),
            (Ok(loaded), Format::Json | Format::Sarif) => reviews.extend(loaded.warnings),
            (Err(LoadError::Invalid(found)), Format::Json | Format::Sarif) => {
                reviews.extend(found);
                exit = Exit::NotAttempted;
            }
            (Err(error), _) => {
                exit = Failure::from(error).report();
                completeness = Completeness::Partial;
            }
        }
    }
    match arguments.format {
        Format::Text => {}
        Format::Json => print(&reviews, output)?,
        Format::Sarif => {
            let log = serde_json::to_string_pretty(&sarif::log(&reviews, completeness));
            output.line(&log.map_err(|error| Failure::new(error.to_string()))?);
        }
    }
    Ok(exit)
}

/// Says that a manifest is valid, after the warnings about it.
fn valid(loaded: Loaded<Manifest>, output: &mut Output) {
    let manifest = heed(loaded);
    let count = flattened(&manifest.resources).len();
    let noun = if count == 1 { "resource" } else { "resources" };
    output.message(&format!("{}: valid, {count} {noun}", manifest.source.name));
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
