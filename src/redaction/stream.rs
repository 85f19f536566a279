//! Masks secrets in a stream of bytes, even if chunks split them.

use std::{borrow::Cow, collections::HashMap, ops::Range};

use aho_corasick::{
    Anchored, MatchKind,
    automaton::{Automaton as _, StateID},
    nfa::contiguous::NFA,
};

use ccm_process::Filter;

use super::{MASK, Redactor};

/// Finds all secrets in one pass, including overlapping ones.
pub(super) struct Automaton {
    nfa: NFA,
    start: StateID,
    /// For each state, the number of last bytes that are the beginning of a secret.
    depths: HashMap<StateID, usize>,
}

impl Automaton {
    /// Returns `None` if there are no secrets.
    pub(super) fn of(texts: &[String]) -> Option<Self> {
        if texts.is_empty() {
            return None;
        }
        let nfa = NFA::builder()
            .match_kind(MatchKind::Standard)
            .build(texts)
            .expect("secrets are shorter than 2 GiB in all, which is all that can go wrong here");
        let start = nfa.start_state(Anchored::No).expect("every automaton has a state to begin with");
        let mut depths = HashMap::from([(start, 0)]);
        for text in texts {
            let mut state = start;
            for (before, byte) in text.bytes().enumerate() {
                state = nfa.next_state(Anchored::No, state, byte);
                depths.insert(state, before + 1);
            }
        }
        Some(Self { nfa, start, depths })
    }

    fn next(&self, state: StateID, byte: u8) -> StateID {
        self.nfa.next_state(Anchored::No, state, byte)
    }

    /// Returns the length of the longest secret that ends here.
    fn found(&self, state: StateID) -> Option<usize> {
        if !self.nfa.is_match(state) {
            return None;
        }
        let ending = (0..self.nfa.match_len(state)).map(|at| self.nfa.match_pattern(state, at));
        ending.map(|secret| self.nfa.pattern_len(secret)).max()
    }

    fn depth(&self, state: StateID) -> usize {
        self.depths.get(&state).copied().unwrap_or_default()
    }
}

/// Passes a stream through with its secrets masked.
///
/// Bytes that might be the beginning of a secret are held back until more bytes arrive or the stream ends.
pub(crate) struct Stream {
    redactor: Redactor,
    state: Option<StateID>,
    /// Bytes that were not passed through yet.
    held: Vec<u8>,
    /// Secrets in these bytes, with overlapping ones merged.
    found: Vec<Range<usize>>,
    /// Number of these bytes that belong to a secret whose mask was already passed through.
    masked: usize,
}

impl Stream {
    pub(super) fn new(redactor: Redactor) -> Self {
        let state = redactor.automaton().map(|automaton| automaton.start);
        Self { redactor, state, held: Vec::new(), found: Vec::new(), masked: 0 }
    }

    /// Passes through the bytes before `settled`, in which no further secret can begin.
    fn release(&mut self, settled: usize) -> Vec<u8> {
        let mut seen = Vec::with_capacity(settled);
        let mut at = self.masked;
        let begun = self.found.partition_point(|secret| secret.start < settled);
        for secret in self.found.drain(..begun) {
            // A secret that overlaps masked bytes is part of them.
            if secret.start >= at {
                seen.extend_from_slice(&self.held[at..secret.start]);
                seen.extend_from_slice(MASK.as_bytes());
            }
            at = at.max(secret.end);
        }
        if at < settled {
            seen.extend_from_slice(&self.held[at..settled]);
        }
        self.held.drain(..settled);
        self.masked = at.saturating_sub(settled);
        for later in &mut self.found {
            *later = later.start - settled..later.end - settled;
        }
        seen
    }
}

impl Filter for Stream {
    fn pass<'b>(&mut self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        let (Some(automaton), Some(mut state)) = (self.redactor.automaton(), self.state) else {
            return Cow::Borrowed(bytes);
        };
        for byte in bytes {
            self.held.push(*byte);
            state = automaton.next(state, *byte);
            if let Some(length) = automaton.found(state) {
                let (mut start, end) = (self.held.len() - length, self.held.len());
                while let Some(earlier) = self.found.pop_if(|earlier| earlier.end > start) {
                    start = start.min(earlier.start);
                }
                self.found.push(start..end);
            }
        }
        let settled = self.held.len() - automaton.depth(state);
        self.state = Some(state);
        Cow::Owned(self.release(settled))
    }

    fn finish(&mut self) -> Vec<u8> {
        self.state = self.redactor.automaton().map(|automaton| automaton.start);
        self.release(self.held.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(secrets: &[&str]) -> Stream {
        let texts = secrets.iter().map(|secret| (*secret).to_owned()).collect();
        Redactor(std::sync::Arc::new(super::super::Secrets { texts, ..Default::default() })).stream()
    }

    fn seen(secrets: &[&str], chunks: &[&str]) -> String {
        let mut stream = stream(secrets);
        let mut seen: Vec<u8> =
            chunks.iter().flat_map(|chunk| stream.pass(chunk.as_bytes()).into_owned()).collect();
        seen.extend(stream.finish());
        String::from_utf8(seen).unwrap()
    }

    #[test]
    fn secrets_are_masked_wherever_the_chunks_end() {
        for (secrets, text, shown) in [
            (&[][..], "anything", "anything"),
            (&["key"], "a key, keys, ke", "a [secret], [secret]s, ke"),
            (&["key"], "keykey", "[secret][secret]"),
            (&["one", "one-and-more", "only"], "one-and-more, one-and-", "[secret], [secret]-and-"),
            (&["abcd", "cdef"], "xabcdefx cdef", "x[secret]x [secret]"),
            (&["bc", "abcd", "cdef"], "xabcdefx", "x[secret]x"),
            (&["aab"], "aaab aa", "a[secret] aa"),
            (&["aaaa"], "aaaaaa a", "[secret] a"),
            (&["two\nlines"], "two\nlines two\nline", "[secret] two\nline"),
            (&["schlüssel"], "der schlüssel", "der [secret]"),
        ] {
            for first in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
                for second in (first..=text.len()).filter(|at| text.is_char_boundary(*at)) {
                    let chunks = [&text[..first], &text[first..second], &text[second..]];
                    assert_eq!(seen(secrets, &chunks), shown, "{chunks:?}");
                }
            }
        }
    }

    #[test]
    fn nothing_is_held_back_that_cannot_become_a_secret() {
        let mut stream = stream(&["secret"]);
        assert_eq!(stream.pass(b"a line\n")[..], b"a line\n"[..]);
        assert_eq!(stream.pass(b"sec")[..], b""[..]);
        assert_eq!(stream.pass(b"ond\nse")[..], b"second\n"[..]);
        assert_eq!(stream.finish(), b"se");
    }
}
