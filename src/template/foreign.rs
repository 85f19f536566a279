//! Signs of other template languages, which nothing here gives a meaning.

use std::{ops::Range, sync::LazyLock};

use regex::Regex;

use super::{functions::place_in, jinja::Delimiters};

/// What only one language has.
struct Signs {
    language: &'static str,
    /// What each of them begins with.
    beginnings: &'static [&'static str],
    pattern: LazyLock<Option<Regex>>,
}

/// `[[` alone is TOML or a shell's test.
static SIGNS: [Signs; 3] = [
    Signs {
        language: "Jinja",
        beginnings: &["{%", "{#"],
        pattern: LazyLock::new(|| Regex::new(r"\{%-?(?-u:\s*\w)|(?:^|[^$])\{#(?-u:\s)").ok()),
    },
    Signs {
        language: "ERB",
        beginnings: &["<%"],
        pattern: LazyLock::new(|| Regex::new(r"<%[-=#]?(?-u:\s*\w)").ok()),
    },
    Signs { language: "Jet", beginnings: &["[["], pattern: LazyLock::new(|| Regex::new(JET).ok()) },
];

const JET: &str = concat!(
    r"\[\[-?(?-u:\s*)(?:\.(?-u:\w)|(?-u:\w+)\(|(?:[Ff]acts|[Dd]ata|[Ee]nviron)\.",
    r"|(?:if|range|with|include|block|yield|import|return)(?-u:\s+)[^\s\]]|(?:else|end)(?-u:\s*)-?\]\])",
);

/// A part of a file that is text, but probably was not meant to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Suspect {
    /// The file, line and column.
    pub(super) place: String,
    pub(super) sign: String,
    pub(super) suspicion: Suspicion,
}

/// Why a part of a file is suspect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Suspicion {
    /// It belongs to another template language.
    Foreign(&'static str),
    /// It begins an expression that never ends.
    Unclosed,
}

/// Returns the first sign of another template language in a text, and its name.
pub(super) fn foreign(text: &str) -> Option<(&'static str, Range<usize>)> {
    // Compiling a pattern costs more than reading most texts: hardly one has what a sign begins with.
    let begun = SIGNS.iter().filter(|signs| signs.beginnings.iter().any(|sign| text.contains(sign)));
    let found = begun.filter_map(|signs| Some((signs.language, signs.pattern.as_ref()?.find(text)?.range())));
    found.min_by_key(|(_, place)| place.start)
}

/// Actions of Go templates, between delimiters of any kind.
static GO: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"\{\{-?(?-u:\s*)(?:\.(?-u:\w)|\$\.?(?-u:\w)|(?:if|range|with|define|template|block)(?-u:\s+)[^\s}]|(?:else|end)(?-u:\s*)-?\}\})").ok()
});

/// Returns the first sign of another template language in a file of a tree that is rendered with these delimiters: its
/// place, the sign, and the language.
pub(crate) fn foreign_in_tree(
    file: &str,
    text: &str,
    delimiters: Delimiters,
) -> Option<(String, String, &'static str)> {
    let is_own = |beginning: &str| delimiters.left.starts_with(beginning);
    let others = SIGNS
        .iter()
        .filter(|signs| signs.language != "Jinja" && !signs.beginnings.iter().any(|sign| is_own(sign)))
        .filter(|signs| signs.beginnings.iter().any(|sign| text.contains(sign)))
        .filter_map(|signs| Some((signs.language, signs.pattern.as_ref()?.find(text)?)));
    let go = text.contains("{{").then(|| GO.as_ref()?.find(text)).flatten().map(|found| ("Go", found));
    let (language, found) = others.chain(go).min_by_key(|(_, found)| found.start())?;
    let place =
        place_in(file, text, found.start() + found.as_str().len() - found.as_str().trim_start().len());
    Some((place, found.as_str().trim().to_owned(), language))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_have_signs_of_languages_that_are_not_their_own() {
        let (standard, jet) = (Delimiters::default(), Delimiters { left: "[[", right: "]]" });
        for (text, delimiters, expected) in [
            ("host = [[ facts.hostname ]]", standard, Some("Jet")),
            ("host = [[ facts.hostname ]]", jet, None),
            ("{{ if .tls }}x{{ end }}", standard, Some("Go")),
            ("{{- range $i, $x := .list }}", jet, Some("Go")),
            ("{{ .Data.port }}", jet, Some("Go")),
            ("<%= port %>", standard, Some("ERB")),
            ("{% if x %}{{ Data.port }}{% endif %}", standard, None),
            ("if [[ -f /x ]]; then", standard, None),
            ("[[servers]]", standard, None),
        ] {
            let found = foreign_in_tree("f", text, delimiters).map(|(_, _, language)| language);
            assert_eq!(found, expected, "{text}");
        }
        let found = foreign_in_tree("f", "a\nb [[ facts.x ]]", standard);
        assert_eq!(found, Some(("f:2:3".to_owned(), "[[ facts.".to_owned(), "Jet")));
    }

    #[test]
    fn signs_of_other_languages_are_told_from_what_looks_like_them() {
        for (text, language) in [
            ("{% if tls %}", Some("Jinja")),
            ("{%- for x in y %}", Some("Jinja")),
            ("a {# note #}", Some("Jinja")),
            ("<%= port %>", Some("ERB")),
            ("<% if x %>", Some("ERB")),
            ("[[ .Data.port ]]", Some("Jet")),
            ("[[ Facts.os ]]", Some("Jet")),
            ("[[ range i, x := data.list ]]", Some("Jet")),
            ("[[end]]", Some("Jet")),
            ("[[data]]\nport = 1", None),
            ("[[ block ]]", None),
            ("[[ $a == b ]] && x", None),
            ("[[ lookup('data.port') ]]", Some("Jet")),
            ("[[servers]]", None),
            ("if [[ -f /x ]]; then", None),
            ("${#list}", None),
            ("{{ port }} 100%", None),
            ("a <b> {c}", None),
        ] {
            assert_eq!(foreign(text).map(|(language, _)| language), language, "{text}");
        }
    }
}
