//! Files of Ansible Vault, for their import.

use std::num::NonZeroU32;

use aes_gcm::{
    KeyInit,
    aes::{Aes256, cipher::BlockCipherEncrypt},
};
use ring::{hmac, pbkdf2};
use zeroize::Zeroizing;

const HEADER: &str = "$ANSIBLE_VAULT;";
const ROUNDS: u32 = 10_000;

/// Why a file is not imported.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum VaultError {
    #[error("it is not an Ansible Vault file: its first line must begin with {HEADER}")]
    NotAVault,
    #[error("its cipher is not AES256")]
    Cipher,
    #[error("it is damaged")]
    Damaged,
    #[error("the vault password is wrong, or the file was changed")]
    Password,
}

/// Decrypts a file of Ansible Vault.
pub(crate) fn decrypt(text: &str, password: &[u8]) -> Result<Zeroizing<Vec<u8>>, VaultError> {
    let mut lines = text.lines();
    let header = lines.next().filter(|line| line.starts_with(HEADER)).ok_or(VaultError::NotAVault)?;
    if header.trim_end().split(';').nth(2) != Some("AES256") {
        return Err(VaultError::Cipher);
    }
    let body: String = lines.flat_map(str::split_whitespace).collect();
    let inner =
        hexadecimal(&body).and_then(|bytes| String::from_utf8(bytes).ok()).ok_or(VaultError::Damaged)?;
    let parts = inner.lines().map(hexadecimal).collect::<Option<Vec<_>>>().ok_or(VaultError::Damaged)?;
    let [salt, digest, encrypted] = &parts[..] else { return Err(VaultError::Damaged) };
    let mut derived = Zeroizing::new([0; 80]);
    let rounds = NonZeroU32::new(ROUNDS).unwrap_or(NonZeroU32::MIN);
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, rounds, salt, password, derived.as_mut_slice());
    let key = hmac::Key::new(hmac::HMAC_SHA256, &derived[32..64]);
    hmac::verify(&key, encrypted, digest).map_err(|_| VaultError::Password)?;
    let mut plain = Zeroizing::new(encrypted.clone());
    counter_mode(&derived[..32], &derived[64..], &mut plain).ok_or(VaultError::Damaged)?;
    let padding = usize::from(plain.last().copied().unwrap_or_default());
    if padding == 0 || padding > 16 || padding > plain.len() {
        return Err(VaultError::Damaged);
    }
    let length = plain.len() - padding;
    plain.truncate(length);
    Ok(plain)
}

/// AES-256 in counter mode over all 128 bits.
pub(super) fn counter_mode(key: &[u8], iv: &[u8], data: &mut [u8]) -> Option<()> {
    let cipher = Aes256::new_from_slice(key).ok()?;
    let mut counter = u128::from_be_bytes(iv.try_into().ok()?);
    for chunk in data.chunks_mut(16) {
        let mut block = counter.to_be_bytes().into();
        cipher.encrypt_block(&mut block);
        chunk.iter_mut().zip(block.iter()).for_each(|(byte, key)| *byte ^= key);
        counter = counter.wrapping_add(1);
    }
    Some(())
}

fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    digits
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?, 16).ok())
        .collect()
}
