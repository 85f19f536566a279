//! Input that the controller reads for all hosts, and the request for each host.

use std::time::Duration;

use clap::{ArgMatches, FromArgMatches};
use flate2::{Compression, GzBuilder};

use super::{
    super::{
        apply::ManifestArguments,
        command_line,
        failure::Failure,
        load_inputs::{self, IdentityFlags, InputFlags},
        machine::{NatsFlags, machine},
        output::Output,
    },
    opener::{Opener, SealedParts},
};
use crate::{
    document::Severity,
    host::{Host, input},
    manifest::{self, LoadError, LoadInputs, Location, Packaged, Parcel},
    push::{Archive, Destination, Document, Origin, Request, Target},
    run::{Environment, Given, Machine},
    secrets::{Handover, Keyring, WithoutKey},
    state::{LocalState, Recall, StateDirectory},
    template::escape,
    vocabulary::TimeLimit,
};

/// Larger files are not sent.
const LARGEST: u64 = 256 << 20;

/// Documents that the command line names.
pub(super) struct Inputs {
    manifests: Vec<Location>,
    /// Absent for commands that load neither manifests nor data.
    flags: Option<InputFlags>,
}

fn parsed(error: &clap::Error) -> Failure {
    Failure::new(error.to_string())
}

fn manifests(matches: &ArgMatches) -> Result<Vec<Location>, Failure> {
    ManifestArguments::from_arg_matches(matches).map_err(|error| parsed(&error))?.locations()
}

/// Input that is ready to be sent.
pub(super) struct Packed {
    archive: Archive,
    /// Identities of the controller, and the encrypted data of all hosts.
    opener: Opener,
    parcel: Parcel,
    manifests: Vec<Document>,
    hiera: Vec<Document>,
    facts: Vec<serde_json::Value>,
    recorded: Vec<String>,
    /// How long runs wait for their confirmation, if the manifests set that.
    pub(super) confirm: Option<Duration>,
}

impl Inputs {
    /// Returns no documents.
    pub(super) fn none() -> Self {
        Self { manifests: Vec::new(), flags: None }
    }

    pub(super) fn from_matches(names: &[String], matches: &ArgMatches) -> Result<Self, Failure> {
        let is_loading = matches!(names[0].as_str(), "apply" | "ensure" | "plan");
        let takes_manifests = matches!(names[0].as_str(), "apply" | "plan");
        let file = matches.try_get_one::<String>("file").ok().flatten().filter(|_| names[0] == "check");
        let file = file.map(|file| load_inputs::location(file)).transpose()?;
        Ok(Self {
            manifests: if takes_manifests { manifests(matches)? } else { file.into_iter().collect() },
            flags: is_loading
                .then(|| InputFlags::from_arg_matches(matches))
                .transpose()
                .map_err(|error| parsed(&error))?,
        })
    }

    /// Reads everything once, and finds the errors that do not depend on a host.
    pub(super) fn pack(&self, hosts: &[Destination], output: &Output) -> Result<Packed, Failure> {
        let mut parcel = Parcel::default();
        let mut keyring = Keyring::none();
        let mut facts = Vec::new();
        let (mut hiera, mut confirm) = (0, None);
        if let Some(flags) = &self.flags {
            let machine = flags.machine(Recall::Used, output)?;
            facts = flags.facts.documents(&machine.host.interrupt)?;
            let limits = flags.facts.limits();
            let failed = |error: manifest::Unreadable| Failure::new(error.to_string());
            for location in &self.manifests {
                parcel
                    .add(location, &machine.host, &machine.state, &machine.nats, limits.document)
                    .map_err(failed)?;
            }
            for location in &flags.hiera()? {
                parcel
                    .add(location, &machine.host, &machine.state, &machine.nats, limits.data)
                    .map_err(failed)?;
                hiera += 1;
            }
            confirm = self.check(&parcel, flags, hosts, &machine)?;
            // A push counts signals; a listener that stays would end it.
            keyring = flags.identities.clone().keyring(&machine).without_signals();
        } else if let Some(location) = self.manifests.first() {
            let state = LocalState::at(StateDirectory::none());
            let machine = machine(&output.progress, Environment::of_process(), state, &NatsFlags::default())?;
            let added = parcel.add(location, &machine.host, &machine.state, &machine.nats, LARGEST);
            added.map_err(|error| Failure::new(error.to_string()))?;
        }
        let mut documents = parcel.documents.iter().map(|packed| Document {
            name: packed.name.clone(),
            path: packed.path.clone(),
            origin: match (packed.is_remote, packed.stands_alone) {
                (false, _) => Origin::Local,
                (true, false) => Origin::Bundle,
                (true, true) => Origin::Alone,
            },
        });
        let manifests: Vec<Document> = documents.by_ref().take(self.manifests.len()).collect();
        let hiera: Vec<Document> = documents.take(hiera).collect();
        let mut shared = SealedParts::default();
        let archive = Archive::new(archive(&parcel, &mut shared)?);
        Ok(Packed {
            archive,
            opener: Opener { keyring, shared },
            manifests,
            hiera,
            facts: facts
                .iter()
                .filter_map(|facts| serde_json::to_value(ccm_expr::Value::from(facts.clone())).ok())
                .collect(),
            recorded: command_line::without_secrets(std::env::args().collect()),
            confirm,
            parcel,
        })
    }

