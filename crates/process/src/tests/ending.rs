//! Everything a command started is gone when it has to be.

use std::process::Stdio;

use super::*;
use crate::interrupt::Signal as Request;

/// Nothing in these tests ends within it by itself.
pub(super) const GRACE: Duration = Duration::from_millis(300);

/// Starts one process of every kind that got away from others, each with its pid in a file, and stays itself.
const EVERY_KIND: &str = "
    cd \"$DIR\"
    echo $$ > child.pid
    sh -c 'echo $$ > grandchild.pid; sleep 10000; :' &
    sleep 10000 & echo $! > background.pid
    (trap '' TERM; sh -c 'echo $$ > stubborn.pid; while :; do sleep 10000; done') &
    setsid sh -c 'echo $$ > session.pid; sleep 10000; :' &
    (setsid sh -c '(trap \"\" TERM HUP; echo $$ > /dev/null; sh -c \"echo \\$\\$ > daemon.pid; sleep 10000; :\") \
        > /dev/null 2>&1 < /dev/null &' &)
    while [ $(cat *.pid 2>/dev/null | wc -l) -lt 6 ]; do sleep 0.02; done
    echo ready
    sleep 100
    :
";

/// Runs a command and asks the program to stop as soon as the command says that it is ready.
fn interrupted_when_ready(command: &Command<'_>) -> Stopped {
    interrupted_with(&runner(), command)
}

pub(super) fn interrupted_with(tested: &Tested, command: &Command<'_>) -> Stopped {
    let _turn = crate::signals::turn();
    let interrupt = Interrupt::install().unwrap();
    let mut asked = None;
    let result = command.run_watched(&tested.runner, &interrupt, &mut |_, line| {
        if line == "ready" && asked.is_none() {
            asked = Some(Instant::now());
            crate::signals::send(Request::Terminate.number());
        }
    });
    // With a long grace time, this shows that it was not needed.
    let took = asked.expect("the command was ready").elapsed();
    assert!(took < LONG / 2, "it took {took:?} to end");
    stopped(result)
}

fn assert_all_gone(scratch: &Scratch, expected: usize) {
    let pids = scratch.pids();
    assert_eq!(pids.len(), expected);
    for pid in pids {
        assert!(!is_alive(pid), "{:?} is still there", table::one(pid));
    }
}

#[test]
fn an_interrupt_ends_every_process_the_command_started() {
    let scratch = Scratch::new();
    let command = Command::shell(EVERY_KIND).variable("DIR", &scratch.0).grace(GRACE);
    let stopped = interrupted_when_ready(&command);
    assert_eq!(stopped.cause, Cause::Interrupt(Request::Terminate));
    assert_eq!(stopped.stdout.text(), "ready\n");
    assert_eq!(stopped.remains, Remains::Nothing);
    for pid in scratch.pids() {
        assert!(stopped.running.iter().any(|process| process.pid == pid.as_raw_pid()), "{pid} was not seen");
    }
    assert_all_gone(&scratch, 6);
}

#[test]
fn a_timeout_ends_every_process_the_command_started() {
    // A busy machine may need longer than the first ones to start them all.
    for seconds in [1, 4, 16, 64] {
        let (scratch, timeout) = (Scratch::new(), Duration::from_secs(seconds));
        let command = Command::shell(EVERY_KIND).variable("DIR", &scratch.0).grace(GRACE).timeout(timeout);
        let stopped = stopped(run(&command));
        assert_eq!(stopped.cause, Cause::Timeout(timeout));
        let said = format!("\"/bin/sh\" timed out after {seconds}s; running then: ");
        assert!(stopped.to_string().starts_with(&said), "{stopped}");
        let pids = scratch.pids();
        assert!(!pids.iter().any(|&pid| is_alive(pid)), "{stopped}");
        if pids.len() == 6 {
            return;
        }
    }
    panic!("the command was never ready");
}

#[test]
fn who_ends_when_asked_is_not_killed_and_may_clean_up() {
    let script = "trap 'sh -c \"sleep 0.2; echo cleaned\"; echo bye >&2; exit 0' TERM; echo ready; \
                  while :; do sleep 0.02; done";
    let stopped = interrupted_when_ready(&Command::shell(script).grace(LONG));
    assert_eq!(stopped.stdout.text(), "ready\ncleaned\n");
    assert!(stopped.stderr.text().ends_with("bye\n"), "{}", stopped.stderr.text());
}

#[test]
fn who_writes_much_before_it_ends_is_read_meanwhile() {
    let script = "trap 'head -c 1000000 /dev/zero; echo; echo bye; exit 0' TERM; echo ready; \
                  while :; do sleep 0.02; done";
    let stopped = interrupted_when_ready(&Command::shell(script).grace(LONG));
    assert_eq!(stopped.stdout.text(), "bye\n");
}

#[test]
fn a_stopped_process_is_ended() {
    let stopped = interrupted_when_ready(&Command::shell("echo ready; kill -STOP $$").grace(LONG));
    assert_eq!(stopped.cause, Cause::Interrupt(Request::Terminate));
}

#[test]
fn forking_does_not_outrun_the_end() {
    let scratch = Scratch::new();
    // Each lives for half a second: the numbers of processes are everybody's.
    let mark = format!("0.5000{}", std::process::id());
    // Busy for many seconds, yet harmless should it ever get away.
    let text = "#!/bin/sh\ntrap '' TERM HUP\nfor _ in $(seq 2000); do\n\
                sleep $MARK & sleep $MARK & sleep $MARK & sleep $MARK & sleep 0.01\ndone\nwait\n";
    let script = scratch.file("fork", 0o755, text);
    let command = Command::shell("setsid \"$SCRIPT\" & \"$SCRIPT\" & sleep 0.2; echo ready; wait");
    let command = command.variable("SCRIPT", &script).variable("MARK", &mark).grace(GRACE);
    let stopped = interrupted_when_ready(&command);
    assert_eq!(stopped.remains, Remains::Nothing);
    assert_no_argument(&mark);
    assert_no_argument(&script.display().to_string());
}

