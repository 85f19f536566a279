//! The hallway behind the three front doors: a manifest, flags and a JSON request each give a declaration, and this
//! turns a declaration into a resource or into everything that is wrong with it.

use std::fmt;

use serde_json::{Map, Value as Json};

use super::{Common, Error, Kind, Wanted, erased::names, expansion::Secrecy, schema};
use crate::{
    document::{
        Entry, Excerpt, Fault, Node, NodeError, Problem, Scalar, Span, Style, Value, closest, from_node,
    },
    template,
    vocabulary::Reference,
};

/// A resource as somebody wrote it.
pub(crate) struct Declaration {
    pub(crate) kind: &'static dyn Kind,
    pub(crate) name: String,
    pub(crate) name_span: Span,
    /// Its properties, without the name.
    pub(crate) properties: Vec<Entry>,
}

/// A resource that can be applied.
pub(crate) struct Resource {
    pub(crate) kind: &'static dyn Kind,
    pub(crate) name: String,
    pub(crate) common: Common,
    /// What is wanted, as far as it was known when the resource was read.
    pub(crate) wanted: Box<dyn Wanted>,
    /// The type's own properties, when some of them are expanded only when the resource's turn comes.
    pub(super) late: Option<Vec<Entry>>,
    pub(super) places: Places,
}

/// Where a resource and its properties were written.
pub(super) struct Places {
    pub(super) name: Span,
    pub(super) properties: Vec<(String, Span)>,
}

/// How much of a declaration has to be there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completeness {
    /// Everything that is needed to bring the resource to its state.
    Whole,
    /// Only what is needed to look at it.
    Identity,
    /// All but its name, which could not be worked out.
    Nameless,
}

impl Declaration {
    /// The resource, or everything that is wrong with it.
    pub(crate) fn resolve(self, completeness: Completeness) -> Result<Resource, Vec<Problem>> {
        let places = Places {
            name: self.name_span,
            properties: self.properties.iter().map(|entry| (entry.key.clone(), entry.value.span)).collect(),
        };
        let name = Entry {
            key: "name".to_owned(),
            key_span: self.name_span,
            value: Node {
                value: Value::Scalar(Scalar { text: self.name.clone(), style: Style::Literal }),
                span: self.name_span,
            },
        };
        let secrecy = Secrecy::of(&self.properties);
        let kind = self.kind;
        let mut faults =
            Faults { kind, secrecy, problems: Vec::new(), properties: Vec::new(), late: Vec::new() };
        if completeness == Completeness::Nameless {
            faults.late.push("name".to_owned());
        } else if self.name.trim().is_empty() {
            faults.problems.push(Problem::new("it has no name").at(self.name_span));
        }
        let (mut common, mut own) = (Vec::new(), vec![name]);
        for entry in self.properties {
            if self.kind.keys().contains(&entry.key.as_str()) {
                if template::holds_template(&entry.value) {
                    faults.late.push(entry.key.clone());
                }
                own.push(entry);
            } else if is_common(self.kind, &entry.key) {
                if entry.key != "control" && template::holds_template(&entry.value) {
                    // It could not be expanded, which is said already.
                    faults.properties.push(entry.key);
                } else {
                    common.push(entry);
                }
            } else {
                faults.problems.push(unknown_key(self.kind, &entry));
            }
        }
        let common = faults.read(common, places.name, from_node::<Common>);
        let late = (!faults.late.is_empty()).then(|| own.clone());
        let wanted = faults.read(own, places.name, |map| self.kind.read(map));
        if let Some(common) = &common {
            faults.problems.extend(unknown_provider(self.kind, common, &places));
        }
        if let (Some(wanted), Completeness::Whole) = (&wanted, completeness) {
            // Of a provider that is not known nothing is asked that only some ask for.
            let unknown = faults.is_known(Some("provider")).then_some("");
            let provider = common.as_ref().and_then(|common| common.provider.as_deref()).or(unknown);
            let new = faults.new_in(wanted.problems(), wanted.problems_with(provider));
            faults.problems.extend(new.into_iter().map(|error| places.problem(error)));
        }
        match (common, wanted) {
            (Some(common), Some(wanted)) if faults.problems.is_empty() => {
                Ok(Resource { kind: self.kind, name: self.name, common, wanted, late, places })
            }
            _ => Err(faults.about(&self.name, &places)),
        }
    }
}

/// What is wrong with a declaration.
struct Faults {
    kind: &'static dyn Kind,
    secrecy: Secrecy,
    problems: Vec<Problem>,
    /// The properties that could not be read.
    properties: Vec<String>,
    /// The properties whose values are not known yet: what they look like now says nothing.
    late: Vec<String>,
}

