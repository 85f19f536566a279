//! Recipients: public keys of age and ssh, for which data is encrypted.

use std::io::Write;

use age::{
    Encryptor,
    armor::{ArmoredWriter, Format as Armor},
};

/// Why data cannot be encrypted for a recipient.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecipientError {
    #[error(
        "`{0}` is not a recipient: it must be a public key of age (age1...) or ssh (ssh-ed25519, ssh-rsa)"
    )]
    Invalid(String),
    #[error("`{0}` is a private key: name its public key")]
    Private(&'static str),
    #[error("ccm does not support post-quantum recipients (age1pq1...)")]
    PostQuantum,
    #[error("there is no recipient")]
    None,
    #[error("cannot encrypt: {0}")]
    Failed(String),
}

fn parse(text: &str) -> Result<Box<dyn age::Recipient>, RecipientError> {
    let invalid = || RecipientError::Invalid(text.to_owned());
    if text.starts_with("AGE-SECRET-KEY-") {
        return Err(RecipientError::Private("AGE-SECRET-KEY-..."));
    }
    if text.starts_with("age1pq1") {
        return Err(RecipientError::PostQuantum);
    }
    if text.starts_with("ssh-") {
        let words: Vec<&str> = text.split_whitespace().take(2).collect();
        let key: age::ssh::Recipient = words.join(" ").parse().map_err(|_| invalid())?;
        return Ok(Box::new(key));
    }
    let key: age::x25519::Recipient = text.parse().map_err(|_| invalid())?;
    Ok(Box::new(key))
}

/// Checks that data can be encrypted for a recipient.
pub(crate) fn check(text: &str) -> Result<(), RecipientError> {
    parse(text).map(drop)
}

/// Encrypts data for recipients, in age format with or without its armor.
fn encrypt_as(recipients: &[&str], plain: &[u8], armor: Armor) -> Result<Vec<u8>, RecipientError> {
    if recipients.is_empty() {
        return Err(RecipientError::None);
    }
    let keys = recipients.iter().map(|text| parse(text)).collect::<Result<Vec<_>, _>>()?;
    let failed = |error: String| RecipientError::Failed(error);
    let encryptor = Encryptor::with_recipients(keys.iter().map(|key| &**key))
        .map_err(|error| failed(error.to_string()))?;
    let mut encrypted = Vec::with_capacity(plain.len() + 1024);
    let write = || -> std::io::Result<()> {
        let output = ArmoredWriter::wrap_output(&mut encrypted, armor)?;
        let mut writer = encryptor.wrap_output(output)?;
        writer.write_all(plain)?;
        writer.finish()?.finish()?;
        Ok(())
    };
    write().map_err(|error| failed(error.to_string()))?;
    Ok(encrypted)
}

/// Encrypts a file for recipients.
pub(crate) fn encrypt(recipients: &[String], plain: &[u8]) -> Result<Vec<u8>, RecipientError> {
    let recipients: Vec<&str> = recipients.iter().map(String::as_str).collect();
    encrypt_as(&recipients, plain, Armor::Binary)
}

/// Encrypts the data key of a document for a recipient.
pub(crate) fn encrypt_key(recipient: &str, key: &[u8]) -> Result<String, RecipientError> {
    let encrypted = encrypt_as(&[recipient], key, Armor::AsciiArmor)?;
    Ok(String::from_utf8_lossy(&encrypted).into_owned())
}
