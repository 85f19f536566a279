//! Health checks, goss rules, and their results.
//!
//! Nothing in this module reads the machine. It parses checks ([`HealthCheck`], [`Rules`]), evaluates observations
//! ([`Matcher`]) and parses the output of plugins ([`nagios`]). `health` makes the observations.

mod health_check;
mod matcher;
pub(crate) mod nagios;
mod outcome;
mod probes;
mod rules;
mod secrets;

pub(crate) use health_check::{
    FailOn, HealthCheck, Kind as CheckKind, Problem as CheckProblem, When, problems,
};
pub(crate) use matcher::{Observed, expected};
pub(crate) use nagios::Perfdata;
pub(crate) use outcome::{CheckResult, CheckState, Format, Judgement, PropertyResult, reasons};
#[cfg(test)]
pub(crate) use rules::rule_table;
pub(crate) use rules::{
    Address, Assertion, Expected, Item, Kind as RuleKind, Port, Protocol, Rule, Rules, Severity,
    VersionWanted,
};
pub(crate) use secrets::{SECRET, hold_secrets};