#[test]
fn twenty_hoppers_do_not_outrun_the_end() {
    let scratch = Scratch::new();
    // Each one starts the next in a new session and ends at once, so that no parent is ever left.
    let text =
        "#!/bin/sh\ntrap '' TERM HUP\n$PAUSE\n[ $2 -gt $HOPS ] || setsid \"$0\" \"$1\" $(($2 + 1)) &\n";
    let script = scratch.file("hop", 0o755, text);
    let mark = format!("hop-{}", std::process::id());
    let line = "for _ in $(seq 20); do \"$SCRIPT\" \"$MARK\" 0 & done; sleep 0.2; echo ready; sleep 10000";
    let tested = runner();
    // Those that are not ended stop by themselves, soon enough to leave the machine to others.
    let (hops, pause) = if tested.has_cgroups() { ("3000", "sleep 0.02") } else { ("100", ":") };
    let command = Command::shell(line).variable("SCRIPT", script).variable("MARK", &mark);
    let command = command.variable("PAUSE", pause);
    let stopped = interrupted_with(&tested, &command.variable("HOPS", hops).grace(GRACE));
    if stopped.remains != Remains::Nothing && !tested.has_cgroups() {
        // Without a cgroup they may get away, but nobody says that they did not.
        wait_until("the hoppers are at their end", || argument(&mark).is_none());
        return;
    }
    assert_eq!(stopped.remains, Remains::Nothing);
    assert_no_argument(&mark);
}

fn assert_no_argument(mark: &str) {
    assert!(argument(mark).is_none(), "{:?} is still there", argument(mark));
}

/// A process with this text among its arguments.
fn argument(mark: &str) -> Option<table::Record> {
    table::all().unwrap().into_iter().find(|record| {
        let arguments = fs::read(format!("/proc/{}/cmdline", record.pid)).unwrap_or_default();
        String::from_utf8_lossy(&arguments).contains(mark)
    })
}

#[test]
fn what_a_command_started_and_sent_to_another_cgroup_is_ended_too() {
    let Some(other) = leaf(&runner()) else { return };
    let script = "sleep 10000 & echo $! > \"$OTHER/cgroup.procs\"; echo ready; wait";
    let command = Command::shell(script).variable("OTHER", other.path()).grace(GRACE);
    let stopped = interrupted_when_ready(&command);
    assert_eq!(stopped.remains, Remains::Nothing);
    assert_eq!(other.pids(), []);
    other.remove().unwrap();
}

#[test]
fn nothing_is_started_after_an_interrupt() {
    let scratch = Scratch::new();
    let _turn = crate::signals::turn();
    let interrupt = Interrupt::install().unwrap();
    crate::signals::send(Request::Hangup.number());
    wait_until("the signal arrives", || interrupt.requested().is_some());
    let result = Command::new("touch").arguments([scratch.path("file")]).run(&runner().runner, &interrupt);
    assert_eq!(stopped(result).cause, Cause::Interrupt(Request::Hangup));
    assert!(!scratch.path("file").exists());
}

#[test]
fn a_command_that_leaves_nothing_is_not_waited_for() {
    // Other tests run meanwhile, so only the quickest says something.
    wait_until("a command takes less time than is waited for what is left", || {
        let started = Instant::now();
        run(&Command::new("true")).unwrap();
        started.elapsed() < LINGER / 2
    });
}

#[test]
fn the_children_of_others_are_left_alone() {
    let mut living = std::process::Command::new("sleep").arg("10000").stdin(Stdio::null()).spawn().unwrap();
    let mut ended = std::process::Command::new("false").spawn().unwrap();
    wait_until("the other child is dead", || {
        table::one(Pid::from_child(&ended)).is_some_and(|record| !record.alive)
    });
    interrupted_when_ready(&Command::shell("(setsid sleep 10000 &) ; echo ready; sleep 10000").grace(GRACE));
    assert!(living.try_wait().unwrap().is_none());
    living.kill().unwrap();
    living.wait().unwrap();
    assert_eq!(ended.wait().unwrap().code(), Some(1));
}

#[test]
fn a_command_has_no_terminal_that_it_could_wait_for() {
    let output = run_alone("ending::on_a_terminal_alone", |line| {
        let mut command = std::process::Command::new("script");
        command.args(["-q", "-e", "-c", line, "/dev/null"]).stdin(Stdio::null());
        command
    });
    assert_passed(&output);
}

#[test]
#[ignore = "needs a terminal: `a_command_has_no_terminal_that_it_could_wait_for` gives it one"]
fn on_a_terminal_alone() {
    assert!(fs::File::open("/dev/tty").is_ok(), "or this shows nothing");
    let script = "sh -c 'read -r answer < /dev/tty'; echo went on";
    let finished = run(&Command::shell(script).timeout(LONG)).unwrap();
    assert_eq!(finished.stdout.text(), "went on\n");
    assert!(finished.stderr.text().contains("/dev/tty"), "{}", finished.stderr.text());
}

#[test]
fn all_of_this_holds_without_cgroups_too() {
    if std::env::var_os(WITHOUT_CGROUPS).is_some() {
        return;
    }
    let program = std::env::current_exe().unwrap();
    let mut command = std::process::Command::new(program);
    command.args(["tests::ending", "tests::leaving", "--test-threads=1"]).env(WITHOUT_CGROUPS, "1");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("twenty_hoppers"), "{text}");
}
