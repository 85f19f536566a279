//! An unprivileged process that swaps files, links and directories under the path as fast as it can.

use std::{
    collections::BTreeMap,
    fs, io,
    process::{Child, Stdio},
};

use super::*;
use crate::{Parents, make_directory, remove, remove_tree, replace_file_with_directory, sweep};

const ROUNDS: usize = 1_000;

/// What is outside and has to stay as it is: path to owner, group, mode and content.
type Outside = BTreeMap<PathBuf, (u32, u32, u32, Vec<u8>)>;

/// A directory of the attacker's, a sticky one, and one of root's outside of both.
struct Field {
    scratch: Scratch,
    before: Outside,
}

impl Field {
    fn new() -> Field {
        let scratch = Scratch::in_memory();
        scratch.directory("attacker", NOBODY, 0o755);
        scratch.directory("sticky", 0, 0o1777);
        scratch.directory("outside", 0, 0o755);
        scratch.file("outside/f", "root's");
        scratch.directory("outside/d", 0, 0o755);
        scratch.file("outside/d/f", "root's");
        // The attacker may write to it, and so may give it another name even with fs.protected_hardlinks.
        scratch.file("outside/shared", "root's");
        fs::set_permissions(scratch.at("outside/shared"), fs::Permissions::from_mode(0o666)).unwrap();
        let before = survey(&scratch.at("outside"));
        Field { scratch, before }
    }

    fn attack(&self) -> Attacker {
        let mut command = rerun_as(NOBODY, "attacks::attacker", &self.scratch.0);
        Attacker(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    fn is_intact(&self) -> bool {
        survey(&self.scratch.at("outside")) == self.before
    }
}

struct Attacker(Child);

impl Attacker {
    fn is_alive(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Attacker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn survey(directory: &Path) -> Outside {
    let mut found = BTreeMap::new();
    let mut ahead = vec![directory.to_owned()];
    while let Some(path) = ahead.pop() {
        let metadata = fs::symlink_metadata(&path).unwrap();
        // What anybody may write to is looked at for its owner and mode only.
        let is_private = metadata.is_file() && metadata.mode() & 0o002 == 0;
        let content = if is_private { fs::read(&path).unwrap() } else { Vec::new() };
        if metadata.is_dir() {
            ahead.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        found.insert(path, (metadata.uid(), metadata.gid(), metadata.mode(), content));
    }
    found
}

/// Swaps `f` and `d` in both directories between everything they can be, as long as the process that started it lives.
#[test]
#[ignore = "run by the other tests here as an unprivileged user"]
fn attacker() {
    let base = path_to_work_on();
    let outside = base.join("outside");
    let parent = rustix::process::getppid();
    while rustix::process::getppid() == parent {
        for directory in [base.join("attacker"), base.join("sticky")] {
            let (aside, f, d) = (directory.join("aside"), directory.join("f"), directory.join("d"));
            swap_in(&aside, &f, |path| fs::write(path, "theirs"));
            swap_in(&aside, &f, |path| symlink(outside.join("f"), path));
            swap_in(&aside, &f, |path| fs::hard_link(outside.join("shared"), path));
            swap_in(&aside, &d, |path| fs::create_dir(path));
            let _ = fs::rename(&d, directory.join("moved"));
            swap_in(&aside, &d, |path| symlink(outside.join("d"), path));
            swap_temporaries(&directory, &outside);
            let _ = fs::remove_dir_all(directory.join("moved"));
            let _ = fs::remove_file(&d);
        }
    }
}

fn swap_in(aside: &Path, path: &Path, make: impl FnOnce(&Path) -> io::Result<()>) {
    if make(aside).is_ok() && fs::rename(aside, path).is_err() {
        let _ = fs::remove_dir_all(path).or_else(|_| fs::remove_file(path));
        let _ = fs::rename(aside, path);
    }
    let _ = fs::remove_dir_all(aside).or_else(|_| fs::remove_file(aside));
}

/// Puts a link in the place of what is not finished yet.
fn swap_temporaries(directory: &Path, outside: &Path) {
    let Ok(names) = fs::read_dir(directory) else { return };
    for path in names.flatten().map(|entry| entry.path()) {
        if super::super::is_temporary_name(path.file_name().unwrap()) {
            let _ = fs::rename(&path, directory.join("stolen"));
            let _ = symlink(outside.join("d"), &path);
            let _ = fs::remove_dir_all(directory.join("stolen"))
                .or_else(|_| fs::remove_file(directory.join("stolen")));
        }
    }
}

/// Everything that can be asked for, on every path that is under attack; how often it went well.
fn work(field: &Field) -> usize {
    let mut successes = 0;
    let mut count = |ok: bool| successes += usize::from(ok);
    for (directory, owner) in [("attacker", NOBODY), ("sticky", 0), ("sticky", NOBODY)] {
        let base = field.scratch.at(directory);
        let wanted = of(owner, 0o606);
        for path in [base.join("f"), base.join("d/f"), base.join("d/new")] {
            count(put(&path, wanted, "written").is_ok());
            if let Ok(Some(found)) = inspect(&path) {
                count(set(&path, &found, wanted).is_ok());
            }
            count(replace_file_with_directory(&path, wanted).is_ok());
            count(remove(&path).is_ok());
        }
        for path in [base.join("d"), base.join("d/d"), base.join("d/d/e")] {
            count(make_directory(&path, wanted, Parents::Make).is_ok());
        }
        count(remove_tree(&base.join("d"), &mut never_stop).is_ok());
        count(sweep(&base, &mut never_stop).is_ok());
    }
    successes
}

#[test]
fn nothing_lands_outside_while_an_attacker_swaps_the_path() {
    if !is_root() {
        return;
    }
    let field = Field::new();
    let mut attacker = field.attack();
    let mut successes = 0;
    for round in 0..ROUNDS {
        successes += work(&field);
        if round % 100 == 0 {
            assert!(field.is_intact(), "after {round} rounds: {:#?}", survey(&field.scratch.at("outside")));
        }
    }
    assert!(attacker.is_alive());
    assert!(successes > ROUNDS, "hardly anything was done: {successes}");
    assert!(field.is_intact(), "{:#?}", survey(&field.scratch.at("outside")));
}

/// The attack is a real one: writing by path falls for it.
#[test]
fn writing_by_path_would_land_outside() {
    if !is_root() {
        return;
    }
    let field = Field::new();
    let _attacker = field.attack();
    let hit = (0..200_000).any(|_| {
        let _ = fs::write(field.scratch.at("attacker/f"), "written");
        let _ = fs::write(field.scratch.at("attacker/d/f"), "written");
        fs::read(field.scratch.at("outside/d/f")).unwrap() == b"written"
    });
    assert!(hit, "the attacker never got through");
}
