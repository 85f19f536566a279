//! The section `sops` as text: written anew, or kept with a new MAC.

use std::{fmt::Write, ops::Range};

use jiff::{Timestamp, Unit};

use super::{
    Metadata,
    edits::Edits,
    metadata::{Group, SECTION},
    selection::Selection,
    spelling::quoted,
};
use crate::{
    document::{Entry, Node, Source, Span, Value},
    secrets::Format,
};

/// The version of the format that ccm writes, by the program that introduced it.
const VERSION: &str = "3.9.0";

/// The text of a section, and where its MAC and time are in it.
#[derive(Clone)]
pub(crate) struct Section {
    text: String,
    mac: Range<usize>,
    last_modified: Range<usize>,
}

/// Returns the time of now as documents write it.
pub(super) fn now() -> String {
    let now = Timestamp::now();
    now.round(Unit::Second).unwrap_or(now).to_string()
}

impl Section {
    /// Returns the text of the section with a new MAC.
    pub(super) fn with(&self, format: Format, mac: &str, last_modified: &str) -> String {
        let in_json = self.text.trim_start().starts_with('"');
        let mac = if in_json { quoted(mac) } else { mac.to_owned() };
        let time = if format == Format::Yaml { quoted(last_modified) } else { last_modified.to_owned() };
        let span = |range: &Range<usize>| Span::new(range.start, range.end);
        let mut edits = Edits::default();
        edits.replace(span(&self.mac), mac);
        edits.replace(span(&self.last_modified), time);
        edits.apply(&self.text)
    }

    /// Renders a new section. The MAC is inserted later.
    pub(crate) fn render(metadata: &Metadata, format: Format, is_json: bool) -> Self {
        let text = match format {
            Format::Yaml if is_json => json(metadata),
            Format::Yaml => yaml(metadata),
            Format::Dotenv => flat(metadata, "sops_", "="),
            Format::Ini => format!("[{SECTION}]\n{}", flat(metadata, "", " = ")),
        };
        let place = |mark: &str| {
            let start = text.find(mark).unwrap_or_default();
            let quotes = usize::from(text[..start].ends_with('"'));
            start - quotes..start + mark.len() + quotes
        };
        let (mac, last_modified) = (place(MAC), place(TIME));
        Self { text, mac, last_modified }
    }
}

/// Places of the MAC and the time in a new section.
const MAC: &str = "%MAC%";
const TIME: &str = "%TIME%";

/// Fields after the keys, in the order of SOPS.
fn fields(metadata: &Metadata) -> Vec<(String, String)> {
    let mut fields = vec![("lastmodified".to_owned(), TIME.to_owned()), ("mac".to_owned(), MAC.to_owned())];
    let Selection { name, text, .. } = &metadata.selection;
    fields.push(((*name).to_owned(), text.clone()));
    if metadata.is_mac_only_encrypted {
        fields.push(("mac_only_encrypted".to_owned(), "true".to_owned()));
    }
    fields.push(("version".to_owned(), VERSION.to_owned()));
    fields
}

fn yaml(metadata: &Metadata) -> String {
    let mut text = format!("{SECTION}:\n");
    if let [group] = &metadata.groups[..] {
        yaml_keys(group, "    ", &mut text);
    } else {
        let _ = writeln!(text, "    shamir_threshold: {}", metadata.threshold);
        text.push_str("    key_groups:\n");
        for group in &metadata.groups {
            let mut keys = String::new();
            yaml_keys(group, "          ", &mut keys);
            let _ = write!(text, "        - {}", keys.trim_start());
        }
    }
    for (name, value) in fields(metadata) {
        let value = match value.as_str() {
            TIME => quoted(TIME),
            MAC | "true" | VERSION => value,
            other => quoted(other),
        };
        let _ = writeln!(text, "    {name}: {value}");
    }
    text
}

fn yaml_keys(group: &Group, indent: &str, text: &mut String) {
    let _ = writeln!(text, "{indent}age:");
    for key in &group.age {
        let _ = writeln!(text, "{indent}    - recipient: {}", key.recipient);
        let _ = writeln!(text, "{indent}      enc: |");
        for line in key.encrypted.lines() {
            let _ = writeln!(text, "{indent}        {line}");
        }
    }
}

fn json(metadata: &Metadata) -> String {
    let keys = |group: &Group| {
        let key =
            |key: &super::AgeKey| serde_json::json!({ "recipient": key.recipient, "enc": key.encrypted });
        serde_json::Value::from(group.age.iter().map(key).collect::<Vec<_>>())
    };
    let mut section = serde_json::Map::new();
    if let [group] = &metadata.groups[..] {
        section.insert("age".to_owned(), keys(group));
    } else {
        section.insert("shamir_threshold".to_owned(), metadata.threshold.into());
        let groups: Vec<_> =
            metadata.groups.iter().map(|group| serde_json::json!({ "age": keys(group) })).collect();
        section.insert("key_groups".to_owned(), groups.into());
    }
    for (name, value) in fields(metadata) {
        let value = if value == "true" { true.into() } else { serde_json::Value::from(value) };
        section.insert(name, value);
    }
    let text = serde_json::to_string_pretty(&section).unwrap_or_default();
    format!("\"{SECTION}\": {}", text.replace('\n', "\n  "))
}

