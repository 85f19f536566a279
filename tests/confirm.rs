//! Runs that are undone unless they are confirmed.

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt, path::PathBuf, process::Child};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{
    Item, Outcome, Syscall, Trace, World, finish, fits_strace, side_by_side, tampered_command, wait_until,
    with_time_enough,
};

/// Everything in the managed part of a world but inodes, which a restored file does not have again.
fn contents(world: &World) -> BTreeMap<PathBuf, Item> {
    let mut items = world.tree().0;
    for item in items.values_mut() {
        item.inode = 0;
    }
    items
}

/// Files to change.
fn furnished() -> World {
    let world =
        World::new().file("file", "old\n").file("secret", "s\n").dir("full").file("full/inner", "kept\n");
    fs::set_permissions(world.path("secret"), fs::Permissions::from_mode(0o640)).unwrap();
    world
}

const CHANGES: &str = "\
- file:
    - $W/file: { content: \"new\\n\", $OWN, mode: '0600' }
    - $W/fresh: { content: \"fresh\\n\", $OWN, mode: '0644' }
    - $W/secret: { $OWN, mode: '0604' }
    - $W/full: { ensure: absent, force: true }
";

fn changing() -> World {
    furnished().manifest(CHANGES)
}

fn confirm(world: &World, arguments: &[&str]) -> Outcome {
    world.ccm(["confirm"].iter().chain(arguments)).run()
}

fn status(world: &World) -> Value {
    confirm(world, &["--status", "--json"]).exits(0).json()
}

fn is_pending(world: &World) -> bool {
    status(world)["pending"] == true
}

/// Applies the manifest of a new world with so little time that it passes without a confirmation, and returns the summary.
fn unconfirmed() -> (World, Value) {
    with_time_enough(|time| {
        let world = changing();
        let outcome = world.apply_with(&["--confirm", time, "--json"]);
        (outcome.code == 0).then(|| (world, outcome.summary()))
    })
}

/// Returns the process that guards a run of the world.
fn guard(world: &World) -> Option<Pid> {
    let program = world.state().join("confirm/ccm");
    let program = program.to_str().unwrap().as_bytes();
    fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
        let arguments = fs::read(entry.path().join("cmdline")).ok()?;
        let is_guard = arguments.split(|byte| *byte == 0).next() == Some(program);
        Pid::from_raw(entry.file_name().to_str()?.parse().ok()?).filter(|_| is_guard)
    })
}

fn kill_guard(world: &World) {
    kill_process(guard(world).expect("a guard"), Signal::KILL).unwrap();
    wait_until("the guard is gone", || guard(world).is_none());
}

#[test]
fn confirmed_run_stays() {
    let world = changing();
    let summary = world.apply_with(&["--confirm", "1h", "--json"]).exits(0).summary();
    let run = summary["run"].as_str().unwrap();
    let deadline: jiff::Timestamp = summary["confirm_deadline"].as_str().unwrap().parse().unwrap();
    assert!(deadline > jiff::Timestamp::now());
    let after = contents(&world);
    let pending = status(&world);
    assert_eq!([&pending["pending"], &pending["run"]], [&Value::from(true), &Value::from(run)]);
    assert!(pending["left"].as_u64().unwrap() > 3000, "{pending}");
    assert!(pending["deadline"].as_str().unwrap().ends_with('Z'), "{pending}");
    confirm(&world, &["nonsense"]).exits(2);
    assert!(is_pending(&world));
    confirm(&world, &[&run[..12]]).exits(0);
    assert_eq!(status(&world), serde_json::json!({ "pending": false }));
    assert!(contents(&world) == after);
    confirm(&world, &[]).exits(2);
    confirm(&world, &["--wait", run]).exits(0);
    wait_until("the guard ends", || guard(&world).is_none());
    world.apply().exits(0).counts([0, 4, 0, 0]);
}

#[test]
fn command_to_confirm_is_printed() {
    let world = changing();
    let outcome = world.apply_with(&["--confirm", "1h"]);
    let run = status(&world)["run"].as_str().unwrap().to_owned();
    outcome.exits(0).says(&format!("ccm confirm {run}"));
}

#[test]
fn run_without_confirmation_is_undone_after_its_time() {
    let before = contents(&changing());
    let (world, summary) = unconfirmed();
    let run = summary["run"].as_str().unwrap();
    wait_until("the run is undone", || !is_pending(&world));
    assert!(contents(&world) == before);
    confirm(&world, &["--wait", run]).exits(1);
    confirm(&world, &[run]).exits(2);
    let last = world.ccm(["history", "show", "last", "--json"]).run().exits(0).json();
    assert_eq!([&last["kind"], &last["undo_of"]], [&Value::from("undo"), &Value::from(run)]);
    // The program of the guard is removed with the record.
    assert!(!world.state().join("confirm/ccm").exists());
}

