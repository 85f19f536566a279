//! "Did you mean": the known name that is closest to a mistyped one.

/// The candidate that a person most likely meant by `name`, if one is close enough to be worth naming.
pub fn closest<I>(name: &str, candidates: I) -> Option<String>
where
    I: IntoIterator,
    I::Item: AsRef<str>,
{
    let wanted = name.to_lowercase();
    // Short names are close to everything; for those only the case may differ.
    let allowed = (name.chars().count() / 3).min(3);
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let candidate = candidate.as_ref();
            // Comparing lengths first keeps a long list of long names cheap.
            if candidate.len().abs_diff(name.len()) > allowed * 4 {
                return None;
            }
            let distance = strsim::damerau_levenshtein(&wanted, &candidate.to_lowercase());
            (distance <= allowed).then(|| (distance, candidate.to_owned()))
        })
        .min_by(|left, right| left.0.cmp(&right.0))
        .map(|(_, candidate)| candidate)
}

/// The sentence that goes into an error's help.
pub(crate) fn did_you_mean<I>(name: &str, candidates: I) -> Option<String>
where
    I: IntoIterator,
    I::Item: AsRef<str>,
{
    closest(name, candidates).map(|candidate| format!("did you mean `{candidate}`?"))
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn a_typing_mistake_finds_its_word() {
        assert_eq!(closest("Fcats", ["Data", "Facts", "Environ"]).as_deref(), Some("Facts"));
        assert_eq!(closest("facts", ["Facts"]).as_deref(), Some("Facts"));
        assert_eq!(closest("lokup", ["lookup", "file"]).as_deref(), Some("lookup"));
    }

    #[test]
    fn a_word_that_is_like_none_finds_nothing() {
        assert_eq!(closest("zebra", ["Data", "Facts"]), None);
        assert_eq!(closest("x", ["y"]), None);
        assert_eq!(closest("x", ["X"]).as_deref(), Some("X"));
    }
}
