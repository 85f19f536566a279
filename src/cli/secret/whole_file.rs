//! `ccm secret encrypt` and `decrypt`

use std::path::PathBuf;

use clap::{Args, ValueHint};
use zeroize::Zeroizing;

use super::{
    Exit, Failure, FileArgument, KeyFlags, Output, RecipientFlags, absolute,
    document::{self, permit},
    read,
};
use crate::{
    cli::prompt::Terminal,
    host::{
        files::{self, Attributes},
        look,
    },
    secrets::{AgeError, Prompt, encrypt as encrypt_for, is_age_file, with_passphrase},
};

/// Arguments of `ccm secret encrypt`.
#[derive(Args)]
#[command(after_help = "Example:\n  ccm secret encrypt tls.key")]
pub(super) struct EncryptArguments {
    #[command(flatten)]
    file: FileArgument,
    #[command(flatten)]
    recipients: RecipientFlags,
}

/// Arguments of `ccm secret decrypt`.
#[derive(Args)]
#[command(after_help = "Example:\n  ccm secret decrypt tls.key.age -o tls.key")]
pub(super) struct DecryptArguments {
    #[command(flatten)]
    file: FileArgument,
    /// File to write, with mode 0600; else the content is printed
    #[arg(short, long, id = "decrypted", value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// Print also if the output is not a terminal
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    keys: KeyFlags,
}

pub(super) fn encrypt(arguments: &EncryptArguments) -> Result<Exit, Failure> {
    let file = &arguments.file.file;
    let mut to = file.as_os_str().to_owned();
    to.push(".age");
    let to = absolute(to.as_ref());
    if look::is_there(&to) {
        return Err(Failure::new(format!("{} exists: remove it first", to.display())));
    }
    let plain = Zeroizing::new(read(file)?);
    // A rule can be for the file or for its encrypted copy.
    let rule = arguments.recipients.rule(&to).or_else(|_| arguments.recipients.rule(file))?;
    let encrypted = encrypt_for(&rule.all(), &plain).map_err(|error| Failure::new(error.to_string()))?;
    files::replace(&to, Attributes::own(0o644), |out| out.write_all(&encrypted))
        .map_err(|error| Failure::new(error.to_string()))?;
    Ok(Exit::Success)
}

pub(super) fn decrypt(arguments: DecryptArguments, output: &mut Output) -> Result<Exit, Failure> {
    if arguments.output.is_none() {
        permit(arguments.force)?;
    }
    let file = arguments.file.file;
    let bytes = read(&file)?;
    let keyring = arguments.keys.keyring(output)?;
    let plain = if is_age_file(&bytes) {
        let plain = match keyring.decrypt(&bytes) {
            Err(AgeError::Passphrase) => match Terminal.passphrase(&file.display().to_string()) {
                Some(passphrase) => with_passphrase(&bytes, passphrase),
                None => Err(AgeError::Passphrase),
            },
            result => result,
        };
        plain.map_err(|error| {
            let tried = keyring.tried().join(", ");
            let tried = if tried.is_empty() { "none was found".to_owned() } else { tried };
            let help = if error == AgeError::NoMatch {
                format!(" (identities tried: {tried})")
            } else {
                String::new()
            };
            Failure::new(format!("cannot decrypt {}: {error}{help}", file.display()))
        })?
    } else {
        let opened = document::open(&file, &keyring)?;
        Zeroizing::new(opened.revealed.text.as_bytes().to_vec())
    };
    match arguments.output {
        Some(to) => files::replace(&absolute(&to), Attributes::own(0o600), |out| out.write_all(&plain))
            .map_err(|error| Failure::new(error.to_string()))?,
        None => output.bytes(&plain),
    }
    Ok(Exit::Success)
}
