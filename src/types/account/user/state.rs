//! Observed state of a user.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::{Expiry, Properties};
use crate::{
    host::{files, process},
    resource::{AccountKind, AccountLeft, Before, Context, Error, State},
    types::account::{
        Ensure,
        authorized_keys::{self, Found},
        database::Database,
        shadow::Shadow,
    },
    vocabulary::Account,
};

/// Attributes of a user.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct UserState {
    /// Attributes of the user.
    pub(super) metadata: Metadata,
    /// Password field; `None` if it cannot be read.
    #[serde(skip)]
    pub(super) password: Option<String>,
    #[serde(skip)]
    pub(super) expires: Option<Expiry>,
    /// Existing SSH keys.
    #[serde(skip)]
    pub(super) keys: Option<Found>,
    /// Whether `/etc/shadow` has no entry for the user although `/etc/passwd` refers to it.
    #[serde(skip)]
    pub(super) lacks_shadow: bool,
    /// Whether the primary group does not exist, neither by GID nor by the name of the user.
    #[serde(skip)]
    pub(super) lacks_group: bool,
    /// GID of the requested primary group.
    #[serde(skip)]
    pub(super) wanted_gid: Option<u32>,
    /// Reason why the desired state cannot be reached.
    #[serde(skip)]
    pub(super) obstacle: Option<Error>,
    #[serde(skip)]
    pub(super) home_exists: bool,
}

/// Attributes of the user.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Metadata {
    /// Name of the user.
    pub(super) name: String,
    /// Provider that inspected the user.
    pub(super) provider: String,
    /// Whether the user is in the local account files.
    pub(super) local: bool,
    /// UID. This and the following attributes are omitted if the user does not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) uid: Option<u32>,
    /// GID of the primary group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) gid: Option<u32>,
    /// Name of the primary group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) group: Option<String>,
    /// Supplementary groups.
    pub(super) groups: Vec<String>,
    /// Home directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) home: Option<String>,
    /// Login shell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) shell: Option<String>,
    /// Full name or purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) comment: Option<String>,
    /// Whether the password is locked; omitted if it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) locked: Option<bool>,
    /// Day from which the account is expired, or `never`; omitted if it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) expires: Option<String>,
}

impl UserState {
    /// Returns the state that undo restores, as far as a resource could change it.
    pub(super) fn before(&self, want: &Properties) -> Before {
        let known = &self.metadata;
        if known.uid.is_none() {
            return Before::resource(json!({ "ensure": "absent" }), &[]).with_paths();
        }
        let is_removed = want.ensure == Ensure::Absent;
        let password = self.password.as_ref().filter(|_| is_removed || want.password.is_some());
        let keys = self.keys.as_ref().filter(|_| want.authorized_keys.is_some());
        let properties = json!({
            "ensure": "present",
            "uid": known.uid,
            "group": known.gid.map(|gid| gid.to_string()),
            "groups": known.groups,
            "membership": "exact",
            "home": known.home,
            "manage_home": want.manage_home && !is_removed,
            "shell": known.shell,
            "comment": known.comment,
            "password": password,
            "locked": known.locked.filter(|_| password.is_none()),
            "expires": known.expires,
            "authorized_keys": keys.map(Found::lines),
            "authorized_keys_only": keys.map(|_| true),
        });
        Before::resource(properties, &[]).with_paths().secret_if(password.is_some())
    }
}

impl State for UserState {
    fn ensure(&self) -> String {
        let ensure = if self.metadata.uid.is_some() { Ensure::Present } else { Ensure::Absent };
        ensure.word().to_owned()
    }
}

