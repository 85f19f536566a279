//! A resource that can be applied: its type, its properties, and where they were written.

use std::{fmt, path::Path, sync::Arc};

use serde_json::{Map, Value as Json};

use super::{AnyProperties, AnyType, Common, Error, Manifest, SecretMark, Warning, secrets::OF_SENSITIVE};
use crate::{
    document::{Diagnostic, Entry, Node, Source, Span},
    redaction::MASK,
    template::{Element, Scope},
    vocabulary::{Reference, schema::object},
};

/// A resource that can be applied.
pub(crate) struct Resource {
    pub(crate) kind: &'static dyn AnyType,
    pub(crate) name: String,
    /// One for all resources that have none of these properties.
    pub(crate) common: Arc<Common>,
    /// What is wanted, as far as it was known when the resource was read.
    pub(crate) wanted: Box<dyn AnyProperties>,
    /// The type's own properties, when some of them are expanded only when the resource's turn comes.
    pub(crate) late: Option<Vec<Entry>>,
    /// Its registrations, when their templates are expanded only when the resource's turn comes.
    pub(crate) late_registrations: Option<Box<Entry>>,
    /// Its health checks, when something in them is expanded only when they are made.
    pub(crate) late_checks: Option<Box<Node>>,
    /// The commands that validate it together with other resources, as far as they are known before the run.
    pub(crate) validators: Vec<String>,
    /// What its templates and conditions see as `each` and `index`.
    pub(crate) element: Option<Element>,
    pub(crate) places: Places,
    /// The manifest that it stands for, where it does.
    pub(crate) included: Option<Box<Manifest>>,
    /// Why its included manifest was not loaded, if `control` excludes it.
    pub(crate) switched_off: Option<&'static str>,
    pub(crate) secret: SecretMark,
}

/// Where a resource and its properties were written.
pub(crate) struct Places {
    pub(crate) name: Span,
    pub(crate) properties: Vec<(String, Span)>,
    /// File, line and column of a resource that a plan contains.
    pub(crate) recorded: Option<String>,
}

impl Places {
    fn find(&self, property: Option<&str>) -> Span {
        let place = self.properties.iter().find(|(name, _)| Some(name.as_str()) == property);
        place.map_or(self.name, |(_, span)| *span)
    }

    pub(crate) fn problem(&self, error: Error) -> Diagnostic {
        let problem = Diagnostic::error("invalid-properties", error.message);
        Diagnostic { help: error.help, ..problem.at(self.find(error.property)) }
    }

    pub(crate) fn warning(&self, Warning { id, message, property, help }: Warning) -> Diagnostic {
        Diagnostic { help, ..Diagnostic::warning(id, message).at(self.find(property)) }
    }
}

impl Resource {
    /// Returns what `ccm validate` reports in addition to warnings.
    pub(crate) fn remarks(&self, folder: &Path) -> Vec<Diagnostic> {
        let remarks = self.wanted.remarks(&self.common, folder).into_iter();
        let located = remarks.map(|(severity, mut remark)| {
            remark.message = format!("{self}: {}", remark.message);
            Diagnostic { severity, ..self.places.warning(remark) }
        });
        located.collect()
    }

    /// Returns what is wrong with the files beside the manifest that it is made from.
    pub(crate) fn problems_beside(&self, folder: &Path, of_manifest: &Scope) -> Vec<Diagnostic> {
        let own = self.own_scope(of_manifest);
        let errors = self.wanted.problems_beside(folder, own.as_ref().unwrap_or(of_manifest));
        let mut problems: Vec<Diagnostic> =
            errors.into_iter().map(|error| self.places.problem(error)).collect();
        let warnings = self.wanted.warnings_beside(folder).into_iter();
        problems.extend(warnings.map(|warning| self.places.warning(warning)));
        for problem in &mut problems {
            problem.message = format!("{self}: {}", problem.message);
        }
        problems
    }

