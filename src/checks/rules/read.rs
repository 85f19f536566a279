//! From a document to rules, with everything that is wrong told at its place.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{self, DeserializeSeed, Error as _, MapAccess, Visitor},
};
use serde_json::{Map, Value as Json};

use super::{
    Assertion, Expected, Item, Kind, Options, Rule, Rules, Severity,
    kinds::{INCLUDE, NAMES, Role, Words},
    options::Any,
    subject::{Address, Port},
};
use crate::{
    checks::matcher::{Matcher, Subject},
    vocabulary::Url,
};

impl<'de> Deserialize<'de> for Rules {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OfKinds)
    }
}

struct OfKinds;

impl<'de> Visitor<'de> for OfKinds {
    type Value = Rules;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a map of rules by their kinds")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Rules, A::Error> {
        let mut items = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            let kind = Kind::find(&name);
            if kind.is_none() && name != INCLUDE {
                return Err(A::Error::unknown_field(&name, &NAMES));
            }
            items.extend(map.next_value_seed(OfKind(kind))?);
        }
        if items.is_empty() {
            return Err(A::Error::custom("there are no rules"));
        }
        Ok(Rules { items })
    }
}

/// The rules of one kind; those of none are files to include.
#[derive(Clone, Copy)]
struct OfKind(Option<Kind>);

impl<'de> DeserializeSeed<'de> for OfKind {
    type Value = Vec<Item>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<Item>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for OfKind {
    type Value = Vec<Item>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a map of rules by what they are about")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<Item>, A::Error> {
        let mut items = Vec::new();
        while let Some(id) = map.next_key::<String>()? {
            items.push(match self.0 {
                Some(kind) => Item::Rule(Box::new(map.next_value_seed(Body { kind, id })?)),
                None => map.next_value_seed(IncludeBody(id))?,
            });
        }
        Ok(items)
    }
}

/// What a rule says about one thing.
struct Body {
    kind: Kind,
    id: String,
}

impl<'de> DeserializeSeed<'de> for Body {
    type Value = Rule;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Rule, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Body {
    type Value = Rule;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a map of what is expected")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Rule, A::Error> {
        let Words { keys, .. } = self.kind.words();
        let mut written = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if !keys.contains(&key.as_str()) {
                return Err(A::Error::unknown_field(&key, keys));
            }
            let Any(value) = map.next_value()?;
            // Told here, so that it is told at its place.
            check(self.kind, &key, &value)
                .map_err(|problem| A::Error::custom(format!("`{key}`: {problem}")))?;
            written.insert(key, value);
        }
        rule(self.kind, self.id, written).map_err(A::Error::custom)
    }
}

/// Says what is wrong with one attribute.
fn check(kind: Kind, key: &str, value: &Json) -> Result<(), String> {
    let role = kind.words().attributes.iter().find(|(name, _)| *name == key);
    role.map_or(Ok(()), |(_, role)| match role {
        Role::Option => Options::default().set(key, value),
        role => expected(*role, value).map(drop),
    })
}

fn expected(role: Role, value: &Json) -> Result<Expected, String> {
    Ok(match role {
        Role::Version => {
            let text = value.as_str().ok_or("a version is a string, such as \">=1.2\"")?;
            Expected::Version(text.parse()?)
        }
        Role::Text => Expected::Value(Matcher::read(value, Subject::Text)?),
        Role::Headers => Expected::Value(Matcher::read(value, Subject::Text)?.of_headers()),
        Role::Mode => Expected::Value(Matcher::read(value, Subject::Value)?.of_mode()),
        Role::Value | Role::Option => Expected::Value(Matcher::read(value, Subject::Value)?),
    })
}

/// Makes a rule of its attributes.
pub(super) fn rule(kind: Kind, id: String, written: Map<String, Json>) -> Result<Rule, String> {
    let words = kind.words();
    if let Some(required) = words.required.filter(|required| !written.contains_key(*required)) {
        return Err(format!("the key `{required}` is missing"));
    }
    let mut options = Options::default();
    let mut assertions = Vec::new();
    for (key, value) in &written {
        let Some((property, role)) = words.attributes.iter().find(|(name, _)| name == key) else { continue };
        if *role == Role::Option {
            options.set(key, value)?;
            continue;
        }
        let assertion = Assertion { property, expected: expected(*role, value)?, written: value.clone() };
        let at = if words.required == Some(property) { 0 } else { assertions.len() };
        assertions.insert(at, assertion);
    }
    if let Some(problem) = options.problem(kind) {
        return Err(problem);
    }
    let subject = match written.get(words.subject) {
        Some(Json::String(subject)) => subject.clone(),
        Some(other) => other.to_string(),
        None => id.clone(),
    };
    check_subject(kind, &subject)?;
    let is_skipped = match written.get("skip") {
        None => false,
        Some(Json::Bool(skip)) => *skip,
        Some(_) => return Err("`skip` is true or false".to_owned()),
    };
    let severity = match written.get("meta").and_then(|meta| meta.get("severity")).and_then(Json::as_str) {
        Some("warning") => Severity::Warning,
        _ => Severity::Critical,
    };
    Ok(Rule { kind, id, subject, severity, is_skipped, assertions, options, written })
}

/// Says what is wrong with what a rule is about.
fn check_subject(kind: Kind, subject: &str) -> Result<(), String> {
    match kind {
        Kind::Port => subject.parse::<Port>().map(drop),
        Kind::Addr => subject.parse::<Address>().map(drop),
        Kind::Http => Url::parse(subject).map(drop).map_err(|error| error.to_string()),
        _ if subject.is_empty() => Err("it is about nothing".to_owned()),
        _ => Ok(()),
    }
}

/// A file to include: the id names it, unless `file` does.
struct IncludeBody(String);

impl<'de> DeserializeSeed<'de> for IncludeBody {
    type Value = Item;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Item, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Include {
            #[serde(default)]
            file: Option<String>,
            #[serde(default)]
            skip: bool,
        }
        let Include { file, skip } = Include::deserialize(deserializer)?;
        if skip {
            return Err(de::Error::custom("a file is included or not: leave it out instead of `skip`"));
        }
        Ok(Item::Include(file.unwrap_or(self.0)))
    }
}
