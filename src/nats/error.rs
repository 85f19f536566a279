//! What can go wrong with NATS.

use std::{path::PathBuf, time::Duration};

use ccm_process::interrupt::Signal;

use crate::vocabulary::Size;

/// Why NATS did not do what was asked. No login is in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NatsError {
    #[error("there is no NATS context \"{name}\": {} does not exist; name another with --context or NATS_CONTEXT", path.display())]
    NoContext { name: String, path: PathBuf },
    #[error("NATS context \"{name}\" needs HOME or XDG_CONFIG_HOME to be found, or to be an absolute path")]
    NoHome { name: String },
    #[error("cannot read {}: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error("NATS context {}: {reason}", path.display())]
    BadContext { path: PathBuf, reason: String },
    #[error("NATS refuses the login to {servers}: {reason}")]
    LoginRefused { servers: String, reason: String },
    #[error("cannot connect to NATS at {servers}: {reason}")]
    Unreachable { servers: String, reason: String },
    #[error("not connected to NATS at {servers}{}", .reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default())]
    Away { servers: String, reason: Option<String> },
    #[error("NATS at {servers} does not answer within {}s{}", .limit.as_secs(), .hint.as_ref().map(|hint| format!(": {hint}")).unwrap_or_default())]
    NoAnswer { servers: String, limit: Duration, hint: Option<String> },
    #[error("NATS at {servers} has no JetStream for this account")]
    NoJetStream { servers: String },
    #[error("there is no stream \"{stream}\"")]
    NoStream { stream: String },
    #[error("no stream takes messages of subject \"{subject}\"")]
    NobodyListens { subject: String },
    #[error("NATS: {description} ({code})")]
    Api { code: u64, description: String },
    #[error("NATS: {0}")]
    Client(String),
    #[error("NATS sends more than {limit} in one answer")]
    LargeAnswer { limit: Size },
    #[error(
        "stream \"{stream}\" has more than {limit} of registrations: narrow the query, or raise the limit (CCM_MAX_REGISTRATIONS, or `max_registrations` of the agent)"
    )]
    TooManyRegistrations { stream: String, limit: Size },
    #[error("stopped by {0}")]
    Interrupted(Signal),
    #[error("NATS gave an answer that makes no sense: {0}")]
    BadAnswer(String),
}

impl NatsError {
    /// Returns whether the same request may do better later, with nothing changed but the network and the servers.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. } | Self::Away { .. } | Self::NoAnswer { .. } | Self::NoJetStream { .. }
        )
    }
}
