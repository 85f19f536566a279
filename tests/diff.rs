//! `ccm diff`.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Outcome, World, sh};

const OLD: &str = "\
data: { greeting: hello, port: 80 }
ccm:
  resources:
    - file:
        - /srv/motd: { content: \"one\\ntwo\\n\", owner: root, group: root, mode: '0644' }
        - /srv/gone: { content: x, owner: root, group: root, mode: '0644' }
        - /srv/same: { content: \"{{ Data.greeting }}\", owner: root, group: root, mode: '0644' }
        - /srv/key: { content: canary-old, owner: root, group: root, mode: '0600', sensitive: true }
    - exec:
        - deploy: { command: /bin/true, environment: [\"TOKEN=canary-old\"] }
    - apply:
        - inner.yaml: { data: { port: \"{{ Data.port }}\" } }
";

const INNER: &str = "\
- file:
    - /srv/inner: { content: \"port {{ Data.port }}\\n\", owner: root, group: root, mode: '0644' }
";

fn world() -> World {
    let new = OLD.replace("two", "2").replace("/srv/gone", "/srv/new").replace("canary-old", "canary-new");
    World::new()
        .beside("old.yaml", OLD)
        .beside("new.yaml", new.replace("port: 80", "port: 81"))
        .beside("inner.yaml", INNER)
}

fn diff(world: &World, arguments: &[&str]) -> Outcome {
    world.ccm(["diff"].iter().chain(arguments)).run()
}

fn changes(group: &Value) -> Vec<(String, String)> {
    let of = |difference: &'_ Value, key: &str| difference[key].as_str().unwrap().to_owned();
    let all = group["differences"].as_array().unwrap();
    all.iter().map(|difference| (of(difference, "resource"), of(difference, "change"))).collect()
}

fn pairs(changes: &[(String, String)]) -> Vec<(&str, &str)> {
    changes.iter().map(|(resource, change)| (resource.as_str(), change.as_str())).collect()
}

#[test]
fn differences_are_listed_with_properties_and_masked_secrets() {
    let world = world();
    let outcome = diff(&world, &["old.yaml", "new.yaml", "--json"]);
    let document = outcome.exits(0).never_says("canary").json();
    let group = &document["groups"][0];
    assert_eq!(group["facts"], json!([]));
    assert_eq!(
        pairs(&changes(group)),
        [
            ("file#/srv/motd", "changed"),
            ("file#/srv/new", "added"),
            ("file#/srv/key", "changed"),
            ("exec#deploy", "changed"),
            ("apply#inner.yaml", "changed"),
            ("file#/srv/inner", "changed"),
            ("file#/srv/gone", "removed"),
        ]
    );
    let properties = |at: usize| &group["differences"][at]["properties"];
    assert_eq!(properties(0), &json!({ "content": { "old": "one\ntwo\n", "new": "one\n2\n" } }));
    assert_eq!(properties(2)["content"], json!({ "old": "[secret]", "new": "[secret]" }));
    assert!(properties(3)["environment"].is_object(), "{}", properties(3));
    assert_eq!(properties(5)["content"], json!({ "old": "port 80\n", "new": "port 81\n" }));
    diff(&world, &["old.yaml", "new.yaml"])
        .exits(0)
        .says("~ file#/srv/motd")
        .says("    -two")
        .says("    +2")
        .never_says("canary");
}

#[test]
fn exit_status_reports_differences_on_request() {
    let world = world();
    diff(&world, &["old.yaml", "new.yaml", "--detailed-exitcode"]).exits(3);
    diff(&world, &["old.yaml", "old.yaml", "--detailed-exitcode"]).exits(0).says("no differences");
    diff(&world, &["old.yaml", "missing.yaml"]).exits(2);
    let world = world.beside("broken.yaml", "- file: [{ relative: {} }]\n");
    diff(&world, &["old.yaml", "broken.yaml"]).exits(2);
}

#[test]
fn machines_with_the_same_differences_are_one_group() {
    let changed =
        "- file:\n    - /srv/role: { content: \"v2\\n\", owner: root, group: root, mode: '0644' }\n";
    let old = "- file:\n    - /srv/role: { content: \"{{ Facts.release }}\\n\", owner: root, group: root, mode: '0644' }\n";
    let world = World::new().beside("old.yaml", old).beside("new.yaml", changed);
    let world = world.beside("a.json", "{\"release\":\"v1\"}").beside("b.json", "{\"release\":\"v1\"}");
    let world = world.beside("c.yaml", "release: v2\n");
    let arguments = ["old.yaml", "new.yaml", "--facts", "a.json", "--facts", "c.yaml", "--facts", "b.json"];
    let document = diff(&world, &[&arguments[..], &["--json"]].concat()).exits(0).json();
    let groups = document["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2, "{document}");
    assert_eq!(groups[0]["facts"], json!(["a.json", "b.json"]));
    assert_eq!(groups[1], json!({ "facts": ["c.yaml"], "differences": [] }));
    diff(&world, &arguments).exits(0).says("a.json, b.json:").says("c.yaml:");
}

#[test]
fn inventory_gives_one_comparison_per_host() {
    let line = |text: &str| {
        format!("- file:\n    - /srv/x: {{ content: \"{text}\", owner: root, group: root, mode: '0644' }}\n")
    };
    let world = World::new()
        .beside("old.yaml", line("{{ Facts.inventory.name }} {{ Data.port }}"))
        .beside("new.yaml", line("{{ Facts.inventory.name }} 80"))
        .beside("hosts.ini", "[web]\nweb1 port=80\nweb2 port=81\n");
    let document = diff(&world, &["old.yaml", "new.yaml", "-i", "hosts.ini", "--json"]).exits(0).json();
    let groups = document["groups"].as_array().unwrap();
    assert_eq!([&groups[0]["facts"], &groups[1]["facts"]], [&json!(["web1"]), &json!(["web2"])]);
    assert!(changes(&groups[0]).is_empty(), "{document}");
    assert_eq!(
        groups[1]["differences"][0]["properties"]["content"],
        json!({ "old": "web2 81", "new": "web2 80" })
    );
}

#[test]
fn git_revisions_are_compared_with_the_files_of_their_commits() {
    if !crate::support::has("git") {
        return;
    }
    let manifest = "- file:\n    - /srv/x: { source: files/x, owner: root, group: root, mode: '0644' }\n- apply:\n    - inner.yaml: {}\n";
    let inner = |port: u16| INNER.replace("{{ Data.port }}", &port.to_string());
    let world = World::new()
        .beside("site/manifest.yaml", manifest)
        .beside("site/files/x", "one\n")
        .beside("site/inner.yaml", inner(80));
    let git = "git -c user.name=x -c user.email=x@example.org -c init.defaultBranch=main";
    sh(&format!("{git} init -q . && {git} add site && {git} commit -qm one"), world.base());
    fs::write(world.base().join("site/files/x"), "two\n").unwrap();
    fs::write(world.base().join("site/inner.yaml"), inner(81)).unwrap();
    for new in ["site", "site/manifest.yaml"] {
        let document = diff(&world, &["main:site", new, "--json"]).exits(0).json();
        let group = &document["groups"][0];
        assert_eq!(pairs(&changes(group)), [("file#/srv/x", "changed"), ("file#/srv/inner", "changed")]);
        assert_eq!(
            group["differences"][0]["properties"]["content"],
            json!({ "old": "one\n", "new": "two\n" })
        );
    }
    sh(&format!("{git} commit -qam two"), world.base());
    diff(&world, &["HEAD~1:site/manifest.yaml", "HEAD:site/manifest.yaml", "--detailed-exitcode"]).exits(3);
    diff(&world, &["HEAD:site", "site", "--detailed-exitcode"]).exits(0);
    diff(&world, &["nowhere:site", "site"]).exits(2).complains("nowhere:site");
    diff(&world, &["--", "--output=x:site", "site"]).exits(2);
    assert!(!world.base().join("x").exists());
}
