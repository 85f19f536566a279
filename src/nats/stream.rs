//! Streams: what lies in them is read with single requests, and what is put into them is acknowledged.

use std::{collections::BTreeMap, time::Duration};

use async_nats::{Client, HeaderMap, RequestErrorKind, StatusCode};
use base64::{Engine, engine::general_purpose::STANDARD};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Connection, Message, NatsError, connection::PATIENCE};
use crate::vocabulary::Size;

/// How many messages are asked for at once, and how many bytes.
const PAGE: usize = 256;
const PAGE_BYTES: usize = 4 << 20;
/// How many bytes one answer can have: a page, and the largest message that a server can be configured for.
const LARGEST_ANSWER: Size = Size::mebibytes(68);
/// What a message takes in memory beyond its bytes.
const MESSAGE_OVERHEAD: u64 = 256;

/// Codes of `JetStream`'s errors.
const STREAM_NOT_FOUND: u64 = 10_059;
const MESSAGE_NOT_FOUND: u64 = 10_037;
const NOT_FOUND: u64 = 404;
/// The status of a message that says that there are no more.
const END_OF_BATCH: u16 = 204;

/// What a stream is made with. Keys that are not here are left as they are when it is changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StreamSettings(pub(crate) BTreeMap<String, Value>);

/// What a stream says of a message that it took.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Acknowledged {
    pub(crate) stream: String,
    #[serde(rename = "seq")]
    pub(crate) sequence: u64,
    /// Whether it had the message already.
    #[serde(default)]
    pub(crate) duplicate: bool,
}

#[derive(Deserialize)]
struct ApiError {
    code: u64,
    #[serde(default)]
    err_code: u64,
    #[serde(default)]
    description: String,
}

#[derive(Deserialize)]
struct StoredMessage {
    subject: String,
    seq: u64,
    #[serde(default)]
    hdrs: String,
    #[serde(default)]
    data: String,
}

impl Connection {
    /// Returns the last message of a subject, if the stream has one.
    pub(crate) fn last(&self, stream: &str, subject: &str) -> Result<Option<Message>, NatsError> {
        let asker = self.asker();
        let (stream, subject) = (stream.to_owned(), subject.to_owned());
        self.wait(PATIENCE, async move {
            let direct = format!("{}.DIRECT.GET.{stream}.{subject}", asker.api);
            match asker.direct(direct, String::new()).await? {
                Direct::Messages(messages) => Ok(messages.into_iter().next()),
                Direct::NotAllowed => asker.stored(&stream, &json!({ "last_by_subj": subject })).await,
            }
        })
    }

    /// Returns messages of subjects, `first` being the lowest sequence, in the order of the stream: as many as the server
    /// gives at once, and none when there are no more.
    pub(crate) fn page(&self, stream: &str, subjects: &str, first: u64) -> Result<Vec<Message>, NatsError> {
        let asker = self.asker();
        let (stream, subjects) = (stream.to_owned(), subjects.to_owned());
        let single = json!({ "seq": first.max(1), "next_by_subj": subjects });
        let mut several = single.clone();
        (several["batch"], several["max_bytes"]) = (PAGE.into(), PAGE_BYTES.into());
        self.wait(PATIENCE * 4, async move {
            let direct = format!("{}.DIRECT.GET.{stream}", asker.api);
            match asker.direct(direct, several.to_string()).await? {
                Direct::Messages(messages) => Ok(messages),
                Direct::NotAllowed => {
                    asker.stored(&stream, &single).await.map(|message| message.into_iter().collect())
                }
            }
        })
    }

    /// Calls `visit` for each message of subjects, until there are no more or together they have more than `limit` bytes.
    /// Returns whether all of them were visited.
    pub(crate) fn visit(
        &self,
        stream: &str,
        subjects: &str,
        limit: Size,
        mut visit: impl FnMut(Message),
    ) -> Result<bool, NatsError> {
        let (mut next, mut size) = (1, 0);
        loop {
            self.check_interrupt()?;
            let page = self.page(stream, subjects, next)?;
            if page.is_empty() {
                return Ok(true);
            }
            for message in page {
                next = message.after(next)?;
                size += message.size() + MESSAGE_OVERHEAD;
                if size > limit.bytes() {
                    return Ok(false);
                }
                visit(message);
            }
        }
    }

