//! What is said of templates in the language Jet, which the Go original reads.

use std::path::Path;

use ccm_expr::CallError;

/// What to do about them.
pub(crate) const HELP: &str =
    "convert it for `jinja(...)`: write `{{ x }}`, `{% if x %}` and `{% for x in y %}`";

/// Of a call of `jet`.
pub(super) const FUNCTION: &str = "there is no function `jet`: templates in the language Jet are not read";

/// Whether a file is a template in Jet, by its name.
pub(crate) fn is_named(text: &str) -> bool {
    Path::new(text).extension().is_some_and(|ending| ending == "jet")
}

/// Of a file.
pub(crate) fn message(path: &str) -> String {
    format!("{path} is a template in the language Jet, which is not read")
}

/// Of a file that a function is called with.
pub(super) fn refusal(path: &str) -> CallError {
    CallError::at(0, message(path)).with_help(HELP)
}
