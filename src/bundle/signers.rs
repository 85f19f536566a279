//! Who may sign: the allowed-signers file of ssh-keygen(1).

use std::path::Path;

use jiff::{Timestamp, civil, tz::TimeZone};

use super::{NAMESPACE, VerifyError, key::PublicKey};
use crate::host::input::{self, UnreadableInput};

const LARGEST: u64 = 1 << 20;

/// The keys in an allowed-signers file.
#[derive(Debug)]
pub(crate) struct AllowedSigners {
    /// What the file is called in messages.
    name: String,
    signers: Vec<Signer>,
}

#[derive(Debug)]
struct Signer {
    principal: String,
    key: PublicKey,
    after: Option<Timestamp>,
    before: Option<Timestamp>,
}

/// Why there is no list of signers.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SignersError {
    #[error(transparent)]
    Unreadable(#[from] UnreadableInput),
    #[error("{file}:{line}: {reason}")]
    Invalid { file: String, line: usize, reason: String },
}

impl AllowedSigners {
    pub(crate) fn read(path: &Path) -> Result<Self, SignersError> {
        Self::parse(&path.display().to_string(), &String::from_utf8_lossy(&Self::text(path)?))
    }

    /// Reads the file without judging it.
    pub(crate) fn text(path: &Path) -> Result<Vec<u8>, SignersError> {
        let bytes = input::read_file(path, LARGEST)
            .map_err(|error| UnreadableInput { path: path.to_owned(), error })?;
        Ok(bytes)
    }

    fn parse(name: &str, text: &str) -> Result<Self, SignersError> {
        let mut signers = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let invalid =
                |reason: String| SignersError::Invalid { file: name.to_owned(), line: number + 1, reason };
            signers.extend(signer(line).map_err(invalid)?);
        }
        Ok(Self { name: name.to_owned(), signers })
    }

    /// Returns who owns a key that may sign now.
    pub(super) fn find(&self, key: &PublicKey, now: Timestamp) -> Result<String, VerifyError> {
        let owners = || self.signers.iter().filter(|signer| signer.key == *key);
        let is_valid = |signer: &&Signer| {
            signer.after.is_none_or(|after| now >= after) && signer.before.is_none_or(|before| now < before)
        };
        match (owners().find(is_valid), owners().next()) {
            (Some(signer), _) => Ok(signer.principal.clone()),
            (None, Some(signer)) => {
                Err(VerifyError::NotValidNow { principal: signer.principal.clone(), file: self.name.clone() })
            }
            (None, None) => {
                Err(VerifyError::UnknownSigner { fingerprint: key.fingerprint(), file: self.name.clone() })
            }
        }
    }
}

/// Reads a line; `None` if its key is for another purpose, or that of an authority.
fn signer(line: &str) -> Result<Option<Signer>, String> {
    let words = words(line)?;
    let [principal, rest @ ..] = words.as_slice() else { return Ok(None) };
    let is_kind =
        |word: &String| word.starts_with("ssh-") || word.starts_with("ecdsa-") || word.starts_with("sk-");
    let at = rest.iter().position(is_kind).ok_or("no key was found: write `PRINCIPAL KIND KEY`")?;
    let key = rest.get(at + 1).and_then(|encoded| PublicKey::from_words(&rest[at], encoded));
    let key = key.ok_or_else(|| format!("the key behind `{}` is damaged", rest[at]))?;
    let mut signer = Signer { principal: principal.clone(), key, after: None, before: None };
    for option in rest[..at].iter().flat_map(|options| split_options(options)) {
        let (name, value) = option.split_once('=').unwrap_or((&option, ""));
        match name.to_ascii_lowercase().as_str() {
            "namespaces"
                if !value.split(',').any(|pattern| fits(pattern.as_bytes(), NAMESPACE.as_bytes())) =>
            {
                return Ok(None);
            }
            "namespaces" => {}
            "valid-after" => signer.after = Some(time(value)?),
            "valid-before" => signer.before = Some(time(value)?),
            // Certificates are not supported; the authority's own key is no signer's.
            "cert-authority" => return Ok(None),
            _ => return Err(format!("unknown option `{name}`")),
        }
    }
    Ok(Some(signer))
}

/// Splits at blanks outside of quotes, and takes the quotes away from what is quoted as a whole.
fn words(line: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for letter in line.chars() {
        match letter {
            '"' => {
                quoted = !quoted;
                word.push(letter);
            }
            ' ' | '\t' if !quoted => words.push(std::mem::take(&mut word)),
            other => word.push(other),
        }
    }
    words.push(word);
    if quoted {
        return Err("a quote is not closed".to_owned());
    }
    words.retain(|word| !word.is_empty());
    if let Some(first) = words.first_mut() {
        *first = first.replace('"', "");
    }
    Ok(words)
}

/// Splits options at commas outside of quotes, which are taken away.
fn split_options(options: &str) -> Vec<String> {
    let (mut all, mut option, mut quoted) = (Vec::new(), String::new(), false);
    for letter in options.chars() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => all.push(std::mem::take(&mut option)),
            other => option.push(other),
        }
    }
    all.push(option);
    all
}

/// Whether a text fits a pattern with `*` and `?`.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern, text) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => fits(rest, text) || !text.is_empty() && fits(pattern, &text[1..]),
        ([b'?', pattern @ ..], [_, text @ ..]) => fits(pattern, text),
        ([one, pattern @ ..], [other, text @ ..]) if one == other => fits(pattern, text),
        _ => false,
    }
}

/// Reads `YYYYMMDD[HHMM[SS]][Z]`. Without the `Z` ssh-keygen takes local time; here it is UTC everywhere.
fn time(text: &str) -> Result<Timestamp, String> {
    let wrong = || format!("`{text}` is no time: write YYYYMMDD or YYYYMMDDHHMM, with a Z for UTC");
    let digits = text.strip_suffix(['Z', 'z']).unwrap_or(text);
    if ![8, 12, 14].contains(&digits.len()) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    let part =
        |range: std::ops::Range<usize>| digits.get(range).map_or(Some(0), |part| part.parse::<i16>().ok());
    let small = |range| part(range).and_then(|number| i8::try_from(number).ok());
    let read = || {
        let date = civil::Date::new(part(0..4)?, small(4..6)?, small(6..8)?).ok()?;
        let time = civil::Time::new(small(8..10)?, small(10..12)?, small(12..14)?, 0).ok()?;
        TimeZone::UTC.to_timestamp(date.to_datetime(time)).ok()
    };
    read().ok_or_else(wrong)
}
