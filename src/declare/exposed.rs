//! Secrets in the arguments of a command, which all users of the machine can list.

use crate::{
    document::{Diagnostic, Entry},
    resource::AnyType,
    template::names_secret,
};

/// Warns if an expression in the command of an `exec` refers to a value whose name is that of a secret.
pub(super) fn warning(kind: &dyn AnyType, entry: &Entry) -> Option<Diagnostic> {
    if kind.name() != "exec" || entry.key != "command" {
        return None;
    }
    let text = entry.value.as_str()?;
    let path = expressions(text).find_map(secret)?;
    let message = format!("all users can list the arguments of a command, and `{path}` is probably a secret");
    let help = "hand it over in `environment` or `stdin`";
    Some(Diagnostic::warning("secret-in-command", message).at(entry.value.span).with_help(help))
}

/// Returns the expressions in a text.
fn expressions(text: &str) -> impl Iterator<Item = &str> {
    [("{{", "}}"), ("${", "}")].into_iter().flat_map(move |(begin, end)| {
        text.split(begin)
            .skip(1)
            .filter_map(move |rest| rest.split_once(end))
            .map(|(expression, _)| expression)
    })
}

/// Returns the first path in an expression that names a secret of the data or the environment.
fn secret(expression: &str) -> Option<&str> {
    let is_path = |c: char| c.is_alphanumeric() || "_.-".contains(c);
    let is_secret = |path: &&str| {
        path.split_once('.').is_some_and(|(root, members)| {
            ["data", "environ"].iter().any(|known| root.eq_ignore_ascii_case(known))
                && members.split('.').any(names_secret)
        })
    };
    expression.split(|c| !is_path(c)).find(is_secret)
}
