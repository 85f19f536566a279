//! Declarations, and the resources that they become.

use std::sync::{Arc, LazyLock};

use super::{
    expansion::Management,
    faults::{Faults, named, unknown_provider},
    health_checks::{check_problems, set_late_checks_aside},
    secrecy::{SENSITIVE, Secrecy},
};
use crate::{
    document::{Diagnostic, Diagnostics, Entry, Node, Scalar, Span, Style, Value, from_node},
    redaction::Redactor,
    resource::{AnyProperties, AnyType, Common, Places, REGISTRATIONS, Resource, validators},
    template::Element,
    types::canonical,
    vocabulary::Reference,
};

/// A resource as somebody wrote it.
#[derive(Clone)]
pub(crate) struct Declaration {
    pub(crate) kind: &'static dyn AnyType,
    pub(crate) name: String,
    pub(crate) name_span: Span,
    /// Its properties, without the name.
    pub(crate) properties: Vec<Entry>,
    /// What its templates see as `each` and `index`, where a `for_each` repeats it.
    pub(crate) element: Option<Element>,
    /// What late properties will be when its turn comes, as far as that could be told.
    pub(crate) foreseen: Vec<Entry>,
    /// Whether its conditions let ccm manage it.
    pub(crate) management: Management,
    /// Whether a secret value is part of it, as far as that is known before the run.
    pub(crate) is_secret: bool,
    /// Properties with placeholders of encrypted data: their values are not known.
    pub(crate) placeholders: Vec<String>,
}

/// How much of a declaration has to be there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completeness {
    /// Everything that is needed to bring the resource to its state.
    Whole,
    /// Only what is needed to look at it.
    Identity,
    /// All but its name, which could not be worked out.
    Nameless,
    /// Whatever several resources share, under no name.
    Shared,
}

impl Declaration {
    /// A resource that is written once.
    pub(crate) fn new(
        kind: &'static dyn AnyType,
        name: String,
        name_span: Span,
        properties: Vec<Entry>,
    ) -> Self {
        let management = Management::default();
        let (element, foreseen, is_secret, placeholders) = (None, Vec::new(), false, Vec::new());
        Self { kind, name, name_span, properties, element, foreseen, management, is_secret, placeholders }
    }

    /// Makes it sensitive if a secret value is part of it.
    pub(super) fn mark_if_secret(&mut self) {
        self.is_secret |= self.properties.iter().any(|entry| entry.value.holds_secret());
        if self.is_secret {
            self.properties.retain(|entry| entry.key != SENSITIVE);
            let value =
                Node { value: Value::Scalar(Scalar::new("true", Style::Plain)), span: self.name_span };
            self.properties.push(Entry { key: SENSITIVE.to_owned(), key_span: self.name_span, value });
        }
    }

    /// Returns whether nothing of it but its name may be shown.
    pub(crate) fn is_sensitive(&self) -> bool {
        Secrecy::of(&self.properties) == Secrecy::Secret
    }

