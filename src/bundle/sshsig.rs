//! Signatures as `ssh-keygen -Y sign` makes them (PROTOCOL.sshsig of OpenSSH).

use std::io::{self, Read};

use base64::{Engine, prelude::BASE64_STANDARD};
use jiff::Timestamp;
use sha2::{Digest, Sha256, Sha512};

use super::{
    AllowedSigners, NAMESPACE, SignersError,
    key::{KeyError, PublicKey},
};
use crate::secrets::ssh_wire::{Reader, Short, push_string};

const MAGIC: &[u8] = b"SSHSIG";
const BEGIN: &str = "-----BEGIN SSH SIGNATURE-----";
const END: &str = "-----END SSH SIGNATURE-----";
const LINE: usize = 70;

/// A signature over a file, made for some purpose.
#[derive(Debug)]
pub(crate) struct Signature {
    key: PublicKey,
    namespace: Vec<u8>,
    reserved: Vec<u8>,
    hash: Hash,
    signed: Vec<u8>,
}

/// How the file was hashed before it was signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hash {
    Sha256,
    Sha512,
}

impl Hash {
    fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    fn of(self, file: impl Read) -> io::Result<Vec<u8>> {
        match self {
            Self::Sha256 => hashed::<Sha256>(file),
            Self::Sha512 => hashed::<Sha512>(file),
        }
    }
}

fn hashed<D: Digest>(mut file: impl Read) -> io::Result<Vec<u8>> {
    let mut hash = D::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(hash.finalize().to_vec()),
            Ok(count) => hash.update(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Why a file is not signed as it should be.
#[derive(Debug, thiserror::Error)]
pub(crate) enum VerifyError {
    #[error("the signature is not one of ssh-keygen")]
    NotASignature,
    #[error(
        "it was signed for `{0}` and not for `{NAMESPACE}`: sign it with `ccm bundle sign`, or `ssh-keygen -Y sign -n {NAMESPACE}`"
    )]
    OtherNamespace(String),
    #[error("the key {fingerprint} that signed it is not among the allowed signers in {file}")]
    UnknownSigner { fingerprint: String, file: String },
    #[error(
        "the key of `{principal}` was not valid at this time: see valid-after and valid-before in {file}"
    )]
    NotValidNow { principal: String, file: String },
    #[error(transparent)]
    InvalidSigners(SignersError),
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error("cannot read it: {0}")]
    Unreadable(#[from] io::Error),
}

impl From<Short> for VerifyError {
    fn from(_: Short) -> Self {
        Self::NotASignature
    }
}

impl Signature {
    /// Reads a signature in its armour.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, VerifyError> {
        let text = str::from_utf8(text).map_err(|_| VerifyError::NotASignature)?;
        let (_, rest) = text.split_once(BEGIN).ok_or(VerifyError::NotASignature)?;
        let (body, _) = rest.split_once(END).ok_or(VerifyError::NotASignature)?;
        let body: String = body.split_whitespace().collect();
        let blob = BASE64_STANDARD.decode(body).map_err(|_| VerifyError::NotASignature)?;
        let mut parts = Reader(&blob);
        if parts.bytes(MAGIC.len())? != MAGIC || parts.number()? != 1 {
            return Err(VerifyError::NotASignature);
        }
        let key = PublicKey(parts.string()?.to_vec());
        let namespace = parts.string()?.to_vec();
        let reserved = parts.string()?.to_vec();
        let hash = match parts.string()? {
            b"sha256" => Hash::Sha256,
            b"sha512" => Hash::Sha512,
            _ => return Err(VerifyError::NotASignature),
        };
        let signed = parts.string()?.to_vec();
        Ok(Self { key, namespace, reserved, hash, signed })
    }

    /// Checks that it is over this file and by somebody who is allowed to sign now; returns who.
    pub(crate) fn verify(
        &self,
        file: impl Read,
        signers: &AllowedSigners,
        now: Timestamp,
    ) -> Result<String, VerifyError> {
        if self.namespace != NAMESPACE.as_bytes() {
            return Err(VerifyError::OtherNamespace(String::from_utf8_lossy(&self.namespace).into_owned()));
        }
        let principal = signers.find(&self.key, now)?;
        let message = signed(self.hash, &self.namespace, &self.reserved, &self.hash.of(file)?);
        self.key.verify(&message, &self.signed)?;
        Ok(principal)
    }
}

/// Returns what is really signed: the purpose and the hash of the file.
fn signed(hash: Hash, namespace: &[u8], reserved: &[u8], digest: &[u8]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    for part in [namespace, reserved, hash.name().as_bytes(), digest] {
        push_string(&mut out, part);
    }
    out
}

/// Returns what a key has to sign so that the file counts as signed.
pub(super) fn to_sign(file: impl Read) -> io::Result<Vec<u8>> {
    let hash = Hash::Sha512;
    Ok(signed(hash, NAMESPACE.as_bytes(), b"", &hash.of(file)?))
}

/// Puts a signature into its armour.
pub(super) fn armoured(key: &PublicKey, signature: &[u8]) -> String {
    let mut blob = MAGIC.to_vec();
    blob.extend(1_u32.to_be_bytes());
    for part in [key.0.as_slice(), NAMESPACE.as_bytes(), b"", Hash::Sha512.name().as_bytes(), signature] {
        push_string(&mut blob, part);
    }
    let mut text = format!("{BEGIN}\n");
    let encoded = BASE64_STANDARD.encode(blob);
    for line in encoded.as_bytes().chunks(LINE) {
        text.push_str(&String::from_utf8_lossy(line));
        text.push('\n');
    }
    text.push_str(END);
    text.push('\n');
    text
}
