//! Observes running processes.

use std::{cell::OnceCell, os::unix::fs::MetadataExt};

use super::{
    super::lens::{Lens, Unseen},
    Observer,
};
use crate::{
    checks::Rule,
    host::process::{self, Running},
    vocabulary::Account,
};

/// Maximum length of a process name in the kernel.
const LONGEST_COMM: usize = 15;

pub(super) fn observer<'a>(rule: &'a Rule, lens: &'a Lens<'a>) -> Observer<'a> {
    let found: OnceCell<Result<u64, String>> = OnceCell::new();
    Box::new(move |property| {
        let found = found.get_or_init(|| count(rule, lens));
        let found = found.as_ref().map_err(|error| Unseen::Cannot(error.clone()))?;
        Ok(if property == "running" { (*found > 0).into() } else { (*found).into() })
    })
}

/// Counts the processes that match a rule.
fn count(rule: &Rule, lens: &Lens) -> Result<u64, String> {
    let uid = match &rule.options.user {
        None => None,
        Some(user) => {
            let account: Account = user.parse().map_err(|error| format!("{error}"))?;
            match lens.host.users.user_id(&account) {
                Some(uid) => Some(uid),
                // A user that does not exist runs no processes.
                None => return Ok(0),
            }
        }
    };
    let all = process::running_now().map_err(|error| format!("the processes cannot be listed: {error}"))?;
    let is_meant = |running: &&Running| {
        let args = || running.arguments().join(" ");
        is_called(running, &rule.subject)
            && uid.is_none_or(|uid| owner(running) == Some(uid))
            && rule.options.args.as_ref().is_none_or(|pattern| pattern.holds(&args()))
    };
    Ok(all.iter().filter(is_meant).count() as u64)
}

/// Returns whether a process has this name. The kernel truncates long names; the complete name is in the command line.
fn is_called(running: &Running, name: &str) -> bool {
    if name.len() <= LONGEST_COMM {
        return running.name == name;
    }
    let last = |path: &str| path.rsplit('/').next().unwrap_or_default() == name;
    name.starts_with(&running.name)
        && (running.arguments().first().is_some_and(|first| last(first))
            || std::fs::read_link(format!("/proc/{}/exe", running.pid))
                .is_ok_and(|exe| last(&exe.to_string_lossy())))
}

fn owner(running: &Running) -> Option<u32> {
    std::fs::metadata(format!("/proc/{}", running.pid)).ok().map(|metadata| metadata.uid())
}