    /// Loads the manifests for the first host with the facts of this machine, and fails with the errors in places that have
    /// no template: these are errors on every host. Returns how long runs wait for their confirmation.
    fn check(
        &self,
        parcel: &Parcel,
        flags: &InputFlags,
        hosts: &[Destination],
        machine: &Machine,
    ) -> Result<Option<Duration>, Failure> {
        let mut facts = flags.facts.given(&machine.host.interrupt)?;
        let Some(host) = hosts.first() else { return Ok(None) };
        facts.splice(0..0, host.facts().as_map().cloned());
        let layers = Layers::of(host)?;
        let data = layers.texts.into_iter().map(|text| Location::Open {
            name: "inventory".to_owned(),
            folder: "/".into(),
            bytes: text.into_bytes(),
        });
        let mut identities = IdentityFlags::default();
        identities.accept(layers.identity);
        let given = Given {
            facts,
            hiera: data.chain(flags.hiera()?).collect(),
            data: flags.data()?,
            limits: flags.facts.limits(),
            // Hosts open encrypted data with identities of their own.
            identities: identities.places(),
            without_key: WithoutKey::Placeholders,
            ..Given::default()
        };
        let inputs = machine.load_inputs(given).map_err(Failure::new)?;
        let mut confirm = None;
        for (location, packed) in self.manifests.iter().zip(&parcel.documents) {
            // Standard input was read.
            let location = match location {
                Location::Stdin => Location::Open {
                    name: packed.name.clone(),
                    folder: ".".into(),
                    bytes: packed.text.clone().into_bytes(),
                },
                other => other.clone(),
            };
            confirm = confirm.max(check(&location, &inputs, &machine.host, machine)?);
        }
        Ok(confirm)
    }
}

fn check(
    location: &Location,
    inputs: &LoadInputs,
    host: &Host,
    machine: &Machine,
) -> Result<Option<Duration>, Failure> {
    let mut reviews = match manifest::load(location, inputs, host, &machine.state) {
        Err(LoadError::Invalid(reviews)) => reviews,
        Err(_) => return Ok(None),
        Ok(loaded) => return Ok(loaded.value.settings.confirm.map(TimeLimit::as_std)),
    };
    for review in &mut reviews {
        let source = &review.source;
        review.diagnostics.retain(|problem| {
            let text = problem.span.and_then(|span| source.text.get(span.start as usize..span.end as usize));
            problem.severity == Severity::Error
                && text.is_some_and(|text| !text.contains("{{") && !text.contains("${"))
        });
    }
    reviews.retain(|review| review.diagnostics.has_errors());
    if reviews.is_empty() { Ok(None) } else { Err(LoadError::Invalid(reviews).into()) }
}

/// The variables of a host as documents with data. They are not templates of ccm.
#[derive(Default)]
struct Layers {
    texts: Vec<String>,
    /// Opens the document with the secrets.
    identity: Option<String>,
}

