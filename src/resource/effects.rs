//! What an action leaves behind, and what the state of a resource depends on.
//!
//! Types tell both in these words, so that none has to know another: a dry run predicts from effects what later
//! resources would find, and in a real run a provider learns from them what it has to look at again.

use std::path::{Path, PathBuf};

use crate::host::files::{Attributes, Intent};

/// What an action leaves behind, or may leave behind if it fails half-way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Effects {
    pub(crate) paths: Vec<PathEffect>,
    pub(crate) users: Vec<AccountEffect>,
    pub(crate) groups: Vec<AccountEffect>,
    pub(crate) units: Vec<UnitEffect>,
    pub(crate) packages: Vec<PackageEffect>,
    /// What it may do besides.
    pub(crate) unknown: Unknown,
}

/// What an action may do that its effects do not name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unknown {
    /// Nothing: all of it is named.
    #[default]
    Nothing,
    /// Anything, but the paths that others need are named.
    NotPaths,
    /// Anything.
    Anything,
}

/// What happens at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PathEffect {
    /// An operation of `host::files`, which a dry run judges by the same rules.
    Operation {
        path: PathBuf,
        intent: Intent,
        /// The checksum of the file that it leaves; `None` when that holds what is on disk.
        sha256: Option<String>,
        content: Content,
    },
    /// Something comes to be there: a file or a directory of this user and group.
    Appears { path: PathBuf, uid: u32, gid: u32 },
    /// A directory is filled with what nobody knows, and is made with these attributes if it is not there.
    Filled { directory: PathBuf, root: Attributes },
}

/// The text that a file is left with, for templates that read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// What it had.
    Kept,
    Text(String),
    /// The text of another file.
    CopyOf(PathBuf),
    Unknown,
}

/// A user or a group that is made or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AccountEffect {
    pub(crate) name: String,
    pub(crate) left: AccountLeft,
}

/// What is left of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccountLeft {
    /// It is there, with this number if that is known.
    Present(Option<u32>),
    Absent,
}

/// A unit of the service manager that is acted on. What is `None` stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnitEffect {
    pub(crate) unit: String,
    pub(crate) running: Option<bool>,
    pub(crate) enabled: Option<bool>,
    pub(crate) masked: Option<bool>,
}

/// A package that is installed or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PackageEffect {
    pub(crate) name: String,
    pub(crate) left: PackageLeft,
}

/// What is left of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PackageLeft {
    /// It is installed, in this version if that is known.
    Installed(Option<String>),
    Removed,
}

impl Effects {
    /// Effects of which nothing is known.
    pub(crate) fn anything() -> Self {
        Self { unknown: Unknown::Anything, ..Self::default() }
    }

    /// Whether accounts may have been made, changed or removed.
    pub(crate) fn may_concern_accounts(&self) -> bool {
        !self.users.is_empty() || !self.groups.is_empty() || self.unknown > Unknown::Nothing
    }

    /// Whether these effects, as far as they are named, are all that an action has on the file system.
    pub(crate) fn are_known(&self) -> bool {
        let is_known = |path: &PathEffect| match path {
            PathEffect::Operation { content, .. } => *content != Content::Unknown,
            PathEffect::Appears { .. } | PathEffect::Filled { .. } => false,
        };
        let concerns_others = !self.users.is_empty() || !self.groups.is_empty() || !self.packages.is_empty();
        self.unknown == Unknown::Nothing && !concerns_others && self.paths.iter().all(is_known)
    }

    /// The same without the texts of files, which may be large.
    pub(crate) fn without_texts(mut self) -> Self {
        for path in &mut self.paths {
            if let PathEffect::Operation { content, .. } = path {
                *content = Content::Unknown;
            }
        }
        self
    }
}

impl PathEffect {
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Operation { path, .. } | Self::Appears { path, .. } => path,
            Self::Filled { directory, .. } => directory,
        }
    }
}

/// What a run has done so far, in order. A long run forgets the oldest.
#[derive(Debug, Default)]
pub(crate) struct History {
    forgotten: usize,
    effects: Vec<Effects>,
}

/// A moment in a run, as the number of actions before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(usize);

impl History {
    const MOST: usize = 4096;

    pub(crate) fn record(&mut self, effects: Effects) {
        if self.effects.len() == Self::MOST {
            self.forgotten += Self::MOST / 2;
            self.effects.drain(..Self::MOST / 2);
        }
        self.effects.push(effects.without_texts());
    }

    pub(crate) fn now(&self) -> Moment {
        Moment(self.forgotten + self.effects.len())
    }

    /// What was done since a moment. Of what is forgotten, anything is possible.
    pub(crate) fn since(&self, moment: Moment) -> Vec<&Effects> {
        const FORGOTTEN: &Effects = &Effects {
            paths: Vec::new(),
            users: Vec::new(),
            groups: Vec::new(),
            units: Vec::new(),
            packages: Vec::new(),
            unknown: Unknown::Anything,
        };
        let forgotten = (moment.0 < self.forgotten).then_some(FORGOTTEN);
        let known = self.effects.iter().skip(moment.0.saturating_sub(self.forgotten));
        forgotten.into_iter().chain(known).collect()
    }
}

/// What the state of a resource depends on: who sees one of these change looks again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Watches {
    /// Relative paths start at the folder of the manifest.
    pub(crate) paths: Vec<PathBuf>,
    /// Directories of which it matters what is in them.
    pub(crate) folders: Vec<PathBuf>,
    pub(crate) units: Vec<String>,
    pub(crate) packages: Vec<String>,
    pub(crate) users: Vec<String>,
    pub(crate) groups: Vec<String>,
    /// What else there is to know is found out only by looking from time to time.
    pub(crate) completeness: Coverage,
}

/// Whether watching is enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Coverage {
    /// Nothing else matters.
    #[default]
    Whole,
    /// Other things matter too: look from time to time.
    Poll,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(name: usize) -> Effects {
        let units = vec![UnitEffect { unit: name.to_string(), running: None, enabled: None, masked: None }];
        Effects { units, ..Effects::default() }
    }

    #[test]
    fn accounts_are_concerned_where_some_are_named_or_anything_may_have_happened() {
        let account = || vec![AccountEffect { name: "ann".to_owned(), left: AccountLeft::Absent }];
        let unknown = |unknown| Effects { unknown, ..Effects::default() };
        for (effects, expected) in [
            (Effects::default(), false),
            (unit(1), false),
            (Effects { users: account(), ..Effects::default() }, true),
            (Effects { groups: account(), ..Effects::default() }, true),
            (unknown(Unknown::NotPaths), true),
            (unknown(Unknown::Anything), true),
        ] {
            assert_eq!(effects.may_concern_accounts(), expected, "{effects:?}");
        }
    }

    #[test]
    fn of_what_a_long_run_has_forgotten_anything_is_possible() {
        let mut history = History::default();
        let start = history.now();
        assert!(history.since(start).is_empty());
        for name in 0..History::MOST {
            history.record(unit(name));
        }
        let middle = history.now();
        assert_eq!(history.since(start).len(), History::MOST);
        for name in 0..3 {
            history.record(unit(name));
        }
        assert_eq!(history.since(middle), [&unit(0), &unit(1), &unit(2)]);
        let since_start = history.since(start);
        assert_eq!(since_start[0].unknown, Unknown::Anything);
        assert!(since_start.len() < History::MOST);
        assert!(history.since(history.now()).is_empty());
    }
}
