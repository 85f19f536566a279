//! Encrypted data that the controller opened, on its way to a host.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use zeroize::Zeroizing;

/// Plain texts, with the digests of the encrypted parts.
pub(crate) type Opened = Vec<(String, Zeroizing<Vec<u8>>)>;

/// Returns plain texts as one string: a line for each part.
pub(super) fn encode(opened: &Opened) -> Zeroizing<Vec<u8>> {
    let mut text = Zeroizing::new(Vec::new());
    for (digest, plain) in opened {
        let encoded = Zeroizing::new(BASE64_STANDARD.encode(plain.as_slice()));
        text.reserve(digest.len() + encoded.len() + 2);
        text.extend_from_slice(digest.as_bytes());
        text.push(b' ');
        text.extend_from_slice(encoded.as_bytes());
        text.push(b'\n');
    }
    text
}

/// Reads what [`encode`] wrote.
pub(super) fn decode(text: &[u8]) -> Opened {
    let lines = text.split(|byte| *byte == b'\n');
    let one = |line: &[u8]| {
        let (digest, encoded) = line.split_at_checked(line.iter().position(|byte| *byte == b' ')?)?;
        let digest = str::from_utf8(digest).ok()?.to_owned();
        Some((digest, Zeroizing::new(BASE64_STANDARD.decode(&encoded[1..]).ok()?)))
    };
    lines.filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_texts_arrive_as_they_were_sent() {
        let sent: Opened =
            vec![("aa".to_owned(), b"one\n".to_vec().into()), ("bb".to_owned(), vec![0, 255].into())];
        assert_eq!(decode(&encode(&sent)), sent);
        assert_eq!(decode(b""), Vec::new());
    }
}
