//! Encrypted parts of files, which a controller opens for a host that has no identity for them.

use sha2::{Digest, Sha256};

use super::{
    Format, Keyring, is_age_file,
    keyring::NoKey,
    sops::{self, Metadata},
};
use crate::{document::Source, host::files::hex};

/// Larger files are not searched.
const LARGEST: usize = 16 << 20;

/// A file with encrypted data.
enum Sealed {
    /// A file in age format.
    File,
    Document(Box<Metadata>),
}

/// Returns the encrypted parts of a file, each in age format: the file itself, or the data key for each recipient.
pub(crate) fn sealed_parts(name: &str, bytes: &[u8]) -> Vec<Vec<u8>> {
    match sealed(name, bytes) {
        None => Vec::new(),
        Some(Sealed::File) => vec![bytes.to_vec()],
        Some(Sealed::Document(metadata)) => {
            let keys = metadata.groups.iter().flat_map(|group| &group.age);
            keys.map(|key| key.encrypted.clone().into_bytes()).collect()
        }
    }
}

/// Same as [`sealed_parts`], without the parts of a file that the identities open.
pub(crate) fn unopened_parts(name: &str, bytes: &[u8], keyring: &Keyring) -> Vec<Vec<u8>> {
    let is_opened = match sealed(name, bytes) {
        None => true,
        Some(Sealed::File) => keyring.decrypt(bytes).is_ok(),
        Some(Sealed::Document(metadata)) => {
            !matches!(keyring.data_key(&metadata), Err(NoKey::NoIdentity { .. } | NoKey::Refused(_)))
        }
    };
    if is_opened { Vec::new() } else { sealed_parts(name, bytes) }
}

/// Returns the digest that stands for a part.
pub(crate) fn digest_of_part(part: &[u8]) -> String {
    hex(&Sha256::digest(part))
}

fn sealed(name: &str, bytes: &[u8]) -> Option<Sealed> {
    if bytes.len() > LARGEST {
        return None;
    }
    if is_age_file(bytes) {
        return Some(Sealed::File);
    }
    let text =
        str::from_utf8(bytes).ok().filter(|text| text.contains("sops") && text.contains(sops::PREFIX))?;
    let source = Source { name: name.to_owned(), text: text.to_owned() };
    let format = Format::of(name);
    let parsed = format.read(&source).ok()?;
    let document = sops::document(&parsed.root, format, &source).ok()??;
    Some(Sealed::Document(Box::new(document.metadata)))
}
