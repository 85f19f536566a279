//! Why a resource could not be brought to its desired state.

use std::fmt;

use super::{file_help, fingerprint::Discrepancy, prediction::AccountKind};
use crate::{
    document::Span,
    host::files::FileError,
    vocabulary::{Account, Duration, Reference},
};

/// A failure of one resource, in words that a person can act on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Error {
    /// What kind of failure it is: all that the program decides by.
    pub(crate) kind: ErrorKind,
    /// What went wrong, for people.
    pub(crate) message: String,
    /// The property to blame: its place in the manifest is shown.
    pub(crate) property: Option<&'static str>,
    /// A place that is more exact than that of the property.
    pub(crate) place: Option<Span>,
    /// What to do about it.
    pub(crate) help: Option<String>,
    /// The properties with which it would not be so. It is not told where one of them is given and cannot be read.
    pub(crate) unless: &'static [&'static str],
}

/// What kind of failure it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    /// The run was asked to stop while this resource was being worked on.
    Interrupted,
    /// The time limit was over, perhaps in the middle of something that can be named.
    TimedOut { limit: Duration, during: Option<String> },
    /// It was acted on, and is still not as desired.
    NotReached { what: String },
    /// No provider suits the machine, each for its reason; `asked` is the one that was wanted.
    NoProvider { of: &'static str, asked: Option<String>, reasons: Vec<String>, known: String },
    /// A user or group that the machine does not know.
    UnknownAccount { kind: AccountKind, name: String },
    /// Another run is in progress, and is not waited for.
    AnotherRun { who: String },
    /// The run needs a confirmation, and nothing would undo it without one.
    Unguarded { reason: String },
    /// A reference to something that this session has not come to.
    NotSeen { reference: Reference, seen: Vec<String>, sight: Sight },
    /// What is owed to others cannot be written down, so nothing was done.
    Unrecorded { reason: String },
    /// A condition or a template cannot be worked out.
    Expression,
    /// What was to be done could not even be begun.
    NotStarted,
    /// Undo found a path or resource that was changed since the run.
    ChangedSince { path: String },
    /// Undo found that others use the package or account that the run created.
    StillInUse { what: String, reason: String },
    /// The history has no copy of an earlier state.
    NotKept { path: String, reason: String },
    /// The machine differs from the state that a plan relies on.
    Stale { differences: Vec<Discrepancy> },
    /// Anything else. Another attempt may go better.
    Failed,
    /// Anything else that another attempt would only repeat.
    Hopeless,
}

/// What a session knows of a resource that it has not applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// There is no session: nobody remembers anything.
    NoSession,
    Never,
    OnlyPredicted,
}

impl ErrorKind {
    /// Returns whether another attempt could go better.
    pub(crate) fn retry(&self) -> Retry {
        match self {
            Self::Interrupted
            | Self::AnotherRun { .. }
            | Self::Unguarded { .. }
            | Self::UnknownAccount { .. }
            | Self::ChangedSince { .. }
            | Self::StillInUse { .. }
            | Self::NotKept { .. }
            | Self::Stale { .. }
            | Self::Hopeless => Retry::Pointless,
            Self::TimedOut { .. }
            | Self::NotReached { .. }
            | Self::NoProvider { .. }
            | Self::NotSeen { .. }
            | Self::Unrecorded { .. }
            | Self::Expression
            | Self::NotStarted
            | Self::Failed => Retry::Worthwhile,
        }
    }

    /// Returns what to do about it, where that follows from the kind.
    fn help(&self) -> Option<String> {
        Some(match self {
            Self::NotReached { .. } => "something else may be changing it at the same time".to_owned(),
            Self::NoProvider { of, asked: Some(_), known, .. } => format!("known providers of {of}: {known}"),
            Self::UnknownAccount { kind, .. } => {
                format!("create the {} first, or give a numeric id", kind.noun())
            }
            Self::NotSeen { sight: Sight::NoSession, .. } => {
                "begin one with `eval \"$(ccm session new)\"`, or name one with --session".to_owned()
            }
            Self::NotSeen { seen, .. } if seen.is_empty() => "seen so far: nothing yet".to_owned(),
            Self::NotSeen { seen, .. } => format!("seen so far: {}", seen.join(", ")),
            Self::Stale { .. } => "make a new plan".to_owned(),
            Self::ChangedSince { .. } => {
                "`--force` restores it anyway, and keeps the present state".to_owned()
            }
            Self::Unrecorded { .. } => {
                "nothing was changed; make room in the state directory or name another with --state-dir"
                    .to_owned()
            }
            _ => return None,
        })
    }
}

