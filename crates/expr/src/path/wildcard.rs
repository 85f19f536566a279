//! Patterns of `*` and `?`.

/// A pattern for names and texts; a backslash takes the meaning from what follows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wildcard(Vec<Glyph>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Glyph {
    Letter(char),
    AnyOne,
    AnyRow,
}

impl Wildcard {
    pub(super) fn new(pattern: &str) -> Self {
        let mut glyphs = Vec::new();
        let mut letters = pattern.chars();
        while let Some(letter) = letters.next() {
            let glyph = match letter {
                '*' => Glyph::AnyRow,
                '?' => Glyph::AnyOne,
                '\\' => Glyph::Letter(letters.next().unwrap_or('\\')),
                other => Glyph::Letter(other),
            };
            // Rows beside each other match no more than one does.
            if glyph != Glyph::AnyRow || glyphs.last() != Some(&Glyph::AnyRow) {
                glyphs.push(glyph);
            }
        }
        Self(glyphs)
    }

    /// Goes back only to the last row, which is enough for such patterns and keeps the time within the product of
    /// both lengths.
    pub(super) fn matches(&self, text: &str) -> bool {
        let glyphs = &self.0;
        let mut glyph = 0;
        let mut rest = text.chars();
        let mut retry = None;
        loop {
            let mut ahead = rest.clone();
            let letter = ahead.next();
            match (glyphs.get(glyph), letter) {
                (Some(Glyph::AnyRow), _) => {
                    retry = Some((glyph, rest.clone()));
                    glyph += 1;
                }
                (None, None) => return true,
                (Some(Glyph::AnyOne), Some(_)) => {
                    glyph += 1;
                    rest = ahead;
                }
                (Some(Glyph::Letter(wanted)), Some(found)) if *wanted == found => {
                    glyph += 1;
                    rest = ahead;
                }
                _ => {
                    let Some((row, mut after)) = retry.take() else { return false };
                    if after.next().is_none() {
                        return false;
                    }
                    rest = after.clone();
                    retry = Some((row, after));
                    glyph = row + 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Wildcard;

    #[test]
    fn patterns_match_whole_texts() {
        for (pattern, text) in
            [("a*", "abc"), ("*", ""), ("a?c", "abc"), ("*b*", "abc"), ("a\\*", "a*"), ("**a", "bba")]
        {
            assert!(Wildcard::new(pattern).matches(text), "{pattern} {text}");
        }
        for (pattern, text) in [("a", "ab"), ("?", ""), ("a\\*", "ab"), ("*a*b", "ac"), ("a?", "a")] {
            assert!(!Wildcard::new(pattern).matches(text), "{pattern} {text}");
        }
    }
}
