//! `ccm secret rekey`

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};

use super::{
    Exit, Failure, KeyFlags, Output, absolute,
    document::{Opened, open},
    format_of, problems, read, rule, write,
};
use crate::{
    document::Source,
    host::look,
    secrets::{
        Keyring, Reuse, Rule, document, encrypt, is_age_file, new_data_key, normal, seal, with_new_keys,
    },
};

/// Arguments of `ccm secret rekey`.
#[derive(Args)]
#[command(after_help = "Example:\n  ccm secret rekey\n  ccm secret rekey --rotate secrets/web.yaml")]
pub(super) struct Arguments {
    /// Files to encrypt again; else all documents below the directory that a rule matches
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,
    /// Encrypt all values with a new data key
    #[arg(long)]
    rotate: bool,
    #[command(flatten)]
    keys: KeyFlags,
}

pub(super) fn run(arguments: Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let is_named = !arguments.files.is_empty();
    let files = if is_named { arguments.files } else { documents(Path::new(".")) };
    let keyring = arguments.keys.keyring(output)?;
    for file in files {
        let Some(rule) = rule(&file)? else {
            if is_named {
                return Err(Failure::new(format!("no rule of .sops.yaml matches {}", file.display())));
            }
            continue;
        };
        if rekey(&file, &rule, arguments.rotate, &keyring)? {
            let (file, count) = (file.strip_prefix(".").unwrap_or(&file).display(), rule.recipients().len());
            let noun = if count == 1 { "recipient" } else { "recipients" };
            output.line(&format!("{file}: encrypted for {count} {noun}"));
        }
    }
    Ok(Exit::Success)
}

/// Returns the encrypted documents below a directory.
fn documents(directory: &Path) -> Vec<PathBuf> {
    let files = look::files_below(&absolute(directory), &super::check::ENDINGS, super::check::DEEPEST);
    let is_encrypted = |path: &PathBuf| {
        let Ok(source) = super::source(path) else { return false };
        let format = format_of(path);
        let Ok(parsed) = format.read(&source) else { return false };
        matches!(document(&parsed.root, format, &source), Ok(Some(_)))
    };
    files.into_iter().map(|below| directory.join(below)).filter(is_encrypted).collect()
}

/// Encrypts a file for the recipients of a rule. Returns whether it changed.
fn rekey(file: &Path, rule: &Rule, rotate: bool, keyring: &Keyring) -> Result<bool, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::new(format!("{}: {error}", file.display()));
    let bytes = read(file)?;
    if is_age_file(&bytes) {
        let plain = keyring.decrypt(&bytes).map_err(|error| failed(&error))?;
        let encrypted = encrypt(&rule.all(), &plain).map_err(|error| failed(&error))?;
        write(file, &encrypted, 0o644)?;
        return Ok(true);
    }
    let Opened { source, format, revealed, metadata, key } = open(file, keyring)?;
    let mut before: Vec<String> = metadata.recipients().iter().map(|recipient| normal(recipient)).collect();
    before.sort();
    before.dedup();
    let after = rule.recipients();
    if before == after && !rotate {
        return Ok(false);
    }
    let was_removed = before.iter().any(|recipient| !after.contains(recipient));
    let plain = Source { name: source.name.clone(), text: revealed.text.as_str().to_owned() };
    let sealed = if rotate || was_removed {
        let key = new_data_key().map_err(|error| failed(&error))?;
        let new = rule.metadata(&key).map_err(|error| failed(&error))?;
        let new = with_new_keys(&metadata, new);
        seal(&plain, format, &new, &key, None, &mut Reuse::default())
    } else {
        let new = rule.metadata(&key).map_err(|error| failed(&error))?;
        let new = with_new_keys(&metadata, new);
        let mut reuse = revealed.reuse;
        seal(&plain, format, &new, &key, None, &mut reuse)
    };
    let sealed = sealed.map_err(|found| problems(&source, found))?;
    write(file, sealed.as_bytes(), 0o644)?;
    Ok(true)
}