#[test]
fn waiting_command_reports_the_undo() {
    let world = changing();
    world.apply_with(&["--confirm", "1h"]).exits(0);
    let waiting = world.ccm(["confirm", "--wait"]).start();
    confirm(&world, &["--undo"]).exits(0).says("was undone by run");
    finish(waiting, "ccm confirm --wait".to_owned()).exits(1);
    assert_eq!(world.read("file"), "old\n");
    confirm(&world, &["--undo"]).exits(2);
    confirm(&world, &["--wait"]).exits(2);
}

#[test]
fn other_runs_are_refused_while_a_run_awaits_confirmation() {
    let world = changing();
    world.apply_with(&["--confirm", "1h"]).exits(0);
    let run = status(&world)["run"].as_str().unwrap().to_owned();
    for arguments in [
        vec!["apply", "site.yaml"],
        vec!["apply", "site.yaml", "--confirm", "1h"],
        vec!["ensure", "file", "$W/other", "--content", "x"],
        vec!["ensure", "file", "$W/file", "--content", "new\n"],
    ] {
        world.ccm(&arguments).run().exits(2).complains(&format!("`{run}` awaits confirmation"));
    }
    assert!(!world.path("other").exists());
    world.ccm(["apply", "site.yaml", "--noop"]).run().exits(0);
    // Undoing is always possible, and the confirmed run can be the one.
    world.ccm(["undo", &run]).run().exits(0);
    assert!(!is_pending(&world));
    assert_eq!(world.read("file"), "old\n");
}

#[test]
fn failed_run_is_undone_immediately() {
    let world = furnished().manifest(&format!("{CHANGES}- exec:\n    - \"false\": {{}}\n"));
    let before = contents(&world);
    let summary = world.apply_with(&["--confirm", "1h", "--json"]).exits(1).summary();
    assert!(summary["undo_run"].is_string(), "{summary}");
    assert!(summary.get("confirm_deadline").is_none(), "{summary}");
    assert!(contents(&world) == before);
    assert!(!is_pending(&world));
}

#[test]
fn run_with_a_failed_health_check_is_undone_immediately() {
    let world = furnished().manifest(
        "- file:\n    - $W/file:\n        content: \"new\\n\"\n        owner: \"$UID\"\n        group: \"$GID\"\n        mode: '0600'\n        \
         health_checks: [{ command: \"sh -c 'exit 2'\" }]\n",
    );
    let before = contents(&world);
    world.apply_with(&["--confirm", "1h"]).exits(1);
    assert!(contents(&world) == before);
}

#[test]
fn run_that_changes_nothing_needs_no_confirmation() {
    let world = changing();
    world.apply().exits(0);
    world.apply_with(&["--confirm", "1h"]).exits(0).says("nothing to confirm");
    assert!(!is_pending(&world));
    world.apply_with(&["--confirm", "1h", "--noop"]).exits(0);
    assert!(!is_pending(&world));
}

/// Starts a run that changes files and then does not end; `None` if the time was over before.
fn try_hanging(world: &World, time: &str) -> Option<Child> {
    let mut run = world.ccm(["apply", "site.yaml", "--confirm", time]).start();
    let runs = world.base().join("runs");
    wait_until("the command runs", || runs.exists() || run.try_wait().unwrap().is_some());
    runs.exists().then_some(run)
}

fn hanging(world: &World) -> Child {
    try_hanging(world, "1h").expect("an hour is enough")
}

fn with_hanging_command() -> World {
    furnished().manifest(&format!(
        "{CHANGES}- exec:\n    - \"sh -c 'mkdir -p $W/runs; touch $W/../runs; sleep 1000'\": {{ undo: 'rmdir $W/runs' }}\n"
    ))
}

#[test]
fn killed_run_is_undone_by_its_guard() {
    let world = with_hanging_command();
    let before = contents(&world);
    let mut run = hanging(&world);
    assert_ne!(world.read("file"), "old\n");
    confirm(&world, &[]).exits(2).complains("in progress");
    run.kill().unwrap();
    run.wait().unwrap();
    wait_until("the run is undone", || !is_pending(&world));
    assert!(contents(&world) == before);
}

#[test]
fn resource_that_takes_longer_than_the_time_is_stopped_and_the_run_undone() {
    let before = contents(&with_hanging_command());
    let (world, run) = with_time_enough(|time| {
        let world = with_hanging_command();
        let run = try_hanging(&world, time)?;
        Some((world, run))
    });
    finish(run, "ccm apply".to_owned()).exits(1);
    wait_until("the run is undone", || !is_pending(&world));
    assert!(contents(&world) == before);
}

