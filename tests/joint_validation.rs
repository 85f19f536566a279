//! Files that are validated together, as `nginx -t` does.

use std::{fs, os::unix::fs::MetadataExt};

use crate::support::{World, is_root};

/// A validator of a directory in the manner of nginx: `main.conf` and the files in `sites/` are its configuration. `upstream X`
/// defines an upstream, `use X` needs its definition, `read F` needs a file, and every other word is an error.
const VALIDATOR: &str = r#"#!/bin/sh
cd "${0%/*}/w" || exit 3
echo run >> ../runs
[ -f "$1" ] || set --
all=$(cat main.conf sites/* "$@" 2>/dev/null)
echo "$all" | while read -r word value; do
  case $word in
    upstream|'') ;;
    use) echo "$all" | grep -qx "upstream $value" || { echo "no upstream $value" >&2; exit 1; } ;;
    read) [ -e "$value" ] || { echo "cannot open $value" >&2; exit 1; } ;;
    *) echo "unknown directive $word" >&2; exit 1 ;;
  esac
done
"#;

const VALIDATE: &str = "validate: 'sh $W/../nginx -t'";

/// A machine with the validator.
fn world() -> World {
    World::new()
        .beside("nginx", VALIDATOR)
        .file("main.conf", "upstream a\n")
        .file("sites/one", "use a\n")
        .file("sites/two", "use a\n")
}

fn file(name: &str, content: &str) -> String {
    format!("- file:\n    - $W/{name}: {{ content: \"{content}\\n\", $OWN, mode: '0644', {VALIDATE} }}\n")
}

/// How often the validator ran since the last time.
fn runs(world: &World) -> usize {
    let path = world.base().join("runs");
    let count = fs::read_to_string(&path).map_or(0, |text| text.lines().count());
    let _ = fs::remove_file(path);
    count
}

#[test]
fn two_files_damaged_by_hand_are_repaired_together() {
    if !is_root() {
        return;
    }
    let world = world().manifest(&(file("sites/one", "use a") + &file("sites/two", "use a")));
    world.apply().exits(0).says("2 unchanged");
    assert_eq!(runs(&world), 0, "unchanged files are not validated");
    fs::write(world.path("sites/one"), "damaged\n").unwrap();
    fs::write(world.path("sites/two"), "damaged\n").unwrap();
    world.apply_with(&["--noop"]).exits(0).says("Would have updated the file");
    assert_eq!((runs(&world), world.read("sites/one")), (1, "damaged\n".to_owned()));
    world.apply().exits(0).says("2 changed");
    assert_eq!(runs(&world), 1, "the validator runs once");
    assert_eq!(
        (world.read("sites/one"), world.read("sites/two")),
        ("use a\n".to_owned(), "use a\n".to_owned())
    );
    world.apply().exits(0).says("2 unchanged");
}

#[test]
fn one_change_across_files_is_published_completely_or_not_at_all() {
    if !is_root() {
        return;
    }
    let rename = |main: &str| {
        world().manifest(
            &(file("main.conf", main)
                + &file("sites/new", "use b")
                + "- file:\n    - $W/copy: { content: \"${ file('$W/main.conf') }\", $OWN, mode: '0644' }\n"
                + &format!("- file:\n    - $W/sites/link: {{ ensure: link, target: new, {VALIDATE} }}\n")
                + &format!("- file:\n    - $W/sites/one: {{ ensure: absent, {VALIDATE} }}\n")
                + &file("sites/two", "use b")),
        )
    };
    let world = rename("upstream b");
    let outcome = world.apply_with(&["--json"]);
    outcome.exits(0);
    assert_eq!(runs(&world), 1);
    assert_eq!(world.read("main.conf"), "upstream b\n");
    assert_eq!(world.read("copy"), "upstream b\n", "a template reads the member that waits");
    assert_eq!(world.read("sites/link"), "use b\n");
    assert!(!world.path("sites/one").exists());
    for name in ["main.conf", "sites/new", "sites/link", "sites/one", "sites/two"] {
        assert_eq!(outcome.event(name)["changed"], true, "{name}");
    }

    let world = rename("upstream c").file("copy", "upstream c\n");
    let before = (world.tree(), fs::metadata(world.path("sites/two")).unwrap().ino());
    for arguments in [["--json", "--noop"].as_slice(), &["--json"]] {
        let outcome = world.apply_with(arguments);
        outcome.exits(1);
        for name in ["main.conf", "sites/new", "sites/link", "sites/one", "sites/two"] {
            let event = outcome.event(name);
            let error = event["error"][0].as_str().unwrap();
            assert_eq!(
                (event["failed"].as_bool(), event["changed"].as_bool()),
                (Some(true), Some(false)),
                "{name}"
            );
            assert!(error.contains("no upstream b") && error.contains("validated together with"), "{error}");
        }
        assert_eq!((world.tree(), fs::metadata(world.path("sites/two")).unwrap().ino()), before);
        assert_eq!(runs(&world), 1);
    }
}

#[test]
fn unchanged_members_stay_unchanged_when_the_others_are_rejected() {
    if !is_root() {
        return;
    }
    let world = world().manifest(&(file("sites/one", "use a") + &file("sites/two", "use b")));
    let outcome = world.apply_with(&["--json"]);
    outcome.exits(1);
    let (one, two) = (outcome.event("sites/one"), outcome.event("sites/two"));
    assert_eq!((one["failed"].as_bool(), two["failed"].as_bool()), (Some(false), Some(true)));
}

#[test]
fn groups_reach_across_included_manifests() {
    if !is_root() {
        return;
    }
    let world = world();
    let role = world.fill(&file("sites/one", "use b"));
    let world = world.beside("site.d/role.yaml", role)
        .manifest(
            &("- apply:\n    - site.d/role.yaml: {}\n".to_owned()
                + &file("main.conf", "upstream b")
                + &file("sites/two", "use b")
                + "- exec:\n    - 'touch $W/refreshed': { refreshonly: true, subscribe: apply#site.d/role.yaml }\n"),
        );
    let outcome = world.apply_with(&["--json"]);
    outcome.exits(0);
    assert_eq!(runs(&world), 1);
    assert_eq!(outcome.event("role.yaml")["changed"], true);
    assert!(world.path("refreshed").exists(), "a subscriber of the included manifest is refreshed");
    assert_eq!(world.read("sites/one"), "use b\n");
}

#[test]
fn resource_between_members_cannot_refer_to_one_that_waits() {
    for (between, property) in [
        ("- exec:\n    - 'true': { require: file#$W/main.conf }\n", "4:26"),
        ("- exec:\n    - 'true': { subscribe: file#$W/main.conf }\n", "4:28"),
        ("- exec:\n    - 'true': { subscribe: [file#conf] }\n", "4:28"),
    ] {
        let world = world().manifest(
            &(file("main.conf", "upstream a").replace("mode:", "alias: conf, mode:")
                + between
                + &file("sites/one", "use a")),
        );
        let outcome = world.apply();
        outcome
            .exits(2)
            .complains("is validated together with file#")
            .complains("/sites/one (site.yaml:6:7)");
        outcome
            .complains(&format!("site.yaml:{property}"))
            .complains("declared here")
            .complains("move it after");
        // After the last member, and between members, references are fine.
        let world = world.manifest(
            &(file("main.conf", "upstream b")
                + &file("sites/one", "use b").replace("mode:", "require: file#$W/main.conf, mode:")
                + &file("sites/two", "use b")
                + between.replace("conf]", "$W/main.conf]").as_str()),
        );
        world.apply().exits(0).says("4 changed");
    }
}

#[test]
fn resource_between_members_cannot_refer_to_an_included_manifest_with_one() {
    let world = world();
    let role = world.fill(&file("sites/one", "use a"));
    let world = world.beside("role.yaml", role).manifest(
        &("- apply:\n    - role.yaml: {}\n- exec:\n    - 'true': { subscribe: apply#role.yaml }\n"
            .to_owned()
            + &file("sites/two", "use a")),
    );
    world.apply().exits(2).complains("exec#true: apply#role.yaml is validated together with file#");
}

#[test]
fn members_that_wait_are_skipped_if_the_run_stops() {
    if !is_root() {
        return;
    }
    let members = |between: &str| {
        let list = file("main.conf", "upstream b")
            + between
            + &file("sites/one", "use b")
            + &file("sites/two", "use b");
        let list: String = list.lines().map(|line| format!("    {line}\n")).collect();
        format!("ccm:\n  fail_on_error: true\n  resources:\n{list}")
    };
    let world = world().manifest(&members("- exec:\n    - 'false': {}\n"));
    let outcome = world.apply_with(&["--json"]);
    outcome.exits(1);
    let event = outcome.event("main.conf");
    assert_eq!((event["skipped"].as_bool(), event["failed"].as_bool()), (Some(true), Some(false)), "{event}");
    assert_eq!((world.read("main.conf"), runs(&world)), ("upstream a\n".to_owned(), 0));
}

#[test]
fn group_never_crosses_a_manifest_whose_changes_are_undone() {
    if !is_root() {
        return;
    }
    let world = world();
    let role = world.fill(
        &(file("sites/one", "upstream c") + &file("sites/two", "use c") + "- exec:\n    - 'false': {}\n"),
    );
    let world = world.beside("role.yaml", role).manifest(
        &(file("main.conf", "upstream b")
            + "- apply:\n    - role.yaml: { on_failure: undo }\n"
            + &file("sites/three", "use b")),
    );
    let outcome = world.apply_with(&["--json"]);
    outcome.exits(1);
    assert_eq!(outcome.event("sites/one")["changed"], true, "it was published, and then undone");
    assert_eq!(world.read("sites/one"), "use a\n");
    // The other group no longer has a definition of `a`.
    assert!(outcome.event("main.conf")["error"][0].as_str().unwrap().contains("no upstream a"));
    // The undo validates the restored files, too.
    assert_eq!(runs(&world), 3);
}

#[test]
fn undo_restores_each_member() {
    if !is_root() {
        return;
    }
    let world = world().manifest(
        &(file("main.conf", "upstream b") + &file("sites/one", "use b") + &file("sites/two", "use b")),
    );
    let texts = |world: &World| ["main.conf", "sites/one", "sites/two"].map(|name| world.read(name));
    let before = texts(&world);
    world.apply().exits(0).says("3 changed");
    let run = world.ccm(["history", "--json"]).run().json_lines()[0]["run"].as_str().unwrap().to_owned();
    world.ccm(["undo", &run]).run().exits(0);
    assert_eq!(texts(&world), before);
}

#[test]
fn edits_and_failing_members_are_part_of_a_group() {
    if !is_root() {
        return;
    }
    let edit = format!("- file:\n    - $W/main.conf: {{ edit: [{{ line: upstream b }}], {VALIDATE} }}\n");
    let world = world().manifest(
        &(edit.clone()
            + &file("sites/one", "use b")
            + &format!(
                "- file:\n    - $W/sites/none: {{ source: $W/missing, $OWN, mode: '0644', {VALIDATE} }}\n"
            )
            + &file("sites/two", "use b").replace("mode:", "require: file#$W/sites/none, mode:")),
    );
    let outcome = world.apply_with(&["--json"]);
    outcome.exits(1);
    assert_eq!(world.read("main.conf"), "upstream a\nupstream b\n");
    assert_eq!(
        (world.read("sites/one"), world.read("sites/two")),
        ("use b\n".to_owned(), "use a\n".to_owned())
    );
    assert_eq!(outcome.event("sites/two")["skipped"], true);
}

#[test]
fn dry_run_validates_what_earlier_resources_would_leave() {
    if !is_root() {
        return;
    }
    let snippet = "- file:\n    - $W/snippet: { content: x, $OWN, mode: '0644' }\n";
    let link = "- file:\n    - $W/snippet: { ensure: link, target: main.conf }\n";
    let scaffold = "- scaffold:\n    - $W/snippet: { source: tree, $OWN }\n";
    let exec = "- exec:\n    - 'touch $W/snippet': { creates: $W/snippet }\n";
    let purge =
        "- file:\n    - $W/sites: { ensure: directory, purge: true, ignore: [one], $OWN, mode: '0755' }\n";
    for (earlier, content, warns) in [
        (snippet, "read snippet", false),
        (link, "read snippet", false),
        (scaffold, "read snippet/a/b", false),
        (exec, "read snippet", true),
        (purge, "use a", false),
    ] {
        for validate in [VALIDATE.to_owned(), "validate: 'sh $W/../nginx %s'".to_owned()] {
            let world = world()
                .beside("tree/a/b", "x")
                .file("sites/two", if earlier == purge { "damaged\n" } else { "use a\n" });
            let world = world
                .manifest(&(earlier.to_owned() + &file("sites/one", content).replace(VALIDATE, &validate)));
            let world = world.file("sites/one", "use a\nuse a\n");
            let before = world.tree();
            let outcome = world.apply_with(&["--noop"]);
            outcome.exits(0);
            if warns {
                outcome.says("the changes of exec#touch").says("cannot open snippet");
            }
            assert_eq!(world.tree(), before, "{earlier}");
            world.apply().exits(0);
        }
    }
}

#[test]
fn dry_run_fails_if_nothing_unknown_could_help() {
    if !is_root() {
        return;
    }
    let world = world().manifest(
        &("- file:\n    - $W/other: { content: x, $OWN, mode: '0644' }\n".to_owned()
            + &file("sites/one", "damaged")),
    );
    world.apply_with(&["--noop"]).exits(1).says("unknown directive damaged");
}
