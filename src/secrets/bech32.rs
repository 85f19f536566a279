//! Keys of age from their 32 bytes: the library reads them only as text.

use zeroize::Zeroizing;

const PRIVATE: &str = "age-secret-key-";
const PUBLIC: &str = "age";
const LETTERS: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";

/// Returns the text of a private key, in Bech32 (BIP 173).
pub(crate) fn secret_key(key: &[u8; 32]) -> Zeroizing<String> {
    Zeroizing::new(encoded(PRIVATE, key).to_uppercase())
}

/// Returns the text of a public key.
pub(crate) fn public_key(key: &[u8; 32]) -> String {
    encoded(PUBLIC, key).to_string()
}

fn encoded(prefix: &str, key: &[u8; 32]) -> Zeroizing<String> {
    let mut words: Zeroizing<Vec<u8>> = Zeroizing::new(Vec::with_capacity(64));
    let (mut bits, mut held) = (0_u32, 0_u32);
    for byte in key {
        held = held << 8 | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            words.push((held >> bits & 31) as u8);
        }
        held &= (1 << bits) - 1;
    }
    words.push((held << (5 - bits) & 31) as u8);
    let sum = checksum(prefix, &words);
    words.extend((0..6).rev().map(|at| (sum >> (5 * at) & 31) as u8));
    let mut text = Zeroizing::new(String::with_capacity(prefix.len() + 1 + words.len()));
    text.push_str(prefix);
    text.push('1');
    text.extend(words.iter().map(|word| char::from(LETTERS[usize::from(*word)])));
    text
}

fn checksum(prefix: &str, words: &[u8]) -> u32 {
    let prefix = prefix.bytes();
    let values = prefix
        .clone()
        .map(|byte| byte >> 5)
        .chain([0])
        .chain(prefix.map(|byte| byte & 31))
        .chain(words.iter().copied())
        .chain([0; 6]);
    values.fold(1, next) ^ 1
}

fn next(sum: u32, value: u8) -> u32 {
    const GENERATOR: [u32; 5] = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3];
    let top = sum >> 25;
    let shifted = (sum & 0x01ff_ffff) << 5 ^ u32::from(value);
    GENERATOR
        .iter()
        .enumerate()
        .filter(|(bit, _)| top >> bit & 1 == 1)
        .fold(shifted, |sum, (_, part)| sum ^ part)
}

#[cfg(test)]
mod tests {
    use age::secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn library_reads_the_key_that_was_written() {
        for byte in [0, 1, 0x5a, 0xff] {
            let text = secret_key(&[byte; 32]);
            let identity: age::x25519::Identity = text.parse().unwrap();
            assert_eq!(identity.to_string().expose_secret(), text.as_str());
        }
    }
}
