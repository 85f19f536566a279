//! Masks secrets in all output of the program: events, reports, diagnostics and the output of commands.
//!
//! A resource has one [`Redactor`], made from its secrets. It masks complete strings, and data that arrives in chunks
//! through a [`Stream`].

mod stream;

use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
};

use ccm_process::Filter;
use serde_json::Value;

use self::stream::Automaton;
pub(crate) use self::stream::Stream;

/// Replacement of a secret.
pub(crate) const MASK: &str = "[secret]";

/// Minimum length of a masked string. Shorter ones occur everywhere, and masking them would reveal them.
const SHORTEST: usize = 4;

/// Masks the secrets of one resource. Clones share the search automaton.
#[derive(Clone, Default)]
pub(crate) struct Redactor(Arc<Secrets>);

#[derive(Default)]
struct Secrets {
    texts: Vec<String>,
    /// Built for the first search, because most resources print nothing that could contain a secret.
    automaton: OnceLock<Option<Automaton>>,
}

impl Redactor {
    /// Masks these values: each line separately, because programs print lines, and a value completely if its lines are
    /// too short.
    pub(crate) fn new<'s>(values: impl IntoIterator<Item = Cow<'s, str>>) -> Self {
        let mut texts: Vec<String> = Vec::new();
        for value in values {
            texts.extend(parts(value.trim()).filter(|part| !is_short(part)).map(str::to_owned));
        }
        Self(Arc::new(Secrets { texts, automaton: OnceLock::new() }))
    }

    /// Returns a redactor that masks additional values.
    pub(crate) fn and<'s>(&self, values: impl IntoIterator<Item = Cow<'s, str>>) -> Self {
        let more = Self::new(values);
        let texts = [self.0.texts.as_slice(), &more.0.texts].concat();
        Self(Arc::new(Secrets { texts, automaton: OnceLock::new() }))
    }

    /// Returns the text with all secrets masked. Overlapping secrets are masked together.
    pub(crate) fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.0.texts.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut stream = self.stream();
        let mut seen = stream.pass(text.as_bytes()).into_owned();
        seen.extend(stream.finish());
        if seen == text.as_bytes() {
            return Cow::Borrowed(text);
        }
        Cow::Owned(String::from_utf8_lossy(&seen).into_owned())
    }

    /// Masks the secrets in a string in place.
    pub(crate) fn mask(&self, text: &mut String) {
        if let Cow::Owned(redacted) = self.redact(text) {
            *text = redacted;
        }
    }

    /// Masks the secrets in all strings of a document, including keys, except keys that are property names.
    pub(crate) fn mask_json(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.mask(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask_json(item)),
            Value::Object(entries) => {
                entries.values_mut().for_each(|value| self.mask_json(value));
                if entries.keys().any(|key| !is_word(key) && matches!(self.redact(key), Cow::Owned(_))) {
                    let masked =
                        |key: String| if is_word(&key) { key } else { self.redact(&key).into_owned() };
                    *entries = std::mem::take(entries)
                        .into_iter()
                        .map(|(key, value)| (masked(key), value))
                        .collect();
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Returns whether a string of the document contains a secret.
    pub(crate) fn finds(&self, value: &Value) -> bool {
        let mut masked = value.clone();
        self.mask_json(&mut masked);
        masked != *value
    }

    /// Returns a masking stream.
    pub(crate) fn stream(&self) -> Stream {
        Stream::new(self.clone())
    }

    /// Returns a factory of filters for the outputs of a command.
    pub(crate) fn filter(&self) -> impl Fn() -> Box<dyn Filter> + Send + Sync + 'static {
        let redactor = self.clone();
        move || Box::new(redactor.stream())
    }

    fn automaton(&self) -> Option<&Automaton> {
        self.0.automaton.get_or_init(|| Automaton::of(&self.0.texts)).as_ref()
    }
}

fn parts(value: &str) -> impl Iterator<Item = &str> {
    let whole = value.lines().any(|line| is_short(line.trim())).then_some(value);
    value.lines().map(str::trim).chain(whole)
}

fn is_short(text: &str) -> bool {
    text.chars().count() < SHORTEST
}

fn is_word(key: &str) -> bool {
    key.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '-'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn redactor(values: &[&'static str]) -> Redactor {
        Redactor::new(values.iter().map(|value| Cow::Borrowed(*value)))
    }

    #[test]
    fn secrets_are_lines_and_where_lines_are_short_whole_texts() {
        for (value, hidden) in [
            ("", &[][..]),
            ("abc", &[]),
            (" word ", &["word"]),
            ("first line\nsecond line\n", &["first line", "second line"]),
            ("first line\r\n\tsecond line", &["first line", "second line"]),
            ("a\nlong line", &["long line", "a\nlong line"]),
            ("ab\ncd", &["ab\ncd"]),
            ("größe", &["größe"]),
        ] {
            assert_eq!(redactor(&[value]).0.texts, hidden, "{value:?}");
        }
    }

    #[test]
    fn two_secrets_that_overlap_leave_nothing_behind() {
        for (secrets, text, shown) in [
            (&["s3cret", "s3cret-and-more"][..], "s3cret-and-more", MASK),
            (&["s3cret-and-more", "s3cret"], "s3cret-and-more", MASK),
            (&["abcdef", "defghi"], "abcdefghi", MASK),
            (&["abcdef", "defghi", "cdefgh"], "x abcdefghi x", "x [secret] x"),
            (&["inner", "the inner one"], "the inner one", MASK),
        ] {
            assert_eq!(redactor(secrets).redact(text), shown, "{secrets:?}");
        }
    }

    #[test]
    fn texts_without_a_secret_stay_as_they_are() {
        assert!(matches!(redactor(&[]).redact("abc"), Cow::Borrowed("abc")));
        assert!(matches!(redactor(&["secret"]).redact("secre"), Cow::Borrowed("secre")));
    }

    #[test]
    fn every_text_of_a_document_is_searched() {
        let mut document =
            json!({ "canary": ["a canary", { "b": "canary" }], "n": 1, "x": null, "a canary": 1 });
        redactor(&["canary"]).mask_json(&mut document);
        // A word can be the name of a property.
        let masked = json!({ "canary": ["a [secret]", { "b": MASK }], "n": 1, "x": null, "a [secret]": 1 });
        assert_eq!(document, masked);
    }
}
