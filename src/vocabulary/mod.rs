//! Types of property values.
//!
//! Each type parses, prints and describes itself, so that manifests, flags and JSON requests accept the same values and
//! reject others with the same message.

mod absolute_path;
mod account;
mod checksum;
pub(crate) mod command_words;
mod duration;
mod fact_name;
mod glob;
mod mode;
mod one_line;
pub(crate) mod package_version;
mod pattern;
mod plain_name;
mod raw;
mod reference;
mod run_mode;
mod scalar_text;
pub(crate) mod schema;
mod search_path;
mod secret;
mod size;
mod url;
mod variable;

pub(crate) use absolute_path::AbsolutePath;
pub(crate) use account::Account;
pub(crate) use checksum::{Algorithm, Checksum, WantedChecksum};
pub(crate) use duration::{Duration, TimeLimit};
pub(crate) use fact_name::FactName;
pub(crate) use glob::Glob;
pub(crate) use mode::Mode;
pub(crate) use one_line::OneLine;
pub(crate) use pattern::Pattern;
pub(crate) use plain_name::PlainName;
pub(crate) use raw::Raw;
pub(crate) use reference::{Reference, wildcards};
pub(crate) use run_mode::RunMode;
pub(crate) use scalar_text::ScalarText;
pub(crate) use search_path::SearchPath;
pub(crate) use secret::Secret;
pub(crate) use size::Size;
pub(crate) use url::{Login, Scheme, Url, has_scheme, holds_secrets};
pub(crate) use variable::Variable;

/// Reason why a string is not a valid value: a sentence that quotes the string.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub(crate) struct NotAWord(String);
