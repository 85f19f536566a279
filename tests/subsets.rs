//! Runs of some resources only, and runs of several manifests.

use crate::support::{Outcome, World};

/// Three files, of which `c` requires `b`, and a command that `a` refreshes.
fn world() -> World {
    World::new().manifest(
        "\
- file:
    - defaults: { $OWN, mode: \"0644\", content: \"\", tags: [files] }
    - $W/a: { tags: [web, first] }
    - $W/b: {}
    - $W/c: { require: [\"file#$W/b\"], tags: \"${ ['web'] }\" }
- exec:
    - /bin/touch $W/ran:
        refresh_only: true
        subscribe: [\"file#$W/a\"]
",
    )
}

/// The files that are there now.
fn made(world: &World) -> String {
    ["a", "b", "c", "ran"].into_iter().filter(|name| world.path(name).exists()).collect()
}

fn run(flags: &[&str]) -> (String, Outcome) {
    let world = world();
    let flags: Vec<_> = flags.iter().chain(&["-v"]).map(|flag| world.fill(flag)).collect();
    let flags: Vec<&str> = flags.iter().map(String::as_str).chain(["-v"]).collect();
    let outcome = world.apply_with(&flags);
    (made(&world), outcome)
}

#[test]
fn what_is_named_runs_with_what_it_requires_and_the_rest_is_skipped() {
    for (flags, expected) in [
        (vec!["--only", "file#$W/b"], "b"),
        (vec!["--only", "file#$W/c"], "bc"),
        (vec!["--only", "file#*/a", "--only", "file#*b"], "ab"),
        (vec!["--only", "*"], "abcran"),
        (vec!["--only", "tag:web"], "abc"),
        (vec!["--only", "tag:files", "--skip", "tag:first"], "bc"),
        (vec!["--skip", "file#*"], ""),
        (vec!["--skip", "file#$W/b"], "acran"),
        (vec!["--skip", "exec#*"], "abc"),
    ] {
        let (made, outcome) = run(&flags);
        outcome.exits(0);
        assert_eq!(made, expected, "{flags:?} {outcome}");
        if made != "abcran" {
            outcome.says("skipped: not selected");
        }
    }
}

#[test]
fn events_say_why_a_resource_was_passed_over() {
    let world = world();
    let run = world.apply_with(&["--json", "--skip", "file#*"]);
    for name in ["/a", "/b", "/c"] {
        let event = run.event(name);
        assert_eq!(
            (&event["skipped"], &event["skip_reason"]),
            (&true.into(), &"not selected".into()),
            "{event}"
        );
    }
    assert!(run.event("/ran").get("skip_reason").is_none());
    let child = world.fill("- file:\n    - $W/x: { $OWN, mode: \"0644\" }\n");
    let world = world.beside("child.yaml", child).manifest(
        "\
- apply: [{ child.yaml: {} }]
- file:
    - $W/off: { $OWN, mode: \"0644\", control: { if: \"false\" } }
",
    );
    let run = world.apply_with(&["--json", "--skip", "apply#*"]);
    assert_eq!(run.event("/x")["skip_reason"], "not selected");
    assert_ne!(run.event("/off")["skip_reason"], "not selected");
    assert!(run.event("/off")["skip_reason"].is_string());
}

#[test]
fn a_name_of_nothing_is_an_error_and_nothing_is_done() {
    for flags in [
        ["--only", "file#$W/d"],
        ["--skip", "tag:nobody"],
        ["--only", "web"],
        ["--only", "tag:"],
        ["--only", "service#*"],
    ] {
        let (made, outcome) = run(&flags);
        outcome.exits(2);
        assert_eq!(made, "", "{outcome}");
    }
}

#[test]
fn a_refresh_that_falls_on_a_skipped_resource_stays_owed() {
    let world = world();
    world.apply_with(&["--only", "file#*"]).exits(0);
    assert_eq!(made(&world), "abc");
    world.apply_with(&["--skip", "exec#*"]).exits(0);
    world.apply().exits(0).says("1 refreshed");
    assert_eq!(made(&world), "abcran");
    world.apply_with(&["--detailed-exitcode"]).exits(0);
}

#[test]
fn several_manifests_run_one_after_the_other_in_one_session() {
    let file = |name: &str| format!("- file:\n    - $W/{name}: {{ $OWN, mode: \"0644\", content: \"\" }}\n");
    let world = World::new();
    let texts = ["b", "a"].map(|name| world.fill(&file(name)));
    let world = world.beside("one.yaml", &texts[0]).beside("two.yaml", &texts[1]);
    let run = world.ccm(["apply", "one.yaml", "two.yaml"]).run();
    run.exits(0).says("2 resources in");
    assert!(run.stdout.find("w/b").unwrap() < run.stdout.find("w/a").unwrap(), "{run}");
    world.ccm(["apply", "one.yaml", "two.yaml", "--only", "file#*/a"]).run().exits(0);
    world.ccm(["apply", "one.yaml", "two.yaml", "--only", "file#*/x"]).run().exits(2);
}

#[test]
fn a_signal_ends_all_manifests_and_what_is_left_of_all_of_them_is_counted() {
    let exec = |name: &str| format!("- exec:\n    - {name}: {{ command: 'true' }}\n");
    let stop = "- exec:\n    - stop: { command: \"sh -c 'kill -TERM $PPID'\" }\n";
    let world = World::new()
        .beside("one.yaml", format!("{stop}{}{}", exec("a"), exec("b")))
        .beside("two.yaml", format!("{}{}{}", exec("c"), exec("d"), exec("e")))
        .beside("three.yaml", format!("{}{}", exec("f"), exec("g")));
    let run = world.ccm(["apply", "one.yaml", "two.yaml", "three.yaml"]).run();
    run.exits(1).says("stopped by SIGTERM: 7 resources were not attempted");
}

#[test]
fn nothing_is_done_when_one_of_several_manifests_is_wrong_and_all_problems_are_told() {
    let world = World::new().manifest("- file:\n    - $W/a: { ensure: absent }\n- wrong: []\n");
    let world = world.beside("two.yaml", "- false: []\n");
    let run = world.ccm(["apply", "site.yaml", "two.yaml"]).run();
    run.exits(2).complains("`wrong`").complains("`false`");
}

#[test]
fn a_failure_ends_the_manifest_that_asks_for_it_and_not_the_next() {
    let world = World::new().manifest(
        "\
ccm:
  fail_on_error: true
  resources:
    - exec: [{ /bin/false: {} }, { /bin/touch $W/never: {} }]
",
    );
    let next = world.fill("- exec: [{ /bin/touch $W/next: {} }]\n");
    let world = world.beside("two.yaml", next);
    world.ccm(["apply", "site.yaml", "two.yaml"]).run().exits(1).says("1 resource was not attempted");
    assert!(world.path("next").exists() && !world.path("never").exists());
}

#[test]
fn resource_that_two_manifests_declare_is_rejected() {
    let file =
        |content: &str| format!("- file:\n    - $W/a: {{ $OWN, mode: \"0644\", content: \"{content}\" }}\n");
    let world = World::new();
    let texts = ["x", "y"].map(|content| world.fill(&file(content)));
    let included = "- apply:\n    - two.yaml: {}\n";
    let alias = "- exec:\n    - 'true': { alias: same }\n";
    let world = world
        .beside("one.yaml", &texts[0])
        .beside("two.yaml", &texts[1])
        .beside("three.yaml", included)
        .beside("four.yaml", alias)
        .beside("five.yaml", alias.replace("true", "false"));
    let run = world.ccm(["apply", "one.yaml", "two.yaml"]).run();
    run.exits(2)
        .complains("is declared in another manifest of this run, too (first declared here: one.yaml:2:7)");
    run.complains("two.yaml:2:7");
    assert!(!world.path("a").exists());
    world.ccm(["apply", "one.yaml", "three.yaml"]).run().exits(2).complains("two.yaml:2:7");
    world
        .ccm(["apply", "four.yaml", "five.yaml"])
        .run()
        .exits(2)
        .complains("exec#same is declared in another");
    world.ccm(["apply", "one.yaml", "one.yaml"]).run().exits(2);
    world.ccm(["apply", "one.yaml", "four.yaml"]).run().exits(0);
}
