//! Flags that say where NATS is.

use std::{env, sync::Arc};

use clap::{Arg, ArgMatches, builder::NonEmptyStringValueParser};

use super::or_variable;
use crate::nats::{ContextChoice, DEFAULT_CONTEXT, Nats, REGISTRATION_STREAM, check_stream};

/// What the flags say.
#[derive(Clone, Debug, Default)]
pub(super) struct NatsFlags {
    context: Option<String>,
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

    /// Returns the context that counts: the flag's or the variable's, else that of a configuration.
    pub(super) fn context(&self, configured: &str) -> ContextChoice {
        ContextChoice {
            name: self.context.clone().unwrap_or_else(|| configured.to_owned()),
            variables: Arc::new(|name| env::var(name).ok()),
        }
    }

    /// Returns the way to the servers. Nothing is read or opened before it is used.
    pub(super) fn nats(&self) -> Arc<Nats> {
        let context = self.context(DEFAULT_CONTEXT);
        Arc::new(Nats::new(context, self.stream.clone().unwrap_or_else(|| REGISTRATION_STREAM.to_owned())))
    }
}
