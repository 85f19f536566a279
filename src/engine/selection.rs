//! Runs of only some resources: `--only` and `--skip`.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    str::FromStr,
};

use regex::Regex;

use crate::{
    resource::{Resource, flattened},
    vocabulary::{Reference, wildcards},
};

/// Names resources: `tag:WORD`, or a `type#name` in which `*` stands for any text and `?` for any character.
#[derive(Clone, Debug)]
pub(crate) struct Selector {
    written: String,
    names: Names,
}

#[derive(Clone, Debug)]
enum Names {
    Tag(String),
    /// A pattern over the whole reference.
    Pattern(Regex),
}

impl FromStr for Selector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let written = text.to_owned();
        if let Some(tag) = text.strip_prefix("tag:") {
            return match tag {
                "" => Err("a tag follows `tag:`".to_owned()),
                _ => Ok(Self { written, names: Names::Tag(tag.to_owned()) }),
            };
        }
        if !text.contains(['#', '*']) {
            let tag = if text.is_empty() { "web" } else { text };
            return Err(format!(
                "`{text}` names no resource: write `type#name`, a pattern of it, or `tag:{tag}`"
            ));
        }
        let pattern = wildcards(text).map_err(|error| error.to_string())?;
        Ok(Self { written, names: Names::Pattern(pattern) })
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.written)
    }
}

impl Selector {
    fn names(&self, resource: &Resource) -> bool {
        match &self.names {
            Names::Tag(tag) => resource.common.tags.iter().any(|own| own.as_str() == tag),
            Names::Pattern(pattern) => names(resource).any(|name| {
                let name = name.to_string();
                // A name may have a `*` of its own.
                name == self.written || pattern.is_match(&name)
            }),
        }
    }
}

/// What resources are known by.
fn names(resource: &Resource) -> impl Iterator<Item = Reference> {
    let name = resource.reference();
    let alias = resource.common.alias.clone().map(|alias| Reference { name: alias, ..name.clone() });
    [name].into_iter().chain(alias)
}

/// Returns the resource that each resource of an included manifest is part of.
fn parents(resources: &[&Resource]) -> HashMap<Reference, Reference> {
    let mut parents = HashMap::new();
    for resource in resources {
        for inner in resource.included.iter().flat_map(|included| &included.resources) {
            parents.insert(inner.reference(), resource.reference());
        }
    }
    parents
}

/// The resources that learn facts: whoever is selected may need what they learn, and they change nothing.
fn facts(resources: &[&Resource]) -> impl Iterator<Item = Reference> {
    let learns = |resource: &&&Resource| resource.kind.behavior().learns_facts;
    resources.iter().filter(learns).map(|resource| resource.reference())
}

/// Adds what the selected resources are part of: a resource runs within that, and with it nothing else of it.
fn surround(selected: &mut HashSet<Reference>, parents: &HashMap<Reference, Reference>) {
    let mut around: Vec<Reference> = selected.iter().filter_map(|name| parents.get(name).cloned()).collect();
    while let Some(parent) = around.pop() {
        around.extend(parents.get(&parent).cloned());
        selected.insert(parent);
    }
}

/// What a user wants of a run.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    /// Only these and what they require, if any are named.
    pub(crate) only: Vec<Selector>,
    /// And none of these.
    pub(crate) skip: Vec<Selector>,
}

/// The resources of a run whose turns come to something.
#[derive(Debug, Default)]
pub(crate) struct Selected(Option<HashSet<Reference>>);

impl Selected {
    /// Selects resources by their names, with those that are refreshed on their account and what they are part of.
    pub(crate) fn with_refreshes(mut selected: HashSet<Reference>, resources: &[Resource]) -> Self {
        let resources = &flattened(resources);
        loop {
            let subscribers = resources.iter().filter(|resource| {
                let own = resource.reference();
                !selected.contains(&own)
                    && resource.common.subscribe.iter().any(|cause| {
                        selected.contains(cause)
                            || resources.iter().any(|other| {
                                selected.contains(&other.reference())
                                    && names(other).any(|name| name == *cause)
                            })
                    })
            });
            let more: Vec<Reference> = subscribers.map(|resource| resource.reference()).collect();
            if more.is_empty() {
                break;
            }
            selected.extend(more);
        }
        Self::with_surroundings(selected, resources)
    }

    /// Selects resources by their names, with what they are part of and what learns facts.
    pub(crate) fn just(selected: HashSet<Reference>, resources: &[Resource]) -> Self {
        Self::with_surroundings(selected, &flattened(resources))
    }

    fn with_surroundings(mut selected: HashSet<Reference>, resources: &[&Resource]) -> Self {
        selected.extend(facts(resources));
        surround(&mut selected, &parents(resources));
        Self(Some(selected))
    }

    pub(crate) fn contains(&self, resource: &Resource) -> bool {
        self.0.as_ref().is_none_or(|selected| selected.contains(&resource.reference()))
    }
}

impl Selection {
    /// Returns the selectors that name none of these resources.
    pub(crate) fn unknown<'s>(&'s self, resources: &[&Resource]) -> Vec<&'s Selector> {
        let is_known = |selector: &&Selector| resources.iter().any(|resource| selector.names(resource));
        self.only.iter().chain(&self.skip).filter(|selector| !is_known(selector)).collect()
    }

    /// Returns which of the resources of a manifest are to be applied.
    pub(crate) fn select(&self, resources: &[Resource]) -> Selected {
        let resources = &flattened(resources);
        let parents = parents(resources);
        if self.only.is_empty() && self.skip.is_empty() {
            return Selected::default();
        }
        let names_one =
            |selectors: &[Selector], resource: &Resource| selectors.iter().any(|one| one.names(resource));
        let mut by_name = HashMap::new();
        for resource in resources {
            by_name.extend(names(resource).map(|name| (name, *resource)));
        }
        let is_wanted = |resource: &&Resource| self.only.is_empty() || names_one(&self.only, resource);
        let mut wanted: Vec<&Resource> = resources.iter().copied().filter(is_wanted).collect();
        let mut selected = HashSet::new();
        while let Some(resource) = wanted.pop() {
            if selected.insert(resource.reference()) {
                wanted.extend(resource.common.require.iter().filter_map(|required| by_name.get(required)));
                wanted.extend(resource.included.iter().flat_map(|included| &included.resources));
            }
        }
        selected.extend(facts(resources));
        surround(&mut selected, &parents);
        let skipped = resources.iter().filter(|resource| names_one(&self.skip, resource));
        for resource in skipped.flat_map(|resource| flattened(std::slice::from_ref(*resource))) {
            selected.remove(&resource.reference());
        }
        Selected(Some(selected))
    }
}