    /// Returns a resource that no text declares.
    pub(crate) fn assembled(
        kind: &'static dyn AnyType,
        name: String,
        common: Common,
        wanted: Box<dyn AnyProperties>,
    ) -> Self {
        Self {
            kind,
            name,
            common: Arc::new(common),
            validators: validators(wanted.as_ref()),
            wanted,
            late: None,
            late_registrations: None,
            late_checks: None,
            element: None,
            places: Places { name: Span::default(), properties: Vec::new(), recorded: None },
            included: None,
            switched_off: None,
            secret: SecretMark::default(),
        }
    }

    /// Drops the subscriptions to resources for which `is_kept` does not hold.
    pub(crate) fn retain_subscriptions(&mut self, is_kept: impl Fn(&Reference) -> bool) {
        if !self.common.subscribe.iter().all(&is_kept) {
            let mut common = Common::clone(&self.common);
            common.subscribe.retain(is_kept);
            self.common = Arc::new(common);
        }
    }

    /// Replaces patterns in `require` and `subscribe` with the references that `matching` returns for them. A pattern without
    /// a match stays.
    pub(crate) fn replace_patterns(&mut self, matching: impl Fn(&Reference) -> Vec<Reference>) {
        let Common { require, subscribe, .. } = &*self.common;
        if !require.iter().chain(subscribe).any(Reference::is_pattern) {
            return;
        }
        let own = self.reference();
        let replaced = |references: &[Reference]| {
            let mut all: Vec<Reference> = Vec::new();
            for reference in references {
                let mut found = if reference.is_pattern() { matching(reference) } else { Vec::new() };
                found.retain(|name| *name != own);
                if found.is_empty() {
                    found.push(reference.clone());
                }
                found.retain(|name| !all.contains(name));
                all.append(&mut found);
            }
            all
        };
        let (require, subscribe) = (replaced(require), replaced(subscribe));
        self.common = Arc::new(Common { require, subscribe, ..Common::clone(&self.common) });
    }

    /// Returns file, line and column of the resource in the text that declares it; nothing if no text does.
    pub(crate) fn position(&self, source: &Source) -> String {
        if let Some(recorded) = &self.places.recorded {
            return recorded.clone();
        }
        if source.text.is_empty() {
            return String::new();
        }
        let (line, column) = source.line_column(self.places.name.start);
        format!("{}:{line}:{column}", source.name)
    }

    /// How others refer to it.
    pub(crate) fn reference(&self) -> Reference {
        Reference { kind: self.kind.name().to_owned(), name: self.name.clone() }
    }

    /// Returns the names by which others can refer to it: its own, and its alias.
    pub(crate) fn names(&self) -> impl Iterator<Item = Reference> {
        let name = self.reference();
        let alias = self.common.alias.clone().map(|alias| Reference { name: alias, ..name.clone() });
        [name].into_iter().chain(alias)
    }

    /// Where an error about this resource belongs.
    pub(crate) fn place_of(&self, error: &Error) -> Span {
        error.place.unwrap_or_else(|| self.places.find(error.property))
    }

    /// What its templates and conditions can see, where that is more than its whole manifest can.
    pub(crate) fn own_scope(&self, of_manifest: &Scope) -> Option<Scope> {
        self.element.as_ref().map(|element| of_manifest.within(element))
    }

    /// What was asked for, as events show it.
    pub(crate) fn to_json(&self, wanted: &dyn AnyProperties) -> Map<String, Json> {
        let mut properties = wanted.to_json();
        properties.extend(object(&*self.common));
        if self.included.iter().flat_map(|included| &included.resources).any(Self::hides_anything)
            && let Some(data) = properties.get_mut("data")
        {
            *data = MASK.into();
        }
        if self.is_sensitive() {
            properties.retain(|key, _| OF_SENSITIVE.contains(&key.as_str()));
        }
        properties
    }
}

/// Returns the commands that validate a resource together with others.
pub(crate) fn validators(wanted: &dyn AnyProperties) -> Vec<String> {
    let joint = wanted.joint_validation().into_iter();
    joint.flat_map(|joint| joint.commands()).map(str::to_owned).collect()
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}#{}", self.kind.name(), self.name)
    }
}
