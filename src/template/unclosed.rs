//! Expressions that begin and never end: `${ Data.port` and `{{ join(x`.
//!
//! An opener without its closer is text, because a shell's `${HOME` and many other languages look like that. What follows
//! the opener shows whether an expression was meant.

use std::ops::Range;

use ccm_expr::{function_names, has_template, unclosed_openers};

use super::scope::FUNCTIONS;
use crate::document::{Diagnostic, Diagnostics, Node, Scalar, Source, Span, Style, Value};

/// The id of warnings and errors about such expressions.
pub(crate) const UNCLOSED: &str = "unclosed-expression";

/// Variables whose members only an expression reads.
const ROOTS: [&str; 6] = ["Data", "Facts", "Environ", "data", "facts", "environ"];

/// Returns where a text begins an expression that never ends: from the opener to the first name in it.
pub(super) fn unclosed(text: &str) -> Option<Range<usize>> {
    if !has_template(text) {
        return None;
    }
    unclosed_openers(text).into_iter().find_map(|opener| {
        let start = opener + 2;
        let blank = text[start..].len() - text[start..].trim_start().len();
        let name_start = start + blank;
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let name_end = name_start + text[name_start..].find(|c| !is_part(c))?;
        let name = &text[name_start..name_end];
        let is_function = || function_names().chain(FUNCTIONS.iter().copied()).any(|known| known == name);
        let is_meant = match text.as_bytes()[name_end] {
            b'.' => ROOTS.contains(&name),
            b'(' => is_function(),
            _ => false,
        };
        is_meant.then_some(opener..name_end + 1)
    })
}

/// Returns whether a text begins an expression and never ends it.
pub(crate) fn is_unclosed(text: &str) -> bool {
    unclosed(text).is_some()
}

/// Finds strings under a node that begin an expression and never end it.
pub(crate) fn check_closed(node: &Node, source: &Source, diagnostics: &mut Diagnostics) {
    match &node.value {
        Value::Scalar(scalar) => diagnostics.extend(torn(scalar, node.span, source)),
        Value::Seq(items) => items.iter().for_each(|item| check_closed(item, source, diagnostics)),
        Value::Map(entries) => {
            for entry in entries {
                check_closed(&entry.value, source, diagnostics);
            }
        }
    }
}

/// Returns the problem of a string that begins an expression and never ends it.
pub(crate) fn torn(scalar: &Scalar, span: Span, source: &Source) -> Option<Diagnostic> {
    if scalar.style == Style::Literal || scalar.is_secret {
        return None;
    }
    let part = unclosed(&scalar.text)?;
    let sign = &scalar.text[part.clone()];
    if scalar.style == Style::Plain && ends_at_comment(scalar, span, source) {
        let message =
            format!("YAML ends this value at ` #`, inside the expression that begins with `{sign}`");
        return Some(
            Diagnostic::error(UNCLOSED, message)
                .at(span)
                .with_help("put the value in quotes: without them, ` #` begins a comment"),
        );
    }
    Some(stays_open(sign).at(source.within(span, &scalar.text, part)))
}

/// Warns of an expression that never ends.
pub(super) fn stays_open(sign: &str) -> Diagnostic {
    let (closer, escaped) = if sign.starts_with('$') { ("}", "$${") } else { ("}}", "{{{{") };
    Diagnostic::warning(
        UNCLOSED,
        format!("`{sign}` begins an expression that never ends, and stays as it is"),
    )
    .with_help(format!("end it with `{closer}`, or begin it with `{escaped}` if it is meant as text"))
}

/// Returns whether a comment ended a plain YAML scalar.
fn ends_at_comment(Scalar { text, .. }: &Scalar, span: Span, source: &Source) -> bool {
    let last = text.trim_end().len().saturating_sub(1);
    let end = source.within(span, text, last..last + 1).end as usize;
    let rest = source.text.get(end..).unwrap_or_default();
    rest.trim_start_matches([' ', '\t']).starts_with('#') && rest.starts_with([' ', '\t'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_an_expression_begins_with_is_missed_its_end() {
        for (text, sign) in [
            ("a ${ Data.x b", Some("${ Data.")),
            ("{{data.x }", Some("{{data.")),
            ("{{ Facts.os", Some("{{ Facts.")),
            ("${ join(map(Data.l, \"x\" +", Some("${ join(")),
            ("${lookup('a.b')", Some("${lookup(")),
            ("${ Data.a } and ${ Environ.b", Some("${ Environ.")),
            ("${ Data.x }", None),
            ("${HOME", None),
            ("${ Database.x", None),
            ("${ frobnicate(x", None),
            ("$${ Data.x", None),
            ("{{{{ Data.x", None),
            ("{{ .Values.x", None),
            ("${ Data", None),
            ("plain", None),
        ] {
            assert_eq!(unclosed(text).map(|part| &text[part]), sign, "{text}");
        }
    }
}
