//! Flags that say where NATS is.

use std::sync::Arc;

use clap::{Args, builder::NonEmptyStringValueParser};

use super::or_variable;
use crate::{
    nats::{DEFAULT_CONTEXT, Nats, REGISTRATION_STREAM, check_stream},
    run::Environment,
};

/// Where NATS is.
#[derive(Args, Clone, Debug, Default)]
#[command(mut_arg("context", |flag| or_variable(flag, "NATS_CONTEXT")))]
pub(super) struct NatsFlags {
    /// The NATS context for obj:// and kv:// addresses, kvGet() and registrations(): a name or an absolute path (default CCM)
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(super) context: Option<String>,
    /// Stream of registrations; commands that read them have a flag for it.
    #[arg(skip)]
    stream: Option<String>,
}

/// The stream of registrations.
#[derive(Args)]
pub(super) struct StreamFlag {
    /// The stream that registrations() reads (default REGISTRATION)
    #[arg(
        long = "registration",
        short = 'R',
        value_name = "STREAM",
        value_parser = |text: &str| check_stream(text).map(|()| text.to_owned()),
    )]
    registration: Option<String>,
}

impl NatsFlags {
    /// Selects the stream of registrations.
    pub(super) fn select(&mut self, stream: StreamFlag) {
        self.stream = stream.registration;
    }

    /// Returns the way to the servers. Nothing is read or opened before it is used.
    pub(super) fn nats(&self, environment: &Environment) -> Arc<Nats> {
        let context = self.context.clone().unwrap_or_else(|| DEFAULT_CONTEXT.to_owned());
        let stream = self.stream.clone().unwrap_or_else(|| REGISTRATION_STREAM.to_owned());
        Arc::new(Nats::new(environment.nats_context(context), stream))
    }
}
