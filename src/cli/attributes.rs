//! Owner, group and mode that are not given on the command line: what exists keeps its own, what is new gets those of the
//! user.

use rustix::process::{getegid, geteuid};

use crate::{
    declare::Declaration,
    document::{Entry, Node, Scalar, Span, Style, Value},
    host::files::{self, Entry as Found, FileKind},
    vocabulary::AbsolutePath,
};

/// Adds the required attributes that the command line lacks. Manifests and requests must set them.
pub(super) fn complete(declaration: &mut Declaration) {
    let ensure = given(declaration, "ensure");
    if matches!(ensure.as_deref(), Some("absent" | "link")) {
        return;
    }
    let kind = if ensure.as_deref() == Some("directory") { FileKind::Directory } else { FileKind::File };
    let missing: Vec<&str> = declaration
        .kind
        .behavior()
        .keeps
        .iter()
        .copied()
        .filter(|key| given(declaration, key).is_none())
        .collect();
    if missing.is_empty() {
        return;
    }
    // The validation of the declaration rejects a name that is not a path.
    let path = AbsolutePath::try_from(declaration.name.clone()).ok();
    let found = path.and_then(|path| files::inspect(path.as_path()).ok().flatten());
    let found = found.filter(|found| found.kind == kind);
    for property in missing {
        for (property, text, style) in values(property, found.as_ref(), &kind) {
            declaration.properties.push(entry(property, text, style, declaration.name_span));
        }
    }
}

/// Returns what a property is to be, and with a mode the bits that go with it.
fn values(property: &str, found: Option<&Found>, kind: &FileKind) -> Vec<(&'static str, String, Style)> {
    let quoted = |property, text: String| (property, text, Style::Quoted);
    match property {
        "owner" => vec![quoted("owner", found.map_or(geteuid().as_raw(), |found| found.uid).to_string())],
        "group" => vec![quoted("group", found.map_or(getegid().as_raw(), |found| found.gid).to_string())],
        _ => {
            let new = if *kind == FileKind::Directory { 0o755 } else { 0o644 };
            let mode = found.map_or(new, |found| found.mode);
            let special = [("setuid", 0o4000), ("setgid", 0o2000), ("sticky", 0o1000)];
            let special = special.into_iter().filter(|(_, bit)| mode & bit != 0);
            let special = special.map(|(property, _)| (property, "true".to_owned(), Style::Plain));
            std::iter::once(quoted("mode", format!("{:04o}", mode & 0o777))).chain(special).collect()
        }
    }
}

fn given(declaration: &Declaration, property: &str) -> Option<String> {
    let entry = declaration.properties.iter().find(|entry| entry.key == property)?;
    Some(entry.value.as_str().unwrap_or_default().to_owned())
}

fn entry(key: &str, text: String, style: Style, span: Span) -> Entry {
    Entry {
        key: key.to_owned(),
        key_span: span,
        value: Node { value: Value::Scalar(Scalar::new(text, style)), span },
    }
}
