//! Messages of the stream: entries, and notes that an entry is gone.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{
    Registration, SUBJECTS,
    ttl::Ttl,
    words::{Address, Priority},
};
use crate::{nats::Message, vocabulary::ScalarText};

/// What a message says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Entry(Registration),
    /// The entry is gone, for this reason. Of it only what the subject tells is known.
    Removal {
        reason: String,
        cluster: String,
        protocol: String,
        service: String,
        address: String,
        id: String,
    },
}

/// An entry as others may have written it.
#[derive(Deserialize)]
struct Payload {
    cluster: String,
    service: String,
    protocol: String,
    address: String,
    #[serde(default)]
    port: Option<Value>,
    #[serde(default)]
    priority: Option<Value>,
    #[serde(default)]
    annotations: Option<BTreeMap<String, Value>>,
    #[serde(default)]
    ttl: Option<Value>,
}

/// Returns what a message of the stream says; nothing for one that makes no sense.
pub(crate) fn change(message: &Message) -> Option<Change> {
    if let Some(reason) = message.marker() {
        return removal(&message.subject, reason);
    }
    if message.payload.is_empty() {
        return removal(&message.subject, message.header("KV-Operation").unwrap_or("Remove"));
    }
    entry(&message.payload).map(Change::Entry)
}

fn removal(subject: &str, reason: &str) -> Option<Change> {
    let parts: Vec<&str> = subject.strip_prefix(SUBJECTS)?.strip_prefix('.')?.split('.').collect();
    let [cluster, protocol, service, address, id] = parts.try_into().ok()?;
    Some(Change::Removal {
        reason: reason.to_owned(),
        cluster: cluster.to_owned(),
        protocol: protocol.to_owned(),
        service: service.to_owned(),
        address: Address::from_subject(address).into(),
        id: id.to_owned(),
    })
}

/// Returns the problem of a message that is not an entry, or not completely one.
pub(crate) fn problem(message: &Message) -> Option<&'static str> {
    match change(message) {
        None => Some("it is not an entry"),
        Some(Change::Entry(entry)) if entry.ttl.is_none() && has_ttl(&message.payload) => {
            Some("its `ttl` is not a duration, and is ignored")
        }
        Some(_) => None,
    }
}

fn has_ttl(payload: &[u8]) -> bool {
    let payload: Option<Payload> = serde_json::from_slice(payload).ok();
    let ttl = payload.and_then(|payload| payload.ttl);
    ttl.is_some_and(|ttl| !ttl.is_null() && ttl.as_u64() != Some(0))
}

/// Reads an entry: a number may be a text of digits, a ttl may be nanoseconds.
pub(super) fn entry(payload: &[u8]) -> Option<Registration> {
    let payload: Payload = serde_json::from_slice(payload).ok()?;
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let given = |value: Option<Value>| value.filter(|value| !value.is_null());
    let annotations = payload.annotations.unwrap_or_default();
    Some(Registration {
        cluster: payload.cluster.parse().ok()?,
        service: payload.service.parse().ok()?,
        protocol: payload.protocol.parse().ok()?,
        address: payload.address.parse().ok()?,
        port: match given(payload.port).map(|port| text(&port)) {
            Some(port) if port != "0" => Some(port.parse().ok()?),
            _ => None,
        },
        priority: given(payload.priority)
            .map_or(Some(Priority::default()), |value| text(&value).parse().ok())?,
        annotations: annotations
            .into_iter()
            .map(|(name, value)| (name, ScalarText::from(text(&value).as_str())))
            .collect(),
        ttl: given(payload.ttl).and_then(|ttl| match ttl.as_u64() {
            Some(0) => None,
            Some(nanoseconds) => Some(Ttl::For(std::time::Duration::from_nanos(nanoseconds))),
            None => text(&ttl).parse().ok(),
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_others_are_read() {
        for (rest, port, ttl) in [
            (
                r#""port": 80, "priority": 1, "annotations": {"a": "b"}, "ttl": "24h0m0s""#,
                Some(80),
                Some("24h0m0s"),
            ),
            (r#""port": "80", "priority": 1, "ttl": 30000000000"#, Some(80), Some("30s")),
            (r#""port": null, "annotations": null, "ttl": null"#, None, None),
            (r#""ttl": "never""#, None, Some("never")),
        ] {
            let text =
                format!(r#"{{"cluster": "c", "service": "s", "protocol": "p", "address": "::1", {rest}}}"#);
            let entry = entry(text.as_bytes()).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(entry.port.map(super::super::Port::number), port);
            assert_eq!(entry.ttl.map(|ttl| ttl.to_string()).as_deref(), ttl);
        }
        assert!(entry(b"{}").is_none() && entry(b"x").is_none());
    }

    #[test]
    fn messages_that_are_not_completely_entries_have_a_problem() {
        let entry = |rest: &str| {
            format!(r#"{{"cluster": "c", "service": "s", "protocol": "p", "address": "::1"{rest}}}"#)
        };
        for (payload, expected) in [
            (entry(""), None),
            (entry(r#", "ttl": "1h""#), None),
            (entry(r#", "ttl": 0"#), None),
            (entry(r#", "ttl": "soon""#), Some("its `ttl` is not a duration, and is ignored")),
            (entry(r#", "port": "many""#), Some("it is not an entry")),
            ("7".to_owned(), Some("it is not an entry")),
        ] {
            let message = Message { payload: payload.clone().into_bytes(), ..Message::default() };
            assert_eq!(problem(&message), expected, "{payload}");
        }
    }

    #[test]
    fn what_a_stream_notes_itself_is_a_removal() {
        let message = Message {
            subject: format!("{SUBJECTS}.prod.http.web.10_0_0_1.8615c9f698160162"),
            headers: vec![("Nats-Marker-Reason".to_owned(), "MaxAge".to_owned())],
            ..Message::default()
        };
        let Some(Change::Removal { reason, address, service, .. }) = change(&message) else {
            panic!("no removal")
        };
        assert_eq!((&*reason, &*address, &*service), ("MaxAge", "10.0.0.1", "web"));
    }
}
