//! Matchers in plain words, for messages.

use serde_json::{Map, Value as Json};

/// Describes a property and its expected value, as written in a rule.
pub(crate) fn expected(property: &str, written: &Json) -> String {
    match written {
        Json::Bool(wanted) => format!("{property} to be {wanted}"),
        written => format!("{property} {}", described(written)),
    }
}

fn described(written: &Json) -> String {
    match written {
        Json::Object(matcher) if matcher.len() == 1 => operation(matcher),
        other => other.to_string(),
    }
}

fn operation(matcher: &Map<String, Json>) -> String {
    let Some((operator, operand)) = matcher.iter().next() else { return String::new() };
    let words = match operator.as_str() {
        "equal" => "",
        "gt" => "more than ",
        "ge" => "at least ",
        "lt" => "less than ",
        "le" => "at most ",
        "not" => "not ",
        "have-prefix" => "that begins with ",
        "have-suffix" => "that ends with ",
        "contain-substring" => "that contains ",
        "match-regexp" => "that matches ",
        "contain-element" => "with the element ",
        "contain-elements" => "with the elements ",
        "consist-of" => "with exactly the elements ",
        "have-len" => "of length ",
        "have-key" => "with the key ",
        "have-patterns" => "with lines that match ",
        "semver-constraint" => "that satisfies ",
        "and" => return hundreds(operand).unwrap_or_else(|| joined(operand, " and ")),
        "or" => return joined(operand, " or "),
        "gjson" => return paths(operand),
        _ => return Json::from(matcher.clone()).to_string(),
    };
    format!("{words}{}", described(operand))
}

/// Returns `2xx` for a range of status codes from 200 to 299, and so on.
fn hundreds(all: &Json) -> Option<String> {
    let [first, last] = all.as_array()?.as_slice() else { return None };
    let (first, last) = (first.get("ge")?.as_u64()?, last.get("lt")?.as_u64()?);
    let is_class = first % 100 == 0 && last == first + 100 && (100..600).contains(&first);
    is_class.then(|| format!("{}xx", first / 100))
}

fn joined(matchers: &Json, conjunction: &str) -> String {
    let matchers = matchers.as_array().map(Vec::as_slice).unwrap_or_default();
    matchers.iter().map(described).collect::<Vec<_>>().join(conjunction)
}

fn paths(written: &Json) -> String {
    let paths = written.as_object().into_iter().flatten();
    let path = |(path, wanted): (&String, &Json)| format!("with {} at `{path}`", described(wanted));
    paths.map(path).collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn matchers_are_described_in_words() {
        for (property, written, words) in [
            ("status", json!({ "and": [{ "ge": 200 }, { "lt": 300 }] }), "status 2xx"),
            ("status", json!(201), "status 201"),
            ("exists", json!(true), "exists to be true"),
            ("size", json!({ "and": [{ "gt": 10 }, { "le": 20 }] }), "size more than 10 and at most 20"),
            ("mode", json!({ "or": ["0600", { "not": "0644" }] }), r#"mode "0600" or not "0644""#),
            ("version", json!({ "semver-constraint": ">=1.2" }), r#"version that satisfies ">=1.2""#),
            ("body", json!({ "gjson": { "status": "ok" } }), r#"body with "ok" at `status`"#),
            ("body", json!({ "unknown": 1 }), r#"body {"unknown":1}"#),
        ] {
            assert_eq!(expected(property, &written), words);
        }
    }
}
