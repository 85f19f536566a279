//! What a command leaves running lives on, is not taken for a later command, and holds nobody up.

use std::io::{Read, Write};

use rustix::process::{Signal, kill_process};

use super::ending::{GRACE, interrupted_with};
use super::*;
use crate::interrupt;

/// Leaves a daemon that holds the output, and one that does not, both with their pids in files.
const TWO_DAEMONS: &str = "
    cd \"$DIR\"
    sleep 10000 & echo $! > holder.pid
    setsid sh -c 'echo $$ > daemon.pid; exec sleep 10000' > /dev/null 2>&1 < /dev/null &
    while [ ! -s daemon.pid ]; do sleep 0.02; done
    echo done
";

/// Kills what a test has left running, and removes the cgroups that it was in.
fn clean_up(tested: &Tested, pids: &[Pid]) {
    for &pid in pids {
        let _ = kill_process(pid, Signal::KILL);
    }
    wait_until("the killed processes are dead", || !pids.iter().any(|&pid| is_alive(pid)));
    if let Some(leaf) = tested.runner.leaf() {
        leaf.remove().unwrap();
        cgroup::sweep(leaf.path().parent().unwrap());
    }
}

#[test]
fn what_a_command_leaves_running_lives_on_and_holds_nobody_up() {
    let (scratch, tested) = (Scratch::new(), runner());
    let command = Command::shell(TWO_DAEMONS).variable("DIR", &scratch.0).timeout(LONG);
    let finished = tested.run(&command).unwrap();
    assert_eq!((finished.exit, &*finished.stdout.text()), (Exit::Code(0), "done\n"));
    // Neither does the end of a later command concern them, of which it is known that all of it has ended.
    let stopped = interrupted_with(&tested, &Command::shell("echo ready; sleep 10000").grace(GRACE));
    assert_eq!(stopped.remains, Remains::Nothing);
    let pids = scratch.pids();
    assert_eq!(pids.len(), 2);
    assert!(pids.iter().all(|&pid| is_alive(pid)));
    clean_up(&tested, &pids);
    if !tested.has_cgroups() {
        // They were adopted, and the next command collects them.
        tested.run(&Command::new("true")).unwrap();
        assert!(pids.iter().all(|&pid| table::one(pid).is_none()));
    }
}

