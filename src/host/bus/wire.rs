//! Encoding of D-Bus messages.

use std::io;

/// Maximum size of a message.
const LARGEST: usize = 1 << 20;

/// Codes of header fields.
const PATH: u8 = 1;
const MEMBER: u8 = 3;
const REPLY_TO: u8 = 5;
const SIGNATURE: u8 = 8;

/// A method call.
pub(super) struct Call<'a> {
    pub(super) to: &'a str,
    pub(super) path: &'a str,
    pub(super) interface: &'a str,
    pub(super) member: &'a str,
    pub(super) arguments: Arguments<'a>,
    pub(super) answer: Answer,
}

/// Arguments of a method.
#[derive(Clone, Copy)]
pub(super) enum Arguments<'a> {
    None,
    Texts(&'a [&'a str]),
    /// One argument that is a list.
    List(&'a [&'a str]),
}

/// Whether the caller wants a response.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Wanted,
    /// `Hello` is always answered.
    Unwanted,
}

impl Call<'_> {
    pub(super) fn message(&self, serial: u32) -> Vec<u8> {
        const METHOD_CALL: u8 = 1;
        const NO_REPLY: u8 = 1;
        let mut fields = Vec::new();
        for (code, kind, value) in [
            (PATH, b'o', self.path),
            (2, b's', self.interface),
            (MEMBER, b's', self.member),
            (6, b's', self.to),
        ] {
            pad(&mut fields, 8);
            fields.extend([code, 1, kind, 0]);
            push_text(&mut fields, value);
        }
        let (signature, body) = self.arguments.encoded();
        if !signature.is_empty() {
            pad(&mut fields, 8);
            fields.extend([SIGNATURE, 1, b'g', 0]);
            fields.push(u8::try_from(signature.len()).unwrap_or(u8::MAX));
            fields.extend(signature.as_bytes());
            fields.push(0);
        }
        let flags = if self.answer == Answer::Unwanted { NO_REPLY } else { 0 };
        let mut message = vec![b'l', METHOD_CALL, flags, 1];
        message.extend(length_bytes(body.len()));
        message.extend(serial.to_le_bytes());
        message.extend(length_bytes(fields.len()));
        message.extend(fields);
        pad(&mut message, 8);
        message.extend(body);
        message
    }
}

impl Arguments<'_> {
    /// Returns the signature and the encoded arguments.
    fn encoded(self) -> (String, Vec<u8>) {
        let mut body = Vec::new();
        match self {
            Self::None => (String::new(), body),
            Self::Texts(texts) => {
                for text in texts {
                    push_text(&mut body, text);
                }
                ("s".repeat(texts.len()), body)
            }
            Self::List(texts) => {
                let mut items = Vec::new();
                for text in texts {
                    push_text(&mut items, text);
                }
                body.extend(length_bytes(items.len()));
                body.extend(items);
                ("as".to_owned(), body)
            }
        }
    }
}

fn length_bytes(length: usize) -> [u8; 4] {
    u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes()
}

fn pad(out: &mut Vec<u8>, to: usize) {
    out.resize(out.len().next_multiple_of(to), 0);
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    pad(out, 4);
    out.extend(length_bytes(text.len()));
    out.extend(text.as_bytes());
    out.push(0);
}

/// Returns the length of the first message; `None` if its header is incomplete.
pub(super) fn length(bytes: &[u8]) -> io::Result<Option<usize>> {
    if bytes.len() < 16 {
        return Ok(None);
    }
    let (Some(body), Some(fields)) = (number(bytes, 4), number(bytes, 12)) else { return Ok(None) };
    let length = (16 + fields).next_multiple_of(8) + body;
    if length > LARGEST { Err(io::ErrorKind::InvalidData.into()) } else { Ok(Some(length)) }
}

/// Reads a number in the byte order that the first byte of a message declares.
fn number(message: &[u8], at: usize) -> Option<usize> {
    let bytes: [u8; 4] = message.get(at..at.checked_add(4)?)?.try_into().ok()?;
    let number = if message[0] == b'B' { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) };
    usize::try_from(number).ok()
}

/// Kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Answer,
    Error,
    Signal,
    Other,
}

/// Header of a message.
#[derive(Debug)]
pub(super) struct Header<'m> {
    pub(super) kind: Kind,
    pub(super) path: Option<&'m [u8]>,
    pub(super) member: Option<&'m [u8]>,
    /// Serial number of the call that this message answers.
    pub(super) reply_to: Option<usize>,
}

