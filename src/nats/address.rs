//! Where objects and keys are: `obj://BUCKET/KEY` and `kv://BUCKET/KEY`.

use std::{fmt, str::FromStr};

/// An object or a key in a bucket.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Address {
    pub(crate) store: Store,
    pub(crate) bucket: String,
    pub(crate) key: String,
}

/// What kind of bucket it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Store {
    Objects,
    KeyValue,
}

impl Store {
    fn scheme(self) -> &'static str {
        match self {
            Self::Objects => "obj",
            Self::KeyValue => "kv",
        }
    }
}

/// Why a text is not the address of an object or key.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AddressError {
    #[error("\"{0}\" names no bucket and key: write it like {1}://BUCKET/KEY")]
    Form(String, &'static str),
    #[error("\"{0}\" is not the name of a bucket: it is made of letters, digits, _ and -")]
    Bucket(String),
    #[error(
        "\"{0}\" is not a key: it is made of letters, digits, - / _ = and ., and a . neither begins nor ends it"
    )]
    Key(String),
}

impl Address {
    /// Reads an address, if the text is meant to be one of these: by its scheme, in whatever case.
    pub(crate) fn from_argument(text: &str) -> Option<Result<Self, AddressError>> {
        let (scheme, _) = text.split_once("://")?;
        let is_ours = |store: Store| scheme.eq_ignore_ascii_case(store.scheme());
        [Store::Objects, Store::KeyValue].into_iter().any(is_ours).then(|| text.parse())
    }

    /// Returns the stream that the bucket is.
    pub(crate) fn stream(&self) -> String {
        match self.store {
            Store::Objects => format!("OBJ_{}", self.bucket),
            Store::KeyValue => format!("KV_{}", self.bucket),
        }
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
        let store = if scheme.eq_ignore_ascii_case("kv") { Store::KeyValue } else { Store::Objects };
        let form = || AddressError::Form(text.to_owned(), store.scheme());
        let (bucket, key) = rest.split_once('/').ok_or_else(form)?;
        if bucket.is_empty() || key.is_empty() {
            return Err(form());
        }
        if !is_bucket(bucket) {
            return Err(AddressError::Bucket(bucket.to_owned()));
        }
        if store == Store::KeyValue && !is_key(key) {
            return Err(AddressError::Key(key.to_owned()));
        }
        Ok(Self { store, bucket: bucket.to_owned(), key: key.to_owned() })
    }
}

/// Returns whether a bucket can have this name.
pub(super) fn is_bucket(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// Returns whether a key can have this name: it becomes part of a subject, in which `*` and `>` mean something.
pub(super) fn is_key(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-/_=.".contains(&byte);
    !text.is_empty() && text.bytes().all(is_plain) && !text.split('.').any(str::is_empty)
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}://{}/{}", self.store.scheme(), self.bucket, self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_a_bucket_and_a_key_that_may_have_slashes() {
        for (text, store, bucket, key) in [
            ("obj://CCM/site.tar.gz", Store::Objects, "CCM", "site.tar.gz"),
            ("OBJ://CCM/web/site one.tgz", Store::Objects, "CCM", "web/site one.tgz"),
            ("kv://data/web.common", Store::KeyValue, "data", "web.common"),
            ("Kv://d-1_x/a/b=c", Store::KeyValue, "d-1_x", "a/b=c"),
        ] {
            let address = Address::from_argument(text).unwrap().unwrap();
            assert_eq!((address.store, &*address.bucket, &*address.key), (store, bucket, key), "{text}");
        }
        assert_eq!("obj://B/k".parse::<Address>().unwrap().to_string(), "obj://B/k");
        for text in ["/etc/site.yaml", "http://h/x", "objects://a/b", "obj:/a/b"] {
            assert!(Address::from_argument(text).is_none(), "{text}");
        }
    }

    #[test]
    fn what_would_mean_something_in_a_subject_is_refused() {
        for text in
            ["obj://", "obj://B", "obj://B/", "obj:///k", "kv://B.C/k", "obj://B*/k", "kv://B/>", "kv://B/a*"]
        {
            assert!(Address::from_argument(text).unwrap().is_err(), "{text}");
        }
        for key in [".a", "a.", "a..b", "a b", "a$"] {
            assert!(format!("kv://B/{key}").parse::<Address>().is_err(), "{key}");
        }
    }
}
