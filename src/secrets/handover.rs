//! Secrets on their way to another machine: a document that a new identity opens.

use zeroize::Zeroizing;

use super::{Format, Reuse, Rule, identity, new_data_key, seal};
use crate::document::Source;

/// A document that is encrypted for one reader.
pub(crate) struct Handover {
    pub(crate) text: String,
    /// The private key of the reader.
    pub(crate) identity: Zeroizing<String>,
}

impl Handover {
    /// Encrypts a JSON document.
    pub(crate) fn new(json: &str) -> Result<Self, String> {
        let (identity, recipient) = identity::generate();
        let key = new_data_key().map_err(|error| error.to_string())?;
        let metadata = Rule::of(vec![recipient]).metadata(&key).map_err(|error| error.to_string())?;
        let plain = Source { name: "inventory".to_owned(), text: json.to_owned() };
        let text = seal(&plain, Format::Yaml, &metadata, &key, None, &mut Reuse::default());
        let text = text.map_err(|_| "the variables cannot be encrypted".to_owned())?;
        Ok(Self { text, identity })
    }
}
