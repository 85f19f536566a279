//! Evaluates a fact by running its command.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{Properties, Source};
use crate::{
    host::process::Exit,
    redaction::Redactor,
    resource::{Context, Error, State},
    types::command_line::{CommandLine, Readiness, Role, Through},
    vocabulary::RunMode,
};

/// Result of evaluating a fact.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FactState {
    /// Attributes of the fact.
    metadata: Metadata,
    /// Value that later resources see.
    #[serde(skip)]
    pub(super) learned: Option<Value>,
}

/// Attributes of the fact.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Metadata {
    /// Name of the fact.
    name: String,
    /// Provider that ran the command.
    provider: String,
    /// Value, with secrets masked; omitted if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
    /// Whether the value is the `default`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_default: bool,
}

impl State for FactState {
    fn ensure(&self) -> String {
        if self.learned.is_some() { "present" } else { "absent" }.to_owned()
    }

    fn redact(&mut self) {
        self.metadata.value = None;
    }

    fn learned(&self) -> Option<&Value> {
        self.learned.as_ref()
    }
}

/// Runs the command and returns its value.
pub(super) fn learn(want: &Properties, through: Through, cx: &Context) -> Result<FactState, Error> {
    let line = CommandLine { role: Role::Command, text: &want.command, through, settings: want.settings() };
    let follows = cx.mode() == RunMode::Noop && !cx.prediction.borrow().is_empty();
    if follows
        && let Readiness::Predicted(error) | Readiness::Open(error) = line.readiness(cx)?
        && want.default.is_none()
    {
        let reason = error.message.lines().next().unwrap_or_default();
        cx.assume(format!(
            "{reason}; assuming {} changes that, so the value is not known yet",
            cx.suspects()
        ));
        return Ok(state(want, through, None, cx));
    }
    let failed = match line.run(cx) {
        Ok(finished) if finished.exit == Exit::Code(0) => {
            let output = match want.stream {
                Source::Stdout => finished.stdout,
                Source::Stderr => finished.stderr,
            };
            let value = String::from_utf8(output.bytes)
                .map_err(|_| "it is not UTF-8 text".to_owned())
                .and_then(|text| want.parse.value(&text))
                .map_err(|reason| {
                    Error::new(format!("cannot make a fact of what the command prints: {reason}")).on("parse")
                })?;
            return Ok(state(want, through, Some(value), cx));
        }
        Ok(finished) => line.failed(&finished, &[], cx),
        Err(error) => error,
    };
    // Who is asked to stop has learned nothing.
    cx.tick()?;
    match &want.default {
        Some(default) => {
            let FactState { metadata, learned } = state(want, through, Some(default.clone()), cx);
            Ok(FactState { metadata: Metadata { is_default: true, ..metadata }, learned })
        }
        None => Err(failed),
    }
}

fn state(want: &Properties, through: Through, learned: Option<Value>, cx: &Context) -> FactState {
    let shown = learned.clone().map(|value| masked(value, &cx.redactor));
    let provider = if through == Through::Shell { "shell" } else { "posix" };
    let metadata = Metadata {
        name: want.name.to_string(),
        provider: provider.to_owned(),
        value: shown,
        is_default: false,
    };
    FactState { metadata, learned }
}

/// Masks secrets in all strings of a value.
fn masked(value: Value, redactor: &Redactor) -> Value {
    match value {
        Value::String(text) => redactor.redact(&text).into_owned().into(),
        Value::Array(items) => items.into_iter().map(|item| masked(item, redactor)).collect(),
        Value::Object(entries) => {
            let entry =
                |(key, value): (String, Value)| (redactor.redact(&key).into_owned(), masked(value, redactor));
            Value::Object(entries.into_iter().map(entry).collect())
        }
        other => other,
    }
}
