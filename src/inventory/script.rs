//! Inventories as JSON: the output of a program for `--list`, and of `ansible-inventory --list`.

use std::{path::Path, time::Duration};

use ccm_expr::Map;
use indexmap::IndexSet;

use super::{Loader, error::InventoryError, graph::Graph, ini};
use crate::{
    document::{self, Node, Source, to_value},
    host::process::{Command, Exit, Keep},
};

/// Time limit of an inventory program.
const PATIENCE: Duration = Duration::from_mins(1);

/// Runs an executable inventory and adds its output.
pub(super) fn run(path: &Path, loader: &Loader, graph: &mut Graph) -> Result<(), InventoryError> {
    let root = output(path, &["--list"], loader)?;
    if root.as_map().is_none() {
        let reason = format!("`--list` printed {}, not a map of groups", root.kind());
        return Err(InventoryError::Program { path: path.to_owned(), reason });
    }
    read(path, &root, graph, |host| output(path, &["--host", host], loader).map(Some))
}

fn output(path: &Path, arguments: &[&str], loader: &Loader) -> Result<Node, InventoryError> {
    let failed = |reason: String| InventoryError::Program { path: path.to_owned(), reason };
    let limit = usize::try_from(loader.limits.document).unwrap_or(usize::MAX);
    // A name without a slash would be searched for in `PATH`.
    let program = Path::new(".").join(path);
    let command = Command::new(program).arguments(arguments).timeout(PATIENCE).keep(Keep::Whole(limit));
    let finished = command.run(loader.runner, loader.interrupt).map_err(|error| failed(error.to_string()))?;
    if finished.exit != Exit::Code(0) {
        let last = finished.stderr.text().lines().last().map(|line| format!(": {line}")).unwrap_or_default();
        return Err(failed(format!("`{}`: {}{last}", arguments.join(" "), finished.exit)));
    }
    let name = format!("output of {} {}", path.display(), arguments.join(" "));
    let source = Source::read(name, finished.stdout.text().into_owned().into_bytes())
        .map_err(|error| failed(error.message))?;
    document::parse(&source).map_err(|diagnostics| InventoryError::document(&source, diagnostics))
}

/// Returns whether a document is the output of `--list`: its groups list their hosts, a YAML inventory maps them.
pub(super) fn is_output(root: &Node) -> bool {
    let is_listed = |group: &Node| {
        group.as_seq().is_some()
            || ["hosts", "children"]
                .iter()
                .any(|part| group.lookup(part).is_some_and(|part| part.as_seq().is_some()))
    };
    root.lookup("_meta").is_some()
        || root
            .as_map()
            .is_some_and(|groups| !groups.is_empty() && groups.iter().any(|group| is_listed(&group.value)))
}

/// Adds groups as `--list` prints them. `ask` returns the variables of a host if the output has none.
pub(super) fn read(
    path: &Path,
    root: &Node,
    graph: &mut Graph,
    ask: impl Fn(&str) -> Result<Option<Node>, InventoryError>,
) -> Result<(), InventoryError> {
    let failed = |reason: String| InventoryError::Program { path: path.to_owned(), reason };
    let mut hosts = IndexSet::new();
    for entry in root.as_map().unwrap_or_default().iter().filter(|entry| entry.key != "_meta") {
        let name = entry.key.as_str();
        let group = graph.add_group(name);
        let (listed, variables, children) = parts(name, &entry.value);
        for host in listed.map_err(&failed)? {
            graph.add_host(&host, group, None);
            hosts.insert(host);
        }
        for (variable, value) in variables {
            graph.set_variable(name, &variable, value).map_err(|error| failed(error.to_string()))?;
        }
        for child in children.map_err(&failed)? {
            graph.add_group(&child);
            graph.add_child(group, &child).map_err(|error| failed(format!("group `{name}`: {error}")))?;
        }
    }
    let known = root.lookup("_meta").and_then(|meta| meta.lookup("hostvars"));
    for host in hosts {
        let asked = if known.is_none() { ask(&host)? } else { None };
        let variables = known.and_then(|known| known.lookup(&host)).or(asked.as_ref()).map(to_value);
        let Some(variables) = variables.as_ref().and_then(|variables| variables.as_map()) else { continue };
        let group = graph.add_group("all");
        let is_listed = |error| failed(format!("host `{host}`: {error}"));
        // The host exists already: adding it to `all` changes nothing but the variables.
        ini::add(graph, vec![host.clone()], None, group, variables).map_err(is_listed)?;
    }
    Ok(())
}

type Names = Result<Vec<String>, String>;

/// Splits a group into its hosts, its variables and its children. A list is a group with only hosts, and a map with none of the
/// three words has the variables of the one host that is named like the group.
fn parts(name: &str, group: &Node) -> (Names, Map, Names) {
    let none = || Ok(Vec::new());
    if group.as_seq().is_some() {
        return (names(name, "hosts", Some(group)), Map::default(), none());
    }
    let [hosts, variables, children] = ["hosts", "vars", "children"].map(|part| group.lookup(part));
    if hosts.is_none() && variables.is_none() && children.is_none() {
        let variables = to_value(group);
        return (Ok(vec![name.to_owned()]), variables.as_map().cloned().unwrap_or_default(), none());
    }
    let variables = variables.map(to_value);
    let variables = variables.as_ref().and_then(|variables| variables.as_map()).cloned().unwrap_or_default();
    (names(name, "hosts", hosts), variables, names(name, "children", children))
}

fn names(group: &str, part: &str, list: Option<&Node>) -> Names {
    let Some(list) = list else { return Ok(Vec::new()) };
    let wrong = || format!("`{part}` of group `{group}` must be a list of names, not {}", list.kind());
    let items = list.as_seq().ok_or_else(wrong)?;
    items.iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
}
