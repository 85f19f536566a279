//! Starting a program: with the right file, directory, user and nothing else of ours.
//!
//! Every command leads a session of its own. So it has no terminal that it could wait for or be stopped by. The session
//! has to be made between fork and exec: the quicker `posix_spawn` could do that too, but the standard library does not
//! offer it yet. With the megabyte or two that a run needs, a fork costs a third of a millisecond more; with ten
//! thousand files in memory it is twice that.
//!
//! Where it gets a cgroup it has to be in it from its first instant on. Moving a process there makes the kernel wait for
//! all processors, which takes 5 to 20 ms; being cloned into it takes none of that. So the process that the standard
//! library forked clones itself once more, into the cgroup and as a child of ours, says which number it got, and is gone.
//!
//! The standard library cannot set a umask or supplementary groups. On Linux both belong to the calling thread and are
//! passed on to the children of that thread, so a command that asks for them is started from a thread of its own, which
//! changes itself and ends right after. No other thread ever sees the change, and no second program has to stand in
//! between.

use std::ffi::{CString, c_long};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::panic;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Gid, Pid, Uid, WaitOptions, chdir, geteuid, setsid, waitpid};
use rustix::thread as own_thread;

use super::cgroup::Leaf;
use super::error::ProcessError;
use super::{Command, Identity, Prospect, core_dumps, program, view};

/// A command that was started.
pub(super) struct Started {
    /// Has the streams. Its process is the command only where there is no cgroup.
    pub(super) child: Child,
    /// The command, which leads a session.
    pub(super) head: Pid,
}

/// Starts the program of `command` in the cgroup `leaf`, if there is one. Starts nothing where the kernel does not allow
/// that, and returns `None`.
pub(super) fn launch(command: &Command<'_>, leaf: Option<&Leaf>) -> Result<Option<Started>, ProcessError> {
    prepared(command, locate, |program| spawn(command, &program?, leaf))
}

/// What the command would find if it were started now.
pub(super) fn prospect(command: &Command<'_>) -> Result<Prospect, ProcessError> {
    let look = |command: &Command<'_>| Prospect {
        directory: check_directory(command).map(|()| command.directory.clone()),
        program: find_program(command),
    };
    prepared(command, look, Ok)
}

/// Looks at the machine through the eyes of who the command runs as, and then goes on as who may start it.
fn prepared<L: Send, T: Send>(
    command: &Command<'_>,
    look: impl FnOnce(&Command<'_>) -> L + Send,
    then: impl FnOnce(L) -> Result<T, ProcessError> + Send,
) -> Result<T, ProcessError> {
    if command.identity.is_none() && command.umask.is_none() && command.view.is_none() {
        return then(look(command));
    }
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("launch".to_owned())
            .spawn_scoped(scope, || from_changed_thread(command, look, then))
            .map_err(|source| start_error(command, source))?;
        thread.join().unwrap_or_else(|panic| panic::resume_unwind(panic))
    })
}

fn from_changed_thread<L, T>(
    command: &Command<'_>,
    look: impl FnOnce(&Command<'_>) -> L,
    then: impl FnOnce(L) -> Result<T, ProcessError>,
) -> Result<T, ProcessError> {
    if let Some(mask) = command.umask {
        set_thread_umask(mask).map_err(|source| start_error(command, source))?;
    }
    if let Some(view) = &command.view {
        view::enter(view).map_err(|source| ProcessError::View { program: command.name(), source })?;
    }
    let Some(identity) = &command.identity else {
        return then(look(command));
    };
    let refused = |errno: Errno| identity_error(command, identity, errno.into());
    take_groups(identity).map_err(refused)?;
    // The directory and the file are looked at through the eyes of that user. Only the effective id changes: with the
    // real or saved one, that user could send signals to this thread, and so end the whole program.
    let own = geteuid();
    own_thread::set_thread_res_uid(None::<Uid>, Uid::from_raw(identity.uid), None::<Uid>).map_err(refused)?;
    let seen = look(command);
    own_thread::set_thread_res_uid(None::<Uid>, own, None::<Uid>).map_err(refused)?;
    then(seen)
}

fn set_thread_umask(mask: u32) -> io::Result<()> {
    #[expect(
        deprecated,
        reason = "unsound only with `FILES`; the function that replaces it is unsafe for all flags"
    )]
    own_thread::unshare(own_thread::UnshareFlags::FS)?;
    rustix::process::umask(Mode::from_raw_mode(mask));
    Ok(())
}

