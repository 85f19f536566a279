//! Messages about a run.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::session::{Event, Summary};

/// One message with the id for deduplication.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Posting {
    pub(super) id: String,
    pub(super) body: Map<String, Value>,
}

impl Posting {
    pub(super) fn payload(&self) -> Vec<u8> {
        serde_json::to_vec(&self.body).unwrap_or_default()
    }
}

/// A completed run.
pub(crate) struct Run<'a> {
    /// Host name of the machine.
    pub(crate) host: &'a str,
    /// Source of the manifest, without credentials.
    pub(crate) manifest: &'a str,
    pub(crate) summary: &'a Summary,
    pub(crate) events: &'a [Event],
}

impl Run<'_> {
    /// Returns the events of changed and failed resources, and the summary last. The events have no properties, state
    /// or content.
    pub(super) fn postings(&self) -> Vec<Posting> {
        let told = self.events.iter().filter(|event| event.changed || event.failed);
        let mut postings: Vec<_> =
            told.map(|event| self.posting(event.event_id.clone(), &json!(event.outline()))).collect();
        let id = format!("{}-{}-{}", self.host, self.summary.start_time, self.summary.end_time);
        postings.push(self.posting(id, &json!(self.summary)));
        postings
    }

    fn posting(&self, id: String, body: &Value) -> Posting {
        let mut named = Map::new();
        named.insert("host".to_owned(), self.host.into());
        named.insert("manifest".to_owned(), self.manifest.into());
        named.extend(body.as_object().cloned().into_iter().flatten());
        Posting { id, body: named }
    }
}
