//! The `user` and `group` types: the local accounts of the machine.

mod authorized_keys;
mod database;
mod group;
mod home;
mod name;
mod shadow;
#[cfg(test)]
mod tests;
mod tool;
mod user;

pub(crate) use self::{
    group::Group,
    user::{Undoing, User},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether an account exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Ensure {
    /// The account exists.
    #[default]
    Present,
    /// The account does not exist.
    Absent,
}

impl Ensure {
    fn word(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Absent => "absent",
        }
    }
}
