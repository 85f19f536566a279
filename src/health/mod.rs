//! Looks at the machine for health checks.
//!
//! [`run`] makes checks and returns what came of them. What a check says is in `checks`; this is the part that looks: it
//! runs plugins, observes what rules are about, and makes as many attempts as a check allows.

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
};

/// What surrounds the checks of one resource.
pub(crate) struct Surroundings<'a> {
    pub(crate) host: &'a Host,
    /// Where relative paths start.
    pub(crate) folder: &'a Path,
    /// Hides what must not be seen.
    pub(crate) redactor: &'a Redactor,
    pub(crate) occasion: Occasion,
}

/// Why checks are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// The resource was changed or refreshed just now.
    Changed,
    /// The resource was as it should be.
    Unchanged,
    /// Nothing but the checks was asked for.
    Monitor,
}

/// Makes all checks in their order and returns what came of each. `tell` hears of attempts that are followed by another.
pub(crate) fn run(checks: &[HealthCheck], on: &Surroundings, tell: &mut dyn FnMut(&str)) -> Vec<CheckResult> {
    checks
        .iter()
        .filter(|check| is_due(check, on.occasion))
        .map(|check| attempts::make(check, on, tell))
        .collect()
}

/// Returns whether a check is made on an occasion.
pub(crate) fn is_due(check: &HealthCheck, occasion: Occasion) -> bool {
    check.when == When::Always || occasion != Occasion::Unchanged
}
