//! Sets a value in the text of a document.

use std::fmt::Write;

use super::{
    edits::Edits,
    section::line_end,
    spelling::{self, quoted},
    value::Kind,
};
use crate::{
    document::{Entry, Node, Source, Span, Value},
    secrets::Format,
};

/// A value to set.
pub(crate) enum NewValue {
    Text(String),
    Json(serde_json::Value),
}

/// Returns the text of a document in which a value is set where names lead.
pub(crate) fn set(
    source: &Source,
    root: &Node,
    format: Format,
    names: &[String],
    value: &NewValue,
) -> Result<String, String> {
    let depth = match format {
        Format::Yaml => None,
        Format::Dotenv => Some(1),
        Format::Ini => Some(2),
    };
    if depth.is_some_and(|depth| depth != names.len()) {
        let form = if format == Format::Ini { "SECTION.KEY" } else { "KEY" };
        return Err(format!("a path in this format has the form {form}"));
    }
    if depth.is_some() && matches!(value, NewValue::Json(_)) {
        return Err("values of this format are strings".to_owned());
    }
    let text = source.text.as_str();
    let is_bracketed =
        |node: &Node| format == Format::Yaml && text[node.span.start as usize..].starts_with(['{', '[']);
    let (mut node, mut is_flow, mut at) = (root, false, 0);
    while at < names.len() {
        is_flow |= is_bracketed(node);
        let next = match &node.value {
            Value::Map(entries) => {
                entries.iter().find(|entry| entry.key == names[at]).map(|entry| &entry.value)
            }
            Value::Seq(items) => {
                let item = names[at].parse().ok().and_then(|at: usize| items.get(at));
                Some(item.ok_or_else(|| format!("`{}` is not the number of an item", names[at]))?)
            }
            Value::Scalar(_) => None,
        };
        let Some(next) = next else { break };
        node = next;
        at += 1;
    }
    let mut edits = Edits::default();
    if at == names.len() {
        let span = node.span;
        let written = written(value, format, is_flow, spelling::indentation(text, span))?;
        let gap = if format == Format::Yaml && text[..span.start as usize].ends_with(':') { " " } else { "" };
        edits.replace(span, format!("{gap}{written}"));
        return Ok(edits.apply(text));
    }
    let rest = &names[at..];
    match &node.value {
        Value::Map(entries) if is_flow || is_bracketed(node) => {
            let close = node.span.end as usize - 1;
            let before = text[..close].trim_end().len();
            let comma = if entries.is_empty() { "" } else { "," };
            let body = format!("{comma} {}: {}", quoted(&rest[0]), nested(&rest[1..], value));
            edits.replace(Span::new(before, before), body);
        }
        Value::Map(entries) => insert(&mut edits, text, entries, format, rest, value)?,
        Value::Scalar(_) if node.is_null() && at > 0 => {
            edits.replace(node.span, format!(" {{ {}: {} }}", quoted(&rest[0]), nested(&rest[1..], value)));
        }
        Value::Scalar(_) if node.is_null() => insert(&mut edits, text, &[], format, rest, value)?,
        _ => return Err(format!("`{}` is not a map", names[..at].join("."))),
    }
    Ok(edits.apply(text))
}

/// Inserts an entry after the last one of a block.
fn insert(
    edits: &mut Edits,
    text: &str,
    entries: &[Entry],
    format: Format,
    names: &[String],
    value: &NewValue,
) -> Result<(), String> {
    let column = entries.first().map_or(0, |entry| {
        let start = entry.key_span.start as usize;
        start - text[..start].rfind('\n').map_or(0, |newline| newline + 1)
    });
    let end = entries.last().map_or(text.len(), |last| line_end(text, last.value.span.end as usize));
    let gap = if end == 0 || text[..end].ends_with('\n') { "" } else { "\n" };
    let body = match (format, names) {
        (Format::Ini, [section, key]) => {
            format!("[{section}]\n{key} = {}\n", written(value, format, false, 0)?)
        }
        (Format::Ini, [key]) => {
            // A section without keys has no position of a key.
            if entries.is_empty() {
                return Err("add the first key of a section with `ccm secret edit`".to_owned());
            }
            format!("{key} = {}\n", written(value, format, false, 0)?)
        }
        (Format::Dotenv, [key]) => format!("{key}={}\n", written(value, format, false, 0)?),
        _ => block(names, column, value)?,
    };
    edits.replace(Span::new(end, end), format!("{gap}{body}"));
    Ok(())
}

fn block(names: &[String], column: usize, value: &NewValue) -> Result<String, String> {
    let mut lines = String::new();
    for (depth, name) in names.iter().enumerate() {
        let indent = " ".repeat(column + 4 * depth);
        let written = if depth + 1 == names.len() {
            format!(" {}", written(value, Format::Yaml, false, column + 4 * depth + 4)?)
        } else {
            String::new()
        };
        let _ = writeln!(lines, "{indent}{}:{written}", key(name));
    }
    Ok(lines)
}

/// Returns a key of YAML.
fn key(name: &str) -> String {
    let is_simple =
        name.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.'))
            && name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && !["true", "false", "null"].contains(&name.to_lowercase().as_str());
    if is_simple { name.to_owned() } else { quoted(name) }
}

fn nested(names: &[String], value: &NewValue) -> String {
    let json = match value {
        NewValue::Text(text) => serde_json::Value::from(text.as_str()),
        NewValue::Json(json) => json.clone(),
    };
    let nested = names.iter().rev().fold(json, |inner, name| serde_json::json!({ name: inner }));
    nested.to_string()
}

fn written(value: &NewValue, format: Format, is_flow: bool, indentation: usize) -> Result<String, String> {
    match value {
        NewValue::Json(json) => Ok(json.to_string()),
        NewValue::Text(text) => spelling::of_plain(Kind::Str, text, format, is_flow, indentation)
            .ok_or_else(|| "this format has no values with several lines".to_owned()),
    }
}
