//! Whether an observation is what a matcher expects.

use serde_json::Value as Json;

use super::{LineItem, Matcher, Observed, Relation, expected, noun};

/// Why an observation cannot be held against a matcher: it is of the wrong type. This never counts as a match, also not
/// below `not`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Impossible(pub(crate) String);

#[allow(clippy::float_cmp, reason = "what is written and what is seen are the same number or not")]
impl Matcher {
    /// Returns whether an observation is as expected.
    pub(crate) fn judge(&self, seen: &Observed) -> Result<bool, Impossible> {
        let text = || seen.as_text();
        match self {
            Self::Text(wanted) => Ok(seen.is_text(wanted)),
            Self::Number(wanted) => Ok(seen.as_number().is_some_and(|number| number == *wanted)),
            Self::Bool(wanted) => Ok(matches!(seen, Observed::Value(Json::Bool(truth)) if truth == wanted)),
            Self::Null => Ok(matches!(seen, Observed::Value(Json::Null))),
            Self::List(wanted) | Self::ContainElements(wanted) => fits(wanted, &seen.elements()?),
            Self::ConsistOf(wanted) => {
                let elements = seen.elements()?;
                Ok(fits(wanted, &elements)? && wanted.len() == elements.len())
            }
            Self::ContainElement(wanted) => {
                some(seen.elements()?.iter().map(|element| wanted.judge(element)))
            }
            Self::Lines(items) => lines(items, &text()),
            Self::Equal(wanted) => Ok(match seen {
                Observed::Value(value) => is_equal(value, wanted),
                Observed::Text(text) => wanted.as_str() == Some(text),
            }),
            Self::Prefix(part) => Ok(text().starts_with(part)),
            Self::Suffix(part) => Ok(seen.without_final_newline().ends_with(part) || text().ends_with(part)),
            Self::Substring(part) => Ok(text().contains(part)),
            Self::Regex(pattern) => Ok(pattern.is_match(&text())),
            Self::Order(relation, wanted) => {
                let number =
                    seen.as_number().ok_or_else(|| Impossible(format!("{} is no number", seen.quoted())))?;
                Ok(match relation {
                    Relation::Greater => number > *wanted,
                    Relation::AtLeast => number >= *wanted,
                    Relation::Less => number < *wanted,
                    Relation::AtMost => number <= *wanted,
                })
            }
            Self::Length(wanted) => Ok(seen.length()? == *wanted),
            Self::Key(wanted) => match seen {
                Observed::Value(Json::Object(entries)) => {
                    some(entries.keys().map(|key| wanted.judge(&Observed::from(key.as_str()))))
                }
                other => Err(Impossible(format!("{} has no keys", other.noun()))),
            },
            Self::Patterns(patterns) => {
                let text = text();
                Ok(patterns.iter().all(|pattern| pattern.holds(&text)))
            }
            Self::And(all) => {
                let judged: Result<Vec<bool>, _> = all.iter().map(|matcher| matcher.judge(seen)).collect();
                Ok(judged?.into_iter().all(|holds| holds))
            }
            Self::Or(any) => Ok(any.iter().any(|matcher| matcher.judge(seen) == Ok(true))),
            Self::Not(inner) => inner.judge(seen).map(|holds| !holds),
            Self::Semver(constraint) => {
                let mut all = true;
                for element in seen.elements()? {
                    let version = element.as_text();
                    let holds = constraint.holds(&version);
                    all &= holds.ok_or_else(|| Impossible(format!("{version:?} is not a version")))?;
                }
                Ok(all)
            }
            Self::Gjson(paths) => {
                let root = match seen {
                    Observed::Value(value @ (Json::Array(_) | Json::Object(_))) => value.clone(),
                    other => serde_json::from_str(&other.as_text())
                        .map_err(|error| Impossible(format!("it is not JSON: {error}")))?,
                };
                let root = ccm_expr::Value::from(root);
                let mut all = true;
                for (written, path, wanted) in paths {
                    let missing = || Impossible(format!("there is nothing at `{written}`"));
                    let found = path.find(&root).map_err(|error| Impossible(error.kind.to_string()))?;
                    all &= wanted.judge(&Observed::Value(found.ok_or_else(missing)?.into()))?;
                }
                Ok(all)
            }
        }
    }

    /// Returns the difference between an observation and the expected value; `None` if it matches. `written` is the matcher
    /// as the user wrote it.
    pub(crate) fn complaint(&self, property: &str, seen: &Observed, written: &Json) -> Option<String> {
        match (self.judge(seen), self) {
            (Ok(true), _) => None,
            (Ok(false), Self::Lines(items)) => {
                let text = seen.as_text();
                let unmet: Vec<String> = items
                    .iter()
                    .filter_map(|item| match item {
                        LineItem::Pattern(pattern) => (!pattern.holds(&text)).then(|| pattern.to_string()),
                        LineItem::Line(_) => None,
                    })
                    .collect();
                Some(if unmet.is_empty() {
                    format!("expected {}, which no line matches", expected(property, written))
                } else {
                    format!("expected {property} to match {}", unmet.join(" and "))
                })
            }
            (Ok(false), _) => {
                Some(format!("expected {}, got {}", expected(property, written), seen.quoted()))
            }
            (Err(Impossible(why)), _) => Some(format!("expected {}, but {why}", expected(property, written))),
        }
    }
}

/// Whether one holds. That another could not be judged matters only if none does.
fn some(judged: impl Iterator<Item = Result<bool, Impossible>>) -> Result<bool, Impossible> {
    let mut trouble = Ok(false);
    for one in judged {
        match one {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(impossible) => trouble = Err(impossible),
        }
    }
    trouble
}

