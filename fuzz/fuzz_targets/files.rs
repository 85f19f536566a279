//! Any sequence of file operations: each succeeds as predicted or changes nothing, and leaves no temporary file.
#![no_main]

use std::{
    fs,
    path::{Path, PathBuf},
};

use ccm_files::{
    Attributes, FileKind, InTheWay, Intent, Parents, Predicted, Prediction, inspect, is_temporary_name,
    make_directory, make_link, names, remove, replace,
};
use libfuzzer_sys::fuzz_target;

const NAMES: [&str; 8] = ["a", "b", "a/c", "b/c", "a/c/d", "b/c/d", "a/c/d/e", "f"];

// Two bytes are one operation: its kind and path, and its content.
fuzz_target!(|bytes: &[u8]| {
    let base = Path::new("/dev/shm").join(format!("ccm-fuzz-files-{}", std::process::id()));
    fs::create_dir_all(&base).expect("a directory in memory");
    for operation in bytes.chunks_exact(2).take(32) {
        let path = base.join(NAMES[usize::from(operation[0] >> 5)]);
        attempt(operation[0] & 3, &path, operation[1]);
        assert_no_temporary_files(&base);
    }
    fs::remove_dir_all(&base).expect("the entries of this run");
});

/// Predicts one operation, attempts it, and compares both with the machine.
fn attempt(kind: u8, path: &Path, value: u8) {
    let before = inspect(path).ok().flatten();
    // Nothing is removed that does not exist.
    if kind == 3 && before.is_none() {
        return;
    }
    let content = vec![value; usize::from(value)];
    let attributes = Attributes::own(if value & 1 == 0 { 0o755 } else { 0o700 });
    let target = PathBuf::from(NAMES[usize::from(value & 7)]);
    let intent = match kind {
        0 => Intent::Write(attributes),
        1 => Intent::MakeDirectory(attributes, Parents::Make),
        2 => Intent::MakeLink(target.clone()),
        _ => Intent::Remove,
    };
    let mut prediction = Prediction::default();
    let predicted = prediction.simulate(path, intent, None);
    let done = match kind {
        0 => replace(path, attributes, |out| out.write_all(&content)),
        1 => make_directory(path, attributes, Parents::Make),
        2 => make_link(path, &target, InTheWay::Stays, &mut || Ok(())),
        _ => remove(path),
    };
    let after = inspect(path).ok().flatten();
    if let Err(error) = done {
        let kinds = [&before, &after].map(|entry| entry.as_ref().map(|entry| entry.kind.clone()));
        assert_eq!(kinds[0], kinds[1], "{error}: an operation that failed changed {}", path.display());
        return;
    }
    assert!(predicted.is_ok(), "the prediction rejects a change of {}", path.display());
    let expected = match prediction.inspect(path) {
        Ok(Some(Predicted::Entry(found))) => Some(found.entry.kind),
        _ => None,
    };
    assert_eq!(after.map(|entry| entry.kind), expected, "{}", path.display());
    if expected == Some(FileKind::File) && kind == 0 {
        assert_eq!(fs::read(path).expect("the written file"), content);
    }
}

fn assert_no_temporary_files(directory: &Path) {
    for name in names(directory).expect("a directory") {
        assert!(!is_temporary_name(&name), "{name:?} is left in {}", directory.display());
        let path = directory.join(name);
        if inspect(&path).ok().flatten().is_some_and(|entry| entry.kind == FileKind::Directory) {
            assert_no_temporary_files(&path);
        }
    }
}
