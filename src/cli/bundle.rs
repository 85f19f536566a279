//! `ccm bundle`

use std::{
    env,
    path::{Path, PathBuf},
};

use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};
use jiff::Timestamp;

use super::{Exit, failure::Failure, output::Output, required};
use crate::{
    bundle::{self, AllowedSigners, LARGEST_SIGNATURE, Label, Signature, SigningKey},
    host::{
        files::{self, Attributes},
        input::{self, UnreadableInput},
        unpack::ArchiveFormat,
    },
};

pub(super) fn command() -> Command {
    let path = |name: &'static str, value: &'static str, help: &'static str| {
        let path = Arg::new(name).value_name(value).value_parser(value_parser!(PathBuf)).required(true);
        path.value_hint(ValueHint::FilePath).help(help)
    };
    let bundle = || path("bundle", "BUNDLE", "The bundle");
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let build = Command::new("build")
        .about("Packs a folder with a manifest into a bundle, the same bytes every time")
        .after_help("Example:\n  ccm bundle build site -o site.tar.gz --version 1.2.0")
        .arg(path("folder", "FOLDER", "The folder that holds manifest.yaml").value_hint(ValueHint::DirPath))
        .arg(path("output", "BUNDLE", "The bundle to write, such as site.tar.gz").short('o').long("output"))
        .arg(text("name", "NAME", "The name of the bundle [default: the folder's]"))
        .arg(
            text("bundle-version", "VERSION", "Its version, ordered as Debian orders versions [default: 0]")
                .long("version"),
        )
        .arg(text(
            "expires",
            "TIME",
            "When agents that require signatures stop to take it, as 2027-01-31T12:00:00Z",
        ));
    let sign = Command::new("sign")
        .about("Signs a bundle: writes BUNDLE.sig, as `ssh-keygen -Y sign -n ccm` does")
        .after_help("Example:\n  ccm bundle sign site.tar.gz --key ~/.ssh/id_ed25519")
        .arg(bundle())
        .arg(
            path(
                "key",
                "KEY",
                "A private key of ssh, or a public one whose private half the ssh agent holds",
            )
            .long("key"),
        );
    let verify = Command::new("verify")
        .about("Checks who signed a bundle, its name and its expiry")
        .after_help("Example:\n  ccm bundle verify site.tar.gz --signers allowed_signers --name site")
        .arg(bundle())
        .arg(path("signers", "FILE", "Who may sign: an allowed-signers file of ssh-keygen").long("signers"))
        .arg(text("name", "NAME", "The name that the bundle must have"));
    Command::new("bundle")
        .about("Makes, signs and checks bundles")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_version_flag(true)
        .subcommands([build.disable_version_flag(true), sign, verify])
}

/// What `ccm bundle` is asked.
pub(super) enum Arguments {
    Build { folder: PathBuf, to: PathBuf, label: Label },
    Sign { bundle: PathBuf, key: PathBuf },
    Verify { bundle: PathBuf, signers: PathBuf, name: Option<String> },
}

impl Arguments {
    pub(super) fn from_matches(matches: &ArgMatches) -> Result<Self, Failure> {
        match matches.subcommand() {
            Some(("build", matches)) => {
                let folder = absolute(&required::<PathBuf>(matches, "folder")?);
                let to = absolute(&required::<PathBuf>(matches, "output")?);
                let label = label(matches, &folder)?;
                Ok(Self::Build { folder, to, label })
            }
            Some(("sign", matches)) => {
                Ok(Self::Sign { bundle: required(matches, "bundle")?, key: required(matches, "key")? })
            }
            Some(("verify", matches)) => Ok(Self::Verify {
                bundle: required(matches, "bundle")?,
                signers: required(matches, "signers")?,
                name: matches.get_one("name").cloned(),
            }),
            _ => Err(Failure::new("no command was given; see `ccm bundle --help`")),
        }
    }
}

fn absolute(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.components().collect()
}

fn label(matches: &ArgMatches, folder: &Path) -> Result<Label, Failure> {
    let of_folder = || folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = matches.get_one::<String>("name").cloned().or_else(of_folder).unwrap_or_default();
    let version = matches.get_one::<String>("bundle-version").cloned().unwrap_or_else(|| "0".to_owned());
    let expires = matches.get_one::<String>("expires").map(|text| {
        text.parse::<Timestamp>().map_err(|_| {
            Failure::new(format!("--expires: `{text}` is no time: write it like 2027-01-31T12:00:00Z"))
        })
    });
    Ok(Label { name, version, expires: expires.transpose()? })
}

pub(super) fn run(arguments: Arguments, output: &mut Output) -> Result<Exit, Failure> {
    match arguments {
        Arguments::Build { folder, to, label } => {
            if ArchiveFormat::of(&to.to_string_lossy()) != ArchiveFormat::of("x.tar.gz") {
                return Err(Failure::new(format!(
                    "{}: the name of a bundle ends with .tar.gz or .tgz",
                    to.display()
                )));
            }
            bundle::build(&folder, &label, &to).map_err(|error| Failure::new(error.to_string()))?;
            Ok(Exit::Success)
        }
        Arguments::Sign { bundle, key } => sign(&bundle, &key),
        Arguments::Verify { bundle, signers, name } => match verify(&bundle, &signers, name.as_deref())? {
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

fn sign(bundle: &Path, key: &Path) -> Result<Exit, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::new(error.to_string());
    let socket = env::var_os("SSH_AUTH_SOCK").map(PathBuf::from);
    let key = SigningKey::read(key, socket.as_deref()).map_err(|error| failed(&error))?;
    let signature = key.sign(opened(bundle)?).map_err(|error| failed(&error))?;
    let to = absolute(&beside(bundle));
    files::replace(&to, Attributes::own(0o644), |out| out.write_all(signature.as_bytes()))
        .map_err(|error| failed(&error))?;
    Ok(Exit::Success)
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
    let check = || -> Result<String, String> {
        let signature = Signature::parse(&signature).map_err(|error| error.to_string())?;
        let principal = signature.verify(&file, &signers, now).map_err(|error| error.to_string())?;
        let Some(kind) = ArchiveFormat::of(&bundle.to_string_lossy()) else {
            return Ok(format!("signed by {principal}"));
        };
        let label = Label::of(&file, kind).map_err(|error| error.to_string())?;
        label.check(name, now).map_err(|error| error.to_string())?;
        let expiry = label.expires.map(|expires| format!(", expires {expires}")).unwrap_or_default();
        Ok(format!("{} version {}{expiry}, signed by {principal}", label.name, label.version))
    };
    Ok(check())
}
