//! The types of resources. Adding one takes its folder and one line here.

mod account;
mod apply;
mod archive;
mod command_line;
mod content_diff;
mod disk;
mod exec;
mod fact;
mod file;
mod ownership;
pub(crate) mod package;
mod scaffold;
mod service;
#[cfg(test)]
pub(crate) mod tests;
mod unmanaged;

pub(crate) use package::debian_order;

pub(crate) use command_line::run_as;
use serde_json::{Value, json};

use crate::{
    document::{Diagnostic, closest},
    resource::{AnyType, TypeOf, document, written},
    session::{Event, Summary},
};

/// Every type, in the order in which help and manual list them.
pub(crate) const TYPES: &[&dyn AnyType] = &[
    &TypeOf::<apply::Apply>::NEW,
    &TypeOf::<archive::Archive>::NEW,
    &TypeOf::<exec::Exec>::NEW,
    &TypeOf::<fact::Fact>::NEW,
    &TypeOf::<file::File>::NEW,
    &TypeOf::<account::Group>::NEW,
    &TypeOf::<package::Package>::NEW,
    &TypeOf::<scaffold::Scaffold>::NEW,
    &TypeOf::<service::Service>::NEW,
    &TypeOf::<account::User>::NEW,
];

/// The type with this name.
pub(crate) fn find(name: &str) -> Option<&'static dyn AnyType> {
    TYPES.iter().copied().find(|kind| kind.name() == name)
}

/// Returns what to say of a type that does not exist.
pub(crate) fn unknown(name: &str) -> Diagnostic {
    let help = closest(name, names()).map_or_else(
        || format!("known types: {}", names().collect::<Vec<_>>().join(", ")),
        |near| format!("did you mean `{near}`?"),
    );
    Diagnostic::error("unknown-type", format!("unknown type `{name}`")).with_help(help)
}

/// The schema of an event, with the states of all types.
pub(crate) fn event_schema() -> Value {
    let of_type = |kind: &&'static dyn AnyType| {
        let mut state = kind.state_schema().to_value();
        let text = json!({ "type": "string" });
        let head = [
            ("protocol", json!({ "const": format!("io.choria.ccm.v1.resource.{}.state", kind.name()) })),
            ("type", json!({ "const": kind.name() })),
            ("name", text.clone()),
            ("ensure", text),
        ];
        for (key, schema) in head {
            state["properties"][key] = schema;
            if let Some(required) = state["required"].as_array_mut() {
                required.push(key.into());
            }
        }
        let status = json!({ "anyOf": [state, { "type": "null" }] });
        json!({ "properties": { "type": { "const": kind.name() }, "status": status } })
    };
    let mut schema = written::<Event>().to_value();
    schema["oneOf"] = TYPES.iter().map(of_type).collect();
    document("ccm event", &schema)
}

/// The schema of a summary.
pub(crate) fn summary_schema() -> Value {
    document("ccm summary", &written::<Summary>().to_value())
}

/// The names of all types.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TYPES.iter().map(|kind| kind.name())
}
