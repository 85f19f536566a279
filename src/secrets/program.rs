//! The program `sops`, for recipients that only it can use: keys of PGP, KMS and Vault.

use std::time::Duration;

use zeroize::Zeroizing;

use super::Format;
use crate::{
    document::Source,
    host::{
        interrupt::Interrupt,
        process::{Command, Exit, Keep, ProcessError, Runner},
    },
};

const NAME: &str = "sops";

/// How long the program can take: a key can be on another machine, or need the confirmation of the user.
const PATIENCE: Duration = Duration::from_mins(1);

/// The plain text is not larger than the document by more than this.
const MARGIN: usize = 1 << 20;

/// Returns a document in plain text. The program checks the MAC. Fails with advice for the user.
pub(super) fn decrypt(
    source: &Source,
    format: Format,
    interrupt: &Interrupt,
) -> Result<Zeroizing<String>, String> {
    let kind = match format {
        Format::Dotenv => "dotenv",
        Format::Ini => "ini",
        Format::Yaml if source.text.trim_start().starts_with('{') => "json",
        Format::Yaml => "yaml",
    };
    let arguments = ["decrypt", "--input-type", kind, "--output-type", kind, "/dev/stdin"];
    let command = Command::new(NAME)
        .arguments(arguments)
        .input(source.text.as_bytes())
        .timeout(PATIENCE)
        .keep(Keep::Whole(source.text.len() + MARGIN));
    let finished = command.run(&Runner::default(), interrupt).map_err(|error| match error {
        ProcessError::NotFound { .. } => {
            "install the program `sops` for recipients of PGP, KMS and Vault".to_owned()
        }
        error => format!("the program `sops` does not run: {error}"),
    })?;
    if finished.exit != Exit::Code(0) {
        let errors = finished.stderr.text();
        let reason = errors.lines().find(|line| !line.trim().is_empty()).unwrap_or("no reason given").trim();
        return Err(format!("the program `sops` does not decrypt the document either: {reason}"));
    }
    Ok(Zeroizing::new(finished.stdout.text().into_owned()))
}
