//! How resources are applied: order, conditions, requirements, attempts, and the account that is given of it.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::{ChildStdout, Command},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{Trace, World, finish, fits_strace, listens};

/// A resource that fails, whoever runs it.
const BAD: &str = "- $W/no/where: { content: x, alias: bad }";

#[test]
fn resources_run_in_the_written_order() {
    let world = World::new().files(
        "\
- $W/d: { ensure: directory, mode: '0755' }
- $W/d/a: { content: one }
- $W/d/b: { ensure: absent }
- $W/c: { content: x }",
    );
    let outcome = world.apply_with(&["--json"]);
    let names: Vec<_> = outcome.exits(0).events().iter().map(|event| event["name"].clone()).collect();
    assert_eq!(json!(names), json!(["$W/d", "$W/d/a", "$W/d/b", "$W/c"].map(|name| world.fill(name))));
}

#[test]
fn what_was_seen_of_a_file_ahead_of_its_turn_is_not_looked_at_again() {
    if !fits_strace() {
        return;
    }
    let names: Vec<String> = (0..200).map(|number| format!("f{number:03}")).collect();
    let items: Vec<String> = names.iter().map(|name| format!("- $W/{name}: {{ content: same }}")).collect();
    let world = names.iter().fold(World::new(), |world, name| world.file(name, "same"));
    let trace = Trace::of(&world.files(&items.join("\n")), &[]);
    trace.outcome.exits(0).counts([0, 200, 0, 0]);
    let looks = |name: &String| {
        let name = format!("{name}\"");
        trace.calls.iter().filter(|call| call.text.contains(&name)).count()
    };
    let counts: Vec<usize> = names.iter().map(looks).collect();
    assert_eq!(counts, vec![counts[0]; 200], "as often as the first, of which nothing was seen before");
}

#[test]
fn a_resource_is_managed_when_if_is_not_false_and_unless_is_not_true() {
    for (control, managed) in [
        ("{ if: true }", true),
        ("{ if: false }", false),
        ("{ unless: true }", false),
        ("{ unless: false }", true),
        ("{ if: 'true' }", true),
        ("{ if: 'false' }", false),
        ("{ if: true, unless: true }", false),
        ("{ if: true, unless: false }", true),
        ("{ if: false, unless: false }", false),
        ("{}", true),
    ] {
        let world = World::new().files(&format!("- $W/x: {{ content: x, control: {control} }}"));
        let outcome = world.apply();
        outcome.exits(0).counts(if managed { [1, 0, 0, 0] } else { [0, 0, 0, 1] });
        assert_eq!(world.path("x").exists(), managed, "{control}");
        if !managed {
            outcome.reports(&world.fill("file#$W/x"), "skipped: control.");
            let event = world.apply_with(&["--json"]).event("/x");
            assert_eq!((&event["skipped"], &event["unmet_requirements"]), (&json!(true), &json!([])));
        }
    }
}

#[test]
fn an_unmet_requirement_skips_a_resource_and_is_listed() {
    let world = World::new().files(&format!(
        "{BAD}\n- $W/ok: {{ content: x }}\n- $W/x: {{ content: x, require: [file#bad, 'file#$W/ok', 'file#$W/no/where'] }}"
    ));
    let outcome = world.apply();
    let skipped = world.fill("skipped: file#bad failed, file#$W/no/where failed");
    outcome
        .exits(1)
        .reports(&world.fill("file#$W/x"), &skipped)
        .counts([1, 0, 1, 1])
        .says("(1 after a failure)");
    assert!(!world.path("x").exists());
    let event = world.apply_with(&["--json"]).event("/x");
    assert_eq!(event["unmet_requirements"], json!(["file#bad", world.fill("file#$W/no/where")]));
    assert_eq!(
        (&event["skipped"], &event["failed"], &event["changed"]),
        (&json!(true), &json!(false), &json!(false))
    );
}

