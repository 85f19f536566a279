//! The engine with a type that keeps its things in memory.

mod look_ahead;
mod selection;

use std::{
    cell::RefCell,
    collections::{BTreeSet, HashSet},
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    RunMode::{Noop, Real},
    *,
};
use crate::{
    declare::{Completeness, Declaration},
    document::{Diagnostics, Source, Span, Value as Node},
    host::{
        http::{Client, ProgressListener, Proxies},
        interrupt::Interrupt,
        process::Runner,
        users::Users,
    },
    nats::{ContextChoice, Nats},
    resource::{
        self, AnyMember, AnyState, AnyType, Before, Candidate, Change, Context, Effects, Example, Grouping,
        Provider, ResourceType, Survey, Trigger, TypeOf, Watches,
    },
    state::{LocalState, Patience, PendingRefresh, StateDirectory},
    template::Scope,
    types,
    vocabulary::Url,
};

thread_local!(static SHELF: RefCell<Shelf> = RefCell::default());

/// What parts there are, and what was done to them.
#[derive(Default)]
struct Shelf {
    parts: BTreeSet<String>,
    log: Vec<String>,
    /// A group in which this is takes what comes before it, and fails.
    jams_at: Option<String>,
    /// This does not stay where it is put.
    slips: Option<String>,
    /// What becomes of the last of a group is not told.
    is_forgetful: bool,
}

impl Shelf {
    fn put(&mut self, name: &str) {
        if self.slips.as_deref() != Some(name) {
            self.parts.insert(name.to_owned());
        }
    }
}

fn shelf<T>(look: impl FnOnce(&mut Shelf) -> T) -> T {
    SHELF.with_borrow_mut(look)
}

/// Parts on a shelf.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Wanted {
    /// The part.
    name: String,
}

impl resource::Properties for Wanted {
    fn ensure(&self) -> String {
        "present".to_owned()
    }

    fn watches(&self) -> Watches {
        Watches::default()
    }

    fn survey(&self) -> Option<&dyn Survey> {
        Some(self)
    }

    fn grouping(&self) -> Option<&dyn Grouping> {
        Some(self)
    }
}

impl Survey for Wanted {
    fn expect(&self, wanted: &[&dyn resource::Properties], on: &Provider) {
        let names = wanted.iter().filter_map(|wanted| wanted.get()).map(|want: &Self| want.name.as_str());
        let names = names.collect::<Vec<_>>().join(" ");
        shelf(|shelf| shelf.log.push(format!("{} expects {names}", on.of::<Part>().name())));
    }
}

impl Grouping for Wanted {
    fn most(&self) -> usize {
        3
    }

    fn enact_group(&self, group: &[AnyMember], _: &Provider, _: &Context) -> Result<Vec<AnyState>, Error> {
        let wants: Vec<&Self> = group.iter().filter_map(|member| member.wanted.get()).collect();
        shelf(|shelf| {
            let names: Vec<&str> = wants.iter().map(|want| want.name.as_str()).collect();
            shelf.log.push(format!("put together {}", names.join(" ")));
            for name in names {
                if shelf.jams_at.as_deref() == Some(name) {
                    return Err(Error::new("it does not fit"));
                }
                shelf.put(name);
            }
            let told = group.len() - usize::from(shelf.is_forgetful);
            Ok(wants.iter().take(told).map(|want| AnyState::of(Part::found_by(shelf, want))).collect())
        })
    }
}

#[derive(Debug, Serialize, JsonSchema)]
struct Found {
    is_there: bool,
}

impl resource::State for Found {
    fn ensure(&self) -> String {
        if self.is_there { "present" } else { "absent" }.to_owned()
    }
}

struct Put;

impl fmt::Display for Put {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("put")
    }
}

/// Somebody who puts parts on the shelf: there are several.
trait Hand: Send + Sync {
    fn name(&self) -> &'static str;
}

struct Left;
struct Right;

impl Hand for Left {
    fn name(&self) -> &'static str {
        "left"
    }
}

impl Hand for Right {
    fn name(&self) -> &'static str {
        "right"
    }
}

struct Part;

impl Part {
    fn found(want: &Wanted) -> Found {
        Found { is_there: shelf(|shelf| shelf.parts.contains(&want.name)) }
    }
}

