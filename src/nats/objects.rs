//! Buckets of objects: a description of each, and its bytes in chunks.

use std::io::{self, Write};

use base64::{
    Engine,
    engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD},
};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::{Address, Connection, NatsError};

/// What a bucket says of an object.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct ObjectInfo {
    /// What its chunks are stored under; another each time that it is put.
    nuid: String,
    #[serde(default)]
    pub(crate) size: u64,
    #[serde(default)]
    chunks: u64,
    /// `SHA-256=` and base64.
    #[serde(default)]
    pub(crate) digest: String,
    #[serde(default)]
    deleted: bool,
    #[serde(default)]
    options: Option<Options>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Options {
    link: Option<Link>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Link {
    #[serde(default)]
    bucket: String,
    #[serde(default)]
    name: String,
}

/// Why an object could not be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ObjectError {
    #[error(transparent)]
    Nats(#[from] NatsError),
    #[error("it is not there, or was deleted")]
    Missing,
    #[error("it is a link to a bucket or to another link, which is not followed")]
    Link,
    #[error("it has {size} bytes, more than the {limit} that are allowed")]
    TooLarge { size: u64, limit: u64 },
    #[error("it was replaced while it was fetched")]
    Replaced,
    #[error("what was fetched does not have the digest that its bucket says it has")]
    Digest,
    #[error("cannot write what is fetched: {0}")]
    Write(io::Error),
}

impl Address {
    /// Returns the subject under which the description of the object is stored.
    pub(super) fn object_subject(&self) -> String {
        format!("$O.{}.M.{}", self.bucket, URL_SAFE.encode(&self.key))
    }
}

impl ObjectInfo {
    /// Returns what differs between any two contents that were put under one name.
    pub(crate) fn version(&self) -> &str {
        &self.nuid
    }
}

impl Connection {
    /// Returns what a bucket says of an object; nothing if it is not there or was deleted.
    pub(crate) fn object_info(&self, address: &Address) -> Result<Option<ObjectInfo>, ObjectError> {
        let Some(message) = self.last(&address.stream(), &address.object_subject())? else { return Ok(None) };
        let info: ObjectInfo = serde_json::from_slice(&message.payload)
            .map_err(|error| NatsError::BadAnswer(format!("the description of {address}: {error}")))?;
        Ok((!info.deleted).then_some(info))
    }

    /// Writes what an object holds, at most `limit` bytes of it, and returns what was said of it. An object that is put
    /// anew meanwhile is fetched again by whoever asked.
    pub(crate) fn fetch(
        &self,
        address: &Address,
        limit: u64,
        to: &mut dyn Write,
    ) -> Result<ObjectInfo, ObjectError> {
        let info = self.object_info(address)?.ok_or(ObjectError::Missing)?;
        self.fetch_described(address, &info, limit, to)?;
        Ok(info)
    }

    /// Writes what an object holds of which the description is known.
    pub(crate) fn fetch_described(
        &self,
        address: &Address,
        info: &ObjectInfo,
        limit: u64,
        to: &mut dyn Write,
    ) -> Result<(), ObjectError> {
        let Some(link) = info.options.as_ref().and_then(|options| options.link.clone()) else {
            return self.fetch_content(address, info, limit, to);
        };
        let target = Address { bucket: link.bucket, key: link.name, store: address.store };
        let content = match target.key.as_str() {
            "" => None,
            _ => self.object_info(&target)?,
        };
        let content =
            content.filter(|content| content.options.as_ref().is_none_or(|options| options.link.is_none()));
        self.fetch_content(&target, &content.ok_or(ObjectError::Link)?, limit, to)
    }

    fn fetch_content(
        &self,
        address: &Address,
        info: &ObjectInfo,
        limit: u64,
        to: &mut dyn Write,
    ) -> Result<(), ObjectError> {
        if info.size > limit {
            return Err(ObjectError::TooLarge { size: info.size, limit });
        }
        let (stream, subject) = (address.stream(), format!("$O.{}.C.{}", address.bucket, info.nuid));
        let (mut hash, mut chunks, mut size, mut next) = (Sha256::new(), 0, 0_u64, 1);
        while chunks < info.chunks {
            self.check_interrupt()?;
            let (page, before) = (self.page(&stream, &subject, next)?, size);
            if page.is_empty() {
                return Err(ObjectError::Replaced);
            }
            for message in page {
                chunks += 1;
                next = message.after(next)?;
                size = size.saturating_add(message.payload.len() as u64);
                if size > info.size {
                    return Err(ObjectError::Digest);
                }
                hash.update(&message.payload);
                to.write_all(&message.payload).map_err(ObjectError::Write)?;
            }
            if size == before {
                return Err(NatsError::BadAnswer("chunks without content".to_owned()).into());
            }
        }
        // Buckets that other programs made may leave the padding out.
        let digest = URL_SAFE_NO_PAD.encode(hash.finalize());
        let said = info.digest.strip_prefix("SHA-256=").unwrap_or_default().trim_end_matches('=');
        if size == info.size && said == digest { Ok(()) } else { Err(ObjectError::Digest) }
    }
}
