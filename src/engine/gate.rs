//! Whether a resource's turn comes to anything.

use std::collections::HashSet;

use super::{PendingRefreshes, RunMode};
use crate::{
    resource::{Error, ErrorKind, Resource, Sight},
    session::{Event, Session},
    template::Scope,
    vocabulary::Reference,
};

/// What stands between a resource and its turn.
pub(super) enum Gate<'a> {
    /// Nothing. It is to be refreshed on account of these, if there are any.
    Open(Vec<&'a Reference>),
    /// It is not managed, or not in this run, and why.
    Excluded(&'static str),
    /// Resources that it requires failed or were themselves skipped for this reason.
    Unmet(Vec<&'a Reference>),
    /// A condition that cannot be decided.
    Faulty(Error),
}

impl Gate<'_> {
    /// Returns why the resource is not managed, if it is not.
    pub(super) fn exclusion(&self) -> Option<&'static str> {
        match self {
            Self::Excluded(reason) => Some(reason),
            _ => None,
        }
    }
}

/// `control` first, then `require`, then whether a subscribed resource has changed in this run or an earlier one.
pub(super) fn check<'a>(
    resource: &'a Resource,
    session: &Session,
    refreshes: &PendingRefreshes,
    dry_run_only: &HashSet<Reference>,
    mode: RunMode,
    scope: &Scope,
    is_waiting: &dyn Fn(&Reference) -> bool,
) -> Gate<'a> {
    // What is only looked at within this run is neither missing nor changed; a dry run foretells the same.
    let is_foreseen = |event: &Event| {
        let name = Reference { kind: event.kind.clone(), name: event.name.clone() };
        dry_run_only.contains(&name)
    };
    let find = |reference: &Reference| {
        let foreseen = || session.find(reference, RunMode::Noop).filter(|event| is_foreseen(event));
        session.find(reference, mode).or_else(foreseen)
    };
    let is_looked_at = dry_run_only.contains(&resource.reference());
    let counts = |event: &Event| event.counts(mode) && (is_looked_at || !event.noop || !is_foreseen(event));
    let common = &resource.common;
    let own = resource.own_scope(scope);
    let scope = own.as_ref().unwrap_or(scope);
    // The conditions of an included manifest decided whether ccm loads it: they do not change afterwards.
    if let Some(reason) = resource.switched_off {
        return Gate::Excluded(reason);
    }
    match common.control.as_ref().map(|control| control.excludes(scope)) {
        Some(Err(error)) => return Gate::Faulty(error),
        Some(Ok(Some(reason))) => return Gate::Excluded(reason),
        Some(Ok(None)) | None => {}
    }
    // Members of a validation group wait together: they can refer to each other.
    let is_seen = |other: &Reference| find(other).is_some() || is_waiting(other);
    if let Some(unseen) = common.require.iter().chain(&common.subscribe).find(|other| !is_seen(other)) {
        return Gate::Faulty(not_seen(unseen, session, mode));
    }
    let unmet: Vec<_> = common
        .require
        .iter()
        .filter(|required| !is_waiting(required) && !find(required).is_some_and(is_met))
        .collect();
    if !unmet.is_empty() {
        return Gate::Unmet(unmet);
    }
    let is_cause = |reference: &&Reference| {
        // While what changed is failing, nobody is refreshed on its account: that stays owed until it is well.
        let owed = || refreshes.owed(resource).contains(reference);
        find(reference).is_some_and(|event| !event.failed && (event.changed && counts(event) || owed()))
    };
    Gate::Open(common.subscribe.iter().filter(is_cause).collect())
}

/// A manifest is checked before it is applied; a script can refer to something that it has not done.
fn not_seen(reference: &Reference, session: &Session, mode: RunMode) -> Error {
    let mut seen: Vec<String> = Vec::new();
    for event in session.events().iter().filter(|event| event.counts(mode)) {
        let name = format!("{}#{}", event.kind, event.name);
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    let is_predicted = session.find(reference, RunMode::Noop).is_some();
    let sight = match (is_predicted, session.is_kept() || !session.events().is_empty()) {
        (true, _) => Sight::OnlyPredicted,
        (false, true) => Sight::Never,
        (false, false) => Sight::NoSession,
    };
    ErrorKind::NotSeen { reference: reference.clone(), seen, sight }.into()
}

/// A requirement is met by a resource that was applied or that its own `control` passed over.
fn is_met(event: &Event) -> bool {
    !event.failed && event.unmet_requirements.is_empty()
}
