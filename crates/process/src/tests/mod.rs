//! The runner against real programs.

mod ending;
mod leaving;
mod starting;
mod streams;
mod viewing;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output as RawOutput;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{cgroup::Leaf, *};
use crate::skip::skip;

/// Longer than anything takes on a busy machine.
const LONG: Duration = Duration::from_mins(10);

/// What has not happened by then never will.
const PATIENCE: Duration = Duration::from_mins(3);

/// A directory that everybody may enter, removed in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("ccm-process-{}-{count}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn file(&self, name: &str, mode: u32, content: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let draft = path.with_extension("draft");
        fs::write(&draft, content).unwrap();
        fs::set_permissions(&draft, fs::Permissions::from_mode(mode)).unwrap();
        // A program that is open for writing cannot be run, and a child that another test is just starting may still hold
        // the descriptor that wrote it: the copy is made by somebody else.
        let copied = std::process::Command::new("cp").arg("-p").args([&draft, &path]).status();
        assert!(copied.unwrap().success());
        fs::remove_file(draft).unwrap();
        path
    }

    /// The pids that a script wrote into files here.
    fn pids(&self) -> Vec<Pid> {
        let files = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path());
        let pids = files.filter(|path| path.extension().is_some_and(|end| end == "pid"));
        pids.map(|path| pid_in(&path)).collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn pid_in(path: &Path) -> Pid {
    Pid::from_raw(fs::read_to_string(path).unwrap().trim().parse().unwrap()).unwrap()
}

/// Whether it runs. One that has ended and waits for its parent to notice does not.
fn is_alive(pid: Pid) -> bool {
    table::one(pid).is_some_and(|record| record.alive)
}

/// Set where these tests run once more, one by one, as if the machine had no cgroups.
const WITHOUT_CGROUPS: &str = "CCM_TEST_WITHOUT_CGROUPS";

/// What the tests run their commands with. Where there are no cgroups, orphans of any test come to this process: then
/// only one test at a time may run commands.
struct Tested {
    runner: Runner,
    alone: Option<MutexGuard<'static, ()>>,
}

fn runner() -> Tested {
    static TURN: Mutex<()> = Mutex::new(());
    static HAS_CGROUPS: LazyLock<bool> = LazyLock::new(|| {
        let leaf = Runner::default().leaf();
        leaf.is_some_and(|leaf| leaf.remove().is_ok()) && std::env::var_os(WITHOUT_CGROUPS).is_none()
    });
    if *HAS_CGROUPS {
        return Tested { runner: Runner::default(), alone: None };
    }
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    Tested { runner: Runner::without_cgroups(), alone: Some(turn) }
}

impl Tested {
    fn has_cgroups(&self) -> bool {
        self.alone.is_none()
    }

    fn run(&self, command: &Command<'_>) -> Result<Finished, ProcessError> {
        command.run(&self.runner, &Interrupt::never().unwrap())
    }
}

fn run(command: &Command<'_>) -> Result<Finished, ProcessError> {
    runner().run(command)
}

/// A cgroup for a command. Without cgroups there is nothing to try, which is a reason to tell unless it was asked for.
fn leaf(tested: &Tested) -> Option<Leaf> {
    let leaf = tested.runner.leaf();
    if leaf.is_none() && tested.has_cgroups() {
        skip("needs cgroups that can be written to");
    }
    leaf
}

/// What a command that goes well prints.
fn output_of(command: &Command<'_>) -> String {
    let finished = run(command).unwrap();
    assert_eq!(finished.exit, Exit::Code(0), "{}", finished.stderr.text());
    finished.stdout.text().trim_end().to_owned()
}

fn stopped(result: Result<Finished, ProcessError>) -> Stopped {
    match result {
        Err(ProcessError::Stopped(stopped)) => *stopped,
        other => panic!("not stopped: {other:?}"),
    }
}

pub(super) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Runs one ignored test of this module in a process of its own, through `wrapper` if there is one.
fn run_alone(test: &str, wrapper: impl FnOnce(&str) -> std::process::Command) -> RawOutput {
    let program = std::env::current_exe().unwrap();
    let line = format!("{} --exact tests::{test} --ignored --nocapture", program.display());
    wrapper(&line).output().unwrap()
}

fn assert_passed(output: &RawOutput) {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("1 passed"), "{text}{}", String::from_utf8_lossy(&output.stderr));
}

fn in_shell(line: &str) -> std::process::Command {
    let mut command = std::process::Command::new("/bin/sh");
    command.args(["-c", line]);
    command
}
