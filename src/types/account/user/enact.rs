//! Changes a user.

use std::path::Path;

use super::{
    Action, Expiry, Part, Properties, UserState,
    decision::{wanted_groups, wanted_keys, wanted_password},
    state,
};
use crate::{
    host::files::{self, Moved},
    resource::{Context, Error},
    types::account::{authorized_keys, home, shadow::Shadow, tool::Tool},
    vocabulary::Account,
};

pub(super) fn enact(
    want: &Properties,
    have: &UserState,
    action: &Action,
    on: &Shadow,
    cx: &Context,
) -> Result<(), Error> {
    match action {
        Action::Create => {
            create(want, on, cx)?;
            on.forget(cx);
            // What `useradd` cannot do, or must not be told in an argument.
            let made = state::inspect(want, on, cx)?;
            make_home(want, &made, cx)?;
            set_password(want, &made, cx)?;
            set_keys(want, &made, cx)
        }
        Action::Update(parts) => update(want, have, parts, on, cx),
        Action::Remove => remove(want, have, on, cx),
    }
}

/// Removes a user, and before that its home: afterwards nobody would know whose that was.
fn remove(want: &Properties, have: &UserState, on: &Shadow, cx: &Context) -> Result<(), Error> {
    let name = want.name.as_str();
    if !want.manage_home || !want.force {
        return Tool::new("userdel").run(Some(name), cx);
    }
    if let Some(home) = have.metadata.home.as_deref().map(Path::new) {
        let found = files::inspect(home).map_err(|error| Error::from(error).on("home"))?;
        let shared = on.database(cx)?.other_home_in(home, name).map(str::to_owned);
        match (found, shared) {
            (None, _) => {}
            (Some(_), Some(other)) => return Err(stays(home, &format!("it is the home of \"{other}\" too"))),
            (Some(entry), None) if Some(entry.uid) != have.metadata.uid => {
                return Err(stays(home, "it belongs to another user"));
            }
            (Some(_), None) => home::remove(home, cx)?,
        }
    }
    // It still removes the mail.
    Tool::new("userdel").flag("--remove").run(Some(name), cx)
}

fn stays(home: &Path, why: &str) -> Error {
    Error::new(format!("the home directory {} is not removed: {why}", home.display()))
        .on("force")
        .with_help("leave `manage_home` out to remove the user alone")
}

fn create(want: &Properties, on: &Shadow, cx: &Context) -> Result<(), Error> {
    let name = want.name.as_str();
    let mut tool = Tool::new("useradd");
    if want.system {
        tool = tool.flag("--system");
    }
    tool = tool.flag("--no-create-home");
    if let Some(uid) = want.uid {
        tool = tool.option("--uid", uid);
    }
    // A group of the user's name that is there already is the one that is meant.
    let own = || on.database(cx).ok()?.groups.contains_key(name).then(|| name.to_owned());
    if let Some(group) = want.group.as_ref().map(Account::to_string).or_else(own) {
        tool = tool.option("--gid", group);
    }
    if let Some(groups) = want.groups.as_ref().filter(|groups| !groups.is_empty()) {
        tool = tool.option("--groups", groups.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join(","));
    }
    if let Some(home) = &want.home {
        tool = tool.option("--home-dir", home);
    }
    if let Some(shell) = &want.shell {
        tool = tool.option("--shell", shell);
    }
    if let Some(comment) = &want.comment {
        tool = tool.option("--comment", comment);
    }
    if let Some(expires) = want.expires {
        tool = tool.option("--expiredate", expiry(expires));
    }
    tool.run(Some(name), cx)
}

