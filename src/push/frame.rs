//! Frames: the unit of the protocol between controller and target.
//!
//! A frame is its length in four bytes (big-endian, without these four), one byte for its kind, and its content. The other side
//! is not trusted: no frame is larger than [`LARGEST`].

use std::io::{self, Read, Write};

use serde::{Serialize, de::DeserializeOwned};

/// Maximum length of a frame.
pub(super) const LARGEST: usize = 1 << 20;

/// Length of the bytes before the content.
const HEAD: usize = 5;

const MESSAGE: u8 = b'm';
const BYTES: u8 = b'b';

/// A frame that was received.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// A JSON document.
    Message(Vec<u8>),
    /// Part of a larger content.
    Bytes(Vec<u8>),
}

/// Why bytes are not a frame.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FrameError {
    #[error("a frame of {0} bytes (maximum {LARGEST})")]
    TooLarge(usize),
    #[error("a frame of unknown kind {0}")]
    UnknownKind(u8),
    #[error("an empty frame")]
    Empty,
    #[error("a message that cannot be read")]
    Malformed,
}

/// Returns a message as a frame.
pub(super) fn message(message: &impl Serialize) -> Vec<u8> {
    // The messages have nothing that JSON cannot represent.
    frame(MESSAGE, &serde_json::to_vec(message).unwrap_or_default())
}

/// Returns content as frames.
pub(super) fn bytes(content: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    content.chunks(LARGEST / 4).map(|chunk| frame(BYTES, chunk))
}

/// Returns a JSON document that is already written as a frame.
pub(super) fn written(json: &[u8]) -> Vec<u8> {
    frame(MESSAGE, json)
}

fn frame(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len() + 1).unwrap_or(u32::MAX);
    let mut frame = Vec::with_capacity(content.len() + HEAD);
    frame.extend_from_slice(&length.to_be_bytes());
    frame.push(kind);
    frame.extend_from_slice(content);
    frame
}

/// Takes the first frame out of received bytes; `None` if it is not complete yet.
pub(super) fn take(received: &mut Vec<u8>) -> Result<Option<Frame>, FrameError> {
    let Some(&[a, b, c, d]) = received.first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    match length {
        0 => return Err(FrameError::Empty),
        length if length > LARGEST => return Err(FrameError::TooLarge(length)),
        _ => {}
    }
    let Some(&kind) = received.get(HEAD - 1) else { return Ok(None) };
    if !matches!(kind, MESSAGE | BYTES) {
        return Err(FrameError::UnknownKind(kind));
    }
    if received.len() < length + HEAD - 1 {
        return Ok(None);
    }
    let content = received[HEAD..length + HEAD - 1].to_vec();
    received.drain(..length + HEAD - 1);
    Ok(Some(if kind == MESSAGE { Frame::Message(content) } else { Frame::Bytes(content) }))
}

/// Reads a message.
pub(super) fn parse<T: DeserializeOwned>(content: &[u8]) -> Result<T, FrameError> {
    serde_json::from_slice(content).map_err(|_| FrameError::Malformed)
}

/// Reads the next frame of a stream that blocks; `None` at its end.
pub(super) fn read(from: &mut impl Read) -> io::Result<Option<Frame>> {
    let mut received = vec![0; HEAD];
    if from.read(&mut received[..1])? == 0 {
        return Ok(None);
    }
    from.read_exact(&mut received[1..])?;
    let missing = match take(&mut received).map_err(io::Error::other)? {
        Some(frame) => return Ok(Some(frame)),
        None => received.first_chunk::<4>().map_or(0, |head| u32::from_be_bytes(*head) as usize) - 1,
    };
    received.resize(HEAD + missing, 0);
    from.read_exact(&mut received[HEAD..])?;
    take(&mut received).map_err(io::Error::other)
}

/// Writes a message to a stream that blocks.
pub(super) fn send(to: &mut impl Write, content: &impl Serialize) -> io::Result<()> {
    to.write_all(&message(content))?;
    to.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_arrive_in_any_pieces() {
        let content = vec![7; LARGEST];
        let sent: Vec<u8> = [message(&"hello")].into_iter().chain(bytes(&content)).flatten().collect();
        let (mut received, mut frames) = (Vec::new(), Vec::new());
        for piece in sent.chunks(4099) {
            received.extend_from_slice(piece);
            frames.extend(std::iter::from_fn(|| take(&mut received).unwrap()));
        }
        assert_eq!(frames[0], Frame::Message(b"\"hello\"".to_vec()));
        let bytes = frames[1..].iter().map(|frame| match frame {
            Frame::Bytes(bytes) => bytes.len(),
            Frame::Message(_) => 0,
        });
        assert_eq!(bytes.sum::<usize>(), LARGEST);
        assert!(received.is_empty());
    }

    #[test]
    fn blocking_reads_return_whole_frames() {
        let sent = [message(&1), message(&"two")].concat();
        let mut stream = sent.as_slice();
        assert_eq!(read(&mut stream).unwrap(), Some(Frame::Message(b"1".to_vec())));
        assert_eq!(read(&mut stream).unwrap(), Some(Frame::Message(b"\"two\"".to_vec())));
        assert_eq!(read(&mut stream).unwrap(), None);
        assert!(read(&mut &sent[..5]).is_err());
    }

    #[test]
    fn hostile_lengths_and_kinds_are_rejected_before_the_content_arrives() {
        for (bytes, error) in [
            (b"\xff\xff\xff\xff".to_vec(), FrameError::TooLarge(u32::MAX as usize)),
            (b"\0\0\0\0m".to_vec(), FrameError::Empty),
            (b"\0\0\0\x02x".to_vec(), FrameError::UnknownKind(b'x')),
            (b"Last login: today".to_vec(), FrameError::TooLarge(0x4c61_7374)),
        ] {
            assert_eq!(take(&mut bytes.clone()), Err(error));
        }
    }
}
