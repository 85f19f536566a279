//! What was found in manifests as SARIF 2.1.0, for code hosts and editors.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    document::{Diagnostic, Review, Severity, Source, Span},
    visible::visible,
};

/// Whether everything could be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Completeness {
    Whole,
    /// Something could not be read.
    Partial,
}

/// Returns a log with everything that was found.
pub(super) fn log(reviews: &[Review], completeness: Completeness) -> Value {
    let found = || reviews.iter().flat_map(|review| review.diagnostics.iter());
    let ids: BTreeSet<&str> = found().map(|diagnostic| diagnostic.id).collect();
    let rules: Vec<Value> = ids.iter().map(|id| json!({ "id": id })).collect();
    let results: Vec<Value> = reviews
        .iter()
        .flat_map(|Review { source, diagnostics }| {
            diagnostics.iter().map(|diagnostic| result(diagnostic, source))
        })
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "ccm", "version": env!("CARGO_PKG_VERSION"), "rules": rules } },
            "invocations": [{ "executionSuccessful": completeness == Completeness::Whole }],
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn result(diagnostic: &Diagnostic, source: &Source) -> Value {
    let level = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let help = diagnostic.help.as_ref().map(|help| format!("\nhelp: {help}")).unwrap_or_default();
    let also = diagnostic.also.iter().map(|(span, label)| {
        let mut place = location(Some(*span), source);
        place["message"] = json!({ "text": label });
        place
    });
    json!({
        "ruleId": diagnostic.id,
        "level": level,
        "message": { "text": visible(&format!("{}{help}", diagnostic.message)) },
        "locations": [location(diagnostic.span, source)],
        "relatedLocations": also.collect::<Vec<_>>(),
    })
}

fn location(span: Option<Span>, source: &Source) -> Value {
    let mut place = json!({ "artifactLocation": { "uri": uri(&source.name) } });
    if let Some(span) = span {
        let (line, column) = source.line_column(span.start);
        let (end_line, end_column) = source.line_column(span.end);
        place["region"] = json!({
            "startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column,
        });
    }
    json!({ "physicalLocation": place })
}

/// Returns the name of a file as a reference to it: what is not plain in one is escaped byte by byte.
fn uri(name: &str) -> String {
    let escaped = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    if crate::vocabulary::has_scheme(name) { name.to_owned() } else { name.bytes().map(escaped).collect() }
}
