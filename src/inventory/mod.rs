//! Inventories: which machines there are, which groups they are in, and the variables of both.
//!
//! The formats and their meaning are Ansible's, so that an existing inventory works unchanged: INI and YAML files, programs that
//! print JSON, saved output of `ansible-inventory --list`, and directories of these, each with `group_vars` and `host_vars`.
//! A short form of ccm's own serves people who start without an inventory.
//!
//! [`Inventory::load`] reads all sources into one [`graph`]. [`Inventory::select`] evaluates a [`pattern`]. Where Ansible
//! prints a warning and goes on with the rest of an inventory, loading fails: a run on half of the machines is worse than none.

mod address;
mod error;
mod graph;
mod ini;
mod literal;
mod pattern;
mod range;
mod script;
mod shell_words;
mod short_form;
mod sources;
mod ssh_config;
mod variables;
mod yaml;
mod yaml_1_1;

use std::path::PathBuf;

use ccm_expr::{Map, Value};
use serde::{Serialize, Serializer};

pub(crate) use self::{error::InventoryError, pattern::Selection, ssh_config::hosts as ssh_hosts};
use self::{graph::Graph, variables::VariableFiles};
use crate::{
    host::{input::Limits, interrupt::Interrupt, process::Runner},
    secrets::Keyring,
};

/// Access to the machine and limits for loading.
pub(crate) struct Loader<'a> {
    /// Runs executable inventories.
    pub(crate) runner: &'a Runner,
    pub(crate) interrupt: &'a Interrupt,
    pub(crate) limits: Limits,
    /// Opens encrypted files.
    pub(crate) keyring: &'a Keyring,
}

/// The machines of all sources that were named, with their groups and variables.
#[derive(Debug)]
pub(crate) struct Inventory {
    graph: Graph,
    variable_files: VariableFiles,
    /// Oddities that Ansible reports and that do not change the meaning.
    pub(crate) warnings: Vec<String>,
}

/// A machine of an inventory.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    pub(crate) name: String,
    /// All groups that the machine is in, ancestors included, sorted, without `all`.
    pub(crate) groups: Vec<String>,
    /// Variables of the machine and its groups, templates unexpanded. Names that begin with `ansible_` configure the connection.
    #[serde(serialize_with = "as_value")]
    pub(crate) variables: Map,
}

fn as_value<S: Serializer>(variables: &Map, serializer: S) -> Result<S::Ok, S::Error> {
    Value::from(variables.clone()).serialize(serializer)
}

impl Machine {
    /// Makes a machine of which only the name is known.
    pub(crate) fn named(name: String) -> Self {
        Self { name, groups: Vec::new(), variables: Map::default() }
    }
}

impl Inventory {
    /// Reads inventories in the given order. Later sources override variables of earlier ones.
    pub(crate) fn load(sources: &[PathBuf], loader: &Loader) -> Result<Self, InventoryError> {
        let mut graph = Graph::default();
        let mut warnings = Vec::new();
        for source in sources {
            sources::read(source, loader, &mut graph, &mut warnings)?;
        }
        graph.reconcile();
        let variable_files = VariableFiles::read(sources, &graph, loader)?;
        Ok(Self { graph, variable_files, warnings })
    }

    /// Returns the machines that a pattern selects, in the order of the inventory.
    ///
    /// A host must be selected by each of `limits`, too. `@FILE` stands for the hosts that a file lists, one on a line.
    pub(crate) fn select(
        &self,
        pattern: &str,
        limits: &[String],
        loader: &Loader,
    ) -> Result<Selection, InventoryError> {
        let pattern = pattern::parts(pattern, loader)?;
        let limits: Result<Vec<_>, _> = limits.iter().map(|limit| pattern::parts(limit, loader)).collect();
        pattern::select(&self.graph, &pattern, &limits?)
    }

    /// Returns a machine with everything that the inventory knows about it.
    ///
    /// Precedence, lowest first: variables of `all` and of the other groups in the inventory (parents before children), files in
    /// `group_vars` in the same order, variables of the host in the inventory, files in `host_vars`.
    pub(crate) fn machine(&self, name: &str) -> Option<Machine> {
        let host = self.graph.host(name)?;
        let groups = self.graph.groups_of(host);
        let names = || groups.iter().map(|&group| self.graph.group(group).name.as_str());
        let mut variables = Map::default();
        for &group in &groups {
            extend(&mut variables, &self.graph.group(group).variables);
        }
        self.variable_files.of_group(graph::ALL).for_each(|file| extend(&mut variables, file));
        let others: Vec<_> = names().filter(|&name| name != graph::ALL).collect();
        self.variable_files.of_groups(&others).for_each(|file| extend(&mut variables, file));
        extend(&mut variables, &self.graph.host_variables(host));
        self.variable_files.of_host(name).for_each(|file| extend(&mut variables, file));
        variables.retain(|name, _| !is_internal(name));
        let mut groups: Vec<_> = names().filter(|&name| name != graph::ALL).map(str::to_owned).collect();
        groups.sort();
        Some(Machine { name: name.to_owned(), groups, variables })
    }
}

fn extend(variables: &mut Map, more: &Map) {
    for (name, value) in more {
        variables.insert(name.clone(), value.clone());
    }
}

/// Names that Ansible computes itself. It ignores them in an inventory and does not list them.
fn is_internal(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "ansible_async_path",
        "ansible_collection_name",
        "ansible_config_file",
        "ansible_dependent_role_names",
        "ansible_diff_mode",
        "ansible_facts",
        "ansible_forks",
        "ansible_inventory_sources",
        "ansible_limit",
        "ansible_play_batch",
        "ansible_play_hosts",
        "ansible_play_hosts_all",
        "ansible_play_role_names",
        "ansible_playbook_python",
        "ansible_role_name",
        "ansible_role_names",
        "ansible_run_tags",
        "ansible_skip_tags",
        "ansible_verbosity",
        "ansible_version",
        "group_names",
        "groups",
        "hostvars",
        "inventory_dir",
        "inventory_file",
        "inventory_hostname",
        "inventory_hostname_short",
        "play_hosts",
        "playbook_dir",
        "role_name",
        "role_names",
        "role_path",
        "role_uuid",
    ];
    NAMES.contains(&name)
}

/// Returns the text of a key that is not a string, as JSON writes it.
fn key_text(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        other => other.to_text(),
    }
}
