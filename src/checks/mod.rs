//! What somebody wants to know of a machine: health checks, the rules in them, and what came of looking.
//!
//! Nothing here looks at a machine. A check is read from what was written ([`HealthCheck`], [`Rules`]), an observation is
//! judged by a [`Matcher`], the output of a plugin is read by [`nagios`]; `health` looks, and has them judged here.

mod health_check;
mod matcher;
pub(crate) mod nagios;
mod outcome;
mod probes;
mod rules;

pub(crate) use health_check::{
    FailOn, HealthCheck, Kind as CheckKind, Problem as CheckProblem, When, problems,
};
pub(crate) use matcher::Observed;
pub(crate) use nagios::Perfdata;
pub(crate) use outcome::{CheckResult, CheckState, Format, Judgement, PropertyResult};
#[cfg(test)]
pub(crate) use rules::rule_table;
pub(crate) use rules::{
    Address, Assertion, Expected, Item, Kind as RuleKind, Port, Protocol, Rule, Rules, Severity,
    VersionWanted,
};
