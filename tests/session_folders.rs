//! Folders of sessions: where they may be, who may have touched them, and how long they stay.

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, chown, symlink},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::support::{NOBODY, Outcome, Tree, World, is_root, sh, wait_until};

const STORE: &str = "CCM_SESSION_STORE";

/// Ensures a file in a session.
fn ensure(world: &World, store: &Path) -> Outcome {
    let arguments = ["ensure", "file", "$W/x", "--content", "x", "--owner", "$UID", "--group", "$GID"];
    let call = world.ccm(arguments.iter().chain(&["--mode", "0644"]));
    call.env(STORE, store.display().to_string()).run()
}

fn new_in(world: &World, folder: &Path) -> Outcome {
    world.ccm(["session", "new"]).env("TMPDIR", folder.display().to_string()).run()
}

/// A session made below the world's own folder.
fn session(world: &World, name: &str) -> PathBuf {
    let folder = world.base().join(name);
    world.ccm(["session", "new", "--directory", &folder.display().to_string()]).run().exits(0);
    folder
}

/// A shell that another user runs until the test is over.
struct Nobody(Child);

impl Nobody {
    fn runs(script: &str, folder: &Path) -> Self {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).current_dir(folder).uid(NOBODY).gid(NOBODY);
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a shell"))
    }
}

