//! Subjects that are listened to, and consumers for people who watch a stream.

use std::sync::{
    atomic::{AtomicU64, Ordering},
    mpsc,
};

use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::task::AbortHandle;

use super::{
    Address, Connection, Message, NatsError, Store,
    connection::{Listening, PATIENCE},
    stream::nanoseconds,
};

/// Something that came from a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    Message(Message),
    /// The connection is gone.
    Lost,
    /// The connection was made anew: whatever came meanwhile was missed.
    Reconnected,
}

impl Connection {
    /// Calls `notice` whenever an object or key may have changed, and whenever the connection was made: what happened
    /// while there was none is not told. It is called on the thread that keeps the connection and must not wait.
    pub(crate) fn follow(
        &self,
        address: &Address,
        notice: impl Fn() + Send + Sync + Clone + 'static,
    ) -> Following {
        let subject = match address.store {
            Store::Objects => address.object_subject(),
            Store::KeyValue => address.key_subject(),
        };
        let (client, on_message) = (self.client.clone(), notice.clone());
        let task = self.spawn(async move {
            // The client subscribes again after every loss, and before the first connection is made.
            let Ok(mut messages) = client.subscribe(subject).await else { return };
            while messages.next().await.is_some() {
                on_message();
            }
        });
        let seen = AtomicU64::new(0);
        let listening = self.on_change(move |status| {
            if seen.swap(status.connects, Ordering::Relaxed) != status.connects {
                notice();
            }
        });
        Following { task: Watch(task), listening }
    }

    /// Sends what comes into a stream under subjects to a channel, from now on or from a place in the stream on, until what
    /// it returns is dropped.
    ///
    /// What a stream notes itself, such as that a message has expired, no core subscription sees: this makes a consumer,
    /// which the server forgets soon after nobody listens. It is gone when the server was, and has to be made again.
    pub(crate) fn watch(
        &self,
        stream: &str,
        subjects: &str,
        from: Option<u64>,
        to: &mpsc::Sender<Delivery>,
    ) -> Result<Watch, NatsError> {
        let inbox = self.client.new_inbox();
        let (client, subject, to) = (self.client.clone(), inbox.clone(), to.clone());
        let mut messages = self.wait(PATIENCE, async move {
            let subscribed = client.subscribe(subject).await;
            subscribed.map_err(|error| NatsError::Client(error.to_string()))
        })?;
        let mut config = json!({
            "deliver_subject": inbox, "deliver_policy": "new", "ack_policy": "none", "replay_policy": "instant",
            "filter_subject": subjects, "mem_storage": true, "num_replicas": 1,
            "inactive_threshold": nanoseconds(PATIENCE),
        });
        if let Some(from) = from {
            (config["deliver_policy"], config["opt_start_seq"]) = ("by_start_sequence".into(), from.into());
        }
        let consumer = json!({ "stream_name": stream, "config": config });
        self.ask::<Value>(&format!("CONSUMER.CREATE.{stream}"), consumer, stream)?;
        let task = self.spawn(async move {
            while let Some(message) = messages.next().await {
                if to.send(Delivery::Message(message.into())).is_err() {
                    break;
                }
            }
        });
        Ok(Watch(task))
    }
}

/// An object or key is followed for as long as this is there.
pub(crate) struct Following {
    #[expect(dead_code, reason = "it ends when it is dropped")]
    task: Watch,
    #[expect(dead_code, reason = "it ends when it is dropped")]
    listening: Listening,
}

/// Messages of a stream go to a channel for as long as this is there.
pub(crate) struct Watch(AbortHandle);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}
