//! NATS with a blocking face: the only part of the program in which anything is asynchronous.
//!
//! A [`Nats`] is made for every command and costs nothing: the context is read and the connection opened when the first
//! object, key or stream is asked for. From then on one thread runs a current-thread runtime; everybody else waits for
//! what it does. Objects and keys are read with single requests and followed with core subscriptions: a consumer per
//! machine would meet the server's limit at the thousandth, and dies silently when a bucket is made anew.

mod address;
mod connection;
mod context;
mod error;
mod key_value;
mod message;
mod names;
mod objects;
mod stream;
mod subscription;

pub(crate) use address::{Address, Store};
pub(crate) use connection::{Connection, Listening, Persistence, Status};
pub(crate) use context::{ContextChoice, DEFAULT_CONTEXT};
pub(crate) use error::NatsError;
pub(crate) use key_value::check_bucket;
pub(crate) use message::Message;
pub(crate) use names::{check_stream, check_subject};
pub(crate) use objects::ObjectError;
pub(crate) use stream::{StreamSettings, nanoseconds};
pub(crate) use subscription::{Delivery, Following};

use std::sync::{Arc, OnceLock};

use ccm_process::interrupt::Interrupt;

use crate::vocabulary::Size;

/// NATS as a command sees it: connected when it is first used.
pub(crate) struct Nats {
    context: ContextChoice,
    /// The stream that holds registrations.
    pub(crate) registration_stream: String,
    /// How many bytes of registrations one query can read.
    pub(crate) max_registrations: Size,
    /// Ends waits, if the program handles signals.
    interrupt: Option<Interrupt>,
    connection: OnceLock<Result<Arc<Connection>, NatsError>>,
}

/// The stream that holds registrations, unless another is named.
pub(crate) const REGISTRATION_STREAM: &str = "REGISTRATION";

/// How many bytes of registrations one query can read, unless the user sets another limit.
pub(crate) const MAX_REGISTRATIONS: Size = Size::mebibytes(64);

impl Nats {
    /// Makes the way to the servers of a context. Nothing is read or opened yet.
    pub(crate) fn new(context: ContextChoice, registration_stream: String) -> Self {
        Self {
            context,
            registration_stream,
            max_registrations: MAX_REGISTRATIONS,
            interrupt: None,
            connection: OnceLock::new(),
        }
    }

    /// Ends waits after a signal.
    pub(crate) fn interruptible(self, interrupt: Interrupt) -> Self {
        Self { interrupt: Some(interrupt), ..self }
    }

    /// Sets how many bytes of registrations one query can read.
    pub(crate) fn limited_to(self, max_registrations: Size) -> Self {
        Self { max_registrations, ..self }
    }

    /// Returns a way that uses a connection which is there already, as the agent's is.
    pub(crate) fn over(connection: Arc<Connection>, registration_stream: String) -> Self {
        let context = connection.context().clone();
        Self { connection: OnceLock::from(Ok(connection)), ..Self::new(context, registration_stream) }
    }

    /// Returns the connection, which the first call opens. A server that is away is an error after five seconds, and stays
    /// one: a template that asks a hundred times does not wait a hundred times.
    pub(crate) fn connection(&self) -> Result<&Connection, NatsError> {
        let open =
            || Connection::open(&self.context, Persistence::GiveUp, self.interrupt.clone()).map(Arc::new);
        self.connection.get_or_init(open).as_deref().map_err(Clone::clone)
    }
}