impl Drop for Nobody {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_session_that_another_user_swaps_for_a_link_leads_nowhere() {
    if !is_root() {
        return;
    }
    let world = World::new().file("outside/events.jsonl", "kept\n").mode("outside", 0o755).dir("theirs");
    let store = world.path("theirs/s");
    fs::rename(session(&world, "session"), &store).unwrap();
    fs::copy(store.join("session.json"), world.path("outside/session.json")).unwrap();
    let world = world.dir("other").owner("theirs", NOBODY, NOBODY);
    fs::copy(store.join("session.json"), world.path("other/session.json")).unwrap();
    let before = [Tree::of(&world.path("outside")), Tree::of(&world.path("other"))];
    let script =
        "while :; do mv s away; ln -s ../outside s; : > begun; rm s; ln -s ../other s; rm s; mv away s; done";
    let attacker = Nobody::runs(script, &world.path("theirs"));
    wait_until("the attacker begins", || world.path("theirs/begun").exists());
    for _ in 0..20 {
        let outcome = ensure(&world, &store);
        outcome.exits(2).never_says("panicked");
        assert_eq!([Tree::of(&world.path("outside")), Tree::of(&world.path("other"))], before, "{outcome}");
    }
    drop(attacker);
    assert!(!world.path("x").exists(), "a command whose session is refused does nothing");
}

#[test]
fn a_session_where_others_control_the_way_is_refused_and_they_are_named() {
    if !is_root() {
        return;
    }
    // Owner, group and mode of a folder above the session, and whether it may be there.
    let cases = [
        (NOBODY, NOBODY, 0o755, false),
        (0, 0, 0o777, false),
        (0, NOBODY, 0o775, false),
        (NOBODY, NOBODY, 0o1777, false),
        (0, NOBODY, 0o1777, true),
        (0, 0, 0o775, true),
        (0, NOBODY, 0o755, true),
    ];
    for (uid, gid, mode, fine) in cases {
        let world = World::new().dir("above/below");
        let store = session(&world, "session");
        let moved = world.path("above/below/s");
        fs::rename(store, &moved).unwrap();
        chown(world.path("above"), Some(uid), Some(gid)).unwrap();
        let world = world.mode("above", mode);
        let before = Tree::of(&world.path("above"));
        let component = format!("others control {}", world.path("above").display());
        if fine {
            ensure(&world, &moved).exits(0);
            new_in(&world, &world.path("above/below")).exits(0);
            continue;
        }
        ensure(&world, &moved).exits(2).complains(&component);
        new_in(&world, &world.path("above/below")).exits(2).complains(&component).complains("TMPDIR");
        new_in(&world, &world.path("above")).exits(2).complains(&component);
        assert_eq!(Tree::of(&world.path("above")), before, "{uid} {gid} {mode:o}");
    }
}

#[test]
fn what_was_planted_in_a_session_is_never_followed_nor_waited_for() {
    let world = World::new().file("victim", "kept");
    for plant in ["ln -s ../w/victim", "mkfifo", "ln w/victim", "mkdir"] {
        let store = session(&world, "session");
        sh(&format!("{plant} session/events.jsonl"), world.base());
        ensure(&world, &store).exits(2).complains("events.jsonl");
        assert_eq!(world.read("victim"), "kept", "{plant}");
        fs::remove_dir_all(store).unwrap();
    }
    assert!(!world.path("x").exists());
}

#[test]
fn a_session_that_nobody_wrote_to_for_a_day_is_swept_by_the_next_one() {
    let world = World::new();
    let temporary = world.base().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let names = ["old", "worked-on", "shared", "fresh", "another"];
    for name in names {
        let folder = temporary.join(format!("ccm-session-{name}"));
        world.ccm(["session", "new", "--directory", &folder.display().to_string()]).run().exits(0);
    }
    sh("echo theirs > ccm-session-shared/file; touch -d '25 hours ago' ccm-session-*/*", &temporary);
    sh(
        "touch ccm-session-fresh/session.json; mv ccm-session-another another; : > ccm-session-file",
        &temporary,
    );
    ensure(&world, &temporary.join("ccm-session-worked-on")).exits(0);
    // A folder without a mark is no session, however old.
    sh("mkdir -m 700 ccm-session-empty; touch -d '25 hours ago' ccm-session-empty", &temporary);
    new_in(&world, &temporary).exits(0);
    let mut left: Vec<String> = fs::read_dir(&temporary)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.retain(|name| !name.starts_with("ccm-session-3"));
    left.sort();
    let expected =
        ["another", "ccm-session-empty", "ccm-session-file", "ccm-session-fresh", "ccm-session-shared"];
    assert_eq!(left, [&expected[..], &["ccm-session-worked-on"]].concat());
}

#[test]
fn a_session_of_another_user_is_not_swept() {
    if !is_root() {
        return;
    }
    let world = World::new().dir("tmp").mode("tmp", 0o1777);
    new_in(&world, &world.path("tmp")).exits(0);
    sh("chown -R 65534 ccm-session-*; touch -d '25 hours ago' ccm-session-*/*", &world.path("tmp"));
    let before = world.tree();
    let made = new_in(&world, &world.path("tmp"));
    made.exits(0);
    let store = made.stdout.trim().rsplit('=').next().unwrap().to_owned();
    fs::remove_dir_all(store).unwrap();
    assert_eq!(world.tree(), before);
}

#[test]
fn an_empty_folder_of_ones_own_that_is_closed_to_others_becomes_a_session() {
    let world = World::new();
    let store = PathBuf::from(sh("mktemp -d -p .", world.base()).trim().trim_start_matches("./"));
    let store = world.base().join(store);
    ensure(&world, &store).exits(0);
    assert_eq!(fs::metadata(store.join("session.json")).unwrap().mode() & 0o7777, 0o600);
    let report =
        world.ccm(["session", "report", "--remove", "--session", &store.display().to_string()]).run();
    report.exits(0).counts([1, 0, 0, 0]);
    assert!(!store.exists());
    for (mode, holds) in
        [(0o755, None), (0o710, None), (0o777, None), (0o700, Some("file")), (0o700, Some("link"))]
    {
        let store = world.base().join("folder");
        fs::create_dir(&store).unwrap();
        fs::set_permissions(&store, fs::Permissions::from_mode(mode)).unwrap();
        match holds {
            Some("file") => fs::write(store.join("notes"), "x").unwrap(),
            Some(_) => symlink("elsewhere", store.join("session.json")).unwrap(),
            None => {}
        }
        let before = Tree::of(&store);
        ensure(&world, &store).exits(2);
        assert_eq!(Tree::of(&store), before, "{mode:o} {holds:?}");
        fs::remove_dir_all(&store).unwrap();
    }
}