fn take_groups(identity: &Identity) -> Result<(), Errno> {
    let groups: Vec<Gid> = identity.groups.iter().copied().map(Gid::from_raw).collect();
    own_thread::set_thread_groups(&groups)?;
    let gid = Gid::from_raw(identity.gid);
    own_thread::set_thread_res_gid(gid, gid, gid)
}

/// The file to execute, once the directory is known to be good.
fn locate(command: &Command<'_>) -> Result<PathBuf, ProcessError> {
    check_directory(command)?;
    find_program(command)
}

fn check_directory(command: &Command<'_>) -> Result<(), ProcessError> {
    program::check_directory(&command.directory).map_err(|source| ProcessError::Directory {
        program: command.name(),
        directory: command.directory.clone(),
        source,
    })
}

fn find_program(command: &Command<'_>) -> Result<PathBuf, ProcessError> {
    let directories = match command.given_search_path() {
        Some(path) => program::given_directories(path)?,
        None => program::inherited_directories(),
    };
    let program = program::find(&command.program, &command.directory, &directories)?;
    program::check_format(&program)?;
    Ok(program)
}

fn spawn(
    command: &Command<'_>,
    program: &Path,
    leaf: Option<&Leaf>,
) -> Result<Option<Started>, ProcessError> {
    let failed = |source| start_error(command, source);
    let mut spawning = std::process::Command::new(program);
    spawning
        .arg0(&command.program)
        .args(&command.arguments)
        .stdin(if command.input.is_empty() { Stdio::null() } else { Stdio::piped() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.set_environment(&mut spawning);
    // Nobody waits for an answer: once the program runs, it is there.
    let (answer, report) =
        pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).map_err(|errno| failed(errno.into()))?;
    let birth = Birth {
        leaf: leaf.and_then(|leaf| u64::try_from(leaf.directory().as_raw_fd()).ok()),
        report,
        uid: command.identity.as_ref().map(|identity| Uid::from_raw(identity.uid)),
        directory: CString::new(command.directory.as_os_str().as_bytes())
            .map_err(|error| failed(error.into()))?,
    };
    birth.before_exec(&mut spawning);
    let spawned = spawning.spawn();
    match (spawned, Cloned::read(&answer)) {
        (Err(_), Cloned::Refused) => Ok(None),
        (Ok(child), Cloned::As(head)) => {
            // Only the one that cloned itself. The standard library would close the command's input as well.
            let _ = waitpid(Some(Pid::from_child(&child)), WaitOptions::empty());
            Ok(Some(Started { child, head }))
        }
        (Ok(child), _) => Ok(Some(Started { head: Pid::from_child(&child), child })),
        (Err(source), cloned) => {
            if let Cloned::As(head) = cloned {
                let _ = waitpid(Some(head), WaitOptions::empty());
            }
            Err(explain(command, program, source))
        }
    }
}

/// What came of cloning into the cgroup.
enum Cloned {
    Untried,
    Refused,
    As(Pid),
}

impl Cloned {
    fn read(answer: &OwnedFd) -> Self {
        let mut number = [0; size_of::<c_long>()];
        match rustix::io::read(answer, &mut number) {
            Ok(length) if length == number.len() => {
                let number = i32::try_from(c_long::from_ne_bytes(number)).ok();
                number.filter(|number| *number > 0).and_then(Pid::from_raw).map_or(Self::Refused, Self::As)
            }
            _ => Self::Untried,
        }
    }
}

/// Flags of `clone3`, from `linux/sched.h`.
const CLONE_PARENT: u64 = 0x8000;
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// What the new process does to itself before it becomes the program.
struct Birth {
    /// The descriptor of the cgroup to be cloned into.
    leaf: Option<u64>,
    report: OwnedFd,
    uid: Option<Uid>,
    directory: CString,
}

impl Birth {
    #[expect(
        unsafe_code,
        reason = "the standard library has no other way to make a session or to use a cgroup"
    )]
    fn before_exec(self, spawning: &mut std::process::Command) {
        use nix::libc::{_exit, SYS_clone3, syscall};
        // SAFETY: what runs between fork and exec may do only what a signal handler may. These are system calls, nothing
        // is allocated or freed, and what clone3 makes is like what fork made: one thread with a copy of this memory.
        unsafe {
            spawning.pre_exec(move || {
                if let Some(leaf) = self.leaf {
                    // As in `struct clone_args`: first the flags, last the cgroup.
                    let arguments = [CLONE_INTO_CGROUP | CLONE_PARENT, 0, 0, 0, 0, 0, 0, 0, 0, 0, leaf];
                    let cloned = syscall(SYS_clone3, arguments.as_ptr(), size_of_val(&arguments));
                    if cloned != 0 {
                        let _ = rustix::io::write(&self.report, &cloned.to_ne_bytes());
                        if cloned < 0 {
                            return Err(Errno::NOTSUP.into());
                        }
                        _exit(0);
                    }
                }
                self.settle()
            });
        }
    }

    /// Becomes the leader of a session, and only then who the command runs as: a cgroup is ours to use, and whether the
    /// directory can be entered is that user's affair.
    fn settle(&self) -> io::Result<()> {
        setsid()?;
        core_dumps::restore()?;
        if let Some(uid) = self.uid {
            own_thread::set_thread_res_uid(uid, uid, uid)?;
        }
        Ok(chdir(self.directory.as_c_str())?)
    }
}

