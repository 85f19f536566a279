//! Commands as processes: that all of them end when they have to, and that they get and leave nothing they should not.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{
    exec::{commands, runs},
    exec_refresh::wait_for,
    support::{World, is_root},
};

/// How long processes are given to end by themselves, and a second to notice.
const GRACE: Duration = Duration::from_secs(6);

/// Scripts that leave the numbers of their processes in `$W/pids`, and how each could escape.
const STUBBORN: [(&str, &str); 6] = [
    ("child", "echo $$ >> $W/pids; exec sleep 1000"),
    ("grandchild", "(sh -c 'echo $$ >> $W/pids; exec sleep 1000'); true"),
    ("setsid", "setsid sh -c 'echo $$ >> $W/pids; exec sleep 1000'; true"),
    (
        "daemon",
        "setsid sh -c 'sh -c \"echo \\$\\$ >> $W/pids; exec sleep 1000\" & exit' > /dev/null 2>&1; sleep 1000",
    ),
    ("trapped TERM", "trap '' TERM; echo $$ >> $W/pids; while true; do sleep 0.1; done"),
    ("pipe holder", "sh -c 'echo $$ >> $W/pids; exec sleep 1000' & sleep 1000"),
];

fn stubborn(script: &str, more: &str) -> World {
    let world = World::new().manifest(&format!(
        "- exec:\n    - a: {{ command: sh $W/script, {more} }}\n    - b: {{ command: \"sh -c 'echo x >> $W/ran'\" }}\n"
    ));
    let script = world.fill(script);
    world.file("script", script)
}

/// The processes that left their number and still run.
fn running(world: &World) -> Vec<String> {
    let pids = fs::read_to_string(world.path("pids")).expect("the script came to its point");
    let runs = |pid: &&str| {
        // A process that has ended and is only waited for by nobody is no longer a concern of ours.
        fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
    };
    pids.lines().filter(runs).map(str::to_owned).collect()
}

#[test]
fn a_timeout_ends_everything_that_the_command_started() {
    thread::scope(|scope| {
        for (name, script) in STUBBORN {
            scope.spawn(move || {
                let world = stubborn(script, "timeout: 1s");
                let started = Instant::now();
                let outcome = world.apply();
                assert!(
                    started.elapsed() < Duration::from_secs(1) + GRACE + Duration::from_secs(2),
                    "{name}"
                );
                outcome.exits(1).says("\"sh\" timed out after 1s").says("all of it was ended");
                assert_eq!(running(&world), [""; 0], "{name}");
                assert_eq!(runs(&world), 1, "{name}: the run goes on");
            });
        }
    });
}

#[test]
fn a_timeout_ends_everything_also_where_the_session_began_outside_of_the_container() {
    if !is_root() {
        return;
    }
    let wrapper = ["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", "\"$@\"; exit $?", "sh"];
    for (name, script) in STUBBORN.into_iter().filter(|(name, _)| ["setsid", "daemon"].contains(name)) {
        let world = stubborn(script, "timeout: 1s");
        let manifest = fs::read_to_string(world.base().join("site.yaml")).unwrap();
        let look = "    - c: { command: \"sh -c 'cat /proc/[0-9]*/comm > $W/left'\" }\n";
        let world = world.manifest(&(manifest + look));
        let outcome = world.ccm(["apply", "site.yaml"]).under(wrapper).run();
        outcome.exits(1).counts([2, 0, 1, 0]).says("all of it was ended");
        let left = world.read("left");
        assert!(left.contains("ccm\n") && !left.contains("sleep"), "{name}: {left}");
    }
}

