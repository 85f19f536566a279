//! Private keys of ssh: which key it is, and the key of age that is derived from an Ed25519 key.

use base64::{Engine, prelude::BASE64_STANDARD};
use sha2::{Digest, Sha512};
use zeroize::Zeroizing;

use crate::secrets::{
    bech32,
    ssh_wire::{Reader, Short},
};

const MAGIC: &[u8] = b"openssh-key-v1\0";
const BEGIN: &str = "-----BEGIN OPENSSH PRIVATE KEY-----";
const END: &str = "-----END OPENSSH PRIVATE KEY-----";

/// Marks in a text that it is a private key of ssh.
pub(super) const MARKS: [&str; 2] = [BEGIN, "-----BEGIN RSA PRIVATE KEY-----"];

/// Readable parts of a private key in the format of OpenSSH.
pub(super) struct PrivateKey {
    /// The public key, as in `authorized_keys`.
    pub(super) public: String,
    /// The first four bytes of its digest, which mark data that is encrypted for it.
    pub(super) tag: String,
    /// The secret half of an Ed25519 key; `None` for other keys, and for one that a passphrase protects.
    seed: Option<Zeroizing<[u8; 32]>>,
}

impl PrivateKey {
    pub(super) fn parse(text: &str) -> Option<Self> {
        Self::read(text).ok()
    }

    fn read(text: &str) -> Result<Self, Short> {
        let body = text.split_once(BEGIN).and_then(|(_, rest)| rest.split_once(END)).ok_or(Short)?.0;
        let body: Zeroizing<String> = Zeroizing::new(body.split_whitespace().collect());
        let blob = Zeroizing::new(BASE64_STANDARD.decode(body.as_str()).map_err(|_| Short)?);
        let mut parts = Reader(&blob);
        if parts.bytes(MAGIC.len())? != MAGIC {
            return Err(Short);
        }
        let cipher = parts.string()?;
        let _derivation = (parts.string()?, parts.string()?);
        if parts.number()? != 1 {
            return Err(Short);
        }
        let public = parts.string()?;
        let kind = String::from_utf8_lossy(Reader(public).string()?).into_owned();
        let is_open = cipher == b"none" && kind == "ssh-ed25519";
        let seed = if is_open { Some(seed(parts.string()?)?) } else { None };
        let tag = base64::prelude::BASE64_STANDARD_NO_PAD.encode(&sha2::Sha256::digest(public)[..4]);
        let public = format!("{kind} {}", BASE64_STANDARD.encode(public));
        Ok(Self { public, tag, seed })
    }

    /// Returns the age identity that is derived from an Ed25519 key, as `ssh-to-age` does.
    pub(super) fn derived(&self) -> Option<age::x25519::Identity> {
        let seed = self.seed.as_ref()?;
        let mut scalar = Zeroizing::new([0; 32]);
        scalar.copy_from_slice(&Sha512::digest(seed.as_slice())[..32]);
        bech32::secret_key(&scalar).parse().ok()
    }
}

fn seed(secret: &[u8]) -> Result<Zeroizing<[u8; 32]>, Short> {
    let mut secret = Reader(secret);
    if secret.number()? != secret.number()? || secret.string()? != b"ssh-ed25519" {
        return Err(Short);
    }
    let _public = secret.string()?;
    let bytes = secret.string()?.get(..32).ok_or(Short)?;
    Ok(Zeroizing::new(bytes.try_into().map_err(|_| Short)?))
}
