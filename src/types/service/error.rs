//! Errors of services and their messages.

use crate::{
    resource::{Error, ErrorKind},
    vocabulary::Duration,
};

/// Reason why a service failed. Units are named as systemd names them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ServiceError {
    #[error("\"{name}\" is too long for the name of a unit")]
    LongName { name: String },
    #[error(
        "`masked: true` and {} contradict each other: a masked unit cannot be {}",
        given(property),
        done(property)
    )]
    MaskedAndStarted { property: &'static str },
    #[error("service not found: systemd knows no unit {unit}")]
    NotFound { unit: String },
    #[error("{unit} is masked: it cannot be {}", done(property))]
    Masked { unit: String, property: &'static str },
    #[error("{unit} runs without a unit file: it cannot be enabled")]
    NoUnitFile { unit: String },
    #[error("invalid systemctl is-active output: {word:?}")]
    UnknownActivity { word: String },
    #[error("invalid systemctl is-enabled output: {word:?}")]
    UnknownEnablement { word: String },
    /// `systemctl` failed; `said` is its message.
    #[error("systemctl {arguments} failed: {said}")]
    Systemctl { arguments: String, said: String },
    #[error("timed out after {limit}: systemctl {verb} was not done")]
    SystemctlTimeout { verb: String, limit: Duration },
    /// `systemctl` could not run, or printed too much.
    #[error("{reason}")]
    Process { reason: String },
    #[error("timed out after {limit}: {unit} is still activating")]
    StillActivating { unit: String, limit: Duration },
    #[error("failed to reach desired state: {unit} was not started: a condition of its unit is not met")]
    ConditionNotMet { unit: String },
    #[error("failed to reach desired state: {unit} did not stay running: it is {state}")]
    DidNotStay { unit: String, state: String, ended_well: bool },
    #[error("interrupted before it was finished")]
    Interrupted,
}

fn given(property: &str) -> &'static str {
    if property == "enable" { "`enable: true`" } else { "`ensure: running`" }
}

fn done(property: &str) -> &'static str {
    if property == "enable" { "enabled" } else { "started" }
}

impl ServiceError {
    /// Returns the property that the error belongs to.
    fn property(&self) -> Option<&'static str> {
        match self {
            Self::LongName { .. } | Self::NotFound { .. } => Some("name"),
            Self::Masked { property, .. } => Some(property),
            Self::MaskedAndStarted { .. } => Some("masked"),
            Self::NoUnitFile { .. } => Some("enable"),
            Self::SystemctlTimeout { .. } | Self::StillActivating { .. } => Some("timeout"),
            _ => None,
        }
    }

    /// Returns advice.
    fn help(&self) -> Option<String> {
        let text = match self {
            Self::NotFound { .. } => {
                "install what brings the unit, or write its file, with a resource before this one"
            }
            Self::Masked { unit, .. } => {
                return Some(format!(
                    "somebody forbade it on purpose; `masked: false` here, or `systemctl unmask {unit}`, allows it again"
                ));
            }
            Self::MaskedAndStarted { property: "ensure" } => "set `ensure: stopped`, or leave `masked` out",
            Self::MaskedAndStarted { .. } => "leave `enable` or `masked` out",
            Self::NoUnitFile { .. } => "write its unit file again, or leave `enable` out",
            Self::SystemctlTimeout { .. } => {
                "give it more time with `timeout`, or see `systemctl status` for what it waits for"
            }
            Self::StillActivating { .. } => "give it more time with `timeout`",
            Self::ConditionNotMet { unit } => {
                return Some(format!("`systemctl cat {unit}` shows its conditions"));
            }
            Self::DidNotStay { ended_well: true, .. } => {
                "where its work is done when it ends, `RemainAfterExit=yes` in its unit makes systemd call that running"
            }
            Self::Systemctl { .. } if !rustix::process::geteuid().is_root() => "run ccm as root",
            _ => return None,
        };
        Some(text.to_owned())
    }

    /// Returns the kind of the error for the engine.
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Interrupted => ErrorKind::Interrupted,
            Self::SystemctlTimeout { limit, .. } | Self::StillActivating { limit, .. } => {
                ErrorKind::TimedOut { limit: *limit, during: None }
            }
            Self::ConditionNotMet { unit } | Self::DidNotStay { unit, .. } => {
                ErrorKind::NotReached { what: unit.clone() }
            }
            _ => ErrorKind::Failed,
        }
    }
}

impl From<ServiceError> for Error {
    fn from(error: ServiceError) -> Self {
        let (property, help) = (error.property(), error.help());
        Self { property, help, ..Self::new(error.to_string()).of_kind(error.kind()) }
    }
}
