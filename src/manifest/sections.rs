//! The sections of a manifest, and the settings below `ccm`.

use super::ManifestSettings;
use crate::{
    document::{self, Diagnostic, Diagnostics, Entry, Node, Source, Span, Value, closest, from_node},
    template::{self, Scope},
};

const SECTIONS: [&str; 4] = ["data", "hierarchy", "overrides", "ccm"];

/// Returns whether ccm ignores a key at the top: editors or anchors use it.
fn is_for_others(key: &str) -> bool {
    key == "$schema" || key.starts_with("x-")
}

pub(super) fn check_sections(entries: &[Entry], diagnostics: &mut Diagnostics) {
    for Entry { key, key_span, value } in entries.iter().filter(|entry| !is_for_others(&entry.key)) {
        if !SECTIONS.contains(&key.as_str()) {
            let near = closest(key, SECTIONS);
            let help = near.map_or_else(
                || format!("a manifest has {}; resources stand below ccm.resources", SECTIONS.join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            diagnostics.push(
                Diagnostic::error("unknown-section", format!("unknown section `{key}`"))
                    .at(*key_span)
                    .with_help(help),
            );
        } else if value.as_map().is_none() && !value.is_null() && matches!(key.as_str(), "data" | "ccm") {
            diagnostics.push(
                Diagnostic::error(
                    "section-not-a-map",
                    format!("`{key}` must be a map, not {}", value.kind()),
                )
                .at(value.span),
            );
        }
    }
}

/// Returns the list of resources and the settings of a manifest.
pub(super) fn read(
    root: &mut Node,
    scope: &Scope,
    source: &Source,
    diagnostics: &mut Diagnostics,
) -> (Option<Node>, ManifestSettings) {
    let whole = root.span;
    match &mut root.value {
        Value::Map(entries) => {
            check_sections(entries, diagnostics);
            ccm_section(entries, scope, source, diagnostics)
        }
        _ => (Some(std::mem::replace(root, Node::null(whole))), ManifestSettings::default()),
    }
}

fn ccm_section(
    entries: &mut [Entry],
    scope: &Scope,
    source: &Source,
    diagnostics: &mut Diagnostics,
) -> (Option<Node>, ManifestSettings) {
    let ccm = entries.iter_mut().find(|entry| entry.key == "ccm").map(|entry| &mut entry.value.value);
    let Some(Value::Map(ccm)) = ccm else { return (None, ManifestSettings::default()) };
    let mut rest = Vec::new();
    for entry in ccm.iter_mut().filter(|entry| entry.key != "resources") {
        if entry.key.ends_with("_message") {
            template::join(&mut entry.value);
        }
        template::expand_properties(&mut entry.value, scope, source, diagnostics);
        rest.push(entry.clone());
    }
    let resources = ccm.iter().position(|entry| entry.key == "resources").map(|at| ccm.remove(at).value);
    (resources, settings(rest, diagnostics))
}

fn settings(entries: Vec<Entry>, diagnostics: &mut Diagnostics) -> ManifestSettings {
    let known = crate::vocabulary::schema::keys::<ManifestSettings>();
    let mut map = Vec::new();
    for entry in entries {
        if known.contains(&entry.key.as_str()) {
            // A template that could not be expanded has an error already.
            map.extend(Some(entry).filter(|entry| !template::holds_template(&entry.value)));
            continue;
        }
        let all = known.iter().copied().chain(["resources"]);
        if entry.key == "resources_jet_file" {
            let message = "`ccm.resources_jet_file` names a template in the language Jet, which is not read";
            let help = "list the resources below `ccm.resources` and repeat them with `for_each`";
            let problem = Diagnostic::error("unknown-setting", message).at(entry.key_span);
            diagnostics.push(problem.with_help(help));
            continue;
        }
        let help = closest(&entry.key, all.clone()).map_or_else(
            || format!("ccm has {}", all.collect::<Vec<_>>().join(", ")),
            |near| format!("did you mean `{near}`?"),
        );
        diagnostics.push(
            Diagnostic::error("unknown-setting", format!("unknown key `ccm.{}`", entry.key))
                .at(entry.key_span)
                .with_help(help),
        );
    }
    // One by one, so that each faulty setting is reported.
    for entry in &map {
        let span = entry.value.span;
        let alone = Node { value: Value::Map(vec![entry.clone()]), span };
        if let Err(error) = from_node::<ManifestSettings>(&alone) {
            let message = format!("ccm.{}: {}", entry.key, error.message);
            diagnostics.push(Diagnostic::error("invalid-setting", message).at(error.span.unwrap_or(span)));
        }
    }
    from_node(&Node { value: Value::Map(map), span: document::Span::default() }).unwrap_or_default()
}

/// Returns the error for a document without resources, which is most probably not a manifest.
pub(super) fn no_resources(place: Span) -> Diagnostic {
    Diagnostic::error("no-resources", "the manifest has no resources")
        .at(place)
        .with_help("write them below ccm.resources; `resources: []` is a manifest without any")
}

pub(super) fn not_a_manifest(root: &Node) -> Diagnostic {
    if root.is_null() {
        return no_resources(root.span);
    }
    Diagnostic::error(
        "not-a-manifest",
        format!("a manifest is a map of sections or a list of resources, not {}", root.kind()),
    )
    .at(root.span)
}
