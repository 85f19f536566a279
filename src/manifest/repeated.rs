//! Resources that are declared in several manifests of one run.

use std::collections::HashMap;

use super::Manifest;
use crate::{
    document::{Diagnostic, Diagnostics, Review, Source},
    resource::Resource,
    vocabulary::Reference,
};

/// Returns an error for each resource that an earlier manifest declares, too: by name or by alias.
pub(crate) fn repeated(earlier: &[&Manifest], manifest: &Manifest) -> Vec<Review> {
    let mut known: HashMap<Reference, (&Resource, &Source)> = HashMap::new();
    for (resource, source) in earlier.iter().flat_map(|manifest| all(manifest)) {
        for name in resource.names() {
            known.entry(name).or_insert((resource, source));
        }
    }
    let mut reviews: Vec<Review> = Vec::new();
    for (resource, source) in all(manifest) {
        let Some((name, (first, place))) =
            resource.names().find_map(|name| Some((name.clone(), known.get(&name)?)))
        else {
            continue;
        };
        let is_alias = resource.is_sensitive() && name.name != resource.name;
        let what = if is_alias {
            format!("{resource}: its alias is the name of another, which")
        } else {
            name.to_string()
        };
        let message = format!(
            "{what} is declared in another manifest of this run, too (first declared here: {})",
            first.position(place)
        );
        let help = "declare it in one manifest, and include that one with `apply` where others need it";
        let problem =
            Diagnostic::error("duplicate-resource", message).at(resource.places.name).with_help(help);
        match reviews.iter_mut().find(|review| review.source.name == source.name) {
            Some(review) => review.diagnostics.push(problem),
            None => {
                let mut diagnostics = Diagnostics::default();
                diagnostics.push(problem);
                reviews.push(Review { source: source.clone(), diagnostics });
            }
        }
    }
    reviews
}

/// Returns all resources of a manifest and of those that it includes, each with its source.
fn all(manifest: &Manifest) -> Vec<(&Resource, &Source)> {
    let mut resources = Vec::new();
    for resource in &manifest.resources {
        resources.push((resource, &manifest.source));
        resources.extend(resource.included.iter().flat_map(|included| all(included)));
    }
    resources
}
