//! Records changes in the history: before a change the state that it replaces, after it that it was made.

use std::{collections::HashMap, path::Path};

use serde_json::{Map, Value};

use super::{
    converge::Attempts,
    pending_refreshes::{PendingRefreshes, Recorded},
    recording_ahead::Ahead,
};
use crate::{
    host::files::{self, CopyInterrupted, Intent},
    redaction::Redactor,
    resource::{
        AnyProperties, AnyState, Before, Context, Difference, Effects, Error, ErrorKind, Keep, PathEffect,
        PlannedChange, Provider, Resource,
    },
    state::{
        StateError,
        history::{
            Camera, Change, Depth, Done, Keeping, Kept, LARGEST, PathBefore, PropertyChange, Recorder,
            Secrecy, Snapshot, SnapshotKind, Undo, from_text, to_text,
        },
    },
    vocabulary::{Reference, Secret},
};

/// The history of a run, while the run lasts.
pub(crate) struct Recording {
    recorder: Recorder,
    pub(super) policy: KeepPolicy,
    /// Changes that a transaction could have to undo.
    pub(super) remembered: Vec<(Change, Option<Done>)>,
    /// Arms an undo before the first change.
    arm: Option<Box<Arm>>,
    /// Changes that were recorded before ccm reaches their resources.
    pub(super) ahead: HashMap<Reference, Ahead>,
}

/// Arms the undo of a run, unless it is armed.
type Arm = dyn Fn() -> Result<(), String>;

/// Which contents the history keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum KeepPolicy {
    /// Up to 64 MiB, unless a resource sets `keep`. If the history cannot be written, the change is made anyway.
    #[default]
    Usual,
    /// Of any size.
    Large,
    /// Of any size. A change whose earlier state cannot be kept fails instead of being made.
    Required,
}

/// A change that was recorded and is about to be made.
#[derive(Default)]
pub(super) struct Recordable {
    change: Option<(Change, Vec<Depth>)>,
    /// Values of the state that undo requires to be unchanged; all if empty.
    relies_on: &'static [&'static str],
}

impl Recordable {
    /// Returns the change and leaves none.
    pub(super) fn take(&mut self) -> Self {
        std::mem::take(self)
    }
}

impl Recording {
    pub(crate) fn new(recorder: Recorder, policy: KeepPolicy) -> Self {
        Self { recorder, policy, remembered: Vec::new(), arm: None, ahead: HashMap::new() }
    }

    /// Makes only changes that can be undone, and arms the undo before the first of them.
    pub(crate) fn require_undo(&mut self, arm: Box<Arm>) {
        self.policy = KeepPolicy::Required;
        self.arm = Some(arm);
    }

    pub(crate) fn recorder(&mut self) -> &mut Recorder {
        &mut self.recorder
    }

    pub(crate) fn run(&self) -> &str {
        self.recorder.run()
    }

    /// Writes a change together with those of the next resources.
    fn write(&mut self, change: &mut Change, next: Vec<Ahead>) -> Result<(), StateError> {
        let own = std::iter::once(change.clone());
        let mut all: Vec<Change> = own.chain(next.iter().map(|ahead| ahead.change.clone())).collect();
        self.recorder.record(&mut all)?;
        let mut all = all.into_iter();
        if let Some(own) = all.next() {
            *change = own;
        }
        for (mut ahead, change) in next.into_iter().zip(all) {
            if let Ok(reference) = change.resource.parse() {
                ahead.change = change;
                self.ahead.insert(reference, ahead);
            }
        }
        Ok(())
    }
}

