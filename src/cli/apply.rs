//! `ccm apply`

use std::{collections::BTreeMap, path::PathBuf};

use clap::{ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueHint, parser::ValueSource};
use serde_json::{Map, Value, json};

use super::{
    Exit, complete,
    confirm::{self, ConfirmFlags},
    dotenv::DotenvFlags,
    facts::SystemFacts,
    failure::{Failure, heed, warn},
    load_inputs::{self, InputFlags, StrictFlag},
    machine::StreamFlag,
    output::Output,
    plan,
    remote::Pushed,
    report::{Format, Unchanged},
    run::{RunFlags, to_text},
    switch,
};
use crate::{
    checks::CheckState,
    declare::{Elements, HIDDEN},
    engine::{Exclusion, Selected, Selection, Selector, Task},
    manifest::{self, LoadError, LoadInputs, Loaded, Location, Manifest},
    resource::{Resource, flattened},
    run::{Machine, Origin, manifest_digest},
    session::Session,
    state::{
        Recall,
        history::{ManifestDigest, RunKind},
    },
    template::escape,
    vocabulary::RunMode,
};

const EXAMPLES: &str = "\
Examples:
  # Show what would change, with the text of files
  ccm apply site.yaml --noop

  # Apply the resources with a tag, with other data
  ccm apply site.yaml --only tag:web --data port=8081

  # For programs: an event per line, and exit status 3 if something changed
  ccm apply site.yaml --json --detailed-exitcode";

/// Arguments of `ccm apply`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    // First, because the other fields take their values away.
    #[command(flatten)]
    pub(super) written: WrittenFlags,
    #[command(flatten)]
    pub(super) run: RunFlags,
    #[command(flatten)]
    pub(super) manifests: Manifests,
    #[command(flatten)]
    system: SystemFacts,
    /// Read every file, including files that cannot have changed
    #[arg(
        id = "verify",
        long = "verify",
        action = ArgAction::SetTrue,
        value_parser = switch(|reads_all| if reads_all { Recall::Ignored } else { Recall::Used }),
    )]
    recall: Recall,
    #[command(flatten)]
    pub(super) confirm: ConfirmFlags,
    /// Print the resolved manifest and apply nothing
    #[arg(long)]
    render: bool,
    /// Leave out the summary at the end
    #[arg(long, overrides_with = "report")]
    pub(super) no_report: bool,
    /// Only run the health checks: inspect and change nothing
    #[arg(long, conflicts_with_all = ["noop", "render"])]
    monitor_only: bool,
    /// Print the result of --monitor-only like a Nagios plugin: one line, exit status 0 to 3
    #[arg(
        long,
        value_name = "FORMAT",
        value_parser = ["nagios"],
        requires = "monitor_only",
        conflicts_with = "json",
    )]
    format: Option<String>,
    /// Apply a plan only if one of these SSH keys signed it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) allowed_signers: Option<PathBuf>,
    /// The plan that a controller sent.
    #[arg(skip)]
    pub(super) plan: Option<PathBuf>,
}

/// Manifests, and how they are loaded.
#[derive(Args)]
pub(super) struct Manifests {
    #[command(flatten)]
    pub(super) inputs: InputFlags,
    #[command(flatten)]
    pub(super) named: ManifestArguments,
    /// Apply only these and their requirements: type#name, a pattern with *, or tag:WORD; can be repeated
    #[arg(long, value_name = "REF", add = complete::resources())]
    only: Vec<String>,
    /// Skip these, named as for --only; can be repeated
    #[arg(long, value_name = "REF", add = complete::resources())]
    skip: Vec<String>,
    #[command(flatten)]
    pub(super) stream: StreamFlag,
    #[command(flatten)]
    strict: StrictFlag,
    #[command(flatten)]
    dotenv: DotenvFlags,
}

/// Manifests whose inputs were read.
pub(super) struct WithInputs {
    locations: Vec<Location>,
    selection: Selection,
    pub(super) inputs: LoadInputs,
}

/// The flags that the user wrote on the command line.
pub(super) struct WrittenFlags(Vec<String>);

impl WrittenFlags {
    /// Returns whether the user wrote the flag with this id.
    pub(super) fn contains(&self, id: &str) -> bool {
        self.0.iter().any(|written| written == id)
    }
}

