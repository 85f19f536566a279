//! Identities: private keys that open data for their recipients.

mod place;
mod ssh;

pub(crate) use place::{Found, Place};

use std::{io::Read, iter};

use age::{
    DecryptError, Decryptor,
    armor::ArmoredReader,
    secrecy::{ExposeSecret, SecretString},
};
use zeroize::Zeroizing;

use super::{
    age_file::{AgeError, has_complete_stanzas},
    keyring::is_same,
};

/// A private key, and where it was found.
pub(crate) struct Identity {
    /// Shown in messages.
    pub(crate) place: String,
    /// Its recipients, as documents write them.
    pub(crate) recipients: Vec<String>,
    key: Key,
}

enum Key {
    X25519(age::x25519::Identity),
    Ssh {
        key: Box<age::ssh::Identity>,
        derived: Option<age::x25519::Identity>,
    },
    /// Opens with a passphrase.
    Locked(Locked),
}

/// A private key that a passphrase protects.
enum Locked {
    Ssh {
        key: Box<age::ssh::EncryptedKey>,
        tag: String,
        /// The key as it is stored, if an X25519 key is derived from it.
        stored: Option<String>,
    },
    /// A file of identities, encrypted with age.
    File(Vec<u8>),
}

/// Why a text is not an identity.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum IdentityError {
    #[error("has no private key of age or ssh")]
    Nothing,
    #[error("line {0} is not an age identity")]
    Line(usize),
    #[error("has a post-quantum identity (AGE-SECRET-KEY-PQ-1), which ccm does not support")]
    PostQuantum,
    #[error("has the identity of a plugin (AGE-PLUGIN-), which ccm does not support")]
    Plugin,
    #[error("is a key of the type {0}, which cannot decrypt: use ssh-ed25519, ssh-rsa or an age key")]
    SshType(String),
    #[error("is stored on a security key, which can only sign: use an age key for encrypted data")]
    SecurityKey,
    #[error("is encrypted in an old format: convert it with `ssh-keygen -p`")]
    OldFormat,
    #[error("is not a valid private key of ssh")]
    BrokenSsh,
    #[error("is a public key: name the private key")]
    Public,
}

/// Asks the user for a passphrase.
pub(crate) trait Prompt: Send + Sync {
    /// Returns the passphrase for something; `None` without a terminal.
    fn passphrase(&self, what: &str) -> Option<SecretString>;
}

/// Never asks.
pub(crate) struct NoPrompt;

impl Prompt for NoPrompt {
    fn passphrase(&self, _: &str) -> Option<SecretString> {
        None
    }
}

/// Reads all identities of a text.
pub(crate) fn parse(text: &str, place: &str) -> Result<Vec<Identity>, IdentityError> {
    let start = text.trim_start();
    if ssh::MARKS.iter().any(|mark| start.starts_with(mark)) {
        return ssh_identity(text, place).map(|identity| vec![identity]);
    }
    if is_age_file(start.as_bytes()) {
        return Ok(vec![Identity::locked_file(text.as_bytes(), place)]);
    }
    if start.starts_with("ssh-") || start.starts_with("age1") {
        return Err(IdentityError::Public);
    }
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        for word in line.split([' ', '\t', ',', '\r']).filter(|word| !word.is_empty()) {
            found
                .push(x25519(word, place).map_err(|error| error.unwrap_or(IdentityError::Line(number + 1)))?);
        }
    }
    if found.is_empty() { Err(IdentityError::Nothing) } else { Ok(found) }
}

fn x25519(word: &str, place: &str) -> Result<Identity, Option<IdentityError>> {
    if word.starts_with("AGE-SECRET-KEY-PQ-1") {
        return Err(Some(IdentityError::PostQuantum));
    }
    if word.starts_with("AGE-PLUGIN-") {
        return Err(Some(IdentityError::Plugin));
    }
    let key: age::x25519::Identity = word.parse().map_err(|_| None)?;
    Ok(Identity::x25519(key, place))
}

