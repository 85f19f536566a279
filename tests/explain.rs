//! `ccm explain`: every explanation has an example that produces its diagnostic.

use serde_json::Value;

use crate::support::{Outcome, World};

fn explanations() -> Vec<Value> {
    World::new().ccm(["explain", "--list", "--json"]).run().exits(0).json_lines()
}

/// Runs the command that reads an example of this kind.
fn run(world: World, kind: &str, code: &str) -> Outcome {
    match kind {
        "yaml agent" => {
            world.file("agent.yaml", code).ccm(["agent", "--check", "--config", "$W/agent.yaml"]).run()
        }
        "yaml facts" => {
            let world = world.file("facts.yaml", code).manifest("[]");
            world.ccm(["validate", "site.yaml", "--facts", "$W/facts.yaml"]).run()
        }
        "yaml data" => {
            let world = world.file("data.yaml", code).manifest("[]");
            world.ccm(["validate", "site.yaml", "--hiera", "$W/data.yaml"]).run()
        }
        "env data" | "ini data" => {
            let name = format!("data.{}", &kind[..3]);
            let world = world.file(&name, code).manifest("[]");
            world.ccm(["validate", "site.yaml", "--hiera", &format!("$W/{name}")]).run()
        }
        "yaml inventory" => world.file("hosts.yaml", code).ccm(["hosts", "-i", "$W/hosts.yaml"]).run(),
        "json request" => world.ccm(["ensure", "api", "pipe"]).input(code).run(),
        "json" => world.beside("site.json", code).ccm(["validate", "site.json"]).run(),
        _ => world.manifest(code).ccm(["validate", "site.yaml"]).run(),
    }
}

#[test]
fn every_example_produces_its_diagnostic() {
    let mut wrong = Vec::new();
    for explanation in explanations() {
        let id = explanation["id"].as_str().unwrap();
        let (mut main, mut files) = (None, World::new());
        for example in explanation["examples"].as_array().unwrap() {
            let (kind, code) = (example["kind"].as_str().unwrap(), example["code"].as_str().unwrap());
            match kind.strip_prefix("file ") {
                Some(name) => files = files.beside(name, code),
                None => main = Some((kind, code)),
            }
        }
        if let Some((kind, code)) = main {
            let outcome = run(files, kind, code);
            // The answer to a request has a message without an id.
            let is_rejected = kind == "json request" && outcome.stdout.contains("\"error\": \"request:");
            if !outcome.stderr.contains(&format!("[{id}]")) && !is_rejected {
                wrong.push(format!("{id}\n{outcome}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn explanation_has_meaning_example_and_fix() {
    let world = World::new();
    let text = world.ccm(["explain", "unknown-property"]).run().exits(0).stdout.clone();
    for part in ["unknown-property\n\n", "\n    - file:\n", "\nFix: "] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn unknown_id_is_rejected_with_the_nearest_one() {
    let world = World::new();
    let explain = |id: &str| world.ccm(["explain", id]).run();
    explain("unknown-propety")
        .exits(2)
        .complains("error: unknown id `unknown-propety`; did you mean `unknown-property`?");
    explain("x").exits(2).complains("`ccm explain --list` prints all ids");
}