impl Attempts<'_> {
    /// Records a change before it is made. Returns a warning if it cannot be undone.
    pub(super) fn record_change(
        &self,
        subject: &Subject,
        recorded: &Recorded,
        refreshes: &PendingRefreshes,
        cx: &Context,
    ) -> Result<Recordable, Error> {
        let Some(recording) = self.recording else { return Ok(Recordable::default()) };
        let recording = &mut *recording.borrow_mut();
        let (policy, relies_on) = (recording.policy, relies_on(&subject.before()));
        let early = Self::take_recorded(recording, subject);
        let is_recorded = early.is_some();
        match early.map_or_else(|| self.describe(recording, subject, recorded, cx), Ok) {
            Ok((mut change, depths)) => {
                if policy == KeepPolicy::Required
                    && let Some(reason) = unrestorable(&change)
                {
                    return Err(Error::new(format!(
                        "the change is not made because it could not be undone: {reason}"
                    )));
                }
                if let Some(arm) = &recording.arm {
                    arm().map_err(|reason| ErrorKind::Unguarded { reason })?;
                }
                let next = if is_recorded { Vec::new() } else { self.describe_next(recording, refreshes) };
                let written = if is_recorded { Ok(()) } else { recording.write(&mut change, next) };
                if let Err(error) = written {
                    return unrecorded(policy, &error, cx);
                }
                if policy == KeepPolicy::Required {
                    recording.remembered.push((change.clone(), None));
                }
                Ok(Recordable { change: Some((change, depths)), relies_on })
            }
            Err(error) => unrecorded(policy, &error, cx),
        }
    }

    /// Records that a change was made, or failed.
    pub(super) fn complete_change(
        &self,
        recordable: Recordable,
        resource: &Resource,
        left: Option<&AnyState>,
        failed: bool,
        cx: &Context,
    ) {
        let (Some(recording), Some((change, depths))) = (self.recording, recordable.change) else { return };
        let recording = &mut *recording.borrow_mut();
        let recorder = &mut recording.recorder;
        let is_sensitive = change.sensitive;
        let mut state = Map::new();
        if let Some(left) = left.filter(|_| !is_sensitive) {
            state = left.to_json(resource.kind.name(), &resource.name);
            let redactor = cx.redactor.clone();
            state.iter_mut().for_each(|(_, value)| redactor.mask_json(value));
            if let Some(Value::Object(metadata)) =
                state.get_mut("metadata").filter(|_| !recordable.relies_on.is_empty())
            {
                metadata.retain(|key, _| recordable.relies_on.contains(&key.as_str()));
            }
        }
        let paths = recorder.objects(secrecy(is_sensitive)).map(|objects| {
            let tick = || tick(cx);
            let camera = Camera { objects, keeping: Keeping::Nothing, tick: &tick };
            let after = |(recorded, depth): (&PathBefore, &Depth)| {
                let path = from_text(&recorded.path).unwrap_or_default();
                // The state was compared with the desired state, and so was the digest.
                let known = recorded.intended.as_ref().and_then(|intended| intended.digest.clone());
                let known = known.filter(|_| !failed && !is_sensitive && *depth == Depth::Content);
                let depth = if known.is_some() { Depth::Attributes } else { *depth };
                let taken = camera.take(&path, depth).unwrap_or_else(|_| Snapshot::unknown());
                let digest =
                    known.filter(|_| taken.kind == SnapshotKind::File).or_else(|| taken.digest.clone());
                Snapshot { digest, ..taken }
            };
            change.paths.iter().zip(&depths).map(after).collect()
        });
        let done = paths.and_then(|paths| {
            let done = Done { number: change.number, paths, state, failed, ..Done::default() };
            let known =
                recording.remembered.iter_mut().rev().find(|(known, _)| known.number == change.number);
            if let Some(known) = known {
                known.1 = Some(done.clone());
            }
            recorder.complete(done)
        });
        if let Err(error) = done {
            cx.warn(format!("{error}; the history does not record that this change was made"));
        }
    }

    pub(super) fn describe(
        &self,
        recording: &mut Recording,
        subject: &Subject,
        recorded: &Recorded,
        cx: &Context,
    ) -> Result<(Change, Vec<Depth>), StateError> {
        let Subject { resource, wanted, provider, pending, effects, causes, .. } = subject;
        let is_sensitive = resource.is_sensitive();
        let diff = match subject.diff {
            Some(diff) => Some(diff.to_owned()),
            None if is_sensitive => None,
            None => wanted.preview(subject.have, pending, provider, cx).ok().flatten(),
        };
        let redactor = &cx.redactor;
        let masked = |text: &str| redactor.redact(text).into_owned();
        let before = subject.before();
        let (is_secret, has_paths) = match &before {
            Before::Resource { is_secret, has_paths, .. } => (*is_secret, *has_paths),
            Before::Paths | Before::PathsAndResource { .. } => (false, true),
            Before::Command(_) => (false, false),
        };
        let has_secrets = is_sensitive || is_secret || !wanted.secrets().is_empty();
        let mut seal = |map: Map<String, Value>| -> Result<Map<String, Value>, StateError> {
            if has_secrets { self.state.directory.seal(&map) } else { Ok(map) }
        };
        let undo = match before {
            Before::Paths => Undo::Paths,
            Before::PathsAndResource { properties, .. } => Undo::PathsAndResource(seal(properties)?),
            Before::Resource { properties, .. } => Undo::Resource(seal(properties)?),
            Before::Command(properties) => Undo::Command(properties.map(&mut seal).transpose()?),
        };
        let properties =
            if causes.is_empty() { Map::new() } else { seal(Secret::revealed(|| wanted.to_json()))? };
        let validate = wanted.to_json().remove_entry("validate").filter(|(_, value)| !value.is_null());
        let validate = validate.map(|entry| seal(Map::from_iter([entry]))).transpose()?.unwrap_or_default();
        let mut change = Change {
            resource: resource.to_string(),
            position: resource.position(&self.place.manifest.source),
            provider: provider.name.to_owned(),
            action: masked(&pending.summary),
            differences: pending
                .differences
                .iter()
                .map(|difference| property_change(difference, is_sensitive, redactor))
                .collect(),
            diff: diff.filter(|_| !is_sensitive).map(|diff| masked(&diff)),
            undo,
            refreshes: recorded.subscribers(),
            causes: causes.iter().map(ToString::to_string).collect(),
            properties,
            validate,
            directory: to_text(self.place.manifest.working_directory.as_os_str()),
            within: self.place.within.iter().map(ToString::to_string).collect(),
            sensitive: is_sensitive,
            ..Change::default()
        };
        let mut depths = Vec::new();
        if has_paths {
            let keeping = match (resource.common.keep, recording.policy) {
                (Some(Keep::Never), KeepPolicy::Usual | KeepPolicy::Large) => Keeping::Never,
                (Some(Keep::Always), _) | (_, KeepPolicy::Large | KeepPolicy::Required) => {
                    Keeping::UpTo(u64::MAX)
                }
                _ => Keeping::UpTo(LARGEST),
            };
            // A run that is killed leaves temporary files there.
            for directory in self.state.directory.history_directories() {
                self.state.write_journal.note(&directory, cx.interrupt());
            }
            let objects = recording.recorder.objects(secrecy(is_sensitive))?;
            let tick = || tick(cx);
            let camera = Camera { objects, keeping, tick: &tick };
            for effect in &effects.paths {
                add_path(&camera, effect, &mut change.paths, &mut depths);
            }
            // A short secret can be guessed from a digest without a key.
            let intended = change.paths.iter_mut().filter_map(|path| path.intended.as_mut());
            for intended in intended.filter(|_| is_sensitive) {
                let target = intended.target.take();
                intended.digest = target.map(|target| camera.objects.digest_bytes(target.as_bytes()));
            }
        }
        Ok((change, depths))
    }
}

