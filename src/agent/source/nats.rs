//! Objects and keys in NATS buckets.

use std::{io::Write, sync::Arc};

use super::{Answer, FetchError, Source, Version, Waker};
use crate::nats::{Address, Connection, Following, NatsError, ObjectError, Store};

/// Larger objects are not fetched.
const LARGEST: u64 = 1 << 30;

/// An object or key, and the signature beside an object.
///
/// It is told of changes by a core subscription and after every reconnect; whatever it misses, the poll finds. What a
/// bucket calls a version is not trusted across buckets: one that was made anew counts from the beginning.
pub(crate) struct NatsSource {
    connection: Arc<Connection>,
    address: Address,
    /// Wakes the thread until the source is dropped.
    _following: Following,
}

impl NatsSource {
    /// Begins to follow an object or key: `waker` is called whenever it may have changed.
    pub(crate) fn new(connection: Arc<Connection>, address: Address, waker: Waker) -> Self {
        let following = connection.follow(&address, move || waker.changed());
        Self { connection, address, _following: following }
    }

    fn object(&self, known: Option<&Version>, into: &mut dyn Write) -> Result<Answer, FetchError> {
        let found = self.connection.object_info(&self.address).map_err(|error| self.failed(error))?;
        let found = found.ok_or_else(|| self.failed(ObjectError::Missing))?;
        if known.is_some_and(|Version(known)| known == found.version()) {
            return Ok(Answer::Same);
        }
        self.connection
            .fetch_described(&self.address, &found, LARGEST, into)
            .map_err(|error| self.failed(error))?;
        Ok(Answer::New(Some(Version(found.version().to_owned()))))
    }

    fn key(&self, into: &mut dyn Write) -> Result<Answer, FetchError> {
        let entry = self.connection.value(&self.address).map_err(|error| self.failed(error.into()))?;
        let entry = entry.ok_or_else(|| self.failed(ObjectError::Missing))?;
        if entry.value.is_empty() {
            return Err(FetchError::Missing(format!("{} is empty", self.address)));
        }
        into.write_all(&entry.value)?;
        Ok(Answer::New(None))
    }

    fn failed(&self, error: ObjectError) -> FetchError {
        // A server that does not answer over a connection that seems to be there is left for another one.
        if let ObjectError::Nats(NatsError::NoAnswer { .. }) = &error {
            self.connection.reconnect();
        }
        let text = format!("cannot read {}: {error}", self.address);
        match error {
            ObjectError::Missing | ObjectError::Link | ObjectError::TooLarge { .. } => {
                FetchError::Missing(text)
            }
            ObjectError::Nats(NatsError::NoStream { .. }) => FetchError::Missing(text),
            ObjectError::Write(error) => FetchError::Unwritten(error),
            ObjectError::Nats(_) | ObjectError::Replaced | ObjectError::Digest => FetchError::Away(text),
        }
    }
}

impl Source for NatsSource {
    fn fetch(&mut self, known: Option<&Version>, into: &mut dyn Write) -> Result<Answer, FetchError> {
        match self.address.store {
            Store::KeyValue => self.key(into),
            Store::Objects => self.object(known, into),
        }
    }

    fn signature(&mut self) -> Result<Vec<u8>, FetchError> {
        let address = Address { key: format!("{}.sig", self.address.key), ..self.address.clone() };
        let mut signature = Vec::new();
        self.connection
            .fetch(&address, crate::bundle::LARGEST_SIGNATURE, &mut signature)
            .map_err(|error| self.failed(error))?;
        Ok(signature)
    }
}
