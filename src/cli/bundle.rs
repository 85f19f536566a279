//! `ccm bundle`

use std::{
    env,
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand, ValueHint};
use jiff::Timestamp;

use super::{Exit, failure::Failure, interrupt, load_inputs::FactFlags, output::Output};
use crate::{
    bundle::{
        self, AllowedSigners, LARGEST_SIGNATURE, Label, NO_VERSION, Rules, Signature, SigningKey, VerifyError,
    },
    host::{
        files::{self, Attributes},
        input::{self, UnreadableInput},
        unpack::ArchiveFormat,
    },
};

/// Arguments of `ccm bundle`.
#[derive(Args)]
#[command(disable_version_flag = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Pack a directory with a manifest, or data, into a reproducible bundle
    #[command(
        after_help = BUILD_EXAMPLES,
        disable_version_flag = true
    )]
    Build(Box<BuildArguments>),
    /// Sign a bundle: write BUNDLE.sig like `ssh-keygen -Y sign -n ccm`
    #[command(after_help = "Example:\n  ccm bundle sign site.tar.gz --key ~/.ssh/id_ed25519")]
    Sign {
        /// The bundle
        #[arg(value_hint = ValueHint::FilePath)]
        bundle: PathBuf,
        /// SSH private key, or public key whose private key is in the SSH agent
        #[arg(long, value_hint = ValueHint::FilePath)]
        key: PathBuf,
    },
    /// Verify the signature, name and expiry of a bundle
    #[command(after_help = "Example:\n  ccm bundle verify site.tar.gz --signers allowed_signers --name site")]
    Verify {
        /// The bundle
        #[arg(value_hint = ValueHint::FilePath)]
        bundle: PathBuf,
        /// Allowed-signers file of ssh-keygen
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        signers: PathBuf,
        /// Required name of the bundle
        #[arg(long)]
        name: Option<String>,
    },
}

const BUILD_EXAMPLES: &str = "\
Examples:
  ccm bundle build site -o site.tar.gz --version 1.2.0
  ccm bundle build --data data.yaml -o data.tar.gz --version 7";

/// Arguments of `ccm bundle build`.
#[derive(Args)]
struct BuildArguments {
    /// Directory with manifest.yaml
    #[arg(value_hint = ValueHint::DirPath, required_unless_present = "data")]
    folder: Option<PathBuf>,
    /// Build a bundle with data for `external_data_url` of agents
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "folder")]
    data: Option<PathBuf>,
    /// Bundle to write, such as site.tar.gz
    #[arg(short, long, value_name = "BUNDLE", value_hint = ValueHint::FilePath)]
    output: PathBuf,
    /// Name of the bundle [default: name of the directory, or with --data of BUNDLE]
    #[arg(long)]
    name: Option<String>,
    /// Version, in Debian's order; required to sign the bundle
    #[arg(long = "version", value_name = "VERSION")]
    bundle_version: Option<String>,
    /// When agents that require signatures reject it, as 2027-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    expires: Option<String>,
    /// Leave out files of hierarchies that this host does not read
    #[arg(long = "for", value_name = "HOST", conflicts_with = "data")]
    host: Option<String>,
    /// Pack this file although it looks like a secret
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    allow_secrets: Vec<PathBuf>,
    #[command(flatten)]
    facts: FactFlags,
}

impl BuildArguments {
    fn build(mut self) -> Result<Exit, Failure> {
        let to = absolute(&self.output);
        let (data, folder) = (self.data.as_deref().map(absolute), self.folder.as_deref().map(absolute));
        let rules = self.rules(folder.as_deref())?;
        let label = self.label(folder.as_deref(), &to)?;
        if ArchiveFormat::of(&to.to_string_lossy()) != ArchiveFormat::of("x.tar.gz") {
            return Err(Failure::new(format!(
                "{}: the name of a bundle ends with .tar.gz or .tgz",
                to.display()
            )));
        }
        match data {
            Some(data) => bundle::build_data(&data, &label, &to),
            None => bundle::build(&folder.unwrap_or_default(), &label, &to, &rules),
        }
        .map_err(|error| Failure::new(error.to_string()))?;
        Ok(Exit::Success)
    }

    fn rules(&mut self, folder: Option<&Path>) -> Result<Rules, Failure> {
        let facts = std::mem::take(&mut self.facts).given(&interrupt()?)?;
        let allowed = std::mem::take(&mut self.allow_secrets);
        let allowed = allowed.iter().map(|path| path.components().collect()).collect();
        let (Some(host), Some(folder)) = (&self.host, folder) else {
            if !facts.is_empty() {
                return Err(Failure::new("facts are for a bundle for one host: add `--for HOST`"));
            }
            return Ok(Rules { allowed, ..Rules::default() });
        };
        let facts = bundle::facts_of_host(host, facts).map_err(Failure::new)?;
        let unread = bundle::unread_layers(folder, &facts);
        Ok(Rules { allowed, unread: unread.map_err(|error| Failure::new(error.to_string()))? })
    }