/// A resource that is about to be changed, and how.
pub(super) struct Subject<'s> {
    pub(super) resource: &'s Resource,
    pub(super) wanted: &'s dyn AnyProperties,
    pub(super) provider: &'s Provider,
    pub(super) have: &'s AnyState,
    pub(super) pending: &'s PlannedChange,
    pub(super) effects: &'s Effects,
    pub(super) causes: &'s [&'s Reference],
    pub(super) diff: Option<&'s str>,
}

impl Subject<'_> {
    fn before(&self) -> Before {
        self.wanted.before(self.have, self.pending)
    }
}

fn relies_on(before: &Before) -> &'static [&'static str] {
    match before {
        Before::Resource { relies_on, .. } | Before::PathsAndResource { relies_on, .. } => relies_on,
        _ => &[],
    }
}

fn secrecy(is_sensitive: bool) -> Secrecy {
    if is_sensitive { Secrecy::Secret } else { Secrecy::Public }
}

fn tick(cx: &Context) -> Result<(), CopyInterrupted> {
    cx.tick().map_err(|_| CopyInterrupted)
}

/// A change goes on without its record, unless the record is required.
fn unrecorded(policy: KeepPolicy, error: &StateError, cx: &Context) -> Result<Recordable, Error> {
    if policy == KeepPolicy::Required {
        return Err(Error::new(format!("the change is not made because it could not be undone: {error}")));
    }
    cx.warn(format!("this change cannot be undone: {error}"));
    Ok(Recordable::default())
}

