//! The types of resources. Adding one takes its folder and one line here.

mod account;
mod apply;
mod archive;
mod command_line;
mod content_diff;
mod cron;
mod disk;
mod exec;
mod existence;
mod fact;
mod file;
mod live;
mod mount;
mod ownership;
mod package;
mod program;
mod purge;
mod restore;
mod scaffold;
mod service;
mod shared_file;
mod sysctl;
#[cfg(test)]
pub(crate) mod tests;
mod unmanaged;
mod validation;

pub(crate) use content_diff::of_new as diff_of_new;
pub(crate) use restore::restoring;

use schemars::Schema;

use crate::{
    document::{Diagnostic, closest},
    resource::{AnyType, TypeOf},
    vocabulary::Reference,
};

/// Every type, in the order in which help and manual list them.
pub(crate) const TYPES: &[&dyn AnyType] = &[
    &TypeOf::<apply::Apply>::NEW,
    &TypeOf::<archive::Archive>::NEW,
    &TypeOf::<cron::Cron>::NEW,
    &TypeOf::<exec::Exec>::NEW,
    &TypeOf::<fact::Fact>::NEW,
    &TypeOf::<file::File>::NEW,
    &TypeOf::<account::Group>::NEW,
    &TypeOf::<mount::Mount>::NEW,
    &TypeOf::<package::Package>::NEW,
    &TypeOf::<scaffold::Scaffold>::NEW,
    &TypeOf::<service::Service>::NEW,
    &TypeOf::<sysctl::Sysctl>::NEW,
    &TypeOf::<account::User>::NEW,
];

/// Returns the type of packages, which health checks observe, too.
pub(crate) fn package() -> &'static dyn AnyType {
    &TypeOf::<package::Package>::NEW
}

/// The type with this name.
pub(crate) fn find(name: &str) -> Option<&'static dyn AnyType> {
    TYPES.iter().copied().find(|kind| kind.name() == name)
}

/// Returns the reference with the spelling that stands for all spellings of the name.
pub(crate) fn canonical(mut reference: Reference) -> Reference {
    let canonical = find(&reference.kind).and_then(|kind| kind.behavior().canonical);
    if let Some(name) = canonical.and_then(|canonical| canonical(&reference.name)) {
        reference.name = name;
    }
    reference
}

/// Types, modules and resources of other tools, and what to use here.
const OTHERS: &[(&[&str], &str)] = &[
    (&["template", "erb", "epp"], "`file` with `content: \"${ template('FILE') }\"`"),
    (&["copy", "cookbook_file", "remote_directory"], "`file` with `source: FILE`"),
    (
        &[
            "include",
            "include_role",
            "include_tasks",
            "import_role",
            "import_tasks",
            "role",
            "roles",
            "class",
        ],
        "`apply`, which runs another manifest",
    ),
    (
        &["lineinfile", "blockinfile", "replace", "ini_file", "ini_setting", "file_line", "augeas", "concat"],
        "`file` with `edit`",
    ),
    (
        &["apt_repository", "apt_key", "yum_repository", "yumrepo", "dnf_repository", "zypper_repository"],
        "`file` for the definition of the repository, before the `package`",
    ),
    (&["apt", "apt_package", "yum", "yum_package", "dnf", "dnf_package"], "`package`"),
    (&["systemd", "systemd_service", "systemd_unit"], "`service`, with a `file` for the unit"),
    (&["command", "execute", "run"], "`exec`"),
    (&["shell", "script", "bash"], "`exec` with `provider: shell`"),
    (&["get_url", "remote_file"], "`file` with `source: URL`"),
    (&["unarchive", "tar_extract"], "`archive`"),
    (&["directory"], "`file` with `ensure: directory`"),
    (&["link", "symlink"], "`file` with `ensure: link`"),
    (&["git", "vcsrepo"], "`exec` with `creates`, or `archive` for a release"),
    (&["cron_d", "crontab", "cronjob"], "`cron`"),
    (&["authorized_key", "ssh_authorized_key"], "`user` with `authorized_keys`"),
    (&["set_fact", "setup", "ohai"], "`fact`"),
];

/// Returns what to use instead of a type that other tools have.
pub(crate) fn replacement(name: &str) -> Option<&'static str> {
    OTHERS.iter().find(|(names, _)| names.contains(&name)).map(|(_, instead)| *instead)
}

/// Returns what to say of a type that does not exist.
pub(crate) fn unknown(name: &str) -> Diagnostic {
    let help = match (replacement(name), closest(name, names())) {
        (Some(instead), _) => format!("use {instead}"),
        (None, Some(near)) => format!("did you mean `{near}`?"),
        (None, None) => format!("known types: {}", names().collect::<Vec<_>>().join(", ")),
    };
    Diagnostic::error("unknown-type", format!("unknown type `{name}`")).with_help(help)
}

/// Returns the schema of the state of each type, by the name of the type.
pub(crate) fn state_schemas() -> impl Iterator<Item = (&'static str, Schema)> {
    TYPES.iter().map(|kind| (kind.name(), kind.state_schema()))
}

/// Returns the type that undoes changes of resources of this type, if neither their paths nor their properties are enough.
pub(crate) fn undoing(kind: &str) -> Option<&'static dyn AnyType> {
    match kind {
        "package" => Some(&TypeOf::<package::Undoing>::NEW),
        "user" => Some(&TypeOf::<account::Undoing>::NEW),
        _ => None,
    }
}

/// The names of all types.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TYPES.iter().map(|kind| kind.name())
}