#[test]
fn a_chain_of_unmet_requirements_skips_all_of_it() {
    let world = World::new().files(&format!(
        "{BAD}\n- $W/a: {{ content: x, alias: a, require: [file#bad] }}\n- $W/b: {{ content: x, alias: b, require: [file#a] }}\n\
         - $W/c: {{ content: x, require: [file#b] }}\n- $W/free: {{ content: x }}"
    ));
    let outcome = world.apply();
    outcome.exits(1).counts([1, 0, 1, 3]).says("skipped: file#b ");
    assert_eq!(world.tree().names(), ["free"]);
}

#[test]
fn a_resource_that_was_excluded_by_its_control_is_no_unmet_requirement() {
    let world = World::new().files(
        "- $W/a: { content: x, control: { if: false } }\n- $W/b: { content: x, require: ['file#$W/a'] }",
    );
    world.apply().exits(0).counts([1, 0, 0, 1]);
    assert_eq!(world.tree().names(), ["b"]);
}

#[test]
fn an_alias_stands_for_its_resource_in_references_and_reports() {
    let world = World::new()
        .files("- $W/a: { content: x, alias: first }\n- $W/b: { content: x, require: [file#first] }");
    world.apply().exits(0).counts([2, 0, 0, 0]).says("alias=first");
    let outcome = world.apply_with(&["--json"]);
    assert_eq!(outcome.event("/a")["alias"], "first");
    assert!(outcome.event("/b").get("alias").is_none());
}

#[test]
fn a_failure_stops_nothing_unless_asked_to() {
    let manifest = |stop: &str| {
        format!(
            "\
ccm:
  fail_on_error: {stop}
  post_message: all is well
  resources:
    - file:
        - $W/a: {{ content: x, $OWN, mode: '0644' }}
        - $W/no/x: {{ content: x, $OWN, mode: '0644' }}
        - $W/b: {{ content: x, $OWN, mode: '0644' }}
        - $W/c: {{ content: x, $OWN, mode: '0644' }}
"
        )
    };
    let world = World::new().manifest(&manifest("false"));
    world.apply().exits(1).counts([3, 0, 1, 0]).never_says("stopped").never_says("all is well");
    let world = World::new().manifest(&manifest("true"));
    let outcome = world.apply();
    outcome
        .exits(1)
        .says("stopped after a failure, as fail_on_error asks: 2 resources were not attempted")
        .never_says("all is well");
    assert_eq!(world.tree().names(), ["a"]);
    let world = World::new().manifest(&manifest("true"));
    assert_eq!(world.apply_with(&["--json"]).exits(1).events().len(), 2);
}

#[test]
fn messages_are_printed_before_and_after_a_run_that_went_well() {
    let world = World::new()
        .manifest("ccm: { pre_message: 'here we go', post_message: \"all is well\\n\", resources: [] }");
    let outcome = world.apply();
    assert!(outcome.exits(0).stdout.starts_with("here we go\n"), "{outcome}");
    assert!(outcome.stdout.ends_with("\nall is well\n"), "{outcome}");
    world.apply_with(&["--json"]).exits(0).never_says("here we go").never_says("all is well");
}

#[test]
fn a_resource_is_tried_as_often_as_it_may() {
    let world = World::new().files(
        "- $W/no/x: { content: x, tries: 3, try_sleep: 50ms }\n- $W/no/y: { content: x, try_sleep: 1h }",
    );
    // One attempt has no pause, or this would never end.
    let outcome = world.apply_with(&["--json"]);
    let pauses = |name: &str| outcome.event(name)["duration"].as_u64().unwrap() / 50_000_000;
    assert_eq!(outcome.exits(1).event("/x")["error"].as_array().unwrap().len(), 1, "the last attempt's");
    assert!(pauses("/x") >= 2, "two pauses between three attempts");
}

#[test]
fn a_later_attempt_can_go_well() {
    let world = World::new()
        .files("- $W/first: { content: x }\n- $W/later/x: { content: x, tries: 6000, try_sleep: 10ms }");
    let mut child = world.ccm(["apply", "site.yaml"]).start();
    first_line(child.stdout.as_mut().unwrap());
    let world = world.dir("later");
    let outcome = finish(child, "ccm apply".to_owned());
    outcome.exits(0).says(": 2 changed\n").never_says("does not exist");
    assert_eq!(world.read("later/x"), "x");
}