fn property_change(difference: &Difference, is_sensitive: bool, redactor: &Redactor) -> PropertyChange {
    let values = difference.values.as_ref().filter(|_| !is_sensitive);
    let masked = |text: &String| redactor.redact(text).into_owned();
    PropertyChange {
        property: difference.property.to_owned(),
        have: values.map(|values| masked(&values.have)),
        want: values.map(|values| masked(&values.want)),
    }
}

/// Returns why a change could not be undone, if it could not.
fn unrestorable(change: &Change) -> Option<String> {
    change.paths.iter().find_map(|path| match &path.before.kept {
        Kept::Not(reason) => Some(format!("{}: {reason}", path.path)),
        _ if path.before.kind == SnapshotKind::Special => {
            Some(format!("{}: only regular files, directories and links are kept", path.path))
        }
        _ => None,
    })
}

/// Adds a path with its state, after the parent directories that do not exist.
fn add_path(camera: &Camera, effect: &PathEffect, paths: &mut Vec<PathBefore>, depths: &mut Vec<Depth>) {
    let path = effect.path();
    let (depth, mut intended) = expectation(effect);
    let before = camera
        .take(path, depth)
        .unwrap_or_else(|error| Snapshot { kept: Kept::Not(error.to_string()), ..Snapshot::unknown() });
    if let PathEffect::Operation { intent: Intent::SetAttributes(attributes), .. } = effect {
        intended = Some(Snapshot::intended(before.kind, Some(*attributes), None));
    }
    if !before.existed() {
        let missing: Vec<&Path> = path
            .ancestors()
            .skip(1)
            .take_while(|parent| matches!(files::inspect(parent), Ok(None)))
            .collect();
        for parent in missing.into_iter().rev() {
            let made = Snapshot::intended(SnapshotKind::Directory, None, None);
            add(paths, depths, parent, Snapshot::default(), Some(made), Depth::Attributes);
        }
    }
    add(paths, depths, path, before, intended, depth);
}

fn add(
    paths: &mut Vec<PathBefore>,
    depths: &mut Vec<Depth>,
    path: &Path,
    before: Snapshot,
    intended: Option<Snapshot>,
    depth: Depth,
) {
    let path = to_text(path.as_os_str());
    match paths.iter().position(|known| known.path == path) {
        // The first state is the one to restore; the later effect can reach further.
        Some(at) if depth == Depth::Tree => depths[at] = depth,
        Some(_) => {}
        None => {
            paths.push(PathBefore { path, before, intended });
            depths.push(depth);
        }
    }
}

/// Returns how much of a path an effect replaces, and the state that it is intended to leave.
pub(super) fn expectation(effect: &PathEffect) -> (Depth, Option<Snapshot>) {
    let PathEffect::Operation { intent, sha256, .. } = effect else { return (Depth::Tree, None) };
    match intent {
        Intent::Write(attributes) => {
            let digest = sha256.clone().filter(|digest| digest.len() == 64);
            (Depth::Content, Some(Snapshot::intended(SnapshotKind::File, Some(*attributes), digest)))
        }
        Intent::SetAttributes(_) => (Depth::Attributes, None),
        Intent::MakeDirectory(attributes, _) => {
            (Depth::Content, Some(Snapshot::intended(SnapshotKind::Directory, Some(*attributes), None)))
        }
        Intent::MakeLink(target) => {
            let link = Snapshot::intended(SnapshotKind::Link, None, None);
            (Depth::Tree, Some(Snapshot { target: Some(to_text(target.as_os_str())), ..link }))
        }
        Intent::Remove => (Depth::Content, Some(Snapshot::default())),
        Intent::RemoveTree => (Depth::Tree, Some(Snapshot::default())),
    }
}
