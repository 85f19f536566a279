//! Documents in the format of SOPS: readable keys, encrypted values, and a MAC over all of them.
//!
//! A random data key encrypts the values. The section `sops` has the data key, encrypted for each recipient, and the MAC.
//! The path of keys is authenticated with each value; indices of lists are not part of it.

mod comments;
mod edits;
mod flat;
mod metadata;
mod plain;
mod section;
mod selection;
mod set;
mod shamir;
mod spelling;
mod value;
mod walk;
mod write;

pub(crate) use metadata::{AgeKey, Group, Metadata, invalid};
pub(crate) use selection::{RULES, Selection};
pub(crate) use set::{NewValue, set};
pub(crate) use shamir::{Part, combine, split};
pub(crate) use spelling::quoted;
pub(crate) use value::{Cipher, DataKey, PREFIX, new_data_key};
pub(crate) use walk::{Opened, fill, open, placeholders};
pub(crate) use write::{Reuse, Revealed, reveal, seal};

use metadata::SECTION;

use super::format::Format;
use crate::document::{Diagnostic, Diagnostics, Entry, Node, Scalar, Source, Span, Value, first_anchor};

/// A document that is encrypted, in two parts.
pub(crate) struct Document {
    /// The tree without the section `sops`.
    pub(crate) root: Node,
    pub(crate) metadata: Metadata,
    pub(crate) metadata_span: Span,
    pub(crate) format: Format,
}

/// Takes an encrypted document apart; `None` if the document is not encrypted.
pub(crate) fn document(
    root: &Node,
    format: Format,
    source: &Source,
) -> Result<Option<Document>, Diagnostics> {
    let Some(entries) = root.as_map() else {
        return match first_ciphertext(root) {
            Some(span) => Err(without_section(span).into()),
            None => Ok(None),
        };
    };
    let Some((section, rest)) = section_of(entries, format)? else {
        return match first_ciphertext(root) {
            Some(span) => Err(without_section(span).into()),
            None => Ok(None),
        };
    };
    if format == Format::Yaml
        && let Some(span) = first_anchor(&source.text)
    {
        let problem =
            invalid("an encrypted document has no anchors and aliases: SOPS does not keep them", span);
        return Err(problem.into());
    }
    let metadata = Metadata::of(&section)?;
    let root = Node { value: Value::Map(rest), span: root.span };
    Ok(Some(Document { root, metadata, metadata_span: section.key_span, format }))
}

fn without_section(span: Span) -> Diagnostic {
    invalid("this value is encrypted, but the document has no section `sops`", span)
        .with_help("restore the section, or encrypt the document again from its plain text")
}

/// Returns the position of the first encrypted value.
fn first_ciphertext(node: &Node) -> Option<Span> {
    match &node.value {
        Value::Scalar(scalar) => scalar.text.starts_with(PREFIX).then_some(node.span),
        Value::Seq(items) => items.iter().find_map(first_ciphertext),
        Value::Map(entries) => entries.iter().find_map(|entry| first_ciphertext(&entry.value)),
    }
}

/// Returns the section and the other entries of a document.
fn section_of(entries: &[Entry], format: Format) -> Result<Option<(Entry, Vec<Entry>)>, Diagnostic> {
    match format {
        Format::Dotenv => {
            const START: &str = "sops_";
            let (ours, rest): (Vec<&Entry>, Vec<&Entry>) =
                entries.iter().partition(|entry| entry.key.starts_with(START));
            let names = ours.iter().map(|entry| (&entry.key[START.len()..], *entry));
            let Some(section) = unflattened(names)? else { return Ok(None) };
            Ok(Some((section, rest.into_iter().cloned().collect())))
        }
        Format::Yaml | Format::Ini => {
            let Some(at) = entries.iter().position(|entry| entry.key == SECTION) else { return Ok(None) };
            let rest = entries.iter().enumerate().filter(|(other, _)| *other != at);
            let rest = rest.map(|(_, entry)| entry.clone()).collect();
            let section = match (format, entries[at].value.as_map()) {
                (Format::Ini, Some(names)) => {
                    unflattened(names.iter().map(|entry| (entry.key.as_str(), entry)))?
                }
                _ => None,
            };
            Ok(Some((section.unwrap_or_else(|| entries[at].clone()), rest)))
        }
    }
}

fn unflattened<'e>(names: impl Iterator<Item = (&'e str, &'e Entry)>) -> Result<Option<Entry>, Diagnostic> {
    let mut place = None;
    let mut flat: Vec<(String, Scalar, Span)> = Vec::new();
    for (name, entry) in names {
        place.get_or_insert(entry.key_span);
        if let Value::Scalar(scalar) = &entry.value.value {
            flat.push((name.to_owned(), scalar.clone(), entry.value.span));
        }
    }
    let Some(key_span) = place else { return Ok(None) };
    let value = flat::unflatten(&flat, key_span)?;
    Ok(Some(Entry { key: SECTION.to_owned(), key_span, value }))
}
