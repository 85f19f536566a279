//! What has to happen to a user: the decision table, without looking at anything.

use super::{Action, Expiry, Membership, Part, Properties, UserState};
use crate::{
    resource::{Change, Difference, Error},
    types::account::{Ensure, authorized_keys, group::not_local},
    vocabulary::Secret,
};

pub(super) fn compare(want: &Properties, have: &UserState) -> Result<Option<Change<Action>>, Error> {
    let found = &have.metadata;
    let (action, differences) = match (want.ensure, found.uid) {
        (Ensure::Absent, None) => return Ok(None),
        (Ensure::Absent, Some(_)) => (Action::Remove, Vec::new()),
        (Ensure::Present, None) => (Action::Create, Vec::new()),
        (Ensure::Present, Some(_)) => {
            let found = differences(want, have)?;
            if found.is_empty() {
                return Ok(None);
            }
            let (parts, differences) = found.into_iter().unzip();
            (Action::Update(parts), differences)
        }
    };
    if !found.local {
        return Err(not_local("user", &want.name));
    }
    match &have.obstacle {
        Some(obstacle) => Err(obstacle.clone()),
        None => Ok(Some(Change { action, differences, refreshes: false })),
    }
}

/// Returns what differs, in the order of the properties.
fn differences(want: &Properties, have: &UserState) -> Result<Vec<(Part, Difference)>, Error> {
    let found = &have.metadata;
    let shown = |value: &Option<String>| value.clone().unwrap_or_default();
    let mut all = Vec::new();
    let mut differs = |part, difference| all.push((part, difference));
    if let Some(uid) = want.uid.filter(|uid| found.uid != Some(*uid)) {
        differs(Part::Uid, Difference::between("uid", found.uid.unwrap_or_default(), uid));
    }
    if let Some(group) = want.group.as_ref().filter(|_| have.wanted_gid != found.gid) {
        differs(Part::Group, Difference::between("group", shown(&found.group), group));
    }
    if want.group.is_none() && have.lacks_group {
        differs(Part::MissingGroup, Difference::between("group", "missing", &want.name));
    }
    if let Some(wanted) = wanted_groups(want, have) {
        differs(Part::Groups, Difference::between("groups", found.groups.join(","), wanted.join(",")));
    }
    if let Some(home) = want.home.as_ref().filter(|home| found.home.as_deref() != Some(&home.to_string())) {
        differs(Part::Home, Difference::between("home", shown(&found.home), home));
    } else if want.manage_home && !have.home_exists {
        differs(Part::MissingHome, Difference::between("home", "missing", shown(&found.home)));
    }
    if let Some(shell) =
        want.shell.as_ref().filter(|shell| found.shell.as_deref() != Some(&shell.to_string()))
    {
        differs(Part::Shell, Difference::between("shell", shown(&found.shell), shell));
    }
    if let Some(comment) = want.comment.as_ref().filter(|comment| found.comment.as_ref() != Some(comment)) {
        differs(Part::Comment, Difference::between("comment", shown(&found.comment), comment));
    }
    if wanted_password(want, have)?.is_some() {
        differs(Part::Password, Difference::of(if want.locked.is_none() { "password" } else { "locked" }));
    }
    if let Some(expires) = want.expires.filter(|expires| have.expires != Some(*expires)) {
        let found = have.expires.unwrap_or(Expiry::Never);
        differs(Part::Expires, Difference::between("expires", found, expires));
    }
    if wanted_keys(want, have).is_some() {
        differs(Part::Keys, Difference::of("authorized_keys"));
    }
    Ok(all)
}

/// Returns the groups that the user should be in, if that is not so.
pub(super) fn wanted_groups(want: &Properties, have: &UserState) -> Option<Vec<String>> {
    let found = &have.metadata;
    // The first group counts too: it need not be listed among the others.
    let asked: Vec<String> = want.groups.as_ref()?.iter().map(ToString::to_string).collect();
    let is_in = |group: &String| found.groups.contains(group) || found.group.as_ref() == Some(group);
    let lacks = asked.iter().any(|group| !is_in(group));
    let exceeds =
        want.membership == Membership::Exact && found.groups.iter().any(|group| !asked.contains(group));
    if !lacks && !exceeds {
        return None;
    }
    let mut wanted = if want.membership == Membership::Exact { Vec::new() } else { found.groups.clone() };
    wanted.extend(asked);
    wanted.sort();
    wanted.dedup();
    Some(wanted)
}

/// Returns what should stand in the place of the password, if something else does.
pub(super) fn wanted_password(want: &Properties, have: &UserState) -> Result<Option<String>, Error> {
    if want.password.is_none() && want.locked.is_none() {
        return Ok(have.lacks_shadow.then(|| "!".to_owned()));
    }
    let Some(have) = have.password.as_deref() else {
        let property = if want.password.is_some() { "password" } else { "locked" };
        return Err(Error::new("only root can tell whether the password is right").on(property));
    };
    let given = want.password.as_ref().map_or(have, Secret::reveal);
    let bare = given.trim_start_matches('!');
    let wanted = match want.locked {
        None => given.to_owned(),
        Some(true) => format!("!{bare}"),
        Some(false) if bare.is_empty() => {
            return Err(Error::new("there is no password that could be unlocked")
                .on("locked")
                .with_help("give a `password` as well, or leave `locked` out"));
        }
        Some(false) => bare.to_owned(),
    };
    // However many marks there are, a locked password is locked.
    let same = have == wanted
        || want.locked == Some(true) && have.starts_with('!') && have.trim_start_matches('!') == bare;
    Ok((!same).then_some(wanted))
}

