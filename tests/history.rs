//! `ccm history` and `ccm blame`: the records of runs.

use std::{fmt::Write, fs};

use serde_json::{Value, json};

use crate::support::{Item, Outcome, Trace, Tree, World, fits_strace, sh};

fn history(world: &World, arguments: &[&str]) -> Outcome {
    world.ccm(["history"].iter().chain(arguments)).run()
}

fn runs(world: &World) -> Vec<Value> {
    history(world, &["--json"]).exits(0).json_lines()
}

fn motd(world: World, content: &str) -> World {
    let text = format!("- file:\n    - $W/motd: {{ content: \"{content}\", $OWN, mode: '0644' }}\n");
    let text = world.fill(&text);
    world.beside("site.yaml", text)
}

#[test]
fn run_is_listed_with_its_changes() {
    let world = motd(World::new(), "one\\n");
    world.ccm(["apply", "site.yaml", "--reason", "because"]).run().exits(0);
    let run = runs(&world).remove(0);
    assert_eq!(run["kind"], "apply");
    assert_eq!(run["reason"], "because");
    assert_eq!(
        [&run["total"], &run["changed"], &run["failed"], &run["exit_status"]],
        [1, 1, 0, 0].map(|n| json!(n)).each_ref()
    );
    assert_eq!(run["manifests"][0]["digest"].as_str().unwrap().len(), 64);
    let shown = history(&world, &["show", "last", "--json"]).exits(0).json();
    assert_eq!(shown["run"], run["run"]);
    let change = &shown["changes"][0];
    assert_eq!(change["resource"], world.fill("file#$W/motd"));
    assert!(change["position"].as_str().unwrap().ends_with("site.yaml:2:7"), "{change}");
    assert_eq!(change["before"], json!({ "existed": false, "kept": true }));
    history(&world, &["show", "last"]).exits(0).says("created the file");
}

#[test]
fn unchanged_runs_dry_runs_and_refused_runs() {
    let world = motd(World::new(), "one\\n");
    world.apply_with(&["--noop"]).exits(0);
    world.ccm(["apply", "missing.yaml"]).run().exits(2);
    assert!(runs(&world).is_empty());
    world.apply().exits(0);
    world.apply().exits(0);
    let counts: Vec<Value> = runs(&world).iter().map(|run| run["changed"].clone()).collect();
    assert_eq!(counts, [0, 1], "newest first");
    history(&world, &["show", "last", "--json"]).exits(0).says("\"changed\":1");
    history(&world, &["show", "nonsense"]).exits(2).complains("no run `nonsense`");
}

#[test]
fn history_can_be_turned_off() {
    let world = motd(World::new(), "one\\n");
    world.apply_with(&["--no-history"]).exits(0);
    let world = motd(world, "two\\n");
    world.ccm(["apply", "site.yaml"]).env("CCM_HISTORY", "off").run().exits(0);
    assert!(runs(&world).is_empty());
    world.ccm(["undo", "last"]).run().exits(2);
}

#[test]
fn changes_are_listed_by_path_and_by_resource() {
    let world = motd(World::new(), "one\\n");
    world.apply().exits(0);
    let world = motd(world, "two\\n");
    world.apply().exits(0);
    let (path, resource) = (world.fill("$W/motd"), world.fill("file#$W/motd"));
    for arguments in [["--path", &path, "--json"], ["--resource", &resource, "--json"]] {
        let changes = history(&world, &arguments).exits(0).json_lines();
        assert_eq!(changes.len(), 2);
        assert_eq!(changes[0]["before"]["existed"], true);
        assert!(changes[0]["run"].is_string() && changes[0]["start"].is_string());
    }
    assert!(history(&world, &["--path", "/elsewhere", "--json"]).exits(0).json_lines().is_empty());
}

#[test]
fn blame_names_the_run_of_each_line() {
    let world = World::new().file("motd", "old\n");
    let world = motd(world, "old\\nfirst\\n");
    world.apply().exits(0);
    let world = motd(world, "old\\nfirst\\nsecond\\n");
    world.apply().exits(0);
    let all = runs(&world);
    let blame = world.ccm(["blame", &world.fill("$W/motd"), "--json"]).run().exits(0).json();
    assert_eq!(blame["run"], all[0]["run"]);
    let lines: Vec<&Value> = blame["lines"].as_array().unwrap().iter().map(|line| &line["run"]).collect();
    assert_eq!(lines, [&Value::Null, &all[1]["run"], &all[0]["run"]]);
    world.ccm(["blame", "/elsewhere"]).run().exits(2).complains("no change of `/elsewhere`");
}

