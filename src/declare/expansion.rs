//! Templates in declarations: early properties are expanded when a resource is read, late ones when its turn comes.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
};

use super::{
    Completeness, Declaration, exposed, health_checks,
    secrecy::{self, Secrecy},
};
use crate::{
    document::{Diagnostic, Diagnostics, Entry, Node, Scalar, Severity, Source, Style, Value, from_node},
    host::look,
    resource::{AnyType, FieldKind, IF_IS_FALSE, Makes, UNLESS_IS_TRUE, schema, text_as_boolean},
    secrets::quoted,
    template::{self, Foreseen, Scope, template_problem},
    vocabulary::has_scheme,
};

/// Expands declarations of one source.
pub(crate) struct Expansion<'a> {
    scope: &'a Scope,
    source: &'a Source,
    /// The properties of each type that was met.
    known: HashMap<&'static str, Vec<schema::Expandable>>,
    earlier: Earlier,
}

/// What the declarations so far may make.
#[derive(Default)]
struct Earlier {
    names: HashSet<PathBuf>,
    anything: bool,
}

/// Whether ccm will manage a resource, as far as its conditions are known before the run.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Management {
    #[default]
    Possible,
    /// Off now, but a condition reads a file that an earlier resource can change.
    Unlikely,
    /// Off in this run, with the reason.
    Off(&'static str),
}

/// The ending of encrypted files.
const ENCRYPTED: &str = ".age";

/// Turns a `source` in age format into `content`, which is decrypted when templates are expanded.
fn decrypt_source(declaration: &mut Declaration) {
    let keeps = |entry: &Entry| entry.key == "decrypt" && matches!(from_node(&entry.value), Ok(false));
    if declaration.kind.name() != "file" || declaration.properties.iter().any(keeps) {
        return;
    }
    let source = declaration.properties.iter_mut().find(|entry| entry.key == "source");
    if let Some(entry) = source
        && let Value::Scalar(scalar) = &mut entry.value.value
        && scalar.text.ends_with(ENCRYPTED)
        && !has_scheme(&scalar.text)
        && !ccm_expr::has_template(&scalar.text)
    {
        *scalar = Scalar::new(format!("{{{{ age({}) }}}}", quoted(&scalar.text)), Style::Plain);
        "content".clone_into(&mut entry.key);
    }
}

/// The values that a condition depends on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Basis {
    /// Data, machine facts and environment.
    Constant,
    /// Files, which earlier resources can change.
    Files,
}

impl<'a> Expansion<'a> {
    pub(crate) fn new(scope: &'a Scope, source: &'a Source) -> Self {
        Self { scope, source, known: HashMap::new(), earlier: Earlier::default() }
    }

    /// Expands the templates in the name and in early properties; those in late ones are evaluated as far as that can be
    /// done before the run. Says how much of the declaration there is now.
    pub(crate) fn expand(
        &mut self,
        declaration: &mut Declaration,
        diagnostics: &mut Diagnostics,
    ) -> Completeness {
        let completeness = self.expand_shared(declaration, diagnostics);
        match declaration.kind.behavior().makes {
            Makes::ItsName => {
                self.earlier.names.insert(PathBuf::from(&declaration.name));
            }
            Makes::Anything => self.earlier.anything = true,
        }
        if declaration.kind.behavior().learns_facts && self.scope.promise(&declaration.name).is_err() {
            let (kind, name) = (declaration.kind.name(), &declaration.name);
            let message = format!("{kind}#{name}: the machine has a fact of that name");
            let problem = Diagnostic::error("known-fact", message).at(declaration.name_span);
            diagnostics.push(problem.with_help(format!("`ccm facts {name}` shows it: choose another name")));
        }
        completeness
    }

    /// As [`Expansion::expand`], for what several resources share: nothing is made by it.
    pub(crate) fn expand_shared(
        &mut self,
        declaration: &mut Declaration,
        diagnostics: &mut Diagnostics,
    ) -> Completeness {
        let own = declaration.element.as_ref().map(|element| self.scope.within(element));
        let scope = own.as_ref().unwrap_or(self.scope);
        let mut of_name = Diagnostics::default();
        self.name(declaration, scope, &mut of_name);
        let completeness = if of_name.has_errors() { Completeness::Nameless } else { Completeness::Whole };
        let kind = declaration.kind;
        decrypt_source(declaration);
        let control = declaration.properties.iter().position(|entry| entry.key == "control");
        let (management, of_control) = self.conditions(declaration, scope);
        let mut of_properties: Vec<_> = control.map(|at| (at, of_control)).into_iter().collect();
        let (mut foreseen, mut placeholders) = (Vec::new(), Vec::new());
        for (at, entry) in
            declaration.properties.iter_mut().enumerate().filter(|(at, _)| Some(*at) != control)
        {
            let mut found = Diagnostics::default();
            found.extend(exposed::warning(kind, entry));
            let known = self.property(kind, entry, scope, management, &mut declaration.is_secret, &mut found);
            found.extend(secrecy::misplaced(kind, entry));
            if scope.has_placeholders() && entry.value.holds_secret() {
                placeholders.push(entry.key.clone());
            }
            foreseen.extend(known);
            of_properties.push((at, found));
        }
        declaration.foreseen = foreseen;
        declaration.placeholders = placeholders;
        declaration.management = management;
        declaration.mark_if_secret();
        // Only now it is known whether it is sensitive.
        let secrecy = Secrecy::of(&declaration.properties);
        let mut found = secrecy.uncovered(of_name);
        for (at, faults) in of_properties.into_iter().filter(|(_, faults)| !faults.is_empty()) {
            let Entry { key, value, .. } = &declaration.properties[at];
            let is_secret = |fault: &Diagnostic| {
                key == health_checks::PROPERTY && health_checks::is_secret(value, fault.span)
            };
            let (secret, rest): (Vec<_>, Vec<_>) = faults.into_iter().partition(is_secret);
            found.extend(Secrecy::Secret.uncovered(secret.into()));
            found.extend(secrecy.of_property(kind, key).uncovered(rest.into()));
        }
        cover(secrecy, found, declaration, diagnostics);
        declaration.properties.retain(|entry| secrecy::misplaced(kind, entry).is_none());
        completeness
    }

