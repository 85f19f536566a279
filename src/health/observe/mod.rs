//! Observes the subjects of rules, property by property.

mod accounts;
mod addresses;
mod commands;
mod dns;
mod files;
mod mounts;
pub(super) mod packages;
mod ports;
mod processes;
mod servers;
mod system;
pub(super) mod units;

use super::lens::{Lens, Seen};
use crate::checks::{Observed, Rule, RuleKind, Rules};

/// Observes one property of the subject of a rule.
pub(super) type Observer<'a> = Box<dyn FnMut(&'static str) -> Seen + 'a>;

/// Returns the observer for the subject of a rule. Expensive observations are made once, and only if a property needs
/// them.
pub(super) fn observer<'a>(rule: &'a Rule, lens: &'a Lens<'a>) -> Observer<'a> {
    match rule.kind {
        RuleKind::File => files::observer(rule, lens),
        RuleKind::Command => commands::observer(rule, lens),
        RuleKind::Port => Box::new(move |property| ports::look(property, rule, lens)),
        RuleKind::Package => Box::new(move |property| packages::look(property, rule, lens)),
        RuleKind::User => accounts::user(rule, lens),
        RuleKind::Group => accounts::group(rule, lens),
        RuleKind::Service => Box::new(move |property| units::look(property, rule, lens)),
        RuleKind::Process => processes::observer(rule, lens),
        RuleKind::Http => servers::observer(rule, lens),
        RuleKind::KernelParam => Box::new(move |_| system::kernel_parameter(&rule.subject)),
        RuleKind::Mount => mounts::observer(rule, lens),
        RuleKind::Addr => Box::new(move |_| addresses::reachable(rule, lens)),
        RuleKind::Dns => dns::observer(rule, lens),
        RuleKind::Interface => system::interface(rule),
        RuleKind::Matching => {
            Box::new(move |_| Ok(Observed::Value(rule.options.content.clone().unwrap_or_default())))
        }
    }
}

/// Makes the observations that several rules can share.
pub(super) fn expect(rules: &Rules, lens: &Lens) {
    let names: Vec<&str> = rules
        .rules()
        .filter(|rule| rule.kind == RuleKind::Service && !rule.is_skipped)
        .map(|rule| rule.subject.as_str())
        .collect();
    if !names.is_empty() {
        lens.units.get_or_init(|| units::Units::read(&names, lens));
    }
}