#[test]
fn damage_is_found_by_verify() {
    let world = World::new().file("motd", "old\n");
    let world = motd(world, "new\\n");
    world.apply().exits(0);
    history(&world, &["verify"]).exits(0);
    let objects = world.state().join("history/objects");
    let copy = fs::read_dir(&objects).unwrap().next().unwrap().unwrap().path();
    fs::write(&copy, "0ld\n").unwrap();
    history(&world, &["verify"]).exits(1).says("is damaged");
    world.ccm(["undo", "last"]).run().exits(1);
    assert_eq!(world.read("motd"), "new\n");
}

#[test]
fn pruned_copies_leave_their_records() {
    let world = World::new().file("motd", "old\n");
    let world = motd(world, "new\\n");
    world.apply().exits(0);
    history(&world, &["prune", "--history-size", "0"]).exits(0).says("1 copies");
    let shown = history(&world, &["show", "last", "--json"]).exits(0).json();
    assert_eq!(shown["changes"][0]["before"]["kept"], false);
    let undone = world.ccm(["undo", "last", "--json"]).run();
    let summary = undone.exits(1).json_lines().pop().unwrap();
    assert_eq!(summary["not_undone"][0]["reason"], "not-kept");
}

#[test]
fn command_lines_and_requests_have_no_digest() {
    let world = World::new();
    let path = world.path("file").display().to_string();
    world.ccm(["ensure", "file", &path, "--content", "x", "--mode", "0644"]).run().exits(0);
    assert_eq!(runs(&world)[0]["manifests"], serde_json::json!([]));
}

/// Files with earlier contents, and a manifest that changes all of them.
fn many_files(count: usize) -> World {
    let mut manifest = "- file:\n    - defaults: { $OWN, mode: '0644' }\n".to_owned();
    let mut world = World::new();
    for number in 0..count {
        world = world.file(&number.to_string(), format!("old {number}\n"));
        writeln!(manifest, "    - $W/{number}: {{ content: \"new {number}\\n\" }}").unwrap();
    }
    world.manifest(&manifest)
}

#[test]
fn changes_of_many_files_share_their_syncs() {
    if !fits_strace() {
        return;
    }
    let syncs = |flags: &[&str]| {
        let world = many_files(100);
        let trace = Trace::of_command(&world, &[&["apply", "site.yaml"], flags].concat());
        trace.outcome.exits(0);
        trace.calls.iter().filter(|call| call.syncs()).count()
    };
    let (with, without) = (syncs(&[]), syncs(&["--no-history"]));
    assert!(with <= without + 20, "{with} syncs with a history, {without} without");
}

#[test]
fn change_that_was_recorded_and_not_made_is_not_listed() {
    let world = many_files(20);
    fs::remove_file(world.path("3")).unwrap();
    fs::create_dir(world.path("3")).unwrap();
    let manifest = fs::read_to_string(world.base().join("site.yaml")).unwrap();
    let indented = manifest.replace('\n', "\n    ");
    let world =
        world.beside("site.yaml", format!("ccm:\n  fail_on_error: true\n  resources:\n    {indented}\n"));
    let before = world.read("4");
    world.apply().exits(1);
    assert_eq!(world.read("4"), before);
    let shown = history(&world, &["show", "last", "--json"]).exits(0).json();
    assert_eq!(shown["changes"].as_array().unwrap().len(), 3, "{shown}");
    let path = world.path("9").display().to_string();
    world.ccm(["blame", &path]).run().exits(2);
    world.ccm(["undo", "last"]).run().exits(0);
    assert_eq!(world.read("0"), "old 0\n");
}

#[test]
fn secrets_are_not_stored_in_plain_text() {
    let canary = "C4NARY-93bd1";
    let world = World::new().file("token", format!("{canary}-old"));
    let text = world.fill(&format!(
        "- file:\n    - $W/token: {{ content: \"{canary}-new\", $OWN, mode: '0600', sensitive: true }}\n\
         - exec:\n    - login:\n        command: \"true\"\n        environment: [\"TOKEN={canary}-env\"]\n        undo: \"true\"\n"
    ));
    let world = world.beside("site.yaml", text);
    world.ccm(["apply", "site.yaml", "--data", &format!("key={canary}-data")]).run().exits(0);
    let stored = |text: &str| {
        let files = Tree::of(&world.state().join("history"));
        let holds = |item: &Item| {
            item.content()
                .is_some_and(|content| content.windows(text.len()).any(|part| part == text.as_bytes()))
        };
        files.0.values().any(holds)
    };
    assert!(stored("file#"), "the history has records");
    assert!(!stored(canary));
    for text in [format!("{canary}-old"), format!("{canary}-new")] {
        let digest = sh(&format!("printf %s '{text}' | sha256sum | cut -d' ' -f1"), world.base());
        assert!(!stored(digest.trim()), "a plain digest of `{text}`");
    }
    world.ccm(["undo", "last"]).run().exits(0).never_says(canary);
    assert_eq!(world.read("token"), format!("{canary}-old"));
}
