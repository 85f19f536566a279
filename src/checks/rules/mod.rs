//! Rules in the language of goss: what a machine is expected to be like.

mod kinds;
mod options;
mod read;
mod subject;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value as Json, json};

#[cfg(test)]
pub(crate) use self::kinds::rule_table;
pub(crate) use self::{
    kinds::Kind,
    options::Options,
    subject::{Address, Port, Protocol, VersionWanted},
};
use super::matcher::Matcher;
use crate::{redaction::MASK, vocabulary::Secret};

/// Rules, in the order in which they were written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    pub(crate) items: Vec<Item>,
}

#[derive(Clone, Debug)]
pub(crate) enum Item {
    Rule(Box<Rule>),
    /// Rules of other files, whose names this stands for.
    Include(String),
}

/// What one thing is expected to be like.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) kind: Kind,
    pub(crate) id: String,
    /// What is looked at: the id, unless the rule says otherwise.
    pub(crate) subject: String,
    pub(crate) severity: Severity,
    /// Whether it is only listed.
    pub(crate) is_skipped: bool,
    /// What is expected, the property that decides about the others first.
    pub(crate) assertions: Vec<Assertion>,
    pub(crate) options: Options,
    /// The rule as it was written.
    written: Map<String, Json>,
}

/// How bad it is when a rule does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    Critical,
    Warning,
}

/// What one property is expected to be.
#[derive(Clone, Debug)]
pub(crate) struct Assertion {
    pub(crate) property: &'static str,
    pub(crate) expected: Expected,
    pub(crate) written: Json,
}

#[derive(Clone, Debug)]
pub(crate) enum Expected {
    Value(Matcher),
    /// A version in the order of the package manager.
    Version(VersionWanted),
}

impl Rule {
    /// Returns how reports call it.
    pub(crate) fn shown(&self) -> String {
        if self.subject == self.id { self.id.clone() } else { format!("{}: {}", self.id, self.subject) }
    }

    /// Returns the values that must not be seen.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        let headers = self.options.request_headers.iter().map(|(_, value)| value);
        self.options.password.iter().chain(headers).map(Secret::reveal)
    }
}

impl Rules {
    /// Makes rules of one, read from what a probe stands for.
    pub(crate) fn of(kind: Kind, subject: &str, body: Json) -> Result<Self, String> {
        let Json::Object(written) = body else { return Err("a rule is a map".to_owned()) };
        let rule = read::rule(kind, subject.to_owned(), written)?;
        Ok(Self { items: vec![Item::Rule(Box::new(rule))] })
    }

    pub(crate) fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.items
            .iter()
            .filter_map(|item| if let Item::Rule(rule) = item { Some(rule.as_ref()) } else { None })
    }

    /// Replaces rules of the same kind and id by those of another document, and adds the rest.
    pub(crate) fn merge(&mut self, other: Vec<Rule>) {
        for rule in other {
            let same = |item: &&mut Item| matches!(item, Item::Rule(known) if known.kind == rule.kind && known.id == rule.id);
            let item = Item::Rule(Box::new(rule.clone()));
            match self.items.iter_mut().find(same) {
                Some(known) => *known = item,
                None => self.items.push(item),
            }
        }
    }
}

/// The rules as they were written, less what must not be seen.
impl Serialize for Rules {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut kinds = Map::new();
        for item in &self.items {
            let (kind, id, body) = match item {
                Item::Rule(rule) => (rule.kind.name(), &rule.id, rule.written.clone()),
                Item::Include(file) => ("gossfile", file, Map::new()),
            };
            let mut body = Json::Object(body);
            for secret in ["password", "request-headers"] {
                if body.get(secret).is_some() && !Secret::are_revealed() {
                    body[secret] = MASK.into();
                }
            }
            let of_kind = kinds.entry(kind).or_insert_with(|| json!({}));
            of_kind[id] = body;
        }
        kinds.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{NodeError, Source, from_node, parse};

    fn read(text: &str) -> Result<Rules, NodeError> {
        from_node(&parse(&Source { name: "rules".to_owned(), text: text.to_owned() }).unwrap())
    }

    #[test]
    fn rules_keep_their_order_and_the_gate_comes_first() {
        let rules = read(
            "port: {80: {ip: [x], listening: true}}\nfile:\n  cfg: {path: /x, mode: '644', exists: true}\n",
        )
        .unwrap();
        let told: Vec<String> = rules
            .rules()
            .map(|rule| {
                let properties: Vec<&str> = rule.assertions.iter().map(|one| one.property).collect();
                format!("{} {} {}", rule.kind.name(), rule.shown(), properties.join(","))
            })
            .collect();
        assert_eq!(told, ["port 80 listening,ip", "file cfg: /x exists,mode"]);
    }

    #[test]
    fn what_is_wrong_is_told_with_what_was_meant() {
        for (text, message, help) in [
            ("ports: {}", "unknown key `ports`", "did you mean `port`?"),
            ("port: {80: {listenning: true}}", "unknown key `listenning`", "did you mean `listening`?"),
            ("{}", "there are no rules", ""),
            ("file: {}", "there are no rules", ""),
            ("file: {/x: }", "expected a map", ""),
            ("file: {/x: {mode: '0644'}}", "the key `exists` is missing", ""),
            ("addr: {'udp://h:53': {reachable: true}}", "cannot be tried", ""),
            ("addr: {h: {reachable: true}}", "is not an address", ""),
            ("port: {x: {listening: true}}", "is not a port", ""),
            ("command: {x: {exit-status: {gt: a}}}", "takes a number", ""),
            ("file: {/x: {exists: true, contents: ['/(/']}}", "is not a regular expression", ""),
            ("package: {x: {installed: true, version: '>='}}", "is not a version", ""),
            ("http: {'ftp://x': {status: 200}}", "ftp", ""),
            ("file: {/x: {exists: }}", "found nothing", ""),
            ("matching: {x: {matches: 1}}", "`content` is missing", ""),
        ] {
            let error = read(text).map(|_| ()).unwrap_err();
            assert!(error.message.contains(message), "{text}: {error:?}");
            assert!(error.help.clone().unwrap_or_default().contains(help), "{text}: {error:?}");
            assert!(error.span.is_some(), "{text}");
        }
    }

    #[test]
    fn secrets_are_written_nowhere() {
        let rules =
            read("http: {'http://x/': {status: 200, password: canary, request-headers: ['A: canary']}}")
                .unwrap();
        let text = serde_json::to_string(&rules).unwrap();
        assert!(!text.contains("canary") && text.contains("status"), "{text}");
        let secrets: Vec<&str> = rules.rules().flat_map(Rule::secrets).collect();
        assert_eq!(secrets, ["canary", "canary"]);
    }
}