impl<'m> Header<'m> {
    /// Parses the header; `None` if it is malformed.
    pub(super) fn read(message: &'m [u8]) -> Option<Self> {
        let kind = match *message.get(1)? {
            2 => Kind::Answer,
            3 => Kind::Error,
            4 => Kind::Signal,
            _ => Kind::Other,
        };
        let mut header = Self { kind, path: None, member: None, reply_to: None };
        let end = number(message, 12)?.checked_add(16)?;
        let mut fields = Reader { message, at: 16 };
        while fields.at < end {
            fields.align(8);
            let (code, kind) = (*message.get(fields.at)?, *message.get(fields.at + 2)?);
            fields.at += 4;
            match (code, kind) {
                (PATH, b's' | b'o') => header.path = Some(fields.bytes()?),
                (MEMBER, b's' | b'o') => header.member = Some(fields.bytes()?),
                (_, b's' | b'o') => drop(fields.bytes()?),
                (REPLY_TO, b'u') => header.reply_to = Some(fields.number()?),
                (_, b'u') => drop(fields.number()?),
                (_, b'g') => drop(fields.signature()?),
                _ => return None,
            }
        }
        Some(header)
    }
}

/// Reads values from a message, one after the other.
pub(super) struct Reader<'m> {
    message: &'m [u8],
    at: usize,
}

impl<'m> Reader<'m> {
    /// Returns a reader at the body of a message.
    pub(super) fn body(message: &'m [u8]) -> Option<Self> {
        let at = number(message, 12)?.checked_add(16)?.checked_next_multiple_of(8)?;
        Some(Self { message, at })
    }

    fn align(&mut self, to: usize) {
        self.at = self.at.next_multiple_of(to);
    }

    /// Reads a number of 32 bits, which can be a boolean.
    pub(super) fn number(&mut self) -> Option<usize> {
        self.align(4);
        let number = number(self.message, self.at)?;
        self.at += 4;
        Some(number)
    }

    fn bytes(&mut self) -> Option<&'m [u8]> {
        let length = self.number()?;
        let bytes = self.message.get(self.at..self.at.checked_add(length)?)?;
        self.at += length + 1;
        Some(bytes)
    }

    /// Reads a string or an object path.
    pub(super) fn text(&mut self) -> Option<String> {
        self.bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// Reads the signature at the beginning of a variant.
    pub(super) fn signature(&mut self) -> Option<&'m [u8]> {
        let length = usize::from(*self.message.get(self.at)?);
        let bytes = self.message.get(self.at + 1..self.at + 1 + length)?;
        self.at += 1 + length + 1;
        Some(bytes)
    }

    /// Reads the items of a list, each aligned to eight bytes.
    pub(super) fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let length = self.number()?;
        self.align(8);
        let end = self.at.checked_add(length).filter(|end| *end <= self.message.len())?;
        let mut items = Vec::new();
        while self.at < end {
            self.align(8);
            items.push(item(self)?);
        }
        Some(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_written_and_a_cut_one_is_no_message() {
        let call = Call {
            to: "org.freedesktop.systemd1",
            path: "/a/b",
            interface: "a.b",
            member: "Do",
            arguments: Arguments::Texts(&["one", "twelve"]),
            answer: Answer::Wanted,
        };
        let mut message = call.message(7);
        assert_eq!(length(&message).unwrap(), Some(message.len()));
        let header = Header::read(&message).unwrap();
        assert_eq!(
            (header.kind, header.path, header.member),
            (Kind::Other, Some(&b"/a/b"[..]), Some(&b"Do"[..]))
        );
        let mut body = Reader::body(&message).unwrap();
        assert_eq!((body.text().as_deref(), body.text().as_deref()), (Some("one"), Some("twelve")));
        assert_eq!(body.text(), None);
        for cut in 0..message.len() {
            let cut = &message[..cut];
            let _ = (length(cut), Header::read(cut).is_some());
            let _ = Reader::body(cut).map(|mut body| (body.text(), body.signature(), body.number()));
            let _ = Reader::body(cut).map(|mut body| body.list(Reader::text));
        }
        assert_eq!(length(&message[..15]).unwrap(), None);
        message[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(length(&message).is_err());
    }

    #[test]
    fn a_list_is_one_argument() {
        let arguments = Arguments::List(&["a", "bcd"]);
        let (signature, body) = arguments.encoded();
        assert_eq!(signature, "as");
        assert_eq!(body, b"\x10\0\0\0\x01\0\0\0a\0\0\0\x03\0\0\0bcd\0");
    }
}
