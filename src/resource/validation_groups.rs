//! Resources that are validated together.

use std::{
    collections::{HashMap, HashSet},
    fmt::Write,
    ptr,
};

use super::{Manifest, OnFailure, Resource, Task};
use crate::{
    document::{Diagnostic, Source},
    vocabulary::{Reference, RunMode},
};

/// Resources that the same commands validate together, in their written order.
pub(crate) struct ValidationGroup<'a> {
    pub(crate) members: Vec<&'a Resource>,
}

impl<'a> ValidationGroup<'a> {
    /// Returns the first and the last member.
    fn ends(&self) -> Option<(&'a Resource, &'a Resource)> {
        Some((self.members.first()?, self.members.last()?))
    }

    fn contains(&self, resource: &Resource) -> bool {
        self.members.iter().any(|member| ptr::eq(*member, resource))
    }
}

/// A resource, the manifest that it is in, and the boundary that no group crosses.
struct Item<'a> {
    resource: &'a Resource,
    /// Number of the manifest, in the order in which they are included.
    manifest: usize,
    source: &'a Source,
    boundary: usize,
}

/// Returns the groups of at least two resources.
pub(crate) fn validation_groups(manifest: &Manifest) -> Vec<ValidationGroup<'_>> {
    groups(&items(manifest))
}

fn items(manifest: &Manifest) -> Vec<Item<'_>> {
    let mut items = Vec::new();
    let mut numbers = Numbers { manifests: 0, boundaries: 0 };
    collect(manifest, 0, &mut numbers, &mut items);
    items
}

struct Numbers {
    manifests: usize,
    boundaries: usize,
}

fn collect<'a>(manifest: &'a Manifest, boundary: usize, numbers: &mut Numbers, items: &mut Vec<Item<'a>>) {
    let own = numbers.manifests;
    for resource in &manifest.resources {
        items.push(Item { resource, manifest: own, source: &manifest.source, boundary });
        let Some(included) = resource.included.as_deref() else { continue };
        numbers.manifests += 1;
        // Its changes are undone, or only predicted, without those outside of it.
        let is_apart = included.on_failure == OnFailure::Undo
            || included.mode == RunMode::Noop
            || included.task == Task::Monitor;
        numbers.boundaries += usize::from(is_apart);
        let inner = if is_apart { numbers.boundaries } else { boundary };
        collect(included, inner, numbers, items);
    }
}

fn groups<'a>(items: &[Item<'a>]) -> Vec<ValidationGroup<'a>> {
    let mut groups: Vec<ValidationGroup> = Vec::new();
    let mut known: HashMap<(usize, &[String]), usize> = HashMap::new();
    for Item { resource, boundary, .. } in items {
        if resource.validators.is_empty() {
            continue;
        }
        let at = *known.entry((*boundary, &resource.validators)).or_insert(groups.len());
        match groups.get_mut(at) {
            Some(group) => group.members.push(resource),
            None => groups.push(ValidationGroup { members: vec![resource] }),
        }
    }
    groups.retain(|group| group.members.len() > 1);
    groups
}

/// Returns an error for each resource between two members of a group that requires a member or subscribes to one, with the
/// number of its manifest. A member is published only after the last one was validated.
pub(crate) fn misplaced_references(manifest: &Manifest) -> Vec<(usize, Diagnostic)> {
    let items = items(manifest);
    let mut found = Vec::new();
    for group in groups(&items) {
        let Some((first, last)) = group.ends() else { continue };
        let position = |resource| items.iter().position(|item| ptr::eq(item.resource, resource));
        let (Some(first), Some(end)) = (position(first), position(last)) else { continue };
        let mut waiting: HashSet<Reference> = HashSet::new();
        for item in &items[first..=end] {
            let resource = item.resource;
            let is_member = group.contains(resource);
            let references = resource.common.require.iter().chain(&resource.common.subscribe);
            let pending = references.filter(|_| !is_member).find(|reference| waiting.contains(reference));
            if let Some(reference) = pending {
                let member = items.iter().find(|item| item.resource.names().any(|name| name == *reference));
                let member = member.unwrap_or(&items[end]);
                found.push((item.manifest, misplaced(item, reference, member, &items[end])));
            }
            if is_member {
                waiting.extend(resource.names());
                waiting.extend(around(&items, resource));
            }
        }
    }
    found
}

/// Returns the names of the resources that include a resource: their results are known only after those of what is in them.
fn around(items: &[Item], resource: &Resource) -> Vec<Reference> {
    let holds = |outer: &Resource| {
        outer.included.as_deref().is_some_and(|included| {
            super::flattened(&included.resources).iter().any(|inner| ptr::eq(*inner, resource))
        })
    };
    items.iter().filter(|item| holds(item.resource)).flat_map(|item| item.resource.names()).collect()
}

/// Says why a resource cannot refer to a member of a group that `last` completes.
fn misplaced(item: &Item, reference: &Reference, member: &Item, last: &Item) -> Diagnostic {
    let (resource, end) = (item.resource, last.resource);
    let what = if resource.is_sensitive() {
        "a resource that it refers to".to_owned()
    } else {
        reference.to_string()
    };
    let mut message = format!(
        "{resource}: {what} is validated together with {end} ({}), and published only then",
        end.position(last.source)
    );
    let property = if resource.common.require.contains(reference) { "require" } else { "subscribe" };
    let written = resource.places.properties.iter().find(|(name, _)| name == property);
    let span = written.map_or(resource.places.name, |(_, span)| *span);
    let mut diagnostic = Diagnostic::error("pending-reference", String::new()).at(span);
    if member.manifest == item.manifest {
        diagnostic = diagnostic.with_also(member.resource.places.name, "declared here");
    } else {
        let position = member.resource.position(member.source);
        let _ = write!(message, " (declared here: {position})");
    }
    Diagnostic { message, ..diagnostic }.with_help(format!("move it after {end}"))
}
