//! Groups and hosts, and which group is part of which.

use std::collections::VecDeque;

use ccm_expr::{Map, Value};
use indexmap::IndexMap;

/// The group that every host and every group is part of.
pub(super) const ALL: &str = "all";
/// The group of hosts that are in no other group.
const UNGROUPED: &str = "ungrouped";

/// A position in [`Graph::groups`] or [`Graph::hosts`].
pub(super) type Index = usize;

#[derive(Debug)]
pub(super) struct Graph {
    groups: IndexMap<String, Group>,
    hosts: IndexMap<String, Host>,
}

#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) name: String,
    pub(super) variables: Map,
    hosts: Vec<Index>,
    children: Vec<Index>,
    parents: Vec<Index>,
    /// Length of the longest way from a group without parents. Variables of deeper groups take precedence.
    depth: usize,
    /// Decides between groups of one depth. Set by `ansible_group_priority`.
    priority: i64,
}

#[derive(Debug)]
pub(super) struct Host {
    /// The port behind the name where the host was first listed.
    port: Option<u16>,
    variables: Map,
}

/// Why two groups cannot be put together.
#[derive(Debug, thiserror::Error)]
pub(super) enum GraphError {
    #[error("a group cannot be its own child")]
    Itself,
    #[error("`{child}` contains `{parent}`: the groups would contain each other")]
    Loop { parent: String, child: String },
    #[error("no group or host is named `{0}`")]
    Unknown(String),
    #[error("`ansible_group_priority` must be a whole number")]
    Priority,
}

impl Default for Graph {
    fn default() -> Self {
        let mut graph = Self { groups: IndexMap::new(), hosts: IndexMap::new() };
        let (all, ungrouped) = (graph.add_group(ALL), graph.add_group(UNGROUPED));
        graph.link(all, ungrouped);
        graph
    }
}

impl Graph {
    /// Returns the group of this name, which is created if necessary.
    pub(super) fn add_group(&mut self, name: &str) -> Index {
        if let Some(index) = self.groups.get_index_of(name) {
            return index;
        }
        let group = Group { name: name.to_owned(), priority: 1, ..Group::default() };
        self.groups.insert_full(name.to_owned(), group).0
    }

    /// Returns the host of this name, which is created if necessary, and adds it to a group.
    pub(super) fn add_host(&mut self, name: &str, group: Index, port: Option<u16>) -> Index {
        let host = match self.hosts.get_index_of(name) {
            Some(host) => host,
            None => self.hosts.insert_full(name.to_owned(), Host { port, variables: Map::default() }).0,
        };
        let hosts = &mut self.groups[group].hosts;
        if !hosts.contains(&host) {
            hosts.push(host);
        }
        host
    }

    /// Adds a group or a host to a group.
    pub(super) fn add_child(&mut self, parent: Index, child: &str) -> Result<(), GraphError> {
        let Some(group) = self.groups.get_index_of(child) else {
            let host = self.hosts.get_index_of(child).ok_or_else(|| GraphError::Unknown(child.to_owned()))?;
            if !self.groups[parent].hosts.contains(&host) {
                self.groups[parent].hosts.push(host);
            }
            return Ok(());
        };
        if group == parent {
            return Err(GraphError::Itself);
        }
        if self.ancestors(parent).contains(&group) {
            let parent = self.groups[parent].name.clone();
            return Err(GraphError::Loop { parent, child: child.to_owned() });
        }
        if !self.groups[parent].children.contains(&group) {
            self.link(parent, group);
        }
        Ok(())
    }

    /// Sets a variable of the group of this name, otherwise of the host.
    ///
    /// A host that shares its name with a group cannot have variables in an inventory: Ansible gives them to the group.
    pub(super) fn set_variable(&mut self, entity: &str, name: &str, value: Value) -> Result<(), GraphError> {
        if let Some(group) = self.groups.get_mut(entity) {
            if name == "ansible_group_priority" {
                group.priority = whole_number(&value).ok_or(GraphError::Priority)?;
            } else {
                group.variables.insert(name.into(), value);
            }
            return Ok(());
        }
        let host = self.hosts.get_mut(entity).ok_or_else(|| GraphError::Unknown(entity.to_owned()))?;
        host.variables.insert(name.into(), value);
        Ok(())
    }

