//! `fact`: values that are learned in the run.

use crate::support::World;

fn world(facts: &str, content: &str) -> World {
    World::new().manifest(&format!(
        "\
- fact:
    - {facts}
- file:
    - $W/page: {{ $OWN, mode: \"0644\", content: \"{content}\" }}
"
    ))
}

#[test]
fn later_resources_see_what_a_command_printed() {
    for (facts, content, expected) in [
        ("v: { command: echo 1.2 }", "<{{ Facts.v }}>", "<1.2>"),
        ("v: { command: sh -c 'echo 1.2 >&2', stream: stderr }", "${ lookup('facts.v') }", "1.2"),
        ("v: { command: \"printf 'a\\\\nb\\\\n'\", parse: lines }", "{{ Facts.v[1] }}", "b"),
        ("v: { command: \"echo '{\\\"a\\\": [1, 2]}'\", parse: json }", "{{ Facts.v.a[1] + 1 }}", "3"),
        ("v: { command: \"echo 'a: {b: c}'\", parse: yaml }", "{{ Facts.v.a.b }}", "c"),
        ("v: { command: \"false\", default: none }", "{{ Facts.v }}", "none"),
        ("v: { command: no-such-program, default: [1] }", "{{ Facts.v[0] }}", "1"),
        ("v: { command: \"echo a | tr a b\", provider: shell }", "{{ Facts.v }}", "b"),
        ("v: { command: pwd, cwd: /usr }", "{{ Facts.v }}", "/usr"),
        ("v: { command: sh -c 'echo $X', environment: [X=secret-text] }", "{{ Facts.v }}", "secret-text"),
        ("v: { command: echo 1.10 }", "{{ versionCompare(Facts.v, '1.9') > 0 }}", "true"),
        ("v: { command: echo 1.10 }", "${ jinja('{% if Facts.v == \\\"1.10\\\" %}yes{% endif %}') }", "yes"),
    ] {
        let world = world(facts, content);
        world.validate().exits(0);
        world.apply_with(&["--noop"]).exits(0).says("1 changed, 1 unchanged");
        world.apply().exits(0).counts([1, 1, 0, 0]);
        assert_eq!(world.read("page"), expected, "{facts}");
        world.apply_with(&["--detailed-exitcode"]).exits(0);
    }
}

#[test]
fn conditions_names_of_loops_and_children_can_use_it() {
    let world = World::new().beside("child.yaml", "").manifest(
        "\
- fact:
    - for_each: [a, b]
      \"fact_{{ each }}\": { command: \"echo {{ each }}\" }
- file:
    - defaults: { $OWN, mode: \"0644\" }
    - $W/on: { content: x, control: { if: \"Facts.fact_a == 'a'\" } }
    - $W/off: { content: x, control: { unless: \"Facts.fact_b == 'b'\" } }
- apply: [{ child.yaml: {} }]
",
    );
    let child =
        world.fill("- file:\n    - $W/child: { $OWN, mode: \"0644\", content: \"{{ Facts.fact_b }}\" }\n");
    let world = world.beside("child.yaml", child);
    world.apply().exits(0);
    assert_eq!(world.tree().names(), ["child", "on"]);
    assert_eq!(world.read("child"), "b");
}

#[test]
fn a_run_of_some_resources_only_learns_it_too() {
    let world = world("v: { command: echo 7 }", "{{ Facts.v }}");
    world.apply_with(&["--only", "file#*"]).exits(0);
    assert_eq!(world.read("page"), "7");
    world.apply_with(&["--skip", "fact#v"]).exits(1).says("Facts.v");
}

#[test]
fn what_is_worked_out_before_the_run_cannot_use_it() {
    let early = World::new().manifest(
        "\
- fact:
    - v: { command: echo root }
- file:
    - $W/x: { owner: \"{{ Facts.v }}\", group: \"{{ lookup('facts.v') }}\", mode: \"0644\" }
",
    );
    let said = early.validate();
    said.exits(2).complains("`Facts.v` is learned only in the run").complains("site.yaml:4:");
    let known = world("os: { command: echo x }", "x");
    known.validate().exits(2).complains("the machine has a fact of that name");
    let earlier = World::new().manifest(
        "\
- file:
    - $W/x: { $OWN, mode: \"0644\", content: \"{{ Facts.v }}\" }
- fact:
    - v: { command: echo x }
",
    );
    earlier.validate().exits(2).complains("Facts.v");
    world("a-b: { command: echo x }", "x").validate().exits(2).complains("is not the name of a fact");
    world("v: {}", "x").validate().exits(2).complains("`command` names no program");
    world("v: { command: a | b }", "x").validate().exits(2).complains("provider: shell");
}

#[test]
fn a_loop_over_it_says_that_it_is_learned_too_late() {
    for for_each in ["Facts.v", "\"{{ lookup('facts.v') }}\"", "['{{ Facts.v }}']", "Facts.v ?? []"] {
        let manifest = format!(
            "- fact:\n    - v: {{ command: seq 3, parse: lines }}\n- exec:\n    - for_each: {for_each}\n      \"echo {{{{ each }}}}\": {{}}\n"
        );
        let said = World::new().manifest(&manifest).validate();
        said.exits(2).complains("`Facts.v` is learned only in the run").complains("site.yaml:4:");
    }
    let inside = World::new()
        .beside("child.yaml", "- exec:\n    - for_each: Facts.v\n      \"echo {{ each }}\": {}\n")
        .manifest("- fact:\n    - v: { command: seq 3, parse: lines }\n- apply: [{ child.yaml: {} }]\n");
    inside.validate().exits(2).complains("`Facts.v` is learned only in the run").complains("child.yaml:2:");
}

#[test]
fn a_command_that_fails_fails_the_fact_and_who_needs_it() {
    for (fact, said) in [
        ("v: { command: sh -c 'echo why >&2; exit 3' }", "exit status 3 (expected 0)"),
        ("v: { command: echo a, parse: json }", "it is not JSON"),
        ("v: { command: no-such-program }", "no-such-program"),
        ("v: { command: sleep 60, timeout: 100ms }", "timed out"),
    ] {
        let run = world(fact, "{{ Facts.v }}").apply();
        run.exits(1).counts([0, 0, 2, 0]).says(said).says("Facts.v");
    }
    let run = world("v: { command: \"false\" }", "{{ Facts.v ?? 'none' }}").apply();
    run.exits(1).counts([1, 0, 1, 0]);
}

#[test]
fn secrets_in_what_it_prints_are_masked_where_it_is_shown() {
    let world = world("v: { command: sh -c 'echo $X', environment: [X=canary-text] }", "{{ Facts.v }}");
    for flags in [&["--json"][..], &["-v"]] {
        let run = world.ccm(["apply", "site.yaml", "--no-diff"].iter().chain(flags)).run();
        run.exits(0);
        assert!(!run.stdout.contains("\"value\":\"canary-text\""), "{run}");
    }
    let failing = self::world("v: { command: sh -c 'echo $X; exit 1', environment: [X=canary-text] }", "x");
    failing.apply().exits(1).says("[secret]").never_says("canary-text");
}

#[test]
fn a_dry_run_waits_for_a_program_that_an_earlier_resource_brings() {
    let manifest = |default: &str| {
        format!(
            "\
- file:
    - $W/tool: {{ $OWN, mode: \"0755\", content: \"#!/bin/sh\\necho 7\\n\" }}
- fact:
    - v: {{ command: $W/tool, {default} }}
"
        )
    };
    let world = World::new().manifest(&manifest("parse: text"));
    world.apply_with(&["--noop"]).exits(0).says("so the value is not known yet");
    let world = world.manifest(&manifest("default: 0"));
    let noop = world.apply_with(&["--noop", "--json"]);
    assert_eq!(noop.exits(0).event("v")["status"]["metadata"]["value"], 0);
    let run = world.apply_with(&["--json"]);
    assert_eq!(run.exits(0).event("v")["status"]["metadata"]["value"], "7");
    assert_eq!(run.event("v")["changed"], false);
}
