//! What can go wrong with a package, and what the user is told about it.

use std::fmt;

use super::lock::Holder;
use crate::{
    host::process::Exit,
    resource::{Error, ErrorKind},
    vocabulary::{Duration, package_version::Scheme},
};

/// What can go wrong with a package.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PackageError {
    #[error("\"{name}\" is not the name of {noun}: {rule}")]
    Name { name: String, noun: Noun, rule: &'static str },
    #[error("\"{version}\" cannot be a version of {noun}: {fault}")]
    Version { version: String, noun: Noun, fault: &'static str },
    #[error("with ensure {ensure} there is nothing to hold")]
    NothingToHold { ensure: String },
    #[error("no {provider} repository offers a package `{name}`")]
    Unknown { name: String, provider: &'static str },
    #[error("`{name}` is known, but no {provider} repository offers a version that can be installed")]
    NoCandidate { name: String, provider: &'static str },
    /// The package index does not have the package or version, and could not be refreshed.
    #[error("the package index could not be refreshed: {reason}")]
    NotRefreshed { wanted: String, provider: &'static str, reason: String },
    /// The package index does not have the package or version, and `refresh: never` keeps it as it is.
    #[error("{wanted} is not in the package index, and `refresh: never` forbids to refresh it")]
    NotInIndex { wanted: String, offered: Vec<String> },
    /// The repositories offer these versions instead, newest first.
    #[error("no {provider} repository offers version {version} of `{name}`")]
    NoSuchVersion { name: String, version: String, offered: Vec<String>, provider: &'static str },
    #[error("\"{name}\" is on hold and would have to change: it is {state}")]
    Held { name: String, state: String },
    #[error("gave up after {waited}: still {holder}")]
    Locked { holder: Holder, waited: Duration },
    /// A package manager ended with an error; these are its own words about it.
    #[error("{command} failed{}", said(*exit, lines))]
    Failed { command: String, exit: Exit, lines: Vec<String> },
    /// dnf has no versionlock plugin, or it does not do what it is told.
    #[error("{reason}")]
    Lock { reason: String },
    #[error("timed out after {limit}: {program} did not answer")]
    NoAnswer { program: &'static str, limit: Duration },
    /// A program could not be run, or printed without end.
    #[error("{reason}")]
    Process { reason: String },
    #[error("interrupted before it was finished")]
    Interrupted,
}

/// What a package is called on a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Noun {
    DebianPackage,
    Rpm,
}

impl Noun {
    pub(super) fn of(scheme: Scheme) -> Self {
        match scheme {
            Scheme::Debian => Self::DebianPackage,
            Scheme::Rpm => Self::Rpm,
        }
    }
}

impl fmt::Display for Noun {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::DebianPackage => "a Debian package",
            Self::Rpm => "an rpm",
        })
    }
}

/// The words of a package manager: a single line, or several below each other.
fn said(exit: Exit, lines: &[String]) -> String {
    match lines {
        [] => format!(" with {exit}"),
        [line] => format!(": {}", line.trim()),
        lines => format!(" with {exit}:\n  {}", lines.join("\n  ")),
    }
}

/// How many versions a message lists.
const MOST_VERSIONS: usize = 5;

fn listed(offered: &[String]) -> String {
    let more = if offered.len() > MOST_VERSIONS { ", ..." } else { "" };
    format!("{}{more}", offered[..offered.len().min(MOST_VERSIONS)].join(", "))
}

impl PackageError {
    /// Whether nothing more should be tried: the time is up, or the run is to stop.
    pub(super) fn ends_the_attempt(&self) -> bool {
        matches!(self, Self::Interrupted | Self::NoAnswer { .. } | Self::Locked { .. })
    }

    /// Whether no repository offers the package or version.
    pub(super) fn is_lack(&self) -> bool {
        matches!(
            self,
            Self::Unknown { .. }
                | Self::NoCandidate { .. }
                | Self::NotRefreshed { .. }
                | Self::NotInIndex { .. }
                | Self::NoSuchVersion { .. }
        )
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Self::Interrupted => ErrorKind::Interrupted,
            Self::NoAnswer { limit, .. } | Self::Locked { waited: limit, .. } => {
                ErrorKind::TimedOut { limit: *limit, during: None }
            }
            Self::Name { .. } | Self::Version { .. } | Self::Held { .. } => ErrorKind::Hopeless,
            _ => ErrorKind::Failed,
        }
    }

    /// Returns the property to blame.
    fn property(&self) -> Option<&'static str> {
        match self {
            Self::Name { .. }
            | Self::Unknown { .. }
            | Self::NoCandidate { .. }
            | Self::NotRefreshed { .. }
            | Self::NotInIndex { .. } => Some("name"),
            Self::Version { .. } | Self::NoSuchVersion { .. } | Self::Held { .. } => Some("ensure"),
            Self::NothingToHold { .. } | Self::Lock { .. } => Some("hold"),
            Self::Locked { .. } | Self::NoAnswer { .. } => Some("timeout"),
            Self::Failed { .. } | Self::Process { .. } | Self::Interrupted => None,
        }
    }

    /// Returns what the user could do about it.
    fn help(&self) -> Option<String> {
        let look =
            |provider: &str| if provider == "apt" { "apt-cache policy" } else { "dnf list --showduplicates" };
        let text = match self {
            Self::Unknown { provider, .. } => {
                let search = if *provider == "apt" { "apt-cache search" } else { "dnf search" };
                return Some(format!(
                    "search for the name with `{search}`, or add a repository with a `file` before this resource"
                ));
            }
            Self::NotRefreshed { wanted, provider, .. } => {
                let files = if *provider == "apt" { "/etc/apt/sources.list.d" } else { "/etc/yum.repos.d" };
                return Some(format!(
                    "check the network and the repositories in {files}; {wanted} is not in the present index"
                ));
            }
            Self::NotInIndex { offered, .. } if !offered.is_empty() => {
                return Some(format!("the index offers {}; or remove `refresh: never`", listed(offered)));
            }
            Self::NotInIndex { .. } => "check the name, or remove `refresh: never`",
            Self::NoCandidate { name, provider } => {
                return Some(format!(
                    "it may be a virtual package, or kept out by a preference; see `{} {name}`",
                    look(provider)
                ));
            }
            Self::NoSuchVersion { name, offered, provider, .. } => {
                return Some(format!(
                    "the repositories offer {}; see `{} {name}`",
                    listed(offered),
                    look(provider)
                ));
            }
            Self::Held { .. } => {
                "with `hold: true` it is changed and stays on hold, with `hold: false` it is taken off"
            }
            Self::Locked { .. } => "it may be an upgrade that runs by itself; wait longer with `timeout`",
            Self::Lock { .. } => {
                "`hold` needs dnf's versionlock plugin: install python3-dnf-plugin-versionlock before this resource"
            }
            _ => return None,
        };
        Some(text.to_owned())
    }
}

impl From<PackageError> for Error {
    fn from(error: PackageError) -> Self {
        let is_denied = matches!(error, PackageError::Failed { .. }) && !rustix::process::geteuid().is_root();
        let denied = || is_denied.then(|| "run ccm as root".to_owned());
        let (property, help) = (error.property(), error.help().or_else(denied));
        Self { property, help, ..Self::new(error.to_string()).of_kind(error.kind()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_of_one_line_stands_in_the_line_and_others_below_it() {
        let failed = |lines: &[&str]| {
            let lines = lines.iter().map(|line| (*line).to_owned()).collect();
            PackageError::Failed { command: "apt-get install".to_owned(), exit: Exit::Code(100), lines }
                .to_string()
        };
        assert_eq!(failed(&[]), "apt-get install failed with exit status 100");
        assert_eq!(failed(&["E: no"]), "apt-get install failed: E: no");
        assert_eq!(failed(&["a", " b"]), "apt-get install failed with exit status 100:\n  a\n   b");
    }
}