    /// Makes every group part of `all`, and every host that is in no other group part of `ungrouped`.
    pub(super) fn reconcile(&mut self) {
        for group in 1..self.groups.len() {
            if self.groups[group].parents.is_empty() {
                self.link(0, group);
            }
        }
        let mut grouped = vec![false; self.hosts.len()];
        for group in self.groups.values().filter(|group| group.name != ALL && group.name != UNGROUPED) {
            group.hosts.iter().for_each(|&host| grouped[host] = true);
        }
        let ungrouped = &mut self.groups[1].hosts;
        ungrouped.retain(|&host| !grouped[host]);
        for (host, is_grouped) in grouped.into_iter().enumerate() {
            if !is_grouped && !ungrouped.contains(&host) {
                ungrouped.push(host);
            }
        }
    }

    pub(super) fn group(&self, index: Index) -> &Group {
        &self.groups[index]
    }

    pub(super) fn groups(&self) -> impl Iterator<Item = (Index, &str)> {
        self.groups.keys().enumerate().map(|(index, name)| (index, name.as_str()))
    }

    pub(super) fn has_group(&self, name: &str) -> bool {
        self.groups.contains_key(name)
    }

    pub(super) fn hosts(&self) -> impl Iterator<Item = (Index, &str)> {
        self.hosts.keys().enumerate().map(|(index, name)| (index, name.as_str()))
    }

    pub(super) fn host(&self, name: &str) -> Option<Index> {
        self.hosts.get_index_of(name)
    }

    pub(super) fn host_name(&self, index: Index) -> &str {
        self.hosts.get_index(index).map_or("", |(name, _)| name)
    }

    /// Returns the variables that the inventory itself sets for a host.
    pub(super) fn host_variables(&self, index: Index) -> Map {
        let host = &self.hosts[index];
        let mut variables = Map::default();
        if let Some(port) = host.port {
            variables.insert("ansible_port".into(), Value::Int(port.into()));
        }
        super::extend(&mut variables, &host.variables);
        variables
    }

    /// Returns the hosts of a group and of the groups in it, breadth first.
    pub(super) fn hosts_of(&self, group: Index) -> Vec<Index> {
        let mut hosts = Vec::new();
        let mut seen = vec![false; self.hosts.len()];
        for group in self.walk(group, |group| &group.children) {
            for &host in &self.groups[group].hosts {
                if !std::mem::replace(&mut seen[host], true) {
                    hosts.push(host);
                }
            }
        }
        hosts
    }

    /// Returns all groups of a host, in the order in which their variables override each other.
    pub(super) fn groups_of(&self, host: Index) -> Vec<Index> {
        let mut is_member = vec![false; self.groups.len()];
        is_member[0] = true;
        for (index, group) in self.groups.values().enumerate() {
            if group.hosts.contains(&host) {
                self.walk(index, |group| &group.parents).for_each(|group| is_member[group] = true);
            }
        }
        let mut groups: Vec<_> = (0..is_member.len()).filter(|&group| is_member[group]).collect();
        groups.sort_by_key(|&index| {
            let group = &self.groups[index];
            // `all` comes first, whatever its priority.
            (index != 0, group.depth, group.priority, &group.name)
        });
        groups
    }

    fn ancestors(&self, group: Index) -> Vec<Index> {
        self.walk(group, |group| &group.parents).skip(1).collect()
    }

    /// Returns a group and all groups that a relation leads to, breadth first.
    fn walk<'a>(
        &'a self,
        from: Index,
        relation: impl Fn(&Group) -> &Vec<Index> + 'a,
    ) -> impl Iterator<Item = Index> + 'a {
        let mut seen = vec![false; self.groups.len()];
        seen[from] = true;
        let mut queue = VecDeque::from([from]);
        std::iter::from_fn(move || {
            let group = queue.pop_front()?;
            for &next in relation(&self.groups[group]) {
                if !std::mem::replace(&mut seen[next], true) {
                    queue.push_back(next);
                }
            }
            Some(group)
        })
    }

    fn link(&mut self, parent: Index, child: Index) {
        self.groups[parent].children.push(child);
        self.groups[child].parents.push(parent);
        let mut deeper = vec![(child, self.groups[parent].depth + 1)];
        while let Some((group, depth)) = deeper.pop() {
            if self.groups[group].depth < depth {
                self.groups[group].depth = depth;
                deeper.extend(self.groups[group].children.iter().map(|&child| (child, depth + 1)));
            }
        }
    }
}

fn whole_number(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        Value::Bool(truth) => Some((*truth).into()),
        #[expect(clippy::cast_possible_truncation, reason = "Python's int() truncates, too")]
        Value::Float(number) => Some(number.trunc() as i64),
        Value::Str(text) => text.trim().parse().ok(),
        _ => None,
    }
}
