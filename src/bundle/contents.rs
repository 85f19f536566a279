//! The files of a directory that go into a bundle.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use regex::bytes::Regex;

use super::{
    LABEL_FILE,
    building::{BuildError, Member},
};
use crate::host::{
    files::{self, FileKind},
    input::{self, InputError, UnreadableInput},
};

/// The file that names what a bundle leaves out, in the syntax of `.gitignore`.
const IGNORE_FILE: &str = ".ccmignore";

/// Larger files are not searched for private keys.
const LARGEST_KEY: u64 = 1 << 20;

/// Private keys in PEM and age format.
static KEYS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"-----BEGIN [A-Z ]*PRIVATE KEY( BLOCK)?-----|AGE-SECRET-KEY-(PQ-)?1[0-9A-Z]{40}").ok()
});

/// Rules about the files of a bundle.
#[derive(Default)]
pub(crate) struct Rules {
    /// Files that go into the bundle although they look like secrets, relative to the directory.
    pub(crate) allowed: Vec<PathBuf>,
    /// Data that the hosts of the bundle do not read.
    pub(crate) unread: BTreeSet<PathBuf>,
}

/// Collects the files of a directory.
pub(super) struct Contents<'a> {
    root: &'a Path,
    /// The bundle.
    to: &'a Path,
    rules: &'a Rules,
    ignored: Gitignore,
}

impl<'a> Contents<'a> {
    pub(super) fn new(root: &'a Path, to: &'a Path, rules: &'a Rules) -> Result<Self, BuildError> {
        let path = root.join(IGNORE_FILE);
        let invalid = |error: ignore::Error| BuildError::Ignore { path: path.clone(), error };
        let mut builder = GitignoreBuilder::new(root);
        match input::read_file(&path, LARGEST_KEY) {
            Ok(bytes) => {
                for line in String::from_utf8_lossy(&bytes).lines() {
                    builder.add_line(None, line).map_err(invalid)?;
                }
            }
            Err(InputError::Missing) => {}
            Err(error) => return Err(UnreadableInput { path, error }.into()),
        }
        Ok(Self { root, to, rules, ignored: builder.build().map_err(invalid)? })
    }

    /// Adds the files and directories in a directory whose name in the bundle is `prefix`.
    pub(super) fn collect(
        &self,
        directory: &Path,
        prefix: &str,
        members: &mut Vec<Member>,
    ) -> Result<(), BuildError> {
        for name in files::names(directory)? {
            let path = directory.join(&name);
            let text = name.into_string().map_err(|_| BuildError::NotText(path.clone()))?;
            let is_own = prefix.is_empty() && [".git", LABEL_FILE, IGNORE_FILE].contains(&text.as_str());
            if is_own || path == self.to || files::is_temporary_name(text.as_ref()) {
                continue;
            }
            let Some(entry) = files::inspect(&path)? else { continue };
            let is_directory = entry.kind == FileKind::Directory;
            if self.ignored.matched(&path, is_directory).is_ignore() || self.rules.unread.contains(&path) {
                continue;
            }
            let name = format!("{prefix}{text}");
            match entry.kind {
                FileKind::Directory => {
                    let name = format!("{name}/");
                    self.collect(&path, &name, members)?;
                    members.push(Member { name, path, mode: 0o755, kind: FileKind::Directory });
                }
                FileKind::File => {
                    self.check(&text, &path, entry.size)?;
                    let mode = if entry.mode & 0o111 == 0 { 0o644 } else { 0o755 };
                    members.push(Member { name, path, mode, kind: FileKind::File });
                }
                _ => return Err(BuildError::Special(path)),
            }
        }
        Ok(())
    }

    /// Fails if a file looks like a secret in plain text.
    fn check(&self, name: &str, path: &Path, size: u64) -> Result<(), BuildError> {
        let below = path.strip_prefix(self.root).unwrap_or(path);
        if size > LARGEST_KEY || self.rules.allowed.iter().any(|allowed| allowed == below) {
            return Ok(());
        }
        let bytes = input::read_file(path, LARGEST_KEY)
            .map_err(|error| UnreadableInput { path: path.to_owned(), error })?;
        match secret_in(name, &bytes) {
            Some(what) => Err(BuildError::Secret { path: below.to_owned(), what }),
            None => Ok(()),
        }
    }
}

/// Returns what a file looks like if it looks like a secret in plain text.
fn secret_in(name: &str, bytes: &[u8]) -> Option<&'static str> {
    const SAMPLES: [&str; 4] = ["example", "sample", "template", "dist"];
    let holds = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    let is_environment = match name.strip_prefix(".env") {
        Some("") => true,
        Some(rest) => rest.strip_prefix('.').is_some_and(|rest| !SAMPLES.contains(&rest)),
        None => false,
    };
    if is_environment && !holds("sops_mac=") {
        return Some("a file of secret variables");
    }
    KEYS.as_ref().is_some_and(|keys| keys.is_match(bytes)).then_some("a private key")
}

#[cfg(test)]
mod tests {
    use super::secret_in;

    #[test]
    fn private_keys_and_environments_look_like_secrets() {
        let age = format!("AGE-SECRET-KEY-1{}", "Q".repeat(58));
        for (name, content, is_secret) in [
            (".env", "A=b", true),
            (".env.production", "A=b", true),
            (".env.example", "A=", false),
            (".env", "A=ENC[x]\nsops_mac=ENC[x]", false),
            ("prod.env", "A=b", false),
            ("id_ed25519", "-----BEGIN OPENSSH PRIVATE KEY-----\n", true),
            ("tls.yaml", "key: |\n  -----BEGIN PRIVATE KEY-----\n", true),
            ("key.asc", "-----BEGIN PGP PRIVATE KEY BLOCK-----", true),
            ("tls.crt", "-----BEGIN CERTIFICATE-----\n", false),
            ("key.pub", "-----BEGIN PUBLIC KEY-----\n", false),
            ("keys.txt", &age, true),
            ("README", "a key such as AGE-SECRET-KEY-1...", false),
            ("data.yaml", "-----BEGIN AGE ENCRYPTED FILE-----", false),
        ] {
            assert_eq!(secret_in(name, content.as_bytes()).is_some(), is_secret, "{name}: {content}");
        }
    }
}
