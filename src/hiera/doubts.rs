//! Warnings about hierarchies that are valid and probably not meant: data that no machine gets, or not this one.

use std::path::PathBuf;

use ccm_expr::{Value, has_template};

use super::files::Directory;
use crate::document::{Diagnostic, Diagnostics, Entry, Node, closest};

/// The id of these warnings.
pub(super) const ID: &str = "doubtful-hierarchy";

/// The parts of a hierarchy that warnings are about.
pub(super) struct Parts<'a> {
    pub(super) hierarchy: Option<&'a Entry>,
    pub(super) overrides: Option<&'a Entry>,
    pub(super) directory: Option<&'a Directory>,
    /// The entries of this machine.
    pub(super) order: &'a [String],
    /// The entries of this machine that have neither an override nor a file.
    pub(super) without_data: &'a [String],
}

impl Parts<'_> {
    pub(super) fn check(&self, facts: &Value, diagnostics: &mut Diagnostics) {
        let overrides = self.overrides.and_then(|entry| entry.value.as_map()).unwrap_or_default();
        if let (Some(entry), None) = (self.overrides, self.hierarchy)
            && overrides.iter().any(|entry| entry.key != "default")
        {
            let message = "`overrides` has no effect without `hierarchy`, except its key `default`";
            diagnostics.push(
                Diagnostic::warning(ID, message)
                    .at(entry.key_span)
                    .with_help("add `hierarchy: { order: [...] }` with the keys to use, in their order"),
            );
        }
        let order = self.hierarchy.and_then(|entry| entry.value.lookup("order"));
        let written = order.and_then(Node::as_seq).unwrap_or_default();
        for item in written {
            diagnostics.extend(
                item.as_str().and_then(|text| fact_as_text(text, facts)).map(|problem| problem.at(item.span)),
            );
        }
        for Entry { key, key_span, .. } in overrides {
            diagnostics.extend(
                self.near_miss(key, &format!("override `{key}`")).map(|problem| problem.at(*key_span)),
            );
        }
        if let Some(directory) = self.directory {
            self.files(directory, written, diagnostics);
        }
    }

    /// Warns about files of the directory that no machine, or probably not this one, reads by mistake.
    fn files(&self, directory: &Directory, order: &[Node], diagnostics: &mut Diagnostics) {
        let first = |text: &str| text.split(':').next().unwrap_or_default().to_owned();
        let known: Vec<String> = order.iter().filter_map(|item| item.as_str()).map(first).collect();
        let is_open = known.iter().any(|segment| has_template(segment));
        for path in directory.files() {
            let entry = entry_of(&path);
            let shown = directory.shown(&path);
            let segment = first(&entry);
            if !is_open && !known.contains(&segment) {
                let near = closest(&segment, known.iter().map(String::as_str));
                let problem = Diagnostic::warning(ID, format!("no entry of `order` can select {shown}"));
                let help = match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("entries begin with {}", known.join(", ")),
                };
                diagnostics.push(problem.at(directory.span).with_help(help));
            } else {
                diagnostics.extend(self.near_miss(&entry, &shown).map(|problem| problem.at(directory.span)));
            }
        }
    }

    /// Warns about a name that this machine does not use, but that is close to one that it misses.
    fn near_miss(&self, name: &str, shown: &str) -> Option<Diagnostic> {
        if self.order.iter().any(|entry| entry == name) {
            return None;
        }
        let missing = self.without_data.iter().find(|missing| is_near(name, missing))?;
        let message = format!("{shown} is not used: this machine has the entry `{missing}`");
        Some(Diagnostic::warning(ID, message).with_help(format!("did you mean `{missing}`?")))
    }
}

/// Returns whether two entries differ only by case or by one or two letters. Numbers are names of their own: `web1` is
/// not a misspelt `web2`.
fn is_near(one: &str, other: &str) -> bool {
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
    let segments = |text: &str| text.matches(':').count();
    one.to_lowercase() == other.to_lowercase()
        || digits(one) == digits(other) && segments(one) == segments(other) && closest(one, [other]).is_some()
}

/// Warns about an entry that is the name of a fact and not its value.
fn fact_as_text(text: &str, facts: &Value) -> Option<Diagnostic> {
    let name = text.strip_prefix("Facts.").or_else(|| text.strip_prefix("facts.")).unwrap_or(text);
    let is_fact = !has_template(text)
        && name.split('.').try_fold(facts.clone(), |value, part| value.member(part)).is_some();
    is_fact.then(|| {
        Diagnostic::warning(ID, format!("the entry `{text}` is the name of a fact, not its value"))
            .with_help(format!("write `${{ Facts.{name} }}`, or with a prefix `{name}:${{ Facts.{name} }}`"))
    })
}

/// Warns about keys of an override that the data does not have, but that are close to one it has.
pub(super) fn misspelt_keys(over: &Node, base: &Value, path: &str, diagnostics: &mut Diagnostics) {
    let (Some(entries), Some(known)) = (over.as_map(), base.as_map()) else { return };
    for Entry { key, key_span, value } in entries {
        let name = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match known.get(key.as_str()) {
            Some(below) => misspelt_keys(value, below, &name, diagnostics),
            None => {
                let near = known.keys().map(AsRef::as_ref).find(|near: &&str| {
                    is_near(key, near) && !entries.iter().any(|entry| entry.key == **near)
                });
                diagnostics.extend(near.map(|near| {
                    Diagnostic::warning(ID, format!("`{name}` overrides nothing: the data has no such key"))
                        .at(*key_span)
                        .with_help(format!("did you mean `{near}`?"))
                }));
            }
        }
    }
}

/// Returns the entry whose file this is.
fn entry_of(path: &std::path::Path) -> String {
    let parts: PathBuf = path.with_extension("");
    parts.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_misses_differ_by_case_or_a_few_letters_but_not_by_numbers() {
        for (one, other, near) in [
            ("role:Web", "role:web", true),
            ("role:wbe", "role:web", true),
            ("role:web1", "role:web2", false),
            ("os:debian:11", "os:debian:12", false),
            ("os:debian", "os:fedora", false),
            ("role:web", "role:web:eu", false),
        ] {
            assert_eq!(is_near(one, other), near, "{one} {other}");
        }
    }
}
