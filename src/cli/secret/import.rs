//! `ccm secret import`

use std::path::PathBuf;

use clap::{Args, ValueHint};
use zeroize::Zeroizing;

use super::{Exit, Failure, RecipientFlags, absolute, document::create, format_of, read};
use crate::{
    cli::prompt,
    document::Source,
    host::{
        files::{self, Attributes},
        look,
    },
    secrets::decrypt_vault,
};

/// Arguments of `ccm secret import`.
#[derive(Args)]
#[command(after_help = "Example:\n  ccm secret import --ansible-vault vault.yml -o secrets/default.yaml")]
pub(super) struct Arguments {
    /// Ansible Vault file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, required = true)]
    ansible_vault: PathBuf,
    /// File with the vault password; else it is asked for
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    password_file: Option<PathBuf>,
    /// Encrypted document to write
    #[arg(short, long, id = "imported", value_name = "FILE", value_hint = ValueHint::FilePath, required = true)]
    output: PathBuf,
    #[command(flatten)]
    recipients: RecipientFlags,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let (from, to) = (&arguments.ansible_vault, &arguments.output);
    let failed = |error: &dyn std::fmt::Display| Failure::new(format!("{}: {error}", from.display()));
    if look::is_there(to) {
        return Err(Failure::new(format!("{} exists: remove it first", to.display())));
    }
    let rule = arguments.recipients.rule(to)?;
    let vault = String::from_utf8(read(from)?).map_err(|_| failed(&"it is not text"))?;
    let password = match &arguments.password_file {
        Some(file) => {
            let bytes = Zeroizing::new(read(file)?);
            let text = str::from_utf8(&bytes).map_err(|_| Failure::new("the password file is not text"))?;
            Zeroizing::new(text.trim_end_matches(['\n', '\r']).to_owned())
        }
        None => prompt::ask("Vault password: ")
            .ok()
            .flatten()
            .ok_or_else(|| Failure::new("no vault password: name a --password-file"))?,
    };
    let plain = decrypt_vault(&vault, password.as_bytes()).map_err(|error| failed(&error))?;
    let source = Source::read(from.display().to_string(), plain.to_vec())
        .map_err(|problem| failed(&problem.message))?;
    let sealed = create(&source, format_of(to), &rule)?;
    files::replace(&absolute(to), Attributes::own(0o644), |out| out.write_all(sealed.as_bytes()))
        .map_err(|error| Failure::new(error.to_string()))?;
    Ok(Exit::Success)
}