/// What an error means, given that directory and file were good a moment ago.
fn explain(command: &Command<'_>, program: &Path, source: io::Error) -> ProcessError {
    let program = program.to_owned();
    match (source.kind(), &command.identity) {
        (ErrorKind::NotFound, _) => {
            let interpreter =
                program::interpreter(&program).unwrap_or_else(|| "its dynamic loader".to_owned());
            ProcessError::Interpreter { program, interpreter }
        }
        (ErrorKind::PermissionDenied, Some(identity))
            if source.raw_os_error() == Some(Errno::PERM.raw_os_error()) =>
        {
            identity_error(command, identity, source)
        }
        (ErrorKind::PermissionDenied, _) => ProcessError::NotExecutable { program, source },
        _ if source.raw_os_error() == Some(Errno::NOEXEC.raw_os_error()) => {
            program::not_executable(&program, source)
        }
        _ => start_error(command, source),
    }
}

fn start_error(command: &Command<'_>, source: io::Error) -> ProcessError {
    ProcessError::Start { program: command.name(), source }
}

fn identity_error(command: &Command<'_>, identity: &Identity, source: io::Error) -> ProcessError {
    ProcessError::Identity { program: command.name(), uid: identity.uid, gid: identity.gid, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_kernel_is_blamed_on_what_it_is_about() {
        let nobody = Identity { uid: 65_534, gid: 65_534, groups: Vec::new() };
        let rows = [
            (Errno::NOENT, None, "Interpreter"),
            (Errno::ACCESS, None, "NotExecutable"),
            (Errno::ACCESS, Some(&nobody), "NotExecutable"),
            (Errno::PERM, None, "NotExecutable"),
            (Errno::PERM, Some(&nobody), "Identity"),
            (Errno::NOEXEC, None, "NotExecutable"),
            (Errno::NOEXEC, Some(&nobody), "NotExecutable"),
            (Errno::NOMEM, None, "Start"),
            (Errno::AGAIN, Some(&nobody), "Start"),
        ];
        for (errno, identity, kind) in rows {
            let mut command = Command::new("tool");
            if let Some(identity) = identity {
                command = command.identity(identity.clone());
            }
            let error = explain(&command, Path::new("/no/such/tool"), errno.into());
            assert!(format!("{error:?}").starts_with(kind), "{errno:?}, {identity:?}: {error:?}");
        }
    }
}
