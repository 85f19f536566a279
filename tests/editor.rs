//! The schema of manifests in the language server that editors use. `make try-editor` installs that and runs this.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use crate::{
    guides,
    mistakes::{DATA, MISTAKES},
    support::{World, sh, skip},
};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Returns what the language server says of each of these documents.
fn said(world: &World, documents: &[(String, String)]) -> Option<BTreeMap<String, Vec<String>>> {
    let modules = Path::new(ROOT).join("target/tools/editor/node_modules");
    if !modules.join("yaml-language-server").exists() {
        skip("needs yaml-language-server: make try-editor");
        return None;
    }
    let schema = world.path("ccm.schema.json");
    fs::write(&schema, &world.ccm(["schema", "manifest"]).run().exits(0).stdout).unwrap();
    let mut command = Command::new("node");
    command.arg(Path::new(ROOT).join("tests/fixtures/editor/ask.js")).arg(modules).arg(schema);
    for (name, text) in documents {
        let file = world.path(&format!("{name}.ccm.yaml"));
        fs::write(&file, text).unwrap();
        command.arg(file);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    let line = |line: &str| {
        let said: serde_json::Value = serde_json::from_str(line).unwrap();
        let file = Path::new(said["file"].as_str().unwrap()).file_name().unwrap().to_str().unwrap();
        let name = file.strip_suffix(".ccm.yaml").unwrap().to_owned();
        (
            name,
            said["said"].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect(),
        )
    };
    Some(lines.lines().map(line).collect())
}

#[test]
#[ignore = "needs yaml-language-server: make try-editor"]
fn no_example_is_marked() {
    let root = Path::new(ROOT);
    let examples =
        sh("find examples -name '*.yaml'; ls packaging/manifest.yaml; find docs -name '*.md'", root);
    let mut documents = Vec::new();
    for path in examples.lines() {
        let text = fs::read_to_string(root.join(path)).unwrap();
        let name = path.replace(['/', '.'], "-");
        if Path::new(path).extension().is_some_and(|extension| extension == "md") {
            let blocks = guides::blocks(&text);
            let manifests = blocks.into_iter().filter(guides::looks_like_a_manifest);
            documents.extend(manifests.map(|block| (format!("{name}-{}", block.line), block.text)));
        } else {
            documents.push((name, text));
        }
    }
    assert!(documents.len() > 40);
    let Some(said) = said(&World::new(), &documents) else { return };
    assert_eq!(said.len(), documents.len());
    for (name, said) in said {
        assert!(said.is_empty(), "{name}: {said:#?}");
    }
}

/// Mistakes that are in the shape of a document. Others are in its templates, its files or the words of its values.
const VISIBLE: [&str; 4] = ["unknown property", "expected true or false", "unknown type", "unknown section"];

#[test]
#[ignore = "needs yaml-language-server: make try-editor"]
fn every_mistake_that_a_schema_can_see_is_marked() {
    let world = World::new();
    let filled = |text: &str| world.fill(text).replace("$OWN", "owner: root, group: root");
    let mut documents: Vec<_> = MISTAKES
        .iter()
        .filter(|mistake| VISIBLE.iter().any(|sign| mistake.says.contains(sign)))
        .enumerate()
        .map(|(at, mistake)| (format!("mistake-{at}"), format!("{DATA}    {}\n", filled(mistake.manifest))))
        .collect();
    assert!(documents.len() > 2);
    for (name, text) in [
        ("provider", "- file: [{ /a: { provider: window } }]\n"),
        ("mode", "- file: [{ /a: { mode: '0999' } }]\n"),
        ("relative", "- file: [{ a: { name: a } }]\n"),
        ("type", "- fiel: [{ /a: {} }]\n"),
        ("duration", "- exec: [{ a: { timeout: 5 } }]\n"),
        ("section", "ccm: { resorces: [] }\n"),
    ] {
        documents.push((name.to_owned(), text.to_owned()));
    }
    let Some(said) = said(&world, &documents) else { return };
    for (name, text) in documents {
        assert!(!said[&name].is_empty(), "nothing is said about {name}:\n{text}");
    }
}

#[test]
#[ignore = "needs yaml-language-server: make try-editor"]
fn properties_providers_and_examples_are_offered() {
    let documents = [
        ("properties", "- file:\n    - /etc/motd:\n        conten<|>\n"),
        ("providers", "- exec:\n    - ls:\n        provider: <|>\n"),
        ("types", "- <|>\n"),
    ];
    let documents = documents.map(|(name, text)| (name.to_owned(), text.to_owned()));
    let Some(said) = said(&World::new(), &documents) else { return };
    assert!(said["properties"].iter().any(|label| label == "content"), "{said:?}");
    assert!(said["providers"].iter().any(|label| label.contains("shell")), "{said:?}");
    for label in ["service", "A file with its content in the manifest"] {
        assert!(said["types"].iter().any(|offered| offered.contains(label)), "{label}: {:?}", said["types"]);
    }
}
