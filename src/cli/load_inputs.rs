//! Flags that say what a manifest sees of the machine and of the user's data.

use std::{
    fs, io,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use ccm_expr::{Map, Value};
use clap::{ArgAction, Args, ValueHint, builder::NonEmptyStringValueParser};
use rustix::{fs::OFlags, io::Errno};

use super::{
    facts::FactFlags,
    failure::{Failure, warn},
    machine,
    nats::NatsFlags,
    or_variable,
    output::Output,
    prompt::Terminal,
    state::StateFolder,
    switch,
};
use crate::{
    document::{Pair, pair},
    hiera::deep,
    host::{
        files,
        input::{self, Limits},
    },
    manifest::{LoadError, LoadInputs, Loaded, Location},
    run::{Environment, Machine},
    secrets::{Keyring, WithoutKey},
    state::Recall,
};

/// What becomes of a manifest about which there are warnings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strictness {
    /// They are shown.
    Lenient,
    /// They are errors.
    Strict,
}

/// How to treat warnings.
#[derive(Args)]
pub(super) struct StrictFlag {
    /// Take warnings about manifests and data for errors
    #[arg(long, action = ArgAction::SetTrue, value_parser = switch(Strictness::of))]
    pub(super) strict: Strictness,
}

impl Strictness {
    fn of(is_strict: bool) -> Self {
        if is_strict { Self::Strict } else { Self::Lenient }
    }

    /// Returns what was loaded, unless it is not good enough.
    pub(super) fn judge<T>(self, loaded: Result<Loaded<T>, LoadError>) -> Result<Loaded<T>, LoadError> {
        match self {
            Self::Lenient => loaded,
            Self::Strict => loaded.map_err(LoadError::strictly).and_then(Loaded::strictly),
        }
    }
}

/// What a manifest sees of the machine and of the data of users.
#[derive(Args)]
#[command(mut_arg("hiera", |flag| or_variable(flag, "CCM_HIERA_DATA")))]
pub(super) struct InputFlags {
    #[command(flatten)]
    pub(super) facts: FactFlags,
    #[command(flatten)]
    pub(super) state: StateFolder,
    /// Hierarchical data that goes over the manifest's own; of several, later ones over earlier ones
    #[arg(
        long,
        value_name = "FILE|URL",
        value_hint = ValueHint::FilePath,
        value_parser = NonEmptyStringValueParser::new(),
    )]
    hiera: Vec<String>,
    /// Data that goes over all other; dots in KEY make maps, VALUE has the type it has in YAML
    #[arg(long, value_name = "KEY=VALUE")]
    data: Vec<String>,
    #[command(flatten)]
    pub(super) nats: NatsFlags,
    #[command(flatten)]
    pub(super) identities: IdentityFlags,
    #[arg(skip)]
    without_key: WithoutKey,
}

/// Private keys that open encrypted data.
#[derive(Args)]
pub(super) struct IdentityFlags {
    /// Private key of age or ssh that opens encrypted data; may be repeated
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    identity: Vec<PathBuf>,
}

impl IdentityFlags {
    /// Returns the keys of the files and the usual places. Passphrases are asked for on the terminal.
    pub(super) fn keyring(self, machine: &Machine) -> Keyring {
        machine.keyring(self.identity, Arc::new(Terminal))
    }
}

impl InputFlags {
    /// Lets placeholders stand for encrypted data that no identity opens.
    pub(super) fn with_placeholders(self) -> Self {
        Self { without_key: WithoutKey::Placeholders, ..self }
    }

    /// Returns the machine that this process runs on, with the state that the flags name.
    pub(super) fn machine(&self, recall: Recall, output: &Output) -> Result<Machine, Failure> {
        let environment = Environment::of_process();
        let state = self.state.open(&environment)?.with_recall(recall);
        machine(&output.progress, environment, state, &self.nats)
    }

    /// Returns the machine for a command that only reads; without a state directory its state is empty.
    pub(super) fn machine_read_only(&self, output: &Output) -> Result<Machine, Failure> {
        let environment = Environment::of_process();
        let state = self.state.open_read_only(&environment);
        machine(&output.progress, environment, state, &self.nats)
    }

    /// Reads what the flags name.
    pub(super) fn read(self, machine: &Machine) -> Result<LoadInputs, Failure> {
        let limits = self.facts.limits();
        let facts = self.facts.given(&machine.host.interrupt)?;
        let (hiera, data) = (locations(&self.hiera)?, pairs(&self.data, "--data")?);
        let keyring = self.identities.keyring(machine).without_key(self.without_key);
        let load_inputs = machine.load_inputs(facts, hiera, data, limits).map_err(Failure::new)?;
        Ok(LoadInputs { keyring: Arc::new(keyring), ..load_inputs })
    }

    /// As [`InputFlags::read`], with what lies in a folder: `.env` adds to the environment, `.hiera` is the data.
    pub(super) fn read_in(
        self,
        folder: &Path,
        dotenv: &DotenvFlags,
        machine: &Machine,
    ) -> Result<LoadInputs, Failure> {
        let mut load_inputs = self.read(machine)?;
        if !dotenv.no_read_env {
            load_inputs = with_dotenv(load_inputs, folder)?;
        }
        if load_inputs.hiera.is_empty()
            && let Some(bytes) = ours(&folder.join(".hiera"), load_inputs.limits)?
        {
            let (name, folder) = (".hiera".to_owned(), folder.to_owned());
            load_inputs.hiera.push(Location::Open { name, folder, bytes });
        }
        Ok(load_inputs)
    }
}

