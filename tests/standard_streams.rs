//! Standard output that cannot be written, and standard input that does not end.

use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::support::{World, finish, listens};

#[test]
fn what_cannot_be_printed_is_said_and_no_success() {
    for (sink, reason) in [(">/dev/full", "No space left on device"), ("1</dev/null", "Bad file descriptor")]
    {
        let world = World::new()
            .files("- $W/a: { content: x }\n- $W/b: { content: x }")
            .beside("data.yaml", "data: {}");
        let properties =
            json!({ "name": "$W/c", "content": "x", "owner": "$UID", "group": "$GID", "mode": "0644" });
        let protocol = "io.choria.ccm.v1.resource.ensure.request";
        let request = world
            .fill(&json!({ "protocol": protocol, "type": "file", "properties": properties }).to_string());
        world.ccm(["session", "new", "--directory", "session"]).run().exits(0);
        let shell = format!("exec \"$@\" {sink}");
        let into_sink = |arguments: &[&str], input: &str| {
            world.ccm(arguments).input(input).under(["/bin/sh", "-c", &shell, "sh"]).run()
        };
        for (arguments, code) in [
            // The work goes on, and is done.
            (&["apply", "site.yaml"][..], 1),
            (&["apply", "--json", "site.yaml"], 1),
            (&["ensure", "api", "pipe"], 1),
            (&["ensure", "api", "serve"], 1),
            (&["ensure", "file", "$W/a", "absent"], 1),
            (&["apply", "--render", "site.yaml"], 1),
            (&["facts", "hostname"], 2),
            (&["eval", "1"], 2),
            (&["hiera", "parse", "data.yaml"], 2),
            (&["hiera", "parse", "data.yaml", "--yaml"], 2),
            (&["status", "file", "$W/a"], 2),
            (&["schema", "event"], 2),
            (&["completions", "bash"], 2),
            (&["validate", "site.yaml"], 2),
            (&["--help"], 2),
            (&["--version"], 2),
            (&["ensure", "file", "--help"], 2),
            (&["session", "new", "--directory", "other"], 2),
            (&["session", "report", "--session", "session", "--remove"], 2),
        ] {
            let outcome = into_sink(arguments, &request);
            outcome.exits(code).complains(&format!("error: cannot write to standard output: {reason}"));
            assert_eq!(outcome.stderr.lines().count(), 1, "{outcome}");
        }
        assert_eq!(world.tree().names(), ["b", "c"]);
        assert!(!world.base().join("other").exists(), "nobody knows of it");
        assert!(world.base().join("session").exists(), "nobody has read it");
        into_sink(&["apply", "nowhere.yaml"], "").exits(2);
    }
}

#[test]
fn reading_a_standard_input_that_does_not_end_can_be_interrupted() {
    for arguments in [
        &["apply", "-"][..],
        &["validate", "-"],
        &["hiera", "parse", "-"],
        &["apply", "[]", "--hiera", "-"],
        &["ensure", "api", "pipe"],
        &["ensure", "file", "/nowhere/x", "--content-file", "-"],
    ] {
        let world = World::new().beside("[]", "[]\n");
        let mut command = Command::new(env!("CARGO_BIN_EXE_ccm"));
        command.args(arguments).current_dir(world.base()).env("CCM_STATE_DIR", world.state());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let open = child.stdin.take();
        let id = Pid::from_child(&child);
        listens(&child, Signal::INT);
        kill_process(id, Signal::INT).unwrap();
        finish(child, arguments.join(" ")).exits(2).complains("stopped by SIGINT");
        drop(open);
    }
}