    /// Puts a message into whatever stream takes its subject, and waits until it is there.
    pub(crate) fn put(
        &self,
        subject: &str,
        headers: &[(&str, String)],
        payload: Vec<u8>,
    ) -> Result<Acknowledged, NatsError> {
        let (client, servers) = (self.client.clone(), self.servers());
        let (subject, headers) = (subject.to_owned(), header_map(headers));
        self.wait(PATIENCE, async move {
            let request = async_nats::Request::new().headers(headers).payload(payload.into());
            let answer =
                client.send_request(subject.clone(), request).await.map_err(|error| match error.kind() {
                    RequestErrorKind::NoResponders => NatsError::NobodyListens { subject },
                    _ => request_error(&error, servers),
                })?;
            answered(&answer.payload, "")
        })
    }

    /// Publishes a message to whoever listens, and waits only until it has left this machine.
    pub(crate) fn publish(
        &self,
        subject: &str,
        headers: &[(&str, String)],
        payload: Vec<u8>,
    ) -> Result<(), NatsError> {
        let (client, subject, headers) = (self.client.clone(), subject.to_owned(), header_map(headers));
        self.wait(PATIENCE, async move {
            let failed = |error: String| NatsError::Client(error);
            let published = if headers.is_empty() {
                client.publish(subject, payload.into()).await
            } else {
                client.publish_with_headers(subject, headers, payload.into()).await
            };
            published.map_err(|error| failed(error.to_string()))?;
            client.flush().await.map_err(|error| failed(error.to_string()))
        })
    }

