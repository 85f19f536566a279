//! The stream of a fleet's entries.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};

use super::{Registration, SUBJECTS, Ttl};
use crate::nats::{Connection, NatsError, StreamSettings, nanoseconds};

/// Result of creating the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Initialised {
    Created,
    /// These settings were changed.
    Repaired(Vec<String>),
    Unchanged,
}

/// Returns the settings of a stream for registrations.
fn settings(stream: &str, replicas: u8, max_age: Duration) -> BTreeMap<String, Value> {
    let settings = [
        ("name", json!(stream)),
        ("subjects", json!([format!("{SUBJECTS}.>")])),
        ("storage", json!("file")),
        ("retention", json!("limits")),
        ("max_msgs_per_subject", json!(1)),
        ("max_age", nanoseconds(max_age)),
        ("allow_rollup_hdrs", json!(true)),
        ("allow_msg_ttl", json!(true)),
        ("subject_delete_marker_ttl", nanoseconds(max_age)),
        ("deny_delete", json!(true)),
        ("allow_direct", json!(true)),
        ("num_replicas", json!(replicas)),
    ];
    settings.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Creates the stream, or changes the settings of an existing stream.
pub(crate) fn init(
    connection: &Connection,
    stream: &str,
    replicas: u8,
    max_age: Duration,
) -> Result<Initialised, NatsError> {
    let wanted = settings(stream, replicas, max_age);
    let Some(StreamSettings(mut have)) = connection.stream_settings(stream)? else {
        connection.create_stream(stream, &StreamSettings(wanted))?;
        return Ok(Initialised::Created);
    };
    let differing: Vec<String> = wanted
        .iter()
        .filter(|(key, value)| have.get(*key) != Some(value))
        .map(|(key, _)| key.clone())
        .collect();
    if differing.is_empty() {
        return Ok(Initialised::Unchanged);
    }
    have.extend(wanted);
    connection.update_stream(stream, &StreamSettings(have))?;
    Ok(Initialised::Repaired(differing))
}

/// Removes an entry and returns whether it existed.
///
/// Writes a delete marker instead of purging, so that watchers see the removal. The marker expires, as the markers that
/// the server writes for expired entries.
pub(crate) fn remove(connection: &Connection, stream: &str, entry: &Registration) -> Result<bool, NatsError> {
    let subject = entry.subject();
    let found = connection.last(stream, &subject)?;
    if found.is_none_or(|message| message.marker().is_some()) {
        return Ok(false);
    }
    let settings = connection.stream_settings(stream)?.map(|StreamSettings(settings)| settings);
    let setting = |key: &str| settings.as_ref().and_then(|settings| settings.get(key)).cloned();
    let mut headers = vec![("Nats-Rollup", "sub".to_owned()), ("Nats-Marker-Reason", "Remove".to_owned())];
    if setting("allow_msg_ttl") == Some(true.into()) {
        let marker = setting("subject_delete_marker_ttl").and_then(|ttl| ttl.as_u64()).filter(|ttl| *ttl > 0);
        let ttl = Ttl::For(marker.map_or(Duration::from_mins(1), Duration::from_nanos));
        headers.push(("Nats-TTL", ttl.to_string()));
    }
    connection.put(&subject, &headers, Vec::new())?;
    Ok(true)
}