impl Faults {
    /// Whether nothing more needs to be said of a property.
    fn is_known(&self, property: Option<&str>) -> bool {
        self.properties.iter().any(|known| Some(known.as_str()) == property)
    }

    /// Of what is wrong with a combination and with values, what is not known already and can be known now.
    fn new_in(&self, combination: Vec<Error>, values: Vec<Error>) -> Vec<Error> {
        let is_late = |error: &Error| self.late.iter().any(|late| Some(late.as_str()) == error.property);
        let known_now = values.into_iter().filter(|error| !is_late(error));
        combination.into_iter().chain(known_now).filter(|error| !self.is_known(error.property)).collect()
    }

    /// Reads a map, leaving out the entries at fault, so that every faulty property is reported and not only the first.
    fn read<T>(
        &mut self,
        entries: Vec<Entry>,
        span: Span,
        read: impl Fn(&Node) -> Result<T, NodeError>,
    ) -> Option<T> {
        let mut map = Node { value: Value::Map(entries), span };
        loop {
            let mut error = match read(&map) {
                Ok(value) => return Some(value),
                Err(error) => error,
            };
            let Value::Map(entries) = &mut map.value else { return None };
            let key = error.key.as_ref();
            let at = key.and_then(|key| entries.iter().position(|entry| entry.key == *key));
            let entry = at.map(|at| entries.remove(at));
            match &entry {
                None if self.is_known(Some("name")) => return None,
                Some(entry) if error.fault == Fault::Value && self.late.contains(&entry.key) => {
                    self.properties.push(entry.key.clone());
                    continue;
                }
                Some(entry) if entry.key != "name" => {
                    error = self.secrecy.of_value(self.kind, entry, error);
                    error.message = format!("{}: {}", entry.key, error.message);
                }
                _ => {}
            }
            self.problems.push(error.into());
            self.properties.push(entry?.key);
        }
    }

    /// The problems, each naming the resource, and none showing what must not be seen.
    fn about(mut self, name: &str, places: &Places) -> Vec<Problem> {
        let secrets = schema::secret(self.kind);
        let secret = |span: Span| {
            places.properties.iter().any(|(key, place)| secrets.contains(key) && place.contains(span))
        };
        for problem in &mut self.problems {
            self.secrecy.cover(problem, self.kind, name);
            if problem.span.is_some_and(secret) {
                problem.excerpt = Excerpt::Hidden;
            }
        }
        self.problems
    }
}

fn is_common(kind: &dyn Kind, key: &str) -> bool {
    schema::keys::<Common>().contains(&key) && (key != "subscribe" || kind.refreshes())
}

fn unknown_key(kind: &dyn Kind, entry: &Entry) -> Problem {
    let mut known: Vec<&str> = kind.keys().iter().copied().filter(|key| *key != "name").collect();
    known.extend(schema::keys::<Common>().iter().copied().filter(|key| is_common(kind, key)));
    let help = match closest(&entry.key, known.iter().copied()) {
        _ if entry.key == "subscribe" => format!("a {} is not refreshed by others; use require", kind.name()),
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known properties: {}", known.join(", ")),
    };
    Problem::new(format!("unknown property `{}`", entry.key)).at(entry.key_span).with_help(help)
}

fn unknown_provider(kind: &dyn Kind, common: &Common, places: &Places) -> Option<Problem> {
    let asked = common.provider.as_deref()?;
    let known = kind.providers();
    if known.iter().any(|(name, _)| *name == asked) {
        return None;
    }
    let error = Error::new(format!("{} has no provider \"{asked}\"", kind.name())).on("provider");
    Some(places.problem(error.with_help(format!("known providers: {}", names(&known)))))
}

impl Places {
    fn find(&self, property: Option<&str>) -> Span {
        let place = self.properties.iter().find(|(name, _)| Some(name.as_str()) == property);
        place.map_or(self.name, |(_, span)| *span)
    }

    fn problem(&self, error: Error) -> Problem {
        Problem { help: error.help, ..Problem::new(error.message).at(self.find(error.property)) }
    }
}

impl Resource {
    /// How others refer to it.
    pub(crate) fn reference(&self) -> Reference {
        Reference { kind: self.kind.name().to_owned(), name: self.name.clone() }
    }

    /// Where an error about this resource belongs.
    pub(crate) fn place_of(&self, error: &Error) -> Span {
        error.place.unwrap_or_else(|| self.places.find(error.property))
    }

    /// What was asked for, as events show it.
    pub(crate) fn to_json(&self, wanted: &dyn Wanted) -> Map<String, Json> {
        let mut properties = wanted.to_json();
        if self.common.sensitive {
            properties.retain(|key, _| key == "name" || key == "ensure");
        }
        properties.extend(schema::object(&self.common));
        properties
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}#{}", self.kind.name(), self.name)
    }
}