    /// Returns the settings of a stream, if it exists.
    pub(crate) fn stream_settings(&self, stream: &str) -> Result<Option<StreamSettings>, NatsError> {
        #[derive(Deserialize)]
        struct Info {
            config: StreamSettings,
        }
        match self.ask::<Info>(&format!("STREAM.INFO.{stream}"), Value::Null, stream) {
            Ok(info) => Ok(Some(info.config)),
            Err(NatsError::NoStream { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes a stream.
    pub(crate) fn create_stream(&self, stream: &str, settings: &StreamSettings) -> Result<(), NatsError> {
        self.ask::<Value>(&format!("STREAM.CREATE.{stream}"), json!(settings), stream).map(drop)
    }

    /// Changes the settings of a stream.
    pub(crate) fn update_stream(&self, stream: &str, settings: &StreamSettings) -> Result<(), NatsError> {
        self.ask::<Value>(&format!("STREAM.UPDATE.{stream}"), json!(settings), stream).map(drop)
    }

    /// Asks `JetStream` for something that concerns a stream.
    pub(super) fn ask<T: for<'de> Deserialize<'de> + Send + 'static>(
        &self,
        request: &str,
        payload: Value,
        stream: &str,
    ) -> Result<T, NatsError> {
        let asker = self.asker();
        let (subject, stream) = (format!("{}.{request}", self.api), stream.to_owned());
        self.wait(PATIENCE, async move {
            let payload = if payload.is_null() { String::new() } else { payload.to_string() };
            let answer = asker.request(subject, payload).await?;
            answered(&answer, &stream)
        })
    }

    fn asker(&self) -> Asker {
        Asker { client: self.client.clone(), api: self.api.clone(), servers: self.servers() }
    }
}

/// What a request needs of a connection.
struct Asker {
    client: Client,
    api: String,
    servers: String,
}

/// What came of asking the servers that hold a stream directly.
enum Direct {
    Messages(Vec<Message>),
    /// The stream does not allow it, or there is none.
    NotAllowed,
}

impl Asker {
    async fn request(&self, subject: String, payload: String) -> Result<Vec<u8>, NatsError> {
        let answer = self.client.request(subject, payload.into()).await;
        answer.map(|answer| answer.payload.to_vec()).map_err(|error| match error.kind() {
            RequestErrorKind::NoResponders => NatsError::NoJetStream { servers: self.servers.clone() },
            _ => request_error(&error, self.servers.clone()),
        })
    }

    /// Asks for a message as the stream's leader has it.
    async fn stored(&self, stream: &str, which: &Value) -> Result<Option<Message>, NatsError> {
        #[derive(Deserialize)]
        struct Found {
            message: StoredMessage,
        }
        let subject = format!("{}.STREAM.MSG.GET.{stream}", self.api);
        let answer = self.request(subject, which.to_string()).await?;
        let found: Found = match answered(&answer, stream) {
            Ok(found) => found,
            Err(NatsError::Api { code: MESSAGE_NOT_FOUND | NOT_FOUND, .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let decode =
            |text: &str| STANDARD.decode(text).map_err(|_| NatsError::BadAnswer("not base64".to_owned()));
        let StoredMessage { subject, seq, hdrs, data } = found.message;
        let headers = Message::parse_headers(&String::from_utf8_lossy(&decode(&hdrs)?));
        Ok(Some(Message { subject, sequence: seq, headers, payload: decode(&data)? }))
    }

    /// Asks any server that holds the stream. One that knows batches sends several messages and a last one that says so.
    async fn direct(&self, subject: String, payload: String) -> Result<Direct, NatsError> {
        let client = |error: String| NatsError::Client(error);
        let inbox = self.client.new_inbox();
        let mut answers =
            self.client.subscribe(inbox.clone()).await.map_err(|error| client(error.to_string()))?;
        self.client
            .publish_with_reply(subject, inbox, payload.into())
            .await
            .map_err(|error| client(error.to_string()))?;
        let (mut messages, mut size) = (Vec::new(), 0);
        loop {
            let Some(answer) = answers.next().await else {
                return Err(client("the connection was closed".to_owned()));
            };
            match answer.status {
                Some(StatusCode::NO_RESPONDERS) => return Ok(Direct::NotAllowed),
                Some(status) if [END_OF_BATCH, StatusCode::NOT_FOUND.as_u16()].contains(&status.as_u16()) => {
                    return Ok(Direct::Messages(messages));
                }
                Some(status) if !status.is_success() => {
                    let description = answer.description.unwrap_or_default();
                    return Err(NatsError::Api { code: status.as_u16().into(), description });
                }
                _ => {}
            }
            size += answer.length as u64;
            if size > LARGEST_ANSWER.bytes() || messages.len() >= PAGE {
                return Err(NatsError::LargeAnswer { limit: LARGEST_ANSWER });
            }
            let message = direct_message(answer.into())?;
            let is_alone = message.header("Nats-Num-Pending").is_none();
            messages.push(message);
            if is_alone {
                return Ok(Direct::Messages(messages));
            }
        }
    }
}

/// Returns a message as it is in the stream: the answer tells subject and sequence in headers.
fn direct_message(mut answer: Message) -> Result<Message, NatsError> {
    let header = |name: &str| answer.header(name).map(str::to_owned);
    let bad = || NatsError::BadAnswer("a message without subject or sequence".to_owned());
    let subject = header("Nats-Subject").ok_or_else(bad)?;
    let sequence = header("Nats-Sequence").and_then(|text| text.parse().ok()).ok_or_else(bad)?;
    (answer.subject, answer.sequence) = (subject, sequence);
    Ok(answer)
}

/// Reads an answer of `JetStream`, or the error in it.
fn answered<T: for<'de> Deserialize<'de>>(answer: &[u8], stream: &str) -> Result<T, NatsError> {
    let bad = |error: serde_json::Error| NatsError::BadAnswer(error.to_string());
    let answer: Value = serde_json::from_slice(answer).map_err(bad)?;
    if let Some(error) = answer.get("error") {
        let ApiError { code, err_code, description } = ApiError::deserialize(error).map_err(bad)?;
        return Err(if err_code == STREAM_NOT_FOUND {
            NatsError::NoStream { stream: stream.to_owned() }
        } else {
            NatsError::Api { code: if err_code == 0 { code } else { err_code }, description }
        });
    }
    T::deserialize(answer).map_err(bad)
}

fn request_error(error: &async_nats::RequestError, servers: String) -> NatsError {
    match error.kind() {
        RequestErrorKind::TimedOut => NatsError::NoAnswer { servers, limit: PATIENCE, hint: None },
        _ => NatsError::Client(error.to_string()),
    }
}

fn header_map(headers: &[(&str, String)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.insert(*name, value.as_str());
    }
    map
}

/// Returns a length of time as `JetStream` writes it.
pub(crate) fn nanoseconds(duration: Duration) -> Value {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX).into()
}
