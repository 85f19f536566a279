//! Words of other tools: what to write here instead.

use crate::resource::{AnyType, FieldKind, fields};

/// A property that other tools have.
struct Word {
    written: &'static str,
    /// The property that a type must have for the advice to be of use; empty where any will do.
    needs: &'static str,
    instead: &'static str,
    /// Where to write it, or what it does.
    more: &'static str,
}

const fn word(written: &'static str, needs: &'static str, instead: &'static str) -> Word {
    Word { written, needs, instead, more: "" }
}

const THE_PATH: &str = "the path as the name of the resource";

const WORDS: &[Word] = &[
    word("state", "ensure", "`ensure`"),
    word("status", "ensure", "`ensure`"),
    word("version", "hold", "the version as `ensure`"),
    word("path", "owner", THE_PATH),
    word("dest", "owner", THE_PATH),
    word("destination", "owner", THE_PATH),
    word("target", "owner", THE_PATH),
    word("src", "source", "`source`"),
    word("src", "url", "`url`"),
    word("source", "url", "`url`"),
    word("url", "content", "`source`, or an `archive`,"),
    word("extract", "extract_parent", "`extract_parent`"),
    word("text", "content", "`content`"),
    word("body", "content", "`content`"),
    word("template", "content", "`content: \"${ template('FILE') }\"`"),
    word("permissions", "mode", "`mode`"),
    word("perms", "mode", "`mode`"),
    word("perm", "mode", "`mode`"),
    word("user", "owner", "`owner`"),
    Word { more: ", to remove a directory with what is in it", ..word("recurse", "force", "`force: true`") },
    Word { more: ", at the resource to refresh", ..word("notify", "", "`subscribe: [\"TYPE#NAME\"]`") },
    Word { more: ", at the other resource", ..word("before", "", "`require: [\"TYPE#NAME\"]`") },
    word("requires", "require", "`require`"),
    word("depends_on", "require", "`require`"),
    word("watch", "subscribe", "`subscribe`"),
    word("listen", "subscribe", "`subscribe`"),
    word("when", "", "`control: { if: \"...\" }`"),
    word("only_if", "onlyif", "`onlyif` for a command, or `control: { if: \"...\" }`,"),
    word("only_if", "", "`control: { if: \"...\" }`"),
    word("onlyif", "", "`control: { if: \"...\" }`"),
    word("not_if", "unless", "`unless` for a command, or `control: { unless: \"...\" }`,"),
    word("not_if", "", "`control: { unless: \"...\" }`"),
    word("unless", "", "`control: { unless: \"...\" }`"),
    Word { more: ", beside the name", ..word("loop", "", "`for_each`") },
    Word { more: ", beside the name", ..word("with_items", "", "`for_each`") },
    word("cmd", "command", "`command`"),
    word("args", "command", "the whole command line in `command`"),
    word("chdir", "cwd", "`cwd`"),
    word("env", "environment", "`environment: [\"KEY=value\"]`"),
    word("shell", "command", "`provider: shell`"),
    word("become", "command", "`user`"),
    word("become_user", "command", "`user`"),
    word("runas", "command", "`user`"),
    word("enabled", "enable", "`enable: true` or `enable: false`"),
    word("retries", "tries", "`tries`"),
    word("delay", "try_sleep", "`try_sleep`"),
    word("no_log", "sensitive", "`sensitive: true`"),
];

/// Returns what to write instead of a property that other tools have; `known` are the properties that there are.
pub(super) fn property(written: &str, known: &[&str]) -> Option<String> {
    let fits =
        |word: &&Word| word.written == written && (word.needs.is_empty() || known.contains(&word.needs));
    let Word { instead, more, .. } = WORDS.iter().find(fits)?;
    Some(format!("write {instead} here instead{more}"))
}

/// Returns where to write a part of a name that does not belong there.
pub(super) fn name(written: &str, kind: &'static dyn AnyType) -> Option<String> {
    let has = |property: &str| fields(kind).iter().any(|field| field.name == property);
    if let Some((name, version)) = written.split_once('=').filter(|_| has("hold")) {
        let version = version.trim_start_matches('=');
        return Some(format!("write `{name}` as the name, with `ensure: \"{version}\"`"));
    }
    if !has("unit") {
        return None;
    }
    if let Some((_, unit)) = written.rsplit_once('/') {
        return Some(format!("write the name without the directory: `{unit}`"));
    }
    let (template, _) = written.split_once('@')?;
    Some(format!("choose a name without `@`, such as `{template}`, and add `unit: {written}`"))
}

/// Desired states in the words of other tools, and what they are called here.
const STATES: &[(&str, &str)] = &[
    ("started", "running"),
    ("start", "running"),
    ("active", "running"),
    ("up", "running"),
    ("true", "running"),
    ("stop", "stopped"),
    ("inactive", "stopped"),
    ("down", "stopped"),
    ("false", "stopped"),
    ("file", "present"),
    ("touch", "present"),
    ("installed", "present"),
    ("install", "present"),
    ("created", "present"),
    ("true", "present"),
    ("removed", "absent"),
    ("deleted", "absent"),
    ("uninstalled", "absent"),
    ("false", "absent"),
    ("dir", "directory"),
    ("folder", "directory"),
    ("symlink", "link"),
];

/// Returns which of the states of a type is meant by a word of another tool.
pub(crate) fn meant_state<'s>(written: &str, states: &[&'s str]) -> Option<&'s str> {
    let mut meant = STATES.iter().filter(|(word, _)| *word == written);
    meant.find_map(|(_, state)| states.iter().find(|known| *known == state).copied())
}

/// Returns what to write instead of a desired state that other tools have.
pub(super) fn state(written: &str, kind: &'static dyn AnyType) -> Option<String> {
    let of_type = fields(kind).into_iter().find(|field| field.name == "ensure").map(|field| field.kind);
    let states = match of_type {
        Some(FieldKind::Choice(states)) => states,
        // A version is a state as well, so that they have no list.
        _ => ["present", "absent"].map(str::to_owned).to_vec(),
    };
    let states: Vec<&str> = states.iter().map(String::as_str).collect();
    meant_state(written, &states).map(|state| format!("write `{state}` here instead"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_given_only_where_it_can_be_followed() {
        for (written, known, advice) in [
            ("state", &["ensure"][..], Some("write `ensure` here instead")),
            ("user", &["owner"], Some("write `owner` here instead")),
            ("user", &["enable"], None),
            ("src", &["url"], Some("write `url` here instead")),
            ("only_if", &["enable"], Some("write `control: { if: \"...\" }` here instead")),
            ("contnet", &["content"], None),
        ] {
            assert_eq!(property(written, known).as_deref(), advice, "{written} {known:?}");
        }
        for (written, states, meant) in [
            ("started", &["running", "stopped"][..], Some("running")),
            ("true", &["present", "absent"], Some("present")),
            ("started", &["present", "absent"], None),
        ] {
            assert_eq!(meant_state(written, states), meant, "{written} {states:?}");
        }
    }
}
