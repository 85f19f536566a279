//! The program's own files: who may have touched them, what may be planted there, and first runs at once.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink},
    path::Path,
    thread,
};

use crate::support::{NOBODY, World, is_root, sh};

/// A world with a manifest that changes something, and a file that only its owner may read.
fn world() -> World {
    World::new()
        .manifest("- exec: { x: { command: 'true' } }\n- file: { $W/f: { content: x, $OWN, mode: '0644' } }")
        .file("victim", "kept")
        .mode("victim", 0o600)
}

fn close(folder: &Path) {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_state_directory_that_others_can_write_is_refused_and_nothing_planted_in_it_is_touched() {
    for mode in [0o777, 0o1777, 0o770, 0o702] {
        let world = world();
        symlink(world.path("victim"), world.state().join("lock")).unwrap();
        fs::set_permissions(world.state(), fs::Permissions::from_mode(mode)).unwrap();
        let refused =
            format!("state directory {} is not used: others may write to it", world.state().display());
        world.apply().exits(2).complains(&refused);
        let ensure = ["ensure", "file", "$W/f", "--content", "x", "--owner", "$UID", "--group", "$GID"];
        world.ccm(ensure.iter().chain(&["--mode", "0644"])).run().exits(2).complains(&refused);
        assert_eq!(world.read("victim"), "kept", "{mode:o}");
        assert_eq!(fs::metadata(world.state()).unwrap().mode() & 0o7777, mode, "it is not repaired");
        assert_eq!(fs::read_dir(world.state()).unwrap().count(), 1);
        assert!(!world.path("f").exists());
    }
}

#[test]
fn a_state_directory_where_others_control_the_way_is_refused_and_they_are_named() {
    if !is_root() {
        return;
    }
    let cases = [
        (NOBODY, 0o755, false),
        (0, 0o777, false),
        (NOBODY, 0o1777, false),
        (0, 0o1777, true),
        (0, 0o755, true),
    ];
    for (owner, mode, fine) in cases {
        for existing in [false, true] {
            let world = world().dir("above");
            if existing {
                fs::create_dir(world.path("above/state")).unwrap();
                close(&world.path("above/state"));
            }
            chown(world.path("above"), Some(owner), Some(owner)).unwrap();
            let world = world.mode("above", mode);
            let outcome = world.apply_with(&["--state-dir", "w/above/state"]);
            if fine {
                outcome.exits(0);
                assert_eq!(fs::metadata(world.path("above/state")).unwrap().mode() & 0o7777, 0o700);
                continue;
            }
            let component = format!("others control {}", world.path("above").display());
            outcome.exits(2).complains(&component);
            assert_eq!(world.path("above/state").exists(), existing, "{owner} {mode:o}");
            assert!(!world.path("f").exists());
        }
    }
}

#[test]
fn what_was_planted_in_the_state_directory_is_never_followed_nor_waited_for() {
    let plants = ["ln -s ../w/victim", "ln ../w/victim", "mkfifo", "ln -s ../w/folder", "mknod DEVICE"];
    for plant in plants.iter().filter(|plant| is_root() || !plant.starts_with("mknod")) {
        for name in ["lock", "refreshes.jsonl", "debts.json", "unfinished", "archives", "bundles"] {
            let world = world().dir("folder");
            close(&world.state());
            let script = match plant.strip_suffix(" DEVICE") {
                Some(mknod) => format!("{mknod} {name} c 1 3"),
                None => format!("{plant} {name}"),
            };
            sh(&script, &world.state());
            let before = world.tree();
            let outcome = world.apply();
            assert!(matches!(outcome.code, 0 | 2), "{script}: {outcome}");
            if name == "lock" {
                outcome.exits(2).complains("lock");
            }
            fs::remove_file(world.path("f")).ok();
            assert_eq!(world.tree(), before, "{script}");
        }
    }
}

#[test]
fn ten_first_runs_at_once_all_succeed() {
    for round in 0..8 {
        let world = World::new().manifest("- exec: { x: { command: 'true' } }");
        let state = format!("{}/a/b/state", world.base().join("home").display());
        thread::scope(|scope| {
            for _ in 0..10 {
                scope.spawn(|| world.apply_with(&["--state-dir", &state]).exits(0).counts([1, 0, 0, 0]).code);
            }
        });
        assert_eq!(fs::metadata(&state).unwrap().mode() & 0o7777, 0o700, "round {round}");
    }
}

#[test]
fn the_state_directory_can_be_used_again_whatever_the_umask() {
    let users = if is_root() { vec![None, Some(NOBODY)] } else { vec![None] };
    for user in users {
        for umask in ["0277", "0777", "0000"] {
            let world = World::new().manifest("- exec: { x: { command: 'true' } }");
            let state = world.state().join("a/b");
            for _ in 0..2 {
                let call = world.ccm(["apply", "site.yaml", "--state-dir", &state.display().to_string()]);
                let call = call.under(["sh", "-c", &format!("umask {umask}; exec \"$@\""), "sh"]);
                let call = if let Some(user) = user { call.uid(user) } else { call };
                call.run().exits(0);
                assert_eq!(fs::metadata(&state).unwrap().mode() & 0o7777, 0o700, "{umask}");
                assert_eq!(fs::metadata(state.join("lock")).unwrap().mode() & 0o7777, 0o600, "{umask}");
            }
        }
    }
}

#[test]
fn a_lock_that_an_earlier_version_left_unusable_is_used_again() {
    let world = World::new().manifest("- exec: { x: { command: 'true' } }");
    close(&world.state());
    fs::write(world.state().join("lock"), "").unwrap();
    fs::set_permissions(world.state().join("lock"), fs::Permissions::from_mode(0o400)).unwrap();
    if is_root() {
        chown(world.state().join("lock"), Some(NOBODY), Some(NOBODY)).unwrap();
        world.ccm(["apply", "site.yaml"]).uid(NOBODY).run().exits(0);
    } else {
        world.apply().exits(0);
    }
}
