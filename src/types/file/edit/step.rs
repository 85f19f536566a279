//! One step of an `edit`: its options and its execution.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toml_edit::Key;

use super::{
    Reason,
    block::Markers,
    ini, json,
    line::{self, Position, Setting},
    replace::Replacement,
    toml,
};
use crate::vocabulary::{Pattern, ScalarText};

/// One step: exactly one of `line`, `block`, `replace`, `ini`, `keyvalue`, `json` and `toml`, and its options.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct Step {
    /// A complete line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line: Option<ScalarText>,
    /// Lines between two marker lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    block: Option<ScalarText>,
    /// Regular expression. ccm replaces every match by `with`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replace: Option<ScalarText>,
    /// Key in a section of an INI file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ini: Option<Ini>,
    /// Key and value on one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keyvalue: Option<KeyValue>,
    /// Merge patch for a JSON file (RFC 7396): maps merge, null removes a key, and other values replace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    json: Option<serde_json::Map<String, Value>>,
    /// Dotted key of a TOML file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    toml: Option<Toml>,
    /// With `line`: regular expression. ccm replaces the last line that matches. With `ensure: absent`, ccm removes all
    /// lines that match.
    #[serde(rename = "match", default, skip_serializing_if = "Option::is_none")]
    matching: Option<ScalarText>,
    /// With `line`, `block` and `keyvalue`: regular expression. New lines go after the last line that matches, instead
    /// of to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<ScalarText>,
    /// With `line`, `block` and `keyvalue`: regular expression. New lines go before the first line that matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<ScalarText>,
    /// If `absent`, ccm removes the text that the step names.
    #[serde(default, skip_serializing_if = "Presence::is_present")]
    ensure: Presence,
    /// With `block`: label that distinguishes the block from other blocks in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    marker: Option<ScalarText>,
    /// With `block`: start of a comment, and its end if it needs one, as in `<!-- -->`. Default: derived from the
    /// ending of the file name, else `#`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    comment: Option<ScalarText>,
    /// With `replace`: text for each match; `$1` is a group of the expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    with: Option<ScalarText>,
}

/// Whether the text that a step names is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Presence {
    /// The text is wanted.
    #[default]
    Present,
    /// The text is removed.
    Absent,
}

impl Presence {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
    fn is_present(&self) -> bool {
        *self == Self::Present
    }
}

/// Key in a section of an INI file.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
struct Ini {
    /// Name of the section. Without it, the key is in the lines before the first section.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    section: Option<ScalarText>,
    /// Name of the key.
    key: ScalarText,
    /// Value of the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<ScalarText>,
    /// If `absent`, ccm removes the key.
    #[serde(default, skip_serializing_if = "Presence::is_present")]
    ensure: Presence,
}

/// Key and value on one line.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
struct KeyValue {
    /// Name of the key.
    key: ScalarText,
    /// Value of the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<ScalarText>,
    /// Separator between key and value. Spaces around it in existing lines do not matter.
    #[serde(default = "equals_sign")]
    separator: String,
    /// If `absent`, ccm removes the key.
    #[serde(default, skip_serializing_if = "Presence::is_present")]
    ensure: Presence,
}

fn equals_sign() -> String {
    "=".to_owned()
}

/// Dotted key of a TOML file.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
struct Toml {
    /// Name of the key, with dots between the tables that contain it.
    key: String,
    /// Value of the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
    /// If `absent`, ccm removes the key.
    #[serde(default, skip_serializing_if = "Presence::is_present")]
    ensure: Presence,
}

/// Action of a step.
pub(super) enum Operation<'s> {
    Line { line: &'s str, matching: Option<Pattern>, spot: Spot },
    NoLine { line: &'s str, matching: Option<Pattern> },
    Block { block: Option<&'s str>, marker: Option<&'s str>, comment: Option<&'s str>, spot: Spot },
    Replace(Replacement<'s>),
    Ini { key: ini::Key<'s>, value: Option<&'s str> },
    Setting { setting: Setting<'s>, value: Option<&'s str>, spot: Spot },
    Json(Value),
    Toml { keys: Vec<Key>, value: Option<&'s Value> },
}

/// Position for new lines.
pub(super) struct Spot {
    after: Option<Pattern>,
    before: Option<Pattern>,
}

impl Spot {
    fn position(&self) -> Position<'_> {
        Position { after: self.after.as_deref(), before: self.before.as_deref() }
    }
}

impl Operation<'_> {
    /// Returns the key that names the step.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Line { .. } | Self::NoLine { .. } => "line",
            Self::Block { .. } => "block",
            Self::Replace(_) => "replace",
            Self::Ini { .. } => "ini",
            Self::Setting { .. } => "keyvalue",
            Self::Json(_) => "json",
            Self::Toml { .. } => "toml",
        }
    }

    /// Applies the step to a text and returns the result.
    pub(super) fn apply(&self, text: &str, path: &Path) -> Result<String, Reason> {
        match self {
            Self::Line { line, matching, spot } => {
                Ok(line::present(text, line, matching.as_deref(), spot.position()))
            }
            Self::NoLine { line, matching } => Ok(line::absent(text, line, matching.as_deref())),
            Self::Block { block, marker, comment, spot } => {
                let markers = Markers::new(*marker, *comment, path);
                match block {
                    Some(block) if markers.are_in(block) => Err(Reason::NotStable),
                    Some(block) => markers.present(text, block, spot.position()),
                    None => markers.absent(text),
                }
            }
            Self::Replace(replacement) => Ok(replacement.apply(text)),
            Self::Ini { key, value } => {
                Ok(value.map_or_else(|| key.unset(text), |value| key.set(text, value)))
            }
            Self::Setting { setting, value, spot } => {
                Ok(value
                    .map_or_else(|| setting.unset(text), |value| setting.set(text, value, spot.position())))
            }
            Self::Json(merged) => json::merge(text, merged),
            Self::Toml { keys, value } => toml::edit(text, keys, *value),
        }
    }

    /// Returns doubts about a step that changes a text.
    pub(super) fn doubts(&self, text: &str) -> Vec<String> {
        match self {
            Self::Line { matching: Some(matching), .. } => line::doubts(text, matching, false),
            Self::NoLine { matching: Some(matching), .. } => line::doubts(text, matching, true),
            _ => Vec::new(),
        }
    }

    /// Returns why ccm rejects a step that would change its own result.
    pub(super) fn unstable(&self) -> Reason {
        match self {
            Self::Replace(replacement) => Reason::Restless { pattern: replacement.pattern() },
            _ => Reason::NotStable,
        }
    }
}

