//! The health checks of a resource: read with it, and expanded when they are made.

use std::borrow::Cow;

use crate::{
    checks::{self, HealthCheck, SECRET},
    document::{Diagnostic, Diagnostics, Entry, Node, Severity, Source, Span, Value, from_node},
    resource::{Error, ErrorKind, Resource, secret_argument},
    template::{self, Scope},
};

pub(super) const PROPERTY: &str = "health_checks";

/// Takes health checks with templates out of the properties, and puts what they will be in their place, if that is known.
pub(super) fn set_late_checks_aside(properties: &mut Vec<Entry>, foreseen: &mut Vec<Entry>) -> Option<Node> {
    let at = properties.iter().position(|entry| entry.key == PROPERTY)?;
    let has_keys = template::keys_hold_template(&properties[at].value);
    if !has_keys && !template::holds_template(&properties[at].value) {
        return None;
    }
    let late = properties.remove(at).value;
    let known = foreseen.iter().position(|entry| entry.key == PROPERTY).map(|at| foreseen.remove(at));
    properties.extend(known.filter(|_| !has_keys));
    Some(late)
}

/// Returns whether a place lies in a part of checks that must not be seen.
pub(super) fn is_secret(checks: &Node, place: Option<Span>) -> bool {
    let is_in = |node: &Node| place.is_some_and(|place| node.span.contains(place));
    match &checks.value {
        Value::Scalar(_) => false,
        Value::Seq(items) => items.iter().any(|item| is_secret(item, place)),
        Value::Map(entries) => entries.iter().any(|Entry { key, value, .. }| {
            SECRET.contains(&key.as_str()) && is_in(value) || is_secret(value, place)
        }),
    }
}

/// Says what is wrong with checks, each at its place.
pub(super) fn check_problems(checks: &[HealthCheck], written: Option<&Node>) -> Vec<Diagnostic> {
    let items = written.and_then(Node::as_seq).unwrap_or_default();
    checks::problems(checks)
        .into_iter()
        .map(|problem| {
            let found = Diagnostic::error("invalid-health-check", problem.message);
            let span = items.get(problem.check).or(written).map(|node| node.span);
            Diagnostic { help: problem.help, span, ..found }
        })
        .collect()
}

/// Returns whether a command of checks contains a secret value.
fn has_secret_command(checks: &Node) -> bool {
    let items = checks.as_seq().unwrap_or_default();
    items.iter().filter_map(|check| check.lookup("command")).any(Node::holds_secret)
}

impl Resource {
    /// Returns whether it has health checks.
    pub(crate) fn is_checked(&self) -> bool {
        !self.common.health_checks.is_empty() || self.late_checks.is_some()
    }

    /// Returns its health checks, unless there are templates in them.
    pub(crate) fn plain_checks(&self) -> &[HealthCheck] {
        if self.late_checks.is_some() { &[] } else { &self.common.health_checks }
    }

    /// Returns how many health checks it has.
    pub(crate) fn check_count(&self) -> usize {
        let late = self.late_checks.as_deref().and_then(Node::as_seq).map(<[Node]>::len);
        late.unwrap_or(self.common.health_checks.len())
    }

    /// Returns its health checks as they are now, with their templates expanded.
    pub(crate) fn checks_now(
        &self,
        scope: &Scope,
        source: &Source,
    ) -> Result<Cow<'_, [HealthCheck]>, Vec<Error>> {
        let Some(late) = &self.late_checks else { return Ok(Cow::Borrowed(&self.common.health_checks)) };
        let own = self.own_scope(scope);
        let scope = own.as_ref().unwrap_or(scope);
        let mut node = late.clone();
        let mut diagnostics = Diagnostics::default();
        template::expand_keys(&mut node, scope, source, &mut diagnostics);
        template::expand_properties(&mut node, scope, source, &mut diagnostics);
        diagnostics.retain(|problem| problem.severity == Severity::Error);
        if node.holds_secret() {
            self.mark_secret();
        }
        if diagnostics.is_empty() && has_secret_command(&node) {
            return Err(vec![secret_argument(PROPERTY)]);
        }
        if diagnostics.is_empty() {
            match from_node::<Vec<HealthCheck>>(&node) {
                Ok(checks) => {
                    diagnostics.extend(check_problems(&checks, Some(&node)));
                    if diagnostics.is_empty() {
                        return Ok(Cow::Owned(checks));
                    }
                }
                Err(error) => diagnostics.push(error.into()),
            }
        }
        let error = |problem: Diagnostic| {
            let is_hidden = self.is_sensitive() || is_secret(late, problem.span);
            let message = if is_hidden { "they cannot be worked out".to_owned() } else { problem.message };
            let error =
                Error::new(format!("health_checks: {message}")).of_kind(ErrorKind::Expression).on(PROPERTY);
            Error { place: problem.span, help: problem.help.filter(|_| !is_hidden), ..error }
        };
        Err(diagnostics.into_iter().map(error).collect())
    }
}
