//! A message as the rest of the program sees it.

use super::NatsError;

/// A message of a stream or subject.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) subject: String,
    /// Its place in the stream; 0 for one that was not read from a stream.
    pub(crate) sequence: u64,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) payload: Vec<u8>,
}

impl Message {
    /// Returns the value of a header; names are compared without regard to case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Returns the reason of a message by which a stream records that its last message of a subject is gone. Other reasons
    /// are those of publishers.
    pub(crate) fn marker(&self) -> Option<&str> {
        self.header("Nats-Marker-Reason").filter(|reason| ["MaxAge", "Purge", "Remove"].contains(reason))
    }

    /// Returns how many bytes its parts have.
    pub(super) fn size(&self) -> u64 {
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        (self.subject.len() + headers + self.payload.len()) as u64
    }

    /// Returns the sequence to continue at. A stream that goes back would never end.
    pub(super) fn after(&self, expected: u64) -> Result<u64, NatsError> {
        let is_later = self.sequence >= expected;
        let next = self.sequence.checked_add(1).filter(|_| is_later);
        next.ok_or_else(|| NatsError::BadAnswer(format!("message {} after {expected}", self.sequence)))
    }

    /// Reads headers as they are on the wire: `NATS/1.0`, then `Name: value` lines.
    pub(super) fn parse_headers(text: &str) -> Vec<(String, String)> {
        let pair = |line: &str| {
            let (name, value) = line.split_once(':')?;
            Some((name.trim().to_owned(), value.trim().to_owned()))
        };
        text.lines().skip(1).filter_map(pair).collect()
    }
}

impl From<async_nats::Message> for Message {
    fn from(message: async_nats::Message) -> Self {
        let headers = message.headers.iter().flat_map(|headers| headers.iter());
        let mut headers: Vec<_> = headers
            .flat_map(|(name, values)| {
                values.iter().map(move |value| (name.to_string(), value.as_str().to_owned()))
            })
            .collect();
        headers.sort();
        let sequence = message.reply.as_ref().and_then(|reply| sequence_in(reply));
        Self {
            subject: message.subject.to_string(),
            sequence: sequence.unwrap_or_default(),
            headers,
            payload: message.payload.to_vec(),
        }
    }
}

/// Returns the place in its stream of a message that a consumer delivers: the subject for acknowledging it tells.
fn sequence_in(reply: &str) -> Option<u64> {
    let parts: Vec<&str> = reply.strip_prefix("$JS.ACK.")?.split('.').collect();
    // With domain and account before the names, or without.
    let at = if parts.len() >= 9 { 5 } else { 3 };
    parts.get(at)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reasons_of_the_server_make_a_marker() {
        for (reason, expected) in [
            ("MaxAge", Some("MaxAge")),
            ("Purge", Some("Purge")),
            ("Remove", Some("Remove")),
            ("other", None),
        ] {
            let headers = vec![("Nats-Marker-Reason".to_owned(), reason.to_owned())];
            assert_eq!(Message { headers, ..Message::default() }.marker(), expected, "{reason}");
        }
    }

    #[test]
    fn the_place_in_the_stream_is_told_by_the_reply() {
        assert_eq!(sequence_in("$JS.ACK.S.C.1.42.7.1700000000.0"), Some(42));
        assert_eq!(sequence_in("$JS.ACK.hub.ACC.S.C.1.42.7.1700000000.0"), Some(42));
        assert_eq!(sequence_in("_INBOX.a.b"), None);
    }
}
