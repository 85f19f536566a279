//! Finds the program of a command, and explains why it would not run.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;

use super::error::ProcessError;

/// `PATH` if neither the caller nor the environment specifies it.
const DEFAULT_SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Returns the directories of a `PATH` that the caller specified. All must be absolute: a relative directory would depend on the
/// working directory of each command.
pub(super) fn given_directories(path: &OsStr) -> Result<Vec<PathBuf>, ProcessError> {
    let directories: Vec<PathBuf> = env::split_paths(path).collect();
    match directories.iter().find(|entry| !entry.is_absolute()) {
        Some(entry) => Err(ProcessError::SearchPath { entry: entry.display().to_string() }),
        None => Ok(directories),
    }
}

/// Returns the absolute directories of the `PATH` of this process.
pub(super) fn inherited_directories() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_else(|| DEFAULT_SEARCH_PATH.into());
    env::split_paths(&path).filter(|entry| entry.is_absolute()).collect()
}

/// Returns the file to execute for `program`: a path relative to `directory` if it contains a slash, otherwise the first executable of
/// that name in `directories`.
pub(super) fn find(
    program: &OsStr,
    directory: &Path,
    directories: &[PathBuf],
) -> Result<PathBuf, ProcessError> {
    if program.as_bytes().contains(&b'/') {
        let program = directory.join(program);
        return match check_executable(&program) {
            Ok(()) => Ok(program),
            Err(error) if is_absence(&error) => Err(ProcessError::Missing { program }),
            Err(source) => Err(ProcessError::NotExecutable { program, source }),
        };
    }
    let mut refused = None;
    for candidate in directories.iter().filter(|_| !program.is_empty()).map(|entry| entry.join(program)) {
        match check_executable(&candidate) {
            Ok(()) => return Ok(candidate),
            Err(error) if is_absence(&error) || !candidate.parent().is_some_and(is_searchable) => {}
            Err(source) => {
                refused.get_or_insert(ProcessError::NotExecutable { program: candidate, source });
            }
        }
    }
    Err(refused.unwrap_or_else(|| ProcessError::NotFound {
        program: program.display().to_string(),
        searched: directories.iter().map(|entry| entry.display().to_string()).collect::<Vec<_>>().join(":"),
    }))
}

/// Returns whether names in a directory can be looked up.
fn is_searchable(directory: &Path) -> bool {
    check_execute_permission(directory).is_ok()
}

/// Checks whether a program can run in `directory`.
pub(super) fn check_directory(directory: &Path) -> io::Result<()> {
    if !fs::metadata(directory)?.is_dir() {
        return Err(ErrorKind::NotADirectory.into());
    }
    check_execute_permission(directory)
}

/// Returns the interpreter in the first line of a script.
pub(super) fn interpreter(program: &Path) -> Option<String> {
    let start = start(program).ok()?;
    let line = String::from_utf8_lossy(start.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?);
    Some(line.split_whitespace().next()?.to_owned())
}

/// Rejects a text file without an interpreter line, and a program of another machine. The kernel rejects them too, but some C
/// libraries then run them with a shell.
pub(super) fn check_format(program: &Path) -> Result<(), ProcessError> {
    // A program can be executable without being readable.
    let Ok(start) = start(program) else { return Ok(()) };
    let is_plain = !start.starts_with(b"#!") && !start.contains(&0);
    let is_rejected = is_plain || machine(&start).is_some() && RETRIES_WITH_A_SHELL && !has_emulators();
    if is_rejected { Err(not_executable(program, Errno::NOEXEC.into())) } else { Ok(()) }
}

/// Whether the C library runs programs with a shell that the kernel rejects.
const RETRIES_WITH_A_SHELL: bool = !cfg!(target_env = "musl");

/// Returns the error for a program that the kernel does not execute.
pub(super) fn not_executable(program: &Path, source: io::Error) -> ProcessError {
    let program = program.to_owned();
    match start(&program).ok().and_then(|start| machine(&start)) {
        Some(machine) => ProcessError::OtherMachine { program, machine },
        None => ProcessError::NotExecutable { program, source },
    }
}

/// Returns the machine that a program is built for, if this machine cannot execute it.
fn machine(start: &[u8]) -> Option<&'static str> {
    // Numbers of `e_machine` in elf(5), and another machine that executes such programs.
    const MACHINES: [(u16, &str, &str); 8] = [
        (3, "x86", "x86_64"),
        (21, "powerpc64", ""),
        (22, "s390x", ""),
        (40, "arm", "aarch64"),
        (62, "x86_64", ""),
        (183, "aarch64", ""),
        (243, "riscv64", ""),
        (258, "loongarch64", ""),
    ];
    let bytes: [u8; 2] = start.get(18..20).filter(|_| start.starts_with(b"\x7fELF"))?.try_into().ok()?;
    let number = if start[5] == 1 { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) };
    let own = std::env::consts::ARCH;
    let (_, name, other) = MACHINES.into_iter().find(|(known, ..)| *known == number)?;
    (name != own && other != own).then_some(name)
}

/// Whether the kernel has emulators for programs of other machines.
fn has_emulators() -> bool {
    let Ok(entries) = fs::read_dir("/proc/sys/fs/binfmt_misc") else { return false };
    entries.flatten().any(|entry| !["register", "status"].map(AsRef::as_ref).contains(&&*entry.file_name()))
}

/// Reads the bytes by which the kernel detects the format of a program.
fn start(program: &Path) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    File::open(program)?.take(256).read_to_end(&mut start)?;
    Ok(start)
}

fn check_executable(program: &Path) -> io::Result<()> {
    if !fs::metadata(program)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    check_execute_permission(program)
}

/// Checks the effective user: the thread that starts a command for another user has that user's effective UID.
fn check_execute_permission(path: &Path) -> io::Result<()> {
    Ok(accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS)?)
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}
