//! What came of a check, as events and reports show it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Perfdata;
use crate::redaction::Redactor;

/// How well something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schemars(inline)]
pub(crate) enum CheckState {
    /// It is well.
    Ok,
    /// It needs attention.
    Warning,
    /// It is not well.
    Critical,
    /// Nobody could tell.
    Unknown,
}

impl CheckState {
    pub(crate) const ALL: [Self; 4] = [Self::Ok, Self::Warning, Self::Critical, Self::Unknown];

    /// Returns the state that a plugin tells by its exit code.
    pub(crate) fn of_exit_code(code: i32) -> Self {
        match code {
            0 => Self::Ok,
            1 => Self::Warning,
            2 => Self::Critical,
            _ => Self::Unknown,
        }
    }

    /// Returns the exit code of a plugin that tells this state.
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

    /// Returns its word and what was said, if anything was.
    pub(crate) fn with(self, said: &str) -> String {
        if said.is_empty() { self.word().to_owned() } else { format!("{}: {said}", self.word()) }
    }

    /// Returns the worse of two: what is known to be bad is worse than what is not known.
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

/// How a check tells its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Format {
    /// A plugin of Nagios: its exit code and what it prints.
    Nagios,
    /// Rules, judged one by one.
    Goss,
}

/// What came of one health check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct CheckResult {
    /// The name of the check.
    pub(crate) name: String,
    /// How the check tells its result.
    pub(crate) format: Format,
    /// 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.
    pub(crate) status: u8,
    /// The status in a word.
    pub(crate) state: CheckState,
    /// How many attempts were made.
    pub(crate) tries: u32,
    /// The first line that a plugin printed, or the counts of the rules.
    pub(crate) output: String,
    /// What a plugin printed after that.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) long_output: String,
    /// What a plugin measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) perfdata: Vec<Perfdata>,
    /// The properties that are not as the rules say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) results: Vec<PropertyResult>,
    /// How long it took, in nanoseconds, with all attempts and pauses.
    pub(crate) duration: u64,
    /// Whether the resource fails with it.
    #[serde(skip)]
    pub(crate) is_failed: bool,
}

/// What came of one property in a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct PropertyResult {
    /// The kind of the rule.
    pub(crate) kind: String,
    /// The rule, and its subject where that is called differently.
    pub(crate) id: String,
    /// The property.
    pub(crate) property: String,
    /// What came of it.
    pub(crate) result: Judgement,
    /// What was expected and what was found.
    pub(crate) message: String,
}

/// What came of one property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Judgement {
    /// It is as the rule says.
    Pass,
    /// It is not.
    Fail,
    /// It was not looked at.
    Skip,
    /// It could not be looked at.
    Unknown,
}

/// How many properties an event keeps, and how many bytes of an output.
const MOST_RESULTS: usize = 100;
const MOST_OUTPUT: usize = 8 << 10;

impl CheckResult {
    /// Returns what an event keeps of it: of properties the failures, of long outputs the beginning.
    pub(crate) fn for_event(mut self) -> Self {
        self.results.retain(|property| matches!(property.result, Judgement::Fail | Judgement::Unknown));
        self.results.truncate(MOST_RESULTS);
        cut(&mut self.output);
        cut(&mut self.long_output);
        self.results.iter_mut().for_each(|property| cut(&mut property.message));
        self
    }

    /// Returns only how it went: of a sensitive resource nothing else may be seen.
    pub(crate) fn status_only(self, number: usize) -> Self {
        let name = format!("check {number}");
        let (output, long_output) = (String::new(), String::new());
        Self { name, output, long_output, perfdata: Vec::new(), results: Vec::new(), ..self }
    }

    /// Masks secrets in all that it says.
    pub(crate) fn redact(&mut self, redactor: &Redactor) {
        let properties =
            self.results.iter_mut().flat_map(|property| [&mut property.id, &mut property.message]);
        let labels = self.perfdata.iter_mut().map(|item| &mut item.label);
        let own = [&mut self.name, &mut self.output, &mut self.long_output];
        own.into_iter().chain(properties).chain(labels).for_each(|text| redactor.mask(text));
    }

    /// Returns what is wrong, completing "health check".
    pub(crate) fn complaint(&self) -> String {
        let Self { name, state, output, .. } = self;
        let first = output.lines().next().unwrap_or_default();
        let mut text = format!("{name}: {}", state.with(first));
        let bad =
            |property: &&PropertyResult| matches!(property.result, Judgement::Fail | Judgement::Unknown);
        for PropertyResult { kind, id, property, message, .. } in self.results.iter().filter(bad).take(5) {
            text = format!("{text}\n{kind} {id}: {property}: {}", message.lines().next().unwrap_or_default());
        }
        text
    }
}

/// Cuts a text that is too long, and marks it.
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
