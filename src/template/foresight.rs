//! What templates that are expanded only later come to by what is known when the manifest is loaded.

use std::path::Path;

use ccm_expr::{Doubt, DoubtKind, Error, ErrorKind, Template};

use super::{
    Scope,
    expand::{each_template, evaluate, problem},
    foreign::{Suspect, Suspicion, foreign},
    unclosed::stays_open,
};
use crate::document::{Diagnostic, Diagnostics, Node, Scalar, Severity, Source, Span, from_value};

/// What was found out about the templates below a node.
pub(crate) enum Foreseen {
    /// They come to this, whatever happens before the resource's turn.
    Value(Node),
    /// The result is known only at run time. `is_secret` if a secret value is part of it even now.
    Unknown { is_secret: bool },
}

/// The ids of warnings about what was probably not meant.
pub(crate) const DOUBTS: [&str; 3] = ["missing-member", "mixed-comparison", "case-comparison"];

/// Whether something that comes earlier may make a file.
type Maker<'a> = &'a dyn Fn(&Path) -> bool;

/// Evaluates templates with what is known before the run, and says what is certain to go wrong with them.
pub(crate) fn foresee(
    node: &Node,
    scope: &Scope,
    source: &Source,
    makes: Maker,
    diagnostics: &mut Diagnostics,
) -> Foreseen {
    let scope = scope.before_run().for_turns();
    let mut copy = node.clone();
    let (mut is_known, mut is_secret) = (true, false);
    each_template(&mut copy, &mut |scalar, span| {
        let place = Place { scalar, span, source };
        diagnostics.extend(place.foreign());
        let value = place.value(&scope, makes, &mut is_secret, diagnostics);
        diagnostics.extend(scope.take_suspects().into_iter().map(|found| place.suspect_in_file(&found)));
        is_known &= value.is_some();
        value
    });
    if is_known { Foreseen::Value(copy) } else { Foreseen::Unknown { is_secret } }
}

/// A template in a document.
struct Place<'a> {
    scalar: &'a Scalar,
    span: Span,
    source: &'a Source,
}

impl Place<'_> {
    fn value(
        &self,
        scope: &Scope,
        makes: Maker,
        is_secret: &mut bool,
        diagnostics: &mut Diagnostics,
    ) -> Option<Node> {
        let template = match Template::parse(&self.scalar.text) {
            Ok(template) => template,
            Err(error) => {
                diagnostics.push(self.problem(error, scope));
                return None;
            }
        };
        let unknown = template.check(scope);
        if !unknown.is_empty() {
            diagnostics.extend(unknown.into_iter().map(|error| self.problem(error, scope)));
            return None;
        }
        let value = evaluate(&template, self.scalar, scope);
        let (has_read, doubts) = (scope.take_has_read(), scope.take_doubts());
        let waits = scope.take_waits_for_fleet();
        if scope.take_unlearned().is_some() || waits {
            return None;
        }
        match value {
            Ok(value) => {
                let warning = |doubt| doubtful(doubt, self.scalar, self.span, self.source);
                diagnostics.extend(doubts.into_iter().map(warning));
                // What a file holds may be something else by then.
                let node = from_value(&value, self.span);
                *is_secret |= node.holds_secret();
                let is_placeholder = scope.has_placeholders() && node.holds_secret();
                (!has_read && !is_placeholder).then_some(node)
            }
            Err(error) if scope.has_placeholders() && error.kind.is_masked() => {
                *is_secret = true;
                None
            }
            Err(error) => {
                diagnostics.extend(self.failed(error, scope, makes));
                None
            }
        }
    }

    fn failed(&self, error: Error, scope: &Scope, makes: Maker) -> Option<Diagnostic> {
        match error.kind.innermost() {
            ErrorKind::NotYet(_) => None,
            ErrorKind::MissingFile { path } if makes(path) => {
                let problem = self.problem(error, scope);
                let help = "this is fine if an earlier resource makes it".to_owned();
                Some(Diagnostic {
                    id: "missing-file",
                    severity: Severity::Warning,
                    help: Some(help),
                    ..problem
                })
            }
            ErrorKind::MissingFile { .. } => {
                Some(Diagnostic { id: "missing-file", ..self.problem(error, scope) })
            }
            _ => Some(self.problem(error, scope)),
        }
    }

    fn problem(&self, error: Error, scope: &Scope) -> Diagnostic {
        problem(scope.advise(error), self.scalar, self.span, self.source)
    }

    /// Something of another template language beside our own expressions.
    fn foreign(&self) -> Option<Diagnostic> {
        let (language, part) = foreign(&self.scalar.text)?;
        let at = self.source.within(self.span, &self.scalar.text, part.clone());
        Some(stays(self.scalar.text[part].trim(), language).at(at))
    }

    /// Warns of a part of a file that is expanded here.
    fn suspect_in_file(&self, Suspect { place, sign, suspicion }: &Suspect) -> Diagnostic {
        let found = match suspicion {
            Suspicion::Foreign(language) => stays(sign, language),
            Suspicion::Unclosed => stays_open(sign),
        };
        let found = found.at(self.span);
        Diagnostic { message: format!("template: {place}: {}", found.message), ..found }
    }
}

