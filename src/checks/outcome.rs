//! Results of checks, as events and reports show them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Perfdata;
use crate::redaction::Redactor;

/// State of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schemars(inline)]
pub(crate) enum CheckState {
    /// The subject is healthy.
    Ok,
    /// The subject needs attention.
    Warning,
    /// The subject is unhealthy.
    Critical,
    /// The state could not be determined.
    Unknown,
}

impl CheckState {
    pub(crate) const ALL: [Self; 4] = [Self::Ok, Self::Warning, Self::Critical, Self::Unknown];

    /// Returns the state that an exit status of a plugin denotes.
    pub(crate) fn of_exit_code(code: i32) -> Self {
        match code {
            0 => Self::Ok,
            1 => Self::Warning,
            2 => Self::Critical,
            _ => Self::Unknown,
        }
    }

    /// Returns the exit status of a plugin for this state.
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Warning => 1,
            Self::Critical => 2,
            Self::Unknown => 3,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
            Self::Unknown => "UNKNOWN",
        }
    }

    /// Returns the state with the message, if there is one.
    pub(crate) fn with(self, said: &str) -> String {
        if said.is_empty() { self.word().to_owned() } else { format!("{}: {said}", self.word()) }
    }

    /// Returns the worse of two states. CRITICAL is worse than UNKNOWN.
    pub(crate) fn worse(self, other: Self) -> Self {
        let badness = |state| match state {
            Self::Ok => 0,
            Self::Warning => 1,
            Self::Unknown => 2,
            Self::Critical => 3,
        };
        if badness(other) > badness(self) { other } else { self }
    }
}

/// Format of the result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Format {
    /// Nagios plugin: exit status and output.
    Nagios,
    /// Rules, evaluated one by one.
    Goss,
}

/// Result of a health check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct CheckResult {
    /// Name of the check.
    pub(crate) name: String,
    /// Format of the result.
    pub(crate) format: Format,
    /// Status: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.
    pub(crate) status: u8,
    /// Status as a word.
    pub(crate) state: CheckState,
    /// Number of attempts.
    pub(crate) tries: u32,
    /// First line of the plugin's output, or the counts of the rules.
    pub(crate) output: String,
    /// Further lines of the plugin's output.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) long_output: String,
    /// Performance data of the plugin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) perfdata: Vec<Perfdata>,
    /// Properties that do not match the rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) results: Vec<PropertyResult>,
    /// Duration of all attempts and pauses in nanoseconds.
    pub(crate) duration: u64,
    /// Whether the check fails the resource.
    #[serde(skip)]
    pub(crate) is_failed: bool,
}

/// Result of one property of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct PropertyResult {
    /// Kind of the rule.
    pub(crate) kind: String,
    /// Name of the rule, with its subject if that differs.
    pub(crate) id: String,
    /// Name of the property.
    pub(crate) property: String,
    /// Result of the comparison.
    pub(crate) result: Judgement,
    /// Expected and actual value.
    pub(crate) message: String,
}

/// Result of one property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Judgement {
    /// The property matches the rule.
    Pass,
    /// The property does not match the rule.
    Fail,
    /// The property was not inspected.
    Skip,
    /// The property could not be inspected.
    Unknown,
}

/// Maximum number of properties in an event.
const MOST_RESULTS: usize = 100;
const MOST_OUTPUT: usize = 8 << 10;
/// Maximum number of properties in a message.
const MOST_REASONS: usize = 5;

impl CheckResult {
    /// Shortens the result for an event: only failed properties, and the beginning of long outputs.
    pub(crate) fn for_event(mut self) -> Self {
        self.results.retain(|property| matches!(property.result, Judgement::Fail | Judgement::Unknown));
        self.results.truncate(MOST_RESULTS);
        cut(&mut self.output);
        cut(&mut self.long_output);
        self.results.iter_mut().for_each(|property| cut(&mut property.message));
        self
    }

    /// Reduces the result to its status, for sensitive resources.
    pub(crate) fn status_only(self, number: usize) -> Self {
        let name = format!("check {number}");
        let (output, long_output) = (String::new(), String::new());
        Self { name, output, long_output, perfdata: Vec::new(), results: Vec::new(), ..self }
    }

    /// Masks secrets in all strings.
    pub(crate) fn redact(&mut self, redactor: &Redactor) {
        let properties =
            self.results.iter_mut().flat_map(|property| [&mut property.id, &mut property.message]);
        let labels = self.perfdata.iter_mut().map(|item| &mut item.label);
        let own = [&mut self.name, &mut self.output, &mut self.long_output];
        own.into_iter().chain(properties).chain(labels).for_each(|text| redactor.mask(text));
    }

    /// Returns the reason of the failure, as it follows "health check".
    pub(crate) fn complaint(&self) -> String {
        let Self { name, state, tries, .. } = self;
        let attempts = if *tries > 1 { format!(" after {tries} attempts") } else { String::new() };
        let heading = format!("{name}: {}{attempts}", state.word());
        match self.reasons().as_slice() {
            [] => heading,
            [one] => format!("{heading}: {one}"),
            many => format!("{heading}\n{}", many[..many.len().min(MOST_REASONS)].join("\n")),
        }
    }

    /// Returns the message of a plugin, or the properties that do not match the rules, each in a line.
    pub(crate) fn reasons(&self) -> Vec<String> {
        reasons(self.format, &self.output, &self.results)
    }
}

/// Returns the message of a plugin, or the properties that do not match the rules, each in a line.
pub(crate) fn reasons(format: Format, output: &str, results: &[PropertyResult]) -> Vec<String> {
    let first = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    let is_bad = |one: &&PropertyResult| matches!(one.result, Judgement::Fail | Judgement::Unknown);
    let mut bad = results.iter().filter(is_bad).peekable();
    // The output of rules counts them.
    let has_message = format == Format::Nagios || !output.starts_with("Count: ");
    if bad.peek().is_none() {
        return Some(first(output)).filter(|output| has_message && !output.is_empty()).into_iter().collect();
    }
    bad.map(|PropertyResult { kind, id, message, .. }| format!("{kind} {id}: {}", first(message))).collect()
}

/// Truncates a string that is too long, and marks the truncation.
fn cut(text: &mut String) {
    const MARK: &str = "… [cut]";
    if text.len() > MOST_OUTPUT {
        text.truncate(text.floor_char_boundary(MOST_OUTPUT - MARK.len()));
        text.push_str(MARK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_to_be_bad_is_worst() {
        let [ok, warning, critical, unknown] = CheckState::ALL;
        for (a, b, worst) in [
            (ok, warning, warning),
            (warning, unknown, unknown),
            (unknown, critical, critical),
            (critical, ok, critical),
            (ok, ok, ok),
        ] {
            assert_eq!(a.worse(b), worst);
            assert_eq!(b.worse(a), worst);
        }
    }

    #[test]
    fn a_long_text_is_cut_between_characters_and_marked() {
        let mut text = "€".repeat(MOST_OUTPUT);
        cut(&mut text);
        assert!(text.len() <= MOST_OUTPUT && text.ends_with("€… [cut]"), "{}", text.len());
    }
}
