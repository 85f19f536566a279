//! File operations against a real file system, real users and a real attacker.

mod attacks;
mod batches;
mod checking;
mod crashes;
mod directories;
mod errors;
mod faults;
mod moving;
mod planting;
mod predicting;
mod private_folders;
mod reading;
mod remembering;
mod removing;
mod staging;
mod sweeping;
mod walking;
mod writing;

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, chown, symlink},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
    thread,
};

use rustix::{
    process::{Gid, Uid, getegid, geteuid},
    thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid},
};

use super::{Attributes, CopyInterrupted, Entry, error::Party, inspect, replace};

/// Two users without privileges, and nothing to do with each other.
const NOBODY: u32 = 65534;
const BOB: u32 = 12345;

/// A directory of its own for one test, gone afterwards.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        Scratch::below(&std::env::temp_dir())
    }

    /// Where syncing costs nothing, for tests that write thousands of times.
    fn in_memory() -> Scratch {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() { Scratch::below(memory) } else { Scratch::new() }
    }

    fn below(base: &Path) -> Scratch {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = base.canonicalize().unwrap().join(format!("ccm-test-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Scratch(path)
    }

    fn at(&self, relative: &str) -> PathBuf {
        self.0.join(relative)
    }

    fn file(&self, relative: &str, content: &str) -> PathBuf {
        let path = self.at(relative);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        path
    }

    fn directory(&self, relative: &str, uid: u32, mode: u32) -> PathBuf {
        let path = self.at(relative);
        fs::create_dir(&path).unwrap();
        own(&path, uid);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    fn link(&self, relative: &str, target: impl AsRef<Path>) -> PathBuf {
        let path = self.at(relative);
        symlink(target, &path).unwrap();
        path
    }

    /// The names in the directory that are not finished.
    fn temporaries(&self) -> Vec<PathBuf> {
        let names = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path());
        names.filter(|path| super::is_temporary_name(path.file_name().unwrap())).collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn own(path: &Path, uid: u32) {
    if geteuid().is_root() {
        std::os::unix::fs::lchown(path, Some(uid), Some(uid)).unwrap();
    }
}

fn mine(mode: u32) -> Attributes {
    Attributes { uid: geteuid().as_raw(), gid: getegid().as_raw(), mode }
}

fn of(uid: u32, mode: u32) -> Attributes {
    Attributes { uid, gid: uid, mode }
}

fn put(path: &Path, attributes: Attributes, content: &str) -> Result<(), super::FileError> {
    replace(path, attributes, |file| file.write_all(content.as_bytes()))
}

fn entry(path: &Path) -> Entry {
    inspect(path).unwrap().unwrap()
}

fn owner_and_mode(path: &Path) -> (u32, u32, u32) {
    let found = fs::symlink_metadata(path).unwrap();
    (found.uid(), found.gid(), found.mode() & 0o7777)
}

#[expect(clippy::unnecessary_wraps, reason = "it stands for one that can stop")]
fn never_stop() -> Result<(), CopyInterrupted> {
    Ok(())
}

/// Whether the test can make files of other users; says so when not.
fn is_root() -> bool {
    let root = geteuid().is_root();
    if !root {
        skip("needs root to act as several users");
    }
    root
}

/// Says that the running test is passed over.
#[track_caller]
fn skip(why: &str) {
    crate::skip::skip(why);
}

/// This test program again, in its own process, for one ignored test of this folder.
fn rerun(test: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command
        .args(["--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .arg(format!("{}::{test}", module_path!().split_once("::").unwrap().1));
    command
}

/// The same for another user, who gets a path to work on.
fn rerun_as(uid: u32, test: &str, path: &Path) -> Command {
    let mut command = rerun(test);
    command.uid(uid).gid(uid).env("CCM_TEST_PATH", path);
    command
}

/// Works as another user with these groups, the first of which is his own. Linux has a user for each thread.
fn as_user<T: Send>(uid: u32, groups: &[u32], work: impl FnOnce() -> T + Send) -> T {
    let groups: Vec<Gid> = groups.iter().copied().map(Gid::from_raw).collect();
    let become_him = || {
        set_thread_groups(&groups[1..])?;
        set_thread_res_gid(groups[0], groups[0], groups[0])?;
        set_thread_res_uid(None::<Uid>, Uid::from_raw(uid), None::<Uid>)
    };
    let work = move || {
        become_him().unwrap();
        work()
    };
    thread::scope(|scope| scope.spawn(work).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The path that the test which started this process set.
fn path_to_work_on() -> PathBuf {
    std::env::var_os("CCM_TEST_PATH").unwrap().into()
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(output.status.success() && text.contains("1 passed"), "{command:?}\n{text}");
}

/// A file system of its own, mounted for one test.
struct Mount(PathBuf);

impl Mount {
    fn tmpfs(path: PathBuf, options: &str) -> Mount {
        Mount::of_kind("tmpfs", path, options)
    }

    fn of_kind(kind: &str, path: PathBuf, options: &str) -> Mount {
        let status = Command::new("mount").args(["-t", kind, "-o", options, "none"]).arg(&path).status();
        assert!(status.unwrap().success());
        Mount(path)
    }

    fn bind(source: &Path, path: PathBuf) -> Mount {
        let status = Command::new("mount").arg("--bind").arg(source).arg(&path).status();
        assert!(status.unwrap().success());
        Mount(path)
    }

    fn make_read_only(&self) {
        let status = Command::new("mount").args(["-o", "remount,ro"]).arg(&self.0).status();
        assert!(status.unwrap().success());
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn give(path: &Path, uid: u32) {
    chown(path, Some(uid), Some(uid)).unwrap();
}

/// Sets attributes without ever being stopped.
fn set(path: &Path, expected: &Entry, attributes: Attributes) -> Result<(), super::FileError> {
    super::set_attributes(path, expected, attributes, &mut never_stop)
}