/// Returns whether every item can take an element of its own, in any order.
fn fits(wanted: &[Matcher], elements: &[Observed]) -> Result<bool, Impossible> {
    let mut suits = Vec::with_capacity(wanted.len());
    for matcher in wanted {
        let suited: Vec<bool> = elements.iter().map(|element| matcher.judge(element) == Ok(true)).collect();
        if !suited.contains(&true) {
            // What is wrong with its type is told where nothing else would be.
            some(elements.iter().map(|element| matcher.judge(element)))?;
            return Ok(false);
        }
        suits.push(suited);
    }
    let mut taken = vec![None; elements.len()];
    Ok((0..wanted.len()).all(|item| place(item, &suits, &mut taken, &mut vec![false; elements.len()])))
}

/// Finds an element for an item, if need be by moving another item to another element.
fn place(item: usize, suits: &[Vec<bool>], taken: &mut [Option<usize>], tried: &mut [bool]) -> bool {
    for element in 0..taken.len() {
        if !suits[item][element] || std::mem::replace(&mut tried[element], true) {
            continue;
        }
        if taken[element].is_none_or(|other| place(other, suits, taken, tried)) {
            taken[element] = Some(item);
            return true;
        }
    }
    false
}

fn lines(items: &[LineItem], text: &str) -> Result<bool, Impossible> {
    for item in items {
        let holds = match item {
            LineItem::Pattern(pattern) => pattern.holds(text),
            LineItem::Line(matcher) => some(text.lines().map(|line| matcher.judge(&Observed::from(line))))?,
        };
        if !holds {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Compares by value: 42 equals 42.0, lists in their order, maps in any.
fn is_equal(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Number(a), Json::Number(b)) => a.as_f64() == b.as_f64(),
        (Json::Array(a), Json::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_equal(a, b))
        }
        (Json::Object(a), Json::Object(b)) => {
            let has = |(key, value): (&String, &Json)| b.get(key).is_some_and(|other| is_equal(value, other));
            a.len() == b.len() && a.iter().all(has)
        }
        (a, b) => a == b,
    }
}

/// A longer observation is not quoted whole.
const LONGEST_QUOTE: usize = 200;

impl Observed {
    /// Returns whether it is this text: of many lines, but for one line end.
    fn is_text(&self, wanted: &str) -> bool {
        match self {
            Self::Value(_) => self.as_text() == wanted,
            Self::Text(text) => text == wanted || self.without_final_newline() == without_newline(wanted),
        }
    }

    /// Returns it as text: the elements of a list in lines.
    fn as_text(&self) -> String {
        match self {
            Self::Text(text) | Self::Value(Json::String(text)) => text.clone(),
            Self::Value(Json::Null) => String::new(),
            Self::Value(Json::Array(items)) => {
                let items: Vec<String> =
                    items.iter().map(|item| Self::Value(item.clone()).as_text()).collect();
                items.join("\n")
            }
            Self::Value(other) => other.to_string(),
        }
    }

    fn without_final_newline(&self) -> String {
        let text = self.as_text();
        without_newline(&text).to_owned()
    }

    /// Returns it as a number, if it is one or a text that reads as one.
    fn as_number(&self) -> Option<f64> {
        match self {
            Self::Value(Json::Number(number)) => number.as_f64(),
            Self::Value(Json::String(text)) | Self::Text(text) => {
                text.trim().parse().ok().filter(|number: &f64| number.is_finite())
            }
            Self::Value(_) => None,
        }
    }

    /// Returns the elements of a list, the lines of a text, or the one value that it is.
    fn elements(&self) -> Result<Vec<Self>, Impossible> {
        match self {
            Self::Text(text) => Ok(text.lines().map(Self::from).collect()),
            Self::Value(Json::Array(items)) => Ok(items.iter().cloned().map(Self::Value).collect()),
            Self::Value(Json::Object(_)) => Err(Impossible("a map is no list".to_owned())),
            one @ Self::Value(_) => Ok(vec![one.clone()]),
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "nothing that is observed is that long")]
    fn length(&self) -> Result<f64, Impossible> {
        match self {
            Self::Text(text) | Self::Value(Json::String(text)) => Ok(text.chars().count() as f64),
            Self::Value(Json::Array(items)) => Ok(items.len() as f64),
            Self::Value(Json::Object(entries)) => Ok(entries.len() as f64),
            other @ Self::Value(_) => Err(Impossible(format!("{} has no length", other.noun()))),
        }
    }

    fn noun(&self) -> &'static str {
        match self {
            Self::Value(value) => noun(value),
            Self::Text(_) => "a text",
        }
    }

    /// Returns it as messages show it.
    fn quoted(&self) -> String {
        let shown = match self {
            Self::Value(value) => value.to_string(),
            Self::Text(text) => format!("{text:?}"),
        };
        if shown.len() <= LONGEST_QUOTE {
            return shown;
        }
        format!("{}…", &shown[..shown.floor_char_boundary(LONGEST_QUOTE)])
    }
}

fn without_newline(text: &str) -> &str {
    text.strip_suffix('\n').unwrap_or(text)
}

impl From<&str> for Observed {
    fn from(text: &str) -> Self {
        Self::Value(text.into())
    }
}

impl From<bool> for Observed {
    fn from(truth: bool) -> Self {
        Self::Value(truth.into())
    }
}

impl From<u64> for Observed {
    fn from(number: u64) -> Self {
        Self::Value(number.into())
    }
}

impl From<Vec<String>> for Observed {
    fn from(items: Vec<String>) -> Self {
        Self::Value(items.into())
    }
}
