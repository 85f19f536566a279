//! Observes users and groups.

use std::time::Duration;

use super::{
    super::lens::{Lens, Seen, Unseen},
    Observer,
};
use crate::{
    checks::{Observed, Rule},
    host::process::{Command, Exit, Keep, ProcessError},
    vocabulary::Account,
};

/// Time limit for a response of the directory service.
const PATIENCE: Duration = Duration::from_secs(15);

pub(super) fn user<'a>(rule: &'a Rule, lens: &'a Lens<'a>) -> Observer<'a> {
    Box::new(move |property| {
        let users = &lens.host.users;
        let account: Account = rule.subject.parse().map_err(|error| Unseen::Not(format!("{error}")))?;
        let Some(user) = users.user(&account) else { return absent(property, "passwd", rule, lens) };
        Ok(match property {
            "exists" => true.into(),
            "uid" => u64::from(user.uid).into(),
            "gid" => u64::from(user.gid).into(),
            "home" => user.home.as_str().into(),
            "shell" => user.shell.as_str().into(),
            _ => {
                let groups = users.groups_of(&user).into_iter().map(|gid| users.group_name(gid));
                Observed::from(groups.collect::<Vec<_>>())
            }
        })
    })
}

pub(super) fn group<'a>(rule: &'a Rule, lens: &'a Lens<'a>) -> Observer<'a> {
    Box::new(move |property| {
        let account: Account = rule.subject.parse().map_err(|error| Unseen::Not(format!("{error}")))?;
        // A numeric group needs no entry.
        let id = lens.host.users.group_id(&account);
        let is_known = account.id().is_none_or(|id| lens.host.users.group_name(id) != id.to_string());
        match id.filter(|_| is_known) {
            None => absent(property, "group", rule, lens),
            Some(_) if property == "exists" => Ok(true.into()),
            Some(id) => Ok(u64::from(id).into()),
        }
    })
}

/// Returns the meaning of an unknown account: it does not exist, or the directory service did not answer.
fn absent(property: &str, database: &str, rule: &Rule, lens: &Lens) -> Seen {
    let command = Command::new("getent").arguments([database, &rule.subject]).keep(Keep::Head(1 << 20));
    match command.timeout(lens.within(PATIENCE)).run(&lens.host.runner, &lens.host.interrupt) {
        // Not found, or no service besides the files.
        Ok(finished) if matches!(finished.exit, Exit::Code(0 | 2)) => {}
        Err(ProcessError::NotFound { .. }) => {}
        Ok(finished) => return Err(Unseen::Cannot(format!("getent ended with {}", finished.exit))),
        Err(error) => return Err(Unseen::Cannot(error.to_string())),
    }
    if property == "exists" { Ok(false.into()) } else { Err(Unseen::Not("it does not exist".to_owned())) }
}
