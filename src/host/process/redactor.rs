//! Secrets in what a program writes: hidden on their way in, before the output is cut anywhere.

use std::borrow::Cow;

use crate::vocabulary::Secret;

/// Lets a stream of bytes through with every secret replaced, wherever the stream is cut into chunks.
///
/// What may be the beginning of a secret is held back until more comes or the stream ends. Secrets that overlap are
/// hidden as one.
pub(super) struct Redactor {
    /// In the order of their bytes.
    secrets: Vec<Vec<u8>>,
    /// The length of the shortest.
    shortest: usize,
    /// Whether a secret begins with this byte.
    is_first: [bool; 256],
    /// What was not let through yet.
    held: Vec<u8>,
    /// How much of that belongs to a secret that was replaced already.
    replaced: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum More {
    Follows,
    No,
}

impl Redactor {
    pub(super) fn over(secrets: &[&str]) -> Self {
        let mut secrets: Vec<Vec<u8>> = secrets.iter().map(|secret| secret.as_bytes().to_vec()).collect();
        secrets.retain(|secret| !secret.is_empty());
        secrets.sort_unstable();
        let shortest = secrets.iter().map(Vec::len).min().unwrap_or_default();
        let mut is_first = [false; 256];
        for secret in &secrets {
            is_first[usize::from(secret[0])] = true;
        }
        Self { secrets, shortest, is_first, held: Vec::new(), replaced: 0 }
    }

    /// What can be seen now that these bytes have come.
    pub(super) fn pass<'b>(&mut self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        if self.secrets.is_empty() {
            return Cow::Borrowed(bytes);
        }
        self.held.extend_from_slice(bytes);
        Cow::Owned(self.lift(More::Follows))
    }

    /// What can be seen in the end.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        self.lift(More::No)
    }

    fn lift(&mut self, more: More) -> Vec<u8> {
        let (mut seen, mut at) = (Vec::with_capacity(self.held.len()), 0);
        while at < self.held.len() {
            let rest = &self.held[at..];
            let plain = rest.iter().position(|byte| self.is_first[usize::from(*byte)]).unwrap_or(rest.len());
            if plain > 0 {
                let hidden = self.replaced.saturating_sub(at).min(plain);
                seen.extend_from_slice(&rest[hidden..plain]);
                at += plain;
                continue;
            }
            let begins = |secret: &[u8]| secret.len() > rest.len() && secret.starts_with(rest);
            if more == More::Follows && self.candidates(rest).any(begins) {
                break;
            }
            let here = self.candidates(rest).filter(|secret| rest.starts_with(secret)).map(<[u8]>::len).max();
            if let Some(length) = here {
                if at >= self.replaced {
                    seen.extend_from_slice(Secret::MASK.as_bytes());
                }
                self.replaced = self.replaced.max(at + length);
            } else if at >= self.replaced {
                seen.push(rest[0]);
            }
            at += 1;
        }
        self.held.drain(..at);
        self.replaced = self.replaced.saturating_sub(at);
        seen
    }

    /// The secrets that begin as this does, as far as all secrets go. A text of many lines is many secrets.
    fn candidates(&self, rest: &[u8]) -> impl Iterator<Item = &[u8]> {
        let start = &rest[..rest.len().min(self.shortest)];
        let first = self.secrets.partition_point(|secret| secret.as_slice() < start);
        self.secrets[first..].iter().map(Vec::as_slice).take_while(move |secret| secret.starts_with(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(secrets: &[&str], chunks: &[&str]) -> String {
        let mut redactor = Redactor::over(secrets);
        let mut seen: Vec<u8> =
            chunks.iter().flat_map(|chunk| redactor.pass(chunk.as_bytes()).into_owned()).collect();
        seen.extend(redactor.finish());
        String::from_utf8(seen).unwrap()
    }

    #[test]
    fn secrets_are_replaced_wherever_the_chunks_end() {
        for (secrets, text, shown) in [
            (&[][..], "anything", "anything"),
            (&["key"], "a key, keys, ke", "a [secret], [secret]s, ke"),
            (&["key"], "keykey", "[secret][secret]"),
            (&["one", "one-and-more", "only"], "one-and-more, one-and-", "[secret], [secret]-and-"),
            (&["abcd", "cdef"], "xabcdefx cdef", "x[secret]x [secret]"),
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
        let mut redactor = Redactor::over(&["secret"]);
        assert_eq!(redactor.pass(b"a line\n")[..], b"a line\n"[..]);
        assert_eq!(redactor.pass(b"sec")[..], b""[..]);
        assert_eq!(redactor.pass(b"ond\nse")[..], b"second\n"[..]);
        assert_eq!(redactor.finish(), b"se");
    }
}