/// Waits for the first resource to be reported.
fn first_line(output: &mut ChildStdout) -> String {
    let mut line = String::new();
    BufReader::with_capacity(1, output).read_line(&mut line).unwrap();
    line
}

#[test]
fn an_attempt_that_takes_too_long_fails_and_leaves_the_old_state() {
    let world = World::new().file("x", "old");
    fs::File::create(world.base().join("large")).unwrap().set_len(4 << 30).unwrap();
    let world = world.files("- $W/x: { source: large, timeout: 5ms }\n- $W/y: { content: x }");
    let outcome = world.apply();
    outcome.exits(1).says("timed out after 5ms").says("(timeout)").counts([1, 0, 1, 0]);
    assert_eq!(world.tree().names(), ["x", "y"]);
    assert_eq!(world.read("x"), "old");
}

#[test]
fn a_signal_stops_the_run_after_the_resource_in_hand_and_the_report_is_printed() {
    for (signal, name) in [(Signal::INT, "SIGINT"), (Signal::TERM, "SIGTERM"), (Signal::HUP, "SIGHUP")] {
        let world = World::new().manifest(
            "\
ccm:
  post_message: all is well
  resources:
    - file:
        - defaults: { $OWN, mode: '0644' }
        - $W/a: { content: x }
        - $W/no/x: { content: x, tries: 1000, try_sleep: 1h }
        - $W/b: { content: x }
",
        );
        let mut child = world.ccm(["apply", "site.yaml"]).start();
        first_line(child.stdout.as_mut().unwrap());
        kill_process(Pid::from_child(&child), signal).unwrap();
        let outcome = finish(child, format!("ccm apply, {name}"));
        outcome
            .exits(1)
            .says(&format!("stopped by {name}: "))
            .says("not attempted")
            .never_says(" unchanged")
            .never_says("all is well");
        assert_eq!(world.tree().names(), ["a"], "{outcome}");
        world.ccm(["ensure", "file", "$W/a", "absent"]).run().exits(0);
    }
}

#[test]
fn a_signal_counts_although_the_shell_had_it_ignored_for_the_background() {
    let world = World::new().files(
        "- $W/a: { content: x }\n- $W/no/x: { content: x, tries: 1000, try_sleep: 1h }\n- $W/b: { content: x }",
    );
    let in_background = ["/bin/sh", "-c", "trap '' INT; exec \"$0\" \"$@\""];
    let mut child = world.ccm(["apply", "site.yaml"]).under(in_background).start();
    first_line(child.stdout.as_mut().unwrap());
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    finish(child, "ccm apply".to_owned()).exits(1).says("stopped by SIGINT: ");
}

#[test]
fn a_signal_in_the_middle_of_a_copy_leaves_the_old_state_and_no_temporary_file() {
    let world = World::new().file("x", "old");
    fs::File::create(world.base().join("large")).unwrap().set_len(64 << 30).unwrap();
    let world = world.files("- $W/a: { content: x }\n- $W/x: { source: large }\n- $W/b: { content: x }");
    let mut child = world.ccm(["apply", "site.yaml"]).start();
    first_line(child.stdout.as_mut().unwrap());
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let outcome = finish(child, "ccm apply".to_owned());
    outcome.exits(1).says("stopped by SIGTERM");
    assert_eq!(world.tree().names(), ["a", "x"], "{outcome}");
    assert_eq!(world.read("x"), "old");
}