impl Args for WrittenFlags {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

impl FromArgMatches for WrittenFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let is_written = |id: &&clap::Id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
        Ok(Self(matches.ids().filter(is_written).map(ToString::to_string).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The manifests that a command is about.
#[derive(Args)]
pub(super) struct ManifestArguments {
    /// YAML or JSON file, directory or bundle (.tar.gz, .zip, ...) with manifest.yaml, URL, or - for standard input
    #[arg(required = true, value_hint = ValueHint::AnyPath)]
    pub(super) manifest: Vec<String>,
    #[arg(skip)]
    pushed: Option<Vec<Location>>,
}

impl ManifestArguments {
    pub(super) fn locations(&self) -> Result<Vec<Location>, Failure> {
        self.pushed.clone().map_or_else(|| load_inputs::locations(&self.manifest), Ok)
    }
}

impl Arguments {
    /// Takes what a controller sent.
    pub(super) fn accept(&mut self, mut pushed: Pushed) {
        self.run.accept(std::mem::take(&mut pushed.recorded));
        self.plan = pushed.plan.take();
        self.manifests.accept(pushed);
    }
}

impl Manifests {
    /// Takes what a controller sent.
    pub(super) fn accept(&mut self, pushed: Pushed) {
        self.named.pushed = Some(pushed.manifests);
        self.inputs.accept(pushed.hiera, pushed.facts, pushed.opened);
        self.inputs.identities.accept(pushed.identity);
    }

    /// Returns the same manifests for printing: encrypted data is not decrypted.
    fn with_placeholders(self) -> Self {
        Self { inputs: self.inputs.with_placeholders(), ..self }
    }

    /// Returns the machine, and how its manifests are loaded.
    pub(super) fn open(mut self, recall: Recall, output: &Output) -> Result<(Machine, WithInputs), Failure> {
        let locations = self.named.locations()?;
        let selection =
            Selection { only: selectors(&self.only, "only")?, skip: selectors(&self.skip, "skip")? };
        self.inputs.nats.select(self.stream);
        let (machine, inputs) = self.inputs.open(recall, output)?;
        let mut inputs = self.dotenv.read(inputs)?;
        inputs.strictness = self.strict.strict;
        Ok((machine, WithInputs { locations, selection, inputs }))
    }
}

impl WithInputs {
    /// Returns the manifests with the selected resources of each.
    pub(super) fn load(self, machine: &Machine) -> Result<(Vec<Manifest>, Vec<Selected>), Failure> {
        let Self { locations, selection, inputs } = self;
        let load = |location: &Location| manifest::load(location, &inputs, &machine.host, &machine.state);
        let manifests = load_all(&locations, load)?;
        let selected = select(&selection, &manifests)?;
        Ok((manifests, selected))
    }
}

/// Returns a manifest and all manifests that it includes.
fn with_included(manifest: &Manifest) -> impl Iterator<Item = &Manifest> {
    let resources = flattened(&manifest.resources).into_iter();
    std::iter::once(manifest).chain(resources.filter_map(|resource| resource.included.as_deref()))
}

/// Returns all manifests, included ones as well, with the digests of their texts.
pub(super) fn digests(manifests: &[Manifest]) -> Vec<ManifestDigest> {
    manifests.iter().flat_map(with_included).map(manifest_digest).collect()
}

/// Returns the template files that all manifests read so far, with the digests of their texts.
pub(super) fn template_digests(manifests: &[&Manifest]) -> Vec<ManifestDigest> {
    let all = manifests.iter().flat_map(|manifest| with_included(manifest));
    let files: BTreeMap<_, _> = all.flat_map(|manifest| manifest.scope.template_files()).collect();
    let named =
        |(path, digest): (PathBuf, String)| ManifestDigest { path: path.display().to_string(), digest };
    files.into_iter().map(named).collect()
}

pub(super) fn run(arguments: Arguments, output: &mut Output) -> Result<Exit, Failure> {
    arguments.system.heed();
    if let Some(plan) = plan::recognize(&arguments)? {
        return plan::apply(plan, arguments, output);
    }
    if arguments.format.is_none() {
        return apply(arguments, output);
    }
    // A Nagios plugin must print a line and exit with UNKNOWN if nothing could be checked.
    apply(arguments, output).or_else(|failure| {
        failure.report();
        output.line("UNKNOWN - nothing was checked");
        Ok(Exit::Plugin(CheckState::Unknown))
    })
}

fn apply(arguments: Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let Arguments { run: mut flags, manifests, .. } = arguments;
    if arguments.monitor_only {
        flags.task = Task::Monitor;
    }
    let as_plugin = arguments.format.is_some();
    let manifests = if arguments.render { manifests.with_placeholders() } else { manifests };
    let state = manifests.inputs.state.clone();
    let (machine, inputs) = manifests.open(arguments.recall, output)?;
    let (manifests, selected) = inputs.load(&machine)?;
    let confirm = arguments.confirm.settings(&manifests)?.filter(|_| flags.mode == RunMode::Real);
    if flags.mode == RunMode::Real {
        flags.require_history(&manifests, confirm)?;
    }
    if arguments.render {
        manifests.iter().try_for_each(|manifest| render(manifest, flags.format, output))?;
        return Ok(Exit::Success);
    }
    let origin = Origin { confirm, ..flags.origin("ccm apply", RunKind::Apply)? };
    let how = (Exclusion::WholeRun(flags.patience), Session::begin());
    let to_apply: Vec<_> = manifests.iter().zip(&selected).collect();
    let unchanged = if as_plugin { Unchanged::Unsaid } else { Unchanged::Counted };
    let (finished, mut printer) = flags.apply(&machine, how, &origin, &to_apply, unchanged, output)?;
    if as_plugin {
        return Ok(Exit::Plugin(printer.plugin_line()));
    }
    if !arguments.no_report {
        printer.summary(&finished);
    }
    drop(printer);
    let exit = flags.exit(&finished);
    if confirm.is_some() && flags.format == Format::Text && exit != Exit::NotAttempted {
        confirm::announce(&finished, &state, &machine, output);
    }
    if exit != Exit::Failed {
        flags.say(manifests.iter().filter_map(|manifest| manifest.settings.post_message.as_ref()), output);
    }
    Ok(exit)
}

/// Loads all manifests, or says what is wrong with every one of them.
fn load_all(
    locations: &[Location],
    load: impl Fn(&Location) -> Result<Loaded<Manifest>, LoadError>,
) -> Result<Vec<Manifest>, Failure> {
    let (mut manifests, mut invalid) = (Vec::new(), Vec::new());
    for location in locations {
        match load(location) {
            Ok(loaded) if invalid.is_empty() => manifests.push(heed(loaded)),
            Ok(loaded) => invalid.extend(loaded.warnings),
            Err(LoadError::Invalid(reviews)) => invalid.extend(reviews),
            Err(error) => return Err(error.into()),
        }
    }
    for at in 1..manifests.len() {
        let earlier: Vec<&Manifest> = manifests[..at].iter().collect();
        invalid.extend(manifest::repeated(&earlier, &manifests[at]));
    }
    if invalid.is_empty() { Ok(manifests) } else { Err(LoadError::Invalid(invalid).into()) }
}

/// Returns which resources of each manifest to apply. A selector that names no resource is an error, unless an included
/// manifest is not loaded that might declare one.
fn select(selection: &Selection, manifests: &[Manifest]) -> Result<Vec<Selected>, Failure> {
    let resources: Vec<&Resource> =
        manifests.iter().flat_map(|manifest| flattened(&manifest.resources)).collect();
    let is_complete = resources.iter().all(|resource| resource.switched_off.is_none());
    for selector in selection.unknown(&resources) {
        let problem = format!("no resource is named by `{selector}`");
        if is_complete {
            return Err(Failure::new(problem));
        }
        warn(&format!("{problem}; an included manifest that `control` switches off might declare it"));
    }
    Ok(manifests.iter().map(|manifest| selection.select(&manifest.resources)).collect())
}

fn selectors(given: &[String], flag: &str) -> Result<Vec<Selector>, Failure> {
    let parsed = given.iter().map(|text| text.parse());
    parsed.map(|selector| selector.map_err(|problem| Failure::new(format!("--{flag}: {problem}")))).collect()
}

/// Prints the manifest as it would be applied, with the manifests that it includes.
fn render(manifest: &Manifest, format: Format, output: &mut Output) -> Result<(), Failure> {
    let elements = if hides(manifest) { Elements::Hidden } else { Elements::Shown };
    if elements == Elements::Hidden {
        warn("the data is left out: what is hidden may come from it");
    }
    output.text(&to_text(&rendered(manifest, elements).into(), format)?);
    Ok(())
}

/// Whether a property in the manifest, or in a manifest that it includes, must not be seen.
fn hides(manifest: &Manifest) -> bool {
    manifest.resources.iter().any(|resource| {
        let properties = resource.rendered(&manifest.scope, &manifest.source, Elements::Shown);
        properties.values().any(|value| value == HIDDEN) || resource.included.as_deref().is_some_and(hides)
    }) || flattened(&manifest.resources).into_iter().any(Resource::hides_anything)
}

fn rendered(manifest: &Manifest, elements: Elements) -> Map<String, Value> {
    let (mut resources, mut included) = (Vec::new(), Vec::new());
    for resource in &manifest.resources {
        let properties = resource.rendered(&manifest.scope, &manifest.source, elements);
        let named = Map::from_iter([(ccm_expr::escape(&resource.name), Value::Object(properties))]);
        resources.push(json!({ resource.kind.name(): [named] }));
        included.extend(
            resource.included.as_deref().map(
                |inner| json!({ "resource": resource.to_string(), "manifest": rendered(inner, elements) }),
            ),
        );
    }
    let (mut settings, mut data) = (json!(manifest.settings), json!(manifest.scope.data()));
    [&mut settings, &mut data].into_iter().for_each(escape);
    settings["resources"] = resources.into();
    let mut document = Map::new();
    if elements == Elements::Shown && data != json!({}) {
        document.insert("data".to_owned(), data);
    }
    document.insert("ccm".to_owned(), settings);
    // Manifests ignore keys that begin with `x-`, so the document is still one.
    if !included.is_empty() {
        document.insert("x-included".to_owned(), included.into());
    }
    document
}
