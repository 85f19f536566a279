//! What only people see: the line that says how far a long run or a download has come.

use std::{process::Command, time::Duration};

use crate::support::{
    World, has,
    http::{Manner, Reply, Server},
    side_by_side, wait_until,
};

/// What the program writes when it applies the manifest on a terminal.
pub(crate) fn on_a_terminal(world: &World, how: &str) -> Option<String> {
    if !has("script") {
        return None;
    }
    let command = how.replace("ccm", env!("CARGO_BIN_EXE_ccm"));
    let mut script = Command::new("script");
    script.args(["-qec", &command, "/dev/null"]).current_dir(world.base());
    script.env("CCM_STATE_DIR", world.state()).env("TERM", "xterm");
    let output = script.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8(output.stdout).unwrap())
}

/// What is left to read on the terminal at the end.
pub(crate) fn left(written: &str) -> Vec<&str> {
    written.lines().map(|line| line.rsplit("\u{1b}[2K").next().unwrap_or_default().trim()).collect()
}

/// A world with an archive whose download takes seconds, and its server.
fn slow_download() -> (Server, World) {
    let slow = || Reply::body(vec![b'x'; 2 << 20]).manner(Manner::Slow(Duration::from_secs(3)));
    let server = Server::start(move |_| slow());
    let url = server.url("/app.tar.gz");
    let world = World::new().manifest(&format!("- archive: {{ $W/app.tar.gz: {{ url: '{url}', $OWN }} }}"));
    (server, world)
}

#[test]
fn a_long_download_shows_name_size_speed_and_what_remains() {
    let (_server, world) = slow_download();
    let Some(written) = on_a_terminal(&world, "ccm apply site.yaml") else { return };
    for part in [" MiB of 2.00 MiB, ", "iB/s, ", "s left: app.tar.gz", "[="] {
        assert!(written.contains(part), "{part:?} in {written}");
    }
    assert!(!written.contains("GiB/s"), "two MiB in seconds are no GiB a second: {written}");
    let left = left(&written);
    assert!(left[0].contains("archive#") && left[0].contains("downloaded"), "{left:?}");
    assert!(!left.concat().contains("left:"), "{left:?}");
}

#[test]
fn whoever_sends_the_report_elsewhere_still_sees_the_download_and_only_that() {
    let (_server, world) = slow_download();
    let Some(written) = on_a_terminal(&world, "ccm apply site.yaml > report") else { return };
    assert!(written.contains(" MiB of 2.00 MiB, ") && !written.contains("archive#"), "{written}");
    let report = std::fs::read_to_string(world.base().join("report")).unwrap();
    assert!(report.contains("downloaded") && !report.contains("left:"), "{report}");
}

#[test]
fn where_nobody_looks_no_download_is_shown() {
    let (_server, world) = slow_download();
    let outcome = world.apply();
    assert_eq!(outcome.exits(0).stderr, "");
    outcome.never_says("left:");
}

#[test]
fn a_server_that_cannot_be_reached_leaves_no_line_behind() {
    let server = Server::start(|_| Reply::body(vec![b'x'; 10]).manner(Manner::Cut(0)));
    let url = server.url("/app.tar.gz");
    drop(server);
    let world =
        World::new().manifest(&format!("- archive: {{ $W/app.tar.gz: {{ url: '{url}', $OWN, tries: 1 }} }}"));
    let Some(written) = on_a_terminal(&world, "! ccm apply site.yaml") else { return };
    assert!(!written.contains("\u{1b}[2K"), "{written}");
}

/// A manifest with a command that takes so many seconds, and one that prints something.
fn waits(seconds: u32) -> World {
    World::new().manifest(&format!("- exec: [sleep {seconds}: {{}}, echo x: {{ logoutput: true }}]"))
}

#[test]
fn a_long_run_shows_where_it_is_and_a_short_one_does_not() {
    let Some(written) = on_a_terminal(&waits(2), "ccm apply site.yaml") else { return };
    assert!(written.contains("0/2 0 unchanged, exec#sleep 2"), "{written}");
    assert!(written.contains("1/2 0 unchanged, exec#echo x"), "{written}");
    let left = left(&written);
    assert!(left[0].contains("exec#sleep 2") && left[1].ends_with("exec#echo x:\u{1b}[0m x"), "{left:?}");
    assert!(!left.concat().contains("/2"), "{left:?}");
    let world = waits(0);
    // On a busy machine a run may have to be repeated to be short.
    wait_until("a short run shows no such line", || {
        !on_a_terminal(&world, "ccm apply site.yaml").unwrap().contains("0/2")
    });
}

#[test]
fn a_terminal_that_can_nothing_and_a_program_are_shown_no_such_line() {
    side_by_side(["TERM=dumb ccm apply site.yaml", "ccm apply --json site.yaml"], |quiet| {
        let Some(written) = on_a_terminal(&waits(2), quiet) else { return };
        assert!(!written.contains("0/2"), "{quiet}: {written}");
    });
}