    /// Returns the resource, unless something is wrong with it; everything that is, is collected.
    pub(crate) fn resolve(
        self,
        completeness: Completeness,
        diagnostics: &mut Diagnostics,
    ) -> Option<Resource> {
        let Self { kind, name, name_span, mut properties, element, mut foreseen, is_secret, .. } = self;
        let places = Places {
            recorded: None,
            name: name_span,
            properties: properties.iter().map(|entry| (entry.key.clone(), entry.value.span)).collect(),
        };
        let secrecy = Secrecy::of(&properties);
        let mut faults = Faults::new(kind, secrecy);
        faults.late = self.placeholders;
        check_name(&name, name_span, completeness, &mut faults);
        let late_checks = set_late_checks_aside(&mut properties, &mut foreseen);
        let (mut shared, mut own) = faults.sort(properties);
        let late_registrations = faults.registrations.take();
        // What they will be is judged now.
        let (registrations, foreseen): (Vec<_>, Vec<_>) =
            foreseen.into_iter().partition(|entry| entry.key == REGISTRATIONS);
        shared.extend(registrations);
        own.insert(0, named(&name, name_span));
        let late = (!faults.late.is_empty()).then(|| own.clone());
        let later = faults.late.clone();
        faults.insert_foreseen(&mut own, foreseen);
        let has_common = !shared.is_empty();
        let mut shared = Node { value: Value::Map(shared), span: name_span };
        let mut own = Node { value: Value::Map(own), span: name_span };
        let common = faults.read(&mut shared, from_node::<Common>);
        let wanted = faults.read(&mut own, |map| kind.read(map));
        if let Some(common) = &common {
            faults.diagnostics.extend(unknown_provider(kind, secrecy, common, &places));
            faults.diagnostics.extend(check_problems(&common.health_checks, shared.lookup("health_checks")));
        }
        if let (Some(wanted), Completeness::Whole) = (&wanted, completeness) {
            check_combination(wanted.as_ref(), common.as_ref(), &own, &places, &mut faults);
        }
        let is_known = !faults.late.iter().any(|key| key == "validate");
        let is_valid = !faults.diagnostics.has_errors();
        diagnostics.extend(faults.about(&name, &places, [&shared, &own]));
        let (mut common, mut wanted) = common.zip(wanted).filter(|_| is_valid)?;
        for other in common.require.iter_mut().chain(&mut common.subscribe) {
            *other = canonical(other.clone());
        }
        let Reference { name, .. } = canonical(Reference { kind: kind.name().to_owned(), name });
        let validators = if is_known { validators(wanted.as_ref()) } else { Vec::new() };
        if let Some(late) = &late {
            // What was foreseen is not held on to: contents of all files together may be large.
            let mut own = Node { value: Value::Map(late.clone()), span: name_span };
            wanted = Faults::later(kind, secrecy, later).read(&mut own, |map| kind.read(map))?;
        }
        Some(Resource {
            kind,
            name,
            common: if has_common { Arc::new(common) } else { usual() },
            wanted,
            validators,
            late,
            late_registrations: late_registrations.map(Box::new),
            late_checks: late_checks.map(Box::new),
            element,
            places,
            included: None,
            switched_off: None,
            secret: is_secret.into(),
        })
    }
}

fn check_name(name: &str, span: Span, completeness: Completeness, faults: &mut Faults) {
    match completeness {
        Completeness::Nameless => faults.late.push("name".to_owned()),
        Completeness::Shared => faults.properties.push("name".to_owned()),
        Completeness::Whole | Completeness::Identity if name.trim().is_empty() => {
            faults.diagnostics.push(Diagnostic::error("missing-name", "it has no name").at(span));
            faults.properties.push("name".to_owned());
        }
        Completeness::Whole | Completeness::Identity => {}
    }
}

/// Reports properties that contradict each other or the provider, and probable errors.
fn check_combination(
    wanted: &dyn AnyProperties,
    common: Option<&Common>,
    own: &Node,
    places: &Places,
    faults: &mut Faults,
) {
    // If the provider is not known, only rules that all providers share apply.
    let unknown = faults.is_known(Some("provider")).then_some("");
    let provider = common.and_then(|common| common.provider.as_deref()).or(unknown);
    let new = faults.new_in(faults.combination(wanted, own), wanted.problems_with(provider));
    let redactor = Redactor::new(wanted.secrets());
    let new = new.into_iter().map(|error| places.problem(error.redacted(&redactor)));
    faults.diagnostics.extend(new);
    let warnings = common.map(|common| wanted.warnings(common)).unwrap_or_default();
    let warnings = faults.settled(warnings);
    let warnings = warnings.into_iter().map(|warning| places.warning(warning));
    faults.diagnostics.extend(warnings.map(|mut warning| {
        redactor.mask(&mut warning.message);
        warning
    }));
}

/// Returns the properties of a resource that sets none of them.
fn usual() -> Arc<Common> {
    static USUAL: LazyLock<Arc<Common>> = LazyLock::new(Arc::default);
    Arc::clone(&USUAL)
}
