//! Paths that look as if a shell was to read them.

use super::Warning;

/// Returns a warning about a path in which something stands that only a shell would give a meaning.
pub(crate) fn meant_for_a_shell(property: &'static str, path: &str) -> Option<Warning> {
    let noun = if property == "name" { "a name" } else { "a path" };
    let warning = |id, message: String, help: String| Warning {
        id,
        message,
        property: Some(property),
        help: Some(help),
    };
    if let Some(substitution) = substitution(path) {
        let message = format!("`{substitution}` in {noun} is not a command: it is part of the path as it is");
        let help = "give the path as data or a fact: `${ Data.NAME }`, `${ Facts.NAME }`".to_owned();
        return Some(warning("command-in-path", message, help));
    }
    if let Some(name) = variable(path) {
        let message = format!("`${name}` in {noun} is not a variable: it is part of the path as it is");
        return Some(warning("variable-in-path", message, format!("write `${{ Environ.{name} }}`")));
    }
    if path.starts_with('~') || path.contains("/~/") {
        let message = format!("`~` in {noun} is not a home directory: it is part of the path as it is");
        let is_own = path == "~" || path.contains("~/");
        let help = if is_own { "write `${ Environ.HOME }`" } else { "write the path of the directory" };
        return Some(warning("tilde-in-path", message, help.to_owned()));
    }
    if let Some(glob) = glob(path) {
        let message = format!("`{glob}` in {noun} is part of the path as it is: it matches nothing else");
        let help = if property == "name" { "declare each file on its own" } else { "name one file" };
        return Some(warning("glob-in-name", message, help.to_owned()));
    }
    None
}

/// The first sign of a pattern: `*`, `?`, or letters in brackets.
fn glob(path: &str) -> Option<&str> {
    let class = path.match_indices('[').find_map(|(start, _)| {
        let end = path[start..].find([']', '/']).map(|length| start + length)?;
        (path[end..].starts_with(']') && end > start + 1).then(|| &path[start..=end])
    });
    path.matches(['*', '?']).next().or(class)
}

/// The name of the first `$NAME`.
fn variable(text: &str) -> Option<&str> {
    text.match_indices('$').find_map(|(at, _)| {
        let rest = &text[at + 1..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let is_name = rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        is_name.then(|| &rest[..end])
    })
}

/// The first `$(...)`, or what stands in backquotes.
fn substitution(text: &str) -> Option<&str> {
    let (start, opening, closing) = match (text.find("$("), text.find('`')) {
        (Some(start), _) => (start, 2, ')'),
        (None, start) => (start?, 1, '`'),
    };
    let rest = &text[start + opening..];
    rest.find(closing).map(|length| &text[start..=start + opening + length])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_have_replaced_is_noticed() {
        for (path, id) in [
            ("/etc/*.conf", Some("glob-in-name")),
            ("/srv/a?", Some("glob-in-name")),
            ("/srv/[ab]/x", Some("glob-in-name")),
            ("/srv/[]", None),
            ("/srv/[a/b]", None),
            ("~/x", Some("tilde-in-path")),
            ("/srv/~/x", Some("tilde-in-path")),
            ("/home/$USER/x", Some("variable-in-path")),
            ("/srv/$(hostname)/x", Some("command-in-path")),
            ("/srv/`hostname`/x", Some("command-in-path")),
            ("/srv/$(x", None),
            ("/srv/a~", None),
            ("/srv/5$", None),
            ("/srv/a b", None),
        ] {
            assert_eq!(meant_for_a_shell("name", path).map(|warning| warning.id), id, "{path}");
        }
    }

    #[test]
    fn what_is_noticed_is_quoted_and_what_to_write_instead_is_told() {
        for (path, quoted, help) in [
            ("~", "`~` in", "write `${ Environ.HOME }`"),
            ("~/x", "`~` in", "write `${ Environ.HOME }`"),
            ("/srv/~/x", "`~` in", "write `${ Environ.HOME }`"),
            ("~joe", "`~` in", "write the path of the directory"),
            ("/srv/$MY_DIR/x", "`$MY_DIR` in", "write `${ Environ.MY_DIR }`"),
            ("/srv/5$/$_a", "`$_a` in", "write `${ Environ._a }`"),
            ("/srv/$(hostname -f)/x", "`$(hostname -f)` in", "give the path as data or a fact"),
            ("/`hostname`/x", "``hostname`` in", "give the path as data or a fact"),
            ("/etc/*.conf", "`*` in", "name one file"),
            ("/srv/[ab]/x", "`[ab]` in", "name one file"),
        ] {
            let warning = meant_for_a_shell("target", path).unwrap();
            assert!(warning.message.starts_with(quoted), "{path}: {}", warning.message);
            assert!(warning.help.is_some_and(|told| told.starts_with(help)), "{path}");
        }
    }
}