fn ssh_identity(text: &str, place: &str) -> Result<Identity, IdentityError> {
    let parsed =
        age::ssh::Identity::from_buffer(text.as_bytes(), None).map_err(|_| IdentityError::BrokenSsh)?;
    let private = ssh::PrivateKey::parse(text, None);
    let of_age = private.as_ref().and_then(|key| key.of_age.clone());
    let stored = of_age.is_some().then(|| text.to_owned());
    let recipients = of_age.into_iter().chain(private.iter().map(|key| key.public.clone())).collect();
    let derived = private.as_ref().and_then(ssh::PrivateKey::derived);
    let place = place.to_owned();
    match parsed {
        age::ssh::Identity::Encrypted(key) => {
            let tag = private.map(|key| key.tag).unwrap_or_default();
            let key = Key::Locked(Locked::Ssh { key: Box::new(key), tag, stored });
            Ok(Identity { place, recipients, key })
        }
        age::ssh::Identity::Unsupported(key) => Err(match key {
            age::ssh::UnsupportedKey::EncryptedPem => IdentityError::OldFormat,
            age::ssh::UnsupportedKey::Hardware(_) => IdentityError::SecurityKey,
            age::ssh::UnsupportedKey::Type(name) if name.starts_with("sk-") => IdentityError::SecurityKey,
            age::ssh::UnsupportedKey::EncryptedSsh(name) | age::ssh::UnsupportedKey::Type(name) => {
                IdentityError::SshType(name)
            }
        }),
        key @ age::ssh::Identity::Unencrypted(_) => {
            Ok(Identity { place, recipients, key: Key::Ssh { key: Box::new(key), derived } })
        }
    }
}

/// Returns whether bytes begin as a file in age format does.
pub(crate) fn is_age_file(bytes: &[u8]) -> bool {
    bytes.starts_with(b"age-encryption.org/") || bytes.starts_with(b"-----BEGIN AGE ENCRYPTED FILE-----")
}

impl Identity {
    pub(crate) fn x25519(key: age::x25519::Identity, place: &str) -> Self {
        let recipients = vec![key.to_public().to_string()];
        Self { place: place.to_owned(), recipients, key: Key::X25519(key) }
    }

    /// A file of identities that a passphrase protects.
    fn locked_file(bytes: &[u8], place: &str) -> Self {
        let key = Key::Locked(Locked::File(bytes.to_vec()));
        Self { place: place.to_owned(), recipients: Vec::new(), key }
    }

    /// Returns the keys that need no passphrase.
    pub(crate) fn open_keys(&self) -> Vec<&dyn age::Identity> {
        match &self.key {
            Key::X25519(key) => vec![key],
            Key::Ssh { key, derived } => {
                let derived = derived.iter().map(|key| key as &dyn age::Identity);
                iter::once(&**key as &dyn age::Identity).chain(derived).collect()
            }
            Key::Locked(_) => Vec::new(),
        }
    }

    /// Returns whether it needs a passphrase, and could open something with these stanzas.
    pub(crate) fn is_locked_for(&self, stanzas: &[Vec<String>]) -> bool {
        let has = |kind: &str| stanzas.iter().any(|stanza| stanza.first().is_some_and(|first| first == kind));
        match &self.key {
            Key::Locked(Locked::Ssh { tag, stored, .. }) => {
                // A stanza of X25519 does not name its recipient.
                stored.is_some() && has("X25519")
                    || stanzas.iter().any(
                        |stanza| matches!(&stanza[..], [kind, of, ..] if kind.starts_with("ssh-") && of == tag),
                    )
            }
            Key::Locked(Locked::File(_)) => has("X25519"),
            Key::X25519(_) | Key::Ssh { .. } => false,
        }
    }

    /// Returns whether it can open data for a recipient. The recipients of a protected file are not known.
    pub(crate) fn can_be(&self, recipient: &str) -> bool {
        self.recipients.is_empty() || self.recipients.iter().any(|known| is_same(known, recipient))
    }

