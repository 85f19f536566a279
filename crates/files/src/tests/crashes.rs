//! Errors and deaths at chosen system calls, brought about by a tracer.

use std::{fs, process::Output};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::*;
use crate::{
    FileKind, InTheWay, Parents, make_directory, make_link, remove, remove_tree, replace_file_with_directory,
    sweep,
};

/// The system calls that change something, and the lock.
const CHANGING: [&str; 14] = [
    "flock",
    "write",
    "fsetxattr",
    "fremovexattr",
    "fchown",
    "fchownat",
    "fchmod",
    "fchmodat",
    "fsync",
    "renameat",
    "renameat2",
    "unlinkat",
    "mkdirat",
    "symlinkat",
];

const NEW: &str = "the new content";

/// Runs one of the deeds below under a tracer that interferes; `None` where there is no tracer.
fn interfere(injection: &str, deed: &str, path: &Path) -> Option<Output> {
    let mut command = Command::new("strace");
    let (call, _) = injection.split_once(':').expect("a call and what happens");
    // The other calls are not written down, which costs more than they do.
    command.args(["-f", "-qq", "-e", &format!("trace={call}")]);
    command.args(["-e", &format!("inject={injection}"), "-e", "signal=none", "-o", "/dev/null"]);
    let inner = rerun("crashes::deed");
    command.arg(std::env::current_exe().unwrap()).args(inner.get_args());
    command.env("CCM_TEST_PATH", path).env("CCM_TEST_DEED", deed);
    command.output().ok().or_else(|| {
        skip("needs strace");
        None
    })
}

/// The names of the calls of a deed that change something, in their order; `None` where there is no tracer.
fn calls(deed: &str, path: &Path) -> Option<Vec<String>> {
    let scratch = Scratch::in_memory();
    let log = scratch.at("trace");
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-e", &format!("trace={}", CHANGING.join(",")), "-e", "signal=none", "-o"]);
    command.arg(&log).arg(std::env::current_exe().unwrap()).args(rerun("crashes::deed").get_args());
    let Ok(output) = command.env("CCM_TEST_PATH", path).env("CCM_TEST_DEED", deed).output() else {
        skip("needs strace");
        return None;
    };
    assert!(output.status.success(), "{output:?}");
    let trace = fs::read_to_string(log).unwrap();
    // Each line is a thread and a call, or the end of one that was told of before. The first thread only writes what the test
    // runner has to say.
    let runner = trace.split_whitespace().next().expect("the runner writes");
    let lines = trace.lines().filter_map(|line| line.split_once(' '));
    let own = lines.filter(|(thread, text)| *thread != runner && !text.contains("<... "));
    Some(own.filter_map(|(_, text)| Some(text.trim_start().split_once('(')?.0.to_owned())).collect())
}

/// The calls at which to interfere: each name, and its number among those of the same name. The first `write` is the runner's, before
/// the deed; kills between the writes of a file are tried with the whole program.
fn points(calls: &[String]) -> Vec<(&str, usize)> {
    let number = |(index, name)| calls[..=index].iter().filter(|other| *other == name).count();
    calls.iter().enumerate().map(|call| (call.1.as_str(), number(call))).collect()
}

#[test]
#[ignore = "run by the other tests here under a tracer"]
fn deed() {
    let path = path_to_work_on();
    let done = match std::env::var("CCM_TEST_DEED").unwrap().as_str() {
        "write" => put(&path, mine(0o640), NEW),
        "write_long" => replace(&path, mine(0o640), |file| {
            (0..10).try_for_each(|_| file.write_all(NEW.repeat(1000).as_bytes()))
        }),
        "attributes" => set(&path, &entry(&path), of(BOB, 0o640)),
        "directory" => make_directory(&path, mine(0o750), Parents::Expect),
        "exchange" => replace_file_with_directory(&path, mine(0o750)),
        "link" => make_link(&path, Path::new("elsewhere"), InTheWay::Goes, &mut never_stop),
        "remove" => remove(&path),
        "remove_tree" => remove_tree(&path, &mut never_stop),
        deed => panic!("no such deed: {deed}"),
    };
    if let Err(error) = done {
        panic!("<{error}>");
    }
}

