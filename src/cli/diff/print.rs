//! Prints differences.

use serde_json::{Map, Value, json};
use similar::TextDiff;

use super::{Group, compare::Change};
use crate::{cli::output::Output, declare::HIDDEN, redaction::MASK, visible::visible};

/// Returns the document that `--json` prints.
pub(super) fn json(groups: &[Group]) -> Value {
    let difference = |difference: &super::Difference| {
        let properties = difference.properties.iter().map(|(name, old, new)| {
            let mut sides = Map::new();
            for (side, value) in [("old", old), ("new", new)] {
                if let Some(value) = value {
                    sides.insert(side.to_owned(), masked(value));
                }
            }
            (name.clone(), Value::Object(sides))
        });
        json!({
            "resource": difference.resource,
            "change": difference.change.word(),
            "properties": properties.collect::<Map<_, _>>(),
        })
    };
    let group = |group: &Group| {
        json!({
            "facts": group.facts,
            "differences": group.differences.iter().map(difference).collect::<Vec<_>>(),
        })
    };
    json!({ "groups": groups.iter().map(group).collect::<Vec<_>>() })
}

/// Prints differences for people. `has_placeholders` if encrypted values were compared without a key.
pub(super) fn text(groups: &[Group], has_placeholders: bool, output: &mut Output) {
    for (at, group) in groups.iter().enumerate() {
        if !group.facts.is_empty() {
            let gap = if at > 0 { "\n" } else { "" };
            output.line(&format!("{gap}{}:", visible(&group.facts.join(", "))));
        }
        if group.differences.is_empty() {
            output.line("no differences");
        }
        for difference in &group.differences {
            output.line(&visible(&format!("{} {}", difference.change.sign(), difference.resource)));
            for (name, old, new) in &difference.properties {
                if has_placeholders && [old, new].iter().all(|side| is_hidden(side.as_ref())) {
                    output.line(&format!("    {name}: changed (encrypted)"));
                } else {
                    property(name, old.as_ref(), new.as_ref(), output);
                }
            }
        }
    }
}

fn is_hidden(value: Option<&Value>) -> bool {
    value.is_some_and(|value| value == HIDDEN)
}

fn property(name: &str, old: Option<&Value>, new: Option<&Value>, output: &mut Output) {
    if let (Some(Value::String(old)), Some(Value::String(new))) = (old, new)
        && (old.contains('\n') || new.contains('\n'))
    {
        output.line(&format!("    {name}:"));
        let diff = TextDiff::from_lines(old.as_str(), new.as_str());
        for line in diff.unified_diff().context_radius(3).header("old", "new").to_string().lines() {
            output.line(&format!("    {}", visible(line)));
        }
        return;
    }
    let shown = |value: &Value| visible(&masked_text(value)).into_owned();
    output.line(&match (old, new) {
        (Some(old), Some(new)) => format!("    {name}: {} -> {}", shown(old), shown(new)),
        (None, Some(value)) | (Some(value), None) => format!("    {name}: {}", shown(value)),
        (None, None) => format!("    {name}"),
    });
}

fn masked(value: &Value) -> Value {
    if value == HIDDEN { MASK.into() } else { value.clone() }
}

fn masked_text(value: &Value) -> String {
    match masked(value) {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

impl Change {
    fn word(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Changed => "changed",
        }
    }

    fn sign(self) -> char {
        match self {
            Self::Added => '+',
            Self::Removed => '-',
            Self::Changed => '~',
        }
    }
}
