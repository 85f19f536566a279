//! What a value is expected to be, as rules write it.

mod expected;
mod judge;
mod line_pattern;
mod semver;

use ccm_expr::Path;
use serde_json::{Map, Value as Json};

pub(crate) use self::expected::expected;
pub(super) use self::line_pattern::LinePattern;
use self::semver::Constraint;
use crate::{document::closest, vocabulary::Pattern};

/// What was observed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Observed {
    /// A boolean, a number, a string, a list, or whatever a rule holds itself.
    Value(Json),
    /// The content of a file, what a command printed, and the like: many lines.
    Text(String),
}

/// What is expected of an observation.
#[derive(Clone, Debug)]
pub(crate) enum Matcher {
    Text(String),
    Number(f64),
    Bool(bool),
    Null,
    /// Each item takes an element of its own.
    List(Vec<Matcher>),
    /// What lines of a text have to be.
    Lines(Vec<LineItem>),
    Equal(Json),
    Prefix(String),
    Suffix(String),
    Substring(String),
    Regex(Pattern),
    Order(Relation, f64),
    ContainElement(Box<Matcher>),
    ContainElements(Vec<Matcher>),
    ConsistOf(Vec<Matcher>),
    Length(f64),
    Key(Box<Matcher>),
    Patterns(Vec<LinePattern>),
    And(Vec<Matcher>),
    Or(Vec<Matcher>),
    Not(Box<Matcher>),
    Semver(Constraint),
    Gjson(Vec<(String, SharedPath, Matcher)>),
}

/// A path that several clones of a matcher share.
type SharedPath = std::sync::Arc<Path>;

/// One item of a list that a text is compared with.
#[derive(Clone, Debug)]
pub(crate) enum LineItem {
    Pattern(LinePattern),
    /// Some line has to be like this.
    Line(Matcher),
}

/// How a number has to stand to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    Greater,
    AtLeast,
    Less,
    AtMost,
}

/// What the property is that a matcher is for: a list means something else to a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Value,
    Text,
}

const KEYS: [&str; 22] = [
    "equal",
    "have-prefix",
    "have-suffix",
    "contain-substring",
    "match-regexp",
    "gt",
    "ge",
    "lt",
    "le",
    "contain-element",
    "contain-elements",
    "consist-of",
    "have-len",
    "have-key",
    "have-patterns",
    "and",
    "or",
    "not",
    "semver-constraint",
    "gjson",
    "have-key-with-value",
    "xml",
];

impl Matcher {
    /// Reads a matcher, or says what is wrong with it.
    pub(crate) fn read(written: &Json, subject: Subject) -> Result<Self, String> {
        match written {
            Json::Null => Ok(Self::Null),
            Json::Bool(truth) => Ok(Self::Bool(*truth)),
            Json::Number(number) => Ok(Self::Number(number.as_f64().unwrap_or(f64::NAN))),
            Json::String(text) => Ok(Self::Text(text.clone())),
            Json::Array(items) if subject == Subject::Text => {
                items.iter().map(line_item).collect::<Result<_, _>>().map(Self::Lines)
            }
            Json::Array(items) => Self::read_all(items, subject).map(Self::List),
            Json::Object(entries) => Self::read_map(entries, subject),
        }
    }

    fn read_all(items: &[Json], subject: Subject) -> Result<Vec<Self>, String> {
        items.iter().map(|item| Self::read(item, subject)).collect()
    }

