//! Signs of other template languages, which nothing here gives a meaning.

use std::{ops::Range, sync::LazyLock};

use regex::Regex;

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

#[cfg(test)]
mod tests {
    use super::*;

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
