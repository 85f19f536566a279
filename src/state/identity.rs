//! The key of this machine's state directory: an age identity in `STATE/identity`, created when it is first needed.
//!
//! What ccm stores of secrets is encrypted for it or hashed with it, so that a copy of the state directory without
//! `identity` reveals nothing. Losing the key loses what was encrypted with it, and nothing else.

use age::{
    secrecy::ExposeSecret,
    x25519::{Identity, Recipient},
};
use ring::hmac::{HMAC_SHA256, Key, sign, verify};
use zeroize::{Zeroize, Zeroizing};

use super::{StateDirectory, StateError, read};

pub(super) const FILE: &str = "identity";
/// Separates the key for hashes from all other uses of the identity.
const HASH_LABEL: &[u8] = b"ccm state: keyed hash 1";

/// The key of a state directory.
pub(crate) struct StateIdentity {
    identity: Identity,
    hash_key: Key,
}

/// The ciphertext is damaged, or was encrypted for another identity.
#[derive(Debug, thiserror::Error)]
#[error("cannot decrypt with STATE/identity: {0}")]
pub(crate) struct Undecryptable(String);

impl StateDirectory {
    /// Returns the identity of this directory; `None` if there is none yet.
    pub(crate) fn identity(&self) -> Result<Option<StateIdentity>, StateError> {
        let Some(folder) = self.open()? else { return Ok(None) };
        let Some(bytes) = read(&folder, FILE)?.map(Zeroizing::new) else { return Ok(None) };
        let identity = parse(&bytes).ok_or_else(|| StateError::Damaged {
            path: folder.path().join(FILE),
            reason: "it is not an age identity".to_owned(),
        })?;
        Ok(Some(StateIdentity::new(identity)))
    }

    /// Returns the path of the identity of this directory.
    pub(crate) fn identity_path(&self) -> Option<std::path::PathBuf> {
        Some(self.path().ok()?.join(FILE))
    }

    /// Returns the identity of this directory, and creates it, mode 0600, if there is none yet.
    pub(crate) fn make_identity(&self) -> Result<StateIdentity, StateError> {
        if let Some(identity) = self.identity()? {
            return Ok(identity);
        }
        let identity = Identity::generate();
        let recipient = identity.to_public();
        let secret = identity.to_string();
        let content = Zeroizing::new(format!("# public key: {recipient}\n{}\n", secret.expose_secret()));
        if self.make()?.put_new(FILE, content.as_bytes())? {
            return Ok(StateIdentity::new(identity));
        }
        // Another process was faster.
        Ok(self.identity()?.unwrap_or_else(|| StateIdentity::new(identity)))
    }
}

impl StateIdentity {
    fn new(identity: Identity) -> Self {
        let secret = identity.to_string();
        let key = Key::new(HMAC_SHA256, secret.expose_secret().as_bytes());
        let mut derived = [0; 32];
        derived.copy_from_slice(sign(&key, HASH_LABEL).as_ref());
        let hash_key = Key::new(HMAC_SHA256, &derived);
        derived.zeroize();
        Self { identity, hash_key }
    }

    /// Returns the public key.
    pub(crate) fn recipient(&self) -> Recipient {
        self.identity.to_public()
    }

    /// Encrypts bytes in age format for this machine.
    pub(crate) fn encrypt(&self, plain: &[u8]) -> Result<Vec<u8>, age::EncryptError> {
        age::encrypt(&self.recipient(), plain)
    }

    /// Decrypts what [`StateIdentity::encrypt`] returned. The plain bytes are zeroed when they are dropped.
    pub(crate) fn decrypt(&self, encrypted: &[u8]) -> Result<Zeroizing<Vec<u8>>, Undecryptable> {
        let plain = age::decrypt(&self.identity, encrypted);
        plain.map(Zeroizing::new).map_err(|error| Undecryptable(error.to_string()))
    }

    /// Returns HMAC-SHA-256 of bytes: tells equal from different only to those who have the identity.
    pub(crate) fn keyed_hash(&self, bytes: &[u8]) -> [u8; 32] {
        let mut hash = [0; 32];
        hash.copy_from_slice(sign(&self.hash_key, bytes).as_ref());
        hash
    }

    /// Returns whether a text is the keyed hash of bytes, in hex. Takes the same time wherever they differ.
    pub(crate) fn verify_keyed_hash(&self, bytes: &[u8], hash: &str) -> bool {
        from_hex(hash).is_some_and(|hash| verify(&self.hash_key, bytes, &hash).is_ok())
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()).collect()
}

fn parse(bytes: &[u8]) -> Option<Identity> {
    let text = str::from_utf8(bytes).ok()?;
    text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    struct Directory(std::path::PathBuf);

    impl Directory {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().canonicalize().unwrap();
            let path = path.join(format!("ccm-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            Self(path)
        }

        fn state(&self) -> StateDirectory {
            StateDirectory::at(self.0.clone())
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn identity_is_created_once_and_is_private() {
        let directory = Directory::new("identity");
        assert!(directory.state().identity().unwrap().is_none());
        let first = directory.state().make_identity().unwrap();
        let mode = std::fs::metadata(directory.0.join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let again = directory.state().make_identity().unwrap();
        assert_eq!(first.recipient().to_string(), again.recipient().to_string());
        let encrypted = first.encrypt(b"a secret").unwrap();
        assert_eq!(again.decrypt(&encrypted).unwrap().as_slice(), b"a secret");
        assert_eq!(first.keyed_hash(b"a secret"), again.keyed_hash(b"a secret"));
        assert_ne!(first.keyed_hash(b"a secret"), first.keyed_hash(b"A secret"));
    }

    #[test]
    fn another_identity_decrypts_nothing_and_hashes_differently() {
        let (one, other) = (Directory::new("identity-one"), Directory::new("identity-other"));
        let one = one.state().make_identity().unwrap();
        let other = other.state().make_identity().unwrap();
        assert!(other.decrypt(&one.encrypt(b"a secret").unwrap()).is_err());
        assert_ne!(one.keyed_hash(b"a secret"), other.keyed_hash(b"a secret"));
    }

    #[test]
    fn damaged_identity_is_an_error() {
        let directory = Directory::new("identity-damaged");
        directory.state().make_identity().unwrap();
        std::fs::write(directory.0.join(FILE), "AGE-SECRET-KEY-1BROKEN\n").unwrap();
        let refused = directory.state().make_identity().err().unwrap().to_string();
        assert!(
            refused.ends_with("identity in the state directory is damaged: it is not an age identity"),
            "{refused}"
        );
    }
}
