//! Facts that people wrote down.

use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt, chown, symlink},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use rustix::process::geteuid;

use super::{Known, Options};
use crate::{document::pair, host::interrupt::Interrupt};

/// A directory that is removed when the test is over.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ccm-facts-{}-{number}", std::process::id());
        let path = std::env::temp_dir().canonicalize().unwrap().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(self, name: &str, content: &str) -> Self {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        self
    }

    fn known(&self, folders: &[&str]) -> Known {
        let folders = folders.iter().map(|name| self.0.join(name)).collect();
        Known::of(&self.0.join("machine"), folders, Vec::new())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn later_files_and_folders_win_and_maps_merge() {
    let folder = Folder::new()
        .file("a/facts.json", r#"{"role": "json", "site": {"x": 1, "y": 1}, "n": 1}"#)
        .file("a/facts.yaml", "role: yaml\nsite: { y: 2 }\n")
        .file("a/facts.d/10-first.yaml", "role: first\nlist: [1, 2]\n")
        .file("a/facts.d/20-second.json", r#"{"role": "second", "list": [3]}"#)
        .file("b/facts.yaml", "site: { z: 3 }\n");
    let known = folder.known(&["a", "b", "missing"]);
    assert_eq!(known.text("role"), "second");
    assert_eq!(known.json("site"), r#"{"x":1,"y":2,"z":3}"#);
    assert_eq!(known.json("list"), "[3]");
    assert_eq!(known.json("n"), "1");
    assert_eq!(known.warnings(), Vec::<String>::new());
}

#[test]
fn own_facts_go_over_those_of_the_machine() {
    let folder =
        Folder::new().file("a/facts.yaml", "host: { info: { hostname: mine, rack: 7 } }\nfqdn: other\n");
    let machine = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/facts/debian");
    let known = Known::of(&machine, vec![folder.0.join("a")], Vec::new());
    assert_eq!(known.text("host.info.hostname"), "mine");
    assert_eq!(known.json("host.info.rack"), "7");
    assert_eq!(known.text("host.info.platformFamily"), "debian");
    assert_eq!(known.text("hostname"), "web1");
    assert_eq!(known.text("fqdn"), "other");
}

#[test]
fn given_facts_go_over_all_in_their_order() {
    let folder = Folder::new().file("a/facts.yaml", "role: own\nsite: { x: 1 }\n");
    let given = ["role=first", "role=second", "site.y=2"]
        .map(|text| pair(text).unwrap().nested().as_map().unwrap().clone());
    let known = Known::of(&folder.0, vec![folder.0.join("a")], given.to_vec());
    assert_eq!(known.text("role"), "second");
    assert_eq!(known.json("site"), r#"{"x":1,"y":2}"#);
}

#[test]
fn other_names_and_links_are_ignored() {
    let folder = Folder::new()
        .file("target.yaml", "linked: true\n")
        .file("a/facts.yml", "yml: true\n")
        .file("a/facts.d/note.txt", "note: true\n")
        .file("a/facts.d/sub.yaml/facts.yaml", "sub: true\n")
        .file("elsewhere/x.yaml", "elsewhere: true\n");
    symlink(folder.0.join("target.yaml"), folder.0.join("a/facts.yaml")).unwrap();
    symlink(folder.0.join("target.yaml"), folder.0.join("a/facts.d/link.yaml")).unwrap();
    fs::create_dir(folder.0.join("b")).unwrap();
    symlink(folder.0.join("elsewhere"), folder.0.join("b/facts.d")).unwrap();
    let known = folder.known(&["a", "b"]);
    for name in ["linked", "yml", "note", "sub", "elsewhere"] {
        assert!(known.facts.member(name).is_none(), "{name}");
    }
    assert_eq!(known.warnings(), Vec::<String>::new());
}

#[test]
fn a_broken_file_is_passed_over_and_named_with_the_place() {
    for (name, content, place) in [
        ("facts.yaml", "a: 1\nb: [1,\n", "facts.yaml:"),
        ("facts.json", "{\"a\": 1,\n \"b\" 2}", "facts.json:2:"),
        ("facts.d/list.yaml", "- a\n- b\n", "list.yaml:1:1: facts ignored: facts have to be a map"),
        ("facts.d/twice.yaml", "a: 1\na: 2\n", "twice.yaml:2:1"),
    ] {
        let folder =
            Folder::new().file(&format!("a/{name}"), content).file("a/facts.d/zz.yaml", "good: yes\n");
        let known = folder.known(&["a"]);
        assert_eq!(known.text("good"), "yes");
        assert!(known.facts.member("a").is_none(), "{name}");
        let warnings = known.warnings();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains(place), "{warnings:?}");
    }
}

#[test]
fn bytes_that_are_no_text_are_named() {
    let folder = Folder::new().file("a/facts.yaml", "");
    fs::write(folder.0.join("a/facts.yaml"), b"a: 1\nb: \xff\n").unwrap();
    let known = folder.known(&["a"]);
    assert!(known.facts.member("a").is_none());
    assert!(known.warnings()[0].contains("facts.yaml:2:4: not UTF-8"), "{:?}", known.warnings());
}

#[test]
fn empty_files_hold_no_facts() {
    let folder = Folder::new().file("a/facts.yaml", "").file("a/facts.d/x.yaml", "# nothing\n");
    let known = folder.known(&["a"]);
    assert!(known.facts.member("a").is_none());
    assert_eq!(known.warnings(), Vec::<String>::new());
}

#[test]
fn a_file_that_others_may_write_is_ignored() {
    for mode in [0o664, 0o646, 0o666] {
        let folder = Folder::new().file("a/facts.yaml", "bad: true\n");
        fs::set_permissions(folder.0.join("a/facts.yaml"), fs::Permissions::from_mode(mode)).unwrap();
        let known = folder.known(&["a"]);
        assert!(known.facts.member("bad").is_none(), "{mode:o}");
        assert!(known.warnings()[0].contains("chmod go-w"), "{:?}", known.warnings());
    }
}

#[test]
fn a_file_of_somebody_else_is_ignored() {
    if !geteuid().is_root() && !crate::skip::skip("needs root") {
        return;
    }
    let folder = Folder::new().file("a/facts.yaml", "bad: true\n");
    chown(folder.0.join("a/facts.yaml"), Some(65534), None).unwrap();
    let known = folder.known(&["a"]);
    assert!(known.facts.member("bad").is_none());
    let warnings = known.warnings();
    assert!(warnings[0].contains("belongs to uid 65534"), "{warnings:?}");
}

#[test]
fn files_are_read_once_and_each_warning_is_given_once() {
    let folder = Folder::new().file("a/facts.yaml", "role: web\n").file("a/facts.d/bad.yaml", "[");
    let known = folder.known(&["a"]);
    assert_eq!(known.text("role"), "web");
    fs::remove_dir_all(folder.0.join("a")).unwrap();
    assert_eq!(known.text("role"), "web");
    assert_eq!(known.warnings().len(), 1);
    assert_eq!(known.warnings(), Vec::<String>::new());
}

/// Facts of a directory whose programs are run.
fn with_programs(folder: &Folder) -> Known {
    let interrupt = Interrupt::install().unwrap();
    let facts_d = folder.0.join("a/facts.d");
    for entry in fs::read_dir(&facts_d).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none() {
            // An attacker might have moved it.
            let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o755));
        }
    }
    Known::with(Options {
        root: folder.0.join("machine"),
        folders: vec![folder.0.join("a")],
        given: Vec::new(),
        limit: 64 << 20,
        programs: Some((facts_d, interrupt)),
    })
}

#[test]
fn programs_print_facts_that_lie_under_what_people_wrote() {
    if !geteuid().is_root() && !crate::skip::skip("needs root") {
        return;
    }
    let folder = Folder::new()
        .file(
            "a/facts.d/10-rack",
            "#!/bin/sh\necho '{\"rack\": {\"row\": 1, \"unit\": 7}, \"hostname\": \"no\"}'\n",
        )
        .file("a/facts.d/20-yaml", "#!/bin/sh\nprintf 'rack:\\n  row: 2\\nversion: 1.10\\n'\n")
        .file("a/facts.d/notes.txt", "not a program\n")
        .file("a/facts.yaml", "rack: { site: ams }\n");
    let known = with_programs(&folder);
    assert_eq!(known.json("rack"), r#"{"row":2,"unit":7,"site":"ams"}"#);
    assert_ne!(known.text("hostname"), "no", "facts of the machine stay");
    assert_eq!(known.warnings(), Vec::<String>::new());
}

#[test]
fn a_program_that_fails_is_a_warning_and_the_others_count() {
    if !geteuid().is_root() && !crate::skip::skip("needs root") {
        return;
    }
    let folder = Folder::new()
        .file("a/facts.d/10-fails", "#!/bin/sh\necho broken >&2\nexit 3\n")
        .file("a/facts.d/20-prints", "#!/bin/sh\necho '- no map'\n")
        .file("a/facts.d/30-strange", "#!/bin/sh\necho 'a: 1'\n")
        .file("a/facts.d/40-good", "#!/bin/sh\necho 'good: true'\n");
    chown(folder.0.join("a/facts.d/30-strange"), Some(65534), None).unwrap();
    let known = with_programs(&folder);
    assert_eq!(known.json("good"), "true");
    let warnings = known.warnings();
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    assert!(warnings[0].contains("10-fails ended with exit status 3: broken"), "{warnings:?}");
    assert!(warnings[1].contains("20-prints:1:1: facts ignored: facts have to be a map"), "{warnings:?}");
    assert!(warnings[2].contains("belongs to uid 65534"), "{warnings:?}");
}

#[test]
fn programs_of_a_directory_that_another_user_controls_are_not_run() {
    if !geteuid().is_root() && !crate::skip::skip("needs root") {
        return;
    }
    // The attacker exchanges root's program for another one as fast as possible.
    let swap = "while :; do cp -p ../evil facts.d/new; mv facts.d/good kept; mv facts.d/new facts.d/good; mv kept facts.d/good; done";
    for (owner, mode) in [(Some(65534), 0o755), (None, 0o777)] {
        let folder = Folder::new()
            .file("a/facts.d/good", "#!/bin/sh\necho 'good: true'\n")
            .file("evil", "#!/bin/sh\nid -u >>\"$(dirname \"$0\")/ran\"; echo 'evil: true'\n");
        for directory in ["a", "a/facts.d"] {
            chown(folder.0.join(directory), owner, None).unwrap();
            fs::set_permissions(folder.0.join(directory), fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::set_permissions(folder.0.join("evil"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(folder.0.join("a/facts.d/good"), fs::Permissions::from_mode(0o755)).unwrap();
        let mut attacker = std::process::Command::new("sh")
            .args(["-c", swap])
            .current_dir(folder.0.join("a"))
            .stderr(std::process::Stdio::null())
            .uid(65534)
            .gid(65534)
            .process_group(0)
            .spawn()
            .unwrap();
        let mut found = Vec::new();
        for _ in 0..100 {
            let known = with_programs(&folder);
            found.push((known.facts.member("good"), known.facts.member("evil"), known.warnings()));
        }
        let group = rustix::process::Pid::from_child(&attacker);
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
        attacker.wait().unwrap();
        for (good, evil, warnings) in found {
            assert!(good.is_none() && evil.is_none(), "{warnings:?}");
            assert!(warnings[0].contains(folder.0.join("a").to_str().unwrap()), "{warnings:?}");
        }
    }
}

#[test]
fn programs_are_executed_by_the_descriptor_that_was_checked() {
    if !geteuid().is_root() && !crate::skip::skip("needs root") {
        return;
    }
    let folder = Folder::new().file("a/facts.d/own", "#!/bin/sh\necho \"name: $0\"\n");
    let known = with_programs(&folder);
    let expected = format!("/proc/{}/fd/", std::process::id());
    assert!(known.text("name").starts_with(&expected), "{}", known.text("name"));
    assert_eq!(known.warnings(), Vec::<String>::new());
}

#[test]
fn a_fact_is_gathered_once_and_not_before() {
    let folder = Folder::new().file("machine/proc/meminfo", "MemTotal: 8 kB\nSwapTotal: 4 kB\n");
    let known = folder.known(&[]);
    assert_eq!(known.number("memory.virtual.total"), 8192);
    let folder = folder
        .file("machine/proc/meminfo", "MemTotal: 9 kB\nSwapTotal: 1 kB\n")
        .file("machine/proc/stat", "btime 7\n");
    assert_eq!(known.number("memory.virtual.total"), 8192, "kept");
    assert_eq!(known.number("memory.swap.info.total"), 4096, "from the same report");
    assert_eq!(known.number("host.info.bootTime"), 7, "not read before");
    drop(folder);
}