    /// Finds what is wrong with the conditions of a declaration in which nothing is to be expanded.
    pub(crate) fn judge_conditions(&self, declaration: &Declaration, diagnostics: &mut Diagnostics) {
        let secrecy = Secrecy::of(&declaration.properties);
        let (_, found) = self.conditions(declaration, self.scope);
        cover(secrecy, secrecy.uncovered(found), declaration, diagnostics);
    }

    /// Returns whether a declaration will be managed, and what is wrong with its conditions.
    fn conditions(&self, declaration: &Declaration, scope: &Scope) -> (Management, Diagnostics) {
        let mut found = Diagnostics::default();
        let control = declaration.properties.iter().find(|entry| entry.key == "control");
        let management = control.map(|control| self.control(&control.value, scope, &mut found));
        (management.unwrap_or(Management::Possible), found)
    }

    /// Returns what a late property will be, if that can be told.
    fn property(
        &mut self,
        kind: &dyn AnyType,
        entry: &mut Entry,
        scope: &Scope,
        management: Management,
        is_secret: &mut bool,
        diagnostics: &mut Diagnostics,
    ) -> Option<Entry> {
        let Entry { key, value, key_span } = entry;
        template::check_closed(value, self.source, diagnostics);
        let Some(property) = self.expandable(kind, key) else {
            if template::holds_template(value) {
                template::expand_properties(value, scope, self.source, diagnostics);
            }
            return None;
        };
        let (is_late, is_source) = (property.late, property.source);
        if property.kind == FieldKind::Data && template::keys_hold_template(value) {
            template::expand_keys(value, scope, self.source, diagnostics);
        }
        if is_late && property.kind != FieldKind::Data && template::keys_hold_template(value) {
            template::check_keys(value, scope, self.source, diagnostics);
        }
        if !template::holds_template(value) {
            if is_source && management == Management::Possible {
                diagnostics.extend(self.missing_source(value));
            }
            return None;
        }
        if !property.numbers {
            join(value, &property.kind);
        }
        if !is_late {
            template::expand_properties(value, scope, self.source, diagnostics);
            return None;
        }
        if management != Management::Possible {
            template::check(value, scope, self.source, diagnostics);
            return None;
        }
        let makes = |path: &Path| self.earlier.may_make(path);
        match template::foresee(value, scope, self.source, &makes, diagnostics) {
            Foreseen::Unknown { is_secret: is_known_secret } => {
                *is_secret |= is_known_secret;
                None
            }
            Foreseen::Value(value) => {
                *is_secret |= value.holds_secret();
                if is_source {
                    diagnostics.extend(self.missing_source(&value));
                }
                Some(Entry { key: key.clone(), key_span: *key_span, value })
            }
        }
    }

    fn name(&self, declaration: &mut Declaration, scope: &Scope, diagnostics: &mut Diagnostics) {
        let scalar = Scalar::new(std::mem::take(&mut declaration.name), Style::Joined);
        diagnostics.extend(template::torn(&scalar, declaration.name_span, self.source));
        let mut name = Node { value: Value::Scalar(scalar), span: declaration.name_span };
        template::expand(&mut name, scope, self.source, diagnostics);
        if let Value::Scalar(scalar) = name.value {
            if scalar.is_secret {
                diagnostics.push(template::secret_name().at(declaration.name_span));
            }
            scalar.shown().clone_into(&mut declaration.name);
        }
    }

    fn expandable(&mut self, kind: &dyn AnyType, key: &str) -> Option<schema::Expandable> {
        let known = self.known.entry(kind.name()).or_insert_with(|| schema::expandables(kind));
        known.iter().find(|property| property.key == key).cloned()
    }

