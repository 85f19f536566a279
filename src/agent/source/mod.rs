//! Where manifests and data come from, asked again and again.
//!
//! A [`Source`] answers one question: is there something newer than what is known? It is asked from a thread of its own
//! ([`Fetcher`]), so that a server that stalls delays nobody else, and never while the run lock is held. What it sends is
//! written to a private file; whether that is any good is decided elsewhere ([`super::cache`], [`super::intake`]).

mod address;
mod fetcher;
mod http;
mod local;
mod nats;
mod pace;
mod waker;

use std::io::{self, Write};

pub(crate) use self::{
    address::{Address, Purpose},
    fetcher::{Arrival, Fetcher, News, Orders, SPREAD, Seen, Signatures, fetch_local, hash_of},
    http::HttpSource,
    local::LocalSource,
    nats::NatsSource,
    waker::Waker,
};
use serde::{Deserialize, Serialize};

/// Something that can be asked for its content again and again. It is made and lives in a thread of its own.
pub(crate) trait Source {
    /// Writes the content to `into`, unless it is still the version that is known. What was written counts only if the
    /// answer is [`Answer::New`].
    fn fetch(&mut self, known: Option<&Version>, into: &mut dyn Write) -> Result<Answer, FetchError>;

    /// Returns the signature that lies beside the content: `URL.sig`, or the object `KEY.sig`.
    fn signature(&mut self) -> Result<Vec<u8>, FetchError>;
}

/// Makes a source, in the thread that it will live in. A source that is told of changes calls [`Waker::changed`] then.
pub(crate) type Opening = Box<dyn FnOnce(Waker) -> Box<dyn Source> + Send>;

/// What a source calls a version of its content: an entity tag, a revision, a digest. Opaque to everybody else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Version(pub(crate) String);

/// What a source answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The content is the one that is known.
    Same,
    /// The content was written. Without a version the digest of the content tells whether it is another one.
    New(Option<Version>),
}

/// Why there is no answer, or none that can be used. The texts hold no credentials.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    /// Nobody answers, or not to the end; the next attempt may go well.
    #[error("{0}")]
    Away(String),
    /// The source answers that there is nothing, or nothing any more.
    #[error("{0}")]
    Missing(String),
    /// The content cannot be kept.
    #[error("cannot keep what was fetched: {0}")]
    Unwritten(#[from] io::Error),
    /// The program is asked to end.
    #[error("interrupted")]
    Interrupted,
}

/// A source that cannot be asked for want of a connection.
pub(crate) struct Unsupported;

impl Source for Unsupported {
    fn fetch(&mut self, _: Option<&Version>, _: &mut dyn Write) -> Result<Answer, FetchError> {
        Err(FetchError::Away("there is no connection to NATS".to_owned()))
    }

    fn signature(&mut self) -> Result<Vec<u8>, FetchError> {
        Err(FetchError::Away("there is no connection to NATS".to_owned()))
    }
}
