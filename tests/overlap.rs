//! Runs and commands at the same time: they wait for each other, but only while something is changed.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::Child,
};

use serde_json::json;

use crate::{
    exec_refresh::wait_for,
    support::{Call, World, finish, is_root},
};

/// What `file` resources need besides.
const OWN: [&str; 6] = ["--owner", "$UID", "--group", "$GID", "--mode", "0644"];

/// A run that is in the middle of a change until `go` is there, and then makes one more.
fn busy(then: &str) -> (World, Child) {
    let wait = "echo > $W/begun; while ! test -e $W/go; do sleep 0.01; done;";
    let world =
        World::new().manifest(&format!("- exec:\n    - wait:\n        command: \"sh -c '{wait} {then}'\"\n"));
    let run = world.ccm(["apply", "site.yaml"]).start();
    wait_for(&world, "begun");
    (world, run)
}

fn ensure<'w>(world: &'w World, more: &[&str]) -> Call<'w> {
    let file = ["ensure", "file", "$W/x", "--content", "x"];
    world.ccm(file.iter().chain(&OWN).chain(more))
}

/// Starts a command that finds itself blocked, and gives what it says about that.
#[track_caller]
fn blocked(call: &Call) -> (Child, String) {
    let mut child = call.start();
    let mut said = String::new();
    BufReader::with_capacity(1, child.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
    (child, said)
}

/// Lets the run come to its end.
#[track_caller]
fn release(world: &World, run: Child) {
    fs::write(world.path("go"), "").unwrap();
    finish(run, "ccm apply".to_owned()).exits(0);
}

#[test]
fn a_command_that_has_something_to_change_waits_for_a_run_and_says_for_which() {
    let (world, run) = busy("true");
    // The wait is longer than that before it says anything.
    let (command, said) = blocked(&ensure(&world, &["--timeout", "500ms"]));
    assert_eq!(said, format!("note: waiting for process {} (ccm apply) to finish\n", run.id()));
    assert!(!world.path("x").exists());
    release(&world, run);
    finish(command, "ccm ensure".to_owned()).exits(0).says("created the file");
    assert_eq!(world.read("x"), "x");
}

#[test]
fn a_command_looks_again_after_it_had_to_wait() {
    let (world, run) = busy("printf x > $W/x; chmod 644 $W/x");
    let (command, _) = blocked(&ensure(&world, &["--diff"]));
    release(&world, run);
    finish(command, "ccm ensure".to_owned()).exits(0).says("unchanged").never_says("+x");
}

#[test]
fn a_command_that_changes_nothing_does_not_wait() {
    let (world, run) = busy("true");
    ensure(&world, &["--noop"]).run().exits(0).says("Would have created the file");
    let world = world.file("x", "x");
    ensure(&world, &[]).run().exits(0).says("unchanged");
    release(&world, run);
}

#[test]
fn a_command_gives_up_if_it_is_asked_to() {
    let (world, run) = busy("true");
    // Nor does it try again.
    let outcome = ensure(&world, &["--no-wait", "--tries", "100", "--try-sleep", "1h"]).run();
    outcome.exits(2).says(&format!("another run is in progress: process {} (ccm apply)", run.id()));
    assert!(!world.path("x").exists());
    release(&world, run);
    ensure(&world, &["--no-wait"]).run().exits(0);
}

#[test]
fn a_signal_ends_the_wait() {
    let (world, run) = busy("true");
    let (command, _) = blocked(&ensure(&world, &[]));
    let pid = rustix::process::Pid::from_child(&command);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    finish(command, "ccm ensure".to_owned()).exits(1).says("interrupted before it was finished");
    release(&world, run);
    assert!(!world.path("x").exists());
}

#[test]
fn a_run_that_is_interrupted_while_it_waits_says_only_that() {
    let (world, run) = busy("true");
    let (second, _) = blocked(&world.ccm(["apply", "site.yaml"]));
    let pid = rustix::process::Pid::from_child(&second);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let outcome = finish(second, "ccm apply".to_owned());
    outcome
        .exits(2)
        .complains("interrupted while waiting for another run to finish\n")
        .never_says("--state-dir");
    release(&world, run);
}

#[test]
fn a_request_waits_as_well_and_a_run_waits_for_a_command() {
    let (world, run) = busy("true");
    let properties = json!({ "name": "slow", "command": "sh -c 'echo > $W/second; while ! test -e $W/on; do sleep 0.01; done'" });
    let protocol = "io.choria.ccm.v1.resource.ensure.request";
    let request = json!({ "protocol": protocol, "type": "exec", "properties": properties }).to_string();
    let request = world.fill(&request);
    let (command, said) = blocked(&world.ccm(["ensure", "api", "pipe"]).input(&request));
    assert!(said.contains("(ccm apply)"), "{said}");
    release(&world, run);
    wait_for(&world, "second");
    let (second, said) = blocked(&world.ccm(["apply", "site.yaml"]));
    assert_eq!(said, format!("note: waiting for process {} (ccm ensure) to finish\n", command.id()));
    fs::write(world.path("on"), "").unwrap();
    finish(command, "ccm ensure api pipe".to_owned()).exits(0).says("\"changed\": true");
    finish(second, "ccm apply".to_owned()).exits(0);
}

#[test]
fn what_a_run_started_is_part_of_it_and_does_not_wait_for_it() {
    let ccm = env!("CARGO_BIN_EXE_ccm");
    let world = World::new();
    let inner = world.fill("ensure file $W/x --content x --owner $UID --group $GID --mode 0644");
    // Also at some remove, and for a command that was itself started by a command.
    let script = format!("#!/bin/sh\nsetsid {ccm} ensure exec inner --command '{ccm} {inner}'\n");
    let world = world.file("script", script).mode("script", 0o755);
    let world = world.manifest("- exec:\n    - outer: { command: $W/script, timeout: 1h }\n");
    world.apply().exits(0);
    assert_eq!(world.read("x"), "x");
    // A whole run has no place in another.
    let world = world.manifest(&format!(
        "- exec:\n    - outer: {{ command: '{ccm} apply $W/other.yaml', timeout: 1h }}\n"
    ));
    let world = world.file("other.yaml", "[]");
    world.apply().exits(1).says("this run was started by one that is in progress");
}

#[test]
fn what_a_command_left_in_the_background_waits_for_the_run() {
    let world = World::new().beside("other.yaml", "[]");
    let ccm = format!("{} apply {}", env!("CARGO_BIN_EXE_ccm"), world.base().join("other.yaml").display());
    let wait = "while [ -d /proc/$$ ]; do sleep 0.01; done";
    let job = format!("({wait}; {ccm} 2> $W/said; echo $? > $W/done.new; mv $W/done.new $W/done)");
    let world = world.manifest(&format!(
        "\
- exec:
    - start: {{ command: \"{job} > /dev/null 2>&1 &\", provider: shell }}
    - look: {{ command: \"until grep -q waiting $W/said; do sleep 0.01; done\", provider: shell, timeout: 1h }}
"
    ));
    world.apply().exits(0).counts([2, 0, 0, 0]);
    assert_eq!(wait_for(&world, "done"), "0");
}

#[test]
fn a_process_of_the_same_number_in_another_container_is_somebody_else() {
    if !is_root() {
        return;
    }
    let container = ["unshare", "--pid", "--fork", "--mount-proc"];
    let world = World::new().beside("other.yaml", "[]").manifest(
        "- exec:\n    - wait: { command: \"echo > $W/begun; while ! test -e $W/go; do sleep 0.01; done\", provider: shell }\n",
    );
    // The run is the first process there, as the shell is here.
    let run = world.ccm(["apply", "site.yaml"]).under(container).start();
    wait_for(&world, "begun");
    let shell = ["sh", "-c", "\"$@\"; exit $?", "sh"];
    let other =
        world.ccm(["apply", "other.yaml", "--no-wait"]).under(container.into_iter().chain(shell)).run();
    other.exits(2).complains("another run is in progress: process 1 (ccm apply)");
    release(&world, run);
}
