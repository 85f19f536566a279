//! Flags for the facts and data that a manifest can use.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use ccm_expr::{Map, Value};
use clap::{ArgAction, Args, ValueHint, builder::NonEmptyStringValueParser};
use zeroize::Zeroizing;

use super::{
    dotenv::{DotenvFlags, ours, with_dotenv},
    failure::Failure,
    machine::{self, NatsFlags, StateFolder},
    or_variable,
    output::Output,
    prompt::Terminal,
    switch,
};
use crate::{
    document::{Pair, pair},
    facts,
    host::{input::Limits, interrupt::Interrupt},
    manifest::{LoadInputs, Location, Strictness},
    push::Opened,
    run::{Given, Machine},
    secrets::{Keyring, Place, WithoutKey},
    state::Recall,
    vocabulary::Size,
};

/// How to treat warnings.
#[derive(Args)]
pub(super) struct StrictFlag {
    /// Take warnings about manifests and data for errors
    #[arg(
        long,
        action = ArgAction::SetTrue,
        value_parser = switch(|is_strict| if is_strict { Strictness::Strict } else { Strictness::Lenient }),
    )]
    pub(super) strict: Strictness,
}

/// What a manifest sees of the machine and of the data of users.
#[derive(Args, Clone)]
#[command(mut_arg("hiera", |flag| or_variable(flag, "CCM_HIERA_DATA")))]
pub(super) struct InputFlags {
    #[command(flatten)]
    pub(super) facts: FactFlags,
    #[command(flatten)]
    pub(super) state: StateFolder,
    /// Hierarchical data that overrides the manifest's own; later files override earlier ones
    #[arg(
        long,
        value_name = "FILE|URL",
        value_hint = ValueHint::FilePath,
        value_parser = NonEmptyStringValueParser::new(),
    )]
    hiera: Vec<String>,
    /// Value that overrides all other data; dots in KEY separate map keys, VALUE is YAML
    #[arg(long, value_name = "KEY=VALUE")]
    data: Vec<String>,
    #[command(flatten)]
    pub(super) nats: NatsFlags,
    #[command(flatten)]
    pub(super) identities: IdentityFlags,
    #[arg(skip)]
    without_key: WithoutKey,
    /// Data that a controller sent.
    #[arg(skip)]
    pushed: Option<Vec<Location>>,
    /// Encrypted data that a controller opened.
    #[arg(skip)]
    opened: Opened,
}

/// Private keys that open encrypted data.
#[derive(Args, Clone, Default)]
pub(super) struct IdentityFlags {
    /// Private key of age or ssh that opens encrypted data; may be repeated
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    identity: Vec<PathBuf>,
    /// The identity that a controller sent.
    #[arg(skip)]
    sent: Option<String>,
}

impl IdentityFlags {
    /// Returns the keys of the files and the usual places, and prompts for passphrases on the terminal.
    pub(super) fn keyring(self, machine: &Machine) -> Keyring {
        machine.keyring(self.places(), Arc::new(Terminal))
    }

    /// Takes the identity that a controller sent.
    pub(super) fn accept(&mut self, sent: Option<String>) {
        self.sent = sent;
    }

    /// Returns the places that were named.
    pub(super) fn places(self) -> Vec<Place> {
        let sent = self.sent.map(Zeroizing::new);
        let sent = sent.map(|text| Place::Text { variable: "the controller", text });
        let named = self.identity.into_iter().map(|path| Place::Named { by: "--identity", path });
        sent.into_iter().chain(named).collect()
    }
}

impl InputFlags {
    /// Lets placeholders stand for encrypted data that no identity opens.
    pub(super) fn with_placeholders(self) -> Self {
        Self { without_key: WithoutKey::Placeholders, ..self }
    }

    /// Takes data and facts that a controller sent.
    pub(super) fn accept(&mut self, hiera: Vec<Location>, facts: Vec<Map>, opened: Opened) {
        self.pushed = Some(hiera);
        self.opened = opened;
        self.facts.accept(facts);
    }

    /// Returns where data is that overrides the data of manifests.
    pub(super) fn hiera(&self) -> Result<Vec<Location>, Failure> {
        self.pushed.clone().map_or_else(|| locations(&self.hiera), Ok)
    }

    /// Returns the values that `--data` sets.
    pub(super) fn data(&self) -> Result<Vec<Pair>, Failure> {
        pairs(&self.data, "--data")
    }

    /// Returns the machine with the state that the flags select.
    pub(super) fn machine(&self, recall: Recall, output: &Output) -> Result<Machine, Failure> {
        machine::open(&self.state, &self.nats, recall, output)
    }

    pub(super) fn machine_read_only(&self, output: &Output) -> Result<Machine, Failure> {
        machine::open_read_only(&self.state, &self.nats, output)
    }

