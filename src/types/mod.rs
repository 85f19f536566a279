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
use schemars::Schema;

use crate::{
    document::{Diagnostic, closest},
    resource::{AnyType, TypeOf},
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

/// Returns the schema of the state of each type, by the name of the type.
pub(crate) fn state_schemas() -> impl Iterator<Item = (&'static str, Schema)> {
    TYPES.iter().map(|kind| (kind.name(), kind.state_schema()))
}

/// The names of all types.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TYPES.iter().map(|kind| kind.name())
}