impl ResourceType for Part {
    const NAME: &'static str = "part";
    const EXAMPLES: &'static [Example] = &[];
    const PROVIDERS: &'static [Candidate<Self>] = &[
        Candidate { name: "left", summary: "the left hand.", make: |_| Ok(Box::new(Left)) },
        Candidate { name: "right", summary: "the right hand.", make: |_| Ok(Box::new(Right)) },
    ];

    type Properties = Wanted;
    type State = Found;
    type Action = Put;
    type Provider = dyn Hand;

    fn inspect(want: &Wanted, _: &dyn Hand, _: &Context) -> Result<Found, Error> {
        Ok(Self::found(want))
    }

    fn compare(want: &Wanted, have: &Found, _: Trigger) -> Result<Option<Change<Put>>, Error> {
        let slips = shelf(|shelf| shelf.slips.as_ref() == Some(&want.name));
        let differences = slips.then(|| Difference::between("place", "the floor", "the shelf"));
        let change = Change { action: Put, differences: differences.into_iter().collect(), refreshes: false };
        Ok((!have.is_there).then_some(change))
    }

    fn effects(_: &Wanted, _: &Found, _: &Put, _: &Context) -> Effects {
        Effects::default()
    }

    fn before(_: &Wanted, _: &Found, _: &Put) -> Before {
        Before::Paths
    }

    fn enact(want: &Wanted, _: &Found, _: Put, _: &dyn Hand, _: &Context) -> Result<Found, Error> {
        shelf(|shelf| {
            shelf.log.push(format!("put {}", want.name));
            if shelf.jams_at.as_ref() == Some(&want.name) {
                return Err(Error::new("it does not fit"));
            }
            shelf.put(&want.name);
            Ok(Self::found_by(shelf, want))
        })
    }
}

impl Part {
    fn found_by(shelf: &Shelf, want: &Wanted) -> Found {
        Found { is_there: shelf.parts.contains(&want.name) }
    }
}

struct Nobody;

impl ProgressListener for Nobody {
    fn received(&self, _: &Url, _: u64, _: Option<u64>) {}
    fn ended(&self) {}
}

impl Observer for Nobody {
    fn finished(&mut self, _: &Report) {}
}

/// Counts what each resource registers.
#[derive(Default)]
struct Registrar(Vec<(String, usize)>);

impl Observer for Registrar {
    fn finished(&mut self, report: &Report) {
        self.0.push((report.event.name.clone(), report.registrations.len()));
    }
}

