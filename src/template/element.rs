//! What a `for_each` repeats a resource for.

use ccm_expr::{Map, Template, Value, only_expression};

use super::{Condition, Scope, check_closed, expand};
use crate::document::{self, Diagnostic, Diagnostics, Node, Source, to_value};

/// Longer quotes are cut.
const LONGEST_QUOTE: usize = 100;

/// One element of a `for_each`, which the templates of its resource see as `each` and `index`.
#[derive(Clone, Debug)]
pub(crate) struct Element {
    /// The element; of a map, its `key` and `value`.
    pub(crate) each: Value,
    /// Its place, counted from 0.
    pub(crate) index: usize,
}

impl Element {
    /// The elements of a list or map; `None` when the value is neither.
    fn all(value: &Value) -> Option<Vec<Self>> {
        let pairs = |map: &Map| {
            let pair = |(key, value): (&std::sync::Arc<str>, &Value)| {
                let entries = [("key".into(), Value::Str(key.clone())), ("value".into(), value.clone())];
                Value::from(entries.into_iter().collect::<Map>())
            };
            map.iter().map(pair).collect::<Vec<_>>()
        };
        let values = match value {
            Value::List(items) => items.to_vec(),
            Value::Map(map) => pairs(map),
            Value::Object(object) => pairs(&object.contents()),
            _ => return None,
        };
        Some(values.into_iter().enumerate().map(|(index, each)| Self { each, index }).collect())
    }

    /// Whether a map in it has such a key.
    pub(crate) fn has_key(&self, is_it: &dyn Fn(&str) -> bool) -> bool {
        fn search(value: &Value, is_it: &dyn Fn(&str) -> bool) -> bool {
            match value {
                Value::List(items) => items.iter().any(|item| search(item, is_it)),
                Value::Map(map) => map.iter().any(|(key, value)| is_it(key) || search(value, is_it)),
                Value::Object(object) => search(&Value::Map(object.contents()), is_it),
                _ => false,
            }
        }
        search(&self.each, is_it)
    }

    /// The element as a message quotes it.
    pub(crate) fn quoted(&self) -> String {
        let whole = self.each.to_string();
        match whole.char_indices().nth(LONGEST_QUOTE) {
            Some((end, _)) => format!("{}...", &whole[..end]),
            None => whole,
        }
    }

    /// An expression that says itself what `each` and `index` are, so that it can stand outside of the `for_each`.
    pub(crate) fn bind(&self, expression: &str) -> String {
        let text = |value: &Value| serde_json::to_string(value).unwrap_or_default();
        let json = text(&text(&self.each).into());
        format!("let each = fromJSON({json}); let index = {}; {}", self.index, expression.trim())
    }

    /// A text whose expressions say themselves what `each` and `index` are, where they use them.
    pub(crate) fn bind_text(&self, text: &str) -> String {
        Template::rewrite(text, |expression| uses_element(expression).then(|| self.bind(expression)))
            .unwrap_or_else(|_| text.to_owned())
    }

    /// As [`Element::bind_text`], for a condition, which is an expression with or without brackets.
    pub(crate) fn bind_condition(&self, text: &str) -> String {
        let inner = only_expression(text).map_or(text, |inner| &text[inner]);
        if uses_element(inner) { self.bind(inner) } else { text.to_owned() }
    }
}

fn uses_element(expression: &str) -> bool {
    let program = ccm_expr::Program::compile(expression);
    program.is_ok_and(|program| program.variables().any(|name| matches!(name, "each" | "index")))
}

/// The elements that a `for_each` gives: of an expression, or of a list or map that is written out. `None` when there is
/// something wrong with it, which is then said.
pub(crate) fn elements(
    for_each: &Node,
    scope: &Scope,
    source: &Source,
    diagnostics: &mut Diagnostics,
) -> Option<Vec<Element>> {
    check_closed(for_each, source, diagnostics);
    if diagnostics.has_errors() {
        return None;
    }
    let document::Value::Scalar(scalar) = &for_each.value else {
        let mut written = for_each.clone();
        let mut found = Diagnostics::default();
        expand::expand(&mut written, scope, source, &mut found);
        let elements = found.is_empty().then(|| Element::all(&to_value(&written))).flatten();
        diagnostics.extend(found);
        return elements;
    };
    let value = Condition::parse(&scalar.text).and_then(|expression| expression.evaluate(scope));
    if let Some(message) = scope.take_asked_too_early() {
        let problem = Diagnostic::error("not-learned-yet", format!("for_each: {message}")).at(for_each.span);
        diagnostics.push(problem.with_help(
            "loops are repeated when the manifest is loaded: repeat over data, or let one command do it for all elements",
        ));
        return None;
    }
    let value = match value.and_then(|value| scope.keep(value, &scalar.text)) {
        Ok(value) => value,
        Err(error) => {
            diagnostics.push(expand::problem(scope.advise(error), scalar, for_each.span, source));
            return None;
        }
    };
    let elements = Element::all(&value);
    if elements.is_none() {
        let message = match &value {
            Value::Null => format!("for_each: `{}` has no value", scalar.text),
            _ => format!("for_each needs a list or a map, `{}` is {}", scalar.text, value.type_name()),
        };
        let problem = Diagnostic::error("not-a-list-or-map", message).at(for_each.span);
        let help = "write the expression of a list or a map, such as `Data.users`, or the list itself";
        diagnostics.push(problem.with_help(help));
    }
    elements
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::template::Learned;

    #[test]
    fn maps_give_pairs_whoever_gathers_them() {
        let map: Value = json!({ "a": 1 }).into();
        for value in [map.clone(), Learned::default().over(map)] {
            let elements = Element::all(&value).expect("elements");
            assert_eq!(elements.len(), 1, "{value:?}");
            assert_eq!(elements[0].each, json!({ "key": "a", "value": 1 }).into(), "{value:?}");
        }
        assert!(Element::all(&Value::from("a")).is_none());
    }

    #[test]
    fn a_key_is_found_however_deep_it_is() {
        for (each, expected) in [
            (json!({ "password": 1 }), true),
            (json!({ "a": { "password": 1 } }), true),
            (json!([["x"], [{ "password": 1 }]]), true),
            (json!({ "a": ["password"] }), false),
            (json!("password"), false),
        ] {
            let element = Element { each: each.clone().into(), index: 0 };
            assert_eq!(element.has_key(&|key| key == "password"), expected, "{each}");
        }
        let each = Learned::default().over(json!({ "password": 1 }).into());
        assert!(Element { each, index: 0 }.has_key(&|key| key == "password"));
    }

    #[test]
    fn only_expressions_that_use_the_element_are_bound_to_it() {
        let element = Element { each: "a".into(), index: 1 };
        let bound = element.bind_text("{{ file('x') }} ${ each }");
        assert!(bound.starts_with("{{ file('x') }} ${") && bound.contains("let index = 1; each"), "{bound}");
        for (condition, is_bound) in [("index > 0", true), ("${ each }", true), ("Data.each == 1", false)] {
            let bound = element.bind_condition(condition);
            assert_eq!(bound != condition, is_bound, "{bound}");
        }
    }
}
