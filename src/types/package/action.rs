//! What is done to a package.

use std::fmt;

/// What has to be done to a package, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Action {
    pub(super) deed: Option<Deed>,
    /// Whether it is put on hold, or taken off.
    pub(super) hold: Option<bool>,
}

/// What a package manager is told to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    Install(Target),
    Upgrade(Target),
    Downgrade(Target),
    Remove,
    /// Removes it with its configuration.
    Purge,
    /// Removes the configuration that is left of it.
    PurgeRest,
}

/// Which version is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Whichever the package manager prefers.
    Any,
    /// The newest, as the sources write it when it is known.
    Latest(Option<String>),
    /// One, in the words of the user, and as the sources write it when they are known to have it.
    Version { wanted: String, exact: Option<String> },
}

/// What one call of a package manager does. Packages for which it is the same can share a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Install,
    Downgrade,
    Remove,
    Purge,
}

impl Deed {
    pub(super) fn verb(&self) -> Verb {
        match self {
            Self::Install(_) | Self::Upgrade(_) => Verb::Install,
            Self::Downgrade(_) => Verb::Downgrade,
            Self::Remove => Verb::Remove,
            Self::Purge | Self::PurgeRest => Verb::Purge,
        }
    }

    /// Returns the complete version that is installed, where it has to be one.
    pub(super) fn exact(&self) -> Option<&str> {
        match self {
            Self::Install(target) | Self::Upgrade(target) | Self::Downgrade(target) => match target {
                Target::Version { wanted, exact } => Some(exact.as_deref().unwrap_or(wanted)),
                Target::Latest(exact) => exact.as_deref(),
                Target::Any => None,
            },
            Self::Remove | Self::Purge | Self::PurgeRest => None,
        }
    }
}

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Install(Target::Any) => f.write_str("installed"),
            Self::Install(Target::Latest(_)) => f.write_str("installed latest"),
            Self::Install(Target::Version { wanted, .. }) => write!(f, "installed version {wanted}"),
            Self::Upgrade(target) => write!(f, "upgraded to {target}"),
            Self::Downgrade(target) => write!(f, "downgraded to {target}"),
            Self::Remove => f.write_str("uninstalled"),
            Self::Purge => f.write_str("uninstalled. purged"),
            Self::PurgeRest => f.write_str("purged"),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Any | Self::Latest(_) => f.write_str("latest"),
            Self::Version { wanted, .. } => f.write_str(wanted),
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let hold = self.hold.map(|hold| if hold { "put on hold" } else { "taken off hold" });
        let deeds: Vec<String> =
            self.deed.iter().map(ToString::to_string).chain(hold.map(str::to_owned)).collect();
        f.write_str(&deeds.join(". "))
    }
}
