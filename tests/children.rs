//! `apply`: manifests inside manifests.

use serde_json::Value;

use crate::support::{Outcome, World, http::Server, random, sh};

/// Files with the owner and mode of whoever runs the test.
fn files(items: &str) -> String {
    format!("- file:\n    - defaults: {{ $OWN, mode: \"0644\" }}\n{items}")
}

/// The last event of each resource, by its name.
fn event(outcome: &Outcome, name: &str) -> Value {
    let mut events = outcome.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.rfind(|event| event["name"] == name).unwrap_or_else(|| panic!("{name}: {outcome}"))
}

trait Beside {
    fn child(self, name: &str, text: &str) -> Self;
}

impl Beside for World {
    fn child(self, name: &str, text: &str) -> Self {
        let text = self.fill(text);
        self.beside(name, text)
    }
}

#[test]
fn its_resources_run_in_its_place_with_its_own_folder_and_data() {
    let world = World::new()
        .beside("web/part.txt", "part")
        .child(
            "web/manifest.yaml",
            "\
data: { port: 80, keep: { a: 1, b: 2 } }
ccm:
  resources:
    - file:
        - $W/web: { $OWN, mode: \"0644\", content: \"${ Data.port }${ file('part.txt') }${ Data.keep.a }${ Data.keep.b }\" }
",
        )
        .manifest(&format!(
            "{}- apply:\n    - web/: {{ data: {{ port: 8080, keep: {{ b: \"${{ 1 + 2 }}\" }} }} }}\n{}",
            files("    - $W/before: { content: \"\" }\n"),
            "- file:\n    - $W/after: { $OWN, mode: \"0644\", content: \"\", require: [\"file#$W/web\", \"apply#web/\"] }\n",
        ));
    let run = world.apply();
    run.exits(0).says("  + file#").says("apply#web/ changed 1 of 1 resources");
    assert_eq!(world.read("web"), "8080part13");
    let at = |name: &str| run.stdout.find(name).unwrap();
    assert!(at("w/before") < at("w/web") && at("w/web") < at("w/after"), "{run}");
    world.apply_with(&["--detailed-exitcode"]).exits(0);
}

#[test]
fn without_data_it_is_given_all_of_its_parents() {
    let world = World::new()
        .child(
            "web.yaml",
            "\
data: { a: 1, b: 1 }
ccm:
  resources:
    - file:
        - $W/web: { $OWN, mode: \"0644\", content: \"${ Data.a }${ Data.b }\" }
",
        )
        .manifest("data: { b: 2 }\nccm: { resources: [{ apply: [{ web.yaml: {} }] }] }\n");
    world.apply().exits(0);
    assert_eq!(world.read("web"), "12");
}

#[test]
fn all_problems_of_all_manifests_are_told_at_once_each_in_its_file() {
    let world = World::new()
        .child("web/manifest.yaml", "- file:\n    - $W/a: { ower: x }\n- apply: [{ deep.yaml: {} }]\n")
        .child("web/deep.yaml", "- wrong: []\n")
        .manifest(
            "- apply: [{ web/: {} }, { nothing/: {} }, { https://example.net/x: {} }]\n- file: [{ a: {} }]\n",
        );
    let run = world.apply();
    run.exits(2)
        .complains("--> web/manifest.yaml:2:")
        .complains("--> web/deep.yaml:1:")
        .complains("--> site.yaml:1:")
        .complains("nothing/")
        .complains("agent")
        .complains("must be absolute");
}

#[test]
fn names_are_one_space() {
    let child =
        "- file:\n    - $W/inner: { $OWN, mode: \"0644\", content: \"\", require: [\"file#$W/outer\"] }\n";
    let good = World::new().child("web.yaml", child).manifest(&format!(
        "{}- apply: [{{ web.yaml: {{}} }}]\n",
        files("    - $W/outer: { content: \"\" }\n")
    ));
    good.apply().exits(0);
    let twice = World::new().child("web.yaml", child).manifest(&format!(
        "{}- apply: [{{ web.yaml: {{}} }}]\n",
        files("    - $W/outer: { content: \"\" }\n    - $W/inner: { content: \"\" }\n")
    ));
    twice.validate().exits(2).complains("is declared twice (first declared here: site.yaml:4:7)");
    let inside = World::new()
        .child("web.yaml", "- exec: [{ /bin/true: { require: [\"apply#web.yaml\"] } }]\n")
        .manifest("- apply: [{ web.yaml: {} }]\n");
    inside.validate().exits(2).complains("which it is a part of");
    let late = World::new()
        .child("web.yaml", "- exec: [{ /bin/true: { require: [\"exec#/bin/false\"] } }]\n")
        .manifest("- apply: [{ web.yaml: {} }]\n- exec: [{ /bin/false: {} }]\n");
    late.validate().exits(2).complains("is declared only later (declared here: site.yaml:2:");
}

#[test]
fn a_change_in_it_refreshes_who_subscribes_to_it() {
    let world = World::new()
        .child("web.yaml", &files("    - $W/conf: { content: \"\" }\n    - $W/other: { content: \"\" }\n"))
        .manifest(
            "\
- apply: [{ web.yaml: {} }]
- exec:
    - /bin/touch $W/ran: { refresh_only: true, subscribe: [\"apply#web.yaml\"] }
",
        );
    world.apply().exits(0).says("1 refreshed");
    assert!(world.path("ran").exists());
    world.apply_with(&["--detailed-exitcode"]).exits(0);
}

#[test]
fn a_refresh_on_its_account_stays_owed_when_it_was_skipped() {
    let world = World::new().child("web.yaml", &files("    - $W/conf: { content: \"\" }\n")).manifest(
        "\
- apply: [{ web.yaml: {} }]
- exec:
    - /bin/touch $W/ran: { refresh_only: true, subscribe: [\"apply#web.yaml\"] }
",
    );
    world.apply_with(&["--only", "file#*"]).exits(0);
    assert!(world.path("conf").exists() && !world.path("ran").exists());
    world.apply().exits(0).says("1 refreshed");
}

#[test]
fn its_failure_ends_it_alone_and_says_how_many_failed() {
    let world = World::new()
        .child(
            "web.yaml",
            "\
ccm:
  fail_on_error: true
  resources:
    - exec: [{ /bin/false: {} }, { /bin/touch $W/never: {} }]
",
        )
        .manifest(
            "\
- apply: [{ web.yaml: {} }]
- exec:
    - /bin/touch $W/after: {}
    - /bin/touch $W/needs: { require: [\"apply#web.yaml\"] }
",
        );
    let run = world.apply_with(&["--json"]);
    run.exits(1);
    let apply = event(&run, "web.yaml");
    assert_eq!((&apply["failed"], &apply["error"][0]), (&true.into(), &"1 of 2 failed".into()));
    assert_eq!(apply["status"]["metadata"], serde_json::json!({ "resources": 2, "changed": 0, "failed": 1 }));
    assert!(world.path("after").exists() && !world.path("never").exists() && !world.path("needs").exists());
}

#[test]
fn what_is_passed_over_takes_its_resources_along() {
    let world = World::new().child("web.yaml", &files("    - $W/inner: { content: \"\" }\n")).manifest(
        "- apply: [{ web.yaml: { control: { if: \"false\" } } }]\n- exec: [{ /bin/true: { require: [\"file#$W/inner\"] } }]\n",
    );
    let run = world.apply_with(&["-v"]);
    run.exits(0).says("skipped: control.if is false");
    assert!(!world.path("inner").exists());
}

/// Two roles, each for one kind of machine; `db` also lacks its data, and the file of the third does not exist.
fn roles() -> World {
    World::new()
        .child("roles/web.yaml", &files("    - $W/web: { content: \"${ Data.port }\" }\n"))
        .child("roles/db.yaml", &files("    - $W/db: { content: \"${ Data.password }\" }\n"))
        .manifest(
            "
data: { port: 80 }
ccm:
  resources:
    - apply:
        - roles/web.yaml: { control: { if: 'Facts.role == \"web\"' } }
        - roles/db.yaml: { control: { if: 'Facts.role == \"db\"' } }
        - roles/mail.yaml: { control: { unless: 'Facts.role != \"mail\"' } }
",
        )
}

#[test]
fn included_manifest_that_control_switches_off_needs_neither_data_nor_files() {
    let world = roles();
    for command in ["apply", "validate"] {
        world.ccm([command, "site.yaml", "--fact", "role=web"]).run().exits(0);
    }
    assert_eq!(world.read("web"), "80");
    let run = world.ccm(["apply", "site.yaml", "--fact", "role=none", "-v"]).run();
    run.exits(0).says("apply#roles/db.yaml skipped: control.if is false");
    run.says("apply#roles/mail.yaml skipped: control.unless is true");
    world
        .ccm(["validate", "site.yaml", "--fact", "role=db"])
        .run()
        .exits(2)
        .complains("`Data.password` has no value");
    world
        .ccm(["validate", "site.yaml", "--fact", "role=mail"])
        .run()
        .exits(2)
        .complains("roles/mail.yaml: no such file");
}

#[test]
fn purge_spares_nothing_that_a_manifest_declares_which_control_switches_off() {
    let world = World::new()
        .file("d/old", "")
        .child("role.yaml", &files("    - $W/d/old: { content: \"\" }\n"))
        .manifest(
            "
- apply: [{ role.yaml: { control: { if: 'Facts.role == \"web\"' } } }]
- file: [{ $W/d: { ensure: directory, purge: true, $OWN, mode: \"0755\" } }]
",
        );
    world.ccm(["apply", "site.yaml", "--fact", "role=web"]).run().exits(0);
    assert!(world.path("d/old").exists());
    world.ccm(["apply", "site.yaml", "--fact", "role=db"]).run().exits(0);
    assert!(!world.path("d/old").exists());
}

#[test]
fn selector_can_name_a_resource_of_a_manifest_that_control_switches_off() {
    let world = roles();
    let only = ["apply", "site.yaml", "--only", "file#*/web", "--fact"];
    world.ccm(only.iter().chain(&["role=web"])).run().exits(0);
    world.ccm(only.iter().chain(&["role=none"])).run().exits(0).complains(
        "warning: no resource is named by `file#*/web`; an included manifest that `control` switches off might declare it\n",
    );
}

#[test]
fn reference_into_a_manifest_that_control_switches_off_is_assumed_to_be_declared_there() {
    let child = files("    - $W/inner: { content: \"\" }\n");
    let off = "control: { if: 'false' }";
    let user = "- exec: [{ /bin/true: { require: [\"file#$W/inner\"], subscribe: \"file#$W/inner\" } }]\n";
    let world = World::new()
        .child("web.yaml", &child)
        .manifest(&format!("- apply: [{{ web.yaml: {{ {off} }} }}]\n{user}"));
    let inner = world.path("inner").display().to_string();
    world.apply().exits(0).complains(&format!(
        "warning[undeclared-reference]: exec#/bin/true: file#{inner} is not declared; assuming that `apply#web.yaml` declares it, which \
         `control` switches off\n"
    )).complains("help: refer to `apply#web.yaml`, which is always declared\n");
    let several = format!("- apply: [{{ web.yaml: {{ {off} }} }}, {{ db.yaml: {{ {off} }} }}]\n{user}");
    World::new()
        .manifest(&several)
        .validate()
        .exits(0)
        .complains("assuming that one of 2 manifests declares it, which `control` switches off\n")
        .complains("help: refer to the `apply` resource, which is always declared\n");
}

#[test]
fn included_manifest_is_loaded_if_its_control_reads_a_file_that_could_change() {
    let world = World::new()
        .child("web.yaml", &files("    - $W/inner: { content: \"\" }\n"))
        .beside("on", "no")
        .manifest(
            "
- exec: [{ \"/bin/sh -c 'printf yes >$W/../on'\": {} }]
- apply: [{ web.yaml: { control: { if: \"file('on') == 'yes'\" } } }]
",
        );
    let run = world.apply();
    run.exits(0);
    assert!(world.path("inner").exists(), "{run}");
}

#[test]
fn noop_can_only_be_strengthened() {
    let child = files("    - $W/inner: { content: \"\" }\n");
    let world = World::new().child("web.yaml", &child).manifest(&format!(
        "\
- apply: [{{ web.yaml: {{ noop: true }} }}]
{}- exec: [{{ /bin/touch $W/ran: {{ refresh_only: true, subscribe: [\"apply#web.yaml\"] }} }}]
",
        files("    - $W/outer: { content: \"\", require: [\"file#$W/inner\"] }\n")
    ));
    world.apply().exits(0).says("Would have");
    assert!(world.path("outer").exists() && !world.path("inner").exists() && !world.path("ran").exists());
    let world = World::new().child("web.yaml", &child).manifest("- apply: [{ web.yaml: { noop: false } }]\n");
    world.apply_with(&["--noop"]).exits(0).says("Would have changed 1 of 1 resources");
    assert!(!world.path("inner").exists());
}

#[test]
fn a_dry_run_builds_on_what_a_child_would_do() {
    let world = World::new()
        .child("web.yaml", "- file: [{ $W/dir: { ensure: directory, $OWN, mode: \"0755\" } }]\n")
        .manifest(&format!(
            "- apply: [{{ web.yaml: {{}} }}]\n{}",
            files("    - $W/dir/outer: { content: \"\" }\n")
        ));
    for flags in [&["--json", "--noop"][..], &["--json"]] {
        let run = world.apply_with(flags);
        run.exits(0);
        assert_eq!(event(&run, &world.fill("$W/dir/outer"))["changed"], true, "{run}");
        assert_eq!(event(&run, "web.yaml")["final_ensure"], "present", "{run}");
    }
    assert!(world.path("dir/outer").exists());
}

#[test]
fn a_dry_run_does_not_build_on_a_child_that_is_only_looked_at() {
    let own = "{ ensure: directory, $OWN, mode: \"0755\" }";
    let child = format!(
        "- file: [{{ $W/before/dir: {own} }}, {{ $W/before/dir/inner: {{ content: \"\", $OWN, mode: \"0644\" }} }}]\n\
         - exec: [{{ inside: {{ command: /bin/true, refresh_only: true, subscribe: [\"file#$W/before/dir\"] }} }}]\n\
         - apply: [{{ deep.yaml: {{ noop: true }} }}]\n"
    );
    let deep = files("    - $W/before/dir/deep: { content: \"\" }\n");
    let world = World::new().child("web.yaml", &child).child("deep.yaml", &deep).manifest(&format!(
        "- file: [{{ $W/before: {own} }}]\n- apply: [{{ web.yaml: {{ noop: true }} }}]\n{}\
         - exec: [{{ outside: {{ command: /bin/true, refresh_only: true, subscribe: [\"apply#web.yaml\", \"file#$W/before/dir\"] }} }}]\n",
        files("    - $W/before/dir/outer: { content: \"\" }\n")
    ));
    for flags in [&["--json", "--noop"][..], &["--json"]] {
        let run = world.apply_with(flags);
        for (name, (changed, failed)) in [
            ("$W/before", (true, false)),
            ("$W/before/dir", (true, false)),
            ("$W/before/dir/inner", (true, false)),
            ("$W/before/dir/deep", (true, false)),
            ("inside", (true, false)),
            ("web.yaml", (true, false)),
            ("$W/before/dir/outer", (false, true)),
            ("outside", (false, false)),
        ] {
            let event = event(&run, &world.fill(name));
            assert_eq!(
                (&event["changed"], &event["failed"]),
                (&changed.into(), &failed.into()),
                "{name}: {run}"
            );
        }
    }
    assert!(!world.path("before/dir").exists());
}

#[test]
fn a_child_may_be_there_for_its_health_checks_only() {
    let child = "- file:\n    - $W/inner: { $OWN, mode: \"0644\", content: \"\", health_checks: [{ command: /bin/sh $W/probe }] }\n    \
                 - $W/other: { $OWN, mode: \"0644\", content: \"\" }\n- apply: [{ deep.yaml: {} }]\n";
    let deep = "- exec:\n    - /bin/touch $W/ran: { health_checks: [{ tcp: 1, name: deep }] }\n";
    let world = World::new().child("web.yaml", child).child("deep.yaml", deep).manifest(&format!(
        "- apply: [{{ web.yaml: {{ health_check_only: true }} }}]\n{}",
        files("    - $W/outer: { content: \"\" }\n")
    ));
    let world = world.file("probe", "exit 0");
    for (flags, makes) in [(&["--json", "--noop"][..], false), (&["--json", "--skip", "exec#*"], true)] {
        let run = world.apply_with(flags);
        let inner = event(&run, &world.fill("$W/inner"));
        assert_eq!((&inner["health_check_only"], &inner["changed"]), (&true.into(), &false.into()), "{run}");
        assert_eq!(inner["health_check"][0]["state"], "OK");
        assert_eq!(event(&run, "web.yaml")["health_check_only"], true);
        assert!(event(&run, &world.fill("$W/outer")).get("health_check_only").is_none());
        assert_eq!(world.path("outer").exists(), makes);
    }
    let run = world.apply_with(&["--json"]);
    run.exits(1);
    assert_eq!(event(&run, "web.yaml")["error"][0], "1 of 3 failed", "{run}");
    assert_eq!(world.tree().names(), ["outer", "probe"]);
    let world = world.file("probe", "echo down; exit 2");
    world.apply_with(&["--skip", "exec#*"]).exits(1).says("CRITICAL: down").says("1 of 3 failed");
}

#[test]
fn what_failed_of_those_inside_is_counted_through_all_levels() {
    let world = World::new()
        .child("web.yaml", "- exec: [{ /bin/false a: {} }, { /bin/true: {} }]\n- apply: [{ deep.yaml: {} }]\n")
        .child("deep.yaml", "- exec: [{ /bin/false b: {} }, { /bin/true b: {} }, { /bin/true c: {} }, { /bin/true d: {} }, { /bin/true e: {} }]\n")
        .manifest("- apply: [{ web.yaml: {} }]\n");
    let run = world.apply();
    run.exits(1).says("2 of 7 failed").says("1 of 5 failed");
}

#[test]
fn cycles_and_depths_are_errors_that_show_the_chain() {
    let world = World::new()
        .child("a.yaml", "- apply: [{ site.yaml: {} }]\n")
        .manifest("- apply: [{ a.yaml: {} }]\n");
    world.validate().exits(2).complains("it applies itself").complains("site.yaml ->").complains("a.yaml ->");
    let mut world = World::new().manifest("- apply: [{ 1.yaml: {} }]\n");
    for depth in 1..=8 {
        world =
            world.child(&format!("{depth}.yaml"), &format!("- apply: [{{ {}.yaml: {{}} }}]\n", depth + 1));
    }
    let world = world.child("9.yaml", "[]\n");
    world.validate().exits(0);
    let world = world.child("9.yaml", "- apply: [{ 10.yaml: {} }]\n").child("10.yaml", "[]\n");
    world.validate().exits(2).complains("more than 10 deep").complains("9.yaml -> ");
}

#[test]
fn what_comes_with_a_bundle_from_an_address_is_from_there_too() {
    let world = World::new()
        .child("site/manifest.yaml", "- apply: [{ web.yaml: {} }]\n")
        .child("site/web.yaml", "data: { a: \"${ Environ.TOKEN }\" }\nccm: { resources: [] }\n");
    sh("tar czf site.tar.gz -C site .", world.base());
    let bundle = std::fs::read(world.base().join("site.tar.gz")).unwrap();
    let server = Server::of(bundle);
    let run = |from: &str| world.ccm(["validate", from]).env("TOKEN", "c4n4ry").run();
    run("site.tar.gz").exits(0);
    let elsewhere = run(&server.url("/site.tar.gz"));
    elsewhere.exits(2).complains("is not available in data that comes from an address").never_says("c4n4ry");
}

#[test]
fn a_child_may_be_forbidden_to_have_children() {
    let world = World::new()
        .child("a.yaml", "- apply: [{ b.yaml: {} }]\n")
        .child("b.yaml", "[]\n")
        .manifest("- apply: [{ a.yaml: { allow_apply: false } }]\n");
    world.validate().exits(2).complains("allow_apply").complains("--> a.yaml:1:");
}

#[test]
fn children_are_repeated_like_any_other_resource() {
    let world = World::new()
        .child("a.yaml", &files("    - $W/a: { content: \"${ Data.n }\" }\n"))
        .child("b.yaml", &files("    - $W/b: { content: \"${ Data.n }\" }\n"))
        .manifest(
            "- apply:\n    - for_each: [a, b]\n      \"{{ each }}.yaml\": { data: { n: \"{{ index }}\" } }\n",
        );
    world.apply().exits(0);
    assert_eq!((world.read("a"), world.read("b")), ("0".to_owned(), "1".to_owned()));
}

#[test]
fn a_child_that_was_killed_is_finished_by_the_next_run() {
    let world = World::new()
        .child(
            "web.yaml",
            &format!(
                "{}- exec: [{{ \"/bin/sh -c 'kill -9 $(cat $W/pid)'\": {{ creates: $W/past }} }}]\n{}",
                files("    - $W/conf: { content: \"\" }\n"),
                files("    - $W/rest: { content: \"\" }\n")
            ),
        )
        .manifest(
            "\
- apply: [{ web.yaml: {} }]
- exec:
    - /bin/touch $W/ran: { refresh_only: true, subscribe: [\"apply#web.yaml\"] }
",
        );
    let text = world.fill("echo $$ > $W/pid; exec \"$0\" \"$@\"");
    let run = world.ccm(["apply", "site.yaml"]).under(["/bin/sh", "-c", &text]).run();
    run.exits(-9);
    assert!(world.path("conf").exists() && !world.path("rest").exists());
    let world = world.file("past", "");
    world.apply().exits(0).says("1 refreshed");
    assert!(world.path("rest").exists() && world.path("ran").exists());
}

/// What the events of a run say, without what differs from run to run.
fn said(outcome: &Outcome) -> Vec<(String, String, bool, bool, bool, Value)> {
    let events = outcome.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let events = events.filter(|event| event["event_id"].is_string());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let truth = |value: &Value| value.as_bool().unwrap();
    events
        .map(|event| {
            let [changed, failed, skipped] = ["changed", "failed", "skipped"].map(|key| truth(&event[key]));
            // What is skipped is not expanded any further.
            let properties = if skipped { serde_json::json!({}) } else { event["properties"].clone() };
            (text(&event["type"]), text(&event["name"]), changed, failed, skipped, properties)
        })
        .collect()
}

proptest::proptest! {
    #![proptest_config(random(16, "tests/failed_cases/children.txt"))]

    #[test]
    fn a_manifest_with_loops_and_children_gives_the_same_events_as_what_is_rendered(
        names in proptest::collection::btree_set("[a-z]{1,3}", 0..4),
        inner in proptest::collection::vec("[a-z{}$ \"\\\\]{0,4}", 0..3),
        uses_index: bool,
        skips: bool,
    ) {
        let list = serde_json::to_string(&names).unwrap();
        let texts = ccm_text(&inner);
        let content = if uses_index { "{{ index }}" } else { "${ each }" };
        let world = World::new()
            .child("web.yaml", &files(
                "    - for_each: Data.texts\n      $W/in{{ index }}: { content: \"${ each }\" }\n"
            ))
            .child("site.yaml", &format!(
                "\
data: {{ names: {list}, texts: {texts} }}
ccm:
  resources:
    - apply: [{{ web.yaml: {{}} }}]
    - file:
        - defaults: {{ $OWN, mode: \"0644\" }}
        - for_each: Data.names
          $W/{{{{ each }}}}:
            content: \"{content}\"
            control: {{ if: \"{}\" }}
",
                if skips { "index != 1" } else { "len(each) > 0" }
            ));
        let rendered = world.apply_with(&["--render"]);
        rendered.exits(0);
        let world = world.beside("rendered.yaml", &rendered.stdout);
        let predicted = world.apply_with(&["--noop", "--json"]);
        predicted.exits(0);
        let of_rendered = world.ccm(["apply", "rendered.yaml", "--noop", "--json"]).run();
        of_rendered.exits(0);
        let (mut one, mut other) = (said(&predicted), said(&of_rendered));
        // A condition says itself what `each` is once nothing repeats it.
        for event in one.iter_mut().chain(&mut other) {
            event.5.as_object_mut().unwrap().remove("control");
            event.5.as_object_mut().unwrap().remove("data");
        }
        assert_eq!(one, other, "{rendered}");
        world.ccm(["apply", "rendered.yaml"]).run().exits(0);
        world.apply_with(&["--detailed-exitcode"]).exits(0);
    }
}

/// A list of texts as data: whatever they hold is text.
fn ccm_text(texts: &[String]) -> String {
    let escaped: Vec<String> =
        texts.iter().map(|text| text.replace("{{", "{ {").replace("${", "$ {")).collect();
    serde_json::to_string(&escaped).unwrap()
}