impl Layers {
    fn of(host: &Destination) -> Result<Self, Failure> {
        let (open, secret) = host.split_data();
        let mut layers = Self::default();
        if !open.is_empty() {
            let mut data = serde_json::to_value(ccm_expr::Value::from(open)).unwrap_or_default();
            escape(&mut data);
            layers.texts.push(serde_json::json!({ "data": data }).to_string());
        }
        if !secret.is_empty() {
            // A document with marks of its own: the host treats what it decrypts as secret.
            let data = revealed(&secret.into());
            let sent = Handover::new(&serde_json::json!({ "data": data }).to_string());
            let sent = sent.map_err(|reason| Failure::new(format!("`{}`: {reason}", host.name)))?;
            layers.texts.push(sent.text);
            layers.identity = Some(sent.identity.to_string());
        }
        Ok(layers)
    }
}

/// Returns a value with its secrets.
fn revealed(value: &ccm_expr::Value) -> serde_json::Value {
    match value.reveal() {
        ccm_expr::Value::List(items) => items.iter().map(revealed).collect(),
        ccm_expr::Value::Map(map) => {
            let entries = map.iter().map(|(name, value)| (name.to_string(), revealed(value)));
            serde_json::Value::Object(entries.collect())
        }
        other => serde_json::to_value(other).unwrap_or_default(),
    }
}

impl Packed {
    /// Separates the archive and the identities from the rest.
    pub(super) fn into_parts(self) -> (Archive, Opener) {
        (self.archive, self.opener)
    }

    /// Returns names and texts of the manifests.
    pub(super) fn texts(&self) -> Vec<(String, String)> {
        let manifests = self.parcel.documents.iter().take(self.manifests.len());
        manifests.map(|packed| (packed.name.clone(), packed.text.clone())).collect()
    }

    /// Returns a host with its request.
    pub(super) fn target(
        &self,
        destination: Destination,
        words: Vec<String>,
        plan: Option<String>,
    ) -> Result<Target, Failure> {
        let mut files = self.parcel.selected(&destination.facts()).map_err(Failure::new)?;
        let sealed = !self.opener.shared.is_empty() || !SealedParts::of_host(&files).is_empty();
        let mut data = Vec::new();
        let Layers { texts, identity } = Layers::of(&destination)?;
        for (at, text) in texts.into_iter().enumerate() {
            let path = format!("inventory/data{at}.json");
            files.push((path.clone(), text));
            data.push(Document { name: "inventory".to_owned(), path, origin: Origin::Local });
        }
        data.extend(self.hiera.iter().cloned());
        let inventory = serde_json::to_value(destination.facts()).unwrap_or_default();
        let request = Request {
            arguments: words,
            recorded: self.recorded.clone(),
            manifests: self.manifests.clone(),
            data,
            facts: std::iter::once(inventory).chain(self.facts.iter().cloned()).collect(),
            files,
            identity,
            sealed,
            plan,
        };
        Ok(Target { destination, request: Ok(request) })
    }
}

/// Packs the files of a parcel into a compressed tar archive, and collects their encrypted parts.
fn archive(parcel: &Parcel, sealed: &mut SealedParts) -> Result<Vec<u8>, Failure> {
    let packed = GzBuilder::new().mtime(0).write(Vec::new(), Compression::fast());
    let mut archive = tar::Builder::new(packed);
    for (path, content) in &parcel.files {
        let (bytes, mode) = match content {
            Packaged::Text(text) => (text.clone().into_bytes(), 0o644),
            Packaged::File(file) => {
                let failed = |error: &dyn std::fmt::Display| {
                    Failure::new(format!("cannot read {}: {error}", file.display()))
                };
                let bytes = input::read_file(file, LARGEST).map_err(|error| failed(&error))?;
                (bytes, if crate::host::look::is_executable(file) { 0o755 } else { 0o644 })
            }
        };
        sealed.add(path, &bytes);
        let mut header = tar::Header::new_gnu();
        header.set_mode(mode);
        header.set_size(bytes.len() as u64);
        let added = archive.append_data(&mut header, path, bytes.as_slice());
        added.map_err(|error| Failure::new(format!("cannot pack {path}: {error}")))?;
    }
    let finished = archive.into_inner().and_then(flate2::write::GzEncoder::finish);
    finished.map_err(|error| Failure::new(format!("cannot pack the manifests: {error}")))
}
