//! The reference page of a type, made from its one declaration.

use std::fmt::Write;

use schemars::Schema;
use serde_json::Value;

use super::{
    AnyCandidate, AnyType,
    schema::{Field, common_fields, own_fields},
};
use crate::{
    checks::{HealthCheck, rule_table},
    vocabulary::schema::inlined,
};

/// The page for `docs/reference`.
pub(crate) fn reference_page(kind: &dyn AnyType) -> String {
    let schema = kind.properties_schema();
    let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let mut page = format!(
        "# {}\n\n<!-- Generated from the source: change it there, then run `UPDATE=1 cargo test`. -->\n\n{description}\n",
        kind.name()
    );
    heading(&mut page, "Properties");
    table(&mut page, &own_fields(schema));
    push(&mut page, "\nEvery type also has the [common properties](common.md).\n");
    heading(&mut page, "State");
    push(&mut page, "What `ccm status` and the `status` of an event show.\n\n");
    state(&mut page, kind.state_schema().as_value(), "");
    heading(&mut page, "Providers");
    for AnyCandidate { name, summary, .. } in kind.providers() {
        push(&mut page, &format!("- `{name}`: {summary}\n"));
    }
    heading(&mut page, "Examples");
    for example in kind.examples() {
        push(&mut page, &format!("{}:\n\n```yaml\n{}```\n\n", example.title, example.manifest));
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

/// The page about the properties of all types. `kind` is a type that can be refreshed.
pub(crate) fn common_page(kind: &dyn AnyType) -> String {
    let mut page = "# Common properties\n\n<!-- Generated from the source: change it there, then run `UPDATE=1 cargo test`. -->\n\n\
                    Resources of every type have these properties. Only types that can be refreshed have `subscribe`: `exec` and `service`.\n\n"
        .to_owned();
    table(&mut page, &common_fields(kind));
    page
}

/// The page for `docs/reference` about a file with these keys.
pub(crate) fn keys_page(title: &str, schema: &Schema) -> String {
    let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let mut page = format!(
        "# {title}\n\n<!-- Generated from the source: change it there, then run `UPDATE=1 cargo test`. -->\n\n{description}\n"
    );
    heading(&mut page, "Keys");
    table(&mut page, &own_fields(schema));
    page
}

/// The page about health checks: what a check can say, and what rules can.
pub(crate) fn health_checks_page() -> String {
    let mut page = keys_page("health_checks", inlined::<HealthCheck>());
    heading(&mut page, "Rules of goss");
    push(
        &mut page,
        "In `goss_rules`, `goss_file` and the file of `ccm check`: each kind is a map of subjects, each of those a map of these keys. A \
         key in bold has to be there; where it is marked with *, the others are looked at only if it holds and is not false. Every rule \
         can have `title`, `meta` and `skip`.\n\n",
    );
    push(&mut page, &rule_table());
    page
}

fn heading(page: &mut String, title: &str) {
    push(page, &format!("\n## {title}\n\n"));
}

fn push(page: &mut String, text: &str) {
    page.push_str(text);
}

fn table(page: &mut String, fields: &[Field]) {
    push(page, "| property | type | meaning |\n|---|---|---|\n");
    for field in fields {
        let default = field.default.as_ref().map(|value| format!(" Default: `{value}`.")).unwrap_or_default();
        let meaning = one_line(&field.description);
        let Field { name, type_name, .. } = field;
        let _ = writeln!(page, "| <a id=\"{name}\"></a>`{name}` | {type_name} | {meaning}{default} |");
    }
}

/// The fields of a state, nested ones under their dotted names.
fn state(page: &mut String, schema: &Value, prefix: &str) {
    if prefix.is_empty() {
        push(page, "| key | meaning |\n|---|---|\n");
    }
    for (name, schema) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        let _ = writeln!(page, "| `{prefix}{name}` | {} |", one_line(description));
        state(page, schema, &format!("{prefix}{name}."));
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
