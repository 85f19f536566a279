//! Strings of a document become the values of their expressions.

use ccm_expr::{MASK, Template, has_template};

use super::{Scope, foresight::doubtful};
use crate::document::{Diagnostic, Diagnostics, Entry, Node, Scalar, Source, Span, Style, Value, from_value};

/// Expands every string below a node, and says what is wrong with those that cannot be; they stay as they are.
pub(crate) fn expand(node: &mut Node, scope: &Scope, source: &Source, diagnostics: &mut Diagnostics) {
    expand_with(any, node, scope, source, diagnostics);
}

/// As [`expand`], where nothing is not a value.
pub(crate) fn expand_properties(
    node: &mut Node,
    scope: &Scope,
    source: &Source,
    diagnostics: &mut Diagnostics,
) {
    expand_with(evaluate, node, scope, source, diagnostics);
}

type Evaluate = fn(&Template, &Scalar, &Scope) -> Result<ccm_expr::Value, ccm_expr::Error>;

fn any(template: &Template, scalar: &Scalar, scope: &Scope) -> Result<ccm_expr::Value, ccm_expr::Error> {
    match scalar.style {
        Style::Joined => template.render(scope).map(ccm_expr::Value::from),
        _ => template.evaluate(scope),
    }
}

/// Returns what a template in a property comes to: text where nothing else will do, and never nothing.
pub(super) fn evaluate(
    template: &Template,
    scalar: &Scalar,
    scope: &Scope,
) -> Result<ccm_expr::Value, ccm_expr::Error> {
    match scalar.style {
        Style::Joined => template.render(scope).map(ccm_expr::Value::from),
        _ => template.require(scope),
    }
}

fn expand_with(
    evaluate: Evaluate,
    node: &mut Node,
    scope: &Scope,
    source: &Source,
    diagnostics: &mut Diagnostics,
) {
    each_template(node, &mut |scalar, span| {
        if scope.is_exhausted() {
            // That is said of the first template that there was no memory for.
            return None;
        }
        let expanded = Template::parse(&scalar.text).and_then(|template| evaluate(&template, scalar, scope));
        let doubts = scope.take_doubts();
        if let Some(message) = scope.take_asked_too_early() {
            let problem = Diagnostic::error("not-learned-yet", message).at(span);
            let help =
                "use it in `control` and in properties that are worked out when the turn of a resource comes";
            diagnostics.push(problem.with_help(help));
            return None;
        }
        match expanded.and_then(|value| scope.keep(value, &scalar.text)) {
            Ok(value) => {
                let warning = |doubt| doubtful(doubt, scalar, span, source);
                diagnostics.extend(doubts.into_iter().map(warning));
                Some(from_value(&value, span))
            }
            // A placeholder is not the value that the expression is for.
            Err(error) if scope.has_placeholders() && error.kind.is_masked() => {
                let placeholder = Scalar::secret(MASK, Style::Literal);
                Some(Node { value: Value::Scalar(placeholder), span })
            }
            Err(error) => {
                diagnostics.push(problem(scope.advise(error), scalar, span, source));
                None
            }
        }
    });
}

/// Says what can be told to be wrong with templates that are expanded only later.
pub(crate) fn check(node: &Node, scope: &Scope, source: &Source, diagnostics: &mut Diagnostics) {
    // Nothing is replaced, so that the copy stays what it is.
    each_template(&mut node.clone(), &mut |scalar, span| {
        let errors = match Template::parse(&scalar.text) {
            Ok(template) => template.check(scope),
            Err(error) => vec![error],
        };
        diagnostics
            .extend(errors.into_iter().map(|error| problem(scope.advise(error), scalar, span, source)));
        None
    });
}

/// From now on, templates below a node come to text: its place takes nothing else.
pub(crate) fn join(node: &mut Node) {
    match &mut node.value {
        Value::Scalar(scalar) if is_template(scalar) => scalar.style = Style::Joined,
        Value::Scalar(_) => {}
        Value::Seq(items) => items.iter_mut().for_each(join),
        Value::Map(entries) => entries.iter_mut().for_each(|entry| join(&mut entry.value)),
    }
}