#[test]
fn run_in_progress_is_undone_on_request() {
    let world = with_hanging_command();
    let before = contents(&world);
    let run = hanging(&world);
    confirm(&world, &["--undo"]).exits(0);
    finish(run, "ccm apply".to_owned()).exits(1);
    assert!(contents(&world) == before);
}

#[test]
fn next_run_completes_an_overdue_undo_first() {
    let before = contents(&changing());
    let (world, _) = unconfirmed();
    if let Some(guard) = guard(&world) {
        let _ = kill_process(guard, Signal::KILL);
    }
    wait_until("the time is over", || !is_pending(&world) || status(&world)["left"] == 0);
    let world = world.beside("site.yaml", "[]\n");
    world.apply().exits(0);
    assert!(contents(&world) == before);
    assert!(!is_pending(&world));
}

#[test]
fn pruning_the_history_completes_an_overdue_undo_first() {
    let before = contents(&changing());
    let (world, _) = unconfirmed();
    if let Some(guard) = guard(&world) {
        let _ = kill_process(guard, Signal::KILL);
    }
    wait_until("the time is over", || !is_pending(&world) || status(&world)["left"] == 0);
    world.ccm(["history", "prune"]).run().exits(0);
    assert!(contents(&world) == before);
    assert!(!is_pending(&world));
}

#[test]
fn missing_guard_is_started_again() {
    let world = changing();
    world.apply_with(&["--confirm", "1h"]).exits(0);
    kill_guard(&world);
    world.apply().exits(2);
    wait_until("the guard is back", || guard(&world).is_some());
    confirm(&world, &["--undo"]).exits(0);
    wait_until("the guard ends", || guard(&world).is_none());
}

#[test]
fn confirmation_after_the_deadline_is_too_late() {
    let before = contents(&changing());
    let (world, _) = unconfirmed();
    if let Some(guard) = guard(&world) {
        let _ = kill_process(guard, Signal::KILL);
    }
    wait_until("the time is over", || !is_pending(&world) || status(&world)["left"] == 0);
    if is_pending(&world) {
        confirm(&world, &[]).exits(1);
    }
    assert!(contents(&world) == before);
}

#[test]
fn nothing_changes_without_a_guard() {
    let Some(world) = furnished().tmpfs("../noexec", "noexec,mode=0700") else { return };
    let world = world.manifest(CHANGES);
    let before = contents(&world);
    let state = world.path("../noexec").canonicalize().unwrap();
    let outcome =
        world.ccm(["apply", "site.yaml", "--confirm", "1h", "--state-dir", state.to_str().unwrap()]).run();
    outcome.exits(2).says("cannot start the guard");
    assert!(contents(&world) == before);
    let pending =
        world.ccm(["confirm", "--status", "--json", "--state-dir", state.to_str().unwrap()]).run().json();
    assert_eq!(pending["pending"], false);
}

#[test]
fn confirmation_needs_the_history() {
    let world = changing();
    let before = contents(&world);
    world.apply_with(&["--confirm", "1h", "--no-history"]).exits(2).complains("needs the history");
    world.ccm(["apply", "site.yaml", "--confirm", "1h"]).env("CCM_HISTORY", "off").run().exits(2);
    assert!(contents(&world) == before);
}

#[test]
fn plan_can_require_a_confirmation() {
    let world = changing();
    let before = contents(&world);
    world.ccm(["plan", "site.yaml", "-o", "site.plan"]).run().exits(0);
    let applied = world.ccm(["apply", "site.plan", "--confirm", "1h"]).run();
    applied.exits(0).says("ccm confirm ");
    assert!(is_pending(&world) && contents(&world) != before);
    confirm(&world, &["--undo"]).exits(0);
    assert!(contents(&world) == before && !is_pending(&world));
}

#[test]
fn nothing_changes_if_the_disk_is_full() {
    let Some(world) = furnished().tmpfs("../full", "size=64k,mode=0700") else { return };
    let world = world.manifest(CHANGES);
    let before = contents(&world);
    let state = world.path("../full").canonicalize().unwrap();
    let outcome =
        world.ccm(["apply", "site.yaml", "--confirm", "1h", "--state-dir", state.to_str().unwrap()]).run();
    outcome.exits(2).says("no space left");
    assert!(contents(&world) == before);
}

#[test]
fn manifest_can_require_a_confirmation() {
    let world = furnished().manifest(
        "ccm:\n  confirm: 1h\n  resources:\n    - file:\n        - $W/file: { content: x, $OWN, mode: '0644' }\n",
    );
    world.apply().exits(0).says("ccm confirm");
    assert!(is_pending(&world));
    confirm(&world, &[]).exits(0);
}

