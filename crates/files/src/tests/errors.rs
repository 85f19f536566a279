//! What an error says, what it advises and whether it may pass.

use std::io;

use rustix::io::Errno;

use super::*;
use crate::{
    FileError, Problem,
    error::{LinkRisk, Operation},
};

fn error(problem: Problem) -> FileError {
    FileError::new(Operation::Write, Path::new("/a/b"), problem)
}

fn at() -> PathBuf {
    "/a".into()
}

fn hard_linked(owner: u32) -> Problem {
    Problem::HardLinked { at: "/a/b".into(), links: 2, directory: at(), owner: owner.into() }
}

#[test]
fn an_error_number_is_told_in_words() {
    for (errno, words) in [
        (Errno::ACCESS, "permission denied at \"/a\""),
        (Errno::PERM, "permission denied at \"/a\""),
        (Errno::ROFS, "\"/a\" is on a read-only file system"),
        (Errno::NOSPC, "no space left on the file system of \"/a\""),
        (Errno::DQUOT, "the disk quota on the file system of \"/a\" is used up"),
        (Errno::NAMETOOLONG, "the name \"/a\" is too long for its file system"),
        (Errno::NOTDIR, "\"/a\" is not a directory"),
        (Errno::ISDIR, "\"/a\" is a directory"),
        (Errno::NOTEMPTY, "directory \"/a\" is not empty"),
        (Errno::BUSY, "\"/a\" is in use, probably as a mount point"),
        (Errno::XDEV, "\"/a\" is the root of another file system"),
    ] {
        assert_eq!(Problem::from_errno(errno, &at()).to_string(), words);
    }
    let other = Problem::from_errno(Errno::IO, &at()).to_string();
    assert_eq!(other, format!("{} at \"/a\"", Errno::IO));
}

#[test]
fn a_problem_comes_with_advice() {
    let denied =
        if geteuid().is_root() { "look at security modules (SELinux, AppArmor)" } else { "run it as root" };
    let (source, target) = (Errno::IO, PathBuf::from("/t"));
    let risk = LinkRisk::Owner;
    for (problem, advice) in [
        (Problem::LinkInTheWay { link: at(), target: target.clone() }, "use \"/t\" itself"),
        (
            Problem::UnsafeLink { link: at(), target, owner: BOB.into(), risk },
            "use the path behind the link, \"/t\"",
        ),
        (
            Problem::UnsafeComponent { component: at(), owner: BOB.into(), wanted: 0.into() },
            "let uid 12345 own what is managed below \"/a\", or give \"/a\" to root",
        ),
        (Problem::OpenToAll { component: at() }, "set the sticky bit (chmod +t) on \"/a\""),
        (
            Problem::Controlled { component: at(), owner: BOB, mode: 0o755 },
            "a place that only root or you can write to",
        ),
        (Problem::Denied { at: at(), source }, denied),
        (Problem::NoSpace { at: at(), source }, "df -i"),
        (Problem::Quota { at: at(), source }, "repquota"),
        (Problem::LinkLoop { link: at() }, "look where \"/a\" leads (namei -l)"),
        (Problem::Unsynced { at: at(), source }, "dmesg"),
        (Problem::Changed { at: at() }, "run again"),
        (hard_linked(BOB), "let it be made anew"),
        (Problem::Planted { at: at(), directory: at() }, "replace it with a complete new file"),
    ] {
        let error = error(problem);
        let hint = error.hint().unwrap_or_default();
        assert!(hint.contains(advice), "{error}: {hint}");
    }
    assert_eq!(error(Problem::Root).hint(), None);
}

#[test]
fn what_may_pass_by_itself_is_told_from_what_somebody_has_to_mend() {
    let source = Errno::IO;
    for (problem, passes) in [
        (Problem::Busy { at: at(), source }, true),
        (Problem::Changed { at: at() }, true),
        (Problem::Unsynced { at: at(), source }, true),
        (Problem::Content { source: io::Error::other("gone") }, true),
        (Problem::System { at: at(), source }, true),
        (Problem::CopyInterrupted, true),
        (Problem::Denied { at: at(), source }, false),
        (Problem::NoSpace { at: at(), source }, false),
        (Problem::IsADirectory { at: at() }, false),
        (hard_linked(BOB), false),
    ] {
        let error = error(problem);
        assert_eq!(error.is_passing(), passes, "{error}");
    }
}

#[test]
fn users_in_a_message_are_named() {
    let nameless = u32::MAX - 7;
    let below = LinkRisk::Below { component: at(), owner: 0.into() };
    for (problem, count) in [
        (hard_linked(0), 1),
        (Problem::UnsafeComponent { component: at(), owner: 0.into(), wanted: 0.into() }, 2),
        (Problem::UnsafeLink { link: at(), target: at(), owner: 0.into(), risk: below }, 2),
        (hard_linked(nameless), 0),
    ] {
        let text = error(problem).naming(|uid| (uid == 0).then(|| "root".to_owned())).to_string();
        assert_eq!(text.matches("uid 0 (root)").count(), count, "{text}");
        assert!(count > 0 || text.contains(&format!("uid {nameless} or others")), "{text}");
    }
}