    fn label(self, folder: Option<&Path>, to: &Path) -> Result<Label, Failure> {
        let named = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        let usual = || match folder {
            Some(folder) => named(folder),
            None => named(to).map(|name| {
                let ending = ArchiveFormat::ending_of(&name).unwrap_or_default();
                name[..name.len() - ending.len()].to_owned()
            }),
        };
        let expires = self.expires.map(|text| {
            text.parse::<Timestamp>().map_err(|_| {
                Failure::new(format!("--expires: `{text}` is no time: write it like 2027-01-31T12:00:00Z"))
            })
        });
        Ok(Label {
            name: self.name.or_else(usual).unwrap_or_default(),
            version: self.bundle_version.unwrap_or_else(|| NO_VERSION.to_owned()),
            expires: expires.transpose()?,
        })
    }
}

fn absolute(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.components().collect()
}

pub(super) fn run(arguments: Arguments, output: &mut Output) -> Result<Exit, Failure> {
    match arguments.action {
        Action::Build(arguments) => arguments.build(),
        Action::Sign { bundle, key } => sign(&bundle, &key),
        Action::Verify { bundle, signers, name } => match verify(&bundle, &signers, name.as_deref())? {
            Ok(line) => {
                output.line(&line);
                Ok(Exit::Success)
            }
            Err(reason) => {
                super::failure::warn(&format!("{}: {reason}", bundle.display()));
                Ok(Exit::Failed)
            }
        },
    }
}

fn beside(bundle: &Path) -> PathBuf {
    let mut name = bundle.as_os_str().to_owned();
    name.push(".sig");
    name.into()
}

fn opened(path: &Path) -> Result<std::fs::File, Failure> {
    input::open_file(path)
        .map_err(|error| Failure::new(UnreadableInput { path: path.to_owned(), error }.to_string()))
}

pub(super) fn sign(bundle: &Path, key: &Path) -> Result<Exit, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::new(error.to_string());
    let file = opened(bundle)?;
    if let Some(kind) = bundle::format_of(&bundle.to_string_lossy(), &file) {
        let label = Label::of(&file, kind).and_then(|label| label.check_version());
        label.map_err(|error| Failure::new(format!("{}: {error}", bundle.display())))?;
    }
    let socket = env::var_os("SSH_AUTH_SOCK").map(PathBuf::from);
    let key = SigningKey::read(key, socket.as_deref()).map_err(|error| failed(&error))?;
    let signature = key.sign(opened(bundle)?).map_err(|error| failed(&error))?;
    let to = absolute(&beside(bundle));
    files::replace(&to, Attributes::own(0o644), |out| out.write_all(signature.as_bytes()))
        .map_err(|error| failed(&error))?;
    Ok(Exit::Success)
}

/// Returns who signed a file, or why its signature is not valid.
pub(super) fn signer(
    path: &Path,
    content: &[u8],
    signers: &AllowedSigners,
    now: Timestamp,
) -> Result<String, String> {
    let signature = input::read_file(&beside(path), LARGEST_SIGNATURE)
        .map_err(|error| format!("it is not signed: {}: {error}", beside(path).display()))?;
    let signature = Signature::parse(&signature).map_err(|error| error.to_string())?;
    signature.verify(content, signers, now).map_err(|error| error.to_string())
}

/// Returns who signed a bundle and what it says of itself, or why it is not to be trusted.
fn verify(bundle: &Path, signers: &Path, name: Option<&str>) -> Result<Result<String, String>, Failure> {
    let signers = AllowedSigners::read(signers).map_err(|error| Failure::new(error.to_string()))?;
    let file = opened(bundle)?;
    let signature = match input::read_file(&beside(bundle), LARGEST_SIGNATURE) {
        Ok(signature) => signature,
        Err(error) => return Ok(Err(format!("it is not signed: {}: {error}", beside(bundle).display()))),
    };
    let now = Timestamp::now();
    let verified = Signature::parse(&signature).and_then(|signature| signature.verify(&file, &signers, now));
    if let Err(VerifyError::InvalidSigners(error)) = verified {
        return Err(Failure::new(error.to_string()));
    }
    let check = || -> Result<String, String> {
        let principal = verified.map_err(|error| error.to_string())?;
        let Some(kind) = bundle::format_of(&bundle.to_string_lossy(), &file) else {
            return Ok(format!("signed by {principal}"));
        };
        let label = Label::of(&file, kind).map_err(|error| error.to_string())?;
        label.check(name, now).map_err(|error| error.to_string())?;
        let expiry = label.expires.map(|expires| format!(", expires {expires}")).unwrap_or_default();
        Ok(format!("{} version {}{expiry}, signed by {principal}", label.name, label.version))
    };
    Ok(check())
}
