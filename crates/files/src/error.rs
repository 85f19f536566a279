//! Errors of file operations, with help for administrators.
#![expect(
    clippy::unnecessary_debug_formatting,
    reason = "paths come from users who may be hostile to the reader's terminal: quoted and escaped"
)]

use std::{error::Error, fmt, io, path::Path, path::PathBuf};

use rustix::io::Errno;

/// A failed operation on a path. The message is complete. The source has the error number.
#[derive(Debug)]
pub struct FileError {
    /// The operation that failed.
    pub operation: Operation,
    /// The path as the caller gave it.
    pub path: PathBuf,
    /// The reason.
    pub problem: Problem,
}

/// An operation. Its name completes "cannot ...".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each name is the verb of the message")]
pub enum Operation {
    Inspect,
    Read,
    Write,
    SetAttributes,
    MakeDirectory,
    MakeLink,
    Remove,
    Unpack,
    Move,
    Sweep,
}

/// The reason of a failure. Paths name the component that caused it, with links resolved.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each problem names all of its fields")]
pub enum Problem {
    #[error("directory {missing:?} does not exist")]
    ParentMissing { missing: PathBuf, nearest: PathBuf },
    #[error("symbolic link {link:?} points to {target:?}, which does not exist")]
    DanglingLink { link: PathBuf, target: PathBuf },
    #[error("{component:?} is not a directory")]
    NotADirectory { component: PathBuf },
    #[error("{link:?} is a symbolic link to {target:?}")]
    LinkInTheWay { link: PathBuf, target: PathBuf },
    #[error("symbolic link {link:?} to {target:?}, owned by {owner}, is not safe to follow: {risk}")]
    UnsafeLink { link: PathBuf, target: PathBuf, owner: Party, risk: LinkRisk },
    #[error(
        "{component:?} belongs to {owner}, who could redirect everything below it, and what is asked for would belong to {wanted}"
    )]
    UnsafeComponent { component: PathBuf, owner: Party, wanted: Party },
    #[error(
        "everybody may rename and replace what is in {component:?}: it is world-writable without the sticky bit"
    )]
    OpenToAll { component: PathBuf },
    #[error(
        "others control {component:?} on the way to it, which belongs to uid {owner} with mode {mode:04o}"
    )]
    Controlled { component: PathBuf, owner: u32, mode: u32 },
    #[error("{at:?} belongs to uid {owner}")]
    Foreign { at: PathBuf, owner: u32 },
    #[error("others may write to {at:?} (mode {mode:04o})")]
    Exposed { at: PathBuf, mode: u32 },
    #[error("permission denied at {at:?}")]
    Denied { at: PathBuf, source: Errno },
    #[error("{at:?} is on a read-only file system")]
    ReadOnly { at: PathBuf, source: Errno },
    #[error("{at:?} is {flag}")]
    Protected { at: PathBuf, flag: Flag, source: Errno },
    #[error("no space left on the file system of {at:?}")]
    NoSpace { at: PathBuf, source: Errno },
    #[error("the disk quota on the file system of {at:?} is used up")]
    Quota { at: PathBuf, source: Errno },
    #[error("the name {at:?} is too long for its file system")]
    NameTooLong { at: PathBuf, source: Errno },
    #[error("too many symbolic links on the way, the last one being {link:?}")]
    LinkLoop { link: PathBuf },
    #[error("{at:?} could not be brought to disk: {source}")]
    Unsynced { at: PathBuf, source: Errno },
    #[error("{at:?} was changed by somebody else in the meantime")]
    Changed { at: PathBuf },
    #[error("what was to be validated was changed meanwhile, and is not used")]
    Altered,
    #[error("{at:?} has {links} names (hard links), and {owner} or others can make them in {directory:?}")]
    HardLinked { at: PathBuf, links: u64, directory: PathBuf, owner: Party },
    #[error("{at:?} may be another file that somebody moved there: others can write to {directory:?}")]
    Planted { at: PathBuf, directory: PathBuf },
    #[error("{at:?} is a directory")]
    IsADirectory { at: PathBuf },
    #[error("{at:?} is neither a file nor a directory")]
    Special { at: PathBuf },
    #[error("directory {at:?} is not empty")]
    NotEmpty { at: PathBuf, source: Errno },
    #[error("{at:?} is in use, probably as a mount point")]
    Busy { at: PathBuf, source: Errno },
    #[error("{at:?} is the root of another file system")]
    OtherFileSystem { at: PathBuf },
    #[error("the root directory cannot be managed")]
    Root,
    #[error("it was stopped")]
    CopyInterrupted,
    #[error("its content could not be produced: {source}")]
    Content { source: io::Error },
    #[error("{source} at {at:?}")]
    System { at: PathBuf, source: Errno },
}