/// Expands the keys of all maps below a node.
pub(crate) fn expand_keys(node: &mut Node, scope: &Scope, source: &Source, diagnostics: &mut Diagnostics) {
    match &mut node.value {
        Value::Scalar(_) => {}
        Value::Seq(items) => items.iter_mut().for_each(|item| expand_keys(item, scope, source, diagnostics)),
        Value::Map(entries) => {
            for Entry { key, key_span, value } in entries {
                if has_template(key) {
                    let scalar = Scalar::new(std::mem::take(key), Style::Joined);
                    let mut name = Node { value: Value::Scalar(scalar), span: *key_span };
                    expand(&mut name, scope, source, diagnostics);
                    if let Value::Scalar(scalar) = name.value {
                        if scalar.is_secret {
                            diagnostics.push(secret_name().at(*key_span));
                        }
                        scalar.shown().clone_into(key);
                    }
                }
                expand_keys(value, scope, source, diagnostics);
            }
        }
    }
}

/// Reports errors in keys of maps that are expanded only later.
pub(crate) fn check_keys(node: &Node, scope: &Scope, source: &Source, diagnostics: &mut Diagnostics) {
    match &node.value {
        Value::Scalar(_) => {}
        Value::Seq(items) => items.iter().for_each(|item| check_keys(item, scope, source, diagnostics)),
        Value::Map(entries) => {
            for Entry { key, key_span, value } in entries {
                if has_template(key) {
                    let scalar = Scalar::new(key.clone(), Style::Joined);
                    let name = Node { value: Value::Scalar(scalar), span: *key_span };
                    check(&name, scope, source, diagnostics);
                }
                check_keys(value, scope, source, diagnostics);
            }
        }
    }
}

/// Returns the error about a secret value in a name, which is shown everywhere.
pub(crate) fn secret_name() -> Diagnostic {
    Diagnostic::error("secret-name", "a secret value cannot be part of a name or reference")
        .with_help("use a value that is not encrypted: names are shown in messages, events and records")
}

/// Whether a key of a map below a node is to be expanded.
pub(crate) fn keys_hold_template(node: &Node) -> bool {
    match &node.value {
        Value::Scalar(_) => false,
        Value::Seq(items) => items.iter().any(keys_hold_template),
        Value::Map(entries) => {
            entries.iter().any(|entry| has_template(&entry.key) || keys_hold_template(&entry.value))
        }
    }
}

/// Whether anything below a node is to be expanded.
pub(crate) fn holds_template(node: &Node) -> bool {
    match &node.value {
        Value::Scalar(scalar) => is_template(scalar),
        Value::Seq(items) => items.iter().any(holds_template),
        Value::Map(entries) => entries.iter().any(|entry| holds_template(&entry.value)),
    }
}

/// Text that came out of a template is final.
fn is_template(scalar: &Scalar) -> bool {
    scalar.style != Style::Literal && !scalar.is_secret && has_template(&scalar.text)
}

pub(super) fn each_template(node: &mut Node, replace: &mut dyn FnMut(&Scalar, Span) -> Option<Node>) {
    match &mut node.value {
        Value::Scalar(scalar) => {
            if is_template(scalar)
                && let Some(new) = replace(scalar, node.span)
            {
                *node = new;
            }
        }
        Value::Seq(items) => items.iter_mut().for_each(|item| each_template(item, replace)),
        Value::Map(entries) => entries.iter_mut().for_each(|entry| each_template(&mut entry.value, replace)),
    }
}

/// An error in an expression, at its place in the document.
pub(crate) fn problem(error: ccm_expr::Error, scalar: &Scalar, span: Span, source: &Source) -> Diagnostic {
    let at = source.within(span, &scalar.text, error.span);
    Diagnostic { help: error.help, ..Diagnostic::error("invalid-expression", error.kind.to_string()).at(at) }
}