pub(super) fn host() -> Host {
    let interrupt = Interrupt::never().unwrap();
    let proxies = Proxies::from_environment(|_| None);
    let http = Client::new(proxies, interrupt.clone(), Arc::new(Nobody));
    let nats = Arc::new(Nats::new(ContextChoice::nowhere(), String::new()));
    Host { interrupt, runner: Runner::default(), users: Users::default(), http, nats }
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

/// Applies a part, and returns what is wrong with it.
fn errors(resource: Resource) -> Vec<String> {
    let (_, mut events) = apply_all(vec![vec![resource]], RunMode::Real, OnFailure::Continue, &host());
    events.remove(0).error
}

fn log() -> Vec<String> {
    shelf(|shelf| shelf.log.drain(..).filter(|line| !line.contains("expects")).collect())
}

#[test]
fn consecutive_resources_are_enacted_together_and_have_their_own_events() {
    let parts = || ["a", "b", "c", "d"].map(|name| part(name, ""));
    shelf(|shelf| shelf.parts.insert("b".to_owned()));
    assert_eq!(apply(parts(), RunMode::Noop), [(true, false), (false, false), (true, false), (true, false)]);
    assert!(log().is_empty(), "a dry run does nothing");
    assert_eq!(apply(parts(), RunMode::Real), [(true, false), (false, false), (true, false), (true, false)]);
    assert_eq!(log(), ["put together a c d"]);
    assert_eq!(apply(parts(), RunMode::Real), [(false, false); 4]);
}

#[test]
fn those_that_may_not_come_or_are_served_by_another_are_not_taken_along() {
    for (properties, expected) in [
        ("", &["put together a b c"][..]),
        ("control: { if: true }", &["put a", "put together b c"]),
        ("require: [ part#a ]", &["put a", "put together b c"]),
        ("timeout: 1m", &["put a", "put b", "put c"]),
        ("provider: right", &["put a", "put b", "put c"]),
    ] {
        shelf(|shelf| *shelf = Shelf::default());
        apply([part("a", ""), part("b", properties), part("c", "")], RunMode::Real);
        assert_eq!(log(), expected, "{properties}");
    }
}

#[test]
fn a_group_is_no_larger_than_its_type_allows() {
    apply(["a", "b", "c", "d", "e"].map(|name| part(name, "")), RunMode::Real);
    assert_eq!(log(), ["put together a b c", "put together d e"]);
}

#[test]
fn what_is_checked_is_enacted_alone_and_what_is_of_another_type_ends_a_group() {
    let checked = part("b", "health_checks: [ { file: / } ]");
    apply([part("a", ""), checked, part("c", ""), part("d", "")], RunMode::Real);
    assert_eq!(log(), ["put a", "put b", "put together c d"]);
    let (properties, name) = (Vec::new(), "/bin/true".to_owned());
    let other = Declaration::new(types::find("exec").unwrap(), name, Span::default(), properties);
    let other = other.resolve(Completeness::Whole, &mut Diagnostics::default()).unwrap();
    shelf(|shelf| *shelf = Shelf::default());
    apply([part("a", ""), part("b", ""), other, part("c", "")], RunMode::Real);
    assert_eq!(log(), ["put together a b", "put c"]);
}

#[test]
fn a_group_that_does_not_tell_of_each_counts_as_failed() {
    shelf(|shelf| shelf.is_forgetful = true);
    let parts = ["a", "b", "c"].map(|name| part(name, ""));
    assert_eq!(apply(parts, RunMode::Real), [(true, false); 3]);
    assert_eq!(log(), ["put together a b c", "put a"]);
}

#[test]
fn after_a_group_that_failed_each_is_enacted_alone() {
    shelf(|shelf| shelf.jams_at = Some("c".to_owned()));
    let parts = ["a", "b", "c"].map(|name| part(name, ""));
    // The group came as far as the second, which therefore has changed although nothing is left to do for it.
    assert_eq!(apply(parts, RunMode::Real), [(true, false), (true, false), (false, true)]);
    assert_eq!(log(), ["put together a b c", "put a", "put c"]);
}

#[test]
fn a_resource_that_is_still_different_after_its_change_fails() {
    shelf(|shelf| shelf.slips = Some("b".to_owned()));
    assert_eq!(apply([part("b", "")], RunMode::Real), [(false, true)]);
    assert_eq!(log(), ["put b"]);
    // In a group it fails alone, after another attempt that is its own. What the group did to it counts as a change.
    let parts = ["a", "b", "c"].map(|name| part(name, ""));
    assert_eq!(apply(parts, RunMode::Real), [(true, false), (true, true), (true, false)]);
    assert_eq!(log(), ["put together a b c", "put b"]);
}

#[test]
fn what_a_sensitive_resource_still_is_after_its_change_is_not_told() {
    shelf(|shelf| shelf.slips = Some("b".to_owned()));
    for (properties, expected) in
        [("", "place is the floor, wanted the shelf"), ("sensitive: true", "place differs")]
    {
        let help = "something else may be changing it at the same time";
        let expected = format!("failed to reach desired state: {expected}; {help}");
        assert_eq!(errors(part("b", properties)), [expected], "{properties}");
    }
}

#[test]
fn what_is_wrong_with_the_control_of_a_sensitive_resource_is_not_told() {
    let undefined = "control: { if: \"1 + 'hunter2' > 1\" }";
    let told = errors(part("x", undefined)).concat();
    assert!(told.starts_with("control.if: "), "{told}");
    let covered = errors(part("x", &format!("sensitive: true, {undefined}")));
    assert_eq!(covered, ["its control cannot be worked out"]);
    // A requirement is not worked out from anything.
    let unseen = errors(part("x", "sensitive: true, require: [ part#none ]")).concat();
    assert!(unseen.starts_with("there is no session in which [secret] could have been seen; "), "{unseen}");
}

#[test]
fn a_failure_ends_its_manifest_and_what_none_of_them_came_to_is_counted() {
    shelf(|shelf| shelf.jams_at = Some("jam".to_owned()));
    let parts = |names: &[&str]| names.iter().map(|name| part(name, "")).collect::<Vec<_>>();
    let manifests = vec![parts(&["jam", "a", "b"]), parts(&["c"]), parts(&["d", "jam", "e"]), parts(&["f"])];
    let (finished, events) = apply_all(manifests, RunMode::Real, OnFailure::Stop, &host());
    let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["jam", "c", "d", "jam", "f"]);
    let stopped = finished.stopped.unwrap();
    assert!(matches!(stopped.reason, Reason::Failure));
    assert_eq!(stopped.remaining, 3);
}