const KEYS: [(&str, fn(&Value) -> bool); 21] = [
    ("protocol", |value| value == "io.choria.ccm.v1.transaction.event"),
    ("event_id", |value| value.as_str().is_some_and(|id| id.len() == 27)),
    ("timestamp", |value| {
        value.as_str().is_some_and(|time| time.ends_with('Z') && time.as_bytes()[10] == b'T')
    }),
    ("type", |value| value == "file"),
    ("provider", Value::is_string),
    ("name", Value::is_string),
    ("requested_ensure", Value::is_string),
    ("final_ensure", Value::is_string),
    ("duration", Value::is_u64),
    ("properties", Value::is_object),
    ("status", |value| value.is_object() || value.is_null()),
    ("error", is_list_of_text),
    ("changed", Value::is_boolean),
    ("refreshed", Value::is_boolean),
    ("failed", Value::is_boolean),
    ("skipped", Value::is_boolean),
    ("noop", Value::is_boolean),
    ("unmet_requirements", is_list_of_text),
    // Left out when empty.
    ("alias", Value::is_string),
    ("noop_message", Value::is_string),
    ("skip_reason", Value::is_string),
];

fn is_list_of_text(value: &Value) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(Value::is_string))
}

/// A world with an event of every kind.
fn everything() -> World {
    World::new().dir("dir").file("same", "x").file("other", "y").link("link", "$W/same").files(
        "\
- $W/new: { content: x, alias: new }
- $W/same: { content: x }
- $W/other: { content: x }
- $W/dir: { content: x, alias: bad }
- $W/unmet: { content: x, require: [file#bad] }
- $W/excluded: { content: x, control: { if: false } }
- $W/d: { ensure: directory, mode: '0755' }
- $W/gone: { ensure: absent }
- $W/link: { ensure: absent }
- $W/same/below: { content: x }
- $W/secret: { content: x, sensitive: true }
- $W/owner: { content: x, owner: no-such-user, timeout: 1m, tries: 1, try_sleep: 1s }",
    )
}

#[test]
fn events_have_exactly_the_keys_they_should() {
    for flags in [&["--json"][..], &["--json", "--noop"], &["--json", "--diff"]] {
        for event in everything().apply_with(flags).exits(1).events() {
            for (key, value) in event.as_object().unwrap() {
                let known = KEYS.iter().find(|(known, _)| known == key);
                let fits = known.map_or(key == "diff" && value.is_string(), |(_, fits)| fits(value));
                assert!(fits, "{key} in {event:#}");
            }
            for (key, _) in &KEYS[..18] {
                assert!(event.get(key).is_some(), "no {key} in {event:#}");
            }
            if let Some(status) = event["status"].as_object() {
                let keys: Vec<_> = status.keys().map(String::as_str).collect();
                assert_eq!(keys, ["protocol", "type", "name", "ensure", "metadata"]);
                assert_eq!(status["protocol"], "io.choria.ccm.v1.resource.file.state");
            }
        }
    }
}

#[test]
fn events_fit_their_schema() {
    let world = everything();
    let schema = world.ccm(["schema", "event"]).run().exits(0).json();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for flags in [&["--json", "--noop"][..], &["--json"]] {
        for event in world.apply_with(flags).events() {
            let problems: Vec<_> = validator.iter_errors(&event).map(|error| error.to_string()).collect();
            assert!(problems.is_empty(), "{problems:?}\n{event:#}");
        }
    }
    assert!(!validator.is_valid(&json!({ "protocol": "x" })));
}

#[test]
fn the_state_of_a_file_has_the_names_of_its_specification() {
    let world = World::new().files("- $W/x: { content: x }");
    let metadata = world.apply_with(&["--json"]).event("/x")["status"]["metadata"].clone();
    let keys: Vec<_> = metadata.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["name", "checksum", "owner", "group", "mode", "provider", "mtime", "size"]);
    assert_eq!(metadata["checksum"], "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881");
    assert_eq!(
        (&metadata["mode"], &metadata["size"], &metadata["provider"]),
        (&json!("0644"), &json!(1), &json!("posix"))
    );
}

#[test]
fn the_summary_counts_every_resource_once() {
    let summary = everything().apply_with(&["--json"]).summary();
    let keys: Vec<_> = summary.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        [
            "protocol",
            "run",
            "start_time",
            "end_time",
            "total_duration",
            "total_resources",
            "unique_resources",
            "stable_resources",
            "changed_resources",
            "failed_resources",
            "skipped_resources",
            "refreshed_count",
            "requirements_unmet_count",
            "total_errors",
            "health_checked_count",
            "health_check_ok_count",
            "health_check_warning_count",
            "health_check_critical_count",
            "health_check_unknown_count"
        ]
    );
    let counts: Vec<_> = keys[5..].iter().map(|key| summary[key].as_u64().unwrap()).collect();
    assert_eq!(counts, [12, 12, 2, 5, 3, 2, 0, 1, 3, 0, 0, 0, 0, 0], "{summary:#}");
}

