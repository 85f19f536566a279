//! Signs of other template languages, which nothing here gives a meaning.

use std::{ops::Range, sync::LazyLock};

use regex::Regex;

/// Each language, and what only it has. `[[` alone is TOML or a shell's test.
static SIGNS: LazyLock<Vec<(&str, Regex)>> = LazyLock::new(|| {
    let signs = [
        ("Jinja", r"\{%-?\s*\w|(?:^|[^$])\{#\s"),
        ("ERB", r"<%[-=#]?\s*\w"),
        (
            "Jet",
            r"\[\[-?\s*(?:\.\w|\w+\(|(?:[Ff]acts|[Dd]ata|[Ee]nviron)\.|(?:if|range|with|include|block|yield|import|return)\s+[^\s\]]|(?:else|end)\s*-?\]\])",
        ),
    ];
    signs.into_iter().filter_map(|(language, sign)| Some((language, Regex::new(sign).ok()?))).collect()
});

/// A sign of another template language, found in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Foreign {
    /// The file, line and column.
    pub(super) place: String,
    pub(super) language: &'static str,
    pub(super) sign: String,
}

/// Returns the first sign of another template language in a text, and its name.
pub(super) fn foreign(text: &str) -> Option<(&'static str, Range<usize>)> {
    let found = |(language, sign): &(&'static str, Regex)| Some((*language, sign.find(text)?.range()));
    SIGNS.iter().filter_map(found).min_by_key(|(_, place)| place.start)
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
