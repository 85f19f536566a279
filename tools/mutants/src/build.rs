//! A copy of the project with all changes in it, built once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::change::{self, Change};
use crate::source::{Switched, switch};
use crate::store::Store;

/// What was built.
pub(crate) struct Prepared {
    /// The changes that are in it, by number.
    pub(crate) changes: Vec<(u32, Change)>,
    /// The programs with tests.
    pub(crate) programs: Vec<PathBuf>,
    /// How many changes the compiler refused, and for how many there is no switch.
    pub(crate) refused: usize,
    pub(crate) without: usize,
}

impl Prepared {
    /// The highest number of a change.
    pub(crate) fn highest(&self) -> usize {
        self.changes.iter().map(|(number, _)| *number as usize).max().unwrap_or(0)
    }
}

/// Builds a copy of the project that has every change in it that compiles.
pub(crate) fn prepare(project: &Path, list: &Path, store: &Store) -> Prepared {
    let changes: Vec<(u32, Change)> = (1..).zip(change::read(list)).collect();
    copy(project, &store.tree());
    let (mut refused, mut without) = (BTreeSet::new(), BTreeSet::new());
    let programs = loop {
        let kept = changes.iter().filter(|(number, _)| !refused.contains(number));
        let files = rewrite(project, store, kept);
        without.extend(files.values().flat_map(|file| file.without.iter().copied()));
        match build(store, &files) {
            Ok(programs) => break programs,
            Err(more) => refused.extend(more),
        }
    };
    let (refused_count, without_count) = (refused.len(), without.len());
    let kept =
        changes.into_iter().filter(|(number, _)| !refused.contains(number) && !without.contains(number));
    Prepared { changes: kept.collect(), programs, refused: refused_count, without: without_count }
}

/// Copies what git does not ignore. All of it is new, also where it takes the place of what was switched for other changes.
fn copy(project: &Path, tree: &Path) {
    let _ = fs::remove_dir_all(tree);
    fs::create_dir_all(tree).expect("a folder for the copy");
    let script =
        "git -C \"$0\" ls-files -coz --exclude-standard | tar -C \"$0\" --null -T - -c | tar -C \"$1\" -xm";
    let done = Command::new("sh").args(["-ec", script]).arg(project).arg(tree).status().expect("a shell");
    assert!(done.success(), "the project cannot be copied");
    // The NATS server that tests talk to.
    fs::create_dir(tree.join("target")).expect("a folder");
    std::os::unix::fs::symlink(project.join("target/nats"), tree.join("target/nats")).expect("a link");
    let switch = project.join("tools/mutants/switch");
    let dependency = format!("\n[dependencies.ccm-mutants-switch]\npath = {switch:?}\n");
    append(&tree.join("Cargo.toml"), &dependency);
    append(&tree.join("Cargo.toml"), "[profile.dev.package.ccm-mutants-switch]\nopt-level = 3\n");
    for package in fs::read_dir(tree.join("crates")).expect("the crates").map(Result::unwrap) {
        append(&package.path().join("Cargo.toml"), &dependency);
    }
}

fn append(path: &Path, text: &str) {
    let mut content = fs::read_to_string(path).expect("a manifest");
    content += text;
    fs::write(path, content).expect("the copy of a manifest");
}

/// Writes every file with its changes.
fn rewrite<'c>(
    project: &Path,
    store: &Store,
    changes: impl Iterator<Item = &'c (u32, Change)>,
) -> BTreeMap<String, Switched> {
    let mut by_file = BTreeMap::<&str, Vec<(u32, &Change)>>::new();
    for (number, change) in changes {
        by_file.entry(&change.file).or_default().push((*number, change));
    }
    let mut files = BTreeMap::new();
    for (file, changes) in by_file {
        let text = fs::read_to_string(project.join(file)).expect("a source file");
        let switched = switch(&text, &changes);
        let path = store.tree().join(file);
        if fs::read_to_string(&path).ok().as_ref() != Some(&switched.text) {
            fs::write(path, &switched.text).expect("the copy of a source file");
        }
        files.insert(file.to_owned(), switched);
    }
    files
}

/// Builds the copy and returns the programs with its tests, or the changes that the compiler refuses.
fn build(store: &Store, files: &BTreeMap<String, Switched>) -> Result<Vec<PathBuf>, BTreeSet<u32>> {
    let output = Command::new("cargo")
        .args(["test", "--no-run", "--workspace", "--lib", "--test", "ccm", "--message-format=json"])
        .current_dir(store.tree())
        .env("CARGO_TARGET_DIR", store.target())
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("RUSTFLAGS", "--cap-lints=allow")
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo");
    let messages = String::from_utf8(output.stdout).expect("JSON");
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let (mut refused, mut programs) = (BTreeSet::new(), Vec::new());
    for message in messages {
        if let Some(program) = message["executable"].as_str().filter(|_| message["profile"]["test"] == true) {
            programs.push(PathBuf::from(program));
        }
        if message["message"]["level"] == "error" {
            refused.extend(blamed(&message["message"], files));
        }
    }
    assert!(
        output.status.success() || !refused.is_empty(),
        "the copy does not compile, and no change is to blame"
    );
    if output.status.success() { Ok(programs) } else { Err(refused) }
}

/// The changes that an error of the compiler is about: those of the narrowest place that one of its spans lies in.
fn blamed(message: &Value, files: &BTreeMap<String, Switched>) -> Vec<u32> {
    let spans = message["spans"].as_array().into_iter().flatten();
    let owners = spans.filter_map(|span| {
        let file = files.get(span["file_name"].as_str()?)?;
        let at = |key: &str| usize::try_from(span[key].as_u64()?).ok();
        let (start, end) = (at("byte_start")?, at("byte_end")?);
        let around = |(range, numbers): &&(Range<usize>, Vec<u32>)| {
            range.start <= start && end <= range.end && !numbers.is_empty()
        };
        let (_, numbers) = file.owners.iter().find(around)?;
        Some((span["is_primary"] == true, numbers.clone()))
    });
    let owners: Vec<_> = owners.collect();
    let primary = owners.iter().find(|(is_primary, _)| *is_primary).or(owners.first());
    primary.map(|(_, numbers)| numbers.clone()).unwrap_or_default()
}