fn update(
    want: &Properties,
    have: &UserState,
    parts: &[Part],
    on: &Shadow,
    cx: &Context,
) -> Result<(), Error> {
    let name = want.name.as_str();
    if parts.contains(&Part::MissingGroup) {
        let gid = have.metadata.gid.unwrap_or_default();
        Tool::new("groupadd").option("--gid", gid).run(Some(name), cx)?;
        on.forget(cx);
    }
    let moved = relocate(want, have, parts, cx)?;
    let mut tool = Tool::new("usermod");
    for part in parts {
        tool = match part {
            Part::Uid => tool.option("--uid", want.uid.unwrap_or_default()),
            Part::Group => tool.option("--gid", have.wanted_gid.unwrap_or_default()),
            Part::Groups => tool.option("--groups", wanted_groups(want, have).unwrap_or_default().join(",")),
            Part::Home => {
                let home = want.home.as_ref().map(ToString::to_string).unwrap_or_default();
                let tool = tool.option("--home", home);
                if moved == Some(Moved::ElsewhereOnly) { tool.flag("--move-home") } else { tool }
            }
            Part::Shell => {
                tool.option("--shell", want.shell.as_ref().map(ToString::to_string).unwrap_or_default())
            }
            Part::Comment => tool.option("--comment", want.comment.as_deref().unwrap_or_default()),
            Part::Expires => tool.option("--expiredate", expiry(want.expires.unwrap_or(Expiry::Never))),
            Part::MissingGroup | Part::MissingHome | Part::Password | Part::Keys => tool,
        };
    }
    if !tool.is_idle() {
        let ran = tool.run(Some(name), cx);
        on.forget(cx);
        if ran.is_err() && moved == Some(Moved::Yes) {
            bring_back(want, have, on, cx);
        }
        ran?;
    }
    let now = state::inspect(want, on, cx)?;
    make_home(want, &now, cx)?;
    set_password(want, &now, cx)?;
    set_keys(want, &now, cx)
}

/// Moves the home if it is to be moved. That comes before the account is changed: of a run that is killed in between, the
/// next one finds the home where it is wanted.
fn relocate(
    want: &Properties,
    have: &UserState,
    parts: &[Part],
    cx: &Context,
) -> Result<Option<Moved>, Error> {
    match (homes(want, have), have.metadata.uid) {
        (Some((old, new)), Some(uid))
            if parts.contains(&Part::Home) && want.manage_home && have.home_exists =>
        {
            home::relocate(old, new, uid, cx).map(Some)
        }
        _ => Ok(None),
    }
}

/// Moves the home back, unless the account says by now that it is at its new place.
fn bring_back(want: &Properties, have: &UserState, on: &Shadow, cx: &Context) {
    let Some((old, new)) = homes(want, have) else { return };
    let database = on.database(cx);
    let user = database.as_ref().ok().and_then(|database| database.users.get(want.name.as_str()));
    if let Some(user) = user.filter(|user| Path::new(&user.home) == old) {
        // What went wrong before this is what is told.
        let _ = home::relocate(new, old, user.uid, cx);
    }
}

/// The home directory as it is and as it is wanted.
fn homes<'a>(want: &'a Properties, have: &'a UserState) -> Option<(&'a Path, &'a Path)> {
    Some((Path::new(have.metadata.home.as_ref()?), want.home.as_ref()?.as_path()))
}

/// The empty text is what the tools call never.
fn expiry(expires: Expiry) -> String {
    if expires == Expiry::Never { String::new() } else { expires.to_string() }
}

fn make_home(want: &Properties, now: &UserState, cx: &Context) -> Result<(), Error> {
    let found = &now.metadata;
    match (&found.home, found.uid, found.gid) {
        (Some(path), Some(uid), Some(gid)) if want.manage_home && !now.home_exists => {
            home::make(path.as_ref(), uid, gid, cx)
        }
        _ => Ok(()),
    }
}

/// Sets the password through standard input: arguments can be seen by everybody.
fn set_password(want: &Properties, now: &UserState, cx: &Context) -> Result<(), Error> {
    let Some(password) = wanted_password(want, now)? else { return Ok(()) };
    let line = format!("{}:{password}\n", want.name);
    Tool::new("chpasswd").flag("--encrypted").input(&line).run(None, cx)
}

fn set_keys(want: &Properties, now: &UserState, cx: &Context) -> Result<(), Error> {
    let Some(text) = wanted_keys(want, now) else { return Ok(()) };
    let found = &now.metadata;
    let (Some(home), Some(uid), Some(gid)) = (&found.home, found.uid, found.gid) else { return Ok(()) };
    if !now.home_exists && !want.manage_home {
        return Err(Error::new(format!("there is no home directory {home} for the keys"))
            .on("authorized_keys")
            .with_help("set `manage_home: true`, or make the directory with a resource before this one"));
    }
    authorized_keys::write(home, &text, uid, gid, cx)
}
