//! `ccm validate`

use clap::Args;

use super::{
    Exit,
    apply::ManifestArguments,
    dotenv::DotenvFlags,
    failure::{Failure, heed},
    load_inputs::{InputFlags, StrictFlag},
    output::Output,
    sarif::{self, Completeness},
};
use crate::{
    document::{Diagnostic, Review, Severity},
    manifest::{self, LoadError, Loaded, Manifest, Strictness},
    resource::flattened,
};

const EXAMPLES: &str = "\
Examples:
  # Show everything that is wrong, each at its place
  ccm validate site.yaml

  # For a code host, with warnings as errors
  ccm validate --strict --sarif site.yaml >ccm.sarif";

/// Arguments of `ccm validate`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(flatten)]
    inputs: InputFlags,
    #[command(flatten)]
    manifests: ManifestArguments,
    #[command(flatten)]
    strict: StrictFlag,
    #[command(flatten)]
    dotenv: DotenvFlags,
    /// Also print notes, such as commands that run in every run
    #[arg(short, long)]
    verbose: bool,
    /// Print what is found as JSON, one object per line
    #[arg(long)]
    json: bool,
    /// Print what is found as SARIF 2.1, for code hosts
    #[arg(long, conflicts_with = "json")]
    sarif: bool,
}

#[derive(Clone, Copy)]
enum Format {
    Text,
    Json,
    Sarif,
}

impl Arguments {
    fn format(&self) -> Format {
        match (self.json, self.sarif) {
            (true, _) => Format::Json,
            (_, true) => Format::Sarif,
            _ => Format::Text,
        }
    }
}

pub(super) fn run(arguments: Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let (format, locations) = (arguments.format(), arguments.manifests.locations()?);
    let machine = arguments.inputs.machine_read_only(output)?;
    let mut load_inputs = arguments.dotenv.read(arguments.inputs.with_placeholders().read(&machine)?)?;
    load_inputs.strictness = arguments.strict.strict;
    let (mut exit, mut reviews, mut completeness) = (Exit::Success, Vec::new(), Completeness::Whole);
    for location in &locations {
        let loaded = manifest::load(location, &load_inputs, &machine.host, &machine.state);
        let loaded = loaded.and_then(|mut loaded| {
            add_remarks(&loaded.value, arguments.verbose, &mut loaded.warnings);
            match load_inputs.strictness {
                Strictness::Lenient => Ok(loaded),
                Strictness::Strict => loaded.strictly(),
            }
        });
        match (loaded, format) {
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
    match format {
        Format::Text => {}
        Format::Json => print(&reviews, output)?,
        Format::Sarif => output.json(&sarif::log(&reviews, completeness))?,
    }
    Ok(exit)
}

/// Adds what a run reports only when it matters, and notes if they are wanted.
fn add_remarks(manifest: &Manifest, with_notes: bool, reviews: &mut Vec<Review>) {
    let folder = manifest.working_directory.as_path();
    let remarks = manifest.resources.iter().flat_map(|resource| resource.remarks(folder));
    let remarks: Vec<Diagnostic> =
        remarks.filter(|remark| with_notes || remark.severity != Severity::Note).collect();
    if !remarks.is_empty() {
        match reviews.iter_mut().find(|review| review.source.name == manifest.source.name) {
            Some(review) => {
                review.diagnostics.extend(remarks);
                review.diagnostics.sort();
            }
            None => reviews.push(Review { source: manifest.source.clone(), diagnostics: remarks.into() }),
        }
    }
    for included in manifest.resources.iter().filter_map(|resource| resource.included.as_ref()) {
        add_remarks(included, with_notes, reviews);
    }
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