/// Warns of a sign of another template language.
fn stays(sign: &str, language: &str) -> Diagnostic {
    let message = format!("`{sign}` belongs to {language} and stays as it is");
    let help = "templates here are `{{ }}` and `${ }` with expressions such as `x ? \"a\" : \"b\"`; \
                `jinja('FILE')` reads those of Jinja";
    Diagnostic::warning("foreign-template", message).with_help(help)
}

/// Warns of what was probably not meant.
pub(crate) fn doubtful(
    Doubt { kind, place, span }: Doubt,
    scalar: &Scalar,
    whole: Span,
    source: &Source,
) -> Diagnostic {
    let at = if place.is_some() { whole } else { source.within(whole, &scalar.text, span) };
    let place = place.map(|place| format!("{place}: ")).unwrap_or_default();
    let [missing, mixed, case] = DOUBTS;
    let (id, message, help) = match kind {
        DoubtKind::MissingMember { path, suggestion: Some(near) } => {
            (missing, format!("`{path}` does not exist"), format!("did you mean `{near}`?"))
        }
        DoubtKind::MissingMember { path, suggestion: None } => (
            missing,
            format!("`{path}` does not exist"),
            "if it may be missing, give a default with `??` or read it with `?.`".to_owned(),
        ),
        DoubtKind::MixedComparison { number, text } => (
            mixed,
            format!("the number {number} is compared with the text \"{text}\": they are never the same"),
            format!("compare with {number}, or make text of the number with `string(...)`"),
        ),
        DoubtKind::CaseComparison { path, value, constant } => (
            case,
            format!("`{path}` is \"{value}\", which never equals \"{constant}\": only the case differs"),
            format!("compare with \"{value}\""),
        ),
    };
    Diagnostic::warning(id, format!("{place}{message}")).at(at).with_help(help)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::parse;

    #[test]
    fn a_file_that_is_not_there_is_no_mistake_where_something_earlier_may_make_it() {
        let source = Source { name: "site.yaml".to_owned(), text: "\"${ file('none.txt') }\"".to_owned() };
        let node = parse(&source).unwrap();
        let scope = Scope::new(ccm_expr::Value::Null, ccm_expr::Value::Null, "/nowhere".into());
        for (is_made, severity, help) in [
            (true, Severity::Warning, Some("this is fine if an earlier resource makes it")),
            (false, Severity::Error, None),
        ] {
            let mut found = Diagnostics::default();
            let foreseen = foresee(&node, &scope, &source, &|_: &Path| is_made, &mut found);
            assert!(matches!(foreseen, Foreseen::Unknown { .. }));
            let found: Vec<_> =
                found.iter().map(|found| (found.id, found.severity, found.help.as_deref())).collect();
            assert_eq!(found, [("missing-file", severity, help)]);
        }
    }
}
