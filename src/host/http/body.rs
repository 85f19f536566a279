//! Response bodies, checked while they are read.

use std::sync::Arc;

use jiff::Timestamp;
use ureq::{
    BodyReader,
    http::{HeaderMap, Response, header},
};

use super::{Client, HttpError, Part, ProgressListener, Request, agent::Watch};
use crate::{
    host::{files, interrupt::Interrupt},
    vocabulary::Url,
};

/// A response body. It is complete only if it has the announced length.
pub(crate) struct Body {
    url: Url,
    reader: BodyReader<'static>,
    _watch: Watch,
    interrupt: Interrupt,
    listener: Arc<dyn ProgressListener>,
    /// Offset of the body in the file: 0, or the length of the existing part.
    start: u64,
    /// Length of the complete file, if the server reported it.
    total: Option<u64>,
    /// Maximum length of the complete file.
    limit: u64,
    received: u64,
    version: Option<String>,
    validator: Option<Validator>,
    /// When the server sent the answer, by its own clock.
    date: Option<Timestamp>,
}

/// Version of a file, for conditional requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Validator {
    /// An entity tag, strong or weak.
    Tag(String),
    /// The date of the last change.
    Date(String),
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
        let announced = body.content_length();
        let version = version(&parts.headers);
        let validator = validator(&parts.headers);
        let date = parts.headers.get(header::DATE).and_then(|date| date_of(date.to_str().ok()?));
        let (start, total, version) = match (parts.status.as_u16(), request.part) {
            (200, _) => (0, announced, version),
            (206, Some(part)) if continues(part, &parts.headers) => {
                let total = range(&parts.headers).and_then(|range| range.total).or(part.total);
                let total = total.or(announced.map(|announced| part.length + announced));
                (part.length, total, Some(part.version.clone()))
            }
            (206 | 416, Some(_)) => return Err(HttpError::WrongRange { url: url.to_string() }),
            (status, _) => return Err(HttpError::Status { url: url.to_string(), status }),
        };
        if parts.headers.get(header::CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
            let reason = "it sent the file in an encoding that nobody asked for".to_owned();
            return Err(HttpError::Protocol { url: url.to_string(), reason });
        }
        let limit = request.limit.unwrap_or(u64::MAX);
        if total.is_some_and(|total| total > limit) {
            return Err(HttpError::TooLarge { url: url.to_string(), limit });
        }
        let reader = body.into_with_config().limit(u64::MAX).reader();
        Ok(Self {
            url: url.clone(),
            reader,
            _watch: watch,
            interrupt: client.interrupt.clone(),
            listener: Arc::clone(&client.listener),
            start,
            total,
            limit,
            received: 0,
            version,
            validator,
            date,
        })
    }

    /// Returns the offset of the body in the file.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Returns the length of the complete file, if the server reported it.
    pub(crate) fn total(&self) -> Option<u64> {
        self.total
    }

    /// Returns the version of the file, with which an interrupted transfer can be resumed.
    pub(crate) fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// Returns the validator of a conditional request if other content cannot have the same one: a date counts whole seconds, so
    /// content that changed in the second before the answer can change again. `now` is used if the server sends no date.
    pub(crate) fn settled_validator(&self, now: Timestamp) -> Option<&Validator> {
        self.validator.as_ref().filter(|validator| match validator {
            Validator::Tag(_) => true,
            Validator::Date(changed) => {
                let answered = self.date.unwrap_or(now).as_second();
                date_of(changed).is_some_and(|changed| answered - changed.as_second() >= 2)
            }
        })
    }

    /// Reads the next bytes; none at the end.
    pub(crate) fn next(&mut self, buffer: &mut [u8]) -> Result<usize, HttpError> {
        let read = files::read(&mut self.reader, buffer);
        // A connection that was closed because of a signal looks complete.
        if self.interrupt.requested().is_some() {
            return Err(HttpError::Interrupted);
        }
        let truncated =
            |received| HttpError::Truncated { url: self.url.to_string(), received, expected: self.total() };
        match read {
            Ok(0) if self.total.is_some_and(|total| self.start + self.received < total) => {
                Err(truncated(self.start + self.received))
            }
            Ok(count)
                if self.total.is_some_and(|total| self.start + self.received + count as u64 > total) =>
            {
                let reason = "it sent more of the file than there is".to_owned();
                Err(HttpError::Protocol { url: self.url.to_string(), reason })
            }
            Ok(count) if self.start + self.received + count as u64 > self.limit => {
                Err(HttpError::TooLarge { url: self.url.to_string(), limit: self.limit })
            }
            Ok(count) => {
                self.received += count as u64;
                self.listener.received(&self.url, self.start + self.received, self.total());
                Ok(count)
            }
            Err(error) => Err(match HttpError::from_io(error, &self.url) {
                HttpError::Truncated { .. } => truncated(self.start + self.received),
                // An error after the first byte is an interrupted transfer.
                HttpError::Unreachable { .. } if self.received > 0 => truncated(self.start + self.received),
                other => other,
            }),
        }
    }

    /// Reads the body to its end.
    pub(super) fn read_whole(mut self) -> Result<Vec<u8>, HttpError> {
        let mut bytes = Vec::new();
        let mut buffer = vec![0; 16 * 1024];
        loop {
            match self.next(&mut buffer)? {
                0 => return Ok(bytes),
                count => bytes.extend_from_slice(&buffer[..count]),
            }
        }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        self.listener.ended();
    }
}

/// Returns a strong entity tag or a modification date, which `If-Range` accepts.
fn version(headers: &HeaderMap) -> Option<String> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let takes_ranges = text(header::ACCEPT_RANGES).is_none_or(|unit| unit.eq_ignore_ascii_case("bytes"));
    let strong = text(header::ETAG).filter(|tag| tag.starts_with('"'));
    strong.or_else(|| text(header::LAST_MODIFIED)).filter(|_| takes_ranges).map(str::to_owned)
}

/// Reads a date as servers write it.
fn date_of(text: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()
}

fn validator(headers: &HeaderMap) -> Option<Validator> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    text(header::ETAG).map(Validator::Tag).or_else(|| text(header::LAST_MODIFIED).map(Validator::Date))
}

/// Returns whether a response continues at the end of a part, and is of the same version if it has one.
fn continues(part: &Part, headers: &HeaderMap) -> bool {
    let Some(range) = range(headers) else { return false };
    let name = if part.version.starts_with('"') { header::ETAG } else { header::LAST_MODIFIED };
    let is_same = headers.get(name).is_none_or(|version| version.as_bytes() == part.version.as_bytes());
    let totals = range.total.zip(part.total);
    range.start == part.length && is_same && totals.is_none_or(|(now, before)| now == before)
}

/// Value of `Content-Range: bytes FIRST-LAST/TOTAL`.
struct Range {
    start: u64,
    total: Option<u64>,
}

fn range(headers: &HeaderMap) -> Option<Range> {
    let range = headers.get(header::CONTENT_RANGE)?.to_str().ok()?.strip_prefix("bytes ")?;
    let (span, total) = range.split_once('/')?;
    let start = span.split('-').next()?.trim().parse().ok()?;
    Some(Range { start, total: total.trim().parse().ok() })
}
