//! Requests to `ccm ensure api`.

use serde_json::Value as Json;

use crate::{
    declare::{Completeness, Declaration, Expansion},
    document::{self, Diagnostic, Diagnostics, Entry, Node, Severity, Source, Style, Value, closest},
    resource::{AnyType, Resource, declaration_schema},
    template::{Scope, holds_template},
    types,
    vocabulary::schema,
};

const REQUEST: &str = "io.choria.ccm.v1.resource.ensure.request";

/// What `{{ }}` and `${ }` are in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Texts {
    /// Text like any other: programs say what they mean.
    Literal,
    /// Templates, as in a manifest.
    Templates,
}

const KEYS: [&str; 4] = ["protocol", "id", "type", "properties"];

/// A request, as far as it could be understood.
pub(crate) struct Request {
    /// A text or number of the program that asks.
    pub(super) id: Option<Json>,
    /// The resource that it is about, and the request as a text that messages can point into; or what is wrong with it.
    pub(crate) asked: Result<(Source, Resource), String>,
    /// What was probably not meant.
    pub(super) warnings: Vec<String>,
}

impl Request {
    pub(crate) fn read(request: Vec<u8>, texts: Texts, scope: &Scope) -> Self {
        let refused = |error: String| Self { id: None, asked: Err(error), warnings: Vec::new() };
        let source = match Source::read("request", request) {
            Ok(source) => source,
            Err(problem) => return refused(problem.message),
        };
        let root = match document::parse(&source) {
            Ok(root) => root,
            Err(problems) => return refused(told(&problems, &source, Severity::Error).join("\n")),
        };
        let id = root.lookup("id").and_then(id);
        let has_templates = root.lookup("properties").is_some_and(holds_template);
        let mut warnings = Vec::new();
        if texts == Texts::Literal && has_templates {
            warnings.push(LITERAL.to_owned());
        }
        let mut diagnostics = Diagnostics::default();
        let resource = resource_of(&root, texts, Expansion::new(scope, &source), &mut diagnostics);
        warnings.extend(told(&diagnostics, &source, Severity::Warning));
        let asked = match resource {
            Some(resource) => Ok((source, resource)),
            None => Err(told(&diagnostics, &source, Severity::Error).join("\n")),
        };
        Self { id, asked, warnings }
    }
}

/// Said of a request in which something looks like a template.
const LITERAL: &str =
    "the request has `{{` or `${` in it, which is text here: `ccm ensure api` with --templates expands it";

/// Returns what can be the id of a request: a text or a number.
fn id(node: &Node) -> Option<Json> {
    document::from_node::<Json>(node).ok().filter(|id| id.is_string() || id.is_number())
}

/// Returns the resource that a request is about, unless something is wrong with it; everything that is, is collected.
fn resource_of(
    root: &Node,
    texts: Texts,
    mut expansion: Expansion,
    diagnostics: &mut Diagnostics,
) -> Option<Resource> {
    let Some(entries) = root.as_map() else {
        let message = format!("a request is a map, not {}", root.kind());
        diagnostics.push(Diagnostic::error("request-not-a-map", message).at(root.span));
        return None;
    };
    envelope(root, entries, diagnostics);
    let mut declaration = declaration(root, texts).map_err(|problem| diagnostics.push(problem)).ok()?;
    let completeness = match texts {
        Texts::Templates => expansion.expand(&mut declaration, diagnostics),
        Texts::Literal => {
            expansion.judge_conditions(&declaration, diagnostics);
            Completeness::Whole
        }
    };
    let resource = declaration.resolve(completeness, diagnostics);
    resource.filter(|_| !diagnostics.has_errors())
}

