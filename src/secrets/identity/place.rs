//! Where identities are found, and whose files are good enough.

use std::{path::PathBuf, time::Duration};

use zeroize::Zeroizing;

use super::{Identity, parse};
use crate::host::{
    files::{self, Entry, is_ours},
    input,
    interrupt::Interrupt,
    process::{Command, Exit, Keep, Runner},
    users::Users,
};

/// Larger files are no identities.
const LARGEST: u64 = 1 << 20;

/// How long a command that prints identities can take.
const PATIENCE: Duration = Duration::from_mins(1);

/// A place where identities can be.
pub(crate) enum Place {
    /// An environment variable.
    Text { variable: &'static str, text: Zeroizing<String> },
    /// A file that an option or variable names.
    Named { by: &'static str, path: PathBuf },
    /// A file that is used if it exists.
    Usual(PathBuf),
    /// A private host key of ssh, which some distributions give to a group.
    HostKey(PathBuf),
    /// A command that prints identities.
    Command { variable: &'static str, words: String },
}

/// Result of a search at a place.
pub(crate) enum Found {
    Identities(Vec<Identity>),
    Nothing,
    /// A file that is not used, for a reason that the user should know.
    Ignored(String),
    /// A file that was named and cannot be used.
    Refused(String),
}

impl Place {
    /// Returns how messages name it.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Text { variable, .. } | Self::Command { variable, .. } => (*variable).to_owned(),
            Self::Named { path, .. } | Self::Usual(path) | Self::HostKey(path) => path.display().to_string(),
        }
    }

    pub(crate) fn find(&self, interrupt: &Interrupt) -> Found {
        let shown = self.shown();
        match self {
            Self::Text { text, .. } => match parse(text, &shown) {
                Ok(identities) => Found::Identities(identities),
                Err(error) => Found::Refused(format!("{shown} {error}")),
            },
            Self::Command { words, .. } => match printed(words, interrupt) {
                Ok(text) => match parse(&text, &shown) {
                    Ok(identities) => Found::Identities(identities),
                    Err(error) => Found::Refused(format!("the output of {shown} {error}")),
                },
                Err(reason) => Found::Refused(format!("{shown}: {reason}")),
            },
            Self::Named { by, .. } => match self.file() {
                Ok(Some(identities)) => Found::Identities(identities),
                Ok(None) => Found::Refused(format!("{by}: no such file {shown}")),
                Err(reason) => Found::Refused(format!("{by}: {shown} {reason}")),
            },
            Self::Usual(_) | Self::HostKey(_) => match self.file() {
                Ok(Some(identities)) => Found::Identities(identities),
                Ok(None) => Found::Nothing,
                Err(reason) => Found::Ignored(format!("{shown} {reason}; it is not used")),
            },
        }
    }

    /// Reads the identities of a file; `None` if there is none.
    fn file(&self) -> Result<Option<Vec<Identity>>, String> {
        let (Self::Named { path, .. } | Self::Usual(path) | Self::HostKey(path)) = self else {
            return Ok(None);
        };
        let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let Some((file, entry)) = files::open_followed(&path).map_err(|error| error.problem.to_string())?
        else {
            return Ok(None);
        };
        if let Some(reason) = self.objection(&entry) {
            return Err(reason);
        }
        let bytes =
            input::read_to_end(file, LARGEST).map(Zeroizing::new).map_err(|error| error.to_string())?;
        let text = str::from_utf8(&bytes).map_err(|_| "is not a text file".to_owned());
        // A file of identities that a passphrase protects can be binary.
        if super::is_age_file(&bytes) && text.is_err() {
            return Ok(Some(vec![Identity::locked_file(&bytes, &self.shown())]));
        }
        parse(text?, &self.shown()).map(Some).map_err(|error| error.to_string())
    }

    /// Returns why the owner or mode of a file does not allow to use it.
    fn objection(&self, entry: &Entry) -> Option<String> {
        if !is_ours(entry.uid) {
            return Some(format!("belongs to another user (UID {})", entry.uid));
        }
        let is_host_key = matches!(self, Self::HostKey(_) | Self::Named { .. });
        if is_host_key
            && entry.uid == 0
            && entry.mode & 0o7777 == 0o640
            && Users::default().group_name(entry.gid) == "ssh_keys"
        {
            return None;
        }
        let is_open = entry.mode & 0o066 != 0;
        is_open.then(|| {
            format!("is accessible to other users (mode {:04o}): run `chmod 600`", entry.mode & 0o7777)
        })
    }
}

/// Returns the output of a command.
fn printed(words: &str, interrupt: &Interrupt) -> Result<Zeroizing<String>, String> {
    let words = shell_words::split(words).map_err(|error| error.to_string())?;
    let Some((program, arguments)) = words.split_first() else {
        return Err("the command is empty".to_owned());
    };
    let limit = usize::try_from(LARGEST).unwrap_or(usize::MAX);
    let command = Command::new(program).arguments(arguments).timeout(PATIENCE).keep(Keep::Whole(limit));
    let finished = command.run(&Runner::default(), interrupt).map_err(|error| error.to_string())?;
    if finished.exit != Exit::Code(0) {
        return Err(format!("the command failed: {}", finished.exit));
    }
    Ok(Zeroizing::new(finished.stdout.text().into_owned()))
}