/// Whether `.env` in the working directory adds to the environment that templates see.
#[derive(Args)]
pub(super) struct DotenvFlags {
    /// Let .env in the working directory add to Environ
    #[arg(long, overrides_with = "no_read_env")]
    read_env: bool,
    /// Leave .env in the working directory alone
    #[arg(long, overrides_with = "read_env")]
    no_read_env: bool,
}

impl DotenvFlags {
    /// Adds the variables of `.env` if the flags request it. Warns about an unread `.env` if no flag decides.
    pub(super) fn read(&self, load_inputs: LoadInputs) -> Result<LoadInputs, Failure> {
        let here = Path::new(".");
        if self.read_env {
            return with_dotenv(load_inputs, here);
        }
        if !self.no_read_env && here.join(".env").is_file() {
            warn(".env is not read: --read-env lets it add to Environ, --no-read-env leaves it alone");
        }
        Ok(load_inputs)
    }
}

fn with_dotenv(mut load_inputs: LoadInputs, folder: &Path) -> Result<LoadInputs, Failure> {
    if let Some(bytes) = ours(&folder.join(".env"), load_inputs.limits)? {
        let text = String::from_utf8(bytes).map_err(|_| Failure::new(".env is not UTF-8 text"))?;
        // All of them are strings, and one string replaces another.
        let own = load_inputs.environ.clone();
        load_inputs.environ = deep(load_inputs.environ, &dotenv_values(&text)?).unwrap_or(own);
    }
    Ok(load_inputs)
}

/// Where an argument says that something is.
pub(super) fn location(argument: &str) -> Result<Location, Failure> {
    Location::from_argument(argument).map_err(Failure::new)
}

/// Returns the locations that arguments name.
pub(super) fn locations(arguments: &[String]) -> Result<Vec<Location>, Failure> {
    arguments.iter().map(|text| location(text)).collect()
}

/// What a file holds, if it is there and only its owner, who is the user or root, can have written it.
///
/// What is judged is what was opened: nobody can put another file in its place in between.
fn ours(path: &Path, limits: Limits) -> Result<Option<Vec<u8>>, Failure> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let opened = fs::OpenOptions::new().read(true).custom_flags(flags).open(path);
    let failed = |error| Failure::new(format!("cannot read {}: {error}", path.display()));
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
            not_ours(path);
            return Ok(None);
        }
        Err(error) => return Err(failed(error)),
    };
    let metadata = file.metadata().map_err(failed)?;
    let is_ours = metadata.is_file() && files::is_ours(metadata.uid()) && metadata.mode() & 0o022 == 0;
    if !is_ours {
        not_ours(path);
        return Ok(None);
    }
    let read = input::read_to_end(file, limits.data);
    read.map(Some).map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))
}

fn not_ours(path: &Path) {
    let shown = path.display();
    warn(&format!("{shown} is ignored: it must be a file of yours or of root that nobody else may write"));
}

/// `KEY=value` lines with quotes, comments and `export`, as shells read them.
fn dotenv_values(text: &str) -> Result<Value, Failure> {
    let mut values = Map::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let broken = |reason: &str| Failure::new(format!(".env:{}: {reason}", number + 1));
        let (key, value) = line.split_once('=').ok_or_else(|| broken("not of the form KEY=value"))?;
        let key = key.trim_end();
        let is_name = |key: &str| key.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric());
        if key.is_empty() || !is_name(key) {
            return Err(broken("not the name of a variable"));
        }
        values.insert(key.into(), dotenv_value(value.trim()).map_err(broken)?.into());
    }
    Ok(values.into())
}

const UNCLOSED: &str = "a quote is not closed on its line; within double quotes, \\n is a line break";

/// A value without its quotes and without the comment behind it.
fn dotenv_value(text: &str) -> Result<String, &'static str> {
    let (value, rest) = match text.chars().next() {
        Some('\'') => {
            text[1..].split_once('\'').map(|(value, rest)| (value.to_owned(), rest)).ok_or(UNCLOSED)?
        }
        Some('"') => double_quoted(&text[1..]).ok_or(UNCLOSED)?,
        Some('#') => return Ok(String::new()),
        _ => return Ok(text.split(" #").next().unwrap_or_default().trim_end().to_owned()),
    };
    match rest.trim_start() {
        "" => Ok(value),
        comment if comment.starts_with('#') => Ok(value),
        _ => Err("there is text after the closing quote; quote the value as a whole"),
    }
}

/// The value up to the closing quote, and what follows it.
fn double_quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut letters = text.chars();
    loop {
        match letters.next()? {
            '"' => return Some((value, letters.as_str())),
            '\\' => match letters.next()? {
                'n' => value.push('\n'),
                't' => value.push('\t'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
}

/// Returns the `key=value` pairs of a flag; messages call it `shown`.
pub(super) fn pairs(given: &[String], shown: &str) -> Result<Vec<Pair>, Failure> {
    let given = given.iter();
    given.map(|text| pair(text).map_err(|error| Failure::new(format!("{shown}: {error}")))).collect()
}
