//! Private keys of ssh: which key it is, and the key of age that is derived from an Ed25519 key.

use base64::{Engine, prelude::BASE64_STANDARD};
use curve25519_dalek::edwards::CompressedEdwardsY;
use sha2::{Digest, Sha512};
use zeroize::Zeroizing;

use crate::secrets::{
    bech32,
    ssh_wire::{Reader, Short},
    vault::counter_mode,
};

const MAGIC: &[u8] = b"openssh-key-v1\0";
const BEGIN: &str = "-----BEGIN OPENSSH PRIVATE KEY-----";
const END: &str = "-----END OPENSSH PRIVATE KEY-----";

/// Marks in a text that it is a private key of ssh.
pub(super) const MARKS: [&str; 2] = [BEGIN, "-----BEGIN RSA PRIVATE KEY-----"];

/// Parts of a private key in the format of OpenSSH.
pub(super) struct PrivateKey {
    /// The public key, as in `authorized_keys`.
    pub(super) public: String,
    /// The first four bytes of its digest, which mark data that is encrypted for it.
    pub(super) tag: String,
    /// The recipient of age that is derived from an Ed25519 key.
    pub(super) of_age: Option<String>,
    /// The secret half of an Ed25519 key; `None` for other keys, and for one whose passphrase is missing.
    seed: Option<Zeroizing<[u8; 32]>>,
}

impl PrivateKey {
    /// Reads a key. A passphrase is needed only for the secret half.
    pub(super) fn parse(text: &str, passphrase: Option<&str>) -> Option<Self> {
        Self::read(text, passphrase).ok()
    }

    fn read(text: &str, passphrase: Option<&str>) -> Result<Self, Short> {
        let body = text.split_once(BEGIN).and_then(|(_, rest)| rest.split_once(END)).ok_or(Short)?.0;
        let body: Zeroizing<String> = Zeroizing::new(body.split_whitespace().collect());
        let blob = Zeroizing::new(BASE64_STANDARD.decode(body.as_str()).map_err(|_| Short)?);
        let mut parts = Reader(&blob);
        if parts.bytes(MAGIC.len())? != MAGIC {
            return Err(Short);
        }
        let (cipher, _kdf, options) = (parts.string()?, parts.string()?, parts.string()?);
        if parts.number()? != 1 {
            return Err(Short);
        }
        let public = parts.string()?;
        let kind = String::from_utf8_lossy(Reader(public).string()?).into_owned();
        let (mut of_age, mut seed) = (None, None);
        if kind == "ssh-ed25519" {
            of_age = recipient(public)?;
            let secret = parts.string()?;
            seed = match (cipher, passphrase) {
                (b"none", _) => Some(self::seed(secret)?),
                (b"aes256-ctr", Some(passphrase)) => {
                    Some(self::seed(&decrypted(secret, options, passphrase)?)?)
                }
                _ => None,
            };
        }
        let tag = base64::prelude::BASE64_STANDARD_NO_PAD.encode(&sha2::Sha256::digest(public)[..4]);
        let public = format!("{kind} {}", BASE64_STANDARD.encode(public));
        Ok(Self { public, tag, of_age, seed })
    }

    /// Returns the age identity that is derived from an Ed25519 key, as `ssh-to-age` does.
    pub(super) fn derived(&self) -> Option<age::x25519::Identity> {
        let seed = self.seed.as_ref()?;
        let mut scalar = Zeroizing::new([0; 32]);
        scalar.copy_from_slice(&Sha512::digest(seed.as_slice())[..32]);
        bech32::secret_key(&scalar).parse().ok()
    }
}

/// Returns the recipient of age that is derived from a public Ed25519 key: the same point on the other curve.
fn recipient(public: &[u8]) -> Result<Option<String>, Short> {
    let mut parts = Reader(public);
    let (_kind, point) = (parts.string()?, parts.string()?);
    let point = CompressedEdwardsY::from_slice(point).map_err(|_| Short)?.decompress();
    Ok(point.map(|point| bech32::public_key(&point.to_montgomery().to_bytes())))
}

/// Decrypts the secret part of a key that a passphrase protects.
fn decrypted(secret: &[u8], options: &[u8], passphrase: &str) -> Result<Zeroizing<Vec<u8>>, Short> {
    let mut options = Reader(options);
    let (salt, rounds) = (options.string()?, options.number()?);
    let mut key = Zeroizing::new([0; 48]);
    bcrypt_pbkdf::bcrypt_pbkdf(passphrase, salt, rounds, key.as_mut_slice()).map_err(|_| Short)?;
    let mut plain = Zeroizing::new(secret.to_vec());
    counter_mode(&key[..32], &key[32..], &mut plain).ok_or(Short)?;
    Ok(plain)
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
