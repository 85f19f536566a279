//! `ccm schema`

use clap::Args;
use serde_json::Value as Json;

use super::{Exit, api, failure::Failure, output::Output, report::Format, run::to_text};
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

/// Arguments of `ccm schema`.
#[derive(Args)]
#[command(after_help = "Example:\n  ccm schema manifest >ccm.schema.json")]
pub(super) struct Arguments {
    /// Which schema to print
    #[arg(value_name = "DOCUMENT", value_parser = DOCUMENTS.map(|document| document.name))]
    of: String,
}

pub(super) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let of = DOCUMENTS.iter().find(|document| document.name == arguments.of);
    let of = of.ok_or_else(|| Failure::new(format!("no schema of \"{}\"", arguments.of)))?;
    output.text(&to_text(&(of.schema)(), Format::Json)?);
    Ok(Exit::Success)
}