#[test]
fn json_is_all_that_is_printed_with_json() {
    let outcome = everything().apply_with(&["--json"]);
    let lines = outcome.json_lines();
    assert_eq!((lines.len(), outcome.stderr.as_str()), (13, ""), "{outcome}");
    assert!(lines[12].get("total_resources").is_some(), "{outcome}");
    let outcome = everything().apply_with(&["--json", "--no-report"]);
    assert_eq!(outcome.json_lines().len(), 12, "{outcome}");
}

#[test]
fn a_report_is_a_line_for_each_resource_and_the_counts() {
    let world = everything();
    let outcome = world.apply();
    outcome.exits(1).counts([5, 2, 3, 2]).says("\n12 resources in ").says("(1 after a failure)");
    assert_eq!(outcome.stderr, "");
    let is_resource = |line: &&str| line.get(1..2) == Some(" ") && !line.starts_with(' ');
    let lines: Vec<&str> = outcome.stdout.lines().filter(is_resource).collect();
    assert_eq!(lines.len(), 12, "{outcome}");
    for line in lines.iter().filter(|line| line.starts_with(['+', '~', '='])) {
        assert!(line.contains(" provider=posix") && line.contains(" runtime="), "{line}");
    }
    everything().apply_with(&["--no-report"]).exits(1).never_says("12 resources");
}

#[test]
fn failures_point_to_the_property_in_the_manifest() {
    let world = World::new().manifest(
        "\
- file:
    - defaults:
        group: '$GID'
        mode: '0644'
    - $W/x:
        content: x
        owner: no-such-user
",
    );
    world
        .apply()
        .exits(1)
        .says("failed  site.yaml:7:16 (owner) provider=")
        .says("\n      user \"no-such-user\" does not exist on this machine\n      help: ");
}

#[test]
fn exit_codes_tell_how_it_went() {
    for (items, flags, first, second) in [
        ("- $W/x: { content: x }", &[][..], 0, 0),
        ("- $W/x: { content: x }", &["--detailed-exitcode"], 3, 0),
        ("- $W/x: { content: x }", &["--detailed-exitcode", "--noop"], 3, 3),
        ("- $W/x: { content: x }", &["--noop"], 0, 0),
        ("- $W/x: { ensure: absent }", &["--detailed-exitcode"], 0, 0),
        ("- $W/no/x: { content: x }", &[], 1, 1),
        ("- $W/no/x: { content: x }\n- $W/x: { content: x }", &["--detailed-exitcode"], 1, 1),
        ("- $W/no/x: { content: x, alias: b }\n- $W/x: { content: x, require: [file#b] }", &[], 1, 1),
        ("- $W/x: { contnt: x }", &["--detailed-exitcode"], 2, 2),
    ] {
        let world = World::new().files(items);
        let codes = (world.apply_with(flags).code, world.apply_with(flags).code);
        assert_eq!(codes, (first, second), "{items} {flags:?}");
    }
}

