//! Inventories in YAML form, and in JSON, which is YAML.

use std::fmt::Display;

use ccm_expr::Map;

use super::{
    error::InventoryError,
    graph::{Graph, GraphError},
    ini, yaml_1_1,
};
use crate::document::{Diagnostic, Entry, Node, Source, Span};

pub(super) struct Reader<'a> {
    pub(super) source: &'a Source,
    pub(super) graph: &'a mut Graph,
    pub(super) warnings: &'a mut Vec<String>,
}

impl Reader<'_> {
    /// Adds the groups of a document, which is a map.
    pub(super) fn read(&mut self, groups: &[Entry]) -> Result<(), InventoryError> {
        groups.iter().try_for_each(|group| self.group(group).map(|_| ()))
    }

    /// Adds a group with everything in it, and returns whether the entry is a group.
    fn group(&mut self, entry: &Entry) -> Result<bool, InventoryError> {
        self.require_string(entry, "group")?;
        let Some(sections) = sections(&entry.value) else {
            self.warn(entry.key_span, &format!("`{}` is {}, not a group", entry.key, entry.value.kind()));
            return Ok(false);
        };
        let name = entry.key.as_str();
        let group = self.graph.add_group(name);
        for section in sections {
            let value = &section.value;
            match section.key.as_str() {
                "vars" => {
                    for variable in &self.map(section, name)? {
                        let value = yaml_1_1::value(&variable.value);
                        let set = self.graph.set_variable(name, &self.key(variable), value);
                        set.map_err(|error| self.error(variable.value.span, error))?;
                    }
                }
                "children" => {
                    for child in &self.map(section, name)? {
                        self.group(child)?;
                        let added = self.graph.add_child(group, &child.key);
                        added.map_err(|error| self.error(child.key_span, error))?;
                    }
                }
                "hosts" => {
                    for host in &self.map(section, name)? {
                        self.host(host, group)?;
                    }
                }
                _ if value.is_null() => {}
                other => {
                    let message = format!("`{other}` in group `{name}` is not `hosts`, `children` or `vars`");
                    self.warn(section.key_span, &message);
                }
            }
        }
        Ok(true)
    }

    fn host(&mut self, host: &Entry, group: usize) -> Result<(), InventoryError> {
        self.require_string(host, "host")?;
        let variables = match host.value.as_map() {
            Some(entries) => {
                let of = |entry: &Entry| (self.key(entry).into(), yaml_1_1::value(&entry.value));
                entries.iter().map(of).collect()
            }
            None if is_falsy(&host.value) => Map::default(),
            None => {
                let message = format!("variables of a host are a map, not {}", host.value.kind());
                return Err(self.error(host.value.span, message));
            }
        };
        let (names, port) = ini::names(&host.key).map_err(|reason| self.error(host.key_span, reason))?;
        let added = ini::add(self.graph, names, port, group, &variables);
        added.map_err(|error: GraphError| self.error(host.value.span, error))
    }

    /// Returns the entries of a section. One name instead of a map is allowed.
    fn map(&self, section: &Entry, group: &str) -> Result<Vec<Entry>, InventoryError> {
        let value = &section.value;
        if let Some(entries) = value.as_map() {
            return Ok(entries.to_vec());
        }
        if let Some(name) = value.as_str() {
            let entry = Entry { key: name.to_owned(), key_span: value.span, value: Node::null(value.span) };
            return Ok(vec![entry]);
        }
        if value.is_null() {
            return Ok(Vec::new());
        }
        let message = format!("`{}` of group `{group}` is a map, not {}", section.key, value.kind());
        Err(self.error(value.span, message))
    }

    /// Returns the text of a key, which Ansible types like a value.
    fn key(&self, entry: &Entry) -> String {
        if self.is_quoted(entry) { entry.key.clone() } else { super::key_text(&yaml_1_1::plain(&entry.key)) }
    }

    fn require_string(&self, entry: &Entry, what: &str) -> Result<(), InventoryError> {
        if self.is_quoted(entry) || yaml_1_1::plain(&entry.key).as_str().is_some() {
            return Ok(());
        }
        let message = format!("the name of a {what} is a string: write `\"{}\"` in quotes", entry.key);
        Err(self.error(entry.key_span, message))
    }

    fn is_quoted(&self, entry: &Entry) -> bool {
        let text = self.source.text.get(entry.key_span.start as usize..).unwrap_or_default();
        text.starts_with(['"', '\''])
    }

    fn warn(&mut self, span: Span, message: &str) {
        let (line, column) = self.source.line_column(span.start);
        self.warnings.push(format!("{}:{line}:{column}: {message}", self.source.name));
    }

    fn error(&self, span: Span, message: impl Display) -> InventoryError {
        let diagnostic = Diagnostic::error("invalid-inventory", message.to_string()).at(span);
        InventoryError::document(self.source, diagnostic)
    }
}

/// Returns the sections of a group, or `None` if the value is not a group.
fn sections(value: &Node) -> Option<&[Entry]> {
    if value.is_null() { Some(&[]) } else { value.as_map() }
}

/// Returns whether Python treats the value as false: Ansible reads such variables of a host as none.
fn is_falsy(node: &Node) -> bool {
    match yaml_1_1::value(node) {
        ccm_expr::Value::Null | ccm_expr::Value::Bool(false) | ccm_expr::Value::Int(0) => true,
        ccm_expr::Value::Str(text) => text.is_empty(),
        ccm_expr::Value::List(items) => items.is_empty(),
        ccm_expr::Value::Float(number) => number == 0.0,
        _ => false,
    }
}