fn flat(metadata: &Metadata, prefix: &str, equals: &str) -> String {
    let mut lines = Vec::new();
    let mut keys = |group: &Group, place: &str| {
        for (at, key) in group.age.iter().enumerate() {
            let encrypted = key.encrypted.replace('\n', "\\n");
            lines.push((format!("{place}age__list_{at}__map_enc"), encrypted));
            lines.push((format!("{place}age__list_{at}__map_recipient"), key.recipient.clone()));
        }
    };
    if let [group] = &metadata.groups[..] {
        keys(group, "");
    } else {
        for (at, group) in metadata.groups.iter().enumerate() {
            keys(group, &format!("key_groups__list_{at}__map_"));
        }
        lines.push(("shamir_threshold".to_owned(), metadata.threshold.to_string()));
    }
    lines.extend(fields(metadata));
    let lines: Vec<String> =
        lines.iter().map(|(name, value)| format!("{prefix}{name}{equals}{value}")).collect();
    lines.join("\n") + "\n"
}

/// Takes the section out of a document: returns it, and the ranges of the text that it had.
pub(super) fn take(
    root: &Node,
    metadata: &Metadata,
    source: &Source,
    format: Format,
) -> Option<(Section, Vec<Range<usize>>)> {
    let entries = root.as_map()?;
    let text = source.text.as_str();
    let ours: Vec<&Entry> = entries
        .iter()
        .filter(|entry| match format {
            Format::Dotenv => entry.key.starts_with("sops_"),
            Format::Yaml | Format::Ini => entry.key == SECTION,
        })
        .collect();
    let is_json = format == Format::Yaml && text[root.span.start as usize..].starts_with('{');
    let mut ranges = Vec::new();
    for entry in &ours {
        let (start, end) = (entry.key_span.start as usize, entry.value.span.end as usize);
        ranges.push(if is_json { start..end } else { line_start(text, start)..line_end(text, end) });
    }
    let (mut kept, mut mac, mut last_modified) = (String::new(), 0..0, 0..0);
    for range in &ranges {
        let moved = |span: Span| {
            let (start, end) = (span.start as usize, span.end as usize);
            let offset = kept.len();
            (range.start <= start && end <= range.end)
                .then(|| start - range.start + offset..end - range.start + offset)
        };
        mac = moved(metadata.mac_span).unwrap_or(mac);
        last_modified = moved(metadata.last_modified_span).unwrap_or(last_modified);
        kept.push_str(&text[range.clone()]);
        if !is_json && !kept.ends_with('\n') {
            kept.push('\n');
        }
    }
    if is_json {
        ranges = ranges.into_iter().map(|range| with_comma(text, range)).collect();
    }
    Some((Section { text: kept, mac, last_modified }, ranges))
}

/// Widens the range of an entry of JSON by the comma that goes with it.
fn with_comma(text: &str, range: Range<usize>) -> Range<usize> {
    let before = text[..range.start].trim_end();
    if before.ends_with(',') {
        return before.len() - 1..range.end;
    }
    let after = &text[range.end..];
    let blank = after.len() - after.trim_start().len();
    let comma = usize::from(after.trim_start().starts_with(','));
    range.start..range.end + if comma == 1 { blank + 1 } else { 0 }
}

pub(super) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

pub(super) fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |newline| at + newline + 1)
}

/// Adds a section to a document without one.
pub(super) fn add(text: &str, root: &Node, section: &str, format: Format) -> String {
    let is_json = format == Format::Yaml && text[root.span.start as usize..].starts_with('{');
    if is_json {
        let close = text.trim_end().len().saturating_sub(1);
        let before = text[..close].trim_end();
        let is_empty = matches!(&root.value, Value::Map(entries) if entries.is_empty());
        let comma = if is_empty { "" } else { "," };
        let indent: String = match root.as_map().and_then(<[Entry]>::first) {
            Some(first) if text[..first.key_span.start as usize].contains('\n') => {
                let start = first.key_span.start as usize;
                format!("\n{}", &text[line_start(text, start)..start])
            }
            _ => "\n  ".to_owned(),
        };
        return format!("{before}{comma}{indent}{section}\n{}", &text[close..]);
    }
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let blank = if format == Format::Ini && !text.is_empty() && !text.ends_with("\n\n") { "\n" } else { "" };
    format!("{text}{gap}{blank}{section}")
}