/// Options and the steps that accept them.
const OPTIONS: &[(&str, &[&str])] = &[
    ("match", &["line"]),
    ("after", &["line", "block", "keyvalue"]),
    ("before", &["line", "block", "keyvalue"]),
    ("ensure", &["line", "block", "ini", "keyvalue", "toml"]),
    ("marker", &["block"]),
    ("comment", &["block"]),
    ("with", &["replace"]),
];

impl Step {
    /// Returns the action of the step, or the error in its options.
    pub(super) fn operation(&self) -> Result<Operation<'_>, String> {
        let name = self.name()?;
        self.check_options(name)?;
        let pattern = |text: &Option<ScalarText>| {
            let parsed = text.as_deref().map(str::parse::<Pattern>).transpose();
            parsed.map_err(|error| error.to_string())
        };
        let spot = Spot { after: pattern(&self.after)?, before: pattern(&self.before)? };
        let absent = self.ensure == Presence::Absent;
        if let Some(line) = &self.line {
            let matching = pattern(&self.matching)?;
            return match line.contains(['\n', '\r']) {
                true => Err("`line` is more than one line; several are a `block`".to_owned()),
                false if absent => Ok(Operation::NoLine { line, matching }),
                false => Ok(Operation::Line { line, matching, spot }),
            };
        }
        if let Some(block) = &self.block {
            let block = (!absent).then_some(&**block);
            let (marker, comment) = (self.marker.as_deref(), self.comment.as_deref());
            return Ok(Operation::Block { block, marker, comment, spot });
        }
        if let Some(pattern) = pattern(&self.replace)? {
            let with = self.with.as_deref().ok_or_else(|| "`replace` needs `with`".to_owned())?;
            return Replacement::new(pattern, with).map(Operation::Replace);
        }
        let value = |value: Option<&'_ ScalarText>, inner: Presence| match value {
            _ if absent || inner == Presence::Absent => Ok(None),
            Some(value) if value.contains('\n') => Err(format!("the value of `{name}` has several lines")),
            Some(_) => Ok(Some(())),
            None => Err(format!("`{name}` needs a `value`, or `ensure: absent`")),
        };
        if let Some(ini) = &self.ini {
            let wanted = value(ini.value.as_ref(), ini.ensure)?.and(ini.value.as_deref());
            let key = ini::Key { section: ini.section.as_deref(), key: &ini.key };
            return Ok(Operation::Ini { key, value: wanted });
        }
        if let Some(setting) = &self.keyvalue {
            let wanted = value(setting.value.as_ref(), setting.ensure)?.and(setting.value.as_deref());
            let setting = Setting { key: &setting.key, separator: &setting.separator };
            return Ok(Operation::Setting { setting, value: wanted, spot });
        }
        if let Some(toml) = &self.toml {
            let keys = Key::parse(&toml.key).map_err(|_| format!("\"{}\" is not a key of TOML", toml.key))?;
            let absent = absent || toml.ensure == Presence::Absent;
            let value = toml.value.as_ref().filter(|value| !absent && !value.is_null());
            if value.is_none() && !absent {
                return Err("`toml` needs a `value`, or `ensure: absent`".to_owned());
            }
            return Ok(Operation::Toml { keys, value });
        }
        Ok(Operation::Json(self.json.clone().unwrap_or_default().into()))
    }

    /// Returns the one key that names the step.
    fn name(&self) -> Result<&'static str, String> {
        let given = [
            ("line", self.line.is_some()),
            ("block", self.block.is_some()),
            ("replace", self.replace.is_some()),
            ("ini", self.ini.is_some()),
            ("keyvalue", self.keyvalue.is_some()),
            ("json", self.json.is_some()),
            ("toml", self.toml.is_some()),
        ];
        let names: Vec<_> = given.iter().filter(|(_, is_given)| *is_given).map(|(name, _)| *name).collect();
        match names[..] {
            [name] => Ok(name),
            [] => {
                Err("a step of `edit` needs one of line, block, replace, ini, keyvalue, json and toml"
                    .to_owned())
            }
            _ => Err(format!("a step of `edit` does one thing, not {}", names.join(" and "))),
        }
    }

    /// Rejects options that the step does not have.
    fn check_options(&self, name: &str) -> Result<(), String> {
        let given = [
            self.matching.is_some(),
            self.after.is_some(),
            self.before.is_some(),
            self.ensure == Presence::Absent,
            self.marker.is_some(),
            self.comment.is_some(),
            self.with.is_some(),
        ];
        for ((option, steps), is_given) in OPTIONS.iter().zip(given) {
            if is_given && !steps.contains(&name) {
                return Err(format!(
                    "`{option}` means nothing to `{name}`; it goes with {}",
                    steps.join(", ")
                ));
            }
        }
        Ok(())
    }
}