#[test]
fn a_signal_ends_the_command_and_the_report_is_printed() {
    for signal in [Signal::TERM, Signal::INT] {
        let world = stubborn(STUBBORN[3].1, "tries: 3");
        let child = world.ccm(["apply", "site.yaml"]).start();
        wait_for(&world, "pids");
        kill_process(Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{printed}");
        assert!(printed.contains("was interrupted by SIG"), "{printed}");
        assert!(printed.contains("1 resource was not attempted"), "{printed}");
        assert!(printed.contains("0 changed, 0 stable, 1 failed"), "{printed}");
        assert_eq!(running(&world), [""; 0]);
        assert_eq!(runs(&world), 0);
    }
}

#[test]
fn what_a_command_leaves_in_the_background_lives_on_and_nobody_waits_for_it() {
    let world = commands("a: { command: \"sh -c 'sleep 1000 & echo $! > $W/pids'\" }");
    let started = Instant::now();
    world.apply().exits(0);
    assert!(started.elapsed() < Duration::from_secs(10));
    let left = running(&world);
    assert_eq!(left.len(), 1);
    crate::support::sh(&format!("kill {}", left[0]), world.base());
}

#[test]
fn what_is_left_in_the_background_may_write_to_an_output_of_its_own_only() {
    for (output, lives) in [("> $W/own 2>&1", true), ("", false)] {
        let job = "while [ ! -e $W/go ]; do sleep 0.02; done; echo late; echo alive > $W/after";
        let line = format!("sh -c '{job}' {output} & echo $! > $W/pids");
        let world = commands(&format!("a: {{ command: \"{line}\", provider: shell }}"));
        world.apply().exits(0);
        assert_eq!(running(&world).len(), 1);
        fs::write(world.path("go"), "").unwrap();
        let started = Instant::now();
        while !running(&world).is_empty() {
            assert!(started.elapsed() < Duration::from_mins(1), "{output:?} still runs");
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(world.path("after").exists(), lives, "{output:?}");
    }
}

#[test]
fn a_gibibyte_of_output_takes_little_memory() {
    let world = commands(
        "a: { command: \"sh -c 'yes out | head -c 1073741824; yes err | head -c 1073741824 >&2; exit 1'\", timeout: 10m }\nb: { command: \"sh -c 'cat /proc/$PPID/status > $W/memory'\" }",
    );
    world.apply().exits(1).says("stderr, its end:\n").says("stdout, its end:\n");
    let memory = world.read("memory");
    let kibibytes = |key: &str| -> u64 {
        let line = memory.lines().find(|line| line.starts_with(key)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    // The program's own code, of which a build for tests has a lot, is not counted.
    assert!(kibibytes("VmHWM:") - kibibytes("RssFile:") <= 20 * 1024, "{memory}");
}

#[test]
fn commands_get_no_descriptors_and_leave_none() {
    let count = "sh -c 'ls /proc/$PPID/fd > $W/list; wc -l < $W/list >> $W/own; ls /proc/$$/fd > $W/theirs'";
    let items: Vec<String> =
        (0..20).map(|n| format!("a{n}: {{ command: \"{count}\", stdin: x, onlyif: \"true\" }}")).collect();
    let world = commands(&items.join("\n"));
    // Whoever starts the program may have left something open.
    let wrapper = ["sh", "-c", "exec 7< /dev/null 8< /dev/null; exec \"$@\"", "sh"];
    let outcome = world.ccm(["apply", "site.yaml"]).under(wrapper).run();
    outcome.exits(0).counts([20, 0, 0, 0]);
    let own = world.read("own");
    let counts: Vec<u32> = own.lines().map(|line| line.trim().parse().unwrap()).collect();
    // A pipe may or may not be closed at the moment of counting; one that stays open would add up.
    assert!(counts[15..].iter().min() <= counts[..5].iter().max(), "{own}");
    let theirs = world.read("theirs");
    // The shell itself keeps its standard output at 10 while it redirects it.
    assert!(theirs.lines().all(|fd| ["0", "1", "2", "10"].contains(&fd)), "{theirs}");
}

#[test]
fn a_manifest_can_come_from_a_descriptor() {
    let world = World::new().file("site", "- exec: [{ \"true\": }]\n");
    let script = world.fill("exec 7< $W/site; exec \"$@\"");
    let outcome = world.ccm(["apply", "/dev/fd/7"]).under(["sh", "-c", &script, "sh"]).run();
    outcome.exits(0).counts([1, 0, 0, 0]);
}