#[test]
fn what_is_rendered_can_be_applied_and_is_rendered_the_same() {
    let world = World::new().manifest(
        "\
ccm:
  fail_on_error: true
  pre_message: before
  post_message: |
    after: all
  resources:
    - file:
        - defaults: { $OWN, mode: 644 }
        - $W/a: { contents: \"text: yes\\n\\ttab\\n\", alias: a }
        - $W/b: { content: '', require: [file#a], tries: 2, try_sleep: 1500ms, timeout: 90s }
    - file: { name: $W/c, ensure: directory, $OWN, mode: '0o755', control: { if: true, unless: 'false' } }
    - file: { $W/d: { ensure: absent, force: true } }
",
    );
    let before = world.tree();
    let rendered = world.apply_with(&["--render"]).exits(0).stdout.clone();
    let json = world.apply_with(&["--render", "--json"]).exits(0).stdout.clone();
    assert_eq!(world.tree(), before, "nothing is applied");
    let world = world.beside("rendered.yaml", &rendered).beside("rendered.json", &json);
    assert_eq!(world.ccm(["apply", "rendered.yaml", "--render"]).run().exits(0).stdout, rendered);
    assert_eq!(world.ccm(["apply", "rendered.json", "--render"]).run().exits(0).stdout, rendered);
    assert_eq!(world.ccm(["apply", "rendered.yaml", "--render", "--json"]).run().exits(0).stdout, json);
    let outcome = world.ccm(["apply", "rendered.yaml"]).run();
    outcome.exits(0).counts([3, 1, 0, 0]).says("before\n").says("after: all\n");
    assert_eq!(world.read("a"), "text: yes\n\ttab\n");
    world.apply().exits(0).counts([0, 4, 0, 0]);
}

#[test]
fn what_came_out_of_a_template_is_rendered_as_text() {
    let world = World::new().manifest(
        "\
data: { evil: '{{{{ 1 + 1 }} $${ 1 } $$${ 1 } {{{{{' }
ccm:
  pre_message: 'x ${ Data.evil }'
  resources:
    - file:
        - defaults: { $OWN, mode: '0644' }
        - \"$W/${ Data.evil }\": { content: a, alias: '${ Data.evil }' }
        - $W/b: { content: b, require: ['file#${ Data.evil }'], control: { if: '${ 1 == 1 }' } }
        - $W/late: { content: \"${ file('w/b') } $${ 1 } {{{{ 1 }}\" }
",
    );
    let evil = "{{ 1 + 1 }} ${ 1 } $${ 1 } {{{";
    let rendered = world.apply_with(&["--render"]).exits(0).stdout.clone();
    let world = world.beside("rendered.yaml", &rendered);
    assert_eq!(world.ccm(["apply", "rendered.yaml", "--render"]).run().exits(0).stdout, rendered);
    let outcome = world.ccm(["apply", "rendered.yaml"]).run();
    outcome.exits(0).says(&format!("x {evil}\n")).counts([3, 0, 0, 0]);
    assert_eq!(world.read(evil), "a");
    assert_eq!(world.read("late"), "b ${ 1 } {{ 1 }}");
}

#[test]
fn late_templates_are_rendered_where_that_can_be_done_before_the_run() {
    let world = World::new().beside("app.tmpl", "port = {{ Data.port }}").file("made", "now").manifest(
        "\
data: { port: 8080, odd: '{{{{ kept }} $${ kept }' }
ccm:
  resources:
    - file:
        - defaults: { $OWN, mode: '0644' }
        - $W/a: { content: \"{{ template('app.tmpl') }}, {{ Data.odd }}\" }
        - $W/made: { content: later }
        - $W/b: { contents: \"{{ file('$W/made') }}{{ Data.port }}\", control: { if: 'Data.port > 1' } }
        - $W/c: { source: \"{{ 'app' }}.tmpl\" }
    - exec:
        - touch d: { cwd: \"{{ '$W' }}\", creates: \"{{ file('/nonexistent') }}\" }
",
    );
    let rendered = world.apply_with(&["--render", "--json"]).exits(0).json();
    let named = |at: usize| {
        let (_, items) = rendered["ccm"]["resources"][at].as_object().unwrap().iter().next().unwrap();
        items[0].as_object().unwrap().iter().next().unwrap().1.clone()
    };
    assert_eq!(rendered["data"], json!({ "port": 8080, "odd": "{{{{ kept }} $${ kept }" }));
    assert_eq!(named(0)["content"], "port = 8080, {{{{ kept }} $${ kept }");
    assert_eq!(named(2)["contents"], world.fill("{{ file('$W/made') }}{{ Data.port }}"));
    assert_eq!(named(3)["source"], "app.tmpl");
    assert_eq!(named(4)["cwd"], world.fill("$W"));
    assert_eq!(named(4)["creates"], "{{ file('/nonexistent') }}");

    let again = World::new().beside("app.tmpl", "x").beside("rendered.json", rendered.to_string());
    again.ccm(["validate", "rendered.json"]).run().exits(0);
    assert_eq!(again.ccm(["apply", "rendered.json", "--render", "--json"]).run().exits(0).json(), rendered);
    world.apply().exits(1).counts([4, 0, 1, 0]);
    let written = [world.read("a"), world.read("b")];
    assert_eq!(written, ["port = 8080, {{ kept }} ${ kept }", "later8080"]);
    let world = world.beside("rendered.json", rendered.to_string());
    world.ccm(["apply", "rendered.json"]).run().exits(1).counts([0, 4, 1, 0]);
}

#[test]
fn what_is_sensitive_is_rendered_without_what_it_holds() {
    let world = World::new().manifest(
        "\
data: { secret: c4n4ry }
ccm:
  resources:
    - file:
        - $W/a: { content: 'c4n4ry {{ Data.secret }}', $OWN, mode: '0600', sensitive: true }
        - $W/b: { ensure: absent }
",
    );
    let outcome = world.apply_with(&["--render", "--json"]);
    outcome.exits(0).never_says("c4n4ry").complains("the data is left out");
    let rendered = outcome.json();
    let file = &rendered["ccm"]["resources"][0]["file"][0][world.fill("$W/a")];
    assert_eq!(file["ensure"], "present");
    for property in ["content", "owner", "group", "mode"] {
        assert_eq!(file[property], "${ hidden }", "{property}");
    }
    // A mask is never written to a file.
    let world = world.beside("rendered.json", rendered.to_string());
    world.ccm(["apply", "rendered.json"]).run().exits(2).complains("cannot be expanded");
}

#[test]
fn a_rendered_relative_source_still_means_the_same_file() {
    let world = World::new().beside("site/data", "content");
    let manifest = world.fill("- file: [{ $W/x: { source: data, $OWN, mode: '0644' } }]");
    let world = world.beside("site/manifest.yaml", manifest);
    let rendered = world.ccm(["apply", "site", "--render"]).run().exits(0).stdout.clone();
    let world = world.beside("site/rendered.yaml", rendered);
    world.ccm(["apply", "site/rendered.yaml"]).run().exits(0).counts([1, 0, 0, 0]);
}

#[test]
fn a_reader_that_goes_away_does_not_stop_the_run() {
    let items: Vec<_> = (0..200).map(|number| format!("- $W/{number}: {{ content: x }}")).collect();
    let world = World::new().files(&items.join("\n"));
    let mut child = world.ccm(["apply", "site.yaml"]).start();
    drop(child.stdout.take());
    finish(child, "ccm apply | true".to_owned()).exits(0);
    assert_eq!(world.tree().names().len(), 200);
}

#[test]
fn two_runs_never_overlap_and_a_dead_one_blocks_nobody() {
    let world = World::new()
        .files("- $W/first: { content: x }\n- $W/no/x: { content: x, tries: 1000, try_sleep: 1h }");
    let mut holder = world.ccm(["apply", "site.yaml"]).start();
    first_line(holder.stdout.as_mut().unwrap());
    let world = world.beside("other.yaml", "[]");
    let outcome = world.ccm(["apply", "other.yaml", "--no-wait"]).run();
    outcome.exits(2).complains("another run is in progress").complains(&holder.id().to_string());
    world.ccm(["apply", "other.yaml", "--noop"]).run().exits(0);
    holder.kill().unwrap();
    holder.wait().unwrap();
    world.ccm(["apply", "other.yaml", "--no-wait"]).run().exits(0);
}

#[test]
fn colour_is_for_terminals_only() {
    let world = everything();
    assert!(!world.apply_with(&["--noop"]).stdout.contains('\u{1b}'));
    if !crate::support::has("script") {
        return;
    }
    let command = |more: &str| {
        let command = format!("{more} {} apply site.yaml --noop", env!("CARGO_BIN_EXE_ccm"));
        let mut script = Command::new("script");
        script.args(["-qec", &command, "/dev/null"]).current_dir(world.base());
        script.env("CCM_STATE_DIR", world.state()).env("TERM", "xterm").env_remove("NO_COLOR");
        String::from_utf8(script.output().unwrap().stdout).unwrap()
    };
    // A run that takes long also erases the line that tells where it is.
    let is_coloured = |text: String| {
        let codes = text.split("\u{1b}[").skip(1);
        codes
            .map(|code| code.trim_start_matches(|letter: char| !letter.is_ascii_alphabetic()))
            .any(|end| end.starts_with('m'))
    };
    assert!(is_coloured(command("")));
    assert!(!is_coloured(command("NO_COLOR=1")));
}

#[test]
fn a_folder_that_holds_something_else_is_not_taken_for_the_state_directory() {
    let world = World::new().manifest("- file: { $W/x: { content: x, $OWN, mode: '0644' } }").dir("shared");
    let world = world.mode("shared", 0o755).file("shared/theirs", "x");
    world.apply_with(&["--state-dir", "w/shared"]).exits(2).complains("is not a state directory");
    assert_eq!(world.tree().names(), ["shared", "shared/theirs"]);
}

#[test]
fn a_resource_without_a_name_is_refused() {
    for manifest in ["- exec: { name: , command: 'true' }", "- exec: [{ '': { command: 'true' } }]"] {
        World::new().manifest(manifest).apply().exits(2).complains("name");
    }
}

#[test]
fn waiting_for_a_manifest_ends_with_a_signal() {
    let world = World::new();
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_ccm"))
        .args(["validate", "-"])
        .env("CCM_STATE_DIR", world.state())
        .stdin(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    listens(&child, Signal::TERM);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2));
}

#[test]
fn a_resource_that_changed_something_and_then_failed_says_both_and_counts_once() {
    let world = World::new().manifest(
        "
        - exec:
            - first: { command: \"sh -c 'touch $W/half; test -e $W/well'\", unless: test -e $W/well }
            - missing: { command: no-such-program }
            - second:
                command: sh -c 'echo x >> $W/followed'
                subscribe: [exec#first]
                refresh_only: true
        ",
    );
    let outcome = world.apply_with(&["--json"]);
    let said = |name: &str| {
        let event = outcome.event(name);
        ["changed", "failed", "refreshed"].map(|key| event[key] == true)
    };
    assert_eq!(said("first"), [true, true, false], "it changed something, and failed");
    assert_eq!(said("missing"), [false, true, false], "what was not started changed nothing");
    assert_eq!(said("second"), [false, false, false], "nobody follows a failure");
    let summary = outcome.exits(1).summary();
    let counts = ["changed_resources", "failed_resources", "stable_resources"].map(|key| &summary[key]);
    assert_eq!(counts, [&json!(0), &json!(2), &json!(1)]);
    // The refresh is owed until it is well, and then paid once.
    world.apply().exits(1);
    assert!(!world.path("followed").exists());
    let world = world.file("well", "");
    world.apply().exits(1).counts([1, 1, 1, 0]);
    assert_eq!(world.read("followed"), "x\n");
    world.apply().exits(1).counts([0, 2, 1, 0]);
    assert_eq!(world.read("followed"), "x\n");
}

#[test]
fn a_failure_after_a_change_stops_the_run_where_that_is_asked_for() {
    let world = World::new().manifest(
        "
        ccm:
          fail_on_error: true
          resources:
            - exec:
                - half: { command: \"sh -c 'touch $W/half; exit 1'\" }
                - rest: { command: touch $W/rest }
        ",
    );
    let outcome = world.apply_with(&["--json"]);
    assert_eq!(outcome.exits(1).events().len(), 1);
    assert_eq!(world.tree().names(), ["half"]);
}
