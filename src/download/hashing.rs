//! Checksums of data that arrives in chunks.

use sha2::{Digest, Sha256, Sha512};

use crate::vocabulary::{Algorithm, Checksum};

/// Size of the chunks in which files are read. ccm checks the time limit between chunks.
pub(crate) const CHUNK: usize = 128 * 1024;

/// SHA-256 and optionally SHA-512 of the same bytes.
pub(crate) struct Hashes {
    sha256: Sha256,
    sha512: Option<Sha512>,
}

impl Hashes {
    pub(crate) fn new(wanted: Algorithm) -> Self {
        Self { sha256: Sha256::new(), sha512: (wanted == Algorithm::Sha512).then(Sha512::new) }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.sha256.update(bytes);
        if let Some(sha512) = &mut self.sha512 {
            sha512.update(bytes);
        }
    }

    /// Returns the checksums, SHA-256 first.
    pub(crate) fn finish(self) -> Vec<Checksum> {
        let mut all = vec![Checksum::Sha256(self.sha256.finalize().into())];
        all.extend(self.sha512.map(|hash| Checksum::Sha512(Box::new(hash.finalize().into()))));
        all
    }
}
