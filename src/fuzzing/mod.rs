//! Ways in for fuzzers: what the program does with whatever it is given to read. Part of nothing that users run.

#![allow(clippy::disallowed_methods, reason = "fuzzers prepare their own folders")]

use std::{path::PathBuf, sync::Arc};

use ccm_expr::{Map, Memory as ExpressionMemory, Value};

use crate::{
    cli,
    document::{Colour, Review, render},
    facts::{Facts, Options},
    host::{Host, input::Limits},
    manifest::{self, LoadError, LoadInputs, Loaded, Location},
    nats::{ContextChoice, Nats},
    secrets::Keyring,
    state::{LocalState, StateDirectory},
};

/// A manifest, as `ccm validate` and `ccm apply --render` read it.
pub fn manifest(text: &[u8]) {
    with_host(|host, state| match manifest::load(&location(text), &load_inputs(), host, state) {
        Ok(Loaded { value: manifest, .. }) => {
            for resource in &manifest.resources {
                let late = resource.wanted_now(&manifest.scope, &manifest.source);
                let wanted = late.ok().flatten();
                resource.to_json(wanted.as_deref().unwrap_or(resource.wanted.as_ref()));
            }
        }
        Err(error) => tell(&error),
    });
}

/// Hierarchical data, as `ccm hiera parse` reads it.
pub fn hiera(text: &[u8]) {
    with_host(|host, state| {
        let data = load_inputs().data_of(&location(text), &folder(), host, state);
        data.as_ref().map_or_else(tell, |data| drop(data.value.to_text()));
    });
}

/// A request, as `ccm ensure api` reads it.
pub fn request(text: &[u8]) {
    with_host(|host, state| {
        if let Ok(Loaded { value: scope, .. }) = load_inputs().without_manifest(&folder(), host, state) {
            for texts in [cli::Texts::Literal, cli::Texts::Templates] {
                let _ = cli::Request::read(text.to_vec(), texts, &scope);
            }
        }
    });
}

/// Problems are told at places that exist.
fn tell(error: &LoadError) {
    if let LoadError::Invalid(documents) = error {
        for Review { source, diagnostics } in documents {
            assert!(!diagnostics.is_empty(), "invalid without a reason");
            render(diagnostics, source, Colour::Off);
        }
    }
}

fn location(text: &[u8]) -> Location {
    Location::Open { name: "input".to_owned(), folder: folder(), bytes: text.to_vec() }
}

fn folder() -> PathBuf {
    PathBuf::from("/nonexistent")
}

fn load_inputs() -> LoadInputs {
    LoadInputs {
        strictness: crate::manifest::Strictness::Lenient,
        facts: Arc::new(Facts::new(options())),
        environ: facts(),
        hiera: Vec::new(),
        data: Vec::new(),
        limits: Limits::default(),
        expression_memory: ExpressionMemory::default(),
        nats: Arc::new(Nats::new(ContextChoice::nowhere(), String::new())),
        keyring: Arc::new(Keyring::none()),
    }
}

fn options() -> Options {
    let given = facts().as_map().cloned().into_iter().collect();
    Options { root: folder(), folders: Vec::new(), given, limit: 0, programs: None }
}

fn facts() -> Value {
    let entries = [
        ("a", Value::Int(1)),
        ("text", Value::from("{{ 1 }} ${ 1 }")),
        ("none", Value::Null),
        ("list", Value::from(vec![Value::Int(1), Value::from("x")])),
        ("map", Map::from_iter([("b".into(), Value::from(true))]).into()),
    ];
    entries.into_iter().map(|(name, value)| (name.into(), value)).collect::<Map>().into()
}

/// One host serves all inputs: making one listens for signals.
fn with_host(run: impl FnOnce(&Host, &LocalState)) {
    thread_local!(static HOST: Option<Host> = cli::host_to_fuzz());
    let state = LocalState::at(StateDirectory::none());
    HOST.with(|host| host.as_ref().map(|host| run(host, &state)));
}

/// Encrypted documents.
pub fn encrypted(bytes: &[u8]) {
    crate::secrets::fuzzing::read_document(bytes);
}

/// Documents that ccm encrypts and opens again.
pub fn sealed(bytes: &[u8]) {
    crate::secrets::fuzzing::seal_document(bytes);
}

/// Files in age format, and identities.
pub fn keys(bytes: &[u8]) {
    crate::secrets::fuzzing::read_keys(bytes);
}
