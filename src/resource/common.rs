//! Properties that every resource has.

use std::num::NonZeroU32;

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Error, ErrorKind};
use crate::{
    checks::HealthCheck,
    registration::Registration,
    template::{self, Scope},
    vocabulary::{Duration, PlainName, Reference, TimeLimit},
};

/// Properties that every resource has.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Common {
    /// A second name for references and reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) alias: Option<String>,
    /// The provider to use instead of the one that suits the machine best.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) provider: Option<String>,
    /// Resources, as `type#name`, that must not have failed or been skipped for an unmet requirement; otherwise this
    /// one is skipped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = or_alone)]
    pub(crate) require: Vec<Reference>,
    /// Resources, as `type#name`, whose change refreshes this one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = or_alone)]
    pub(crate) subscribe: Vec<Reference>,
    /// Words by which `--only` and `--skip` select resources; those of a list's `defaults` are added.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) tags: Vec<PlainName>,
    /// Conditions under which the resource is managed at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) control: Option<Control>,
    /// Time limit of one attempt, such as `30s` or `5m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeout: Option<TimeLimit>,
    /// Number of attempts before the resource counts as failed (default 1; 3 for an archive).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tries: Option<NonZeroU32>,
    /// Pause between two attempts (default `1s`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) try_sleep: Option<Duration>,
    /// Services that an agent registers for as long as the resource is as it should be, if its configuration has
    /// `registration`: maps with `cluster`, `service`, `protocol`, `address`, and if you like `port`, `priority`, `ttl` and
    /// `annotations`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-late" = true))]
    pub(crate) register_when_stable: Vec<Registration>,
    /// Checks of whether it does what it is there for, made after it was applied: each is a map with exactly one of
    /// `command`, `goss_rules`, `goss_file`, `http`, `tcp`, `file` and `unit`. While one fails, the resource does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-late" = true))]
    pub(crate) health_checks: Vec<HealthCheck>,
    /// Never show or store a property value, content or diff of this resource. The other commands of a script refer to
    /// it by its name, because its `alias` is not stored either.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) sensitive: bool,
}

/// The one property of these whose templates are expanded when the resource's turn comes.
pub(crate) const REGISTRATIONS: &str = "register_when_stable";

/// Lets one value stand without its list.
fn or_alone(schema: &mut Schema) {
    let Some(list) = schema.as_object_mut() else { return };
    let Some(one) = list.remove("items") else { return };
    let kind = list.remove("type");
    list.insert("anyOf".to_owned(), json!([{ "type": kind, "items": one }, one]));
}

/// Conditions under which a resource is managed.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Control {
    /// Managed only when this is not false.
    #[serde(rename = "if", skip_serializing_if = "Option::is_none")]
    pub(crate) if_: Option<Condition>,
    /// Managed only when this is not true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unless: Option<Condition>,
}

/// A boolean, or an expression that gives one when the resource's turn comes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(crate) enum Condition {
    Literal(bool),
    Expression(String),
}

/// Reasons for which `control` excludes a resource.
pub(crate) const IF_IS_FALSE: &str = "control.if is false";
pub(crate) const UNLESS_IS_TRUE: &str = "control.unless is true";

impl Control {
    /// Why the resource is not managed, if it is not.
    pub(crate) fn excludes(&self, scope: &Scope) -> Result<Option<&'static str>, Error> {
        if let Some(condition) = &self.if_
            && !condition.holds("control.if", scope)?
        {
            return Ok(Some(IF_IS_FALSE));
        }
        match &self.unless {
            Some(condition) if condition.holds("control.unless", scope)? => Ok(Some(UNLESS_IS_TRUE)),
            _ => Ok(None),
        }
    }
}

/// Returns the advice for a condition that evaluates to the text of a boolean.
pub(crate) fn text_as_boolean(text: &str) -> Option<String> {
    let is_boolean =
        ["true", "false", "yes", "no", "on", "off"].contains(&text.to_ascii_lowercase().as_str());
    is_boolean
        .then(|| format!("\"{text}\" is a string: write true or false without quotes, or compare with `==`"))
}

impl Condition {
    fn holds(&self, name: &str, scope: &Scope) -> Result<bool, Error> {
        let text = match self {
            Self::Literal(value) => return Ok(*value),
            Self::Expression(text) => text,
        };
        let parsed = template::Condition::parse(text);
        let value = parsed.and_then(|condition| condition.evaluate(scope)).map_err(|error| Error {
            help: error.help,
            ..Error::new(format!("{name}: {}", error.kind)).of_kind(ErrorKind::Expression).on("control")
        })?;
        value.as_bool().ok_or_else(|| Error {
            help: value.as_str().and_then(text_as_boolean),
            ..Error::new(format!("{name} must give a boolean, not {}: `{text}`", value.type_name()))
                .of_kind(ErrorKind::Expression)
                .on("control")
        })
    }
}
