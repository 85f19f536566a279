//! The store, on disk.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::PathBuf,
};

use super::{limits::Pruned, *};

struct State(PathBuf);

impl State {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().canonicalize().unwrap();
        let path = path.join(format!("ccm-history-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn directory(&self) -> StateDirectory {
        StateDirectory::at(self.0.join("state"))
    }

    fn recorder(&self, run: &str) -> Recorder {
        let start =
            Start { run: run.to_owned(), start: "2026-05-06T07:08:09Z".to_owned(), ..Start::default() };
        Recorder::new(self.directory(), start)
    }

    fn log(&self) -> Log {
        self.directory().history().unwrap().unwrap().read().unwrap()
    }

    fn month(&self) -> PathBuf {
        self.0.join("state/history/2026-05.jsonl")
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn change(resource: &str) -> Change {
    Change { resource: resource.to_owned(), action: "created the file".to_owned(), ..Change::default() }
}

fn end(changed: usize) -> End {
    End { changed, total: 5, ..End::default() }
}

#[test]
fn unchanged_run_costs_one_line() {
    let state = State::new("unchanged");
    state.recorder("a").finish(end(0)).unwrap();
    assert_eq!(fs::read_to_string(state.month()).unwrap().lines().count(), 1);
    assert_eq!(state.log().runs[0].end.as_ref().unwrap().total, 5);
}

#[test]
fn changes_are_read_with_their_completion() {
    let state = State::new("changes");
    let mut recorder = state.recorder("a");
    let mut changes = [change("file#/a"), change("file#/b")];
    recorder.record(&mut changes).unwrap();
    recorder.complete(Done { number: changes[1].number, ..Done::default() }).unwrap();
    let log = state.log();
    assert!(log.runs[0].end.is_none(), "it is not finished");
    let completed: Vec<bool> = log.runs[0].changes.iter().map(|(_, done)| done.is_some()).collect();
    assert_eq!(completed, [false, true]);
    recorder.finish(end(1)).unwrap();
    assert_eq!(state.log().runs[0].end.as_ref().unwrap().changed, 1);
    assert_eq!(state.directory().history().unwrap().unwrap().list().unwrap().runs[0].changes.len(), 0);
}

#[test]
fn torn_line_is_reported_and_the_next_record_begins_on_a_new_line() {
    let state = State::new("torn");
    state.recorder("a").finish(end(0)).unwrap();
    let mut file = OpenOptions::new().append(true).open(state.month()).unwrap();
    file.write_all(b"{\"v\":1,\"line\":\"beg").unwrap();
    state.recorder("b").finish(end(0)).unwrap();
    let log = state.log();
    assert_eq!(log.runs.iter().map(|run| run.start.run.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(log.damage.len(), 1);
    assert!(log.damage[0].at.ends_with("2026-05.jsonl:2"), "{:?}", log.damage);
}

#[test]
fn newer_record_is_listed_and_refused_by_name() {
    let state = State::new("newer");
    state.recorder("a").finish(end(1)).unwrap();
    let line =
        "{\"v\":9,\"line\":\"begin\",\"run\":\"zz\",\"start\":\"2027-01-01T00:00:00Z\",\"kind\":\"dream\"}\n";
    fs::write(state.0.join("state/history/2027-01.jsonl"), line).unwrap();
    let log = state.log();
    assert_eq!(log.runs[1].newer, Some(9));
    assert!(log.find("zz").unwrap_err().contains("format 9"));
    assert_eq!(log.find("last").unwrap().start.run, "a");
    assert!(log.damage.is_empty());
}

#[test]
fn runs_are_found_by_unambiguous_beginnings() {
    let state = State::new("find");
    for run in ["ab1", "ab2", "c"] {
        state.recorder(run).finish(end(1)).unwrap();
    }
    let log = state.log();
    assert_eq!(log.find("c").unwrap().start.run, "c");
    assert_eq!(log.find("ab2").unwrap().start.run, "ab2");
    for (name, reason) in [("ab", "several runs"), ("d", "no run"), ("", "no run")] {
        assert!(log.find(name).unwrap_err().contains(reason), "{name}");
    }
}

#[test]
fn snapshots_restore_files_links_and_trees() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let state = State::new("snapshots");
    let tree = state.0.join("tree");
    fs::create_dir_all(tree.join("inner")).unwrap();
    fs::write(tree.join("inner/file"), "content").unwrap();
    fs::set_permissions(tree.join("inner/file"), fs::Permissions::from_mode(0o640)).unwrap();
    symlink("inner/file", tree.join("link")).unwrap();
    let store = state.directory().make_history().unwrap();
    let objects = store.objects(Secrecy::Public).unwrap();
    let camera = Camera { objects: &objects, keeping: Keeping::UpTo(LARGEST), tick: &|| Ok(()) };
    let before = camera.take(&tree, Depth::Tree).unwrap();
    assert_eq!(before.kept, Kept::Copy);
    fs::write(tree.join("inner/file"), "other").unwrap();
    fs::remove_file(tree.join("link")).unwrap();
    fs::write(tree.join("new"), "").unwrap();
    let look = Camera { keeping: Keeping::Nothing, ..camera };
    let now = look.take(&tree, Depth::Tree).unwrap();
    assert!(!now.agrees_with(&before));
    before.restore(&tree, &now, &objects, &mut || Ok(())).unwrap();
    assert!(look.take(&tree, Depth::Tree).unwrap().agrees_with(&before));
    assert_eq!(fs::read_to_string(tree.join("link")).unwrap(), "content");
    fs::remove_dir_all(&tree).unwrap();
    before.restore(&tree, &Snapshot::default(), &objects, &mut || Ok(())).unwrap();
    assert!(look.take(&tree, Depth::Tree).unwrap().agrees_with(&before));
}

#[test]
fn large_files_are_kept_only_on_request() {
    let state = State::new("large");
    let path = state.0.join("file");
    fs::write(&path, vec![7; 3000]).unwrap();
    let objects = state.directory().make_history().unwrap().objects(Secrecy::Public).unwrap();
    let camera = |keeping| Camera { objects: &objects, keeping, tick: &|| Ok(()) };
    let small = camera(Keeping::UpTo(2999)).take(&path, Depth::Content).unwrap();
    assert!(matches!(small.kept, Kept::Not(_)) && small.digest.is_none(), "{small:?}");
    assert!(objects.all().unwrap().is_empty());
    let kept = camera(Keeping::UpTo(3000)).take(&path, Depth::Content).unwrap();
    assert!(kept.kept == Kept::Copy && kept.digest.is_some(), "{kept:?}");
    assert!(!kept.agrees_with(&small), "an unknown content agrees with no other");
    assert_eq!(objects.all().unwrap().len(), 1);
}

#[test]
fn damaged_copies_are_reported_and_never_restored() {
    let state = State::new("damaged");
    let path = state.0.join("file");
    fs::write(&path, "content").unwrap();
    let store = state.directory().make_history().unwrap();
    let objects = store.objects(Secrecy::Public).unwrap();
    let camera = Camera { objects: &objects, keeping: Keeping::UpTo(LARGEST), tick: &|| Ok(()) };
    let before = camera.take(&path, Depth::Content).unwrap();
    assert!(store.verify().unwrap().1.is_empty());
    let copy = state.0.join("state/history/objects").join(before.digest.as_ref().unwrap());
    fs::write(copy, "c0ntent").unwrap();
    assert_eq!(store.verify().unwrap().1.len(), 1);
    fs::write(&path, "other").unwrap();
    let look = Camera { keeping: Keeping::Nothing, ..camera };
    let now = look.take(&path, Depth::Content).unwrap();
    assert!(before.restore(&path, &now, &objects, &mut || Ok(())).is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), "other");
}

#[test]
fn pruning_removes_the_oldest_copies_first_and_keeps_their_records() {
    let state = State::new("prune");
    let store = state.directory().make_history().unwrap();
    for run in ["a", "b"] {
        let path = state.0.join(run);
        fs::write(&path, vec![run.as_bytes()[0]; 1000]).unwrap();
        let mut recorder = state.recorder(run);
        let objects = recorder.objects(Secrecy::Public).unwrap();
        let camera = Camera { objects, keeping: Keeping::UpTo(LARGEST), tick: &|| Ok(()) };
        let before = camera.take(&path, Depth::Content).unwrap();
        let paths = vec![PathBefore { path: to_text(path.as_os_str()), before, intended: None }];
        recorder.record(&mut [Change { paths, ..change("file#x") }]).unwrap();
        recorder.finish(end(1)).unwrap();
    }
    let limits = Limits { size: 1500, ..Limits::default() };
    let limits = Limits { keep: "9999w,10".parse().unwrap(), ..limits };
    let pruned = store.prune(limits, &[]).unwrap();
    assert_eq!(pruned, Pruned { runs: 0, copies: 1, bytes: 1000 });
    let log = state.log();
    let objects = store.objects(Secrecy::Public).unwrap();
    let is_kept = |run: usize| {
        log.runs[run].changes[0].0.paths[0].before.not_kept(&Snapshot::default(), &objects).is_none()
    };
    assert_eq!((is_kept(0), is_kept(1)), (false, true));
    assert_eq!(store.prune(Limits { size: 0, ..limits }, &["b".to_owned()]).unwrap().copies, 0);
}
