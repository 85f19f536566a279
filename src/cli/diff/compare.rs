//! Compares the resources of two manifests.

use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::{
    declare::Comparable,
    document::Source,
    host::input::{self, Limits},
    manifest::Manifest,
    resource::Resource,
    template::Scope,
};

/// A resource that differs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Difference {
    pub(super) resource: String,
    pub(super) change: Change,
    /// Properties that differ, with the old and the new value.
    pub(super) properties: Vec<(String, Option<Value>, Option<Value>)>,
}

/// How a resource differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Added,
    Removed,
    Changed,
}

/// A resource with the manifest that declares it.
struct Declared<'m> {
    resource: &'m Resource,
    scope: &'m Scope,
    source: &'m Source,
    directory: PathBuf,
}

/// Property whose value is the path of a file next to the manifest.
const SOURCE: &str = "source";

/// Returns the resources that differ: those of the new manifest in its order, then the removed ones.
pub(super) fn compare(old: &Manifest, new: &Manifest) -> Vec<Difference> {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    collect(old, &mut before);
    collect(new, &mut after);
    let mut differences = Vec::new();
    for declared in &after {
        match before.iter().position(|other| other.is_same(declared)) {
            Some(at) => differences.extend(before.remove(at).changed_to(declared)),
            None => differences.push(declared.difference(Change::Added)),
        }
    }
    differences.extend(before.iter().map(|declared| declared.difference(Change::Removed)));
    differences
}

fn collect<'m>(manifest: &'m Manifest, into: &mut Vec<Declared<'m>>) {
    for resource in &manifest.resources {
        let directory = manifest.working_directory.clone();
        into.push(Declared { resource, scope: &manifest.scope, source: &manifest.source, directory });
        if let Some(included) = resource.included.as_deref() {
            collect(included, into);
        }
    }
}

impl Declared<'_> {
    fn is_same(&self, other: &Self) -> bool {
        self.resource.kind.name() == other.resource.kind.name() && self.resource.name == other.resource.name
    }

    fn comparable(&self) -> Comparable {
        self.resource.comparable(self.scope, self.source)
    }

    /// Returns the difference of a resource that exists on one side.
    fn difference(&self, change: Change) -> Difference {
        let shown = self.comparable().shown.into_iter();
        let properties = match change {
            Change::Removed => shown.map(|(name, value)| (name, Some(value), None)).collect(),
            _ => shown.map(|(name, value)| (name, None, Some(value))).collect(),
        };
        Difference { resource: self.resource.to_string(), change, properties }
    }

    fn changed_to(&self, new: &Self) -> Option<Difference> {
        let (before, after) = (self.comparable(), new.comparable());
        let value = |shown: &Map<String, Value>, name: &str| shown.get(name).cloned();
        let mut properties: Vec<_> = before
            .differences(&after)
            .into_iter()
            .map(|name| {
                let (old, new) = (value(&before.shown, &name), value(&after.shown, &name));
                (name, old, new)
            })
            .collect();
        if !properties.iter().any(|(name, ..)| name == SOURCE)
            && let (Some(old), Some(new)) =
                (self.source_content(&before.shown), new.source_content(&after.shown))
            && old != new
        {
            properties.push(("content".to_owned(), Some(old.into()), Some(new.into())));
        }
        let resource = self.resource.to_string();
        (!properties.is_empty()).then_some(Difference { resource, change: Change::Changed, properties })
    }

    /// Returns the content of a local file that the resource copies.
    fn source_content(&self, shown: &Map<String, Value>) -> Option<String> {
        let path = shown.get(SOURCE)?.as_str()?;
        let bytes = input::read_file(&self.directory.join(path), Limits::default().document).ok()?;
        String::from_utf8(bytes).ok()
    }
}
