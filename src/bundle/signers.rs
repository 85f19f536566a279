//! The allowed-signers file of ssh-keygen(1), read as `ssh-keygen -Y verify` reads it.
//!
//! The reader follows the C functions step by step, including the results that look odd: ssh-keygen skips a line with an
//! error, lets a negated pattern win, and normalizes the 31st of February.

mod options;
mod time;

use std::path::Path;

use jiff::{Timestamp, tz::TimeZone};

use self::options::Options;
use super::{NAMESPACE, VerifyError, key::PublicKey};
use crate::host::input::{self, UnreadableInput};

const LARGEST: u64 = 1 << 20;

/// The keys in an allowed-signers file.
#[derive(Debug)]
pub(crate) struct AllowedSigners {
    /// What the file is called in messages.
    name: String,
    signers: Vec<Signer>,
    /// The first line with an error.
    invalid: Option<SignersError>,
}

#[derive(Debug)]
struct Signer {
    principals: String,
    key: PublicKey,
    options: Options,
}

/// Why there is no list of signers.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum SignersError {
    #[error("{0}")]
    Unreadable(String),
    #[error("{file}:{line}: {reason}")]
    Invalid { file: String, line: usize, reason: String },
}

impl AllowedSigners {
    /// Reads the file. Like ssh-keygen, this skips lines with errors; see [`Self::check`].
    pub(crate) fn read(path: &Path) -> Result<Self, SignersError> {
        Ok(Self::parse(&path.display().to_string(), &Self::text(path)?, &TimeZone::system()))
    }

    /// Reads the text of the file.
    pub(crate) fn text(path: &Path) -> Result<Vec<u8>, SignersError> {
        input::read_file(path, LARGEST).map_err(|error| {
            SignersError::Unreadable(UnreadableInput { path: path.to_owned(), error }.to_string())
        })
    }

    /// Reports the first line with an error.
    pub(crate) fn check(self) -> Result<(), SignersError> {
        self.invalid.map_or(Ok(()), Err)
    }

    fn parse(name: &str, text: &[u8], zone: &TimeZone) -> Self {
        let (mut signers, mut invalid) = (Vec::new(), None);
        for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
            match signer(line, zone) {
                Ok(signer) => signers.extend(signer),
                Err(reason) if invalid.is_none() => {
                    let file = name.to_owned();
                    invalid = Some(SignersError::Invalid { file, line: number + 1, reason });
                }
                Err(_) => {}
            }
        }
        Self { name: name.to_owned(), signers, invalid }
    }

    /// Returns the principals of a key that can sign now.
    pub(super) fn find(&self, key: &PublicKey, now: Timestamp) -> Result<String, VerifyError> {
        let owners = || self.signers.iter().filter(|signer| signer.key == *key && signer.is_allowed());
        match (owners().find(|signer| signer.options.is_valid_at(now)), owners().next(), &self.invalid) {
            (Some(signer), ..) => Ok(signer.principals.clone()),
            (None, Some(signer), _) => Err(VerifyError::NotValidNow {
                principal: signer.principals.clone(),
                file: self.name.clone(),
            }),
            (None, None, Some(invalid)) => Err(VerifyError::InvalidSigners(invalid.clone())),
            (None, None, None) => {
                Err(VerifyError::UnknownSigner { fingerprint: key.fingerprint(), file: self.name.clone() })
            }
        }
    }
}

impl Signer {
    /// Returns whether the line names an identity and allows signatures for ccm.
    fn is_allowed(&self) -> bool {
        let is_identity =
            |pattern: &str| !pattern.starts_with('!') && matches_list(pattern, &self.principals);
        let options = &self.options;
        !options.is_authority
            && options.namespaces.as_ref().is_none_or(|list| matches_list(NAMESPACE, list))
            && self.principals.split(',').any(is_identity)
    }
}

/// Reads a line: principals, options, key. `None` if it is empty or a comment.
fn signer(line: &[u8], zone: &TimeZone) -> Result<Option<Signer>, String> {
    let line = line.split(|byte| *byte == 0).next().unwrap_or_default();
    let line = without(b" \t\r\n", line);
    if line.is_empty() || line.starts_with(b"#") {
        return Ok(None);
    }
    let (principals, rest) = principals(line).ok_or("write `PRINCIPAL KIND KEY`")?;
    let principals = String::from_utf8_lossy(&principals).into_owned();
    if let Some(key) = key(rest) {
        return Ok(Some(Signer { principals, key, options: Options::default() }));
    }
    let end = options::end(rest).ok_or("a quote in the options is not closed")?;
    let (options, rest) = rest.split_at(end);
    if rest.is_empty() {
        return Err("no key: write `PRINCIPAL KIND KEY`".to_owned());
    }
    let key =
        key(without(b" \t", rest)).ok_or("invalid options or key: write `PRINCIPAL OPTIONS KIND KEY`")?;
    Ok(Some(Signer { principals, key, options: Options::parse(options, zone)? }))
}

/// Splits the principals off. They end at whitespace or, if they contain a quote, at the next one.
fn principals(line: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let is_end = |byte: &u8| b" \t\r\n\"".contains(byte);
    let at = line.iter().position(is_end)?;
    let (start, rest) = (&line[..at], &line[at + 1..]);
    if line[at] != b'"' {
        return Some((start.to_vec(), without(b" \t\r\n", rest)));
    }
    let close = rest.iter().position(|byte| *byte == b'"')?;
    Some(([start, &rest[..close]].concat(), without(b" \t\r\n", &rest[close + 1..])))
}

/// Returns a text without these bytes at its start.
fn without<'t>(bytes: &[u8], text: &'t [u8]) -> &'t [u8] {
    let at = text.iter().position(|byte| !bytes.contains(byte)).unwrap_or(text.len());
    &text[at..]
}

/// Reads the key at the start of a text.
fn key(text: &[u8]) -> Option<PublicKey> {
    let is_blank = |byte: &u8| b" \t".contains(byte);
    let space = text.iter().position(is_blank)?;
    let (kind, rest) = text.split_at(space);
    let encoded = without(b" \t", rest).split(is_blank).next()?;
    let encoded: Vec<u8> = encoded.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    PublicKey::from_words(str::from_utf8(kind).ok()?, str::from_utf8(&encoded).ok()?)
}

/// Returns whether a text matches a list of patterns, of which each negated one (`!PATTERN`) excludes what it matches.
fn matches_list(text: &str, list: &str) -> bool {
    let mut is_match = false;
    for pattern in list.split_terminator(',') {
        match pattern.strip_prefix('!') {
            Some(pattern) if matches(pattern.as_bytes(), text.as_bytes()) => return false,
            Some(_) => {}
            None => is_match |= matches(pattern.as_bytes(), text.as_bytes()),
        }
    }
    is_match
}

/// Returns whether a text matches a pattern with `*` and `?`.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut seen) = (0, 0);
    // The last `*`, and up to where it matches.
    let mut star: Option<(usize, usize)> = None;
    while seen < text.len() {
        match (pattern.get(at), star) {
            (Some(b'*'), _) => {
                star = Some((at, seen));
                at += 1;
            }
            (Some(byte), _) if *byte == b'?' || *byte == text[seen] => (at, seen) = (at + 1, seen + 1),
            (_, Some((back, upto))) => {
                star = Some((back, upto + 1));
                (at, seen) = (back + 1, upto + 1);
            }
            (_, None) => return false,
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests;
