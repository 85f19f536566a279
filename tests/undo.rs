//! `ccm undo`, and manifests whose changes are undone after a failure.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
};

use serde_json::Value;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{
    Item, Outcome, Syscall, Trace, World, finish, fits_strace, side_by_side, tampered, tampered_command,
    wait_until,
};

/// Everything in the managed part of a world but inodes, which a restored file does not have again.
fn contents(world: &World) -> BTreeMap<PathBuf, Item> {
    let mut items = world.tree().0;
    for item in items.values_mut() {
        item.inode = 0;
    }
    items
}

fn undo(world: &World, arguments: &[&str]) -> Outcome {
    world.ccm(["undo", "last"].iter().chain(arguments)).run()
}

fn with_manifest(world: World, text: &str) -> World {
    let text = world.fill(text);
    world.beside("site.yaml", text)
}

/// Files, links and directories to begin with.
fn furnished() -> World {
    let world =
        World::new().file("file", "old\n").dir("full").file("full/inner", "kept\n").file("plain", "p\n");
    let world = world.file("settings", "a = 1\nb = 2\n").dir("conf.d").file("conf.d/stray", "stray\n");
    fs::set_permissions(world.path("plain"), fs::Permissions::from_mode(0o640)).unwrap();
    symlink("elsewhere", world.path("link")).unwrap();
    world
}

