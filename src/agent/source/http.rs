//! Files on web servers.

use std::{
    io::Write,
    sync::Arc,
    time::{Duration, Instant},
};

use jiff::Timestamp;

use super::{Answer, FetchError, Source, Version};
use crate::{
    host::{
        http::{Client, HttpError, ProgressListener, Proxies, Request, Validator},
        interrupt::Interrupt,
    },
    vocabulary::Url,
};

/// Larger files are not downloaded.
const LARGEST: u64 = 1 << 30;

/// A file on a web server, and the signature beside it.
pub(crate) struct HttpSource {
    client: Client,
    url: Url,
    timeout: Duration,
}

/// Nobody looks on while the agent downloads.
struct Unobserved;

impl ProgressListener for Unobserved {
    fn received(&self, _: &Url, _: u64, _: Option<u64>) {}
    fn ended(&self) {}
}

impl HttpSource {
    pub(crate) fn new(url: Url, proxies: Proxies, interrupt: Interrupt, timeout: Duration) -> Self {
        Self { client: Client::new(proxies, interrupt, Arc::new(Unobserved)), url, timeout }
    }
}

impl Source for HttpSource {
    fn fetch(&mut self, known: Option<&Version>, into: &mut dyn Write) -> Result<Answer, FetchError> {
        let known = known.and_then(validator);
        let deadline = Instant::now().checked_add(self.timeout);
        let request =
            Request { limit: Some(LARGEST), unless: known.as_ref(), deadline, ..Request::of(&self.url) };
        let mut body = match self.client.get(&request) {
            Err(HttpError::Status { status: 304, .. }) if known.is_some() => return Ok(Answer::Same),
            answer => answer.map_err(failed)?,
        };
        let version = body.settled_validator(Timestamp::now()).map(version);
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match body.next(&mut buffer).map_err(failed)? {
                0 => return Ok(Answer::New(version)),
                count => into.write_all(&buffer[..count])?,
            }
        }
    }

    fn signature(&mut self) -> Result<Vec<u8>, FetchError> {
        let url = self.url.with_suffix(".sig");
        let deadline = Instant::now().checked_add(self.timeout);
        self.client
            .fetch_small(&Request { deadline, ..Request::of(&url) }, crate::bundle::LARGEST_SIGNATURE)
            .map_err(failed)
    }
}

fn version(validator: &Validator) -> Version {
    Version(match validator {
        Validator::Tag(tag) => format!("tag {tag}"),
        Validator::Date(date) => format!("date {date}"),
    })
}

fn validator(Version(text): &Version) -> Option<Validator> {
    match text.split_once(' ')? {
        ("tag", tag) => Some(Validator::Tag(tag.to_owned())),
        ("date", date) => Some(Validator::Date(date.to_owned())),
        _ => None,
    }
}

fn failed(error: HttpError) -> FetchError {
    match error {
        HttpError::Interrupted => FetchError::Interrupted,
        HttpError::TimeUp { .. } => FetchError::Away(format!("{error} (fetch_timeout)")),
        HttpError::Status { status: 404 | 410, .. } => FetchError::Missing(error.to_string()),
        error => FetchError::Away(error.to_string()),
    }
}
