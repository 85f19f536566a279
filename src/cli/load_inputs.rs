//! Flags that say what a manifest sees of the machine and of the user's data.

use std::{
    fs, io,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
};

use ccm_expr::{Map, Value};
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, builder::NonEmptyStringValueParser};
use rustix::{fs::OFlags, io::Errno};

use super::{
    facts::{self, FactFlags},
    failure::{Failure, warn},
    machine,
    nats::{self, NatsFlags},
    or_variable,
    output::Output,
    state::{self, StateFolder},
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
    state::Recall,
};

/// The flags, for every command that reads a manifest or templates.
pub(super) fn arguments(command: Command) -> Command {
    let hiera = Arg::new("hiera")
        .long("hiera")
        .value_name("FILE|URL")
        .value_hint(ValueHint::FilePath)
        .value_parser(NonEmptyStringValueParser::new())
        .action(ArgAction::Append)
        .help(
            "Hierarchical data that goes over the manifest's own; of several, later ones over earlier ones",
        );
    command
        .args(facts::arguments())
        .arg(state::argument())
        .arg(or_variable(hiera, "CCM_HIERA_DATA"))
        .arg(
            Arg::new("data").long("data").value_name("KEY=VALUE").action(ArgAction::Append).help(
                "Data that goes over all other; dots in KEY make maps, VALUE has the type it has in YAML",
            ),
        )
        .arg(nats::context_argument())
}

/// What becomes of a manifest about which there are warnings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strictness {
    /// They are shown.
    Lenient,
    /// They are errors.
    Strict,
}

impl Strictness {
    pub(super) fn argument() -> Arg {
        switch("strict", "Take warnings about manifests and data for errors")
    }

    pub(super) fn from_matches(matches: &ArgMatches) -> Self {
        if matches.get_flag("strict") { Self::Strict } else { Self::Lenient }
    }

    /// Returns what was loaded, unless it is not good enough.
    pub(super) fn judge<T>(self, loaded: Result<Loaded<T>, LoadError>) -> Result<Loaded<T>, LoadError> {
        match self {
            Self::Lenient => loaded,
            Self::Strict => loaded.map_err(LoadError::strictly).and_then(Loaded::strictly),
        }
    }
}

/// What the flags say.
pub(super) struct InputFlags {
    pub(super) facts: FactFlags,
    pub(super) state: StateFolder,
    pub(super) nats: NatsFlags,
    hiera: Vec<Location>,
    data: Vec<Pair>,
}

impl InputFlags {
    pub(super) fn from_matches(matches: &ArgMatches) -> Result<Self, Failure> {
        Ok(Self {
            facts: FactFlags::from_matches(matches)?,
            state: StateFolder::from_matches(matches),
            nats: NatsFlags::from_matches(matches),
            hiera: data_locations(matches)?,
            data: pairs(matches, "data", "--data")?,
        })
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
        let limits = self.facts.limits;
        let facts = self.facts.given(&machine.host.interrupt)?;
        machine.load_inputs(facts, self.hiera, self.data, limits).map_err(Failure::new)
    }

    /// As [`InputFlags::read`], with what lies in a folder: `.env` adds to the environment, `.hiera` is the data.
    pub(super) fn read_in(
        self,
        folder: &Path,
        dotenv: Dotenv,
        machine: &Machine,
    ) -> Result<LoadInputs, Failure> {
        let mut load_inputs = self.read(machine)?;
        if dotenv != Dotenv::Unwanted {
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dotenv {
    Wanted,
    Unwanted,
    /// Nobody said.
    Open,
}

impl Dotenv {
    pub(super) fn arguments() -> [Arg; 2] {
        [
            switch("read-env", "Let .env in the working directory add to Environ")
                .overrides_with("no-read-env"),
            switch("no-read-env", "Leave .env in the working directory alone").overrides_with("read-env"),
        ]
    }

    pub(super) fn from_matches(matches: &ArgMatches) -> Self {
        let is_given = |name: &str| matches.try_get_one::<bool>(name).ok().flatten() == Some(&true);
        match (is_given("read-env"), is_given("no-read-env")) {
            (true, _) => Self::Wanted,
            (_, true) => Self::Unwanted,
            _ => Self::Open,
        }
    }

    /// Adds what `.env` says where that is wanted, and says that it is not read where nobody said.
    pub(super) fn read(self, load_inputs: LoadInputs) -> Result<LoadInputs, Failure> {
        let here = Path::new(".");
        match self {
            Self::Wanted => with_dotenv(load_inputs, here),
            Self::Open if here.join(".env").is_file() => {
                warn(".env is not read: --read-env lets it add to Environ, --no-read-env leaves it alone");
                Ok(load_inputs)
            }
            Self::Open | Self::Unwanted => Ok(load_inputs),
        }
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

/// Where the manifests are that a command is about.
pub(super) fn locations(matches: &ArgMatches) -> Result<Vec<Location>, Failure> {
    matches.get_many::<String>("manifest").into_iter().flatten().map(|text| location(text)).collect()
}

/// Where the user's data is.
fn data_locations(matches: &ArgMatches) -> Result<Vec<Location>, Failure> {
    let given = matches.get_many::<String>("hiera").into_iter().flatten();
    given.map(|text| location(text)).collect()
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

/// Returns what an argument sets as `key=value`; messages call it `shown`.
pub(super) fn pairs(matches: &ArgMatches, argument: &str, shown: &str) -> Result<Vec<Pair>, Failure> {
    let given = matches.get_many::<String>(argument).into_iter().flatten();
    given.map(|text| pair(text).map_err(|error| Failure::new(format!("{shown}: {error}")))).collect()
}
