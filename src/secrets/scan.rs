//! Finds secrets in plain text, by their form or by the name of their key.

use std::{collections::HashMap, sync::LazyLock};

use regex::Regex;

use super::sops::PREFIX;
use crate::document::{Diagnostic, Excerpt, Node, Value};

/// Forms of tokens that services give out, and of private keys.
static FORMS: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    [
        (r"-----BEGIN [A-Z ]*PRIVATE KEY-----", "a private key"),
        (r"AGE-SECRET-KEY-(PQ-)?1[A-Z0-9]{20,}", "a private key of age"),
        (r"\b(AKIA|ASIA)[A-Z0-9]{16}\b", "an access key of AWS"),
        (r"\bgh[pousr]_[A-Za-z0-9]{36,}\b", "a token of GitHub"),
        (r"\bglpat-[A-Za-z0-9_-]{20,}", "a token of GitLab"),
        (r"\bxox[abprs]-[A-Za-z0-9-]{10,}", "a token of Slack"),
        (r"\bey[A-Za-z0-9_-]{15,}\.ey[A-Za-z0-9_-]{15,}\.[A-Za-z0-9_-]{10,}", "a JSON web token"),
        (r"\bsk_live_[A-Za-z0-9]{16,}", "a secret key of Stripe"),
    ]
    .into_iter()
    .filter_map(|(pattern, name)| Some((Regex::new(pattern).ok()?, name)))
    .collect()
});

/// Parts of names of secrets, in lower case and without `-` and `_`.
const NAMES: [&str; 8] =
    ["password", "passwd", "passphrase", "secret", "token", "privatekey", "apikey", "credential"];

/// Shorter values have too few letters to be random.
const SHORTEST: usize = 8;

/// Bits of entropy for each letter from which a value looks random.
const ENTROPY: f64 = 2.5;

/// A shorter value of only one kind of letters is a word.
const LONG: usize = 16;

/// Returns what a text looks like, if it has the form of a secret.
pub(crate) fn form(text: &str) -> Option<&'static str> {
    FORMS.iter().find(|(pattern, _)| pattern.is_match(text)).map(|(_, name)| *name)
}

/// Finds values of a document that look like secrets.
pub(crate) fn find(node: &Node, key: &str, found: &mut Vec<Diagnostic>) {
    match &node.value {
        Value::Seq(items) => items.iter().for_each(|item| find(item, key, found)),
        Value::Map(entries) => entries.iter().for_each(|entry| find(&entry.value, &entry.key, found)),
        Value::Scalar(scalar) => {
            let text = scalar.text.as_str();
            if text.starts_with(PREFIX) {
                return;
            }
            let looks = match form(text) {
                Some(name) => Some(name.to_owned()),
                None if is_named(key) && is_random(text) => Some(format!("a secret, named `{key}`")),
                None => None,
            };
            found.extend(looks.map(|looks| {
                let mut problem =
                    Diagnostic::error("plain-text-secret", format!("this looks like {looks}, in plain text"))
                        .at(node.span)
                        .with_help("encrypt it with `ccm secret set` or `ccm secret edit`");
                problem.excerpt = Excerpt::Hidden;
                problem
            }));
        }
    }
}

fn is_named(key: &str) -> bool {
    let key: String =
        key.chars().filter(|letter| !matches!(letter, '-' | '_')).collect::<String>().to_lowercase();
    NAMES.iter().any(|name| key.contains(name))
}

/// Returns whether a text could be a password, and neither a path, a template nor words.
fn is_random(text: &str) -> bool {
    let is_code =
        text.starts_with(['/', '$']) || text.contains("${") || text.contains("{{") || text.contains(' ');
    let kinds: [fn(char) -> bool; 3] =
        [char::is_lowercase, char::is_uppercase, |letter| !letter.is_alphabetic()];
    let is_mixed = kinds.iter().filter(|is_kind| text.contains(**is_kind)).count() > 1;
    let length = text.chars().count();
    length >= SHORTEST && (is_mixed || length >= LONG) && !is_code && entropy(text) >= ENTROPY
}

fn entropy(text: &str) -> f64 {
    let mut counts: HashMap<char, u32> = HashMap::new();
    let mut total = 0_u32;
    for letter in text.chars() {
        *counts.entry(letter).or_default() += 1;
        total += 1;
    }
    let total = f64::from(total);
    let sum: f64 =
        counts.values().map(|count| f64::from(*count) / total).map(|share| -share * share.log2()).sum();
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_values_and_keys_look_like_secrets() {
        for (text, expected) in [
            ("xK9#mQ2$vL", true),
            ("hunter2hunter", true),
            ("changeme", false),
            ("aaaaaaaaaaaa", false),
            ("/etc/ssl/key.pem", false),
            ("${ Data.x }", false),
            ("short", false),
        ] {
            assert_eq!(is_random(text), expected, "{text} {}", entropy(text));
        }
        assert_eq!(FORMS.len(), 8, "every pattern is valid");
        assert!(form("x -----BEGIN OPENSSH PRIVATE KEY-----\n").is_some());
        assert!(form("nothing").is_none());
        assert!(is_named("db-Pass_Word") && !is_named("user"));
    }
}
