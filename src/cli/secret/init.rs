//! `ccm secret init`

use std::{
    env,
    io::IsTerminal,
    path::{Path, PathBuf},
};

use clap::Args;

use super::{Exit, Failure, Output, absolute};
use crate::{
    cli::prompt,
    host::{
        files::{self, Attributes, Parents},
        look,
    },
    secrets::{Place, RULES_FILE, generate},
};

/// Arguments of `ccm secret init`.
#[derive(Args)]
#[command(after_help = "Example:\n  ccm secret init")]
pub(super) struct Arguments {}

pub(super) fn run(_: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let path = key_file()?;
    let recipient = match existing(&path)? {
        Some(recipient) => recipient,
        None => create(&path)?,
    };
    output.line(&recipient);
    output.flush();
    offer_rules(&recipient)?;
    Ok(Exit::Success)
}

/// Returns the file of keys that SOPS and ccm read.
fn key_file() -> Result<PathBuf, Failure> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")));
    let config = config.ok_or_else(|| Failure::new("cannot determine the directory of the key: set HOME"))?;
    Ok(config.join("sops/age/keys.txt"))
}

fn existing(path: &Path) -> Result<Option<String>, Failure> {
    if !look::is_there(path) {
        return Ok(None);
    }
    let interrupt = crate::cli::interrupt()?;
    match (Place::Named { by: "the key", path: path.to_owned() }).find(&interrupt) {
        crate::secrets::Found::Identities(found) => {
            Ok(found.iter().find_map(|identity| identity.recipients.first().cloned()))
        }
        crate::secrets::Found::Refused(reason) | crate::secrets::Found::Ignored(reason) => {
            Err(Failure::new(reason))
        }
        crate::secrets::Found::Nothing => Ok(None),
    }
}

fn create(path: &Path) -> Result<String, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::new(error.to_string());
    let (secret, recipient) = generate();
    let directory = path.parent().filter(|directory| !look::is_directory(directory));
    if let Some(directory) = directory {
        files::make_directory(directory, Attributes::own(0o700), Parents::Make)
            .map_err(|error| failed(&error))?;
    }
    let content = format!("# public key: {recipient}\n{}\n", secret.as_str());
    files::replace(path, Attributes::own(0o600), |out| out.write_all(content.as_bytes()))
        .map_err(|error| failed(&error))?;
    Ok(recipient)
}

/// Offers to create `.sops.yaml` in the working directory.
fn offer_rules(recipient: &str) -> Result<(), Failure> {
    let rules = absolute(RULES_FILE.as_ref());
    if !std::io::stdin().is_terminal() || look::is_there(&rules) {
        return Ok(());
    }
    let question = format!("Create {RULES_FILE} here, with this key as the only recipient? [y/N] ");
    if !prompt::confirm(&question).unwrap_or(false) {
        return Ok(());
    }
    let content = format!("creation_rules:\n  - age:\n      - {recipient}\n");
    files::replace(&rules, Attributes::own(0o644), |out| out.write_all(content.as_bytes()))
        .map_err(|error| Failure::new(error.to_string()))
}
