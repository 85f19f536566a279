//! Why a resource could not be brought to its desired state.

use std::fmt;

use crate::{document::Span, host::files::FileError, vocabulary::Account};

/// A failure of one resource, in words that a person can act on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Error {
    /// What went wrong.
    pub(crate) message: String,
    /// The property to blame: its place in the manifest is shown.
    pub(crate) property: Option<&'static str>,
    /// A place that is more exact than that of the property.
    pub(crate) place: Option<Span>,
    /// What to do about it.
    pub(crate) help: Option<String>,
    /// Whether another attempt could go better.
    pub(crate) retry: Retry,
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
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), property: None, place: None, help: None, retry: Retry::Worthwhile }
    }

    /// The run was asked to stop while this resource was being worked on.
    pub(crate) fn interrupted() -> Self {
        Self { retry: Retry::Pointless, ..Self::new("interrupted before it was finished") }
    }

    /// A user or group that the machine does not know.
    pub(crate) fn unknown_account(what: &str, account: &Account) -> Self {
        Self::new(format!("{what} \"{account}\" does not exist on this machine"))
            .with_help(format!("create the {what} first, or give a numeric id"))
    }

    pub(crate) fn on(mut self, property: &'static str) -> Self {
        self.property = Some(property);
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

impl From<FileError> for Error {
    fn from(error: FileError) -> Self {
        let help = error.hint();
        Self { help, ..Self::new(error.to_string()) }
    }
}
