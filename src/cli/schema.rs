//! `ccm schema`

use clap::{Arg, ArgMatches, Command};

use super::{Exit, api, apply::to_text, failure::Failure, output::Output, report::Format};
use crate::{manifest::manifest_schema, types};

pub(super) fn command() -> Command {
    Command::new("schema").about("Prints the JSON Schema of what ccm reads or writes").arg(
        Arg::new("of")
            .value_name("DOCUMENT")
            .required(true)
            .value_parser(["manifest", "request", "response", "event"])
            .help("Which schema to print"),
    )
}

pub(super) fn run(matches: &ArgMatches, output: &mut Output) -> Result<Exit, Failure> {
    let schema = match matches.get_one::<String>("of").map(String::as_str) {
        Some("request") => api::request_schema(),
        Some("response") => api::response_schema(),
        Some("event") => types::event_schema(),
        _ => manifest_schema(),
    };
    output.text(&to_text(&schema, Format::Json)?);
    Ok(Exit::Success)
}