    fn read_map(entries: &Map<String, Json>, subject: Subject) -> Result<Self, String> {
        let mut all = entries.iter();
        let (Some((key, value)), None) = (all.next(), all.next()) else {
            let keys: Vec<String> = entries.keys().map(|key| format!("`{key}`")).collect();
            return Err(match keys.as_slice() {
                [] => "a matcher names what it compares with, such as `gt: 5`; this map is empty".to_owned(),
                keys => format!(
                    "a matcher has one key, and this one has {}: join them with `and`",
                    keys.join(", ")
                ),
            });
        };
        let text = || match value {
            Json::String(text) => Ok(text.clone()),
            other => Err(format!("`{key}` takes a string, not {}", noun(other))),
        };
        let number = || value.as_f64().ok_or_else(|| format!("`{key}` takes a number, not {}", noun(value)));
        let list = || {
            value
                .as_array()
                .map(Vec::as_slice)
                .ok_or_else(|| format!("`{key}` takes a list, not {}", noun(value)))
        };
        // An element of a text is a line, which is a value like any other.
        let one = |value: &Json| Self::read(value, Subject::Value).map(Box::new);
        Ok(match key.as_str() {
            "equal" => Self::Equal(value.clone()),
            "have-prefix" => Self::Prefix(text()?),
            "have-suffix" => Self::Suffix(text()?),
            "contain-substring" => Self::Substring(text()?),
            "match-regexp" => Self::Regex(text()?.parse().map_err(|error| format!("{error}"))?),
            "gt" => Self::Order(Relation::Greater, number()?),
            "ge" => Self::Order(Relation::AtLeast, number()?),
            "lt" => Self::Order(Relation::Less, number()?),
            "le" => Self::Order(Relation::AtMost, number()?),
            "contain-element" => Self::ContainElement(one(value)?),
            "contain-elements" => Self::ContainElements(Self::read_all(list()?, Subject::Value)?),
            "consist-of" => Self::ConsistOf(Self::read_all(list()?, Subject::Value)?),
            "have-len" => Self::Length(number()?),
            "have-key" => Self::Key(one(value)?),
            "have-patterns" => Self::Patterns(list()?.iter().map(pattern).collect::<Result<_, _>>()?),
            "and" => Self::And(Self::read_all(list()?, subject)?),
            "or" => Self::Or(Self::read_all(list()?, subject)?),
            "not" => Self::Not(Box::new(Self::read(value, subject)?)),
            "semver-constraint" => Self::Semver(text()?.parse()?),
            "gjson" => Self::Gjson(paths(value)?),
            "xml" => {
                return Err(
                    "`xml` is not known here: use `match-regexp`, or a command that reads it".to_owned()
                );
            }
            "have-key-with-value" => {
                return Err("`have-key-with-value` is not known here: use `gjson: {KEY: VALUE}`".to_owned());
            }
            other => {
                let hint = closest(other, KEYS).map(|near| format!("; did you mean `{near}`?"));
                return Err(format!("`{other}` is no matcher{}", hint.unwrap_or_default()));
            }
        })
    }

    /// Returns whether it is a list of patterns with none in it, which everything matches.
    pub(crate) fn asserts_nothing(&self) -> bool {
        matches!(self, Self::Lines(items) if items.is_empty())
    }

    /// Returns the matcher for headers: upper and lower case are the same in their names.
    pub(crate) fn of_headers(self) -> Self {
        let all = |matchers: Vec<Self>| matchers.into_iter().map(Self::of_headers).collect();
        match self {
            Self::Lines(items) => Self::Lines(
                items
                    .into_iter()
                    .map(|item| match item {
                        LineItem::Pattern(pattern) => LineItem::Pattern(pattern.of_headers()),
                        line @ LineItem::Line(_) => line,
                    })
                    .collect(),
            ),
            Self::Patterns(patterns) => {
                Self::Patterns(patterns.into_iter().map(LinePattern::of_headers).collect())
            }
            Self::And(items) => Self::And(all(items)),
            Self::Or(items) => Self::Or(all(items)),
            Self::Not(inner) => Self::Not(Box::new(inner.of_headers())),
            other => other,
        }
    }

    /// Returns the matcher with modes in it as four octal digits: `644` and `"0644"` are the same mode.
    pub(crate) fn of_mode(self) -> Self {
        let octal =
            |digits: &str| u32::from_str_radix(digits, 8).map(|mode| Self::Text(format!("{mode:04o}")));
        let all = |matchers: Vec<Self>| matchers.into_iter().map(Self::of_mode).collect();
        match self {
            Self::Text(digits) => octal(&digits).unwrap_or(Self::Text(digits)),
            Self::Number(number) => octal(&number.to_string()).unwrap_or(Self::Number(number)),
            Self::Equal(Json::String(digits)) => octal(&digits).unwrap_or(Self::Equal(Json::String(digits))),
            Self::Equal(Json::Number(number)) => {
                octal(&number.to_string()).unwrap_or(Self::Equal(Json::Number(number)))
            }
            Self::List(items) => Self::List(all(items)),
            Self::And(items) => Self::And(all(items)),
            Self::Or(items) => Self::Or(all(items)),
            Self::Not(inner) => Self::Not(Box::new(inner.of_mode())),
            other => other,
        }
    }
}

