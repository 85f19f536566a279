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

use super::existence::Existence as Ensure;
