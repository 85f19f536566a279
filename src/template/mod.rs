//! Templates in what people write: `{{ expr }}` and `${ expr }`, and files with blocks.
//!
//! A [`Scope`] is what expressions can see. Expansion replaces a string by the value of its expressions and marks the
//! result as literal, so that text which came out of a template is never looked at again.

mod advice;
mod author;
mod condition;
mod element;
mod escape;
mod expand;
mod fleet;
mod foreign;
mod foresight;
mod functions;
pub(crate) mod jet;
mod jinja;
mod learned;
mod lookup;
mod manual;
mod scope;
mod unclosed;
mod version;

pub(crate) use author::{Author, names_secret};
pub(crate) use condition::Condition;
pub(crate) use element::{Element, elements};
pub(crate) use escape::escape;
pub(crate) use expand::{
    check, check_keys, expand, expand_keys, expand_properties, holds_template, join, keys_hold_template,
    problem as template_problem, secret_name,
};
pub(crate) use foreign::foreign_in_tree;
pub(crate) use foresight::{DOUBTS, Foreseen, doubtful, foresee};
pub(crate) use functions::nearest_file;
pub(crate) use jinja::{Delimiters, JinjaError, JinjaTemplate, NeededFile, WrittenFiles};
pub(crate) use learned::Learned;
pub(crate) use manual::GROUPS as FUNCTION_GROUPS;
pub(crate) use manual::help as functions_help;
pub(crate) use scope::{Missing, PredictedText, Provenance, Scope, TextPrediction};
pub(crate) use unclosed::{UNCLOSED, check_closed, is_unclosed, torn};
