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
    /// An identity that was named cannot be used.
    #[error("{0}")]
    Refused(String),
    #[error("it is damaged: {0}")]
    Damaged(String),
}

/// Length of a full line in the body of a recipient.
const FULL_LINE: usize = 64;

/// Returns the beginning of a file without its armor, up to a damaged part.
fn header(bytes: &[u8]) -> Vec<u8> {
    let mut header = Vec::new();
    // The part before the damage is enough here.
    let _damaged = ArmoredReader::new(bytes).take(LONGEST_HEADER).read_to_end(&mut header);
    header
}

/// Returns whether the body of each recipient ends with a short line, as the format demands. The library accepts others.
pub(crate) fn has_complete_stanzas(bytes: &[u8]) -> bool {
    let header = header(bytes);
    let mut is_complete = true;
    for line in header.split(|byte| *byte == b'\n').skip(1) {
        let is_end = line.starts_with(b"---");
        if is_end || line.starts_with(b"-> ") {
            if !is_complete {
                return false;
            }
            is_complete = false;
        } else {
            is_complete = line.len() < FULL_LINE;
        }
        if is_end {
            break;
        }
    }
    true
}

/// Returns the recipients in the header of a file: kind and arguments of each. Everything after a damaged part is missing.
pub(crate) fn stanzas(bytes: &[u8]) -> Vec<Vec<String>> {
    let header = header(bytes);
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
