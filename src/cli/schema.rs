//! `ccm schema`

use clap::{Arg, ArgMatches, Command, builder::PossibleValuesParser};
use serde_json::Value as Json;

use super::{Exit, api, failure::Failure, output::Output, report::Format, required, run::to_text};
use crate::{manifest::manifest_schema, session, types};

/// A document that has a schema.
struct Document {
    name: &'static str,
    schema: fn() -> Json,
}

const DOCUMENTS: [Document; 5] = [
    Document { name: "manifest", schema: manifest_schema },
    Document { name: "request", schema: api::request_schema },
    Document { name: "response", schema: api::response_schema },
    Document { name: "event", schema: event_schema },
    Document { name: "summary", schema: session::summary_schema },
];

/// Returns the schema of an event, with the states of all types.
pub(super) fn event_schema() -> Json {
    session::event_schema(types::state_schemas())
}

pub(super) fn command() -> Command {
    Command::new("schema")
        .about("Prints the JSON Schema of what ccm reads or writes")
        .arg(
            Arg::new("of")
                .value_name("DOCUMENT")
                .required(true)
                .value_parser(PossibleValuesParser::new(DOCUMENTS.map(|document| document.name)))
                .help("Which schema to print"),
        )
        .after_help("Example:\n  ccm schema manifest >ccm.schema.json")
}

/// Which schema `ccm schema` is asked for.
pub(super) struct Arguments {
    of: &'static Document,
}

impl Arguments {
    pub(super) fn from_matches(matches: &ArgMatches) -> Result<Self, Failure> {
        let asked: String = required(matches, "of")?;
        let of = DOCUMENTS.iter().find(|document| document.name == asked);
        of.map(|of| Self { of }).ok_or_else(|| Failure::new(format!("no schema of \"{asked}\"")))
    }
}

pub(super) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    output.text(&to_text(&(arguments.of.schema)(), Format::Json)?);
    Ok(Exit::Success)
}
