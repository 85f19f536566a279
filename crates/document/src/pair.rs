//! `key=value` arguments of the command line.

use std::sync::Arc;

use ccm_expr::{Map, Value};

use super::{Node, Scalar, Source, Span, Style, parse, to_value};

/// Reason why a string is not a pair.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PairError {
    /// The string might be a secret without its key, so it is not quoted.
    #[error("an entry without \"=\" is not of the form KEY=VALUE")]
    NoValue,
    #[error("\"{key}\" is no key: a name is missing before or after a dot")]
    NoName { key: String },
    #[error("the value of \"{key}\" begins like YAML but is not: {message}; quote it to mean the text")]
    NotYaml { key: String, message: String },
}

/// A value, and the names of the maps that contain it, outermost first.
#[derive(Clone, Debug)]
pub struct Pair {
    pub names: Vec<String>,
    pub value: Value,
}

impl Pair {
    /// Returns nested maps that contain the value.
    pub fn nested(self) -> Value {
        let nested = |inner: Value, name: &String| Map::from_iter([(Arc::from(name.as_str()), inner)]).into();
        self.names.iter().rev().fold(self.value, nested)
    }
}

/// Parses a pair. Dots in the key separate names; `\.` is a dot in a name. The value has its YAML type (`8080` is a
/// number, `true` a boolean, `yes` a string), except that digits with a leading zero are a string. A value that begins
/// with a quote or bracket is parsed as YAML, so that `"8080"` is a string and `[a, b]` a list. An empty value is the
/// empty string, and a value that begins with `{{` is a string.
pub fn pair(text: &str) -> Result<Pair, PairError> {
    // The Go original also separates them with a colon.
    let Some((key, value)) = text.split_once('=').or_else(|| text.split_once(':')) else {
        return Err(PairError::NoValue);
    };
    let names = names(key).ok_or_else(|| PairError::NoName { key: key.to_owned() })?;
    Ok(Pair { names, value: typed(key, value)? })
}

fn names(key: &str) -> Option<Vec<String>> {
    let mut names = vec![String::new()];
    let mut letters = key.chars();
    while let Some(letter) = letters.next() {
        match (letter, names.last_mut()) {
            ('.', _) => names.push(String::new()),
            ('\\', Some(last)) => last.push(letters.next()?),
            (_, Some(last)) => last.push(letter),
            (_, None) => {}
        }
    }
    names.iter().all(|name| !name.is_empty()).then_some(names)
}

fn typed(key: &str, value: &str) -> Result<Value, PairError> {
    if value.starts_with(['"', '\'', '[', '{']) && !value.starts_with("{{") {
        let source = Source { name: key.to_owned(), text: value.to_owned() };
        return parse(&source).map(|node| to_value(&node)).map_err(|problems| {
            let message = problems.first().map(|problem| problem.message.clone()).unwrap_or_default();
            PairError::NotYaml { key: key.to_owned(), message }
        });
    }
    if value.is_empty() {
        return Ok("".into());
    }
    let style = if begins_with_zero(value) { Style::Quoted } else { Style::Plain };
    let scalar = Scalar::new(value.to_owned(), style);
    Ok(to_value(&Node { value: super::Value::Scalar(scalar), span: Span::default() }))
}

/// Returns whether a number has a leading zero, which would be lost in a number.
fn begins_with_zero(value: &str) -> bool {
    let digits = value.strip_prefix(['-', '+']).unwrap_or(value).as_bytes();
    matches!(digits, [b'0', b'0'..=b'9', ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_a_map_with_a_typed_value() {
        for (text, expected) in [
            ("role=web", r#"{"role":"web"}"#),
            ("a.b.c=1", r#"{"a":{"b":{"c":1}}}"#),
            (r"a\.b=1", r#"{"a.b":1}"#),
            ("on=true", r#"{"on":true}"#),
            ("word=yes", r#"{"word":"yes"}"#),
            ("none=~", r#"{"none":null}"#),
            ("empty=", r#"{"empty":""}"#),
            ("sum=1+1=2", r#"{"sum":"1+1=2"}"#),
            ("half=0.5", r#"{"half":0.5}"#),
            ("none=0", r#"{"none":0}"#),
            ("hex=0x1F", r#"{"hex":31}"#),
            ("agent=007", r#"{"agent":"007"}"#),
            ("below=-07.5", r#"{"below":"-07.5"}"#),
            ("text='1.10'", r#"{"text":"1.10"}"#),
            ("list=[a, 1]", r#"{"list":["a",1]}"#),
            ("map={a: {b: c}}", r#"{"map":{"a":{"b":"c"}}}"#),
            ("template=${ x }", r#"{"template":"${ x }"}"#),
            ("template={{ x }}", r#"{"template":"{{ x }}"}"#),
            ("note=a: b # c", r#"{"note":"a: b # c"}"#),
        ] {
            assert_eq!(pair(text).unwrap().nested().to_string(), expected, "{text:?}");
        }
    }

    #[test]
    fn what_is_no_pair_is_refused() {
        for (text, part) in [
            ("role", "not of the form"),
            ("=x", "is no key"),
            ("a..b=x", "is no key"),
            (".a=x", "is no key"),
            ("a.=x", "is no key"),
            ("a\\=x", "is no key"),
            ("a=[1, 2", "begins like YAML"),
            ("a='x", "begins like YAML"),
        ] {
            let message = pair(text).unwrap_err().to_string();
            assert!(message.contains(part), "{text:?}: {message}");
        }
    }
}
