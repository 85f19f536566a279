//! The local account files, read once for all accounts of a run.

use std::{collections::HashMap, io, path::Path};

use crate::{
    host::look,
    {host::system_file, resource::Error},
};

/// What `/etc/passwd`, `/etc/group` and `/etc/shadow` say. Of several lines with one name the first counts.
#[derive(Debug, Default)]
pub(super) struct Database {
    pub(super) users: HashMap<String, UserLine>,
    pub(super) groups: HashMap<String, GroupLine>,
    /// The names of numbers; the first of several.
    user_names: HashMap<u32, String>,
    group_names: HashMap<u32, String>,
    shadow: HashMap<String, ShadowLine>,
    /// Whether `/etc/shadow` could be read: only root can.
    pub(super) knows_shadow: bool,
}

/// A line of `/etc/passwd`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UserLine {
    /// Whether the password is to be found in `/etc/shadow`.
    pub(super) is_shadowed: bool,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) comment: String,
    pub(super) home: String,
    pub(super) shell: String,
}

/// A line of `/etc/group`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GroupLine {
    pub(super) gid: u32,
    pub(super) members: Vec<String>,
}

/// The fields of `/etc/shadow` that are managed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ShadowLine {
    pub(super) password: String,
    /// Days since 1970, or nothing.
    pub(super) expires: Option<i64>,
}

impl Database {
    /// Reads the files of this machine.
    pub(super) fn read() -> Result<Self, Error> {
        let text = |path: &'static str| system_file::read(path).map_err(|error| (path, error));
        let failed = |(path, error): (&str, io::Error)| Error::new(format!("cannot read {path}: {error}"));
        let shadow = match text("/etc/shadow") {
            Ok(text) => Some(text),
            // Machines without one keep passwords in /etc/passwd, and nobody else may read it.
            Err((_, error)) if error.kind() == io::ErrorKind::PermissionDenied => None,
            Err(_) if !look::exists(Path::new("/etc/shadow")) => None,
            Err(error) => return Err(failed(error)),
        };
        let (passwd, group) = (text("/etc/passwd").map_err(failed)?, text("/etc/group").map_err(failed)?);
        Ok(Self::parse(&passwd, &group, shadow.as_deref()))
    }

    pub(super) fn parse(passwd: &str, group: &str, shadow: Option<&str>) -> Self {
        let mut database = Self { knows_shadow: shadow.is_some(), ..Self::default() };
        for line in passwd.lines() {
            let fields: Vec<&str> = line.split(':').collect();
            let [name, password, uid, gid, comment, home, rest @ ..] = fields.as_slice() else { continue };
            let (Ok(uid), Ok(gid)) = (uid.parse(), gid.parse()) else { continue };
            let shell = rest.first().copied().unwrap_or_default().to_owned();
            let (comment, home) = ((*comment).to_owned(), (*home).to_owned());
            let user = UserLine { is_shadowed: *password == "x", uid, gid, comment, home, shell };
            database.user_names.entry(uid).or_insert_with(|| (*name).to_owned());
            database.users.entry((*name).to_owned()).or_insert(user);
        }
        for line in group.lines() {
            let fields: Vec<&str> = line.split(':').collect();
            let [name, _, gid, rest @ ..] = fields.as_slice() else { continue };
            let Ok(gid) = gid.parse() else { continue };
            let members = rest.first().copied().unwrap_or_default();
            let members = members.split(',').map(str::trim).filter(|name| !name.is_empty());
            let group = GroupLine { gid, members: members.map(str::to_owned).collect() };
            database.group_names.entry(gid).or_insert_with(|| (*name).to_owned());
            database.groups.entry((*name).to_owned()).or_insert(group);
        }
        for line in shadow.unwrap_or_default().lines() {
            let fields: Vec<&str> = line.split(':').collect();
            let [name, password, ..] = fields.as_slice() else { continue };
            let expires = fields.get(7).and_then(|days| days.parse().ok());
            let line = ShadowLine { password: (*password).to_owned(), expires };
            database.shadow.entry((*name).to_owned()).or_insert(line);
        }
        database
    }

    /// Returns what is kept secret about a user; nothing where it cannot be read.
    pub(super) fn shadow(&self, name: &str) -> Option<ShadowLine> {
        self.knows_shadow.then(|| self.shadow.get(name).cloned().unwrap_or_default())
    }

    /// Whether the password of a user is nowhere: `useradd` writes `/etc/passwd` first, and was ended before the rest.
    pub(super) fn lacks_shadow(&self, name: &str) -> bool {
        let is_shadowed = self.users.get(name).is_some_and(|user| user.is_shadowed);
        self.knows_shadow && is_shadowed && !self.shadow.contains_key(name)
    }

    /// Returns a user other than this one whose home is this directory, or below it.
    pub(super) fn other_home_in(&self, home: &Path, name: &str) -> Option<&str> {
        let is_in =
            |(other, user): &(&String, &UserLine)| *other != name && Path::new(&user.home).starts_with(home);
        self.users.iter().find(is_in).map(|(other, _)| other.as_str())
    }

    /// Returns the groups that list a user as their member, in the order of their names.
    pub(super) fn groups_of(&self, user: &str) -> Vec<String> {
        let lists = |(_, group): &(&String, &GroupLine)| group.members.iter().any(|member| member == user);
        let mut groups: Vec<String> =
            self.groups.iter().filter(lists).map(|(name, _)| name.clone()).collect();
        groups.sort();
        groups
    }

    /// Returns the name of a group, or its number in digits.
    pub(super) fn group_name(&self, gid: u32) -> String {
        self.group_names.get(&gid).cloned().unwrap_or_else(|| gid.to_string())
    }

    /// Returns the user that has a number.
    pub(super) fn user_with(&self, uid: u32) -> Option<&str> {
        self.user_names.get(&uid).map(String::as_str)
    }

    /// Returns the group that has a number.
    pub(super) fn group_with(&self, gid: u32) -> Option<&str> {
        self.group_names.get(&gid).map(String::as_str)
    }

    /// Returns the users whose first group is this one.
    pub(super) fn with_primary_group(&self, gid: u32) -> Vec<&str> {
        let mut users: Vec<&str> =
            self.users.iter().filter(|(_, user)| user.gid == gid).map(|(name, _)| name.as_str()).collect();
        users.sort_unstable();
        users
    }
}