/// Inspects a user, and finds reasons why the desired state cannot be reached.
pub(super) fn inspect(want: &Properties, on: &Shadow, cx: &Context) -> Result<UserState, Error> {
    let database = on.database(cx)?;
    let name = want.name.as_str();
    let mut metadata = known(want, &database, cx);
    let left = cx.predicted_account(AccountKind::User, name);
    if left == Some(AccountLeft::Absent) {
        metadata = Metadata { local: true, ..Metadata::default() };
    }
    (metadata.name, metadata.provider) = (name.to_owned(), "shadow".to_owned());
    let shadow = database.shadow(name).filter(|_| metadata.uid.is_some() && metadata.local);
    let expires = shadow.as_ref().map(|shadow| shadow.expires.map_or(Expiry::Never, Expiry::Day));
    let password = shadow.map(|shadow| shadow.password);
    metadata.locked = password.as_ref().map(|password| password.starts_with('!'));
    metadata.expires = expires.map(|expires| expires.to_string());
    let home = metadata.home.clone();
    let keys = match (&want.authorized_keys, &home, metadata.uid) {
        (Some(_), Some(home), Some(uid)) => Some(authorized_keys::read(home, uid)?),
        _ => None,
    };
    let is_here = metadata.local && metadata.uid.is_some();
    let lacks_group = metadata
        .gid
        .is_some_and(|gid| database.group_with(gid).is_none() && cx.group_name(gid) == gid.to_string());
    let home_exists = home.as_ref().is_none_or(|home| matches!(files::inspect(home.as_ref()), Ok(Some(_))));
    Ok(UserState {
        password,
        expires,
        keys,
        lacks_shadow: is_here && database.lacks_shadow(name),
        lacks_group: is_here && lacks_group && !database.groups.contains_key(name),
        wanted_gid: want.group.as_ref().and_then(|group| cx.group_id(group)),
        obstacle: obstacle(want, &metadata, &database, cx),
        home_exists,
        metadata,
    })
}

/// Returns the attributes of a user from the account files or the name service.
fn known(want: &Properties, database: &Database, cx: &Context) -> Metadata {
    let name = want.name.as_str();
    let groups = database.groups_of(name);
    if let Some(user) = database.users.get(name) {
        return Metadata {
            local: true,
            uid: Some(user.uid),
            gid: Some(user.gid),
            group: Some(database.group_name(user.gid)),
            groups: groups.into_iter().filter(|group| *group != database.group_name(user.gid)).collect(),
            home: Some(user.home.clone()),
            shell: Some(user.shell.clone()),
            comment: Some(user.comment.clone()),
            ..Metadata::default()
        };
    }
    let elsewhere = name.parse::<Account>().ok().and_then(|account| cx.host.users.user(&account));
    match elsewhere {
        None => Metadata { local: true, ..Metadata::default() },
        Some(user) => Metadata {
            local: false,
            uid: Some(user.uid),
            gid: Some(user.gid),
            group: Some(cx.group_name(user.gid)),
            groups,
            home: Some(user.home),
            ..Metadata::default()
        },
    }
}

/// Returns the reason why the desired state cannot be reached, as far as it can be known before any change.
fn obstacle(want: &Properties, have: &Metadata, database: &Database, cx: &Context) -> Option<Error> {
    if want.ensure == Ensure::Absent {
        let uid = have.uid?;
        let (pid, program) = process::run_by_user(uid)?;
        return Some(
            Error::new(format!("the user is in use: process {pid} ({program}) runs as it"))
                .on("ensure")
                .with_help("end its processes first, for example with `loginctl terminate-user`"),
        );
    }
    let taken =
        want.uid.filter(|uid| have.uid != Some(*uid)).and_then(|uid| Some((uid, database.user_with(uid)?)));
    if let Some((uid, other)) = taken.filter(|(_, other)| *other != want.name.as_str()) {
        return Some(Error::new(format!("the number {uid} belongs to the user \"{other}\"")).on("uid"));
    }
    if let Some(obstacle) = in_the_new_place(want, have) {
        return Some(obstacle);
    }
    if let Some(group) = want.group.as_ref().filter(|group| cx.group_id(group).is_none()) {
        return Some(Error::unknown_account(AccountKind::Group, group).on("group"));
    }
    let groups = want.groups.iter().flatten().filter_map(|group| group.as_str().parse::<Account>().ok());
    let missing = groups.into_iter().find(|group| cx.group_id(group).is_none());
    missing.map(|group| Error::unknown_account(AccountKind::Group, &group).on("groups"))
}

/// Returns an error if the new path of a home directory that has to be moved exists.
fn in_the_new_place(want: &Properties, have: &Metadata) -> Option<Error> {
    let (new, old) = (want.home.as_ref()?.as_path(), Path::new(have.home.as_ref()?));
    let exists = |path: &Path| matches!(files::inspect(path), Ok(Some(_)));
    if !want.manage_home || new == old || !exists(new) || !exists(old) {
        return None;
    }
    let message = format!("{} cannot be moved to {}: something is there", old.display(), new.display());
    Some(
        Error::new(message)
            .on("home")
            .with_help("remove one of them, or leave `manage_home` out to take the new one as it is"),
    )
}