/// The words for the kinds that have words of their own.
impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Interrupted => f.write_str("interrupted before it was finished"),
            Self::TimedOut { limit, during: None } => write!(f, "timed out after {limit}"),
            Self::TimedOut { limit, during: Some(what) } => write!(f, "timed out after {limit}: {what}"),
            Self::NotReached { what } => write!(f, "failed to reach desired state: {what}"),
            Self::NoProvider { asked: Some(asked), reasons, .. } => {
                write!(f, "provider \"{asked}\" cannot be used here ({})", reasons.join("; "))
            }
            Self::NoProvider { of, asked: None, reasons, .. } => {
                write!(f, "no provider of {of} suits this machine ({})", reasons.join("; "))
            }
            Self::UnknownAccount { kind, name } => {
                write!(f, "{} \"{name}\" does not exist on this machine", kind.noun())
            }
            Self::AnotherRun { who } => write!(f, "another run is in progress: {who}"),
            Self::Unguarded { reason } => {
                write!(f, "the change is not made because the run could not be undone: {reason}")
            }
            Self::NotSeen { reference, sight: Sight::NoSession, .. } => {
                write!(f, "there is no session in which {reference} could have been seen")
            }
            Self::NotSeen { reference, sight: Sight::Never, .. } if reference.is_pattern() => {
                write!(f, "no resource in this session matches {reference}")
            }
            Self::NotSeen { reference, sight: Sight::Never, .. } => {
                write!(f, "{reference} has not been seen in this session")
            }
            Self::NotSeen { reference, sight: Sight::OnlyPredicted, .. } => {
                write!(f, "{reference} has only been seen in a dry run in this session")
            }
            Self::Unrecorded { reason } => write!(f, "cannot record which refreshes are owed: {reason}"),
            Self::ChangedSince { path } => write!(f, "`{path}` was changed since the run"),
            Self::StillInUse { what, reason } => write!(f, "`{what}` is still in use: {reason}"),
            Self::NotKept { path, reason } => {
                write!(f, "the earlier state of `{path}` was not kept: {reason}")
            }
            Self::Stale { differences } => {
                f.write_str("the machine differs from the plan: ")?;
                let texts = differences.iter().map(|Discrepancy { field, planned, found }| {
                    format!("{field} is {found}, planned {planned}")
                });
                f.write_str(&texts.collect::<Vec<_>>().join("; "))
            }
            Self::Expression => f.write_str("it cannot be worked out"),
            Self::NotStarted => f.write_str("it could not be started"),
            Self::Failed | Self::Hopeless => f.write_str("it failed"),
        }
    }
}

/// Something that is probably not what the user meant, told before anything is done. Of the values of a resource that may
/// be sensitive, the message quotes none but the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Warning {
    /// Names what was found, in words that never change: `glob-in-name`.
    pub(crate) id: &'static str,
    pub(crate) message: String,
    /// The property to blame: its place in the manifest is shown.
    pub(crate) property: Option<&'static str>,
    /// What to do about it.
    pub(crate) help: Option<String>,
}

/// Whether another attempt could go better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    Worthwhile,
    /// The user asked the program to stop, or not to wait.
    Pointless,
}

impl Error {
    /// A failure that another attempt may not repeat, in the words of a type.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        let message = message.into();
        Self { kind: ErrorKind::Failed, message, property: None, place: None, help: None, unless: &[] }
    }

    /// The same failure, which is of this kind.
    pub(crate) fn of_kind(self, kind: ErrorKind) -> Self {
        Self { kind, ..self }
    }

    /// The same failure, after which another attempt could or could not go better.
    pub(crate) fn with_retry(self, retry: Retry) -> Self {
        self.of_kind(match retry {
            Retry::Worthwhile => ErrorKind::Failed,
            Retry::Pointless => ErrorKind::Hopeless,
        })
    }

    /// The run was asked to stop while this resource was being worked on.
    pub(crate) fn interrupted() -> Self {
        ErrorKind::Interrupted.into()
    }

    /// The time limit was over.
    pub(crate) fn timed_out(limit: std::time::Duration) -> Self {
        Self::from(ErrorKind::TimedOut { limit: limit.into(), during: None }).on("timeout")
    }

    /// A user or group that the machine does not know.
    pub(crate) fn unknown_account(kind: AccountKind, account: &Account) -> Self {
        ErrorKind::UnknownAccount { kind, name: account.to_string() }.into()
    }

    /// Returns whether another attempt could go better.
    pub(crate) fn retry(&self) -> Retry {
        self.kind.retry()
    }

    pub(crate) fn on(mut self, property: &'static str) -> Self {
        self.property = Some(property);
        self
    }

    /// The same failure, which is none with one of these properties.
    pub(crate) fn unless(mut self, properties: &'static [&'static str]) -> Self {
        self.unless = properties;
        self
    }

    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// The message and what to do about it, where there is one text for both.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.help {
            // A message of several lines ends with what a command printed.
            Some(help) if self.message.contains('\n') => write!(f, "\nhelp: {help}"),
            Some(help) => write!(f, "; {help}"),
            None => Ok(()),
        }
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self { help: kind.help(), ..Self::new(kind.to_string()).of_kind(kind) }
    }
}

impl From<FileError> for Error {
    fn from(error: FileError) -> Self {
        Self { help: file_help(&error), ..Self::new(error.to_string()) }
    }
}