/// Finds what is wrong with what stands around the resource.
fn envelope(root: &Node, entries: &[Entry], diagnostics: &mut Diagnostics) {
    for entry in entries.iter().filter(|entry| !KEYS.contains(&entry.key.as_str())) {
        let problem =
            Diagnostic::error("unknown-key", format!("unknown key `{}`", entry.key)).at(entry.key_span);
        diagnostics.push(match closest(&entry.key, KEYS) {
            Some(near) => problem.with_help(format!("did you mean `{near}`?")),
            None => problem,
        });
    }
    if let Some(node) = root.lookup("id").filter(|node| id(node).is_none()) {
        let message = format!("`id` must be a string or a number, not {}", node.kind());
        diagnostics.push(Diagnostic::error("invalid-id", message).at(node.span));
    }
    if root.lookup("protocol").and_then(Node::as_str) != Some(REQUEST) {
        let span = root.lookup("protocol").map_or(root.span, |protocol| protocol.span);
        diagnostics
            .push(Diagnostic::error("wrong-protocol", format!("`protocol` must be \"{REQUEST}\"")).at(span));
    }
}

fn declaration(root: &Node, texts: Texts) -> Result<Declaration, Diagnostic> {
    let kind = kind(root)?;
    let Some(properties) = root.lookup("properties") else {
        return Err(Diagnostic::error("missing-properties", "`properties` is missing").at(root.span));
    };
    let mut properties = properties.clone();
    if texts == Texts::Literal {
        literal(&mut properties);
    }
    let Value::Map(mut entries) = properties.value else {
        let message = format!("`properties` must be a map, not {}", properties.value.kind());
        return Err(Diagnostic::error("properties-not-a-map", message).at(properties.span));
    };
    let name = entries.iter().position(|entry| entry.key == "name").map(|at| entries.remove(at));
    match name.map(|Entry { value, .. }| value) {
        Some(name) => match name.as_str() {
            Some(text) => Ok(Declaration::new(kind, text.to_owned(), name.span, entries)),
            None => {
                Err(Diagnostic::error("missing-name", "`properties.name` must be a string").at(name.span))
            }
        },
        None => Err(Diagnostic::error("missing-name", "`properties.name` is missing").at(properties.span)),
    }
}

fn kind(root: &Node) -> Result<&'static dyn AnyType, Diagnostic> {
    let Some(node) = root.lookup("type") else {
        return Err(Diagnostic::error("missing-type", "`type` is missing").at(root.span));
    };
    let Some(name) = node.as_str() else {
        return Err(Diagnostic::error(
            "unknown-type",
            format!("`type` must be a string, not {}", node.kind()),
        )
        .at(node.span));
    };
    types::find(name).ok_or_else(|| types::unknown(name).at(node.span))
}

fn literal(node: &mut Node) {
    match &mut node.value {
        Value::Scalar(scalar) if scalar.style == Style::Quoted => scalar.style = Style::Literal,
        Value::Scalar(scalar) => {
            // A plain string of YAML is text as well; numbers, booleans and null keep their type.
            if matches!(scalar.typed(), document::Typed::Str(_)) {
                scalar.style = Style::Literal;
            }
        }
        Value::Seq(items) => items.iter_mut().for_each(literal),
        Value::Map(entries) => entries.iter_mut().for_each(|entry| literal(&mut entry.value)),
    }
}

/// Returns what was found in one text, each with its place.
fn told(found: &Diagnostics, source: &Source, severity: Severity) -> Vec<String> {
    let told = |problem: &Diagnostic| {
        let help = problem.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
        format!("{}{help}", problem.located(source))
    };
    found.iter().filter(|problem| problem.severity == severity).map(told).collect()
}

/// The schema of a request.
pub(in crate::cli) fn request_schema() -> Json {
    let of_type = |kind: &&'static dyn AnyType| {
        let mut properties = declaration_schema(*kind);
        properties["properties"]["name"] = serde_json::json!({ "type": "string" });
        properties["required"] = serde_json::json!(["name"]);
        serde_json::json!({ "properties": { "type": { "const": kind.name() }, "properties": properties } })
    };
    let schema = serde_json::json!({
        "type": "object",
        "required": ["protocol", "type", "properties"],
        "properties": { "protocol": { "const": REQUEST }, "id": { "type": ["string", "number"] }, "type": {}, "properties": {} },
        "additionalProperties": false,
        "oneOf": types::TYPES.iter().map(of_type).collect::<Vec<_>>(),
    });
    schema::document("ccm request", &schema)
}
