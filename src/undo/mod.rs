//! Turns the record of a run into resources that undo it.
//!
//! Each changed resource becomes one resource of the same name that has its earlier state as the desired state. The engine
//! applies them, in reverse order, like any others: with diffs, verification, events and refreshes of subscribers. The
//! state that the run left is the precondition of each: a resource that was changed since fails, and stays as it is.

mod files_and_live;
mod guarded;
mod order;

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use self::{files_and_live::FilesAndLive, guarded::Guarded, order::Group};
use crate::{
    document::Source,
    resource::{AnyProperties, AnyType, Common, Manifest, Resource},
    state::{
        StateDirectory,
        history::{Change, Done, RunRecord, Undo},
    },
    template::Scope,
    types,
    vocabulary::Reference,
};

/// The changes to undo.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) changes: &'a [(Change, Option<Done>)],
    /// Whether the run ended. Changes of an ended run that were not completed were never made.
    pub(crate) is_over: bool,
    /// Only these resources; all if empty.
    pub(crate) only: &'a [String],
    /// Whether resources are restored that were changed since.
    pub(crate) force: bool,
    /// Resources that a killed undo began to restore: they have neither the state that the run left nor the one before.
    pub(crate) begun: &'a [String],
}

/// Resources that undo a run, in order.
pub(crate) struct Reversal {
    pub(crate) resources: Vec<Resource>,
    pub(crate) source: Source,
    pub(crate) not_undone: Vec<NotUndone>,
}

impl Reversal {
    /// Returns the manifest of the resources.
    pub(crate) fn into_manifest(self, scope: Scope) -> Manifest {
        Manifest::of(self.resources, self.source, PathBuf::from("/"), scope)
    }
}

/// A resource that is not undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotUndone {
    pub(crate) resource: String,
    pub(crate) reason: Reason,
    pub(crate) detail: String,
}

/// Why a resource is not undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Changed,
    NotKept,
    Command,
    Failed,
}

impl Reason {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::NotKept => "not-kept",
            Self::Command => "command",
            Self::Failed => "failed",
        }
    }
}

impl<'a> Request<'a> {
    /// Requests to undo a run of the history.
    pub(crate) fn of(run: &'a RunRecord, only: &'a [String], force: bool) -> Self {
        Self { changes: &run.changes, is_over: run.end.is_some(), only, force, begun: &[] }
    }

    /// Returns the resources that killed undos of a run began to restore.
    pub(crate) fn begun(runs: &[RunRecord], run: &str) -> Vec<String> {
        let undos =
            runs.iter().filter(|undo| undo.end.is_none() && undo.start.undo_of.as_deref() == Some(run));
        let begun = undos.flat_map(|undo| undo.changes.iter().filter(|(_, done)| done.is_none()));
        begun.map(|(change, _)| change.resource.clone()).collect()
    }

    /// Returns the resources that undo the changes.
    pub(crate) fn reversal(&self, state: &StateDirectory, name: &str) -> Reversal {
        let source = Source { name: name.to_owned(), text: String::new() };
        let mut reversal = Reversal { resources: Vec::new(), source, not_undone: Vec::new() };
        let groups = order::groups(self);
        for (at, group) in groups.iter().enumerate() {
            let is_validated = !order::is_validated_later(group, &groups[at + 1..]);
            let force = self.force || self.begun.contains(&group.change().resource);
            match resource(group, is_validated, force, state) {
                Ok(Some(resource)) => reversal.resources.push(resource),
                Ok(None) => {}
                Err((reason, detail)) => {
                    let resource = group.change().resource.clone();
                    reversal.not_undone.push(NotUndone { resource, reason, detail });
                }
            }
        }
        // Causes that could not become resources cannot be subscribed to.
        let made: Vec<Reference> = reversal.resources.iter().map(Resource::reference).collect();
        for resource in &mut reversal.resources {
            resource.retain_subscriptions(|cause| made.contains(cause));
        }
        reversal
    }
}

type Refusal = (Reason, String);