#[test]
fn confirmation_can_require_a_reboot() {
    let world = changing();
    world.apply_with(&["--confirm-reboot"]).exits(2);
    world.apply_with(&["--confirm", "1h", "--confirm-reboot"]).exits(0);
    confirm(&world, &[]).exits(2).complains("after the next boot");
    // The record is of another boot now.
    let path = world.state().join("confirm/pending.json");
    let mut record: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    kill_guard(&world);
    record["boot"] = "another".into();
    fs::write(&path, record.to_string()).unwrap();
    // This machine was booted long ago, or it was not: the time counts from then.
    record["timeout"] = serde_json::json!({ "secs": 1_000_000_000, "nanos": 0 });
    fs::write(&path, record.to_string()).unwrap();
    confirm(&world, &[]).exits(0);
}

#[test]
fn boot_undoes_a_run_that_is_not_confirmed() {
    let world = changing();
    let before = contents(&world);
    world.apply_with(&["--confirm", "1h"]).exits(0);
    kill_guard(&world);
    let path = world.state().join("confirm/pending.json");
    let mut record: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    record["boot"] = "another".into();
    fs::write(&path, record.to_string()).unwrap();
    world.ccm(["confirm", "--guard"]).run().exits(0);
    assert!(contents(&world) == before);
    assert!(!is_pending(&world));
}

#[test]
fn resource_that_was_changed_during_the_window_is_refused() {
    let world = changing();
    world.apply_with(&["--confirm", "1h"]).exits(0);
    fs::write(world.path("file"), "mine\n").unwrap();
    confirm(&world, &["--undo"]).exits(1).says("not undone");
    assert_eq!(world.read("file"), "mine\n");
    assert!(!world.path("fresh").exists());
    assert!(!is_pending(&world));
}

#[test]
fn undo_that_fails_stays_pending_until_it_succeeds() {
    let world = furnished().manifest(&format!(
        "{CHANGES}- exec:\n    - \"touch $W/made\": {{ undo: \"sh -c 'test -e $W/../allowed && rm $W/made'\" }}\n"
    ));
    let before = contents(&world);
    world.apply_with(&["--confirm", "1h"]).exits(0);
    confirm(&world, &["--undo"]).exits(1);
    assert!(is_pending(&world));
    assert_eq!(world.read("file"), "old\n", "the rest is undone");
    confirm(&world, &["--status"]).exits(0).says("not undone completely");
    confirm(&world, &["--wait"]).exits(1);
    confirm(&world, &[]).exits(1);
    let world = world.beside("allowed", "");
    world.apply().exits(2).complains("not undone completely");
    confirm(&world, &["--undo"]).exits(0);
    assert!(!is_pending(&world));
    assert!(contents(&world) == before);
}

/// The points at which a command changes a file or brings one to disk.
fn points(trace: &Trace) -> Vec<&Syscall> {
    let is_point = |call: &&Syscall| call.succeeded() && (call.changes_files() || call.syncs());
    trace.calls.iter().filter(is_point).collect()
}

#[test]
fn failed_run_is_undone_wherever_it_is_killed() {
    if !fits_strace() {
        return;
    }
    let failing = || furnished().manifest(&format!("{CHANGES}- exec:\n    - \"false\": {{}}\n"));
    let arguments = ["apply", "site.yaml", "--confirm", "1h"];
    let before = contents(&failing());
    let trace = Trace::of_command(&failing(), &arguments);
    trace.outcome.exits(1);
    let points = points(&trace);
    assert!(points.len() > 30);
    // The program of the guard is large in a debug build.
    side_by_side(points.into_iter().step_by(3), |call| {
        let world = failing();
        tampered_command(&world, &arguments, call, "signal=KILL");
        let world = world.beside("site.yaml", "[]\n");
        world.apply().exits(0);
        assert!(contents(&world) == before, "killed at {call:?}");
        assert!(!is_pending(&world), "killed at {call:?}");
    });
}

#[test]
fn killed_confirmation_confirms_or_leaves_the_run_pending() {
    if !fits_strace() {
        return;
    }
    let pending = || {
        let world = changing();
        world.apply_with(&["--confirm", "1h"]).exits(0);
        world
    };
    let world = pending();
    let after = contents(&world);
    let trace = Trace::of_command(&world, &["confirm"]);
    trace.outcome.exits(0);
    side_by_side(points(&trace), |call| {
        let world = pending();
        tampered_command(&world, &["confirm"], call, "signal=KILL");
        if is_pending(&world) {
            confirm(&world, &[]).exits(0);
        }
        assert!(contents(&world) == after, "killed at {call:?}");
        world.apply().exits(0).counts([0, 4, 0, 0]);
    });
}
