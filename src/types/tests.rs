//! What every type is held to.

use std::{fmt::Write, fs, path::Path};

use serde_json::{Map, Value, json};

use super::TYPES;
use crate::{
    declare::Completeness,
    document::Diagnostics,
    manifest::{declarations_in, manifest_schema},
    metrics::Metric,
    redaction::MASK,
    resource::{
        AnyType, FieldKind, Resource, common_page, fields, health_checks_page, keys_page, reference_page,
    },
    session,
    template::holds_template,
    vocabulary::schema::inlined,
};

/// The resources of a manifest that is part of the program.
fn resources(manifest: &str) -> Vec<Resource> {
    let declared = declarations_in(manifest).unwrap_or_else(|problems| panic!("{manifest}\n{problems:?}"));
    let mut problems = Diagnostics::default();
    let resolved: Vec<_> = declared
        .into_iter()
        .filter_map(|declaration| declaration.resolve(Completeness::Whole, &mut problems))
        .collect();
    assert!(problems.is_empty(), "{manifest}\n{problems:?}");
    resolved
}

/// Every property that a resource was given, those that are never shown included.
fn properties(resource: &Resource) -> Map<String, Value> {
    let mut properties = resource.wanted.to_json();
    let Value::Object(common) = serde_json::to_value(&*resource.common).unwrap() else { unreachable!() };
    properties.extend(common);
    properties
}

/// A manifest with one resource, written from its properties.
fn written(kind: &dyn AnyType, mut properties: Map<String, Value>) -> Value {
    let name = properties.shift_remove("name").unwrap();
    json!([{ kind.name(): [{ name.as_str().unwrap(): properties }] }])
}

fn is_snake_case(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Every property in a schema, nested ones included, with its description.
fn described(schema: &Value, found: &mut Vec<(String, String)>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let description = property["description"].as_str().unwrap_or_default();
        found.push((name.clone(), description.to_owned()));
        described(property, found);
    }
}

#[test]
fn types_have_different_names_of_lower_case_letters() {
    let mut names: Vec<_> = TYPES.iter().map(|kind| kind.name()).collect();
    assert!(names.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_lowercase())), "{names:?}");
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), TYPES.len());
}

#[test]
fn every_property_and_every_part_of_a_state_is_documented_in_sentences() {
    for kind in TYPES {
        for schema in [kind.properties_schema(), &kind.state_schema()] {
            let mut parts = Vec::new();
            described(schema.as_value(), &mut parts);
            assert!(!parts.is_empty(), "{}", kind.name());
            for (name, description) in parts {
                assert!(is_snake_case(&name), "{} {name}", kind.name());
                assert!(description.ends_with('.'), "{} {name}: {description:?}", kind.name());
            }
        }
        let about = kind.properties_schema().get("description").cloned().unwrap_or_default();
        assert!(about.as_str().is_some_and(|about| about.contains('.')), "{} says what it is", kind.name());
        for field in fields(*kind) {
            assert!(field.description.ends_with('.'), "{} {}", kind.name(), field.name);
        }
    }
}

#[test]
fn every_type_has_a_name_a_desired_state_and_a_provider() {
    for kind in TYPES {
        let names: Vec<_> = fields(*kind).into_iter().map(|field| field.name).collect();
        for needed in ["name", "ensure", "alias", "require", "control", "timeout", "tries", "sensitive"] {
            assert!(names.iter().any(|name| name == needed), "{} has no {needed}", kind.name());
        }
        let mut different = names.clone();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), names.len(), "a property of {} is there twice", kind.name());
        assert!(!kind.providers().is_empty(), "{}", kind.name());
    }
}

#[test]
fn every_type_has_examples_that_are_manifests_of_it() {
    for kind in TYPES {
        assert!(!kind.examples().is_empty(), "{}", kind.name());
        for example in kind.examples() {
            let resources = resources(example.manifest);
            assert!(
                resources.iter().any(|resource| resource.kind.name() == kind.name()),
                "{}",
                example.title
            );
            assert!(example.manifest.ends_with('\n') && !example.title.ends_with('.'), "{}", example.title);
        }
    }
}

#[test]
fn examples_mean_the_same_after_they_were_written_as_yaml_or_json() {
    for kind in TYPES {
        for resource in kind.examples().iter().flat_map(|example| resources(example.manifest)) {
            let mut before = properties(&resource);
            // What is never shown is not written either.
            before.retain(|_, value| value != MASK);
            let manifest = written(resource.kind, before.clone());
            let yaml = serde_saphyr::to_string(&manifest).unwrap();
            for text in [yaml, manifest.to_string(), serde_json::to_string_pretty(&manifest).unwrap()] {
                let again = resources(&text);
                assert_eq!(again.len(), 1);
                let mut after = properties(&again[0]);
                after.retain(|_, value| value != MASK);
                assert_eq!(after, before, "{text}");
            }
        }
    }
}

