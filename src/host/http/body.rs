//! The body of an answer, checked while it is read.

use std::{
    io::{self, Read},
    rc::Rc,
};

use ureq::{
    BodyReader,
    http::{HeaderMap, Response, header},
};

use super::{Audience, Client, HttpError, Request, agent::Watch};
use crate::{host::interrupt::Interrupt, vocabulary::Url};

/// The body of an answer. Its end is its end only if as much came as was announced.
pub(crate) struct Body {
    url: Url,
    reader: BodyReader<'static>,
    _watch: Watch,
    interrupt: Interrupt,
    audience: Rc<dyn Audience>,
    /// Where in the file the body begins: 0, or the length of the part that was there.
    start: u64,
    /// How long the body will be.
    announced: Option<u64>,
    received: u64,
    version: Option<String>,
}

impl Body {
    pub(super) fn of(
        response: Response<ureq::Body>,
        watch: Watch,
        url: &Url,
        request: &Request,
        client: &Client,
    ) -> Result<Self, HttpError> {
        let (parts, body) = response.into_parts();
        let start = match (parts.status.as_u16(), request.part) {
            (200, _) => 0,
            (206, Some(part)) if range_start(&parts.headers) == Some(part.length) => part.length,
            (206 | 416, Some(_)) => return Err(HttpError::WrongRange { url: url.to_string() }),
            (status, _) => return Err(HttpError::Status { url: url.to_string(), status }),
        };
        if parts.headers.get(header::CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
            let reason = "it sent the file in an encoding that nobody asked for".to_owned();
            return Err(HttpError::Protocol { url: url.to_string(), reason });
        }
        let announced = body.content_length();
        let reader = body.into_with_config().limit(u64::MAX).reader();
        let version = version(&parts.headers);
        Ok(Self {
            url: url.clone(),
            reader,
            _watch: watch,
            interrupt: client.interrupt.clone(),
            audience: Rc::clone(&client.audience),
            start,
            announced,
            received: 0,
            version,
        })
    }

    /// Where in the file the body begins.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// How long the whole file is, if the server said so.
    pub(crate) fn total(&self) -> Option<u64> {
        self.announced.map(|announced| self.start + announced)
    }

    /// What the server calls this version of the file; with it, a broken transfer can be taken up again.
    pub(crate) fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// Reads the next bytes; none at the end.
    pub(crate) fn next(&mut self, buffer: &mut [u8]) -> Result<usize, HttpError> {
        let read = loop {
            match self.reader.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        // A connection that was ended by a signal looks like one that came to its end.
        if self.interrupt.requested().is_some() {
            return Err(HttpError::Interrupted);
        }
        let truncated =
            |received| HttpError::Truncated { url: self.url.to_string(), received, expected: self.total() };
        match read {
            Ok(0) if self.announced.is_some_and(|announced| self.received < announced) => {
                Err(truncated(self.start + self.received))
            }
            Ok(count) => {
                self.received += count as u64;
                self.audience.received(&self.url, self.start + self.received, self.total());
                Ok(count)
            }
            Err(error) => Err(match HttpError::from_io(error, &self.url) {
                HttpError::Truncated { .. } => truncated(self.start + self.received),
                // A connection that breaks after something came is a transfer cut short.
                HttpError::Unreachable { .. } if self.received > 0 => truncated(self.start + self.received),
                other => other,
            }),
        }
    }

    pub(super) fn read_small(mut self, limit: u64) -> Result<Vec<u8>, HttpError> {
        let mut bytes = Vec::new();
        let mut buffer = vec![0; 16 * 1024];
        loop {
            match self.next(&mut buffer)? {
                0 => return Ok(bytes),
                count => bytes.extend_from_slice(&buffer[..count]),
            }
            if bytes.len() as u64 > limit {
                return Err(HttpError::TooLarge { url: self.url.to_string(), limit });
            }
        }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        self.audience.ended();
    }
}

/// A strong entity tag, or a date of change: what `If-Range` accepts.
fn version(headers: &HeaderMap) -> Option<String> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let takes_ranges = text(header::ACCEPT_RANGES).is_none_or(|unit| unit.eq_ignore_ascii_case("bytes"));
    let strong = text(header::ETAG).filter(|tag| tag.starts_with('"'));
    strong.or_else(|| text(header::LAST_MODIFIED)).filter(|_| takes_ranges).map(str::to_owned)
}

/// The first byte that `Content-Range: bytes FIRST-LAST/TOTAL` speaks of.
fn range_start(headers: &HeaderMap) -> Option<u64> {
    let range = headers.get(header::CONTENT_RANGE)?.to_str().ok()?;
    range.strip_prefix("bytes ")?.split('-').next()?.trim().parse().ok()
}
