//! SSH keys that can log in as a user: `.ssh/authorized_keys` in the home directory.

use std::path::{Path, PathBuf};

use base64::{Engine, engine::general_purpose::STANDARD};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    host::files::{self, Attributes, FileError, Parents},
    resource::{Context, Error},
    types::disk::{blame, note_parent},
};

/// Mode of the file. `sshd` refuses keys that other users could have written.
const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;

/// A line of an `authorized_keys` file: optional options, the key type, the key, and a comment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline)]
pub(crate) struct AuthorizedKey {
    line: String,
    /// Key type and key, which identify a line.
    identity: String,
}

/// Reason why a line is not a key.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotAKey {
    #[error("a key is one line, and this has several")]
    SeveralLines,
    #[error("\"{0}\" is not a key: it needs a kind such as ssh-ed25519 and the key in base64")]
    NoKind(String),
    #[error("\"{0}\" is not a key: what follows {1} is not base64")]
    NotBase64(String, String),
    #[error("\"{0}\" is not a key: it says {1}, and its bytes say something else")]
    OtherKind(String, String),
}

/// Key types that `sshd` supports; certificates have types of their own.
const KINDS: &[&str] = &[
    "ssh-ed25519",
    "ssh-rsa",
    "ssh-dss",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
];

impl TryFrom<String> for AuthorizedKey {
    type Error = NotAKey;

    fn try_from(text: String) -> Result<Self, NotAKey> {
        let line = text.trim();
        if line.contains(['\n', '\r']) {
            return Err(NotAKey::SeveralLines);
        }
        let shown = || {
            let start: String = line.chars().take(40).collect();
            if start.len() < line.len() { format!("{start}...") } else { start }
        };
        let words: Vec<&str> = words(line).collect();
        let at = words.iter().position(|word| is_kind(word)).ok_or_else(|| NotAKey::NoKind(shown()))?;
        // Before the kind there can only be one word of options.
        let (kind, key) = match words.get(at + 1) {
            Some(key) if at <= 1 => (words[at], *key),
            _ => return Err(NotAKey::NoKind(shown())),
        };
        let bytes = STANDARD.decode(key).map_err(|_| NotAKey::NotBase64(shown(), kind.to_owned()))?;
        let named = bytes.get(4..4 + kind.len());
        if named != Some(kind.as_bytes()) {
            return Err(NotAKey::OtherKind(shown(), kind.to_owned()));
        }
        Ok(Self { line: line.to_owned(), identity: format!("{kind} {key}") })
    }
}

impl From<AuthorizedKey> for String {
    fn from(key: AuthorizedKey) -> Self {
        key.line
    }
}

fn is_kind(word: &str) -> bool {
    KINDS.contains(&word) || word.ends_with("-cert-v01@openssh.com")
}

/// Splits a line at spaces outside of double quotes, which options can contain.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    line.split(move |sign: char| {
        quoted ^= sign == '"';
        !quoted && (sign == ' ' || sign == '\t')
    })
    .filter(|word| !word.is_empty())
}

/// Whether keys that are not declared stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Others {
    Stay,
    Go,
}

/// Returns the desired content of the file, or `None` if the file is up to date.
pub(super) fn wanted_text(old: &str, keys: &[AuthorizedKey], others: Others) -> Option<String> {
    let is_wanted = |line: &str| {
        let found = AuthorizedKey::try_from(line.to_owned()).ok();
        found.and_then(|found| keys.iter().find(|key| key.identity == found.identity))
    };
    let mut text = String::new();
    let mut seen: Vec<&str> = Vec::new();
    for line in old.lines() {
        let is_comment = line.trim().is_empty() || line.trim_start().starts_with('#');
        match is_wanted(line) {
            // A line that says more or less than was asked for, such as other options, becomes what was asked for.
            Some(key) if !seen.contains(&key.identity.as_str()) => {
                seen.push(&key.identity);
                text.push_str(&key.line);
            }
            None if is_comment || others == Others::Stay => text.push_str(line),
            Some(_) | None => continue,
        }
        text.push('\n');
    }
    for key in keys {
        if !seen.contains(&key.identity.as_str()) {
            seen.push(&key.identity);
            text.push_str(&key.line);
            text.push('\n');
        }
    }
    (text != old).then_some(text)
}

/// Returns the path of a user's keys.
pub(super) fn path(home: &str) -> PathBuf {
    Path::new(home).join(".ssh/authorized_keys")
}

/// Existing keys.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) text: String,
    /// Whether the file and its directory belong to the user and no other user can read them.
    pub(super) is_protected: bool,
}

impl Found {
    /// Returns the keys in the file.
    pub(super) fn lines(&self) -> Vec<&str> {
        self.text.lines().filter(|line| AuthorizedKey::try_from((*line).to_owned()).is_ok()).collect()
    }
}

/// Reads the existing keys; none if the file does not exist.
pub(super) fn read(home: &str, uid: u32) -> Result<Found, Error> {
    const LARGEST: u64 = 16 << 20;
    let path = path(home);
    let failed = |error| Error::new(format!("cannot read {}: {error}", path.display())).on("authorized_keys");
    match files::open_regular(&path) {
        Ok(Some((Some(file), entry))) if entry.size <= LARGEST => {
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut std::io::Read::take(file, LARGEST), &mut bytes)
                .map_err(failed)?;
            let text = String::from_utf8(bytes).map_err(|_| {
                Error::new(format!("{} is not UTF-8 text", path.display())).on("authorized_keys")
            })?;
            let is_protected = (entry.uid, entry.mode) == (uid, FILE_MODE) && has_folder(&path, uid)?;
            Ok(Found { text, is_protected })
        }
        Ok(Some(_)) => {
            Err(Error::new(format!("{} is not a file of keys", path.display())).on("authorized_keys"))
        }
        Ok(None) | Err(FileError { problem: files::Problem::ParentMissing { .. }, .. }) => {
            Ok(Found { text: String::new(), is_protected: true })
        }
        Err(error) => Err(Error::from(error).on("authorized_keys")),
    }
}

/// Returns whether the directory of the keys has the right owner and mode.
fn has_folder(path: &Path, uid: u32) -> Result<bool, FileError> {
    let Some(folder) = path.parent() else { return Ok(true) };
    Ok(files::inspect(folder)?.is_some_and(|entry| (entry.uid, entry.mode) == (uid, FOLDER_MODE)))
}

/// Writes the file as the `file` type does: to a temporary file, synced and renamed.
pub(super) fn write(home: &str, text: &str, uid: u32, gid: u32, cx: &Context) -> Result<(), Error> {
    let path = path(home);
    let attempt = || {
        if let Some(folder) = path.parent()
            && !has_folder(&path, uid)?
        {
            note_parent(folder, cx);
            files::make_directory(folder, Attributes { uid, gid, mode: FOLDER_MODE }, Parents::Expect)?;
        }
        note_parent(&path, cx);
        files::replace(&path, Attributes { uid, gid, mode: FILE_MODE }, |out| out.write_all(text.as_bytes()))
    };
    attempt().map_err(|error| blame(error, cx).on("authorized_keys"))
}
