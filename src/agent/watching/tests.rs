//! What is named when something happens to directories and files.

use std::fs;

use super::*;

struct Trial {
    folder: PathBuf,
    watching: Watching,
}

impl Trial {
    fn new(name: &str, files: &[&str]) -> Self {
        let folder = std::env::temp_dir().join(format!("ccm-watching-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let mut trial = Self { folder, watching: Watching::new().unwrap() };
        trial.take_in(files);
        trial
    }

    /// Takes in the resources of a manifest, as every run does.
    fn take_in(&mut self, files: &[&str]) {
        let watches: Vec<_> = files
            .iter()
            .map(|file| Watches { paths: vec![self.folder.join(file)], ..Watches::default() })
            .collect();
        let named = files.iter().zip(&watches).map(|(file, watches)| {
            (Reference { kind: "file".to_owned(), name: (*file).to_owned() }, watches)
        });
        self.watching.set(0, &self.folder, named);
    }

    fn drifted(&mut self, own: &OwnWrites) -> Vec<String> {
        let drift = self.watching.drift(own);
        assert!(!drift.anything);
        drift.subjects.into_iter().map(|subject| subject.resource.name).collect()
    }

    /// Waits until one has drifted: a test beside this one that forks holds open what was written for a moment.
    fn drifts(&mut self, own: &OwnWrites, name: &str) {
        let attempt = |_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            self.drifted(own).iter().any(|found| found == name)
        };
        assert!((0..60_000).any(attempt), "{name} does not drift");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn only_what_depends_on_an_event_is_named() {
    let mut trial = Trial::new("named", &["a", "b"]);
    let none = OwnWrites::default();
    assert!(trial.drifted(&none).is_empty());
    fs::write(trial.path("other"), "").unwrap();
    assert!(trial.drifted(&none).is_empty());
    fs::write(trial.path("a"), "").unwrap();
    trial.drifts(&none, "a");
    fs::write(trial.path("new"), "").unwrap();
    fs::rename(trial.path("new"), trial.path("b")).unwrap();
    trial.drifts(&none, "b");
    fs::remove_file(trial.path("a")).unwrap();
    trial.drifts(&none, "a");
}

#[test]
fn a_source_beside_the_manifest_that_changes_is_no_drift() {
    let mut trial = Trial::new("source", &[]);
    let watches =
        Watches { paths: vec![trial.path("managed"), PathBuf::from("files/a")], ..Watches::default() };
    let reference = Reference { kind: "file".to_owned(), name: "managed".to_owned() };
    let folder = trial.folder.clone();
    fs::create_dir(folder.join("files")).unwrap();
    trial.watching.set(0, &folder, [(reference.clone(), &watches)].into_iter());
    fs::write(folder.join("files/a"), "").unwrap();
    let subject = Subject { manifest: 0, resource: reference };
    let attempt = |_| {
        std::thread::sleep(std::time::Duration::from_millis(1));
        let drift = trial.watching.drift(&OwnWrites::default());
        assert!(drift.subjects.is_empty(), "{drift:?}");
        drift.renewed.contains(&subject)
    };
    assert!((0..60_000).any(attempt), "the source is not noticed");
    fs::write(folder.join("managed"), "").unwrap();
    trial.drifts(&OwnWrites::default(), "managed");
}

#[test]
fn directories_that_come_and_go_are_followed() {
    let mut trial = Trial::new("moved", &["d/e/file", "f"]);
    let none = OwnWrites::default();
    fs::create_dir_all(trial.path("d/e")).unwrap();
    trial.drifts(&none, "d/e/file");
    // What comes with a directory is seen as well.
    trial.drifted(&none);
    fs::write(trial.path("d/e/file"), "").unwrap();
    trial.drifts(&none, "d/e/file");
    fs::rename(trial.path("d"), trial.path("away")).unwrap();
    trial.drifts(&none, "d/e/file");
    fs::create_dir_all(trial.path("d/e")).unwrap();
    trial.drifts(&none, "d/e/file");
    trial.drifted(&none);
    fs::write(trial.path("d/e/file"), "again").unwrap();
    trial.drifts(&none, "d/e/file");
}

#[test]
fn a_link_on_the_way_that_comes_to_lead_elsewhere_is_followed() {
    let mut trial = Trial::new("link", &[]);
    let none = OwnWrites::default();
    for folder in ["one", "two"] {
        fs::create_dir(trial.path(folder)).unwrap();
    }
    std::os::unix::fs::symlink("one", trial.path("link")).unwrap();
    (0..3).for_each(|_| trial.take_in(&["link/file"]));
    fs::write(trial.path("one/file"), "").unwrap();
    trial.drifts(&none, "link/file");
    std::os::unix::fs::symlink("two", trial.path("new")).unwrap();
    fs::rename(trial.path("new"), trial.path("link")).unwrap();
    trial.drifts(&none, "link/file");
    trial.take_in(&["link/file"]);
    fs::write(trial.path("two/file"), "").unwrap();
    trial.drifts(&none, "link/file");
}

#[test]
fn what_the_kernel_does_not_tell_of_is_named_once() {
    let mut trial = Trial::new("unwatchable", &["a", "/proc/self/a", "/proc/sys/b"]);
    let named = |watching: &mut Watching| -> Vec<(PathBuf, String)> {
        let all = watching.new_unwatchable().iter();
        all.map(|one| (one.path.clone(), one.why.to_string())).collect()
    };
    let found = named(&mut trial.watching);
    let [(path, why)] = found.as_slice() else { panic!("{found:?}") };
    assert!(path.starts_with("/proc") && why.ends_with("others change, too: proc"), "{found:?}");
    trial.watching.renew();
    assert!(named(&mut trial.watching).is_empty());
}

#[test]
fn own_writes_wake_nobody_and_others_after_them_do() {
    let mut trial = Trial::new("own", &["a"]);
    fs::write(trial.path("a"), "ours").unwrap();
    let mut own = OwnWrites::default();
    own.note(&Watches { paths: vec!["a".into()], ..Watches::default() }, &trial.folder);
    assert!(trial.drifted(&own).is_empty());
    fs::write(trial.path("a"), "somebody else's").unwrap();
    trial.drifts(&own, "a");
    fs::remove_file(trial.path("a")).unwrap();
    own.note(&Watches { paths: vec!["a".into()], ..Watches::default() }, &trial.folder);
    assert!(trial.drifted(&own).is_empty());
}
