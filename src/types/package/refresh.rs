//! When to refresh the package index.

use std::{
    fmt,
    path::PathBuf,
    str::FromStr,
    time::{self, SystemTime},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::lists::Lists;
use crate::vocabulary::{Duration, Raw};

/// When to refresh the package index: `auto`, `never`, `always`, or an age such as `12h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Raw", into = "String")]
#[schemars(inline, with = "String")]
pub(crate) enum Refresh {
    #[default]
    Auto,
    Never,
    Always,
    /// As `auto`, and if the index is older than this.
    Age(Duration),
}

/// Maximum age of the index for `latest`, unless an age is given.
const LATEST_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// Purpose of reading the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Nothing depends on the index.
    Nothing,
    /// A package has to be installed.
    Install,
    /// ccm has to know whether there is a newer version.
    Latest,
}

/// Reason to refresh the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Asked,
    NoLists,
    SourceChanged(PathBuf),
    Older(Duration),
    /// The index does not have the package, or not in the requested version.
    NotOffered,
}

impl Refresh {
    /// Returns the reason to refresh the index before it is read, if there is one.
    pub(super) fn reason(self, need: Need, lists: &Lists, now: SystemTime) -> Option<Reason> {
        let limit = match (self, need) {
            (_, Need::Nothing) | (Self::Never, _) => return None,
            (Self::Always, _) => return Some(Reason::Asked),
            (Self::Age(age), _) => Some(age),
            (Self::Auto, Need::Latest) => Some(LATEST_AGE),
            (Self::Auto, Need::Install) => None,
        };
        let Some(updated) = lists.updated else { return Some(Reason::NoLists) };
        if let Some((file, _)) = lists.source.as_ref().filter(|(_, changed)| *changed > updated) {
            return Some(Reason::SourceChanged(file.clone()));
        }
        // A clock that was set back makes them no older.
        let age = now.duration_since(updated).unwrap_or(time::Duration::ZERO);
        limit.filter(|limit| age > limit.as_std()).map(Reason::Older)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Asked => f.write_str("`refresh: always` requires it"),
            Self::NoLists => f.write_str("there is none yet"),
            Self::SourceChanged(file) => write!(f, "{} is newer", file.display()),
            Self::Older(limit) => write!(f, "it is older than {limit}"),
            Self::NotOffered => f.write_str("it does not have the package or version"),
        }
    }
}

impl FromStr for Refresh {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "never" => Ok(Self::Never),
            "always" => Ok(Self::Always),
            age => age.parse().map(Self::Age).map_err(|_| {
                format!(
                    "{text:?} does not say when to refresh: write auto, never, always or an age such as 12h"
                )
            }),
        }
    }
}

impl TryFrom<Raw> for Refresh {
    type Error = String;

    fn try_from(raw: Raw) -> Result<Self, String> {
        raw.0.parse()
    }
}

impl From<Refresh> for String {
    fn from(refresh: Refresh) -> Self {
        match refresh {
            Refresh::Auto => "auto".to_owned(),
            Refresh::Never => "never".to_owned(),
            Refresh::Always => "always".to_owned(),
            Refresh::Age(age) => age.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;

    fn ago(seconds: u64) -> SystemTime {
        now() - time::Duration::from_secs(seconds)
    }

    fn now() -> SystemTime {
        NOW + time::Duration::from_hours(1000)
    }

    #[test]
    fn the_lists_are_brought_up_to_date_only_when_there_is_a_reason() {
        let hour = 3600;
        let older = |text: &str| Some(Reason::Older(text.parse().unwrap()));
        let changed = || Some(Reason::SourceChanged("/etc/apt/sources.list".into()));
        for (refresh, need, updated, source, reason) in [
            ("auto", Need::Install, 100 * hour, 200 * hour, None),
            ("auto", Need::Install, 100 * hour, 99 * hour, changed()),
            ("auto", Need::Latest, 23 * hour, 200 * hour, None),
            ("auto", Need::Latest, 25 * hour, 200 * hour, older("1d")),
            ("auto", Need::Nothing, 900 * hour, hour, None),
            ("12h", Need::Install, 13 * hour, 200 * hour, older("12h")),
            ("12h", Need::Latest, 11 * hour, 200 * hour, None),
            ("12h", Need::Latest, 11 * hour, hour, changed()),
            ("never", Need::Latest, 900 * hour, hour, None),
            ("always", Need::Install, 1, 200 * hour, Some(Reason::Asked)),
            ("always", Need::Nothing, 900 * hour, hour, None),
        ] {
            let source = Some(("/etc/apt/sources.list".into(), ago(source)));
            let lists = Lists { updated: Some(ago(updated)), source };
            let refresh: Refresh = refresh.parse().unwrap();
            assert_eq!(refresh.reason(need, &lists, now()), reason, "{refresh:?} {need:?} {updated}");
        }
    }

    #[test]
    fn without_lists_there_is_always_a_reason_unless_it_is_forbidden() {
        let lists = Lists { updated: None, source: None };
        let reason = |refresh: Refresh| refresh.reason(Need::Install, &lists, now());
        assert_eq!(reason(Refresh::Auto), Some(Reason::NoLists));
        assert_eq!(reason(Refresh::Never), None);
    }

    #[test]
    fn lists_of_the_future_are_not_old() {
        let lists = Lists { updated: Some(now() + time::Duration::from_hours(100)), source: None };
        assert_eq!(Refresh::Auto.reason(Need::Latest, &lists, now()), None);
    }

    #[test]
    fn a_word_that_says_nothing_is_refused() {
        assert!("daily".parse::<Refresh>().unwrap_err().contains("auto, never, always"));
        assert_eq!(String::from("90m".parse::<Refresh>().unwrap()), "1h30m");
    }
}
