//! The engine, with a type that stores its parts in memory.

mod gating;
mod groups;
mod look_ahead;
mod parts;
mod providers;
mod registering;
mod selection;
mod sensitive;
mod stopping;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use self::parts::{Part, shelf};
use super::*;
use crate::{
    declare::{Completeness, Declaration},
    document::{Diagnostics, Source, Span, Value as Node},
    host::{
        http::{Client, ProgressListener, Proxies},
        interrupt::Interrupt,
        process::Runner,
        users::Users,
    },
    resource::{AnyType, Context, TypeOf},
    state::{LocalState, Patience, StateDirectory},
    template::Scope,
    vocabulary::Url,
};

struct Nobody;

impl ProgressListener for Nobody {
    fn received(&self, _: &Url, _: u64, _: Option<u64>) {}
    fn ended(&self) {}
}

impl Observer for Nobody {
    fn finished(&mut self, _: &Report) {}
}

pub(super) fn host() -> Host {
    let interrupt = Interrupt::never().unwrap();
    let proxies = Proxies::from_environment(|_| None);
    let http = Client::new(proxies, interrupt.clone(), Arc::new(Nobody));
    Host { interrupt, runner: Runner::default(), users: Users::default(), http }
}

/// A part with properties that every resource has, in YAML.
fn part(name: &str, properties: &str) -> Resource {
    const KIND: &dyn AnyType = &TypeOf::<Part>::NEW;
    let source = Source { name: "test".to_owned(), text: format!("{{ {properties} }}") };
    let Node::Map(properties) = crate::document::parse(&source).unwrap().value else { unreachable!() };
    let declaration = Declaration::new(KIND, name.to_owned(), Span::default(), properties);
    let mut diagnostics = Diagnostics::default();
    let resource = declaration.resolve(Completeness::Whole, &mut diagnostics);
    resource.unwrap_or_else(|| panic!("{name}: {diagnostics:?}"))
}

pub(super) fn scope() -> Scope {
    let nothing = ccm_expr::Value::default();
    Scope::new(nothing.clone(), nothing, PathBuf::from("/"))
}

pub(super) fn settings(mode: RunMode) -> Settings {
    Settings {
        mode,
        diffs: Diffs::Wanted,
        detail: Detail::Whole,
        exclusion: Exclusion::WholeRun(Patience::Wait),
        read_ahead: ReadAhead::None,
        registrations: Registrations::Wanted,
        task: Task::Apply,
        ignores_failures: false,
    }
}

/// Applies the parts of several manifests, and returns how that ended and what was recorded.
fn apply_all(
    manifests: Vec<Vec<Resource>>,
    mode: RunMode,
    on_failure: OnFailure,
    host: &Host,
) -> (Finished, Vec<Event>) {
    apply_watched(manifests, settings(mode), on_failure, host, &mut Nobody)
}

fn manifest(resources: Vec<Resource>, working_directory: &Path) -> Manifest {
    let source = Source { name: String::new(), text: String::new() };
    Manifest::of(resources, source, working_directory.to_owned(), scope())
}

fn apply_watched(
    manifests: Vec<Vec<Resource>>,
    settings: Settings,
    on_failure: OnFailure,
    host: &Host,
    observer: &mut dyn Observer,
) -> (Finished, Vec<Event>) {
    let state = LocalState::at(StateDirectory::none());
    let mut engine = Engine::new(host, &state, settings, Session::begin());
    let manifest = |resources| Manifest { on_failure, ..manifest(resources, Path::new("/")) };
    let manifests: Vec<Manifest> = manifests.into_iter().map(manifest).collect();
    let selected = Selected::default();
    let all: Vec<_> = manifests.iter().map(|manifest| (manifest, &selected)).collect();
    let finished = engine.apply_all(&all, |_| None, observer);
    (finished, engine.session().events().to_vec())
}

/// Applies parts, and returns for each whether it changed and whether it failed.
fn apply(resources: impl IntoIterator<Item = Resource>, mode: RunMode) -> Vec<(bool, bool)> {
    let (_, events) = apply_all(vec![resources.into_iter().collect()], mode, OnFailure::Continue, &host());
    events.iter().map(|event| (event.changed, event.failed)).collect()
}

fn log() -> Vec<String> {
    shelf(|shelf| shelf.log.drain(..).filter(|line| !line.contains("expects")).collect())
}
