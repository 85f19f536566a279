//! Files in age format: their header, and why they do not open.

use std::io::Read;

use age::armor::ArmoredReader;

/// Longest header that is inspected; a recipient takes some hundred bytes.
const LONGEST_HEADER: u64 = 1 << 20;

/// Kinds of recipients with post-quantum keys.
const POST_QUANTUM: &str = "mlkem768";

/// Why a file in age format does not open.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AgeError {
    #[error("it is encrypted with a passphrase")]
    Passphrase,
    #[error("no identity opens it")]
    NoMatch,
    #[error("it is encrypted for post-quantum recipients ({0}), which ccm does not support")]
    PostQuantum(String),
    #[error("the passphrase is wrong")]
    WrongPassphrase,
    #[error("its passphrase needs a work factor of {required} (maximum {most})")]
    TooMuchWork { required: u8, most: u8 },
    #[error("it is damaged: {0}")]
    Damaged(String),
}

/// Returns the recipients in the header of a file: kind and arguments of each. Everything after a damaged part is missing.
pub(crate) fn stanzas(bytes: &[u8]) -> Vec<Vec<String>> {
    let mut header = Vec::new();
    // The part before the damage is enough here.
    let _damaged = ArmoredReader::new(bytes).take(LONGEST_HEADER).read_to_end(&mut header);
    let lines = header.split(|byte| *byte == b'\n').take_while(|line| !line.starts_with(b"---"));
    let stanzas = lines.filter_map(|line| str::from_utf8(line.strip_prefix(b"-> ")?).ok());
    stanzas.map(|line| line.split(' ').map(str::to_owned).collect()).collect()
}

/// Returns the error for a file that no identity opens.
pub(crate) fn no_match(stanzas: &[Vec<String>]) -> AgeError {
    let kinds = stanzas.iter().filter_map(|stanza| stanza.first());
    match kinds.into_iter().find(|kind| kind.starts_with(POST_QUANTUM)) {
        Some(kind) => AgeError::PostQuantum(kind.clone()),
        None if stanzas.iter().any(|stanza| stanza.first().is_some_and(|kind| kind == "scrypt")) => {
            AgeError::Passphrase
        }
        None => AgeError::NoMatch,
    }
}
