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
        return Some(warning("tilde-in-path", message, "write `${ Environ.HOME }`".to_owned()));
    }
    if path.contains(['*', '?']) {
        let message = format!("`*` and `?` in {noun} are characters of the path: they match nothing else");
        let help = if property == "name" { "declare each file on its own" } else { "name one file" };
        return Some(warning("glob-in-name", message, help.to_owned()));
    }
    None
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

/// The first `$(...)`.
fn substitution(text: &str) -> Option<&str> {
    let start = text.find("$(")?;
    let end = text[start..].find(')').map_or(text.len(), |end| start + end + 1);
    Some(&text[start..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_have_replaced_is_noticed() {
        for (path, id) in [
            ("/etc/*.conf", Some("glob-in-name")),
            ("/srv/a?", Some("glob-in-name")),
            ("~/x", Some("tilde-in-path")),
            ("/srv/~/x", Some("tilde-in-path")),
            ("/home/$USER/x", Some("variable-in-path")),
            ("/srv/$(hostname)/x", Some("command-in-path")),
            ("/srv/a~", None),
            ("/srv/5$", None),
            ("/srv/a b", None),
        ] {
            assert_eq!(meant_for_a_shell("name", path).map(|warning| warning.id), id, "{path}");
        }
    }
}
