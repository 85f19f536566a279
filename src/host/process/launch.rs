//! Starting a program: with the right file, directory, user and nothing else of ours.
//!
//! Every command leads a session of its own. So it has no terminal that it could wait for or be stopped by, and whatever
//! it starts carries the mark of it. The session has to be made between fork and exec: the quicker `posix_spawn` could do
//! that too, but the standard library does not offer it yet. With the megabyte or two that a run needs, a fork costs a
//! third of a millisecond more; with ten thousand resources it is twice that.
//!
//! The standard library cannot set a umask or supplementary groups. On Linux both belong to the calling thread and are
//! passed on to the children of that thread, so a command that asks for them is started from a thread of its own, which
//! changes itself and ends right after. No other thread ever sees the change, and no second program has to stand in
//! between.

use std::io::{self, ErrorKind};
use std::os::unix::process::CommandExt;
use std::panic;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::{Gid, Uid, geteuid, setsid};
use rustix::thread as own_thread;

use super::error::ProcessError;
use super::{Command, Identity, Prospect, program};

/// Starts the program of `command` as the leader of a new session.
pub(super) fn launch(command: &Command<'_>) -> Result<Child, ProcessError> {
    prepared(command, locate, |program| spawn(command, &program?))
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
    if command.identity.is_none() && command.umask.is_none() {
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
    forget_how_to_set_groups().map_err(refused)?;
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

/// When it changes the user, the standard library first drops all supplementary groups, if it may. Those are the right
/// ones here: without the capability it leaves them alone.
fn forget_how_to_set_groups() -> Result<(), Errno> {
    let mut sets = own_thread::capabilities(None)?;
    sets.effective.remove(own_thread::CapabilitySet::SETGID);
    sets.permitted.remove(own_thread::CapabilitySet::SETGID);
    own_thread::set_capabilities(None, sets)
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

fn spawn(command: &Command<'_>, program: &Path) -> Result<Child, ProcessError> {
    let mut spawning = std::process::Command::new(program);
    spawning
        .arg0(&command.program)
        .args(&command.arguments)
        .current_dir(&command.directory)
        .envs(command.environment.iter().map(|(key, value)| (key, value)))
        .stdin(if command.input.is_empty() { Stdio::null() } else { Stdio::piped() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(path) = &command.search_path {
        spawning.env("PATH", path);
    }
    if let Some(identity) = &command.identity {
        spawning.uid(identity.uid);
    }
    lead_a_session(&mut spawning);
    spawning.spawn().map_err(|source| explain(command, program, source))
}

#[expect(unsafe_code, reason = "the standard library has no other way to make a session")]
fn lead_a_session(spawning: &mut std::process::Command) {
    // SAFETY: what runs between fork and exec may do only what a signal handler may. This is one system call.
    unsafe {
        spawning.pre_exec(|| setsid().map(drop).map_err(io::Error::from));
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
            ProcessError::NotExecutable { program, source }
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
