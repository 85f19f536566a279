//! Public keys, and whether a signature is theirs.

use base64::{Engine, prelude::BASE64_STANDARD};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA512, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use sha2::{Digest, Sha256};

use crate::secrets::ssh_wire::{Reader, Short};

/// A public key as ssh writes it, without its armour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PublicKey(pub(super) Vec<u8>);

/// Why a signature does not count.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyError {
    #[error("it is damaged")]
    Damaged,
    #[error("keys of the kind `{0}` are not supported: use ed25519, ecdsa with nistp256 or nistp384, or rsa")]
    UnknownKind(String),
    #[error("the signature was made with `{0}`, which does not fit the key or is too weak")]
    UnknownAlgorithm(String),
    #[error(
        "the signature does not fit: the content was changed after it was signed, or it is of other content"
    )]
    Mismatch,
}

impl From<Short> for KeyError {
    fn from(_: Short) -> Self {
        Self::Damaged
    }
}

impl PublicKey {
    /// Reads a key in the form `KIND BASE64`; `None` if that is none.
    pub(super) fn from_words(kind: &str, encoded: &str) -> Option<Self> {
        let blob = BASE64_STANDARD.decode(encoded).ok()?;
        let is_same = Reader(&blob).string().is_ok_and(|named| named == kind.as_bytes());
        is_same.then_some(Self(blob))
    }

    pub(crate) fn kind(&self) -> String {
        let kind = Reader(&self.0).string().unwrap_or_default();
        String::from_utf8_lossy(kind).into_owned()
    }

    /// Returns the fingerprint as `ssh-keygen -l` shows it.
    pub(crate) fn fingerprint(&self) -> String {
        let digest = base64::prelude::BASE64_STANDARD_NO_PAD.encode(Sha256::digest(&self.0));
        format!("SHA256:{digest}")
    }

    /// Checks that a signature over `message` was made with this key.
    pub(super) fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), KeyError> {
        let mut signature = Reader(signature);
        let algorithm = String::from_utf8_lossy(signature.string()?).into_owned();
        let signed = signature.string()?;
        let mut key = Reader(&self.0);
        let kind = String::from_utf8_lossy(key.string()?).into_owned();
        let fits = |by: &dyn Fn() -> bool| if by() { Ok(()) } else { Err(KeyError::Mismatch) };
        let mismatched = || Err(KeyError::UnknownAlgorithm(algorithm.clone()));
        match kind.as_str() {
            "ssh-ed25519" if algorithm == kind => {
                let point = key.string()?;
                fits(&|| UnparsedPublicKey::new(&ED25519, point).verify(message, signed).is_ok())
            }
            "ecdsa-sha2-nistp256" | "ecdsa-sha2-nistp384" if algorithm == kind => {
                let (by, width): (&'static dyn VerificationAlgorithm, _) = if kind.ends_with("256") {
                    (&ECDSA_P256_SHA256_FIXED, 32)
                } else {
                    (&ECDSA_P384_SHA384_FIXED, 48)
                };
                let _curve = key.string()?;
                let point = key.string()?;
                let signed = fixed(signed, width)?;
                fits(&|| UnparsedPublicKey::new(by, point).verify(message, &signed).is_ok())
            }
            "ssh-rsa" => {
                let (e, n) = (key.integer()?, key.integer()?);
                let by = match algorithm.as_str() {
                    "rsa-sha2-512" => &RSA_PKCS1_2048_8192_SHA512,
                    "rsa-sha2-256" => &RSA_PKCS1_2048_8192_SHA256,
                    _ => return mismatched(),
                };
                fits(&|| RsaPublicKeyComponents { n, e }.verify(by, message, signed).is_ok())
            }
            "ssh-ed25519" | "ecdsa-sha2-nistp256" | "ecdsa-sha2-nistp384" => mismatched(),
            _ => Err(KeyError::UnknownKind(kind)),
        }
    }
}

/// Returns the two numbers of an ECDSA signature, each in its full width.
fn fixed(signature: &[u8], width: usize) -> Result<Vec<u8>, KeyError> {
    let mut parts = Reader(signature);
    let mut out = Vec::with_capacity(2 * width);
    for _ in 0..2 {
        let number = parts.integer()?;
        let padding = width.checked_sub(number.len()).ok_or(KeyError::Damaged)?;
        out.extend(std::iter::repeat_n(0, padding));
        out.extend(number);
    }
    Ok(out)
}
