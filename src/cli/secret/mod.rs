//! `ccm secret`

mod check;
mod document;
mod editor;
mod import;
mod init;
mod recipients;
mod rekey;
mod whole_file;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueHint};

use super::{
    Exit,
    failure::Failure,
    load_inputs::IdentityFlags,
    machine::{self, NatsFlags, StateFolder},
    output::Output,
    push::WithHosts,
};
use crate::{
    document::{Diagnostics, Review, Source},
    host::{
        files::{self, Attributes},
        input::{self, UnreadableInput},
    },
    secrets::{Format, Keyring, Rule, Rules},
};

const EXAMPLES: &str = "\
Examples:
  # A key of your own, and the first secret
  ccm secret init
  ccm secret set secrets/web.yaml db.password

  # Change several values in an editor
  ccm secret edit secrets/web.yaml

  # After a change of .sops.yaml
  ccm secret rekey";

/// Larger files are not encrypted documents.
const LARGEST: u64 = 256 << 20;

/// Arguments of `ccm secret`.
#[derive(Args)]
#[command(subcommand_required = true, arg_required_else_help = true, after_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Create an age key unless there is one, and print its recipient
    Init(init::Arguments),
    /// Change values in an editor
    Edit(document::EditArguments),
    /// Set one value from standard input or a prompt
    Set(document::SetArguments),
    /// Print decrypted values
    Show(document::ShowArguments),
    /// Encrypt documents for the recipients of .sops.yaml
    Rekey(rekey::Arguments),
    /// Check encrypted documents and find secrets in plain text
    Check(check::Arguments),
    /// Print the ssh keys of hosts as recipients
    Recipients(WithHosts<recipients::Arguments>),
    /// Encrypt a whole file in age format
    Encrypt(whole_file::EncryptArguments),
    /// Decrypt a whole file in age format
    Decrypt(whole_file::DecryptArguments),
    /// Import an Ansible Vault file as an encrypted document
    Import(import::Arguments),
}

pub(super) fn run(arguments: Arguments, output: &mut Output) -> Result<Exit, Failure> {
    match arguments.command {
        Command::Init(arguments) => init::run(&arguments, output),
        Command::Edit(arguments) => document::edit(arguments, output),
        Command::Set(arguments) => document::set(arguments, output),
        Command::Show(arguments) => document::show(arguments, output),
        Command::Rekey(arguments) => rekey::run(arguments, output),
        Command::Check(arguments) => check::run(&arguments, output),
        Command::Recipients(WithHosts(arguments)) => recipients::run(&arguments, output),
        Command::Encrypt(arguments) => whole_file::encrypt(&arguments),
        Command::Decrypt(arguments) => whole_file::decrypt(arguments, output),
        Command::Import(arguments) => import::run(&arguments),
    }
}

/// Private keys, and where ccm keeps its own.
#[derive(Args)]
struct KeyFlags {
    #[command(flatten)]
    identities: IdentityFlags,
    #[command(flatten)]
    state: StateFolder,
}

impl KeyFlags {
    /// Returns the identities of the user.
    fn keyring(self, output: &Output) -> Result<Keyring, Failure> {
        let machine = machine::open_read_only(&self.state, &NatsFlags::default(), output)?;
        Ok(self.identities.keyring(&machine))
    }
}

/// A recipient that is named instead of those of `.sops.yaml`.
#[derive(Args)]
struct RecipientFlags {
    /// Public key of age or ssh to encrypt for, instead of .sops.yaml; may be repeated
    #[arg(long = "recipient", id = "recipient", value_name = "KEY")]
    recipients: Vec<String>,
}

impl RecipientFlags {
    /// Returns the rule for a file; without one nothing can be encrypted.
    fn rule(&self, file: &Path) -> Result<Rule, Failure> {
        if !self.recipients.is_empty() {
            return Ok(Rule::of(self.recipients.clone()));
        }
        rule(file)?.ok_or_else(|| {
            let file = file.display();
            Failure::new(format!("no rule of .sops.yaml matches {file}: add a rule, or name a --recipient"))
        })
    }
}

/// Returns the rule of `.sops.yaml` for a file, if one matches.
fn rule(file: &Path) -> Result<Option<Rule>, Failure> {
    let rules = Rules::find(file).map_err(|review| Failure::problems(review.source, review.diagnostics))?;
    let Some(rule) = rules.and_then(|rules| rules.into_rule(file)) else { return Ok(None) };
    if let Some(other) = rule.others.first() {
        let message = format!("the rule for {} has `{other}`, which ccm cannot encrypt for", file.display());
        return Err(Failure::new(format!("{message}: use the program `sops`")));
    }
    Ok(Some(rule))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    input::read_file(path, LARGEST)
        .map_err(|error| Failure::new(UnreadableInput { path: path.to_owned(), error }.to_string()))
}

fn source(path: &Path) -> Result<Source, Failure> {
    Source::read(path.display().to_string(), read(path)?).map_err(|problem| Failure::new(problem.message))
}

/// Replaces a file; it keeps its mode.
fn write(path: &Path, content: &[u8], mode: u32) -> Result<(), Failure> {
    let path = absolute(path);
    let mode = files::inspect(&path).ok().flatten().map_or(mode, |entry| entry.mode & 0o777);
    files::replace(&path, Attributes::own(mode), |out| out.write_all(content))
        .map_err(|error| Failure::new(error.to_string()))
}

fn absolute(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.components().collect()
}

fn format_of(path: &Path) -> Format {
    Format::of(&path.to_string_lossy())
}

fn problems(source: &Source, diagnostics: Diagnostics) -> Failure {
    Failure::problems(source.clone(), diagnostics)
}

/// Shows problems of a file and goes on.
fn show(source: &Source, diagnostics: Diagnostics) {
    super::failure::show(&[Review { source: source.clone(), diagnostics }]);
}

/// Where a file is, for arguments.
#[derive(Args)]
struct FileArgument {
    /// The file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
}