/// A user in a message: the UID and, after [`FileError::naming`], the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Party {
    pub(super) uid: u32,
    name: Option<String>,
}

impl From<u32> for Party {
    fn from(uid: u32) -> Self {
        Self { uid, name: None }
    }
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "uid {} ({name})", self.uid),
            None => write!(f, "uid {}", self.uid),
        }
    }
}

/// Why a symbolic link on the way is not safe to follow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each risk names all of its fields")]
pub enum LinkRisk {
    #[error("only links of root or of the user running this are")]
    Owner,
    #[error("others may write to {directory:?}, where it lies")]
    Directory { directory: PathBuf },
    #[error("it has several names, so anybody may have put it there")]
    HardLinked,
    #[error("it lies below {component:?}, which belongs to {owner}")]
    Below { component: PathBuf, owner: Party },
}

/// A file attribute that prevents all users, including root, from changing a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each flag is its name")]
pub enum Flag {
    #[error("immutable")]
    Immutable,
    #[error("append-only")]
    AppendOnly,
}

impl FileError {
    pub(super) fn new(operation: Operation, path: &Path, problem: Problem) -> Self {
        Self { operation, path: path.to_owned(), problem }
    }

    /// Adds the names of users to the message. `name_of` returns the name of a UID.
    pub fn naming(mut self, name_of: impl Fn(u32) -> Option<String>) -> Self {
        let name = |party: &mut Party| party.name = name_of(party.uid);
        match &mut self.problem {
            Problem::UnsafeLink { owner, risk, .. } => {
                name(owner);
                if let LinkRisk::Below { owner, .. } = risk {
                    name(owner);
                }
            }
            Problem::UnsafeComponent { owner, wanted, .. } => [owner, wanted].into_iter().for_each(name),
            Problem::HardLinked { owner, .. } => name(owner),
            _ => {}
        }
        self
    }

    /// Returns whether the caller stopped the operation.
    #[cfg(test)]
    pub(super) fn is_stopped(&self) -> bool {
        matches!(self.problem, Problem::CopyInterrupted)
    }

    /// Returns whether another attempt can succeed without any action by the administrator.
    pub fn is_passing(&self) -> bool {
        matches!(
            self.problem,
            Problem::Busy { .. }
                | Problem::Changed { .. }
                | Problem::Unsynced { .. }
                | Problem::Content { .. }
                | Problem::System { .. }
                | Problem::CopyInterrupted
        )
    }

    /// Returns help for the administrator.
    pub fn hint(&self) -> Option<String> {
        self.problem.hint()
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {:?}: {}", self.operation, self.path, self.problem)
    }
}

impl Error for FileError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.problem.source()
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operation::Inspect => "inspect",
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::SetAttributes => "set owner and mode of",
            Operation::MakeDirectory => "make directory",
            Operation::MakeLink => "make link",
            Operation::Remove => "remove",
            Operation::Unpack => "unpack into",
            Operation::Move => "move",
            Operation::Sweep => "clean up",
        })
    }
}