fn furnish(path: &Path, start: &str) {
    match start {
        "file" => {
            fs::write(path, "old").unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
            let _ = rustix::fs::setxattr(path, "user.note", b"x", rustix::fs::XattrFlags::empty());
        }
        "link" => std::os::unix::fs::symlink("before", path).unwrap(),
        "tree" => {
            fs::create_dir_all(path.join("a/b")).unwrap();
            fs::write(path.join("a/f"), "").unwrap();
        }
        _ => {}
    }
}

/// Content where there is one, owner and mode; `None` for nothing.
fn state(path: &Path) -> Option<(FileKind, Option<String>, u32, u32)> {
    let found = inspect(path).unwrap()?;
    Some((found.kind, fs::read_to_string(path).ok(), found.uid, found.mode))
}

#[test]
fn a_link_takes_the_place_of_a_link_only_unless_more_is_asked_for() {
    let scratch = Scratch::new();
    let (file, link) = (scratch.file("file", "kept"), scratch.at("link"));
    let make =
        |path: &Path, target: &str| make_link(path, Path::new(target), InTheWay::Stays, &mut never_stop);
    for target in ["first", "second"] {
        make(&link, target).unwrap();
        assert_eq!(fs::read_link(&link).unwrap(), Path::new(target));
    }
    assert!(make(&file, "first").is_err());
    assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
}

/// Kills the deed at the entry of every call that changes something, one after the other.
#[test]
fn whatever_kills_it_the_old_or_the_new_state_is_there_and_the_next_run_finishes() {
    if !is_root() {
        return;
    }
    let deeds = [
        ("write", "file"),
        ("write", "nothing"),
        ("directory", "nothing"),
        ("exchange", "file"),
        ("link", "nothing"),
        ("link", "file"),
        ("link", "link"),
        ("link", "tree"),
        ("remove", "file"),
        ("remove_tree", "tree"),
    ];
    for (deed, start) in deeds {
        let begin = || {
            let scratch = Scratch::in_memory();
            let path = scratch.at("p");
            furnish(&path, start);
            (scratch, path)
        };
        let (_scratch, path) = begin();
        let Some(calls) = calls(deed, &path) else { return };
        assert_eq!(state(&path), wanted(deed), "{deed} from {start}");
        assert!(calls.len() > 1, "{calls:?}");
        for (call, number) in points(&calls) {
            let what = format!("{deed} from {start}, {call} number {number}");
            let (scratch, path) = begin();
            let before = state(&path);
            let Some(output) = interfere(&format!("{call}:signal=KILL:when={number}"), deed, &path) else {
                return;
            };
            assert!(!output.status.success(), "{what} was not the end");
            let during = state(&path);
            sweep(&scratch.0, &mut never_stop).unwrap();
            assert_eq!(scratch.temporaries(), Vec::<PathBuf>::new());
            // The next run: with nothing in its way, from where the killed one left off.
            if during == before {
                run(rerun("crashes::deed").env("CCM_TEST_PATH", &path).env("CCM_TEST_DEED", deed));
            }
            let after = state(&path);
            assert!(during == before || during == after, "{what}: {before:?}, {during:?}, {after:?}");
            assert_eq!(after, wanted(deed), "{what}");
        }
    }
}

fn wanted(deed: &str) -> Option<(FileKind, Option<String>, u32, u32)> {
    match deed {
        "write" => Some((FileKind::File, Some(NEW.to_owned()), 0, 0o640)),
        "link" => Some((FileKind::Symlink { target: "elsewhere".into() }, None, 0, 0o777)),
        "directory" | "exchange" => Some((FileKind::Directory, None, 0, 0o750)),
        _ => None,
    }
}

