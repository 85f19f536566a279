//! "Did you mean": the known name that is closest to a mistyped one.

/// Longer words are not typing mistakes, and comparing them takes the product of their lengths.
const LONGEST: usize = 100;

/// Returns the candidate that a person most likely meant by a word, if one is close enough to be worth naming.
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST {
        return None;
    }
    let lower = word.to_lowercase();
    // Short words are close to everything; for those only the case may differ.
    let tolerance = lower.chars().count() / 3;
    candidates
        .into_iter()
        // Comparing lengths first keeps a long list of long names cheap.
        .filter(|candidate| {
            candidate.len() <= LONGEST && candidate.len().abs_diff(word.len()) <= 4 * tolerance
        })
        .map(|candidate| (strsim::osa_distance(&lower, &candidate.to_lowercase()), candidate))
        .filter(|&(distance, candidate)| distance <= tolerance && candidate != word)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// The sentence that goes into an error's help.
pub(crate) fn did_you_mean<I>(name: &str, candidates: I) -> Option<String>
where
    I: IntoIterator,
    I::Item: AsRef<str>,
{
    let candidates: Vec<_> = candidates.into_iter().collect();
    let near = closest(name, candidates.iter().map(AsRef::as_ref))?;
    Some(format!("did you mean `{near}`?"))
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn a_typing_mistake_finds_its_word() {
        assert_eq!(closest("Fcats", ["Data", "Facts", "Environ"]), Some("Facts"));
        assert_eq!(closest("facts", ["Facts"]), Some("Facts"));
        assert_eq!(closest("lokup", ["lookup", "file"]), Some("lookup"));
    }

    #[test]
    fn a_word_that_is_like_none_finds_nothing() {
        assert_eq!(closest("zebra", ["Data", "Facts"]), None);
        assert_eq!(closest("x", ["y"]), None);
        assert_eq!(closest("x", ["X"]), Some("X"));
    }
}
