//! The pages of the reference about the program.

use std::fmt::Write;

use serde_json::Value;

use super::tables::{EXIT_CODES, FILES, PLUGIN, VARIABLES};
use crate::{
    cli::{explain, schema::event_schema},
    session::summary_schema,
};

/// Returns the generated pages of the reference that are about the program, with their names.
pub(super) fn reference_pages() -> [(&'static str, String); 5] {
    let codes = EXIT_CODES.map(|(exit, meaning)| (exit.code().to_string(), meaning.to_owned()));
    let owned = |(name, meaning): &(&str, &str)| ((*name).to_owned(), (*meaning).to_owned());
    [
        ("exit-codes", page("Exit codes", EXIT_ABOUT, &format!("{}\n{PLUGIN}\n", table("code", codes)))),
        (
            "environment",
            page("Environment", VARIABLES_ABOUT, &table("variable", VARIABLES.iter().map(owned))),
        ),
        ("files", page("Files", FILES_ABOUT, &table("file", FILES.iter().map(owned)))),
        ("events", page("Events", EVENTS_ABOUT, &events())),
        ("messages", page("Messages", MESSAGES_ABOUT, explain::page())),
    ]
}

const EXIT_ABOUT: &str =
    "How every command ends. A reader that goes away (`ccm apply ... | head`) is no failure.";
const VARIABLES_ABOUT: &str = "What ccm reads from its environment. An empty variable counts as not set. Templates see all of them as `Environ`, except in data from an address.";
const FILES_ABOUT: &str = "What ccm reads or keeps besides what a command names.";
const EVENTS_ABOUT: &str = "`ccm apply --json` and `ccm session report --json` print an event per line, in the order of the resources, and the summary last. \
    Their schemas: `ccm schema event` and `ccm schema summary`. Keys may be added; none is taken away or changes its meaning within a major version.";

const MESSAGES_ABOUT: &str = "Errors and warnings about manifests, data, requests and the agent's configuration have an id, as in `error[unknown-property]`. \
    `ccm explain ID` prints the same explanation without a network.";

fn page(title: &str, about: &str, body: &str) -> String {
    format!(
        "# {title}\n\n<!-- Generated from the source: change it there, then run `UPDATE=1 cargo test`. -->\n\n{about}\n\n{body}"
    )
}

fn table(of: &str, rows: impl IntoIterator<Item = (String, String)>) -> String {
    let mut table = format!("| {of} | meaning |\n|---|---|\n");
    for (name, meaning) in rows {
        let _ = writeln!(table, "| `{name}` | {} |", meaning.replace('|', "\\|"));
    }
    table
}

fn events() -> String {
    let rows = |schema: &Value| {
        let properties = schema["properties"].as_object().into_iter().flatten();
        let row = |(name, schema): (&String, &Value)| {
            let description = schema["description"].as_str().unwrap_or_default();
            (name.clone(), description.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        properties.map(row).collect::<Vec<_>>()
    };
    let status = "The `status` of an event is the state of the resource: each [type](file.md#state) describes its own.";
    format!(
        "## An event\n\n{}\n{status}\n\n## The summary\n\n{}",
        table("key", rows(&event_schema())),
        table("key", rows(&summary_schema()))
    )
}