/// Leaves a daemon that, once it is told to, starts a worker that has lost its parents and has a session of its own.
const DAEMON_WITH_WORKER: &str = "
    cd \"$DIR\"
    setsid sh -c '
        echo $$ > daemon.pid
        while [ ! -e go ]; do sleep 0.02; done
        (setsid sh -c \"echo \\$\\$ > worker.pid; exec sleep 10000\" &)
        exec sleep 100
    ' > /dev/null 2>&1 < /dev/null &
    while [ ! -s daemon.pid ]; do sleep 0.02; done
";

#[test]
fn a_worker_that_an_earlier_daemon_starts_while_a_command_runs_is_not_the_commands() {
    let (scratch, tested) = (Scratch::new(), runner());
    tested.run(&Command::shell(DAEMON_WITH_WORKER).variable("DIR", &scratch.0)).unwrap();
    let script =
        "cd \"$DIR\"; touch go; while [ ! -s worker.pid ]; do sleep 0.02; done; echo ready; sleep 10000";
    let command = Command::shell(script).variable("DIR", &scratch.0).grace(GRACE);
    let stopped = interrupted_with(&tested, &command);
    let pids = scratch.pids();
    assert_eq!(pids.len(), 2);
    assert!(pids.iter().all(|&pid| is_alive(pid)), "{stopped}");
    let remains = if tested.has_cgroups() { Remains::Nothing } else { Remains::Unknown };
    assert_eq!(stopped.remains, remains);
    clean_up(&tested, &pids);
}

#[test]
fn what_is_written_right_after_the_end_of_a_command_is_still_read() {
    // The background job waits until the command is dead, and then writes. On a busy machine it is seldom quick enough.
    let script =
        "(while ! grep -q '^[0-9]* (sh) Z' /proc/$$/stat 2> /dev/null; do :; done; echo late) & exit 0";
    let tested = runner();
    wait_until("what was written late is read", || {
        tested.run(&Command::shell(script)).unwrap().stdout.text() == "late\n"
    });
}

/// Writes one line at a time, each when the one before was seen, until it is told to end.
const STEP_BY_STEP: &str = "
    trap 'echo asked' TERM
    n=0
    while [ ! -e \"$DIR/end\" ]; do
        echo step
        until [ -e \"$DIR/$n\" ]; do sleep 0.01; done
        n=$((n + 1))
    done
    echo done
";

/// Runs a command that must not be cut short, and lets it end when the runner has had a reason to for a whole step.
fn overdue(interrupt: &Interrupt, limit: Option<Duration>, mut is_due: impl FnMut() -> bool) -> Finished {
    let scratch = Scratch::new();
    let mut command = Command::shell(STEP_BY_STEP).variable("DIR", &scratch.0).uninterrupted();
    command.timeout = limit;
    let (mut steps, mut due) = (0, 0);
    let finished = command.run_watched(&runner().runner, interrupt, &mut |_, line| {
        due += u32::from(is_due());
        if line == "step" && due > 1 {
            fs::write(scratch.path("end"), "").unwrap();
        }
        fs::write(scratch.path(&steps.to_string()), "").unwrap();
        steps += 1;
    });
    let finished = finished.unwrap();
    assert_eq!(finished.exit, Exit::Code(0));
    assert!(finished.stdout.text().ends_with("step\ndone\n"), "{}", finished.stdout.text());
    assert!(!finished.stdout.text().contains("asked"), "{}", finished.stdout.text());
    finished
}

#[test]
fn a_command_that_must_not_be_cut_short_ends_by_itself() {
    let limit = Duration::from_millis(20);
    let mut begun = None;
    let never = Interrupt::never().unwrap();
    let finished = overdue(&never, Some(limit), || begun.get_or_insert_with(Instant::now).elapsed() > limit);
    assert_eq!(finished.overdue, Some(Cause::Timeout(limit)));

    let _turn = crate::signals::turn();
    let interrupt = Interrupt::install().unwrap();
    let mut sent = false;
    let finished = overdue(&interrupt, None, || {
        if !std::mem::replace(&mut sent, true) {
            crate::signals::send(interrupt::Signal::Terminate.number());
        }
        interrupt.requested().is_some()
    });
    assert_eq!(finished.overdue, Some(Cause::Interrupt(interrupt::Signal::Terminate)));
}

/// Writes down what it is told.
#[derive(Default, Clone)]
struct Notes(std::sync::Arc<Mutex<Vec<(&'static str, PathBuf)>>>);

impl Notes {
    fn add(&self, what: &'static str, cgroup: &Path) {
        self.0.lock().unwrap().push((what, cgroup.to_owned()));
    }
}

impl Journal for Notes {
    fn begun(&self, cgroup: &Path, _: NextRun) {
        self.add("begun", cgroup);
    }

    fn started(&self, cgroup: &Path, _: Head, _: NextRun) {
        self.add("started", cgroup);
    }

    fn ended(&self, cgroup: &Path) {
        self.add("ended", cgroup);
    }
}

#[test]
fn a_command_is_in_hand_from_before_its_start_until_its_end() {
    let (tested, notes) = (runner(), Notes::default());
    if !tested.has_cgroups() {
        return;
    }
    tested.runner.record_in(notes.clone());
    tested.run(&Command::shell("exit 0")).unwrap();
    tested.run(&Command::new("no-such-program")).unwrap_err();
    tested.run(&Command::shell("exit 0").uninterrupted()).unwrap();
    let said: Vec<&str> = notes.0.lock().unwrap().iter().map(|(what, _)| *what).collect();
    assert_eq!(said, ["begun", "started", "ended", "begun", "ended", "ended"]);
    assert!(notes.0.lock().unwrap().iter().all(|(_, cgroup)| !cgroup.exists()));
}

#[test]
fn only_what_runs_since_its_start_was_written_down_is_ended_by_a_later_run() {
    let tested = runner();
    let Some(leaf) = leaf(&tested) else { return };
    let never = Interrupt::never().unwrap();
    let command = Command::shell("sleep 10000 & sleep 10000");
    let started = launch::launch(&command, Some(&leaf)).unwrap().unwrap();
    let record = table::one(started.head).unwrap();
    let abandoned = |head| Abandoned { cgroup: leaf.path().to_owned(), head, next_run: NextRun::Terminates };
    // The number of a command that has ended may be another process by now, which may even be in its cgroup.
    let other = Head { pid: record.pid.as_raw_pid(), started: record.started + 1 };
    assert_eq!(end_abandoned(&abandoned(Some(other)), &never, &mut |_| ()), Recovered::Finished);
    assert!(is_alive(started.head));
    let head = Head { pid: record.pid.as_raw_pid(), started: record.started };
    let ended = end_abandoned(&abandoned(Some(head)), &never, &mut |_| ());
    let Recovered::Ended(processes) = &ended else { panic!("{ended:?}") };
    assert!(processes.iter().any(|process| process.pid == head.pid), "{processes:?}");
    assert!(!is_alive(started.head) && !leaf.path().exists());
    let _ = waitpid(Some(started.head), WaitOptions::empty());
    assert_eq!(end_abandoned(&abandoned(None), &never, &mut |_| ()), Recovered::Finished);
}

/// Starts a command that does not end when it is asked to, as if its run had been killed, and ends it.
fn end_stubborn(leaf: &Leaf, grace: Duration, interrupt: &Interrupt) {
    // So many that it takes them a moment to be gone.
    let script = "trap '' TERM; for _ in $(seq 100); do sleep 10000 & done; echo ready; wait";
    let command = Command::shell(script);
    let mut started = launch::launch(&command, Some(leaf)).unwrap().unwrap();
    started.child.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
    let abandoned = Abandoned { cgroup: leaf.path().to_owned(), head: None, next_run: NextRun::Terminates };
    let ended = recovery::end_within(&abandoned, grace, LONG, interrupt);
    let is_gone = !leaf.path().exists();
    let _ = leaf.kill();
    let _ = waitpid(Some(started.head), WaitOptions::empty());
    assert!(is_gone, "{ended:?}");
    let Recovered::Ended(processes) = &ended else { panic!("{ended:?}") };
    assert_eq!(processes.len(), 101, "{processes:?}");
}

#[test]
fn who_does_not_end_when_a_later_run_asks_is_killed() {
    let tested = runner();
    let Some(patient) = leaf(&tested) else { return };
    end_stubborn(&patient, Duration::ZERO, &Interrupt::never().unwrap());
    // A run that is asked to stop does not wait for them to end by themselves, but does see them end.
    let Some(hurried) = leaf(&tested) else { return };
    let _turn = crate::signals::turn();
    let interrupt = Interrupt::install().unwrap();
    crate::signals::send(interrupt::Signal::Terminate.number());
    wait_until("the signal arrives", || interrupt.requested().is_some());
    end_stubborn(&hurried, LONG, &interrupt);
}

#[test]
fn a_command_of_which_nobody_knows_that_it_has_ended_is_left_to_the_run_after() {
    let (running, unreadable) = (Scratch::new(), Scratch::new());
    running.file("cgroup.events", 0o644, "populated 1\nfrozen 0\n");
    fs::create_dir(unreadable.path("cgroup.events")).unwrap();
    let never = Interrupt::never().unwrap();
    for scratch in [running, unreadable] {
        let abandoned = Abandoned { cgroup: scratch.0.clone(), head: None, next_run: NextRun::Terminates };
        let recovered = recovery::end_within(&abandoned, Duration::ZERO, Duration::ZERO, &never);
        assert_eq!(recovered, Recovered::Surviving(Vec::new()));
        assert_eq!(fs::read_to_string(scratch.path("cgroup.kill")).unwrap(), "1");
    }
}

#[test]
fn a_kernel_that_lets_no_command_into_cgroups_is_asked_thrice_and_never_again() {
    let Some(leaf) = leaf(&runner()) else { return };
    // Below a cgroup for threads there can be none for processes.
    let threads = leaf.path().join("threads");
    fs::create_dir(&threads).unwrap();
    fs::write(threads.join("cgroup.type"), "threaded").unwrap();
    let output = run_alone("leaving::refused_cgroups_alone", |line| {
        in_shell(&format!("echo $$ > {}/cgroup.procs && exec {line}", threads.display()))
    });
    assert_passed(&output);
    leaf.remove().unwrap();
}

#[test]
#[ignore = "needs a cgroup that lets nobody in: `a_kernel_that_lets_no_command_into_cgroups_is_asked_thrice_and_never_again` \
            gives it one"]
fn refused_cgroups_alone() {
    let (tested, notes) = (Tested { runner: Runner::default(), alone: None }, Notes::default());
    tested.runner.record_in(notes.clone());
    for _ in 0..2 {
        assert_eq!(tested.run(&Command::shell("echo ran")).unwrap().stdout.text(), "ran\n");
        let said: Vec<&str> = notes.0.lock().unwrap().iter().map(|(what, _)| *what).collect();
        assert_eq!(said, ["begun", "ended"].repeat(3));
    }
}

#[test]
fn a_number_that_means_another_process_by_now_is_not_signalled() {
    let piped = std::process::Stdio::piped;
    let mut child = std::process::Command::new("cat").stdin(piped()).stdout(piped()).spawn().unwrap();
    let record = table::one(Pid::from_child(&child)).unwrap();
    let earlier = table::Record { started: record.started - 1, ..record.clone() };
    process_tree::signal_one(&earlier, Signal::KILL).unwrap();
    // What a killed one was to do, nobody does.
    child.stdin.as_mut().unwrap().write_all(b"lives\n").unwrap();
    let mut line = [0; 6];
    child.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
    assert_eq!(&line, b"lives\n");
    process_tree::signal_one(&record, Signal::KILL).unwrap();
    child.wait().unwrap();
}
