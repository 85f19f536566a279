//! Changes a user.

use super::{
    Action, Expiry, Part, Properties, UserState,
    decision::{wanted_groups, wanted_keys, wanted_password},
    state,
};
use crate::{
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
            set_password(want, &made, cx)?;
            set_keys(want, &made)
        }
        Action::Update(parts) => update(want, have, parts, on, cx),
        Action::Remove => {
            let tool = Tool::new("userdel");
            let tool = if want.manage_home && want.force { tool.flag("--remove") } else { tool };
            tool.run(Some(want.name.as_str()), cx)
        }
    }
}

fn create(want: &Properties, on: &Shadow, cx: &Context) -> Result<(), Error> {
    let name = want.name.as_str();
    let mut tool = Tool::new("useradd");
    if want.system {
        tool = tool.flag("--system");
    }
    tool = tool.flag(if want.manage_home { "--create-home" } else { "--no-create-home" });
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
    let mut tool = Tool::new("usermod");
    for part in parts {
        tool = match part {
            Part::Uid => tool.option("--uid", want.uid.unwrap_or_default()),
            Part::Group => tool.option("--gid", have.wanted_gid.unwrap_or_default()),
            Part::Groups => tool.option("--groups", wanted_groups(want, have).unwrap_or_default().join(",")),
            Part::Home => {
                let home = want.home.as_ref().map(ToString::to_string).unwrap_or_default();
                let tool = tool.option("--home", home);
                if want.manage_home && have.home_exists { tool.flag("--move-home") } else { tool }
            }
            Part::Shell => {
                tool.option("--shell", want.shell.as_ref().map(ToString::to_string).unwrap_or_default())
            }
            Part::Comment => tool.option("--comment", want.comment.as_deref().unwrap_or_default()),
            Part::Expires => tool.option("--expiredate", expiry(want.expires.unwrap_or(Expiry::Never))),
            Part::MissingHome | Part::Password | Part::Keys => tool,
        };
    }
    if !tool.is_idle() {
        tool.run(Some(name), cx)?;
        on.forget(cx);
    }
    let now = state::inspect(want, on, cx)?;
    if want.manage_home && !now.home_exists {
        make_home(&now)?;
    }
    set_password(want, &now, cx)?;
    set_keys(want, &now)
}

/// The empty text is what the tools call never.
fn expiry(expires: Expiry) -> String {
    if expires == Expiry::Never { String::new() } else { expires.to_string() }
}

fn make_home(now: &UserState) -> Result<(), Error> {
    let found = &now.metadata;
    match (&found.home, found.uid, found.gid) {
        (Some(path), Some(uid), Some(gid)) => home::make(path.as_ref(), uid, gid),
        _ => Ok(()),
    }
}

/// Sets the password through standard input: arguments can be seen by everybody.
fn set_password(want: &Properties, now: &UserState, cx: &Context) -> Result<(), Error> {
    let Some(password) = wanted_password(want, now.password.as_deref())? else { return Ok(()) };
    let line = format!("{}:{password}\n", want.name);
    Tool::new("chpasswd").flag("--encrypted").input(&line).run(None, cx)
}

fn set_keys(want: &Properties, now: &UserState) -> Result<(), Error> {
    let Some(text) = wanted_keys(want, now) else { return Ok(()) };
    let found = &now.metadata;
    let (Some(home), Some(uid), Some(gid)) = (&found.home, found.uid, found.gid) else { return Ok(()) };
    if !now.home_exists && !want.manage_home {
        return Err(Error::new(format!("there is no home directory {home} for the keys"))
            .on("authorized_keys")
            .with_help("set `manage_home: true`, or make the directory with a resource before this one"));
    }
    authorized_keys::write(home, &text, uid, gid).map_err(|error| Error::from(error).on("authorized_keys"))
}
