//! The system calls of a run, by `strace`.

use std::{collections::HashMap, fmt, fs, path::Path};

use rustix::process::{Pid, Signal, kill_process};

use super::{Outcome, World, finish, has, wait_until};

/// Whether system calls can be traced here.
pub(crate) fn fits_strace() -> bool {
    has("strace")
}

/// One system call in the words of strace.
#[derive(Clone)]
pub(crate) struct Syscall {
    pub(crate) text: String,
    /// Its number among the calls of its name, by which strace can be told of it.
    number: usize,
}

/// Calls that change something. `openat` is among them when it may create; a write to a terminal or pipe is not.
const CHANGING: &[&str] = &[
    "mkdir",
    "rename",
    "unlink",
    "rmdir",
    "link",
    "symlink",
    "mknod",
    "chown",
    "fchown",
    "lchown",
    "chmod",
    "fchmod",
    "truncate",
    "ftruncate",
    "setxattr",
    "fsetxattr",
    "lsetxattr",
    "removexattr",
    "fremovexattr",
    "lremovexattr",
    "utime",
    "creat",
    "fallocate",
    "copy_file_range",
    "sendfile",
    "mount",
    "umount",
    "ioctl(FICLONE",
    "write",
    "pwrite",
];

impl Syscall {
    pub(crate) fn name(&self) -> &str {
        self.text.split('(').next().unwrap_or_default()
    }

    /// Whether the kernel did as it was asked.
    pub(crate) fn succeeded(&self) -> bool {
        !self.text.contains(" = -1 ")
    }

    /// Whether it changes a file system, and not only what is printed.
    pub(crate) fn changes_files(&self) -> bool {
        let name = self.name();
        if name.starts_with("open") || name == "creat" {
            return ["O_CREAT", "O_TRUNC", "__O_TMPFILE", "O_TMPFILE"]
                .iter()
                .any(|flag| self.text.contains(flag));
        }
        let is_pipe = || {
            ["<pipe:", "<UNIX", "<socket:", "<anon_inode:", "</dev/null"]
                .iter()
                .any(|kind| self.text.contains(kind))
        };
        CHANGING.iter().any(|prefix| name.starts_with(prefix)) && !is_pipe()
    }

    /// Whether it brings something to disk.
    pub(crate) fn syncs(&self) -> bool {
        matches!(self.name(), "fsync" | "fdatasync" | "syncfs")
    }

    /// Whether it names something below a folder.
    pub(crate) fn is_below(&self, folder: &Path) -> bool {
        self.text.contains(&*folder.to_string_lossy())
    }
}

/// Applies the world's manifest, and when it comes to this call `what` happens instead: `signal=KILL`, `error=EIO`.
#[track_caller]
pub(crate) fn tampered(world: &World, call: &Syscall, what: &str) -> Outcome {
    tampered_command(world, &["apply", "site.yaml"], call, what)
}

/// Runs the program, and when it comes to this call `what` happens instead. The umask takes nothing away, so that what is
/// left half-done shows the modes that the program itself asked for.
#[track_caller]
pub(crate) fn tampered_command(world: &World, arguments: &[&str], call: &Syscall, what: &str) -> Outcome {
    let strace = injection(call.name(), what, call.number, &world.base().join("trace"));
    let shell = ["/bin/sh", "-c", "umask 0; exec \"$@\"", "sh"].map(str::to_owned);
    world.ccm(arguments).under(shell.into_iter().chain(strace)).run()
}

/// The command line of a strace that has something happen at a call. Nothing else is written down: that costs more than the
/// call. (With `--seccomp-bpf` other calls would cost nothing at all, but signals are not delivered.)
pub(crate) fn injection(call: &str, what: &str, number: usize, log: &Path) -> [String; 9] {
    let [trace, inject] = [format!("trace={call}"), format!("inject={call}:{what}:when={number}")];
    let log = &*log.to_string_lossy();
    ["strace", "-f", "-qq", "-e", &trace, "-e", &inject, "-o", log].map(str::to_owned)
}

/// Applies the world's manifest, stops the program at this call, does something meanwhile, and lets it go on.
#[track_caller]
pub(crate) fn paused(world: &World, call: &Syscall, meanwhile: impl FnOnce()) -> Outcome {
    let log = world.base().join("trace");
    let strace = injection(call.name(), "signal=STOP", call.number, &log);
    let child = world.ccm(["apply", "site.yaml"]).under(strace).start();
    // It is traced, so only strace can tell that it is stopped.
    let mut stopped = None;
    wait_until("the program stops", || {
        let text = fs::read_to_string(&log).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_suffix(" --- stopped by SIGSTOP ---"));
        stopped = line.and_then(|pid| pid.trim().parse().ok()).and_then(Pid::from_raw);
        stopped.is_some()
    });
    meanwhile();
    kill_process(stopped.expect("a process"), Signal::CONT).expect("it is there");
    finish(child, "ccm apply".to_owned())
}

impl fmt::Debug for Syscall {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} (number {})", self.text, self.number)
    }
}

/// The system calls of a run in their order.
pub(crate) struct Trace {
    pub(crate) outcome: Outcome,
    pub(crate) calls: Vec<Syscall>,
}

impl Trace {
    /// Applies the world's manifest and takes down every call.
    #[track_caller]
    pub(crate) fn of(world: &World, flags: &[&str]) -> Self {
        Self::of_command(world, &[&["apply", "site.yaml"], flags].concat())
    }

    /// Runs the program and takes down every call.
    #[track_caller]
    pub(crate) fn of_command(world: &World, arguments: &[&str]) -> Self {
        let file = world.base().join("trace");
        let strace = ["strace", "-f", "-qq", "-y", "-s", "0", "-e", "signal=none", "-o"];
        let wrapper = strace.into_iter().map(str::to_owned).chain([file.display().to_string()]);
        let outcome = world.ccm(arguments).under(wrapper).run();
        let text = fs::read_to_string(&file).expect("a trace");
        // strace counts the calls of each thread on its own.
        let mut seen: HashMap<(&str, String), usize> = HashMap::new();
        let mut calls: Vec<Syscall> = Vec::new();
        let mut unfinished: HashMap<&str, usize> = HashMap::new();
        // Each line begins with the number of the process.
        for (process, text) in text.lines().filter_map(|line| line.split_once(' ')) {
            let text = text.trim_start();
            // A call during which another process was heard of is told in two lines.
            if let Some((_, rest)) = text.split_once(" resumed>").filter(|_| text.starts_with("<... ")) {
                if let Some(begun) = unfinished.remove(process) {
                    calls[begun].text.push_str(rest);
                }
                continue;
            }
            let whole = text.strip_suffix("<unfinished ...>");
            if whole.is_some() {
                unfinished.insert(process, calls.len());
            }
            let mut call = Syscall { text: whole.unwrap_or(text).trim_end().to_owned(), number: 0 };
            let count = seen.entry((process, call.name().to_owned())).or_default();
            *count += 1;
            call.number = *count;
            calls.push(call);
        }
        Self { outcome, calls }
    }

    /// The calls that changed a file system outside the state directory.
    pub(crate) fn changes(&self, world: &World) -> Vec<&Syscall> {
        let state = world.state();
        self.calls
            .iter()
            .filter(|call| call.succeeded() && call.changes_files() && !call.is_below(&state))
            .collect()
    }
}
