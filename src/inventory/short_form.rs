//! ccm's own short form: a map of `hosts`, `groups` and `data`.
//!
//! ```yaml
//! hosts:
//!   web1: { address: 10.0.0.11, user: admin }
//!   web2: { address: 10.0.0.12, user: admin, data: { weight: 2 } }
//! groups:
//!   web: { hosts: [web1, web2], data: { port: 8080 } }
//! data: { domain: example.net }
//! ```

use ccm_expr::Map;

use super::{
    error::InventoryError,
    graph::{ALL, Graph, Index},
    ini,
};
use crate::document::{Diagnostic, Entry, Node, Source, Span, closest, to_value};

/// The keys of a host, and the variables that Ansible has for them.
const CONNECTION: [(&str, &str); 5] = [
    ("address", "ansible_host"),
    ("port", "ansible_port"),
    ("user", "ansible_user"),
    ("key", "ansible_ssh_private_key_file"),
    ("sudo", "ansible_become"),
];

/// Returns whether a document is in the short form, and not Ansible's with groups of the same names.
pub(super) fn is_short(document: &[Entry]) -> bool {
    let is_group = |node: &Node| {
        node.as_map().is_some_and(|entries| {
            !entries.is_empty()
                && entries.iter().all(|entry| ["hosts", "vars", "children"].contains(&entry.key.as_str()))
        })
    };
    let is_key = |entry: &Entry| ["hosts", "groups", "data"].contains(&entry.key.as_str());
    document.iter().all(is_key)
        && document.iter().any(|entry| entry.key != "data")
        && !document.iter().any(|entry| entry.key == "hosts" && is_group(&entry.value))
}

/// Adds the hosts and groups of a document in the short form.
pub(super) fn read(source: &Source, document: &[Entry], graph: &mut Graph) -> Result<(), InventoryError> {
    let mut reader = Reader { source, graph };
    for entry in document {
        let value = &entry.value;
        match entry.key.as_str() {
            "hosts" => reader.hosts(value)?,
            "groups" => reader.groups(value)?,
            _ => reader.data(ALL, value)?,
        }
    }
    Ok(())
}

/// A name, its position and its body.
type Member<'n> = (&'n str, Span, Option<&'n Node>);

struct Reader<'a> {
    source: &'a Source,
    graph: &'a mut Graph,
}

impl Reader<'_> {
    fn hosts(&mut self, hosts: &Node) -> Result<(), InventoryError> {
        for (name, span, body) in self.members(hosts, "`hosts` is a list of names or a map of hosts")? {
            let mut variables = Map::default();
            for entry in body.and_then(Node::as_map).unwrap_or_default() {
                let known = CONNECTION.iter().find(|(key, _)| *key == entry.key);
                match (known, entry.value.as_map()) {
                    (Some((_, variable)), _) => {
                        variables.insert((*variable).into(), to_value(&entry.value));
                    }
                    (None, Some(_)) if entry.key == "data" => {
                        super::extend(
                            &mut variables,
                            to_value(&entry.value).as_map().unwrap_or(&Map::default()),
                        );
                    }
                    _ => return Err(self.unknown(entry, &["address", "port", "user", "key", "sudo", "data"])),
                }
            }
            let all = self.graph.add_group(ALL);
            self.add_hosts(name, span, all, &variables)?;
        }
        Ok(())
    }

    fn groups(&mut self, groups: &Node) -> Result<(), InventoryError> {
        for (name, span, body) in self.members(groups, "`groups` is a map of groups")? {
            let group = self.graph.add_group(name);
            let Some(body) = body else { continue };
            if body.as_seq().is_some() {
                self.add_members(body, group)?;
                continue;
            }
            let Some(entries) = body.as_map() else {
                return Err(self.error(span, format!("group `{name}` is a list of hosts or a map")));
            };
            for entry in entries {
                match entry.key.as_str() {
                    "hosts" => self.add_members(&entry.value, group)?,
                    "groups" | "children" => {
                        for (child, span, _) in self.members(&entry.value, "`groups` is a list of groups")? {
                            self.graph.add_group(child);
                            let added = self.graph.add_child(group, child);
                            added.map_err(|error| self.error(span, error.to_string()))?;
                        }
                    }
                    "data" => self.data(name, &entry.value)?,
                    _ => return Err(self.unknown(entry, &["hosts", "groups", "data"])),
                }
            }
        }
        Ok(())
    }

    fn add_members(&mut self, hosts: &Node, group: Index) -> Result<(), InventoryError> {
        for (name, span, _) in self.members(hosts, "`hosts` is a list of names")? {
            self.add_hosts(name, span, group, &Map::default())?;
        }
        Ok(())
    }

    fn add_hosts(
        &mut self,
        name: &str,
        span: Span,
        group: Index,
        variables: &Map,
    ) -> Result<(), InventoryError> {
        let (names, port) = ini::names(name).map_err(|reason| self.error(span, reason))?;
        let added = ini::add(self.graph, names, port, group, variables);
        added.map_err(|error| self.error(span, error.to_string()))
    }

    fn data(&mut self, group: &str, data: &Node) -> Result<(), InventoryError> {
        let Some(entries) = data.as_map() else {
            return Err(self.error(data.span, format!("`data` is a map, not {}", data.kind())));
        };
        for entry in entries {
            let set = self.graph.set_variable(group, &entry.key, to_value(&entry.value));
            set.map_err(|error| self.error(entry.value.span, error.to_string()))?;
        }
        Ok(())
    }

    /// Returns the names in a list, or the names and bodies in a map.
    fn members<'n>(&self, node: &'n Node, expected: &str) -> Result<Vec<Member<'n>>, InventoryError> {
        if let Some(entries) = node.as_map() {
            let body = |entry: &'n Entry| Some(&entry.value).filter(|value| !value.is_null());
            return Ok(entries
                .iter()
                .map(|entry| (entry.key.as_str(), entry.key_span, body(entry)))
                .collect());
        }
        let items =
            node.as_seq().ok_or_else(|| self.error(node.span, format!("{expected}, not {}", node.kind())))?;
        let name = |item: &'n Node| match item.as_str() {
            Some(name) => Ok((name, item.span, None)),
            None => Err(self.error(item.span, format!("a name is a string, not {}", item.kind()))),
        };
        items.iter().map(name).collect()
    }

    fn unknown(&self, entry: &Entry, known: &[&str]) -> InventoryError {
        let mut diagnostic =
            Diagnostic::error("invalid-inventory", format!("unknown key `{}`", entry.key)).at(entry.key_span);
        diagnostic = match closest(&entry.key, known.iter().copied()) {
            Some(near) => diagnostic.with_help(format!("did you mean `{near}`?")),
            None => diagnostic.with_help(format!("known keys: {}", known.join(", "))),
        };
        InventoryError::document(self.source, diagnostic)
    }

    fn error(&self, span: Span, message: impl Into<String>) -> InventoryError {
        InventoryError::document(self.source, Diagnostic::error("invalid-inventory", message).at(span))
    }
}