    /// Returns whether it needs a passphrase.
    pub(crate) fn is_locked(&self) -> bool {
        matches!(self.key, Key::Locked(_))
    }

    /// Opens it with a passphrase.
    pub(crate) fn unlock(&self, passphrase: SecretString) -> Result<Vec<Identity>, AgeError> {
        match &self.key {
            Key::Locked(Locked::Ssh { key, stored, .. }) => {
                let stored = stored
                    .as_ref()
                    .and_then(|text| ssh::PrivateKey::parse(text, Some(passphrase.expose_secret())));
                let key: age::ssh::Identity =
                    key.decrypt(passphrase).map_err(|_| AgeError::WrongPassphrase)?.into();
                let derived = stored.and_then(|key| key.derived());
                let key = Key::Ssh { key: Box::new(key), derived };
                Ok(vec![Identity { place: self.place.clone(), recipients: self.recipients.clone(), key }])
            }
            Key::Locked(Locked::File(bytes)) => {
                let text = with_passphrase(bytes, passphrase)?;
                let text =
                    str::from_utf8(&text).map_err(|_| AgeError::Damaged("it is not text".to_owned()))?;
                parse(text, &self.place).map_err(|error| AgeError::Damaged(error.to_string()))
            }
            Key::X25519(_) | Key::Ssh { .. } => Ok(Vec::new()),
        }
    }
}

/// The highest work factor: about 16 times the work that `age` chooses.
const MOST_WORK: u8 = 22;

/// Decrypts a file that is encrypted with a passphrase.
pub(crate) fn with_passphrase(
    bytes: &[u8],
    passphrase: SecretString,
) -> Result<Zeroizing<Vec<u8>>, AgeError> {
    let mut identity = age::scrypt::Identity::new(passphrase);
    identity.set_max_work_factor(MOST_WORK);
    decrypt(bytes, &mut iter::once(&identity as &dyn age::Identity)).map_err(|error| match error {
        AgeError::NoMatch => AgeError::WrongPassphrase,
        other => other,
    })
}

/// Decrypts all of a file with any of these keys.
pub(crate) fn decrypt(
    bytes: &[u8],
    keys: &mut dyn Iterator<Item = &dyn age::Identity>,
) -> Result<Zeroizing<Vec<u8>>, AgeError> {
    if !has_complete_stanzas(bytes) {
        return Err(AgeError::Damaged("its header is not valid".to_owned()));
    }
    let mut plain = Zeroizing::new(Vec::with_capacity(bytes.len()));
    let decryptor = Decryptor::new(ArmoredReader::new(bytes)).map_err(error_of)?;
    let mut reader = decryptor.decrypt(keys).map_err(error_of)?;
    reader.read_to_end(&mut plain).map_err(|error| AgeError::Damaged(error.to_string()))?;
    Ok(plain)
}

fn error_of(error: DecryptError) -> AgeError {
    match error {
        DecryptError::NoMatchingKeys => AgeError::NoMatch,
        DecryptError::ExcessiveWork { required, .. } => AgeError::TooMuchWork { required, most: MOST_WORK },
        DecryptError::KeyDecryptionFailed => AgeError::WrongPassphrase,
        DecryptError::InvalidMac => AgeError::Damaged("its header was changed".to_owned()),
        DecryptError::InvalidHeader | DecryptError::UnknownFormat => {
            AgeError::Damaged("its header is not valid".to_owned())
        }
        DecryptError::DecryptionFailed => AgeError::Damaged("it does not decrypt".to_owned()),
        other => AgeError::Damaged(other.to_string()),
    }
}

/// Returns a new private key of age as text, and its recipient.
pub(crate) fn generate() -> (Zeroizing<String>, String) {
    let identity = age::x25519::Identity::generate();
    (Zeroizing::new(identity.to_string().expose_secret().to_owned()), identity.to_public().to_string())
}
