//! Patterns in `require` and `subscribe`: they refer to all matching resources that are declared before.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::support::{Outcome, World};

/// Files in a loop, and a command that subscribes to them by a pattern.
const LOOP: &str = "\
data: { sites: [one, two], more: '', other: '' }
ccm:
  resources:
    - file:
        - defaults: { $OWN, mode: '0644' }
        - for_each: Data.sites
          \"$W/sites/${ each }\": { content: \"${ each } ${ Data.more }\\n\" }
        - $W/other: { content: \"${ Data.other }\" }
    - exec:
        - reload:
            command: sh -c 'echo run >> $W/runs'
            refresh_only: true
            subscribe: file#$W/sites/*
";

fn runs(world: &World) -> usize {
    fs::read_to_string(world.path("runs")).map_or(0, |text| text.lines().count())
}

/// A list of an included manifest, files and a command with a property.
fn manifest(files: &[&str], property: &str) -> String {
    let file = |name: &&str| {
        let (name, more) = name.split_once(' ').unwrap_or((name, ""));
        format!("    - $W/{name}: {{ content: '', $OWN, mode: '0644', {more} }}\n")
    };
    let files: String = files.iter().map(file).collect();
    format!("- file:\n{files}- exec:\n    - 'true':\n        alias: last\n        {property}\n")
}

#[test]
fn subscriber_of_a_pattern_is_refreshed_once_for_all_items_of_a_loop() {
    let world = World::new().dir("sites").manifest(LOOP);
    world.apply_with(&["--noop"]).exits(0).says("Would have executed via subscribe");
    assert_eq!(runs(&world), 0);
    world.apply().exits(0).says("4 changed (1 refreshed)");
    assert_eq!(runs(&world), 1);
    world.apply_with(&["--detailed-exitcode"]).exits(0);
    world.apply_with(&["--data", "other=x"]).exits(0).says("1 changed");
    assert_eq!(runs(&world), 1, "a file that does not match refreshes nothing");
    world.apply_with(&["--data", "sites=[\"two\",\"three\"]"]).exits(0);
    assert_eq!(runs(&world), 2, "a new item refreshes the subscriber");
}

#[test]
fn plan_of_a_subscriber_by_pattern_is_applied() {
    let world = World::new().dir("sites").manifest(LOOP);
    let plan = world.base().join("plan").display().to_string();
    let manifest = "site.yaml".to_owned();
    world.ccm(["plan", &manifest, "-o", &plan, "--allow-opaque"]).run().exits(0);
    world.ccm(["apply", &plan]).run().exits(0);
    assert_eq!(runs(&world), 1);
}

#[test]
fn failed_resource_that_a_pattern_matches_skips_the_resource_that_requires_it() {
    let world = World::new().manifest(
        "- exec:\n    - 'true': { alias: step-one }\n    - 'false': { alias: step-two }\n    \
         - /bin/true: { require: 'exec#step-*' }\n",
    );
    let outcome = world.apply_with(&["--json"]);
    outcome.exits(1);
    assert_eq!(outcome.event("/bin/true")["unmet_requirements"], json!(["exec#false"]));
}

#[test]
fn patterns_refer_only_to_matching_resources_before_the_resource() {
    for (files, property, expected) in [
        (&["a", "b"][..], "require: ['file#$W/*']", &["a", "b"][..]),
        (&["a", "b"], "subscribe: ['file#$W/b', 'file#$W/*']", &["b", "a"]),
        (&["a", "sub/b", "c"], "require: 'file#$W/s*'", &["sub/b"]),
        (&["ab", "abc"], "require: 'file#$W/a?'", &["ab"]),
        (&["x", "y alias: first"], "require: 'file#f?rst'", &["y"]),
        (&["x*", "xy"], "require: 'file#$W/x*'", &["x*"]),
    ] {
        let world = World::new().dir("sub").manifest(&manifest(files, property));
        let outcome = world.apply_with(&["--json"]);
        outcome.exits(0);
        let properties = &outcome.event("true")["properties"];
        let key = property.split(':').next().unwrap();
        let expected: Vec<Value> =
            expected.iter().map(|name| json!(world.fill(&format!("file#$W/{name}")))).collect();
        assert_eq!(properties[key], json!(expected), "{property}");
    }
}

#[test]
fn pattern_of_included_manifests_refers_to_the_earlier_ones() {
    let role = |name: &str| format!("- file:\n    - $W/{name}: {{ content: '', $OWN, mode: '0644' }}\n");
    let world = World::new();
    let (one, two) = (world.fill(&role("one")), world.fill(&role("two")));
    let world = world.beside("roles/one.yaml", one).beside("roles/two.yaml", two).manifest(
        "- apply:\n    - roles/one.yaml:\n    - roles/two.yaml:\n- exec:\n    \
         - sh -c 'echo run >> $W/runs': { refresh_only: true, subscribe: 'apply#roles/*', require: 'file#*/w/*' }\n",
    );
    world.apply().exits(0);
    assert_eq!(runs(&world), 1);
    world.apply_with(&["--detailed-exitcode"]).exits(0);
}

#[test]
fn pattern_without_a_match_is_rejected_at_its_position() {
    for (text, expected) in [
        (
            manifest(&["a"], "require: ['file#$W/b*']"),
            "error[undeclared-reference]: exec#true: no resource before it matches file#$W/b*\n --> site.yaml:6:19",
        ),
        (
            "- exec:\n    - 'true': { require: 'file#$W/*' }\n".to_owned()
                + &manifest(&["later"], "tags: [x]")[..],
            "exec#true: a resource that matches file#$W/* is declared only later",
        ),
        (
            "- exec:\n    - 'true': { subscribe: 'exec#t*' }\n".to_owned(),
            "exec#true: no resource before it matches exec#t*",
        ),
        (
            "- exec:\n    - 'true': { sensitive: true, subscribe: 'exec#hidden*' }\n".to_owned(),
            "exec#true: a resource that it refers to is not declared",
        ),
    ] {
        let text = text.replace("    - 'true':\n        alias: last\n        tags: [x]\n", "    - last:\n");
        let world = World::new().manifest(&text);
        let outcome = world.validate();
        outcome.exits(2).complains(&world.fill(expected)).never_says("hidden");
        world.apply().exits(2).complains(&world.fill(expected));
    }
}

#[test]
fn pattern_cannot_refer_to_a_file_that_waits_for_its_validation() {
    let member =
        |name: &str| format!("    - $W/{name}: {{ content: '', $OWN, mode: '0644', validate: 'true' }}\n");
    let world = World::new().manifest(&format!(
        "- file:\n{}- exec:\n    - /bin/true: {{ subscribe: 'file#$W/*' }}\n- file:\n{}",
        member("a"),
        member("b")
    ));
    world
        .validate()
        .exits(2)
        .complains("pending-reference")
        .complains("exec#/bin/true: file#")
        .complains("move it after");
}

/// Runs `ccm ensure` in a session.
fn ensure(world: &World, session: &Path, arguments: &[&str]) -> Outcome {
    world
        .ccm(["ensure"].iter().chain(arguments))
        .env("CCM_SESSION_STORE", session.display().to_string())
        .run()
}

#[test]
fn commands_of_a_session_can_subscribe_to_patterns() {
    let world = World::new();
    let session = world.base().join("session");
    let file = |name: &str, content: &str| {
        let arguments =
            ["file", name, "--content", content, "--owner", "$UID", "--group", "$GID", "--mode", "0644"];
        ensure(&world, &session, &arguments).exits(0);
    };
    let command = world.fill("sh -c 'echo run >> $W/runs'");
    let subscribe =
        || ensure(&world, &session, &["exec", &command, "--refresh-only", "--subscribe", "file#$W/*"]);
    subscribe().exits(1).says(&world.fill("no resource in this session matches file#$W/*"));
    file("$W/a", "");
    file("$W/b", "");
    subscribe().exits(0);
    assert_eq!(runs(&world), 1);

    let request = world.fill(
        "{\"protocol\": \"io.choria.ccm.v1.resource.ensure.request\", \"type\": \"exec\", \"properties\": {\"name\": \
         \"/bin/true\", \"require\": [\"file#$W/?\", \"exec#sh*\"]}}",
    );
    let answer = world.ccm(["ensure", "api", "pipe"]).env("CCM_SESSION_STORE", session.display().to_string());
    let outcome = answer.input(request).run();
    let answer: Value = serde_json::from_str(&outcome.exits(0).stdout).unwrap();
    let expected = ["file#$W/a", "file#$W/b", &format!("exec#{command}")].map(|name| world.fill(name));
    assert_eq!(answer["state"]["properties"]["require"], json!(expected), "{answer}");
    assert_eq!(answer["state"]["failed"], false, "{answer}");
}