#[test]
fn no_example_shows_a_secret_to_who_lists_the_processes() {
    // Examples are also shown as commands, and any user can see the arguments of a command.
    for kind in TYPES {
        for declaration in
            kind.examples().iter().flat_map(|example| declarations_in(example.manifest).unwrap())
        {
            let is_sensitive = declaration.properties.iter().any(|entry| entry.key == "sensitive");
            let is_secret = |key: &str| {
                let field = fields(*kind).into_iter().find(|field| field.name == key);
                field.is_some_and(|field| field.is_secret) || is_sensitive && key == "content"
            };
            for entry in declaration.properties.iter().filter(|entry| is_secret(&entry.key)) {
                assert!(holds_template(&entry.value), "{} {}: {}", kind.name(), declaration.name, entry.key);
            }
        }
    }
}

#[test]
fn every_secret_property_hides_what_it_holds() {
    for kind in TYPES {
        for field in fields(*kind).into_iter().filter(|field| field.is_secret) {
            let value = match field.kind {
                FieldKind::List(_) => "[A=canary]",
                FieldKind::Map | FieldKind::Data => "{ A: canary }",
                _ => "canary",
            };
            // Some types are named by paths and some by words.
            let resource = ["/name", "name"].iter().find_map(|name| {
                let manifest = format!("- {}:\n    - {name}: {{ {}: {value} }}\n", kind.name(), field.name);
                let declaration = declarations_in(&manifest).unwrap().remove(0);
                declaration.resolve(Completeness::Identity, &mut Diagnostics::default())
            });
            let resource = resource.unwrap_or_else(|| panic!("{} {}", kind.name(), field.name));
            let redacted = resource.redactor(resource.wanted.as_ref()).redact("a canary").into_owned();
            assert_eq!(redacted, "a [secret]", "{} {}", kind.name(), field.name);
        }
    }
}

/// A file of the project that follows from the source. `UPDATE=1` writes it anew.
#[track_caller]
pub(crate) fn assert_current(path: &str, content: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("UPDATE").is_some() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, content).unwrap();
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        found == content,
        "{path} is not what the source says: run `UPDATE=1 cargo test` and look at the change"
    );
}

#[test]
fn the_reference_pages_are_current() {
    for kind in TYPES {
        assert_current(&format!("docs/reference/{}.md", kind.name()), &reference_page(*kind));
    }
    assert_current("docs/reference/health_checks.md", &health_checks_page());
    let refreshed = TYPES.iter().find(|kind| kind.behavior().refreshes).unwrap();
    assert_current("docs/reference/common.md", &common_page(*refreshed));
}

const GENERATED: &str =
    "<!-- Generated from the source: change it there, then run `UPDATE=1 cargo test`. -->";

#[test]
fn the_lists_of_facts_and_functions_are_current() {
    let mut facts = format!("# Facts\n\n{GENERATED}\n\n");
    facts.push_str("What `ccm facts` shows of a machine. `#` stands for each item of a list: `cpu.info.0.mhz` is that of the first, \
                    `cpu.info.#.mhz` a list of all.\n\n| fact | meaning |\n|---|---|\n");
    facts.extend(crate::facts::FACTS.iter().map(|(path, meaning)| format!("| `{path}` | {meaning} |\n")));
    assert_current("docs/reference/facts.md", &facts);
    let mut functions =
        format!("# Functions\n\n{GENERATED}\n\nThe functions of expressions. Try them with `ccm eval`.\n");
    for (title, group) in crate::template::FUNCTION_GROUPS {
        functions.extend([format!("\n## {title}\n\n| function | gives |\n|---|---|\n")]);
        functions.extend(group.iter().map(|(call, meaning)| format!("| `{call}` | {meaning} |\n")));
    }
    assert_current("docs/reference/functions.md", &functions);
}

#[test]
fn the_reference_of_the_agent_is_current() {
    let mut page = keys_page("agent", inlined::<crate::agent::Written>());
    page += "\n## Metrics\n\nServed under `/metrics` where `metrics` says; `/healthz` answers while the agent lives, `/readyz` after its first \
             run. Besides these there are the `process_` metrics that Prometheus defines.\n\n| metric | kind | labels | meaning |\n|---|---|---|---|\n";
    for Metric { name, help, kind, labels } in crate::agent::described_metrics() {
        let _ = writeln!(page, "| `{name}` | {} | {} | {help} |", kind.word(), labels.join(", "));
    }
    assert_current("docs/reference/agent.md", &page);
}

#[test]
fn the_schemas_are_current() {
    let schemas = [
        ("manifest", manifest_schema()),
        ("event", session::event_schema(super::state_schemas())),
        ("summary", session::summary_schema()),
    ];
    for (name, schema) in schemas {
        assert_current(
            &format!("schemas/{name}.json"),
            &(serde_json::to_string_pretty(&schema).unwrap() + "\n"),
        );
    }
}

/// Pages of the reference that are about no type; those of the program itself are written by the tests of `cli`.
const LISTS: [&str; 10] = [
    "agent",
    "common",
    "environment",
    "events",
    "exit-codes",
    "facts",
    "files",
    "functions",
    "health_checks",
    "messages",
];

#[test]
fn every_file_of_the_reference_belongs_to_a_type_or_is_a_list() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference");
    for entry in fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let page = name.strip_suffix(".md").unwrap();
        let is_known = super::find(page).is_some() || LISTS.contains(&page);
        assert!(is_known, "docs/reference/{name} is about no type");
    }
}
