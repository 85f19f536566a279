//! Inventories in INI form.

use std::path::Path;

use ccm_expr::{Map, Value};
use indexmap::IndexMap;

use super::{
    address,
    error::InventoryError,
    graph::{Graph, GraphError, Index},
    literal, range, shell_words,
};

/// Meaning of the lines under a heading.
#[derive(Clone, Copy, PartialEq)]
enum Section {
    Hosts,
    Children,
    Variables,
}

/// A group that was referred to before it was declared.
enum Pending {
    Variables { line: usize },
    Child { line: usize, parents: Vec<Index> },
}

struct Reader<'a> {
    path: &'a Path,
    graph: &'a mut Graph,
    pending: IndexMap<String, Pending>,
    group: String,
    section: Section,
    line: usize,
}

/// Adds the hosts, groups and variables of an INI file to an inventory.
pub(super) fn read(path: &Path, text: &str, graph: &mut Graph) -> Result<(), InventoryError> {
    let group = "ungrouped".to_owned();
    let mut reader =
        Reader { path, graph, pending: IndexMap::new(), group, section: Section::Hosts, line: 0 };
    for line in text.lines() {
        reader.line += 1;
        let line = line.trim();
        if !line.is_empty() && !line.starts_with([';', '#']) {
            reader.read(line)?;
        }
    }
    reader.finish()
}

impl Reader<'_> {
    fn read(&mut self, line: &str) -> Result<(), InventoryError> {
        if let Some((group, section)) = heading(line) {
            return self.begin(group, section);
        }
        if line.starts_with('[') && line.ends_with(']') {
            return Err(
                self.error(format!("`{line}` is not a heading: a group name has no spaces or colons"))
            );
        }
        match self.section {
            Section::Hosts => self.hosts(line),
            Section::Children => self.child(line),
            Section::Variables => {
                let Some((name, value)) = line.split_once('=') else {
                    return Err(self.error(format!("expected NAME=VALUE, found `{line}`")));
                };
                let set = self.graph.set_variable(&self.group, name.trim(), literal::value(value.trim()));
                set.map_err(|error| self.error(error.to_string()))
            }
        }
    }

    fn begin(&mut self, group: &str, section: Option<&str>) -> Result<(), InventoryError> {
        self.section = match section {
            None | Some("hosts") => Section::Hosts,
            Some("children") => Section::Children,
            Some("vars") => Section::Variables,
            Some(other) => {
                let message =
                    format!("`[{group}:{other}]`: a heading ends with `:children`, `:vars` or `:hosts`");
                return Err(self.error(message));
            }
        };
        group.clone_into(&mut self.group);
        if !self.graph.has_group(group) && self.section == Section::Variables {
            let pending = Pending::Variables { line: self.line };
            self.pending.entry(group.to_owned()).or_insert(pending);
        }
        self.graph.add_group(group);
        if self.section != Section::Variables {
            self.declared(group)?;
        }
        Ok(())
    }

    /// Adds a group to the parents that named it earlier.
    fn declared(&mut self, group: &str) -> Result<(), InventoryError> {
        match self.pending.shift_remove(group) {
            None | Some(Pending::Variables { .. }) => Ok(()),
            Some(Pending::Child { parents, .. }) => {
                for parent in parents {
                    self.graph.add_child(parent, group).map_err(|error| self.error(error.to_string()))?;
                    let name = self.graph.group(parent).name.clone();
                    if matches!(self.pending.get(&name), Some(Pending::Child { .. })) {
                        self.declared(&name)?;
                    }
                }
                Ok(())
            }
        }
    }

    fn hosts(&mut self, line: &str) -> Result<(), InventoryError> {
        let words = shell_words::split(line).map_err(|reason| self.error(format!("`{line}`: {reason}")))?;
        let Some((pattern, assignments)) = words.split_first() else { return Ok(()) };
        let (names, port) = names(pattern).map_err(|reason| self.error(reason))?;
        let mut variables = Map::default();
        for word in assignments {
            let Some((name, value)) = word.split_once('=') else {
                return Err(self.error(format!("expected NAME=VALUE after the host, found `{word}`")));
            };
            variables.insert(name.into(), literal::value(value));
        }
        let group = self.graph.add_group(&self.group);
        add(self.graph, names, port, group, &variables).map_err(|error| self.error(error.to_string()))
    }

    fn child(&mut self, line: &str) -> Result<(), InventoryError> {
        let name = line.split_once('#').map_or(line, |(name, _)| name).trim_end();
        if name.is_empty() || name.contains([':', ']']) || name.contains(char::is_whitespace) {
            return Err(self.error(format!("expected the name of a group, found `{line}`")));
        }
        let parent = self.graph.add_group(&self.group);
        if self.graph.has_group(name) {
            return self.graph.add_child(parent, name).map_err(|error| self.error(error.to_string()));
        }
        match self.pending.get_mut(name) {
            Some(Pending::Child { parents, .. }) => parents.push(parent),
            _ => {
                let pending = Pending::Child { line: self.line, parents: vec![parent] };
                self.pending.insert(name.to_owned(), pending);
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<(), InventoryError> {
        let Some((name, pending)) = self.pending.first() else { return Ok(()) };
        let (line, message) = match pending {
            Pending::Variables { line } => (*line, format!("`[{name}:vars]`: no group is named `{name}`")),
            Pending::Child { line, .. } => (*line, format!("no group is named `{name}`")),
        };
        Err(InventoryError::line(self.path, line, message))
    }

    fn error(&self, message: impl Into<String>) -> InventoryError {
        InventoryError::line(self.path, self.line, message)
    }
}

/// Splits `[GROUP]` or `[GROUP:SECTION]`, perhaps with a comment after it.
fn heading(line: &str) -> Option<(&str, Option<&str>)> {
    let (inner, after) = line.strip_prefix('[')?.split_once(']')?;
    let after = after.trim_start();
    if !after.is_empty() && !after.starts_with('#') {
        return None;
    }
    let (group, section) = match inner.split_once(':') {
        Some((group, section)) => (group, Some(section)),
        None => (inner, None),
    };
    let is_word = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_');
    let is_heading = !group.is_empty() && !group.contains(char::is_whitespace) && section.is_none_or(is_word);
    is_heading.then_some((group, section))
}

/// Returns the hosts that a pattern of an inventory stands for, and their port.
pub(super) fn names(pattern: &str) -> Result<(Vec<String>, Option<u16>), String> {
    let (host, port) = address::parse(pattern).unwrap_or((pattern, None));
    if pattern.trim_end().ends_with(':') && port.is_none() {
        return Err(format!("`{pattern}` ends in `:`, which separates a port: is this YAML in an INI file?"));
    }
    let names = range::expand(host)?;
    if names.iter().any(|name| name.trim() == "---") {
        return Err("`---` begins a YAML document, and this file is read as INI".to_owned());
    }
    Ok((names, port))
}

/// Adds hosts with the same variables to a group.
pub(super) fn add(
    graph: &mut Graph,
    names: Vec<String>,
    port: Option<u16>,
    group: Index,
    variables: &Map,
) -> Result<(), GraphError> {
    for name in names {
        graph.add_host(&name, group, port);
        for (variable, value) in variables {
            graph.set_variable(&name, variable, Value::clone(value))?;
        }
    }
    Ok(())
}