impl Problem {
    /// Returns the problem for an error number of the kernel.
    pub(super) fn from_errno(source: Errno, at: &Path) -> Self {
        let at = at.to_owned();
        match source {
            Errno::ACCESS | Errno::PERM => Problem::Denied { at, source },
            Errno::ROFS => Problem::ReadOnly { at, source },
            Errno::NOSPC => Problem::NoSpace { at, source },
            Errno::DQUOT => Problem::Quota { at, source },
            Errno::NAMETOOLONG => Problem::NameTooLong { at, source },
            Errno::NOTDIR => Problem::NotADirectory { component: at },
            Errno::ISDIR => Problem::IsADirectory { at },
            Errno::NOTEMPTY => Problem::NotEmpty { at, source },
            Errno::BUSY => Problem::Busy { at, source },
            Errno::XDEV => Problem::OtherFileSystem { at },
            _ => Problem::System { at, source },
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Problem::ParentMissing { missing, nearest } => format!(
                "{nearest:?} exists; create the directory {missing:?} first"
            ),
            Problem::DanglingLink { link, target } => {
                format!("make {target:?}, or remove the link {link:?}")
            }
            Problem::NotADirectory { component } => {
                format!("remove or rename {component:?}, or correct the path")
            }
            Problem::LinkInTheWay { target, .. } => {
                format!("links are never followed here: use {target:?} itself, or remove the link first")
            }
            Problem::UnsafeLink { target, .. } => {
                format!(
                    "use the path behind the link, {target:?}, or let root own the link in a directory that only root writes to"
                )
            }
            Problem::UnsafeComponent { component, owner, .. } => format!(
                "let {owner} own what is managed below {component:?}, or give {component:?} to root (chown root)"
            ),
            Problem::OpenToAll { component } => {
                format!("take the right to write from others (chmod o-w), or set the sticky bit (chmod +t) on {component:?}")
            }
            Problem::Controlled { .. } => {
                "use a place that only root or you can write to, all the way up".to_owned()
            }
            Problem::Denied { .. } if !rustix::process::geteuid().is_root() => "run it as root".to_owned(),
            Problem::Denied { .. } => {
                "root itself was refused: look at security modules (SELinux, AppArmor), containers and network mounts"
                    .to_owned()
            }
            Problem::ReadOnly { .. } => "mount it read-write (mount -o remount,rw)".to_owned(),
            Problem::Protected { at, flag, .. } => {
                let letter = match flag {
                    Flag::Immutable => 'i',
                    Flag::AppendOnly => 'a',
                };
                format!("somebody protected it on purpose; `chattr -{letter} {at:?}` takes that away")
            }
            Problem::NoSpace { .. } => "free some space or inodes (df, df -i)".to_owned(),
            Problem::Quota { .. } => "raise the quota or free some space (quota, repquota)".to_owned(),
            Problem::LinkLoop { link } => format!("look where {link:?} leads (namei -l)"),
            Problem::System { source: Errno::FBIG, .. } => {
                "raise the limit on the size of files (ulimit -f)".to_owned()
            }
            Problem::System { source: Errno::MFILE | Errno::NFILE, .. } => {
                "raise the limit of open files (ulimit -n)".to_owned()
            }
            Problem::Unsynced { .. } => "the disk may be failing: look at the kernel's log (dmesg)".to_owned(),
            Problem::Changed { .. } => "run again; if it happens again, find out who writes there".to_owned(),
            Problem::HardLinked { .. } => {
                "its other names may be somebody else's files: remove it and let it be made anew".to_owned()
            }
            Problem::Planted { .. } => {
                "keep its owner, group and mode, or replace it with a complete new file".to_owned()
            }
            Problem::NotEmpty { .. } => "remove its entries first".to_owned(),
            Problem::Busy { .. } | Problem::OtherFileSystem { .. } => {
                "unmount it first (findmnt shows what is mounted)".to_owned()
            }
            _ => return None,
        })
    }
}