    /// Returns the machine, and the facts and data that the flags name.
    pub(super) fn open(self, recall: Recall, output: &Output) -> Result<(Machine, LoadInputs), Failure> {
        let machine = self.machine(recall, output)?;
        let load_inputs = self.read(&machine)?;
        Ok((machine, load_inputs))
    }

    /// Reads the facts and data that the flags name.
    pub(super) fn read(self, machine: &Machine) -> Result<LoadInputs, Failure> {
        let given = Given {
            facts: self.facts.given(&machine.host.interrupt)?,
            hiera: self.hiera()?,
            data: self.data()?,
            limits: self.facts.limits(),
            identities: self.identities.places(),
            prompt: Arc::new(Terminal),
            without_key: self.without_key,
            opened: self.opened,
        };
        machine.load_inputs(given).map_err(Failure::new)
    }

    /// Same as [`InputFlags::open`], with `.env` of a directory in the environment, and `.hiera` as data.
    pub(super) fn open_in(
        self,
        folder: &Path,
        dotenv: &DotenvFlags,
        output: &Output,
    ) -> Result<(Machine, LoadInputs), Failure> {
        let (machine, mut load_inputs) = self.open(Recall::Used, output)?;
        if dotenv.allows() {
            load_inputs = with_dotenv(load_inputs, folder)?;
        }
        if load_inputs.hiera.is_empty()
            && let Some(bytes) = ours(&folder.join(".hiera"), load_inputs.limits)?
        {
            let (name, folder) = (".hiera".to_owned(), folder.to_owned());
            load_inputs.hiera.push(Location::Open { name, folder, bytes });
        }
        Ok((machine, load_inputs))
    }
}

/// The facts that flags add, and the maximum size of documents.
#[derive(Args, Clone, Default)]
#[command(mut_arg("max_input_size", |flag| or_variable(flag, "CCM_MAX_INPUT_SIZE")))]
pub(super) struct FactFlags {
    /// Maximum size of a document [default: 64MiB for manifests and facts, 256MiB for data]
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = |text: &str| text.parse::<Size>().map_err(|error| error.to_string()),
    )]
    max_input_size: Option<Size>,
    /// YAML or JSON file with facts that override those of the machine
    #[arg(id = "facts", long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,
    /// Fact that overrides all others; dots in KEY separate map keys, VALUE is YAML
    #[arg(id = "fact", long, value_name = "KEY=VALUE")]
    facts: Vec<String>,
    #[arg(skip)]
    below: Vec<Map>,
}

impl FactFlags {
    /// Returns the files with facts and leaves none.
    pub(super) fn take_files(&mut self) -> Vec<PathBuf> {
        std::mem::take(&mut self.files)
    }

    /// Adds a file with facts.
    pub(super) fn add_file(&mut self, file: PathBuf) {
        self.files.push(file);
    }

    /// Returns the maximum sizes of documents.
    pub(super) fn limits(&self) -> Limits {
        self.max_input_size.map_or_else(Limits::default, |size| Limits::of(size.bytes()))
    }

    /// Adds facts that all other given facts override.
    pub(super) fn put_below(&mut self, facts: &Value) {
        self.below = facts.as_map().cloned().into_iter().collect();
    }

    /// Adds facts that override all others.
    pub(super) fn extend(&mut self, facts: Vec<String>) {
        self.facts.extend(facts);
    }

    /// Takes facts that a controller sent.
    pub(super) fn accept(&mut self, facts: Vec<Map>) {
        self.below.extend(facts);
    }

    /// Returns the facts in the files that the flags name.
    pub(super) fn documents(&self, interrupt: &Interrupt) -> Result<Vec<Map>, Failure> {
        let limit = self.limits().document;
        let read = |path: &PathBuf| facts::in_file(path, limit, interrupt).map_err(Failure::from);
        self.files.iter().map(read).collect()
    }

    /// Returns the facts that the flags add; later facts override earlier facts.
    pub(super) fn given(&self, interrupt: &Interrupt) -> Result<Vec<Map>, Failure> {
        let mut given = self.below.clone();
        given.extend(self.documents(interrupt)?);
        let facts = pairs(&self.facts, "fact")?;
        given.extend(facts.into_iter().filter_map(|pair| pair.nested().as_map().cloned()));
        Ok(given)
    }
}

/// Returns the location that an argument names.
pub(super) fn location(argument: &str) -> Result<Location, Failure> {
    Location::from_argument(argument).map_err(Failure::new)
}

/// Returns the locations that arguments name.
pub(super) fn locations(arguments: &[String]) -> Result<Vec<Location>, Failure> {
    arguments.iter().map(|text| location(text)).collect()
}

/// Returns the `key=value` pairs of a flag; messages call it `shown`.
pub(super) fn pairs(given: &[String], shown: &str) -> Result<Vec<Pair>, Failure> {
    let given = given.iter();
    given.map(|text| pair(text).map_err(|error| Failure::new(format!("{shown}: {error}")))).collect()
}
