//! An agent that runs while a test looks on.

use std::{
    io::{BufRead, BufReader},
    process::Child,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Instant,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{PATIENCE, World, pause, world::Call};

/// A running agent; killed when the test is over.
pub(crate) struct Agent<'w> {
    world: &'w World,
    child: Child,
    log: Arc<Mutex<String>>,
}

impl<'w> Agent<'w> {
    /// Starts an agent with the configuration in `agent.yaml`.
    pub(crate) fn start(world: &'w World) -> Self {
        Self::start_with(world, &[])
    }

    pub(crate) fn start_with(world: &'w World, environment: &[(&str, &str)]) -> Self {
        let mut call = world.ccm(["agent", "--config", "agent.yaml"]);
        for (name, value) in environment {
            call = call.env(name, *value);
        }
        Self::of(world, &call)
    }

    /// Starts an agent by way of another program.
    pub(crate) fn start_under(world: &'w World, wrapper: &[&str]) -> Self {
        Self::of(world, &world.ccm(["agent", "--config", "agent.yaml"]).under(wrapper.iter().copied()))
    }

    fn of(world: &'w World, call: &Call) -> Self {
        let mut child = call.start();
        let stderr = child.stderr.take().expect("a pipe");
        let log = Arc::new(Mutex::new(String::new()));
        let kept = Arc::clone(&log);
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut log = kept.lock().unwrap_or_else(PoisonError::into_inner);
                log.push_str(&line);
                log.push('\n');
            }
        });
        Self { world, child, log }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How often its threads were woken.
    pub(crate) fn switches(&self) -> u64 {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap();
        let count = |task: std::fs::DirEntry| {
            let status = std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
            let line =
                status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).map(str::trim);
            line.and_then(|count| count.parse::<u64>().ok()).unwrap_or_default()
        };
        tasks.flatten().map(count).sum()
    }

    /// Everything that was logged so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many lines of the log hold this text.
    pub(crate) fn count(&self, text: &str) -> usize {
        self.log().lines().filter(|line| line.contains(text)).count()
    }

    /// Waits until something is so.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let begun = Instant::now();
        while !holds() {
            // Inotify instances are counted for the whole machine: fs.inotify.max_user_instances.
            assert!(!self.log().contains("nothing is watched"), "no agent can watch here\n{}", self.log());
            assert!(begun.elapsed() < PATIENCE, "{what} does not come\n{}", self.log());
            pause(begun);
        }
    }

    /// Waits until the log holds a text so many times.
    #[track_caller]
    pub(crate) fn says(&self, text: &str, times: usize) {
        self.until(text, || self.count(text) >= times);
    }

    /// Waits until a file in the managed part holds this.
    #[track_caller]
    pub(crate) fn makes(&self, name: &str, content: &str) {
        let path = self.world.path(name);
        self.until(&format!("{name}: {content:?}"), || {
            std::fs::read_to_string(&path).is_ok_and(|found| found == content)
        });
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process");
        kill_process(pid, signal).expect("a running agent");
    }

    /// Stops it as `kill -STOP` does, and waits until all of its threads stand still.
    #[track_caller]
    pub(crate) fn stop(&self) {
        self.signal(Signal::STOP);
        self.until("standing still", || {
            let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap();
            tasks.flatten().all(|task| {
                let status = std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
                status.lines().any(|line| line.starts_with("State:\tT"))
            })
        });
    }

    /// What `ccm agent status --json` prints.
    pub(crate) fn status(&self) -> Value {
        self.world.ccm(["agent", "status", "--json"]).run().exits(0).json()
    }

    /// Waits until its status holds this at a JSON pointer: of what a run does it tells at the end of the run.
    #[track_caller]
    pub(crate) fn tells(&self, pointer: &str, expected: impl Into<Value>) {
        let expected = expected.into();
        self.until(&format!("{pointer} = {expected}"), || self.status().pointer(pointer) == Some(&expected));
    }

    /// Waits until it has crashed.
    #[track_caller]
    pub(crate) fn dies(mut self) {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                assert_eq!(status.code(), None, "a crash is no exit\n{}", self.log());
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "the agent does not crash\n{}", self.log());
            pause(begun);
        }
    }

    /// Asks it to end, and gives its exit code and what it logged.
    #[track_caller]
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        self.signal(Signal::TERM);
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return (status.code(), self.log());
            }
            assert!(begun.elapsed() < PATIENCE, "it does not end\n{}", self.log());
            pause(begun);
        }
    }
}

impl Drop for Agent<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