/// Returns what the file of keys should hold, if it holds something else.
pub(super) fn wanted_keys(want: &Properties, have: &UserState) -> Option<String> {
    let keys = want.authorized_keys.as_ref()?;
    let Some(found) = &have.keys else { return authorized_keys::wanted_text("", keys, want.other_keys()) };
    let text = authorized_keys::wanted_text(&found.text, keys, want.other_keys());
    text.or_else(|| (!found.is_protected).then(|| found.text.clone()))
}

#[cfg(test)]
mod tests {
    use super::{super::state::Metadata, *};
    use crate::{
        document::{Source, from_node, parse},
        types::account::authorized_keys::Found,
    };

    fn properties(text: &str) -> Properties {
        let source = Source { name: "test".to_owned(), text: format!("{{ name: joe, {text} }}") };
        from_node(&parse(&source).unwrap()).unwrap()
    }

    /// A user as it is found.
    fn joe() -> UserState {
        let text = |text: &str| Some(text.to_owned());
        let metadata = Metadata {
            name: "joe".to_owned(),
            local: true,
            uid: Some(1000),
            gid: Some(1000),
            group: text("joe"),
            groups: vec!["audio".to_owned(), "wheel".to_owned()],
            home: text("/home/joe"),
            shell: text("/bin/sh"),
            comment: text("Joe"),
            ..Metadata::default()
        };
        UserState {
            metadata,
            password: text("$6$x"),
            expires: Some(Expiry::Never),
            keys: Some(Found { text: String::new(), is_protected: true }),
            lacks_shadow: false,
            lacks_group: false,
            wanted_gid: Some(1000),
            obstacle: None,
            home_exists: true,
        }
    }

    fn nobody() -> UserState {
        UserState { metadata: Metadata { local: true, ..Metadata::default() }, ..joe() }
    }

    /// What is done, and the properties on account of which; or why nothing can be.
    fn decided(text: &str, have: &UserState) -> Option<String> {
        match compare(&properties(text), have) {
            Ok(None) => None,
            Ok(Some(Change { action, differences, .. })) => {
                let names = differences.iter().map(|difference| format!(" {}", difference.property));
                Some(action.to_string() + &names.collect::<String>())
            }
            Err(error) => Some(format!("error: {}", error.message)),
        }
    }

    #[test]
    fn every_row_of_the_decision_table_is_taken() {
        let elsewhere = || {
            let found = joe();
            UserState { metadata: Metadata { local: false, ..found.metadata }, ..found }
        };
        let blocked = || UserState { obstacle: Some(Error::new("taken")), ..joe() };
        let locked = || UserState { password: Some("!!$6$x".to_owned()), ..joe() };
        let secretive = || UserState { password: None, ..joe() };
        let exposed = || {
            let keys = Some(Found { text: String::new(), is_protected: false });
            UserState { keys, ..joe() }
        };
        let half_made = || UserState { lacks_shadow: true, lacks_group: true, ..joe() };
        let homeless = || UserState { home_exists: false, ..joe() };
        for (text, have, expected) in vec![
            ("", nobody(), Some("created the user")),
            ("ensure: absent", nobody(), None),
            ("ensure: absent", joe(), Some("removed the user")),
            ("", joe(), None),
            ("uid: 1000, shell: /bin/sh, home: /home/joe, comment: Joe", joe(), None),
            ("uid: 1001", joe(), Some("updated the user uid")),
            ("group: other", UserState { wanted_gid: Some(5), ..joe() }, Some("updated the user group")),
            ("groups: [wheel]", joe(), None),
            ("groups: [joe]", joe(), None),
            ("groups: [video]", joe(), Some("updated the user groups")),
            ("groups: [wheel], membership: exact", joe(), Some("updated the user groups")),
            ("groups: [wheel, audio], membership: exact", joe(), None),
            ("home: /srv/joe", joe(), Some("updated the user home")),
            ("manage_home: true", joe(), None),
            ("manage_home: true", homeless(), Some("updated the user home")),
            ("shell: /bin/zsh, comment: J", joe(), Some("updated the user shell comment")),
            ("password: $6$x", joe(), None),
            ("password: $6$y", joe(), Some("updated the user password")),
            ("password: '!'", joe(), Some("updated the user password")),
            ("locked: true", joe(), Some("updated the user locked")),
            ("locked: true", locked(), None),
            ("locked: false", locked(), Some("updated the user locked")),
            ("locked: true", secretive(), Some("error: only root can tell whether the password is right")),
            ("", half_made(), Some("updated the user group password")),
            ("group: joe, password: $6$x", half_made(), None),
            ("authorized_keys: []", joe(), None),
            ("authorized_keys: []", exposed(), Some("updated the user authorized_keys")),
            ("", exposed(), None),
            ("expires: never", joe(), None),
            ("expires: '2030-01-01'", joe(), Some("updated the user expires")),
            ("uid: 1001", blocked(), Some("error: taken")),
            ("", blocked(), None),
            ("", elsewhere(), None),
            (
                "uid: 1001",
                elsewhere(),
                Some("error: the user \"joe\" is not local: only the name service knows it"),
            ),
        ] {
            assert_eq!(decided(text, &have).as_deref(), expected, "{text}");
        }
    }
}
