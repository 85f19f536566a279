//! Opens encrypted data with the identities of the controller, for hosts that have none for it.

use std::collections::HashMap;

use crate::{
    host::memory,
    push::{Opened, Request},
    secrets::{Keyring, digest_of_part, sealed_parts},
};

/// Encrypted parts of files, by their digests.
#[derive(Default)]
pub(super) struct SealedParts(HashMap<String, Vec<u8>>);

impl SealedParts {
    /// Adds the parts of a file.
    pub(super) fn add(&mut self, name: &str, bytes: &[u8]) {
        self.0.extend(sealed_parts(name, bytes).into_iter().map(|part| (digest_of_part(&part), part)));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the parts of the files that only one host gets.
    pub(super) fn of_host(files: &[(String, String)]) -> Self {
        let mut parts = Self::default();
        for (name, text) in files {
            parts.add(name, text.as_bytes());
        }
        parts
    }
}

/// Opens parts of the files that were sent to a host.
pub(super) struct Opener {
    pub(super) keyring: Keyring,
    /// Parts of the files that all hosts get.
    pub(super) shared: SealedParts,
}

impl Opener {
    /// Returns the parts with these digests in plain text, as far as they were sent to the host and an identity opens them.
    pub(super) fn open(&self, request: &Request, digests: &[String]) -> Opened {
        memory::protect();
        let own = SealedParts::of_host(&request.files);
        let plain = |digest: &String| {
            let part = self.shared.0.get(digest).or_else(|| own.0.get(digest))?;
            Some((digest.clone(), self.keyring.decrypt(part).ok()?))
        };
        digests.iter().filter_map(plain).collect()
    }
}