    /// Looks for a file that comes with the manifest.
    fn missing_source(&self, value: &Node) -> Option<Diagnostic> {
        let text = value.as_str().filter(|text| !text.is_empty())?;
        if Path::new(text).is_absolute() || has_scheme(text) {
            return None;
        }
        let path = self.scope.working_directory().join(text);
        if look::is_there(&path) {
            return None;
        }
        let message = format!("source: there is no {}", path.display());
        Some(if self.earlier.may_make(&path) {
            Diagnostic::warning("missing-file", message)
                .at(value.span)
                .with_help("this is fine if an earlier resource makes it")
        } else {
            let problem = Diagnostic::error("missing-file", message).at(value.span);
            match template::nearest_file(&path) {
                Some(near) => problem.with_help(format!("did you mean `{near}`?")),
                None => problem.with_help(format!(
                    "a relative path starts at {}",
                    self.scope.working_directory().display()
                )),
            }
        })
    }

    /// Evaluates conditions as far as that can be done before the run. They are expressions as they are: nothing in them
    /// is expanded first.
    fn control(&self, control: &Node, scope: &Scope, diagnostics: &mut Diagnostics) -> Management {
        let mut management = Management::Possible;
        for entry in control.as_map().unwrap_or_default() {
            let Value::Scalar(scalar) = &entry.value.value else { continue };
            let found = match from_node::<bool>(&entry.value) {
                Ok(holds) => Some((holds, Basis::Constant)),
                Err(_) => self.condition(entry, scalar, scope, diagnostics),
            };
            let reason = match (entry.key.as_str(), found) {
                ("if", Some((false, _))) => IF_IS_FALSE,
                ("unless", Some((true, _))) => UNLESS_IS_TRUE,
                _ => continue,
            };
            management = match (management, found) {
                (Management::Off(reason), _) => Management::Off(reason),
                (_, Some((_, Basis::Files))) => Management::Unlikely,
                _ => Management::Off(reason),
            };
        }
        management
    }

    /// Returns whether a condition holds and on which basis, or `None` if that is known only in the run.
    fn condition(
        &self,
        Entry { key, value: Node { span, .. }, .. }: &Entry,
        scalar: &Scalar,
        scope: &Scope,
        diagnostics: &mut Diagnostics,
    ) -> Option<(bool, Basis)> {
        let (span, scope) = (*span, scope.before_run().for_turns());
        let place = |error| template_problem(scope.advise(error), scalar, span, self.source);
        if let Some(torn) = template::torn(scalar, span, self.source) {
            diagnostics.push(Diagnostic { severity: Severity::Error, ..torn });
            return None;
        }
        let condition = match template::Condition::parse(&scalar.text) {
            Ok(condition) => condition,
            Err(error) => {
                diagnostics.push(place(error));
                return None;
            }
        };
        let errors = condition.check(&scope);
        if !errors.is_empty() {
            diagnostics.extend(errors.into_iter().map(place));
            return None;
        }
        let evaluated = condition.evaluate(&scope);
        let basis = if scope.take_has_read() { Basis::Files } else { Basis::Constant };
        let waits = scope.take_waits_for_fleet();
        if scope.take_unlearned().is_some() || waits {
            return None;
        }
        match evaluated {
            Ok(value) => {
                let doubts = scope.take_doubts().into_iter();
                let warning = |doubt| template::doubtful(doubt, scalar, span, self.source);
                diagnostics.extend(doubts.map(warning));
                if value.as_bool().is_none() {
                    let found = value.type_name();
                    let message =
                        format!("control.{key} must give a boolean, not {found}: `{}`", scalar.text);
                    let help = value.as_str().and_then(text_as_boolean);
                    diagnostics.push(Diagnostic {
                        help,
                        ..Diagnostic::error("invalid-condition", message).at(span)
                    });
                }
                value.as_bool().map(|holds| (holds, basis))
            }
            Err(error) => {
                let is_open = match error.kind.innermost() {
                    ccm_expr::ErrorKind::NotYet(_) => true,
                    ccm_expr::ErrorKind::MissingFile { path } => self.earlier.may_make(path),
                    _ => false,
                };
                if !is_open {
                    let problem = place(error);
                    let message = format!("control.{key}: {}", problem.message);
                    diagnostics.push(Diagnostic { message, ..problem });
                }
                None
            }
        }
    }
}

/// Adds what was found in a declaration, each naming the resource.
fn cover(secrecy: Secrecy, mut found: Diagnostics, declaration: &Declaration, diagnostics: &mut Diagnostics) {
    for problem in found.iter_mut() {
        secrecy.cover(problem, declaration.kind, &declaration.name);
    }
    diagnostics.extend(found);
}

impl Earlier {
    fn may_make(&self, path: &Path) -> bool {
        self.anything || path.ancestors().any(|path| self.names.contains(path))
    }
}

/// A value keeps its type where the property takes one, and is joined as text where it takes nothing but text.
fn join(value: &mut Node, kind: &FieldKind) {
    let is_text = |kind: &FieldKind| matches!(kind, FieldKind::Text | FieldKind::Choice(_));
    match (&mut value.value, kind) {
        (_, kind) if is_text(kind) => template::join(value),
        (Value::Seq(items), FieldKind::List(of)) if is_text(of) => items.iter_mut().for_each(template::join),
        (Value::Map(entries), FieldKind::Map) => {
            for entry in entries {
                template::join(&mut entry.value);
            }
        }
        _ => {}
    }
}