/// Returns the resource that undoes the changes of one resource; `None` if there is nothing to do.
fn resource(
    group: &Group,
    is_validated: bool,
    force: bool,
    state: &StateDirectory,
) -> Result<Option<Resource>, Refusal> {
    let change = group.change();
    let reference: Reference = change
        .resource
        .parse()
        .map_err(|_| (Reason::Failed, "the record has no valid reference".to_owned()))?;
    let unsealed = |properties: &Map<String, Value>| {
        state.unseal(properties).map_err(|error| (Reason::NotKept, error.to_string()))
    };
    let common = Common { sensitive: change.sensitive, subscribe: group.causes(), ..Common::default() };
    let kind = types::find(&reference.kind)
        .ok_or_else(|| (Reason::Failed, format!("this version of ccm has no type `{}`", reference.kind)))?;
    match &change.undo {
        Undo::Paths => {
            let validate = if is_validated { unsealed(&change.validate)? } else { Map::new() };
            let (kind, wanted) = paths(group, &reference, validate, force)?;
            Ok(Some(Resource::assembled(kind, reference.name, common, wanted)))
        }
        Undo::PathsAndResource(properties) => {
            let (files_kind, files) = paths(group, &reference, Map::new(), force)?;
            let mut properties = unsealed(properties)?;
            properties.insert("name".to_owned(), reference.name.clone().into());
            let live = guarded(read(kind, &Value::Object(properties))?, group, &reference, force);
            let wanted = Box::new(FilesAndLive::new(files_kind, files, live));
            Ok(Some(Resource::assembled(kind, reference.name, common, wanted)))
        }
        Undo::Resource(properties) if types::undoing(&reference.kind).is_some() => {
            let kind = types::undoing(&reference.kind).unwrap_or(kind);
            let mut before = unsealed(properties)?;
            before.insert("name".to_owned(), reference.name.clone().into());
            let properties = json!({
                "name": reference.name,
                "before": before,
                "left": group.done().and_then(|done| done.state.get("metadata")),
                "files": restored(group, &reference, force),
                "force": force,
            });
            let wanted = read(kind, &properties)?;
            Ok(Some(Resource::assembled(kind, reference.name, common, wanted)))
        }
        Undo::Resource(properties) => {
            let mut properties = unsealed(properties)?;
            if group.is_refresh() {
                // The refreshed resource keeps its own settings, such as how it is restarted.
                let mut own = unsealed(&change.properties)?;
                own.append(&mut properties);
                properties = own;
            }
            properties.insert("name".to_owned(), reference.name.clone().into());
            let wanted = guarded(read(kind, &Value::Object(properties))?, group, &reference, force);
            Ok(Some(Resource::assembled(kind, reference.name, common, wanted)))
        }
        Undo::Command(None) if group.is_refresh() => {
            let mut properties = unsealed(&change.properties)?;
            properties.insert("name".to_owned(), reference.name.clone().into());
            properties.insert("refresh_only".to_owned(), true.into());
            let wanted = read(kind, &Value::Object(properties))?;
            Ok(Some(Resource::assembled(kind, reference.name, common, wanted)))
        }
        Undo::Command(None) => Err((Reason::Command, change.action.clone())),
        Undo::Command(Some(properties)) => {
            let mut properties = unsealed(properties)?;
            properties.insert("name".to_owned(), reference.name.clone().into());
            let wanted = read(kind, &Value::Object(properties))?;
            Ok(Some(Resource::assembled(kind, reference.name, common, wanted)))
        }
    }
}

/// Returns the properties of a resource that restores the paths of the changes.
fn restored(group: &Group, reference: &Reference, force: bool) -> Value {
    let sensitive = group.change().sensitive;
    json!({ "name": reference.name, "paths": group.paths(), "sensitive": sensitive, "force": force })
}

/// Returns the desired state that restores the paths of the changes, and its type.
fn paths(
    group: &Group,
    reference: &Reference,
    mut validate: Map<String, Value>,
    force: bool,
) -> Result<(&'static dyn AnyType, Box<dyn AnyProperties>), Refusal> {
    let kind = types::restoring(&reference.kind)
        .ok_or_else(|| (Reason::Failed, "paths of this type cannot be restored".to_owned()))?;
    let mut properties = restored(group, reference, force);
    properties["validate"] = validate.remove("validate").unwrap_or_default();
    Ok((kind, read(kind, &properties)?))
}

/// Lets properties apply only if the machine still has the state that the run left.
fn guarded(
    wanted: Box<dyn AnyProperties>,
    group: &Group,
    reference: &Reference,
    force: bool,
) -> Box<dyn AnyProperties> {
    match group.done().filter(|_| !force) {
        Some(done) => {
            wanted.guarded(Box::new(Guarded { after: done.state.clone(), resource: reference.to_string() }))
        }
        None => wanted,
    }
}

fn read(kind: &'static dyn AnyType, properties: &Value) -> Result<Box<dyn AnyProperties>, Refusal> {
    let failed =
        |detail: String| (Reason::Failed, format!("the recorded properties are not valid: {detail}"));
    let source = Source { name: "history".to_owned(), text: properties.to_string() };
    let node = crate::document::parse(&source).map_err(|diagnostics| {
        failed(diagnostics.errors().map(|error| error.message.clone()).collect::<Vec<_>>().join("; "))
    })?;
    kind.read(&node).map_err(|error| failed(error.to_string()))
}