#[test]
fn a_changed_owner_never_meets_a_wider_mode() {
    if !is_root() {
        return;
    }
    let (old, new) = ((0, 0o604), (BOB, 0o640));
    let begin = || {
        let scratch = Scratch::in_memory();
        let path = scratch.at("p");
        furnish(&path, "file");
        fs::set_permissions(&path, fs::Permissions::from_mode(old.1)).unwrap();
        (scratch, path)
    };
    let found = |path: &Path| {
        let (uid, _, mode) = owner_and_mode(path);
        (uid, mode)
    };
    let (_scratch, path) = begin();
    let Some(calls) = calls("attributes", &path) else { return };
    assert_eq!(found(&path), new);
    assert!(calls.len() > 1, "{calls:?}");
    for (call, number) in points(&calls) {
        let (_scratch, path) = begin();
        let Some(output) = interfere(&format!("{call}:signal=KILL:when={number}"), "attributes", &path)
        else {
            return;
        };
        assert!(!output.status.success(), "{call} number {number} was not the end");
        let (uid, mode) = found(&path);
        let states = [old, (0, 0o600), (BOB, 0o600), new];
        assert!(states.contains(&(uid, mode)), "{call} number {number}: {uid} {mode:o}");
    }
}

#[test]
fn an_error_at_any_step_is_reported_and_leaves_the_old_file() {
    for (injection, words) in [
        // The test runner makes up to four writes of its own, and the deed more.
        ("write:error=EDQUOT:when=6", "the disk quota on the file system of"),
        ("fsync:error=EIO:when=1", "could not be brought to disk: Input/output error"),
        ("fchown:error=EPERM:when=1", "permission denied at"),
        ("fchmod:error=EIO:when=1", "Input/output error"),
        ("renameat:error=EIO:when=1", "Input/output error"),
    ] {
        let scratch = Scratch::in_memory();
        let path = scratch.at("p");
        furnish(&path, "file");
        let before = entry(&path);
        let Some(output) = interfere(injection, "write_long", &path) else { return };
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(
            text.contains(words) && text.contains(&format!("<cannot write {path:?}")),
            "{injection}: {text}"
        );
        assert_eq!((entry(&path), scratch.temporaries()), (before, vec![]), "{injection}");
    }
}

#[test]
fn a_lack_of_descriptors_is_reported_and_leaves_the_old_file() {
    let scratch = Scratch::in_memory();
    let path = scratch.at("p");
    furnish(&path, "file");
    run(rerun("crashes::write_with_few_descriptors").env("CCM_TEST_PATH", &path));
}

#[test]
#[ignore = "run by `a_lack_of_descriptors_is_reported_and_leaves_the_old_file` in a process of its own"]
fn write_with_few_descriptors() {
    let path = path_to_work_on();
    let before = entry(&path);
    let usual = getrlimit(Resource::Nofile);
    let mut refusals = 0;
    for limit in 0.. {
        setrlimit(Resource::Nofile, Rlimit { current: Some(limit), ..usual }).unwrap();
        let done = put(&path, mine(0o640), NEW);
        setrlimit(Resource::Nofile, usual).unwrap();
        let Err(error) = done else { break };
        assert!(error.to_string().contains("Too many open files"), "{error}");
        assert!(error.hint().unwrap().contains("ulimit"));
        assert_eq!(entry(&path), before, "{error}");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        refusals += 1;
    }
    assert!(refusals > 3);
}

/// Content, owner and mode are on disk before the name is there, and the name before the caller goes on.
#[test]
fn syncs_and_renames_come_in_the_right_order() {
    for (deed, start, expected) in [
        ("write", "file", "fchown fchmod fsync renameat fsync"),
        ("directory", "nothing", "mkdirat fchown fchmod fsync renameat2 fsync"),
        ("exchange", "file", "mkdirat fchown fchmod fsync renameat2 unlinkat fsync"),
        ("remove", "file", "unlinkat fsync"),
    ] {
        let scratch = Scratch::new();
        let path = scratch.at("p");
        furnish(&path, start);
        let Some(calls) = calls(deed, &path) else { return };
        let matters = |name: &&str| !["flock", "write", "fsetxattr", "fremovexattr"].contains(name);
        let order: Vec<&str> = calls.iter().map(String::as_str).filter(matters).collect();
        assert_eq!(order.join(" "), expected, "{calls:?}");
    }
}
