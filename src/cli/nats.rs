//! Flags that say where NATS is.

use std::sync::Arc;

use clap::{Arg, ArgMatches, builder::NonEmptyStringValueParser};

use super::or_variable;
use crate::{
    nats::{DEFAULT_CONTEXT, Nats, REGISTRATION_STREAM, check_stream},
    run::Environment,
};

/// What the flags say.
#[derive(Clone, Debug, Default)]
pub(super) struct NatsFlags {
    /// The name or path that the flag or its variable gives.
    pub(super) context: Option<String>,
    stream: Option<String>,
}

/// The flag that names a context.
pub(super) fn context_argument() -> Arg {
    let context = Arg::new("context")
        .long("context")
        .value_name("NAME")
        .value_parser(NonEmptyStringValueParser::new())
        .help("The NATS context for obj:// and kv:// addresses, kvGet() and registrations(): a name or an absolute path (default CCM)");
    or_variable(context, "NATS_CONTEXT")
}

/// The flag that names the stream of registrations.
pub(super) fn stream_argument() -> Arg {
    Arg::new("registration")
        .long("registration")
        .short('R')
        .value_name("STREAM")
        .value_parser(|text: &str| check_stream(text).map(|()| text.to_owned()))
        .help("The stream that registrations() reads (default REGISTRATION)")
}

impl NatsFlags {
    pub(super) fn from_matches(matches: &ArgMatches) -> Self {
        // Commands without registrations have no flag for their stream.
        let text = |name| matches.try_get_one::<String>(name).ok().flatten().cloned();
        Self { context: text("context"), stream: text("registration") }
    }

    /// Returns the way to the servers. Nothing is read or opened before it is used.
    pub(super) fn nats(&self, environment: &Environment) -> Arc<Nats> {
        let context = self.context.clone().unwrap_or_else(|| DEFAULT_CONTEXT.to_owned());
        let stream = self.stream.clone().unwrap_or_else(|| REGISTRATION_STREAM.to_owned());
        Arc::new(Nats::new(environment.nats_context(context), stream))
    }
}
