//! Digests of paths and keyed hashes of secrets, for plans.

use std::{
    path::Path,
    sync::{Mutex, PoisonError},
};

use super::{
    super::{StateDirectory, StateError},
    Camera, Depth, Keeping, Objects, Secrecy, Snapshot,
    snapshot::sha256_of,
};
use crate::{
    host::files::{CopyInterrupted, FileError, hex},
    state::{StateIdentity, Undecryptable},
};

/// Separates the hashes of fields from all other uses of the key.
const FIELD_LABEL: &str = "ccm plan: field 1\n";

/// Computes digests of paths and keyed hashes of secrets. Keeps no copies.
pub(crate) struct Measure {
    identity: StateIdentity,
    public: Mutex<Objects>,
    secret: Mutex<Objects>,
}

impl StateDirectory {
    /// Opens the key of this directory for digests, and creates it if it does not exist.
    pub(crate) fn measure(&self) -> Result<Measure, StateError> {
        let history = self.make_history()?;
        Ok(Measure {
            identity: self.make_identity()?,
            public: Mutex::new(history.objects(Secrecy::Public)?),
            secret: Mutex::new(history.objects(Secrecy::Secret)?),
        })
    }
}

impl Measure {
    pub(crate) fn identity(&self) -> &StateIdentity {
        &self.identity
    }

    /// Returns the keyed hash of a field that contains a secret.
    pub(crate) fn keyed(&self, text: &str) -> String {
        hex(&self.identity.keyed_hash(format!("{FIELD_LABEL}{text}").as_bytes()))
    }

    /// Returns the digest of a content, and the content to store. A secret content is encrypted, and its digest keyed.
    pub(crate) fn content(&self, content: &[u8], is_secret: bool) -> Result<(String, Vec<u8>), StateError> {
        if !is_secret {
            return Ok((sha256_of(content), content.to_owned()));
        }
        let encrypted = self.identity.encrypt(content);
        let encrypted = encrypted.map_err(|error| StateError::Io {
            path: "identity".into(),
            error: std::io::Error::other(error),
        })?;
        Ok((self.keyed(&sha256_of(content)), encrypted))
    }

    /// Returns the plain content of a secret.
    pub(crate) fn decrypted(&self, content: &[u8]) -> Result<Vec<u8>, Undecryptable> {
        self.identity.decrypt(content).map(|plain| plain.to_vec())
    }

    /// Returns the state of a path. The digest of a secret content is a keyed hash.
    pub(crate) fn snapshot(
        &self,
        path: &Path,
        depth: Depth,
        secrecy: Secrecy,
        tick: &dyn Fn() -> Result<(), CopyInterrupted>,
    ) -> Result<Snapshot, FileError> {
        let objects = if secrecy == Secrecy::Secret { &self.secret } else { &self.public };
        let objects = &*objects.lock().unwrap_or_else(PoisonError::into_inner);
        Camera { objects, keeping: Keeping::Nothing, tick }.take(path, depth)
    }
}
