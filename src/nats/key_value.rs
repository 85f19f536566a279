//! Buckets of keys and values.

use super::{Address, Connection, Message, NatsError, Store, address};

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its place in the bucket's stream.
    pub(crate) revision: u64,
    pub(crate) value: Vec<u8>,
}

/// Says what is wrong with the name of a bucket or key, as an address would.
pub(crate) fn check_bucket(bucket: &str, key: &str) -> Result<Address, String> {
    if !address::is_bucket(bucket) {
        return Err(address::AddressError::Bucket(bucket.to_owned()).to_string());
    }
    if !address::is_key(key) {
        return Err(address::AddressError::Key(key.to_owned()).to_string());
    }
    Ok(Address { store: Store::KeyValue, bucket: bucket.to_owned(), key: key.to_owned() })
}

impl Address {
    /// Returns the subject under which the key is stored.
    pub(super) fn key_subject(&self) -> String {
        format!("$KV.{}.{}", self.bucket, self.key)
    }
}

impl Connection {
    /// Returns what a key holds; nothing if it is not there or was deleted.
    pub(crate) fn value(&self, address: &Address) -> Result<Option<Entry>, NatsError> {
        let last = self.last(&address.stream(), &address.key_subject())?;
        Ok(last
            .filter(|message| !is_gone(message))
            .map(|message| Entry { revision: message.sequence, value: message.payload }))
    }
}

/// Returns whether a message says that there is no value any more.
fn is_gone(message: &Message) -> bool {
    matches!(message.header("KV-Operation"), Some("DEL" | "PURGE")) || message.marker().is_some()
}
