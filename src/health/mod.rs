//! Runs health checks on the machine.
//!
//! [`run`] runs checks and returns their results. `checks` has the parsed checks; this module runs plugins, observes
//! the subjects of rules, and repeats attempts.

#![allow(clippy::disallowed_methods, reason = "what rules are about is looked at here")]

mod attempts;
mod include;
mod lens;
mod observe;
mod plugin;
mod rules;

use std::path::Path;

pub(crate) use include::{IncludeError, included_rules, rules_of};

use crate::{
    checks::{CheckResult, HealthCheck, When},
    host::Host,
    redaction::Redactor,
    resource::AnyType,
};

/// Environment of the checks of one resource.
pub(crate) struct Surroundings<'a> {
    pub(crate) host: &'a Host,
    /// Type that inspects packages.
    pub(crate) package_type: &'static dyn AnyType,
    /// Directory of relative paths.
    pub(crate) folder: &'a Path,
    /// Masks secrets.
    pub(crate) redactor: &'a Redactor,
    pub(crate) occasion: Occasion,
}

/// Reason to run checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// The resource was changed or refreshed just now.
    Changed,
    /// The resource was in the desired state.
    Unchanged,
    /// Only health checks were requested.
    Monitor,
}

/// Runs all checks in order and returns their results. Calls `tell` for attempts that are followed by another.
pub(crate) fn run(checks: &[HealthCheck], on: &Surroundings, tell: &mut dyn FnMut(&str)) -> Vec<CheckResult> {
    checks
        .iter()
        .filter(|check| is_due(check, on.occasion))
        .map(|check| attempts::make(check, on, tell))
        .collect()
}

/// Returns whether a check runs on an occasion.
pub(crate) fn is_due(check: &HealthCheck, occasion: Occasion) -> bool {
    check.when == When::Always || occasion != Occasion::Unchanged
}
