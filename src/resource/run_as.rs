//! User and group of a command.

use rustix::process::{getegid, geteuid, getgroups};

use super::{AccountKind, Error};
use crate::{
    host::{
        process::{Command, Identity},
        users::{User, Users},
    },
    vocabulary::Account,
};

/// User and group of a command, and the environment that it inherits.
#[derive(Clone, Copy, Default)]
pub(crate) struct RunAs<'a> {
    pub(crate) user: Option<&'a Account>,
    pub(crate) group: Option<&'a Account>,
    pub(crate) inherited: Inherited,
}

/// Part of ccm's environment that a command of another user inherits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Inherited {
    /// The variables that survive a login.
    #[default]
    Login,
    Everything,
}

/// Makes a command run as a user and group.
pub(crate) fn run_as<'a>(command: Command<'a>, settings: RunAs, users: &Users) -> Result<Command<'a>, Error> {
    let group = settings.group.map(|group| {
        users.group_id(group).ok_or_else(|| Error::unknown_account(AccountKind::Group, group).on("group"))
    });
    match (settings.user, group.transpose()?) {
        (None, None) => Ok(command),
        (None, Some(gid)) if gid == getegid().as_raw() => Ok(command),
        (None, Some(gid)) => {
            let own =
                getgroups().map_err(|error| Error::new(format!("cannot tell the own groups: {error}")))?;
            let groups = own.into_iter().map(rustix::process::Gid::as_raw).collect();
            Ok(command.identity(Identity { uid: geteuid().as_raw(), gid, groups }))
        }
        (Some(account), gid) => {
            let uid = users
                .user_id(account)
                .ok_or_else(|| Error::unknown_account(AccountKind::User, account).on("user"))?;
            let user = users.user(account);
            let command = environment(command, settings.inherited, user.as_ref());
            if uid == geteuid().as_raw() && gid.is_none_or(|gid| gid == getegid().as_raw()) {
                return Ok(command);
            }
            become_user(command, uid, gid, user.as_ref(), users)
        }
    }
}

/// Gives the command the environment of a login, unless it inherits the environment of ccm. A UID without an account
/// has no user name.
fn environment<'a>(command: Command<'a>, inherited: Inherited, user: Option<&User>) -> Command<'a> {
    let is_whole = inherited == Inherited::Everything;
    let command = if is_whole { command } else { command.login_environment() };
    let Some(user) = user else {
        return if is_whole { command } else { command.variable("HOME", "/").variable("SHELL", SHELL) };
    };
    let command =
        command.variable("HOME", &user.home).variable("LOGNAME", &user.name).variable("USER", &user.name);
    let shell = if user.shell.is_empty() { SHELL } else { &user.shell };
    if is_whole { command } else { command.variable("SHELL", shell) }
}

/// Shell of an account without a login shell.
const SHELL: &str = "/bin/sh";

fn become_user<'a>(
    command: Command<'a>,
    uid: u32,
    gid: Option<u32>,
    user: Option<&User>,
    users: &Users,
) -> Result<Command<'a>, Error> {
    let Some(user) = user else {
        let gid = gid.ok_or_else(|| {
            Error::new(format!("user {uid} has no name on this machine, so its group is not known"))
                .on("user")
                .with_help("give `group` as well")
        })?;
        return Ok(command.identity(Identity { uid, gid, groups: vec![gid] }));
    };
    let groups = users.groups_of(user);
    Ok(command.identity(Identity { uid, gid: gid.unwrap_or(user.gid), groups }))
}
