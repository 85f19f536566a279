//! Who can write a template, and what a template of an untrusted user can see.

use std::{path::Path, sync::Arc};

use ccm_expr::{Object, Value};

use crate::host::files::{Entry, is_ours};

/// Parts of names of secret values. They are compared in lower case and without `-` and `_`.
const SECRET: [&str; 8] =
    ["password", "passwd", "passphrase", "secret", "token", "privatekey", "apikey", "credential"];

/// Who can write a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Author {
    /// Root and the user that runs ccm.
    Trusted,
    /// Another user: the file belongs to this user, or its mode lets others write to it.
    Untrusted,
}

impl Author {
    /// Returns who can write to a file or directory.
    pub(crate) fn of(entry: &Entry) -> Self {
        // As for the state directory, a group with the number of its only member is that user.
        let is_own_group = is_ours(entry.gid);
        let writers = if is_own_group { 0o002 } else { 0o022 };
        let is_sticky = entry.kind == crate::host::files::FileKind::Directory && entry.mode & 0o1000 != 0;
        if is_ours(entry.uid) && (entry.mode & writers == 0 || is_sticky) {
            Self::Trusted
        } else {
            Self::Untrusted
        }
    }
}

/// Returns why a template cannot use a file of an untrusted user.
pub(super) fn not_included(path: &Path) -> String {
    format!(
        "an untrusted user can write to {}: a template of a trusted user cannot include it",
        path.display()
    )
}

/// Returns a value without secret values and without the members whose names are those of secrets.
pub(super) fn without_secrets(value: Value) -> Value {
    match value {
        Value::Map(_) | Value::Object(_) => Value::Object(Arc::new(Public(value))),
        Value::List(items) => {
            items.iter().filter(|item| !item.is_secret()).map(|item| without_secrets(item.clone())).collect()
        }
        Value::Secret(_) => Value::Null,
        other => other,
    }
}

/// A map without secrets. Facts are still read only where a template reads them.
struct Public(Value);

impl Object for Public {
    fn member(&self, name: &str) -> Option<Value> {
        if names_secret(name) {
            return None;
        }
        self.0.member(name).filter(|value| !value.is_secret()).map(without_secrets)
    }

    fn names(&self) -> Vec<Arc<str>> {
        // Facts are not read for their names.
        let has_secret =
            |name: &str| self.0.as_map().and_then(|entries| entries.get(name)).is_some_and(Value::is_secret);
        let names = self.0.member_names().into_iter();
        names.filter(|name| !names_secret(name) && !has_secret(name)).collect()
    }
}

/// Returns whether a name is that of a secret value.
pub(crate) fn names_secret(name: &str) -> bool {
    let name: String =
        name.chars().filter(|letter| !matches!(letter, '-' | '_')).collect::<String>().to_lowercase();
    SECRET.iter().any(|part| name.contains(part))
}
