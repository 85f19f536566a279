//! Encrypted data: documents in the format of SOPS, and files in age format.
//!
//! ```text
//! format       YAML, JSON, dotenv and INI as one tree
//! sops/        the section `sops`, values, MAC, and parts of the data key
//! keyring      identities of the run; opens data keys and files
//! identity/    private keys of age and ssh, and where they are found
//! ```
//!
//! [`read`] is the only way from a document to its values: it returns the tree in plain text, or the tree with
//! placeholders, or errors. A document that is encrypted in part, or without its MAC, is an error.

mod age_file;
mod bech32;
mod format;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod handover;
mod identity;
mod keyring;
mod program;
mod recipients;
mod rules;
mod scan;
mod sealed;
mod sops;
pub(crate) mod ssh_wire;
#[cfg(test)]
mod tests;
mod vault;

pub(crate) use age_file::AgeError;
pub(crate) use format::Format;
pub(crate) use handover::Handover;
pub(crate) use identity::{Found, NoPrompt, Place, Prompt, generate, is_age_file, with_passphrase};
pub(crate) use keyring::{Keyring, WithoutKey};
pub(crate) use recipients::{check as check_recipient, encrypt};
pub(crate) use rules::{FILE as RULES_FILE, Rule, Rules, normal, with_new_keys};
pub(crate) use scan::{find as find_plain, form as secret_form};
pub(crate) use sealed::{digest_of_part, sealed_parts, unopened_parts};
pub(crate) use sops::{
    DataKey, Metadata, NewValue, Reuse, Revealed, document, new_data_key, placeholders, quoted, reveal, seal,
    set,
};
pub(crate) use vault::decrypt as decrypt_vault;

use keyring::NoKey;
use sops::{Document, Opened};

use crate::{
    document::{Diagnostic, Diagnostics, Node, Parsed, Source, Span},
    host::memory,
};

/// The id of errors about documents that cannot be decrypted here.
pub(crate) const NO_IDENTITY: &str = "no-identity";

/// Reads a data document, and decrypts it if it is encrypted.
pub(crate) fn read(source: &Source, format: Format, keyring: &Keyring) -> Result<Parsed, Diagnostics> {
    let mut parsed = format.read(source)?;
    if parsed.diagnostics.has_errors() {
        return Ok(parsed);
    }
    let Some(document) = sops::document(&parsed.root, format, source)? else { return Ok(parsed) };
    let span = document.metadata_span;
    let opened = open(document, source, keyring);
    let warnings = keyring.take_warnings();
    parsed
        .diagnostics
        .extend(warnings.into_iter().map(|text| Diagnostic::warning("identity-not-used", text).at(span)));
    parsed.root = opened?.root;
    Ok(parsed)
}

/// Returns a document that cannot be decrypted with placeholders: whatever else is wrong with its use is reported, too.
pub(crate) fn stand_in(source: &Source, format: Format, keyring: &Keyring) -> Option<Node> {
    let parsed = format.read(source).ok().filter(|parsed| !parsed.diagnostics.has_errors())?;
    let document = sops::document(&parsed.root, format, source).ok()??;
    keyring.use_placeholders();
    Some(sops::placeholders(document, source).ok()?.root)
}

fn open(document: Document, source: &Source, keyring: &Keyring) -> Result<Opened, Diagnostics> {
    let span = document.metadata_span;
    if keyring.without_key == WithoutKey::NeverDecrypt {
        keyring.use_placeholders();
        return sops::placeholders(document, source);
    }
    match keyring.data_key(&document.metadata) {
        Ok(key) => {
            memory::protect();
            sops::open(document, &key, source)
        }
        Err(NoKey::NoIdentity { .. }) if keyring.without_key == WithoutKey::Placeholders => {
            keyring.use_placeholders();
            sops::placeholders(document, source)
        }
        Err(error @ NoKey::NoIdentity { .. }) if document.metadata.has_others() => {
            let mut problem = no_key(error, span);
            let Some(interrupt) = keyring.interrupt() else { return Err(problem.into()) };
            match program::decrypt(source, document.format, interrupt) {
                Ok(plain) => {
                    memory::protect();
                    sops::fill(document, &plain, source)
                }
                Err(advice) => {
                    problem.help = problem.help.map(|help| format!("{help}; {advice}"));
                    Err(problem.into())
                }
            }
        }
        Err(error) => Err(no_key(error, span).into()),
    }
}

pub(crate) fn no_key(error: NoKey, span: Span) -> Diagnostic {
    match error {
        NoKey::NoIdentity { recipients, tried } => {
            let tried = if tried.is_empty() { "none was found".to_owned() } else { tried.join(", ") };
            Diagnostic::error(NO_IDENTITY, "no identity opens this encrypted document")
                .at(span)
                .with_help(format!("recipients: {}; identities tried: {tried}", recipients.join(", ")))
        }
        NoKey::Refused(reason) => Diagnostic::error(NO_IDENTITY, reason).at(span),
        NoKey::Damaged { key, reason } => {
            sops::invalid(format!("the data key for {}: {reason}", key.recipient), key.span)
        }
        NoKey::Parts => sops::invalid("the parts of the data key do not belong together", span),
    }
}