#[test]
fn a_failure_of_the_last_one_ends_nothing_early() {
    shelf(|shelf| shelf.jams_at = Some("jam".to_owned()));
    let (finished, events) =
        apply_all(vec![vec![part("a", ""), part("jam", "")]], RunMode::Real, OnFailure::Stop, &host());
    assert_eq!(events.iter().map(|event| event.failed).collect::<Vec<_>>(), [false, true]);
    assert!(finished.stopped.is_none());
}

const REGISTERS: &str =
    "register_when_stable: [{ cluster: prod, service: web, protocol: http, address: 10.0.0.1 }]";

#[test]
fn only_what_is_as_it_should_be_registers_and_only_where_somebody_publishes_it() {
    let registered = |settings| {
        shelf(|shelf| *shelf = Shelf { jams_at: Some("jam".to_owned()), ..Shelf::default() });
        let parts = vec![
            part("well", REGISTERS),
            part("silent", ""),
            part("jam", REGISTERS),
            part("excluded", &format!("control: {{ if: false }}, {REGISTERS}")),
            part("unmet", &format!("require: [ part#jam ], {REGISTERS}")),
        ];
        let mut registrar = Registrar::default();
        apply_watched(vec![parts], settings, OnFailure::Continue, &host(), &mut registrar);
        let who = registrar.0.into_iter().filter(|(_, count)| *count > 0).map(|(name, _)| name);
        who.collect::<Vec<_>>()
    };
    assert_eq!(registered(settings(RunMode::Real)), ["well"]);
    assert_eq!(registered(settings(RunMode::Noop)), [""; 0]);
    let unwanted = Settings { registrations: Registrations::Unwanted, ..settings(RunMode::Real) };
    assert_eq!(registered(unwanted), [""; 0]);
}

#[test]
fn a_signal_ends_all_manifests_also_those_that_are_empty() {
    let _turn = crate::signals::turn();
    let host = Host { interrupt: Interrupt::install().unwrap(), ..host() };
    crate::signals::send(Signal::Terminate.number());
    host.interrupt.pause(Duration::MAX);
    let manifests = vec![vec![part("a", "")], vec![part("b", ""), part("c", "")], Vec::new()];
    let (finished, events) = apply_all(manifests, RunMode::Real, OnFailure::Stop, &host);
    assert!(events.is_empty());
    let stopped = finished.stopped.unwrap();
    assert!(matches!(stopped.reason, Reason::Signal(Signal::Terminate)));
    assert_eq!(stopped.remaining, 3);
}

#[test]
fn a_pause_ends_with_the_time_of_its_attempt() {
    let (host, state, prediction) =
        (host(), LocalState::at(StateDirectory::none()), RefCell::<Prediction>::default());
    let mut silent = |_: &str| {};
    let cx = Context::new(&host, &state, &prediction, Path::new("/"), Some(Duration::ZERO), &mut silent);
    let kind = cx.pause(Duration::MAX).unwrap_err().kind;
    assert!(matches!(kind, ErrorKind::TimedOut { .. }), "{kind:?}");
}

#[test]
fn a_provider_that_there_is_not_is_told_at_its_property() {
    let kind: &dyn AnyType = &TypeOf::<Part>::NEW;
    let error = kind.provider(Some("tail"), &host()).err().unwrap();
    assert_eq!(
        (error.property, error.help.as_deref()),
        (Some("provider"), Some("known providers of part: left, right"))
    );
}

