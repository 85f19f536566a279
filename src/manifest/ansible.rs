//! Playbooks and tasks of Ansible, which users try as manifests.

use crate::{
    document::{Diagnostic, Entry, Node},
    types,
};

/// Keys of a play.
const PLAY: &[&str] =
    &["hosts", "tasks", "roles", "pre_tasks", "post_tasks", "handlers", "gather_facts", "vars_files"];

/// Keys of a task that no resource entry has.
const TASK: &[&str] = &[
    "when",
    "register",
    "notify",
    "become",
    "become_user",
    "loop",
    "with_items",
    "with_dict",
    "delegate_to",
    "ignore_errors",
    "changed_when",
    "failed_when",
    "block",
    "rescue",
    "vars",
    "listen",
    "run_once",
    "until",
    "retries",
];

/// Returns the error for a play or task of Ansible.
pub(super) fn recognized(item: &Node) -> Option<Diagnostic> {
    let entries = item.as_map().filter(|entries| entries.len() > 1)?;
    let has = |keys: &[&str]| entries.iter().any(|entry| keys.contains(&entry.key.as_str()));
    let module = entries.iter().find(|entry| is_module(entry));
    let is_task = has(TASK) || module.is_some_and(|module| has(&["name"]) || module.key.contains('.'));
    let (what, help) =
        if has(&["hosts"]) && entries.iter().filter(|entry| PLAY.contains(&entry.key.as_str())).count() > 1 {
            let help = "declare resources in a manifest, and select hosts with `ccm apply --on HOSTS`";
            ("this is an Ansible playbook, not a ccm manifest", help.to_owned())
        } else if is_task && (has(&["name"]) || module.is_some()) {
            let replacement = module.and_then(|module| types::replacement(bare(&module.key)));
            let known = module.map(|module| bare(&module.key)).filter(|name| types::find(name).is_some());
            let known = known.map(|name| format!("`{name}`"));
            let replacement = replacement.map(str::to_owned).or(known);
            let replacement = replacement.map_or("a resource".to_owned(), |replacement| replacement);
            (
                "this is an Ansible task, not a ccm resource",
                format!("declare {replacement}: `- TYPE:`, and its name below it"),
            )
        } else {
            return None;
        };
    Some(Diagnostic::error("ansible-content", what).at(item.span).with_help(help))
}

/// Returns whether a key of a task names its module.
fn is_module(entry: &Entry) -> bool {
    let name = bare(&entry.key);
    let is_qualified = name.len() < entry.key.len();
    is_qualified || types::find(name).is_some() || types::replacement(name).is_some()
}

/// Returns the name of a module without its collection.
fn bare(module: &str) -> &str {
    let is_collection = module.split('.').count() == 3;
    if is_collection { module.rsplit('.').next().unwrap_or(module) } else { module }
}
