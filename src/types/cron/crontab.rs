//! The crontab of a user, through the program `crontab`.

use std::path::PathBuf;

use rustix::process::geteuid;

use crate::{
    host::{
        look, process,
        process::{Command, Exit},
        system_file,
    },
    resource::{Context, Error},
    types::program,
    vocabulary::Account,
};

/// Directories in which implementations of cron keep crontabs.
const SPOOLS: [&str; 3] = ["/var/spool/cron/crontabs", "/var/spool/cron/tabs", "/var/spool/cron"];
const DAEMONS: [&str; 5] = ["cron", "crond", "fcron", "cronie", "busybox"];

fn command(user: &Account) -> Command<'static> {
    let command = Command::new("crontab");
    if geteuid().is_root() { command.arguments(["-u", user.as_str()]) } else { command }
}

/// Returns the text of a crontab; nothing if the user has none.
pub(super) fn read(user: &Account, cx: &Context) -> Result<Option<String>, Error> {
    let finished = program::run("crontab", command(user).arguments(["-l"]), cx)?;
    match finished.exit {
        Exit::Code(0) => Ok(Some(finished.stdout.text().into_owned())),
        Exit::Code(1) if finished.stderr.text().contains("no crontab for") => Ok(None),
        _ => {
            let reason = program::failure("crontab", &finished).message;
            Err(Error::new(format!("cannot read the crontab of {}: {reason}", user.as_str())).on("user"))
        }
    }
}

/// Replaces a crontab.
pub(super) fn write(user: &Account, text: &str, cx: &Context) -> Result<(), Error> {
    program::succeed("crontab", command(user).arguments(["-"]).input(text.as_bytes()).awaited(), cx).map(drop)
}

/// Returns the file in which cron keeps a crontab, if ccm can read it.
pub(super) fn file(user: &Account) -> Option<PathBuf> {
    let spool = SPOOLS.iter().map(PathBuf::from).find(|spool| look::is_directory(spool))?;
    geteuid().is_root().then(|| spool.join(user.as_str()))
}

/// Fails if the user is not allowed to have a crontab.
pub(super) fn permitted(user: &Account) -> Result<(), Error> {
    let lists = |path: &str| {
        let text = system_file::read(path).ok()?;
        Some(text.lines().any(|line| line.trim() == user.as_str()))
    };
    let refusal = match (lists("/etc/cron.allow"), lists("/etc/cron.deny")) {
        (Some(false), _) => "/etc/cron.allow does not list the user",
        (None, Some(true)) => "/etc/cron.deny lists the user",
        _ => return Ok(()),
    };
    if user.as_str() == "root" {
        return Ok(());
    }
    Err(Error::new(format!("the user {} may not have a crontab: {refusal}", user.as_str()))
        .on("user")
        .with_help("use `target: cron.d`, or change that file first"))
}

/// Whether a cron daemon is installed.
pub(super) fn has_daemon() -> bool {
    DAEMONS.iter().any(|daemon| process::locate(daemon).is_ok())
}
