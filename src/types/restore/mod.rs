//! Restores paths from the history. Only undo makes resources of this type: they have the names and types of the resources
//! whose changes they undo.

mod kind;
mod state;

use std::{fmt, path::PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use self::{kind::restoring, state::RestoreState};
use crate::{
    host::files::{Attributes, Intent, Parents},
    resource::{
        self, Before, Candidate, Change, Content, Context, Difference, Effects, Error, ErrorKind, Example,
        PathEffect, ResourceType, Trigger, Watches,
    },
    state::history::{Kept, RestoreError, Snapshot, SnapshotKind, from_text},
    types::{
        content_diff::{LARGEST, Old, between},
        disk::{blame, note_parents, stop},
        validation::{Validate, warn_if_rejected},
    },
};

/// Paths that are restored from the history.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Properties {
    /// Name of the resource whose changes are undone.
    pub(crate) name: String,
    /// The paths, in the order in which they were changed.
    #[schemars(with = "Vec<Value>")]
    pub(crate) paths: Vec<Restored>,
    /// If true, the copies are encrypted.
    #[serde(default)]
    pub(crate) sensitive: bool,
    /// If true, paths that were changed since the run are restored, too.
    #[serde(default)]
    pub(crate) force: bool,
    /// Validator of the restored state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) validate: Option<Validate>,
}

/// A path that is restored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Restored {
    pub(crate) path: String,
    pub(crate) before: Snapshot,
    /// State after the change; `None` if the change was interrupted.
    #[serde(default)]
    pub(crate) after: Option<Snapshot>,
    /// State that an interrupted change was to leave.
    #[serde(default)]
    pub(crate) intended: Option<Snapshot>,
}

impl Restored {
    pub(crate) fn path(&self) -> PathBuf {
        from_text(&self.path).unwrap_or_default()
    }

    /// Whether the path still has the state that the run left.
    fn is_as_left(&self, now: &Snapshot) -> bool {
        match (&self.after, &self.intended) {
            (Some(after), _) => now.agrees_with(after),
            (None, Some(intended)) => now.is_intended(intended),
            (None, None) => false,
        }
    }
}

impl Properties {
    /// Returns the effects on all paths.
    pub(crate) fn effects(&self) -> Vec<PathEffect> {
        self.paths.iter().map(effect).collect()
    }

    /// Restores the paths, whatever their present state is.
    pub(crate) fn restore_now(&self, cx: &Context) -> Result<(), Error> {
        let forced = Self {
            name: self.name.clone(),
            paths: self.paths.clone(),
            sensitive: self.sensitive,
            force: true,
            validate: None,
        };
        let have = Restore::inspect(&forced, &(), cx)?;
        match Restore::compare(&forced, &have, Trigger::Turn)? {
            Some(change) => Restore::enact(&forced, &have, change.action, &(), cx).map(drop),
            None => Ok(()),
        }
    }
}

impl resource::Properties for Properties {
    fn ensure(&self) -> String {
        "restored".to_owned()
    }

    fn watches(&self) -> Watches {
        Watches::default()
    }
}

/// The positions of the paths that are restored, last first.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Action {
    steps: Vec<usize>,
    removes: bool,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match (self.removes, self.steps.len()) {
            (true, 1) => f.write_str("removed the path that the run created"),
            (true, count) => write!(f, "removed {count} paths that the run created"),
            (false, 1) => f.write_str("restored the path"),
            (false, count) => write!(f, "restored {count} paths"),
        }
    }
}

/// The type.
pub(crate) struct Restore;

