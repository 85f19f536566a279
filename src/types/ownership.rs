//! Owner, group and mode on disk: resolves names to numbers and finds differences.

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    host::files::{Attributes, Entry},
    resource::{AccountKind, Context, Difference, Error, Watches},
    vocabulary::Account,
};

/// The user and group that a resource names.
#[derive(Clone, Copy)]
pub(super) struct Ownership<'w> {
    owner: Option<&'w Account>,
    group: Option<&'w Account>,
}

impl<'w> Ownership<'w> {
    pub(super) fn of(owner: Option<&'w Account>, group: Option<&'w Account>) -> Self {
        Self { owner, group }
    }

    /// Returns the UID and GID, each if it is named. An unknown name is an error.
    pub(super) fn ids(self, cx: &Context) -> Result<(Option<u32>, Option<u32>), Error> {
        let uid = self.owner.map(|owner| {
            cx.user_id(owner).ok_or_else(|| Error::unknown_account(AccountKind::User, owner).on("owner"))
        });
        let gid = self.group.map(|group| {
            cx.group_id(group).ok_or_else(|| Error::unknown_account(AccountKind::Group, group).on("group"))
        });
        Ok((uid.transpose()?, gid.transpose()?))
    }

    /// Returns the differences in owner, group and mode, in this order. Setuid, setgid and sticky bits on disk are
    /// differences, too.
    pub(super) fn differences(
        self,
        found: &Entry,
        shown: &OwnerAndMode,
        wanted: Attributes,
    ) -> Vec<Difference> {
        let account = |account: Option<&Account>| account.map(ToString::to_string).unwrap_or_default();
        let have = |value: &Option<String>| value.clone().unwrap_or_default();
        let mut differences = Vec::new();
        if found.uid != wanted.uid {
            differences.push(Difference::between("owner", have(&shown.owner), account(self.owner)));
        }
        if found.gid != wanted.gid {
            differences.push(Difference::between("group", have(&shown.group), account(self.group)));
        }
        if found.mode != wanted.mode {
            let mode = format!("{:04o}", wanted.mode);
            differences.push(Difference::between("mode", have(&shown.mode), mode));
        }
        differences
    }

    /// Returns the accounts that the resource depends on.
    pub(super) fn watches(self) -> Watches {
        let names = |account: Option<&Account>| account.into_iter().map(ToString::to_string).collect();
        Watches { users: names(self.owner), groups: names(self.group), ..Watches::default() }
    }
}

/// Owner, group and permissions, as a state shows them.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct OwnerAndMode {
    /// User that owns the file: the name, or the UID if it has no name.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    /// Group that owns the file: the name, or the GID if it has no name.
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    /// Permissions in octal, with setuid, setgid and sticky bits if they are set.
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
}

impl OwnerAndMode {
    pub(super) fn of(entry: &Entry, cx: &Context) -> Self {
        Self {
            owner: Some(cx.user_name(entry.uid)),
            group: Some(cx.group_name(entry.gid)),
            mode: Some(format!("{:04o}", entry.mode)),
        }
    }
}

/// Returns an error for each required property that is missing. `noun` requires all of them.
pub(super) fn missing(noun: &str, needed: &[(&'static str, bool)]) -> Vec<Error> {
    let names: Vec<&str> = needed.iter().map(|(name, _)| *name).collect();
    let all = match names.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => names.concat(),
    };
    let is_missing = |(_, given): &&(&'static str, bool)| !given;
    needed
        .iter()
        .filter(is_missing)
        .map(|(name, _)| Error::new(format!("`{name}` is missing: {noun} needs {all}")).on(name))
        .collect()
}