#[test]
fn whoever_subscribes_to_an_alias_is_owed_a_refresh_before_the_change() {
    let folder = std::env::temp_dir().canonicalize().unwrap();
    let folder = folder.join(format!("ccm-owed-to-alias-{}", std::process::id()));
    let state = StateDirectory::at(folder.clone());
    let (changed, mut subscriber) = (part("a", "alias: first"), part("b", ""));
    let because: Reference = "part#first".parse().unwrap();
    Arc::make_mut(&mut subscriber.common).subscribe = vec![because.clone()];
    let store = Some(state.refresh_store().unwrap());
    let mut refreshes = PendingRefreshes::of(&[&changed, &subscriber], store, &Session::begin());
    assert!(refreshes.record(&changed, &[], &[]).is_ok());
    let owed = PendingRefresh { to: subscriber.reference(), because };
    assert!(state.refresh_store().unwrap().owed().holds(&owed));
    let _ = std::fs::remove_dir_all(folder);
}

#[test]
fn a_provider_is_told_only_of_the_resources_that_it_serves() {
    let parts = [part("a", ""), part("b", "provider: right"), part("c", "provider: left"), part("d", "")];
    apply(parts, RunMode::Noop);
    let told = shelf(|shelf| std::mem::take(&mut shelf.log));
    assert_eq!(told, ["left expects a d", "right expects b", "left expects a c d"]);
}

/// What the gate says of a resource, in a word.
fn gate(resource: &Resource, session: &Session, mode: RunMode) -> String {
    let refreshes = PendingRefreshes::of(&[resource], None, session);
    let list = |references: Vec<&Reference>| {
        references.iter().map(|reference| reference.name.clone()).collect::<Vec<_>>().join(" ")
    };
    match gate::check(resource, session, &refreshes, &HashSet::new(), mode, &scope()) {
        Gate::Open(causes) => format!("open {}", list(causes)).trim_end().to_owned(),
        Gate::Excluded(reason) => reason.to_owned(),
        Gate::Unmet(unmet) => format!("unmet {}", list(unmet)),
        Gate::Faulty(Error { kind: ErrorKind::NotSeen { sight, .. }, .. }) => format!("not seen: {sight:?}"),
        Gate::Faulty(Error { kind: ErrorKind::Expression, .. }) => "expression".to_owned(),
        Gate::Faulty(error) => panic!("{error}"),
    }
}

#[test]
fn the_gate_asks_for_control_then_for_requirements_then_for_changes() {
    let mut session = Session::begin();
    for (name, edit) in [
        ("stable", (|_| {}) as fn(&mut Event)),
        ("changed", |event| event.changed = true),
        ("failed", |event| event.failed = true),
        ("half", |event| (event.changed, event.failed) = (true, true)),
        ("excluded", |event| event.skipped = true),
        ("unmet", |event| event.unmet_requirements = vec!["part#failed".to_owned()]),
        ("foreseen", |event| (event.changed, event.noop) = (true, true)),
    ] {
        let mut event = session.event("part", name);
        edit(&mut event);
        session.record(&event).unwrap();
    }
    for (properties, mode, expected) in [
        ("", Real, "open"),
        ("control: { if: false }, require: [ part#none ]", Real, "control.if is false"),
        ("control: { unless: true }", Real, "control.unless is true"),
        ("control: { if: nonsense }", Real, "expression"),
        ("control: { if: 1 + 1 }", Real, "expression"),
        ("require: [ part#stable, part#changed, part#excluded ]", Real, "open"),
        ("require: [ part#failed, part#stable, part#unmet, part#half ]", Real, "unmet failed unmet half"),
        ("require: [ part#none ]", Real, "not seen: Never"),
        ("require: [ part#foreseen ]", Real, "not seen: OnlyPredicted"),
        ("require: [ part#foreseen ]", Noop, "open"),
    ] {
        assert_eq!(gate(&part("x", properties), &session, mode), expected, "{properties} in {mode:?}");
    }
    for (subscribe, mode, expected) in [
        ("part#stable", Real, "open"),
        ("part#changed", Real, "open changed"),
        ("part#failed", Real, "open"),
        ("part#half", Real, "open"),
        ("part#excluded", Real, "open"),
        ("part#foreseen", Noop, "open foreseen"),
    ] {
        let mut resource = part("x", "");
        Arc::make_mut(&mut resource.common).subscribe = vec![subscribe.parse().unwrap()];
        assert_eq!(gate(&resource, &session, mode), expected, "{subscribe} in {mode:?}");
    }
}