fn line_item(written: &Json) -> Result<LineItem, String> {
    Ok(match written {
        Json::Object(_) => LineItem::Line(Matcher::read(written, Subject::Value)?),
        other => LineItem::Pattern(pattern(other)?),
    })
}

fn pattern(written: &Json) -> Result<LinePattern, String> {
    match written {
        Json::String(text) => text.parse(),
        Json::Number(_) | Json::Bool(_) => written.to_string().parse(),
        other => Err(format!("a pattern is a string, not {}", noun(other))),
    }
}

fn paths(written: &Json) -> Result<Vec<(String, SharedPath, Matcher)>, String> {
    let Json::Object(entries) = written else {
        return Err(format!("`gjson` takes a map of paths, not {}", noun(written)));
    };
    let path = |(text, wanted): (&String, &Json)| {
        let path =
            Path::parse(text).map_err(|error| format!("`{text}` is not a path of gjson: {}", error.kind))?;
        Ok((text.clone(), SharedPath::new(path), Matcher::read(wanted, Subject::Value)?))
    };
    entries.iter().map(path).collect()
}

/// Returns what a value is, in the words of a message.
pub(super) fn noun(value: &Json) -> &'static str {
    match value {
        Json::Null => "nothing",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "a list",
        Json::Object(_) => "a map",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_no_matcher_is_told_with_what_was_meant() {
        for (written, part) in [
            (json!({}), "empty"),
            (json!({ "gt": 1, "lt": 3 }), "join them with `and`"),
            (json!({ "have-prefx": "a" }), "did you mean `have-prefix`?"),
            (json!({ "gt": "a" }), "takes a number, not a string"),
            (json!({ "have-prefix": 1 }), "takes a string, not a number"),
            (json!({ "and": "a" }), "takes a list, not a string"),
            (json!({ "match-regexp": "(" }), "is not a regular expression"),
            (json!({ "xml": {} }), "match-regexp"),
            (json!({ "not": { "nope": 1 } }), "`nope` is no matcher"),
            (json!({ "semver-constraint": "abc" }), "not a version"),
            (json!({ "gjson": "a" }), "takes a map of paths"),
            (json!({ "have-patterns": [[1]] }), "a pattern is a string, not a list"),
        ] {
            let error = Matcher::read(&written, Subject::Value).unwrap_err();
            assert!(error.contains(part), "{written}: {error}");
        }
        assert!(Matcher::read(&json!(["/(/"]), Subject::Text).is_err());
        assert!(Matcher::read(&json!(["/(/"]), Subject::Value).is_ok());
    }

    #[test]
    fn pairs_of_what_is_seen_and_what_is_written_are_judged_as_specified() {
        let mut count = 0;
        for line in include_str!("pairs.txt").lines().filter(|line| line.contains(" ~ ")) {
            if line.starts_with('#') {
                continue;
            }
            let parts: Vec<&str> = line.split(" ~ ").collect();
            let [subject, seen, written, verdict] = parts.as_slice() else { panic!("{line}") };
            let seen: Json = serde_json::from_str(seen).expect(line);
            let written: Json = serde_json::from_str(written).expect(line);
            let is_text = matches!(*subject, "text" | "headers");
            let matcher =
                Matcher::read(&written, if is_text { Subject::Text } else { Subject::Value }).expect(line);
            let matcher = match *subject {
                "mode" => matcher.of_mode(),
                "headers" => matcher.of_headers(),
                _ => matcher,
            };
            let observed = match seen {
                Json::String(text) if is_text => Observed::Text(text),
                value => Observed::Value(value),
            };
            let judged = match matcher.judge(&observed) {
                Ok(true) => "yes",
                Ok(false) => "no",
                Err(_) => "impossible",
            };
            assert_eq!(judged, *verdict, "{line}");
            assert_eq!(
                matcher.complaint("value", &observed, &written).is_none(),
                *verdict == "yes",
                "{line}"
            );
            count += 1;
        }
        assert!(count >= 200, "{count}");
    }
}
