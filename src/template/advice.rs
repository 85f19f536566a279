//! What a scope knows about errors of expressions: the name that was probably meant, and why something is not there.

use ccm_expr::{Error, ErrorKind, Exhausted, Map, Path, Value};

use super::{Scope, fleet, jet};

/// Whoever reads data while it is made would read something else afterwards.
pub(super) const UNMADE: &str = "is not available while the data is being made";
pub(super) const MADE_FROM: &str = "data is made from Facts and Environ";
pub(super) const ELSEWHERE: &str = "is not available in data that comes from an address";
pub(super) const KEPT: &str = "use it in resources, or in data that lies on this machine";
const MORE: &str = "CCM_MEMORY_LIMIT allows more, for example CCM_MEMORY_LIMIT=2GiB";
const IN_RESOURCES: &str = "use it in the properties of resources, and give them what they need as data";

/// What only resources can use.
const READERS: &[&str] = &["file", "readFile", "template", "jinja"];

const NO_ELEMENT: &str = "`each` is the element of a `for_each`, and `index` its position: only a resource with `for_each` has them";

/// What begins and ends blocks in other template languages.
const BLOCKS: &[&str] = &["range", "end", "with", "define", "endif", "endfor", "for"];
const NO_BLOCKS: &str = "there are no blocks in these templates: choose with `x ? \"a\" : \"b\"`, join lists with `join`, \
                         or write it for `jinja('FILE')`";

impl Scope {
    /// The same error with what this scope knows about it: the name that was probably meant, for a member that does not
    /// exist has no value, which alone does not say that it was misspelt; or that the data is not there yet.
    pub(crate) fn advise(&self, error: Error) -> Error {
        let unavailable = |message: String, help: &str| Error {
            kind: Box::new(ErrorKind::Unavailable(message)),
            help: Some(help.to_owned()),
            span: error.span.clone(),
        };
        let written = match error.kind.innermost() {
            ErrorKind::UnknownVariable { name } if name.eq_ignore_ascii_case("data") => {
                return unavailable(format!("`{name}` {UNMADE}"), MADE_FROM);
            }
            ErrorKind::UnknownVariable { name } if name.eq_ignore_ascii_case("environ") => {
                return unavailable(format!("`{name}` {ELSEWHERE}"), KEPT);
            }
            ErrorKind::UnknownVariable { name } if BLOCKS.contains(&name.as_str()) => {
                return Error { help: Some(NO_BLOCKS.to_owned()), ..error };
            }
            ErrorKind::UnknownVariable { name } => {
                return match self.owner_of(name) {
                    Some(help) => Error { help: Some(help), ..error },
                    None if name == "item" && self.element.is_some() => {
                        Error { help: Some("did you mean `each`?".to_owned()), ..error }
                    }
                    None if ["item", "each", "index"].contains(&name.as_str()) => {
                        Error { help: Some(NO_ELEMENT.to_owned()), ..error }
                    }
                    None => error,
                };
            }
            ErrorKind::UnknownFunction { name } if name == "default" => {
                return Error { help: Some("give a default with `??`".to_owned()), ..error };
            }
            ErrorKind::UnknownFunction { name } if name == "jet" => {
                return unavailable(jet::FUNCTION.to_owned(), jet::HELP);
            }
            ErrorKind::UnknownFunction { name } if READERS.contains(&name.as_str()) => {
                return unavailable(format!("`{name}` cannot be used in data: it reads files"), IN_RESOURCES);
            }
            ErrorKind::UnknownFunction { name } if fleet::FUNCTIONS.contains(&name.as_str()) => {
                return unavailable(format!("`{name}` cannot be used in data"), IN_RESOURCES);
            }
            ErrorKind::Limit(Exhausted::Memory { .. }) => {
                return Error { help: Some(MORE.to_owned()), ..error };
            }
            ErrorKind::NoValue { expression } => expression,
            _ => return error,
        };
        let Some((root, rest)) = written.split_once('.') else { return error };
        let is_plain = |text: &str| text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
        let root = root.to_ascii_lowercase();
        let is_element = root == "each" && self.element.is_some();
        if !["facts", "data", "environ"].contains(&root.as_str()) && !is_element || !is_plain(rest) {
            return error;
        }
        let known = match &self.element {
            Some(element) if is_element => {
                [("each".into(), element.each.clone())].into_iter().collect::<Map>().into()
            }
            _ => self.root(&root),
        };
        let missing = Path::parse(&format!("{root}.{rest}")).ok().and_then(|path| path.missing(&known));
        let near =
            missing.and_then(|missing| missing.suggestion).map(|name| format!("did you mean `{name}`?"));
        let absent = self.absent_files().filter(|_| root == "data");
        match (near, absent) {
            (Some(near), Some(absent)) => Error { help: Some(format!("{near} {absent}")), ..error },
            (None, None) => error,
            (near, absent) => Error { help: near.or(absent), ..error },
        }
    }

    /// Says where a word that is no variable stands: people write `{{ port }}` and `${HOME}`.
    fn owner_of(&self, name: &str) -> Option<String> {
        let owners =
            [("Data", self.data.as_ref()), ("Environ", self.environ.as_ref()), ("Facts", Some(&self.facts))];
        let has = |value: Option<&Value>| value.is_some_and(|value| value.member(name).is_some());
        let (owner, _) = owners.into_iter().find(|(_, value)| has(*value))?;
        let text = match owner {
            "Environ" => format!(" write `$${{{name}}}` for the text `${{{name}}}`"),
            _ => String::new(),
        };
        Some(format!("did you mean `{owner}.{name}`?{text}"))
    }

    /// Says which member was probably meant by a path that leads nowhere.
    pub(super) fn nearest(&self, written: &str) -> Option<String> {
        let expression = written.to_owned();
        let kind = Box::new(ErrorKind::NoValue { expression });
        self.advise(ccm_expr::Error { kind, span: 0..0, help: None }).help
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::template::Element;

    #[test]
    fn the_nearest_member_is_that_of_the_root_that_was_written() {
        let scope = Scope::new(json!({ "kernel": "x" }).into(), Value::Null, std::path::PathBuf::new());
        let scope = scope.with_data(json!({ "port": 80, "list": [1] }).into());
        let element = Element { each: json!({ "name": "a" }).into(), index: 0 };
        let repeated = scope.within(&element);
        for (scope, written, expected) in [
            (&scope, "Data.prot", Some("port")),
            (&scope, "facts.kernle", Some("kernel")),
            (&repeated, "Data.prot", Some("port")),
            (&repeated, "each.nane", Some("name")),
            (&scope, "each.nane", None),
            // Names of the expression itself, and more than a path.
            (&scope, "dato.port", None),
            (&repeated, "dato.port", None),
            (&scope, "Data.list[7]", None),
        ] {
            let expected = expected.map(|name| format!("did you mean `{name}`?"));
            assert_eq!(scope.nearest(written), expected, "{written}");
        }
    }
}