impl ResourceType for Restore {
    const NAME: &'static str = "restore";
    const EXAMPLES: &'static [Example] = &[];
    const PROVIDERS: &'static [Candidate<Self>] = &[Candidate {
        name: "history",
        summary: "copies in the state directory.",
        make: |_| Ok(Box::new(())),
    }];

    type Properties = Properties;
    type State = RestoreState;
    type Action = Action;
    type Provider = ();

    fn inspect(want: &Properties, (): &(), cx: &Context) -> Result<RestoreState, Error> {
        state::inspect(want, cx)
    }

    fn compare(want: &Properties, have: &RestoreState, _: Trigger) -> Result<Option<Change<Action>>, Error> {
        let (mut steps, mut differences) = (Vec::new(), Vec::new());
        for (at, (wanted, now)) in want.paths.iter().zip(&have.paths).enumerate().rev() {
            if now.agrees_with(&wanted.before) {
                continue;
            }
            if !want.force && !wanted.is_as_left(now) && !have.partly_removed[at] {
                return Err(ErrorKind::ChangedSince { path: wanted.path.clone() }.into());
            }
            if let Some(reason) = &have.missing[at] {
                return Err(ErrorKind::NotKept { path: wanted.path.clone(), reason: reason.clone() }.into());
            }
            differences.extend(differing(&wanted.before, now));
            steps.push(at);
        }
        differences.dedup();
        let removes = steps.iter().all(|at| !want.paths[*at].before.existed());
        Ok((!steps.is_empty()).then_some(Change {
            action: Action { steps, removes },
            differences,
            refreshes: false,
        }))
    }

    fn preview(
        want: &Properties,
        have: &RestoreState,
        action: &Action,
        (): &(),
        cx: &Context,
    ) -> Result<Option<String>, Error> {
        if want.sensitive {
            return Ok(None);
        }
        let mut diffs = String::new();
        for at in &action.steps {
            let (wanted, now) = (&want.paths[*at], &have.paths[*at]);
            let holds_text =
                |snapshot: &Snapshot| matches!(snapshot.kind, SnapshotKind::File | SnapshotKind::Absent);
            if !holds_text(&wanted.before) || !holds_text(now) || wanted.before.digest == now.digest {
                continue;
            }
            let new = match &wanted.before {
                before if !before.existed() => Some(Vec::new()),
                before if before.kept == Kept::Copy && before.size.is_some_and(|size| size <= LARGEST) => {
                    state::content(before, cx)?
                }
                _ => None,
            };
            diffs.extend(between(&wanted.path, &Old::read(&wanted.path())?, new.as_deref()));
        }
        Ok(Some(diffs).filter(|diffs| !diffs.is_empty()))
    }

    fn effects(want: &Properties, _: &RestoreState, action: &Action, _: &Context) -> Effects {
        let effect = |at: &usize| effect(&want.paths[*at]);
        Effects { paths: action.steps.iter().map(effect).collect(), ..Effects::default() }
    }

    fn before(_: &Properties, _: &RestoreState, _: &Action) -> Before {
        Before::Paths
    }

    fn enact(
        want: &Properties,
        have: &RestoreState,
        action: Action,
        (): &(),
        cx: &Context,
    ) -> Result<RestoreState, Error> {
        let objects = state::objects(want, cx)?;
        let mut restored = Vec::new();
        for at in action.steps {
            let (wanted, now) = (&want.paths[at], &have.paths[at]);
            let path = wanted.path();
            note_parents(&path, cx);
            wanted.before.restore(&path, now, &objects, &mut || stop(cx)).map_err(|error| match error {
                RestoreError::Files(error) => blame(error, cx),
                RestoreError::NotKept(reason) => {
                    ErrorKind::NotKept { path: wanted.path.clone(), reason }.into()
                }
                error @ RestoreError::Copy(_) => {
                    Error::new(format!("cannot restore {}: {error}", wanted.path))
                }
            })?;
            if wanted.before.kind == SnapshotKind::File {
                restored.push(path);
            }
        }
        if let Some(validate) = &want.validate {
            warn_if_rejected(validate, &restored, cx);
        }
        state::inspect(want, cx)
    }
}

/// Returns the effect of restoring a path.
fn effect(wanted: &Restored) -> PathEffect {
    let Snapshot { uid, gid, mode, digest, .. } = &wanted.before;
    let attributes = Attributes { uid: uid.unwrap_or(0), gid: gid.unwrap_or(0), mode: mode.unwrap_or(0o600) };
    let path = wanted.path();
    let intent = match wanted.before.kind {
        SnapshotKind::Directory if wanted.before.tree.is_some() => {
            return PathEffect::Filled { directory: path, root: attributes };
        }
        SnapshotKind::Absent | SnapshotKind::Special => Intent::RemoveTree,
        SnapshotKind::File => Intent::Write(attributes),
        SnapshotKind::Directory => Intent::MakeDirectory(attributes, Parents::Expect),
        SnapshotKind::Link => {
            Intent::MakeLink(wanted.before.target.as_deref().and_then(from_text).unwrap_or_default())
        }
    };
    PathEffect::Operation { path, intent, sha256: digest.clone(), content: Content::Unknown }
}

/// Returns the properties that restoring a path changes.
fn differing(before: &Snapshot, now: &Snapshot) -> Vec<Difference> {
    let mut differences = Vec::new();
    if before.kind != now.kind {
        differences.push(Difference::of("type"));
    }
    if before.digest != now.digest || before.target != now.target || before.tree != now.tree {
        differences.push(Difference::of("content"));
    }
    if (before.uid, before.gid) != (now.uid, now.gid) {
        differences.push(Difference::of("owner"));
    }
    if before.mode != now.mode {
        let octal = |mode: Option<u32>| mode.map(|mode| format!("{mode:04o}"));
        differences.push(match (octal(now.mode), octal(before.mode)) {
            (Some(now), Some(before)) => Difference::between("mode", now, before),
            _ => Difference::of("mode"),
        });
    }
    if before.extended != now.extended {
        differences.push(Difference::of("attributes"));
    }
    differences
}