const ALL_KINDS: &str = "\
- file:
    - $W/file: { content: \"new\\n\", $OWN, mode: '0600' }
    - $W/fresh: { content: \"fresh\\n\", $OWN, mode: '0644' }
    - $W/plain: { $OWN, mode: '0604' }
    - $W/settings: { edit: [{ line: \"b = 3\", match: \"^b = \" }] }
    - $W/link: { ensure: link, target: other }
    - $W/new-link: { ensure: link, target: file }
    - $W/a/b/c: { ensure: directory, $OWN, mode: '0700' }
    - $W/a/b/c/file: { content: x, $OWN, mode: '0644' }
    - $W/conf.d: { ensure: directory, $OWN, mode: '0711', purge: true }
    - $W/full: { ensure: absent, force: true }
";

#[test]
fn files_links_and_directories_are_as_before() {
    let world = with_manifest(furnished(), ALL_KINDS);
    let before = contents(&world);
    world.apply().exits(0);
    let after = contents(&world);
    assert!(before != after);
    undo(&world, &["--noop"]).exits(0);
    assert!(contents(&world) == after, "a dry run changes nothing");
    undo(&world, &[]).exits(0);
    assert_eq!(names(&contents(&world)), names(&before));
    assert!(contents(&world) == before);
    // The undo is a run that can be undone.
    undo(&world, &[]).exits(0);
    assert!(contents(&world) == after);
    world.apply().exits(0).counts([0, 10, 0, 0]);
}

fn names(items: &BTreeMap<PathBuf, Item>) -> Vec<&PathBuf> {
    items.keys().collect()
}

#[test]
fn resource_that_changed_since_is_refused_and_the_rest_goes_on() {
    let world = with_manifest(furnished(), ALL_KINDS);
    world.apply().exits(0);
    fs::write(world.path("file"), "mine\n").unwrap();
    let summary = undo(&world, &["--json"]).exits(1).json_lines().pop().unwrap();
    let left = &summary["not_undone"];
    assert_eq!(left.as_array().unwrap().len(), 1, "{left}");
    assert_eq!(
        [&left[0]["resource"], &left[0]["reason"]],
        [&Value::from(world.fill("file#$W/file")), &"changed".into()]
    );
    assert_eq!(world.read("file"), "mine\n");
    assert!(!world.path("fresh").exists());
    let run = summary["undo_of"].as_str().unwrap().to_owned();
    world.ccm(["undo", &run, "--force"]).run().exits(0);
    assert_eq!(world.read("file"), "old\n");
    // The overwritten state is kept, too.
    undo(&world, &[]).exits(0);
    assert_eq!(world.read("file"), "mine\n");
}

#[test]
fn validator_that_rejects_the_restored_state_is_a_warning() {
    let world = World::new().file("a", "old\n").file("b", "old\n");
    let manifest = "- file:\n    - $W/a: { content: \"new\\n\", $OWN, mode: '0644', validate: 'grep -q new %s' }\n    \
                    - $W/b: { content: \"new\\n\", $OWN, mode: '0644', validate: 'grep -q new $W/b' }\n";
    let world = with_manifest(world, manifest);
    world.apply().exits(0);
    let undone = undo(&world, &[]);
    undone.exits(0).says("the state was restored although its validation fails");
    assert_eq!(world.read("a") + &world.read("b"), "old\nold\n");
}

#[test]
fn only_the_named_resources_are_undone() {
    let world = with_manifest(furnished(), ALL_KINDS);
    world.apply().exits(0);
    undo(&world, &[&world.fill("file#$W/file")]).exits(0);
    assert_eq!(world.read("file"), "old\n");
    assert!(world.path("fresh").exists());
    undo(&world, &["file#/elsewhere"]).exits(2).complains("did not change `file#/elsewhere`");
    world.ccm(["undo", "nonsense"]).run().exits(2);
}

#[test]
fn directory_with_other_files_stays() {
    let world =
        with_manifest(World::new(), "- file:\n    - $W/made: { ensure: directory, $OWN, mode: '0755' }\n");
    world.apply().exits(0);
    let world = world.file("made/mine", "mine");
    undo(&world, &[]).exits(1);
    assert_eq!(world.read("made/mine"), "mine");
}

#[test]
fn commands_stay_unless_another_command_undoes_them() {
    let world = with_manifest(
        World::new(),
        "- exec:\n    - first:\n        command: \"touch $W/first\"\n    - second:\n        command: \"touch $W/second\"\n        \
         undo: \"rm $W/second\"\n",
    );
    world.apply().exits(0);
    let summary = undo(&world, &["--json"]).exits(0).json_lines().pop().unwrap();
    assert_eq!(summary["not_undone"], serde_json::json!([{ "resource": "exec#first", "reason": "command" }]));
    assert!(world.path("first").exists() && !world.path("second").exists());
}

#[test]
fn commands_that_undo_have_the_environment_and_input_of_the_run() {
    let world = with_manifest(
        furnished(),
        "\
- file:
    - $W/file: { content: \"new\\n\", $OWN, mode: '0644' }
- exec:
    - make: { command: \"sh -c 'echo $X > $W/made'\", environment: [\"X=canary-1\"], undo: \"sh -c 'echo $X > $W/undone'\" }
    - load:
        command: \"sh -c 'cat >> $W/loaded; echo $Y >> $W/loaded'\"
        environment: [\"Y=canary-2\"]
        stdin: \"canary-3\\n\"
        refresh_only: true
        subscribe: [\"file#$W/file\"]
",
    );
    world.apply().exits(0);
    undo(&world, &[]).exits(0);
    assert_eq!(world.read("undone"), "canary-1\n");
    assert_eq!(world.read("loaded"), "canary-3\ncanary-2\n".repeat(2));
    for entry in fs::read_dir(world.state().join("history")).unwrap().flatten() {
        let text = fs::read(entry.path()).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&text).contains("canary"), "{}", entry.path().display());
    }
}

#[test]
fn subscriber_is_refreshed_once_after_its_last_cause() {
    let world = furnished().file("other", "old\n");
    let world = with_manifest(
        world,
        "\
- file:
    - $W/file: { content: \"new\\n\", $OWN, mode: '0644' }
    - $W/other: { content: \"new\\n\", $OWN, mode: '0644' }
- exec:
    - reload:
        command: \"sh -c 'cat $W/file $W/other >> $W/log; echo . >> $W/log'\"
        refresh_only: true
        subscribe: [\"file#$W/file\", \"file#$W/other\"]
",
    );
    world.apply().exits(0);
    assert_eq!(world.read("log"), "new\nnew\n.\n");
    let summary = undo(&world, &["--json"]).exits(0).json_lines().pop().unwrap();
    assert!(summary.get("not_undone").is_none(), "{summary}");
    assert_eq!(world.read("log"), "new\nnew\n.\nold\nold\n.\n");
}

#[test]
fn failure_undoes_the_changes_of_a_transaction() {
    let world = with_manifest(
        furnished(),
        "\
ccm:
  on_failure: undo
  resources:
    - file:
        - $W/file: { content: \"new\\n\", $OWN, mode: '0644' }
        - $W/fresh: { content: x, $OWN, mode: '0644' }
    - exec:
        - \"false\": {}
    - file:
        - $W/never: { content: x, $OWN, mode: '0644' }
",
    );
    let before = contents(&world);
    let summary = world.apply_with(&["--json"]).exits(1).summary();
    assert!(contents(&world) == before);
    assert_eq!(summary["failed_resources"], 1);
    let undo_run = summary["undo_run"].as_str().unwrap();
    let shown = world.ccm(["history", "show", undo_run, "--json"]).run().exits(0).json();
    assert_eq!([&shown["kind"], &shown["undo_of"]], [&Value::from("undo"), &summary["run"]]);
}

#[test]
fn signal_that_stops_a_transaction_does_not_stop_its_undo() {
    let world = with_manifest(
        furnished(),
        "\
ccm:
  on_failure: undo
  resources:
    - file:
        - $W/file: { content: \"new\\n\", $OWN, mode: '0644' }
    - exec:
        - \"sh -c 'touch $W/../runs; sleep 1000'\": {}
",
    );
    let run = world.ccm(["apply", "site.yaml"]).start();
    let runs = world.base().join("runs");
    wait_until("the command runs", || runs.exists());
    kill_process(Pid::from_child(&run), Signal::TERM).unwrap();
    finish(run, "ccm apply".to_owned()).exits(1);
    assert_eq!(world.read("file"), "old\n");
}

#[test]
fn failure_in_an_included_manifest_undoes_only_that_manifest() {
    let world = furnished();
    let inner = world
        .fill("- file:\n    - $W/file: { content: x, $OWN, mode: '0644' }\n- exec:\n    - \"false\": {}\n");
    let world = world.beside("inner.yaml", inner);
    let world = with_manifest(
        world,
        "\
- file:
    - $W/fresh: { content: x, $OWN, mode: '0644' }
- apply:
    - inner.yaml: { on_failure: undo }
- file:
    - $W/later: { content: x, $OWN, mode: '0644' }
",
    );
    world.apply().exits(1).says("were undone by run");
    assert_eq!(world.read("file"), "old\n");
    assert!(world.path("fresh").exists() && world.path("later").exists());
}

#[test]
fn killed_run_is_undone() {
    if !fits_strace() {
        return;
    }
    let trace = Trace::of(&with_manifest(furnished(), ALL_KINDS), &[]);
    let is_point = |call: &&Syscall| call.succeeded() && (call.changes_files() || call.syncs());
    let points: Vec<&Syscall> = trace.calls.iter().filter(is_point).collect();
    assert!(points.len() > 10);
    side_by_side(points, |call| {
        let world = with_manifest(furnished(), ALL_KINDS);
        let before = contents(&world);
        tampered(&world, call, "signal=KILL");
        let undone = undo(&world, &[]);
        // A run that was killed before its first change left no record.
        if undone.code != 2 {
            undone.exits(0);
        }
        // The next run sweeps temporary files.
        let world = with_manifest(world, "[]\n");
        world.apply();
        assert!(contents(&world) == before, "killed at {call:?}\n{undone}");
    });
}

#[test]
fn killed_undo_is_completed_by_the_next() {
    if !fits_strace() {
        return;
    }
    let applied = || {
        let world = with_manifest(furnished(), ALL_KINDS);
        world.apply().exits(0);
        let run = world.ccm(["history", "--json"]).run().exits(0).json_lines()[0]["run"]
            .as_str()
            .unwrap()
            .to_owned();
        (world, run)
    };
    let before = contents(&furnished());
    let (world, run) = applied();
    let trace = Trace::of_command(&world, &["undo", &run]);
    trace.outcome.exits(0);
    let is_point = |call: &&Syscall| call.succeeded() && (call.changes_files() || call.syncs());
    let points: Vec<&Syscall> = trace.calls.iter().filter(is_point).collect();
    assert!(points.len() > 10);
    side_by_side(points, |call| {
        let (world, run) = applied();
        tampered_command(&world, &["undo", &run], call, "signal=KILL");
        let undone = world.ccm(["undo", &run]).run();
        undone.exits(0);
        // The next run sweeps temporary files.
        let world = with_manifest(world, "[]\n");
        world.apply();
        assert!(contents(&world) == before, "killed at {call:?}\n{undone}");
    });
}
