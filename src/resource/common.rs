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
    /// Second name of the resource, for references and reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) alias: Option<String>,
    /// Provider to use instead of the one that ccm selects for this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) provider: Option<String>,
    /// References (`type#name`) of resources that must succeed first. If one of them failed or was skipped, ccm skips
    /// this resource. A pattern such as `file#/etc/nginx/*` refers to all matching resources before this one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = or_alone)]
    pub(crate) require: Vec<Reference>,
    /// References (`type#name`) of resources. If one of them changes, ccm refreshes this resource. A pattern such as
    /// `file#/etc/nginx/*` refers to all matching resources before this one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = or_alone)]
    pub(crate) subscribe: Vec<Reference>,
    /// Labels for `--only` and `--skip`. Tags in the `defaults` of a list are added.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) tags: Vec<PlainName>,
    /// Conditions under which ccm manages the resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) control: Option<Control>,
    /// Time limit of one attempt, such as `30s` or `5m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeout: Option<TimeLimit>,
    /// Number of attempts before the resource fails (default 1; 3 for an archive).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tries: Option<NonZeroU32>,
    /// Pause between two attempts (default `1s`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) try_sleep: Option<Duration>,
    /// Services to register while the resource is in the desired state. An agent registers them if its configuration
    /// has `registration`. Each entry has `cluster`, `service`, `protocol` and `address`, and optionally `port`,
    /// `priority`, `ttl` and `annotations`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-late" = true))]
    pub(crate) register_when_stable: Vec<Registration>,
    /// Health checks to run after the resource was applied. Each is a map with exactly one of `command`, `goss_rules`,
    /// `goss_file`, `http`, `tcp`, `file` and `unit`. If a check fails, the resource fails.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-late" = true))]
    pub(crate) health_checks: Vec<HealthCheck>,
    /// If `always`, the history keeps the replaced content regardless of size; if `never`, it keeps none of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) keep: Option<Keep>,
    /// If true, ccm never shows or stores property values, content or diffs of this resource. Other commands of a
    /// script must refer to the resource by its name, because its `alias` is not stored either.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) sensitive: bool,
}

/// Which replaced contents the history keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Keep {
    /// All, regardless of size.
    Always,
    /// None.
    Never,
}

/// The only common property whose templates are expanded at run time.
pub(crate) const REGISTRATIONS: &str = "register_when_stable";

/// Accepts a single value instead of a list with one element.
fn or_alone(schema: &mut Schema) {
    let Some(list) = schema.as_object_mut() else { return };
    let Some(one) = list.remove("items") else { return };
    let kind = list.remove("type");
    list.insert("anyOf".to_owned(), json!([{ "type": kind, "items": one }, one]));
}

/// Conditions under which ccm manages a resource.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Control {
    /// ccm manages the resource only if this is not false.
    #[serde(rename = "if", skip_serializing_if = "Option::is_none")]
    pub(crate) if_: Option<Condition>,
    /// ccm manages the resource only if this is not true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unless: Option<Condition>,
}

/// A boolean, or an expression that returns a boolean at run time.
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
    /// Returns the reason why ccm does not manage the resource, or `None`.
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
