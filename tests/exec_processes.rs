//! Commands as processes: that all of them end when they have to, and that they get and leave nothing they should not.

use std::{fs, thread, time::Duration};

use rustix::process::{Pid, Signal, kill_process};

use crate::{
    exec::{commands, runs},
    exec_refresh::wait_for,
    support::{World, is_root, wait_until, with_time_enough},
};

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
        "\
- exec:
    - a: {{ command: sh $W/script, {more} }}
    - b: {{ command: \"sh -c 'echo x >> $W/ran'\" }}
"
    ));
    let script = world.fill(script);
    world.file("script", script)
}

/// Whether the script has left the number of a process.
fn came_to_its_point(world: &World) -> bool {
    fs::read_to_string(world.path("pids")).is_ok_and(|pids| pids.ends_with('\n'))
}

/// The processes that left their number and still run.
fn running(world: &World) -> Vec<String> {
    let pids = fs::read_to_string(world.path("pids")).expect("the script came to its point");
    pids.lines().filter(|pid| is_running(pid)).map(str::to_owned).collect()
}

fn is_running(pid: &str) -> bool {
    // A process that has ended and is only waited for by nobody is no longer a concern of ours.
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn a_timeout_ends_everything_that_the_command_started() {
    thread::scope(|scope| {
        for (name, script) in STUBBORN {
            scope.spawn(move || {
                with_time_enough(|limit| {
                    let world = stubborn(script, &format!("timeout: {limit}"));
                    let outcome = world.apply();
                    let said = format!("\"sh\" timed out after {limit}");
                    outcome.exits(1).says(&said).says("all its processes were terminated");
                    assert_eq!(runs(&world), 1, "{name}: the run goes on");
                    came_to_its_point(&world).then(|| assert_eq!(running(&world), [""; 0], "{name}"))
                });
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
        with_time_enough(|limit| {
            let world = stubborn(script, &format!("timeout: {limit}"));
            let manifest = fs::read_to_string(world.base().join("site.yaml")).unwrap();
            let look =
                "    - c: { command: \"sh -c 'cat /proc/[0-9]*/comm > $W/left 2> /dev/null; true'\" }\n";
            let world = world.manifest(&(manifest + look));
            let outcome = world.ccm(["apply", "site.yaml"]).under(wrapper).run();
            outcome.exits(1).counts([2, 0, 1, 0]).says("all its processes were terminated");
            let left = world.read("left");
            assert!(left.contains("ccm\n") && !left.contains("sleep"), "{name}: {left}");
            came_to_its_point(&world).then_some(())
        });
    }
}

#[test]
fn a_signal_ends_the_command_and_the_report_is_printed() {
    for signal in [Signal::TERM, Signal::INT] {
        let world = stubborn(STUBBORN[3].1, "tries: 3");
        let child = world.ccm(["apply", "site.yaml"]).start();
        wait_until("the script comes to its point", || came_to_its_point(&world));
        kill_process(Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{printed}");
        assert!(printed.contains("was interrupted by SIG"), "{printed}");
        assert!(printed.contains("1 resource was not attempted"), "{printed}");
        assert!(printed.contains(": 1 failed"), "{printed}");
        assert_eq!(running(&world), [""; 0]);
        assert_eq!(runs(&world), 0);
    }
}

/// A daemon that, once it is told to, starts a worker that has lost its parents and has a session of its own.
const DAEMON: &str = "
    setsid sh -c '
        echo $$ >> $W/pids
        while [ ! -e $W/go ]; do sleep 0.02; done
        (setsid sh -c \"echo \\$\\$ >> $W/pids; exec sleep 1000\" &)
        exec sleep 1000
    ' > /dev/null 2>&1 < /dev/null &
    while [ ! -s $W/pids ]; do sleep 0.02; done
";

/// Ends what a test has left running, and lets the program remove the cgroups that it was in.
fn clean_up(world: &World) {
    for pid in running(world) {
        crate::support::sh(&format!("kill -KILL {pid}"), world.base());
    }
    wait_until("they are dead", || running(world).is_empty());
    world.ccm(["ensure", "exec", "true"]).run().exits(0);
}

#[test]
fn the_timeout_of_a_command_does_not_concern_workers_of_a_daemon_that_an_earlier_one_left() {
    with_time_enough(|limit| {
        let script = "touch $W/go; until [ $(wc -l < $W/pids) = 2 ]; do sleep 0.02; done; touch $W/both; exec sleep 1000";
        let world = commands(&format!(
            "a: {{ command: sh $W/daemon }}\nb: {{ command: \"sh -c '{script}'\", timeout: {limit} }}"
        ));
        let daemon = world.fill(DAEMON);
        let world = world.file("daemon", daemon);
        let outcome = world.apply();
        outcome.exits(1).counts([1, 0, 1, 0]).says(&format!("the command \"sh\" timed out after {limit}"));
        let had_both = world.path("both").exists();
        if had_both {
            assert_eq!(running(&world).len(), 2);
        }
        clean_up(&world);
        had_both.then_some(())
    });
}

/// Twenty processes, each of which starts the next in a new session and ends at once. How fast and how often is limited: the
/// numbers of processes are everybody's.
fn hoppers(pause: &str, hops: u32) -> World {
    let line = "for _ in $(seq 20); do sh $W/hop 0 & done; sleep 1000";
    let world = commands(&format!("a: {{ command: \"{line}\", provider: shell, timeout: 1s }}"));
    let hopper = format!(
        "trap '' TERM HUP\necho x >> $W/marks\nsleep {pause}\n[ $1 -gt {hops} ] || setsid sh $W/hop $(($1 + 1)) &\n"
    );
    let hopper = world.fill(&hopper);
    world.file("hop", hopper)
}

/// Whether one of them hops on. They use so many numbers that those come to mean other processes.
fn is_hopping(world: &World) -> bool {
    let script = world.fill("$W/hop");
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    let mut seen = lines.filter(|line| String::from_utf8_lossy(line).contains(&script));
    // One that was hopping while this looked may have been missed, but not the marks that they all leave.
    let count = || fs::metadata(world.path("marks")).unwrap().len();
    let before = count();
    seen.next().is_some() || count() > before
}

#[test]
fn twenty_processes_that_fork_and_exit_in_a_loop_are_ended() {
    if !is_root() {
        return;
    }
    let world = hoppers("0.05", 1000);
    world.apply().exits(1).says("timed out after 1s").says("all its processes were terminated");
    assert!(!is_hopping(&world));
}

#[test]
fn without_cgroups_nobody_says_that_hoppers_were_ended_who_were_not() {
    if !is_root() {
        return;
    }
    // A read-only cgroup file system, as most containers have.
    let script = "for m in $(awk '$3 == \"cgroup2\" { print $2 }' /proc/mounts); do mount -o remount,bind,ro $m; done; exec \"$@\"";
    let world = hoppers("0.1", 1000);
    let outcome =
        world.ccm(["apply", "site.yaml"]).under(["unshare", "--mount", "sh", "-c", script, "sh"]).run();
    outcome.exits(1).says("timed out after 1s");
    let escaped = is_hopping(&world);
    assert!(!(escaped && outcome.stdout.contains("all its processes were terminated")), "{}", outcome.stdout);
    if escaped {
        outcome.says("could not ");
        crate::support::sh("echo exit > hop.new && mv hop.new hop", &world.path(""));
    }
    wait_until("they have ended", || !is_hopping(&world));
    assert!(world.read("marks").lines().count() < 20 * 1000, "they ended by themselves, which shows nothing");
}

#[test]
fn a_run_ends_the_command_that_a_killed_one_had_in_hand_and_nothing_else() {
    if !is_root() {
        return;
    }
    let world = commands(
        "a: { command: sh $W/daemon }\nb: { command: \"sh -c '(setsid sh -c \\\"echo \\\\$\\\\$ >> $W/hand; exec sleep 1000\\\" &); echo $$ >> $W/hand; sleep 1000; true'\" }",
    );
    let daemon = world.fill(DAEMON);
    let world = world.file("daemon", daemon);
    let mut child = world.ccm(["apply", "site.yaml"]).start();
    wait_until("the command is in hand", || {
        fs::read_to_string(world.path("hand")).is_ok_and(|text| text.lines().count() == 2)
    });
    // On a busy machine it may be there before it is written down that it is.
    wait_until("it is written down", || {
        let hand = world.read("hand");
        let notes = fs::read_dir(world.state().join("commands")).into_iter().flatten().flatten();
        let notes: Vec<String> = notes.filter_map(|note| fs::read_to_string(note.path()).ok()).collect();
        let words = notes.iter().flat_map(|note| note.split(|letter: char| !letter.is_ascii_digit()));
        words.into_iter().any(|word| hand.lines().any(|pid| pid == word))
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let hand = world.path("hand");
    let in_hand = || -> Vec<String> {
        let hand = fs::read_to_string(&hand).unwrap();
        hand.lines().filter(|pid| is_running(pid)).map(str::to_owned).collect()
    };
    assert_eq!(in_hand().len(), 2, "a killed run ends nothing");
    // A dry run changes nothing.
    let world = world.manifest("- exec: [{ look: { command: \"sh -c 'cat $W/hand > $W/then'\" } }]\n");
    world.apply_with(&["--noop"]).exits(0);
    assert_eq!(in_hand().len(), 2);
    let outcome = world.apply();
    outcome.exits(0);
    outcome.complains("ended a command that a run that was killed had left running: ");
    assert_eq!(in_hand(), [""; 0]);
    assert_eq!(running(&world).len(), 1, "the daemon of a command that had ended lives on");
    assert!(fs::read_dir(world.state().join("commands")).unwrap().next().is_none());
    fs::write(world.path("go"), "").unwrap();
    wait_until("the daemon has a worker", || running(&world).len() == 2);
    clean_up(&world);
}

#[test]
fn a_second_interrupt_ends_the_program_and_its_command_at_once() {
    let world = stubborn(
        "trap 'touch $W/asked' TERM; echo $$ >> $W/pids; while true; do sleep 0.1; done",
        "tries: 3",
    );
    let mut child = world.ccm(["apply", "site.yaml"]).start();
    wait_until("the script comes to its point", || came_to_its_point(&world));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    // It has asked the command to end, and waits.
    wait_for(&world, "asked");
    // Two that come in a row count as one, and on a busy machine some time may pass before the first is seen.
    let mut status = None;
    wait_until("a second interrupt ends it", || {
        thread::sleep(Duration::from_millis(100));
        let _ = kill_process(Pid::from_child(&child), Signal::INT);
        status = child.try_wait().unwrap();
        status.is_some()
    });
    let status = status.unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(2), "{status}");
    wait_until("the command is dead", || running(&world).is_empty());
}

#[test]
fn what_a_command_leaves_in_the_background_lives_on_and_nobody_waits_for_it() {
    let world = commands("a: { command: \"sh -c 'sleep 1000 & echo $! > $W/pids'\" }");
    world.apply().exits(0);
    let left = running(&world);
    assert_eq!(left.len(), 1);
    clean_up(&world);
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
        wait_until("what is left ends", || running(&world).is_empty());
        assert_eq!(world.path("after").exists(), lives, "{output:?}");
    }
}

#[test]
fn output_without_end_takes_little_memory() {
    let world = commands(
        "a: { command: \"sh -c 'yes out | head -c 67108864; yes err | head -c 67108864 >&2; exit 1'\", timeout: 1h }\nb: { command: \"sh -c 'cat /proc/$PPID/status > $W/memory'\" }",
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
    let wrapper = ["sh", "-c", "exec 3< /dev/null 7< /dev/null 8< /dev/null; exec \"$@\"", "sh"];
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
